# SPDX-License-Identifier: Apache-2.0
"""holdfast add and remove: a server is tried, written to the file that Holdfast reads, and taken out again."""
import fcntl
import json
import os
import signal
import subprocess
import tempfile

import pytest
from harness import BINARY, DEADLINE_S, wait_for

COMMENTED = '''{
  // our servers
  "mcpServers": {
    "first": { "command": "/bin/cat" }, // keep me
  },
}
'''


class Shell:
    """Commands in a home of their own."""

    def __init__(self, folder):
        self.home = str(folder / 'home')
        os.mkdir(self.home)
        self.file = os.path.join(self.home, '.config/holdfast/holdfast.json')
        self.env = {**os.environ, 'HOME': self.home}
        for name in ('HOLDFAST_CONFIG', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME'):
            self.env.pop(name, None)

    def run(self, *words, stdin=''):
        return subprocess.run([BINARY, *words], cwd=self.home, env=self.env, capture_output=True, text=True, check=False,
                              input=stdin, timeout=DEADLINE_S * 3)

    def files_with(self, word, folder=None):
        """Paths of all files that hold the word in clear."""
        found = []
        for where, _, names in os.walk(folder or self.home):
            for path in (os.path.join(where, n) for n in names):
                if not os.path.isfile(path):
                    continue
                with open(path, 'rb') as file:
                    if word.encode() in file.read():
                        found.append(path)
        return found

    def text(self):
        with open(self.file, encoding='utf-8') as file:
            return file.read()

    def write(self, text):
        os.makedirs(os.path.dirname(self.file), exist_ok=True)
        with open(self.file, 'w', encoding='utf-8') as file:
            file.write(text)


@pytest.fixture
def shell(tmp_path):
    return Shell(tmp_path)


def command_of(entry):
    return [entry['command'], *entry.get('args', [])]


def test_add__connects_says_what_it_found_and_writes_a_file_that_up_reads(shell, stdio_server):
    entry, _ = stdio_server('rec')
    done = shell.run('add', 'rec', '--', *command_of(entry))
    assert done.returncode == 0, done.stderr
    assert '✔ rec' in done.stdout and 'speaks 20' in done.stdout and 'connected in' in done.stdout
    written = json.loads(shell.text())['mcpServers']['rec']
    assert os.path.isabs(written['command']) and written['env']['PATH'] == shell.env['PATH']
    assert shell.run('config', 'check').returncode == 0


def test_add__tells_the_numbers_as_json(shell, stdio_server):
    entry, _ = stdio_server('rec')
    done = shell.run('add', 'rec', '--json', '--', *command_of(entry))
    told = json.loads(done.stdout)
    assert told['server'] == 'rec' and told['tools'] > 0 and told['protocol_version'] and told['file'] == shell.file


def test_add__of_a_url_connects_too(shell, http_server):
    server = http_server('web')
    done = shell.run('add', 'web', server.entry()['url'])
    assert done.returncode == 0, done.stderr
    assert json.loads(shell.text())['mcpServers']['web'] == {'url': server.entry()['url']}


def test_add__of_a_server_that_does_not_start_changes_nothing_and_quotes_it(shell):
    done = shell.run('add', 'bad', '--', 'sh', '-c', 'echo no licence found >&2; exit 3')
    assert done.returncode == 4
    assert 'no licence found' in done.stderr and '--no-check' in done.stderr
    assert not os.path.exists(shell.file)
    assert shell.run('add', 'bad', '--no-check', '--', 'sh', '-c', 'exit 3').returncode == 0
    assert 'bad' in json.loads(shell.text())['mcpServers']


def test_add__keeps_comments_and_remove_restores_the_bytes(shell, stdio_server):
    entry, _ = stdio_server('rec')
    shell.write(COMMENTED)
    assert shell.run('add', 'rec', '--', *command_of(entry)).returncode == 0
    assert '// our servers' in shell.text() and '// keep me' in shell.text() and '"rec"' in shell.text()
    assert shell.run('remove', 'rec').returncode == 0
    assert shell.text() == COMMENTED


def test_add__does_not_replace_a_server_unless_asked(shell):
    shell.write(COMMENTED)
    done = shell.run('add', 'first', '--no-check', '--', '/bin/true')
    assert done.returncode == 6 and '--replace' in done.stderr
    assert shell.text() == COMMENTED
    assert shell.run('add', 'first', '--no-check', '--replace', '--', '/bin/true').returncode == 0
    assert '/bin/true' in shell.text() and '// our servers' in shell.text()


@pytest.mark.parametrize('words', [
    ('-e', 'GH_TOKEN=canary-7711', '--', '/bin/true'),
    ('--', '/bin/true', '--api-key', 'canary-7711'),
    ('-H', 'Authorization: Bearer canary-7711', 'http://127.0.0.1:1/mcp'),
    ('http://127.0.0.1:1/mcp?api_key=canary-7711',),
    ('--', '/bin/true', 'mcp-remote', 'https://h.example/', '--header', 'Authorization: Basic canary-7711=='),
    ('--', '/bin/true', '--header', 'X-Api-Key: canary-7711'),
])
def test_add__does_not_write_a_secret_in_clear_unless_asked(shell, words):
    done = shell.run('add', 'x', '--no-check', *words)
    assert done.returncode == 0 and 'sealed in the store: x.' in done.stdout, done.stderr
    assert '${secret:x.' in shell.text()
    assert 'canary-7711' not in done.stdout + done.stderr
    assert shell.files_with('canary-7711') == []
    assert shell.run('add', 'x', '--no-check', '--plain', '--replace', *words).returncode == 0
    assert shell.files_with('canary-7711') == [shell.file]


def test_add__gives_the_server_its_secret_in_the_trial_and_later(holdfast, stdio_server, shell):
    """The trial and the daemon resolve it; the file has only its name; remove takes it out of the store."""
    entry, _ = stdio_server('rec')
    hf = holdfast({}, {})
    where = ('--config', hf.config_file, '--data', hf.data)
    done = shell.run('add', 'rec', '--json', '-e', 'GH_TOKEN=canary-8822', *where, '--', *command_of(entry))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)['secrets'] == ['rec.GH_TOKEN'] and json.loads(done.stdout)['tools'] > 0
    wait_for(lambda: hf.client('/mcp/rec').rpc('tools/list').status == 200, 'the new server to be served')
    with hf.client('/mcp/rec').connect() as client:
        assert json.loads(client.call('env').text)['GH_TOKEN'] == 'canary-8822'
    assert shell.files_with('canary-8822') == [] and shell.files_with('canary-8822', hf.folder) == []
    assert 'rec.GH_TOKEN' in shell.run('secret', 'list', '--data', hf.data).stdout
    assert 'its secrets' in shell.run('remove', 'rec', *where).stderr
    assert 'rec.GH_TOKEN' not in shell.run('secret', 'list', '--data', hf.data).stdout


