# SPDX-License-Identifier: Apache-2.0
"""Clients that keep their own account of what they were told, and the comparison of that with what
the server received and what the database says."""
import json
import os
import sqlite3
import threading
import time

from commands import Executions, run
from harness import Connection, dump, wait_for

REFUSED = (503,)


class Ledger:
    """Several clients on one Holdfast (or several), calling as fast as they are answered."""

    def __init__(self, nodes, record, workers=4, path='/mcp/up'):
        self.nodes, self.record, self.path = nodes, record, path
        self.told, self.refused, self.ran_unrecorded, self.unknown = set(), set(), set(), set()
        self.slowest = 0.0
        self.problems, self.threads, self.lock = [], [], threading.Lock()
        self.stopping = threading.Event()
        self.workers, self.rounds = workers, 0

    def start(self):
        self.stopping.clear()
        self.rounds += 1
        self.threads = [threading.Thread(target=self.work, args=(self.nodes[n % len(self.nodes)], f'{self.rounds}.{n}'))
                        for n in range(self.workers)]
        for thread in self.threads:
            thread.start()
        return self

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)
        assert not any(t.is_alive() for t in self.threads), 'a client still waits for its answer'
        assert not self.problems, self.problems[:5]
        return self

    def run_for(self, seconds):
        self.start()
        time.sleep(seconds)  # the load itself is what is wanted
        return self.stop()

    def work(self, hf, name):
        n = 0
        try:
            while not self.stopping.is_set():
                n += 1
                self.call(hf, f'{name}.{n}', n)
        except Exception as e:  # pylint: disable=broad-except
            self.problems.append(f'{name}: {e!r}')

    def call(self, hf, key, ident):
        params = {'name': 'echo', 'arguments': {'text': key}}
        body = dump({'jsonrpc': '2.0', 'id': ident, 'method': 'tools/call', 'params': params}).encode()
        began = time.monotonic()
        with Connection(hf.port, timeout=30) as connection:
            reply = connection.request('POST', self.path, {'Content-Type': 'application/json', 'mcp-client-id': key.rsplit('.', 1)[0],
                                                           'Accept': 'application/json, text/event-stream'}, body)
        took = time.monotonic() - began
        message = reply.json()
        with self.lock:
            self.slowest = max(self.slowest, took)
            if reply.status == 200 and message.get('result', {}).get('content', [{}])[0].get('text') == key:
                self.told.add(key)
            elif reply.status in REFUSED and 'The call ran' in message['error']['message']:
                self.ran_unrecorded.add(key)
            elif reply.status in REFUSED:
                self.refused.add(key)
                self.stopping.wait(0.005)  # as a client that minds Retry-After, if a hasty one
            else:
                self.problems.append(f'{key}: {reply!r}')

    def received(self):
        """key -> how often the server received it."""
        times = {}
        for line in self.record.of('tools/call'):
            key = json.loads(line)['params']['arguments'].get('text')
            times[key] = times.get(key, 0) + 1
        return times

    def check(self, hf=None):
        """The accounts agree; returns {key: outcome}."""
        hf = hf or self.nodes[0]
        books = Executions()

        def closed():
            books.read(hf)
            return set(books.intents) <= set(books.outcomes)
        wait_for(closed, 'an outcome for every intent')
        recorded = {}
        for intent, outcome in books.of_tool('echo'):
            key = json.loads(intent['body'])['arguments']['text'] if 'body' in intent else None
            recorded.setdefault(key, []).append(outcome)
        received = self.received()
        twice = {k: n for k, n in received.items() if n > 1}
        assert not twice, f'executed twice: {twice}'
        lost = [k for k in self.told if recorded.get(k) != ['ok']]
        assert not lost, f'acknowledged but not recorded once as ok: {[(k, recorded.get(k)) for k in lost[:5]]}'
        assert self.told <= set(received)
        unrecorded = [k for k in received if k not in recorded]
        assert not unrecorded, f'executed without a record: {unrecorded[:5]}'
        ran = [k for k in self.refused if k in received]
        assert not ran, f'refused, yet executed: {ran[:5]}'
        wrong = [(k, recorded[k]) for k in self.refused if k in recorded and recorded[k] != ['refused']]
        assert not wrong, f'refused, yet recorded otherwise: {wrong[:5]}'
        assert not [k for k in self.ran_unrecorded if recorded.get(k) != ['ok']]
        return recorded


def spooled(hf):
    """How many outcomes lie in the spool."""
    path = os.path.join(hf.data, 'spool.db')
    if not os.path.exists(path):
        return 0
    db = sqlite3.connect(path, timeout=5)
    try:
        return db.execute('SELECT count(*) FROM outcomes').fetchone()[0]
    finally:
        db.close()


def verify(hf, **env):
    done = run(hf, 'audit', 'verify', env=env)
    assert done.returncode == 0, done.stdout + done.stderr
