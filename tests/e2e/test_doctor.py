# SPDX-License-Identifier: Apache-2.0
"""`holdfast doctor`: what it finds, what it says to do, its exit status, and a bundle without secrets."""
import json
import os
import re
import subprocess
import tarfile

from commands import command_env, run
from harness import BINARY, PYTHON, stdio_server

CANARY = 'hushhush-canary-0815'


def doctor(hf, *flags, env=None):
    """(exit status, the findings by check)."""
    done = run(hf, 'doctor', '--json', '--config', hf.config_file, *flags, env=env)
    answer = json.loads(done.stdout)
    found = {}
    for f in answer['findings']:
        found.setdefault(f['check'], []).append(f)
        assert f['level'] == 'ok' or f.get('fix') or f['check'] == 'configuration', f
    assert answer['ok'] == (done.returncode == 0) and done.returncode in (0, 1)
    return done.returncode, found


def says(findings, text, level):
    return any(text in f['what'] and f['level'] == level for f in findings)


def test_a_sound_daemon__has_no_failure(holdfast, tmp_path):
    entry, _ = stdio_server(tmp_path)
    hf = holdfast({'rec': entry}).wait_asked('rec')
    status, found = doctor(hf)
    assert status == 0
    assert says(found['servers'], 'rec is healthy', 'ok')
    assert says(found['store'], 'a read of the store took', 'ok')
    assert says(found['schema'], 'up to date', 'ok')
    assert says(found['clock'], 'not behind the newest event', 'ok')
    text = run(hf, 'doctor', '--config', hf.config_file)
    assert text.returncode == 0 and '✔ ok' in text.stdout and '\x1b' not in text.stdout
    assert max(map(len, text.stdout.splitlines())) <= 120  # a path is never broken


def test_a_broken_server__is_a_failure_with_its_words(holdfast):
    hf = holdfast({'bad': {'command': PYTHON, 'args': ['-c', 'import sys; sys.exit("error: no licence")']}})
    hf.client('/mcp/bad').rpc('tools/list')
    status, found = doctor(hf)
    assert status == 1 and says(found['servers'], 'no licence', 'failure')
    assert 'holdfast servers logs bad' in found['servers'][0]['fix']


def test_without_a_daemon__it_still_answers(holdfast):
    hf = holdfast({'gone': {'command': '/nowhere/at-all'}}, start=False)
    status, found = doctor(hf)
    assert status == 1 and says(found['configuration'], '/nowhere/at-all', 'failure')
    assert says(found['store'], 'no database yet', 'ok') and says(found['servers'], 'no Holdfast runs', 'warning')
    assert says(found['eras'], 'gone gave no answer in either era', 'failure')


def test_keys__modes_and_recorded_backups(holdfast):
    hf = holdfast({})
    _, found = doctor(hf)
    assert says(found['keys'], 'no backup of the', 'warning')
    assert run(hf, 'doctor', '--keys-backed-up').returncode == 0
    _, found = doctor(hf)
    assert says(found['keys'], 'as recorded at their last backup', 'ok')
    os.chmod(os.path.join(hf.data, 'audit.key'), 0o644)
    status, found = doctor(hf)
    assert status == 1 and says(found['keys'], 'mode 644', 'failure')
    os.chmod(os.path.join(hf.data, 'audit.key'), 0o600)


def test_clients__are_named_with_the_way_to_connect(holdfast):
    """An entry is followed: a program that is gone and an address without an answer are failures."""
    hf = holdfast({})
    files = {'.claude.json': {'files': {'command': 'npx'}}, '.cursor/mcp.json': {'holdfast': {'command': BINARY, 'args': ['stdio']}},
             '.gemini/settings.json': {'old': {'command': '/nowhere/holdfast', 'args': ['stdio']}, 'by-url': {'httpUrl': f'http://127.0.0.1:{hf.port}/mcp'}}}
    for name, servers in files.items():
        os.makedirs(os.path.dirname(os.path.join(hf.folder, name)), exist_ok=True)
        with open(os.path.join(hf.folder, name), 'w', encoding='utf-8') as file:
            json.dump({'mcpServers': servers}, file)
    os.mkdir(os.path.join(hf.folder, '.codex'))
    with open(os.path.join(hf.folder, '.codex/config.toml'), 'w', encoding='utf-8') as file:
        file.write('[mcp_servers')
    _, found = doctor(hf)
    assert says(found['clients'], 'Claude Code does not name Holdfast', 'warning')
    assert says(found['clients'], f'Cursor names Holdfast and starts {BINARY} stdio', 'ok')
    assert says(found['clients'], '/nowhere/holdfast is not a program', 'failure')
    assert says(found['clients'], 'Gemini CLI names Holdfast and reaches it at ' + f'http://127.0.0.1:{hf.port}/mcp', 'ok')
    assert says(found['clients'], '.codex/config.toml, cannot be read: line 1', 'warning')
    other = os.path.join(hf.folder, 'other.json')
    with open(other, 'w', encoding='utf-8') as file:
        file.write('{"holdfast": {"listen": "127.0.0.1:9"}}')
    with open(os.path.join(hf.folder, '.cursor/mcp.json'), 'w', encoding='utf-8') as file:
        file.write('{"mcpServers": {"h": {"url": "http://localhost:9/mcp"}}}')
    found = json.loads(run(hf, 'doctor', '--json', '--config', other).stdout)['findings']
    assert says([f for f in found if f['check'] == 'clients'], 'http://localhost:9/mcp, which does not answer', 'failure')


