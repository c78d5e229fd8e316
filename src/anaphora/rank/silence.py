"""Says whether anything that was found can answer the question at all: a calibrated probability.

    odds = constant + meaning · best cosine + unseen · w / (n + 2) + reading · best log-odds

where w of the question's n words are in none of the first candidates: of a question of two words
both may be other words for the same. The last part is that of a reader; where one has read the
candidates, all weights are those named `READ_…`, and it is bounded. Those named `ALONE_…` are for
an embedder whose cosines were not measured: unseen words and the reader tell, and without a reader
nothing is known. Nine other signals were tried;
they add nothing that holds on other data. The weights are fitted on questions that are answered in
what is searched, on questions that were never answered there, and on questions that were asked of
others (`make fit`).
`python -m bench.silence --data DIR` reports the curve on what had no part in it, in
bench/results/silence.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from anaphora.core.analyser import analyse
from anaphora.rank.currency import COMPARED, Statements, unanswered
from anaphora.rank.odds import probability_of
from anaphora.rank.statements import QuestionCues

CONSTANT: Final = -2.12
MEANING: Final = 5.92
UNSEEN: Final = -2.72

READ_CONSTANT: Final = -1.3
READ_MEANING: Final = 6.19
READ_UNSEEN: Final = 0.0
READ_ODDS: Final = 0.78

ALONE_CONSTANT: Final = 2.21
ALONE_UNSEEN: Final = -0.05
ALONE_ODDS: Final = 1.13

FLOOR: Final = 0.15
"""Below this probability an answer is silent unless the caller says otherwise: of a hundred
questions that can be answered it takes at most one in chats, and more where no word is shared with
the answer (the corpus: 4 of turns, 14 of facts); of a hundred about something else 3 to 57."""

TITLE_MEANING: Final = 0.5
"""What a title that holds all words of the question counts as a cosine at least. It stands for a
short answer below it ("6432"), whose own cosine is that of anything."""

_PART: Final = 4
"""Letters of a word from which on it may be looked for in a longer one ("Zahnarzttermin")."""

MOST: Final = 8.0
"""Log-odds beyond which a reader is not surer."""

CALIBRATED_FOR: Final = "anaphora-l6:"
"""The family of embedders whose cosines were measured; others' mean something else."""


def answer_features(statements: Statements, cues: QuestionCues) -> tuple[float, float]:
    """The best cosine of what could be an answer, and w / (n + 2) as the module's formula says."""
    statements = statements.take(range(min(COMPARED, len(statements))))
    empty = unanswered(statements, cues)
    kept = [place for place in range(len(statements)) if place not in empty]
    chosen: Sequence[int] = kept or range(len(statements))
    meaning = max((float(statements.meaning[place]) for place in chosen), default=0.0)
    held = frozenset().union(*(one.words for one in statements.readings))
    unseen = cues.terms - held
    if unseen and any(statements.titles):
        unseen -= held_in_title("\n".join(statements.titles), unseen)
    return meaning, len(unseen) / (len(cues.terms) + 2)


def meaning_with_title(cosine: float, titled: float) -> float:
    """The cosine of a text, or what its title counts as one that holds the share `titled`."""
    return max(cosine, TITLE_MEANING * titled)


@lru_cache(maxsize=256)
def held_in_title(title: str, terms: frozenset[str]) -> frozenset[str]:
    """Those of `terms` that stand in what something is called, as a part of a longer word too."""
    held = frozenset(analyse(title))
    names = " ".join(held)
    return frozenset(one for one in terms if one in held or (len(one) >= _PART and one in names))


def answer_probability(
    statements: Statements,
    cues: QuestionCues,
    read: float | None = None,
    *,
    calibrated: bool = True,
) -> float | None:
    """The probability, 0 to 1, that one of `statements` answers the question.

    `read` are the log-odds of the best one that was read, None where none was. `calibrated` says
    whether the cosines were measured (`CALIBRATED_FOR`). None where neither is there.
    """
    if not calibrated and read is None:
        return None
    if not len(statements):
        return 0.0
    meaning, unseen = answer_features(statements, cues)
    return probability(meaning if calibrated else None, unseen, read)


def probability(meaning: float | None, unseen: float, read: float | None = None) -> float:
    """The module's formula: of the best cosine (None: not measured), the share of words that
    nothing holds, and what the reader made of the best one (None: nothing was read).

    Raises ValueError where there is neither a cosine nor a reading.
    """
    reading = None if read is None else min(max(read, -MOST), MOST)
    if reading is None:
        if meaning is None:
            raise ValueError("neither a cosine nor a reading")
        odds = CONSTANT + MEANING * meaning + UNSEEN * unseen
    elif meaning is None:
        odds = ALONE_CONSTANT + ALONE_UNSEEN * unseen + ALONE_ODDS * reading
    else:
        odds = READ_CONSTANT + READ_MEANING * meaning + READ_UNSEEN * unseen + READ_ODDS * reading
    return probability_of(odds)
