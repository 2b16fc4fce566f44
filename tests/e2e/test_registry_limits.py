# SPDX-License-Identifier: Apache-2.0
"""The limit of sessions a tenant may have, with everybody at the door at once: exactly so many get in, on each
store and through two nodes of one PostgreSQL; and what counts against it, and what never does."""
import os
import re
import threading

import pytest

from harness import Connection, stdio_server, wait_for
from postgres import shared_keys
from rest import Rest, refused
from walk import Walk

LIMIT = 100
TEXT = 'session limit exceeded for tenant'
BODY = b'{"edge_mcp_id":"e"}'
SETTINGS = {'session': {'limits': {'max_per_tenant': LIMIT}, 'cleanup': {'interval': '1h'}},
            'tenants': {name: {'max_sessions': 2} for name in ('two', 'mixed', 'cheap', 'named', 'freed', 'again')}}


@pytest.fixture(scope='module', params=['sqlite', 'postgres'])
def store(request):
    return request.param


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('limits')


@pytest.fixture(scope='module')
def node(folder, store, request):
    """One Holdfast for most of this; a recording server behind it that gets handles."""
    cluster = request.getfixturevalue('cluster') if store == 'postgres' else None
    home = folder / store
    home.mkdir()
    (up, _), (plain, _) = stdio_server(home, 'up'), stdio_server(home, 'plain', handles='never')
    one = Walk(home, SETTINGS, cluster, servers={'up': up, 'plain': plain})
    yield one
    one.hf.close()


@pytest.fixture(scope='module')
def second(folder, node):
    """Another node on the same PostgreSQL."""
    if not node.url:
        pytest.skip('SQLite has one owner')
    home = folder / 'second'
    home.mkdir()
    one = Walk(home, SETTINGS, node.cluster, node.url, env={**shared_keys(node.hf)})
    yield one
    one.hf.close()


def at_once(jobs):
    """Runs them all in threads that begin together; their results in order."""
    results, gate = [None] * len(jobs), threading.Barrier(len(jobs))

    def work(i):
        gate.wait(60)
        results[i] = jobs[i]()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def creates(hf, headers, n, key=None):
    """n creates, each on a connection that is open already; key(i) is its Idempotency-Key."""
    def one(i):
        connection = Connection(hf.port, timeout=60)
        fields = {**headers, **({'Idempotency-Key': key(i)} if key else {})}

        def send():
            with connection:
                return connection.request('POST', '/api/v1/sessions', fields, BODY)
        return send
    return [one(i) for i in range(n)]


def check_split(replies, n=LIMIT):
    """Exactly n got in, under names of their own, and the others were told in the seed's words."""
    made = [r for r in replies if r.status == 201]
    full = [r for r in replies if r.status == 429]
    assert (len(made), len(full)) == (n, len(replies) - n), sorted({r.status for r in replies})
    assert len({r.json()['session_id'] for r in made}) == n
    for reply in full:
        refused(reply, 429, 'session_limit', TEXT)
        assert int(reply.header('retry-after')) > 0


def test_200_creates_at_once_at_a_limit_of_100_make_exactly_100(node):
    check_split(at_once(creates(node.hf, node.key('crowd').headers, 2 * LIMIT)))
    assert node.stored.counted('crowd') == LIMIT
    assert node.metrics('crowd')['holdfast_sessions_counted{tenant_id="crowd"}'] == LIMIT


def test_from_two_nodes_at_once_it_is_exactly_100_in_all(node, second):
    headers = node.key('shared').headers
    check_split(at_once(creates(node.hf, headers, LIMIT) + creates(second.hf, headers, LIMIT)))
    assert node.stored.counted('shared') == LIMIT


def test_with_a_key_each_creates_repeated_make_exactly_100(node):
    headers = node.key('keyed').headers
    first = at_once(creates(node.hf, headers, 2 * LIMIT, lambda i: f'k{i}'))
    check_split(first)
    again = at_once(creates(node.hf, headers, 2 * LIMIT, lambda i: f'k{i}'))
    for before, after in zip(first, again):
        assert after.status == before.status and (before.status == 429 or after.body == before.body)
    assert node.stored.counted('keyed') == LIMIT
    assert len(node.stored.rows('idempotency', "tenant_id = 'keyed'")) == LIMIT  # a refusal is not kept


