# SPDX-License-Identifier: Apache-2.0
"""What legacy clients do beside calling tools: subscriptions to resources, log levels, roots, cancellation; and
what reading leaves in the audit."""
import itertools
import json

import pytest

import harness
from commands import events
from harness import wait_for
from scripted import Script, get, note, open_gate, script

SHAPE = {'resources': [{'uri': f'doc://{n}', 'name': n} for n in 'ab'], 'prompts': [{'name': 'greet'}],
         'templates': [{'uriTemplate': 'made://{id}', 'name': 'made'}]}
LEVELS = ('debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency')


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp('resources')
    servers = {
        'pipe': Script(folder, 'pipe', shape=SHAPE), 'web': Script(folder, 'web', http=True, shape=SHAPE),
        'new': Script(folder, 'new', http=True, era='modern', shape=SHAPE),
        'plain': Script(folder, 'plain', http=True, shape={'capabilities': {'tools': {}}}),
    }
    one = harness.Holdfast(folder, {'mcpServers': {k: s.entry for k, s in servers.items()}, 'holdfast': {}}).start()
    one.servers = servers
    yield one
    try:
        one.close()
    finally:
        for server in servers.values():
            server.stop()


@pytest.fixture(params=['pipe', 'web'])
def server(request, world):
    return world.servers[request.param]


def connected(world, server, **options):
    return world.client('/mcp/' + server.name, first_id=1).connect(**options)


def updated(uri):
    return note('notifications/resources/updated', uri=uri)


def quiet(stream):
    """Nothing came, and what comes next is this: there is no other way to see silence."""
    stream.connection.socket.settimeout(0.15)
    with pytest.raises(TimeoutError):
        stream.message()


# -- subscriptions

def test_subscribe__reaches_the_server_and_its_updates_this_session_alone(world, server):
    client, other = connected(world, server), connected(world, server)
    mine, theirs = get(client), get(other)
    count = len(server.calls('resources/subscribe'))
    for uri in ('doc://a', 'doc://never-listed', 'made://\u00e9'):
        assert client.rpc('resources/subscribe', {'uri': uri, '_meta': {'x': 1}}).result == {}
    assert [c['params'] for c in server.calls('resources/subscribe')[count:]] == [
        {'uri': u, '_meta': {'x': 1}} for u in ('doc://a', 'doc://never-listed', 'made://\u00e9')]
    other.call('counter')
    script(client, {'get': updated('doc://a')}).rest()
    assert json.loads(mine.message()) == updated('doc://a')
    gate = server.gate()
    script(client, {'later': [{'wait': gate}, {'get': updated('doc://b')}]}).rest()
    open_gate(gate)  # and outside of any call
    assert json.loads(mine.message()) == updated('doc://b')
    assert client.rpc('resources/unsubscribe', {'uri': 'doc://a'}).result == {}
    assert server.calls('resources/unsubscribe')[-1]['params'] == {'uri': 'doc://a'}
    quiet(theirs)
    mine.close()
    theirs.close()


def test_subscribe__uses_the_one_child_of_its_session(world):
    server = world.servers['pipe']
    before = len(server.starts())
    client = connected(world, server)
    assert client.rpc('resources/subscribe', {'uri': 'doc://a'}).result == {}
    assert client.call('counter').text == '1'
    assert client.rpc('resources/read', {'uri': 'doc://a'}).result['contents'][0]['text'] == 'pipe'
    assert client.call('counter').text == '2'
    assert len(server.starts()) == before + 1


def test_subscribe__leaves_no_row_in_the_audit(world, server):
    client = connected(world, server)
    client.call('echo')
    last = events(world, bodies=False)[-1]['id']
    client.rpc('resources/subscribe', {'uri': 'doc://a'})
    client.rpc('resources/unsubscribe', {'uri': 'doc://a'})
    client.rpc('tools/list')
    client.rpc('ping')
    client.call('echo')
    assert {e['method'] for e in events(world, after=last, bodies=False) if e.get('method')} == {'tools/call'}


def test_subscribe__where_it_cannot_be_is_refused_in_words(world):
    client = connected(world, world.servers['new'])
    reply = client.rpc('resources/subscribe', {'uri': 'doc://a'})
    assert reply.status == 200 and reply.code == -32601 and '2026-07-28' in reply.error['message']
    client = connected(world, world.servers['plain'])
    for method in ('resources/subscribe', 'resources/read', 'resources/list', 'prompts/list', 'logging/setLevel', 'completion/complete'):
        reply = client.rpc(method, {'uri': 'doc://a', 'level': 'info', 'ref': {'type': 'ref/prompt', 'name': 'x'}})
        assert reply.status == 200 and reply.code == -32601 and 'this server has no' in reply.error['message'], method
    client = connected(world, world.servers['pipe'])
    for params in (None, {}, {'uri': 5}, {'uri': ''}, {'uri': None}):
        assert client.rpc('resources/subscribe', params).code == -32602
    modern = world.client('/mcp/pipe', modern=True).rpc('resources/subscribe', {'uri': 'doc://a'})
    assert modern.status == 404 and modern.code == -32601
    for uri, code in (('doc://' + 'x' * (2048 - 6), None), ('doc://' + 'x' * (2049 - 6), -32602)):
        reply = client.rpc('resources/subscribe', {'uri': uri})
        assert reply.json.get('error', {}).get('code') == code


