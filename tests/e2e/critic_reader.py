# SPDX-License-Identifier: Apache-2.0
"""A second reader of CriticMarkup, written from the description in src/docs/critic/critic.h and sharing
nothing with it: the library walks bytes, this one asks regular expressions.  With code=False it reads
as tools do that know nothing of Markdown, for which code hides no mark."""
import json
import re

KINDS = {'++': 'insert', '--': 'delete', '~~': 'replace', '>>': 'comment', '==': 'highlight'}
CLOSE = {'insert': '++}', 'delete': '--}', 'replace': '~~}', 'comment': '<<}', 'highlight': '==}'}
CHANGE = r'\{(?:\+\+(?!\+?\})|--(?!-?\})|~~(?!~?\}))'
OPENS = re.compile(r'(?P<change>' + CHANGE + r')|\{>>|\{==')
ENDS = {
    'insert': re.compile(r'(?P<end>\+\+\})|' + CHANGE),
    'delete': re.compile(r'(?P<end>--\})|' + CHANGE),
    'replace': re.compile(r'(?P<end>~~\})|' + CHANGE),
    'comment': re.compile(r'(?P<end><<\})|\{>>'),
    'highlight': re.compile(r'(?P<end>==\})|\{==|' + CHANGE),
}
FENCE = re.compile(r' {0,3}(?:(?P<ticks>`{3,})[^`\n]*|(?P<tildes>~{3,})[^\n]*)(?:\n|\Z)')
STOP = re.compile(r'\n(?=[ \t\r]*(?:\n|\Z)| {0,3}(?:`{3,}[^`\n]*(?:\n|\Z)|~{3,}))')
NEXT = re.compile(r'[`\\{\n]')


class Mark:
    """One mark as it stands in the text: `raw` is text[start:end]."""

    def __init__(self, kind, start, end, raw, meta, body):
        self.kind, self.start, self.end, self.raw = kind, start, end, raw
        self.author = meta.get('author') if isinstance(meta, dict) else None
        if not isinstance(self.author, str):
            self.author = None
        self.signature = raw[3:len(raw) - 3 - len(body)]
        self.old, self.new = {
            'insert': ('', body), 'delete': (body, ''), 'replace': tuple(body.split('~>', 1)) if '~>' in body else ('', ''),
            'comment': (raw, raw), 'highlight': (body, body)}[kind]
        self.body = body

    @property
    def by_agent(self):
        return self.author is not None and (
            self.author == 'AI' or (self.author.endswith("'s AI") and len(self.author) > 5))


def once(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError('two equal keys')
    return dict(pairs)


def no_constant(name):
    raise ValueError(name)


DECODER = json.JSONDecoder(object_pairs_hook=once, parse_constant=no_constant)


def depth_of(value):
    if isinstance(value, dict):
        return 1 + max([depth_of(v) for v in value.values()] or [0])
    if isinstance(value, list):
        return 1 + max([depth_of(v) for v in value] or [0])
    return 0


def signature(text, at):
    """The metadata at `at` and where the text behind it begins."""
    if not text.startswith('{', at):
        return {}, at
    try:
        value, end = DECODER.raw_decode(text, at)
    except ValueError:
        return {}, at
    if len(text[at:end].encode()) > 512 or depth_of(value) > 8 or not text.startswith('@@', end):
        return {}, at
    return value, end + 2


def mark_at(text, at):
    found = OPENS.match(text, at)
    if not found:
        return None
    kind = KINDS[text[at + 1:at + 3]]
    meta, body = signature(text, at + 3)
    for meta, body in ((meta, body), ({}, at + 3)):
        end = ENDS[kind].search(text, body)
        if end and end.group('end') and (kind != 'replace' or '~>' in text[body:end.start()]):
            return Mark(kind, at, end.end(), text[at:end.end()], meta, text[body:end.start()])
    return None


def fence_end(text, at):
    opened = FENCE.match(text, at)
    if not opened:
        return None
    run = opened.group('ticks') or opened.group('tildes')
    close = re.compile(r'^ {0,3}%s{%d,}[ \t\r]*$\n?' % (re.escape(run[0]), len(run)), re.M)
    found = close.search(text, opened.end()) if opened.end() < len(text) else None
    return found.end() if found else len(text)


def span_end(text, at):
    """The end of the code span that begins at `at`, or of its backticks alone, and whether it is one."""
    run = re.compile('`+').match(text, at).group()
    stop = STOP.search(text, at)
    limit = stop.end() if stop else len(text)
    if len(run) < 64:
        same = re.compile(r'(?<!`)%s(?!`)' % run).search(text, at + len(run), limit)
        if same:
            return same.end(), True
    return at + len(run), False


def read(text, code=True):
    """The marks of a text, in order."""
    marks, at, accepted_ends_line = [], 0, True
    while at < len(text):
        if code and accepted_ends_line:
            end = fence_end(text, at)
            if end:
                at, accepted_ends_line = end, text[end - 1] == '\n'
                continue
        c = text[at]
        if c == '`' and code:
            at, _ = span_end(text, at)
            accepted_ends_line = text[at - 1] == '\n'
        elif c == '\\' and code and text[at + 1:at + 2] in ('`', '\\') and at + 1 < len(text):
            at, accepted_ends_line = at + 2, False
        elif c == '{' and mark_at(text, at):
            mark = mark_at(text, at)
            marks.append(mark)
            at = mark.end
            if mark.new:
                accepted_ends_line = mark.kind != 'comment' and mark.new.endswith('\n')
        else:
            at, accepted_ends_line = at + 1, c == '\n'
    return marks


def render(text, of, marks=None):
    """The text with every mark replaced by of(mark); None leaves it."""
    out, done = [], 0
    for mark in marks if marks is not None else read(text):
        with_ = of(mark)
        out += [text[done:mark.start], mark.raw if with_ is None else with_]
        done = mark.end
    return ''.join(out) + text[done:]


def accepted(text):
    return render(text, lambda mark: None if mark.kind == 'comment' else mark.new)
