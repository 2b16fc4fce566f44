# SPDX-License-Identifier: Apache-2.0
"""Secrets of the configuration: sealed in the store, used by servers, shown to nobody."""
import json
import os
import pty
import re
import signal
import subprocess
import termios
import time

import pytest

from commands import UnixConnection
from harness import BINARY, wait_for

CANARY = 'canary-5e1a77c3'


def run(one, *args, value=None, **options):
    return subprocess.run([BINARY, *args, '--data', one.data], input=value, capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, **one.env}, **options)


def on_socket(one, method, path, body=None):
    text = b'' if body is None else json.dumps(body).encode()
    with UnixConnection(os.path.join(one.data, 'holdfast.sock')) as connection:
        return connection.request(method, path, {'Content-Type': 'application/json'} if text else {}, text)


def put(one, name, value):
    done = run(one, 'secret', 'set', name, '--value-file', '-', value=value)
    assert done.returncode == 0, done.stderr
    assert value not in done.stdout + done.stderr
    return done


def listed(one):
    done = run(one, 'secret', 'list', '--json')
    assert done.returncode == 0, done.stderr
    return {row['name']: row for row in map(json.loads, done.stdout.splitlines())}


def env_of(one, server='rec'):
    with one.client('/mcp/' + server) as client:
        client.connect()
        return json.loads(client.call('env').result['content'][0]['text'])


def env_is(one, name, value, server='rec'):
    """Waits until a new session sees the value: the reload follows the answer of `secret set`."""
    def seen():
        with one.client('/mcp/' + server) as client:
            client.connect()
            reply = client.call('env')
            try:
                return json.loads(reply.result['content'][0]['text']).get(name) == value
            except (KeyError, TypeError, ValueError, AssertionError):
                return False                                     # the server is being replaced
    wait_for(seen, f'{name} of {server} has the new value')


def files_with(folder, text):
    found = []
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            if os.path.isfile(path):
                with open(path, 'rb') as file:
                    if text.encode() in file.read():
                        found.append(path)
    return found


def database_has(env, text):
    if 'DATABASE_URL' not in env:
        return False
    dump = subprocess.run(['psql', env['DATABASE_URL'], '-Atc', 'SELECT name, encode(sealed, \'escape\') FROM mcp.secrets'], capture_output=True,
                          text=True, timeout=60, check=True)
    return text in dump.stdout


def status_of(one, server):
    done = run(one, 'servers', 'list', '--json')
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return next(row for row in rows if row['name'] == server)


@pytest.fixture
def server_set(holdfast, database, stdio_server):
    def make(start=True, **env):
        entry, record = stdio_server('rec', env=env)
        return holdfast({'rec': entry}, env=database, start=start), record
    return make


def test_a_secret_reaches_env_and_args_and_a_change_reaches_the_next_process(server_set):
    one, _ = server_set(start=False, TOKEN='${secret:TOKEN}', MIXED='a-${secret:TOKEN}-${secret:other.one}', PLAIN='plain')
    put(one, 'TOKEN', CANARY)                                    # before the first start
    put(one, 'other.one', 'second')
    one.start()
    env = env_of(one)
    assert env['TOKEN'] == CANARY and env['MIXED'] == f'a-{CANARY}-second' and env['PLAIN'] == 'plain'
    rows = listed(one)
    assert set(rows) == {'TOKEN', 'other.one'} and rows['TOKEN']['used_by'] == ['rec']
    assert set(rows['TOKEN']) == {'name', 'created_at', 'updated_at', 'used_by'}
    put(one, 'TOKEN', CANARY + '-new')
    env_is(one, 'TOKEN', CANARY + '-new')
    again = listed(one)['TOKEN']
    assert again['created_at'] == rows['TOKEN']['created_at'] and again['updated_at'] > rows['TOKEN']['updated_at']
    one.restart(kill=True)                                       # kill -9
    assert env_of(one)['TOKEN'] == CANARY + '-new'
    one.stop()
    assert files_with(one.data, CANARY) == [] and not database_has(one.env, CANARY)
    assert CANARY not in one.text()


def test_a_header_and_a_url_get_their_secret(holdfast, database, http_server):
    web = http_server('web')
    entry = web.entry(headers={'Authorization': 'Bearer ${secret:API}'})
    entry['url'] = entry['url'].replace('/mcp', '/${secret:PATH}')
    one = holdfast({'web': entry}, env=database, start=False)
    put(one, 'API', CANARY)
    put(one, 'PATH', 'mcp')
    one.start()
    with one.client('/mcp/web') as client:
        client.connect()
        assert client.call('echo', {'text': 'x'}).result
    assert any(f'Bearer {CANARY}' in json.dumps(head) for head in web.record.heads())


