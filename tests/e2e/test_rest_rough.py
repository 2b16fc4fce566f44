# SPDX-License-Identifier: Apache-2.0
"""REST when things go wrong: many at once, clients that leave, a store that does not write."""
import json
import socket
import threading

from harness import wait_for
from rest import Rest, refused


def test_limit__of_200_creates_at_once_exactly_100_hold(rest):
    api = rest()
    statuses = []

    def work():
        with api.holdfast.connection() as connection:
            for _ in range(20):
                statuses.append(connection.request('POST', '/api/v1/sessions', {}, b'{"edge_mcp_id":"e"}').status)
    workers = [threading.Thread(target=work) for _ in range(10)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(statuses) == [201] * 100 + [429] * 100
    assert api.get('/sessions?limit=200').json()['count'] == 100


def test_client_gone__what_it_asked_for_is_done(rest):
    api = rest()
    name = api.create()['session_id']
    body = json.dumps({'tool_name': 't'}).encode()
    for number in range(20):
        with api.holdfast.connection() as connection:
            made = b'{"edge_mcp_id":"e","session_id":"gone-%d"}' % number
            sent = (connection.head_bytes('POST', '/api/v1/sessions', {}, made) + made,
                    connection.head_bytes('POST', f'/api/v1/sessions/{name}/tools', {}, body) + body)[number % 2]
            connection.send(sent)
            if number % 4 < 2:  # with a reset instead of an end
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
    wait_for(lambda: api.session(name)['tool_execution_count'] == 10, 'ten executions')
    wait_for(lambda: api.get('/sessions').json()['count'] == 11, 'ten sessions')


def test_store_gone__is_503_with_a_word_when_to_come_back(holdfast):
    points = ','.join(f'store.commit:{n}' for n in range(30, 45))
    api = Rest(holdfast(env={'HOLDFAST_FAULT': points}))
    replies = []
    while not replies or replies[-1].status == 201:
        replies.append(api.post('/sessions', {'edge_mcp_id': 'e'}))
        assert len(replies) < 100, 'the fault was never reached; is this a build with -Dfaults=true?'
    refused(replies[-1], 503, 'unavailable')
    assert int(replies[-1].header('retry-after')) > 0
    made = len(replies) - 1
    assert api.get('/sessions').json()['count'] == min(made, 50)
    wait_for(lambda: api.post('/sessions', {'edge_mcp_id': 'e'}).status == 201, 'the store to write again', timeout=60)
    wait_for(lambda: api.get('/sessions?limit=200').json()['count'] == made + 1, 'no more than was answered')
