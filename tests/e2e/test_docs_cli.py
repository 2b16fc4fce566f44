# SPDX-License-Identifier: Apache-2.0
"""holdfast docs: documents, history and decisions from a terminal, beside the Holdfast that serves them."""
import json
import os
import re
import select
import shlex
import subprocess
import time

import pytest

import commands
import harness
import keys
from vault import ACCEPTED, BASE, PLAN, Docs, Folder

COLOURS = re.compile(r'\x1b\[[0-9;]*m')


class Desk:
    """A Holdfast with a folder, and a person's terminal."""

    def __init__(self, make, tmp_path, auth='none'):
        self.lens = Folder(tmp_path / 'lens', plan=PLAN, plain='No markup here.\n', second='One {++more++} note.\n')
        self.hf = make(settings={'auth': auth, 'docs': {'Lens': self.lens.settings()}})
        self.docs = Docs(self.hf)
        self.tmp = tmp_path

    def run(self, *args, env=None):
        return commands.run(self.hf, 'docs', *args, env=env)

    def ok(self, *args, env=None):
        done = self.run(*args, env=env)
        assert done.returncode == 0, (args, done.returncode, done.stderr)
        return done

    def rows(self, *args):
        return [json.loads(line) for line in self.ok(*args, '--json').stdout.splitlines()]

    def ids(self, path):
        return [row['id'] for row in self.rows('suggestions', path)]

    def editor(self, text, status=0):
        """An editor that leaves this text behind."""
        path = self.tmp / 'editor'
        path.write_text(f'#!/bin/sh\n[ "$1" = --wait ] || exit 9\ncat "$2" > "{self.tmp}/was"\nprintf %s {shlex.quote(text)} > "$2"\nexit {status}\n')
        path.chmod(0o755)
        return {'EDITOR': f'{path} --wait', 'VISUAL': ''}

    def review(self, *args, env=None):
        return Terminal(self.hf, ['docs', 'review', *args], env or {})


class Terminal:
    """A command on a pseudo terminal of its own."""

    def __init__(self, hf, args, env):
        self.master, slave = commands.open_pty()
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [harness.BINARY, *args, '--data', hf.data], stdin=slave, stdout=slave, stderr=slave, cwd=hf.folder, start_new_session=True,
            env={**commands.command_env(hf), 'TERM': 'xterm', **env})
        os.close(slave)
        self.text = self.seen = ''

    def more(self, end):
        ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
        if not ready:
            raise AssertionError(f'nothing more came after: {self.text[-2000:]}')
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other end is closed
            return False
        self.text += data.decode('utf-8', 'replace').replace('\r\n', '\n')
        return bool(data)

    def expect(self, *wanted):
        """All of it that came since the last time, up to the last of what is wanted, in that order; colours off."""
        end, at = time.monotonic() + harness.DEADLINE_S, 0
        for one in wanted:
            while one not in COLOURS.sub('', self.text)[at:]:
                assert self.more(end), (one, self.text[-2000:])
            at = COLOURS.sub('', self.text).index(one, at) + len(one)
        plain = COLOURS.sub('', self.text)
        found, self.seen, self.text = plain[:at], self.seen + self.text, plain[at:]
        return found

    def press(self, keys_):
        os.write(self.master, keys_.encode())

    def do(self, keys_, *wanted):
        """Presses when it is our turn, and waits for what follows."""
        self.expect('[q]uit > ')
        self.press(keys_)
        return self.expect(*wanted)

    def end(self):
        end = time.monotonic() + harness.DEADLINE_S
        while self.more(end):
            pass
        os.close(self.master)
        assert not harness.SANITIZER.search(self.text), self.text
        return self.process.wait(timeout=harness.DEADLINE_S), COLOURS.sub('', self.text)


@pytest.fixture
def desk(holdfast, tmp_path):
    return Desk(holdfast, tmp_path)


# One command at a time.

def test_list__names_documents(desk):
    assert [row['path'] for row in desk.rows('list')] == ['Lens/plain.md', 'Lens/plan.md', 'Lens/second.md'] == [
        line.split()[-1] for line in desk.ok('list', 'Lens').stdout.splitlines()]
    assert desk.run('list', 'Nowhere').returncode == 1


