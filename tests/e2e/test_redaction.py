# SPDX-License-Identifier: Apache-2.0
"""Secrets that a server repeats, in results, errors and stderr: the client gets what the server said, nothing that is kept has them."""
import base64
import json
import os
import secrets
import signal
import sqlite3
import subprocess
import sys

import keys
import pytest

from harness import BINARY, Client, dump, wait_for
from rest import Rest
from test_credentials import files_of

SERVER = '''
import base64, json, os, sys

def say(message):
    print(json.dumps(message), flush=True)

for line in sys.stdin:
    m = json.loads(line)
    if 'id' not in m:
        continue
    known = [os.environ.get(n, '') for n in ('PLAIN', 'TOKEN')]
    if m['method'] == 'initialize':
        r = {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}}
    elif m['method'] == 'tools/list':
        r = {'tools': [{'name': n, 'inputSchema': {'type': 'object'}} for n in ('leak', 'fail', 'die')]}
    elif m['method'] == 'tools/call' and m['params']['name'] == 'leak':
        print('stderr has', *known, file=sys.stderr, flush=True)
        texts = [' '.join(known), json.dumps({'inner': known}), base64.b64encode(':'.join(known).encode()).decode()]
        r = {'content': [{'type': 'text', 'text': t} for t in texts]}
    elif m['method'] == 'tools/call' and m['params']['name'] == 'fail':
        say({'jsonrpc': '2.0', 'id': m['id'], 'error': {'code': -32000, 'message': 'refused ' + ' '.join(known)}})
        continue
    elif m['method'] == 'tools/call':
        print('dying with', *known, file=sys.stderr, flush=True)
        sys.exit(3)
    else:
        say({'jsonrpc': '2.0', 'id': m['id'], 'error': {'code': -32601, 'message': 'no'}})
        continue
    say({'jsonrpc': '2.0', 'id': m['id'], 'result': r})
'''


def forms(value):
    """Bytes to look for: as it is, as JSON writes it, in base64."""
    found = {value.encode(), json.dumps(value)[1:-1].encode()}
    for cut in range(3):
        found.add(base64.b64encode(value.encode()[cut:])[:20])
    return found


def entry(tmp_path, plain, **more):
    path = tmp_path / 'leaky.py'
    path.write_text(SERVER)
    return {'command': sys.executable, 'args': [str(path)], 'env': {'PLAIN': plain}, **more}


def nowhere(hf, values):
    needles = {f: v for v in values for f in forms(v)}
    for path, content in files_of(hf.data):
        assert not {needles[n] for n in needles if n in content}, path
    log = '\n'.join(hf.lines).encode()
    assert not {needles[n] for n in needles if n in log}, [l for l in hf.lines if any(v in l for v in values)]


def test_known_values__are_in_nothing_that_is_recorded_or_logged(holdfast, tmp_path):
    plain, token = (f'cnry "{n}" \\ {secrets.token_hex(8)}' for n in 'pt')
    hf = holdfast({'leaky': entry(tmp_path, plain, credential={'service': 'git', 'as': 'env:TOKEN'})}, env={'HOLDFAST_LOG_LEVEL': 'debug'})
    api = Rest(hf)
    name = api.create(passthrough_auth={'credentials': {'git': {'type': 'bearer', 'token': token}}})['session_id']

    def call(tool, **arguments):
        with hf.client('/mcp/leaky') as client:
            return client.call(tool, arguments, headers={'Mcp-Session-Id': name})

    leak = call('leak')
    assert plain in json.dumps(leak.result, ensure_ascii=False).encode().decode('unicode_escape') or plain in leak.text
    assert token in leak.text  # what the client gets is not changed
    call('leak', text=f'{plain} and {token}')  # in params too, once the link stands
    call('fail')
    call('die')
    hf.wait_log(lambda l: 'stderr has' in l.get('line', ''), 'its stderr')
    wait_for(lambda: len(api.get(f'/sessions/{name}/tools').json()['executions']) == 4, 'the executions')
    kept = json.dumps(api.get(f'/sessions/{name}/tools').json())
    for value in (plain, token):
        assert not [f for f in forms(value) if f.decode() in kept or json.dumps(f.decode())[1:-1] in kept], kept
    assert '[redacted: env PLAIN of leaky]' in kept and '[redacted: credential git of leaky]' in kept
    lines = [l['line'] for l in hf.log() if 'stderr has' in l.get('line', '')]
    assert lines[0] == 'stderr has [redacted: env PLAIN of leaky] [redacted: credential git of leaky]'
    assert any('dying with [redacted: env PLAIN of leaky] [redacted: credential git of leaky]' in e.get('error', '')
               for e in json.loads(kept)['executions']), kept
    nowhere(hf, (plain, token))
    audit = subprocess.run([BINARY, 'audit', 'list', '--json', '--data', hf.data], capture_output=True, timeout=60, check=False,
                           env={**os.environ, **hf.env})
    assert audit.returncode == 0 and not [v for v in (plain, token) if json.dumps(v)[1:-1].encode() in audit.stdout]
    hf.stop()
    nowhere(hf, (plain, token))


