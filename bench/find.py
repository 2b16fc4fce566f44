# SPDX-License-Identifier: Apache-2.0
"""How well find finds, how fast, and what find and run cost a model beside the whole list.

tests/peers/fifty.py plays six servers with fifty tools and eleven others with eighty-two; forty and seventy queries go through a
profile in search mode each, as a client would send them.  With --sweep, weights are tried on a model of the ranking
(rank_model.py): they are chosen on every second query and judged on the others, which the choice has not seen, and then the
other way round.

There is no tokenizer here: tokens are bytes / 4, and words (runs of letters and digits) stand beside them.  Counted once
with o200k_base, the rule was 5 to 9 % too high for definitions and 5 % too low for the text of find.  Every host words
tools for its model in its own way: what is counted is the JSON that it gets."""
import http.client
import json
import os
import re
import statistics
import sys
import time

import rank_model
from subjects import TOP, Holdfast, Process, wait_until

sys.path.insert(0, os.path.join(TOP, 'tests/peers'))
import fifty  # noqa: E402

USES = (1, 3, 10)
ROUNDS = 10  # of all queries, for the latency
SMALL = 'git'
WORD = re.compile(r'[A-Za-z\d]+')


def dump(value):
    return json.dumps(value, separators=(',', ':'), ensure_ascii=False)


class Finder(Holdfast):
    """Holdfast before all servers: a profile that searches and one that lists of the first six, of a small one, and of the others."""

    def __init__(self, folder):
        Process.__init__(self, 'holdfast find', '')
        self.folder = os.path.join(folder, 'find')
        self.log = os.path.join(self.folder, 'log')
        self.env = {}
        self.config = {'mcpServers': fifty.entries(fifty.NAMES + fifty.TOWN), 'holdfast': {'profiles': {
            'town': {'mode': 'search', 'servers': list(fifty.TOWN)}, 'town-all': {'mode': 'all', 'servers': list(fifty.TOWN)},
            'search': {'mode': 'search', 'servers': list(fifty.NAMES)}, 'all': {'mode': 'all', 'servers': list(fifty.NAMES)},
            'small': {'mode': 'all', 'servers': [SMALL]}}}}


class Client:
    """A legacy client on one connection."""

    def __init__(self, port, profile):
        self.connection, self.path, self.headers, self.ident = http.client.HTTPConnection('127.0.0.1', port), f'/mcp/p/{profile}', {}, 0
        begun = self.rpc('initialize', {'protocolVersion': '2025-11-25', 'capabilities': {},
                                        'clientInfo': {'name': 'bench', 'version': '1'}})
        self.headers['MCP-Protocol-Version'] = begun['protocolVersion']

    def rpc(self, method, params):
        self.ident += 1
        body = dump({'jsonrpc': '2.0', 'id': self.ident, 'method': method, 'params': params})
        self.connection.request('POST', self.path, body.encode(), {
            'Content-Type': 'application/json', 'Accept': 'application/json, text/event-stream', **self.headers})
        answer = self.connection.getresponse()
        text = answer.read().decode()
        if answer.getheader('Mcp-Session-Id'):
            self.headers['Mcp-Session-Id'] = answer.getheader('Mcp-Session-Id')
        if 'event-stream' in answer.getheader('Content-Type', ''):
            text = [line[5:] for line in text.splitlines() if line.startswith('data:')][-1]
        message = json.loads(text)
        if 'result' not in message:
            sys.exit(f'{method} was refused: {text}')
        return message['result']

    def tools(self):
        return self.rpc('tools/list', {})['tools']

    def find(self, query, **more):
        return self.rpc('tools/call', {'name': 'find', 'arguments': {'description': query, **more}})

    def names(self, query, **more):
        return [t['name'] for t in self.find(query, **more)['structuredContent']['tools']]


def place(names, wanted):
    return names.index(wanted) + 1 if wanted in names else 0


def told(setting):
    return ', '.join(f'{name} {setting[name]:g}' for name in (*rank_model.FIELDS, 'k1', 'b', 'weak'))


def halves(places):
    """Rates of all queries, of those that weights are chosen on, and of those that are held out."""
    return [f'{five} / {first} of {len(some)}' for some in (places, places[0::2], places[1::2])
            for five, first, _ in [rank_model.tally(some)]]


# -- how well, and how fast

