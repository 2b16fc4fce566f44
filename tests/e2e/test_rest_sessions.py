# SPDX-License-Identifier: Apache-2.0
"""Sessions over REST: made, read, listed, changed, ended; and what is refused on the way."""
import json
import re
import time

import pytest

from rest import refused

HANDLE = re.compile(r'ses_[A-Za-z0-9_-]{43}')


def test_create__gives_a_session_with_a_name_of_ours_and_where_it_is(rest):
    api = rest()
    reply = api.post('/sessions', {'edge_mcp_id': 'edge-1', 'client_name': 'Éditeur', 'client_type': 'ide',
                                   'client_version': '1.2', 'metadata': {'region': 'eu', 'deep': {'a': [1, None]}}},
                     headers={'User-Agent': 'tests/1'})
    assert reply.status == 201
    session = reply.json()
    assert HANDLE.fullmatch(session['session_id'])
    assert reply.header('location') == '/api/v1/sessions/' + session['session_id']
    assert session['tenant_id'] == 'default' and session['edge_mcp_id'] == 'edge-1'
    assert (session['client_name'], session['client_type'], session['client_version']) == ('Éditeur', 'ide', '1.2')
    assert session['status'] == 'active' and session['initialized'] is False
    assert session['tool_execution_count'] == 0 and session['total_tokens_used'] == 0
    assert session['connection_metadata'] == {
        'region': 'eu', 'deep': {'a': [1, None]}, 'ip_address': '127.0.0.1', 'user_agent': 'tests/1',
        'protocol': 'HTTP/1.1', 'tls_version': 'none'}
    for absent in ('user_id', 'core_session_id', 'context_id', 'terminated_at', 'termination_reason', 'passthrough_auth'):
        assert absent not in session
    again = api.get('/sessions/' + session['session_id'])
    assert again.json() == session and again.header('etag') == reply.header('etag')
    assert api.get('/sessions/by-id/' + session['id']).json() == session


def test_create__lives_a_day_or_as_long_as_was_asked(rest):
    api = rest()

    def life(session):
        times = [time.mktime(time.strptime(session[k][:19], '%Y-%m-%dT%H:%M:%S')) for k in ('created_at', 'expires_at')]
        return times[1] - times[0]
    assert life(api.create()) == 24 * 3600
    assert life(api.create(ttl=3600)) == 3600
    assert life(api.create(ttl='1h30m')) == 5400
    assert life(api.create(ttl='30d')) == 30 * 24 * 3600
    for bad in (0, -1, '0s', 30 * 24 * 3600 + 1, '31d', 'soon', 1.5, True, []):
        refused(api.post('/sessions', {'edge_mcp_id': 'e', 'ttl': bad}), 400, 'invalid_duration')


@pytest.mark.parametrize('name', ['session-1700000000-edge', 'a', 'x' * 255, "!$&'()*+,-.:;<=>@[]^_`{|}~"])
def test_create__takes_the_clients_name(rest, name):
    api = rest()
    assert api.create(session_id=name)['session_id'] == name
    assert api.session(name)['session_id'] == name
    refused(api.post('/sessions', {'edge_mcp_id': 'e', 'session_id': name}), 409, 'session_exists', 'session already exists')


@pytest.mark.parametrize('name', ['x' * 256, 'a b', 'a/b', 'a?b', 'a#b', 'a%b', 'é', 'a\n', 'metrics', 'by-id', 'import', '.', '..', 7])
def test_create__refuses_names_no_path_can_say(rest, name):
    refused(rest().post('/sessions', {'edge_mcp_id': 'e', 'session_id': name}), 400, 'bad_input')


def test_create__a_name_stays_taken_when_its_session_is_over(rest):
    api = rest()
    api.create(session_id='once')
    assert api.delete('/sessions/once').status == 200
    refused(api.post('/sessions', {'edge_mcp_id': 'e', 'session_id': 'once'}), 409, 'session_exists')


