# SPDX-License-Identifier: Apache-2.0
"""Shared sessions: who may go on in one, by a code or by name; what a share does not lend; and what is on record."""
import glob
import json
import os

import pytest

import keys
from commands import run, run_json
from harness import Client
from rest import Rest, refused
from test_credentials import tokens

SETTINGS = {'auth': 'required'}


class World:
    """One Holdfast with a stateful stdio server, and three owners of one tenant and a stranger."""

    def __init__(self, holdfast, database, stdio_server, **settings):
        entry, self.record = stdio_server('up', **settings)
        self.hf = holdfast({'up': entry}, SETTINGS, env=database)
        self.keys = {name: keys.create(self.hf, '--role', 'member', '--name', name) for name in ('ann', 'bob', 'eve')}
        self.keys['root'] = keys.create(self.hf, '--role', 'admin', '--name', 'root')
        self.keys['far'] = keys.create(self.hf, '--role', 'admin', '--tenant', 'rival', '--name', 'far')

    def rest(self, who):
        return Rest(self.hf, self.keys[who].headers)

    def client(self, who, era='legacy', name='e2e', path='/mcp'):
        headers = dict(self.keys[who].headers)
        if era == 'legacy':
            return Client(self.hf, path, headers=headers).connect(name=name)
        client = Client(self.hf, path, modern=True, headers=headers)
        client.envelope['io.modelcontextprotocol/clientInfo'] = {'name': name, 'version': '1'}
        return client

    def session(self, who, **body):
        reply = self.rest(who).post('/sessions', {'edge_mcp_id': 'e', **body})
        assert reply.status == 201, reply
        return reply.json()['session_id']

    def share(self, who, session, expect=201, **body):
        reply = self.rest(who).post(f'/sessions/{session}/shares', body)
        assert reply.status == expect, reply
        return reply.json()

    def events(self, method, who='root'):
        found = self.rest(who).get('/audit/events?limit=200').json()['events']
        return [e for e in found if e.get('method') == method]


@pytest.fixture
def world(holdfast, database, stdio_server):
    return World(holdfast, database, stdio_server, handles='never')


def call(client, tool, arguments=None, session=None):
    """A call in the session that is named, if one is: by a header, or in _meta as modern clients do."""
    if not session:
        return client.call(tool, arguments)
    if client.modern:
        return client.call(tool, arguments, meta={'session_id': session})
    return client.call(tool, arguments, headers={'Mcp-Session-Id': session})


def counted(client, session=None):
    """The next count of the server's process."""
    reply = call(client, 'up__counter', session=session)
    assert not reply.result.get('isError'), reply
    return int(reply.text)


def says(reply, text):
    assert reply.result.get('isError') and text in reply.text, reply
    return True


def joined(client, code):
    reply = client.call('session__join', {'code': code})
    assert not reply.result.get('isError'), reply
    return reply.result['structuredContent']


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_sharing__a_code_lets_another_owner_go_on_in_the_session_and_a_revoked_one_does_not(world, era):
    ann, bob = world.client('ann'), world.client('bob', era)
    assert [counted(ann), counted(ann)] == [1, 2]
    made = ann.call('session__share', {}).result['structuredContent']
    assert made['code'].startswith('hf-share-') and len(made['code']) == 35
    assert counted(bob) == 1, 'a session of its own'
    found = joined(bob, made['code'])
    assert found['session_id'] == made['session_id'] and 'up' in found['servers'] and found['may'] == 'use'
    assert [counted(bob), counted(ann), counted(bob)] == [3, 4, 5]
    shares = world.rest('ann').get(f"/sessions/{made['session_id']}/shares").json()['shares']
    assert [(s['status'], s['by_code']) for s in shares] == [('live', True)] and 'code' not in shares[0]
    assert world.rest('ann').delete(f"/sessions/{made['session_id']}/shares/{made['share_id']}").status == 200
    says(bob.call('up__counter'), 'revoked')
    assert counted(bob) == 2, 'its own session again'
    assert counted(ann) == 6


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_sharing__two_clients_of_one_owner_go_on_in_one_session(world, era):
    one, two = world.client('ann', name='claude'), world.client('ann', era, name='cursor')
    assert [counted(one), counted(one)] == [1, 2]
    code = one.call('session__share').result['structuredContent']['code']
    joined(two, code)
    assert [counted(two), counted(one)] == [3, 4]
    world.hf.restart(kill=True)
    assert counted(two) == 1 and counted(one) == 2, 'the process is a new one, and still the same for both'


