# SPDX-License-Identifier: Apache-2.0
"""Who may do what: keys and tokens against real processes, what they hide, and how fast a revocation counts."""
import json
import os
import re
import signal
import socket
import subprocess
import time

import pytest

import commands
import harness
import keys
from harness import Client, Holdfast, wait_for
from keys import Issuer, KeyServer, create, listed, revoke
from packed import events_in
from scripted import open_gate, script
from test_limits import Slept
from test_stdio import Pipe
from test_tls import Authority

REQUIRED = {'auth': 'required'}
LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
MCP = {'Accept': 'application/json, text/event-stream'}
PATHS = [('POST', '/mcp'), ('POST', '/mcp/sample'), ('GET', '/mcp/sample'), ('DELETE', '/mcp/sample'), ('GET', '/sse'),
         ('POST', '/mcp/messages?session_id=x'), ('GET', '/metrics'), ('GET', '/api/v1/sessions'), ('POST', '/api/v1/sessions')]
OPEN = ['/healthz', '/readyz', '/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp',
        '/.well-known/oauth-protected-resource/mcp/sample']


def ask(hf, method, path, headers=None):
    return hf.request(method, path, {**MCP, **(headers or {})}, LIST if method == 'POST' else b'')


def bearer(text):
    return {'Authorization': 'Bearer ' + text}


class Exposed(Holdfast):
    """One that listens on every address of this machine."""

    def command(self):
        return [part.replace('127.0.0.1:', '0.0.0.0:') if part.startswith('127.0.0.1:') else part for part in super().command()]

    def wait_ready(self, since):
        line = self.wait_log(lambda l: l.get('msg') == 'listening', 'the listening line', since)
        self.port = int(line['address'].rsplit(':', 1)[1])


@pytest.fixture
def exposed(tmp_path):
    made = []

    def make(settings, start=True, **options):
        folder = tmp_path / f'exposed-{len(made)}'
        folder.mkdir()
        made.append(Exposed(folder, {'mcpServers': {}, 'holdfast': settings}, **options))
        return made[-1].start() if start else made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def issuer(tmp_path):
    return Issuer(tmp_path)


@pytest.fixture(scope='module', name='ours')
def fixture_ours(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp('ours'), 'ours')


def assert_nowhere(hf, secret):
    """Neither in a file of its, nor in what it said."""
    assert secret not in '\n'.join(hf.lines)
    for folder, _, files in os.walk(hf.folder):
        for path in (os.path.join(folder, name) for name in files):
            if os.path.isfile(path):
                with open(path, 'rb') as file:
                    assert secret.encode() not in file.read(), path
                assert secret.encode() not in events_in(path)


# Without a credential, or with a bad one.

def test_required__nothing_but_health_and_metadata_is_open(holdfast):
    hf = holdfast(settings=REQUIRED)
    for path in OPEN:
        assert hf.get(path).status == 200, path
    for method, path in PATHS:
        reply = ask(hf, method, path)
        assert reply.status == 401, (method, path, reply)
        challenge = reply.header('WWW-Authenticate')
        assert challenge.startswith('Bearer realm="holdfast", resource_metadata="http://127.0.0.1'), challenge
        assert 'error=' not in challenge
        assert 'error' in reply.json()


def test_required__a_bad_credential_says_so(holdfast):
    hf = holdfast(settings=REQUIRED)
    for headers in (bearer('hf_' + 'a' * 12 + '_' + 'A' * 43), bearer('nonsense'), {'X-API-Key': 'x'}, {'Authorization': 'Basic YTpi'}):
        for method, path in PATHS:
            reply = ask(hf, method, path, headers)
            assert reply.status == 401, (headers, method, path, reply)
            assert reply.header('WWW-Authenticate').endswith('error="invalid_token"')


def test_none__a_valid_credential_identifies_and_an_invalid_one_is_401(holdfast):
    hf = holdfast(settings={})
    key = create(hf, '--tenant', 'acme', '--role', 'auditor')
    assert ask(hf, 'POST', '/mcp/sample').status == 200
    assert ask(hf, 'POST', '/mcp/sample', key.headers).status == 200
    assert key.client(hf).connect().call('echo', {'message': 'x'}).status == 403  # it is an auditor now
    for method, path in PATHS:
        assert ask(hf, method, path, bearer('hf_wrong')).status == 401, path


def test_401_on_mcp__carries_the_requests_id(holdfast):
    hf = holdfast(settings=REQUIRED)
    reply = Client(hf).rpc('tools/list', ident='seven')
    assert reply.status == 401 and reply.json['id'] == 'seven' and reply.code == -32000


