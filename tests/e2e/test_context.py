# SPDX-License-Identifier: Apache-2.0
"""The context document of a session, by the built-in `session` server: who sees it, who may change it."""
import concurrent.futures
import json

import pytest

from commands import Executions

NAMES = ['context_get', 'context_update', 'share', 'join', 'fork']


def get(client, prefix='', **options):
    return answer(client.call(prefix + 'context_get', options.pop('arguments', {}), **options))


def update(client, arguments, prefix='', **options):
    return answer(client.call(prefix + 'context_update', arguments, **options))


def answer(reply):
    """The structured result, whose text says the same."""
    assert reply.status == 200 and reply.result['isError'] is False, repr(reply)
    shown = reply.result['structuredContent']
    assert json.loads(reply.text) == shown and set(shown) == {'context', 'etag', 'session_id'}
    return shown


def refused(reply, *words):
    assert reply.status == 200 and reply.result['isError'] is True, repr(reply)
    assert 'structuredContent' not in reply.result
    for word in words:
        assert word in reply.text, reply.text
    return reply.text


@pytest.mark.parametrize('modern', [False, True])
def test_session_server__is_served_alone_and_among_all(holdfast, modern):
    hf = holdfast()
    alone, merged = hf.client('/mcp/session', modern=modern), hf.client('/mcp', modern=modern)
    tools = alone.rpc('tools/list').result['tools']
    assert [t['name'] for t in tools] == NAMES
    assert tools[0]['annotations']['readOnlyHint'] is True
    merged_names = [t['name'] for t in merged.rpc('tools/list').result['tools']]
    assert [n for n in merged_names if n.startswith('session__')] == ['session__' + n for n in NAMES]


def test_context__begins_empty_and_is_what_was_written(holdfast):
    client = holdfast().client('/mcp/session').connect()
    first = get(client)
    assert first['context'] == {} and first['etag'] == '0' and first['session_id'].startswith('ses_')
    document = {'goal': 'naïve "quotes"\n', 'n': 1.50, 'deep': {'a': [1, None, {}]}}
    written = update(client, {'context': document})
    assert written == {'context': document, 'etag': '1', 'session_id': first['session_id']}
    assert get(client) == written
    patched = update(client, {'patch': {'n': None, 'deep': {'b': 2}}, 'etag': '1'})
    assert patched['context'] == {'goal': document['goal'], 'deep': {'a': [1, None, {}], 'b': 2}} and patched['etag'] == '2'
    assert update(client, {'context': {}, 'etag': '"2"'})['etag'] == '3'
    assert get(client)['context'] == {}


def test_update__of_what_nobody_has_read_is_refused_and_says_what_to_do(holdfast):
    client = holdfast().client('/mcp/session').connect()
    update(client, {'context': {'a': 1}})
    for change in ({'context': {'b': 1}}, {'patch': {'b': 1}}):
        refused(client.call('context_update', change), 'context already', 'context_get', 'etag')
        for etag in ('0', '2', '99'):
            refused(client.call('context_update', {**change, 'etag': etag}), 'changed', 'context_get', 'new etag')
        for etag in ('', 'x', '-1', '1.0', 7, None):
            refused(client.call('context_update', {**change, 'etag': etag}), 'context_get')
    assert get(client)['context'] == {'a': 1}


def test_update__takes_one_object_and_nothing_else(holdfast):
    client = holdfast().client('/mcp/session').connect()
    for bad in ({}, {'context': {}, 'patch': {}}, {'context': []}, {'context': 'x'}, {'patch': None}, {'context': 7}):
        refused(client.call('context_update', bad), 'either', 'JSON object')
    assert get(client)['etag'] == '0'


def test_update__with_a_misspelt_parameter_changes_nothing(holdfast):
    client = holdfast().client('/mcp/session').connect()
    refused(client.call('context_update', {'context': {'a': 1}, 'etags': '0'}), 'etags', 'context, patch, etag')
    refused(client.call('context_get', {'sesion_id': 'x'}), 'sesion_id')
    assert get(client)['context'] == {}


