# SPDX-License-Identifier: Apache-2.0
"""Live events over WebSocket: the handshake, subscriptions, and frames that are none.  That no event is lost or comes
twice is shown in test_events.py, for both transports."""
import contextlib
import random
import subprocess
import threading
import time

import harness
import pages
import pytest
from harness import LONG, dump, stdio_server, wait_for
from keys import create, revoke
from rest import refused
from watchers import BINARY, CLOSE, PING, PONG, TEXT, Closed, Refused, WebSocket, call, frame, ids_of, metric


@pytest.fixture(scope='module')
def hf(tmp_path_factory):
    folder = tmp_path_factory.mktemp('websocket')
    entry, _ = stdio_server(folder, 'up', handles='never', share='all')
    one = harness.Holdfast(folder, {'mcpServers': {'up': entry}, 'holdfast': {}}).start()
    yield one
    one.close()


@pytest.fixture
def opened():
    """Things to close."""
    found = []
    yield lambda one: found.append(one) or one
    for one in found:
        one.close()


@pytest.mark.parametrize('headers, says', [
    ({'Sec-WebSocket-Version': '8'}, 'version 13'), ({'Sec-WebSocket-Version': None}, 'version 13'),
    ({'Sec-WebSocket-Key': 'short'}, '16 bytes'), ({'Sec-WebSocket-Key': None}, '16 bytes'),
    ({'Sec-WebSocket-Key': '*' * 24}, '16 bytes'), ({'Connection': 'keep-alive'}, 'Connection: Upgrade')])
def test_handshake__that_is_none_is_refused(hf, headers, says):
    with pytest.raises(Refused) as no:
        WebSocket(hf, subscribes=False, headers=headers)
    reply = refused(no.value.reply, 400, 'bad_input')
    assert says in reply.json()['detail'] and reply.header('sec-websocket-version') == '13'


def test_handshake__of_a_foreign_origin_or_without_a_key_or_past_the_limit_is_refused(holdfast, opened):
    hf = holdfast(None, {'auth': 'required', 'events': {'max_per_owner': 1}})
    key = create(hf, '--role', 'member')
    for headers, status in (({}, 401), ({**key.headers, 'Origin': 'https://elsewhere.example'}, 403)):
        with pytest.raises(Refused) as no:
            WebSocket(hf, subscribes=False, headers=headers)
        assert no.value.reply.status == status
    with pytest.raises(Refused) as no:
        WebSocket(hf, subscribes=False, headers=key.headers, query='?types=outcome')
    assert 'in the message subscribe' in refused(no.value.reply, 400, 'bad_input').json()['detail']
    opened(WebSocket(hf, headers=key.headers))
    with pytest.raises(Refused) as no:
        WebSocket(hf, subscribes=False, headers=key.headers)
    refused(no.value.reply, 429, 'limit')


def test_upgrade__elsewhere_is_no_tunnel(hf):
    """Any other path answers as if nothing had been asked for."""
    with hf.connection() as line:
        for path in ('/api/v1/sessions', '/mcp/up', '/healthz', '/metrics'):
            line.send(line.head_bytes('GET', path, {'Connection': 'Upgrade', 'Upgrade': 'websocket', 'Sec-WebSocket-Version': '13',
                                                    'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA=='}, b''))
            assert line.read_response('GET').status in (200, 400, 405, 406)


def test_subscriptions__have_ids_filters_and_positions_of_their_own(hf, opened):
    call(hf, 2)
    line = opened(WebSocket(hf, subscribes=False))
    line.subscribe('all', after='0')
    line.subscribe('outcomes', after='0', types=['outcome'])
    line.subscribe('now', server='up,other', tool=['echo'])
    told = {}
    known = ids_of(hf)
    while len(told.get('all', [])) < len(known) or 'now' not in told:
        got = line.message()
        told.setdefault(got['id'], []).extend([got['event']['id']] if got['type'] == 'event' else [])
    assert told['all'] == known
    line.send(type='unsubscribe', id='all')
    while (got := line.message())['type'] != 'unsubscribed':
        pass
    assert got['id'] == 'all' and got['position']
    call(hf)
    new = ids_of(hf)[len(known):]
    while not told['now'] or told['now'][-1] != new[-1]:
        got = line.message()
        assert got['id'] != 'all'
        if got['type'] == 'event':
            told[got['id']].append(got['event']['id'])
    assert told['now'] == new
    line.subscribe('all', after=known[-1])
    found = []
    while len(found) < len(new):
        got = line.message()
        found += [got['event']['id']] if got['type'] == 'event' and got['id'] == 'all' else []
    assert found == new


