# SPDX-License-Identifier: Apache-2.0
"""A recording that stands in for its servers: `holdfast sessions replay ID --serve`."""
import contextlib
import json
import os
import re
import signal
import subprocess

import pytest

import harness
from commands import command_env, run
from harness import DEADLINE_S, Client, Connection
from rest import Rest
from test_clients import CELL_S, CLIENTS, DRIVE
from test_replay import LOOKS, Answers, client_of, recorded
from test_rest_roles import key_for
from test_templates import put

CALLS = [('look', {'item': 'tea'}), ('look', {'item': 'coffee'}), ('fail', {}), ('refuse', {'a': 1}), ('keep', {'a': 1}), ('keep', {'a': 1})]


@pytest.fixture
def shop(tmp_path):
    return Answers(tmp_path)


@pytest.fixture
def api(holdfast, shop):
    made = Rest(holdfast({'shop': shop.entry}))
    put(made, 'full', {'audit': 'full', 'audit_body': '64KiB'})
    return made


class Served:
    """The command while it serves, with --json."""

    def __init__(self, hf, *args, with_data=True, **env):
        data = ['--data', hf.data] if with_data else []
        self.process = subprocess.Popen([harness.BINARY, 'sessions', 'replay', *args, '--serve', '--json', *data], cwd=hf.folder,
                                        env=command_env(hf, **env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line, self.process.communicate(timeout=DEADLINE_S)
        self.head = json.loads(line)['serving']
        self.port = int(re.search(r':(\d+)/', self.head['url'])[1])

    def end(self, status=0):
        """(lines of calls, summary)"""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=DEADLINE_S)
        assert self.process.returncode == status, (out, err)
        assert not harness.SANITIZER.search(err), err
        lines = [json.loads(line) for line in out.splitlines()]
        return [line['call'] for line in lines[:-1]], lines[-1]['summary']

    def connection(self):
        return Connection(self.port)

    def client(self, path='/mcp/shop', modern=False):
        client = Client(self, path, modern=modern)
        return client if modern else client.connect()


@contextlib.contextmanager
def serving(hf, *args, **how):
    served = Served(hf, *args, **how)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.process.kill()
            served.process.communicate(timeout=DEADLINE_S)


def rules(calls):
    return [(c['rule'], c.get('number')) for c in calls]


# What agents do: the official clients.

def needs_clients():
    if not harness.node() or not os.path.exists(os.path.join(harness.NODE_MODULES, '@modelcontextprotocol/client')):
        pytest.skip('the packages of tests/package.json are not installed')


@pytest.fixture
def served_to_clients(api):
    needs_clients()
    session = recorded(api, CALLS)
    with serving(api.holdfast, session['session_id']) as served:
        api.holdfast.stop()  # no server and no daemon is needed any more
        yield served


def drive(client, era, url, features, prefix=''):
    """Runs tests/clients/recording.mjs with one official client."""
    done = subprocess.run([harness.node(), DRIVE, '--client', client, '--peer', 'recording', '--features', ','.join(features),
                           '--url', url, '--prefix', prefix],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CELL_S, check=False)
    said = {line['feature']: line for line in map(json.loads, done.stdout.splitlines())}
    failed = {f: said.get(f) for f in ('connect', *features, 'close') if not said.get(f, {}).get('ok')}
    assert not failed, (client, url, failed, done.stderr[-2000:])
    assert (said['connect']['detail'].split(' ')[0] == harness.MODERN) == (era == 'modern'), said['connect']


def test_official_clients__of_both_sdks_and_eras_are_answered(served_to_clients):
    base, features = f'http://127.0.0.1:{served_to_clients.port}', ['tools', 'answers', 'order', 'unknown']
    for client, era in CLIENTS.items():
        drive(client, era, f'{base}/mcp/shop', features)
        drive(client, era, f'{base}/mcp', features, 'shop__')
    calls, summary = served_to_clients.end(status=1)
    assert summary['calls'] == 8 * 7 and summary['unknown'] == 8 and summary['in_order'] == 0, summary
    assert summary['used'] == summary['recorded'] == 6 and all('look' in c['why'] for c in calls if c['rule'] == 'unknown')


# The rules.

@pytest.mark.parametrize('modern', [False, True], ids=['legacy', 'modern'])
def test_rules__exact_then_again_then_in_order_then_an_error(api, modern):
    session = recorded(api, [('look', {'item': 'tea', 'n': 1.50}), ('keep', {}), ('keep', {}), ('look', {'item': 'coffee'}),
                             ('look', {'item': 'milk'})])
    with serving(api.holdfast, session['session_id']) as served:
        client = served.client(modern=modern)
        for arguments in ({'n': 1.5, 'item': 'tea'}, {'n': 15e-1, 'item': 'tea'}, {'item': 'coffee'}, {'item': 'coffee', 'n': 1}):
            assert client.call('look', arguments).result
        refused = client.call('look', {'item': 'coffee', 'n': 2}).error
        assert refused['code'] == -32602 and 'none with these arguments' in refused['message'], refused
        assert [client.call('keep').result['content'][0]['text'] for _ in range(3)] == ['1', '2', '1']
        gone = client.call('buy', {'item': 'tea'}).error
        assert 'no call of buy; of shop it has calls of look, keep' in gone['message'], gone
        calls, summary = served.end(status=1)
    assert rules(calls) == [('exact', 1), ('again', 1), ('exact', 4), ('in_order', 5), ('unknown', None),
                            ('exact', 2), ('exact', 3), ('again', 2), ('unknown', None)]
    assert summary == {'calls': 9, 'exact': 4, 'again': 2, 'in_order': 1, 'unknown': 2, 'recorded': 5, 'used': 5}


def test_tools__have_the_definitions_that_were_seen_last(api, tmp_path):
    session, file = recorded(api, LOOKS), str(tmp_path / 'recording.jsonl')
    assert run(api.holdfast, 'sessions', 'export', session['session_id'], '-o', file).returncode == 0
    for source, described in ((session['session_id'], 'It is the tool look'), (file, 'A recorded tool. ')):
        with serving(api.holdfast, source) as served:
            look = {t['name']: t for t in served.client().rpc('tools/list').result['tools']}['look']
            assert look['description'].startswith(described), look
            if source == file:
                assert set(look['inputSchema']['properties']) == {'item', 'n'}, look
            served.end()
    pages = api.get('/servers/shop/tools?definitions=1&limit=2').json()
    assert [t['definition']['name'] for t in pages['tools']] == ['fail', 'keep'] and pages['next_cursor']
    assert 'definition' not in api.get('/servers/shop/tools').json()['tools'][0]


def test_sessions_of_clients__begin_with_the_first_call_each(api):
    session = recorded(api, [('keep', {}), ('keep', {})])
    with serving(api.holdfast, session['session_id']) as served:
        for client in (served.client(), served.client()):
            assert [client.call('keep').result['content'][0]['text'] for _ in range(2)] == ['1', '2']
        calls, _ = served.end()
    assert rules(calls) == [('exact', 1), ('exact', 2)] * 2


def test_many_calls__are_all_answered_also_while_nobody_reads_the_lines(api, shop):
    count = 1000  # their lines do not fit into the pipe
    wanted = [('look', {'item': f'item {n}', 'n': n}) for n in range(count)]
    session = recorded(api, wanted)
    with serving(api.holdfast, session['session_id']) as served:
        client = served.client()
        for tool, arguments in wanted:
            result = client.call(tool, arguments).result
            assert json.loads(result['content'][0]['text'])['item'] == arguments['item']
        calls, summary = served.end()
    assert rules(calls) == [('exact', n) for n in range(1, count + 1)] and summary['used'] == count
    assert len(shop.calls()) == count, 'only the recording itself reached the server'


def test_answers_that_are_not_on_record__are_errors_that_say_so(holdfast, tmp_path):
    shop, digest = Answers(tmp_path), Answers(tmp_path, 'digests', audit='digest')
    shop.change(prices={'tea': 'x' * 8000})
    api = Rest(holdfast({'shop': shop.entry, 'digest': digest.entry}, {'limits': {'audit_body': '4KiB'}}))
    session = api.create()
    meta = {'session_id': session['session_id']}
    client_of(api.holdfast).call('look', {'item': 'tea'}, meta=meta)
    client_of(api.holdfast).call('fail', {'key': 'password=hunter2-hunter2'}, meta=meta)
    client_of(api.holdfast, path='/mcp/digest').call('look', {'item': 'tea'}, meta=meta)
    with serving(api.holdfast, session['session_id']) as served:
        client, other = served.client(), served.client('/mcp/digest')
        cut = client.call('look', {'item': 'tea'}).error['message']
        assert '1 on record, none with an answer; the result of call 1 is not known: its bytes were cut' in cut, cut
        assert 'recorded as a digest only' in other.call('look', {'item': 'tea'}).error['message']
        # Redacted arguments match nothing, so the call is answered in order.
        assert client.call('fail', {'key': 'another'}).result['isError'] is True
        calls, _ = served.end(status=1)
    assert rules(calls) == [('unknown', None), ('unknown', None), ('in_order', 2)]


# The source.

def test_file__is_served_without_a_holdfast_and_may_be_edited(api, tmp_path):
    session, file = recorded(api, LOOKS), str(tmp_path / 'recording.jsonl')
    done = run(api.holdfast, 'sessions', 'export', session['session_id'], '-o', file)
    assert done.returncode == 0, done
    api.holdfast.stop()
    with open(file, encoding='utf-8') as lines:
        text = lines.read().replace('it failed as always', 'it failed as edited')
    with open(file, 'w', encoding='utf-8') as lines:
        lines.write(text)
    with serving(api.holdfast, file, with_data=False) as served:
        assert served.head['session_id'] == session['session_id']
        assert served.head['servers'] == [{'name': 'shop', 'url': f'http://127.0.0.1:{served.port}/mcp/shop', 'tools': 3, 'calls': 4}]
        assert served.client().call('fail').result['content'][0]['text'] == 'it failed as edited'
        served.end()
    with open(file, 'w', encoding='utf-8') as lines:
        lines.write(text[:text.index('{"type":"end"')])
    cut = run(api.holdfast, 'sessions', 'replay', file, '--serve')
    assert cut.returncode != 0 and 'cut off: its last line is missing' in cut.stderr, cut
    for content, why in (('', 'it is empty'), ('{"a":1}\n', 'line 1 is not of an exported session'), (text + text, 'a second session')):
        with open(file, 'w', encoding='utf-8') as lines:
            lines.write(content)
        wrong = run(api.holdfast, 'sessions', 'replay', file, '--serve')
        assert wrong.returncode != 0 and why in wrong.stderr, wrong


def test_file__with_odd_names_puts_nothing_on_the_terminal(api, tmp_path):
    session, file = recorded(api, LOOKS), str(tmp_path / 'recording.jsonl')
    assert run(api.holdfast, 'sessions', 'export', session['session_id'], '-o', file).returncode == 0
    with open(file, encoding='utf-8') as lines:
        text = lines.read().replace('"server":"shop"', r'"server":"\u001b]0;x\u0007"')
    with open(file, 'w', encoding='utf-8') as lines:
        lines.write(text)
    done = run(api.holdfast, 'sessions', 'replay', file, '--serve')
    assert done.returncode != 0 and 'no call of a tool' in done.stderr and '\x1b' not in done.stdout, done


def test_only__serves_the_chosen_tools_and_nothing_is_an_error(api):
    session = recorded(api, LOOKS)
    with serving(api.holdfast, session['session_id'], '--only', 'shop__look') as served:
        assert served.head['servers'][0]['tools'] == 1 and served.head['servers'][0]['calls'] == 2
        served.end()
    none = run(api.holdfast, 'sessions', 'replay', session['session_id'], '--serve', '--only', 'shop__nothing')
    assert none.returncode == 1 and 'no call of a tool that --only names' in none.stderr, none
    empty = run(api.holdfast, 'sessions', 'replay', api.create()['session_id'], '--serve')
    assert empty.returncode == 1 and 'no call of a tool, so there is nothing to serve' in empty.stderr, empty


def test_flags_that_do_not_go_together__are_refused(api, tmp_path):
    name = recorded(api, LOOKS[:1])['session_id']
    for flags, why in ((('--serve', '--against', 'shop'), '--serve sends no calls'), (('--serve', '--writes'), '--writes'),
                       (('--listen', '127.0.0.1:0'), '--listen goes with --serve')):
        done = run(api.holdfast, 'sessions', 'replay', name, *flags)
        assert done.returncode == 2 and why in done.stderr, done
    file = str(tmp_path / 'recording.jsonl')
    assert run(api.holdfast, 'sessions', 'export', name, '-o', file).returncode == 0
    unserved = run(api.holdfast, 'sessions', 'replay', file, '--diff')
    assert unserved.returncode == 2 and f'import it with `holdfast sessions import {file}`' in unserved.stderr, unserved
    beyond = run(api.holdfast, 'sessions', 'replay', name, '--serve', '--listen', '0.0.0.0:0')
    assert beyond.returncode != 0 and 'others can reach' in beyond.stderr, beyond


def test_foreign_session__cannot_be_served(holdfast, tmp_path):
    api = Rest(holdfast({'shop': Answers(tmp_path).entry}))
    owner, other = (key_for(api, '--role', 'member') for _ in range(2))
    session = recorded(owner, LOOKS[:1], template=None, headers=owner.headers)
    url = f'http://127.0.0.1:{api.holdfast.port}'
    foreign = run(api.holdfast, 'sessions', 'replay', session['session_id'], '--serve', '--url', url, with_data=False,
                  env={'HOLDFAST_KEY': other.headers['Authorization'].split(' ')[1]})
    assert foreign.returncode == 1 and 'no session of this name' in foreign.stderr, foreign
    with serving(api.holdfast, session['session_id'], '--url', url, with_data=False,
                 HOLDFAST_KEY=owner.headers['Authorization'].split(' ')[1]) as served:
        assert served.client().call(*LOOKS[0]).result
        served.end()


def test_end__leaves_nothing_behind(api, tmp_path):
    session = recorded(api, LOOKS)
    top = tmp_path / 'top'
    top.mkdir()
    with serving(api.holdfast, session['session_id'], TMPDIR=str(top)) as served:
        assert [d for d in os.listdir(top) if d.startswith('holdfast-replay-')]
        served.process.send_signal(signal.SIGHUP)  # there is no file to read again
        out, err = served.process.communicate(timeout=DEADLINE_S)
        assert served.process.returncode == 0 and "summary" in out, (out, err)
    assert os.listdir(top) == []
