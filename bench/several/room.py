"""What memories and turns take on PostgreSQL and on a server's disk, and what opening them costs.

In: an empty database, a folder, texts, an embedder. Out: bytes of truth and index for each memory
and turn, and how long a namespace of one user takes to answer first, with its index and without.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from anaphora import Memory
from anaphora.values.conversations import NewTurn
from anaphora.values.memories import NewMemory
from bench.figures import Figure

__all__ = ["room"]

USER_MEMORIES = 300
USER_TURNS = 3_000
_LONG = 50
_MEMORY_TABLES = ("record", "record_event", "link", "vector")
_TURN_TABLES = ("thread", "turn", "turn_note", "conversation_note")


def room(url: str, folder: Path, texts: Sequence[str], embedder: str) -> list[Figure]:
    """Fill a namespace with the texts as memories and as turns, and another one as a user has."""
    count, home = len(texts), folder / "room"
    with Memory.open(home, database=url, embedder=embedder) as memory:
        memory.ready()
        memory.remember_many(NewMemory(text) for text in texts)
        memory.reindex()
        memory_index = _files(home / "index")
        _say(memory, texts)
        memory.reindex()
        turn_index = _files(home / "index") - memory_index
        user = memory.scoped("user")
        user.remember_many(NewMemory(text) for text in texts[:USER_MEMORIES])
        _say(user, texts[:USER_TURNS])
        user.reindex()
    sizes = _tables(url)
    vectors = sizes["vector"] / (count + USER_MEMORIES)
    figures = [
        Figure("memories, and as many turns", count),
        Figure("bytes of a text, on average", sum(len(t.encode()) for t in texts) / count),
        Figure(
            "PostgreSQL, indexes of tables included: each memory",
            sum(sizes[name] for name in _MEMORY_TABLES) / (count + USER_MEMORIES),
            "bytes",
        ),
        Figure("of these its vectors", vectors, "bytes"),
        Figure(
            "PostgreSQL, indexes of tables included: each turn",
            sum(sizes[name] for name in _TURN_TABLES) / (count + min(count, USER_TURNS)),
            "bytes",
        ),
        Figure("a server's index: each memory", memory_index / count, "bytes"),
        Figure("a server's index: each turn", turn_index / count, "bytes"),
    ]
    for what, place in (("its index is there", home), ("without its index", folder / "none")):
        figures += _opened(url, place, embedder, texts[0], what)
    return figures


def _say(memory: Memory, texts: Sequence[str]) -> None:
    for start in range(0, len(texts), _LONG):
        turns = [
            NewTurn("user" if place % 2 == 0 else "assistant", text)
            for place, text in enumerate(texts[start : start + _LONG])
        ]
        memory.conversations.extend(f"chat-{start}", turns)


def _opened(url: str, home: Path, embedder: str, question: str, what: str) -> list[Figure]:
    """First answers of a namespace as one user has it, in a process whose model is loaded."""
    name = f"a user with {USER_MEMORIES} memories and up to {USER_TURNS:,} turns, {what}"
    with Memory.open(home, database=url, embedder=embedder) as memory:
        memory.ready()
        memory.scoped("nobody").recall(question)
        user = memory.scoped("user")
        begun = time.perf_counter()
        user.recall(question)
        recalled = time.perf_counter()
        first = user.recall_conversation(None, question)
        turns = time.perf_counter()
        found = first
        while found.degraded:
            time.sleep(0.05)
            found = user.recall_conversation(None, question)
        whole = time.perf_counter()
    return [
        Figure(f"{name}: first recall", (recalled - begun) * 1e3, "ms"),
        Figure(f"{name}: first recall of turns", (turns - recalled) * 1e3, "ms"),
        Figure(f"{name}: until turns have all vectors", whole - begun, "s"),
    ]


def _tables(url: str) -> dict[str, int]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM")
        found = connection.execute(
            "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r'"
        )
        return {str(name): int(size) for name, size in found}


def _files(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