def test_a_missing_secret_stops_its_server_alone_until_it_is_set(holdfast, database, stdio_server):
    broken, record = stdio_server('broken', env={'TOKEN': '${secret:TOKEN}'})
    fine, kept = stdio_server('fine')
    one = holdfast({'broken': broken, 'fine': fine}, env=database)
    assert env_of(one, 'fine')
    wait_for(lambda: 'the secret TOKEN is not set' in json.dumps(status_of(one, 'broken')), 'the reason')
    why = json.dumps(status_of(one, 'broken'))
    assert re.search(r'holdfast\.json:\d+:\d+: server ', why) and 'holdfast secret set TOKEN' in why
    starts = len(kept.starts())
    put(one, 'TOKEN', CANARY)
    env_is(one, 'TOKEN', CANARY, 'broken')
    assert len(kept.starts()) == starts                          # the other server was not replaced
    done = run(one, 'secret', 'remove', 'TOKEN', '--json')
    assert done.returncode == 0 and json.loads(done.stdout) == {'name': 'TOKEN', 'removed': True}
    wait_for(lambda: 'the secret TOKEN is not set' in json.dumps(status_of(one, 'broken')), 'the reason again')
    done = run(one, 'secret', 'remove', 'TOKEN')
    assert done.returncode != 0 and 'there is no secret TOKEN' in done.stderr


def test_hangup_resolves_again(server_set):
    one, _ = server_set(TOKEN='${secret:A}')
    put(one, 'A', 'one')
    env_is(one, 'TOKEN', 'one')
    with open(one.config_file, encoding='utf-8') as file:
        config = file.read()
    with open(one.config_file, 'w', encoding='utf-8') as file:
        file.write(config.replace('${secret:A}', 'x${secret:A}'))
    one.process.send_signal(signal.SIGHUP)
    env_is(one, 'TOKEN', 'xone')


def test_the_limits_of_names_values_and_number(holdfast, database):
    one = holdfast(env=database)
    assert on_socket(one, 'PUT', '/api/v1/secrets/' + 'n' * 200, {'value': 'v'}).status == 204
    assert on_socket(one, 'PUT', '/api/v1/secrets/' + 'n' * 201, {'value': 'v'}).status == 400
    for name in ('a%20b', 'a%2Fb', 'a%24b'):
        assert on_socket(one, 'PUT', '/api/v1/secrets/' + name, {'value': 'v'}).status == 400, name
    assert on_socket(one, 'PUT', '/api/v1/secrets/big', {'value': 'v' * 65536}).status == 204
    assert on_socket(one, 'PUT', '/api/v1/secrets/big', {'value': 'v' * 65537}).status == 400
    assert on_socket(one, 'PUT', '/api/v1/secrets/big', {'value': 'ä' * 32769}).status == 400
    assert on_socket(one, 'PUT', '/api/v1/secrets/big', {'value': ''}).status == 400
    assert on_socket(one, 'PUT', '/api/v1/secrets/big', {'value': 'a\0b'}).status == 400
    assert on_socket(one, 'PUT', '/api/v1/secrets/big', {}).status == 400
    assert on_socket(one, 'DELETE', '/api/v1/secrets/none').status == 404
    for i in range(998):
        assert on_socket(one, 'PUT', f'/api/v1/secrets/s{i}', {'value': 'v'}).status == 204
    assert len(listed(one)) == 1000
    full = on_socket(one, 'PUT', '/api/v1/secrets/more', {'value': 'v'})
    assert full.status >= 400 and 'holdfast secret remove' in full.body.decode()
    assert on_socket(one, 'PUT', '/api/v1/secrets/s1', {'value': 'w'}).status == 204  # an existing one may change
    assert on_socket(one, 'DELETE', '/api/v1/secrets/s2').status == 204
    assert on_socket(one, 'PUT', '/api/v1/secrets/more', {'value': 'v'}).status == 204


def test_only_the_local_admin_reaches_secrets(holdfast):
    one = holdfast()
    made = run(one, 'key', 'create', '--role', 'admin', '--name', 'boss')
    head = {'Authorization': 'Bearer ' + made.stdout.strip(), 'Content-Type': 'application/json'}
    for method, path, body in (('GET', '', b''), ('PUT', '/A', b'{"value":"v"}'), ('DELETE', '/A', b'')):
        assert one.request(method, '/api/v1/secrets' + path, head, body).status == 403
        assert one.request(method, '/api/v1/secrets' + path, {'Content-Type': 'application/json'}, body).status in (401, 403)
    assert listed(one) == {}


