# SPDX-License-Identifier: Apache-2.0
"""How a request names its session: every carrier, their order, and what is recorded of them."""
import concurrent.futures
import json
import os
import re
import threading

import keys
import pytest

from commands import Executions
from harness import dump

HANDLE = re.compile(r'ses_[A-Za-z0-9_-]{43}')
GONE = {'code': -32000, 'message': 'Session not found or expired'}


@pytest.fixture
def up(holdfast, stdio_server):
    """A legacy stdio server with everything at its default: (Holdfast, Record)."""
    entry, record = stdio_server('up')
    return holdfast({'up': entry}), record


def handle_of(reply):
    handle = reply.result['_meta']['holdfast/session']
    assert HANDLE.fullmatch(handle)
    return handle


def sent(record):
    """The arguments of the last call that the upstream received."""
    return json.loads(record.of('tools/call')[-1])['params']['arguments']


def carriers(hf):
    """{row id of a session: the carrier recorded with its calls}."""
    return {e['session_id']: e['carrier'] for e in Executions().read(hf).intents.values()}


# Handles as a tool argument.

def test_injection__shows_the_property_to_a_client_without_a_carrier(up):
    hf, _ = up
    tools = hf.client('/mcp/up').rpc('tools/list').result['tools']
    for tool in tools:
        assert tool['inputSchema']['properties']['session_id']['type'] == 'string', tool
        assert 'session_id' not in tool['inputSchema'].get('required', [])
    for client in (hf.client('/mcp/up').connect(), hf.client('/mcp/up', headers={'mcp-client-id': 'me'})):
        for tool in client.rpc('tools/list').result['tools']:
            assert 'session_id' not in tool['inputSchema']['properties'], tool


def test_injection__gives_a_handle_that_continues(up):
    hf, record = up
    client = hf.client('/mcp/up')
    first = client.call('counter')
    handle = handle_of(first)
    assert first.text == '1' and first.result['content'][-1] == {'type': 'text', 'text': f'[session: {handle}]'}
    second = client.call('counter', {'session_id': handle, 'other': 1})
    assert second.text == '2' and handle_of(second) == handle
    assert sent(record) == {'other': 1}
    assert all(b'session_id' not in m for m in record.of('tools/call'))
    other = client.call('counter')
    assert other.text == '1' and handle_of(other) != handle
    assert client.call('counter', {'session_id': handle}).text == '3'


def test_injection__works_for_a_modern_client(up):
    hf, record = up
    client = hf.client('/mcp/up', modern=True)
    handle = handle_of(client.call('counter'))
    again = client.call('counter', {'session_id': handle})
    assert again.text == '2' and again.result['resultType'] == 'complete'
    assert b'session_id' not in record.of('tools/call')[-1]


@pytest.mark.parametrize('bogus', ['ses_' + 'A' * 43, 'nonsense', '../../etc/passwd', '[session: ses_]', 'ses_\u0000', 'x' * 10000])
def test_injection__unknown_handle_is_a_tool_error(up, bogus):
    hf, record = up
    reply = hf.client('/mcp/up').call('counter', {'session_id': bogus}, ident='b')
    assert reply.status == 200 and reply.json['id'] == 'b' and reply.result['isError'] is True
    assert 'Session not found' in reply.text and 'without session_id' in reply.text
    assert not record.of('tools/call')


def test_injection__survives_kill_9(up):
    hf, _ = up
    client = hf.client('/mcp/up')
    handle = handle_of(client.call('counter'))
    hf.restart()
    reply = client.call('counter', {'session_id': handle})
    assert reply.text == '1' and handle_of(reply) == handle
    assert [b['text'] for b in reply.result['content']][-2:] == [
        '[holdfast: Holdfast was restarted; the earlier state of up is lost]', f'[session: {handle}]']
    assert client.call('counter', {'session_id': handle}).text == '2'


