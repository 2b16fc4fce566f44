# SPDX-License-Identifier: Apache-2.0
"""connect and disconnect on files shaped like those of real clients: the entry is written, every
other byte stays, disconnect restores the bytes, and a broken file is never written."""
import json
import os
import subprocess

import pytest

import harness

BIN = os.path.realpath(harness.BINARY)

CORPUS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'corpus', 'clients')
FILES = {
    'claude-code': '.claude.json',
    'claude-desktop': '.config/Claude/claude_desktop_config.json',
    'cursor': '.cursor/mcp.json',
    'vscode': '.config/Code/User/mcp.json',
    'codex': '.codex/config.toml',
    'gemini': '.gemini/settings.json',
}


class Home:
    """A scratch HOME; the programs of clients are not on its PATH."""

    def __init__(self, path):
        self.path = path
        self.bin = path / 'bin'
        self.bin.mkdir(parents=True)
        self.env = {'HOME': str(path), 'PATH': str(self.bin), 'NO_COLOR': '1'}

    def file(self, client):
        return self.path / FILES[client]

    def put(self, client, data):
        self.file(client).parent.mkdir(parents=True, exist_ok=True)
        self.file(client).write_bytes(data)

    def run(self, *args, status=0):
        done = subprocess.run([BIN, *args], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                              cwd=self.path)
        assert done.returncode == status, (args, done.returncode, done.stdout, done.stderr)
        return done

    def rows(self, *args, status=0):
        return [json.loads(line) for line in self.run(*args, '--json', status=status).stdout.splitlines() if line]

    def servers(self):
        return json.loads((self.path / '.config/holdfast/holdfast.json').read_text())['mcpServers']


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / 'home')


def corpus():
    return sorted(os.listdir(CORPUS))


def test_the_corpus_has_forty_files_of_all_clients():
    names = corpus()
    assert len(names) >= 40
    assert {n.split('.')[0] for n in names} == set(FILES)


@pytest.mark.parametrize('name', [n for n in corpus() if '.broken.' not in n])
def test_connect_then_disconnect_restores_the_bytes(home, name):
    client = name.split('.')[0]
    with open(os.path.join(CORPUS, name), 'rb') as f:
        before = f.read()
    home.put(client, before)
    home.file(client).chmod(0o640)
    first = json.loads(home.run('connect', client, '--yes', '--json').stdout)
    assert first == {'client': client, 'file': str(home.file(client)), 'name': 'holdfast', 'state': 'connected', 'changed': True,
                     'check': 'unchecked'}
    after = home.file(client).read_bytes()
    assert after != before and BIN.encode() in after
    assert home.file(client).stat().st_mode & 0o7777 == 0o640
    again = json.loads(home.run('connect', client, '--yes', '--json').stdout)
    assert again['state'] == 'connected' and not again['changed']
    done = json.loads(home.run('disconnect', client, '--yes', '--json').stdout)
    assert done['state'] == 'disconnected'
    assert home.file(client).read_bytes() == before
    assert json.loads(home.run('disconnect', client, '--yes', '--json').stdout)['state'] == 'not connected'


@pytest.mark.parametrize('name', [n for n in corpus() if '.broken.' in n])
def test_a_broken_file_is_never_written(home, name):
    client = name.split('.')[0]
    with open(os.path.join(CORPUS, name), 'rb') as f:
        before = f.read()
    home.put(client, before)
    for command in ('connect', 'disconnect'):
        done = subprocess.run([BIN, command, client, '--yes'], env=home.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, cwd=home.path)
        assert done.returncode != 0
        assert 'line ' in done.stderr and 'column ' in done.stderr and str(home.file(client)) in done.stderr
        assert home.file(client).read_bytes() == before
    assert not (home.path / '.local').exists()


JSON = """{
  "unknown": {"keep": [1, 2.50, "\\u00e9"]},
  "%s": {
    "other": {
      "command": "/bin/cat",
      "args": ["x"]
    }
  },
  "last": null
}
"""
TOML = """model = "a"

[mcp_servers.other]
command = "/bin/cat"
args = ["x"]

[unknown]
keep = [1, 2.50]
"""
# Every shape of file with every client, from one that has another server.
SHAPES = {
    'plain': lambda text, is_toml: text,
    'comments': lambda text, is_toml: (text.replace('\nargs', ' # why\nargs').replace('[unknown]', '# end\n[unknown]') if is_toml else
                                       text.replace('"args"', '// why\n      "args"').replace('    }\n  },', '    } /* end */\n  },')),
    'byte-order-mark': lambda text, is_toml: '\ufeff' + text,
    'crlf': lambda text, is_toml: text.replace('\n', '\r\n'),
    'trailing-commas': lambda text, is_toml: (text.replace('["x"]', '["x",]') if is_toml else
                                              text.replace('["x"]', '["x",],').replace('    }\n  },', '    },\n  },')),
    'tabs': lambda text, is_toml: text.replace('  ', '\t'),
}


