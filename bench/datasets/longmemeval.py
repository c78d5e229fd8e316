"""LongMemEval: each question comes with its own haystack of sessions with an assistant.

In: a JSON array, JSON lines or one object of `{question_id, question_type, question,
question_date, answer_session_ids, haystack_dates, haystack_session_ids, haystack_sessions}`.
Out: one `Haystack` an entry, its sessions as conversations; entries with the same haystack share a
namespace. Evidence is the turns marked `has_answer`; where none is marked, the answer's sessions
as a whole. Questions whose id ends in "_abs" have no answer to find and are left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from anaphora.ingest.bounds import BOUNDS, Bounds
from anaphora.values.conversations import ImportedConversation, ImportedTurn, ImportProblem
from bench.datasets.common import (
    Haystack,
    MessageKey,
    Question,
    UniqueNames,
    data_files,
    json_values,
    read_time,
    safe_id,
    text_of,
)


def read_longmemeval(path: Path, bounds: Bounds = BOUNDS) -> Iterator[Haystack | ImportProblem]:
    """The entries of a LongMemEval file or of a directory of such files, numbered from 1."""
    number = 0
    for file in data_files(path):
        for place, value in enumerate(json_values(file, bounds), start=1):
            if isinstance(value, ImportProblem):
                yield value
                continue
            for entry in _entries(value):
                number += 1
                yield _haystack(entry, number)
            if not any(True for _ in _entries(value)):
                yield ImportProblem(str(file), f"entry {place}", "no haystack_sessions in it")


def _entries(value: object, depth: int = 0) -> Iterator[Mapping[str, object]]:
    if isinstance(value, Mapping):
        if isinstance(value.get("haystack_sessions"), list):
            yield value
        elif depth < 2:
            for inner in value.values():
                yield from _entries(inner, depth + 1)
    elif isinstance(value, list) and depth < 2:
        for inner in value:
            yield from _entries(inner, depth + 1)


def _haystack(entry: Mapping[str, object], number: int) -> Haystack:
    conversations: list[ImportedConversation] = []
    answers: dict[str, set[MessageKey]] = {}
    latest: datetime | None = None
    names = UniqueNames()
    for session_id, date, session in _sessions(entry):
        name = names.take(session_id)
        conversation, marked = _conversation(name, date, session)
        if conversation.turns:
            conversations.append(conversation)
            answers.setdefault(session_id, set()).update(marked)
            latest = max(filter(None, (latest, date)), default=None)
    now = read_time(entry.get("question_date")) or latest
    questions = tuple(
        _question(entry, text, wanted, answers, now) for text, wanted in _asked(entry)
    )
    return Haystack(_namespace(entry), number, tuple(conversations), questions)


def _namespace(entry: Mapping[str, object]) -> str:
    """Named by content, so that questions about the same sessions share one memory."""
    fields = [entry.get(f"haystack_{what}") for what in ("session_ids", "dates", "sessions")]
    return "lme-" + hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:16]


def _sessions(entry: Mapping[str, object]) -> Iterator[tuple[str, datetime | None, list[object]]]:
    ids, dates = _list(entry.get("haystack_session_ids")), _list(entry.get("haystack_dates"))
    for place, session in enumerate(_list(entry.get("haystack_sessions"))):
        own: Mapping[str, object] = session if isinstance(session, Mapping) else {}
        turns = next(
            (own[f] for f in ("turns", "messages", "session") if isinstance(own.get(f), list)),
            session,
        )
        given = ids[place] if place < len(ids) else own.get("session_id")
        date = dates[place] if place < len(dates) else own.get("date")
        yield str(given or f"session-{place + 1}"), read_time(date), _list(turns)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _conversation(
    name: str, date: datetime | None, session: list[object]
) -> tuple[ImportedConversation, set[MessageKey]]:
    conversation_id = safe_id(name)
    turns: list[ImportedTurn] = []
    marked: set[MessageKey] = set()
    blank = 0
    for place, message in enumerate(session):
        text = text_of(message, "content", "text") if isinstance(message, Mapping) else ""
        if not isinstance(message, Mapping) or not text.strip():
            blank += 1
            continue
        key = str(place)
        parent = turns[-1].key if turns else None
        role = str(message.get("role") or "user").strip().lower()
        turns.append(ImportedTurn(key, parent, role, text, date))
        if message.get("has_answer") is True:
            marked.add((conversation_id, key))
    conversation = ImportedConversation(
        source="longmemeval",
        key=name,
        conversation_id=conversation_id,
        turns=tuple(turns),
        left_out={"blank": blank} if blank else {},
    )
    return conversation, marked


def _asked(entry: Mapping[str, object]) -> Iterator[tuple[str, list[str] | None]]:
    """Each question and its answer's session ids (None if not given); some files have several
    questions for one haystack, in lists of equal length."""
    texts, sessions = entry.get("questions"), entry.get("answer_session_ids")
    if isinstance(texts, list):
        for place, text in enumerate(texts):
            wanted = _list(sessions)[place] if place < len(_list(sessions)) else None
            if isinstance(text, str):
                yield text, [str(w) for w in wanted] if isinstance(wanted, list) else None
    elif isinstance(entry.get("question"), str):
        yield (
            str(entry["question"]),
            [str(w) for w in sessions] if isinstance(sessions, list) else None,
        )


def _question(
    entry: Mapping[str, object],
    text: str,
    wanted: list[str] | None,
    answers: Mapping[str, set[MessageKey]],
    now: datetime | None,
) -> Question:
    sessions = [s for s in (answers if wanted is None else wanted) if s in answers]
    evidence = frozenset(key for s in sessions for key in answers[s])
    if not evidence and wanted is not None:
        evidence = frozenset((safe_id(s), "") for s in sessions)
    abstains = str(entry.get("question_id", "")).endswith("_abs")
    missing = "evidence not in the data" if wanted else "no evidence given"
    return Question(
        text=text.strip(),
        category=str(entry.get("question_type") or "none"),
        conversation_id=None,
        evidence=frozenset() if abstains else evidence,
        now=now,
        left_out="abstention" if abstains else "" if evidence else missing,
        unresolved=0 if wanted is None else sum(s not in answers for s in wanted),
    )
