# SPDX-License-Identifier: Apache-2.0
"""The registry by REST, on SQLite and on PostgreSQL, beside pgbench with the same statements.

The cluster is a throw-away one with its data beside ours, on a disk, and with fsync.  pgbench runs on it
in a database of its own that has our schema: what a service would do that talks to PostgreSQL itself, with
64 connections.  Its progress lines are the marks between which the server's CPU is counted."""
import glob
import os
import re
import shutil
import statistics
import subprocess
import time

from subjects import BUILD, TOP, Holdfast, Process, cpu_seconds, measured, private_kib, wait_idle, spread, tree, TICKS

CONNECTIONS = 64
SESSIONS = 1000
BODY = 504
MOST = 10000000  # sessions in the tenant: no limit here
KINDS = ('create', 'get', 'record')
# (kind, store): what it must reach per second, and what we mean.
BARS = {('get', 'SQLite'): (20000, 50000), ('get', 'PostgreSQL'): (20000, 50000),
        ('record', 'SQLite'): (10000, 20000), ('record', 'PostgreSQL'): (5000, 10000)}

NAME = "'ses_' || lpad({}::text, 43, '0')"
ROW_ID = "('00000000-0000-4000-8000-' || lpad({}::text, 12, '0'))::uuid"
COLUMNS = ('id, session_id, tenant_id, owner, user_id, edge_mcp_id, client_name, client_type, client_version, status, origin, '
           'initialized, provisional, counted, carrier, carrier_key, core_session_id, connection_json, context_id, '
           'passthrough_auth_encrypted, created_at, last_activity_at, expires_at, terminated_at, ttl_ms, termination_reason, '
           'tool_execution_count, total_tokens_used, version, toolsets, profile_context_encrypted, setup, lineage')
# The INSERT with its check of the limit, in the order of the table's columns.
CREATE = ("SELECT mcp.hf_session_create(ROW({id}, {name}, 'default', NULL, 'edge-1', 'bench', 'claude-code', '1.0.0', 'active', "
          "false, NULL, NULL, NULL, NULL, now(), 0, 0, now(), now() + interval '1 day', NULL, NULL, 'local', 'rest', false, true, "
          "'rest', NULL, 0, 1, '{{}}', NULL, NULL, NULL, NULL)::mcp.edge_mcp_sessions, now(), {most})")
SCRIPTS = {
    'create': CREATE.format(id='gen_random_uuid()', most=MOST,
                            name="'ses_' || replace(gen_random_uuid()::text, '-', '') || '00000000000'") + ';\n',
    'get': f"\\set i random(1, {SESSIONS})\nSELECT {COLUMNS} FROM mcp.edge_mcp_sessions WHERE tenant_id = 'default' "
           f"AND session_id = {NAME.format(':i')};\n",
    # As a registry without events does it: the execution and the counters in one transaction.
    'record': f'''\\set i random(1, {SESSIONS})
BEGIN;
INSERT INTO mcp.session_tool_executions (id, session_id, tool_name, arguments, duration_ms, tokens_used, executed_at, tenant_id, outcome)
VALUES (gen_random_uuid(), {ROW_ID.format(':i')}, 'echo', '{{"text":"{'q' * (BODY - 78)}"}}', 12, 42, now(), 'default', 'ok');
UPDATE mcp.edge_mcp_sessions SET tool_execution_count = tool_execution_count + 1, total_tokens_used = total_tokens_used + 42,
last_activity_at = CURRENT_TIMESTAMP WHERE id = {ROW_ID.format(':i')};
COMMIT;
''',
}


