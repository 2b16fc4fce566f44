# SPDX-License-Identifier: Apache-2.0
"""A running Holdfast gets broken configurations by SIGHUP: each is refused with its place, and the old one stays whole.
tests/unit/config/test_mutants.c has 1,000 more mistakes."""
import json
import os
import re
import signal

from harness import wait_for

# What a broken file would change if it were read in part: a profile and a server in front of the mistake, and one behind it.
GOOD = '''{
  // ours
  "holdfast": { "profiles": { "half": { "servers": ["early"] } }, "limits": { "body": "64KiB" } },
  "mcpServers": {
    "early": { "command": "/bin/cat", "timeout": "5s" },
    "keep": { "command": "/bin/true", "args": ["changed"] },
    "late": { "command": "/bin/cat", "env": { "A": "b" } }
  }
}
'''

MISTAKES = {
    'cut off': lambda t: t[:len(t) // 2],
    'empty': lambda t: '',
    'only blanks': lambda t: ' \n',
    'a key twice': lambda t: t.replace('"late": {', '"late": {}, "late": {'),
    'a mistyped member': lambda t: t.replace('"env"', '"enviroment"'),
    'a mistyped section': lambda t: t.replace('"holdfast"', '"holdfsat"'),
    'a number for a text': lambda t: t.replace('"b"', '7'),
    'an array for an object': lambda t: t.replace('{ "A": "b" }', '[]'),
    'null bytes': lambda t: t.replace('"b"', '"\\u0000"'),
    'a wrong unit': lambda t: t.replace('"5s"', '"5 parsecs"'),
    'a huge number': lambda t: t.replace('"5s"', '99999999999999999999'),
    'a huge size': lambda t: t.replace('"64KiB"', '"64000TiB"'),
    'typographic quotes': lambda t: t.replace('"late"', '“late”'),
    'single quotes': lambda t: t.replace('"b"', "'b'"),
    'a tab in a text': lambda t: t.replace('"b"', '"\tb"'),
    'YAML': lambda t: 'mcpServers:\n  early:\n    command: /bin/cat\n',
    'TOML': lambda t: '[mcp_servers.early]\ncommand = "/bin/cat"\n',
    'bytes that are not UTF-8': lambda t: t.encode().replace(b'"b"', b'"\xff"'),
    'UTF-16': lambda t: t.encode('utf-16'),
    'something behind the end': lambda t: t + '}',
    'a missing brace': lambda t: t.rstrip()[:-1],
    'a comma for a colon': lambda t: t.replace('"A": "b"', '"A", "b"'),
    'an unset variable': lambda t: t.replace('"b"', '"${NOT_SET_ANYWHERE}"'),
    'two kinds of server': lambda t: t.replace('"env"', '"url": "http://127.0.0.1:1/", "env"'),
    'an address that is none': lambda t: t.replace('"limits"', '"public_url": "nope", "limits"'),
}


def show(hf):
    """What the process serves: its servers, its endpoints and its profiles."""
    servers = hf.get('/api/v1/servers').json()['servers']
    return sorted(s['name'] for s in servers), [hf.client(f'/mcp/{n}').rpc('tools/list').status for n in ('keep', 'early', 'late', 'p/half')]


def write(hf, content):
    with open(hf.config_file, 'wb') as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def test_a_broken_configuration__is_refused_with_its_place_and_changes_nothing(holdfast, stdio_server):
    entry, _ = stdio_server('keep', handles='never')
    hf = holdfast({'keep': entry})
    with hf.client('/mcp/keep').connect() as client:
        pid = client.call('counter').result['structuredContent']['pid']
        before = show(hf)
        assert before[0] == ['keep', 'session'] and before[1] == [200, 404, 404, 404]
        for name, mistake in MISTAKES.items():
            content = mistake(GOOD)
            assert content not in (GOOD, GOOD.encode()), name
            since = len(hf.log())
            write(hf, content)
            hf.process.send_signal(signal.SIGHUP)
            line = hf.wait_log(lambda l: 'reload' in str(l.get('msg', '')), name, since)
            text = json.dumps(line, ensure_ascii=False)
            assert line['level'] in ('error', 'warn') and re.search(re.escape(os.path.basename(hf.config_file)) + r':\d+:\d+: ', text), (name, text)
            assert show(hf) == before, name
        assert client.call('counter').result['structuredContent']['pid'] == pid, 'the process of the session went on'
        # the same file without a mistake is taken, so the refusals were not for another reason
        since = len(hf.log())
        write(hf, GOOD)
        hf.process.send_signal(signal.SIGHUP)
        hf.wait_log(lambda l: l.get('msg') == 'configuration reloaded', 'the reload', since)
        wait_for(lambda: show(hf)[0] == ['early', 'keep', 'late', 'session'], 'the new servers')
        assert show(hf)[1] == [200] * 4
