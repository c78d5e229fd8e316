"""Rows of truth, sealed on their way in and opened on their way out.

In: rows as mappings from column to value. Out: the same with sealed columns encrypted and lookup
columns replaced by their keyed form, as `schema.py` declares each column; and back. A sealed value
is bound to table, column and primary key, so that it opens nowhere else. It never imports
SQLAlchemy: the first reads of every command come through here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from anaphora.errors import MissingKey, Tampered
from anaphora.store.sealing.cipher import Finder, binding, looks_sealed
from anaphora.store.sealing.guard import Guard
from anaphora.store.sealing.keys import Keys

__all__ = ["CLEAR", "PLANS", "Clear", "Plan", "Sealed", "Sealer", "open_rows"]

ValueT = TypeVar("ValueT", str, bytes)
Row = Mapping[str, Any]
# Of the way in which rows are sealed. Not Alembic's revision: every migration would have to seal
# every row again.
_VERSION = "1"


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens to the columns of one table. `key` is its primary key, in order.

    `digests` are those of the columns that never hold a user's text in a clear home: a sealed
    form in one of them can only mean that the home was sealed.
    """

    key: tuple[str, ...]
    sealed: tuple[str, ...] = ()
    lookup: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()


# What schema.py declares, without SQLAlchemy; a test holds the two together.
PLANS: Mapping[str, Plan] = {
    "head": Plan(("namespace",)),
    "conversation_note": Plan(
        ("namespace", "conversation_id"), ("source_key",), ("conversation_id", "branch_of")
    ),
    "turn_note": Plan(
        ("namespace", "conversation_id", "position"),
        ("turn_hash", "speaker", "source_key", "message_key"),
        ("conversation_id", "chat_key"),
        ("turn_hash", "chat_key"),
    ),
    "forgotten_turn": Plan(
        ("namespace", "identity_key"),
        ("source_key", "message_key"),
        ("identity_key", "conversation_id", "chat_key"),
        ("identity_key", "chat_key"),
    ),
    "thread": Plan(
        ("namespace", "conversation_id"),
        ("title", "updated_text"),
        ("conversation_id",),
        ("updated_text",),
    ),
    "turn": Plan(
        ("namespace", "conversation_id", "position"),
        ("role", "text", "ts_text", "intent_id", "turn_hash"),
        ("conversation_id",),
        ("turn_hash",),
    ),
    "record": Plan(
        ("namespace", "record_id"),
        ("text", "path", "category", "tags", "payload", "origin"),
        ("same_key", "path_key"),
        ("same_key", "path_key"),
    ),
    "record_event": Plan(("namespace", "record_id", "seq"), ("tags", "origin")),
    "link": Plan(("namespace", "record_id", "other_id", "kind")),
    "tombstone": Plan(("namespace", "seq")),
    "vector": Plan(
        ("namespace", "record_id", "embedder", "part"),
        ("text_hash", "data"),
        digests=("text_hash",),
    ),
    "project": Plan(
        ("namespace", "project_id"),
        ("name", "root", "head", "folders"),
        ("root_key",),
        ("root_key",),
    ),
    "source_file": Plan(
        ("namespace", "file_id"),
        ("path", "facts"),
        ("path_key", "content_hash"),
        ("path_key", "content_hash"),
    ),
    "section": Plan(
        ("namespace", "section_id"),
        ("title", "heading", "symbol", "text"),
        ("text_hash",),
        ("text_hash",),
    ),
    "section_vector": Plan(
        ("namespace", "text_hash", "embedder", "part"), ("data",), ("text_hash",), ("text_hash",)
    ),
    "entity": Plan(
        ("namespace", "entity_id"), ("name", "summary"), ("entity_key",), ("entity_key",)
    ),
    "entity_alias": Plan(
        ("namespace", "alias_key", "entity_id"), (), ("alias_key",), ("alias_key",)
    ),
    "relation": Plan(("namespace", "relation_id"), ("detail",)),
    "history_item": Plan(
        ("namespace", "item_id"),
        ("text", "commit_name", "paths"),
        ("item_key",),
        ("item_key",),
    ),
    "history_path": Plan(("namespace", "path_key", "item_id"), (), ("path_key",), ("path_key",)),
    "answer": Plan(
        ("namespace", "answer_key"), ("body", "evidence"), ("answer_key",), ("answer_key",)
    ),
    "gap": Plan(
        ("namespace", "gap_id"),
        ("question", "details", "closed_by"),
        ("question_key", "conversation_id"),
        ("question_key",),
    ),
    "trace": Plan(("namespace", "trace_id"), ("question", "body", "seen"), digests=("seen",)),
    "session_job": Plan(("namespace", "job_id"), (), ("conversation_id",)),
    "extraction": Plan(
        ("namespace", "conversation_id"),
        ("content_hash",),
        ("conversation_id",),
        ("content_hash",),
    ),
    "fact_turn": Plan(
        ("namespace", "record_id", "conversation_id", "position"),
        ("turn_hash",),
        ("conversation_id",),
        ("turn_hash",),
    ),
    "token": Plan(("namespace", "token_id"), ("name", "scopes"), ("token_hash",), ("token_hash",)),
}


