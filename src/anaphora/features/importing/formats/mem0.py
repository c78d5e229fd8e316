"""mem0: what `get_all()` and the platform's export give as JSON, and its history in SQLite.

JSON is `{"results": [{id, memory, metadata, created_at, updated_at, user_id …}]}`, a bare list of
these, or one a line; `relations` of a graph beside them are facts of their own. The history
(`~/.mem0/history.db`) has every value of a memory, and the last messages of each session. What was
deleted there stays out, and is counted. Its vector store is not read: the files of a local Qdrant
hold Python pickles, which run what is in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, cast

from anaphora.features.importing.formats.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    as_object,
)
from anaphora.features.importing.formats.drafts import Draft, LeftOut
from anaphora.features.importing.formats.facts import (
    key_of,
    moment,
    path_of,
    payload_of,
    tags_of,
    text_or,
    when,
    words_at,
)
from anaphora.features.importing.formats.json_reader import records
from anaphora.features.importing.formats.sqlite_reader import MAGIC, Row, rows
from anaphora.features.importing.values import ImportedElse, ImportedMemory
from anaphora.store.hashing import digest
from anaphora.values.conversations import ImportProblem
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
    results = value.get("results") if isinstance(value, dict) else None
    return isinstance(results, list) and any(map(_is_memory, results[:50]))


def _read(file: ImportFile) -> Iterator[ImportItem]:
    with file.open() as raw:
        database = raw.peek(len(MAGIC)).startswith(MAGIC)
    if database:
        yield from _read_history(file)
        yield from _read_messages(file)
        return
    for record in records(file, lambda reply: _is_memory(reply) or _is_answer(reply)):
        if isinstance(record, ImportProblem):
            yield record
        elif _is_answer(record.value):
            reply = cast("dict[str, Any]", record.value)
            for number, element in enumerate(reply["results"], start=1):
                yield from _read_memory(file, element, f"{record.place}, result {number}")
            relations = reply.get("relations")
            for number, element in enumerate(
                relations if isinstance(relations, list) else (), start=1
            ):
                relation_place = f"{record.place}, relation {number}"
                try:
                    relation = as_object(element, "a relation")
                    text = " ".join(
                        words_at(relation, *names)
                        for names in (
                            ("source",),
                            ("relationship", "relation"),
                            ("target", "destination"),
                        )
                    )
                    key = key_of("relation", digest(text)[:12])
                    yield ImportedMemory(
                        _NAME, key, NewMemory(text, created_at=file.modified), relation_place
                    )
                except Malformed as error:
                    yield file.problem(relation_place, str(error))
        else:
            yield from _read_memory(file, record.value, record.place)


def _read_memory(file: ImportFile, element: object, place: str) -> Iterator[ImportItem]:
    try:
        memory = as_object(element, "a memory")
        memory_id, text = words_at(memory, "id"), words_at(memory, "memory")
        scopes = (f"{n.removesuffix('_id')}:{v}" for n in _SCOPES if (v := text_or(memory, n)))
        at = when(file, memory, "updated_at", "created_at")
        metadata = memory.get("metadata")
        procedural = memory.get("memory_type") == "procedural_memory"
        yield ImportedMemory(
            _NAME,
            key_of(memory_id),
            NewMemory(
                text,
                created_at=at,
                path=path_of(_NAME, memory_id),
                type="procedural" if procedural else "semantic",
                tags=tags_of(memory.get("categories"), list(scopes)),
                payload=payload_of(metadata=metadata if isinstance(metadata, dict) else None),
                expires_at=moment(memory, "expiration_date"),
            ),
            place,
        )
    except Malformed as error:
        yield file.problem(place, str(error))


def _read_history(file: ImportFile) -> Iterator[ImportItem]:
    versions: list[tuple[Row, str]] = []
    for fetched_row in rows(file, "history", _HISTORY, order=("memory_id",)):
        if isinstance(fetched_row, ImportProblem):
            yield fetched_row
        elif not isinstance(fetched_row[0]["memory_id"], str) or not fetched_row[0]["memory_id"]:
            yield file.problem(fetched_row[1], "the memory has no id")
        else:
            if versions and versions[-1][0]["memory_id"] != fetched_row[0]["memory_id"]:
                yield from _read_versions(file, versions)
                versions = []
            versions.append(fetched_row)
    yield from _read_versions(file, versions)


def _read_versions(file: ImportFile, versions: list[tuple[Row, str]]) -> Iterator[ImportItem]:
    """Every value of one memory, oldest first; nothing of one that was deleted."""
    if any(row["is_deleted"] or row["event"] == "DELETE" for row, _ in versions):
        yield ImportedElse(LeftOut.DELETED)
        return
    texts: list[tuple[datetime, str, str, str]] = []
    for row, position in versions:
        try:
            at = moment(row, "updated_at", "created_at") or _LONG_AGO
            texts.append((at, row["memory_id"], words_at(row, "new_memory"), position))
            if row["event"] == "UPDATE" and len(versions) == 1 and text_or(row, "old_memory"):
                first_time = moment(row, "created_at") or at
                texts.append((first_time, row["memory_id"], row["old_memory"], position))
        except Malformed as error:
            yield file.problem(position, str(error))
    texts.sort(key=lambda version: version[0])
    # What was written again without a change is one value.
    for _, same_texts in groupby(texts, key=lambda version: version[2]):
        at, memory_id, text, position = next(same_texts)
        yield ImportedMemory(
            _NAME,
            key_of(memory_id),
            NewMemory(
                text,
                created_at=at if at > _LONG_AGO else file.modified,
                path=path_of(_NAME, memory_id),
            ),
            position,
        )


def _read_messages(file: ImportFile) -> Iterator[ImportItem]:
    """The last messages of each session, which mem0 keeps beside its history."""
    draft: Draft | None = None
    for fetched_row in rows(file, "messages", _MESSAGES, order=("session_scope", "created_at")):
        if isinstance(fetched_row, ImportProblem):
            yield fetched_row
            continue
        row, position = fetched_row
        scope = str(row["session_scope"] or file.stem)
        if draft is None or draft.key != scope:
            if draft is not None:
                yield from draft.results()
            draft = Draft(file, _NAME, scope)
        try:
            name, ts = row["name"], draft.time(row["created_at"], position)
            draft.add(
                words_at(row, "role"),
                words_at(row, "content"),
                key=str(row["id"] or ""),
                ts=ts,
                speaker=name if isinstance(name, str) and name else None,
            )
        except Malformed as error:
            draft.problem(position, str(error))
    if draft is not None:
        yield from draft.results()


FORMAT = Format(
    _NAME,
    lambda sample: (
        sample.has_table("history", "memory_id", "new_memory", "event")
        if sample.shape == "database"
        else any(_is_memory(element) or _is_answer(element) for element in sample.values)
    ),
    _read,
)