SNIPPETS = {
    'mcpServers': '{"mcpServers": {"one": {"command": "/bin/true", "env": {"API_KEY": "canary-9"}}, "two": {"url": "http://127.0.0.1:1/mcp"}}}',
    'servers': '{"servers": {"one": {"type": "stdio", "command": "/bin/true"}, "two": {"type": "http", "url": "http://127.0.0.1:1/mcp"}}}',
    'members': '"one": {"command": "/bin/true"}, "two": {"url": "http://127.0.0.1:1/mcp"}',
    'toml': '[mcp_servers.one]\ncommand = "/bin/true"\nargs = ["a"]\n\n[mcp_servers.two]\nurl = "http://127.0.0.1:1/mcp"\n',
}


@pytest.mark.parametrize('kind', SNIPPETS)
def test_add__takes_what_people_paste(shell, kind):
    done = shell.run('add', '--no-check', stdin=SNIPPETS[kind])
    assert done.returncode == 0 and '✔ one' in done.stdout and '✔ two' in done.stdout, done.stderr
    written = json.loads(shell.text())['mcpServers']
    assert written['one']['command'] == '/bin/true' and written['two']['url'] == 'http://127.0.0.1:1/mcp'
    assert shell.files_with('canary-9') == []


def test_add__of_a_snippet_writes_no_control_character(shell):
    done = shell.run('add', '--no-check', stdin=json.dumps({'mcpServers': {'a\x1b]0;pwned\x07': {'command': '/bin/true', 'k\x9b2J': 1}}}))
    assert done.returncode == 0 and 'pwned' in done.stdout, done.stderr
    assert not {c for c in done.stdout + done.stderr if (ord(c) < 32 and c != '\n') or 0x7f <= ord(c) < 0xa0}


