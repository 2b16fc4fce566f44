# SPDX-License-Identifier: Apache-2.0
"""Nobody waits for what somebody else does to documents: not the loop, not another document, not another owner.
Work is stopped where it runs (fault_hold() of src/base/fault.h), and whatever should not wait for it is done meanwhile."""
import concurrent.futures
import os

import pytest

import keys
from harness import DEADLINE_S, wait_for
from knowledge import Knowledge, handle_of, refused, said

RUNNING, WAITING = 2, 16  # searches of one owner (src/docs/docs.c)


class Hold:
    """Threads of the program that wait at a point until they are let go."""

    def __init__(self, folder):
        self.folder = str(folder)
        os.makedirs(self.folder)
        self.env = {'HOLDFAST_FAULT_HOLD': self.folder}

    def at(self, point, about=''):
        with open(os.path.join(self.folder, point + '.new'), 'w', encoding='utf-8') as file:
            file.write(about)
        os.rename(os.path.join(self.folder, point + '.new'), os.path.join(self.folder, point))

    def wait(self, point):
        wait_for(lambda: os.path.exists(os.path.join(self.folder, point + '.held')), f'{point} to be reached')

    def let_go(self, point):
        os.unlink(os.path.join(self.folder, point))


class Stage:
    def __init__(self, make, tmp_path):
        self.hold = Hold(tmp_path / 'hold')
        self.kb = Knowledge(tmp_path / 'vaults')
        self.hf = self.kb.hf = make({}, self.kb.settings(), env=self.hold.env)
        self.pool = concurrent.futures.ThreadPoolExecutor(RUNNING + WAITING + 4)

    def later(self, tool, headers=None, **arguments):
        return self.pool.submit(lambda: self.hf.client('/mcp/docs', headers=headers).connect().call(tool, arguments))

    def now(self, tool, headers=None, **arguments):
        return said(self.later(tool, headers, **arguments).result(DEADLINE_S))


@pytest.fixture
def stage(holdfast, tmp_path):
    stage = Stage(holdfast, tmp_path)
    yield stage
    for point in os.listdir(stage.hold.folder):
        if not point.endswith('.held'):
            stage.hold.let_go(point)
    stage.pool.shutdown()


def test_create__is_made_beside_the_loop(stage):
    stage.hold.at('docs.create', 'slow')
    slow = stage.later('create', file_path='Lens/slow.md', content='new text\n')
    stage.hold.wait('docs.create')
    assert stage.now('create', file_path='Lens/quick.md', content='other text\n') == 'Created Lens/quick.md'
    assert 'other text' in stage.now('read', file_path='Lens/quick.md')
    assert not slow.done()
    stage.hold.let_go('docs.create')
    assert said(slow.result(DEADLINE_S)) == 'Created Lens/slow.md'
    assert stage.kb.plain('Lens/slow.md') == b'{++new text\n++}'


def test_markup__is_looked_for_beside_the_loop(stage):
    """The longest text there may be, with markup at its very end."""
    stage.kb.write('Lens/slow.md', 'one\n')
    handle = handle_of(stage.kb.read('Lens/slow.md'))
    text = 'x' * (2 * 1024 * 1024 - 3) + '{++'
    calls = [('docs.create', 'content', 'create', {'file_path': 'Lens/slow-too.md', 'content': text}),
             ('docs.change', 'new_string', 'edit', {'file_path': 'Lens/slow.md', 'old_string': 'one', 'new_string': text, 'session_id': handle}),
             ('docs.change', 'comment', 'comment', {'file_path': 'Lens/slow.md', 'quote': 'one', 'comment': text})]
    for point, where, tool, arguments in calls:
        stage.hold.at(point, 'slow')
        slow = stage.later(tool, **arguments)
        stage.hold.wait(point)
        assert stage.now('glob', pattern='*.md', path='Lens')
        assert not slow.done()
        stage.hold.let_go(point)
        assert refused(slow.result(DEADLINE_S)).startswith(f"Error: {where} contains CriticMarkup syntax '{{++'")
        wait_for(lambda p=point: not os.path.exists(os.path.join(stage.hold.folder, p + '.held')), 'the point to be free')
    assert stage.kb.bytes('Lens/slow.md') == b'one\n' and not os.path.exists(stage.kb.file('Lens/slow-too.md'))


def test_a_slow_edit__holds_up_no_other_document(stage):
    kb = stage.kb
    for name in ('slow', 'quick'):
        kb.write(f'Lens/{name}.md', 'one\ntwo\nthree\n')
    slow, quick = handle_of(kb.read('Lens/slow.md')), handle_of(kb.read('Lens/quick.md'))
    stage.hold.at('docs.change', 'slow')
    first = stage.later('edit', file_path='Lens/slow.md', old_string='one', new_string='eins', session_id=slow)
    stage.hold.wait('docs.change')
    # The second change of that document waits for the first, and what reads it waits for both.
    second = stage.later('edit', file_path='Lens/slow.md', old_string='eins', new_string='uno', session_id=slow)
    for new in ('deux', 'dos'):
        stage.now('edit', file_path='Lens/quick.md', old_string='two' if new == 'deux' else 'deux', new_string=new, session_id=quick)
    assert kb.plain('Lens/quick.md') == b'one\n{--two--}{++dos++}\nthree\n'
    stage.now('comment', file_path='Lens/quick.md', quote='three', comment='why?')
    assert 'dos' in stage.now('read', file_path='Lens/quick.md')
    assert not first.done() and not second.done()
    stage.hold.let_go('docs.change')
    assert said(first.result(DEADLINE_S)) and said(second.result(DEADLINE_S))
    assert kb.plain('Lens/slow.md') == b'{--one--}{++uno++}\ntwo\nthree\n'


