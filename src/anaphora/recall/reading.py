"""Reads the first candidates of a question together with it, and orders them by that too.

Both lanes do so, before `recall/ordering` puts what holds now before what it replaced. A reader
that is not there changes nothing, and the answer says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import numpy as np

from anaphora.errors import InvalidInput, ReaderError, TimedOut
from anaphora.rank.embedders import reader_reads
from anaphora.rank.reading import read_scores
from anaphora.rank.sought import find_terms_in_title, read_question_terms
from anaphora.recall.candidates import Candidate
from anaphora.text.shown_times import in_shown_zone
from anaphora.values.conversations import READ_BY_DEFAULT, READ_MOST, Degraded

if TYPE_CHECKING:
    from anaphora.reading.model import Lane
    from anaphora.reading.service import ReaderService
    from anaphora.recall.question import Question

PART: Final = "reader"
"""What an answer calls the reader: the part that was unavailable, and the factor of a score."""


_NAME: Final = 80
_LINKED: Final = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_HUMPS: Final = re.compile(r"(?<=[a-z\d])(?=[A-Z])")

CUT: Final = 340
"""Characters of a statement that can be read; of a longer one training reads a part."""


def checked_read(read: int | None) -> int:
    """How many candidates are to be read, by default as many as measured. Raises InvalidInput."""
    count = READ_BY_DEFAULT if read is None else read
    if not 0 <= count <= READ_MOST:
        raise InvalidInput("read", count, f"expected a whole number from 0 to {READ_MOST}")
    return count


def begin_reading(
    read: int | None, mode: str, reader: ReaderService | None, question: Question
) -> int:
    """How many candidates are read, and the reader begins to load: beside the embedder.

    By meaning or by words alone none is, nor without a reader, nor for a question in a language
    that it was not trained in. Raises InvalidInput.
    """
    count = checked_read(read)
    if reader is None or not count or mode != "hybrid" or not reader_reads(question.typed):
        return 0
    reader.start()
    return count


@dataclass(frozen=True, slots=True)
class Window:
    """The first `size` candidates of one question, and what the reader makes of them.

    One that is longer than `CUT` is not read: what was not seen of it may be the answer. Nor is one
    in a language that the reader was not trained in.

    `texts_of` gives their texts as the reader reads them, in their order. `degraded` gets why they
    could not be read. `_read` has those that were, by their places: one that is looked up again is
    found as it stands here.
    """

    question: str
    size: int
    lane: Lane
    reader: ReaderService | None
    texts_of: Callable[[Sequence[Candidate]], Sequence[str]]
    degraded: list[Degraded] = field(default_factory=list)
    _read: dict[int, Candidate] = field(default_factory=dict)

    def ordered(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """`candidates`, best first, in the order of their new scores. Raises Cancelled."""
        if self.reader is None or not self.size:
            return iter(candidates)
        stream = iter(candidates)
        first_candidates = list(islice(stream, self.size))
        odds: list[float] = []
        try:
            indexes = [
                index
                for index, candidate in enumerate(first_candidates)
                if len(candidate.text) <= CUT and reader_reads(candidate.text)
            ]
            if first_candidates:
                texts = self.texts_of([first_candidates[index] for index in indexes])
                judgements = self.reader.judge_answers(self.question, texts, self.lane)
                by_index = dict(zip(indexes, judgements, strict=True))
                odds = [by_index.get(at, math.nan) for at in range(len(first_candidates))]
        except (ReaderError, TimedOut) as error:
            self.degraded.append(Degraded(PART, f"the order is that without it: {error}"))
        if not odds:
            return chain(first_candidates, stream)
        totals = [candidate.score for candidate in first_candidates]
        scores = read_scores(totals, np.asarray(odds), self.lane).tolist()
        for candidate, score, read in zip(first_candidates, scores, odds, strict=True):
            changes = {**candidate.changes, PART: score - candidate.score}
            self._read[candidate.index] = replace(
                candidate, score=score, read=read, changes=changes
            )
        best_first = sorted(self._read.values(), key=lambda candidate: -candidate.score)
        return chain(best_first, stream)


def titled_text(candidate: Candidate, text: str | None = None, question: str = "") -> str:
    """A candidate's text, or this one, behind what it is called.

    Of the properties in its title those are read that hold a word of the question.
    """
    text = candidate.text if text is None else text
    name = spaced_name(candidate.title)
    lines = [line for line in candidate.title.split("\n")[1:] if ": " in line] if question else []
    terms = read_question_terms(question).terms if lines else frozenset()
    properties = (_LINKED.sub(r"\1", line) for line in lines if find_terms_in_title(line, terms))
    name_line = ", ".join(filter(None, (name, *(line[:_NAME] for line in properties))))
    return f"{name_line}: {text}" if name_line else text


def spaced_name(title: str) -> str:
    """The first line of a title in words: "dentist.appointment", "Notes/Dentist appointment"."""
    line = title.partition("\n")[0]
    if " " not in line:
        line = _HUMPS.sub(" ", line.replace(".", " ").replace("_", " "))
    return line.rpartition("/")[2][:_NAME]


def day_of(at: float) -> datetime | None:
    """The user's day of a time in seconds since the epoch, None where it is not known."""
    try:
        return None if math.isnan(at) else in_shown_zone(datetime.fromtimestamp(at, UTC))
    except (OverflowError, OSError, ValueError):
        # Before the year 1, or after 9999.
        return None
