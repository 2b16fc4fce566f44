# SPDX-License-Identifier: Apache-2.0
"""What a request or a server says is data: it starts no program, chooses no address to connect to, and is read by
nobody else.  strace sees what Holdfast and its children really execute and connect to, from their start on."""
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import harness
import keys
import openapi
from commands import outcomes
from editors import Agent, Folder, failed
from harness import Connection, wait_for
from test_limits import begin_modern
from test_operate import metrics


class Traced(harness.Holdfast):
    """Holdfast under strace, with the same process id; leaks cannot be looked for under it."""

    def __init__(self, folder, config, trace):
        super().__init__(folder, config, env={'ASAN_OPTIONS': 'detect_leaks=0:exitcode=99'})
        self.trace, self.trace_log = trace, os.path.join(str(folder), 'strace.log')

    def command(self):
        return ['strace', '-D', '-f', '-v', '-s', '4096', '--seccomp-bpf', '-o', self.trace_log, *self.trace, *super().command()]

    def seen(self, call):
        """The lines of a system call that succeeded or is still going on."""
        with open(self.trace_log, encoding='utf-8', errors='replace') as file:
            return [line for line in file if re.search(rf'\b{call}\(', line) and '= -1 ENOENT' not in line]

    def executed(self):
        return [re.search(r'execve\("([^"]*)"', line).group(1) for line in self.seen('execve')]

    def ports(self):
        """Where TCP connections went."""
        return {int(port) for line in self.seen('connect') for port in re.findall(r'sin6?_port=htons\((\d+)\)', line)}


@pytest.fixture
def traced(tmp_path):
    """traced(servers, settings): a running Holdfast under strace."""
    made = []
    if not shutil.which('strace'):
        pytest.skip('there is no strace')
    tried = subprocess.run(['strace', '-D', '-f', '--seccomp-bpf', '-e', 'trace=execve', '-o', '/dev/null', 'true'], capture_output=True, check=False)
    if tried.returncode != 0 or tried.stderr:
        pytest.skip(f'strace cannot trace here: {tried.stderr.decode().strip()}')

    def make(servers=None, settings=None, trace=('-e', 'trace=execve,connect')):
        folder = tmp_path / f'traced-{len(made)}'
        folder.mkdir()
        made.append(Traced(folder, {'mcpServers': servers or {}, 'holdfast': settings or {}}, trace))
        return made[-1].start()
    yield make
    for one in made:
        one.close()


@pytest.fixture
def canary():
    """A listener that nobody should find: (its port, who came?)."""
    with socket.create_server(('127.0.0.1', 0)) as listener:
        listener.setblocking(False)

        def has_guest():
            try:
                listener.accept()[0].close()
                return True
            except BlockingIOError:
                return False
        port = listener.getsockname()[1]
        yield port, has_guest
        with socket.create_connection(('127.0.0.1', port)):  # it would have told
            assert has_guest()


def filled(value, word):
    """The same JSON with the word for every text."""
    if isinstance(value, dict):
        return {name: filled(member, word) for name, member in value.items()}
    if isinstance(value, list):
        return [filled(item, word) for item in value]
    return word if isinstance(value, str) else value