class Sealer(Protocol):
    """What the writers and readers of rows call."""

    @property
    def sealed(self) -> bool:
        """Whether rows are sealed."""
        ...

    def check(self) -> None:
        """Raise `SealChanged` when the home is not in this state any more."""
        ...

    def seal_row(self, table: str, row: Row) -> dict[str, Any]:
        """The row as it is stored. It must have the primary key; other columns may be missing."""
        ...

    def open_row(self, table: str, row: Row) -> dict[str, Any]:
        """The row as it was given. It must have the primary key, as stored."""
        ...

    def lookup(self, column: str, namespace: str, value: str) -> str:
        """What `column` holds for `value`: to compare with, in a WHERE clause."""
        ...

    def found(self, column: str, namespace: str, stored: str) -> str:
        """The value behind what a lookup column holds."""
        ...

    def opener(
        self, table: str, column: str, namespace: str
    ) -> Callable[[Sequence[str | int], ValueT], ValueT]:
        """A function that opens one column of many rows: (rest of the key, stored) to value."""
        ...


def open_rows(
    sealer: Sealer,
    table: str,
    columns: Sequence[str],
    namespace: str,
    rows: Sequence[tuple[Any, ...]],
) -> Sequence[tuple[Any, ...]]:
    """Rows of these columns, opened. The primary key, but for the namespace, is among them."""
    if not sealer.sealed:
        # Where one row is clear all are: a conversion changes them in one transaction.
        for row in rows[:1]:
            sealer.open_row(table, dict(zip(columns, row, strict=True), namespace=namespace))
        return rows
    opened = [
        sealer.open_row(table, dict(zip(columns, row, strict=True), namespace=namespace))
        for row in rows
    ]
    return [tuple(row[column] for column in columns) for row in opened]


class Clear:
    """Passes everything through. `guard` watches whether the home was sealed meanwhile."""

    sealed = False

    def __init__(self, guard: Guard | None = None) -> None:
        self._guard = guard

    def check(self) -> None:
        """Raise `SealChanged` when another process has sealed the home."""
        if self._guard is not None:
            self._guard.check()

    def seal_row(self, table: str, row: Row) -> dict[str, Any]:
        """The row itself."""
        return dict(row)

    def open_row(self, table: str, row: Row) -> dict[str, Any]:
        """The row itself; `MissingKey` for one of a sealed home."""
        for column in PLANS[table].digests:
            if looks_sealed(row.get(column)):
                self._refuse()
        return dict(row)

    def lookup(self, column: str, namespace: str, value: str) -> str:
        """The value itself."""
        return value

    def found(self, column: str, namespace: str, stored: str) -> str:
        """What is stored itself."""
        return stored

    def opener(
        self,
        table: str,
        column: str,
        namespace: str,
    ) -> Callable[[Sequence[str | int], ValueT], ValueT]:
        """A function that gives back what is stored."""
        return lambda _key, stored: stored

    def _refuse(self) -> None:
        self.check()
        reason = "its rows are sealed and sealed.json is missing; restore that file"
        raise MissingKey("truth", reason)


