"""Distils the table of meanings of belljar-search from all-MiniLM-L6-v2.

1. Every piece of the model's vocabulary is embedded alone. The vectors are reduced to 256 dimensions
   (principal components, whitened, so that the few directions all pieces share do not drown the
   others), brought to length one, and weighted by how rare the piece is (its place in the vocabulary,
   which is roughly ordered by frequency).
2. From there the vectors are fitted to whole texts (`fit.py`). The texts are in published packages
   (`sources.json`, `texts.py`).
3. They are rounded to eight bits, each row with a scale of its own: `table.bin`.
4. The words nearest to each word are listed: `neighbours.bin`.

`SOURCES.txt`, written beside both, names the packages, their licences and the hashes of the files.
"""

import argparse
import dataclasses
import hashlib
import pathlib
import struct
import sys
import zipfile

import numpy
from tokenizers import Tokenizer

import packages
from fit import DIMENSIONS, fitted
from neighbours import neighbours
from pieces import Splitter
from teacher import Teacher
from texts import READERS

MAGIC = b"BJTABLE1"
BEGIN, END = 101, 102
SPECIAL = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
# Where the pieces begin that are ordered by frequency.
FIRST_RANKED = 996
MOST_TOKENS = 64
FEWEST_PIECES = 2
# Differences of another machine that the check accepts: numbers off by one because of a tie in rounding,
# and no more of them than this share; scales that differ in the last digits of single precision.
MOST_OFF_BY_ONE = 1e-3
SCALE_TOLERANCE = 1e-4


