"""What holds for the reading of times whatever the text, and on the shipped example."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.recall.times.reading import MAX_SPANS, read_times

LISBON = ZoneInfo("Europe/Lisbon")
NOW = datetime(2026, 4, 10, 15, 30, tzinfo=LISBON)
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
