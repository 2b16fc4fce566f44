# SPDX-License-Identifier: Apache-2.0
"""Runs the real program and talks to it: processes, bytes on sockets, MCP clients of both eras.

Nothing here sleeps and hopes: a start is awaited by its log line and /readyz, an upstream by the line
it prints, a recorded message by wait_for() with a deadline.  A sanitizer's report or an unexpected
death of the program fails the test that used it (Holdfast.check)."""
import contextlib
import glob
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('HOLDFAST_BUILD', os.path.join(TOP, 'build-test'))
BINARY = os.environ.get('HOLDFAST_BIN', os.path.join(BUILD, 'holdfast'))
PEERS = os.path.join(TOP, 'tests/peers')
PYTHON = '/usr/bin/python3'
NODE_MODULES = os.path.join(TOP, 'tests/node_modules')
LONG = bool(os.environ.get('HOLDFAST_LONG'))
DEADLINE_S = 60.0
EXIT_STATUSES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 130)  # those of the error table, src/base/error.c

LEGACY_VERSIONS = ('2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25')
MODERN = '2026-07-28'
PREFIX = 'io.modelcontextprotocol/'
ENVELOPE = {PREFIX + 'protocolVersion': MODERN, PREFIX + 'clientCapabilities': {}}
SANITIZER = re.compile(r'AddressSanitizer|LeakSanitizer|ThreadSanitizer|UndefinedBehaviorSanitizer|runtime error:')


def dump(value):
    return json.dumps(value, separators=(',', ':'), ensure_ascii=False)


def node():
    """The Node 22 of tests/package.json, or None where `make test` could not install it."""
    found = sorted(glob.glob(os.path.join(NODE_MODULES, 'node-linux-*/bin/node')))
    return found[0] if found else None


def npm_bin(name):
    """The program that the npm package `name` installs, to be run with node(); None when it is not there.

    A package with several programs is named by one of them ("conformance", "mcp-server-everything")."""
    path = os.path.join(NODE_MODULES, '.bin', name)
    if os.path.exists(path):
        return os.path.realpath(path)
    manifest = os.path.join(NODE_MODULES, name, 'package.json')
    if not os.path.exists(manifest):
        return None
    with open(manifest, encoding='utf-8') as file:
        programs = json.load(file).get('bin', {})
    script = programs if isinstance(programs, str) else next(iter(programs.values()), None)
    return os.path.join(NODE_MODULES, name, script) if script else None


def has_sanitizer():
    """Whether the program under test keeps memory of its own for AddressSanitizer."""
    with open(BINARY, 'rb') as file:
        return b'__asan_init' in file.read()


