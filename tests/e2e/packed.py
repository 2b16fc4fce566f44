# SPDX-License-Identifier: Apache-2.0
"""Reads what src/store/pack.c made shorter, by the description of the formats."""
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
