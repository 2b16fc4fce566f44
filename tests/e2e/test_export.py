# SPDX-License-Identifier: Apache-2.0
"""Exported sessions: every kind of call in every format, who may have them, and what a reader notices."""
import csv
import io
import json
import os
import threading

import pytest

import keys
from commands import run
from exported import Export, split
from harness import wait_for
from rest import Rest, refused
from test_rest_roles import key_for, people  # noqa: F401  (a fixture)

MIB = 1 << 20
csv.field_size_limit(4 * MIB)


def fetch(api, name, form=None, status=200, tenant=None):
    """The bytes of an export over REST."""
    query = '&'.join(f'{k}={v}' for k, v in (('format', form), ('tenant', tenant)) if v)
    reply = api.holdfast.request('GET', f'/api/v1/sessions/{name}/export' + (f'?{query}' if query else ''),
                                 {**api.headers, 'Content-Type': None})
    assert reply.status == status, reply
    return reply


def export(api, name):
    reply = fetch(api, name)
    assert reply.header('content-type') == 'application/x-ndjson'
    return Export(reply.body)


def put(api, name, spec):
    assert api.put(f'/templates/{name}', spec, headers={'If-None-Match': '*'}).status == 201


def result(client, session, text, method='script'):
    """A call whose result has these very characters."""
    return client.call(method, {'steps': [{'result': text}]}, meta={'session_id': session})


ODD = '{"content":[{"type":"text","text":"caf\\u00e9 ☕ \\u0000 \\\\ \\ud83d\\ude00"}],"n":9007199254740993,"f":1.50,"f":1e400}'


@pytest.fixture
def world(rest, scripted):
    """A session with every kind of call that a program can make."""
    script = scripted('srv')
    hf = rest({'srv': script.entry})
    return hf, script


def everything(api, script, template='full'):
    """Makes the calls; gives the session as REST shows it."""
    put(api, 'full', {'audit': 'full', 'audit_body': '1MiB', 'context': {'goal': 'all', 'n': 9007199254740993}})
    session = api.create(template=template, client_name='Éditeur', client_type='ide', client_version='1.2',
                         metadata={'a': '=1+1'})
    name = session['session_id']
    client = api.holdfast.client('/mcp/srv', headers=api.headers).connect()
    client.call('echo', {'text': 'plain'}, meta={'session_id': name})
    result(client, name, ODD)
    result(client, name, '{"content":[{"type":"text","text":"' + 'x' * 900_000 + '"}],"isError":true}')
    result(client, name, '{"content":[{"type":"text","text":"' + 'y' * (MIB + 10) + '"}]}')
    client.call('script', {'steps': [{'fail': 'no such thing'}], 'token': 'ghp_' + 'A1b2C3d4E5f6' * 3}, meta={'session_id': name})
    client.call('script', {'steps': [{'result': '{"content":[]}'}]}, meta={'session_id': name})
    assert api.post(f'/sessions/{name}/tools', [
        {'tool_name': 'build', 'arguments': {'a': 1}, 'result': [1, 2], 'duration_ms': 7, 'tokens_used': 11},
        {'tool_name': 'build', 'error': '=it broke'}]).status == 200
    return session


def test_jsonl__has_every_call_as_it_was_recorded(world):
    api, script = world
    session = everything(api, script)
    found = export(api, session['session_id'])
    assert found.session['session_id'] == session['session_id'] and found.session['id'] == session['id']
    assert found.session['context'] == {'json': {'goal': 'all', 'n': 9007199254740993}}
    assert found.session['tool_execution_count'] == len(found.calls) == 8 and found.session['total_tokens_used'] == 11
    assert found.session['client_name'] == 'Éditeur' and found.session['connection_metadata']['a'] == '=1+1'
    assert 'expires_at' not in found.session and 'session_age' not in found.session
    assert [c['outcome'] for c in found.calls] == ['ok', 'ok', 'tool_error', 'ok', 'error', 'ok', 'ok', 'error']
    assert found.body(2, 'result').decode() == ODD
    assert [c['result']['state'] for c in found.calls] == ['complete'] * 3 + ['cut'] + ['complete'] * 3 + ['none']
    assert found.calls[3]['result']['length'] > MIB and 'holdfast/cut' in found.calls[3]['result']['json']
    assert found.calls[6]['kind'] == 'reported' and found.calls[6]['params']['json'] == {'arguments': {'a': 1}}
    assert found.calls[7]['error'] == '=it broke' and found.calls[0]['server'] == 'srv'
    assert fetch(api, session['session_id']).body == fetch(api, session['id']).body


