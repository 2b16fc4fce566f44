# SPDX-License-Identifier: Apache-2.0
"""Sessions over REST: made, read, listed, changed, ended; and what is refused on the way."""
import json
import re
import threading
import time

import pytest

from harness import wait_for
from rest import Session, refused

HANDLE = re.compile(r'ses_[A-Za-z0-9_-]{43}')


def test_create__gives_a_session_with_a_name_of_ours_and_where_it_is(rest):
    api = rest()
    reply = api.post('/sessions', {'edge_mcp_id': 'edge-1', 'client_name': 'Éditeur', 'client_type': 'ide',
                                   'client_version': '1.2', 'metadata': {'region': 'eu', 'deep': {'a': [1, None]}}},
                     headers={'User-Agent': 'tests/1'})
    assert reply.status == 201
    session = Session(reply.json())
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


@pytest.mark.parametrize('name', ['x' * 256, 'a b', 'a/b', 'a?b', 'a#b', 'a%b', 'é', 'a\n', 'metrics', 'by-id', 'import', 'details', '.', '..', 7])
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
    ({'edge_mcp_id': 'e', 'passthrough_auth': {'credentials': {'github': {'token': 'ghp_secret'}}}}, 'bad_input'),
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
    made = [api.create() for _ in range(2)]
    reply = api.post('/sessions', {'edge_mcp_id': 'e'})
    assert reply.status == 201 and reply.header('ratelimit-policy') == '"sessions";q=3' and reply.header('ratelimit') == '"sessions";r=0'
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
    assert set(reply.header('allow').split(', ')) == {'GET', 'HEAD', 'POST'}
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


def times(session, *members):
    """Members as seconds."""
    found = []
    for member in members:
        whole, _, millis = session[member].rstrip('Z').partition('.')
        found.append(time.mktime(time.strptime(whole, '%Y-%m-%dT%H:%M:%S')) + int(millis) / 1000)
    return found


def test_patch__changes_what_a_client_may_and_nothing_else(rest):
    api = rest()
    before = api.create(client_name='old', metadata={'a': 1})
    path = '/sessions/' + before['session_id']
    tag = api.get(path).header('etag')
    reply = api.patch(path, {'client_name': 'new', 'client_type': 'cli', 'initialized': True, 'core_session_id': 'core',
                             'metadata': {'b': 2, 'ip_address': '8.8.8.8'}, 'tenant_id': 'x', 'user_id': 'y'}, headers={'If-Match': tag})
    assert reply.status == 200 and reply.header('etag') != tag
    after = reply.json()
    assert after == api.session(before['session_id'])
    expected = {**before, 'client_name': 'new', 'client_type': 'cli', 'initialized': True, 'core_session_id': 'core'}
    expected['connection_metadata'] = {k: v for k, v in before['connection_metadata'].items() if k != 'a'} | {'b': 2}
    assert after == expected
    cleared = api.patch(path, {'client_name': None, 'client_type': None, 'core_session_id': None, 'metadata': None},
                        headers={'If-Match': '*'}).json()
    assert not {'client_name', 'client_type', 'core_session_id'} & set(cleared)
    assert set(cleared['connection_metadata']) == {'ip_address', 'protocol', 'tls_version'}


def test_patch__needs_the_current_etag(rest):
    api = rest()
    path = '/sessions/' + api.create()['session_id']
    tag = api.get(path).header('etag')
    refused(api.patch(path, {'client_name': 'a'}), 428, 'precondition_required')
    assert api.patch(path, {'client_name': 'a'}, headers={'If-Match': tag}).status == 200
    refused(api.patch(path, {'client_name': 'b'}, headers={'If-Match': tag}), 412, 'precondition_failed')
    refused(api.patch(path, {'client_name': 'b'}, headers={'If-Match': '"x"'}), 412, 'precondition_failed')
    refused(api.patch('/sessions/nope', {'client_name': 'b'}, headers={'If-Match': '*'}), 404, 'session_not_found')
    assert api.get(path).json()['client_name'] == 'a'


def test_patch__counters_do_not_make_an_etag_stale(rest):
    api = rest()
    path = '/sessions/' + api.create()['session_id']
    tag = api.get(path).header('etag')
    api.post(path + '/tools', {'tool_name': 't'})
    api.get(path)
    moved = api.get(path).header('etag')
    assert moved != tag
    assert api.patch(path, {'client_name': 'a'}, headers={'If-Match': moved}).status == 200


