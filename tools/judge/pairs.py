"""The pair model: a small network that reads an earlier and a later statement together.

It has the form of the reader and one judgement: log-odds that the later one replaces the earlier,
holds beside it, or repeats it, each against another matter. Its words are English; of other
languages features alone judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from tools.judge.features import Statement, StatementPair

from anaphora.reading.inputs import BEFORE_CHARACTERS, statement_text
from anaphora.reading.model import Logits, Reader

PAIRS: Final = "pairs"
"""The name of its judgement."""

ENGLISH: Final = frozenset({"en", ""})
"""The languages that it reads; "": none shows."""


Words: TypeAlias = tuple[str, str, str]
"""A statement's text, its speaker, and the turn before it."""


def is_english(pair: StatementPair) -> bool:
    """Whether the model reads a pair."""
    return {pair.older.reading.code, pair.newer.reading.code} <= ENGLISH


def words_of(statement: Statement) -> Words:
    """What the model reads of a statement."""
    speaker = "assistant" if statement.assistant else statement.speaker
    return statement.text, speaker, statement.before


def pair_text(text: str, speaker: str = "", before: str = "") -> str:
    """A statement as it is read: "Ann: text", the end of the turn before behind it."""
    statement = statement_text(text, speaker=speaker)
    return f"{statement}\n(before: {before[-BEFORE_CHARACTERS:].strip()})" if before else statement


class PairReader(Reader):
    """The pair model of a folder, loaded, as `Reader` is. Raises what that raises."""

    def judge_pairs(self, pairs: Sequence[tuple[str, str]]) -> Logits:
        """Of (older, newer), as `pair_text` gives them: log-odds, shape (pairs, 3).

        Raises ReaderError.
        """
        inputs = [self._inputs.change("", older, newer) for older, newer in pairs]
        return self._network.logits(inputs, PAIRS)
