# SPDX-License-Identifier: Apache-2.0
"""`holdfast user erase`: nothing in the database has a person's texts or names any more, and the chain stays whole."""
import contextlib
import json
import os
import sqlite3
import subprocess

import pytest

import harness
from commands import command_env, control, events, on_terminal, outcomes, run, run_json
from harness import Connection, wait_for
from postgres import Cluster
from rest import Rest, refused
from test_audit_stats import is_recount
from test_docs_fair import Hold
from test_nodes import nodes  # pylint: disable=unused-import # a fixture
from test_rest_roles import key_for
from test_users import CHEAP, user

NAME, TEXT = 'gwendolyn', 'Jabberwocky-4711'
OTHERS = 'Bandersnatch-0815'
TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'mcp' AND table_type = 'BASE TABLE'"


class Person:
    """A Holdfast with a user who made calls with a key, and another one who did too."""

    def __init__(self, hf, url):
        self.hf, self.url, self.env = hf, url, {'DATABASE_URL': url} if url else {}
        for name in NAME, 'humphrey':
            assert user(hf, 'create', name, env=self.env).returncode == 0
        self.api = key_for(Rest(hf), '--user', NAME, '--name', f"{NAME}'s laptop", '--review')
        self.other = key_for(Rest(hf), '--user', 'humphrey', '--review')
        self.user_id = next(u['id'] for u in run_json(hf, 'user', 'list') if u['username'] == NAME)

    def call(self, api, text, n=3):
        one = self.hf.client(modern=True, headers=api.headers)
        for i in range(n):
            reply = one.call('echo', {'message': f'{text} {i}'})
            assert reply.status == 200 and text in json.dumps(reply.json), reply

    def fill(self):
        self.call(self.api, TEXT)
        self.call(self.other, OTHERS)
        body = {'edge_mcp_id': 'edge-1', 'client_name': f'{NAME} on the train', 'metadata': {'who': NAME}}
        self.session = self.api.post('/sessions', body)
        assert self.session.status == 201, self.session
        put = self.api.put(f"/sessions/{self.session.json()['session_id']}/context", {'note': TEXT},
                           headers={'If-None-Match': '*'})
        assert put.status in (200, 201), put
        wait_for(lambda: self.finds(OTHERS) and self.finds(TEXT) and self.finds(NAME), 'everything to be in the database')

    def finds(self, text):
        """Whether the database has the text anywhere."""
        return self.in_tables(text) if self.url else self.in_files(text)

    def in_files(self, text):
        found = []
        for name in os.listdir(self.hf.data):
            if name.startswith('holdfast.db'):
                with open(os.path.join(self.hf.data, name), 'rb') as file:
                    found += [name] if text.encode() in file.read() else []
        return found

    def in_tables(self, text):
        like = f"%{text}%', '%{text.encode().hex()}%"
        return [table for table, in Cluster.sql(self.url, TABLES)
                if Cluster.sql(self.url, f"SELECT 1 FROM mcp.{table} t WHERE t::text LIKE ANY (ARRAY['{like}']) LIMIT 1")]

    def erase(self, *args):
        return run(self.hf, 'user', 'erase', NAME, '--yes', *args, env=self.env)

    def verify(self):
        done = run(self.hf, 'audit', 'verify', env=self.env)
        assert done.returncode == 0 and done.stdout.startswith('chain ok'), done
        return done.stdout

    def check_gone(self):
        for text in TEXT, NAME:
            assert not self.finds(text), (text, self.finds(text))
        assert self.finds(OTHERS)
        self.verify()
        wait_for(lambda: is_recount(self.hf), 'the sizes to equal a recount')
        rows = events(self.hf)
        of_person = [e for e in rows if e.get('method') == 'tools/call' and OTHERS not in json.dumps(e)]
        assert of_person and all('body' not in e for e in of_person)
        end, = [e for e in rows if e.get('method') == 'user/erased']
        assert end['owner'] == 'user:' + self.user_id and 'bodies' in end['error'] and NAME not in json.dumps(end)
        assert {u['username'] for u in run_json(self.hf, 'user', 'list')} == {'erased-' + self.user_id, 'humphrey'}
        return end