def test_patch__of_many_with_one_etag_exactly_one_holds(rest):
    api = rest()
    path = '/sessions/' + api.create()['session_id']
    tag, replies = api.get(path).header('etag'), []

    def work(number):
        replies.append(api.patch(path, {'client_name': f'n{number}'}, headers={'If-Match': tag}))
    workers = [threading.Thread(target=work, args=(i,)) for i in range(12)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(r.status for r in replies) == [200] + [412] * 11
    assert Session(api.get(path).json()) == next(r for r in replies if r.status == 200).json()


@pytest.mark.parametrize('body, code', [
    ({'status': 'terminated'}, 'bad_input'), ({'id': 'x'}, 'bad_input'), ({'session_id': 'x'}, 'bad_input'),
    ({'edge_mcp_id': 'x'}, 'bad_input'), ({'tool_execution_count': 5}, 'bad_input'), ({'expires_at': 'x'}, 'bad_input'),
    ({'connection_metadata': {}}, 'bad_input'), ({'surprise': 1}, 'bad_input'), ({}, 'bad_input'), ({'tenant_id': 'x'}, 'bad_input'),
    ({'client_type': 'toaster'}, 'unknown_client_type'), ({'initialized': 'yes'}, 'bad_input'), ({'initialized': None}, 'bad_input'),
    ({'context_id': '01a1dfe0-6fbb-7000-b849-e51ac02e5f37'}, 'unknown_context'), ({'passthrough_auth': {}}, 'bad_input')])
def test_patch__refuses_what_it_does_not_change(rest, body, code):
    api = rest()
    before = api.create()
    refused(api.patch('/sessions/' + before['session_id'], body, headers={'If-Match': '*'}), 400, code)
    assert api.session(before['session_id']) == before


def test_patch__of_a_session_that_is_over_is_409(rest):
    api = rest()
    name = api.create()['session_id']
    api.delete('/sessions/' + name)
    refused(api.patch('/sessions/' + name, {'client_name': 'x'}, headers={'If-Match': '*'}), 409, 'session_not_active')
    refused(api.patch('/sessions/' + name, {'client_name': 'x'}, headers={'If-Match': '"77"'}), 409, 'session_not_active')


def test_activity__wakes_an_idle_session_and_moves_its_end(rest):
    api = rest(settings={'session': {'limits': {'idle_timeout': '1s'}}})
    before = api.create()
    name = before['session_id']
    assert before['status'] == 'active'
    wait_for(lambda: api.session(name)['status'] == 'idle', 'idle')
    assert [s['status'] for s in api.get('/sessions?status=idle').json()['sessions']] == ['idle']
    assert api.get('/sessions?status=active').json()['count'] == 0
    reply = api.post(f'/sessions/{name}/activity')
    assert reply.status == 200 and reply.json() == {'message': 'activity updated'}
    after = api.session(name)
    assert after['status'] == 'active' and after['last_activity_at'] > before['last_activity_at']
    assert after['expires_at'] > before['expires_at']


def test_activity__on_what_is_over_or_was_never_is_404(rest):
    api = rest()
    name = api.create()['session_id']
    api.delete('/sessions/' + name)
    for path in (f'/sessions/{name}/activity', '/sessions/nope/activity'):
        refused(api.post(path), 404, 'session_not_found', 'session not found')


def test_ttl__ends_a_session_without_anybody_doing_anything(rest):
    api = rest()
    name = api.create(ttl='700ms')['session_id']
    assert api.post(f'/sessions/{name}/validate').json()['valid'] is True
    wait_for(lambda: api.session(name)['status'] == 'expired', 'expiry')
    reply = api.post(f'/sessions/{name}/validate')
    assert reply.status == 200 and reply.json()['valid'] is False and reply.json()['status'] == 'expired'
    refused(api.post(f'/sessions/{name}/tools', {'tool_name': 't'}), 409, 'session_not_active', 'session is not active')
    refused(api.post(f'/sessions/{name}/refresh', {'ttl': 60}), 409, 'session_not_active')
    refused(api.post(f'/sessions/{name}/activity'), 404, 'session_not_found')
    assert api.get('/sessions').json()['count'] == 0
    assert api.get('/sessions?status=expired').json()['count'] == 1 == api.get('/sessions?status=all').json()['count']


def test_refresh__gives_a_new_end_from_now(rest):
    api = rest()
    session = api.create(ttl=60)
    path = '/sessions/' + session['session_id']
    reply = api.post(path + '/refresh', {'ttl': '2h'})
    assert reply.status == 200 and reply.json()['message'] == 'session refreshed'
    after = api.get(path).json()
    assert after['expires_at'] == reply.json()['expires_at']
    end, was = times(after, 'expires_at')[0], times(session, 'expires_at')[0]
    assert 7100 < end - was < 7200
    assert times(api.post(path + '/refresh').json(), 'expires_at')[0] >= end
    for bad in ({'ttl': 0}, {'ttl': '31d'}):
        refused(api.post(path + '/refresh', bad), 400, 'invalid_duration')
    refused(api.post(path + '/refresh', {'ttl': 60, 'more': 1}), 400, 'bad_input')
    refused(api.post('/sessions/nope/refresh'), 404, 'session_not_found')


def test_list__filters_by_status_and_client_type(rest):
    api = rest()
    api.create(session_id='a', client_type='cli')
    api.create(session_id='b', client_type='ide')
    api.create(session_id='c')
    api.delete('/sessions/c')

    def names(query):
        return {s['session_id'] for s in api.get('/sessions' + query).json()['sessions']}
    assert names('') == {'a', 'b'} and names('?status=terminated') == {'c'} and names('?status=all') == {'a', 'b', 'c'}
    assert names('?status=active,terminated') == {'a', 'b', 'c'} and names('?client_type=cli') == {'a'}
    assert names('?client_type=cursor') == {'b'}, 'an editor is an ide, as in a body'
    refused(api.get('/sessions?client_type=none'), 400, 'unknown_client_type')
    refused(api.get('/sessions?status=dozing'), 400, 'bad_input')
    refused(api.get('/sessions?status='), 400, 'bad_input')


def test_active__lists_active_sessions_in_pages_and_no_idle_ones(rest):
    api = rest(settings={'session': {'limits': {'idle_timeout': '2s'}}})
    api.create(session_id='sleeps', client_type='cli')
    wait_for(lambda: api.session('sleeps')['status'] == 'idle', 'the session to be idle')
    for name, kind in (('a', 'cli'), ('b', 'ide'), ('c', 'cli')):
        api.create(session_id=name, client_type=kind)

    def names(path):
        answer = api.get(path)
        return [s['session_id'] for s in answer.json()['sessions']], answer
    found, first = names('/sessions/active?limit=1&client_type=cli')
    assert found == ['c'] and 'link' in {k.lower() for k, _ in first.headers}
    link = re.search(r'</api/v1(/sessions/active\?.*)>; rel="next"', first.header('Link')).group(1)
    assert names(link)[0] == ['a']
    assert 'sleeps' not in names('/sessions/active')[0] and 'sleeps' in names('/sessions')[0]
    refused(api.get('/sessions/active?status=idle'), 400, 'bad_input')
    refused(api.post('/sessions', {'session_id': 'active', 'edge_mcp_id': 'e'}), 400, 'bad_input')


@pytest.mark.parametrize('path, known', [
    ('/sessions?offset=10', 'status, client_type, limit, cursor'), ('/sessions?limit=1&Status=idle', 'status'),
    ('/sessions/metrics?until=1h', 'since'), ('/sessions/x?verbose', 'takes none'), ('/sessions/x/tools?offset=1', 'bodies'),
    ('/docs/files?offset=1', ''), ('/auth/sessions?x=1', 'takes none')])
def test_query__an_unknown_parameter_is_refused_by_name(rest, path, known):
    reply = rest().get(path)
    refused(reply, 400, 'bad_input')
    name = re.split('[?&]', path)[-1].split('=')[0]
    assert f'"{name}"' in reply.json()['detail'] and known in reply.json()['detail']


def test_age__is_told_beside_whether_to_refresh(rest):
    api = rest()
    made = api.create(session_id='s', ttl='1h')
    assert (made['session_age'], made['is_expired'], made['should_refresh']) == (0, False, False)
    etag = api.get('/sessions/s').header('ETag')
    wait_for(lambda: api.session('s')['session_age'] >= 1, 'the session to age')
    listed, = api.get('/sessions').json()['sessions']
    assert listed['session_age'] >= 1 and api.get(f'/sessions/by-id/{made["id"]}').json()['session_age'] >= 1
    assert api.get('/sessions/s', headers={'If-None-Match': etag}).status == 304, 'age does not count for the ETag'


def test_should_refresh__comes_with_the_last_fifth_and_goes_with_a_refresh(rest):
    api = rest()
    api.create(session_id='s', ttl='10s')
    etag = api.get('/sessions/s').header('ETag')
    wait_for(lambda: api.session('s')['should_refresh'], 'four fifths to pass')
    assert api.session('s')['status'] == 'active'
    assert api.get('/sessions/s', headers={'If-None-Match': etag}).status == 200, 'who polls is told'
    assert api.post('/sessions/s/refresh', {'ttl': '1h'}).status == 200
    assert api.session('s')['should_refresh'] is False
    api.create(session_id='short', ttl='500ms')
    wait_for(lambda: api.session('short')['is_expired'], 'expiry')
    assert api.session('short')['should_refresh'] is False


def test_metrics__count_what_was_made_and_used(rest):
    api = rest()
    assert api.get('/sessions/metrics').json() == {
        'active_sessions': 0, 'total_sessions': 0, 'total_tool_executions': 0, 'total_tokens_used': 0,
        'average_session_time_minutes': 0}
    names = [api.create()['session_id'] for _ in range(3)]
    api.post(f'/sessions/{names[0]}/tools', [{'tool_name': 't', 'tokens_used': 7}] * 4)
    api.delete('/sessions/' + names[1])
    totals = api.get('/sessions/metrics?since=24h').json()
    assert (totals['active_sessions'], totals['total_sessions']) == (2, 3)
    assert (totals['total_tool_executions'], totals['total_tokens_used']) == (4, 28)
    for bad in ('yesterday', '-1h', '1.5.5', ''):
        refused(api.get('/sessions/metrics?since=' + bad), 400, 'invalid_duration', 'invalid duration')


def test_edge_auth__tells_the_tenant(rest):
    api = rest()
    reply = api.post('/auth/edge-mcp', {'edge_mcp_id': 'edge', 'api_key': 'ignored'})
    assert reply.status == 200 and reply.json() == {'success': True, 'tenant_id': 'default'}
    assert api.post('/auth/edge-mcp').status == 200
    refused(api.post('/auth/edge-mcp', {}, headers={'X-API-Key': 'wrong'}), 401, 'tenant_not_found', 'tenant not found')


def test_switch__off_for_a_tenant_is_404_and_nothing_else_breaks(rest):
    api = rest(settings={'tenants': {'default': {'sessions': False}}})
    for method, path in (('POST', '/sessions'), ('GET', '/sessions'), ('GET', '/sessions/x'), ('DELETE', '/sessions/x'),
                         ('POST', '/executions'), ('GET', '/context/x'), ('POST', '/auth/edge-mcp'), ('GET', '/sessions/metrics')):
        refused(api.request(method, path, {'edge_mcp_id': 'e'} if method == 'POST' else None), 404, 'not_found')
    client = api.holdfast.client().connect()
    assert client.call('echo', {'text': 'x'}).status == 200


# The same rows as MCP traffic.

@pytest.mark.parametrize('name', [None, 'session-1700000000-edge', 'A' * 43])
@pytest.mark.parametrize('way', ['header', 'query', 'argument', 'meta'])
def test_mcp__uses_a_session_made_by_rest_by_its_name(rest, way, name):
    api = rest()
    session = api.create(**({'session_id': name} if name else {}))
    name = session['session_id']
    for count in (1, 2, 3):
        reply = call_in(api.holdfast, way, name)
        assert reply.status == 200 and 'error' not in reply.json(), reply
        assert json.loads(reply.body)['result']['content'][0]['text'].startswith(str(count)), reply
        shown = api.session(name)
        assert shown['tool_execution_count'] == count and shown['id'] == session['id']
    run = api.get(f'/sessions/{name}/tools').json()['executions']
    assert [(e['tool_name'], e['server'], e['outcome']) for e in run] == [('counter', 'sample', 'ok')] * 3
    assert api.get('/sessions').json()['count'] == 1


def call_in(holdfast, way, name):
    """One call of the sample server's counter by a legacy client that names its session in this way."""
    params = {'name': 'counter', 'arguments': {'session_id': name} if way == 'argument' else {}}
    if way == 'meta':
        params['_meta'] = {'session_id': name}
    body = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': params}).encode()
    headers = {'Accept': 'application/json, text/event-stream'}
    if way == 'header':
        headers['Mcp-Session-Id'] = name
    return holdfast.request('POST', '/mcp/sample' + ('?session_id=' + name if way == 'query' else ''), headers, body)


@pytest.mark.parametrize('way', ['header', 'query', 'argument'])
def test_mcp__a_session_ended_by_rest_is_as_good_as_unknown(rest, way):
    api = rest()
    name = api.create()['session_id']
    assert call_in(api.holdfast, way, name).status == 200
    api.delete('/sessions/' + name)
    ended, unknown = (call_in(api.holdfast, way, n) for n in (name, 'ses_' + 'B' * 43))
    assert ended.status == unknown.status and ended.body == unknown.body
    assert api.session(name)['tool_execution_count'] == 1


def test_mcp__ending_a_session_ends_its_processes(rest, stdio_server):
    entry, record = stdio_server('up')
    api = rest({'up': entry})
    name = api.create()['session_id']
    client = api.holdfast.client('/mcp/up')
    assert client.call('counter', headers={'Mcp-Session-Id': name}).text == '1'
    assert client.call('counter', headers={'Mcp-Session-Id': name}).text == '2'
    assert api.holdfast_links() == 1
    api.delete('/sessions/' + name)
    wait_for(lambda: api.holdfast_links() == 0, 'the link to end')


def test_mcp__sessions_of_traffic_are_seen_and_ended_by_rest(rest):
    api = rest()
    client = api.holdfast.client().connect()
    client.call('echo', {'text': 'x'})
    session, = api.get('/sessions').json()['sessions']
    assert session['origin'] == 'transport' and session['tool_execution_count'] == 1 and session['initialized'] is True
    api.patch('/sessions/' + session['session_id'], {'core_session_id': 'c'}, headers={'If-Match': '*'})
    client.call('echo', {'text': 'x'})
    assert api.session(session['session_id'])['tool_execution_count'] == 2
    assert api.delete('/sessions/' + session['session_id']).status == 200
    client.call('echo', {'text': 'x'})
    other, = api.get('/sessions').json()['sessions']
    assert other['id'] != session['id'] and api.session(session['session_id'])['tool_execution_count'] == 2


def test_mcp__the_session_of_an_http_server_is_the_core_session(rest, http_server):
    web = http_server('web')
    api = rest({'web': web.entry()})

    def call(name):
        api.holdfast.client('/mcp/web').call('counter', meta={'session_id': name})

    def issued():
        fields = [{n.lower(): v for n, v in h['headers']} for h in web.record.heads()]
        return {f['mcp-session-id'] for f in fields if 'mcp-session-id' in f}
    call('traffic')
    session, = api.get('/sessions').json()['sessions']
    core = wait_for(lambda: api.session(session['session_id']).get('core_session_id'), 'the core session')
    assert core in issued()
    api.create(session_id='made', core_session_id='said')
    call('made')
    api.create(session_id='patched')
    api.holdfast.client('/mcp/session').call('context_get', {}, meta={'session_id': 'patched'})
    api.patch('/sessions/patched', {'core_session_id': 'said'}, headers={'If-Match': '*'})
    call('patched')
    call('traffic')
    wait_for(lambda: len(issued()) >= 3, 'a session for each at the server')
    assert [api.session(n)['core_session_id'] for n in (session['session_id'], 'made', 'patched')] == [core, 'said', 'said']


def test_mcp__a_session_of_traffic_says_where_it_came_from(rest):
    api = rest()
    client = api.holdfast.client(headers={'User-Agent': 'agent/2'})
    client.initialize()
    client.call('echo', {'message': 'x'})
    session, = api.get('/sessions').json()['sessions']
    assert session['connection_metadata'] == {
        'ip_address': '127.0.0.1', 'user_agent': 'agent/2', 'protocol': 'HTTP/1.1', 'tls_version': 'none'}
