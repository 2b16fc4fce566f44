# SPDX-License-Identifier: Apache-2.0
"""Servers that ask their clients: sampling, elicitation and roots, from a pipe and over HTTP, to whom they
belong and to nobody else, with every byte of the question and of its answer."""
import itertools
import json
import os
import signal

import pytest

from harness import dump, wait_for
from scripted import ask, get, note, open_gate, script, text_of

BOTH = pytest.mark.parametrize('http', [False, True], ids=['stdio', 'http'])
CAPABILITIES = {'roots': {'listChanged': True}, 'sampling': {}, 'elicitation': {'form': {}, 'url': {}}}
FORM = {'mode': 'form', 'message': 'Size?', 'requestedSchema': {'type': 'object', 'properties': {'s': {'type': 'string'}}}}
URL = {'mode': 'url', 'message': 'Look', 'url': 'https://example.com/?a=1&b=2', 'elicitationId': 'e1'}
SAMPLE = {'messages': [{'role': 'user', 'content': {'type': 'text', 'text': 'h\u00e9'}}], 'maxTokens': 9007199254740993}


def client_of(hf, path, version='2025-11-25'):
    return hf.client(path, first_id=1).connect(version, capabilities=CAPABILITIES)


def answer(client, ident, raw):
    """The client's answer to a question, as these very characters: '"result":…' or '"error":…'."""
    body = '{"jsonrpc":"2.0","id":%s,%s}' % (dump(ident), raw)
    reply = client.rpc_bytes(body)
    assert reply.status == 202, repr(reply)


def question(stream):
    """The next message that is a request."""
    message = stream.next()
    while message is not None and not ('method' in message and 'id' in message):
        message = stream.next()
    return message


@BOTH
def test_questions__reach_the_client_of_the_call_and_answers_reach_the_server(holdfast, scripted, http):
    server = scripted('s', http=http)
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    kinds = (('elicitation/create', FORM), ('elicitation/create', URL), ('sampling/createMessage', SAMPLE), ('roots/list', {}))
    for ident, (method, params) in itertools.product((0, 1, 'ask-1', 'h\u00e9 "x"', 9007199254740991), kinds):
        with script(client, {'ask': ask(ident, method, **params)}, ident=ident) as call:
            asked = question(call)
            assert asked['method'] == method and asked['params'] == params
            answer(client, asked['id'], '"result":{"action":"accept","content":{"s":"L"}}')
            assert text_of(call.next()) == [{'result': {'action': 'accept', 'content': {'s': 'L'}}}]


@BOTH
def test_answers__reach_the_server_byte_for_byte(holdfast, scripted, http):
    server = scripted('s', http=http)
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    for raw in ('"result":{"b":1.50, "a":[9007199254740993,-0,1e400],"t":"h\\u00e9 \\ud83d\\ude00 \u00fc","n":null,"\\u0041":{} }',
                '"error":{"code":-1,"message":"User rejected","data":{"z":1.0,"a":[ ]}}'):
        with script(client, {'ask': ask('q', 'sampling/createMessage', **SAMPLE)}) as call:
            asked = question(call)
            answer(client, asked['id'], raw)
            call.rest()
        sent = [m for m in server.messages() if b'"id":"q"' in m][-1]
        assert sent == b'{"jsonrpc":"2.0","id":"q",%s}' % raw.encode()


@BOTH
def test_question_bytes__are_the_servers_own_but_for_the_id(holdfast, scripted, http):
    server = scripted('s', http=http)
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    raw = '{"params":{"z":1.0,"a":"\\u00e9\\/","n":9007199254740993},"id":"Q-1","method":"sampling/createMessage","jsonrpc":"2.0"}'
    with script(client, {'raw': raw}, {'take': 'Q-1'}) as call:
        got = call.stream.message()
        ident = json.loads(got)['id']
        assert got == raw.replace('"Q-1"', dump(ident)).encode()
        answer(client, ident, '"result":{}')
        assert text_of(call.next()) == [{'result': {}}]


@BOTH
def test_ids_that_collide__between_servers_and_with_the_clients_own_find_their_ways(holdfast, scripted, http):
    one, two = scripted('one', http=http), scripted('two', http=http)
    hf = holdfast({'one': one.entry, 'two': two.entry})
    client = client_of(hf, '/mcp')
    steps = {'ask': ask(7, 'elicitation/create', **FORM)}
    with script(client, steps, tool='one__script', ident=7) as a, script(client, steps, tool='two__script', ident=8) as b:
        first, second = question(a), question(b)
        assert first['id'] != second['id']
        answer(client, second['id'], '"result":{"who":"two"}')
        answer(client, first['id'], '"result":{"who":"one"}')
        one_said, two_said = a.next(), b.next()
        assert one_said['id'] == 7 and text_of(one_said) == [{'result': {'who': 'one'}}]
        assert two_said['id'] == 8 and text_of(two_said) == [{'result': {'who': 'two'}}]