class Postgres(Process):
    """The server; `is_there` is false, and `why` says why, when none can be started."""

    def __init__(self, folder):
        super().__init__('PostgreSQL', '')
        self.folder, self.made = folder, 0

    def start(self):
        os.chmod(self.folder, 0o755)  # as root, the server runs as another user
        self.child = subprocess.Popen([os.path.join(TOP, 'tests/support/pg_cluster'), '--fsync', '--data', self.folder,
                                       '--', f'max_connections={CONNECTIONS + 20}', 'shared_buffers=128MB', 'max_wal_size=1GB'],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.child.stdout.readline().strip()
        self.is_there = bool(self.url)
        self.why = '' if self.is_there else self.child.stderr.read().strip()
        return self

    def pids(self):
        return tree(self.child.pid)[1:]

    def cpu(self):
        """With those that have ended: connections come and go."""
        pids = self.pids()
        with open(f'/proc/{pids[0]}/stat', encoding='ascii') as file:
            fields = file.read().rsplit(')', 1)[1].split()
        return cpu_seconds(pids) + (int(fields[13]) + int(fields[14])) / TICKS

    def sql(self, url, text):
        subprocess.run(['psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', url, '-c', text], check=True, stdout=subprocess.DEVNULL)

    def database(self):
        self.made += 1
        self.sql(self.url, f'CREATE DATABASE bench_{self.made}')
        return self.url.replace('/postgres?', f'/bench_{self.made}?')

    def stop(self):
        if self.child and self.child.poll() is None:
            self.child.stdin.close()
            self.child.wait()


class Registry(Holdfast):
    """Holdfast with nothing behind it, on SQLite or on the database at `url`."""

    def __init__(self, folder, store, url=None):
        Process.__init__(self, f'holdfast, {store}', '')
        self.store = store
        self.folder = os.path.join(folder, 'registry-' + store)
        self.log = os.path.join(self.folder, 'log')
        self.ids = os.path.join(self.folder, 'ids')
        self.config = {'mcpServers': {}, 'holdfast': {'session': {'limits': {'max_per_tenant': MOST}}}}
        self.env = {'DATABASE_URL': url} if url else {}

    def run(self, kind, *beside, **options):
        command = [os.path.join(BUILD, 'bench/bench_rest'), str(self.port), kind]
        for name, value in options.items():
            command += [f'--{name}', str(value)]
        return measured(command, self, *beside)


class Pgbench:
    """64 clients of the server itself, in a database that holds our schema and the sessions to be read."""

    def __init__(self, folder, server):
        self.name, self.store, self.server = 'pgbench', 'pgbench', server
        self.folder = os.path.join(folder, 'pgbench')
        self.url = server.database()
        os.makedirs(self.folder)
        subprocess.run([Holdfast.binary, 'db', 'migrate', '--data', self.folder],
                       env={**os.environ, 'DATABASE_URL': self.url}, check=True, stdout=subprocess.DEVNULL)
        one = CREATE.format(id=ROW_ID.format('i'), name=NAME.format('i'), most=MOST)
        server.sql(self.url, f'{one} FROM generate_series(1, {SESSIONS}) i')
        server.sql(self.url, 'VACUUM ANALYZE')
        for kind, script in SCRIPTS.items():
            with open(os.path.join(self.folder, kind), 'w', encoding='utf-8') as file:
                file.write(script)

    def latencies(self):
        found = []
        for path in glob.glob(os.path.join(self.folder, 'log.*')):
            with open(path, encoding='ascii') as file:
                found += [int(line.split()[2]) for line in file]
            os.unlink(path)
        return sorted(found) or [0]

    def run(self, kind, seconds):
        programs = sorted(glob.glob('/usr/lib/postgresql/*/bin/pgbench')) or ['pgbench']
        child = subprocess.Popen([programs[-1], '-n', '-M', 'prepared', '-c', str(CONNECTIONS), '-j', '2', '-T', str(seconds + 1), '-P', '1',
                                  '-f', os.path.join(self.folder, kind), '-l', '--log-prefix', os.path.join(self.folder, 'log'),
                                  '--sampling-rate', '0.2', self.url],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        marks, said = [], ''
        for line in child.stderr:
            said += line
            progress = re.match(r'progress: ([\d.]+) s, ([\d.]+) tps', line)
            if progress:
                marks.append((float(progress[1]), float(progress[2]), self.server.cpu()))
        if child.wait() != 0 or len(marks) < 2:
            raise SystemExit(f'pgbench failed: {said}')
        calls = sum((b[0] - a[0]) * b[1] for a, b in zip(marks, marks[1:]))
        took = self.latencies()
        return {'calls': calls, 'per_s': calls / (marks[-1][0] - marks[0][0]), 'cpu_us': 0.0,
                'beside_us': (marks[-1][2] - marks[0][2]) * 1e6 / max(1.0, calls),
                'p50_us': took[len(took) // 2], 'p99_us': took[len(took) * 99 // 100], 'foreign': 0.0}


def verdict(kind, subject, runs):
    bar = BARS.get((kind, subject.store))
    if not bar:
        return '–'
    reached = statistics.median(r['per_s'] for r in runs)
    return f"≥ {bar[0]:,}: {'met' if reached >= bar[0] else 'missed'} (we mean {bar[1]:,})"


def stores(folder, running):
    """Holdfast on each store there is, and the server, or None."""
    server = Postgres(folder).start()
    running.append(server)
    subjects = [Registry(folder, 'SQLite')]
    if server.is_there:
        subjects.append(Registry(folder, 'PostgreSQL', server.database()))
    for one in subjects:
        running.append(one.start())
    return subjects, server if server.is_there else None, server.why


def beside_of(subject, server):
    return (server,) if subject.store == 'PostgreSQL' else ()


def compare_kind(report, kind, subjects, server, rounds, seconds):
    runs = {s.name: [] for s in subjects}
    for number in range(rounds):
        for subject in subjects if number % 2 == 0 else reversed(subjects):
            if subject.store == 'pgbench':
                runs[subject.name].append(subject.run(kind, seconds))
            else:
                ids = {} if kind == 'create' else {'ids': subject.ids}
                runs[subject.name].append(subject.run(kind, *beside_of(subject, server), connections=CONNECTIONS, seconds=seconds,
                                                      body=BODY, **ids))
            time.sleep(0.2)
    rows = []
    for subject in subjects:
        mine, other = runs[subject.name], runs.get('pgbench')
        ratio = spread([a['per_s'] / b['per_s'] for a, b in zip(mine, other)], '{:.2f}') if other else '–'
        rows.append([subject.name, spread([r['per_s'] for r in mine], '{:,.0f}'),
                     f"{statistics.median(r['p50_us'] for r in mine):,.0f} / {statistics.median(r['p99_us'] for r in mine):,.0f}",
                     '–' if subject.store == 'pgbench' else spread([r['cpu_us'] for r in mine]),
                     '–' if subject.store == 'SQLite' else spread([r['beside_us'] for r in mine]), ratio,
                     verdict(kind, subject, mine)])
    names = {'create': 'POST /sessions', 'get': f'GET /sessions/{{id}}, {SESSIONS:,} in turn',
             'record': f'POST /sessions/{{id}}/tools, {BODY}-byte bodies, durable'}
    report.table(f'{names[kind]}, {CONNECTIONS} connections',
                 ['subject', 'per s', 'p50 / p99 µs', 'CPU µs, Holdfast', 'CPU µs, PostgreSQL', '× pgbench', 'bar'], rows)
    foreign = max(r['foreign'] for some in runs.values() for r in some)
    report.say(f'\nOther work on the machine: at most {foreign:.0%} of its CPU in any run; load average {os.getloadavg()[0]:.1f}.')


def compare(report, folder, rounds, seconds):
    running = []
    try:
        subjects, server, why = stores(folder, running)
        for one in subjects:
            one.run('create', connections=CONNECTIONS, count=SESSIONS, ids=one.ids)
        if server:
            subjects.append(Pgbench(folder, server))
        else:
            report.say(f'\nPostgreSQL was not measured: {why}')
        for kind in KINDS:
            compare_kind(report, kind, subjects, server, rounds, seconds)
    finally:
        finish(running)


def finish(running):
    for one in reversed(running):
        one.stop()
        if isinstance(one, Registry):
            shutil.rmtree(one.folder, ignore_errors=True)


def seed_load(report, folder, quick):
    """1,000 sessions in a tenant, 10,000 executions over them, then sessions that come and go."""
    running, rows = [], []
    steps = [('create', {'count': SESSIONS}), ('record', {'count': 10 * SESSIONS, 'body': BODY}), ('get', {'count': 10 * SESSIONS}),
             ('end', {'count': SESSIONS}), ('churn', {'seconds': 1 if quick else 5})]
    try:
        subjects, server, why = stores(folder, running)
        if not server:
            report.say(f'\nPostgreSQL was not measured: {why}')
        for subject in subjects:
            for step, options in steps:
                ids = {} if step == 'churn' else {'ids': subject.ids}
                result = subject.run(step, *beside_of(subject, server), connections=CONNECTIONS, **options, **ids)
                for kind, figures in result['kinds'].items():
                    rows.append([subject.name, kind if step == kind else f'{kind}, in turn', f"{figures['calls']:,}", f"{figures['per_s']:,.0f}",
                                 f"{figures['p50_us'] / 1000:,.2f}", f"{figures['p99_us'] / 1000:,.2f}", f"{result['cpu_us'] + result['beside_us']:.0f}"])
    finally:
        finish(running)
    report.table(f'Load: {SESSIONS:,} sessions in a tenant, {10 * SESSIONS:,} executions, sessions made and ended; {CONNECTIONS} connections',
                 ['subject', 'kind', 'calls', 'per s', 'p50 ms', 'p99 ms', 'CPU µs, all processes'], rows)
    report.say(f'\nLoad average {os.getloadavg()[0]:.1f}.')


def idle_sessions(subject, count, store, make):
    """A row: what `count` sessions cost, and a start with them."""
    subject.start()
    wait_idle(subject)
    empty = private_kib(subject.pids())
    made = make()
    wait_idle(subject)
    full = private_kib(subject.pids())
    subject.stop()
    subject.start()
    again = subject.start_ms
    wait_idle(subject)
    fresh = private_kib(subject.pids())
    subject.stop()
    shutil.rmtree(subject.folder)
    return [f'{count:,}', store, f"{made['per_s']:,.0f}", f'{empty / 1024:.1f}', f'{full / 1024:.1f}',
            f'{(full - empty) / count:.2f}', f'{again:.0f}', f'{fresh / 1024:.1f}']


def rest_sessions(report, folder, count):
    """Rows: the same by REST, on each store."""
    def row(subject):
        return idle_sessions(subject, count, f'{subject.store}, by REST',
                             lambda: subject.run('create', connections=CONNECTIONS, count=count))
    rows = [row(Registry(folder, 'SQLite'))]
    server = Postgres(folder).start()
    try:
        if server.is_there:
            rows.append(row(Registry(folder, 'PostgreSQL', server.database())))
        else:
            report.say(f'\nPostgreSQL was not measured: {server.why}')
    finally:
        server.stop()
    return rows