def send_everywhere(hf, word):
    """The word in every parameter and member of the REST interface, and in every text of MCP that a client chooses."""
    extra = {'command': word, 'args': [word], 'env': {'LD_PRELOAD': word, word: word}, 'url': word, 'server_url': word}
    for op in openapi.document().operations:
        path = op.target(**{p['name']: word for p in op.params('path')})
        query = urllib.parse.urlencode({p['name']: word for p in op.params('query')})
        headers = {p['name']: urllib.parse.quote(word) for p in op.params('header')}
        for body in [filled(op.example, word), {**op.example, **extra}] if op.body else [None]:
            data = b'' if body is None else json.dumps(body).encode()
            assert hf.request(op.method, path + ('?' + query if query else ''), headers, data).status < 500, op.id
    ascii_word = urllib.parse.quote(word, safe=" ;$()`|/=:.'[]@")
    for modern in (False, True):
        client = hf.client('/mcp/up', modern=modern, headers={'mcp-client-id': ascii_word, 'X-Forwarded-Host': ascii_word})
        if not modern:
            client.initialize(name=word, capabilities={'experimental': {word: extra}})
        for method, params in (('tools/call', {'name': word, 'arguments': {}}), ('prompts/get', {'name': word}),
                               ('resources/read', {'uri': word}), ('tools/list', {'cursor': word}), (word, extra),
                               ('completion/complete', {'ref': {'type': 'ref/prompt', 'name': word}, 'argument': {'name': word, 'value': word}})):
            assert client.rpc(method, params, headers={'Mcp-Name': None, 'Mcp-Method': None}).status < 500
        shown = client.call('env', extra, meta={'session_id': word, **extra})
        assert shown.status == 200 and word not in str(shown.json.get('result')), shown.json
    for path in ('/mcp/' + urllib.parse.quote(word, safe=''), '/mcp/up?' + urllib.parse.urlencode({'url': word, 'server': word, 'config': word})):
        assert hf.client(path).rpc('tools/list').status < 500


def test_commands__come_from_the_configuration_alone(traced, stdio_server, tmp_path):
    pwned = tmp_path / 'PWNED'
    entry, record = stdio_server('up')
    hf = traced({'up': entry})
    assert hf.client('/mcp/up').connect().call('env').text
    for word in (f';touch {pwned}', f'$(touch {pwned})', f'`touch {pwned}`', f'|touch {pwned}', f'LD_PRELOAD={pwned}', f'--exec=touch {pwned}'):
        send_everywhere(hf, word)
    ours, servers = 0, 0
    for line in hf.seen('execve'):
        assert str(pwned) not in line, line  # with its environment
        is_server = json.dumps([entry['command'], *entry['args']]) in line
        servers, ours = servers + is_server, ours + (not is_server)
        assert is_server or harness.BINARY in line or '["holdfast' in line, line
    assert ours and servers == len(record.starts()) > 2, (ours, servers, record.starts())
    assert not pwned.exists()


ADDRESSES = ['127.0.0.1', '127.1', '127.0.1', '2130706433', '0x7f000001', '0x7f.0.0.1', '017700000001', '0177.0.0.1', 'localhost', 'localhost.', 'LOCALHOST',
             '[::1]', '[::ffff:127.0.0.1]', '[0:0:0:0:0:ffff:7f00:1]', '127.0.0.1.', '0.0.0.0', '0', '127.127.127.127', 'a@127.0.0.1', '127.0.0.1#',
             '\u2460\u2461\u2466.0.0.1', '127\u30020\u30020\u30021', '%31%32%37.0.0.1', '127.0.0.1%00.example']


def test_addresses__come_from_the_configuration_alone(traced, http_server, canary):
    port, has_guest = canary
    web = http_server('up')
    hf = traced({'up': web.entry()})
    for address in ADDRESSES[:3]:
        send_everywhere(hf, f'http://{address}:{port}/mcp')
    client = hf.client('/mcp/up').connect()
    for address in ADDRESSES:
        for url in (f'http://{address}:{port}/mcp', f'//{address}:{port}/mcp', f'ws://{address}:{port}/', f'gopher://{address}:{port}/_x'):
            assert client.rpc('resources/read', {'uri': url}).status < 500
            assert client.call('echo', {'text': url}).text == url
            assert hf.client('/mcp/' + urllib.parse.quote(url, safe='')).rpc('tools/list').status in (400, 404)
    with Connection(hf.port) as proxied:  # as to a proxy
        proxied.send(f'GET http://127.0.0.1:{port}/mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n'.encode())
        assert proxied.read_response('GET').status >= 400
    assert not has_guest()
    assert hf.ports() - {53} == {web.port}


