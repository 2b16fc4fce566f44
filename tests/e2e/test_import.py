# SPDX-License-Identifier: Apache-2.0
"""Imported sessions: what comes back, what is refused and with which words, and who may import."""
import json
import os
import random
import re
import threading

import pytest

from commands import run
from exported import TAIL, Export, Signer, call_line, forged, split, without_ids, written
from harness import LONG, wait_for
from random_sessions import some_call, some_session
from rest import Rest, refused
from test_export import everything, fetch, put, result, world  # noqa: F401  (a fixture)
from test_replay import Answers, replay
from test_retention import DAY, HOUR, kept, metric, slept  # noqa: F401  (fixtures)
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
    assert 'audit' not in found.session.get('setup', {})
    kept = fetch(admin, send(admin, data, as_recorded=1).json()['session_id']).body
    assert without_ids(kept) == without_ids(data)


def test_redacted_bodies__are_not_changed_by_a_second_redaction(world, elsewhere):
    api, script = world
    name, secret = api.create()['session_id'], 'ghp_' + 'A1b2C3d4E5f6' * 3
    client = api.holdfast.client('/mcp/srv', headers=api.headers).connect()
    for n, text in enumerate([secret, 'postgres://u:passw0rd@h/db', 'TOKEN=abcdef123456', '{\\"password\\":\\"abc\\"}', 'x' * 40_000, (secret + ' ') * 900]):
        client.call('script', {'steps': [{'result': '{"content":[{"type":"text","text":"%s"}]}' % text}], 'password': text, 'n': n}, meta={'session_id': name})
    data = fetch(api, name).body
    states = {c['result']['state'] for c in Export(data).calls} | {c['params']['state'] for c in Export(data).calls}
    assert {'redacted', 'cut'} <= states and secret.encode() not in data
    there = elsewhere()
    is_same(data, there, send(there, data).json()['session_id'])


def test_show__has_the_calls_and_lists_of_today_do_not(world, elsewhere):
    api, script = world
    name = everything(api, script)['session_id']
    there = elsewhere()
    before = there.holdfast.request('GET', '/metrics', {'Content-Type': None}).body.decode()
    made = send(there, fetch(api, name).body).json()
    shown = run(there.holdfast, 'sessions', 'show', made['session_id'])
    assert shown.returncode == 0 and re.search(rf'import of  {name}\n +8 before the import\nsigned by  {made["key"]}\n', shown.stdout), shown
    assert 'echo' in shown.stdout and 'text="plain"' in shown.stdout and 'no such thing' in shown.stdout
    rows = json.loads(run(there.holdfast, 'sessions', 'show', made['session_id'], '--json').stdout)['calls']
    original = Export(fetch(api, name).body).calls
    assert [(r['time'], r['outcome'], r['tool'], r['is_imported']) for r in reversed(rows)] == [(c['at'], c['outcome'], c['tool'], True) for c in original]
    one = run(there.holdfast, 'audit', 'show', rows[0]['id']).stdout
    assert re.search(r'kind +imported\n', one) and '"kind":"reported"' in one
    assert there.get('/audit/executions').json()['executions'] == []
    after = there.holdfast.request('GET', '/metrics', {'Content-Type': None}).body.decode()
    counted = re.compile(r'^holdfast_(?:executions|calls|upstream|tool)\S* \S+$', re.M)
    assert counted.findall(before) == counted.findall(after)


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


def test_limit_of_sessions__holds_for_imported_ones_that_can_be_used(rest):
    api = rest(settings={'session': {'limits': {'max_per_tenant': 2}}})
    live = api.create()['session_id']
    data = fetch(api, live).body
    first = send(api, data).json()
    refused(send(api, data, 429, again=1), 429, 'session_limit')
    assert not send(api, data, 200).json()['is_new']
    assert api.delete(f'/sessions/{live}').status == 200
    over = fetch(api, live).body
    assert send(api, data, again=1).json()['status'] == 'active'
    assert send(api, over).json()['status'] == 'terminated'  # counts for nothing
    assert api.delete(f"/sessions/{first['session_id']}").status == 200
    send(api, data, again=1)


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


