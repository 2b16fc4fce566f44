# SPDX-License-Identifier: Apache-2.0
"""subscriptions/listen of modern clients, before modern and legacy servers, and what becomes of modern calls
whose client leaves: the server's own clock says what reached it in which order."""
import resource
import signal
import time

import pytest

import harness
import keys
from commands import events
from harness import PREFIX, wait_for
from scripted import Later, Script, get, note, open_gate, script

TAG = PREFIX + 'subscriptionId'
EVERYTHING = {'toolsListChanged': True, 'promptsListChanged': True, 'resourcesListChanged': True}
URIS = {'resources': [{'uri': f'doc://{n}', 'name': n} for n in 'abc']}
BOTH = pytest.mark.parametrize('http', [False, True], ids=['stdio', 'http'])


def listen(client, ident=None, **wanted):
    return Later(client, 'subscriptions/listen', {'notifications': wanted}, ident)


def acknowledged(stream, ident):
    """The first message of a listen: what is honoured."""
    assert stream.stream.is_sse and stream.stream.status == 200
    first = stream.next()
    assert first['method'] == 'notifications/subscriptions/acknowledged'
    assert first['params']['_meta'] == {TAG: ident} and type(first['params']['_meta'][TAG]) is type(ident)
    return first['params']['notifications']


def tagged(method, ident, **params):
    return {'jsonrpc': '2.0', 'method': method, 'params': {**params, '_meta': {TAG: ident}}}


def updated(uri):
    return note('notifications/resources/updated', uri=uri)


@pytest.mark.parametrize('path', ['/mcp/new', '/mcp'])
def test_listen__acknowledges_what_it_honours_and_says_only_that(holdfast, scripted, path):
    server = scripted('new', http=True, era='modern', shape={**URIS, 'honours': {**EVERYTHING, 'resourceSubscriptions': ['doc://a', 'doc://b']}})
    hf = holdfast({'new': server.entry})
    client = hf.client(path, modern=True)
    tool = 'script' if path != '/mcp' else 'new__script'
    for round_, ident in enumerate((41, 'forty-one', 0), 1):
        with listen(client, ident, toolsListChanged=True, resourceSubscriptions=['doc://a', 'doc://c']) as stream:
            assert acknowledged(stream, ident) == {'toolsListChanged': True, 'resourceSubscriptions': ['doc://a']}
            wait_for(lambda: sum('toolsListChanged' in t['wanted'] for t in server.times('listen')) and len(server.times('listen')) >= 2,
                     'the watch and the subscription')
            script(client, {'listen_all': updated('doc://b')}, {'listen_all': note('notifications/prompts/list_changed')},
                   {'listen_all': note('notifications/resources/list_changed')}, {'listen_all': updated('doc://c')},
                   {'listen_all': note('notifications/message', level='info', data='x')}, {'listen': updated('doc://a')}, tool=tool).rest()
            assert stream.next() == tagged('notifications/resources/updated', ident, uri='doc://a')
            script(client, {'listen': note('notifications/tools/list_changed')}, {'listen': updated('doc://a')}, tool=tool).rest()
            both = [stream.next(), stream.next()]
            assert sorted(m['method'] for m in both) == ['notifications/resources/updated', 'notifications/tools/list_changed']
            assert all(m['params']['_meta'] == {TAG: ident} for m in both)
        server.wait_time('listen closed', round_)


@BOTH
def test_listen__of_many_clients_each_hears_its_own(holdfast, scripted, http):
    server = scripted('new', http=http, era='modern', shape=URIS)
    hf = holdfast({'new': server.entry})
    client = hf.client('/mcp/new', modern=True)
    with listen(client, 'a', resourceSubscriptions=['doc://a']) as a, listen(client, 'b', resourceSubscriptions=['doc://b', 'doc://a']) as b:
        assert acknowledged(a, 'a') == {'resourceSubscriptions': ['doc://a']}
        assert acknowledged(b, 'b') == {'resourceSubscriptions': ['doc://b', 'doc://a']}
        script(client, {'listen': updated('doc://b')}, {'listen': updated('doc://a')}).rest()
        assert a.next() == tagged('notifications/resources/updated', 'a', uri='doc://a')
        assert b.next() == tagged('notifications/resources/updated', 'b', uri='doc://b')
        assert b.next() == tagged('notifications/resources/updated', 'b', uri='doc://a')
        a.close()
        server.wait_time('listen closed')
        assert len(server.times('listen closed')) == 1
        script(client, {'listen': updated('doc://a')}).rest()
        assert b.next() == tagged('notifications/resources/updated', 'b', uri='doc://a')


