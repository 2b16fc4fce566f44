# SPDX-License-Identifier: Apache-2.0
"""holdfast audit: what it prints, what it exits with, and that no tampering goes unseen."""
import contextlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import threading

import pytest

import harness
from commands import command_env, run, run_json
from harness import wait_for
from packed import unpacked

SEED = int(os.environ.get('HOLDFAST_SEED') or random.SystemRandom().randrange(1 << 32))
TAMPERINGS = 200 if harness.LONG else 20
WRITER_SHIFT = 40
CALLS = [('echo', {'text': 'one'}, 'ok'), ('fail', {'text': 'no'}, 'tool_error'),
         ('error', {'code': 1, 'message': 'odd'}, 'error'), ('counter', {'note': 'h\u00e9llo \x1b[31m'}, 'ok'),
         ('crash', {}, 'upstream_lost'), ('echo', {'text': 'x' * 40000}, 'ok')]


def make_history(folder, entry):
    hf = harness.Holdfast(folder, {'mcpServers': {'up': entry}, 'holdfast': {}}).start()
    client = hf.client('/mcp/up').connect()
    for tool, arguments, _ in CALLS:
        client.call(tool, arguments)
    return hf


@pytest.fixture(scope='module', params=['beside', 'alone'])
def hf(request, tmp_path_factory):
    """The same history beside a running program, whose socket answers, and without one."""
    folder = tmp_path_factory.mktemp('audit')
    entry, _ = harness.stdio_server(folder, 'up', handles='never')
    one = make_history(folder, entry)
    if request.param == 'alone':
        one.stop()
    yield one
    one.close()


def test_list__as_json_is_one_object_a_line_newest_first(hf):
    rows = run_json(hf, 'audit', 'list')
    assert [(r['tool'], r['outcome']) for r in rows] == [(tool, word) for tool, _, word in reversed(CALLS)]
    for row in rows:
        assert re.fullmatch(r'\d+\.\d+', row['id']) and re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z', row['time'])
        assert row['server'] == 'up' and row['method'] == 'tools/call' and row['carrier'] == 'transport'
        assert row['tenant'] == 'default' and row['session_id'] and row['duration_us'] > 0
        assert row['era'] == '2025-11-25>2025-11-25'
    assert len({r['session_id'] for r in rows}) == 1 and len({r['id'] for r in rows}) == len(CALLS)
    lost = next(r for r in rows if r['outcome'] == 'upstream_lost')
    assert 'exited with status 3' in lost['error']


def test_list__is_a_table_for_people(hf):
    done = run(hf, 'audit', 'list')
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == len(CALLS) + 1
    assert all(word in lines[0] for word in ('TIME', 'SERVER', 'TOOL', 'OUTCOME', 'DURATION', 'SESSION'))
    for line, (tool, _, word) in zip(lines[1:], reversed(CALLS)):
        assert tool in line and word in line and 'up' in line
    assert '\x1b' not in done.stdout
    assert '\x1b[' in run(hf, 'audit', 'list', env={'CLICOLOR_FORCE': '1'}).stdout


FILTERS = [
    (['--tool', 'echo'], lambda r: r['tool'] == 'echo'),
    (['--outcome', 'ok'], lambda r: r['outcome'] == 'ok'),
    (['--outcome', 'tool_error'], lambda r: r['outcome'] == 'tool_error'),
    (['--outcome', 'open'], lambda r: False),
    (['--server', 'up'], lambda r: True),
    (['--server', 'session'], lambda r: False),
    (['--since', '1h'], lambda r: True),
    (['--tool', 'echo', '--outcome', 'tool_error'], lambda r: False),
]


@pytest.mark.parametrize('flags,keeps', FILTERS, ids=[' '.join(f[0]) for f in FILTERS])
def test_list__filters(hf, flags, keeps):
    every = run_json(hf, 'audit', 'list')
    assert run_json(hf, 'audit', 'list', *flags) == [r for r in every if keeps(r)]


