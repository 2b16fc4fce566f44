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
from harness import LONG, PEERS, Connection, dump, wait_for

SEED = int(os.environ.get('HOLDFAST_SEED') or random.SystemRandom().randrange(1 << 32))
KILLS = 500 if LONG else 20
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
        self.adopted = 0        # results after a restart that said so
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
        """The first result after a restart says that state was lost, and no other does."""
        lost = result.get('_meta', {}).get('holdfast/state-lost')
        if not is_first:
            assert lost is None, f'{self.name}: {result}'
        elif self.was_told_once:
            reason = 'child_restarted' if self.server == 'up' else 'remote_session_lost'
            assert lost and lost['server'] == self.server and lost['reason'] == reason, f'{self.name}: {result}'
            line = f'[holdfast: {self.server} was restarted; its earlier state is lost]'
            assert line in [b.get('text') for b in result['content']], f'{self.name}: {result}'
            self.adopted += 1
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
    """Keys that an upstream received, read on from where the last reading ended."""

    def __init__(self, record):
        self.path, self.offset, self.times = record.path, 0, {}

    def read(self):
        if not os.path.exists(self.path):
            return self.times
        with open(self.path, 'rb') as file:
            file.seek(self.offset)
            data = file.read()
        whole = data.rfind(b'\n') + 1
        self.offset += whole
        for line in data[:whole].split(b'\n'):
            message = json.loads(line.lstrip(b'\x1e')) if line.strip(b'\x1e') else {}
            if message.get('method') == 'tools/call':
                key = key_of(message['params'])
                self.times[key] = self.times.get(key, 0) + 1
        return self.times


def key_of(params):
    arguments = params['arguments']
    if params['name'] == 'echo':
        return arguments['text']
    return json.loads(arguments['result'])['content'][0]['text']


def check_record(hf, executions, workers, receptions):
    """Everything acknowledged has its outcome, everything that ran its intent, nothing stays open."""
    executions.read(hf)
    words, bodies = {}, {}
    for ident, intent in executions.intents.items():
        key = key_of(json.loads(intent['body']))
        words.setdefault(key, []).append(executions.outcome(ident))
        if executions.outcome(ident) == 'ok':
            bodies[key] = json.loads(executions.outcomes[ident]['body'])
    for worker in workers:
        for key, result in worker.told.items():
            assert 'ok' in words.get(key, []), f'{key} was acknowledged, the record says {words.get(key)}'
            assert bodies[key]['content'][0] == result['content'][0], key
    for reception in receptions:
        for key, times in reception.read().items():
            assert len(words.get(key, [])) >= times, f'{key} ran {times} times, recorded {words.get(key)}'
            read_only = int(key.rsplit('-', 1)[1]) % 4 == 0
            assert times == 1 or read_only, f'{key} ran {times} times'
    strange = {k: w for k, w in words.items() if not set(w) <= {'ok', 'indeterminate'}}
    assert not strange, strange
    return sum(w.count('indeterminate') for w in words.values())


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
    workers = [Worker(hf, f'{server}{n}', server, n < 3) for server, sessions in (('up', 4), ('web', 4)) for n in range(sessions)]
    executions, receptions = Executions(), [Reception(up_record), Reception(web.record)]
    indeterminate, helpers = 0, 0
    for turn in range(KILLS):
        ending = threading.Event()
        threads = [threading.Thread(target=w.run, args=(ending,), daemon=True) for w in workers]
        for thread in threads:
            thread.start()
        time.sleep(dice.uniform(0, LONGEST_LOAD_S))
        helpers = max(helpers, len(marked(mark)))
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
        indeterminate = check_record(hf, executions, workers, receptions)
        verified = run(hf, 'audit', 'verify')
        assert verified.returncode == 0, f'turn {turn}: {verified.stdout}{verified.stderr}'
    for worker in workers:
        worker.run(threading.Event(), calls=2)
        assert not worker.problems, worker.problems
    wait_for(lambda: not set(executions.read(hf).intents) - set(executions.outcomes), 'every outcome')
    check_record(hf, executions, workers, receptions)
    told = sum(len(w.told) for w in workers)
    print(f'{told} acknowledged, {indeterminate} indeterminate, {sum(w.adopted for w in workers)} told of lost state')
    assert told > 10 * KILLS and indeterminate > 0 and helpers >= 8
    assert all(w.adopted > 0 for w in workers)
