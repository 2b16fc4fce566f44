# SPDX-License-Identifier: Apache-2.0
"""Errors name what happened, in which server, and what to do next."""
import http.server
import re
import threading

from commands import run
from harness import PYTHON, Connection
from keys import create

STEP = re.compile(r'\b(Check|Read|Run|Create|Use|Start|Send|Wait|Try|Look|Correct|Keep|Choose|Leave|Restore|Compare|End|report|'
                  r'nothing to do|names those|repeat|raise|rotate)\b', re.I)


def test_wrong_host__is_named_with_the_line_for_nginx(holdfast):
    hf = holdfast({})
    with Connection(hf.port) as connection:
        answer = connection.request('GET', '/healthz', {'Host': 'mcp.example'})
    text = answer.body.decode()
    assert answer.status == 403 and 'mcp.example' in text and 'proxy_set_header Host $host;' in text


def test_unknown_tool__has_the_same_words_as_one_outside_the_key(holdfast):
    hf = holdfast({}, {'auth': 'none'})
    key = create(hf, '--tool', 'sample__echo')
    with key.client(hf, '/mcp/sample') as client:
        client.initialize()
        hidden = client.rpc('tools/call', {'name': 'counter', 'arguments': {}}).error
        absent = client.rpc('tools/call', {'name': 'no_such', 'arguments': {}}).error
    assert hidden == absent and 'tools/list' in hidden['message'] and 'your key may not include it' in hidden['message']


def test_unknown_tool__names_a_similar_one_that_the_caller_may_use(holdfast):
    hf = holdfast({}, {'auth': 'none'})
    key = create(hf, '--tool', 'sample__echo')
    with key.client(hf, '/mcp/sample') as client:
        client.initialize()
        near = client.rpc('tools/call', {'name': 'ehco', 'arguments': {}}).error['message']
        far = client.rpc('tools/call', {'name': 'countr', 'arguments': {}}).error['message']
    assert near.endswith('your key may not include it: ask an administrator. Did you mean "echo"?')
    assert 'Did you mean' not in far, 'counter is outside of the key'
    with key.client(hf, '/mcp') as client:
        client.initialize()
        whole = client.rpc('tools/call', {'name': 'sample__ehco', 'arguments': {}}).error['message']
        server = client.rpc('tools/call', {'name': 'smaple__echo', 'arguments': {}}).error['message']
        hidden = client.rpc('tools/call', {'name': 'sesion__x', 'arguments': {}}).error['message']
    assert whole.endswith('Did you mean "sample__echo"?') and server.endswith('did you mean "sample__echo"?')
    assert 'did you mean' not in hidden and hidden.endswith('your key may not include its server')


class Denies(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # pylint: disable=invalid-name
        self.rfile.read(int(self.headers['Content-Length']))
        self.send_response(401)
        self.send_header('Content-Length', '0')
        self.end_headers()

    do_GET = do_DELETE = do_POST

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass


def test_401_of_a_server__says_whether_a_credential_is_missing_or_refused(holdfast):
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Denies) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f'http://127.0.0.1:{server.server_port}/mcp'
        hf = holdfast({'bare': {'url': url}, 'stale': {'url': url, 'headers': {'Authorization': 'Bearer canary-1', 'X-Team': 'a'}}})
        told = [hf.client(f'/mcp/{name}').rpc('tools/list').error['message'] for name in ('bare', 'stale')]
        server.shutdown()
    assert 'bare answered 401: it requires a credential; set one in "headers"' in told[0]
    assert 'stale answered 401: it refuses the credential in "headers"' in told[1] and 'canary' not in told[1]


def test_a_crash_in_a_call__has_its_server_its_words_and_what_to_do(holdfast):
    code = ("import json, os, sys\nfor line in sys.stdin:\n    m = json.loads(line)\n    if m['method'] == 'tools/call':\n"
            "        sys.exit('KeyError: no row')\n    if 'id' in m:\n        print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': "
            "{'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'x', 'version': '1'}, 'tools': "
            "[{'name': 'x', 'inputSchema': {'type': 'object'}}]}}), flush=True)\n")
    hf = holdfast({'frail': {'command': PYTHON, 'args': ['-c', code]}})
    with hf.client('/mcp/frail').connect() as client:
        told = client.call('x').error['message']
    assert told.startswith('the server "frail" exited with status 1; it wrote to stderr: KeyError: no row; ')
    assert told.endswith('the next call starts it anew; `holdfast servers logs frail` has more')


def test_a_server_that_does_not_start__says_its_name_and_its_words(holdfast):
    hf = holdfast({'needy': {'command': PYTHON, 'args': ['-c', 'import sys; sys.exit("error: API_KEY is not set")']}})
    told = hf.client('/mcp/needy').rpc('tools/list')
    assert 'needy' in told.error['message'] and 'API_KEY is not set' in told.error['message']
    assert '`holdfast servers logs needy`' in told.error['message']


def test_help__has_a_next_step_for_every_code(holdfast):
    hf = holdfast({}, start=False)
    with open(__file__.replace('tests/e2e/test_error_texts.py', 'src/base/error.c'), encoding='utf-8') as file:
        names = re.findall(r'ROW\(ERR_\w+, "(\w+)"', file.read())
    assert len(names) > 30
    for name in names:
        done = run(hf, 'help', name, with_data=False)
        assert done.returncode == 0 and STEP.search(done.stdout), (name, done.stdout)