def test_command__sends_a_file_of_any_bytes_as_it_is(rest, tmp_path):
    api = rest()
    file = tmp_path / 'file.jsonl'
    for data, words in ((bytes(1000), 'line 1 is not a line of an exported session'), (b'{"a\0":1}\n', 'line 1 is not JSON'),
                        (fetch(api, api.create()['session_id']).body + b'\0\n', 'line 3 comes after the end of the session')):
        file.write_bytes(data)
        done = run(api.holdfast, 'sessions', 'import', str(file))
        assert done.returncode == 1 and words in done.stderr, done


@pytest.fixture
def signer(tmp_path):
    return Signer(str(tmp_path))


def is_same(data, api, name):
    """Compares the lines of a file with an export, and names the first that differs."""
    there = fetch(api, name).body
    for number, (one, two) in enumerate(zip(without_ids(data), without_ids(there)), 1):
        assert one == two, f'line {number}'
    assert data.count(b'\n') == there.count(b'\n')
    return there


def test_random_sessions__come_back_byte_for_byte_also_after_a_restart(rest, elsewhere, signer):
    one, two = rest(), elsewhere()
    made = []
    for seed in range(300 if LONG else 8):
        chance = random.Random(seed)
        data = some_session(chance, signer, chance.choice([0, 1, 2, 30, 99, 100, 101, 230]), chance.choice([100, 2000, 30000]))
        first = send(one, data, as_recorded=1).json()
        second = is_same(data, one, first['session_id'])
        third = send(two, second, as_recorded=1).json()
        is_same(data, two, third['session_id'])
        made.append((data, third['session_id']))
        for form in ('csv', 'md'):
            texts = [lines_without_ids(fetch(api, name, form).body.decode(), name) for api, name in ((one, first['session_id']), (two, third['session_id']))]
            assert texts[0] == texts[1], (seed, form)
    audit_is_true(two.holdfast)
    two.holdfast.restart()
    for data, name in made:
        is_same(data, two, name)
    audit_is_true(two.holdfast)