def test_challenge__points_to_metadata_that_names_the_resource(holdfast, issuer):
    hf = holdfast(settings={**REQUIRED, 'jwt': issuer.settings()})
    challenge = ask(hf, 'POST', '/mcp/sample').header('WWW-Authenticate')
    url = re.search(r'resource_metadata="([^"]*)"', challenge).group(1)
    origin = f'http://127.0.0.1:{hf.port}'
    assert url == origin + '/.well-known/oauth-protected-resource/mcp/sample'
    metadata = hf.get(url[len(origin):]).json()
    assert metadata['resource'] == origin + '/mcp/sample'
    assert metadata['authorization_servers'] == [issuer.name]
    assert metadata['bearer_methods_supported'] == ['header']
    assert hf.get('/.well-known/oauth-protected-resource').json()['resource'] == origin + '/mcp'


def test_metadata__uses_the_public_url(holdfast):
    hf = holdfast(settings={**REQUIRED, 'public_url': 'https://mcp.example/base'})
    reply = ask(hf, 'POST', '/mcp', {'Host': 'mcp.example'})
    assert 'resource_metadata="https://mcp.example/base/.well-known/oauth-protected-resource/mcp"' in reply.header('WWW-Authenticate')
    assert hf.get('/.well-known/oauth-protected-resource').json()['resource'] == 'https://mcp.example/base/mcp'


# Keys.

def test_key__works_wherever_it_stands(holdfast):
    hf = holdfast(settings=REQUIRED)
    key = create(hf, '--name', 'laptop')
    for headers in (key.headers, {'X-API-Key': key.text}, {'Authorization': 'bearer ' + key.text},
                    {**key.headers, 'X-API-Key': key.text}):
        assert ask(hf, 'POST', '/mcp/sample', headers).status == 200, headers
    other = create(hf)
    assert ask(hf, 'POST', '/mcp/sample', {**key.headers, 'X-API-Key': other.text}).status == 401
    assert key.client(hf).connect().call('echo', {'message': 'hello'}).text == 'hello'


def test_metrics__tell_a_tenant_of_itself_and_members_nothing(holdfast):
    hf = holdfast(settings={**REQUIRED, 'tenants': {'b': {}}})
    keys = {(tenant, role): create(hf, '--tenant', tenant, '--role', role)
            for tenant in ('default', 'b') for role in ('admin', 'auditor', 'member', 'service')}
    for (tenant, role), key in keys.items():
        reply = ask(hf, 'GET', '/metrics', key.headers)
        assert reply.status == (200 if role in ('admin', 'auditor') else 403), (tenant, role)
        if reply.status == 200:
            told = set(re.findall(r'tenant_id="([^"]*)"', reply.body.decode()))
            assert told == ({'default', 'b'} if tenant == 'default' else {'b'})
            assert 'holdfast_calls_in_flight' in reply.body.decode()


def test_key__is_shown_once_and_never_kept(holdfast):
    hf = holdfast(settings=REQUIRED)
    done = commands.run(hf, 'key', 'create', '--name', 'once')
    text = done.stdout.strip()
    assert done.returncode == 0 and re.fullmatch(r'hf_[a-z0-9]{12}_[A-Za-z0-9_-]{43}', text)
    assert text not in done.stderr and 'Authorization: Bearer' in done.stderr
    secret = text.split('_', 2)[2]
    assert ask(hf, 'POST', '/mcp/sample', bearer(text)).status == 200
    hf.stop()
    assert_nowhere(hf, secret)


def test_key__made_before_the_first_start_works(holdfast):
    hf = holdfast(settings=REQUIRED, start=False)
    key = create(hf, '--tenant', 'acme', '--name', 'early')
    gone = create(hf)
    revoke(hf, gone)
    rows = listed(hf)
    assert rows[key.id]['tenant'] == 'acme' and rows[gone.id]['revoked_at']
    hf.start()
    assert ask(hf, 'POST', '/mcp/sample', key.headers).status == 200
    assert ask(hf, 'POST', '/mcp/sample', gone.headers).status == 401


def test_key_list__shows_what_was_asked_for(holdfast):
    hf = holdfast(settings=REQUIRED)
    key = create(hf, '--tenant', 'acme', '--name', 'n', '--role', 'service', '--server', 'a', '--server', 'b*', '--tool', 'a__x',
                 '--folder', 'Lens', '--review', '--read-only', '--expires', '90d', '--user', 'bob')
    other = create(hf)
    row = listed(hf)[key.id]
    assert (row['tenant'], row['name'], row['role'], row['revoked_at']) == ('acme', 'n', 'service', None)
    assert row['scopes'] == {'servers': ['a', 'b*'], 'tools': ['a__x'], 'folders': ['Lens'], 'review': True, 'read_only': True}
    assert re.fullmatch('[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}', row['user_id'])
    assert set(listed(hf, '--tenant', 'acme')) == {key.id}
    assert 'tenant nope has no keys' in commands.run(hf, 'key', 'list', '--tenant', 'nope').stderr
    assert set(listed(hf)) == {key.id, other.id}
    table = commands.run(hf, 'key', 'list').stdout
    assert key.id in table and 'active' in table and key.text not in table


def test_key_list__goes_on_past_a_page(holdfast):
    hf = holdfast(settings={})
    for _ in range(201):
        reply = control(hf, 'POST', '/api/v1/keys', b'{"name":"many"}')
        assert reply.status == 201
    assert len(listed(hf)) == 201


