"""A home full of words that must not be read where it is sealed, and what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.exported import exported

from anaphora import ConversationStore, ImportedConversation, ImportedTurn, Memory, NewTurn
from anaphora.errors import CorruptThread

SECRETS = ("heron", "Persephone", "chat-of-ada", "message-of-ada", "ada-and-bob", "nobody's file")


def opened(home: Path, encrypt: Any = None) -> Memory:
    return Memory.open(home, encrypt=encrypt, embedder="hashing", warm=False)


def fill(home: Path, encrypt: Any = None) -> None:
    """Two namespaces of six threads each, one of which is a branch of another."""
    with opened(home, encrypt) as memory:
        for space in (memory, memory.scoped("work")):
            for number in range(12):
                turn = NewTurn(
                    "user", f"the heron {number}", speaker="Persephone", source="chatgpt",
                    source_key="chat-of-ada", message_key=f"message-of-ada {number}",
                )  # fmt: skip
                space.conversations.extend(f"ada-and-bob {number % 4}", [turn])
            space.conversations.redact("ada-and-bob 1", 0)
            turns = (
                ImportedTurn("message-of-ada a", None, "user", "the heron asks"),
                ImportedTurn("message-of-ada b", "message-of-ada a", "user", "one heron"),
                ImportedTurn("message-of-ada c", "message-of-ada a", "user", "another heron"),
            )
            tree = ImportedConversation("chatgpt", "chat-of-ada 5", "ada-and-bob 5", turns)
            space.import_([tree], embed=False)


def damage(home: Path) -> None:
    """A file that does not parse, set aside, and one whose name is no conversation's."""
    with opened(home) as memory:
        store = memory.conversations
        assert isinstance(store, ConversationStore)
        store.append_user("ada-and-bob broken", "the heron is cut")
        path = store.path("ada-and-bob broken")
        path.write_bytes(path.read_bytes()[:-3])
        with pytest.raises(CorruptThread):
            store.get("ada-and-bob broken")
    (home / "conversations" / "nobody's\x01file.json").write_bytes(b"nobody's file")


def contents(home: Path) -> dict[str, Any]:
    """Every thread with its speakers, and every note that is kept beside threads."""
    found: dict[str, Any] = {}
    with opened(home) as memory:
        for name in ("default", "work"):
            space = memory.scoped(name)
            for summary in space.conversations.list():
                thread = space.conversations.get(summary.conversation_id)
                found[f"{name} {summary.conversation_id}"] = thread
            for kind in ("conversation_note", "turn_note", "forgotten_turn"):
                found[f"{name} {kind}"] = exported(space, kind)
                assert found[f"{name} {kind}"]
    return found


def search(home: Path) -> set[str]:
    """Which of the secrets can be read somewhere under the home, in names or contents."""
    files = [path for path in home.rglob("*") if path.is_file()]
    names = [str(path.relative_to(home)).encode() for path in files]
    data = b"\n".join([*names, *(path.read_bytes() for path in files)])
    codings = ("utf-8", "utf-16-le", "utf-16-be")
    return {secret for secret in SECRETS for coding in codings if secret.encode(coding) in data}