def test_sharing__a_user_named_by_the_owner_names_the_session(world):
    session = world.session('ann')
    ann, bob = world.client('ann', 'modern'), world.client('bob')
    assert counted(ann, session) == 1
    refused(world.rest('bob').get(f'/sessions/{session}'), 404, 'session_not_found')
    share = world.share('ann', session, grantee={'client': 'bob'}, may='use')
    assert share['status'] == 'live' and 'code' not in share
    assert world.rest('bob').get(f'/sessions/{session}').json()['session_id'] == session
    assert counted(bob, session) == 2
    assert bob.call('session__context_update', {'context': {'a': 1}, 'session_id': session}).result['structuredContent']['context'] == {'a': 1}
    assert world.rest('ann').get(f'/sessions/{session}/context').json() == {'a': 1}
    assert world.rest('ann').delete(f"/sessions/{session}/shares/{share['id']}").status == 200
    assert bob.call('up__counter', headers={'Mcp-Session-Id': session}).status == 404
    refused(world.rest('bob').get(f'/sessions/{session}'), 404, 'session_not_found')
    assert counted(ann, session) == 3


def test_sharing__read_shows_the_session_and_calls_nothing(world):
    session = world.session('ann')
    ann, bob = world.client('ann', 'modern'), world.client('bob', 'modern')
    assert counted(ann, session) == 1
    world.share('ann', session, grantee={'client': 'bob'}, may='read')
    api = world.rest('bob')
    assert api.get(f'/sessions/{session}').status == api.get(f'/sessions/{session}/context').status == 200
    assert [e['tool_name'] for e in api.get(f'/sessions/{session}/tools').json()['executions']] == ['counter']
    assert b'counter' in world.hf.request('GET', f'/api/v1/sessions/{session}/export', world.keys['bob'].headers).body
    for reply in (api.put(f'/sessions/{session}/context', {'a': 1}), api.delete(f'/sessions/{session}'),
                  api.post(f'/sessions/{session}/refresh', {'ttl': 60}), api.get(f'/sessions/{session}/shares'),
                  api.post(f'/sessions/{session}/shares', {}), api.post(f'/sessions/{session}/tools', {'tool_name': 'x'})):
        refused(reply, 404, 'session_not_found')
    says(bob.call('session__context_get', {'session_id': session}), 'reading')
    assert counted(ann, session) == 2


def test_sharing__a_stolen_or_reused_or_wrong_or_foreign_or_expired_code_is_refused_and_recorded(world):
    session = world.session('ann')
    bob, eve = world.rest('bob'), world.rest('eve')
    code = world.share('ann', session)['code']
    assert bob.post('/sessions/join', {'code': ' ' + code.upper() + ' '}).json()['session']['session_id'] == session
    refused(eve.post('/sessions/join', {'code': code}), 409, 'conflict')
    refused(bob.post('/sessions/join', {'code': code}), 409, 'conflict')
    unknown = eve.post('/sessions/join', {'code': 'hf-share-' + 'a' * 26})
    refused(unknown, 404, 'not_found')
    fresh = world.share('ann', session)
    foreign = world.rest('far').post('/sessions/join', {'code': fresh['code']})
    assert foreign.status == 404 and unknown.json()['detail'] == foreign.json()['detail']
    assert world.rest('ann').delete(f"/sessions/{session}/shares/{fresh['id']}").status == 200
    refused(eve.post('/sessions/join', {'code': fresh['code']}), 403, 'denied')
    late = world.share('ann', session, expires='1ms')['code']
    refused(eve.post('/sessions/join', {'code': late}), 403, 'denied')
    reasons = sorted(e['error'].rpartition(': ')[2] for e in world.events('session/join') if e['outcome'] == 'refused')
    assert reasons == ['expired', 'not known', 'revoked', 'used before', 'used before']
    assert [e['outcome'] for e in world.events('session/join', 'far')] == ['refused']
    everything = json.dumps(world.rest('root').get('/audit/events?limit=200').json())
    assert code not in everything and fresh['code'] not in everything


