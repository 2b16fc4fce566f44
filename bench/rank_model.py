# SPDX-License-Identifier: Apache-2.0
"""src/route/rank.c again, with weights that can be turned: what the sweep of `run.py --only find --sweep` works on.

Words that mean the same, idle words and the committed weights are read from rank.c itself; how words are cut, stemmed and
scored is written a second time here, and find.py says whether both order the tools alike.

A score of BM25 needs for each word of a wish how often each field of each tool has it.  That is counted once (Wish), so
that a setting costs a millisecond or two."""
import itertools
import math
import os
import re

from subjects import TOP

SOURCE = os.path.join(TOP, 'src/route/rank.c')
FIELDS = ('name', 'title', 'server', 'text', 'schema')
DEPTH_MAX = 6
THRESHOLD = 0.1  # of find, unless told

# What is tried; a setting is one of each.  The weight of text stays, because only ratios to it matter, and that of the
# server, because no wish says the name of one.
GRID = {'name': (1, 1.5, 2, 3, 4, 5, 6), 'title': (0, 1, 2, 3), 'schema': (0, 0.25, 0.5, 0.75, 1), 'other': (0.35, 0.5, 0.7, 0.85),
        'k1': (0.6, 0.9, 1.2, 1.6, 2.0), 'b': (0.0, 0.2, 0.35, 0.5, 0.75)}


def committed():
    """(setting, words that mean the same, idle words) of rank.c; weights are ratios to that of text."""
    with open(SOURCE, encoding='utf-8') as file:
        source = file.read()

    def number(pattern):
        found = re.search(pattern, source)
        if not found:
            raise SystemExit(f'{SOURCE} has no {pattern}; bench/rank_model.py must follow it')
        return float(found[1])

    def rows(name):
        return re.search(name + r'\[\](?:\[\d+\])? = \{(.*?)\};', source, re.S)[1]
    weights = {f: number(rf'WEIGHT_{f.upper()} = (\d+)') for f in FIELDS}
    setting = {f: weights[f] / weights['text'] for f in FIELDS}
    setting.update(k1=number(r'#define SATURATION ([\d.]+)'), b=number(r'#define LENGTH_PART ([\d.]+)'),
                   other=number(r'#define OTHER_WORD ([\d.]+)'))
    same = [re.findall(r'"(.*?)"', row) for row in re.findall(r'\{(.*?)\}', rows('same'), re.S)]
    return setting, same, set(re.findall(r'"(.*?)"', rows('idle_words')))


def words(text):
    """As next_word(): also cut before a capital that follows something else."""
    return re.findall(r'[A-Z]+[a-z0-9\x80-\U0010ffff]*|[a-z0-9\x80-\U0010ffff]+', text)


def stem(word):
    word = word.lower()

    def without(ending, instead, least):
        nonlocal word
        if len(word) < len(ending) + least or not word.endswith(ending):
            return False
        word = word[:len(word) - len(ending)] + instead
        return True
    if not without('ies', 'y', 2) and not without('sses', 'ss', 1) and not (len(word) > 2 and word[-2] in 'su'):
        without('s', '', 3)
    if not without('ing', '', 3):
        without('ed', '', 3)
    without('e', '', 3)
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in 'sl':
        word = word[:-1]
    return word


def schema_text(schema, depth=0):
    found = []
    if depth > DEPTH_MAX or not isinstance(schema, dict):
        return found
    if isinstance(schema.get('items'), dict):
        found += schema_text(schema['items'], depth + 1)
    for name, value in (schema.get('properties') or {}).items():
        found += [name, value.get('description') or '', *schema_text(value, depth + 1)]
    return found


class Tool:
    def __init__(self, server, definition):
        self.name = f"{server}:{definition['name']}"
        texts = {'name': [definition['name']], 'title': [definition.get('title') or ''], 'server': [server],
                 'text': [definition.get('description') or ''], 'schema': schema_text(definition.get('inputSchema'))}
        self.counts, self.lengths = {}, [0] * len(FIELDS)
        for at, field in enumerate(FIELDS):
            for word in itertools.chain(*map(words, texts[field])):
                self.counts.setdefault(stem(word), [0] * len(FIELDS))[at] += 1
                self.lengths[at] += field != 'server'


