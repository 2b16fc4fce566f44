# SPDX-License-Identifier: Apache-2.0
"""Batches: arrays of messages on a transport of 2025-03-26, one exchange and one audit row for each item."""
import json

import commands
import harness
import pytest

from harness import ENVELOPE, LEGACY_VERSIONS, Reply, dump, stdio_server, wait_for


@pytest.fixture(scope='module')
def hf(tmp_path_factory):
    folder = tmp_path_factory.mktemp('batch')
    entry, record = stdio_server(folder, 'up')
    one = harness.Holdfast(folder, {'mcpServers': {'up': entry}, 'holdfast': {}}).start()
    one.record = record
    yield one
    one.close()


def call(ident, tool='echo', meta=None, **arguments):
    params = {'name': tool, 'arguments': arguments, **({'_meta': meta} if meta else {})}
    return {'jsonrpc': '2.0', 'id': ident, 'method': 'tools/call', 'params': params}


def ping(ident):
    return {'jsonrpc': '2.0', 'id': ident, 'method': 'ping'}


NOTE = {'jsonrpc': '2.0', 'method': 'notifications/initialized'}


def client_of(hf, version='2025-03-26'):
    return hf.client('/mcp/up').connect(version)


def texts(reply):
    return [(m['id'], m['result']['content'][0]['text']) for m in reply.json]


def test_replies_come_as_an_array_in_the_items_order(hf):
    client = client_of(hf)
    items = [call('a', 'slow', steps=1, delay_ms=100), NOTE, ping(2), call('b', text='two'), call('c', 'nope')]
    reply = client.rpc_bytes(dump(items))
    assert (reply.status, reply.kind) == (200, 'application/json')
    assert [m['id'] for m in reply.json] == ['a', 2, 'b', 'c']
    assert reply.json[0]['result']['content'][0]['text'] == '1 steps'
    assert reply.json[1]['result'] == {}
    assert reply.json[2]['result']['content'][0]['text'] == 'two'
    assert reply.json[3]['error']['code'] == -32602


def test_items_share_the_transports_session(hf):
    client = client_of(hf)
    reply = client.rpc_bytes(dump([call(i, 'counter') for i in range(5)]))
    assert sorted(t for _, t in texts(reply)) == ['1', '2', '3', '4', '5']
    assert client.call('counter').text == '6'


def test_each_item_has_its_own_audit_row(hf):
    last = commands.events(hf)[-1:]
    client = client_of(hf)
    client.rpc_bytes(dump([call(1, text='row one'), call(2, text='row two'), call(3, 'fail')]))
    rows = [e for e in commands.events(hf, last[0]['id'] if last else None) if e.get('tool')]
    assert sorted(e['tool'] for e in rows if e.get('kind') == 'intent') == ['echo', 'echo', 'fail']


@pytest.mark.parametrize('items', [[NOTE], [NOTE, NOTE], [{'jsonrpc': '2.0', 'id': 9, 'result': {}}]])
def test_only_notifications_and_responses_are_accepted_without_a_body(hf, items):
    reply = client_of(hf).rpc_bytes(dump(items))
    assert (reply.status, reply.raw) == (202, b'')


def test_a_malformed_item_is_answered_in_its_place(hf):
    reply = client_of(hf).rpc_bytes(dump([ping(1), 7, {'jsonrpc': '2.0', 'id': 5, 'method': 3}, ping(2)]))
    assert reply.status == 200
    assert [m['id'] for m in reply.json] == [1, None, 5, 2]
    assert [m['error']['code'] for m in reply.json[1:3]] == [-32600, -32600]


def test_a_batch_inside_a_batch_is_refused_in_its_place(hf):
    client = client_of(hf)
    last = commands.events(hf)[-1:]
    reply = client.rpc_bytes(dump([ping(1), [call(2), call(3)], [[[]]], ping(4)]))
    assert [m['id'] for m in reply.json] == [1, None, None, 4]
    for refused in reply.json[1:3]:
        assert refused['error']['code'] == -32600 and 'part of a batch' in refused['error']['message']
    assert not [e for e in commands.events(hf, last[0]['id'] if last else None) if e.get('tool')]


def test_thirty_two_items_are_served_and_thirty_three_refused(hf):
    client = client_of(hf)
    assert len(client.rpc_bytes(dump([ping(i) for i in range(32)])).json) == 32
    reply = client.rpc_bytes(dump([ping(i) for i in range(33)]))
    assert (reply.status, reply.code) == (400, -32600)
    assert '32' in reply.error['message']


