# SPDX-License-Identifier: Apache-2.0
"""Servers that misbehave (tests/peers/evil.py), each beside healthy ones: the call ends in words or in
the right answer, the others do not notice, memory stays bounded, and the record says how it ended.

One Holdfast serves every mode.  Modes that end by a deadline are all called at the start, so that
their waits pass together; each test then collects its own."""
import concurrent.futures
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

import pytest

import harness
from commands import Executions, marked
from harness import LONG, PEERS, Reply, wait_for

sys.path.insert(0, PEERS)
import evil  # noqa: E402  pylint: disable=wrong-import-position

GOOD = 'the right answer'
SILENT = r'did not answer within [13] s'
ODD = r' \(it sent %s\)'
UNKNOWN_ID = ODD % 'an answer to no open request'
NO_JSON = ODD % 'something that is not JSON: .*'
ENDED = r'ended its stream without a result'
BREAKS = r'breaks HTTP'
TOO_LARGE = r'answer is larger than 16777216 bytes'
EVENT_TOO_LARGE = r'sent an event larger than 16777216 bytes'
AUTHORS = r'.*; report that to its authors'
MIDDLE = r'closed the connection in the middle of its answer'
REDIRECTS = r'redirects: put the address it redirects to into the configuration'
MEMORY_MIB = 400  # with the sanitizer's shadow and red zones