@pytest.fixture(name='person')
def fixture_person(holdfast, database, tmp_path):
    hold = Hold(tmp_path / 'hold')
    one = Person(holdfast(env={**CHEAP, **hold.env, **database}), database.get('DATABASE_URL'))
    one.hold = hold
    one.fill()
    return one


def test_erase__leaves_nothing_of_the_person_in_the_database(person):
    person.verify()
    shown = run(person.hf, 'user', 'erase', NAME, '--dry-run', env=person.env)
    assert shown.returncode == 0 and 'sessions' in shown.stderr and person.finds(TEXT), shown
    refused(Rest(person.hf, person.api.headers).get('/nothing'), 404, 'not_found')
    done = person.erase('--reason', 'asked for it on 3 May')
    assert done.returncode == 0 and 'erased: ' in done.stderr, done
    end = person.check_gone()
    assert 'asked for it on 3 May' in end['error']
    assert person.api.get('/sessions').status == 401
    assert person.other.get('/sessions').status == 200
    assert 'sealed events' not in end['error']
    again = person.erase()
    assert again.returncode != 0 and 'no such user' in again.stderr, again


def damage(person):
    """What the segments with a body of the person say of their lengths is wrong from now on."""
    if person.url:
        Cluster.sql(person.url, "UPDATE mcp.events SET bodies = bodies || 'x'::bytea WHERE length(bodies) > 0")
        return
    with contextlib.closing(sqlite3.connect(os.path.join(person.hf.data, 'holdfast.db'))) as db:
        db.execute('UPDATE events SET bodies = zeroblob(length(bodies)) WHERE length(bodies) > 0')
        db.commit()


def test_erase__ends_and_says_so_if_a_part_of_the_record_is_damaged(person):
    person.hf.stop()
    damage(person)
    person.hf.start()
    done = person.erase()
    assert done.returncode == 0 and 'erased: 0 bodies' in done.stderr, done
    end, = [e for e in events(person.hf) if e.get('method') == 'user/erased']
    assert 'damaged segments of events were left as evidence' in end['error'], end
    assert run(person.hf, 'audit', 'verify', env=person.env).returncode == 8


POINTS = ('sessions', 'walk', 'rows', 'clean', 'end') if harness.LONG else ('walk', 'clean')


