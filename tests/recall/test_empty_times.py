"""Questions for a time in which nothing lies: no hits of other times, and a notice in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from anaphora import Memory, NewTurn, Recall, SearchHit

NOW = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
PLUMBER = "The plumber comes with the new boiler."
Opened = Callable[..., Memory]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    memories: list[Memory] = []

    def open_one(*turns: tuple[datetime, str], now: datetime = NOW) -> Memory:
        home = tmp_path / f"home{len(memories)}"
        memories.append(Memory.open(home, embedder="hashing", clock=lambda: now))
        memories[-1].conversations.extend("c", [NewTurn("user", text, ts=ts) for ts, text in turns])
        return memories[-1]

    yield open_one
    for memory in memories:
        memory.close()


EMPTY = {
    "what happens tomorrow?": "no turn is dated on 2026-11-26 (tomorrow)",
    "tomorrow": "no turn is dated on 2026-11-26 (tomorrow)",
    "what happens next week?": "no turn is dated from 2026-11-30 to 2026-12-06 (next week)",
    "what did we say in 2031?": "no turn is dated from 2031-01-01 to 2031-12-31 (2031)",
    "what happened before 1995?": "nothing was said before 1995-01-01 (before 1995)",
    "what did we say since tomorrow?": "no turn is dated since 2026-11-26 (since tomorrow)",
    "was ist morgen los?": "no turn is dated on 2026-11-26 (morgen)",
    "was geschah vor 1960?": "nothing was said before 1960-01-01 (vor 1960)",
    "¿qué dijimos en 2031?": "no turn is dated from 2031-01-01 to 2031-12-31 (en 2031)",
    "明天会发生什么": "no turn is dated on 2026-11-26 (明天)",
}


@pytest.mark.promise("recall.choice")
@pytest.mark.parametrize("mode", ["hybrid", "words", "vector"])
@pytest.mark.parametrize("question", EMPTY)
def test_a_time_in_which_nothing_lies_is_an_answer(
    opened: Opened, question: str, mode: str
) -> None:
    """No hits, a notice that names the time, and nothing of other times beside it."""
    memory = opened((NOW - timedelta(days=1), PLUMBER))
    found = memory.recall_conversation(None, question, mode=mode)  # type: ignore[arg-type]
    assert found.hits == ()
    assert found.notices == (EMPTY[question],)
    assert found.nearest == ()
    memory.remember("The paint shop opened.", created_at=NOW - timedelta(days=3))
    everything = memory.search(question)
    assert (everything.hits, everything.nearest) == ((), ())
    assert EMPTY[question] in everything.notices


@pytest.mark.promise("recall.choice")
def test_a_turn_of_tomorrow_answers_the_question_for_it(opened: Opened) -> None:
    """A time to come that holds turns gets them, and no others."""
    memory = opened((NOW, PLUMBER), (NOW + timedelta(days=1), "The roof is mended."))
    found = memory.recall_conversation(None, "what happens tomorrow?")
    assert [hit.text for hit in found] == ["The roof is mended."]
    assert found.notices == ()
    later = memory.recall_conversation(None, "what happens next week?")
    assert (later.hits, len(later.notices)) == ((), 1)


@pytest.mark.promise("recall.choice")
def test_of_two_times_the_one_with_turns_answers(opened: Opened) -> None:
    """A time without turns beside one with turns is told, and takes no hits away."""
    may = datetime(2026, 5, 5, 9, tzinfo=UTC)
    memory = opened((may, "The roof is mended."), (NOW, PLUMBER))
    found = memory.recall_conversation(None, "what happened on 5 May and on 6 May?")
    assert [hit.text for hit in found] == ["The roof is mended."]
    assert found.notices == ("nothing was said on 2026-05-06 (6 May)",)


@pytest.mark.promise("recall.choice")
def test_a_question_for_more_than_a_time_to_come_gets_no_notice(opened: Opened) -> None:
    """What was said before answers it, and is not called nothing."""
    memory = opened((NOW - timedelta(days=1), PLUMBER))
    found = memory.recall_conversation(None, "when does the plumber with the boiler come tomorrow?")
    assert [hit.text for hit in found] == [PLUMBER]
    assert found.notices == ()
    alone = memory.recall_conversation(None, "what happens tomorrow?")
    assert (alone.hits, alone.nearest) == ((), ())
    # Who asks for what comes closest gets it.
    closest = memory.recall_conversation(None, "what happens tomorrow?", min_confidence=0)
    assert [hit.text for hit in closest] == [PLUMBER]


@pytest.mark.promise("search.everything")
def test_a_search_tells_of_an_empty_time_beside_what_other_lanes_find(opened: Opened) -> None:
    """A memory that is found is not taken for what was said then."""
    memory = opened((NOW - timedelta(days=1), PLUMBER))
    memory.remember("The paint shop opened.", created_at=NOW - timedelta(days=3))
    found: Recall[SearchHit] = memory.search("what happened on 22 November?")
    assert {hit.kind for hit in found} == {"memory"}
    assert found.notices == ("nothing was said on 2026-11-22 (22 November)",)
    memory.remember("Tomorrow is another day.")
    notices = memory.search("what happens tomorrow?").notices
    assert notices == ('on 2026-11-26, told 2026-11-25: "Tomorrow is another day."',)
    assert memory.search("boiler").notices == ()


@pytest.mark.promise("recall.choice")
@pytest.mark.parametrize(
    "zone", [UTC, ZoneInfo("Pacific/Apia"), ZoneInfo("America/Los_Angeles")], ids=str
)
@pytest.mark.parametrize("year", [1, 2, 1969, 2200, 9998, 9999])
def test_a_clock_in_any_year_is_answered(opened: Opened, zone: tzinfo, year: int) -> None:
    """At the ends of the calendar a time is read or not, and never raises."""
    for now in (datetime(year, 1, 1, tzinfo=zone), datetime(year, 12, 31, 23, 59, tzinfo=zone)):
        memory = opened((NOW, PLUMBER), now=now)
        for question in (*EMPTY, "vom 5. November bis 3. Februar", "what happened yesterday?"):
            found = memory.recall_conversation(None, question)
            assert not found.hits or not found.nearest


@pytest.mark.parametrize(
    ("question", "year"),
    [("was geschah vor 1960?", 1950), ("before 1960-05-01", 1950), ("since 2300-01-01", 2310)],
)
def test_a_range_beyond_the_open_sides_keeps_its_direction(
    opened: Opened, question: str, year: int
) -> None:
    """What lies before 1970 or after 2200 is found by a range that is open to that side."""
    memory = opened((NOW, PLUMBER), (datetime(year, 3, 1, tzinfo=UTC), "The mill was sold."))
    found = memory.recall_conversation(None, question)
    assert [hit.text for hit in found] == ["The mill was sold."]