@BOTH
def test_a_foreign_transport__cannot_answer_and_an_answer_counts_once(holdfast, scripted, http):
    server = scripted('s', http=http)
    hf = holdfast({'s': server.entry})
    client, other = client_of(hf, '/mcp/s'), client_of(hf, '/mcp/s')
    gate = server.gate()
    with script(client, {'ask': ask(3, **FORM)}, {'wait': gate}) as call:
        asked = question(call)
        answer(other, asked['id'], '"result":{"by":"other"}')
        assert hf.client('/mcp/s').respond(asked['id'], {'by': 'nobody'}).status in (202, 400)
        answer(client, asked['id'], '"result":{"by":"client"}')
        answer(client, asked['id'], '"result":{"by":"again"}')
        answer(client, 99999, '"result":{"by":"guess"}')
        answer(client, '3', '"result":{"by":"string"}')
        open_gate(gate)
        assert text_of(call.next()) == [{'result': {'by': 'client'}}]
    assert [json.loads(m)['result'] for m in server.messages() if b'"by"' in m] == [{'by': 'client'}]


@BOTH
@pytest.mark.parametrize('with_get', [False, True], ids=['call stream', 'get stream too'])
def test_a_question_taken_back__is_told_where_it_was_asked(holdfast, scripted, http, with_get):
    server = scripted('s', http=http)
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    stream = get(client) if with_get else None
    gate = server.gate()
    with script(client, {'ask_only': ask('q1', **FORM)}, {'wait': gate},
                {'send': note('notifications/cancelled', requestId='q1', reason='too \u00e9late')}) as call:
        asked = question(call)
        open_gate(gate)
        taken_back = call.next()
        assert taken_back == note('notifications/cancelled', requestId=asked['id'], reason='too \u00e9late')
        assert 'result' in call.next()
    answer(client, asked['id'], '"result":{"late":true}')
    client.call('echo', {'text': 'after'})
    assert not [m for m in server.messages() if b'"late"' in m]
    if stream:
        stream.close()


@BOTH
def test_progress_on_a_question__reaches_the_server_that_asked_with_its_own_token(holdfast, scripted, http):
    one, two = scripted('one', http=http), scripted('two', http=http)
    hf = holdfast({'one': one.entry, 'two': two.entry})
    client = client_of(hf, '/mcp')
    steps = {'ask': ask(1, 'sampling/createMessage', **SAMPLE, _meta={'progressToken': 'tok', 'x': 1})}
    with script(client, steps, tool='one__script') as a, script(client, steps, tool='two__script') as b:
        first, second = question(a), question(b)
        assert first['params']['_meta']['x'] == 1
        client.notify('notifications/progress', {'progressToken': second['params']['_meta']['progressToken'], 'progress': 0.50})
        assert json.loads(two.wait('notifications/progress')[0])['params'] == {'progressToken': 'tok', 'progress': 0.50}
        client.notify('notifications/progress', {'progressToken': 'nobody', 'progress': 1})
        answer(client, first['id'], '"result":{}')
        answer(client, second['id'], '"result":{}')
        a.rest()
        b.rest()
    assert not one.of('notifications/progress') and len(two.of('notifications/progress')) == 1


@BOTH
def test_the_deadline_of_a_call__stands_still_while_its_client_is_asked(holdfast, scripted, http):
    server = scripted('s', http=http, timeout=1)
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    with script(client, {'ask_only': ask(1, **FORM)}, {'ask_only': ask(2, **FORM)}, {'take': 1}, {'take': 2}) as call:
        first, second = question(call), question(call)
        with script(client_of(hf, '/mcp/s'), {'wait': server.gate()}) as other:
            assert 'did not answer within 1 s' in other.rest()[-1]['error']['message']  # so more than 1 s has passed
        answer(client, first['id'], '"result":{}')
        with script(client_of(hf, '/mcp/s'), {'wait': server.gate()}) as other:
            assert 'error' in other.rest()[-1]
        answer(client, second['id'], '"result":{}')
        assert len(text_of(call.rest()[-1])) == 2
    with script(client, {'ask': ask(3, **FORM)}, {'wait': server.gate()}) as call:
        answer(client, question(call)['id'], '"result":{}')
        assert 'did not answer within 1 s' in call.rest()[-1]['error']['message']  # the clock runs again


@BOTH
def test_questions_outside_of_any_call__go_to_the_standalone_stream(holdfast, scripted, http):
    server = scripted('s', http=http)
    hf = holdfast({'s': server.entry})
    client, other = client_of(hf, '/mcp/s'), client_of(hf, '/mcp/s')
    gate = server.gate()
    stream, foreign = get(client), get(other)
    script(client, {'later': [{'wait': gate}, {'ask': ask('late', 'roots/list')}]}).rest()
    other.call('echo')
    open_gate(gate)
    asked = json.loads(stream.message())
    assert asked['method'] == 'roots/list'
    answer(other, asked['id'], '"result":{"roots":["foreign"]}')
    answer(client, asked['id'], '"result":{"roots":[]}')
    assert server.wait_time('later')['taken'] == [{'result': {'roots': []}}]
    foreign.connection.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        foreign.message()
    stream.close()
    foreign.close()