def shaped(client, shape):
    key = {'vscode': 'servers'}.get(client, 'mcpServers')
    return SHAPES[shape](TOML if client == 'codex' else JSON % key, client == 'codex').encode()


@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('client', FILES)
def test_connect_and_disconnect_change_nothing_but_the_entry(home, client, shape):
    before = shaped(client, shape)
    home.put(client, before)
    home.run('connect', client, '--yes')
    after = home.file(client).read_bytes()
    assert BIN.encode() in after and has_all_but_commas(after, before)
    # The file has changed since, so the copy of before is of no use: the entry itself is taken out.
    home.put(client, after + b'\n')
    home.run('disconnect', client, '--yes')
    assert home.file(client).read_bytes().rstrip() == before.rstrip()


def has_all_but_commas(text, lines):
    """Whether all lines are there, in their order; a comma may have come to a line."""
    at, text = 0, text.replace(b',', b'')
    for line in lines.replace(b',', b'').splitlines():
        at = text.find(line, at)
        if at < 0:
            return False
    return True


def cuts(client):
    """Files that end in the middle of something, as after a full disk."""
    text = shaped(client, 'plain')
    if client == 'codex':
        return [text[:text.index(word) + len(word)] for word in (b'model = "', b'[mcp_servers', b'args = [', b'command =')]
    return [text[:n] for n in range(1, len(text.rstrip()), 17)]


@pytest.mark.parametrize('client', FILES)
def test_a_file_that_ends_early_is_never_written(home, client):
    for before in cuts(client):
        home.put(client, before)
        for command in ('connect', 'disconnect'):
            done = subprocess.run([BIN, command, client, '--yes'], env=home.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=60, cwd=home.path, check=False)
            assert done.returncode != 0 and 'line ' in done.stderr and home.file(client).read_bytes() == before, (before, done.stderr)
    assert not (home.path / '.local').exists()


@pytest.mark.parametrize('client', FILES)
def test_a_missing_file_is_made_and_removed_again(home, client):
    home.run('connect', client, '--yes')
    assert home.file(client).stat().st_mode & 0o7777 == 0o600
    home.run('disconnect', client, '--yes')
    assert not home.file(client).exists()


@pytest.mark.parametrize('client', FILES)
def test_a_file_that_changed_since_loses_only_our_entry(home, client):
    if client == 'codex':
        before, extra = b'model = "a"\n', b'\n[tui]\nx = 1\n'
    else:
        before, extra = b'{\n  "a": 1\n}\n', b'\n'
    home.put(client, before)
    home.run('connect', client, '--yes')
    with open(home.file(client), 'ab') as f:
        f.write(extra)
    home.run('disconnect', client, '--yes')
    text = home.file(client).read_bytes()
    assert b'holdfast' not in text and before[:5] in text and text.endswith(extra)


def test_a_table_that_codex_wrote_anew_is_taken_out(home):
    home.put('codex', b'model = "a"\n')
    home.run('connect', 'codex', '--yes')
    home.put('codex', b'model = "b"\n\n[mcp_servers.holdfast]\ncommand = "x"\n\n[mcp_servers.holdfast.env]\nA = "1"\n\n'
                      b'[mcp_servers.holdfast2]\ncommand = "y"\n')
    home.run('disconnect', 'codex', '--yes')
    assert home.file('codex').read_bytes() == b'model = "b"\n\n[mcp_servers.holdfast2]\ncommand = "y"\n'


def test_a_configuration_of_the_directory_is_named_because_the_client_starts_elsewhere(home):
    (home.path / 'holdfast.json').write_text('{}')
    home.run('connect', 'cursor', '--yes')
    entry = json.loads(home.file('cursor').read_text())['mcpServers']['holdfast']
    assert entry['args'] == ['stdio', '--config', str(home.path / 'holdfast.json')]