def test_export__waits_for_what_was_answered_before(rest):
    api = rest()
    name = api.create()['session_id']
    for n in range(1, 6):
        assert api.post(f'/sessions/{name}/tools', {'tool_name': 'a'}).status < 300
        assert export(api, name).session['tool_execution_count'] == n


def test_roles__as_for_the_session_itself(people):  # noqa: F811
    name = people['member'].create(session_id='m')['session_id']
    for who in ('admin', 'auditor', 'member'):
        assert export(people[who], name).session['owner'].startswith('key:')
    unknown = fetch(people['other'], 'nobodys', status=404).json()
    for who in ('service', 'other', 'stranger'):
        reply = fetch(people[who], name, status=404)
        assert {**reply.json(), 'request_id': ''} == {**unknown, 'request_id': ''}
    refused(people['stranger'].get(f'/sessions/{name}/export?tenant=acme'), 403, 'denied')
    refused(people['member'].get(f'/sessions/{name}/export?format=xml'), 400, 'bad_input')


def test_slow_reader__waits_for_itself_and_a_gone_one_ends_the_reading(rest):
    api = rest()
    hf = api.holdfast
    name = api.create()['session_id']
    for _ in range(40):
        assert api.post(f'/sessions/{name}/tools', [{'tool_name': 'a', 'result': 'x' * 7000}] * 100).status < 300
    slow = hf.connection()
    slow.send(slow.head_bytes('GET', f'/api/v1/sessions/{name}/export', {'Content-Type': None}, b''))
    status, _ = slow.read_head()
    assert status == 200
    assert len(export(api, name).calls) == 4000  # others go on meanwhile
    data = b''.join(slow.chunks())
    assert len(Export(data).calls) == 4000
    gone = hf.connection()
    gone.send(gone.head_bytes('GET', f'/api/v1/sessions/{name}/export', {'Content-Type': None}, b''))
    gone.read_head()
    gone.close()
    with hf.connection() as head:
        head.send(head.head_bytes('HEAD', f'/api/v1/sessions/{name}/export', {'Content-Type': None}, b''))
        assert head.read_head()[0] == 200
        assert head.request('GET', f'/api/v1/sessions/{name}', {'Content-Type': None}).status == 200
    for _ in range(20):  # none of those that left holds a place
        assert fetch(api, name).status == 200


def test_credential_that_is_revoked__ends_the_export(rest):
    api = rest()
    key = keys.create(api.holdfast, '--role', 'admin')
    name = api.create()['session_id']
    for _ in range(40):
        assert api.post(f'/sessions/{name}/tools', [{'tool_name': 'a', 'result': 'x' * 7000}] * 100).status < 300
    slow = api.holdfast.connection()
    slow.send(slow.head_bytes('GET', f'/api/v1/sessions/{name}/export', {**key.headers, 'Content-Type': None}, b''))
    assert slow.read_head()[0] == 200
    keys.revoke(api.holdfast, key)
    with pytest.raises((EOFError, ConnectionError)):  # it is cut off: the last line is not there
        for _ in slow.chunks():
            pass
    for _ in range(20):
        assert fetch(api, name, status=200).status == 200


def cli(hf, *args, status=0, **options):
    done = run(hf, 'sessions', 'export', *args, **options)
    assert done.returncode == status, done
    return done


def test_command__writes_to_its_output_or_a_file(rest, tmp_path):
    api = rest()
    hf = api.holdfast
    session = api.create(session_id='the-first')
    assert api.post('/sessions/the-first/tools', [{'tool_name': 'a'}] * 3).status < 300
    whole = fetch(api, 'the-first').body.decode()
    assert cli(hf, 'the-first').stdout == whole == cli(hf, 'the-f').stdout == cli(hf, session['id']).stdout
    target = tmp_path / 'out.jsonl'
    assert cli(hf, 'the-first', '-o', str(target)).stdout == '' and target.read_text() == whole
    assert not os.path.exists(f'{target}.part')
    assert 'there is no session' in cli(hf, 'nothing', status=1).stderr
    assert cli(hf, status=2).returncode == cli(hf, 'a', '--since', '1d', status=2).returncode == 2
    cli(hf, 'the-first', '--format', 'xml', status=2)
    cli(hf, 'the-first', '--until', '1d', status=2)
    hf.stop()
    if 'DATABASE_URL' not in hf.env:
        assert cli(hf, 'the-first').stdout == whole  # inside of the command
        Export(whole.encode())


