# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments under load, again and again on one data directory.

After every kill: nothing acknowledged is lost, nothing ran unrecorded or twice, what was under way
reads indeterminate, the chain holds, nothing that Holdfast started lives on, and clients go on with
the sessions they had, told of the state that is gone.  HOLDFAST_SEED repeats a run."""
import json
import os
import random
import threading
import time
import uuid

from commands import Executions, children_of, is_alive, marked, run
from harness import LONG, PEERS, Connection, dump

SEED = int(os.environ.get('HOLDFAST_SEED') or random.SystemRandom().randrange(1 << 32))
KILLS = int(os.environ.get('HOLDFAST_KILLS') or (500 if LONG else 20))
GONE_WITHIN_S = 2.0
LONGEST_LOAD_S = 0.9


class Worker:
    """One client that calls as fast as it is answered, and keeps its own list of what it was told."""

    def __init__(self, hf, name, server, with_session):
        self.hf, self.name, self.server = hf, name, server
        self.client = hf.client(f'/mcp/{server}')
        if with_session:
            self.client.connect()
        self.told = {}          # key -> the text it was answered with
        self.sent = 0
        self.was_told_once = False
        self.adopted = 0        # first results after a restart
        self.problems = []

    def call(self, connection):
        self.sent += 1
        key = f'{self.name}-{self.sent}'
        if self.sent % 4:
            params = {'name': 'raw', 'arguments': {'result': dump({'content': [{'type': 'text', 'text': key}]})}}
        else:
            params = {'name': 'echo', 'arguments': {'text': key}}
        body = dump({'jsonrpc': '2.0', 'id': self.sent, 'method': 'tools/call', 'params': params}).encode()
        reply = connection.request('POST', self.client.path, self.client.headers_for('tools/call', params), body)
        message = reply.json()
        assert reply.status == 200 and 'result' in message, f'{key}: {reply!r}'
        assert message['id'] == self.sent and message['result']['content'][0]['text'] == key, f'{key}: {reply!r}'
        self.told[key] = message['result']
        return message['result']

    def check_news(self, result, is_first):
        """The first result after a restart says that the state of a process was lost, and no other does.  A
        session at an HTTP server goes on."""
        lost = result.get('_meta', {}).get('holdfast/state-lost')
        if is_first and self.was_told_once and self.server == 'up':
            assert lost and lost['server'] == 'up' and lost['reason'] == 'holdfast_restarted', f'{self.name}: {result}'
            line = '[holdfast: Holdfast was restarted; the earlier state of up is lost]'
            assert line in [b.get('text') for b in result['content']], f'{self.name}: {result}'
            self.adopted += 1
        elif not is_first or self.was_told_once:  # else a call that was never answered may have begun the state
            assert lost is None, f'{self.name}: {result}'
            self.adopted += is_first
        self.was_told_once = True

    def run(self, ending, calls=None):
        """Until the connection breaks because the program was killed, or so many calls."""
        is_first = True
        try:
            with Connection(self.hf.port) as connection:
                while calls is None or calls > 0:
                    self.check_news(self.call(connection), is_first)
                    is_first = False
                    calls = calls - 1 if calls is not None else None
        except (OSError, EOFError) as e:
            if not ending.is_set():
                self.problems.append(f'{self.name}: {e!r}')
        except Exception as e:  # pylint: disable=broad-except
            self.problems.append(f'{self.name}: {e!r}')


class Reception:
    """How often an upstream received each key, read on from where the last reading ended."""

    def __init__(self, record):
        self.path, self.offset, self.times = record.path, 0, {}

    def read(self):
        """The keys that have come since."""
        if not os.path.exists(self.path):
            return set()
        with open(self.path, 'rb') as file:
            file.seek(self.offset)
            data = file.read()
        whole, fresh = data.rfind(b'\n') + 1, set()
        self.offset += whole
        for line in data[:whole].split(b'\n'):
            message = json.loads(line.lstrip(b'\x1e')) if line.strip(b'\x1e') else {}
            if message.get('method') == 'tools/call':
                key = key_of(message['params'])
                self.times[key] = self.times.get(key, 0) + 1
                fresh.add(key)
        return fresh


def key_of(params):
    arguments = params['arguments']
    if params['name'] == 'echo':
        return arguments['text']
    return json.loads(arguments['result'])['content'][0]['text']


class Books:
    """The three accounts of what happened: clients', upstreams' and Holdfast's own.  Each check takes in
    what is new since the last; nothing is ever taken back, so that is enough."""

    def __init__(self, hf, workers, records):
        self.hf, self.workers = hf, workers
        self.receptions = [Reception(record) for record in records]
        self.executions, self.by_key, self.seen = Executions(), {}, 0
        self.checked = {worker.name: 0 for worker in workers}

    def words(self, key):
        return [self.executions.outcome(ident) for ident in self.by_key.get(key, [])]

    def read_intents(self):
        """The record is whole after a start: what was open has been closed."""
        intents = list(self.executions.read(self.hf).intents.items())
        for ident, intent in intents[self.seen:]:
            self.by_key.setdefault(key_of(json.loads(intent['body'])), []).append(ident)
            assert self.executions.outcome(ident) in ('ok', 'indeterminate'), (intent, self.executions.outcome(ident))
        self.seen = len(intents)

    def check_told(self, worker):
        for key, result in list(worker.told.items())[self.checked[worker.name]:]:
            assert 'ok' in self.words(key), f'{key} was acknowledged, the record says {self.words(key)}'
            ident = next(i for i in self.by_key[key] if self.executions.outcome(i) == 'ok')
            kept = json.loads(self.executions.outcomes[ident]['body'])
            assert kept['content'][0] == result['content'][0], key
        self.checked[worker.name] = len(worker.told)

    def check_received(self, reception):
        for key in reception.read():
            times, read_only = reception.times[key], int(key.rsplit('-', 1)[1]) % 4 == 0
            assert len(self.words(key)) >= times, f'{key} ran {times} times, recorded {self.words(key)}'
            assert times == 1 or read_only, f'{key} ran {times} times'

    def check(self):
        self.read_intents()
        for worker in self.workers:
            self.check_told(worker)
        for reception in self.receptions:
            self.check_received(reception)

    def indeterminate(self):
        return sum(e['outcome'] == 'indeterminate' for e in self.executions.outcomes.values())


def kill_and_check_descendants(hf, mark):
    keepers = children_of(hf.process.pid)
    hf.process.kill()
    hf.process.wait(20)
    end = time.monotonic() + GONE_WITHIN_S
    while time.monotonic() < end and (marked(mark) or any(map(is_alive, keepers))):
        time.sleep(0.02)
    left = marked(mark) + [pid for pid in keepers if is_alive(pid)]
    assert not left, f'{len(left)} processes outlived their Holdfast by {GONE_WITHIN_S} s: {left}'
    hf.kill()


def test_kill_9__loses_nothing_that_was_acknowledged(holdfast, stdio_server, http_server):
    print(f'HOLDFAST_SEED={SEED}')
    dice, mark = random.Random(SEED), f'HOLDFAST_E2E_MARK_{uuid.uuid4().hex}'
    entry, up_record = stdio_server('up', handles='never', env={'E2E_MARK': mark})
    entry['args'] = [os.path.join(PEERS, 'npx_like.sh'), entry['command'], *entry['args']]
    entry['command'] = '/bin/sh'
    web = http_server('web')
    hf = holdfast({'up': entry, 'web': web.entry(handles='never')})
    workers = [Worker(hf, f'{server}{n}', server, n < 3) for server in ('up', 'web') for n in range(4)]
    books, descendants = Books(hf, workers, [up_record, web.record]), 0
    for turn in range(KILLS):
        ending = threading.Event()
        threads = [threading.Thread(target=w.run, args=(ending,), daemon=True) for w in workers]
        for thread in threads:
            thread.start()
        time.sleep(dice.uniform(0, LONGEST_LOAD_S))
        descendants = max(descendants, len(marked(mark)))
        ending.set()
        kill_and_check_descendants(hf, mark)
        for thread in threads:
            thread.join(20)
        problems = [p for w in workers for p in w.problems]
        assert not problems, f'turn {turn}: {problems}'
        if dice.random() < 0.2:  # a start that is cut short as well
            hf.start(wait=False)
            time.sleep(dice.uniform(0, 0.2))
            kill_and_check_descendants(hf, mark)
        hf.start()
        books.check()
        verified = run(hf, 'audit', 'verify')
        assert verified.returncode == 0, f'turn {turn}: {verified.stdout}{verified.stderr}'
    for worker in workers:
        worker.run(threading.Event(), calls=2)
        assert not worker.problems, worker.problems
    books.check()
    told, adopted = sum(len(w.told) for w in workers), [w.adopted for w in workers]
    print(f'{told} acknowledged, {books.indeterminate()} indeterminate, {sum(adopted)} sessions gone on with')
    assert told > 10 * KILLS and books.indeterminate() > 0 and all(adopted)
    assert descendants >= 8, 'the load was too short to start the children whose end is checked'
