# SPDX-License-Identifier: Apache-2.0
"""What the pages tell people to type works, and prints what they say; pages.py has the convention."""
import glob
import os
import re
import socket
import subprocess

import harness
import pages
import pytest

COMMANDS = pages.Commands()
# Which data directory a command uses, and that Holdfast runs on others: pages leave these lines out.
WHERE = re.compile(r'^holdfast: (data directory|warning: no Holdfast runs there).*\n', re.M)
# Pages whose blocks need more than a scratch home have tests of their own.
OWN_TESTS = ('docs/tour.md',)  # test_readme.py


@pytest.mark.parametrize('page', pages.names())
def test_commands__exist_with_their_flags(page):
    wrong = []
    for number, line in pages.lines_with_commands(pages.read(page)):
        for words in pages.invocations(line):
            mistake = COMMANDS.mistake(words)
            if mistake:
                wrong.append(f'{page}:{number}: {mistake}: {line}')
    assert not wrong, '\n'.join(wrong)


def test_commands__signal_holdfast_by_pid():
    """By its name they would also meet `holdfast stdio` of other clients, which a SIGHUP ends."""
    for page in pages.names():
        assert not re.search(r'\b(pidof|pkill|killall)\b[^\n]*\bholdfast', pages.read(page)), page


def test_commands__that_do_not_exist_are_seen():
    assert [words for _, line in pages.lines_with_commands('Run `holdfast up`.\n\n    x; holdfast down  # no\n\n```console\n$ sudo -u a holdfast b\nholdfast c\n```\n')
            for words in pages.invocations(line)] == [['down'], ['b'], ['up']]
    for line, wrong in (('holdfast nosuch', True), ('holdfast key make --name x', True), ('holdfast tail --nosuch', True),
                        ('sudo -u holdfast holdfast audit lst', True), ('echo x | holdfast stdio --serch', True),
                        ('DATABASE_URL=x holdfast db status', False), ('holdfast add files -- npx --yes x', False)):
        (words,) = pages.invocations(line)
        assert bool(COMMANDS.mistake(words)) == wrong, line


def scratch(folder):
    """A home with a `holdfast` on the PATH that listens on a port of its own: (environment, port)."""
    home, programs = folder / 'home', folder / 'bin'
    for each in (home, programs, folder / 'credentials'):
        each.mkdir()
    (home / 'notes').mkdir()
    (home / 'notes/tides.md').write_text('# Tides\n', encoding='utf-8')
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = probe.getsockname()[1]
    for name, text in (('holdfast', f'case $1 in up|start) set -- "$@" --listen 127.0.0.1:{port};; esac\nexec "{harness.BINARY}" "$@"'),
                       # Pages use the published servers that the tests have; a server that is not there has to be found by name only.
                       ('npx', f'exec "{harness.node()}" "{harness.npm_bin("mcp-server-filesystem")}" "${{@: -1}}"'),
                       ('uvx', 'exit 1')):
        (programs / name).write_text(f'#!/bin/bash\n{text}\n', encoding='utf-8')
        (programs / name).chmod(0o755)
    env = {**os.environ, 'HOME': str(home), 'PATH': f'{programs}:/usr/bin:/bin', 'TZ': 'UTC', 'NO_COLOR': '1', 'PAGER': '',
           'CREDENTIALS_DIRECTORY': str(folder / 'credentials')}
    for name in ('HOLDFAST_CONFIG', 'HOLDFAST_KEY', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_STATE_HOME', 'XDG_RUNTIME_DIR',
                 'CLAUDE_CONFIG_DIR', 'CODEX_HOME', 'STATE_DIRECTORY', 'DATABASE_URL', 'REDIS_URL', 'COLUMNS'):
        env.pop(name, None)
    return env, port


def configurations():
    found = []
    for page in pages.names():
        for language, block, number in pages.blocks(pages.read(page)):
            if language == 'json':
                found.append(pytest.param(page, block, id=f'{page}:{number}'))
    return found


@pytest.fixture(scope='module')
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp('tls')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=mcp.example',
                    '-days', '2', '-keyout', folder / 'key.pem', '-out', folder / 'cert.pem'], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize('page, block', configurations())
