# SPDX-License-Identifier: Apache-2.0
"""What an audited call costs while something else works on the record: a watcher reads along, retention removes, traces are sent.

Each subject is the same Holdfast with durable audit, its ratio is to the one without any of this in the same round.  The watcher
and the collector are processes of their own, whose CPU is not counted.  Retention has a size limit far below what the load writes, so it
removes the calls of this very load, and its ratio is of seconds in which it removed something."""
import functools
import subprocess
import sys
import time
import urllib.request

from subjects import Holdfast, load, spread, take_turns

CONNECTIONS = 64

# Reads whatever comes, as fast as it comes.
WATCHER = '''
import socket, sys
line = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
line.sendall(b'GET /api/v1/events' + sys.argv[2].encode() + b' HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')
room = bytearray(1 << 20)
assert b' 200 ' in line.recv(4096)
print('open', flush=True)
while line.recv_into(room):
    pass
'''

# Takes every batch.
COLLECTOR = '''
import http.server
class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_POST(self):
        self.rfile.read(int(self.headers['Content-Length']))
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Collector)
print(server.server_port, flush=True)
server.serve_forever()
'''


class Helper:
    """A process beside the subjects."""

    def __init__(self, program, *args):
        self.child = subprocess.Popen([sys.executable, '-c', program, *map(str, args)], stdout=subprocess.PIPE, text=True)
        self.said = self.child.stdout.readline().strip()
        if not self.said:
            sys.exit('a process beside the subjects did not start')

    def stop(self):
        self.child.kill()
        self.child.wait()


def metrics(subject):
    with urllib.request.urlopen(f'http://127.0.0.1:{subject.port}/metrics', timeout=10) as reply:
        lines = [line.rsplit(' ', 1) for line in reply.read().decode().splitlines() if line[:1] != '#']
    return {name: float(value) for name, value in lines}


REMOVED = [f'holdfast_retention_{what}_total' for what in ('events', 'bodies')]


def removing(subject, upstream, **options):
    """A run in which retention removed something.  While it rests, because all is gone that had to go, the load goes on."""
    for _ in range(120):
        before = metrics(subject)
        result = load(subject, upstream, **options)
        after = metrics(subject)
        removed = sum(after[name] - before[name] for name in REMOVED)
        if removed:
            subject.removed.append(removed / result['calls'])
            return result
    sys.exit('retention removed nothing within two minutes')


def measure(report, folder, upstream, rounds, seconds):
    beside, subjects = [], {}

    def subject(name, **options):
        subjects[name] = one = Holdfast(folder, name, upstream)
        one.config['holdfast'] = options
        one.removed = []
        return one.start()
    try:
        collector = Helper(COLLECTOR)
        beside.append(collector)
        subject('nothing')
        beside.append(Helper(WATCHER, subject('a watcher of all events').port, ''))
        beside.append(Helper(WATCHER, subject('a watcher of failures').port, '?types=outcome&outcome=tool_error,error,timeout'))
        subject('traces', otlp={'url': f'http://127.0.0.1:{collector.said}'})
        retention = subject('retention', audit={'max_size': '1MiB'})
        runners = {name: functools.partial(removing if one is retention else load, one, upstream, connections=CONNECTIONS, body=504)
                   for name, one in subjects.items()}
        runs = take_turns(runners, rounds, seconds)
    finally:
        for one in (*beside, *subjects.values()):
            one.stop()
    rows = []
    for name, mine in runs.items():
        ratio = [a['cpu_us'] / b['cpu_us'] for a, b in zip(mine, runs['nothing'])]
        rows.append([name, spread([r['per_s'] for r in mine], '{:,.0f}'), spread([r['cpu_us'] for r in mine]),
                     '–' if name == 'nothing' else spread(ratio, '{:.3f}')])
    report.table(f'An audited call ({CONNECTIONS} connections, 504-byte bodies) while something else works on the record',
                 ['beside it', 'calls/s', 'CPU µs per call', '× nothing'], rows)
    report.say(f'\nA call writes 2 events and 2 bodies; retention removed {spread(retention.removed)} of either per call. Bar: ≤ 1.05.')
