# SPDX-License-Identifier: Apache-2.0
"""HTTP+SSE of 2024-11-05: an event stream for the answers, posts for the messages, and posts without a stream."""
import json
import os
import re
import resource
import time

import commands
import harness
import pytest

from harness import ENVELOPE, Connection, Stream, dump, stdio_server, wait_for
from keys import create


@pytest.fixture(scope='module')
def hf(tmp_path_factory):
    folder = tmp_path_factory.mktemp('sse')
    entry, record = stdio_server(folder, 'up')
    one = harness.Holdfast(folder, {'mcpServers': {'up': entry}, 'holdfast': {}}).start()
    one.record = record
    yield one
    one.close()


class Old:
    """A client of 2024."""

    def __init__(self, hf, headers=None):
        self.hf, self.headers, self.next_id, self.unread = hf, dict(headers or {}), 0, {}
        connection = hf.connection()
        connection.send(connection.head_bytes('GET', '/sse', {'Accept': 'text/event-stream', **self.headers}, b''))
        self.stream = Stream(connection)
        self.status = self.stream.status
        self.path = None
        if self.status == 200:
            first = self.stream.event()
            assert first['event'] == 'endpoint'
            self.path = first['data']

    def post(self, body, path=None, headers=None):
        body = body if isinstance(body, bytes) else dump(body).encode()
        return self.hf.request('POST', path or self.path, {'Content-Type': 'application/json', **self.headers,
                                                           **(headers or {})}, body)

    def event(self):
        event = self.stream.event()
        assert event is None or event['event'] == 'message', event
        return json.loads(event['data']) if event else None

    def request(self, method, params=None, ident=None):
        if ident is None:
            ident, self.next_id = self.next_id, self.next_id + 1
        reply = self.post({'jsonrpc': '2.0', 'id': ident, 'method': method, 'params': params or {}})
        assert (reply.status, reply.body) == (202, b''), repr(reply)
        return ident

    def answer(self, ident):
        while ident not in self.unread:
            message = self.event()
            assert message is not None, f'no answer to {ident!r}'
            self.unread[message.get('id', message.get('method'))] = message
        return self.unread.pop(ident)

    def rpc(self, method, params=None):
        return self.answer(self.request(method, params))

    def call(self, tool, **arguments):
        return self.rpc('tools/call', {'name': tool, 'arguments': arguments})['result']['content'][0]['text']

    def initialize(self, version='2024-11-05', capabilities=None):
        reply = self.rpc('initialize', {'protocolVersion': version, 'capabilities': capabilities or {},
                                        'clientInfo': {'name': 'old', 'version': '1'}})
        assert self.post({'jsonrpc': '2.0', 'method': 'notifications/initialized'}).status == 202
        return reply['result']

    def close(self):
        self.stream.close()


