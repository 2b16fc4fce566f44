# SPDX-License-Identifier: Apache-2.0
"""Who outlives whom: reloads, stops, disconnects and lost sessions in the midst of what is held open."""
import http.client
import json
import os
import signal
import time

import pytest

from harness import wait_for
from scripted import Background, Later, ask, note, open_gate, script, text_of
from test_questions import client_of, question
from test_sse2024 import Old


def listen(client, headers=None, **wanted):
    return Later(client, 'subscriptions/listen', {'notifications': wanted}, headers=headers)


def reload(hf, servers):
    since = len(hf.log())
    hf.write_config({'mcpServers': servers, 'holdfast': {}})
    hf.process.send_signal(signal.SIGHUP)
    hf.wait_log(lambda l: l.get('msg') == 'configuration reloaded', 'the reload', since)


def turns(seconds):
    """Housekeeping has a tick of a second and tells nobody of it."""
    end = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() > end, 'the clock')


def has_stopped(hf):
    assert hf.process.wait(10) == 0, hf.text()
    hf.check_sanitizers()


@pytest.mark.parametrize('path', ['/mcp', '/mcp/s'])
def test_reload__of_a_server_that_is_listened_to_keeps_it_for_its_listeners(holdfast, scripted, path):
    server = scripted('s', http=True, era='modern')
    hf = holdfast({'s': server.entry})
    client = hf.client(path, modern=True)
    with listen(client, toolsListChanged=True) as stream:
        assert stream.next()['method'] == 'notifications/subscriptions/acknowledged'
        reload(hf, {'s': {**server.entry, 'timeout': 7}})
        turns(3.5)
    assert client.call('s__echo' if path == '/mcp' else 'echo', {'text': 'x'}).text == 'x'


def test_reload__of_a_server_that_has_asked_something_keeps_it_until_the_answer(holdfast, scripted):
    server = scripted('s')
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    with script(client, {'ask_only': ask('q')}, {'result': '{"content":[]}'}) as call:
        asked = question(call)
        assert 'result' in call.next()
    reload(hf, {'s': {**server.entry, 'timeout': 7}})
    turns(3.5)
    assert client.respond(asked['id'], {'action': 'decline'}).status == 202


def test_own_list__with_a_huge_cursor_is_given_up(holdfast, scripted, tmp_path):
    huge = str(tmp_path / 'huge')
    server = scripted('s', shape={'pad': {'when': huge, 'to': 200000}, 'page': 2, 'tools': []})
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    names = [t['name'] for t in client.rpc('tools/list').result['tools']]
    open_gate(huge)
    script(client, {'send': note('notifications/tools/list_changed')}, {'result': '{"content":[]}'}).rest()
    assert [t['name'] for t in client.rpc('tools/list').result['tools']] == names


def test_reading__goes_on_with_a_new_session_when_the_server_forgot_the_old(holdfast, http_server):
    server = http_server('web', '--era', 'legacy')
    hf = holdfast({'web': server.entry()})
    client = hf.client('/mcp/web').connect()
    assert client.rpc('resources/read', {'uri': 'test://one'}).result
    known = {v for h in server.record.heads() for k, v in h['headers'] if k.lower() == 'mcp-session-id'}
    for session in known:
        connection = http.client.HTTPConnection('127.0.0.1', server.port, timeout=10)
        connection.request('DELETE', '/mcp', headers={'Mcp-Session-Id': session})
        connection.getresponse().read()
        connection.close()
    reply = client.rpc('resources/read', {'uri': 'test://one'})
    assert reply.json.get('result'), repr(reply)


def test_modern_call__whose_client_left_before_it_began_never_begins(holdfast, scripted):
    server = scripted('s', era='modern', shape={})
    gate = server.gate()
    server.entry['args'][-1] = json.dumps({'name': 's', 'gates': {'tools/list': gate}})
    hf = holdfast({'s': server.entry})
    client = hf.client('/mcp/s', modern=True)
    call = Later(client, 'tools/call', {'name': 'counter', 'arguments': {}})
    server.wait('tools/list')
    call.close()
    assert hf.get('/healthz').status == 200  # the end of that connection has been read before this one began
    open_gate(gate)
    assert client.call('echo', {'text': 'x'}).result
    assert [c['params']['name'] for c in server.calls()] == ['echo']


def test_channel__cancels_what_has_not_begun(holdfast, scripted):
    server = scripted('s', shape={})
    gate = server.gate()
    server.entry['args'][-1] = json.dumps({'name': 's', 'gates': {'tools/list': gate}})
    hf = holdfast({'s': server.entry})
    old = Old(hf)
    try:
        ident = old.request('tools/call', {'name': 's__counter', 'arguments': {}})
        server.wait('tools/list')
        assert old.post({'jsonrpc': '2.0', 'method': 'notifications/cancelled', 'params': {'requestId': ident}}).status == 202
        open_gate(gate)
        assert old.call('s__echo', text='x') == 'x'
        assert [c['params']['name'] for c in server.calls()] == ['echo']
    finally:
        old.close()


def test_stop__does_not_wait_for_answers_that_cannot_come(holdfast, scripted):
    server = scripted('s')
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    with script(client, {'ask': ask('q')}) as call:
        question(call)
        hf.process.send_signal(signal.SIGTERM)
        assert 'error' in text_of(call.next())[0]
    has_stopped(hf)


