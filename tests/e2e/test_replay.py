# SPDX-License-Identifier: Apache-2.0
"""Replay: the recorded calls of a session sent again, what differs, what cannot be sent again and why, and who may."""
import json
import os
import threading

import pytest

import keys
from commands import events, on_terminal, run
from harness import PEERS, PYTHON, wait_for
from rest import Rest, refused
from test_rest_roles import key_for
from test_templates import put

ERAS = pytest.mark.parametrize('modern', [False, True], ids=['legacy', 'modern'])


class Answers:
    """tests/peers/answers.py in a folder of its own."""

    def __init__(self, folder, name='shop', **entry):
        self.folder = os.path.join(str(folder), name)
        os.mkdir(self.folder)
        self.entry = {'command': PYTHON, 'args': ['-S', '-E', os.path.join(PEERS, 'answers.py'), self.folder], **entry}

    def change(self, **changes):
        with open(os.path.join(self.folder, 'changes'), 'w', encoding='utf-8') as file:
            json.dump(changes, file)

    def calls(self):
        """(pid, tool, arguments) of every call, oldest first."""
        path = os.path.join(self.folder, 'calls')
        if not os.path.exists(path):
            return []
        with open(path, encoding='utf-8') as file:
            return [tuple(json.loads(line)) for line in file]


@pytest.fixture
def shop(tmp_path):
    return Answers(tmp_path)


@pytest.fixture
def api(rest, shop):
    made = rest({'shop': shop.entry})
    put(made, 'full', {'audit': 'full', 'audit_body': '64KiB'})
    return made


def client_of(hf, modern=False, path='/mcp/shop', headers=None):
    client = hf.client(path, modern=modern, **({'headers': headers} if headers else {}))
    return client if modern else client.connect()


def recorded(api, calls, modern=False, template='full', headers=None):
    """A session in which these calls, (tool, arguments), were made."""
    session = api.create(**({'template': template} if template else {}))
    client = client_of(api.holdfast, modern, headers=headers)
    for tool, arguments in calls:
        client.call(tool, arguments, meta={'session_id': session['session_id']})
    return session


def replay(api, session, status=200, **options):
    """(head, lines of calls, summary)"""
    reply = api.holdfast.request('POST', f"/api/v1/sessions/{session['session_id']}/replay",
                                 {**api.headers, 'Content-Type': 'application/json'}, json.dumps(options).encode())
    assert reply.status == status, reply
    if status != 200:
        api.check(reply)
        return reply
    assert reply.header('content-type') == 'application/x-ndjson' and reply.header('x-request-id'), reply
    lines = [json.loads(line) for line in reply.body.decode().split('\n') if line]
    assert set(lines[0]) == {'replay'} and set(lines[-1]) == {'summary'}, lines
    return lines[0]['replay'], [line['call'] for line in lines[1:-1]], lines[-1]['summary']


def statuses(calls):
    return [c['status'] for c in calls]


LOOKS = [('look', {'item': 'tea'}), ('fail', {}), ('refuse', {'a': 1}), ('look', {'item': 'coffee', 'n': 1.50})]


@ERAS
def test_same_server__has_no_difference_and_is_a_session_of_its_own(api, shop, modern):
    session = recorded(api, LOOKS, modern)
    before = shop.calls()
    head, calls, summary = replay(api, session)
    assert statuses(calls) == ['same'] * 4 and summary['same'] == summary['calls'] == 4 and 'stopped' not in summary
    again = shop.calls()[len(before):]
    assert [c[1:] for c in again] == [c[1:] for c in before]
    assert {c[0] for c in again}.isdisjoint({c[0] for c in before}), 'the replay used the process of the session'
    own = api.session(head['session_id'])
    assert own['id'] != session['id'] and own['lineage'] == {'kind': 'replay', 'session': session['id']}
    assert own['status'] == 'terminated' and own['setup']['audit'] == 'full', own
    made = [e for e in events(api.holdfast) if e.get('session_id') == own['id'] and e['kind'] == 'intent']
    assert [e['tool'] for e in made] == [t for t, _ in LOOKS]
    told = {e['method']: e for e in events(api.holdfast) if e['kind'] == 'system' and 'session/replay' in e.get('method', '')}
    assert own['id'] in told['session/replay']['error'] and told['session/replay']['session_id'] == session['id']
    assert '4 same, 0 different' in told['session/replayed']['error'] and told['session/replayed']['session_id'] == own['id']
    # A replay is recorded as its session was, so it can be replayed in turn.
    _, calls, _ = replay(api, own)
    assert statuses(calls) == ['same'] * 4