@pytest.fixture
def old(hf):
    made = []

    def make(one=None, **options):
        made.append(Old(one or hf, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_the_stream_names_where_to_post_and_carries_the_answers(old):
    c = old()
    assert re.fullmatch(r'/mcp/messages\?session_id=[A-Za-z0-9_-]{43}', c.path)
    assert c.stream.header('content-type') == 'text/event-stream'
    assert 'no-cache' in c.stream.header('cache-control')
    assert c.initialize()['protocolVersion'] == '2024-11-05'
    assert 'up__echo' in [t['name'] for t in c.rpc('tools/list')['result']['tools']]
    assert c.call('up__echo', text='a\r\nb') == 'a\r\nb'
    assert c.rpc('ping')['result'] == {}


def test_streams_are_sessions_of_their_own(old):
    one, two = old(), old()
    one.initialize()
    two.initialize('2025-11-25')
    assert [one.call('up__counter'), one.call('up__counter'), two.call('up__counter')] == ['1', '2', '1']
    assert old().call('up__counter') == '1', 'without a handshake the stream itself is the session'


def test_a_payload_cannot_forge_an_event(hf, old, http_server, holdfast):
    web = http_server('web')
    c = old(holdfast({'web': web.entry()}))
    forged = '{"content":[{"type":"text","text":"x"}],\n\n"event: endpoint":1,\r\ndata: evil\n\n"y":2}'
    forged = forged.replace('data: evil', '"data: evil":3,')
    assert c.call('web__raw', result=forged) == 'x'
    assert c.rpc('ping')['result'] == {}


def test_progress_and_questions_come_on_the_stream(old):
    c = old()
    c.initialize(capabilities={'roots': {}})
    ident = c.request('tools/call', {'name': 'up__slow', 'arguments': {'steps': 2}, '_meta': {'progressToken': 't'}})
    assert [c.event()['params']['progress'] for _ in range(2)] == [1, 2]
    c.answer(ident)
    ident = c.request('tools/call', {'name': 'up__ask', 'arguments': {'method': 'roots/list'}})
    question = c.event()
    assert question['method'] == 'roots/list'
    assert c.post({'jsonrpc': '2.0', 'id': question['id'], 'result': {'roots': []}}).status == 202
    assert json.loads(c.answer(ident)['result']['content'][0]['text']) == {'result': {'roots': []}}


def test_cancelled_ends_a_call_without_an_answer(hf, old):
    c, before = old(), len(hf.record.of('notifications/cancelled'))
    c.initialize()
    calls = len(hf.record.of('tools/call'))
    ident = c.request('tools/call', {'name': 'up__hang'})
    hf.record.wait('tools/call', calls + 1)
    c.post({'jsonrpc': '2.0', 'method': 'notifications/cancelled', 'params': {'requestId': ident}})
    hf.record.wait('notifications/cancelled', before + 1)
    assert c.rpc('ping')['result'] == {}
    assert c.unread == {}


def test_garbage_is_answered_on_the_stream(old):
    c = old()
    assert c.post(b'{"jsonrpc":').status == 202
    reply = c.event()
    assert (reply['id'], reply['error']['code']) == (None, -32700)
    assert c.rpc('ping')['result'] == {}


def test_losing_the_stream_does_not_end_the_call(hf, old):
    c, calls = old(), len(hf.record.of('tools/call'))
    c.initialize()
    last = commands.events(hf)[-1]['id']
    c.request('tools/call', {'name': 'up__slow', 'arguments': {'steps': 1, 'delay_ms': 300}})
    hf.record.wait('tools/call', calls + 1)
    c.close()
    wait_for(lambda: [e for e in commands.events(hf, last) if e.get('outcome') == 'ok'], 'its outcome')
    hf.check()


def test_losing_the_stream_ends_its_requests_at_once(hf, old):
    def gauge(name):
        return int(re.search(rf'^{name} (\d+)$', hf.get('/metrics').body.decode(), re.M).group(1))
    c, calls = old(), len(hf.record.of('tools/call'))
    c.initialize()
    gate = os.path.join(hf.folder, 'gate')
    os.mkfifo(gate)
    c.request('tools/call', {'name': 'up__slow', 'arguments': {'steps': 1, 'gate': gate}})
    hf.record.wait('tools/call', calls + 1)
    assert gauge('holdfast_requests_in_flight') == gauge('holdfast_calls_in_flight') == 1
    c.close()
    wait_for(lambda: gauge('holdfast_requests_in_flight') == 0, 'the request to end')
    assert gauge('holdfast_calls_in_flight') == 1
    with open(gate, 'wb'):
        pass
    wait_for(lambda: gauge('holdfast_calls_in_flight') == 0, 'the call to end')
    hf.check()


def test_the_transport_goes_on_without_its_stream(hf, old):
    c = old()
    c.initialize()
    assert c.call('up__counter') == '1'
    path, ident = c.path, c.path.split('=')[1]
    c.close()
    web = hf.client('/mcp')
    web.session, web.version = ident, '2024-11-05'
    assert wait_for(lambda: web.call('up__counter').text, 'the counter') == '2'
    call = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'up__counter'}}
    reply = wait_for(lambda: (lambda r: r if r.status == 200 else None)(old().post(call, path)), 'the stream to be gone')
    assert reply.json()['result']['content'][0]['text'] == '3'


def counter(hf, query, **more):
    client = hf.client('/mcp/messages' + query)
    return client.rpc('tools/call', {'name': 'up__counter', 'arguments': {}, **more})


def test_without_a_stream_any_string_names_a_session(hf):
    assert [counter(hf, '?session_id=abc123').text for _ in range(2)] == ['1', '2']
    assert counter(hf, '?session_id=other').text == '1'
    assert counter(hf, '?session_id=abc123', _meta={'session_id': 'elsewhere'}).text == '3', 'the query comes first'
    assert counter(hf, '?session_id=a%20b%2F%C3%BC').text == '1'
    assert counter(hf, '?session_id=%61%20b%2f%c3%bc').text == '2'
    assert counter(hf, '?session_id=' + 'x' * 3000).text == '1'
    assert counter(hf, '?session_id=' + 'x' * 3000).text == '2'
    assert counter(hf, '?session_id=' + 'A' * 43).text == '1', 'shaped like an id of ours, and no such'
    assert counter(hf, '?session_id=' + 'A' * 43).text == '2'
    carriers = {e.get('carrier') for e in commands.events(hf) if e.get('tool')}
    assert 'messages' in carriers