@BOTH
def test_listen__that_the_server_ends_ends_with_a_result(holdfast, scripted, http):
    server = scripted('new', http=http, era='modern', shape=URIS)
    hf = holdfast({'new': server.entry})
    client = hf.client('/mcp/new', modern=True)
    with listen(client, 7, resourceSubscriptions=['doc://a']) as stream:
        acknowledged(stream, 7)
        script(client, {'end_listens': 1}).rest()
        assert stream.next() == {'jsonrpc': '2.0', 'id': 7, 'result': {'resultType': 'complete', '_meta': {TAG: 7}}}
        assert stream.next() is None


def test_list_changes__of_a_server_on_a_pipe_are_heard(holdfast, scripted):
    server = scripted('new', era='modern')
    hf = holdfast({'new': server.entry})
    client = hf.client('/mcp/new', modern=True)
    with listen(client, 'l', **EVERYTHING) as stream:
        assert acknowledged(stream, 'l') == EVERYTHING
        for kind in ('prompts', 'tools', 'resources'):
            script(client, {'listen': note(f'notifications/{kind}/list_changed')}).rest()
            assert stream.next() == tagged(f'notifications/{kind}/list_changed', 'l')


def test_listen__before_a_legacy_server_hears_changed_lists_over_http(holdfast, scripted):
    server = scripted('old', http=True, shape=URIS)
    hf = holdfast({'old': server.entry})
    client = hf.client('/mcp/old', modern=True)
    with listen(client, 3, **EVERYTHING, resourceSubscriptions=['doc://a']) as stream:
        assert acknowledged(stream, 3) == EVERYTHING
        server.wait_time('stream')
        script(client, {'to_all': note('notifications/prompts/list_changed')}).rest()
        assert stream.next() == tagged('notifications/prompts/list_changed', 3)
    silent = scripted('mute', http=True, shape={'capabilities': {'tools': {}, 'prompts': {'listChanged': True}}})
    other = holdfast({'mute': silent.entry})
    with listen(other.client('/mcp/mute', modern=True), 4, **EVERYTHING) as stream:
        assert acknowledged(stream, 4) == {'promptsListChanged': True}


def test_listen__to_nothing_that_can_be_honoured_is_refused_in_words(holdfast, scripted):
    web, pipe = scripted('web', http=True, shape=URIS), scripted('pipe', shape=URIS)
    hf = holdfast({'web': web.entry, 'pipe': pipe.entry})
    for path in ('/mcp/web', '/mcp/pipe', '/mcp'):
        reply = hf.client(path, modern=True).rpc('subscriptions/listen', {'notifications': {'resourceSubscriptions': ['doc://a']}})
        assert reply.status == 200 and reply.code == -32602 and 'older protocol version' in reply.error['message']
    client = hf.client('/mcp/web', modern=True)
    for params in ({}, {'notifications': None}, {'notifications': []}, {'notifications': 'tools'}):
        reply = client.rpc('subscriptions/listen', params)
        assert reply.status == 200 and reply.code == -32602 and 'params.notifications' in reply.error['message']
    with listen(client, 'nothing') as stream:
        assert acknowledged(stream, 'nothing') == {}


@BOTH
def test_listen__that_no_server_acknowledges_is_refused_in_words(holdfast, scripted, http):
    server = scripted('new', http=http, era='modern', shape={**URIS, 'honours': {}})
    hf = holdfast({'new': server.entry})
    reply = hf.client('/mcp/new', modern=True).rpc('subscriptions/listen', {'notifications': {'resourceSubscriptions': ['doc://a']}})
    assert reply.status == 200 and reply.code == -32603 and 'acknowledged nothing' in reply.error['message']
    server.wait_time('listen closed')


def test_listen__at_a_server_that_never_acknowledges_goes_without_it(holdfast, scripted):
    mute = scripted('mute', http=True, era='modern', shape={**URIS, 'acks': False})
    good = scripted('good', http=True, era='modern', shape={'resources': [{'uri': 'good://1', 'name': 'g'}]})
    hf = holdfast({'mute': mute.entry, 'good': good.entry})
    client = hf.client('/mcp', modern=True)
    with listen(client, 5, toolsListChanged=True, resourceSubscriptions=['doc://a', 'good://1', 'nobody://x']) as stream:
        good.wait_time('listen', 2)  # what changes from now on is heard, once the other one has been waited for
        script(client, {'listen': updated('good://1')}, {'listen': note('notifications/tools/list_changed')}, tool='good__script').rest()
        assert acknowledged(stream, 5) == {'toolsListChanged': True, 'resourceSubscriptions': ['good://1']}
        missed = sorted([stream.next(), stream.next()], key=lambda m: m['method'])
        assert missed == [tagged('notifications/resources/updated', 5, uri='good://1'), tagged('notifications/tools/list_changed', 5)]
        mute.wait_time('listen closed')
        script(client, {'listen': updated('good://1')}, tool='good__script').rest()
        assert stream.next() == tagged('notifications/resources/updated', 5, uri='good://1')


