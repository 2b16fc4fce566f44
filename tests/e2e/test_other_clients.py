# SPDX-License-Identifier: Apache-2.0
"""Configurations of other clients: what they say is done or refused, never passed over."""
import json
import os
import signal
import subprocess

import commands
import harness
import pytest

HIDDEN = ('Unknown tool: there is none of this name; tools/list names them. '
          'If you expect it, your key may not include it: ask an administrator')


def names(client):
    return {tool['name'] for tool in client.rpc('tools/list').result['tools']}


def call(client, name, **arguments):
    return client.rpc('tools/call', {'name': name, 'arguments': arguments})


def check(folder, text, name='mcp.json'):
    """`holdfast config check` of a file with this text."""
    path = os.path.join(str(folder), name)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text if isinstance(text, str) else json.dumps(text))
    return subprocess.run([harness.BINARY, 'config', 'check', '--config', path], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize('modern', [False, True])
@pytest.mark.parametrize('entry,shown', [({'disabledTools': ['counter', 'sl*']}, {'echo'}), ({'enabled_tools': ['echo', 'hang']}, {'echo', 'hang'}),
                                         ({'includeTools': ['*'], 'excludeTools': ['counter', 'slow']}, {'echo'})])
def test_tools_that_are_switched_off_are_not_listed_found_or_called(holdfast, stdio_server, entry, shown, modern):
    up, _ = stdio_server('up', **entry)
    hf = holdfast({'up': up, 'whole': stdio_server('whole')[0]}, {'profiles': {'find': {'mode': 'search'}}})
    own, merged = hf.client('/mcp/up', modern=modern), hf.client('/mcp', modern=modern)
    for client, prefix in ((own, ''), (merged, 'up__')):
        listed = names(client)
        assert {prefix + name for name in shown} <= listed and not {prefix + 'counter', prefix + 'slow'} & listed, listed
        assert call(client, prefix + 'echo', text='x').result['content'][0]['text'] == 'x'
        for name in ('counter', 'slow'):
            assert call(client, prefix + name).error['message'] == HIDDEN
    assert 'whole__counter' in names(merged) and call(merged, 'whole__counter').result
    found = hf.client('/mcp/p/find', modern=modern)
    told = json.dumps(call(found, 'find', description='counter').result)
    assert 'whole:counter' in told and 'up:counter' not in told, told
    assert not call(found, 'run', tool='whole:counter').result.get('isError')
    assert call(found, 'run', tool='up:counter').result['isError']
    assert {row['name'] for row in commands.run_json(hf, 'servers', 'show', 'up')} == {n for n in names(own)}


def test_a_reload_switches_tools_on_again(holdfast, stdio_server):
    up, _ = stdio_server('up')
    hf = holdfast({'up': {**up, 'disabledTools': ['counter']}})
    client = hf.client('/mcp/up', modern=True)
    assert call(client, 'counter').error['message'] == HIDDEN
    hf.write_config({'mcpServers': {'up': up}})
    hf.process.send_signal(signal.SIGHUP)
    hf.wait_log(lambda l: l.get('msg') == 'configuration reloaded', 'the reload')
    assert 'counter' in names(client) and call(client, 'counter').result


def test_variables_of_an_env_file_reach_the_server_and_nobody_else(holdfast, tmp_path):
    (tmp_path / 'show.py').write_text(
        'import json, os, sys\n'
        'for line in sys.stdin:\n'
        '    m = json.loads(line)\n'
        '    if "id" not in m: continue\n'
        '    r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}\n'
        '    if m["method"] == "tools/list": r = {"tools": [{"name": "env", "inputSchema": {"type": "object"}}]}\n'
        '    if m["method"] == "tools/call": r = {"content": [{"type": "text", "text": os.environ["TOKEN"][::-1] + os.getcwd()}]}\n'
        '    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)\n')
    hf = holdfast({'s': {'command': harness.PYTHON, 'args': [str(tmp_path / 'show.py')], 'envFile': 'keys/.env', 'cwd': '${workspaceFolder}/keys'}},
                  start=False)
    os.mkdir(hf.folder + '/keys')
    with open(hf.folder + '/keys/.env', 'w', encoding='utf-8') as file:
        file.write('# keys\nexport TOKEN="geheim-canary"\n')
    hf.start()
    result = call(hf.client('/mcp/s', modern=True), 'env').result
    assert result['content'][0]['text'] == 'geheim-canary'[::-1] + os.path.realpath(hf.folder + '/keys')
    shown = commands.run(hf, 'config', 'show', '--config', hf.config_file, with_data=False)
    assert shown.returncode == 0 and 'geheim' not in shown.stdout and '"envFile": "keys/.env"' in shown.stdout, shown.stdout
    assert 'geheim' not in '\n'.join(hf.lines)
    os.unlink(hf.folder + '/keys/.env')
    done = subprocess.run([harness.BINARY, 'up', '--data', hf.folder + '/other', '--config', hf.config_file], cwd='/', capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 7 and 'keys/.env: No such file or directory' in done.stderr, done.stderr


def test_a_vs_code_file_is_read_from_its_own_folder(tmp_path):
    (tmp_path / '.vscode').mkdir()
    (tmp_path / 'bin').mkdir()
    os.symlink('/bin/cat', tmp_path / 'bin' / 'server')
    entry = {'type': 'stdio', 'command': '${workspaceFolder}/bin/server', 'args': ['${userHome}${/}x', '${HF_NOT_SET:-plain}']}
    done = check(tmp_path / '.vscode', {'inputs': [], 'servers': {'a': entry}})
    assert done.returncode == 0 and '1 server' in done.stdout, done.stderr
    entry['args'] = ['${input:token}']
    done = check(tmp_path / '.vscode', {'inputs': [{'id': 'token', 'description': 'a token'}], 'servers': {'a': entry}})
    assert done.returncode == 0 and '1 server' in done.stdout, done.stderr
    entry['args'] = ['${command:token}']
    done = check(tmp_path / '.vscode', {'servers': {'a': entry}})
    assert done.returncode == 7 and '${command:token} is a command of an editor' in done.stderr and '${env:NAME}' in done.stderr


@pytest.mark.parametrize('name,text,words', [
    ('config.toml', '[mcp_servers.a]\ncommand = "cat"\n', ':1:2: this is TOML'),
    ('mcp.yaml', 'mcpServers:\n  a:\n    command: cat\n', 'this is YAML'),
    ('quotes.json', '{\n  “mcpServers”: {}\n}', ':2:3: this is a typographic quote'),
    ('ttl.json', '{"holdfast": {"session": {"limits": {"idle_timeout": 0}}}}', 'from 1 s to 30 d'),
    ('timeout.json', '{"mcpServers": {"a": {"command": "cat", "timeout": "soon"}}}', ':1:52: "timeout" must be a duration'),
    ('listen.json', '{"holdfast": {\n"listen": "0.0.0.0:80"}}', ':2:11: "listen" is 0.0.0.0:80'),
    ('tls.json', '{"holdfast": {\n"tls": {"cert": "/nonexistent", "key": "/nonexistent"}}}', ':2:8: holdfast.tls: '),
])
def test_what_is_wrong_is_said_in_words_and_with_its_place(tmp_path, name, text, words):
    done = check(tmp_path, text, name)
    assert done.returncode == 7 and words in done.stderr, done.stderr


def test_milliseconds_are_understood_and_said(tmp_path):
    done = check(tmp_path, '\ufeff' + json.dumps({'mcpServers': {'a': {'command': 'cat', 'timeout': 60000}, 'b': {'command': 'cat', 'timeout': 120}}}))
    assert done.returncode == 0 and '"timeout" of server a is 60000 milliseconds, 1m;' in done.stderr and 'server b' not in done.stderr, done.stderr


def test_a_server_that_cannot_start_is_named_by_config_check_and_at_the_start(holdfast, tmp_path):
    servers = {'words': {'command': 'npx -y foo'}, 'gone': {'command': 'nosuchprogram'}, 'cwd': {'command': 'cat', 'cwd': '/nonexistent'}}
    done = check(tmp_path, {'mcpServers': servers, 'holdfast': {'docs': {'Lens': {'path': '/nonexistent/docs'}}}})
    assert done.returncode == 7 and 'has 3 errors' in done.stdout, done.stdout
    assert '"command": "npx", "args": ["-y", "foo"]' in done.stderr and 'nosuchprogram is not in PATH (' in done.stderr
    assert 'it cannot start in /nonexistent: No such file or directory' in done.stderr and '/nonexistent/docs, cannot be read' in done.stderr
    hf = holdfast(servers)
    told = [l['warning'] for l in hf.log() if l.get('msg') == 'configuration' and 'warning' in l]
    assert len(told) == 3 and all(any(f'server "{name}": ' in text for text in told) for name in servers), told
