# SPDX-License-Identifier: Apache-2.0
"""Bytes that no good client sends: each gets its one refusal, and the program is unharmed afterwards."""
import json
import re
import time

import pytest

import harness
from harness import Connection

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
HOST = b'Host: 127.0.0.1\r\n'
JSON = b'Content-Type: application/json\r\n'
SMUGGLED = b'GET /healthz HTTP/1.1\r\n' + HOST + b'\r\n'


@pytest.fixture(scope='module')
def hf(tmp_path_factory):
    folder = tmp_path_factory.mktemp('malformed')
    entry, record = harness.stdio_server(folder, 'up', handles='never')
    one = harness.Holdfast(folder, {'mcpServers': {'up': entry}, 'holdfast': {}}).start()
    one.record = record
    yield one
    one.close()


@pytest.fixture(autouse=True)
def unharmed(hf):
    yield
    assert hf.get('/healthz').status == 200
    hf.check()


def post(headers, body, version=b'1.1'):
    return b'POST /mcp/up HTTP/' + version + b'\r\n' + HOST + JSON + headers + b'\r\n' + body


def get(headers, path=b'/healthz'):
    return b'GET ' + path + b' HTTP/1.1\r\n' + HOST + headers + b'\r\n'


def statuses(answer):
    """Status codes of all responses in the bytes."""
    return [int(code) for code in re.findall(rb'(?:\A|\r\n\r\n[^\r\n]*?)HTTP/1\.1 (\d{3}) ', answer)]


def chunked(*chunks):
    return b''.join(chunks) + b'0\r\n\r\n'


ONE_CHUNK = b'%x\r\n%s\r\n' % (len(PING), PING)
TE = b'Transfer-Encoding: chunked\r\n'
CL = b'Content-Length: %d\r\n' % len(PING)

REFUSED = {
    'H1 length and encoding': post(b'Content-Length: 5\r\n' + TE, b'0\r\n\r\n' + SMUGGLED),
    'H1 encoding and length': post(TE + b'Content-Length: 5\r\n', b'0\r\n\r\n' + SMUGGLED),
    'H2 encoding on 1.0': post(TE, chunked(ONE_CHUNK), b'1.0'),
    'H2 xchunked': post(b'Transfer-Encoding: xchunked\r\n', chunked(ONE_CHUNK)),
    'H2 chunked twice in a list': post(b'Transfer-Encoding: chunked, chunked\r\n', chunked(ONE_CHUNK)),
    'H2 chunked twice': post(TE + TE, chunked(ONE_CHUNK)),
    'H2 gzip, chunked': post(b'Transfer-Encoding: gzip, chunked\r\n', chunked(ONE_CHUNK)),
    'H2 identity': post(b'Transfer-Encoding: identity\r\n', chunked(ONE_CHUNK)),
    'H2 quoted': post(b'Transfer-Encoding: "chunked"\r\n', chunked(ONE_CHUNK)),
    'H2 vertical tab': post(b'Transfer-Encoding: \x0bchunked\r\n', chunked(ONE_CHUNK)),
    'H2 empty': post(b'Transfer-Encoding: \r\n', chunked(ONE_CHUNK)),
    'H3 bare LF after the request line': b'GET /healthz HTTP/1.1\n' + HOST + b'\r\n',
    'H3 bare LF after a header': b'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\n\r\n',
    'H3 bare CR in a header': get(b'X: a\rb\r\n'),
    'H3 bare LF at the end of the head': b'GET /healthz HTTP/1.1\r\n' + HOST + b'\n',
    'H3 bare LF after a chunk size': post(TE, b'%x\n%s\r\n0\r\n\r\n' % (len(PING), PING)),
    'H3 bare LF after a chunk': post(TE, b'%x\r\n%s\n0\r\n\r\n' % (len(PING), PING)),
    'H3 bare LF in a trailer': post(TE, ONE_CHUNK + b'0\r\nX: y\n\r\n'),
    'H4 extension with a newline': post(TE, b'%x;\nX\r\n%s\r\n0\r\n\r\n' % (len(PING), PING)),
    'H4 extension with CR': post(TE, b'%x;a\rb\r\n%s\r\n0\r\n\r\n' % (len(PING), PING)),
    'H4 extension of 300 bytes': post(TE, b'%x;%s\r\n%s\r\n0\r\n\r\n' % (len(PING), b'a' * 300, PING)),
    'H5 negative': post(b'Content-Length: -1\r\n', b''),
    'H5 plus': post(b'Content-Length: +5\r\n', b'12345'),
    'H5 hex': post(b'Content-Length: 0x10\r\n', b'1' * 16),
    'H5 blank inside': post(b'Content-Length: 5 5\r\n', b'12345'),
    'H5 list': post(b'Content-Length: 5,5\r\n', b'12345'),
    'H5 empty': post(b'Content-Length: \r\n', b''),
    'H5 overflow': post(b'Content-Length: 99999999999999999999\r\n', b''),
    'H5 chunk size overflow': post(TE, b'ffffffffffffffff1\r\nx\r\n0\r\n\r\n'),
    'H5 chunk size sign': post(TE, b'-1\r\nx\r\n0\r\n\r\n'),
    'H5 chunk size prefix': post(TE, b'0x5\r\n12345\r\n0\r\n\r\n'),
    'H5 chunk size empty': post(TE, b'\r\nx\r\n0\r\n\r\n'),
    'H6 two equal lengths': post(CL + CL, PING),
    'H6 two lengths': post(CL + b'Content-Length: 1\r\n', PING),
    'H8 space before the colon': get(b'Authorization : Bearer x\r\n'),
    'H8 folded': get(b'X: a\r\n b\r\n'),
    'H8 NUL in a value': get(b'X: a\x00b\r\n'),
    'H8 control in a value': get(b'X: a\x01b\r\n'),
    'H8 empty name': get(b': x\r\n'),
    'H8 no colon': get(b'nonsense\r\n'),
    'H8 space in a name': get(b'X Y: z\r\n'),
    'H9 no Host': b'GET /healthz HTTP/1.1\r\n\r\n',
    'H9 two Hosts': get(HOST),
    'garbage': b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
    'no version': b'GET /healthz\r\n\r\n',
    'two blanks in the request line': b'GET  /healthz HTTP/1.1\r\n' + HOST + b'\r\n',
}


