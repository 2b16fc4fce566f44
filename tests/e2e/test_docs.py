# SPDX-License-Identifier: Apache-2.0
"""The knowledge base for agents that open a transport for every call: what read prints names the session
that edit asks for, and a change becomes a suggestion in the file and nothing else."""
import json
import os
import re
import time

import pytest

from commands import outcomes, run, run_json
from harness import LEGACY_VERSIONS
from knowledge import EVERY_AGENT, META, EachCall, Knowledge, bare, body_of, handle_of, kept, modern, refused, said, started
from postgres import shared_keys

TEXT = b'# Green\n\nPlants say hello to the sun.\n\n```\nhello {++there++}\n```\n'
TOOLS = ['read', 'edit', 'glob', 'grep', 'get_links', 'create_session', 'end_session', 'list_sessions', 'search', 'create',
         'move', 'comment']
LIFETIME = 'A session lasts 24 hours after its last use, or 1 hour when read began it and nothing has named it since.'
MUST_READ = 'You must read this document before editing it. Call the read tool with file_path: "%s" first.'
MUST_READ_LINES = ('You must read this document before editing it. Call the read tool with file_path: "%s" and offset: %d first. '
                   '%s not been read.')
CHANGED = 'Document changed since last read. Please re-read and try again.'
NOWHERE = 'ses_' + 'A' * 43


def unknown(handle, then='edit again'):
    return f'Session not found: {handle}. Call read or create_session to get a session_id, then {then}.'


def expired(handle, then='edit again'):
    return f'Session expired: {handle}. Call read or create_session to get a session_id, then {then}.'


@pytest.fixture(scope='module')
def kb(request, tmp_path_factory):
    return started(request, tmp_path_factory, 'docs')


def edit_of(path, old, new, session):
    return {'file_path': path, 'old_string': old, 'new_string': new, 'session_id': session}


def headline(kb, first, second, between=lambda: None):
    """read with the first agent, edit with the second."""
    path = kb.new(TEXT)
    handle = handle_of(first().call('read', {'file_path': path}))
    between()
    text = said(second().call('edit', edit_of(path, 'Plants say hello', 'Plants say goodbye', handle)))
    assert text == f'Edited {path}: replaced 16 characters with CriticMarkup suggestion for human review.'
    assert kb.plain(path) == TEXT.replace(b'say hello', b'say {--hello--}{++goodbye++}')
    (author, at), (same, _) = META.findall(kb.bytes(path))
    assert author == same and abs(int(at) - time.time()) < 60
    return path, handle


@EVERY_AGENT
def test_headline__what_read_printed_lets_another_call_edit(kb, agent):
    headline(kb, lambda: agent(kb.hf), lambda: agent(kb.hf))


@pytest.mark.parametrize('version', LEGACY_VERSIONS)
def test_headline__of_every_legacy_version(kb, version):
    def fresh():
        return kb.client().connect(version)
    headline(kb, fresh, fresh)


@pytest.mark.parametrize('first, second', [(modern, kept), (EachCall, modern), (bare, EachCall)],
                         ids=['modern-legacy', 'legacy-modern', 'bare-legacy'])
def test_headline__a_handle_crosses_eras(kb, first, second):
    headline(kb, lambda: first(kb.hf), lambda: second(kb.hf))


def test_headline__survives_the_end_of_the_transport_that_read(kb):
    client = kb.client().connect()
    path = kb.new(TEXT)
    handle = handle_of(client.call('read', {'file_path': path}))
    assert client.session not in said(client.call('read', {'file_path': path}))
    assert client.delete().status in (200, 204)
    assert said(kb.edit(path, 'sun', 'moon', handle))


def test_headline__without_the_handle_the_same_pair_is_refused(kb):
    path = kb.new(TEXT)
    kb.read(path)
    reply = kb.agent().call('edit', {'file_path': path, 'old_string': 'sun', 'new_string': 'moon'})
    assert refused(reply) == ("Missing required parameter: session_id. Pass the session value from the read tool's response.")
    assert kb.bytes(path) == TEXT


@pytest.mark.parametrize('kill', [False, True], ids=['stop', 'kill'])
def test_headline__with_a_restart_between(holdfast, tmp_path, kill):
    kb = Knowledge(tmp_path / 'vaults')
    kb.hf = holdfast(settings=kb.settings())
    path, handle = headline(kb, kb.agent, kb.agent, lambda: kb.hf.restart(kill))
    kb.hf.restart(kill)
    assert said(kb.edit(path, 'sun', 'moon', handle))
    assert kb.plain(path).endswith(b'to the {--sun--}{++moon++}.\n\n```\nhello {++there++}\n```\n')


def test_headline__on_postgres(holdfast, tmp_path, cluster):
    kb = Knowledge(tmp_path / 'vaults')
    kb.hf = holdfast(settings=kb.settings(), env={'DATABASE_URL': cluster.database()})
    for agent in (kb.agent, lambda: modern(kb.hf), lambda: bare(kb.hf)):
        headline(kb, agent, agent)
    headline(kb, kb.agent, kb.agent, kb.hf.restart)


