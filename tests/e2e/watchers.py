# SPDX-License-Identifier: Apache-2.0
"""Clients of GET /api/v1/events, read by a thread: server-sent events, with the connection lost and made again."""
import contextlib
import json
import os
import socket
import threading
import time
import urllib.parse

from harness import DEADLINE_S, Response, wait_for


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
    return line


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


class Watcher:
    """Watches until close(), with one connection after the other, each from where the last one was."""
    transport = Sse

    def __init__(self, hf, after='0', **options):
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
