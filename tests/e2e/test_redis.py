# SPDX-License-Identifier: Apache-2.0
"""Nodes on one PostgreSQL and one Redis: what one has read another need not, what one ended no other
brings back, and without Redis all of it goes on."""
import json
import os
import re
import time

import pytest

from commands import run
from harness import LONG, wait_for
from ledger import Ledger
from postgres import shared_keys
from redis_server import Redis
from rest import Rest

LOAD_S = 3.0 if LONG else 0.4


@pytest.fixture
def redis():
    server = Redis()
    if not server.is_there:
        pytest.skip('no Redis to start')
    yield server
    server.close()


@pytest.fixture
def nodes(holdfast, cluster, redis, stdio_server):
    """nodes(n): that many on one database and one Redis."""
    def make(n=2, settings=None):
        url = cluster.database()
        entry, make.record = stdio_server('up', handles='never')
        made = []
        for _ in range(n):
            env = {'DATABASE_URL': url, 'REDIS_URL': redis.url}
            if made:
                env.update(shared_keys(made[0]))
            made.append(holdfast({'up': entry}, settings, env=env))
        return made
    return make


def counter(hf, name):
    found = re.search(rf'^holdfast_cache_{name}_total (\d+)', hf.get('/metrics').body.decode(), re.M)
    return int(found[1]) if found else 0


def test_a_session_made_on_one_is_read_used_and_ended_on_the_other(nodes, redis):
    a, b = nodes()
    here, there = Rest(a), Rest(b)
    name = here.create(client_name='one')['session_id']
    for _ in range(4):
        assert there.session(name)['client_name'] == 'one'
        assert here.session(name)['client_name'] == 'one'
    assert counter(a, 'hits') + counter(b, 'hits') > 0
    assert there.put(f'/sessions/{name}/context', {'n': 1}).status == 200
    assert here.get(f'/sessions/{name}/context').json() == {'n': 1}
    assert there.delete(f'/sessions/{name}').status in (200, 204)
    for _ in range(3):
        assert here.session(name)['status'] == 'terminated'
        assert there.session(name)['status'] == 'terminated'
    assert b'session:epoch' in redis.say('KEYS', '*')


def seconds_until_refused(a, b):
    """How long a key that is revoked on one node still opens the other."""
    made = json.loads(run(a, 'key', 'create', '--name', 'x', '--json').stdout)
    client, headers = b.client('/mcp/up'), {'Authorization': 'Bearer ' + made['key']}
    assert client.rpc('tools/list', {}, headers=headers).status == 200
    assert run(a, 'key', 'revoke', made['id']).returncode == 0
    began = time.monotonic()
    wait_for(lambda: client.rpc('tools/list', {}, headers=headers).status == 401, 'the revocation', 5)
    return time.monotonic() - began


def test_what_one_revokes_another_hears_at_once_and_without_redis_soon(nodes, redis):
    """The median of some: by asking twice a second alone it would be a quarter of a second."""
    a, b = nodes()
    took = sorted(seconds_until_refused(a, b) for _ in range(7))
    assert took[3] < 0.1, took
    redis.order('kill')
    assert seconds_until_refused(a, b) < 5


def troubles(redis):
    """How each begins, and how it ends."""
    return {
        'kill': (lambda: redis.order('kill'), lambda: redis.order('start')),
        'stop': (lambda: redis.order('stop'), lambda: redis.order('cont')),
        'flush': (lambda: redis.say('FLUSHALL'), lambda: None),
        'memory': (lambda: redis.say('CONFIG', 'SET', 'maxmemory', '1mb'), lambda: redis.say('CONFIG', 'SET', 'maxmemory', '0')),
    }


@pytest.mark.parametrize('trouble', ['kill', 'stop', 'flush', 'memory'])
def test_in_trouble_nothing_fails_and_nothing_ended_comes_back(nodes, redis, trouble):
    a, b = nodes()
    here, there = Rest(a), Rest(b)
    names = [here.create(client_name='x')['session_id'] for _ in range(6)]
    for name in names * 2:
        assert there.session(name)['status'] == 'active'
    begin, end = troubles(redis)[trouble]
    begin()
    for name in names[:3]:
        assert here.delete(f'/sessions/{name}').status in (200, 204)
        assert here.session(name)['status'] == 'terminated'
    assert [there.session(name)['status'] for name in names[3:]] == ['active'] * 3
    end()
    wait_for(lambda: all(there.session(name)['status'] == 'terminated' for name in names[:3]), 'the ends', 5)
    before = counter(b, 'hits')
    wait_for(lambda: there.session(names[3]) and counter(b, 'hits') > before, 'the cache to be used again', 20)
    for name in names[:3]:
        assert here.session(name)['status'] == 'terminated' and there.session(name)['status'] == 'terminated'
    assert here.delete(f'/sessions/{names[4]}').status in (200, 204)
    assert there.session(names[4])['status'] == 'terminated'


def test_under_load_no_trouble_of_redis_costs_a_call(nodes, redis):
    """Clients that keep an account, on both nodes, while Redis is killed, stopped, flushed and full."""
    made = nodes()
    ledger = Ledger(made, nodes.record).start()
    for begin, end in troubles(redis).values():
        time.sleep(LOAD_S)
        begin()
        time.sleep(LOAD_S)
        end()
    ledger.stop()
    assert not ledger.problems, ledger.problems
    assert not ledger.refused and not ledger.unknown, (ledger.refused, ledger.unknown)
    assert len(ledger.told) > 50
    ledger.check(made[0])


def test_a_password_is_shown_to_nobody(holdfast, cluster):
    hf = holdfast(start=False, env={'REDIS_URL': 'redis://canary@host'})
    done = run(hf, 'up', env={'REDIS_URL': 'redis://canary@host'})
    assert done.returncode == 7
    assert 'REDIS_URL' in done.stderr and 'canary' not in done.stderr
    hf = holdfast(env={'DATABASE_URL': cluster.database(), 'REDIS_URL': 'redis://:canary@127.0.0.1:1/0'})
    rest = Rest(hf)
    assert rest.create(client_name='x')['status'] == 'active'
    assert '127.0.0.1:1' in str(hf.log()) and 'canary' not in str(hf.log())


def test_without_postgresql_it_says_that_it_is_of_little_use(holdfast, redis):
    hf = holdfast(env={'REDIS_URL': redis.url})
    rest = Rest(hf)
    name = rest.create(client_name='x')['session_id']
    assert rest.session(name)['status'] == 'active'
    assert rest.delete(f'/sessions/{name}').status in (200, 204)
    assert rest.session(name)['status'] == 'terminated'
    assert 'has little use' in str(hf.log())
