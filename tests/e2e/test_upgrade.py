# SPDX-License-Identifier: Apache-2.0
"""Data of an older version (tests/corpus/upgrade) under today's program: everything in it is there, works and goes on."""
import glob
import json
import os
import subprocess
import tarfile
import time

import harness
import pytest
from commands import run
from harness import TOP, Client
from knowledge import handle_of
from postgres import PSQL
from rest import Rest

STORED = sorted(glob.glob(os.path.join(TOP, 'tests/corpus/upgrade/*.tar.xz')))


class Old:
    """A stored data directory, unpacked into that of a Holdfast, a minute after the older version stopped."""

    def __init__(self, path, folder, make, request):
        with tarfile.open(path) as tar:
            tar.extractall(folder)
        with open(os.path.join(folder, 'facts.json'), encoding='utf-8') as file:
            self.facts = json.load(file)
        self.url = None
        if os.path.exists(os.path.join(folder, 'database.sql')):
            self.url = request.getfixturevalue('cluster').empty_database()
            self.restore(os.path.join(folder, 'database.sql'))
        clock = os.path.join(folder, 'clock')
        with open(clock, 'w', encoding='ascii') as file:
            file.write(f'{int(self.facts["made_at"] + 60 - time.time())}\n')
        self.env = {'HOLDFAST_FAULT_CLOCK': clock, **({'DATABASE_URL': self.url} if self.url else {})}
        self.lens = os.path.join(folder, 'lens')
        self.hf = make({}, {'docs': {'Lens': {'path': self.lens, 'agent': 'write'}}}, start=False, env=self.env)
        self.hf.data = os.path.join(folder, 'data')

    def restore(self, dump):
        done = subprocess.run([PSQL, '-XAtq', '-v', 'ON_ERROR_STOP=1', self.url, '-f', dump], capture_output=True, text=True, timeout=60,
                              check=False)
        assert done.returncode == 0, done.stderr

    def command(self, *words, code=0, **how):
        done = run(self.hf, *words, env=self.env, **how)
        assert done.returncode == code, f'{words}: {done.returncode}\n{done.stdout}{done.stderr}'
        return done.stdout

    def rows(self, *words):
        return [json.loads(line) for line in self.command(*words, '--json').splitlines()]

    @property
    def headers(self):
        return {'Authorization': 'Bearer ' + self.facts['key']}

    def client(self, path):
        return Client(self.hf, path, headers=self.headers)


@pytest.fixture(params=STORED, ids=[os.path.basename(path).split('.tar')[0] for path in STORED])
def old(request, tmp_path, holdfast):
    folder = tmp_path / 'old'
    folder.mkdir()
    return Old(request.param, str(folder), holdfast, request)


def test_there_is_an_older_version_of_each_kind():
    assert {os.path.basename(path).split('-')[2] for path in STORED} == {'sqlite.tar.xz', 'postgresql.tar.xz'}


def test_the_schema_is_that_of_the_older_version_until_the_start(old):
    (status,) = old.rows('db', 'status')
    assert old.facts['version'] < '0.2' and status['schema'] == old.facts['schema'] < status['known']
    old.hf.start()
    (status,) = old.rows('db', 'status')
    assert status['schema'] == status['known']


def test_the_audit_is_whole_and_goes_on(old):
    old.hf.start()
    old.command('audit', 'verify')
    echoed = old.rows('audit', 'list', '--tool', 'echo')
    assert len(echoed) == 1 and echoed[0]['outcome'] == 'ok', echoed
    assert 'said in 0.1' in old.command('audit', 'show', echoed[0]['id'])
    client = old.client('/mcp/sample').connect()
    client.call('echo', {'message': 'said today'})
    old.command('audit', 'verify')
    old.hf.stop()
    old.command('audit', 'verify')