def test_what_the_user_wrote_behind_our_table_stays(home):
    home.put('codex', b'model = "a"\n')
    home.run('connect', 'codex', '--yes')
    theirs = b'# my comment\n\n  [mcp_servers.other]\n  command = "y"\n\n# of the profile\n[profiles.x]\nmodel = "b"\n'
    with open(home.file('codex'), 'ab') as f:
        f.write(theirs)
    home.run('disconnect', 'codex', '--yes')
    assert home.file('codex').read_bytes() == b'model = "a"\n\n' + theirs


TABLES = {
    'spaced header': (b'[ "mcp_servers" . holdfast ] # ours\ncommand = "x"\nargs = [\n  "stdio",\n]\n[a]\nb = 1\n', b'[a]\nb = 1\n'),
    'line ends of windows': (b'a = 1\r\n\r\n[mcp_servers.holdfast]\r\ncommand = "x"\r\n', b'a = 1\r\n'),
    'header in a text': (b'a = """\n[mcp_servers.holdfast]\nx"""\n[mcp_servers.holdfast]\ncommand = "x"\n', None),
    'inline': (b'mcp_servers = { holdfast = { command = "x" }, b = { command = "y" } }\n', None),
    'dotted': (b'[mcp_servers]\nholdfast.command = "x"\nb.command = "y"\n', None),
}


@pytest.mark.parametrize('form', TABLES)
def test_a_table_is_taken_out_whole_or_not_at_all(home, form):
    before, after = TABLES[form]
    home.run('connect', 'codex', '--yes')
    home.put('codex', before)
    done = home.run('disconnect', 'codex', '--yes', status=0 if after else 6)
    assert home.file('codex').read_bytes() == (after or before)
    assert after or 'by hand' in done.stderr and str(home.file('codex')) in done.stderr


@pytest.mark.parametrize('client', ['cursor', 'codex'])
def test_entries_of_two_names_are_taken_out_one_by_one(home, client):
    home.put(client, b'# none\n' if client == 'codex' else b'{ }\n')
    before = home.file(client).read_bytes()
    home.run('connect', client, '--yes', '--name', 'a')
    said = home.run('connect', client, '--yes', '--name', 'b.c/d').stderr
    assert f'holdfast disconnect {client} --name b.c/d' in said
    both = home.file(client).read_bytes()
    home.run('disconnect', client, '--yes', '--name', 'a')
    text = home.file(client).read_text()
    assert 'b.c/d' in text and text.count(BIN) == 1
    home.run('disconnect', client, '--yes', '--name', 'b.c/d')
    assert BIN not in home.file(client).read_text()
    home.put(client, before)
    home.run('connect', client, '--yes', '--name', 'a')
    home.run('connect', client, '--yes', '--name', 'b.c/d')
    assert home.file(client).read_bytes() == both
    home.run('disconnect', client, '--yes', '--name', 'b.c/d')
    home.run('disconnect', client, '--yes', '--name', 'a')
    assert home.file(client).read_bytes() == before


def test_disconnect_of_a_name_that_is_not_ours_changes_nothing(home):
    before = b'{"mcpServers": {"files": {"command": "/bin/cat"}, "lost": {"command": "/opt/bin/holdfast", "args": ["stdio"]}}}'
    home.put('cursor', before)
    home.run('connect', 'cursor', '--yes')
    connected = home.file('cursor').read_bytes()
    assert 'not connected' in home.run('disconnect', 'cursor', '--name', 'zzz', '--yes').stdout
    assert 'does not lead to Holdfast' in home.run('disconnect', 'cursor', '--name', 'files', '--yes', status=6).stderr
    assert home.file('cursor').read_bytes() == connected
    assert 'disconnected' in home.run('disconnect', 'cursor', '--name', 'lost', '--yes').stdout
    home.run('disconnect', 'cursor', '--yes')
    assert json.loads(home.file('cursor').read_text()) == {'mcpServers': {'files': {'command': '/bin/cat'}}}