def test_headline__on_two_nodes_that_share_the_folder(holdfast, tmp_path, cluster):
    url = cluster.database()
    a, b = Knowledge(tmp_path / 'vaults'), Knowledge(tmp_path / 'vaults')
    a.hf = holdfast(settings=a.settings(), env={'DATABASE_URL': url})
    b.hf = holdfast(settings=b.settings(), env={'DATABASE_URL': url,
                                                **shared_keys(a.hf)})
    path, handle = headline(a, a.agent, b.agent)
    assert said(a.edit(path, 'sun', 'moon', handle))
    path, handle = headline(a, lambda: modern(b.hf), lambda: modern(a.hf))
    said(b.read(path, handle))
    a.hf.kill()
    assert said(b.edit(path, 'the sun', 'a star', handle))


def test_one_handle__edits_two_documents(kb):
    one, two = kb.new('one fish\n'), kb.new('two fish\n')
    handle = handle_of(kb.read(one))
    assert handle_of(kb.read(two, handle)) == handle
    for path, word in ((one, 'one'), (two, 'two')):
        said(kb.edit(path, 'fish', 'birds', handle))
        assert kb.plain(path) == b'%s {--fish--}{++birds++}\n' % word.encode()


def test_read__without_a_handle_begins_another_session_each_time(kb):
    path = kb.new('text\n')
    assert handle_of(kb.read(path)) != handle_of(kb.read(path))
    client = kb.client().connect()  # but for one that keeps its transport
    first = handle_of(client.call('read', {'file_path': path}))
    assert handle_of(client.call('read', {'file_path': path})) == first


def test_documents_by_the_common_endpoint(kb):
    path, agent = kb.new(TEXT), kb.agent(path='/mcp')
    names = [t['name'] for t in kb.client('/mcp').connect().rpc('tools/list').result['tools']]
    assert [n for n in names if n.startswith('docs__')] == ['docs__' + t for t in TOOLS]
    handle = handle_of(agent.call('docs__read', {'file_path': path}))
    said(agent.call('docs__edit', edit_of(path, 'sun', 'moon', handle)))
    assert said(kb.edit(path, 'Plants', 'Trees', handle))  # a handle works on any endpoint
    assert b'{--sun--}{++moon++}' in kb.plain(path)


# What read shows.

def test_read__is_the_text_by_line_numbers_and_the_session_last(kb):
    reply = kb.read(kb.new('hello\nworld'))
    handle = handle_of(reply)
    assert said(reply) == f'     1\thello\n     2\tworld\n\n[session: {handle}]'
    assert reply.result['structuredContent'] == {'session_id': handle, 'revision': 1, 'lines': 2}


def test_read__of_an_empty_document_is_the_session_alone(kb):
    reply = kb.read(kb.new(''))
    assert said(reply) == f'\n\n[session: {handle_of(reply)}]'


def test_read__numbers_have_six_places_and_lines_are_whole(kb):
    long = 'word ' * 5000
    text = body_of(kb.read(kb.new(f'{long}\n' + 'x\n' * 12), limit=11))
    assert text.split('\n')[0] == f'     1\t{long}' and '\n    11\tx' in text


def test_read__ends_with_our_session_line_whatever_the_document_says(kb):
    path = kb.new(f'text\n\n[session: evil]\n\n[session: {NOWHERE}]\n')
    reply = kb.read(path)
    assert handle_of(reply) not in ('evil', NOWHERE)
    assert refused(kb.edit(path, 'text', 'words', 'evil')) == unknown('evil')
    assert refused(kb.edit(path, 'text', 'words', NOWHERE)) == unknown(NOWHERE)


def test_read__of_a_part_says_so_and_where_it_goes_on(kb):
    path = kb.new(''.join(f'line {i}\n' for i in range(1, 2003)))
    text = body_of(kb.read(path))
    assert text.endswith('  2000\tline 2000\n\n[Lines 1 to 2000 of 2002. Read on with offset 2001.]')
    assert body_of(kb.read(path, offset=2001)) == '  2001\tline 2001\n  2002\tline 2002'
    assert body_of(kb.read(path, offset=7, limit=2)) == ('     7\tline 7\n     8\tline 8\n\n'
                                                         '[Lines 7 to 8 of 2002. Read on with offset 9.]')
    assert body_of(kb.read(path, offset=2003)) == '[The document has 2002 lines; read from a smaller offset.]'


@pytest.mark.parametrize('more, text', [
    ({'offset': -1}, 'Parameter offset must be a whole number from 0 to 2147483647.'),
    ({'limit': 0}, 'Parameter limit must be a whole number from 1 to 100000.'),
    ({'limit': 1.5}, 'Parameter limit must be a whole number from 1 to 100000.'),
    ({'limit': '2'}, 'Parameter limit must be a whole number from 1 to 100000.'),
    ({'session_id': 7}, 'Parameter session_id must be a string, not a number.'),
    ({'file_path': None}, 'Missing required parameter: file_path'),
    ({'file_path': 7}, 'Parameter file_path must be a string, not a number.')])