def test_list__limits_and_selects_a_session(hf):
    every = run_json(hf, 'audit', 'list')
    assert run_json(hf, 'audit', 'list', '--limit', '2') == every[:2]
    assert run_json(hf, 'audit', 'list', '--session', every[0]['session_id']) == every
    unknown = run(hf, 'audit', 'list', '--session', 'nobody')
    assert unknown.returncode == 1 and 'no recorded call of a session "nobody"' in unknown.stderr


def test_list__open_calls_are_those_under_way_and_those_a_kill_cut_off(tmp_path):
    entry, _ = harness.stdio_server(tmp_path, 'up', handles='never')
    hf = make_history(tmp_path, entry)
    client = hf.client('/mcp/up').connect()

    def hang():
        with contextlib.suppress(Exception):
            client.call('hang')  # ends with the kill
    thread = threading.Thread(target=hang, daemon=True)
    thread.start()
    [beside] = wait_for(lambda: run_json(hf, 'audit', 'list', '--outcome', 'open'), 'the call to be under way')
    assert (beside['tool'], beside['outcome'], 'duration_us' in beside) == ('hang', 'open', False)
    session = beside['session_id']
    for part in (session, session[:20], session[:13]):
        rows = run_json(hf, 'audit', 'list', '--session', part)
        assert beside in rows and all(row['session_id'].startswith(part) for row in rows), part
    assert run_json(hf, 'audit', 'list', '--outcome', 'open', '--session', session) == [beside]
    assert run_json(hf, 'audit', 'list', '--outcome', 'open', '--tool', 'echo') == []
    hf.kill()
    thread.join(harness.DEADLINE_S)
    assert run_json(hf, 'audit', 'list', '--outcome', 'open') == [beside]
    hf.start()
    assert run_json(hf, 'audit', 'list', '--outcome', 'open') == []
    [closed] = run_json(hf, 'audit', 'list', '--tool', 'hang')
    assert (closed['id'], closed['outcome']) == (beside['id'], 'indeterminate')
    hf.close()


def test_tail__shows_the_last_ones_in_order(hf):
    every = run_json(hf, 'audit', 'list')
    assert run_json(hf, 'audit', 'tail', '-n', '3') == every[:3][::-1]
    assert run_json(hf, 'audit', 'tail', '-n3') == every[:3][::-1]
    assert [run(hf, 'audit', 'tail', flag).returncode for flag in ('-n0', '-nx', '-n', '-x5', '-f5')] == [2] * 5
    text = run(hf, 'audit', 'tail', '-n', '2').stdout
    assert 'crash' in text and text.index('crash') < text.index('echo')


def test_show__prints_params_and_result(hf):
    row = next(r for r in run_json(hf, 'audit', 'list') if r['tool'] == 'counter')
    done = run(hf, 'audit', 'show', row['id'])
    assert done.returncode == 0 and row['id'] in done.stdout and 'counter' in done.stdout and '✔ ok' in done.stdout
    assert '"note"' in done.stdout and 'héllo' in done.stdout and '\x1b' not in done.stdout
    assert '"structuredContent"' in done.stdout


def test_show__as_json_has_both_events(hf):
    row = next(r for r in run_json(hf, 'audit', 'list') if r['tool'] == 'fail')
    done = run(hf, 'audit', 'show', row['id'], '--json')
    assert done.returncode == 0
    shown = json.loads(done.stdout)
    events = shown['events']
    assert [e['kind'] for e in events] == ['intent', 'outcome']
    assert json.loads(events[0]['body']) == {'name': 'fail', 'arguments': {'text': 'no'}}
    assert json.loads(events[1]['body'])['isError'] is True
    assert [e['client'] for e in events] == ['e2e', 'e2e']
    assert 'request_len' not in events[0] and events[1]['request_len'] == events[0]['body_len']


def test_show__a_long_body_is_cut_and_says_so(hf):
    row = run_json(hf, 'audit', 'list', '--limit', '1')[0]
    intent = json.loads(run(hf, 'audit', 'show', row['id'], '--json').stdout)['events'][0]
    assert intent['body_len'] > 40000 > 17000 > len(intent['body'])
    json.loads(intent['body'])


