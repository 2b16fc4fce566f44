# SPDX-License-Identifier: Apache-2.0
"""Two Holdfast processes on one PostgreSQL: one key, sessions that both know, ends that both honour,
and each other's calls left alone while they live."""
import json
import os
import shutil
import socket
import threading
import time

import pytest

from commands import Executions, outcomes, run
from harness import LONG, wait_for
from ledger import Ledger, verify
from postgres import shared_keys
from rest import Rest

HONOURED_S = 1.0


@pytest.fixture
def nodes(holdfast, cluster, stdio_server):
    """nodes(n): that many on a database of their own, sharing the key of the first."""
    def make(n=2, settings=None, url=None):
        url = url or cluster.database()
        entry, record = stdio_server('up', handles='never')
        made = []
        for i in range(n):
            env = {'DATABASE_URL': url}
            if made:
                env.update(shared_keys(made[0]))
            made.append(holdfast({'up': entry}, settings, env=env))
        return made, record, url
    return make


def honoured(condition, what):
    """Within a second, and the moment that a busy machine takes to ask."""
    began = time.monotonic()
    wait_for(condition, what, 5)
    assert time.monotonic() - began < HONOURED_S + 0.7, f'{what} took {time.monotonic() - began:.2f} s'


def test_another_key_is_refused_and_nothing_is_written(holdfast, cluster):
    url = cluster.database()
    holdfast(env={'DATABASE_URL': url})
    other = holdfast(start=False, env={'DATABASE_URL': url})
    before = cluster.sql(url, 'SELECT count(*) FROM mcp.events')
    other.start(wait=False)
    assert other.process.wait(20) == 7
    other.readers[-1].join(20)
    assert 'HOLDFAST_AUDIT_KEY_FILE' in other.text(), other.text()
    assert cluster.sql(url, 'SELECT count(*) FROM mcp.events') == before


def refused_start(node, *words):
    node.start(wait=False)
    assert node.process.wait(20) == 7
    node.readers[-1].join(20)
    for word in words:
        assert word in node.text(), node.text()
    node.process = None


def give_keys(node, first, *files):
    os.makedirs(node.data, 0o700, exist_ok=True)
    for file in files:
        shutil.copy(os.path.join(first.data, file), os.path.join(node.data, file))


@pytest.mark.parametrize('file, name', [('audit.key', 'AUDIT'), ('master.key', 'MASTER'), ('token.key', 'TOKEN')])
def test_a_node_with_a_key_of_its_own_is_refused_and_told_which_file_to_copy(holdfast, cluster, file, name):
    url = cluster.database()
    first = holdfast(env={'DATABASE_URL': url})
    others = {variable: path for variable, path in shared_keys(first).items() if name not in variable}
    node = holdfast(start=False, env={'DATABASE_URL': url, **others})
    refused_start(node, f'{socket.gethostname()}:{os.path.join(first.data, file)}', f'HOLDFAST_{name}_KEY_FILE')
    with open(os.path.join(first.data, file), encoding='utf-8') as secret:
        assert secret.read().split()[-1] not in str(cluster.sql(url, 'SELECT * FROM mcp.idempotency'))
    give_keys(node, first, file)
    node.start()


def test_a_database_from_before_records_the_keys_of_the_first_node_that_starts(holdfast, cluster):
    url = cluster.database()
    first = holdfast(env={'DATABASE_URL': url})
    first.stop()
    cluster.sql(url, "DELETE FROM mcp.idempotency WHERE key LIKE 'key/%'")
    first.start()
    node = holdfast(start=False, env={'DATABASE_URL': url})
    give_keys(node, first, 'audit.key')
    refused_start(node, 'master.key')


@pytest.mark.parametrize('verb, file', [('rotate-master', 'master.key'), ('rotate-token', 'token.key')])
def test_a_rotated_key_is_copied_to_the_other_nodes(holdfast, cluster, verb, file):
    url = cluster.database()
    first = holdfast(env={'DATABASE_URL': url})
    node = holdfast(start=False, env={'DATABASE_URL': url})
    give_keys(node, first, 'audit.key', 'master.key', 'token.key')
    node.start()
    for one in (first, node):
        one.stop()
    for _ in range(2):
        done = run(first, 'key', verb, env={'DATABASE_URL': url})
        assert done.returncode == 0, done.stderr
    refused_start(node, f'{socket.gethostname()}:{os.path.join(first.data, file)}')
    first.start()
    give_keys(node, first, file)
    node.start()


def test_of_nodes_that_start_at_once_with_keys_of_their_own_one_wins(holdfast, cluster):
    url = cluster.database()
    made = [holdfast(start=False, env={'DATABASE_URL': url}) for _ in range(3)]
    for node in made:
        node.start(wait=False)

    def one_left():
        ready = [n for n in made if n.process.poll() is None and any(l.get('msg') == 'ready' for l in n.log())]
        ended = [n for n in made if n.process.poll() is not None]
        return len(ready) + len(ended) == 3 and (ready, ended)
    ready, ended = wait_for(one_left, 'one to run and two to end')
    assert len(ready) == 1 and [n.process.returncode for n in ended] == [7, 7]
    ready[0].wait_ready(0)


def test_a_key_file_that_is_named_must_be_there(holdfast, cluster, tmp_path):
    hf = holdfast(start=False, env={'DATABASE_URL': cluster.database(), 'HOLDFAST_AUDIT_KEY_FILE': str(tmp_path / 'missing')})
    hf.start(wait=False)
    assert hf.process.wait(20) == 7
    assert not os.path.exists(tmp_path / 'missing')


