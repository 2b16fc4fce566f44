# SPDX-License-Identifier: Apache-2.0
"""Analytics: numbers of calls that equal a recount of the events, who may see which, and `holdfast stats`."""
import collections
import datetime
import json
import math
import random
import re
import threading

import pytest

import harness
from commands import control, events, on_terminal, run, run_json
from harness import wait_for
from postgres import shared_keys
from rest import Rest, refused
from stored import Stored
from test_ages import DAY
from test_limits import Slept
from test_rest_roles import key_for

BY = ('server', 'tool', 'client', 'user', 'tenant', 'era', 'carrier', 'outcome')
BUCKET_MS = {'5m': 300_000, '1h': 3_600_000, '1d': 86_400_000}
FINE = ('ok', 'redelivered', 'cancelled')


def analytics(hf, query=''):
    """As the local admin sees them."""
    reply = control(hf, '/api/v1/analytics' + query)
    assert reply.status == 200, reply
    return reply.json()


def ms_of(text):
    return round(datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp() * 1000)


def standing(rows):
    """Each execution once, by the event that ended it: the first outcome that is no guess, else the last one."""
    found = {}
    for e in sorted(rows, key=lambda e: [int(part) for part in e['id'].split('.')]):
        if e['kind'] == 'outcome':
            before = found.get(e['exec'])
            if not before or before['outcome'] == 'indeterminate':
                found[e['exec']] = e
        elif e['kind'] in ('note', 'record'):
            found[e['id']] = e
    return list(found.values())


def bytes_of(e):
    body = max(e['body_len'], 0)
    if e['kind'] == 'note':
        return body, 0
    sent = e.get('request_len', 0)
    return sent, max(body - sent, 0) if e['kind'] == 'record' else body


def label_of(e, by):
    if by == 'tool':
        return e.get('server', ''), e.get('tool')
    return e.get({'user': 'owner'}.get(by, by))


