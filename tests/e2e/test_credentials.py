# SPDX-License-Identifier: Apache-2.0
"""Credentials that a session holds for other services: kept sealed, shown to nobody."""
import glob
import json
import os
import subprocess

import pytest

from harness import BINARY
from rest import refused

CANARY = 'canary-7f3b9d1c'
ESCAPED = 'canary-7f3b9d1\\u0063'


def bundle(secret=CANARY):
    return {'credentials': {'github': {'type': 'bearer', 'token': secret + '-bearer'},
                            'Jira': {'type': 'api_key', 'key_name': 'X-Jira-Key', 'key_value': secret + '-key'},
                            '*': {'type': 'basic', 'username': secret + '-user', 'password': secret + '-password'}},
            'oauth_tokens': {'slack': {'access_token': secret + '-access', 'refresh_token': secret + '-refresh'}},
            'session_tokens': {'zulip': secret + '-session'},
            'custom_headers': {'X-Secret': secret + '-header'},
            'agent_context': {'agent_type': 'claude', 'user_id': secret + '-agent'}}


SHOWN = {'has_auth': True, 'services': ['*', 'Jira', 'github', 'slack', 'zulip']}


def key_file(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return {'HOLDFAST_MASTER_KEY_FILE': str(path)}


def refused_start(one, words):
    one.start(wait=False)
    assert one.process.wait(20) == 7
    one.readers[-1].join(20)
    assert words in one.text(), one.text()
    one.process = None


def test_create__shows_for_whom_there_are_credentials_and_nothing_more(rest):
    api = rest()
    session = api.create(passthrough_auth=bundle())
    assert session['passthrough_auth'] == SHOWN
    assert api.session(session['session_id']) == session
    assert api.get('/sessions').json()['sessions'] == [session]
    assert 'passthrough_auth' not in api.create()


def test_patch__replaces_credentials_and_null_takes_them_away(rest):
    api = rest()
    path = '/sessions/' + api.create(passthrough_auth=bundle())['session_id']
    one = {'session_tokens': {'zulip': CANARY}}
    changed = api.patch(path, {'passthrough_auth': one}, headers={'If-Match': '*'})
    assert changed.status == 200 and changed.json()['passthrough_auth'] == {'has_auth': True, 'services': ['zulip']}
    kept = api.patch(path, {'client_name': 'x'}, headers={'If-Match': changed.header('etag')})
    assert kept.json()['passthrough_auth'] == {'has_auth': True, 'services': ['zulip']}
    refused(api.patch(path, {'passthrough_auth': bundle()}, headers={'If-Match': changed.header('etag')}), 412, 'precondition_failed')
    gone = api.patch(path, {'passthrough_auth': None}, headers={'If-Match': '*'})
    assert gone.status == 200 and 'passthrough_auth' not in gone.json()


@pytest.mark.parametrize('auth', [
    {}, [], 'text', {'credentials': {'github': {'token': CANARY}}}, {'surprise': {'github': CANARY}},
    {'credentials': {'github': {'type': 'bearer', 'token': CANARY + '\r\nX: y'}}},
    {'session_tokens': {'a': 'x' * 65536}}])
def test_create__refuses_a_bundle_that_is_none_without_repeating_it(rest, auth):
    api = rest()
    reply = refused(api.post('/sessions', {'edge_mcp_id': 'e', 'passthrough_auth': auth}), 400, 'bad_input')
    assert CANARY not in reply.body.decode()
    assert api.get('/sessions').json()['count'] == 0


def files_of(folder):
    for path in glob.glob(os.path.join(folder, '**'), recursive=True):
        if os.path.isfile(path):
            with open(path, 'rb') as file:
                yield path, file.read()


def test_canary__is_in_no_answer_log_file_or_database(rest):
    api = rest(env={'HOLDFAST_LOG_LEVEL': 'debug'})
    raw = json.dumps({'edge_mcp_id': 'e', 'session_id': 's1', 'passthrough_auth': bundle()}).replace(CANARY + '-key', ESCAPED + '-key')
    seen = [api.post('/sessions', raw=raw.encode(), headers={'Idempotency-Key': 'k1'})]
    seen.append(api.post('/sessions', raw=raw.encode(), headers={'Idempotency-Key': 'k1'}))
    assert [r.status for r in seen] == [201, 201]
    seen.append(api.post('/sessions', raw=raw.encode()))
    assert seen[-1].status == 409
    seen.append(api.patch('/sessions/s1', {'passthrough_auth': bundle(CANARY + '-new')}, headers={'If-Match': '*'}))
    seen.append(api.patch('/sessions/s1', {'passthrough_auth': {'x': CANARY}}, headers={'If-Match': '*'}))
    seen += [api.get('/sessions'), api.get('/sessions/s1'), api.get('/sessions/s1/context'), api.holdfast.get('/metrics')]
    for reply in seen:
        assert CANARY not in reply.body.decode() and CANARY not in str(reply.headers)
    audit = subprocess.run([BINARY, 'audit', '--data', api.holdfast.data], capture_output=True, text=True, timeout=60,
                           env={**os.environ, **api.holdfast.env}, check=False)
    assert CANARY not in audit.stdout + audit.stderr
    for path, content in files_of(api.holdfast.data):  # with the WAL as it is
        assert CANARY.encode() not in content, path
    api.holdfast.stop()
    for path, content in files_of(api.holdfast.folder):
        assert CANARY.encode() not in content, path
    assert CANARY not in '\n'.join(api.holdfast.lines)


def test_canary__is_not_in_postgres(holdfast, cluster):
    from rest import Rest
    url = cluster.database()
    api = Rest(holdfast(env={'DATABASE_URL': url}))
    api.create(passthrough_auth=bundle())
    rows = cluster.sql(url, 'SELECT encode(passthrough_auth_encrypted, \'escape\') FROM mcp.edge_mcp_sessions')
    assert rows[0][0].startswith('hfs1.') and CANARY not in str(rows)
    assert CANARY not in str(cluster.sql(url, 'SELECT * FROM mcp.idempotency'))


def test_credentials__outlive_a_restart_and_a_crash(rest):
    api = rest()
    name = api.create(passthrough_auth=bundle())['session_id']
    api.holdfast.restart(kill=True)
    assert api.session(name)['passthrough_auth'] == SHOWN
    api.create(passthrough_auth=bundle())


def test_start__makes_a_master_key_once_for_its_owner_alone(holdfast):
    one = holdfast()
    path = os.path.join(one.data, 'master.key')
    assert os.stat(path).st_mode & 0o777 == 0o600
    with open(path, encoding='utf-8') as file:
        first = file.read()
    one.restart(kill=True)
    with open(path, encoding='utf-8') as file:
        assert file.read() == first
    assert first.split()[2] not in '\n'.join(one.lines)


@pytest.mark.parametrize('text, mode, words', [
    ('changeme', 0o600, '32 random bytes'), ('00' * 32, 0o600, 'sequence'), (os.urandom(31).hex(), 0o600, '32 random bytes'),
    (os.urandom(16).hex() * 2, 0o600, 'repeats'), (os.urandom(32).hex(), 0o640, 'chmod 600'), (os.urandom(32).hex(), 0o604, 'chmod 600'),
    ('603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4', 0o600, 'published')])
def test_start__refuses_a_weak_or_open_master_key(holdfast, tmp_path, text, mode, words):
    refused_start(holdfast(start=False, env=key_file(tmp_path / 'key', text, mode)), words)


def test_start__takes_a_key_from_a_file_or_the_credentials_directory(holdfast, tmp_path):
    text = os.urandom(32).hex() + '\n'
    one = holdfast(env=key_file(tmp_path / 'key', text))
    assert not os.path.exists(os.path.join(one.data, 'master.key'))
    folder = tmp_path / 'credentials'
    folder.mkdir()
    key_file(folder / 'holdfast-master-key', text, 0o440)  # as systemd shows an access list
    other = holdfast(env={'CREDENTIALS_DIRECTORY': str(folder)})
    assert not os.path.exists(os.path.join(other.data, 'master.key'))
    refused_start(holdfast(start=False, env={'HOLDFAST_MASTER_KEY_FILE': str(tmp_path / 'none')}), 'cannot be opened')


def test_start__refuses_another_master_key_than_the_one_that_sealed(rest, tmp_path):
    api = rest()
    api.create(passthrough_auth=bundle())
    api.holdfast.stop()
    path = os.path.join(api.holdfast.data, 'master.key')
    os.rename(path, path + '.away')
    refused_start(api.holdfast, 'cannot be opened')  # and none is made over it
    assert not os.path.exists(path)
    env = dict(api.holdfast.env)
    api.holdfast.env.update(key_file(tmp_path / 'other', os.urandom(32).hex()))
    refused_start(api.holdfast, 'sealed by the master key')
    api.holdfast.env = env
    os.rename(path + '.away', path)
    api.holdfast.start()
    assert api.get('/sessions').json()['sessions'][0]['passthrough_auth'] == SHOWN
