# SPDX-License-Identifier: Apache-2.0
"""holdfast start, stop and status: the daemon of a data directory, in the background."""
import fcntl
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


@pytest.fixture
def short_place(holdfast, home):
    hf = holdfast({}, start=False)
    hf.data = os.path.join(home, 'data')
    os.mkdir(hf.data, 0o700)
    yield hf
    commands.run(hf, 'stop')


def test_start__of_one_that_is_stopping_waits_and_starts_anew(short_place):
    """The owner has the lock and takes no requests; start asks it, so it waits for it when it ends."""
    lock = os.open(os.path.join(short_place.data, 'lock'), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(lock, b'%d\n' % os.getpid())
    with socket.socket(socket.AF_UNIX) as stopping:
        stopping.bind(os.path.join(short_place.data, 'holdfast.sock'))
        stopping.listen()
        stopping.settimeout(harness.DEADLINE_S)
        with subprocess.Popen([harness.BINARY, 'start', '--listen', '127.0.0.1:0', '--config', short_place.config_file, '--data', short_place.data],
                              env=commands.command_env(short_place), stderr=subprocess.PIPE) as starting:
            stopping.accept()[0].close()
            stopping.close()
            os.close(lock)
            said = starting.communicate(timeout=harness.DEADLINE_S)[1].decode()
    assert starting.returncode == 0 and 'has started (pid ' in said, said
    assert status(short_place)[1]['running']


SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$HOME/systemctl.log"
case "$*" in *start*) exec %s start --listen 127.0.0.1:0 --data "$HOME/.local/share/holdfast" 2>/dev/null;; esac
"""


@pytest.fixture
def home():
    """A short path, because the control socket is below it."""
    with tempfile.TemporaryDirectory(prefix='hf') as folder:
        yield folder


def make_unit(place, home):
    """The environment in which there is a user unit."""
    os.makedirs(os.path.join(home, 'run/systemd'))
    with open(os.path.join(home, 'run/systemd/private'), 'w', encoding='utf-8'):
        pass
    with open(os.path.join(home, 'systemctl'), 'w', encoding='utf-8') as file:
        file.write(SYSTEMCTL % harness.BINARY)
    os.chmod(file.name, 0o700)
    os.remove(place.config_file)
    return {'HOME': home, 'PATH': home + ':' + os.environ['PATH'], 'XDG_RUNTIME_DIR': os.path.join(home, 'run')}


def test_start__uses_the_user_unit_where_there_is_one(place, home):
    env = make_unit(place, home)
    done = commands.run(place, 'start', with_data=False, env=env)
    assert done.returncode == 0 and 'as the user unit holdfast.service' in done.stderr, done
    with open(os.path.join(home, 'systemctl.log'), encoding='utf-8') as file:
        assert file.read().splitlines() == ['--user --quiet cat holdfast.service', '--user --quiet start holdfast.service']
    assert commands.run(place, 'stop', with_data=False, env=env).returncode == 0


@pytest.mark.parametrize('name', ['DATABASE_URL', 'REDIS_URL', 'HOLDFAST_LOG_LEVEL', 'HOLDFAST_MASTER_KEY_FILE'])
def test_start__of_other_data_than_that_of_the_unit_does_not_start_the_unit(place, home, name):
    """The value is refused, and the unit was not asked: it does not get the variables of this shell."""
    env = make_unit(place, home) | {name: 'refused:'}
    commands.run(place, 'start', with_data=False, env=env)
    assert not os.path.exists(os.path.join(home, 'systemctl.log'))
    commands.run(place, 'stop', with_data=False, env=env)


INITIALIZE = {'jsonrpc': '2.0', 'id': 1, 'method': 'initialize',
              'params': {'protocolVersion': '2025-11-25', 'capabilities': {}, 'clientInfo': {'name': 'test', 'version': '1'}}}


class Stdio:
    """A client that runs `holdfast stdio --start`."""

    def __init__(self, hf):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [harness.BINARY, 'stdio', '--start', '--config', hf.config_file, '--data', hf.data], cwd=hf.folder, env=commands.command_env(hf),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def ask(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b'\n')
        self.process.stdin.flush()
        while 'id' not in (answer := json.loads(self.process.stdout.readline())):
            pass
        return answer

    def echo(self, text):
        call = {'jsonrpc': '2.0', 'id': 2, 'method': 'tools/call', 'params': {'name': 'sample__echo', 'arguments': {'message': text}}}
        return self.ask(call)['result']['content'][0]['text']


@pytest.fixture
def stdio(holdfast):
    """stdio(settings): the client, and the place of its daemon (.hf)."""
    made = []

    def start_client(settings):
        hf = holdfast({}, settings, start=False)
        made.append(Stdio(hf))
        made[-1].hf = hf
        return made[-1]
    yield start_client
    for one in made:
        one.process.kill()
        one.process.communicate()
        commands.run(one.hf, 'stop')


def test_stdio_start__makes_a_daemon_that_outlives_its_client(stdio):
    one = stdio({'listen': '127.0.0.1:0'})
    assert 'result' in one.ask(INITIALIZE) and one.echo('hello') == 'hello'
    os.killpg(one.process.pid, signal.SIGKILL)
    one.process.wait(harness.DEADLINE_S)
    rc, state = status(one.hf)
    assert rc == 0 and state['system']['url'].startswith('http://127.0.0.1:'), state
    with open(f'/proc/{state["pid"]}/status', encoding='utf-8') as file:
        ignored = next(line.split()[1] for line in file if line.startswith('SigIgn'))
    assert not int(ignored, 16) & 1 << (signal.SIGTERM - 1)


def test_stdio_start__joins_the_daemon_after_its_restart(stdio):
    one = stdio({'listen': '127.0.0.1:0'})
    one.ask(INITIALIZE)
    first = status(one.hf)[1]['pid']
    assert commands.run(one.hf, 'stop').returncode == 0 and start(one.hf).returncode == 0
    assert one.echo('again') == 'again' and status(one.hf)[1]['pid'] != first


def test_stdio_start__serves_without_a_daemon_if_its_port_is_taken(stdio):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        one = stdio({'listen': f'127.0.0.1:{taken.getsockname()[1]}'})
        assert 'result' in one.ask(INITIALIZE) and one.echo('hello') == 'hello'
        said = one.process.communicate(timeout=harness.DEADLINE_S)[1].decode()
    assert 'Address already in use' in said and 'serving without a daemon' in said, said
