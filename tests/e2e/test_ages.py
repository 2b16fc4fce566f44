# SPDX-License-Identifier: Apache-2.0
"""Rows that are deleted after a time of their own: ended sessions, and results that no client received."""
import pytest

from harness import wait_for
from rest import Rest, refused
from test_limits import Slept
from test_undelivered import Call, connect, is_redelivered, result_of, server  # noqa: F401  (a fixture)

DAY = 86400


@pytest.fixture
def slept(tmp_path):
    return Slept(tmp_path)


def new_session(api):
    reply = api.post('/sessions', {'edge_mcp_id': 'edge-1'})
    assert reply.status == 201
    return reply.json()['session_id']


def test_ended_session__is_deleted_after_its_time_with_context_and_stays_in_the_record(holdfast, slept, database):
    hf = holdfast(settings={'session': {'cleanup': {'interval': '100ms', 'keep': '2d'}}}, env={**slept.env, **database})
    api = Rest(hf)
    ended, live = new_session(api), new_session(api)
    assert api.put(f'/sessions/{ended}/context', {'a': 1}, headers={'If-None-Match': '*'}).status in (200, 201)
    assert api.post(f'/sessions/{ended}/tools', {'tool_name': 'lint'}).status == 200
    assert api.delete(f'/sessions/{ended}').status in (200, 204)
    slept.set(2 * DAY - 60)
    hf.restart(kill=False)
    assert api.get(f'/sessions/{ended}').json()['status'] == 'terminated'
    slept.set(2 * DAY + 60)
    wait_for(lambda: api.get(f'/sessions/{ended}').status == 404, 'the ended session to be deleted')
    refused(api.get(f'/sessions/{ended}/context'), 404, 'session_not_found')
    hf.wait_log(lambda l: l.get('msg') == 'Deleted sessions that had ended', 'the deletion to be logged')
    found = api.get('/audit/executions?limit=10').json()['executions']
    assert [e['tool'] for e in found if e.get('tool')] == ['lint'], found
    assert api.get(f'/sessions/{live}').json()['status'] == 'expired'  # after 24 h; its time begins there


def test_undelivered__results_are_stored_as_long_as_configured(holdfast, slept, server):  # noqa: F811
    hf = holdfast({'srv': server.entry}, {'session': {'cleanup': {'undelivered': '60s'}}}, env=slept.env)
    client = connect(hf)
    call = Call(server, result_of('one'))
    call.lose(client)
    slept.set(50)
    hf.restart(kill=False)
    assert is_redelivered(call.ask(client))
    call = Call(server, result_of('two'))
    call.lose(client)
    slept.set(50 + 61)
    hf.restart(kill=False)
    assert not is_redelivered(call.ask(client))
