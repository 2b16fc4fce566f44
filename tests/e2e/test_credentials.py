# SPDX-License-Identifier: Apache-2.0
"""Credentials that a session holds for other services: kept sealed, shown to nobody."""
import glob
import json
import os
import subprocess

import pytest

from harness import BINARY, BUILD, LONG, wait_for
from packed import events_in
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
            yield path + ' (events)', events_in(path)


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


def test_start__takes_audit_and_token_keys_from_the_credentials_directory(holdfast, tmp_path):
    for name in ('holdfast-audit-key', 'holdfast-token-key'):
        key_file(tmp_path / name, os.urandom(32).hex() + '\n', 0o440)
    one = holdfast(env={'CREDENTIALS_DIRECTORY': str(tmp_path)})
    assert not os.path.exists(os.path.join(one.data, 'audit.key')) and not os.path.exists(os.path.join(one.data, 'token.key'))
    one.stop()
    key_file(tmp_path / 'holdfast-token-key', os.urandom(32).hex() + '\n', 0o444)
    refused_start(one, 'chmod 600')


@pytest.mark.parametrize('name', ['audit.key', 'token.key', 'master.key'])
@pytest.mark.parametrize('mode', [0o640, 0o604, 0o644])
def test_start__refuses_key_files_that_others_can_read(holdfast, name, mode):
    one = holdfast()
    one.stop()
    os.chmod(os.path.join(one.data, name), mode)
    refused_start(one, 'chmod 600')


def test_start__warns_of_a_configuration_that_shows_secrets_to_others(holdfast, stdio_server):
    entry, _ = stdio_server('rec', env={'API_TOKEN': CANARY})
    one = holdfast({'rec': entry}, start=False)
    os.chmod(one.config_file, 0o644)
    one.start()
    warned = one.wait_log(lambda l: 'can be read by other users' in l.get('warning', ''), 'a warning')
    assert warned['level'] == 'warn' and one.config_file in warned['warning'] and CANARY not in str(one.log())
    one.stop()
    os.chmod(one.config_file, 0o600)
    with one.turn:
        one.lines.clear()
    one.start()
    assert 'can be read by other users' not in str(one.log())


def test_config__takes_secrets_from_the_credentials_directory(rest, stdio_server, tmp_path):
    (tmp_path / 'given').mkdir()
    key_file(tmp_path / 'given' / 'github', CANARY + '\n', 0o440)
    entry, _ = stdio_server('rec', env={'GITHUB_TOKEN': 'Bearer ${credential:github}'})
    api = rest({'rec': entry}, env={'CREDENTIALS_DIRECTORY': str(tmp_path / 'given')})
    seen = json.loads(call(api.holdfast, '/mcp/rec', api.create()['session_id'], 'env').text)
    assert seen['GITHUB_TOKEN'] == 'Bearer ' + CANARY and 'CREDENTIALS_DIRECTORY' not in seen
    assert CANARY not in str(api.holdfast.log())


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


# Use: the session's calls take them along, nobody else's do.

def tokens(secret, service='github'):
    return {'credentials': {service: {'type': 'bearer', 'token': secret}}}


def call(one, path, session, tool='echo', modern=False, **arguments):
    """A tool call of a session that REST made."""
    with one.client(path, modern=modern) as client:
        if modern:
            return client.call(tool, arguments, meta={'session_id': session})
        return client.call(tool, arguments, headers={'Mcp-Session-Id': session})


def fields_of(server):
    """The headers of the requests that reached it, in order."""
    return [{n.lower(): v for n, v in head['headers']} for head in server.record.heads()]


def sent_headers(server, name):
    """Of the requests that reached it, in order; None where there was no such header."""
    return [fields.get(name.lower()) for fields in fields_of(server)]


