# SPDX-License-Identifier: Apache-2.0
"""The operations for administrators: by role and tenant over HTTP, over the socket, and inside a command while
nothing runs."""
import json
import os
import sqlite3

import pytest

import commands
import openapi
from keys import create
from rest import Rest, refused

READS = ['/keys', '/users', '/servers', '/servers/sample', '/tools', '/servers/sample/tools', '/audit/events', '/audit/executions',
         '/audit/verify', '/system']


class Checked(Rest):
    """Holds every answer against the document, too."""

    def request(self, method, path, body=None, headers=None, raw=None):
        reply = super().request(method, path, body, headers, raw)
        openapi.check(method, '/api/v1' + path, reply)
        return reply


def on_socket(hf, method, path, body=None, headers=None):
    data = b'' if body is None else json.dumps(body).encode()
    with commands.UnixConnection(os.path.join(hf.data, 'holdfast.sock')) as connection:
        reply = connection.request(method, '/api/v1' + path, {'Host': 'localhost', **({} if data else {'Content-Type': None}),
                                                              **(headers or {})}, data)
    openapi.check(method, '/api/v1' + path, reply)
    return reply


@pytest.fixture(name='people')
def fixture_people(holdfast):
    """A tenant with one of each role, and an admin of another."""
    hf = holdfast(settings={'auth': 'required'})
    found = {role: Checked(hf, create(hf, '--tenant', 'acme', '--role', role).headers) for role in ('admin', 'auditor', 'member', 'service')}
    found['stranger'] = Checked(hf, create(hf, '--tenant', 'rival', '--role', 'admin').headers)
    found['nobody'] = Checked(hf)
    return found


def test_reads__are_for_admin_and_auditor(people):
    for path in READS:
        for who in ('admin', 'auditor', 'stranger'):
            assert people[who].get(path).status == 200, (who, path)
        for who in ('member', 'service'):
            refused(people[who].get(path), 403, 'denied', 'access denied')
        refused(people['nobody'].get(path), 401, 'tenant_not_found', 'tenant not found')
        assert on_socket(people['admin'].holdfast, 'GET', path).status == 200


def test_changes__are_for_admin_alone(people):
    for who in ('auditor', 'member', 'service'):
        refused(people[who].post('/keys', {}), 403, 'denied')
        refused(people[who].delete('/keys/' + 'a' * 12), 403, 'denied')
        refused(people[who].post('/users', {'username': 'eve', 'password': 'long enough'}), 403, 'denied')
        refused(people[who].patch('/users/eve', {'disabled': True}), 403, 'denied')
        refused(people[who].delete('/users/eve/sessions'), 403, 'denied')
        refused(people[who].post('/servers/sample/approve'), 403, 'denied')
    refused(people['nobody'].post('/keys', {}), 401, 'tenant_not_found')


# Keys.

def key_ids(api):
    return {k['id'] for k in api.get('/keys?limit=200').json()['keys']}


def test_keys__are_made_listed_and_revoked_in_the_own_tenant(people):
    made = people['admin'].post('/keys', {'name': 'phone', 'role': 'member', 'expires_in': '90d'})
    assert made.status == 201 and made.json()['tenant'] == 'acme'
    key = made.json()
    assert made.header('location') == '/api/v1/keys/' + key['id']
    assert Rest(people['admin'].holdfast, {'Authorization': 'Bearer ' + key['key']}).get('/sessions').status == 200
    assert key['id'] in key_ids(people['admin']) and key['id'] not in key_ids(people['stranger'])
    assert people['auditor'].get('/keys/' + key['id']).json()['name'] == 'phone'
    assert key['key'] not in people['admin'].get('/keys').body.decode()
    refused(people['stranger'].get('/keys/' + key['id']), 404, 'not_found')
    refused(people['stranger'].delete('/keys/' + key['id']), 404, 'not_found')
    assert people['admin'].delete('/keys/' + key['id']).json()['revoked_at']
    refused(people['admin'].delete('/keys/' + key['id']), 404, 'not_found')
    assert Rest(people['admin'].holdfast, {'Authorization': 'Bearer ' + key['key']}).get('/sessions').status == 401
    told = [(e['method'], e.get('error', '')) for e in people['admin'].get('/audit/events?kind=system&order=newest').json()['events']][:2]
    assert [m for m, _ in told] == ['key/revoke', 'key/create'] and all(by.startswith('by key:') for _, by in told)


