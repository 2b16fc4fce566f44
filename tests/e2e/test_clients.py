# SPDX-License-Identifier: Apache-2.0
"""The official clients against the official servers, with Holdfast between: every client, every front,
every kind of upstream, feature by feature.

A cell is (client, front, upstream); tests/clients/drive.mjs runs all the features of one cell in one
process, a few cells at a time, and each test here looks at one line of what it said.  Where client and
upstream speak the same era everything works; across eras what is translated works, and what is not
is refused with a sentence of ours.  The front `direct` has nothing between, and shows that a failure
elsewhere is Holdfast's; `alone` is holdfast stdio with no daemon running."""
import concurrent.futures
import contextlib
import json
import os
import re
import subprocess
import threading
import typing

import pytest

import harness

DRIVE = os.path.join(harness.TOP, 'tests/clients/drive.mjs')
EVERYTHING = os.path.join(harness.NODE_MODULES, '@modelcontextprotocol/server-everything/dist/index.js')
FILESYSTEM = os.path.join(harness.NODE_MODULES, '@modelcontextprotocol/server-filesystem/dist/index.js')
OURS = os.path.join(harness.PEERS, 'everything/server.mjs')
AT_ONCE = 3
CELL_S = 120

LISTS = ('tools', 'prompts', 'resources', 'templates', 'completion', 'progress')
ASKING = ('elicitation', 'sampling', 'roots')
EVERYTHING_FEATURES = {
    'legacy': LISTS + ('conditional', 'cancellation', *ASKING, 'elicitation-url', 'subscriptions', 'list_changed', 'logging', 'ping'),
    'modern': LISTS + ('cancellation', 'elicitation', 'sampling', 'listen')}
OUR_FEATURES = {
    'legacy': LISTS + ('reconnection', 'resumption', 'cancellation', *ASKING, 'mrtr', 'subscriptions', 'list_changed', 'logging', 'ping'),
    'modern': LISTS + ('reconnection', 'cancellation', *ASKING, 'mrtr', 'listen', 'list_changed', 'logging')}


class Upstream(typing.NamedTuple):
    peer: str        # which features of drive.mjs
    era: str
    features: dict   # by the era of the client
    gateway: int     # the Holdfast that serves it: on one /mcp, no two have the same resources


UPSTREAMS = {
    'everything': Upstream('server-everything', 'legacy', EVERYTHING_FEATURES, 0),
    'files': Upstream('filesystem', 'legacy', {'legacy': ('tools', 'roots', 'ping'), 'modern': ('tools',)}, 0),
    'ours-modern': Upstream('ours', 'modern', OUR_FEATURES, 0),
    'everything-http': Upstream('server-everything', 'legacy', EVERYTHING_FEATURES, 1),
    'ours-legacy': Upstream('ours', 'legacy', OUR_FEATURES, 1),
    'ours-stdio': Upstream('ours', 'modern', OUR_FEATURES, 2),
    'everything-sse': Upstream('server-everything', 'legacy', EVERYTHING_FEATURES, 3),
    'handles': Upstream('server-everything', 'legacy', {'modern': ('handles',)}, 2),
}
CLIENTS = {'sdk1': 'legacy', 'v2-legacy': 'legacy', 'v2-auto': 'modern', 'v2-modern': 'modern'}
FRONTS = ('server', 'all', 'stdio')


class Cell(typing.NamedTuple):
    client: str
    front: str
    upstream: str

    @property
    def era(self):
        """What the client speaks here: `auto` takes the newest that it is offered, which on a server's own path is the server's."""
        if self.client == 'v2-auto' and self.front != 'all':
            return UPSTREAMS[self.upstream].era
        return CLIENTS[self.client]

    @property
    def is_crossed(self):
        return self.era != UPSTREAMS[self.upstream].era

    def features(self):
        every = UPSTREAMS[self.upstream].features[self.era]
        has_streams = self.front in ('server', 'all', 'direct')  # that can be lost and resumed
        return tuple(f for f in every if f != 'resumption' or has_streams)