CLEAR = Clear()


class Sealed:
    """Seals and opens rows with keys derived from one data key."""

    sealed = True

    def __init__(self, keys: Keys, guard: Guard | None = None) -> None:
        self._cipher = keys.cipher("records")
        self._finder = Finder(keys.of("lookup", 64))
        self._guard = guard

    def check(self) -> None:
        """Raise `SealChanged` when the home has no longer this data key."""
        if self._guard is not None:
            self._guard.check()

    def seal_row(self, table: str, row: Row) -> dict[str, Any]:
        """The row as it is stored; a column that is None stays None."""
        plan, stored = PLANS[table], dict(row)
        for column in plan.lookup:
            if stored.get(column) is not None:
                stored[column] = self.lookup(column, row["namespace"], stored[column])
        key = [stored[column] for column in plan.key]
        for column in plan.sealed:
            value = stored.get(column)
            if value is None:
                continue
            bound = binding(_VERSION, table, column, *key)
            if isinstance(value, str):
                stored[column] = self._cipher.seal_text(value, bound)
            else:
                stored[column] = self._cipher.seal(bytes(value), bound)
        return stored

    def open_row(self, table: str, row: Row) -> dict[str, Any]:
        """The row as it was given. `Tampered` when a column was changed, moved or is not sealed."""
        plan, opened = PLANS[table], dict(row)
        key = [row[column] for column in plan.key]
        for column in plan.sealed:
            value = row.get(column)
            if value is not None:
                opened[column] = self._open(table, column, key, value)
        for column in plan.lookup:
            if row.get(column) is not None:
                opened[column] = self.found(column, row["namespace"], row[column])
        return opened

    def lookup(self, column: str, namespace: str, value: str) -> str:
        """The keyed form of `value`; the same in every table, another in each namespace."""
        return self._finder.seal(value, binding(_VERSION, column, namespace))

    def found(self, column: str, namespace: str, stored: str) -> str:
        """The value behind a keyed form."""
        bound = binding(_VERSION, column, namespace)
        return self._finder.open(stored, bound, f"{column} of {namespace}")

    def opener(
        self, table: str, column: str, namespace: str
    ) -> Callable[[Sequence[str | int], ValueT], ValueT]:
        """A function that opens one column of many rows. `key` is the key after the namespace."""
        start, what = binding(_VERSION, table, column, namespace), f"{table}.{column}"
        cipher = self._cipher
        # Of many rows only the owner differs; putting a binding together takes as long as opening.
        ends: dict[tuple[str | int, ...], bytes] = {}

        def open_one(key: Sequence[str | int], stored: ValueT) -> ValueT:
            rest = tuple(key[1:])
            end = ends.get(rest)
            if end is None:
                end = ends[rest] = binding(*rest)
            bound = start + binding(key[0]) + end
            if isinstance(stored, str):
                return cipher.open_text(stored, bound, what)
            return cipher.open(stored, bound, what)

        return open_one

    def _open(self, table: str, column: str, key: list[Any], value: Any) -> str | bytes:
        bound, what = binding(_VERSION, table, column, *key), f"{table}.{column} of {key[1:]}"
        if isinstance(value, str):
            return self._cipher.open_text(value, bound, what)
        if isinstance(value, bytes | memoryview):
            return self._cipher.open(bytes(value), bound, what)
        raise Tampered(what, "it is not sealed, in a home where everything is")