def control(hf, method, path, body=b'', headers=None):
    with commands.UnixConnection(os.path.join(hf.data, 'holdfast.sock')) as connection:
        return connection.request(method, path, {'Host': 'localhost', **(headers or {})}, body)


@pytest.mark.parametrize('args', [
    ['create', '--role', 'boss'], ['create', '--expires', 'soon'], ['create', '--expires', '0s'], ['create', '--tenant', 'a b'],
    ['create', '--name', ''], ['create', '--tool', 'read'], ['create', 'x'], ['revoke'], ['revoke', 'a', 'b'],
    ['list', '--name', 'x'], ['frobnicate'], []])
def test_key_command__refuses_what_makes_no_sense(holdfast, args):
    hf = holdfast(settings={}, start=False)
    done = commands.run(hf, 'key', *args)
    assert done.returncode == 2, (done.returncode, done.stderr)


def test_key_revoke__of_an_unknown_or_revoked_one_says_so(holdfast):
    hf = holdfast(settings={})
    key = create(hf)
    revoke(hf, key)
    for ident, told in ((key.id, 'no such key'), ('a' * 12, 'no key has the id or name')):
        done = commands.run(hf, 'key', 'revoke', ident)
        assert done.returncode == 1 and told in done.stderr


def test_socket__has_the_operations_and_nothing_of_control_but_the_pipe(holdfast):
    hf = holdfast(settings=REQUIRED)
    key = create(hf, '--role', 'member')
    assert control(hf, 'GET', '/api/v1/keys').status == 200
    for path in ('/control/keys', '/control/events?limit=1', '/control/status'):
        assert control(hf, 'GET', path).status == 404, path
    for path in ('/control/keys', '/control/pipe'):
        assert hf.request('GET', path, key.headers).status == 404, path
    for path in ('/api/v1/keys', '/api/v1/audit/events?limit=1', '/api/v1/system'):
        assert control(hf, 'GET', path, headers=key.headers).status == 403, path
    assert control(hf, 'POST', '/api/v1/keys', b'{"role":"boss"}').status == 400
    assert control(hf, 'POST', '/api/v1/keys', b'{"roles":"admin"}').status == 400


def test_key__ends_at_its_end_with_what_is_open(holdfast):
    hf = holdfast(settings=REQUIRED)
    key = create(hf, '--expires', '5s')
    client = key.client(hf).connect()
    read_to_end(standing(hf, client, key))
    reply = ask(hf, 'POST', '/mcp/sample', key.headers)
    assert reply.status == 401 and 'expired' in reply.json()['error']['message']


def test_key__ends_at_its_end_though_the_machine_slept_meanwhile(holdfast, tmp_path):
    clock = Slept(tmp_path)
    hf = holdfast(settings=REQUIRED, env=clock.env)
    key = create(hf, '--expires', '1h')
    stream = standing(hf, key.client(hf).connect(), key)
    clock.set(3601)
    read_to_end(stream)
    assert ask(hf, 'POST', '/mcp/sample', key.headers).status == 401


def test_last_use_is_shown(holdfast):
    hf = holdfast(settings=REQUIRED)
    key = create(hf)
    assert listed(hf)[key.id]['last_used_at'] is None
    ask(hf, 'POST', '/mcp/sample', key.headers)
    wait_for(lambda: listed(hf)[key.id]['last_used_at'], 'the last use')


# Whose is what.

def test_transports__belong_to_their_owner(holdfast):
    hf = holdfast(settings=REQUIRED)
    one, two = create(hf), create(hf)
    client = one.client(hf).connect()
    foreign = two.client(hf)
    foreign.session, foreign.version = client.session, client.version
    unknown = two.client(hf)
    unknown.session, unknown.version = 'A' * 43, client.version
    for thief in (foreign, unknown):
        thief.next_id = 5
    a, b = foreign.call('echo', {'message': 'x'}), unknown.call('echo', {'message': 'x'})
    assert a.status == b.status == 404 and a.raw == b.raw
    headers = {**MCP, **two.headers}
    assert hf.get('/mcp/sample', {**headers, 'Mcp-Session-Id': client.session}).status == 404
    assert hf.request('DELETE', '/mcp/sample', {**headers, 'Mcp-Session-Id': client.session}).status == 404
    assert client.call('echo', {'message': 'still'}).text == 'still'


def test_users__are_one_owner_with_several_keys_and_tenants_are_apart(holdfast):
    hf = holdfast(settings=REQUIRED)
    laptop, phone = create(hf, '--user', 'ann'), create(hf, '--user', 'ann')
    other = create(hf, '--user', 'ann', '--tenant', 'acme')
    client = laptop.client(hf).connect()
    counts = [client.call('counter').text]
    for key, status in ((phone, 200), (other, 404)):
        again = key.client(hf)
        again.session, again.version = client.session, client.version
        reply = again.call('counter')
        assert reply.status == status, reply
    assert laptop.row['user_id'] == phone.row['user_id'] != other.row['user_id']
    assert counts


