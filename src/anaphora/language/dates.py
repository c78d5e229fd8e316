"""The names of months and weekdays, and the days and times of day that a text writes, as tokens.

A day, a month of a year and a time of day have one token each, however they are written: "5 March
2026", "2026-03-05", "5. März 2026" and "2026年3月5日"; "3 pm", "15:00" and "15 Uhr". Only what a
text says by itself is read: "tomorrow" needs a calendar (`language/times`). A date in digits that
reads two ways stands for both, in a text that is not English for the one with the day first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple

from anaphora.language.folding import fold_letters
from anaphora.language.languages.language import ENGLISH, languages, loose

_MONTHS = "january february march april may june july august september october november december"
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"

MONTHS = {name: number for number, name in enumerate(_MONTHS.split(), 1)}
MONTH_SHORT = {name[:3]: number for name, number in MONTHS.items() if name != "may"} | {"sept": 9}
MONTH_OF = MONTHS | MONTH_SHORT
WEEKDAYS = {name: number for number, name in enumerate(_WEEKDAYS.split())}

_LENGTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_YEAR: Final = r"(?:19|20)\d\d(?![\d]|[./:-]\d)"
_BACK: Final = 28
"""Characters before a number in which the name of its month stands."""

# No number within a version, a path or an identifier.
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.:/\-])\d{1,4}(?!\d)")
_ISO = re.compile(
    r"((?:19|20)\d\d)(?:([-/.])(\d{1,2})\2(\d{1,2})(?![^\WT]|[./-]\w)|-(\d\d)(?![\w-]|[./:]\w))"
)
_DIGITS = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2((?:19|20)\d\d|(?<=/)\d\d)(?!\d|[./:-]\d)")
_SHORT_DIGITS = re.compile(r"(\d{1,2})\.\s?(\d{1,2})\.(?![\d])")
_LEADS_A_DAY = re.compile(r"\b(?:am|vom|bis|zum|ab|seit|den|dem)\s+$", re.IGNORECASE)
_EAST = re.compile(
    r"(?:((?:19|20)\d\d)\s?[年년]\s?)?(\d{1,2})\s?[月월](?:份)?(?:\s?(\d{1,2})\s?[日号號일])?"
)
_DAY_NAMED = re.compile(
    r"(\d{1,2})(?:st|nd|rd|th|er|o|a|\.)?\s{0,2}(?:of\s|de\s)?([^\W\d_]{3,12})\b\.?"
    rf"(?:,?\s{{1,2}}(?:of\s|de\s|del\s)?({_YEAR}))?",
    re.IGNORECASE,
)
_NAME_BEFORE = re.compile(
    r"(?<![\w-])([^\W\d_]{3,12})\.?,?\s{1,2}(?:of\s|de\s|del\s|the\s)?$", re.IGNORECASE
)
_DAY_AFTER_NAME = re.compile(
    rf"(\d{{1,2}})(?:st|nd|rd|th)?(?![\w:]|[.,/-]\d)(?:,?\s{{1,2}}({_YEAR}))?", re.IGNORECASE
)
_YEAR_ALONE = re.compile(rf"({_YEAR})(?!\w)")

_AFTERNOON: Final = (
    r"in the (?:afternoon|evening)|at night|nachmittags?|abends?|de la (?:tarde|noche)"
    r"|da (?:tarde|noite)|du soir|de l['’]apr[eè]s-midi"
)
_MORNING: Final = (
    r"in the morning|morgens?|vormittags?|fr[uü]h|de la (?:ma[nñ]ana|madrugada)"
    r"|da (?:manh[aã]|madrugada)|du matin"
)
_CLOCK = re.compile(
    r"(\d{1,2})(?:(?P<joint>[:.h時时点點시])\s?(?P<minute>[0-5]\d)(?!\d))?(?:(?<=:\d\d):[0-5]\d(?!\d))?(?:"
    r"\s?(?P<half>[ap])\.?\s?m\b\.?"
    r"|(?P<unit>\s?(?:uhr|h|hs|heures?|horas?|o['’]clock)\b(?:\s(?P<after>[0-5]\d)(?!\d))?"
    rf"|\s?[時时点點시])?(?:\s(?:(?P<late>{_AFTERNOON})|(?P<early>{_MORNING}))\b)?)",
    re.IGNORECASE,
)
_EAST_HALF = re.compile(r"(?:(午後|下午|晚上|夜|오후)|(午前|上午|早上|朝|오전))の?\s?$")


class WrittenTime(NamedTuple):
    """A day, a month or a time of day that a text writes, and where.

    `held` are the tokens that an index has of it, `looked_up` what it stands for in a question, its
    own first. `is_day`: it is a date.
    """

    start: int
    end: int
    looked_up: tuple[str, ...]
    held: tuple[str, ...]
    is_day: bool = True


def moments_in(text: str, code: Callable[[], str]) -> Iterator[WrittenTime]:
    """The days, months and times of day in a text in its compatible form, in their order.

    `code` gives the code of the text's language ("": not known), where a date reads two ways.
    """
    end = 0
    for number in _NUMBER.finditer(text):
        if number.start() < end:
            continue
        for read in (_in_digits, _in_the_east, _day_named, _named_before, _clock):
            moment = read(text, number.start(), end, code)
            if moment is not None:
                end = moment.end
                yield moment
                break


def day_tokens(year: int, month: int, day: int) -> tuple[str, str]:
    """The tokens that an index has of a text with this day: with a year, and without."""
    return f"{year:04}-{month:02}-{day:02}", f"0000-{month:02}-{day:02}"


def month_token(year: int, month: int) -> str:
    """The token that an index has of a text with a month of a year, or a day in it."""
    return f"{year:04}-{month:02}"


def _in_digits(text: str, at: int, least: int, code: Callable[[], str]) -> WrittenTime | None:
    if iso := _ISO.match(text, at):
        year, month = int(iso[1]), int(iso[3] or iso[5])
        return _date(at, iso.end(), year, month, int(iso[4]) if iso[4] else None)
    if digits := _DIGITS.match(text, at):
        year = int(digits[4]) if len(digits[4]) == 4 else 2000 + int(digits[4])
        first_number, second = int(digits[1]), int(digits[3])
        readings = [(second, first_number), (first_number, second)]
        if digits[2] != "/" or code() not in ("", ENGLISH):
            # With dots the day stands first everywhere, with slashes everywhere but in America.
            readings = readings[:1] if _is_date(second, first_number) else readings[1:]
        dates = [_date(at, digits.end(), year, *reading) for reading in dict.fromkeys(readings)]
        read = [reading for reading in dates if reading is not None]
        if len(read) < 2:
            return read[0] if read else None
        written_form = text[read[0].start : read[0].end]
        looked_up = (written_form, *(reading.looked_up[0] for reading in read))
        indexed_tokens = (written_form, *(token for reading in read for token in reading.held))
        return read[0]._replace(looked_up=looked_up, held=tuple(dict.fromkeys(indexed_tokens)))
    if (short_match := _SHORT_DIGITS.match(text, at)) and _LEADS_A_DAY.search(
        text, max(least, at - 8), at
    ):
        return _date(at, short_match.end(), None, int(short_match[2]), int(short_match[1]))
    return None


def _in_the_east(text: str, at: int, least: int, code: Callable[[], str]) -> WrittenTime | None:
    match = _EAST.match(text, at)
    if match is None or not (match[1] or match[3]):
        return None
    year, day = (int(part) if part else None for part in (match[1], match[3]))
    return _date(at, match.end(), year, int(match[2]), day)


def _day_named(text: str, at: int, least: int, code: Callable[[], str]) -> WrittenTime | None:
    match = _DAY_NAMED.match(text, at)
    month = month_named(match[2]) if match else 0
    if not (match and month):
        return None
    return _date(at, match.end(), int(match[3]) if match[3] else None, month, int(match[1]))


def _named_before(text: str, at: int, least: int, code: Callable[[], str]) -> WrittenTime | None:
    if not text[at - 1 : at].isspace():
        return None
    name = _NAME_BEFORE.search(text, max(least, at - _BACK), at)
    month = month_named(name[1]) if name else 0
    if not (name and month):
        return None
    if year := _YEAR_ALONE.match(text, at):
        return _date(name.start(), year.end(), int(year[1]), month, None)
    day = _DAY_AFTER_NAME.match(text, at)
    if day is None:
        return None
    return _date(name.start(), day.end(), int(day[2]) if day[2] else None, month, int(day[1]))


def _is_date(month: int, day: int | None) -> bool:
    return 1 <= month <= 12 and (day is None or 1 <= day <= _LENGTHS[month - 1])


def _date(
    start: int, end: int, year: int | None, month: int, day: int | None
) -> WrittenTime | None:
    if not _is_date(month, day) or (year is None and day is None):
        return None
    if day is None:
        token = month_token(year or 0, month)
        return WrittenTime(start, end, (token,), (token, str(year)))
    of_any_year = f"--{month:02}-{day:02}"
    if year is None:
        return WrittenTime(start, end, (of_any_year,), (of_any_year, day_tokens(0, month, day)[0]))
    day_token, yearless_token = day_tokens(year, month, day)
    indexed_tokens = (day_token, of_any_year, month_token(year, month), str(year))
    return WrittenTime(start, end, (day_token, yearless_token), indexed_tokens)


def _clock(text: str, at: int, least: int, code: Callable[[], str]) -> WrittenTime | None:
    match = _CLOCK.match(text, at)
    if match is None:
        return None
    half, late_mark, early_mark = match["half"], match["late"], match["early"]
    minute = match["minute"] or match["after"]
    if not (half or late_mark or early_mark or match["unit"] or match["joint"] not in (None, ".")):
        return None
    hour, start = int(match[1]), at
    if hour > 23 or (half and not 1 <= hour <= 12):
        return None
    if east := _EAST_HALF.search(text, max(least, at - 4), at):
        late_mark, early_mark, start = east[1], east[2], east.start()
    minutes, end = minute or "00", match.end()
    plain = f"{hour}:{minutes}"
    if half or late_mark or early_mark:
        afternoon = bool(late_mark) or (half or "").lower() == "p"
        hour = hour % 12 + 12 * afternoon if hour <= 12 else hour
        token = f"{hour:02}:{minutes}"
        return WrittenTime(start, end, tuple(dict.fromkeys((token, plain))), (token,), is_day=False)
    if 1 <= hour <= 11 and not match[1].startswith("0"):
        readings = tuple(f"{reading:02}:{minutes}" for reading in (hour, hour + 12))
        return WrittenTime(
            start, end, tuple(dict.fromkeys((plain, *readings))), (plain,), is_day=False
        )
    token = f"{hour:02}:{minutes}"
    return WrittenTime(start, end, (token,), (token,), is_day=False)


@lru_cache(maxsize=4096)
def month_named(word: str) -> int:
    """The number of the month that a word names in any language, 0 for none."""
    lower_word = word.lower()
    if lower_word in MONTH_OF:
        return MONTH_OF[lower_word]
    folded_word = fold_letters(lower_word)
    return next(
        (
            month
            for month, name in _names()
            if name.fullmatch(lower_word) or name.fullmatch(folded_word)
        ),
        0,
    )


@lru_cache(maxsize=1)
def _names() -> tuple[tuple[int, re.Pattern[str]], ...]:
    spaced_languages = [
        language for language in languages().values() if language.spaced and language.times
    ]
    return tuple(
        (month, re.compile(loose(f"(?:{language.times['months'][month - 1]})")))
        for language, month in product(spaced_languages, range(1, 13))
    )