def measure_hits(report, client, queries, model):
    orders = [client.names(query, limit=100) for query, _ in queries]
    places = [place(order, tool) for order, (_, tool) in zip(orders, queries)]
    five, first, mean = rank_model.tally(places)
    alike = sum(model.order(i) == order for i, order in enumerate(orders))
    patient = [place(client.names(query, confidence_threshold=0), tool) for query, tool in queries]
    groups = [[i for i, says in enumerate(model.says_name) if says in kinds] for kinds in ((True, False), (True,), (False,))]

    def row(name, hit):
        return [name, *(f'{sum(map(hit, g))} of {len(g)} ({sum(map(hit, g)) / max(1, len(g)):.0%})' for g in groups)]
    servers = len({tool.name.split(':')[0] for tool in model.tools})
    report.table(f'find: {len(queries)} queries in plain words over {len(model.tools)} tools of {servers} servers',
                 ['expected tool is', 'all queries', "with a word of the tool's name", 'without any'],
                 [row('first', lambda i: places[i] == 1), row('among the first five', lambda i: 0 < places[i] <= 5),
                  row('the same with `confidence_threshold` 0', lambda i: 0 < patient[i] <= 5), row('found at all', lambda i: places[i] > 0)])
    all_, odd, even = halves(places)
    report.say(f'\nMean of 1 / place {mean:.2f}; among five / first: {all_}, odd queries {odd}, even ones {even}. '
               f'Weights, as ratios to that of the first sentence: {told(model.setting)}. '
               f'The model of the sweep orders the tools alike for {alike} of {len(queries)} queries.')
    report.say(f'\nFor {model.without_words()} queries the expected tool has no word of the query, nor one that means the same: no weight finds them.')
    report.table('find: what was not first', ['query', 'expected', 'place', 'first instead'],
                 [[query, tool, str(at) if at else 'not found', order[0] if order else '–']
                  for (query, tool), at, order in zip(queries, places, orders) if at != 1])
    return places


def measure_latency(report, client, queries):
    took = []
    for _ in range(ROUNDS):
        for query, _ in queries:
            began = time.perf_counter()
            client.find(query)
            took.append((time.perf_counter() - began) * 1000)
    took.sort()
    report.say(f'\nA find takes {statistics.median(took):.2f} ms at the median and {took[len(took) * 99 // 100]:.2f} ms at the 99th percentile of '
               f'{len(took)}, one after another, seen from a client in Python whose own time is in it.')


# -- tokens

class Size:
    """Of text that a model reads: bytes, tokens by the rule, words."""

    def __init__(self, *texts):
        self.bytes = sum(len(t.encode()) for t in texts)
        self.words = sum(len(WORD.findall(t)) for t in texts)

    @property
    def tokens(self):
        return self.bytes / 4


def definitions(tools):
    return Size(*map(dump, tools))


def told_to_model(result, structured):
    texts = [part['text'] for part in result['content']]
    return Size(*texts, *([dump(result['structuredContent'])] if structured else []))


class Way:
    """One way to use tools: what stands in the context at first, and what each use adds in one or two rounds."""

    def __init__(self, name, base, call, find=0.0, finds=None):
        self.name, self.base, self.call, self.find, self.finds = name, base, call, find, finds

    def rounds(self, uses):
        """What each round of the conversation adds to the context."""
        looked = self.finds if self.finds is not None else uses
        return [x for use in range(uses) for x in ([self.find] if self.find and use < looked else []) + [self.call]]

    def context(self, uses):
        return self.base + sum(self.rounds(uses))

    def sent(self, uses):
        """Input of all requests to the model when each sends the whole context again."""
        total = context = self.base
        for added in self.rounds(uses):
            context += added
            total += context
        return total


def ways_of(client, queries, places, full, small):
    """The ways, in tokens.  A use is the mean over all queries; a query whose tool is not on the page is looked for twice."""
    direct = statistics.mean(Size(tool.replace(':', '__'), '{}').tokens for _, tool in queries)
    run = statistics.mean(Size('run', dump({'tool': tool, 'parameters': {}})).tokens for _, tool in queries)

    def find(structured=False, **more):
        each = [Size('find', dump({'description': query, **more})).tokens + told_to_model(client.find(query, **more), structured).tokens
                for query, _ in queries]
        return (1 + sum(not 0 < p <= more.get('limit', 5) for p in places) / len(places)) * statistics.mean(each)
    two = definitions(client.tools()).tokens
    return [Way(f'the whole list, {len(full)} tools', definitions(full).tokens, direct),
            Way('find + run', two, run, find()),
            Way('find + run, `limit` 3', two, run, find(limit=3)),
            Way('find + run, a host that shows `structuredContent` too', two, run, find(True)),
            Way('find once, then run the same tool', two, run, find(), finds=1),
            Way(f'the whole list of a small profile, {len(small)} tools', definitions(small).tokens, direct)]


