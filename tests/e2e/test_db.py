# SPDX-License-Identifier: Apache-2.0
"""holdfast db: what it prints, what it changes, and what it leaves alone."""
import importlib
import json
import os
import sqlite3
import subprocess

import pytest

import harness
from commands import command_env, run
from packed import unpacked


def numbers(hf):
    """The migrations that are applied, read from the file itself."""
    db = sqlite3.connect(os.path.join(hf.data, 'holdfast.db'))
    try:
        return [n for n, in db.execute('SELECT number FROM schema_migrations ORDER BY number')]
    finally:
        db.close()


def status(hf, code=0):
    done = run(hf, 'db', 'status', '--json')
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_status_of_nothing_makes_nothing(holdfast):
    hf = holdfast(start=False)
    found = status(hf)
    assert found['backend'] == 'sqlite' and found['schema'] == 0 and found['known'] >= 2
    assert [m['number'] for m in found['migrations']] == list(range(1, found['known'] + 1))
    assert not any('applied_at' in m for m in found['migrations'])
    done = run(hf, 'db', 'status')
    assert done.returncode == 0 and 'not applied' in done.stdout and 'holdfast db migrate' in done.stdout
    assert not os.path.exists(hf.data)


def test_dry_run_prints_sql_that_runs_and_changes_nothing(holdfast):
    hf = holdfast(start=False)
    done = run(hf, 'db', 'migrate', '--dry-run')
    assert done.returncode == 0, done.stderr
    assert 'nothing was changed' in done.stderr and not os.path.exists(hf.data)
    db = sqlite3.connect(':memory:')
    db.executescript(done.stdout)
    tables = {name for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {'events', 'edge_mcp_sessions', 'writers'} <= tables
    os.makedirs(hf.data, 0o700)
    with sqlite3.connect(os.path.join(hf.data, 'holdfast.db')) as mine:
        mine.executescript(done.stdout)
    mine.close()
    assert run(hf, 'db', 'migrate').stdout == ''  # what was run by hand counts
    back = run(hf, 'db', 'rollback', '--to', '0', '--dry-run').stdout
    db.create_function('unpacked', 1, unpacked)  # Holdfast's own; 0011 says so
    db.executescript(back)
    assert not db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall()


def test_migrate_then_start_then_status(holdfast):
    hf = holdfast(start=False)
    done = run(hf, 'db', 'migrate')
    assert done.returncode == 0, done.stderr
    known = status(hf)['known']
    assert len(done.stdout.splitlines()) == known and done.stdout.startswith('applied 0001 ')
    assert numbers(hf) == list(range(1, known + 1))
    again = run(hf, 'db', 'migrate')
    assert again.returncode == 0 and again.stdout == '' and 'nothing to do' in again.stderr
    hf.start()
    assert hf.client().connect().call('echo', {'text': 'x'}).status == 200
    found = status(hf)  # beside the daemon
    assert found['schema'] == known and all(m['applied_at'].endswith('Z') for m in found['migrations'])


def test_changes_are_refused_beside_a_daemon(holdfast):
    hf = holdfast()
    before = numbers(hf)
    for args in (['migrate'], ['rollback', '--yes']):
        done = run(hf, 'db', *args)
        assert done.returncode == 7 and 'stop it' in done.stderr, done.stderr
    assert run(hf, 'db', 'migrate', '--dry-run').returncode == 0
    assert run(hf, 'db', 'rollback', '--dry-run').returncode == 0
    assert numbers(hf) == before
    hf.check()


def test_rollback_asks_first_and_undoes_the_newest_or_down_to_n(holdfast):
    hf = holdfast(start=False)
    assert run(hf, 'db', 'migrate').returncode == 0
    known = numbers(hf)
    done = run(hf, 'db', 'rollback')
    assert done.returncode == 2 and '--yes' in done.stderr and numbers(hf) == known
    done = run(hf, 'db', 'rollback', '--yes')
    assert done.returncode == 0 and done.stdout.startswith(f'undone {known[-1]:04d} '), done.stderr
    assert numbers(hf) == known[:-1]
    done = run(hf, 'db', 'rollback', '--to', '1', '--yes', '--json')
    assert done.returncode == 0 and json.loads(done.stdout)['schema'] == 1
    assert numbers(hf) == [1]
    for wrong in ('2', '-1', 'x', ''):
        refused = run(hf, 'db', 'rollback', f'--to={wrong}', '--yes')
        assert refused.returncode == 2 and 'holdfast: --to takes a number' in refused.stderr, refused
    assert run(hf, 'db', 'rollback', '--to', '0', '--yes').returncode == 0
    assert status(hf)['schema'] == 0
    hf.start()  # and all the way up again
    assert numbers(hf) == known


def test_a_newer_schema_is_refused_by_every_verb_and_by_the_start(holdfast):
    hf = holdfast(start=False)
    assert run(hf, 'db', 'migrate').returncode == 0
    db = sqlite3.connect(os.path.join(hf.data, 'holdfast.db'))
    db.execute("INSERT INTO schema_migrations VALUES (99, 'future', 1763197323456)")
    db.commit()
    db.close()
    before = numbers(hf)
    found = status(hf, code=7)
    assert found['schema'] == 99
    assert found['migrations'][-1] == {'number': 99, 'name': 'future', 'known': False,
                                       'applied_at': '2025-11-15T09:02:03.456Z'}
    for args in (['migrate'], ['migrate', '--dry-run'], ['rollback', '--yes'], ['status']):
        done = run(hf, 'db', *args)
        assert done.returncode == 7 and 'newer' in done.stderr, (args, done.stderr)
    hf.start(wait=False)
    assert hf.process.wait(20) == 7
    assert numbers(hf) == before


def test_usage(holdfast):
    hf = holdfast(start=False)
    for args in ([], ['up'], ['status', 'x'], ['status', '--yes'], ['migrate', '--to', '1']):
        assert run(hf, 'db', *args).returncode == 2
    done = run(hf, 'db', 'status', '--database-url', 'mysql://u:geheim@h/x')
    assert done.returncode == 7 and 'geheim' not in done.stderr and 'postgresql://' in done.stderr
    done = run(hf, 'db', 'status', env={'DATABASE_URL': 'u:geheim@h/x'})
    assert done.returncode == 7 and 'geheim' not in done.stderr


def pg(hf, url, *args, code=0):
    done = run(hf, 'db', *args, env={'DATABASE_URL': url})
    assert done.returncode == code, (args, done.stdout, done.stderr)
    return done


def test_postgres__status_migrate_rollback(holdfast, cluster):
    hf, url = holdfast(start=False), cluster.empty_database()
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'mcp'"
    before = json.loads(pg(hf, url, 'status', '--json').stdout)
    assert before['backend'] == 'postgresql' and before['schema'] == 0 and before['known'] >= 2
    assert not any('applied_at' in m for m in before['migrations'])
    dry = pg(hf, url, 'migrate', '--dry-run').stdout
    assert 'CREATE TABLE' in dry and cluster.sql(url, tables) == [['0']]
    done = pg(hf, url, 'migrate').stdout
    assert len(done.splitlines()) == before['known']
    after = json.loads(pg(hf, url, 'status', '--json').stdout)
    assert after['schema'] == before['known'] and all(m['applied_at'].endswith('Z') for m in after['migrations'])
    assert pg(hf, url, 'migrate').stdout == ''
    pg(hf, url, 'rollback', code=2)
    assert json.loads(pg(hf, url, 'rollback', '--yes', '--json').stdout)['schema'] == before['known'] - 1
    pg(hf, url, 'rollback', '--to', '0', '--yes')
    assert cluster.sql(url, tables) == [['0']]
    pg(hf, url, 'migrate')
    assert not os.path.exists(hf.data)  # nothing of the data directory was needed


def test_postgres__the_sql_of_a_dry_run_is_what_runs(holdfast, cluster):
    hf, url, other = holdfast(start=False), cluster.empty_database(), cluster.empty_database()
    dry = pg(hf, url, 'migrate', '--dry-run').stdout
    cluster.sql(other, dry)
    pg(hf, url, 'migrate')
    columns = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'mcp' ORDER BY 1, 2"
    assert cluster.sql(other, columns) == cluster.sql(url, columns)
    assert pg(hf, other, 'migrate').stdout == ''  # what was run by hand counts
    cluster.sql(other, pg(hf, other, 'rollback', '--to', '0', '--dry-run').stdout)
    assert cluster.sql(other, columns) == []


@pytest.fixture
def role(cluster):
    """Makes roles, which a cluster has for all its databases; they go away again."""
    made = []

    def make(url, name, options=''):
        cluster.sql(url, f'CREATE ROLE {name} {options}')
        made.append((url, name))
    yield make
    for url, name in made:
        cluster.sql(url, f'DROP OWNED BY {name}; DROP ROLE {name}')


def test_postgres__a_role_without_rights_is_told_what_it_needs(holdfast, cluster, role):
    hf, url = holdfast(start=False), cluster.empty_database()
    role(url, 'restricted', 'LOGIN')
    mine = url.replace('holdfast@', 'restricted@')
    for _ in range(2):  # without the schema, and with one that it may not use
        done = pg(hf, mine, 'migrate', code=7)
        assert 'permission denied' in done.stderr and "as the schema's owner" in done.stderr and 'report' not in done.stderr
        pg(hf, url, 'migrate')


def test_postgres__a_role_api_user_made_later_gets_its_grants_with_the_next_migrate(holdfast, cluster, role):
    hf, url = holdfast(start=False), cluster.empty_database()
    pg(hf, url, 'migrate')
    role(url, 'api_user')
    assert pg(hf, url, 'migrate').stdout == ''
    assert cluster.sql(url, 'SET ROLE api_user; SELECT mcp.cleanup_expired_sessions()') == [['0']]
    assert cluster.sql(url, 'SET ROLE api_user; SELECT count(*) FROM mcp.session_metrics') == [['0']]


def test_postgres__nodes_that_migrate_at_once_apply_each_migration_once(holdfast, cluster):
    hf, url = holdfast(start=False), cluster.empty_database()
    env = {**command_env(hf), 'DATABASE_URL': url}
    nodes = [subprocess.Popen([harness.BINARY, 'db', 'migrate'], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
             for _ in range(4)]
    for node in nodes:
        out, err = node.communicate(timeout=60)
        assert node.returncode == 0, (out, err)
    known = json.loads(pg(hf, url, 'status', '--json').stdout)['known']
    assert cluster.sql(url, 'SELECT number FROM mcp.schema_migrations ORDER BY 1') == [[str(n + 1)] for n in range(known)]


def test_postgres__a_newer_schema_is_refused(holdfast, cluster):
    hf, url = holdfast(start=False), cluster.empty_database()
    pg(hf, url, 'migrate')
    cluster.sql(url, "INSERT INTO mcp.schema_migrations (number, name) VALUES (99, 'future')")
    for args in (['status'], ['migrate'], ['rollback', '--yes']):
        assert 'newer' in pg(hf, url, *args, code=7).stderr
    hf.env['DATABASE_URL'] = url
    hf.start(wait=False)
    assert hf.process.wait(20) == 7
    assert cluster.sql(url, 'SELECT max(number) FROM mcp.schema_migrations') == [['99']]


def test_postgres__passwords_are_never_shown(holdfast, cluster):
    hf, url = holdfast(start=False), cluster.empty_database()
    secret = url.replace('holdfast@', 'holdfast:geheim@') + '&sslpassword=geheim'
    for args in (['status'], ['status', '--json'], ['migrate'], ['migrate']):
        done = pg(hf, secret, *args)
        assert 'geheim' not in done.stdout + done.stderr
    for wrong in ('postgresql://u:geheim@127.0.0.1:1/x', 'postgresql://u:geheim@[bad/x', 'postgresql://u:geheim@h/x?nonsense=geheim'):
        done = run(hf, 'db', 'status', '--database-url', wrong)
        assert done.returncode in (1, 4, 7) and 'geheim' not in done.stdout + done.stderr, done


def test_postgres__goes_back_only_when_no_node_uses_it(holdfast, cluster):
    url = cluster.empty_database()
    hf = holdfast(env={'DATABASE_URL': url})
    done = pg(hf, url, 'rollback', '--yes', code=6)
    assert 'in use' in done.stderr and 'stop' in done.stderr
    assert pg(hf, url, 'rollback', '--dry-run').stdout
    hf.check()
    hf.stop()
    pg(hf, url, 'rollback', '--yes')


def test_postgres__a_start_that_failed_uses_the_database_no_longer(holdfast, cluster):
    url = cluster.empty_database()
    hf = holdfast(env={'DATABASE_URL': url})
    hf.stop()
    other = holdfast(env={'DATABASE_URL': url}, start=False)  # it makes keys of its own
    refused = run(other, 'up', '--listen', '127.0.0.1:0', env={'DATABASE_URL': url}, with_data=True)
    assert refused.returncode == 7 and 'audit.key' in refused.stderr, refused.stderr
    pg(hf, url, 'rollback', '--yes')


def test_sqlite__starts_without_the_libraries_of_postgres(holdfast, cluster):
    def loaded(hf):
        with open(f'/proc/{hf.process.pid}/maps', encoding='utf-8') as file:
            return {os.path.basename(line.split()[-1]).split('.so')[0] for line in file if '.so' in line}
    assert not {'libpq', 'libldap-2.5', 'libgnutls', 'libkrb5'} & loaded(holdfast())
    assert 'libpq' in loaded(holdfast(env={'DATABASE_URL': cluster.empty_database()}))


def test_postgres__the_statements_that_the_benchmark_compares_with_fit_the_schema(holdfast, cluster, monkeypatch):
    monkeypatch.syspath_prepend(os.path.join(harness.TOP, 'bench'))
    registry = importlib.import_module('registry')
    hf, url = holdfast(start=False), cluster.empty_database()
    pg(hf, url, 'migrate')
    one = registry.CREATE.format(id=registry.ROW_ID.format('i'), name=registry.NAME.format('i'), most=registry.MOST)
    assert {tuple(row) for row in cluster.sql(url, f'{one} FROM generate_series(1, 2) i')} == {('0',)}
    for kind, script in registry.SCRIPTS.items():
        text = '\n'.join(line for line in script.replace(':i', '1').splitlines() if not line.startswith('\\'))
        assert (cluster.sql(url, text) != []) == (kind != 'record'), kind
    assert cluster.sql(url, 'SELECT count(*) FROM mcp.session_tool_executions') == [['1']]


def test_rollback_on_postgres__says_how_long_a_killed_node_counts(holdfast, cluster):
    url = cluster.database()
    hf = holdfast(env={'DATABASE_URL': url})
    hf.kill()
    assert '(a node that was killed counts for up to 15 seconds)' in pg(hf, url, 'rollback', '--yes', code=6).stderr
