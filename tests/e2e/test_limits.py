# SPDX-License-Identifier: Apache-2.0
"""What tenants and keys may use: requests, bytes, calls at once and server processes.  Whoever is at a limit is told
so in words, with the time after which it works again; nobody else notices."""
import os
import re
import threading
import time

import pytest

import keys
from commands import events, is_alive, outcomes, run, run_json, wait_read
from harness import Connection, Stream, dump, wait_for
from postgres import shared_keys
from rest import Rest, refused
from test_children import begin, cancel
from test_clock import Clock
from test_operate import metrics, reload

ERAS = pytest.mark.parametrize('modern', [False, True], ids=['legacy', 'modern'])


class Slept(Clock):
    """The machine sleeps: all clocks move on by so many seconds."""

    def __init__(self, folder):
        super().__init__(folder)
        self.env = {'HOLDFAST_FAULT_SLEEP': self.file}


@pytest.fixture
def slept(tmp_path):
    return Slept(tmp_path)


def limited(reply, text):
    """A tool call that was refused by a limit: gives the seconds it is told to wait."""
    assert reply.status == 200 and reply.result['isError'] is True, repr(reply)
    seconds = reply.result['_meta']['holdfast/retry-after']
    assert re.fullmatch(text + rf'\. Try again in {seconds} seconds?\.', reply.text), reply.text
    assert len(reply.result['content']) == 1 and seconds >= 1
    return seconds


def echo(client, text='x'):
    return client.call('echo', {'message' if client.path == '/mcp/sample' else 'text': text})


def begin_modern(client, tool, name):
    """A call of a session of that name, left under way: its connection."""
    connection = Connection(client.holdfast.port)
    params = {'name': tool, 'arguments': {}, '_meta': client.envelope}
    body = dump({'jsonrpc': '2.0', 'id': 'busy', 'method': 'tools/call', 'params': params}).encode()
    headers = {**client.headers_for('tools/call', params), 'mcp-client-id': name}
    connection.send(connection.head_bytes('POST', client.path, headers, body) + body)
    return connection


def begun(client, modern):
    return client if modern else client.connect()


@ERAS
def test_requests__at_the_limit_a_call_is_a_result_to_read_and_works_after_the_time_it_names(holdfast, slept, modern):
    hf = holdfast(settings={'limits': {'requests': '3/h burst 5'}}, env=slept.env)
    client = begun(hf.client(modern=modern), modern)
    for _ in range(5 if modern else 3):  # initialize and its notification count as well
        assert echo(client).text == 'x'
    seconds = limited(echo(client),
                      "Rate limit of tenant 'default' reached on this node: 3 requests an hour")
    assert 1100 < seconds <= 1200
    assert outcomes(hf, 'echo') == ['ok'] * (5 if modern else 3)
    slept.set(seconds)
    wait_for(lambda: not echo(client).result.get('isError'), 'the clock to be read', 5)
    limited(echo(client), "Rate limit of tenant 'default' reached on this node: 3 requests an hour")
    assert metrics(hf)['holdfast_limited_total{limit="requests",scope="tenant"}'] >= 2
    assert metrics(hf)['holdfast_limits_shared'] == 0


@pytest.mark.parametrize('method, modern', [('tools/list', False), ('tools/list', True), ('prompts/get', False), ('prompts/get', True),
                                            ('ping', False), ('initialize', False), ('server/discover', True)])
def test_requests__other_methods_get_429_with_the_time(holdfast, method, modern):
    hf = holdfast(settings={'limits': {'requests': '1/h'}})
    assert hf.client(modern=True).rpc('tools/list', {}).status == 200
    params = {'protocolVersion': '2025-11-25', 'capabilities': {}, 'clientInfo': {'name': 'x', 'version': '1'}} \
        if method == 'initialize' else {'name': 'x'} if method == 'prompts/get' else {}
    reply = hf.client(modern=modern).rpc(method, params, ident='mine')
    assert reply.status == 429 and reply.json['id'] == 'mine' and reply.code == -32000, repr(reply)
    seconds = int(reply.header('retry-after'))
    assert 3500 < seconds <= 3600 and reply.error['data'] == {'code': 'quota', 'retry_after': seconds}
    assert f'1 request an hour. Try again in {seconds} seconds.' in reply.error['message']
    assert reply.header('ratelimit-policy') == '"requests";q=1;w=3600'
    assert reply.header('ratelimit') == f'"requests";r=0;t={seconds}'