def test_thousand_calls__have_no_difference(api, shop):
    session = recorded(api, [('look', {'item': f'item {n}', 'n': n}) for n in range(1000)])
    _, calls, summary = replay(api, session)
    assert summary['same'] == 1000 and [c['number'] for c in calls] == list(range(1, 1001))
    shop.change(prices={'item 7': 70, 'item 500': -1, 'item 999': 0.5}, shuffled=True)
    _, calls, summary = replay(api, session)
    differing = [c for c in calls if c['status'] != 'same']
    assert [c['number'] for c in differing] == [8, 501, 1000] and summary['different'] == 3 and summary['same'] == 997
    assert differing[1]['differences'] == [
        {'path': '/content/0/text/price', 'kind': 'changed', 'recorded': '8', 'now': '-1.0'}]
    _, calls, summary = replay(api, session, ignore=['/content/*/text/price'])
    assert summary['same'] == 1000
    _, calls, summary = replay(api, session, stop_on='difference')
    assert len(calls) == 8 and summary['stopped'] == 'the first call that was not the same'


def test_changed_answers__of_every_kind_are_named(api, shop):
    session = recorded(api, LOOKS)
    shop.change(gone=['fail'], prices={'tea': {'eur': 1}})
    _, calls, summary = replay(api, session)
    assert statuses(calls)[0] == 'different' and calls[0]['differences'][0]['path'] == '/content/0/text/price'
    # The catalog still has the tool, its server does not: an error where there was a result.
    assert calls[1]['status'] == 'different' and calls[1]['differences'][0]['path'] == ''
    assert 'there is no such thing' in calls[1]['differences'][0]['now']
    assert statuses(calls)[2:] == ['same', 'same'] and summary['different'] == 2


def test_tool_that_is_gone__is_a_difference(api, shop):
    session = recorded(api, LOOKS)
    shop.change(gone=['refuse'])
    api.holdfast.restart()
    _, calls, _ = replay(api, session)
    assert statuses(calls) == ['same', 'same', 'different', 'same'] and calls[2]['reason'] == 'shop has no tool refuse now'


def test_writes__are_sent_only_when_asked_for(api, shop):
    session = recorded(api, [('keep', {'a': 1}), ('look', {'item': 'x'}), ('keep', {'a': 2})])
    _, calls, summary = replay(api, session)
    assert statuses(calls) == ['skipped', 'same', 'skipped'] and 'not annotate this tool as read-only' in calls[0]['reason']
    assert len([c for c in shop.calls() if c[1] == 'keep']) == 2 and 'advice' not in summary
    _, calls, _ = replay(api, session, writes=True)
    assert statuses(calls) == ['different', 'same', 'different']
    assert calls[0]['differences'] == [{'path': '/content/0/text', 'kind': 'changed', 'recorded': '"1"', 'now': '"3"'}]
    assert len([c for c in shop.calls() if c[1] == 'keep']) == 4