def test_sharing__wrong_codes_are_limited_by_caller(world):
    eve, answers = world.rest('eve'), set()
    for _ in range(130):
        answers.add(eve.post('/sessions/join', {'code': 'hf-share-' + 'a' * 26}).status)
    assert answers == {404, 429}
    code = world.share('ann', world.session('ann'))['code']
    assert world.rest('bob').post('/sessions/join', {'code': code}).status == 200


def test_sharing__wrong_codes_of_one_caller_limit_no_other_of_a_tenant_with_a_long_name(holdfast):
    hf = holdfast({}, SETTINGS)
    bob, eve = (Rest(hf, keys.create(hf, '--role', 'member', '--tenant', 't' * 64, '--name', name).headers) for name in ('bob', 'eve'))
    wrong = {'code': 'hf-share-' + 'a' * 26}
    assert {eve.post('/sessions/join', wrong).status for _ in range(130)} == {404, 429}
    assert bob.post('/sessions/join', wrong).status == 404


@pytest.mark.parametrize('tool, arguments, words', [
    ('share', {'may': 5}, '"may" must be a string'), ('share', {'may': ['read']}, '"may" must be'), ('share', {'expires': 60}, '"expires" must be'),
    ('share', {'session_id': 7}, '"session_id" must be'), ('fork', {'session_id': ['ses_x']}, '"session_id" must be'),
    ('join', {'code': 5}, '"code" must be'), ('join', {'code': 'x', 'former_owner': 5}, '"former_owner" must be'),
    ('join', {'session': 'nobodys-session'}, 'No session of this name is shared with you'), ('share', {'may': 'write'}, '"may" is read'),
    ('share', {'expires': '25h'}, 'at most 24h')])
def test_sharing__what_is_wrong_with_a_call_is_named_and_never_taken_for_a_default(holdfast, tool, arguments, words):
    says(holdfast({}).client('/mcp', modern=True).call(f'session__{tool}', arguments), words)


def test_sharing__a_null_stands_for_a_missing_argument(holdfast):
    made = holdfast({}).client('/mcp', modern=True).call('session__share', {'may': None, 'expires': None})
    assert made.result['structuredContent']['may'] == 'use'


def test_sharing__a_grantee_has_one_member(world):
    session = world.session('ann')
    for grantee in ({'client': 'bob', 'may': 'read'}, {'may': 'read', 'client': 'bob'}, {'client': 'bob', 'user': 'bob'}, {}, 5, 'bob'):
        refused(world.rest('ann').post(f'/sessions/{session}/shares', {'grantee': grantee}), 400, 'bad_input')


def test_sharing__a_foreign_session_looks_unknown(world):
    session = world.session('ann')
    eve = world.rest('eve')
    paths = [('POST', '/shares'), ('GET', '/shares'), ('DELETE', '/shares/01a1dfe0-6fbb-7000-b849-e51ac02e5f37')]
    for method, path in paths:
        theirs = eve.request(method, f'/sessions/{session}{path}', {} if method == 'POST' else None)
        nobodys = eve.request(method, f'/sessions/nobodys-session-1{path}', {} if method == 'POST' else None)
        assert theirs.status == nobodys.status == 404 and theirs.json()['detail'] == nobodys.json()['detail']
    refused(eve.post('/sessions/join', {'session': session}), 404, 'session_not_found')