def test_since__exports_the_sessions_in_their_order(rest):
    api = rest()
    for n in range(3):
        api.create(session_id=f's{n}')
        assert api.post(f'/sessions/s{n}/tools', [{'tool_name': f't{n}'}] * n or [{'tool_name': 't'}]).status < 300
    done = cli(api.holdfast, '--since', '1d')
    assert [Export(part).session['session_id'] for part in split(done.stdout.encode())] == ['s0', 's1', 's2']
    assert 'no session was used' in cli(api.holdfast, '--since', '1d', '--until', '2h').stderr
    assert cli(api.holdfast, '--since', '1d', '--until', '1h').stdout == ''


def test_command__goes_to_a_holdfast_at_a_url(rest):
    api = rest(settings={'auth': 'required'})
    hf = api.holdfast
    member = key_for(api, '--role', 'member')
    member.create(session_id='mine')
    env = {'HOLDFAST_KEY': member.headers['Authorization'].split()[1]}
    url = f'http://127.0.0.1:{hf.port}'
    done = run(hf, 'sessions', 'export', 'mine', '--url', url, env=env, with_data=False)
    assert done.returncode == 0, done
    assert done.stdout == fetch(member, 'mine').body.decode()


def test_many__at_once_are_refused_in_words(rest):
    api = rest()
    name = api.create()['session_id']
    for _ in range(30):
        assert api.post(f'/sessions/{name}/tools', [{'tool_name': 'a', 'result': 'x' * 7000}] * 100).status < 300
    held = []
    for _ in range(16):
        held.append(api.holdfast.connection())
        held[-1].send(held[-1].head_bytes('GET', f'/api/v1/sessions/{name}/export', {'Content-Type': None}, b''))
        assert held[-1].read_head()[0] == 200
    refused(api.get(f'/sessions/{name}/export'), 503, 'unavailable')
    held.pop().close()
    wait_for(lambda: api.holdfast.request('GET', f'/api/v1/sessions/{name}/export', {'Content-Type': None}).status == 200,
             'a place')
    for one in held:
        one.close()


def test_csv__is_a_table_that_a_reader_of_tables_takes(world):
    api, script = world
    session = everything(api, script)
    reply = fetch(api, session['session_id'], 'csv')
    assert reply.header('content-type') == 'text/csv; charset=utf-8'
    rows = list(csv.DictReader(io.StringIO(reply.body.decode(), newline='')))
    calls = export(api, session['session_id']).calls
    assert [int(r['number']) for r in rows] == [c['number'] for c in calls]
    assert rows[1]['result'] == ODD and json.loads(rows[0]['arguments']) == {'text': 'plain'}
    assert rows[7]['error'] == "'=it broke" and rows[3]['result_state'] == 'cut' and rows[6]['tokens'] == '11'
    assert all(r['id'] == c['id'] and r['time'] == c['at'] for r, c in zip(rows, calls))


def test_md__reads_like_a_transcript(world):
    api, script = world
    session = everything(api, script)
    reply = fetch(api, session['session_id'], 'md')
    assert reply.header('content-type') == 'text/markdown; charset=utf-8'
    text = reply.body.decode()
    assert text.startswith(f'# Session `{session["session_id"]}`\n\n- **Who:** `local`\n- **Client:** `Éditeur` `1.2`\n')
    assert '- **Servers:** `srv`\n- **Calls that ran:** 8, 11 tokens\n' in text
    assert '\n## 1. `srv` `echo`\n' in text and '· **ok**' in text and '\n```json\n{\n  "text": "plain"\n}\n```\n' in text
    assert '**the tool reported an error**' in text and 'Error -32602: `no such thing`' in text
    assert 'The bytes of the result were cut: ' in text and '> `=it broke`' in text
    assert text.endswith("*End of the session's record: 8 calls.*\n")


def test_since__makes_one_table_and_one_transcript(rest):
    api = rest()
    for n in range(2):
        api.create(session_id=f's{n}')
        assert api.post(f'/sessions/s{n}/tools', {'tool_name': f't{n}'}).status < 300
    rows = list(csv.DictReader(io.StringIO(cli(api.holdfast, '--since', '1d', '--format', 'csv').stdout)))
    assert [(r['session_id'], r['tool']) for r in rows] == [('s0', 't0'), ('s1', 't1')]
    text = cli(api.holdfast, '--since', '1d', '--format', 'md').stdout
    assert text.index('# Session `s0`') < text.index('# Session `s1`')