def test_known_values__of_a_reloaded_configuration_and_of_the_one_before_are_replaced(holdfast, tmp_path):
    old, new = (f'cnry-{secrets.token_hex(10)}' for _ in range(2))
    hf = holdfast({'leaky': entry(tmp_path, old)})
    with open(hf.config_file, encoding='utf-8') as file:
        text = file.read()
    with open(hf.config_file, 'w', encoding='utf-8') as file:
        file.write(text.replace(old, new))
    hf.process.send_signal(signal.SIGHUP)
    hf.wait_log(lambda l: l.get('msg') == 'configuration reloaded', 'the reload')
    client = Client(hf, '/mcp/leaky')
    assert client.call('leak', {'text': f'{old} {new}'}).status == 200
    wait_for(lambda: any('tools/call' in json.dumps(l) for l in audit_of(hf)), 'the event')
    nowhere(hf, (old, new))
    hf.stop()
    nowhere(hf, (old, new))


def audit_of(hf):
    done = subprocess.run([BINARY, 'audit', 'list', '--json', '--data', hf.data], capture_output=True, text=True, timeout=60, check=True,
                          env={**os.environ, **hf.env})
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_headers__repeated_by_a_client_are_replaced(holdfast, http_server):
    value = f'cnry-{secrets.token_hex(10)}'
    server = http_server('web')
    hf = holdfast({'web': server.entry(headers={'X-Configured': 'Bearer ' + value})})
    with hf.client('/mcp/web') as client:
        assert client.call('echo', {'text': f'it is {value}'}).text == f'it is {value}'
    nowhere(hf, (value,))
    assert '[redacted: header X-Configured of web]' in json.dumps(audit_of(hf)) or b'[redacted: header X-Configured of web]' in b''.join(
        content for _, content in files_of(hf.data))


def kept_bytes(hf):
    return b''.join(content for _, content in files_of(hf.data))


def test_first_call__of_a_session_has_its_credential_in_no_params(holdfast, tmp_path):
    token = f'cnry-{secrets.token_hex(10)}'
    hf = holdfast({'leaky': entry(tmp_path, 'x', credential={'service': 'git', 'as': 'env:TOKEN'})})
    api = Rest(hf)
    name = api.create(passthrough_auth={'credentials': {'git': {'type': 'bearer', 'token': token}}})['session_id']
    with hf.client('/mcp/leaky') as client:
        assert token in client.call('leak', {'text': f'mine is {token}'}, headers={'Mcp-Session-Id': name}).text
    wait_for(lambda: api.get(f'/sessions/{name}/tools').json()['executions'], 'the execution')
    nowhere(hf, (token,))
    assert b'mine is [redacted: credential git of leaky]' in kept_bytes(hf)
    hf.stop()
    nowhere(hf, (token,))