@pytest.mark.parametrize('body, code', [
    ({}, 'bad_input'), ({'edge_mcp_id': ''}, 'bad_input'), ({'edge_mcp_id': 'x' * 256}, 'bad_input'),
    ({'edge_mcp_id': None}, 'bad_input'), ({'edge_mcp_id': 'e\0'}, 'bad_input'),
    ({'edge_mcp_id': 'e', 'client_type': 'toaster'}, 'unknown_client_type'),
    ({'edge_mcp_id': 'e', 'client_type': 4}, 'unknown_client_type'),
    ({'edge_mcp_id': 'e', 'client_name': 'x' * 256}, 'bad_input'),
    ({'edge_mcp_id': 'e', 'client_version': 'x' * 51}, 'bad_input'),
    ({'edge_mcp_id': 'e', 'metadata': []}, 'bad_input'),
    ({'edge_mcp_id': 'e', 'context_id': 'nope'}, 'bad_input'),
    ({'edge_mcp_id': 'e', 'passthrough_auth': {'credentials': {'github': {'token': 'ghp_secret'}}}}, 'credentials_not_kept'),
    ([], 'bad_input'), ('text', 'bad_input'), (5, 'bad_input'),
])
def test_create__refuses_what_it_cannot_keep(rest, body, code):
    api = rest()
    refused(api.post('/sessions', body), 400, code)
    assert api.get('/sessions').json()['count'] == 0


def test_create__takes_members_at_their_limits(rest):
    api = rest()
    session = api.create(edge_mcp_id='é' * 255, client_name='n' * 255, client_version='v' * 50, core_session_id='c' * 255)
    assert session['edge_mcp_id'] == 'é' * 255 and session['core_session_id'] == 'c' * 255


@pytest.mark.parametrize('sent, kept', [('vscode', 'ide'), ('VSCode', 'ide'), ('claude-code', 'claude-code'),
                                        ('agent', 'agent'), ('cli', 'cli'), ('', None), (None, None)])
def test_create__normalises_the_client_type(rest, sent, kept):
    assert rest().create(client_type=sent).get('client_type') == kept


def test_create__believes_no_tenant_or_user_and_passes_over_unknown_members(rest):
    session = rest().create(tenant_id='other', user_id='01a1dfe0-6fbb-7000-b849-e51ac02e5f37', owner='x', counted=False,
                            status='terminated', id='mine', hostname='h')
    assert session['tenant_id'] == 'default' and session['status'] == 'active' and session['id'] != 'mine'
    assert 'user_id' not in session


@pytest.mark.parametrize('raw, status, code', [
    (b'{', 400, 'parse'), (b'', 415, 'unsupported_media_type'), (b'{"edge_mcp_id":"a"} x', 400, 'parse'),
    (b'\xef\xbb\xbf{}', 400, 'parse'), (b'{"edge_mcp_id":"a","edge_mcp_id":"b"}', 400, 'bad_input'), (b'\xff', 400, 'parse')])
def test_create__refuses_what_is_no_json(rest, raw, status, code):
    refused(rest().request('POST', '/sessions', raw=raw), status, code)


def test_create__wants_json(rest):
    refused(rest().post('/sessions', {'edge_mcp_id': 'e'}, headers={'Content-Type': 'text/plain'}), 415, 'unsupported_media_type')


def test_limit__is_429_with_the_texts_of_the_seed(rest):
    api = rest(settings={'session': {'limits': {'max_per_tenant': 3}}})
    made = [api.create() for _ in range(3)]
    reply = refused(api.post('/sessions', {'edge_mcp_id': 'e'}), 429, 'session_limit', 'session limit exceeded for tenant')
    assert int(reply.header('retry-after')) > 0
    assert reply.header('ratelimit-policy') == '"sessions";q=3' and reply.header('ratelimit') == '"sessions";r=0'
    assert api.delete('/sessions/' + made[0]['session_id']).status == 200
    assert api.post('/sessions', {'edge_mcp_id': 'e'}).status == 201


def test_get__is_404_for_what_is_not_there(rest):
    api = rest()
    for path in ('/sessions/nope', '/sessions/ses_' + 'A' * 43, '/sessions/by-id/01a1dfe0-6fbb-7000-b849-e51ac02e5f37',
                 '/sessions/by-id/nope'):
        refused(api.get(path), 404, 'session_not_found', 'session not found')


def test_get__says_304_while_nothing_has_changed(rest):
    api = rest()
    name = api.create()['session_id']
    tag = api.get('/sessions/' + name).header('etag')
    reply = api.get('/sessions/' + name, headers={'If-None-Match': f'"x", W/{tag}'})
    assert reply.status == 304 and reply.body == b'' and reply.header('etag') == tag
    assert api.get('/sessions/' + name, headers={'If-None-Match': '"x"'}).status == 200
    api.delete('/sessions/' + name)
    assert api.get('/sessions/' + name, headers={'If-None-Match': tag}).json()['status'] == 'terminated'


