# SPDX-License-Identifier: Apache-2.0
"""Imported sessions: what comes back, what is refused and with which words, and who may import."""
import json
import re

import pytest

from commands import run
from exported import Export, forged, split, without_ids
from rest import refused
from test_export import everything, fetch, put, result, world  # noqa: F401  (a fixture)
from test_rest_roles import key_for

TYPE = {'Content-Type': 'application/x-ndjson'}


@pytest.fixture
def elsewhere(rest, database, request):
    """elsewhere(settings): a Holdfast with a store and keys of its own."""
    def make(**options):
        url = request.getfixturevalue('cluster').database() if 'DATABASE_URL' in database else None
        return rest(**options, env={'DATABASE_URL': url} if url else {})
    return make


def send(api, data, status=201, **query):
    """POST of a file; the answer."""
    text = '&'.join(f'{k}={v}' for k, v in query.items())
    reply = api.holdfast.request('POST', '/api/v1/sessions/import' + (f'?{text}' if text else ''), {**api.headers, **TYPE}, data)
    assert reply.status == status, reply
    return reply


def says(api, data, words, status=400, **query):
    """The import is refused with these words, and nothing is there afterwards."""
    before = sessions(api)
    reply = send(api, data, status, **query)
    assert re.search(words, reply.json()['detail']), reply.json()['detail']
    assert sessions(api) == before


def sessions(api):
    return [s['id'] for s in api.get('/sessions?status=all&limit=200').json()['sessions']]


def audit_is_true(hf):
    done = run(hf, 'audit', 'verify')
    assert done.returncode == 0, done


def test_import__gives_the_same_session(world, elsewhere):
    api, script = world
    session = everything(api, script)
    name = session['session_id']
    first = fetch(api, name).body
    there = elsewhere()
    made = send(there, first, as_recorded=1).json()
    assert made['is_new'] and made['calls'] == 8 and made['status'] == 'active' and made['signer'] == 'unknown'
    assert made['from_session'] == name and made['key'] == Export(first).head['key'] and made['session_id'] != name
    second = fetch(there, made['session_id']).body
    for one, two in zip(without_ids(second), without_ids(first)):
        assert one == two, (one[-700:], two[-700:])
    shown = there.get(f'/sessions/{made["session_id"]}').json()
    assert shown['lineage']['kind'] == 'import' and shown['lineage']['session'] == session['id']
    assert shown['lineage']['key'] == made['key'] and shown['tool_execution_count'] == 0
    assert there.get(f'/sessions/{made["session_id"]}/context').json() == {'goal': 'all', 'n': 9007199254740993}
    for form in ('csv', 'md'):
        ours, theirs = (fetch(a, n, form).body.decode() for a, n in ((there, made['session_id']), (api, name)))
        assert lines_without_ids(ours, made['session_id']) == lines_without_ids(theirs, name)
    audit_is_true(there.holdfast)


def test_secrets__are_replaced_unless_an_admin_keeps_them(world, elsewhere):
    api, script = world
    put(api, 'full', {'audit': 'full'})
    name, secret = api.create(template='full')['session_id'], 'ghp_' + 'A1b2C3d4E5f6' * 3
    client = api.holdfast.client('/mcp/srv', headers=api.headers).connect()
    result(client, name, '{"content":[{"type":"text","text":"the token is %s"}]}' % secret)
    result(client, name, '{"content":[]}')
    data = fetch(api, name).body
    assert secret.encode() in data
    there = elsewhere(settings={'auth': 'required'})
    member, admin = key_for(there, '--role', 'member'), key_for(there, '--role', 'admin')
    send(member, data, 403, as_recorded=1)
    found = Export(fetch(member, send(member, data).json()['session_id']).body)
    assert [c['result']['state'] for c in found.calls] == ['redacted', 'complete'] and secret not in str(found.calls)
    assert found.calls[0]['result']['sha256'] == Export(data).calls[0]['result']['sha256']
    kept = fetch(admin, send(admin, data, as_recorded=1).json()['session_id']).body
    assert without_ids(kept) == without_ids(data)


