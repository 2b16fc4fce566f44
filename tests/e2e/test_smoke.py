# SPDX-License-Identifier: Apache-2.0
"""The first minute: it starts with nothing configured, serves something, says how it is, and stops."""
import os
import signal

from harness import LEGACY_VERSIONS, Connection, wait_for


def test_start__without_a_configuration_serves_the_sample(holdfast):
    client = holdfast().client()
    names = [t['name'] for t in client.rpc('tools/list').result['tools']]
    assert 'echo' in names and 'counter' in names
    reply = client.call('echo', {'message': 'hello'})
    assert reply.status == 200 and 'hello' in reply.text


def test_health__is_open_and_says_ready(holdfast):
    hf = holdfast()
    assert hf.get('/healthz').status == 200
    assert hf.get('/readyz').status == 200
    assert hf.get('/nothing-here').status == 404


def test_stop__by_sigterm_and_sigint_is_clean(holdfast):
    for signum in (signal.SIGTERM, signal.SIGINT):
        hf = holdfast()
        hf.stop(signum)
        hf.check_sanitizers()


def test_start__refuses_a_second_owner_of_the_data_directory(holdfast):
    first = holdfast()
    second = holdfast(start=False)
    second.data = first.data
    second.start(wait=False)
    assert second.process.wait(20) != 0
    assert first.get('/healthz').status == 200


def test_initialize__answers_every_legacy_version(holdfast):
    hf = holdfast()
    for version in LEGACY_VERSIONS:
        with hf.client() as client:
            reply = client.initialize(version)
            assert reply.status == 200 and reply.result['protocolVersion'] == version
            assert client.session and all(0x21 <= ord(c) <= 0x7e for c in client.session)
            assert 'tools' in reply.result['capabilities'] and reply.result['serverInfo']['name']


def test_initialize__answers_an_unknown_version_with_the_latest(holdfast):
    reply = holdfast().client().initialize('1999-01-01')
    assert reply.status == 200 and reply.result['protocolVersion'] == LEGACY_VERSIONS[-1]


def test_second_request__works_with_only_the_session_id(holdfast, stdio_server):
    entry, _ = stdio_server()
    hf = holdfast({'rec': entry})
    client = hf.client('/mcp/rec')
    client.initialize()
    for ident in (0, 'x', 7):
        reply = client.rpc_bytes(
            b'{"jsonrpc":"2.0","id":%s,"method":"tools/list"}' % (b'"x"' if ident == 'x' else b'%d' % ident),
            {'Mcp-Session-Id': client.session, 'MCP-Protocol-Version': None, 'Accept': None}, 'tools/list')
        assert reply.status == 200 and reply.json['id'] == ident
        assert [t['name'] for t in reply.result['tools']][:2] == ['echo', 'counter']


def test_call__works_with_no_session_at_all(holdfast, stdio_server):
    entry, _ = stdio_server()
    hf = holdfast({'rec': entry})
    assert hf.client('/mcp/rec').call('echo', {'text': 'alone'}).text == 'alone'


def test_tool_error__stays_an_iserror_result(holdfast, stdio_server):
    entry, _ = stdio_server(handles='never')
    reply = holdfast({'rec': entry}).client('/mcp/rec').call('fail', {'text': 'no'})
    assert reply.status == 200 and reply.result['isError'] is True and reply.text == 'no'


def test_rpc_error__keeps_code_message_and_data(holdfast, stdio_server):
    entry, _ = stdio_server(handles='never')
    client = holdfast({'rec': entry}).client('/mcp/rec')
    reply = client.call('error', {'code': 1234, 'message': 'odd', 'data': {'a': [1]}}, ident='e')
    assert reply.status == 200 and reply.json['id'] == 'e'
    assert reply.error == {'code': 1234, 'message': 'odd', 'data': {'a': [1]}}


def test_big_result__arrives_whole(holdfast, stdio_server):
    entry, _ = stdio_server(handles='never')
    client = holdfast({'rec': entry}).client('/mcp/rec')
    for n in (0, 1, 65535, 65536, 1000000, 3000000):
        assert len(client.call('big', {'n': n}).text) == n


def test_ping__is_answered_with_and_without_a_session(holdfast):
    hf = holdfast()
    assert hf.client().rpc('ping', ident='p').json == {'jsonrpc': '2.0', 'id': 'p', 'result': {}}
    with hf.client().connect() as client:
        assert client.rpc('ping', ident=0).json == {'jsonrpc': '2.0', 'id': 0, 'result': {}}


def test_keep_alive__serves_many_requests_on_one_connection(holdfast):
    hf = holdfast()
    with Connection(hf.port) as connection:
        for n in range(50):
            body = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % n
            reply = connection.request('POST', '/mcp/sample', {}, body)
            assert reply.status == 200 and reply.json()['id'] == n


def test_children__end_with_the_program_even_after_kill_9(holdfast, stdio_server):
    entry, record = stdio_server()
    hf = holdfast({'rec': entry})
    hf.client('/mcp/rec').call('echo', {'text': 'up'})
    pids = record.starts()
    assert pids
    hf.kill()
    wait_for(lambda: not any(os.path.exists(f'/proc/{pid}') for pid in pids), 'the children to be gone')
