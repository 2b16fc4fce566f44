# SPDX-License-Identifier: Apache-2.0
"""The examples for nginx and HAProxy in front of two nodes on one database: TLS, streams, addresses, names, limits
and the loss of a node."""
import json
import os
import re
import subprocess

import keys
import proxies
import pytest
from commands import control
from harness import Holdfast, wait_for
from postgres import shared_keys
from proxies import KINDS, NAME
from rest import Rest
from scripted import Script, note, open_gate, script
from test_listen import acknowledged, listen
from test_sse2024 import Old
from test_tls import Authority

SETTINGS = {'auth': 'required', 'trusted_proxies': ['127.0.0.0/8'], 'public_url': f'https://{NAME}'}
BODY = 4 << 20


@pytest.fixture(scope='module')
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp('authority'), 'ours')


@pytest.fixture(scope='module')
def servers(tmp_path_factory):
    """An HTTP server of each era: the nodes share them."""
    folder = tmp_path_factory.mktemp('servers')
    made = {era: Script(folder, era, http=True, era=era) for era in ('legacy', 'modern')}
    yield made
    for one in made.values():
        one.stop()


@pytest.fixture(scope='module')
def nodes(tmp_path_factory, cluster, servers):
    url, made = cluster.database(), []
    for number in range(2):
        env = {'DATABASE_URL': url, **(shared_keys(made[0]) if made else {})}
        config = {'mcpServers': {name: one.entry for name, one in servers.items()}, 'holdfast': SETTINGS}
        made.append(Holdfast(tmp_path_factory.mktemp(f'node{number}'), config, env=env).start())
    yield made
    for one in made:
        one.close()


@pytest.fixture(scope='module')
def key(nodes):
    return keys.create(nodes[0], '--role', 'admin')


@pytest.fixture(scope='module', params=list(KINDS))
def proxy(request, tmp_path_factory, nodes, authority):
    if not proxies.program(request.param):
        pytest.skip(f'{request.param} is not installed; tools/install-deps test installs it')
    one = KINDS[request.param](tmp_path_factory.mktemp(request.param), nodes, authority)
    yield one
    one.close()


def served(node):
    """How many requests of ours a node sent to servers."""
    text = control(node, '/metrics').body.decode()
    return sum(int(n) for n in re.findall(r'^holdfast_upstream_requests_total\{[^}]*\} (\d+)$', text, re.M))


@pytest.mark.parametrize('modern', [False, True], ids=['legacy', 'modern'])
def test_any_node_answers_any_request(proxy, nodes, key, modern):
    before = [served(node) for node in nodes]
    client = key.client(proxy, '/mcp/legacy', modern=modern)
    if not modern:
        client.connect()
    for number in range(6):
        assert str(number) in json.dumps(client.call('echo', {'text': str(number)}).result)
    assert all(served(node) > count for node, count in zip(nodes, before)), 'the proxy uses both nodes'