def wait_for(condition, what, timeout=DEADLINE_S):
    """Polls until condition() is true and returns its value; for things that have no event to wait on."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f'waited {timeout} s for {what}')
        time.sleep(0.01)


class Holdfast:
    """One data directory and the process that serves it; start, stop, kill -9 and start again."""

    def __init__(self, folder, config=None, env=None, args=(), tls=None):
        """tls: the ssl.SSLContext to talk to it with, when it serves TLS."""
        self.folder, self.env, self.args, self.tls = str(folder), env or {}, list(args), tls
        self.data = os.path.join(self.folder, 'data')
        self.config_file = os.path.join(self.folder, 'holdfast.json')
        self.port = 0
        self.process = None
        self.lines = []
        self.turn = threading.Condition()
        self.readers = []
        if config is not None:
            self.write_config(config)

    def write_config(self, config):
        with open(self.config_file, 'w', encoding='utf-8') as file:
            json.dump(config, file)

    def command(self):
        command = [BINARY, 'up', '--listen', f'127.0.0.1:{self.port}', '--data', self.data]
        if os.path.exists(self.config_file):
            command += ['--config', self.config_file]
        return command + self.args

    def start(self, wait=True):
        env = {**os.environ, 'ASAN_OPTIONS': 'detect_leaks=1:exitcode=99', 'HOME': self.folder,
               'UBSAN_OPTIONS': 'print_stacktrace=1:halt_on_error=1:exitcode=99',
               'LSAN_OPTIONS': 'exitcode=99', **self.env}
        for name in ('HOLDFAST_CONFIG', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME'):
            env.pop(name, None)
        with self.turn:
            since = len(self.lines)
        self.process = subprocess.Popen(self.command(), cwd=self.folder, env={**env, **self.env}, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        reader = threading.Thread(target=self.read_log, args=(self.process,), daemon=True)
        reader.start()
        self.readers.append(reader)
        if wait:
            self.wait_ready(since)
        return self

    def read_log(self, process):
        for line in process.stderr:
            with self.turn:
                self.lines.append(line.decode('utf-8', 'replace').rstrip('\n'))
                self.turn.notify_all()
        process.stderr.close()
        with self.turn:
            self.turn.notify_all()

    def log(self):
        """The log so far: parsed lines; a line that is not JSON becomes {"text": line}."""
        parsed = []
        with self.turn:
            lines = list(self.lines)
        for line in lines:
            try:
                parsed.append(json.loads(line))
            except ValueError:
                parsed.append({'text': line})
        return parsed

    def wait_log(self, wanted, what, since=0, timeout=DEADLINE_S):
        """Waits until a log line satisfies wanted(parsed) and returns it."""
        end = time.monotonic() + timeout
        while True:
            for line in self.log()[since:]:
                if isinstance(line, dict) and wanted(line):
                    return line
            with self.turn:
                if self.process.poll() is not None and not self.readers[-1].is_alive():
                    raise AssertionError(f'ended with {self.process.returncode} before {what}:\n{self.text()}')
                if time.monotonic() > end:
                    raise AssertionError(f'waited {timeout} s for {what}:\n{self.text()}')
                self.turn.wait(0.2)

    def wait_asked(self, *servers, timeout=90.0):
        """Until each of these servers has been asked what it offers: it answered, or could not."""
        for server in servers:
            self.wait_log(lambda l, s=server: l.get('server') == s and l.get('msg') in (
                'server probed', 'a server could not be started'), f'the first probe of {server}', timeout=timeout)
        return self

    def wait_ready(self, since):
        line = self.wait_log(lambda l: l.get('msg') == 'listening' and str(l.get('address', '')).startswith('127.0.0.1:'),
                             'the listening line', since)
        self.port = int(line['address'].rsplit(':', 1)[1])
        wait_for(lambda: self.get('/readyz').status == 200, '/readyz to say 200')

    def text(self):
        with self.turn:
            return '\n'.join(self.lines[-60:])

    def get(self, path, headers=None):
        return self.request('GET', path, headers)

    def connection(self):
        return Connection(self.port, tls=self.tls)

    def request(self, method, path, headers=None, body=b''):
        with self.connection() as connection:
            return connection.request(method, path, headers, body)

    def client(self, path='/mcp/sample', **options):
        return Client(self, path, **options)

    def kill(self):
        """As a power cut would: no handler runs."""
        self.process.kill()
        self.process.wait(DEADLINE_S)
        self.readers[-1].join(DEADLINE_S)

    def stop(self, signum=signal.SIGTERM):
        """Ends it politely; nothing bad was reported and the exit status is 0.  One that was killed stays as it is."""
        if self.process is None or self.process.poll() is not None:
            self.check_ended()
            return
        self.process.send_signal(signum)
        try:
            status = self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired as late:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f'did not stop within {DEADLINE_S} s:\n{self.text()}') from late
        self.readers[-1].join(DEADLINE_S)
        self.check_sanitizers()
        assert status == 0, f'exit status {status}:\n{self.text()}'

    def restart(self, kill=True):
        """On the same data directory and port."""
        if kill:
            self.kill()
        else:
            self.stop()
        return self.start()

    def check_sanitizers(self):
        with self.turn:
            for number, line in enumerate(self.lines):
                if SANITIZER.search(line):
                    raise AssertionError('sanitizer report:\n' + '\n'.join(self.lines[number:number + 60]))

    def check(self):
        """Nothing bad was reported and it still lives."""
        self.check_sanitizers()
        assert self.process.poll() is None, f'died with {self.process.returncode}:\n{self.text()}'

    def check_ended(self):
        """It ended before: by a status of its own (a test that expects another than 0 looks itself) or by kill -9."""
        self.check_sanitizers()
        status = self.process.returncode if self.process else 0
        assert status in EXIT_STATUSES or status == -signal.SIGKILL, f'ended with {status}:\n{self.text()}'

    def close(self):
        """The end of a test: politely, with every check, whatever state it is in."""
        if self.process is None:
            return
        try:
            if self.process.poll() is None:
                self.check()
            self.stop()
        finally:
            if self.process.poll() is None:
                self.kill()


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def header(self, name):
        found = [v for n, v in self.headers if n.lower() == name.lower()]
        return found[0] if found else None

    def json(self):
        """The body, or the last event of a stream."""
        if (self.header('content-type') or '').startswith('text/event-stream'):
            events = [part for part in self.body.decode().split('\n\n') if 'data: {' in part]
            return json.loads(events[-1].split('data: ', 1)[1])
        return json.loads(self.body)

    def __repr__(self):
        return f'<{self.status} {self.body[:300]!r}>'


class Connection:
    """One socket; requests leave as the very bytes given, responses are read strictly."""

    def __init__(self, port, timeout=DEADLINE_S, tls=None, source=None):
        self.socket = socket.create_connection(('127.0.0.1', port), timeout=timeout, source_address=source and (source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname='localhost')
        self.port, self.rest = port, b''

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def more(self):
        data = self.socket.recv(1 << 20)
        self.rest += data
        return bool(data)

    def until(self, mark):
        while mark not in self.rest:
            if not self.more():
                raise EOFError(f'closed before {mark!r}; got {self.rest[:200]!r}')
        found, self.rest = self.rest.split(mark, 1)
        return found

    def take(self, n):
        while len(self.rest) < n:
            if not self.more():
                raise EOFError(f'closed {n - len(self.rest)} bytes early')
        found, self.rest = self.rest[:n], self.rest[n:]
        return found

    def read_head(self):
        head = self.until(b'\r\n\r\n').decode('latin-1').split('\r\n')
        found = re.fullmatch(r'HTTP/1\.1 (\d{3}) ?.*', head[0])
        assert found, f'not a status line: {head[0]!r}'
        headers = [tuple(line.split(': ', 1)) if ': ' in line else tuple(line.split(':', 1)) for line in head[1:]]
        return int(found.group(1)), headers

    def chunks(self):
        while True:
            size = int(self.until(b'\r\n').split(b';')[0], 16)
            data = self.take(size)
            if size == 0:
                self.until(b'\r\n')
                return
            assert self.take(2) == b'\r\n'
            yield data

    def read_response(self, method='POST'):
        status, headers = self.read_head()
        names = {n.lower(): v for n, v in headers}
        if status == 100:
            return self.read_response(method)
        if names.get('transfer-encoding') == 'chunked':
            body = b''.join(self.chunks())
        elif method == 'HEAD' or status in (204, 304):
            body = b''
        else:
            body = self.take(int(names.get('content-length', 0)))
        return Response(status, headers, body)

    def head_bytes(self, method, path, headers, body):
        fields = {'Host': f'127.0.0.1:{self.port}'}
        if body or method in ('POST', 'PUT', 'PATCH'):
            fields.update({'Content-Type': 'application/json', 'Content-Length': str(len(body))})
        fields.update(headers or {})
        lines = ''.join(f'{n}: {v}\r\n' for n, v in fields.items() if v is not None)
        return f'{method} {path} HTTP/1.1\r\n{lines}\r\n'.encode('utf-8')

    def request(self, method, path, headers=None, body=b''):
        """The answer; one of the REST interface is held against its OpenAPI document."""
        self.send(self.head_bytes(method, path, headers, body) + body)
        reply = self.read_response(method)
        if path.startswith('/api/v1/'):
            import openapi  # pylint: disable=import-outside-toplevel
            openapi.check(method, path, reply)
        return reply

    def raw(self, data):
        """Sends the bytes and returns everything that comes back until the other side closes."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send(data)
        return self.drain()

    def drain(self, timeout=10.0):
        self.socket.settimeout(timeout)
        with contextlib.suppress(ConnectionResetError):
            while self.more():
                pass
        found, self.rest = self.rest, b''
        return found

    def is_closed(self, timeout=DEADLINE_S):
        ready, _, _ = select.select([self.socket], [], [], timeout)
        try:
            return bool(ready) and self.socket.recv(1, socket.MSG_PEEK) == b''
        except ConnectionResetError:
            return True