# What the client reads: GOOD, or what the error's message says; two where the transports differ.
EXPECT = {
    'good': GOOD,
    'wrong-id': (ENDED + UNKNOWN_ID, SILENT + UNKNOWN_ID),
    'string-id': (ENDED + UNKNOWN_ID, SILENT + UNKNOWN_ID),
    'float-id': (ENDED + UNKNOWN_ID, SILENT + UNKNOWN_ID),
    'null-id': (ENDED + UNKNOWN_ID, SILENT + UNKNOWN_ID),
    'no-id': (ENDED + UNKNOWN_ID, SILENT + UNKNOWN_ID),
    'forged-ids': GOOD,
    'duplicate': GOOD,
    'batch': GOOD,
    'both-result-and-error': 'and an error',
    'neither-result-nor-error': 'neither a result nor an error' + AUTHORS,
    'result-is-a-number': 'a result that is not an object' + AUTHORS,
    'error-is-a-string': 'an error without an integer "code" and a "message"' + AUTHORS,
    'error-without-message': 'an error without an integer "code" and a "message"' + AUTHORS,
    'garbage-json': (ENDED + NO_JSON, SILENT + NO_JSON),
    'garbage-then-good': GOOD,
    'deep': (ENDED + NO_JSON, SILENT + NO_JSON),
    'many-nodes': GOOD,
    'invalid-utf8': (ENDED + NO_JSON, SILENT + NO_JSON),
    'raw-nul': (ENDED + NO_JSON, SILENT + NO_JSON),
    'escaped-controls': GOOD,
    'escaped-controls-in-error': 'red',
    'sse-injection': GOOD,
    'bad-request-ids': GOOD,
    'ping-storm': GOOD,
    'unknown-requests': GOOD,
    'progress-flood': GOOD,
    'log-flood': GOOD,
    'list-changed-flood': GOOD,
    'progress-after': GOOD,
    'foreign-progress': GOOD,
    'endless-progress': SILENT,
    'hang': SILENT,
    'late': GOOD,
    'exit': ('closed the connection without an answer', 'exited with status 0'),
    'cut': (MIDDLE, 'exited with status 0'),
    'init-unknown-version': 'chose protocol version "1999-01-01", which Holdfast does not speak',
    'init-version-is-ansi': r'chose protocol version "\\x1b\]52;c;',
    'init-no-version': 'named no protocol version',
    'init-number': 'a result that is not an object',
    'init-error': 'refused to start a session: the licence of this server has expired',
    'init-error-ansi': 'refused to start a session: \u00e9{90}',
    'init-hang': SILENT,
    'init-garbage': (ENDED + NO_JSON, SILENT + NO_JSON),
    'init-exit': ('closed the connection without an answer', 'exited with status 0'),
    **{f'list-{n}': GOOD for n in ('endless', 'error', 'not-an-array', 'nameless', 'too-many', 'huge-cursor', 'escaped-name')},
    'list-hang': SILENT,
    'list-15mib': GOOD,
    'instructions-15mib': GOOD,
    'line-ends': GOOD,
    'line-ends-json': GOOD,
    'notification-flood': GOOD,
    'question-flood': GOOD,
    'question-huge-id': GOOD,
    'question-bad-id': GOOD,
    'extra-bytes': BREAKS,
    'two-responses': BREAKS,
    'second-response-later': GOOD,
    'interim-flood': BREAKS,
    'interim-few': GOOD,
    'switching': 'switched protocols unasked',
    'length-and-chunked': BREAKS,
    'two-lengths': BREAKS,
    'length-negative': BREAKS,
    'length-huge': TOO_LARGE,
    '204-with-body': BREAKS,
    '304-with-body': BREAKS,
    'status-000': BREAKS,
    'status-text': BREAKS,
    'http-0.9': BREAKS,
    'other-protocol': BREAKS,
    'bare-lf': BREAKS,
    'folded-header': BREAKS,
    'nul-header': BREAKS,
    'huge-head': BREAKS,
    'many-headers': BREAKS,
    'endless-head': BREAKS,
    'chunk-size-bad': BREAKS,
    'chunk-size-huge': BREAKS,
    'chunk-no-end': BREAKS,
    'chunked-trailing': BREAKS,
    'gzip-coding': 'compresses its answers unasked',
    'gzip-transfer': BREAKS,
    'html-200': r'HTTP 200 \(text/html; charset=utf-8\) without the JSON-RPC answer.*check that its "url"',
    'wrong-type': GOOD,
    'sse-called-json': r'HTTP 200 \(application/json\) without the JSON-RPC answer',
    'json-called-sse': ENDED,
    'empty-200': r'HTTP 200 \(application/json\) without the JSON-RPC answer; check',
    'accepted': r'HTTP 202 \(application/json\) without the JSON-RPC answer; check',
    'short-body': MIDDLE,
    'until-close': GOOD,
    'accept-and-close': 'Connection reset by peer',
    **{f'redirect-{n}': REDIRECTS for n in (301, 302, 303, 307, 308)},
    'status-400': r'HTTP 400 \(text/html\) .*; look at its log',
    'status-401': '401: it requires a credential; set one in "headers"',
    'status-403': '403: it requires a credential; set one in "headers"',
    'status-404': r'HTTP 404 \(text/html\) .*; check its "url"',
    'status-429': r'HTTP 429 \(text/html\) .*; try again later',
    'status-500': r'HTTP 500 \(text/html\) .*; look at its log',
    'status-503': r'HTTP 503 \(text/html\) .*; try again later',
    'status-500-with-error': 'it said why',
    'status-400-null-id': 'it said why',
    'session-illegal': 'gave a session id that is longer than 4096 bytes or not visible ASCII',
    'session-long': 'gave a session id that is longer than 4096 bytes or not visible ASCII',
    'session-twice': GOOD,
    'session-lost': 'no longer knows its session',
    'init-html': r'HTTP 200 \(text/html\) without the JSON-RPC answer',
    'init-500': 'HTTP 500 .* without the JSON-RPC answer',
    'init-redirect': REDIRECTS,
    'initialized-refused': GOOD,
    'json-limit': GOOD,
    'json-above-limit': TOO_LARGE,
    'json-chunked-above-limit': TOO_LARGE,
    'json-1gib': TOO_LARGE,
    'event-limit': GOOD,
    'event-above-limit': EVENT_TOO_LARGE,
    'event-1gib-line': EVENT_TOO_LARGE,
    'event-no-blank-line': EVENT_TOO_LARGE,
    'comment-flood': SILENT,
    'event-forms': GOOD,
    'event-one-byte-chunks': GOOD,
    'event-other-type': ENDED,
    'stream-empty': ENDED,
    'stream-cut': MIDDLE,
    'stream-stays': GOOD,
    'stream-chatters': GOOD,
    'hang-after-head': SILENT,
    'drip-head': SILENT,
    'drip-body': SILENT,
    'drip-events': SILENT,
    **{f'listen-{n}': GOOD for n in ('storm', 'empty', 'flood', '1gib', 'garbage', '401', 'hang')},
    'exits-at-once': r'exited with status 1; it wrote to stderr: .*\\u202e\\u009b\\x7f',
    'stops-at-once': SILENT,
    'reads-nothing-at-all': SILENT,
    'stops-itself': SILENT,
    'stops-reading': SILENT,
    'stderr-256k': GOOD,
    'stderr-64m': GOOD,
    'prints-before': GOOD,
    'bad-lines-99': GOOD,
    'bad-lines-100': 'wrote 100 lines in a row to stdout that are not JSON',
    'binary': 'wrote 100 lines in a row to stdout that are not JSON',
    'crlf': GOOD,
    'line-limit': GOOD,
    'line-above-limit': 'wrote a line longer than 4194304 bytes',
    'line-1gib': 'wrote a line longer than 4194304 bytes',
    'closes-stdout': SILENT + '|closed its stdout',
    'closes-stdin': SILENT + '|closed its stdin',
    'grandchild': 'exited with status 5',
    'grandchild-own-session': 'exited with status 5',
    'segfault': r'was killed by signal 11 \(Segmentation fault\)',
    'drip-line': SILENT,
}
# Their tools can be called although they cannot be listed.
UNLISTED = {
    'list-endless': 'more pages of tools/list than Holdfast reads',
    'list-error': 'refused tools/list',
    'list-not-an-array': 'tools/list result has no array "tools"',
    'list-too-many': 'tools/list has more than 10000 entries',
    'list-huge-cursor': 'more pages of tools/list than Holdfast reads',
    'list-escaped-name': 'lists are larger than 16 MiB',
}
OUTCOMES = [(SILENT, 'timeout'), ('closed the connection|Connection reset|ended its stream|no longer knows|exited with|was killed',
                                  'upstream_lost')]