def lines_without_ids(text, name):
    """A transcript or a table without what belongs to one Holdfast."""
    return [line.replace(name, '') for line in text.splitlines() if not line.startswith(('- **Who:**', '- **Imported from:**'))]


def test_same_file__is_imported_once_unless_again(rest):
    api = rest()
    name = api.create()['session_id']
    assert api.post(f'/sessions/{name}/tools', {'tool_name': 'a'}).status < 300
    data = fetch(api, name).body
    one, two = send(api, data).json(), send(api, data, 200).json()
    assert one['signer'] == 'this' and one['is_new'] and not two['is_new'] and one['id'] == two['id']
    three = send(api, data, again=1).json()
    assert three['is_new'] and three['id'] != one['id'] and len(sessions(api)) == 3
    assert without_ids(fetch(api, three['session_id']).body) == without_ids(data)


@pytest.fixture
def small(rest):
    """A file with three calls, and where to send it."""
    api = rest()
    name = api.create()['session_id']
    assert api.post(f'/sessions/{name}/tools', [{'tool_name': f't{n}', 'arguments': {'n': n}} for n in range(3)]).status < 300
    return api, fetch(api, name).body


def test_changed_files__are_refused_with_the_line(small):
    api, data = small
    head, one, two, three, end = data.splitlines(keepends=True)
    says(api, data.replace(b'"t1"', b'"t9"'), '^line 3 does not follow the line before it: it was edited')
    says(api, head + one + three + end, '^line 3 does not follow')
    says(api, head + two + one + three + end, '^line 2 does not follow')
    says(api, head + one + two + three, '^the file ends after line 4, without the end of the session: it was cut')
    says(api, data[:-60], '^line 5 is not JSON .*: it was cut or edited')
    says(api, one + two + three + end, '^line 1 does not follow')
    says(api, data + end, '^line 6 comes after the end')
    says(api, data + data, '^line 6 comes after the end')
    says(api, head + head, '^line 2 ')
    says(api, b'', '^the file is empty')
    says(api, b'\n', '^line 1 is empty')
    says(api, b'\xef\xbb\xbf' + data, '^line 1 begins with a byte order mark')
    says(api, data.replace(b'\n', b'\r\n'), '^line 1 ends with a carriage return')
    says(api, b'\x1f\x8b\x08' + data, '^line 1 is compressed')
    says(api, b'[]', '^line 1 is not a line of an exported session')
    says(api, b'{}', '^line 1 has no "chain"')
    says(api, data.replace(b'"t1"', b'"t9"'), '^line 103 does not follow', line=101)
    assert send(api, data[:-1]).json()['is_new']  # only its last newline is missing


def test_forged_files__are_refused(small):
    api, data = small

    def with_lines(change):
        return forged(data, change)

    says(api, with_lines(lambda l: [l[0], l[1].replace(b't0', b't9'), *l[2:]]), '^line 5 has a "signature" that is not of these lines')
    says(api, with_lines(lambda l: [l[0], *l[2:]]), '^line 2 has the number 2, but call 1 is next')
    says(api, with_lines(lambda l: [l[0], l[1], *l[1:]]), '^line 3 has the number 1, but call 2 is next')
    says(api, with_lines(lambda l: [*l[:-1], l[-1].replace(b'"calls":3', b'"calls":2')]), '^line 5 says that there are 2 calls, but there are 3')
    says(api, with_lines(lambda l: [l[0], l[1].replace(b'"kind"', b'"extra":1,"kind"'), *l[2:]]), '^line 2 is not written as Holdfast writes a call')
    says(api, with_lines(lambda l: [l[0], l[1].replace(b'"kind"', b'"number":1,"kind"'), *l[2:]]), '^line 2 is not written as')
    says(api, with_lines(lambda l: [l[0], l[1].replace(b'"kind":', b'"kind" :'), *l[2:]]), '^line 2 is not written as')
    says(api, with_lines(lambda l: [l[0], l[1].replace(b'"complete"', b'"none"', 1), *l[2:]]), '^line 2 is not a call')
    says(api, with_lines(lambda l: [l[0].replace(b'"format":1', b'"format":2'), *l[1:]]), '^line 1 has "format" 2; this version of Holdfast reads format 1')
    says(api, with_lines(lambda l: [l[0].replace(b'"session":{', b'"session":{},"session":{'), *l[1:]]), '^line 1 is not JSON')
    says(api, with_lines(lambda l: [l[0].replace(b'"active"', b'"idle"'), *l[1:]]), '^line 1 has a "status"')
    says(api, with_lines(lambda l: [re.sub(rb',"key":"[0-9a-f]*"', b'', l[0]), *l[1:]]), '^line 1 has no "key": the file is not signed')
    says(api, with_lines(lambda l: [*l[:-1], re.sub(rb',"signature":"[0-9a-f]*"', b'', l[-1])]), '^line 5 has no "signature"')
    says(api, with_lines(lambda l: [l[0], b'{"type":"call","a":' + b'[' * 100 + b']' * 100, *l[2:]]), '^line 2 is not JSON')


