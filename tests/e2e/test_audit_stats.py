# SPDX-License-Identifier: Apache-2.0
"""`holdfast audit stats`: sums that equal a recount of the events, who may see what, and how long the disk lasts."""
import contextlib
import os
import sqlite3

import pytest

from commands import control, events, on_terminal, run, run_json
from harness import wait_for
from rest import Rest, refused
from test_rest_roles import key_for


def stats(hf, query=''):
    """As the local admin sees them."""
    reply = control(hf, '/api/v1/audit/stats' + query)
    assert reply.status == 200, reply
    return reply.json()


def tenant_of(answer, name='default'):
    found = [row for row in answer['tenants'] if row['tenant'] == name]
    return found[0] if found else {'events': 0, 'bodies': 0, 'body_bytes': 0}


def recount(hf, name='default'):
    """The number of events and of bodies, from the events themselves."""
    rows = [e for e in events(hf) if e['tenant'] == name]
    return len(rows), len([e for e in rows if 'body' in e])


def make_calls(hf, n):
    client = hf.client(modern=True)
    for i in range(n):
        reply = client.call('echo', {'message': f'{i} ' + 'x' * 500})
        assert reply.status == 200 and not reply.result.get('isError'), reply


def is_recount(hf):
    row = tenant_of(stats(hf))
    return row['events'] and (row['events'], row['bodies']) == recount(hf)


def test_stats__equal_a_recount_also_after_kill_9(holdfast, database):
    hf = holdfast(env=database)
    make_calls(hf, 20)
    wait_for(lambda: is_recount(hf), 'the sums to equal a recount')
    row = tenant_of(stats(hf))
    assert row['events'] >= 40 and row['bodies'] >= 40 and row['body_bytes'] > 20 * 2 * 500
    assert row['bytes'] == row['event_bytes'] + row['body_bytes']
    assert row['bytes_per_day'] == row['bytes'] and row['events_per_day'] == row['events']
    assert row['oldest_at'] <= row['newest_at']
    make_calls(hf, 5)
    hf.restart(kill=True)
    make_calls(hf, 5)
    wait_for(lambda: is_recount(hf), 'the sums to equal a recount after a kill')


def sql(hf, database, text):
    """Runs statements; tables as SQLite names them."""
    if database:
        from postgres import Cluster
        for name in 'audit_sizes_todo', 'audit_sizes ', 'fold_state':
            text = text.replace(' ' + name, ' mcp.' + name)
        return Cluster.sql(database['DATABASE_URL'], text)
    with contextlib.closing(sqlite3.connect(os.path.join(hf.data, 'holdfast.db'))) as db:
        db.executescript(text)
    return None


def test_stats__events_of_an_older_holdfast_are_counted_afterwards(holdfast, database):
    hf = holdfast(env=database, settings={'session': {'cleanup': {'interval': '100ms'}}})
    make_calls(hf, 10)
    wait_for(lambda: is_recount(hf), 'the sums to equal a recount')
    hf.stop()
    # As the migration leaves a database in which the fold kept no sums.
    sql(hf, database, 'DELETE FROM audit_sizes ; INSERT INTO audit_sizes_todo (writer, next_id, last_id) '
                      'SELECT writer, writer << 40, max(last_id) FROM fold_state GROUP BY writer')
    hf.start()
    make_calls(hf, 3)
    wait_for(lambda: stats(hf)['uncounted'] == 0, 'the events to be counted')
    wait_for(lambda: is_recount(hf), 'the sums to equal a recount again')


