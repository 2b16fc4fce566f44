# SPDX-License-Identifier: Apache-2.0
"""Secrets that go in through every door, at the most talkative log: nowhere to be found afterwards, but
at the server they were for."""
import base64
import glob
import json
import os
import secrets
import shutil
import subprocess
import tempfile
import urllib.parse

import pytest

import image
import keys
from commands import events
from harness import BINARY, Client, wait_for
from packed import events_in
from redis_server import Redis
from rest import Rest
from test_tls import fixture_good, fixture_ours, fixture_secure  # noqa: F401 pylint: disable=unused-import
from test_users import user

CHILDREN = ('rec', 'meta', 'other')


class Canaries:
    """Values nobody would write by chance, by the door they go in through."""

    def __init__(self):
        self.values = {}

    def __getitem__(self, door):
        return self.values.setdefault(door, f'cnry{secrets.token_hex(10)}')

    def keep(self, door, value):
        self.values[door] = value
        return value

    def forms(self, *but):
        """Bytes to look for: as they are, and as Basic has them."""
        found = {v.encode(): door for door, v in self.values.items() if door not in but}
        pair = f"{self['basic-user']}:{self['basic-password']}".encode()
        for cut in range(3):  # wherever it begins in a base64 text
            found[base64.b64encode(pair[cut:])[:24]] = 'basic'
        return found


def bundle(canary):
    return {'credentials': {'web': {'type': 'bearer', 'token': canary['bearer']}, 'rec': {'type': 'bearer', 'token': canary['env']},
                            'meta': {'type': 'api_key', 'key_name': 'X-Key', 'key_value': canary['meta'],
                                     'properties': {'note': canary['property']}},
                            'basic': {'type': 'basic', 'username': canary['basic-user'], 'password': canary['basic-password']}},
            'oauth_tokens': {'slack': {'access_token': canary['oauth'], 'refresh_token': canary['oauth-refresh']}},
            'session_tokens': {'zulip': canary['session-token']}, 'custom_headers': {'X-Secret': canary['header']},
            'agent_context': {'agent_type': 'claude', 'user_id': canary['agent']}}


class Stage:
    """A Holdfast with servers that take a credential each way, and one that takes none."""

    def __init__(self, holdfast, http_server, stdio_server, env):
        self.canary, self.seen = Canaries(), []
        self.web, self.basic, self.told = http_server('web'), http_server('basic'), http_server('told')
        entries = {'web': self.web.entry(headers={'X-Configured-Token': self.canary['config-header']},
                                         credential={'service': 'web', 'as': 'header:Authorization'}),
                   'basic': self.basic.entry(credential={'service': 'basic', 'as': 'header:Authorization'}),
                   'told': self.told.entry(headers={'X-Told': 'is ${context:word}'})}
        self.records = {}
        for name in CHILDREN:
            own = {'rec': {'env': {'CONFIGURED_TOKEN': self.canary['config-env']}, 'credential': {'service': 'rec', 'as': 'env:TOKEN'}},
                   'meta': {'share': 'all', 'credential': {'service': 'meta', 'as': 'meta:acme/token'}}, 'other': {}}[name]
            entries[name], self.records[name] = stdio_server(name, **own)
        self.hf = holdfast(entries, {'auth': 'required', 'path_keys': True, 'profiles': {'told': {'context': {'keys': ['word']}}}},
                           env={'HOLDFAST_LOG_LEVEL': 'debug', **env})
        self.env = env

    def key(self, door, *flags):
        key = keys.create(self.hf, '--name', door, '--role', 'admin', *flags)
        self.canary.keep(door, key.text.split('_', 2)[2])
        return key

    def say(self, method, path, headers, body=None):
        data = b'' if body is None else json.dumps(body).encode()
        self.seen.append(self.hf.request(method, path, headers, data))
        return self.seen[-1]

    def call(self, path, headers, session, tool='echo', **arguments):
        reply = Client(self.hf, path, headers=headers).call(tool, arguments, headers={'Mcp-Session-Id': session})
        assert reply.status == 200, reply
        self.seen.append(reply)
        return reply

    def texts(self):
        """Everything that was answered."""
        for reply in self.seen:
            yield getattr(reply, 'raw', None) or getattr(reply, 'body', b'')
            yield str(reply.headers).encode()


