# SPDX-License-Identifier: Apache-2.0
"""Retention: what is too old goes, bodies first, nothing younger goes, and the chain stays proven."""
import contextlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import threading

import pytest

import harness
from commands import events, run
from harness import wait_for
from postgres import shared_keys
from rest import Rest
from stored import Stored
from test_ages import DAY, Slept

HOUR = 3600
SEED = int(os.environ.get('HOLDFAST_SEED') or random.SystemRandom().randrange(1 << 32))


@pytest.fixture
def slept(tmp_path):
    return Slept(tmp_path)


@pytest.fixture
def kept(holdfast, stdio_server, slept, database):
    """A Holdfast that keeps bodies for a day and events for ten, with one server."""
    entry, record = stdio_server('up')

    def start(env=None, **settings):
        audit = {'keep': '10d', 'bodies': '1d', **settings.pop('audit', {})}
        hf = holdfast({'up': entry}, {'audit': audit, **settings}, env={**slept.env, **database, **(env or {})})
        hf.slept, hf.database, hf.record = slept, database, record
        return hf
    return start


def calls(hf, n, text='x'):
    client = hf.client('/mcp/up').connect()
    for i in range(n):
        reply = client.call('echo', {'text': f'{text}{i}'})
        assert reply.status == 200, reply
    return client


def verify(hf, status=0):
    done = run(hf, 'audit', 'verify', '--json', env=hf.database)
    assert done.returncode == status, done
    return json.loads(done.stdout) if status == 0 else done.stderr


def metric(hf, name):
    text = hf.request('GET', '/metrics').body.decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + ' '))


def runs(hf):
    """Waits until a run that began now has ended."""
    before = metric(hf, 'holdfast_retention_last_run_timestamp_seconds')
    wait_for(lambda: metric(hf, 'holdfast_retention_last_run_timestamp_seconds') > before, 'a run of retention')


def executions(hf):
    return Rest(hf).get('/audit/executions?limit=200').json()['executions']


def test_bodies__go_before_their_events_and_the_chain_stays_proven(kept):
    hf = kept()
    calls(hf, 5, 'old')
    hf.slept.set(DAY + HOUR)
    hf.restart(kill=False)
    calls(hf, 5, 'new')
    wait_for(lambda: metric(hf, 'holdfast_retention_bodies_total') >= 10, 'the old bodies to be removed')
    proof = verify(hf)
    assert proof['bodies_deleted'] >= 10 and proof['removed'] == 0, proof
    bodies = {x['text'] for x in (json.loads(e['body'])['arguments'] for e in events(hf) if e['kind'] == 'intent' and e.get('body'))}
    assert bodies == {f'new{i}' for i in range(5)}
    found = executions(hf)
    assert len(found) == 10 and {e['outcome'] for e in found} == {'ok'}
    shown = run(hf, 'audit', 'show', found[-1]['id'], env=hf.database)
    assert shown.returncode == 0 and shown.stdout.count('removed by retention or an erasure') == 2, shown
    told = wait_for(lambda: [e for e in events(hf) if e.get('method') == 'audit/removed'], 'the event of the removal')
    assert '0 events and 10 bodies' in told[0]['error'] and told[0]['tenant'] == 'default', told
    assert not any('old' in json.dumps(row, default=str) for row in Stored(hf, hf.database.get('DATABASE_URL')).rows(
        'session_tool_executions')) if hf.database else True


def test_events__go_behind_a_checkpoint_that_says_what_was_removed_when_and_by_which_rule(kept):
    hf = kept()
    calls(hf, 20, 'old')
    before, old = len(events(hf)), executions(hf)[-1]
    hf.slept.set(10 * DAY + HOUR)
    hf.restart(kill=False)
    calls(hf, 5, 'new')
    wait_for(lambda: metric(hf, 'holdfast_retention_events_total') >= 40, 'the old events to be removed')
    proof = verify(hf)
    assert 40 <= proof['removed'] <= before, proof
    rules = {(c['tenant'], c['rule']) for c in proof['checkpoints']}
    assert ('default', 'keep 10d') in rules, proof
    of_calls = [c for c in proof['checkpoints'] if c['tenant'] == 'default']
    assert sum(c['events'] for c in of_calls) >= 40 and all(c['by_keep'] == c['events'] for c in of_calls)
    assert len(executions(hf)) == 5
    if not hf.database:
        assert len(Stored(hf).rows('session_executions')) <= 5
    told = run(hf, 'audit', 'verify', env=hf.database)
    assert 'of tenant default, written up to' in told.stdout and 'by keep 10d' in told.stdout, told
    assert Rest(hf).get('/audit/verify').json()['ok']
    gone = run(hf, 'audit', 'show', old['id'], env=hf.database)
    assert gone.returncode != 0 and 'retention removes old events' in gone.stderr and 'by keep 10d' in gone.stderr, gone
    hf.restart(kill=True)
    calls(hf, 2, 'newer')
    assert verify(hf)['removed'] >= proof['removed']


