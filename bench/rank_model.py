# SPDX-License-Identifier: Apache-2.0
"""src/profile/rank.c again, with weights that can be turned: what the sweep of `run.py --only find --sweep` works on.

The table of words and the committed weights are read from src/profile itself; how words are cut, stemmed and scored is written a
second time here, and find.py says whether both order the tools alike.

What does not depend on weights (how often each field of each tool has a word, what stands for the words of a query) is read
once, so that a setting costs some milliseconds."""
import itertools
import math
import os
import re

from subjects import TOP

PROFILE = os.path.join(TOP, 'src/profile')
FIELDS = ('name', 'title', 'server', 'head', 'text', 'schema')
KINDS = ('FORM', 'SAME', 'NEAR', 'IMPLIED')
DEPTH_MAX = 6
GAP_MAX = 3
THRESHOLD = 0.1  # of find, unless told

# What is tried; a setting is one of each.  The weight of the head stays, because only ratios to it matter.
GRID = {'name': (2, 3, 5, 8), 'text': (0.25, 0.5, 1), 'schema': (0.25, 0.5, 1), 'k1': (0.6, 0.9, 1.2), 'b': (0, 0.3, 0.5),
        'weak': (0.35, 0.5, 0.7)}


def source(name):
    with open(os.path.join(PROFILE, name), encoding='utf-8') as file:
        return re.sub(r'"\s*\n\s*"', '', re.sub(r'/\*.*?\*/', '', file.read(), flags=re.S))


def number(text, pattern):
    found = re.search(pattern, text)
    if not found:
        raise SystemExit(f'src/profile has no {pattern}; bench/rank_model.py must follow it')
    return float(found[1])


def committed():
    """The setting of rank.c and rank_index.h; weights are ratios to that of the head."""
    rank, index = source('rank.c'), source('rank_index.h')
    weights = {f: number(index, rf'WEIGHT_{f.upper()} = (\d+)') for f in FIELDS}
    setting = {f: weights[f] / weights['head'] for f in FIELDS}
    for key, name in (('k1', 'SATURATION'), ('b', 'LENGTH_PART'), ('weak', 'WEAK_WORD'), ('unknown', 'UNKNOWN_WORD'), ('unasked', 'UNASKED')):
        setting[key] = number(rank, rf'#define {name} ([\d.]+)')
    return setting


def ends(word, ending, instead, least):
    """The word with another ending, or None."""
    if len(word) < len(ending) + least or not word.endswith(ending):
        return None
    return word[:len(word) - len(ending)] + instead


def first_of(word, *endings):
    for ending, instead, least in endings:
        changed = ends(word, ending, instead, least)
        if changed is not None:
            return changed
    return word


