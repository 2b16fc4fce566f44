# SPDX-License-Identifier: Apache-2.0
"""Secrets that a person gives to `add` and `import`: the server gets them, and no file and no output has them but the
client's own file and the sealed store, not even as base64 or hex."""
import base64
import json
import os
import secrets
import subprocess
import tarfile
import urllib.parse

import pytest
from commands import command_env
from harness import BINARY, DEADLINE_S, PYTHON, wait_for

WAYS = ('env', 'header', 'argument', 'query', 'pasted', 'imported')
# Prints its key on stderr, and fails: at the start, or in each call.
LEAKY = '''
import json, os, sys
print('fatal: the key', os.environ['API_KEY'], 'was refused', file=sys.stderr, flush=True)
if sys.argv[1:] == ['exit']:
    sys.exit(1)
for line in sys.stdin:
    m = json.loads(line)
    if m.get('method') == 'initialize':
        result = {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'leaky', 'version': os.environ['API_KEY']}}
    elif m.get('method') == 'tools/list':
        result = {'tools': [{'name': 'leak', 'inputSchema': {'type': 'object'}}]}
    elif m.get('method') == 'tools/call':
        print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'error': {'code': -32000, 'message': '401 for ' + os.environ['API_KEY']}}), flush=True)
        continue
    else:
        result = {}
    if 'id' in m:
        print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': result}), flush=True)
'''


