# SPDX-License-Identifier: Apache-2.0
"""mcp-client-id: a label that groups what has no transport, and the strict mode that wants it everywhere."""
import json

import pytest

from harness import MODERN, dump

MISSING = 'Missing required mcp-client-id header'
EMPTY = 'mcp-client-id header must not be empty'
ABSENT = [({}, MISSING), ({'mcp-client-id': ''}, EMPTY), ({'mcp-client-id': '   '}, EMPTY), ({'Mcp-Client-Id': '\t'}, EMPTY)]
IDS = ['missing', 'empty', 'blank', 'tab']


@pytest.fixture(name='strict')
def fixture_strict(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    return holdfast({'up': entry}, {'client_id': 'required'}), record


def is_refused(status, body, text, ident):
    assert status == 400, body
    assert json.loads(body) == {'jsonrpc': '2.0', 'id': ident, 'error': {'code': -32600, 'message': text}}


@pytest.mark.parametrize('headers,text', ABSENT, ids=IDS)
@pytest.mark.parametrize('modern', [False, True], ids=['legacy', 'modern'])
def test_strict__refuses_every_request_with_its_id(strict, headers, text, modern):
    hf, record = strict
    client = hf.client('/mcp/up', modern=modern, headers=headers)
    for ident in ('c', 7, 'ü'):
        for method in ('tools/list', 'tools/call'):
            reply = client.rpc(method, {'name': 'counter', 'arguments': {}}, ident=ident)
            is_refused(reply.status, reply.raw, text, ident)
    assert not record.of('tools/call') and len(record.starts()) <= 1  # but for the probe


@pytest.mark.parametrize('headers,text', ABSENT, ids=IDS)
def test_strict__refuses_initialize_and_notifications(strict, headers, text):
    hf, record = strict
    client = hf.client('/mcp/up', headers=headers)
    reply = client.initialize(ident=1)
    is_refused(reply.status, reply.raw, text, 1)
    assert client.session is None
    told = client.notify('notifications/initialized')
    assert told.status == 400 and told.error == {'code': -32600, 'message': text}
    assert not record.of('tools/call') and len(record.starts()) <= 1  # but for the probe


@pytest.mark.parametrize('method', ['DELETE', 'GET'])
@pytest.mark.parametrize('headers,text', ABSENT, ids=IDS)
def test_strict__refuses_get_and_delete_with_a_null_id(strict, headers, text, method):
    hf, _ = strict
    client = hf.client('/mcp/up', headers={'mcp-client-id': 'ann'}).connect()
    reply = hf.request(method, '/mcp/up', {'Accept': 'text/event-stream', 'Mcp-Session-Id': client.session, **headers})
    is_refused(reply.status, reply.body, text, None)
    assert client.call('counter').text == '1'  # the transport is still there


def test_strict__client_id_is_asked_for_before_the_session(strict):
    hf, _ = strict
    stale = {'Mcp-Session-Id': 'never-issued'}
    reply = hf.client('/mcp/up').call('counter', headers=stale, ident=3)
    is_refused(reply.status, reply.raw, MISSING, 3)
    reply = hf.client('/mcp/up', headers={'mcp-client-id': 'ann'}).call('counter', headers=stale, ident=3)
    assert reply.status == 404 and reply.error == {'code': -32000, 'message': 'Session not found or expired'}


@pytest.mark.parametrize('modern', [False, True], ids=['legacy', 'modern'])
def test_strict__serves_whoever_names_itself(strict, modern):
    hf, _ = strict
    client = hf.client('/mcp/up', modern=modern, headers={'mcp-client-id': 'ann'})
    if not modern:
        client.connect()
    assert [client.call('counter').text for _ in range(3)] == ['1', '2', '3']
    if not modern:
        assert client.delete().status in (200, 204)


def test_strict__leaves_everything_but_mcp_alone(strict):
    hf, _ = strict
    assert [hf.get(path).status for path in ('/healthz', '/readyz', '/metrics')] == [200, 200, 200]


def test_optional__anonymous_client_is_known_by_its_session_id(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    client = holdfast({'up': entry}).client('/mcp/up').connect()
    assert [client.call('counter').text for _ in range(3)] == ['1', '2', '3']
    assert client.call('counter', headers={'mcp-client-id': '  '}).text == '4'


@pytest.mark.parametrize('mode', ['optional', 'required'])
def test_windows__of_one_client_id_are_apart(holdfast, stdio_server, mode):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry}, {'client_id': mode})
    name = {'mcp-client-id': 'ann'}
    one, two = hf.client('/mcp/up', headers=name).connect(), hf.client('/mcp/up', headers=name).connect()
    assert [one.call('counter').text for _ in range(3)] == ['1', '2', '3']
    assert two.call('counter').text == '1'
    assert len(set(record.starts())) >= 2
    third = hf.client('/mcp/up', headers=name).connect()  # a new initialize ends nobody's session
    assert [w.call('counter').text for w in (one, two, third)] == ['4', '2', '1']
    assert one.delete().status in (200, 204)
    gone = one.call('counter', ident='g')
    assert gone.status == 404 and gone.error == {'code': -32000, 'message': 'Session not found or expired'}
    assert [w.call('counter').text for w in (two, third)] == ['3', '2']
    assert one.connect().call('counter').text == '1'


def test_windows__stay_apart_after_a_restart(strict):
    hf, _ = strict
    name = {'mcp-client-id': 'ann'}
    one, two = hf.client('/mcp/up', headers=name).connect(), hf.client('/mcp/up', headers=name).connect()
    assert [one.call('counter').text, one.call('counter').text, two.call('counter').text] == ['1', '2', '1']
    hf.restart()
    assert [one.call('counter').text, one.call('counter').text, two.call('counter').text] == ['1', '2', '1']


def test_client_id__groups_requests_without_a_transport(strict):
    hf, _ = strict
    ann, bob = ({'mcp-client-id': name} for name in ('ann', 'bob'))
    assert [hf.client('/mcp/up', headers=ann).call('counter').text for _ in range(2)] == ['1', '2']
    assert hf.client('/mcp/up', headers=bob).call('counter').text == '1'
    assert hf.client('/mcp/up', headers=ann, modern=True).call('counter').text == '3'


def test_client_id__is_a_label_and_no_key(strict):
    hf, _ = strict
    client = hf.client('/mcp/up', headers={'mcp-client-id': 'ann'}).connect()
    assert client.call('counter').text == '1'
    assert client.call('counter', headers={'mcp-client-id': 'bob'}).text == '2'  # the session id says which session


def test_client_id__is_not_sent_to_the_server(holdfast, http_server):
    web = http_server('web', '--era', 'both')
    hf = holdfast({'web': web.entry()}, {'client_id': 'required'})
    for modern in (False, True):
        hf.client('/mcp/web', modern=modern, headers={'mcp-client-id': 'ann'}).call('counter')
    assert web.record.of('tools/call')
    assert 'mcp-client-id' not in dump(web.record.heads()).lower() and MODERN in dump(web.record.heads())