@pytest.mark.parametrize('era', ['legacy', 'modern'])
@pytest.mark.parametrize('share', ['session', 'all'])
def test_header__goes_with_the_calls_of_its_session_alone(rest, http_server, era, share):
    server = http_server('web', '--era', era)
    api = rest({'web': server.entry(share=share, headers={'Authorization': 'Bearer configured', 'X-Other': 'stays'},
                                    credential={'service': 'github', 'as': 'header:Authorization'})})
    one, two = (api.create(passthrough_auth=tokens(f'{CANARY}-{n}'))['session_id'] for n in (1, 2))
    none, other = api.create()['session_id'], api.create(passthrough_auth=tokens(CANARY, 'gitlab'))['session_id']
    call(api.holdfast, '/mcp/web', none, text='what it offers is known from now on')
    wanted = {one: f'Bearer {CANARY}-1', two: f'Bearer {CANARY}-2', none: 'Bearer configured', other: 'Bearer configured'}
    owner = {}  # of the server's own sessions: a stream of one may be opened while the next one calls
    for _ in range(2):
        for session, header in wanted.items():
            before = len(server.record.heads())
            assert call(api.holdfast, '/mcp/web', session, text='hello').text == 'hello'
            heads = fields_of(server)[before:]
            for head in heads:
                owner.setdefault(head.get('mcp-session-id'), session)
            owner[None] = session
            sent = [head.get('authorization') for head in heads
                    if share == 'all' or owner[head.get('mcp-session-id')] == session]
            # what else is there is the end of earlier links, which have the configured one
            assert set(sent) - {'Bearer configured'} == {header} - {'Bearer configured'} and header in sent, (session, sent)
    assert set(sent_headers(server, 'x-other')) <= {'stays', None} and 'stays' in sent_headers(server, 'x-other')
    with api.holdfast.client('/mcp/web') as client:  # a client that names no session
        before = len(server.record.heads())
        client.call('echo', {'text': 'x'})
        assert set(sent_headers(server, 'authorization')[before:]) == {'Bearer configured'}


@pytest.mark.parametrize('auth, header, value', [
    ({'credentials': {'github': {'type': 'basic', 'username': 'u', 'password': 'p'}}}, 'Authorization', 'Basic dTpw'),
    ({'credentials': {'github': {'type': 'api_key', 'key_name': 'x-own', 'key_value': 'v1'}}}, 'X-Own', 'v1'),
    ({'credentials': {'github': {'type': 'api_key', 'key_name': 'X-Other', 'key_value': 'v3'}}}, 'Authorization', 'v3'),
    ({'credentials': {'github': {'type': 'api_key', 'token': 'v2'}}}, 'Authorization', 'v2'),
    ({'credentials': {'*': {'type': 'bearer', 'token': 'all'}}}, 'Authorization', 'Bearer all'),
    ({'oauth_tokens': {'github': {'access_token': 'o'}}}, 'Authorization', 'Bearer o'),
    ({'session_tokens': {'github': 's'}}, 'Authorization', 'Bearer s'),
    ({'custom_headers': {'authorization': 'Custom c'}}, 'Authorization', 'Custom c')])
def test_header__is_made_of_what_kind_the_credential_is(holdfast, http_server, auth, header, value):
    from rest import Rest
    server = http_server('web')
    api = Rest(holdfast({'web': server.entry(credential={'service': 'GitHub', 'as': 'header:Authorization', 'key_names': ['X-Own']})}))
    session = api.create(passthrough_auth=auth)['session_id']
    call(api.holdfast, '/mcp/web', api.create()['session_id'], text='what it offers is known from now on')
    before = len(server.record.heads())
    assert call(api.holdfast, '/mcp/web', session, text='x').text == 'x'
    assert set(sent_headers(server, header)[before:]) - {None} == {value}


NOT_THEIRS = ['X-Tenant', 'Authorization', 'Proxy-Authorization', 'Transfer-Encoding', 'Host', 'Connection', 'Content-Length', 'Content-Type', 'Cookie',
              'Accept', 'Upgrade', 'TE', 'Expect', 'Mcp-Session-Id', 'MCP-Protocol-Version', 'Mcp-Method', 'Mcp-Param-Path', 'Last-Event-ID']


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_header__named_by_a_client_is_not_sent_unless_the_operator_lists_it(rest, http_server, era):
    server = http_server('web', '--era', era)
    api = rest({'web': server.entry(headers={'X-Tenant': 'operator', 'Authorization': 'Bearer operator'},
                                    credential={'service': 's', 'as': 'header:X-Key', 'key_names': ['X-Allowed']})})
    call(api.holdfast, '/mcp/web', api.create()['session_id'], text='what it offers is known from now on')
    for name in NOT_THEIRS:
        before = len(server.record.heads())
        auth = {'credentials': {'s': {'type': 'api_key', 'key_name': name, 'key_value': 'chosen-by-a-client'}}}
        session = api.create(passthrough_auth=auth)['session_id']
        assert call(api.holdfast, '/mcp/web', session, text='x').text == 'x', name
        posts = [h for h in server.record.heads()[before:] if h['line'].startswith('POST')]
        assert posts, name
        for head in posts:
            names = [n.lower() for n, _ in head['headers']]
            assert len(names) == len(set(names)), (name, names)
            fields = {n.lower(): v for n, v in head['headers']}
            assert fields['x-tenant'] == 'operator' and fields['authorization'] == 'Bearer operator', (name, fields)
            assert {n for n, v in fields.items() if v == 'chosen-by-a-client'} <= {'x-key'}, (name, fields)
        assert any(['X-Key', 'chosen-by-a-client'] in [list(f) for f in h['headers']] for h in posts), name


