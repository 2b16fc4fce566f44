# SPDX-License-Identifier: Apache-2.0
"""Pages of other sites, and names that are not ours: refused on every path before anything else runs,
and no answer tells a browser that it may be read, but to origins that the operator listed."""
import base64
import json

import pytest

import harness
from harness import MODERN, Connection, wait_for

CALL = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call',
                   'params': {'name': 'echo', 'arguments': {'text': 'ran'}}}).encode()
PATHS = [('POST', '/mcp/up'), ('GET', '/mcp/up'), ('DELETE', '/mcp/up'), ('POST', '/mcp'), ('GET', '/mcp'), ('GET', '/sse'),
         ('POST', '/mcp/messages?session_id=x'), ('GET', '/healthz'), ('GET', '/readyz'), ('GET', '/metrics'), ('GET', '/'),
         ('GET', '/ui/'), ('GET', '/api/v1/sessions'), ('POST', '/api/v1/sessions'), ('GET', '/.well-known/oauth-protected-resource'),
         ('POST', '/control/pipe'), ('OPTIONS', '/mcp/up'), ('GET', '/no/such/path')]
LISTED = 'https://app.example:8443'
LOOPBACK = 'http://localhost:3000'


@pytest.fixture(scope='module')
def hf(tmp_path_factory):
    folder = tmp_path_factory.mktemp('hosts')
    entry, record = harness.stdio_server(folder, 'up', handles='never')
    one = harness.Holdfast(folder, {'mcpServers': {'up': entry}, 'holdfast': {'origins': [LISTED]}}).start()
    one.record = record
    yield one
    one.close()


@pytest.fixture(autouse=True)
def unharmed(hf):
    yield
    hf.check()
    assert hf.get('/healthz').status == 200


def body_of(method):
    return CALL if method == 'POST' else b''


def head_of(hf, method, path, headers, body=b''):
    """The answer's head; its body may be a stream without an end."""
    with Connection(hf.port) as connection:
        connection.send(connection.head_bytes(method, path, headers, body) + body)
        status, fields = connection.read_head()
        return harness.Response(status, fields, b'')


def cors_of(reply):
    return {n.lower(): v for n, v in reply.headers if n.lower().startswith('access-control')}


def ran(hf, before):
    return len(hf.record.of('tools/call')) - before


# H9: Host.

BAD_HOSTS = ['', 'evil.example', 'a/?x=', '127.0.0.1/', '127.0.0.1?x', '127.0.0.1#x', 'user@127.0.0.1', '127.0.0.1@evil.example',
             '127.0.0.1, evil.example', '127.0.0.1 evil.example', 'localhost.evil.example', '127.0.0.1.nip.io', 'localhost.',
             '127.0.0.1.', '127.1', '2130706433', '0x7f000001', '017700000001', '127.0.0.1:0', '127.0.0.1:99999', '127.0.0.1:x',
             '127.0.0.1:', '[::1]:0', '[::1', '::1', '[::ffff:127.0.0.1]', '0.0.0.0', '[::]', '169.254.169.254', '*',
             'localhost%00.evil.example', 'xn--localhost-', '\u0131ocalhost', 'evil.example:80\t']


@pytest.mark.parametrize('host', BAD_HOSTS)
def test_host__that_is_not_ours_is_refused_on_every_path(hf, host):
    before = len(hf.record.of('tools/call'))
    for method, path in PATHS:
        reply = hf.request(method, path, {'Host': host}, body_of(method))
        assert reply.status in (400, 403), (method, path, reply)
        assert not cors_of(reply)
    assert ran(hf, before) == 0


@pytest.mark.parametrize('host', ['LOCALHOST', 'localhost:1', '127.8.9.10:65535', '[::1]', '[::1]:4653'])
def test_host__of_this_machine_is_served(hf, host):
    assert hf.request('GET', '/healthz', {'Host': host}).status == 200


def test_absolute_target__must_agree_with_host_and_be_ours(hf):
    def get(target, host):
        with Connection(hf.port) as connection:
            return connection.raw(f'GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n'.encode())
    assert get('http://127.0.0.1/healthz', '127.0.0.1').startswith(b'HTTP/1.1 200 ')
    for target, host in (('http://evil.example/healthz', '127.0.0.1'), ('http://127.0.0.1/healthz', 'evil.example'),
                         ('http://evil.example/healthz', 'evil.example'), ('http://127.0.0.1@evil.example/healthz', '127.0.0.1'),
                         ('//evil.example/healthz', '127.0.0.1'), ('evil.example:80', '127.0.0.1')):
        assert get(target, host)[9:12] in (b'400', b'403', b'404', b'405'), (target, host)


