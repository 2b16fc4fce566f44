# SPDX-License-Identifier: Apache-2.0
"""Two nodes on one PostgreSQL, of which one is cut off from it for a while and comes back (threats F13): limits hold
for both together, what ended meanwhile has ended, and each call is executed and recorded once."""
import sys
import threading
import time

import pytest

from harness import PEERS, wait_for
from ledger import Ledger, spooled, verify
from postgres import shared_keys
from rest import Rest

sys.path.insert(0, PEERS)
from pg_proxy import Proxy  # noqa: E402

LIMIT = 40


@pytest.fixture
def pair(holdfast, cluster, stdio_server, tmp_path):
    """Two nodes; the second reaches the database through a proxy."""
    proxy = Proxy(tmp_path / 'proxy', cluster.top)
    url = cluster.database()
    entry, record = stdio_server('up', handles='never')
    settings = {'session': {'limits': {'max_per_tenant': LIMIT}}}
    a = holdfast({'up': entry}, settings, env={'DATABASE_URL': url})
    b = holdfast({'up': entry}, settings, env={'DATABASE_URL': url.replace(cluster.top, proxy.folder), **shared_keys(a)})
    yield a, b, proxy, record
    proxy.close()


class Partition:
    """Cuts the second node off: connections break, or nothing passes any more."""

    def __init__(self, proxy, how):
        self.proxy, self.how = proxy, how

    def __enter__(self):
        self.proxy.freeze()
        if self.how == 'cut':
            self.proxy.cut_all()

    def __exit__(self, *args):
        self.proxy.thaw()
        self.proxy.cut_all()


def create_until(hf, over, made):
    rest = Rest(hf)
    while not over.is_set():
        reply = rest.post('/sessions', {'edge_mcp_id': 'e'})
        if reply.status == 201:
            made.append(reply.json()['session_id'])
        time.sleep(0.005)


def count(hf):
    return len([s for s in Rest(hf).get('/sessions?limit=200').json()['sessions'] if s['status'] == 'active'])


@pytest.mark.parametrize('how', ['cut', 'frozen'])
def test_partition__limits_hold_and_nothing_is_done_twice(pair, how):
    a, b, proxy, record = pair
    made, over = [], threading.Event()
    ledger = Ledger([a, b], record)
    ledger.start()
    wait_for(lambda: len({key.rsplit('.', 1)[0] for key in ledger.told}) == ledger.workers, 'a session of each caller')
    threads = [threading.Thread(target=create_until, args=(hf, over, made)) for hf in (a, b) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(made) > 5, 'sessions on both nodes')
    with Partition(proxy, how):
        time.sleep(3)
    wait_for(lambda: b.get('/readyz').status == 200, 'the second node to be ready again', 30)
    time.sleep(1)
    over.set()
    for thread in threads:
        thread.join(60)
    ledger.stop()
    assert len(made) == len(set(made)) <= LIMIT
    assert count(a) == count(b) <= LIMIT
    wait_for(lambda: spooled(a) == spooled(b) == 0, 'the spools to be empty')
    ledger.check(a)
    verify(a)


def test_partition__what_ended_meanwhile_has_ended_when_the_node_is_back(pair):
    a, b, proxy, _ = pair
    client = b.client('/mcp/up').connect()
    assert client.call('echo', {'text': 'before'}).status == 200
    name, = [s['session_id'] for s in Rest(a).get('/sessions').json()['sessions'] if s['status'] == 'active']
    with Partition(proxy, 'cut'):
        wait_for(lambda: client.call('echo', {'text': 'meanwhile'}).status == 503, 'the node that is cut off to refuse')
        assert Rest(a).delete(f'/sessions/{name}').status in (200, 204)
        calls = Rest(a).session(name)['tool_execution_count']
    wait_for(lambda: b.get('/readyz').status == 200, 'the second node to be ready again', 30)
    wait_for(lambda: client.call('echo', {'text': 'after'}).status in (200, 404), 'calls to be served again')
    time.sleep(1.5)  # the ends of other nodes are read once a second
    client.call('echo', {'text': 'later'})
    assert Rest(a).session(name)['status'] == 'terminated'
    assert Rest(a).session(name)['tool_execution_count'] <= calls + 1
