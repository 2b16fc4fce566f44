# SPDX-License-Identifier: Apache-2.0
"""`holdfast up` on a terminal: closing the terminal ends it; SIGHUP from elsewhere reloads it."""
import fcntl
import os
import select
import signal
import subprocess
import termios
import time

import commands
import harness
import pytest


class Terminal:
    """`holdfast up` with a controlling terminal, whose other end is ours."""

    def __init__(self, hf):
        self.master, slave = commands.open_pty()
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [harness.BINARY, 'up', '--listen', '127.0.0.1:0', '--data', hf.data, '--config', hf.config_file], stdin=slave, stdout=slave,
            stderr=slave, cwd=hf.folder, env={**commands.command_env(hf), 'TERM': 'xterm', 'NO_COLOR': '1'}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.text = ''

    def expect(self, words):
        end = time.monotonic() + harness.DEADLINE_S
        while words not in self.text:
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            assert ready, f'no {words!r} in {self.text[-2000:]}'
            self.text += os.read(self.master, 65536).decode('utf-8', 'replace')


@pytest.fixture
def terminal(holdfast):
    hf = holdfast({}, start=False)
    one = Terminal(hf)
    one.hf = hf
    yield one
    if one.process.poll() is None:
        one.process.kill()
        one.process.wait()


def test_closing_the_terminal_ends_up(terminal):
    terminal.expect('ready')
    os.close(terminal.master)
    assert terminal.process.wait(harness.DEADLINE_S) == 0
    assert commands.run(terminal.hf, 'audit', 'verify').returncode == 0


def test_sighup_from_elsewhere_reloads_on_a_terminal_too(terminal):
    terminal.expect('ready')
    terminal.process.send_signal(signal.SIGHUP)
    terminal.expect('configuration reloaded')
    terminal.process.send_signal(signal.SIGTERM)
    terminal.expect('stopping')
    assert terminal.process.wait(harness.DEADLINE_S) == 0
    os.close(terminal.master)
