# SPDX-License-Identifier: Apache-2.0
"""Transport sessions: minted, named, ended, adopted after a crash; the era of a legacy client's stream."""
import json

import pytest

from harness import Connection, dump
from stored import Stored

ACCEPT = {'Accept': 'application/json, text/event-stream'}
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
GONE = {'code': -32000, 'message': 'Session not found or expired'}


def test_delete__ends_the_session_for_good(holdfast, stdio_server):
    entry, _ = stdio_server('up')
    client = holdfast({'up': entry}).client('/mcp/up').connect()
    assert client.call('echo', {'text': 'x'}).text == 'x'
    assert client.delete().status in (200, 204)
    reply = client.call('echo', {'text': 'x'}, ident='after')
    assert reply.status == 404 and reply.json['id'] == 'after' and reply.error == GONE
    assert client.delete().status == 404


@pytest.mark.parametrize('ident', [0, 'a', 12345])
def test_unknown_session__is_404_with_the_requests_id(holdfast, ident):
    reply = holdfast().client().rpc('tools/list', ident=ident, headers={'Mcp-Session-Id': 'never-issued'})
    assert reply.status == 404 and reply.json['id'] == ident and reply.error == GONE


def test_unknown_session__on_delete_is_404(holdfast):
    headers = {'Mcp-Session-Id': 'never-issued'}
    assert holdfast().request('DELETE', '/mcp/sample', headers).status == 404


def test_get__without_a_session_is_refused_and_modern_has_none(holdfast):
    daemon = holdfast()
    reply = daemon.request('GET', '/mcp/sample', {'Accept': 'text/event-stream'})
    assert reply.status == 400 and 'Mcp-Session-Id' in reply.json()['error']['message']
    reply = daemon.request('GET', '/mcp/sample', {'Accept': 'text/event-stream',
                                                  'MCP-Protocol-Version': '2026-07-28'})
    assert reply.status == 405 and reply.header('allow') == 'POST'


def test_session__works_only_on_the_endpoint_that_issued_it(holdfast, stdio_server):
    here, _ = stdio_server('up')
    there, _ = stdio_server('other')
    hf = holdfast({'up': here, 'other': there})
    client = hf.client('/mcp/other').connect()
    reply = hf.client('/mcp/up').rpc('tools/list', headers={'Mcp-Session-Id': client.session})
    assert reply.status == 404 and reply.error == GONE


def test_notification__is_accepted_with_an_empty_202(holdfast):
    client = holdfast().client()
    client.initialize()
    reply = client.notify('notifications/initialized')
    assert reply.status == 202 and reply.raw == b''