def test_space__returns_to_the_disk(kept):
    hf = kept(limits={'audit_body': '64KiB'})
    if hf.database:
        pytest.skip('PostgreSQL uses the space again; the file is its own')
    calls(hf, 60, 'y' + '0123456789abcdef' * 3000 + os.urandom(4).hex())
    text = os.path.join(hf.data, 'holdfast.db')
    client = hf.client('/mcp/up').connect()
    for _ in range(60):
        assert client.call('echo', {'text': os.urandom(20000).hex()}).status == 200
    hf.restart(kill=False)
    size = os.path.getsize(text)
    assert size > 2 << 20, size
    hf.slept.set(10 * DAY + HOUR)
    hf.restart(kill=False)
    wait_for(lambda: metric(hf, 'holdfast_retention_events_total') >= 240, 'the events to be removed')
    wait_for(lambda: os.path.getsize(text) < size / 2, 'the file to be shorter')
    assert verify(hf)['removed'] >= 240


def test_hold__keeps_events_and_bodies_of_its_session_until_the_release(kept):
    hf = kept()
    api = Rest(hf)
    calls(hf, 3, 'free')
    calls(hf, 3, 'held')
    found = {e['session_id'] for e in executions(hf)}
    of = {s: [e for e in executions(hf) if e['session_id'] == s] for s in found}
    held = next(s for s in of if any('held' in (x.get('body') or '') for x in events(hf) if x.get('session_id') == s))
    hold = api.post('/audit/holds', {'session': held})
    assert hold.status == 201, hold
    hf.slept.set(10 * DAY + HOUR)
    hf.restart(kill=False)
    wait_for(lambda: metric(hf, 'holdfast_retention_events_total') >= 6, 'the free events to be removed')
    assert {e['session_id'] for e in executions(hf)} == {held} and len(executions(hf)) == 3
    texts = {json.loads(e['body'])['arguments']['text'] for e in events(hf) if e['kind'] == 'intent'}
    assert texts == {'held0', 'held1', 'held2'}
    assert verify(hf)['removed'] >= 6
    assert api.delete('/audit/holds/' + hold.json()['id']).status == 200
    hf.slept.set(11 * DAY)
    hf.restart(kill=False)
    wait_for(lambda: not executions(hf), 'the released events to be removed')
    verify(hf)


@pytest.mark.parametrize('point', ['retention.planned', 'retention.written'])
def test_killed_at_a_slice__leaves_it_whole_or_not_at_all(kept, point):
    hf = kept()
    calls(hf, 30, 'old')
    hf.slept.set(10 * DAY + HOUR)
    for _ in range(3):
        hf.env['HOLDFAST_FAULT'] = f'{point}:1'
        hf.restart(kill=True)
        hf.process.wait(harness.DEADLINE_S)
        verify(hf)
    del hf.env['HOLDFAST_FAULT']
    hf.start()
    wait_for(lambda: len(executions(hf)) <= 1, 'the rest to be removed')  # the last event before a kill stays, with its call
    verify(hf)


def test_max_size__the_oldest_bodies_of_a_tenant_go(kept):
    hf = kept(audit={'keep': '100d', 'bodies': '100d', 'max_size': '1MiB'})
    client = calls(hf, 1, 'first')
    for _ in range(60):
        assert client.call('echo', {'text': os.urandom(9000).hex()}).status == 200
    hf.restart(kill=False)
    wait_for(lambda: metric(hf, 'holdfast_retention_bodies_total') > 0, 'the oldest bodies to be removed')
    runs(hf)
    stats, = [t for t in json.loads(run(hf, 'audit', 'stats', '--json', env=hf.database).stdout)['tenants'] if t['tenant'] == 'default']
    assert (1 << 20) - 80000 < stats['bytes'] <= (1 << 20) + 4096, stats  # the event of the removal came after it
    assert stats['rules']['max_size_bytes'] == 1 << 20
    found = [bool(e.get('body')) for e in events(hf) if e['kind'] == 'intent']
    assert len(found) == 61 and found == sorted(found), found
    assert len(executions(hf)) == 61 and verify(hf)['removed'] == 0