def test_a_second_connect_after_an_edit_leaves_no_entry_of_the_first(home):
    home.put('cursor', b'{\n  "mcpServers": {}\n}\n')
    home.run('connect', 'cursor', '--yes')
    home.put('cursor', home.file('cursor').read_bytes() + b'// edited\n')
    home.run('connect', 'cursor', '--yes', '--data', str(home.path / 'other'))
    home.run('disconnect', 'cursor', '--yes')
    assert home.file('cursor').read_bytes() == b'{\n  "mcpServers": {}\n}\n// edited\n'
    home.run('connect', 'cursor', '--yes', '--url', 'https://mcp.example')
    home.put('cursor', home.file('cursor').read_bytes() + b'// again\n')
    home.run('connect', 'cursor', '--yes')
    home.run('disconnect', 'cursor', '--yes')
    assert home.file('cursor').read_bytes() == b'{\n  "mcpServers": {}\n}\n// edited\n// again\n'


def test_a_server_of_the_user_with_our_name_comes_back(home):
    home.run('connect', 'cursor', '--yes', '--url', 'https://mcp.example')
    theirs = b'{"mcpServers": {"holdfast": {"command": "/bin/cat"}}}'
    home.put('cursor', theirs)
    home.run('connect', 'cursor', '--yes')
    home.run('disconnect', 'cursor', '--yes')
    assert home.file('cursor').read_bytes() == theirs


def test_without_a_terminal_nothing_asks_and_nothing_is_written(home):
    done = home.run('connect', 'cursor', status=2)
    assert '--yes' in done.stderr
    assert not home.file('cursor').exists()


def test_dry_run_and_print_write_nothing(home):
    home.put('cursor', b'{"mcpServers": {"a": {"env": {"K": "canary-secret"}, "command": "x"}}}')
    done = home.run('connect', 'cursor', '--dry-run', '--server', 'files')
    assert '+ ' in done.stderr and 'canary-secret' not in done.stderr + done.stdout
    assert 'holdfast' not in home.file('cursor').read_text()
    printed = json.loads(home.run('connect', 'cursor', '--print', '--profile', 'dev', '--config', '/etc/h.json').stdout)
    assert printed['mcpServers']['holdfast'] == {'command': BIN, 'args': ['stdio', '--profile', 'dev', '--config', '/etc/h.json']}
    printed = json.loads(home.run('connect', 'cursor', '--print', '--data', 'new').stdout)
    assert printed['mcpServers']['holdfast']['args'] == ['stdio', '--data', str(home.path / 'new')]


def test_the_address_can_be_written_instead(home):
    printed = json.loads(home.run('connect', 'vscode', '--print', '--http').stdout)
    assert printed == {'servers': {'holdfast': {'type': 'http', 'url': 'http://127.0.0.1:4653/mcp'}}}
    assert 'leave --http and --url out' in home.run('connect', 'claude-desktop', '--http', '--yes', status=2).stderr


ADDRESSES = {
    'public': ({'public_url': 'https://mcp.example/'}, 'https://mcp.example/mcp/a%20b', ''),
    'key': ({'listen': '127.0.0.1:7001', 'auth': 'required'}, 'http://127.0.0.1:7001/mcp/a%20b', 'holdfast key create'),
    'all addresses': ({'listen': '0.0.0.0:7001', 'auth': 'required', 'trusted_proxies': ['10.0.0.1']}, None, 'set public_url'),
}


@pytest.mark.parametrize('form', ADDRESSES)
def test_the_address_is_one_that_a_client_can_use(home, form):
    options, url, says = ADDRESSES[form]
    (home.path / 'holdfast.json').write_text(json.dumps({'holdfast': options}))
    done = home.run('connect', 'cursor', '--http', '--server', 'a b', '--yes', status=0 if url else 7)
    assert says in done.stderr
    if url:
        assert json.loads(home.file('cursor').read_text())['mcpServers']['holdfast'] == {'url': url}
    else:
        assert not home.file('cursor').exists()


@pytest.mark.parametrize('client', [c for c in FILES if c != 'claude-desktop'])
def test_a_remote_address_is_written_and_the_key_stays_in_its_variable(home, client):
    home.env['HOLDFAST_KEY'] = 'hf_canary'
    done = home.run('connect', client, '--url', 'https://mcp.example/mcp/', '--server', 'files', '--yes')
    text = home.file(client).read_text()
    assert '"https://mcp.example/mcp/files"' in text and 'HOLDFAST_KEY' in text and 'HOLDFAST_KEY' in done.stderr
    assert 'canary' not in text + done.stdout + done.stderr
    home.run('disconnect', client, '--yes')
    assert not home.file(client).exists()
    del home.env['HOLDFAST_KEY']
    assert 'HOLDFAST_KEY' not in home.run('connect', client, '--url', 'https://mcp.example', '--print').stdout


