# SPDX-License-Identifier: Apache-2.0
"""The era of a server on a pipe is found out once and remembered over restarts, for one definition and version of it."""
import os

import pytest

from harness import wait_for
from scripted import Script


def eras(hf):
    path = os.path.join(hf.data, 'server-eras')
    if not os.path.exists(path):
        return {}
    with open(path, encoding='utf-8', errors='replace') as file:
        return {line.split()[0]: line.split()[2] for line in file if len(line.split()) == 4}


def again(hf):
    """Starts it once more, until its servers have been asked."""
    since = len(hf.log())
    hf.restart(kill=False)
    return since


def test_an_older_server__is_asked_for_discover_once(holdfast, scripted):
    server = scripted('old')
    hf = holdfast({'old': server.entry}).wait_asked('old')
    wait_for(lambda: eras(hf) == {'old': 'legacy'}, 'the era on disk')
    for count in (2, 3):
        again(hf)
        server.wait('initialize', count)
        assert hf.client('/mcp/old').connect().rpc('tools/list').result['tools']
        assert len(server.of('server/discover')) == 1 and len(server.starts()) == count


def test_a_newer_server__is_asked_for_discover_with_patience(holdfast, scripted, tmp_path):
    """Remembered as one that answers, it is given more than two seconds to start."""
    gate = tmp_path / 'gate'
    gate.write_text('')
    server = scripted('new', era='modern', shape={'gates': {'start': str(gate)}})
    hf = holdfast({'new': server.entry}).wait_asked('new')
    wait_for(lambda: eras(hf) == {'new': 'modern'}, 'the era on disk')
    again(hf)
    server.wait('server/discover', 2)
    assert len(server.starts()) == 2 and not server.of('initialize')


@pytest.mark.parametrize('change', ['version', 'definition', 'none'])
def test_memory__holds_for_one_definition_and_version(holdfast, tmp_path, change):
    """A launcher whose program can be replaced under the same definition."""
    first, second = Script(tmp_path, 'first', shape={'name': 'v1'}), Script(tmp_path, 'second', shape={'name': 'v2'})
    launcher = tmp_path / 'launcher.py'

    def install(server):
        launcher.write_text(f'import os\nos.execv({server.entry["command"]!r}, {[server.entry["command"], *server.entry["args"]]!r})\n')
    install(first)
    entry = {'command': first.entry['command'], 'args': ['-S', '-E', str(launcher)], 'handles': 'never'}
    hf = holdfast({'up': entry}).wait_asked('up')
    wait_for(lambda: eras(hf) == {'up': 'legacy'}, 'the era on disk')
    assert len(first.of('server/discover')) == 1
    if change == 'version':
        install(second)
    elif change == 'definition':
        hf.write_config({'mcpServers': {'up': {**entry, 'env': {'X': '1'}}}, 'holdfast': {}})
    since = again(hf)
    hf.wait_log(lambda l: l.get('msg') == 'server probed' and l.get('server') == 'up', 'the second probe', since=since)
    if change == 'version':
        second.wait('server/discover')
        assert len(second.starts()) == 2  # found to be another, then asked
    else:
        assert len(first.of('server/discover')) == (2 if change == 'definition' else 1)


def test_memory__that_is_not_ours_is_passed_over(holdfast, scripted):
    server = scripted('up')
    hf = holdfast({'up': server.entry}, start=False)
    os.makedirs(hf.data, mode=0o700)
    with open(os.path.join(hf.data, 'server-eras'), 'wb') as file:
        file.write(b'up nothing legacy 1\n\xff\xfe\x00\nup ' + b'0' * 64 + b' sometimes 1\n' + b'x' * 100000 + b'\n')
    hf.start()
    hf.wait_asked('up')
    assert len(server.of('server/discover')) == 1
    wait_for(lambda: eras(hf) == {'up': 'legacy'}, 'the era on disk')
    assert os.path.getsize(os.path.join(hf.data, 'server-eras')) < 200


def test_a_server_of_2026_alone__is_not_tried_with_initialize_again(holdfast, stdio_server):
    entry, record = stdio_server('up', '--era', 'modern', handles='never')
    hf = holdfast({'up': entry}).wait_asked('up')
    assert hf.client('/mcp/up').connect().call('echo', {'text': 'a'}).text == 'a'
    wait_for(lambda: eras(hf) == {'up': 'modern-only'}, 'the era on disk')
    again(hf)
    assert hf.client('/mcp/up').connect().call('echo', {'text': 'b'}).text == 'b'
    assert len(record.of('initialize')) == 1
