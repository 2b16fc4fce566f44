# SPDX-License-Identifier: Apache-2.0
"""A data directory that somebody else could change, or a database that others read, refuses the start."""
import os

import pytest

from harness import Client


def refused_start(one, *words):
    one.start(wait=False)
    assert one.process.wait(20) == 7
    one.readers[-1].join(20)
    for word in words:
        assert word in one.text(), one.text()
    one.process = None


@pytest.fixture
def stopped(holdfast):
    """One that ran, and so has all its files."""
    one = holdfast()
    assert Client(one, '/mcp/sample').call('echo', {'message': 'x'}).text == 'x'
    one.stop()
    return one


@pytest.mark.parametrize('mode', [0o770, 0o720, 0o702, 0o777])
def test_directory__that_others_write_to_is_refused(stopped, mode):
    os.chmod(stopped.data, mode)
    refused_start(stopped, 'data directory', f'chmod go-w {stopped.data}')
    os.chmod(stopped.data, 0o755)
    stopped.start()


@pytest.mark.parametrize('name', ['holdfast.db', 'token.key', 'audit.key', 'master.key', 'audit-anchors.jsonl'])
@pytest.mark.parametrize('mode', [0o666, 0o620])
def test_file__that_others_write_to_is_refused(stopped, name, mode):
    path = os.path.join(stopped.data, name)
    os.chmod(path, mode)
    refused_start(stopped, f'chmod 600 {path}')
    os.chmod(path, 0o600)
    stopped.start()


def test_database__may_be_read_by_those_who_cannot_reach_it(stopped):
    path = os.path.join(stopped.data, 'holdfast.db')
    os.chmod(path, 0o644)
    os.chmod(stopped.data, 0o755)
    refused_start(stopped, f'other users may read {path}', f'chmod 600 {path}')
    os.chmod(stopped.data, 0o700)
    stopped.start()


@pytest.mark.skipif(os.geteuid() != 0, reason='only root gives files away')
@pytest.mark.parametrize('name', ['.', 'holdfast.db', 'master.key'])
def test_owner__somebody_else_is_refused(stopped, name):
    path = os.path.normpath(os.path.join(stopped.data, name))
    os.chown(path, 12345, -1)
    refused_start(stopped, f'{path} belongs to another user (uid 12345)', f'chown 0 {path}')
    os.chown(path, 0, -1)
    stopped.start()