def cells():
    for client in CLIENTS:
        for front in FRONTS:
            for upstream in UPSTREAMS:
                # A client that speaks 2026-07-28 alone is declined on the path of an older server, as by the server itself.
                is_declined = client == 'v2-modern' and front != 'all' and UPSTREAMS[upstream].era == 'legacy'
                if upstream not in ('handles', 'everything-sse') and not is_declined:
                    yield Cell(client, front, upstream)
    for client in ('sdk1', 'v2-legacy'):
        yield Cell(client, 'sse', 'everything')
        yield Cell(client, 'direct', 'everything')
        yield Cell(client, 'direct', 'ours-legacy')
    for client in ('v2-auto', 'v2-modern'):
        yield Cell(client, 'direct', 'ours-modern')
    yield Cell('v2-modern', 'all', 'handles')
    for cell in (('sdk1', 'server'), ('v2-legacy', 'all'), ('v2-legacy', 'stdio'), ('v2-modern', 'all')):
        yield Cell(*cell, 'everything-sse')
    yield Cell('sdk1', 'alone', 'everything')
    yield Cell('v2-auto', 'alone', 'ours-stdio')
    yield Cell('v2-auto', 'alone', 'files')


# What does not cross between the eras: refused with a sentence of ours, or not offered to begin with.
UNTRANSLATED = ASKING + ('mrtr', 'listen', 'subscriptions')
REFUSED = re.compile('Holdfast does not translate|does not advertise|what is listened to should be')

# What Holdfast cannot do yet, in which cells, and the features that show it; a row leaves when it can.  "Sometimes"
# is for what depends on who was faster.
TO_COME = [
]


def missing(cell, feature):
    """The name of what Holdfast cannot do yet for this test, or None."""
    if cell.front == 'direct':
        return None
    return next((what for what, where, features in TO_COME if where(cell) and feature in features), None)


def params():
    for cell in cells():
        for feature in ('connect', *cell.features(), 'close'):
            why = missing(cell, feature)
            marks = [pytest.mark.xfail(strict=not why.startswith('sometimes'), reason=f'not there yet: {why}')] if why else []
            yield pytest.param(cell, feature, marks=marks, id='-'.join((*cell, feature)))


