#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Our JSON Schema checker against the official JSON-Schema-Test-Suite.

The suite is the one that Debian ships in libtest-json-schema-acceptance-perl (no package on npm carries
that of 2020-12).  Every required case of draft2020-12 and draft7 must be answered as the suite says, or
unsure: and each unsure one must be in schema_unsure.txt with the reason that is given.  An entry there
that is not needed any more fails too.  Optional cases are counted; wrong ones among them are listed.

usage: differential_schema.py BUILD_DIR [-v]      exit status: 0 ok, 77 skipped, else failure
"""
import glob
import json
import os
import struct
import subprocess
import sys

SUITE = '/usr/share/perl5/auto/share/dist/Test-JSON-Schema-Acceptance/tests'
EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'schema_unsure.txt')
DRAFTS = ('draft2020-12', 'draft7')
# The suite of draft-07 does not say so in each schema; ours would read it as 2020-12.
DRAFT7 = 'http://json-schema.org/draft-07/schema#'


def find_driver(build):
    for root, _, names in os.walk(build):
        if 'schema_check' in names:
            return os.path.join(root, 'schema_check')
    return None


def text_of(value):
    return json.dumps(value, ensure_ascii=False).encode('utf-8', 'surrogatepass')


def schema_text(schema, draft):
    if draft == 'draft7' and isinstance(schema, dict) and '$schema' not in schema:
        schema = {'$schema': DRAFT7, **schema}
    return text_of(schema)


def cases():
    """(name, optional, schema text, instance text, valid) of each case."""
    for draft in DRAFTS:
        for path in sorted(glob.glob(os.path.join(SUITE, draft, '**/*.json'), recursive=True)):
            name = os.path.relpath(path, SUITE)[:-len('.json')]
            with open(path, encoding='utf-8') as file:
                groups = json.load(file)
            for group in groups:
                schema = schema_text(group['schema'], draft)
                for test in group['tests']:
                    yield (f"{name} | {group['description']} | {test['description']}", '/optional/' in path,
                           schema, text_of(test['data']), test['valid'])


def expected_unsure():
    """Name of a case to the reason why it is unsure."""
    rows = {}
    with open(EXPECTED, encoding='utf-8') as file:
        for line in file:
            if line.strip() and not line.startswith('#'):
                name, _, reason = line.rstrip('\n').rpartition(' => ')
                rows[name] = reason
    return rows


def ask(driver, some):
    data = b''.join(struct.pack('>I', len(t)) + t for case in some for t in case[2:4])
    done = subprocess.run([driver], input=data, stdout=subprocess.PIPE, timeout=120, check=True)
    return done.stdout.decode('utf-8', 'replace').splitlines()


def judge(some, answers):
    """Verdicts by name: passed, unsure, wrong; with what was answered."""
    verdicts = {}
    for (name, optional, _, _, valid), answer in zip(some, answers):
        word = answer.partition(' ')[0]
        verdict = 'unsure' if word == 'unsure' else 'passed' if word == ('valid' if valid else 'invalid') else 'wrong'
        verdicts[name] = (verdict, optional, answer)
    return verdicts


def compare(verdicts):
    """The faults of the required cases, as lines."""
    wanted, faults = expected_unsure(), []
    for name, (verdict, optional, answer) in verdicts.items():
        if optional:
            continue
        reason = answer.partition(' ')[2]
        if verdict == 'wrong':
            faults.append(f'WRONG {name}: {answer}')
        elif verdict == 'unsure' and wanted.get(name) != reason:
            faults.append(f'UNSURE but not listed so: {name} => {reason}')
    for name in wanted:
        if verdicts.get(name, ('', False, ''))[0] != 'unsure':
            faults.append(f'STALE entry of {os.path.basename(EXPECTED)}: {name}')
    return faults


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    driver = find_driver(sys.argv[1])
    if not driver:
        print('schema_check is not in %s; build with -Dtests=true' % sys.argv[1])
        return 1
    if not os.path.isdir(SUITE):
        print('skipped: libtest-json-schema-acceptance-perl is not installed')
        return 77
    some = list(cases())
    answers = ask(driver, some)
    if len(answers) != len(some):
        print('answers are missing: %d of %d' % (len(answers), len(some)))
        return 1
    verdicts = judge(some, answers)
    for draft in DRAFTS:
        for optional in (False, True):
            counts = [sum(v == verdict and o == optional for n, (v, o, _) in verdicts.items() if n.startswith(draft + '/'))
                      for verdict in ('passed', 'unsure', 'wrong')]
            print('%-13s %-9s %5d passed, %3d unsure, %3d wrong' % (draft, 'optional' if optional else 'required', *counts))
    faults = compare(verdicts)
    for name, (verdict, optional, answer) in verdicts.items():
        if '-v' in sys.argv[2:] and optional and verdict != 'passed':
            print(f'{verdict} {name}: {answer}')
    print('\n'.join(faults), end='\n' if faults else '')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
