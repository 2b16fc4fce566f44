# SPDX-License-Identifier: Apache-2.0
"""What of a session's state at a server outlives Holdfast, and what the client is told when it does not."""
import json

import pytest

from harness import wait_for
from rest import Rest

LOST = 'holdfast/state-lost'
TEXTS = {
    'child_restarted': '[holdfast: up was restarted; its earlier state is lost]',
    'child_recycled': '[holdfast: up was idle and Holdfast ended it to free its place; it was started again and its earlier '
                      'state is lost]',
    'remote_session_lost': '[holdfast: up no longer knows this session, so a new one was opened; its earlier state is lost]',
    'holdfast_restarted': '[holdfast: Holdfast was restarted; the earlier state of up is lost]',
}


def heads(server):
    with open(server.record.path + '.heads', encoding='utf-8') as file:
        return [json.loads(line) for line in file]


def ids(server, method):
    """The session ids of all requests of this HTTP method, in order."""
    return [dict((n.lower(), v) for n, v in h['headers']).get('mcp-session-id')
            for h in heads(server) if h['line'].startswith(method + ' ')]


def check_lost(reply, reason):
    assert reply.result['_meta'][LOST]['reason'] == reason, reply
    assert TEXTS[reason] in [b.get('text') for b in reply.result['content']], reply


def check_kept(reply, text):
    assert reply.text == text and LOST not in reply.result.get('_meta', {}), reply


@pytest.mark.parametrize('kill', [True, False])
@pytest.mark.parametrize('version', ['2025-03-26', '2025-11-25'])
def test_remote_session__goes_on_after_a_restart_of_ours(holdfast, http_server, kill, version):
    server = http_server('up')
    hf = holdfast({'up': server.entry(handles='never')})
    client = hf.client('/mcp/up')
    client.connect(version)
    assert [client.call('counter').text for _ in range(2)] == ['1', '2']
    used = ids(server, 'POST')[-1]
    begun = len(server.record.of('initialize'))
    hf.restart(kill=kill)
    check_kept(client.call('counter'), '3')
    check_kept(client.call('counter'), '4')
    assert ids(server, 'POST')[-2:] == [used] * 2 and used not in ids(server, 'DELETE')
    # The probe asks what the server offers, in a session of its own; nobody else opens one.
    assert len(server.record.of('initialize')) <= begun + 1
    last = dict((n.lower(), v) for n, v in heads(server)[-1]['headers'])
    assert last.get('mcp-protocol-version') == (version if version >= '2025-06-18' else None)


def test_remote_session__is_listened_to_after_a_restart_of_ours(holdfast, http_server):
    server = http_server('up')
    hf = holdfast({'up': server.entry(handles='never')})
    client = hf.client('/mcp/up').connect()
    client.call('counter')
    used = ids(server, 'POST')[-1]
    hf.restart()
    before = ids(server, 'GET').count(used)
    client.call('counter')
    wait_for(lambda: ids(server, 'GET').count(used) > before, 'the standalone stream of the old session')


def test_remote_session__that_its_server_forgot_meanwhile_is_told(holdfast, http_server):
    server = http_server('up')
    hf = holdfast({'up': server.entry(handles='never')})
    client = hf.client('/mcp/up').connect()
    assert client.call('counter').text == '1'
    old = ids(server, 'POST')[-1]
    hf.kill()
    server.stop()
    server.start()
    hf.start()
    reply = client.call('counter')
    assert reply.text == '1' and old in ids(server, 'POST')
    check_lost(reply, 'remote_session_lost')
    check_kept(client.call('counter'), '2')


def test_remote_session__of_another_definition_is_not_shown_to_the_new_server(holdfast, http_server):
    first, second = http_server('one'), http_server('two')
    hf = holdfast({'up': first.entry(handles='never')})
    client = hf.client('/mcp/up').connect()
    assert client.call('counter').text == '1'
    old = ids(first, 'POST')[-1]
    hf.kill()
    hf.write_config({'mcpServers': {'up': second.entry(handles='never')}, 'holdfast': {}})
    hf.start()
    reply = client.call('counter')
    assert reply.text == '1' and LOST in reply.result['_meta'] and old not in ids(second, 'POST')


def test_remote_session__is_deleted_with_the_session_it_belongs_to(holdfast, http_server):
    server = http_server('up')
    hf = holdfast({'up': server.entry(handles='never')})
    rest = Rest(hf)
    name = rest.create()['session_id']
    headers = {'Mcp-Session-Id': name}
    assert hf.client('/mcp/up').call('counter', {}, headers=headers).text == '1'
    used = ids(server, 'POST')[-1]
    hf.restart()
    assert hf.client('/mcp/up').call('counter', {}, headers=headers).text == '2'
    assert rest.delete('/sessions/' + name).status in (200, 204)
    wait_for(lambda: used in ids(server, 'DELETE'), 'the DELETE of the session')