def test_the_header_names_the_session_as_the_query_does(hf):
    client = hf.client('/mcp/messages')
    assert [client.call('up__counter', headers={'mcp-session-id': 'by-header'}).text for _ in range(2)] == ['1', '2']
    assert counter(hf, '?session_id=by-header').text == '3'
    both = hf.client('/mcp/messages?session_id=by-header').call('up__counter', headers={'mcp-session-id': 'by-header'})
    assert both.text == '4'
    none = client.call('up__counter')
    assert (none.status, none.code) == (400, -32600) and 'Mcp-Session-Id' in none.error['message']


def test_the_header_names_an_open_stream_too(hf, old):
    c = old()
    c.initialize()
    call = {'jsonrpc': '2.0', 'id': 'h', 'method': 'tools/call', 'params': {'name': 'up__counter'}}
    reply = hf.request('POST', '/mcp/messages', {'Content-Type': 'application/json', 'Mcp-Session-Id': c.path.split('=')[1]},
                       dump(call).encode())
    assert reply.status == 202
    assert c.call('up__counter') == '2', 'the header\'s call was the first of the same session'


def test_a_key_and_another_session_header_is_refused(hf):
    client = hf.client('/mcp/messages?session_id=abc123')
    client.session = 'something-else'
    reply = client.call('up__counter')
    assert (reply.status, reply.code) == (400, -32600)


def test_keys_hold_after_a_restart(holdfast, stdio_server):
    entry, _ = stdio_server('up')
    one = holdfast({'up': entry})
    assert counter(one, '?session_id=keep').text == '1'
    one.restart()
    reply = counter(one, '?session_id=keep')
    assert reply.result['_meta']['holdfast/state-lost']['server'] == 'up', 'the same session, whose server started over'


@pytest.mark.parametrize('query', ['', '?session_id=', '?session=1', '?session_id=a&session_id=b', '?session_id=%ZZ'])
def test_a_post_needs_one_key(hf, query):
    reply = counter(hf, query)
    assert (reply.status, reply.code) == (400, -32600)
    assert 'session_id' in reply.error['message']


def test_a_modern_request_is_served_whatever_the_key(hf):
    client = hf.client('/mcp/messages?session_id=abc123', modern=True)
    reply = client.rpc('tools/call', {'name': 'up__echo', 'arguments': {'text': 'm'}, '_meta': ENVELOPE})
    assert reply.status == 200 and reply.text == 'm'


@pytest.mark.parametrize('headers', [{'Host': 'evil.example'}, {'Origin': 'https://evil.example'}])
def test_the_gate_stands_before_both(hf, headers):
    assert hf.request('GET', '/sse', headers).status == 403
    assert hf.request('POST', '/mcp/messages?session_id=x', {'Content-Type': 'application/json', **headers}, b'{}').status == 403


def test_other_methods_and_types_are_refused(hf):
    assert hf.request('POST', '/sse', {'Content-Type': 'application/json'}, b'{}').status == 405
    assert hf.request('GET', '/mcp/messages?session_id=x').status == 405
    assert hf.request('POST', '/mcp/messages?session_id=x', {'Content-Type': 'text/plain'}, b'{}').status == 415
    assert hf.request('GET', '/sse', {'Accept': 'application/json'}).status == 406


def test_strict_client_ids_are_asked_for_on_both(holdfast, old):
    one = holdfast({}, {'client_id': 'required'})
    c = old(one)
    assert c.status == 400
    assert json.loads(c.stream.message())['error'] == {'code': -32600, 'message': 'Missing required mcp-client-id header'}
    c = old(one, headers={'mcp-client-id': 'me'})
    assert c.call('sample__counter') == '1'
    reply = one.request('POST', c.path, {'Content-Type': 'application/json'}, dump({'jsonrpc': '2.0', 'id': 7, 'method': 'ping'}).encode())
    assert (reply.status, reply.json()['id'], reply.json()['error']['code']) == (400, 7, -32600)


