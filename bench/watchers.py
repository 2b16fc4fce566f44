# SPDX-License-Identifier: Apache-2.0
"""Idle watchers of live events, over both transports: what each costs, and how soon all of them have an event."""
import base64
import json
import os
import resource
import selectors
import shutil
import socket
import time
import urllib.request

from subjects import Holdfast, private_kib, spread, wait_idle, wait_until

ROUNDS = 5
SUBSCRIBE = b'{"type":"subscribe","id":"a"}'


def open_one(port, transport):
    line = socket.create_connection(('127.0.0.1', port))
    if transport == 'sse':
        line.sendall(b'GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n')
    else:
        mask = bytes(4)  # all zeros: the payload stays as it is
        line.sendall(b'GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
                     b'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ' + base64.b64encode(os.urandom(16)) + b'\r\n\r\n'
                     + bytes([0x81, 0x80 | len(SUBSCRIBE)]) + mask + SUBSCRIBE)
    found = b''
    while b'id: ' not in found and b'subscribed' not in found:  # the position: it has begun
        got = line.recv(65536)
        assert got, found
        found += got
    return line


def streams_open(subject):
    with urllib.request.urlopen(f'http://127.0.0.1:{subject.port}/metrics', timeout=10) as reply:
        lines = reply.read().decode().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith('holdfast_event_streams{'))


def record_one(port):
    body = json.dumps({'tool_name': 'bench'}).encode()
    ask = urllib.request.Request(f'http://127.0.0.1:{port}/api/v1/sessions/bench/tools', body, {'Content-Type': 'application/json'})
    with urllib.request.urlopen(ask, timeout=10):
        pass


def heard_ms(subject, lines):
    """From the request that records an event until the first, half and all of the watchers have it."""
    waiting = selectors.DefaultSelector()
    for line in lines:
        waiting.register(line, selectors.EVENT_READ)
    times, began = [], time.monotonic()
    record_one(subject.port)
    while len(times) < len(lines):
        for key, _ in waiting.select(30):
            if b'"kind":"record"' in key.fileobj.recv(65536):  # anything else is a sign of life
                times.append((time.monotonic() - began) * 1000)
                waiting.unregister(key.fileobj)
    waiting.close()
    return times[0], times[len(times) // 2], times[-1]


def measure_one(folder, upstream, transport, count):
    subject = Holdfast(folder, f'holdfast {count} {transport}', upstream)
    subject.config['holdfast'] = {'events': {'max_per_owner': count}}
    subject.start()
    body = json.dumps({'edge_mcp_id': 'bench', 'session_id': 'bench'}).encode()
    ask = urllib.request.Request(f'http://127.0.0.1:{subject.port}/api/v1/sessions', body, {'Content-Type': 'application/json'})
    with urllib.request.urlopen(ask, timeout=10):
        pass
    wait_idle(subject)
    empty, began = private_kib(subject.pids()), time.monotonic()
    lines = [open_one(subject.port, transport) for _ in range(count)]
    per_s = count / (time.monotonic() - began)
    wait_until(lambda: streams_open(subject) == count, 'the gauge of streams')
    wait_idle(subject)
    full = private_kib(subject.pids())
    heard = [heard_ms(subject, lines) for _ in range(ROUNDS)]
    for line in lines:
        line.close()
    subject.stop()
    shutil.rmtree(subject.folder)
    return [transport, f'{count:,}', f'{per_s:,.0f}', f'{empty / 1024:.1f}', f'{full / 1024:.1f}', f'{(full - empty) / count:.2f}',
            *(spread([one[i] for one in heard]) for i in range(3))]


def measure(report, folder, upstream, count):
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    report.table('Idle watchers of live events (GET /api/v1/events), and one event to all of them',
                 ['transport', 'watchers', 'opened/s', 'MiB before', 'MiB after', 'KiB per watcher', 'first ms', 'half ms', 'all ms'],
                 [measure_one(folder, upstream, transport, count) for transport in ('sse', 'websocket')])
