# SPDX-License-Identifier: Apache-2.0
"""What a service manager sees: messages, the watchdog, a passed socket, and unit files that systemd accepts."""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys

import commands
import harness
import pytest
from harness import DEADLINE_S, TOP

UNITS = os.path.join(TOP, 'deploy/systemd')
# Passes the listening socket in fd 3 with the pid that the program will have.
LAUNCHER = '''import os, sys
fd = int(sys.argv[1])
os.dup2(fd, 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=sys.argv[2])
os.execv(sys.argv[3], sys.argv[3:])
'''


class Manager:
    """The datagram socket of a service manager."""

    def __init__(self, folder):
        self.path = os.path.join(str(folder), 'notify')
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(DEADLINE_S)

    def until(self, pattern):
        """The messages up to the one that matches."""
        seen = []
        while not seen or not re.search(pattern, seen[-1]):
            seen.append(self.socket.recv(4096).decode())
        return seen

    def close(self):
        self.socket.close()


@pytest.fixture
def manager(tmp_path):
    one = Manager(tmp_path)
    yield one
    one.close()


def test_the_service_manager_learns_every_state(holdfast, manager):
    hf = holdfast({'one': {'command': '/bin/false'}}, env={'NOTIFY_SOCKET': manager.path})
    manager.until(r'^READY=1$')
    manager.until(r'^STATUS=\d of 1 servers up, 0 sessions$')
    hf.process.send_signal(signal.SIGHUP)
    reload = manager.until(r'^RELOADING=1\nMONOTONIC_USEC=\d+$')
    assert 'READY=1' not in reload
    manager.until(r'^READY=1$')
    hf.stop()
    assert manager.until(r'^STOPPING=1\n')


def test_a_failed_reload_ends_too(holdfast, manager):
    hf = holdfast({}, env={'NOTIFY_SOCKET': manager.path})
    manager.until(r'^READY=1$')
    with open(hf.config_file, 'w', encoding='utf-8') as file:
        file.write('{')
    hf.process.send_signal(signal.SIGHUP)
    manager.until(r'^RELOADING=1')
    manager.until(r'^READY=1$')


def test_the_watchdog_is_fed_from_the_loop(holdfast, manager):
    hf = holdfast({}, env={'NOTIFY_SOCKET': manager.path, 'WATCHDOG_USEC': '200000'})
    for _ in range(3):
        manager.until(r'^WATCHDOG=1$')
    hf.process.send_signal(signal.SIGSTOP)
    try:
        manager.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                manager.socket.recv(4096)
    finally:
        hf.process.send_signal(signal.SIGCONT)
    manager.socket.settimeout(DEADLINE_S)
    manager.until(r'^WATCHDOG=1$')


def test_a_watchdog_for_another_process_is_ignored(holdfast, manager):
    holdfast({}, env={'NOTIFY_SOCKET': manager.path, 'WATCHDOG_USEC': '1000', 'WATCHDOG_PID': '1'})
    assert 'WATCHDOG=1' not in manager.until(r'^STATUS=')


def test_servers_inherit_nothing_of_the_service_manager(holdfast, manager, stdio_server):
    entry, _ = stdio_server('rec')
    hf = holdfast({'rec': {**entry, 'env': {'MARK_OF_TEST': 'service'}}},
                  env={'NOTIFY_SOCKET': manager.path, 'WATCHDOG_USEC': '9000000'})
    manager.until(r'^READY=1$')
    with open(f'/proc/{hf.process.pid}/environ', 'rb') as file:
        assert b'NOTIFY_SOCKET' in file.read()  # of the start; the program removed it from its own
    child = harness.wait_for(lambda: commands.marked('MARK_OF_TEST=service'), 'the server to run')[0]
    with open(f'/proc/{child}/environ', 'rb') as file:
        assert b'NOTIFY_SOCKET' not in file.read()


