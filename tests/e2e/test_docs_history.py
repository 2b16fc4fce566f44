# SPDX-License-Identifier: Apache-2.0
"""What the history of documents takes: little for little changes, no more than it may, and all of it back in an older schema."""
import os

import pytest

import commands
from knowledge import handle_of, said
from stored import Stored
from vault import Docs, Folder

LINE = 'A line of a long document that somebody has written over the years, number {}.\n'


class Shelf:
    def __init__(self, make, tmp_path, env, **folder):
        self.url = env.get('DATABASE_URL')
        self.lens = Folder(tmp_path / 'lens')
        self.hf = make(settings={'docs': {'Lens': self.lens.settings(**folder)}}, env=env)
        self.docs, self.stored = Docs(self.hf), Stored(self.hf, self.url)

    def edit(self, words):
        """One document, changed at a word after another; its texts, oldest first."""
        client = self.hf.client('/mcp/docs').connect()
        texts = [self.lens.read('doc.md')]
        for at, (old, new) in enumerate(words):
            if at % 10 == 0:
                handle = handle_of(client.call('read', {'file_path': 'Lens/doc.md', 'limit': 100000}))
            said(client.call('edit', {'file_path': 'Lens/doc.md', 'old_string': old, 'new_string': new, 'session_id': handle}))
            texts.append(self.lens.read('doc.md'))
        return texts

    def taken(self):
        """Bytes of texts in the history."""
        def size(value):
            return len(value) // 2 if isinstance(value, str) else len(value)
        return sum(size(r['content']) for r in self.stored.rows('document_contents')) + sum(
            size(r['middle']) for r in self.stored.rows('document_deltas'))

    def text(self, revision):
        return self.docs.get(f'/docs/files/Lens/doc.md/history/{revision}').json()['content']


@pytest.fixture(scope='function')
def shelf(holdfast, tmp_path, database):
    return lambda **folder: Shelf(holdfast, tmp_path, database, **folder)


def test_a_small_edit__of_a_large_document_takes_little_room(shelf):
    one = shelf()
    one.lens.write('doc.md', ''.join(LINE.format(n) for n in range(11000)))
    size = os.path.getsize(os.path.join(one.lens.root, 'doc.md'))
    texts = one.edit([(f'number {n}.', f'number {n} or so.') for n in (17, 10999, 6000, 5, 9000)])
    assert size > 850000 and size < one.taken() < size + 5 * 4096
    assert [one.text(n + 1) for n in range(len(texts))] == texts
    assert [r['revision'] for r in one.docs.revisions('Lens/doc.md')] == [6, 5, 4, 3, 2, 1]
    assert one.docs.restore('Lens/doc.md', 3).status == 200
    assert one.lens.read('doc.md') == texts[2] == one.text(7)


def test_the_oldest_revisions__go_past_what_a_folder_allows(shelf):
    one = shelf(history='64KiB')
    one.lens.write('doc.md', ''.join(LINE.format(n) for n in range(250)))  # 20 KB
    texts = one.edit([(f'number {n}.', f'number {n} or so.') for n in range(1, 121)])
    assert one.taken() <= 64 * 1024
    numbers = [r['revision'] for r in one.docs.revisions('Lens/doc.md')]
    assert numbers[0] == 121 and numbers[-1] > 1 and numbers == list(range(121, numbers[-1] - 1, -1)) and len(numbers) > 20
    assert [one.text(n) for n in numbers] == [texts[n - 1] for n in numbers]
    assert one.docs.get('/docs/files/Lens/doc.md/history/1').status == 404


def test_rollback__makes_every_revision_whole_again(shelf):
    one = shelf()
    one.lens.write('doc.md', ''.join(LINE.format(n) for n in range(50)) + 'Grüße\n')
    texts = one.edit([(f'number {n}.', f'number {n} ödly.') for n in range(40)])
    assert len(one.stored.rows('document_deltas')) > 30
    one.hf.stop()
    where = ['--database-url', one.url] if one.url else []
    done = commands.run(one.hf, 'db', 'rollback', '--to', '11', '--yes', *where)  # before document_deltas
    assert done.returncode == 0, done.stderr
    rows = one.stored.rows('document_contents', order='revision')
    assert [bytes.fromhex(r['content'].removeprefix('\\x')) if isinstance(r['content'], str) else r['content'] for r in rows] == [
        t.encode() for t in texts]
    one.hf.start()
    assert [one.text(n + 1) for n in range(len(texts))] == texts
    more = one.edit([('number 49.', 'number 49, again.')])
    assert one.text(len(texts) + 1) == more[-1]
