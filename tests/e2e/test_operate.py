# SPDX-License-Identifier: Apache-2.0
"""What operators do: look at its health, stop it, reload it, and start it wrongly."""
import contextlib
import json
import os
import re
import signal
import socket
import threading
import time

import pytest

from commands import Executions, control, is_alive
from harness import Connection, Holdfast, wait_for


def running(hf, *words):
    """Starts it without waiting and gives (exit status, its words)."""
    hf.args += words
    hf.start(wait=False)
    status = hf.process.wait(20)
    hf.readers[-1].join(20)
    hf.check_sanitizers()
    return status, hf.text()


# Health and metrics.

def test_healthz_readyz__are_json_and_open(holdfast):
    hf = holdfast()
    for path, word in (('/healthz', 'ok'), ('/readyz', 'ready')):
        reply = hf.get(path)
        assert reply.status == 200 and reply.header('Content-Type').startswith('application/json')
        assert reply.json()['status'] == word
    assert hf.request('POST', '/healthz', {}, b'{}').status == 405


SAMPLE = re.compile(r'[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-zA-Z_]\w*="(\\.|[^"\\\n])*",?)+\})? -?(\d+(\.\d+)?(e[+-]?\d+)?|\+Inf|NaN)')


def metrics(hf):
    """{sample line name with labels: value}; every line of the page is checked."""
    reply = hf.get('/metrics')
    assert reply.status == 200 and reply.header('Content-Type').startswith('text/plain')
    values = {}
    for line in reply.body.decode().splitlines():
        if line.startswith('#'):
            assert re.fullmatch(r'# (HELP|TYPE) [a-zA-Z_:][\w:]* .+', line), line
            continue
        assert SAMPLE.fullmatch(line), line
        name, value = line.rsplit(' ', 1)
        assert name not in values, f'twice: {name}'
        values[name] = float(value)
    return values


def test_metrics__show_the_space_that_is_left_for_the_data(holdfast):
    hf = holdfast()
    space = os.statvfs(hf.data)
    assert 0 < metrics(hf)['holdfast_data_free_bytes'] <= space.f_blocks * space.f_frsize
    assert metrics(hf)['holdfast_data_free_bytes'] % space.f_frsize == 0
    assert not [name for name in metrics(hf) if name.startswith('holdfast_certificate_')], 'there is no certificate'


