"""claude-mem: its SQLite database (`~/.claude-mem/claude-mem.db`), every schema since its first.

Observations and session summaries become memories, with their project, kind and concepts as tags
and the files they touched beside them; directives are memories of how to work. The user's prompts
become a conversation a session: they may be the only copy, as Claude Code drops old transcripts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

from anaphora.features.importing.formats.base import Format, ImportFile, ImportItem, Malformed
from anaphora.features.importing.formats.drafts import Draft
from anaphora.features.importing.formats.facts import (
    json_list,
    key_of,
    path_of,
    payload_of,
    tags_of,
    text_or,
    when,
    words_at,
)
from anaphora.features.importing.formats.sqlite_reader import Row, rows
from anaphora.features.importing.values import ImportedElse, ImportedMemory
from anaphora.values.conversations import ImportProblem
from anaphora.values.memories import NewMemory

_NAME = "claude_mem"
_TIMES = ("created_at_epoch", "created_at")
_SESSION = ("memory_session_id", "sdk_session_id", "session_id")
_CHAT = ("content_session_id", "claude_session_id")
_PARTS: Final = (
    ("Request", "request"),
    ("Investigated", "investigated"),
    ("Learned", "learned"),
    ("Completed", "completed"),
    ("Next steps", "next_steps"),
    ("Notes", "notes"),
)


def _read(file: ImportFile) -> Iterator[ImportItem]:
    for table, columns, make in _TABLES:
        for fetched_row in rows(file, table, ("id", "project", *_SESSION, *_TIMES, *columns)):
            if isinstance(fetched_row, ImportProblem):
                yield fetched_row
                continue
            row, position = fetched_row
            try:
                yield make(file, table, row, position)
            except Malformed as error:
                yield file.problem(position, str(error))
    yield from _read_prompts(file)


def _make_key(table: str, row: Row) -> str:
    return key_of(table, text_or(row, *_SESSION), row["id"])


def _read_time(file: ImportFile, row: Row) -> datetime:
    return when(file, row, *_TIMES)


def _read_observation(file: ImportFile, table: str, row: Row, place: str) -> ImportItem:
    """An observation, verbatim: title, subtitle, narrative, facts."""
    head = "\n".join(part for name in ("title", "subtitle") if (part := text_or(row, name)))
    facts = "\n".join(f"- {fact}" for fact in json_list(row["facts"]))
    words = [head, text_or(row, "narrative"), facts]
    text = "\n\n".join(part for part in words if part) or text_or(row, "text")
    if not text:
        raise Malformed("the observation has no words")
    return ImportedMemory(
        _NAME,
        _make_key(table, row),
        NewMemory(
            text,
            created_at=_read_time(file, row),
            tags=tags_of(text_or(row, "project"), json_list(row["concepts"])),
            category=text_or(row, "type") or None,
            payload=payload_of(
                files_read=json_list(row["files_read"]),
                files_modified=json_list(row["files_modified"]) or json_list(row["files_touched"]),
            ),
        ),
        place,
    )


def _read_summary(file: ImportFile, table: str, row: Row, place: str) -> ImportItem:
    parts = [f"{label}: {part}" for label, name in _PARTS if (part := text_or(row, name))]
    text = "\n".join(parts) or text_or(row, "content")
    if not text:
        raise Malformed("the summary has no words")
    return ImportedMemory(
        _NAME,
        _make_key(table, row),
        NewMemory(
            text,
            created_at=_read_time(file, row),
            type="episodic",
            tags=tags_of(text_or(row, "project")),
            category="session_summary",
            payload=payload_of(
                files_read=json_list(row["files_read"]),
                files_modified=json_list(row["files_edited"]),
            ),
        ),
        place,
    )


def _read_directive(file: ImportFile, table: str, row: Row, place: str) -> ImportItem:
    if row["status"] not in (None, "active"):
        return ImportedElse("directive that is not active")
    return ImportedMemory(
        _NAME,
        key_of(table, row["id"]),
        NewMemory(
            words_at(row, "content"),
            created_at=_read_time(file, row),
            path=path_of(_NAME, "directive", str(row["id"])),
            type="procedural",
            tags=tags_of(text_or(row, "project")),
            category="directive",
        ),
        place,
    )


_OBSERVED = ("type", "title", "subtitle", "facts", "narrative", "text", "concepts", "files_read",
             "files_modified", "files_touched")  # fmt: skip
_SUMMED_UP = (*(name for _, name in _PARTS), "content", "files_read", "files_edited")
_TABLES: Final[
    tuple[
        tuple[str, tuple[str, ...], Callable[[ImportFile, str, Row, str], ImportItem]],
        ...,
    ]
] = (
    ("observations", _OBSERVED, _read_observation),
    ("session_summaries", _SUMMED_UP, _read_summary),
    ("directives", ("content", "status"), _read_directive),
    # The first schema.
    ("memories", _OBSERVED, _read_observation),
    ("overviews", _SUMMED_UP, _read_summary),
)


def _read_prompts(file: ImportFile) -> Iterator[ImportItem]:
    """The user's prompts, one session after another."""
    sessions: dict[str, Row] = {}
    for fetched_row in rows(file, "sdk_sessions", (*_CHAT, "project", "custom_title")):
        if not isinstance(fetched_row, ImportProblem) and (
            session_id := text_or(fetched_row[0], *_CHAT)
        ):
            sessions[session_id] = fetched_row[0]
    draft: Draft | None = None
    columns = ("id", *_CHAT, "prompt_number", "prompt_text", *_TIMES)
    for fetched_row in rows(file, "user_prompts", columns, order=(*_CHAT, "prompt_number", "id")):
        if isinstance(fetched_row, ImportProblem):
            yield fetched_row
            continue
        row, position = fetched_row
        session = text_or(row, *_CHAT)
        if draft is None or draft.key != session:
            if draft is not None:
                yield from draft.results()
            stored_session = sessions.get(session)
            title = text_or(stored_session, "custom_title", "project") if stored_session else ""
            draft = Draft(file, _NAME, session, title=title)
            draft.locate("claude-code")
        try:
            ts = draft.time(row["created_at_epoch"] or row["created_at"], position)
            draft.add("user", words_at(row, "prompt_text"), key=f"prompt {row['id']}", ts=ts)
        except Malformed as error:
            draft.problem(position, str(error))
    if draft is not None:
        yield from draft.results()


FORMAT = Format(
    _NAME,
    lambda sample: (
        sample.has_table("observations", "project", "type", "created_at_epoch")
        or (
            sample.has_table("memories", "session_id", "document_id", "created_at_epoch")
            and "overviews" in sample.tables
        )
    ),
    _read,
)
