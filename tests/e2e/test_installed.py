# SPDX-License-Identifier: Apache-2.0
"""What `make install` puts in place: manual pages and completion agree with the command table, and shells and man accept them."""
import json
import os
import re
import shutil
import subprocess

import harness
import pytest
from harness import TOP

PAGES = ('holdfast', 'holdfast.json', 'holdfast-api')
SHELLS = ('bash', 'zsh', 'fish')


def help_text(*words):
    done = subprocess.run([harness.BINARY, 'help', *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def table():
    """Commands with their verbs and flags, from the printed reference."""
    found = {}
    for part in help_text('--markdown', 'cli').split('\n## holdfast ')[1:]:
        usage = re.search(r'```\nholdfast \S+ (.*)\n```', part).group(1)
        alternatives = [piece.strip() for piece in re.sub(r' [\[(][^\])]*[\])]', '', usage).split('|')]
        verbs = [m.group(0) for m in (re.match(r'[a-z][a-z-]*(?= |]|$)', one) for one in alternatives) if m]
        found[part.split()[0]] = verbs, re.findall(r'^\| `(-[^`]+)`', part, re.M)
    found['help'][0].extend(found)
    return found


def rendered(page, tmp_path):
    file = tmp_path / page
    file.write_text(help_text('--man', page), encoding='utf-8')
    done = subprocess.run(['man', '--warnings', '-E', 'UTF-8', '-l', str(file)], capture_output=True, text=True, timeout=60,
                          check=False, env={**os.environ, 'LC_ALL': 'C.UTF-8', 'MANWIDTH': '1000', 'MAN_KEEP_FORMATTING': ''})
    assert (done.returncode, done.stderr) == (0, ''), done.stderr
    return re.sub('.\b', '', done.stdout)


@pytest.mark.parametrize('page', PAGES)
def test_man_accepts_the_page(page, tmp_path):
    assert 'NAME' in rendered(page, tmp_path)


def roff(page):
    """The source of a page, without the escapes of roff."""
    return re.sub(r'\\(?:-|&)', lambda m: m.group().strip('\\&'), help_text('--man', page))


def names(page_part):
    """What a list of definitions in roff defines."""
    return re.findall(r'^\.TP\n\\fB(.*?)\\fR', page_part, re.M)


def of_the_manual():
    text = roff('holdfast').split('\n.SH ')
    commands = next(part for part in text if part.startswith('COMMANDS'))
    return {part.split('\n')[0]: names(part) for part in commands.split('\n.SS holdfast ')[1:]}


def of_help():
    return {command: re.findall(r'^  (--?[a-zA-Z][a-z-]*) ', help_text(command).split('\nflags:\n')[-1], re.M) for command in table()}


def of_bash(tmp_path):
    return {command: [flag for flag in complete(['holdfast', command, '-'], tmp_path) if flag != '--help']
            for command in complete(['holdfast', ''], tmp_path)}


def of_zsh():
    parts = re.findall(r'^    ([a-z]+)\)\n((?:        .*\n)*?)        ;;', help_text('--completion', 'zsh'), re.M)
    return {command: re.findall(r"'\*(--?[a-zA-Z][a-z-]*)=?\[", part) for command, part in parts}


def of_fish():
    text, found = help_text('--completion', 'fish'), {}
    for command in re.findall(r'__fish_use_subcommand -fa (\S+)', text):
        flags = re.findall(rf"^complete -c holdfast -n '__holdfast_command {command}' -(l|s) (\S+)", text, re.M)
        found[command] = [('--' if kind == 'l' else '-') + name for kind, name in flags if name != 'help']
    return found


@pytest.mark.parametrize('place', ['manual', 'help', 'bash', 'zsh', 'fish'])
def test_each_place_has_the_commands_and_flags_of_the_table_and_no_others(place, tmp_path):
    found = of_bash(tmp_path) if place == 'bash' else {'manual': of_the_manual, 'help': of_help, 'zsh': of_zsh, 'fish': of_fish}[place]()
    assert found == {command: flags for command, (_, flags) in table().items()}


@pytest.mark.parametrize('command', ['up', 'audit', 'docs', 'connect'])
def test_a_flag_that_is_not_in_the_table_is_refused(command):
    done = subprocess.run([harness.BINARY, command, '--nosuch'], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and '--nosuch' in done.stderr, done.stderr


@pytest.mark.parametrize('file, words', [('config.md', ('--markdown', 'config')), ('cli.md', ('--markdown', 'cli')),
                                         ('redaction.md', ('--markdown', 'redaction')), ('openapi.json', ('openapi',))])
def test_the_reference_pages_are_what_the_program_prints(file, words):
    with open(os.path.join(TOP, 'docs/generated', file), encoding='utf-8') as page:
        assert page.read() == help_text(*words), f'docs/generated/{file} is old: run tools/gen-docs'


def test_the_manual_has_every_command_and_flag(tmp_path):
    text = rendered('holdfast', tmp_path)
    for command, (_, flags) in table().items():
        part = re.search(rf'(?s)   holdfast {command}\n(.*?)(\n   holdfast |\n[A-Z])', text).group(1)
        assert [flag for flag in flags if not re.search(rf'(?m)^\s+{re.escape(flag)}\b', part)] == []
    assert 'HOLDFAST_MASTER_KEY_FILE' in text and '130' in text
    assert 'holdfast up [--config FILE] [--listen HOST:PORT]' in text


def test_the_manual_has_every_option(tmp_path):
    text = rendered('holdfast.json', tmp_path)
    keys = re.findall(r'^\| `([^`]+)`', help_text('--markdown', 'config'), re.M)
    assert len(keys) > 50 and [key for key in keys if key not in text] == []
    options = next(part for part in roff('holdfast.json').split('\n.SH ') if part.startswith('OPTIONS'))
    assert names(options) == keys


def test_the_manual_has_every_operation(tmp_path):
    text = rendered('holdfast-api', tmp_path)
    paths = json.loads(help_text('openapi'))['paths']
    found = [f'{method.upper()} {path}' for path, methods in paths.items() if path.startswith('/api/')
             for method in methods if method in ('get', 'put', 'post', 'patch', 'delete')]
    assert len(found) > 30 and [one for one in found if one not in text] == []
    operations = next(part for part in roff('holdfast-api').split('\n.SH ') if part.startswith('OPERATIONS'))
    assert sorted(names(operations)) == sorted(found)


@pytest.mark.parametrize('shell', SHELLS)
def test_the_shell_accepts_the_completion(shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f'{shell} is not installed; tools/install-deps test installs it')
    file = tmp_path / shell
    text = help_text('--completion', shell)
    file.write_text(text, encoding='utf-8')
    done = subprocess.run([shell, '-n', str(file)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, '')
    for command, (verbs, flags) in table().items():
        assert command in text
        assert [verb for verb in verbs if not re.search(rf'\b{verb}\b', text)] == []
        assert [flag for flag in flags if flag.lstrip('-') not in text] == []


def complete(words, tmp_path):
    """What bash offers for the last of the words."""
    file = tmp_path / 'completion'
    file.write_text(help_text('--completion', 'bash'), encoding='utf-8')
    script = ('source "$1"; shift; complete -p holdfast >/dev/null || exit 9; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
              '_holdfast; printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(['bash', '--norc', '-c', script, 'bash', str(file), *words], capture_output=True, text=True, cwd=tmp_path,
                          timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, '')
    return done.stdout.split()


def test_bash_completes(tmp_path):
    commands = table()
    assert complete(['holdfast', ''], tmp_path) == list(commands)
    assert complete(['holdfast', 've'], tmp_path) == ['version']
    for command, (verbs, flags) in commands.items():
        if verbs:
            assert complete(['holdfast', command, ''], tmp_path) == verbs
        assert complete(['holdfast', command, '-'], tmp_path) == ['--help', *flags]
    assert 'environment' in complete(['holdfast', 'help', 'env'], tmp_path)
    (tmp_path / 'my.json').write_text('{}', encoding='utf-8')
    assert complete(['holdfast', 'up', '--config', 'my'], tmp_path) == ['my.json']


def test_alternatives_of_an_argument_are_no_verbs(tmp_path):
    sessions, audit = (complete(['holdfast', command, ''], tmp_path) for command in ('sessions', 'audit'))
    assert sessions == 'list show watch end export import replay share shares unshare fork'.split()
    assert audit == 'tail list events show verify stats hold holds release'.split()


def test_fish_completes(tmp_path):
    if not shutil.which('fish'):
        pytest.skip('fish is not installed; tools/install-deps test installs it')
    file = tmp_path / 'holdfast.fish'
    file.write_text(help_text('--completion', 'fish'), encoding='utf-8')

    def offers(line):
        done = subprocess.run(['fish', '--no-config', '-c', f'source {file}; complete -C {line!r}'], capture_output=True, text=True,
                              timeout=60, check=False, env={**os.environ, 'HOME': str(tmp_path)})
        return [one.split('\t')[0] for one in done.stdout.splitlines()]
    assert 'rotate-master' in offers('holdfast key ')
    assert '--listen' in offers('holdfast up --')
    assert '--agent' in offers('holdfast docs add --') and '--env' not in offers('holdfast docs add --')
    assert 'version' in offers('holdfast ve')


@pytest.mark.parametrize('words, why', [(['--man', 'nothing'], 'holdfast.json'), (['--completion', 'csh'], 'zsh'),
                                        (['up', '--man', 'holdfast'], 'topic')])
def test_what_is_not_there_is_named(words, why):
    done = subprocess.run([harness.BINARY, 'help', *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and why in done.stderr


def files_below(folder):
    return sorted(os.path.relpath(os.path.join(where, name), folder) for where, _, names in os.walk(folder) for name in names)


def test_install_and_uninstall(tmp_path):
    tool = [os.path.join(TOP, 'tools/install-files')]
    env = {**os.environ, 'BINARY': harness.BINARY}
    subprocess.run([*tool, 'install', str(tmp_path), '/opt/hf'], check=True, timeout=60, env=env)
    found = files_below(tmp_path)
    for wanted in ('bin/holdfast', 'share/man/man1/holdfast.1', 'share/man/man5/holdfast.json.5', 'share/man/man7/holdfast-api.7',
                   'share/bash-completion/completions/holdfast', 'lib/systemd/system/holdfast.service',
                   'lib/systemd/user/holdfast.service', 'lib/sysusers.d/holdfast.conf', 'lib/tmpfiles.d/holdfast.conf'):
        assert 'opt/hf/' + wanted in found
    unit = (tmp_path / 'opt/hf/lib/systemd/system/holdfast.service').read_text(encoding='utf-8')
    assert 'ExecStart=/opt/hf/bin/holdfast up' in unit
    done = subprocess.run([tmp_path / 'opt/hf/bin/holdfast', 'config', 'check', '--config',
                           os.path.join(TOP, 'deploy/systemd/holdfast.json')], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    subprocess.run([*tool, 'uninstall', str(tmp_path), '/opt/hf'], check=True, timeout=60, env=env)
    assert files_below(tmp_path) == []


def install_files(root, prefix, verb='install'):
    done = subprocess.run(['tools/install-files', verb, str(root), prefix], cwd=TOP, env={**os.environ, 'BINARY': harness.BINARY}, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize('prefix', ['/usr', '/usr/local'])
def test_zsh_finds_the_completion(prefix, tmp_path):
    install_files(tmp_path, prefix)
    folders = subprocess.run(['zsh', '-fc', 'print -l $fpath'], capture_output=True, text=True, timeout=60, check=True).stdout.split()
    assert any((tmp_path / folder.lstrip('/') / '_holdfast').is_file() for folder in folders), folders
    install_files(tmp_path, prefix, 'uninstall')
    assert not [path for path in tmp_path.rglob('*') if path.is_file()]


def test_a_system_service_from_source__the_lines_of_the_page(tmp_path):
    with open(os.path.join(TOP, 'docs/install.md'), encoding='utf-8') as file:
        block = re.search(r'((?:^    sudo .*\n)+)', file.read().split('For a system service')[1], re.M).group(1)
    lines = [line.strip().removeprefix('sudo ') for line in block.splitlines()]
    assert lines.pop() == 'systemctl daemon-reload'
    install_files(tmp_path, '/usr/local')
    (tmp_path / 'etc').mkdir()
    for line in lines:
        program, *rest = line.split()
        if program == 'install':
            rest = [f'{tmp_path}{word}' if word[0] == '/' else word for word in rest]
        elif program == 'systemd-tmpfiles' and os.geteuid() != 0:
            continue  # it gives files to the user of the service
        else:
            rest.insert(0, f'--root={tmp_path}')
        done = subprocess.run([program, *rest], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    uid = int(re.search(r'^holdfast:x:(\d+)', (tmp_path / 'etc/passwd').read_text(encoding='utf-8'), re.M).group(1))
    settings = (tmp_path / 'etc/holdfast/holdfast.json').stat()
    assert settings.st_mode & 0o777 == 0o640
    if os.geteuid() == 0:
        assert (settings.st_uid, settings.st_gid) == (0, uid) and (tmp_path / 'var/lib/holdfast').stat().st_uid == uid