def test_first_call__whose_credential_cannot_be_opened_is_recorded_and_refused(holdfast, tmp_path):
    hf = holdfast({'leaky': entry(tmp_path, 'x', credential={'service': 'git', 'as': 'env:TOKEN'})})
    api = Rest(hf)
    name = api.create(passthrough_auth={'credentials': {'git': {'type': 'bearer', 'token': 'plum-tree-hill'}}})['session_id']
    hf.stop()
    db = sqlite3.connect(os.path.join(hf.data, 'holdfast.db'))
    with db:
        sealed, = db.execute('SELECT passthrough_auth_encrypted FROM edge_mcp_sessions WHERE session_id = ?', (name,)).fetchone()
        spoilt = sealed[:-1] + bytes([sealed[-1] ^ 1])
        db.execute('UPDATE edge_mcp_sessions SET passthrough_auth_encrypted = ? WHERE session_id = ?', (spoilt, name))
    db.close()
    hf.start()
    with hf.client('/mcp/leaky') as client:
        reply = client.call('leak', {'text': 'hello there'}, headers={'Mcp-Session-Id': name})
    assert 'cannot be opened' in reply.error['message'], reply.json
    events = [e for e in audit_of(hf) if e.get('tool') == 'leak']
    assert len(events) == 1 and events[0]['outcome'] == 'error', events


@pytest.mark.parametrize('auth', ['required', 'none'])
@pytest.mark.parametrize('where', ['Authorization', 'X-API-Key', 'path'])
def test_the_requests_own_key__is_recorded_by_where_it_stood(holdfast, where, auth):
    hf = holdfast(settings={'auth': auth, 'path_keys': True})
    key = keys.create(hf)
    marker = {'path': '[redacted: key in the path]'}.get(where, f'[redacted: header {where}]')
    headers = {'Authorization': {'Authorization': 'Bearer ' + key.text}, 'X-API-Key': {'X-API-Key': key.text}}.get(where, {})
    path = f'/mcp/k/{key.text}/sample' if where == 'path' else '/mcp/sample'
    coded = base64.b64encode(f'ada:{key.text}:'.encode()).decode()
    with Client(hf, path, headers=headers) as client:
        client.connect('2025-03-26')
        said = f'one {key.text} two {coded}'
        assert client.call('echo', {'message': said}).text == said  # the server and the client have it as it is
        assert client.call('nope', {'text': f'three {key.text}'}).error
        item = {'jsonrpc': '2.0', 'id': 9, 'method': 'tools/call', 'params': {'name': 'echo', 'arguments': {'message': f'four {key.text}'}}}
        assert client.rpc_bytes(dump([item])).status == 200
    nowhere(hf, (key.text,))
    content = kept_bytes(hf)
    for word in ('one', 'three', 'four'):
        assert f'{word} {marker}'.encode() in content, word
    hf.stop()
    nowhere(hf, (key.text,))


def test_the_requests_own_key__in_an_execution_that_rest_tells_is_recorded_by_name(holdfast):
    hf = holdfast(settings={'auth': 'required'})
    key = keys.create(hf)
    api = Rest(hf, headers=key.headers)
    name = api.create()['session_id']
    told = {'tool_name': 't', 'arguments': {'a': f'in {key.text}'}, 'result': {'b': f'out {key.text}'}, 'error': f'bad {key.text}', 'duration_ms': 1}
    assert api.post(f'/sessions/{name}/tools', told).status in (200, 201)
    kept = json.dumps(api.get(f'/sessions/{name}/tools').json())
    for word in ('in', 'out', 'bad'):
        assert f'{word} [redacted: header Authorization]' in kept, kept
    nowhere(hf, (key.text,))


def test_tokens_of_the_table__are_in_no_record_of_an_execution_that_rest_tells(rest):
    api = rest()
    name = api.create()['session_id']
    token = 'AKIA' + 'ABCDEFGH01234567'
    told = {'tool_name': 't', 'arguments': {'cmd': ['--password', 'hunter2'], 'env': [{'name': 'DB_PWD', 'value': 'hunter3'}]},
            'result': {'text': f'key {token} at postgres://ada:hunter4@db/'}, 'error': f'denied for {token}, password=hunter5', 'duration_ms': 1}
    assert api.post(f'/sessions/{name}/tools', told).status in (200, 201), api.post(f'/sessions/{name}/tools', told).json()
    kept = json.dumps(api.get(f'/sessions/{name}/tools').json())
    assert not [v for v in (token, 'hunter2', 'hunter3', 'hunter4', 'hunter5') if v in kept], kept
    assert 'denied for [redacted], password=[redacted]' in kept