# -- log levels

def test_log_level__is_checked_remembered_and_told_before_the_first_call(world, server):
    client = connected(world, server)
    for bad in ({}, None, {'level': 'loud'}, {'level': 'INFO'}, {'level': 5}, {'level': ''}):
        assert client.rpc('logging/setLevel', bad).code == -32602
    before = len(server.calls('logging/setLevel'))
    for level in LEVELS:
        assert client.rpc('logging/setLevel', {'level': level}).result == {}
    assert client.rpc('logging/setLevel', {'level': 'warning'}).result == {}
    assert len(server.calls('logging/setLevel')) == before  # nobody to tell yet, and no child was started for it
    client.call('echo', {'text': 'first'})
    told = [json.loads(m) for m in server.messages() if b'logging/setLevel' in m][before:]
    assert [t['params'] for t in told] == [{'level': 'warning'}]
    order = [json.loads(m).get('method') for m in server.messages()]
    assert [m for m in order if m in ('logging/setLevel', 'tools/call')][-2:] == ['logging/setLevel', 'tools/call']
    client.call('echo', {'text': 'second'})
    assert len(server.calls('logging/setLevel')) == before + 1  # once is enough
    client.rpc('logging/setLevel', {'level': 'debug'})
    client.call('echo', {'text': 'third'})
    wait_for(lambda: len(server.calls('logging/setLevel')) == before + 2, 'the new level')
    assert server.calls('logging/setLevel')[-1]['params'] == {'level': 'debug'}


def test_log_level__that_is_never_taken_delays_its_call_and_no_more(holdfast, scripted, tmp_path):
    gate = str(tmp_path / 'gate')
    server = scripted('s', http=True, timeout=1, shape={'gates': {'logging/setLevel': gate}})
    hf = holdfast({'s': server.entry})
    client = connected(hf, server)
    client.rpc('logging/setLevel', {'level': 'error'})
    assert client.call('echo', {'text': 'anyway'}).text == 'anyway'
    cancelled = connected(hf, server)
    cancelled.rpc('logging/setLevel', {'level': 'error'})
    call = script(cancelled, ident='c')
    wait_for(lambda: len(server.calls('logging/setLevel')) == 2, 'the second level')
    assert cancelled.notify('notifications/cancelled', {'requestId': 'c'}).status == 202
    open_gate(gate)
    call.close()
    assert client.call('echo', {'text': 'on'}).text == 'on'
    assert [c['params']['name'] for c in server.calls()] == ['echo', 'echo']


def test_log_level__answered_by_the_server_is_nothing_odd(holdfast, scripted):
    server = scripted('s', timeout=1)
    hf = holdfast({'s': server.entry})
    client = connected(hf, server)
    client.rpc('logging/setLevel', {'level': 'error'})
    late = script(client, {'wait': server.gate()}).rest()[-1]
    assert late['error']['message'] == 's did not answer within 1 s; try again, or raise its "timeout"'


def test_log_level__of_one_client_is_not_anothers(world):
    server = world.servers['pipe']
    loud, quieter = connected(world, server), connected(world, server)
    loud.rpc('logging/setLevel', {'level': 'debug'})
    quieter.call('echo')
    before = len(server.calls('logging/setLevel'))
    loud.call('echo')
    assert len(server.calls('logging/setLevel')) == before + 1
    quieter.call('echo')
    assert len(server.calls('logging/setLevel')) == before + 1


def test_modern_clients__hear_logs_of_the_level_they_ask_for(world):
    lines = [{'send': note('notifications/message', level=level, data=level)} for level in LEVELS]
    for name in ('new', 'web'):
        for wanted, heard in (('warning', LEVELS[3:]), ('debug', LEVELS), (None, ()), ('emergency', LEVELS[7:])):
            client = world.client('/mcp/' + name, modern=True)
            meta = {harness.PREFIX + 'logLevel': wanted} if wanted else None
            got = script(client, *lines, meta=meta).rest()
            assert [m['params']['level'] for m in got[:-1]] == list(heard), (name, wanted)


# -- roots, cancellation

