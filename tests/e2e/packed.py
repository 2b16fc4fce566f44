# SPDX-License-Identifier: Apache-2.0
"""Reads what src/store/pack.c made shorter, by the description of the formats."""
import os
import sqlite3
from contextlib import closing

HEAD = 12  # of what is packed: a length and a checksum; then a block of LZ4


def unpacked(packed):
    """The plain bytes of a column of `events`."""
    if not packed:
        return packed
    block, plain, at = packed[HEAD:], bytearray(), 0

    def number(start):
        nonlocal at
        while start >= 15:
            start, at = start + block[at], at + 1
            if block[at - 1] != 255:
                break
        return start

    while at < len(block):
        token, at = block[at], at + 1
        literals = number(token >> 4)
        plain, at = plain + block[at:at + literals], at + literals
        if at == len(block):
            break
        back, at = int.from_bytes(block[at:at + 2], 'little'), at + 2
        for _ in range(number(token & 15) + 4):
            plain.append(plain[-back])
    assert len(plain) == int.from_bytes(packed[:4], 'little')
    return bytes(plain)


def events_in(path):
    """All bytes of the events, when `path` is Holdfast's database: there a search of the file would see only parts."""
    if os.path.basename(path) != 'holdfast.db':
        return b''
    with closing(sqlite3.connect(f'file:{path}?mode=ro', uri=True)) as db:
        rows = db.execute('SELECT records, bodies, packed FROM events').fetchall()
    return b'\n'.join(unpacked(c) if is_packed else c for *row, is_packed in rows for c in row if c)
