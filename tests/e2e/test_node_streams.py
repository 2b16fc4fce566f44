# SPDX-License-Identifier: Apache-2.0
"""Streams on one node when what they rest on ends on the other: within a second, heard of by Redis or asked for."""
import os
import threading
import time

import pytest

import keys
from harness import wait_for
from postgres import shared_keys
from redis_server import Redis
from rest import Rest
from test_auth import read_to_end, standing

ENDED_S = 1.0
SLACK_S = 0.7  # what a busy machine takes to ask


@pytest.fixture(params=['polling', 'redis'])
def pair(request, holdfast, cluster, stdio_server):
    redis = Redis() if request.param == 'redis' else None
    if redis and not redis.is_there:
        pytest.skip('no Redis to start')
    url, made = cluster.database(), []
    entry, record = stdio_server('up', handles='never')
    for _ in range(2):
        env = {'DATABASE_URL': url, **({'REDIS_URL': redis.url} if redis else {})}
        if made:
            env.update(shared_keys(made[0]))
        made.append(holdfast({'up': entry}, {'auth': 'required'}, env=env))
    yield made, record
    if redis:
        redis.close()


def ends_with(stream, act):
    """How long after it the stream ended."""
    ended = []
    reader = threading.Thread(target=lambda: ended.append(read_to_end(stream)))
    reader.start()
    act()
    done = time.monotonic()
    reader.join(10)
    assert ended, 'the stream is still open'
    return ended[0] - done


def stays_open(stream):
    stream.connection.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        while stream.event() is not None:
            pass


def test_a_key_revoked_on_one_ends_streams_on_the_other(pair):
    (a, b), _ = pair
    key, other = keys.create(a), keys.create(a)
    kept = standing(b, other.client(b, '/mcp/up').connect(), other)
    stream = standing(b, key.client(b, '/mcp/up').connect(), key)
    assert ends_with(stream, lambda: keys.revoke(a, key)) < ENDED_S + SLACK_S
    stays_open(kept)  # nobody else's


def test_a_transport_ended_on_one_ends_its_stream_on_the_other(pair):
    (a, b), _ = pair
    key = keys.create(a)
    client, stays = key.client(b, '/mcp/up').connect(), key.client(b, '/mcp/up').connect()
    kept, stream = standing(b, stays, key), standing(b, client, key)
    client.holdfast = a  # the next request of this client goes there
    assert ends_with(stream, lambda: client.delete().status == 204 or pytest.fail('DELETE')) < ENDED_S + SLACK_S
    client.holdfast = b
    assert client.call('echo', {'text': 'x'}).status == 404
    stays_open(kept)
    assert stays.call('echo', {'text': 'x'}).status == 200


def test_a_session_ended_on_one_ends_its_process_on_the_other(pair):
    (a, b), record = pair
    key = keys.create(a, '--role', 'admin')
    here = Rest(a, key.headers)
    name = here.create(client_name='x')['session_id']
    assert key.client(b, '/mcp/up').call('echo', {'text': 'x'}, headers={'Mcp-Session-Id': name}).status == 200
    child = record.starts()[-1]
    assert here.delete(f'/sessions/{name}').status in (200, 204)
    done = time.monotonic()
    wait_for(lambda: not os.path.exists(f'/proc/{child}'), 'its process to end', 10)
    assert time.monotonic() - done < ENDED_S + SLACK_S
