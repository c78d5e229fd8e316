"""A candidate of one question: a scored text, and where it stands in the order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from anaphora.language.folding import typed_text
from anaphora.rank.odds import probability_of
from anaphora.rank.pairs import Statement
from anaphora.rank.statements import read_statement
from anaphora.text.recalled import FAR, compared_text
from anaphora.values.links import statement_stamp


@dataclass(frozen=True)
class Candidate:
    """A scored text: its index among the scores, and what its order depends on.

    `at` is when it was said, in seconds (NaN: not known); `asked_for`: by whom the question names.
    `passage` is the part of a very long text that is compared, None where that is all of it; `line`
    is what was read of that when it was stored ("": nothing).
    `copies` are the indexes of those that say the same, oldest first; `restated` is how many times
    it was said again. `changes` are what was added to its score since its lane gave it. `read` are
    the log-odds that it answers, as the reader has it (NaN: not read). `title` is what it is called
    beside its words: a path, a conversation's title ("": nothing); `titled` is the share (0 to 1)
    of the question that this holds. `coming`: `at` lies in the future. `timely`: it is of a time
    that the question names, or tells of it.
    """

    index: int
    text: str
    score: float
    meaning: float
    at: float
    speaker: str = ""
    assistant: bool = False
    asked_for: bool = False
    passage: str | None = None
    line: str = ""
    copies: tuple[int, ...] = ()
    restated: int = 0
    changes: Mapping[str, float] = field(default_factory=dict)
    read: float = math.nan
    title: str = ""
    titled: float = 0.0
    coming: bool = False
    timely: bool = False

    @property
    def read_probability(self) -> float | None:
        """The probability that it answers, as the reader has it; None where it was not read."""
        if math.isnan(self.read):
            return None
        return probability_of(self.read)

    @cached_property
    def statement(self) -> Statement:
        """Its own words, as they are compared: without what it quotes of a recall."""
        text = self.text if self.line else compared_text(self.passage or self.text)
        reading = read_statement(text, self.line)
        return Statement(reading.text, self.at, self.speaker, self.assistant, reading)

    @cached_property
    def stamp(self) -> str:
        """What tells it from what it said before: the links of that are no links of this."""
        speaker = "assistant" if self.assistant else self.speaker
        return statement_stamp(compared_text(self.text), self.at, speaker)

    @property
    def wording(self) -> tuple[str, str, bool]:
        """The same for every candidate that says the same; a very long one says the same as its
        copies."""
        if len(self.text) > FAR:
            return self.text, self.speaker, self.assistant
        return typed_text(self.text).strip(" .!?\n").casefold(), self.speaker, self.assistant


@dataclass(frozen=True, slots=True)
class Placed:
    """A candidate in the order, by `standing`: the score of its group.

    `older_than` is the index of what replaces it and `reason` why, `previous` are those of what it
    replaces, the surest first. `answers` is the probability that it answers, from all that is known
    (None: nothing is).
    """

    candidate: Candidate
    standing: float
    older_than: int | None = None
    reason: str = ""
    previous: tuple[int, ...] = ()
    answers: float | None = None

    @property
    def index(self) -> int:
        """Its index among the scores."""
        return self.candidate.index
