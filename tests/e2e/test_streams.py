# SPDX-License-Identifier: Apache-2.0
"""Event streams of legacy clients: who may open them, what each carries, and what becomes of them when a
connection drops, when Holdfast is killed, or when somebody else presents an event id."""
import json
import select

import pytest

import harness
from harness import wait_for
from scripted import Script, get, messages, note, open_gate, script, text_of

VERSIONS = ('2025-03-26', '2025-06-18', '2025-11-25')
EACH_VERSION = pytest.mark.parametrize('version', VERSIONS)


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    """One Holdfast before a server on a pipe and one over HTTP, for tests that leave nothing behind."""
    folder = tmp_path_factory.mktemp('streams')
    pipe, web = Script(folder, 'pipe'), Script(folder, 'web', http=True)
    one = harness.Holdfast(folder, {'mcpServers': {'pipe': pipe.entry, 'web': web.entry}, 'holdfast': {}}).start()
    one.servers = {'pipe': pipe, 'web': web}
    yield one
    try:
        one.close()
    finally:
        web.stop()


@pytest.fixture(params=['pipe', 'web'])
def server(request, world):
    return world.servers[request.param]


def connected(hf, path, version='2025-11-25'):
    return hf.client(path, first_id=1).connect(version)


def log(text, level='info'):
    return note('notifications/message', level=level, data=text)


def updated(uri):
    """A notification that belongs to no call, and to one session."""
    return note('notifications/resources/updated', uri=uri)


def with_id(stream):
    """The next event that carries a message."""
    event = stream.event()
    while event is not None and not event.get('data'):
        event = stream.event()
    return event


def all_events(stream):
    return list(iter(lambda: with_id(stream), None))


# -- the standalone stream

def test_get__is_one_per_transport(world):
    client, other = connected(world, '/mcp/pipe'), connected(world, '/mcp/pipe')
    first = get(client)
    assert first.status == 200 and first.is_sse and first.header('cache-control') == 'no-cache, no-transform'
    second = get(client)
    assert second.status == 409 and json.loads(second.message())['id'] is None
    theirs = get(other)
    assert theirs.status == 200
    for stream in (first, second, theirs):
        stream.close()


def test_get__taken_over_only_with_its_own_event_id(world):
    client, other = connected(world, '/mcp/pipe'), connected(world, '/mcp/pipe')
    first, theirs = get(client), get(other)
    mine, foreign = first.event()['id'], theirs.event()['id']
    refused = get(client, last=foreign)
    assert refused.status == 404
    script(client, {'get': updated('still:here')}).rest()
    assert json.loads(first.event()['data']) == updated('still:here')
    taken = get(client, last=mine)
    assert taken.status == 200
    assert json.loads(with_id(taken)['data']) == updated('still:here')  # what came after that id, again
    with pytest.raises(EOFError):  # broken off: it belongs to the new connection
        first.event()
    for stream in (first, theirs, refused, taken):
        stream.close()


def test_get__is_refused_in_words(world):
    client = connected(world, '/mcp/pipe')
    cases = [
        ({}, 'text/event-stream', {'Mcp-Session-Id': None}, 400),
        ({}, 'text/event-stream', {'Mcp-Session-Id': 'unknown-id-of-nobody-00000000000000000000'}, 404),
        ({'path': '/mcp/web'}, 'text/event-stream', {}, 404),
        ({'path': '/mcp'}, 'text/event-stream', {}, 404),
        ({}, 'application/json', {}, 406),
        ({}, 'text/event-stream', {'MCP-Protocol-Version': '2026-07-28'}, 405),
    ]
    for where, accept, headers, status in cases:
        stream = get(client, accept=accept, **where, **headers)
        assert stream.status == status, (accept, headers)
        assert json.loads(stream.message())['error']['message']
        stream.close()
    for accept in ('*/*', 'application/json, text/event-stream;q=0.5'):
        stream = get(client, accept=accept)
        assert stream.status == 200, accept
        stream.close()
        wait_for(lambda: free(client), 'the stream to be free')


def free(client):
    stream = get(client)
    stream.close()
    return stream.status == 200


def test_list_changed_for_everybody__reaches_every_stream_of_the_server_and_of_all(world):
    web = world.servers['web']
    on_server = [connected(world, '/mcp/web', v) for v in VERSIONS]
    on_all, elsewhere = connected(world, '/mcp'), connected(world, '/mcp/pipe')
    watched = len(web.times('stream'))
    streams = [get(c) for c in (*on_server, on_all)]
    foreign = get(elsewhere)
    if not watched:
        web.wait_time('stream')  # the server is listened to
    teller = connected(world, '/mcp/web')
    for kind in ('tools', 'prompts', 'resources'):
        script(teller, {'to_all': note(f'notifications/{kind}/list_changed')}).rest()
        for stream in streams:
            assert json.loads(with_id(stream)['data'])['method'] == f'notifications/{kind}/list_changed'
    script(elsewhere, {'get': updated('of:elsewhere')}).rest()
    assert json.loads(with_id(foreign)['data']) == updated('of:elsewhere')  # and nothing of the other server
    for stream in (*streams, foreign):
        stream.close()