def test_read__of_wrong_arguments_names_them(kb, more, text):
    assert refused(kb.agent().call('read', {'file_path': kb.new('x\n'), **more})) == text


def test_read__shows_the_accepted_view_and_what_is_pending(kb):
    now = int(time.time())
    path = kb.new('Plain\n{--{"author":"Chris\'s AI","time":%d}@@old--}{++{"author":"Chris\'s AI","time":%d}@@new++} end\n'
                  '{++{"author":"Ada","timestamp":%d}@@ Ada\'s++}\n{--bare--}\n{~~a~>b~~}\n' %
                  (now - 620, now - 620, (now - 3 * 3600 - 60) * 1000))
    assert body_of(kb.read(path)) == (
        "     1\tPlain\n     2\tnew end\n     3\t Ada's\n     4\t\n     5\tb\n\n[Pending suggestions]\n"
        "  L2: {--old--}{++new++} (Chris's AI) 10m ago\n  L3: {++ Ada's++} (Ada) 3h ago\n  L4: {--bare--}\n  L5: {--a--}{++b++}")


@pytest.mark.parametrize('words, shown', [(10, ' '.join(f'w{i}' for i in range(10))), (11, 'w0 w1 w2 ... w8 w9 w10')])
def test_read__shortens_a_side_of_more_than_ten_words(kb, words, shown):
    text = ' '.join(f'w{i}' for i in range(words))
    assert body_of(kb.read(kb.new('x {++%s++}\n' % text))).endswith('\n  L1: {++%s++}' % shown)


def test_read__caps_what_is_pending_and_says_so(kb):
    path = kb.new('{++a++} b\n' * 51)
    assert body_of(kb.read(path)).endswith('\n  L50: {++a++}\n  ... and 1 more')


def test_read__shows_a_little_of_huge_words_and_names(kb):
    for text in ('{++%s++}' % ('x' * 2700000), '{++{"author":"%s","time":5}@@x++}' % ('n' * 1000), '{++a%sb++}' % (' ' * 2700000)):
        footer = said(kb.read(kb.new(text + '\n'))).split('\n\n[Pending suggestions]')[1]
        assert len(footer) < 500, footer[:1000]
    for text, shown in (('é' * 40, 'é' * 40), ('é' * 41, 'é' * 40 + '...')):  # 80 bytes of a word
        assert body_of(kb.read(kb.new('{++%s++}\n' % text))).endswith('\n  L1: {++%s++}' % shown)


def test_read__of_many_long_lines_ends_and_the_rest_comes_later(kb):
    path = kb.new(('x' * 60000 + '\n') * 20)
    assert body_of(kb.read(path)).endswith('x\n\n[Lines 1 to 17 of 20. Read on with offset 18.]')
    assert body_of(kb.read(path, offset=18)).endswith('    20\t' + 'x' * 60000)
    assert len(body_of(kb.read(kb.new('x' * (4 << 20))))) < 70000
    assert refused(kb.read(kb.new('x' * ((4 << 20) + 1)))) == (
        'Error: the document is larger than 4194304 bytes; split it into smaller ones')


def test_read__of_odd_bytes(kb):
    path = kb.new(b'nul \x00 esc \x1b[31m \xe2\x80\xa8\nline "quoted\\\n')
    reply = kb.read(path)
    assert body_of(reply) == '     1\tnul \0 esc \x1b[31m \u2028\n     2\tline "quoted\\'
    said(kb.edit(path, 'line', 'row', handle_of(reply)))
    assert kb.plain(path) == b'nul \x00 esc \x1b[31m \xe2\x80\xa8\n{--line--}{++row++} "quoted\\\n'
    assert refused(kb.read(kb.new(b'caf\xe9\n'))) == 'Error: the document is not UTF-8 text; convert it, or leave it alone'


def test_read__shows_highlights_as_text_and_comments_as_written(kb):
    assert body_of(kb.read(kb.new('a {==high==}{>>low<<} b\n'))) == '     1\ta high{>>low<<} b'


def age_text(seconds):
    for unit, letter in ((86400, 'd'), (3600, 'h'), (60, 'm')):
        if seconds >= unit:
            return f'{seconds // unit}{letter} ago'
    return 'just now'


@pytest.mark.parametrize('age', [0, 59, 60, 3599, 3600, 86399, 86400, 86400 * 2 + 5])
def test_read__tells_the_age_of_a_suggestion(kb, age):
    stamp = int(time.time()) - age
    path = kb.new('{++{"author":"A","time":%d}@@x++}\n' % stamp)
    before = int(time.time())
    shown = body_of(kb.read(path)).rpartition('(A) ')[2]
    after = int(time.time())
    # The clock moves while the document is read, so every age that it had meanwhile is right.
    assert shown in {age_text(now - stamp) for now in range(before, after + 1)}


