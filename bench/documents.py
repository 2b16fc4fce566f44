# SPDX-License-Identifier: Apache-2.0
"""The knowledge base: 10,000 documents of 100 MiB, indexed, searched, read and edited; grep beside ripgrep and
GNU grep over the same files in the same round, all of them with warm caches.  The clients are threads of this
process, which shares the machine; CPU is Holdfast's own.  After each load its longest loop turn is asked for."""
import http.client
import json
import os
import random
import re
import shutil
import subprocess
import threading
import time

from subjects import Holdfast, Process, cpu_seconds, spread, wait_until

DOCUMENTS, SIZE, FOLDERS = 10000, 10486, 100
PATTERNS = (('a rare word', 'quicksilver'), ('a word in every document', 'lantern'), ('alternatives', r'(quick|slow)silver \w+ (moon|sun)'),
            ('nothing literal', r'[A-Z][a-z]+ing\b.{3,9}[0-9]{4}'))
MODERN = 'io.modelcontextprotocol/'
META = {MODERN + 'protocolVersion': '2026-07-28', MODERN + 'clientCapabilities': {}}


def make_corpus(root):
    dice = random.Random(20261115)
    words = [''.join(dice.choice('bcdfghklmnprstvw') + dice.choice('aeiou') for _ in range(dice.randrange(1, 5))) for _ in range(20000)]
    for number in range(DOCUMENTS):
        folder = os.path.join(root, f'part{number % FOLDERS:02}')
        os.makedirs(folder, exist_ok=True)
        lines, size = [f'# Document {number}', f'unique{number} lantern [[Doc{(number * 7 + 1) % DOCUMENTS:05}]]'], 0
        if number % 1000 == 7:
            lines.append('quicksilver under the moon')
        while size < SIZE:
            lines.append(' '.join(dice.choices(words, k=12)))
            size += len(lines[-1]) + 1
        with open(os.path.join(folder, f'Doc{number:05}.md'), 'w', encoding='ascii') as file:
            file.write('\n'.join(lines) + '\n')


def path_of(number):
    return f'Lens/part{number % FOLDERS:02}/Doc{number:05}.md'


