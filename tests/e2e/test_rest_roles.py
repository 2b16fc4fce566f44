# SPDX-License-Identifier: Apache-2.0
"""Who may do what over REST: tenants that see nothing of each other, roles inside one, and what a stranger can tell."""
import json
import re

import pytest

from commands import run
from rest import Rest, refused


def key_for(api, *flags):
    """The REST interface as the holder of a new key sees it."""
    done = run(api.holdfast, 'key', 'create', '--json', *flags)
    assert done.returncode == 0, done
    return Rest(api.holdfast, {'Authorization': 'Bearer ' + json.loads(done.stdout)['key']})


@pytest.fixture
def people(rest):
    """A tenant with one of each role, and a stranger of another."""
    api = rest()
    found = {role: key_for(api, '--tenant', 'acme', '--role', role) for role in ('admin', 'member', 'auditor', 'service')}
    found['other'] = key_for(api, '--tenant', 'acme', '--role', 'member')
    found['stranger'] = key_for(api, '--tenant', 'rival', '--role', 'admin')
    found['local'] = api
    return found


def names(api):
    return {s['session_id'] for s in api.get('/sessions').json()['sessions']}


def test_roles__admin_and_auditor_see_the_tenant_others_their_own(people):
    people['member'].create(session_id='m')
    people['service'].create(session_id='s')
    people['admin'].create(session_id='a')
    assert names(people['admin']) == names(people['auditor']) == {'m', 's', 'a'}
    assert names(people['member']) == {'m'} and names(people['service']) == {'s'} and names(people['other']) == set()
    assert names(people['stranger']) == set() == names(people['local'])
    assert people['auditor'].session('m')['tenant_id'] == 'acme'
    assert people['auditor'].get('/sessions/metrics').json()['total_sessions'] == 3
    assert people['member'].get('/sessions/metrics').json()['total_sessions'] == 1


def operations(name, row):
    """Every operation on a session, by its session_id and the id of its row."""
    return [('GET', f'/sessions/{name}', None, {}), ('GET', f'/sessions/by-id/{row}', None, {}),
            ('PATCH', f'/sessions/{name}', {'client_name': 'x'}, {'If-Match': '*'}), ('DELETE', f'/sessions/{name}', None, {}),
            ('POST', f'/sessions/{name}/activity', None, {}), ('POST', f'/sessions/{name}/tools', {'tool_name': 't'}, {}),
            ('GET', f'/sessions/{name}/tools', None, {}), ('POST', f'/sessions/{name}/validate', None, {}),
            ('POST', f'/sessions/{name}/refresh', {'ttl': 60}, {}), ('GET', f'/sessions/{name}/context', None, {}),
            ('PUT', f'/sessions/{name}/context', {'a': 1}, {}), ('PATCH', f'/sessions/{name}/context', {'a': 1}, {}),
            ('POST', '/executions', {'session_id': name, 'tool_name': 't'}, {}), ('GET', f'/context/{name}', None, {}),
            ('PUT', f'/context/{name}', {'context': {}}, {}), ('PATCH', f'/context/{name}', {'append': {}}, {})]


def shape(reply):
    """Everything of an answer but its date and request id."""
    ident = reply.header('x-request-id')
    headers = sorted((n.lower(), v) for n, v in reply.headers if n.lower() not in ('date', 'x-request-id'))
    return reply.status, headers, reply.body.replace(ident.encode(), b'ID')


@pytest.mark.parametrize('who', ['other', 'stranger', 'local'])
def test_foreign__looks_like_unknown_and_nothing_is_touched(people, who):
    name = 'n' * 20
    session = people['member'].create(session_id=name)
    people['member'].put(f'/sessions/{name}/context', {'mine': 1})
    before = people['member'].session(name)
    unknown = operations('u' * 20, '01a1dfe0-6fbb-7000-b849-e51ac02e5f37')
    for mine, nobodys in zip(operations(name, session['id']), unknown):
        foreign = people[who].request(mine[0], mine[1], mine[2], headers=mine[3])
        absent = people[who].request(nobodys[0], nobodys[1], nobodys[2], headers=nobodys[3])
        assert shape(foreign) == shape(absent) and foreign.status == 404, (mine, foreign, absent)
    assert people['member'].session(name) == before
    assert people['member'].get(f'/sessions/{name}/context').json() == {'mine': 1}
    assert people['member'].get(f'/sessions/{name}/tools').json()['count'] == 0


def test_auditor__reads_everything_and_writes_nothing(people):
    session = people['member'].create(session_id='m')
    before = people['member'].session('m')
    for method, path, body, headers in operations('m', session['id']) + [('POST', '/sessions', {'edge_mcp_id': 'e'}, {})]:
        reply = people['auditor'].request(method, path, body, headers=headers)
        if method == 'GET' or path.endswith('/validate'):
            assert reply.status == 200, reply
        else:
            refused(reply, 403, 'denied', 'access denied')
    assert people['member'].session('m') == before