def test_subscribed_uris__are_256_at_most(holdfast, scripted):
    server = scripted('new', http=True, era='modern', shape=URIS)
    hf = holdfast({'new': server.entry})
    for count in (256, 257):
        with listen(hf.client('/mcp/new', modern=True), 1, resourceSubscriptions=[f'doc://{n}' for n in range(count)]) as stream:
            assert acknowledged(stream, 1)['resourceSubscriptions'] == [f'doc://{n}' for n in range(256)]


def test_open_listens__are_1024_a_quarter_of_one_key_and_three_of_a_tenant(holdfast, scripted):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(4096, hard)), hard))
    server = scripted('s', http=True)
    hf = holdfast({'s': server.entry}, {'auth': 'required'})
    of_one_tenant = [keys.create(hf) for _ in range(4)]
    other, last = keys.create(hf, '--tenant', 'acme'), keys.create(hf, '--tenant', 'last')
    open_ones, clients = [], {key.id: hf.client('/mcp/s', modern=True, headers=key.headers) for key in (*of_one_tenant, other, last)}

    def take_256(key):
        more = [listen(clients[key.id], n) for n in range(256)]
        for n, one in enumerate(more):
            assert acknowledged(one, n) == {}
        open_ones.extend(more)

    def is_refused(key, words):
        refused = clients[key.id].rpc('subscriptions/listen', {'notifications': {}})
        assert refused.status == 200 and refused.code == -32603 and words in refused.error['message'], refused

    for key in of_one_tenant[:3]:
        take_256(key)
        is_refused(key, '256 subscriptions are open for this key or user')
    is_refused(of_one_tenant[3], '768 subscriptions are open for this tenant')
    take_256(other)
    is_refused(last, '1024 subscriptions are open already')
    open_ones.pop().close()
    wait_for(lambda: is_taken(clients[other.id]), 'a free place')
    for one in open_ones:
        one.close()


def is_taken(client):
    with listen(client, 'one more') as one:
        return one.next().get('method') == 'notifications/subscriptions/acknowledged'


def test_sigterm__ends_listens_with_a_result(holdfast, scripted):
    server = scripted('new', http=True, era='modern', shape=URIS)
    hf = holdfast({'new': server.entry})
    client = hf.client('/mcp/new', modern=True)
    with listen(client, 'x', toolsListChanged=True) as lists, listen(client, 8, resourceSubscriptions=['doc://a']) as uris:
        acknowledged(lists, 'x')
        acknowledged(uris, 8)
        standalone = get(hf.client('/mcp/new').connect())
        assert standalone.event()
        hf.stop()
        for stream, ident in ((lists, 'x'), (uris, 8)):
            assert stream.next() == {'jsonrpc': '2.0', 'id': ident, 'result': {'resultType': 'complete', '_meta': {TAG: ident}}}
            assert stream.next() is None
        assert standalone.event() is None


def test_reloads__that_replace_a_server_leave_the_listens_before_it_alone(holdfast, scripted):
    old, other = scripted('old', http=True), scripted('other', http=True)
    hf = holdfast({'old': old.entry, 'other': other.entry})
    client = hf.client('/mcp', modern=True)
    with listen(client, 'l', **EVERYTHING) as stream:
        assert acknowledged(stream, 'l') == EVERYTHING
        for timeout in (31, 32, 33):
            hf.write_config({'mcpServers': {'old': {**old.entry, 'timeout': timeout}, 'other': other.entry}, 'holdfast': {}})
            since = len(hf.log())
            hf.process.send_signal(signal.SIGHUP)
            hf.wait_log(lambda l: 'reload' in l.get('msg', ''), 'the reload', since)
        other.wait_time('stream')
        script(client, {'to_all': note('notifications/prompts/list_changed')}, tool='other__script').rest()
        assert stream.next() == tagged('notifications/prompts/list_changed', 'l')
    hf.check()


# -- a modern client that leaves has cancelled