@pytest.mark.parametrize('message, code, says', [
    (b'nonsense', 'parse', 'one JSON object'), (b'[]', 'parse', 'one JSON object'),
    (b'{"type":"subscribe","type":"subscribe","id":"a"}', 'parse', 'duplicate'),
    (b'{"type":"publish","id":"a"}', 'bad_input', 'subscribe or unsubscribe'), (b'{"id":"a"}', 'bad_input', 'subscribe or'),
    (b'{"type":"subscribe"}', 'bad_input', 'id is a text'), (b'{"type":"subscribe","id":7}', 'bad_input', 'id is a text'),
    (dump({'type': 'subscribe', 'id': 'x' * 65}).encode(), 'bad_input', '1 to 64 bytes'),
    (b'{"type":"subscribe","id":"a","types":"x"}', 'bad_input', 'types are intent'),
    (b'{"type":"subscribe","id":"a","kind":"x"}', 'bad_input', 'filters are types'),
    (b'{"type":"subscribe","id":"a","bodies":true}', 'bad_input', 'filters are types'),
    (b'{"type":"subscribe","id":"a","after":7}', 'bad_input', 'after is a text'),
    (b'{"type":"subscribe","id":"a","after":"x"}', 'bad_input', 'no position'),
    (b'{"type":"subscribe","id":"a","after":"99.1"}', 'bad_input', 'another database'),
    (b'{"type":"unsubscribe","id":"a"}', 'not_found', 'no subscription'),
    (b'{"type":"unsubscribe","id":"kept","types":"note"}', 'bad_input', 'type and id alone'),
    (b'{"type":"subscribe","id":"kept"}', 'conflict', 'with this id')])
def test_messages__that_cannot_be_are_errors_and_the_connection_goes_on(hf, opened, message, code, says):
    line = opened(WebSocket(hf, subscribes=False))
    line.subscribe('kept', types='anchor')
    assert line.message()['type'] == 'subscribed'
    line.socket.sendall(frame(TEXT, message))
    told = line.message()
    assert told['type'] == 'error' and told['code'] == code and says in told['detail'], told
    line.subscribe('x' * 64, types='anchor')
    assert line.message()['id'] == 'x' * 64


def test_subscriptions__are_taken_at_the_limit_and_refused_past_it(hf, opened):
    line = opened(WebSocket(hf, subscribes=False))
    for number in range(17):
        line.subscribe(str(number), types='anchor')
    told = [line.message() for _ in range(17)]
    errors = [one for one in told if one['type'] == 'error']
    assert [(one['id'], one['code']) for one in errors] == [('16', 'limit')] and 'at most 16' in errors[0]['detail']
    line.send(type='unsubscribe', id='3')
    line.subscribe('16', types='anchor')
    assert {line.message()['type'], line.message()['type']} == {'unsubscribed', 'subscribed'}


def closed_by(line):
    with pytest.raises(EOFError) as over:
        while True:
            line.message()
    return over.value


@pytest.mark.parametrize('data, code', [
    (frame(TEXT, b'{}', mask=False), 1002),
    (frame(TEXT, b'\xff\xfe'), 1007), (frame(TEXT, b'{}', rsv=4), 1002), (frame(3, b'x'), 1002), (frame(11, b''), 1002),
    (frame(BINARY, b'{}'), 1003), (frame(PING, b'x' * 126), 1005), (frame(PING, b'', fin=False), 1005),
    (frame(0, b'x'), 1002), (frame(TEXT, b'{', fin=False) + frame(TEXT, b'}'), 1002),
    (frame(TEXT, b'x' * (16 * 1024 + 1)), 1009),
    (frame(TEXT, b'x' * 16 * 1024, fin=False) + frame(0, b'x'), 1009),
    (b'\x81\xff' + (1 << 62).to_bytes(8, 'big') + b'abcdx', 1009), (b'\x81\xff' + b'\xff' * 8 + b'abcdx', 1005),
    (frame(CLOSE, b'\x03'), 1005), (frame(CLOSE, (1005).to_bytes(2, 'big')), 1002), (frame(CLOSE, (1000).to_bytes(2, 'big') + b'\xff'), 1007),
    (frame(CLOSE, (1000).to_bytes(2, 'big')), 1000), (frame(CLOSE), 1005)])
