# SPDX-License-Identifier: Apache-2.0
"""`holdfast doctor`: what it finds, what it says to do, its exit status, and a bundle without secrets."""
import json
import os
import tarfile

from commands import run
from harness import PYTHON, stdio_server

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
    hf = holdfast({})
    with open(os.path.join(hf.folder, '.claude.json'), 'w', encoding='utf-8') as file:
        file.write('{"mcpServers":{"files":{"command":"npx"}}}')
    os.mkdir(os.path.join(hf.folder, '.cursor'))
    with open(os.path.join(hf.folder, '.cursor', 'mcp.json'), 'w', encoding='utf-8') as file:
        file.write('{"mcpServers":{"holdfast":{"command":"holdfast","args":["stdio"]}}}')
    _, found = doctor(hf)
    assert says(found['clients'], 'Claude Code does not name Holdfast', 'warning')
    assert says(found['clients'], 'Cursor names Holdfast', 'ok')


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