# The session that edit asks for.

@pytest.mark.parametrize('session', ['nonexistent-session-id', 'ses_short', NOWHERE, 'Zeichen €\u202e', 'x' * 300])
def test_edit__with_an_unknown_session_says_the_way_out(kb, session):
    path = kb.new(TEXT)
    kb.read(path)
    assert refused(kb.edit(path, 'sun', 'moon', session)) == unknown(session)
    assert kb.bytes(path) == TEXT


@pytest.mark.parametrize('session', ['', '  '])
def test_edit__with_an_empty_session_has_none(kb, session):
    path = kb.new(TEXT)
    kb.read(path)
    assert refused(kb.edit(path, 'sun', 'moon', session)).startswith('Missing required parameter: session_id.')
    assert kb.bytes(path) == TEXT


def test_edit__with_a_session_that_has_not_read_the_document(kb):
    path, other = kb.new(TEXT), kb.new('other\n')
    for handle in (handle_of(kb.read(other)), said(kb.agent().call('create_session')).split('\n')[0]):
        assert refused(kb.edit(path, 'sun', 'moon', handle)) == MUST_READ % path
    kb.read(path)  # another session's reading licenses nothing
    assert refused(kb.edit(path, 'sun', 'moon', handle)) == MUST_READ % path
    assert kb.bytes(path) == TEXT


def test_edit__the_transport_plays_no_part(kb):
    path = kb.new(TEXT)
    client = kb.client().connect()
    handle_of(client.call('read', {'file_path': path}))
    fresh = said(kb.agent().call('create_session')).split('\n')[0]
    assert refused(client.call('edit', edit_of(path, 'sun', 'moon', fresh))) == MUST_READ % path
    assert 'session_id' in refused(client.call('edit', {'file_path': path, 'old_string': 'sun', 'new_string': 'moon'}))


def test_edit__with_an_ended_session_says_that_it_is_over(kb):
    path = kb.new(TEXT)
    handle = handle_of(kb.read(path))
    assert said(kb.agent().call('end_session', {'session_id': handle})) == f'Session ended: {handle}'
    assert refused(kb.edit(path, 'sun', 'moon', handle)) == expired(handle)
    assert refused(kb.read(path, handle)) == expired(handle, 'read again')
    assert refused(kb.agent().call('end_session', {'session_id': handle})) == expired(handle, 'go on')


def test_create_session__gives_its_id_on_the_first_line_and_signs_with_its_name(kb):
    text = said(kb.agent().call('create_session', {'name': 'Ch"ris\\', 'model': 'm-1'}))
    handle = text.split('\n')[0]
    assert re.fullmatch(r'ses_[A-Za-z0-9_-]{43}', handle) and '24 hours after its last use' in text
    path = kb.new('hello\n')
    assert handle_of(kb.read(path, handle)) == handle
    said(kb.edit(path, 'hello', 'goodbye', handle))
    assert [author for author, _ in META.findall(kb.bytes(path))] == [b"Chris's AI"] * 2
    listed = said(kb.agent().call('list_sessions'))
    assert re.search(rf'^{handle}  active  last used \S+Z  Ch"ris\\$', listed, re.M), listed


@pytest.mark.parametrize('name, author', [('  ', b'AI'), (None, b'AI'), ('José {++x++}', "José ++x++'s AI".encode())])
def test_author__is_the_sessions_name(kb, name, author):
    handle = said(bare(kb.hf).call('create_session', {'name': name} if name else {})).split('\n')[0]
    path = kb.new('hello\n')
    bare(kb.hf).call('read', {'file_path': path, 'session_id': handle})
    said(bare(kb.hf).call('edit', edit_of(path, 'hello', 'goodbye', handle)))
    assert META.search(kb.bytes(path)).group(1) == author


def test_session__is_one_value_in_every_interface(kb):
    path = kb.new('hello\n')
    client = kb.client(modern=True, headers={'mcp-client-id': 'the-same'})
    handle = handle_of(client.call('read', {'file_path': path}))
    assert handle_of(client.call('read', {'file_path': path})) == handle
    said(kb.edit(path, 'hello', 'goodbye', handle))
    shown = kb.hf.get('/api/v1/sessions/' + handle).json()
    assert shown['session_id'] == handle and shown['tool_execution_count'] == 3 and shown['status'] == 'active'
    refused(kb.edit(path, 'hello', 'goodbye', handle))
    assert outcomes(kb.hf, 'edit')[-2:] == ['ok', 'tool_error']


