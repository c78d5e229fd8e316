"""The development questions of the three lanes, asked through the facade.

In: the folder of data sets (bench/README.md says which), and an embedder. Out: for each question
the hits with their scores, in the recording. The readers are small and stand here, so that both
builds are asked the same.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tools.golden.recording import Recording

__all__ = ["ask_chats", "ask_projects"]

TOP = 10
_BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
_WRITTEN = _BEGIN.timestamp()


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation as (speaker, role, text), and what is asked of it."""

    name: str
    turns: list[tuple[str | None, str, str]]
    questions: list[str]


def chats(data: Path) -> Iterator[Chat]:
    """REALTALK's and BEAM's conversations."""
    for place in sorted((data / "conversations" / "realtalk").glob("*.json")):
        chat = json.loads(place.read_text("utf-8"))
        sessions = sorted(
            (k for k in chat if re.fullmatch(r"session_\d+", k)), key=lambda k: int(k[8:])
        )
        turns = [
            (turn["speaker"], "user", turn["clean_text"])
            for session in sessions
            for turn in chat[session]
            if turn.get("clean_text", "").strip()
        ]
        yield Chat(place.stem, turns, [one["question"] for one in chat["qa"]])
    for place in sorted((data / "conversations" / "beam-100k").glob("*/chat.json")):
        batches = json.loads(place.read_text("utf-8"))
        said: list[tuple[str | None, str, str]] = [
            (None, turn["role"], turn["content"])
            for batch in batches
            for group in batch["turns"]
            for turn in group
            if turn["content"].strip()
        ]
        asked = json.loads((place.parent / "probing_questions.json").read_text("utf-8"))
        questions = [one["question"] for kind in asked.values() for one in kind]
        yield Chat(f"beam-{place.parent.name}", said, questions)


def ask_chats(
    open_memory: Callable[[str], Any], data: Path, record: Recording, tell: Callable[[str], None]
) -> None:
    """Every chat as a conversation and as memories, each question asked of both."""
    from anaphora import NewMemory

    for chat in chats(data):
        tell(f"{chat.name}: {len(chat.turns)} turns, {len(chat.questions)} questions")
        with open_memory(chat.name) as memory:
            for place, (speaker, role, text) in enumerate(chat.turns):
                at = _BEGIN + timedelta(minutes=7 * place)
                memory.conversations.append("chat", role, text, ts=at, speaker=speaker)
            memory.remember_many(
                [
                    NewMemory(text, created_at=_BEGIN + timedelta(minutes=7 * place))
                    for place, (_, _, text) in enumerate(chat.turns)
                ]
            )
            memory.ready()
            for number, asked in enumerate(chat.questions):
                turns = memory.recall_conversation("chat", asked, top_k=TOP, budget=100_000)
                record.keep(
                    f"{chat.name}/turns {number}",
                    [(hit.index, hit.score, hit.factors) for hit in turns],
                )
                found = memory.recall(asked, top_k=TOP)
                record.keep(
                    f"{chat.name}/memories {number}",
                    [(hit.text[:60], hit.score, hit.factors) for hit in found],
                )


def ask_projects(
    open_memory: Callable[[str], Any],
    data: Path,
    folder: Path,
    record: Recording,
    tell: Callable[[str], None],
) -> None:
    """Every project's files laid out and indexed, every commit subject and bug report asked."""
    for name, files, questions in _projects(data):
        tell(f"{name}: {len(files)} files, {len(questions)} questions")
        root = folder / name
        for path, text in files.items():
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text)
        # What was written a moment ago is looked at again: old files make the looks the same.
        for place in (*root.rglob("*"), root):
            os.utime(place, (_WRITTEN, _WRITTEN))
        with open_memory(name) as memory:
            report = memory.index_project(root, name=name)
            record.keep(f"{name}/indexed", report)
            memory.ready()
            for number, asked in enumerate(questions):
                record.keep(
                    f"{name}/package {number}",
                    memory.recall_context(asked, include_sources=True),
                )


def _projects(data: Path) -> Iterator[tuple[str, Mapping[str, bytes], list[str]]]:
    for place in sorted((data / "projects" / "history").glob("*.json")):
        project = json.loads(place.read_text("utf-8"))
        files = {path: text.encode() for path, text in project["files"].items()}
        yield place.stem, files, [one["query"] for one in project["queries"]]
    issues = data / "projects" / "issues" / "swebench-dev.sqlite"
    with sqlite3.connect(f"file:{issues}?mode=ro", uri=True) as connection:
        rows = connection.execute("SELECT instance_id, query FROM instance ORDER BY 1").fetchall()
        for instance, query in rows:
            blobs = connection.execute(
                "SELECT f.path, b.z FROM file f JOIN blob b ON b.sha = f.sha "
                "WHERE f.instance_id = ? ORDER BY 1",
                (instance,),
            )
            yield instance, {path: zlib.decompress(z) for path, z in blobs}, [query]
