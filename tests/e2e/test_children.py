# SPDX-License-Identifier: Apache-2.0
"""Child processes: how many there may be, and what bad ones may do."""
import json
import re
import os
import signal
import threading
import time

import keys
import pytest

from commands import children_of, is_alive, outcomes, run_json
from harness import LONG, Connection, wait_for

RECYCLED = ('[holdfast: up was idle and Holdfast ended it to free its place; it was started again and its earlier state '
            'is lost]')
LOST = '[holdfast: Holdfast was restarted; the earlier state of up is lost]'


FULL = ('every process of up is busy or has a connected client (at most 16 for one owner, 64 for one server, 128 in all); '
        'end a conversation that uses it, or try again shortly')
PER_OWNER = 16


def sessions(hf, n):
    return [hf.client('/mcp/up').connect() for _ in range(n)]


def live(record):
    return [pid for pid in record.starts() if is_alive(pid)]


def begin(client, tool, arguments=None, ident='busy'):
    """Sends a call and leaves it under way; gives its connection."""
    connection = Connection(client.holdfast.port)
    params = {'name': tool, 'arguments': arguments or {}}
    body = json.dumps({'jsonrpc': '2.0', 'id': ident, 'method': 'tools/call', 'params': params}).encode()
    connection.send(connection.head_bytes('POST', client.path, client.headers_for('tools/call', params), body) + body)
    return connection


def cancel(client, ident='busy'):
    assert client.notify('notifications/cancelled', {'requestId': ident}).status == 202


# How many.

