# SPDX-License-Identifier: Apache-2.0
"""Both eras on one URL: the modern ladder row by row, and each era in front of the other."""
import base64
import json

import pytest

from harness import ENVELOPE, MODERN, PREFIX, dump
from scripted import Script


@pytest.fixture(scope='module')
def hf(tmp_path_factory):
    import harness
    folder = tmp_path_factory.mktemp('eras')
    entry, record = harness.stdio_server(folder, 'up', handles='never')
    one = harness.Holdfast(folder, {'mcpServers': {'up': entry}, 'holdfast': {}}).start()
    one.record = record
    yield one
    one.close()


def post(hf, message, headers, path='/mcp/up'):
    return hf.client(path).rpc_bytes(message if isinstance(message, (bytes, str)) else dump(message),
                                     headers, 'initialize')


def modern(method='tools/call', params=None, meta=None, ident='m1'):
    params = {'name': 'echo', 'arguments': {'text': 'x'}} if params is None else dict(params)
    params['_meta'] = ENVELOPE if meta is None else meta
    return {'jsonrpc': '2.0', 'id': ident, 'method': method, 'params': params}


def heads(method='tools/call', name='echo', version=MODERN, **more):
    headers = {'MCP-Protocol-Version': version, 'Mcp-Method': method, 'Mcp-Name': name}
    headers.update({k.replace('_', '-'): v for k, v in more.items()})
    return {k: v for k, v in headers.items() if v is not None}


CAPS, PV, INFO, LEVEL = (PREFIX + k for k in ('clientCapabilities', 'protocolVersion', 'clientInfo', 'logLevel'))
SENTINEL = '=?base64?' + base64.b64encode(b'echo').decode() + '?='

# (row of the ladder, message, headers, status, code)
LADDER = [
    ('1 content type', modern(), heads(Content_Type='text/plain'), 415, None),
    ('2 no claim, modern header', modern(meta={CAPS: {}}), heads(), 400, -32602),
    ('2 no _meta, modern header', {'jsonrpc': '2.0', 'id': 'm1', 'method': 'tools/call', 'params': {'name': 'echo'}}, heads(), 400, -32602),
    ('2 no capabilities', modern(meta={PV: MODERN}), heads(), 400, -32602),
    ('2 capabilities not an object', modern(meta={PV: MODERN, CAPS: []}), heads(), 400, -32602),
    ('2 claim not a string', modern(meta={PV: 7, CAPS: {}}), heads(), 400, -32602),
    ('2 client info malformed', modern(meta={**ENVELOPE, INFO: 'me'}), heads(), 400, -32602),
    ('2 log level unknown', modern(meta={**ENVELOPE, LEVEL: 'loud'}), heads(), 400, -32602),
    ('3 version header absent', modern(), heads(version=None), 400, -32020),
    ('3 version header differs', modern(), heads(version='2025-11-25'), 400, -32020),
    ('3 version header in blanks', modern(), heads(version=f' \t{MODERN}\t '), 200, None),
    ('4 version unsupported', modern(meta={PV: '2099-01-01', CAPS: {}}), heads(version='2099-01-01'), 400, -32022),
    ('4 legacy version claimed', modern(meta={PV: '2025-11-25', CAPS: {}}), heads(version='2025-11-25'), 400, -32022),
    ('5 method header absent', modern(), heads(method=None), 400, -32020),
    ('5 method header differs', modern(), heads(method='tools/list'), 400, -32020),
    ('5 method header in another case', modern(), heads(method='Tools/Call'), 400, -32020),
    ('6 name header absent', modern(), heads(name=None), 400, -32020),
    ('6 name header differs', modern(), heads(name='fail'), 400, -32020),
    ('6 name header as a sentinel', modern(), heads(name=SENTINEL), 200, None),
    ('6 sentinel without padding', modern(), heads(name='=?base64?ZWNobw?='), 400, -32020),
    ('6 sentinel of another name', modern(), heads(name='=?base64?ZmFpbA==?='), 400, -32020),
    ('7 unknown method', modern('no/such', {}), heads('no/such', None), 404, -32601),
    ('7 a method of the other era', modern('ping', {}), heads('ping', None), 404, -32601),
    ('7 initialize in an envelope', modern('initialize', {}), heads('initialize', None), 404, -32601),
    ('10 unknown tool', modern(params={'name': 'nope', 'arguments': {}}), heads(name='nope'), 200, -32602),
    ('all well', modern(), heads(), 200, None),
]