def test_injection__leaves_servers_alone_that_are_shared_or_told_not_to(holdfast, stdio_server):
    (shared, _), (never, _), (always, record) = (
        stdio_server('shared', share='all'), stdio_server('never', handles='never'), stdio_server('always', handles='always'))
    hf = holdfast({'shared': shared, 'never': never, 'always': always})
    for name in ('shared', 'never'):
        client = hf.client(f'/mcp/{name}')
        assert 'session_id' not in dump(client.rpc('tools/list').result)
        assert '_meta' not in client.call('counter').result
    client = hf.client('/mcp/always').connect()
    assert 'session_id' in client.rpc('tools/list').result['tools'][0]['inputSchema']['properties']


def test_injection__always_hands_out_the_handle_on_a_transport_too(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='always')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    first = client.call('counter')
    handle = handle_of(first)
    assert first.text == '1' and first.result['content'][-1]['text'] == f'[session: {handle}]'
    again = client.call('counter')
    assert again.text == '2' and handle_of(again) == handle
    other = hf.client('/mcp/up').connect()
    assert other.call('counter', {'session_id': handle}).text == '3'
    assert not any('session_id' in json.loads(m)['params'].get('arguments', {}) for m in record.of('tools/call'))


@pytest.mark.parametrize('written', ['[session: {}]', ' {} ', '[session:{}]', '\t[session:  {} ]\n'])
def test_injection__takes_a_handle_as_results_show_it(up, written):
    hf, record = up
    client = hf.client('/mcp/up')
    handle = handle_of(client.call('counter'))
    reply = client.call('counter', {'session_id': written.format(handle)})
    assert reply.text == '2' and handle_of(reply) == handle
    assert 'arguments' not in json.loads(record.of('tools/call')[-1])['params'] or \
        'session_id' not in json.loads(record.of('tools/call')[-1])['params']['arguments']


@pytest.mark.parametrize('empty', ['', '  ', '[session: ]'])
def test_injection__an_empty_handle_is_none(up, empty):
    hf, record = up
    client = hf.client('/mcp/up')
    first, second = client.call('counter', {'session_id': empty}), client.call('counter', {'session_id': empty})
    assert first.text == second.text == '1' and handle_of(first) != handle_of(second)
    assert 'session_id' not in json.loads(record.of('tools/call')[-1])['params'].get('arguments', {})


def test_sample_counter__takes_a_handle_of_any_server(up):
    hf, _ = up
    handles = [handle_of(hf.client('/mcp/up').call('counter')) for _ in range(2)]
    hf.stop()
    os.unlink(hf.config_file)
    hf.start()
    client = hf.client('/mcp/sample')
    assert [client.call('counter', {'session_id': handles[0]}).text for _ in range(2)] == ['1', '2']
    assert client.call('counter', {'session_id': handles[1]}).text == '1'
    assert client.call('counter').text == '1'
    assert client.call('counter', {'session_id': handles[0]}).text == '3'
    assert client.call('counter', {'session_id': 'ses_' + 'A' * 43}).result['isError'] is True


# Headers and query.

def test_header__id_names_the_transport(up):
    hf, _ = up
    client = hf.client('/mcp/up').connect()
    reply = client.call('counter')
    assert reply.text == '1' and '_meta' not in reply.result and len(reply.result['content']) == 1
    assert client.call('counter').text == '2'
    assert set(carriers(hf).values()) == {'transport'}


def test_header__takes_a_handle_on_any_endpoint(up):
    hf, _ = up
    bare = hf.client('/mcp/up')
    handle = handle_of(bare.call('counter'))
    assert bare.call('counter', headers={'Mcp-Session-Id': handle}).text == '2'
    assert bare.rpc('tools/list', headers={'Mcp-Session-Id': handle}).status == 200
    unknown = bare.call('counter', headers={'Mcp-Session-Id': 'ses_' + 'B' * 43}, ident='u')
    assert unknown.status == 404 and unknown.error == GONE and unknown.json['id'] == 'u'