def test_keys__of_another_tenant_are_refused_whether_it_is_there_or_not(people):
    for tenant in ('rival', 'nowhere'):
        refused(people['admin'].post('/keys', {'tenant': tenant}), 403, 'denied')
        refused(people['admin'].get('/keys?tenant=' + tenant), 403, 'denied')
    assert people['admin'].get('/keys?tenant=acme').status == 200
    assert on_socket(people['admin'].holdfast, 'POST', '/keys', {'tenant': 'fresh', 'role': 'admin'}).status == 201
    assert on_socket(people['admin'].holdfast, 'GET', '/keys?tenant=fresh').json()['count'] == 1


def test_keys__come_page_by_page(people):
    for _ in range(3):
        people['admin'].post('/keys', {})
    first = people['admin'].get('/keys?limit=4').json()
    rest = people['admin'].get(f"/keys?limit=4&cursor={first['next_cursor']}").json()
    assert first['count'] == 4 and rest['count'] == 3 and rest['next_cursor'] is None
    assert not {k['id'] for k in first['keys']} & {k['id'] for k in rest['keys']}
    refused(people['stranger'].get(f"/keys?limit=4&cursor={first['next_cursor']}"), 400, 'bad_cursor')
    refused(people['admin'].get('/keys?limit=201'), 400, 'bad_input')


# Users.

def names(page):
    return [u['username'] for u in page['users']]


def test_users__are_listed_by_name_in_their_own_tenant(people):
    hf, password = people['admin'].holdfast, 'long enough'
    for name in ('cy', 'ada', 'bob', 'jos\u00e9'):
        assert people['admin'].post('/users', {'username': name, 'password': password}).status == 201
    assert people['stranger'].post('/users', {'username': 'ada', 'password': password, 'role': 'auditor'}).status == 201
    assert people['admin'].patch('/users/bob', {'disabled': True}).status == 200
    page = people['auditor'].get('/users').json()
    assert names(page) == ['ada', 'bob', 'cy', 'jos\u00e9'] and page['count'] == 4 and page['next_cursor'] is None
    assert [u['disabled'] for u in page['users']] == [False, True, False, False]
    assert page['users'][1] == people['admin'].get('/users/bob').json()
    assert password not in json.dumps(page) and '$argon2' not in json.dumps(page)
    strange, = people['stranger'].get('/users').json()['users']
    assert (strange['tenant_id'], strange['role']) == ('rival', 'auditor')
    for tenant in ('rival', 'nowhere'):
        refused(people['admin'].get('/users?tenant=' + tenant), 403, 'denied')
    assert people['admin'].get('/users?tenant=acme').json() == page
    everyone = on_socket(hf, 'GET', '/users').json()['users']
    assert [(u['tenant_id'], u['username']) for u in everyone] == [('acme', n) for n in names(page)] + [('rival', 'ada')]
    assert on_socket(hf, 'GET', '/users?tenant=nowhere').json()['users'] == []


def test_users__come_page_by_page(people):
    for i in range(5):
        assert people['admin'].post('/users', {'username': f'u{i}/x', 'password': 'long enough'}).status == 201
    first = people['admin'].get('/users?limit=3')
    assert names(first.json()) == ['u0/x', 'u1/x', 'u2/x'] and 'rel="next"' in first.header('link')
    cursor = first.json()['next_cursor']
    rest = people['admin'].get(f'/users?limit=3&cursor={cursor}').json()
    assert names(rest) == ['u3/x', 'u4/x'] and rest['next_cursor'] is None
    assert people['admin'].get('/users?limit=5').json()['next_cursor'] is None
    refused(people['stranger'].get(f'/users?limit=3&cursor={cursor}'), 400, 'bad_cursor')
    refused(people['admin'].get(f'/keys?limit=3&cursor={cursor}'), 400, 'bad_cursor')
    refused(people['admin'].get('/users?limit=201'), 400, 'bad_input')
    refused(people['admin'].get('/users?limit=0'), 400, 'bad_input')
    refused(people['admin'].get('/users?name=u0'), 400, 'bad_input')