def test_requests__what_ends_something_passes_at_the_limit(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry}, {'limits': {'requests': '5/h'}})
    client = hf.client('/mcp/up').connect()
    busy = begin(client, 'hang')
    record.wait('tools/call', 1)
    while not echo(client).result.get('isError'):
        pass
    cancel(client)
    assert busy.read_response().status == 200
    wait_for(lambda: outcomes(hf, 'hang') == ['cancelled'], 'the end of the call')
    assert client.delete().status == 204
    busy.close()


def test_requests__streams_are_requests(holdfast):
    hf = holdfast(settings={'limits': {'requests': '3/h'}})
    client = hf.client().connect()
    accept = {'Accept': 'text/event-stream'}
    with hf.connection() as connection:
        connection.send(connection.head_bytes('GET', '/mcp/sample', {**client.headers_for('', {}), **accept}, b''))
        assert Stream(connection).status == 200
    for path in ('/mcp/sample', '/sse'):
        reply = hf.request('GET', path, {**client.headers_for('', {}), **accept})
        assert reply.status == 429 and int(reply.header('retry-after')) > 1000, repr(reply)


def test_requests__each_item_of_a_batch_counts(holdfast):
    hf = holdfast(settings={'limits': {'requests': '5/h'}})
    client = hf.client().connect('2025-03-26')
    call = {'jsonrpc': '2.0', 'method': 'tools/call', 'params': {'name': 'echo', 'arguments': {'message': 'x'}}}
    reply = client.rpc_bytes(dump([{**call, 'id': i} for i in range(5)]))
    answers = reply.json
    assert [a['result'].get('isError', False) for a in answers] == [False] * 3 + [True] * 2
    assert answers[4]['result']['_meta']['holdfast/retry-after'] > 1


def test_requests__on_a_stream_of_2024(holdfast):
    from test_sse2024 import Old
    hf = holdfast(settings={'limits': {'requests': '4/h'}})  # the stream, initialize and its notification
    old = Old(hf)
    old.initialize()
    params = {'name': 'sample__echo', 'arguments': {'message': 'x'}}
    assert not old.rpc('tools/call', params)['result'].get('isError')
    answer = old.rpc('tools/call', params)['result']
    assert answer['isError'] and answer['_meta']['holdfast/retry-after'] > 100
    assert old.rpc('tools/list')['error']['data']['code'] == 'quota'
    old.close()


def test_requests__on_a_pipe(holdfast):
    from test_stdio import Pipe
    hf = holdfast(settings={'limits': {'requests': '2/h'}})
    pipe = Pipe(hf, server='sample').start_reading()
    call = {'jsonrpc': '2.0', 'method': 'tools/call', 'params': {'name': 'echo', 'arguments': {'message': 'x'}}}
    for i in range(3):
        pipe.send({**call, 'id': i})
    answers = {m['id']: m['result'].get('isError', False) for m in (pipe.receive() for _ in range(3))}
    assert answers == {0: False, 1: False, 2: True}
    pipe.send({'jsonrpc': '2.0', 'id': 'l', 'method': 'tools/list'})
    answer = pipe.receive()
    assert answer['error']['data']['retry_after'] > 1000 and answer['id'] == 'l'
    pipe.process.stdin.close()
    assert pipe.process.wait(20) == 0


def test_bytes__of_requests_and_answers_are_counted(holdfast, slept):
    hf = holdfast(settings={'limits': {'bytes': '1KiB/m burst 10KiB'}}, env=slept.env)
    client = hf.client(modern=True)
    assert echo(client, 'x' * 4000).text == 'x' * 4000
    assert echo(client, 'x' * 4000).text == 'x' * 4000  # past the limit, still answered
    seconds = limited(echo(client), "Rate limit of tenant 'default' reached on this node: 1 KiB a minute")
    assert seconds > 100
    reply = client.rpc('tools/list', {})
    assert reply.status == 429 and reply.header('ratelimit-policy') == '"bytes";q=1024;w=60;qu="content-bytes"'
    slept.set(seconds)
    wait_for(lambda: not echo(client).result.get('isError'), 'the clock to be read', 5)
    assert metrics(hf)['holdfast_limited_total{limit="bytes",scope="tenant"}'] >= 2