def test_query__names_the_session_like_the_header(up):
    hf, _ = up
    client = hf.client('/mcp/up').connect()
    assert client.call('counter').text == '1'
    handle = handle_of(hf.client('/mcp/up').call('counter'))
    asking = hf.client(f'/mcp/up?session_id={client.session}')
    assert asking.call('counter').text == '2'
    assert hf.client(f'/mcp/up?session_id={handle}').call('counter').text == '2'
    assert asking.call('counter', headers={'Mcp-Session-Id': client.session}).text == '3'
    assert hf.client('/mcp/up?session_id=never-issued').call('counter', ident=5).error == GONE
    assert hf.client('/mcp/up?other=1&session_id=').call('counter').text == '1'


def test_query__that_differs_from_the_header_is_400(up):
    hf, record = up
    one, two = hf.client('/mcp/up').connect(), hf.client('/mcp/up').connect()
    for path in (f'/mcp/up?session_id={two.session}', f'/mcp/up?session_id={one.session}&session_id={one.session}'):
        reply = hf.client(path).call('counter', headers={'Mcp-Session-Id': one.session}, ident='q')
        assert reply.status == 400 and reply.code == -32600 and reply.json['id'] == 'q', repr(reply)
    assert not record.of('tools/call')


def test_query_and_header__mean_nothing_to_a_modern_request(up):
    hf, _ = up
    client = hf.client('/mcp/up?session_id=never-issued', modern=True)
    assert client.call('counter', headers={'Mcp-Session-Id': 'never-issued'}).status == 200


# _meta, client id, derived.

META = [
    ('session_id', lambda v: {'session_id': v}),
    ('openai/session', lambda v: {'openai/session': v}),
    ('vscode.conversationId', lambda v: {'vscode.conversationId': v}),
    ('x-codex-turn-metadata', lambda v: {'x-codex-turn-metadata': {'session_id': v, 'turn': 1}}),
    ('threadId', lambda v: {'threadId': v}),
    ('sessionID', lambda v: {'sessionID': v}),
]


@pytest.mark.parametrize('name,meta', META, ids=[m[0] for m in META])
@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_meta__every_configured_key_names_a_session(up, name, meta, era):
    hf, record = up
    client = hf.client('/mcp/up', modern=era == 'modern')
    for value, count in (('a', '1'), ('b', '1'), ('a', '2'), ('a', '3')):
        reply = client.call('counter', meta=meta(value))
        assert reply.text == count, (value, reply)
        assert not {'holdfast/session', 'holdfast/state-lost'} & set(reply.result.get('_meta', {}))
    assert json.loads(record.of('tools/call')[-1])['params']['_meta'] == meta('a')
    labels = carriers(hf)
    assert len(labels) == 2 and all(label.startswith('meta:') and name in label for label in labels.values()), labels


def test_meta__values_of_any_type_name_sessions_and_null_does_not(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never', share='session')
    client = holdfast({'up': entry}).client('/mcp/up')
    for value in (7, {'a': [1]}, 'x' * 5000):
        assert [client.call('counter', meta={'session_id': value}).text for _ in range(2)] == ['1', '2'], value
    derived = [client.call('counter', meta=meta).text for meta in ({'session_id': None}, {'session_id': ''}, None)]
    assert derived == ['1', '2', '3']


def test_meta__the_first_configured_key_wins(up):
    hf, _ = up
    client = hf.client('/mcp/up')
    assert client.call('counter', meta={'threadId': 't', 'session_id': 's'}).text == '1'
    assert client.call('counter', meta={'session_id': 's'}).text == '2'
    assert client.call('counter', meta={'threadId': 't'}).text == '1'


def test_meta__is_weaker_than_the_transports_session(up):
    hf, _ = up
    client = hf.client('/mcp/up').connect()
    assert client.call('counter', meta={'session_id': 's'}).text == '1'   # links the transport to it
    assert client.call('counter').text == '2'
    assert client.call('counter', meta={'session_id': 'other'}).text == '3'
    assert hf.client('/mcp/up').call('counter', meta={'session_id': 's'}).text == '4'


def test_meta__keys_can_be_configured(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry}, {'carriers': {'meta': ['com.example/run', ['a', 'b', 'c']], 'headers': ['X-Conversation']}})
    client = hf.client('/mcp/up')
    assert [client.call('counter', meta={'com.example/run': 'r'}).text for _ in range(2)] == ['1', '2']
    assert [client.call('counter', meta={'a': {'b': {'c': 'r'}}}).text for _ in range(2)] == ['1', '2']
    assert [client.call('counter', headers={'X-Conversation': 'r'}).text for _ in range(2)] == ['1', '2']
    assert [client.call('counter', meta={'session_id': f's{n}'}).text for n in range(2)] == ['1', '2']  # derived
    assert set(carriers(hf).values()) == {'meta:com.example/run', 'meta:a.b.c', 'header:x-conversation', 'derived'} or \
        set(carriers(hf).values()) == {'meta:com.example/run', 'meta:a.b.c', 'header:X-Conversation', 'derived'}