def test_against__sends_every_call_to_another_server(rest, tmp_path):
    old, new = Answers(tmp_path, 'old'), Answers(tmp_path, 'new')
    new.change(prices={'tea': 5})
    api = rest({'shop': old.entry, 'fresh': new.entry})
    put(api, 'full', {'audit': 'full'})
    session = recorded(api, LOOKS)
    head, calls, _ = replay(api, session, against='fresh')
    assert head['against'] == 'fresh' and statuses(calls) == ['different', 'same', 'same', 'same']
    assert len(new.calls()) == 4 and len(old.calls()) == 4
    assert api.session(head['session_id'])['lineage'] == {'kind': 'replay', 'session': session['id'], 'against': 'fresh'}
    refused(replay(api, session, 404, against='nowhere'), 404, 'not_found')
    _, calls, summary = replay(api, session, only=['shop__look'])
    assert [c['tool'] for c in calls] == ['look', 'look'] and summary['calls'] == 2
    _, calls, summary = replay(api, session, only=['fresh__*'])
    assert calls == [] and summary['calls'] == 0


def test_bodies_that_are_not_whole__are_named_call_by_call(rest, tmp_path):
    plain, digest = Answers(tmp_path, 'plain'), Answers(tmp_path, 'digests', audit='digest')
    api = rest({'shop': plain.entry, 'digest': digest.entry}, settings={'limits': {'audit_body': '4KiB'}})
    session = api.create()
    client, other = client_of(api.holdfast), client_of(api.holdfast, path='/mcp/digest')
    meta = {'session_id': session['session_id']}
    client.call('look', {'item': 'tea'}, meta=meta)
    client.call('look', {'item': 'password=hunter2-hunter2'}, meta=meta)
    client.call('look', {'item': 'x' * 5000}, meta=meta)
    other.call('look', {'item': 'tea'}, meta=meta)
    _, calls, summary = replay(api, session)
    assert statuses(calls) == ['same', 'skipped', 'skipped', 'skipped'], calls
    reasons = [c.get('reason') for c in calls]
    assert reasons[1] == 'its arguments contain redacted secrets'
    assert reasons[2].startswith('its arguments were cut: ') and reasons[2].endswith("bytes are more than the server's audit_body keeps")
    assert reasons[3] == 'its arguments were recorded as a digest only (audit: digest)'
    assert '"audit":"full"' in summary['advice']


def test_result_that_was_cut__is_compared_by_its_digest(rest, tmp_path):
    """The arguments fit, the result does not."""
    shop = Answers(tmp_path)
    shop.change(prices={'tea': 'x' * 8000})
    api = rest({'shop': shop.entry}, settings={'limits': {'audit_body': '4KiB'}})
    session = recorded(api, [('look', {'item': 'tea'})], template=None)
    _, calls, summary = replay(api, session)
    assert statuses(calls) == ['same'] and 'advice' not in summary
    shop.change(prices={'tea': 'y' * 8000})
    _, calls, summary = replay(api, session)
    assert statuses(calls) == ['unknown'] and summary['unknown'] == 1 and 'advice' in summary
    assert calls[0]['reason'].startswith('the bytes of the recorded result were cut: ')
    assert calls[0]['reason'].endswith('by their digest, other bytes came now')


def test_calls_without_an_answer__are_not_sent_again(rest, stdio_server):
    entry, _ = stdio_server('rec', timeout='2s')
    api = rest({'rec': entry})
    put(api, 'full', {'audit': 'full'})
    session = api.create(template='full')
    client, meta = client_of(api.holdfast, path='/mcp/rec'), {'session_id': session['session_id']}
    client.call('hang', {}, meta=meta)
    client.call('nothing', {}, meta=meta)
    client.rpc('resources/read', {'uri': 'test://one', '_meta': meta})
    reported = api.post(f"/sessions/{session['session_id']}/tools", {'tool_name': 'edit', 'arguments': {}, 'result': {}})
    assert reported.status in (200, 201), reported
    _, calls, summary = replay(api, session, writes=True)
    reasons = {(c.get('tool'), c['status']): c.get('reason', '') for c in calls}
    assert 'did not answer in time' in reasons['hang', 'skipped'], calls
    assert reasons['test://one', 'skipped'] == 'results of this method are not recorded'
    assert 'the client ran it elsewhere' in reasons['edit', 'skipped']
    assert summary['skipped'] + summary['different'] == len(calls)


