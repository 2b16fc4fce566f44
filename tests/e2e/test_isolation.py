# SPDX-License-Identifier: Apache-2.0
"""Nobody gets another's answer or another's state."""
import concurrent.futures
import json

import pytest

from harness import Connection

IDS = (b'0', b'"0"', b'1')


def call_body(ident, name, text):
    return (b'{"jsonrpc":"2.0","id":' + ident + b',"method":"tools/call","params":'
            + json.dumps({'name': name, 'arguments': {'text': text}}).encode() + b'}')


@pytest.mark.parametrize('kind', ['stdio', 'http'])
def test_colliding_ids__of_200_clients_never_cross(holdfast, stdio_server, http_server, kind):
    entry = stdio_server('up', share='all')[0] if kind == 'stdio' else http_server('up').entry(share='all')
    hf = holdfast({'up': entry})

    def client(n):
        with Connection(hf.port) as connection:
            for turn in range(5):
                ident, text = IDS[(n + turn) % len(IDS)], f'client {n} turn {turn}'
                reply = connection.request('POST', '/mcp/up', {}, call_body(ident, 'echo', text))
                assert reply.status == 200, reply
                assert b'"id":' + ident in reply.body, reply
                assert reply.json()['result']['content'][0]['text'] == text, reply
        return True

    with concurrent.futures.ThreadPoolExecutor(max_workers=200) as pool:
        assert all(pool.map(client, range(200)))


def test_colliding_ids__in_one_session_never_cross(holdfast, stdio_server):
    entry, _ = stdio_server('up')
    hf = holdfast({'up': entry})
    owner = hf.client('/mcp/up').connect()

    def one(n):
        reply = hf.client('/mcp/up').rpc_bytes(call_body(b'7', 'echo', f'text {n}'), {'Mcp-Session-Id': owner.session})
        return reply.json['id'] == 7 and reply.text == f'text {n}'

    with concurrent.futures.ThreadPoolExecutor(max_workers=20) as pool:
        assert all(pool.map(one, range(60)))


def test_first_calls__that_arrive_together_share_one_session(holdfast, stdio_server):
    entry, _ = stdio_server('up')
    client = holdfast({'up': entry}).client('/mcp/up').connect()
    with concurrent.futures.ThreadPoolExecutor(max_workers=20) as pool:
        counts = list(pool.map(lambda n: int(client.call('counter', ident=n).text), range(20)))
    assert sorted(counts) == list(range(1, 21))


def test_sessions__count_apart_and_so_does_the_call_without_one(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    first, second = hf.client('/mcp/up').connect(), hf.client('/mcp/up').connect()
    assert first.session != second.session
    assert [first.call('counter').text for _ in range(3)] == ['1', '2', '3']
    assert [second.call('counter').text for _ in range(2)] == ['1', '2']
    bare = hf.client('/mcp/up')
    assert [bare.call('counter').text for _ in range(2)] == ['1', '2']
    assert first.call('counter').text == '4'
    assert len(set(record.starts())) >= 3


def test_sessions__on_an_http_upstream_count_apart(holdfast, http_server):
    hf = holdfast({'up': http_server('up').entry(handles='never')})
    first, second = hf.client('/mcp/up').connect(), hf.client('/mcp/up').connect()
    assert [first.call('counter').text for _ in range(2)] == ['1', '2']
    assert second.call('counter').text == '1'


def test_shared_server__counts_together(holdfast, stdio_server):
    entry, _ = stdio_server('up', share='all')
    hf = holdfast({'up': entry})
    texts = [hf.client('/mcp/up').connect().call('counter').text for _ in range(3)]
    assert texts == ['1', '2', '3']


def test_meta_carrier__names_a_session_of_its_own(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    client = holdfast({'up': entry}).client('/mcp/up')
    assert client.call('counter', meta={'session_id': 'a'}).text == '1'
    assert client.call('counter', meta={'session_id': 'b'}).text == '1'
    assert client.call('counter', meta={'session_id': 'a'}).text == '2'
    assert client.call('counter', meta={'openai/session': 'a'}).text == '1'


def test_client_id__groups_calls_into_one_session(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    ann, bob = hf.client('/mcp/up', headers={'mcp-client-id': 'ann'}), hf.client('/mcp/up', headers={'mcp-client-id': 'bob'})
    assert [ann.call('counter').text, bob.call('counter').text, ann.call('counter').text] == ['1', '1', '2']


def test_cancel__of_anothers_id_changes_nothing(holdfast, stdio_server):
    entry, record = stdio_server('up')
    hf = holdfast({'up': entry})
    victim, other = hf.client('/mcp/up').connect(), hf.client('/mcp/up').connect()
    stream = victim.open('tools/call', {'name': 'slow', 'arguments': {'steps': 3, 'delay_ms': 100},
                                        '_meta': {'progressToken': 1}}, ident=5)
    record.wait('tools/call')
    assert other.notify('notifications/cancelled', {'requestId': 5}).status == 202
    messages = [json.loads(m) for m in iter(stream.message, None)]
    assert messages[-1]['id'] == 5 and 'result' in messages[-1]
    assert not record.of('notifications/cancelled')
    stream.close()
