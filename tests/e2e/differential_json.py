#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Our JSON reader against node's JSON.parse, over generated and mutated documents.

Both sides must agree on every document but for the differences we intend, and each of those is
computed here from the document, not guessed from the disagreement: deeper than 64, duplicate keys,
surrogate escapes without their partner, more than 10,000 keys.  Our reason must be the same one.
Node's decoder is told to refuse bytes that are not UTF-8 and to keep a byte order mark.

usage: differential_json.py BUILD_DIR      exit status: 0 ok, 77 skipped, else failure
"""
import json
import os
import random
import shutil
import struct
import subprocess
import sys

import harness

SEED = 20260728
DOCUMENTS = 3000
MAX_DEPTH = 64
MAX_KEYS = 10000

NODE_SIDE = r"""
const chunks = [];
process.stdin.on('data', c => chunks.push(c));
process.stdin.on('end', () => {
  const all = Buffer.concat(chunks);
  const decoder = new TextDecoder('utf-8', {fatal: true, ignoreBOM: true});
  let out = '', at = 0;
  while (at < all.length) {
    const n = all.readUInt32BE(at);
    const bytes = all.subarray(at + 4, at + 4 + n);
    at += 4 + n;
    let text;
    try { text = decoder.decode(bytes); } catch { out += 'u'; continue; }
    try { JSON.parse(text); out += '1'; } catch { out += '0'; }
  }
  process.stdout.write(out);
});
"""

STRINGS = ['', 'a', 'key', 'name', 'ä', '€uro', '\U0001f600', 'x' * 15, 'x' * 16, 'x' * 17, 'q"q',
           'back\\slash', 'line\nfeed', 'nul\0', '\x7f', '\u2028', 'The quick brown fox jumps over it']
NUMBERS = ['0', '-0', '1', '-1', '42', '1.5', '-2.5e10', '1E+400', '1e-400', '0.0', '0e0',
           '12345678901234567890', '9007199254740993', '1.0000000000000000000001']
BROKEN = [b'', b' ', b'01', b'-', b'+1', b'.5', b'1.', b'1e', b'1e+', b'0x1', b'NaN', b'Infinity', b'nul',
          b'TRUE', b"'a'", b'[1,]', b'{"a":1,}', b'[,]', b'{,}', b'{"a"}', b'{"a":}', b'{a:1}', b'[1 2]',
          b'"\\x41"', b'"\\u12"', b'"\\u12G4"', b'"\t"', b'"\n"', b'"\x00"', b'\x00', b'1\x00', b'//c\n1',
          b'/**/1', b'\xef\xbb\xbf1', b'\xa01', b'\xc2\xa01', b'\xe2\x80\xa81', b'\x0b1', b'\x0c1', b'"',
          b'"\\', b'"\\"', b'[', b'{', b'[[', b']', b'}', b'[}', b'{]', b'1 1', b'{}{}', b'"a""b"',
          b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xff"', b'"\xe2\x82"', b'"\x80"',
          b'"\\ud800"', b'"\\udc00"', b'"\\ud800\\ud800"', b'"\\ud800\\udc00"', b'"\\ud800x"',
          b'"\\uD83D\\uDE00"', b'"\\u0000"', b'{"a":1,"a":2}', b'{"a":1,"\\u0061":2}', b'{"":0,"":0}']


def quote(rng, text):
    """A JSON string for text, escaped more or less at random."""
    out = '"'
    for c in text:
        if c in '"\\' or c < ' ' or rng.random() < 0.05:
            for unit in struct.unpack('>%dH' % (len(c.encode('utf-16-be')) // 2), c.encode('utf-16-be')):
                out += ('\\u%04x' if rng.random() < 0.5 else '\\u%04X') % unit
        else:
            out += c
    return out + '"'


def blank(rng):
    return rng.choice(['', '', '', '', ' ', '\n', '\t', '\r\n', '  '])


def value(rng, depth):
    kind = rng.random()
    if depth <= 0 or kind < 0.25:
        return rng.choice(NUMBERS + ['true', 'false', 'null'])
    if kind < 0.5:
        return quote(rng, rng.choice(STRINGS))
    parts = []
    for _ in range(rng.choice([0, 1, 2, 3, 5, 20])):
        element = blank(rng) + value(rng, depth - 1) + blank(rng)
        if kind < 0.75:
            parts.append(element)
        else:
            name = rng.choice(STRINGS) + (str(rng.randrange(1000)) if rng.random() < 0.9 else '')
            parts.append(blank(rng) + quote(rng, name) + blank(rng) + ':' + element)
    return ('[%s]' if kind < 0.75 else '{%s}') % ','.join(parts)


def mutate(rng, text):
    data = bytearray(text)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(data) + 1)
        how = rng.random()
        if how < 0.3 and at < len(data):
            del data[at]
        elif how < 0.6:
            data.insert(at, rng.choice(b'{}[]",:\\u0123456789eE+-. \n\t/*ntfd8\x00\x1f\x7f\x80\xc3\xed\xf4'))
        elif how < 0.8 and at < len(data):
            data[at] = rng.randrange(256)
        else:
            del data[at:]
    return bytes(data)


def nested(depth):
    return b'[' * depth + b']' * depth


def many_keys(n):
    return ('{%s}' % ','.join('"k%d":0' % i for i in range(n))).encode()


def documents(rng):
    docs = list(BROKEN)
    docs += [nested(MAX_DEPTH - 1), nested(MAX_DEPTH), nested(MAX_DEPTH + 1), nested(1000)]
    docs += [many_keys(MAX_KEYS), many_keys(MAX_KEYS + 1)]
    docs += [b'"' + b'x' * n + b'"' for n in range(40)]
    docs += [b'"' + b'x' * n + '\u00e4'.encode() + b'y' * 20 + b'"' for n in range(40)]
    docs += [b'"' + b'x' * n + b'\x01' + b'y' * 20 + b'"' for n in range(40)]
    while len(docs) < DOCUMENTS:
        text = value(rng, rng.randrange(6)).encode()
        docs.append(text if rng.random() < 0.4 else mutate(rng, text))
    return docs


# What json_check answers for each of them.
DEEP, MANY, TWICE, LONE = 'deeper than 64', 'more than 10000 keys', 'duplicate keys', 'lone surrogate'
VERDICT = {DEEP: 'l', MANY: 'l', TWICE: 'd', LONE: '0'}


class Intended(Exception):
    pass


def intended_difference(doc):
    """Why we refuse what node takes, or None."""
    text = doc.decode('utf-8')

    def pairs(members):
        names = [name for name, _ in members]
        if len(names) > MAX_KEYS:
            raise Intended(MANY)
        if len(set(names)) != len(names):
            raise Intended(TWICE)
        for name in names:
            check_text(name)
        return dict(members)

    def check_text(s):
        if any('\ud800' <= c <= '\udfff' for c in s):
            raise Intended(LONE)

    def walk(v, depth):
        if isinstance(v, str):
            check_text(v)
        if isinstance(v, (list, dict)):
            if depth > MAX_DEPTH:
                raise Intended(DEEP)
            for inner in (v.values() if isinstance(v, dict) else v):
                walk(inner, depth + 1)

    try:
        sys.setrecursionlimit(20000)
        walk(json.loads(text, object_pairs_hook=pairs, parse_int=str, parse_float=float), 1)
    except Intended as why:
        return str(why)
    return None


def run(command, data):
    done = subprocess.run(command, input=data, stdout=subprocess.PIPE, timeout=120, check=True)
    return done.stdout.decode()


def find_driver(build):
    for root, _, names in os.walk(build):
        if 'json_check' in names:
            return os.path.join(root, 'json_check')
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    node, driver = harness.node() or shutil.which('node'), find_driver(sys.argv[1])
    if not node:
        print('skipped: node is not installed')
        return 77
    if not driver:
        print('json_check is not in %s; build with -Dtests=true' % sys.argv[1])
        return 1
    print('seed %d' % SEED)
    docs = documents(random.Random(SEED))
    data = b''.join(struct.pack('>I', len(d)) + d for d in docs)
    ours, theirs = run([driver], data), run([node, '-e', NODE_SIDE], data)
    if len(ours) != len(docs) or len(theirs) != len(docs):
        print('answers are missing: %d and %d of %d' % (len(ours), len(theirs), len(docs)))
        return 1
    counts, failures = {}, 0
    for doc, us, them in zip(docs, ours, theirs):
        taken = us == '1'
        if taken == (them == '1'):
            label = 'both take' if taken else 'both refuse'
        else:
            label = None if taken else intended_difference(doc)
            if VERDICT.get(label) != us:
                failures += 1
                print('DIFFERENCE ours=%s node=%s %r' % (us, them, doc[:200]))
                continue
            label = 'only ours refuses: ' + label
        counts[label] = counts.get(label, 0) + 1
    for label in sorted(counts):
        print('%6d %s' % (counts[label], label))
    print('%d documents, %d unintended differences' % (len(docs), failures))
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
