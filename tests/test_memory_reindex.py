"""Moving a home to another embedder: every namespace goes along, however often it is broken off."""

from __future__ import annotations

from pathlib import Path

import pytest

from anaphora import Memory

NAMES = ("default", "ada", "bob")
HASHING = "hashing"


def _fill(memory: Memory, count: int) -> None:
    for name in NAMES:
        view = memory.scoped(name)
        for number in range(count):
            view.remember(f"{name} keeps box {number} in room {number * 7}")
        view.conversations.append_user("talk", f"{name} asked where the boxes are")
        # What was remembered before the model was there has no vector yet.
        view.ready()


class _BrokenOff(Exception):
    """The user had enough."""


@pytest.mark.promise("embed.moving")
def test_every_namespace_moves_however_often_it_is_broken_off(tmp_path: Path) -> None:
    """A move that is broken off in each namespace ends with vectors for all of them, made once."""
    with Memory.open(tmp_path, embedder="minilm") as memory:
        _fill(memory, 3)
    seen: list[str] = []
    with Memory.open(tmp_path) as memory:
        old = memory.stats().embedder

        def stop(label: str, done: int, total: int) -> None:
            seen.append(label)
            if label.endswith("memories") and done == total:
                raise _BrokenOff

        for _ in NAMES:
            with pytest.raises(_BrokenOff):
                memory.scoped("ada").reindex(HASHING, progress=stop)
            # Not before the last has moved does the home open with another embedder.
            with Memory.open(tmp_path) as other:
                assert other.stats().embedder == old
        done = memory.scoped("ada").reindex(HASHING)
        assert (done.left, done.namespaces, done.memories, done.turns) == (0, 3, 0, 0)
        assert {label.split(": ")[0] for label in seen} == set(NAMES)
        assert seen[0].startswith("ada")
    with Memory.open(tmp_path) as moved:
        assert moved.stats().embedder == done.embedder != old
        for name in NAMES:
            view = moved.scoped(name)
            assert view.stats().pending == 0
            found = view.recall(f"{name} keeps box 2", mode="vector", top_k=1)
            assert found.degraded == ()
            assert found[0].text == f"{name} keeps box 2 in room 14"
            talk = view.recall_conversation(None, "where are the boxes", mode="vector", top_k=1)
            assert talk.degraded == ()
            again = view.reindex()
            assert (again.memories, again.turns, again.left) == (0, 0, 0)
        # The vectors of before were kept in every namespace: the way back makes none.
        back = moved.reindex("minilm")
        assert (back.embedder, back.namespaces, back.memories, back.left) == (old, 3, 0, 0)


def test_filling_what_is_missing_is_for_one_namespace(tmp_path: Path) -> None:
    """Without another embedder only the view's own namespace is gone through."""
    with Memory.open(tmp_path, embedder=HASHING) as memory:
        _fill(memory, 1)
        done = memory.scoped("bob").reindex()
        assert (done.namespaces, done.left) == (1, 0)
