# SPDX-License-Identifier: Apache-2.0
"""Idempotency-Key: the same request has one effect and one answer, however often and whenever it comes."""
import threading

import pytest

from rest import refused


def key(value):
    return {'Idempotency-Key': value}


def test_create__twice_is_one_session_and_one_answer(rest):
    api = rest()
    body = {'edge_mcp_id': 'e', 'metadata': {'a': 1}}
    first = api.post('/sessions', body, headers=key('k1'))
    again = api.post('/sessions', body, headers=key('k1'))
    assert first.status == again.status == 201 and first.body == again.body
    assert first.header('location') == again.header('location') and first.header('etag') == again.header('etag')
    assert first.header('idempotency-replayed') is None and again.header('idempotency-replayed') == 'true'
    assert first.header('x-request-id') != again.header('x-request-id')
    assert api.get('/sessions').json()['count'] == 1
    assert api.post('/sessions', body, headers=key('k2')).json()['id'] != first.json()['id']


def test_key__with_another_body_or_path_is_422(rest):
    api = rest()
    api.post('/sessions', {'edge_mcp_id': 'e'}, headers=key('k'))
    refused(api.post('/sessions', {'edge_mcp_id': 'f'}, headers=key('k')), 422, 'idempotency_mismatch')
    refused(api.post('/executions', {'session_id': 's', 'tool_name': 't'}, headers=key('k')), 422, 'idempotency_mismatch')


@pytest.mark.parametrize('value, status', [('x' * 255, 201), ('x' * 256, 400), ('', 400)])
def test_key__is_1_to_255_long(rest, value, status):
    assert rest().post('/sessions', {'edge_mcp_id': 'e'}, headers=key(value)).status == status


def test_key__of_a_refusal_is_free_again(rest):
    api = rest()
    refused(api.post('/sessions', {'edge_mcp_id': ''}, headers=key('k')), 400, 'bad_input')
    assert api.post('/sessions', {'edge_mcp_id': 'e'}, headers=key('k')).status == 201
    refused(api.post('/sessions/nope/activity', headers=key('a')), 404, 'session_not_found')
    refused(api.post('/sessions/nope/activity', headers=key('a')), 404, 'session_not_found')


def test_every_post__has_one_effect(rest):
    api = rest()
    name = api.create()['session_id']
    for path, body in ((f'/sessions/{name}/tools', {'tool_name': 't'}), (f'/sessions/{name}/tools', [{'tool_name': 't'}] * 3),
                       ('/executions', {'session_id': name, 'tool_name': 't'}), (f'/sessions/{name}/activity', None),
                       (f'/sessions/{name}/refresh', {'ttl': 60})):
        first, again = (api.post(path, body, headers=key(f'{path} {body}')) for _ in range(2))
        assert first.status == again.status == 200 and first.body == again.body, (first, again)
        assert again.header('idempotency-replayed') == 'true'
    assert api.session(name)['tool_execution_count'] == 5


def test_create__many_at_once_is_one_session(rest):
    api = rest()
    replies = []

    def work():
        replies.append(api.post('/sessions', {'edge_mcp_id': 'e'}, headers=key('same')))
    threads = [threading.Thread(target=work) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {r.status for r in replies} <= {201, 409}
    assert len({r.body for r in replies if r.status == 201}) == 1
    for reply in replies:
        if reply.status == 409:
            refused(reply, 409, 'idempotency_in_flight')
    assert api.get('/sessions').json()['count'] == 1


def test_answer__is_kept_through_kill_9(rest):
    api = rest()
    name = api.create()['session_id']
    first = api.post(f'/sessions/{name}/tools', {'tool_name': 't'}, headers=key('k'))
    made = api.post('/sessions', {'edge_mcp_id': 'e'}, headers=key('m'))
    api.holdfast.restart()
    again = api.post(f'/sessions/{name}/tools', {'tool_name': 't'}, headers=key('k'))
    assert again.body == first.body and again.header('idempotency-replayed') == 'true'
    assert api.post('/sessions', {'edge_mcp_id': 'e'}, headers=key('m')).body == made.body
    assert api.get('/sessions').json()['count'] == 2
