# SPDX-License-Identifier: Apache-2.0
"""TLS on both sides: the listener (files, versions, reload, endings) and https:// upstreams (whom we trust,
and what is said of those we do not).  Certificates are made on the spot by the openssl command."""
import concurrent.futures
import contextlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading

import pytest

from commands import run
from harness import Connection, HttpServer, Reply, dump
from watchers import Sse, WebSocket

NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']


class Authority:
    """A private CA, and the certificates it signs."""

    def __init__(self, folder, name):
        self.folder, self.name = str(folder), name
        self.cert, self.key = self.path(name + '-ca.pem'), self.path(name + '-ca.key')
        self.openssl('req', '-x509', *NEW_KEY, '-keyout', self.key, '-out', self.cert, '-days', '2', '-subj', f'/CN={name} CA')

    def path(self, name):
        return os.path.join(self.folder, name)

    def openssl(self, *args):
        subprocess.run(['openssl', *args], check=True, capture_output=True, timeout=30)

    def sign(self, name, names='DNS:localhost,IP:127.0.0.1', days=2):
        """(certificate file, key file); days=-1 has expired since yesterday."""
        cert, key, asked, extra = (self.path(f'{self.name}-{name}.{kind}') for kind in ('pem', 'key', 'csr', 'ext'))
        with open(extra, 'w', encoding='utf-8') as file:
            file.write(f'subjectAltName={names}\nextendedKeyUsage=serverAuth\n')
        self.openssl('req', '-new', *NEW_KEY, '-keyout', key, '-out', asked, '-subj', f'/CN={name}')
        self.openssl('x509', '-req', '-in', asked, '-CA', self.cert, '-CAkey', self.key, '-days', str(days),
                     '-extfile', extra, '-out', cert)
        os.chmod(key, 0o600)
        return cert, key

    def context(self):
        """What a client that trusts this authority uses."""
        context = ssl.create_default_context(cafile=self.cert)
        context.set_alpn_protocols(['h2', 'http/1.1'])
        return context


@pytest.fixture(scope='module', name='ours')
def fixture_ours(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp('ours'), 'ours')


@pytest.fixture(scope='module', name='good')
def fixture_good(ours):
    return ours.sign('good')


@pytest.fixture(scope='module', name='expired')
def fixture_expired(ours):
    return ours.sign('expired', days=-1)


@pytest.fixture(scope='module', name='theirs')
def fixture_theirs(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp('theirs'), 'theirs')


@pytest.fixture(name='secure')
def fixture_secure(holdfast, ours, good):
    """secure(servers): Holdfast with TLS, and talked to over TLS."""
    def make(servers=None, **options):
        return holdfast(servers or {}, {'tls': {'cert': good[0], 'key': good[1]}}, tls=ours.context(), **options)
    return make


def settings(cert, key):
    return {'tls': {'cert': cert, 'key': key}}


# The listener.

