"""LongMemEval: each question comes with its own haystack of sessions with an assistant.

In: a JSON array of `{question_id, question_type, question, question_date, answer_session_ids,
haystack_dates, haystack_session_ids, haystack_sessions}`. Out: one `Haystack` an entry, its
sessions as conversations; entries with the same haystack share a namespace. Evidence is the turns
marked `has_answer`; where none is marked, the answer's sessions as a whole. Questions whose id ends
in "_abs" have no answer to find.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from anaphora.values.conversations import ImportedConversation
from bench.datasets.common import (
    Haystack,
    MessageKey,
    Question,
    chained,
    data_files,
    read_json,
    read_time,
)


def read_longmemeval(path: Path) -> Iterator[Haystack]:
    """The entries of a LongMemEval file or of a directory of such files, numbered from 1."""
    entries = (entry for file in data_files(path) for entry in read_json(file))
    for number, entry in enumerate(entries, 1):
        yield _haystack(entry, number)


def _haystack(entry: Mapping[str, Any], number: int) -> Haystack:
    names, dates, sessions = (
        entry[f"haystack_{part}"] for part in ("session_ids", "dates", "sessions")
    )
    conversations: list[ImportedConversation] = []
    marked: dict[str, set[MessageKey]] = {}
    for name, date, session in zip(names, dates, sessions, strict=True):
        # A session may stand in a haystack twice.
        again = sum(chat.key == name for chat in conversations)
        key = f"{name}-{again + 1}" if again else name
        time = read_time(date)
        turns = chained(
            (str(place), message["role"], message["content"], time, None)
            for place, message in enumerate(session)
        )
        if not turns:
            continue
        conversations.append(ImportedConversation("longmemeval", key, key.lower(), turns))
        answers = {turn.key for turn in turns if session[int(turn.key)].get("has_answer")}
        marked.setdefault(name, set()).update((key.lower(), answer) for answer in answers)
    wanted = [name for name in entry["answer_session_ids"] if name in marked]
    evidence = frozenset[MessageKey]().union(*(marked[name] for name in wanted))
    if not evidence:
        evidence = frozenset((name.lower(), "") for name in wanted)
    if entry["question_id"].endswith("_abs"):
        evidence = frozenset()
    question = Question(
        entry["question"].strip(),
        entry["question_type"],
        None,
        evidence,
        read_time(entry["question_date"]),
    )
    # Named by content, so that questions about the same sessions share one memory.
    digest = hashlib.sha256(json.dumps([names, dates, sessions]).encode()).hexdigest()
    return Haystack(f"lme-{digest[:16]}", number, tuple(conversations), (question,))
