# SPDX-License-Identifier: Apache-2.0
"""Starting a server: what it gets from Holdfast's environment, and what is said when it does not start."""
import json
import os
import re

import pytest

from commands import run
from harness import PYTHON

SECRET = 'sekret-4711'
GREETS = '''import os, sys
print('Welcome to the server', flush=True)
os.execv(sys.executable, [sys.executable] + sys.argv[1:])
'''
NPM = '''npm error code E404
npm error 404 Not Found - GET https://registry.example/no-such-package - Not found
npm error 404
npm error 404  'no-such-package@*' is not in this registry.
npm error 404
npm error A complete log of this run can be found in: /root/.npm/_logs/x.log
'''


def environment(client):
    return json.loads(client.call('env').result['content'][0]['text'])


def failure(hf, path='/mcp/up'):
    """What a client is told of a server that does not start."""
    reply = hf.client(path).rpc('tools/list')
    return reply.error['message']


def script(text):
    return {'command': PYTHON, 'args': ['-c', text]}


def test_environment__of_a_server_has_proxies_authorities_and_what_it_inherits(holdfast, stdio_server):
    ours = {'HTTPS_PROXY': 'http://proxy.example:3128', 'no_proxy': 'localhost', 'NODE_EXTRA_CA_CERTS': '/etc/ca.pem',
            'SSL_CERT_DIR': '/etc/certs', 'GITHUB_TOKEN': SECRET, 'AWS_REGION': 'eu-1', 'AWSOME': 'x', 'OTHER_TOKEN': 'x'}
    entry, _ = stdio_server('up', handles='never', inherit_env=['GITHUB_TOKEN', 'AWS_*'])
    hf = holdfast({'up': entry}, env=ours)
    found = environment(hf.client('/mcp/up').connect())
    wanted = {name: value for name, value in ours.items() if name not in ('AWSOME', 'OTHER_TOKEN')}
    assert {name: found.get(name) for name in ours} == {**wanted, 'AWSOME': None, 'OTHER_TOKEN': None}
    assert SECRET not in hf.text()


@pytest.mark.parametrize('names', [['*'], [''], ['A=B'], ['A*B'], 'PATH', [1], ['X'] * 65])
def test_inherit_env__is_checked(holdfast, names):
    hf = holdfast({'up': {'command': 'true', 'inherit_env': names}}, start=False)
    done = run(hf, 'config', 'check', '--config', hf.config_file, with_data=False)
    assert done.returncode == 7 and 'inherit_env' in done.stderr, done


def test_inherit_env__takes_64_names(holdfast):
    hf = holdfast({'up': {'command': 'true', 'inherit_env': [f'NAME_{n}' for n in range(64)]}}, start=False)
    assert run(hf, 'config', 'check', '--config', hf.config_file, with_data=False).returncode == 0


def test_home__is_expanded_at_the_beginning_of_args_and_cwd(holdfast):
    show = 'import os, sys; sys.exit(" ".join(sys.argv[1:] + [os.getcwd()]))'
    hf = holdfast({'up': {'command': PYTHON, 'args': ['-c', show, '~', '~/x', '~user', 'a~/x'], 'cwd': '~/work'}}, start=False)
    os.mkdir(os.path.join(hf.folder, 'work'))
    hf.start()
    assert f'{hf.folder} {hf.folder}/x ~user a~/x {hf.folder}/work' in failure(hf)


def test_start_error__names_variables_that_are_not_passed_on(holdfast):
    hf = holdfast({'up': script('import sys; sys.exit("Error: GITHUB_TOKEN is not set")')}, env={'GITHUB_TOKEN': SECRET})
    text = failure(hf)
    assert 'Error: GITHUB_TOKEN is not set' in text
    assert re.search(r'it does not get .*GITHUB_TOKEN.* from the environment of Holdfast: add the names that it needs to its "inherit_env"', text)
    assert SECRET not in text and SECRET not in hf.text()


def test_start_error__has_no_hint_about_variables_that_are_passed_on(holdfast):
    entry = {**script('import sys; sys.exit("Error: wrong token")'), 'inherit_env': ['GITHUB_TOKEN']}
    text = failure(holdfast({'up': entry}, env={'GITHUB_TOKEN': SECRET}))
    assert 'Error: wrong token' in text and 'GITHUB_TOKEN' not in text


def test_start_error__begins_with_the_cause(holdfast):
    words = ("node:internal/modules/cjs/loader:1247\n  throw err;\n  ^\n\nError: Cannot find module '/srv/index.js'\n"
             '    at Module._load (node:internal)\n\nNode.js v24.21.0\n')
    text = failure(holdfast({'up': script(f'import sys; sys.stderr.write({words!r}); sys.exit(1)')}))
    assert "it wrote to stderr: Error: Cannot find module '/srv/index.js' | Node.js v24.21.0" in text


def test_start_error__of_a_missing_package_comes_when_its_process_ends(holdfast):
    hf = holdfast({'up': {**script(f'import sys; sys.stderr.write({NPM!r}); sys.exit(1)'), 'timeout': '10m'}})
    text = failure(hf)
    assert 'exited with status 1; it wrote to stderr: npm error code E404 | npm error 404 Not Found - GET' in text


def test_start_error__of_a_program_that_does_not_speak_mcp_comes_before_the_timeout(holdfast):
    """The test's own deadline is three minutes, the server's is ten."""
    hf = holdfast({'up': {**script('import time; print("Listening on port 3000", flush=True); time.sleep(900)'), 'timeout': '10m'}})
    text = failure(hf)
    assert ('the server "up" writes text that is not MCP to stdout: "Listening on port 3000"; check that its command speaks MCP on '
            'stdin and stdout, and make it log to stderr') in text


def test_start_error__of_a_program_that_prints_and_ends_shows_what_it_printed(holdfast):
    assert 'exited with status 0; it wrote text that is not MCP to stdout: "Hello"' in failure(holdfast({'up': {'command': 'echo', 'args': ['Hello']}}))


def test_server_that_greets_first__is_served(holdfast, stdio_server, tmp_path):
    entry, _ = stdio_server('up', handles='never')
    (tmp_path / 'greets.py').write_text(GREETS, encoding='utf-8')
    assert entry['command'] == PYTHON
    entry['args'] = [str(tmp_path / 'greets.py'), *entry['args']]
    client = holdfast({'up': entry}).client('/mcp/up').connect()
    assert client.call('counter').text == '1'
