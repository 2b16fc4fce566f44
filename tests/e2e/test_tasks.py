# SPDX-License-Identifier: Apache-2.0
"""Tasks of servers (2025-11-25): Holdfast does not carry them, so nothing that clients see speaks of them."""
import json

import pytest

from commands import run

SCHEMA = {'inputSchema': {'type': 'object'}}
TOOLS = [{'name': 'only_as_task', **SCHEMA, 'execution': {'taskSupport': 'required'}},
         {'name': 'either', **SCHEMA, 'execution': {'taskSupport': 'optional'}},
         {'name': 'never', **SCHEMA, 'execution': {'taskSupport': 'forbidden', 'other': 1}}]
TEXT = ("The tool 'only_as_task' of 's' runs only as a task, and Holdfast does not carry tasks; use another tool, or connect to the "
        'server without Holdfast.')


@pytest.fixture
def served(holdfast, scripted):
    server = scripted('s', http=True, shape={'tools': TOOLS})
    return holdfast({'s': server.entry}, {'profiles': {'desk': {'servers': ['s'], 'mode': 'search'}}}), server


@pytest.mark.parametrize('path,prefix', [('/mcp/s', ''), ('/mcp', 's__')])
def test_tools_that_need_a_task__are_not_listed_and_others_do_not_speak_of_it(served, path, prefix):
    hf, _ = served
    listed = {t['name']: t for t in hf.client(path).connect().rpc('tools/list').result['tools']}
    assert prefix + 'only_as_task' not in listed
    assert 'execution' not in listed[prefix + 'either'] and listed[prefix + 'never']['execution'] == {'other': 1}


@pytest.mark.parametrize('path,name', [('/mcp/s', 'only_as_task'), ('/mcp', 's__only_as_task')])
def test_call_of_a_tool_that_needs_a_task__is_refused_in_words(served, path, name):
    hf, server = served
    reply = hf.client(path).connect().call(name)
    assert reply.result['isError'] is True and reply.text == TEXT
    assert not server.of('tools/call')


def test_run_of_a_tool_that_needs_a_task__is_refused_in_words(served):
    hf, server = served
    reply = hf.client('/mcp/p/desk').connect().call('run', {'tool': 's:only_as_task'})
    assert reply.result['isError'] is True and reply.text == TEXT
    assert not server.of('tools/call')


def test_call_that_asks_for_a_task__runs_as_a_call(served):
    hf, server = served
    client = hf.client('/mcp/s').connect()
    client.rpc('tools/call', {'name': 'either', 'arguments': {}, 'task': {'ttl': 60000}})
    assert 'task' not in json.loads(server.of('tools/call')[-1])['params']


def test_tools_that_need_a_task__are_noted_where_the_server_is_shown(served):
    hf, _ = served
    hf.client('/mcp/s').connect().rpc('tools/list')
    assert '1 of its tools run only as tasks, which Holdfast does not carry, and are left out' in run(hf, 'servers', 'show', 's').stderr