def forms(value):
    """The bytes to look for: plain, hex, percent-encoded, UTF-16, and base64 from each of the three offsets."""
    plain = value.encode()
    found = {plain, plain.hex().encode(), plain.hex().upper().encode(), urllib.parse.quote(value).encode(), value.encode('utf-16-le'),
             value[::-1].encode()}
    for cut in range(3):
        part = plain[cut:]
        found.add(base64.b64encode(part[:len(part) // 3 * 3]))
    return found


class World:
    def __init__(self, hf, folder):
        self.hf, self.outputs = hf, []
        self.home, self.tmp = os.path.join(folder, 'home'), os.path.join(folder, 'tmp')
        os.mkdir(self.home)
        os.mkdir(self.tmp)
        self.canary = {way: f'k7{secrets.token_hex(4)}Zq/{secrets.token_hex(8)}' for way in WAYS}

    def run(self, *words, stdin='', status=0):
        own = words.index('--') if '--' in words else len(words)
        env = {**command_env(self.hf), 'HOME': self.home, 'TMPDIR': self.tmp, 'HOLDFAST_CONFIG': self.hf.config_file}
        where = [] if words[0] == 'config' else ['--data', self.hf.data]
        done = subprocess.run([BINARY, *words[:own], *where, *words[own:]], env=env, cwd=self.home, input=stdin, capture_output=True,
                              text=True, timeout=DEADLINE_S, check=False)
        assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
        self.outputs.append((words[:2], done.stdout + done.stderr))
        return done

    def leaks(self, *folders, but=()):
        """[(where, way)] of every canary that an output or a file has."""
        needles = [(n, way) for way, value in self.canary.items() for n in forms(value)]
        texts = [(words, text.encode()) for words, text in self.outputs] + [('log', self.hf.text().encode())]
        n_files = 0
        for folder in folders:
            for top, _, names in os.walk(folder):
                for path in (os.path.join(top, n) for n in names):
                    if os.path.isfile(path) and path not in but:
                        n_files += 1
                        with open(path, 'rb') as file:
                            texts.append((path, file.read()))
        assert n_files > 5
        return [(where, way) for where, text in texts for needle, way in needles if needle in text]


@pytest.fixture
def world(holdfast, tmp_path):
    return World(holdfast({}, {}, env={'HOLDFAST_LOG_LEVEL': 'debug'}), str(tmp_path))


def give_all(world, stdio_server, http_server):
    """Every way in."""
    canary, servers = world.canary, {}
    entries = {name: stdio_server(name)[0] for name in ('env', 'argument', 'pasted', 'imported')}
    words = {name: [e['command'], *e['args']] for name, e in entries.items()}
    world.run('add', 'env', '-e', 'SERVICE_TOKEN=' + canary['env'], '--', *words['env'])
    world.run('add', 'argument', '--no-check', '--', PYTHON, '-c', LEAKY, '--api-key', canary['argument'])
    servers['header'], servers['query'] = http_server('header'), http_server('query')
    world.run('add', 'header', '-H', 'Authorization: Bearer ' + canary['header'], servers['header'].entry()['url'])
    world.run('add', 'query', servers['query'].entry()['url'] + '?api_key=' + urllib.parse.quote(canary['query'], safe=''))
    world.run('add', stdin=json.dumps({'mcpServers': {'pasted': {**entries['pasted'], 'env': {'API_KEY': canary['pasted']}}}}))
    client = os.path.join(world.home, '.cursor/mcp.json')
    os.makedirs(os.path.dirname(client))
    with open(client, 'w', encoding='utf-8') as file:
        json.dump({'mcpServers': {
            'imported': {**entries['imported'], 'env': {'API_KEY': canary['imported']}},
            'leaky': {'command': PYTHON, 'args': ['-c', LEAKY], 'env': {'API_KEY': canary['imported']}},
            'broken': {'command': PYTHON, 'args': ['-c', LEAKY, 'exit'], 'env': {'API_KEY': canary['imported']}},
            'wrong': {'url': f"ftp://u:{canary['imported']}@127.0.0.1/?token={canary['imported']}"},
            'twisted': {'command': '/bin/cat', 'env': {'API_KEY': [canary['imported']]}}}}, file)
    for flags in (('--dry-run',), ('--dry-run', '--json'), ('--yes', '--json'), ('--yes', '--replace'), ('--yes',)):
        world.run('import', 'cursor', *flags)
    return client, servers


def test_a_secret__is_in_no_file_but_the_sealed_store_and_its_servers_have_it(world, stdio_server, http_server):
    client_file, servers = give_all(world, stdio_server, http_server)
    hf, canary = world.hf, world.canary
    wait_for(lambda: hf.client('/mcp/leaky').rpc('tools/list').status == 200, 'the last server to be served')

    # it arrives
    for name, variable in (('env', 'SERVICE_TOKEN'), ('pasted', 'API_KEY'), ('imported', 'API_KEY')):
        with hf.client(f'/mcp/{name}').connect() as client:
            assert json.loads(client.call('env').text)[variable] == canary[name], name
    for name in ('header', 'query'):
        with hf.client(f'/mcp/{name}').connect() as client:
            assert client.call('echo', {'text': 'x'}).text == 'x'
    assert any(canary['header'] in json.dumps(head) for head in servers['header'].record.heads())

    # it is talked about: an error of a call, a start that fails, an argument of a call
    with hf.client('/mcp/leaky').connect() as client:
        client.call('leak', {'note': canary['imported']})
    hf.client('/mcp/broken').rpc('tools/list')
    world.run('servers', 'restart', 'env')
    bundle = os.path.join(world.home, 'report.tar.gz')
    world.run('doctor', '--bundle', bundle, status=1)
    for words in (('config', 'show'), ('config', 'check'), ('servers', 'list'), ('servers', 'show', 'leaky'), ('servers', 'show', 'broken'),
                  ('servers', 'logs', 'leaky'), ('servers', 'logs', 'broken'), ('secret', 'list'), ('audit', 'list'), ('audit', 'events'),
                  ('audit', 'list', '--json'), ('audit', 'tail'), ('doctor', '--json')):
        world.run(*words, status=1 if words[0] == 'doctor' else 0)
    with tarfile.open(bundle) as tar:
        tar.extractall(os.path.join(world.home, 'report'))
    assert 'was refused' in json.dumps([t for w, t in world.outputs if w == ('servers', 'logs')]), 'the leak itself was made'
    assert world.leaks(hf.folder, world.home, but=(client_file,)) == []

    hf.stop()
    assert world.leaks(hf.folder, world.home, but=(client_file,)) == []
    assert os.listdir(world.tmp) == [], 'nothing is left behind'
    # the search finds what is there, so nothing found means nothing there
    assert {way for _, way in world.leaks(world.home)} == {'imported'}
    world.run('remove', 'env')
    world.run('add', 'env', '--plain', '--no-check', '-e', 'SERVICE_TOKEN=' + canary['env'], '--', '/bin/cat')
    assert (hf.config_file, 'env') in world.leaks(hf.folder)
