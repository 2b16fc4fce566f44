# SPDX-License-Identifier: Apache-2.0
"""holdfast docs add: a folder is written to the file that Holdfast reads, and served at once."""
import json
import os

import pytest
from harness import wait_for
from test_add import Shell


@pytest.fixture
def shell(tmp_path):
    one = Shell(tmp_path)
    os.makedirs(os.path.join(one.home, 'notes/deep'))
    for name in ('a.md', 'deep/b.md', 'c.txt'):
        with open(os.path.join(one.home, 'notes', name), 'w', encoding='utf-8') as file:
            file.write('text\n')
    return one


def test_docs_add__writes_the_whole_path_and_counts_the_documents(shell):
    done = shell.run('docs', 'add', 'Notes', 'notes')
    assert done.returncode == 0 and '✔ Notes  2 documents' in done.stdout, done.stderr
    assert json.loads(shell.text())['holdfast']['docs'] == {'Notes': {'path': os.path.join(shell.home, 'notes')}}
    assert shell.run('config', 'check').returncode == 0


def test_docs_add__makes_a_running_holdfast_serve_the_folder(holdfast, shell):
    hf = holdfast({}, {})
    done = shell.run('docs', 'add', 'Notes', 'notes', '--json', '--agent', 'comment', '--config', hf.config_file, '--data', hf.data)
    assert done.returncode == 0 and json.loads(done.stdout)['documents'] == 2, done.stderr

    def listed():
        rows = shell.run('docs', 'list', '--json', '--data', hf.data).stdout.splitlines()
        return [json.loads(row) for row in rows]
    assert len(wait_for(listed, 'the documents to be served')) == 2


@pytest.mark.parametrize('words, status, says', [
    (('Notes', 'nowhere'), 1, 'create the folder first'),
    (('Notes', 'notes/a.md'), 1, 'not a folder'),
    (('No/tes', 'notes'), 7, 'choose another'),
    (('Notes', 'notes', '--agent', 'dance'), 7, 'suggest'),
    (('Notes',), 2, 'NAME PATH'),
])
def test_docs_add__refuses_what_cannot_be_served_and_writes_nothing(shell, words, status, says):
    done = shell.run('docs', 'add', *words)
    assert done.returncode == status and says in done.stderr, done.stderr
    assert not os.path.exists(shell.file)


def test_docs_add__does_not_replace_a_folder(shell):
    assert shell.run('docs', 'add', 'Notes', 'notes').returncode == 0
    before = shell.text()
    done = shell.run('docs', 'add', 'Notes', 'notes/deep')
    assert done.returncode == 6 and 'already' in done.stderr and shell.text() == before


def test_docs__without_a_holdfast_starts_one_for_the_command(shell):
    assert shell.run('docs', 'add', 'Notes', 'notes').returncode == 0
    with open(os.path.join(shell.home, 'notes/a.md'), 'w', encoding='utf-8') as file:
        file.write('A {++new ++}text.\n')
    found = [json.loads(row) for row in shell.run('docs', 'suggestions', '--json').stdout.splitlines()]
    assert len(found) == 1 and found[0]['path'] == 'Notes/a.md', found
    assert shell.run('status').returncode == 4  # it has ended
    done = shell.run('docs', 'accept', 'Notes/a.md', '--all')
    assert done.returncode == 0, done.stderr
    with open(os.path.join(shell.home, 'notes/a.md'), encoding='utf-8') as file:
        assert file.read() == 'A new text.\n'


def test_docs__says_why_none_could_be_started(shell):
    shell.write('{"holdfast": {"lisen": 1}}')
    done = shell.run('docs', 'list')
    assert done.returncode == 4 and 'none could be started' in done.stderr and 'lisen' in done.stderr, done.stderr
