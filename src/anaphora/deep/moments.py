"""Times as models write them, and as they are shown to models.

In: "2026-03-12", "2026-03-12T09:30:00Z" or words ("last Tuesday"), and the moment of the question.
Out: aware moments. Pure.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from anaphora.core.arguments import has_utc
from anaphora.errors import InvalidInput
from anaphora.recall.times.reading import read_times

_YEARS = "expected a time between the years 1 and 9999"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")


def moment(what: str, text: str | None, now: datetime, *, end: bool = False) -> datetime | None:
    """The moment that `text` names: the start of a day or span, or with `end` its end.

    A time without a zone is in that of `now`. None for None and "". Raises `InvalidInput`.
    """
    if text is None or not text.strip():
        return None
    given = text.strip()
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        return _in_words(what, given, now, end)
    try:
        if found.utcoffset() is None:
            found = found.replace(tzinfo=now.tzinfo)
        if end and _DAY.match(given):
            found += timedelta(days=1)
    except OverflowError:
        raise InvalidInput(what, text, _YEARS) from None
    if not has_utc(found):
        raise InvalidInput(what, text, _YEARS)
    return found


def shown(when: datetime | None) -> str:
    """A time for a model: "2026-03-12 09:30", as UTC has it; "no time" where it is not known."""
    return "no time" if when is None else when.strftime("%Y-%m-%d %H:%M")


def _in_words(what: str, text: str, now: datetime, end: bool) -> datetime:
    spans = read_times(text, now)
    if len(spans) != 1:
        reason = 'expected a time such as "2026-03-12" or "2026-03-12T09:30"'
        raise InvalidInput(what, text, reason)
    return spans[0].end if end else spans[0].start
