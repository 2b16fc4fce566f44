# SPDX-License-Identifier: Apache-2.0
"""The README and the tour are run as they stand: what they print is what a newcomer sees.  test_how_tos.py runs the journeys
of the README."""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

import commands
import harness

sys.path.insert(0, os.path.join(harness.TOP, 'bench'))
import compare  # noqa: E402  pylint: disable=wrong-import-position

README = os.path.join(harness.TOP, 'README.md')
TOUR = os.path.join(harness.TOP, 'docs/tour.md')


def tour():
    """[(command, expected output)] of the console blocks, in order."""
    with open(TOUR, encoding='utf-8') as text:
        blocks = re.findall(r'```console\n(.*?)```', text.read(), re.S)
    steps = []
    for line in '\n'.join(blocks).split('\n'):
        if line.startswith('$ '):
            steps.append([line[2:], ''])
        elif line.strip():
            steps[-1][1] += line + '\n'
    return steps


def matches(expected, printed):
    """`…` stands for anything, blanks for any blanks."""
    pattern = re.sub(r'(\\ )+', r'\\s+', re.escape(expected.strip())).replace('…', r'[\s\S]*?')
    return re.search(pattern, printed) is not None if expected else printed == ''


def test_tour__prints_what_it_says(holdfast, tmp_path):
    vault = tmp_path / 'vault'
    shutil.copytree(os.path.join(harness.TOP, 'deploy', 'examples', 'vault'), vault)
    hf = holdfast(settings={'docs': {'Sample': {'path': str(vault)}}})
    steps = tour()
    assert len(steps) >= 7
    definitions = 'shopt -s expand_aliases\n'
    for command, expected in steps:
        command = command.replace('127.0.0.1:4653', f'127.0.0.1:{hf.port}')
        command = command.replace('.cache/run/vault', str(vault))
        command = command.replace('build/holdfast', harness.BINARY).replace('.cache/run', str(hf.data))
        if command.startswith('alias '):
            definitions += command + '\n'
        done = subprocess.run(['bash', '-c', definitions + command], capture_output=True, text=True, timeout=60,
                              check=False)
        assert done.returncode == 0, f'{command}: {done.stderr}'
        assert matches(expected, done.stdout), f'{command}\nsaid {done.stdout!r}\nnot  {expected!r}'


def test_search_example__is_a_configuration_and_its_line_counts(holdfast):
    hf = holdfast()
    with open(README, encoding='utf-8') as text:
        text = text.read()
    (example,) = [block for block in re.findall(r'```json\n(.*?)```', text, re.S) if '"mode": "search"' in block]
    with open(os.path.join(hf.folder, 'search.json'), 'w', encoding='utf-8') as file:
        file.write(example)
    checked = commands.run(hf, 'config', 'show', '--config', 'search.json', with_data=False)
    assert checked.returncode == 0 and '"search"' in checked.stdout, checked.stderr
    (line,) = re.findall(r"^    echo '(.*)' \| holdfast stdio --search$", text, re.M)
    for count in ('1', '2'):
        done = commands.run(hf, 'stdio', '--search', stdin=line + '\n')
        assert json.loads(done.stdout)['result']['content'][0]['text'] == count, done.stderr


def test_first_lines__list_and_call_a_tool(holdfast):
    hf = holdfast()
    with open(README, encoding='utf-8') as text:
        lines = re.findall(r'^    (curl .*)$', text.read(), re.M)[:2]
    for line, expected in zip(lines, ('"tools":[', '"count":1'), strict=True):
        out = subprocess.run(['bash', '-c', line.replace('127.0.0.1:4653', f'127.0.0.1:{hf.port}')],
                             capture_output=True, text=True, timeout=60, check=True).stdout
        assert expected in out


def compared():
    """The table of the README: {question: {what stands in front: answer}}."""
    with open(README, encoding='utf-8') as text:
        rows = [[cell.strip() for cell in line.strip('|\n').split('|')] for line in text if line.startswith('|')]
    head = next(index for index, row in enumerate(rows) if row[-1] == 'Holdfast')
    names, found = rows[head][1:], {}
    for row in rows[head + 2:]:
        if len(row) != len(names) + 1:
            break
        found[row[0]] = dict(zip(names, row[1:]))
    return found


def test_comparison__is_what_the_command_finds():
    """Without the proxies of npm, which `make compare` fetches."""
    table = compared()
    assert set(table) == {question for question, _ in compare.QUESTIONS}
    asked = [(question, ask, name, kind) for question, ask in compare.QUESTIONS for name, kind in compare.FRONTS
             if name not in compare.PROXIES]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda one: compare.ask(one[1], one[3], harness.BINARY), asked))
    for (question, _, name, _), answer in zip(asked, answers, strict=True):
        assert table[question][name] == answer, f'{question}: {name}'


def test_first_screen__has_the_commands_and_a_picture():
    with open(README, encoding='utf-8') as text:
        screen = text.read().split('\n')[:24]
    for wanted in ('holdfast add ', 'holdfast connect ', 'holdfast tail', 'make run', 'make test', 'docs/captures/tail.svg'):
        assert any(wanted in line for line in screen), wanted
