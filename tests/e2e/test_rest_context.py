# SPDX-License-Identifier: Apache-2.0
"""The context document of a session: read, replaced under its version, merged, appended to."""
import threading

import pytest

from rest import refused


def test_context__is_empty_until_it_is_written_and_belongs_to_the_session(rest):
    api = rest()
    name = api.create()['session_id']
    reply = api.get(f'/sessions/{name}/context')
    assert reply.status == 200 and reply.json() == {} and reply.header('etag') == '"0"'
    reply = api.put(f'/sessions/{name}/context', {'task': 'é', 'n': [1, 2]})
    assert reply.status == 200 and reply.json() == {'task': 'é', 'n': [1, 2]} and reply.header('etag') == '"1"'
    assert api.get(f'/sessions/{name}/context').json() == {'task': 'é', 'n': [1, 2]}
    assert api.get(f'/sessions/{name}/context', headers={'If-None-Match': '"1"'}).status == 304
    assert api.session(name)['context_id']


def test_put__needs_the_version_that_is_there(rest):
    api = rest()
    path = f'/sessions/{api.create()["session_id"]}/context'
    assert api.put(path, {'v': 1}, headers={'If-Match': '"0"'}).header('etag') == '"1"'
    refused(api.put(path, {'v': 2}), 428, 'precondition_required')
    refused(api.put(path, {'v': 2}, headers={'If-Match': '"0"'}), 412, 'precondition_failed')
    refused(api.put(path, {'v': 2}, headers={'If-Match': '"nonsense"'}), 412, 'precondition_failed')
    assert api.put(path, {'v': 2}, headers={'If-Match': '"1"'}).header('etag') == '"2"'
    assert api.put(path, {'v': 3}, headers={'If-Match': '*'}).header('etag') == '"3"'
    refused(api.put(path, {'v': 4}, headers={'If-None-Match': '*'}), 412, 'precondition_failed')
    assert api.get(path).json() == {'v': 3}


@pytest.mark.parametrize('body', [[], 'text', 5, None])
def test_put__takes_objects_alone(rest, body):
    api = rest()
    reply = api.request('PUT', f'/sessions/{api.create()["session_id"]}/context', raw=__import__('json').dumps(body).encode())
    refused(reply, 400, 'bad_input')


def test_put__a_mebibyte_and_no_more(rest):
    api = rest()
    path = f'/sessions/{api.create()["session_id"]}/context'
    fits = b'{"a":"' + b'x' * ((1 << 20) - 8) + b'"}'
    assert len(fits) == 1 << 20
    assert api.request('PUT', path, raw=fits).status == 200
    refused(api.request('PUT', path, raw=fits[:-2] + b'x"}', headers={'If-Match': '"1"'}), 413, 'too_large')
    refused(api.patch(path, {'b': 1}), 413, 'too_large')


def test_patch__merges_as_rfc_7396_says(rest):
    api = rest()
    path = f'/sessions/{api.create()["session_id"]}/context'
    assert api.patch(path, {'a': {'b': 1}, 'x': None}).json() == {'a': {'b': 1}}
    reply = api.patch(path, {'a': {'c': 2, 'b': None}, 'l': [1]}, headers={'Content-Type': 'application/merge-patch+json'})
    assert reply.json() == {'a': {'c': 2}, 'l': [1]} and reply.header('etag') == '"2"'
    refused(api.patch(path, {'z': 1}, headers={'If-Match': '"1"'}), 412, 'precondition_failed')
    assert api.patch(path, {'z': 1}, headers={'If-Match': '"2"'}).header('etag') == '"3"'


def test_patch__of_many_at_once_all_hold(rest):
    api = rest()
    path = f'/sessions/{api.create()["session_id"]}/context'
    replies = []

    def work(number):
        replies.append(api.patch(path, {f'k{number}': number}))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(24)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [r.status for r in replies] == [200] * 24
    assert api.get(path).json() == {f'k{i}': i for i in range(24)} and api.get(path).header('etag') == '"24"'