def launch(folder, sock, count=1, settings=None, args=(), env=None):
    """`holdfast up` with a passed socket: the running process, stderr piped."""
    config = os.path.join(str(folder), 'holdfast.json')
    with open(config, 'w', encoding='utf-8') as file:
        file.write(harness.dump({'holdfast': settings or {}}))
    command = [sys.executable, '-c', LAUNCHER, str(sock.fileno()), str(count), harness.BINARY, 'up', '--config', config,
               '--data', os.path.join(str(folder), 'data'), *args]
    return subprocess.Popen(command, pass_fds=[sock.fileno()], stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **(env or {})})


def listening(address='127.0.0.1', family=socket.AF_INET):
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.bind((address, 0) if family == socket.AF_INET else address)
    sock.listen(8)
    return sock


def refused(process):
    _, text = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 7, text
    return text


def test_a_passed_socket_serves(tmp_path, manager):
    with listening() as sock:
        port = sock.getsockname()[1]
        # The client connects before Holdfast runs: its request waits in the socket.
        with harness.Connection(port) as early:
            early.send(b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
            process = launch(tmp_path, sock, env={'NOTIFY_SOCKET': manager.path})
            manager.until(r'^READY=1$')
            assert early.read_response('GET').status == 200
    process.send_signal(signal.SIGTERM)
    _, text = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, text
    assert f'127.0.0.1:{port}' in text


def test_a_passed_socket_beyond_loopback_needs_what_a_listener_needs(tmp_path):
    with listening('0.0.0.0') as sock:
        assert 'that needs "auth": "required"' in refused(launch(tmp_path, sock))
        text = refused(launch(tmp_path, sock, settings={'auth': 'required'}))
        assert '"tls"' in text and '"trusted_proxies"' in text


def test_what_is_no_listening_tcp_socket_is_refused(tmp_path):
    with listening(str(tmp_path / 'unix'), socket.AF_UNIX) as sock:
        assert 'listening TCP socket' in refused(launch(tmp_path, sock))
    with socket.socket() as sock:
        assert 'listening TCP socket' in refused(launch(tmp_path, sock))
    with listening() as sock:
        assert 'passed 2 sockets' in refused(launch(tmp_path, sock, count=2))
        assert 'remove --listen' in refused(launch(tmp_path, sock, args=['--listen', '127.0.0.1:0']))


def verify(tmp_path, files, *flags):
    """systemd-analyze verify of copies whose ExecStart is the program under test."""
    if not shutil.which('systemd-analyze'):
        pytest.skip('systemd-analyze is not installed')
    copies = []
    for name in files:
        with open(os.path.join(UNITS, name), encoding='utf-8') as file:
            text = file.read().replace('/usr/bin/holdfast', harness.BINARY)
        copies.append(tmp_path / os.path.basename(name))
        copies[-1].write_text(re.sub(r'(?m)^Documentation=.*\n', '', text), encoding='utf-8')
    return subprocess.run(['systemd-analyze', 'verify', *flags, *map(str, copies)], capture_output=True, text=True,
                          timeout=60, check=False, env={**os.environ, 'XDG_RUNTIME_DIR': str(tmp_path)})


def complaints(done):
    """The lines about our units: others of the machine may be faulty."""
    return [line for line in done.stderr.splitlines() if 'holdfast' in line]


def test_systemd_accepts_the_units(tmp_path):
    done = verify(tmp_path, ['holdfast.service', 'holdfast.socket'])
    assert complaints(done) == [], done.stderr
    (tmp_path / 'user').mkdir()
    done = verify(tmp_path / 'user', ['user/holdfast.service'], '--user')
    assert complaints(done) == [], done.stderr


def test_systemd_would_name_a_mistake_in_a_unit(tmp_path):
    path = tmp_path / 'holdfast.service'
    path.write_text('[Service]\nExecStart=/nowhere/holdfast\nTipe=notify\n', encoding='utf-8')
    done = subprocess.run(['systemd-analyze', 'verify', str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert complaints(done)
