"""The times a question names, words that look like times, and what holds whatever the text."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.errors import InvalidInput
from anaphora.language.times.reading import MAX_SPANS, OPEN_END, OPEN_START, read_times

LISBON = ZoneInfo("Europe/Lisbon")
# A Friday afternoon, after the clocks went forward on 29 March.
NOW = datetime(2026, 4, 10, 15, 30, tzinfo=LISBON)

# One line each: phrase, first moment, first moment after it, the words that name it; or, in one
# column, words that only look like a time.
ROWS = [
    line.split("\t")
    for line in Path(__file__).with_name("times_named.tsv").read_text("utf-8").split("\n")[:-1]
]
NAMED = [row for row in ROWS if len(row) == 4]
NOT_TIMES = [row[0] for row in ROWS if len(row) == 1]

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
    row: list[str], before: str, after: str
) -> None:
    """Marks and spaces around a phrase do not change what it names."""
    spans = read_times(before + row[0] + after, NOW)
    assert [(span.start, span.end) for span in spans] == [(local(row[1]), local(row[2]))]


EXAMPLES = Path(__file__).parents[2] / "examples"
CALENDAR_WORDS = """
last next this past the of in on since before after until between and from to early mid late end
week weekend month quarter year day days ago a few couple 3 5 14th 30 31st 2026 0 9999 March may May
Tuesday Sun February 29 Q1 spring Christmas New Year's Easter yesterday today morning night half an
, . - 2026-03-05 2026-02-30 2026-13 25/3/2026 will did
"""
PIECES = st.sampled_from(CALENDAR_WORDS.split())


def test_a_pasted_log_gives_few_spans() -> None:
    """However many times a text names, the number of spans is bounded."""
    assert len(read_times("2026-03-05 error\n" * 5000, NOW)) == MAX_SPANS


@pytest.mark.parametrize(
    "piece", ["the day before ", "since the ", "from today ", "Tuesday, ", "a few ", "end of the "]
)
def test_a_long_repetition_is_read_to_its_end(piece: str) -> None:
    """Reading goes no deeper with a longer text."""
    assert len(read_times(piece * 4000, NOW)) <= MAX_SPANS


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    """No text raises, and every span lies in the text, starts before it ends, and is aware."""
    for span in read_times(text, NOW):
        assert span.start < span.end
        assert span.start.tzinfo is LISBON
        assert span.text == text[span.start_char : span.end_char] != ""


@given(
    st.lists(PIECES, max_size=12),
    st.datetimes(timezones=st.sampled_from([UTC, LISBON, ZoneInfo("America/New_York")])),
)
def test_any_words_of_time_are_read_at_any_moment(pieces: list[str], now: datetime) -> None:
    """Calendar words in any order, asked in any year, give ordered spans and never an error."""
    spans = read_times(" ".join(pieces), now)
    assert all(span.start < span.end for span in spans)
    places = [place for span in spans for place in (span.start_char, span.end_char)]
    assert places == sorted(places)


def test_temporal_example_questions_name_when_their_evidence_was_written() -> None:
    """Every temporal question of the shipped example names a span that holds its evidence."""
    asked = json.loads((EXAMPLES / "questions.json").read_text("utf-8"))
    chats = json.loads((EXAMPLES / "conversation.json").read_text("utf-8"))
    written = {
        message["uuid"]: datetime.fromisoformat(message["created_at"])
        for chat in chats
        for message in chat["chat_messages"]
    }
    now = datetime.fromisoformat(asked["asked"])
    temporal = [entry for entry in asked["questions"] if entry["kind"] == "temporal"]
    assert len(temporal) >= 5
    for entry in temporal:
        (span,) = read_times(entry["question"], now)
        assert all(span.start <= written[uuid] < span.end for uuid in entry["evidence"]), entry
    assert {uuid for entry in asked["questions"] for uuid in entry["evidence"]} <= written.keys()