def test_show__is_the_text_to_the_byte(desk):
    desk.lens.write('odd.md', '\ufeffone\r\ntwo {++three++}')
    assert subprocess.run([harness.BINARY, 'docs', 'show', 'Lens/odd.md', '--data', desk.hf.data], capture_output=True, check=True,
                          env=commands.command_env(desk.hf), timeout=60).stdout == '\ufeffone\r\ntwo {++three++}'.encode()
    assert desk.ok('show', 'Lens/plan.md').stdout == PLAN
    assert desk.ok('show', 'Lens/plan.md', '--accepted').stdout.startswith('# Plan\n\nThe fast fox.\nIt really jumps.\n')
    desk.lens.write('plan.md', 'other\n')
    assert desk.ok('show', 'Lens/plan.md').stdout == 'other\n'
    assert desk.ok('show', 'Lens/plan.md', '--revision', '1').stdout == PLAN
    assert desk.rows('show', 'Lens/plan.md')[0]['revision'] == 2


def test_wrong_paths__are_errors_with_the_nearest(desk):
    desk.lens.write('Projects/one.md', 'A {++new ++}note.\n')
    assert [row['path'] for row in desk.rows('suggestions', 'Lens/Projects')] == ['Lens/Projects/one.md']
    for args, status, text in ((['suggestions', 'Lens/Project'], 1, 'Did you mean Lens/Projects?'),
                               (['accept', 'Lens/nope.md', '--all'], 1, 'Path not found: Lens/nope.md'),
                               (['reject', 'Lens/plam.md', '--all'], 1, 'Did you mean Lens/plan.md?'),
                               (['accept', 'Lens/Projects', '--all'], 2, 'a document is named Folder/Path.md'),
                               (['list', 'Lense'], 1, 'Did you mean Lens?')):
        done = desk.run(*args)
        assert done.returncode == status and text in done.stderr, (args, done.returncode, done.stderr)
    assert desk.lens.read('Projects/one.md') == 'A {++new ++}note.\n'
    assert desk.ok('accept', 'Lens/plain.md', '--all').stderr == '0 accepted in Lens/plain.md\n'


def test_a_terminal__gets_no_control_and_no_unseen_character_of_a_document(desk):
    evil = 'x\x1b]0;title\x07\x9b31m\u202e\u200b\U000e0041y'
    desk.lens.write('evil.md', 'one {++{"author":"A\u202eB","time":1}@@' + evil + '++}\n')
    for args in (['show', 'Lens/evil.md'], ['suggestions', 'Lens/evil.md'], ['suggestions', 'Lens/evil.md', '--json']):
        status, text = Terminal(desk.hf, ['docs', *args], {}).end()
        assert status == 0 and 'x' in text
        assert not [c for c in text if c in '\x07\x9b\u202e\u200b\U000e0041' or c == '\x1b'], (args, text)
        assert '\\u202e' in text and '\\u200b' in text
    # A pipe gets what is there.
    assert evil in desk.ok('show', 'Lens/evil.md').stdout
    assert [row['new_content'] for row in desk.rows('suggestions', 'Lens/evil.md')] == [evil]


def test_move__takes_the_links_along(desk):
    desk.lens.write('sub/from.md', 'See [[plan]] and [[/plain]].\n')
    assert desk.ok('move', 'Lens/plain.md', 'Lens/sub/plain {1}.md').stderr.startswith('moved to Lens/sub/plain {1}.md; ')
    done = desk.run('move', 'Lens/plan.md', 'Lens/second.md')
    assert done.returncode == 6 and 'choose another path' in done.stderr
    assert desk.run('move', 'Lens/plan.md', 'Else/where.md').returncode == 1
    assert desk.run('move', 'Lens/nope.md', 'Lens/where.md').returncode == 1
    assert desk.run('move', 'Lens/plan.md').returncode == 2
    assert not os.path.exists(os.path.join(desk.lens.root, 'plain.md'))
    # A wiki link cannot hold braces, and is left alone.
    assert desk.lens.read('sub/from.md') == 'See [[plan]] and [[/plain]].\n'


def test_log__tells_what_happened_and_restore_goes_back(desk):
    desk.ok('accept', 'Lens/plan.md', '--all', '--reason', 'reads better')
    told = desk.ok('log', 'Lens/plan.md').stdout.splitlines()
    assert told[0].split() == ['REVISION', 'WHEN', 'KIND', 'AUTHOR', 'REASON'] and len(told) == 3
    assert told[1].split()[0] == '2' and told[1].endswith('reads better') and ' accept ' in told[1]
    rows = desk.rows('log', 'Lens/plan.md')
    assert [r['kind'] for r in rows] == ['accept', 'outside'] and rows[0]['author'] not in ('', 'local')
    assert len(desk.rows('log', 'Lens/plan.md', '--limit', '1')) == 1
    desk.ok('restore', 'Lens/plan.md', '--revision', '1', '--reason', 'a mistake')
    assert desk.lens.read('plan.md') == PLAN and desk.rows('log', 'Lens/plan.md')[0]['reason'] == 'a mistake'
    assert desk.run('restore', 'Lens/plan.md').returncode == 2
    assert desk.run('restore', 'Lens/plan.md', '--revision', '9').returncode == 1