EVENT_S = 90


class Stream:
    """A response that is being read: events of an SSE body, or the one message of a JSON body."""

    def __init__(self, connection):
        self.connection = connection
        self.status, self.headers = connection.read_head()
        names = {n.lower(): v for n, v in self.headers}
        self.kind = names.get('content-type', '')
        self.is_sse = self.kind.startswith('text/event-stream')
        self.length = None if names.get('transfer-encoding') == 'chunked' else int(names.get('content-length', 0))
        self.parts = connection.chunks() if self.length is None else None
        self.buffer = b''
        self.body = b''

    def header(self, name):
        found = [v for n, v in self.headers if n.lower() == name.lower()]
        return found[0] if found else None

    def fill(self):
        if self.parts is None:
            return False
        part = next(self.parts, None)
        if part is None:
            return False
        self.buffer += part
        self.body += part
        return True

    def event(self):
        """The next SSE event as a dict of its fields (data joined), or None at the end of the stream.
        Signs of life alone keep nobody waiting for ever."""
        until = time.monotonic() + EVENT_S
        while True:
            if time.monotonic() > until:
                raise AssertionError(f'waited {EVENT_S} s for an event of a stream that is alive')
            while b'\n\n' not in self.buffer:
                if not self.fill():
                    return None
            block, self.buffer = self.buffer.split(b'\n\n', 1)
            fields = {}
            for line in block.decode('utf-8').split('\n'):
                name, _, value = line.partition(':')
                if name:
                    value = value[1:] if value.startswith(' ') else value
                    fields[name] = fields[name] + '\n' + value if name in fields else value
            if fields:
                return fields

    def message(self):
        """The next JSON-RPC message as bytes, whichever form the body has; None at the end."""
        if self.is_sse:
            event = self.event()
            while event is not None and not event.get('data'):
                event = self.event()
            return event['data'].encode() if event else None
        if self.length is None:
            while self.fill():
                pass
            whole, self.buffer = self.buffer, b''
        else:
            whole, self.length = self.connection.take(self.length), 0
            self.body += whole
        return whole or None

    def close(self):
        self.connection.close()