def test_key__can_be_asked_for(small):
    api, data = small
    key = Export(data).head['key']
    assert send(api, data, key=key.upper()).json()['signer'] == 'named'
    says(api, data, '^the file is signed by the key ' + key, 403, key='0' * 64)
    says(api, data, 'takes the whole public key', key='12')


def test_members__import_for_themselves(rest):
    api = rest(settings={'auth': 'required'})
    member, other, auditor = (key_for(api, '--role', role) for role in ('member', 'member', 'auditor'))
    name = member.create()['session_id']
    data = fetch(member, name).body
    mine, theirs = send(member, data).json(), send(other, data).json()
    assert mine['id'] != theirs['id'] and theirs['is_new']
    refused(other.get(f'/sessions/{mine["session_id"]}'), 404, 'session_not_found')
    send(auditor, data, 403)
    assert {mine['id'], theirs['id']} <= {s['id'] for s in auditor.get('/sessions?status=all').json()['sessions']}
    send(member, data, 403, tenant='acme')
    reply = member.holdfast.request('POST', '/api/v1/sessions/import', {**member.headers, 'Content-Type': 'text/plain'}, data)
    assert reply.status == 415, reply


def test_command__imports_the_sessions_of_a_file(rest, elsewhere, tmp_path):
    here, there = rest(), elsewhere(settings={'auth': 'required'})
    for n in range(3):
        here.create(session_id=f's{n}')
        assert here.post(f'/sessions/s{n}/tools', [{'tool_name': f't{n}'}] * (n + 1)).status < 300
    file = tmp_path / 'week.jsonl'
    done = run(here.holdfast, 'sessions', 'export', '--since', '1d', '-o', str(file))
    assert done.returncode == 0, done
    member = key_for(there, '--role', 'member')
    env, url = {'HOLDFAST_KEY': member.headers['Authorization'].split()[1]}, f'http://127.0.0.1:{there.holdfast.port}'

    def command(*args, status=0):
        done = run(there.holdfast, 'sessions', 'import', *args, '--url', url, env=env, with_data=False)
        assert done.returncode == status, done
        return done

    lines = command(str(file)).stdout.splitlines()
    assert re.match(r's0 is imported as ses_\S+, with 1 call$', lines[0]) and 'is not known here' in lines[1]
    assert re.match(r's2 is imported as ses_\S+, with 3 calls$', lines[4])
    again = command(str(file), '--json').stdout.splitlines()
    assert [json.loads(line)['is_new'] for line in again] == [False] * 3
    parts = split(file.read_bytes())
    for part, line in zip(parts, again):
        assert without_ids(fetch(member, json.loads(line)['session_id']).body) == without_ids(part)
    file.write_bytes(file.read_bytes().replace(b'"t1"', b'"t9"'))
    failed = command(str(file), '--again', status=1)
    assert 'line 5 does not follow' in failed.stderr and '1 session of the file was imported before that' in failed.stderr
    assert 'cannot read' in command(str(tmp_path / 'none'), status=7).stderr