def expected(name, on):
    found = EXPECT[name]
    return found if isinstance(found, str) else found[on == 'stdio']


REDIRECTING = [name for name in EXPECT if expected(name, 'http') == REDIRECTS]
CASES = [(m.name, on) for m in evil.MODES.values() for on in m.on]
IDS = [f'{on}-{name}'.replace('.', '-') for name, on in CASES]


def server_name(name, on):
    return f'{on}-{name}'.replace('.', '-')


def is_slow(name, on):
    return name == 'late' or SILENT in expected(name, on)


class World:
    """Holdfast, the evil server, two healthy ones, and a listener that nobody should find."""

    def __init__(self, folder):
        self.folder, self.mark = folder, f'evil-{os.getpid()}-{time.monotonic_ns()}'
        self.record = os.path.join(str(folder), 'evil.record')
        self.other = socket.create_server(('127.0.0.1', 0))
        self.other.setblocking(False)
        env = {**os.environ, 'EVIL_FLOOD': '1000000' if LONG else '5000', 'EVIL_FORGED': '100001' if LONG else '10000'}
        self.evil = subprocess.Popen(
            [harness.PYTHON, '-S', '-E', os.path.join(PEERS, 'start.py'), 'evil', '--http', '--record', self.record,
             '--other', str(self.other.getsockname()[1])], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env)
        self.port = int(self.evil.stdout.readline().split()[1])
        stdio, _ = harness.stdio_server(folder, 'healthy', handles='never')
        self.web = harness.HttpServer(folder, 'healthy-web').start()
        servers = {'healthy': stdio, 'healthy-web': self.web.entry(handles='never')}
        servers.update({server_name(name, on): self.entry(name, on, env) for name, on in CASES})
        # The quarantine would count as memory that is held.
        self.holdfast = harness.Holdfast(folder, {'mcpServers': servers, 'holdfast': {}}, env={
            'ASAN_OPTIONS': 'detect_leaks=1:exitcode=99:quarantine_size_mb=8'}).start()
        self.holdfast.wait_asked(*servers)
        self.healthy = [self.holdfast.client('/mcp/' + name).connect() for name in ('healthy', 'healthy-web')]
        self.executions, self.lock = Executions(), threading.Lock()
        self.base_mib = self.memory_mib()
        self.pool = concurrent.futures.ThreadPoolExecutor(12)
        self.early = {(name, on): self.pool.submit(self.call, name, on) for name, on in CASES if is_slow(name, on)}

    def entry(self, name, on, env):
        # A process needs its time to start before it can be silent.
        silent = '1s' if on == 'http' else '3s'
        entry = {'handles': 'never', 'era': 'legacy', 'timeout': silent if is_slow(name, on) else '120s'}
        if on == 'http':
            return {**entry, 'url': f'http://127.0.0.1:{self.port}/{name}'}
        return {**entry, 'command': harness.PYTHON,
                'args': ['-S', '-E', os.path.join(PEERS, 'start.py'), 'evil', '--stdio', name, '--record', self.record],
                'env': {n: env[n] for n in ('EVIL_FLOOD', 'EVIL_FORGED')} | {'EVIL_MARK': self.mark}}

    def call(self, name, on, tool='do', arguments=None, ident='c'):
        """One call with a progress token: what came, read to the end with as little work as floods need."""
        client = self.holdfast.client('/mcp/' + server_name(name, on))
        stream = client.open('tools/call', {'name': tool, 'arguments': arguments or {}, '_meta': {'progressToken': 'p'}}, ident)
        try:
            if not stream.is_sse:
                return Reply(stream)
            return StreamEnd(stream)
        finally:
            stream.close()

    def result(self, name, on):
        future = self.early.pop((name, on), None)
        return future.result() if future else self.call(name, on)

    def check_healthy(self):
        """Both healthy servers count on from where they were: answered, once, by the same process."""
        with self.lock:
            for client in self.healthy:
                count = getattr(client, 'count', 0) + 1
                assert client.call('counter').text == str(count)
                client.count = count

    def memory_mib(self):
        with open(f'/proc/{self.holdfast.process.pid}/status', encoding='utf-8') as file:
            return next(int(line.split()[1]) for line in file if line.startswith('VmRSS')) // 1024

    def calls(self, name):
        """How often evil.py saw a tools/call of that mode, over both transports."""
        with open(self.record, 'rb') as file:
            return sum(line.split()[0] == name.encode() for line in file)

    def outcomes(self, server):
        with self.lock:
            self.executions.read(self.holdfast)
            return [self.executions.outcome(i) for i, e in self.executions.intents.items() if e.get('server') == server]

    def close(self):
        try:
            self.pool.shutdown(cancel_futures=True)
            self.holdfast.close()
        finally:
            self.web.stop()
            self.evil.kill()
            self.evil.wait()
            self.evil.stdout.close()
            self.other.close()


