# SPDX-License-Identifier: Apache-2.0
"""The edge client's calls as it makes them: deploy/examples/edge-client.sh, line by line."""
import json
import os
import subprocess

from harness import DEADLINE_S, TOP

SCRIPT = os.path.join(TOP, 'deploy/examples/edge-client.sh')


def play(holdfast, **env):
    """(status, answer) of each line."""
    done = subprocess.run([SCRIPT], capture_output=True, timeout=DEADLINE_S * 2, check=False,
                          env={**os.environ, 'HOLDFAST_URL': f'http://127.0.0.1:{holdfast.port}', 'SESSION_ID': 'session-1-edge-1', **env})
    assert done.returncode == 0 and not done.stderr, done
    lines = [line.rsplit(' ', 1) for line in done.stdout.decode().splitlines()]
    return [(int(status), json.loads(answer)) for answer, status in lines]


def test_edge_client__its_calls_work_as_they_are(rest):
    api = rest()
    announced, opened, executed, put, appended, context, active, seen, closed = play(api.holdfast)
    assert announced == (200, {'success': True, 'tenant_id': 'default'})
    assert opened[0] == 201 and opened[1]['session_id'] == 'session-1-edge-1' and opened[1]['client_type'] == 'cli'
    assert executed == (200, {'message': 'execution recorded'})
    assert put[0] == 200 and appended[0] == 200
    assert context[0] == 200 and context[1]['context'] == {'branch': 'main', 'file': 'README.md'}
    assert active == (200, {'message': 'activity updated'})
    assert seen[0] == 200 and (seen[1]['tool_execution_count'], seen[1]['total_tokens_used']) == (1, 40)
    assert closed == (200, {'message': 'session terminated'})
    over = api.session('session-1-edge-1')
    assert (over['status'], over['termination_reason']) == ('terminated', 'client exit')


def test_edge_client__goes_on_where_sessions_are_switched_off(rest):
    api = rest(settings={'tenants': {'default': {'sessions': False}}})
    assert [status for status, _ in play(api.holdfast)] == [404] * 9
    client = api.holdfast.client()
    client.initialize()
    assert client.call('echo', {'text': 'hello'}).result
    assert api.holdfast.get('/healthz').status == 200