@pytest.mark.parametrize('point', ['erasure.' + point for point in POINTS])
def test_erase__goes_on_after_kill_9(person, point):
    person.hold.at(point)
    asked = subprocess.Popen([harness.BINARY, 'user', 'erase', NAME, '--yes', '--data', person.hf.data],
                             cwd=person.hf.folder, env=command_env(person.hf, **person.env),
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    person.hold.wait(point)
    assert bool(person.finds(TEXT)) == (point in ('erasure.sessions', 'erasure.walk', 'erasure.rows')) or not person.url
    person.hf.kill()
    asked.wait(60)
    person.hold.let_go(point)
    person.hf.start()
    wait_for(lambda: [e for e in events(person.hf) if e.get('method') == 'user/erased'], 'the erasure to end', 60)
    person.check_gone()


def test_held__nothing_is_removed_and_it_is_said(person):
    assert run(person.hf, 'audit', 'hold', 'user', NAME, env=person.env).returncode == 0
    done = person.erase()
    assert done.returncode == 6 and 'release the hold first' in done.stderr and 'nothing brings' not in done.stderr, done
    assert person.finds(TEXT) and person.finds(NAME) and person.api.get('/sessions').status == 200
    hold, = run_json(person.hf, 'audit', 'holds')
    assert run(person.hf, 'audit', 'release', hold['id'], env=person.env).returncode == 0
    held = person.session.json()['id']
    assert run(person.hf, 'audit', 'hold', 'session', held, env=person.env).returncode == 0
    done = person.erase()
    assert done.returncode == 0 and '1 held sessions were left' in done.stderr, done
    hold, = run_json(person.hf, 'audit', 'holds')
    assert run(person.hf, 'audit', 'release', hold['id'], env=person.env).returncode == 0
    again = run(person.hf, 'user', 'erase', person.user_id, '--yes', env=person.env)
    assert again.returncode == 0, again
    for text in TEXT, NAME:
        assert not person.finds(text), text
    person.verify()


def test_erase__without_a_daemon(holdfast):
    one = Person(holdfast(env=CHEAP), None)
    one.fill()
    one.hf.stop()
    done = one.erase('--json')
    assert done.returncode == 0 and json.loads(done.stdout)['state'] == 'done', done
    one.hf.start()
    one.check_gone()


def test_sealed__names_are_counted_and_said(holdfast):
    one = Person(holdfast(env=CHEAP), None)
    client = one.hf.client(headers=one.api.headers)
    client.initialize(name=NAME.capitalize() + ' at home')
    assert client.call('echo', {'message': TEXT}).status == 200
    wait_for(lambda: one.finds(TEXT), 'the call to be folded')
    assert one.erase().returncode == 0
    end, = [e for e in events(one.hf) if e.get('method') == 'user/erased']
    named = [e for e in events(one.hf) if NAME in json.dumps(e).lower()]
    assert named and f'{len(named)} sealed events have the name' in end['error'], (end, len(named))
    assert not one.finds(TEXT)


def test_roles__an_admin_of_the_tenant_erases_and_others_see_nothing(holdfast):
    api = Rest(holdfast(env=CHEAP))
    hf = api.holdfast
    assert user(hf, 'create', NAME, '--tenant', 'acme').returncode == 0
    admin = key_for(api, '--tenant', 'acme', '--role', 'admin')
    auditor = key_for(api, '--tenant', 'acme', '--role', 'auditor')
    member = key_for(api, '--tenant', 'acme', '--role', 'member')
    stranger = key_for(api, '--tenant', 'rival', '--role', 'admin')
    for caller in member, auditor:
        refused(caller.post('/audit/erasures', {'username': NAME}), 403, 'denied')
    refused(stranger.post('/audit/erasures', {'username': NAME}), 404, 'not_found')
    refused(stranger.post('/audit/erasures', {'username': NAME, 'tenant': 'acme'}), 403, 'denied')
    refused(admin.post('/audit/erasures', {'username': NAME, 'reason': 'Gwendolyn asked'}), 400, 'bad_input')
    count = admin.post('/audit/erasures', {'username': NAME, 'dry_run': True})
    assert count.status == 200 and count.json()['held'] is False
    begun = admin.post('/audit/erasures', {'username': NAME})
    assert begun.status == 201 and begun.json()['made_by'].startswith('key:'), begun
    path = '/audit/erasures/' + begun.json()['id']
    wait_for(lambda: admin.get(path).json()['state'] == 'done', 'the erasure to end')
    assert [e['id'] for e in auditor.get('/audit/erasures').json()['erasures']] == [begun.json()['id']]
    assert stranger.get('/audit/erasures').json()['erasures'] == []
    refused(stranger.get(path), 404, 'not_found')
    refused(member.get(path), 403, 'denied')


def test_command__in_words(holdfast):
    hf = holdfast(env=CHEAP)
    assert user(hf, 'create', NAME).returncode == 0
    assert run(hf, 'user', 'erase').returncode == 2
    assert run(hf, 'user', 'erase', 'nobody', '--yes').returncode != 0
    assert f'user {NAME} has 0 sessions with 0 calls, 0 keys, 0 sign-ins' in run(hf, 'user', 'erase', NAME, '--dry-run').stderr
    unasked = run(hf, 'user', 'erase', NAME)
    assert unasked.returncode == 2 and '--yes' in unasked.stderr, unasked
    assert run_json(hf, 'user', 'list')[0]['username'] == NAME
    on_terminal(hf, 'user', 'erase', NAME, keys=b'\n')
    assert run_json(hf, 'user', 'list')[0]['username'] == NAME
    on_terminal(hf, 'user', 'erase', NAME, keys=b'y\n')
    assert run_json(hf, 'user', 'list')[0]['username'].startswith('erased-')
    assert b'if that user was erased' in user(hf, 'create', NAME).stderr


def test_call__that_was_under_way_is_waited_for(holdfast, stdio_server, tmp_path, database):
    entry, _ = stdio_server()
    gate = str(tmp_path / 'gate')
    os.mkfifo(gate)
    one = Person(holdfast({'rec': entry}, env={**CHEAP, **database}), database.get('DATABASE_URL'))
    client = one.hf.client('/mcp/rec', modern=True, headers=one.api.headers)
    assert client.call('echo', {'text': TEXT}).status == 200
    params = {'name': 'slow', 'arguments': {'steps': 1, 'gate': gate, 'note': TEXT}, '_meta': client.envelope}
    connection = Connection(one.hf.port)
    body = json.dumps({'jsonrpc': '2.0', 'id': 'busy', 'method': 'tools/call', 'params': params}).encode()
    connection.send(connection.head_bytes('POST', client.path, client.headers_for('tools/call', params), body) + body)
    wait_for(lambda: 'open' in outcomes(one.hf, 'slow'), 'the call to leave')
    begun = key_for(Rest(one.hf), '--role', 'admin').post('/audit/erasures', {'username': NAME})
    assert begun.status == 201, begun
    path = '/api/v1/audit/erasures/' + begun.json()['id']
    wait_for(lambda: control(one.hf, path).json()['bodies'] >= 2, 'the first bodies to go')
    opened = os.open(gate, os.O_RDWR | os.O_NONBLOCK)  # the server may have been ended with the access of the person
    try:
        wait_for(lambda: control(one.hf, path).json()['state'] == 'done', 'the erasure to end', 60)
    finally:
        os.close(opened)
    assert 'open' not in outcomes(one.hf, 'slow')
    for text in TEXT, NAME:
        assert not one.finds(text), (text, one.finds(text))
    one.verify()


def test_nodes__another_one_goes_on(nodes, tmp_path):
    hold = Hold(tmp_path / 'hold')
    (first, second), _, url = nodes(settings=None)
    first.stop()
    first.env.update(hold.env)
    first.start()
    one = Person(second, url)
    one.env.update(second.env)
    client = second.client('/mcp/up', modern=True, headers=one.api.headers)
    assert client.call('echo', {'text': TEXT}).status == 200
    wait_for(lambda: one.finds(TEXT), 'the call to be folded')
    admin = key_for(Rest(first), '--role', 'admin')
    hold.at('erasure.walk')
    begun = admin.post('/audit/erasures', {'username': NAME})
    assert begun.status == 201, begun
    hold.wait('erasure.walk')
    first.kill()
    path = '/api/v1/audit/erasures/' + begun.json()['id']
    wait_for(lambda: control(second, path).json()['state'] == 'done', 'the other node to go on', 60)
    for text in TEXT, NAME:
        assert not one.finds(text), (text, one.finds(text))
    one.verify()


def test_authors__of_documents_are_replaced_in_the_folders_of_the_tenant(holdfast, database, tmp_path):
    folders = {}
    for name, tenants in ('Ours', ['default']), ('Theirs', ['rival']):
        (tmp_path / name).mkdir()
        folders[name] = {'path': str(tmp_path / name), 'agent': 'write', 'tenants': tenants}
    hf = holdfast({}, {'docs': folders}, env={**CHEAP, **database})
    one = Person(hf, database.get('DATABASE_URL'))
    assert user(hf, 'create', NAME, '--tenant', 'rival', env=one.env).returncode == 0
    rival = key_for(Rest(hf), '--user', NAME, '--tenant', 'rival', '--review')
    for api, folder in (one.api, 'Ours'), (one.other, 'Ours'), (rival, 'Theirs'):
        made = api.put(f'/docs/files/{folder}/{api.headers["Authorization"][10:18]}.md', {'content': 'words\n'},
                       headers={'If-None-Match': '*'})
        assert made.status in (200, 201), made
    done = one.erase()
    assert done.returncode == 0, done
    assert sorted(authors(one)) == ['erased', NAME, 'humphrey'], authors(one)


def authors(one):
    if one.url:
        return [row[0] for row in Cluster.sql(one.url, 'SELECT author FROM mcp.document_revisions')]
    with contextlib.closing(sqlite3.connect(os.path.join(one.hf.data, 'holdfast.db'))) as db:
        return [row[0] for row in db.execute('SELECT author FROM document_revisions')]
