# SPDX-License-Identifier: Apache-2.0
"""Results whose client was gone: kept sealed, handed out once to the same session asking the same again."""
import glob
import json
import re
import socket
import struct
import time

import pytest

from commands import Executions, events, hang_up, wait_read
from harness import DEADLINE_S, Client, Connection, wait_for
from scripted import Background, get, note, open_gate, script

PLAIN = '2025-06-18'  # no event ids on slow answers: a dropped connection leaves nothing to resume
RESUMABLE = '2025-11-25'
KEY = 'holdfast/redelivered'
MIB = 1024 * 1024


def result_of(text, **more):
    return json.dumps({'content': [{'type': 'text', 'text': text}], **more}, separators=(',', ':'))


def counted(hf, what):
    text = hf.get('/metrics').body.decode()
    found = re.search(r'holdfast_undelivered_results_total\{what="%s"\} (\d+)' % what, text)
    return int(found.group(1)) if found else 0


def waiting(hf):
    """Requests whose client waits."""
    return int(re.search(r'^holdfast_requests_in_flight (\d+)$', hf.get('/metrics').body.decode(), re.M).group(1))


def running(hf):
    return int(re.search(r'^holdfast_calls_in_flight (\d+)$', hf.get('/metrics').body.decode(), re.M).group(1))


class Call:
    """One call of `script` that answers when its gate opens; sent as often as wanted, always the same."""

    def __init__(self, server, result):
        self.server, self.gate = server, server.gate()
        self.steps = ({'wait': self.gate}, {'result': result})
        self.result = json.loads(result)

    def send(self, client, **options):
        return script(client, *self.steps, **options)

    def ask(self, client, **options):
        """To its end: the reply, parsed."""
        with self.send(client, **options) as later:
            return later.rest()[-1]

    def leave(self, client, hf=None):
        """Sent, at the server, and then its client is gone before the first byte of an answer."""
        before = len(self.server.of('tools/call'))
        later = self.send(client)
        self.server.wait('tools/call', before + 1)
        hang_up(client.holdfast, later.connection)

    def lose(self, client):
        """Left, then answered and kept."""
        hf = client.holdfast
        kept = counted(hf, 'kept')
        self.leave(client)
        open_gate(self.gate)
        wait_for(lambda: counted(hf, 'kept') == kept + 1, 'the result to be kept')


def is_redelivered(reply):
    return KEY in reply['result'].get('_meta', {})


@pytest.fixture
def server(scripted):
    return scripted('srv')


def connect(hf, version=PLAIN, **options):
    return Client(hf, '/mcp/srv', **options).connect(version)


def test_lost_result__is_handed_out_once(holdfast, server):
    hf = holdfast({'srv': server.entry})
    client = connect(hf)
    call = Call(server, result_of('it ran', structuredContent={'n': 9007199254740993}, _meta={'a': 1}))
    call.lose(client)
    again = call.ask(client, ident='second', meta={'progressToken': 'another'})
    assert again['id'] == 'second'
    told = again['result']['_meta'].pop(KEY)
    assert again['result'] == call.result
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z', told['at'])
    assert len(server.calls()) == 1
    third = call.ask(client)
    assert third['result'] == call.result and len(server.calls()) == 2


def test_lost_result__is_on_record(holdfast, server):
    hf = holdfast({'srv': server.entry})
    client = connect(hf)
    call = Call(server, result_of('it ran'))
    call.lose(client)
    call.ask(client)
    (intent, outcome), = Executions().read(hf).of_tool('script')
    assert outcome == 'ok'
    note = wait_for(lambda: [e for e in events(hf) if e.get('outcome') == 'redelivered'], 'the note')
    assert [e['parent'] for e in note] == [intent['id']]
    assert note[0]['kind'] == 'note' and note[0]['tool'] == 'script' and note[0]['session_id'] == intent['session_id']


def test_lost_result__other_askers_execute(holdfast, server):
    hf = holdfast({'srv': server.entry})
    client, other = connect(hf), connect(hf)
    call = Call(server, result_of('it ran'))
    call.lose(client)
    assert not is_redelivered(call.ask(other)), 'another session'
    assert len(server.calls()) == 2
    for steps in ([{'result': '{"content":[]}'}], [*call.steps, {'say': 'x'}]):
        with script(client, *steps) as later:
            assert not is_redelivered(later.rest()[-1]), 'other arguments'
    modern = Client(hf, '/mcp/srv', modern=True)
    assert not is_redelivered(call.ask(modern))
    assert len(server.calls()) == 5
    assert is_redelivered(call.ask(client)), 'and it was still there for its own'
    assert len(server.calls()) == 5