@pytest.mark.parametrize('items, word', [
    ([], '1 to 32'),
    ([ping(1), {'jsonrpc': '2.0', 'id': 2, 'method': 'initialize', 'params': {}}], 'initialize'),
    ([ping(1), {'jsonrpc': '2.0', 'id': 2, 'method': 'tools/list', 'params': {'_meta': ENVELOPE}}], '2026-07-28'),
])
def test_what_is_no_batch_is_refused_whole(hf, items, word):
    reply = client_of(hf).rpc_bytes(dump(items))
    assert (reply.status, reply.code, reply.json.get('id', 'absent')) == (400, -32600, None)
    assert word in reply.error['message']


@pytest.mark.parametrize('version', [v for v in LEGACY_VERSIONS if v != '2025-03-26'])
def test_other_versions_have_no_batches(hf, version):
    reply = client_of(hf, version).rpc_bytes(dump([ping(1)]))
    assert (reply.status, reply.code) == (400, -32600)
    assert '2025-03-26' in reply.error['message']


def test_a_batch_needs_a_transport(hf):
    reply = hf.client('/mcp/up').rpc_bytes(dump([ping(1)]))
    assert (reply.status, reply.code) == (400, -32600)


def test_a_version_header_of_another_revision_refuses_the_batch(hf):
    reply = client_of(hf).rpc_bytes(dump([ping(1)]), {'MCP-Protocol-Version': '2025-06-18'})
    assert (reply.status, reply.code) == (400, -32600)


def test_progress_turns_the_answer_into_a_stream_of_single_replies(hf):
    client = client_of(hf)
    items = [ping('first'), call('s', 'slow', {'progressToken': 'p'}, steps=2, delay_ms=50), call('e', text='x'), NOTE]
    reply = client.rpc_bytes(dump(items))
    assert (reply.status, reply.kind) == (200, 'text/event-stream')
    progress = [m for m in reply.messages if m.get('method') == 'notifications/progress']
    assert [m['params']['progress'] for m in progress] == [1, 2]
    assert all(m['params']['progressToken'] == 'p' for m in progress)
    assert sorted(m['id'] for m in reply.messages if 'id' in m) == ['e', 'first', 's']


def test_without_accept_for_events_progress_is_left_out(hf):
    client = client_of(hf)
    reply = client.rpc_bytes(dump([call('s', 'slow', {'progressToken': 1}, steps=2), ping(2)]),
                             {'Accept': 'application/json'})
    assert reply.kind == 'application/json'
    assert [m['id'] for m in reply.json] == ['s', 2]


def send_only(client, hf, items):
    """Posts without waiting for the answer's head."""
    connection = harness.Connection(hf.port)
    body = dump(items).encode()
    headers = client.headers_for('tools/call', {})
    connection.send(connection.head_bytes('POST', client.path, headers, body) + body)
    return connection


def test_an_item_is_cancelled_by_its_id(hf):
    client, before = client_of(hf), len(hf.record.of('tools/call'))
    connection = send_only(client, hf, [call('h', 'hang'), ping(1)])
    hf.record.wait('tools/call', before + 1)
    assert client.notify('notifications/cancelled', {'requestId': 'h', 'reason': 'enough'}).status == 202
    assert json.loads(hf.record.wait('notifications/cancelled')[-1])['params']['reason'] == 'enough'
    reply = Reply(harness.Stream(connection))
    connection.close()
    assert [m['id'] for m in reply.json] == ['h', 1]
    assert 'error' in reply.json[0]


def test_a_client_that_leaves_does_not_stop_its_legacy_calls(hf):
    client, before = client_of(hf), len(hf.record.of('tools/call'))
    last = commands.events(hf)[-1]['id']
    connection = send_only(client, hf, [call(1, 'slow', steps=1, delay_ms=300), call(2, text='x')])
    hf.record.wait('tools/call', before + 2)
    connection.close()
    wait_for(lambda: len([e for e in commands.events(hf, last) if e.get('kind') == 'outcome']) == 2, 'two outcomes')
    hf.check()


def test_batch__whose_answers_are_too_large_together_says_so(holdfast, scripted, tmp_path):
    server = scripted('s', http=True)
    client = holdfast({'s': server.entry}).client('/mcp/s').connect('2025-03-26')
    large = tmp_path / 'large'
    large.write_text(dump({'content': [{'type': 'text', 'text': 'x' * (14 << 20)}]}))
    calls = [{'jsonrpc': '2.0', 'id': n, 'method': 'tools/call',
              'params': {'name': 'script', 'arguments': {'steps': [{'result_file': str(large)}]}}} for n in range(6)]
    replies = {r['id']: r for r in client.rpc_bytes(dump(calls)).json}
    assert len(replies) == 6
    assert 1 <= sum('result' in r for r in replies.values()) < 6
    assert all('smaller batches' in r['error']['message'] for r in replies.values() if 'error' in r)
    assert client.rpc('ping').result == {}
