# SPDX-License-Identifier: Apache-2.0
"""`holdfast stdio`: lines on standard input and output, in its own process or through the one that runs."""
import fcntl
import json
import os
import queue
import signal
import subprocess
import threading
import time

import commands
import harness
import pytest

from harness import DEADLINE_S, ENVELOPE, SANITIZER, dump, wait_for


class Pipe:
    """A client that started `holdfast stdio` and speaks lines to it."""

    def __init__(self, hf, *args, server='up'):
        command = [harness.BINARY, 'stdio', '--data', hf.data, *args]
        if server:
            command += ['--server', server]
        if os.path.exists(hf.config_file):
            command += ['--config', hf.config_file]
        self.process = subprocess.Popen(command, cwd=hf.folder, env=commands.command_env(hf), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines, self.words, self.next_id, self.unread = queue.Queue(), [], 0, {}
        self.threads = []

    def start_reading(self):
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self.read_out, self.read_err)]
        for thread in self.threads:
            thread.start()
        return self

    def read_out(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def read_err(self):
        self.words.extend(line.decode('utf-8', 'replace') for line in self.process.stderr)

    def send(self, message):
        line = message if isinstance(message, bytes) else dump(message).encode() + b'\n'
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def receive(self, timeout=DEADLINE_S):
        """The next message; None at the end of output.  Anything else than one JSON object a line fails."""
        line = self.lines.get(timeout=timeout)
        if line is None:
            return None
        assert line.endswith(b'\n'), line
        return json.loads(line)

    def answer(self, ident):
        while ident not in self.unread:
            message = self.receive()
            assert message is not None, f'no answer to {ident!r}: {self.words}'
            self.unread[message.get('id', message.get('method'))] = message
        return self.unread.pop(ident)

    def request(self, method, params=None, modern=False, ident=None):
        if ident is None:
            ident, self.next_id = self.next_id, self.next_id + 1
        params = dict(params or {})
        if modern:
            params['_meta'] = {**ENVELOPE, **params.get('_meta', {})}
        self.send({'jsonrpc': '2.0', 'id': ident, 'method': method, 'params': params})
        return ident

    def rpc(self, method, params=None, modern=False):
        return self.answer(self.request(method, params, modern))

    def call(self, tool, modern=False, meta=None, **arguments):
        reply = self.rpc('tools/call', {'name': tool, 'arguments': arguments, **({'_meta': meta} if meta else {})}, modern)
        return reply['result']['content'][0]['text']

    def initialize(self, version='2025-11-25'):
        reply = self.rpc('initialize', {'protocolVersion': version, 'capabilities': {},
                                        'clientInfo': {'name': 'pipe', 'version': '1'}})
        self.send({'jsonrpc': '2.0', 'method': 'notifications/initialized'})
        return reply['result']

    def finish(self):
        """The exit status and the text of stderr, once the process has ended."""
        status = self.process.wait(DEADLINE_S)
        for thread in self.threads:
            thread.join(DEADLINE_S)
        text = ''.join(self.words)
        assert not SANITIZER.search(text), text
        return status, text

    def close(self):
        self.process.stdin.close()
        return self.finish()


@pytest.fixture
def pipe():
    """pipe(hf, *args): a started Pipe; whatever is left is ended with the test."""
    made = []

    def make(hf, *args, reading=True, **options):
        made.append(Pipe(hf, *args, **options))
        return made[-1].start_reading() if reading else made[-1]

    yield make
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


@pytest.fixture
def alone(holdfast, stdio_server):
    """A configuration whose Holdfast does not run: the first pipe is its own."""
    entry, record = stdio_server('up')
    hf = holdfast({'up': entry}, start=False)
    hf.record = record
    return hf


@pytest.fixture
def beside(holdfast, stdio_server):
    """A Holdfast that runs: pipes join it."""
    entry, record = stdio_server('up')
    hf = holdfast({'up': entry})
    hf.record = record
    return hf


def no_child(record):
    return record.starts() and not [pid for pid in record.starts() if commands.is_alive(pid)]


def ended_cleanly(status_and_text):
    assert status_and_text[0] == 0, status_and_text
    return True


def end_all(*pipes):
    for p in pipes:
        p.process.stdin.close()
    for p in pipes:
        assert ended_cleanly(p.finish())


def test_both_eras_go_through_one_pipe_in_any_order(alone, pipe):
    p = pipe(alone)
    assert p.rpc('server/discover', modern=True)['error']['code'] == -32601  # the server is an older one: begin with initialize
    assert p.initialize()['protocolVersion'] == '2025-11-25'
    assert p.call('echo', text='legacy') == 'legacy'
    assert p.call('echo', modern=True, text='modern') == 'modern'
    assert p.rpc('ping')['result'] == {}
    assert p.rpc('ping', modern=True)['error']['code'] == -32601
    assert 'tools' in p.rpc('tools/list', modern=True)['result']
    assert 'tools' in p.rpc('tools/list')['result']
    assert ended_cleanly(p.close())


def test_a_second_initialize_counts_from_then_on(alone, pipe):
    p = pipe(alone)
    p.initialize('2025-03-26')
    assert p.call('counter') == '1'
    assert p.initialize('2025-06-18')['protocolVersion'] == '2025-06-18'
    assert p.call('counter') == '1'
    assert p.call('counter') == '2'
    assert ended_cleanly(p.close())


@pytest.mark.parametrize('modern', [False, True])
def test_a_call_without_handshake_is_answered_and_the_pipe_is_its_session(alone, pipe, modern):
    p, other = pipe(alone), pipe(alone)
    assert [p.call('counter', modern=modern) for _ in range(3)] == ['1', '2', '3']
    assert other.call('counter', modern=modern) == '1'
    end_all(p, other)


def test_meta_names_sessions_across_pipes(alone, pipe):
    first, second = pipe(alone), pipe(alone)
    assert first.call('counter', meta={'session_id': 'test123'}) == '1'
    assert second.call('counter', meta={'session_id': 'test123'}) == '2'
    assert first.call('counter', modern=True, meta={'session_id': 'other'}) == '1'
    end_all(first, second)


def test_messages_behind_an_initialize_belong_to_its_session(alone, pipe):
    p = pipe(alone)
    init = p.request('initialize', {'protocolVersion': '2025-11-25', 'capabilities': {}, 'clientInfo': {'name': 'x', 'version': '1'}})
    calls = [p.request('tools/call', {'name': 'counter'}) for _ in range(3)]
    p.answer(init)
    assert sorted(p.answer(i)['result']['content'][0]['text'] for i in calls) == ['1', '2', '3']
    assert p.call('counter') == '4'
    assert ended_cleanly(p.close())


def test_notifications_and_responses_are_not_answered(alone, pipe):
    p = pipe(alone)
    p.initialize()
    for message in ({'jsonrpc': '2.0', 'method': 'notifications/whatever'}, {'jsonrpc': '2.0', 'id': 77, 'result': {}}):
        p.send(message)
    p.send(b'\n  \r\n')
    assert p.rpc('ping')['result'] == {}
    assert p.unread == {}
    assert ended_cleanly(p.close())
    assert p.receive() is None


def test_requests_run_at_once(alone, pipe):
    p = pipe(alone)
    slow = p.request('tools/call', {'name': 'slow', 'arguments': {'steps': 1, 'delay_ms': 400}})
    assert p.call('echo', text='first') == 'first'
    assert slow not in p.unread
    p.answer(slow)
    assert ended_cleanly(p.close())


def test_progress_comes_before_its_result(alone, pipe):
    p = pipe(alone)
    ident = p.request('tools/call', {'name': 'slow', 'arguments': {'steps': 2}, '_meta': {'progressToken': 'tok'}})
    seen = [p.receive() for _ in range(3)]
    assert [m['params']['progress'] for m in seen[:2]] == [1, 2]
    assert seen[0]['params']['progressToken'] == 'tok' and seen[2]['id'] == ident
    assert ended_cleanly(p.close())


def test_a_batch_is_one_line_of_answers(alone, pipe):
    p = pipe(alone)
    p.initialize('2025-03-26')
    p.send(dump([{'jsonrpc': '2.0', 'id': i, 'method': 'ping'} for i in ('a', 'b')]).encode() + b'\n')
    assert [m['id'] for m in p.receive()] == ['a', 'b']
    assert ended_cleanly(p.close())


def test_an_item_of_a_batch_is_cancelled_by_its_id(alone, pipe):
    p = pipe(alone)
    p.initialize('2025-03-26')
    p.send(dump([{'jsonrpc': '2.0', 'id': 'h', 'method': 'tools/call', 'params': {'name': 'hang'}},
                 {'jsonrpc': '2.0', 'id': 'p', 'method': 'ping'}]).encode() + b'\n')
    alone.record.wait('tools/call')
    p.send({'jsonrpc': '2.0', 'method': 'notifications/cancelled', 'params': {'requestId': 'h'}})
    assert ['error' in m for m in p.receive()] == [True, False]
    assert ended_cleanly(p.close())


def test_a_server_asks_the_client_of_its_pipe(alone, pipe):
    p = pipe(alone)
    p.rpc('initialize', {'protocolVersion': '2025-11-25', 'capabilities': {'roots': {}}, 'clientInfo': {'name': 'x', 'version': '1'}})
    ident = p.request('tools/call', {'name': 'ask', 'arguments': {'method': 'roots/list'}})
    question = p.receive()
    assert question['method'] == 'roots/list'
    p.send({'jsonrpc': '2.0', 'id': question['id'], 'result': {'roots': []}})
    assert json.loads(p.answer(ident)['result']['content'][0]['text']) == {'result': {'roots': []}}
    assert ended_cleanly(p.close())


def test_a_subscription_is_open_until_it_is_cancelled_or_the_pipe_ends(alone, pipe):
    p = pipe(alone)
    for _ in range(2):
        ident = p.request('subscriptions/listen', {'notifications': {}}, modern=True)
        assert p.receive()['method'] == 'notifications/subscriptions/acknowledged'
    p.send({'jsonrpc': '2.0', 'method': 'notifications/cancelled', 'params': {'requestId': ident - 1}})
    began = time.monotonic()
    assert ended_cleanly(p.close())
    assert time.monotonic() - began < 4, 'it was waited for'
    assert p.receive()['id'] == ident
    assert p.receive() is None


def test_subscriptions_do_not_hold_up_a_pipe(alone, pipe):
    p = pipe(alone)
    for i in range(1025):
        p.request('subscriptions/listen', {'notifications': {'toolsListChanged': True}}, modern=True, ident=f'l{i}')
    assert 'error' in p.answer('l1024'), 'one more than may be open'
    assert p.rpc('ping')['result'] == {}
    assert ended_cleanly(p.close())


@pytest.fixture
def gate(tmp_path):
    """A FIFO: calls of `slow` that name it wait until open_gate()."""
    path = tmp_path / 'gate'
    os.mkfifo(path)
    return str(path)


def open_gate(gate):
    return os.fdopen(os.open(gate, os.O_RDWR), 'rb')


def wait_begun(hf, calls):
    """Until that many calls of `slow` are on record."""
    begun = commands.Executions()
    wait_for(lambda: len(begun.read(hf).of_tool('slow')) == calls, 'the calls to begin')


def check_ping(p, gate, is_read):
    """Every call has begun and waits at the gate: a ping behind them is answered now if it is read at all."""
    if is_read:
        assert p.receive()['id'] == 'ping'
    with open_gate(gate):
        if not is_read:
            assert p.receive()['id'] != 'ping'
            assert p.answer('ping')['result'] == {}
        assert ended_cleanly(p.close())


@pytest.mark.parametrize('calls', [1023, 1024])
def test_no_more_is_read_than_1024_requests(alone, pipe, gate, calls):
    p = pipe(alone)
    assert p.rpc('ping')['result'] == {}  # it is up, and can be asked what has begun
    for i in range(calls):
        p.request('tools/call', {'name': 'slow', 'arguments': {'steps': 1, 'gate': gate}}, ident=f's{i}')
    p.request('ping', ident='ping')
    wait_begun(alone, calls)
    check_ping(p, gate, is_read=calls == 1023)


@pytest.mark.parametrize('more', [0, 1])
def test_no_more_is_read_than_32_mib_of_requests(holdfast, http_server, pipe, gate, more):
    hf = holdfast({'web': http_server('web').entry()}, start=False)
    p = pipe(hf, server='web')
    p.call('echo', text='the server is known')

    def line(i, pad=''):
        return dump({'jsonrpc': '2.0', 'id': f's{i}', 'method': 'tools/call', 'params': {
            'name': 'slow', 'arguments': {'steps': 1, 'gate': gate, 'pad': pad}}})
    for i in range(8):
        text = line(i, 'x' * ((4 << 20) - len(line(i))))
        assert len(text) == 4 << 20
        p.send(text.encode() + b'\n')
    for i in range(more):
        p.send(line(8 + i).encode() + b'\n')
    p.request('ping', ident='ping')
    wait_begun(hf, 8 + more)
    check_ping(p, gate, is_read=more == 0)


def test_all_servers_are_served_without_a_name(alone, pipe):
    p = pipe(alone, server=None)
    assert 'up__echo' in [t['name'] for t in p.rpc('tools/list')['result']['tools']]
    assert p.call('up__echo', text='merged') == 'merged'
    assert ended_cleanly(p.close())


@pytest.mark.parametrize('modern', [False, True])
def test_cancelled_ends_a_call_without_an_answer(beside, pipe, modern):
    p = pipe(beside)
    p.initialize()
    ident = p.request('tools/call', {'name': 'hang'}, modern)
    beside.record.wait('tools/call')
    reason = 'not "needed" any more \n' + 'é' * 300
    p.send({'jsonrpc': '2.0', 'method': 'notifications/cancelled', 'params': {'requestId': ident, 'reason': reason}})
    told = json.loads(beside.record.wait('notifications/cancelled')[-1])['params']['reason']
    assert told.startswith(reason[:250]) and len(told.encode()) <= 520  # 512 bytes of it
    wait_for(lambda: [e for e in commands.events(beside) if e.get('outcome') == 'cancelled'], 'the outcome')
    assert p.rpc('ping')['result'] == {}
    assert p.unread == {}
    assert ended_cleanly(p.close())


def test_garbage_is_answered_and_the_pipe_goes_on(alone, pipe):
    p = pipe(alone)
    for line in (b'nonsense\n', b'{"jsonrpc":"2.0","id":1\n', b'\xff\xfe{}\n', b'{}{}\n'):
        p.send(line)
        reply = p.receive()
        assert (reply['id'], reply['error']['code']) == (None, -32700), reply
    p.send(b'{"jsonrpc":"1.0","id":5,"method":"ping"}\n')
    assert p.receive()['id'] == 5
    p.send(b'7\n')
    assert p.receive()['error']['code'] == -32600
    assert p.rpc('ping')['result'] == {}
    assert ended_cleanly(p.close())


def padded(n, ident):
    """A ping line of n bytes, its end not counted."""
    text = '{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"_meta":{"pad":"%s"}}}'
    return (text % (ident, 'x' * (n - len(text % (ident, ''))))).encode()


def test_a_line_at_the_limit_is_served_and_a_longer_one_is_skipped(holdfast, pipe):
    p = pipe(holdfast({}, {'limits': {'body': '64KiB'}}, start=False), server='sample')
    assert len(padded(65536, 1)) == 65536
    for end in (b'\n', b'\r\n'):
        p.send(padded(65536, 1) + end)
        assert p.answer(1)['result'] == {}
        p.send(padded(65537, 2) + end)
        reply = p.receive()
        assert (reply['id'], reply['error']['code']) == (None, -32600)
    p.send(padded(3000000, 3) + b'\n')
    assert p.receive()['error']['code'] == -32600
    assert p.rpc('ping')['result'] == {}
    assert p.unread == {}
    assert ended_cleanly(p.close())


def test_four_mib_is_the_limit_without_configuration(alone, pipe):
    p = pipe(alone)
    p.send(padded(4 << 20, 1) + b'\n')
    assert p.answer(1)['result'] == {}
    p.send(padded((4 << 20) + 1, 2) + b'\n')
    assert p.receive()['error']['code'] == -32600
    assert ended_cleanly(p.close())


def test_results_of_several_lines_become_one(holdfast, http_server, pipe):
    web = http_server('web')
    p = pipe(holdfast({'web': web.entry()}, start=False), server='web')
    text = '{\n  "content": [\r\n    {"type": "text", "text": "a\\nb"}\n  ]\n}'
    assert p.call('raw', result=text) == 'a\nb'
    assert ended_cleanly(p.close())


def test_eof_lets_calls_finish_and_leaves_no_child(alone, pipe):
    p = pipe(alone)
    ident = p.request('tools/call', {'name': 'slow', 'arguments': {'steps': 1, 'delay_ms': 500}})
    alone.record.wait('tools/call')
    assert ended_cleanly(p.close())
    assert p.answer(ident)['result']['content'][0]['text'] == '1 steps'
    assert p.receive() is None
    wait_for(lambda: no_child(alone.record), 'every child to be gone')


def test_a_last_line_may_lack_its_end(alone, pipe):
    p = pipe(alone)
    p.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert ended_cleanly(p.close())
    assert p.answer(1)['result'] == {}


def test_eof_at_once_is_a_clean_end(alone, pipe):
    p = pipe(alone)
    assert ended_cleanly(p.close())
    assert p.receive() is None


def test_eof_cancels_what_does_not_finish(alone, pipe):
    p = pipe(alone)
    ident = p.request('tools/call', {'name': 'hang'})
    alone.record.wait('tools/call')
    assert ended_cleanly(p.close())
    assert 'error' in p.answer(ident)
    rows = commands.run_json(alone, 'audit', 'list')
    assert [r['outcome'] for r in rows] == ['cancelled']


@pytest.mark.parametrize('joined', [False, True])
def test_sigterm_lets_calls_finish(alone, pipe, joined):
    if joined:
        alone.start()
    p = pipe(alone)
    ident = p.request('tools/call', {'name': 'slow', 'arguments': {'steps': 1, 'delay_ms': 500}})
    alone.record.wait('tools/call')
    p.process.send_signal(signal.SIGTERM)
    assert ended_cleanly(p.finish())
    assert p.answer(ident)['result']['content'][0]['text'] == '1 steps'


def test_input_and_output_may_be_files(alone):
    with open(os.path.join(alone.folder, 'in'), 'wb+') as given, open(os.path.join(alone.folder, 'out'), 'wb+') as taken:
        given.write(b''.join(dump({'jsonrpc': '2.0', 'id': i, 'method': 'ping'}).encode() + b'\n' for i in range(500)))
        given.seek(0)
        done = subprocess.run([harness.BINARY, 'stdio', '--data', alone.data, '--server', 'sample'], stdin=given,
                              stdout=taken, stderr=subprocess.PIPE, env=commands.command_env(alone), cwd=alone.folder,
                              timeout=60, check=False)
        taken.seek(0)
        assert done.returncode == 7, done.stderr  # "up" is configured, so there is no sample
        done = subprocess.run([harness.BINARY, 'stdio', '--data', alone.data, '--server', 'up', '--config', alone.config_file],
                              stdin=given, stdout=taken, stderr=subprocess.PIPE, env=commands.command_env(alone),
                              cwd=alone.folder, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        taken.seek(0)
        assert sorted(json.loads(line)['id'] for line in taken) == list(range(500))


def test_a_client_that_does_not_read_is_not_read(alone, pipe):
    p = pipe(alone, reading=False)
    fd, sent, size = p.process.stdin.fileno(), 0, 200000
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)
    held = b''

    def is_stuck():
        nonlocal sent, held
        for _ in range(2000):
            line = held or dump({'jsonrpc': '2.0', 'id': sent, 'method': 'tools/call', 'params': {
                'name': 'big', 'arguments': {'n': size, 'pad': 'x' * 20000}}}).encode() + b'\n'
            try:
                n = os.write(fd, line)
            except BlockingIOError:
                return True
            held = line[n:]
            sent += not held
        return False

    for _ in range(20):  # back-pressure stays: nothing more is taken though time passes
        wait_for(is_stuck, 'standard input to be full')
    calls = sent
    assert calls < 1500, 'far more was read than may be under way'
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_NONBLOCK)
    p.start_reading()
    if held:
        p.send(held)
        calls += 1
    got = set()
    while len(got) < calls:
        message = p.receive()
        assert len(message['result']['content'][0]['text']) == size
        got.add(message['id'])
    assert ended_cleanly(p.close())