def tally(rows):
    sent, got = (sum(sizes) for sizes in zip(*(bytes_of(e) for e in rows)))
    return {
        'calls': len(rows),
        'errors': len([e for e in rows if e['outcome'] not in FINE]),
        'outcomes': dict(collections.Counter(e['outcome'] for e in rows)),
        'timed_calls': len([e for e in rows if e['duration_us'] > 0]),
        'request_bytes': sent,
        'response_bytes': got,
        'tokens': sum(e.get('tokens', 0) for e in rows),
        'tokens_estimated': sum(-(-sum(bytes_of(e)) // 4) for e in rows if not e.get('tokens')),
        'sessions': len({e['session_id'] for e in rows if 'session_id' in e and e['outcome'] != 'indeterminate'}),
        'sessions_are_estimated': False,
    }


def assert_tally(shown, rows):
    counted = tally(rows)
    if shown['sessions_are_estimated']:
        exact = counted.pop('sessions')
        assert counted.pop('sessions_are_estimated') is False and abs(shown['sessions'] - exact) <= 1 + exact * 4 * 0.092
    assert {k: shown[k] for k in counted} == counted
    times = sorted(e['duration_us'] for e in rows if e['duration_us'] > 0)
    for name, part in ('p50_us', 50), ('p95_us', 95), ('p99_us', 99):
        if times:
            exact = times[math.ceil(len(times) * part / 100) - 1]
            assert abs(shown[name] - exact) <= exact * 0.0625 + 1, (name, exact, shown)
        else:
            assert name not in shown


def assert_recount(hf, query='', rows=None, buckets=tuple(BUCKET_MS)):
    """Compares every grouping and bucket with the events."""
    answers = {(by, bucket): analytics(hf, f'?group_by={by}&bucket={bucket}&limit=200{query}') for by in BY for bucket in buckets}
    rows = standing(events(hf) if rows is None else rows)
    for (by, bucket), answer in answers.items():
        assert answer['more_groups'] == 0
        assert_tally(answer['total'], rows)
        groups = collections.defaultdict(list)
        for e in rows:
            groups[label_of(e, by)].append(e)
        shown = {(g['server'], g['label']) if by == 'tool' else g['label']: g for g in answer['groups']}
        assert set(shown) == set(groups), (by, set(shown) ^ set(groups))
        for label, of_group in groups.items():
            assert_tally(shown[label], of_group)
            spans = collections.defaultdict(list)
            for e in of_group:
                spans[e['at_ms'] // BUCKET_MS[bucket] * BUCKET_MS[bucket]].append(e)
            assert [ms_of(b['at']) for b in shown[label]['buckets']] == sorted(spans)
            for b in shown[label]['buckets']:
                assert_tally(b, spans[ms_of(b['at'])])
    return rows


def recounted(hf):
    """PostgreSQL may commit what a killed Holdfast had sent after the next one has begun; the cleanup counts it then."""
    try:
        return assert_recount(hf)
    except AssertionError:
        return None


def make_calls(hf, n, seed=1, headers=None):
    """Random calls by clients of both eras, executions that are reported, and requests that only read."""
    rng = random.Random(seed)
    clients = [hf.client(modern=True, headers=headers), hf.client(headers=headers).connect(), hf.client(modern=True, headers=headers)]
    api = Rest(hf, headers)
    name = api.create(client_name=f'reporter {seed}')['session_id']
    for i in range(n):
        kind = rng.random()
        if kind < 0.2:
            rng.choice(clients).call('no_such_tool', {'text': f'no {i}'})
        elif kind < 0.3:
            api.post(f'/sessions/{name}/tools', {'tool_name': 'search', 'result': 'y' * rng.randrange(900), 'tokens_used': rng.randrange(50),
                                                 'duration_ms': rng.randrange(3000), 'arguments': {'q': i}})
        elif kind < 0.4:
            rng.choice(clients).rpc('prompts/get', {'name': 'none'})
        else:
            rng.choice(clients).call('echo', {'message': 'x' * rng.randrange(1, 4000)})


@pytest.mark.parametrize('database', ['sqlite', 'postgres'], indirect=True)
def test_analytics__equal_a_recount_also_after_kill_9(holdfast, database):
    hf = holdfast(env=database)
    make_calls(hf, 30)
    assert len(assert_recount(hf)) >= 20
    for seed in range(2):
        make_calls(hf, 10, seed=seed)
        hf.restart(kill=True)
        make_calls(hf, 10, seed=seed + 10)
        assert_recount(hf)
    hf.restart()
    assert len(assert_recount(hf)) >= 50


@pytest.mark.parametrize('database', ['sqlite', 'postgres'], indirect=True)
def test_analytics__equal_a_recount_when_killed_at_any_point(holdfast, stdio_server, database):
    entry, _ = stdio_server('up')
    hf = holdfast({'up': entry}, {'session': {'cleanup': {'interval': '100ms'}}}, env=database)

    def call(seed):
        rng = random.Random(seed)
        try:
            client = hf.client('/mcp/up').connect()
            while True:
                client.call('echo', {'text': 'x' * rng.randrange(300)})
        except (OSError, EOFError, AssertionError, AttributeError, ValueError, TypeError):
            pass  # it was killed

    for round_ in range(20 if harness.LONG else 3):
        threads = [threading.Thread(target=call, args=(10 * round_ + i,)) for i in range(4)]
        for one in threads:
            one.start()
        before = len(events(hf, bodies=False))
        wait_for(lambda n=before: len(events(hf, bodies=False)) > n + 20 + 7 * (round_ % 5), 'some calls')
        hf.kill()
        for one in threads:
            one.join()
        hf.start()
        rows = wait_for(lambda: recounted(hf), 'the numbers to equal a recount')
    assert len(rows) >= 20
    assert_recount(hf)


def test_analytics__of_two_nodes_are_one_sum(holdfast, cluster):
    env = {'DATABASE_URL': cluster.database()}
    nodes = [holdfast(env=env)]
    nodes.append(holdfast(env={**env, **shared_keys(nodes[0])}))
    for seed, node in enumerate(nodes * 2):
        make_calls(node, 8, seed)
    for node in nodes:  # each folds its own events before it answers
        analytics(node)
    assert len(assert_recount(nodes[0])) >= 20
    nodes[1].kill()
    nodes[1].start()
    make_calls(nodes[1], 5)
    analytics(nodes[0])
    assert len(assert_recount(nodes[1])) >= 23


def test_analytics__are_those_of_the_caller(rest):
    api = rest()
    hf = api.holdfast
    people = {role: key_for(api, '--tenant', 'acme', '--role', role) for role in ('admin', 'auditor', 'member', 'service')}
    stranger = key_for(api, '--tenant', 'rival', '--role', 'admin')
    for n, who in enumerate(['member', 'service']):
        make_calls(hf, 4 + n, n, people[who].headers)
    make_calls(hf, 9, 7, stranger.headers)

    def seen_by(one, by='user', query=''):
        return {g['label']: g['calls'] for g in one.get(f'/analytics?group_by={by}{query}').json()['groups']}

    whole = seen_by(people['admin'])
    assert len(whole) == 2 and seen_by(people['auditor']) == whole
    for who in 'member', 'service':
        own = seen_by(people[who])
        assert len(own) == 1 and own.items() <= whole.items()
        assert_tally(people[who].get('/analytics').json()['total'], [e for e in standing(events(hf)) if e['owner'] in own])
        assert sum(seen_by(people[who], 'server').values()) == sum(own.values())
        refused(people[who].get('/analytics?tenant=rival'), 403, 'denied')
    assert set(seen_by(stranger, 'tenant')) == {'rival'} and set(seen_by(people['member'], 'tenant')) == {'acme'}
    everyone = {g['label']: g['calls'] for g in analytics(hf, '?group_by=tenant')['groups']}
    assert everyone['acme'] == sum(whole.values()) and everyone['rival'] >= 3
    named = [g for g in people['admin'].get('/analytics?group_by=user').json()['groups'] if g.get('name')]
    assert len(named) == 2
    refused(Rest(hf, {'Authorization': 'Bearer hf_x_y'}).get('/analytics'), 401, 'tenant_not_found')


def test_analytics__of_a_limited_key_are_of_its_servers_and_tools(holdfast, stdio_server, database):
    entries = {name: stdio_server(name, handles='never')[0] for name in ('one', 'two')}
    api = Rest(holdfast(entries, {'auth': 'required'}, env=database))
    hf = api.holdfast
    whole = key_for(api, '--role', 'admin')
    by_server, by_tool = (key_for(api, '--role', 'admin', *scope) for scope in (('--server', 'one'), ('--tool', 'two__echo')))
    for path, tool in (('/mcp/one', 'echo'), ('/mcp/two', 'echo'), ('/mcp/two', 'counter'), ('/mcp/two', 'counter')):
        assert hf.client(path, modern=True, headers=whole.headers).call(tool, {'text': 'x'} if tool == 'echo' else {}).status == 200

    def seen_by(key):
        found = key.get('/analytics?group_by=tool').json()
        assert found['total']['calls'] == sum(g['calls'] for g in found['groups'])
        return sorted((g['server'], g['label'], g['calls']) for g in found['groups'])

    assert seen_by(whole) == [('one', 'echo', 1), ('two', 'counter', 2), ('two', 'echo', 1)]
    assert seen_by(by_server) == [('one', 'echo', 1)]
    assert seen_by(by_tool) == [('two', 'echo', 1)]


def test_analytics__time_and_groups_have_limits(rest):
    api = rest()
    make_calls(api.holdfast, 12)
    for query, word in [('group_by=colour', 'server, tool, client'), ('bucket=1m', '5m, 1h or 1d'), ('since=yesterday', 'duration'),
                        ('since=1h&until=2h', 'later'), ('bucket=5m&since=3d', '2 days'), ('bucket=1h&since=500d', '400 days'),
                        ('bucket=1h&since=42d', 'at most 1000'), ('bucket=1d&since=1001d', 'at most 1000'), ('limit=0', 'limit'), ('limit=201', 'limit')]:
        assert word in refused(api.get('/analytics?' + query), 400, 'bad_input').json()['detail'], query
    for query in 'bucket=5m&since=47h', 'bucket=1h&since=41d', 'bucket=1d&since=998d', 'limit=1', 'limit=200':
        answer = api.get('/analytics?group_by=tool&' + query).json()
        assert answer['total']['calls'] >= 6 and answer['groups'][0]['calls'] >= 1
    one = api.get('/analytics?group_by=tool&limit=1').json()
    assert len(one['groups']) == 1 and one['more_groups'] == len(api.get('/analytics?group_by=tool').json()['groups']) - 1
    answer = api.get('/analytics?since=2026-01-01T00:00:00.000Z&until=2026-01-01T01:30:00.000Z').json()
    assert (answer['since'], answer['until']) == ('2026-01-01T00:00:00.000Z', '2026-01-01T02:00:00.000Z') and answer['groups'] == []
    assert answer['total']['calls'] == 0 and 'p50_us' not in answer['total']


def test_stats__are_a_table_with_trends_on_a_terminal(holdfast):
    hf = holdfast()
    assert run(hf, 'stats').stdout == 'no call was counted in this time\n'
    make_calls(hf, 25)
    shown = run(hf, 'stats', '--by', 'tool').stdout.splitlines()
    assert shown[0].split() == ['TOOL', 'CALLS', 'ERRORS', 'P50', 'P95', 'P99', 'BYTES', 'TOKENS', 'SESSIONS']
    assert any(line.startswith('sample__echo ') and re.search(r' \d[\d.]*m?s ', line) and '~' in line for line in shown[1:])
    assert shown[-1].startswith('(total) ')
    seen = on_terminal(hf, 'stats', LC_ALL='C.UTF-8')
    lines = [re.sub(r'\x1b\[\d*m', '', line) for line in seen.splitlines() if line]
    assert 'TREND' in lines[0] and '\u2588' in seen and 'estimate' in lines[-1] and all(len(line) <= 80 for line in lines), lines
    plain = on_terminal(hf, 'stats', '--since', '1h', LC_ALL='C', NO_COLOR='1')
    assert '#' in plain and plain.isascii(), plain
    answer, = run_json(hf, 'stats', '--by', 'outcome', '--bucket', '5m', '--since', '1h')
    assert answer['group_by'] == 'outcome' and answer['bucket'] == '5m' and answer['total']['calls'] >= 15
    hf.stop()
    alone, = run_json(hf, 'stats', '--by', 'outcome', '--bucket', '5m', '--since', '2h')
    assert alone['total'] == answer['total']
    for args, word in [(['--by', 'sever'], 'did you mean server? --by takes server, tool'), (['--by', 'x'], '--by takes'), (['--bucket', '2h'], '5m, 1h or 1d'),
                       (['--since', 'soon'], 'duration'), (['extra'], 'flags only')]:
        done = run(hf, 'stats', *args)
        assert done.returncode == 2 and word in done.stderr, done


def test_analytics__tokens_are_those_that_servers_report_else_an_estimate(holdfast, scripted):
    hf = holdfast({'up': scripted('up').entry})
    client = hf.client('/mcp/up').connect()
    for result in {'_meta': {'usage': {'total_tokens': 70}}}, {'usage': {'input_tokens': 5, 'output_tokens': 6}}, {}:
        reply = client.call('script', {'steps': [{'result': json.dumps({'content': [], **result})}]})
        assert reply.status == 200, reply
    rows = assert_recount(hf)
    assert [e.get('tokens', 0) for e in rows] == [70, 11, 0]
    total = analytics(hf)['total']
    assert total['tokens'] == 81 and total['tokens_estimated'] == -(-sum(bytes_of(rows[2])) // 4) > 0
    session, = {e['session_id'] for e in rows}
    assert control(hf, f'/api/v1/sessions/{session}/details').json()['total_tokens_used'] == 81


def test_analytics__stay_when_retention_removes_the_events(holdfast, database, tmp_path):
    slept = Slept(tmp_path)
    hf = holdfast(settings={'audit': {'keep': '10d', 'bodies': '1d'}}, env={**slept.env, **database})
    make_calls(hf, 15)
    old = assert_recount(hf)
    slept.set(10 * DAY + 3600)
    hf.restart(kill=False)
    make_calls(hf, 5, seed=3)
    ids = {e['id'] for e in old}
    wait_for(lambda: not ids & {e['id'] for e in events(hf)}, 'the old events to be removed')
    stored = Stored(hf, database.get('DATABASE_URL'))
    wait_for(lambda: all(int(row['span']) * 300_000 > max(e['at_ms'] for e in old) for row in stored.rows('analytics_rollups') if int(row['step']) == 0),
             'the old buckets of five minutes to be removed')
    rows = old + [e for e in standing(events(hf)) if e['id'] not in ids]
    assert len(rows) > len(old)
    assert_recount(hf, '&since=12d', rows, buckets=('1h', '1d'))
    if database:  # in rows that hold a day
        wait_for(lambda: [row for row in stored.rows('analytics_rollups') if int(row['writer']) == -1], 'the old hours to be packed')
        assert_recount(hf, '&since=12d', rows, buckets=('1h', '1d'))
    make_calls(hf, 5, seed=4)
    hf.restart(kill=True)
    rows = old + [e for e in standing(events(hf)) if e['id'] not in ids]
    assert_recount(hf, '&since=12d', rows, buckets=('1h', '1d'))