ECHO = """
import json, sys

for line in sys.stdin:
    m = json.loads(line)
    if 'id' not in m:
        continue
    p, r, e = m.get('params', {}), None, None
    said = p.get('arguments', {}).get('text') or json.dumps(p.get('_meta', {}).get('said'))
    if m['method'] == 'initialize':
        r = {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}, 'resources': {}}, 'serverInfo': {'name': 's', 'version': '1'}}
    elif m['method'] == 'tools/list':
        r = {'tools': [{'name': n, 'inputSchema': {'type': 'object'}} for n in ('say', 'fail', 'die')]}
    elif m['method'] == 'resources/list':
        r = {'resources': [{'uri': 'x://one', 'name': 'one'}]}
    elif m['method'] == 'resources/read':
        r = {'contents': [{'uri': 'x://one', 'text': said}]}
    elif m['method'] == 'tools/call':
        print('heard', said, file=sys.stderr, flush=True)
        if p['name'] == 'die':
            sys.exit(3)
        r = {'content': [{'type': 'text', 'text': said}]} if p['name'] == 'say' else None
        e = None if r else {'code': -32000, 'message': 'refused ' + said}
    else:
        e = {'code': -32601, 'message': 'no'}
    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], **({'result': r} if r else {'error': e})}), flush=True)
"""


class Stored:
    """A session with secrets of every kind, at a server that gets one of them, `mine`, and one that gets none."""

    def __init__(self, holdfast, tmp_path):
        path = tmp_path / 'echo.py'
        path.write_text(ECHO)
        server = {'command': sys.executable, 'args': [str(path)]}
        self.hf = holdfast({'plain': server, 'taking': {**server, 'credential': {'service': 'git', 'as': 'env:TOKEN'}}},
                           env={'HOLDFAST_LOG_LEVEL': 'debug'})
        self.api = Rest(self.hf)
        self.secret = {n: f'cnry-{n}-{secrets.token_hex(8)}' for n in ('git', 'jira', 'pass', 'deep', 'oauth', 'again', 'zulip', 'team', 'env')}
        self.name = self.api.create(passthrough_auth=self.bundle())['session_id']

    def bundle(self):
        s = self.secret
        return {'credentials': {'git': {'type': 'bearer', 'token': s['git']},
                                'jira': {'type': 'api_key', 'key_name': 'X-Jira', 'key_value': s['jira']},
                                'db': {'type': 'basic', 'username': 'ada', 'password': s['pass'], 'properties': {'x': [{'y': s['deep']}]}}},
                'oauth_tokens': {'slack': {'access_token': s['oauth'], 'refresh_token': s['again']}},
                'session_tokens': {'zulip': s['zulip']}, 'custom_headers': {'X-Team': 'Bearer ' + s['team']},
                'agent_context': {'environment': {'KEY': s['env']}}}

    NAMES = {'git': 'credential git', 'jira': 'credential jira', 'pass': 'credential db', 'deep': 'credential db', 'oauth': 'oauth token slack',
             'again': 'oauth token slack', 'zulip': 'session token zulip', 'team': 'header X-Team', 'env': 'environment KEY'}

    def said(self, word):
        """All of them, as plain text, as Basic, and as the server would get one."""
        basic = base64.b64encode(f"ada:{self.secret['pass']}".encode()).decode()
        return ' '.join([word, *self.secret.values(), basic])

    def kept(self, word):
        return ' '.join([word, *(f'[redacted: {self.NAMES[n]} of the session]' for n in self.secret), '[redacted: credential db of the session]'])

    def call(self, server, tool, word, **options):
        with self.hf.client('/mcp/' + server) as client:
            return client.call(tool, {'text': self.said(word)}, headers={'Mcp-Session-Id': self.name}, **options)

    def executions(self, n):
        """The last n of them; REST shows their bodies as they are stored."""
        path = f'/sessions/{self.name}/tools'
        wait_for(lambda: len(self.api.get(path).json()['executions']) >= n, 'the executions')
        return self.api.get(path).json()['executions'][:n]

    def nowhere(self):
        nowhere(self.hf, self.secret.values())


