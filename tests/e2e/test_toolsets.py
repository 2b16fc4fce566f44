# SPDX-License-Identifier: Apache-2.0
"""Toolsets of a profile: enabled and disabled by a session, held against calls, durable; and profiles that are static."""
import json
import os
import signal
import sqlite3

import pytest

import commands
import keys
from harness import dump, wait_for
from scripted import Background, get
from test_pins import Shifting

SHAPE = {'tools': [{'name': n, 'inputSchema': {'type': 'object'}} for n in ('get_one', 'get_all', 'set')]}
TOOLSETS = {'read': {'name': 'Reading', 'description': 'Looks at things.', 'tools': ['a__get*']},
            'write': {'tools': ['a__set']}, 'count': {'tools': ['*__counter']}, 'b': {'tools': ['b__echo']}}
META = ['enable_toolset', 'disable_toolset', 'list_toolsets', 'describe_toolset', 'list_tools']
CHANGED = {'jsonrpc': '2.0', 'method': 'notifications/tools/list_changed'}
both_eras = pytest.mark.parametrize('modern', [False, True], ids=['legacy', 'modern'])


def settings(**profiles):
    return {'profiles': {'d': {'mode': 'dynamic', 'toolsets': ['read', 'write', 'count']},
                         's': {'mode': 'static', 'toolsets': ['read']}, **profiles}, 'toolsets': TOOLSETS}


@pytest.fixture
def start(holdfast, scripted):
    def make(more=None, **profiles):
        a, b = scripted('a', shape=SHAPE), scripted('b', http=True)
        hf = holdfast({'a': a.entry, 'b': b.entry}, {**settings(**profiles), **(more or {})})
        hf.a, hf.b = a, b
        return hf
    return make


def names(client):
    return [t['name'] for t in client.rpc('tools/list').result['tools']]


def tell(reply, ok=True):
    """The JSON of a meta-tool's answer, which is the same as text and, when it went well, as structure."""
    assert reply.status == 200 and reply.result.get('isError', False) == (not ok), reply
    told = json.loads(reply.text)
    assert not ok or reply.result['structuredContent'] == told
    return told


def enable(client, name, ok=True, **more):
    return tell(client.call('enable_toolset', {'name': name, **more}), ok)


def disable(client, name, ok=True, **more):
    return tell(client.call('disable_toolset', {'name': name, **more}), ok)


def refused(reply):
    assert reply.result['isError'] is True
    return reply.text


# -- a legacy client, whose list changes

def test_enable__makes_tools_appear_and_disable_takes_them_away(start):
    hf = start()
    client = hf.client('/mcp/p/d')
    assert client.initialize().result['capabilities']['tools'] == {'listChanged': True}
    client.notify('notifications/initialized')
    assert names(client) == META
    assert 'not enabled' in refused(client.call('a__get_one'))
    assert enable(client, 'read') == {'success': True, 'message': "Toolset 'read' enabled successfully. Registered 2 tools."}
    assert enable(client, 'read') == {'success': True, 'message': "Toolset 'read' is already enabled."}
    assert names(client) == [*META, 'a__get_one', 'a__get_all']
    assert client.call('a__get_one', {'text': 'x'}).text == 'x'
    assert disable(client, 'read')['success'] is True
    assert names(client) == META
    assert refused(client.call('a__get_one')) == ("Toolset 'read' is not enabled in this session; call enable_toolset with "
                                                  '{"name":"read"} first, then call this tool again.')
    assert disable(client, 'read')['message'] == "Toolset 'read' is not enabled."
    enable(client, 'read')
    assert client.call('a__get_one', {'text': 'y'}).text == 'y'
    assert [c['params']['arguments']['text'] for c in hf.a.calls()] == ['x', 'y']


def test_enable__tells_that_the_list_has_changed(start):
    hf = start()
    client = hf.client('/mcp/p/d').connect()
    reply = client.call('enable_toolset', {'name': 'read'})
    assert reply.before == [CHANGED] and tell(reply)['success']
    stream = get(client)
    told = client.call('disable_toolset', {'name': 'read'})
    assert told.before == [] and json.loads(stream.message()) == CHANGED
    stream.close()


def test_enabled__toolsets_belong_to_one_session_and_survive_a_crash(start):
    hf = start()
    first, second = hf.client('/mcp/p/d').connect(), hf.client('/mcp/p/d').connect()
    enable(first, 'read')
    enable(first, 'count')
    assert names(second) == META and names(first) == [*META, 'a__counter', 'a__get_one', 'a__get_all', 'b__counter']
    disable(first, 'count')
    hf.restart(kill=True)
    assert names(first) == [*META, 'a__get_one', 'a__get_all'] and names(second) == META
    assert first.call('a__get_one').result and 'not enabled' in refused(second.call('a__get_one'))


