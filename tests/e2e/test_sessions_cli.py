# SPDX-License-Identifier: Apache-2.0
"""`holdfast sessions`: the list, one session, the end of one, and the list as it changes; with a running
Holdfast, with none, and over HTTP with a key.  The operations behind them, for each role."""
import json
import os
import signal
import subprocess
import threading

import pytest

import harness
from commands import command_env, on_terminal, open_pty, run, run_json
from harness import wait_for
from rest import Rest, refused


def begin(folder):
    """Holdfast with two servers, and two sessions: one of the local user, one of the key `laptop`."""
    servers = {}
    for name in ('up', 'other'):
        servers[name], _ = harness.stdio_server(folder, name, handles='never')
    hf = harness.Holdfast(folder, {'servers': servers})
    hf.start()
    with hf.client('/mcp/up') as mine:
        mine.connect().call('echo', {'text': 'mine'})
        mine.call('fail', {})
    hf.key = json.loads(run(hf, 'key', 'create', '--name', 'laptop', '--role', 'admin', '--json').stdout)['key']
    with hf.client('/mcp', headers={'Authorization': f'Bearer {hf.key}'}) as theirs:
        theirs.connect(name='editor').call('other__echo', {'text': 'theirs'})
    wait_for(lambda: sorted(s['tool_execution_count'] for s in sessions(hf)) == [1, 2], 'the calls to be counted')
    return hf


@pytest.fixture(scope='module')
def hf(tmp_path_factory):
    """For tests that change nothing."""
    hf = begin(tmp_path_factory.mktemp('sessions'))
    yield hf
    hf.close()


@pytest.fixture
def own(tmp_path):
    hf = begin(tmp_path)
    yield hf
    hf.close()


def sessions(hf, *args):
    return run_json(hf, 'sessions', 'list', *args)


def of(hf, who):
    [found] = [s for s in sessions(hf, '--status', 'all') if who in (s['owner'], s.get('key_name'))]
    return found


def ids(rows):
    return [r['id'] for r in rows]


def test_list__names_client_user_and_servers(hf):
    laptop, mine = sessions(hf)  # the newest is the first
    assert (laptop['client_name'], laptop['key_name'], laptop['servers'], laptop['status']) == ('editor', 'laptop', ['other'], 'active')
    assert (mine['client_name'], mine['owner'], mine['servers']) == ('e2e', 'local', ['up'])
    line = next(line for line in run(hf, 'sessions', 'list').stdout.splitlines() if 'laptop' in line)
    assert line.split()[:6] == [laptop['session_id'], 'active', 'editor', 'laptop', 'other', '1']


def test_list__filters(hf):
    laptop, mine = sessions(hf)
    for flag, value, want in (('--client', 'editor', laptop), ('--server', 'up', mine), ('--user', 'laptop', laptop),
                              ('--user', 'local', mine), ('--limit', '1', laptop)):
        assert ids(sessions(hf, flag, value)) == [want['id']], flag
    assert ids(sessions(hf, '--server', 'up', '--user', 'laptop')) == []
    assert sessions(hf, '--status', 'terminated') == []
    assert '--limit N shows more' in run(hf, 'sessions', 'list', '--limit=1').stderr


def test_list__refuses_what_cannot_be_right(hf):
    for words, told in ((('--status', 'actve'), 'did you mean "active"?'), (('--server', 'upp'), 'did you mean "up"?'),
                        (('--limit', '0'), '--limit takes a number'), (('--reason', 'x'), 'sessions list does not take --reason')):
        refused_list = run(hf, 'sessions', 'list', *words)
        assert refused_list.returncode != 0 and told in refused_list.stderr, refused_list
    empty = run(hf, 'sessions', 'list', '--tenant', 'acme')
    assert (empty.returncode, empty.stdout) == (0, '') and 'tenant acme has no such sessions' in empty.stderr