def test_sharing__handing_over_moves_the_session_and_the_former_owner_loses_it(world):
    ann, bob = world.client('ann'), world.client('bob')
    assert [counted(ann), counted(ann)] == [1, 2]
    made = ann.call('session__share', {'may': 'hand_over'}).result['structuredContent']
    session = made['session_id']
    assert joined(bob, made['code'])['may'] == 'hand_over'
    assert counted(bob) == 3
    says(ann.call('up__counter'), 'handed over')
    assert counted(ann) == 1, 'a new session of her own'
    assert counted(bob) == 4
    refused(world.rest('ann').get(f'/sessions/{session}'), 404, 'session_not_found')
    assert world.rest('bob').get(f'/sessions/{session}').status == 200
    assert len(world.events('session/hand_over')) == 1
    world.hf.restart(kill=False)
    assert [counted(bob), counted(ann)] == [1, 1]


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_sharing__the_other_clients_of_the_new_owner_go_on_in_the_session(world, era):
    session = world.session('ann')
    one, two, ann = world.client('bob', era, 'one'), world.client('bob', era, 'two'), world.client('ann', era)
    joined(one, world.share('ann', session)['code'])
    assert counted(one) == 1
    joined(two, world.share('ann', session, may='hand_over')['code'])
    assert [counted(two), counted(one)] == [2, 3]
    joined(ann, world.share('bob', session, may='hand_over')['code'])
    assert counted(ann) == 4
    for client in (one, two):
        says(client.call('up__counter'), 'handed over to somebody else')
        assert counted(client) != 5, 'a session of his own'


def test_sharing__of_two_codes_that_hand_over_one_does(world):
    session = world.session('ann')
    codes = [world.share('ann', session, may='hand_over')['code'] for _ in range(2)]
    assert world.rest('bob').post('/sessions/join', {'code': codes[0]}).status == 200
    late = refused(world.rest('eve').post('/sessions/join', {'code': codes[1]}), 403, 'denied')
    assert 'another owner now' in late.json()['detail']


def test_sharing__an_administrator_shares_any_session_of_the_tenant_and_no_other(world):
    session = world.session('ann')
    assert world.share('root', session, grantee={'client': 'bob'})['status'] == 'live'
    world.share('far', session, expect=404)
    refused(world.rest('ann').post(f'/sessions/{session}/shares', {'grantee': {'client': 'far'}}), 404, 'not_found')
    refused(world.rest('ann').post(f'/sessions/{session}/shares', {'grantee': {'client': 'ann'}}), 400, 'bad_input')
    refused(world.rest('ann').post(f'/sessions/{session}/shares', {'grantee': {'user': 'nobody'}}), 404, 'not_found')


def test_sharing__what_a_revoked_key_or_a_former_administrator_has_made_gives_nothing_away(world):
    session, other = world.session('ann'), world.session('ann')
    code, by_root = world.share('ann', session)['code'], world.share('root', other)['code']
    world.share('ann', session, grantee={'client': 'bob'})
    world.share('ann', other, grantee={'client': 'bob'}, may='hand_over')
    keys.revoke(world.hf, world.keys['root'])
    refused(world.rest('eve').post('/sessions/join', {'code': by_root}), 403, 'denied')
    assert world.rest('ann').get(f'/sessions/{other}/shares').json()['shares'][0]['status'] == 'open'
    keys.revoke(world.hf, world.keys['ann'])
    refused(world.rest('eve').post('/sessions/join', {'code': code}), 403, 'denied')
    refused(world.rest('bob').post('/sessions/join', {'session': other}), 403, 'denied')
    assert world.rest('bob').post('/sessions/join', {'session': session}).status == 200, 'who was let in by name stays'
    world.keys['chief'] = keys.create(world.hf, '--role', 'admin', '--name', 'chief')
    reasons = [e['error'].rpartition(': ')[2] for e in world.events('session/join', 'chief') if e['outcome'] == 'refused']
    assert reasons == ['its maker may not share the session any more'] * 3