@pytest.mark.parametrize('name', REFUSED)
def test_refused__with_one_400_and_a_close(hf, name):
    with Connection(hf.port) as connection:
        answer = connection.raw(REFUSED[name] + SMUGGLED)
    assert statuses(answer) == [400], answer[:400]


def test_old_or_odd_version__is_refused(hf):
    for version in (b'HTTP/0.9', b'HTTP/2.0', b'HTTP/1.2', b'http/1.1'):
        with Connection(hf.port) as connection:
            answer = connection.raw(b'GET /healthz ' + version + b'\r\n' + HOST + b'\r\n')
        assert statuses(answer) in ([400], [505]), (version, answer)


def test_chunk_extension__is_accepted_and_never_forwarded(hf):
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"ext"}}}'
    data = b'POST /mcp/up HTTP/1.1\r\n' + HOST + JSON + TE + b'\r\n' + chunked(b'%x;a=b\r\n%s\r\n' % (len(body), body))
    with Connection(hf.port) as connection:
        connection.send(data)
        reply = connection.read_response()
    assert reply.status == 200 and b'ext' in reply.body
    assert b'a=b' not in hf.record.wait('tools/call')[-1]


def test_chunks__of_one_byte_are_one_body(hf):
    with Connection(hf.port) as connection:
        connection.send(post(TE, chunked(*[b'1\r\n%c\r\n' % c for c in PING])))
        reply = connection.read_response()
    assert reply.status == 200 and reply.json()['result'] == {}


def test_body_on_get__never_becomes_the_next_request(hf):
    hidden = (b'DELETE /api/v1/sessions/x HTTP/1.1\r\n' + HOST + b'\r\n').ljust(1024, b'\n')
    with Connection(hf.port) as connection:
        answer = connection.raw(get(b'Connection: close\r\nContent-Length: %d\r\n' % len(hidden)) + hidden)
    assert len(statuses(answer)) == 1


def test_underscore_twin__of_a_header_is_never_honoured(hf):
    reply = hf.request('POST', '/mcp/up', {'Mcp_Session_Id': 'never-issued'}, PING)
    assert reply.status in (200, 400)


def test_header_count__100_is_served_101_is_431(hf):
    for n, status in ((100, 200), (101, 431)):
        with Connection(hf.port) as connection:
            extra = b''.join(b'X-%d: y\r\n' % i for i in range(n - 2))
            assert statuses(connection.raw(get(b'Connection: close\r\n' + extra))) == [status]