def test_2024_posts__to_anothers_stream_do_not_reach_it(holdfast):
    hf = holdfast(settings=REQUIRED)
    one, two = create(hf), create(hf)
    stream, path = open_2024(hf, one)
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    assert hf.request('POST', path, two.headers, body).status != 202
    assert hf.request('POST', path, None, body).status == 401
    assert hf.request('POST', path, one.headers, body).status == 202
    assert json.loads(stream.event()['data'])['id'] == 1
    stream.close()


# Revocation: whatever is open ends within a second.

def standing(hf, client, key):
    connection = hf.connection()
    connection.send(connection.head_bytes('GET', client.path, {**MCP, **key.headers, 'Mcp-Session-Id': client.session,
                                                               'Accept': 'text/event-stream'}, b''))
    stream = harness.Stream(connection)
    assert stream.status == 200 and stream.is_sse
    return stream


def open_2024(hf, key):
    connection = hf.connection()
    connection.send(connection.head_bytes('GET', '/sse', {**key.headers, 'Accept': 'text/event-stream'}, b''))
    stream = harness.Stream(connection)
    event = stream.event()
    assert event['event'] == 'endpoint'
    return stream, event['data']


def read_to_end(stream):
    """Returns when it has ended; one that stays open fails by the deadline of its socket.  Gives the time."""
    while stream.event() is not None:
        pass
    return time.monotonic()


def test_revocation__ends_a_get_stream(holdfast):
    hf = holdfast(settings=REQUIRED)
    key, other = create(hf), create(hf)
    mine, theirs = key.client(hf).connect(), other.client(hf).connect()
    stream, stays = standing(hf, mine, key), standing(hf, theirs, other)
    revoke(hf, key)
    read_to_end(stream)
    assert ask(hf, 'POST', '/mcp/sample', key.headers).status == 401
    assert mine.call('echo', {'message': 'x'}).status == 401
    assert theirs.call('echo', {'message': 'x'}).text == 'x'
    stays.connection.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        read_to_end(stays)


def test_revocation__ends_a_listen(holdfast, scripted):
    server = scripted('new', http=True, era='modern', shape={'honours': {'toolsListChanged': True}})
    hf = holdfast({'new': server.entry}, REQUIRED)
    key = create(hf)
    client = key.client(hf, '/mcp/new', modern=True)
    stream = client.open('subscriptions/listen', {'notifications': {'toolsListChanged': True}})
    assert json.loads(stream.message())['method'] == 'notifications/subscriptions/acknowledged'
    revoke(hf, key)
    last = json.loads(stream.message())
    assert 'result' in last and stream.message() is None
    assert client.rpc('tools/list').status == 401


def test_revocation__ends_a_2024_stream(holdfast):
    hf = holdfast(settings=REQUIRED)
    key = create(hf)
    stream, path = open_2024(hf, key)
    revoke(hf, key)
    read_to_end(stream)
    assert hf.request('POST', path, key.headers, LIST).status == 401


def test_revocation__ends_a_stdio_relay(holdfast, monkeypatch):
    hf = holdfast(settings=REQUIRED)
    key = create(hf, '--tool', 'sample__echo')
    monkeypatch.setenv('HOLDFAST_KEY', key.text)
    pipe = Pipe(hf, server='sample').start_reading()
    monkeypatch.delenv('HOLDFAST_KEY')
    pipe.initialize()
    assert [t['name'] for t in pipe.rpc('tools/list')['result']['tools']] == ['echo']
    revoke(hf, key)
    assert pipe.receive() is None
    status, words = pipe.finish()
    assert status == 4 and 'HOLDFAST_KEY' in words
    pipe.process.stdin.close()


def test_stdio__with_a_bad_key_is_refused(holdfast, monkeypatch):
    hf = holdfast(settings={})
    monkeypatch.setenv('HOLDFAST_KEY', 'hf_nonsense')
    pipe = Pipe(hf, server='sample').start_reading()
    monkeypatch.delenv('HOLDFAST_KEY')
    assert pipe.finish()[0] == 3
    pipe.process.stdin.close()


def test_revocation__lets_a_call_under_way_finish(holdfast, scripted):
    server = scripted('up', http=True)
    hf = holdfast({'up': server.entry}, REQUIRED)
    key = create(hf)
    gate = server.gate()
    call = script(key.client(hf, '/mcp/up').connect(), {'say': 'begun'}, {'wait': gate}, {'result': '{"content":[]}'}, ident=9)
    server.wait_time('begun')
    revoke(hf, key)
    open_gate(gate)
    assert call.rest()[-1] == {'jsonrpc': '2.0', 'id': 9, 'result': {'content': []}}
    assert [e['outcome'] for e in commands.events(hf) if e['kind'] == 'outcome'] == ['ok']


