#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Our schema checker against others: generated schemas and values against Python's jsonschema, and
generated patterns against node's RegExp, with the flag "u" and, where that refuses them, without.

Unsure is never wrong and is counted; any other difference fails.  What the peer cannot answer (a
circle of references, a crash of its own) is passed over, and `unevaluated…` is not generated: Debian's
jsonschema forgets what additionalProperties saw.  The official suite has these.

usage: differential_schema_peers.py BUILD_DIR [SEED]      exit status: 0 ok, 77 skipped, else failure
"""
import collections
import json
import os
import random
import shutil
import struct
import subprocess
import sys

import harness

SEED = 20260728
SCHEMAS, VALUES_EACH = 2000, 4
PATTERNS, TEXTS_EACH = 4000, 5
DIALECT = 'https://json-schema.org/draft/2020-12/schema'
NAMES = ['a', 'b', 'ab', 'c']
TYPES = ['null', 'boolean', 'number', 'integer', 'string', 'array', 'object']
SCALARS = [None, True, False, 0, 1, 2, -1, 1.0, 1.5, 10**20, '', 'a', 'ab', 'abc', 'b']
ATOMS = ['a', 'b', '.', '\\d', '\\w', '\\s', '\\S', '\\W', '\\D', '[ab]', '[^a]', '[a-c\\d]', '[\\s\\w]', '[^\\S]',
         '\\u0061', '\\x62', '\\u00e9', '\\t', '\\n', '[]', '[^]', '\\b', '\\B', '\\p{L}', '\\P{Lu}', '\\p{Nd}', 'é', '\\$', '\\.',
         '-', '[\\b]', '[\\-a]', '[a-]', '\\cA', '\\0', '^', '$', '\\uD83D\\uDC32', '🐲', '[🐲a]', '/', '[.$]', '\\/', '{', '}',
         ']', '\\-', 'a{,2}', '\\_', '#', ' ']
CHARACTERS = list('aabbc1_ \n\t\r-.$A/{}#') + ['é', '\u2028', '\u00a0', '\ufeff', '🐲', '\x08', '\x01', '\0', ',2']
NODE_SIDE = r"""
const cases = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const ask = (pattern, flag, text) => {
  try { return new RegExp(pattern, flag).test(text) ? 'valid' : 'invalid'; } catch { return 'refused'; }
};
console.log(JSON.stringify(cases.map(([p, t]) => [ask(p, 'u', t), ask(p, '', t)])));
"""


class Generator:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        few = lambda *some: lambda depth: self.rng.choice(some)
        self.words = {
            'type': lambda depth: self.rng.choice([self.rng.choice(TYPES), self.rng.sample(TYPES, 2)]),
            'enum': lambda depth: [self.value(1) for _ in range(3)], 'const': lambda depth: self.value(1),
            'multipleOf': few(1, 2, 0.5), 'maximum': few(0, 1, 1.5), 'minimum': few(0, 1, 1.5),
            'exclusiveMaximum': few(0, 1, 2), 'exclusiveMinimum': few(0, 1, -1),
            'maxLength': few(0, 1, 2), 'minLength': few(0, 1, 2), 'pattern': few('^a', 'b$', '^.b'),
            'maxItems': few(0, 1, 2), 'minItems': few(0, 1, 2), 'uniqueItems': few(True),
            'contains': self.schema, 'minContains': few(0, 1, 2), 'maxContains': few(1, 2),
            'prefixItems': self.schemas, 'items': self.schema,
            'maxProperties': few(0, 1, 2), 'minProperties': few(0, 1, 2),
            'required': lambda depth: self.rng.sample(NAMES, self.rng.randrange(3)),
            'dependentRequired': lambda depth: {self.rng.choice(NAMES): self.rng.sample(NAMES, 1)},
            'dependentSchemas': self.members, 'propertyNames': self.schema, 'properties': self.members,
            'patternProperties': lambda depth: {self.rng.choice(['^a', 'b$', '.']): self.schema(depth)},
            'additionalProperties': self.schema,
            'allOf': self.schemas, 'anyOf': self.schemas, 'oneOf': self.schemas, 'not': self.schema,
            'if': self.schema, 'then': self.schema, 'else': self.schema,
            '$ref': few('#/$defs/x', '#/$defs/y', '#/$defs/z'),
        }

    def value(self, depth):
        kind = self.rng.random()
        if depth <= 0 or kind < 0.5:
            return self.rng.choice(SCALARS)
        if kind < 0.75:
            return [self.value(depth - 1) for _ in range(self.rng.randrange(4))]
        return {self.rng.choice(NAMES): self.value(depth - 1) for _ in range(self.rng.randrange(4))}

    def schema(self, depth):
        if depth <= 0 or self.rng.random() < 0.12:
            return self.rng.choice([True, False, {}])
        words = self.rng.choices(list(self.words), k=self.rng.choice([1, 1, 2, 2, 3]))
        return {word: self.words[word](depth - 1) for word in words}

    def schemas(self, depth):
        return [self.schema(depth) for _ in range(self.rng.randrange(1, 4))]

    def members(self, depth):
        return {self.rng.choice(NAMES): self.schema(depth) for _ in range(self.rng.randrange(1, 4))}

    def document(self):
        inner = self.schema(3)
        return {'$schema': DIALECT, '$defs': {name: self.schema(2) for name in 'xyz'},
                **(inner if isinstance(inner, dict) else {'allOf': [inner]})}

    def pattern(self, depth):
        kind = self.rng.random()
        if depth <= 0 or kind < 0.45:
            return self.rng.choice(ATOMS)
        if kind < 0.75:
            return self.pattern(depth - 1) + ('' if kind < 0.65 else '|') + self.pattern(depth - 1)
        if kind < 0.88:
            group = self.rng.choice(['(?:%s)', '(%s)', '(?<n' + str(self.rng.randrange(10**6)) + '>%s)'])
            return group % self.pattern(depth - 1) + self.rng.choice(['', '*', '+', '?', '{2}', '{1,2}', '{0,}', '*?', '+?'])
        return self.rng.choice(['(?=%s)', '(?!%s)', '(?<=%s)', '(?<!%s)']) % self.pattern(depth - 1)

    def text(self, pattern):
        """Node looks around inside of a character past U+FFFF, which the standard does not."""
        text = ''.join(self.rng.choice(CHARACTERS) for _ in range(self.rng.randrange(6)))
        return text.replace('🐲', '') if any(look in pattern for look in ('(?=', '(?!', '(?<', '\\b', '\\B')) else text


def ask(driver, pairs):
    texts = [json.dumps(part).encode() for pair in pairs for part in pair]
    data = b''.join(struct.pack('>I', len(t)) + t for t in texts)
    done = subprocess.run([driver], input=data, stdout=subprocess.PIPE, timeout=120, check=True)
    return [line.partition(' ')[0] for line in done.stdout.decode().splitlines()]


def python_says(jsonschema, schema, value):
    try:
        return 'valid' if jsonschema.Draft202012Validator(schema).is_valid(value) else 'invalid'
    except (RecursionError, TypeError):
        return None


def node_says(node, pairs):
    done = subprocess.run([node, '-e', NODE_SIDE], input=json.dumps(pairs), stdout=subprocess.PIPE, timeout=120,
                          check=True, text=True)
    for with_u, without in json.loads(done.stdout):
        yield without if with_u == 'refused' else with_u


def compare(what, pairs, ours, theirs):
    """Prints how often they agree; the number of differences."""
    counts = collections.Counter()
    for pair, us, them in zip(pairs, ours, theirs, strict=True):
        label = 'unsure' if us == 'unsure' else 'no answer of the peer' if them is None else \
            'same' if us == them else 'different'
        counts[label] += 1
        if label == 'different' and counts[label] <= 10:
            print('DIFFERENCE', what, 'ours', us, 'theirs', them, json.dumps(pair))
    print(what + ':', ', '.join(f'{n} {label}' for label, n in sorted(counts.items())))
    return counts['different']


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else SEED
    driver = next((os.path.join(root, 'schema_check') for root, _, names in os.walk(sys.argv[1])
                   if 'schema_check' in names), None)
    if not driver:
        print('schema_check is not in %s; build with -Dtests=true' % sys.argv[1])
        return 1
    try:
        import jsonschema
    except ImportError:
        print('skipped: python3-jsonschema is not installed')
        return 77
    print('seed %d' % seed)
    make = Generator(seed)
    pairs = [(s, make.value(3)) for s in (make.document() for _ in range(SCHEMAS)) for _ in range(VALUES_EACH)]
    failures = compare('schemas', pairs, ask(driver, pairs), [python_says(jsonschema, s, v) for s, v in pairs])
    node = harness.node() or shutil.which('node')
    if node:
        pairs = [(p, make.text(p)) for p in (make.pattern(4) for _ in range(PATTERNS)) for _ in range(TEXTS_EACH)]
        ours = ask(driver, [({'pattern': p}, t) for p, t in pairs])
        failures += compare('patterns', pairs, ours, node_says(node, pairs))
    else:
        print('patterns: passed over, node is not installed')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
