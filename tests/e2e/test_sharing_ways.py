# SPDX-License-Identifier: Apache-2.0
"""Shared sessions by other ways in than HTTP requests of one era: pipes, handles in arguments, documents that were read,
dynamic profiles, access that ends, sessions that no client names."""
import pytest

from rest import refused
from test_sharing import SETTINGS, World, call, counted, joined, says
from test_stdio import Pipe
from vault import Folder


@pytest.fixture
def world(holdfast, stdio_server):
    return World(holdfast, {}, stdio_server, handles='never')


@pytest.mark.parametrize('modern', [False, True])
def test_sharing_ways__a_pipe_goes_on_in_the_session_of_another_client(holdfast, stdio_server, modern):
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    one = hf.client('/mcp').connect(name='claude')
    assert [counted(one), counted(one)] == [1, 2]
    code = one.call('session__share').result['structuredContent']['code']
    pipe, other = Pipe(hf, server=None).start_reading(), Pipe(hf, server=None).start_reading()
    for each in (pipe, other):
        if not modern:
            each.initialize()
    assert pipe.call('up__counter', modern) == '1'
    assert 'now go on in session' in pipe.call('session__join', modern, code=code)
    assert [pipe.call('up__counter', modern), str(counted(one)), pipe.call('up__counter', modern)] == ['3', '4', '5']
    assert other.call('up__counter', modern) == '1' or modern, 'another pipe has joined nothing'
    assert pipe.close()[0] == other.close()[0] == 0


def test_sharing_ways__access_that_ends_is_refused_in_words_once(world):
    session = world.session('ann')
    bob = world.client('bob')
    assert counted(bob) == 1
    code = world.share('ann', session, access='1ms')['code']
    joined(bob, code)
    says(bob.call('up__counter'), 'expired')
    assert counted(bob) == 2
    assert [s['status'] for s in world.rest('ann').get(f'/sessions/{session}/shares').json()['shares']] == ['expired']


def test_sharing_ways__a_session_that_ends_leaves_its_guests_in_their_own(world):
    session = world.session('ann')
    bob = world.client('bob')
    assert counted(bob) == 1
    joined(bob, world.share('ann', session)['code'])
    assert counted(bob) == 1
    assert world.rest('ann').delete(f'/sessions/{session}').status in (200, 204)
    assert counted(bob) == 2
    late = world.session('ann')
    code = world.share('ann', late)['code']
    assert world.rest('ann').delete(f'/sessions/{late}').status in (200, 204)
    refused(world.rest('bob').post('/sessions/join', {'code': code}), 409, 'session_not_active')
    refused(world.rest('ann').post(f'/sessions/{late}/shares', {}), 409, 'session_not_active')


def test_sharing_ways__the_processes_of_unnamed_sessions_are_not_lent_to_other_owners(world):
    ann, bob = world.client('ann', 'modern', 'claude'), world.client('bob', 'modern', 'cursor')
    assert [counted(ann), counted(ann)] == [1, 2]
    made = ann.call('session__share').result['structuredContent']
    joined(bob, made['code'])
    assert [counted(bob), counted(bob)] == [1, 2], 'a process of the session alone'
    assert counted(ann) == 3
    same = world.client('ann', 'modern', 'cursor')
    joined(same, ann.call('session__share').result['structuredContent']['code'])
    assert [counted(same), counted(ann)] == [4, 5], 'another client of the same owner shares it'


def test_sharing_ways__an_injected_handle_is_shared_by_name(holdfast, stdio_server):
    world = World(holdfast, {}, stdio_server)
    ann, bob = world.client('ann', 'modern', 'claude'), world.client('bob', 'modern', 'cursor')
    first = ann.call('up__counter').result
    handle = first['content'][-1]['text'].split(': ')[1].rstrip(']')
    made = ann.call('session__share', {'session_id': handle}).result['structuredContent']
    assert made['session_id'] == handle
    joined(bob, made['code'])
    texts = [bob.call('up__counter', arguments).result['content'][0]['text'] for arguments in ({}, {'session_id': handle}, {})]
    assert texts == ['2', '3', '4']
    assert ann.call('up__counter', {'session_id': handle}).result['content'][0]['text'] == '5'


def test_sharing_ways__documents_that_were_read_count_for_who_shares_and_in_a_fork(holdfast, stdio_server, tmp_path):
    lens = Folder(tmp_path / 'lens', A='one\ntwo\n', B='three\n')
    settings = {**SETTINGS, 'docs': {'Lens': lens.settings(agent='write')}}
    world = World(lambda servers, _, env: holdfast(servers, settings, env=env), {}, stdio_server, handles='never')
    session = world.session('ann')
    ann, bob = world.client('ann', 'modern'), world.client('bob', 'modern')
    assert not ann.call('docs__read', {'file_path': 'Lens/A.md', 'session_id': session}).result['isError']
    world.share('ann', session, grantee={'client': 'bob'})
    change = {'file_path': 'Lens/A.md', 'old_string': 'two', 'new_string': '2', 'session_id': session}
    reply = bob.call('docs__edit', change)
    assert not reply.result['isError'], reply
    assert not bob.call('docs__read', {'file_path': 'Lens/B.md', 'session_id': session}).result['isError']
    copy = ann.call('session__fork', {'session_id': session}).result['structuredContent']['session_id']
    reply = ann.call('docs__edit', {'file_path': 'Lens/B.md', 'old_string': 'three', 'new_string': '3', 'session_id': copy})
    assert not reply.result['isError'], reply
    fresh = world.session('ann')
    reply = ann.call('docs__edit', {'file_path': 'Lens/B.md', 'old_string': '3', 'new_string': 'x', 'session_id': fresh})
    assert reply.result['isError'] and 'must read' in reply.text, reply



@pytest.mark.parametrize('kept', ['nothing', 'read', 'use'])
def test_sharing_ways__the_former_owner_keeps_what_the_new_one_says(world, kept):
    session = world.session('ann')
    ann, bob = world.client('ann', 'modern'), world.client('bob')
    assert counted(ann, session) == 1
    code = world.share('ann', session, may='hand_over')['code']
    reply = bob.call('session__join', {'code': code, 'former_owner': kept})
    assert not reply.result.get('isError') and counted(bob) == 2, reply
    status = world.rest('ann').get(f'/sessions/{session}').status
    assert status == (404 if kept == 'nothing' else 200)
    if kept == 'use':
        assert counted(ann, session) == 3
    elif kept == 'read':
        says(call(ann, 'up__counter', session=session), 'reading')
    shares = world.rest('bob').get(f'/sessions/{session}/shares').json()['shares']
    assert [s['may'] for s in shares if s['status'] == 'live'] == ['hand_over', *([kept] if kept != 'nothing' else [])]
    assert world.events('session/hand_over')[0]['error'].endswith('who keeps ' + kept)