def test_a_session_that_enabling_makes__is_logged_measured_and_counted(start):
    hf = start({'session': {'limits': {'max_per_tenant': 1}}})
    enable(hf.client('/mcp/p/d', headers={'mcp-client-id': 'ann'}), 'read')
    hf.wait_log(lambda l: l['msg'] == 'Session created', 'the session in the log')
    created = [l for l in hf.get('/metrics').body.decode().splitlines() if l.startswith('sessions_created_total{')]
    assert [l.split()[-1] for l in created] == ['1'], created
    over = hf.client('/mcp/p/d', headers={'mcp-client-id': 'bob'}).call('enable_toolset', {'name': 'read'})
    assert refused(over) == 'session limit exceeded for tenant' and 'end one' in over.result['content'][1]['text']


def test_two_clients__of_one_client_id_have_their_own(start):
    hf = start()
    first, second = (hf.client('/mcp/p/d', headers={'mcp-client-id': 'ann'}).connect() for _ in range(2))
    enable(first, 'count')
    assert first.call('a__counter').text == '1' and 'not enabled' in refused(second.call('a__counter'))
    enable(second, 'count')
    assert [second.call('a__counter').text, first.call('a__counter').text] == ['1', '2']


def test_enable__at_once_loses_nothing(start):
    hf = start()
    client = hf.client('/mcp/p/d').connect()
    streams = [client.open('tools/call', {'name': 'enable_toolset', 'arguments': {'name': n}}) for n in ('read', 'write', 'count')]
    for stream in streams:
        while stream.message() is not None:
            pass
        stream.close()
    assert len(names(client)) == len(META) + 2 + 1 + 2
    hf.restart(kill=True)
    assert len(names(client)) == len(META) + 2 + 1 + 2


def test_enable__again_is_not_acknowledged_before_it_is_stored(start):
    hf = start()
    client = hf.client('/mcp/p/d').connect()
    client.call('list_toolsets')
    lock = sqlite3.connect(os.path.join(hf.data, 'holdfast.db'), isolation_level=None)
    lock.execute('BEGIN IMMEDIATE')
    first = Background(lambda: enable(client, 'read'))
    wait_for(lambda: len(names(client)) > len(META), 'what is enabled in memory')
    second = Background(lambda: enable(client, 'read'))
    for _ in range(20):
        names(client)
    waited = second.value is None
    lock.execute('ROLLBACK')
    assert waited and first.result()['success'] and second.result()['success']
    hf.restart(kill=True)
    assert names(client) == [*META, 'a__get_one', 'a__get_all']


# -- a modern client, whose list does not

def test_modern__lists_all_and_calls_are_held_against_the_session(start):
    hf = start()
    client = hf.client('/mcp/p/d', modern=True)
    listed = names(client)
    assert listed == [*META, 'a__counter', 'a__get_one', 'a__get_all', 'a__set', 'b__counter']
    text = refused(client.call('a__get_one'))
    assert text.startswith("Toolset 'read' is not enabled in this session; call enable_toolset") and 'session_id' in text
    reply = client.call('enable_toolset', {'name': 'read'})
    handle = reply.result['_meta']['holdfast/session']
    assert reply.result['content'][-1]['text'] == f'[session: {handle}]' and tell(reply)['session_id'] == handle
    assert client.call('a__get_one', {'session_id': handle, 'text': 'x'}).text == 'x'
    assert hf.a.calls()[-1]['params']['arguments'] == {'text': 'x'}
    assert 'not enabled' in refused(client.call('a__get_one'))
    assert 'not enabled' in refused(client.call('a__set', {'session_id': handle}))
    assert names(client) == listed
    hf.restart(kill=True)
    assert client.call('a__get_one', {'session_id': handle}).result
    disable(client, 'read', session_id=handle)
    assert 'not enabled' in refused(client.call('a__get_one', {'session_id': handle}))


