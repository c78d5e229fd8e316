"""Reads the times that a question names, as `TimeSpan`s in the asker's time zone.

Pure, English, and conservative: a wrong span costs more than a missed one, so what is not surely a
time gives nothing. `read_times` states the rules that a caller may rely on.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from anaphora.core.dates import MONTH_OF
from anaphora.core.languages.language import ENGLISH, language_of, languages
from anaphora.errors import InvalidInput
from anaphora.recall.times import calendar
from anaphora.recall.times.patterns import (
    OPEN_END,
    OPEN_ENDS,
    OPEN_START,
    OPEN_STARTS,
    Named,
    open_sided,
    times_by_patterns,
)
from anaphora.recall.times.phrases import (
    BY_WORD,
    Matcher,
    QuestionWords,
    TimeMatch,
    ago,
    day_month_at,
    holiday_at,
    month_at,
    numeric_at,
    plain_year_at,
    quarter_at,
    season_at,
    split,
    weekday_at,
)
from anaphora.values.conversations import TimeSpan

__all__ = ["MAX_SPANS", "OPEN_END", "OPEN_START", "is_open_end", "is_open_start", "read_times"]

# A pasted log names thousands of times; a question names few.
MAX_SPANS = 16
# A question that is so short may have no word that tells its language.
_SHORT = 200


def read_times(question: str, now: datetime) -> tuple[TimeSpan, ...]:
    """The spans of time that `question`, asked at `now`, names; at most `MAX_SPANS`.

    Spans are half-open and in the zone of `now`; days are whole days there, weeks begin on Monday.
    What returns (a weekday, a month, a day of the month, a holiday) is the most recent one that has
    begun (a weekday: before today), or the next one where the question speaks of the future
    ("will", "planned"). "Since X" and "after X" end at `OPEN_END`, "before X" and "until X" begin
    at `OPEN_START`. Raises InvalidInput when `now` has no zone.

    A question in a language that a file of `core/languages` has times of is read by that; one in no
    known language as English, and if that finds nothing by whichever language finds most.
    """
    if now.tzinfo is None:
        raise InvalidInput("now", now, "expected a datetime with a time zone")
    wall = now.replace(tzinfo=None, fold=0)
    code, by_code = language_of(question), languages()
    if code not in ("", ENGLISH) and by_code[code].times:
        return _make_spans(question, times_by_patterns(question, wall, by_code[code]), now)
    spans = _read_english(question, wall, now)
    if spans or code == ENGLISH or len(question) > _SHORT:
        return spans
    readings = (
        times_by_patterns(question, wall, language, digits=False) for language in by_code.values()
    )
    most_spans = max(
        readings, key=lambda times: sum(time.last - time.first for time in times), default=[]
    )
    return _make_spans(question, most_spans, now)


def is_open_start(span: TimeSpan) -> bool:
    """Whether a span has no beginning: "before 1995"."""
    return span.start.replace(tzinfo=None) in OPEN_STARTS


def is_open_end(span: TimeSpan) -> bool:
    """Whether a span has no end: "since March"."""
    return span.end.replace(tzinfo=None) in OPEN_ENDS


def _make_spans(question: str, times: Sequence[Named], now: datetime) -> tuple[TimeSpan, ...]:
    return tuple(
        TimeSpan(
            start=time.start.replace(tzinfo=now.tzinfo),
            end=time.end.replace(tzinfo=now.tzinfo),
            text=question[time.first : time.last],
            start_char=time.first,
            end_char=time.last,
        )
        for time in times[:MAX_SPANS]
    )


def _read_english(question: str, wall: datetime, now: datetime) -> tuple[TimeSpan, ...]:
    words = split(question, wall)
    spans: list[TimeSpan] = []
    index = 0
    while index < len(words.words) and len(spans) < MAX_SPANS:
        match = None
        word = words.words[index].lower
        # Nearly every word ends here, which is what keeps a long text cheap.
        if word[0].isdigit():
            longer = len(word) > 3 or not word.isdigit()
            may_begin = longer or words.at(index + 1) in _AFTER_NUMBER
        else:
            may_begin = word in _FIRST or word[0] == "q"
        if may_begin:
            # 30 February, or 9999 years ago: words in the form of a time that is none.
            with suppress(ValueError, OverflowError):
                relation = _RELATIONS.get(words.at(index))
                match = relation(words, index) if relation else None
                match = match or _read_moment(words, index)
        if match is not None and match.start < match.end:
            first_word, last_word = words.words[index], words.words[match.next - 1]
            spans.append(
                TimeSpan(
                    start=match.start.replace(tzinfo=now.tzinfo),
                    end=match.end.replace(tzinfo=now.tzinfo),
                    text=question[first_word.start : last_word.end],
                    start_char=first_word.start,
                    end_char=last_word.end,
                )
            )
        index = index + 1 if match is None else match.next
    return tuple(spans)


def _read_moment(words: QuestionWords, index: int, stated: bool = False) -> TimeMatch | None:
    """The longest time named at exactly this index. `stated`: a time is expected here."""
    first_word = words.at(index)
    if not first_word:
        return None
    if first_word[0].isdigit():
        if not first_word.isalnum():
            return numeric_at(words, index)
        if first_word[-1].isalpha() or words.at(index + 1) in _AFTER_NUMBER:
            return day_month_at(words, index, stated) or ago(words, index)
        return plain_year_at(words, index, stated) if len(first_word) == 4 else None
    matcher = BY_WORD.get(first_word)
    if matcher is not None:
        return matcher(words, index)
    for names, named_at in (
        (MONTH_OF, month_at),
        (calendar.WEEKDAY_OF, weekday_at),
        (calendar.SEASONS, season_at),
    ):
        if first_word in names:
            return named_at(words, index, stated)
    if first_word in calendar.NUMBERS or first_word in calendar.VAGUE:
        return ago(words, index)
    if first_word in calendar.HOLIDAYS or first_word == "new":
        return holiday_at(words, index, stated)
    return quarter_at(words, index, stated) if first_word[0] == "q" else None


def _read_target(words: QuestionWords, index: int) -> TimeMatch | None:
    """The time after a preposition that asks for one, past "the" and "about"."""
    for _ in range(2):
        index += words.at(index) in {"the", "about", "around", "in"}
    inner_unit = _INNER.get(words.at(index))
    match = inner_unit(words, index) if inner_unit else None
    return match or _read_moment(words, index, stated=True)


def _read_open(words: QuestionWords, index: int) -> TimeMatch | None:
    """Since, before, after and until: one side is open."""
    match = _read_target(words, index + 1)
    if match is None:
        return None
    return TimeMatch(*open_sided((match.start, match.end), words.at(index)), match.next)


def _read_between(words: QuestionWords, index: int) -> TimeMatch | None:
    """Between X and Y, from X to Y: from the start of X to the end of Y."""
    first_span = _read_target(words, index + 1)
    joints = {"and"} if words.at(index) == "between" else {"to", "until", "till", "through"}
    if first_span is None and words.at(index + 2) in joints:
        # The bare day in "between 5 and 8 March".
        second = _read_target(words, index + 3)
        if second is None:
            return None
        span = TimeMatch(second.start, second.end, index + 1)
        first_span = _read_same_month(words, span, index + 1)
        if first_span is None or first_span.start >= second.end:
            return None
        return TimeMatch(first_span.start, second.end, second.next)
    if first_span is None or words.at(first_span.next) not in joints:
        return None
    second = _read_target(words, first_span.next + 1) or _read_same_month(
        words, first_span, first_span.next + 1
    )
    if second is None:
        return None
    if first_span.start >= second.start:
        # "from November to February", "between Friday and Monday": the X before that Y.
        asked_then = QuestionWords(words.words, second.start, forward=False)
        first_span = _read_target(asked_then, index + 1) or first_span
    return (
        TimeMatch(first_span.start, second.end, second.next)
        if first_span.start < second.end
        else None
    )


def _read_same_month(words: QuestionWords, first: TimeMatch, index: int) -> TimeMatch | None:
    """The bare day in "between March 5 and 8"."""
    day = words.at(index).rstrip("thndrs")
    if (first.end - first.start).days != 1 or not (day.isascii() and day.isdigit()) or len(day) > 2:
        return None
    return TimeMatch(*calendar.day_of(first.start.replace(day=int(day))), index + 1)


def _read_part(words: QuestionWords, index: int) -> TimeMatch | None:
    """Early, mid and late, the start, middle and end of: a third of what follows."""
    next_index = index + 1
    if words.at(index) in {"beginning", "start", "middle", "end"}:
        if words.at(next_index) != "of":
            return None
        next_index += 1
    if words.at(next_index) == "the" and words.at(next_index + 1) in {
        "week",
        "month",
        "quarter",
        "year",
    }:
        span = TimeMatch(*calendar.unit_of(words.now, words.at(next_index + 1), 0), next_index + 2)
        if words.at(next_index + 2) == "of":
            return None
    else:
        moment = _read_moment(words, next_index + (words.at(next_index) == "in"), stated=True)
        if moment is None:
            return None
        span = moment
    third = calendar.third_of((span.start, span.end), _THIRDS[words.at(index)])
    return TimeMatch(*third, span.next)


def _read_unit(words: QuestionWords, index: int) -> TimeMatch | None:
    """The day before X, the week after X, the week of X, the month before last."""
    unit, relation = words.at(index), words.at(index + 1)
    if words.at(index - 1) != "the":
        return None
    if relation == "before" and words.at(index + 2) == "last" and words.ends(index + 3):
        return TimeMatch(*calendar.unit_of(words.now, unit, -2), index + 3)
    if relation not in {"before", "after"} and (unit, relation) != ("week", "of"):
        return None
    # Not `_read_target`: "the day before the day before …" must not go deeper with the text.
    match = _read_moment(words, index + 2 + (words.at(index + 2) == "the"), stated=True)
    if match is None or unit == "weekend":
        return None
    if relation == "of":
        if (match.end - match.start).days > 1:
            return None
        span = calendar.unit_of(match.start, "week", 0)
    elif relation == "before":
        span = (calendar.back(match.start, unit, 1), match.start)
    else:
        span = (match.end, calendar.back(match.end, unit, -1))
    return TimeMatch(*span, match.next)


_THIRDS = {"early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 2}
_PARTS: dict[str, Matcher] = dict.fromkeys(_THIRDS, _read_part)
_INNER: dict[str, Matcher] = _PARTS | dict.fromkeys(
    ("day", "week", "weekend", "month", "quarter", "year"), _read_unit
)
_RELATIONS: dict[str, Matcher] = (
    _INNER
    | dict.fromkeys(("since", "before", "after", "until", "till"), _read_open)
    | dict.fromkeys(("between", "from"), _read_between)
)
_NAMES = {*MONTH_OF, *calendar.WEEKDAY_OF, *calendar.SEASONS, *calendar.HOLIDAYS}
_COUNTS = {*calendar.NUMBERS, *calendar.VAGUE}
_FIRST = frozenset({*_NAMES, *_COUNTS, *_RELATIONS, *BY_WORD, "new"})
_AFTER_NUMBER = frozenset({*MONTH_OF, *calendar.UNITS, "of"})
