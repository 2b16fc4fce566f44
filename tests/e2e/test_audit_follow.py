# SPDX-License-Identifier: Apache-2.0
"""Following the audit: every event once and in order, from the store and then as it commits."""
import json
import os
import signal
import subprocess
import threading
import time

import pytest

import harness
from commands import command_env, events, run
from harness import wait_for
from postgres import shared_keys
from watchers import Watcher


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


def assert_whole(hf, *streams):
    """Each stream has what the store has, each event once and in the same order."""
    whole = [one['id'] for one in events(hf, bodies=False)]
    for stream in streams:
        stream.wait(whole[-1], 20)
        assert stream.ids[:len(whole)] == whole


def test_follow__500_calls_come_once_and_in_order(hf, opened):
    hf.client('/mcp/up').call('echo', {'text': 'before'})
    stream, tail = opened(Watcher(hf, over_socket=True)), opened(Tail(hf, '-n', '5'))
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
        streams.append(opened(Watcher(hf, over_socket=True)))
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
