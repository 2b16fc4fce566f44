# SPDX-License-Identifier: Apache-2.0
"""Clients of GET /api/v1/events, read by a thread: server-sent events, with the connection lost and made again."""
import base64
import contextlib
import hashlib
import json
import os
import socket
import threading
import time
import urllib.parse

from commands import events
from harness import DEADLINE_S, Response, dump, wait_for
from rest import Rest


class Refused(Exception):
    """The answer was not a stream."""

    def __init__(self, reply):
        super().__init__(repr(reply))
        self.reply = reply


def connect(hf, over_socket=False, window=None):
    """window: the bytes that the kernel keeps for a client that does not read."""
    if window:
        line = socket.socket(socket.AF_INET)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        line.connect(('127.0.0.1', hf.port))
    elif over_socket:
        line = socket.socket(socket.AF_UNIX)
        line.connect(os.path.join(hf.data, 'holdfast.sock'))
    else:
        line = socket.create_connection(('127.0.0.1', hf.port))
    line.settimeout(DEADLINE_S)
    return hf.tls.wrap_socket(line, server_hostname='localhost') if hf.tls and not over_socket else line


def target(after=None, **filters):
    query = urllib.parse.urlencode({**filters, **({} if after is None else {'after': after})}, doseq=True)
    return '/api/v1/events' + ('?' + query if query else '')


def read_head(file):
    status = int(file.readline().split()[1])
    headers = []
    while line := file.readline().strip():
        name, _, value = line.decode().partition(':')
        headers.append((name, value.strip()))
    return status, headers


class Sse:
    """One connection: steps() yields (position, kind, data) until the stream ends, events() the data of events.

    A stream that is lost in the middle raises; `last` is the position of what was read."""

    def __init__(self, hf, after=None, last=None, headers=None, over_socket=False, window=None, **filters):
        self.socket = connect(hf, over_socket, window)
        fields = {'Host': 'localhost', 'Accept': 'text/event-stream', **(headers or {}),
                  **({} if last is None else {'Last-Event-ID': last})}
        lines = ''.join(f'{name}: {value}\r\n' for name, value in fields.items())
        self.socket.sendall(f'GET {target(after, **filters)} HTTP/1.1\r\n{lines}\r\n'.encode())
        self.file = self.socket.makefile('rb')
        self.last, self.retry_ms = last, None
        self.status, self.headers = read_head(self.file)
        if self.status != 200:
            length = dict((n.lower(), v) for n, v in self.headers).get('content-length', 0)
            reply = Response(self.status, self.headers, self.file.read(int(length)))
            self.close()
            raise Refused(reply)

    def blocks(self):
        rest = b''
        while size := int(self.file.readline() or b'gone', 16):
            rest += self.file.read(size + 2)[:-2]
            *whole, rest = rest.split(b'\n\n')
            yield from whole

    def events(self):
        return (data for _, kind, data in self.steps() if kind == 'message')

    def steps(self):
        for block in self.blocks():
            fields = dict(line.split(': ', 1) for line in block.decode().split('\n') if not line.startswith(':'))
            self.retry_ms = int(fields.get('retry', self.retry_ms or 0))
            self.last = fields.get('id', self.last)
            if 'data' in fields:
                yield self.last, fields.get('event', 'message'), json.loads(fields['data'])
            elif 'id' in fields:
                yield self.last, 'position', None

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.file.close()
        self.socket.close()


TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'


def frame(opcode, payload=b'', fin=True, mask=True, rsv=0):
    """One frame of a client."""
    key = os.urandom(4)
    n = len(payload)
    size = bytes([n]) if n < 126 else b'\x7e' + n.to_bytes(2, 'big') if n < 65536 else b'\x7f' + n.to_bytes(8, 'big')
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode, size[0] | (0x80 if mask else 0)]) + size[1:]
    return head + (key + bytes(b ^ key[i % 4] for i, b in enumerate(payload)) if mask else payload)


class Closed(EOFError):
    """The server closed the WebSocket: its code and reason."""

    def __init__(self, code, reason):
        super().__init__(f'{code} {reason}')
        self.code, self.reason = code, reason


