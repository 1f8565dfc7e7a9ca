"""For each word of the table, the words nearest to it."""

import hashlib
import struct

import numpy

from pieces import stop_words

MAGIC = b"BJNEARS1"
# Only words of letters: what is nearest to a number or a syllable says nothing.
FEWEST_LETTERS = 3
NEAR = 0.4
MOST = 8
BATCH = 1000


def neighbours(table: bytes, numbers: numpy.ndarray, vocabulary: list[str]) -> bytes:
    """The file for belljar-search: how long the list of each piece is, then all lists."""
    empty = stop_words()
    words = [
        at
        for at, piece in enumerate(vocabulary)
        if piece.isascii() and piece.isalpha() and len(piece) >= FEWEST_LETTERS and piece not in empty
    ]
    # Whole numbers, so that every machine finds the same products and the same order.
    rows = numbers[words].astype(numpy.float64)
    lengths = numpy.sqrt((rows * rows).sum(axis=1)) + 1e-9
    lists = [[] for _ in vocabulary]
    for begin in range(0, len(words), BATCH):
        batch = slice(begin, begin + BATCH)
        near = rows[batch] @ rows.T / (lengths[batch, None] * lengths)
        for at, row in enumerate(near, begin):
            row[at] = -1.0
            found = numpy.nonzero(row >= NEAR)[0]
            order = numpy.lexsort((found, -row[found]))[:MOST]
            lists[words[at]] = [words[other] for other in found[order]]
    body = bytes(len(one) for one in lists)
    body += b"".join(struct.pack("<H", other) for one in lists for other in one)
    return MAGIC + table[8:40] + hashlib.sha256(body).digest() + body
