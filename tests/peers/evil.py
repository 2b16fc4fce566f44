#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""evil.py --http [--other PORT] [--record FILE] | evil.py --stdio MODE [--record FILE] | evil.py --list

An MCP server that misbehaves in one named way per mode.  Over HTTP one process serves every mode at
/MODE and writes to the socket itself, so that it can break HTTP too; over stdio a process has one
mode.  A mode goes wrong in the answer to one method (`at`, mostly tools/call) and is a proper
2025-11-25 server otherwise: what is being tested is the one thing its name says.

--record FILE gets one line "MODE id" for each tools/call received; --other PORT is where the
redirecting modes send people."""
import argparse
import collections
import contextlib
import gzip
import json
import os
import re
import signal
import socket
import struct
import sys
import threading
import time

MODERN = '2026-07-28'
MIB = 1 << 20
HTTP_LIMIT, LINE_LIMIT = 16 * MIB, 4 * MIB  # what Holdfast takes of one message
TOOLS = [{'name': 'do', 'description': 'Does it.', 'inputSchema': {'type': 'object'}},
         {'name': 'look', 'description': 'Looks.', 'inputSchema': {'type': 'object'}, 'annotations': {'readOnlyHint': True}}]
ANSI = '\x1b]52;c;aGVsbG8=\x07\x1b[31mred\r\n{"level":"error","msg":"planted"}\u202e\u009b\x7f'

Mode = collections.namedtuple('Mode', 'name what at on run')
MODES = {}
OPTIONS = argparse.Namespace(other=9, record=None)


def mode(name, what, on=('http', 'stdio'), at='tools/call'):
    def take(run):
        assert name not in MODES, name
        MODES[name] = Mode(name, what, at, (on,) if isinstance(on, str) else on, run)
        return run
    return take


def dump(value):
    return json.dumps(value, separators=(',', ':'), ensure_ascii=False).encode()


def number(name, default):
    """A count that the test may lower or raise."""
    return int(os.environ.get('EVIL_' + name, default))


class Talk:
    """One request, and the ways to answer it.  `ident` and `token` are the very bytes that came."""

    def __init__(self, message, body):
        self.message, self.method = message, message.get('method')
        params = message.get('params') or {}
        self.params, self.arguments = params, params.get('arguments') or {}
        self.ident = dump(message.get('id'))
        self.token = dump((params.get('_meta') or {}).get('progressToken', 'none'))
        self.body = body

    def result(self, value, ident=None):
        return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (ident or self.ident, value if isinstance(value, bytes) else dump(value))

    def error(self, code, text, ident=None):
        return b'{"jsonrpc":"2.0","id":%s,"error":%s}' % (ident or self.ident, dump({'code': code, 'message': text}))

    def good(self, text='good', ident=None):
        return self.result({'content': [{'type': 'text', 'text': text}]}, ident)

    def sized(self, size):
        """The right answer in exactly `size` bytes."""
        bare = len(self.good(''))
        return self.good('x' * (size - bare))

    def progress(self, n, text='working'):
        return (b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":%s}}'
                % (self.token, n, dump(text)))

    def proper(self):
        """What a well-behaved server answers, or None for a notification."""
        if 'id' not in self.message or self.method is None:
            return None
        if self.method == 'initialize':
            return self.result({'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}},
                                'serverInfo': {'name': 'evil', 'version': '1'}})
        if self.method == 'server/discover':
            return self.result({'supportedVersions': [MODERN], 'capabilities': {'tools': {}}, 'resultType': 'complete',
                                'ttlMs': 0, 'cacheScope': 'private'})
        if self.method == 'tools/list':
            return self.result({'tools': TOOLS, 'resultType': 'complete', 'ttlMs': 0, 'cacheScope': 'private'})
        if self.method == 'tools/call':
            return self.good()
        return self.result({}) if self.method == 'ping' else self.error(-32601, 'Method not found')

    def many(self, messages, per_write=200):
        """Says many messages with few writes."""
        batch = []
        for message in messages:
            batch.append(message)
            if len(batch) == per_write:
                self.say(*batch)
                batch = []
        if batch:
            self.say(*batch)

    def say(self, *messages):
        raise NotImplementedError


class HttpTalk(Talk):
    """raw() writes bytes; json() a whole response; say() events of a stream that end() closes."""

    def __init__(self, sock, message, body, is_sse=True):
        super().__init__(message, body)
        self.socket, self.is_sse, self.begun, self.keeps = sock, is_sse, False, True

    def raw(self, data):
        self.socket.sendall(data)

    def head(self, status=200, kind='application/json', length=None, extra=b''):
        lines = b'HTTP/1.1 %d Whatever\r\n' % status
        if kind:
            lines += b'Content-Type: %s\r\n' % kind.encode()
        if length is not None:
            lines += b'Content-Length: %d\r\n' % length
        return lines + extra + b'\r\n'

    def json(self, body, status=200, kind='application/json', extra=b''):
        self.raw(self.head(status, kind, len(body), extra) + body)

    def begin(self):
        if not self.begun:
            self.raw(self.head(kind='text/event-stream', extra=b'Transfer-Encoding: chunked\r\n'))
        self.begun = True

    def chunk(self, data):
        self.begin()
        self.raw(b'%x\r\n%s\r\n' % (len(data), data))

    def say(self, *messages):
        self.chunk(b''.join(b'event: message\ndata: %s\n\n' % m for m in messages))

    def end(self):
        if self.begun:
            self.raw(b'0\r\n\r\n')

    def hold(self):
        """Says nothing more until the other side hangs up."""
        with contextlib.suppress(OSError):
            while self.socket.recv(65536):
                pass
        self.close()

    def close(self, reset=False):
        if reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            self.socket.close()
        else:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)
        self.keeps = False

    def flood(self, block, total=1 << 30):
        """Up to `total` bytes, as fast as they are taken, in chunks."""
        for _ in range(total // len(block)):
            self.chunk(block)


class StdioTalk(Talk):
    def raw(self, data):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def say(self, *messages):
        self.raw(b''.join(m + b'\n' for m in messages))

    def hold(self):
        """Reads on, so that nothing but the silence is wrong."""
        for _ in sys.stdin.buffer:
            pass
        os._exit(0)

    def close(self, reset=False):
        os._exit(1 if reset else 0)

    def flood(self, block, total=1 << 30):
        for _ in range(total // len(block)):
            self.raw(block)


# Messages that are wrong; the same over both transports.

@mode('good', 'Behaves.')
def good(t):
    t.say(t.good())


@mode('wrong-id', 'Answers with an id that nobody used.')
def wrong_id(t):
    t.say(t.good('forged', b'987654321987'))


@mode('string-id', 'Answers with the id as a string.')
def string_id(t):
    t.say(t.good('forged', b'"%s"' % t.ident))


@mode('float-id', 'Answers with the id as 1.0 and as 1e0.')
def float_id(t):
    t.say(t.good('forged', t.ident + b'.0'), t.good('forged', t.ident + b'e0'))


@mode('null-id', 'Answers with id null.')
def null_id(t):
    t.say(t.good('forged', b'null'))


@mode('no-id', 'Answers without an id.')
def no_id(t):
    t.say(b'{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"forged"}]}}')


@mode('forged-ids', 'Answers every id from 0 to 10^5 but the one asked, then that one.')
def forged_ids(t):
    own = int(t.ident)
    t.many(t.good('forged', b'%d' % n) for n in range(number('FORGED', 100000)) if n != own)
    t.say(t.good())


@mode('duplicate', 'Answers three times, the second and third time with another text.')
def duplicate(t):
    t.say(t.good(), t.good('forged'), t.error(-32000, 'forged'))


@mode('batch', 'Answers with an array that holds the answer.')
def batch(t):
    t.say(b'[' + t.good() + b']')


@mode('both-result-and-error', 'Answers with a result and an error in one object.')
def both_result_and_error(t):
    t.say(t.good()[:-1] + b',"error":{"code":-32000,"message":"and an error"}}')


@mode('neither-result-nor-error', 'Answers with an id and nothing else.')
def neither(t):
    t.say(b'{"jsonrpc":"2.0","id":%s}' % t.ident)


@mode('result-is-a-number', 'Answers with the number 7 as its result.')
def result_is_a_number(t):
    t.say(t.result(7))


@mode('error-is-a-string', 'Answers with a string where the error object belongs.')
def error_is_a_string(t):
    t.say(b'{"jsonrpc":"2.0","id":%s,"error":"boom"}' % t.ident)


@mode('error-without-message', 'Answers with an empty error object.')
def error_without_message(t):
    t.say(b'{"jsonrpc":"2.0","id":%s,"error":{}}' % t.ident)


@mode('garbage-json', 'Answers with an object that is cut in the middle.')
def garbage_json(t):
    t.say(t.good()[:-9])


@mode('garbage-then-good', 'Sends a cut object, an empty array and an unknown method, then the answer.')
def garbage_then_good(t):
    t.say(t.good()[:-9], b'[]', b'{"jsonrpc":"2.0","method":"no/such"}', b'{"jsonrpc":"2.0","method":7}', b'{}', t.good())


@mode('deep', 'Answers with a result nested 100,000 deep.')
def deep(t):
    t.say(t.result(b'[' * 100000 + b']' * 100000))


@mode('many-nodes', 'Answers with an array of half a million ones.')
def many_nodes(t):
    t.say(t.result(b'{"content":[],"structuredContent":{"n":[1%s]}}' % (b',1' * 499999)))


@mode('invalid-utf8', 'Answers with bytes that are no UTF-8 inside a string.')
def invalid_utf8(t):
    t.say(t.good('MARK').replace(b'MARK', b'\xff\xc0\xaf\xed\xa0\x80'))


@mode('raw-nul', 'Answers with a raw NUL byte inside a string.')
def raw_nul(t):
    t.say(t.good('MARK').replace(b'MARK', b'a\x00b'))


@mode('escaped-controls', 'Answers with ANSI sequences, a fake log line and NUL, all escaped.')
def escaped_controls(t):
    t.say(json.dumps({'jsonrpc': '2.0', 'id': int(t.ident), 'result': {'content': [{'type': 'text', 'text': ANSI + '\x00'}]}}).encode())


@mode('escaped-controls-in-error', 'Answers with an error whose message is a terminal attack.')
def escaped_controls_in_error(t):
    t.say(json.dumps({'jsonrpc': '2.0', 'id': int(t.ident), 'error': {'code': -32000, 'message': ANSI}}).encode())


@mode('sse-injection', 'Progress and result hold texts that would be events of their own.')
def sse_injection(t):
    text = 'a\r\n\r\ndata: {"jsonrpc":"2.0","id":"x","result":{}}\r\n\r\nevent: x\rid: 7\n'
    t.say(json.dumps(json.loads(t.progress(1, text))).encode(), json.dumps(json.loads(t.good(text))).encode())


@mode('bad-request-ids', 'Sends requests whose ids are null, an object, an array, a fraction and a megabyte, then answers.')
def bad_request_ids(t):
    ids = (b'null', b'{}', b'[1]', b'1.5', b'-1', b'true', b'"' + b'i' * MIB + b'"', b'""', b'1e400')
    t.say(*(b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % i for i in ids), t.good())


@mode('ping-storm', 'Sends ten thousand pings, reads no answer meanwhile, then answers.')
def ping_storm(t):
    t.many(b'{"jsonrpc":"2.0","id":"p%d","method":"ping"}' % n for n in range(10000))
    t.say(t.good())


@mode('unknown-requests', 'Asks the client for things that do not exist, then answers.')
def unknown_requests(t):
    t.many(b'{"jsonrpc":"2.0","id":%d,"method":"sampling/../etc","params":[]}' % n for n in range(50))
    t.say(t.good())


@mode('progress-flood', 'Sends a hundred thousand progress notifications, then answers.')
def progress_flood(t):
    t.many(t.progress(n) for n in range(number('FLOOD', 100000)))
    t.say(t.good())


@mode('log-flood', 'Sends a hundred thousand log notifications, then answers.')
def log_flood(t):
    line = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}' % (b'l' * 100)
    t.many(line for _ in range(number('FLOOD', 100000)))
    t.say(t.good())


@mode('list-changed-flood', 'Says twenty thousand times that its tools changed, then answers.')
def list_changed_flood(t):
    t.many(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}' for _ in range(20000))
    t.say(t.good())


@mode('progress-after', 'Answers, then sends progress for what it has answered.')
def progress_after(t):
    t.say(t.good(), t.progress(2), t.progress(3))


@mode('foreign-progress', 'Sends progress for tokens of others, of wrong types and of none, then answers.')
def foreign_progress(t):
    line = b'{"jsonrpc":"2.0","method":"notifications/progress","params":%s}'
    t.say(*(line % p for p in (b'{}', b'[]', b'{"progressToken":{}}', b'{"progressToken":"1"}', b'{"progressToken":1}',
                               b'{"progressToken":%s,"progress":"much"}' % t.token, b'{"progressToken":%s}' % t.token)), t.good())


@mode('endless-progress', 'Sends progress for ever and never answers.')
def endless_progress(t):
    for n in range(1 << 30):
        t.say(t.progress(n))
        time.sleep(0.02)


@mode('hang', 'Takes the call and says nothing.')
def hang(t):
    t.hold()


@mode('late', 'Answers the first call when the second one comes, and then that one.')
def late(t):
    late.ids = getattr(late, 'ids', [])
    if t.arguments.get('first'):
        late.ids.append(t.ident)
        return t.hold() if isinstance(t, HttpTalk) else None
    return t.say(*(t.good('forged', i) for i in late.ids), t.good())


@mode('exit', 'Hangs up without a word.')
def exit_(t):
    t.close()


@mode('cut', 'Sends the first bytes of the answer (as many as the argument `at` says), then hangs up or resets.')
def cut(t):
    if isinstance(t, HttpTalk):
        body = t.good() if t.arguments.get('json') else b'data: ' + t.progress(1) + b'\n\n' + b'data: ' + t.good() + b'\n\n'
        kind = 'application/json' if t.arguments.get('json') else 'text/event-stream'
        whole = t.head(kind=kind, length=len(body)) + body
    else:
        whole = t.good() + b'\n'
    t.raw(whole[:int(t.arguments.get('at', len(whole) - 10))])
    t.close(bool(t.arguments.get('reset')))


# The handshake and the list.

@mode('init-unknown-version', 'Chooses the protocol version 1999-01-01.', at='initialize')
def init_unknown_version(t):
    t.say(t.result({'protocolVersion': '1999-01-01', 'capabilities': {}, 'serverInfo': {'name': 'e', 'version': '1'}}))


@mode('init-version-is-ansi', 'Chooses a protocol version that is a terminal attack.', at='initialize')
def init_version_is_ansi(t):
    t.say(json.dumps(json.loads(t.result({'protocolVersion': ANSI * 50, 'capabilities': {}, 'serverInfo': {}}))).encode())


@mode('init-no-version', 'Answers initialize with an empty result.', at='initialize')
def init_no_version(t):
    t.say(t.result({}))


@mode('init-number', 'Answers initialize with the number 7.', at='initialize')
def init_number(t):
    t.say(t.result(7))


@mode('init-error', 'Answers initialize with an error.', at='initialize')
def init_error(t):
    t.say(t.error(-32000, 'the licence of this server has expired'))


@mode('init-error-ansi', 'Answers initialize with an error that is a terminal attack in 10,000 bytes.', at='initialize')
def init_error_ansi(t):
    t.say(json.dumps(json.loads(t.error(-32000, '\u00e9' * 150 + ANSI * 400))).encode())


@mode('init-hang', 'Does not answer initialize.', at='initialize')
def init_hang(t):
    t.hold()


@mode('init-garbage', 'Answers initialize with what is no JSON.', at='initialize')
def init_garbage(t):
    t.say(b'{"jsonrpc":')


@mode('init-exit', 'Hangs up on initialize.', at='initialize')
def init_exit(t):
    t.close()


@mode('list-endless', 'Has a next page of tools for ever.', at='tools/list')
def list_endless(t):
    page = int(t.params.get('cursor') or 0)
    t.say(t.result({'tools': [{'name': f'tool{page}', 'inputSchema': {'type': 'object'}}], 'nextCursor': str(page + 1)}))


@mode('list-error', 'Refuses tools/list though it says that it has tools.', at='tools/list')
def list_error(t):
    t.say(t.error(-32603, 'no list today'))


@mode('list-not-an-array', 'Lists its tools as an object.', at='tools/list')
def list_not_an_array(t):
    t.say(t.result({'tools': {'do': {}}}))


@mode('list-nameless', 'Lists a tool without a name.', at='tools/list')
def list_nameless(t):
    t.say(t.result({'tools': [{'description': 'no name'}, 7, None, {'name': 9}]}))


@mode('list-too-many', 'Lists 10,001 tools.', at='tools/list')
def list_too_many(t):
    t.say(t.result({'tools': [{'name': f't{n}', 'inputSchema': {}} for n in range(10001)]}))


@mode('list-hang', 'Does not answer tools/list.', at='tools/list')
def list_hang(t):
    t.hold()


@mode('list-huge-cursor', 'Gives a cursor of 64 KiB.', at='tools/list')
def list_huge_cursor(t):
    t.say(t.result({'tools': TOOLS, 'nextCursor': 'c' * 65536}))


@mode('list-15mib', 'Lists a tool with a description of 15 MiB.', 'http', at='tools/list')
def list_15mib(t):
    t.json(t.result({'tools': [{'name': 'do', 'description': 'd' * (15 * MIB), 'inputSchema': {'type': 'object'}}]}))


@mode('list-escaped-name', 'Lists a tool whose name is 2 MiB of escapes, on a hundred pages.', 'http', at='tools/list')
def list_escaped_name(t):
    page = int(t.params.get('cursor') or 0)
    t.json(t.result(b'{"tools":[{"name":"%s","inputSchema":{}}]%s}' % (
        b'\\u0061' * (2 * MIB // 6), b',"nextCursor":"%d"' % (page + 1) if page < 98 else b'')))


@mode('instructions-15mib', 'Has instructions of 15 MiB.', 'http', at='initialize')
def instructions_15mib(t):
    t.json(t.result({'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'instructions': 'i' * (15 * MIB),
                     'serverInfo': {'name': 'evil', 'version': '1'}}))


@mode('line-ends', 'Answers with JSON that has a million line ends between its tokens, after some progress.', 'http')
def line_ends(t):
    t.say(t.progress(1))
    body = t.good().replace(b'"content":[', b'"content":[' + b'\n' * 1000000)
    t.chunk(b'\n'.join(b'data: ' + line for line in body.split(b'\n')) + b'\n\n')


@mode('line-ends-json', 'Answers with pretty-printed JSON, two megabytes of it line ends.', 'http')
def line_ends_json(t):
    t.json(t.good().replace(b'"content":[', b'"content":[' + b'\r\n' * 1000000))


@mode('notification-flood', 'Sends notifications that nobody knows, as fast as it can, then answers.')
def notification_flood(t):
    line = b'{"jsonrpc":"2.0","method":"notifications/evil","params":{"data":"%s"}}' % (b'l' * 1000)
    t.many(line for _ in range(t.arguments.get('lines') or number('FLOOD', 100000)))
    t.say(t.good())


@mode('question-flood', 'Asks the client ten thousand things at once, with ids of 1 KiB, then answers.')
def question_flood(t):
    t.many(b'{"jsonrpc":"2.0","id":"%d%s","method":"elicitation/create","params":{"message":"?","requestedSchema":{}}}' % (n, b'q' * 1000)
           for n in range(10000))
    t.say(t.good())


@mode('question-huge-id', 'Asks the client twenty things with ids of 1 MiB, then answers.')
def question_huge_id(t):
    for n in range(20):
        t.say(b'{"jsonrpc":"2.0","id":"%d%s","method":"roots/list"}' % (n, b'q' * MIB))
    t.say(t.good())


@mode('question-bad-id', 'Asks the client things under ids that are no ids, then answers.')
def question_bad_id(t):
    t.say(*(b'{"jsonrpc":"2.0","id":%s,"method":"roots/list"}' % i for i in (b'{}', b'null', b'[]', b'true')), t.good())


# HTTP broken on the wire.

def wire(name, what, data):
    """A mode that writes the bytes data(talk) and leaves the connection open."""
    mode(name, what, 'http')(lambda t: t.raw(data(t)))


def body_with(t, lines=b'', status=b'200 OK', body=None, kind=b'application/json'):
    body = t.good() if body is None else body
    return b'HTTP/1.1 %s\r\nContent-Type: %s\r\n%s\r\n%s' % (status, kind, lines or b'Content-Length: %d\r\n' % len(body), body)


wire('extra-bytes', 'Sends ten bytes more than Content-Length says.',
     lambda t: t.head(length=len(t.good())) + t.good() + b'0123456789')
wire('two-responses', 'Sends two whole responses to one request.',
     lambda t: (t.head(length=len(t.good())) + t.good()) + (t.head(length=len(t.good('forged'))) + t.good('forged')))
@mode('second-response-later', 'Answers, and once the next call is there, sends a second answer to the first before the right one.', 'http')
def second_response_later(t):
    first, second_response_later.first = getattr(second_response_later, 'first', None), t.good('forged')
    if first:
        t.json(first)
    t.json(t.good())


wire('interim-flood', 'Sends a thousand 100 Continue before the answer.',
     lambda t: b'HTTP/1.1 100 Continue\r\n\r\n' * 1000 + t.head(length=len(t.good())) + t.good())
wire('interim-few', 'Sends 103 twice before the answer.',
     lambda t: b'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n' * 2 + t.head(length=len(t.good())) + t.good())
wire('switching', 'Switches protocols unasked.', lambda t: b'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n' + t.good())
wire('length-and-chunked', 'Has Content-Length and Transfer-Encoding.',
     lambda t: body_with(t, b'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', body=b'%x\r\n%s\r\n0\r\n\r\n' % (len(t.good()), t.good())))
wire('two-lengths', 'Has two Content-Lengths.', lambda t: body_with(t, b'Content-Length: 5\r\nContent-Length: %d\r\n' % len(t.good())))
wire('length-negative', 'Has Content-Length -1.', lambda t: body_with(t, b'Content-Length: -1\r\n'))
wire('length-huge', 'Has Content-Length 2^40.', lambda t: body_with(t, b'Content-Length: 1099511627776\r\n'))
wire('204-with-body', 'Answers 204 with a body.', lambda t: body_with(t, status=b'204 No Content'))
wire('304-with-body', 'Answers 304 with a body.', lambda t: body_with(t, status=b'304 Not Modified'))
wire('status-000', 'Answers with the status 000.', lambda t: body_with(t, status=b'000 What'))
wire('status-text', 'Answers with a status that is no number.', lambda t: body_with(t, status=b'OK 200'))
wire('http-0.9', 'Answers as HTTP/0.9 did, with the body alone.', lambda t: t.good())
wire('other-protocol', 'Answers in the words of a mail server.', lambda t: b'220 mail.example ESMTP\r\n')
wire('bare-lf', 'Ends its header lines with LF.', lambda t: body_with(t).replace(b'\r\n', b'\n'))
wire('folded-header', 'Folds a header.', lambda t: body_with(t, b'X-A: a\r\n b\r\nContent-Length: %d\r\n' % len(t.good())))
wire('nul-header', 'Has a NUL in a header.', lambda t: body_with(t, b'X-A: a\x00b\r\nContent-Length: %d\r\n' % len(t.good())))
wire('huge-head', 'Sends 64 KiB of one header.', lambda t: body_with(t, b'X-A: %s\r\nContent-Length: %d\r\n' % (b'a' * 65536, len(t.good()))))
wire('many-headers', 'Sends 150 headers.', lambda t: body_with(t, b'X-A: a\r\n' * 150 + b'Content-Length: %d\r\n' % len(t.good())))
wire('endless-head', 'Sends a head without an end.', lambda t: b'HTTP/1.1 200 OK\r\n' + b'X-A: a\r\n' * 50 + b'X-B: ' + b'b' * 200000)
wire('chunk-size-bad', 'Sends a chunk size that is no number.',
     lambda t: body_with(t, b'Transfer-Encoding: chunked\r\n', body=b'zz\r\n' + t.good() + b'\r\n0\r\n\r\n'))
wire('chunk-size-huge', 'Announces a chunk of 2^64.',
     lambda t: body_with(t, b'Transfer-Encoding: chunked\r\n', body=b'ffffffffffffffff1\r\n' + t.good() + b'\r\n0\r\n\r\n'))
wire('chunk-no-end', 'Leaves out the CRLF after a chunk.',
     lambda t: body_with(t, b'Transfer-Encoding: chunked\r\n', body=b'%x\r\n%s0\r\n\r\n' % (len(t.good()), t.good())))
wire('chunked-trailing', 'Sends bytes after the last chunk.',
     lambda t: body_with(t, b'Transfer-Encoding: chunked\r\n', body=b'%x\r\n%s\r\n0\r\n\r\nHTTP/1.1 200' % (len(t.good()), t.good())))
wire('gzip-coding', 'Compresses the answer unasked.',
     lambda t: body_with(t, b'Content-Encoding: gzip\r\nContent-Length: %d\r\n' % len(gzip.compress(t.good())), body=gzip.compress(t.good())))
wire('gzip-transfer', 'Uses the transfer coding gzip.', lambda t: body_with(t, b'Transfer-Encoding: gzip, chunked\r\n', body=gzip.compress(t.good())))
wire('html-200', 'Answers 200 with a login page.',
     lambda t: body_with(t, kind=b'text/html; charset=utf-8', body=b'<!doctype html><title>Sign in</title>' + b' ' * 1000))
wire('wrong-type', 'Answers rightly, but as text/plain.', lambda t: body_with(t, kind=b'text/plain'))
wire('sse-called-json', 'Sends events and calls them JSON.', lambda t: body_with(t, body=b'data: ' + t.good() + b'\n\n'))
wire('json-called-sse', 'Sends JSON and calls it events.', lambda t: body_with(t, kind=b'text/event-stream'))
wire('empty-200', 'Answers 200 with an empty body.', lambda t: body_with(t, b'Content-Length: 0\r\n', body=b''))
wire('accepted', 'Answers the call with 202 and nothing else.', lambda t: body_with(t, b'Content-Length: 0\r\n', status=b'202 Accepted', body=b''))


@mode('short-body', 'Sends half the body, then hangs up.', 'http')
def short_body(t):
    t.raw(t.head(length=len(t.good())) + t.good()[:30])
    t.close()


@mode('until-close', 'Answers without a length and closes.', 'http')
def until_close(t):
    t.raw(t.head() + t.good())
    t.close()


@mode('accept-and-close', 'Closes every connection that brings a call, before reading the answer to anything.', 'http')
def accept_and_close(t):
    t.close(reset=True)


def redirect(status):
    @mode(f'redirect-{status}', f'Redirects the call to another listener with {status}.', 'http')
    def _(t):
        t.json(b'', status, extra=b'Location: http://127.0.0.1:%d/mcp\r\n' % OPTIONS.other)


def refusal(status, what):
    @mode(f'status-{status}', what, 'http')
    def _(t):
        t.json(b'<h1>no</h1>', status, 'text/html', b'WWW-Authenticate: Bearer realm="x"\r\nRetry-After: 7\r\n')


for number_ in (301, 302, 303, 307, 308):
    redirect(number_)
for number_, what_ in ((400, 'a bad request'), (401, 'a login'), (403, 'a refusal'), (404, 'a lost page'), (429, 'too many requests'),
                       (500, 'a fault'), (503, 'an overload')):
    refusal(number_, f'Answers {number_} in HTML: {what_}.')


@mode('status-500-with-error', 'Answers 500 with a JSON-RPC error in the body.', 'http')
def status_500_with_error(t):
    t.json(t.error(-32050, 'it said why'), 500)


@mode('status-400-null-id', 'Answers 400 with a JSON-RPC error whose id is null.', 'http')
def status_400_null_id(t):
    t.json(t.error(-32600, 'it said why', b'null'), 400)


@mode('session-illegal', 'Gives a session id with blanks and bytes above ASCII.', 'http', at='initialize')
def session_illegal(t):
    t.json(t.proper(), extra=b'Mcp-Session-Id: a b\xff\r\n')


@mode('session-long', 'Gives a session id of 8 KiB.', 'http', at='initialize')
def session_long(t):
    t.json(t.proper(), extra=b'Mcp-Session-Id: %s\r\n' % (b's' * 8192))


@mode('session-twice', 'Gives two session ids.', 'http', at='initialize')
def session_twice(t):
    t.json(t.proper(), extra=b'Mcp-Session-Id: one\r\nMcp-Session-Id: two\r\n')


@mode('session-lost', 'Forgets its session before every call.', 'http')
def session_lost(t):
    t.json(b'', 404)


@mode('init-html', 'Answers initialize with a login page.', 'http', at='initialize')
def init_html(t):
    t.json(b'<html>Sign in</html>', 200, 'text/html')


@mode('init-500', 'Answers initialize with 500.', 'http', at='initialize')
def init_500(t):
    t.json(b'', 500)


@mode('init-redirect', 'Redirects initialize to another listener.', 'http', at='initialize')
def init_redirect(t):
    t.json(b'', 307, extra=b'Location: http://127.0.0.1:%d/mcp\r\n' % OPTIONS.other)


@mode('initialized-refused', 'Refuses notifications/initialized with 500, and works.', 'http', at='notifications/initialized')
def initialized_refused(t):
    t.json(b'', 500)


@mode('json-limit', 'Answers with exactly the largest body that is taken.', 'http')
def json_limit(t):
    t.json(t.sized(HTTP_LIMIT))


@mode('json-above-limit', 'Answers with one byte more than is taken.', 'http')
def json_above_limit(t):
    t.json(t.sized(HTTP_LIMIT + 1))


@mode('json-chunked-above-limit', 'Answers with one byte more than is taken, in chunks.', 'http')
def json_chunked_above_limit(t):
    body = t.sized(HTTP_LIMIT + 1)
    t.raw(t.head(extra=b'Transfer-Encoding: chunked\r\n'))
    for at in range(0, len(body), 65536):
        part = body[at:at + 65536]
        t.raw(b'%x\r\n%s\r\n' % (len(part), part))
    t.raw(b'0\r\n\r\n')


@mode('json-1gib', 'Answers with a body of 1 GiB in chunks.', 'http')
def json_1gib(t):
    t.begun = True
    t.raw(t.head(extra=b'Transfer-Encoding: chunked\r\n'))
    t.flood(b' ' * 65536)


@mode('event-limit', 'Sends the answer as the largest event that is taken.', 'http')
def event_limit(t):
    t.say(t.sized(HTTP_LIMIT))


@mode('event-above-limit', 'Sends the answer as an event one byte larger than is taken.', 'http')
def event_above_limit(t):
    t.say(t.sized(HTTP_LIMIT + 1))


@mode('event-1gib-line', 'Sends one line of 1 GiB as an event.', 'http')
def event_1gib_line(t):
    t.chunk(b'data: "')
    t.flood(b'x' * 65536)


@mode('event-no-blank-line', 'Sends data lines that no blank line ends, 1 GiB of them.', 'http')
def event_no_blank_line(t):
    t.flood((b'data: ' + b'x' * 1017 + b'\n') * 64)


@mode('comment-flood', 'Sends nothing but comments, as fast as it can.', 'http')
def comment_flood(t):
    t.flood(b': still here, nothing to say\n\n' * 2000, 64 << 30)


@mode('event-forms', 'Sends the answer with a BOM, CR line ends, comments, several data lines and odd fields.', 'http')
def event_forms(t):
    half = t.good().index(b',')
    t.chunk(b'\xef\xbb\xbf: hello\r\rretry: x\rnonsense\rid: a\x00b\revent: message\rdata:' + t.good()[:half + 1]
            + b'\rdata: ' + t.good()[half + 1:] + b'\r\r')


@mode('event-one-byte-chunks', 'Sends the event in chunks of one byte.', 'http')
def event_one_byte_chunks(t):
    for byte in b'data: ' + t.good() + b'\n\n':
        t.chunk(bytes([byte]))


@mode('event-other-type', 'Sends the answer as an event of another type.', 'http')
def event_other_type(t):
    t.chunk(b'event: endpoint\ndata: ' + t.good() + b'\n\n')


@mode('stream-empty', 'Opens a stream and ends it.', 'http')
def stream_empty(t):
    t.begin()


@mode('stream-cut', 'Sends progress, then closes in the middle of an event.', 'http')
def stream_cut(t):
    t.say(t.progress(1))
    t.chunk(b'data: {"jsonrpc"')
    t.close()


@mode('stream-stays', 'Answers on a stream that it never closes.', 'http')
def stream_stays(t):
    t.say(t.good())
    t.hold()


@mode('stream-chatters', 'Answers on a stream and goes on with comments for ever.', 'http')
def stream_chatters(t):
    t.say(t.good())
    while True:
        t.chunk(b': more\n\n')
        time.sleep(0.05)


@mode('hang-after-head', 'Sends a head and nothing else.', 'http')
def hang_after_head(t):
    t.raw(t.head(length=100))
    t.hold()


@mode('drip-head', 'Sends its head a byte at a time, five a second.', 'http')
def drip_head(t):
    for byte in t.head(length=len(t.good())) + t.good():
        t.raw(bytes([byte]))
        time.sleep(0.2)


@mode('drip-body', 'Sends its body a byte at a time, five a second.', 'http')
def drip_body(t):
    t.raw(t.head(length=len(t.good())))
    for byte in t.good():
        t.raw(bytes([byte]))
        time.sleep(0.2)


@mode('drip-events', 'Sends its events a byte at a time, five a second.', 'http')
def drip_events(t):
    t.begin()
    for byte in b'data: ' + t.good() + b'\n\n':
        t.chunk(bytes([byte]))
        time.sleep(0.2)


# The stream beside the calls.

LOG = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'


@mode('listen-storm', 'Ends its standalone stream after one event that asks to be back at once.', 'http', at='GET')
def listen_storm(t):
    t.chunk(b'retry: 0\nid: 1\ndata: ' + LOG + b'\n\n')


@mode('listen-empty', 'Ends its standalone stream at once, for ever.', 'http', at='GET')
def listen_empty(t):
    t.begin()


@mode('listen-flood', 'Sends log lines on its standalone stream as fast as it can.', 'http', at='GET')
def listen_flood(t):
    t.flood((b'data: ' + LOG + b'\n\n') * 500, 1 << 34)


@mode('listen-1gib', 'Sends a line of 1 GiB on its standalone stream.', 'http', at='GET')
def listen_1gib(t):
    t.chunk(b'data: "')
    t.flood(b'x' * 65536)


@mode('listen-garbage', 'Answers the request for a standalone stream with garbage.', 'http', at='GET')
def listen_garbage(t):
    t.raw(b'\x00\xff\r\n\r\n')
    t.close()


@mode('listen-401', 'Wants a login for its standalone stream.', 'http', at='GET')
def listen_401(t):
    t.json(b'', 401)


@mode('listen-hang', 'Does not answer the request for a standalone stream.', 'http', at='GET')
def listen_hang(t):
    t.hold()


# Pipes.

@mode('exits-at-once', 'Ends at its start with a word on stderr.', 'stdio', at='start')
def exits_at_once(_):
    sys.exit('no licence file ' + ANSI)


@mode('stops-at-once', 'Stops itself with SIGSTOP at its start.', 'stdio', at='start')
def stops_at_once(_):
    os.kill(os.getpid(), signal.SIGSTOP)


@mode('reads-nothing-at-all', 'Never reads a byte.', 'stdio', at='start')
def reads_nothing_at_all(_):
    time.sleep(600)


@mode('stops-itself', 'Stops itself with SIGSTOP when called.', 'stdio')
def stops_itself(_):
    os.kill(os.getpid(), signal.SIGSTOP)


@mode('stops-reading', 'Reads nothing more once called.', 'stdio')
def stops_reading(_):
    time.sleep(600)


@mode('stderr-256k', 'Writes 256 KiB to stderr without a newline before it answers.', 'stdio')
def stderr_256k(t):
    os.write(2, b'e' * 262144)
    t.say(t.good())


@mode('stderr-64m', 'Writes 64 MiB of ANSI, NUL and invalid UTF-8 to stderr before it answers.', 'stdio')
def stderr_64m(t):
    block = (b'\x1b[2J\x00\xff\xfe\x1b]52;c;x\x07{"planted":"log"}\r\n' * 2000)[:65536]
    for _ in range(1024):
        os.write(2, block)
    t.say(t.good())


@mode('prints-before', 'Prints a banner, a warning and bytes that are no text before it answers.', 'stdio')
def prints_before(t):
    t.raw(b'Server listening on stdio\n\x1b[33mwarning\x1b[0m: deprecated\n\xff\xfe\x00\n\n   \n')
    t.say(t.good())


@mode('bad-lines-99', 'Prints 99 lines that are no JSON before it answers.', 'stdio')
def bad_lines_99(t):
    t.raw(b'nonsense\n' * 99)
    t.say(t.good())


@mode('bad-lines-100', 'Prints 100 lines that are no JSON.', 'stdio')
def bad_lines_100(t):
    t.raw(b'nonsense\n' * 100)
    t.hold()


@mode('binary', 'Prints 8 MiB of random bytes.', 'stdio')
def binary(t):
    for _ in range(128):
        t.raw(os.urandom(65536))
    t.hold()


@mode('crlf', 'Ends its lines with CRLF.', 'stdio')
def crlf(t):
    t.raw(t.good() + b'\r\n')


@mode('line-limit', 'Answers with exactly the longest line that is taken.', 'stdio')
def line_limit(t):
    t.say(t.sized(LINE_LIMIT))


@mode('line-above-limit', 'Answers with a line one byte longer than is taken.', 'stdio')
def line_above_limit(t):
    t.say(t.sized(LINE_LIMIT + 1))
    t.hold()


@mode('line-1gib', 'Prints one line of 1 GiB.', 'stdio')
def line_1gib(t):
    t.raw(b'{"jsonrpc":"2.0","result":"')
    t.flood(b'x' * 65536)


@mode('closes-stdout', 'Closes its stdout and lives on.', 'stdio')
def closes_stdout(_):
    os.close(1)
    time.sleep(600)


@mode('closes-stdin', 'Closes its stdin and lives on.', 'stdio')
def closes_stdin(_):
    os.close(0)
    time.sleep(600)


@mode('grandchild', 'Ends, and leaves a process behind that holds its pipes.', 'stdio')
def grandchild(_):
    if os.fork() == 0:
        time.sleep(600)
    os._exit(5)


@mode('grandchild-own-session', 'Ends, and leaves a process behind in a session of its own that holds its pipes.', 'stdio')
def grandchild_own_session(_):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    time.sleep(0.05)
    os._exit(5)


@mode('segfault', 'Dies by a signal when called.', 'stdio')
def segfault(_):
    os.kill(os.getpid(), signal.SIGSEGV)


@mode('drip-line', 'Prints its answer a byte at a time, five a second.', 'stdio')
def drip_line(t):
    for byte in t.good() + b'\n':
        t.raw(bytes([byte]))
        time.sleep(0.2)


# Transports.

def record(which, talk):
    if OPTIONS.record and talk.method in ('tools/call', 'GET'):
        with open(OPTIONS.record, 'ab', buffering=0) as file:
            file.write(b'%s %s\n' % (which.name.encode(), talk.ident))


def serve_request(sock, verb, path, body):
    """False when the connection is over."""
    which = MODES.get(path.split('?')[0].strip('/').split('/')[0])
    message = json.loads(body) if body else {'method': verb}
    talk = HttpTalk(sock, message, body)
    if which is None or not (body or which.at == verb):
        talk.json(b'', 405 if which else 404, extra=b'Allow: POST\r\n')
        return True
    record(which, talk)
    if talk.method == which.at:
        which.run(talk)
        if talk.keeps:
            talk.end()
        return talk.keeps
    answer = talk.proper()
    # A session, so that the modes which lose it have one; nobody checks it.
    has_session = which.name == 'session-lost' or which.at == 'GET'
    extra = b'Mcp-Session-Id: evil-1\r\n' if has_session and talk.method == 'initialize' else b''
    if answer is None:
        talk.json(b'', 202)
    else:
        talk.json(answer, extra=extra)
    return True


def serve_connection(sock):
    rest = b''
    try:
        while True:
            while b'\r\n\r\n' not in rest:
                more = sock.recv(65536)
                if not more:
                    return
                rest += more
            head, rest = rest.split(b'\r\n\r\n', 1)
            found = re.search(rb'(?im)^content-length: *(\d+)', head)
            length = int(found.group(1)) if found else 0
            while len(rest) < length:
                more = sock.recv(65536)
                if not more:
                    return
                rest += more
            body, rest = rest[:length], rest[length:]
            verb, path = head.decode('latin-1').split(' ')[:2]
            if not serve_request(sock, verb, path, body):
                return
    except OSError:
        pass
    finally:
        sock.close()


def serve_http():
    listener = socket.create_server(('127.0.0.1', 0), backlog=512)
    print(f'listening {listener.getsockname()[1]}', flush=True)
    while True:
        sock, _ = listener.accept()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve_connection, args=(sock,), daemon=True).start()


def serve_stdio(which):
    if which.at == 'start':
        which.run(None)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        talk = StdioTalk(message, line)
        record(which, talk)
        if talk.method == which.at:
            which.run(talk)
        elif talk.proper() is not None:
            talk.say(talk.proper())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--http', action='store_true')
    parser.add_argument('--stdio', metavar='MODE', choices=[m.name for m in MODES.values() if 'stdio' in m.on])
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--other', type=int, default=9)
    parser.add_argument('--record')
    parser.parse_args(namespace=OPTIONS)
    if OPTIONS.list:
        for m in MODES.values():
            print(f"{m.name}\t{' '.join(m.on)}\t{m.what}")
    elif OPTIONS.stdio:
        with contextlib.suppress(BrokenPipeError):
            serve_stdio(MODES[OPTIONS.stdio])
    elif OPTIONS.http:
        serve_http()
    else:
        parser.error('say --http, --stdio MODE or --list')


if __name__ == '__main__':
    main()