def test_every_change_is_an_event_without_the_value(server_set):
    one, _ = server_set(TOKEN='${secret:TOKEN}')
    put(one, 'TOKEN', CANARY)
    run(one, 'secret', 'remove', 'TOKEN')
    one.stop()
    put(one, 'TOKEN', CANARY)                                    # without a daemon
    one.start()
    shown = on_socket(one, 'GET', '/api/v1/audit/events?limit=100')
    events = [(e['method'], e['owner']) for e in shown.json()['events'] if str(e.get('method')).startswith('secret/')]
    assert sorted(events) == [('secret/remove', 'secret:TOKEN'), ('secret/set', 'secret:TOKEN'), ('secret/set', 'secret:TOKEN')]
    assert CANARY not in shown.body.decode()
    assert run(one, 'audit', 'verify').returncode == 0


def test_the_value_is_redacted_in_the_audit_and_in_the_log(server_set):
    one, _ = server_set(TOKEN='${secret:TOKEN}')
    put(one, 'TOKEN', CANARY)
    env_is(one, 'TOKEN', CANARY)
    with one.client('/mcp/rec') as client:
        client.connect()
        client.call('echo', {'text': CANARY})
    done = run(one, 'audit', 'list', '--json')
    assert done.returncode == 0 and CANARY not in done.stdout
    one.stop()
    assert files_with(one.data, CANARY) == [] and CANARY not in one.text()


