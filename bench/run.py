#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""run.py [--quick] [--save] [--only calls,bodies,single,eras,sessions,streams,start]: what Holdfast costs, beside nginx.

Everything runs on this machine over loopback: one upstream (bench_upstream), one load (bench_load),
and between them, in turn and in alternating order, nothing (direct), nginx as a plain proxy, Holdfast
without audit and Holdfast with durable audit.  CPU per call is utime + stime of all processes of the
subject over the measured window, divided by the calls in it; ratios are taken against the nginx run of
the same round, so that a slow minute of the machine hits both.  Data lies on the disk of the checkout,
never on tmpfs, or the audit would cost nothing.  --save writes bench/results.md."""
import argparse
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(TOP, 'build')
TICKS = os.sysconf('SC_CLK_TCK')
PARTS = ('calls', 'bodies', 'single', 'eras', 'sessions', 'streams', 'start')
MOST_STREAMS = 10000

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
    def __init__(self, folder, name, upstream, audit=None, era='legacy'):
        super().__init__(name, '/mcp/up')
        self.folder = os.path.join(folder, name.replace(' ', '-'))
        self.log = os.path.join(self.folder, 'log')
        entry = {'url': f'http://127.0.0.1:{upstream.port}/mcp', 'era': era, 'handles': 'never'}
        if audit:
            entry['audit'] = audit
        self.config = {'mcpServers': {'up': entry}, 'holdfast': {}}

    def start(self):
        os.makedirs(self.folder, exist_ok=True)
        config = os.path.join(self.folder, 'holdfast.json')
        with open(config, 'w', encoding='utf-8') as file:
            json.dump(self.config, file)
        self.port = self.port or free_port()
        began = time.monotonic()
        # The log goes through a pipe: a subject that chatters pays for it.
        self.child = subprocess.Popen([os.path.join(BUILD, 'holdfast'), 'up', '--config', config, '--data',
                                       os.path.join(self.folder, 'data'), '--listen', f'127.0.0.1:{self.port}'],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        threading.Thread(target=self.keep_log, args=(self.child.stderr,), daemon=True).start()
        wait_until(lambda: self.ready(), self.name, pause=0.001)
        self.start_ms = (time.monotonic() - began) * 1000
        return self

    def keep_log(self, pipe):
        with open(self.log, 'ab') as file:
            for line in pipe:
                file.write(line)

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


def load(subject, upstream, **options):
    """One run: the load's own figures, and CPU of the subject between its marks."""
    command = [os.path.join(BUILD, 'bench/bench_load'), str(subject.port), subject.path]
    for name, value in options.items():
        command += [f'--{name}', str(value)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    ours = subject.pids()
    all_ours = set(ours) | set(upstream.pids()) | {child.pid, os.getpid()}
    before = after = busy = known = 0.0
    result = None
    for line in child.stdout:
        if line == 'begin\n':
            before, busy, known = cpu_seconds(ours), machine_busy_seconds(), cpu_seconds(all_ours)
        elif line == 'end\n':
            after = cpu_seconds(ours)
            busy, known = machine_busy_seconds() - busy, cpu_seconds(all_ours) - known
        else:
            result = json.loads(line)
    if child.wait() != 0 or result is None or result['errors']:
        sys.exit(f'{subject.name}: the run failed: {result}')
    if 'calls' in result:
        result['cpu_us'] = (after - before) * 1e6 / max(1, result['calls'])
        result['foreign'] = max(0.0, busy - known) / (result['seconds'] * (os.cpu_count() or 1))
    return result


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


def compare(report, title, subjects, upstream, rounds, note='', **options):
    """Alternating runs of all subjects; the order turns round each time."""
    runs = {s.name: [] for s in subjects}
    for number in range(rounds):
        for subject in subjects if number % 2 == 0 else reversed(subjects):
            runs[subject.name].append(load(subject, upstream, **options))
            time.sleep(0.2)
    rows = []
    for subject in subjects:
        mine, nginx = runs[subject.name], runs['nginx']
        ratio = [a['cpu_us'] / b['cpu_us'] for a, b in zip(mine, nginx) if b['cpu_us']] or [0]
        cpu = '–' if subject.name == 'direct' else spread([r['cpu_us'] for r in mine])
        rows.append([subject.name, spread([r['per_s'] for r in mine], '{:,.0f}'),
                     f"{statistics.median(r['p50_us'] for r in mine):,.0f} / {statistics.median(r['p99_us'] for r in mine):,.0f}",
                     cpu, '–' if subject.name == 'direct' else spread(ratio, '{:.2f}')])
    foreign = max(r['foreign'] for some in runs.values() for r in some)
    report.table(title, ['subject', 'calls/s', 'p50 / p99 µs', 'CPU µs per call', '× nginx'], rows)
    report.say(f'\nOther work on the machine: at most {foreign:.0%} of its CPU in any run.' + (f' {note}' if note else ''))


def compare_eras(report, folder, subjects, upstream, running, rounds, **options):
    """The same call in both eras, and from one to the other, beside nginx with the same bytes."""
    legacy_up, nginx = {s.name: s for s in subjects}, subjects[1]
    modern_up = {}
    for name, audit in (('holdfast audit off', 'none'), ('holdfast audit on', None)):
        modern_up[name] = Holdfast(folder, name + ' modern', upstream, audit, 'modern').start()
        running.append(modern_up[name])
    hops = [('nginx: legacy', nginx, 0), ('nginx: modern', nginx, 1)]
    for name in modern_up:
        hops += [(name + ': legacy → legacy', legacy_up[name], 0), (name + ': modern → modern', modern_up[name], 1)]
        if name.endswith('off'):
            hops += [(name + ': legacy → modern', modern_up[name], 0), (name + ': modern → legacy', legacy_up[name], 1)]
    runs = {name: [] for name, _, _ in hops}
    for number in range(rounds):
        for name, subject, modern in hops if number % 2 == 0 else reversed(hops):
            runs[name].append(load(subject, upstream, modern=modern, **options))
            time.sleep(0.2)

    def ratio(name, other):
        return spread([a['cpu_us'] / b['cpu_us'] for a, b in zip(runs[name], runs[other]) if b['cpu_us']] or [0], '{:.2f}')
    rows = []
    for name, subject, modern in hops:
        mine, same = runs[name], subject.name.replace(' modern', '')
        base = 'nginx: legacy' if subject is nginx else same + ': legacy → legacy'
        rows.append([name, spread([r['per_s'] for r in mine], '{:,.0f}'),
                     f"{statistics.median(r['p50_us'] for r in mine):,.0f} / {statistics.median(r['p99_us'] for r in mine):,.0f}",
                     spread([r['cpu_us'] for r in mine]), ratio(name, 'nginx: modern' if modern else 'nginx: legacy'),
                     '–' if name == base else ratio(name, base)])
    report.table('tools/call in both eras (client → upstream), 504-byte bodies, 64 connections',
                 ['hop', 'calls/s', 'p50 / p99 µs', 'CPU µs per call', '× nginx, same bytes', '× legacy → legacy'], rows)


def measure_streams(report, folder, upstream, counts):
    """Idle GET streams: what each costs, and how soon all of them hear of a change."""
    rows = []
    for count in counts:
        subject = Holdfast(folder, f'holdfast {count} streams', upstream, 'none').start()
        settle(subject)
        empty = private_kib(subject.pids())
        child = subprocess.Popen([os.path.join(BUILD, 'bench/bench_streams'), str(subject.port), subject.path, str(count)],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        first = child.stdout.readline().split()
        if first[:1] != ['open']:
            status = child.wait()
            subject.stop()
            if status != 3:
                sys.exit(f'{subject.name}: the run failed')
            report.say('\nStreams were not measured: GET /mcp/{server} is not served.')
            return
        settle(subject)
        full = private_kib(subject.pids())
        rounds = []
        for _ in range(5):
            child.stdin.write('change\n')
            child.stdin.flush()
            rounds.append(json.loads(child.stdout.readline()))
        child.stdin.close()
        child.wait()
        subject.stop()
        rows.append([f'{count:,}', f'{count / float(first[1]):,.0f}', f'{empty / 1024:.1f}', f'{full / 1024:.1f}',
                     f'{(full - empty) / count:.2f}', *(spread([r[key] / 1000 for r in rounds]) for key in
                                                        ('first_us', 'middle_us', 'last_us'))])
        shutil.rmtree(subject.folder)
    report.table('Idle GET streams, a session each, and one list_changed of the upstream to all of them',
                 ['streams', 'opened/s', 'MiB before', 'MiB after', 'KiB per stream', 'first ms', 'half ms', 'all ms'], rows)


def settle(subject):
    """Waits until the subject's CPU rests, so that memory is that of an idle process."""
    for _ in range(100):
        before = cpu_seconds(subject.pids())
        time.sleep(0.3)
        if cpu_seconds(subject.pids()) - before <= 1 / TICKS:
            return


def measure_sessions(report, folder, upstream, counts):
    rows = []
    for count in counts:
        subject = Holdfast(folder, f'holdfast {count} sessions', upstream).start()
        settle(subject)
        empty = private_kib(subject.pids())
        made = load(subject, upstream, connections=64, sessions=count)
        settle(subject)
        full = private_kib(subject.pids())
        subject.stop()
        subject.start()
        again = subject.start_ms
        settle(subject)
        fresh = private_kib(subject.pids())
        subject.stop()
        rows.append([f'{count:,}', f"{made['per_s']:,.0f}", f'{empty / 1024:.1f}', f'{full / 1024:.1f}',
                     f'{(full - empty) / count:.2f}', f'{again:.0f}', f'{fresh / 1024:.1f}'])
        shutil.rmtree(subject.folder)
    report.table('Idle sessions (made by initialize, private memory of all processes)',
                 ['sessions', 'initialize/s', 'MiB before', 'MiB after', 'KiB per session', 'restart ms', 'MiB after restart'], rows)
    report.say('\nBars: ≤ 6 MiB idle, ≤ 2 KiB per session, 100,000 sessions ≤ 256 MiB, restart with them ≤ 2,000 ms.')


def measure_start(report, folder, upstream):
    times = []
    for number in range(7):
        subject = Holdfast(folder, f'start {number}', upstream).start()
        times.append(subject.start_ms)
        subject.stop()
    report.table('Start (spawn to the first 200 of /readyz, empty data directory)', ['ms'], [[spread(times)]])
    report.say('\nBar: ≤ 50 ms.')


def measure(args, report, folder, running):
    quick = args.quick
    rounds, seconds = (2, 1) if quick else (5, 5)
    upstream = Upstream('direct', '/mcp').start()
    running.append(upstream)
    subjects = [upstream]
    if {'calls', 'bodies', 'single', 'eras'} & set(args.only):
        for one in (Nginx(folder, upstream), Holdfast(folder, 'holdfast audit off', upstream, 'none'),
                    Holdfast(folder, 'holdfast audit on', upstream)):
            running.append(one)
            subjects.append(one.start())
    if 'calls' in args.only:
        for connections, bars in ((64, 'Bars: ≤ 1.0 × with audit off, ≤ 1.7 × with audit on; ≥ 10,000 calls/s.'),
                                  (256, 'Bar: ≤ 1.5 × with audit on.')):
            compare(report, f'tools/call, 504-byte bodies, {connections} connections', subjects, upstream, rounds, bars,
                    connections=connections, seconds=seconds, body=504)
    if 'bodies' in args.only:
        compare(report, 'tools/call, 46 KB bodies, 64 connections', subjects, upstream, 1 if quick else 3,
                connections=64, seconds=1 if quick else 3, body=46000)
    if 'single' in args.only:
        compare(report, 'tools/call, 504-byte bodies, 1 connection', subjects, upstream, 1 if quick else 3,
                connections=1, seconds=1 if quick else 3, body=504)
    if 'eras' in args.only:
        compare_eras(report, folder, subjects, upstream, running, rounds, connections=64, seconds=seconds, body=504)
    # Alone from here on: pages that two processes of the program share would not count as private.
    for one in running[1:]:
        one.stop()
    if 'start' in args.only:
        measure_start(report, folder, upstream)
    if 'sessions' in args.only:
        measure_sessions(report, folder, upstream, (1000, 10000) if quick else (10000, 100000))
    if 'streams' in args.only:
        measure_streams(report, folder, upstream, (1000,) if quick else (1000, MOST_STREAMS))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true', help='short runs, for development')
    parser.add_argument('--save', action='store_true', help='write bench/results.md')
    parser.add_argument('--only', default=','.join(PARTS), help='some of ' + ','.join(PARTS))
    args = parser.parse_args()
    args.only = args.only.split(',')
    if [p for p in args.only if p not in PARTS]:
        parser.error('parts are ' + ', '.join(PARTS))
    os.makedirs(os.path.join(TOP, '.cache'), exist_ok=True)
    kind = filesystem_of(os.path.join(TOP, '.cache'))
    if kind in ('tmpfs', 'ramfs'):
        sys.exit(f'{TOP} is on {kind}: durable writes would cost nothing there. Measure from a checkout on a disk.')
    folder, running, report = tempfile.mkdtemp(prefix='bench-', dir=os.path.join(TOP, '.cache')), [], Report()
    report.say('# Benchmark\n')
    report.say(f"{os.cpu_count()} cores, Linux {platform.release()}, data on {kind}; {time.strftime('%Y-%m-%d')}; "
               f"{'quick runs' if args.quick else '5 alternating runs of 5 s'}. "
               'Medians [min..max]; ratios are to nginx in the same round.')
    try:
        measure(args, report, folder, running)
    finally:
        for one in reversed(running):
            one.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if args.save:
        with open(os.path.join(TOP, 'bench/results.md'), 'w', encoding='utf-8') as file:
            file.write('\n'.join(report.lines) + '\n')


if __name__ == '__main__':
    main()
