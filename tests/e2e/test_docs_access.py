# SPDX-License-Identifier: Apache-2.0
"""Who may do what with documents: the agents of a folder, keys limited to folders or to reading, tenants
that do not see each other's sessions, and how long a session's reading counts."""
import contextlib
import email.utils
import time

import pytest

import keys
from harness import Client, wait_for
from knowledge import EachCall, Knowledge, bare, body_of, handle_of, modern, refused, said, started
from test_docs import MUST_READ, NOWHERE, TOOLS, edit_of, expired, unknown
from test_limits import Slept
from test_operate import reload

DENIED = 'Access denied: agents may not %s documents in \'%s\'. Read them, and tell the person what you would change.'
READ_ONLY = 'Access denied: read-only access. Cannot use write tools.'
ONLY = "Access denied: this key only has access to 'Lens'. Use a path that begins with it."
HIDDEN = {'suggest': [], 'write': [], 'comment': ['edit', 'create', 'move'], 'read': ['edit', 'create', 'move', 'comment']}
HOUR, DAY = 3600, 86400


@pytest.fixture(scope='module')
def kb(request, tmp_path_factory):
    kb = started(request, tmp_path_factory, 'access')
    for folder in kb.folders:
        kb.write(f'{folder}/A.md', f'needle in {folder}, see [[B]]\n')
        kb.write(f'{folder}/B.md', 'back to [[A]]\n')
    wait_for(lambda: all(said(kb.agent().call('search', {'query': f'needle {f}'})).startswith(f + '/') for f in kb.folders),
             'the index')
    kb.full = keys.create(kb.hf)
    kb.lens = keys.create(kb.hf, '--folder', 'Lens')
    kb.two = keys.create(kb.hf, '--folder', 'Lens', '--folder', 'Shelf')
    kb.none = keys.create(kb.hf, '--folder', 'Gone')
    kb.reader = keys.create(kb.hf, '--read-only')
    kb.foreign = keys.create(kb.hf, '--tenant', 'other')
    return kb


def agent(kb, key, path='/mcp/docs'):
    return EachCall(kb.hf, path, headers=key.headers)


def names(client):
    return [t['name'] for t in client.rpc('tools/list').result['tools']]


def writing(path):
    """The tools that change something, each with arguments that would do."""
    return {'edit': edit_of(path, 'needle', 'thread', NOWHERE), 'create': {'file_path': path.replace('A', 'N'), 'content': 'x'},
            'move': {'file_path': path, 'new_path': path.replace('A', 'N')},
            'comment': {'file_path': path, 'quote': 'needle', 'comment': 'x'}}


# What agents may do in a folder.

@pytest.mark.parametrize('mode', HIDDEN)
def test_mode__hides_the_tools_that_no_folder_allows(holdfast, tmp_path, mode):
    kb = Knowledge(tmp_path / 'vaults', {'One': mode, 'Two': 'read'})
    kb.hf = holdfast(settings=kb.settings())
    expected = [t for t in TOOLS if t not in HIDDEN[mode]]
    assert names(kb.client().connect()) == names(kb.client(modern=True)) == expected
    assert [n for n in names(kb.client('/mcp').connect()) if n.startswith('docs__')] == ['docs__' + t for t in expected]
    path = kb.write('One/A.md', 'hello world\n')
    handle = handle_of(kb.read(path))
    reply = kb.agent().call('edit', edit_of(path, 'hello', 'goodbye', handle))
    if mode in ('suggest', 'write'):
        said(reply)
    else:  # in words, though it is not listed
        assert refused(reply) == DENIED % ('change', 'One')
        assert kb.bytes(path) == b'hello world\n'


def test_mode__write_applies_directly(kb):
    path = kb.new('hello world\n', 'Desk')
    assert said(kb.edit(path, 'hello', 'goodbye', handle_of(kb.read(path)))) == f'Edited {path}: replaced 5 characters.'
    assert kb.bytes(path) == b'goodbye world\n'


@pytest.mark.parametrize('folder, allowed', [('Talk', ['comment']), ('Shelf', [])])
def test_mode__is_the_folders(kb, folder, allowed):
    path = kb.new('needle\n', folder).replace('doc', 'A')
    path = kb.write(path, 'needle\n')
    handle = handle_of(kb.read(path))
    for tool, arguments in writing(path).items():
        reply = kb.agent().call(tool, {**arguments, 'session_id': handle})
        if tool in allowed:
            said(reply)
        else:
            assert refused(reply) == DENIED % ('comment in' if tool == 'comment' else 'change', folder), tool
    assert kb.plain(path) == (b'needle{>>x<<}\n' if allowed else b'needle\n')


def instructions(client):
    if client.modern:
        return client.rpc('server/discover', {}).result['instructions']
    return client.initialize().result['instructions']