class Reply:
    """A finished exchange: the status, the answer, and whatever came before it on the stream."""

    def __init__(self, stream):
        self.status, self.headers, self.kind = stream.status, stream.headers, stream.kind
        messages = list(iter(stream.message, None))
        self.raw = messages[-1] if messages else b''
        self.messages = []
        for m in messages:
            try:
                self.messages.append(json.loads(m))
            except ValueError:
                self.messages.append(None)
        self.json = self.messages[-1] if self.messages else None
        self.before = self.messages[:-1]

    def header(self, name):
        found = [v for n, v in self.headers if n.lower() == name.lower()]
        return found[0] if found else None

    @property
    def result(self):
        assert self.json is not None and 'result' in self.json, f'no result: {self!r}'
        return self.json['result']

    @property
    def error(self):
        assert self.json is not None and 'error' in self.json, f'no error: {self!r}'
        return self.json['error']

    @property
    def code(self):
        return self.error['code']

    @property
    def text(self):
        """The first text block of a tool result."""
        return next(b['text'] for b in self.result['content'] if b['type'] == 'text')

    def __repr__(self):
        return f'<{self.status} {self.raw[:400]!r}>'


class Client:
    """An MCP client.  modern=True speaks 2026-07-28: envelope in _meta, mirrored headers, no session."""

    def __init__(self, holdfast, path='/mcp/sample', modern=False, headers=None, first_id=0, envelope=None):
        self.holdfast, self.path, self.modern = holdfast, path, modern
        self.fixed = dict(headers or {})
        self.envelope = dict(ENVELOPE if envelope is None else envelope)
        self.session = self.version = None
        self.next_id = first_id
        self.connection = None

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def headers_for(self, method, params):
        headers = {'Accept': 'application/json, text/event-stream'}
        if self.modern:
            headers.update({'MCP-Protocol-Version': MODERN, 'Mcp-Method': method})
            name = params.get('uri' if method == 'resources/read' else 'name') if isinstance(params, dict) else None
            if method in ('tools/call', 'prompts/get', 'resources/read') and name is not None:
                headers['Mcp-Name'] = name
        elif method != 'initialize':
            if self.session:
                headers['Mcp-Session-Id'] = self.session
            if self.version and self.version >= '2025-06-18':
                headers['MCP-Protocol-Version'] = self.version
        return {**headers, **self.fixed}

    def post(self, body, headers=None, connection=None):
        """Posts the very bytes on a connection of its own (or the one given); gives the open Stream."""
        connection = connection or self.holdfast.connection()
        body = body if isinstance(body, bytes) else body.encode('utf-8')
        connection.send(connection.head_bytes('POST', self.path, headers or {}, body) + body)
        return Stream(connection)

    def open(self, method, params=None, ident=None, headers=None):
        """Sends a request and returns its Stream, for answers that are read piece by piece."""
        if ident is None:
            ident, self.next_id = self.next_id, self.next_id + 1
        params = dict(params) if params is not None else None
        if self.modern:
            params = params or {}
            params['_meta'] = {**self.envelope, **params.get('_meta', {})}
        message = {'jsonrpc': '2.0', 'id': ident, 'method': method, **({'params': params} if params is not None else {})}
        return self.post(dump(message), {**self.headers_for(method, params or {}), **(headers or {})})

    def rpc(self, method, params=None, ident=None, headers=None):
        stream = self.open(method, params, ident, headers)
        try:
            return Reply(stream)
        finally:
            stream.close()

    def rpc_bytes(self, body, headers=None, method='tools/call', params=None):
        """Posts a hand-written request with the headers that this client would send."""
        stream = self.post(body, {**self.headers_for(method, params or {}), **(headers or {})})
        try:
            return Reply(stream)
        finally:
            stream.close()

    def call(self, tool, arguments=None, meta=None, ident=None, headers=None):
        params = {'name': tool, 'arguments': arguments or {}}
        if meta is not None:
            params['_meta'] = meta
        return self.rpc('tools/call', params, ident, headers)

    def notify(self, method, params=None, headers=None):
        message = {'jsonrpc': '2.0', 'method': method, **({'params': params} if params is not None else {})}
        return self.rpc_bytes(dump(message), headers, method, params)

    def respond(self, ident, result):
        return self.rpc_bytes(dump({'jsonrpc': '2.0', 'id': ident, 'result': result}))

    def initialize(self, version='2025-11-25', capabilities=None, name='e2e', ident=None, headers=None):
        reply = self.rpc('initialize', {'protocolVersion': version, 'capabilities': capabilities or {},
                                        'clientInfo': {'name': name, 'version': '1'}}, ident, headers)
        self.session = reply.header('Mcp-Session-Id')
        if reply.status == 200 and 'result' in (reply.json or {}):
            self.version = reply.result['protocolVersion']
        return reply

    def connect(self, version='2025-11-25', **options):
        """initialize and notifications/initialized, as an ordinary client begins."""
        reply = self.initialize(version, **options)
        assert reply.status == 200, repr(reply)
        assert self.notify('notifications/initialized').status == 202
        return self

    def delete(self):
        return self.holdfast.request('DELETE', self.path, self.headers_for('', {}))


