# SPDX-License-Identifier: Apache-2.0
"""Errors name what happened, in which server, and what to do next."""
import re

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


def test_a_server_that_does_not_start__says_its_name_and_its_words(holdfast):
    hf = holdfast({'needy': {'command': PYTHON, 'args': ['-c', 'import sys; sys.exit("error: API_KEY is not set")']}})
    told = hf.client('/mcp/needy').rpc('tools/list')
    assert 'needy' in told.error['message'] and 'API_KEY is not set' in told.error['message']


def test_help__has_a_next_step_for_every_code(holdfast):
    hf = holdfast({}, start=False)
    with open(__file__.replace('tests/e2e/test_error_texts.py', 'src/base/error.c'), encoding='utf-8') as file:
        names = re.findall(r'ROW\(ERR_\w+, "(\w+)"', file.read())
    assert len(names) > 30
    for name in names:
        done = run(hf, 'help', name, with_data=False)
        assert done.returncode == 0 and STEP.search(done.stdout), (name, done.stdout)