def test_terminal__80_columns_short_names_and_no_colour(hf):
    text = on_terminal(hf, 'sessions', 'list', NO_COLOR='1')
    assert '\x1b' not in text and max(map(len, text.splitlines())) <= 80, text
    short = text.splitlines()[1].split()[0]
    assert of(hf, 'laptop')['session_id'].startswith(short) and len(short) == 12
    shown = on_terminal(hf, 'sessions', 'show', short, NO_COLOR='1')
    assert max(map(len, shown.splitlines())) <= 80 and 'other.echo' in shown, shown
    assert '\x1b[32mactive\x1b[0m' in on_terminal(hf, 'sessions', 'list')


def test_show__by_handle_row_and_beginning(hf):
    mine = of(hf, 'local')
    text = run(hf, 'sessions', 'show', mine['session_id']).stdout
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line]
    assert ['status', 'active'] in lines and ['client', 'e2e 1'] in lines and ['user', 'local'] in lines
    assert any(words[0] == 'servers' and words[1].startswith('up, open since') for words in lines)
    calls = text.split('\n\n')[1]
    assert calls.index('up.echo  text="mine"') < calls.index('up.fail')  # as tail: the newest is the last
    for name in (mine['id'], mine['id'].upper(), mine['session_id'][:9]):
        assert run_json(hf, 'sessions', 'show', name)[0]['id'] == mine['id']
    [whole] = run_json(hf, 'sessions', 'show', mine['id'], '-n1')
    assert [c['tool'] for c in whole['calls']] == ['fail'] and whole['links'][0]['is_live'] is True
    many, unknown = run(hf, 'sessions', 'show', 'ses_'), run(hf, 'sessions', 'show', 'nosuch')
    assert many.returncode and 'several sessions begin with "ses_"' in many.stderr
    assert unknown.returncode and '`holdfast sessions list --status all` shows' in unknown.stderr


def test_end__asks_on_a_terminal_and_needs_yes_without(own):
    mine = of(own, 'local')
    name = mine['session_id'][:12]
    asked = run(own, 'sessions', 'end', name)
    assert asked.returncode == 2 and 'add --yes' in asked.stderr
    text = on_terminal(own, 'sessions', 'end', name, keys=b'n\n')
    assert f'End session {mine["session_id"]} (e2e, of local)?' in text and of(own, 'local')['status'] == 'active'
    on_terminal(own, 'sessions', 'end', name, keys=b'y\n')
    assert of(own, 'local')['termination_reason'] == 'ended by an administrator'
    again = run(own, 'sessions', 'end', name, '--yes')
    assert again.returncode and 'is terminated already' in again.stderr


def test_without_a_daemon__reads_and_ends(own):
    mine = of(own, 'local')
    own.stop()
    assert ids(sessions(own, '--status', 'all', '--user', 'local')) == [mine['id']]
    assert run_json(own, 'sessions', 'show', mine['id'])[0]['calls'][0]['tool'] == 'fail'
    assert run(own, 'sessions', 'end', of(own, 'laptop')['id'], '--yes', '--reason', 'left').returncode == 0
    assert of(own, 'laptop')['termination_reason'] == 'left'
    assert run(own, 'audit', 'verify').returncode == 0
    own.start()
    assert of(own, 'laptop')['status'] == 'terminated'


def over_http(hf, *args, key):
    return run(hf, 'sessions', *args, '--url', f'http://localhost:{hf.port}', env={'HOLDFAST_KEY': key}, with_data=False)


def test_url__with_a_key(own):
    listed = over_http(own, 'list', '--json', key=own.key)
    assert [json.loads(line)['client_name'] for line in listed.stdout.splitlines()] == ['editor', 'e2e'], listed.stderr
    assert over_http(own, 'end', of(own, 'local')['id'], '--yes', key=own.key).returncode == 0
    assert of(own, 'local')['status'] == 'terminated'
    member = json.loads(run(own, 'key', 'create', '--json').stdout)['key']
    denied = over_http(own, 'list', key=member)
    assert denied.returncode and 'admin and auditor' in denied.stderr