def test_old_http__without_host_is_refused(hf):
    with Connection(hf.port) as connection:
        assert connection.raw(b'GET /healthz HTTP/1.0\r\n\r\n').startswith((b'HTTP/1.1 403 ', b'HTTP/1.1 400 '))


@pytest.mark.parametrize('name', ['X-Forwarded-Host', 'Forwarded', 'X-Host', 'X-Original-URL', 'X-Rewrite-URL', 'X-HTTP-Method-Override'])
def test_forwarding_headers__change_nothing(hf, name):
    value = {'Forwarded': 'host=127.0.0.1', 'X-HTTP-Method-Override': 'POST'}.get(name, '127.0.0.1')
    assert hf.request('GET', '/healthz', {'Host': 'evil.example', name: value}).status == 403
    assert hf.request('GET', '/healthz', {name: value}).status == 200


# H10: Origin.

BAD_ORIGINS = ['null', 'https://evil.example', 'http://localhost.evil.example', 'http://127.0.0.1.nip.io', 'http://127.0.0.1@evil.example',
               'http://localhost:3000/', 'http://localhost:3000, https://evil.example', 'http://localhost:0', 'http://localhost:',
               'http://', '//localhost', 'localhost', 'file://', 'chrome-extension://abc', 'data:text/html,x', '*', 'http://localhost.',
               'HTTP://evil.example', 'http://127.1', 'http://0.0.0.0:4653', 'http://[::ffff:7f00:1]', 'https://app.example',
               'http://app.example:8443', 'https://app.example:8444', 'https://app.example:8443.evil.example', 'https://app.example:8443/',
               'https://evil.app.example:8443', 'https://app.example:8443:8443', '']


@pytest.mark.parametrize('origin', BAD_ORIGINS)
def test_origin__that_is_not_allowed_is_refused_on_every_path_and_never_reflected(hf, origin):
    before = len(hf.record.of('tools/call'))
    for method, path in PATHS:
        reply = hf.request(method, path, {'Origin': origin, 'Access-Control-Request-Method': 'POST'}, body_of(method))
        assert reply.status == 403, (method, path, reply)
        assert not cors_of(reply)
    assert ran(hf, before) == 0


def test_two_origins__are_refused_even_when_both_are_fine(hf):
    for first, second in ((LISTED, 'https://evil.example'), ('https://evil.example', LISTED), (LISTED, LISTED)):
        with Connection(hf.port) as connection:
            answer = connection.raw(f'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: {first}\r\nOrigin: {second}\r\n'
                                    'Connection: close\r\n\r\n'.encode())
        assert answer.startswith(b'HTTP/1.1 403 ') and b'Access-Control' not in answer


def test_refusal__says_what_to_do(hf):
    assert 'origins' in hf.request('GET', '/healthz', {'Origin': 'https://evil.example'}).json()['error']
    said = hf.request('GET', '/healthz', {'Host': 'evil.example'}).json()['error']
    assert 'public_url' in said and '"evil.example"' in said


# H11: CORS.

def test_loopback_origin__is_served_but_no_browser_may_read_it(hf):
    for method, path in PATHS:
        reply = head_of(hf, method, path, {'Origin': LOOPBACK, 'Access-Control-Request-Method': 'POST',
                                          'Access-Control-Request-Headers': 'content-type'}, body_of(method))
        assert reply.status not in (204, 403) and not cors_of(reply), (method, path, reply)


def test_listed_origin__may_read_every_answer(hf):
    for method, path in PATHS:
        if method == 'OPTIONS':
            continue
        reply = head_of(hf, method, path, {'Origin': LISTED}, body_of(method))
        assert cors_of(reply).get('access-control-allow-origin') == LISTED, (method, path, reply)
        assert 'access-control-allow-credentials' not in cors_of(reply)
        assert 'origin' in reply.header('Vary').lower()
        exposed = cors_of(reply)['access-control-expose-headers'].lower()
        assert 'mcp-session-id' in exposed and 'www-authenticate' in exposed
    assert 'access-control-allow-origin' not in cors_of(hf.get('/healthz'))


def test_listed_origin__may_read_refusals(hf):
    for headers, status in (({'Content-Type': 'text/plain'}, 415), ({'Authorization': 'Bearer wrong'}, 401)):
        reply = hf.request('POST', '/mcp/up', {'Origin': LISTED, **headers}, CALL)
        assert reply.status == status and cors_of(reply)['access-control-allow-origin'] == LISTED


