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


def test_a_new_sidecar_is_empty(truth: Database) -> None:
    """A sidecar that nobody wrote to has version 0 and no notes."""
    sidecar = Sidecar(truth, "default")
    assert sidecar.version() == 0
    assert sidecar.turn_notes("c") == {}
    assert sidecar.known("chatgpt", "chat") == {}
    assert sidecar.conversation_notes().get("c") is None
    assert sidecar.conversation_notes() == {}
    assert sidecar.changed_since(0) == frozenset()


def test_notes_come_back_by_index(truth: Database) -> None:
    """Notes are given by their turn's index, in order, from the asked index on."""
    sidecar = Sidecar(truth, "default")
    notes = [imported(index) for index in range(12)]
    sidecar.note_turns(reversed(notes))
    assert list(sidecar.turn_notes("c").items()) == list(enumerate(notes))
    assert list(sidecar.turn_notes("c", 10)) == [10, 11]


def test_notes_survive_reopening(truth: Database, open_again: Callable[[], Database]) -> None:
    """What was noted is there for the next program that opens the same truth."""
    Sidecar(truth, "default").note_turns([imported(0)])
    truth.close()
    assert Sidecar(open_again(), "default").turn_notes("c") == {0: imported(0)}


def test_a_note_is_replaced(truth: Database) -> None:
    """A second note for a turn takes the place of the first, within one call as well."""
    sidecar = Sidecar(truth, "default")
    sidecar.note_turns([imported(0)])
    sidecar.note_turns([TurnNote("c", 0, "first"), TurnNote("c", 0, "second", "Grace")])
    assert sidecar.turn_notes("c") == {0: TurnNote("c", 0, "second", "Grace")}
    assert sidecar.known("chatgpt", "chat") == {}


def test_known_messages_of_a_chat(truth: Database) -> None:
    """A chat's messages are known by their keys, whatever thread they lie in."""
    sidecar = Sidecar(truth, "default")
    other = TurnNote("c", 5, "h", None, "chatgpt", "other chat", "m0")
    sidecar.note_turns([imported(0), imported(3, "branch", "m3"), other])
    assert sidecar.known("chatgpt", "chat") == {"m0": imported(0), "m3": imported(3, "branch")}
    assert sidecar.known("chatgpt", "other chat") == {"m0": other}
    assert sidecar.known("claude", "chat") == {}


def test_forgetting_a_turn_keeps_its_identity(truth: Database) -> None:
    """A forgotten turn loses speaker and hash, and its message stays known as forgotten."""
    sidecar = Sidecar(truth, "default")
    sidecar.note_turns([imported(0), imported(1)])
    assert sidecar.forget("c", 1) == 1
    gone = TurnNote("c", 1, "", None, "chatgpt", "chat", "m1", forgotten=True)
    assert sidecar.turn_notes("c") == {0: imported(0), 1: gone}
    assert sidecar.known("chatgpt", "chat") == {"m0": imported(0), "m1": gone}


def test_forgetting_a_conversation(truth: Database) -> None:
    """Forgetting without an index forgets every turn of that conversation and of no other."""
    sidecar = Sidecar(truth, "default")
    sidecar.note_turns([imported(0), imported(1), TurnNote("c", 2, "h", "Ada"), imported(2, "d")])
    assert sidecar.forget("c") == 3
    assert all(note.forgotten for note in sidecar.turn_notes("c").values())
    assert {note.speaker for note in sidecar.turn_notes("c").values()} == {None}
    assert sidecar.turn_notes("d") == {2: imported(2, "d")}
    assert sidecar.forget("c") == 0


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


def test_conversation_notes(truth: Database) -> None:
    """Where a conversation came from is kept, replaced, and outlives its forgotten turns."""
    sidecar = Sidecar(truth, "default")
    main = ConversationNote("c", "chatgpt", "chat")
    branch = ConversationNote("c-2", "chatgpt", "chat", branch_of="c", branch_at=7)
    sidecar.note_conversation(ConversationNote("c"))
    sidecar.note_conversation(main)
    sidecar.note_conversation(branch)
    sidecar.forget("c")
    assert sidecar.conversation_notes().get("c") == main
    assert sidecar.conversation_notes() == {"c": main, "c-2": branch}


def test_namespaces_are_isolated(truth: Database) -> None:
    """Nothing noted, forgotten or counted in one namespace shows in another."""
    mine, yours = Sidecar(truth, "mine"), Sidecar(truth, "yours")
    mine.note_turns([imported(0)])
    mine.note_conversation(ConversationNote("c", "chatgpt", "chat"))
    assert yours.version() == 0
    assert yours.turn_notes("c") == {}
    assert yours.known("chatgpt", "chat") == {}
    assert yours.conversation_notes() == {}
    yours.note_turns([imported(0)])
    assert yours.forget("c") == 1
    assert mine.turn_notes("c") == {0: imported(0)}
    assert not mine.known("chatgpt", "chat")["m0"].forgotten


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


def test_long_keys_are_kept(truth: Database) -> None:
    """Keys longer than a database's index entries may be are kept and found all the same."""
    sidecar = Sidecar(truth, "default")
    # Random digits: PostgreSQL would compress a plain repetition and hide the limit.
    long = "".join(f"{(i * 2654435761) % 2**32:08x}" for i in range(2_000))
    note = TurnNote("c", 0, "h", long, "chatgpt", "chat" + long, "message" + long)
    sidecar.note_turns([note])
    assert sidecar.known("chatgpt", "chat" + long) == {"message" + long: note}
    sidecar.forget("c")
    assert sidecar.known("chatgpt", "chat" + long)["message" + long].forgotten


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