class StreamEnd:
    """The status and the last event of a stream; what came before it is only counted."""

    def __init__(self, stream):
        parts = [stream.buffer, *stream.parts]
        events = [e for e in b''.join(parts).split(b'\n\n') if e]
        data = b'\n'.join(line[6:] for line in events[-1].split(b'\n') if line.startswith(b'data: '))
        self.status, self.json, self.raw = stream.status, json.loads(data), data
        self.messages = [json.loads(e.split(b'data: ', 1)[1]) for e in events if b'"id"' in e and b'data: ' in e]


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    one = World(tmp_path_factory.mktemp('misbehaving'))
    yield one
    one.close()


def test_table__has_every_mode():
    assert set(EXPECT) == set(evil.MODES) and len(EXPECT) >= 40
    assert all(mode.what.endswith('.') for mode in evil.MODES.values())


def test_healthy_servers__do_not_wait_for_those_that_hang(world):
    """Runs first: the calls that end by a deadline are under way."""
    hanging = len(world.early)
    assert hanging >= 30
    world.check_healthy()
    assert any(not future.done() for future in world.early.values())


@pytest.mark.parametrize('name,on', CASES, ids=IDS)
def test_mode__ends_in_words_or_in_the_right_answer(world, name, on):
    wanted, reply = expected(name, on), world.result(name, on)
    assert reply.status == 200 and reply.json['jsonrpc'] == '2.0' and reply.json['id'] == 'c', repr(reply)
    assert b'forged' not in reply.raw, repr(reply)
    if wanted == GOOD:
        assert 'result' in reply.json, reply.json
    else:
        assert isinstance(reply.json['error']['code'], int), reply.json
        assert re.search(wanted, reply.json['error']['message']), reply.json
    world.check_healthy()
    world.holdfast.check()
    assert world.memory_mib() < world.base_mib + MEMORY_MIB
    check_record(world, name, on, wanted, reply)