def test_roles__owner_or_admin_and_others_see_nothing(rest, tmp_path):
    shop = Answers(tmp_path)
    api = rest({'shop': shop.entry})
    tenant = ['--tenant', 'acme']
    admin, owner, other, auditor = (key_for(api, *tenant, '--role', role) for role in ('admin', 'member', 'member', 'auditor'))
    narrow = key_for(api, *tenant, '--role', 'admin', '--server', 'elsewhere')
    put(admin, 'full', {'audit': 'full'})
    session = recorded(owner, LOOKS[:1], headers=owner.headers)
    for someone, code in ((owner, 200), (admin, 200)):
        head, calls, _ = replay(someone, session)
        assert statuses(calls) == ['same'], calls
    assert admin.session(head['session_id'])['lineage']['session'] == session['id']
    refused(owner.get('/sessions/' + head['session_id']), 404, 'session_not_found')
    unknown = refused(replay(other, {'session_id': 'nothing-of-this-name'}, 404), 404, 'session_not_found').json()
    foreign = refused(replay(other, session, 404), 404, 'session_not_found').json()
    assert {**foreign, 'request_id': ''} == {**unknown, 'request_id': ''}
    refused(replay(auditor, session, 403), 403, 'denied')
    # A key that is limited to other servers sees none here, in the words for a server that is not there.
    _, calls, _ = replay(narrow, session)
    assert statuses(calls) == ['failed'] and calls[0]['reason'].startswith('there is no server shop here now')
    refused(replay(narrow, session, 404, against='shop'), 404, 'not_found')


def test_held_tool__is_refused_as_in_any_call(rest, tmp_path):
    """Scopes of tools hold too."""
    shop = Answers(tmp_path)
    api = rest({'shop': shop.entry})
    put(api, 'full', {'audit': 'full'})
    session = recorded(api, LOOKS[:2])
    narrow = key_for(api, '--role', 'admin', '--tool', 'shop__fail')
    _, calls, summary = replay(narrow, session)
    assert statuses(calls) == ['refused', 'same'] and summary['refused'] == 1


def test_quota__is_waited_for(rest, tmp_path):
    shop = Answers(tmp_path)
    api = rest({'shop': shop.entry})
    key = key_for(api, '--role', 'admin', '--limit', 'requests=30/s')
    put(api, 'full', {'audit': 'full'})
    session = recorded(api, [('look', {'item': str(n)}) for n in range(80)])
    _, _, summary = replay(key, session)
    assert summary['same'] == 80, summary


@pytest.mark.parametrize('options', [{'ignore': ['content']}, {'ignore': ['/a'] * 65}, {'only': ['']}, {'stop_on': 'never ever'},
                                     {'writes': 1}, {'nothing': 1}, {'against': ''}])
def test_options_that_are_wrong__are_refused(api, options):
    session = api.create()
    assert replay(api, session, 400, **options).json()['code'] == 'bad_input'


def test_empty_session__is_an_empty_replay(api):
    _, calls, summary = replay(api, api.create())
    assert calls == [] and summary['calls'] == 0


def waiting(shop, tmp_path):
    """A FIFO that the call for the item `slow` waits for."""
    fifo = str(tmp_path / 'fifo')
    os.mkfifo(fifo)
    shop.change(waits=fifo)
    return fifo


def begin(api, session):
    """A replay that has begun: its open connection, behind the head of the answer."""
    connection = api.holdfast.connection()
    body = b'{}'
    connection.send(connection.head_bytes('POST', f"/api/v1/sessions/{session['session_id']}/replay",
                                          {**api.headers, 'Content-Type': 'application/json'}, body) + body)
    return connection


def open_fifo(fifo):
    with open(fifo, 'wb'):
        pass


