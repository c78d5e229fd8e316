"""Reading the times that a question names by the patterns of a language's file.

The file says how a time is worded, this module what it is: `core/languages/data/README.md` lists
what a phrase may mean. The rules are those of English (`phrases.py`): what returns is the most
recent one that has begun, or the next in a question about the future; "two weeks ago" is that day
and half a week to either side. Of several readings of a place the longest counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from anaphora.core.languages.language import Language, loose
from anaphora.recall.times import calendar
from anaphora.recall.times.calendar import Days
from anaphora.recall.times.phrases import QuestionWords, nearest

OPEN_START = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock; the zone is the asker's
"""Where "before" begins: turns without a time (year 1) are not in it."""
OPEN_END = datetime(2200, 1, 1)  # noqa: DTZ001
"""Where "since" ends."""
# The open sides of what lies beyond these: "before 1950", "since 2300".
_ANCIENT = datetime(2, 1, 1)  # noqa: DTZ001
_DISTANT = datetime(9999, 1, 1)  # noqa: DTZ001
OPEN_STARTS: Final = (OPEN_START, _ANCIENT)
OPEN_ENDS: Final = (OPEN_END, _DISTANT)

_NUMERIC: Final = (
    r"(?<![\w./-])(?P<y>(?:19|20)\d\d)[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?![\w.]\d)",
    r"(?<![\w./-])(?P<d>\d{1,2})[./-](?P<m>\d{1,2})[./-](?P<y>(?:19|20)\d\d)(?!\d)",
)
# Several of these are one time only with the words around them; what stands before it is no sign
# of a beginning or an end where it is a part of the phrase.
_NAMED: Final = frozenset({"date", "weekday", "season", "holiday", "year"})
_SIDES: Final = ("since", "after", "before", "until")


@dataclass(frozen=True, slots=True)
class Named:
    """A time in a question: naive and half-open, and the characters that name it."""

    start: datetime
    end: datetime
    first: int
    last: int
    core: int


@dataclass(frozen=True, slots=True)
class _Phrase:
    pattern: re.Pattern[str]
    kind: str
    detail: tuple[str, ...]


def times_by_patterns(
    question: str, now: datetime, language: Language, *, digits: bool = True
) -> list[Named]:
    """The times that `question` names in a language, in their order; `now` is naive.

    `digits`: dates in digits alone, too, the day before the month, as everywhere but in English.
    """
    patterns = _patterns(language.code, language)
    if patterns is None:
        return []
    words = QuestionWords((), now, forward=patterns.future.search(question) is not None)
    readings = list(patterns.all(question, words, digits))
    times: list[Named] = []
    # The earliest, of those the longest, and what follows behind it.
    for time in sorted(readings, key=lambda time: (time.first, -time.last)):
        if not times or time.first >= times[-1].last:
            times.append(time)
    return [time for time in patterns.related(question, times) if time.start < time.end]


@lru_cache(maxsize=64)
def _patterns(code: str, language: Language) -> _Patterns | None:
    return _Patterns(language) if language.times else None


class _Patterns:
    """The compiled patterns of a language."""

    def __init__(self, language: Language) -> None:
        times = language.times
        self._spaced = language.spaced
        self._holidays = list(times.get("holidays", {}))
        day = r"(?P<day_digits>\d{1,2})"
        if not self._spaced:
            day = f"(?:{day}|{_numbered('day', times['numbers'], 1)})"
        self._parts = {
            "month": _numbered("month", times["months"], 1),
            "weekday": _numbered("weekday", times["weekdays"], 0),
            "unit": _by_name("unit", times["units"]),
            "season": _by_name("season", times.get("seasons", {})),
            "part": _by_name("part", times.get("parts", {})),
            "holiday": _numbered("holiday", list(times.get("holidays", {}).values()), 0),
            "number": _any(
                r"(?P<digits>\d{1,4})",
                _by_name("vague", times.get("vague", {})),
                _numbered("number", times["numbers"], 1),
            ),
            "year": r"(?P<year>(?:19|20)\d\d)(?!\d)",
            "day": day + times.get("ordinal", "(?:er|st|nd|rd|th|º|ª|°|\\.)?"),
        }
        self._units = times["units"]
        leads = [times[name] for name in (*_SIDES, "between", "and") if name in times]
        phrases = [tuple(phrase) for phrase in times["phrases"]]
        if self._spaced and leads:
            lead_pattern = f"(?:{'|'.join(f'(?:{lead})' for lead in leads)}) "
            phrases += [
                (lead_pattern + "{month}(?: {year})?", "date"),
                (lead_pattern + "{weekday}", "weekday"),
            ]
        self.phrases = [self._compile_phrase(pattern, means) for pattern, means in phrases]
        self.phrases += [_Phrase(_compile(numeric), "numeric", ()) for numeric in _NUMERIC]
        self.future = _compile(language.any_of(times.get("future", ())) or "(?!)")
        self._before = {name: self._compile_ending(times[name]) for name in _SIDES if name in times}
        self._behind = {
            name: _compile(f"(?:{times[f'{name}_after']})")
            for name in _SIDES
            if f"{name}_after" in times
        }
        self._between = self._compile_ending(times.get("between", "(?!)"))
        self._and = _compile(rf"\s*(?:{times.get('and', '(?!)')})\s*")
        self._thirds = [self._compile_ending(third) for third in times.get("thirds", ())]
        self._thirds_behind = [_compile(f"(?:{third})") for third in times.get("thirds_after", ())]

    def _compile_ending(self, pattern: str) -> re.Pattern[str]:
        gap = r"\s+" if self._spaced else ""
        hyphen = "" if not self._spaced else r"|-|['’]"
        bound = r"\b" if self._spaced else ""
        return _compile(rf"{bound}(?:{pattern})(?:{gap}{hyphen})$")

    def _compile_phrase(self, pattern: str, means: str) -> _Phrase:
        def part(match: re.Match[str]) -> str:
            name, _, only = match[1].partition(":")
            if only:
                return f"(?P<{name}_{only}>{self._units[only]})"
            return f"(?:{self._parts[name]})"

        filled_pattern = re.sub(r"\{([a-z]+(?::[a-z]+)?)\}", part, pattern)
        kind, *detail = means.split(" ")
        bounded_pattern = (
            rf"(?<!\w)(?:{filled_pattern})(?!\w)" if self._spaced else f"(?:{filled_pattern})"
        )
        return _Phrase(_compile(bounded_pattern), kind, tuple(detail))

    def all(self, question: str, words: QuestionWords, digits: bool) -> Iterator[Named]:
        """Every reading of every place."""
        for phrase in self.phrases:
            if phrase.kind == "numeric" and not digits:
                continue
            for match in phrase.pattern.finditer(question):
                try:
                    days = self._read_days(phrase, _groups(match), words)
                except (ValueError, OverflowError):
                    # 30 February, or 9999 years ago: words in the form of a time that is none.
                    continue
                if days is not None and days[0] < days[1]:
                    core = match.start()
                    if phrase.kind in _NAMED:
                        group_starts = (match.start(name) for name in _groups(match))
                        core = min(group_starts, default=core)
                    elif phrase.kind == "ago":
                        core = -1
                    yield Named(*days, match.start(), match.end(), core)

    def _read_days(
        self, phrase: _Phrase, groups: dict[str, str], words: QuestionWords
    ) -> Days | None:
        now, kind, detail = words.now, phrase.kind, phrase.detail
        if kind == "day":
            part = detail[1] if len(detail) > 1 else None
            return _narrow_to_part(calendar.day_of(now, int(detail[0])), groups, part)
        if kind == "unit":
            return calendar.unit_of(now, _key(groups, "unit") or "week", int(detail[0]))
        if kind in {"ago", "rolling"}:
            return _read_count(kind, groups, now)
        if kind == "weekday":
            number = int(_key(groups, "weekday") or 0)
            if detail and detail[0] != "next":
                day = calendar.day_of(calendar.unit_of(now, "week", int(detail[0]))[0], number)
            elif detail or words.forward:
                day = calendar.day_of(now, (number - now.weekday() - 1) % 7 + 1)
            else:
                day = calendar.day_of(now, -((now.weekday() - number - 1) % 7 + 1))
            return _narrow_to_part(day, groups)
        if kind == "numeric":
            first_day = calendar.month_of(int(groups["y"]), int(groups["m"]))[0]
            return calendar.day_of(first_day.replace(day=int(groups["d"])))
        year = groups.get("year") or (str(now.year + int(detail[0])) if detail else "")
        return self._find_returning(kind, groups, words, year)

    def _find_returning(
        self, kind: str, groups: dict[str, str], words: QuestionWords, year: str
    ) -> Days:
        """A date, season or holiday: in its year, or in the nearest that has it."""
        day = int(groups.get("day_digits") or _key(groups, "day") or 0)

        def place(year: int) -> Days:
            if kind == "year":
                return calendar.month_of(year, 1, 12)
            if kind == "season":
                return calendar.season_of(year, _key(groups, "season") or "")
            if kind == "holiday":
                name = self._holidays[int(_key(groups, "holiday") or 0)]
                return calendar.day_of(calendar.holiday(year, name))
            month = calendar.month_of(year, int(_key(groups, "month") or 0))
            return calendar.day_of(month[0].replace(day=day)) if day else month

        if day > 31:
            raise ValueError(day)
        return place(int(year)) if year else nearest(words, place)

    def related(self, question: str, times: Sequence[Named]) -> Iterator[Named]:
        """The times as the words around them say: since, before, between, at the beginning of."""
        at = 0
        while at < len(times):
            time = self._read_third(question, times[at])
            following = times[at + 1] if at + 1 < len(times) else None
            is_joined = False
            if following is not None:
                # The ends of one: "between X and Y".
                core = max(following.core, following.first)
                text_before = question[: max(time.core, time.first)]
                is_led = not self._spaced or self._between.search(text_before) is not None
                is_joined = is_led and self._and.fullmatch(question[time.last : core]) is not None
            if following is not None and is_joined:
                start = time.start
                while start > following.start and start.year > 1:
                    # "from November to February", "from 3 March to 5 April 2024": the one before.
                    start = calendar.add_months(start, -12)
                yield replace(time, start=start, end=following.end, last=following.last)
                at += 2
                continue
            yield self._open_side(question, time)
            at += 1

    def _read_third(self, question: str, time: Named) -> Named:
        days = (time.start, time.end)
        for index, pattern in enumerate(self._thirds):
            if match_before := pattern.search(question[: max(time.core, 0)]):
                first_index = min(time.first, match_before.start())
                start, end = calendar.third_of(days, index)
                return replace(time, start=start, end=end, first=first_index, core=first_index)
        for index, pattern in enumerate(self._thirds_behind):
            if match_behind := pattern.match(question, time.last):
                start, end = calendar.third_of(days, index)
                return replace(time, start=start, end=end, last=match_behind.end())
        return time

    def _open_side(self, question: str, time: Named) -> Named:
        """Since, after, before, until: one side is open."""
        if time.core < 0:
            return time
        for name, pattern in self._before.items():
            if match_before := pattern.search(question[: time.core]):
                return replace(
                    _replace_side(time, name), first=min(time.first, match_before.start())
                )
        for name, pattern in self._behind.items():
            if match_behind := pattern.match(question, time.last):
                return replace(_replace_side(time, name), last=match_behind.end())
        return time


def _replace_side(time: Named, side: str) -> Named:
    start, end = open_sided((time.start, time.end), side)
    return replace(time, start=start, end=end)


def open_sided(days: Days, side: str) -> Days:
    """What lies "since", "after", "before" or "until" some days: one side is open."""
    if side in {"since", "after"}:
        start = days[0] if side == "since" else days[1]
        return start, OPEN_END if start < OPEN_END else _DISTANT
    end = days[0] if side == "before" else days[1]
    return OPEN_START if end > OPEN_START else _ANCIENT, end


def _read_count(kind: str, groups: dict[str, str], now: datetime) -> Days | None:
    unit = _key(groups, "unit") or ""
    if unit == "weekend":
        return None
    if vague := _key(groups, "vague"):
        count, slack = calendar.VAGUE[vague]
    else:
        count, slack = float(groups.get("digits") or _key(groups, "number") or 0), 0.5
    if kind == "ago":
        return calendar.around(now, unit, count, slack)
    start = calendar.back(now, unit, count)
    end = calendar.day_of(now)[1]
    return (start if unit == "hour" else calendar.day_of(start)[0]), end


def _narrow_to_part(days: Days, groups: dict[str, str], named: str | None = None) -> Days:
    hours = calendar.DAYPARTS.get(named or _key(groups, "part") or "")
    if hours is None:
        return days
    return days[0] + timedelta(hours=hours[0]), days[0] + timedelta(hours=hours[1])


def _groups(match: re.Match[str]) -> dict[str, str]:
    return {name: text for name, text in match.groupdict().items() if text}


def _key(groups: dict[str, str], kind: str) -> str | None:
    """Which of the alternatives of a kind it was: the rest of the group's name."""
    for name in groups:
        if name.startswith(f"{kind}_") and not name.endswith("_digits"):
            return name.removeprefix(f"{kind}_")
    return None


def _numbered(kind: str, patterns: Sequence[str], first: int) -> str:
    named_groups = [f"(?P<{kind}_{at}>{pattern})" for at, pattern in enumerate(patterns, first)]
    # Of two that begin alike, the longer one.
    return _any(*sorted(named_groups, key=lambda pattern: -len(pattern)))


def _by_name(kind: str, patterns: dict[str, str]) -> str:
    named_groups = [f"(?P<{kind}_{name}>{pattern})" for name, pattern in patterns.items()]
    return _any(*sorted(named_groups, key=lambda pattern: -len(pattern)))


def _any(*patterns: str) -> str:
    return "|".join(pattern for pattern in patterns if pattern) or "(?!)"


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(loose(pattern), re.IGNORECASE)
