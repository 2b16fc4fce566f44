# SPDX-License-Identifier: Apache-2.0
"""Holds: a session or user from which nothing is removed, who may make and release them, and what is on record of it."""
import json

import pytest

from commands import events, on_terminal, run, run_json
from harness import wait_for
from rest import Rest, refused
from test_ages import DAY, Slept
from test_rest_roles import key_for
from test_users import CHEAP, user

NEW = {'edge_mcp_id': 'edge-1'}


@pytest.fixture
def slept(tmp_path):
    return Slept(tmp_path)


def new_session(api):
    reply = api.post('/sessions', NEW)
    assert reply.status == 201, reply
    return reply.json()


def test_held_session__outlives_its_age_until_it_is_released(holdfast, slept, database):
    hf = holdfast(settings={'session': {'cleanup': {'interval': '100ms', 'keep': '2d'}}}, env={**slept.env, **database})
    api = Rest(hf)
    held, other = new_session(api), new_session(api)
    for session in held, other:
        assert api.put(f"/sessions/{session['session_id']}/context", {'a': 1},
                       headers={'If-None-Match': '*'}).status in (200, 201)
        assert api.delete(f"/sessions/{session['session_id']}").status in (200, 204)
    made = run(hf, 'audit', 'hold', 'session', held['id'], '--reason', 'case 7', env=database)
    assert made.returncode == 0 and 'is held' in made.stderr, made
    slept.set(2 * DAY + 60)
    hf.restart(kill=False)
    wait_for(lambda: api.get(f"/sessions/{other['session_id']}").status == 404, 'the other session to be deleted')
    assert api.get(f"/sessions/{held['session_id']}").json()['status'] == 'terminated'
    assert api.get(f"/sessions/{held['session_id']}/context").json() == {'a': 1}
    hold, = run_json(hf, 'audit', 'holds')
    assert (hold['kind'], hold['target'], hold['name'], hold['reason']) == ('session', held['id'], held['session_id'], 'case 7')
    assert run(hf, 'audit', 'release', hold['id'], env=database).returncode == 0
    wait_for(lambda: api.get(f"/sessions/{held['session_id']}").status == 404, 'the released session to be deleted')
    assert run_json(hf, 'audit', 'holds') == []
    kept, = run_json(hf, 'audit', 'holds', '--all')
    assert kept['released_at'] and kept['released_by'] == 'local' and 'name' not in kept


def test_hold__is_on_record_without_its_reason(holdfast):
    hf = holdfast(env=CHEAP)
    api = Rest(hf)
    assert user(hf, 'create', 'ada').returncode == 0
    hold = api.post('/audit/holds', {'user': 'ada', 'reason': 'the Jabberwock case'})
    assert hold.status == 201 and hold.json()['name'] == 'ada', hold
    ada = hold.json()['target']
    refused(api.post('/audit/holds', {'user': ada}), 409, 'conflict')
    assert api.delete('/audit/holds/' + hold.json()['id']).json()['released_at']
    refused(api.delete('/audit/holds/' + hold.json()['id']), 404, 'not_found')
    found = [(e['method'], e['owner']) for e in events(hf) if (e.get('method') or '').startswith('hold/')]
    assert found == [('hold/user', 'user:' + ada), ('hold/release', 'user:' + ada)]
    assert 'Jabberwock' not in json.dumps(events(hf))
    assert run(hf, 'audit', 'verify').returncode == 0


def test_roles__admins_hold_auditors_read_and_other_tenants_see_nothing(holdfast):
    api = Rest(holdfast())
    admin = key_for(api, '--tenant', 'acme', '--role', 'admin')
    auditor = key_for(api, '--tenant', 'acme', '--role', 'auditor')
    member = key_for(api, '--tenant', 'acme', '--role', 'member')
    stranger = key_for(api, '--tenant', 'rival', '--role', 'admin')
    session = new_session(member)
    for caller in member, auditor:
        refused(caller.post('/audit/holds', {'session': session['id']}), 403, 'denied')
    refused(member.get('/audit/holds'), 403, 'denied')
    refused(stranger.post('/audit/holds', {'session': session['id']}), 404, 'not_found')
    refused(admin.post('/audit/holds', {'session': session['id'], 'tenant': 'rival'}), 403, 'denied')
    hold = admin.post('/audit/holds', {'session': session['session_id']}).json()
    assert hold['tenant'] == 'acme' and hold['made_by'].startswith('key:')
    assert [h['id'] for h in auditor.get('/audit/holds').json()['holds']] == [hold['id']]
    assert stranger.get('/audit/holds').json()['holds'] == []
    refused(stranger.delete('/audit/holds/' + hold['id']), 404, 'not_found')
    refused(auditor.delete('/audit/holds/' + hold['id']), 403, 'denied')
    assert [h['id'] for h in run_json(api.holdfast, 'audit', 'holds')] == [hold['id']]
    assert admin.delete('/audit/holds/' + hold['id']).json()['released_by'].startswith('key:')


@pytest.mark.parametrize('body, status, words', [
    ({}, 400, 'either'), ({'session': 'abcd', 'user': 'ada'}, 400, 'either'), ({'user': 'nobody'}, 404, 'no such user'),
    ({'session': 'ses_nothing'}, 404, 'no session'), ({'session': 'abcd', 'reason': 'x' * 251}, 400, 'reason'),
    ({'session': ''}, 400, 'session'), ({'who': 'ada'}, 400, 'who')])
def test_refusals__say_what_is_wrong(holdfast, body, status, words):
    reply = Rest(holdfast()).post('/audit/holds', body)
    assert reply.status == status and words in reply.json()['detail'], reply


def test_command__in_words(holdfast):
    hf = holdfast()
    session = new_session(Rest(hf))
    for args in ('hold', 'thing', 'x'), ('hold', 'session'), ('holds', 'x'), ('release',), ('holds', '--reason', 'x'):
        assert run(hf, 'audit', *args).returncode == 2, args
    assert 'nothing is held' in run(hf, 'audit', 'holds').stderr
    assert 'no session "nope"; `holdfast sessions list' in run(hf, 'audit', 'hold', 'session', 'nope').stderr
    assert 'did you mean holdfast audit release' in run(hf, 'audit', 'relaese').stderr
    assert run(hf, 'audit', 'release', 'nope').returncode == 1
    hf.stop()
    made = run(hf, 'audit', 'hold', 'session', session['id'][:13], '--json')
    assert made.returncode == 0 and json.loads(made.stdout)['target'] == session['id'], made
    shown = on_terminal(hf, 'audit', 'holds', NO_COLOR='1')
    assert session['session_id'][:10] in shown and max(map(len, shown.splitlines())) <= 80, shown
    assert run(hf, 'audit', 'release', json.loads(made.stdout)['id']).returncode == 0
