# SPDX-License-Identifier: Apache-2.0
"""docs/captures.md and the picture of the README show what the program prints today."""
import os
import re
import subprocess
import xml.etree.ElementTree

import harness
import pytest
from commands import open_pty


@pytest.fixture(name='fresh', scope='module')
def fixture_fresh(tmp_path_factory):
    for end in open_pty():  # a machine without pseudo-terminals skips
        os.close(end)
    folder = tmp_path_factory.mktemp('captures')
    done = subprocess.run([os.path.join(harness.TOP, 'tools/capture'), harness.BINARY, folder], capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def words(text):
    """Lines without what the speed or the load of the machine changes: durations, blanks, where lines are wrapped."""
    text = re.sub(r'\d+(\.\d+)? (ms|us|s)\b', 'T', text)
    return [' '.join(part.split()) for part in text.split('\n\n')]


def test_page__shows_what_the_commands_print(fresh):
    with open(os.path.join(harness.TOP, 'docs/captures.md'), encoding='utf-8') as file:
        assert words(file.read()) == words((fresh / 'captures.md').read_text(encoding='utf-8')), 'run tools/capture'


def test_page__fits_80_columns_and_has_no_colours(fresh):
    text = (fresh / 'captures.md').read_text(encoding='utf-8')
    assert '\x1b' not in text
    for block in re.findall(r'```text\n(.*?)```', text, re.S):
        assert all(len(line) <= 80 for line in block.split('\n')), block


def test_picture__is_well_formed_and_shows_the_same_calls(fresh):
    shown = []
    for path in (fresh / 'captures/tail.svg', os.path.join(harness.TOP, 'docs/captures/tail.svg')):
        texts = [e.text for e in xml.etree.ElementTree.parse(path).iter('{http://www.w3.org/2000/svg}text')]
        shown.append([' '.join(words(text)) for text in texts])
    assert shown[0] == shown[1], 'run tools/capture'
    assert 'files.list_directory' in shown[0] and '✘ tool_error' in shown[0]