def test_every_tool__that_takes_a_session_refuses_an_unknown_one(kb):
    path = kb.new('text\n')
    calls = {'glob': {'pattern': '*'}, 'grep': {'pattern': 'x'}, 'get_links': {'file_path': path}, 'search': {'query': 'x'},
             'read': {'file_path': path}, 'list_sessions': {}, 'end_session': {}, 'create': {'file_path': 'Lens/n.md', 'content': ''},
             'move': {'file_path': path, 'new_path': 'Lens/n.md'}, 'comment': {'file_path': path, 'quote': 'text', 'comment': 'c'}}
    for tool, arguments in calls.items():
        found = refused(kb.agent().call(tool, {**arguments, 'session_id': NOWHERE}))
        assert found.startswith(unknown(NOWHERE, '')[:-2]), (tool, found)
    assert not os.path.exists(kb.file('Lens/n.md'))


def test_every_tool__names_an_unknown_parameter(kb):
    path = kb.new('text\n')
    handle = handle_of(kb.read(path))
    tools = kb.hf.client('/mcp/docs').rpc('tools/list').result['tools']
    assert all(t['inputSchema']['additionalProperties'] is False for t in tools)
    for tool in tools:
        takes = ', '.join(tool['inputSchema']['properties'])
        named = {'session_id': handle} if 'session_id' in takes else {}
        found = refused(kb.agent().call(tool['name'], {**named, 'olld_string': 'x'}))
        assert found == f"Unknown parameter: olld_string. {tool['name']} takes {takes}."
    reply = kb.agent().call('edit', {**edit_of(path, 'text', 'other', handle), 'replace_all': True})
    assert refused(reply).startswith('Unknown parameter: replace_all.')
    with open(kb.file(path), encoding='utf-8') as file:
        assert file.read() == 'text\n'


# What edit does.

@pytest.mark.parametrize('missing', ['file_path', 'old_string', 'new_string'])
def test_edit__names_a_missing_parameter(kb, missing):
    path = kb.new('hello\n')
    arguments = edit_of(path, 'hello', 'x', handle_of(kb.read(path)))
    del arguments[missing]
    assert refused(kb.agent().call('edit', arguments)) == f'Missing required parameter: {missing}'


@pytest.mark.parametrize('path', ['Lens/None.md', 'Nowhere/None.md', 'None.md', 'Lens/../Lens/x.md', 'Lens', 'Lens/', '', '/etc/passwd',
                                  'Lens/none.txt'])
def test_edit__of_a_document_that_is_not_there(kb, path):
    handle = handle_of(kb.read(kb.new('x\n')))
    assert refused(kb.edit(path, 'a', 'b', handle)) == f'Error: Document not found: {path}'
    assert refused(kb.read(path)) == f'Error: Document not found: {path}'


def test_edit__of_a_text_that_is_not_there_or_there_twice(kb):
    path = kb.new('one two one aaaa\n')
    handle = handle_of(kb.read(path))
    assert refused(kb.edit(path, 'three', 'x', handle)) == f'Error: old_string not found in {path}. Make sure it matches exactly.'
    assert refused(kb.edit(path, 'One', 'x', handle)) == f'Error: old_string not found in {path}. Make sure it matches exactly.'
    assert refused(kb.edit(path, 'one', 'x', handle)) == (
        f'Error: old_string is not unique in {path} (2 occurrences found). Include more surrounding context to make it unique.')
    assert '(3 occurrences found)' in refused(kb.edit(path, 'aa', 'x', handle))  # that overlap, too
    assert refused(kb.edit(path, '', 'x', handle)).startswith('Error: old_string is empty. ')
    assert kb.bytes(path) == b'one two one aaaa\n'


def test_edit__of_nothing_fills_an_empty_document(kb):
    path = kb.new('')
    said(kb.edit(path, '', 'first words', handle_of(kb.read(path))))
    assert kb.plain(path) == b'{++first words++}'


@pytest.mark.parametrize('before, old, new, after', [
    ('hello world', 'hello', 'goodbye', '{--hello--}{++goodbye++} world'),
    ('keep this, drop that.', ', drop that', '', 'keep this{--, drop that--}.'),
    ('one\ntwo\nthree\nfour\n', 'two\nthree', 'zwei\ndrei', 'one\n{--two--}{++zwei++}\n{--three--}{++drei++}\nfour\n'),
    ('a b c', 'a b c', 'a x c', 'a {--b--}{++x++} c'),
    ('Grüße, Welt ✓', 'Welt', 'Wörld', 'Grüße, {--Welt--}{++Wörld++} ✓'),
    ('Hello {--META@@world--}{++META@@earth++} and goodbye', 'earth and', 'mars or', 'Hello {--world and--}{++mars or++} goodbye'),
    ('The {--META@@quick--}{++META@@fast++} fox', 'fast', 'speedy', 'The {--quick--}{++speedy++} fox'),
    ('Hello {--beautiful --}world today.', 'world today', 'earth now', 'Hello {--beautiful --}{--world today--}{++earth now++}.'),
    ('Use `{++x++}` here', 'here', 'there', 'Use `{++x++}` {--here--}{++there++}'),
    ('open {++ end', 'end', 'stop', 'open {++ {--end--}{++stop++}'),
], ids=lambda v: v[:12] if isinstance(v, str) else None)
def test_edit__writes_a_suggestion_and_nothing_else(kb, before, old, new, after):
    path = kb.new(before.replace('META', '{"author":"Bo\'s AI","time":5}'))
    text = said(kb.edit(path, old, new, handle_of(kb.read(path))))
    assert text == f'Edited {path}: replaced {len(old)} characters with CriticMarkup suggestion for human review.'
    assert kb.plain(path).decode() == after
    assert b'{~~' not in kb.bytes(path)


