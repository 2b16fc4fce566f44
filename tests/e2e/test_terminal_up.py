# SPDX-License-Identifier: Apache-2.0
"""What `holdfast up` shows to the person at a terminal: the start in short, servers, a line for each call."""
import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time

import commands
import harness
import pytest

ESCAPE = re.compile('[\x00-\x09\x0b-\x1f\x7f]')


class Shown:
    """A program on a terminal of 80 columns."""

    def __init__(self, hf, *args, env=None):
        self.master, slave = commands.open_pty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [harness.BINARY, 'up', '--listen', '127.0.0.1:0', '--data', hf.data, '--config', hf.config_file, *args], stdin=slave,
            stdout=slave, stderr=slave, cwd=hf.folder, env={**commands.command_env(hf), 'TERM': 'xterm', **(env or {})})
        os.close(slave)
        self.text = ''

    def expect(self, pattern):
        end = time.monotonic() + harness.DEADLINE_S
        while not (found := re.search(pattern, self.text)):
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            assert ready, f'no {pattern!r} in {self.text[-2000:]}'
            self.text += os.read(self.master, 65536).decode('utf-8', 'replace').replace('\r\n', '\n')
        return found

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(harness.DEADLINE_S)
        os.close(self.master)


@pytest.fixture
def shown(holdfast):
    started = []

    def start(config, *args, env=None):
        hf = holdfast(config, start=False)
        started.append(Shown(hf, *args, env=env))
        started[-1].hf = hf
        return started[-1]
    yield start
    for one in started:
        one.end()


def ask(one, method, params, session=None):
    port = int(one.expect(r'http://127\.0\.0\.1:(\d+)/mcp\n').group(1))
    headers = {'Host': 'localhost', 'Content-Type': 'application/json', 'Accept': 'application/json, text/event-stream'}
    with harness.Connection(port) as connection:
        body = {'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}
        return connection.request('POST', '/mcp', {**headers, **({'Mcp-Session-Id': session} if session else {})}, json.dumps(body).encode())


def call(one, tool, arguments, session=None):
    return ask(one, 'tools/call', {'name': tool, 'arguments': arguments}, session)


def test_start__says_where_what_and_how_to_connect(shown):
    one = shown({}, env={'NO_COLOR': '1'})
    one.expect(r'sample is up: 2 tools, 2025-11-25\n|servers   sample +2 tools')
    url = one.expect(r'http://127\.0\.0\.1:\d+').group()
    for line in (r'^Holdfast [\d.]+ is ready', rf'address   {url}/mcp\n', rf'  {url}/mcp/sample\n', r'connect   holdfast connect claude-code --data \S+/data\n',
                 rf'claude mcp add --transport http holdfast {url}/mcp\n', rf'data      {one.hf.data}\n', rf'config    {one.hf.config_file}\n'):
        assert re.search(line, one.text), (line, one.text)
    assert not ESCAPE.search(one.text), one.text


def test_calls__are_one_line_each_within_80_columns(shown):
    one = shown({}, env={'NO_COLOR': '1'})
    call(one, 'sample__echo', {'message': 'hello'})
    call(one, 'sample__echo', {})
    one.expect(r'\d\d:\d\d:\d\d  local +sample\.echo +ok +[\d.]+ ms\n')
    one.expect(r'sample\.echo +tool_error +[\d.]+ ms\n')
    call(one, 'sample__' + 'x' * 300, {})
    line = one.expect(r'\n(.*x…  .*)\n').group(1)
    assert len(line) <= 80, line


def test_calls__of_a_named_client_name_it_and_hide_its_control_bytes(shown):
    one = shown({})
    info = {'protocolVersion': '2025-11-25', 'capabilities': {}, 'clientInfo': {'name': 'ev\x1b[31mil', 'version': '1'}}
    session = ask(one, 'initialize', info).header('mcp-session-id')
    call(one, 'sample__echo', {'message': 'x'}, session)
    assert '\\x1b[31m' in one.expect(r'(.*)sample\.echo').group(1)


def test_failed_server__is_a_sentence_with_the_reason(shown):
    one = shown({'bad': {'command': '/nonexistent/server'}}, env={'NO_COLOR': '1'})
    one.expect(r'servers   bad +(starting|failed)')
    one.expect(r'warn  a server could not be started: cannot start "/nonexistent/server"')


def test_colour__is_used_without_no_color(shown):
    one = shown({})
    call(one, 'sample__echo', {'message': 'hello'})
    one.expect(r'sample\.echo +\x1b\[32mok')


@pytest.mark.parametrize('how', [('--log-format', 'json'), ()])
def test_json_on_a_terminal__when_asked_for(shown, how):
    one = shown({}, *how, env={} if how else {'HOLDFAST_LOG_FORMAT': 'json'})
    one.expect(r'"msg":"ready"')
    for line in one.text.splitlines():
        json.loads(line)


def test_human_without_a_terminal__when_asked_for(holdfast):
    hf = holdfast({}, start=False)
    hf.args = ['--log-format', 'human']
    hf.start(wait=False)
    harness.wait_for(lambda: any('is ready' in line for line in hf.lines), 'the start')
    assert not any('\x1b' in line for line in hf.lines)
    hf.process.send_signal(signal.SIGTERM)
    assert hf.process.wait(harness.DEADLINE_S) == 0


def test_unknown_format__is_refused(holdfast):
    done = commands.run(holdfast({}, start=False), 'up', '--log-format', 'xml')
    assert done.returncode == 2 and 'the log format is human or json, not "xml"' in done.stderr, done
