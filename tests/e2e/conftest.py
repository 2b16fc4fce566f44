# SPDX-License-Identifier: Apache-2.0
"""Fixtures: start what a test asks for, and end it with every check when the test is over.  No part of a test
waits for ever: what hangs fails where it hangs, and the tests behind it still run."""
import contextlib
import os
import signal
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402


PHASE_S = float(os.environ.get('HOLDFAST_TEST_S') or (1800 if harness.LONG else 180))


@contextlib.contextmanager
def deadline(what):
    """Raises in the middle of whatever the main thread does or waits for."""
    def late(*_):
        raise AssertionError(f'{what} took more than {PHASE_S:g} s')

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, PHASE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item):
    with deadline(f'the set-up of {item.name}'):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    with deadline(item.name):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item):
    with deadline(f'the end of {item.name}'):
        yield


def pytest_configure():
    if not os.access(harness.BINARY, os.X_OK):
        raise pytest.UsageError(f'{harness.BINARY} is not there; build it with tools/run-tests, or set HOLDFAST_BIN')


@pytest.fixture
def holdfast(tmp_path):
    """holdfast(servers, settings, start=True, **options): a running Holdfast in a folder of its own."""
    made = []

    def make(servers=None, settings=None, start=True, **options):
        config = None
        if servers is not None or settings is not None:
            config = {'mcpServers': servers or {}, 'holdfast': settings or {}}
        folder = tmp_path / f'holdfast-{len(made)}'
        folder.mkdir()
        made.append(harness.Holdfast(folder, config, **options))
        return made[-1].start() if start else made[-1]

    yield make
    with contextlib.ExitStack() as stack:
        for one in made:
            stack.callback(one.close)


@pytest.fixture(params=['sqlite', 'postgres'] + (['postgres+redis'] if harness.LONG else []))
def database(request):
    """Environment for a Holdfast on a store of its own: each test of the registry runs on all."""
    if request.param == 'sqlite':
        return {}
    url = request.getfixturevalue('cluster').database()
    if request.param == 'postgres':
        return {'DATABASE_URL': url}
    return {'DATABASE_URL': url, 'REDIS_URL': request.getfixturevalue('shared_redis')}


@pytest.fixture(scope='module')
def shared_redis():
    """The URL of a Redis for a file of tests."""
    from redis_server import Redis
    one = Redis()
    if not one.is_there:
        pytest.skip('there is no Redis to start')
    yield one.url
    one.close()


@pytest.fixture
def rest(holdfast, database):
    """rest(servers, settings): the REST interface of a running Holdfast on that store."""
    from rest import Rest

    def make(servers=None, settings=None, **options):
        return Rest(holdfast(servers, settings, env={**database, **options.pop('env', {})}, **options))
    return make


@pytest.fixture
def http_server(tmp_path):
    """http_server(name, *args): a running recording HTTP upstream."""
    made = []

    def make(name='web', *args):
        made.append(harness.HttpServer(tmp_path, name, *args).start())
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def stdio_server(tmp_path):
    """stdio_server(name, *args, **entry): (entry for mcpServers, Record)."""
    def make(name='rec', *args, **entry):
        return harness.stdio_server(tmp_path, name, *args, **entry)
    return make


@pytest.fixture
def scripted(tmp_path):
    """scripted(name, http=, era=, shape=, **entry): a Script, running when it is an HTTP server."""
    from scripted import Script
    made = []

    def make(name='srv', **options):
        made.append(Script(tmp_path, name, **options))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture(scope='module')
def cluster():
    """A PostgreSQL of the test file's own (postgres.py)."""
    from postgres import Cluster
    one = Cluster()
    if not one.is_there:
        one.close()
        pytest.skip('there is no PostgreSQL to start')
    yield one
    one.close()