# Keys.

@pytest.mark.parametrize('is_modern', [False, True], ids=['legacy', 'modern'])
@pytest.mark.parametrize('path', ['/mcp/docs', '/mcp'])
def test_instructions__say_what_this_caller_may_do_where(kb, path, is_modern):
    told = {None: ' Folders: Desk (edits apply at once), Lens (edits are suggestions), Shelf (read only), Talk (read and comment).',
            kb.lens: ' Folders: Lens (edits are suggestions).', kb.none: ' No folder is open to you.',
            kb.reader: ' Folders: Desk (read only), Lens (read only), Shelf (read only), Talk (read only).'}
    for key, text in told.items():
        found = instructions(kb.client(path, modern=is_modern, headers=key.headers if key else None))
        assert text in found and (path == '/mcp' or found.endswith(text)), found


def test_read_only_key__sees_no_writing_tool_and_is_told_why(kb):
    expected = [t for t in TOOLS if t not in HIDDEN['read']]
    assert names(kb.reader.client(kb.hf, '/mcp/docs').connect()) == expected
    assert names(kb.reader.client(kb.hf, '/mcp/docs', modern=True)) == expected
    path = kb.new('needle\n')
    reader = agent(kb, kb.reader)
    handle = handle_of(reader.call('read', {'file_path': path}))
    for tool, arguments in writing(kb.write('Lens/ro/A.md', 'needle\n')).items():
        assert refused(reader.call(tool, {**arguments, 'session_id': handle})) == READ_ONLY, tool
    assert kb.bytes('Lens/ro/A.md') == b'needle\n'
    assert said(reader.call('grep', {'pattern': 'needle in'})) == 'Desk/A.md\nLens/A.md\nShelf/A.md\nTalk/A.md'


def test_key_of_a_folder__sees_that_folder_only(kb):
    lens = agent(kb, kb.lens)
    assert set(said(lens.call('glob', {'pattern': '{A,B}.md'})).split('\n')) >= {'Lens/A.md', 'Lens/B.md'}
    assert not [p for p in said(lens.call('glob', {'pattern': '**'})).split('\n') if not p.startswith('Lens/')]
    assert said(lens.call('grep', {'pattern': 'needle in'})) == 'Lens/A.md'
    assert said(lens.call('search', {'query': 'needle see'})).startswith('Lens/A.md: A\n')
    assert 'Shelf' not in said(lens.call('search', {'query': 'needle see'}))
    assert said(lens.call('search', {'query': 'Shelf needle'})) == 'No matches found.'
    assert said(lens.call('get_links', {'file_path': 'Lens/A.md'})).count('- Lens/B.md') == 2
    assert handle_of(lens.call('read', {'file_path': 'Lens/A.md'}))


@pytest.mark.parametrize('folder', ['Shelf', 'Nowhere'])
def test_key_of_a_folder__is_told_so_by_every_tool(kb, folder):
    lens = agent(kb, kb.lens)
    handle = handle_of(lens.call('read', {'file_path': 'Lens/A.md'}))
    path = f'{folder}/A.md'
    calls = {'read': {'file_path': path}, 'get_links': {'file_path': path}, 'glob': {'pattern': '*', 'path': folder},
             'grep': {'pattern': 'x', 'path': path}, **writing(path)}
    for tool, arguments in calls.items():
        assert refused(lens.call(tool, {**arguments, 'session_id': handle})) == ONLY, tool
    to = refused(lens.call('move', {'file_path': 'Lens/A.md', 'new_path': path}))
    assert to == "Error: a document stays in its folder; give a new_path that begins with 'Lens/'."
    assert kb.bytes('Shelf/A.md') == b'needle in Shelf, see [[B]]\n'


def test_key_of_several_folders_and_of_none(kb):
    assert refused(agent(kb, kb.two).call('read', {'file_path': 'Desk/A.md'})) == (
        "Access denied: this key only has access to 'Lens', 'Shelf'. Use a path that begins with one of them.")
    assert said(agent(kb, kb.two).call('grep', {'pattern': 'needle in'})) == 'Lens/A.md\nShelf/A.md'
    none = agent(kb, kb.none)
    assert refused(none.call('read', {'file_path': 'Lens/A.md'})) == (
        'Access denied: this key only has access to folders that do not exist. Ask for a key to existing folders.')
    for tool, arguments in {'glob': {'pattern': '**'}, 'grep': {'pattern': '.'}, 'search': {'query': 'needle'}}.items():
        assert said(none.call(tool, arguments)) == 'No matches found.', tool