@pytest.mark.parametrize('own, wider, within', [
    (['--server', 'files'], {}, {'servers': ['files']}),
    (['--server', 'f*'], {'servers': ['*']}, {'servers': ['fi*']}),
    (['--tool', 'files__read*'], {'tools': ['files__*']}, {'tools': ['files__read_file']}),
    (['--folder', 'Lens'], {'folders': ['Other']}, {'folders': ['Lens']}),
    (['--read-only'], {}, {'read_only': True}),
    ([], {'review': True}, {}),
    (['--limit', 'calls=4'], {'limits': {'calls': 5}}, {'limits': {'calls': 4}}),
])
def test_keys__have_no_more_than_their_maker(people, own, wider, within):
    hf = people['admin'].holdfast
    maker = Checked(hf, create(hf, '--tenant', 'acme', '--role', 'admin', *own).headers)
    before = key_ids(people['admin'])
    refused(maker.post('/keys', {'scopes': wider}), 403, 'denied')
    assert key_ids(people['admin']) == before
    assert maker.post('/keys', {'scopes': within, 'role': 'admin'}).status == 201


def test_keys__do_not_outlive_their_maker(people):
    hf = people['admin'].holdfast
    maker = Checked(hf, create(hf, '--tenant', 'acme', '--role', 'admin', '--expires', '1h').headers)
    refused(maker.post('/keys', {}), 403, 'denied')
    refused(maker.post('/keys', {'expires_in': '2h'}), 403, 'denied')
    assert maker.post('/keys', {'expires_in': '30m'}).status == 201
    refused(maker.post('/users', {'username': 'ada', 'password': 'long enough'}), 403, 'denied')


# Users.

def test_users__are_made_changed_and_signed_out_in_the_own_tenant(people):
    admin, stranger = people['admin'], people['stranger']
    body = {'username': 'ada', 'password': 'first long one', 'role': 'member'}
    made = admin.post('/users', body)
    assert made.status == 201 and made.json()['tenant_id'] == 'acme' and not made.json()['disabled']
    refused(admin.post('/users', body), 409, 'conflict')
    assert people['auditor'].get('/users/ada').json()['role'] == 'member'
    login = {'tenant': 'acme', 'username': 'ada', 'password': 'first long one'}
    assert people['nobody'].post('/auth/login', login).status == 200
    [device] = people['auditor'].get('/users/ada/sessions').json()['sessions']
    for refusal in (stranger.get('/users/ada'), stranger.get('/users/ada/sessions'), stranger.patch('/users/ada', {'disabled': True}),
                    stranger.delete('/users/ada/sessions'), stranger.delete('/users/ada/sessions/' + device['id'])):
        refused(refusal, 404, 'not_found')
    refused(stranger.get('/users/ada?tenant=acme'), 403, 'denied')
    assert admin.delete('/users/ada/sessions/' + device['id']).status == 200
    assert admin.get('/users/ada/sessions').json() == {'sessions': [], 'count': 0}
    assert admin.patch('/users/ada', {'password': 'second long one'}).status == 200
    assert people['nobody'].post('/auth/login', login).status == 401
    assert admin.patch('/users/ada', {'disabled': True}).json()['disabled']
    assert people['nobody'].post('/auth/login', {**login, 'password': 'second long one'}).status == 401
    assert not admin.patch('/users/ada', {'disabled': False}).json()['disabled']
    assert people['nobody'].post('/auth/login', {**login, 'password': 'second long one'}).status == 200
    for bad in ({}, {'password': 'second long one', 'disabled': True}, {'password': 'short'}, {'role': 'admin'}):
        refused(admin.patch('/users/ada', bad), 400, 'bad_input')
    told = [e['method'] for e in admin.get('/audit/events?kind=system').json()['events'] if e['method'].startswith('user/')]
    assert told == ['user/create', 'user/revoke', 'user/passwd', 'user/disable', 'user/enable']


# Servers.