def test_revocation__by_another_process_on_the_same_postgresql_counts_too(holdfast, cluster, tmp_path):
    env = {'DATABASE_URL': cluster.database()}
    for name in ('AUDIT', 'MASTER', 'TOKEN'):
        (tmp_path / name).write_text(os.urandom(32).hex())
        (tmp_path / name).chmod(0o600)
        env[f'HOLDFAST_{name}_KEY_FILE'] = str(tmp_path / name)
    one, other = (holdfast(settings=REQUIRED, env=env, start=False) for _ in range(2))
    commands.run(one, 'db', 'migrate', env=env)
    key = create(one, env=env)  # nobody runs: straight into the store
    for hf in (one, other):
        hf.start()
    client = key.client(other).connect()
    stream = standing(other, client, key)
    revoke(one, key)
    read_to_end(stream)
    assert ask(other, 'POST', '/mcp/sample', key.headers).status == 401
    assert ask(one, 'POST', '/mcp/sample', key.headers).status == 401


# Scopes and roles.

@pytest.fixture
def two(holdfast, scripted):
    """Two servers with the same tools."""
    tools = [{'name': n, 'inputSchema': {'type': 'object'}} for n in ('read_it', 'write_it')]
    shape = {'tools': tools, 'prompts': [{'name': 'p'}], 'resources': [{'uri': 'doc://x', 'name': 'x'}]}
    servers = {n: scripted(n, http=True, shape=shape).entry for n in ('files', 'mail')}
    return holdfast(servers, REQUIRED)


TOOLS = sorted(['counter', 'echo', 'read_it', 'script', 'write_it'])


def names(client):
    return sorted(t['name'] for t in client.rpc('tools/list').result['tools'])


def test_scope_of_servers__hides_the_others_everywhere(two):
    key = create(two, '--server', 'fi*')
    assert names(key.client(two, '/mcp').connect()) == ['files__' + n for n in TOOLS]
    hidden, unknown = key.client(two, '/mcp/mail').initialize(), key.client(two, '/mcp/nosuch').initialize()
    assert hidden.status == unknown.status == 404 and hidden.raw == unknown.raw
    client = key.client(two, '/mcp').connect()
    for method, params in (('tools/call', {'name': '%s__script'}), ('prompts/get', {'name': '%s__p'})):
        answers = [client.rpc(method, {'name': params['name'] % server}, ident=1).raw for server in ('mail', 'nosuch')]
        assert answers[0] == answers[1] and b'"error"' in answers[0]
    assert [p['name'] for p in client.rpc('prompts/list').result['prompts']] == ['files__p']
    modern = key.client(two, '/mcp/mail', modern=True).rpc('tools/list')
    assert modern.status == 404


def test_scope_of_tools__hides_them_in_lists_and_calls(two):
    key = create(two, '--tool', '*__read*', '--tool', 'mail__script')
    assert names(key.client(two, '/mcp').connect()) == ['files__read_it', 'mail__read_it', 'mail__script']
    assert names(key.client(two, '/mcp/files').connect()) == ['read_it']
    assert names(key.client(two, '/mcp/files', modern=True)) == ['read_it']
    for path, prefix in (('/mcp/files', ''), ('/mcp', 'files__')):
        client = key.client(two, path).connect()
        hidden, unknown = (client.call(prefix + tool, ident=4) for tool in ('write_it', 'nosuch'))
        assert hidden.raw == unknown.raw and hidden.code == -32602
        assert client.call(prefix + 'read_it').status == 200
    assert not [e for e in commands.events(two) if e['kind'] == 'intent' and e['tool'] == 'write_it']


def test_auditor__lists_but_does_not_call(two):
    key = create(two, '--role', 'auditor')
    for modern in (False, True):
        client = key.client(two, '/mcp/files', modern=modern)
        if not modern:
            client.connect()
        assert names(client) == TOOLS
        reply = client.call('read_it')
        assert reply.status == 403 and 'auditor' in reply.error['message']


# Keys in the path.

def test_path_keys__are_off_unless_configured(holdfast):
    hf = holdfast(settings=REQUIRED)
    key = create(hf)
    assert ask(hf, 'POST', '/mcp/k/' + key.text).status == 404
    hf = holdfast(settings={**REQUIRED, 'path_keys': True})
    key = create(hf)
    assert ask(hf, 'POST', '/mcp/k/' + key.text).status == 200
    assert ask(hf, 'POST', f'/mcp/k/{key.text}/sample').status == 200
    assert ask(hf, 'POST', '/mcp/k/hf_nonsense/sample').status == 401
    assert ask(hf, 'POST', f'/mcp/k/{key.text}/nosuch').status == 404
    client = Client(hf, f'/mcp/k/{key.text}/sample').connect()
    assert client.call('echo', {'message': 'x'}).text == 'x'
    plain = key.client(hf, '/mcp/sample')
    plain.session, plain.version = client.session, client.version
    assert plain.call('echo', {'message': 'y'}).text == 'y'
    stream = standing(hf, client, key)
    revoke(hf, key)
    read_to_end(stream)
    refused = ask(hf, 'POST', f'/mcp/k/{key.text}/sample')
    assert refused.status == 401 and key.text not in refused.header('WWW-Authenticate')
    hf.stop()
    assert_nowhere(hf, key.text.split('_', 2)[2])


