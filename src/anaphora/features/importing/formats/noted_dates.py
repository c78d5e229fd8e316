"""Dates as people write them in the properties and names of notes.

ISO with and without a time, a link to the note of a day (`[[2024-02-03]]`), the forms of a country
("06.05.2024", "May 6, 2024") and those of programs ("Monday, May 6th 2024, 2:30:15 pm"). A date
that reads two ways (03/04/2024) is no date, and is told.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Final, NamedTuple

from anaphora.features.importing.formats.base import Malformed
from anaphora.features.importing.formats.drafts import read_time
from anaphora.language.dates import WEEKDAYS, moments_in
from anaphora.language.languages.language import languages
from anaphora.language.word_lists import words
from anaphora.text.front_matter import Properties

CHANGED: Final = (
    "updated", "modified", "lastmodified", "updatedat", "datemodified", "lastmod", "dateupdated",
    "lastupdated", "modifiedat", "modifieddate", "updateddate", "lastedited", "lasteditedtime",
)  # fmt: skip
BEGUN: Final = (
    "created", "createdat", "date", "datecreated", "creationdate", "createddate", "createdtime",
)  # fmt: skip
"""Names of properties that hold a date, small and without what parts their words."""

_MOST: Final = 80
"""Characters of a text that may be nothing but a date."""

_LINKED = re.compile(
    r"!?\[\[([^\[\]|#^]+)(?:[#^][^\[\]|]*)?(?:\|([^\[\]]*))?\]\]|\[([^\[\]]*)\]\(.*\)"
)
_JOINED = re.compile(
    r"(\d{4})[-_]?(\d\d)[-_]?(\d\d)(?:[-_T ]?(\d\d)[-_:]?(\d\d)(?:[-_:]?(\d\d))?)?"
)
_AT_HEAD = re.compile(
    r"((?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:\d{4}|\d{6})?)(?!\d)"
)
_WITHIN = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\d)(?!\d)")
_TWO_WAYS = re.compile(r"(?<!\d)(\d{1,2})([-/])(\d{1,2})\2(\d{4}|\d\d)(?!\d)")
_SHORT_YEAR = re.compile(r"(?<![\d.])(\d{1,2}\.\d{1,2}\.)(\d\d)(?![\d.])")
_ZONE = re.compile(r"(?<=:\d\d)\s*(?:Z|UTC|GMT|([+-])(\d\d):?(\d\d))$")
_SECONDS = re.compile(r"(\d{1,2}:\d\d:\d\d)[.,]\d+")
_ISO = re.compile(r"\d{4}-\d\d-\d\d")
_WORD = re.compile(r"[^\W\d_]+")
_BETWEEN: Final = words("at um uhr o clock the le de el den am à a las t 日")


class ReadsTwoWays(Malformed):
    """A date in digits with day and month that cannot be told apart."""


class NotedDates(NamedTuple):
    """The times in properties: when it began, when it was changed, and the properties read.

    `unread` says of each date that reads two ways why it counts for nothing.
    """

    begun: datetime | None
    changed: datetime | None
    names: frozenset[str]
    unread: tuple[str, ...]


def dates_of(properties: Properties) -> NotedDates:
    """The times that the properties of a note tell."""
    by_name = {re.sub(r"[\W_]+", "", name): name for name in reversed([*properties])}
    read: dict[str, datetime] = {}
    unread: list[str] = []
    for plain in (*BEGUN, *CHANGED):
        name = by_name.get(plain, "")
        written_dates = properties.get(name)
        for text in (
            written_dates
            if isinstance(written_dates, list)
            else [written_dates]
            if written_dates
            else []
        ):
            try:
                at = date_of(text)
            except ReadsTwoWays as error:
                unread.append(f"{name}: {error}")
                continue
            if at is not None:
                read[plain] = at
                break
    begun_at, changed_at = (
        next((read[plain_name] for plain_name in names if plain_name in read), None)
        for names in (BEGUN, CHANGED)
    )
    names_read = frozenset(
        by_name[plain] for plain, at in read.items() if at in (begun_at, changed_at)
    )
    return NotedDates(begun_at, changed_at, names_read, tuple(unread))


def date_of_name(stem: str) -> datetime | None:
    """The day, or the minute, that the name of a note is of. Raises ReadsTwoWays."""
    within = _WITHIN.search(stem)
    if within is not None:
        with suppress(Malformed):
            return read_time(within[1])
    begins = _AT_HEAD.match(stem)
    return date_of(begins[1] if begins else stem)


def date_of(text: str) -> datetime | None:
    """The time that a text is, if it is nothing but one; UTC where it names no zone.

    Raises ReadsTwoWays if day and month cannot be told apart.
    """
    text = unicodedata.normalize("NFKC", text.strip())
    if (link := _LINKED.fullmatch(text)) is not None:
        # A link shows its own text, else the name of the note that it leads to.
        link_name = (link[1] or link[3] or "").rpartition("/")[2].strip()
        text = link_name if _ISO.search(link_name) or not link[2] else link[2].strip()
    if not text or len(text) > _MOST or not any(letter.isdigit() for letter in text):
        return None
    joined_date = _JOINED.fullmatch(text)
    with suppress(Malformed, ValueError):
        if joined_date is None:
            return read_time(text)
        day, clock = (
            "-".join(joined_date.groups("")[:3]),
            ":".join(filter(None, joined_date.groups()[3:])),
        )
        return datetime.fromisoformat(f"{day}T{clock}" if clock else day).replace(tzinfo=UTC)
    return _parse_written(text)


def _parse_written(text: str) -> datetime | None:
    """A date in words or in the digits of a country, with a time of day or without."""
    zone = _ZONE.search(text)
    offset = timedelta()
    if zone is not None:
        text = text[: zone.start()]
        if zone[1]:
            offset = timedelta(hours=int(zone[2]), minutes=int(zone[3]))
            offset = -offset if zone[1] == "-" else offset
    text = _SHORT_YEAR.sub(r"\g<1>20\2", _SECONDS.sub(r"\1", text))
    moments = list(moments_in(text, str))
    around, end = [], 0
    for moment in moments:
        around.append(text[end : moment.start])
        end = moment.end
    around.append(text[end:])
    days = [moment for moment in moments if moment.is_day]
    clocks = [moment for moment in moments if not moment.is_day]
    if len(days) != 1 or len(clocks) > 1 or not _is_beside_a_date(" ".join(around)):
        return None
    two_ways = _TWO_WAYS.fullmatch(text[days[0].start : days[0].end])
    if (
        two_ways is not None
        and two_ways[1] != two_ways[3]
        and max(int(two_ways[1]), int(two_ways[3])) <= 12
    ):
        raise ReadsTwoWays(
            f"{text[:40]} reads two ways, day or month first: it was not taken for its date "
            "(write 2024-12-31)"
        )
    if not _ISO.fullmatch(days[0].looked_up[0]):
        return None
    hours, _, minutes = (clocks[0].looked_up[0] if clocks else "0:0").partition(":")
    hour, minute = int(hours), int(minutes)
    try:
        day = datetime.fromisoformat(days[0].looked_up[0])
        at = day.replace(hour=hour, minute=minute, tzinfo=timezone(offset) if offset else UTC)
        at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at


def _is_beside_a_date(around: str) -> bool:
    """Whether what stands around a date says no more than its weekday."""
    beside = _WORD.findall(around.lower())
    if len(beside) > 3 or re.search(r"\d", around):
        return False
    return all(
        word in _BETWEEN
        or (len(word) > 1 and any(name.startswith(word) for name in _list_weekdays()))
        for word in beside
    )


@lru_cache(maxsize=1)
def _list_weekdays() -> Sequence[str]:
    """The names of the days of the week in every language that is known."""
    patterns = (language.times.get("weekdays", ()) for language in languages().values())
    name_patterns = (part for group in patterns for pattern in group for part in pattern.split("|"))
    return (*WEEKDAYS, *(part.replace("?", "").lower() for part in name_patterns))