@pytest.fixture(scope='module')
def world(tmp_path_factory):
    """One Holdfast before a server of each kind."""
    folder = tmp_path_factory.mktemp('leaving')
    servers = {f'{era}-{kind}': Script(folder, f'{era}-{kind}', http=kind == 'http', era=era)
               for era in ('legacy', 'modern') for kind in ('stdio', 'http')}
    one = harness.Holdfast(folder, {'mcpServers': {k: s.entry for k, s in servers.items()}, 'holdfast': {}}).start()
    one.servers = servers
    yield one
    try:
        one.close()
    finally:
        for server in servers.values():
            server.stop()


@pytest.mark.parametrize('streaming', [False, True], ids=['silent', 'streaming'])
@pytest.mark.parametrize('name', ['modern-http', 'modern-stdio', 'legacy-http', 'legacy-stdio'])
def test_a_dropped_modern_connection__cancels_at_the_server(world, name, streaming, capsys):
    server = world.servers[name]
    client = world.client('/mcp/' + name, modern=True)
    waiting, others, before = (len(server.times(w)) + 1 for w in ('waiting', 'other', 'gone'))
    steps = [{'progress': 1}] if streaming else []
    call = script(client, *steps, {'say': 'waiting'}, {'wait': server.gate()}, meta={'progressToken': 'p'})
    server.wait_time('waiting', waiting)
    if streaming:
        assert call.next()['method'] == 'notifications/progress'
    gate = server.gate()
    other = script(client, {'say': 'other'}, {'wait': gate})
    server.wait_time('other', others)
    left = time.monotonic_ns()
    call.close()
    gone = server.wait_time('gone', before)
    assert left < gone['ns']
    with capsys.disabled():
        print(f' [{name}: {(gone["ns"] - left) / 1e6:.1f} ms]', end='')
    open_gate(gate)
    if name != 'modern-http':  # there the closed stream says it
        wait_for(lambda: gone['id'] in [c['params']['requestId'] for c in server.calls('notifications/cancelled')],
                 'the cancellation of that call')
    assert 'result' in other.rest()[-1]  # nobody else's call is touched
    assert len(server.times('gone')) == before


def test_a_dropped_modern_connection__leaves_one_cancelled_row(holdfast, scripted):
    server = scripted('s', http=True, era='modern')
    hf = holdfast({'s': server.entry})
    call = script(hf.client('/mcp/s', modern=True), {'say': 'waiting'}, {'wait': server.gate()})
    server.wait_time('waiting')
    call.close()
    server.wait_time('gone')
    found = wait_for(lambda: [e for e in events(hf) if e.get('outcome')], 'the outcome')
    assert [e['outcome'] for e in found] == ['cancelled']


@pytest.mark.parametrize('name', ['modern-http', 'modern-stdio', 'legacy-http', 'legacy-stdio'])
def test_a_dropped_legacy_connection__cancels_nothing(world, name):
    server = world.servers[name]
    for version in ('2025-03-26', '2025-06-18', '2025-11-25'):
        client = world.client('/mcp/' + name).connect(version)
        gate, gone, cancelled = server.gate(), server.times('gone'), server.calls('notifications/cancelled')
        waiting, done = len(server.times('waiting')) + 1, len(server.times('done')) + 1
        call = script(client, {'say': 'waiting'}, {'wait': gate}, {'say': 'done'})
        server.wait_time('waiting', waiting)
        call.close()
        assert client.call('echo', {'text': 'meanwhile'}).text == 'meanwhile'
        open_gate(gate)
        server.wait_time('done', done)
        assert client.call('echo', {'text': 'after'}).text == 'after'
        assert server.times('gone') == gone and server.calls('notifications/cancelled') == cancelled


# -- only there

@pytest.mark.parametrize('path', ['/mcp/web', '/mcp'])
@pytest.mark.parametrize('kind', ['stdio legacy', 'stdio modern', 'http legacy', 'http modern'])
def test_changes__never_come_on_the_stream_of_a_request(holdfast, scripted, kind, path):
    """A client of 2026-07-28 that did not listen has not asked for them; an older one hears of them as ever."""
    where, era = kind.split()
    server = scripted('web', http=where == 'http', era=era)
    hf = holdfast({'web': server.entry})
    tool = 'script' if path == '/mcp/web' else 'web__script'
    told = [{'send': note(f'notifications/{w}/list_changed')} for w in ('tools', 'prompts', 'resources')]
    told += [{'send': updated('doc://a')}, {'progress': 1}]
    with script(hf.client(path, modern=True), *told, tool=tool, meta={'progressToken': 'p'}) as stream:
        heard = stream.rest()
    assert [m.get('method') for m in heard] == ['notifications/progress', None]
    assert 'result' in heard[-1]
