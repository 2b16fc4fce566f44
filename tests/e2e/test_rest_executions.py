# SPDX-License-Identifier: Apache-2.0
"""Executions over REST: told by a client, listed with our own, counted in the session they ran in."""
import json
import re
import threading

import pytest

from harness import wait_for
from rest import refused

UUID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')


def test_record__is_counted_at_once_and_listed_as_told(rest):
    api = rest()
    session = api.create()
    path = f'/sessions/{session["session_id"]}'
    reply = api.post(path + '/tools', {'tool_name': 'search', 'arguments': {'q': 'é', 'n': 12345678901234567890},
                                       'result': [1, {'a': None}], 'duration_ms': 17, 'tokens_used': 42})
    assert reply.status == 200 and reply.json() == {'message': 'execution recorded'}
    shown = api.session(session['session_id'])
    assert shown['tool_execution_count'] == 1 and shown['total_tokens_used'] == 42
    assert shown['last_activity_at'] >= session['last_activity_at'] and shown['status'] == 'active'
    page = api.get(path + '/tools').json()
    assert page['count'] == 1 and page['next_cursor'] is None
    one = page['executions'][0]
    assert UUID.fullmatch(one['id']) and one['session_id'] == session['id'] and one['tool_name'] == 'search'
    assert one['arguments'] == {'q': 'é', 'n': 12345678901234567890} and one['result'] == [1, {'a': None}]
    assert one['outcome'] == 'ok' and one['duration_ms'] == 17 and one['tokens_used'] == 42 and 'error' not in one
    assert 'arguments' not in api.get(path + '/tools?bodies=false').json()['executions'][0]


def test_record__a_failure_is_an_outcome(rest):
    api = rest()
    name = api.create()['session_id']
    api.post(f'/sessions/{name}/tools', {'tool_name': 't', 'error': 'no such file'})
    one = api.get(f'/sessions/{name}/tools').json()['executions'][0]
    assert one['outcome'] == 'error' and one['error'] == 'no such file' and 'result' not in one


def test_record__keeps_no_secrets(rest):
    api = rest()
    name = api.create()['session_id']
    secret = 'ghp_' + 'a1B2' * 9
    api.post(f'/sessions/{name}/tools', {'tool_name': 't', 'arguments': {'password': 'hunter2', 'x': secret},
                                         'result': {'authorization': 'Bearer abcdefgh'}, 'error': 'bad token ' + secret})
    text = json.dumps(api.get(f'/sessions/{name}/tools').json())
    for word in ('hunter2', secret, 'abcdefgh'):
        assert word not in text


def test_record__cuts_what_is_long_and_stays_json(rest):
    api = rest()
    name = api.create()['session_id']
    api.post(f'/sessions/{name}/tools', {'tool_name': 't', 'arguments': {'small': 1}, 'result': 'x' * 100000})
    one = api.get(f'/sessions/{name}/tools').json()['executions'][0]
    assert one['arguments'] == {'small': 1} and len(json.dumps(one['result'])) < 20000
    assert one['result']['holdfast/cut']['length'] == 100002


@pytest.mark.parametrize('n', [1, 2, 100])
def test_record__takes_an_array_and_counts_all_of_it(rest, n):
    api = rest()
    name = api.create()['session_id']
    reply = api.post(f'/sessions/{name}/tools', [{'tool_name': f't{i}', 'tokens_used': 1} for i in range(n)])
    assert reply.status == 200 and reply.json() == {'message': 'executions recorded', 'count': n}
    session = api.session(name)
    assert session['tool_execution_count'] == n and session['total_tokens_used'] == n


def test_record__an_array_stands_or_falls_as_one(rest):
    api = rest()
    name = api.create()['session_id']
    for bad in ([], [{'tool_name': 't'}] * 101, [{'tool_name': 't'}, {'tool_name': ''}], [{'tool_name': 't'}, 5],
                [{'tool_name': 't'}, {'tool_name': 't', 'tokens_used': -1}]):
        refused(api.post(f'/sessions/{name}/tools', bad), 400, 'bad_input')
    assert api.session(name)['tool_execution_count'] == 0


@pytest.mark.parametrize('body', [
    {}, {'tool_name': ''}, {'tool_name': 'x' * 256}, {'tool_name': 5}, {'tool_name': 't', 'duration_ms': -1},
    {'tool_name': 't', 'tokens_used': -5}, {'tool_name': 't', 'tokens_used': 1.5}, {'tool_name': 't', 'duration_ms': '5'},
    {'tool_name': 't', 'tool_id': 'nope'}, {'tool_name': 't', 'error': {}}])
