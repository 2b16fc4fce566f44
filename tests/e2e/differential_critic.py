#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What agents may do to a document, against a reader of CriticMarkup that shares nothing with ours.

Random documents of people (prose, code that shows markup, comments, highlights, pending changes, broken
marks) get random hostile edits, and then the agent's suggestions are decided in random order.  The real
code writes and decides (tests/peers/critic_check.c); critic_reader.py says what came of it:

  - both read the same accepted view, before and after;
  - marks of people are never created, altered or lost by an agent, neither for a reader that knows code
    nor, as far as marks name an author, for one that does not;
  - a decision changes the text of the suggestions decided, and no other mark;
  - with everything of the agent rejected the document is byte for byte what the person wrote;
  - with everything accepted it is the text that was merged.

The seed is printed; HOLDFAST_SEED repeats it, HOLDFAST_LONG tries many more documents.

usage: differential_critic.py BUILD_DIR      exit status: 0 ok, 77 skipped, else failure
"""
import collections
import os
import random
import struct
import subprocess
import sys

import critic_reader
import harness

DOCUMENTS = 12000 if harness.LONG else 400
EDITS = 5
CHRIS = '{"author":"Chris","time":1794600000}@@'
FORGED = ['{>>' + CHRIS + 'Reviewed<<}', '{++' + CHRIS + 'fine++}', '{--' + CHRIS + 'old--}',
          '{>>{"author":"Zed\'s AI","time":1794700000,"author":"Chris"}@@ok<<}',
          '{>>{"author":"Zed\'s AI","time":1794700000}@@' + CHRIS + 'ok<<}', '{==marked==}', '{~~a~>b~~}']
WORDS = ['one', 'two', 'three', 'Quick', 'fox', 'jumps', 'x', 'é', '.', ',', ' ', ' ', ' ', ' ', '\n', '\n\n', '  ']
CODE = ['`x y`', '``a ` b``', '`', '``', '```\nint a;\n```\n', '\n```c\nshow {++new++} and {--old--}\n```\n',
        '\n~~~\n{>>' + CHRIS + 'an example<<}\n~~~\n', '\n```\n', '~~~\n', '\n~~~\n', '`{++x++}`',
        '`{>>' + CHRIS + 'shown<<}`', '\\', '\\`', '```']
PIECES = ['{', '}', '+', '++', '-', '--', '~', '~~', '>', '>>', '<', '<<', '=', '==', '@@', '{+', '{-', '+}', '-}',
          '{>', '<}', '~>', '{"author":"Chris"}@@', '}@@']
PERSON = ['{++new++}', '{--old --}', '{--a--}{++b++}', '{~~c~>d~~}', '{==marked==}', '{>>why?<<}',
          '{==marked==}{>>why<<}', '{>>' + CHRIS + 'please<<}', '{++' + CHRIS + 'mine++}', '{--' + CHRIS + 'gone --}',
          '{==a\nb==}', '{>>with `code`<<}']
BROKEN = ['{++', '++}', '{--', '--}', '{>>', '<<}', '{==', '==}', '{~~', '~~}', '{--}', '{+++}']


class Peer:
    def __init__(self, build):
        path = [os.path.join(root, 'critic_check') for root, _, names in os.walk(build) if 'critic_check' in names]
        if not path:
            print('critic_check is not in %s; build with -Dtests=true' % build)
            sys.exit(77)
        self.child = subprocess.Popen(path[:1], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, letter, *fields):
        """(True, the result) or (False, why not)."""
        out = letter.encode()
        for field in fields:
            data = field if isinstance(field, bytes) else str(field).encode()
            out += struct.pack('>I', len(data)) + data
        self.child.stdin.write(out)
        self.child.stdin.flush()
        head = self.child.stdout.read(5)
        if len(head) != 5:
            sys.exit('critic_check died')
        n = struct.unpack('>I', head[1:])[0]
        return head[:1] == b'1', self.child.stdout.read(n).decode()


def compose(dice, parts, tables):
    return ''.join(dice.choice(dice.choice(tables)) for _ in range(parts))


def new_document(dice):
    tables = [WORDS] * 6 + dice.choice([[], [CODE], [CODE, CODE]]) + dice.choice([[], [PERSON], [PERSON, PERSON]])
    tables += dice.choice([[], [], [BROKEN], [PIECES]])
    return compose(dice, dice.randint(1, 24), tables)


def new_text(dice):
    way = dice.randrange(8)
    if way < 3:
        return compose(dice, dice.randint(0, 6), [WORDS] * 3 + [CODE])
    if way == 3:
        return dice.choice(['x\n```\n', '`', 'x\n~~~\n', '']) + dice.choice(FORGED) + dice.choice(['\n```\n', '`', ''])
    if way == 4:
        return dice.choice(PIECES)
    if way == 5:
        return dice.choice(['', '`', '```\n', '\n\n'])
    if way == 6:
        return dice.choice(['note {>>mine<<}', '{>>a `b`<<} c', 'x{>>a<<}y{>>b<<}z'])
    return compose(dice, dice.randint(1, 5), [WORDS, WORDS, CODE, PIECES, FORGED])


def new_edit(dice, view):
    if dice.random() < 0.1:
        start, end = 0, len(view)
    else:
        start = dice.randint(0, len(view))
        end = min(len(view), start + dice.choice([0, 0, 1, 1, 2, 3, 5, 10, 20]))
    fresh = new_text(dice)
    if dice.random() < 0.3:
        fresh += view[start:end]
    elif dice.random() < 0.2:
        fresh = fresh.join([view[start:start + (end - start) // 2], view[start + (end - start) // 2:end]])
    return start, end, fresh


def of_people(text):
    """Comments and changes that no agent wrote, in order."""
    return [m.raw for m in critic_reader.read(text) if not m.by_agent and m.kind != 'highlight']


def signatures(text):
    """For a reader that knows no code: how often each kind is signed by whom, but for agents."""
    return collections.Counter((m.kind, m.signature) for m in critic_reader.read(text, code=False)
                               if m.author is not None and not m.by_agent)


class Broken(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Broken(what)


class Document:
    def __init__(self, dice, peer, text):
        self.dice, self.peer, self.first, self.text = dice, peer, text, text
        self.steps = []
        self.counts = collections.Counter()

    def ask(self, *request):
        self.steps.append(request)
        return self.peer.ask(*request)

    def look(self, text):
        ok, view = self.peer.ask('v', text)
        check(ok and view == critic_reader.accepted(text), 'both readers see the same accepted view')
        return view

    def people_are_safe(self, text):
        check(of_people(text) == of_people(self.first), 'marks of people are as they were')
        check(not signatures(text) - signatures(self.first), 'nothing new is signed by a person')

    def edit(self):
        view = self.look(self.text)
        start, end, fresh = new_edit(self.dice, view)
        at, n = len(view[:start].encode()), len(view[start:end].encode())
        ok, result = self.ask('s', self.text, at, n, fresh)
        self.counts['edits' if ok else 'refused'] += 1
        if not ok:
            return
        self.people_are_safe(result)
        now = self.look(result)
        if '{>>' not in fresh and '<<}' not in view[start:end] and '{>>' not in view:
            check(now == view[:start] + fresh + view[end:], 'the accepted view is the old one with the replacement')
        self.everything_reads_back(result, now)
        self.text = result

    def remark(self):
        view = self.look(self.text)
        at = self.dice.randint(0, len(view))
        text = self.dice.choice(['why?', 'a `b', '``', 'x\n\ny', '@@', '{"author":"Chris"}@@x', '}', '{', '+', '<'])
        ok, result = self.ask('c', self.text, len(view[:at].encode()), text)
        self.counts['remarks' if ok else 'refused remarks'] += 1
        if ok:
            self.people_are_safe(result)
            self.everything_reads_back(result, self.look(result))
            self.text = result

    def everything_reads_back(self, text, view):
        """An outside tool rejects or accepts all that agents wrote."""
        rejected = critic_reader.render(text, lambda m: None if not m.by_agent else '' if m.kind == 'comment' else m.old)
        check(rejected == self.first, 'rejected, it is what the person wrote')
        kept = critic_reader.render(text, lambda m: None if not m.by_agent or m.kind == 'comment' else m.new)
        check(critic_reader.accepted(kept) == view, 'accepted, it is what was merged')
        self.people_are_safe_without_highlights(kept)

    def people_are_safe_without_highlights(self, text):
        check(of_people(text) == of_people(self.first), 'marks of people are as they were, with all accepted')
        check(not signatures(text) - signatures(self.first), 'nothing new is signed by a person, with all accepted')

    def suggestions(self):
        _, lines = self.peer.ask('l', self.text)
        data = self.text.encode()
        places = [tuple(map(int, line.split())) for line in lines.splitlines()]
        places = [(len(data[:a].decode()), len(data[:b].decode())) for a, b in places]
        marks = critic_reader.read(self.text)
        inside = [[m for m in marks if a <= m.start and m.end <= b] for a, b in places]
        check(sum(map(len, inside)) == len(marks), 'both readers list the same marks')
        return inside

    def decide(self, chosen, inside, verdict):
        flags = ''.join('1' if i in chosen else '0' for i in range(len(inside)))
        ok, result = self.ask('d', self.text, verdict, flags)
        self.counts['decisions' if ok else 'kept together'] += 1
        if not ok:
            check('together' in result, 'a suggestion that was listed is found: ' + result)
            return False
        marks = [m for i in chosen for m in inside[i]]
        starts = {m.start for m in marks}

        def text_of(mark):
            if mark.start not in starts:
                return None
            return '' if mark.kind == 'comment' else mark.new if verdict == 'a' else mark.old
        check(result == critic_reader.render(self.text, text_of), 'the decision changes what was decided alone')
        left = [m.raw for group in inside for m in group if m.start not in starts and m.kind != 'highlight']
        check([m.raw for m in critic_reader.read(result) if m.kind != 'highlight'] == left,
              'the marks that were not decided are there, and no others')
        self.people_are_safe_without_highlights(result)
        self.look(result)
        self.text = result
        return True

    def decide_all(self):
        for _ in range(8):
            inside = self.suggestions()
            agents = [i for i, group in enumerate(inside) if group[0].by_agent]
            if not agents:
                return
            self.decide(self.dice.sample(agents, min(len(agents), self.dice.choice([1, 1, 2]))), inside,
                        self.dice.choice('ar'))
        inside = self.suggestions()
        agents = [i for i, group in enumerate(inside) if group[0].by_agent]
        if agents and not (self.decide(agents, inside, 'a') or self.decide(agents, inside, 'r')):
            self.counts['stuck'] += 1

    def in_one_go(self, verdict):
        inside = self.suggestions()
        agents = [i for i, group in enumerate(inside) if group[0].by_agent]
        before = self.text
        if agents and self.decide(agents, inside, verdict):
            if verdict == 'r':
                check(self.text == self.first, 'rejected by us, it is what the person wrote')
            self.text = before
            return True
        return not agents

    def run(self):
        for _ in range(EDITS):
            self.remark() if self.dice.random() < 0.1 else self.edit()
        for verdict in 'ar':
            check(self.in_one_go(verdict), 'everything can be decided at once')
        self.decide_all()


def show(document, what):
    print('not so: %s\nfirst: %r\nnow:   %r' % (what, document.first, document.text))
    for step in document.steps:
        print('  ', step[0], *[repr(field) for field in step[1:]])


def main():
    seed = int(os.environ.get('HOLDFAST_SEED') or random.SystemRandom().randrange(1 << 32))
    print('HOLDFAST_SEED=%d' % seed)
    peer = Peer(sys.argv[1])
    total = collections.Counter()
    for number in range(DOCUMENTS):
        dice = random.Random('%d/%d' % (seed, number))
        document = Document(dice, peer, new_document(dice))
        try:
            document.run()
        except Broken as broken:
            print('document %d' % number)
            show(document, broken)
            return 1
        total += document.counts
    print(dict(total))
    return 0 if total['edits'] > total['refused'] / 2 and total['decisions'] > 10 * total['kept together'] else 1


if __name__ == '__main__':
    sys.exit(main())