def test_metrics__count_what_happened(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    before = metrics(hf)
    assert before['holdfast_calls_in_flight'] == 0
    for _ in range(3):
        client.call('echo', {'text': 'x'})
    client.call('fail')
    after = metrics(hf)

    def grown(start, **labels):
        wanted = [f'{k}="{v}"' for k, v in labels.items()]
        names = [n for n in after if n.startswith(start) and all(w in n for w in wanted)]
        return sum(after[n] - before.get(n, 0) for n in names)
    assert grown('holdfast_executions_total', server='up', outcome='ok') == 3
    assert grown('holdfast_executions_total', server='up', outcome='tool_error') == 1
    assert grown('holdfast_requests_total', method='tools/call', status='2xx') == 4
    assert grown('mcp_server_operation_duration_seconds_count', mcp_method_name='tools/call', error_type='') == 3
    assert grown('mcp_server_operation_duration_seconds_count', mcp_method_name='tools/call', error_type='tool_error') == 1
    assert grown('mcp_client_operation_duration_seconds_count', mcp_method_name='tools/call', error_type='') == 3
    assert grown('mcp_client_operation_duration_seconds_count', mcp_method_name='tools/call', error_type='tool_error') == 1
    assert grown('tools_executed_total', tenant_id='default', tool_name='echo') == 3
    assert grown('tools_executed_total', tenant_id='default', tool_name='fail') == 1
    assert grown('sessions_created_total', tenant_id='default') == 1
    assert after['sessions_active'] == 1
    assert after['holdfast_sessions_counted{tenant_id="default"}'] == 0  # it was born of a transport
    assert after['holdfast_sessions_limit{tenant_id="default"}'] == 100
    assert after['holdfast_upstream_up{server="up"}'] == 1
    assert after['holdfast_upstream_links'] == 1 and after['holdfast_sessions_resident'] >= 1


def test_metrics__can_be_switched_off(holdfast):
    assert holdfast(settings={'metrics': False}).get('/metrics').status == 404


# Stopping.

def slow_call(hf, steps=1, delay_ms=1500, tool='slow', session=True):
    """A call under way: (its Client, the open Connection)."""
    client = hf.client('/mcp/up')
    if session:
        client.connect()
    connection = Connection(hf.port)
    params = {'name': tool, 'arguments': {'steps': steps, 'delay_ms': delay_ms}}
    body = json.dumps({'jsonrpc': '2.0', 'id': 's', 'method': 'tools/call', 'params': params}).encode()
    connection.send(connection.head_bytes('POST', '/mcp/up', client.headers_for('tools/call', params), body) + body)
    return client, connection


def refuses_connections(port):
    try:
        socket.create_connection(('127.0.0.1', port), timeout=5).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return True
    return False


def test_sigterm__lets_a_call_finish_and_takes_no_new_connection(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    client, connection = slow_call(hf)
    idle = Connection(hf.port)
    assert idle.request('GET', '/healthz').status == 200
    record.wait('tools/call')
    hf.process.send_signal(signal.SIGTERM)
    wait_for(lambda: refuses_connections(hf.port), 'the listener to close')
    assert hf.process.poll() is None
    assert idle.is_closed(5), 'an idle connection stays open while stopping'
    reply = connection.read_response()
    assert reply.status == 200 and reply.json()['result']['content'][0]['text'] == '1 steps'
    answered = time.monotonic()
    assert hf.process.wait(20) == 0
    assert time.monotonic() - answered < 5
    hf.readers[-1].join(20)
    hf.check_sanitizers()
    hf.start()
    assert [w for _, w in Executions().read(hf).of_tool('slow')] == ['ok']
    assert client.call('echo', {'text': 'again'}).text == 'again'


class SlowReader(Connection):
    """A client whose kernel takes little at a time."""

    def __init__(self, port):  # pylint: disable=super-init-not-called
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
        self.socket.settimeout(20)
        self.socket.connect(('127.0.0.1', port))
        self.port, self.rest = port, b''


def test_sigterm__while_answers_are_being_read_cuts_nothing(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    hf.client('/mcp/up').call('echo')
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big","arguments":{"n":4000000}}}'
    readers = [SlowReader(hf.port) for _ in range(4)]
    for reader in readers:
        reader.send(reader.head_bytes('POST', '/mcp/up', {}, body) + body)
    for reader in readers:
        assert reader.more()
    hf.process.send_signal(signal.SIGTERM)
    hf.wait_log(lambda l: str(l.get('msg', '')).startswith('stopping'), 'the stop to begin')
    wait_for(lambda: refuses_connections(hf.port), 'the listener to close')
    assert hf.process.poll() is None  # it waits for the readers
    for reader in readers:
        assert len(reader.read_response().json()['result']['content'][0]['text']) == 4000000
        reader.close()
    assert hf.process.wait(20) == 0


def test_sigterm__twice_stops_at_once(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    _, connection = slow_call(hf, tool='hang')
    record.wait('tools/call')
    hf.process.send_signal(signal.SIGTERM)
    hf.wait_log(lambda l: str(l.get('msg', '')).startswith('stopping'), 'the stop to begin')
    began = time.monotonic()
    hf.process.send_signal(signal.SIGTERM)
    assert hf.process.wait(20) == 1
    assert time.monotonic() - began < 5
    wait_for(lambda: not [pid for pid in record.starts() if is_alive(pid)], 'the children to be gone', 2)
    hf.readers[-1].join(20)
    hf.check_sanitizers()
    connection.close()
    hf.start()
    assert [w for _, w in Executions().read(hf).of_tool('hang')] == ['indeterminate']


def test_sigterm__under_load_acknowledges_or_refuses_every_call(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never', share='all')
    hf = holdfast({'up': entry})
    hf.client('/mcp/up').call('echo')
    told, odd = [], []

    def work(n):
        try:
            with Connection(hf.port) as connection:
                for turn in range(1000):
                    key = f'{n}.{turn}'
                    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"counter","arguments":{"key":"%s"}}}' % key.encode()
                    reply = connection.request('POST', '/mcp/up', {}, body)
                    if reply.status == 200:
                        told.append(key)
                    elif reply.status != 503:
                        odd.append(reply)
        except (OSError, EOFError):
            pass
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    record.wait('tools/call', 100)
    hf.stop()
    for thread in threads:
        thread.join(20)
    hf.check_sanitizers()
    assert not odd and told
    hf.start()
    executions = Executions().read(hf)
    words = {json.loads(e['body'])['arguments'].get('key'): w for e, w in executions.of_tool('counter')}
    assert all(words[key] == 'ok' for key in told)
    assert set(words.values()) == {'ok'}, 'calls under way were not waited for'


# Reloading.

def reload(hf, config, wanted='configuration reloaded'):
    since = len(hf.log())
    if isinstance(config, str):
        with open(hf.config_file, 'w', encoding='utf-8') as file:
            file.write(config)
    else:
        hf.write_config(config)
    hf.process.send_signal(signal.SIGHUP)
    return hf.wait_log(lambda l: str(l.get('msg', '')).startswith(wanted), wanted, since)


def pid_of(client):
    return client.call('counter').result['structuredContent']['pid']


def test_sighup__adds_and_removes_and_leaves_the_rest_alone(holdfast, stdio_server):
    (keep, _), (gone, gone_record), (new, _) = (stdio_server(n, handles='never') for n in ('keep', 'gone', 'new'))
    hf = holdfast({'keep': keep, 'gone': gone})
    stays, leaves = hf.client('/mcp/keep').connect(), hf.client('/mcp/gone').connect()
    pid = pid_of(stays)
    leaves.call('counter')
    assert hf.client('/mcp/new').call('echo', {'text': 'x'}).status == 404
    reload(hf, {'mcpServers': {'new': new, 'keep': keep}, 'holdfast': {}})
    assert hf.client('/mcp/new').call('echo', {'text': 'x'}).text == 'x'
    assert leaves.call('counter').status == 404
    assert hf.client('/mcp/gone').call('echo').status == 404
    again = stays.call('counter')
    assert again.result['structuredContent'] == {'count': 2, 'pid': pid}
    assert 'holdfast/state-lost' not in again.result.get('_meta', {})
    wait_for(lambda: not [p for p in gone_record.starts() if is_alive(p)], 'the removed server to end')
    assert [s['name'] for s in control(hf, '/api/v1/servers').json()['servers']] in (['new', 'keep', 'session'], ['keep', 'new', 'session'])


def test_sighup__a_changed_server_is_started_anew_and_says_so(holdfast, stdio_server):
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    pid = pid_of(client)
    reload(hf, {'mcpServers': {'up': {**entry, 'env': {'NEW': '1'}}}, 'holdfast': {}})
    reply = client.call('counter')
    assert reply.result['structuredContent']['count'] == 1 and reply.result['structuredContent']['pid'] != pid
    assert reply.result['_meta']['holdfast/state-lost']['server'] == 'up'
    wait_for(lambda: not is_alive(pid), 'the old generation to end')


def test_sighup__lets_calls_of_a_removed_server_finish(holdfast, stdio_server):
    entry, record = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    _, connection = slow_call(hf, delay_ms=1000)
    record.wait('tools/call')
    reload(hf, {'mcpServers': {}, 'holdfast': {}})
    reply = connection.read_response()
    assert reply.status == 200 and reply.json()['result']['content'][0]['text'] == '1 steps'
    connection.close()


class FromFile(Holdfast):
    """The address comes from the configuration file."""

    def command(self):
        command = super().command()
        at = command.index('--listen')
        return command[:at] + command[at + 2:]

    def wait_ready(self, since):
        line = self.wait_log(lambda l: l.get('msg') == 'listening', 'the listening line', since)
        self.port = int(line['address'].rsplit(':', 1)[1])


def test_sighup__a_listener_beyond_loopback_keeps_its_demands_until_a_restart(tmp_path, stdio_server):
    """The file says loopback and no authentication, but the open listener is still the old one."""
    entry, _ = stdio_server('up', handles='never')
    public = {'listen': '0.0.0.0:0', 'auth': 'required', 'trusted_proxies': ['127.0.0.1']}
    with contextlib.closing(FromFile(tmp_path, {'mcpServers': {'up': entry}, 'holdfast': public}).start()) as hf:
        assert hf.client('/mcp/up').call('echo', {'text': 'x'}).status == 401
        line = reload(hf, {'mcpServers': {'up': entry}, 'holdfast': {'listen': '127.0.0.1:0', 'auth': 'none'}},
                      'the configuration was not reloaded')
        assert 'restart' in line['why'] and '0.0.0.0' in line['why']
        assert hf.client('/mcp/up').call('echo', {'text': 'x'}).status == 401


BROKEN = '{\n  "mcpServers": {\n    "up": { "command": 7 }\n  }\n}\n'


@pytest.mark.parametrize('text', [BROKEN, '{ "mcpServers": ', '{"holdfast": {"listne": "127.0.0.1:1"}}', ''])
def test_sighup__a_broken_file_changes_nothing_and_is_told(holdfast, stdio_server, text):
    entry, _ = stdio_server('up', handles='never')
    hf = holdfast({'up': entry})
    client = hf.client('/mcp/up').connect()
    pid = pid_of(client)
    line = reload(hf, text, 'the configuration was not reloaded')
    assert re.search(r'holdfast\.json:\d+:\d+', line['why']), line
    assert client.call('counter').result['structuredContent'] == {'count': 2, 'pid': pid}
    reload(hf, {'mcpServers': {'up': entry}, 'holdfast': {}})
    assert client.call('counter').result['structuredContent'] == {'count': 3, 'pid': pid}


# Starts that are refused.

def test_start__second_owner_is_refused_and_told_whose_it_is(holdfast):
    first, second = holdfast(), holdfast(start=False)
    second.data = first.data
    status, words = running(second)
    assert status == 7 and f'pid {first.process.pid}' in words, words
    assert first.get('/readyz').status == 200


@pytest.mark.parametrize('address', ['0.0.0.0:0', '192.0.2.1:4653', '[::]:0'])
def test_start__beyond_loopback_is_refused(holdfast, address):
    status, words = running(holdfast(start=False), '--listen', address)
    assert status == 7 and '"auth": "required"' in words, words


CONFIGS = [
    (BROKEN, '3:'),
    ('{\n  "mcpServers": {,}\n}', '2:'),
    ('{\n  "holdfast": {\n    "lisen": "127.0.0.1:1"\n  }\n}', '3:5'),
    ('{\n "mcpServers": {\n  "a__b": {"command": "true"}\n }\n}', '3:'),
    ('[]', '1:1'),
    ('', '1:1'),
]


@pytest.mark.parametrize('text,where', CONFIGS, ids=['type', 'syntax', 'unknown key', 'server name', 'array', 'empty'])
def test_start__bad_configuration_is_refused_with_line_and_column(holdfast, text, where):
    hf = holdfast(start=False)
    with open(hf.config_file, 'w', encoding='utf-8') as file:
        file.write(text)
    status, words = running(hf)
    assert status == 7 and f'holdfast.json:{where}' in words, words


def test_start__an_unknown_key_names_the_nearest(holdfast):
    hf = holdfast(start=False)
    hf.write_config({'holdfast': {'lisen': '127.0.0.1:0'}})
    status, words = running(hf)
    assert status == 7 and '"listen"' in words, words


def test_start__missing_config_file_is_refused(holdfast):
    hf = holdfast(start=False)
    status, words = running(hf, '--config', hf.folder + '/no-such.json')
    assert status == 7 and 'no-such.json' in words, words


def test_start__usage_errors_exit_2(holdfast):
    for words in (['--no-such-flag'], ['surplus'], ['--log-level', 'loud']):
        hf = holdfast(start=False)
        assert running(hf, *words)[0] == 2


def test_start__port_in_use_is_refused(holdfast):
    first, second = holdfast(), holdfast(start=False)
    second.port = first.port
    status, words = running(second)
    assert status != 0 and str(first.port) in words, words
