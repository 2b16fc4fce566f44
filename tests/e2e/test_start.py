# SPDX-License-Identifier: Apache-2.0
"""holdfast start, stop and status: the daemon of a data directory, in the background."""
import json
import os
import signal
import socket
import stat
import subprocess
import tempfile

import commands
import harness
import pytest
from harness import wait_for


@pytest.fixture
def place(holdfast):
    """A data directory without a Holdfast; one that a test starts is stopped at its end."""
    hf = holdfast({}, start=False)
    yield hf
    commands.run(hf, 'stop')


def start(hf, *args, **more):
    return commands.run(hf, 'start', '--listen', '127.0.0.1:0', '--config', hf.config_file, *args, **more)


def status(hf):
    done = commands.run(hf, 'status', '--json')
    return done.returncode, json.loads(done.stdout)


def test_start__serves_in_the_background_and_stop_ends_it(place):
    done = start(place)
    assert done.returncode == 0 and 'has started (pid ' in done.stderr and 'claude mcp add --transport http' in done.stderr, done
    rc, state = status(place)
    assert rc == 0 and state['running'] and state['system']['url'].startswith('http://127.0.0.1:'), state
    assert state['system']['config'] == place.config_file and state['sessions'] == 0 and state['database_bytes'] > 0
    with harness.Connection(int(state['system']['url'].rsplit(':', 1)[1])) as connection:
        assert connection.request('GET', '/readyz', {'Host': 'localhost'}).status == 200
    done = commands.run(place, 'stop')
    assert done.returncode == 0 and f'(pid {state["pid"]}) has stopped' in done.stderr, done
    rc, state = status(place)
    assert (rc, state['running'], state['data_dir']) == (4, False, place.data), state


def test_start__of_one_that_runs_says_so(place):
    start(place)
    _, first = status(place)
    done = start(place)
    assert done.returncode == 0 and f'runs already (pid {first["pid"]})' in done.stderr, done
    assert status(place)[1]['pid'] == first['pid']


def test_start__has_a_session_of_its_own_and_no_stream_of_ours(place):
    start(place)  # commands.run() would wait for the end of a pipe that the daemon kept
    pid = status(place)[1]['pid']
    assert os.getsid(pid) == pid
    assert os.readlink(f'/proc/{pid}/fd/0') == '/dev/null'
    assert os.readlink(f'/proc/{pid}/fd/2') == os.path.join(place.data, 'holdfast.log')
    assert stat.S_IMODE(os.stat(os.path.join(place.data, 'holdfast.log')).st_mode) == 0o600


def test_start__that_fails_shows_the_line_of_the_log(place):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        done = commands.run(place, 'start', '--listen', f'127.0.0.1:{taken.getsockname()[1]}', '--config', place.config_file)
    assert done.returncode == 7 and 'Address already in use' in done.stderr and 'holdfast.log' in done.stderr, done


def test_start__with_a_broken_configuration_says_so_at_once(place):
    with open(place.config_file, 'w', encoding='utf-8') as file:
        file.write('{"holdfast": {"lisen": 1}}')
    done = start(place)
    assert done.returncode == 7 and 'lisen' in done.stderr and not os.path.exists(os.path.join(place.data, 'holdfast.log')), done


def test_start__puts_a_large_log_aside(place):
    os.mkdir(place.data, 0o700)
    log = os.path.join(place.data, 'holdfast.log')
    with open(log, 'wb') as file:
        file.truncate(10 * 1024 * 1024 + 1)
    start(place)
    assert os.path.getsize(log) < 10000 and os.path.getsize(log + '.1') == 10 * 1024 * 1024 + 1


def test_two_starts_at_once__make_one_daemon(place):
    where = ['--listen', '127.0.0.1:0', '--config', place.config_file, '--data', place.data]
    both = [subprocess.Popen([harness.BINARY, 'start', *where], env=commands.command_env(place), stderr=subprocess.PIPE) for _ in range(2)]
    said = [one.communicate(timeout=harness.DEADLINE_S)[1].decode() for one in both]
    pid = status(place)[1]['pid']
    assert [one.returncode for one in both] == [0, 0] and all(f'(pid {pid})' in text for text in said), said


def test_stop__without_a_daemon_is_fine(place):
    done = commands.run(place, 'stop')
    assert done.returncode == 0 and 'No Holdfast runs' in done.stderr, done


def test_status__without_a_daemon_is_4(place):
    done = commands.run(place, 'status')
    assert done.returncode == 4 and 'No Holdfast runs' in done.stderr and not done.stdout, done


def test_status__of_up_too(holdfast):
    hf = holdfast({'bad': {'command': '/nonexistent/server'}})
    done = wait_for(lambda: (d := commands.run(hf, 'status')) and '1 down' in d.stdout and d, 'the failed server')
    assert done.returncode == 0 and f'(pid {hf.process.pid})' in done.stdout and f'http://127.0.0.1:{hf.port}/mcp' in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80 or hf.folder in done.stdout


def test_stop__waits_for_one_that_is_stopping_and_does_not_hurry_it(place):
    start(place)
    pid = status(place)[1]['pid']
    os.kill(pid, signal.SIGTERM)
    done = commands.run(place, 'stop')
    assert done.returncode == 0 and commands.run(place, 'audit', 'verify').returncode == 0, done


SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$HOME/systemctl.log"
case "$*" in *start*) exec %s start --listen 127.0.0.1:0 --data "$HOME/.local/share/holdfast" 2>/dev/null;; esac
"""


@pytest.fixture
def home():
    """A short path, because the control socket is below it."""
    with tempfile.TemporaryDirectory(prefix='hf') as folder:
        yield folder


def test_start__uses_the_user_unit_where_there_is_one(place, home):
    os.makedirs(os.path.join(home, 'run/systemd'))
    with open(os.path.join(home, 'run/systemd/private'), 'w', encoding='utf-8'):
        pass
    with open(os.path.join(home, 'systemctl'), 'w', encoding='utf-8') as file:
        file.write(SYSTEMCTL % harness.BINARY)
    os.chmod(file.name, 0o700)
    os.remove(place.config_file)
    env = {'HOME': home, 'PATH': home + ':' + os.environ['PATH'], 'XDG_RUNTIME_DIR': os.path.join(home, 'run')}
    done = commands.run(place, 'start', with_data=False, env=env)
    assert done.returncode == 0 and 'as the user unit holdfast.service' in done.stderr, done
    with open(os.path.join(home, 'systemctl.log'), encoding='utf-8') as file:
        assert file.read().splitlines() == ['--user --quiet cat holdfast.service', '--user --quiet start holdfast.service']
    assert commands.run(place, 'stop', with_data=False, env=env).returncode == 0
