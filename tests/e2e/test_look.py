# SPDX-License-Identifier: Apache-2.0
"""Reading the record as a person: who did what, on a terminal of 80 columns, without colour too."""
import json

import pytest

import commands
import harness
from commands import on_terminal, run, run_json

REPLY = 'Access denied: /etc/shadow'


@pytest.fixture(scope='module')
def hf(tmp_path_factory):
    folder = tmp_path_factory.mktemp('look')
    entry, _ = harness.stdio_server(folder, 'up', handles='never')
    hf = harness.Holdfast(folder, {'servers': {'up': entry}})
    hf.start()
    client = hf.client('/mcp/up').connect()
    client.call('echo', {'text': 'a long text ' * 20})
    client.call('fail', {'text': REPLY + '\nand more'})
    yield hf
    hf.close()


def test_tail__is_a_story_with_names_and_arguments(hf):
    text = run(hf, 'audit', 'tail').stdout
    echo = next(line for line in text.splitlines() if 'up.echo' in line)
    assert 'local' in echo and '✔ ok' in echo and 'text="a long text' in echo
    failed = next(line for line in text.splitlines() if 'up.fail' in line)
    assert '✘ tool_error' in failed and 'up.fail: ' + REPLY in failed
    [row] = run_json(hf, 'audit', 'list', '--errors')
    assert row['reply_line'] == REPLY and not row.get('error')
    assert all('reply_line' not in other for other in run_json(hf, 'audit', 'list') if other['id'] != row['id'])
    shown = commands.control(hf, f'/api/v1/audit/executions/{row["id"]}').json()['execution']
    assert shown['reply_line'] == REPLY


@pytest.mark.parametrize('words', [('audit', 'tail'), ('audit', 'list'), ('tail', '--until', 'now')])
def test_terminal__no_line_is_wider_than_80_columns(hf, words):
    text = on_terminal(hf, *words, NO_COLOR='1')
    assert '\x1b' not in text and 'echo' in text and ('…' in text or 'list' in words)
    assert max(map(len, text.splitlines())) <= 80, text
    assert '\x1b[32m' in on_terminal(hf, *words)


def test_filters__errors_users_and_times(hf):
    every = run_json(hf, 'audit', 'list')
    assert [r['tool'] for r in run_json(hf, 'audit', 'list', '--errors')] == ['fail']
    assert run_json(hf, 'audit', 'list', '--user', 'local') == every
    assert run_json(hf, 'audit', 'list', '--user', 'nobody') == []
    assert run_json(hf, 'audit', 'list', '--since', 'yesterday', '--until', 'now') == every
    assert run_json(hf, 'audit', 'list', '--until', '2020-01-01') == []
    refused = run(hf, 'audit', 'list', '--until', '2026-02-30')
    assert refused.returncode == 2 and '--until takes a duration' in refused.stderr


def test_keys__are_named(hf):
    made = run(hf, 'key', 'create', '--name', 'laptop', '--json')
    key = json.loads(made.stdout)['key']
    hf.client('/mcp/up', headers={'Authorization': f'Bearer {key}'}).connect().call('echo', {'text': 'by key'})
    [row] = run_json(hf, 'audit', 'list', '--user', 'laptop')
    assert row['key_name'] == 'laptop' and row['arguments_line'].startswith('text="by key"')
    line = run(hf, 'audit', 'tail', '-n1').stdout.splitlines()[-1]
    assert 'laptop' in line and 'by key' in line


def test_pager__only_on_a_terminal(hf):
    text = on_terminal(hf, 'audit', 'list', PAGER='sed s/^/paged:/')
    assert text.splitlines()[1].startswith('paged:')
    assert 'paged:' not in run(hf, 'audit', 'list', env={'PAGER': 'sed s/^/paged:/'}).stdout
