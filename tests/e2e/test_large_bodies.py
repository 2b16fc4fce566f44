# SPDX-License-Identifier: Apache-2.0
"""limits.body at its largest: whatever it lets in is served or refused, and nothing inside has a smaller limit."""
import pytest

from harness import dump

LARGEST = 64 << 20


@pytest.fixture
def client(holdfast, scripted):
    server = scripted('s', http=True)
    return holdfast({'s': server.entry}, {'limits': {'body': '64MiB'}}).client('/mcp').connect()


def filled(message, mark='@'):
    """As large as may be: the mark becomes many letters."""
    text = dump(message)
    return text.replace(mark, 'x' * (LARGEST - len(text) + 1))


@pytest.mark.parametrize('method,params', [
    ('tools/call', {'name': 's__echo', 'arguments': {'text': '@'}}),
    ('tools/call', {'name': 's__@', 'arguments': {}}),
    ('resources/read', {'uri': '@'}),
    ('prompts/get', {'name': '@'}),
    ('tools/list', {'cursor': '@'}),
    ('ping', {'@': 1}),
])
def test_largest_message__is_answered(client, method, params):
    reply = client.rpc_bytes(filled({'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}))
    assert reply.status in (200, 400) and reply.json['id'] in (1, None), reply.status
    assert client.rpc('ping').result == {}


@pytest.mark.parametrize('ident', ['@', 'ping@'])
def test_largest_id__is_answered(client, ident):
    reply = client.rpc_bytes(filled({'jsonrpc': '2.0', 'id': ident, 'method': 'ping'}))
    assert reply.status in (200, 400)
    assert client.rpc('ping').result == {}