def test_modern__session_in_meta_or_client_id_needs_no_handle(start):
    hf = start()
    for client, meta in ((hf.client('/mcp/p/d', modern=True), {'session_id': 'mine'}),
                         (hf.client('/mcp/p/d', modern=True, headers={'mcp-client-id': 'ann'}), None)):
        reply = client.call('enable_toolset', {'name': 'count'}, meta=meta)
        assert tell(reply)['success'] and 'holdfast/session' not in dump(reply.result)
        assert [client.call('a__counter', meta=meta).text for _ in range(2)] == ['1', '2']
    assert 'not enabled' in refused(hf.client('/mcp/p/d', modern=True).call('a__counter', meta={'session_id': 'other'}))


def test_modern__no_handle_is_told_of_a_session_that_is_not_kept(start):
    hf = start()
    reply = hf.client('/mcp/p/d', modern=True).call('disable_toolset', {'name': 'read'})
    assert tell(reply) == {'success': True, 'message': "Toolset 'read' is not enabled."} and 'ses_' not in dump(reply.result)


def test_modern__a_tool_with_a_session_id_of_its_own_says_how_to_name_the_session(holdfast, scripted):
    own = {'name': 'own', 'inputSchema': {'type': 'object', 'properties': {'session_id': {'type': 'string'}}}}
    a = scripted('a', shape={'tools': [own]})
    hf = holdfast({'a': a.entry}, {'profiles': {'d': {'mode': 'dynamic', 'toolsets': ['t']}}, 'toolsets': {'t': {'tools': ['a__own']}}})
    client = hf.client('/mcp/p/d', modern=True)
    handle = tell(client.call('enable_toolset', {'name': 't'}))['session_id']
    assert 'naming a session in _meta.session_id or by the header mcp-client-id' in refused(client.call('a__own', {'session_id': handle}))
    meta = {'session_id': 'mine'}  # as it says
    client.call('enable_toolset', {'name': 't'}, meta=meta)
    assert client.call('a__own', {'session_id': 'theirs'}, meta=meta).text == 'own'
    assert a.calls()[-1]['params']['arguments'] == {'session_id': 'theirs'}


def test_modern__a_tool_of_ours_says_that_its_session_id_names_the_session(holdfast, tmp_path):
    (tmp_path / 'vault').mkdir()
    (tmp_path / 'vault' / 'a.md').write_text('# Plan\n')
    hf = holdfast({}, {'docs': {'Lens': {'path': str(tmp_path / 'vault')}}, 'toolsets': {'kb': {'tools': ['docs__*']}},
                       'profiles': {'d': {'mode': 'dynamic', 'toolsets': ['kb']}}})
    client = hf.client('/mcp/p/d', modern=True)
    read = {'file_path': 'Lens/a.md'}
    assert 'again with the session_id that it returns' in refused(client.call('docs__read', read))
    handle = tell(client.call('enable_toolset', {'name': 'kb'}))['session_id']
    assert '# Plan' in client.call('docs__read', {**read, 'session_id': handle}).text
    named = hf.client('/mcp/p/d').connect()  # its transport does
    assert refused(named.call('docs__read', read)).endswith('first, then call this tool again.')


def test_a_handle_of_another__is_no_session(start):
    hf = start({'auth': 'required'})
    ann, bob = (keys.create(hf, '--role', 'member').client(hf, '/mcp/p/d', modern=True) for _ in range(2))
    handle = ann.call('enable_toolset', {'name': 'read'}).result['_meta']['holdfast/session']
    for tool, arguments in (('enable_toolset', {'name': 'write'}), ('a__get_one', {}), ('list_toolsets', {})):
        assert 'Session not found or expired' in refused(bob.call(tool, {**arguments, 'session_id': handle}))
    assert ann.call('a__get_one', {'session_id': handle}).result


# -- what the other tools say

@both_eras
def test_meta_tools__say_what_there_is(start, modern):
    hf = start()
    client = hf.client('/mcp/p/d', modern=modern, headers={'mcp-client-id': 'ann'})
    if not modern:
        client.connect()
    toolsets = tell(client.call('list_toolsets'))['toolsets']
    assert [(t['key'], t['active']) for t in toolsets] == [('read', False), ('write', False), ('count', False)]
    assert toolsets[0]['definition'] == {'name': 'Reading', 'description': 'Looks at things.'}
    enable(client, 'read')
    assert tell(client.call('describe_toolset', {'name': 'read'})) == {
        'key': 'read', 'active': True, 'definition': {'name': 'Reading', 'description': 'Looks at things.'}, 'tools': ['a__get_one', 'a__get_all']}
    assert tell(client.call('list_tools')) == {'tools': ['a__get_one', 'a__get_all'], 'toolsetToTools': {'read': ['a__get_one', 'a__get_all']}}
    missing = {'success': False, 'message': "Toolset 'nope' not found. Available toolsets: read, write, count"}
    for tool in ('enable_toolset', 'disable_toolset', 'describe_toolset'):
        assert tell(client.call(tool, {'name': 'nope'}), ok=False) == missing
        assert '"name" must be' in tell(client.call(tool, {'name': 3}), ok=False)['message']
    assert tell(client.call('enable_toolset', {'name': 'b'}), ok=False)['message'].startswith("Toolset 'b' not found")