def test_stop__is_not_held_up_by_a_listen_that_begins_meanwhile(holdfast, scripted):
    server = scripted('s', era='modern')
    gate = server.gate()
    server.entry['args'][-1] = json.dumps({'name': 's', 'gates': {'tools/list': gate}})
    hf = holdfast({'s': server.entry})
    client = hf.client('/mcp/s', modern=True)
    with listen(client, toolsListChanged=True) as stream:
        server.wait('tools/list')
        hf.process.send_signal(signal.SIGTERM)
        hf.wait_log(lambda l: str(l.get('msg')).startswith('stopping'), 'the stop')
        open_gate(gate)
        last = stream.rest()[-1]
        assert 'stopping' in last['error']['message'], last
    has_stopped(hf)


def test_listen__of_a_client_that_takes_no_events_is_refused(holdfast, scripted):
    server = scripted('s', http=True, era='modern')
    hf = holdfast({'s': server.entry})
    client = hf.client('/mcp/s', modern=True)
    with listen(client, {'Accept': 'application/json'}, toolsListChanged=True) as stream:
        assert 'text/event-stream' in stream.next()['error']['message']


def test_listen__whose_client_left_before_it_began_never_begins(holdfast, scripted):
    server = scripted('s', era='modern')
    gate = server.gate()
    server.entry['args'][-1] = json.dumps({'name': 's', 'gates': {'tools/list': gate}})
    hf = holdfast({'s': server.entry})
    client = hf.client('/mcp/s', modern=True)
    left = listen(client, toolsListChanged=True)
    server.wait('tools/list')
    left.close()
    assert hf.get('/healthz').status == 200  # so the end of the other connection has been read
    open_gate(gate)
    assert client.call('echo', {'text': 'x'}).text == 'x'
    assert not server.times('listen')


def test_listen__of_a_client_that_does_not_read_ends(holdfast, scripted):
    server = scripted('s', http=True, era='modern', shape={'resources': [{'uri': 'doc://a', 'name': 'a'}]})
    hf = holdfast({'s': server.entry})
    client = hf.client('/mcp/s', modern=True)
    with listen(client, resourceSubscriptions=['doc://a']) as stream:
        assert stream.next()['method'] == 'notifications/subscriptions/acknowledged'
        much = note('notifications/resources/updated', uri='doc://a', text='x' * 1000000)
        for _ in range(40):
            script(client, {'listen': much}).rest()
            if server.times('listen closed'):
                break
        server.wait_time('listen closed')
        last = stream.rest()[-1]
        assert last['result']['resultType'] == 'complete'


def test_questions__of_one_process_are_not_answered_with_answers_to_another(holdfast, scripted):
    server = scripted('s')
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    with script(client, {'ask': ask('q')}) as call:
        before = question(call)['id']
        hf.restart()
    with script(client, {'ask': ask('q')}) as call:
        after = question(call)['id']
        assert after != before
        assert client.respond(before, {'action': 'accept'}).status == 202
        assert client.respond(after, {'action': 'decline'}).status == 202
        assert text_of(call.next()) == [{'result': {'action': 'decline'}}]


@pytest.mark.parametrize('batch', [False, True], ids=['alone', 'in a batch'])
def test_legacy_call__cancelled_before_it_began_never_begins(holdfast, scripted, batch):
    server = scripted('s')
    gate = server.gate()
    server.entry['args'][-1] = json.dumps({'name': 's', 'gates': {'tools/list': gate}})
    other = scripted('other')
    hf = holdfast({'other': other.entry})
    client = hf.client('/mcp').connect('2025-03-26')
    assert client.call('other__echo', {'text': 'x'}).text == 'x'
    reload(hf, {'other': other.entry, 's': server.entry})
    call = {'jsonrpc': '2.0', 'id': 'c', 'method': 'tools/call', 'params': {'name': 's__counter', 'arguments': {}}}
    stream = Background(lambda: client.rpc_bytes(json.dumps([call] if batch else call)))
    server.wait('tools/list')
    assert client.notify('notifications/cancelled', {'requestId': 'c'}).status == 202
    open_gate(gate)
    stream.result()
    assert client.call('s__echo', {'text': 'x'}).text == 'x'
    assert [c['params']['name'] for c in server.calls()] == ['echo']


def test_listen__to_a_server_that_all_share_hears_what_calls_there_change(holdfast, scripted):
    server = scripted('s', era='modern', share='all', shape={'resources': [{'uri': 'doc://a', 'name': 'a'}]})
    hf = holdfast({'s': server.entry})
    client = hf.client('/mcp/s', modern=True)
    with listen(client, resourceSubscriptions=['doc://a']) as stream:
        assert stream.next()['method'] == 'notifications/subscriptions/acknowledged'
        script(client, {'listen': note('notifications/resources/updated', uri='doc://a')}).rest()
        assert stream.next()['params']['uri'] == 'doc://a'


def test_questions__of_a_process_that_has_ended_do_not_count(holdfast, scripted):
    server = scripted('s')
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    with script(client, *[{'ask_only': ask(n)} for n in range(64)], {'wait': server.gate()}) as call:
        assert [question(call)['method'] for n in range(64)]
        os.kill(server.starts()[-1], signal.SIGKILL)
        assert 'error' in call.rest()[-1]
    with script(client, {'ask': ask('q')}) as call:
        assert client.respond(question(call)['id'], {}).status == 202
        assert text_of(call.next()) == [{'result': {}}]


def test_session__that_is_too_old_is_let_go_of_even_if_its_successor_is_refused(holdfast, scripted):
    server = scripted('s', http=True, era='modern')
    hf = holdfast({'s': server.entry}, {'session': {'limits': {'idle_timeout': '1s'}}})
    client = hf.client('/mcp/s', modern=True)
    assert client.call('echo', {'text': 'x'}).text == 'x'
    turns(1.1)
    assert client.rpc('tools/call', {'name': 'echo', 'arguments': {}, 'requestState': 'forged'}).code == -32602