class Watch:
    """`holdfast sessions watch` in a pipe; its lines as they come."""

    def __init__(self, hf, *args):
        self.lines, self.turn = [], threading.Condition()
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [harness.BINARY, 'sessions', 'watch', '--quiet', '--data', hf.data, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=command_env(hf))
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.turn:
                self.lines.append(json.loads(line))
                self.turn.notify_all()

    def wait(self, wanted, what):
        with self.turn:
            assert self.turn.wait_for(lambda: any(wanted(line) for line in self.lines), harness.DEADLINE_S), (what, self.lines)

    def close(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(harness.DEADLINE_S) == -signal.SIGINT
        assert self.process.stderr.read() == b''
        self.process.stderr.close()


def test_watch__prints_changes(own):
    mine = of(own, 'local')
    watch = Watch(own, '--json')
    watch.wait(lambda s: s['id'] == mine['id'], 'the list')
    with own.client('/mcp/up') as fresh:
        fresh.connect(name='fresh').call('echo', {'text': 'x'})
        watch.wait(lambda s: s['client_name'] == 'fresh', 'a new session')
    run(own, 'sessions', 'end', mine['id'], '--yes')
    watch.wait(lambda s: s['id'] == mine['id'] and s['status'] == 'terminated', 'a session that ended')
    watch.close()
    laptop = of(own, 'laptop')['id']
    assert len([s for s in watch.lines if s['id'] == laptop]) == 1  # it did not change


def test_watch__draws_a_screen_on_a_terminal(own):
    ours, theirs = open_pty()
    with subprocess.Popen([harness.BINARY, 'sessions', 'watch', '--quiet', '--data', own.data], stdin=theirs, stdout=theirs, stderr=theirs,
                          env={**command_env(own), 'TERM': 'xterm', 'NO_COLOR': '1'}) as process:
        os.close(theirs)
        text = b''
        while b'editor' not in text:
            text += os.read(ours, 65536)
        run(own, 'sessions', 'end', of(own, 'laptop')['id'], '--yes')
        last = text
        while b'editor' in last.rsplit(b'\x1b[2J', 1)[1] or b'e2e' not in last.rsplit(b'\x1b[2J', 1)[1]:
            last += os.read(ours, 65536)  # until a screen without it
        process.send_signal(signal.SIGINT)
        assert process.wait(harness.DEADLINE_S) == -signal.SIGINT
        os.close(ours)
    assert text.startswith(b'\x1b[H\x1b[2JSESSION')


def test_api__roles_and_tenants(holdfast, database):
    hf = holdfast({}, env=database)
    api = Rest(hf)

    def key(*flags):
        done = run(hf, 'key', 'create', '--json', *flags)
        return Rest(hf, {'Authorization': 'Bearer ' + json.loads(done.stdout)['key']})
    member, auditor, admin = (key('--tenant', 'acme', '--role', role) for role in ('member', 'auditor', 'admin'))
    session = member.create(session_id='a.name_of~ours')
    refused(member.get('/sessions/details'), 403, 'denied')
    refused(member.get('/sessions/' + session['id'] + '/details'), 403, 'denied')
    assert ids(auditor.get('/sessions/details').json()['sessions']) == [session['id']]
    assert auditor.get('/sessions/a.na/details').json()['id'] == session['id']
    refused(auditor.get('/sessions/a.n/details'), 404, 'not_found')  # too short a beginning
    assert api.get('/sessions/details').json()['sessions'] == []
    refused(auditor.get('/sessions/details?tenant=rival'), 403, 'denied')
    assert run_json(hf, 'sessions', 'list', '--tenant', 'acme')[0]['id'] == session['id']
    assert run(hf, 'sessions', 'end', 'a.name_of~ours', '--tenant', 'acme', '--yes').returncode == 0
    assert auditor.get('/sessions/' + session['id'] + '/details').json()['status'] == 'terminated'
    for _ in range(3):
        admin.create()
    page = auditor.get('/sessions/details?limit=2').json()
    rest = auditor.get(f'/sessions/details?limit=2&cursor={page["next_cursor"]}').json()
    assert (page['count'], rest['count'], rest['next_cursor']) == (2, 1, None)
    refused(auditor.get(f'/sessions/details?limit=2&status=all&cursor={page["next_cursor"]}'), 400, 'bad_cursor')