ABANDONED = {'session': {'cleanup': {'interval': '100ms'}}}


def wait_deleted(server, remote):
    # A killed process holds the lease of the cleanup in PostgreSQL for half a minute.
    wait_for(lambda: remote in ids(server, 'DELETE'), f'the DELETE of {remote}', timeout=90)


@pytest.mark.parametrize('kill', [True, False])
def test_remote_session__that_nobody_uses_after_a_restart_is_deleted_when_its_session_ends(rest, http_server, kill):
    server = http_server('up')
    api = rest({'up': server.entry(handles='never', headers={'X-Team': 'blue'})}, ABANDONED)
    names = [api.create()['session_id'] for _ in range(3)]

    def call(name):
        return api.holdfast.client('/mcp/up').call('counter', {}, headers={'Mcp-Session-Id': name}).text, ids(server, 'POST')[-1]

    used = [call(name)[1] for name in names]
    api.holdfast.restart(kill=kill)
    assert not set(used) & set(ids(server, 'DELETE')), 'they can still be gone on with'
    assert api.delete('/sessions/' + names[0]).status in (200, 204)
    wait_deleted(server, used[0])
    head = next(dict((n.lower(), v) for n, v in h['headers']) for h in heads(server)
                if h['line'].startswith('DELETE ') and used[0] in dict(h['headers']).values())
    assert head['x-team'] == 'blue' and head['mcp-protocol-version'] >= '2025-06-18'
    assert call(names[1]) == ('2', used[1]), 'this one goes on, and is the new process\'s own'
    for name, remote in list(zip(names, used))[1:]:
        assert api.delete('/sessions/' + name).status in (200, 204)
        wait_deleted(server, remote)
    assert [ids(server, 'DELETE').count(remote) for remote in used] == [1, 1, 1]


def test_remote_session__that_nobody_uses_after_a_restart_is_deleted_when_its_session_expires(rest, http_server):
    server = http_server('up')
    api = rest({'up': server.entry(handles='never')}, ABANDONED)
    name = api.create(ttl=60)['session_id']
    assert api.holdfast.client('/mcp/up').call('counter', {}, headers={'Mcp-Session-Id': name}).text == '1'
    used = ids(server, 'POST')[-1]
    api.holdfast.restart()
    assert api.post(f'/sessions/{name}/refresh', {'ttl': 1}).status == 200
    wait_deleted(server, used)


def test_remote_session_shared_by_all__is_not_deleted_with_one_of_its_sessions(rest, http_server):
    server, own = http_server('up'), http_server('own')
    api = rest({'up': server.entry(handles='never', share='all'), 'own': own.entry(handles='never')}, ABANDONED)
    hf, one, other = api.holdfast, api.create()['session_id'], api.create()['session_id']
    for path in ('/mcp/up', '/mcp/own'):
        assert hf.client(path).call('counter', {}, headers={'Mcp-Session-Id': one}).text == '1'
    assert hf.client('/mcp/up').call('counter', {}, headers={'Mcp-Session-Id': other}).text == '2'
    used = ids(own, 'POST')[-1]
    hf.restart()
    assert api.delete('/sessions/' + one).status in (200, 204)
    wait_deleted(own, used)
    check_kept(hf.client('/mcp/up').call('counter', {}, headers={'Mcp-Session-Id': other}), '3')


def test_remote_session_shared_by_all__goes_on_for_each_session(holdfast, http_server):
    server = http_server('up')
    hf = holdfast({'up': server.entry(handles='never', share='all')})
    one, other = hf.client('/mcp/up').connect(), hf.client('/mcp/up').connect()
    assert one.call('counter').text == '1' and other.call('counter').text == '2'
    hf.restart()
    check_kept(one.call('counter'), '3')
    check_kept(other.call('counter'), '4')


def test_process__that_ended_with_holdfast_is_told_so(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    assert client.call('counter').text == '1'
    hf.restart()
    reply = client.call('counter')
    assert reply.text == '1'
    check_lost(reply, 'holdfast_restarted')


def test_process_shared_by_all__that_ended_with_holdfast_is_told_to_each_session(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never', share='all')
    hf = holdfast({'up': entry})
    one, other = hf.client('/mcp/up').connect(), hf.client('/mcp/up').connect()
    assert one.call('counter').text == '1' and other.call('counter').text == '2'
    hf.restart()
    check_lost(one.call('counter'), 'holdfast_restarted')
    check_lost(other.call('counter'), 'holdfast_restarted')
    check_kept(other.call('counter'), '3')


def test_process__that_crashed_is_told_so(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    client = holdfast({'up': entry}).client('/mcp/up').connect()
    assert client.call('counter').text == '1'
    client.call('crash')
    check_lost(client.call('counter'), 'child_restarted')