class Knowledge(Holdfast):
    def __init__(self, folder, root):
        Process.__init__(self, 'holdfast docs', '/mcp/docs')
        self.folder = os.path.join(folder, 'docs')
        self.log = os.path.join(self.folder, 'log')
        self.config = {'mcpServers': {}, 'holdfast': {'docs': {'Lens': {'path': root, 'agent': 'suggest'}}}}
        self.env = {}

    def stall_ms(self):
        """The longest turn of the loop since it was asked last."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=60)
        connection.request('GET', '/metrics')
        page = connection.getresponse().read().decode()
        connection.close()
        return int(re.search(r'^holdfast_loop_stall_microseconds (\d+)', page, flags=re.M)[1]) / 1000


class Client:
    def __init__(self, subject):
        self.subject = subject
        self.connection = http.client.HTTPConnection('127.0.0.1', subject.port, timeout=60)

    def call(self, tool, **arguments):
        body = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call',
                           'params': {'name': tool, 'arguments': arguments, '_meta': META}})
        self.connection.request('POST', self.subject.path, body, {
            'Content-Type': 'application/json', 'Accept': 'application/json, text/event-stream', 'MCP-Protocol-Version': '2026-07-28',
            'Mcp-Method': 'tools/call', 'Mcp-Name': tool})
        answer = self.connection.getresponse().read().decode()
        if answer.startswith(('event:', 'data:')):
            answer = answer.rsplit('data: ', 1)[1]
        result = json.loads(answer).get('result') or {'isError': True, 'content': [{'text': answer}]}
        return result

    def must(self, tool, **arguments):
        result = self.call(tool, **arguments)
        if result.get('isError'):
            raise SystemExit(f"{tool} failed: {result['content'][0]['text'][:300]}")
        return result


def timed(run):
    began = time.monotonic()
    run()
    return (time.monotonic() - began) * 1000


def compare_grep(report, subject, root, rounds):
    others = [('ripgrep', ['rg', '--no-messages', '-l', '-e'], shutil.which('rg')), ('GNU grep', ['grep', '-rlE', '-e'], shutil.which('grep'))]
    others = [(name, command) for name, command, there in others if there]
    client, rows = Client(subject), []
    subject.stall_ms()
    for title, pattern in PATTERNS:
        took = {'holdfast': []} | {name: [] for name, _ in others}
        for number in range(rounds + 1):
            mine = timed(lambda p=pattern: client.must('grep', pattern=p, head_limit=10000))
            runs = [timed(lambda c=command, p=pattern: subprocess.run([*c, p, root], stdout=subprocess.DEVNULL, check=False))
                    for _, command in others]
            if number:  # the first one warms the caches
                for name, ms in zip(took, [mine, *runs]):
                    took[name].append(ms)
        rows.append([title, spread(took['holdfast'], '{:,.0f}'), *(spread(took[name], '{:,.0f}') for name, _ in others),
                     *(spread([a / b for a, b in zip(took['holdfast'], took[name])], '{:.2f}') for name, _ in others), f'{subject.stall_ms():.1f}'])
    report.table(f'grep over {DOCUMENTS:,} documents, {DOCUMENTS * SIZE / 2**20:.0f} MiB, one at a time',
                 ['pattern', 'holdfast ms', *(f'{name} ms' for name, _ in others), *(f'× {name}' for name, _ in others), 'loop stall ms'], rows)


def drive(subject, clients, seconds, turn):
    """turn(client, dice, number of the client) again and again; (calls per s, p50 ms, p99 ms, CPU µs per call)."""
    took, ending = [], time.monotonic() + seconds

    def run(number):
        client, dice = Client(subject), random.Random(number)
        while time.monotonic() < ending:
            took.append(timed(lambda: turn(client, dice, number)))
    before = cpu_seconds(subject.pids())
    threads = [threading.Thread(target=run, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    used = cpu_seconds(subject.pids()) - before
    took.sort()
    return len(took) / seconds, took[len(took) // 2], took[len(took) * 99 // 100], used * 1e6 / max(1, len(took))


def handle_of(client, path):
    return client.must('read', file_path=path)['structuredContent']['session_id']


def edit_turn(one):
    """Reads and edits: the same document for all, or one each.  Both calls are timed as one."""
    handles = {}

    def turn(client, dice, number):
        path = path_of(7 if one else 100 + number)
        result = client.must('read', file_path=path, **({'session_id': handles[number]} if number in handles else {}))
        handles[number] = result['structuredContent']['session_id']
        lines = re.findall(r'^ *\d+\t([a-z ]+)$', result['content'][0]['text'], flags=re.M)
        line = lines[(number * 13 + dice.randrange(10)) % len(lines)] if lines else 'none'
        client.call('edit', file_path=path, old_string=line, new_string=line + ' more', session_id=handles[number])
    return turn


def measure(report, folder, rounds, seconds):
    root = os.path.join(folder, 'corpus')
    make_corpus(root)
    subject = Knowledge(folder, root).start()
    try:
        client, began = Client(subject), time.monotonic()
        wait_until(lambda: f'Doc{DOCUMENTS - 1:05}' in client.must('search', query=f'unique{DOCUMENTS - 1}')['content'][0]['text'],
                   'the index', 0.05, 600)
        indexed = time.monotonic() - began
        report.table(f'Index of {DOCUMENTS:,} documents, {DOCUMENTS * SIZE / 2**20:.0f} MiB, at the first start',
                     ['ready after ms', 'indexed after s', 'documents/s', 'loop stall ms'],
                     [[f'{subject.start_ms:.0f}', f'{indexed:.1f}', f'{DOCUMENTS / indexed:,.0f}', f'{subject.stall_ms():.1f}']])
        compare_grep(report, subject, root, rounds)
        rows = []
        for name, clients, turn in (
                ('search, two words', 16, lambda c, d, n: c.must('search', query=f'lantern unique{d.randrange(DOCUMENTS)}')),
                ('search, a word in every document', 4, lambda c, d, n: c.must('search', query='lantern')),
                ('get_links', 16, lambda c, d, n: c.must('get_links', file_path=path_of(d.randrange(DOCUMENTS)))),
                ('read', 16, lambda c, d, n: c.must('read', file_path=path_of(d.randrange(DOCUMENTS)))),
                ('read and edit, a document each', 16, edit_turn(False)),
                ('read and edit, one document', 16, edit_turn(True))):
            subject.stall_ms()
            per_s, middle, most, cpu = drive(subject, clients, seconds, turn)
            rows.append([name, str(clients), f'{per_s:,.0f}', f'{middle:,.1f} / {most:,.1f}', f'{cpu:,.0f}', f'{subject.stall_ms():.1f}'])
        report.table('Documents by MCP, durable history', ['call', 'clients', 'per s', 'p50 / p99 ms', 'CPU µs', 'loop stall ms'], rows)
    finally:
        subject.stop()
        shutil.rmtree(root, ignore_errors=True)
