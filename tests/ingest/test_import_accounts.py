"""What was given to an import is read, or told: what was left out, what failed, and why."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_command
from tests.exported import exported
from tests.ingest.memory_sources import MEM0_HISTORY, database
from tests.ingest.mixed_folder import write_mixed

from anaphora import ImportReport, Memory

# How the problem of a reader that fell over begins.
FAILED = "its reader failed"
CHAT = '{"role": "user", "text": "Where is the hose?"}\n'


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "given").mkdir()
    return tmp_path / "given"


def texts(memory: Memory) -> set[str]:
    names = [one.conversation_id for one in memory.conversations.list()]
    threads = [memory.conversations.get(name) for name in names]
    said = {turn.text for thread in threads if thread for turn in thread.turns}
    return said | {one["text"] for one in exported(memory, "memory")}


def told(report: ImportReport) -> str:
    left = [f"{kind} ({', '.join(names)})" for kind, names in report.left_out_files.items()]
    return " ".join([*left, *(f"{one.path} {one.reason}" for one in report.problems)])


@pytest.mark.promise("import.unknown")
def test_a_mixed_folder_comes_in_with_the_account_of_each(memory: Memory, folder: Path) -> None:
    """One in ten is broken: all others are read, and each broken one is told by its name."""
    mixed = write_mixed(folder, 100)
    report = memory.import_(folder)
    assert texts(memory) >= set(mixed.said)
    # What is whole JSON, and no chat, is a document.
    remarked = {Path(remark.path).name for remark in report.remarks}
    assert remarked == {"number79.json", "settings89.json"}
    assert all(name in told(report) for name in {*mixed.broken} - remarked)
    assert not [problem for problem in report.problems if FAILED in problem.reason]
    by_kind = {kind.split()[0]: count for kind, count in report.left_out.items()}
    assert by_kind == {"picture,": 3, ".log": 2, "empty": 1}
    assert report.documents_added == 7
    assert "other" in told(report), "files that may have held words are named"
    again = memory.import_(folder)
    assert (again.added, again.memories_added) == (0, 0)


@pytest.mark.promise("import.unknown")
@pytest.mark.parametrize("form", ["folder", "zip"])
@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {"a/x.yaml": "a: 1", "a/y.yaml": "b: 2", "a/z": ""},
            ".yaml file (x.yaml, y.yaml) empty file (z)",
        ),
        ({"a.png": "x", "b.png": "y"}, "picture, whose text an OCR must read first (a.png, b.png)"),
        ({"lease.pdf": "%PDF-1.4"}, "lease.pdf it is damaged"),
        ({}, ""),
    ],
)
def test_where_nothing_can_be_read_it_is_said(
    memory: Memory, folder: Path, tmp_path: Path, form: str, files: dict[str, str], words: str
) -> None:
    """Of a folder or zip file each file is told, with what it is."""
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    given = folder
    if form == "zip":
        given = tmp_path / "WhatsApp Chat.zip"
        with zipfile.ZipFile(given, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
    report = memory.import_(given)
    assert (report.files, words in told(report)) == (0, True)
    # Beside one that is read nothing of that is lost.
    (tmp_path / "good.jsonl").write_text(CHAT)
    report = memory.import_([given, tmp_path / "good.jsonl"])
    assert (report.added, words in told(report)) == (1, True)


@pytest.mark.promise("import.unknown")
def test_what_lies_beside_exports_is_named(memory: Memory, folder: Path, fixtures: Path) -> None:
    """Companions, hidden things and folders of programs are left out and told."""
    (folder / "conversations.json").write_bytes((fixtures / "claude_ai.json").read_bytes())
    for name in ("users.json", "projects.json"):
        (folder / name).write_text("[]")
    (folder / ".specstory").mkdir()
    (folder / "node_modules").mkdir()
    # A transcript is one by what is in it, whatever it is called.
    (folder / "session.log").write_text(CHAT)
    report = memory.import_(folder)
    assert "Where is the hose?" in texts(memory)
    for words in ("projects.json, users.json", ".specstory", "node_modules"):
        assert words in told(report)
    assert report.problems == ()


def test_a_known_format_with_nothing_in_it_is_no_success(tmp_path: Path) -> None:
    """The command says what it is, and does not exit as if something had come in."""
    path = database(tmp_path / "history.db", {"history": (MEM0_HISTORY, [])})
    ran = run_command("--home", tmp_path / "home", "import", path, environ=os.environ)
    assert ran.returncode == 5
    assert "left out: history.db: file with no conversation or memory in it" in ran.stdout


def test_a_file_of_two_formats_is_read_by_both(
    memory: Memory, tmp_path: Path, fixtures: Path
) -> None:
    """Each takes what has its keys; nothing is told of what the other takes."""
    chats = [
        json.loads((fixtures / f"{name}.json").read_text()) for name in ("chatgpt", "claude_ai")
    ]
    path = tmp_path / "all.json"
    path.write_text(json.dumps([chats[0][0], chats[1][0], *chats[0][1:], 7]))
    report = memory.import_(path)
    notes = exported(memory, "conversation_note")
    sources = {
        source: {note["source_key"] for note in notes if note["source"] == source}
        for source in ("chatgpt", "claude_ai")
    }
    assert [len(threads) for threads in sources.values()] == [len(chats[0]), 1]
    assert [problem.reason for problem in report.problems] == [
        "not a conversation: it has no mapping of messages"
    ]
    lines = tmp_path / "lines.jsonl"
    fact = {"id": "m", "memory": "Lives in Porto.", "user_id": "noor"}
    rollout = (fixtures / "claude_code.jsonl").read_text()
    lines.write_text(f"{json.dumps(fact)}\n{rollout}")
    report = memory.import_(lines)
    assert report.memories_added == 1
    assert report.added


def line(kind: str, number: int, content: Any, **more: Any) -> dict[str, Any]:
    at = {"sessionId": "s", "uuid": f"u{number}", "timestamp": "2026-03-02T09:00:00Z"}
    return {"type": kind, **at, "message": {"role": kind, "content": content}, **more}


GEMINI = {"sessionId": "a", "projectHash": "h"}
ODD: dict[str, tuple[object, list[str]]] = {
    "session-a.json": (
        {**GEMINI, "messages": [
            {"type": "user", "content": "Where is the ladder?"}, 7,
            {"type": "gemini", "content": "In the loft."},
            {"type": "gemini", "id": ["x"], "content": "In the loft."},
        ]},
        ["Where is the ladder?", "In the loft.", "In the loft."],
    ),
    "session-b.jsonl": (
        [GEMINI, {"type": "user", "content": "Where?"}, {"type": "gemini", "content": "There."}],
        ["Where?", "There."],
    ),
    "c.jsonl": (
        [line("user", 1, ["Caveat: local"], isMeta=True),
         line("user", 2, ["Where?", {"type": "x"}]),
         line("assistant", 3, [{"type": "text", "text": "There."}, "And here."])],
        ["Where?", "There.\n\nAnd here."],
    ),
    "conversation_1.txt": (
        {"conversation_turns": [{"user_turn": {"prompt": "Where?"}}, {"system_turn": {"text": 7}},
                                {"system_turn": {"text": "There."}}]},
        ["Where?", "There."],
    ),
}  # fmt: skip


@pytest.mark.promise("import.malformed")
@pytest.mark.parametrize("name", ODD)
def test_values_of_other_types_cost_themselves_alone(
    memory: Memory, tmp_path: Path, name: str
) -> None:
    """Messages without ids, blocks that are texts, texts that are numbers: the rest comes in."""
    value, expected = ODD[name]
    lines = value if name.endswith(".jsonl") and isinstance(value, list) else [value]
    (tmp_path / name).write_text("\n".join(map(json.dumps, lines)))
    report = memory.import_(tmp_path / name)
    threads = [memory.conversations.get(one.conversation_id) for one in memory.conversations.list()]
    assert [turn.text for thread in threads if thread for turn in thread.turns] == expected
    assert len({note["message_key"] for note in exported(memory, "turn_note")}) == len(expected)
    assert not [problem for problem in report.problems if FAILED in problem.reason]