class Words:
    """words.c: the table, and what it says of a text."""

    def __init__(self):
        forms = source('words_forms.c')
        rows = [row for name in ('words_deeds.c', 'words_things.c', 'words_forms.c')
                for row in re.findall(r'\{WORDS_(\w+),\s*"([^"]*)",\s*(?:NULL|"([^"]*)")\}', source(name))]
        self.irregular = dict(re.findall(r'\{"([^"]*)",\s*"([^"]*)"\}', forms))
        lists = {name: set(text.split()) for name, text in re.findall(r'words_(\w+)\[\] =\s*"([^"]*)"', forms)}
        self.idle, self.asking = lists['idle'], lists['asking']
        self.weak, self.particles, self.destroying = ({self.stem(w) for w in lists[k]} for k in ('weak', 'particles', 'destroying'))
        self.strengths = {k: number(source('words.c'), rf'\[WORDS_{k}\] = ([\d.]+)f') for k in KINDS}
        self.phrases, self.others = set(), {}
        for kind, said, implied in rows:
            left = [self.entry(w) for w in said.split()]
            right = [self.entry(w) for w in implied.split()] or left
            for one, other in itertools.product(left, right):
                if one != other:
                    mine = self.others.setdefault(one, {})
                    mine[other] = max(mine.get(other, 0), self.strengths[kind])

    def stem(self, word):
        word = self.irregular.get(word, word)
        if self.irregular.get(word) == word:
            return word
        if ends(word, 'ies', 'y', 2) or ends(word, 'sses', 'ss', 1):
            word = first_of(word, ('ies', 'y', 2), ('sses', 'ss', 1))
        elif not (len(word) > 2 and word[-2] in 'su'):
            word = first_of(word, ('s', '', 3))
        word = first_of(word, ('ied', 'y', 2), ('ing', '', 3), ('ed', '', 3))
        word = first_of(word, ('tion', 't', 4), ('ment', '', 5))
        word = first_of(word, ('e', '', 3))
        if len(word) > 3 and word[-1] == word[-2] and word[-1] not in 'sl':
            word = word[:-1]
        return word[:-1] + 'y' if len(word) > 3 and word[-1] == 'i' else word

    def entry(self, word):
        parts = tuple(map(self.stem, word.split('+')))
        if len(parts) > 1:
            self.phrases.add(parts)
            return ' '.join(parts)
        return parts[0]

    def cut(self, text):
        """[(as written, stem)], runs of several pieces after these."""
        found = []
        for run in re.findall(r'[A-Za-z0-9\x80-\U0010ffff]+', text):
            pieces = re.findall(r'[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]+[^A-Za-z]*(?![a-z])|[A-Z][^A-Z]*|[^A-Z]+', run)
            for piece in [*pieces, *([run] if len(pieces) > 1 else [])]:
                written = re.sub(r'^\d+(?=[^\d]{2,}$)', '', piece.lower())
                found.append((written, self.stem(written)))
        return found

    def is_idle(self, written):
        return written in self.idle or written.isdigit() or len(written.encode()) == 1

    def of_tool(self, text):
        """Stems, phrases among them."""
        cut = self.cut(text)
        for at, (written, stem) in enumerate(cut):
            if at + 1 < len(cut) and (stem, cut[at + 1][1]) in self.phrases:
                yield f'{stem} {cut[at + 1][1]}'
            if not self.is_idle(written):
                yield stem

    def phrase_end(self, cut, taken, at):
        only_idle = True
        for i in range(at + 1, min(len(cut), at + GAP_MAX + 2)):
            reached = i == at + 1 or cut[i][1] in self.particles or (only_idle and i <= at + GAP_MAX)
            if i not in taken and reached and (cut[at][1], cut[i][1]) in self.phrases:
                return i
            only_idle = only_idle and self.is_idle(cut[i][0])
        return None

    def of_query(self, text):
        """Stems of its terms in their order."""
        cut = self.cut(text)

        def terms(with_idle):
            taken, found = set(), []
            for at, (written, stem) in enumerate(cut):
                if at in taken:
                    continue
                end = self.phrase_end(cut, taken, at)
                if end:
                    taken.add(end)
                    found.append(f'{stem} {cut[end][1]}')
                elif with_idle or not self.is_idle(written):
                    found.append(stem)
            return list(dict.fromkeys(found))
        found = terms(False)
        if not found:
            return terms(True)
        return found + [self.stem('what')] * (cut[0][0] in self.asking and self.stem('what') not in found)

    def destroys(self, stem):
        return bool({stem, *self.others.get(stem, ())} & self.destroying)


def schema_texts(schema, depth=0):
    found = []
    if depth > DEPTH_MAX or not isinstance(schema, dict):
        return found
    if isinstance(schema.get('items'), dict):
        found += schema_texts(schema['items'], depth + 1)
    for name, value in (schema.get('properties') or {}).items():
        found += [name, value.get('description') or '', *(v for v in value.get('enum') or [] if isinstance(v, str)), *schema_texts(value, depth + 1)]
    return found


class Tool:
    def __init__(self, server, definition, words):
        self.name = f"{server}:{definition['name']}"
        self.destroys = any(stem in words.destroying for _, stem in words.cut(definition['name']))
        about = definition.get('description') or ''
        end = re.search(r'[.\n](?=[ \t\r\n]|$)', about)
        end = end.end() if end else len(about)
        texts = {'name': [definition['name']], 'title': [definition.get('title') or ''], 'server': [server], 'head': [about[:end]],
                 'text': [about[end:]], 'schema': schema_texts(definition.get('inputSchema'))}
        self.counts, self.lengths = {}, [0] * len(FIELDS)
        for at, field in enumerate(FIELDS):
            for stem in itertools.chain(*map(words.of_tool, texts[field])):
                self.counts.setdefault(stem, [0] * len(FIELDS))[at] += 1
                self.lengths[at] += field != 'server'


