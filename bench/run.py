#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""run.py [--quick] [--against PROGRAM] [--save] [--only PARTS] [--sweep]:
what Holdfast costs, beside nginx and PostgreSQL, and how well find finds.

Everything runs on this machine over loopback: one upstream (bench_upstream), one load (bench_load),
and between them, in turn and in alternating order, nothing (direct), nginx as a plain proxy, Holdfast
without audit and Holdfast with durable audit.  A run of several seconds is measured a second of each at a time, as the speed of a
shared machine changes within seconds, and by more than what is to be told apart.  CPU per call is utime + stime of all processes of the
subject over the measured window, divided by the calls in it; ratios are taken against the nginx run of
the same round, so that a slow minute of the machine hits both.  Data lies on the disk of the checkout,
never on tmpfs, or the audit would cost nothing.  Calls are measured twice: as they come, and with every processor
kept awake.  Audited calls wait for the disk together; a virtual machine's processors are lent to others meanwhile,
and what they then pay for cold caches is the host's doing, which the second table leaves out.  The registry (registry.py) is measured on SQLite and on
PostgreSQL, beside pgbench that runs the same statements on the same server; documents (documents.py) beside
ripgrep and GNU grep.  find (find.py) needs nothing but the program; --sweep tries other weights for it.  --save writes bench/results.md."""
import argparse
import functools
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import documents
import find
import record
import registry
import watchers
from subjects import (BUILD, TOP, Awake, Holdfast, Nginx, Report, Upstream, end_load, filesystem_of, load, private_kib, spread, start_load,
                      take_turns, wait_idle)

PARTS = ('calls', 'text', 'bodies', 'single', 'eras', 'registry', 'seedload', 'noisy', 'docs', 'sessions', 'streams', 'watchers', 'record', 'start', 'find')
MOST_STREAMS = 10000


def compare(report, title, subjects, upstream, rounds, note='', beside=(), seconds=1, **options):
    """Alternating runs of all subjects."""
    runs = take_turns({s.name: functools.partial(load, s, upstream, *beside, **options) for s in subjects}, rounds, seconds)
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


def compare_programs(report, folder, upstream, running, earlier, rounds, seconds):
    """CPU per call of this build over that of an earlier one, each against nginx of the same second.  An interval that holds 1.00 says that
    nothing was found."""
    nginx = Nginx(folder, upstream)
    new = [Holdfast(folder, f'holdfast audit {word}', upstream, audit) for word, audit in (('off', 'none'), ('on', None))]
    old = [Holdfast(folder, f'earlier audit {word}', upstream, audit) for word, audit in (('off', 'none'), ('on', None))]
    for one in old:
        one.binary = earlier
    for one in (nginx, *new, *old):
        running.append(one)
        one.start()
    rows = []
    for connections in (64, 256, 512):
        runs = take_turns({s.name: functools.partial(load, s, upstream, connections=connections, body=504) for s in (nginx, *new, *old)},
                          rounds, seconds)
        for mine, theirs in zip(new, old):
            ours, before = ([a['cpu_us'] / b['cpu_us'] for a, b in zip(runs[s.name], runs['nginx'])] for s in (mine, theirs))
            change = [a / b for a, b in zip(ours, before)]
            rows.append([f'{connections}, {mine.name[9:]}', spread(before, '{:.2f}'), spread(ours, '{:.2f}'), spread(change, '{:.2f}'),
                         f'{statistics.mean(change):.3f} ± {1.96 * statistics.stdev(change) / len(change) ** 0.5:.3f}'])
    report.table(f'CPU per call beside an earlier program, {rounds} rounds of {seconds} s',
                 ['connections', 'earlier × nginx', 'now × nginx', 'now / earlier', 'mean, 95 %'], rows)


def compare_eras(report, folder, subjects, upstream, running, rounds, seconds, **options):
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
    runs = take_turns({name: functools.partial(load, subject, upstream, modern=modern, **options) for name, subject, modern in hops},
                      rounds, seconds)

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


def measure_noisy(report, folder, upstream, rounds, seconds):
    """A tenant that asks for ten times its quota, beside one that does not: what the second one notices."""
    quota, quiet_rate = 500, 200
    subject = Holdfast(folder, 'holdfast noisy', upstream)
    subject.config['holdfast'] = {'tenants': {'noisy': {'limits': {'requests': f'{quota}/s'}}}}
    subject.start()
    try:
        keys = {name: subject.create_key('--tenant', tenant) for name, tenant in
                (('quiet', 'quiet'), ('noisy', 'noisy'), ('unlimited', 'free'))}
        runs = {'alone': [], 'noise, limited': [], 'noise, unlimited': []}
        noise = {'noise, limited': 'noisy', 'noise, unlimited': 'unlimited'}
        refused = []
        for number in range(rounds):
            for name in runs if number % 2 == 0 else reversed(runs):
                beside = None
                if name in noise:
                    beside = start_load(subject, key=keys[noise[name]], modern=1, connections=128, rate=10 * quota, body=504,
                                        warmup=0, seconds=seconds + 1.5)
                    time.sleep(0.5)
                runs[name].append(load(subject, upstream, key=keys['quiet'], modern=1, connections=8, rate=quiet_rate, body=504,
                                       warmup=0.3, seconds=seconds))
                if beside:
                    result = end_load(beside)
                    if name == 'noise, limited':
                        refused.append(result['limited'] / max(1, result['calls']))
        rows = []
        for name, mine in runs.items():
            rows.append([name, spread([r['per_s'] for r in mine], '{:,.0f}'),
                         *(spread([r[key] for r in mine], '{:,.0f}') for key in ('p50_us', 'p99_us')),
                         *('–' if name == 'alone' else spread([a[key] / b[key] for a, b in zip(mine, runs['alone'])], '{:.2f}')
                           for key in ('per_s', 'p50_us', 'p99_us'))])
        report.table(f'A quiet tenant ({quiet_rate} calls/s) beside a noisy one at ten times its quota of {quota} calls/s, durable audit on',
                     ['beside it', 'calls/s', 'p50 µs', 'p99 µs', '× calls/s alone', '× p50 alone', '× p99 alone'], rows)
        report.say(f'\nOf the noise {statistics.median(refused):.0%} was refused. Bar: p99 ≤ 1.5 × alone.')
    finally:
        subject.stop()


def measure_streams(report, folder, upstream, counts):
    """Idle GET streams: what each costs, and how soon all of them hear of a change."""
    rows = []
    for count in counts:
        subject = Holdfast(folder, f'holdfast {count} streams', upstream, 'none').start()
        wait_idle(subject)
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
        wait_idle(subject)
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

def measure_sessions(report, folder, upstream, counts):
    rows = []
    for count in counts:
        subject = Holdfast(folder, f'holdfast {count} sessions', upstream)
        rows.append(registry.idle_sessions(subject, count, 'SQLite, by initialize',
                                           lambda s=subject, n=count: load(s, upstream, connections=64, sessions=n)))
        rows += registry.rest_sessions(report, folder, count)
    report.table('Idle sessions (private memory of all processes of Holdfast)',
                 ['sessions', 'store', 'made/s', 'MiB before', 'MiB after', 'KiB per session', 'restart ms', 'MiB after restart'], rows)
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
    if 'find' in args.only and not args.against:
        find.measure(report, folder, args.sweep)
    if args.only == ['find']:
        return
    rounds, seconds = (2, 1) if quick else (5, 5)
    upstream = Upstream('direct', '/mcp').start()
    running.append(upstream)
    subjects = [upstream]
    if args.against:
        compare_programs(report, folder, upstream, running, args.against, *((3, 1) if quick else (args.rounds, 3)))
        return
    if {'calls', 'text', 'bodies', 'single', 'eras'} & set(args.only):
        for one in (Nginx(folder, upstream), Holdfast(folder, 'holdfast audit off', upstream, 'none'),
                    Holdfast(folder, 'holdfast audit on', upstream)):
            running.append(one)
            subjects.append(one.start())
    if 'calls' in args.only:
        for connections, bars in ((64, 'Bars: ≤ 1.0 × with audit off, ≤ 1.7 × with audit on; ≥ 10,000 calls/s.'),
                                  (256, 'Bar: ≤ 1.5 × with audit on.')):
            title = f'tools/call, 504-byte bodies, {connections} connections'
            compare(report, title, subjects, upstream, rounds, bars, connections=connections, seconds=seconds, body=504)
            with Awake() as awake:
                compare(report, title + ', processors kept awake', subjects[1:], upstream, min(rounds, 3), bars, (awake,),
                        connections=connections, seconds=seconds, body=504)
    if 'text' in args.only:
        for body, text, what in ((8192, 'english', '8 KiB of English text'), (2048, 'english', '2 KiB of English text'),
                                 (8192, 'starts', '8 KiB of words that begin like tokens')):
            compare(report, f'tools/call, {what} each way, 64 connections', subjects[1:], upstream, 2 if quick else 5,
                    'Meant: ≤ 1.5 × with audit on, at most 2.0 ×.', connections=64, seconds=1 if quick else 3, body=body, text=text)
    if 'bodies' in args.only:
        compare(report, 'tools/call, 46 KB bodies, 64 connections', subjects, upstream, 1 if quick else 3,
                connections=64, seconds=1 if quick else 3, body=46000)
    if 'single' in args.only:
        compare(report, 'tools/call, 504-byte bodies, 1 connection', subjects, upstream, 1 if quick else 3,
                connections=1, seconds=1 if quick else 3, body=504)
    if 'eras' in args.only:
        compare_eras(report, folder, subjects, upstream, running, rounds, seconds, connections=64, body=504)
    if 'registry' in args.only:
        registry.compare(report, folder, rounds, seconds)
    if 'seedload' in args.only:
        registry.seed_load(report, folder, quick)
    if 'noisy' in args.only:
        measure_noisy(report, folder, upstream, rounds, seconds)
    if 'docs' in args.only:
        documents.measure(report, folder, rounds, seconds)
    # Alone from here on: pages that two processes of the program share would not count as private.
    for one in running[1:]:
        one.stop()
    if 'start' in args.only:
        measure_start(report, folder, upstream)
    if 'sessions' in args.only:
        measure_sessions(report, folder, upstream, (1000, 10000) if quick else (10000, 100000))
    if 'streams' in args.only:
        measure_streams(report, folder, upstream, (1000,) if quick else (1000, MOST_STREAMS))
    if 'record' in args.only:
        record.measure(report, folder, upstream, rounds, 1 if quick else 3)
    if 'watchers' in args.only:
        watchers.measure(report, folder, upstream, 2000)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true', help='short runs, for development')
    parser.add_argument('--save', action='store_true', help='write bench/results.md')
    parser.add_argument('--sweep', action='store_true', help='with find: try other weights too')
    parser.add_argument('--against', metavar='PROGRAM', help='an earlier holdfast: calls through both in turn, and nothing else')
    parser.add_argument('--rounds', type=int, default=12, help='with --against')
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
               f"Load average {os.getloadavg()[0]:.1f} at the start. Medians [min..max]; ratios are taken within a round.")
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