def test_context__has_a_most(holdfast):
    client = holdfast().client('/mcp/session').connect()
    most = 1 << 20
    fits = 'x' * (most - len('{"a":""}'))
    assert update(client, {'context': {'a': fits}})['context'] == {'a': fits}
    refused(client.call('context_update', {'context': {'a': fits + 'x'}, 'etag': '1'}), '1 MiB')
    refused(client.call('context_update', {'patch': {'b': 1}, 'etag': '1'}), '1 MiB')
    assert get(client)['etag'] == '1'


def test_context__is_seen_by_all_who_share_the_session_in_either_era(rest):
    api = rest()
    hf = api.holdfast
    legacy = hf.client('/mcp').connect()
    mine = update(legacy, {'context': {'by': 'legacy'}}, 'session__')
    handle = mine['session_id']
    modern = hf.client('/mcp/session', modern=True)
    assert get(modern, arguments={'session_id': handle}) == mine
    changed = update(modern, {'patch': {'and': 'modern'}, 'etag': '1', 'session_id': handle})
    assert get(legacy, 'session__') == changed and changed['context'] == {'by': 'legacy', 'and': 'modern'}
    shown = api.get(f'/sessions/{handle}/context')
    assert shown.json() == changed['context'] and shown.header('etag') == '"2"'
    text = b'{\n  "by": "rest",\r\n\t"text": "two \\n lines"\n}'
    assert api.put(f'/sessions/{handle}/context', raw=text, headers={'If-Match': '"2"'}).status == 200
    reply = legacy.call('session__context_get')
    assert answer(reply)['context'] == json.loads(text) and answer(reply)['etag'] == '3'
    refused(legacy.call('session__context_update', {'patch': {}, 'etag': '2'}), 'changed')
    assert get(hf.client('/mcp/session', modern=True, headers={'mcp-client-id': 'other'}))['context'] == {}


def test_context__of_an_unknown_handle_is_refused(holdfast):
    client = holdfast().client('/mcp/session').connect()
    refused(client.call('context_get', {'session_id': 'ses_' + 'A' * 43}), 'not found')


def test_context__outlives_a_restart_and_loses_no_state(holdfast):
    hf = holdfast()
    client = hf.client('/mcp/session').connect()
    written = update(client, {'context': {'kept': True}})
    hf.restart(kill=True)
    reply = client.call('context_get')
    assert answer(reply) == written
    assert 'holdfast/state-lost' not in reply.result.get('_meta', {}) and 'restarted' not in reply.text


def test_update__many_at_once_lose_nothing(holdfast):
    hf = holdfast()
    handle = update(hf.client('/mcp/session').connect(), {'context': {'n': 0}})['session_id']

    def add(worker):
        client, tries = hf.client('/mcp/session').connect(), 0
        for _ in range(5):
            while True:
                tries += 1
                now = get(client, arguments={'session_id': handle})
                reply = client.call('context_update', {'patch': {'n': now['context']['n'] + 1, f'w{worker}': tries},
                                                       'etag': now['etag'], 'session_id': handle})
                if not reply.result['isError']:
                    break
        client.close()
        return tries
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        tries = list(pool.map(add, range(6)))
    last = get(hf.client('/mcp/session').connect(), arguments={'session_id': handle})
    assert last['context']['n'] == 30 and last['etag'] == '31'
    assert [last['context'][f'w{i}'] for i in range(6)] == tries


def test_context__is_audited_like_any_tool(holdfast):
    hf = holdfast()
    client = hf.client('/mcp').connect()
    update(client, {'context': {'a': 1}}, 'session__')
    refused(client.call('session__context_update', {'context': {}}), 'etag')
    seen = Executions().read(hf)
    assert sorted((e['server'], e['tool']) for e in seen.intents.values()) == [('session', 'context_update')] * 2
    assert sorted(e['outcome'] for e in seen.outcomes.values()) == ['ok', 'tool_error']
