# SPDX-License-Identifier: Apache-2.0
"""A person at a shell: a scratch home, the real claude, codex and gemini of npm on the PATH, and the commands
that they type, counted.  What was typed and answered is printed, so pytest shows it when a test fails."""
import contextlib
import glob
import json
import os
import re
import select
import signal
import subprocess
import tempfile
import time
import tomllib

import harness
from commands import open_pty

DEADLINE_S = harness.DEADLINE_S
INITIALIZE = {'protocolVersion': '2025-11-25', 'capabilities': {}, 'clientInfo': {'name': 'claude-code', 'version': '2.1'}}
COLOURS = re.compile(r'\x1b\[[0-9;?]*[a-zA-Z]')
# A proxy that is not there: no client reaches anything but this machine.
NOWHERE = 'http://127.0.0.1:9'


def only(pattern):
    """The one file of the npm packages that matches; `npm ci --ignore-scripts` leaves the programs for the platform there."""
    found = glob.glob(os.path.join(harness.NODE_MODULES, pattern))
    assert len(found) == 1, f'{pattern}: {found}; run tools/install-deps test'
    return found[0]


def programs(folder):
    """Fills a directory for the PATH."""
    os.makedirs(folder)
    links = {
        'holdfast': os.path.realpath(harness.BINARY),
        'claude': only('@anthropic-ai/claude-code-linux-*/claude'),
        'codex': only('@openai/codex-linux-*/vendor/*/bin/codex'),
        'node': harness.node(),
        'gemini': harness.npm_bin('gemini'),
        'mcp-server-filesystem': harness.npm_bin('mcp-server-filesystem'),
    }
    for name, target in links.items():
        os.symlink(target, os.path.join(folder, name))