def test_client_id__names_a_session_and_is_recorded(up):
    hf, _ = up
    ann = hf.client('/mcp/up', headers={'mcp-client-id': 'ann'})
    assert [ann.call('counter').text for _ in range(2)] == ['1', '2']
    modern = hf.client('/mcp/up', modern=True, headers={'mcp-client-id': 'ann'})
    assert modern.call('counter').text == '3'
    assert set(carriers(hf).values()) == {'client-id'}


def test_client_id__can_be_required(holdfast, stdio_server):
    entry, record = stdio_server('up')
    hf = holdfast({'up': entry}, {'client_id': 'required'})
    for headers, text in (({}, 'Missing required mcp-client-id header'),
                          ({'mcp-client-id': ''}, 'mcp-client-id header must not be empty')):
        reply = hf.client('/mcp/up', headers=headers).call('counter', ident='c')
        assert reply.status == 400 and reply.error == {'code': -32600, 'message': text} and reply.json['id'] == 'c'
    assert not record.of('tools/call')
    assert hf.client('/mcp/up', headers={'mcp-client-id': 'ann'}).call('counter').text == '1'


def test_derived__calls_without_a_carrier_share_one_session(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    for n in range(1, 4):
        assert hf.client('/mcp/up').call('counter').text == str(n)
    assert set(carriers(hf).values()) == {'derived'} and len(carriers(hf)) == 1
    assert len({json.loads(m)['id'] for m in record.of('tools/call')}) == 3


def test_limit__of_named_sessions_is_a_tool_error(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry}, {'session': {'limits': {'max_per_tenant': 3}}})
    client = hf.client('/mcp/up')
    for n in range(3):
        assert client.call('echo', {'text': 'in'}, meta={'session_id': f's{n}'}).text == 'in'
    over = client.call('echo', {'text': 'out'}, meta={'session_id': 's3'})
    assert over.status == 200 and over.result['isError'] is True and over.text == 'session limit exceeded for tenant'
    assert 'DELETE /api/v1/sessions/{id}' in over.result['content'][1]['text'], 'and what to do'
    assert client.call('echo', {'text': 'in'}, meta={'session_id': 's0'}).text == 'in'
    assert client.call('echo', {'text': 'in'}).text == 'in'  # derived ones are not counted
    assert hf.client('/mcp/up').connect().call('echo', {'text': 'in'}).text == 'in'
    assert len(record.of('tools/call')) == 6


# Calls made at once.

NAMED = {
    'transport': lambda client, _: client.call('counter'),
    'meta': lambda client, turn: client.call('counter', meta={'session_id': f'm{turn}'}),
    'client id': lambda client, turn: client.call('counter', headers={'mcp-client-id': f'c{turn}'}),
    'derived': lambda client, _: client.call('counter'),
}


