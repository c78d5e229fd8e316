"""The conversation store: one file a thread, as Go writes it, durable and never fatal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.conformance.desk import Desk
from tests.conformance.table import Seed, refusal

import anaphora
from anaphora import ConversationStore
from anaphora.errors import InvalidId, StoreError

SEED = Seed("001", "conversation store")
row = SEED.row


def folder_of(desk: Desk) -> Path:
    """Where the threads of a bare store lie."""
    return desk.folder / "threads"


def store(desk: Desk, **options: Any) -> ConversationStore:
    """A bare store with the desk's clock."""
    return ConversationStore(folder_of(desk), **{"clock": desk.clock, **options})


@row("16", "a pure side channel: nothing is written beside the folder of conversations")
def side_channel(desk: Desk) -> str:
    store(desk).append_user("a", "x")
    assert [path.name for path in desk.folder.iterdir()] == ["threads"]
    return "only the folder of threads"


@row(
    "20 inside a Memory",
    "the same",
    on_purpose="docs/seeds.md#a-memory-does-not-swallow-errors-of-the-disk",
)
def strict(desk: Desk) -> str:
    desk.home.mkdir()
    (desk.home / "conversations").write_text("a file in the way")
    said = refusal(StoreError, lambda: desk.memory().conversations.append_user("a", "x"))
    return f"a Memory's conversations are strict: {said}"


@row(
    "20 id",
    "a blank conversation id is ignored",
    on_purpose="docs/seeds.md#a-blank-id-is-refused",
)
def blank_id(desk: Desk) -> str:
    assert not ConversationStore("").append_user("", "x")
    return refusal(InvalidId, lambda: store(desk).append_user("", "x"))


@row("33", "role is user or assistant; others are kept as they are, a blank one is refused")
def roles(desk: Desk) -> str:
    kept = store(desk)
    assert kept.append("a", "system", "x")
    assert kept.recent("a")[0].role == "system"
    refusal(anaphora.errors.InvalidTurn, lambda: kept.append("a", "", "x"))
    refusal(anaphora.errors.InvalidTurn, lambda: kept.append("a", " ", "x"))
    return "system kept; blank: InvalidTurn"


@row(
    "55",
    "AppendAssistant(id, intentID, text)",
    on_purpose="docs/seeds.md#the-intent-by-keyword",
)
def append_assistant(desk: Desk) -> str:
    kept = store(desk)
    refusal(TypeError, lambda: kept.append_assistant("a", "i1", "the text"))  # type: ignore[call-arg]
    assert kept.append_assistant("a", "x", intent_id="i")
    assert kept.recent("a")[0].intent_id == "i"
    return "the text second, the intent by keyword; the seed's order is refused"
