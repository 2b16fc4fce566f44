# SPDX-License-Identifier: Apache-2.0
"""What a process has in its memory, or would have in a core image: read page by page, where the kernel lets
us.  (gcore writes the same, and of a program with sanitizers more than a disk holds.)"""
import os
import re

import pytest

PIECE = 16 << 20
# What sanitizers keep about memory is larger than any memory we have.
TOO_LARGE = 1 << 34


def regions(pid, dumped):
    """(first, end, name) of writable memory; dumped: of what a core image would hold."""
    head = None
    with open(f'/proc/{pid}/smaps', encoding='utf-8') as file:
        for line in file:
            words = line.split(None, 5)
            if not words[0].endswith(':'):
                first, end = (int(n, 16) for n in words[0].split('-'))
                head = (first, end, words[5].strip() if len(words) > 5 else '') if words[1].startswith('rw') else None
            elif words[0] == 'VmFlags:' and head and head[1] - head[0] < TOO_LARGE and not (dumped and 'dd' in line.split()):
                yield head


def pieces(memory, first, end, overlap):
    at = first
    while at < end:
        n = min(PIECE, end - at)
        try:
            yield at, os.pread(memory, min(n + overlap, end - at), at)
        except OSError:
            pass  # a guard page, or gone meanwhile
        at += n


def found_in(pid, needles, dumped=False):
    """(needle, where, the bytes around it) of each that is in the memory of the process."""
    pattern = re.compile(b'|'.join(re.escape(n) for n in needles))
    overlap, found = max(map(len, needles)), []
    try:
        memory = os.open(f'/proc/{pid}/mem', os.O_RDONLY)
        os.pread(memory, 1, next(regions(pid, dumped))[0])
    except PermissionError as why:
        pytest.skip(f'the memory of another process may not be read here: {why}')
    try:
        for first, end, name in list(regions(pid, dumped)):
            for at, data in pieces(memory, first, end, overlap):
                found += [(m.group(), f'{at + m.start():#x} {name}', data[max(0, m.start() - 60):m.end() + 60])
                          for m in pattern.finditer(data)]
    finally:
        os.close(memory)
    return found


def needles_in_file(path, needles):
    pattern = re.compile(b'|'.join(re.escape(n) for n in needles))
    overlap, rest, found = max(map(len, needles)), b'', set()
    with open(path, 'rb') as file:
        while data := file.read(PIECE):
            found |= set(pattern.findall(rest + data))
            rest = data[-overlap:]
    return found
