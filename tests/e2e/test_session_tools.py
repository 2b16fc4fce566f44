# SPDX-License-Identifier: Apache-2.0
"""A server may choose the tools of a session by the capabilities that its client declared, and not say so.  The list
from before the first call is the one the probe got; the session's own link corrects it."""
import json

import pytest

from harness import wait_for
from scripted import get, note, open_gate, script
from test_stdio import Pipe

NEEDS = {'confirm': 'elicitation', 'summarize': 'sampling'}
SHAPE = {'needs': NEEDS, 'tools': [{'name': n, 'inputSchema': {'type': 'object'}} for n in NEEDS]}
ALWAYS = ['counter', 'echo', 'script']
CHANGED = 'notifications/tools/list_changed'


@pytest.fixture(params=['pipe', 'http'])
def world(request, holdfast, scripted):
    server = scripted('choosy', http=request.param == 'http', shape=SHAPE)
    hf = holdfast({'choosy': server.entry})
    hf.server = server
    return hf.wait_asked('choosy')


def tools(client, prefix=''):
    listed = [t['name'] for t in client.rpc('tools/list').result['tools']]
    return sorted(n.removeprefix(prefix) for n in listed if n.startswith(prefix))


def reads_of(server):
    return len(server.of('tools/list'))


def reads(hf):
    return reads_of(hf.server)


def connect(hf, path='/mcp/choosy', **capabilities):
    client = hf.client(path)
    assert client.initialize(capabilities=capabilities).status == 200
    client.notify('notifications/initialized')
    return client


@pytest.mark.parametrize('path,prefix', [('/mcp/choosy', ''), ('/mcp', 'choosy__')])
def test_session_tools__a_client_that_is_offered_fewer_is_told_once_and_lists_them(world, path, prefix):
    client = connect(world, path, elicitation={})
    stream = get(client)
    assert tools(client, prefix) == sorted([*ALWAYS, *NEEDS])
    assert client.call(prefix + 'counter').text == '1'
    assert json.loads(stream.message())['method'] == CHANGED
    assert tools(client, prefix) == sorted([*ALWAYS, 'confirm'])
    before = reads(world)
    assert client.call(prefix + 'counter').text == '2'
    assert tools(client, prefix) == sorted([*ALWAYS, 'confirm']) and reads(world) == before
    other = connect(world, path, elicitation={}, sampling={})
    assert tools(other, prefix) == sorted([*ALWAYS, *NEEDS]), 'the list of one session is not that of another'
    stream.close()


def test_session_tools__a_client_without_a_stream_is_told_with_its_call(world):
    client, gate = connect(world), world.server.gate()
    with script(client, {'wait': gate}, {'result': '{"content":[]}'}) as call:
        assert call.next()['method'] == CHANGED
        open_gate(gate)
        assert [m['result'] for m in call.rest()] == [{'content': []}]
    assert tools(client) == ALWAYS


def test_session_tools__capabilities_that_change_nothing_are_read_once(world):
    for count in (1, 2, 3):
        client = connect(world, elicitation={}, sampling={}, experimental={'x': {}})
        stream = get(client)
        assert client.call('counter').text == '1'
        wait_for(lambda: reads(world) == 2, 'the first session to read')  # after the probe
        script(client, {'get': note('notifications/prompts/list_changed')}).rest()
        assert json.loads(stream.message())['method'] == 'notifications/prompts/list_changed', f'session {count}'
        assert tools(client) == sorted([*ALWAYS, *NEEDS]) and reads(world) == 2
        stream.close()


def test_session_tools__a_pipe_is_told(world):
    pipe = Pipe(world, server='choosy').start_reading()
    pipe.request('initialize', {'protocolVersion': '2025-11-25', 'capabilities': {}, 'clientInfo': {'name': 'p', 'version': '1'}}, ident='i')
    assert pipe.answer('i')['result']
    pipe.request('tools/call', {'name': 'counter', 'arguments': {}}, ident='c')
    assert pipe.answer('c')['result']['content'][0]['text'] == '1'
    assert pipe.answer(CHANGED)
    pipe.request('tools/list', {}, ident='l')
    assert sorted(t['name'] for t in pipe.answer('l')['result']['tools']) == ALWAYS
    assert pipe.close()[0] == 0


def test_session_tools__a_session_that_its_server_forgot_loses_no_call_to_the_list(holdfast, scripted):
    server = scripted('choosy', http=True, shape=SHAPE)
    hf = holdfast({'choosy': server.entry})
    client = connect(hf)
    assert client.call('counter').text == '1'

    def posts():
        return [dict((n.lower(), v) for n, v in h['headers']).get('mcp-session-id') for h in server.heads() if h['line'].startswith('POST ')]

    old = posts()[-1]
    hf.kill()
    server.stop()
    server.start()
    before = posts().count(old)
    hf.start()
    assert client.call('counter').text == '1'
    assert posts().count(old) == before + 1, 'only the call asks whether the session is still known'
    wait_for(lambda: tools(client) == ALWAYS, 'the list of the new session')


def test_session_tools__sixteen_kinds_of_clients_are_remembered_then_the_oldest_is_read_again(holdfast, scripted):
    server = scripted('choosy', http=True, shape=SHAPE)
    hf = holdfast({'choosy': server.entry}).wait_asked('choosy')
    before = reads_of(server)

    def session(kind, expected):
        client = connect(hf, elicitation={}, sampling={}, experimental={f'kind-{kind}': {}})
        assert [client.call('counter').text for _ in '12'] == ['1', '2']
        wait_for(lambda: reads_of(server) >= before + expected, f'{expected} readings')
        assert reads_of(server) == before + expected, f'kind {kind}'

    for kind in range(16):
        session(kind, kind + 1)
    session(0, 16)
    session(16, 17)
    session(1, 17)
    session(0, 18)