@pytest.mark.parametrize('name', NAMED)
def test_first_calls__made_at_once_share_one_session(holdfast, stdio_server, name):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    at_once = 12
    for turn in range(2):
        client = hf.client('/mcp/up')
        if name == 'transport':
            client.connect()
        hf.restart()  # nothing is resident: every call has to look it up
        together = threading.Barrier(at_once)

        def call(_, client=client, turn=turn, together=together):
            together.wait()
            return int(NAMED[name](client, turn).text)
        with concurrent.futures.ThreadPoolExecutor(max_workers=at_once) as pool:
            counts = sorted(pool.map(call, range(at_once)))
        assert counts == list(range(1, at_once + 1)), counts
    assert len(carriers(hf)) == (1 if name == 'derived' else 2)
    assert len(record.of('tools/call')) == 2 * at_once


# Ids that clients choose (carriers.client_ids).

ANYWHERE = {  # one value, wherever it may stand
    'header': lambda hf, value: hf.client('/mcp').call('up__counter', headers={'Mcp-Session-Id': value}),
    'query': lambda hf, value: hf.client(f'/mcp?session_id={value}').call('up__counter'),
    'meta': lambda hf, value: hf.client('/mcp').call('up__counter', meta={'session_id': value}),
    'other meta': lambda hf, value: hf.client('/mcp').call('up__counter', meta={'threadId': value}),
    'modern meta': lambda hf, value: hf.client('/mcp', modern=True).call('up__counter', meta={'session_id': value}),
    'messages': lambda hf, value: hf.client(f'/mcp/messages?session_id={value}').call('up__counter'),
    'messages header': lambda hf, value: hf.client('/mcp/messages').call('up__counter', headers={'Mcp-Session-Id': value}),
    'one server': lambda hf, value: hf.client('/mcp/up').call('counter', headers={'Mcp-Session-Id': value}),
}
CLIENT_IDS = {'carriers': {'client_ids': True}}


def test_client_ids__one_value_is_one_session_wherever_it_stands(holdfast, stdio_server):
    entry, _ = stdio_server('up')
    hf = holdfast({'up': entry}, CLIENT_IDS)
    for value in ('abc123', 'x' * 300):
        assert [call(hf, value).text for call in ANYWHERE.values()] == [str(n + 1) for n in range(len(ANYWHERE))]
    assert set(carriers(hf).values()) == {'session-id'}
    hf.restart()
    replies = [call(hf, 'abc123') for call in ANYWHERE.values()]
    assert [r.text for r in replies] == [str(n + 1) for n in range(len(ANYWHERE))], 'the same session after a restart too'
    assert 'holdfast/state-lost' in replies[0].result['_meta']


def test_client_ids__are_refused_unless_switched_on(up):
    hf, _ = up
    for name in ('header', 'query', 'one server'):
        reply = ANYWHERE[name](hf, 'abc123')
        assert (reply.status, reply.error) == (404, GONE), name
    first = [ANYWHERE[name](hf, 'abc123').text for name in ('meta', 'messages')]
    assert first == ['1', '1'], 'without it each carrier has names of its own'


@pytest.mark.parametrize('value', ['ses_' + 'A' * 43, 'A' * 43])
def test_client_ids__shaped_like_ours_must_be_known(holdfast, stdio_server, value):
    entry, _ = stdio_server('up')
    hf = holdfast({'up': entry}, CLIENT_IDS)
    reply = ANYWHERE['header'](hf, value)
    assert (reply.status, reply.error) == (404, GONE)


def test_client_ids__leave_ids_of_ours_as_they_are(holdfast, stdio_server):
    entry, _ = stdio_server('up')
    hf = holdfast({'up': entry}, CLIENT_IDS)
    client = hf.client('/mcp').connect()
    assert [client.call('up__counter').text for _ in range(2)] == ['1', '2']
    assert ANYWHERE['header'](hf, 'abc123').text == '1'
    differ = hf.client('/mcp?session_id=a').call('up__counter', headers={'Mcp-Session-Id': 'b'})
    assert (differ.status, differ.code) == (400, -32600)
    for method in ('GET', 'DELETE'):
        assert hf.request(method, '/mcp', {'Mcp-Session-Id': 'abc123', 'Accept': 'text/event-stream'}).status == 404
    assert ANYWHERE['header'](hf, 'abc123').text == '2', 'a name is not ended by DELETE'


