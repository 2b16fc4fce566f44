#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""run.py CELL: runs the official conformance suite with Holdfast in the middle, and judges each scenario.

A server cell puts Holdfast before tests/peers/everything and lets the suite be its client.  A client
cell lets the suite be the server: its mock servers stand behind Holdfast, driver.mjs before it.  A
fixture cell runs the suite against the everything-server alone, to tell its faults from ours.  In the
name of a cell the first era is the one spoken to Holdfast (both: a client on its defaults, which asks for the
newer one first), the second the one that Holdfast speaks.

A scenario passes when none of its checks failed or warned, and none is skipped that succeeds without
Holdfast; those that the suite does not score count too, but for the extensions in NOT_OURS.  expected-failures.txt names the scenarios that are known to
fail, each with its reason; one that passes, or does not run, is stale and fails the cell.  With --list
the cells are printed.  Exit status: 0 as expected, 77 skipped, else failure."""
import argparse
import contextlib
import dataclasses
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'e2e'))
import harness  # noqa: E402

EXPECTED = os.path.join(HERE, 'expected-failures.txt')
EVERYTHING = os.path.join(harness.PEERS, 'everything/server.mjs')
WIRE = {'legacy': '2025-11-25', 'modern': '2026-07-28'}
NOT_OURS = re.compile(r'tasks-')
SUITE_S = 240
START_S = 20

# Scenarios that must be among those that ran, so that a suite which ran nothing is not taken for a success.
SURELY_RUN = {
    'legacy': {'server-initialize', 'tools-call-sampling', 'resources-subscribe', 'server-session-lifecycle',
               'server-sse-polling', 'json-schema-2020-12'},
    'modern': {'server-stateless', 'caching', 'input-required-result-multi-round', 'http-header-validation',
               'http-custom-header-server-validation', 'json-schema-2020-12'},
}
# Checks that only a server meets which does something the protocol leaves to it, and we do otherwise.
OUR_CHOICE = {
    'server-sse-streams-functional',  # lists come as JSON, not as streams
    'server-sse-disconnect-resume',   # a stream that the server closed early is resumed by us, the client's stays open
}
CLIENT_SCENARIOS = {
    'legacy': ('initialize', 'tools_call', 'sse-retry', 'elicitation-sep1034-client-defaults'),
    'modern': ('tools_call', 'request-metadata', 'http-standard-headers', 'http-custom-headers', 'http-invalid-tool-headers',
               'sep-2322-client-request-state', 'json-schema-ref-no-deref', 'json-schema-2020-12-preservation'),
}


@dataclasses.dataclass
class Cell:
    side: str      # which side the suite tests: fixture, server, client
    front: str     # the era spoken to Holdfast
    upstream: str  # the era that Holdfast speaks
    path: str = '/mcp/mock'  # where the driver of a client cell connects


CELLS = {
    'fixture-legacy': Cell('fixture', 'legacy', 'legacy'),
    'fixture-modern': Cell('fixture', 'modern', 'modern'),
    'server-legacy': Cell('server', 'legacy', 'legacy'),
    'server-modern': Cell('server', 'modern', 'modern'),
    'server-modern-before-legacy': Cell('server', 'modern', 'legacy'),
    'server-legacy-before-modern': Cell('server', 'legacy', 'modern'),
    'client-legacy': Cell('client', 'legacy', 'legacy'),
    'client-modern': Cell('client', 'modern', 'modern'),
    # The path of an older server declines server/discover, so a client of 2026-07-28 alone uses /mcp, and one of both eras falls back.
    'client-modern-before-legacy': Cell('client', 'modern', 'legacy', '/mcp'),
    'client-both-before-legacy': Cell('client', 'both', 'legacy'),
    'client-legacy-before-modern': Cell('client', 'legacy', 'modern'),
}


def suite(*args, env=None):
    """Runs the suite to its end: (exit status, output)."""
    done = subprocess.run([harness.node(), harness.npm_bin('conformance'), *args], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SUITE_S, check=False,
                          env={**os.environ, 'NO_COLOR': '1', **(env or {})})
    return done.returncode, done.stdout.decode('utf-8', 'replace')


@contextlib.contextmanager
def everything(era):
    """The everything-server, running; gives its URL."""
    with subprocess.Popen([harness.node(), EVERYTHING, '--era', era], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE) as process:
        try:
            yield json.loads(process.stdout.readline())['url']
        finally:
            process.terminate()
            process.wait(START_S)


@dataclasses.dataclass
class Outcome:
    """What the suite found in one scenario."""
    bad: list    # what it complains of; empty is a success
    good: set    # the checks that succeeded


def outcomes(results):
    """Scenario to Outcome, for each scenario that left results."""
    found = {}
    for path in glob.glob(os.path.join(results, '*/checks.json')):
        # The folder of server-initialize is server-server-initialize-2026-...: one prefix is the suite's.
        name = re.sub(r'-\d{4}-\d\d-\d\dT[\d-]+Z$', '', os.path.basename(os.path.dirname(path))).removeprefix('server-')
        with open(path, encoding='utf-8') as file:
            checks = json.load(file)
        found[name] = Outcome([f"{c['status'].lower()} {c['id']}: {c.get('errorMessage') or c.get('description')}"
                               for c in checks if c['status'] in ('FAILURE', 'WARNING')],
                              {c['id'] for c in checks if c['status'] == 'SUCCESS'})
    return found


def run_server(url, front):
    """Every scenario of a revision, scored or not."""
    with tempfile.TemporaryDirectory() as results:
        status, text = suite('server', '--url', url, '--requirements', WIRE[front], '-o', results)
        found = {name: one for name, one in outcomes(results).items() if not NOT_OURS.match(name)}
    for name in re.findall(r'^✗ ([\w-]+):', text, re.M):
        if not NOT_OURS.match(name) and not (name in found and found[name].bad):
            found[name] = Outcome(['failed without saying why'], set())
    missing = SURELY_RUN[front] - set(found)
    if missing or (status != 0 and not any(one.bad for one in found.values())):
        print(text)
        found['the-suite'] = Outcome([f'ended with {status}; did not run: {sorted(missing)}'], set())
    return found


def run_fixture(cell):
    with everything(cell.upstream) as url:
        return run_server(url, cell.front)


def run_gateway(cell):
    """What succeeds against the everything-server alone must succeed through Holdfast: a check that the
    suite merely skips, because an answer came in another form, is not a success."""
    alone = run_fixture(Cell('fixture', cell.front, cell.front))
    with everything(cell.upstream) as url, tempfile.TemporaryDirectory() as folder:
        server = {'url': url, 'era': cell.upstream, 'handles': 'never'}
        holdfast = harness.Holdfast(folder, {'mcpServers': {'everything': server}})
        with contextlib.closing(holdfast.start()):
            found = run_server(f'http://127.0.0.1:{holdfast.port}/mcp/everything', cell.front)
    for name, one in found.items():
        lost = alone[name].good - one.good - OUR_CHOICE if name in alone and not one.bad else ()
        one.bad += [f'not tested {check}: it succeeds without Holdfast' for check in sorted(lost)]
    return found


def run_client(cell):
    """One run per scenario, so that what a driver says can be shown with its scenario."""
    found = {}
    command = f"{harness.PYTHON} {os.path.join(HERE, 'between.py')} {cell.upstream}"
    for name in CLIENT_SCENARIOS[cell.upstream]:
        with tempfile.TemporaryDirectory() as results:
            status, text = suite('client', '--command', command, '--scenario', name, '--spec-version', WIRE[cell.upstream],
                                 '-o', results, env={'HOLDFAST_DRIVER': cell.front, 'HOLDFAST_PATH': cell.path})
            found[name] = outcomes(results).get(name, Outcome(['left no results'], set()))
        if status != 0:
            said = re.search(r'^Client exited with code.*?(?=^Results saved)', text, re.M | re.S)
            found[name].bad.append(f'the suite ended with {status}:\n{said[0] if said else text}')
    return found


def expected_failures(cell):
    """Scenario to reason, from the lines "CELL SCENARIO: reason"."""
    with open(EXPECTED, encoding='utf-8') as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith('#')]
    matches = [re.fullmatch(r'(\S+) (\S+): (.+)', line) for line in lines]
    for line, match in zip(lines, matches):
        if not match or match[1] not in CELLS:
            sys.exit(f'{EXPECTED}: cannot read {line!r}')
    return {match[2]: match[3] for match in matches if match[1] == cell}


def judge(name, found):
    expected = expected_failures(name)
    failing = {scenario: one.bad for scenario, one in found.items() if one.bad}
    bad = {scenario: why for scenario, why in failing.items() if scenario not in expected}
    stale = [scenario for scenario in expected if scenario not in failing]
    for scenario, why in sorted(bad.items()):
        print(f'{scenario} fails:', *('    ' + line for c in why for line in c.splitlines()), sep='\n')
    for scenario in stale:
        print(f'{scenario} ' + ('passes' if scenario in found else 'did not run') +
              f': remove it from {os.path.relpath(EXPECTED, harness.TOP)}')
    print(f'{name}: {len(found) - len(failing)} of {len(found)} scenarios pass, {len(failing) - len(bad)} fail as expected, '
          f'{len(bad)} fail, {len(stale)} stale')
    return 1 if bad or stale or not found else 0


RUNNERS = {'fixture': run_fixture, 'server': run_gateway, 'client': run_client}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--list', action='store_true')
    parser.add_argument('cell', nargs='?', choices=CELLS)
    args = parser.parse_args()
    if args.list:
        print('\n'.join(CELLS))
        return 0
    if not args.cell:
        parser.error('which cell?')
    if not harness.node() or not harness.npm_bin('conformance'):
        print('skipped: the conformance suite is not installed')
        return 77
    return judge(args.cell, RUNNERS[CELLS[args.cell].side](CELLS[args.cell]))


if __name__ == '__main__':
    sys.exit(main())