def test_at_once__two_of_a_tenant_and_not_three(api, shop, tmp_path):
    session = recorded(api, [('look', {'item': 'slow'})])
    before = len(shop.calls())
    fifo = waiting(shop, tmp_path)
    running = []
    for n in range(2):
        thread = threading.Thread(target=lambda: running.append(replay(api, session)))
        thread.start()
        wait_for(lambda n=n: len(shop.calls()) > before + n, 'the call of a replay')
    third = refused(replay(api, session, 429), 429, 'limit')
    assert 'replays run at once' in third.json()['detail'] and third.header('retry-after')
    for _ in range(2):
        open_fifo(fifo)
    wait_for(lambda: len(running) == 2, 'the end of both replays')
    assert [statuses(calls) for _, calls, _ in running] == [['same'], ['same']]
    os.unlink(os.path.join(shop.folder, 'changes'))
    assert statuses(replay(api, session)[1]) == ['same']


def test_client_that_leaves__ends_the_replay_before_the_next_call(api, shop, tmp_path):
    session = recorded(api, [('look', {'item': 'slow'})] + [('look', {'item': str(n)}) for n in range(50)])
    before = len(shop.calls())
    fifo = waiting(shop, tmp_path)
    connection = begin(api, session)
    wait_for(lambda: len(shop.calls()) > before, 'the call of the replay')
    connection.close()
    open_fifo(fifo)
    told = wait_for(lambda: [e for e in events(api.holdfast) if e.get('method') == 'session/replayed'], 'the end of the replay')[0]
    assert told['error'].endswith('the client left'), told
    assert len(shop.calls()) <= before + 2
    assert api.get(f"/sessions?status=active").json()['count'] == 1


def test_credential_that_is_revoked__ends_the_replay_before_the_next_call(api, shop, tmp_path):
    key = keys.create(api.holdfast, '--role', 'admin')
    owner = Rest(api.holdfast, key.headers)
    session = recorded(owner, [('look', {'item': 'slow'}), ('look', {'item': 'tea'})], headers=key.headers)
    before = len(shop.calls())
    fifo = waiting(shop, tmp_path)
    connection = begin(owner, session)
    wait_for(lambda: len(shop.calls()) > before, 'the call of the replay')
    keys.revoke(api.holdfast, key)
    open_fifo(fifo)
    told = wait_for(lambda: [e for e in events(api.holdfast) if e.get('method') == 'session/replayed'], 'the end of the replay')[0]
    assert told['error'].endswith('the credential was revoked or has expired'), told
    assert len(shop.calls()) == before + 1
    connection.close()


def test_credential_that_is_revoked__ends_a_replay_that_waits_for_a_quota(api, shop):
    session = recorded(api, [('look', {'item': str(n)}) for n in range(10)])
    key = keys.create(api.holdfast, '--role', 'admin', '--limit', 'requests=4/m')
    before = len(shop.calls())
    connection = begin(Rest(api.holdfast, key.headers), session)
    wait_for(lambda: len(shop.calls()) == before + 3, 'the calls within the quota')
    keys.revoke(api.holdfast, key)
    told = wait_for(lambda: [e for e in events(api.holdfast) if e.get('method') == 'session/replayed'], 'the end of the replay')[0]
    assert told['error'].endswith('the credential was revoked or has expired'), told
    assert len(shop.calls()) == before + 3
    connection.close()


def test_kill__leaves_a_store_that_goes_on(api, shop, tmp_path):
    session = recorded(api, [('look', {'item': 'slow'}), ('look', {'item': 'tea'})])
    before = len(shop.calls())
    waiting(shop, tmp_path)
    connection = begin(api, session)
    wait_for(lambda: len(shop.calls()) > before, 'the call of the replay')
    api.holdfast.kill()
    connection.close()
    os.unlink(os.path.join(shop.folder, 'changes'))
    api.holdfast.start()
    _, calls, _ = replay(api, session)
    assert statuses(calls) == ['same', 'same']
    own = [s for s in api.get('/sessions?status=all').json()['sessions'] if s.get('lineage', {}).get('kind') == 'replay']
    assert len(own) == 2 and sorted(s['status'] for s in own) == ['active', 'terminated']
    assert run(api.holdfast, 'audit', 'verify').returncode == 0
    # The replay that was killed has a call without a known outcome; it is not sent again.
    killed = [s for s in own if s['status'] == 'active'][0]
    _, calls, _ = replay(api, killed)
    assert statuses(calls) == ['skipped'], calls
    assert 'whether it ran is not known' in calls[0]['reason'] or 'no outcome yet' in calls[0]['reason'], 'the lease of its node'


