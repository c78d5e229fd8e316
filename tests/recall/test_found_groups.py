"""What speaks of one thing is found in the index, and stands together, in both lanes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.conftest import Clock

from anaphora import Memory, MemoryHit, NewTurn, TurnHit

pytestmark = pytest.mark.promise("recall.current")

START = datetime(2026, 2, 2, 9, 0, tzinfo=UTC)
ASKED = "which port does the staging database listen on?"
OLD = "The staging database listens on port 5433."
NEW = "We moved the staging database, it listens on port 5439 now."
VALUES = tuple(f"The staging database listens on port {port}." for port in (5433, 5435, 5437, 5439))

UNRELATED = tuple(
    f"{who} {what} on {day}."
    for day in ("Monday", "Thursday")
    for who in ("My cousin", "The gardener", "Our neighbour", "The baker")
    for what in (
        "repairs the old bicycle",
        "paints the garden fence",
        "listens to the radio",
        "bakes bread with walnuts",
        "waits at the port",
    )
)
NEARLY_ALIKE = tuple(
    f"The {place} {kind} listens on port {6000 + number}."
    for number, (place, kind) in enumerate(
        (place, kind)
        for place in ("billing", "archive", "metrics", "search", "mail", "chat", "image", "login")
        for kind in ("database", "cache", "gateway", "worker", "proxy")
    )
)
SHARING_WORDS = (
    "Staging a play takes a month.",
    "The port wine was sweet.",
    "The database course begins in May.",
)
Hit: TypeAlias = MemoryHit | TurnHit


class Desk:
    """A memory that is told a text a day, and asked about it."""

    def __init__(self, home: Path, lane: str) -> None:
        self._day = 0
        self._lane = lane
        self.memory = Memory.open(home, clock=self.now)
        assert self.memory.ready(60)

    def now(self) -> datetime:
        return START + timedelta(days=self._day)

    def tell(self, texts: Sequence[str], days: int = 1) -> None:
        for text in texts:
            if self._lane == "memories":
                self.memory.remember(text)
            else:
                self.memory.conversations.extend("chat", [NewTurn("user", text, ts=self.now())])
            self._day += days
        assert self.memory.ready(60)

    def ask(self, question: str, top_k: int = 6) -> tuple[Hit, ...]:
        if self._lane == "memories":
            return self.memory.recall(question, top_k=top_k, min_confidence=0.0).hits
        return self.memory.recall_conversation(
            None, question, top_k=top_k, budget=1_000_000, min_confidence=0.0
        ).hits


@pytest.fixture(params=["memories", "turns"])
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Desk]:
    opened = Desk(tmp_path / "home", request.param)
    with opened.memory:
        yield opened


@pytest.mark.parametrize("between", [UNRELATED, NEARLY_ALIKE], ids=["unrelated", "nearly alike"])
def test_a_group_is_found_whatever_stands_between_its_values(
    desk: Desk, between: tuple[str, ...]
) -> None:
    """Forty texts are told between the two values; each still knows the other one."""
    assert len(between) == 40
    desk.tell([OLD, *between, NEW])
    newer, older = desk.ask(ASKED)[:2]
    assert (newer.text, older.text) == (NEW, OLD)
    assert (newer.current, older.current) == (True, False)
    assert older.older_than is not None
    assert older.older_than.text == NEW
    assert [one.text for one in newer.previous] == [OLD]


def test_no_marked_hit_stands_before_what_replaced_it(desk: Desk) -> None:
    """Of several things with several values each, in questions for each and for all."""
    ports = [f"The {place} database listens on port {{}}." for place in ("staging", "billing")]
    rooms = ["The standup is in room {}.", "My rent is {} euros a month."]
    for value in (5433, 5435, 5437):
        desk.tell([frame.format(value) for frame in (*ports, *rooms)], days=3)
    desk.tell(["The billing database moved, it listens on port 5441 now.", "I do not like rain."])
    for question in (
        ASKED,
        "which port does the billing database listen on now?",
        "where is the standup?",
        "what is my rent?",
        "which databases do we have?",
        "tell me about the standup, the rent and the ports",
    ):
        hits = desk.ask(question, 20)
        texts = [hit.text for hit in hits]
        marked = [(hit.text, hit.older_than.text) for hit in hits if hit.older_than is not None]
        for text, newer in marked:
            assert newer in texts, (question, text)
            assert texts.index(newer) < texts.index(text), (question, text)


def test_of_several_replaced_values_one_stands_with_the_group(desk: Desk) -> None:
    """The others are marked as well, and stand behind what is about something else."""
    desk.tell([*VALUES[:2], *SHARING_WORDS, *UNRELATED[:3], *VALUES[2:]], days=3)
    hits = desk.ask(ASKED, 30)
    texts = [hit.text for hit in hits]
    assert texts[0] == VALUES[-1]
    assert texts[1] in VALUES[:-1]
    assert set(texts[2:5]) == set(SHARING_WORDS)
    older = [hit for hit in hits if hit.text in VALUES[:-1]]
    assert len(older) == 3
    for hit in older:
        assert hit.older_than is not None
        assert hit.older_than.text == VALUES[-1]


def test_nothing_that_is_worded_alike_takes_the_place_of_another_thing(desk: Desk) -> None:
    """Each of forty things has its own value first, unmarked, also after one of them changed."""
    desk.tell([OLD, *NEARLY_ALIKE, NEW])
    for text in NEARLY_ALIKE[::4]:
        thing = text.split(" listens")[0].lower()
        first = desk.ask(f"which port does {thing} listen on?")[0]
        assert (first.text, first.current) == (text, True)


def test_the_first_hits_are_the_same_however_many_are_asked_for(desk: Desk) -> None:
    """For every larger `top_k`, with their marks and scores."""
    desk.tell([*VALUES[:2], *NEARLY_ALIKE[:12], OLD, *UNRELATED[:12], *VALUES[2:], NEW])
    for question in (ASKED, "which port did the staging database use before?", "what is on port?"):
        whole = [(hit.text, hit.current, hit.score) for hit in desk.ask(question, 60)]
        assert whole
        for top_k in (1, 2, 3, 5, 8, 13, 21):
            some = [(hit.text, hit.current, hit.score) for hit in desk.ask(question, top_k)]
            assert some == whole[:top_k], (question, top_k)


def test_a_memory_beyond_the_candidates_is_found_through_its_group(tmp_path: Path) -> None:
    """What replaced the best one comes first, though it lies too far from the question to be a
    candidate: for one hit these are the nearest eight by meaning and by words."""
    asked = "what does Ada play on Fridays after work?"
    old = "On Fridays after work Ada plays the cello in the town orchestra."
    people = ("Bruno", "Carla", "Dimitri", "Elena", "Farid", "Greta", "Henk", "Ines", "Jonas")
    doings = ("goes swimming", "does the shopping", "bakes bread", "waters the plants")
    beside = [
        f"On Fridays after work {who} {what} beside Ada." for who in people for what in doings
    ]
    clock = Clock()
    with Memory.open(tmp_path / "home", clock=clock) as memory:
        for text in (old, *beside):
            memory.remember(text)
            clock.advance(days=1)
        new = memory.remember("In the town orchestra Ada has moved from the cello to the trumpet.")
        assert memory.ready(60)
        # By words it is fetched through its link, too.
        assert new.id not in [hit.id for hit in memory.recall(asked, top_k=9, mode="vector")]
        (only,) = memory.recall(asked, top_k=1)
        first, second = memory.recall(asked, top_k=2)
    assert only.id == first.id
    assert (first.id, first.current) == (new.id, True)
    assert (second.text, second.current) == (old, False)


def test_however_many_groups_tell_of_a_thing_one_replaced_value_stands_before_another(
    desk: Desk,
) -> None:
    """What was replaced points to what holds in the end, however it is found."""
    hosts = ("Buzzsprout", "Acast", "Podbean")
    for host in hosts:
        desk.tell([f"We moved our podcast to {host}.", f"Our podcast is still at {host}."], days=4)
    desk.tell(["The video channel is hosted by Vimeo.", "Mailchimp delivers our letters."])
    for question in ("where is our podcast hosted?", "who delivers our podcast's files?"):
        hits = desk.ask(question, 20)
        outdated = [hit for hit in hits if not hit.current]
        assert outdated, question
        for hit in outdated:
            assert hit.older_than is not None
            assert hit.older_than.text not in [other.text for other in outdated], hit.text
        others = [place for place, hit in enumerate(hits) if "podcast" not in hit.text]
        until = others[0] if others else len(hits)
        assert sum(not hit.current for hit in hits[:until]) <= 1, question