def test_verify_proves_what_all_nodes_wrote(nodes, cluster):
    (a, b), record, url = nodes()
    ledger = Ledger([a, b], record).run_for(0.5)
    assert not ledger.refused
    ledger.check(a)
    verify(a)
    verify(b, HOLDFAST_AUDIT_KEY_FILE=os.path.join(a.data, 'audit.key'))
    a.stop()
    b.stop()
    verify(a, DATABASE_URL=url)  # without a daemon
    done = run(b, 'audit', 'list', '--json', '--limit', '1000', env={'DATABASE_URL': url})
    assert {json.loads(line)['tool'] for line in done.stdout.splitlines()} == {'echo'}
    with open(os.path.join(b.data, 'audit.key'), 'w', encoding='utf-8') as file:
        file.write('0' * 64 + '\n')
    os.chmod(os.path.join(b.data, 'audit.key'), 0o600)
    done = run(b, 'audit', 'verify', env={'DATABASE_URL': url})
    assert done.returncode == 7 and 'another audit key' in done.stderr


def test_a_transport_made_on_one_goes_on_on_the_other(nodes):
    (a, b), _, _ = nodes()
    client = a.client('/mcp/up').connect()
    assert client.call('echo', {'text': 'x'}).status == 200
    client.holdfast = b
    reply = client.call('echo', {'text': 'y'})
    assert reply.status == 200 and reply.result['content'][0]['text'] == 'y'
    executions = Executions().read(b).of_tool('echo')
    assert len(executions) == 2 and len({e['session_id'] for e, _ in executions}) == 1


def test_a_session_made_on_one_is_read_changed_and_ended_on_the_other(nodes):
    (a, b), _, _ = nodes()
    here, there = Rest(a), Rest(b)
    name = here.create(client_name='one')['session_id']
    assert there.session(name)['client_name'] == 'one'
    assert there.put(f'/sessions/{name}/context', {'n': 1}).status == 200
    assert here.get(f'/sessions/{name}/context').json() == {'n': 1}
    assert there.delete(f'/sessions/{name}').status in (200, 204)
    assert here.session(name)['status'] == 'terminated'


def test_an_end_on_one_is_honoured_by_calls_on_the_other(nodes):
    (a, b), _, _ = nodes()
    client = b.client('/mcp/up').connect()
    assert client.call('echo', {'text': 'x'}).status == 200
    rest = Rest(a)
    live = [s for s in rest.get('/sessions').json()['sessions'] if s['status'] == 'active']
    assert len(live) == 1
    first = live[0]['session_id']

    def session_of_a_call():
        assert client.call('echo', {'text': 'y'}).status in (200, 404)
        return [s['session_id'] for s in Rest(b).get('/sessions').json()['sessions'] if s['status'] == 'active']
    assert session_of_a_call() == [first]  # it is resident there
    assert rest.delete(f'/sessions/{first}').status in (200, 204)
    honoured(lambda: first not in session_of_a_call() and session_of_a_call() != [], 'the end of the session')
    count = rest.session(first)['tool_execution_count']
    session_of_a_call()
    assert rest.session(first)['tool_execution_count'] == count


def test_a_key_revoked_on_one_is_refused_by_the_other(nodes):
    (a, b), _, _ = nodes()
    made = json.loads(run(a, 'key', 'create', '--name', 'x', '--json').stdout)
    headers = {'Authorization': 'Bearer ' + made['key']}

    def status(hf):
        return hf.client('/mcp/up').rpc('tools/list', {}, headers=headers).status
    assert status(a) == 200 and status(b) == 200
    assert run(a, 'key', 'revoke', made['id']).returncode == 0
    assert status(a) == 401
    honoured(lambda: status(b) == 401, 'the revocation')


def test_a_node_that_starts_leaves_the_calls_of_others_alone(nodes, holdfast):
    (a,), record, url = nodes(1)
    replies = []
    threads = [threading.Thread(target=lambda: replies.append(a.client('/mcp/up').call('slow', {'steps': 1, 'delay_ms': 1500})))
               for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(record.of('tools/call')) == 3, 'three calls under way')
    holdfast(env={'DATABASE_URL': url, **shared_keys(a)})
    for thread in threads:
        thread.join(30)
    assert [r.status for r in replies] == [200] * 3
    assert outcomes(a, 'slow') == ['ok'] * 3


def test_limits_hold_across_nodes(nodes):
    (a, b), _, url = nodes(settings={'session': {'limits': {'max_per_tenant': 100}}})
    statuses, lock = [], threading.Lock()

    def work(hf, n):
        for _ in range(n):
            status = Rest(hf).post('/sessions', {'edge_mcp_id': 'e'}).status
            with lock:
                statuses.append(status)
    threads = [threading.Thread(target=work, args=(hf, 25)) for hf in (a, b) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(set(statuses)) == [201, 429] and statuses.count(201) == 100 and len(statuses) == 200


@pytest.mark.skipif(not LONG, reason='waits for leases; in make test-long')
def test_what_a_dead_node_left_open_is_closed_by_the_other_once(nodes):
    (a, b), record, _ = nodes()
    thread = threading.Thread(target=lambda: _call_and_be_cut_off(a))
    thread.start()
    wait_for(lambda: record.of('tools/call'), 'a call under way')
    a.kill()
    thread.join(30)
    wait_for(lambda: outcomes(b, 'hang') == ['indeterminate'], 'the other node to close it', 60)
    verify(b, HOLDFAST_AUDIT_KEY_FILE=os.path.join(a.data, 'audit.key'))
    a.start()
    time.sleep(20)  # a lease and a renewal: nobody closes it again
    assert outcomes(a, 'hang') == ['indeterminate']


def _call_and_be_cut_off(hf):
    try:
        hf.client('/mcp/up').call('hang')
    except (OSError, EOFError):
        pass