class Person:
    def __init__(self, top, name, **env):
        self.home, self.name, self.typed = os.path.join(top, name), name, []
        os.makedirs(self.home)
        self.env = {'HOME': self.home, 'PATH': os.path.join(top, 'bin') + ':/usr/bin:/bin', 'LANG': 'C.UTF-8', 'NO_COLOR': '1',
                    'USER': name, 'DISABLE_AUTOUPDATER': '1', 'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC': '1', 'MCP_TIMEOUT': '60000',
                    'GEMINI_CLI_TRUST_WORKSPACE': 'true', 'HTTPS_PROXY': NOWHERE, 'HTTP_PROXY': NOWHERE,
                    'NO_PROXY': '127.0.0.1,localhost', **env}

    def path(self, *names):
        return os.path.join(self.home, *names)

    def read(self, *names):
        with open(self.path(*names), 'rb') as file:
            return file.read()

    def write(self, text, *names):
        os.makedirs(os.path.dirname(self.path(*names)), exist_ok=True)
        with open(self.path(*names), 'w', encoding='utf-8') as file:
            file.write(text)

    def look(self, command, status=0):
        """Runs a command that is not part of the journey; gives all that it prints."""
        done = subprocess.run(['bash', '-c', command], cwd=self.home, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=DEADLINE_S, check=False)
        print(f'{self.name}$ {command}\n{done.stdout}')
        assert done.returncode == status, (command, done.returncode, done.stdout)
        return done.stdout

    def sees(self, command, pattern):
        """Looks until the pattern is there: clients give a server a few seconds, which a busy machine may need."""
        harness.wait_for(lambda: re.search(pattern, self.look(command)), f'{pattern} from {command}')

    def type(self, command, status=0):
        """A command of the journey."""
        self.typed.append(command)
        return self.look(command, status)

    def entry(self, client):
        """What the client's file says about Holdfast."""
        if client == 'codex':
            return tomllib.loads(self.read('.codex/config.toml').decode())['mcp_servers']['holdfast']
        return json.loads(self.read({'claude-code': '.claude.json', 'gemini': '.gemini/settings.json'}[client]))['mcpServers']['holdfast']

    def files_with(self, word):
        """Paths in the home of files that have the word in clear."""
        found = []
        for where, _, names in os.walk(self.home):
            for path in (os.path.join(where, name) for name in names):
                if os.path.isfile(path):
                    with open(path, 'rb') as file:
                        found += [path] if word.encode() in file.read() else []
        return found

    @contextlib.contextmanager
    def agent(self, client):
        """An agent that starts the command of the client's file, as the client does: agent(tool, **arguments)."""
        entry, number = self.entry(client), 0
        process = subprocess.Popen([entry['command'], *entry['args']], cwd=self.home, env=self.env, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)

        def say(method, params=None, **more):
            process.stdin.write(json.dumps({'jsonrpc': '2.0', 'method': method, 'params': params or {}, **more}) + '\n')
            process.stdin.flush()

        def ask(method, params):
            nonlocal number
            number += 1
            say(method, params, id=number)
            while True:
                line = process.stdout.readline()
                assert line, f'{entry} ended with {process.wait()}'
                answer = json.loads(line)
                if answer.get('id') == number and 'method' not in answer:
                    return answer

        def call(tool, **arguments):
            answer = ask('tools/call', {'name': tool, 'arguments': arguments})
            print(f'{self.name}: the agent calls {tool} {arguments}\n{answer}\n')
            assert not answer['result'].get('isError'), answer
            return answer['result']
        assert 'result' in ask('initialize', INITIALIZE)
        say('notifications/initialized')
        try:
            yield call
        finally:
            process.stdin.close()
            status = process.wait(DEADLINE_S)
            process.stdout.close()
        assert status == 0

    def watch(self, command, *wanted):
        """Types a command that goes on, waits for these words, in this order, and presses Ctrl-C."""
        self.typed.append(command)
        master, slave = open_pty()
        process = subprocess.Popen(['bash', '-c', 'exec ' + command], cwd=self.home, env={**self.env, 'TERM': 'xterm'}, stdin=slave,
                                   stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        text = read_until(master, lambda seen: in_order(seen, wanted))
        process.send_signal(signal.SIGINT)
        text += read_until(master, None)
        process.wait(DEADLINE_S)
        os.close(master)
        print(f'{self.name}$ {command}\n{text}^C')
        assert in_order(text, wanted), (command, wanted, text)
        return text

    def answer(self, command, *talk):
        """Types a command that asks; talk: (what it says, the keys that are pressed then), …"""
        self.typed.append(command)
        master, slave = open_pty()
        process = subprocess.Popen(['bash', '-c', 'exec ' + command], cwd=self.home, env={**self.env, 'TERM': 'xterm'}, stdin=slave,
                                   stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        text = ''
        for wanted, keys in talk:
            came = read_until(master, lambda seen, wanted=wanted: wanted in seen)
            text += came
            assert wanted in came, (command, wanted, text)
            os.write(master, keys.encode())
        text += read_until(master, None)
        os.close(master)
        print(f'{self.name}$ {command}\n{text}')
        assert process.wait(DEADLINE_S) == 0, text
        return text


def in_order(text, wanted):
    at = 0
    for one in wanted:
        at = text.find(one, at)
        if at < 0:
            return False
        at += len(one)
    return True


def read_until(master, is_enough):
    """The text of a terminal, without colours, until it is enough or the other end is closed."""
    text, end = b'', time.monotonic() + DEADLINE_S
    while True:
        plain = COLOURS.sub('', text.decode('utf-8', 'replace')).replace('\r\n', '\n')
        left = end - time.monotonic()
        if is_enough and is_enough(plain):
            return plain
        assert left > 0 and select.select([master], [], [], left)[0], f'nothing more came after: {plain}'
        try:
            data = os.read(master, 65536)
        except OSError:  # closed
            data = b''
        if not data:
            return plain
        text += data


@contextlib.contextmanager
def people():
    """people(name, **env) gives a person; the daemons that they leave are stopped at the end.

    The homes have a short path, because the control sockets are below them."""
    made = []
    with tempfile.TemporaryDirectory(prefix='hf') as top:
        programs(os.path.join(top, 'bin'))

        def make(name, **env):
            made.append(Person(top, name, **env))
            return made[-1]
        try:
            yield make
        finally:
            for one in made:
                subprocess.run(['holdfast', 'stop'], cwd=one.home, env=one.env, capture_output=True, timeout=DEADLINE_S, check=False)