class Web:
    """A server of few words over HTTP: `answer(message)` gives the result, `headers` go with each."""

    def __init__(self, answer, status=200, headers=()):
        self.heads = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_POST(self):
                message = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
                web.heads.append((message.get('method'), {n.lower(): v for n, v in self.headers.items()}))
                reply = {'jsonrpc': '2.0', 'id': message.get('id'), 'result': answer(message)}
                data = json.dumps(reply).encode() if 'id' in message else b''
                self.send_response(status if 'id' in message else 202)
                for name, value in [*headers, ('Content-Type', 'application/json'), ('Content-Length', str(len(data)))]:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                self.send_error(405)

            do_DELETE = do_GET

            def log_message(self, *args):
                pass
        self.server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.entry = {'url': f'http://127.0.0.1:{self.port}/mcp', 'era': 'legacy', 'handles': 'never'}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def asked(self, method):
        return [head for name, head in self.heads if name == method]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def web():
    made = []

    def make(*args, **options):
        made.append(Web(*args, **options))
        return made[-1]
    yield make
    for one in made:
        one.close()


def links(urls):
    """Answers with these addresses wherever a server may name one."""
    icons = [{'src': url, 'mimeType': 'image/png'} for url in urls]
    about = {'icons': icons, 'websiteUrl': urls[0]}

    def answer(message):
        return {
            'initialize': {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}, 'resources': {}, 'prompts': {}},
                           'serverInfo': {'name': 'links', 'version': '1', **about}, 'instructions': ' '.join(urls)},
            'tools/list': {'tools': [{'name': 'look', 'inputSchema': {'type': 'object', '$schema': urls[-1]}, **about}]},
            'resources/list': {'resources': [{'uri': url, 'name': f'r{n}', **about} for n, url in enumerate(urls)]},
            'prompts/list': {'prompts': [{'name': 'p', **about}]},
            'resources/templates/list': {'resourceTemplates': [{'uriTemplate': url, 'name': f't{n}'} for n, url in enumerate(urls)]},
            'tools/call': {'content': [{'type': 'resource_link', 'uri': url, 'name': 'x', **about} for url in urls]},
        }.get(message['method'], {})
    return answer


def test_addresses__that_a_server_hands_out_are_passed_on_and_never_used(traced, canary, web, tmp_path):
    port, has_guest = canary
    pwned = tmp_path / 'PWNED'
    urls = ['javascript:alert(1)', 'file:///etc/passwd', f'http://127.0.0.1:{port}/$(touch {pwned})', f'http://127.0.0.1:{port}/x.png',
            f'https://localhost:{port}/`touch {pwned}`']
    server = web(links(urls), headers=[('Link', f'<http://127.0.0.1:{port}/>; rel=preload'), ('Content-Location', f'http://127.0.0.1:{port}/')])
    closed = web(links(urls), status=401, headers=[
        ('WWW-Authenticate', f'Bearer resource_metadata="http://127.0.0.1:{port}/.well-known/x", authorization_uri="http://127.0.0.1:{port}/$(touch {pwned})"')])
    hf = traced({'up': server.entry, 'closed': closed.entry})
    hf.wait_asked('up', 'closed')
    started = len(hf.executed())
    client = hf.client('/mcp/up').connect()
    for method, params in (('resources/list', {}), ('tools/call', {'name': 'look', 'arguments': {}}), ('resources/templates/list', {})):
        shown = json.dumps(client.rpc(method, params).result)
        assert all(json.dumps(url)[1:-1] in shown for url in urls), (method, shown)
    assert client.rpc('tools/list').status == 200
    refusal = hf.client('/mcp/closed').rpc('tools/call', {'name': 'look', 'arguments': {}})
    assert 'credential' in str(refusal.json), refusal.json
    assert not has_guest() and not pwned.exists()
    assert hf.ports() - {53} == {server.port, closed.port} and len(hf.executed()) == started


WORDS = ['--help', '-f/etc/passwd', '--exec=id', '-rf', '$(id)', '`id`', '; id', '| id', '--output=x', '-e', '--', '-']