def test_header_bytes__above_32_kib_are_431(hf):
    for size, status in ((30 * 1024, 200), (33 * 1024, 431)):
        with Connection(hf.port) as connection:
            assert statuses(connection.raw(get(b'Connection: close\r\nX: ' + b'y' * size + b'\r\n'))) == [status]


def test_target__above_8_kib_is_414(hf):
    for size, expected in ((8000, 200), (8193, 414)):
        with Connection(hf.port) as connection:
            answer = connection.raw(get(b'Connection: close\r\n', b'/healthz?' + b'q' * (size - 9)))
        assert statuses(answer) == [expected]


def test_body__declared_above_the_limit_is_413_unread(hf):
    for length in (4 * 1024 * 1024 + 1, 5 * 1024 ** 3):
        with Connection(hf.port) as connection:
            assert statuses(connection.raw(post(b'Content-Length: %d\r\n' % length, b''))) == [413]


def test_body__chunked_above_the_limit_is_413(hf):
    block = b'10000\r\n' + b' ' * 65536 + b'\r\n'
    with Connection(hf.port) as connection:
        assert statuses(connection.raw(post(TE, block * 65)))[:1] == [413]


def test_body__of_exactly_the_limit_is_read(hf):
    with Connection(hf.port) as connection:
        reply = connection.request('POST', '/mcp/up', {}, PING.rjust(4 * 1024 * 1024))
    assert reply.status == 200


def test_pipelined__requests_are_answered_in_order(hf):
    with Connection(hf.port) as connection:
        for n in range(64):
            body = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % n
            connection.send(post(b'Content-Length: %d\r\n' % len(body), body))
        assert [connection.read_response().json()['id'] for _ in range(64)] == list(range(64))


def test_pipelined__answers_stop_at_the_first_bad_request(hf):
    good = post(CL, PING)
    with Connection(hf.port) as connection:
        assert statuses(connection.raw(good + good + get(b'bad\r\n') + good)) == [200, 200, 400]


def test_expect_continue__is_answered_or_refused(hf):
    with Connection(hf.port) as connection:
        connection.send(post(CL + b'Expect: 100-continue\r\n', b''))
        status, _ = connection.read_head()
        if status == 100:
            connection.send(PING)
            assert connection.read_response().status == 200
        else:
            assert status == 417


def test_content_encoding__is_415(hf):
    assert hf.request('POST', '/mcp/up', {'Content-Encoding': 'gzip'}, PING).status == 415


@pytest.mark.parametrize('kind', ['text/plain', 'application/x-www-form-urlencoded', None, 'application/jsonx', 'text/json'])
def test_content_type__other_than_json_is_415(hf, kind):
    assert hf.request('POST', '/mcp/up', {'Content-Type': kind}, PING).status == 415


def test_content_type__with_charset_is_json(hf):
    assert hf.request('POST', '/mcp/up', {'Content-Type': 'Application/JSON; charset=UTF-8'}, PING).status == 200


@pytest.mark.parametrize('headers', [{'Origin': 'https://evil.example.com'}, {'Host': 'evil.example.com'},
                                     {'Host': 'localhost.evil.com'}, {'Origin': 'null'}], ids=str)
def test_foreign_origin_or_host__is_refused_on_every_path(hf, headers):
    for method, path, body in (('GET', '/healthz', b''), ('POST', '/mcp/up', PING), ('GET', '/mcp/up', b'')):
        status = hf.request(method, path, headers, body).status
        assert status in (400, 403, 421), (method, path)


@pytest.mark.parametrize('verb', ['TRACE', 'CONNECT', 'OPTIONS', 'BREW', 'PUT'])
def test_odd_verbs__are_never_served(hf, verb):
    assert hf.request(verb, '/mcp/up').status in (204, 400, 404, 405, 501)


def test_upgrade__is_never_a_tunnel(hf):
    reply = hf.request('GET', '/healthz', {'Connection': 'Upgrade', 'Upgrade': 'websocket', 'Sec-WebSocket-Version': '13',
                                           'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ=='})
    assert reply.status != 101