def test_call_under_way__whoever_asks_again_waits_for_it(holdfast, server):
    hf = holdfast({'srv': server.entry})
    client = connect(hf)
    call = Call(server, result_of('it ran'))
    call.leave(client)
    gone = call.send(client)
    waiting = call.send(client)
    wait_read(gone.connection)
    wait_read(waiting.connection)
    hang_up(hf, gone.connection)
    again = Background(waiting.rest)
    open_gate(call.gate)
    assert is_redelivered(again.result()[-1])
    assert len(server.calls()) == 1
    assert not is_redelivered(call.ask(client)) and len(server.calls()) == 2


def test_failures__a_tool_error_is_a_result_and_an_error_is_not(holdfast, server):
    hf = holdfast({'srv': server.entry})
    client = connect(hf)
    call = Call(server, '{"content":[],"isError":true}')
    call.lose(client)
    assert is_redelivered(call.ask(client)) and len(server.calls()) == 1
    call = Call(server, '{}')
    call.steps = ({'wait': call.gate}, {'fail': 'it broke'})
    call.leave(client)
    waiting = call.send(client)
    wait_read(waiting.connection)
    open_gate(call.gate)
    assert 'error' in waiting.rest()[-1] and len(server.calls()) == 3, 'whoever waited for an error asks for itself'


@pytest.mark.parametrize('over', [0, 1])
def test_size__one_mebibyte_is_kept_and_a_byte_more_is_not(holdfast, server, over):
    hf = holdfast({'srv': server.entry})
    client = connect(hf)
    frame = len(result_of(''))
    result = result_of('x' * (MIB + over - frame))
    assert len(result) == MIB + over
    gate = server.gate()
    big = server.gate()  # the result itself is too long for an argument twice: the server reads it from a file
    with open(big, 'w', encoding='utf-8') as file:
        file.write(result)
    call = Call(server, '{}')
    call.gate, call.result = gate, json.loads(result)
    call.steps = ({'wait': gate}, {'result_file': big})
    if not over:
        call.lose(client)
        assert is_redelivered(call.ask(client)) and len(server.calls()) == 1
        return
    call.leave(client)
    open_gate(gate)
    wait_for(lambda: counted(hf, 'refused') == 1, 'the result to be refused')
    assert call.ask(client)['result'] == call.result and len(server.calls()) == 2
    assert counted(hf, 'kept') == 0


def test_number__a_session_has_thirty_two_kept_results(holdfast, server):
    hf = holdfast({'srv': server.entry})
    client = connect(hf)
    calls = [Call(server, result_of(str(n))) for n in range(33)]
    for call in calls[:32]:
        call.lose(client)
    calls[32].leave(client)
    open_gate(calls[32].gate)
    wait_for(lambda: counted(hf, 'refused'), 'the result to be refused')
    wait_for(lambda: len([w for _, w in Executions().read(hf).of_tool('script') if w == 'ok']) == 33, 'its outcome')
    for call in calls[:32]:
        assert is_redelivered(call.ask(client))
    assert not is_redelivered(calls[32].ask(client))


def test_age__a_result_past_its_end_is_not_handed_out(holdfast, server):
    hf = holdfast({'srv': server.entry}, env={'HOLDFAST_FAULT': 'undelivered.short_life:1'})
    client = connect(hf)
    call = Call(server, result_of('it ran'))
    call.lose(client)
    assert not is_redelivered(call.ask(client)) and len(server.calls()) == 2
    call = Call(server, result_of('the next one lives'))
    call.lose(client)
    assert is_redelivered(call.ask(client)) and len(server.calls()) == 3


def test_kill__what_was_kept_survives_and_what_was_handed_out_is_gone(holdfast, server):
    hf = holdfast({'srv': server.entry})
    client = connect(hf)
    first, second = Call(server, result_of('first')), Call(server, result_of('second'))
    first.lose(client)
    second.lose(client)
    assert is_redelivered(first.ask(client))
    hf.restart()
    assert is_redelivered(second.ask(client)) and len(server.calls()) == 2
    assert not is_redelivered(first.ask(client)) and len(server.calls()) == 3
    hf.restart()
    assert not is_redelivered(second.ask(client)) and len(server.calls()) == 4


