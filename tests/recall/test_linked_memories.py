"""Hits name the memories that they are linked with, whoever wrote them and whenever they went."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import run_command

from anaphora import Memory

POND = "Heron feeds at the pond."
AGAIN = "Heron feeds at the pond"
OLD = "Heron feeds at the old pond."
LATER = "The old heron feeds at the pond again."

pytestmark = pytest.mark.promise("remember.links")


def opened(home: Path, **options: object) -> Memory:
    return Memory.open(home, embedder="hashing", **options)  # type: ignore[arg-type]


def linked(memory: Memory) -> dict[str, tuple[list[str], list[str]]]:
    """By the text of each hit: what is related to it, and what says the same."""
    hits = memory.recall("where does the heron feed?", top_k=9, min_confidence=0).hits
    text_of = {record.id: record.text for record in memory.list(limit=99)}
    return {
        hit.text: ([text_of[i] for i in hit.related], [text_of[i] for i in hit.same_as])
        for hit in hits
    }


@pytest.mark.parametrize("encrypt", [None, "file"])
def test_the_writer_and_a_later_program_name_the_same_links(
    tmp_path: Path, encrypt: object
) -> None:
    """Links are there at once, the closest first, and again when the home is opened anew."""
    expected = {
        POND: ([OLD], [AGAIN]),
        OLD: ([POND, AGAIN, LATER], []),
        LATER: ([OLD], []),
    }
    with opened(tmp_path, encrypt=encrypt) as memory:
        assert linked(memory) == {}
        for text in (POND, OLD, LATER, AGAIN):
            memory.remember(text)
        assert linked(memory) == expected
        with opened(tmp_path) as other:
            assert linked(other) == expected
    with opened(tmp_path) as memory:
        assert linked(memory) == expected


def test_links_of_another_program_are_in_the_next_answer(tmp_path: Path) -> None:
    """What another process remembers is linked with the hits of one that has the home open."""
    environ = {"ANAPHORA_HOME": str(tmp_path), "ANAPHORA_EMBEDDER": "hashing"}
    with opened(tmp_path) as memory:
        memory.remember_many([POND, LATER])
        assert linked(memory) == {POND: ([], []), LATER: ([], [])}
        assert run_command("remember", OLD, environ=environ).returncode == 0
        assert linked(memory) == {POND: ([OLD], []), OLD: ([POND, LATER], []), LATER: ([OLD], [])}


@pytest.mark.parametrize("soft", [True, False])
def test_a_forgotten_memory_is_linked_with_nothing(tmp_path: Path, soft: bool) -> None:
    """It leaves the hits of every program at once; one that is only hidden comes back with them."""
    with opened(tmp_path) as memory, opened(tmp_path) as other:
        old = memory.remember_many([POND, LATER, OLD])[-1].id
        assert linked(memory)[POND] == linked(other)[POND] == ([OLD], [])
        memory.forget(old, soft=soft)
        assert linked(memory) == linked(other) == {POND: ([], []), LATER: ([], [])}
        if soft:
            memory.undo_forget(old)
        else:
            memory.remember(OLD)
        assert linked(memory)[OLD] == linked(other)[OLD] == ([POND, LATER], [])


def test_a_restored_home_has_the_links_of_its_backup(tmp_path: Path) -> None:
    """Those that were made after the backup are not in it, though the home's own index has them."""
    with opened(tmp_path / "home") as memory:
        memory.remember_many([POND, LATER])
        memory.backup(tmp_path / "backup.zip")
        memory.remember(OLD)
        assert linked(memory)[POND] == ([OLD], [])
    Memory.restore(tmp_path / "backup.zip", tmp_path / "again")
    with opened(tmp_path / "again") as memory:
        assert linked(memory) == {POND: ([], []), LATER: ([], [])}