@pytest.mark.parametrize('words,status', [
    (['show', '999.1'], 1), (['show', 'nonsense'], 2), (['show'], 2), ([], 2), (['shred'], 2), (['list', '--limit', 'x'], 2),
    (['list', '--since', 'someday'], 2), (['list', '--colour'], 2), (['verify', 'surplus'], 2)])
def test_mistakes__exit_as_documented(hf, words, status):
    done = run(hf, 'audit', *words)
    assert done.returncode == status and done.stderr.startswith('holdfast: ') and not done.stdout, done


def test_mistakes__are_json_when_asked(hf):
    done = run(hf, 'audit', 'show', '999.1', '--json')
    assert done.returncode == 1 and json.loads(done.stderr)['error']['code'] == 'not_found'


def test_verify__says_what_it_proved(hf):
    done = run(hf, 'audit', 'verify')
    assert done.stderr.count('data directory') == 1, done.stderr
    assert done.returncode == 0 and re.search(r'\d+ events', done.stdout), done
    proof = json.loads(run(hf, 'audit', 'verify', '--json').stdout)
    assert proof['events'] >= 2 * len(CALLS)


def test_verify__says_up_to_when_nothing_is_missing(holdfast, stdio_server):
    """An anchor follows the last call within a second or so, and the stop writes the last one."""
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    anchors = os.path.join(hf.data, 'audit-anchors.jsonl')
    hf.client('/mcp/up').call('echo', {'text': 'one'})
    wait_for(lambda: os.path.exists(anchors) and os.path.getsize(anchors), 'an anchor', 5)
    wait_for(lambda: json.loads(run(hf, 'audit', 'verify', '--json').stdout)['unproven'] == 0, 'an anchor behind all events', 5)
    hf.kill()
    done = run(hf, 'audit', 'verify')
    assert done.returncode == 0 and '; 0 events came after it' in done.stdout, done
    hf.start()