def test_list_changed_of_one_session__reaches_that_session_alone(world, server):
    client, other = connected(world, '/mcp/' + server.name), connected(world, '/mcp/' + server.name)
    mine, theirs = get(client), get(other)
    script(client, {'send': note('notifications/tools/list_changed')}).rest()
    assert json.loads(with_id(mine)['data'])['method'] == 'notifications/tools/list_changed'
    script(other, {'send': note('notifications/prompts/list_changed')}).rest()
    assert json.loads(with_id(theirs)['data'])['method'] == 'notifications/prompts/list_changed'
    mine.close()
    theirs.close()


@EACH_VERSION
def test_priming_event__begins_streams_of_2025_11_25_alone(world, version):
    client = connected(world, '/mcp/pipe', version)
    standalone = get(client)
    with script(client, {'send': log('one')}) as call:
        event = call.event()
        if version == '2025-11-25':
            assert event['data'] == '' and event['id'] and int(event['retry']) > 0
            assert standalone.event()['data'] == ''
            event = call.event()
        assert json.loads(event['data']) == log('one') and event['id']
        events = all_events(call)
        assert len(events) == 1 and events[0]['data']
        assert all(e.get('data') for e in events)
    script(client, {'get': updated('of:none')}).rest()
    assert json.loads(standalone.event()['data']) == updated('of:none')
    standalone.close()


@EACH_VERSION
def test_logs_and_progress__go_with_the_call(world, server, version):
    client = connected(world, '/mcp/' + server.name, version)
    standalone = get(client)
    meta = {'progressToken': 'tok-\u00e9'}
    with script(client, {'send': log('a')}, {'progress': 1}, {'progress': 2.5}, {'send': log('b', 'error')}, meta=meta) as call:
        got = call.rest()
    assert got[:-1] == [log('a'), note('notifications/progress', progressToken='tok-\u00e9', progress=1),
                        note('notifications/progress', progressToken='tok-\u00e9', progress=2.5), log('b', 'error')]
    assert got[-1]['id'] == call.ident
    # Nothing of it on the standalone stream: what comes next there is this.
    script(client, {'send': note('notifications/tools/list_changed')}).rest()
    assert json.loads(with_id(standalone)['data'])['method'] == 'notifications/tools/list_changed'
    standalone.close()


# -- dropped connections

@EACH_VERSION
def test_a_dropped_connection__is_resumed_at_every_event_without_loss_or_repeat(world, server, version):
    client = connected(world, '/mcp/' + server.name, version)
    texts = [f'event {n}' for n in range(5)]
    gates = [server.gate() for _ in texts]
    steps = [step for text, gate in zip(texts, gates) for step in ({'send': log(text)}, {'wait': gate})]
    call = script(client, *steps, ident='r-1')
    seen, last = [], None
    stream = call.stream
    for gate in gates:
        event = with_id(stream)
        seen.append(event['data'])
        last = event['id']
        stream.close()  # after each of them
        open_gate(gate)
        stream = get(client, last=last)
        assert stream.status == 200
    rest = all_events(stream)
    stream.close()
    assert [json.loads(d)['params']['data'] for d in seen] == texts
    assert len(rest) == 1 and json.loads(rest[0]['data'])['id'] == 'r-1' and 'result' in json.loads(rest[0]['data'])


@EACH_VERSION
def test_a_finished_call__can_be_read_again_from_every_event(world, server, version):
    client = connected(world, '/mcp/' + server.name, version)
    with script(client, *[{'send': log(f'n{n}')} for n in range(4)], {'result': '{"content":[],"n":9007199254740993}'}, ident=9) as call:
        events = all_events(call)
    assert len(events) == 5
    for at, event in enumerate(events):
        stream = get(client, last=event['id'])
        assert stream.status == 200
        assert [e['data'] for e in all_events(stream)] == [e['data'] for e in events[at + 1:]]
        assert [e['id'] for e in all_events_again(client, event['id'])] == [e['id'] for e in events[at + 1:]]
        stream.close()


def all_events_again(client, last):
    stream = get(client, last=last)
    try:
        return all_events(stream)
    finally:
        stream.close()


