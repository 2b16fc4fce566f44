# SPDX-License-Identifier: Apache-2.0
"""What an operator has: commands, the control socket, /proc, and the events read whole."""
import fcntl
import json
import os
import pty
import socket
import struct
import subprocess
import termios

import harness
import pytest
from harness import DEADLINE_S, SANITIZER, Connection, wait_for


def open_pty():
    """A pseudo-terminal: (our end, the end of the program).  A machine without them skips the test."""
    try:
        return pty.openpty()
    except OSError as none:
        return pytest.skip(f'this machine has no pseudo-terminal to give: {none}')


def on_terminal(hf, *args, keys=b'', status=0, **env):
    """What a terminal of 80 columns gets from a command; `keys` are typed before it asks."""
    ours, theirs = open_pty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
    full = {k: v for k, v in command_env(hf).items() if k not in ('COLUMNS', 'NO_COLOR')}
    with subprocess.Popen([harness.BINARY, *args, '--quiet', '--data', hf.data], stdin=theirs, stdout=theirs, cwd=hf.folder,
                          stderr=subprocess.PIPE, env={**full, 'TERM': 'xterm', 'PAGER': '', **env}) as process:
        os.close(theirs)
        out = b''
        os.write(ours, keys)
        try:
            while chunk := os.read(ours, 65536):
                out += chunk
        except OSError:
            pass  # the other end is closed
        os.close(ours)
        told = process.stderr.read().decode()
        assert process.wait(DEADLINE_S) == status, told
    return out.decode().replace('\r\n', '\n')


class UnixConnection(Connection):
    """The same strict reader over DATA/holdfast.sock."""

    def __init__(self, path, timeout=DEADLINE_S):  # pylint: disable=super-init-not-called
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.port, self.rest = 0, b''


def control(hf, path):
    """GET over the control socket; gives the Response."""
    with UnixConnection(os.path.join(hf.data, 'holdfast.sock')) as connection:
        return connection.request('GET', path, {'Host': 'localhost'})


def command_env(hf, **more):
    env = {**os.environ, 'ASAN_OPTIONS': 'detect_leaks=1:exitcode=99', 'LSAN_OPTIONS': 'exitcode=99',
           'UBSAN_OPTIONS': 'print_stacktrace=1:halt_on_error=1:exitcode=99', 'HOME': hf.folder, **more}
    for name in ('HOLDFAST_CONFIG', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'HOLDFAST_FAULT'):
        env.pop(name, None)
    return env


def run(hf, *args, data=None, env=None, stdin='', with_data=True):
    """Runs `holdfast ARGS --data DATA` to its end: the finished process, texts decoded."""
    where = ['--data', data or hf.data] if with_data else []
    done = subprocess.run([harness.BINARY, *args, *where], cwd=hf.folder, input=stdin.encode(),
                          env=command_env(hf, **(env or {})), capture_output=True, timeout=60, check=False)
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    assert not SANITIZER.search(done.stderr), done.stderr
    return done


def run_json(hf, *args, data=None):
    """The objects that a command prints with --json, one a line."""
    done = run(hf, *args, '--json', data=data)
    assert done.returncode == 0, f'{args}: {done.returncode}\n{done.stderr}'
    return [json.loads(line) for line in done.stdout.splitlines()]


def events(hf, after=None, bodies=True):
    """Every event after the one named, oldest first, from the running program."""
    found, limit = [], 200
    while True:
        more = control(hf, f'/api/v1/audit/events?limit={limit}&bodies={int(bodies)}' + (f'&after={after}' if after else ''))
        if more.status == 504 and limit > 1:  # the machine is busy
            limit //= 2
            continue
        assert more.status == 200, repr(more)
        page = more.json()['events']
        found += page
        if len(page) < limit:
            return found
        after = page[-1]['id']


class Executions:
    """Intents with their outcomes, gathered from events as they come."""

    def __init__(self):
        self.intents, self.outcomes, self.last = {}, {}, None

    def read(self, hf):
        for event in events(hf, self.last):
            self.last = event['id']
            if event['kind'] == 'intent':
                self.intents[event['id']] = event
            elif event['kind'] == 'outcome':
                assert event['exec'] not in self.outcomes, f'two outcomes: {event}'
                self.outcomes[event['exec']] = event
        return self

    def outcome(self, ident):
        return self.outcomes[ident]['outcome'] if ident in self.outcomes else 'open'

    def of_tool(self, tool):
        """[(intent, outcome word)] of one tool, oldest first."""
        return [(e, self.outcome(i)) for i, e in self.intents.items() if e.get('tool') == tool]


def outcomes(hf, tool):
    return [word for _, word in Executions().read(hf).of_tool(tool)]


def tcp_ends():
    """Every TCP socket over IPv4: {(its port, the port of the other end): (bytes unsent, bytes unread, inode)}."""
    found = {}
    with open('/proc/net/tcp', encoding='ascii') as file:
        for line in file.read().splitlines()[1:]:
            fields = line.split()
            here, there = (int(address.rsplit(':', 1)[1], 16) for address in fields[1:3])
            unsent, unread = (int(count, 16) for count in fields[4].split(':'))
            found[here, there] = unsent, unread, int(fields[9])
    return found


def wait_read(connection):
    """Until Holdfast has read every byte that was sent on the connection."""
    here, there = connection.socket.getsockname()[1], connection.port

    def is_read():
        ends = tcp_ends()
        return ends[here, there][0] == 0 and ends[there, here][1] == 0
    wait_for(is_read, 'Holdfast to read the request')


def has_socket(pid, inode):
    for name in os.listdir(f'/proc/{pid}/fd'):
        try:
            if os.readlink(f'/proc/{pid}/fd/{name}') == f'socket:[{inode}]':
                return True
        except FileNotFoundError:  # closed meanwhile
            continue
    return False


def hang_up(hf, connection):
    """Closes the connection, and waits until Holdfast has closed its end of it."""
    inode = tcp_ends()[connection.port, connection.socket.getsockname()[1]][2]
    assert has_socket(hf.process.pid, inode)
    connection.close()
    wait_for(lambda: not has_socket(hf.process.pid, inode), 'Holdfast to close its end of the connection')


def process_state(pid):
    """(state letter, parent) of a process, or None when it is gone."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
            fields = file.read().rsplit(')', 1)[1].split()
    except OSError:
        return None
    return fields[0], int(fields[1])


def is_alive(pid):
    state = process_state(pid)
    return state is not None and state[0] != 'Z'


def children_of(pid):
    found = []
    for entry in os.listdir('/proc'):
        state = process_state(entry) if entry.isdigit() else None
        if state and state[1] == pid and state[0] != 'Z':
            found.append(int(entry))
    return found


def marked(mark):
    """Live processes whose environment holds the mark: descendants, whoever their parent is by now."""
    found = []
    for entry in os.listdir('/proc'):
        if not entry.isdigit():
            continue
        try:
            with open(f'/proc/{entry}/environ', 'rb') as file:
                if mark.encode() in file.read():
                    found.append(int(entry))
        except OSError:
            continue
    return found