def refused_credentials(stage):
    """Wrong ones, each through a door of its own."""
    wrong = stage.canary
    for headers, path in (({'Authorization': 'Bearer ' + wrong['bad-bearer']}, '/api/v1/sessions'),
                          ({'X-API-Key': wrong['bad-x-api-key']}, '/api/v1/sessions'),
                          ({'Authorization': 'Basic ' + wrong['bad-basic']}, '/api/v1/sessions'),
                          ({'Authorization': 'Bearer hf_k_' + wrong['bad-key']}, '/mcp'),
                          ({'Cookie': 'holdfast=' + wrong['bad-cookie']}, '/api/v1/sessions')):
        assert stage.say('GET', path, headers).status == 401
    for path in ('/mcp/k/hf_k_' + wrong['bad-path-key'], '/mcp/k/' + wrong['bad-path'] + '/web'):
        assert stage.say('POST', path, {}, {'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}).status == 401
    assert stage.say('POST', '/mcp?sessionId=' + wrong['query'], {'Authorization': 'Bearer ' + wrong['bad-2']},
                     {'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}).status == 401
    assert stage.say('POST', '/api/v1/auth/login', {}, {'username': 'ada', 'password': wrong['bad-password']}).status == 401
    assert stage.say('POST', '/api/v1/auth/refresh', {}, {'refresh_token': 'hf_r_' + wrong['bad-refresh']}).status == 401


def signed_in(stage):
    """A user's password and tokens, rotated once."""
    done = user(stage.hf, 'create', 'ada', password=stage.canary['password'], env=stage.env)
    assert done.returncode == 0, done.stderr
    tokens = stage.hf.request('POST', '/api/v1/auth/login', {}, json.dumps(
        {'username': 'ada', 'password': stage.canary['password']}).encode()).json()
    fresh = stage.hf.request('POST', '/api/v1/auth/refresh', {}, json.dumps({'refresh_token': tokens['refresh_token']}).encode()).json()
    for n, each in enumerate((tokens, fresh)):
        stage.canary.keep(f'access-{n}', each['access_token'].rsplit('.', 1)[1])
        stage.canary.keep(f'refresh-{n}', each['refresh_token'].removeprefix('hf_r_'))
    assert stage.say('GET', '/api/v1/auth/sessions', {'Authorization': 'Bearer ' + fresh['access_token']}).status == 200


def told_sessions(stage, bearer):
    """What clients tell their sessions: as a query, and in a header."""
    told = json.dumps({'word': stage.canary['config-query']})
    for path, headers in (('/mcp/p/told?config=' + urllib.parse.quote(told), {}),
                          ('/mcp/p/told', {'mcp-config': json.dumps({'word': stage.canary['config-in-header']})})):
        client = Client(stage.hf, path, headers={**bearer.headers, **headers}).connect()
        stage.seen += [client.call('told__echo', {'text': 'x'}), client.rpc('tools/list')]
        assert stage.seen[-2].text == 'x', stage.seen[-2]


def used_credentials(stage):
    """Calls that take them along; the session."""
    bearer, header, path = (stage.key(door) for door in ('key-bearer', 'key-x-api', 'key-path'))
    made = stage.say('POST', '/api/v1/sessions', bearer.headers, {'edge_mcp_id': 'e', 'passthrough_auth': bundle(stage.canary)})
    assert made.status == 201
    name = made.json()['session_id']
    ways = ((bearer.headers, ''), ({'X-API-Key': header.text}, ''), ({}, '/k/' + path.text))
    for headers, key in ways:  # one owner has the session; the others are refused it, after they were read
        mine = headers == bearer.headers
        for server in ('web', 'basic', 'meta', 'rec', 'other'):
            if mine:
                stage.call(f'/mcp{key}/{server}', headers, name, text='hello')
        assert Client(stage.hf, f'/mcp{key}/web', headers=headers).rpc('tools/list').status == 200
    stage.call('/mcp/other', bearer.headers, name, password=stage.canary['argument'], text='x')
    told_sessions(stage, bearer)
    return name, bearer


def received(stage):
    """Who got what: each server its own, and nobody else's."""
    got = {}
    for name, server in (('web', stage.web), ('basic', stage.basic), ('told', stage.told)):
        got[name] = json.dumps(server.record.heads()) + str(server.record.messages())
    for name in CHILDREN:
        got[name] = str(stage.records[name].messages())
    pair = base64.b64encode(f"{stage.canary['basic-user']}:{stage.canary['basic-password']}".encode()).decode()
    wanted = {'web': {stage.canary['bearer'], stage.canary['config-header']}, 'basic': {pair}, 'meta': {stage.canary['meta']},
              'other': {stage.canary['argument']}, 'rec': set(),
              'told': {stage.canary['config-query'], stage.canary['config-in-header']}}
    everything = set(stage.canary.values.values()) | {pair}
    for name, text in got.items():
        assert {v for v in everything if v in text} == wanted[name], name


def environments(stage, alive):
    """Of all processes there are: a credential is in its child's environment and in no command line."""
    own = {stage.canary['env'].encode(), stage.canary['config-env'].encode()}
    needles = set(stage.canary.forms())
    rec = [p for p in stage.records['rec'].starts() if p in alive]
    for pid in alive:
        for file in ('environ', 'cmdline'):
            with open(f'/proc/{pid}/{file}', 'rb') as opened:
                text = opened.read()
            there = {n for n in needles if n in text}
            assert there <= (own if file == 'environ' and pid in rec else set()), (pid, file, there)
    return rec


def descendants(pid):
    found = [pid]
    for path in glob.glob(f'/proc/{pid}/task/*/children'):
        with open(path, encoding='utf-8') as file:
            for child in file.read().split():
                found += descendants(int(child))
    return found


def check_files(stage, folder):
    needles = stage.canary.forms('config-header', 'config-env')
    for path in glob.glob(os.path.join(folder, '**'), recursive=True):
        if os.path.isfile(path):
            there = {needles[n] for n in image.needles_in_file(path, needles)}
            told = events_in(path)
            there |= {needles[n] for n in needles if n in told}
            assert not there, (path, there)


def check_told(stage):
    """Answers, log, events."""
    needles = stage.canary.forms()
    for text in stage.texts():
        assert not {needles[n] for n in needles if n in text}
    log = '\n'.join(stage.hf.lines).encode()
    assert log.count(b'\n') > 20
    assert not {needles[n] for n in needles if n in log}
    told = [json.dumps(e).encode() for e in events(stage.hf)]  # with their bodies
    assert any(b'tools/call' in text for text in told)
    for command in (('audit', 'list', '--json', '--limit', '1000'), ('audit', 'tail', '-n', '100', '--json'), ('config', 'show')):
        flags = ('--config', stage.hf.config_file) if command[0] == 'config' else ('--data', stage.hf.data)
        done = subprocess.run([BINARY, *command, *flags], capture_output=True, timeout=60, check=False,
                              env={**os.environ, **stage.env})
        assert done.returncode == 0 and done.stdout, (command, done.stderr)
        told += [done.stdout, done.stderr]
    for text in told:
        assert not {needles[n] for n in needles if n in text}


@pytest.fixture(params=['sqlite', 'postgres+redis'])
def stage(request, holdfast, http_server, stdio_server):
    env, redis = {}, None
    if request.param != 'sqlite':
        redis = Redis()
        if not redis.is_there:
            pytest.skip('no Redis to start')
        env = {'DATABASE_URL': request.getfixturevalue('cluster').database(), 'REDIS_URL': redis.url}
    one = Stage(holdfast, http_server, stdio_server, env)
    one.redis = redis
    yield one
    if redis:
        redis.close()


# A tool's arguments are the session's data, not credentials: the audit redacts them, memory is not searched for them.
DATA = ('argument',)
# These the configuration holds for every start of a server: in memory, but in no core image.
CONFIGURED = ('config-header', 'config-env')


def in_memory(stage, pids, *but, dumped=False):
    needles = stage.canary.forms(*DATA, *but)
    for pid in pids:
        found = [(needles[n], where, around) for n, where, around in image.found_in(pid, list(needles), dumped)]
        assert not found, (pid, found[:5])


def test_secrets_reach_their_server_and_are_found_nowhere_else(stage):
    signed_in(stage)
    refused_credentials(stage)
    name, bearer = used_credentials(stage)
    received(stage)
    main = stage.hf.process.pid
    alive = descendants(main)
    assert environments(stage, alive), 'the child of the session is there'
    others = [p for p in alive if p not in {q for r in stage.records.values() for q in r.starts()}]
    in_memory(stage, others, dumped=True)  # while servers are connected, what a core image would hold
    in_memory(stage, [p for p in others if p != main])  # the keeper and what watches children: nothing at all
    check_told(stage)
    check_files(stage, stage.hf.data)  # with the WAL and the spool as they are
    if stage.redis:
        check_redis(stage)
    for session in stage.say('GET', '/api/v1/sessions', bearer.headers).json()['sessions']:
        if session['session_id'] == name or session.get('profile_context_keys') == ['word']:
            assert stage.say('DELETE', f'/api/v1/sessions/{session["session_id"]}', bearer.headers).status in (200, 204)
    wait_for(lambda: not [p for p in stage.records['rec'].starts() if os.path.exists(f'/proc/{p}')], 'its process to end')
    in_memory(stage, [main], *CONFIGURED)  # no credential is left, wherever
    stage.hf.stop()
    check_files(stage, stage.hf.data)


def check_redis(stage):
    """What it holds, over the wire and as it is written to disk."""
    needles = stage.canary.forms()
    names = stage.redis.strings('KEYS', '*')
    assert names, 'the cache is in use'
    for text in names + [stage.redis.say('DUMP', n.decode()) for n in names] + [stage.redis.say('GET', n.decode()) for n in names]:
        assert not {needles[n] for n in needles if n in text}
    assert stage.redis.say('SAVE').startswith(b'+OK')
    check_files(stage, os.path.dirname(stage.redis.url.removeprefix('unix://')))


def test_tls_keeps_nothing_of_what_it_carried(secure):
    canary, hf = Canaries(), secure()
    hf.request('POST', '/api/v1/auth/login', {'X-API-Key': canary['key']}, json.dumps({'username': 'x', 'password': canary['pass']}).encode())
    made = hf.request('POST', '/api/v1/sessions', {}, json.dumps({'edge_mcp_id': 'e', 'passthrough_auth': bundle(canary)}).encode())
    assert made.status == 201
    needles = canary.forms()
    assert not [(needles[n], where, around) for n, where, around in image.found_in(hf.process.pid, list(needles))]


def limits_of(pid, name):
    with open(f'/proc/{pid}/limits', encoding='utf-8') as file:
        return next(line for line in file if line.startswith(name)).split()[len(name.split()):][:2]


def test_no_process_of_ours_leaves_a_core_image(stage):
    used_credentials(stage)
    for pid in descendants(stage.hf.process.pid):
        assert limits_of(pid, 'Max core file size') == ['0', '0'], pid


def test_other_processes_of_the_same_user_may_not_look_inside():
    """Not dumpable: what /proc shows of it belongs to root."""
    folder = tempfile.mkdtemp(prefix='holdfast-', dir='/tmp')
    who = {'user': 65534} if os.geteuid() == 0 else {}
    if who:
        os.chown(folder, 65534, -1)
    try:
        process = subprocess.Popen([BINARY, 'up', '--listen', '127.0.0.1:0', '--data', folder + '/data'], cwd=folder,
                                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env={'HOME': folder}, **who)
    except PermissionError:
        pytest.skip('the binary is not where another user may run it')
    try:
        while b'listening' not in process.stderr.readline():
            assert process.poll() is None
        for pid in descendants(process.pid)[:2]:
            assert {os.stat(f'/proc/{pid}/{file}').st_uid for file in ('environ', 'mem')} == {0}
    finally:
        process.terminate()
        process.wait(20)
        process.stderr.close()
        shutil.rmtree(folder)
