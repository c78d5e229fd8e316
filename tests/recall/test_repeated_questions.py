"""A question that was asked before has the answer that a home opened anew gives at that moment."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anaphora import Memory, NewMemory, Verdict

OUTSIDE = """
import sqlite3, sys
rows = sqlite3.connect(sys.argv[1])
rows.execute(sys.argv[2])
rows.commit()
rows.close()
"""
NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
WORDS = ["kettle", "harbour", "violin", "zebra", "lantern", "pepper", "tunnel"]
QUESTIONS = (
    "where is the zebra kept",
    "Where is the zebra kept?",
    "where  is the ZEBRA kept",
    "where is the zebra kept.",
    "was the lantern moved to the harbour",
    "pepper",
)
CHOICES: tuple[dict[str, Any], ...] = (
    {},
    {"top_k": 1},
    {"top_k": 8},
    {"mode": "vector"},
    {"mode": "words"},
    {"min_score": 0.4},
    {"min_score": 0.0},
    {"filters": {"category": "moved"}},
    {"filters": {"NOT": {"type": "episodic"}}, "top_k": 6},
)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


class TwoProcesses:
    """A home, the memory that is asked again and again, and a second one that writes to it."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.root = root
        self.clock = Clock()
        self.asked = stack.enter_context(self.opened())
        self.other = stack.enter_context(self.opened())
        self.ids: list[str] = []

    def opened(self) -> Memory:
        return Memory.open(self.root, embedder="hashing", clock=self.clock)

    def step(self, rng: random.Random) -> None:
        """One change, by either process, or some time that passes."""
        writer = rng.choice((self.asked, self.other))
        change = rng.choice(
            (self.remember, self.remember, self.restate, self.forget, self.update, self.settle,
             self.say, self.wait)
        )  # fmt: skip
        change(writer, rng)

    def remember(self, memory: Memory, rng: random.Random) -> None:
        first, second = rng.choices(WORDS, k=2)
        expires = (
            self.clock.now + timedelta(days=rng.randint(1, 40)) if rng.random() < 0.2 else None
        )
        done = memory.remember(
            f"The {first} is kept at the {second}.",
            type=rng.choice(("episodic", "semantic", "procedural")),
            path=f"place.{first}" if rng.random() < 0.3 else None,
            category="moved" if rng.random() < 0.4 else None,
            expires_at=expires,
        )
        self.ids.append(done.id)

    def restate(self, memory: Memory, rng: random.Random) -> None:
        for record in memory.list(limit=3).items[-1:]:
            memory.remember(record.text, type=record.type, path=record.path)

    def forget(self, memory: Memory, rng: random.Random) -> None:
        if self.ids:
            memory.forget(self.ids.pop(rng.randrange(len(self.ids))), soft=rng.random() < 0.5)

    def update(self, memory: Memory, rng: random.Random) -> None:
        for record in memory.list(limit=4).items[-1:]:
            memory.update(record.id, category=rng.choice(("moved", "stays")))

    def settle(self, memory: Memory, rng: random.Random) -> None:
        for pair in memory.contradictions(limit=1):
            verdict: Verdict = rng.choice(("replaces", "both_hold", "wrong"))
            memory.settle_contradiction(pair.newer.id, pair.older.id, verdict)

    def say(self, memory: Memory, rng: random.Random) -> None:
        memory.conversations.append_user("chat", f"I moved the {rng.choice(WORDS)} today.")

    def wait(self, memory: Memory, rng: random.Random) -> None:
        self.clock.now += timedelta(hours=rng.choice((1, 30, 500)))

    def answers(self, memory: Memory, asked: list[tuple[str, dict[str, Any]]]) -> list[object]:
        found: list[object] = []
        for question, choice in asked:
            found.append(memory.recall(question, **choice))
            found.append(memory.search(question, top_k=choice.get("top_k", 5)))
            found.append(memory.recall_conversation("chat", question))
        return found


@pytest.fixture
def empty(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    return lambda: tmp_path_factory.mktemp("repeated")


@pytest.mark.promise("recall.repeated")
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 100_000))
def test_a_repeated_question_has_the_answer_of_a_home_opened_anew(
    empty: Callable[[], Path], seed: int
) -> None:
    """Hits with their scores, marks, notices and confidence are equal at every clock, after every
    change by this process or another."""
    rng = random.Random(seed)
    with ExitStack() as stack:
        home = TwoProcesses(empty(), stack)
        for _ in range(6):
            home.remember(home.asked, rng)
        pairs = [(rng.choice(QUESTIONS), rng.choice(CHOICES)) for _ in range(3)]
        for _ in range(5):
            home.answers(home.asked, pairs)
            home.step(rng)
            if rng.random() < 0.5:
                home.wait(home.asked, rng)
            if rng.random() < 0.5:
                home.answers(home.asked, pairs)
            # What is linked behind the change counts from then on.
            home.asked.ready()
            again = home.answers(home.asked, pairs)
            with home.opened() as anew:
                assert again == home.answers(anew, pairs)
            assert again == home.answers(home.asked, pairs)


@pytest.mark.promise("recall.repeated")
@pytest.mark.parametrize("ask", ["recall", "search"])
def test_a_question_asked_again_reads_no_record_until_something_changes(
    tmp_path: Path, ask: str
) -> None:
    """In either spelling, once each was asked: texts changed behind the home's back stay unseen."""
    rng = random.Random(3)
    with Memory.open(tmp_path, embedder="hashing", clock=Clock()) as memory:
        memory.remember_many(
            [
                NewMemory(f"Fact {at}: the {rng.choice(WORDS)} is near the {rng.choice(WORDS)}.")
                for at in range(200)
            ]
        )
        memory.ready()
        question = getattr(memory, ask)
        spellings = ("where is the zebra", "Where  is the zebra?")
        first = [question(spelling, top_k=5) for spelling in spellings]
        assert all(len(answer.hits) == 5 for answer in first)
        # In a program of its own: closing the file here would release this one's locks on it.
        change = "UPDATE record SET text = 'zebra ' || text"
        subprocess.run(
            [sys.executable, "-c", OUTSIDE, str(tmp_path / "anaphora.db"), change], check=True
        )
        assert [question(spelling, top_k=5) for spelling in spellings] == first
        memory.remember("The kettle is in the shed.")
        assert all(hit.text.startswith("zebra ") for hit in question(spellings[0], top_k=5).hits)
