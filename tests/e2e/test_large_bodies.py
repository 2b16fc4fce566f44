# SPDX-License-Identifier: Apache-2.0
"""limits.body at its largest: whatever it lets in is served or refused, and nothing inside has a smaller limit."""
import json

import pytest

from harness import dump

LARGEST = 64 << 20


@pytest.fixture
def server(scripted):
    return scripted('s', http=True)


@pytest.fixture
def client(holdfast, server):
    return holdfast({'s': server.entry}, {'limits': {'body': '64MiB'}}).client('/mcp').connect()


def filled(message, mark='@'):
    """As large as may be: the mark becomes many letters."""
    text = dump(message)
    return text.replace(mark, 'x' * (LARGEST - len(text) + 1))


@pytest.mark.parametrize('method,params,words', [
    ('tools/call', {'name': 's__@', 'arguments': {}}, 'a name or uri has at most 2048 bytes'),
    ('resources/read', {'uri': '@'}, 'a name or uri has at most 2048 bytes'),
    ('prompts/get', {'name': '@'}, 'Unknown prompt: '),
    ('tools/list', {'cursor': '@'}, 'Invalid cursor: '),
])
def test_largest_message__that_names_nothing_is_refused_in_words(client, server, method, params, words):
    reply = client.rpc_bytes(filled({'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}))
    assert reply.status == 200 and reply.json['id'] == 1, repr(reply)
    assert reply.error['code'] == -32602 and reply.error['message'].startswith(words), reply.error
    assert not server.calls(method) or method == 'tools/list'  # which it was asked for at the start
    assert client.rpc('ping').result == {}


def test_largest_call__reaches_its_server_whole(client, server):
    """The scripted server echoes the text: its answer is larger than Holdfast takes, and that is what the client hears."""
    body = filled({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 's__echo', 'arguments': {'text': '@'}}})
    reply = client.rpc_bytes(body)
    call, = server.calls()
    assert call['params']['arguments'] == json.loads(body)['params']['arguments']
    assert reply.status == 200 and reply.error['message'] == 's: its answer is larger than 16777216 bytes: ask it for less'
    assert client.rpc('ping').result == {}


def test_largest_parameters__of_a_ping_are_passed_over(client):
    reply = client.rpc_bytes(filled({'jsonrpc': '2.0', 'id': 1, 'method': 'ping', 'params': {'@': 1}}))
    assert reply.status == 200 and reply.json == {'jsonrpc': '2.0', 'id': 1, 'result': {}}


@pytest.mark.parametrize('ident', ['@', 'ping@'])
def test_largest_id__comes_back_as_it_was(client, ident):
    body = filled({'jsonrpc': '2.0', 'id': ident, 'method': 'ping'})
    reply = client.rpc_bytes(body)
    assert reply.status == 200 and reply.json == {'jsonrpc': '2.0', 'id': json.loads(body)['id'], 'result': {}}
    assert client.rpc('ping').result == {}
