# SPDX-License-Identifier: Apache-2.0
"""`_meta` crosses byte for byte, both ways, through stdio and HTTP upstreams; what was absent stays absent."""
import json
import re
import sys

import pytest

from harness import PEERS

sys.path.insert(0, PEERS)
from mcp_server import META_BYTES, META_RESULT  # noqa: E402

# Each is the text of a `_meta` value; none survives a round trip through a JSON library unchanged.
METAS = {
    'nested': '{"com.example/trace":{"a":[1,[2,{"b":null}],{}],"deep":{"x":{"y":{"z":[]}}}}}',
    'unicode': '{"com.example/t":"h\\u00e9 \\ud83d\\ude00 \u00fc\U0001f600 \\/ \\u0041"}',
    'beyond 2^53': '{"com.example/n":9007199254740993,"m":-9007199254740993}',
    'beyond double': '{"com.example/n":1e400,"m":-1E+400,"k":1.0000000000000000000001}',
    'negative zero': '{"com.example/n":-0,"m":-0.0,"k":0e0}',
    'empty values': '{"a":{},"b":[],"c":"","d":null}',
    'empty': '{}',
    'spaced': '{ "a" : [ 1 , 2 ] ,\t"b" : { } }',
    'order': '{"z":1,"a":2,"m":{"z":1,"a":2}}',
    'trace context': '{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","baggage":"k=v"}',
}


def meta_of(message):
    """The bytes of params._meta in a recorded request, or None."""
    text = message.decode('utf-8')
    found = re.search(r'"_meta"\s*:\s*', text)
    if not found:
        return None
    scanner = json.JSONDecoder()
    _, end = scanner.raw_decode(text, found.end())
    return text[found.end():end]


@pytest.fixture(params=['stdio', 'http', 'http answering with events'])
def upstream(request, holdfast, stdio_server, http_server):
    """(client on /mcp/up, record of the upstream)"""
    if request.param == 'stdio':
        entry, record = stdio_server('up', handles='never')
    else:
        server = http_server('up', *(['--sse'] if 'events' in request.param else []))
        entry, record = server.entry(handles='never'), server.record
    return holdfast({'up': entry}).client('/mcp/up').connect(), record


def test_request_meta__reaches_the_upstream_byte_for_byte(upstream):
    client, record = upstream
    for n, (name, meta) in enumerate(METAS.items(), 1):
        body = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","_meta":%s,"arguments":{"text":"t"}}}'
        reply = client.rpc_bytes(body % (n, meta))
        assert reply.status == 200 and reply.text == 't', name
        assert meta_of(record.wait('tools/call', n)[-1]) == meta, name


def test_request_arguments__reach_the_upstream_byte_for_byte(upstream):
    client, record = upstream
    arguments = '{"text":"\\u0041\u00fc","n":9007199254740993,"far":1e400,"neg":-0,"e":{},"z":1,"a":2}'
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":%s}}' % arguments
    assert client.rpc_bytes(body).status == 200
    assert arguments in record.wait('tools/call')[-1].decode()


def test_absent_meta__stays_absent(upstream):
    client, record = upstream
    client.call('echo', {'text': 'x'})
    assert b'_meta' not in record.wait('tools/call')[-1]


def test_session_keys__are_never_invented_in_meta(upstream):
    client, record = upstream
    client.call('echo', {'text': 'x'}, meta={'com.example/k': 1})
    assert json.loads(record.wait('tools/call')[-1])['params']['_meta'] == {'com.example/k': 1}


def test_carrier_in_meta__is_forwarded_untouched(upstream):
    client, record = upstream
    client.call('echo', {'text': 'x'}, meta={'session_id': 'mine', 'threadId': 'T'})
    assert json.loads(record.wait('tools/call')[-1])['params']['_meta'] == {'session_id': 'mine', 'threadId': 'T'}


def test_result__returns_byte_for_byte(upstream):
    client, _ = upstream
    reply = client.call('meta')
    assert META_BYTES in reply.raw.decode('utf-8')
    assert META_RESULT in reply.raw.decode('utf-8')


def test_unknown_result_fields__survive(upstream):
    client, _ = upstream
    result = '{"content":[],"x-odd":{"n":1.10,"e":1E5},"_meta":{}}'
    reply = client.call('raw', {'result': result})
    assert result in reply.raw.decode('utf-8')


def test_reserved_keys__leave_towards_an_older_server_however_many(upstream):
    client, record = upstream
    meta = {}
    for n in range(40):
        meta.update({f'io.modelcontextprotocol/x{n}': n, f'com.example/k{n}': n})
    reply = client.holdfast.client('/mcp/up', modern=True).rpc('tools/call', {'name': 'echo', 'arguments': {'text': 'm'}, '_meta': meta, 'task': {}})
    assert reply.status == 200 and reply.text == 'm'
    params = json.loads(record.wait('tools/call')[-1])['params']
    assert params['_meta'] == {f'com.example/k{n}': n for n in range(40)} and 'task' not in params


def test_progress_token__is_the_only_key_restamped(upstream):
    client, record = upstream
    body = ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},'
            '"_meta":{"com.example/a":1e400,"progressToken":"mine","com.example/b":{"progressToken":-0}}}}')
    assert client.rpc_bytes(body).status == 200
    meta = meta_of(record.wait('tools/call')[-1])
    assert '"com.example/a":1e400' in meta and '"com.example/b":{"progressToken":-0}' in meta


@pytest.mark.parametrize('ident', ['0', '"0"', '1', '-1', '9007199254740993', '"\\u0041\u00fc"', '""', '12345678901234567890'])
def test_request_id__comes_back_as_the_same_bytes(holdfast, ident):
    client = holdfast().client()
    reply = client.rpc_bytes('{"jsonrpc":"2.0","id":%s,"method":"ping"}' % ident)
    assert reply.status == 200 and ('"id":' + ident) in reply.raw.decode('utf-8')
