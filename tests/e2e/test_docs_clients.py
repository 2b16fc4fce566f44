# SPDX-License-Identifier: Apache-2.0
"""The official clients of both eras drive every tool of the knowledge base, on every front
(tests/clients/knowledge.mjs)."""
import concurrent.futures
import json
import os
import subprocess

import pytest

import harness
from knowledge import started
from test_clients import AT_ONCE, CELL_S, CLIENTS, DRIVE
from test_docs import TOOLS

FEATURES = ['tools', 'create_session', 'create', 'read', 'edit', 'comment', 'glob', 'grep', 'search', 'get_links', 'move', 'another',
            'list_sessions', 'end_session']
CELLS = [(client, front) for client in CLIENTS for front in ('server', 'all', 'stdio')] + [('sdk1', 'sse'), ('v2-legacy', 'sse')]


def drive(kb, client, front):
    """What the driver said, by feature."""
    base = f'http://127.0.0.1:{kb.hf.port}'
    target = {'server': ['--url', f'{base}/mcp/docs'], 'all': ['--url', f'{base}/mcp', '--prefix', 'docs__'],
              'sse': ['--sse', f'{base}/sse', '--prefix', 'docs__'],
              'stdio': ['--stdio', f'{harness.BINARY} stdio --server docs --data {kb.hf.data}']}[front]
    done = subprocess.run([harness.node(), DRIVE, '--client', client, '--peer', 'docs', '--folder', kb.file('Lens'),
                           '--features', ','.join(FEATURES), *target],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CELL_S, check=False)
    assert not harness.SANITIZER.search(done.stderr), done.stderr
    return {line['feature']: line for line in map(json.loads, done.stdout.splitlines())}, done.stderr


@pytest.fixture(scope='module')
def outcomes(request, tmp_path_factory):
    if not harness.node() or not os.path.exists(os.path.join(harness.NODE_MODULES, '@modelcontextprotocol/client')):
        pytest.skip('the packages of tests/package.json are not installed')
    kb = started(request, tmp_path_factory, 'clients')
    wanted = [i.callspec.params for i in request.session.items if i.module is request.module]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        found = {(w['client'], w['front']): pool.submit(drive, kb, w['client'], w['front']) for w in wanted}
        yield found


@pytest.mark.parametrize('client, front', CELLS, ids=['-'.join(c) for c in CELLS])
def test_official_client__drives_every_tool(outcomes, client, front):
    assert set(TOOLS) <= set(FEATURES)
    said, errors = outcomes[client, front].result(timeout=CELL_S)
    failed = {f: said.get(f) for f in ('connect', *FEATURES, 'close') if not said.get(f, {}).get('ok')}
    assert not failed, f'{failed}\n{errors[-4000:]}'
    version = said['connect']['detail'].split(' ')[0]
    assert (version == harness.MODERN) == (CLIENTS[client] == 'modern'), version