def test_header__of_the_longest_credential_goes_with_the_call_and_with_the_goodbye(holdfast, http_server):
    from rest import Rest
    server = http_server('web', '--era', 'legacy')
    api = Rest(holdfast({'web': server.entry(headers={'X-Long': 'l' * 49000}, credential={'service': 'github', 'as': 'header:Authorization'})}))
    longest = 'x' * (65536 - len(json.dumps({'session_tokens': {'github': ''}})))
    session = api.create(passthrough_auth={'session_tokens': {'github': longest}})['session_id']
    assert call(api.holdfast, '/mcp/web', session, text='x').text == 'x'
    assert api.delete('/sessions/' + session).status in (200, 204)
    wait_for(lambda: any(h['line'].startswith('DELETE') and ['Authorization', 'Bearer ' + longest] in [list(f) for f in h['headers']]
                         for h in server.record.heads()), 'the goodbye')


def environ_of(pid):
    with open(f'/proc/{pid}/environ', 'rb') as file:
        return file.read()


def test_env__is_in_the_process_of_its_session_and_in_no_other(rest, stdio_server):
    entry, record = stdio_server('rec', env={'GITHUB_TOKEN': 'configured'}, credential={'service': 'github', 'as': 'env:GITHUB_TOKEN'})
    beside, others = stdio_server('other')
    api = rest({'rec': entry, 'other': beside}, env={'HOLDFAST_LOG_LEVEL': 'debug'})
    one, none = api.create(passthrough_auth=tokens(CANARY))['session_id'], api.create()['session_id']
    reply = call(api.holdfast, '/mcp/rec', one, 'env')
    assert json.loads(reply.text)['GITHUB_TOKEN'] == CANARY
    pid = reply.result['structuredContent']['pid']
    assert json.loads(call(api.holdfast, '/mcp/rec', none, 'env').text)['GITHUB_TOKEN'] == 'configured'
    assert 'GITHUB_TOKEN' not in json.loads(call(api.holdfast, '/mcp/other', one, 'env').text)
    alive = [p for p in record.starts() + others.starts() if os.path.exists(f'/proc/{p}')]
    assert [p for p in alive if CANARY.encode() in environ_of(p)] == [pid]
    api.holdfast.stop()
    for path, content in files_of(api.holdfast.folder):
        assert CANARY.encode() not in content, path


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_meta__is_added_to_the_calls_of_its_session(holdfast, stdio_server, era):
    from rest import Rest
    entry, record = stdio_server('rec', '--era', era, share='all', credential={'service': 'github', 'as': 'meta:acme/token'})
    api = Rest(holdfast({'rec': entry}))
    one, none = api.create(passthrough_auth=tokens(CANARY))['session_id'], api.create()['session_id']
    for session in (one, none):
        assert call(api.holdfast, '/mcp/rec', session, text='x').text == 'x'
    with api.holdfast.client('/mcp/rec') as client:
        client.call('echo', {'text': 'x'}, meta={'a': 1, 'acme/token': 'theirs'}, headers={'Mcp-Session-Id': one})
    metas = [json.loads(m)['params'].get('_meta', {}) for m in record.of('tools/call')]
    assert [m.get('acme/token') for m in metas] == [CANARY, None, CANARY]
    assert metas[2]['a'] == 1 and record.of('tools/call')[2].count(b'acme/token') == 1


