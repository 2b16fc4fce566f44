# SPDX-License-Identifier: Apache-2.0
"""Shares on two Holdfasts with one PostgreSQL: what one node was told holds at the next call on the other, in both eras."""
import threading

import pytest

import keys
from harness import LONG, Client
from postgres import shared_keys
from rest import Rest, refused
from test_credentials import tokens
from test_sharing import call, joined, says

NAMES = ('ann', 'bob', 'eve')


class Fleet:
    def __init__(self, holdfast, stdio_server, env, **settings):
        self.entry, _ = stdio_server('up', handles='never', **settings)
        self.nodes = [holdfast({'up': self.entry}, {'auth': 'required'}, env=env)]
        self.nodes.append(holdfast({'up': self.entry}, {'auth': 'required'}, env={**env, **shared_keys(self.nodes[0])}))
        self.keys = {name: keys.create(self.nodes[0], '--role', 'member', '--name', name, env=env) for name in NAMES}

    def rest(self, who, node=0):
        return Rest(self.nodes[node], self.keys[who].headers)

    def client(self, who, era, name):
        """The same client on each node."""
        if era == 'modern':
            both = [Client(n, '/mcp', modern=True, headers=self.keys[who].headers) for n in self.nodes]
            for one in both:
                one.envelope['io.modelcontextprotocol/clientInfo'] = {'name': name, 'version': '1'}
            return both
        both = [Client(n, '/mcp', headers=self.keys[who].headers) for n in self.nodes]
        both[0].connect(name=name)
        both[1].session, both[1].version, both[1].next_id = both[0].session, both[0].version, 1000
        return both


@pytest.fixture(params=['polling'] + (['redis'] if LONG else []))
def fleet(request, holdfast, cluster, stdio_server):
    more = {'REDIS_URL': request.getfixturevalue('shared_redis')} if request.param == 'redis' else {}
    return Fleet(holdfast, stdio_server, {'DATABASE_URL': cluster.database(), **more})


def session_of(client):
    """The session that a call of this client runs in, by the record of the call."""
    reply = client.call('session__context_get')
    assert not reply.result.get('isError'), reply
    return reply.result['structuredContent']['session_id']


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_sharing_nodes__join_and_revoke_hold_at_the_next_call_on_both(fleet, era):
    ann, bob = fleet.client('ann', era, 'claude'), fleet.client('bob', era, 'cursor')
    made = ann[0].call('session__share').result['structuredContent']
    own = session_of(bob[0])
    assert session_of(bob[1]) == own != made['session_id']
    joined(bob[1], made['code'])
    assert [session_of(bob[i]) for i in (0, 1, 0)] == [made['session_id']] * 3
    assert fleet.rest('ann', 1).delete(f"/sessions/{made['session_id']}/shares/{made['share_id']}").status == 200
    says(bob[0].call('up__counter'), 'revoked')
    assert {session_of(bob[0]), session_of(bob[0])} == {own}
    refused(fleet.rest('eve', 1).post('/sessions/join', {'code': made['code']}), 409, 'conflict')


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_sharing_nodes__the_end_of_a_share_by_name_holds_at_the_next_call_on_the_other(fleet, era):
    session = fleet.rest('ann').post('/sessions', {'edge_mcp_id': 'e'}).json()['session_id']
    bob = fleet.client('bob', era, 'cursor')
    share = fleet.rest('ann', 0).post(f'/sessions/{session}/shares', {'grantee': {'client': 'bob'}}).json()
    for one in bob:
        assert call(one, 'session__context_get', {'session_id': session}).result['structuredContent']['session_id'] == session
    assert fleet.rest('ann', 0).delete(f"/sessions/{session}/shares/{share['id']}").status == 200
    for one in (bob[1], bob[0]):
        says(call(one, 'session__context_get', {'session_id': session}), 'not found')


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_sharing_nodes__a_hand_over_holds_at_the_next_call_on_both(fleet, era):
    ann, bob = fleet.client('ann', era, 'claude'), fleet.client('bob', era, 'cursor')
    made = ann[0].call('session__share', {'may': 'hand_over'}).result['structuredContent']
    assert session_of(ann[1]) == made['session_id']
    joined(bob[0], made['code'])
    assert [session_of(bob[i]) for i in (1, 0)] == [made['session_id']] * 2
    says(ann[1].call('up__counter'), 'handed over')
    new = session_of(ann[1])
    assert new != made['session_id']
    assert {session_of(bob[1]), session_of(bob[0])} == {made['session_id']}


def test_sharing_nodes__a_new_owner_never_gets_the_credentials_also_before_the_other_node_knows(holdfast, cluster, stdio_server):
    fleet = Fleet(holdfast, stdio_server, {'DATABASE_URL': cluster.database()}, credential={'service': 'github', 'as': 'env:GITHUB_TOKEN'})
    session = fleet.rest('ann').post('/sessions', {'edge_mcp_id': 'e', 'passthrough_auth': tokens('open-sesame-0001')}).json()['session_id']
    ann, bob = fleet.client('ann', 'modern', 'claude'), fleet.client('bob', 'modern', 'cursor')
    assert 'open-sesame-0001' in call(ann[1], 'up__env', session=session).text
    assert fleet.rest('ann').post(f'/sessions/{session}/shares', {'grantee': {'client': 'bob'}, 'may': 'hand_over'}).status == 201
    says(call(bob[1], 'up__env', session=session), 'does not lend')
    join = threading.Thread(target=fleet.rest('bob').post, args=('/sessions/join', {'session': session}))
    join.start()
    answers = [call(bob[1], 'up__env', session=session)]
    while join.is_alive() or answers[-1].result.get('isError'):
        answers.append(call(bob[1], 'up__env', session=session))
    assert not [a for a in answers if 'open-sesame-0001' in a.text]
    join.join()


def test_sharing_nodes__access_that_ends_by_time_ends_on_both(fleet):
    session = fleet.rest('ann').post('/sessions', {'edge_mcp_id': 'e'}).json()['session_id']
    assert fleet.rest('ann', 0).post(f'/sessions/{session}/shares', {'grantee': {'client': 'bob'}, 'expires': '1ms'}).status == 201
    for node in (0, 1):
        refused(fleet.rest('bob', node).get(f'/sessions/{session}'), 404, 'session_not_found')


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_sharing_nodes__a_joined_client_is_told_on_either_node_that_its_access_has_ended(fleet, era):
    session = fleet.rest('ann').post('/sessions', {'edge_mcp_id': 'e'}).json()['session_id']
    bob = fleet.client('bob', era, 'cursor')
    code = fleet.rest('ann').post(f'/sessions/{session}/shares', {'access': '1ms'}).json()['code']
    joined(bob[0], code)
    says(bob[1].call('up__counter'), 'expired')
    assert session_of(bob[1]) != session