@pytest.mark.parametrize('joined', [False, True])
def test_sigterm_ends_one_whose_client_does_not_read(alone, pipe, joined):
    if joined:
        alone.start()
    p = pipe(alone, reading=False)
    for i in range(20):
        p.request('tools/call', {'name': 'big', 'arguments': {'n': 1000000}}, ident=i)
    alone.record.wait('tools/call', 20)
    p.process.send_signal(signal.SIGTERM)
    assert p.process.wait(DEADLINE_S) == 0
    p.start_reading()
    assert ended_cleanly(p.finish())


def test_pipes_and_http_clients_share_the_gateway_and_not_their_state(beside, pipe):
    one, two = pipe(beside), pipe(beside)
    one.initialize()
    two.initialize()
    with beside.client('/mcp/up').connect() as web:
        assert [one.call('counter'), one.call('counter')] == ['1', '2']
        assert two.call('counter') == '1'
        assert web.call('counter').text == '1'
    assert len({e['session_id'] for e in commands.events(beside) if e.get('tool') == 'counter' and e.get('session_id')}) == 3
    end_all(one, two)
    beside.check()


def gateway_pid(hf):
    with open(os.path.join(hf.data, 'lock'), encoding='utf-8') as file:
        return int(file.read())


@pytest.mark.parametrize('how', ['eof', 'terminate', 'kill'])
def test_whoever_came_first_may_leave_first(alone, pipe, how):
    first = pipe(alone)
    assert first.call('counter') == '1'
    second = pipe(alone)
    assert second.call('counter') == '1'
    if how == 'eof':
        assert ended_cleanly(first.close())
    elif how == 'terminate':
        first.process.terminate()
        assert ended_cleanly(first.finish())
    else:
        first.process.kill()
        first.finish()
    assert second.call('counter') == '2'
    assert ended_cleanly(second.close())
    wait_for(lambda: no_child(alone.record), 'every child to be gone')
    wait_for(lambda: not commands.is_alive(gateway_pid(alone)), 'the gateway to be gone')