def test_patch__ends_the_process_that_has_the_old_credential_and_says_so(rest, stdio_server):
    entry, _ = stdio_server('rec', credential={'service': 'github', 'as': 'env:GITHUB_TOKEN'})
    api = rest({'rec': entry})
    name = api.create(passthrough_auth=tokens('old'))['session_id']
    assert json.loads(call(api.holdfast, '/mcp/rec', name, 'env').text)['GITHUB_TOKEN'] == 'old'
    assert 'holdfast/state-lost' not in call(api.holdfast, '/mcp/rec', name, 'counter').result.get('_meta', {})
    for auth, wanted in ((tokens('new'), 'new'), (None, None), (tokens('again'), 'again')):
        assert api.patch('/sessions/' + name, {'passthrough_auth': auth}, headers={'If-Match': '*'}).status == 200
        reply = call(api.holdfast, '/mcp/rec', name, 'env')
        assert json.loads(reply.result['content'][0]['text']).get('GITHUB_TOKEN') == wanted
        assert reply.result['_meta']['holdfast/state-lost']['reason'] == 'child_restarted'


def failures(api):
    for line in api.holdfast.get('/metrics').body.decode().splitlines():
        if line.startswith('holdfast_crypt_failures_total{operation="open"}'):
            return int(line.split()[1])
    return 0


def test_what_was_swapped_or_changed_is_refused_in_words_counted_and_audited(holdfast, cluster, stdio_server):
    from rest import Rest
    entry, record = stdio_server('rec', credential={'service': 'github', 'as': 'env:GITHUB_TOKEN'})
    url = cluster.database()
    api = Rest(holdfast({'rec': entry}, env={'DATABASE_URL': url}))
    one, two = (api.create(passthrough_auth=tokens(f'{CANARY}-{n}')) for n in (1, 2))
    changes = [f"(SELECT passthrough_auth_encrypted FROM mcp.edge_mcp_sessions WHERE id = '{two['id']}')",
               'substr(passthrough_auth_encrypted, 1, length(passthrough_auth_encrypted) - 4)',
               # Flipped, not set: a byte of a sealed text may be any value already.
               'set_byte(passthrough_auth_encrypted, length(passthrough_auth_encrypted) - 9, '
               'get_byte(passthrough_auth_encrypted, length(passthrough_auth_encrypted) - 9) # 1)', "'nonsense'::bytea"]
    sealed = cluster.sql(url, f"SELECT encode(passthrough_auth_encrypted, 'hex') FROM mcp.edge_mcp_sessions WHERE id = '{one['id']}'")[0][0]
    for n, change in enumerate(changes, 1):
        cluster.sql(url, f"UPDATE mcp.edge_mcp_sessions SET passthrough_auth_encrypted = decode('{sealed}', 'hex') WHERE id = '{one['id']}'")
        cluster.sql(url, f"UPDATE mcp.edge_mcp_sessions SET passthrough_auth_encrypted = {change} WHERE id = '{one['id']}'")
        reply = call(api.holdfast, '/mcp/rec', one['session_id'], 'env')
        text = json.dumps(reply.json)
        assert 'cannot be opened' in text and 'PATCH' in text and CANARY not in text, text
        assert failures(api) == n
    tools = api.get(f"/sessions/{one['session_id']}/tools").json()
    assert len(tools['executions']) == len(changes) and all('cannot be opened' in e['error'] for e in tools['executions'])
    assert record.of('tools/call') == []
    assert json.loads(call(api.holdfast, '/mcp/rec', two['session_id'], 'env').text)['GITHUB_TOKEN'] == f'{CANARY}-2'


@pytest.mark.parametrize('entry, words', [
    ({'command': 'x', 'share': 'all', 'credential': {'service': 's', 'as': 'env:A'}}, 'share'),
    ({'command': 'x', 'credential': {'service': 's', 'as': 'header:A'}}, 'url'),
    ({'url': 'http://127.0.0.1:1/', 'credential': {'service': 's', 'as': 'env:A'}}, 'command'),
    ({'url': 'http://127.0.0.1:1/', 'credential': {'service': 's', 'as': 'header:Host'}}, 'Host'),
    ({'url': 'http://127.0.0.1:1/', 'credential': {'service': 's', 'as': 'header:X', 'key_names': ['Cookie']}}, 'Cookie'),
    ({'command': 'x', 'credential': {'service': 's', 'as': 'env:LD_PRELOAD'}}, 'LD_PRELOAD'),
    ({'command': 'x', 'credential': {'as': 'env:A'}}, 'service')])
def test_config__refuses_a_credential_that_has_no_way_or_reaches_others(holdfast, entry, words):
    refused_start(holdfast({'x': entry}, start=False), words)


# Rotation of the master key.

def rotate(one, *flags, **env):
    return subprocess.run([BINARY, 'key', 'rotate-master', '--data', one.data, '--json', *flags], capture_output=True, text=True,
                          timeout=120, check=False, env={**os.environ, **one.env, **env})