def test_add__of_one_pasted_entry_takes_a_name(shell):
    done = shell.run('add', '--no-check', stdin='{"command": "/bin/true"}')
    assert done.returncode == 2 and 'holdfast add NAME' in done.stderr
    assert shell.run('add', 'mine', '--no-check', stdin='{"command": "/bin/true"}').returncode == 0
    assert 'mine' in json.loads(shell.text())['mcpServers']
    done = shell.run('add', 'both', '--no-check', stdin=SNIPPETS['members'])
    assert done.returncode == 2 and 'without a name' in done.stderr


def test_add__of_several_adds_those_that_start(shell, stdio_server):
    entry, _ = stdio_server('rec')
    done = shell.run('add', stdin=json.dumps({'mcpServers': {'bad': {'command': '/bin/false'}, 'good': entry}}))
    assert done.returncode == 4 and 'bad was not added' in done.stderr and '✔ good' in done.stdout, done.stderr
    assert list(json.loads(shell.text())['mcpServers']) == ['good']


def test_add__of_a_server_with_an_unset_input_says_what_to_run(shell):
    done = shell.run('add', stdin='{"servers": {"gh": {"command": "/bin/true", "env": {"T": "${input:gh-token}"}}}}')
    assert done.returncode == 0 and '`holdfast secret set gh-token`' in done.stdout, done.stderr