def test_delete__ends_it_once_and_says_why(rest):
    api = rest()
    name = api.create()['session_id']
    reply = api.delete(f'/sessions/{name}?reason=all%20done')
    assert reply.status == 200 and reply.json() == {'message': 'session terminated'}
    session = api.session(name)
    assert session['status'] == 'terminated' and session['termination_reason'] == 'all done' and session['terminated_at']
    refused(api.delete('/sessions/' + name), 404, 'session_not_found', 'session not found')
    other = api.create()['session_id']
    api.delete('/sessions/' + other)
    assert api.session(other)['termination_reason'] == 'client request'
    refused(api.delete('/sessions/nope'), 404, 'session_not_found')
    refused(api.delete('/sessions/x?reason=' + 'r' * 256), 400, 'bad_input')


def test_list__shows_newest_first_and_counts_its_own_rows(rest):
    api = rest()
    assert api.get('/sessions').json() == {'sessions': [], 'count': 0, 'next_cursor': None}
    names = [api.create(session_id=f's{i}')['session_id'] for i in range(5)]
    page = api.get('/sessions').json()
    assert [s['session_id'] for s in page['sessions']] == names[::-1] and page['count'] == 5 and page['next_cursor'] is None
    assert page['sessions'][0] == api.session(names[-1])


def test_list__pages_by_cursor_and_link(rest):
    api = rest()
    names = [api.create(session_id=f's{i}')['session_id'] for i in range(7)]
    seen, path = [], '/sessions?limit=3'
    while path:
        reply = api.get(path)
        page = reply.json()
        assert page['count'] == len(page['sessions']) <= 3
        seen += [s['session_id'] for s in page['sessions']]
        link = reply.header('link')
        assert (link is None) == (page['next_cursor'] is None)
        path = re.fullmatch(r'</api/v1(/sessions\?[^>]*)>; rel="next"', link).group(1) if link else None
    assert seen == names[::-1]


def test_list__refuses_cursors_of_other_lists_and_broken_ones(rest):
    api = rest()
    for _ in range(3):
        api.create()
    cursor = api.get('/sessions?limit=1').json()['next_cursor']
    assert api.get(f'/sessions?limit=2&cursor={cursor}').json()['count'] == 2
    flipped = cursor[:10] + ('A' if cursor[10] != 'A' else 'B') + cursor[11:]
    for bad in (flipped, cursor[:-4], cursor + 'AAAA', 'x', '', 'A' * 500, '%00'):
        reply = api.get(f'/sessions?limit=1&cursor={bad}')
        assert reply.status == 400, (bad, reply)
    refused(api.get(f'/sessions?limit=1&status=terminated&cursor={cursor}'), 400, 'bad_cursor')


@pytest.mark.parametrize('limit, status', [('1', 200), ('200', 200), ('0', 400), ('201', 400), ('-1', 400), ('x', 400), ('', 400), ('1&limit=2', 400)])
def test_list__limit_is_1_to_200(rest, limit, status):
    assert rest().get('/sessions?limit=' + limit).status == status


def test_survives_kill__what_was_answered_is_there(rest):
    api = rest()
    session = api.create(session_id='kept')
    api.holdfast.restart()
    assert api.session('kept') == session


def test_paths__unknown_ones_and_methods_are_problems_too(rest):
    api = rest()
    refused(api.get('/nothing'), 404, 'not_found')
    reply = refused(api.request('PUT', '/sessions'), 405, 'method_not_allowed')
    assert set(reply.header('allow').split(', ')) == {'GET', 'POST'}
    refused(api.get('/sessions/a%2fb'), 400, 'bad_input')


def test_request_id__is_the_clients_when_it_is_harmless(rest):
    api = rest()
    assert api.get('/sessions', headers={'X-Request-Id': 'trace-1'}).header('x-request-id') == 'trace-1'
    ours = [api.get('/sessions', headers={'X-Request-Id': i}).header('x-request-id') for i in ('a b', 'x' * 129, '"')]
    assert len(set(ours)) == 3 and all(re.fullmatch('req_[0-9a-f]{16}', i) for i in ours)
    assert api.get('/sessions', headers={'X-Request-Id': 'x' * 128}).header('x-request-id') == 'x' * 128


def test_credential__that_nobody_issued_is_no_tenant(rest):
    reply = refused(rest().get('/sessions', headers={'Authorization': 'Bearer nonsense'}), 401, 'tenant_not_found', 'tenant not found')
    assert reply.header('www-authenticate')
