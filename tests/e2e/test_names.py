# SPDX-License-Identifier: Apache-2.0
"""A name that nobody knows is an error that says what may have been meant, never an empty answer."""
import json

import pytest

from commands import run


@pytest.fixture(params=['running', 'stopped'])
def hf(request, holdfast, stdio_server):
    one = holdfast({'files': stdio_server('files')[0], 'tickets': {'command': '/nonexistent/tickets'}})
    client = one.client('/mcp/files', modern=True)
    assert client.rpc('tools/call', {'name': 'echo', 'arguments': {'text': 'x'}}).result
    if request.param == 'stopped':
        one.stop()
    return one


# arguments, exit status, what is suggested
UNKNOWN = [
    (['servers', 'show', 'filez'], 1, 'files'),
    (['servers', 'diff', 'nosuch'], 1, None),
    (['servers', 'diff', 'filse'], 1, 'files'),
    (['servers', 'diff', 'files', 'nosuch'], 1, None),
    (['servers', 'lst'], 2, 'holdfast servers list'),
    (['audit', 'list', '--outcome', 'bad'], 2, None),
    (['audit', 'list', '--outcome', 'tool-error'], 2, 'tool_error'),
    (['audit', 'tail', '--outcome', 'timeot'], 2, 'timeout'),
    (['audit', 'list', '--server', 'filez'], 1, 'files'),
    (['audit', 'tail', '--server', 'nosuch'], 1, None),
    (['audit', 'events', '--server', 'nosuch'], 1, None),
    (['audit', 'list', '--tool', 'ecko'], 1, 'echo'),
    (['audit', 'list', '--session', 'nosuch'], 1, None),
    (['audit', 'lits'], 2, 'holdfast audit list'),
    (['user', 'sessions', 'nobody'], 1, None),
    (['user', 'disable', 'nobody'], 1, None),
    (['user', 'session', 'nobody'], 2, 'holdfast user sessions'),
    (['key', 'revoke', 'aaaaaaaaaaaa'], 1, None),
    (['key', 'crate'], 2, 'holdfast key create'),
]


def test_unknown_names_are_errors(hf):
    for args, status, meant in UNKNOWN:
        config = ['--config', hf.config_file] if args[0] == 'servers' and len(args) > 2 else []
        done = run(hf, *args, *config)
        lines = [l for l in done.stderr.splitlines() if 'data directory' not in l]
        assert done.returncode == status and not done.stdout and lines[0].startswith('holdfast: '), (args, done.returncode, done.stderr)
        assert (f'did you mean "{meant}"?' in lines[0] or f'did you mean {meant}?' in lines[0]) == bool(meant), (args, lines)
        told = run(hf, *args, *config, '--json')
        assert told.returncode == status and json.loads(told.stderr)['error']['code'] in ('not_found', 'usage'), told.stderr


def test_known_names_without_an_answer_are_no_errors(hf):
    for args in (['audit', 'list', '--server', 'session'], ['audit', 'list', '--server', 'tickets'], ['audit', 'list', '--tool', 'counter'],
                 ['audit', 'list', '--outcome', 'timeout'], ['audit', 'list', '--tool', 'echo', '--outcome', 'open'],
                 ['servers', 'show', 'tickets', '--config', hf.config_file], ['servers', 'diff', 'tickets', '--config', hf.config_file]):
        done = run(hf, *args)
        assert done.returncode == 0 and not done.stdout, (args, done.stderr)
    assert 'Holdfast has not seen the tools of tickets yet' in done.stderr


def test_tools_of_our_own_servers_are_counted_though_they_are_not_pinned(holdfast):
    hf = holdfast()
    rows = {name: tools for name, _, tools in (line.split()[:3] for line in run(hf, 'servers', 'list').stdout.splitlines())}
    assert rows['sample'] == '2' and rows['session'] == '5', rows
    done = run(hf, 'servers', 'show', 'sample')
    assert done.returncode == 0 and "its 2 tools are Holdfast's own" in done.stderr and '/mcp/sample' in done.stderr, done.stderr


def test_a_tool_or_server_that_does_not_exist_is_not_approved(holdfast, stdio_server):
    hf = holdfast({'files': stdio_server('files')[0]})
    hf.client('/mcp/files', modern=True).rpc('tools/list')
    for args, meant in ((['nosuch', '--all'], None), (['file', '--all'], 'files'), (['files', 'nosuch'], None)):
        done = run(hf, 'servers', 'approve', *args)
        assert done.returncode == 1 and 'approved:' not in done.stderr, (args, done.stderr)
        assert not meant or f'did you mean "{meant}"?' in done.stderr


def test_a_key_for_a_server_that_does_not_exist_is_warned_of(holdfast, stdio_server):
    hf = holdfast({'files': stdio_server('files')[0]})
    for flags, meant in ((['--server', 'filez'], 'files'), (['--tool', 'fils__read'], 'files'), (['--server', 'x*'], None)):
        done = run(hf, 'key', 'create', *flags)
        assert done.returncode == 0 and done.stdout.startswith('hf_'), done.stderr
        assert f'warning: {flags[0]} {flags[1]} fits no server there is' in done.stderr, done.stderr
        assert not meant or f'did you mean "{meant}"?' in done.stderr
    for flags in (['--server', 'files'], ['--server', 'fi*'], ['--tool', 'files__read'], ['--tool', '*__read*'], ['--server', 'session']):
        assert 'warning' not in run(hf, 'key', 'create', *flags).stderr