def test_listed_origin__may_read_a_stream(hf):
    client = hf.client('/mcp/up', headers={'Origin': LISTED}).connect()
    stream = client.open('tools/call', {'name': 'slow', 'arguments': {'steps': 2}, '_meta': {'progressToken': 1}})
    assert stream.is_sse and stream.header('Access-Control-Allow-Origin') == LISTED
    while stream.message():
        pass
    stream.close()
    other = hf.client('/mcp/up', headers={'Origin': LOOPBACK}).connect()
    stream = other.open('tools/call', {'name': 'slow', 'arguments': {'steps': 2}, '_meta': {'progressToken': 1}})
    assert stream.is_sse and stream.header('Access-Control-Allow-Origin') is None
    while stream.message():
        pass
    stream.close()


def preflight(hf, path='/mcp/up', **more):
    return hf.request('OPTIONS', path, {'Origin': LISTED, 'Access-Control-Request-Method': 'POST', **more})


def test_preflight__of_a_listed_origin_names_methods_and_headers(hf):
    reply = preflight(hf, **{'Access-Control-Request-Headers': 'content-type,mcp-protocol-version,mcp-session-id'})
    cors = cors_of(reply)
    assert reply.status == 204 and reply.body == b'' and cors['access-control-allow-origin'] == LISTED
    assert {'POST', 'DELETE'} <= {m.strip() for m in cors['access-control-allow-methods'].split(',')}
    allowed = {h.strip().lower() for h in cors['access-control-allow-headers'].split(',')}
    assert {'content-type', 'authorization', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'mcp-session-id',
            'last-event-id'} <= allowed and '*' not in allowed
    assert int(cors['access-control-max-age']) <= 7200
    assert 'access-control-allow-credentials' not in cors and 'access-control-allow-private-network' not in cors


def test_preflight__needs_no_credential_and_runs_nothing(hf):
    before = len(hf.record.messages())
    assert preflight(hf, Authorization='Bearer wrong').status == 204
    assert len(hf.record.messages()) == before


def test_preflight__takes_mirrored_parameters_and_no_other_header(hf):
    asked = 'Mcp-Param-City, mcp-param-x, X-Evil, mcp-param-, mcp-param-a b, mcp-param-\u00e9, cookie'
    cors = cors_of(preflight(hf, **{'Access-Control-Request-Headers': asked}))
    allowed = {h.strip().lower() for h in cors['access-control-allow-headers'].split(',')}
    assert {'mcp-param-city', 'mcp-param-x'} <= allowed
    assert not allowed & {'x-evil', 'cookie', 'mcp-param-', 'mcp-param-a b'} and not any('\u00e9' in h for h in allowed)


@pytest.mark.parametrize('size,taken', [(2048, True), (2049, False)])
def test_preflight__looks_at_a_bounded_list(hf, size, taken):
    asked = 'mcp-param-x'.ljust(size - 1, ' ') + ','
    reply = preflight(hf, **{'Access-Control-Request-Headers': asked})
    assert reply.status == 204
    assert ('mcp-param-x' in cors_of(reply)['access-control-allow-headers'].lower()) == taken


def test_preflight__from_the_public_network_is_let_in_for_listed_origins_only(hf):
    asks = {'Access-Control-Request-Private-Network': 'true'}
    assert cors_of(preflight(hf, **asks))['access-control-allow-private-network'] == 'true'
    reply = hf.request('OPTIONS', '/mcp/up', {'Origin': LOOPBACK, 'Access-Control-Request-Method': 'POST', **asks})
    assert not cors_of(reply) and reply.status == 405


def test_preflight__is_not_for_paths_that_do_not_exist_nor_for_plain_options(hf):
    assert preflight(hf, '/no/such/path').status == 404
    assert preflight(hf, '/control/pipe').status == preflight(hf, '/%63ontrol/pipe').status == 404
    assert hf.request('PUT', '/control/pipe').status == 404
    assert hf.request('OPTIONS', '/mcp/up', {'Origin': LISTED}).status == 405


def test_no_origins__means_no_cors_at_all(holdfast):
    bare = holdfast()
    for origin in (LISTED, LOOPBACK):
        for method, path in (('GET', '/healthz'), ('OPTIONS', '/mcp/sample'), ('POST', '/mcp/sample')):
            reply = bare.request(method, path, {'Origin': origin, 'Access-Control-Request-Method': 'POST'}, body_of(method))
            assert not cors_of(reply) and reply.status == (403 if origin == LISTED else {'GET': 200, 'POST': 200}.get(method, 405))


# H12: what a page can send without being asked.

