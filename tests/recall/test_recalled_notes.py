"""Notes about projects are memories to a reader: recalled, replaced and forgotten like them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import Clock

from anaphora import Memory
from anaphora.errors import NotFound

ASKED = "what does the queue run on?"


@pytest.fixture(params=[False, True], ids=["clear", "sealed"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with Memory.open(
        tmp_path / "home", clock=clock, encrypt="file" if request.param else False
    ) as opened:
        assert opened.ready(60)
        yield opened


def texts(memory: Memory, question: str = ASKED) -> list[str]:
    return [hit.text for hit in memory.recall(question, top_k=9, min_confidence=0)]


@pytest.mark.promise("project.notes")
def test_a_note_is_recalled_among_memories(memory: Memory, clock: Clock) -> None:
    """One list by one score; a hit of a note says its kind, and its id gets it whole."""
    note = memory.observe("Decided: the queue runs on PostgreSQL, not on Redis.", kind="decision")
    kept = memory.remember("The queue is emptied by four workers.")
    memory.remember("Rafi owns the deploy script.")
    found = memory.recall(ASKED, top_k=9)
    assert [hit.id for hit in found][:2] == [note.id, kept.id]
    assert [hit.type for hit in found][:2] == ["decision", "semantic"]
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert memory.get(note.id).text == note.text
    assert note.id not in [one.id for one in memory.list().items]
    only = memory.recall(ASKED, filters={"type": "decision"})
    assert [hit.id for hit in only] == [note.id]


@pytest.mark.promise("project.notes")
@pytest.mark.parametrize("note_first", [True, False])
def test_a_memory_and_a_note_replace_each_other(
    memory: Memory, clock: Clock, note_first: bool
) -> None:
    """What was told later stands first, and names what it replaced, in the other index too."""
    memory.remember("Rafi owns the deploy script.")
    tells: list[Callable[[str], str]] = [
        lambda text: memory.observe(text).id,
        lambda text: memory.remember(text).id,
    ]
    tell_old, tell_new = tells if note_first else tells[::-1]
    old = tell_old("The staging server listens on port 8080.")
    clock.advance(days=30)
    new = tell_new("The staging server listens on port 9090 now.")
    hits = memory.recall("Which port does the staging server listen on?", top_k=5)
    assert hits[0].id == new
    assert [related.id for related in hits[0].previous] == [old]


@pytest.mark.promise("project.notes")
def test_a_replaced_or_forgotten_note_is_not_recalled(memory: Memory, clock: Clock) -> None:
    """What superseded a note stands in its place; what was forgotten is gone, words and all."""
    old = memory.observe("Decided: the queue runs on Redis.", kind="decision")
    clock.advance(days=2)
    new = memory.observe(
        "Decided: the queue runs on PostgreSQL.", kind="decision", supersedes=old.id
    )
    assert texts(memory) == [new.text]
    rejected = memory.recall(ASKED, explain=True).rejected
    assert [(one.hit.id, one.reason) for one in rejected] == [(old.id, "superseded")]
    memory.forget(new.id)
    assert texts(memory) == []
    with pytest.raises(NotFound):
        memory.get(new.id)


@pytest.mark.promise("project.notes")
def test_notes_of_a_cold_writer_are_found(tmp_path: Path) -> None:
    """A note that was written without a model is found by its words, and then by its meaning."""
    with Memory.open(tmp_path / "home", warm=False) as memory:
        memory.observe("Decided: the queue runs on PostgreSQL.", kind="decision")
        found = memory.recall("queue PostgreSQL", mode="words")
        assert [hit.type for hit in found] == ["decision"]
    with Memory.open(tmp_path / "home") as memory:
        memory.ready(60)
        (hit,) = memory.recall("which database holds the jobs?", min_confidence=0)
        assert hit.factors["meaning"] > 0.2


@pytest.mark.promise("project.notes")
def test_a_diary_entry_is_recalled_like_a_note(memory: Memory) -> None:
    """By recall and by search; its id gets it whole; forgotten, it is gone."""
    entry = memory.write_diary("Moved the queue to PostgreSQL; the retries are still open.")
    assert texts(memory) == [entry.summary]
    hits = memory.search(ASKED, kinds=("note",))
    assert [(hit.kind, hit.id) for hit in hits] == [("note", entry.id)]
    assert memory.resolve_id(entry.id[-12:]) == entry.id
    assert memory.get(entry.id).text == entry.summary
    memory.forget(entry.id)
    assert not memory.search(ASKED, kinds=("note",), min_confidence=0)
