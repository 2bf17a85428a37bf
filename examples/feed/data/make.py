#!/usr/bin/env python3
"""Writes feed.txt, the default input of the example: the same bytes on every machine.

Usage: python3 make.py [PATH]
"""

import sys
from pathlib import Path

LINES = 51_000
MEGABYTE = 1_000_000

WORDS = b"apple pear quince medlar plum cherry almond fig walnut hazel mulberry olive".split()


def words(n: int) -> bytes:
    """A few words that depend on n and nothing else."""
    state = n * 2_654_435_761 % 2**32
    picked = []
    for _ in range(1 + state % 4):
        state = (state * 1_103_515_245 + 12_345) % 2**31
        picked.append(WORDS[(state >> 16) % len(WORDS)])
    return b" ".join(picked)


def line(n: int) -> bytes:
    """Line n, from 1, without its newline."""
    if n == 777 or n == 30_000:
        return b"%d " % n + b"0123456789abcdef" * (MEGABYTE // 16)
    if n % 10 == 3:
        return b""
    if n % 10 == 5:
        return b"the same line again"
    if n % 97 == 11:
        return words(n) + b"\r"
    if n % 97 == 23:
        return b"\xff\xfe\x00" + words(n) + b"\xc3"
    if n % 97 == 41:
        return b"  spaces \t and tabs  "
    if n % 97 == 59:
        return "größe, 你好, 🌳".encode()
    return b"%d " % n + words(n)


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("feed.txt")
    # The last line has no newline.
    path.write_bytes(b"\n".join(line(n) for n in range(1, LINES + 1)))


if __name__ == "__main__":
    main()