def test_edit__that_changes_nothing_says_so(kb):
    path = kb.new(TEXT)
    assert said(kb.edit(path, 'sun', 'sun', handle_of(kb.read(path)))) == f'No changes needed for {path}'
    assert kb.bytes(path) == TEXT


def test_edit__finds_curly_quotes_by_straight_ones(kb):
    path = kb.new('He said \u201cit\u2019s fine\u201d twice\n')
    said(kb.edit(path, '"it\'s fine"', '"all good"', handle_of(kb.read(path))))
    assert '{--' in kb.plain(path).decode() and 'He said ' in kb.plain(path).decode() and 'all good' in kb.plain(path).decode()
    assert kb.plain(path).startswith(b'He said ') and kb.plain(path).endswith(b' twice\n')


@pytest.mark.parametrize('mark', ['{++x++}', '{--x--}', '{~~a~>b~~}', '{==x==}'])
@pytest.mark.parametrize('where', ['old_string', 'new_string'])
def test_edit__with_markup_of_its_own_is_refused(kb, mark, where):
    path = kb.new('text {++x++}\n')
    arguments = edit_of(path, 'text', 'words', handle_of(kb.read(path)))
    arguments[where] = 'a ' + mark
    assert refused(kb.agent().call('edit', arguments)).startswith(
        f"Error: {where} contains CriticMarkup syntax '{mark[:3]}'. Do not include CriticMarkup in your input")


def test_edit__may_add_a_comment_which_is_signed(kb):
    path = kb.new('a claim\n')
    said(kb.edit(path, 'claim', 'claim{>>source?<<}', handle_of(kb.read(path))))
    assert kb.plain(path) == b'a claim{>>source?<<}\n'
    assert META.search(kb.bytes(path)).group(1) == b'AI'


@pytest.mark.parametrize('comment', ['{>>mine<<}', '{>>{"author":"Ada","time":1700000000}@@mine<<}'])
def test_edit__may_not_touch_a_persons_comment(kb, comment):
    path = kb.new(f'a claim{comment} here\n')
    handle = handle_of(kb.read(path))
    for new in ('a claim here', 'a claim{>>other<<} here'):
        assert refused(kb.edit(path, f'a claim{comment} here', new, handle)).startswith(
            'Error: Cannot remove or modify non-AI comment: ')
    assert kb.bytes(path) == f'a claim{comment} here\n'.encode()
    said(kb.edit(path, 'here', 'there', handle))
    assert comment.encode() in kb.bytes(path)


def test_edit__may_remove_a_comment_of_an_agent(kb):
    path = kb.new('a claim{>>{"author":"Eve\'s AI","time":1700000000}@@note<<} here\n')
    said(kb.edit(path, 'claim{>>{"author":"Eve\'s AI","time":1700000000}@@note<<} here', 'claim here', handle_of(kb.read(path))))
    assert kb.plain(path) == b'a claim here\n'


def test_edit__keeps_crlf_and_the_byte_order_mark(kb):
    path = kb.new(b'\xef\xbb\xbfone\r\ntwo\r\nthree\r\n')
    reply = kb.read(path)
    assert body_of(reply) == '     1\tone\n     2\ttwo\n     3\tthree'
    handle = handle_of(reply)
    said(kb.edit(path, 'two\nthree', 'zwei\ndrei', handle))
    assert kb.plain(path) == b'\xef\xbb\xbfone\r\n{--two--}{++zwei++}\r\n{--three--}{++drei++}\r\n'
    said(kb.edit(path, 'one', 'one\nand a half', handle))
    assert kb.plain(path).startswith(b'\xef\xbb\xbfone{++\r\nand a half++}\r\n')


# What a session has read.

def test_lines__never_read_count_as_unread(kb):
    path = kb.new('one\ntwo\nthree\nfour\n')
    handle = handle_of(kb.read(path, offset=2, limit=2))
    for line, number in (('one', 1), ('four', 4), ('one\ntwo', 1), ('three\nfour', 4)):
        assert refused(kb.edit(path, line, 'x', handle)) == MUST_READ_LINES % (path, number, f'Line {number} has')
    said(kb.edit(path, 'two\nthree', 'zwei\ndrei', handle))
    assert handle_of(kb.read(path, handle, offset=4)) == handle
    said(kb.edit(path, 'four', 'vier', handle))