@pytest.mark.parametrize('before', ['meta', 'other meta', 'messages'])
def test_client_ids__find_the_sessions_that_had_names_before(holdfast, stdio_server, before):
    entry, _ = stdio_server('up')
    hf = holdfast({'up': entry})
    assert ANYWHERE[before](hf, 'abc123').text == '1'
    old = set(carriers(hf))
    hf.stop()
    hf.write_config({'mcpServers': {'up': entry}, 'holdfast': CLIENT_IDS})
    hf.start()
    replies = [call(hf, 'abc123') for call in ANYWHERE.values()]
    assert 'holdfast/state-lost' in replies[0].result['_meta'], 'the session that was there before'
    assert [r.text for r in replies] == [str(n + 1) for n in range(len(ANYWHERE))]
    assert set(carriers(hf)) == old


def test_client_ids__belong_to_their_owner(holdfast, stdio_server):
    entry, _ = stdio_server('up')
    hf = holdfast({'up': entry}, CLIENT_IDS)
    other = {**keys.create(hf).headers, 'Mcp-Session-Id': 'abc123'}
    assert ANYWHERE['header'](hf, 'abc123').text == '1'
    assert hf.client('/mcp').call('up__counter', headers=other).text == '1'
    assert ANYWHERE['header'](hf, 'abc123').text == '2'


# Logs.

def test_logs__hold_no_session_id_above_debug(up):
    hf, _ = up
    client = hf.client('/mcp/up').connect()
    client.call('counter')
    handle = handle_of(hf.client('/mcp/up').call('counter'))
    hf.client('/mcp/up').call('counter', meta={'session_id': 'a-name-in-meta'})
    hf.client('/mcp/up').call('counter', headers={'Mcp-Session-Id': 'unknown-id-in-header'})
    hf.stop()
    log = dump(hf.log())
    for secret in (client.session, handle, handle[:20], 'a-name-in-meta', 'unknown-id-in-header'):
        assert secret not in log, secret


def test_logs__at_debug_show_ids_escaped(holdfast, stdio_server):
    entry, _ = stdio_server('up')
    hf = holdfast({'up': entry}, env={'HOLDFAST_LOG_LEVEL': 'debug'})
    evil = 'evil%0A%1b%5b31m%22%7D%0d%c2%9b'
    assert hf.client(f'/mcp/up?session_id={evil}').call('counter').status == 404
    hf.client('/mcp/up').connect().call('counter')
    handle_of(hf.client('/mcp/up').call('counter'))
    line = hf.wait_log(lambda l: 'evil' in str(l.get('session_id')), 'the named session')
    assert line['level'] == 'debug'
    hf.client('/mcp/up').call('counter', meta={'session_id': 'in meta\n\x1b[31m"\u202e'})
    hf.client('/mcp/up', headers={'mcp-client-id': 'in client id'}).call('counter')
    for name, carrier in (('in meta', 'meta:session_id'), ('in client id', 'client-id')):
        line = hf.wait_log(lambda l, name=name: name in str(l.get('session_id')), name)
        assert (line['level'], line['carrier']) == ('debug', carrier)
    hf.stop()
    raw = '\n'.join(hf.lines)
    assert '\x1b' not in raw and '\x00' not in raw and '\r' not in raw
    assert all('text' not in entry for entry in hf.log()), 'a line that is no JSON'
    for entry in hf.log():
        if 'session_id' in entry and entry['level'] != 'debug':  # then it is the row's own id, which names nothing outside
            assert entry['msg'] == 'Session created' and re.fullmatch(r'[0-9a-f-]{36}', entry['session_id']), entry