class Wish:
    def __init__(self, text, tools, same, idle):
        said = [w for w in words(text) if w.lower() not in idle] or words(text)
        self.terms = []
        for own in map(stem, said):
            others = {stem(w) for row in same if own in map(stem, row) for w in row} - {own}
            having = {}
            for at, tool in enumerate(tools):
                mine = tool.counts.get(own, (0,) * len(FIELDS))
                rest = [[*c[:2], 0, *c[3:]] for c in (tool.counts.get(w) for w in others) if c]  # servers count for their own word only
                if any(mine) or rest:
                    having[at] = (mine, rest)
            self.terms.append(having)


class Model:
    def __init__(self, catalogs, wishes):
        """catalogs: {server: definitions} in their order; wishes: [(text, expected tool)]."""
        self.setting, same, idle = committed()
        self.tools = [Tool(server, d) for server, some in catalogs.items() for d in some]
        self.at = {tool.name: i for i, tool in enumerate(self.tools)}
        self.says_name = [bool({stem(w) for w in words(text)} & {stem(w) for w in words(tool.split(':')[1])}) for text, tool in wishes]
        self.expected = [self.at[tool] for _, tool in wishes]
        self.wishes = [Wish(text, self.tools, same, idle) for text, _ in wishes]

    def without_words(self):
        """How many wishes have no word in common with the tool that they mean."""
        return sum(not any(at in having for having in wish.terms) for wish, at in zip(self.wishes, self.expected))

    def norms(self, setting):
        weights = [setting[f] for f in FIELDS]
        lengths = [sum(w * c for w, c in zip(weights, t.lengths)) for t in self.tools]
        mean = sum(lengths) / len(lengths)
        return [setting['k1'] * (1 - setting['b'] + setting['b'] * x / (mean + 1e-9)) for x in lengths]

    def scores(self, wish, setting, norms):
        weights, n = [setting[f] for f in FIELDS], len(self.tools)
        scores, total = [0.0] * n, 0.0

        def weigh(counts):
            return sum(w * c for w, c in zip(weights, counts))
        for having in wish.terms:
            found = {}
            for at, (own, others) in having.items():
                f = max([weigh(own), *(setting['other'] * weigh(o) for o in others)])
                if f > 0:
                    found[at] = f
            idf = math.log(1 + (n - len(found) + 0.5) / (len(found) + 0.5)) if found else math.log(1 + n) / 2
            total += idf
            for at, f in found.items():
                scores[at] += idf * f / (f + norms[at])
        return [s / total for s in scores]

    def order(self, number, setting=None):
        """Names of the tools that the wish finds, the best first."""
        setting = setting or self.setting
        scores = self.scores(self.wishes[number], setting, self.norms(setting))
        return [self.tools[at].name for at in sorted(range(len(scores)), key=lambda i: -scores[i]) if scores[at] >= THRESHOLD]

    def places(self, setting):
        """Of each wish: where the expected tool stands, from 1; 0 when it is not found."""
        norms, places = self.norms(setting), []
        for wish, wanted in zip(self.wishes, self.expected):
            scores = self.scores(wish, setting, norms)
            mine = scores[wanted]
            before = sum(s > mine or (s == mine and at < wanted) for at, s in enumerate(scores))
            places.append(before + 1 if mine >= THRESHOLD else 0)
        return places


def tally(places):
    """(among the first five, first, mean of 1 / place): a setting is better when this is greater."""
    return (sum(0 < p <= 5 for p in places), sum(p == 1 for p in places), sum(1 / p for p in places if p) / max(1, len(places)))


def sweep(model):
    """[(setting, places)] of the whole grid, the committed setting first."""
    tried = [(model.setting, model.places(model.setting))]
    for values in itertools.product(*GRID.values()):
        setting = {**model.setting, **dict(zip(GRID, values))}
        tried.append((setting, model.places(setting)))
    return tried


def choose(tried, half):
    """(setting, places, how many are as good) on that half of the wishes: most among five, then most first, and of those
    that are equal the one nearest to the committed, by constants that differ and then by how much."""
    before = tried[0][0]

    def distance(setting):
        changed = [key for key in GRID if setting[key] != before[key]]
        return len(changed), sum(abs(setting[k] - before[k]) / (before[k] or 1) for k in changed)
    best = max(tally(places[half])[:2] for _, places in tried)
    equal = [one for one in tried if tally(one[1][half])[:2] == best]
    return *min(equal, key=lambda one: distance(one[0])), len(equal)
