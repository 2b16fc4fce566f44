# SPDX-License-Identifier: Apache-2.0
"""Following the audit: every event once and in order, from the store and then as it commits."""
import json
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

import harness
from commands import command_env, control, events, run
from harness import wait_for
from postgres import shared_keys


class Stream:
    """GET /control/follow, read by a thread or not at all."""

    def __init__(self, hf, after='0', reads=True):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.path.join(hf.data, 'holdfast.sock'))
        self.socket.sendall(f'GET /control/follow?after={after} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode())
        self.lines, self.ended = [], False
        self.thread = threading.Thread(target=self.read, daemon=True)
        if reads:
            self.thread.start()

    def read(self):
        with self.socket.makefile('rb') as source:
            while source.readline().strip():
                pass
            rest = b''
            while size := int(source.readline() or b'0', 16):
                rest += source.read(size)
                source.readline()
                *whole, rest = rest.split(b'\n')
                self.lines += [json.loads(line) for line in whole if line]
            self.ended = True

    def ids(self):
        return [line['id'] for line in self.lines if 'id' in line]

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        self.socket.close()


class Tail:
    """holdfast audit tail --follow --json, read by a thread."""

    def __init__(self, hf, *args):
        self.process = subprocess.Popen([harness.BINARY, 'audit', 'tail', '--follow', '--json', '--data', hf.data, *args],
                                        env=command_env(hf), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.rows = []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            self.rows.append(json.loads(line))

    def close(self):
        self.process.kill()
        self.process.wait()
        self.thread.join(10)
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def hf(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never', share='all')
    return holdfast({'up': entry})


@pytest.fixture
def opened():
    """Things to close."""
    found = []
    yield lambda one: found.append(one) or one
    for one in found:
        one.close()


def call_many(hf, n, threads=4):
    """Calls on several connections at once; the longest of them, in seconds."""
    longest = []

    def some():
        client = hf.client('/mcp/up').connect()
        for number in range(n // threads):
            began = time.monotonic()
            client.call('echo', {'text': str(number)})
            longest.append(time.monotonic() - began)

    workers = [threading.Thread(target=some) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(longest) == n // threads * threads
    return max(longest)


def last_id(hf):
    return events(hf, bodies=False)[-1]['id']


def assert_whole(hf, *streams):
    """Each stream has what the store has, each event once and in the same order."""
    whole = [one['id'] for one in events(hf, bodies=False)]
    for stream in streams:
        wait_for(lambda stream=stream: whole[-1] in stream.ids(), 'the last event', 20)
        assert stream.ids()[:len(whole)] == whole


def test_follow__500_calls_come_once_and_in_order(hf, opened):
    hf.client('/mcp/up').call('echo', {'text': 'before'})
    stream, tail = opened(Stream(hf)), opened(Tail(hf, '-n', '5'))
    wait_for(lambda: tail.rows, 'the list before', 10)
    call_many(hf, 500)
    assert_whole(hf, stream)
    wait_for(lambda: len(tail.rows) >= 501, 'the calls', 20)
    ended = [one['exec'] for one in events(hf, bodies=False) if one['kind'] == 'outcome']
    assert [row['id'] for row in tail.rows] == ended


def test_follow__a_follower_that_starts_under_load_misses_nothing(hf, opened):
    worker = threading.Thread(target=call_many, args=(hf, 600))
    worker.start()
    streams = []
    while worker.is_alive() and len(streams) < 50:
        streams.append(opened(Stream(hf)))
        time.sleep(0.01)
    worker.join()
    assert_whole(hf, *streams)


def test_follow__goes_on_after_a_kill(hf, opened):
    tail = opened(Tail(hf))
    for number in range(3):
        call_many(hf, 20)
        wait_for(lambda: len(tail.rows) >= 20 * (number + 1), 'the calls of this run', 20)
        hf.restart()
    call_many(hf, 20)
    wait_for(lambda: len(tail.rows) >= 80, 'the calls after the last restart', 20)
    time.sleep(0.3)
    ids = [row['id'] for row in tail.rows]
    assert len(ids) == len(set(ids)) == 80 and len({one.split('.')[0] for one in ids}) == 4


def test_follow__begun_in_the_middle_of_calls_shows_each_end_once(hf, opened):
    """The list and what follows it overlap: a call that ended between the two is in one of them."""
    over = threading.Event()

    def work():
        while not over.is_set():
            hf.client('/mcp/up').call('echo', {'text': 'x'})
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    tails = []
    for _ in range(5):
        tails.append(opened(Tail(hf)))
        time.sleep(0.1)
    time.sleep(0.5)
    over.set()
    for thread in threads:
        thread.join(20)
    last = max((e for e in events(hf, bodies=False) if e['kind'] == 'outcome'), key=lambda e: int(e['id'].split('.')[1]))
    for tail in tails:
        wait_for(lambda t=tail: last['exec'] in [row['id'] for row in t.rows], 'the last call', 20)
        ended = [row['id'] for row in tail.rows if row['outcome'] != 'open']
        assert len(ended) == len(set(ended))
        whole = [e['exec'] for e in events(hf, bodies=False) if e['kind'] == 'outcome']
        assert ended and set(ended) == set(whole[len(whole) - len(ended):])


def test_follow__a_reader_that_does_not_read_is_cut_off_and_delays_nothing(hf, opened):
    alone = call_many(hf, 100)
    idle = opened(Stream(hf, reads=False))
    busy = call_many(hf, 1400)
    assert busy < max(20 * alone, 2), f'{busy} s instead of {alone} s'
    last = last_id(hf)
    idle.thread.start()
    wait_for(lambda: idle.ended, 'the end of the stream', 20)
    assert list(idle.lines[-1]) == ['resync'] and 'ask again with the last id' in idle.lines[-1]['resync']
    found = idle.ids()
    assert last not in found
    whole = [one['id'] for one in events(hf, bodies=False)]
    assert found == whole[:len(found)]
    again = opened(Stream(hf, after=found[-1]))
    wait_for(lambda: last in again.ids(), 'the rest', 20)
    assert again.ids()[:len(whole) - len(found)] == whole[len(found):]


def test_follow__ends_with_the_daemon_and_does_not_delay_its_stop(hf, opened):
    stream = opened(Stream(hf))
    hf.client('/mcp/up').call('echo', {'text': 'one'})
    wait_for(lambda: len(stream.ids()) >= 2, 'the call', 10)
    began = time.monotonic()
    hf.stop()
    assert time.monotonic() - began < 10
    stream.thread.join(10)
    assert not stream.thread.is_alive()
    hf.start()


@pytest.mark.parametrize('words', [('tail',), ('audit', 'tail', '--follow'), ('sessions', 'watch'), ('servers', 'logs', 'up', '-f')])
def test_follow__ends_when_its_reader_is_gone_though_nothing_happens(hf, words):
    hf.client('/mcp/up').connect().call('echo', {'text': 'a line'})
    ours, theirs = os.pipe()
    with subprocess.Popen([harness.BINARY, *words, '--data', hf.data], env=command_env(hf), stdout=theirs) as follower:
        os.close(theirs)
        if words[0] != 'servers':  # the server has written nothing
            assert os.read(ours, 1)
        os.close(ours)
        try:
            assert follower.wait(harness.DEADLINE_S) in (0, 1, -signal.SIGPIPE)
        finally:
            follower.kill()


def test_follow__needs_the_id_to_begin_after(hf):
    assert control(hf, '/control/follow?after=soon').status == 400
    assert control(hf, '/control/follow').status == 400


def test_follow__without_a_daemon_reads_the_store(hf, opened):
    hf.client('/mcp/up').call('echo', {'text': 'one'})
    hf.stop()
    tail = opened(Tail(hf))
    wait_for(lambda: len(tail.rows) == 1, 'the list', 10)
    hf.start()
    hf.client('/mcp/up').call('counter')
    wait_for(lambda: len(tail.rows) == 2, 'the new call', 10)
    assert tail.rows[1]['tool'] == 'counter' and run(hf, 'audit', 'verify').returncode == 0


def test_follow__shows_the_calls_of_all_nodes_on_a_shared_database(holdfast, cluster, stdio_server, opened):
    """The first node has the lower writer number, so its new ids are less than those already shown."""
    url = cluster.database()
    entry, _ = stdio_server('up', handles='never')
    first = holdfast({'up': entry}, env={'DATABASE_URL': url})
    second = holdfast({'up': entry}, env={'DATABASE_URL': url, **shared_keys(first)})
    for node in (first, second):
        node.client('/mcp/up').call('echo', {'text': 'before'})
    assert control(first, '/control/follow?after=0').status == 409
    tail = opened(Tail(first))
    wait_for(lambda: len(tail.rows) == 2, 'the list', 10)
    for number, node in enumerate((first, second, first), 3):
        node.client('/mcp/up').call('counter')
        wait_for(lambda: len(tail.rows) == number, 'the new call', 10)
    second.restart()  # a new writer
    call_many(second, 20)
    call_many(first, 20)
    wait_for(lambda: len(tail.rows) == 45, 'the calls of both', 20)
    ids = [row['id'] for row in tail.rows]
    assert len(set(ids)) == 45 and len({one.split('.')[0] for one in ids}) == 3
