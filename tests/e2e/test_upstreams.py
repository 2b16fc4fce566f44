# SPDX-License-Identifier: Apache-2.0
"""HTTP upstreams of every kind, seen through a client: their lists, streams that break, what they say
outside of any request, and the transport of 2024."""
import http.server
import json
import threading
import time

import pytest

from harness import Stream, wait_for

LISTS = {
    'prompts/list': {'prompts': [{'name': 'greet', 'description': 'Greets.'}]},
    'resources/list': {'resources': [{'uri': 'test://one', 'name': 'one', 'mimeType': 'text/plain'}]},
    'resources/templates/list': {'resourceTemplates': [{'uriTemplate': 'test://{id}', 'name': 'any'}]},
}


def gets(server):
    return [dict(h['headers']) for h in server.record.heads() if h['line'].startswith('GET ')]


def listen(client):
    """The standalone stream of a client."""
    connection = client.holdfast.connection()
    headers = {**client.headers_for('', {}), 'Accept': 'text/event-stream'}
    connection.send(connection.head_bytes('GET', client.path, headers, b''))
    stream = Stream(connection)
    assert stream.status == 200
    return stream


def until(stream, method):
    """The next message of this method on a stream."""
    while True:
        message = stream.message()
        assert message is not None, f'the stream ended before {method}'
        message = message if isinstance(message, dict) else json.loads(message)
        if message.get('method') == method:
            return message


@pytest.mark.parametrize('era', ['legacy', 'modern'])
@pytest.mark.parametrize('method', LISTS)
def test_lists__of_every_kind_come_through(holdfast, http_server, era, method):
    hf = holdfast({'web': http_server('web', '--era', era).entry()})
    with hf.client('/mcp/web') as client:
        client.connect()
        result = client.rpc(method).result
        assert {key: result[key] for key in LISTS[method]} == LISTS[method]


def test_broken_answer__is_gone_on_with(holdfast, http_server):
    server = http_server('web', '--resume', '300')
    hf = holdfast({'web': server.entry(handles='never')})
    with hf.client('/mcp/web') as client:
        client.connect()
        began = time.monotonic()
        assert client.call('counter').text == '1'
        assert time.monotonic() - began >= 0.3  # as long as the server asked for
        assert client.call('counter').text == '2'
    resumed = [h for h in gets(server) if 'Last-Event-ID' in h]
    assert len(resumed) == 2 and len({h['Last-Event-ID'] for h in resumed}) == 2
    assert all('Mcp-Session-Id' in h for h in resumed)
    assert len(server.record.of('tools/call')) == 2  # each sent once


def test_broken_answer__keeps_what_came_before_the_result(holdfast, http_server):
    server = http_server('web', '--resume', '20')
    hf = holdfast({'web': server.entry(handles='never')})
    with hf.client('/mcp/web') as client:
        client.connect()
        reply = client.call('slow', {'steps': 3}, meta={'progressToken': 'p'})
        assert reply.text == '3 steps'
        assert [m['params']['progress'] for m in reply.before] == [1, 2, 3]


def test_standalone_stream__of_a_server_is_opened_for_a_client_of_its_own(holdfast, http_server):
    server = http_server('web')
    hf = holdfast({'web': server.entry(handles='never')})
    with hf.client('/mcp/web') as client:
        client.connect()
        client.call('counter')
        wait_for(lambda: gets(server), 'the standalone stream')
        assert 'Mcp-Session-Id' in gets(server)[0]
        assert 'Last-Event-ID' not in gets(server)[0]


def test_list_changed__of_a_server_reaches_clients_that_only_listen(holdfast, http_server):
    server = http_server('web')
    hf = holdfast({'web': server.entry(handles='never')})
    with hf.client('/mcp/web') as listener, hf.client('/mcp/web') as caller:
        listener.connect()
        listener.rpc('tools/list')
        stream = listen(listener)
        wait_for(lambda: gets(server), 'the watch on the server')
        before = len(server.record.of('tools/list'))
        caller.connect()
        assert caller.call('say', {'method': 'notifications/tools/list_changed'}).text == 'said'
        until(stream, 'notifications/tools/list_changed')
        listener.rpc('tools/list')
        assert len(server.record.of('tools/list')) > before
        stream.close()


@pytest.mark.parametrize('entry', [{'type': 'sse'}, {'transport': 'sse'}, {}], ids=['type', 'transport', 'found'])
def test_server_of_2024__serves(holdfast, http_server, entry):
    server = http_server('old', '--2024')
    hf = holdfast({'old': server.entry(handles='never', **entry)})
    with hf.client('/mcp/old') as client:
        client.connect()
        assert 'counter' in [t['name'] for t in client.rpc('tools/list').result['tools']]
        assert client.call('counter').text == '1'
        assert client.call('counter').text == '2'
    with hf.client('/mcp/old', modern=True) as modern:
        assert modern.rpc('prompts/list').result['prompts'] == LISTS['prompts/list']['prompts']
        assert modern.call('echo', {'text': 'hi'}).text == 'hi'


def test_server_of_2024__that_is_lost_says_so_and_starts_afresh(holdfast, http_server):
    server = http_server('old', '--2024')
    hf = holdfast({'old': server.entry(handles='never', type='sse')})
    with hf.client('/mcp/old') as client:
        client.connect()
        assert client.call('counter').text == '1'
        server.stop()
        server.start()
        reply = wait_for(lambda: (r := client.call('counter')).json.get('result') and r, 'an answer of the new process')
        assert reply.text.startswith('1')
        assert 'remote_session_lost' in json.dumps(reply.json)


