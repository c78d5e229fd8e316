"""SentencePiece's unigram tokenizer: from a text to the ids of its pieces.

The text is brought into its compatible form (NFKC); white space becomes one space, other control
characters go; a word, with a mark for the space before it, is cut into the pieces of the vocabulary
whose scores have the largest sum (Kudo, arXiv:1804.10959). The pieces are those of the library
`tokenizers`, but for texts that only mean to be special: a piece such as `</s>` is none here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, Final
from unicodedata import category as kind_of
from unicodedata import normalize

from anaphora.errors import EmbeddingError

_SPACE: Final = "\u2581"
_KEPT_WORDS: Final = 1 << 14
_LONGEST_KEPT: Final = 32
_UNKNOWN_PENALTY: Final = 10.0
# What may change with what stands before it: marks, scripts that have many, half letters.
_CLUSTERS: Final = re.compile(
    "(?s).[\u0300-\u036f\u0483-\u0489\u0590-\u1cff\u1dc0-\u1dff\u20d0-\u20ff\u302a-\u302f"
    "\u3099\u309a\ua66f-\ua69f\ua800-\uabff\ufe20-\ufe2f\uff9e-\uffdc]*"
)
_WORDS: Final = re.compile("[^ ]+")

_Pieces = tuple[tuple[int, int], ...]
"""The pieces of one word: the id of each, and where it ends in the word."""


class Unigram:
    """`scores` has the id and the score of each piece, `unknown` is the id of any other."""

    def __init__(self, scores: Mapping[str, tuple[int, float]], unknown: int) -> None:
        self._scores = scores
        self._unknown = unknown
        self._worst = min((score for _, score in scores.values()), default=0.0) - _UNKNOWN_PENALTY
        # How long a piece that begins with these two characters may be: mostly there is none.
        self._reach: dict[str, int] = {}
        for piece in scores:
            self._reach[piece[:2]] = max(self._reach.get(piece[:2], 1), len(piece))
        self._forms = _Forms()
        self._words: dict[str, _Pieces] = {}

    def ids(self, text: str) -> list[int]:
        """The ids of the text's pieces, without special ones around them."""
        clean = "".join(map(self._forms.__getitem__, _CLUSTERS.findall(text)))
        return [piece for word in clean.split(" ") if word for piece, _ in self._pieces(word)]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) characters of `text` for each of its pieces."""
        clean: list[str] = []
        # Which characters of the text each character of the clean one comes from.
        origins: list[tuple[int, int]] = []
        for cluster in _CLUSTERS.finditer(text):
            form = self._forms[cluster.group()]
            clean.append(form)
            origins += [cluster.span()] * len(form)
        spans: list[tuple[int, int]] = []
        for word in _WORDS.finditer("".join(clean)):
            start = 0
            for _, end in self._pieces(word.group()):
                # The mark of the space before the word may be a piece of its own.
                first, last = word.start() + max(start - 1, 0), word.start() + max(end - 2, 0)
                spans.append((origins[first][0], origins[last][1]))
                start = end
        return spans

    def _pieces(self, word: str) -> _Pieces:
        word_pieces = self._words.get(word)
        if word_pieces is None:
            word_pieces = self._cut(_SPACE + word)
            if len(self._words) >= _KEPT_WORDS:
                self._words.clear()
            if len(word) <= _LONGEST_KEPT:
                self._words[word] = word_pieces
        return word_pieces

    def _cut(self, word: str) -> _Pieces:
        """The best way to cut a word: the best score up to each place, and its last piece."""
        length, piece_of, single = len(word), self._scores.get, (self._unknown, self._worst)
        best = [0.0, *[-inf] * length]
        last = [(0, 0)] * (length + 1)
        for start in range(length):
            so_far = best[start]
            reach = self._reach.get(word[start : start + 2], 1)
            for end in range(start + 1, min(length, start + reach) + 1):
                piece = piece_of(word[start:end], single if end == start + 1 else None)
                if piece is not None and so_far + piece[1] > best[end]:
                    best[end], last[end] = so_far + piece[1], (piece[0], start)
        return tuple(self._backwards(last))[::-1]

    def _backwards(self, last: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The pieces from the last one; several unknown characters in a row are one."""
        end = len(last) - 1
        while end:
            piece, start = last[end]
            while piece == self._unknown and start and last[start][0] == self._unknown:
                start = last[start][1]
            yield piece, end
            end = start


class _Forms(dict[str, str]):
    """The clean form of a few characters that belong together, computed once."""

    def __missing__(self, characters: str) -> str:
        form = "".join(
            " " if char.isspace() or char == _SPACE else char
            for char in normalize("NFKC", characters)
            if char.isspace() or kind_of(char)[0] != "C"
        )
        if len(characters) < 4:
            self[characters] = form
        return form


def read_unigram(content: bytes) -> Unigram:
    """A tokenizer from a `tokenizer.json` of the library `tokenizers`.

    Raises EmbeddingError if it is not a unigram one of this form.
    """
    try:
        raw: Any = json.loads(content)
        model, form = raw["model"], raw["normalizer"]["normalizers"][0]["type"]
        if (model["type"], form) != ("Unigram", "NFKC") or model["byte_fallback"]:
            raise EmbeddingError(f"another tokenizer was expected than {model['type']}, {form}")
        unknown = int(model["unk_id"])
        # The first ones, up to the unknown one, are no text.
        scores = {
            piece: (number, score)
            for number, (piece, score) in enumerate(model["vocab"])
            if number > unknown
        }
        return Unigram(scores, unknown)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise EmbeddingError(f"the model's tokenizer cannot be read: {error!r}") from error
