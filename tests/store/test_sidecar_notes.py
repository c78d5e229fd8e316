"""What is noted beside threads is given back, replaced and forgotten as promised."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anaphora.errors import StoreError
from anaphora.store.db.engine import Database
from anaphora.store.threads.sidecar import ConversationNote, Sidecar, TurnNote

ANY_TEXT = st.text(alphabet=st.characters(), max_size=20)


def imported(index: int, conversation: str = "c", message: str | None = None) -> TurnNote:
    key = message or f"m{index}"
    return TurnNote(conversation, index, f"hash{index}", "Ada", "chatgpt", "chat", key)


def test_a_forgotten_message_stays_forgotten_when_its_place_is_taken(truth: Database) -> None:
    """A new turn at the place of a forgotten one does not let an import bring the old one back."""
    sidecar = Sidecar(truth, "default")
    sidecar.note_turns([imported(0)])
    sidecar.forget("c")
    by_hand = TurnNote("c", 0, "new", "Grace")
    sidecar.note_turns([by_hand])
    assert sidecar.turn_notes("c") == {0: by_hand}
    assert sidecar.known("chatgpt", "chat")["m0"].forgotten


def test_a_message_noted_again_is_no_longer_forgotten(truth: Database) -> None:
    """Importing a forgotten message on purpose makes it known as living."""
    sidecar = Sidecar(truth, "default")
    sidecar.note_turns([imported(0)])
    sidecar.forget("c")
    sidecar.note_turns([imported(4, message="m0")])
    assert sidecar.known("chatgpt", "chat") == {"m0": imported(4, message="m0")}
    assert list(sidecar.turn_notes("c")) == [4]


def test_a_living_copy_outlives_a_forgotten_one(truth: Database) -> None:
    """A message that lies in a branch, too, is forgotten only when both copies are."""
    sidecar = Sidecar(truth, "default")
    sidecar.note_turns([imported(0), imported(0, "branch")])
    sidecar.forget("c", 0)
    assert sidecar.known("chatgpt", "chat") == {"m0": imported(0, "branch")}
    sidecar.forget("branch", 0)
    assert sidecar.known("chatgpt", "chat")["m0"].forgotten


def test_the_version_tells_what_changed(truth: Database) -> None:
    """Every change moves the version and names its conversation; what changes nothing does not."""
    sidecar = Sidecar(truth, "default")
    steps: list[tuple[str, Callable[[], object]]] = [
        ("a", lambda: sidecar.note_turns([imported(0, "a")])),
        ("b", lambda: sidecar.note_conversation(ConversationNote("b"))),
        ("d", lambda: sidecar.note_turns([TurnNote("d", 0, "h", "Ada")])),
        ("a", lambda: sidecar.forget("a")),
        ("d", lambda: sidecar.forget("d", 0)),
    ]
    for conversation, change in steps:
        before = sidecar.version()
        change()
        assert sidecar.version() > before
        assert sidecar.changed_since(before) == {conversation}
    before = sidecar.version()
    sidecar.note_turns([])
    sidecar.forget("a")
    sidecar.forget("nowhere", 3)
    assert sidecar.version() == before
    assert sidecar.changed_since(before) == frozenset()


def test_a_failed_write_leaves_nothing(truth: Database) -> None:
    """When one note of a call cannot be written, none of them is, and no number is used up."""
    sidecar = Sidecar(truth, "default")
    sidecar.note_turns([imported(0)])
    before = sidecar.version()
    impossible = TurnNote("c", 2, None)  # type: ignore[arg-type]
    with pytest.raises(StoreError):
        sidecar.note_turns([imported(1), impossible])
    assert sidecar.turn_notes("c") == {0: imported(0)}
    assert sidecar.version() == before


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(texts=st.lists(ANY_TEXT, min_size=7, max_size=7))
def test_any_text_comes_back(truth: Database, texts: list[str]) -> None:
    """Every string, NUL and lone surrogates too, is kept exactly and found again by itself."""
    namespace, conversation, turn_hash, speaker, source, chat, message = texts
    sidecar = Sidecar(truth, namespace)
    note = TurnNote(conversation, 0, turn_hash, speaker, source, chat, message)
    sidecar.note_turns([note])
    assert sidecar.turn_notes(conversation)[0] == note
    assert sidecar.known(source, chat)[message] == note
    place = ConversationNote(conversation, source, chat, branch_of=speaker, branch_at=3)
    sidecar.note_conversation(place)
    assert sidecar.conversation_notes().get(conversation) == place


@pytest.mark.promise("truth.round_trip")
def test_every_naughty_string_comes_back(truth: Database, naughty: list[str]) -> None:
    """Texts that trouble programs are kept exactly, as speakers and as keys."""
    strings = naughty
    sidecar = Sidecar(truth, "default")
    notes = [TurnNote(s, i, "h", s, "sharegpt", "chat", s) for i, s in enumerate(strings)]
    sidecar.note_turns(notes)
    for note in notes:
        assert sidecar.turn_notes(note.conversation_id)[note.index] == note
    assert set(sidecar.known("sharegpt", "chat")) == set(strings)
