# SPDX-License-Identifier: Apache-2.0
"""A store that stops writing: calls are refused before they leave, reads go on, and when it writes
again nobody has to do anything.  Faults are those of src/base/fault.h."""
import time

import pytest

from commands import Executions, run_json
from harness import Connection, wait_for

# Commits that a start takes are fewer; calls are made until the fault is reached.
FIRST = 40


def fault(points):
    return {'HOLDFAST_FAULT': ','.join(f'store.commit:{p}' for p in points)}


def call_until_refused(client):
    """(keys acknowledged, the reply that was not)."""
    acknowledged = []
    for n in range(4 * FIRST):
        reply = client.call('counter', {'key': f'before {n}'})
        if reply.status != 200:
            return acknowledged, reply
        acknowledged.append(f'before {n}')
    raise AssertionError('the fault was never reached; is this a build with -Dfaults=true?')


def keys_at(record):
    import json
    return [json.loads(m)['params']['arguments']['key'] for m in record.of('tools/call')]


@pytest.mark.parametrize('kind', ['stdio', 'http'])
def test_store_gone__refuses_calls_before_they_leave(holdfast, stdio_server, http_server, kind):
    if kind == 'stdio':
        entry, record = stdio_server('up', handles='never')
    else:
        server = http_server('up')
        entry, record = server.entry(handles='never'), server.record
    hf = holdfast({'up': entry}, env=fault([f'{FIRST}+']))
    client = hf.client('/mcp/up').connect()
    acknowledged, refused = call_until_refused(client)
    assert refused.status == 503 and refused.code == -32000
    received = keys_at(record)
    # The first refusal may be of an outcome: that call ran, and its reply says so.
    assert received[:len(acknowledged)] == acknowledged and len(received) <= len(acknowledged) + 1
    if len(received) > len(acknowledged):
        assert 'The call ran' in refused.error['message']
    for n in range(10):
        reply = client.call('counter', {'key': f'after {n}'}, ident=f'r{n}')
        assert reply.status == 503 and reply.json['id'] == f'r{n}' and reply.code == -32000, repr(reply)
        assert reply.header('Retry-After') and reply.error['message']
        assert 'nothing was executed' in reply.error['message'] and 'audit chain' not in reply.error['message']
    assert keys_at(record) == received
    assert hf.get('/readyz').status == 503
    assert hf.text().count('audit record not written') <= 2, 'once for intents, once for other records'
    check_reads(hf, client, acknowledged)


def check_reads(hf, client, acknowledged):
    """What needs no write still works."""
    assert hf.get('/healthz').status == 200
    assert b'holdfast_store_writes{what="failures"}' in hf.get('/metrics').body
    assert client.rpc('ping').result == {}
    assert 'counter' in [t['name'] for t in client.rpc('tools/list').result['tools']]
    assert hf.client('/mcp/up').initialize(ident='i').status == 503
    rows = run_json(hf, 'audit', 'list', '--outcome', 'ok', '--limit', '500')
    assert len([r for r in rows if r['tool'] == 'counter']) == len(acknowledged)


def test_store_back__serves_again_by_itself(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry}, env=fault([str(FIRST + n) for n in range(4)]))
    client = hf.client('/mcp/up').connect()
    acknowledged, refused = call_until_refused(client)
    assert refused.status == 503
    wait_for(lambda: hf.get('/readyz').status == 200, '/readyz to say 200 again')
    assert wait_for(lambda: client.call('counter', {'key': 'again'}).status == 200, 'calls to be served')
    executions = Executions()

    def all_closed():
        executions.read(hf)
        return set(executions.intents) <= set(executions.outcomes)
    wait_for(all_closed, 'an outcome for every call that ran')
    words = [word for _, word in executions.of_tool('counter')]
    assert words.count('ok') == len(words) >= len(acknowledged) + 1
    assert len(keys_at(record)) == len(words)


def test_store_gone__at_the_start_is_refused_in_words(holdfast):
    hf = holdfast(start=False, env=fault(['1+']))
    hf.start(wait=False)
    assert hf.process.wait(20) not in (0, 99)
    hf.readers[-1].join(20)
    hf.check_sanitizers()
    assert 'cannot start' in hf.text() and 'fault injected' in hf.text()


def test_store_gone__does_not_slow_refusals_down(holdfast):
    hf = holdfast(env=fault([f'{FIRST}+']))
    client = hf.client('/mcp/sample')
    call_until_refused(client)
    began = time.monotonic()
    with Connection(hf.port) as connection:
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"counter","arguments":{}}}'
        for _ in range(50):
            assert connection.request('POST', '/mcp/sample', {}, body).status == 503
    assert time.monotonic() - began < 10


# Every commit is followed by a checkpoint; from the 30th sync of the database on they fail.
SYNCS_BEFORE = 30


def test_failed_sync__refuses_calls_and_says_so(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry}, env={'HOLDFAST_FAULT': f'store.checkpoint:1+,store.sync_db:{SYNCS_BEFORE}+'})
    client = hf.client('/mcp/up').connect()
    call_until_refused(client)
    received = keys_at(record)
    for n in range(5):
        assert client.call('counter', {'key': f'after {n}'}).status == 503
    assert keys_at(record) == received
    answer = hf.get('/readyz')
    assert answer.status == 503 and 'disk reported an error' in answer.json()['reason']
    assert hf.text().count('the disk failed during a write to the database') == 1


def test_failed_sync__is_made_up_for_when_the_disk_works_again(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    points = ','.join(f'store.sync_db:{SYNCS_BEFORE + n}' for n in range(4))
    hf = holdfast({'up': entry}, env={'HOLDFAST_FAULT': f'store.checkpoint:1+,{points}'})
    client = hf.client('/mcp/up').connect()
    acknowledged, _ = call_until_refused(client)
    wait_for(lambda: hf.get('/readyz').status == 200, '/readyz to say 200 again')
    assert client.call('counter', {'key': 'again'}).status == 200
    rows = run_json(hf, 'audit', 'list', '--outcome', 'ok', '--limit', '500')
    assert len([r for r in rows if r['tool'] == 'counter']) >= len(acknowledged) + 1


def test_wal__that_a_reader_keeps_growing_is_told(holdfast):
    hf = holdfast(env={'HOLDFAST_FAULT': 'store.wal_bound:1+,readyz.wal_bound:1+'})
    assert hf.client('/mcp/sample').call('counter').status == 200
    wait_for(lambda: 'the WAL of the database grows' in hf.text(), 'the warning')
    assert 'transaction open' in hf.get('/readyz').json()['warning']
    size = next(line for line in hf.get('/metrics').body.decode().splitlines() if line.startswith('holdfast_store_wal_bytes '))
    assert int(size.split()[1]) > 0
