# SPDX-License-Identifier: Apache-2.0
"""The pages for people, read as tests: their blocks, the commands in them, and what those should print.

The convention of every page (README.md, SECURITY.md and docs/*.md):

  ```console   lines with "$ " are run in order, in one shell and one scratch home for each page; the lines
               after it are what it prints, where … stands for anything and blanks for any blanks.  Lines that
               name the data directory are left out.  A line "> " continues the command above
  ```json      a configuration passes `holdfast config check`; one that begins with "// NAME.json" is written
               to that file before the blocks below it run.  Other JSON has to parse
  everything else, and code in a sentence: a line that begins with `holdfast` names a command, a subcommand
               and flags that exist"""
import glob
import json
import os
import re
import shlex
import subprocess

import harness

FENCES = ('', 'console', 'json', 'sh', 'text', 'ini', 'toml', 'yaml', 'nginx', 'sql', 'python', 'js')
CONFIG_KEYS = {'mcpServers', 'servers', 'holdfast', 'inputs'}


def names():
    """Every page, relative to the top; not the decisions, and not what is generated (test_openapi, gen-docs)."""
    found = [os.path.join(harness.TOP, name) for name in ('README.md', 'SECURITY.md', 'CONTRIBUTING.md')]
    return [os.path.relpath(path, harness.TOP) for path in found + sorted(glob.glob(os.path.join(harness.TOP, 'docs/*.md')))]


def read(page):
    with open(os.path.join(harness.TOP, page), encoding='utf-8') as file:
        return file.read()


def blocks(text):
    """[(language, text, number of its first line)] of the fenced blocks; indented ones have the language None."""
    found, inside, indented = [], None, None
    for number, line in enumerate(text.split('\n'), 1):
        fence = re.match(r'^( *)```(\w*) *$', line)
        if inside is not None:
            if fence and not fence.group(2):
                found.append(inside)
                inside = None
            else:
                inside = (inside[0], inside[1] + line.removeprefix(margin) + '\n', inside[2])
        elif fence:
            found += [indented] if indented else []
            indented = None
            margin, inside = fence.group(1), (fence.group(2), '', number + 1)
        elif line.startswith('    ') and line.strip():
            if indented is None:
                indented = (None, '', number)
            indented = (None, indented[1] + line.strip() + '\n', indented[2])
        elif indented and line.strip():
            found.append(indented)
            indented = None
    assert inside is None, 'a block does not end'
    return found + ([indented] if indented else [])


def steps(block):
    """[[command, expected output]] of a console block."""
    found = []
    for line in block.split('\n'):
        if line.startswith('$ '):
            found.append([line[2:], ''])
        elif line.startswith('> ') and found and not found[-1][1]:
            found[-1][0] += '\n' + line[2:]
        elif line.strip():
            assert found, f'a console block begins with {line!r}, not with a command'
            found[-1][1] += line + '\n'
    return found


def matches(expected, printed):
    """Whether the whole output is as expected: `…` stands for anything, blanks for any blanks."""
    expected, printed = ('\n'.join(' '.join(line.split()) for line in text.strip().split('\n')) for text in (expected, printed))
    return re.fullmatch(re.escape(expected).replace('…', r'[\s\S]*?'), printed) is not None


def without_comments(text):
    """JSON as Holdfast reads it becomes JSON as Python does: no comments, no trailing commas."""
    text = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*[\s\S]*?\*/', lambda m: m.group(1) or '', text)
    return re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', lambda m: m.group(1) or '', text)


def configuration(block):
    """Whether the JSON is a configuration; ValueError where it is no JSON."""
    value = json.loads(without_comments(block))
    return isinstance(value, dict) and bool(value) and set(value) <= CONFIG_KEYS


# Which commands there are.

class Commands:
    """The table of commands, from the page that the program prints of it."""

    def __init__(self):
        page = subprocess.run([harness.BINARY, 'help', '--markdown', 'cli'], capture_output=True, text=True, check=True).stdout
        self.subcommands, self.flags = {}, {}
        for section in page.split('\n## holdfast ')[1:]:
            name = section.split('\n', 1)[0].strip()
            usage = re.search(r'```\nholdfast ' + re.escape(name) + r' ?(.*)\n```', section).group(1)
            words = re.split(r'[|\s]+', re.sub(r'\[[^\]]*\]', '', usage).strip())
            self.subcommands[name] = {w for w in words if re.fullmatch(r'[a-z][a-z-]*', w)} if re.match('[a-z]', words[0]) else set()
            self.flags[name] = set(re.findall(r'^\| `(-[\w-]*)` \|', section, re.M)) | {'--help', '-h'}

    def mistake(self, words):
        """What is wrong with the words after `holdfast`, or None."""
        name = words[0] if words else ''
        if name in ('--help', '-h', '--version'):
            return None
        if name not in self.flags:
            return f'there is no command {name!r}'
        rest = words[1:words.index('--')] if '--' in words else words[1:]
        for word in rest:
            if word.startswith('-') and word != '-' and not re.fullmatch(r'-n\d+', word) and word.split('=')[0] not in self.flags[name]:
                return f'{name} has no flag {word}'
        if self.subcommands[name] and rest and re.fullmatch(r'[a-z][a-z-]*', rest[0]) and rest[0] not in self.subcommands[name]:
            return f'{name} has no subcommand {rest[0]}'
        return None


def invocations(line):
    """[words after `holdfast`] of each call of it in one line of a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars='|&;<>()')
    lexer.whitespace_split, lexer.commenters = True, '#'
    try:
        words = list(lexer)
    except ValueError:  # a quote that goes on in the next line, or prose
        words = line.split()
    simple = [[]]
    for word in words:
        if word and set(word) <= set('|&;<>()'):
            simple.append([])
        else:
            simple[-1].append(word)
    found = []
    for command in simple:
        while command and (command[0] in ('sudo', 'exec', 'env', '-u') or re.match(r'\w+=', command[0])):
            command = command[2 if command[0] == '-u' else 1:]
        if command and (command[0] == 'holdfast' or command[0].endswith('/holdfast')):
            found.append(command[1:])
    return found


def lines_with_commands(text):
    """[(number, line)] in which `holdfast` is a command: lines of blocks, and code in sentences."""
    found, prose = [], text.split('\n')
    for language, block, first in blocks(text):
        lines = block.split('\n')
        for offset, line in enumerate(lines):
            if offset < len(lines) - 1:
                prose[first + offset - 1] = ''
            if language == 'console':
                line = line[2:] if line.startswith(('$ ', '> ')) else ''
            if language != 'json' and line.strip():
                found.append((first + offset, line.strip()))
    for span in re.finditer(r'(?<!`)`((?:sudo [^`]*?|[A-Z_]+=\S+ )?holdfast [^`]+)`', '\n'.join(prose)):
        number = '\n'.join(prose).count('\n', 0, span.start()) + 1
        found.append((number, ' '.join(span.group(1).split())))
    return found