def test_config_check_and_show_need_no_store_and_print_names_alone(server_set):
    one, _ = server_set(start=False, TOKEN='${secret:TOKEN}', OTHER='x${input:asked}')
    put(one, 'TOKEN', CANARY)
    for verb in ('check', 'show'):
        done = subprocess.run([BINARY, 'config', verb, '--config', one.config_file], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 and CANARY not in done.stdout + done.stderr, done.stderr
    assert '"TOKEN": "${secret:TOKEN}"' in done.stdout and '"OTHER": "x${input:asked}"' in done.stdout


@pytest.mark.parametrize('reseal', [False, True])
def test_rotation_of_the_master_key_keeps_secrets(server_set, reseal):
    one, _ = server_set(start=False, TOKEN='${secret:TOKEN}')
    put(one, 'TOKEN', CANARY)
    done = run(one, 'key', 'rotate-master', '--json', *(['--reseal'] if reseal else []))
    assert done.returncode == 0 and json.loads(done.stdout)['secrets_sealed'] == int(reseal), done.stderr
    one.start()
    assert env_of(one)['TOKEN'] == CANARY


def test_the_command_reads_files_and_standard_input_and_never_argv(holdfast, tmp_path):
    one = holdfast(start=False)
    path = tmp_path / 'value'
    path.write_text('from-file\r\n', encoding='utf-8')
    done = run(one, 'secret', 'set', 'A', '--value-file', str(path), '--json')
    assert done.returncode == 0 and json.loads(done.stdout) == {'name': 'A', 'set': True}
    assert run(one, 'secret', 'set', 'A', CANARY).returncode == 2
    assert run(one, 'secret', 'set', 'A', '--value-file', '-', value='').returncode != 0
    assert run(one, 'secret', 'set', 'A', '--value-file', '-', value='x' * 65536 + '\n').returncode == 0
    assert run(one, 'secret', 'set', 'A', '--value-file', '-', value='x' * 65537).returncode != 0
    assert run(one, 'secret', 'set', 'A', '--value-file', str(tmp_path / 'none')).returncode != 0
    wrong = run(one, 'secret', 'lst')
    assert wrong.returncode == 2 and 'list' in wrong.stderr
    table = run(one, 'secret', 'list')
    assert table.stdout.splitlines()[0].split() == ['NAME', 'LAST', 'SET', 'USED', 'BY'] and table.stdout.splitlines()[1].startswith('A ')


def terminal(command, env, answers):
    """Runs a command on a terminal of its own; answers: (text to wait for, what to type).  Returns (pid, fd, output)."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(command[0], command, env)
    shown = b''
    for wanted, typed in answers:
        end = time.monotonic() + 60
        while wanted.encode() not in shown:
            assert time.monotonic() < end, shown
            shown += os.read(fd, 4096)
        os.write(fd, typed.encode() + b'\n')
    return pid, fd, shown


def rest_of(fd, shown):
    try:
        while True:
            more = os.read(fd, 4096)
            if not more:
                break
            shown += more
    except OSError:
        pass
    return shown.decode()


def test_the_terminal_is_asked_without_echo(holdfast):
    one = holdfast(start=False)
    pid, fd, shown = terminal([BINARY, 'secret', 'set', 'TOKEN', '--data', one.data], dict(os.environ), [('not shown: ', CANARY)])
    text = rest_of(fd, shown)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, text
    assert CANARY not in text and 'TOKEN' in listed(one)


def test_a_long_secret_is_taken_whole_from_the_terminal(holdfast, http_server):
    """A line of the terminal in its usual mode ends at 4,095 bytes."""
    one = holdfast(start=False)
    value = CANARY + 'x' * 20000
    command = [BINARY, 'secret', 'set', 'TOKEN', '--data', one.data]
    pid, fd, shown = terminal(command, dict(os.environ), [('not shown: ', '')])
    text = rest_of(fd, shown)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0 and 'is empty' in text
    pid, fd, shown = terminal(command, dict(os.environ), [('not shown: ', 'x' * 65537)])
    text = rest_of(fd, shown)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0 and '65536 bytes' in text
    pid, fd, shown = terminal(command, dict(os.environ), [('not shown: ', 'typo\x15' + value + 'é\x7f')])
    text = rest_of(fd, shown)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, text
    assert CANARY not in text
    web = http_server('web')
    one.write_config({'mcpServers': {'web': web.entry(headers={'X-Long': '${secret:TOKEN}'})}})
    one.start()
    with one.client('/mcp/web') as client:
        client.connect()
        assert client.call('echo', {'text': 'x'}).result
    assert any(f'"{value}"' in json.dumps(head) for head in web.record.heads())


@pytest.mark.parametrize('end', [signal.SIGINT, signal.SIGTERM, signal.SIGTSTP])
def test_a_signal_at_the_prompt_leaves_a_terminal_with_echo(holdfast, end):
    one = holdfast(start=False)

    def echoes():
        return bool(termios.tcgetattr(fd)[3] & termios.ECHO and termios.tcgetattr(fd)[3] & termios.ICANON)
    pid, fd, shown = terminal([BINARY, 'secret', 'set', 'TOKEN', '--data', one.data], dict(os.environ), [])
    while b'not shown: ' not in shown:
        shown += os.read(fd, 4096)
    assert not echoes()
    if end == signal.SIGINT:
        os.write(fd, b'abc\x03')
    else:
        os.kill(pid, end)
    if end != signal.SIGTSTP:
        assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == end and echoes()
        os.close(fd)
        return
    shown = b''                                                  # nobody could wake the leader of a session, so it is not stopped
    while b'not shown: ' not in shown:
        shown += os.read(fd, 4096)
    os.write(fd, CANARY.encode() + b'\n')
    text = rest_of(fd, shown)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, text
    assert CANARY not in text and 'TOKEN' in listed(one)


def test_up_asks_once_for_inputs_on_a_terminal(holdfast, stdio_server):
    entry, record = stdio_server('rec', env={'TOKEN': '${input:asked}'})
    one = holdfast({'rec': entry}, start=False)
    with open(one.config_file, encoding='utf-8') as file:
        config = json.load(file)
    config['inputs'] = [{'id': 'asked', 'description': 'a token of \x1b[31mGitHub'}]
    with open(one.config_file, 'w', encoding='utf-8') as file:
        json.dump(config, file)
    command = [BINARY, 'up', '--config', one.config_file, '--data', one.data, '--listen', '127.0.0.1:0']
    pid, fd, shown = terminal(command, dict(os.environ), [('not shown: ', CANARY)])
    wait_for(lambda: record.starts(), 'the server was started')
    os.kill(pid, signal.SIGTERM)
    text = rest_of(fd, shown)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, text
    assert CANARY not in text and 'a token of ' in text and '\x1b[31m' not in text
    assert 'asked' in listed(one)
    one.start()                                                  # nothing asks again, and nothing asks without a terminal
    assert env_of(one)['TOKEN'] == CANARY


def test_another_node_uses_a_changed_secret(holdfast, cluster, stdio_server):
    url = cluster.database()
    entry, _ = stdio_server('rec', env={'TOKEN': '${secret:TOKEN}'})
    first = holdfast({'rec': entry}, env={'DATABASE_URL': url})
    files = {f'HOLDFAST_{name.upper()}_KEY_FILE': os.path.join(first.data, name + '.key') for name in ('master', 'token', 'audit')}
    second = holdfast({'rec': entry}, env={'DATABASE_URL': url, **files})
    put(first, 'TOKEN', CANARY)
    env_is(second, 'TOKEN', CANARY)
    env_is(first, 'TOKEN', CANARY)