@pytest.mark.parametrize('rounds', [10 if harness.LONG else 2])
def test_load_and_kills__nothing_younger_goes_and_the_chain_is_always_proven(kept, rounds):
    """Calls go on while hours pass and the program is killed during its runs of retention."""
    hf, chance = kept(audit={'keep': '2h', 'bodies': '1h'}), random.Random(SEED)
    made, stop, hours = [], threading.Event(), [0]

    def load():
        while not stop.is_set():
            text = f'{hours[0]}:{len(made)}'
            with contextlib.suppress(OSError, EOFError, AssertionError, ValueError, KeyError):
                client = hf.client('/mcp/up').connect()
                while not stop.is_set():
                    text = f'{hours[0]}:{len(made)}'
                    reply = client.call('echo', {'text': text})
                    if reply.status == 200 and reply.result.get('isError') is not True:
                        made.append((int(text.split(':')[0]), text))

    thread = threading.Thread(target=load)
    thread.start()
    try:
        for n in range(rounds):
            wanted = len(made) + 60
            wait_for(lambda w=wanted: len(made) >= w, 'calls of this hour')
            hours[0] += 1
            hf.slept.set(hours[0] * HOUR)
            hf.env['HOLDFAST_FAULT'] = f"retention.{chance.choice(['planned', 'written'])}:{chance.randrange(1, 3)}"
            hf.restart(kill=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                hf.process.wait(20)
            verify(hf)
            del hf.env['HOLDFAST_FAULT']
            hf.restart(kill=True)
            wait_for(lambda: metric(hf, 'holdfast_retention_last_run_timestamp_seconds') > 0, f'a run of round {n}')
            verify(hf)
    finally:
        stop.set()
        thread.join()
    outcomes = [e for e in events(hf) if e['kind'] == 'intent']
    stored = {json.loads(e['body'])['arguments']['text'] for e in outcomes if e.get('body')}
    now = hours[0]
    assert {text for hour, text in made if hour == now} <= stored, f'seed {SEED}'
    assert not [text for hour, text in made if hour < now - 1 and text in stored], f'seed {SEED}'
    assert verify(hf)['bodies_deleted'] > 0


def test_compact__makes_the_file_of_an_older_version_give_space_back(kept):
    hf = kept()
    if hf.database:
        refused = run(hf, 'db', 'compact', env=hf.database)
        assert refused.returncode != 0 and 'VACUUM FULL mcp.events' in refused.stderr, refused
        return
    calls(hf, 3)
    assert run(hf, 'db', 'compact').returncode != 0  # the daemon has the file
    hf.stop()
    file = os.path.join(hf.data, 'holdfast.db')
    with sqlite3.connect(file) as db:
        db.execute('PRAGMA auto_vacuum = 0')
        db.execute('VACUUM')
        db.execute('CREATE TABLE big (x)')
        db.execute('INSERT INTO big VALUES (randomblob(1000000)), (randomblob(1000000)), (randomblob(1000000))')
        db.execute('DROP TABLE big')
    db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    before = os.path.getsize(file)
    done = run(hf, 'db', 'compact', '--json')
    assert done.returncode == 0 and json.loads(done.stdout)['bytes'] < before - 2500000, done
    with sqlite3.connect(file) as db:
        assert db.execute('PRAGMA auto_vacuum').fetchone() == (2,)
    hf.start()
    assert len(executions(hf)) == 3
    verify(hf)


def test_two_nodes__remove_beside_each_other(holdfast, cluster, stdio_server, slept):
    url = cluster.database()
    entry, _ = stdio_server('up')
    env = {**slept.env, 'DATABASE_URL': url}
    made = []
    for _ in range(2):
        made.append(holdfast({'up': entry}, {'audit': {'keep': '10d', 'bodies': '1d'}},
                             env={**env, **(shared_keys(made[0]) if made else {})}))
        made[-1].database = {'DATABASE_URL': url}
    for node in made:
        calls(node, 20, 'old')
    slept.set(10 * DAY + HOUR)
    for node in made:
        node.restart(kill=False)
    for node in made:
        calls(node, 5, 'new')
    wait_for(lambda: sum(metric(n, 'holdfast_retention_events_total') for n in made) >= 80, 'both to remove what is old')
    for node in made:
        assert len(executions(node)) == 10
        assert metric(node, 'holdfast_retention_failures_total') == 0
    proof = verify(made[0])
    assert proof['removed'] >= 80 and {c['writer'] for c in proof['checkpoints'] if c['tenant'] == 'default'} >= {1, 2}


def test_backup_during_a_run__is_proven(kept, tmp_path):
    hf = kept()
    if hf.database:
        pytest.skip('a dump of PostgreSQL is one snapshot')
    calls(hf, 120, 'old')
    hf.slept.set(10 * DAY + HOUR)
    hf.restart(kill=False)
    wait_for(lambda: metric(hf, 'holdfast_retention_bodies_total') > 0, 'the first slice')
    copies = []
    for n in range(5):
        copy = tmp_path / f'copy-{n}'
        copy.mkdir(mode=0o700)
        for name in ('audit-anchors.jsonl', 'audit.key'):
            shutil.copy(os.path.join(hf.data, name), copy / name)
        with contextlib.closing(sqlite3.connect(f'file:{hf.data}/holdfast.db?mode=ro', uri=True)) as db, \
                contextlib.closing(sqlite3.connect(copy / 'holdfast.db')) as to:
            db.backup(to)
        copies.append(copy)
    for copy in copies:
        done = run(hf, 'audit', 'verify', '--json', data=str(copy))
        assert done.returncode == 0, done
    wait_for(lambda: not executions(hf), 'the run to end')
