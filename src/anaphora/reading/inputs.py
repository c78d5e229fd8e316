"""What goes into the reader: the texts of statements, and the word pieces of a question with them.

An answer is read as `question [SEP] statement`, a change as `question [SEP] older [SEP] newer`, in
which the question may be empty; the last part has the second token type, so that older and newer
are told apart. Training (`tools/reader`, `tools/judge`), recall and the judge of pairs make their
inputs here, so that all have the same form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from anaphora.embed.base import without_final_marks
from anaphora.embed.minilm import MINILM
from anaphora.embed.wordpiece import WordPiece, read_wordpiece
from anaphora.language.folding import typed_text

QUESTION_PIECES: Final = 40
CANDIDATE_PIECES: Final = 96
STATEMENT_PIECES: Final = 64
WINDOW: Final = 4 + QUESTION_PIECES + 2 * STATEMENT_PIECES
"""Word pieces of the longest input, two statements with [CLS] and three [SEP]."""

BEFORE_CHARACTERS: Final = 120
"""What is read of the turn before: a statement's own words must stay within its pieces."""

_QUESTION_MARKS: Final = ("?", "？", "؟", "՞")

TOKENIZER: Final = MINILM / "tokenizer.json"
_CLS, _SEP = 101, 102
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

Whole = npt.NDArray[np.int64]


def said_text(text: str, speaker: str | None) -> str:
    """A turn as it stands before another: "Ann: text", as it was typed."""
    return f"{speaker}: {text}" if speaker else text


def statement_text(
    text: str, *, day: date | None = None, speaker: str | None = None, before: str = ""
) -> str:
    """A statement as the reader reads it: "4 March 2024, Ann: text", the question before behind it.

    `before` is the turn before as `said_text` gives it; "" where there is none. The end of it is
    read, and only if it asks: a reply needs what it replies to, and beside any other statement the
    order of telling must not matter. Final marks are left out, since some type them and others do
    not. A memory has a day and its text only.
    """
    statement = said_text(without_final_marks(typed_text(text)), speaker)
    if before.rstrip(" \"'»”’)*_\n").endswith(_QUESTION_MARKS):
        statement = _put_before(statement, before)
    # Names of months of its own: `strftime` has those of the user's locale.
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}, {statement}" if day else statement


def pair_text(text: str, speaker: str = "", before: str = "") -> str:
    """A statement of a pair as it is read: "Ann: text", the end of the turn before behind it."""
    statement = statement_text(text, speaker=speaker)
    return _put_before(statement, before) if before else statement


def _put_before(statement: str, before: str) -> str:
    return f"{statement}\n(before: {before[-BEFORE_CHARACTERS:].strip()})"


@dataclass(frozen=True, slots=True)
class Pieces:
    """The numbers of an input's word pieces; the last `second` of them are of the second type."""

    ids: tuple[int, ...]
    second: int

    def __len__(self) -> int:
        return len(self.ids)


class Inputs:
    """Makes inputs of texts, with the embedder's own tokenizer."""

    def __init__(self, tokenizer: Path = TOKENIZER) -> None:
        self._tokenizer: WordPiece = read_wordpiece(tokenizer.read_bytes())

    def answer(self, question: str, statement: str) -> Pieces:
        """A question and a statement that may answer it."""
        return _join(self._cut_question(question), self._cut(statement, CANDIDATE_PIECES))

    def change(self, question: str, older: str, newer: str) -> Pieces:
        """A question, which may be empty, with an earlier and a later statement."""
        return _join(
            self._cut_question(question),
            self._cut(older, STATEMENT_PIECES),
            self._cut(newer, STATEMENT_PIECES),
        )

    def _cut_question(self, text: str) -> list[int]:
        return self._cut(without_final_marks(typed_text(text)), QUESTION_PIECES)

    def _cut(self, text: str, pieces: int) -> list[int]:
        # A piece has a character at least, and words longer than most are rare.
        return self._tokenizer.ids(text[: pieces * 12])[:pieces]


def _join(*parts: Sequence[int]) -> Pieces:
    ids = [_CLS]
    for part in parts:
        ids += [*part, _SEP]
    return Pieces(tuple(ids), len(parts[-1]) + 1)


def padded(inputs: Sequence[Pieces]) -> tuple[Whole, Whole, Whole]:
    """Ids, mask and token types, shape (inputs, the longest one's pieces) each."""
    shape = len(inputs), max(map(len, inputs))
    ids, mask, types = (
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
    )
    for row, pieces in enumerate(inputs):
        length = len(pieces)
        ids[row, :length] = pieces.ids
        mask[row, :length] = 1
        types[row, length - pieces.second : length] = 1
    return ids, mask, types


def by_length(inputs: Sequence[Pieces], size: int) -> Iterator[list[int]]:
    """The places of inputs in batches of about one length: padding costs as much as text."""
    order = sorted(range(len(inputs)), key=lambda at: len(inputs[at]))
    for start in range(0, len(order), size):
        yield order[start : start + size]