def test_stats__on_the_terminal_say_how_long_the_disk_lasts(holdfast):
    hf = holdfast()
    make_calls(hf, 3)
    wait_for(lambda: tenant_of(stats(hf))['events'] >= 6, 'the events to be folded')
    shown = run(hf, 'audit', 'stats')
    assert shown.returncode == 0, shown
    lines = shown.stdout.splitlines()
    assert lines[0].split() == ['TENANT', 'EVENTS', 'BODIES', 'SIZE', 'A', 'DAY', 'KEPT', 'OLDEST', 'NEWEST']
    assert any(line.startswith('default') for line in lines)
    assert any(line.startswith('database: ') and 'free to be used again' in line for line in lines)
    assert any(line.startswith('disk: ') and 'limits.disk_reserve' in line and 'at this growth it lasts' in line
               for line in lines), lines
    narrow = on_terminal(hf, 'audit', 'stats', NO_COLOR='1').splitlines()
    assert max(map(len, narrow)) <= 80 and any('more than 100 years' in line or ' days' in line for line in narrow), narrow
    answer, = run_json(hf, 'audit', 'stats')
    size = os.stat(os.path.join(hf.data, 'holdfast.db')).st_size
    assert answer['database']['bytes'] >= size // 2 and answer['disk']['free_bytes'] > 0
    assert answer['disk']['days_left'] >= 0
    hf.stop()
    alone, = run_json(hf, 'audit', 'stats')
    assert tenant_of(alone)['events'] >= tenant_of(answer)['events'] and 'disk' in alone


def test_stats__of_postgres_have_no_disk(holdfast, cluster):
    hf = holdfast(env={'DATABASE_URL': cluster.database()})
    answer = stats(hf)
    assert answer['database']['bytes'] > 0 and 'disk' not in answer and 'free_bytes' not in answer['database']


@pytest.fixture
def acme(rest):
    """Callers of one tenant by their role, and an admin of another."""
    api = rest()
    found = {role: key_for(api, '--tenant', 'acme', '--role', role) for role in ('admin', 'auditor', 'member')}
    return api.holdfast, found, key_for(api, '--tenant', 'rival', '--role', 'admin')


def test_stats__of_one_tenant_are_for_its_admins_and_auditors(acme):
    hf, callers, stranger = acme
    wait_for(lambda: {'acme', 'rival'} <= {row['tenant'] for row in stats(hf)['tenants']}, 'the events to be folded')
    for role in 'admin', 'auditor':
        answer = callers[role].get('/audit/stats').json()
        assert [row['tenant'] for row in answer['tenants']] == ['acme']
        assert 'database' not in answer and 'disk' not in answer
        refused(callers[role].get('/audit/stats?tenant=rival'), 403, 'denied')
    refused(callers['member'].get('/audit/stats'), 403, 'denied')
    assert [row['tenant'] for row in stranger.get('/audit/stats').json()['tenants']] == ['rival']
    only = stats(hf, '?tenant=rival')
    assert [row['tenant'] for row in only['tenants']] == ['rival'] and 'database' not in only
    assert '_system' in [row['tenant'] for row in stats(hf)['tenants']]


def test_stats__say_which_rules_apply_and_that_the_disk_then_lasts(holdfast):
    hf = holdfast(settings={'audit': {'keep': '90d', 'bodies': '36h'}, 'tenants': {'acme': {'audit': {'keep': '30d'}}}})
    key_for(Rest(hf), '--tenant', 'acme')
    make_calls(hf, 3)
    wait_for(lambda: tenant_of(stats(hf))['events'] >= 6 and tenant_of(stats(hf), 'acme')['events'], 'the events to be folded')
    assert tenant_of(stats(hf))['rules'] == {'keep_seconds': 90 * 86400, 'bodies_seconds': 36 * 3600}
    assert tenant_of(stats(hf), 'acme')['rules'] == {'keep_seconds': 30 * 86400, 'bodies_seconds': 36 * 3600}
    assert 'days_left' not in stats(hf)['disk'] and 'removed_at' not in tenant_of(stats(hf))
    shown = run(hf, 'audit', 'stats').stdout
    assert 'keep 90d, bodies 36h' in shown and 'it lasts, as the record does not grow beyond it' in shown, shown