def test_one_session_too_many__ends_the_least_recently_used_idle_child(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    clients = sessions(hf, PER_OWNER + 1)
    for client in clients[:PER_OWNER]:
        assert client.call('counter').text == '1'
    assert clients[0].call('counter').text == '2'  # now clients[1] is the oldest
    wait_for(lambda: len(live(record)) == PER_OWNER, 'a child for each session')
    last = clients[PER_OWNER].call('counter')
    assert last.text == '1' and 'holdfast/state-lost' not in last.result.get('_meta', {})
    wait_for(lambda: len(live(record)) == PER_OWNER, 'one of the children to end')
    for n in (0, 2, 3):
        assert clients[n].call('counter').text == ('3' if n == 0 else '2')
    reply = clients[1].call('counter')
    assert reply.text == '1'
    lost = reply.result['_meta']['holdfast/state-lost']
    assert lost['server'] == 'up' and lost['reason'] == 'child_recycled' and lost['at']
    assert reply.result['content'][-1]['text'] == RECYCLED
    assert 'holdfast/state-lost' not in clients[1].call('counter').result.get('_meta', {})


def test_full_house__waits_five_seconds_and_is_refused_by_name(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    clients = sessions(hf, PER_OWNER + 1)
    busy = [begin(client, 'hang') for client in clients[:PER_OWNER]]
    record.wait('tools/call', PER_OWNER)
    reply = clients[PER_OWNER].call('echo', {'text': 'x'}, ident='last')
    assert reply.status == 200 and reply.json['id'] == 'last'
    assert reply.code == -32000 and reply.error['message'] == FULL
    assert len(record.of('tools/call')) == PER_OWNER
    assert outcomes(hf, 'echo') == ['refused']
    for client, connection in zip(clients, busy):
        cancel(client)
        connection.close()


def test_full_house__gives_a_place_that_comes_free(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    clients = sessions(hf, PER_OWNER + 1)
    busy = [begin(client, 'hang') for client in clients[:PER_OWNER]]
    record.wait('tools/call', PER_OWNER)
    waiting = begin(clients[PER_OWNER], 'counter')
    cancel(clients[2])
    reply = waiting.read_response()
    assert reply.status == 200 and reply.json()['result']['content'][0]['text'] == '1'
    for n in set(range(PER_OWNER)) - {2}:
        cancel(clients[n])
    for connection in busy:
        connection.close()


def test_sessions__do_not_wait_for_each_other(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    slow, quick = sessions(hf, 2)
    connection = begin(slow, 'hang')
    record.wait('tools/call')
    for n in range(1, 4):
        assert quick.call('counter').text == str(n)
    assert quick.call('crash').json.get('error')
    assert not connection.is_closed(0.2)
    assert hf.client('/mcp/up').connect().call('counter').text == '1'
    cancel(slow)
    assert slow.call('counter').text == '1'  # the hung child itself lives on
    assert quick.call('counter').result['_meta']['holdfast/state-lost']
    connection.close()


# What bad ones may do.

def test_no_answer__is_a_timeout_in_words_and_in_the_record(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never', timeout=1)
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    assert client.call('counter').text == '1'
    began = time.monotonic()
    reply = client.call('hang', ident='t')
    assert 0.8 < time.monotonic() - began < 5
    assert reply.status == 200 and reply.json['id'] == 't' and 'within 1 s' in reply.error['message']
    assert outcomes(hf, 'hang') == ['timeout']
    sent = json.loads(record.of('tools/call')[-1])['id']
    assert json.loads(record.wait('notifications/cancelled')[-1])['params']['requestId'] == sent
    assert client.call('counter').text == '2'  # one silence does not cost the state


def test_no_answer__three_times_ends_the_child(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never', timeout=1)
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    client.call('counter')
    pid = record.starts()[-1]
    threads = [threading.Thread(target=client.call, args=('hang', {}), kwargs={'ident': f'h{n}'}) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    wait_for(lambda: not is_alive(pid), 'the silent child to end')
    reply = client.call('counter')
    assert reply.text == '1' and reply.result['_meta']['holdfast/state-lost']


def test_exit_in_a_call__is_upstream_lost(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    reply = client.call('crash', ident='c')
    assert reply.status == 200 and reply.json['id'] == 'c' and reply.code == -32000
    assert 'exited with status 3' in reply.error['message']
    assert outcomes(hf, 'crash') == ['upstream_lost']
    assert len(record.of('tools/call')) == 1, 'a tool that is not read-only was sent twice'


def test_exit_in_a_call__takes_the_other_calls_of_that_child_along(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    hanging = [begin(client, 'hang', ident=f'h{n}') for n in range(3)]
    record.wait('tools/call', 3)
    client.call('crash')
    for n, connection in enumerate(hanging):
        reply = connection.read_response()
        assert reply.status == 200 and reply.json()['id'] == f'h{n}' and 'error' in reply.json()
        connection.close()
    assert outcomes(hf, 'hang') == ['upstream_lost'] * 3


def test_lost_state__is_told_with_the_next_result_not_spent_on_an_error(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never', timeout=1)
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    assert client.call('counter').text == '1'
    hf.restart()
    assert client.call('error').error['message'] == 'told to fail'
    assert 'within 1 s' in client.call('hang').error['message']
    connection = begin(client, 'slow', {'steps': 1, 'delay_ms': 100})
    connection.close()
    wait_for(lambda: outcomes(hf, 'slow') == ['ok'], 'the outcome of a call whose client has gone')
    reply = client.call('fail')
    assert reply.result['isError'] is True and reply.result['content'][-1]['text'] == LOST
    assert 'holdfast/state-lost' not in client.call('counter').result.get('_meta', {})


def test_silent_server__is_given_up_in_words(holdfast):
    hf = holdfast({'up': {'command': 'sleep', 'args': ['600'], 'timeout': 1}})
    began = time.monotonic()
    reply = hf.client('/mcp/up').call('echo', ident='s')
    assert time.monotonic() - began < 10
    assert reply.json['id'] == 's' and 'up' in reply.error['message'] and 'within 1 s' in reply.error['message']
    assert hf.get('/readyz').status == 200


def test_crash_loop__backs_off(holdfast, stdio_server):
    entry, record = stdio_server('up', '--exit-at-start', handles='never')
    hf = holdfast({'up': entry})
    lasts = 60 if LONG else 4
    end, calls = time.monotonic() + lasts, 0
    while time.monotonic() < end:
        reply = hf.client('/mcp/up').call('echo', ident='down')
        calls += 1
        assert reply.json['id'] == 'down' and 'up' in reply.error['message'], repr(reply)
        time.sleep(0.02)
    # The waits double from 0.2 s: five tries in the first 4 s, nine in a minute, two processes each.
    assert calls > 3 * len(record.starts()) and len(record.starts()) <= (20 if LONG else 12)
    assert 'told to exit' in reply.error['message'] or 'exited with status 1' in reply.error['message']


def test_crash_loop__does_not_touch_other_servers(holdfast, stdio_server):
    (bad, _), (good, _) = stdio_server('bad', '--exit-at-start'), stdio_server('good', handles='never')
    hf = holdfast({'bad': bad, 'good': good})
    client = hf.client('/mcp/good').connect()
    for n in range(1, 6):
        assert 'error' in hf.client('/mcp/bad').call('echo').json
        assert client.call('counter').text == str(n)


def test_server_that_recovers__is_used_again(holdfast, stdio_server, tmp_path):
    entry, _ = stdio_server('up', handles='never')
    gate = tmp_path / 'gate'
    entry['args'] = ['-c', f'test -e {gate} || exit 1; exec "$@"', 'sh', entry['command'], *entry['args']]
    entry['command'] = '/bin/sh'
    hf = holdfast({'up': entry})
    assert 'error' in hf.client('/mcp/up').call('echo').json
    gate.touch()
    wait_for(lambda: 'result' in hf.client('/mcp/up').call('echo', {'text': 'x'}).json, 'the server to be tried again')


def test_command_that_does_not_exist__is_told(holdfast):
    hf = holdfast({'up': {'command': '/no/such/command'}})
    reply = hf.client('/mcp/up').call('echo')
    assert '/no/such/command' in reply.error['message'] or 'No such file' in reply.error['message'], repr(reply)


def test_garbage_on_stdout__is_dropped(holdfast, stdio_server):
    entry, _ = stdio_server('up', '--garbage', '50', handles='never')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    assert [client.call('counter').text for _ in range(3)] == ['1', '2', '3']
    reply = client.call('slow', {'steps': 2}, meta={'progressToken': 'p'})
    assert reply.text == '2 steps' and all(m['params']['progressToken'] == 'p' for m in reply.before)
    assert hf.wait_log(lambda l: 'not JSON' in str(l.get('msg')), 'a word about it')['server'] == 'up'


def test_stderr_flood__is_drained_and_bounded(holdfast, stdio_server):
    entry, _ = stdio_server('up', '--stderr', '4000000', handles='never')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    assert [client.call('counter').text for _ in range(3)] == ['1', '2', '3']
    assert sum(len(str(line)) for line in hf.log()) < 2000000


def test_closed_stdout__ends_the_child_and_the_call(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    assert client.call('counter').text == '1'
    reply = client.call('mute')
    assert 'error' in reply.json
    assert client.call('counter').text == '1'


@pytest.mark.parametrize('size,fits', [(4 * 1024 * 1024 - 200, True), (4 * 1024 * 1024 + 1, False)])
def test_line__longer_than_the_limit_ends_the_child(holdfast, stdio_server, size, fits):
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    reply = client.call('big', {'n': size})
    if fits:
        assert len(reply.text) == size
    else:
        assert 'longer' in reply.error['message'], repr(reply)
        assert client.call('counter').text == '1'


# The keeper: what starts them all.

def keeper_of(hf):
    """(the zygote, its keeper or None)."""
    zygote, = children_of(hf.process.pid)
    return zygote, next(iter(children_of(zygote)), None)


def test_dead_keeper__is_replaced_and_servers_start_again(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    assert client.call('counter').text == '1'
    _, keeper = keeper_of(hf)
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: keeper_of(hf)[1] not in (None, keeper), 'another keeper')
    wait_for(lambda: client.call('echo').status == 200 and 'error' not in client.call('echo').json, 'calls to be served')
    assert client.call('counter').text.startswith('1')
    assert hf.get('/readyz').status == 200
    assert len(live(record)) == 1


def test_dead_keeper__without_a_successor_is_not_ready(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    zygote, keeper = keeper_of(hf)
    os.kill(zygote, signal.SIGKILL)
    wait_for(lambda: 'the process that forks keepers ended' in hf.text(), 'the loss to be told')
    assert hf.get('/readyz').status == 200
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: hf.get('/readyz').status == 503, '/readyz to say 503')
    assert 'keeper' in hf.get('/readyz').json()['reason']


def pids(record):
    return len(record.starts())


def test_crash_on_every_call__is_refused_after_five_and_costs_no_start(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    lasting = hf.client('/mcp/up').connect()
    assert lasting.call('counter').text == '1'
    client = hf.client('/mcp/up').connect()
    for _ in range(5):
        assert 'exited with status' in client.call('crash').error['message']
    started = pids(record)
    reply = client.call('counter')
    assert re.match(r'up ended 5 times within 60 s and is not started again for \d+ s; look at its log, or call it otherwise: '
                    r'the server "up" exited with status', reply.error['message']), reply
    assert hf.client('/mcp/up').connect().call('counter').error['message'].startswith('up ended 5 times')
    assert pids(record) == started and lasting.call('counter').text == '2', 'what runs goes on'
    up = next(s for s in run_json(hf, 'servers', 'list') if s['name'] == 'up')
    assert up['state'] == 'degraded' and up['health']['reason'] == 'its process ended again and again', up


def test_crashes_of_one_owner__do_not_take_the_server_from_another(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    one, other = (keys.create(hf).client(hf, '/mcp/up').connect() for _ in range(2))
    for _ in range(5):
        one.call('crash')
    assert one.call('counter').error['message'].startswith('up ended 5 times')
    assert other.call('counter').text == '1'