@ERAS
def test_calls__at_once_are_counted_until_their_outcome(holdfast, stdio_server, modern):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry}, {'limits': {'calls': 2}})
    clients = [begun(hf.client('/mcp/up', modern=modern), modern) for _ in range(3)]
    busy = [begin_modern(client, 'hang', str(n)) if modern else begin(client, 'hang') for n, client in enumerate(clients[:2])]
    record.wait('tools/call', 2)
    assert limited(echo(clients[2]), "Limit of tenant 'default' reached on this node: 2 calls at a time") == 1
    assert clients[2].rpc('tools/list', {}).status == 200
    assert len(record.of('tools/call')) == 2  # what was refused did not reach it
    if modern:
        busy[0].close()
    else:
        cancel(clients[0])
    wait_for(lambda: 'isError' not in echo(clients[2]).result, 'a place')
    if not modern:
        cancel(clients[1])
    for stream in busy:
        stream.close()
    wait_for(lambda: outcomes(hf, 'hang') == ['cancelled'] * 2, 'both to end')
    assert 'refused' not in outcomes(hf, 'echo')


def test_children__an_idle_one_of_the_tenant_ends_for_the_next_and_busy_ones_refuse(holdfast, stdio_server, slept):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry}, {'tenants': {'default': {'limits': {'children': 2}}}}, env=slept.env)

    def live():
        return [pid for pid in record.starts() if is_alive(pid)]
    clients = [hf.client('/mcp/up').connect() for _ in range(3)]
    assert [c.call('counter').text for c in clients] == ['1'] * 3
    wait_for(lambda: len(live()) == 2, 'two children')
    assert 'holdfast/state-lost' in clients[0].call('counter').result['_meta']
    busy = [begin(client, 'hang') for client in clients[:2]]
    wait_for(lambda: len([m for m in record.of('tools/call') if b'hang' in m]) == 2, 'two calls')
    other = keys.create(hf, '--tenant', 'other')
    waiting = begin(clients[2], 'counter')
    wait_read(waiting)
    assert echo(other.client(hf, '/mcp/up').connect()).text == 'x'
    refusals = 'holdfast_limited_total{limit="children",scope="tenant"}'
    assert metrics(hf).get(refusals, 0) == 0  # the other tenant was served first: it did not stand in line behind this one
    slept.set(5)
    reply = waiting.read_response().json()['result']
    assert reply['isError'] and reply['_meta']['holdfast/retry-after'] == 5
    assert reply['content'][0]['text'] == ("Limit of tenant 'default' reached on this node: 2 server processes at a time. "
                                           'Try again in 5 seconds.')
    assert 'refused' in outcomes(hf, 'counter')
    assert metrics(hf)[refusals] == 1
    for client, connection in zip(clients, busy):
        cancel(client)
        connection.close()
    assert clients[2].call('counter').text == '1'


# Keys and tenants.