def test_log__goes_over_pages(desk):
    for number in range(103):
        desk.lens.write('plain.md', f'{number}\n')
        desk.docs.document('Lens/plain.md')
    assert len(desk.rows('log', 'Lens/plain.md', '--limit', '101')) == 101
    assert len(desk.rows('log', 'Lens/plain.md', '--limit', '1000')) == 103


def test_suggestions__show_what_goes_and_what_comes(desk):
    told = desk.ok('suggestions').stdout
    assert 'Lens/plan.md\n' in told and 'Lens/second.md\n' in told
    assert 'The [-quick-]{+fast+} fox.' in told and "substitution by Ada's AI" in told and '{>>too many?<<}' in told
    coloured = desk.ok('suggestions', 'Lens/second.md', env={'CLICOLOR_FORCE': '1'}).stdout
    assert 'One \x1b[32;4mmore\x1b[0m note.' in coloured and 'plan.md' not in coloured
    assert [row['path'] for row in desk.rows('suggestions', 'Lens')] == ['Lens/plan.md'] * 4 + ['Lens/second.md']
    assert 'nothing waits' in desk.ok('suggestions', 'Lens/plain.md').stderr


def test_suggestions__no_control_sequence_of_a_document_reaches_the_terminal(desk):
    desk.lens.write('evil.md', 'a\x1b]0;title\x07 {++b\x1b[2J\x9b\u009bc++}\x7f')
    told = desk.ok('suggestions', 'Lens/evil.md').stdout
    assert '\\x1b[2J' in told and not re.search('[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]', told)


def test_decisions__by_id_or_all_of_them(desk):
    first, second, third, comment = desk.ids('Lens/plan.md')
    assert desk.ok('accept', 'Lens/plan.md', first).stderr == '1 accepted in Lens/plan.md\n'
    assert 'The fast fox.' in desk.lens.read('plan.md')
    answer, = desk.rows('reject', 'Lens/plan.md', second)
    assert answer['applied'] == [0] and answer['remaining_suggestions'] == 2 and 'It jumps.' in desk.lens.read('plan.md')
    gone = desk.run('accept', 'Lens/plan.md', first)
    assert gone.returncode == 1 and 'docs suggestions' in gone.stderr
    assert desk.ok('reject', 'Lens/plan.md', '--all').stderr == '1 rejected in Lens/plan.md\n'
    assert desk.lens.read('plan.md').endswith('Over the dogs.{>>too many?<<}\n')  # what people say to each other stays
    assert third not in desk.ids('Lens/plan.md')
    desk.ok('accept', 'Lens/plan.md', *desk.ids('Lens/plan.md'))
    assert comment and desk.lens.read('plan.md') == '# Plan\n\nThe fast fox.\nIt jumps.\nOver the dogs.\n'
    assert desk.ok('accept', 'Lens/plan.md', '--all').stderr == '0 accepted in Lens/plan.md\n'


def test_decisions__accept_with_another_text(desk):
    first = desk.ids('Lens/plan.md')[0]
    desk.ok('accept', 'Lens/plan.md', first, '--text', 'swift')
    assert 'The swift fox.' in desk.lens.read('plan.md')


def test_decisions__many_go_in_several_requests(desk):
    """… also when there are more than are listed at once."""
    desk.lens.write('many.md', ''.join(f'{{++{n}++}} ' for n in range(1250)))
    assert '250 more are not shown' in desk.ok('suggestions', 'Lens/many.md').stderr
    assert desk.ok('accept', 'Lens/many.md', '--all').stderr == '1250 accepted in Lens/many.md\n'
    assert desk.lens.read('many.md') == ''.join(f'{n} ' for n in range(1250))


@pytest.mark.parametrize('args', [(), ('frobnicate',), ('log',), ('show',), ('accept', 'Lens/plan.md'), ('accept', 'Lens/plan.md', 'x', '--all'),
                                  ('log', 'Lens'), ('show', '/etc/passwd'), ('show', 'Lens/'), ('list', 'Lens', 'more'), ('list', '--all'),
                                  ('show', 'Lens/plan.md', '--revision', 'x'), ('review', '--all'), ('review',)])
def test_usage__what_is_not_understood_is_2_and_says_what_is(desk, args):
    done = desk.run(*args)
    assert done.returncode == 2 and 'usage: holdfast docs' in done.stderr, (done.returncode, done.stderr)