def test_lines__that_changed_since_must_be_read_again(kb):
    path = kb.new('one\ntwo is here\nthree\n')
    handle = handle_of(kb.read(path))
    kb.write(path, 'one\ntwo was here\nthree\n')
    assert refused(kb.edit(path, 'two was here', 'x', handle)) == CHANGED
    assert refused(kb.edit(path, 'was here\nthree', 'x', handle)) == CHANGED
    kb.read(path, handle)
    said(kb.edit(path, 'was', 'is', handle))
    assert kb.plain(path) == b'one\ntwo {--was--}{++is++} here\nthree\n'


def test_lines__that_were_not_read_are_named_with_the_offset_that_shows_them(kb):
    path = kb.new(''.join(f'line {n}\n' for n in range(1, 3001)))
    handle = handle_of(kb.read(path))
    text = refused(kb.edit(path, 'line 2500', 'x', handle))
    assert text == MUST_READ_LINES % (path, 2500, 'Line 2500 has')
    assert refused(kb.edit(path, 'line 1999\nline 2000\nline 2001\nline 2002\nline 2003', 'x', handle)) == MUST_READ_LINES % (
        path, 2001, 'Lines 2001 to 2003 have')
    assert '  2500\tline 2500\n' in said(kb.read(path, handle, offset=2500))
    said(kb.edit(path, 'line 2500', 'x', handle))
    kb.write(path, kb.bytes(path).replace(b'line 2700', b'line 2.7k').replace(b'line 70\n', b'line seventy\n'))
    assert refused(kb.edit(path, 'line 2.7k', 'x', handle)) == CHANGED + ' Line 2700 has changed: read with offset: 2700.'
    assert refused(kb.edit(path, 'line seventy', 'x', handle)) == CHANGED


@pytest.mark.parametrize('old, new, after', [
    ('\ntwo', '\nzwei', b'one\r\nzwei\r\nthree\r\n'), ('\ntwo', '\n\nzwei', b'one\r\n\r\nzwei\r\nthree\r\n'),
    ('\n', '\n', None), ('one\ntwo', 'one\nzwei\n', b'one\r\nzwei\r\n\r\nthree\r\n'), ('two\nthree\n', '\nx\n', b'one\r\n\r\nx\r\n')])
def test_edit__keeps_crlf_wherever_the_line_end_stands(kb, old, new, after):
    path = kb.new('one\r\ntwo\r\nthree\r\n', 'Desk')
    reply = kb.edit(path, old, new, handle_of(kb.read(path)))
    assert kb.bytes(path) == (after or b'one\r\ntwo\r\nthree\r\n'), reply.text
    assert b'\r\r' not in kb.bytes(path)


def test_edit__ends_new_lines_as_the_document_did_when_only_deletions_have_ends(kb):
    path = kb.new('one{--\r\ntwo\r\n--}')
    said(kb.edit(path, 'one', 'one\nmore', handle_of(kb.read(path))))
    assert b'\r\nmore' in kb.plain(path) and b'\n' not in kb.bytes(path).replace(b'\r\n', b'')


def test_read__shows_a_very_long_line_in_part(kb):
    path = kb.new('first\n' + 'é' * 32768 + '\n' + 'é' * 32768 + 'end\n' + 'x' * 2000000 + ' tail\n')
    text = said(kb.read(path))
    lines = text.split('\n')
    assert lines[1] == '     2\t' + 'é' * 32768
    assert lines[2] == '     3\t' + 'é' * 32768 + ' [3 bytes more]'
    assert lines[3] == '     4\t' + 'x' * 65536 + f' [{2000005 - 65536} bytes more]'
    assert lines[5] == (f'[Line 3 is longer than 65536 bytes and shown in part. To see other parts, call grep with path: "{path}" '
                        'and output_mode: "content".]')
    found = said(kb.agent().call('grep', {'pattern': 'x tail', 'path': path, 'output_mode': 'content'}))
    assert found.endswith('x tail') and len(found) < 3000
    said(kb.edit(path, 'x tail', 'x end', handle_of(kb.read(path))))


def test_a_read_only_file__is_read_and_not_changed(kb):
    path = kb.new('one\n')
    os.chmod(kb.file(path), 0o444)
    handle = handle_of(kb.read(path))
    for reply in (kb.edit(path, 'one', 'two', handle), kb.agent().call('comment', {'file_path': path, 'quote': 'one', 'comment': 'c'})):
        assert refused(reply) == ('Error: the document is read-only (its mode has no write permission); a person makes it writable with '
                                  'chmod u+w')
    assert kb.bytes(path) == b'one\n'
    os.chmod(kb.file(path), 0o644)
    said(kb.edit(path, 'one', 'two', handle))