def test_servers__are_shown_as_far_as_scopes_go(people):
    hf = people['admin'].holdfast
    assert {s['name'] for s in people['admin'].get('/servers').json()['servers']} == {'sample', 'session'}
    assert people['admin'].get('/servers/sample').json()['state'] in ('healthy', 'unknown')
    first = people['admin'].get('/servers?limit=1').json()
    assert people['admin'].get('/servers?limit=1&cursor=' + first['next_cursor']).json()['next_cursor'] is None
    narrow = Checked(hf, create(hf, '--tenant', 'acme', '--role', 'admin', '--server', 'sample').headers)
    assert [s['name'] for s in narrow.get('/servers').json()['servers']] == ['sample']
    for reply in (narrow.get('/servers/session'), narrow.get('/servers/session/tools'), narrow.get('/servers/session/diff?tool=x'),
                  narrow.post('/servers/session/approve'), people['admin'].get('/servers/none'),
                  people['admin'].get('/servers/sample/diff?tool=x'), people['admin'].post('/servers/sample/approve')):
        refused(reply, 404, 'not_found')
    refused(people['admin'].get('/servers/sample/diff'), 400, 'bad_input')


def test_servers__none_is_added_over_http(people):
    for method in ('POST', 'PUT', 'PATCH', 'DELETE'):
        for path in ('/servers', '/servers/sample'):
            reply = people['admin'].request(method, path, {'command': 'true'})
            assert reply.status == 405, reply


# The audit.

def test_audit__shows_a_tenant_its_own(people):
    hf = people['admin'].holdfast
    for who in ('member', 'stranger'):
        client = hf.client('/mcp/sample', headers=people[who].headers)
        for number in range(3):
            assert client.call('echo', {'message': f'{who} {number}'}).status == 200
    for who, tenant in (('admin', 'acme'), ('auditor', 'acme'), ('stranger', 'rival')):
        events = people[who].get('/audit/events?limit=200&bodies=1').json()['events']
        assert {e['tenant'] for e in events} == {tenant}
        runs = people[who].get('/audit/executions?tool=echo').json()['executions']
        assert len(runs) == 3 and {(r['tenant'], r['outcome']) for r in runs} == {(tenant, 'ok')}
        refused(people[who].get('/audit/events?tenant=default'), 403, 'denied')
        refused(people[who].get('/audit/executions?tenant=default'), 403, 'denied')
    mine = people['admin'].get('/audit/executions?tool=echo&limit=1').json()
    run = mine['executions'][0]['id']
    detail = people['auditor'].get('/audit/executions/' + run).json()
    assert [e['kind'] for e in detail['events']] == ['intent', 'outcome'] and 'member 2' in detail['events'][0]['body']
    refused(people['stranger'].get('/audit/executions/' + run), 404, 'not_found')
    refused(people['admin'].get('/audit/executions/x'), 404, 'not_found')
    assert {e['tenant'] for e in on_socket(hf, 'GET', '/audit/events?limit=200').json()['events']} >= {'acme', 'rival'}


def pages(api, path, name):
    cursor, found = '', []
    while True:
        page = api.get(path + cursor).json()
        found += page[name]
        if page['next_cursor'] is None:
            return found
        cursor = '&cursor=' + page['next_cursor']


def test_audit__pages_join_calls_across_their_ends(people):
    client = people['admin'].holdfast.client('/mcp/sample', headers=people['member'].headers)
    for number in range(5):
        client.call('echo', {'message': str(number)})
    whole = people['admin'].get('/audit/executions?limit=200').json()['executions']
    assert pages(people['admin'], '/audit/executions?limit=1', 'executions') == whole
    assert {r['outcome'] for r in whole} == {'ok'}
    for order in ('oldest', 'newest'):
        events = people['admin'].get(f'/audit/events?limit=200&kind=intent&order={order}').json()['events']
        assert pages(people['admin'], f'/audit/events?limit=2&kind=intent&order={order}', 'events') == events


