"""`doctor --repair` mends what is derived or left over, says so, and changes no word."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from anaphora import Check, Memory, Vectors
from anaphora.errors import EmbeddingError
from anaphora.testing import WordHashingEmbedder

from .conftest import OpenHome, memories, threads


def mended(memory: Memory) -> dict[str, Check]:
    """What a repair says that it did. Behind it stands what was found afterwards."""
    found: dict[str, Check] = {}
    for check in memory.doctor(repair=True):
        found.setdefault(check.name, check)
    return found


def test_a_well_home_stays_as_it_is(filled: Memory) -> None:
    """Where nothing is wrong everything is reported as well, and no word changes."""
    before = memories(filled), threads(filled)
    found = mended(filled)
    assert all(check.ok for check in found.values()), found
    assert (memories(filled), threads(filled)) == before
    assert "0 removed" in found["temporary files"].detail
    assert "0 notes reattached" in found["notes"].detail


@pytest.mark.promise("care.repair")
def test_what_interrupted_writes_left_is_removed(filled: Memory, tmp_path: Path) -> None:
    """Temporary files and unfinished restores beside the home go; all else stays."""
    folder = filled.home / "conversations"
    (folder / f".{'a' * 24}.1.ab.tmp").write_bytes(b"unfinished")
    stage = tmp_path / ".home.unfinished-0123456789ab"
    stage.mkdir()
    (stage / "sealing.lock").touch()
    (stage / "anaphora.db").write_bytes(b"half")
    (tmp_path / ".home.unfinished-else").mkdir()
    found = mended(filled)
    assert "2 removed" in found["temporary files"].detail
    assert not stage.exists()
    assert (tmp_path / ".home.unfinished-else").exists()
    assert not list(folder.glob(".*.tmp"))


@pytest.mark.promise("care.repair")
def test_a_damaged_index_is_made_again(filled: Memory, open_home: OpenHome) -> None:
    """After a repair the index holds every turn, with its vector."""
    assert filled.ready(60)
    filled.close()
    files = [place for place in (filled.home / "index" / "default").rglob("*") if place.is_file()]
    assert files
    for place in files:
        if place.suffix != ".lock":
            place.write_bytes(os.urandom(200))
    again = open_home()
    assert mended(again)["index"].ok
    seen = again.stats()
    assert (seen.turns, seen.indexed, seen.vectors, seen.pending) == (3, 3, 3, 0)
    checks = {check.name: check for check in again.doctor()}
    assert checks["index"].ok, checks


def test_notes_go_back_to_their_turns(filled: Memory) -> None:
    """When another program has put a turn before others, their speakers follow them."""
    store = filled.conversations
    path = filled.home / "conversations" / "trip.json"
    thread = json.loads(path.read_bytes())
    first = thread["turns"][0]
    thread["turns"].insert(0, {"role": "user", "text": "Put in front.", "ts": first["ts"]})
    path.write_text(json.dumps(thread), "utf-8")
    assert [turn.speaker for turn in store.recent("trip")] == [None, None, None]
    found = mended(filled)
    assert "2 notes reattached" in found["notes"].detail
    again = store.recent("trip")
    assert [turn.speaker for turn in again] == [None, "Ann", "Ann"]
    assert [turn.text for turn in again] == [turn["text"] for turn in thread["turns"]]
    assert "0 notes reattached" in mended(filled)["notes"].detail


def test_damaged_truth_is_told_and_left_alone(filled: Memory) -> None:
    """A torn database is a finding that does not keep the rest from being mended."""
    filled.close()
    truth = filled.home / "anaphora.db"
    data = bytearray(truth.read_bytes())
    data[4096 * 10 : 4096 * 12] = os.urandom(4096 * 2)
    truth.write_bytes(data)
    with Memory.open(filled.home, embedder="hashing", warm=False) as torn:
        found = mended(torn)
    assert not found["truth"].ok
    assert truth.read_bytes() == bytes(data)


class Refusing(WordHashingEmbedder):
    """An embedder that cannot embed texts with one word in them."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        if any(self.word in text for text in texts):
            raise EmbeddingError("refused")
        return super().embed(texts)


def test_vectors_that_are_missing_are_asked_for(tmp_path: Path) -> None:
    """Memories without vectors are embedded by who knows how, and what fails is told."""
    with Memory.open(tmp_path / "home", embedder=Refusing("")) as broken:
        for text in ("one", "two", "three", "poison"):
            broken.remember(text)
    with Memory.open(tmp_path / "home", embedder=Refusing("poison")) as memory:
        found = memory.doctor(repair=True)
    assert Check("vectors", ok=False, detail="3 memories embedded, 1 cannot be") in found
