# SPDX-License-Identifier: Apache-2.0
"""Listings for people: keys with user, limits and last use; keys revoked by name; 80 columns; wrong words that get a suggestion."""
import json

import pytest

import harness
from commands import on_terminal, run, run_json
from harness import wait_for


@pytest.fixture(scope='module')
def hf(tmp_path_factory):
    folder = tmp_path_factory.mktemp('lists')
    entry, _ = harness.stdio_server(folder, 'up', handles='never')
    hf = harness.Holdfast(folder, {'servers': {'up': entry, 'broken': {'command': '/bin/sh', 'args': [
        '-c', 'echo "Error: the port 5432 of the database db.example is not open for this user" >&2; exit 3']}}})
    hf.start()
    keys = {}
    for name, flags in (('laptop', ('--user', 'ada', '--server', 'up')), ('ci', ('--tool', 'up__echo', '--read-only')),
                        ('twin', ()), ('twin', ()), ('late', ('--expires', '90d'))):
        made = run(hf, 'key', 'create', '--name', name, '--json', *flags)
        keys.setdefault(name, []).append(json.loads(made.stdout))
    hf.keys = keys
    with hf.client('/mcp/up', headers={'Authorization': 'Bearer ' + keys['laptop'][0]['key']}) as client:
        client.connect().call('echo', {'text': 'x'})
    wait_for(lambda: listed(hf)['laptop']['last_used_at'], 'the use of the key to be stored')
    yield hf
    hf.close()


def listed(hf):
    return {k['name']: k for k in run_json(hf, 'key', 'list')}


def test_key_list__user_limits_and_last_use(hf):
    rows = {line.split()[1]: line.split() for line in run(hf, 'key', 'list').stdout.splitlines()[1:]}
    assert rows['laptop'][2:6] == ['active', 'member', 'ada', 'up'] and rows['laptop'][6] != 'never'
    assert rows['ci'][4:] == ['-', 'up__echo,', 'read-only', 'never'] and rows['twin'][5] == 'all'
    assert rows['late'][2] == 'to'
    assert listed(hf)['laptop']['user_name'] == 'ada' and 'user_name' not in listed(hf)['ci']


def test_key_revoke__by_name(hf):
    many = run(hf, 'key', 'revoke', 'twin')
    assert many.returncode == 6 and all(k['id'] in many.stderr for k in hf.keys['twin']), many
    near, none = run(hf, 'key', 'revoke', 'latp'), run(hf, 'key', 'revoke', 'nosuchkey')
    assert near.returncode and 'did you mean "late"?' in near.stderr
    assert none.returncode and 'see `holdfast key list`' in none.stderr
    assert run(hf, 'key', 'revoke', 'late').returncode == 0
    assert listed(hf)['late']['revoked_at'] and run(hf, 'key', 'revoke', 'late').returncode
    assert run(hf, 'key', 'revoke', hf.keys['twin'][0]['id']).returncode == 0
    assert run(hf, 'key', 'revoke', 'twin').returncode == 0  # only one is left
    assert listed(hf)['twin']['revoked_at'] and not listed(hf)['laptop']['revoked_at']


@pytest.mark.parametrize('words', ['key list', 'user list', 'servers list', 'servers show broken', 'sessions list', 'audit list'])
def test_terminal__80_columns_without_colour(hf, words):
    text = on_terminal(hf, *words.split(), NO_COLOR='1')
    assert '\x1b' not in text and max(map(len, text.splitlines()), default=0) <= 80, text


def test_servers_list__shows_why_a_server_is_down(hf):
    text = on_terminal(hf, 'servers', 'list', NO_COLOR='1')
    reason = text[text.index('broken'):]
    assert 'reason:' in reason and 'the port 5432 of the database db.example' in ' '.join(reason.split()), text
    paged = on_terminal(hf, 'servers', 'list', PAGER='sed s/^/paged:/')
    assert paged.startswith('paged:')


@pytest.mark.parametrize('given, told', [
    ('sesions', 'did you mean "sessions"?'), ('key lst', 'did you mean holdfast key list?'), ('audit tial', 'did you mean holdfast audit tail?'),
    ('sessions wacth', 'did you mean holdfast sessions watch?'), ('docs lst', 'did you mean holdfast docs list?'),
    ('servers lgos', 'did you mean holdfast servers logs?'), ('user crate', 'did you mean holdfast user create?'),
    ('secret lst', 'did you mean holdfast secret list?'), ('config chek', 'did you mean holdfast config check?'),
    ('db staus', 'did you mean holdfast db status?'), ('help kye', 'did you mean "key"?'), ('audit frob', 'there is no audit frob; audit needs one of'),
    ('audit show 1.1 --errors', 'audit show does not take --errors'), ('audit events --outcome ok', 'audit events does not take --outcome')])
def test_wrong_words__get_a_suggestion(hf, given, told):
    done = run(hf, *given.split(), with_data=False)
    assert done.returncode == 2 and told in done.stderr, done


def test_false_assurance__is_an_error(hf):
    unknown, bad = run(hf, 'servers', 'diff', 'nosuch'), run(hf, 'audit', 'list', '--outcome', 'bad')
    assert unknown.returncode and 'there is no server "nosuch"' in unknown.stderr
    assert bad.returncode == 2 and 'there is no outcome "bad"' in bad.stderr


def test_numbers__are_taken_in_every_form(hf):
    for _ in range(2):
        hf.client('/mcp/up').connect().call('echo', {'text': 'again'})
    for words in (('audit', 'list'), ('audit', 'tail'), ('tail', '--until', 'now')):
        for form in (('-n', '1'), ('-n1',), ('--limit', '1'), ('--limit=1',)):
            assert len(run_json(hf, *words, *form)) == 1, (words, form)
    for form in (('-n1',), ('--limit=1',)):
        assert len(run_json(hf, 'sessions', 'list', *form)) == 1
        assert run(hf, 'servers', 'logs', 'broken', *form).returncode == 0
    assert run(hf, 'key', 'list', '-n', '5').returncode == 2  # --limit of keys is another


def test_who_did_what__in_one_command(hf):
    text = run(hf, 'tail', '--since', 'today', '--until', 'now', '--user', 'ada').stdout
    assert len(text.splitlines()) == 2 and 'ada' in text and 'up.echo' in text
    assert run(hf, 'tail', '--since', 'yesterday', '--until', 'today', '--user', 'ada', '--json').stdout == ''
