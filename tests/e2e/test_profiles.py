# SPDX-License-Identifier: Apache-2.0
"""/mcp/p/{profile}: the servers and tools that a profile selects, and nothing else, in lists and calls of both eras."""
import json
import signal
import subprocess

import pytest

import commands
import harness
import keys
from harness import dump

TOOL = {'type': 'object'}
SHAPE = {'tools': [{'name': n, 'inputSchema': TOOL} for n in ('get_one', 'get_all', 'set')],
         'prompts': [{'name': 'greet'}], 'resources': [{'uri': 'a://1', 'name': 'one'}]}
OTHER = {'prompts': [{'name': 'hidden'}], 'resources': [{'uri': 'b://1', 'name': 'two'}], 'instructions': 'Words of b.'}
SETTINGS = {
    'profiles': {
        'some': {'servers': ['a'], 'toolsets': ['read']},
        'both': {'servers': ['a', 'b']},
        'all': {},
        'strict': {'servers': ['a'], 'client_id': 'required'},
    },
    'toolsets': {'read': {'tools': ['a__get*', 'b__*']}},
}
UNKNOWN = ('Unknown tool: there is none of this name; tools/list names them. '
           'If you expect it, your key may not include it: ask an administrator')
MISSING = 'Missing required mcp-client-id header'
EMPTY = 'mcp-client-id header must not be empty'


@pytest.fixture
def world(holdfast, scripted):
    a, b = scripted('a', shape=SHAPE), scripted('b', http=True, shape=OTHER)
    hf = holdfast({'a': a.entry, 'b': b.entry}, SETTINGS)
    hf.a, hf.b = a, b
    return hf


def client_of(hf, path, modern, **options):
    client = hf.client(path, modern=modern, **options)
    return client if modern else client.connect()


def names(client, method='tools/list', key='tools', name='name'):
    return [t[name] for t in client.rpc(method).result[key]]


both_eras = pytest.mark.parametrize('modern', [False, True], ids=['legacy', 'modern'])


@both_eras
def test_lists__have_what_the_profile_has(world, modern):
    some = client_of(world, '/mcp/p/some', modern)
    assert names(some) == ['a__get_one', 'a__get_all']
    assert names(some, 'prompts/list', 'prompts') == ['a__greet']
    assert names(some, 'resources/list', 'resources', 'uri') == ['a://1']
    everything = client_of(world, '/mcp', modern)
    assert names(client_of(world, '/mcp/p/all', modern)) == names(everything)
    assert names(client_of(world, '/mcp/p/both', modern)) == [n for n in names(everything) if not n.startswith('session__')]


@both_eras
def test_calls__pass_the_same_gate_as_lists(world, modern):
    some = client_of(world, '/mcp/p/some', modern)
    for name in names(some):
        assert some.call(name, {'text': 'hi'}).text == 'hi'
    for name in ('a__set', 'a__script', 'a__no_such'):
        assert some.call(name).error == {'code': -32602, 'message': UNKNOWN}
    outside, absent = some.call('b__counter').error, some.call('nobody__counter').error
    assert outside == absent and 'Unknown tool' in outside['message']
    assert [c['params']['name'] for c in world.a.calls()] == ['get_one', 'get_all']
    assert not world.b.calls()


@both_eras
def test_prompts_and_resources__of_other_servers_are_not_there(world, modern):
    some = client_of(world, '/mcp/p/some', modern)
    assert some.rpc('prompts/get', {'name': 'a__greet'}).result['messages']
    assert some.rpc('prompts/get', {'name': 'b__hidden'}).error == some.rpc('prompts/get', {'name': 'x__hidden'}).error
    assert not world.b.calls('prompts/get') and not world.b.calls('resources/read')


def test_initialize__speaks_of_the_profiles_servers_only(world):
    world.wait_asked('a', 'b')
    assert b'Words of b' not in world.client('/mcp/p/some').initialize().raw
    assert b'Words of b' in world.client('/mcp/p/both').initialize().raw


@both_eras
def test_unknown__profile_is_no_path_of_ours(world, modern):
    reply = world.client('/mcp/p/nobody', modern=modern).rpc('tools/list', ident=9)
    assert reply.status == 404 and reply.json['id'] == 9 and reply.code == -32000
    assert 'No profile of this name' in reply.error['message']
    assert world.request('PUT', '/mcp/p/some', {}).status == 405


def test_unknown__profile_is_not_told_from_another_without_a_credential(holdfast, scripted):
    hf = holdfast({'a': scripted('a').entry}, {**SETTINGS, 'auth': 'required', 'path_keys': True})
    some, nobody = (hf.client(f'/mcp/p/{name}').rpc('tools/list', ident=1) for name in ('some', 'nobody'))
    assert some.status == nobody.status == 401 and some.raw == nobody.raw
    key = keys.create(hf, '--role', 'member')
    client = key.client(hf, '/mcp/p/both').connect()
    assert names(client) == ['a__script', 'a__echo', 'a__counter']
    by_path = hf.client(f'/mcp/k/{key.text}/p/both')
    by_path.session, by_path.version = client.session, client.version  # the same endpoint
    assert by_path.call('a__counter').text == '1' and client.call('a__counter').text == '2'