def test_a_call_without_an_event_yet__is_primed_after_a_moment_and_survives_the_drop(world, server):
    client = connected(world, '/mcp/' + server.name)
    gate = server.gate()
    call = script(client, {'wait': gate}, ident=77)
    priming = call.event()  # comes by itself, as the answer takes long
    assert priming['data'] == '' and priming['id']
    call.close()
    open_gate(gate)
    stream = get(client, last=priming['id'])
    got = messages(stream)
    assert [m['id'] for m in got] == [77] and 'result' in got[0]
    stream.close()


@EACH_VERSION
def test_a_dropped_standalone_stream__goes_on_at_every_event_without_loss_or_repeat(world, server, version):
    client = connected(world, '/mcp/' + server.name, version)
    client.call('echo')
    uris = [f'n:{n}' for n in range(4)]
    stream, seen = get(client), []
    for uri in uris:
        script(client, {'get': updated(uri)}).rest()
        event = with_id(stream)
        seen.append(json.loads(event['data'])['params']['uri'])
        stream.close()
        script(client, {'get': updated(uri + '+')}).rest()  # while nobody is there
        stream = get(client, last=event['id'])
        assert stream.status == 200
        seen.append(json.loads(with_id(stream)['data'])['params']['uri'])
    assert seen == [u + more for u in uris for more in ('', '+')]
    stream.close()


def test_requests_with_the_same_id__each_get_their_own_result(world, server):
    client = connected(world, '/mcp/' + server.name)
    gates = [server.gate() for _ in range(2)]
    calls = [script(client, {'say': f'twin {n}'}, {'wait': gate}, {'result': '{"content":[],"n":%d}' % n}, ident=1)
             for n, gate in enumerate(gates)]
    for n in (0, 1):
        server.wait_time(f'twin {n}')
    for n in (1, 0):
        open_gate(gates[n])
        got = calls[n].rest()[-1]
        assert got['id'] == 1 and got['result']['n'] == n
        calls[n].close()


@pytest.mark.parametrize('version', VERSIONS)
def test_kill_9_of_holdfast__is_answered_honestly_for_the_request_that_asked(holdfast, scripted, version):
    server = scripted('s')
    hf = holdfast({'s': server.entry})
    client = connected(hf, '/mcp/s', version)
    idents = (5, 'five')
    calls = [script(client, {'progress': 1}, {'wait': server.gate()}, ident=i, meta={'progressToken': i}) for i in idents]
    lasts = [with_id(c)['id'] for c in calls]
    standalone = get(client)
    script(client, {'send': note('notifications/tools/list_changed')}).rest()
    standing = with_id(standalone)['id']
    hf.restart(kill=True)
    for ident, last in zip(idents, lasts):
        stream = get(client, last=last)
        assert stream.status == 200
        got = messages(stream)
        assert len(got) == 1 and got[0]['id'] == ident and 'restarted' in got[0]['error']['message']
        stream.close()
    again = get(client, last=standing)  # simply begins anew
    assert again.status == 200
    assert client.call('echo', {'text': 'still my session'}).text.startswith('still my session')
    script(client, {'send': note('notifications/prompts/list_changed')}).rest()
    assert json.loads(with_id(again)['data'])['method'] == 'notifications/prompts/list_changed'
    again.close()


# -- event ids of others

def test_event_ids__are_worth_nothing_to_others(world):
    client, other = connected(world, '/mcp/pipe'), connected(world, '/mcp/pipe')
    elsewhere = connected(world, '/mcp/web')
    with script(client, *[{'send': log(f'secret {n}')} for n in range(3)]) as call:
        mine = [e['id'] for e in all_events(call)]
    for stranger in (other, elsewhere):
        for ident in mine:
            check_miss(stranger, ident)
    missing = get(client, last=mine[0], path='/mcp/web')
    assert missing.status == 404
    missing.close()
    still = get(client, last=mine[0])
    assert len(messages(still)) == 3  # the owner's is untouched
    still.close()


def check_miss(client, ident):
    stream = get(client, last=ident)
    body = stream.message()
    stream.close()
    assert stream.status == 404 and b'secret' not in body, ident
    assert json.loads(body)['error']['message'].startswith('no stream of this session has that Last-Event-ID')


def test_event_ids__with_a_flipped_bit_are_unknown(world):
    client = connected(world, '/mcp/pipe')
    with script(client, {'send': log('secret')}) as call:
        mine = with_id(call)['id']
        call.rest()
    flipped = []
    for at in range(len(mine)):
        for bit in (1, 2, 4, 8, 16, 32):
            text = mine[:at] + chr(ord(mine[at]) ^ bit) + mine[at + 1:]
            if text.isprintable() and text.isascii() and text.strip() == text:
                flipped.append(text)
    for text in (*flipped[::3], mine[:-1], mine + 'A', mine[1:], mine * 2, 'x' * 5000, '.', '-'):
        check_miss(client, text)