def test_enable__says_which_servers_are_unavailable(holdfast, scripted):
    a = scripted('a', shape=SHAPE)
    hf = holdfast({'a': a.entry, 'gone': {'command': '/nonexistent/server'}},
                  {'profiles': {'d': {'mode': 'dynamic', 'toolsets': ['both', 'a']}},
                   'toolsets': {'both': {'tools': ['a__set', 'gone__*']}, 'a': {'tools': ['a__get*']}}})
    client = hf.client('/mcp/p/d')
    assert 'list_toolsets' in client.connect().initialize().result['instructions']
    assert tell(client.call('describe_toolset', {'name': 'both'}))['unavailable'] == ['gone']
    told = enable(client, 'both')
    assert told['unavailable'] == ['gone'] and told['message'].startswith("Toolset 'both' enabled successfully. Registered 1 tools. The others")
    assert 'unavailable' not in enable(client, 'a') and 'unavailable' not in tell(client.call('describe_toolset', {'name': 'a'}))


def test_policy__limits_allows_and_denies(start):
    hf = start(d={'mode': 'dynamic', 'toolsets': ['read', 'write', 'count', 'b'], 'policy': {'max_active': 1, 'allow': ['read', 'count', 'b'], 'deny': ['b']}})
    client = hf.client('/mcp/p/d').connect()
    assert enable(client, 'write', ok=False)['message'] == "Toolset 'write' is not allowed by policy."
    assert enable(client, 'b', ok=False)['message'] == "Toolset 'b' is denied by policy."
    assert enable(client, 'read')['success']
    assert enable(client, 'count', ok=False)['message'] == 'Activation exceeds maxActiveToolsets (1).'
    disable(client, 'read')
    assert enable(client, 'count')['success']
    modern = hf.client('/mcp/p/d', modern=True)
    assert 'a__set' not in names(modern) and 'b__echo' not in names(modern)
    assert 'Unknown tool' in modern.call('a__set').error['message']


def test_static__has_its_tools_and_list_tools(start):
    hf = start()
    for modern in (False, True):
        client = hf.client('/mcp/p/s', modern=modern)
        if not modern:
            client.connect()
        assert names(client) == ['list_tools', 'a__get_one', 'a__get_all']
        assert tell(client.call('list_tools'))['toolsetToTools'] == {'read': ['a__get_one', 'a__get_all']}
        assert client.call('a__get_one', {'text': 'x'}).text == 'x'
        assert 'Unknown tool' in client.call('a__set').error['message']
        assert 'Unknown tool' in client.call('enable_toolset', {'name': 'read'}).error['message']


# -- permissions

def test_scopes__hide_toolsets_and_tools(start):
    hf = start(d={'mode': 'dynamic', 'toolsets': ['read', 'write', 'b']})
    key = keys.create(hf, '--role', 'member', '--server', 'a', '--tool', 'a__get_one')
    client = key.client(hf, '/mcp/p/d').connect()
    assert b'"b' not in client.call('list_toolsets').raw
    assert enable(client, 'b', ok=False)['message'] == "Toolset 'b' not found. Available toolsets: read, write"
    assert enable(client, 'read')['message'].endswith('Registered 1 tools.')
    assert names(client) == [*META, 'a__get_one']
    assert 'Unknown tool' in client.call('a__get_all').error['message']