def test_database__never_holds_the_plain_text(holdfast, server):
    hf = holdfast({'srv': {**server.entry, 'audit': 'digest'}})
    client = connect(hf)
    call = Call(server, result_of('it ran'))
    marker = 'marker-7f3a90b1-of-a-secret'
    path = server.gate()
    with open(path, 'w', encoding='utf-8') as file:
        file.write(result_of(marker))
    call.steps = ({'wait': call.gate}, {'result_file': path})
    call.lose(client)
    for file in glob.glob(hf.data + '/*'):
        if file.endswith('.sock'):
            continue
        with open(file, 'rb') as data:
            assert marker.encode() not in data.read(), file
    assert call.ask(client)['result']['content'][0]['text'] == marker
    assert len(server.calls()) == 1


def test_modern_client__that_disconnects_has_cancelled(holdfast, server):
    hf = holdfast({'srv': server.entry})
    client = Client(hf, '/mcp/srv', modern=True)
    call = Call(server, result_of('it ran'))
    call.leave(client)
    wait_for(lambda: [w for _, w in Executions().read(hf).of_tool('script')] == ['cancelled'], 'the cancellation')
    open_gate(call.gate)
    assert not is_redelivered(call.ask(client)) and len(server.calls()) == 2
    assert counted(hf, 'kept') == 0


def test_no_session__clients_that_share_a_derived_one_execute(holdfast, server):
    hf = holdfast({'srv': server.entry})
    client = Client(hf, '/mcp/srv')
    call = Call(server, result_of('it ran'))
    call.leave(client)
    open_gate(call.gate)
    wait_for(lambda: [w for _, w in Executions().read(hf).of_tool('script')] == ['ok'], 'the outcome')
    assert not is_redelivered(call.ask(client)) and len(server.calls()) == 2


def test_stream__without_a_connection_its_result_is_kept_too(holdfast, server):
    hf = holdfast({'srv': server.entry})
    client = connect(hf, RESUMABLE)
    call = Call(server, result_of('it ran'))
    later = call.send(client)
    assert later.event()['id'], 'the priming event of a slow answer'
    hang_up(hf, later.connection)
    open_gate(call.gate)
    wait_for(lambda: counted(hf, 'kept') == 1, 'the result to be kept')
    assert is_redelivered(call.ask(client)) and len(server.calls()) == 1


def test_stream__that_is_resumed_takes_the_kept_copy_away(holdfast, server):
    hf = holdfast({'srv': server.entry})
    client = connect(hf, RESUMABLE)
    call = Call(server, result_of('it ran'))
    later = call.send(client)
    last = later.event()['id']
    hang_up(hf, later.connection)
    open_gate(call.gate)
    wait_for(lambda: counted(hf, 'kept') == 1, 'the result to be kept')
    stream = get(client, last)
    assert json.loads(stream.message())['result'] == call.result
    stream.close()
    assert not is_redelivered(call.ask(client)) and len(server.calls()) == 2


def test_stream__asked_again_while_its_call_runs_waits_for_it(holdfast, server):
    hf = holdfast({'srv': server.entry})
    client = connect(hf, RESUMABLE)
    call = Call(server, result_of('it ran'))
    later = call.send(client)
    assert later.event()['id']
    later.close()
    for _ in range(2):
        assert hf.get('/healthz').status == 200
    waiting = call.send(client)
    assert waiting.event()['id'], 'it is slow as well'
    open_gate(call.gate)
    assert is_redelivered(waiting.rest()[-1]) and len(server.calls()) == 1
    assert not is_redelivered(call.ask(client)) and len(server.calls()) == 2


def test_stream__resumed_while_its_call_runs_has_the_result_alone(holdfast, server):
    hf = holdfast({'srv': server.entry})
    client = connect(hf, RESUMABLE)
    call = Call(server, result_of('it ran'))
    later = call.send(client)
    last = later.event()['id']
    later.close()
    for _ in range(2):
        assert hf.get('/healthz').status == 200
    waiting = call.send(client)
    assert waiting.event()['id']
    resumed = get(client, last)
    assert resumed.event()['id']
    server.wait('tools/call', 2)
    open_gate(call.gate)
    assert json.loads(resumed.message())['result'] == call.result
    assert waiting.rest()[-1]['result'] == call.result
    assert len(server.calls()) == 2 and counted(hf, 'kept') == 0


