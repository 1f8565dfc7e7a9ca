"""Splits texts into pieces of the vocabulary, as belljar-search does with ASCII texts.

Stop words are read from the crate's own list. That longer words come apart as in the model's tokenizer
is tested there (`reference.py`).
"""

import pathlib
import re

TERMS = "crates/belljar-search/src/terms.rs"
INSIDE = "##"
WORD = re.compile(r"[A-Za-z0-9]+")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Splitter:
    """Knows the pieces of a vocabulary by their places in it."""

    def __init__(self, vocabulary: list[str]):
        self.first = {}
        self.further = {}
        for at, piece in enumerate(vocabulary):
            if piece.startswith(INSIDE) and len(piece) > len(INSIDE):
                self.further[piece[len(INSIDE) :]] = at
            else:
                self.first[piece] = at
        self.empty = stop_words()
        self.known: dict[str, list[int]] = {}

    def pieces(self, text: str) -> list[int]:
        """The pieces of all words but the stop words."""
        found = []
        for joined in WORD.findall(text):
            for word in HUMP.split(joined):
                word = word.lower()
                if word not in self.empty:
                    if word not in self.known:
                        self.known[word] = self.of_word(word)
                    found.extend(self.known[word])
        return found

    def of_word(self, word: str) -> list[int]:
        """Again and again the longest piece there is; none if the word is not made of pieces."""
        found, begin = [], 0
        while begin < len(word):
            known = self.further if begin else self.first
            ends = range(len(word), begin, -1)
            end = next((end for end in ends if word[begin:end] in known), None)
            if end is None:
                return []
            found.append(known[word[begin:end]])
            begin = end
        return found


def stop_words() -> set[str]:
    program = pathlib.Path(TERMS).read_text()
    begin = program.index("const EMPTY")
    return set(re.findall(r'"(\w+)"', program[begin : program.index("];", begin)]))