def test_client_id__narrows_and_a_change_holds_at_the_next_call(start):
    profile = {'mode': 'dynamic', 'toolsets': ['read', 'write'], 'clients': {'ann': {'toolsets': ['read', 'write']}, '*': {'toolsets': ['read']}}}
    hf = start(d=profile)
    ann, other = (hf.client('/mcp/p/d', headers=h).connect() for h in ({'mcp-client-id': 'ann'}, {}))
    assert enable(ann, 'write')['success']
    assert ann.call('a__set').result
    assert enable(other, 'write', ok=False)['message'] == "Toolset 'write' not found. Available toolsets: read"
    assert b'a__set' not in hf.client('/mcp/p/d', modern=True).rpc('tools/list').raw
    narrowed = {**profile, 'clients': {'*': {'toolsets': ['read']}}}
    hf.write_config({'mcpServers': {'a': hf.a.entry, 'b': hf.b.entry}, 'holdfast': settings(d=narrowed)})
    hf.process.send_signal(signal.SIGHUP)
    wait_for(lambda: names(ann) == META, 'the narrower profile')
    assert 'Unknown tool' in ann.call('a__set').error['message']
    hf.write_config({'mcpServers': {'a': hf.a.entry, 'b': hf.b.entry}, 'holdfast': settings(d=profile)})
    hf.process.send_signal(signal.SIGHUP)
    wait_for(lambda: 'a__set' in names(ann), 'the old profile')
    assert ann.call('a__set').result


@pytest.mark.parametrize('mode', ['static', 'dynamic', 'search'])
def test_header__permits_from_a_trusted_proxy_only(start, mode):
    profile = {'mode': mode, 'toolsets': ['read', 'write'], 'permissions': 'proxy'}

    def seen(hf, value):
        client = hf.client('/mcp/p/d', modern=True, headers={'mcp-toolset-permissions': value} if value is not None else {})
        if mode == 'search':
            return [t['name'].replace(':', '__') for t in client.call('find', {}).result['structuredContent']['tools']]
        return [n for n in names(client) if n.startswith('a__')]

    trusting, plain = start({'trusted_proxies': ['127.0.0.1']}, d=profile), start(d=profile)
    assert seen(trusting, ' read , nope') == ['a__get_one', 'a__get_all']
    assert sorted(seen(trusting, 'write,read')) == ['a__get_all', 'a__get_one', 'a__set']
    assert seen(trusting, None) == [] and seen(trusting, '') == [] and seen(trusting, 'b') == []
    assert seen(plain, 'read,write') == []
    client = trusting.client('/mcp/p/d', headers={'mcp-toolset-permissions': 'read'}).connect()
    if mode == 'dynamic':
        assert enable(client, 'write', ok=False)['message'] == "Toolset 'write' not found. Available toolsets: read"
        enable(client, 'read')
    assert client.call('a__get_one').result and 'Unknown tool' in client.call('a__set').error['message']
    client.fixed['mcp-toolset-permissions'] = 'write'
    assert 'Unknown tool' in client.call('a__get_one').error['message']  # at the next call


def test_key__revoked_mid_session_is_refused_at_the_next_call(start):
    hf = start()
    key = keys.create(hf, '--role', 'member')
    client = key.client(hf, '/mcp/p/d').connect()
    enable(client, 'read')
    assert client.call('a__get_one').result
    keys.revoke(hf, key)
    assert client.call('a__get_one').status == 401


def test_changes__are_in_the_audit(start):
    hf = start()
    client = hf.client('/mcp/p/d').connect()
    enable(client, 'read')
    wait_for(lambda: any(e.get('tool') == 'enable_toolset' for e in commands.events(hf)), 'the event')
    assert commands.run(hf, 'audit', 'verify').returncode == 0


def test_lists__of_very_many_tools_end_and_say_so(holdfast, tmp_path):
    server = Shifting(tmp_path, [{'name': f'{i:04d}' + 'x' * 440, 'inputSchema': {'type': 'object'}} for i in range(2000)])
    many = [f't{i}' for i in range(10)]
    hf = holdfast({'files': server.entry}, {'profiles': {'s': {'mode': 'static', 'toolsets': many}, 'd': {'mode': 'dynamic', 'toolsets': many}},
                                            'toolsets': {k: {'tools': ['files__*']} for k in many}})
    client = hf.client('/mcp/p/s').connect()
    told = tell(client.call('list_tools'))
    assert told['more'] is True and len(told['tools']) == 2000 and len(told['toolsetToTools']['t0']) == 2000 and told['toolsetToTools']['t9'] == []
    assert 'more' not in tell(hf.client('/mcp/p/d').connect().call('describe_toolset', {'name': 't9'}))


def test_auditor__looks_at_toolsets_and_changes_none(start):
    hf = start()
    key = keys.create(hf, '--role', 'auditor')
    client = key.client(hf, '/mcp/p/d').connect()
    assert [t['key'] for t in tell(client.call('list_toolsets'))['toolsets']] == ['read', 'write', 'count']
    for tool in ('enable_toolset', 'disable_toolset'):
        assert client.call(tool, {'name': 'read'}).status == 403
    assert names(client) == META