def test_patch__never_leaves_what_cannot_be_changed_again(rest):
    api = rest()
    path = f'/sessions/{api.create()["session_id"]}/context'
    assert api.patch(path, {f'a{i}': 1 for i in range(9000)}).status == 200
    assert api.patch(path, {f'b{i}': 1 for i in range(1000)}).status == 200
    reply = api.patch(path, {'one more': 1})
    refused(reply, 413, 'too_large', 'the context is too large')
    assert '10,000 members' in reply.json()['detail']
    assert api.patch(path, {'a0': None}).status == 200
    assert api.patch(path, {'one more': 1}).status == 200


def test_put__of_many_with_one_version_exactly_one_holds(rest):
    api = rest()
    path = f'/sessions/{api.create()["session_id"]}/context'
    replies = []

    def work(number):
        replies.append(api.put(path, {'n': number}, headers={'If-Match': '"0"'}))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(r.status for r in replies) == [200] + [412] * 7


def test_context__of_a_session_that_is_over_is_read_and_not_written(rest):
    api = rest()
    name = api.create()['session_id']
    api.put(f'/sessions/{name}/context', {'a': 1})
    api.delete('/sessions/' + name)
    assert api.get(f'/sessions/{name}/context').json() == {'a': 1}
    refused(api.put(f'/sessions/{name}/context', {'a': 2}, headers={'If-Match': '"1"'}), 409, 'session_not_active')
    refused(api.patch(f'/sessions/{name}/context', {'a': 2}), 409, 'session_not_active')
    for method in ('GET', 'PUT', 'PATCH'):
        refused(api.request(method, '/sessions/nope/context', None if method == 'GET' else {}), 404, 'session_not_found')


def test_context__is_shared_by_sessions_that_name_it(rest):
    api = rest()
    first = api.create()['session_id']
    api.put(f'/sessions/{first}/context', {'a': 1})
    shared = api.session(first)['context_id']
    second = api.create(context_id=shared)
    assert second['context_id'] == shared
    assert api.get(f'/sessions/{second["session_id"]}/context').json() == {'a': 1}
    api.patch(f'/sessions/{second["session_id"]}/context', {'b': 2})
    assert api.get(f'/sessions/{first}/context').json() == {'a': 1, 'b': 2}
    refused(api.post('/sessions', {'edge_mcp_id': 'e', 'context_id': '01a1dfe0-6fbb-7000-b849-e51ac02e5f37'}), 400, 'unknown_context')


def test_alias__wraps_the_document_and_appends(rest):
    api = rest()
    name = api.create(session_id='session-1-edge')['session_id']
    assert api.get('/context/' + name).json()['context'] == {}
    assert api.put('/context/' + name, {'context': {'log': [1], 'o': {'x': 1}}}).json()['context'] == {'log': [1], 'o': {'x': 1}}
    reply = api.patch('/context/' + name, {'append': {'log': [2, 3], 'o': {'y': 2}, 's': 'new'}})
    assert reply.status == 200
    want = {'log': [1, 2, 3], 'o': {'x': 1, 'y': 2}, 's': 'new'}
    assert api.get('/context/' + name).json()['context'] == want == api.get(f'/sessions/{name}/context').json()
    assert api.put('/context/' + name, {'context': {'over': True}}).json()['context'] == {'over': True}
    refused(api.put('/context/' + name, {'document': {}}), 400, 'bad_input')
    refused(api.patch('/context/' + name, {'append': 5}), 400, 'bad_input')
    refused(api.get('/context/nope'), 404, 'session_not_found')


def test_context__survives_kill_9(rest):
    api = rest()
    name = api.create()['session_id']
    api.put(f'/sessions/{name}/context', {'kept': [None, 1.50]})
    api.holdfast.restart()
    assert api.get(f'/sessions/{name}/context').body == b'{"kept": [null, 1.5]}'