def test_lines__elsewhere_may_change_and_move(kb):
    path = kb.new('one\ntwo\nthree\n')
    handle = handle_of(kb.read(path))
    kb.write(path, 'zero\nmore\none has changed\ntwo\nthree\n')
    said(kb.edit(path, 'two', 'zwei', handle))
    assert kb.plain(path) == b'zero\nmore\none has changed\n{--two--}{++zwei++}\nthree\n'


def test_lines__of_its_own_edit_count_as_read(kb):
    path = kb.new('one\ntwo\nthree\n')
    handle = handle_of(kb.read(path))
    said(kb.edit(path, 'two', 'zwei\nzweieinhalb', handle))
    said(kb.edit(path, 'zweieinhalb', 'fast drei', handle))
    said(kb.edit(path, 'one', 'eins', handle))
    said(kb.edit(path, 'eins', 'uno', handle))
    assert body_of(kb.read(path)).startswith('     1\tuno\n     2\tzwei\n     3\tfast drei\n     4\tthree\n\n[Pending')


def test_lines__of_another_sessions_edit_are_not(kb):
    path = kb.new('one\ntwo\n')
    mine, other = handle_of(kb.read(path)), handle_of(kb.read(path))
    said(kb.edit(path, 'two', 'zwei', other))
    assert refused(kb.edit(path, 'zwei', 'deux', mine)) == CHANGED
    said(kb.edit(path, 'one', 'un', mine))


def test_lines__are_of_the_document_wherever_it_goes(kb):
    path = kb.new('one\ntwo\n')
    handle, there = handle_of(kb.read(path)), path.replace('.md', '-moved.md')
    assert said(kb.agent().call('move', {'file_path': path, 'new_path': there})) == f'Moved {path} -> {there} (0 links rewritten)'
    said(kb.edit(there, 'two', 'zwei', handle))
    assert refused(kb.edit(path, 'two', 'zwei', handle)) == f'Error: Document not found: {path}'


def test_lines__that_a_person_accepted_are_as_the_agent_left_them(kb):
    path = kb.new('one\ntwo\n')
    handle = handle_of(kb.read(path))
    said(kb.edit(path, 'two', 'zwei', handle))
    assert run(kb.hf, 'docs', 'accept', path, '--all').returncode == 0
    assert kb.bytes(path) == b'one\nzwei\n'
    said(kb.edit(path, 'zwei', 'deux', handle))
    assert run(kb.hf, 'docs', 'reject', path, '--all').returncode == 0
    assert kb.bytes(path) == b'one\nzwei\n'
    said(kb.edit(path, 'zwei', 'dos', handle))  # it has read this one, too
    kinds = [r['kind'] for r in run_json(kb.hf, 'docs', 'log', path)]
    assert kinds == ['suggest', 'reject', 'suggest', 'accept', 'suggest', 'outside']


# What agents are told of the tools.

def seed_schema():
    """edit's definition as the seed has it."""
    return {'name': 'edit',
            'description': 'Edit a document by replacing old_string with new_string. The change is wrapped in CriticMarkup '
                           '({--old--}{++new++}) for human review. You must read the document first.',
            'inputSchema': {
                'type': 'object', 'required': ['file_path', 'old_string', 'new_string', 'session_id'], 'additionalProperties': False,
                'properties': {
                    'file_path': {'type': 'string', 'description': "Path to the document (e.g. 'Lens/Photosynthesis.md')"},
                    'old_string': {'type': 'string', 'description': 'The exact text to find and replace. Must match exactly and be '
                                                                    'unique in the document.'},
                    'new_string': {'type': 'string', 'description': 'The replacement text. Empty string for deletion.'},
                    'session_id': {'type': 'string', 'description': "The session value from the read tool's response. Required to "
                                                                    'verify the document was read before editing.'}}}}


@pytest.mark.parametrize('client', [kept, bare, modern])
def test_tools__are_twelve_in_their_order_with_the_seeds_words(kb, client):
    reply = client(kb.hf).rpc('tools/list')
    tools = {t['name']: t for t in reply.result['tools']}
    assert list(tools) == TOOLS
    assert json.dumps(seed_schema(), ensure_ascii=False, separators=(',', ':'))[:-1] in reply.raw.decode()
    assert tools['read']['description'] == (
        'Reads a document from the knowledge base. Returns content with line numbers (cat -n format). Supports partial reads via '
        f'offset and limit. {LIFETIME} The response includes a [session: ...] value \u2014 pass this to the edit tool\'s session_id '
        'parameter when editing.')
    assert LIFETIME in tools['create_session']['description']
    for name, tool in tools.items():
        schema = tool['inputSchema']
        assert schema['type'] == 'object' and schema['additionalProperties'] is False, name
        assert ('session_id' in schema['required']) == (name in ('edit', 'end_session')), name
        assert ('session_id' in schema['properties']) == (name != 'create_session'), name
        is_reading = name in ('read', 'glob', 'grep', 'get_links', 'list_sessions', 'search')
        assert tool['annotations']['readOnlyHint'] is is_reading, name