def test_json__parses_and_configurations_pass_the_check(page, block, tmp_path, certificate):
    if not pages.configuration(block):
        return
    env, _ = scratch(tmp_path)
    for name in re.findall(r'\$\{credential:([\w.-]+)\}', block):
        (tmp_path / 'credentials' / name).write_text('x', encoding='utf-8')
    for name in re.findall(r'\$\{(?:env:)?([A-Z][A-Z0-9_]*)\}', block):
        env[name] = 'x'
    for name in re.findall(r'"path": "~/([^"]+)"', block):
        os.makedirs(tmp_path / 'home' / name, exist_ok=True)
    for name in ('cert.pem', 'key.pem'):
        (tmp_path / name).write_bytes((certificate / name).read_bytes())
        (tmp_path / name).chmod(0o600)
    (tmp_path / 'holdfast.json').write_text(block, encoding='utf-8')
    done = subprocess.run(['holdfast', 'config', 'check', '--config', 'holdfast.json'], cwd=tmp_path, env=env, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0, f'{page}:\n{done.stdout}{done.stderr}'


def script(page, port):
    """The page as one shell script: each command writes its output and its status to numbered files."""
    lines, steps = ['shopt -s expand_aliases', 'cd'], []
    for language, block, _ in pages.blocks(pages.read(page)):
        file = re.match(r'// ([\w./-]+\.json)\n', block) if language == 'json' else None
        if file:
            lines.append(f"mkdir -p $(dirname {file.group(1)}); cat >{file.group(1)} <<'HOLDFAST_EOF'\n{block}HOLDFAST_EOF")
        for command, expected in pages.steps(block) if language == 'console' else ():
            at = [text.replace('127.0.0.1:4653', f'127.0.0.1:{port}') for text in (command, expected)]
            lines.append(f'{{\n{at[0]}\n}} </dev/null >"$SCRATCH/out.{len(steps)}" 2>&1\necho $? >"$SCRATCH/rc.{len(steps)}"')
            steps.append(at)
    return '\n'.join(lines) + '\n', steps


def with_console():
    return [page for page in pages.names() if page not in OWN_TESTS and any(b[0] == 'console' for b in pages.blocks(pages.read(page)))]


@pytest.mark.parametrize('page', with_console())
def test_console__prints_what_the_page_says(page, tmp_path):
    env, port = scratch(tmp_path)
    text, steps = script(page, port)
    (tmp_path / 'page.sh').write_text(text, encoding='utf-8')
    try:
        subprocess.run(['bash', tmp_path / 'page.sh'], env={**env, 'SCRATCH': str(tmp_path)}, timeout=120, check=False)
        for number, (command, expected) in enumerate(steps):
            printed = WHERE.sub('', (tmp_path / f'out.{number}').read_text(encoding='utf-8'))
            status = (tmp_path / f'rc.{number}').read_text(encoding='utf-8').strip()
            assert status == '0', f'{page}: {command}\nended with {status}: {printed}'
            assert pages.matches(expected, printed), f'{page}: {command}\nsaid:\n{printed}\nnot:\n{expected}'
    finally:
        for socket_file in glob.glob(f'{tmp_path}/home/**/holdfast.sock', recursive=True) + glob.glob(f'{tmp_path}/home/.*/**/holdfast.sock', recursive=True):
            subprocess.run(['holdfast', 'stop', '--data', os.path.dirname(socket_file)], env=env, capture_output=True, timeout=60, check=False)


def test_output__matches_as_a_whole():
    assert pages.matches('a  b\n…c', 'a b\n  x y c\n') and pages.matches('', '\n') and pages.matches('…', 'x\ny')
    assert not pages.matches('a', 'a b') and not pages.matches('', 'x') and not pages.matches('a.c', 'abc') and not pages.matches('a\n…', 'b\na')


def test_fences__have_a_language_of_the_convention():
    for page in pages.names():
        for language, _, number in pages.blocks(pages.read(page)):
            assert language is None or language in pages.FENCES, f'{page}:{number}: {language}'


def test_metrics__of_the_page_are_there_after_a_call_unless_it_says_otherwise(holdfast):
    hf = holdfast()
    assert hf.client('/mcp/sample').call('counter').text == '1'
    shown = set(re.findall(r'(?m)^# TYPE (\S+)', hf.get('/metrics').body.decode()))
    rows = [line for line in pages.read('docs/metrics.md').splitlines() if re.match(r'\| `[a-z]', line)]
    assert len(rows) > 40
    for row in rows:
        for name in re.findall(r'`(\w+)`', row.split('|')[1]):
            assert (name in shown) != bool(re.search('absent before|only with', row)), row