@pytest.mark.parametrize('row,message,headers,status,code', LADDER, ids=[r[0] for r in LADDER])
def test_modern_ladder(hf, row, message, headers, status, code):
    reply = post(hf, message, headers)
    assert reply.status == status, repr(reply)
    if code is not None:
        assert reply.code == code and reply.json['id'] == 'm1', repr(reply)
    elif status == 200:
        assert reply.result['content'][0]['text'] == 'x' and reply.result['resultType'] == 'complete'


def test_unsupported_version__names_what_is_supported(hf):
    reply = post(hf, modern(meta={PV: '2099-01-01', CAPS: {}}), heads(version='2099-01-01'))
    discovered = hf.client('/mcp', modern=True).rpc('server/discover').result['supportedVersions']
    assert reply.error['data']['requested'] == '2099-01-01'
    assert set(reply.error['data']['supported']) <= set(discovered) and MODERN in reply.error['data']['supported']


def test_legacy_initialize__with_a_modern_header_is_a_mismatch(hf):
    message = {'jsonrpc': '2.0', 'id': 1, 'method': 'initialize',
               'params': {'protocolVersion': '2025-11-25', 'capabilities': {}, 'clientInfo': {'name': 'x', 'version': '1'}}}
    reply = post(hf, message, {'MCP-Protocol-Version': MODERN})
    assert reply.status == 400 and reply.code == -32020


def test_modern_notification__is_202_without_mirrored_headers(hf):
    message = {'jsonrpc': '2.0', 'method': 'notifications/cancelled', 'params': {'requestId': 1, '_meta': ENVELOPE}}
    assert post(hf, message, {'MCP-Protocol-Version': MODERN}).status == 202


def test_legacy_request__with_an_unknown_version_header_is_400(hf):
    message = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list'}
    assert post(hf, message, {'MCP-Protocol-Version': '1999-01-01'}).status == 400


def test_discover_then_initialize__both_work(hf):
    assert hf.client('/mcp', modern=True).rpc('server/discover').status == 200
    assert hf.client('/mcp').initialize().status == 200


def test_modern_client_on_legacy_upstream__lists_with_cache_hints(hf):
    result = hf.client('/mcp/up', modern=True).rpc('tools/list').result
    assert result['resultType'] == 'complete' and result['cacheScope'] in ('private', 'public')
    assert isinstance(result['ttlMs'], int) and result['ttlMs'] >= 0
    assert [t['name'] for t in result['tools']][:2] == ['echo', 'counter']


def test_modern_client_on_legacy_upstream__discovers(hf):
    result = hf.client('/mcp', modern=True).rpc('server/discover').result
    assert result['resultType'] == 'complete' and MODERN in result['supportedVersions']
    assert 'tools' in result['capabilities'] and 'ttlMs' in result and 'cacheScope' in result


def test_modern_client_on_legacy_upstream__calls_without_leaking_the_envelope(hf):
    client = hf.client('/mcp/up', modern=True)
    reply = client.call('echo', {'text': 'across'}, meta={'com.example/k': {'n': 1}, 'traceparent': '00-ab-cd-01'})
    assert reply.text == 'across' and reply.result['resultType'] == 'complete'
    sent = json.loads(hf.record.wait('tools/call')[-1])
    assert sent['params']['_meta'] == {'com.example/k': {'n': 1}, 'traceparent': '00-ab-cd-01'}
    assert PREFIX.encode() not in hf.record.of('tools/call')[-1]


def test_modern_client_on_legacy_upstream__gets_progress(hf):
    reply = hf.client('/mcp/up', modern=True).call('slow', {'steps': 2}, meta={'progressToken': 'p'})
    assert [m['params']['progressToken'] for m in reply.before] == ['p'] * len(reply.before)
    assert reply.before and reply.result['resultType'] == 'complete'


