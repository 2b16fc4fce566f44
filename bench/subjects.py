# SPDX-License-Identifier: Apache-2.0
"""What is measured, and how: subjects and their loads as processes, their CPU and memory, and the report."""
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(TOP, 'build')  # of the loads and the upstream
TICKS = os.sysconf('SC_CLK_TCK')

NGINX = '''
worker_processes 1; daemon off; error_log {dir}/error.log; pid {dir}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
    access_log off; keepalive_requests 100000000; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
    client_body_buffer_size 256k; proxy_buffers 16 32k; proxy_buffer_size 32k; proxy_busy_buffers_size 64k;
    upstream up {{ server 127.0.0.1:{upstream}; keepalive 512; keepalive_requests 100000000; }}
    server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; }} }}
}}
'''


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def filesystem_of(path):
    best = ('', '')
    with open('/proc/mounts', encoding='utf-8') as mounts:
        for line in mounts:
            _, where, kind = line.split()[:3]
            if (path + '/').startswith(where.rstrip('/') + '/') and len(where) >= len(best[0]):
                best = (where, kind)
    return best[1]


def tree(pid):
    """The process and all its descendants."""
    found = [pid]
    for one in found:
        try:
            for task in os.listdir(f'/proc/{one}/task'):
                with open(f'/proc/{one}/task/{task}/children', encoding='ascii') as file:
                    found += [int(p) for p in file.read().split()]
        except OSError:
            pass
    return found


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        try:
            with open(f'/proc/{pid}/stat', encoding='ascii') as file:
                fields = file.read().rsplit(')', 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total / TICKS


def machine_busy_seconds():
    with open('/proc/stat', encoding='ascii') as file:
        fields = [int(x) for x in file.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS


def private_kib(pids):
    total = 0
    for pid in pids:
        try:
            with open(f'/proc/{pid}/smaps_rollup', encoding='ascii') as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith('Private_'))
        except OSError:
            pass
    return total


class Process:
    """A subject: something that listens on `port` and is ended with the benchmark."""

    def __init__(self, name, path):
        self.name, self.path, self.port, self.child = name, path, 0, None

    def pids(self):
        return tree(self.child.pid)

    def cpu(self):
        return cpu_seconds(self.pids())

    def stop(self):
        if self.child and self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(20)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()


class Upstream(Process):
    def start(self):
        self.child = subprocess.Popen([os.path.join(BUILD, 'bench/bench_upstream')], stdout=subprocess.PIPE)
        self.port = int(self.child.stdout.readline().split()[1])
        return self


class Nginx(Process):
    def __init__(self, folder, upstream):
        super().__init__('nginx', '/mcp')
        self.folder, self.upstream = os.path.join(folder, 'nginx'), upstream

    def start(self):
        os.makedirs(self.folder)
        self.port = free_port()
        config = os.path.join(self.folder, 'nginx.conf')
        with open(config, 'w', encoding='utf-8') as file:
            file.write(NGINX.format(dir=self.folder, upstream=self.upstream.port, port=self.port))
        binary = shutil.which('nginx') or '/usr/sbin/nginx'
        self.child = subprocess.Popen([binary, '-p', self.folder, '-c', config], stderr=subprocess.DEVNULL)
        wait_until(lambda: answers(f'http://127.0.0.1:{self.port}/'), 'nginx')
        return self

    def pids(self):
        return tree(self.child.pid)[1:]  # the worker; the master does nothing


class Holdfast(Process):
    binary = os.path.join(TOP, 'build-release/holdfast')  # what `make install` installs

    def __init__(self, folder, name, upstream, audit=None, era='legacy'):
        super().__init__(name, '/mcp/up')
        self.folder = os.path.join(folder, name.replace(' ', '-'))
        self.log = os.path.join(self.folder, 'log')
        entry = {'url': f'http://127.0.0.1:{upstream.port}/mcp', 'era': era, 'handles': 'never'}
        if audit:
            entry['audit'] = audit
        self.config = {'mcpServers': {'up': entry}, 'holdfast': {}}
        self.env = {}

    def start(self):
        os.makedirs(self.folder, exist_ok=True)
        config = os.path.join(self.folder, 'holdfast.json')
        with open(config, 'w', encoding='utf-8') as file:
            json.dump(self.config, file)
        self.port = self.port or free_port()
        began = time.monotonic()
        # The log goes through a pipe: a subject that chatters pays for it.
        self.child = subprocess.Popen([self.binary, 'up', '--config', config, '--data',
                                       os.path.join(self.folder, 'data'), '--listen', f'127.0.0.1:{self.port}'],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                      env={**{k: v for k, v in os.environ.items() if k != 'DATABASE_URL'}, **self.env})
        threading.Thread(target=self.keep_log, args=(self.child.stderr,), daemon=True).start()
        wait_until(lambda: self.ready(), self.name, pause=0.001)
        self.start_ms = (time.monotonic() - began) * 1000
        return self

    def keep_log(self, pipe):
        with open(self.log, 'ab') as file:
            for line in pipe:
                file.write(line)

    def create_key(self, *flags):
        done = subprocess.run([self.binary, 'key', 'create', '--data', os.path.join(self.folder, 'data'), *flags],
                              capture_output=True, text=True, check=True, timeout=20)
        return done.stdout.strip()

    def ready(self):
        if self.child.poll() is not None:
            sys.exit(f'{self.name} ended with {self.child.returncode}; its log is {self.log}')
        return answers(f'http://127.0.0.1:{self.port}/readyz', want_ok=True)


def answers(url, want_ok=False):
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except urllib.error.HTTPError:
        return not want_ok
    except OSError:
        return False


def wait_until(condition, what, pause=0.01, timeout=30):
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            sys.exit(f'{what} did not come up within {timeout} s')
        time.sleep(pause)


def measured(command, subject, *beside):
    """One run of a load: its own figures, and CPU of the subject between its marks.  CPU of what works
    beside it is told too; of all else on the machine, as `foreign`."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    watched = (subject, *beside)

    def now():
        used = [one.cpu() for one in watched]
        return used, machine_busy_seconds() - sum(used) - cpu_seconds({child.pid, os.getpid()})
    before = after = None
    result = None
    for line in child.stdout:
        if line == 'begin\n':
            before = now()
        elif line == 'end\n':
            after = now()
        else:
            result = json.loads(line)
    if child.wait() != 0 or result is None or result['errors']:
        sys.exit(f'{subject.name}: the run failed: {result}')
    if 'calls' in result and after:
        each = [(b - a) * 1e6 / max(1, result['calls']) for a, b in zip(before[0], after[0])]
        result['cpu_us'], result['beside_us'] = each[0], sum(each[1:])
        result['foreign'] = max(0.0, after[1] - before[1]) / (result['seconds'] * (os.cpu_count() or 1))
    return result


def load_command(subject, options):
    command = [os.path.join(BUILD, 'bench/bench_load'), str(subject.port), subject.path]
    for name, value in options.items():
        command += [f'--{name}', str(value)]
    return command


def start_load(subject, **options):
    """A load that runs beside another; end_load() waits for it."""
    return subprocess.Popen(load_command(subject, options), stdout=subprocess.PIPE, text=True)


def end_load(child):
    lines = child.communicate(timeout=120)[0].splitlines()
    result = json.loads(lines[-1])
    if result['errors']:
        sys.exit(f'the noise failed: {result}')
    return result


def load(subject, upstream, *beside, **options):
    return measured(load_command(subject, options), subject, *(() if subject is upstream else (upstream,)), *beside)


def joined(pieces):
    """The pieces of one run as one: sums of what was counted, medians of what was timed."""
    calls = sum(p['calls'] for p in pieces)
    whole = {name: statistics.median(p[name] for p in pieces) for name in ('p50_us', 'p99_us')}
    return {**whole, 'per_s': calls / sum(p['seconds'] for p in pieces), 'foreign': statistics.mean(p['foreign'] for p in pieces),
            'cpu_us': sum(p['cpu_us'] * p['calls'] for p in pieces) / calls}


def take_turns(runners, rounds, seconds):
    """Runs of `seconds` of each, a second of each in turn; the order turns round each time.  `runners`: name → a run, given its length."""
    runs = {name: [] for name in runners}
    for turn in range(rounds):
        pieces = {name: [] for name in runners}
        for number in range(turn * seconds, (turn + 1) * seconds):
            for name in runners if number % 2 == 0 else reversed(runners):
                pieces[name].append(runners[name](seconds=1, warmup=0.3))
                time.sleep(0.1)
        for name, some in pieces.items():
            runs[name].append(joined(some))
    return runs


class Awake:
    """Keeps every processor awake: a loop on each that runs only when nothing else wants to (SCHED_IDLE).  The processors of a
    virtual machine are lent to others while they rest, and come back with cold caches; here they never rest."""

    def __enter__(self):
        def run_idle_on(processor):
            os.sched_setaffinity(0, {processor})
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        self.children = [subprocess.Popen([sys.executable, '-S', '-E', '-c', 'while True: pass'], preexec_fn=lambda at=at: run_idle_on(at))
                         for at in sorted(os.sched_getaffinity(0))]
        return self

    def __exit__(self, *_):
        for child in self.children:
            child.kill()
            child.wait()

    def cpu(self):
        return cpu_seconds({child.pid for child in self.children})


def spread(values, form='{:.1f}'):
    return form.format(statistics.median(values)) + ' [' + form.format(min(values)) + '..' + form.format(max(values)) + ']'


class Report:
    def __init__(self):
        self.lines = []

    def say(self, text=''):
        print(text, flush=True)
        self.lines.append(text)

    def table(self, title, head, rows):
        self.say(f'\n## {title}\n')
        self.say('| ' + ' | '.join(head) + ' |')
        self.say('|' + '---|' * len(head))
        for row in rows:
            self.say('| ' + ' | '.join(row) + ' |')


def wait_idle(subject):
    """Waits until the subject's CPU rests, so that memory is that of an idle process."""
    for _ in range(100):
        before = cpu_seconds(subject.pids())
        time.sleep(0.3)
        if cpu_seconds(subject.pids()) - before <= 1 / TICKS:
            return