class Narrow(Connection):
    """A connection that takes in little: what it does not read waits on the other side."""

    def __init__(self, port):  # pylint: disable=super-init-not-called
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        self.socket.settimeout(DEADLINE_S)
        self.socket.connect(('127.0.0.1', port))
        self.port, self.rest = port, b''


@pytest.mark.parametrize('reads', ['some', 'all'])
def test_reply__that_was_sent_in_part_is_kept(holdfast, server, reads):
    hf = holdfast({'srv': server.entry})
    client = connect(hf)
    path = server.gate()
    call = Call(server, '{}')
    call.result = json.loads(result_of('y' * (MIB - 1000)))
    with open(path, 'w', encoding='utf-8') as file:
        file.write(json.dumps(call.result, separators=(',', ':')))
    open_gate(call.gate)
    call.steps = ({'wait': call.gate}, {'result_file': path})
    body = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {
        'name': 'script', 'arguments': {'steps': list(call.steps)}}}, separators=(',', ':')).encode()
    with Narrow(hf.port) as narrow:
        narrow.send(narrow.head_bytes('POST', '/mcp/srv', client.headers_for('tools/call', {}), body) + body)
        narrow.read_head()
        if reads == 'all':
            narrow.take(len(json.dumps(call.result, separators=(',', ':'))))
            narrow.close()
            assert hf.get('/healthz').status == 200
            assert not is_redelivered(call.ask(client)) and counted(hf, 'kept') == 0
            return
        narrow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    wait_for(lambda: counted(hf, 'kept') == 1, 'the result to be kept')
    again = call.ask(client)
    assert is_redelivered(again) and again['result']['content'] == call.result['content']
    assert len(server.calls()) == 1


# Before the outcome there are three or four: what is first seen of the server's tools may be in company.
@pytest.mark.parametrize('commit', range(5, 11))
def test_store_failing__what_is_kept_is_handed_out_once_all_the_same(holdfast, server, commit):
    """One commit fails: that of the outcome and the kept result, of the deletion, of the note, or a later one."""
    hf = holdfast({'srv': server.entry}, env={'HOLDFAST_FAULT': f'store.commit:{commit}'})
    client = connect(hf)
    call = Call(server, result_of('it ran'))
    call.leave(client)
    open_gate(call.gate)
    replies = [call.ask(client) for _ in range(8)]
    good = [r for r in replies if 'result' in r]
    assert all(r['result']['content'] == call.result['content'] for r in good)
    assert all(r['error']['code'] == -32000 for r in replies if 'error' in r)
    redelivered = [r for r in good if is_redelivered(r)]
    assert len(redelivered) == counted(hf, 'kept') == counted(hf, 'handed_out')
    executed = len(server.calls())
    assert len(good) - len(redelivered) <= executed
    wait_for(lambda: not [w for _, w in Executions().read(hf).of_tool('script') if w == 'open'], 'every outcome')
    assert len(Executions().read(hf).of_tool('script')) == executed


def outcomes(hf):
    return [outcome for _, outcome in Executions().read(hf).of_tool('script')]


@pytest.mark.parametrize('version', [PLAIN, RESUMABLE])
def test_client_that_left__ends_its_request_while_the_call_runs(holdfast, server, version):
    hf = holdfast({'srv': server.entry})
    client = connect(hf, version)
    call = Call(server, result_of('it ran'))
    later = call.send(client)
    server.wait('tools/call', 1)
    if version == RESUMABLE:
        assert later.event()['id']
    assert (waiting(hf), running(hf)) == (1, 1)
    hang_up(hf, later.connection)
    wait_for(lambda: waiting(hf) == 0, 'the request to end')
    assert running(hf) == 1 and outcomes(hf) == ['open']
    open_gate(call.gate)
    wait_for(lambda: outcomes(hf) == ['ok'], 'the outcome')
    hf.restart()
    assert is_redelivered(call.ask(client)) and len(server.calls()) == 1