def test_clients__are_found_where_their_variables_say(holdfast, tmp_path):
    hf = holdfast({}, start=False)
    files = {'claude/.claude.json': json.dumps({'mcpServers': {'h': {'command': BINARY, 'args': ['stdio']}}}),
             'codex/config.toml': '# holdfast\n[mcp_servers.holdfast]\ncommand = "/opt/notholdfast"\nargs = ["stdio"]\n',
             'xdg/Code/User/mcp.json': json.dumps({'servers': {'h': {'command': BINARY, 'args': ['stdio']}}})}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    places = {'CLAUDE_CONFIG_DIR': str(tmp_path / 'claude'), 'CODEX_HOME': str(tmp_path / 'codex'), 'XDG_CONFIG_HOME': str(tmp_path / 'xdg')}
    done = subprocess.run([BINARY, 'doctor', '--json', '--config', hf.config_file, '--data', hf.data], capture_output=True, timeout=60, check=False,
                          env=command_env(hf) | places)
    found = [f for f in json.loads(done.stdout)['findings'] if f['check'] == 'clients']
    assert says(found, f'Claude Code names Holdfast and starts {BINARY} stdio', 'ok')
    assert says(found, f'VS Code names Holdfast and starts {BINARY} stdio', 'ok')
    assert says(found, 'Codex does not name Holdfast', 'warning')


def test_eras__are_tried_in_processes_of_their_own(holdfast, tmp_path):
    both, _ = stdio_server(tmp_path, 'both', '--era', 'both')
    old, record = stdio_server(tmp_path, 'old', '--era', 'legacy')
    hf = holdfast({'both': both, 'old': old, 'sealed': {'command': '/bin/cat', 'env': {'A': '${secret:unset}'}}}).wait_asked('old')
    with hf.client('/mcp/old').connect() as client:
        before = client.call('counter').text
        _, found = doctor(hf)
        assert int(client.call('counter').text) == int(before) + 1
    told = [f['what'] for f in found['eras']]
    assert any(re.fullmatch(r'both: legacy 2025-11-25 in \d+ ms; modern 2026-07-28 in \d+ ms', t) for t in told), told
    assert any(re.fullmatch(r'old: legacy 2025-11-25 in \d+ ms; not modern', t) for t in told), told
    assert 'sealed was not tried: its secrets are sealed; its state above says how it is' in told
    assert 'eras' not in doctor(hf, '--no-trial')[1]


def test_eras__of_built_in_servers_are_not_tried(holdfast):
    hf = holdfast({})
    assert 'eras' not in doctor(hf)[1]


def test_sessions__carriers_meta_keys_and_clients_on_record(holdfast, tmp_path):
    entry, _ = stdio_server(tmp_path)
    hf = holdfast({'rec': entry}).wait_asked('rec')
    with hf.client('/mcp/rec').connect() as client:
        client.call('echo', {'text': 'x'}, meta={'com.example/thread': 'canary-value'})
        _, found = doctor(hf)
    assert says(found['sessions'], 'carriers of the newest 1 requests on record: transport (1)', 'ok')
    assert says(found['sessions'], 'com.example/thread (1)', 'ok') and 'canary-value' not in json.dumps(found)
    assert says(found['clients'], 'these reached Holdfast (live sessions): ', 'ok')