def test_roots_list_changed__is_passed_on_to_the_servers_in_use(world):
    pipe, web, new = (world.servers[n] for n in ('pipe', 'web', 'new'))
    client = world.client('/mcp', first_id=1).connect(capabilities={'roots': {'listChanged': True}})
    other = world.client('/mcp').connect()
    before = [len(s.calls('notifications/roots/list_changed')) for s in (pipe, web, new)]
    assert client.notify('notifications/roots/list_changed').status == 202  # to nobody yet
    for tool in ('pipe__echo', 'web__echo', 'new__echo'):
        client.call(tool)
    other.call('pipe__echo')
    assert client.notify('notifications/roots/list_changed', {'_meta': {'z': 1.5}}).status == 202
    for one, count in zip((pipe, web), before):
        wait_for(lambda o=one, c=count: len(o.calls('notifications/roots/list_changed')) == c + 1, 'the notification')
        assert one.calls('notifications/roots/list_changed')[-1]['params'] == {'_meta': {'z': 1.5}}
    client.call('new__echo')
    assert len(new.calls('notifications/roots/list_changed')) == before[2]  # that era has no such thing


def test_cancellation__of_ones_own_request_reaches_the_server(world, server):
    client = connected(world, server)
    gone, waiting = len(server.times('gone')) + 1, len(server.times('waiting')) + 1
    for ident in ('own', 17):
        call = script(client, {'say': 'waiting'}, {'wait': server.gate()}, ident=ident)
        server.wait_time('waiting', waiting)
        assert client.notify('notifications/cancelled', {'requestId': ident, 'reason': 'enough'}).status == 202
        stopped = server.wait_time('gone', gone)
        wait_for(lambda i=stopped['id']: i in [c['params']['requestId'] for c in server.calls('notifications/cancelled')],
                 'the notification')
        call.close()
        gone, waiting = gone + 1, waiting + 1
    assert client.call('echo', {'text': 'on'}).text == 'on'


def test_cancellation__of_anothers_request_changes_nothing(world, server):
    client, other = connected(world, server), connected(world, server)
    gate, gone, waiting = server.gate(), server.times('gone'), len(server.times('waiting')) + 1
    call = script(client, {'say': 'waiting'}, {'wait': gate}, ident=5)
    server.wait_time('waiting', waiting)
    inner = server.calls()[-1]['id']  # our id towards the server must not help either
    strangers = [other, world.client('/mcp/' + server.name), world.client('/mcp/' + server.name, modern=True)]
    for stranger, ident in itertools.product(strangers, (5, '5', inner)):
        assert stranger.notify('notifications/cancelled', {'requestId': ident}).status == 202
    for ident in ('5', 6, None, {}, inner + 1000):
        assert client.notify('notifications/cancelled', {'requestId': ident}).status == 202
    assert client.notify('notifications/cancelled').status == 202
    open_gate(gate)
    assert call.rest()[-1]['id'] == 5
    assert server.times('gone') == gone


# -- the audit of reading

@pytest.mark.parametrize('modern', [False, True], ids=['legacy', 'modern'])
@pytest.mark.parametrize('name', ['pipe', 'web', 'new'])
def test_reading__leaves_one_noted_event_each(world, name, modern):
    client = world.client('/mcp/' + name, modern=True) if modern else connected(world, world.servers[name])
    client.call('echo')
    last = events(world, bodies=False)[-1]['id']
    client.rpc('resources/read', {'uri': 'doc://a'})
    client.rpc('prompts/get', {'name': 'greet'})
    client.rpc('completion/complete', {'ref': {'type': 'ref/prompt', 'name': 'greet'}, 'argument': {'name': 'a', 'value': 'b'}})
    client.call('echo')  # comes after them, and is durable
    found = wait_for(lambda: noted(world, last), 'three notes')
    assert [(e['method'], e['server'], e.get('tool') or None) for e in found] == [
        ('resources/read', name, 'doc://a'), ('prompts/get', name, 'greet'), ('completion/complete', name, None)]
    assert {e['outcome'] for e in found} == {'ok'}


def noted(world, last):
    found = [e for e in events(world, after=last) if e.get('method') not in (None, 'tools/call')]
    return found if len(found) >= 3 else None


# -- sessions of a server that was restarted

@pytest.mark.parametrize('status,text', [(404, 'Session not found'), (400, 'No valid session ID provided'), (400, 'Server not initialized')])
def test_a_server_that_forgot_its_sessions__gets_new_ones(holdfast, scripted, status, text):
    server = scripted('s', http=True, shape={'lost': status, 'lost_text': text})
    hf = holdfast({'s': server.entry})
    client = connected(hf, server)
    assert client.call('counter').text == '1'
    server.stop()
    server.start()
    again = client.call('counter')
    assert again.text == '1' and 'holdfast/state-lost' in again.result['_meta']
    assert client.call('counter').text == '2'
