# SPDX-License-Identifier: Apache-2.0
"""Traces by OTLP: the spans, their parents, and collectors that are dead, slow or hostile."""
import json

import pytest

from harness import wait_for
from receiver import Collector

TRACE, SPAN = '4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'
PARENT = f'00-{TRACE}-{SPAN}-01'


@pytest.fixture(name='collector')
def fixture_collector():
    made = []

    def make(**options):
        made.append(Collector(**options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_call__is_a_server_span_with_the_conventions_of_mcp(holdfast, collector):
    to = collector()
    hf = holdfast(settings={'otlp': {'url': to.url, 'headers': {'X-Tenant': 'a'}}})
    client = hf.client()
    client.initialize()
    assert client.call('echo', {'message': 'hello'}, ident='one').status == 200
    server, = [s for s in to.wait(2) if s['kind'] == 2]
    assert server['name'] == 'tools/call echo' and server['parent'] == '' and server['status'] == 0
    wanted = {'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'echo', 'jsonrpc.request.id': 'one',
              'mcp.protocol.version': '2025-11-25', 'network.transport': 'tcp', 'network.protocol.name': 'http',
              'holdfast.server': 'sample'}
    assert {k: server['attributes'].get(k) for k in wanted} == wanted
    event = json.loads(hf.get('/api/v1/audit/events?limit=10').body)['events']
    assert server['attributes']['holdfast.event.id'] in [e['id'] for e in event]
    assert server['attributes']['mcp.session.id'] in [e.get('session_id') for e in event]
    assert int(server['end']) >= int(server['start']) > 1_700_000_000 * 10**9
    post = to.posts[0]
    assert post['path'] == '/v1/traces' and post['headers']['X-Tenant'] == 'a'
    assert post['headers']['Content-Type'] == 'application/x-protobuf'
    assert to.decode(post['body'])['resource']['service.name'] == 'holdfast'
    assert [s['name'] for s in to.spans('initialize')] == ['initialize']


def one_call(to, kind, start=0):
    return [s for s in to.spans('tools/call')[start:] if s['kind'] == kind]


@pytest.mark.parametrize('modern', (False, True))
def test_client_span__is_a_child_and_the_server_learns_its_place(holdfast, collector, http_server, modern):
    to = collector()
    web = http_server('web', '--era', 'modern' if modern else 'legacy')
    hf = holdfast({'web': web.entry()}, {'otlp': {'url': to.url + '/v1/traces'}})
    client = hf.client('/mcp/web', modern=modern)
    if not modern:
        client.connect()
    headers = {'traceparent': f'00-{TRACE}-{"2" * 16}-01', 'tracestate': 'h=1'}
    sent = {'traceparent': PARENT, 'tracestate': 'rojo=00f067aa0ba902b7', 'a.b/c': 1.0}
    client.call('echo', {'message': 'in meta'}, meta=sent, headers=headers)
    client.call('echo', {'message': 'in header'}, headers=headers)
    client.call('echo', {'message': 'none'})
    client.call('echo', {'message': 'odd'}, headers={'traceparent': PARENT.upper()})
    to.wait(8)
    servers, clients = one_call(to, 2), one_call(to, 3)
    assert [s['parent'] for s in servers] == [SPAN, '2' * 16, '', '']
    assert [s['trace'] == TRACE for s in servers] == [True, True, False, False]
    assert servers[0]['links'] == [{'trace': TRACE, 'id': '2' * 16}] and servers[1]['links'] == []
    assert [s['state'] for s in servers] == ['rojo=00f067aa0ba902b7', 'h=1', '', '']
    for server, child in zip(servers, clients):
        assert (child['parent'], child['trace'], child['name']) == (server['id'], server['trace'], 'tools/call echo')
        assert int(server['start']) <= int(child['start']) <= int(child['end']) <= int(server['end'])
        assert child['attributes']['server.port'] == web.port and child['attributes']['network.transport'] == 'tcp'
        assert child['attributes']['server.address'] == '127.0.0.1'
        assert child['attributes']['mcp.protocol.version'] == ('2026-07-28' if modern else '2025-11-25')
    calls = [m for m in web.record.of('tools/call')]
    assert b'"traceparent":"%s"' % PARENT.encode() in calls[0] and b'"a.b/c":1.0' in calls[0]  # untouched
    assert not any(b'traceparent' in m for m in calls[1:])
    heads = [{n.lower(): v for n, v in h['headers']} for h in web.record.heads()]
    heads = [h for h in heads if 'traceparent' in h]
    assert [h['traceparent'] for h in heads] == [f"00-{c['trace']}-{c['id']}-01" for c in clients[:2]]
    assert [h['tracestate'] for h in heads] == ['rojo=00f067aa0ba902b7', 'h=1']


def test_without_a_collector__the_trace_of_the_client_is_passed_on(holdfast, http_server):
    web = http_server('web', '--era', 'legacy')
    client = holdfast({'web': web.entry()}).client('/mcp/web')
    client.connect()
    client.call('echo', {'message': 'a'}, headers={'traceparent': PARENT, 'tracestate': 'x=1'})
    client.call('echo', {'message': 'b'}, headers={'traceparent': PARENT + 'x'})
    heads = [{n.lower(): v for n, v in h['headers']} for h in web.record.heads()]
    assert [(h['traceparent'], h['tracestate']) for h in heads if 'traceparent' in h] == [(PARENT, 'x=1')]


def test_spans__name_what_failed_and_respect_the_sampling_of_the_client(holdfast, collector, stdio_server):
    to = collector()
    entry, _ = stdio_server(timeout='300ms')
    hf = holdfast({'rec': entry}, {'otlp': {'url': to.url}})
    client = hf.client('/mcp/rec')
    client.connect()
    client.call('echo', {'message': 'not sampled'}, headers={'traceparent': PARENT[:-1] + '0'})
    client.call('echo', {'message': 'x'}, ident='ok')
    client.call('fail', ident='fails')
    client.call('hang', ident='slow')
    client.call('no-such-tool-' + 'x' * 400, ident='unknown')
    client.rpc('resources/read', {'uri': 'test://ann:hunter2@doc?token=hunter2hunter2'}, ident='read')
    client.rpc('nonsense/method', {}, ident='nonsense')
    spans = {}
    wait_for(lambda: spans.update({s['attributes']['jsonrpc.request.id']: s for s in to.spans() if s['kind'] == 2}) or
             'read' in spans, 'the spans')
    assert spans['ok']['status'] == 0
    assert spans['fails']['attributes']['error.type'] == 'tool_error' and spans['fails']['status'] == 2
    assert spans['slow']['attributes']['error.type'] == 'timeout'
    unknown = spans['unknown']
    assert unknown['status'] == 2 and unknown['name'] == 'tools/call' and len(unknown['attributes']['gen_ai.tool.name']) == 256
    assert spans['read']['attributes']['mcp.resource.uri'] == 'test://doc' and 'hunter2' not in json.dumps(spans)
    assert not [s for s in to.spans() if s['trace'] == TRACE]
    pipes = one_call(to, 3)
    assert all(s['attributes']['network.transport'] == 'pipe' for s in pipes) and len(pipes) >= 3


def test_collector__that_fails_gets_the_batch_again_and_is_no_matter_of_a_call(holdfast, collector):
    to = collector()
    # Status of an answer: 503 and 429 are tried again, 400 is not; a partial success is final.
    partial = b'\x0a\x0e\x08\x01\x12\x0aover quota'
    to.answers = [503, (429, {'Retry-After': '1'}, b''), 200, 400, (200, {}, partial), (200, {}, b'\xff\xff garbage')]
    hf = holdfast(settings={'otlp': {'url': to.url}})
    client = hf.client()
    for n, posts in enumerate((3, 4, 5, 6)):
        assert client.call('echo', {'message': 'x'}, ident=f'call {n}').status == 200
        wait_for(lambda: len(to.posts) >= posts, 'the answer of the collector')
    assert to.posts[0]['body'] == to.posts[1]['body'] == to.posts[2]['body'] != to.posts[3]['body']
    metrics = lambda: dict(l.rsplit(' ', 1) for l in hf.get('/metrics').body.decode().splitlines() if l.startswith('holdfast_trace'))
    wait_for(lambda: metrics().get('holdfast_trace_spans_total{outcome="sent"}') == '5', 'the spans to be counted')
    assert metrics()['holdfast_trace_spans_total{outcome="rejected"}'] == '1'
    assert metrics()['holdfast_trace_spans_total{outcome="dropped"}'] == '2'
    assert any('over quota' in json.dumps(line) for line in hf.log())