def test_sharing__a_code_of_a_user_ends_with_the_user(world):
    made = run(world.hf, 'user', 'create', 'uma', '--password-file', '-', stdin='correct horse battery')
    assert made.returncode == 0, made.stderr
    world.keys['uma'] = keys.create(world.hf, '--user', 'uma', '--name', 'uma')
    codes = [world.share('uma', world.session('uma'))['code'] for _ in range(2)]
    assert world.rest('bob').post('/sessions/join', {'code': codes[0]}).status == 200
    assert run(world.hf, 'user', 'disable', 'uma').returncode == 0
    refused(world.rest('bob').post('/sessions/join', {'code': codes[1]}), 403, 'denied')


def test_sharing__a_session_has_32_live_shares_and_not_33(world):
    session = world.session('ann')
    made = [world.share('ann', session) for _ in range(32)]
    refused(world.rest('ann').post(f'/sessions/{session}/shares', {}), 429, 'limit')
    assert world.rest('ann').delete(f"/sessions/{session}/shares/{made[0]['id']}").status == 200
    world.share('ann', session)


def test_sharing__the_scopes_of_the_caller_hold_in_a_shared_session(holdfast, database, stdio_server):
    world = World(holdfast, database, stdio_server, handles='never')
    world.keys['narrow'] = keys.create(world.hf, '--role', 'member', '--name', 'narrow', '--tool', 'up__echo', '--server', 'up')
    session = world.session('ann')
    world.share('ann', session, grantee={'client': 'narrow'})
    client = world.client('narrow', 'modern')
    assert call(client, 'up__echo', {'text': 'x'}, session).text == 'x'
    reply = call(client, 'up__counter', None, session)
    assert (reply.json or {}).get('error') or reply.result.get('isError'), reply


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_sharing__a_fork_remembers_and_begins_anew(world, era):
    session = world.session('ann')
    ann = world.client('ann', era)
    assert [counted(ann, session), counted(ann, session)] == [1, 2]
    assert call(ann, 'session__context_update', {'context': {'goal': 'x'}, 'session_id': session}).status == 200
    made = ann.call('session__fork', {'session_id': session}).result['structuredContent']
    assert made['forked_from'] == session != made['session_id']
    api = world.rest('ann')
    assert api.get(f"/sessions/{made['session_id']}/context").json() == {'goal': 'x'}
    origin, copy = api.get(f'/sessions/{session}').json(), api.get(f"/sessions/{made['session_id']}").json()
    assert copy['lineage'] == {'kind': 'fork', 'session': origin['id']} and copy['context_id'] != origin['context_id']
    assert api.put(f"/sessions/{made['session_id']}/context", {'goal': 'y'}, headers={'If-Match': '*'}).status == 200
    assert api.get(f'/sessions/{session}/context').json() == {'goal': 'x'}
    assert counted(ann, made['session_id']) == 1 and counted(ann, session) == 3
    assert [e['session_id'] for e in world.events('session/fork')] == [origin['id']]


def test_sharing__a_fork_is_of_ones_own_or_of_what_one_may_read(world):
    session = world.session('ann', passthrough_auth=tokens('open-sesame-0001'))
    bob = world.rest('bob')
    refused(bob.post(f'/sessions/{session}/fork'), 404, 'session_not_found')
    world.share('ann', session, grantee={'client': 'bob'}, may='read')
    made = bob.post(f'/sessions/{session}/fork')
    assert made.status == 201 and 'passthrough_auth' not in made.json(), made
    refused(world.rest('ann').get(f"/sessions/{made.json()['session_id']}"), 404, 'session_not_found')
    assert 'passthrough_auth' in world.rest('ann').get(f'/sessions/{session}').json()


