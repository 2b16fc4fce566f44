# SPDX-License-Identifier: Apache-2.0
"""`holdfast servers restart` and `servers logs`, with the operations behind them."""
import json
import os
import signal
import subprocess

import harness
from commands import command_env, events, is_alive, run, run_json
from harness import PYTHON, stdio_server, wait_for
from keys import create

# A server that says on stderr what it does, and what its key is.
CHATTY = '''
import json, os, sys
print("begin", os.getpid(), "with", os.environ.get("TOKEN"), file=sys.stderr, flush=True)
tools = [{"name": "say", "inputSchema": {"type": "object"}}]
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    r = {"tools": tools}
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "c", "version": "1"}}
    elif m["method"] == "tools/call":
        for i in range(m["params"]["arguments"].get("lines", 1)):
            print("said", i, m["params"]["arguments"].get("text", ""), file=sys.stderr, flush=True)
        r = {"content": [{"type": "text", "text": "said"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
'''


def chatty(**env):
    return {'command': PYTHON, 'args': ['-S', '-E', '-c', CHATTY], 'env': env, 'era': 'legacy'}


def call(client, tool, **arguments):
    return client.rpc('tools/call', {'name': tool, 'arguments': arguments})


def logs(hf, *flags):
    done = run(hf, 'servers', 'logs', 'talk', '--json', *flags)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_logs__are_the_newest_lines_without_secrets(holdfast):
    hf = holdfast({'talk': chatty(TOKEN='hushhush-canary-4711')}).wait_asked('talk')
    with hf.client('/mcp/talk') as client:
        client.initialize()
        assert call(client, 'say', text='one').result
        wait_for(lambda: any('said 0 one' in l['text'] for l in logs(hf)), 'the line of the call')
    lines = logs(hf)
    assert not any('canary' in l['text'] for l in lines) and any('begin' in l['text'] for l in lines)
    said = next(l for l in lines if 'said' in l['text'])
    assert said['session'] and 'session' not in lines[0]
    assert [l['number'] for l in logs(hf, '-n', '1')] == [lines[-1]['number']]
    plain = run(hf, 'servers', 'logs', 'talk')
    assert 'said 0 one' in plain.stdout and 'canary' not in plain.stdout


def test_logs__are_bounded_and_escaped_on_a_terminal(holdfast):
    hf = holdfast({'talk': chatty()}).wait_asked('talk')
    with hf.client('/mcp/talk') as client:
        client.initialize()
        assert call(client, 'say', text='\x1b[31mred', lines=300).result
        wait_for(lambda: any('lines left out' in l['text'] for l in logs(hf, '-n', '200')), 'the count of the lines left out')
    assert len(logs(hf, '-n', '200')) <= 200
    assert '\x1b' not in run(hf, 'servers', 'logs', 'talk', '-n', '200').stdout
    assert run(hf, 'servers', 'logs', 'talk', '-n', '201').returncode == 2


def test_logs__follow_until_interrupted(holdfast):
    hf = holdfast({'talk': chatty()}).wait_asked('talk')
    follower = subprocess.Popen([harness.BINARY, 'servers', 'logs', 'talk', '-f', '--data', hf.data], env=command_env(hf),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with hf.client('/mcp/talk') as client:
        client.initialize()
        assert call(client, 'say', text='while-following').result
    while 'while-following' not in (line := follower.stdout.readline()):
        assert line, follower.stderr.read()
    follower.send_signal(signal.SIGINT)
    follower.communicate(timeout=30)
    assert follower.returncode != 0


def test_restart__ends_the_processes_and_tells_the_session(holdfast, tmp_path):
    entry, _ = stdio_server(tmp_path)
    hf = holdfast({'rec': entry}).wait_asked('rec')
    with hf.client('/mcp/rec') as client:
        client.initialize()
        call(client, 'counter')
        pid = call(client, 'env').result['structuredContent']['pid']
        done = run(hf, 'servers', 'restart', 'rec')
        assert done.returncode == 0 and 'restarted: rec' in done.stderr, done.stderr
        wait_for(lambda: not is_alive(pid), 'the end of the old process')
        again = call(client, 'counter').result
        lost = again['_meta']['holdfast/state-lost']
        assert lost['server'] == 'rec' and lost['reason'] == 'child_restarted'
        assert '[holdfast: rec was restarted; its earlier state is lost]' in again['content'][-1]['text']
    assert any(e.get('method') == 'server/restart' and e.get('server') == 'rec' for e in events(hf))
    assert run_json(hf, 'servers', 'list')[0]['state'] == 'healthy'


def test_restart__lets_a_call_under_way_finish(holdfast, tmp_path):
    entry, record = stdio_server(tmp_path)
    gate = tmp_path / 'gate'
    os.mkfifo(gate)
    hf = holdfast({'rec': entry}).wait_asked('rec')
    with hf.client('/mcp/rec') as client:
        client.initialize()
        connection = hf.connection()
        body = json.dumps({'jsonrpc': '2.0', 'id': 7, 'method': 'tools/call',
                           'params': {'name': 'slow', 'arguments': {'steps': 1, 'gate': str(gate)}}}).encode()
        connection.send(connection.head_bytes('POST', '/mcp/rec', client.headers_for('tools/call', {'name': 'slow'}), body) + body)
        record.wait('tools/call')
        assert run(hf, 'servers', 'restart', 'rec').returncode == 0
        gate.write_bytes(b'')
        assert b'"id":7' in connection.read_response().body
        connection.close()


def test_restart__shows_why_a_server_does_not_come_up(holdfast, tmp_path):
    flag = tmp_path / 'broken'
    code = f"import os, sys\nif os.path.exists({str(flag)!r}):\n    sys.exit('error: the disk is on fire')\n" + CHATTY
    hf = holdfast({'talk': {'command': PYTHON, 'args': ['-S', '-E', '-c', code]}}).wait_asked('talk')
    flag.write_text('')
    done = run(hf, 'servers', 'restart', 'talk')
    assert done.returncode != 0 and 'talk did not come up' in done.stderr and 'the disk is on fire' in done.stderr
    flag.unlink()
    assert run(hf, 'servers', 'restart', 'talk').returncode == 0  # without waiting for the back-off


def test_restart__refuses_what_has_no_process(holdfast):
    hf = holdfast({'talk': chatty()}).wait_asked('talk')
    unknown = run(hf, 'servers', 'restart', 'tolk')
    assert unknown.returncode != 0 and 'tolk' in unknown.stderr
    own = run(hf, 'servers', 'restart', 'session')
    assert own.returncode != 0 and 'part of Holdfast' in own.stderr
    hf.stop()
    over = run(hf, 'servers', 'logs', 'talk')
    assert over.returncode == 4 and 'holdfast up' in over.stderr


def test_roles__auditors_read_and_only_admins_restart(holdfast):
    hf = holdfast({'talk': chatty()}).wait_asked('talk')
    keys = {role: create(hf, '--role', role) for role in ('admin', 'auditor', 'member')}
    statuses = {role: (hf.request('POST', '/api/v1/servers/talk/restart', key.headers).status,
                       hf.request('GET', '/api/v1/servers/talk/logs', key.headers).status) for role, key in keys.items()}
    assert statuses == {'admin': (202, 200), 'auditor': (403, 200), 'member': (403, 403)}
    narrow = create(hf, '--role', 'admin', '--server', 'other')
    assert hf.request('POST', '/api/v1/servers/talk/restart', narrow.headers).status == 404
