# SPDX-License-Identifier: Apache-2.0
"""Commands say which data directory they speak for, and refuse one that they cannot read."""
import json
import os
import subprocess

import commands
import harness
import pytest

READERS = (('key', 'list'), ('audit', 'list'), ('servers', 'list'), ('user', 'sessions', 'ada'))


def as_nobody():
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def run_default(hf, *args):
    """Without --data: the directory below HOME."""
    done = subprocess.run([harness.BINARY, *args], cwd=hf.folder, stdin=subprocess.DEVNULL, env=commands.command_env(hf),
                          capture_output=True, timeout=60, check=False)
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    assert not harness.SANITIZER.search(done.stderr), done.stderr
    return done


@pytest.mark.parametrize('args', READERS)
def test_a_command_says_which_holdfast_it_asks(holdfast, args):
    hf = holdfast()
    made = commands.run(hf, 'user', 'create', 'ada', '--password-file', '/etc/hostname')
    told = commands.run(hf, *args).stderr.splitlines()[0]
    assert told == f'holdfast: data directory {hf.data} (Holdfast runs there, pid {hf.process.pid})', made.stderr
    assert 'data directory' not in commands.run(hf, *args, '--quiet').stderr
    assert 'data directory' not in commands.run(hf, *args, '--json').stderr


def test_a_command_says_that_no_holdfast_runs(holdfast):
    hf = holdfast(start=False)
    done = commands.run(hf, 'key', 'create', '--name', 'first')
    assert done.returncode == 0 and done.stdout.startswith('hf_'), done.stderr
    assert done.stderr.splitlines()[0] == f'holdfast: data directory {hf.data} (there is none yet)'
    again = commands.run(hf, 'key', 'list')
    assert again.stderr == f'holdfast: data directory {hf.data} (no Holdfast runs there)\n' and 'first' in again.stdout


def test_a_key_made_beside_a_service_is_warned_of(holdfast):
    hf = holdfast()
    done = run_default(hf, 'key', 'create')
    assert done.returncode == 0, done.stderr
    assert f'data directory {hf.folder}/.local/share/holdfast' in done.stderr
    assert 'warning: no Holdfast runs there, but one runs on ' in done.stderr and 'say --data ' in done.stderr
    told = commands.run(hf, 'key', 'create', data=hf.folder + '/other')  # --data: somebody knows
    assert told.returncode == 0 and 'warning' not in told.stderr, told.stderr


@pytest.mark.parametrize('args', [('key', 'list'), ('audit', 'list'), ('user', 'sessions', 'ada')])
def test_nothing_is_said_of_a_database_that_is_not_there(holdfast, args):
    hf = holdfast(start=False)
    os.mkdir(hf.folder + '/empty')
    for where in (hf.folder + '/nosuch', hf.folder + '/empty'):
        done = commands.run(hf, *args, data=where)
        assert done.returncode == 1 and f'there is no database in {where}' in done.stderr and not done.stdout, done.stderr
    assert not os.path.exists(hf.folder + '/nosuch')


@pytest.mark.parametrize('args', READERS + (('db', 'status'), ('key', 'create')))
def test_what_is_no_directory_is_refused(holdfast, args):
    hf = holdfast(start=False)
    where = hf.folder + '/file'
    with open(where, 'w', encoding='utf-8'):
        pass
    done = commands.run(hf, *args, data=where)
    assert done.returncode == 7 and where in done.stderr and '--data' in done.stderr, done.stderr


@pytest.mark.parametrize('running', [True, False])
@pytest.mark.parametrize('args', READERS + (('db', 'status'),))
def test_an_unreadable_directory_is_refused(holdfast, tmp_path, args, running):
    hf = holdfast()
    if not running:
        hf.stop()
    for folder in (tmp_path, *tmp_path.parents):  # so that nobody comes as far as the data directory
        if os.stat(folder).st_uid == os.geteuid() and str(folder).startswith('/tmp/'):
            os.chmod(folder, os.stat(folder).st_mode | 0o011)
    os.chmod(hf.folder, 0o755)
    os.chmod(hf.data, 0o700 if os.geteuid() == 0 else 0)
    try:
        done = subprocess.run([harness.BINARY, *args, '--data', hf.data, '--json'], cwd='/', stdin=subprocess.DEVNULL,
                              env=commands.command_env(hf), capture_output=True, timeout=60, check=False, preexec_fn=as_nobody)
    except PermissionError:
        pytest.skip('nobody may not run the program')
    finally:
        os.chmod(hf.data, 0o700)
    error = json.loads(done.stderr.decode().splitlines()[0])['error']
    assert done.returncode == 7 and error['code'] == 'config', done
    assert hf.data in error['message'] and 'Permission denied' in error['message'] and not done.stdout, error