def test_keys__count_their_processes(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    key, plain = keys.create(hf, '--limit', 'children=1'), keys.create(hf)

    def live():
        return len([pid for pid in record.starts() if is_alive(pid)])
    for client in [key.client(hf, '/mcp/up').connect() for _ in range(3)]:
        assert client.call('counter').text == '1'
    wait_for(lambda: live() == 1, 'one child')
    for client in [plain.client(hf, '/mcp/up').connect() for _ in range(2)]:
        assert client.call('counter').text == '1'
    assert live() == 3


def test_keys__have_limits_of_their_own(holdfast):
    hf = holdfast()
    key = keys.create(hf, '--limit', 'requests=2/h', '--limit', 'calls=7')
    plain = keys.create(hf)
    shown = {row['id']: row['scopes'] for row in run_json(hf, 'key', 'list')}
    assert shown[key.id]['limits'] == {'requests': '2/h', 'calls': 7} and 'limits' not in shown[plain.id]
    client = key.client(hf, modern=True)
    assert [echo(client).text for _ in range(2)] == ['x', 'x']
    limited(echo(client), f"Rate limit of key '{key.id}' reached on this node: 2 requests an hour")
    assert echo(plain.client(hf, modern=True)).text == 'x'
    reply = refused(Rest(hf, key.headers).get('/sessions'), 429, 'quota')
    assert int(reply.header('retry-after')) > 1000
    assert metrics(hf)['holdfast_limited_total{limit="requests",scope="key"}'] == 2


@pytest.mark.parametrize('flag', ['requests', 'requests=', 'requests=600', 'calls=0', 'sessions=4', 'bytes=5MB/w'])
def test_keys__limits_that_are_none_are_refused(holdfast, flag):
    hf = holdfast(start=False)
    done = run(hf, 'key', 'create', '--limit', flag)
    assert done.returncode == 2 and '--limit' in done.stderr and not done.stdout


def test_tenants__at_the_limit_others_are_served(holdfast):
    hf = holdfast(settings={'limits': {'requests': '4/h'}, 'tenants': {'big': {'limits': {'requests': 'none'}},
                                                                       'small': {'limits': {'requests': '1/h'}}}})
    made = {name: keys.create(hf, '--tenant', name).client(hf, modern=True) for name in ('big', 'small', 'middle')}

    def served(name):
        return sum(not echo(made[name]).result.get('isError') for _ in range(8))
    assert {name: served(name) for name in made} == {'big': 8, 'small': 1, 'middle': 4}
    second = keys.create(hf, '--tenant', 'middle').client(hf, modern=True)
    assert echo(second).result['isError']  # another key does not help


def test_users_of_tokens__count_by_user_whatever_token_they_bring(holdfast, tmp_path):
    issuer = keys.Issuer(tmp_path)
    hf = holdfast(settings={'jwt': issuer.settings(), 'limits': {'key': {'requests': '2/h'}}})
    clients = [hf.client(modern=True, headers=issuer.headers(sub='ada', jti=str(i))) for i in range(3)]
    assert [echo(c).text for c in clients[:2]] == ['x', 'x']
    limited(echo(clients[2]), 'Rate limit of this user reached on this node: 2 requests an hour')
    other = hf.client(modern=True, headers=issuer.headers(sub='bob'))
    assert echo(other).text == 'x'


# REST.

def test_rest__is_429_with_a_problem_and_the_time(holdfast, slept):
    hf = holdfast(settings={'limits': {'requests': '2/h'}}, env=slept.env)
    rest = Rest(hf)
    assert rest.get('/sessions').status == 200 and rest.get('/sessions').status == 200
    reply = refused(rest.get('/sessions'), 429, 'quota')
    seconds = int(reply.header('retry-after'))
    assert reply.json()['detail'] == ("Rate limit of tenant 'default' reached on this node: 2 requests an hour. "
                                      f'Try again in {seconds} seconds.')
    assert reply.header('ratelimit-policy') == '"requests";q=2;w=3600'
    assert reply.header('ratelimit') == f'"requests";r=0;t={seconds}'
    assert hf.get('/healthz').status == 200 and hf.get('/metrics').status == 200
    slept.set(seconds)
    wait_for(lambda: rest.get('/sessions').status == 200, 'the clock to be read', 5)


def test_rest_and_mcp__share_one_limit(holdfast):
    hf = holdfast(settings={'limits': {'requests': '2/h'}})
    assert Rest(hf).get('/sessions').status == 200
    assert echo(hf.client(modern=True)).text == 'x'
    assert Rest(hf).get('/sessions').status == 429


# Reload.

def test_reload__changes_the_limits_of_who_is_counted_already(holdfast):
    hf = holdfast(settings={'limits': {'requests': '2/h'}})
    client = hf.client(modern=True)

    def served(most=10):
        return sum(not echo(client).result.get('isError') for _ in range(most))

    def use(limits):
        reload(hf, {'mcpServers': {}, 'holdfast': {'limits': limits}})
    assert served() == 2
    use({'requests': '5/h'})
    assert served() == 3
    use({'requests': '1/h'})
    assert served() == 0
    use({})
    assert served() == 10
    use({'calls': 1})
    assert served() == 10


def test_a_reload_with_an_unknown_limit_changes_nothing(holdfast):
    hf = holdfast(settings={'limits': {'requests': '1/h'}})
    reload(hf, {'mcpServers': {}, 'holdfast': {'limits': {'request': '9/h'}}}, 'the configuration was not reloaded; the old one stays')
    client = hf.client(modern=True)
    assert echo(client).text == 'x' and echo(client).result['isError']


# What it costs.

def test_refusals__are_not_written_down_one_by_one(holdfast):
    hf = holdfast(settings={'limits': {'requests': '3/h'}})
    client = hf.client(modern=True)
    for _ in range(3):
        echo(client)
    before = len(events(hf))
    for _ in range(50):
        assert echo(client).result['isError']
    wait_for(lambda: len(events(hf)) > before, 'the record')
    told = [e for e in events(hf)[before:] if e['method'] == 'limit']
    assert len(told) == 1 and told[0]['outcome'] == 'refused' and told[0]['tenant'] == 'default', told
    assert "Rate limit of tenant 'default' reached" in told[0]['error'] and told[0]['error'].endswith('record: 1.')
    assert len(events(hf)) - before <= 2  # an anchor may have come between
    assert run(hf, 'audit', 'verify').returncode == 0
    lines = [l for l in hf.log() if l.get('msg') == 'a limit is reached']
    assert 1 <= len(lines) <= 2 and lines[0]['tenant'] == 'default' and lines[0]['limit'] == 'requests'


# Several nodes.

@pytest.fixture
def redis():
    from redis_server import Redis
    one = Redis()
    if not one.is_there:
        pytest.skip('there is no Redis to start')
    yield one
    one.close()


@pytest.fixture
def fleet(holdfast, cluster, redis, stdio_server):
    """fleet(limits): two nodes that count together, with the sample server or one that records."""
    def make(limits, records=False):
        entry, record = stdio_server('up', handles='never')
        env = {'DATABASE_URL': cluster.database(), 'REDIS_URL': redis.url}
        made = []
        for _ in range(2):
            made.append(holdfast({'up': entry} if records else {}, {'limits': limits}, env=dict(env)))
            env.update(shared_keys(made[0]))
        for node in made:
            wait_for(lambda n=node: is_shared(n), 'the nodes to count together')
        return made, record
    return make


def is_shared(hf):
    return metrics(hf)['holdfast_limits_shared'] == 1


def served_by(nodes, each):
    """So many calls to each node at once: how many were served."""
    served = []

    def work(hf):
        client = hf.client(modern=True)
        served.append(sum(not echo(client).result.get('isError') for _ in range(each)))
    threads = [threading.Thread(target=work, args=(node,)) for node in nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(served) == len(nodes)
    return sum(served)


def test_nodes__share_one_limit(fleet, redis):
    nodes, _ = fleet({'requests': '60/h'})
    served = served_by(nodes, 100)
    assert 60 <= served <= 80, served
    reply = echo(nodes[0].client(modern=True))
    limited(reply, "Rate limit of tenant 'default' reached: 60 requests an hour")
    assert b'default' not in redis.say('KEYS', '*')  # names do not reach it


def test_nodes__what_one_has_used_up_the_other_does_not_have(fleet):
    (a, b), _ = fleet({'requests': '10/h', 'bytes': '1MiB/h'})
    assert served_by([a], 15) == 10
    wait_for(lambda: served_by([b], 1) == 0, 'the other to hear of it')
    limited(echo(b.client(modern=True)), "Rate limit of tenant 'default' reached: 10 requests an hour")


def test_nodes__calls_and_children_of_one_count_on_the_other(fleet):
    (a, b), record = fleet({'calls': 2, 'children': 3}, True)
    clients = [a.client('/mcp/up').connect() for _ in range(2)]
    busy = [begin(client, 'hang') for client in clients]
    record.wait('tools/call', 2)
    other = b.client('/mcp/up', modern=True)
    wait_for(lambda: echo(other).result.get('isError'), 'the other to hear of it')
    limited(echo(other), "Limit of tenant 'default' reached: 2 calls at a time")
    cancel(clients[0])
    wait_for(lambda: not echo(other).result.get('isError'), 'the other to hear of the end')
    cancel(clients[1])
    for connection in busy:
        connection.close()


def test_nodes__that_lose_redis_go_on_alone_and_say_so(fleet, redis):
    nodes, _ = fleet({'requests': '20/h'})
    assert 20 <= served_by(nodes, 20) <= 34
    redis.order('kill')
    for node in nodes:
        wait_for(lambda n=node: not is_shared(n), 'the loss to be noticed')
        limited(echo(node.client(modern=True)), "Rate limit of tenant 'default' reached on this node: 20 requests an hour")
        lines = [l for l in node.log() if 'limits are counted on this node alone' in l.get('msg', '')]
        assert len(lines) == 1, lines
    redis.order('start')  # empty
    for node in nodes:
        wait_for(lambda n=node: is_shared(n), 'the return to be noticed')
    assert served_by(nodes, 5) == 0  # what was used is known without it
    limited(echo(nodes[1].client(modern=True)), "Rate limit of tenant 'default' reached: 20 requests an hour")


def test_nodes__serve_while_redis_hangs(fleet, redis):
    nodes, _ = fleet({'requests': '1000/h'})
    assert served_by(nodes, 5) == 10
    redis.order('stop')
    began = time.monotonic()
    assert served_by(nodes, 20) == 40
    assert time.monotonic() - began < 10
    for node in nodes:
        wait_for(lambda n=node: not is_shared(n), 'the loss to be noticed')
    redis.order('cont')
    for node in nodes:
        wait_for(lambda n=node: is_shared(n), 'the return to be noticed')


def test_one_node_alone__counts_alone_whatever_redis_there_is(holdfast, redis):
    hf = holdfast(settings={'limits': {'requests': '1/h'}}, env={'REDIS_URL': redis.url})
    assert served_by([hf], 3) == 1
    limited(echo(hf.client(modern=True)), "Rate limit of tenant 'default' reached on this node: 1 request an hour")