@pytest.mark.parametrize('name', UNLISTED)
def test_tools__that_cannot_be_listed_are_a_reason_not_an_empty_list(world, name):
    for on in evil.MODES[name].on:
        reply = world.holdfast.client('/mcp/' + server_name(name, on)).connect().rpc('tools/list')
        assert re.search(UNLISTED[name], reply.error['message']), repr(reply)


def check_record(world, name, on, wanted, reply):
    """Each call that began has its outcome; none was sent again, but for the one that was refused unread."""
    words = world.outcomes(server_name(name, on))
    if evil.MODES[name].at != 'tools/call' and wanted != GOOD:
        assert words == []  # refused before there was a call
        return
    word = 'ok' if wanted == GOOD else next((w for pattern, w in OUTCOMES if pattern in wanted or
                                             re.search(pattern, reply.json['error']['message'])), 'error')
    assert words == ([word, word] if name == 'session-lost' else [word]), (words, reply.json)


def error_of(reply):
    return reply.json['error']['message']


def test_redirects__bring_nobody_to_the_other_listener(world):
    """Whoever had followed one would stand in the queue of the other listener."""
    for name in REDIRECTING:
        for _ in range(2):
            assert re.search(REDIRECTS, error_of(world.call(name, 'http'))), name
    with pytest.raises(BlockingIOError):
        world.other.accept()
    with socket.create_connection(world.other.getsockname()) as known:  # the queue tells who came
        assert world.other.accept()[1] == known.getsockname()


def test_late_answer__is_not_taken_for_the_answer_to_the_next_call(world):
    for on in ('http', 'stdio'):
        assert re.search(SILENT, error_of(world.call('late', on, arguments={'first': True})))
        reply = world.call('late', on, arguments={'first': False})
        assert reply.json['result']['content'][0]['text'] == 'good', repr(reply)


@pytest.mark.parametrize('name,on', [('duplicate', 'http'), ('duplicate', 'stdio'), ('second-response-later', 'http'),
                                     ('extra-bytes', 'http'), ('two-responses', 'http'), ('chunked-trailing', 'http')])
def test_bytes_too_many__are_never_the_next_answer(world, name, on):
    for n in range(5):
        reply = world.call(name, on, ident=f'n{n}')
        assert reply.json['id'] == f'n{n}' and b'forged' not in reply.raw, repr(reply)


@pytest.mark.parametrize('reset', [False, True], ids=['close', 'reset'])
@pytest.mark.parametrize('form', ['json', 'events'])
def test_connection_lost__at_every_byte_of_the_answer_is_one_error_and_one_execution(world, form, reset):
    """The call may have run: it is not sent again, and the record says that its fate is not known here."""
    server, before = server_name('cut', 'http'), world.calls('cut')
    whole = 268 if form == 'json' else 500
    offsets = list(range(0, whole, 1 if LONG else 13))
    seen = len(world.outcomes(server))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda at: world.call('cut', 'http', arguments={'at': at, 'json': form == 'json', 'reset': reset},
                                                      ident=f'at{at}'), offsets))
    for at, reply in zip(offsets, replies):
        assert reply.json['id'] == f'at{at}' and ('error' in reply.json or reply.json['result']['content'][0]['text'] == 'good'), at
    failed = sum('error' in reply.json for reply in replies)
    # One that met a kept connection as it was being closed never arrived; none arrived twice.
    assert failed > len(offsets) // 2 and world.calls('cut') - before <= len(offsets)
    words = world.outcomes(server)[seen:]
    assert set(words) <= {'ok', 'upstream_lost'} and words.count('upstream_lost') == failed