def until_answered(send):
    """Repeats what is under way elsewhere until it has its answer."""
    while True:
        reply = send()
        if reply.status != 409:
            return reply
        refused(reply, 409, 'idempotency_in_flight')
        assert int(reply.header('retry-after')) > 0


def same_key(hosts, headers, key, n):
    def one(i):
        hf = hosts[i % len(hosts)]
        return lambda: until_answered(lambda: hf.request('POST', '/api/v1/sessions', {**headers, 'Idempotency-Key': key}, BODY))
    return at_once([one(i) for i in range(n)])


def check_one(node, tenant, replies):
    assert {r.status for r in replies} == {201} and len({r.body for r in replies}) == 1
    row, = node.stored.rows('edge_mcp_sessions', f"tenant_id = '{tenant}'")
    assert row['session_id'] == replies[0].json()['session_id'] and node.stored.counted(tenant) == 1
    assert sum(r.header('idempotency-replayed') is None for r in replies) <= 1


def test_one_key_a_hundred_times_at_once_is_one_row_and_one_reply(node):
    check_one(node, 'once', same_key([node.hf], node.key('once').headers, 'same', LIMIT))


def test_one_key_through_two_nodes_at_once_is_one_row_and_one_reply(node, second):
    check_one(node, 'once2', same_key([node.hf, second.hf], node.key('once2').headers, 'same', LIMIT))


def test_one_key_with_kill_9_in_between_is_one_row_and_one_reply(node):
    headers, replies, lock = node.key('killed').headers, [], threading.Lock()

    def work():
        while True:
            try:
                reply = node.hf.request('POST', '/api/v1/sessions', {**headers, 'Idempotency-Key': 'same'}, BODY)
            except (OSError, EOFError):
                continue  # it is being killed; a client asks again
            if reply.status == 201:
                with lock:
                    replies.append(reply)
                return
            assert reply.status in (409, 503), reply
    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads[:10]:
        thread.start()
    wait_for(lambda: replies, 'one answer')
    node.hf.kill()
    for thread in threads[10:]:
        thread.start()
    node.hf.start()
    for thread in threads:
        thread.join(60)
    assert len(replies) == 20
    check_one(node, 'killed', replies[:1])
    assert len({r.body for r in replies}) == 1


def keyed_call(node, tenant, key):
    return node.client(tenant, '/mcp/plain').call('counter', meta={'session_id': key})


def test_sessions_of_calls_and_of_rest_count_together(node):
    api = node.api('mixed')
    made = api.create()['session_id']
    assert keyed_call(node, 'mixed', 'thread').text == '1' and node.stored.counted('mixed') == 2
    refused(api.post('/sessions', {'edge_mcp_id': 'e'}), 429, 'session_limit', TEXT)
    over = keyed_call(node, 'mixed', 'another')
    assert over.status == 200 and over.result['isError'] is True and over.text == TEXT
    over = node.client('mixed', '/mcp/plain').call('counter', headers={'mcp-client-id': 'ann'})
    assert over.result['isError'] is True and over.text == TEXT
    assert keyed_call(node, 'mixed', 'thread').text == '2'  # who is in, stays in
    assert api.delete('/sessions/' + made).status == 200
    assert keyed_call(node, 'mixed', 'another').text == '1'
    refused(api.post('/sessions', {'edge_mcp_id': 'e'}), 429, 'session_limit', TEXT)
    assert node.stored.counted('mixed') == 2
    rows = node.stored.rows('edge_mcp_sessions', "tenant_id = 'mixed'")
    assert sorted(r['origin'] for r in rows) == ['keyed', 'keyed', 'rest']  # the refused left no row


def test_calls_and_creates_at_once_share_what_is_left(node):
    api, jobs = node.api('two'), []
    for i in range(10):
        jobs.append(lambda: api.post('/sessions', {'edge_mcp_id': 'e'}).status == 201)
        jobs.append(lambda i=i: 'isError' not in keyed_call(node, 'two', f'k{i}').result)
    assert sum(at_once(jobs)) == 2 == node.stored.counted('two')