def test_sharing__credentials_of_the_owner_are_lent_to_nobody_and_gone_after_a_hand_over(holdfast, database, stdio_server):
    world = World(holdfast, database, stdio_server, handles='never', credential={'service': 'github', 'as': 'env:GITHUB_TOKEN'})
    session = world.session('ann', passthrough_auth=tokens('open-sesame-0001'))
    ann, bob = world.client('ann', 'modern'), world.client('bob', 'modern')
    assert 'open-sesame-0001' in call(ann, 'up__env', session=session).text
    world.share('ann', session, grantee={'client': 'bob'})
    says(call(bob, 'up__env', session=session), 'does not lend')
    assert world.share('ann', session, grantee={'client': 'bob'}, may='hand_over')['may'] == 'hand_over'
    assert world.rest('bob').post('/sessions/join', {'session': session}).status == 200
    reply = call(bob, 'up__env', session=session)
    assert not reply.result.get('isError') and 'open-sesame-0001' not in reply.text


def test_sharing__the_commands_share_list_revoke_and_fork(world):
    session = world.session('ann')
    done = run(world.hf, 'sessions', 'share', session, '--expires', '30m')
    assert done.returncode == 0 and 'works once' in done.stderr, done.stderr
    code = done.stdout.strip()
    assert world.rest('bob').post('/sessions/join', {'code': code, 'client_name': 'Cur\x1bsor'}).status == 200
    named, = run_json(world.hf, 'sessions', 'share', session, '--client', 'eve', '--may', 'read')
    assert named['may'] == 'read' and 'code' not in named
    shown = run(world.hf, 'sessions', 'shares', session)
    assert shown.returncode == 0 and '\x1b' not in shown.stdout and len(shown.stdout.splitlines()) == 3, shown.stdout
    assert run(world.hf, 'sessions', 'unshare', session, named['id']).returncode == 0
    refused(world.rest('eve').get(f'/sessions/{session}'), 404, 'session_not_found')
    gone = run(world.hf, 'sessions', 'unshare', session, named['id'])
    assert gone.returncode == 1 and 'revoked already' in gone.stderr, gone.stderr
    for words, text in (([session, '--may', 'write'], 'may'), ([session, '--user', 'a', '--client', 'b'], 'not both')):
        wrong = run(world.hf, 'sessions', 'share', *words)
        assert wrong.returncode != 0 and text in wrong.stderr, wrong.stderr
    copy = run(world.hf, 'sessions', 'fork', session).stdout.strip()
    assert f'"session":"' in run(world.hf, 'sessions', 'show', copy, '--json').stdout


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_sharing__no_record_has_a_code_also_where_it_is_complete(world, era):
    assert world.rest('root').put('/templates/full', {'audit': 'full'}, headers={'If-None-Match': '*'}).status == 201
    session = world.session('ann', template='full')
    ann, bob, eve = (world.client(who, era) for who in ('ann', 'bob', 'eve'))
    code = call(ann, 'session__share', {}, session=session).result['structuredContent']['code']
    assert call(ann, 'up__echo', {'text': 'complete'}, session=session).text == 'complete'
    world.share('ann', session, grantee={'client': 'eve'}, may='read')
    export = world.hf.get(f'/api/v1/sessions/{session}/export?format=jsonl', headers=world.keys['eve'].headers)
    assert export.status == 200 and '"tool":"share"' in export.body.decode() and code not in export.body.decode()
    joined(bob, code)
    says(call(eve, 'session__join', {'code': code.upper()}), 'used before')
    for path in (p for p in glob.glob(os.path.join(world.hf.data, '**'), recursive=True) if os.path.isfile(p)):
        with open(path, 'rb') as file:
            assert code.encode() not in file.read().lower(), path
    assert code not in world.hf.text().lower()


def test_sharing__the_answer_of_a_join_says_when_the_access_ends(world):
    session = world.session('ann')
    for body in ({}, {'access': '2h'}):
        made = world.share('ann', session, **body)
        joins = world.rest('bob').post('/sessions/join', {'code': made['code'], 'client_name': 'Cursor'}).json()['share']
        listed = [s for s in world.rest('ann').get(f'/sessions/{session}/shares').json()['shares'] if s['id'] == made['id']]
        assert listed == [joins] and joins['joined_client'] == 'Cursor' and ('expires_at' in joins) == ('access' in body)