@pytest.fixture(params=['http', 'stdio'])
def modern_upstream(request, holdfast, http_server, stdio_server):
    if request.param == 'http':
        server = http_server('new', '--era', 'modern')
        entry, record = server.entry(handles='never'), server.record
    else:
        entry, record = stdio_server('new', '--era', 'modern', handles='never')
    return holdfast({'new': entry}), record


def test_legacy_client_on_modern_upstream__initializes_lists_and_calls(modern_upstream):
    one, record = modern_upstream
    client = one.client('/mcp/new').connect('2025-06-18')
    listed = client.rpc('tools/list').result
    assert [t['name'] for t in listed['tools']][:2] == ['echo', 'counter']
    assert not {'resultType', 'ttlMs', 'cacheScope'} & set(listed)
    reply = client.call('echo', {'text': 'back'}, meta={'com.example/k': 1})
    assert reply.status == 200 and reply.text == 'back' and 'resultType' not in reply.result
    sent = json.loads(record.wait('tools/call')[-1])['params']['_meta']
    assert sent[PREFIX + 'protocolVersion'] == MODERN and sent['com.example/k'] == 1
    assert isinstance(sent[PREFIX + 'clientCapabilities'], dict)


def test_legacy_client_on_modern_upstream__gets_errors_in_band(modern_upstream):
    one, _ = modern_upstream
    reply = one.client('/mcp/new').connect().call('nope', ident=3)
    assert reply.status == 200 and reply.json['id'] == 3
    assert reply.code == -32602


def test_modern_client_on_modern_upstream__is_the_identity(modern_upstream):
    one, record = modern_upstream
    body = ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"y"},"_meta":'
            '{"%s":"%s","com.example/n":1e400,"%s":{ }}}}' % (PV, MODERN, CAPS))
    reply = one.client('/mcp/new').rpc_bytes(body, heads(), 'initialize')
    assert reply.text == 'y' and reply.result['resultType'] == 'complete'
    assert b'"com.example/n":1e400' in record.wait('tools/call')[-1]


def test_server_that_exits_on_a_probe__still_serves(holdfast, stdio_server):
    entry, _ = stdio_server('shy', '--exit-on-probe', handles='never')
    client = holdfast({'shy': entry}).client('/mcp/shy')
    assert client.call('echo', {'text': 'still here'}).text == 'still here'


def test_unknown_method__of_a_legacy_client_is_in_band(hf):
    reply = hf.client('/mcp/up').connect().rpc('no/such', ident=4)
    assert reply.status == 200 and reply.code == -32601 and reply.json['id'] == 4


def test_pages__of_an_upstream_list_are_all_served(holdfast, stdio_server):
    entry, _ = stdio_server('paged', '--page', '3', handles='never')
    client = holdfast({'paged': entry}).client('/mcp/paged').connect()
    names, cursor = [], None
    for _ in range(20):
        result = client.rpc('tools/list', {'cursor': cursor} if cursor is not None else None).result
        names += [t['name'] for t in result['tools']]
        cursor = result.get('nextCursor')
        if cursor is None:
            break
    assert len(names) == len(set(names)) >= 13 and 'crash' in names


MIRRORED = {'name': 'region', 'inputSchema': {'type': 'object', 'properties': {'where': {'type': 'string', 'x-mcp-header': 'Region'}}}}
UNFIT = {'name': 'unfit', 'inputSchema': {'type': 'object', 'properties': {'n': {'type': 'number', 'x-mcp-header': 'N'}}}}