class WebSocket:
    """One connection with, unless told otherwise, one subscription; steps() as of Sse."""

    def __init__(self, hf, after=None, last=None, headers=None, over_socket=False, window=None, subscribes=True, query='',
                 **filters):
        self.socket = connect(hf, over_socket, window)
        key = base64.b64encode(os.urandom(16)).decode()
        fields = {'Host': 'localhost', 'Connection': 'keep-alive, Upgrade', 'Upgrade': 'websocket', 'Sec-WebSocket-Version': '13',
                  'Sec-WebSocket-Key': key, **(headers or {})}
        lines = ''.join(f'{name}: {value}\r\n' for name, value in fields.items() if value is not None)
        after = last if last is not None else after
        first = frame(TEXT, self.subscription('first', after, **filters)) if subscribes else b''
        self.socket.sendall(f'GET /api/v1/events{query} HTTP/1.1\r\n{lines}\r\n'.encode() + first)  # it need not wait
        self.file = self.socket.makefile('rb')
        self.last = last
        self.status, self.headers = read_head(self.file)
        told = {n.lower(): v for n, v in self.headers}
        if self.status != 101:
            reply = Response(self.status, self.headers, self.file.read(int(told.get('content-length', 0))))
            self.close()
            raise Refused(reply)
        assert told['sec-websocket-accept'] == base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
        assert told['upgrade'] == 'websocket' and not {'sec-websocket-extensions', 'sec-websocket-protocol'} & set(told)

    @staticmethod
    def subscription(ident, after=None, **filters):
        return dump({'type': 'subscribe', 'id': ident, **filters, **({} if after is None else {'after': after})}).encode()

    def send(self, **message):
        self.socket.sendall(frame(TEXT, dump(message).encode()))

    def subscribe(self, ident, after=None, **filters):
        self.socket.sendall(frame(TEXT, self.subscription(ident, after, **filters)))

    def frame(self):
        """(opcode, payload) of the next frame of the server; EOFError at the end."""
        head = self.file.read(2)
        if len(head) < 2:
            raise EOFError
        assert head[0] & 0xf0 == 0x80 and not head[1] & 0x80, 'whole, without extensions, not masked'
        n = head[1]
        if n >= 126:
            n = int.from_bytes(self.file.read(2 if n == 126 else 8), 'big')
        payload = self.file.read(n)
        if len(payload) < n:
            raise EOFError
        return head[0] & 15, payload

    def message(self):
        """The next message; pings are answered."""
        while True:
            opcode, payload = self.frame()
            if opcode == PING:
                self.socket.sendall(frame(PONG, payload))
            elif opcode == CLOSE:
                raise Closed(int.from_bytes(payload[:2], 'big') if payload else 1005, payload[2:].decode())
            elif opcode == TEXT:
                return json.loads(payload)

    def steps(self):
        while True:
            told = self.message()
            if told['type'] == 'error':
                raise Refused(told)
            self.last = told.get('position', self.last)
            if told['type'] == 'event':
                yield self.last, 'message', told['event']
            elif told['type'] == 'resync':
                yield self.last, 'resync', told
                if told['ends']:
                    return
            else:
                yield self.last, 'position', None

    def events(self):
        return (data for _, kind, data in self.steps() if kind == 'message')

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.file.close()
        self.socket.close()


class Watcher:
    """Watches until close(), with one connection after the other, each from where the last one was."""

    def __init__(self, hf, after='0', transport=Sse, **options):
        self.transport = transport
        self.hf, self.options, self.last = hf, options, after
        self.ids, self.events, self.notices, self.connections, self.refused = [], [], [], 0, None
        self.over, self.line = False, None
        self.may_read = threading.Event()
        self.may_read.set()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        while not self.over:
            try:
                self.line = self.transport(self.hf, last=self.last, **self.options)
                self.connections += 1
                self.read(self.line)
            except Refused as no:
                self.refused = no.reply
                time.sleep(0.02)
            except (OSError, ValueError, EOFError, IndexError):
                time.sleep(0.02)  # it is gone, or not there yet

    def read(self, line):
        for at, kind, data in line.steps():
            self.last = at
            if kind == 'message':
                self.ids.append(data['id'])
                self.events.append(data)
            elif kind != 'position':
                self.notices.append(data)
            self.may_read.wait()

    def drop(self):
        """Loses the connection, wherever it is."""
        line = self.line
        if line:
            with contextlib.suppress(OSError):
                line.socket.shutdown(socket.SHUT_RDWR)

    def wait(self, ident, timeout=DEADLINE_S):
        wait_for(lambda: ident in self.ids[-2000:], f'event {ident}', timeout)

    def wait_connected(self):
        wait_for(lambda: self.connections, 'the stream')
        return self

    def close(self):
        self.over = True
        self.may_read.set()
        self.drop()
        self.thread.join(10)
        if self.line:
            self.line.close()


def of_writers(ids):
    """{writer: its ids in the order in which they came}."""
    found = {}
    for ident in ids:
        found.setdefault(ident.split('.')[0], []).append(int(ident.split('.')[1]))
    return found


def assert_same(ids, whole):
    """Each once, and those of each writer in their order."""
    ours, theirs = of_writers(ids), of_writers(whole)
    for writer, found in theirs.items():
        mine = ours.get(writer, [])
        assert mine == found, (writer, len(mine), len(found), next(((a, b) for a, b in zip(mine, found) if a != b), None))
    assert set(ours) == set(theirs)


def ids_of(hf):
    """Those of the tenant: Holdfast's own events are for the local admin alone."""
    return [one['id'] for one in events(hf, bodies=False) if one.get('tenant') == 'default']


def metric(hf, name, headers=None):
    """The sum over all labels; 0 when it is absent."""
    lines = hf.get('/metrics', headers).body.decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.split('{')[0].split(' ')[0] == name)


def call(hf, n=1, path='/mcp/up', **options):
    with hf.client(path, **options) as client:
        client.connect()
        for _ in range(n):
            assert client.call('echo', {'text': 'x'}).status == 200


class Load:
    """Adds events until there are enough of them; a request that breaks off is not repeated."""
    BATCH = dump([{'tool_name': 'grep', 'arguments': {'text': 'x' * 40}}] * 50).encode()

    def __init__(self, hf, total, pace_s=0.0, calls=2):
        self.hf, self.total, self.pace_s, self.calls, self.done = hf, total, pace_s, calls, 0
        self.over = False
        self.thread = threading.Thread(target=self.work, daemon=True)

    def start(self):
        Rest(self.hf).create(session_id='load')
        self.thread.start()
        return self

    def report(self, line):
        """Fifty events by one request: calls that were made elsewhere."""
        line.send(line.head_bytes('POST', '/api/v1/sessions/load/tools', None, self.BATCH) + self.BATCH)
        reply = line.read_response()
        assert reply.status == 200, reply
        self.done += 50

    def work(self):
        while self.done < self.total and not self.over:
            try:
                with self.hf.connection() as line:
                    while self.done < self.total and not self.over:
                        self.report(line)
                        call(self.hf, self.calls)
                        time.sleep(self.pace_s)
            except (OSError, EOFError, AssertionError, ValueError):
                time.sleep(0.05)  # the program is being started again

    def close(self):
        self.over = True
        self.thread.join(60)