@dataclasses.dataclass
class Model:
    """The model, and the vectors it was asked for in earlier runs, if they are to be used again."""

    teacher: Teacher
    tokenizer: Tokenizer
    vocabulary: list[str]
    earlier: pathlib.Path | None

    @classmethod
    def read(cls, archive: pathlib.Path, root: pathlib.Path, earlier: pathlib.Path | None):
        files = root / "model"
        if not files.exists():
            zipfile.ZipFile(archive).extractall(files)
        (files,) = files.glob("*/model")
        tokenizer = Tokenizer.from_file(str(files / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        vocabulary = (files / "vocab.txt").read_text("utf-8").rstrip("\n").split("\n")
        return cls(Teacher(files / "model.safetensors"), tokenizer, vocabulary, earlier)

    def embed(self, tokens: list[list[int]]) -> numpy.ndarray:
        if self.earlier is None:
            return self.teacher.embed_all(tokens)
        file = self.earlier / f"{hashlib.sha256(repr(tokens).encode()).hexdigest()}.npy"
        if not file.exists():
            self.earlier.mkdir(exist_ok=True)
            numpy.save(file, self.teacher.embed_all(tokens))
        return numpy.load(file)

    def embed_texts(self, texts: list[str]) -> numpy.ndarray:
        encoded = (one.ids for one in self.tokenizer.encode_batch(texts))
        return self.embed([[*one[: MOST_TOKENS - 1], END] if len(one) > MOST_TOKENS else one for one in encoded])


def whitened(vectors: numpy.ndarray) -> numpy.ndarray:
    centred = vectors - vectors.mean(axis=0)
    variances, axes = numpy.linalg.eigh(centred.T @ centred / len(centred))
    variances, axes = variances[::-1][:DIMENSIONS], axes[:, ::-1][:, :DIMENSIONS]
    # An axis has no direction of its own: its largest part is made positive.
    largest = numpy.abs(axes).argmax(axis=0)
    axes = axes * numpy.sign(axes[largest, numpy.arange(DIMENSIONS)])
    return centred @ axes / numpy.sqrt(variances)


def pieces_alone(model: Model, kept: list[int]) -> numpy.ndarray:
    """The vectors of pieces that were embedded alone, weighted by rarity."""
    vectors = model.embed([[BEGIN, at, END] for at in range(len(model.vocabulary))])
    rows = whitened(vectors[kept])
    rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
    ranks = numpy.maximum(1, numpy.array(kept) - FIRST_RANKED + 1)
    weights = (numpy.log1p(ranks) / numpy.log1p(len(model.vocabulary))) ** 2
    return rows * weights[:, None]


def texts_of(source: packages.Source, archive: pathlib.Path, splitter: Splitter) -> list[str]:
    texts = dict.fromkeys(READERS[source.reader](archive))
    return [text for text in texts if len(splitter.pieces(text)) >= FEWEST_PIECES]


def table(rows: numpy.ndarray, vocabulary: list[str]) -> tuple[bytes, numpy.ndarray]:
    """The file for belljar-search, and its numbers."""
    largest = numpy.abs(rows).max(axis=1)
    numbers = numpy.rint(rows / largest[:, None] * 127).astype(numpy.int8)
    scales = (largest / 127).astype("<f4")
    pieces = [piece.encode() for piece in vocabulary]
    lengths = bytes(len(piece) for piece in pieces)
    counts = struct.pack("<II", len(vocabulary), DIMENSIONS)
    body = counts + lengths + scales.tobytes() + b"".join(pieces) + numbers.tobytes()
    return MAGIC + hashlib.sha256(body).digest() + body, numbers


def made(root: pathlib.Path, earlier: pathlib.Path | None) -> dict[str, bytes]:
    """All files, by name."""
    given = [(source, source.fetched(root)) for source in packages.sources()]
    (_, archive), *rest = given
    model = Model.read(archive, root, earlier)
    kept = [
        at
        for at, piece in enumerate(model.vocabulary)
        if piece not in SPECIAL and not piece.startswith("[unused")
    ]
    vocabulary = [model.vocabulary[at] for at in kept]
    splitter = Splitter(vocabulary)
    read = [(source, texts_of(source, archive, splitter)) for source, archive in rest]
    embedded = []
    for source, texts in read:
        print(f"{source.name}: {len(texts)} texts", file=sys.stderr)
        embedded.append(model.embed_texts(texts))
    texts = [text for _, of_source in read for text in of_source]
    pieces = [splitter.pieces(text) for text in texts]
    rows = fitted(pieces_alone(model, kept), texts, pieces, numpy.concatenate(embedded))
    table_file, numbers = table(rows, vocabulary)
    files = {"table.bin": table_file, "neighbours.bin": neighbours(table_file, numbers, vocabulary)}
    counts = {source.name: len(of_source) for source, of_source in read}
    return files | {"SOURCES.txt": manifest(files, counts)}


def manifest(files: dict[str, bytes], counts: dict[str, int]) -> bytes:
    lines = ["What the table of meanings is made of. Written by scripts/distill/distill.", ""]
    for source in packages.sources():
        texts = f" ({counts[source.name]} texts)" if source.name in counts else ""
        lines += [
            f"{source.name} {source.version}",
            f"  from     {source.registry}: {source.file}",
            f"  sha256   {source.sha256}",
            f"  licence  {source.licence}",
            f"  used     {source.used}{texts}",
            "",
        ]
    lines += [f"{hashlib.sha256(file).hexdigest()}  {name}" for name, file in files.items()]
    return ("\n".join(lines) + "\n").encode()


def parts(file: bytes) -> tuple[bytes, numpy.ndarray, numpy.ndarray]:
    """Of a table: everything that must be the same, the scales, the numbers."""
    file = file[len(MAGIC) + hashlib.sha256().digest_size :]
    (count,) = struct.unpack_from("<I", file)
    scales = 8 + count
    numbers = len(file) - count * DIMENSIONS
    same = file[:scales] + file[scales + 4 * count : numbers]
    return (
        same,
        numpy.frombuffer(file[scales : scales + 4 * count], "<f4"),
        numpy.frombuffer(file[numbers:], numpy.int8).astype(int),
    )


def check(files: dict[str, bytes], directory: pathlib.Path) -> bool:
    shipped = {name: (directory / name).read_bytes() for name in files}
    if files == shipped:
        print("the same, bit for bit")
        return True
    tables = files["table.bin"], shipped["table.bin"]
    if len(tables[0]) != len(tables[1]):
        print(f"{len(tables[0])} bytes instead of {len(tables[1])}")
        return False
    (same, scales, numbers), (shipped_same, shipped_scales, shipped_numbers) = map(parts, tables)
    off = numpy.abs(numbers - shipped_numbers)
    share, most = (off > 0).mean(), off.max()
    scale = (numpy.abs(scales - shipped_scales) / shipped_scales).max()
    print(f"numbers: {share:.2e} differ, by {most} at most; scales: by {scale:.2e} at most")
    is_like = most <= 1 and share <= MOST_OFF_BY_ONE and scale <= SCALE_TOLERANCE
    return same == shipped_same and is_like


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("root", type=pathlib.Path, help="directory for packages")
    arguments.add_argument("table", type=pathlib.Path, help="directory of the files to write or check")
    arguments.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments.add_argument("--reuse", action="store_true", help="use the model's answers of earlier runs")
    given = arguments.parse_args()
    files = made(given.root, given.root / "vectors" if given.reuse else None)
    if given.check:
        return 0 if check(files, given.table) else 1
    for name, file in files.items():
        (given.table / name).write_bytes(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
