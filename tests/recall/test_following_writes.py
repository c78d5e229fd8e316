"""What a program has written itself is in its next answer, as it is in everybody's."""

from __future__ import annotations

import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from anaphora import Memory, NewMemory

TEXTS = (
    "Ada lives in Vienna.",
    "Ada moved to Graz.",
    "The staging database listens on port 5433.",
    "Port 5434 is what the staging database listens on.",
    "Tea, never coffee.",
    "ERR_4711 means that the disk is full.",
)
QUESTIONS = ("where does Ada live?", "which port has the staging database?", "ERR_4711", "tea")
PATHS = (None, None, "user.city", "staging.port")


class _Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=7)
        return self.now


class _Histories:
    """Two programs write to one home and ask, in any order."""

    def __init__(self, home: Path, seed: int, embedder: str) -> None:
        self.home, self.rng, self.embedder = home, random.Random(seed), embedder
        self.clock = _Clock()
        self.programs = [self.open() for _ in range(2)]

    def open(self) -> Memory:
        memory = Memory.open(self.home, embedder=self.embedder, clock=self.clock)
        memory.ready()
        return memory

    def go_on(self) -> None:
        memory, rng = self.rng.choice(self.programs), self.rng
        act = rng.choice([self.say, self.say, self.say_many, self.change, self.forget, self.ask])
        act(memory)

    def say(self, memory: Memory) -> None:
        memory.remember(self.rng.choice(TEXTS), path=self.rng.choice(PATHS))

    def say_many(self, memory: Memory) -> None:
        texts = self.rng.choices(TEXTS, k=self.rng.randint(1, 5))
        some = [NewMemory(text, dedupe=self.rng.random() < 0.8) for text in texts]
        memory.remember_many(some)

    def change(self, memory: Memory) -> None:
        standing = [record.id for record in memory.list(limit=200)]
        if standing:
            memory.update(self.rng.choice(standing), text=self.rng.choice(TEXTS))

    def forget(self, memory: Memory) -> None:
        there = [record.id for record in memory.list(limit=200)]
        if there:
            memory.forget(self.rng.choice(there), soft=self.rng.random() < 0.5)

    def ask(self, memory: Memory) -> None:
        memory.recall(self.rng.choice(QUESTIONS))


@pytest.mark.promise("remember.follows")
@pytest.mark.parametrize("seed", range(6))
def test_who_wrote_answers_as_who_reads(tmp_path: Path, seed: int) -> None:
    """Whoever wrote and whoever comes later give one answer."""
    histories = _Histories(tmp_path / "home", seed, "hashing")
    for step in range(40):
        histories.go_on()
        if step % 8 == 7:
            at = histories.clock.now
            fresh = histories.open()
            for question in QUESTIONS:
                answers = [
                    list(one.recall(question, top_k=50, min_score=0.0, as_of=moment))
                    for one in (fresh, *histories.programs)
                    for moment in (at, at - timedelta(hours=3))
                ]
                assert answers[0] == answers[2] == answers[4]
                assert answers[1] == answers[3] == answers[5]
                now = [one.recall(question, top_k=50) for one in (fresh, *histories.programs)]
                assert len({tuple(hit.id for hit in said) for said in now}) == 1
            fresh.close()
    for one in histories.programs:
        one.close()


@pytest.mark.promise("remember.follows")
def test_what_is_written_after_a_restore_has_its_words(tmp_path: Path) -> None:
    """A database that is put back and goes on to the same numbers lacks no word in the index."""
    home, before = tmp_path / "home", tmp_path / "before"

    def written(*animals: str) -> None:
        with Memory.open(home, embedder="hashing") as memory:
            memory.remember_many([f"A {animal} came to stay" for animal in animals])
            memory.recall(animals[0])
            memory.ready()

    written(*(f"goat{number}" for number in range(120)))
    shutil.copytree(home, before)
    # So many that their words are on the disk, and that numbers go on below theirs afterwards.
    written("zebra", *(f"yak{number}" for number in range(120)))
    for place in home.glob("anaphora.db*"):
        place.unlink()
    for place in before.glob("anaphora.db*"):
        shutil.copy(place, home)
    with Memory.open(home, embedder="hashing") as memory:
        memory.remember_many([f"A {animal} came to stay" for animal in ("walrus", "orca", "seal")])
    with Memory.open(home, embedder="hashing") as memory:
        for animal in ("walrus", "orca", "seal"):
            hit = memory.recall(animal, top_k=1, min_confidence=0)[0]
            assert animal in hit.text
            assert hit.factors["words"] == 1.0
        assert not [hit for hit in memory.recall("zebra", min_confidence=0) if "zebra" in hit.text]