def test_a_transport__works_on_its_own_profile_only(world):
    client = world.client('/mcp/p/both').connect()
    assert [client.call('a__counter').text for _ in range(3)] == ['1', '2', '3']
    for path in ('/mcp', '/mcp/a', '/mcp/p/all'):
        client.path = path
        assert client.call('a__counter').error['message'] == 'Session not found or expired'
    client.path = '/mcp/p/both'
    assert client.call('a__counter').text == '4'


def test_scopes__narrow_a_profile_further(world):
    key = keys.create(world, '--role', 'member', '--tool', 'a__get_one', '--tool', 'b__*')
    client = key.client(world, '/mcp/p/some').connect()
    assert names(client) == ['a__get_one']
    assert client.call('a__get_all').error == {'code': -32602, 'message': UNKNOWN}


# -- the second request of a client that does not name itself, and strict profiles

def test_anonymous__second_and_third_request_succeed(world):
    client = world.client('/mcp/p/both').connect()
    assert client.rpc('tools/list').status == 200
    assert [client.call('a__counter').text for _ in range(2)] == ['1', '2']
    assert client.delete().status in (200, 204)
    gone = client.rpc('tools/list', ident=4)
    assert gone.status == 404 and gone.json['id'] == 4 and gone.error['message'] == 'Session not found or expired'


@both_eras
@pytest.mark.parametrize('headers,text', [({}, MISSING), ({'mcp-client-id': ' '}, EMPTY)], ids=['missing', 'blank'])
def test_strict__profile_wants_a_client_id(world, headers, text, modern):
    client = world.client('/mcp/p/strict', modern=modern, headers=headers)
    for method in ('tools/list', *(() if modern else ('initialize',))):
        reply = client.rpc(method, {}, ident='x')
        assert reply.status == 400
        assert json.loads(reply.raw) == {'jsonrpc': '2.0', 'id': 'x', 'error': {'code': -32600, 'message': text}}
    for verb in ('GET', 'DELETE'):
        reply = world.request(verb, '/mcp/p/strict', {'Accept': 'text/event-stream', **headers})
        assert reply.status == 400 and reply.json() == {'jsonrpc': '2.0', 'id': None, 'error': {'code': -32600, 'message': text}}
    assert world.client('/mcp/p/some', modern=modern).rpc('tools/list').status == 200


@both_eras
def test_strict__serves_whoever_names_itself(world, modern):
    client = client_of(world, '/mcp/p/strict', modern, headers={'mcp-client-id': 'ann'})
    assert [client.call('a__counter').text for _ in range(2)] == ['1', '2']


def test_two_windows__of_one_client_id_live_side_by_side(world):
    first, second = (client_of(world, '/mcp/p/strict', False, headers={'mcp-client-id': 'ann'}) for _ in range(2))
    assert [first.call('a__counter').text, second.call('a__counter').text, first.call('a__counter').text] == ['1', '1', '2']
    assert first.delete().status in (200, 204)
    assert second.call('a__counter').text == '2' and first.call('a__counter').status == 404


# -- pipes and reload

def stdio(hf, lines, *args):
    command = [harness.BINARY, 'stdio', '--data', hf.data, '--config', hf.config_file, *args]
    return subprocess.run(command, input=lines.encode(), env=commands.command_env(hf), cwd=hf.folder, capture_output=True,
                          timeout=harness.DEADLINE_S, check=False)


@pytest.mark.parametrize('beside', [False, True], ids=['alone', 'beside'])
def test_stdio__answers_a_line_for_a_profile_and_exits(holdfast, scripted, beside):
    a = scripted('a', shape=SHAPE)
    hf = holdfast({'a': a.entry}, SETTINGS, start=beside)
    done = stdio(hf, dump({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {
        'name': 'a__get_one', 'arguments': {'text': 'hi'}, '_meta': {'session_id': 'test123'}}}) + '\n', '--profile', 'some')
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)['result']['content'][0]['text'] == 'hi'
    assert a.calls()[0]['params']['_meta'] == {'session_id': 'test123'}
    done = stdio(hf, dump({'jsonrpc': '2.0', 'id': 2, 'method': 'tools/call', 'params': {'name': 'a__set'}}) + '\n', '--profile', 'some')
    assert json.loads(done.stdout)['error']['message'] == UNKNOWN
    done = stdio(hf, '', '--profile', 'nobody')
    assert done.returncode == (1 if beside else 7) and b'no profile' in done.stderr and not done.stdout


def test_reload__changes_what_a_profile_shows_at_the_next_request(world):
    client = world.client('/mcp/p/some').connect()
    assert client.call('a__get_all').result
    settings = {**SETTINGS, 'toolsets': {'read': {'tools': ['a__get_one']}}}
    world.write_config({'mcpServers': {'a': world.a.entry, 'b': world.b.entry}, 'holdfast': settings})
    world.process.send_signal(signal.SIGHUP)
    harness.wait_for(lambda: names(client) == ['a__get_one'], 'the new profile')
    assert client.call('a__get_all').error['message'] == UNKNOWN
    assert client.call('a__get_one').result
