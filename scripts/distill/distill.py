"""Distils the table of meanings of belljar-search from all-MiniLM-L6-v2.

Every piece of the model's vocabulary is embedded alone. The vectors are reduced to 256 dimensions
(principal components, whitened, so that the few directions all pieces share do not drown the
others), brought to length one, weighted by how rare the piece is (its place in the vocabulary,
which is roughly ordered by frequency), and rounded to eight bits, each row with a scale of its own.
"""

import argparse
import hashlib
import pathlib
import struct
import sys

import numpy

from teacher import Teacher

MAGIC = b"BJTABLE1"
DIMENSIONS = 256
BATCH = 512
BEGIN, END = 101, 102
SPECIAL = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
# Where the pieces begin that are ordered by frequency.
FIRST_RANKED = 996
# What the check accepts: numbers that are off by one because of a tie in rounding, and no more of
# them than this share; scales that differ in the last digits of single precision.
MOST_OFF_BY_ONE = 1e-4
SCALE_TOLERANCE = 1e-5


def embedded(teacher: Teacher, count: int) -> numpy.ndarray:
    vectors = []
    for begin in range(0, count, BATCH):
        pieces = numpy.arange(begin, min(count, begin + BATCH))
        ends = numpy.full_like(pieces, BEGIN), numpy.full_like(pieces, END)
        vectors.append(teacher.embed(numpy.stack([ends[0], pieces, ends[1]], axis=1)))
        print(f"\r{begin + len(pieces)} of {count}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return numpy.concatenate(vectors)


def whitened(vectors: numpy.ndarray) -> numpy.ndarray:
    centred = vectors - vectors.mean(axis=0)
    variances, axes = numpy.linalg.eigh(centred.T @ centred / len(centred))
    variances, axes = variances[::-1][:DIMENSIONS], axes[:, ::-1][:, :DIMENSIONS]
    # An axis has no direction of its own: its largest part is made positive.
    largest = numpy.abs(axes).argmax(axis=0)
    axes = axes * numpy.sign(axes[largest, numpy.arange(DIMENSIONS)])
    return centred @ axes / numpy.sqrt(variances)


def table(vectors: numpy.ndarray, vocabulary: list[str]) -> bytes:
    kept = [
        at
        for at, piece in enumerate(vocabulary)
        if piece not in SPECIAL and not piece.startswith("[unused")
    ]
    rows = whitened(vectors[kept])
    rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
    largest = numpy.abs(rows).max(axis=1)
    numbers = numpy.rint(rows / largest[:, None] * 127).astype(numpy.int8)
    ranks = numpy.maximum(1, numpy.array(kept) - FIRST_RANKED + 1)
    weights = (numpy.log1p(ranks) / numpy.log1p(len(vocabulary))) ** 2
    scales = (largest / 127 * weights).astype("<f4")
    pieces = [vocabulary[at].encode() for at in kept]
    lengths = bytes(len(piece) for piece in pieces)
    counts = struct.pack("<II", len(kept), DIMENSIONS)
    body = counts + lengths + scales.tobytes() + b"".join(pieces) + numbers.tobytes()
    return MAGIC + hashlib.sha256(body).digest() + body


def parts(file: bytes) -> tuple[bytes, numpy.ndarray, numpy.ndarray]:
    """Everything that must be the same, the scales, the numbers."""
    body = file[len(MAGIC) + hashlib.sha256().digest_size :]
    return body_parts(body)


def body_parts(file: bytes) -> tuple[bytes, numpy.ndarray, numpy.ndarray]:
    (count,) = struct.unpack_from("<I", file)
    scales = 8 + count
    numbers = len(file) - count * DIMENSIONS
    same = file[:scales] + file[scales + 4 * count : numbers]
    return (
        same,
        numpy.frombuffer(file[scales : scales + 4 * count], "<f4"),
        numpy.frombuffer(file[numbers:], numpy.int8).astype(int),
    )


def check(made: bytes, shipped: bytes) -> bool:
    if made == shipped:
        print("the same, bit for bit")
        return True
    if len(made) != len(shipped):
        print(f"{len(made)} bytes instead of {len(shipped)}")
        return False
    (same, scales, numbers), (shipped_same, shipped_scales, shipped_numbers) = map(
        parts, (made, shipped)
    )
    off = numpy.abs(numbers - shipped_numbers)
    share, most = (off > 0).mean(), off.max()
    scale = (numpy.abs(scales - shipped_scales) / shipped_scales).max()
    print(f"numbers: {share:.2e} differ, by {most} at most; scales: by {scale:.2e} at most")
    is_like = most <= 1 and share <= MOST_OFF_BY_ONE and scale <= SCALE_TOLERANCE
    return same == shipped_same and is_like


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("model", type=pathlib.Path, help="directory with model.safetensors")
    arguments.add_argument("table", type=pathlib.Path, help="the table to write or to check")
    arguments.add_argument("--check", action="store_true", help="compare instead of writing")
    given = arguments.parse_args()
    vocabulary = (given.model / "vocab.txt").read_text("utf-8").rstrip("\n").split("\n")
    teacher = Teacher(given.model / "model.safetensors")
    made = table(embedded(teacher, len(vocabulary)), vocabulary)
    if given.check:
        return 0 if check(made, given.table.read_bytes()) else 1
    given.table.write_bytes(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