class NodeServer:
    """A server of npm's over HTTP; drained, because it tells of every request."""

    def __init__(self, *command):
        self.process = subprocess.Popen([harness.node(), *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env={**os.environ, 'PORT': '0'})
        self.path = '/sse' if command[-1] == 'sse' else '/mcp'
        self.url = next(filter(None, map(self.url_in, self.process.stdout)), None)
        assert self.url, f'{command} did not start'
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def url_in(self, line):
        if line.startswith('listening '):
            return f'http://127.0.0.1:{line.split()[1]}{self.path}'
        return json.loads(line)['url'] if line.startswith('{"ready"') else None

    def stop(self):
        self.process.kill()
        self.process.wait()


def start_servers(stack, folder):
    """Entries for mcpServers by the name of the upstream; what listens is ended with the stack."""
    def http(*command):
        server = NodeServer(*command)
        stack.callback(server.stop)
        return {'url': server.url, 'handles': 'never'}

    def pipe(*args):
        return {'command': harness.node(), 'args': list(args), 'handles': 'never'}

    on_loopback = ('--import', os.path.join(harness.PEERS, 'on_loopback.mjs'))
    return {
        'everything': pipe(EVERYTHING, 'stdio'),
        'files': pipe(FILESYSTEM, folder),
        'ours-modern': http(OURS, '--era', 'modern'),
        'everything-http': http(*on_loopback, EVERYTHING, 'streamableHttp'),
        'ours-legacy': http(OURS, '--era', 'legacy'),
        'ours-stdio': pipe(OURS, '--stdio', '--era', 'modern'),
        'everything-sse': http(*on_loopback, EVERYTHING, 'sse'),
        'handles': {**pipe(EVERYTHING, 'stdio'), 'handles': 'auto'},
    }


class Matrix:
    """The servers, the gateways, and the outcome of every cell that the chosen tests need."""

    def __init__(self, stack, folder, wanted):
        self.files = os.path.join(folder, 'files')
        os.makedirs(os.path.join(self.files, 'root'))
        self.entries = start_servers(stack, self.files)
        self.gateways = []
        for number in sorted({u.gateway for u in UPSTREAMS.values()}):
            served = {n: self.entries[n] for n, u in UPSTREAMS.items() if u.gateway == number}
            home = os.path.join(folder, f'gateway-{number}')
            os.makedirs(home)
            one = harness.Holdfast(home, {'mcpServers': served, 'holdfast': {}})
            stack.callback(one.close)
            self.gateways.append(one.start())
        # The lines that a modern server logs on a pipe do not say for whom: no two calls at once.
        self.alone = {'ours-stdio': threading.Lock()}
        pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        stack.callback(pool.shutdown, cancel_futures=True)
        self.outcomes = {cell: pool.submit(self.drive, cell) for cell in wanted}

    def target(self, cell):
        gateway = self.gateways[UPSTREAMS[cell.upstream].gateway]
        base, prefix = f'http://127.0.0.1:{gateway.port}', ['--prefix', f'{cell.upstream}__']
        return {
            'server': lambda: ['--url', f'{base}/mcp/{cell.upstream}'],
            'all': lambda: ['--url', f'{base}/mcp', *prefix],
            'sse': lambda: ['--sse', f'{base}/sse', *prefix],
            'stdio': lambda: ['--stdio', f'{harness.BINARY} stdio --server {cell.upstream} --data {gateway.data}'],
            'alone': lambda: ['--stdio', f'{harness.BINARY} stdio --server {cell.upstream} --config {gateway.config_file} '
                              f'--data {gateway.folder}/{cell.client}'],
            'direct': lambda: self.itself(self.entries[cell.upstream]),
        }[cell.front]()

    @staticmethod
    def itself(entry):
        return ['--url', entry['url']] if 'url' in entry else ['--stdio', ' '.join([entry['command'], *entry['args']])]

    def drive(self, cell):
        """What the driver said, by feature."""
        command = [harness.node(), DRIVE, '--client', cell.client, '--peer', UPSTREAMS[cell.upstream].peer, '--folder', self.files,
                   '--features', ','.join(cell.features()), *self.target(cell)]
        with self.alone.get(cell.upstream, contextlib.nullcontext()):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CELL_S, check=False)
        said = {line['feature']: line for line in map(json.loads, done.stdout.splitlines())}
        for line in said.values():
            line['stderr'] = done.stderr[-8000:]
        return said


@pytest.fixture(scope='module')
def matrix(request, tmp_path_factory):
    if not harness.node() or not os.path.exists(EVERYTHING):
        pytest.skip('the packages of tests/package.json are not installed')
    items = [item for item in request.session.items if item.module is request.module]
    wanted = list(dict.fromkeys(item.callspec.params['cell'] for item in items))
    with contextlib.ExitStack() as stack:
        yield Matrix(stack, str(tmp_path_factory.mktemp('clients')), wanted)


@pytest.mark.parametrize('cell, feature', params())
def test_official_client(matrix, cell, feature):
    line = matrix.outcomes[cell].result(timeout=CELL_S).get(feature)
    assert line, f'{feature} was not reached'
    if cell.is_crossed and feature in UNTRANSLATED:
        assert not line['ok'] and REFUSED.search(line['detail']), f'not refused by us: {line}'
    else:
        assert line['ok'], line['detail'] + '\n' + line['stderr']
    assert not harness.SANITIZER.search(line['stderr']), line['stderr']
    if cell.front in ('stdio', 'alone') and feature == 'close':
        assert line['ms'] < 1900, 'holdfast stdio did not end with its input'
