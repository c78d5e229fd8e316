"""Which turns a question is about: what the caller chose, before anything is ranked.

In: a table of turns and rows of it. Out: the rows that are left, and what a reader should know of
the choice: a speaker whom nobody knows, a time in which nothing was said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.core.analyser import analyse, fold, query_terms
from anaphora.core.arguments import checked_moment
from anaphora.core.languages.language import language_of, languages
from anaphora.core.shown_times import in_shown_zone, shown_day, shown_minute
from anaphora.errors import InvalidInput
from anaphora.rank.question import speakers_present
from anaphora.rank.turn_table import ROLE_ASSISTANT, ROLE_OTHER, ROLE_USER, TurnTable
from anaphora.recall.times.reading import is_open_end, is_open_start
from anaphora.values.conversations import TimeSpan, TurnChoice

Rows = NDArray[np.intp]

_ROLES: Final = {"user": ROLE_USER, "assistant": ROLE_ASSISTANT, "other": ROLE_OTHER}
_NAMED: Final = 8
"""Speakers that a notice names."""


def chosen_rows(table: TurnTable, rows: Rows, choice: TurnChoice) -> tuple[Rows, tuple[str, ...]]:
    """The rows that `choice` leaves, and notices. Raises `InvalidInput` naming the argument.

    A speaker is known by the name or its first word.
    """
    _check(choice)
    keep = np.ones(len(rows), dtype=np.bool_)
    ts = table.ts[rows]
    if choice.since is not None:
        keep &= ts >= choice.since.timestamp()
    if choice.until is not None:
        keep &= ts < choice.until.timestamp()
    if choice.role is not None:
        keep &= table.role[rows] == _ROLES[choice.role]
    if choice.conversations is not None:
        wanted = [n for n, one in enumerate(table.conversations) if one in choice.conversations]
        keep &= np.isin(table.conversation[rows], wanted)
    notices: tuple[str, ...] = ()
    if choice.speaker is not None:
        codes, notices = _speakers(table, rows, choice.speaker)
        keep &= np.isin(table.speaker[rows], codes)
    left = rows if keep.all() else rows[keep]
    if len(rows) and not len(left) and not notices:
        notices = (f"nothing was said {_worded(choice)}",)
    return left, notices


def _check(choice: TurnChoice) -> None:
    for name, moment in (("since", choice.since), ("until", choice.until)):
        if moment is not None:
            checked_moment(name, moment)
    if choice.since is not None and choice.until is not None and choice.since >= choice.until:
        raise InvalidInput("until", choice.until, "expected a time after `since`")
    if choice.role is not None and choice.role not in _ROLES:
        raise InvalidInput("role", choice.role, f"expected one of {', '.join(_ROLES)}")
    if choice.speaker is not None and not choice.speaker.strip():
        raise InvalidInput("speaker", choice.speaker, "expected a name")


def _worded(choice: TurnChoice) -> str:
    parts = []
    if choice.role is not None:
        parts.append(f"in the role {choice.role}")
    if choice.speaker is not None:
        parts.append(f"by {choice.speaker}")
    if choice.since is not None or choice.until is not None:
        parts.append(_bounds(choice.since, choice.until))
    if choice.conversations is not None:
        parts.append("in the sessions asked about")
    return " ".join(parts)


def _bounds(since: datetime | None, until: datetime | None) -> str:
    """The time between two moments in words; whole days of the user by their days."""
    if not (_begins_day(since) and _begins_day(until)):
        parts = ("since", since), ("before", until)
        return " ".join(f"{word} {shown_minute(one)}" for word, one in parts if one is not None)
    last = None if until is None else shown_day(until - timedelta(seconds=1))
    if since is None:
        return f"until {last}"
    if last is None:
        return f"since {shown_day(since)}"
    return _days_between(shown_day(since), last)


def _begins_day(moment: datetime | None) -> bool:
    return moment is None or in_shown_zone(moment).time() == time()


def _days_between(first: str, last: str) -> str:
    return f"on {first}" if first == last else f"from {first} to {last}"


def _speakers(table: TurnTable, rows: Rows, name: str) -> tuple[list[int], tuple[str, ...]]:
    wanted = fold(name)
    present = speakers_present(table, rows)
    whole = [code for code, known in present.items() if fold(known) == wanted]
    first = [code for code, known in present.items() if fold(known).split(" ")[0] == wanted]
    if whole or first:
        return whole or first, ()
    known = sorted(present.values())
    listed = ", ".join(known[:_NAMED]) + (", …" if len(known) > _NAMED else "")
    others = f"; known are {listed}" if known else "; no speakers are known here"
    return [], (f"no turn is by {name}{others}",)


@dataclass(frozen=True, slots=True)
class TimeNarrowing:
    """The rows that the times of a question leave, and a notice for each time that holds none.

    `alone`: the question asks for times and nothing else, and only turns of those times answer it.
    `empty`: it does, and no turn lies in any of them. Then `rows` are all rows, in which what comes
    closest is found: rows are never narrowed to none.
    """

    rows: Rows
    alone: bool
    empty: bool
    notices: tuple[str, ...]


def narrow_by_times(
    table: TurnTable, rows: Rows, question: str, spans: Sequence[TimeSpan], now: datetime
) -> TimeNarrowing:
    """Narrow `rows` to the times of a question that asks for nothing else."""
    alone = asks_for_a_time_alone(question, spans)
    inside = rows_within(table, rows, spans) if alone else rows
    notices = silent_spans(table, rows, spans, now, alone=alone)
    empty = alone and not len(inside)
    return TimeNarrowing(rows if empty else inside, alone, empty, notices)


def asks_for_a_time_alone(question: str, spans: Sequence[TimeSpan]) -> bool:
    """Whether a question asks what was said or happened in spans that it names, and no more."""
    if not spans:
        return False
    rest = question
    for span in sorted(spans, key=lambda one: -one.start_char):
        rest = rest[: span.start_char] + rest[span.end_char :]
    known = languages().get(language_of(question))
    if known is not None and not known.spaced:
        return set(analyse(rest, keep_stop_words=False)) <= _happening()
    return set(query_terms(rest)) <= _happening()


@lru_cache(maxsize=1)
def _happening() -> frozenset[str]:
    """What a question may hold beside a time and still ask for nothing else, in any language."""
    found = (one.cues.get("happening", "") for one in languages().values())
    return frozenset(token for words in found for word in words.split() for token in analyse(word))


def rows_within(table: TurnTable, rows: Rows, spans: Sequence[TimeSpan]) -> Rows:
    """Those of the rows whose turns lie in any of the spans."""
    ts = table.ts[rows]
    keep = np.zeros(len(rows), dtype=np.bool_)
    for span in spans:
        keep |= (ts >= span.start.timestamp()) & (ts < span.end.timestamp())
    return rows[keep]


def silent_spans(
    table: TurnTable, rows: Rows, spans: Sequence[TimeSpan], now: datetime, *, alone: bool
) -> tuple[str, ...]:
    """A notice for each span that the question names and in which no turn of `rows` lies.

    A time that is still to come, or has no end, is only told to a question for times `alone`: what
    was said before answers "when is the dentist tomorrow?".
    """
    notices = []
    for span in spans:
        indefinite = is_open_start(span) or is_open_end(span) or span.start > now
        if (alone or not indefinite) and not len(rows_within(table, rows, [span])):
            nothing = "no turn is dated" if span.start > now else "nothing was said"
            notices.append(f"{nothing} {_days_of(span)} ({span.text})")
    return tuple(notices)


def _days_of(span: TimeSpan) -> str:
    if is_open_start(span):
        return f"before {span.end:%Y-%m-%d}"
    if is_open_end(span):
        return f"since {span.start:%Y-%m-%d}"
    last = span.end - timedelta(seconds=1)
    return _days_between(f"{span.start:%Y-%m-%d}", f"{last:%Y-%m-%d}")