# The command.

def test_command__says_what_differs_and_exits_with_1(api, shop):
    hf = api.holdfast
    session = recorded(api, LOOKS + [('keep', {})])
    name = session['session_id']
    done = run(hf, 'sessions', 'replay', name)
    assert done.returncode == 0 and done.stdout == '5 calls: 4 same, 1 skipped\n', done
    assert 'skipped 1: the server does not annotate this tool as read-only' in done.stderr
    shop.change(prices={'tea': 12345})
    done = run(hf, 'sessions', 'replay', name[:12], '--diff')
    assert done.returncode == 1, done
    assert done.stdout == ('    1 different shop/look\n      /content/0/text/price changed\n        - 3\n        + 12345\n'
                           '5 calls: 3 same, 1 different, 1 skipped\n'), done
    assert run(hf, 'sessions', 'replay', name, '--ignore', '/content/0/text/price').returncode == 0
    done = run(hf, 'sessions', 'replay', name, '--only', 'shop__fail', '--only', 'shop__refuse', '--json')
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and lines[-1]['summary']['same'] == 2 and 'replay' in lines[0]
    done = run(hf, 'sessions', 'replay', name, '--writes')
    assert done.returncode == 2 and '--yes' in done.stderr, done
    kept = len([c for c in shop.calls() if c[1] == 'keep'])
    assert run(hf, 'sessions', 'replay', name, '--writes', '--yes', '--stop').returncode == 1
    assert len([c for c in shop.calls() if c[1] == 'keep']) == kept, '--stop ends before the last call'
    done = run(hf, 'sessions', 'replay', 'no-such-session')
    assert done.returncode == 1 and 'no-such-session' in done.stderr
    done = run(hf, 'sessions', 'replay', api.create()['session_id'])
    assert done.returncode == 1 and 'no call was sent again' in done.stderr


def test_command__on_a_terminal_fits_80_columns_and_has_colours(api, shop):
    session = recorded(api, LOOKS + [('keep', {'text': 'a word ' * 40})])
    shop.change(prices={'tea': 'many words ' * 30, 'coffee': 'x' * 300})
    shown = on_terminal(api.holdfast, 'sessions', 'replay', session['session_id'], '--diff', '--writes', keys=b'y\n', status=1)
    assert '\x1b[31mdifferent\x1b[0m' in shown and '\x1b[32m' in shown
    text = shown.replace('\x1b[31m', '').replace('\x1b[32m', '').replace('\x1b[0m', '')
    assert '? [y/N] ' in text
    long = [line for line in text.replace('? [y/N] ', '\n').split('\n') if len(line) > 80 and 'xxxx' not in line]
    assert not long, long
    declined = on_terminal(api.holdfast, 'sessions', 'replay', session['session_id'], '--writes', keys=b'n\n')
    assert 'different' not in declined


def test_command__without_a_daemon_says_what_to_do(holdfast, shop):
    hf = holdfast({'shop': shop.entry})
    session = recorded(Rest(hf), LOOKS[:1], template=None)
    hf.stop()
    done = run(hf, 'sessions', 'replay', session['session_id'])
    assert done.returncode == 4 and 'holdfast up' in done.stderr, done


def test_command__with_the_key_of_the_owner(api):
    owner, other = (key_for(api, '--role', 'member') for _ in range(2))
    session = recorded(owner, LOOKS, template=None, headers=owner.headers)
    url = f'http://127.0.0.1:{api.holdfast.port}'
    for who, status in ((owner, 0), (other, 1)):
        done = run(api.holdfast, 'sessions', 'replay', session['session_id'], '--url', url, with_data=False,
                   env={'HOLDFAST_KEY': who.headers['Authorization'].split(' ')[1]})
        assert done.returncode == status and ('4 same' in done.stdout) == (who is owner), done