def test_sixty_four_messages_may_be_under_way(hf, old):
    c, calls = old(), len(hf.record.of('tools/call'))
    c.initialize()
    for i in range(64):
        c.request('tools/call', {'name': 'up__hang'}, f'h{i}')
    reply = c.post({'jsonrpc': '2.0', 'id': 'more', 'method': 'ping'})
    assert reply.status == 503 and reply.header('retry-after')
    hf.record.wait('tools/call', calls + 64)
    for i in range(64):
        assert c.post({'jsonrpc': '2.0', 'method': 'notifications/cancelled', 'params': {'requestId': f'h{i}'}}).status == 202
    wait_for(lambda: c.post({'jsonrpc': '2.0', 'id': 'again', 'method': 'ping'}).status == 202, 'room')
    assert c.answer('again')['result'] == {}


def test_sixteen_mib_may_be_under_way(holdfast, http_server, old):
    c = old(holdfast({'web': http_server('web').entry()}))
    c.initialize()
    for i in range(4):
        body = {'jsonrpc': '2.0', 'id': f's{i}', 'method': 'tools/call', 'params': {
            'name': 'web__slow', 'arguments': {'steps': 1, 'delay_ms': 4000, 'pad': ''}}}
        body['params']['arguments']['pad'] = 'x' * ((4 << 20) - len(dump(body)))
        assert len(dump(body)) == 4 << 20
        assert c.post(body).status == 202
    assert c.post({'jsonrpc': '2.0', 'id': 'p', 'method': 'ping'}).status == 503
    assert c.post({'jsonrpc': '2.0', 'method': 'notifications/initialized'}).status == 202
    assert c.answer('s0')['result'] and c.rpc('ping')['result'] == {}


def test_a_thousand_and_twenty_four_streams_may_be_open_a_quarter_of_one_key_and_three_of_a_tenant(holdfast):
    one = holdfast(settings={'auth': 'required'})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    keys = [create(one).headers for _ in range(4)]
    other, last = create(one, '--tenant', 'acme').headers, create(one, '--tenant', 'last').headers
    streams = []
    for key in keys[:3]:
        streams += [Old(one, key) for _ in range(256)]
        assert [s.status for s in streams[-256:]] == [200] * 256
        refused_to(one, key, 429, '256 event streams of GET /sse are open for this key or user')
    refused_to(one, keys[3], 429, '768 event streams of GET /sse are open for this tenant')
    streams += [Old(one, other) for _ in range(256)]
    assert {s.status for s in streams} == {200}
    refused_to(one, last, 503, 'too many event streams are open')
    assert streams[-1].rpc('ping')['result'] == {}
    for s in streams:
        s.close()
    again = wait_for(lambda: (lambda s: s if s.status == 200 else s.close())(Old(one, keys[3])), 'room for another')
    again.close()


def refused_to(hf, key, status, text):
    reply = hf.request('GET', '/sse', {'Accept': 'text/event-stream', **key})
    assert reply.status == status and text in reply.json()['error']['message'], reply
    assert reply.header('retry-after') == '1'


def test_a_reader_who_does_not_read_is_closed(holdfast, stdio_server, old):
    entry, _ = stdio_server('up')
    one = holdfast({'up': entry})
    c = old(one)
    c.initialize()
    sent = 0

    def is_closed():
        nonlocal sent
        sent += 1
        reply = c.post({'jsonrpc': '2.0', 'id': f'b{sent}', 'method': 'tools/call',
                        'params': {'name': 'up__big', 'arguments': {'n': 1000000}}})
        return reply.status != 202 and reply.status != 503

    wait_for(is_closed, 'the stream to be given up')
    one.check()


def test_a_quiet_stream_is_kept_alive(old):
    if not harness.LONG:
        pytest.skip('takes 15 s')
    c = old()
    began = time.monotonic()
    while b': keep-alive' not in c.stream.buffer:
        assert c.stream.fill()
    assert 14 < time.monotonic() - began < 18


def test_a_stop_ends_streams_after_their_answers(holdfast, stdio_server, old):
    entry, record = stdio_server('up')
    one = holdfast({'up': entry})
    busy, idle = old(one), old(one)
    busy.initialize()
    ident = busy.request('tools/call', {'name': 'up__slow', 'arguments': {'steps': 1, 'delay_ms': 500}})
    record.wait('tools/call')
    one.process.terminate()
    assert busy.answer(ident)['result']['content'][0]['text'] == '1 steps'
    assert busy.event() is None and idle.event() is None
    assert one.process.wait(harness.DEADLINE_S) == 0
    one.check_sanitizers()


def test_discover_is_declined_on_the_stream(old):
    """A client of both eras falls back to initialize, which this transport is made for."""
    client = old()
    ident = client.request('server/discover', {'_meta': ENVELOPE})
    answer = client.answer(ident)
    assert answer['error']['code'] == -32601 and 'begin with initialize' in answer['error']['message']