@pytest.mark.parametrize('url, says', [('mcp.example', 'http:// or https://'), ('https://a:b@mcp.example', 'headers'),
                                       ('https://mcp.example/?key=x', 'HOLDFAST_KEY')])
def test_an_address_that_is_none_is_refused(home, url, says):
    done = subprocess.run([BIN, 'connect', 'cursor', '--url', url, '--yes'], env=home.env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode != 0 and says in done.stderr and not home.file('cursor').exists(), done.stderr


def test_an_address_without_tls_is_warned_of(home):
    assert 'unencrypted' in home.run('connect', 'cursor', '--url', 'http://192.0.2.1:4653', '--print').stderr
    assert 'unencrypted' not in home.run('connect', 'cursor', '--url', 'http://127.0.0.1:4653', '--print').stderr


def test_an_unknown_client_gets_a_suggestion(home):
    assert 'did you mean cursor' in home.run('connect', 'curser', status=2).stderr


def test_help_and_errors_name_the_same_clients(home):
    assert '|'.join(FILES) in home.run('connect', '--help').stdout
    for words in (['connect'], ['import', 'curser']):
        assert 'claude-code, claude-desktop, cursor, vscode, codex or gemini' in home.run(*words, status=2).stderr


def test_the_clients_own_command_is_used(home):
    program = home.bin / 'claude'
    program.write_text('#!/usr/bin/python3\nimport json, os, sys\n'
                       'if sys.argv[2] == "get":\n    raise SystemExit(0)\n'
                       'assert sys.argv[1:5] == ["mcp", "add", "-s", "user"] and sys.argv[6] == "--", sys.argv\n'
                       'path = os.environ["HOME"] + "/.claude.json"\n'
                       'json.dump({"own": True, "mcpServers": {sys.argv[5]: {"command": sys.argv[7], "args": sys.argv[8:]}}}, '
                       'open(path, "w"))\n')
    program.chmod(0o755)
    before = b'{ "numStartups": 1 }'
    home.put('claude-code', before)
    home.run('connect', 'claude-code', '--yes')
    made = json.loads(home.file('claude-code').read_text())
    assert made['own'] and made['mcpServers']['holdfast'] == {'command': BIN, 'args': ['stdio']}
    home.run('disconnect', 'claude-code', '--yes')
    assert home.file('claude-code').read_bytes() == before


def fake_claude(home, says):
    """A client that, as the real one, writes its file when it starts, and exits 0 whatever it says."""
    program = home.bin / 'claude'
    program.write_text('#!/usr/bin/python3\nimport json, os, sys\npath = os.environ["HOME"] + "/.claude.json"\n'
                       'try:\n    text = json.load(open(path))\nexcept OSError:\n    text = {}\n'
                       'text["starts"] = text.get("starts", 0) + 1\n'
                       'if sys.argv[2] == "add":\n'
                       '    text.setdefault("mcpServers", {})[sys.argv[5]] = {"command": sys.argv[7], "args": sys.argv[8:]}\n'
                       f'else:\n    assert sys.argv[1:] == ["mcp", "get", "holdfast"], sys.argv\n    print({says!r})\n'
                       'json.dump(text, open(path, "w"))\n')
    program.chmod(0o755)


@pytest.mark.parametrize('says, state, status, words', [
    ('holdfast:\n  Status: \u2714 Connected', 'works', 0, 'Claude Code reaches Holdfast (claude mcp get holdfast: Status: ✔ Connected)'),
    ('holdfast:\n  Status: \u2718 Failed to connect', 'failed', 4, 'does not reach Holdfast'),
    ('something \x1b[31m else', 'unclear', 0, 'To check: run `claude mcp list`'),
])
def test_the_client_is_asked_whether_it_reaches_holdfast(home, says, state, status, words):
    fake_claude(home, says)
    before = b'{ "numStartups": 1 }'
    home.put('claude-code', before)
    done = home.run('connect', 'claude-code', '--yes', status=status)
    assert words in done.stdout and '\x1b' not in done.stdout
    assert json.loads(home.file('claude-code').read_text())['starts'] == 2
    home.run('disconnect', 'claude-code', '--yes')
    assert home.file('claude-code').read_bytes() == before
    told = json.loads(home.run('connect', 'claude-code', '--yes', '--json', status=status).stdout)
    assert told['check'] == state and told['state'] == 'connected'


def test_a_client_that_cannot_be_asked_comes_with_the_way_to_look(home):
    assert 'To check: open Cursor Settings > MCP' in home.run('connect', 'cursor', '--yes').stdout
    fake_claude(home, 'nothing')
    home.file('claude-code').unlink(missing_ok=True)
    told = json.loads(home.run('connect', 'claude-code', '--yes', '--json', '--no-check').stdout)
    assert 'check' not in told and json.loads(home.file('claude-code').read_text())['starts'] == 1


def test_a_failing_own_command_is_reported_and_can_be_passed_by(home):
    program = home.bin / 'codex'
    program.write_text('#!/usr/bin/python3\nraise SystemExit(3)\n')
    program.chmod(0o755)
    assert '--file' in home.run('connect', 'codex', '--yes', status=7).stderr
    assert not home.file('codex').exists()
    home.run('connect', 'codex', '--yes', '--file')
    assert b'mcp_servers' in home.file('codex').read_bytes()


def test_import_seals_secrets_and_shows_none(home):
    home.put('cursor', b'{"mcpServers": {"a": {"command": "/bin/cat", "args": ["x", /* why */ "y"]}, "keyed": {"command": "/bin/cat", '
                       b'"env": {"API_KEY": "canary-secret"}}, "holdfast": {"command": "/usr/bin/holdfast", "args": ["stdio"]}}}')
    home.put('codex', b'[mcp_servers.b]\nurl = "http://127.0.0.1:9/mcp"\nstartup_timeout_sec = 5\n')
    home.put('gemini', b'{"ui": ')
    before = home.file('cursor').read_bytes()
    assert '--yes' in home.run('import', status=2).stderr
    dry = home.run('import', '--dry-run', status=7)
    assert '1 secret will be sealed' in dry.stderr and not (home.path / '.config/holdfast').exists() and not (home.path / '.local').exists()
    done = home.run('import', '--yes', status=7)
    assert not any(line.strip() == 'holdfast:' for line in done.stderr.splitlines())
    assert 'canary' not in done.stderr + done.stdout + dry.stderr + dry.stdout
    assert '3 of 3 servers' in done.stdout and 'sealed in the store: keyed.API_KEY' in done.stdout
    assert 'left out: startup_timeout_sec' in done.stderr and 'settings.json was passed over: line 1, column 8' in done.stderr
    assert home.servers() == {'a': {'command': '/bin/cat', 'args': ['x', 'y']}, 'b': {'url': 'http://127.0.0.1:9/mcp'},
                              'keyed': {'command': '/bin/cat', 'env': {'API_KEY': '${secret:keyed.API_KEY}'}}}
    assert home.file('cursor').read_bytes() == before
    assert 'keyed.API_KEY' in home.run('secret', 'list').stdout
    assert home.run('config', 'check').returncode == 0
    home.file('gemini').unlink()
    again = home.rows('import', '--yes')
    assert [(r['name'], r['state'], r['taken']) for r in again] == [('a', 'present', False), ('keyed', 'present', False), ('b', 'present', False)]
    assert [r['secrets'] for r in home.rows('import', '--yes', '--replace') if r['taken']] == [['keyed.API_KEY']]


def test_import_writes_secrets_in_clear_only_with_plain(home):
    home.put('cursor', b'{"mcpServers": {"keyed": {"command": "/bin/cat", "env": {"API_KEY": "canary-secret"}}}}')
    assert home.rows('import', '--yes', '--plain')[0]['taken']
    assert home.servers()['keyed']['env'] == {'API_KEY': 'canary-secret'}
    assert [r['state'] for r in home.rows('import', '--yes')] == ['present']


UNUSABLE = {
    'workspace': ('{"command": "node", "args": ["${workspaceFolder}/s.js"]}', 'write the path'),
    'argument': ('{"command": "node", "args": ["./s.js"]}', '"./s.js" in "args"'),
    'folder': ('{"command": "/bin/cat", "cwd": "sub"}', '"sub" in "cwd"'),
    'program': ('{"command": "bin/serve"}', '"bin/serve" in "command"'),
    'line': ('{"command": "npx -y foo"}', 'the rest in "args"'),
    'file': ('{"command": "/bin/cat", "envFile": ".env"}', '".env" in "envFile"'),
    'no-file': ('{"command": "/bin/cat", "envFile": "/nowhere/.env"}', 'cannot open /nowhere/.env'),
    'variable': ('{"command": "/bin/cat", "env": {"A": "${env:UNSET_HERE}"}}', 'UNSET_HERE is not set'),
    'editor': ('{"command": "/bin/cat", "args": ["${config:a.b}"]}', 'a setting of an editor'),
    'list': ('{"command": "/bin/cat", "env": {"API_KEY": ["canary-secret"]}}', 'must be a string'),
    'address': ('{"url": "htp://bob:canary-secret@h/"}', 'http:// or https://'),
}


def test_import_says_why_it_leaves_an_entry(home):
    """What has no meaning outside of the client's folder is not taken over in another sense."""
    home.put('cursor', ('{"mcpServers": {' + ', '.join(f'"{name}": {entry}' for name, (entry, _) in UNUSABLE.items()) +
                        ', "good": {"command": "/bin/cat"}}}').encode())
    done = home.run('import', '--yes')
    told = dict(line.strip().split(' (Cursor): cannot be taken over: ', 1) for line in done.stderr.splitlines() if 'cannot be taken' in line)
    assert set(told) == set(UNUSABLE)
    for name, (_, words) in UNUSABLE.items():
        assert words in told[name], (name, told[name])
    assert 'canary' not in done.stderr + done.stdout and 'the new server' not in done.stderr
    assert list(home.servers()) == ['good']


def test_import_takes_over_what_holdfast_can_do_as_well(home):
    program = home.path / 'my server'
    program.write_text('#!/bin/sh\n')
    program.chmod(0o755)
    home.put('cursor', json.dumps({'mcpServers': {'blank': {'command': str(program)}}}).encode())
    env_file = home.path / 'keys.env'
    env_file.write_text('B=from-file\n')
    home.env.update(SET_HERE='1', GKEY='k')
    home.put('vscode', ('{"inputs": [{"id": "tok", "type": "promptString", "password": true}], "servers": {"all": {"type": "stdio", '
                        '"command": "/bin/cat", "env": {"T": "${input:tok}", "A": "${env:SET_HERE}"}, "envFile": "' + str(env_file) +
                        '", "disabledTools": ["rm"]}}}').encode())
    home.put('gemini', b'{"mcpServers": {"g": {"command": "/bin/cat", "env": {"API_KEY": "$GKEY"}, "excludeTools": ["x"]}}}')
    done = home.run('import', '--yes')
    assert 'all needs a secret that is not set: run `holdfast secret set tok`' in done.stdout
    ours = home.servers()
    assert ours['all']['env'] == {'T': '${input:tok}', 'A': '${env:SET_HERE}'} and ours['all']['envFile'] == str(env_file)
    assert ours['all']['disabledTools'] == ['rm']
    assert ours['blank'] == {'command': str(program)}
    assert ours['g'] == {'command': '/bin/cat', 'env': {'API_KEY': '${GKEY}'}, 'excludeTools': ['x']}


def test_import_shows_a_conflict_and_keeps_ours(home):
    (home.path / 'holdfast.json').write_text('{\n  // ours\n  "mcpServers": {"a": {"command": "/bin/cat", "args": ["1"], "env": {"TOKEN": "canary-1"}}}\n}\n')
    home.put('vscode', b'{"servers": {"a": {"command": "/bin/cat", "args": ["2"], "env": {"TOKEN": "canary-2"}}}}')
    done = home.run('import', 'vscode', '--yes')
    lines = [line.strip() for line in done.stderr.splitlines()]
    assert '"command": "/bin/cat",' in lines and '-   "args": ["1"],' in lines and '+   "args": ["2"],' in lines, done.stderr
    assert 'canary' not in done.stderr + done.stdout
    assert '"1"' in (home.path / 'holdfast.json').read_text()
    home.run('import', 'vscode', '--yes', '--replace')
    text = (home.path / 'holdfast.json').read_text()
    assert '"2"' in text and '// ours' in text and 'canary' not in text


def test_import_edits_a_file_that_says_servers_behind_a_byte_order_mark(home):
    (home.path / 'holdfast.json').write_text('\ufeff{"servers": {"a": {"command": "/bin/cat", "args": ["1"]}}}', encoding='utf-8')
    home.put('vscode', b'{"servers": {"a": {"command": "/bin/cat", "args": ["2"]}, "b": {"command": "/bin/true"}}}')
    home.run('import', 'vscode', '--yes')
    text = (home.path / 'holdfast.json').read_text(encoding='utf-8')
    assert text.startswith('\ufeff') and list(json.loads(text[1:])) == ['servers']
    assert list(json.loads(text[1:])['servers']) == ['a', 'b'] and '"1"' in text and '"2"' not in text


def test_import_with_replace_seals_the_secrets_of_the_client(home):
    (home.path / 'holdfast.json').write_text('{"mcpServers": {"keyed": {"command": "/bin/cat", "env": {"API_KEY": "canary-1"}}}}')
    home.put('cursor', b'{"mcpServers": {"keyed": {"command": "/bin/cat", "env": {"API_KEY": "canary-2"}}}}')
    home.run('import', '--yes', '--replace')
    assert 'canary' not in (home.path / 'holdfast.json').read_text()


def test_import_takes_no_holdfast_over_by_whatever_way_it_is_named(home):
    (home.path / 'holdfast.json').write_text('{"holdfast": {"listen": "127.0.0.1:7001", "public_url": "https://mcp.example/"}}')
    home.run('connect', 'cursor', '--http', '--yes')
    home.put('gemini', b'{"mcpServers": {"a": {"httpUrl": "http://localhost:7001/mcp/files"}, "b": {"httpUrl": "https://mcp.example/mcp"}, '
                       b'"c": {"command": "holdfast", "args": ["stdio"]}, "near": {"httpUrl": "http://127.0.0.1:70011/mcp"}, '
                       b'"fork": {"command": "/opt/notholdfast", "args": ["stdio"]}}}')
    assert [r['name'] for r in home.rows('import', '--dry-run')] == ['near', 'fork']


def test_import_reads_the_files_of_the_project_too(home):
    """`claude mcp add` writes to the project in ~/.claude.json unless it is told another scope."""
    project = home.path / 'work' / 'site'
    (project / '.vscode').mkdir(parents=True)
    claude = {'projects': {str(project): {'mcpServers': {'local': {'command': '/bin/cat'}, 'both': {'command': '/bin/cat', 'args': ['local']}}},
                           '/elsewhere': {'mcpServers': {'hidden': {'command': '/bin/cat'}}}},
              'mcpServers': {'both': {'command': '/bin/cat', 'args': ['user']}}}
    home.put('claude-code', json.dumps(claude).encode())
    (project / '.mcp.json').write_text('{"mcpServers": {"shared": {"type": "stdio", "command": "/bin/cat"}}}')
    (project / '.vscode/mcp.json').write_text('{"servers": {"code": {"command": "/bin/cat"}, "rel": {"command": "./x"}}}')
    before = {path: path.read_bytes() for path in home.path.rglob('*.json')}
    home.path, outer = project, home.path
    done = home.run('import', '--yes')
    home.path = outer
    assert '+ local (Claude Code, this folder in .claude.json)' in done.stderr and '+ shared (Claude Code, .mcp.json)' in done.stderr
    assert '+ code (VS Code, .vscode/mcp.json)' in done.stderr and 'rel (VS Code, .vscode/mcp.json): cannot be taken over' in done.stderr
    assert 'both (Claude Code): another server of this name' in done.stderr and 'hidden' not in done.stderr
    ours = home.servers()
    assert set(ours) == {'local', 'both', 'shared', 'code'} and ours['both']['args'] == ['local']
    assert all(path.read_bytes() == data for path, data in before.items())


def test_import_in_the_home_directory_reads_a_file_once(home):
    home.put('cursor', b'{"mcpServers": {"a": {"command": "./x"}}}')
    assert [(r['name'], r['file']) for r in home.rows('import', '--dry-run')] == [('a', str(home.file('cursor')))]


def test_import_of_one_name_from_two_clients_takes_the_first_and_says_so(home):
    home.put('cursor', b'{"mcpServers": {"a": {"command": "/bin/cat"}, "same": {"command": "/bin/cat"}}}')
    home.put('gemini', b'{"mcpServers": {"a": {"command": "/bin/true"}, "same": {"command": "/bin/cat"}}}')
    done = home.run('import', '--yes')
    assert 'a (Gemini CLI): another server of this name' in done.stderr and '2 of 3 servers' in done.stdout
    assert home.servers()['a'] == {'command': '/bin/cat'}
