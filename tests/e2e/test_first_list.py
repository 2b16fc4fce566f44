# SPDX-License-Identifier: Apache-2.0
"""The first conversation: servers are asked what they offer when Holdfast starts, each is started once for it, a first
list waits for those that are on their way, and whoever is missing is named."""
import json
import os
import subprocess
import sys

import pytest

from harness import BINARY, wait_for
from scripted import Background, get, open_gate

NAMES = ('script', 'echo', 'counter')
OURS = [f'session__{tool}' for tool in ('context_get', 'context_update', 'share', 'join', 'fork')]
ALL = {'tools': {'listChanged': True}, 'prompts': {'listChanged': True},
       'resources': {'listChanged': True, 'subscribe': True}, 'completions': {}, 'logging': {}}


def tools_of(*servers):
    return [f'{s}__{n}' for s in servers for n in NAMES] + OURS


def names(client):
    return [t['name'] for t in client.rpc('tools/list').result['tools']]


def probed(hf, server):
    return hf.wait_log(lambda l: l.get('msg') == 'server probed' and l.get('server') == server, f'the probe of {server}')


def failed(hf, server):
    return hf.wait_log(lambda l: l.get('msg') == 'a server could not be started' and l.get('server') == server,
                       f'the failure of {server}')


def shell(words):
    return {'command': '/bin/sh', 'args': ['-c', words]}


# -- the probe at start

def test_start__asks_every_server_once_without_being_asked(holdfast, scripted, http_server):
    old, new = scripted('old'), scripted('new', era='modern')
    web = http_server('web')
    hf = holdfast({'old': old.entry, 'new': new.entry, 'web': web.entry()})
    for name in ('old', 'new', 'web'):
        probed(hf, name)
    assert len(old.starts()) == len(new.starts()) == 1
    assert names(hf.client('/mcp').connect())[:3] == [f'old__{n}' for n in NAMES]
    assert len(old.starts()) == len(new.starts()) == 1
    assert len(old.of('server/discover')) == 1 and len(old.of('initialize')) == 1


def test_start__a_server_that_ignores_discover_is_started_once(holdfast, scripted, tmp_path):
    """Its silence ends with the initialize that follows on the same pipe."""
    server = scripted('mute', shape={'gates': {'server/discover': str(tmp_path / 'never')}})
    hf = holdfast({'mute': server.entry})
    probed(hf, 'mute')
    assert len(server.starts()) == 1


def test_start__a_server_that_exits_on_discover_is_started_again(holdfast, stdio_server):
    entry, record = stdio_server('shy', '--exit-on-probe')
    hf = holdfast({'shy': entry})
    probed(hf, 'shy')
    assert len(record.starts()) == 2


@pytest.mark.parametrize('era', ['legacy', 'modern', 'both'])
def test_start__the_era_does_not_depend_on_how_long_it_takes(holdfast, stdio_server, tmp_path, era):
    """Both requests wait in the pipe of a server that begins to read late."""
    gate = tmp_path / 'gate'
    entry, record = stdio_server('cold', '--era', era)
    inner = [entry['command'], *entry['args']]
    code = ('import os,sys,time\n'
            'while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n'
            'os.execv(sys.argv[2], sys.argv[2:])')
    hf = holdfast({'cold': {'command': sys.executable, 'args': ['-S', '-E', '-c', code, str(gate), *inner]}})
    hf.wait_log(lambda l: l.get('msg') == 'a server is slow to answer server/discover; initialize is sent as well', 'its silence')
    open_gate(gate)
    assert probed(hf, 'cold')['era'] == ('legacy' if era == 'legacy' else 'modern')


def test_reload__asks_a_new_server_at_once(holdfast, scripted):
    one, two = scripted('one'), scripted('two')
    hf = holdfast({'one': one.entry})
    probed(hf, 'one')
    hf.write_config({'mcpServers': {'one': one.entry, 'two': two.entry}, 'holdfast': {}})
    hf.process.send_signal(1)
    probed(hf, 'two')
    assert len(one.starts()) == len(two.starts()) == 1


# -- handshakes

@pytest.mark.parametrize('modern', [False, True], ids=['legacy', 'modern'])
def test_handshake__does_not_wait_and_declares_everything(holdfast, scripted, tmp_path, modern):
    slow = scripted('slow', shape={'gates': {'start': str(tmp_path / 'gate')}})
    hf = holdfast({'slow': slow.entry, 'dead': shell('echo "Error: no such table" >&2; exit 3')})
    failed(hf, 'dead')
    client = hf.client('/mcp', modern=modern)
    result = (client.rpc('server/discover') if modern else client.initialize()).result  # the gate is closed: it did not wait
    assert result['capabilities'] == ALL
    text = result['instructions']
    assert 'slow: it is still starting' in text
    assert 'dead: it could not be started: ' in text and 'no such table' in text
    open_gate(tmp_path / 'gate')
    probed(hf, 'slow')
    client = hf.client('/mcp', modern=modern)
    result = (client.rpc('server/discover') if modern else client.initialize()).result
    assert result['capabilities'] == ALL and 'slow' not in result['instructions']