def test_key_of_many_folders__is_told_of_some(holdfast, tmp_path):
    many = {f'{i:02}-'.ljust(64, 'x'): 'suggest' for i in range(64)}
    kb = Knowledge(tmp_path / 'vaults', many)
    kb.hf = holdfast(settings=kb.settings())
    key = keys.create(kb.hf, *[flag for name in list(many)[:20] for flag in ('--folder', name)])
    for one, text in ((agent(kb, key), ' and 16 more. Use a path that begins with one of them.'), (kb.agent(), list(many)[63])):
        assert refused(one.call('create', {'file_path': 'Nowhere/x.md', 'content': ''})).endswith(text)


def test_folder_of_a_tenant__is_not_there_for_others(holdfast, tmp_path):
    kb = Knowledge(tmp_path / 'vaults', {'Ours': 'suggest', 'Theirs': 'suggest'})
    settings = kb.settings()
    settings['docs']['Theirs']['tenants'] = ['other']
    kb.hf = holdfast(settings=settings)
    for folder in ('Ours', 'Theirs'):
        kb.write(f'{folder}/A.md', 'needle\n')
    other = agent(kb, keys.create(kb.hf, '--tenant', 'other'))
    assert said(other.call('grep', {'pattern': 'needle'})) == 'Ours/A.md\nTheirs/A.md'
    assert said(kb.agent().call('grep', {'pattern': 'needle'})) == 'Ours/A.md'
    assert said(kb.agent().call('glob', {'pattern': '**'})) == 'Ours/A.md'
    assert refused(kb.read('Theirs/A.md')) == 'Error: Document not found: Theirs/A.md'
    assert refused(kb.agent().call('glob', {'pattern': '**', 'path': 'Theirs'})) == 'Error: Folder not found: Theirs'
    assert refused(kb.agent().call('create', {'file_path': 'Theirs/N.md', 'content': ''})) == (
        "Unknown folder 'Theirs'. Available folders: Ours")
    wait_for(lambda: said(other.call('search', {'query': 'needle'})).count('/A.md') == 2, 'the index')
    assert 'Theirs' not in said(kb.agent().call('search', {'query': 'needle'}))


def test_reload__changes_what_agents_may_do(holdfast, tmp_path):
    kb = Knowledge(tmp_path / 'vaults', {'One': 'suggest'})
    kb.hf = holdfast(settings=kb.settings())
    path = kb.write('One/A.md', 'hello world\n')
    handle = handle_of(kb.read(path))
    kb.folders['One'] = 'read'
    reload(kb.hf, {'mcpServers': {}, 'holdfast': kb.settings()})
    assert refused(kb.edit(path, 'hello', 'goodbye', handle)) == DENIED % ('change', 'One')
    assert names(kb.client().connect()) == [t for t in TOOLS if t not in HIDDEN['read']]
    kb.folders['One'] = 'suggest'
    reload(kb.hf, {'mcpServers': {}, 'holdfast': kb.settings()})
    said(kb.edit(path, 'hello', 'goodbye', handle))
    assert kb.plain(path) == b'{--hello--}{++goodbye++} world\n'


def test_key_in_the_path__is_as_good(kb):
    path = kb.new('hello world\n')
    for where, prefix in ((f'/mcp/k/{kb.lens.text}/docs', ''), (f'/mcp/k/{kb.lens.text}', 'docs__')):
        one = EachCall(kb.hf, where)
        handle = handle_of(one.call(prefix + 'read', {'file_path': path}))
        said(one.call(prefix + 'edit', edit_of(path, *(('globe', 'earth') if prefix else ('world', 'globe')), handle)))
        assert refused(one.call(prefix + 'read', {'file_path': 'Shelf/A.md'})) == ONLY
        # The same owner, by header and by path.
        said(agent(kb, kb.lens).call('read', {'file_path': path, 'session_id': handle}))
    assert kb.plain(path) == b'hello {--world--}{++earth++}\n'


# Whose session.

@pytest.mark.parametrize('how', [EachCall, modern], ids=['legacy', 'modern'])
def test_foreign_handle__answers_as_an_unknown_one(kb, how):
    path = kb.new('hello world\n')
    mine = handle_of(agent(kb, kb.full).call('read', {'file_path': path}))
    for key in (kb.foreign, kb.lens, None):
        other = how(kb.hf, headers=key.headers if key else None)
        answers = []
        for handle in (mine, NOWHERE):
            replies = [other.call('edit', edit_of(path, 'hello', 'goodbye', handle)),
                       other.call('read', {'file_path': path, 'session_id': handle}),
                       other.call('end_session', {'session_id': handle})]
            assert refused(replies[0]) == unknown(handle)
            answers.append([(r.status, [n for n, _ in r.headers], r.raw.split(b'"result"')[1].replace(handle.encode(), b'H'))
                            for r in replies])
        assert answers[0] == answers[1]
    assert kb.bytes(path) == b'hello world\n'
    said(agent(kb, kb.full).call('edit', edit_of(path, 'hello', 'goodbye', mine)))


