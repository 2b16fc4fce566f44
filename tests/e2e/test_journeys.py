# SPDX-License-Identifier: Apache-2.0
"""The ways in, as people walk them: the literal commands, in a scratch home, with the real clients.  Each journey
counts the commands that it takes to get there."""
import os
import random
import re
import socket
import subprocess
import threading

import pytest
from harness import TOP, Holdfast, wait_for
from person import people
from redis_server import Redis

FILES = 'files__read_text_file'


@pytest.fixture
def person():
    with people() as make:
        yield make


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


# A developer.

LISTS = {'claude-code': ('claude mcp list', r'holdfast: .* ✔ Connected'),
         'codex': ('codex mcp list', r'holdfast +\S*/holdfast +stdio .* enabled'),
         'gemini': ('gemini mcp list', r'✓ holdfast: .* Connected')}


@pytest.mark.parametrize('client', LISTS)
def test_a_developer_puts_a_server_behind_holdfast_with_two_commands(person, client):
    me = person('ada')
    me.write('hello\n', 'notes/a.md')
    lists, connected = LISTS[client]
    me.look(lists)  # they have used the client before, so its file is there
    file = {'claude-code': '.claude.json', 'codex': '.codex/config.toml', 'gemini': '.gemini/settings.json'}[client]
    before = me.read(file) if os.path.exists(me.path(file)) else None
    said = me.type('holdfast add files -- mcp-server-filesystem ~/notes')
    assert re.search(r'✔ files +14 tools', said) and 'next: holdfast connect' in said
    me.type(f'holdfast connect {client} --yes')
    assert len(me.typed) <= 2
    me.sees(lists, connected)
    with me.agent(client) as call:
        assert call(FILES, path=me.path('notes/a.md'))['content'][0]['text'] == 'hello\n'
        me.watch('holdfast tail', 'files.read_text_file')
    me.look(f'holdfast disconnect {client} --yes')
    assert (me.read(file) if os.path.exists(me.path(file)) else None) == before
    assert 'holdfast' not in me.look(lists)


def test_a_developer_takes_over_what_a_client_has(person):
    me = person('ada')
    me.write('hello\n', 'notes/a.md')
    me.look('claude mcp add -s user files -- mcp-server-filesystem ~/notes')
    me.type('holdfast import --yes')
    me.type('holdfast connect claude-code --yes')
    assert len(me.typed) <= 2
    me.sees(*LISTS['claude-code'])
    with me.agent('claude-code') as call:
        assert call(FILES, path=me.path('notes/a.md'))['content'][0]['text'] == 'hello\n'


# A team lead, a member of the team and an auditor.

TEAM = '''cat > holdfast.json <<'END'
{
  "mcpServers": { "files": { "command": "mcp-server-filesystem", "args": ["%(home)s/notes"] } },
  "holdfast": { "listen": "%(address)s", "auth": "required" }
}
END'''


def key_in(text):
    return re.search(r'\bhf_[A-Za-z0-9_-]+', text).group()


def test_a_team_lead_knows_who_did_what_with_six_commands(person):
    lead, address = person('lead'), f'127.0.0.1:{free_port()}'
    lead.write('hello\n', 'notes/a.md')
    lead.type(TEAM % {'home': lead.home, 'address': address})
    lead.type('holdfast start')
    for_ada = key_in(lead.type('holdfast key create --name ada --expires 90d'))
    for_bo = key_in(lead.type('holdfast key create --name bo --role auditor'))
    ada = person('ada', HOLDFAST_KEY=for_ada)
    ada.type(f'holdfast connect claude-code --url http://{address} --yes')
    ada.sees(*LISTS['claude-code'])
    assert ada.files_with(for_ada) == []
    stranger = person('eve', HOLDFAST_KEY='hf_nobody')
    stranger.look(f'holdfast connect claude-code --url http://{address} --yes || true')
    assert '✔ Connected' not in stranger.look('claude mcp list')
    entry = ada.entry('claude-code')
    header = os.path.expandvars(entry['headers']['Authorization'].replace('${HOLDFAST_KEY}', for_ada))
    remote = Holdfast(ada.home)
    remote.port = int(address.rsplit(':', 1)[1])
    with remote.client('/mcp', headers={'Authorization': header}) as client:
        client.connect(name='claude-code')
        reply = client.call(FILES, {'path': lead.path('notes/a.md')})
        assert reply.result['content'][0]['text'] == 'hello\n', reply
    bo = person('bo', HOLDFAST_KEY=for_bo)
    said = bo.type(f'holdfast audit list --since yesterday --url http://{address}')
    assert re.search(r' ada +files +read_text_file +✔ ok', said), said
    assert 'role admin' in bo.look(f'holdfast key create --name mine --url http://{address} || true')
    assert len(lead.typed + ada.typed + bo.typed) <= 6