def test_handshake__of_a_profile_declares_everything_too(holdfast, scripted, tmp_path):
    slow = scripted('slow', shape={'gates': {'start': str(tmp_path / 'gate')}})
    profiles = {'dynamic': {'mode': 'dynamic', 'toolsets': ['a']}, 'static': {'mode': 'static', 'toolsets': ['a']},
                'search': {'mode': 'search'}}
    hf = holdfast({'slow': slow.entry}, {'profiles': profiles, 'toolsets': {'a': {'description': 'all', 'tools': ['slow__*']}}})
    for name in profiles:
        result = hf.client(f'/mcp/p/{name}').initialize().result
        assert result['capabilities'] == (ALL if name != 'search' else {**ALL, 'tools': {}}), name
        assert 'slow: it is still starting' in result['instructions'], name


def test_instructions__name_twenty_of_many(holdfast):
    hf = holdfast({f's{n}': shell('exit 1') for n in range(23)})
    for n in range(23):
        failed(hf, f's{n}')
    text = hf.client('/mcp').initialize().result['instructions']
    assert text.count('could not be started') == 20 and '- and 3 more' in text


# -- lists

def test_first_list__waits_for_a_server_that_is_on_its_way(holdfast, scripted, tmp_path):
    gate = tmp_path / 'gate'
    slow, fast = scripted('slow', shape={'gates': {'start': str(gate)}}), scripted('fast')
    hf = holdfast({'slow': slow.entry, 'fast': fast.entry})
    probed(hf, 'fast')
    client = hf.client('/mcp').connect()
    first = Background(lambda: names(client))
    hf.wait_log(lambda l: l.get('msg') == 'a list waits for servers to answer', 'the list to wait')
    open_gate(gate)
    assert first.result() == tools_of('slow', 'fast')


@pytest.mark.parametrize('modern', [False, True], ids=['legacy', 'modern'])
def test_first_list__waits_once_then_the_server_is_left_out_and_announced(holdfast, scripted, tmp_path, modern):
    gate = tmp_path / 'gate'
    slow, fast = scripted('slow', shape={'gates': {'start': str(gate)}}), scripted('fast')
    hf = holdfast({'slow': slow.entry, 'fast': fast.entry})
    client = hf.client('/mcp', modern=modern)
    if modern:
        stream = client.open('subscriptions/listen', {'notifications': {'toolsListChanged': True}})
        assert json.loads(stream.message())['params']['notifications'] == {'toolsListChanged': True}
    else:
        client.connect()
        stream = get(client)
    assert names(client) == tools_of('fast')

    def waits():
        return len([l for l in hf.log() if l.get('msg') == 'a list waits for servers to answer'])
    once = waits()
    for _ in range(3):
        assert names(client) == tools_of('fast')
    assert waits() == once
    open_gate(gate)
    heard = json.loads(stream.message())
    while heard['method'] != 'notifications/tools/list_changed':
        heard = json.loads(stream.message())
    assert names(client) == tools_of('slow', 'fast')
    stream.close()


def test_a_list_that_waited__brings_no_notification(holdfast, scripted, tmp_path):
    """Only those who got a list without the server need to hear of it."""
    gate = tmp_path / 'gate'
    slow = scripted('slow', shape={'gates': {'start': str(gate)}})
    hf = holdfast({'slow': slow.entry})
    client = hf.client('/mcp').connect()
    stream = get(client)
    first = Background(lambda: names(client))
    hf.wait_log(lambda l: l.get('msg') == 'a list waits for servers to answer', 'the list to wait')
    open_gate(gate)
    assert first.result() == tools_of('slow')
    client.call('slow__script', {'steps': [{'get': {'jsonrpc': '2.0', 'method': 'notifications/prompts/list_changed'}}]})
    assert json.loads(stream.message())['method'] == 'notifications/prompts/list_changed'  # tools would have come before it
    stream.close()


# -- one-shot use

def test_stdio__one_shot_leaves_no_child_behind(scripted, tmp_path):
    slow, fast = scripted('slow', shape={'gates': {'start': str(tmp_path / 'never')}}), scripted('fast')
    config = tmp_path / 'config.json'
    config.write_text(json.dumps({'mcpServers': {'fast': fast.entry, 'slow': slow.entry}}))
    words = ''.join(json.dumps(m) + '\n' for m in (
        {'jsonrpc': '2.0', 'id': 1, 'method': 'initialize', 'params': {
            'protocolVersion': '2025-11-25', 'capabilities': {}, 'clientInfo': {'name': 'x', 'version': '1'}}},
        {'jsonrpc': '2.0', 'method': 'notifications/initialized'},
        {'jsonrpc': '2.0', 'id': 2, 'method': 'tools/call', 'params': {'name': 'fast__echo', 'arguments': {'text': 'hi'}}}))
    done = subprocess.run([BINARY, 'stdio', '--config', str(config), '--data', str(tmp_path / 'data')], input=words.encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    answers = {m['id']: m for m in map(json.loads, done.stdout.decode().splitlines()) if 'id' in m}
    assert done.returncode == 0, done.stderr
    assert 'slow: it is still starting' in answers[1]['result']['instructions']
    assert answers[2]['result']['content'][0]['text'] == 'hi'
    for pid in slow.starts() + fast.starts():
        wait_for(lambda p=pid: not os.path.exists(f'/proc/{p}'), 'the children to be gone')