def test_verify__events_of_a_killed_process_are_anchored_by_the_next(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    for number in range(20):
        client.call('echo', {'text': str(number)})
    hf.restart()  # kill -9, most likely before the next tick; and no call afterwards
    wait_for(lambda: json.loads(run(hf, 'audit', 'verify', '--json').stdout)['unproven'] == 0, 'an anchor behind all events')


def test_no_data__is_told(tmp_path, hf):
    done = run(hf, 'audit', 'list', data=str(tmp_path / 'empty'))
    assert done.returncode != 0 and 'holdfast: ' in done.stderr and not os.path.exists(tmp_path / 'empty'), done


@pytest.mark.parametrize('flag', ['--follow', '-f'])
def test_follow__goes_on_with_new_ones_until_sigint(holdfast, stdio_server, flag):
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    client.call('echo', {'text': 'before'})
    tail = subprocess.Popen([harness.BINARY, 'audit', 'tail', '-n', '5', flag, '--json', '--data', hf.data],
                            env=command_env(hf), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            # A shell starts background commands with SIGINT ignored.
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    try:
        assert json.loads(tail.stdout.readline())['tool'] == 'echo'
        client.call('counter')
        assert json.loads(tail.stdout.readline())['tool'] == 'counter'
        client.call('fail')
        row = json.loads(tail.stdout.readline())
        assert row['tool'] == 'fail' and row['outcome'] == 'tool_error'
        tail.send_signal(signal.SIGINT)
        assert tail.wait(10) in (130, -signal.SIGINT)
    finally:
        tail.kill()
        tail.wait()
        tail.stdout.close()
        tail.stderr.close()


@pytest.mark.parametrize('name', ['a&b=c d', 'limit=1&x', '%41', 'ü+"'])
def test_list__asks_for_a_name_as_it_was_typed(holdfast, name):
    hf = holdfast()
    for flag, words in (('--server', 'there is no server "'), ('--session', 'no recorded call of a session "')):
        done = run(hf, 'audit', 'list', flag, name)
        assert done.returncode == 1 and words + name in done.stderr, done


def test_slow_pages__are_asked_for_in_halves(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never', share='all')
    hf = holdfast({'up': entry}, env={'HOLDFAST_FAULT': ','.join(f'store.page:{n}' for n in (1, 3, 4, 6))})
    for n in range(150):
        hf.client('/mcp/up').call('echo', {'text': str(n)})
    assert len(run_json(hf, 'audit', 'list', '--limit', '1000')) == 150
    done = run(hf, 'audit', 'verify')
    assert done.returncode == 0 and int(re.search(r'(\d+) events', done.stdout)[1]) >= 300, done


def test_slow_pages__say_how_far_they_got(holdfast, stdio_server):
    """Every page is over at once: lists with filters that hardly anything matches are whole all the same."""
    entry, _ = stdio_server('up', handles='never', share='all')
    hf = holdfast({'up': entry}, env={'HOLDFAST_FAULT': 'store.page:1+'})
    client = hf.client('/mcp/up')
    client.call('counter')
    for n in range(200):
        client.call('echo', {'text': str(n)})
    assert len(run_json(hf, 'audit', 'list', '--tool', 'counter')) == 1
    assert len(run_json(hf, 'audit', 'list', '--limit', '20000')) == 201
    assert len(run_json(hf, 'audit', 'list', '--since', '1h', '--limit', '20000')) == 201
    assert run(hf, 'audit', 'verify').returncode == 0


# Tampering.

@pytest.fixture(scope='module')
def history(tmp_path_factory):
    """A stopped data directory of two runs, to be copied and tampered with."""
    folder = tmp_path_factory.mktemp('history')
    entry, _ = harness.stdio_server(folder, 'up', handles='never')
    hf = make_history(folder, entry)
    hf.restart()
    client = hf.client('/mcp/up')
    for n in range(20):
        client.call('echo', {'text': f'second run {n}'})
    hf.stop()
    with sqlite3.connect(os.path.join(hf.data, 'holdfast.db')) as db:
        db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
    return hf


def event_name(ident):
    return f'event {ident >> WRITER_SHIFT}.{ident & ((1 << WRITER_SHIFT) - 1)}'


FRAME = 40


def laid_open(row):
    return {'id': row['id'], **{c: unpacked(row[c]) if row['packed'] else row[c] for c in ('records', 'bodies')}}


def frames_of(row):
    """(id, where it begins and ends in `records`, and in `bodies`) of every event of a segment."""
    ident, at, body_at, found = row['id'], 0, 0, []
    while at < len(row['records']):
        record, body = (int.from_bytes(row['records'][at + k:at + k + 4], 'little') for k in (0, 4))
        found.append((ident, at, at + FRAME + record, body_at, body_at + max(0, body - 1)))
        ident, at, body_at = ident + 1, at + FRAME + record, body_at + max(0, body - 1)
    return found


def flip(row, dice):
    """(column, new value, first and last event that may be named) with one bit changed."""
    frames = frames_of(row)
    column = dice.choice(('records', 'bodies')) if row['bodies'] else 'records'
    value = row[column]
    at = dice.randrange(len(value))
    value = value[:at] + bytes([value[at] ^ (1 << dice.randrange(8))]) + value[at + 1:]
    for ident, begin, end, body_begin, body_end in frames:
        if column == 'bodies' and body_begin <= at < body_end:
            return column, value, ident, ident
        if column == 'records' and begin <= at < end:
            # A length of a body that reads as "deleted" shifts the bodies behind it.
            return column, value, ident, frames[-1][0] if 4 <= at - begin < 8 else ident
    raise AssertionError(f'byte {at} of {column} belongs to no event')


def tamper(db, dice):
    """Does one thing to the events; gives what was done and the ids one of which must be named."""
    db.row_factory = sqlite3.Row
    rows = db.execute('SELECT * FROM events ORDER BY id').fetchall()
    row = dice.choice(rows)
    how = dice.choice(('edit', 'edit', 'delete', 'swap'))
    if how == 'delete':
        db.execute('DELETE FROM events WHERE id = ?', (row['id'],))
        return f"delete {row['id']}", row['id']
    if how == 'swap':
        other = dice.choice([r for r in rows if r['id'] != row['id']])
        first, second = sorted((row['id'], other['id']))
        for one, two in ((first, 0), (second, first), (0, second)):
            db.execute('UPDATE events SET id = ? WHERE id = ?', (two, one))
        return f'swap {first} {second}', first
    plain = laid_open(row)
    if dice.random() < 0.5:  # as it is: one byte may stand for several events
        column = dice.choice(('records', 'bodies')) if row['bodies'] else 'records'
        value, at = row[column], dice.randrange(len(row[column]))
        value = value[:at] + bytes([value[at] ^ (1 << dice.randrange(8))]) + value[at + 1:]
        db.execute(f'UPDATE events SET {column} = ? WHERE id = ?', (value, row['id']))
        return f"edit packed {column} of {row['id']}", *(f[0] for f in frames_of(plain))
    column, value, first, last = flip(plain, dice)
    db.execute('UPDATE events SET records = ?, bodies = ?, packed = 0 WHERE id = ?', (plain['records'], plain['bodies'], row['id']))
    db.execute(f'UPDATE events SET {column} = ? WHERE id = ?', (value, row['id']))
    return f"edit {column} of {row['id']}", *range(first, last + 1)


def copy_of(history, tmp_path, name):
    data = str(tmp_path / name)
    shutil.copytree(history.data, data, ignore=shutil.ignore_patterns('*.sock', 'holdfast.db-*'))
    return data


def test_verify__names_the_first_bad_event(history, tmp_path):
    print(f'HOLDFAST_SEED={SEED}')
    dice = random.Random(SEED)
    assert run(history, 'audit', 'verify').returncode == 0
    for n in range(TAMPERINGS):
        data = copy_of(history, tmp_path, f'copy{n}')
        with sqlite3.connect(os.path.join(data, 'holdfast.db')) as db:
            what, *idents = tamper(db, dice)
        db.close()
        done = run(history, 'audit', 'verify', data=data)
        assert done.returncode == 8, f'seed {SEED}, {what}: exit {done.returncode}\n{done.stdout}{done.stderr}'
        names = [event_name(i) for i in idents]
        assert any(re.search(re.escape(n) + r'\b', done.stderr) for n in names), f'seed {SEED}, {what}: wanted {names} in {done.stderr}'
        shutil.rmtree(data)


def test_verify__a_cut_tail_is_seen(history, tmp_path):
    data = copy_of(history, tmp_path, 'cut')
    with sqlite3.connect(os.path.join(data, 'holdfast.db')) as db:
        ids = [r[0] for r in db.execute('SELECT id FROM events ORDER BY id')]
        db.execute('DELETE FROM events WHERE id >= ?', (ids[-5],))
    db.close()
    done = run(history, 'audit', 'verify', data=data)
    assert done.returncode == 8 and event_name(ids[-5]) in done.stderr, done


def test_verify__a_deleted_body_is_no_tampering(history, tmp_path):
    data = copy_of(history, tmp_path, 'bodies')
    with sqlite3.connect(os.path.join(data, 'holdfast.db')) as db:
        db.execute('UPDATE events SET bodies = NULL')
    db.close()
    assert run(history, 'audit', 'verify', data=data).returncode == 0


def test_verify__needs_the_key(history, tmp_path):
    data = copy_of(history, tmp_path, 'key')
    with open(os.path.join(data, 'audit.key'), 'r+b') as file:
        text = file.read()
        file.seek(0)
        file.write(bytes([text[0] ^ 1]) + text[1:])
    assert run(history, 'audit', 'verify', data=data).returncode != 0


def test_start__on_another_key_is_refused(history, tmp_path, holdfast):
    hf = holdfast(start=False)
    hf.data = copy_of(history, tmp_path, 'restart')
    os.unlink(os.path.join(hf.data, 'audit.key'))
    hf.start(wait=False)
    assert hf.process.wait(20) not in (0, 99)
    hf.readers[-1].join(20)
    hf.check_sanitizers()
    wait_for(lambda: 'key' in hf.text(), 'a word about the key')