def test_keys_and_users_sign_in_as_before(old):
    old.hf.start()
    assert old.hf.request('GET', '/api/v1/sessions', old.headers).status == 200
    revoked = {'Authorization': 'Bearer ' + old.facts['revoked']}
    assert old.hf.request('GET', '/api/v1/sessions', revoked).status == 401
    assert [row['name'] for row in old.rows('key', 'list') if row['name'] == 'operator']
    assert [row['username'] for row in old.rows('user', 'list')] == ['ada']
    anyone = Rest(old.hf)
    assert anyone.post('/auth/refresh', {'refresh_token': old.facts['refresh']}).status == 200
    assert anyone.post('/auth/login', {'username': 'ada', 'password': old.facts['password']}).status == 200
    assert anyone.post('/auth/login', {'username': 'ada', 'password': 'another'}).status == 401


def test_sessions_go_on_with_their_state(old):
    old.hf.start()
    session = old.facts['session']
    shown = Rest(old.hf, old.headers).session(session)
    assert (shown['status'], shown['client_name']) == ('active', 'upgrade') and shown['passthrough_auth']['services'] == ['web']
    client = old.client('/mcp/sample').connect()
    assert shown['tool_execution_count'] == old.facts['executions'] > 2
    client.call('echo', {'message': 'x'}, meta={'session_id': session})
    assert Rest(old.hf, old.headers).session(session)['tool_execution_count'] == old.facts['executions'] + 1
    # The transport of a client that was connected before the upgrade.
    before = old.client('/mcp/sample')
    before.session, before.version = old.facts['transport'], '2025-11-25'
    assert before.call('echo', {'message': 'x'}).status == 200


def test_a_sealed_credential_is_sent_to_its_server(old, http_server):
    web = http_server('web')
    old.hf.write_config({'mcpServers': {'web': web.entry(handles='never', credential={'service': 'web', 'as': 'header:Authorization'})}})
    old.hf.start()
    old.client('/mcp/web').connect().call('echo', {'text': 'x'}, meta={'session_id': old.facts['session']})
    assert 'Bearer a-sealed-token' in json.dumps(web.record.heads())


def test_sealed_credentials_move_to_a_new_master_key(old):
    old.hf.start()
    old.hf.stop()
    (rotated,) = old.rows('key', 'rotate-master', '--reseal')
    assert rotated['sessions_sealed'] == 1, rotated


def test_documents_have_their_history(old):
    old.hf.start()
    api, texts = Rest(old.hf, old.headers), old.facts['texts']
    path = '/docs/files/Lens/tides.md/history'
    assert [r['revision'] for r in api.get(path).json()['revisions']] == list(range(len(texts), 0, -1))
    assert [api.get(f'{path}/{n + 1}').json()['content'] for n in range(len(texts))] == texts
    client = old.client('/mcp/docs').connect()
    handle = handle_of(client.call('read', {'file_path': 'Lens/tides.md'}))
    client.call('edit', {'file_path': 'Lens/tides.md', 'old_string': 'Low', 'new_string': 'Slack', 'session_id': handle})
    assert len(api.get(path).json()['revisions']) == len(texts) + 1
    old.command('docs', 'restore', 'Lens/tides.md', '--revision', '1')
    with open(os.path.join(old.lens, 'tides.md'), encoding='utf-8') as file:
        assert file.read() == texts[0]


def test_what_is_new_works_on_the_old_data(old):
    old.hf.start()
    old.command('secret', 'set', 'token', stdin='sealed\n')
    assert [row['name'] for row in old.rows('secret', 'list')] == ['token']


def test_a_rollback_gives_the_older_schema_back(old):
    old.hf.start()
    old.hf.stop()
    old.command('db', 'rollback', '--to', str(old.facts['schema']), '--yes')
    (status,) = old.rows('db', 'status')
    assert status['schema'] == old.facts['schema']
    old.hf.start()
    old.command('audit', 'verify')
    assert Rest(old.hf, old.headers).session(old.facts['session'])['status'] == 'active'
