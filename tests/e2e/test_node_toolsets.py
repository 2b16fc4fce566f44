# SPDX-License-Identifier: Apache-2.0
"""Toolsets that a session enables and disables through one node, used through the other: within a second, heard of by Redis
or asked for."""
import json
import os
import time

import pytest

from harness import wait_for
from postgres import shared_keys
from redis_server import Redis
from scripted import get
from test_toolsets import CHANGED, META, SHAPE, disable, enable, names, refused, settings

HEARD_S = {'polling': 1.0, 'redis': 0.4}  # Redis tells at once; by itself a node asks twice a second
SLACK_S = 0.7  # what a busy machine takes to ask


@pytest.fixture(params=['polling', 'redis'])
def pair(request, holdfast, cluster, scripted):
    redis = Redis() if request.param == 'redis' else None
    if redis and not redis.is_there:
        pytest.skip('no Redis to start')
    url, made, server = cluster.database(), [], scripted('a', shape=SHAPE)
    for _ in range(2):
        env = {'DATABASE_URL': url, **({'REDIS_URL': redis.url} if redis else {})}
        if made:
            env.update(shared_keys(made[0]))
        made.append(holdfast({'a': server.entry}, settings(), env=env))
    yield made, HEARD_S[request.param] + SLACK_S
    if redis:
        redis.close()


def through(client, hf):
    """The next requests of this client go there."""
    client.holdfast = hf
    return client


def heard(stream, within):
    began = time.monotonic()
    assert json.loads(stream.message()) == CHANGED
    assert time.monotonic() - began < within


def test_what_is_enabled_on_one_is_enabled_and_disabled_on_the_other(pair):
    (a, b), within = pair
    client, other = a.client('/mcp/p/d').connect(), a.client('/mcp/p/d').connect()
    assert names(through(other, b)) == META  # its transport is resident there before it has a session
    for each in (client, other):
        enable(through(each, a), 'read')
        assert through(each, b).call('a__get_one', {'text': 'x'}).text == 'x'  # resident there from now on
    stream, silent = get(client), get(other)
    wait_for(lambda: names(client) == [*META, 'a__get_one', 'a__get_all'], 'the list')
    disable(through(client, a), 'read')
    heard(stream, within)
    assert names(through(client, b)) == META
    assert 'not enabled' in refused(client.call('a__get_one'))
    enable(through(client, a), 'write')
    heard(stream, within)
    assert through(client, b).call('a__set').result
    enable(client, 'count')  # the other way, on top of what came from there
    heard(stream, within)
    wait_for(lambda: 'a__counter' in names(through(client, a)), 'the other way', within)
    assert names(client) == [*META, 'a__counter', 'a__set']
    silent.connection.socket.settimeout(0.1)
    with pytest.raises(TimeoutError):
        silent.message()
    assert through(other, b).call('a__get_one', {'text': 'y'}).text == 'y'
    for each in (stream, silent):
        each.close()


def test_a_2026_client_is_refused_on_one_what_it_disabled_on_the_other(pair):
    (a, b), within = pair
    client = a.client('/mcp/p/d', modern=True)
    handle = client.call('enable_toolset', {'name': 'read'}).result['_meta']['holdfast/session']
    assert through(client, b).call('a__get_one', {'session_id': handle, 'text': 'x'}).text == 'x'
    disable(through(client, a), 'read', session_id=handle)
    through(client, b)
    wait_for(lambda: client.call('a__get_one', {'session_id': handle}).result.get('isError'), 'the refusal', within)
    assert 'not enabled' in refused(client.call('a__get_one', {'session_id': handle}))
