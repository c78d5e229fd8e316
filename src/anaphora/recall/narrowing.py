"""Which turns a question is about: what the caller chose, before anything is ranked.

In: a table of turns and rows of it. Out: the rows that are left, and what a reader should know of
the choice: an unknown speaker, a time in which nothing was said. A turn is of the time at
which it was said, and of the days that its text names, by
their dates or by the day on which it was said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from anaphora.calls.moments import checked_moment
from anaphora.errors import InvalidInput
from anaphora.language.analyser import fold, index_text
from anaphora.language.times.reading import is_open_end, is_open_start
from anaphora.rank.holding import COMING
from anaphora.rank.turn_table import (
    ROLE_ASSISTANT,
    ROLE_OTHER,
    ROLE_USER,
    TurnTable,
    speakers_present,
)
from anaphora.recall.question import Question
from anaphora.text.shown_times import (
    days_between,
    in_shown_zone,
    in_speakers_zone,
    shown_day,
    shown_minute,
    tell_days,
)
from anaphora.values.conversations import Recall, TimeSpan, TurnChoice, TurnHit
from anaphora.values.memories import MemoryHit

Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]
DatedT = TypeVar("DatedT", bound=TurnHit | MemoryHit)

_ROLES: Final = {"user": ROLE_USER, "assistant": ROLE_ASSISTANT, "other": ROLE_OTHER}
_NAMED: Final = 8
"""Speakers that a notice names."""

HALF_A_YEAR: Final = 183 * 86_400.0
"""Seconds from what was said within which a day without a year lies: the nearest one is meant."""


def turns_naming(
    table: TurnTable, question: Question, look_up: Callable[[Sequence[str]], Mask]
) -> tuple[Mask, ...]:
    """For each time of a question, the turns of `table` with a text that names a day in it.

    `look_up` gives the turns that hold any of some tokens.
    """
    masks = []
    for span, names in zip(question.times, question.time_names, strict=True):
        mask = look_up(names.dated)
        if names.yearless:
            near_rows = np.abs(table.ts - span.start.timestamp()) < HALF_A_YEAR
            mask = mask | (look_up(names.yearless) & near_rows)
        masks.append(mask)
    return tuple(masks)


def choose_rows(table: TurnTable, rows: Rows, choice: TurnChoice) -> tuple[Rows, tuple[str, ...]]:
    """The rows that `choice` leaves, and notices. Raises `InvalidInput` naming the argument.

    A speaker is known by the name or its first word.
    """
    _check_choice(choice)
    keep = np.ones(len(rows), dtype=np.bool_)
    ts = table.ts[rows]
    if choice.since is not None:
        keep &= ts >= choice.since.timestamp()
    if choice.until is not None:
        keep &= ts < choice.until.timestamp()
    if choice.role is not None:
        keep &= table.role[rows] == _ROLES[choice.role]
    if choice.conversations is not None:
        conversation_codes = [
            n
            for n, conversation in enumerate(table.conversations)
            if conversation in choice.conversations
        ]
        keep &= np.isin(table.conversation[rows], conversation_codes)
    notices: tuple[str, ...] = ()
    if choice.speaker is not None:
        speaker = fold(choice.speaker)
        present = speakers_present(table, rows)
        codes = [code for code, name in present.items() if fold(name) == speaker] or [
            code for code, name in present.items() if fold(name).split(" ")[0] == speaker
        ]
        if not codes:
            names = sorted(present.values())
            name_list = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
            hint = f"; known are {name_list}" if names else "; no speakers are known here"
            notices = (f"no turn is by {choice.speaker}{hint}",)
        keep &= np.isin(table.speaker[rows], codes)
    remaining = rows if keep.all() else rows[keep]
    if len(rows) and not len(remaining) and not notices:
        notices = (f"nothing was said {_describe_choice(choice)}",)
    return remaining, notices


def _check_choice(choice: TurnChoice) -> None:
    for name, moment in (("since", choice.since), ("until", choice.until)):
        if moment is not None:
            checked_moment(name, moment)
    if choice.since is not None and choice.until is not None and choice.since >= choice.until:
        raise InvalidInput("until", choice.until, "expected a time after `since`")
    if choice.role is not None and choice.role not in _ROLES:
        raise InvalidInput("role", choice.role, f"expected one of {', '.join(_ROLES)}")
    if choice.speaker is not None and not choice.speaker.strip():
        raise InvalidInput("speaker", choice.speaker, "expected a name")


def _describe_choice(choice: TurnChoice) -> str:
    parts = []
    if choice.role is not None:
        parts.append(f"in the role {choice.role}")
    if choice.speaker is not None:
        parts.append(f"by {choice.speaker}")
    if choice.since is not None or choice.until is not None:
        parts.append(_describe_bounds(choice.since, choice.until))
    if choice.conversations is not None:
        parts.append("in the sessions asked about")
    return " ".join(parts)


def _describe_bounds(since: datetime | None, until: datetime | None) -> str:
    """The time between two moments in words; whole days of the user by their days."""
    first_day, last_day = shown_day(since), shown_day(until and until - timedelta(seconds=1))
    if (since and not first_day) or (until and not last_day):
        # The year 1 stands for a time that is not known, and is not shown.
        return "in the time asked for"
    if not (_begins_day(since) and _begins_day(until)):
        parts = ("since", since), ("before", until)
        return " ".join(f"{word} {shown_minute(moment)}" for word, moment in parts if moment)
    if not first_day:
        return f"until {last_day}"
    if not last_day:
        return f"since {first_day}"
    return days_between(first_day, last_day)


def _begins_day(moment: datetime | None) -> bool:
    return moment is None or in_shown_zone(moment).time() == time()


@dataclass(frozen=True, slots=True)
class TimeNarrowing:
    """The rows that the times of a question leave, and a notice for each time that holds none.

    `empty`: it asks for nothing else, and no turn lies in any of them. Then `rows` are all rows, in
    which what comes closest is found: rows are never narrowed to none.
    """

    rows: Rows
    empty: bool
    notices: tuple[str, ...]


def narrow_by_times(
    table: TurnTable,
    rows: Rows,
    question: Question,
    named: Sequence[Mask],
    now: datetime,
) -> TimeNarrowing:
    """Narrow `rows` to the times of a question that asks for nothing else.

    `named` has for each span the turns of the table whose text names a day in it.
    """
    alone = question.asks_time_alone
    inside = rows_within(table, rows, question.times, named) if alone else rows
    notices = silent_spans(table, rows, question.times, named, now, alone=alone)
    empty = alone and not len(inside)
    return TimeNarrowing(rows if empty else inside, empty, notices)


def rows_within(
    table: TurnTable, rows: Rows, spans: Sequence[TimeSpan], named: Sequence[Mask]
) -> Rows:
    """The rows with turns that lie in any of the spans, or name a day in it."""
    ts = table.ts[rows]
    keep = np.zeros(len(rows), dtype=np.bool_)
    for span, naming in zip(spans, named, strict=True):
        keep |= (ts >= span.start.timestamp()) & (ts < span.end.timestamp())
        keep |= naming[rows]
    return rows[keep]


def silent_spans(
    table: TurnTable,
    rows: Rows,
    spans: Sequence[TimeSpan],
    named: Sequence[Mask],
    now: datetime,
    *,
    alone: bool,
) -> tuple[str, ...]:
    """A notice for each span that the question names and in which no turn of `rows` lies.

    A time that is still to come, or has no end, is only told to a question for times `alone`: what
    was said before answers "when is the dentist tomorrow?".
    """
    notices = []
    for span, naming in zip(spans, named, strict=True):
        indefinite = is_open_start(span) or is_open_end(span) or span.start > now
        if (alone or not indefinite) and not len(rows_within(table, rows, [span], [naming])):
            nothing = "no turn is dated" if span.start > now else "nothing was said"
            notices.append(f"{nothing} {days_of(span)} ({span.text})")
    return tuple(notices)


_SHOWN: Final = 60
"""Characters of a text by which a notice names it."""


def tell_coming(
    texts: Iterable[tuple[str, datetime]], spans: Sequence[TimeSpan], now: datetime
) -> tuple[str, ...]:
    """A notice for each text with a time that lies ahead, unless the question names that time."""
    notices = []
    for text, at in texts:
        if at > now and not any(span.start <= at < span.end for span in spans):
            day = at.astimezone(now.tzinfo)
            notices.append(f'{COMING}: from {day:%Y-%m-%d} "{_short(text)}"')
    return tuple(dict.fromkeys(notices))


def tell_meant(texts: Iterable[tuple[str, datetime]], spans: Sequence[TimeSpan]) -> tuple[str, ...]:
    """A notice for each text that means a day of the question by the one on which it was told."""
    asked_spans = [
        (span.start.replace(tzinfo=None), span.end.replace(tzinfo=None)) for span in spans
    ]

    def is_asked(start: datetime, end: datetime) -> bool:
        return any(start < last and first < end for first, last in asked_spans)

    notices = []
    for text, told_at in texts if spans else ():
        was_then = any(span.start <= told_at < span.end for span in spans)
        if not was_then and (days := tell_days(text, told_at, is_asked)):
            notices.append(f'{days}: "{_short(text)}"')
    return tuple(dict.fromkeys(notices))


def add_times(recall: Recall[DatedT], spans: Sequence[TimeSpan], now: datetime) -> Recall[DatedT]:
    """An answer that tells which of its hits are dated in the future, or mean a day asked about."""
    coming = tell_coming(map(_dated, (*recall.hits, *recall.nearest)), spans, now)
    meant_days = tell_meant(map(_dated, recall.hits), spans)
    notices = (*recall.notices, *coming, *meant_days)
    return replace(recall, notices=notices) if coming or meant_days else recall


def _dated(hit: TurnHit | MemoryHit) -> tuple[str, datetime]:
    return hit.text, hit.ts if isinstance(hit, TurnHit) else hit.created_at


def drop_unmet(
    notices: Iterable[str], texts: Sequence[tuple[str, datetime]], question: Question
) -> Iterator[str]:
    """The notices without those of times that any of the texts, each with its time, tells of."""
    by_days = {
        f" {days_of(span)} (": names.dated
        for span, names in zip(question.times, question.time_names, strict=True)
    }
    tokens_by_notice = {
        notice: {token for days, names in by_days.items() if days in notice for token in names}
        for notice in notices
    }
    read_texts = texts if any(tokens_by_notice.values()) else ()
    tokens_of_texts = [
        index_text(text, None, in_speakers_zone(at)).tokens for text, at in read_texts
    ]
    for notice, tokens in tokens_by_notice.items():
        if not tokens or all(map(tokens.isdisjoint, tokens_of_texts)):
            yield notice


def _short(text: str) -> str:
    return " ".join((text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…").split())


def days_of(span: TimeSpan) -> str:
    """The days of a span in words: "on 2026-03-05", "before 1995-01-01"."""
    if is_open_start(span):
        return f"before {span.end:%Y-%m-%d}"
    if is_open_end(span):
        return f"since {span.start:%Y-%m-%d}"
    last_moment = span.end - timedelta(seconds=1)
    return days_between(f"{span.start:%Y-%m-%d}", f"{last_moment:%Y-%m-%d}")
