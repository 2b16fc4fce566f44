# SPDX-License-Identifier: Apache-2.0
"""Processes that nobody calls: they stay while a client of their session is connected, else they end.

The fault point makes the time that an idle process may stay nothing at all.  A process without a client that ends
proves that the others were looked at and left alone."""
import pytest

from commands import is_alive
from harness import Stream, wait_for
from test_children import FULL, PER_OWNER, RECYCLED
from test_stdio import pipe  # noqa: F401 pylint: disable=unused-import

IMPATIENT = {'HOLDFAST_FAULT': 'upstream.impatient:1+'}


@pytest.fixture
def up(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    return holdfast({'up': entry}, env=IMPATIENT), record


def listen(client):
    """The standalone stream of a client, open."""
    connection = client.holdfast.connection()
    connection.send(connection.head_bytes('GET', client.path, {**client.headers_for('GET', {}), 'Accept': 'text/event-stream'}, b''))
    stream = Stream(connection)
    assert stream.status == 200
    return stream


def pid_of(client):
    return client.call('counter').result['structuredContent']['pid']


def see_one_end(hf):
    """A process whose client is not connected ends."""
    pid = pid_of(hf.client('/mcp/up').connect())
    wait_for(lambda: not is_alive(pid), 'a process without a client to end')


def test_idle_process__stays_while_its_client_has_a_stream_open(up):
    hf, _ = up
    client = hf.client('/mcp/up').connect()
    stream = listen(client)
    pid = pid_of(client)
    see_one_end(hf)
    see_one_end(hf)
    assert is_alive(pid) and client.call('counter').text == '2'
    stream.close()  # it may come back: it is waited for, as long as its transport stands
    assert client.delete().status in (200, 204)
    wait_for(lambda: not is_alive(pid), 'the process to end after its client')


def test_idle_process__that_was_ended_is_told_with_the_next_result(up):
    hf, _ = up
    client = hf.client('/mcp/up').connect()
    pid = pid_of(client)
    wait_for(lambda: not is_alive(pid), 'a process without a client to end')
    reply = client.call('counter')
    assert reply.text == '1' and reply.result['_meta']['holdfast/state-lost']['reason'] == 'child_recycled'
    assert reply.result['content'][-1]['text'] == RECYCLED


@pytest.mark.parametrize('modern', [False, True])
@pytest.mark.parametrize('handshake', [False, True])
def test_idle_process__stays_while_its_pipe_is_open(up, pipe, handshake, modern):  # noqa: F811
    hf, record = up
    one = pipe(hf)
    if handshake:
        one.initialize()
    one.call('counter', modern=modern)
    pid = record.starts()[-1]
    see_one_end(hf)
    see_one_end(hf)
    assert is_alive(pid) and one.call('counter', modern=modern) == '2'
    assert one.close()[0] == 0
    wait_for(lambda: not is_alive(pid), 'the process to end after its pipe')


def test_idle_process_of_all__stays_while_any_client_is_connected(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never', share='all')
    other, _ = stdio_server('other', handles='never')
    hf = holdfast({'up': entry, 'other': other}, env=IMPATIENT)
    client = hf.client('/mcp/up').connect()
    stream = listen(client)
    assert client.call('counter').text == '1'
    pid = record.starts()[-1]
    gone = pid_of(hf.client('/mcp/other').connect())
    wait_for(lambda: not is_alive(gone), 'a process without a client to end')
    assert is_alive(pid) and client.call('counter').text == '2'
    stream.close()
    assert client.delete().status in (200, 204)
    wait_for(lambda: not is_alive(pid), 'the process to end after the last client')


def test_full_house__does_not_take_the_process_of_a_connected_client(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    clients = [hf.client('/mcp/up').connect() for _ in range(PER_OWNER + 1)]
    streams = [listen(client) for client in clients[:PER_OWNER]]
    assert [client.call('counter').text for client in clients[:PER_OWNER]] == ['1'] * PER_OWNER
    assert clients[PER_OWNER].call('counter').error['message'] == FULL
    streams[3].close()
    wait_for(lambda: 'result' in clients[PER_OWNER].call('counter').json, 'the place of a client that left')
    for n in set(range(PER_OWNER)) - {3}:
        assert clients[n].call('counter').text == '2'
        streams[n].close()