def test_read_only_tool__is_sent_once_more_when_the_connection_is_lost(world):
    before, seen = world.calls('cut'), len(world.outcomes(server_name('cut', 'http')))
    assert 'error' in world.call('cut', 'http', tool='look', arguments={'at': 40}).json
    assert world.calls('cut') - before == 2
    assert world.outcomes(server_name('cut', 'http'))[seen:] == ['upstream_lost'] * 2


def test_streams_that_stay_open__do_not_use_up_the_connections(world):
    """A pool has 256 connections; each of these streams would hold one for as long as the server likes."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda n: world.call('stream-stays', 'http', ident=n), range(300)))
    assert all('result' in reply.json for reply in replies)


def test_server_that_reads_nothing__has_a_bounded_queue(world):
    """1 MiB waits for it, then calls are refused at once; the pipe itself holds 64 KiB more."""
    text = 'x' * 200000
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        texts = list(pool.map(lambda n: error_of(world.call('stops-reading', 'stdio', arguments={'text': text}, ident=n)), range(12)))
    assert any('does not read its input (1 MiB is waiting)' in t for t in texts), texts
    assert all(re.search(SILENT, t) or 'does not read' in t for t in texts), texts
    world.check_healthy()


def test_grandchildren__that_held_the_pipes_are_gone(world):
    for name in ('grandchild', 'grandchild-own-session'):
        assert 'exited with status 5' in error_of(world.call(name, 'stdio'))
    wait_for(lambda: len(marked(world.mark)) <= 64, 'no more processes than places')
    names = [command_of(pid) for pid in marked(world.mark)]
    assert not any('grandchild' in name for name in names), names


def command_of(pid):
    try:
        with open(f'/proc/{pid}/cmdline', 'rb') as file:
            return file.read().decode('utf-8', 'replace').replace('\0', ' ')
    except OSError:
        return ''


@pytest.mark.parametrize('name', ['question-flood', 'question-huge-id', 'question-bad-id', 'bad-request-ids', 'notification-flood'])
@pytest.mark.parametrize('on', ['http', 'stdio'])
def test_questions__to_a_client_that_answers_none_are_bounded(world, name, on):
    """With a session of its own, so that what the server asks really goes to the client."""
    client = world.holdfast.client('/mcp/' + server_name(name, on)).connect()
    stream = client.open('tools/call', {'name': 'do', 'arguments': {}, '_meta': {'progressToken': 'p'}}, ident='q')
    end = StreamEnd(stream) if stream.is_sse else Reply(stream)
    stream.close()
    assert end.json['id'] == 'q' and 'result' in end.json, end.json
    questions = [m for m in getattr(end, 'messages', []) if 'method' in m and 'id' in m]
    assert len(questions) <= 64 and all(isinstance(m['id'], int) for m in questions)
    assert client.delete().status in (200, 204)
    world.check_healthy()
    assert world.memory_mib() < world.base_mib + MEMORY_MIB


@pytest.mark.parametrize('name', [name for name in EXPECT if name.startswith('listen-') and name != 'listen-storm'])
def test_standalone_stream__that_misbehaves_does_not_touch_the_calls(world, name):
    """With a session of its own: only for such a one does Holdfast listen."""
    client = world.holdfast.client('/mcp/' + server_name(name, 'http')).connect()
    for _ in range(3):
        assert client.call('do').text == 'good'
    world.check_healthy()
    assert client.delete().status in (200, 204)
    assert world.memory_mib() < world.base_mib + MEMORY_MIB


def test_standalone_stream__is_not_opened_again_as_fast_as_the_server_asks(world):
    """Three times at once, then after 0.1 s, 0.2 s, 0.4 s and so on up to a second."""
    client = world.holdfast.client('/mcp/' + server_name('listen-storm', 'http')).connect()
    assert client.call('do').text == 'good'
    began, before = time.monotonic(), world.calls('listen-storm')
    wait_for(lambda: world.calls('listen-storm') >= before + 6, 'six more streams')
    assert time.monotonic() - began > 0.6


def test_client_that_does_not_read__costs_a_bounded_queue(world):
    """The server says four times as much as Holdfast may hold; the client takes nothing until it is over."""
    bound_mib, before = 32, world.memory_mib()
    client = world.holdfast.client('/mcp/' + server_name('notification-flood', 'http')).connect()
    stream = client.open('tools/call', {'name': 'do', 'arguments': {'lines': 4 * bound_mib * 1024}}, ident='slow')
    wait_for(lambda: metric(world, 'holdfast_calls_in_flight') == 0, 'the call to end', 150)
    assert world.memory_mib() < before + bound_mib
    assert world.outcomes(server_name('notification-flood', 'http'))[-1] == 'ok'  # the flood was read to its end
    stream.close()
    world.check_healthy()


def test_merged_lists_and_instructions__of_huge_servers_are_paged_and_cut(world, holdfast):
    """Five times 15 MiB are more than any one answer holds."""
    modes = ['list-15mib'] * 5 + ['instructions-15mib'] * (5 if LONG else 1)
    entries = {f's{n}': world.entry(name, 'http', {}) for n, name in enumerate(modes)}
    hf = holdfast(entries, env={'ASAN_OPTIONS': 'detect_leaks=1:exitcode=99:quarantine_size_mb=8'})
    client = hf.wait_asked(*entries).client('/mcp')
    hello = client.initialize()
    assert hello.status == 200 and len(hello.raw) < 2 << 20 and 'too long to stand here' in hello.result['instructions']
    names, cursor, pages = [], None, 0
    while cursor or not pages:
        page = client.rpc('tools/list', {'cursor': cursor} if cursor else {})
        names += [tool['name'] for tool in page.result['tools'] if not tool['name'].startswith('session__')]
        cursor, pages = page.result.get('nextCursor'), pages + 1
        assert len(page.raw) < 21 << 20
    assert pages > 4 and sorted(names) == sorted([f's{n}__do' for n in range(len(modes))] + [f's{n}__look' for n in range(5, len(modes))])
    assert client.call('s0__do').text == 'good'


def test_log__has_one_json_object_a_line_and_no_control_bytes(world):
    """After all modes ran: what servers wrote to stderr, names and errors of theirs are in it."""
    with world.holdfast.turn:
        lines = list(world.holdfast.lines)
    assert any('server stderr' in line for line in lines)
    for line in lines:
        assert isinstance(json.loads(line), dict), line
        assert not re.search('[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]', line), repr(line)
    assert not any(json.loads(line).get('msg') == 'planted' for line in lines)


def test_record__has_an_outcome_for_every_call(world):
    world.executions.read(world.holdfast)
    still_open = [e for i, e in world.executions.intents.items() if world.executions.outcome(i) == 'open']
    assert not still_open


def test_memory__and_descriptors_are_given_back(world):
    """With every server idle: what is held is the children's pipes, not what floods left behind."""
    assert world.memory_mib() < world.base_mib + MEMORY_MIB // 2
    wait_for(lambda: metric(world, 'holdfast_calls_in_flight') == 0, 'no call in flight')
    # Pipes of 64 children; of every server a kept connection and its streams; at most 256 of one that asked a lot.
    descriptors = len(os.listdir(f'/proc/{world.holdfast.process.pid}/fd'))
    assert descriptors < 64 * 3 + 4 * len(CASES) + 256, descriptors


def metric(world, name):
    found = re.search(rf'^{name} (\d+)$', world.holdfast.get('/metrics').body.decode(), re.M)
    return int(found.group(1))
