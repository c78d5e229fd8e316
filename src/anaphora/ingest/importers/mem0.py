"""mem0: what `get_all()` and the platform's export give as JSON, and its history in SQLite.

JSON is `{"results": [{id, memory, metadata, created_at, updated_at, user_id …}]}`, a bare list of
these, or one a line; `relations` of a graph beside them are facts of their own. The history
(`~/.mem0/history.db`) has every value of a memory, and the last messages of each session. What was
deleted there stays out, and is counted. Its vector store is not read: the files of a local Qdrant
hold Python pickles, which run what is in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, cast

from anaphora.ingest.importers.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    Sample,
    as_object,
)
from anaphora.ingest.importers.drafts import Draft, LeftOut
from anaphora.ingest.importers.facts import (
    key_of,
    moment,
    path_of,
    payload_of,
    tags_of,
    text_or,
    when,
    words_at,
)
from anaphora.ingest.importers.json_reader import records
from anaphora.ingest.importers.sqlite_reader import MAGIC, Row, rows
from anaphora.store.hashing import digest
from anaphora.values.conversations import ImportProblem
from anaphora.values.imports import ImportedElse, ImportedMemory
from anaphora.values.memories import NewMemory

_NAME = "mem0"
_HISTORY = ("memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at",
            "is_deleted")  # fmt: skip
_MESSAGES = ("id", "session_scope", "role", "content", "name", "created_at")
_SCOPES = ("user_id", "agent_id", "app_id", "run_id", "actor_id")
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def _is_memory(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("memory"), str):
        return False
    return "id" in value and bool({"hash", "metadata", "user_id", "created_at"} & value.keys())


def _is_answer(value: object) -> bool:
    found = value.get("results") if isinstance(value, dict) else None
    return isinstance(found, list) and any(map(_is_memory, found[:50]))


def _detect(sample: Sample) -> bool:
    if sample.shape == "database":
        return sample.has_table("history", "memory_id", "new_memory", "event")
    return any(_is_memory(value) or _is_answer(value) for value in sample.values)


def _read(file: ImportFile) -> Iterator[ImportItem]:
    with file.open() as raw:
        database = raw.peek(len(MAGIC)).startswith(MAGIC)
    if database:
        yield from _history(file)
        yield from _messages(file)
        return
    for record in records(file, lambda value: _is_memory(value) or _is_answer(value)):
        if isinstance(record, ImportProblem):
            yield record
        elif _is_answer(record.value):
            yield from _answer(file, cast("dict[str, Any]", record.value), record.place)
        else:
            yield from _one(file, record.value, record.place)


def _answer(file: ImportFile, value: dict[str, Any], place: str) -> Iterator[ImportItem]:
    for number, one in enumerate(value["results"], start=1):
        yield from _one(file, one, f"{place}, result {number}")
    relations = value.get("relations")
    for number, one in enumerate(relations if isinstance(relations, list) else (), start=1):
        where = f"{place}, relation {number}"
        try:
            yield _relation(file, as_object(one, "a relation"), where)
        except Malformed as error:
            yield file.problem(where, str(error))


def _one(file: ImportFile, value: object, place: str) -> Iterator[ImportItem]:
    try:
        yield _memory(file, as_object(value, "a memory"), place)
    except Malformed as error:
        yield file.problem(place, str(error))


def _memory(file: ImportFile, value: Mapping[str, object], place: str) -> ImportedMemory:
    memory_id, text = words_at(value, "id"), words_at(value, "memory")
    scopes = (f"{n.removesuffix('_id')}:{v}" for n in _SCOPES if (v := text_or(value, n)))
    at = when(file, value, "updated_at", "created_at")
    metadata = value.get("metadata")
    return ImportedMemory(
        _NAME,
        key_of(memory_id),
        NewMemory(
            text,
            created_at=at,
            path=path_of(_NAME, memory_id),
            type="procedural" if value.get("memory_type") == "procedural_memory" else "semantic",
            tags=tags_of(value.get("categories"), list(scopes)),
            payload=payload_of(metadata=metadata if isinstance(metadata, dict) else None),
            expires_at=moment(value, "expiration_date"),
        ),
        place,
    )


def _relation(file: ImportFile, value: Mapping[str, object], place: str) -> ImportedMemory:
    said = " ".join(
        words_at(value, *names)
        for names in (("source",), ("relationship", "relation"), ("target", "destination"))
    )
    return ImportedMemory(
        _NAME,
        key_of("relation", digest(said)[:12]),
        NewMemory(said, created_at=file.modified),
        place,
    )


def _history(file: ImportFile) -> Iterator[ImportItem]:
    found: list[tuple[Row, str]] = []
    for item in rows(file, "history", _HISTORY, order=("memory_id",)):
        if isinstance(item, ImportProblem):
            yield item
        elif not isinstance(item[0]["memory_id"], str) or not item[0]["memory_id"]:
            yield file.problem(item[1], "the memory has no id")
        else:
            if found and found[-1][0]["memory_id"] != item[0]["memory_id"]:
                yield from _versions(file, found)
                found = []
            found.append(item)
    yield from _versions(file, found)


def _versions(file: ImportFile, found: list[tuple[Row, str]]) -> Iterator[ImportItem]:
    """Every value of one memory, oldest first; nothing of one that was deleted."""
    if any(row["is_deleted"] or row["event"] == "DELETE" for row, _ in found):
        yield ImportedElse(LeftOut.DELETED)
        return
    said: list[tuple[datetime, str, str, str]] = []
    for row, place in found:
        try:
            at = moment(row, "updated_at", "created_at") or _LONG_AGO
            said.append((at, row["memory_id"], words_at(row, "new_memory"), place))
            if row["event"] == "UPDATE" and len(found) == 1 and text_or(row, "old_memory"):
                first = moment(row, "created_at") or at
                said.append((first, row["memory_id"], row["old_memory"], place))
        except Malformed as error:
            yield file.problem(place, str(error))
    said.sort(key=lambda one: one[0])
    # What was written again without a change is one value.
    for _, same in groupby(said, key=lambda one: one[2]):
        at, memory_id, text, place = next(same)
        yield ImportedMemory(
            _NAME,
            key_of(memory_id),
            NewMemory(
                text,
                created_at=at if at > _LONG_AGO else file.modified,
                path=path_of(_NAME, memory_id),
            ),
            place,
        )


def _messages(file: ImportFile) -> Iterator[ImportItem]:
    """The last messages of each session, which mem0 keeps beside its history."""
    draft: Draft | None = None
    for item in rows(file, "messages", _MESSAGES, order=("session_scope", "created_at")):
        if isinstance(item, ImportProblem):
            yield item
            continue
        row, place = item
        scope = str(row["session_scope"] or file.stem)
        if draft is None or draft.key != scope:
            if draft is not None:
                yield from draft.results()
            draft = Draft(file, _NAME, scope)
        try:
            name, ts = row["name"], draft.time(row["created_at"], place)
            draft.add(
                words_at(row, "role"),
                words_at(row, "content"),
                key=str(row["id"] or ""),
                ts=ts,
                speaker=name if isinstance(name, str) and name else None,
            )
        except Malformed as error:
            draft.problem(place, str(error))
    if draft is not None:
        yield from draft.results()


FORMAT = Format(_NAME, _detect, _read)