def test_document_tools__execute_nothing(traced, tmp_path):
    folder = Folder(tmp_path / 'vault', agent='write')
    folder.write('Doc.md', ''.join(f'The words {word} stand here.\n' for word in WORDS))
    hf = traced({}, {'docs': folder.settings})
    agent, started = Agent(hf), hf.executed()
    assert started, 'strace did not see Holdfast itself'
    agent.read('Lens/Doc.md')
    for word in WORDS:
        assert agent.call('grep', pattern=re.escape(word)).text == 'Lens/Doc.md', word
        assert agent.call('glob', pattern=word).status == 200
        assert agent.call('search', query=word).status == 200
        assert failed(agent.read(word)) and failed(agent.call('glob', pattern='**', path=word))
        path = f'Lens/{word.replace("/", "-")}.md'
        is_made = not failed(agent.call('create', file_path=path, content='Made.'))
        assert is_made or not word.startswith('-'), path  # some of the others are no names
        assert failed(agent.call('get_links', file_path=path)) != is_made
        assert failed(agent.call('move', file_path=path, new_path=f'Lens/-x{len(word)}{word[1:2]}.md')) != is_made
        assert agent.edit('Lens/Doc.md', f'words {word} stand', f'{word}').status == 200
    assert hf.executed() == started


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_private_results__are_fetched_anew_for_everybody(holdfast, scripted, era):
    """The server calls them private: what one caller has read is not given to another, nor again to the same."""
    server = scripted('up', http=True, era=era, shape={'resources': [{'uri': 'x:1', 'name': 'one'}]})
    hf = holdfast({'up': server.entry}, {'auth': 'required'})
    one, other = (keys.create(hf).client(hf, '/mcp/up', modern=era == 'modern') for _ in range(2))
    for client in (one, other):
        if era == 'legacy':
            client.connect()
    for number, client in enumerate((one, other, one), 1):
        assert client.rpc('resources/read', {'uri': 'x:1'}).result['contents'][0]['text'] == 'up'
        assert len(server.calls('resources/read')) == number


def test_cookies__of_a_server_are_nobodys(holdfast, web):
    """A server sets one with every answer; no request has one, and no client sees it."""
    server = web(links(['x:1']), headers=[('Set-Cookie', 'who=the-first-of-all; Path=/')])
    hf = holdfast({'up': server.entry}, {'auth': 'required'})
    for client in [keys.create(hf).client(hf, '/mcp/up').connect() for _ in range(2)]:
        for _ in range(2):
            reply = client.call('look')
            assert reply.status == 200 and reply.header('Set-Cookie') is None and b'the-first-of-all' not in reply.raw
    assert len(server.asked('tools/call')) == 4
    assert not [head for _, head in server.heads if 'cookie' in head]


def test_connections_that_are_reset__leave_no_call_behind(holdfast, stdio_server):
    """With two calls at a time: each that loses its client by a reset frees its place."""
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry}, {'limits': {'calls': 2}})
    client = hf.client('/mcp/up', modern=True)
    for turn in range(10):
        lost = [begin_modern(client, 'hang', f'{turn}.{n}') for n in range(2)]
        record.wait('tools/call', 2 * turn + 2)
        for connection in lost:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            connection.close()
        wait_for(lambda: metrics(hf)['holdfast_calls_in_flight'] == 0, 'the calls to end')
    assert client.call('echo', {'text': 'x'}).text == 'x'
    wait_for(lambda: outcomes(hf, 'hang') == ['cancelled'] * 20, 'the outcomes')


def test_slow_disk__is_waited_for_by_many_at_once(traced, stdio_server):
    """Every sync takes a fifth of a second: calls that come together share them, and each is on record."""
    entry, _ = stdio_server('up', handles='never', share='all')
    slow = ('-e', 'trace=fsync,fdatasync', '-e', 'inject=fsync,fdatasync:delay_enter=200ms')
    hf = traced({'up': entry}, trace=slow)
    hf.client('/mcp/up').call('echo', {'text': 'x'})
    before, replies = len(hf.seen('f(data)?sync')), []
    threads = [threading.Thread(target=lambda: replies.append(hf.client('/mcp/up').call('counter').status), daemon=True) for _ in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert replies == [200] * 60
    wait_for(lambda: outcomes(hf, 'counter') == ['ok'] * 60, 'the outcomes')
    syncs = len(hf.seen('f(data)?sync')) - before
    print(f'{syncs} syncs')
    assert 0 < syncs < 60, f'{syncs} syncs for the 120 events of 60 calls'