def test_session__is_adopted_after_kill_9(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    assert [client.call('counter').text for _ in range(2)] == ['1', '2']
    hf.restart()
    reply = client.call('counter')
    assert reply.status == 200 and reply.text == '1'
    lost = reply.result['_meta']['holdfast/state-lost']
    assert lost['server'] == 'up' and lost['reason'] == 'holdfast_restarted'
    assert '[holdfast: Holdfast was restarted; the earlier state of up is lost]' in [b.get('text') for b in reply.result['content']]
    again = client.call('counter')
    assert again.text == '2' and 'holdfast/state-lost' not in again.result.get('_meta', {})


def test_child_crash__is_told_with_the_next_result(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    assert client.call('counter').text == '1'
    crashed = client.call('crash')
    assert crashed.json and ('error' in crashed.json or crashed.result.get('isError'))
    reply = client.call('counter')
    assert reply.text == '1' and reply.result['_meta']['holdfast/state-lost']['reason'] == 'child_restarted'
    assert len(record.of('tools/call')) == 3


def test_remote_session_lost__is_told_with_the_next_result(holdfast, http_server):
    upstream = http_server('up')
    client = holdfast({'up': upstream.entry(handles='never')}).client('/mcp/up').connect()
    assert [client.call('counter').text for _ in range(2)] == ['1', '2']
    upstream.stop()
    upstream.start()
    reply = client.call('counter')
    assert reply.status == 200
    if 'result' not in reply.json or reply.result.get('isError'):
        reply = client.call('counter')
    assert reply.text == '1' and reply.result['_meta']['holdfast/state-lost']['reason'] == 'remote_session_lost'


def test_second_initialize__on_another_connection_is_another_session(holdfast):
    hf = holdfast()
    assert hf.client().connect().session != hf.client().connect().session


def test_progress__reaches_the_client_with_its_own_token(holdfast, stdio_server):
    entry, record = stdio_server('up', share='all', handles='never')
    hf = holdfast({'up': entry})
    for token in (0, 'tök', 9007199254740993):
        reply = hf.client('/mcp/up').call('slow', {'steps': 3}, meta={'progressToken': token}, ident=0)
        assert reply.status == 200 and reply.kind.startswith('text/event-stream')
        assert [m['params']['progressToken'] for m in reply.before] == [token] * len(reply.before)
        steps = [m['params']['progress'] for m in reply.before]
        assert steps and steps == sorted(set(steps)) and reply.text == '3 steps'
    sent = [json.loads(m)['params']['_meta']['progressToken'] for m in record.of('tools/call')]
    assert len(set(map(str, sent))) == 3


@pytest.mark.parametrize('kind', ['stdio', 'http'])
def test_cancel__reaches_the_upstream_with_its_own_id(holdfast, stdio_server, http_server, kind):
    if kind == 'stdio':
        entry, record = stdio_server('up')
    else:
        server = http_server('up')
        entry, record = server.entry(), server.record
    client = holdfast({'up': entry}).client('/mcp/up').connect()
    connection = Connection(client.holdfast.port)
    body = b'{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":{"name":"hang","arguments":{}}}'
    connection.send(connection.head_bytes('POST', '/mcp/up', client.headers_for('tools/call', {}), body) + body)
    sent = json.loads(record.wait('tools/call')[-1])
    assert client.notify('notifications/cancelled', {'requestId': 'mine', 'reason': 'enough'}).status == 202
    told = json.loads(record.wait('notifications/cancelled')[-1])
    assert told['params']['requestId'] == sent['id'] and sent['id'] != 'mine'
    connection.close()


def test_modern_disconnect__cancels_at_the_upstream(holdfast, stdio_server):
    entry, record = stdio_server('up')
    client = holdfast({'up': entry}).client('/mcp/up', modern=True)
    connection = Connection(client.holdfast.port)
    params = {'name': 'hang', 'arguments': {}, '_meta': client.envelope}
    body = dump({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': params}).encode()
    connection.send(connection.head_bytes('POST', '/mcp/up', client.headers_for('tools/call', params), body) + body)
    sent = json.loads(record.wait('tools/call')[-1])
    connection.close()
    told = json.loads(record.wait('notifications/cancelled')[-1])
    assert told['params']['requestId'] == sent['id']


def test_modern_request__is_never_given_a_session(holdfast):
    reply = holdfast().client(modern=True).rpc('tools/list', headers={'Mcp-Session-Id': 'ignored'})
    assert reply.status == 200 and reply.header('Mcp-Session-Id') is None


def initialize_with(hf, size, member):
    """An initialize whose params have that many bytes, most of them in one member."""
    def params(filler):
        info = {'name': 'c', 'version': '1'}
        made = {'protocolVersion': '2025-06-18', 'capabilities': {'sampling': {}}, 'clientInfo': info}
        (info if member == 'icons' else made['capabilities'] if member == 'experimental' else made)[member] = {'x': 'y' * filler}
        return made
    filler = size - len(dump(params(0)))
    return hf.client().rpc('initialize', params(filler))


def kept_params(hf):
    return [json.loads(row['initialize_params']) for row in Stored(hf).rows('transport_sessions')]


@pytest.mark.parametrize('member', ['unheard', 'icons'])
def test_initialize__keeps_8_KiB_of_its_params_whole_and_of_more_what_is_needed(holdfast, member):
    hf = holdfast()
    assert initialize_with(hf, 8192, member).status == 200
    assert len(dump(kept_params(hf)[0])) == 8192
    assert initialize_with(hf, 8193, member).status == 200
    assert {'protocolVersion': '2025-06-18', 'capabilities': {'sampling': {}},
            'clientInfo': {'name': 'c', 'version': '1'}} in kept_params(hf)


def test_initialize__what_is_needed_has_8_KiB_at_most(holdfast):
    hf = holdfast()
    assert initialize_with(hf, 8192, 'experimental').result['protocolVersion'] == '2025-06-18'
    reply = initialize_with(hf, 8193, 'experimental')
    assert reply.error['code'] == -32602 and 'at most 8192' in reply.error['message']
    assert len(kept_params(hf)) == 1


def test_transports__of_one_owner_are_4096_and_for_one_more_the_oldest_unused_ends(holdfast):
    hf = holdfast()
    body = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'initialize', 'params': {
        'protocolVersion': '2025-06-18', 'capabilities': {}, 'clientInfo': {'name': 'c', 'version': '1'}}}).encode()
    ids = []
    with hf.connection() as connection:
        def more(n):
            for _ in range(n):
                connection.send(connection.head_bytes('POST', '/mcp/sample', ACCEPT, body) + body)
            ids.extend(connection.read_response('POST').header('mcp-session-id') for _ in range(n))

        def status(ident):
            return hf.request('POST', '/mcp/sample', {**ACCEPT, 'Mcp-Session-Id': ident}, PING).status

        for _ in range(64):
            more(64)
        assert len(set(ids)) == 4096 and status(ids[0]) == status(ids[1]) == 200
        more(1)
        assert [status(ids[n]) for n in (0, 1, 2, 4095, 4096)] == [404, 200, 200, 200, 200]
        assert hf.request('DELETE', '/mcp/sample', {'Mcp-Session-Id': ids[9]}).status in (200, 204)
        more(1)  # in the place of the one that its client ended
        assert status(ids[1]) == 200
        more(1)
        assert status(ids[1]) == 404 and status(ids[2]) == 200
    assert len(Stored(hf).rows('transport_sessions', 'ended_at IS NULL')) == 4096
