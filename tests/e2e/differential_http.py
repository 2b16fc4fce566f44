#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our HTTP codec with nginx and node on many requests, good and bad: differential_http.py BUILD_DIR.

What we refuse ends the connection and can do no harm.  For what we accept it asserts
  - that nobody sees more requests in the bytes than we do (that would be a smuggled one), and
  - that both accept it too, and node sees the same method, target and body,
or that the difference is one of INTENDED below.  Exit 0: so it is; 1: a difference; 77: skipped, no nginx or node.

nginx passes requests on to itself, so that it reads bodies to the end before it counts them.  Every case
connects from its own loopback address (127.x.y.z), which is how the peers' logs are told apart.
"""
import concurrent.futures
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

import harness

SEED = int(os.environ.get('SEED', '20261115'))
GENERATED = int(os.environ.get('CASES', '700'))

GET = b'GET /a HTTP/1.1\r\nHost: a\r\n'
POST = b'POST /b HTTP/1.1\r\nHost: a\r\n'
NEXT = b'GET /next HTTP/1.1\r\nHost: a\r\n\r\n'
CHUNKED = POST + b'Transfer-Encoding: chunked\r\n\r\n'


# Shapes known from smuggling research: each is sent as it is, and with NEXT behind it.

def table():
    for value in (b'chunked', b'Chunked', b'CHUNKED', b' chunked', b'\tchunked', b'chunked ', b'chunked\t', b'xchunked',
                  b'chunkedx', b'chunked,', b',chunked', b'chunked, chunked', b'chunked,chunked', b'identity', b'gzip, chunked',
                  b'chunked, identity', b'chunked;q=1', b'"chunked"', b"'chunked'", b'\x0bchunked', b'chunked\x0c',
                  b'chunked\x00', b'\xa0chunked', b'chu nked', b'', b'\r\n chunked', b'x\rTransfer-Encoding: chunked', b'\x00'):
        for body in (b'0\r\n\r\n', b'3\r\nabc\r\n0\r\n\r\n'):
            yield POST + b'Transfer-Encoding:' + value + b'\r\n\r\n' + body
            yield POST + b'Content-Length: 5\r\nTransfer-Encoding:' + value + b'\r\n\r\n' + body
            yield POST + b'Transfer-Encoding:' + value + b'\r\nContent-Length: 5\r\n\r\n' + body
    for name in (b'Transfer-Encoding ', b'Transfer-Encoding\t', b' Transfer-Encoding', b'Transfer_Encoding', b'Transfer-Encoding\x00',
                 b'Transfer-Encoding\r', b'X\rTransfer-Encoding', b'X\nTransfer-Encoding', b'transfer-encoding', b'X:\x00Transfer-Encoding'):
        yield POST + name + b': chunked\r\n\r\n0\r\n\r\n'
        yield POST + b'Content-Length: 5\r\n' + name + b': chunked\r\n\r\n0\r\n\r\n'
    yield POST + b'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'
    yield POST + b'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'
    yield b'POST /b HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'
    yield b'POST /b HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'
    for length in (b'3', b'03', b'0000000003', b'+3', b'-3', b'0x3', b'3 ', b' 3', b'3,3', b'3, 3', b'3 3', b'3;', b'3.0', b'3e0', b'"3"',
                   b'', b' ', b'\x0b3', b'3\x00', b'\xb2', b'18446744073709551619', b'99999999999999999999', b'9223372036854775808', b'0'):
        yield POST + b'Content-Length:' + length + b'\r\n\r\nabc'
    for pair in ((b'3', b'3'), (b'3', b'4'), (b'0', b'3'), (b'3', b'0'), (b'3', b'')):
        yield POST + b'Content-Length: %s\r\nContent-Length: %s\r\n\r\nabc' % pair
        yield POST + b'Content-Length: %s\r\nContent_Length: %s\r\n\r\nabc' % pair
    for name in (b'Content-Length ', b'Content-Length\t', b' Content-Length', b'Content_Length', b'content-length', b'Content-Length\x00'):
        yield POST + name + b': 3\r\n\r\nabc'
    for end in (b'\n', b'\r', b'\r\r\n', b'\n\r', b'\x0b\r\n', b'\x85', b'\xe2\x80\xa8', b'\x00\r\n', b'\r\n\x00', b' \r\n', b'\t\r\n', b'\r\n '):
        yield b'GET /a HTTP/1.1' + end + b'Host: a\r\n\r\n'
        yield b'GET /a HTTP/1.1\r\nHost: a' + end + b'\r\n'
        yield GET + b'X: y' + end + b'Z: z\r\n\r\n'
        yield GET + b'X: y' + end + b'Content-Length: 33\r\n\r\n'
        yield GET + end
        yield CHUNKED + b'3' + end + b'abc\r\n0\r\n\r\n'
        yield CHUNKED + b'3\r\nabc' + end + b'0\r\n\r\n'
        yield CHUNKED + b'3\r\nabc\r\n0' + end + b'\r\n'
        yield CHUNKED + b'3\r\nabc\r\n0\r\n' + end
        yield CHUNKED + b'3;x' + end + b'abc\r\n0\r\n\r\n'
        yield CHUNKED + b'3;x="y' + end + b'"\r\nabc\r\n0\r\n\r\n'
        yield CHUNKED + b'3\r\nabc\r\n0\r\nX: y' + end + b'\r\n'
    for size in (b'3', b'03', b'0000000000000000003', b'+3', b'-3', b'0x3', b' 3', b'3 ', b'3\t', b'g', b'', b'3;', b'3;a', b'3;a=b',
                 b'3;a="b"', b'3;a="\\"b;"', b'3 ;a', b'3; a', b'3;a =b', b'3;a= b', b'3;=b', b'3;a=', b'3;;a', b'3;a=b;c=d', b'3_', b'3,3',
                 b'10000000000000003', b'ffffffffffffffff3', b'8000000000000003', b'3;a="b', b'3;a\x00', b'3;\xff=a', b'3;' + b'x' * 200,
                 b'3;' + b'x' * 5000):
        yield CHUNKED + size + b'\r\nabc\r\n0\r\n\r\n'
    for tail in (b'0\r\nX: y\r\n\r\n', b'0\r\nX : y\r\n\r\n', b'0\r\nX\r\n\r\n', b'0\r\n: y\r\n\r\n', b'0\r\nX: y\r\n z\r\n\r\n', b'00\r\n\r\n',
                 b'0\r\nContent-Length: 3\r\n\r\n', b'0\r\nHost: b\r\n\r\n', b'0\r\nTransfer-Encoding: chunked\r\n\r\n', b'0;a=b\r\n\r\n'):
        yield CHUNKED + b'3\r\nabc\r\n' + tail
    for line in (b'GET /a HTTP/1.1', b'get /a HTTP/1.1', b'GET  /a HTTP/1.1', b'GET /a  HTTP/1.1', b'GET\t/a HTTP/1.1', b'GET /a\tHTTP/1.1',
                 b' GET /a HTTP/1.1', b'\r\nGET /a HTTP/1.1', b'\nGET /a HTTP/1.1', b'GET /a', b'GET /a HTTP/0.9', b'GET /a HTTP/1.0', b'GET /a HTTP/1.2',
                 b'GET /a HTTP/2.0', b'GET /a HTTP/1', b'GET /a HTTP/1.10', b'GET /a http/1.1', b'GET /a HTTP/1.1 ', b'GET /a HTTP/1.1 HTTP/1.1',
                 b'GET a HTTP/1.1', b'GET ?a HTTP/1.1', b'GET * HTTP/1.1', b'OPTIONS * HTTP/1.1', b'OPTIONS /a HTTP/1.1', b'GET /a#b HTTP/1.1',
                 b'GET /a b HTTP/1.1', b'GET /\x00 HTTP/1.1', b'GET /\x7f HTTP/1.1', b'GET /\xc3\xa9 HTTP/1.1', b'GET /%zz HTTP/1.1', b'GET /%00 HTTP/1.1',
                 b'GET /../a HTTP/1.1', b'GET /%2e%2e/a HTTP/1.1', b'GET //a HTTP/1.1', b'GET /a\\b HTTP/1.1', b'GET /?a={b|c} HTTP/1.1', b'GET /"< HTTP/1.1',
                 b'GET http://a/x HTTP/1.1', b'GET HTTP://A/x HTTP/1.1', b'GET http://a HTTP/1.1', b'GET http://a?x HTTP/1.1', b'GET http://b/x HTTP/1.1',
                 b'GET http://u@a/x HTTP/1.1', b'GET http:///x HTTP/1.1', b'GET https://a/x HTTP/1.1', b'GET ftp://a/x HTTP/1.1', b'CONNECT a:80 HTTP/1.1',
                 b'HEAD /a HTTP/1.1', b'PUT /a HTTP/1.1', b'PATCH /a HTTP/1.1', b'DELETE /a HTTP/1.1', b'TRACE /a HTTP/1.1', b'BREW /a HTTP/1.1',
                 b'G-T /a HTTP/1.1', b'G_T /a HTTP/1.1', b'G3T /a HTTP/1.1', b'/a HTTP/1.1', b'PRI * HTTP/2.0', b'GET /' + b'a' * 8191 + b' HTTP/1.1'):
        yield line + b'\r\nHost: a\r\n\r\n'
    for host in (b'', b'Host: a\r\nHost: a\r\n', b'Host: a\r\nHost: b\r\n', b'Host:\r\n', b'Host: a/?x=\r\n', b'Host: a b\r\n', b'Host: a,b\r\n',
                 b'Host: u@a\r\n', b'Host: a:80\r\n', b'Host: a:\r\n', b'Host: a:x\r\n', b'Host: a:99999\r\n', b'Host: [::1]\r\n', b'Host: [::1]:80\r\n',
                 b'Host: [::1\r\n', b'Host: a..b\r\n', b'Host: .a\r\n', b'Host: a.\r\n', b'Host: a_b\r\n', b'Host: a%41\r\n', b'Host: \xc3\xa9\r\n',
                 b'Host : a\r\n', b' Host: a\r\n', b'Ho_st: a\r\n', b'HOST: A\r\n', b'Host: ' + b'a' * 255 + b'\r\n', b'Host: 127.0.0.1:4653\r\n'):
        yield b'GET /a HTTP/1.1\r\n' + host + b'\r\n'
        yield b'GET /a HTTP/1.0\r\nConnection: keep-alive\r\n' + host + b'\r\n'
    for line in (b'X : y', b'X\t: y', b' X: y', b'X', b':', b': y', b'X\x00: y', b'X: \x00', b'X: \x01', b'X: \x7f', b'X: \x80', b'X: a\tb', b'X:',
                 b'X:\t y \t', b'\xc3\xa9: y', b'X/Y: z', b'"X": y', b'(X): y', b'X_Y: z', b'_: z', b"!#$%&'*+-.^`|~: z", b'X: y\r\n z', b'X: y\r\n\tz',
                 b'Expect: 100-continue', b'Expect: 200-ok', b'Expect:', b'Connection: close', b'Connection: x, close', b'Connection: closed',
                 b'Connection: keep-alive', b'Connection: Upgrade\r\nUpgrade: websocket', b'Upgrade: h2c', b'Connection: Host', b'Connection: Content-Length',
                 b'X: ' + b'y' * 20000, b'Content-Encoding: gzip', b'TE: trailers', b'Trailer: X', b'Keep-Alive: timeout=5', b'Range: bytes=0-0'):
        yield GET + line + b'\r\n\r\n'
        yield POST + line + b'\r\nContent-Length: 3\r\n\r\nabc'
    yield b'GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 33\r\n\r\n'
    yield b'GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n' % len(NEXT) + NEXT
    yield b'GET /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n' % (len(NEXT), NEXT)
    for count in (99, 100):
        yield b'GET /a HTTP/1.1\r\nHost: a\r\n' + b'X: y\r\n' * (count - 1) + b'\r\n'


# Requests put together at random, most of them then damaged in one or two places.

LINES = (b'Accept: application/json, text/event-stream', b'User-Agent: node', b'X-Empty:', b'X-Tab: a\tb', b'X-Utf8: caf\xc3\xa9', b'X_Y: z', b'Cookie: a=b; c=d',
         b'Mcp-Session-Id: 3f1c2a7e', b'Connection: keep-alive', b'Authorization: Bearer abc', b'TE: trailers', b'X-Pad: ' + b'p' * 300, b'Expect: 100-continue')
DAMAGE = (b'\r', b'\n', b'\r\n', b'\x00', b' ', b'\t', b'\x0b', b'\x0c', b'\x1f', b'\x7f', b'\x85', b'\xa0', b':', b',', b';', b'"', b'\\', b'0', b'5', b'x',
          b'\r\n\r\n', b'\r\n ', b'Transfer-Encoding: chunked\r\n', b'Content-Length: 5\r\n', b'0\r\n\r\n', b'HTTP/1.1', b'GET /x HTTP/1.1\r\nHost: a\r\n\r\n')


def chunked(rng, body):
    out = b''
    while body:
        n = rng.randint(1, len(body))
        extension = rng.choice((b'', b'', b'', b';a', b';a=b', b';a="b c"'))
        out += (b'%x' if rng.random() < 0.7 else b'%04X') % n + extension + b'\r\n' + body[:n] + b'\r\n'
        body = body[n:]
    return out + b'0\r\n' + rng.choice((b'', b'', b'X-Trailer: y\r\n')) + b'\r\n'


def request(rng):
    body = rng.choice((b'', b'abc', b'{"jsonrpc":"2.0","id":1}', NEXT, b'\r\n\r\n', b'0\r\n\r\n'))
    method = rng.choice((b'GET', b'POST', b'POST', b'PUT', b'DELETE', b'OPTIONS', b'HEAD'))
    lines = [b'Host: a'] + rng.sample(LINES, rng.randint(0, 5))
    framing = rng.choice(('length', 'chunked', 'length', 'chunked', 'short', 'none'))
    if framing == 'length' and (body or rng.random() < 0.5):
        lines.append(b'Content-Length: %d' % len(body))
    elif framing == 'chunked':
        lines.append(b'Transfer-Encoding: chunked')
        body = chunked(rng, body)
    elif framing == 'short':
        lines.append(b'Content-Length: %d' % rng.randint(0, len(body)))
    elif framing == 'none':
        body = b''
    rng.shuffle(lines)
    lines = [line if rng.random() < 0.9 else line.replace(b': ', b':', 1) for line in lines]
    target = rng.choice((b'/mcp', b'/a?b=c', b'/a/%20b', b'/', b'http://a/c', b'/x;y=z,w'))
    return method + b' ' + target + b' HTTP/1.1\r\n' + b''.join(line + b'\r\n' for line in lines) + b'\r\n' + body


def damage(rng, data):
    at = rng.randrange(len(data))
    how = rng.choice(('insert', 'insert', 'replace', 'delete', 'line end', 'twice'))
    if how == 'insert':
        return data[:at] + rng.choice(DAMAGE) + data[at:]
    if how == 'replace':
        return data[:at] + rng.choice(DAMAGE) + data[at + 1:]
    if how == 'delete':
        return data[:at] + data[at + 1:]
    lines = data.split(b'\r\n')
    at = rng.randrange(len(lines))
    if how == 'twice':
        return b'\r\n'.join(lines[:at] + [lines[at]] + lines[at:])
    return b'\r\n'.join(lines[:at]) + (b'\r\n' if at else b'') + lines[at] + rng.choice((b'\n', b'\r', b'\r\r\n')) + b'\r\n'.join(lines[at + 1:])


def generated(rng):
    for _ in range(GENERATED):
        data = b''.join(request(rng) for _ in range(rng.randint(1, 3)))
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            data = damage(rng, data)
        yield data


def all_cases(rng):
    seen = {}
    for data in table():
        seen.setdefault(data)
        seen.setdefault(data + NEXT)
    for data in generated(rng):
        seen.setdefault(data)
    return list(seen)


# What a peer may refuse although we accept it: (peer, does it concern our reading, why).  There is no such list for
# seeing more requests than we do, or other bytes in them.

NODE_METHODS = set(
    'ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL MOVE NOTIFY OPTIONS PATCH POST PROPFIND '
    'PROPPATCH PURGE PUT QUERY REBIND REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE'.split())


def has_unknown_method(ours):
    return not set(ours.methods) <= NODE_METHODS


def has_method(name):
    return lambda ours: name in ours.methods


def has_bad_path(ours):
    """A broken escape, %00 or a dot segment in a path."""
    paths = [bytes.fromhex(r[1]).split(b'?')[0] for r in ours.requests]
    return any(re.search(rb'%(?![0-9a-f]{2})|%00|/(\.|%2e){1,2}(/|$)', path, re.I) for path in paths)


def has_bytes(pattern):
    return lambda ours: re.search(pattern, ours.accepted, re.I | re.S) is not None


INTENDED = [
    ('node', has_unknown_method, 'node takes only the methods it knows; with us the route table answers 405'),
    ('nginx', has_method('TRACE'), 'nginx answers TRACE with 405 itself; with us the route table does'),
    ('nginx', has_bad_path, 'nginx decodes paths while parsing; with us the router refuses these'),
    ('nginx', has_bytes(rb'\nConnection: closed\r'), 'nginx looks for "close" anywhere in Connection; we compare list members'),
    ('nginx', has_bytes(rb'\nAuthorization:.*\nAuthorization:'), 'nginx refuses a second Authorization; with us whoever authenticates does'),
    ('node', has_bytes(rb'\r\n0+(;[^\r]*)?\r\n([^\r]+\r\n)*(Content-Length|Transfer-Encoding):'), 'node refuses framing in trailers; we drop all trailers unread'),
    ('node', has_bytes(rb'\nUpgrade:'), 'node reads no request after one with Upgrade; we do not switch and go on'),
]


class Reading:
    """How our codec read one case."""

    def __init__(self, data, line):
        state, status, used, heads, *requests = line.split(' ')
        self.data, self.state, self.status = data, state, int(status)
        self.used, self.heads = int(used), int(heads)
        self.requests = [tuple(r.split(':')) for r in requests]
        self.methods = [r[0] for r in self.requests]
        # What goes on after a refusal or a close is never read by us.
        self.accepted = data[:self.used] if state in ('bad', 'closed') else data


def read_ourselves(program, cases):
    packed = b''.join(struct.pack('<I', len(c)) + c for c in cases)
    out = subprocess.run([program], input=packed, stdout=subprocess.PIPE, check=True, timeout=120).stdout
    lines = out.decode().splitlines()
    assert len(lines) == len(cases), 'http_check did not answer every case'
    return [Reading(c, line) for c, line in zip(cases, lines)]


# The peers.

NGINX = '''
daemon off; master_process off; pid %(dir)s/pid; error_log %(dir)s/error.log; worker_processes 1;
events { worker_connections 512; }
http {
    log_format seen '$remote_addr $status';
    access_log off;
    client_body_temp_path %(dir)s/body; proxy_temp_path %(dir)s/proxy; fastcgi_temp_path %(dir)s/fastcgi;
    uwsgi_temp_path %(dir)s/uwsgi; scgi_temp_path %(dir)s/scgi;
    client_header_timeout 3s; client_body_timeout 3s; keepalive_timeout 3s; lingering_close off;
    client_header_buffer_size 64k; large_client_header_buffers 4 64k; client_max_body_size 0;
    server {
        listen 127.0.0.1:%(front)d; access_log %(dir)s/seen.log seen;
        location / { proxy_pass http://127.0.0.1:%(back)d; proxy_ignore_client_abort on; }
    }
    server { listen 127.0.0.1:%(back)d; location / { return 200 "ok"; } }
}
'''

NODE = '''
const http = require('http'), fs = require('fs'), log = fs.openSync(process.argv[1], 'a');
const note = (socket, what) => fs.writeSync(log, socket.from + ' ' + what + '\\n');
const server = http.createServer({ maxHeaderSize: 65536 }, (req, res) => {
    const parts = [];
    note(req.socket, 'head');
    req.on('data', (part) => parts.push(part));
    req.on('end', () => {
        note(req.socket, ['whole', req.method, Buffer.from(req.url, 'latin1').toString('hex'), Buffer.concat(parts).toString('hex')].join(' '));
        res.end('ok');
    });
});
server.httpAllowHalfOpen = true;
server.on('connection', (socket) => { socket.from = socket.remoteAddress; });
server.on('clientError', (error, socket) => { note(socket, 'refused ' + error.code); socket.destroy(); });
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
'''


def address_of(number):
    return '127.%d.%d.%d' % (1 + number // 62500, 1 + number // 250 % 250, 1 + number % 250)


def send(port, number, data):
    """Sends everything, says that no more will come, and waits until the peer hangs up."""
    with socket.socket() as s:
        s.settimeout(20)
        s.bind((address_of(number), 0))
        s.connect(('127.0.0.1', port))
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
        except ConnectionError:
            pass  # a reset is an answer, too


def send_all(port, cases):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda pair: send(port, *pair), enumerate(cases)))


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def wait_for(port, process):
    for _ in range(500):
        if process.poll() is not None:
            raise SystemExit('a peer ended before it listened')
        try:
            socket.create_connection(('127.0.0.1', port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise SystemExit('a peer does not listen')


def log_by_case(path, count):
    entries = [[] for _ in range(count)]
    numbers = {address_of(i): i for i in range(count)}
    with open(path, encoding='utf-8') as log:
        for line in log:
            source, _, rest = line.rstrip('\n').partition(' ')
            if source in numbers:
                entries[numbers[source]].append(rest)
    return entries


class Seen:
    """What a peer made of one case: requests it took up, and those it took whole (None: not known)."""

    def __init__(self, heads, whole, requests=None):
        self.heads, self.whole, self.requests = heads, whole, requests


def ask_nginx(program, cases):
    with tempfile.TemporaryDirectory() as directory:
        front, back = free_port(), free_port()
        config = os.path.join(directory, 'nginx.conf')
        with open(config, 'w', encoding='utf-8') as f:
            f.write(NGINX % {'dir': directory, 'front': front, 'back': back})
        process = subprocess.Popen([program, '-p', directory, '-c', config], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(front, process)
            send_all(front, cases)
        finally:
            process.terminate()
            process.wait(20)
        entries = log_by_case(os.path.join(directory, 'seen.log'), len(cases))
    taken = [sum(e.startswith('200') for e in entry) for entry in entries]
    return [Seen(n, n) for n in taken]


def ask_node(program, cases):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'seen.log')
        process = subprocess.Popen([program, '-e', NODE, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            port = int(process.stdout.readline())
            send_all(port, cases)
        finally:
            process.terminate()
            process.wait(20)
        entries = log_by_case(path, len(cases))
    result = []
    for entry in entries:
        whole = [tuple((e.split(' ') + ['', ''])[1:4]) for e in entry if e.startswith('whole')]
        result.append(Seen(entry.count('head'), len(whole), whole))
    return result


def reduced(target_hex):
    """An absolute-form target as we report it."""
    target = bytes.fromhex(target_hex)
    match = re.match(rb'https?://[^/]*(/.*)?$', target, re.I | re.S)
    return (match.group(1) or b'/').hex() if match else target_hex


def difference(peer, ours, seen, used):
    """One sentence, or None when they agree or the difference is meant."""
    if seen.heads > ours.heads:
        return '%s sees %d requests, we see %d' % (peer, seen.heads, ours.heads)
    for mine, theirs in zip(ours.requests, seen.requests or ()):
        if mine != (theirs[0], reduced(theirs[1]), theirs[2]):
            return '%s reads %s, we read %s' % (peer, theirs, mine)
    if seen.whole >= len(ours.requests):
        return None
    for rule, (who, concerns, _) in enumerate(INTENDED):
        if who == peer and concerns(ours):
            used[rule] = used.get(rule, 0) + 1
            return None
    return '%s takes %d requests, we take %d' % (peer, seen.whole, len(ours.requests))


def compare(peer, readings, seen_by_case, used):
    bad = 0
    for ours, seen in zip(readings, seen_by_case):
        text = difference(peer, ours, seen, used)
        if text:
            bad += 1
            print('%s:\n    %s' % (text, ours.accepted[:400]))
    return bad


def main():
    program = os.path.join(sys.argv[1], 'tests/peers/http_check')
    peers = [('nginx', shutil.which('nginx') or shutil.which('/usr/sbin/nginx'), ask_nginx), ('node', harness.node() or shutil.which('node'), ask_node)]
    for name, path, _ in peers:
        if not path:
            print('skipped: %s is not installed' % name)
            return 77
    cases = all_cases(random.Random(SEED))
    readings = read_ourselves(program, cases)
    whole = [r for r in readings if r.accepted]
    print('seed %d: %d cases, %d refused at once, %d refused or closed later' %
          (SEED, len(cases), len(readings) - len(whole), sum(r.state in ('bad', 'closed') for r in whole)))
    bad, used = 0, {}
    for name, path, ask in peers:
        refused = [r for r in readings if r.state == 'bad' and not r.used]
        seen = ask(path, [r.accepted for r in whole] + [r.data for r in refused])
        bad += compare(name, whole, seen[:len(whole)], used)
        print('%s: takes a request from %d of the %d we refuse' % (name, sum(s.whole > 0 for s in seen[len(whole):]), len(refused)))
    for rule, (who, _, why) in enumerate(INTENDED):
        print('intended, %s, %d times: %s' % (who, used.get(rule, 0), why))
    print('%d differences' % bad)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