def test_the_proxy_speaks_http_2(proxy, authority, key):
    done = subprocess.run(['curl', '-sS', '--http2', '--cacert', authority.cert, '--resolve', f'{NAME}:{proxy.port}:127.0.0.1',
                           '-w', '%{http_version} %{http_code}', '-o', os.devnull, '-H', 'Authorization: Bearer ' + key.text,
                           f'https://{NAME}:{proxy.port}/api/v1/sessions'], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ('2 200', '')


def test_the_events_of_a_call_come_as_they_happen(proxy, servers, key):
    server = servers['legacy']
    gates = [server.gate() for _ in range(2)]
    client = key.client(proxy, '/mcp/legacy').connect()
    with script(client, {'progress': 1}, {'wait': gates[0]}, {'progress': 2}, {'wait': gates[1]}, meta={'progressToken': 'p'}) as stream:
        for count, gate in enumerate(gates, 1):
            assert stream.next()['params']['progress'] == count  # the server goes on only now
            open_gate(gate)
        assert 'result' in stream.next()


def test_a_listening_client_hears_changes(proxy, servers, key):
    client = key.client(proxy, '/mcp/modern', modern=True)
    with listen(client, 7, toolsListChanged=True) as stream:
        assert acknowledged(stream, 7) == {'toolsListChanged': True}
        wait_for(lambda: any(t['wanted'].get('toolsListChanged') for t in servers['modern'].times('listen')), 'the nodes to listen')
        for _ in range(2):
            script(client, {'listen': note('notifications/tools/list_changed')}).rest()
            assert stream.next()['method'] == 'notifications/tools/list_changed'


def test_the_transport_of_2024(proxy, key):
    for _ in range(3):
        client = Old(proxy, key.headers)
        assert client.initialize()['protocolVersion'] == '2024-11-05'
        assert 'legacy__echo' in json.dumps(client.rpc('tools/list'))
        assert 'again' in json.dumps(client.rpc('tools/call', {'name': 'legacy__echo', 'arguments': {'text': 'again'}})['result'])
        client.close()


def test_the_address_is_that_of_the_client_whatever_it_says(proxy, nodes, key):
    proxy.source = '127.0.0.7'
    try:
        forged = {'X-Forwarded-For': '203.0.113.9', 'X-Forwarded-Proto': 'http', 'X-Forwarded-Host': 'evil.example'}
        made = Rest(proxy, {**key.headers, **forged}).create()
    finally:
        proxy.source = None
    assert made['connection_metadata']['ip_address'] == '127.0.0.7'
    on_a_node = Rest(nodes[0], key.headers).session(made['session_id'])
    assert on_a_node['connection_metadata']['ip_address'] == '127.0.0.7'


def test_without_a_key_the_answer_names_the_public_url(proxy):
    reply = proxy.request('POST', '/mcp', {'Accept': 'application/json, text/event-stream'}, b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert reply.status == 401 and f'resource_metadata="https://{NAME}/' in reply.header('WWW-Authenticate')


def test_another_name_is_refused_by_name(proxy):
    reply = proxy.get('/healthz', {'Host': 'other.example'})
    assert reply.status == 403 and 'the Host "other.example" is not one of ours' in reply.json()['error']


def test_metrics_are_not_for_the_public(proxy, key):
    assert proxy.get('/metrics', key.headers).status == 404


@pytest.mark.parametrize('size,taken', [(BODY, True), (BODY + 1, False)])
def test_a_body_above_the_limit_ends_at_the_proxy(proxy, key, size, taken):
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b'x' * size
    body = body[:size - 3] + b'"}}'
    with proxy.connection() as connection:
        connection.send(connection.head_bytes('POST', '/mcp', {**key.headers, 'Accept': 'application/json, text/event-stream'}, body))
        if taken:
            connection.send(body)
        reply = connection.read_response()
    assert reply.status == (200 if taken else 413)
    assert reply.header('Content-Type') == ('application/json' if taken else 'text/html'), 'a node would answer in JSON'


def test_a_node_is_lost_and_comes_back(proxy, nodes, key):
    client = key.client(proxy, '/mcp/legacy').connect()
    session = Rest(proxy, key.headers).create()['session_id']
    for lost, other in (nodes, nodes[::-1]):
        lost.kill()
        for number in range(6):
            assert str(number) in json.dumps(client.call('echo', {'text': str(number)}).result)
            assert Rest(proxy, key.headers).get(f'/sessions/{session}').status == 200
        lost.start()
        # Until the proxy uses it again.
        before = served(lost)
        wait_for(lambda b=before, l=lost: client.call('echo', {'text': 'x'}).status == 200 and served(l) > b, 'the node to be used again')
        assert other.process.poll() is None


def test_haproxy_asks_readyz(tmp_path, nodes, authority):
    if not proxies.program('haproxy'):
        pytest.skip('haproxy is not installed; tools/install-deps test installs it')
    folder = tmp_path / 'asks'
    folder.mkdir()
    one = KINDS['haproxy'](folder, nodes, authority)
    places = {(backend, node) for backend in ('holdfast', 'holdfast_by_client') for node in ('node1', 'node2')}
    try:
        wait_for(lambda: one.checks() == dict.fromkeys(places, ('UP', 'L7OK')), 'four good checks')
        nodes[1].kill()
        wait_for(lambda: {node for (_, node), (state, _) in one.checks().items() if state == 'DOWN'} == {'node2'}, 'node2 to be down')
        nodes[1].start()
        wait_for(lambda: one.checks() == dict.fromkeys(places, ('UP', 'L7OK')), 'four good checks again')
    finally:
        one.close()


def test_without_its_host_line_nginx_is_told_the_line(tmp_path, nodes, authority):
    if not proxies.program('nginx'):
        pytest.skip('nginx is not installed; tools/install-deps test installs it')
    line = 'proxy_set_header Host $host;'
    folder = tmp_path / 'wrong'
    folder.mkdir()
    one = KINDS['nginx'](folder, nodes, authority, [('    ' + line + '\n', ''), ('    proxy_set_header X-Forwarded-Host $host;\n', '')])
    try:
        reply = one.get('/healthz')
        assert reply.status == 403 and 'the Host "holdfast" is not one of ours' in reply.json()['error'] and line in reply.json()['error']
    finally:
        one.close()
