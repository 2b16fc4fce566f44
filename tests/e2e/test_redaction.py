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


def test_reference__is_what_the_binary_prints():
    done = subprocess.run([BINARY, 'help', '--markdown', 'redaction'], capture_output=True, text=True, timeout=60, check=True)
    with open(os.path.join(os.path.dirname(__file__), '../../docs/generated/redaction.md'), encoding='utf-8') as file:
        assert file.read() == done.stdout, 'run tools/gen-docs'
