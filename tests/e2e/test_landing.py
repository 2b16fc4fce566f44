# SPDX-License-Identifier: Apache-2.0
"""The page at `/`: for browsers a page without scripts, for other clients the paths as JSON."""
import re

import pytest
from harness import Connection, wait_for

BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'


def get(hf, path='/', accept=BROWSER, **headers):
    with Connection(hf.port) as connection:
        return connection.request('GET', path, {'Host': f'localhost:{hf.port}', 'Accept': accept, **headers})


def test_page__says_what_runs_and_how_to_connect(holdfast):
    hf = holdfast({'bad': {'command': '/nonexistent/server'}})
    page = wait_for(lambda: (p := get(hf)) and b'>down<' in p.body and p, 'the failed server on the page')
    text = page.body.decode()
    assert page.status == 200 and page.header('content-type') == 'text/html; charset=utf-8'
    assert '<span>bad</span><span class="bad">down</span>' in text
    for line in (f'claude mcp add --transport http holdfast http://127.0.0.1:{hf.port}/mcp', f'codex mcp add holdfast --url http://127.0.0.1:{hf.port}/mcp',
                 'Cursor', 'VS Code', '/api/v1/openapi.json', '/metrics'):
        assert line in text, line
    assert '<script' not in text


def test_page__runs_no_script_and_loads_nothing(holdfast):
    page = get(holdfast())
    policy = page.header('content-security-policy')
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and 'unsafe' not in policy and "frame-ancestors 'none'" in policy
    assert page.header('x-content-type-options') == 'nosniff' and page.header('vary') == 'Accept, Origin'
    assert not re.search(r'(src|href)="(?!data:|/)', page.body.decode())


def test_page__under_auth_names_no_server(holdfast):
    hf = holdfast({'hidden': {'command': '/nonexistent/server'}}, {'auth': 'required'})
    text = get(hf).body.decode()
    assert 'hidden' not in text and 'sample' not in text and 'Version' not in text
    assert re.search(r'<span>\d+</span><span class="\w+">(up|down|starting)</span>', text) and 'holdfast key create' in text


@pytest.mark.parametrize('accept', ['*/*', 'application/json', 'text/plain', 'text/htmlx'])
def test_other_clients__get_the_paths(holdfast, accept):
    answer = get(holdfast(), accept=accept)
    assert answer.status == 200 and answer.header('content-type') == 'application/json'
    assert answer.json()['mcp'] == '/mcp' and answer.json()['openapi'] == '/api/v1/openapi.json'


def test_host_and_origin__are_checked_as_everywhere(holdfast):
    hf = holdfast()
    assert get(hf, Host='evil.example').status == 403
    assert get(hf, Origin='https://evil.example').status == 403


def test_favicon__is_empty(holdfast):
    assert get(holdfast(), '/favicon.ico').status == 204