@pytest.mark.parametrize('kind', ['text/plain', 'text/plain; charset=utf-8', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x',
                                  None, '', 'application/json, text/plain', 'application/json; charset=utf-7', 'text/plain; application/json',
                                  'application/json\u00e9', 'application/*', 'application/json-seq', 'application/json;x'])
def test_simple_post__is_415_and_runs_nothing(hf, kind):
    before = len(hf.record.of('tools/call'))
    for path in ('/mcp/up', '/mcp', '/mcp/messages?session_id=x'):
        for body in (CALL, CALL + b'=', b'x=' + CALL):
            status = hf.request('POST', path, {'Content-Type': kind}, body).status
            assert status == 415 or (path != '/mcp/up' and status in (404, 405)), (path, status)
    assert ran(hf, before) == 0


def test_two_content_types__run_nothing(hf):
    before = len(hf.record.of('tools/call'))
    for first, second in (('application/json', 'text/plain'), ('text/plain', 'application/json')):
        with Connection(hf.port) as connection:
            answer = connection.raw(f'POST /mcp/up HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {first}\r\nContent-Type: {second}\r\n'
                                    f'Content-Length: {len(CALL)}\r\nConnection: close\r\n\r\n'.encode() + CALL)
        assert answer[9:12] in (b'400', b'415'), answer[:200]
    assert ran(hf, before) == 0


def test_cross_site_fetch__without_origin_is_403_on_every_path(hf):
    before = len(hf.record.of('tools/call'))
    for method, path in PATHS:
        for mode in ('no-cors', 'navigate', 'cors', 'websocket'):
            reply = hf.request(method, path, {'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': mode}, body_of(method))
            assert reply.status == 403 and not cors_of(reply), (method, path, mode)
    assert ran(hf, before) == 0


def test_fetch__from_here_or_from_a_listed_origin_is_served(hf):
    for site in ('same-origin', 'same-site', 'none'):
        assert hf.request('GET', '/healthz', {'Sec-Fetch-Site': site}).status == 200
    reply = hf.request('POST', '/mcp/up', {'Sec-Fetch-Site': 'cross-site', 'Origin': LISTED}, CALL)
    assert reply.status == 200 and reply.json()['result']['content'][0]['text'] == 'ran'


@pytest.mark.parametrize('verb', ['GET', 'HEAD', 'PUT', 'PATCH', 'OPTIONS', 'TRACE', 'CONNECT'])
def test_other_verbs__never_run_a_call(hf, verb):
    before = len(hf.record.of('tools/call'))
    with Connection(hf.port) as connection:
        connection.send(connection.head_bytes(verb, '/mcp/up', {'Content-Type': 'application/json', 'Content-Length': str(len(CALL)),
                                                                'Connection': 'close'}, b'') + CALL)
        answer = connection.drain()
    assert not answer.startswith(b'HTTP/1.1 2'), answer[:100]
    assert ran(hf, before) == 0


# H19: what a client writes never becomes a line, a path or a query towards a server.

NASTY = ['a\r\nX-Admin: 1', 'a\nX-Admin: 1', 'a\rX-Admin: 1', '../../x', 'a?b=c', 'a#b', 'a b', '\u00e9', '=?base64?eA==?=', 'a\u0000b',
         ' echo', 'echo\t', 'HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n', '']


@pytest.mark.parametrize('era', ['modern', 'legacy'])
def test_names_and_arguments__reach_an_http_server_as_one_intact_request(holdfast, http_server, era):
    web = http_server('web', '--era', era)
    hf = holdfast({'web': web.entry(handles='never')})
    client = hf.client('/mcp/web', modern=True)
    assert client.call('echo', {'text': 'x'}).text == 'x'
    for text in NASTY:
        params = {'name': text, 'arguments': {'text': text}, '_meta': {**harness.ENVELOPE, 'note': text}}
        hf.request('POST', '/mcp/web', {'MCP-Protocol-Version': MODERN, 'Mcp-Method': 'tools/call', 'Mcp-Name': sentinel(text)},
                   json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': params}).encode())
        assert client.call('echo', {'text': text}).text == text
    wait_for(lambda: len(web.record.of('tools/call')) > len(NASTY), 'the calls at the server')
    for head in web.record.heads():
        assert head['line'] in ('POST /mcp HTTP/1.1', 'DELETE /mcp HTTP/1.1', 'GET /mcp HTTP/1.1'), head
        assert 'x-admin' not in json.dumps(head).lower(), head


def sentinel(text):
    return '=?base64?' + base64.b64encode(text.encode()).decode() + '?='