# -- what must not become two events

EVIL = ['a\r\ndata: {"evil":1}\r\n\r\n', 'b\n\ndata: {"evil":1}\n\n', 'c\rdata: {"evil":1}\r\r', 'd\u2028data: {"evil":1}\u2029\u0085',
        '\r\n', '\x00\x1b[31m', 'id: 1\nretry: 1\nevent: endpoint\ndata: x']


@EACH_VERSION
def test_line_ends_in_texts__stay_inside_of_one_event(world, server, version):
    client = connected(world, '/mcp/' + server.name, version)
    for evil in EVIL:
        result = json.dumps({'content': [{'type': 'text', 'text': evil}]})
        with script(client, {'send': log(evil)}, {'result': result}) as call:
            events = all_events(call)
            raw = call.stream.body
        assert [sorted(e) for e in events] == [['data', 'id'], ['data', 'id']]
        assert json.loads(events[0]['data']) == log(evil)
        assert json.loads(events[1]['data'])['result']['content'][0]['text'] == evil
        assert b'\r' not in raw


def test_json_of_several_lines__is_still_one_event(world):
    server = world.servers['web']
    client = connected(world, '/mcp/web')
    pretty = json.dumps(log('over\nseveral lines'), indent=2)
    with script(client, {'raw': pretty}, {'result': '{\n "content": []\n}'}) as call:
        events = all_events(call)
    assert server and len(events) == 2 and json.loads(events[0]['data']) == log('over\nseveral lines')
    assert json.loads(events[1]['data'])['result'] == {'content': []}


# -- the end

def test_delete__ends_the_transport_and_its_streams_but_not_the_session(world):
    server = world.servers['pipe']
    meta = {'session_id': 'the-same-carrier'}
    client = connected(world, '/mcp/pipe')
    assert client.call('counter', meta=meta).text == '1'
    children = len(server.starts())
    standalone = get(client)
    gate = server.gate()
    call = script(client, {'send': log('running')}, {'wait': gate}, ident='open')
    last = with_id(call)['id']
    standalone.event()
    assert client.delete().status == 204
    assert standalone.event() is None and call.rest() == []
    for method in ('GET', 'DELETE'):
        assert world.request(method, '/mcp/pipe', {'Mcp-Session-Id': client.session, 'Accept': 'text/event-stream'}).status == 404
    gone = get(client, last=last)
    assert gone.status == 404
    again = client.call('counter')
    assert again.status == 404 and again.code == -32000
    open_gate(gate)
    other = connected(world, '/mcp/pipe')
    assert other.call('counter', meta=meta).text == '2'
    assert len(server.starts()) == children
    for stream in (standalone, gone):
        stream.close()
    call.close()


def test_a_session_with_two_transports__is_told_where_somebody_is(world, server):
    meta = {'session_id': 'two-windows-' + server.name}
    first, second = connected(world, '/mcp/' + server.name), connected(world, '/mcp/' + server.name)
    for client in (first, second):
        client.call('counter', meta=meta)
    older, newer = get(first), get(second)
    assert older.event()['data'] == newer.event()['data'] == ''  # primed
    script(first, {'get': updated('both')}).rest()
    assert json.loads(with_id(newer)['data']) == updated('both')  # each message on one stream, the newest
    newer.close()
    told = []

    def tell():
        told.append(f'after:{len(told)}')
        script(first, {'get': updated(told[-1])}).rest()
        return select.select([older.connection.socket], [], [], 0.1)[0]

    wait_for(tell, 'the stream that is left')
    assert json.loads(with_id(older)['data']) == updated(told[-1])
    older.close()


def test_requests_of_one_transport__have_their_own_streams(world, server):
    client = connected(world, '/mcp/' + server.name)
    gates = [server.gate() for _ in range(3)]
    calls = []
    for n, gate in enumerate(gates):
        calls.append(script(client, {'progress': n}, {'wait': gate}, {'progress': n + 10}, ident=n, meta={'progressToken': n}))
        assert json.loads(with_id(calls[-1])['data'])['params'] == {'progressToken': n, 'progress': n}
    for n in (2, 0, 1):
        open_gate(gates[n])
        got = calls[n].rest()
        assert [m.get('id', m.get('params', {}).get('progress')) for m in got] == [n + 10, n]
        assert text_of(got[-1]) == []
        calls[n].close()