def test_ending_one_frees_exactly_one_place(node):
    api = node.api('freed')
    names = [api.create()['session_id'] for _ in range(2)]
    for _ in range(3):
        replies = at_once([lambda: api.delete('/sessions/' + names[0])] * 5)
        assert sorted(r.status for r in replies) == [200, 404, 404, 404, 404]
        replies = at_once([lambda: api.post('/sessions', {'edge_mcp_id': 'e'})] * 6)
        check_split(replies, 1)
        names[0] = next(r.json()['session_id'] for r in replies if r.status == 201)
        assert node.stored.counted('freed') == 2


def test_what_nobody_named_never_counts(node):
    for _ in range(4):
        assert node.client('cheap', '/mcp/plain').connect().call('counter').text == '1'  # born of a transport
    for count in ('1', '2'):
        assert node.client('cheap', '/mcp/plain').call('counter').text == count  # derived
    handles = [handle_of(node.client('cheap', '/mcp/up').call('counter')) for _ in range(4)]  # provisional
    assert len(set(handles)) == 4 and node.stored.counted('cheap') == 0
    rows = node.stored.rows('edge_mcp_sessions', "tenant_id = 'cheap'")
    assert sorted(r['origin'] for r in rows) == ['derived'] + ['injected'] * 4 + ['transport'] * 4
    assert not any(r['counted'] for r in rows) and all(bool(r['provisional']) == (r['origin'] == 'injected') for r in rows)
    assert [node.api('cheap').create()['status'] for _ in range(2)] == ['active', 'active']


def handle_of(reply):
    texts = [b['text'] for b in reply.result['content'] if b['type'] == 'text']
    return re.fullmatch(r'\[session: (ses_[A-Za-z0-9_-]{43})\]', texts[-1]).group(1)


def name_it(node, tenant, way, handle):
    client = node.client(tenant, '/mcp/up')
    if way == 'argument':
        return client.call('counter', {'session_id': handle})
    if way == 'meta':
        return client.call('counter', meta={'session_id': handle})
    return client.call('counter', headers={'Mcp-Session-Id': handle})


def unnamed(node, tenant, origin):
    """The handle of a new session that nobody has named."""
    client = node.client(tenant, '/mcp/up' if origin == 'injected' else '/mcp/plain')
    if origin == 'injected':
        return handle_of(client.call('counter'))
    if origin == 'transport':
        client.connect()
    client.call('counter')
    return node.api(tenant).get('/sessions?limit=1').json()['sessions'][0]['session_id']


@pytest.mark.parametrize('way', ['argument', 'header', 'meta'])
@pytest.mark.parametrize('origin', ['injected', 'transport', 'derived'])
def test_a_session_counts_from_the_call_that_names_it(node, origin, way):
    api, tenant = node.api('named'), 'named'
    for session in api.get('/sessions').json()['sessions']:
        api.delete('/sessions/' + session['session_id'])
    handle = unnamed(node, tenant, origin)
    before = node.stored.session(handle, tenant)
    assert before['origin'] == origin and before['counted'] is False and bool(before['provisional']) == (origin == 'injected')
    assert 'isError' not in name_it(node, tenant, way, handle).result
    after = node.stored.session(handle, tenant)
    assert after['counted'] is True and not after['provisional'] and node.stored.counted(tenant) == 1
    api.create()
    late = unnamed(node, tenant, 'injected')
    over = name_it(node, tenant, way, late)
    assert over.result['isError'] is True and over.text == TEXT and node.stored.counted(tenant) == 2
    assert node.stored.session(late, tenant)['provisional']
    assert 'isError' not in name_it(node, tenant, way, handle).result


def test_an_expired_one_takes_no_place_before_any_job_has_come(node):
    api = node.api('again')
    names = [api.create(ttl='300ms')['session_id'] for _ in range(2)]
    wait_for(lambda: all(api.session(n)['status'] == 'expired' for n in names), 'their end')
    check_split(at_once([lambda: api.post('/sessions', {'edge_mcp_id': 'e'})] * 6), 2)
    assert len(api.get('/sessions').json()['sessions']) == 2
    assert node.stored.counted('again') == 4  # the job, which tells of them, will find them
    assert node.metrics('again')['holdfast_sessions_counted{tenant_id="again"}'] == 2


def test_the_limit_is_each_tenants_own(node):
    assert node.api('fresh').create()['status'] == 'active'
    assert Rest(node.hf, node.key('crowd').headers).post('/sessions', {'edge_mcp_id': 'e'}).status == 429
