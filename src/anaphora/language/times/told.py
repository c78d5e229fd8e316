"""The days that a text means by the day on which it was told: "yesterday", "in three days".

They have the tokens of days that are written out (`dates.py`), by which an index finds both. Times
are those of who tells it, and days whole days there. Pure, and linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from anaphora.language.dates import day_tokens, month_token
from anaphora.language.languages.language import ENGLISH, english, languages
from anaphora.language.times.calendar import Days
from anaphora.language.times.patterns import patterns_of
from anaphora.language.times.reading import read_told
from anaphora.language.times.words import small_letters

ELSEWHEN: Final = "~day"
"""A token that an index has of a text that names days, and not the one on which it was told."""

# Its first character is looked for fast.
_BREAK = re.compile(r"[.!?\n。！？](?:(?<=[\n。！？])|(?<!\d[.!?])[.!?]*(?=\s))")
_REACH: Final = 200
"""Characters around a word of time that are read as its sentence at most."""
_SENTENCES: Final = 16
"""So many sentences of a text are read: pasted logs and tables have thousands."""
_SHORT: Final = 200
_BY_DAYS: Final = 7
"""Days of a span up to which each is named; of a longer one its months are."""


def told_days(text: str, at: datetime, code: str) -> tuple[Days, ...]:
    """The spans that a text in the language `code` ("": not known), told at `at`, means.

    Naive, of whole days, each once.
    """
    if at.year <= 1 or at.year >= 9999:
        return ()
    now, known_languages = at.replace(tzinfo=None, fold=0), languages()
    lower_text = small_letters(text)
    if code in known_languages and known_languages[code].times:
        return _told_in(code, text, lower_text, now)
    days = _told_in(ENGLISH, text, lower_text, now)
    if days or len(text) > _SHORT:
        return days
    # One of those with the most function words in it: "hier" alone is German as well as French.
    words = {*lower_text.split()}
    counts = {
        language_code: len(words & known_languages[language_code].written)
        for language_code in known_languages
        if language_code != ENGLISH
    }
    most = max(counts.values(), default=0)
    likely = (language_code for language_code, count in counts.items() if count == most)
    readings = (_told_in(language_code, text, lower_text, now) for language_code in likely)
    return max(readings, key=len, default=())


def told_tokens(text: str, at: datetime, code: str) -> tuple[str, ...]:
    """The tokens that an index has of the days that a text means."""
    return tuple(
        dict.fromkeys(token for days in told_days(text, at, code) for token in _tokens(*days))
    )


def _told_in(code: str, text: str, lower_text: str, now: datetime) -> tuple[Days, ...]:
    patterns = patterns_of(english() if code == ENGLISH else languages()[code])
    if patterns is None or (text.isascii() and not patterns.spaced):
        return ()
    spans: dict[Days, None] = {}
    end = read_count = 0
    for cue in patterns.near.finditer(lower_text):
        if cue.start() < end or read_count == _SENTENCES:
            continue
        start, end = _sentence(text, cue.start(), end)
        read_count += 1
        spans.update((_whole(*days), None) for days in read_told(patterns, text[start:end], now))
    return tuple(spans)


def _sentence(text: str, at: int, least: int) -> tuple[int, int]:
    """Where the sentence around a place begins and ends."""
    start = max(least, at - _REACH)
    for mark in _BREAK.finditer(text, start, at):
        start = mark.end()
    end = _BREAK.search(text, at, at + _REACH)
    return start, min(len(text), at + _REACH) if end is None else end.start()


def _whole(start: datetime, end: datetime) -> Days:
    """The whole days of a time; of a night the day in which it begins."""
    first_day = start.replace(hour=0, minute=0, second=0, microsecond=0)
    last_moment = end - timedelta(microseconds=1)
    if start.hour and last_moment - start < timedelta(days=1):
        last_moment = start
    return first_day, last_moment.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(
        days=1
    )


def _tokens(start: datetime, end: datetime) -> Iterator[str]:
    length = (end - start).days
    if length <= _BY_DAYS:
        for number in range(length):
            day = start + timedelta(days=number)
            yield day_tokens(day.year, day.month, day.day)[0]
            if number in (0, length - 1):
                yield month_token(day.year, day.month)
                yield str(day.year)
        if length == 1:
            yield f"--{start:%m-%d}"
    elif start.month == start.day == end.month == end.day == 1:
        yield str(start.year)
    else:
        # About so long ago: the month in the middle.
        is_whole = start.day == end.day == 1
        at = start if is_whole else start + (end - start) / 2
        while at < end:
            yield month_token(at.year, at.month)
            if not is_whole:
                break
            at = (at.replace(day=1) + timedelta(days=32)).replace(day=1)
