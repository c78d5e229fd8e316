"""After forgetting, what still holds the words that matter is named, wherever and however."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from anaphora import Memory, NewTurn

PASSPORT = "The passport number of Mara is X1234567."


@pytest.fixture(params=[False, True], ids=["clear", "sealed"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(
        tmp_path / "home", embedder="hashing", encrypt="file" if request.param else None
    ) as opened:
        yield opened


def places(memory: Memory, text: str) -> set[tuple[str, str, int | None]]:
    done = memory.remember(text)
    gone = memory.forget(done.id)
    assert gone.count == 1
    return {(one.kind, one.id, one.index) for one in gone.surviving}


HELD = {
    PASSPORT: ["My passport number is X1234567.", "it is x-123 4567", "X 1234567!"],
    "Call Noor Haddad on +49 170 7654328.": [
        "ring 0170/7654328",
        "0049 (170) 765-43-28",
        "01707654328 at six",
        "Haddad, Noor said no",
    ],
    "Write to mara.novak@example.org": ["MARA.NOVAK@example.org, please"],
    "She lives in Hauptstraße 12.": ["the house at Hauptstraße 12"],
    "Staging listens on port 5433.": ["5433 it is"],
    "The account is DE89 3704 0044 0532 0130 00.": ["de89370400440532013000"],
    "The camera has serial 77-4812-Q9.": ["engraved: 774812Q9"],
}
NOT_HELD = [
    "Mara likes tea in the morning.",
    "The passport office is closed.",
    "X12345678 is another one",
    "port 15433",
    "0170 7654329",
    "Noor was there, and Haddad's shop",
    "the year 2026",
    "mara.novak@example.com",
]


@pytest.mark.promise("forget.marks")
def test_turns_that_hold_what_matters_are_named(memory: Memory) -> None:
    """A number, code, address or name is found however it is written, and nothing else is."""
    turns = [text for some in HELD.values() for text in some]
    memory.conversations.extend("talk", [NewTurn("user", t) for t in (*turns, *NOT_HELD)])
    for text, holding in HELD.items():
        found = {index for kind, _, index in places(memory, text) if kind == "turn"}
        assert found == {turns.index(one) for one in holding}, text


@pytest.mark.promise("forget.marks")
def test_everything_that_is_kept_is_looked_through(memory: Memory, tmp_path: Path) -> None:
    """Memories, their payloads and past values, notes, diary, sections, gaps and traces."""
    memory.deep_recall("how often did X1234567 come up, and when first?")
    memory.conversations.append_user("monday", "My passport number is X 1234567.")
    said = memory.remember("Renew X1234567 in May.").id
    payload = memory.remember("Mara's papers", payload={"papers": ["X1234567"]}).id
    old = memory.remember("x1234567", path="mara.passport").id
    memory.remember("Y7654321", path="mara.passport")
    note = memory.observe("The form asks for X1234567.", kind="note").id
    diary = memory.write_diary("We filled in X1234567.").id
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "form.md").write_text("# Form\n\nThe number X1234567 goes on top.\n")
    memory.index_project(folder)
    found = places(memory, PASSPORT)
    assert ("turn", "monday", 0) in found
    assert {one for kind, one, _ in found if kind == "memory"} == {said, payload, old}
    assert {("observation", note, None), ("diary", diary, None)} <= found
    kinds = {kind for kind, _, _ in found}
    assert kinds >= {"section", "gap", "trace"}
    # A note that is forgotten is looked for in the same way.
    gone = memory.forget(note)
    assert ("turn", "monday") in {(one.kind, one.id) for one in gone.surviving}


@pytest.mark.promise("forget.marks")
def test_what_only_the_payload_of_the_forgotten_held_is_found(memory: Memory) -> None:
    """The number in a forgotten memory's payload is looked for as the one in its words is."""
    memory.conversations.append_user("monday", "it is X1234567")
    done = memory.remember("Mara's papers", payload={"passport": {"number": "X1234567"}})
    (place,) = memory.forget(done.id).surviving
    assert (place.kind, place.id, place.index) == ("turn", "monday", 0)


@pytest.mark.promise("forget.marks")
def test_many_survivors_are_counted_not_listed(memory: Memory) -> None:
    """At most a hundred are named, and the rest is a number; forgetting by filter does the same."""
    memory.conversations.extend("log", [NewTurn("user", f"{n}: X1234567") for n in range(130)])
    memory.remember(PASSPORT, tags=("private",))
    gone = memory.forget(filters={"tags": {"contains": "private"}})
    assert (gone.count, len(gone.surviving), gone.more) == (1, 100, 30)


@pytest.mark.promise("forget.marks")
def test_the_index_is_as_good_when_it_is_made_again(tmp_path: Path) -> None:
    """What survives is found from the bulk on disk, from the tail, and after the index is lost."""
    home = tmp_path / "home"
    with Memory.open(home, embedder="hashing") as memory:
        memory.conversations.extend("log", [NewTurn("user", f"line {n} of it") for n in range(600)])
        memory.conversations.append_user("monday", "x-123 4567 it is")
        memory.ready()
    for lost in (False, True):
        if lost:
            shutil.rmtree(home / "index")
        with Memory.open(home, embedder="hashing") as memory:
            assert places(memory, PASSPORT) == {("turn", "monday", 0)}