def test_a_sessions_secrets__are_replaced_in_calls_to_servers_that_do_not_get_them(holdfast, tmp_path):
    s = Stored(holdfast, tmp_path)
    assert s.call('plain', 'say', 'one').text == s.said('one')  # the server and the client have it as it is
    assert s.said('two') in s.call('plain', 'fail', 'two').error['message']
    assert s.call('plain', 'die', 'three').error
    with s.hf.client('/mcp') as client:
        reply = client.call('nobody__say', {'text': s.said('four')}, headers={'Mcp-Session-Id': s.name})
    assert reply.error, reply  # refused before it has a server
    kept = json.dumps(s.executions(3))
    wait_for(lambda: s.kept('four').encode() in kept_bytes(s.hf), 'the note')
    for word in ('one', 'two', 'three'):
        assert s.kept(word) in kept, kept
    assert any('heard one [redacted: credential git of the session]' in e.get('error', '') for e in s.executions(3)), kept
    s.hf.wait_log(lambda l: l.get('line', '').startswith('heard three'), 'its stderr')
    assert s.kept('heard one') in [l.get('line') for l in s.hf.log()]
    s.nowhere()
    s.hf.stop()
    s.nowhere()


def test_a_sessions_secrets__have_the_name_of_the_server_that_gets_one(holdfast, tmp_path):
    s = Stored(holdfast, tmp_path)
    assert s.call('taking', 'say', 'one').text == s.said('one')
    kept = s.kept('one').replace('credential git of the session', 'credential git of taking')
    assert kept in json.dumps(s.executions(1))
    s.hf.wait_log(lambda l: l.get('line', '') == kept.replace('one', 'heard one', 1), 'its stderr')
    s.nowhere()


def test_a_sessions_secrets__are_replaced_in_reads(holdfast, tmp_path):
    s = Stored(holdfast, tmp_path)
    with s.hf.client('/mcp/plain') as client:
        uri = f'x://one?key={s.secret["jira"]}'
        reply = client.rpc('resources/read', {'uri': uri, '_meta': {'said': s.said('one')}}, headers={'Mcp-Session-Id': s.name})
    assert s.said('one') in reply.result['contents'][0]['text']
    wait_for(lambda: s.kept('one').encode() in kept_bytes(s.hf), 'the note')
    s.nowhere()


def told(s, word):
    return {'tool_name': 't', 'arguments': {'a': s.said('in ' + word)}, 'result': {'b': s.said('out ' + word)},
            'error': 'bad ' + ' '.join(list(s.secret.values())[:3]), 'duration_ms': 1}


def test_a_sessions_secrets__are_replaced_in_executions_that_rest_tells(holdfast, tmp_path):
    s = Stored(holdfast, tmp_path)
    bad = 'bad ' + ' '.join(f'[redacted: {s.NAMES[n]} of the session]' for n in list(s.secret)[:3])
    assert s.api.post(f'/sessions/{s.name}/tools', told(s, 'one')).status in (200, 201)
    assert s.api.post(f'/sessions/{s.name}/tools', [told(s, 'two'), told(s, 'three')]).status in (200, 201)
    assert s.api.post('/executions', {'session_id': s.name, **told(s, 'four')}).status in (200, 201)
    executions = s.executions(4)
    for word, e in zip(('four', 'three', 'two', 'one'), executions):
        assert s.kept('in ' + word) in json.dumps(e) and s.kept('out ' + word) in json.dumps(e), e
        assert e['error'] == bad, e
    s.nowhere()
    s.hf.restart()  # killed: nothing is open, and the session is not in memory
    assert s.api.post(f'/sessions/{s.name}/tools', told(s, 'five')).status in (200, 201)
    assert s.kept('in five') in json.dumps(s.executions(1))
    s.nowhere()


def test_a_sessions_secrets__are_opened_again_after_a_crash(holdfast, tmp_path):
    s = Stored(holdfast, tmp_path)
    s.hf.restart()
    assert s.call('plain', 'say', 'one').text == s.said('one')
    assert s.kept('one') in json.dumps(s.executions(1))
    s.nowhere()