# A writer.

def test_a_writer_reviews_what_an_agent_suggests_with_three_commands(person):
    me = person('ada')
    me.write('# Tides\n\nShe was very tired.\n', 'notes/tides.md')
    said = me.type('holdfast docs add Notes ~/notes')
    assert '1 document' in said and 'holdfast docs review Notes' in said
    me.type('holdfast connect claude-code --server docs --yes')
    me.sees(*LISTS['claude-code'])
    with me.agent('claude-code') as call:
        session = call('read', file_path='Notes/tides.md')['structuredContent']['session_id']
        call('edit', file_path='Notes/tides.md', old_string='very tired', new_string='spent', session_id=session)
    assert b'very tired' in me.read('notes/tides.md')  # a suggestion, until a person decides
    # The client is closed, so no Holdfast runs; the queue is still there.
    me.answer('holdfast docs review Notes', ('[q]uit > ', 'a'), ('all suggestions are decided', 'q'))
    assert me.read('notes/tides.md') == b'# Tides\n\nShe was spent.\n'
    assert len(me.typed) <= 3


# A platform engineer.

PAGE = os.path.join(TOP, 'docs/fleet-on-one-machine.md')
READ = {'name': 'session__context_get', 'arguments': {}, '_meta': {'session_id': 'trip'}}


def free_ports():
    """The first digits of four ports that nothing uses: with 0, 1, 2 and 3 behind them."""
    for prefix in random.sample(range(2000, 3200), 1200):  # below the ports that the kernel gives out
        try:
            for last in range(4):
                with socket.socket() as s:
                    s.bind(('127.0.0.1', prefix * 10 + last))
            return prefix
        except OSError:
            continue
    raise AssertionError('no four ports in a row are free')


class Traffic(threading.Thread):
    """Calls in the session, one after the other, as long as the nodes are restarted."""

    def __init__(self, front):
        super().__init__(daemon=True)
        self.front, self.wrong, self.calls, self.is_over = front, [], 0, False

    def run(self):
        while not self.is_over:
            with self.front.client('/mcp') as client:
                reply = client.rpc('tools/call', READ)
                self.calls += 1
                if reply.status == 502:  # a connection that the kernel made just before the port was closed
                    continue
                if reply.status != 200 or reply.result['structuredContent']['context'] != {'city': 'Oslo'}:
                    self.wrong.append(repr(reply))


def test_a_platform_engineer_runs_three_nodes_with_the_commands_of_one_page(person, cluster):
    me, redis, prefix = person('pat'), Redis(), free_ports()
    assert redis.is_there
    me.env.update(DATABASE_URL=cluster.empty_database(), REDIS_URL=redis.url)
    with open(PAGE, encoding='utf-8') as file:
        parts = re.findall(r'^## (.*)\n|```sh\n((?:.*\n)*?)```', file.read().replace(':466', f':{prefix}'), re.M)
    headings, blocks = [h for h, _ in parts if h], [b for _, b in parts if b]
    assert headings == ['Three nodes', 'A session on all of them', 'A node dies', 'A rolling restart', 'Clean up']
    # One shell for the whole page.  It says when a block is over, and waits for a line before the next one.
    shell = subprocess.Popen(['bash'], cwd=me.home, env=me.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True)
    said = {}

    def run(block):
        shell.stdin.write(f'{block}echo "[status $?]"\n')
        shell.stdin.flush()
        lines = iter(shell.stdout.readline, '')
        text = ''
        for line in lines:
            text += line
            if '[status ' in line:
                break
        print(f'{block}{text}')
        assert '[status 0]' in text, text
        return text
    front = Holdfast(me.home)
    front.port = prefix * 10
    try:
        three, behind, session, dies, rolling, clean = blocks
        assert run(three).count('has started') == 3
        run(behind)
        wait_for(lambda: os.path.exists(me.path('nginx.pid')), 'nginx')
        said = run(session)
        assert said.count('Oslo') >= 3 and {f':{prefix}{n}' for n in (1, 2, 3)} == set(re.findall(r':\d{5}\b', said))
        said = run(dies)
        assert said.count('\\"city\\":\\"Oslo\\"') == 3 and 'has started' in said
        traffic = Traffic(front)
        traffic.start()
        try:
            said = run(rolling)
        finally:
            traffic.is_over = True
            traffic.join(60)
        assert said.count('has stopped') == said.count('has started') == 3 and 'chain ok' in said
        assert traffic.calls > 3 and traffic.wrong == [], traffic.wrong
        run(clean)
    finally:
        shell.stdin.close()
        shell.wait(60)
        shell.stdout.close()
        for node in ('n1', 'n2', 'n3'):
            me.look(f'holdfast stop --data {node} || true')
        me.look('test -e nginx.pid && kill $(cat nginx.pid) || true')
        redis.close()
