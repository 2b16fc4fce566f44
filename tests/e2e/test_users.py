# SPDX-License-Identifier: Apache-2.0
"""Users who sign in: tokens that rotate, copies that end a sign-in, locks, devices, and how fast an end is one."""
import base64
import json
import os
import queue
import sqlite3
import stat
import subprocess
import threading
import time

import pytest

import commands
import harness
from harness import Client, wait_for
from postgres import Cluster, shared_keys
from rest import Rest, refused
from stored import Stored
from test_auth import read_to_end, standing
from test_docs_fair import Hold

PASSWORD = 'correct horse battery'
REQUIRED = {'auth': 'required'}
CHEAP = {'HOLDFAST_FAULT': 'password.cheap:1+'}  # a hash costs next to nothing; test_password.c has the real ones


def user(hf, *args, password=PASSWORD, env=None):
    """`holdfast user ARGS`, with a password on standard input."""
    return subprocess.run([harness.BINARY, 'user', *args, '--data', hf.data], cwd=hf.folder, input=password.encode() + b'\n',
                          env=commands.command_env(hf, **(env or {})), capture_output=True, timeout=60, check=False)


class People:
    """A Holdfast with one user, ada; each login is a Rest of its own."""

    def __init__(self, api, url):
        self.api, self.hf, self.url = api, api.holdfast, url
        self.stored = Stored(self.hf, url)
        self.env = {'DATABASE_URL': url} if url else {}

    def user(self, *args, **options):
        done = user(self.hf, *args, env=self.env, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def try_login(self, name='ada', password=PASSWORD, **members):
        return self.api.post('/auth/login', {'username': name, 'password': password, **members})

    def login(self, *args, **members):
        reply = self.try_login(*args, **members)
        assert reply.status == 200, reply
        return SignedIn(self.hf, reply.json())

    def later(self):
        return "now() + interval '1 hour'" if self.url else str(int(time.time() * 1000) + 3600 * 1000)

    def refresh(self, token):
        return self.api.post('/auth/refresh', {'refresh_token': token})

    def sql(self, text):
        if self.url:
            Cluster.sql(self.url, text.replace('FROM ', 'FROM mcp.').replace('UPDATE ', 'UPDATE mcp.'))
            return
        with sqlite3.connect(f'{self.hf.data}/holdfast.db', timeout=20) as db:
            db.execute(text)


class SignedIn(Rest):
    def __init__(self, hf, tokens):
        self.tokens, self.access, self.refresh = tokens, tokens['access_token'], tokens['refresh_token']
        self.id = tokens['session_id']
        super().__init__(hf, {'Authorization': 'Bearer ' + self.access})

    def client(self, hf, path='/mcp/sample', **options):
        return Client(hf, path, headers=self.headers, **options)

    def ended(self):
        refused(self.get('/auth/sessions'), 401, 'tenant_not_found')
        return True


@pytest.fixture
def people(rest, database):
    one = People(rest(settings=REQUIRED, env=CHEAP), database.get('DATABASE_URL'))
    one.user('create', 'ada')
    return one


@pytest.fixture
def held_people(rest, database, tmp_path):
    """And a Hold: while it is at "password.fits", no password is compared with a hash."""
    hold = Hold(tmp_path / 'hold')
    one = People(rest(settings=REQUIRED, env={**CHEAP, **hold.env}), database.get('DATABASE_URL'))
    one.user('create', 'ada')
    yield one, hold
    for point in os.listdir(hold.folder):
        os.unlink(os.path.join(hold.folder, point))


def test_login__gives_tokens_that_work(people):
    reply = people.try_login(device_name='laptop')
    tokens = reply.json()
    assert reply.header('cache-control') == 'no-store'
    assert tokens['expires_in'] == 900 and tokens['token_type'] == 'Bearer' and tokens['refresh_token'].startswith('hf_r_')
    assert tokens['user'] == {'id': tokens['user']['id'], 'username': 'ada', 'tenant_id': 'default', 'role': 'member'}
    ada = SignedIn(people.hf, tokens)
    made = ada.create()
    assert made['user_id'] == tokens['user']['id']
    assert ada.client(people.hf).call('echo', {'message': 'x'}).text == 'x'
    mine, = ada.get('/auth/sessions').json()['sessions']
    assert mine['id'] == ada.id and mine['current'] and mine['ip_address'] == '127.0.0.1'
    assert mine['device_info']['device_name'] == 'laptop'
    row, = people.stored.rows('user_sessions')
    assert ada.refresh not in json.dumps(row, default=str)
    assert stat.S_IMODE(os.stat(f'{people.hf.data}/token.key').st_mode) == 0o600


def test_login__of_a_role_has_that_role(people):
    people.user('create', 'eve', '--role', 'auditor')
    people.user('create', 'root', '--role', 'admin')
    name = people.login().create()['session_id']
    eve, root = people.login('eve'), people.login('root')
    assert eve.get('/sessions/' + name).status == 200
    refused(eve.delete('/sessions/' + name), 403, 'denied')
    assert root.delete('/sessions/' + name).status == 200


def test_login__refusals_are_all_the_same(people):
    people.user('create', 'bob')
    people.user('disable', 'bob')
    refusals = [people.try_login(*who) for who in (('ada', 'wrong'), ('nobody', PASSWORD), ('bob', PASSWORD), ('bob', 'x'))]
    refusals.append(people.try_login('ada', PASSWORD, tenant='elsewhere'))
    texts = set()
    for reply in refusals:
        refused(reply, 401, 'unauthenticated', 'login failed')
        texts.add(json.dumps({**reply.json(), 'request_id': ''}, sort_keys=True))
    assert len(texts) == 1, texts


def test_lock_out__after_five_failures_even_the_right_password_waits(people):
    for _ in range(5):
        refused(people.try_login('ada', 'wrong'), 401, 'unauthenticated')
    refused(people.try_login(), 401, 'unauthenticated', 'login failed')
    row, = people.stored.rows('users', "name = 'ada'")
    assert row['failed_logins'] == 5 and row['locked_until'] is None  # only this network is locked
    people.hf.wait_log(lambda l: l.get('network') == '127.0.0.0/24' and l.get('user') == 'ada', 'the lock')
    people.user('passwd', 'ada', password='another long password')
    people.login('ada', 'another long password')  # whoever may set a password lifts the lock


def login_from(api, address, password):
    body = json.dumps({'username': 'ada', 'password': password}).encode()
    headers = {'X-Forwarded-For': address, 'Content-Type': 'application/json'}
    return api.holdfast.request('POST', '/api/v1/auth/login', headers, body).status


def test_lock_out__somebody_elsewhere_does_not_keep_a_user_out(rest, database):
    one = People(rest(settings={**REQUIRED, 'trusted_proxies': ['127.0.0.1']}, env=CHEAP), database.get('DATABASE_URL'))
    one.user('create', 'ada')
    for _ in range(6):
        assert login_from(one.api, '203.0.113.66', 'wrong') == 401
    assert login_from(one.api, '203.0.113.67', PASSWORD) == 401  # that network
    assert login_from(one.api, '198.51.100.7', PASSWORD) == 200
    # Many networks together slow the user where it is not known, and nowhere else.
    one.sql(f"UPDATE users SET failed_logins = 40, locked_until = {one.later()} WHERE name = 'ada'")
    assert login_from(one.api, '192.0.2.1', PASSWORD) == 401
    assert login_from(one.api, '198.51.100.8', PASSWORD) == 200
    row, = one.stored.rows('users', "name = 'ada'")
    assert row['failed_logins'] == 0 and row['locked_until'] is None
    assert login_from(one.api, '192.0.2.1', PASSWORD) == 200


def test_lock_out__an_address_that_tries_everybody_is_locked(held_people):
    one, hold = held_people
    for n in range(20):
        refused(one.try_login(f'nobody-{n}', 'wrong'), 401, 'unauthenticated')
    hold.at('password.fits')
    for n in range(20):  # answered though no hash can be made: nothing is hashed any more
        refused(one.try_login('ada', PASSWORD), 401, 'unauthenticated', 'login failed')
    one.hf.wait_log(lambda l: 'locked out' in l.get('msg', ''), 'the lock')


def test_refresh__rotates_and_keeps_the_device(people):
    ada = people.login(device_name='laptop')
    tokens = people.refresh(ada.refresh).json()
    assert tokens['refresh_token'] != ada.refresh and tokens['session_id'] == ada.id
    again = SignedIn(people.hf, tokens)
    mine, = again.get('/auth/sessions').json()['sessions']
    assert mine['id'] == ada.id and mine['device_info']['device_name'] == 'laptop'
    assert ada.get('/auth/sessions').status == 200  # until it expires


def test_refresh__a_stolen_token_ends_the_sign_in_and_is_an_event(people):
    ada, other = people.login(), people.login()
    thief = SignedIn(people.hf, people.refresh(ada.refresh).json())
    assert thief.get('/auth/sessions').status == 200
    refused(people.refresh(ada.refresh), 401, 'unauthenticated', 'refresh failed')
    assert thief.ended() and ada.ended()
    refused(people.refresh(thief.refresh), 401, 'unauthenticated')
    assert other.get('/auth/sessions').status == 200
    told = [e for e in commands.events(people.hf) if e['kind'] == 'system' and e.get('method') == 'auth/refresh']
    assert len(told) == 1 and ada.id in told[0]['error'] and told[0]['owner'] == 'user:' + ada.tokens['user']['id']
    row, = people.stored.rows('user_sessions', f"id = '{ada.id}'")
    assert row['revoke_reason'] == 'reuse'
    assert commands.run(people.hf, 'audit', 'verify', env=people.env).returncode == 0


def test_refresh__of_many_at_once_one_wins_and_goes_on(people):
    for _ in range(5):
        ada = people.login()
        replies, gate = [], threading.Barrier(6)

        def send():
            gate.wait()
            replies.append(people.refresh(ada.refresh))

        threads = [threading.Thread(target=send) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        won = [r for r in replies if r.status == 200]
        assert len(won) == 1, replies
        assert {r.status for r in replies} <= {200, 409, 401}


def test_refresh__what_is_no_token_is_refused_alike(people):
    for token in ('x', 'hf_r_' + 'A' * 43, 'hf_r_' + 'A' * 42, 'hf_r_' + 'A' * 44, people.login().access[:200]):
        refused(people.refresh(token), 401, 'unauthenticated', 'refresh failed')
    ada = people.login()
    refused(Rest(people.hf, {'Authorization': 'Bearer ' + ada.refresh}).get('/sessions'), 401, 'tenant_not_found')


def test_logout__ends_this_device_alone(people):
    ada, other = people.login(), people.login()
    assert ada.post('/auth/logout').json() == {'message': 'signed out'}
    assert ada.ended() and other.get('/auth/sessions').json()['count'] == 1
    refused(people.refresh(ada.refresh), 401, 'unauthenticated')


def test_sessions__a_stolen_device_is_signed_out_from_another(people):
    stolen, ada = people.login(device_name='phone'), people.login()
    people.user('create', 'bob')
    bob = people.login('bob')
    listed = {s['device_info'].get('device_name'): s['id'] for s in ada.get('/auth/sessions').json()['sessions']}
    refused(bob.delete('/auth/sessions/' + listed['phone']), 404, 'not_found', 'session not found')
    assert bob.get('/auth/sessions').json()['count'] == 1
    assert ada.delete('/auth/sessions/' + listed['phone']).status == 200
    assert stolen.ended() and people.refresh(stolen.refresh).status == 401
    refused(ada.delete('/auth/sessions/' + listed['phone']), 404, 'not_found')
    refused(ada.delete('/auth/sessions/nonsense'), 404, 'not_found')
    assert ada.delete('/auth/sessions').status == 200
    assert ada.ended() and bob.get('/auth/sessions').status == 200


def test_sessions__an_admin_ends_those_of_its_tenant_alone(people):
    people.user('create', 'root', '--role', 'admin')
    people.user('create', 'carl', '--tenant', 'acme')
    ada, root, carl = people.login(), people.login('root'), people.login('carl', tenant='acme')
    refused(root.delete('/auth/sessions/' + carl.id), 404, 'not_found')
    assert root.delete('/auth/sessions/' + ada.id).status == 200
    assert ada.ended() and carl.get('/auth/sessions').status == 200


def test_revocation__ends_a_stream(people):
    ada = people.login()
    stream = standing(people.hf, ada.client(people.hf).connect(), ada)
    people.user('sessions', 'ada', '--revoke', ada.id)
    read_to_end(stream)
    assert ada.ended()


@pytest.mark.parametrize('how', ['disable', 'passwd', 'logout', 'reuse'])
def test_revocation__whatever_ends_it_ends_streams(people, how):
    ada = people.login()
    stream = standing(people.hf, ada.client(people.hf).connect(), ada)
    if how == 'logout':
        assert ada.post('/auth/logout').status == 200
    elif how == 'reuse':
        assert [people.refresh(ada.refresh).status for _ in range(2)] == [200, 401]
    else:
        people.user(how, 'ada', password='another password')
    read_to_end(stream)
    assert ada.ended()


def test_user__a_new_password_signs_out_and_the_old_one_is_refused(people):
    ada = people.login()
    people.user('passwd', 'ada', password='another password')
    assert ada.ended() and people.refresh(ada.refresh).status == 401
    refused(people.try_login(), 401, 'unauthenticated')
    people.login('ada', 'another password')


def test_user__disabled_and_enabled_again(people):
    ada = people.login()
    people.user('disable', 'ada')
    assert ada.ended()
    refused(people.try_login(), 401, 'unauthenticated')
    people.user('enable', 'ada')
    assert ada.ended()
    people.login()


def test_user__complaints(people):
    done = user(people.hf, 'create', 'ada', env=people.env)
    assert done.returncode == 6 and b'already' in done.stderr
    for args, password, status in ((['passwd', 'nobody'], PASSWORD, 1), (['disable', 'nobody'], PASSWORD, 1),
                                   (['create', 'x'], 'short', 1), (['create', 'x'], '', 1), (['create', 'a b'], PASSWORD, 2),
                                   (['create'], PASSWORD, 2), (['sessions', 'ada', '--role', 'admin'], PASSWORD, 2)):
        done = user(people.hf, *args, password=password, env=people.env)
        assert done.returncode == status and done.stderr, (args, done)
    assert 'ada' not in people.user('sessions', 'ada')


def test_user__list_is_for_people_and_for_programs(people):
    people.user('create', 'bob', '--role', 'auditor', '--tenant', 'other')
    people.user('disable', 'bob', '--tenant', 'other')
    lines = people.user('list').splitlines()
    assert lines[0].split() == ['NAME', 'STATE', 'ROLE', 'TENANT', 'ID']
    assert [line.split()[:4] for line in lines[1:]] == [['ada', 'active', 'member', 'default'], ['bob', 'disabled', 'auditor', 'other']]
    assert people.user('list', '--tenant', 'default').splitlines()[1].split() == lines[1].split()
    row, = [json.loads(line) for line in people.user('list', '--tenant', 'other', '--json').splitlines()]
    assert (row['username'], row['disabled'], row['role']) == ('bob', True, 'auditor')
    done = user(people.hf, 'list', '--tenant', 'nowhere', env=people.env)
    assert done.returncode == 0 and not done.stdout and b'has no users' in done.stderr
    for args in (['list', 'ada'], ['list', '--role', 'admin'], ['list', '--tenant', 'no/such']):
        assert user(people.hf, *args, env=people.env).returncode in (1, 2), args


def test_user__list_goes_over_pages_and_works_without_a_daemon(people):
    for number in range(201):
        with commands.UnixConnection(os.path.join(people.hf.data, 'holdfast.sock')) as connection:
            body = json.dumps({'user': f'u{number:03}'}).encode()
            assert connection.request('POST', '/api/v1/keys', {'Host': 'localhost'}, body).status == 201
    wanted = ['ada'] + [f'u{number:03}' for number in range(201)]
    for _ in range(2):
        rows = [json.loads(line) for line in people.user('list', '--json').splitlines()]
        assert [row['username'] for row in rows] == wanted
        people.hf.stop()


def test_user__works_without_a_daemon(holdfast, database):
    hf = holdfast(settings=REQUIRED, start=False, env=database)
    people = People(Rest(hf), database.get('DATABASE_URL'))
    people.user('create', 'ada')
    hf.start()
    ada = people.login(device_name='laptop')
    hf.stop()
    row, = [json.loads(line) for line in people.user('sessions', 'ada', '--json').splitlines()]
    assert row['id'] == ada.id and row['device_info']['device_name'] == 'laptop'
    people.user('sessions', 'ada', '--revoke', 'all')
    hf.start()
    assert SignedIn(hf, ada.tokens).ended()
    people.login()


def test_tokens__survive_a_restart_and_are_nobody_elses(people):
    ada = people.login()
    people.hf.stop()
    people.hf.start()
    assert SignedIn(people.hf, ada.tokens).get('/auth/sessions').status == 200
    head, body, signature = ada.access.split('.')
    claims = json.loads(base64.urlsafe_b64decode(body + '=='))
    claims['role'] = 'admin'
    forged = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b'=').decode()
    for token in (f'{head}.{forged}.{signature}', f'{head}.{body}.', f'{head}.{body}.{signature[:-4]}AAAA'):
        refused(Rest(people.hf, {'Authorization': 'Bearer ' + token}).get('/sessions'), 401, 'tenant_not_found')


def test_nodes__share_sign_ins_and_their_ends(holdfast, cluster):
    url, made = cluster.database(), []
    for _ in range(2):
        made.append(holdfast(settings=REQUIRED, env={'DATABASE_URL': url, **(shared_keys(made[0]) if made else {})}))
    here, there = (People(Rest(hf), url) for hf in made)
    here.user('create', 'ada')
    ada = here.login()
    abroad = SignedIn(there.hf, ada.tokens)
    assert abroad.get('/auth/sessions').json()['sessions'][0]['current']
    stream = standing(there.hf, abroad.client(there.hf).connect(), abroad)
    assert ada.post('/auth/logout').status == 200
    read_to_end(stream)
    assert abroad.ended()
    ada = here.login()
    tokens = there.refresh(ada.refresh).json()
    # The clocks of two nodes differ by a millisecond or so, and within it the token was used at the same time (409).
    wait_for(lambda: here.refresh(ada.refresh).status == 401, 'the used token to be refused')
    wait_for(lambda: SignedIn(there.hf, tokens).get('/sessions').status == 401, 'the end to be honoured')
    other = SignedIn(there.hf, here.login().tokens)
    assert other.get('/sessions').status == 200
    here.user('disable', 'ada')
    wait_for(lambda: other.get('/sessions').status == 401, 'the end to be honoured')


def test_token_key__that_others_can_read_or_that_is_missing_is_refused(holdfast, tmp_path):
    hf = holdfast(settings=REQUIRED)
    hf.stop()
    os.chmod(f'{hf.data}/token.key', 0o644)
    hf.start(wait=False)
    assert hf.process.wait(20) == 7
    os.chmod(f'{hf.data}/token.key', 0o600)
    other = holdfast(start=False, env={'HOLDFAST_TOKEN_KEY_FILE': str(tmp_path / 'none')})
    other.start(wait=False)
    assert other.process.wait(20) == 7


def test_login__a_crowd_is_served_or_told_to_come_back(held_people):
    """Of forty at once 32 may wait (src/identity/logins.h); no password is looked at before the others are answered."""
    people, hold = held_people
    hold.at('password.fits')
    replies = queue.Queue()
    for _ in range(40):
        threading.Thread(target=lambda: replies.put(people.try_login()), daemon=True).start()
    sent_away = [replies.get(timeout=harness.DEADLINE_S) for _ in range(8)]
    hold.let_go('password.fits')
    served = [replies.get(timeout=harness.DEADLINE_S) for _ in range(32)]
    assert all(r.status == 503 and r.header('retry-after') for r in sent_away), sent_away
    assert all(r.status == 200 for r in served), served


def test_login__a_stop_meanwhile_is_clean(rest, database):
    """The stop comes when the first of many logins is answered: each of the others is answered or cut off."""
    people = People(rest(settings=REQUIRED), database.get('DATABASE_URL'))  # with hashes that take their time
    people.user('create', 'ada')
    ends = queue.Queue()
    threads = [threading.Thread(target=lambda: ends.put(end_of_login(people)), daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    seen = [ends.get(timeout=harness.DEADLINE_S)]
    people.hf.stop()
    seen += [ends.get(timeout=harness.DEADLINE_S) for _ in threads[1:]]
    assert set(seen) <= {200, 503, 'cut off'} and 200 in seen, seen


def end_of_login(people):
    """The status of the answer; 'cut off' without one; anything else that went wrong as it is."""
    try:
        return people.try_login().status
    except (OSError, EOFError):
        return 'cut off'
    except Exception as problem:  # pylint: disable=broad-except
        return problem


def test_secrets__are_in_no_log_and_no_event(people):
    ada = people.login()
    tokens = people.refresh(ada.refresh).json()
    people.try_login('ada', 'not the password')
    told = json.dumps(commands.events(people.hf)) + people.hf.text()
    for name in ('users', 'user_sessions'):
        told += json.dumps(people.stored.rows(name), default=str)
    for secret in (PASSWORD, 'not the password', ada.refresh, tokens['refresh_token'], ada.access, tokens['access_token']):
        assert secret not in told


def test_names__are_the_same_in_either_encoding_of_accents(people):
    typed, composed = 'jose\u0301', 'jos\u00e9'
    people.user('create', typed)
    assert people.try_login(typed).json()['user']['username'] == composed
    jose = people.login(composed)
    assert jose.id in people.user('sessions', typed)
    assert user(people.hf, 'create', composed, env=people.env).returncode == 6
    people.user('sessions', typed, '--revoke', jose.id)
    assert jose.ended()
    made = commands.run(people.hf, 'key', 'create', '--user', typed, '--json', env=people.env)
    assert json.loads(made.stdout)['user_id'] == jose.tokens['user']['id']
    people.user('disable', typed)
    assert people.try_login(composed).status == 401
