# SPDX-License-Identifier: Apache-2.0
"""Who listens before anything was called opens links that calls then go through: a session's own has the credentials that
the session stores and the values that it was told, whoever opened it."""
import json

import pytest

from rest import Rest
from scripted import get, note, script
from test_credentials import CANARY, environ_of, tokens
from test_listen import acknowledged, listen
from test_profile_context import query
from test_stdio import Pipe

CHANGED = note('notifications/tools/list_changed')
WANTED = {'notifications': {'toolsListChanged': True}}
PLACES = {'env': 'env:TOKEN', 'meta': 'meta:acme/token'}


@pytest.fixture
def world(holdfast, scripted):
    servers = {n: scripted(n, era='modern', credential={'service': 'github', 'as': p}) for n, p in PLACES.items()}
    servers['told'] = scripted('told', era='modern', env={'REGION': '${context:region:-nowhere}'})
    servers['web'] = scripted('web', http=True, era='modern', headers={'X-Region': '${context:region:-nowhere}'},
                              credential={'service': 'github', 'as': 'header:Authorization'})
    hf = holdfast({n: s.entry for n, s in servers.items()}, {'profiles': {'ctx': {'context': {'keys': ['region']}}}})
    hf.servers, hf.api = servers, Rest(hf)
    return hf


def pipe_listens(hf, server, session):
    """A pipe whose first word is a listen of that session."""
    pipe = Pipe(hf, server=server).start_reading()
    pipe.request('subscriptions/listen', {**WANTED, '_meta': {'session_id': session}}, modern=True, ident='l')
    first = pipe.receive()
    assert first['method'] == 'notifications/subscriptions/acknowledged' and first['params']['notifications'] == WANTED['notifications'], first
    return pipe


def variable(pipe, name, session, modern):
    return json.loads(pipe.call('script', modern=modern, meta={'session_id': session}, steps=[{'env': name}]))[0]


def sent_meta(server):
    return [c['params'].get('_meta', {}).get('acme/token') for c in server.calls()]


def processes_with(server, text):
    found = []
    for pid in server.starts():
        try:
            found += [pid] if text.encode() in environ_of(pid) else []
        except FileNotFoundError:
            pass
    return found


def test_pipes__a_session_that_listens_first_calls_with_its_credentials(world):
    hf = world
    one, none = hf.api.create(passthrough_auth=tokens(CANARY))['session_id'], hf.api.create()['session_id']
    pipe = pipe_listens(hf, 'env', one)
    for modern in (True, False):
        assert variable(pipe, 'TOKEN', one, modern) == CANARY
    assert len(processes_with(hf.servers['env'], CANARY)) == 1
    pipe.call('script', modern=True, meta={'session_id': one}, steps=[{'listen': CHANGED}])
    assert pipe.answer(CHANGED['method']), 'it listens where its calls go'
    other = pipe_listens(hf, 'env', none)
    assert variable(other, 'TOKEN', none, True) is None
    by_meta = pipe_listens(hf, 'meta', one)
    for modern in (True, False):
        by_meta.call('echo', modern=modern, meta={'session_id': one})
    assert sent_meta(hf.servers['meta']) == [CANARY, CANARY]
    for each in (pipe, other, by_meta):
        assert each.close()[0] == 0


def test_pipes__credentials_that_come_after_a_listen_are_those_of_later_calls(world):
    hf = world
    name = hf.api.create()['session_id']
    pipe = pipe_listens(hf, 'env', name)
    assert variable(pipe, 'TOKEN', name, True) is None
    assert hf.api.patch('/sessions/' + name, {'passthrough_auth': tokens(CANARY)}, headers={'If-Match': '*'}).status == 200
    assert pipe.answer('l')['result']['resultType'] == 'complete', 'it listened to a process that is gone'
    assert variable(pipe, 'TOKEN', name, True) == CANARY
    assert pipe.close()[0] == 0


def test_pipes__a_session_that_listens_first_calls_with_what_it_was_told(world):
    hf = world
    client = hf.client(query({'region': 'north'}), modern=True)
    assert client.call('web__echo', meta={'session_id': 'mine'}).status == 200  # begins it, elsewhere
    pipe = pipe_listens(hf, 'told', 'mine')
    for modern in (True, False):
        assert variable(pipe, 'REGION', 'mine', modern) == 'north'
    pipe.call('script', modern=True, meta={'session_id': 'mine'}, steps=[{'listen': CHANGED}])
    assert pipe.answer(CHANGED['method']), 'it listens where its calls go'
    other = pipe_listens(hf, 'told', 'nobody')
    assert variable(other, 'REGION', 'nobody', True) == 'nowhere'
    for each in (pipe, other):
        assert each.close()[0] == 0


def test_http__a_session_that_listens_first_calls_with_what_it_has(world):
    hf = world
    one = hf.api.create(passthrough_auth=tokens(CANARY))['session_id']
    for server in ('env', 'web'):
        client = hf.client('/mcp/' + server, modern=True)
        with listen(client, 'l', toolsListChanged=True) as stream:
            assert acknowledged(stream, 'l') == {'toolsListChanged': True}
            steps = [{'env': 'TOKEN'}] if server == 'env' else []
            reply = script(client, *steps, meta={'session_id': one}).rest()[-1]
            assert server != 'env' or json.loads(reply['result']['content'][0]['text']) == [CANARY]
    heads = [dict((k.lower(), v) for k, v in h['headers']) for h in hf.servers['web'].heads()]
    assert [h['authorization'] for h in heads if 'authorization' in h] == ['Bearer ' + CANARY]
    for modern in (True, False):
        client = hf.client(query({'region': 'south'}), modern=modern)
        stream = listen(client, 'l', toolsListChanged=True) if modern else get(client.connect())
        if modern:
            acknowledged(stream, 'l')
        reply = script(client, {'env': 'REGION'}, tool='told__script').rest()[-1]
        assert json.loads(reply['result']['content'][0]['text']) == ['south']
        stream.close()