def master_lines(one):
    with open(os.path.join(one.data, 'master.key'), encoding='utf-8') as file:
        return file.read().split('\n')[:-1]


def sealed_rest(rest, stdio_server, n=3):
    entry, _ = stdio_server('rec', credential={'service': 'github', 'as': 'env:GITHUB_TOKEN'})
    api = rest({'rec': entry})
    return api, {api.create(passthrough_auth=tokens(f'{CANARY}-{i}'))['session_id']: f'{CANARY}-{i}' for i in range(n)}


def all_open(api, names):
    for name, secret in names.items():
        assert json.loads(call(api.holdfast, '/mcp/rec', name, 'env').result['content'][0]['text'])['GITHUB_TOKEN'] == secret


@pytest.mark.parametrize('reseal', [False, True])
def test_rotate__leaves_one_new_master_key_and_every_credential_readable(rest, stdio_server, reseal):
    api, names = sealed_rest(rest, stdio_server)
    busy = rotate(api.holdfast)
    assert busy.returncode == 7 and len(master_lines(api.holdfast)) == 1, busy.stderr  # while it runs
    api.holdfast.stop()
    before = master_lines(api.holdfast)
    done = rotate(api.holdfast, *(['--reseal'] if reseal else []))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told['sessions_sealed'] == (len(names) if reseal else 0) and told['keys_made'] == int(reseal)
    assert told['keys_wrapped'] == 1 and not told['resumed'] and told['unreadable'] == 0
    after = master_lines(api.holdfast)
    assert len(after) == 1 and after != before and after[0].split()[1] == told['master_id']
    assert after[0].split()[2] not in done.stdout + done.stderr
    api.holdfast.start()
    all_open(api, names)


def test_rotate__takes_a_key_from_a_file_and_refuses_a_weak_one(rest, stdio_server, tmp_path):
    api, names = sealed_rest(rest, stdio_server, 1)
    api.holdfast.stop()
    before = master_lines(api.holdfast)
    for text, mode in (('password', 0o600), ('11' * 32, 0o600), (os.urandom(32).hex(), 0o644)):
        key_file(tmp_path / 'new', text, mode)
        assert rotate(api.holdfast, '--new-file', str(tmp_path / 'new')).returncode == 7
        assert master_lines(api.holdfast) == before
    text = os.urandom(32).hex()
    key_file(tmp_path / 'new', text + '\n')
    assert rotate(api.holdfast, '--new-file', str(tmp_path / 'new')).returncode == 0
    assert master_lines(api.holdfast)[0].split()[2] == text
    api.holdfast.start()
    all_open(api, names)


@pytest.mark.parametrize('reseal', [False, True])
def test_rotate__killed_anywhere_loses_nothing_and_goes_on(rest, stdio_server, reseal):
    api, names = sealed_rest(rest, stdio_server, 2)
    flags = ['--reseal'] if reseal else []
    points = ['rotate.add:1', 'rotate.write:1', 'rotate.drop:1'] + (['rotate.write:2', 'rotate.write:3'] if reseal else [])
    for point in points:
        api.holdfast.stop()
        killed = rotate(api.holdfast, *flags, HOLDFAST_FAULT=point)
        assert killed.returncode == -9, (point, killed.returncode, killed.stderr)
        api.holdfast.start()
        all_open(api, names)  # half-way
        api.holdfast.stop()
        done = rotate(api.holdfast, *flags)
        assert done.returncode == 0, (point, done.stderr)
        assert json.loads(done.stdout)['resumed'] == (point != 'rotate.add:1') and len(master_lines(api.holdfast)) == 1
        api.holdfast.start()
        all_open(api, names)


@pytest.mark.skipif(not LONG, reason='a hundred thousand rows; in make test-long')
def test_rotate__of_100000_rows_killed_at_50_random_points_leaves_every_row_readable():
    seed = os.environ.get('HOLDFAST_SEED', str(int.from_bytes(os.urandom(4), 'big')))
    program = os.path.join(BUILD, 'tests/unit_session_test_rotate')
    done = subprocess.run([program], capture_output=True, text=True, timeout=3000, check=False,
                          env={**os.environ, 'HOLDFAST_ROTATE': f'100000:50:{seed}'})
    print(done.stdout)  # the seed is in it
    assert done.returncode == 0, done.stdout + done.stderr