@pytest.mark.parametrize('ends', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_add__that_is_ended_during_the_trial_leaves_nothing(shell, tmp_path, ends):
    started = tmp_path / 'started'
    server = ['/bin/sh', '-c', f'echo $$ > {started}.new; mv {started}.new {started}; exec sleep 600']
    with tempfile.TemporaryDirectory(prefix='hf') as folder:
        with subprocess.Popen([BINARY, 'add', 'slow', '--', *server], cwd=shell.home, env=shell.env | {'TMPDIR': folder},
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as adding:
            wait_for(started.exists, 'the server to start')
            assert os.listdir(folder)
            adding.send_signal(ends)
            adding.communicate(timeout=DEADLINE_S * 2)
        assert not os.listdir(folder)
    assert adding.returncode == (1 if ends == signal.SIGINT else -ends)
    assert not os.path.exists(shell.file) and not os.path.exists(f'/proc/{started.read_text().strip()}')


def test_add__with_a_temporary_directory_too_long_for_a_socket(shell, stdio_server, tmp_path):
    entry, _ = stdio_server()
    folder = tmp_path / ('t' * 100)
    folder.mkdir()
    shell.env['TMPDIR'] = str(folder)
    done = shell.run('add', 'rec', '--', entry['command'], *entry['args'])
    assert done.returncode == 0 and not os.listdir(folder), done.stderr


@pytest.mark.parametrize('text', ['{"mcpServers": {', '{"other": 1}', 'x = [', '{}'])
def test_add__of_a_broken_snippet_changes_nothing(shell, text):
    done = shell.run('add', stdin=text)
    assert done.returncode not in (0, 99) and 'standard input' in done.stderr
    assert not os.path.exists(shell.file)


@pytest.mark.parametrize('words, says', [
    ((), 'a name, and a URL or a command'),
    (('x', 'npx'), 'behind --'),
    (('x', 'http://a.example/', 'more'), 'one URL'),
    (('x', '-e', 'A', '--', '/bin/true'), 'NAME=VALUE'),
    (('x', '-H', 'A: b', '--', '/bin/true'), '-H is for URLs'),
    (('x', '-t', 'carrier', 'http://a.example/'), 'http or sse'),
])
def test_add__refuses_a_wrong_command_line_with_a_way_out(shell, words, says):
    done = shell.run('add', *words)
    assert done.returncode == 2 and says in done.stderr
    assert not os.path.exists(shell.file)


def test_add__refuses_a_name_that_no_server_may_have(shell):
    done = shell.run('add', 'a__b', '--no-check', '--', '/bin/true')
    assert done.returncode == 7 and 'a__b' in done.stderr
    assert not os.path.exists(shell.file)


def test_add__to_a_file_with_a_mistake_names_the_place_and_writes_nothing(shell):
    shell.write('{ "mcpServers": { "x": { "comand": "y" } } }')
    done = shell.run('add', 'z', '--no-check', '--', '/bin/true')
    assert done.returncode == 7 and ':1:26:' in done.stderr.replace(' ', '')
    assert shell.text() == '{ "mcpServers": { "x": { "comand": "y" } } }'


def test_add__and_remove_keep_a_byte_order_mark(shell):
    shell.write('\ufeff' + COMMENTED)
    done = shell.run('add', 'first', '--no-check', '--', '/bin/true')
    assert done.returncode == 6 and '--replace' in done.stderr
    assert shell.run('add', 'second', '--no-check', '--', '/bin/true').returncode == 0
    assert shell.run('remove', 'second').returncode == 0
    assert shell.text() == '\ufeff' + COMMENTED
    assert shell.run('remove', 'first').returncode == 0


def test_add__and_remove_edit_a_file_that_says_servers(shell):
    text = '{\n  "servers": {\n    "first": { "type": "stdio", "command": "/bin/cat" }\n  }\n}\n'
    shell.write(text)
    assert shell.run('add', 'first', '--no-check', '--', '/bin/true').returncode == 6
    done = shell.run('add', 'second', '--no-check', '--', '/bin/true')
    assert done.returncode == 0, done.stderr
    assert list(json.loads(shell.text())) == ['servers'] and 'second' in json.loads(shell.text())['servers']
    assert shell.run('remove', 'second').returncode == 0
    assert shell.text() == text


SERVICE = '''{
  "mcpServers": {
    "first": { "command": "/bin/cat", "env": { "KEY": "${credential:key}", "URL": "${NOT_SET_HERE}" }, "envFile": "/nonexistent" },
  },
  "holdfast": { "listen": "127.0.0.1:${NOT_SET_HERE}" },
}
'''


def test_add__and_remove_edit_a_file_for_another_environment(shell):
    """The service has credentials and variables that the shell of an administrator has not."""
    shell.write(SERVICE)
    done = shell.run('add', 'second', '--no-check', '-e', 'T=${NOT_SET_HERE}', '-e', 'API_KEY=canary-31', '--', '/bin/true')
    assert done.returncode == 0, done.stderr
    assert '"T": "${NOT_SET_HERE}"' in shell.text() and shell.files_with('canary-31') == []
    done = shell.run('remove', 'second')
    assert done.returncode == 0 and 'its secrets' in done.stderr, done.stderr
    assert shell.text() == SERVICE
    done = shell.run('add', 'second', '-e', 'T=${NOT_SET_HERE}', '--', '/bin/cat')
    assert done.returncode == 7 and 'NOT_SET_HERE is not set' in done.stderr and '--no-check' in done.stderr
    assert shell.text() == SERVICE


def test_add__of_many_at_once_loses_none(shell):
    names = [f's{i}' for i in range(12)]
    shell.write(COMMENTED)
    started = [subprocess.Popen([BINARY, 'add', name, '--no-check', '--', '/bin/true'], cwd=shell.home, env=shell.env,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for name in names]
    for one in started:
        assert (one.wait(DEADLINE_S), one.stderr.read()) == (0, '')
        one.stderr.close()
    assert all(f'"{name}"' in shell.text() for name in names) and '// keep me' in shell.text()
    assert os.listdir(os.path.dirname(shell.file)) == ['holdfast.json']


def test_add__of_one_name_twice_at_once_adds_it_once(shell):
    started = [subprocess.Popen([BINARY, 'add', 'x', '--no-check', '--', '/bin/true', str(i)], cwd=shell.home, env=shell.env,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for i in range(6)]
    codes = [one.wait(DEADLINE_S) for one in started]
    assert sorted(codes) == [0, 6, 6, 6, 6, 6]
    assert json.loads(shell.text())['mcpServers']['x']['args'] == [str(codes.index(0))]


def test_add__makes_a_running_holdfast_read_the_file_again(holdfast, stdio_server, shell):
    entry, _ = stdio_server('rec')
    hf = holdfast({}, {})
    where = ('--config', hf.config_file, '--data', hf.data)
    done = shell.run('add', 'rec', *where, '--', *command_of(entry))
    assert done.returncode == 0 and 'reads the file again' in done.stdout, done.stderr
    wait_for(lambda: hf.client('/mcp/rec').rpc('tools/list').status == 200, 'the new server to be served')
    assert shell.run('remove', 'rec', *where).returncode == 0
    wait_for(lambda: hf.client('/mcp/rec').rpc('tools/list').status == 404, 'the server to be gone')


def test_remove__says_what_it_did_when_the_secrets_stay(shell):
    shell.write('{"mcpServers": {"x": {"command": "/bin/cat", "env": {"T": "${secret:x.T}"}}}}')
    shell.env['DATABASE_URL'] = 'postgres://127.0.0.1:1/none'
    done = shell.run('remove', 'x')
    assert done.returncode not in (0, 1) and 'removed x from ' in done.stderr and '`holdfast secret remove`' in done.stderr, done.stderr
    assert 'its secrets from the store' not in done.stderr and json.loads(shell.text()) == {'mcpServers': {}}


def test_remove__of_an_unknown_server_names_the_nearest(shell):
    shell.write(COMMENTED)
    done = shell.run('remove', 'frist')
    assert done.returncode == 1 and 'did you mean "first"' in done.stderr
    assert shell.text() == COMMENTED


def lock_of(data):
    path = os.path.join(data, 'lock')
    return os.path.exists(path) and os.path.getsize(path) > 0


def test_add__while_holdfast_starts_neither_ends_it_nor_is_missed(shell, tmp_path):
    """The lock names the process long before it answers; the file was read before that."""
    data = str(tmp_path / 'data')
    shell.write('{"mcpServers": {"first": {"command": "/bin/cat"}}}')
    up = subprocess.Popen([BINARY, 'up', '--data', data, '--listen', '127.0.0.1:0'], cwd=shell.home, env=shell.env,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: lock_of(data) or up.poll() is not None, 'the lock of the data directory')
        done = shell.run('add', 'second', '--no-check', '--data', data, '--', '/bin/cat')
        assert done.returncode == 0 and 'reads the file again' in done.stdout, done.stderr

        def names():
            return {row['name'] for row in map(json.loads, shell.run('servers', 'list', '--json', '--data', data).stdout.splitlines())}
        wait_for(lambda: 'second' in names(), 'the new server to be known')
        assert up.poll() is None
    finally:
        up.terminate()
        assert up.wait(DEADLINE_S) == 0, up.stderr.read()
        up.stderr.close()


def test_add__never_signals_a_process_that_is_no_holdfast(shell, tmp_path):
    """A command that works without a daemon holds the lock too, and SIGHUP would end it."""
    data = str(tmp_path / 'data')
    os.mkdir(data, 0o700)
    with open(os.path.join(data, 'lock'), 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with subprocess.Popen(['/bin/cat'], stdin=subprocess.PIPE) as holder:
            lock.write(f'{holder.pid}\n')
            lock.flush()
            done = shell.run('add', 'x', '--no-check', '--data', data, '--', '/bin/cat')
            assert done.returncode == 0 and f'the process {holder.pid} uses {data} and does not answer' in done.stdout, done.stdout
            holder.stdin.close()
            assert holder.wait(DEADLINE_S) == 0                  # not -SIGHUP