# (name, body, status, codes)
BAD_JSON = [
    ('not JSON', b'hello', 400, {-32700}),
    ('empty', b'', 400, {-32700, -32600}),
    ('cut', PING[:-1], 400, {-32700}),
    ('two values', PING + PING, 400, {-32700}),
    ('trailing comma', b'{"jsonrpc":"2.0","id":1,"method":"ping",}', 400, {-32700}),
    ('comment', b'{"jsonrpc":"2.0","id":1,/**/"method":"ping"}', 400, {-32700}),
    ('NaN', b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', 400, {-32700}),
    ('leading zero', b'{"jsonrpc":"2.0","id":01,"method":"ping"}', 400, {-32700}),
    ('BOM', b'\xef\xbb\xbf' + PING, 400, {-32700}),
    ('a number', b'7', 400, {-32600}),
    ('no jsonrpc', b'{"id":1,"method":"ping"}', 400, {-32600}),
    ('jsonrpc 1.0', b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, {-32600}),
    ('id null', b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, {-32600}),
    ('id object', b'{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, {-32600}),
    ('method number', b'{"jsonrpc":"2.0","id":1,"method":7}', 400, {-32600}),
    ('params array', b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}', None, {-32600, -32602}),
    ('M3 duplicate method', b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}', 400, {-32600}),
    ('M3 duplicate deep', b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":{"k":1,"k":2}}}}', 400, {-32600}),
    ('M3 duplicate after unescaping', b'{"jsonrpc":"2.0","id":1,"method":"ping","meth\\u006fd":"x"}', 400, {-32600}),
    ('M3 case twin', b'{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}', 400, {-32600}),
    ('M4 invalid UTF-8', b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}', 400, {-32700}),
    ('M4 overlong', b'{"jsonrpc":"2.0","id":"\xc0\xaf","method":"ping"}', 400, {-32700}),
    ('M4 encoded surrogate', b'{"jsonrpc":"2.0","id":"\xed\xa0\x80","method":"ping"}', 400, {-32700}),
    ('M4 raw control byte', b'{"jsonrpc":"2.0","id":"\x01","method":"ping"}', 400, {-32700}),
    ('M5 a million brackets', b'[' * 1000000, 400, {-32700, -32600}),
    ('M5 depth 65', b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b'[' * 80 + b']' * 80 + b'}}', 400, {-32700, -32600}),
    ('M5 a hundred thousand keys', b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{'
     + b','.join(b'"%d":0' % i for i in range(100000)) + b'}}', 400, {-32700, -32600}),
]


@pytest.mark.parametrize('name,body,status,codes', BAD_JSON, ids=[b[0] for b in BAD_JSON])
def test_bad_json__is_refused(hf, name, body, status, codes):
    began = time.monotonic()
    reply = hf.request('POST', '/mcp/up', {}, body)
    assert time.monotonic() - began < 5
    assert status is None or reply.status == status, reply
    assert reply.json()['error']['code'] in codes, reply
    assert 'id' in reply.json(), 'null where it could not be read'
    assert reply.json()['error']['code'] != -32700 or reply.json()['id'] is None


def test_nul_in_a_name__never_matches_the_shorter_name(hf):
    before = len(hf.record.of('tools/call'))
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo\\u0000x","arguments":{}}}'
    reply = hf.request('POST', '/mcp/up', {}, body)
    assert reply.json().get('error', {}).get('code') == -32602, reply
    assert len(hf.record.of('tools/call')) == before


def test_huge_number__is_carried_not_understood(hf):
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"n","n":1e400}}}'
    reply = hf.request('POST', '/mcp/up', {}, body)
    assert reply.status == 200 and b'"n":1e400' in hf.record.wait('tools/call')[-1]


def test_abort__at_every_tenth_byte_harms_nobody(hf):
    body = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call',
                       'params': {'name': 'echo', 'arguments': {'text': 'z' * 300}}}).encode()
    data = b'POST /mcp/up HTTP/1.1\r\n' + HOST + JSON + b'Content-Length: %d\r\n\r\n' % len(body) + body
    for cut in range(1, len(data), 10):
        with Connection(hf.port) as connection:
            connection.send(data[:cut])
    reply = hf.request('POST', '/mcp/up', {}, body)
    assert reply.status == 200


def test_line_ends_in_a_body__never_become_messages_of_their_own(hf):
    """JSON may have line ends between its tokens; a server on a pipe would read each line as a message."""
    hidden = b'{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"counter","arguments":{}}}'
    body = (b'{"jsonrpc":"2.0","id":1,\n"method":"tools/call","params":{"name":"echo","arguments":{"text":"whole","x":[\r\n'
            + hidden + b'\r\n]}}}')
    before = len(hf.record.of('tools/call'))
    reply = hf.request('POST', '/mcp/up', {}, body)
    assert reply.json()['result']['content'][0]['text'] == 'whole'
    sent = hf.record.of('tools/call')[before:]
    assert len(sent) == 1 and json.loads(sent[0])['params']['arguments']['x'][0]['id'] == 77