class Model:
    def __init__(self, catalogs, queries):
        """catalogs: {server: definitions} in their order; queries: [(text, expected tool)]."""
        self.setting, self.words = committed(), Words()
        self.tools = [Tool(server, d, self.words) for server, some in catalogs.items() for d in some]
        self.at = {tool.name: i for i, tool in enumerate(self.tools)}
        self.expected = [self.at[tool] for _, tool in queries]
        self.terms = [self.words.of_query(text) for text, _ in queries]
        self.says_name = [bool({s for _, s in self.words.cut(text)} & {s for _, s in self.words.cut(tool.split(':')[1])}) for text, tool in queries]
        self.having = {}
        for at, tool in enumerate(self.tools):
            for stem, counts in tool.counts.items():
                self.having.setdefault(stem, {})[at] = counts

    def ways(self, term):
        """{stem: strength} of what tools can be found by."""
        return {s: x for s, x in {**self.words.others.get(term, {}), term: 1.0}.items() if s in self.having}

    def without_words(self):
        """How many queries have no word in common with the tool that they mean."""
        return sum(not any(at in self.having[s] for t in terms for s in self.ways(t)) for terms, at in zip(self.terms, self.expected))

    def norms(self, setting):
        lengths = [sum(setting[f] * c for f, c in zip(FIELDS, t.lengths)) for t in self.tools]
        mean = sum(lengths) / len(lengths)
        return [setting['k1'] * (1 - setting['b'] + setting['b'] * x / (mean + 1e-9)) for x in lengths]

    def rarity(self, having):
        return math.log(1 + (len(self.tools) - having + 0.5) / (having + 0.5))

    def term_scores(self, term, setting, norms):
        """({tool: what the term gives it}, the most that it could give)."""
        weights = [setting[f] for f in FIELDS]
        best, strongest, most = {}, {}, 0.0
        for stem, strength in self.ways(term).items():
            worth = strength * math.sqrt(self.rarity(len(self.having[stem])))
            most = max(most, worth)
            for at, counts in self.having[stem].items():
                f = sum(w * c for w, c in zip(weights, counts))
                best[at] = max(best.get(at, 0), worth * f / (f + norms[at]))
                strongest[at] = max(strongest.get(at, 0), strength)
        if not best:
            return {}, setting['unknown'] * math.log(1 + len(self.tools))
        factor = (setting['weak'] if term in self.words.weak else 1) * math.sqrt(self.rarity(sum(strongest.values())))
        return {at: factor * b for at, b in best.items()}, factor * most

    def scores(self, terms, setting, norms, kept):
        scores, total = [0.0] * len(self.tools), 0.0
        for term in terms:
            if term not in kept:
                kept[term] = self.term_scores(term, setting, norms)
            for at, score in kept[term][0].items():
                scores[at] += score
            total += kept[term][1]
        asked = any(map(self.words.destroys, terms))
        return [s / total * (setting['unasked'] if t.destroys and not asked else 1) if total else 0 for s, t in zip(scores, self.tools)]

    def order(self, at, setting=None):
        """Names of the tools that the query finds, the best first."""
        setting = setting or self.setting
        scores = self.scores(self.terms[at], setting, self.norms(setting), {})
        return [self.tools[i].name for i in sorted(range(len(scores)), key=lambda i: -scores[i]) if scores[i] > 0 and scores[i] >= THRESHOLD]

    def places(self, setting):
        """Of each query: where the expected tool stands, from 1; 0 when it is not found."""
        norms, kept, places = self.norms(setting), {}, []
        for terms, wanted in zip(self.terms, self.expected):
            scores = self.scores(terms, setting, norms, kept)
            mine = scores[wanted]
            before = sum(s > mine or (s == mine and at < wanted) for at, s in enumerate(scores))
            places.append(before + 1 if mine > 0 and mine >= THRESHOLD else 0)
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
    """(setting, places, how many are as good) on that half of the queries: most among five, then most first, and of those
    that are equal the one nearest to the committed, by constants that differ and then by how much."""
    before = tried[0][0]

    def distance(setting):
        changed = [key for key in GRID if setting[key] != before[key]]
        return len(changed), sum(abs(setting[k] - before[k]) / (before[k] or 1) for k in changed)
    best = max(tally(places[half])[:2] for _, places in tried)
    equal = [one for one in tried if tally(one[1][half])[:2] == best]
    return *min(equal, key=lambda one: distance(one[0])), len(equal)