def test_audit__is_proved_for_all_and_told_in_full_to_the_local_admin(people):
    hf = people['admin'].holdfast
    client = hf.client('/mcp/sample', headers=people['member'].headers)
    for number in range(300):  # more than a page
        client.call('echo', {'message': str(number)})
    assert set(people['admin'].get('/audit/verify').json()) <= {'ok', 'last_anchor'}
    assert people['auditor'].get('/audit/verify').json()['ok'] is True
    [report] = commands.run_json(hf, 'audit', 'verify')
    told = on_socket(hf, 'GET', '/audit/verify').json()
    assert told['ok'] and told['events'] >= report['events'] > 600 and told['writers'] == report['writers'] == 1


def test_audit__a_changed_event_is_found_and_named_to_the_local_admin(people):
    hf = people['admin'].holdfast
    assert people['admin'].post('/keys', {}).status == 201
    hf.stop()
    with sqlite3.connect(os.path.join(hf.data, 'holdfast.db')) as db:
        last, = db.execute('SELECT MAX(rowid) FROM events').fetchone()
        db.execute('DELETE FROM events WHERE rowid = (SELECT MIN(rowid) FROM events) AND rowid < ?', (last,))
    hf.start()
    told = on_socket(hf, 'GET', '/audit/verify').json()
    assert told['ok'] is False and 'is missing' in told['reason']
    assert people['admin'].get('/audit/verify').json()['ok'] is False
    assert 'reason' not in people['admin'].get('/audit/verify').json()


# In a command, while nothing runs.

def test_offline__changes_are_in_the_chain(holdfast):
    hf = holdfast(settings={}, start=False)
    key = create(hf, '--tenant', 'acme')
    assert commands.run(hf, 'user', 'create', 'ada', '--password-file', '-', stdin='long enough\n').returncode == 0
    assert commands.run(hf, 'key', 'revoke', key.id).returncode == 0
    told = commands.run_json(hf, 'audit', 'events')
    assert [(e['method'], e['tenant']) for e in reversed(told)] == [('key/create', 'acme'), ('user/create', 'default'), ('key/revoke', 'acme')]
    [report] = commands.run_json(hf, 'audit', 'verify')
    assert report['ok'] and report['writers'] == 3 and report['unproven'] == 0
    hf.start()
    assert [e['method'] for e in commands.run_json(hf, 'audit', 'events')][-3:] == [e['method'] for e in told]
    assert commands.run_json(hf, 'audit', 'verify')[0]['ok']


def test_key_list__escapes_what_a_terminal_would_obey(holdfast):
    hf = holdfast(settings={}, start=False)
    create(hf, '--name', 'a\u202eb\u009bc')
    shown = commands.run(hf, 'key', 'list').stdout
    assert ' a\\u202eb\\u009bc  ' in shown.splitlines()[1], repr(shown)


def test_offline__reading_changes_nothing(holdfast):
    hf = holdfast(settings={}, start=False)
    create(hf)
    before = {name: os.stat(os.path.join(hf.data, name)).st_mtime_ns for name in os.listdir(hf.data) if not name.startswith('holdfast.db-')}
    for command in (['key', 'list'], ['audit', 'events'], ['servers', 'list'], ['audit', 'verify']):
        assert commands.run_json(hf, *command), command
    after = {name: os.stat(os.path.join(hf.data, name)).st_mtime_ns for name in before}
    assert after == before


def test_url__commands_ask_with_the_key_of_the_environment(holdfast):
    hf = holdfast(settings={'auth': 'required'})
    admin, member = create(hf, '--tenant', 'acme', '--role', 'admin'), create(hf, '--tenant', 'acme')
    where = ['--url', f'http://127.0.0.1:{hf.port}']

    def ask(key, *args):
        return commands.run(hf, *args, *where, with_data=False, env={'HOLDFAST_KEY': key.text})
    listed = ask(admin, 'key', 'list', '--json')
    assert {json.loads(line)['id'] for line in listed.stdout.splitlines()} == {admin.id, member.id}
    assert ask(admin, 'servers', 'list').returncode == 0 and ask(admin, 'audit', 'events').returncode == 0
    assert ask(admin, 'key', 'create', '--name', 'more').returncode == 0
    assert ask(member, 'key', 'list').returncode == 3
    assert commands.run(hf, 'key', 'list', *where, with_data=False).returncode == 3
