# SPDX-License-Identifier: Apache-2.0
"""requestState of servers that ask for input: theirs byte for byte, and usable only by whom it was given to, for what."""
import json

import pytest

from harness import dump


def asking(client, tool, state, headers=None):
    """A call whose server asks for input; gives the state that the client is to send back."""
    result = '{"resultType":"input_required","inputRequests":{},"requestState":%s}' % state
    reply = client.call(tool, {'steps': [{'result': result}]}, headers=headers)
    return reply.result['requestState']


def send_back(client, tool, state):
    return client.rpc('tools/call', {'name': tool, 'arguments': {}, 'requestState': state})


@pytest.mark.parametrize('state', ['"s"', '""', '"h\u00e9 \\"x\\""', '"a\\u0000b"', dump('x' * 100000)], ids=range(5))
def test_state__comes_back_as_the_server_gave_it(holdfast, scripted, state):
    server = scripted('s', http=True, era='modern')
    client = holdfast({'s': server.entry}).client('/mcp/s', modern=True)
    bound = asking(client, 'script', state)
    assert bound != json.loads(state)
    assert send_back(client, 'script', bound).result
    assert server.calls()[-1]['params']['requestState'] == json.loads(state)


def test_state__is_refused_where_it_was_not_given(holdfast, scripted):
    server, other = scripted('s', http=True, era='modern'), scripted('other', http=True, era='modern')
    hf = holdfast({'s': server.entry, 'other': other.entry})
    client = hf.client('/mcp', modern=True)
    bound = asking(client, 's__script', '"s"')
    wrong = 'A' if bound[10] != 'A' else 'B'
    for tool, state in (('s__echo', bound), ('other__script', bound), ('s__script', 's'), ('s__script', bound[:10] + wrong + bound[11:]),
                        ('s__script', bound + 'x'), ('s__script', bound[:-1]), ('s__script', ''), ('s__script', 7)):
        assert send_back(client, tool, state).code == -32602, (tool, state)
    assert send_back(client, 's__script', bound).result
    assert not other.calls() and len(server.calls()) == 2