def test_client_that_left__finds_all_messages_on_its_stream(holdfast, server):
    """The exchange has ended: progress, a question and the result reach the stream that is resumed."""
    hf = holdfast({'srv': server.entry})
    client = connect(hf, RESUMABLE)
    first, second = server.gate(), server.gate()
    with script(client, {'wait': first}, {'progress': 7}, {'send': note('notifications/message', level='info', data='x')},
                {'wait': second}, {'result': result_of('it ran')},
                meta={'progressToken': 'mine'}) as later:
        last = later.event()['id']
        server.wait('tools/call', 1)
        hang_up(hf, later.connection)
    wait_for(lambda: waiting(hf) == 0, 'the request to end')
    open_gate(first)
    stream = get(client, last)
    assert stream.event()['id'], 'the priming event'
    progress = json.loads(stream.message())
    assert progress['method'] == 'notifications/progress' and progress['params']['progressToken'] == 'mine'
    assert json.loads(stream.message())['method'] == 'notifications/message'
    assert waiting(hf) == 0 and running(hf) == 1
    open_gate(second)
    assert json.loads(stream.message())['result']['content'][0]['text'] == 'it ran'
    stream.close()
    assert outcomes(hf) == ['ok'] and counted(hf, 'kept') == 0


def test_client_that_left__counts_against_its_limits_until_the_call_is_over(holdfast, server):
    hf = holdfast({'srv': server.entry}, {'limits': {'calls': 1}})
    client = connect(hf)
    call = Call(server, result_of('it ran'))
    call.leave(client)
    wait_for(lambda: waiting(hf) == 0, 'the request to end')
    other = Call(server, result_of('another'))
    open_gate(other.gate)
    assert '1 call at a time' in other.ask(client)['result']['content'][0]['text']
    open_gate(call.gate)
    wait_for(lambda: running(hf) == 0, 'the call to end')
    assert other.ask(client)['result'] == other.result
    assert is_redelivered(call.ask(client)) and len(server.calls()) == 2


def test_client_that_left__behind_a_batch(holdfast, server):
    hf = holdfast({'srv': server.entry})
    client = connect(hf, '2025-03-26')
    gate = server.gate()
    calls = [{'jsonrpc': '2.0', 'id': n, 'method': 'tools/call', 'params': {
        'name': 'script', 'arguments': {'steps': [{'wait': gate}, {'result': result_of(str(n))}]}}} for n in range(3)]
    body = json.dumps([*calls, {'jsonrpc': '2.0', 'id': 9, 'method': 'ping'}]).encode()
    connection = hf.connection()
    connection.send(connection.head_bytes('POST', '/mcp/srv', client.headers_for('tools/call', {}), body) + body)
    server.wait('tools/call', 3)
    assert (waiting(hf), running(hf)) == (4, 3), 'the batch and its calls'
    hang_up(hf, connection)
    wait_for(lambda: waiting(hf) == 0, 'the requests to end')
    assert running(hf) == 3
    open_gate(gate)
    wait_for(lambda: outcomes(hf) == ['ok'] * 3 and running(hf) == 0, 'the outcomes')
    assert counted(hf, 'kept') == 0, 'results of a batch are not stored'


def test_client_that_left__is_counted_when_its_call_is_over(holdfast, server):
    hf = holdfast({'srv': server.entry})
    client = connect(hf)
    call = Call(server, result_of('it ran'))

    def answered():
        found = re.search(r'holdfast_requests_total\{method="tools/call",status="2xx"\} (\d+)', hf.get('/metrics').body.decode())
        return int(found.group(1)) if found else 0
    call.leave(client)
    wait_for(lambda: waiting(hf) == 0, 'the request to end')
    assert answered() == 0
    open_gate(call.gate)
    wait_for(lambda: running(hf) == 0, 'the call to end')
    assert answered() == 1


@pytest.mark.parametrize('after_ms', [0, 1, 2, 3, 5, 8, 13])
def test_client_that_left__at_any_moment_of_its_call(holdfast, server, after_ms):
    """Before the intent, while it is written, while the server answers, while the outcome is written."""
    hf = holdfast({'srv': server.entry})
    client = connect(hf)
    calls = [Call(server, result_of(str(n))) for n in range(30)]
    for call in calls:
        open_gate(call.gate)
        with call.send(client):
            time.sleep(after_ms / 1000)
    wait_for(lambda: waiting(hf) == 0 and running(hf) == 0, 'every call to end')
    for call in calls:
        assert call.ask(client)['result']['content'] == call.result['content']
    assert not [w for w in outcomes(hf) if w != 'ok']