def test_record__refuses_what_makes_no_sense(rest, body):
    api = rest()
    name = api.create()['session_id']
    refused(api.post(f'/sessions/{name}/tools', body), 400, 'bad_input')
    assert api.session(name)['tool_execution_count'] == 0


def test_record__an_unknown_tool_id_is_refused(rest):
    api = rest()
    name = api.create()['session_id']
    refused(api.post(f'/sessions/{name}/tools', {'tool_name': 't', 'tool_id': '01a1dfe0-6fbb-7000-b849-e51ac02e5f37'}),
            400, 'unknown_tool')


def test_record__on_a_session_that_is_over_is_409_and_on_none_404(rest):
    api = rest()
    name = api.create()['session_id']
    api.post(f'/sessions/{name}/tools', {'tool_name': 't'})
    api.delete('/sessions/' + name)
    refused(api.post(f'/sessions/{name}/tools', {'tool_name': 't'}), 409, 'session_not_active', 'session is not active')
    assert api.get(f'/sessions/{name}/tools').json()['count'] == 1
    assert api.session(name)['tool_execution_count'] == 1
    refused(api.post('/sessions/nope/tools', {'tool_name': 't'}), 404, 'session_not_found', 'session not found')
    refused(api.get('/sessions/nope/tools'), 404, 'session_not_found')


def test_record__is_in_the_audit_chain(rest):
    from commands import run
    api = rest()
    name = api.create()['session_id']
    api.post(f'/sessions/{name}/tools', [{'tool_name': 't', 'arguments': {'a': i}} for i in range(5)])
    verdict = run(api.holdfast, 'audit', 'verify')
    assert verdict.returncode == 0, verdict


def test_list__pages_back_through_time(rest):
    api = rest()
    name = api.create()['session_id']
    for start in range(0, 250, 50):
        api.post(f'/sessions/{name}/tools', [{'tool_name': f't{start + i}'} for i in range(50)])
    seen, path = [], f'/sessions/{name}/tools?limit=100'
    while path:
        reply = api.get(path)
        seen += [e['tool_name'] for e in reply.json()['executions']]
        link = reply.header('link')
        path = re.fullmatch(r'</api/v1([^>]*)>; rel="next"', link).group(1) if link else None
    assert seen == [f't{i}' for i in range(249, -1, -1)]
    cursor = api.get(f'/sessions/{name}/tools?limit=1').json()['next_cursor']
    other = api.create()['session_id']
    refused(api.get(f'/sessions/{other}/tools?cursor={cursor}'), 400, 'bad_cursor')


def test_alias__records_by_the_session_in_the_body(rest):
    api = rest()
    name = api.create(session_id='session-1700000000-edge')['session_id']
    reply = api.post('/executions', {'session_id': name, 'tool_name': 'grep', 'duration_ms': 3, 'edge_mcp_id': 'x', 'success': True})
    assert reply.status == 200 and reply.json() == {'message': 'execution recorded'}
    assert api.session(name)['tool_execution_count'] == 1
    refused(api.post('/executions', {'session_id': 'nope', 'tool_name': 'grep'}), 404, 'session_not_found')
    refused(api.post('/executions', {'tool_name': 'grep'}), 400, 'bad_input')


def test_record__many_at_once_lose_nothing(rest):
    api = rest()
    name = api.create()['session_id']
    failed = []

    def work():
        with api.holdfast.connection() as connection:
            for _ in range(25):
                reply = connection.request('POST', f'/api/v1/sessions/{name}/tools', {}, b'{"tool_name":"t","tokens_used":2}')
                if reply.status != 200:
                    failed.append(reply)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    session = api.session(name)
    assert not failed and session['tool_execution_count'] == 200 and session['total_tokens_used'] == 400


def test_record__survives_kill_9(rest):
    api = rest(settings={'session': {'cleanup': {'interval': '1s'}}})
    name = api.create()['session_id']
    for _ in range(3):
        assert api.post(f'/sessions/{name}/tools', {'tool_name': 't'}).status == 200
    api.holdfast.restart()
    # Where others share the store, what the dead process had not counted is counted when its lease lapses.
    wait_for(lambda: api.session(name)['tool_execution_count'] == 3, 'the counters', timeout=30)
    assert api.get(f'/sessions/{name}/tools').json()['count'] == 3