def test_parallel_edits__of_one_session_on_one_line_all_apply(stage):
    path = stage.kb.write('Lens/doc.md', 'alpha beta gamma delta\n')
    handle = handle_of(stage.kb.read(path))
    stage.hold.at('docs.change', 'doc')
    edits = [stage.later('edit', file_path=path, old_string=word, new_string=word.upper(), session_id=handle)
             for word in ('alpha', 'gamma', 'delta')]
    stage.hold.wait('docs.change')
    stage.hold.let_go('docs.change')
    assert [said(e.result(DEADLINE_S)).startswith('Edited ') for e in edits] == [True] * 3
    assert 'ALPHA beta GAMMA DELTA' in stage.now('read', file_path=path)
    # Two that want the same words: one has them, the other is told what to do.
    same = [stage.later('edit', file_path=path, old_string='beta', new_string=new, session_id=handle) for new in ('zwei', 'deux')]
    replies = sorted((e.result(DEADLINE_S) for e in same), key=lambda r: r.result['isError'])
    assert said(replies[0]).startswith('Edited ')
    assert refused(replies[1]) == f'Error: old_string not found in {path}. Make sure it matches exactly.'


def test_a_move__has_its_folder_to_itself_and_leaves_others_alone(stage):
    kb = stage.kb
    for path in ('Lens/slow.md', 'Lens/from.md', 'Desk/quick.md'):
        kb.write(path, 'one\n')
    slow, desk = handle_of(kb.read('Lens/slow.md')), handle_of(kb.read('Desk/quick.md'))
    stage.hold.at('docs.change', 'slow')
    first = stage.later('edit', file_path='Lens/slow.md', old_string='one', new_string='eins', session_id=slow)
    stage.hold.wait('docs.change')
    moved = stage.later('move', file_path='Lens/from.md', new_path='Lens/to.md')
    stage.now('edit', file_path='Desk/quick.md', old_string='one', new_string='two', session_id=desk)
    assert not moved.done() and os.path.exists(kb.file('Lens/from.md'))
    stage.hold.let_go('docs.change')
    assert said(first.result(DEADLINE_S)) and said(moved.result(DEADLINE_S)).startswith('Moved ')


def test_grep__of_one_owner_leaves_room_for_others(stage):
    stage.kb.write('Lens/doc.md', 'a needle\n')
    greedy, other = keys.create(stage.hf).headers, keys.create(stage.hf).headers
    stage.hold.at('docs.grep', 'x*x*')
    held = [stage.later('grep', greedy, pattern='x*x*needle') for _ in range(RUNNING)]
    stage.hold.wait('docs.grep')
    for _ in range(WAITING):
        held.append(stage.later('grep', greedy, pattern='x*x*needle'))
    # As many as may wait do; one more is told so at once.
    more = [stage.later('grep', greedy, pattern='x*x*needle')]
    done, _ = concurrent.futures.wait(held + more, DEADLINE_S, concurrent.futures.FIRST_COMPLETED)
    assert [refused(f.result()) for f in done] == [f'Error: too many of your calls wait ({WAITING}); call again when one is done']
    assert stage.now('grep', other, pattern='needle') == 'Lens/doc.md'
    assert stage.now('search', greedy, query='nothing') == 'No matches found.'
    stage.hold.let_go('docs.grep')
    answers = [f.result(DEADLINE_S) for f in held + more if f not in done]
    assert len(answers) == RUNNING + WAITING and {said(a) for a in answers} == {'Lens/doc.md'}


def test_grep__ends_where_its_pattern_is_too_slow_and_says_how_far_it_came(stage):
    for n in range(12):
        stage.kb.write(f'Lens/{n:02}.md', 'a' * 60 + '!\n')
    assert stage.now('grep', pattern=r'^(a+)+(b|\1c)$', path='Lens') == (
        'No matches found.\n\n[Stopped: the pattern takes too long in 4 documents; 4 of 12 documents were searched. '
        'Make the pattern simpler.]')
    os.unlink(stage.kb.file('Lens/03.md'))
    stage.kb.write('Lens/z.md', 'ab\n')
    for n in range(4, 12):
        os.unlink(stage.kb.file(f'Lens/{n:02}.md'))
    assert stage.now('grep', pattern=r'^(a+)+(b|\1c)$', path='Lens') == (
        'Lens/z.md\n\n[The pattern takes too long in 3 documents; make it simpler.]')