def test_missing__documents_are_said_to_be(desk):
    for args in (('show', 'Lens/none.md'), ('log', 'Nowhere/x.md'), ('accept', 'Lens/none.md', 'x'), ('show', 'Lens/../x.md')):
        done = desk.run(*args)
        assert done.returncode in (1, 2) and done.stderr.startswith('holdfast: '), (args, done.stderr)
    told = json.loads(desk.run('show', 'Lens/none.md', '--json').stderr)
    assert told['error']['code'] == 'not_found'


def test_unreachable__is_4_and_says_why(holdfast):
    one = holdfast(start=False)
    for args in (['list'], ['suggestions'], ['accept', 'Lens/a.md', '--all']):
        done = commands.run(one, 'docs', *args, '--url', 'http://127.0.0.1:1', with_data=False)
        assert done.returncode == 4 and 'Connection refused' in done.stderr, done.stderr


def test_url__with_the_key_of_the_environment(holdfast, tmp_path):
    desk = Desk(holdfast, tmp_path, auth='required')
    url = f'http://127.0.0.1:{desk.hf.port}'

    def ask(key, *args):
        return desk.run(*args, '--url', url, env={'HOLDFAST_KEY': key} if key is not None else None)
    member, reviewer = keys.create(desk.hf).text, keys.create(desk.hf, '--review', '--name', 'proofreader').text
    assert ask(None, 'list').returncode == 3 and ask('', 'list').returncode == 2
    assert ask(member, 'show', 'Lens/plan.md').stdout == PLAN
    denied = ask(member, 'accept', 'Lens/plan.md', '--all')
    assert denied.returncode == 3 and '--review' in denied.stderr
    assert ask(reviewer, 'accept', 'Lens/plan.md', '--all').returncode == 0
    assert desk.rows('log', 'Lens/plan.md')[0]['author'] == 'proofreader'  # over the socket, as the local admin
    assert desk.ok('restore', 'Lens/plan.md', '--revision', '1', env={'HOLDFAST_KEY': member}).returncode == 0


# The review, key by key.

def test_review__goes_forth_and_back(desk):
    person = desk.review('Lens')
    first = person.expect('Lens/plan.md:3  [1/5]  substitution by Ada\'s AI', 'The quickfast fox.')
    assert '\x1b[31;9mquick\x1b[0m\x1b[32;4mfast\x1b[0m' in person.seen and first
    person.do('n', 'Lens/plan.md:4  [2/5]', 'It really jumps.')
    person.do('p', '[1/5]')
    person.do('p', 'that was the first one', '[1/5]')
    person.do('\x1b[B', '[2/5]')
    person.do('\x1b[A', '[1/5]')
    for number in range(2, 6):
        person.do('j' if number % 2 else ' ', f'[{number}/5]')
    person.do('n', 'that was the last one', 'Lens/second.md:1  [5/5]')
    person.do('z', 'this key has no function here', '[5/5]')
    person.do('q', '5 left')
    assert person.end()[0] == 0 and desk.lens.read('plan.md') == PLAN


def test_review__decides(desk):
    person = desk.review('Lens/plan.md')
    person.do('a', 'accept', 'Lens/plan.md:4  [1/3]')
    assert 'The fast fox.' in desk.lens.read('plan.md')
    person.do('x', 'reject', '[1/2]  deletion')
    assert 'It jumps.' in desk.lens.read('plan.md')
    person.do('a', '[1/1]  comment', 'too many?')
    person.do('x', 'all suggestions are decided')
    person.press('q')
    status, told = person.end()
    assert status == 0 and '2 accepted, 2 rejected, 0 left' in told
    assert desk.lens.read('plan.md') == '# Plan\n\nThe fast fox.\nIt jumps.\nOver dogs.\n'
    assert [r['kind'] for r in desk.rows('log', 'Lens/plan.md')] == ['reject', 'accept', 'reject', 'accept', 'outside']


def test_review__undo_takes_back_one_after_the_other(desk):
    person = desk.review('Lens/plan.md')
    person.do('u', 'there is nothing to undo', '[1/4]')
    person.do('a', 'accept', '[1/3]')
    person.do('x', 'reject', '[1/2]')
    person.do('u', 'undone', 'Lens/plan.md:4  [1/3]')
    assert 'The fast fox.\nIt {++' in desk.lens.read('plan.md')
    person.do('u', 'undone', 'Lens/plan.md:3  [1/4]')
    assert desk.lens.read('plan.md') == PLAN
    person.do('A', 'accept', '[1/1]  comment')
    assert desk.lens.read('plan.md') == ACCEPTED.rstrip('\n') + '{>>too many?<<}\n'
    person.do('a', 'all suggestions are decided')
    person.press('u')
    person.expect('undone', '[1/1]')
    person.do('q', '3 accepted, 3 undone, 1 left')
    assert person.end()[0] == 0
    assert desk.rows('log', 'Lens/plan.md')[0]['reason'] == 'undone in review'