class Record:
    """What a recording upstream received, byte for byte."""

    def __init__(self, path):
        self.path = path

    def messages(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path, 'rb') as file:
            data = file.read()
        if data.startswith(b'\x1e'):
            return [m.rstrip(b'\n') for m in data.split(b'\x1e')[1:]]
        return [m for m in data.split(b'\n') if m]

    def of(self, method):
        return [m for m in self.messages() if json.loads(m).get('method') == method]

    def wait(self, method, count=1):
        return wait_for(lambda: len(self.of(method)) >= count and self.of(method), f'{count} {method} at the upstream')

    def heads(self):
        if not os.path.exists(self.path + '.heads'):
            return []
        with open(self.path + '.heads', encoding='utf-8') as file:
            return [json.loads(line) for line in file]

    def starts(self):
        """The pids of the stdio processes that were started."""
        if not os.path.exists(self.path + '.starts'):
            return []
        with open(self.path + '.starts', encoding='utf-8') as file:
            return [int(line) for line in file]

    def gone(self):
        """Ids of requests whose client hung up on the upstream."""
        if not os.path.exists(self.path + '.gone'):
            return []
        with open(self.path + '.gone', encoding='utf-8') as file:
            return [json.loads(line) for line in file]


def stdio_server(folder, name='rec', *args, **entry):
    """A recording stdio server: (its entry for mcpServers, its Record)."""
    path = os.path.join(str(folder), name + '.record')
    command = {'command': PYTHON, 'args': ['-S', '-E', os.path.join(PEERS, 'start.py'), 'recorder', path, *args]}
    return {**command, **entry}, Record(path)


class HttpServer:
    """A recording Streamable HTTP server; start again on the same port after stop()."""

    def __init__(self, folder, name='web', *args):
        self.record = Record(os.path.join(str(folder), name + '.record'))
        self.args, self.port, self.process = list(args), 0, None
        self.origin = 'https://localhost' if '--tls' in args else 'http://127.0.0.1'

    def start(self):
        self.process = subprocess.Popen(
            [PYTHON, '-S', '-E', os.path.join(PEERS, 'start.py'), 'http_upstream', self.record.path, '--port', str(self.port),
             *self.args],
            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, stderr=sys.stderr)
        line = self.process.stdout.readline().split()
        assert line[:1] == [b'listening'], 'the HTTP upstream did not start'
        self.port = int(line[1])
        return self

    def entry(self, **entry):
        return {'url': f'{self.origin}:{self.port}/mcp', **entry}

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