def test_modern_client_on_legacy_upstream__mirrors_its_arguments(holdfast, tmp_path):
    server = Script(tmp_path, 'old', shape={'tools': [MIRRORED, UNFIT]})
    client = holdfast({'old': server.entry}).client('/mcp/old', modern=True)
    call = {'name': 'region', 'arguments': {'where': 'us west'}}
    for headers in ({}, {'Mcp-Param-Region': 'eu'}, {'Mcp-Param-Region': '=?base64?dXMgd2VzdA?='}):
        reply = client.rpc('tools/call', call, headers=headers)
        assert reply.status == 400 and reply.code == -32020, repr(reply)
    assert server.of('tools/call') == []
    for headers in ({'Mcp-Param-Region': 'us west'}, {'Mcp-Param-Region': '=?base64?dXMgd2VzdA==?='}):
        assert client.rpc('tools/call', call, headers=headers).status == 200
    assert client.rpc('tools/call', {'name': 'region', 'arguments': {}}).status == 200
    assert client.rpc('tools/call', {'name': 'unfit', 'arguments': {'n': 1.5}}).status == 200


# -- a server that speaks both, and one that speaks only one

def answered_question(client, tool):
    """Calls a tool that asks its client something, as `tools/call` of the recorder does, and gives what the server heard."""
    stream = client.open('tools/call', {'name': tool, 'arguments': {'method': 'elicitation/create', 'params': {
        'message': 'Which?', 'requestedSchema': {'type': 'object', 'properties': {}}}}}, 'q')
    asked = json.loads(stream.message())
    assert asked['method'] == 'elicitation/create', asked
    client.respond(asked['id'], {'action': 'accept', 'content': {'n': 1}})
    reply = json.loads(stream.message())
    stream.close()
    return json.loads(reply['result']['content'][0]['text'])


@pytest.mark.parametrize('path', ['/mcp/up', '/mcp'])
@pytest.mark.parametrize('where', ['stdio', 'http'])
def test_server_of_both_eras__is_spoken_to_in_the_clients(holdfast, stdio_server, http_server, where, path):
    if where == 'http':
        server = http_server('up', '--era', 'both')
        entry, record = server.entry(handles='never'), server.record
    else:
        entry, record = stdio_server('up', '--era', 'both', handles='never')
    hf = holdfast({'up': entry}).wait_asked('up')
    assert any(l.get('msg') == 'server probed' and l.get('era') == 'modern' for l in hf.log())
    name = '' if path == '/mcp/up' else 'up__'
    older = hf.client(path).connect(capabilities={'elicitation': {}})
    assert answered_question(older, name + 'ask') == {'result': {'action': 'accept', 'content': {'n': 1}}}
    assert [older.call(name + 'counter').text for _ in range(2)] == ['1', '2']
    assert len(record.of('initialize')) == 1
    newer = hf.client(path, modern=True)
    assert newer.call(name + 'echo', {'text': 'new'}).text == 'new'
    assert PREFIX + 'protocolVersion' in record.of('tools/call')[-1].decode()
    assert len(record.of('initialize')) == 1


@pytest.mark.parametrize('where', ['stdio', 'http'])
def test_server_of_2026_alone__is_tried_with_initialize_once(holdfast, stdio_server, http_server, where):
    if where == 'http':
        server = http_server('up', '--era', 'modern')
        entry, record = server.entry(handles='never'), server.record
    else:
        entry, record = stdio_server('up', '--era', 'modern', handles='never')
    hf = holdfast({'up': entry}).wait_asked('up')
    for _ in range(2):
        client = hf.client('/mcp/up').connect()
        assert client.call('echo', {'text': 'old'}).text == 'old'
    assert len(record.of('initialize')) == 1


def test_discover__is_declined_before_a_server_of_older_eras_alone(holdfast, stdio_server):
    """On its own path a client of both eras falls back to initialize, and has all that the server can do."""
    old, _ = stdio_server('old', handles='never')
    new, _ = stdio_server('new', '--era', 'both', handles='never')
    hf = holdfast({'old': old, 'new': new}).wait_asked('old', 'new')
    reply = hf.client('/mcp/old', modern=True).rpc('server/discover')
    assert reply.status == 404 and reply.code == -32601 and 'begin with initialize' in reply.error['message']
    assert hf.client('/mcp/old', modern=True).call('echo', {'text': 'as ever'}).text == 'as ever'
    for path in ('/mcp/new', '/mcp', '/mcp/session'):
        assert hf.client(path, modern=True).rpc('server/discover').result['supportedVersions'] == [MODERN], path
