"""What a home answers about what is stored in it: everything that a user would miss, by identity.

In: an open memory. Out: values of JSON under keys such as "work/memory/01J…", the same for every
build that kept them. What is derived, such as scores, previews and sizes, is left out.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from typing import Any

from tests.as_json import as_json

from anaphora import Memory

__all__ = ["ask", "home_answers", "lost", "namespace_answers"]

Answers = dict[str, Any]
MOST = 1000
COUNTED = (
    "conversations", "turns", "memories", "projects", "files", "sections", "notes", "documents",
    "gaps", "jobs",
)  # fmt: skip
# A number in the order of commits, and what is taken from other calls or by nobody.
_INTERNAL = {"seq", "redacted"}
_ELSEWHERE = {"thread", "turn", "document", "document_file", "end"}
_IDENTITY = (
    "id", "between", "relation", "memory", "thread", "index", "key", "source_key",
    "message_key", "from_memory",
)  # fmt: skip


def home_answers(memory: Memory) -> Answers:
    """What every namespace of a home answers, and which access tokens it has."""
    answers = {"namespaces": as_json(memory.namespaces())}
    answers |= {f"token/{token.id}": as_json(token) for token in memory.tokens.list()}
    for namespace in memory.namespaces():
        answers |= namespace_answers(memory.scoped(namespace))
    return answers


def namespace_answers(memory: Memory) -> Answers:
    """What one namespace answers. The audit trail comes first, as every answer is noted in it."""
    found = {**dict(_audit(memory))}
    for read in (_conversations, _memories, _documents, _notes, _exported, _counts):
        for key, value in read(memory):
            assert key not in found, f"two things are called {key}"
            found[key] = _told(value)
    return {f"{memory.namespace}/{key}": value for key, value in found.items()}


def ask(memory: Memory, lane: str, question: str) -> list[str]:
    """The ids that come back for a question to a lane: "search", "memories" or "turns"."""
    if lane == "memories":
        return [hit.id for hit in memory.recall(question, top_k=10, min_confidence=0)]
    if lane == "turns":
        turns = memory.recall_conversation(None, question, top_k=10, min_confidence=0)
        return [f"{hit.conversation_id}#{hit.index}" for hit in turns]
    return [hit.id for hit in memory.search(question, top_k=10, min_confidence=0)]


def lost(kept: Any, now: Any, where: str = "") -> Iterator[str]:
    """Where `now` has not what was kept, in words. What a later build adds to a value is no loss.

    Lists have the same members in the same order; the audit trail goes on.
    """
    if isinstance(kept, dict) and isinstance(now, dict):
        for key, value in kept.items():
            place = f"{where}.{key}" if where else str(key)
            if key not in now:
                yield f"{place} is gone"
            else:
                yield from lost(value, now[key], place)
    elif isinstance(kept, list) and isinstance(now, list) and len(kept) == len(now):
        for number, (one, other) in enumerate(zip(kept, now, strict=True)):
            yield from lost(one, other, f"{where}[{number}]")
    elif kept != now:
        yield f"{where}: {json.dumps(kept)} -> {json.dumps(now)}"


def _told(value: Any) -> Any:
    value = as_json(value)
    if isinstance(value, dict):
        return {name: part for name, part in value.items() if name not in _INTERNAL}
    return value


def _audit(memory: Memory) -> Iterator[tuple[str, Any]]:
    report = memory.audit.verify()
    yield "audit", {"problem": as_json(report.problem), "on": memory.audit.status().on}
    for entry in memory.audit.show(limit=MOST):
        yield f"audit/{entry.number}", as_json(entry)


def _conversations(memory: Memory) -> Iterator[tuple[str, Any]]:
    threads = memory.conversations
    for summary in threads.list():
        name = summary.conversation_id
        thread = threads.get(name)
        assert thread is not None
        told = as_json(thread)
        turns = told.pop("turns")
        yield f"thread/{name}", {**told, "turns": len(turns)}
        for number, turn in enumerate(turns):
            yield f"turn/{name}#{number}", turn
        for call in memory.tool_calls(name):
            yield f"tool call/{call.id}", {"text": call.text, "ts": call.ts, "index": call.index}
    yield "thread problems", threads.problems()


def _memories(memory: Memory) -> Iterator[tuple[str, Any]]:
    cursor: str | None = None
    paths: set[str] = set()
    while True:
        page = memory.list(limit=100, cursor=cursor)
        for record in page.items:
            yield f"memory/{record.id}", record
            assert memory.get(record.id) == record
            if record.path is not None:
                paths.add(record.path)
        cursor = page.cursor
        if cursor is None:
            break
    for path in sorted(paths):
        yield f"history/{path}", [_told(one) for one in memory.history(path)]
    for settled in (False, True):
        for pair in memory.contradictions(settled=settled, limit=MOST):
            told = as_json(pair)
            del told["similarity"]
            yield f"contradiction/{pair.older.id} {pair.newer.id}", told
    for gap in memory.gaps(None):
        yield f"gap/{gap.id}", gap


def _documents(memory: Memory) -> Iterator[tuple[str, Any]]:
    for document in memory.documents(limit=MOST, history=True):
        yield f"document/{document.id}", document
        if document.file_kept:
            digest = hashlib.sha256(memory.document_file(document.id)).hexdigest()
            yield f"document file/{document.id}", digest
        for section in memory.document_sections(document.id):
            yield f"document section/{section.id}", section
        versions = [version.id for version in memory.document_history(document.name)]
        yield f"document versions/{document.id}", versions


def _notes(memory: Memory) -> Iterator[tuple[str, Any]]:
    for project in memory.projects():
        yield f"project/{project.id}", project
    for note in memory.notes(limit=MOST):
        yield f"note/{note.id}", note
    for entry in memory.diary(limit=MOST):
        yield f"diary/{entry.id}", entry


def _exported(memory: Memory) -> Iterator[tuple[str, Any]]:
    """What no other call tells: places, sources, links, events, and what was forgotten."""
    file = io.BytesIO()
    memory.export(file)
    for text in file.getvalue().decode("utf-8").splitlines()[1:]:
        line = json.loads(text)
        if line["kind"] not in _ELSEWHERE:
            identity = [line[name] for name in _IDENTITY if name in line]
            yield f"exported {line['kind']}/{json.dumps(identity, ensure_ascii=False)}", line


def _counts(memory: Memory) -> Iterator[tuple[str, Any]]:
    stats = as_json(memory.stats())
    yield "counts", {name: stats[name] for name in COUNTED}
