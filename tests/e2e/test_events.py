# SPDX-License-Identifier: Apache-2.0
"""Live events over REST: each once and in order, whatever happens to the connection and to the program."""
import random
import time

import pytest
from commands import events
from harness import LONG, Connection, has_sanitizer, wait_for
from keys import create, revoke
from postgres import shared_keys
from rest import Rest, refused
from test_ages import DAY, Slept
from watchers import Load, Refused, Sse, Watcher, WebSocket, assert_same, call, ids_of, metric, target

BOTH = pytest.mark.parametrize('transport', [Sse, WebSocket])

TOTAL = 100_000 if LONG else 4_000


@pytest.fixture
def hf(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never', share='all')
    return holdfast({'up': entry})


@pytest.fixture
def opened():
    """Things to close."""
    found = []
    yield lambda one: found.append(one) or one
    for one in found:
        one.close()


def test_watch__begins_after_a_position_or_now(hf, opened):
    call(hf, 3)
    now, all_of_them = opened(Watcher(hf, after=None)), opened(Watcher(hf))
    now.wait_connected()
    wait_for(lambda: now.last is not None, 'the first position')
    known = ids_of(hf)
    all_of_them.wait(known[-1])
    call(hf, 2)
    last = ids_of(hf)
    for one in (now, all_of_them):
        one.wait(last[-1])
    assert_same(all_of_them.ids, last)
    assert_same(now.ids, last[len(known):])
    line = Sse(hf, after=known[2])
    found = []
    for data in line.events():
        found.append(data)
        if data['id'] == last[-1]:
            break
    line.close()
    assert [one['id'] for one in found] == last[3:]
    assert found == [one for one in events(hf, bodies=False) if one['id'] in last[3:]]


def test_watch__the_header_of_a_stream_keeps_proxies_from_holding_it_back(hf):
    line = Sse(hf)
    fields = {name.lower(): value for name, value in line.headers}
    line.close()
    assert fields['content-type'] == 'text/event-stream' and 'no-cache' in fields['cache-control']
    assert fields['x-accel-buffering'] == 'no' and fields['x-request-id']
    with hf.connection() as connection:
        connection.send(connection.head_bytes('HEAD', '/api/v1/events', None, b''))
        assert connection.read_head()[0] == 200


def test_watch__clients_are_told_to_come_back_at_different_times(hf):
    found = set()
    for _ in range(4):
        line = Sse(hf, after='0')
        call(hf)
        next(line.events())
        line.close()
        assert 1000 <= line.retry_ms < 5000
        found.add(line.retry_ms)
    assert len(found) > 1


@pytest.mark.parametrize('query, says', [
    ({'types': 'nonsense'}, 'types are intent, outcome'), ({'outcome': 'fine'}, 'outcomes are ok'),
    ({'types': 'intent,,note'}, 'an item of types'), ({'tool': ','.join(map(str, range(33)))}, 'at most 32'),
    ({'after': 'soon'}, 'is no position'), ({'after': '1.2,1.3'}, 'is no position'),
    ({'after': '77.1'}, 'another database; begin without a position'), ({'kind': 'note'}, 'there is no query parameter "kind"')])
def test_watch__what_cannot_be_is_refused_before_the_stream(hf, query, says):
    with pytest.raises(Refused) as no:
        Sse(hf, **query)
    assert says in refused(no.value.reply, 400, 'bad_input').json()['detail']
    assert metric(hf, 'holdfast_event_streams') == 0


def test_watch__a_last_event_id_that_is_none_is_refused_and_wins_over_after(hf):
    with pytest.raises(Refused) as no:
        Sse(hf, after='0', last='bad')
    assert no.value.reply.status == 400
    call(hf, 2)
    known = ids_of(hf)
    line = Sse(hf, after='0', last=known[-2])
    assert next(line.events())['id'] == known[-1]
    line.close()


@BOTH
def test_filters__pass_what_fits_all_of_them(hf, opened, transport):
    outcomes = opened(Watcher(hf, transport=transport, types='outcome', server='up'))
    tools = opened(Watcher(hf, transport=transport, tool=['up__echo', 'fail'], types=['intent', 'note']))
    errors = opened(Watcher(hf, transport=transport, outcome='tool_error,error'))
    nobody = opened(Watcher(hf, transport=transport, server='elsewhere').wait_connected())
    call(hf, 2)
    with hf.client('/mcp/up') as client:
        client.connect()
        client.call('fail', {})
        client.call('counter', {})
    call(hf)
    whole = events(hf, bodies=False)
    outcomes.wait([one['id'] for one in whole if one['kind'] == 'outcome'][-1])
    assert outcomes.ids == [one['id'] for one in whole if one['kind'] == 'outcome']
    wanted = [one['id'] for one in whole if one['kind'] in ('intent', 'note') and one.get('tool') in ('echo', 'fail')]
    tools.wait(wanted[-1])
    assert tools.ids == wanted
    assert errors.ids == [one['id'] for one in whole if one.get('outcome') in ('tool_error', 'error')]
    assert nobody.connections == 1 and not nobody.ids


def test_watch__many_calls_and_lost_connections_and_kills_lose_nothing(hf, opened):
    chance = random.Random(7)
    watchers = [opened(Watcher(hf)), opened(Watcher(hf, transport=WebSocket))]
    load = opened(Load(hf, TOTAL).start())
    kills = sorted(chance.sample(range(TOTAL // 10, TOTAL), 3 if LONG else 2))
    while load.thread.is_alive():
        time.sleep(chance.uniform(0.01, 0.1))
        chance.choice(watchers).drop()
        if kills and load.done > kills[0]:
            kills.pop(0)
            hf.restart()
    assert not kills
    call(hf)
    whole = ids_of(hf)
    for one in watchers:
        one.wait(whole[-1], 120)
        assert one.connections > 3  # the first, those after the kills, and one that was dropped
        assert_same(one.ids, whole)
    assert len(whole) >= TOTAL and not any(one.notices for one in watchers)


@BOTH
def test_visibility__is_that_of_the_caller(holdfast, stdio_server, opened, transport):
    entry, _ = stdio_server('up', handles='never', share='all')
    other, _ = stdio_server('other', handles='never', share='all')
    hf = holdfast({'up': entry, 'other': other}, {'auth': 'required'})
    keys = {'admin': create(hf, '--tenant', 'acme', '--role', 'admin'), 'auditor': create(hf, '--tenant', 'acme', '--role', 'auditor'),
            'member': create(hf, '--tenant', 'acme', '--role', 'member'), 'second': create(hf, '--tenant', 'acme', '--role', 'member'),
            'limited': create(hf, '--tenant', 'acme', '--role', 'admin', '--server', 'up'),
            'stranger': create(hf, '--tenant', 'rival', '--role', 'admin')}
    watchers = {name: opened(Watcher(hf, transport=transport, headers=key.headers)) for name, key in keys.items()}
    local = opened(Watcher(hf, over_socket=True))
    rival = opened(Watcher(hf, over_socket=True, tenant='rival'))
    for name in ('member', 'second', 'stranger'):
        for path in ('/mcp/up', '/mcp/other'):
            call(hf, path=path, headers=keys[name].headers)
    whole = events(hf, bodies=False)
    calls = [one for one in whole if one['kind'] in ('intent', 'outcome')]
    owner = {name: 'key:' + key.id for name, key in keys.items()}
    local.wait(whole[-1]['id'])
    assert local.ids == [one['id'] for one in whole]
    rivals = [one['id'] for one in whole if one['tenant'] == 'rival']
    for one in (rival, watchers['stranger']):
        one.wait(rivals[-1])
        assert one.ids == rivals
    acme = [one['id'] for one in whole if one['tenant'] == 'acme']
    for name in ('admin', 'auditor'):
        watchers[name].wait(acme[-1])
        assert watchers[name].ids == acme
    for name in ('member', 'second'):
        own = [one['id'] for one in whole if one['tenant'] == 'acme' and one['owner'] == owner[name]]
        watchers[name].wait(own[-1])
        assert watchers[name].ids == own and len(own) >= 4
    seen = [one['id'] for one in calls if one['tenant'] == 'acme' and one['server'] == 'up']
    watchers['limited'].wait(seen[-1])
    assert [one['id'] for one in watchers['limited'].events if one['kind'] in ('intent', 'outcome')] == seen
    assert not any(one.get('server') == 'other' for one in watchers['limited'].events)
    refused(Rest(hf, keys['admin'].headers).get('/events?tenant=rival'), 403, 'denied')


def test_credentials__a_revoked_one_ends_its_streams(holdfast):
    hf = holdfast(None, {'auth': 'required'})
    key, kept = create(hf, '--role', 'admin'), create(hf, '--role', 'admin')
    line, other = Sse(hf, headers=key.headers), Sse(hf, headers=kept.headers)
    wait_for(lambda: metric(hf, 'holdfast_event_streams', kept.headers) == 2, 'both streams')
    revoke(hf, key)
    list(line.events())  # a complete end, not a cut
    line.close()
    with pytest.raises(Refused) as no:
        Sse(hf, headers=key.headers, last=line.last)
    assert no.value.reply.status == 401
    assert metric(hf, 'holdfast_event_streams', kept.headers) == 1
    other.close()


@pytest.mark.parametrize('option, says', [
    ('max_per_owner', 'for this key or user'), ('max_per_tenant', 'for this tenant'), ('max_streams', 'on this node')])
def test_limits__are_taken_at_the_limit_and_refused_past_it(holdfast, opened, option, says):
    hf = holdfast(None, {'auth': 'required', 'events': {option: 2}})
    first, second = (create(hf, '--tenant', 'acme', '--role', 'admin') for _ in range(2))
    third = create(hf, '--tenant', 'rival', '--role', 'admin')
    mixed = second if option != 'max_per_owner' else first
    lines = [opened(Sse(hf, headers=first.headers)), opened(Sse(hf, headers=mixed.headers))]
    with pytest.raises(Refused) as no:
        Sse(hf, headers=first.headers)
    reply = refused(no.value.reply, 429, 'limit')
    assert f'2 streams of events are open {says}' in reply.json()['detail'] and option in reply.json()['detail']
    assert reply.header('retry-after')
    if option == 'max_streams':
        with pytest.raises(Refused):
            Sse(hf, over_socket=True)
    else:
        opened(Sse(hf, headers=third.headers))
        for _ in range(3):
            opened(Sse(hf, over_socket=True))
    lines[0].close()
    wait_for(lambda: can_open(hf, first), 'a free place')


def can_open(hf, key):
    try:
        Sse(hf, headers=key.headers).close()
    except Refused:
        return False
    return True


def resident_kib(hf):
    with open(f'/proc/{hf.process.pid}/status', encoding='utf-8') as file:
        return next(int(line.split()[1]) for line in file if line.startswith('VmRSS:'))


@BOTH
def test_slow__a_client_that_stops_reading_costs_one_window_and_is_told_to_resync(holdfast, stdio_server, opened, transport):
    """With --long it stops for a minute at 1,000 events/s and the patience that is usual."""
    entry, _ = stdio_server('up', handles='never', share='all')
    hf = holdfast({'up': entry}, None if LONG else {'events': {'patience': '1s'}})
    own = {'tenant': 'default'} if transport is Sse else {'query': '?tenant=default'}
    reader, idle = opened(Watcher(hf)), opened(Watcher(hf, transport=transport, over_socket=True, **own))
    call(hf, 3)
    reader.wait(ids_of(hf)[-1])
    wait_for(lambda: idle.ids, 'the first events')
    idle.may_read.clear()
    load = opened(Load(hf, 10 ** 9, pace_s=0.02).start())
    before = len(reader.ids)
    wait_for(lambda: len(reader.ids) > before + 500, 'some load')
    level = resident_kib(hf)
    if LONG:
        began, begun = time.monotonic(), len(reader.ids)
        time.sleep(60)
        print(f'{(len(reader.ids) - begun) / (time.monotonic() - began):.0f} events/s')
    else:
        wait_for(lambda: len(reader.ids) > before + 4000, 'more than the kernel holds', 100)
    assert resident_kib(hf) < level + 16 * 1024 or has_sanitizer(), (level, resident_kib(hf))
    print(f'resident {level} KiB before, {resident_kib(hf)} KiB after')
    load.close()
    idle.may_read.set()
    wait_for(lambda: idle.notices, 'the notice')
    notice = idle.notices[0]
    assert notice['reason'] == 'slow' and notice['ends'] is True and 'begin again after this position' in notice['detail']
    assert metric(hf, 'holdfast_event_resyncs_total') >= 1
    whole = ids_of(hf)
    for one in (idle, reader):
        one.wait(whole[-1], 120)  # idle: on its next connection
        assert_same(one.ids, whole)
    assert idle.connections > 1


def test_removed__events_are_told_of_and_the_stream_goes_on(holdfast, stdio_server, tmp_path):
    slept = Slept(tmp_path)
    entry, _ = stdio_server('up', handles='never', share='all')
    hf = holdfast({'up': entry}, {'audit': {'keep': '10d'}}, env=slept.env)
    call(hf, 10)
    known = ids_of(hf)
    slept.set(11 * DAY)
    hf.restart(kill=False)
    wait_for(lambda: known[5] not in ids_of(hf), 'the removal')
    call(hf)
    line = Sse(hf, last=known[2])
    steps = ((kind, data) for _, kind, data in line.steps() if kind != 'position')
    kind, notice = next(steps)
    assert kind == 'resync' and notice['reason'] == 'removed' and notice['ends'] is False, notice
    left = [one for one in ids_of(hf) if int(one.split('.')[0]) > 1 or int(one.split('.')[1]) > int(known[2].split('.')[1])]
    assert [next(steps)[1]['id'] for _ in left] == left
    call(hf)
    assert next(steps)[1]['kind'] == 'intent'
    line.close()


def test_removed__events_of_a_tenant_are_told_to_those_who_may_see_it(holdfast, stdio_server, tmp_path):
    """Also if events of other tenants stay between them."""
    slept = Slept(tmp_path)
    entry, _ = stdio_server('up', handles='never', share='all')
    hf = holdfast({'up': entry}, {'auth': 'required', 'audit': {'keep': '10d'}, 'tenants': {'long': {'audit': {'keep': '300d'}}}}, env=slept.env)
    keys = {name: create(hf, '--tenant', name, '--role', 'admin') for name in ('short', 'long')}
    for name in ('long', 'short', 'long', 'short', 'long'):
        call(hf, path='/mcp/up', headers=keys[name].headers)
    known = {name: [one['id'] for one in events(hf, bodies=False) if one['tenant'] == name] for name in keys}
    slept.set(11 * DAY)
    hf.restart(kill=False)
    left = lambda name: [one['id'] for one in events(hf, bodies=False) if one['tenant'] == name]
    wait_for(lambda: not set(known['short']) & set(left('short')), 'the removal')
    assert set(known['long']) <= set(left('long'))
    streams = {'short': Sse(hf, after=known['long'][0], headers=keys['short'].headers),
               'long': Sse(hf, after=known['long'][0], headers=keys['long'].headers),
               'local': Sse(hf, after=known['long'][0], over_socket=True),
               'all': Sse(hf, after='0', over_socket=True)}
    for name in keys:
        call(hf, headers=keys[name].headers)
    ends = {'short': left('short')[-1], 'long': left('long')[-1]}
    for name, line in streams.items():
        notices, seen = [], []
        for _, kind, data in line.steps():
            if kind == 'resync':
                notices.append(data['reason'])
            elif kind != 'position':
                seen.append(data['id'])
                if data['id'] == ends.get(name, ends['long']):
                    break
        assert notices == ([] if name in ('long', 'all') else ['removed']), (name, notices)
        assert name == 'short' or set(known['long'][1:]) <= set(seen)
        line.close()


def test_stop__ends_the_streams_and_is_not_delayed(hf):
    lines = [Sse(hf, after='0') for _ in range(3)]
    call(hf)
    for line in lines:
        next(line.events())
    began = time.monotonic()
    hf.stop()
    assert time.monotonic() - began < 10
    for line in lines:
        list(line.events())  # a complete end, not a cut
        line.close()
    hf.start()
    again = Sse(hf, last=lines[0].last)
    call(hf)
    assert next(again.events())['id'] not in ids_of(hf)[:1]
    again.close()


@pytest.mark.parametrize('with_redis', [False, True] if LONG else [False])
def test_nodes__each_event_of_both_comes_once_on_both(holdfast, cluster, request, stdio_server, opened, with_redis):
    """A watcher goes from node to node with its position, while both record, and one is killed."""
    env = {'DATABASE_URL': cluster.database()}
    if with_redis:
        env['REDIS_URL'] = request.getfixturevalue('shared_redis')
    entry, _ = stdio_server('up', handles='never', share='all')
    first = holdfast({'up': entry}, env=env)
    second = holdfast({'up': entry}, env={**env, **shared_keys(first)})
    watchers = [opened(Watcher(first)), opened(Watcher(second, transport=WebSocket)), opened(Watcher(first))]
    loads = [opened(Load(node, 1000 if not LONG else 10000)) for node in (first, second)]
    Rest(first).create(session_id='load')
    for load in loads:
        load.thread.start()
    chance, killed = random.Random(3), False
    while any(load.thread.is_alive() for load in loads):
        time.sleep(chance.uniform(0.05, 0.2))
        watchers[2].hf = first if watchers[2].hf is second else second
        chance.choice(watchers).drop()
        if not killed and loads[1].done > 300:
            second.restart()
            killed = True
    assert killed
    call(first)
    call(second)
    whole = ids_of(first)
    for one in watchers:
        wait_for(lambda one=one: len(one.ids) >= len(whole), 'the events of both nodes')
        assert_same(one.ids, whole)
    assert len({ident.split('.')[0] for ident in whole}) >= 3


@pytest.mark.skipif(not LONG, reason='waits for a sign of life; with --long')
def test_watch__opens_while_the_store_cannot_be_read(holdfast, cluster, stdio_server):
    entry, _ = stdio_server('up', handles='never', share='all')
    hf = holdfast({'up': entry}, env={'DATABASE_URL': cluster.database()})
    call(hf, 3)
    known = ids_of(hf)
    cluster.hang()
    try:
        line = Sse(hf, after=known[0])
    finally:
        cluster.resume()
    found = line.events()
    assert [next(found)['id'] for _ in known[1:]] == known[1:]
    line.close()


def test_watch__needs_a_client_that_takes_events(hf):
    with Connection(hf.port) as line:
        line.send(line.head_bytes('GET', target(after='0'), {'Accept': 'application/json'}, b''))
        assert 'accept that' in refused(line.read_response('GET'), 400, 'bad_input').json()['detail']
