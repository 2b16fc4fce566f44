# SPDX-License-Identifier: Apache-2.0
"""docs/backup.md with PostgreSQL: dump, keys and anchors make a node again elsewhere.  With SQLite the page itself is run
(test_how_tos.py)."""
import glob
import os
import re
import shutil
import subprocess

import pytest

from commands import run
from harness import DEADLINE_S, TOP
from ledger import verify
from postgres import PSQL
from redis_server import Redis

TOOLS = os.path.dirname(PSQL)
KEYS = ('audit.key', 'master.key', 'token.key')


def pg(program, *args):
    done = subprocess.run([os.path.join(TOOLS, program), *args], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(name='node')
def fixture_node(holdfast, cluster, stdio_server):
    """A node whose server gets a stored secret, with calls in its record."""
    entry, record = stdio_server('up', handles='never')
    entry['env'] = {**entry.get('env', {}), 'TOKEN': '${secret:TOKEN}'}
    node = holdfast({'up': entry}, start=False, env={'DATABASE_URL': cluster.database()})
    assert run(node, 'secret', 'set', 'TOKEN', stdin='s3cret\n', env=node.env).returncode == 0
    node.start()
    for count in ('1', '2'):
        assert node.client('/mcp/up', headers={'mcp-client-id': 'a'}).call('counter').text == count
    return node, entry, record


def back_up(node, folder):
    folder.mkdir()
    shutil.copy(os.path.join(node.data, 'audit-anchors.jsonl'), folder)
    pg('pg_dump', '--schema=mcp', '--format=custom', f'--file={folder}/dump', node.env['DATABASE_URL'])
    for name in KEYS:
        shutil.copy(os.path.join(node.data, name), folder)


def test_restored_elsewhere__the_record_verifies_and_secrets_open(node, holdfast, cluster, tmp_path):
    lost, entry, record = node
    back_up(lost, tmp_path / 'backup')
    assert lost.client('/mcp/up', headers={'mcp-client-id': 'a'}).call('counter').text == '3'  # not in the backup
    lost.kill()
    url = cluster.empty_database()
    pg('pg_restore', f'--dbname={url}', f'{tmp_path}/backup/dump')
    fresh = holdfast({'up': entry}, start=False, env={'DATABASE_URL': url})
    os.makedirs(fresh.data, mode=0o700)
    for name in (*KEYS, 'audit-anchors.jsonl'):
        shutil.copy(tmp_path / 'backup' / name, fresh.data)
    verify(fresh, DATABASE_URL=url)
    starts = len(record.starts())
    fresh.start()
    assert fresh.client('/mcp/up', headers={'mcp-client-id': 'a'}).call('counter').text.startswith('1')
    assert len(record.starts()) > starts, 'the server was started, which takes its secret'
    rows = [line for line in run(fresh, 'audit', 'list', env=fresh.env).stdout.splitlines() if 'counter' in line]
    assert len(rows) == 3, rows


def test_newer_anchors_beside_an_older_database__are_reported(node, holdfast, cluster, tmp_path):
    lost, entry, _ = node
    back_up(lost, tmp_path / 'backup')
    lost.client('/mcp/up', headers={'mcp-client-id': 'a'}).call('counter')
    lost.stop()  # which anchors the end
    url = cluster.empty_database()
    pg('pg_restore', f'--dbname={url}', f'{tmp_path}/backup/dump')
    fresh = holdfast({'up': entry}, start=False, env={'DATABASE_URL': url})
    os.makedirs(fresh.data, mode=0o700)
    for path in glob.glob(os.path.join(lost.data, '*.key')) + [os.path.join(lost.data, 'audit-anchors.jsonl')]:
        shutil.copy(path, fresh.data)
    done = run(fresh, 'audit', 'verify', env=fresh.env)
    assert done.returncode == 8 and 'cut off' in done.stderr, done.stdout + done.stderr


def test_the_line_that_empties_redis__leaves_keys_of_others(tmp_path):
    with open(os.path.join(TOP, 'docs/backup.md'), encoding='utf-8') as file:
        (line,) = re.findall(r'^    (redis-cli .*)$', file.read(), re.M)
    redis = Redis('--tcp')
    try:
        for key in ('session:epoch', 'session:limit:1', 'other'):
            assert subprocess.run(['redis-cli', '-u', redis.url, 'set', key, '1'], check=True, capture_output=True).stdout == b'OK\n'
        for _ in range(2):  # also if there is nothing to delete
            done = subprocess.run(['bash', '-c', line], cwd=tmp_path, env={**os.environ, 'REDIS_URL': redis.url}, capture_output=True, text=True,
                                  timeout=DEADLINE_S, check=False)
            assert done.returncode == 0 and not done.stderr, done.stderr
        left = subprocess.run(['redis-cli', '-u', redis.url, '--scan'], check=True, capture_output=True, text=True).stdout
        assert left == 'other\n'
    finally:
        redis.close()