def test_review__undo_never_takes_away_what_somebody_typed_since(desk):
    person = desk.review('Lens/plan.md')
    person.do('a', 'accept', '[1/3]')
    typed = desk.lens.read('plan.md') + 'Typed by hand.\n'
    desk.lens.write('plan.md', typed)
    person.do('u', 'the document has changed since then', '[1/3]')
    assert desk.lens.read('plan.md') == typed
    person.do('q', '1 accepted, 3 left')
    assert person.end()[0] == 0


def test_review__edit_opens_the_editor_on_the_new_text(desk):
    person = desk.review('Lens/plan.md', env=desk.editor('swift\n'))
    person.do('e', 'accepted as edited', 'Lens/plan.md:4  [1/3]')
    assert (desk.tmp / 'was').read_text() == 'fast' and 'The swift fox.\n' in desk.lens.read('plan.md')
    person.do('u', 'undone', '[1/4]')
    assert desk.lens.read('plan.md') == PLAN
    for _ in range(3):
        person.do('n', '/4]')
    person.do('e', 'a comment cannot be edited', '[4/4]')
    person.do('q', '1 undone, 4 left')
    assert person.end()[0] == 0


def test_review__an_editor_that_fails_or_changes_nothing_decides_nothing(desk):
    person = desk.review('Lens/plan.md', env=desk.editor('lost', status=1))
    person.do('e', 'the editor failed', '[1/4]')
    person.do('q', '4 left')
    person.end()
    person = desk.review('Lens/plan.md', env=desk.editor('fast\n'))
    person.do('e', 'the text was not edited', '[1/4]')
    person.do('q', '4 left')
    person.end()
    person = desk.review('Lens/plan.md', env={'EDITOR': '/nowhere/editor', 'VISUAL': ''})
    person.do('e', 'cannot be started; set VISUAL or EDITOR', '[1/4]')
    person.do('q', '4 left')
    person.end()
    assert desk.lens.read('plan.md') == PLAN


def test_review__reply_is_a_comment_behind_the_suggestion(desk):
    person = desk.review('Lens/plan.md')
    person.do('c', 'reply: ')
    person.press('why not swift?\n')
    person.expect('replied', '[1/5]')
    assert '@@why not swift?<<} fox.' in desk.lens.read('plan.md')
    person.do('c', 'reply: ')
    person.press('\n')
    person.expect('the comment is empty', '[1/5]')
    person.do('c', 'reply: ')
    person.press('{++no++}\n')
    person.expect('without CriticMarkup', '[1/5]')
    person.do('n', '[2/5]  comment', 'why not swift?')
    person.do('u', 'undone', '[1/4]')
    person.do('q', '1 undone, 4 left')
    assert person.end()[0] == 0 and desk.lens.read('plan.md') == PLAN


def test_review__what_others_did_meanwhile_shows(desk):
    person = desk.review('Lens')
    person.expect('[1/5]')
    assert desk.docs.apply('Lens/plan.md', 'reject', desk.docs.suggestions('Lens/plan.md')).status == 200
    person.do('a', 'suggestion no longer found in document', 'Lens/second.md:1  [1/1]')
    person.do('a', 'accept', 'all suggestions are decided')
    person.press('q')
    assert '1 accepted, 0 left' in person.end()[1]
    assert desk.lens.read('plan.md') == BASE and desk.lens.read('second.md') == 'One more note.\n'


def test_review__ends_with_its_terminal_its_daemon_or_an_interrupt(desk):
    person = desk.review('Lens/second.md')
    person.do('\x03', '1 left')
    assert person.end()[0] == 130
    person = desk.review('Lens/second.md')
    person.do('\x04', '1 left')
    assert person.end()[0] == 0
    person = desk.review('Lens/second.md')
    person.expect('[q]uit > ')
    desk.hf.stop()
    person.press('a')
    assert person.end()[0] == 4


def test_review__nothing_to_do_is_said(desk):
    status, told = desk.review('Lens/plain.md').end()
    assert status == 0 and 'nothing waits for review' in told


def test_review__without_colour_changes_are_marked_by_signs(desk):
    person = desk.review('Lens/plan.md', env={'NO_COLOR': '1'})
    person.expect('The [-quick-]{+fast+} fox.')
    person.do('q', '4 left')
    assert person.end()[0] == 0 and '\x1b' not in person.seen