@BOTH
def test_a_question_while_the_standalone_stream_is_away__waits_for_its_return(holdfast, scripted, http):
    server = scripted('s', http=http)
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    first = get(client)
    last = first.event()['id']
    gate = server.gate()
    script(client, {'later': [{'wait': gate}, {'ask': ask('late', 'roots/list')}]}).rest()
    first.close()
    open_gate(gate)
    stream = get(client, last=last)
    asked = json.loads(stream.message())
    assert asked['method'] == 'roots/list'
    answer(client, asked['id'], '"result":{"roots":[]}')
    assert server.wait_time('later')['taken'] == [{'result': {'roots': []}}]
    stream.close()


def test_without_any_stream__the_server_is_told_in_words(holdfast, scripted):
    server = scripted('s')
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    gate = server.gate()
    script(client, {'later': [{'wait': gate}, {'ask': ask('late', 'roots/list')}]}).rest()
    open_gate(gate)
    error = server.wait_time('later')['taken'][0]['error']
    assert error['code'] == -32601 and 'no stream open' in error['message']


def test_a_client_that_ends_its_session__leaves_no_server_waiting(holdfast, scripted):
    server = scripted('s')
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    with script(client, {'ask': ask('q', **FORM)}, {'say': 'told'}) as call:
        question(call)
        assert client.delete().status == 204
        server.wait_time('told')
    assert b'ended its session' in [m for m in server.messages() if b'"id":"q"' in m][-1]


def test_a_stream_that_is_gone_for_good__is_not_asked(holdfast, scripted):
    server = scripted('s')
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    gate = server.gate()
    for _ in range(3):
        stream = get(client)
        assert stream.status == 200
        stream.close()
        wait_for(lambda: get_again(client), 'the stream to be free again')
    script(client, {'later': [{'wait': gate}, {'ask': ask('late', 'roots/list')}]}).rest()
    assert client.delete().status == 204
    open_gate(gate)
    assert 'no stream open' in server.wait_time('later')['taken'][0]['error']['message']


def get_again(client):
    stream = get(client)
    stream.close()
    return stream.status == 200


@BOTH
def test_a_modern_client_before_a_server_that_asks__the_server_is_told_and_the_call_ends(holdfast, scripted, http):
    server = scripted('s', http=http)
    hf = holdfast({'s': server.entry})
    client = hf.client('/mcp/s', modern=True)
    for method, params in (('elicitation/create', FORM), ('sampling/createMessage', SAMPLE), ('roots/list', {})):
        with script(client, {'ask': ask('q', method, **params)}) as call:
            answered = text_of(call.rest()[-1])[0]
        assert answered['error']['code'] == -32601 and '2026-07-28' in answered['error']['message']


@BOTH
def test_open_questions__64_and_no_more(holdfast, scripted, http):
    server = scripted('s', http=http)
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    asks = [{'ask_only': ask(n, **FORM)} for n in range(65)]
    with script(client, *asks, {'take': 64}, *[{'take': n} for n in range(64)]) as call:
        asked = [question(call) for _ in range(64)]
        assert len({a['id'] for a in asked}) == 64
        refused = server.wait_time('answered')
        assert refused['id'] == 64
        for one in asked:
            answer(client, one['id'], '"result":{}')
        taken = text_of(call.next())
    assert 'error' in taken[0] and '64' in taken[0]['error']['message'] and all(t == {'result': {}} for t in taken[1:])
    with script(client, {'ask': ask('again', **FORM)}) as call:  # all of them are free again
        answer(client, question(call)['id'], '"result":{}')
        assert text_of(call.next()) == [{'result': {}}]


@BOTH
def test_a_question_to_a_dropped_connection__is_asked_again_on_its_return(holdfast, scripted, http):
    server = scripted('s', http=http)
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    gate = server.gate()
    call = script(client, {'send': note('notifications/message', level='info', data='first')}, {'wait': gate}, {'ask': ask('q', **FORM)})
    event = call.event()
    while not event.get('data'):
        event = call.event()
    call.close()
    open_gate(gate)
    stream = get(client, last=event['id'])
    asked = json.loads(stream.message())
    assert asked['method'] == 'elicitation/create'
    answer(client, asked['id'], '"result":{}')
    assert text_of(json.loads(stream.message())) == [{'result': {}}]
    assert stream.message() is None
    stream.close()


def test_a_server_that_died__does_not_mind_a_late_answer(holdfast, scripted):
    server = scripted('s')
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    with script(client, {'ask': ask('q', **FORM)}) as call:
        asked = question(call)
        os.kill(server.starts()[-1], signal.SIGKILL)
        assert 'error' in call.rest()[-1]
    answer(client, asked['id'], '"result":{}')
    assert client.call('echo', {'text': 'alive'}).text == 'alive'


def test_a_client_that_cancels__its_open_question_is_over_too(holdfast, scripted):
    server = scripted('s')
    hf = holdfast({'s': server.entry})
    client = client_of(hf, '/mcp/s')
    with script(client, {'ask': ask('q', **FORM)}, ident='c1') as call:
        question(call)
        assert client.notify('notifications/cancelled', {'requestId': 'c1'}).status == 202
        server.wait_time('cancelled')
        call.rest()
    assert client.call('echo', {'text': 'alive'}).text == 'alive'
