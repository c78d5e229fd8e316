"""A question as every lane reads it: cut, analysed and compared with the clock once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property, lru_cache
from typing import Final

from anaphora.language.analyser import QueryWord, analyse, query_terms, query_words
from anaphora.language.dates import day_tokens, month_named, month_token
from anaphora.language.languages.language import language_of, languages
from anaphora.language.times.reading import is_open_end, is_open_start, read_times
from anaphora.rank.statements import asked_words
from anaphora.recall.query import is_empty, truncated_question, typed_question
from anaphora.values.conversations import Degraded, TimeSpan

_BY_DAYS: Final = 62
_BY_MONTHS: Final = 1_100
"""Days of a span up to which texts that name one of its days, or of its months, are looked for."""


@dataclass(frozen=True, slots=True)
class SpanNames:
    """What an index has of texts that name a day in a span: with its year, and without any."""

    dated: tuple[str, ...] = ()
    yearless: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """A question that is asked at `now`, prepared where a call begins.

    `typed` is the text as it was given, `text` what is read of it, `notices` say what is not. The
    other parts are found when they are first needed: they are kept beside the fields.
    """

    typed: str
    text: str
    notices: tuple[Degraded, ...]
    now: datetime

    @classmethod
    def read(cls, typed: str, now: datetime) -> Question:
        """Prepare a text as it was typed."""
        return cls(typed, *truncated_question(typed_question(typed)), now)

    @property
    def is_blank(self) -> bool:
        """Whether nothing is asked."""
        return is_empty(self.typed)

    @cached_property
    def words(self) -> tuple[QueryWord, ...]:
        """All its words, as an index is asked for them."""
        return query_words(self.text)

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """The first token of each word, to compare texts with."""
        return tuple(word.tokens[0] for word in self.words)

    @property
    def asked_words(self) -> tuple[QueryWord, ...]:
        """Its words without those that only say when."""
        return asked_words(self.text)

    @cached_property
    def times(self) -> tuple[TimeSpan, ...]:
        """The times that it names."""
        return read_times(self.text, self.now)

    @cached_property
    def spans(self) -> tuple[tuple[float, float], ...]:
        """The ends of its times in seconds since 1970."""
        return tuple((time.start.timestamp(), time.end.timestamp()) for time in self.times)

    @cached_property
    def time_names(self) -> tuple[SpanNames, ...]:
        """What texts call the days of each of its times."""
        return tuple(map(_names_of, self.times))

    @cached_property
    def subject(self) -> str:
        """Its text without the words that name its times."""
        return _drop_times(self.text, self.times)

    @cached_property
    def asks_time_alone(self) -> bool:
        """Whether it asks what was said or happened at its times, and no more."""
        if not self.times:
            return False
        language = languages().get(language_of(self.text))
        if language is not None and not language.spaced:
            return set(analyse(self.subject, keep_stop_words=False)) <= _happening()
        return set(query_terms(self.subject)) <= _happening()


def prepare(question: str | Question, clock: Callable[[], datetime]) -> Question:
    """A text as a question that is asked now; what was prepared before stays as it is."""
    return question if isinstance(question, Question) else Question.read(question, clock())


def _drop_times(question: str, spans: Sequence[TimeSpan]) -> str:
    """What is left of a question without the words that name `spans`."""
    remaining = question
    for span in sorted(spans, key=lambda named: -named.start_char):
        remaining = remaining[: span.start_char] + remaining[span.end_char :]
    return remaining


def _names_of(span: TimeSpan) -> SpanNames:
    """The tokens of the days in a span, and of the months and years that it holds whole.

    None for a span with an open side, or of many years.
    """
    if is_open_start(span) or is_open_end(span):
        return SpanNames()
    first_day, last_day = span.start.date(), (span.end - timedelta(microseconds=1)).date()
    length = (last_day - first_day).days + 1
    if length > _BY_MONTHS:
        return SpanNames()
    from calendar import monthrange

    days = [first_day + timedelta(days=number) for number in range(length)]
    months = dict.fromkeys((day.year, day.month) for day in days)
    day_set = set(days)
    whole_months = [
        (year, month)
        for year, month in months
        if all(
            date(year, month, day) in day_set for day in range(1, monthrange(year, month)[1] + 1)
        )
    ]
    tokens = [month_token(*month) for month in whole_months]
    whole_years = Counter(year for year, _ in whole_months)
    tokens += [str(year) for year in dict(months) if whole_years[year] == 12]
    yearless: list[str] = []
    if length <= _BY_DAYS:
        day_token_pairs = [day_tokens(day.year, day.month, day.day) for day in days]
        tokens += [dated_token for dated_token, _ in day_token_pairs]
        yearless += [bare for _, bare in day_token_pairs]
    if len(whole_months) == 1 and len(days) <= 31:
        # The tokens of the month's name, as texts of any language have them. Not "may", which is a
        # verb as often.
        codes = [language.code for language in languages().values() if language.stemmer]
        for word in query_words(span.text):
            if word.form != "may" and month_named(word.form) == whole_months[0][1]:
                yearless += word.tokens_in(codes)
    return SpanNames(tuple(tokens), tuple(yearless))


@lru_cache(maxsize=1)
def _happening() -> frozenset[str]:
    """What a question may hold beside a time and still ask for nothing else, in any language."""
    cues = (language.cues.get("happening", "") for language in languages().values())
    return frozenset(token for words in cues for word in words.split() for token in analyse(word))
