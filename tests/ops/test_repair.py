"""`doctor --repair` mends what is derived or left over, says so, and changes no word."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from anaphora import ops
from anaphora.container.home import Container
from anaphora.ingest.memories import FillResult
from anaphora.store.threads.gojson import decode, encode
from anaphora.values.conversations import Check, Thread

from .conftest import HomeWriter, OpenParts, memories, threads

pytestmark = pytest.mark.internal

Keeping = Callable[[Container], HomeWriter]


def mended(parts: Container) -> dict[str, Check]:
    return {check.name: check for check in ops.repair(parts.namespace("default"))}


def test_a_well_home_stays_as_it_is(filled: Container) -> None:
    """Where nothing is wrong everything is reported as well, and no word changes."""
    before = memories(filled), threads(filled)
    found = mended(filled)
    assert all(check.ok for check in found.values()), found
    assert (memories(filled), threads(filled)) == before
    assert "0 removed" in found["temporary files"].detail
    assert "0 notes reattached" in found["notes"].detail


@pytest.mark.promise("care.repair")
def test_what_interrupted_writes_left_is_removed(filled: Container, tmp_path: Path) -> None:
    """Temporary files and unfinished restores beside the home go; all else stays."""
    folder = filled.home.conversations
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
def test_a_damaged_index_is_made_again(filled: Container, open_parts: OpenParts) -> None:
    """After a repair the index holds every turn, with its vector."""
    filled.namespace("default").turns.sync(embed="all")
    filled.close()
    for place in (filled.home.root / "index" / "default").rglob("*"):
        if place.is_file() and place.suffix != ".lock":
            place.write_bytes(os.urandom(200))
    again = open_parts()
    found = mended(again)
    assert found["index"].ok, found
    seen = again.namespace("default").turns.check()
    assert (seen.turns, seen.pending, seen.problems) == (3, 0, ())


def test_notes_go_back_to_their_turns(filled: Container, keeping: Keeping) -> None:
    """When another program has put a turn before others, their speakers follow them."""
    store = filled.namespace("default").conversations
    path = store.path("trip")
    thread = decode(path.read_bytes())
    first = thread.turns[0]
    moved = Thread(
        thread.conversation_id,
        (type(first)("user", "Put in front.", first.ts, first.ts_text), *thread.turns),
        thread.updated,
        thread.updated_text,
    )
    path.write_bytes(encode(moved))
    assert [turn.speaker for turn in store.recent("trip")] == [None, None, None]
    found = mended(filled)
    assert "2 notes reattached" in found["notes"].detail
    again = filled.namespace("default").conversations.recent("trip")
    assert [turn.speaker for turn in again] == [None, "Ann", "Ann"]
    assert [turn.text for turn in again] == [turn.text for turn in moved.turns]
    assert "0 notes reattached" in mended(filled)["notes"].detail


def test_damaged_truth_is_told_and_left_alone(filled: Container, open_parts: OpenParts) -> None:
    """A torn database is a finding that does not keep the rest from being mended."""
    assert filled.truth.path is not None
    filled.truth.close()
    data = bytearray(filled.truth.path.read_bytes())
    data[4096 * 10 : 4096 * 12] = os.urandom(4096 * 2)
    filled.truth.path.write_bytes(data)
    found = mended(open_parts())
    assert not found["truth"].ok
    assert filled.truth.path.read_bytes() == bytes(data)


def test_vectors_that_are_missing_are_asked_for(
    filled: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memories without vectors are embedded by who knows how, and what fails is told."""

    services = filled.namespace("default")
    monkeypatch.setattr(services.remember, "fill_vectors", lambda: FillResult(3, 1))
    found = ops.repair(services)
    assert Check("vectors", ok=False, detail="3 memories embedded, 1 cannot be") in found
