# SPDX-License-Identifier: Apache-2.0
"""Credentials changed on one node: the processes that another runs with the old ones end, and its next calls
take the new ones along."""
import json
import os
import time

import pytest

from harness import Client, wait_for
from postgres import shared_keys
from redis_server import Redis
from rest import Rest
from test_credentials import tokens

HEARD_S = 5.0


@pytest.fixture(params=['polling', 'redis'])
def pair(request, holdfast, cluster, stdio_server):
    """Two nodes that share one database and their keys, with Redis or without."""
    redis = Redis() if request.param == 'redis' else None
    if redis and not redis.is_there:
        pytest.skip('no Redis to start')
    url, made = cluster.database(), []
    entry, record = stdio_server('rec', credential={'service': 'github', 'as': 'env:GITHUB_TOKEN'})
    for _ in range(2):
        env = {'DATABASE_URL': url, **({'REDIS_URL': redis.url} if redis else {})}
        if made:
            env.update(shared_keys(made[0]))
        made.append(holdfast({'rec': entry}, env=env))
    yield made, record
    if redis:
        redis.close()


def token(hf, session):
    reply = Client(hf, '/mcp/rec').call('env', {}, headers={'Mcp-Session-Id': session})
    assert reply.status == 200, reply
    return json.loads(reply.result['content'][0]['text']).get('GITHUB_TOKEN'), reply.result.get('_meta', {})


def is_alive(pid):
    return os.path.exists(f'/proc/{pid}')


def alive(record):
    return [p for p in record.starts() if is_alive(p)]


def test_a_credential_changed_on_one_node_is_used_on_the_other(pair):
    (a, b), record = pair
    here = Rest(a)
    name = here.create(passthrough_auth=tokens('old'))['session_id']
    assert token(b, name)[0] == 'old' and token(b, name)[0] == 'old'
    for auth, wanted in ((tokens('new'), 'new'), (None, None), (tokens('again'), 'again')):
        # The process that told what the server has may still be on its way out.
        wait_for(lambda: len(alive(record)) == 1, 'no process but the session\'s')
        old, = alive(record)
        began = time.monotonic()
        assert here.patch('/sessions/' + name, {'passthrough_auth': auth}, headers={'If-Match': '*'}).status == 200
        wait_for(lambda: not is_alive(old), 'the process with the old credential to end', HEARD_S)
        assert time.monotonic() - began < HEARD_S
        found, meta = token(b, name)
        assert found == wanted and meta['holdfast/state-lost']['reason'] == 'child_restarted'
        kept = alive(record)
        assert token(b, name) == (wanted, {}) and alive(record) == kept


def test_the_node_that_changed_it_ends_its_own_process_once(pair):
    (a, _), record = pair
    here = Rest(a)
    name = here.create(passthrough_auth=tokens('old'))['session_id']
    assert token(a, name)[0] == 'old'
    assert here.patch('/sessions/' + name, {'passthrough_auth': tokens('new')}, headers={'If-Match': '*'}).status == 200
    assert token(a, name)[0] == 'new'
    started = len(record.starts())
    end = time.monotonic() + 1.5  # twice as long as it takes to hear of one's own change
    while time.monotonic() < end:
        assert token(a, name) == ('new', {})
    assert len(record.starts()) == started
