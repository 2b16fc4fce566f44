# SPDX-License-Identifier: Apache-2.0
"""Who hears that a list has changed: those who would be shown that list, by their endpoint and by their key.  One who sees
everything is the witness: what it has heard, the others would have been told in the same moment."""
import json

import pytest

import keys
from scripted import get, note, script
from test_listen import acknowledged, listen
from test_stdio import Pipe
from test_toolsets import CHANGED, disable, enable

TOOLSETS = {'of_a': {'tools': ['a__*']}, 'of_b': {'tools': ['b__*', 'm__*', 'own__*']}}
BOTH = ['of_a', 'of_b']
SETTINGS = {'toolsets': TOOLSETS, 'trusted_proxies': ['127.0.0.1'], 'profiles': {
    'a': {'servers': ['a']},
    'ta': {'toolsets': ['of_a']},
    'search': {'mode': 'search'},
    'dynamic': {'mode': 'dynamic', 'toolsets': BOTH},
    'narrow': {'toolsets': BOTH, 'clients': {'ann': {'toolsets': ['of_a']}, '*': {'toolsets': BOTH}}},
    'proxied': {'toolsets': BOTH, 'permissions': 'proxy'}}}
# In this order; the last is seen by all.
EVENTS = [('b', 'tools'), ('b', 'prompts'), ('a', 'tools'), ('a', 'resources')]
ALL = EVENTS
OF_A = EVENTS[2:]
NO_TOOLS_OF_B = EVENTS[1:]
NO_TOOLS = [EVENTS[1], EVENTS[3]]
ANN = {'mcp-client-id': 'ann'}


def changed(kind):
    return note(f'notifications/{kind}/list_changed')


@pytest.fixture
def world(holdfast, scripted):
    servers = {n: scripted(n, http=True) for n in 'ab'}
    hf = holdfast({n: s.entry for n, s in servers.items()}, SETTINGS)
    hf.servers = servers
    hf.some = keys.create(hf, '--server', 'a')
    hf.few = keys.create(hf, '--server', 'a', '--server', 'b', '--tool', 'a__script')
    return hf


def happen(hf, witness):
    """All of EVENTS, one after the other as the witness hears them."""
    for server, kind in EVENTS:
        script(hf.client(f'/mcp/{server}', modern=False).connect(), {'to_all': changed(kind)}).rest()
        assert witness()['method'] == changed(kind)['method']


def heard(read, events, who):
    for server, kind in events:
        message = read()
        assert message['method'] == changed(kind)['method'], (who, server, kind, message)


def reading(stream):
    return lambda: json.loads(stream.message())


def test_streams_and_pipes__hear_of_the_lists_that_they_would_be_shown(world):
    hf = world
    clients = {
        'everything': (hf.client('/mcp'), ALL), 'one server': (hf.client('/mcp/a'), OF_A),
        'one profile': (hf.client('/mcp/p/a'), OF_A), 'its toolsets': (hf.client('/mcp/p/ta'), OF_A),
        'search': (hf.client('/mcp/p/search'), NO_TOOLS),
        'none enabled': (hf.client('/mcp/p/dynamic'), NO_TOOLS), 'a enabled': (hf.client('/mcp/p/dynamic'), NO_TOOLS_OF_B),
        'anybody': (hf.client('/mcp/p/narrow'), ALL), 'ann': (hf.client('/mcp/p/narrow', headers=ANN), NO_TOOLS_OF_B),
        'unpermitted': (hf.client('/mcp/p/proxied'), NO_TOOLS),
        'permitted': (hf.client('/mcp/p/proxied', headers={'mcp-toolset-permissions': 'of_a'}), NO_TOOLS_OF_B),
        'some servers': (hf.some.client(hf, '/mcp'), OF_A), 'some of all in a profile': (hf.some.client(hf, '/mcp/p/narrow'), OF_A),
        'few tools': (hf.few.client(hf, '/mcp'), NO_TOOLS_OF_B)}
    streams = {}
    for name, (client, _) in clients.items():
        client.connect()
        if name == 'a enabled':
            enable(client, 'of_a')
        streams[name] = reading(get(client))
    pipes = []
    for args, events in ((('--profile', 'a'), OF_A), (('--profile', 'search'), NO_TOOLS)):
        pipe = Pipe(hf, *args, server=None).start_reading()
        pipe.initialize()
        pipes.append((args, pipe, events))
    for server in hf.servers.values():
        server.wait_time('stream')  # they are listened to
    happen(hf, streams['everything'])
    for name, (_, events) in clients.items():
        if name != 'everything':
            heard(streams[name], events, name)
    for args, pipe, events in pipes:
        heard(pipe.receive, events, args)
        assert pipe.close()[0] == 0
    disable(clients['a enabled'][0], 'of_a')
    assert streams['a enabled']() == CHANGED


def test_subscriptions__hear_of_the_lists_that_they_would_be_shown(world):
    hf, kinds = world, {'toolsListChanged': True, 'promptsListChanged': True, 'resourcesListChanged': True}
    untold = {k: v for k, v in kinds.items() if k != 'toolsListChanged'}
    clients = {
        'everything': (hf.client('/mcp', modern=True), ALL, kinds), 'one profile': (hf.client('/mcp/p/a', modern=True), OF_A, kinds),
        'search': (hf.client('/mcp/p/search', modern=True), NO_TOOLS, untold),
        'what may be enabled': (hf.client('/mcp/p/dynamic', modern=True), ALL, kinds),
        'ann': (hf.client('/mcp/p/narrow', modern=True, headers=ANN), NO_TOOLS_OF_B, kinds),
        'some servers': (hf.some.client(hf, '/mcp', modern=True), OF_A, kinds),
        'few tools': (hf.few.client(hf, '/mcp', modern=True), NO_TOOLS_OF_B, kinds)}
    streams = {}
    for name, (client, _, honoured) in clients.items():
        streams[name] = listen(client, name, **kinds)
        assert acknowledged(streams[name], name) == honoured
    happen(hf, streams['everything'].next)
    for name, (_, events, _) in clients.items():
        if name != 'everything':
            heard(streams[name].next, events, name)
        streams[name].close()
    reply = hf.client('/mcp/p/search', modern=True).rpc('subscriptions/listen', {'notifications': {'toolsListChanged': True}})
    assert reply.code == -32602 and 'Nothing of this can be listened to' in reply.error['message']


def test_servers_on_pipes__tell_a_session_of_its_own_lists_only(holdfast, scripted):
    own, modern = scripted('own'), scripted('m', era='modern')
    hf = holdfast({'own': own.entry, 'm': modern.entry}, SETTINGS | {'profiles': {k: v for k, v in SETTINGS['profiles'].items() if k != 'a'}})
    client = hf.client('/mcp/p/search').connect()
    steps = [{'send': changed(k)} for k in ('tools', 'prompts')]
    during = script(client, *steps, tool='own__script').rest()
    assert [m.get('method') for m in during] == [changed('prompts')['method'], None]
    stream = get(client)
    script(client, *steps, tool='own__script').rest()
    assert reading(stream)() == changed('prompts')
    stream.close()
    ann = hf.client('/mcp/p/narrow', modern=True, headers=ANN)
    with listen(ann, 'l', toolsListChanged=True, promptsListChanged=True) as heard_of:
        assert acknowledged(heard_of, 'l') == {'toolsListChanged': True, 'promptsListChanged': True}
        script(hf.client('/mcp/m', modern=True), *({'listen': changed(k)} for k in ('tools', 'prompts'))).rest()
        assert heard_of.next()['method'] == changed('prompts')['method']