def test_admin__may_do_with_the_tenants_sessions_what_their_owners_may(people):
    session = people['member'].create(session_id='m')
    for method, path, body, headers in operations('m', session['id']):
        if method != 'DELETE' and path != '/context/m':
            reply = people['admin'].request(method, path, body, headers={**headers, 'If-Match': '*'} if 'context' in path else headers)
            assert reply.status == 200, (path, reply)
    assert people['member'].session('m')['tool_execution_count'] == 2
    assert people['admin'].delete('/sessions/m?reason=enough').status == 200
    assert people['member'].session('m')['termination_reason'] == 'enough'


def test_names__are_unique_in_a_tenant_and_free_in_another(people):
    people['member'].create(session_id='same')
    refused(people['other'].post('/sessions', {'edge_mcp_id': 'e', 'session_id': 'same'}), 409, 'session_exists')
    assert people['stranger'].create(session_id='same')['tenant_id'] == 'rival'
    assert people['local'].create(session_id='same')['tenant_id'] == 'default'
    assert people['member'].session('same')['tenant_id'] == 'acme'


def test_keys__of_idempotency_are_each_owners_own(people):
    made = [people[who].post('/sessions', {'edge_mcp_id': 'e'}, headers={'Idempotency-Key': 'k'}) for who in ('member', 'other', 'stranger')]
    assert len({m.json()['id'] for m in made}) == 3


def test_cursors__work_for_who_got_them_alone(people):
    for who in ('member', 'other', 'admin'):
        for _ in range(2):
            people[who].create()
    cursor = people['member'].get('/sessions?limit=1').json()['next_cursor']
    assert people['member'].get(f'/sessions?limit=1&cursor={cursor}').status == 200
    for who in ('other', 'admin', 'stranger'):
        refused(people[who].get(f'/sessions?limit=1&cursor={cursor}'), 400, 'bad_cursor')


def test_limits__are_each_tenants_own(rest):
    api = rest(settings={'session': {'limits': {'max_per_tenant': 1}}, 'tenants': {'big': {'max_sessions': 2}}})
    big, small = key_for(api, '--tenant', 'big'), key_for(api, '--tenant', 'small')
    for who, most in ((big, 2), (small, 1), (api, 1)):
        for _ in range(most):
            who.create()
        refused(who.post('/sessions', {'edge_mcp_id': 'e'}), 429, 'session_limit')


def test_switch__is_off_for_one_tenant_alone(rest):
    api = rest(settings={'tenants': {'old': {'sessions': False}}})
    old, new = key_for(api, '--tenant', 'old'), key_for(api, '--tenant', 'new')
    refused(old.post('/sessions', {'edge_mcp_id': 'e'}), 404, 'not_found')
    refused(old.post('/auth/edge-mcp', {}), 404, 'not_found')
    new.create()


def test_user__of_a_key_is_the_sessions_user(rest):
    api = rest()
    first, second = (key_for(api, '--tenant', 't', '--user', 'anna') for _ in range(2))
    session = first.create(session_id='shared', user_id='01a1dfe0-6fbb-7000-b849-e51ac02e5f37')
    assert re.fullmatch(r'[0-9a-f-]{36}', session['user_id']) and session['user_id'] != '01a1dfe0-6fbb-7000-b849-e51ac02e5f37'
    assert second.session('shared') == session


def test_user__a_key_that_may_do_less_has_only_what_it_made(rest):
    api = rest(settings={'auth': 'required'})
    whole = key_for(api, '--user', 'anna')
    narrow = [key_for(api, '--user', 'anna', *scope) for scope in (('--server', 'sample'), ('--tool', 'sample__echo'), ('--read-only',))]
    secret = {'credentials': {'github': {'type': 'bearer', 'token': 'x' * 20}}}
    hers = whole.create(session_id='hers', passthrough_auth=secret)
    call = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'echo', 'arguments': {'message': 'x'}}}).encode()
    for key in narrow:
        for reply in (key.get('/sessions/hers'), key.delete('/sessions/hers'), key.get('/sessions/by-id/' + hers['id']),
                      key.patch('/sessions/hers', {'passthrough_auth': secret}, headers={'If-Match': '*'}),
                      key.post('/sessions/hers/activity', {}), key.get('/sessions/hers/context')):
            refused(reply, 404, 'session_not_found')
        assert key.get('/sessions').json()['sessions'] == []
        headers = {'Accept': 'application/json, text/event-stream', 'Mcp-Session-Id': hers['session_id'], **key.headers}
        assert api.holdfast.request('POST', '/mcp/sample', headers, call).status == 404
        own = key.create()
        assert own['user_id'] == hers['user_id']  # it is still known who it was
        assert [s['id'] for s in key.get('/sessions').json()['sessions']] == [own['id']]
        assert key.delete('/sessions/' + own['session_id']).status == 200
    assert [s['id'] for s in whole.get('/sessions').json()['sessions']] == [hers['id']]


def test_mcp__another_owner_cannot_use_what_rest_shows_an_admin(people):
    session = people['member'].create()
    body = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'echo', 'arguments': {'text': 'x'}}}).encode()
    headers = {'Accept': 'application/json, text/event-stream', 'Mcp-Session-Id': session['session_id']}
    hf = people['local'].holdfast
    assert hf.request('POST', '/mcp/sample', {**headers, **people['admin'].headers}, body).status == 404
    assert hf.request('POST', '/mcp/sample', {**headers, **people['member'].headers}, body).status == 200