def break_even(way, full, cost):
    for uses in range(1, 1000):
        if cost(way, uses) > cost(full, uses):
            return str(uses)
    return 'never'


def measure_tokens(report, client, queries, places, full, small):
    parts = [('tools/list, all', full), (f'tools/list, {SMALL} alone', small), ('tools/list, find and run', client.tools())]
    rows = [[name, str(len(tools)), f'{s.bytes:,}', f'{s.tokens:,.0f}', f'{s.words:,}'] for name, tools in parts for s in [definitions(tools)]]
    for name, structured in (('a result of find, text', False), ('the same with structuredContent', True)):
        sizes = [told_to_model(client.find(query), structured) for query, _ in queries]
        rows.append([name + ' (mean)', '5', *(f'{statistics.mean(getattr(s, k) for s in sizes):,.0f}' for k in ('bytes', 'tokens', 'words'))])
    report.table('find and run: what a model reads', ['what', 'tools', 'bytes', 'tokens (bytes / 4)', 'words'], rows)
    ways = ways_of(client, queries, places, full, small)
    for title, cost in (('tokens in the context after so many uses', Way.context),
                        ('tokens sent in all, when every round sends the whole context again', Way.sent)):
        report.table('find and run: ' + title, ['way', *(f'{n} use' + 's' * (n > 1) for n in USES), 'dearer than the whole list from'],
                     [[w.name, *(f'{cost(w, n):,.0f}' for n in USES), break_even(w, ways[0], cost) if w.find else '–'] for w in ways])
    report.say(f'\nOf {SMALL} alone, with its {len(small)} tools, the list is cheaper than find + run from use '
               f'{break_even(ways[1], ways[-1], Way.context)} on.')
    report.say('\nParameters and results of the tools are the same either way and not counted, nor is the conversation. A use that looks first '
               'takes one round more, which sends the conversation again and waits for the model again.')


# -- weights

def measure_sweep(report, model):
    tried = rank_model.sweep(model)
    rows = [['committed', told(model.setting), *halves(tried[0][1]), '–']]
    for name, half in (('odd', slice(0, None, 2)), ('even', slice(1, None, 2)), ('all', slice(None))):
        setting, places, equal = rank_model.choose(tried, half)
        rows.append([f'chosen on {name} queries', told(setting), *halves(places), f'{equal:,}'])
    report.table(f'find: {len(tried):,} settings (queries whose tool is among five / first)',
                 ['setting', 'weights', 'all', 'odd queries', 'even queries', 'settings as good there'], rows)
    fives, firsts = zip(*(rank_model.tally(places)[:2] for _, places in tried))
    report.say(f'\nOver all settings {min(fives)} to {max(fives)} queries have their tool among five, {min(firsts)} to {max(firsts)} first.')
    rows = []
    for key, values in rank_model.GRID.items():
        for value in values:
            setting = {**model.setting, key: value}
            rows.append([f'{key} {value:g}' + (' (committed)' if model.setting[key] == value else ''), *halves(model.places(setting)),
                         f'{rank_model.tally(model.places(setting))[2]:.3f}'])
    report.table('find: one weight turned, the others as committed', ['setting', 'all', 'odd queries', 'even queries', 'mean of 1 / place'], rows)


def measure_town(report, port):
    wait_until(lambda: len(Client(port, 'town-all').tools()) == sum(len(fifty.tools_of(n)) for n in fifty.TOWN), 'the other servers', pause=0.1)
    queries = fifty.queries('town')
    measure_hits(report, Client(port, 'town'), queries, rank_model.Model({n: fifty.tools_of(n) for n in fifty.TOWN}, queries))


def measure(report, folder, with_sweep):
    subject = Finder(folder).start()
    try:
        queries = fifty.queries()
        client = Client(subject.port, 'search')
        everything = Client(subject.port, 'all')
        wait_until(lambda: len(everything.tools()) == sum(len(fifty.tools_of(n)) for n in fifty.NAMES), 'the six servers', pause=0.1)
        model = rank_model.Model({name: fifty.tools_of(name) for name in fifty.NAMES}, queries)
        places = measure_hits(report, client, queries, model)
        measure_latency(report, client, queries)
        measure_town(report, subject.port)
        measure_tokens(report, client, queries, places, everything.tools(), Client(subject.port, 'small').tools())
        if with_sweep:
            measure_sweep(report, model)
    finally:
        subject.stop()