# Beyond loopback.

def own_address():
    """An address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(('192.0.2.1', 9))
        except OSError:
            return None
        return None if probe.getsockname()[0].startswith('127.') else probe.getsockname()[0]


@pytest.mark.parametrize('settings', [{}, {'auth': 'none', 'trusted_proxies': ['127.0.0.1']}, {'auth': 'required'}],
                         ids=['nothing', 'no auth', 'no tls'])
def test_exposed__without_auth_and_a_private_line_does_not_start(exposed, settings):
    hf = exposed(settings, start=False)
    done = subprocess.run(hf.command(), cwd=hf.folder, capture_output=True, timeout=30, env=commands.command_env(hf), check=False)
    assert done.returncode == 7 and b'others can reach' in done.stderr


def test_exposed__with_tls_takes_keys_alone(exposed, ours):
    cert, key_file = ours.sign('exposed')
    hf = exposed({**REQUIRED, 'tls': {'cert': cert, 'key': key_file}, 'public_url': 'https://mcp.example'}, tls=ours.context())
    key = create(hf)
    assert ask(hf, 'POST', '/mcp/sample').status == 401
    assert ask(hf, 'POST', '/mcp/sample', key.headers).status == 200
    assert ask(hf, 'POST', '/mcp/sample', {**key.headers, 'Host': 'mcp.example'}).status == 200
    assert ask(hf, 'POST', '/mcp/sample', {**key.headers, 'Host': 'evil.example'}).status == 403
    assert key.client(hf).connect().call('echo', {'message': 'x'}).text == 'x'
    assert hf.get('/healthz').status == 200


def test_exposed__behind_proxies_only_those_may_connect(exposed):
    hf = exposed({**REQUIRED, 'trusted_proxies': ['10.9.8.7']})
    key = create(hf)
    for path in ('/healthz', '/mcp/sample'):
        assert ask(hf, 'GET', path, key.headers).status == 403, path
    hf = exposed({**REQUIRED, 'trusted_proxies': ['127.0.0.0/8'], 'public_url': 'https://mcp.example'})
    key = create(hf)
    assert ask(hf, 'POST', '/mcp/sample', key.headers).status == 200
    told = {**key.headers, 'Host': 'holdfast.internal', 'X-Forwarded-Host': 'mcp.example', 'X-Forwarded-Proto': 'https'}
    assert ask(hf, 'POST', '/mcp/sample', told).status == 200
    assert ask(hf, 'POST', '/mcp/sample', {**told, 'X-Forwarded-Host': 'evil.example'}).status == 403
    address = own_address()
    if address:  # the same listener, from an address that no proxy has
        with socket.create_connection((address, hf.port), 10) as stranger:
            stranger.sendall(b'GET /healthz HTTP/1.1\r\nHost: mcp.example\r\nConnection: close\r\n\r\n')
            assert stranger.recv(100).startswith(b'HTTP/1.1 403 ')


def test_forwarded_host__is_not_believed_from_strangers(holdfast):
    hf = holdfast(settings={'public_url': 'https://mcp.example'})
    assert ask(hf, 'POST', '/mcp/sample', {'Host': 'evil.example', 'X-Forwarded-Host': 'mcp.example'}).status == 403
    reply = ask(hf, 'POST', '/mcp', {'X-Forwarded-Host': 'evil.example', 'Authorization': 'Bearer x'})
    assert reply.status == 401 and 'evil' not in reply.header('WWW-Authenticate')


def test_forwarded_for__names_the_client_when_the_proxy_is_trusted(holdfast):
    for proxies, address in (([], '127.0.0.1'), (['127.0.0.1'], '203.0.113.5')):
        hf = holdfast(settings={'trusted_proxies': proxies})
        told = {**create(hf).headers, 'X-Forwarded-For': '198.51.100.1, 203.0.113.5'}
        reply = hf.request('POST', '/api/v1/sessions', told, b'{"edge_mcp_id":"e"}')
        assert reply.status == 201 and reply.json()['connection_metadata']['ip_address'] == address, reply


@pytest.mark.parametrize('lines, address', [
    (['198.51.100.1', '203.0.113.5'], '203.0.113.5'),
    (['203.0.113.5', '127.0.0.1'], '203.0.113.5'),
    (['198.51.100.1, ' * 200 + '203.0.113.5'], '203.0.113.5'),
    (['203.0.113.5, unknown'], 'unknown')])
def test_forwarded_for__in_several_lines_or_a_long_one_is_never_the_proxy(holdfast, lines, address):
    hf = holdfast(settings={'trusted_proxies': ['127.0.0.1']})
    body = b'{"edge_mcp_id":"e"}'
    with hf.connection() as connection:
        head = connection.head_bytes('POST', '/api/v1/sessions', create(hf).headers, body)
        told = ''.join(f'X-Forwarded-For: {line}\r\n' for line in lines).encode()
        connection.send(head[:-2] + told + b'\r\n' + body)
        reply = connection.read_response('POST')
    assert reply.status == 201 and reply.json()['connection_metadata']['ip_address'] == address, reply


@pytest.mark.parametrize('told', [{'X-Forwarded-For': '203.0.113.5'}, {'X-Forwarded-For': '127.0.0.1, 203.0.113.5'},
                                  {'X-Forwarded-For': 'unknown'}, {'Forwarded': 'for=203.0.113.5'}, {'Host': 'mcp.example'}])
def test_auth_none__is_not_for_what_a_proxy_brings_from_elsewhere(holdfast, told):
    for proxies in ([], ['127.0.0.1']):
        hf = holdfast(settings={'trusted_proxies': proxies, 'public_url': 'https://mcp.example'})
        for method, path in (('POST', '/mcp/sample'), ('GET', '/api/v1/sessions'), ('GET', '/metrics')):
            assert ask(hf, method, path, told).status == 401, path
            assert ask(hf, method, path, {'X-Forwarded-For': '127.0.0.1, ::1'}).status == 200, path
        assert ask(hf, 'POST', '/mcp/sample', {**told, **create(hf).headers}).status == 200
        assert ask(hf, 'GET', '/healthz', told).status == 200


# Tokens.

def test_token__identifies_its_bearer(holdfast, issuer):
    hf = holdfast(settings={**REQUIRED, 'jwt': issuer.settings(), 'tenants': {'acme': {}}})
    alice, bob = issuer.headers(), issuer.headers(sub='bob')
    client = Client(hf, headers=alice).connect()
    assert client.call('echo', {'message': 'x'}).text == 'x'
    again = Client(hf, headers=issuer.headers(jti='another token'))
    again.session, again.version = client.session, client.version
    assert again.call('echo', {'message': 'y'}).text == 'y'  # the same bearer
    other = Client(hf, headers=bob)
    other.session, other.version = client.session, client.version
    assert other.call('echo', {'message': 'z'}).status == 404
    assert ask(hf, 'POST', '/mcp/sample', issuer.headers(tenant='acme', sub='carol')).status == 200
    assert Client(hf, headers=issuer.headers(role='auditor', sub='dave')).connect().call('echo', {'message': 'x'}).status == 403


def test_token__of_several_issuers_is_of_the_tenants_and_roles_it_is_bound_to(holdfast, issuer, tmp_path):
    (tmp_path / 'partner').mkdir()
    partner = Issuer(tmp_path / 'partner', 'https://partner.example')
    hf = holdfast(settings={**REQUIRED, 'tenants': {'acme': {}, 'partner': {}}, 'jwt': [
        issuer.settings(tenants=['default', 'acme']), partner.settings(tenants=['partner'], roles=['member', 'auditor'])]})

    def status(who, **claims):
        return ask(hf, 'POST', '/mcp/sample', who.headers(**claims)).status

    assert status(issuer, sub='a', tenant='acme', role='admin') == 200
    assert status(partner, sub='b') == 200  # the only tenant it may name is its tokens' own
    assert status(partner, sub='c', tenant='partner', role='auditor') == 200
    assert status(partner, sub='d', tenant='default') == status(partner, sub='d', tenant='acme') == 401
    assert status(partner, sub='e', tenant='partner', role='admin') == 401
    assert status(issuer, sub='f', tenant='partner') == 401


def test_token__several_issuers_without_tenants_refuse_the_start(holdfast, issuer):
    hf = holdfast(start=False, settings={**REQUIRED, 'jwt': [issuer.settings(), issuer.settings(issuer='https://other')]})
    done = commands.run(hf, 'up', '--config', hf.config_file, '--listen', '127.0.0.1:0')
    assert done.returncode == 7 and '"tenants": ["default"]' in done.stderr, done.stderr


def test_token__of_an_unknown_tenant_is_refused(holdfast, issuer):
    hf = holdfast(settings={**REQUIRED, 'jwt': issuer.settings()})
    headers = issuer.headers(tenant='acme')
    reply = ask(hf, 'POST', '/mcp/sample', headers)
    assert reply.status == 401 and reply.json()['error']['message'] == 'tenant not found'
    create(hf, '--tenant', 'acme')  # and with its first key it is known
    wait_for(lambda: ask(hf, 'POST', '/mcp/sample', headers).status == 200, 'the tenant to be known')


@pytest.mark.parametrize('claims', [{'iss': 'https://other.example'}, {'aud': 'other'}, {'exp': 1}, {'nbf': 9999999999},
                                    {'role': 'boss'}, {'sub': None}, {'tenant': '../x'}], ids=str)
def test_token__that_does_not_hold_is_refused(holdfast, issuer, claims):
    hf = holdfast(settings={**REQUIRED, 'jwt': issuer.settings()})
    reply = ask(hf, 'POST', '/mcp/sample', issuer.headers(**claims))
    assert reply.status == 401 and 'invalid_token' in reply.header('WWW-Authenticate'), reply


def test_token__of_another_key_is_refused_until_the_issuer_publishes_it(holdfast, issuer, tmp_path):
    server = KeyServer(issuer)
    hf = holdfast(settings={**REQUIRED, 'jwt': issuer.settings(jwks=server.url)})
    try:
        assert wait_for(lambda: ask(hf, 'POST', '/mcp/sample', issuer.headers()).status == 200, 'the keys to be fetched')
        (tmp_path / 'new').mkdir()
        other = Issuer(tmp_path / 'new', issuer.name, kid='two')
        other.file = issuer.file
        assert ask(hf, 'POST', '/mcp/sample', other.headers()).status == 401
        assert server.asked >= 1
    finally:
        server.close()


def test_token__ends_with_what_is_open(holdfast, issuer):
    hf = holdfast(settings={**REQUIRED, 'jwt': issuer.settings()})
    brief = keys.Key({'key': issuer.token(exp=int(time.time()) + 5), 'id': ''})
    client = brief.client(hf).connect()
    read_to_end(standing(hf, client, brief))
    assert client.call('echo', {'message': 'x'}).status == 401


def test_token__streams_end_when_their_issuer_is_dropped(holdfast, issuer):
    hf = holdfast(settings={**REQUIRED, 'jwt': issuer.settings()})
    bearer_of = keys.Key({'key': issuer.token(), 'id': ''})
    key = create(hf)
    stream, stays = (standing(hf, one.client(hf).connect(), one) for one in (bearer_of, key))
    hf.write_config({'mcpServers': {}, 'holdfast': REQUIRED})
    hf.process.send_signal(signal.SIGHUP)
    read_to_end(stream)
    assert ask(hf, 'POST', '/mcp/sample', bearer_of.headers).status == 401
    stays.connection.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        read_to_end(stays)


def wrong(hf, path, n):
    """Answers to n requests with a credential of its own each, on one connection, sent in one go."""
    method, body = ('POST', b'{"jsonrpc":"2.0","id":1,"method":"ping"}') if path.startswith('/mcp') else ('GET', b'')
    with hf.connection() as connection:
        for i in range(n):
            headers = {**MCP, 'Authorization': f'Bearer hf_wrong_{time.monotonic_ns()}_{i}'}
            connection.send(connection.head_bytes(method, path, headers, body) + body)
        return [connection.read_response(method) for _ in range(n)]


@pytest.mark.parametrize('path', ['/api/v1/sessions', '/mcp/sample', '/sse', '/metrics'])
def test_throttle__an_address_whose_credentials_fail_has_to_wait_and_a_proved_one_has_not(holdfast, path):
    hf = holdfast(settings=REQUIRED)
    good = create(hf)
    assert hf.request('GET', '/api/v1/sessions', good.headers).status == 200
    replies = wrong(hf, path, 180)
    statuses = [r.status for r in replies]
    assert set(statuses) == {401, 429} and statuses.index(429) >= 100, statuses
    held = replies[statuses.index(429)]
    assert held.header('retry-after') == '1' and b'too many invalid credentials' in held.body
    assert hf.request('GET', '/api/v1/sessions', good.headers).status == 200
    wait_for(lambda: wrong(hf, path, 1)[0].status == 401, 'the address to be heard again', 5)


def test_throttle__a_key_that_holds_passes_from_an_address_whose_credentials_fail(holdfast):
    hf = holdfast(settings=REQUIRED)
    first, second = create(hf), create(hf)
    forged = [f'hf_{i:012d}_' + 'x' * 43 for i in range(300)]
    for good in (first, second):  # neither was ever used before
        with hf.connection() as connection:
            for text in [*forged, good.text]:
                connection.send(connection.head_bytes('GET', '/api/v1/sessions', bearer(text), b''))
            statuses = [connection.read_response('GET').status for _ in range(301)]
        assert statuses[-1] == 200 and 429 in statuses and set(statuses[:-1]) <= {401, 429}, statuses


def test_keys__made_and_revoked_are_events_of_their_tenants_chain(holdfast):
    hf = holdfast(settings=REQUIRED)
    one, other = create(hf), create(hf, '--tenant', 'acme')
    revoke(hf, one)
    assert commands.run(hf, 'key', 'revoke', one.id).returncode != 0  # not told a second time
    told = [(e['method'], e['owner'], e['tenant'], e['outcome']) for e in commands.events(hf) if e['kind'] == 'system']
    assert told == [('key/create', 'key:' + one.id, 'default', 'ok'), ('key/create', 'key:' + other.id, 'acme', 'ok'),
                    ('key/revoke', 'key:' + one.id, 'default', 'ok')]
    assert commands.run(hf, 'audit', 'verify').returncode == 0
    assert one.text not in str(commands.events(hf))