# -- a list that fails

@pytest.mark.parametrize('http', [False, True], ids=['stdio', 'http'])
def test_tools_that_cannot_be_listed__can_be_called_and_the_servers_words_are_shown(holdfast, scripted, tmp_path, http):
    mended = tmp_path / 'mended'
    server = scripted('bad', http=http, shape={'fails': {'tools/list': 'fetch failed'}, 'mended': str(mended)})
    hf = holdfast({'bad': server.entry, 'good': scripted('good').entry}, {'profiles': {'search': {'mode': 'search'}}})
    alone, all_of_them, by_run = (hf.client(path).connect() for path in ('/mcp/bad', '/mcp', '/mcp/p/search'))
    assert alone.rpc('tools/list').error['message'] == 'bad refused tools/list: fetch failed'
    assert alone.call('echo', {'text': 'hi'}).text == 'hi'
    assert all_of_them.call('bad__echo', {'text': 'hi'}).text == 'hi'
    assert [t['name'] for t in all_of_them.rpc('tools/list').result['tools']][:1] == ['good__script']
    assert by_run.call('run', {'tool': 'bad:echo', 'parameters': {'text': 'hi'}}).text == 'hi'
    tried = by_run.call('run', {'tool': 'bad:echo', 'parameters': {}, 'dry_run': True})
    assert 'its tools could not be listed: bad refused tools/list: fetch failed' in tried.text
    text = hf.client('/mcp').initialize().result['instructions']
    assert '- bad: its tools could not be listed, but can be called: bad refused tools/list: fetch failed' in text
    stream = listen(all_of_them)
    mended.write_text('')

    def is_back():
        return 'bad__echo' in [t['name'] for t in all_of_them.rpc('tools/list').result['tools']]
    wait_for(is_back, 'its tools')
    until(stream, 'notifications/tools/list_changed')
    assert 'bad' not in hf.client('/mcp').initialize().result['instructions']
    assert 'echo' in [t['name'] for t in alone.rpc('tools/list').result['tools']]
    stream.close()


def test_tools_that_cannot_be_listed_any_more__keep_their_last_list(holdfast, scripted, tmp_path):
    """The file is the other way round here: it is there at first."""
    mended = tmp_path / 'mended'
    mended.write_text('')
    server = scripted('bad', http=True, shape={'fails': {'tools/list': 'fetch failed'}, 'mended': str(mended)})
    hf = holdfast({'bad': server.entry})
    client = hf.client('/mcp/bad').connect()
    before = client.rpc('tools/list').result['tools']
    mended.unlink()
    stream = listen(client)
    wait_for(lambda: any(h['line'].startswith('GET ') for h in server.heads()), 'the watch on the server')
    client.call('script', {'steps': [{'to_all': {'jsonrpc': '2.0', 'method': 'notifications/tools/list_changed'}}]})
    until(stream, 'notifications/tools/list_changed')
    assert client.rpc('tools/list').result['tools'] == before
    hf.wait_log(lambda l: 'fetch failed' in str(l.get('why')), 'the refusal')
    stream.close()


class HalfDeaf(http.server.BaseHTTPRequestHandler):
    """An MCP server that hangs up on the first notifications/initialized."""
    protocol_version = 'HTTP/1.1'
    hangs_up = 1
    initialized = 0

    def do_GET(self):  # pylint: disable=invalid-name
        self.answer(405, b'')

    do_DELETE = do_GET

    def do_POST(self):  # pylint: disable=invalid-name
        message = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        kind = type(self)
        if message['method'] == 'notifications/initialized' and kind.hangs_up:
            kind.hangs_up -= 1
            self.close_connection = True
            return
        results = {'initialize': {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'x', 'version': '1'}},
                   'tools/list': {'tools': [{'name': 'ready', 'inputSchema': {'type': 'object'}}]},
                   'tools/call': {'content': [{'type': 'text', 'text': str(kind.initialized)}]}}
        if message['method'] in results:
            self.answer(200, json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': results[message['method']]}).encode())
        elif 'id' in message:
            self.answer(200, json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'error': {'code': -32601, 'message': 'Method not found'}}).encode())
        else:
            kind.initialized += message['method'] == 'notifications/initialized'
            self.answer(202, b'')

    def answer(self, status, body):
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.send_header('Mcp-Session-Id', 'one')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args):  # pylint: disable=arguments-differ
        pass


def test_initialized__that_is_lost_with_its_connection_is_sent_again(holdfast):
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), HalfDeaf)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        hf = holdfast({'up': {'url': f'http://127.0.0.1:{server.server_port}/mcp', 'era': 'legacy', 'handles': 'never'}})
        client = hf.wait_asked('up').client('/mcp/up').connect()
        HalfDeaf.hangs_up, HalfDeaf.initialized = 1, 0  # the probe is over: now the session of the client
        client.call('ready')
        wait_for(lambda: HalfDeaf.initialized == 1, 'notifications/initialized of the session')
        assert HalfDeaf.hangs_up == 0 and client.call('ready').text == '1'
    finally:
        server.shutdown()