@pytest.mark.parametrize('version', [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_listener__serves_tls_and_says_so(secure, version):
    hf = secure()
    hf.tls.minimum_version = hf.tls.maximum_version = version
    with hf.connection() as connection:
        assert connection.socket.version() == version.name.replace('_', '.')
        assert connection.socket.selected_alpn_protocol() == 'http/1.1'
        assert connection.socket.compression() is None
        assert connection.request('GET', '/healthz').status == 200
    client = hf.client().connect()
    assert client.call('echo', {'message': 'over TLS'}).text == 'over TLS'
    made = hf.request('POST', '/api/v1/sessions', {}, b'{"edge_mcp_id":"e"}').json()
    assert made['connection_metadata']['tls_version'] == version.name.replace('_', '.')
    urls = [line['url'] for line in hf.log() if line.get('msg') == 'serving']
    assert urls == [f'https://127.0.0.1:{hf.port}/mcp/sample']


def unverified(lowest, highest):
    """A client that takes any certificate, for questions that are not about it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers('ALL:@SECLEVEL=0')
    context.minimum_version, context.maximum_version = lowest, highest
    return context


@pytest.mark.filterwarnings('ignore::DeprecationWarning')
def test_listener__refuses_tls_1_1(secure):
    hf = secure()
    with pytest.raises(ssl.SSLError, match='(?i)alert.protocol.version'):
        Connection(hf.port, tls=unverified(ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1))


def test_listener__refuses_ciphers_without_forward_secrecy(secure):
    hf = secure()
    context = unverified(ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)
    context.set_ciphers('AES128-GCM-SHA256:ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0')
    with pytest.raises(ssl.SSLError, match='(?i)handshake.failure'):
        Connection(hf.port, tls=context)


def test_listener__refuses_clients_that_want_another_protocol(secure, ours):
    hf = secure()
    context = ours.context()
    context.set_alpn_protocols(['h2'])
    with pytest.raises(ssl.SSLError, match='(?i)no.application.protocol'):
        Connection(hf.port, tls=context)


def test_listener__refuses_renegotiation(secure):
    hf = secure()
    with subprocess.Popen(['openssl', 's_client', '-tls1_2', '-connect', f'127.0.0.1:{hf.port}'], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
        try:
            read_until(client, b'Verify return code')  # the handshake is over
            client.stdin.write(b'R\n')
            client.stdin.flush()
            read_until(client, b'RENEGOTIATING')
            read_until(client, b'no renegotiation')  # its input is open until it has the answer
        finally:
            client.kill()


def read_until(process, words):
    """Reads what the process prints, up to a line that holds the words."""
    seen = []
    for line in process.stdout:
        seen.append(line)
        if words in line:
            return
    raise AssertionError(f'no {words!r} in {seen}')


def test_listener__tells_plain_http_to_use_https(secure):
    hf = secure()
    with Connection(hf.port) as plain:
        reply = plain.request('POST', '/mcp/sample', body=dump({'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}).encode())
        assert reply.status == 400 and b'https://' in reply.body
        assert plain.is_closed()
    with Connection(hf.port) as noise:
        noise.send(b'\x00' * 100)
        assert noise.is_closed()


def test_listener__plain_refuses_tls_with_400(holdfast, ours):
    hf = holdfast()
    hello = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        ours.context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname='localhost').do_handshake()
    with Connection(hf.port) as connection:
        assert connection.raw(hello.read()).startswith(b'HTTP/1.1 400 ')


def test_listener__ends_with_a_goodbye_on_both_sides(secure, ours):
    hf = secure()

    def connect():
        connection = Connection(hf.port)
        connection.socket = ours.context().wrap_socket(connection.socket, server_hostname='localhost',
                                                       suppress_ragged_eofs=False)
        return connection
    with connect() as theirs:
        assert theirs.request('GET', '/healthz', {'Connection': 'close'}).status == 200
        assert theirs.socket.recv(1) == b''  # would raise without close_notify
    with connect() as mine:
        assert mine.request('GET', '/healthz').status == 200
        mine.socket.unwrap()  # waits for theirs in answer to ours
    with connect() as idle:
        assert idle.request('GET', '/healthz').status == 200
        hf.stop()
        assert idle.socket.recv(1) == b''


def test_listener__works_with_curl(secure, ours):
    if not shutil.which('curl'):
        pytest.skip('curl is not installed')
    hf = secure()
    body = dump({'jsonrpc': '2.0', 'id': 7, 'method': 'tools/call', 'params': {'name': 'echo', 'arguments': {'message': 'curl'}}})
    done = subprocess.run(['curl', '-sS', '--cacert', ours.cert, '-H', 'Content-Type: application/json', '-d', body,
                           f'https://localhost:{hf.port}/mcp/sample'], capture_output=True, timeout=30, check=False)
    assert done.returncode == 0 and b'"id":7' in done.stdout and b'curl' in done.stdout, done


# Volume.

def test_listener__carries_large_bodies_both_ways(secure, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    hf = secure({'up': entry})
    text = ''.join(chr(0x61 + i * 7 % 26) for i in range(3 << 20))
    client = hf.client('/mcp/up').connect()
    for _ in range(2):
        assert client.call('echo', {'text': text}).text == text


def test_listener__waits_for_readers_that_are_slow(secure, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = secure({'up': entry})
    size, at_once = 3 << 20, 4
    client = hf.client('/mcp/up').connect()
    streams = []
    for n in range(at_once):
        params = {'name': 'big', 'arguments': {'n': size + n}}
        connection = hf.connection()
        body = dump({'jsonrpc': '2.0', 'id': n, 'method': 'tools/call', 'params': params}).encode()
        connection.send(connection.head_bytes('POST', client.path, client.headers_for('tools/call', params), body) + body)
        streams.append(connection)
    record.wait('tools/call', at_once)
    assert hf.get('/healthz').status == 200  # nobody else waits with them
    for n, connection in enumerate(streams):
        with connection:
            assert len(connection.read_response().json()['result']['content'][0]['text']) == size + n


def test_listener__streams_events(secure, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    client = secure({'up': entry}).client('/mcp/up').connect()
    with contextlib.closing(client.open('tools/call', {'name': 'slow', 'arguments': {'steps': 200, 'delay_ms': 1},
                                                       '_meta': {'progressToken': 'p'}})) as stream:
        assert stream.is_sse
        reply = Reply(stream)
    steps = [m['params']['progress'] for m in reply.before]
    assert steps and steps == sorted(steps) and reply.text == '200 steps'


@pytest.mark.parametrize('transport', [Sse, WebSocket])
def test_listener__carries_live_events(secure, stdio_server, transport):
    entry, _ = stdio_server('up', handles='never', share='all')
    hf = secure({'up': entry})
    line = transport(hf, after='0')
    with hf.client('/mcp/up') as client:
        client.connect()
        for _ in range(5):
            client.call('echo', {'text': 'x' * 2000})
    found = line.events()
    kinds = [next(found)['kind'] for _ in range(11)]
    assert kinds.count('outcome') == 5
    line.close()


def test_listener__serves_many_at_once(secure):
    hf = secure()

    def call(n):
        return hf.client().call('echo', {'message': str(n)}).text
    with concurrent.futures.ThreadPoolExecutor(max_workers=16) as pool:
        assert list(pool.map(call, range(100))) == [str(n) for n in range(100)]


# Files of the listener.

def bad_files(ours, good, expired, folder):
    """name: (cert, key, what is said)."""
    other = ours.sign('other')
    opened, locked, garbage = (os.path.join(folder, name) for name in ('open.key', 'locked.key', 'garbage.pem'))
    shutil.copy(good[1], opened)
    os.chmod(opened, 0o644)
    ours.openssl('ec', '-in', good[1], '-aes128', '-passout', 'pass:secret', '-out', locked)
    os.chmod(locked, 0o600)
    with open(garbage, 'w', encoding='utf-8') as file:
        file.write('not a certificate\n')
    return {
        'missing certificate': ('/nowhere/cert.pem', good[1], 'there is no file /nowhere/cert.pem'),
        'missing key': (good[0], '/nowhere/key.pem', 'there is no file /nowhere/key.pem'),
        'folder': (folder, good[1], 'is not a regular file'),
        'garbage': (garbage, good[1], f'cannot use the certificate {garbage}'),
        'open key': (good[0], opened, f'run chmod o= {opened}'),
        'locked key': (good[0], locked, 'has a passphrase'),
        'other key': (good[0], other[1], f'the key {other[1]} does not belong to the certificate {good[0]}'),
        'expired': (*expired, f'the certificate {expired[0]} has expired on '),
    }


@pytest.mark.parametrize('name', ['missing certificate', 'missing key', 'folder', 'garbage', 'open key', 'locked key',
                                  'other key', 'expired'])
def test_files__that_cannot_be_used_refuse_the_start_with_7(holdfast, ours, good, expired, tmp_path, name):
    cert, key, text = bad_files(ours, good, expired, str(tmp_path))[name]
    hf = holdfast({}, settings(cert, key), start=False)
    up = run(hf, 'up', '--config', hf.config_file, '--listen', '127.0.0.1:0')
    assert up.returncode == 7 and text in up.stderr and 'holdfast.tls' in up.stderr, up
    check = subprocess.run([*hf.command()[:1], 'config', 'check', '--config', hf.config_file], capture_output=True,
                           timeout=30, check=False)
    assert check.returncode == 7 and text in check.stderr.decode(), check
    assert not os.path.exists(hf.data)


@pytest.mark.skipif(os.geteuid() == 0, reason='root reads every file')
def test_files__that_may_not_be_read_refuse_the_start_with_7(holdfast, good, tmp_path):
    key = tmp_path / 'closed.key'
    shutil.copy(good[1], key)
    key.chmod(0)
    hf = holdfast({}, settings(good[0], str(key)), start=False)
    done = run(hf, 'up', '--config', hf.config_file)
    assert done.returncode == 7 and 'Permission denied' in done.stderr, done


def serial(connection):
    return connection.socket.getpeercert()['serialNumber']


def reload(hf, wanted):
    since = len(hf.log())
    hf.process.send_signal(signal.SIGHUP)
    return hf.wait_log(lambda l: l.get('msg', '').startswith(wanted), wanted, since)


def test_reload__gives_new_connections_the_new_certificate(holdfast, ours, expired, tmp_path):
    cert, key = str(tmp_path / 'live.pem'), str(tmp_path / 'live.key')

    def install(pair):
        shutil.copy(pair[0], cert)
        shutil.copy(pair[1], key)
    first, second = ours.sign('first'), ours.sign('second')
    install(first)
    hf = holdfast({}, settings(cert, key), tls=ours.context())
    with hf.connection() as old:
        before = serial(old)
        install(second)
        reload(hf, 'configuration reloaded')
        with hf.connection() as fresh:
            after = serial(fresh)
            assert after != before
            assert fresh.request('GET', '/healthz').status == 200
        assert old.request('GET', '/healthz').status == 200
        install((second[0], first[1]))
        assert 'does not belong' in reload(hf, 'the configuration was not reloaded')['why']
        install(expired)
        assert 'has expired on' in reload(hf, 'the configuration was not reloaded')['why']
        os.unlink(key)
        assert f'there is no file {key}' in reload(hf, 'the configuration was not reloaded')['why']
        with hf.connection() as still:
            assert serial(still) == after
        assert old.request('GET', '/healthz').status == 200


def expiry(hf):
    (line,) = [l for l in hf.get('/metrics').body.decode().splitlines() if l.startswith('holdfast_certificate_expires_timestamp_seconds ')]
    return int(line.split()[1])


def not_after(pair):
    text = subprocess.run(['openssl', 'x509', '-in', pair[0], '-noout', '-enddate'], capture_output=True, text=True, check=True).stdout
    return int(ssl.cert_time_to_seconds(text.strip().removeprefix('notAfter=')))


def test_metric__is_the_expiry_of_the_certificate_in_use(holdfast, ours, tmp_path):
    cert, key = str(tmp_path / 'live.pem'), str(tmp_path / 'live.key')
    pairs = ours.sign('short', days=2), ours.sign('long', days=20)
    assert not_after(pairs[1]) > not_after(pairs[0])
    for number, pair in enumerate(pairs):
        shutil.copy(pair[0], cert)
        shutil.copy(pair[1], key)
        if number:
            reload(hf, 'configuration reloaded')
        else:
            hf = holdfast({}, settings(cert, key), tls=ours.context())
        assert expiry(hf) == not_after(pair)


def test_reload__cannot_turn_tls_off(secure):
    hf = secure()
    hf.write_config({'mcpServers': {}, 'holdfast': {}})
    reload(hf, '"tls" is turned on or off only with a restart')
    assert hf.get('/healthz').status == 200


# Upstreams.

@pytest.fixture(name='https_server')
def fixture_https_server(tmp_path):
    """https_server(pair, *args): a running recording upstream with that certificate."""
    made = []

    def make(pair, *args):
        made.append(HttpServer(tmp_path, f'web{len(made)}', '--tls', *pair, *args).start())
        return made[-1]
    yield make
    for one in made:
        one.stop()


def test_upstream__with_a_private_authority_is_used(holdfast, ours, good, https_server):
    web = https_server(good)
    hf = holdfast({'web': web.entry(tls={'ca': ours.cert}, handles='never')})
    client = hf.client('/mcp/web').connect()
    assert [client.call('counter').text for _ in range(3)] == ['1', '2', '3']
    text = 'large ' * 300000
    assert client.call('echo', {'text': text}).text == text
    assert len(client.call('big', {'n': 8 << 20}).text) == 8 << 20


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_upstream__streams_events_over_tls(holdfast, ours, good, https_server, era):
    web = https_server(good, '--sse', '--era', era)
    hf = holdfast({'web': web.entry(tls={'ca': ours.cert})})
    client = hf.client('/mcp/web').connect()
    reply = client.call('slow', {'steps': 50}, meta={'progressToken': 'p'})
    assert reply.text == '50 steps' and reply.before


REFUSED = {
    'expired': (lambda ours, theirs: ours.sign('old', days=-1), 'localhost', 'certificate has expired): have it renewed'),
    'wrong host': (lambda ours, theirs: ours.sign('elsewhere', 'DNS:other.example'), 'localhost', 'hostname mismatch'),
    'wrong address': (lambda ours, theirs: ours.sign('named', 'DNS:localhost'), '127.0.0.1', 'IP address mismatch'),
    'wrong authority': (lambda ours, theirs: theirs.sign('foreign'), 'localhost',
                        'unable to get local issuer certificate): set "tls": {"ca": FILE}'),
    'self-signed': (lambda ours, theirs: (theirs.cert, theirs.key), 'localhost',
                    'self-signed certificate): set "tls": {"ca": FILE}'),
}


@pytest.mark.parametrize('name', REFUSED)
def test_upstream__certificate_that_is_refused_is_named_with_the_reason(holdfast, ours, theirs, https_server, name):
    make, host, text = REFUSED[name]
    web = https_server(make(ours, theirs))
    hf = holdfast({'web': web.entry(url=f'https://{host}:{web.port}/mcp', tls={'ca': ours.cert})})
    for path in ('tools/list', 'initialize'):
        message = hf.client('/mcp/web').rpc(path, {'protocolVersion': '2025-11-25', 'capabilities': {},
                                                   'clientInfo': {'name': 'c', 'version': '1'}}).error['message']
        assert f'web: the certificate of {host} is refused ({text}' in message, message
    assert not web.record.messages()


def test_upstream__addresses_are_checked_against_the_certificate(holdfast, ours, good, https_server):
    web = https_server(good)
    hf = holdfast({'web': web.entry(url=f'https://127.0.0.1:{web.port}/mcp', tls={'ca': ours.cert})})
    assert hf.client('/mcp/web').call('echo', {'text': 'by address'}).text.startswith('by address')


@pytest.mark.parametrize('variable', ['SSL_CERT_FILE', 'SSL_CERT_DIR', None])
def test_upstream__system_authorities_can_be_named_by_the_environment(holdfast, ours, good, https_server, tmp_path, variable):
    web = https_server(good)
    folder = tmp_path / 'authorities'
    folder.mkdir()
    shutil.copy(ours.cert, folder / 'ca.pem')
    ours.openssl('rehash', str(folder))
    env = {variable: ours.cert if variable == 'SSL_CERT_FILE' else str(folder)} if variable else {}
    reply = holdfast({'web': web.entry()}, env=env).client('/mcp/web').rpc('tools/list')
    if variable:
        assert reply.result['tools']
    else:
        assert 'unable to get local issuer certificate' in reply.error['message']


def test_upstream__own_authority_replaces_those_of_the_system(holdfast, ours, theirs, good, https_server):
    web = https_server(good)
    hf = holdfast({'web': web.entry(tls={'ca': theirs.cert})}, env={'SSL_CERT_FILE': ours.cert})
    assert 'unable to get local issuer' in hf.client('/mcp/web').rpc('tools/list').error['message']


def test_upstream__that_speaks_plain_http_is_said_to(holdfast, http_server):
    web = http_server()
    hf = holdfast({'web': {'url': f'https://127.0.0.1:{web.port}/mcp'}})
    assert 'does not speak TLS' in hf.client('/mcp/web').rpc('tools/list').error['message']


class Listener:
    """Accepts, shakes hands, notes what the client said in its hello, and closes."""

    def __init__(self, pair, lowest=ssl.TLSVersion.TLSv1_2, highest=ssl.TLSVersion.TLSv1_3):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.set_ciphers('ALL:@SECLEVEL=0')
        self.context.minimum_version, self.context.maximum_version = lowest, highest
        self.context.load_cert_chain(*pair)
        self.context.set_alpn_protocols(['h2', 'http/1.1'])
        self.context.sni_callback = lambda _, name, __: self.names.append(name)
        self.names, self.protocols, self.errors = [], [], []
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                with contextlib.closing(connection):
                    try:
                        with self.context.wrap_socket(connection, server_side=True) as shaken:
                            self.protocols.append(shaken.selected_alpn_protocol())
                    except OSError as e:
                        self.errors.append(str(e))


def test_upstream__hello_has_the_name_and_http_1_1(holdfast, ours, good):
    listener = Listener(good)
    hf = holdfast({'web': {'url': f'https://localhost:{listener.port}/mcp', 'tls': {'ca': ours.cert}}})
    assert 'web: ' in hf.client('/mcp/web').rpc('tools/list').error['message']
    assert set(listener.names) == {'localhost'} and set(listener.protocols) == {'http/1.1'}


@pytest.mark.filterwarnings('ignore::DeprecationWarning')
def test_upstream__of_tls_1_1_is_refused(holdfast, ours, good):
    listener = Listener(good, ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1)
    hf = holdfast({'web': {'url': f'https://localhost:{listener.port}/mcp', 'tls': {'ca': ours.cert}}})
    message = hf.client('/mcp/web').rpc('tools/list').error['message']
    assert 'web: ' in message and 'TLS 1.2' in message, message
    assert not listener.protocols and listener.errors


@pytest.mark.parametrize('tls,text', [
    ({'verify': False}, 'unknown key "verify"; the keys here are ca'),
    ({'ca': '/nowhere/ca.pem'}, 'mcpServers.web.tls: there is no file /nowhere/ca.pem'),
    ({'ca': os.path.abspath(__file__)}, 'mcpServers.web.tls: cannot use the certificate authorities in '),
])
def test_upstream__bad_option_refuses_the_start_with_7(holdfast, tls, text):
    hf = holdfast({'web': {'url': 'https://localhost/mcp', 'tls': tls}}, start=False)
    done = run(hf, 'up', '--config', hf.config_file)
    assert done.returncode == 7 and text in done.stderr, done
