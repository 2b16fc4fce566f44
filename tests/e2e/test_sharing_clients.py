# SPDX-License-Identifier: Apache-2.0
"""Start in one client, go on in another: the official clients of both SDKs and eras with a stateful stdio server."""
import json
import os
import subprocess

import pytest

import harness

SHARE = os.path.join(harness.TOP, 'tests/clients/share.mjs')
ERAS = {'sdk1': 'legacy', 'v2-legacy': 'legacy', 'v2-auto': 'modern', 'v2-modern': 'modern'}
PAIRS = [('sdk1', 'v2-modern'), ('v2-modern', 'sdk1'), ('sdk1', 'v2-legacy'), ('v2-auto', 'v2-modern'), ('v2-legacy', 'v2-auto')]


@pytest.mark.parametrize('begins, goes_on', PAIRS, ids='-'.join)
def test_sharing_clients__a_session_begun_in_one_goes_on_in_the_other(holdfast, stdio_server, begins, goes_on):
    if not os.path.isdir(harness.NODE_MODULES):
        pytest.skip('the npm packages are not installed')
    entry, record = stdio_server('up')
    hf = holdfast({'up': entry})
    done = subprocess.run([harness.node(), SHARE, '--from', begins, '--to', goes_on, '--url', f'http://127.0.0.1:{hf.port}/mcp'],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90, check=False)
    said = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
    assert said.get('ok'), (said, done.stderr[-2000:])
    assert [(v == harness.MODERN) for v in said['versions']] == [ERAS[c] == 'modern' for c in (begins, goes_on)], said