def test_frames__that_are_none_close_the_connection(hf, opened, data, code):
    line = opened(WebSocket(hf, subscribes=False))
    line.socket.sendall(data)
    over = closed_by(line)
    assert isinstance(over, Closed) and over.code == code, repr(over)
    assert line.file.read() == b''
    assert hf.get('/healthz').status == 200


def test_frames__of_a_message_may_come_in_pieces_with_others_between(hf, opened):
    line = opened(WebSocket(hf, subscribes=False))
    text = WebSocket.subscription('é' * 32)
    for number, byte in enumerate(text):
        line.socket.sendall(frame(TEXT if number == 0 else 0, bytes([byte]), fin=number == len(text) - 1))
        if number == 3:
            line.socket.sendall(frame(PING, b'there?'))
    assert line.frame() == (PONG, b'there?')
    assert line.message()['id'] == 'é' * 32
    line.send(type='unsubscribe', id='é' * 32)
    padded = text.replace(b'}', b' ' * (16 * 1024 - len(text)) + b'}').replace('é'.encode() * 32, b'long' + b' ' * 60)
    line.socket.sendall(frame(TEXT, padded))
    while line.message()['type'] != 'subscribed':
        pass


def test_frames__too_many_close_the_connection(hf, opened):
    line = opened(WebSocket(hf, subscribes=False))
    line.socket.sendall(frame(PING, b'x') * 200)
    for _ in range(200):
        assert line.frame() == (PONG, b'x')
    line.socket.sendall(frame(PING, b'x') * 5000)
    over = closed_by(line)
    assert over.code == 1008 and 'too many frames' in over.reason


def test_frames__by_chance_do_no_harm(hf):
    chance = random.Random(11)
    for _ in range(60):
        line = WebSocket(hf, subscribes=False)
        good = [frame(TEXT, WebSocket.subscription(str(i), after='0')) for i in range(3)]
        data = bytearray(b''.join(good + [frame(PING, b'abc'), frame(CLOSE)]))
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with contextlib.suppress(OSError):
            line.socket.sendall(bytes(data[:chance.randrange(1, len(data) + 1)]))
        line.close()
    assert hf.get('/healthz').status == 200
    wait_for(lambda: metric(hf, 'holdfast_event_streams') == 0, 'the end of all')


def test_ends__of_a_websocket_say_why(holdfast):
    hf = holdfast(None, {'auth': 'required'})
    key, kept = create(hf, '--role', 'admin'), create(hf, '--role', 'admin')
    line, other = WebSocket(hf, headers=key.headers), WebSocket(hf, headers=kept.headers)
    for one in (line, other):
        assert one.message()['type'] == 'subscribed'
    revoke(hf, key)
    over = closed_by(line)
    assert over.code == 1008 and 'revoked' in over.reason
    hf.stop()
    over = closed_by(other)
    assert over.code == 1001 and 'stopping' in over.reason
    hf.start()
    for one in (line, other):
        one.close()


@pytest.mark.skipif(not LONG, reason='waits for three pings; with --long')
def test_pings__keep_a_connection_that_answers_and_end_one_that_does_not(hf):
    alive, dead = WebSocket(hf, types='anchor'), WebSocket(hf, types='anchor')
    assert dead.message()['type'] == 'subscribed'
    began, pings = time.monotonic(), 0
    while True:
        opcode, payload = dead.frame()
        if opcode == CLOSE:
            assert payload[2:] == b'no answer to pings' and pings == 2
            break
        pings += opcode == PING
    assert 40 < time.monotonic() - began < 60
    for wanted in ('subscribed', 'position', 'position'):
        assert alive.message()['type'] == wanted
    alive.close()
    dead.close()


def test_example__of_the_page_runs_in_node(hf):
    """A client that is not ours, and offers compression."""
    if not harness.node():
        pytest.skip('Node could not be fetched from npm')
    example = next(text for language, text, _ in pages.blocks(pages.read('docs/events.md')) if language == 'js')
    with subprocess.Popen([harness.node(), '-e', example.replace(':4653/', f':{hf.port}/')], stdout=subprocess.PIPE) as client:
        try:
            wait_for(lambda: metric(hf, 'holdfast_event_streams') == 1, 'the stream')
            line = WebSocket(hf, types='outcome')
            assert line.message()['type'] == 'subscribed'
            told = []
            reader = threading.Thread(target=lambda: told.append(client.stdout.readline()))
            reader.start()
            while reader.is_alive():  # until it has subscribed, too
                call(hf)
                reader.join(0.1)
            line.close()
            assert told[0].decode().split()[1:] == ['up', 'echo', 'ok']
        finally:
            client.kill()