def test_two_that_start_at_once_share_one_gateway(alone, pipe):
    pipes = [pipe(alone) for _ in range(4)]
    for p in pipes:
        p.request('tools/call', {'name': 'counter'}, ident='c')
    assert [p.answer('c')['result']['content'][0]['text'] for p in pipes] == ['1'] * 4
    end_all(*pipes)


def lost(result):
    return result.get('_meta', {}).get('holdfast/state-lost', {}).get('reason')


@pytest.mark.parametrize('how', [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize('modern', [False, True])
@pytest.mark.parametrize('handshake', [False, True])
def test_a_pipe_goes_on_with_the_next_gateway(beside, pipe, how, modern, handshake):
    p = pipe(beside)
    if handshake:
        p.initialize()
    assert [p.call('counter', modern=modern), p.call('counter', modern=modern)] == ['1', '2']
    beside.restart(kill=how == signal.SIGKILL)
    wait_for(lambda: 'joining the next one' in ''.join(p.words), 'the pipe to notice')
    reply = p.rpc('tools/call', {'name': 'counter', 'arguments': {}}, modern)
    assert reply['result']['content'][0]['text'] == '1' and lost(reply['result']) == 'holdfast_restarted', reply
    assert p.call('counter', modern=modern) == '2'
    status, text = p.close()
    assert status == 0 and 'has ended; 0 requests under way were answered with an error; joining the next one' in text
    assert p.receive() is None, 'nothing but answers was written'


def test_a_call_under_way_is_answered_when_the_gateway_is_lost(beside, pipe):
    p = pipe(beside)
    p.initialize()
    assert p.call('counter') == '1'
    p.request('tools/call', {'name': 'hang', 'arguments': {}}, ident='h')
    beside.record.wait('tools/call', 2)
    beside.restart()
    answer = p.answer('h')
    assert answer['error']['code'] == -32000 and 'Holdfast was restarted while this request was under way' in answer['error']['message']
    assert p.call('echo', text='x') == 'x'
    status, text = p.close()
    assert status == 0 and '1 request under way was answered' in text


def test_what_is_said_while_there_is_no_gateway_is_answered_by_the_next(beside, pipe):
    p = pipe(beside)
    p.initialize()
    assert p.call('echo', text='before') == 'before'
    beside.kill()
    wait_for(lambda: 'joining the next one' in ''.join(p.words), 'the pipe to notice')
    p.request('tools/call', {'name': 'echo', 'arguments': {'text': 'meanwhile'}}, ident='m')
    beside.start()
    assert p.answer('m')['result']['content'][0]['text'] == 'meanwhile'
    assert p.close()[0] == 0


def test_a_line_that_was_half_sent_is_answered_with_an_error(beside, pipe):
    p = pipe(beside)
    p.initialize()
    assert p.call('echo', text='x') == 'x'
    line = dump({'method': 'tools/call', 'params': {'name': 'echo', 'arguments': {'text': 'y' * 300000}}, 'jsonrpc': '2.0', 'id': 'half'})
    p.send(line[:200000].encode())
    beside.kill()
    p.send(line[200000:].encode() + b'\n')
    beside.start()
    assert 'was restarted' in p.answer('half')['error']['message']
    assert p.call('echo', text='z') == 'z'
    assert p.close()[0] == 0


def test_a_pipe_whose_daemon_does_not_come_back_starts_its_own(beside, pipe):
    p = pipe(beside)
    p.initialize()
    assert p.call('echo', text='x') == 'x'
    beside.stop()
    wait_for(lambda: 'joining the next one' in ''.join(p.words), 'the pipe to notice')
    assert p.call('echo', text='y') == 'y'
    assert p.close()[0] == 0
    wait_for(lambda: no_child(beside.record), 'every child to be gone')


@pytest.mark.parametrize('how', ['eof', 'terminate'])
def test_a_client_that_leaves_while_there_is_no_gateway_is_not_waited_for(beside, pipe, how):
    p = pipe(beside)
    assert p.call('echo', text='x') == 'x'
    beside.kill()
    wait_for(lambda: 'joining the next one' in ''.join(p.words), 'the pipe to notice')
    if how == 'eof':
        p.process.stdin.close()
    else:
        p.process.terminate()
    assert p.finish()[0] == 0
    assert no_child(beside.record)


def test_a_pipe_whose_gateway_was_killed_ends_well_before_the_others_do(alone, pipe):
    first = pipe(alone)
    assert first.call('counter') == '1'  # the gateway is its own
    other = pipe(alone)
    assert other.call('counter') == '1'
    os.kill(gateway_pid(alone), signal.SIGKILL)
    wait_for(lambda: all('joining the next one' in ''.join(p.words) for p in (first, other)), 'the pipes to notice')
    assert [p.call('counter') for p in (first, other)] == ['1', '1']
    end_all(first)
    assert other.call('counter') == '2'
    end_all(other)
    wait_for(lambda: no_child(alone.record), 'every child to be gone')


def test_a_killed_gateway_of_a_pipe_is_followed_by_another(alone, pipe):
    pipes = [pipe(alone) for _ in range(2)]
    assert [p.call('counter') for p in pipes] == ['1', '1']
    before = alone.record.starts()
    os.kill(gateway_pid(alone), signal.SIGKILL)
    wait_for(lambda: all('joining the next one' in ''.join(p.words) for p in pipes), 'the pipes to notice')
    assert [p.call('counter') for p in pipes] == ['1', '1']
    wait_for(lambda: not [pid for pid in before if commands.is_alive(pid)], 'the children of the first to be gone')
    end_all(*pipes)
    wait_for(lambda: no_child(alone.record), 'every child to be gone')


def test_a_gateway_that_is_lost_again_and_again_is_not_joined_for_ever(beside, pipe):
    p = pipe(beside)
    assert p.call('echo', text='x') == 'x'
    for n in range(10):
        beside.restart()
        wait_for(lambda n=n: ''.join(p.words).count('joining the next one') == n + 1, 'the pipe to notice')
        assert p.call('echo', text=str(n)) == str(n)
    beside.restart()
    status, text = p.finish()
    assert status == 4 and 'no other could be joined' in text and 'start holdfast stdio again' in text, (status, text)


def test_a_client_that_is_killed_leaves_nothing(alone, pipe):
    p = pipe(alone)
    p.request('tools/call', {'name': 'hang'})
    alone.record.wait('tools/call')
    p.process.kill()
    wait_for(lambda: no_child(alone.record), 'every child to be gone')
    wait_for(lambda: not commands.is_alive(gateway_pid(alone)), 'the gateway to be gone')


def test_what_the_gateway_says_goes_to_standard_error(alone, pipe):
    p = pipe(alone, '--log-level', 'info')
    p.call('echo', text='x')
    status, text = p.close()
    assert status == 0 and '"ready"' in text, text


def test_commands_work_beside_a_pipe(alone, pipe):
    p = pipe(alone)
    p.call('echo', text='seen')
    assert [r['tool'] for r in commands.run_json(alone, 'audit', 'list')] == ['echo']
    assert ended_cleanly(p.close())


def test_what_cannot_be_served_is_refused_in_words(alone, beside, pipe):
    for args, server, wanted in ((('--profile', 'x'), None, 7), (('--profile', 'x'), 'up', 2), (('extra',), None, 2), ((), 'nope', 7)):
        status, text = pipe(alone, *args, server=server).close()
        assert status == wanted and text, (args, server, status, text)
    status, text = pipe(beside, server='nope').close()
    assert status == 1 and 'no server of this name' in text


def open_raw(hf, query='?server=up'):
    """The control request by hand: (connection, status)."""
    connection = commands.UnixConnection(os.path.join(hf.data, 'holdfast.sock'))
    connection.send(f'POST /control/pipe{query} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n'.encode())
    return connection, connection.read_head()[0]


def test_two_hundred_and_fifty_six_pipes_may_be_open(beside):
    made = [open_raw(beside) for _ in range(257)]
    assert [status for _, status in made] == [101] * 256 + [503]
    made[255][0].send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert json.loads(made[255][0].until(b'\n'))['result'] == {}
    for connection, _ in made:
        connection.close()


def test_pipes_are_for_the_control_socket_alone(beside):
    assert beside.request('POST', '/control/pipe?server=up').status == 404


@pytest.mark.parametrize('query', ['?server=', '?server=up&server=up', '?server=%ZZ'])
def test_a_server_that_cannot_be_read_is_refused(beside, query):
    connection, status = open_raw(beside, query)
    connection.close()
    assert status == 400


class Project:
    """A folder with a configuration of its own; the data directory is another's."""

    def __init__(self, folder, data, servers):
        folder.mkdir()
        self.folder, self.data = str(folder), data
        self.config_file = str(folder / 'holdfast.json')
        if servers is not None:
            (folder / 'holdfast.json').write_text(json.dumps({'mcpServers': servers}))


@pytest.mark.parametrize('running', [True, False])
def test_a_pipe_does_not_serve_another_projects_servers(holdfast, stdio_server, pipe, tmp_path, running):
    first = holdfast({'one': stdio_server('one')[0]}, start=running)
    if not running:  # the gateway is one that a pipe of the first project started
        held = pipe(first, server='one')
        held.initialize()
    second = Project(tmp_path / 'second', first.data, {'two': stdio_server('two')[0]})
    status, text = pipe(second, server=None).close()
    assert status == 7, text
    assert os.path.realpath(first.config_file) in text and os.path.realpath(second.config_file) in text, text
    assert '--data' in text, text
    if not running:
        assert held.call('echo', text='still there') == 'still there'
        assert ended_cleanly(held.close())


def test_a_pipe_finds_its_project_in_the_working_directory(beside, pipe, tmp_path, stdio_server):
    second = Project(tmp_path / 'second', beside.data, {'two': stdio_server('two')[0]})
    found, second.config_file = second.config_file, '/nonexistent'  # no --config: it is looked for
    status, text = pipe(second, server=None).close()
    assert status == 7 and os.path.realpath(found) in text, text


def test_a_pipe_with_a_configuration_does_not_join_a_holdfast_without_one(holdfast, pipe, tmp_path, stdio_server):
    first = holdfast()
    second = Project(tmp_path / 'second', first.data, {'two': stdio_server('two')[0]})
    status, text = pipe(second, server=None).close()
    assert status == 7 and 'without a configuration' in text and os.path.realpath(second.config_file) in text, text


def test_a_pipe_without_a_configuration_joins_what_runs_and_says_so(beside, pipe, tmp_path):
    p = pipe(Project(tmp_path / 'elsewhere', beside.data, None))
    assert p.call('echo', text='joined') == 'joined'
    status, text = p.close()
    assert status == 0 and f'pid {beside.process.pid}' in text and beside.data in text, text


def test_a_configuration_edited_since_is_the_same_one(beside, pipe):
    with open(beside.config_file, 'a', encoding='utf-8') as file:
        file.write('\n')
    p = pipe(beside)
    assert p.call('echo', text='joined') == 'joined'
    status, text = p.close()
    assert status == 0 and 'edited' in text and f'kill -HUP {beside.process.pid}' in text, text
    beside.process.send_signal(signal.SIGHUP)
    beside.wait_log(lambda l: l.get('msg') == 'configuration reloaded', 'the reload')
    p = pipe(beside)
    assert p.call('echo', text='again') == 'again'
    status, text = p.close()
    assert status == 0 and 'edited' not in text, text


def test_a_link_to_a_configuration_is_the_same_one(beside, pipe, tmp_path):
    other = Project(tmp_path / 'other', beside.data, None)
    os.symlink(beside.config_file, other.config_file)
    p = pipe(other)
    assert p.call('echo', text='joined') == 'joined'
    assert ended_cleanly(p.close())


@pytest.mark.parametrize('joined', [False, True])
def test_a_pipe_without_servers_says_that_it_serves_the_sample(holdfast, pipe, joined):
    p = pipe(holdfast(start=joined), server=None)
    assert 'sample__echo' in [t['name'] for t in p.rpc('tools/list')['result']['tools']]
    status, text = p.close()
    assert status == 0 and 'built-in sample' in text and '--config' in text, text