def test_largest_bodies__are_imported_in_pieces(rest, signer, tmp_path):
    api = rest()
    mib = 1 << 20
    bodies = [b'"' + b'x' * (mib - 2) + b'"', b'\xff' * mib, b'\n' * mib]
    members = [('kind', b'"call"'), ('at', b'"2026-01-02T03:04:05.006Z"'), ('method', b'"tools/call"'), ('outcome', b'"ok"')]
    lines = [call_line(n + 1, members, ('complete', mib, b'\1' * 32, bodies[n % 3]), ('cut', 9 * mib, b'\2' * 32, bodies[n // 3])) for n in range(9)]
    session = {'id': 'x', 'session_id': 'big', 'edge_mcp_id': '', 'status': 'active', 'origin': 'rest', 'carrier': 'rest', 'initialized': False,
               'created_at': '2026-01-02T03:04:05.006Z', 'last_activity_at': '2026-01-02T03:04:05.006Z', 'tool_execution_count': 9, 'total_tokens_used': 0}
    data = signer.file(session, lines)
    assert len(data) > 20 * mib
    file = tmp_path / 'big.jsonl'
    file.write_bytes(data)
    done = run(api.holdfast, 'sessions', 'import', str(file), '--as-recorded', '--json')
    assert done.returncode == 0, done
    is_same(data, api, json.loads(done.stdout)['session_id'])
    assert os.listdir(os.path.join(api.holdfast.data, 'imports')) == []
    file.write_bytes(data.replace(b'xxxx', b'xxyx', 1))
    assert 'line 2 does not follow' in run(api.holdfast, 'sessions', 'import', str(file)).stderr
    half = tmp_path / 'half.jsonl'
    half.write_bytes(data[:len(data) // 2])
    assert 'it was cut' in run(api.holdfast, 'sessions', 'import', str(half)).stderr
    assert os.listdir(os.path.join(api.holdfast.data, 'imports')) == []


def test_pieces__come_in_order_from_one_caller(small):
    api, data = small
    assert 'begin anew' in send(api, data[100:], 404, upload='u', at=100).json()['detail']
    send(api, data[:100], 202, upload='u')
    assert '100 bytes so far' in send(api, data[200:], 409, upload='u', at=200).json()['detail']
    send(api, data[100:200], 202, upload='u', at=100)
    send(api, data[:150], 202, upload='u')  # from the beginning again
    made = send(api, data[150:], 201, upload='u', at=150, last=1).json()
    assert without_ids(fetch(api, made['session_id']).body) == without_ids(data)
    assert 'begin anew' in send(api, data[150:], 404, upload='u', at=150, last=1).json()['detail']
    assert 'go with ?upload=' in send(api, data, 400, last=1).json()['detail']
    for n in range(8):
        send(api, data[:100], 202, upload=f'x{n}')
    assert '8 uploads are not finished' in send(api, data[:100], 503, upload='x9').json()['detail']
    send(api, data[:100], 202, upload='x1')
    api.holdfast.restart()
    assert os.listdir(os.path.join(api.holdfast.data, 'imports')) == []


def test_interrupted_import__leaves_no_session(rest, signer, tmp_path):
    hold = tmp_path / 'hold'
    hold.mkdir()
    api = rest(env={'HOLDFAST_FAULT_HOLD': str(hold)})
    data = some_session(random.Random(7), signer, 450)
    (hold / 'import.batch').write_text('')
    other = threading.Thread(target=lambda: pytest.raises(Exception, send, api, data), daemon=True)
    other.start()
    wait_for(lambda: (hold / 'import.batch.held').exists(), 'the import')
    api.holdfast.kill()
    other.join(20)
    (hold / 'import.batch').unlink()
    api.holdfast.start()
    assert sessions(api) == []
    audit_is_true(api.holdfast)
    made = send(api, data, as_recorded=1).json()
    is_same(data, api, made['session_id'])
    assert sessions(api) == [made['id']]


def test_replay__works_on_an_imported_session(rest, elsewhere, tmp_path):
    here, there = tmp_path / 'a', tmp_path / 'b'
    here.mkdir()
    there.mkdir()
    one, two = Answers(here), Answers(there)
    api, other = rest({'shop': one.entry}), elsewhere(servers={'shop': two.entry})
    put(api, 'full', {'audit': 'full'})
    name = api.create(template='full')['session_id']
    client = api.holdfast.client('/mcp/shop').connect()
    for n in range(20):
        client.call('look', {'item': f'item {n}', 'n': n}, meta={'session_id': name})
    made = send(other, fetch(api, name).body).json()
    _, calls, summary = replay(other, made)
    assert summary['same'] == 20 and len(two.calls()) == 20, summary
    two.change(prices={'item 7': 70})
    done = run(other.holdfast, 'sessions', 'replay', made['session_id'], '--diff')
    assert done.returncode == 1 and '1 different' in done.stdout, done


def bare(found):
    """The lines of calls without their chain."""
    return [TAIL.sub(b'', line) for line in found.lines[1:-1]]


def test_owner__goes_on_in_an_imported_session(world, elsewhere):
    api, script = world
    name = everything(api, script)['session_id']
    other = elsewhere(servers={'srv': script.entry})
    made = send(other, fetch(api, name).body, as_recorded=1).json()
    before = Export(fetch(other, made['session_id']).body)
    client = other.holdfast.client('/mcp/srv').connect()
    client.call('echo', {'text': 'further'}, meta={'session_id': made['session_id']})
    assert other.post(f'/sessions/{made["session_id"]}/tools', {'tool_name': 'here', 'tokens_used': 5}).status < 300
    after = Export(fetch(other, made['session_id']).body)
    assert bare(after)[:8] == bare(before) and [c['tool'] for c in after.calls[8:]] == ['echo', 'here']
    assert after.session['tool_execution_count'] == 10 and after.session['total_tokens_used'] == 16
    assert after.session['created_at'] == before.session['created_at'] and after.session['last_activity_at'] > before.session['last_activity_at']
    assert other.session(made['session_id'])['tool_execution_count'] == 2
    # The export of the import is imported in its turn, and its lineage has both.
    third = send(other, fetch(other, made['session_id']).body, as_recorded=1).json()
    lineage = other.session(third['session_id'])['lineage']
    assert lineage['session'] == made['id'] and lineage['before']['handle'] == name
    assert other.delete(f'/sessions/{third["session_id"]}').status < 300
    assert without_ids(fetch(other, third['session_id']).body)[1:] == without_ids(fetch(other, made['session_id']).body)[1:]
    audit_is_true(other.holdfast)


def test_export__of_a_session_in_use_has_a_stable_order(small):
    api, data = small
    name = Export(data).session['session_id']
    stop = threading.Event()

    def report():
        for _ in range(60):
            if stop.is_set():
                return
            api.post(f'/sessions/{name}/tools', [{'tool_name': 'more'}] * 20)
    busy = threading.Thread(target=report)
    busy.start()
    try:
        exports = [Export(fetch(api, name).body) for _ in range(5)]
    finally:
        stop.set()
        busy.join()
    exports.append(Export(fetch(api, name).body))
    for one, two in zip(exports, exports[1:]):
        assert bare(two)[:len(one.calls)] == bare(one)
    assert len(exports[-1].calls) > len(exports[0].calls)


def test_interleaved_sessions__are_refused(small, signer):
    api, data = small
    other = some_session(random.Random(1), signer, 3).splitlines(keepends=True)
    mine = data.splitlines(keepends=True)
    says(api, b''.join(mine[:2] + other[:2] + mine[2:]), '^line 3 does not follow')
    says(api, mine[0] + other[0], '^line 2 does not follow')
    says(api, b'x' * (4 << 20), '^line 1 is not a line of an exported session')
    says(api, b'{' + b' ' * 3_900_000, '^line 1 is not JSON')


def test_retention__takes_imported_bodies_and_leaves_what_is_known_of_them(kept, signer):  # noqa: F811
    hf = kept()
    api = Rest(hf)
    data = some_session(random.Random(11), signer, 60)
    made = send(api, data, as_recorded=1).json()
    calls = Export(fetch(api, made['session_id']).body).calls
    bodies = [c[which] for c in calls for which in ('params', 'result')]
    assert {'complete', 'redacted', 'cut', 'digest', 'removed', 'none'} == {b['state'] for b in bodies}
    hf.slept.set(DAY + HOUR)
    hf.restart(kill=False)
    wait_for(lambda: metric(hf, 'holdfast_retention_bodies_total') >= 50, 'the bodies to be removed')
    api = Rest(hf)
    left = Export(fetch(api, made['session_id']).body).calls

    def without_bodies(call):
        call = {k: v for k, v in call.items() if k != 'chain'}
        for which in ('params', 'result'):
            state = 'removed' if call[which]['state'] in ('complete', 'redacted', 'cut') else call[which]['state']
            call[which] = {**{k: v for k, v in call[which].items() if k in ('length', 'sha256')}, 'state': state}
        return call
    assert [without_bodies(c) for c in left] == [without_bodies(c) for c in calls]
    assert all('json' not in c[which] and 'text' not in c[which] and 'base64' not in c[which] for c in left for which in ('params', 'result'))
    audit_is_true(hf)


PLAIN = {'id': 'x', 'session_id': 'plain', 'edge_mcp_id': '', 'status': 'active', 'origin': 'rest', 'carrier': 'rest', 'initialized': False,
         'connection_metadata': {'a': '\0', 'b': 12345678901234567890}, 'toolsets': ['k' * 255] * 64, 'created_at': '1970-01-01T00:00:00.001Z', 'last_activity_at': '9999-12-31T23:59:59.999Z',
         'tool_execution_count': 2**53, 'total_tokens_used': 2**53, 'context': {'json': {'a': '\0', 'b': '\ufffe'}}}


def nested(depth):
    return {} if depth == 1 else {'a': nested(depth - 1)}


ODD_MEMBERS = [
    ('tool_execution_count', [-1, 1.5, 2**53 + 1, '1']), ('created_at', ['x', 1, '1970-01-01T00:00:00.000Z']), ('client_name', [3, 'a\0b', 'x' * 1025]),
    ('client_type', ['x']), ('status', ['idle', 'gone', 1]), ('id', ['', 'y' * 65]), ('session_id', ['', 'x' * 256]), ('toolsets', [['a,b'], [''], 'x', ['k' * 256], ['k' * 255] * 66]),
    ('setup', [[], {'profile': 3}]), ('context', [{}, {'json': []}, {'text': 'x'}, {'json': nested(65)}, {'json': {}, 'text': '{}'}]),
    ('connection_metadata', [[], nested(65), {f'{n}': n for n in range(10_001)}, {'a': 'x' * (1 << 20)}]), ('lineage', ['x', []])]


def test_odd_sessions__are_refused(holdfast, signer):
    api = Rest(holdfast())
    send(api, signer.file(PLAIN | {'connection_metadata': nested(64)}, []))
    for name, values in ODD_MEMBERS:
        for value in values:
            says(api, signer.file(PLAIN | {name: value}, []), '^line 1 ')


def test_odd_but_valid_session__comes_back(rest, signer):
    api = rest()
    data = signer.file(PLAIN, [])
    is_same(data, api, send(api, data).json()['session_id'])
