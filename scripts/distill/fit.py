"""Fits the vectors of pieces to whole texts.

A text is compared with others by the mean of the vectors of its pieces. The vectors are moved until that
mean points where the model's own embedding of the whole text points. The start is the table of pieces
that were embedded alone, turned by least squares into the space of the texts. A piece that occurs in no
text stays there.
"""

import hashlib
import sys

import numpy
import scipy.sparse

DIMENSIONS = 256
# Adam, on all texts at once: nothing is drawn at random.
RATE = 0.01
FIRST_MOMENT, SECOND_MOMENT, EPSILON = 0.9, 0.999, 1e-8
# How strongly a vector is pulled back to its start.
PULL = 0.1
MOST_STEPS = 150
# The fit ends when it has not improved on the texts kept apart for so many steps.
PATIENCE = 5
# A text is kept apart if the last byte of its hash is below this: five in a hundred.
KEPT_APART = 13


def principal(embedded: numpy.ndarray) -> numpy.ndarray:
    """The directions of the texts, centred, in their main 256 dimensions."""
    centred = embedded - embedded.mean(axis=0)
    axes = numpy.linalg.eigh(centred.T @ centred / len(centred))[1][:, ::-1][:, :DIMENSIONS]
    # An axis has no direction of its own: its largest part is made positive.
    largest = numpy.abs(axes).argmax(axis=0)
    axes = axes * numpy.sign(axes[largest, numpy.arange(DIMENSIONS)])
    return directions(centred @ axes)


def directions(vectors: numpy.ndarray) -> numpy.ndarray:
    return vectors / (numpy.linalg.norm(vectors, axis=1, keepdims=True) + 1e-12)


def means(texts: list[list[int]], count: int) -> scipy.sparse.csr_matrix:
    """The matrix that takes the vectors of pieces to their means over each text."""
    rows = numpy.repeat(numpy.arange(len(texts)), [len(text) for text in texts])
    columns = numpy.concatenate([numpy.array(text) for text in texts])
    shares = numpy.concatenate([numpy.full(len(text), 1 / len(text)) for text in texts])
    return scipy.sparse.csr_matrix((shares, (rows, columns)), (len(texts), count))


def fitted(
    start: numpy.ndarray, texts: list[str], pieces: list[list[int]], embedded: numpy.ndarray
) -> numpy.ndarray:
    """The vectors of all pieces, after the fit."""
    wanted = principal(embedded)
    apart = numpy.array([hashlib.sha256(text.encode()).digest()[-1] < KEPT_APART for text in texts])
    mean = means(pieces, len(start))
    near, near_apart = mean[~apart], mean[apart]
    turn = numpy.linalg.lstsq(near @ start, wanted[~apart], rcond=None)[0]
    table = start @ turn
    table /= numpy.linalg.norm(near @ table, axis=1).mean()
    used = numpy.unique(near.indices)
    table[used] = adam(
        table[used],
        (near[:, used].tocsr(), wanted[~apart]),
        (near_apart[:, used].tocsr(), wanted[apart]),
        PULL / len(start),
    )
    return table


def adam(start: numpy.ndarray, given: tuple, apart: tuple, pull: float) -> numpy.ndarray:
    mean, wanted = given
    transposed = mean.T.tocsr()
    table = start.copy()
    first, second = numpy.zeros_like(table), numpy.zeros_like(table)
    best, best_step, best_table = nearness(table, apart), 0, table
    for step in range(1, MOST_STEPS + 1):
        sums = mean @ table
        lengths = numpy.linalg.norm(sums, axis=1, keepdims=True) + 1e-12
        now = sums / lengths
        off = ((now * wanted).sum(axis=1, keepdims=True) * now - wanted) / lengths
        slope = transposed @ (off / len(wanted)) + pull * (table - start)
        first = FIRST_MOMENT * first + (1 - FIRST_MOMENT) * slope
        second = SECOND_MOMENT * second + (1 - SECOND_MOMENT) * slope * slope
        size = numpy.sqrt(second / (1 - SECOND_MOMENT**step)) + EPSILON
        table = table - RATE * (first / (1 - FIRST_MOMENT**step)) / size
        found = nearness(table, apart)
        print(f"\rfit: step {step}, {found:.4f}", end="", file=sys.stderr, flush=True)
        if found > best:
            best, best_step, best_table = found, step, table
        elif step - best_step >= PATIENCE:
            break
    print(file=sys.stderr)
    return best_table


def nearness(table: numpy.ndarray, texts: tuple) -> float:
    """The mean cosine between where texts point and where they should."""
    mean, wanted = texts
    return float((directions(mean @ table) * wanted).sum(axis=1).mean())