def test_a_sessions_secrets__that_cannot_be_read_now_keep_everything_off_the_record(holdfast, tmp_path):
    s = Stored(holdfast, tmp_path)
    s.hf.env['HOLDFAST_FAULT'] = 'keyring.read:1,keyring.read:2,keyring.read:3'
    s.hf.restart()
    with s.hf.client('/mcp') as client:
        reply = client.call('nobody__say', {'text': s.said('one')}, headers={'Mcp-Session-Id': s.name})
    assert reply.error['code'] == -32602, reply
    refused = s.call('plain', 'say', 'two')
    assert refused.status == 503 and 'the store does not answer' in refused.error['message'], refused
    assert s.api.post(f'/sessions/{s.name}/tools', told(s, 'three')).status == 503
    assert s.call('plain', 'say', 'four').text == s.said('four')
    assert s.kept('four') in json.dumps(s.executions(1))
    notes = [e for e in audit_of(s.hf) if e.get('outcome') == 'refused']
    assert len(notes) == 1 and notes[0]['tool'] == 'nobody__say' and not notes[0].get('error'), notes
    s.nowhere()


@pytest.mark.parametrize('first', ['nothing', 'call', 'told'])
def test_a_sessions_secrets__that_were_changed_are_replaced_from_then_on(holdfast, tmp_path, first):
    s = Stored(holdfast, tmp_path)
    use = {'call': lambda w: s.call('plain', 'say', w), 'told': lambda w: s.api.post(f'/sessions/{s.name}/tools', told(s, w)),
           'nothing': lambda _: None}
    use[first]('zero')
    s.secret = {n: f'cnry-{n}-{secrets.token_hex(8)}' for n in s.secret}
    assert s.api.patch(f'/sessions/{s.name}', {'passthrough_auth': s.bundle()}, headers={'If-Match': '*'}).status == 200
    use['told']('one')
    use['call']('two')
    use['told']('three')
    kept = json.dumps(s.executions(3))
    for word in ('in one', 'two', 'in three'):
        assert s.kept(word) in kept, kept
    s.hf.wait_log(lambda l: l.get('line', '') == s.kept('heard two'), 'its stderr')
    s.nowhere()


def test_a_sessions_secrets__that_came_later_are_replaced(holdfast, tmp_path):
    s = Stored(holdfast, tmp_path)
    s.name = s.api.create()['session_id']
    assert s.api.post(f'/sessions/{s.name}/tools', {'tool_name': 't', 'duration_ms': 1}).status in (200, 201)
    assert s.api.patch(f'/sessions/{s.name}', {'passthrough_auth': s.bundle()}, headers={'If-Match': '*'}).status == 200
    assert s.api.post(f'/sessions/{s.name}/tools', told(s, 'one')).status in (200, 201)
    assert s.kept('in one') in json.dumps(s.executions(1))
    s.nowhere()


def test_context_values__are_replaced_in_calls_to_servers_that_do_not_take_them(holdfast, tmp_path):
    path = tmp_path / 'echo.py'
    path.write_text(ECHO)
    value = f'cnry-{secrets.token_hex(8)}'
    hf = holdfast({'plain': {'command': sys.executable, 'args': [str(path)]}},
                  {'profiles': {'p': {'context': {'keys': ['KEY']}}}})
    with hf.client('/mcp/p/p') as client:
        client.connect(headers={'mcp-config': json.dumps({'KEY': value})})
        assert client.call('plain__say', {'text': f'it is {value}'}).text == f'it is {value}'
    wait_for(lambda: b'it is [redacted: context KEY]' in kept_bytes(hf), 'the event')
    nowhere(hf, (value,))


def test_reference__is_what_the_binary_prints():
    done = subprocess.run([BINARY, 'help', '--markdown', 'redaction'], capture_output=True, text=True, timeout=60, check=True)
    with open(os.path.join(os.path.dirname(__file__), '../../docs/generated/redaction.md'), encoding='utf-8') as file:
        assert file.read() == done.stdout, 'run tools/gen-docs'
