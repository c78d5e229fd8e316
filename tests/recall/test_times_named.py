"""The times a question names, and the words that look like times and are none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.errors import InvalidInput
from anaphora.recall.times.reading import OPEN_END, OPEN_START, read_times

LISBON = ZoneInfo("Europe/Lisbon")
# A Friday afternoon, after the clocks went forward on 29 March.
NOW = datetime(2026, 4, 10, 15, 30, tzinfo=LISBON)

# phrase, first moment, first moment after it, the words that name it
NAMED = [
    ("what did we do today", "2026-04-10", "2026-04-11", "today"),
    ("what did I say yesterday", "2026-04-09", "2026-04-10", "yesterday"),
    ("the day before yesterday", "2026-04-08", "2026-04-09", "day before yesterday"),
    ("what's up tomorrow", "2026-04-11", "2026-04-12", "tomorrow"),
    ("this week", "2026-04-06", "2026-04-13", "this week"),
    ("last week", "2026-03-30", "2026-04-06", "last week"),
    ("next week", "2026-04-13", "2026-04-20", "next week"),
    ("this month", "2026-04-01", "2026-05-01", "this month"),
    ("last month", "2026-03-01", "2026-04-01", "last month"),
    ("next month", "2026-05-01", "2026-06-01", "next month"),
    ("last year", "2025-01-01", "2026-01-01", "last year"),
    ("this year", "2026-01-01", "2027-01-01", "this year"),
    ("next year", "2027-01-01", "2028-01-01", "next year"),
    ("last quarter", "2026-01-01", "2026-04-01", "last quarter"),
    ("this quarter", "2026-04-01", "2026-07-01", "this quarter"),
    ("last weekend", "2026-04-04", "2026-04-06", "last weekend"),
    ("this weekend", "2026-04-11", "2026-04-13", "this weekend"),
    ("over the weekend", "2026-04-04", "2026-04-06", "weekend"),
    ("last Tuesday", "2026-04-07", "2026-04-08", "last Tuesday"),
    ("on Tuesday", "2026-04-07", "2026-04-08", "Tuesday"),
    ("this Tuesday", "2026-04-07", "2026-04-08", "this Tuesday"),
    ("this Friday", "2026-04-10", "2026-04-11", "this Friday"),
    ("on Friday", "2026-04-03", "2026-04-04", "Friday"),
    ("next Tuesday", "2026-04-14", "2026-04-15", "next Tuesday"),
    ("will we meet on Tuesday?", "2026-04-14", "2026-04-15", "Tuesday"),
    ("Tuesday morning", "2026-04-07 05:00", "2026-04-07 12:00", "Tuesday morning"),
    ("yesterday evening", "2026-04-09 17:00", "2026-04-10", "yesterday evening"),
    ("last night", "2026-04-09 18:00", "2026-04-10 06:00", "last night"),
    ("this morning", "2026-04-10 05:00", "2026-04-10 12:00", "this morning"),
    ("tonight", "2026-04-10 18:00", "2026-04-11 06:00", "tonight"),
    ("3 days ago", "2026-04-07", "2026-04-08", "3 days ago"),
    ("two weeks ago", "2026-03-24", "2026-03-31", "two weeks ago"),
    ("a month ago", "2026-02-23", "2026-03-26", "a month ago"),
    ("two years ago", "2023-10-11", "2024-10-10", "two years ago"),
    ("an hour ago", "2026-04-10 14:00", "2026-04-10 15:00", "an hour ago"),
    ("a couple of weeks ago", "2026-03-20", "2026-04-04", "a couple of weeks ago"),
    ("a few days ago", "2026-04-06", "2026-04-09", "a few days ago"),
    ("several months ago", "2025-10-11", "2026-02-09", "several months ago"),
    ("half a year ago", "2025-09-10", "2025-11-10", "half a year ago"),
    ("in the last 3 days", "2026-04-07", "2026-04-11", "last 3 days"),
    ("in the past two weeks", "2026-03-27", "2026-04-11", "past two weeks"),
    ("over the last few weeks", "2026-03-20", "2026-04-11", "last few weeks"),
    ("in the last month", "2026-03-10", "2026-04-11", "last month"),
    ("the past year", "2025-04-10", "2026-04-11", "past year"),
    ("last 30 days", "2026-03-11", "2026-04-11", "last 30 days"),
    ("in March", "2026-03-01", "2026-04-01", "March"),
    ("in March 2026", "2026-03-01", "2026-04-01", "March 2026"),
    ("in december", "2025-12-01", "2026-01-01", "december"),
    ("in March last year", "2025-03-01", "2025-04-01", "March last year"),
    ("early March", "2026-03-01", "2026-03-11", "early March"),
    ("mid-March", "2026-03-11", "2026-03-21", "mid-March"),
    ("late March 2025", "2025-03-21", "2025-04-01", "late March 2025"),
    ("at the end of March", "2026-03-21", "2026-04-01", "end of March"),
    ("March 5", "2026-03-05", "2026-03-06", "March 5"),
    ("March 5th", "2026-03-05", "2026-03-06", "March 5th"),
    ("5 March", "2026-03-05", "2026-03-06", "5 March"),
    ("5th of March 2025", "2025-03-05", "2025-03-06", "5th of March 2025"),
    ("March 5th, 2026", "2026-03-05", "2026-03-06", "March 5th, 2026"),
    ("Tuesday, March 3", "2026-03-03", "2026-03-04", "Tuesday, March 3"),
    ("2026-03-05", "2026-03-05", "2026-03-06", "2026-03-05"),
    ("2026/03/05", "2026-03-05", "2026-03-06", "2026/03/05"),
    ("25/3/2026", "2026-03-25", "2026-03-26", "25/3/2026"),
    ("on 25.03.2026", "2026-03-25", "2026-03-26", "25.03.2026"),
    ("on 5.3.2026?", "2026-03-05", "2026-03-06", "5.3.2026"),
    ("since 5.3.2026", "2026-03-05", "2200-01-01", "since 5.3.2026"),
    ("2026-03", "2026-03-01", "2026-04-01", "2026-03"),
    ("in 2025", "2025-01-01", "2026-01-01", "2025"),
    ("since 2024", "2024-01-01", "2200-01-01", "since 2024"),
    ("Q1 2026", "2026-01-01", "2026-04-01", "Q1 2026"),
    ("in Q1", "2026-01-01", "2026-04-01", "Q1"),
    ("2025 Q4", "2025-10-01", "2026-01-01", "2025 Q4"),
    ("between March 5 and March 8", "2026-03-05", "2026-03-09", "between March 5 and March 8"),
    ("between March 5 and 8", "2026-03-05", "2026-03-09", "between March 5 and 8"),
    ("from Monday to Wednesday", "2026-04-06", "2026-04-09", "from Monday to Wednesday"),
    ("between November and February", "2025-11-01", "2026-03-01", "between November and February"),
    ("since last Tuesday", "2026-04-07", "2200-01-01", "since last Tuesday"),
    ("since March", "2026-03-01", "2200-01-01", "since March"),
    ("before March", "1970-01-01", "2026-03-01", "before March"),
    ("after 5 March", "2026-03-06", "2200-01-01", "after 5 March"),
    ("until yesterday", "1970-01-01", "2026-04-10", "until yesterday"),
    ("before the 14th", "1970-01-01", "2026-03-14", "before the 14th"),
    ("on the 14th", "2026-03-14", "2026-03-15", "14th"),
    ("on the 29th", "2026-03-29", "2026-03-30", "29th"),
    ("around Christmas", "2025-12-22", "2025-12-29", "Christmas"),
    ("at New Year", "2025-12-29", "2026-01-05", "New Year"),
    ("on New Year's Eve", "2025-12-31", "2026-01-01", "New Year's Eve"),
    ("on Valentine's Day", "2026-02-14", "2026-02-15", "Valentine's Day"),
    ("around Halloween", "2025-10-28", "2025-11-04", "Halloween"),
    ("last Thanksgiving", "2025-11-27", "2025-11-28", "last Thanksgiving"),
    ("around Easter", "2026-04-02", "2026-04-09", "Easter"),
    ("Christmas 2024", "2024-12-25", "2024-12-26", "Christmas 2024"),
    ("spring 2026", "2026-03-01", "2026-06-01", "spring 2026"),
    ("last summer", "2025-06-01", "2025-09-01", "last summer"),
    ("in winter", "2025-12-01", "2026-03-01", "winter"),
    ("in May", "2025-05-01", "2025-06-01", "May"),
    ("in may", "2025-05-01", "2025-06-01", "may"),
    ("last May", "2025-05-01", "2025-06-01", "last May"),
    ("our March numbers", "2026-03-01", "2026-04-01", "March"),
    ("the week before last", "2026-03-23", "2026-03-30", "week before last"),
    ("the day after Christmas", "2025-12-26", "2025-12-27", "day after Christmas"),
    ("the week of March 2", "2026-03-02", "2026-03-09", "week of March 2"),
    ("on February 29", "2024-02-29", "2024-03-01", "February 29"),
    ("late last year", "2025-09-01", "2026-01-01", "late last year"),
    ("end of last month", "2026-03-21", "2026-04-01", "end of last month"),
    ("end of the month", "2026-04-21", "2026-05-01", "end of the month"),
    ("Monday of last week", "2026-03-30", "2026-03-31", "Monday of last week"),
    ("what did Ines say about retries in February?", "2026-02-01", "2026-03-01", "February"),
    ("by the end of 2025", "2025-09-01", "2026-01-01", "end of 2025"),
    ("2026-03-05T10:00:00Z", "2026-03-05", "2026-03-06", "2026-03-05T10:00:00Z"),
    ("on Tue", "2026-04-07", "2026-04-08", "Tue"),
    ("the 5th of March in the morning", "2026-03-05", "2026-03-06", "5th of March"),
    ("May 2026", "2026-05-01", "2026-06-01", "May 2026"),
    ("since the end of March", "2026-03-21", "2200-01-01", "since the end of March"),
    ("early 2026", "2026-01-01", "2026-05-01", "early 2026"),
    ("two days after the incident on 11 March", "2026-03-11", "2026-03-12", "11 March"),
    ("last week's deploy", "2026-03-30", "2026-04-06", "last week"),
    ("yesterday's meeting", "2026-04-09", "2026-04-10", "yesterday"),
    ("what did we decide this past week", "2026-04-03", "2026-04-11", "past week"),
    ("the end of the week", "2026-04-10", "2026-04-13", "end of the week"),
    ("What did Maren say in Jan?", "2026-01-01", "2026-02-01", "Jan"),
    ("5 may 2025", "2025-05-05", "2025-05-06", "5 may 2025"),
    ("on the 3rd", "2026-04-03", "2026-04-04", "3rd"),
    ("since the 14th", "2026-03-14", "2200-01-01", "since the 14th"),
    ("from March 5 to March 8", "2026-03-05", "2026-03-09", "from March 5 to March 8"),
    ("from November to February", "2025-11-01", "2026-03-01", "from November to February"),
    (
        "between 2026-03-01 and 2026-03-07",
        "2026-03-01",
        "2026-03-08",
        "between 2026-03-01 and 2026-03-07",
    ),
    ("since Christmas", "2025-12-25", "2200-01-01", "since Christmas"),
    ("until the end of February", "1970-01-01", "2026-03-01", "until the end of February"),
    ("after last week", "2026-04-06", "2200-01-01", "after last week"),
    ("before 2025", "1970-01-01", "2025-01-01", "before 2025"),
    ("the month before last", "2026-02-01", "2026-03-01", "month before last"),
    ("the day before Christmas", "2025-12-24", "2025-12-25", "day before Christmas"),
    ("the week after Easter", "2026-04-06", "2026-04-13", "week after Easter"),
    ("in autumn", "2025-09-01", "2025-12-01", "autumn"),
    ("in early April", "2026-04-01", "2026-04-11", "early April"),
    ("three months ago", "2025-12-26", "2026-01-26", "three months ago"),
    ("twelve days ago", "2026-03-29", "2026-03-30", "twelve days ago"),
    ("last Friday night", "2026-04-03 18:00", "2026-04-04 06:00", "last Friday night"),
    ("since 9 a.m. yesterday", "2026-04-09", "2026-04-10", "yesterday"),
    ("LAST TUESDAY", "2026-04-07", "2026-04-08", "LAST TUESDAY"),
    ("**last** week", "2026-03-30", "2026-04-06", "last** week"),
    ("“yesterday”", "2026-04-09", "2026-04-10", "yesterday"),
    ("between Friday and Monday", "2026-04-03", "2026-04-07", "between Friday and Monday"),
    ("a few hours ago", "2026-04-10 11:00", "2026-04-10 14:00", "a few hours ago"),
    ("on March 3-5", "2026-03-03", "2026-03-06", "March 3-5"),
    ("3–5 March 2025", "2025-03-03", "2025-03-06", "3–5 March 2025"),
]

NOT_TIMES = [
    "version 10.15.2024 of it",
    "release 1.2.3000",
    "on 31.02.2026",
    "on 5.3.26",
    "a ratio of 3-5 to one",
    "3-5 items",
    "why did we move the queue away from redis?",
    "just one second",
    "the second time it failed",
    "may I ask something",
    "May I ask something?",
    "you may want to restart",
    "this may be wrong",
    "the last may be broken",
    "they march on",
    "March on the capital",
    "a march through the code",
    "Theresa May resigned",
    "what did June say?",
    "April said so",
    "ask April about it",
    "Spring Boot version",
    "in Spring we trust",
    "the fall of Rome",
    "in the fall of the empire",
    "a spring in the clock",
    "this spring boot app",
    "the sun was out",
    "he sat down",
    "they wed in secret",
    "Sun hardware",
    "port 5433",
    "error 2026",
    "HTTP 404 in 3 tries",
    "version 3.12",
    "python 3.11.4",
    "release 2026.3",
    "1/2 of it",
    "5/3/2026",
    "a 3/4 majority",
    "last time",
    "the last one",
    "last 3 messages",
    "last week of the sprint",
    "next time",
    "this one",
    "the past is gone",
    "one of the days",
    "five minutes",
    "two days of work",
    "it takes 3 weeks",
    "for a month",
    "every Monday",
    "each Friday",
    "Black Friday",
    "CVE-2026-03",
    "march_2026",
    "notes/2026-03-05.txt",
    "Q1: what is it?",
    "the 14th floor",
    "the 2nd attempt",
    "on the 1st try",
    "after 2048 tokens",
    "in 2000 rows",
    "long ago",
    "years ago",
    "a year",
    "quarter of it",
    "the end of the line",
    "the end of the day",
    "before lunch",
    "since then",
    "until now",
    "between you and me",
    "from here to there",
    "new year plans",
    "New York",
    "February 30",
    "month 13",
    "2026-13-01",
    "2026-02-30",
    "9999 years ago",
    "0 of 5",
    "early bird",
    "mid range",
    "late fee",
    "the day the music died",
    "week by week",
    "half the time",
    "over a year ago",
    "Good Friday",
    "day before",
    "the day after the incident",
    "I will may",
    "mar the surface",
    "Jan said no",
    "Dec Alpha",
    "decades",
    "dec 10",
    "an easter egg",
    "christmas tree",
    "is it in the second half",
    "the Wednesdays",
    "August Strindberg",
    "august company",
]

MARKS = ' \t\n.,;:!?()[]{}"*_~`…—“”«»'


def local(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=LISBON)


@pytest.mark.parametrize(("phrase", "start", "end", "words"), NAMED)
def test_a_phrase_names_its_span(phrase: str, start: str, end: str, words: str) -> None:
    """A phrase gives the one span it names, and the words that named it."""
    spans = read_times(phrase, NOW)
    assert [(span.start, span.end, span.text) for span in spans] == [
        (local(start), local(end), words)
    ]
    assert phrase[spans[0].start_char : spans[0].end_char] == words


@pytest.mark.parametrize("sentence", NOT_TIMES)
def test_what_is_no_time_names_none(sentence: str) -> None:
    """Words that only look like a time give no span."""
    assert read_times(sentence, NOW) == ()


@pytest.mark.promise("times.read")
def test_several_times_come_in_the_order_of_the_text() -> None:
    """Each time named gives its own span, in the order of the words."""
    spans = read_times("was it today, yesterday or two weeks ago?", NOW)
    assert [span.text for span in spans] == ["today", "yesterday", "two weeks ago"]
    spans = read_times("what did we spend in February and March?", NOW)
    assert [span.text for span in spans] == ["February", "March"]


@pytest.mark.parametrize(
    ("question", "start"),
    [
        ("will we meet on Tuesday?", "2026-04-14"),
        ("will Ines be away in May?", "2026-05-01"),
        ("what is planned for June 5?", "2026-06-05"),
        ("we'll freeze on the 14th?", "2026-04-14"),
        ("what did Will say on Tuesday?", "2026-04-07"),
    ],
)
def test_a_question_about_the_future_looks_forward(question: str, start: str) -> None:
    """What returns is the next one when the question speaks of the future, else the last one."""
    assert [span.start for span in read_times(question, NOW)] == [local(start)]


@pytest.mark.parametrize(
    "zone", [UTC, LISBON, timezone(timedelta(hours=-11)), ZoneInfo("Asia/Tokyo")]
)
def test_days_are_whole_days_of_the_asker(zone: timezone | ZoneInfo) -> None:
    """A day begins and ends at midnight where the question is asked."""
    now = datetime(2026, 4, 10, 23, 59, tzinfo=zone)
    span = read_times("yesterday", now)[0]
    assert span.start == datetime(2026, 4, 9, tzinfo=zone)
    assert span.end == datetime(2026, 4, 10, tzinfo=zone)
    assert span.start.tzinfo is zone


def test_the_day_the_clocks_change_is_one_day() -> None:
    """The day of 23 hours is still one whole day, and its length shows in UTC."""
    span = read_times("on 29 March", NOW)[0]
    assert span.end.astimezone(UTC) - span.start.astimezone(UTC) == timedelta(hours=23)


def test_open_ends_are_the_stated_bounds() -> None:
    """Since has no end and before no beginning, within the published bounds."""
    assert read_times("since March", NOW)[0].end == OPEN_END.replace(tzinfo=LISBON)
    assert read_times("before March", NOW)[0].start == OPEN_START.replace(tzinfo=LISBON)


def test_a_moment_without_a_zone_is_refused() -> None:
    """Whose day it is cannot be known without a zone, so a naive moment is an error."""
    with pytest.raises(InvalidInput, match="zone"):
        read_times("yesterday", NOW.replace(tzinfo=None))


@given(
    st.sampled_from(NAMED),
    st.text(alphabet=MARKS, max_size=5),
    st.text(alphabet=MARKS + "'", max_size=5),
)
def test_punctuation_around_a_phrase_changes_nothing(
    row: tuple[str, str, str, str], before: str, after: str
) -> None:
    """Marks and spaces around a phrase do not change what it names."""
    spans = read_times(before + row[0] + after, NOW)
    assert [(span.start, span.end) for span in spans] == [(local(row[1]), local(row[2]))]