def test_list_sessions__lists_ones_own(kb):
    mine = handle_of(agent(kb, kb.full).call('read', {'file_path': 'Lens/A.md'}))
    other = handle_of(agent(kb, kb.lens).call('read', {'file_path': 'Lens/A.md'}))
    listed = said(agent(kb, kb.full).call('list_sessions'))
    assert mine in listed and other not in listed
    loopback = handle_of(kb.read('Lens/A.md'))
    listed = said(kb.agent().call('list_sessions'))
    assert loopback in listed and mine not in listed and other not in listed


# How long.

@pytest.fixture
def aging(holdfast, tmp_path):
    kb = Knowledge(tmp_path / 'vaults')
    kb.clock = Slept(tmp_path)
    kb.hf = holdfast(settings=kb.settings(session={'cleanup': {'interval': '100ms'}}), env=kb.clock.env)
    kb.slept = 0

    def sleep(seconds):
        assert kb.hf.get('/api/v1/sessions').status == 200  # by now the store knows what was used
        kb.slept += seconds
        kb.clock.set(kb.slept)
        wait_for(lambda: ahead(kb.hf) > kb.slept - 30, 'the clock')
    kb.sleep = sleep
    return kb


def ahead(hf):
    """Seconds by which the program's clock is ahead; asked where nothing waits for it."""
    with contextlib.suppress(OSError, EOFError):  # the clock moved while it read the request
        date = hf.get('/healthz').header('date')
        return email.utils.parsedate_to_datetime(date).timestamp() - time.time()
    return 0


def test_provisional_session__lasts_an_hour_and_says_that_it_expired(aging):
    path = aging.write('Lens/A.md', 'one\ntwo\nthree\n')
    young, old, bound = [handle_of(how(aging.hf).call('read', {'file_path': path})) for how in (modern, bare, EachCall)]
    aging.sleep(HOUR - 120)
    said(aging.edit(path, 'one', 'eins', young))  # named: from now on it is kept like any other
    aging.sleep(240)
    assert refused(aging.edit(path, 'two', 'zwei', old)) == expired(old)
    assert refused(aging.read(path, old)) == expired(old, 'read again')
    said(aging.read(path, bound))  # begun by a transport, it lasts a day from the beginning
    said(aging.edit(path, 'two', 'zwei', young))
    for _ in range(3):  # used now and then, it lives on
        aging.sleep(DAY - HOUR)
        said(aging.edit(path, 'three', 'three', young))
    aging.sleep(DAY + HOUR)
    assert refused(aging.edit(path, 'three', 'drei', young)) == expired(young)
    aging.hf.restart()
    assert refused(aging.edit(path, 'three', 'drei', young)) == expired(young)
    assert refused(aging.edit(path, 'three', 'drei', NOWHERE)) == unknown(NOWHERE)
    assert aging.plain(path) == b'{--one--}{++eins++}\n{--two--}{++zwei++}\nthree\n'


def test_provisional_sessions__count_when_they_are_named(holdfast, tmp_path):
    kb = Knowledge(tmp_path / 'vaults')
    kb.hf = holdfast(settings={**kb.settings(), 'tenants': {'default': {'max_sessions': 2}}})
    path = kb.write('Lens/A.md', 'one\ntwo\nthree\n')
    handles = [handle_of(kb.read(path)) for _ in range(5)]  # none of them counts
    for handle, word in zip(handles[:2], ('one', 'two')):
        said(kb.edit(path, word, word.upper(), handle))
    before = kb.bytes(path)
    assert refused(kb.edit(path, 'three', 'THREE', handles[2])).startswith('session limit exceeded for tenant')
    assert refused(kb.read(path, handles[3])).startswith('session limit exceeded for tenant')
    assert refused(kb.agent().call('create_session')).startswith('session limit exceeded for tenant. End one')
    assert kb.bytes(path) == before
    handle_of(kb.read(path))  # a new one is no matter
    said(kb.agent().call('end_session', {'session_id': handles[0]}))
    said(kb.edit(path, 'three', 'THREE', handles[2]))


def test_agents_of_two_tenants__share_documents_but_not_what_they_read(kb):
    path = kb.new('hello world\n')
    theirs = handle_of(agent(kb, kb.foreign).call('read', {'file_path': path}))
    mine = said(agent(kb, kb.full).call('create_session')).split('\n')[0]
    assert refused(agent(kb, kb.full).call('edit', edit_of(path, 'world', 'x', mine))) == MUST_READ % path
    said(agent(kb, kb.foreign).call('edit', edit_of(path, 'world', 'earth', theirs)))
    assert '(AI) just now' in body_of(Client(kb.hf, '/mcp/docs').call('read', {'file_path': path}))