def test_programs__are_looked_for_on_the_path_of_the_running_holdfast(holdfast, tmp_path):
    """A desktop or a service starts Holdfast with another PATH than the shell has."""
    folder = tmp_path / 'bin'
    folder.mkdir()
    for name in ('npx', 'node'):
        (folder / name).symlink_to('/bin/true')
    hf = holdfast({'n': {'command': 'npx'}}, env={'PATH': '/nowhere'})
    status, found = doctor(hf, env={'PATH': f'{folder}:/usr/bin:/bin'})
    assert status == 1 and says(found['programs'], 'on the PATH of this shell, but not on that of the running Holdfast', 'failure')
    assert f'{folder}/npx' in next(f['fix'] for f in found['programs'] if f['level'] == 'failure')
    assert says(found['programs'], 'node is not on the PATH of the running Holdfast', 'ok')


def test_proxy__what_is_missing_for_it(holdfast, tmp_path):
    hf = holdfast({}, start=False)
    for options, words, level in (({}, 'no proxy is configured', 'ok'),
                                  ({'trusted_proxies': ['127.0.0.1']}, 'without public_url', 'warning'),
                                  ({'public_url': 'https://127.0.0.1:9'}, 'all clients count as one address', 'warning'),
                                  ({'public_url': 'http://127.0.0.1:9'}, '/healthz', 'failure')):
        path = tmp_path / 'proxy.json'
        path.write_text(json.dumps({'holdfast': options}))
        found = json.loads(run(hf, 'doctor', '--json', '--config', str(path)).stdout)['findings']
        assert says([f for f in found if f['check'] == 'proxy'], words, level), (options, found)


def test_at_80_columns__no_line_is_longer_but_for_a_path(holdfast, tmp_path):
    entry, _ = stdio_server(tmp_path)
    hf = holdfast({'rec': entry, 'gone': {'command': '/nowhere/at-all'}})
    text = run(hf, 'doctor', '--config', hf.config_file).stdout
    assert all(len(line) <= 80 or '/' in line.split()[-1] or '/' in line for line in text.splitlines()), text
    assert all(line[0] in '✔!✘ ' or re.match(r'\d+ ok, ', line) for line in text.splitlines())


def test_redis__that_does_not_answer_is_a_warning(holdfast):
    hf = holdfast({})
    _, found = doctor(hf, env={'REDIS_URL': 'redis://:' + CANARY + '@127.0.0.1:1/0'})
    assert found['redis'][0]['level'] == 'warning' and CANARY not in json.dumps(found)


def test_bundle__has_no_secret(holdfast, tmp_path):
    code = f'import os, sys; print("key is", os.environ["API_KEY"], file=sys.stderr); sys.exit("error: 401 for {CANARY}")'
    hf = holdfast({'leaky': {'command': PYTHON, 'args': ['-c', code], 'env': {'API_KEY': CANARY}}})
    hf.client('/mcp/leaky').rpc('tools/list')
    file = tmp_path / 'report.tar.gz'
    assert run(hf, 'doctor', '--config', hf.config_file, '--bundle', str(file)).returncode == 1
    with tarfile.open(file) as tar:
        texts = {m.name: tar.extractfile(m).read().decode() for m in tar.getmembers()}
    assert set(texts) == {'doctor.json', 'config.json', 'version.txt', 'servers.json', 'logs.txt'}
    assert not any(CANARY in t for t in texts.values()) and CANARY.encode() not in file.read_bytes()
    assert 'key is' in texts['logs.txt'] and json.loads(texts['doctor.json'])['findings']


def test_bundle__is_a_new_file_of_its_owner(holdfast, tmp_path):
    """A colon in its name is no machine for tar, and a file that is there stays."""
    hf = holdfast({}, start=False)
    file = os.path.join(hf.folder, 'rep:1.tgz')
    folder = tmp_path / 'tmp'
    folder.mkdir()
    done = run(hf, 'doctor', '--config', hf.config_file, '--bundle', 'rep:1.tgz', env={'TMPDIR': str(folder)})
    assert 'written: rep:1.tgz' in done.stderr and os.stat(file).st_mode & 0o777 == 0o600 and not os.listdir(folder), done
    with tarfile.open(file) as tar:
        assert 'doctor.json' in tar.getnames()
    done = run(hf, 'doctor', '--config', hf.config_file, '--bundle', 'rep:1.tgz')
    assert done.returncode == 6 and 'name a new file' in done.stderr
    done = run(hf, 'doctor', '--config', hf.config_file, '--bundle', 'x.tgz', env={'TMPDIR': '/nowhere'})
    assert '/nowhere/holdfast-doctor' in done.stderr and not os.path.exists(os.path.join(hf.folder, 'x.tgz'))
