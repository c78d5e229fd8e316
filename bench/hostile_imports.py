"""Files to import of a size, of each format: ordinary ones, and those made to be slow to read.

In: a size in bytes. Out: the bytes of a file that has about as many.
"""

from __future__ import annotations

import io
import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Final

from bench.hostile_files import SAID, Maker, nested, repeated

_TEXT: Final = SAID.decode() * 10
_TIME: Final = "2026-03-10T09:00:00.000Z"
_PAIRS: Final = "key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB"


def _filled(size: int, items: Iterable[Any]) -> Iterator[str]:
    """As many items as JSON as fit."""
    left = size
    for item in items:
        text = json.dumps(item)
        left -= len(text) + 2
        if left < 0:
            return
        yield text


def lines(make: Callable[[int], Any], head: Sequence[Any] = ()) -> Maker:
    """Files of one value a line."""

    def made(size: int) -> bytes:
        first = [json.dumps(one) for one in head]
        return "\n".join([*first, *_filled(size, map(make, count()))]).encode() + b"\n"

    return made


def array(make: Callable[[int], Any], before: str = "[", behind: str = "]") -> Maker:
    """Files of one array."""

    def made(size: int) -> bytes:
        return f"{before}{','.join(_filled(size, map(make, count())))}{behind}".encode()

    return made


def _database(tables: Mapping[str, tuple[str, Callable[[int], Sequence[Any]]]]) -> Maker:
    """Databases of SQLite with these tables: their columns, and what makes each row."""

    def made(size: int) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.db")
            with closing(sqlite3.connect(path)) as connection:
                for name, (columns, row) in tables.items():
                    connection.execute(f"CREATE TABLE {name} ({columns})")
                    marks = ", ".join("?" * len(row(0)))
                    rows = map(row, range(size // len(tables) // (len(_TEXT) + 100)))
                    connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
                connection.commit()
            return path.read_bytes()

    return made


def _said_in_turn(number: int) -> str:
    return "assistant" if number % 2 else "user"


def _chatgpt(parent: Callable[[int], str]) -> Maker:
    """A chat of ChatGPT, whose messages each follow what `parent` says."""

    def message(number: int) -> str:
        said = {
            "id": f"m{number}",
            "author": {"role": _said_in_turn(number)},
            "create_time": 1772709000.25 + number,
            "content": {"content_type": "text", "parts": [_TEXT]},
        }
        node = {"id": f"m{number}", "message": said, "parent": parent(number), "children": []}
        return f'"m{number}": {json.dumps(node)}'

    def made(size: int) -> bytes:
        nodes = ",".join(map(message, range(size // (len(_TEXT) + 220))))
        root = '"root": {"id": "root", "message": null, "parent": null, "children": []}'
        head = '[{"title": "Harbour", "create_time": 1772708999.25, "mapping": {'
        return f"{head}{root},{nodes}}}}}]".encode()

    return made


def _claude_code(parent: Callable[[int], str | None]) -> Maker:
    def line(number: int) -> dict[str, Any]:
        role = _said_in_turn(number)
        message = {"role": role, "content": _TEXT}
        where = {"sessionId": "s1", "cwd": "/home/kim/shop", "timestamp": _TIME}
        return {
            "type": role,
            "uuid": f"m{number}",
            "parentUuid": parent(number),
            "message": message,
            **where,
        }

    return lines(line)


def _zip(size: int) -> bytes:
    """A zip file of many small chats."""
    file = io.BytesIO()
    line = json.dumps({"role": "user", "text": _TEXT})
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(size // len(line)):
            archive.writestr(f"{number}.jsonl", line)
    return file.getvalue()


_ACTIVITY: Final = (
    b'<div class="outer-cell mdl-cell"><div class="header-cell"><p>Gemini Apps<br></p></div>'
    b'<div class="content-cell">Prompted&nbsp;' + SAID + b"<br>Mar 3, 2026, 6:25:05 AM PST<br><p>"
    + SAID * 5 + b"</p></div></div>"
)  # fmt: skip
_EXPORT: Final = {
    "anaphora": "export",
    "version": 1,
    "program": "1",
    "created": _TIME,
    "namespaces": ["default"],
}
_MEMORY: Final = {
    "kind": "memory",
    "namespace": "default",
    "type": "semantic",
    "text": _TEXT,
    "created_at": _TIME,
    "events": [{"kind": "added", "at": _TIME}],
}


def _export(part: bytes) -> Maker:
    return repeated(part, json.dumps(_EXPORT).encode() + b"\n")


IMPORTS: Final[Mapping[str, tuple[str, Maker]]] = {
    "JSON Lines": ("a.jsonl", lines(
        lambda n: {"role": _said_in_turn(n), "text": _TEXT, "conversation_id": f"c{n // 20}"}
    )),
    "JSON Lines, one chat": ("a.jsonl", lines(lambda n: {"role": "user", "text": "six"})),
    "JSON Lines, broken": ("a.jsonl", repeated(b'{"role": "user", "text": "six"\n')),
    "JSON Lines, []": ("a.jsonl", repeated(b"[]\n")),
    "ChatGPT": ("conversations.json", _chatgpt(lambda n: f"m{n - 1}" if n else "root")),
    "ChatGPT, all branches": ("conversations.json", _chatgpt(lambda n: "root")),
    "ChatGPT, parents in a ring": ("conversations.json", _chatgpt(lambda n: f"m{n + 1}")),
    "Claude.ai": ("conversations.json", array(lambda n: {
        "uuid": f"c{n}", "name": "Rota", "created_at": _TIME, "updated_at": _TIME,
        "chat_messages": [
            {"uuid": f"m{n}", "sender": "human", "text": _TEXT, "created_at": _TIME}
        ],
    })),
    "Claude Code": ("a.jsonl", _claude_code(lambda n: f"m{n - 1}" if n else None)),
    "Claude Code, branches": ("a.jsonl", _claude_code(lambda n: "m0" if n else None)),
    "Claude Code, no parents": ("a.jsonl", _claude_code(lambda n: f"x{n}")),
    "Claude Code, one command": ("a.jsonl", lambda size: lines(
        lambda n: {"type": "user", "uuid": "m", "parentUuid": None, "sessionId": "s",
                   "timestamp": _TIME,
                   "message": {"role": "user", "content": "<command-name>" * (size // 14)}}
    )(size + 200)),
    "Cursor, one query": ("a.jsonl", lambda size: lines(
        lambda n: {"role": "user", "message": {"content": [
            {"type": "text", "text": " " * (size // 2) + "<user_query>" * (size // 24)}]}}
    )(size + 200)),
    "Codex": ("rollout-a.jsonl", lines(
        lambda n: {"timestamp": _TIME, "type": "response_item", "payload": {
            "type": "message", "role": _said_in_turn(n),
            "content": [{"type": "input_text", "text": _TEXT}]}},
        [{"timestamp": _TIME, "type": "session_meta", "payload": {"id": "s1", "cwd": "/home"}}],
    )),
    "Gemini CLI": ("session-a.jsonl", lines(
        lambda n: {"id": f"g{n}", "timestamp": _TIME, "type": ("user", "gemini")[n % 2],
                   "content": _TEXT},
        [{"sessionId": "s1", "projectHash": "c0ffee", "startTime": _TIME, "lastUpdated": _TIME}],
    )),
    "Cursor, transcript": ("a.jsonl", lines(lambda n: {
        "role": _said_in_turn(n), "message": {"content": [{"type": "text", "text": _TEXT}]},
    })),
    "Cursor, database": ("state.vscdb", _database({
        "ItemTable": (_PAIRS, lambda n: (f"other{n}", json.dumps({"text": _TEXT}))),
        "cursorDiskKV": (_PAIRS, lambda n: (f"composerData:{n}", json.dumps({
            "composerId": str(n), "createdAt": 1735725600000,
            "conversation": [{"bubbleId": "o1", "type": 1, "text": _TEXT}],
        }).encode())),
    })),
    "VS Code": ("a.json", array(
        lambda n: {"requestId": f"r{n}", "timestamp": 1771920000000, "message": {"text": _TEXT},
                   "response": [{"value": _TEXT}]},
        '{"version": 3, "requesterUsername": "teo", "responderUsername": "GitHub Copilot", '
        '"sessionId": "s1", "creationDate": 1771920000000, "requests": [', "]}",
    )),
    "VS Code, log": ("a.jsonl", lines(
        lambda n: {"kind": 2, "k": ["requests"], "v": [
            {"requestId": f"r{n}", "timestamp": 1771930000000, "message": {"text": _TEXT},
             "response": [{"value": "six"}]}]},
        [{"kind": 0, "v": {"version": 3, "creationDate": 1771930000000, "sessionId": "s1",
                           "responderUsername": "GitHub Copilot", "requests": []}}],
    )),
    "VS Code, log of one place": ("a.jsonl", lines(
        lambda n: {"kind": 1, "k": ["requests", 0, "response"], "v": [{"value": f"six {n}"}]},
        [{"kind": 0, "v": {"version": 3, "creationDate": 1771930000000, "sessionId": "s1",
                           "responderUsername": "GitHub Copilot", "requests": [
                               {"requestId": "r", "message": {"text": "When?"}}]}}],
    )),
    "Gemini, activity": ("MyActivity.json", array(lambda n: {
        "header": "Gemini Apps", "title": f"Prompted six {n}", "time": _TIME,
        "products": ["Gemini Apps"], "safeHtmlItem": [{"html": f"<p>{_TEXT}</p>"}],
    })),
    "Gemini, HTML": ("MyActivity.html", repeated(_ACTIVITY, b"<html><body>")),
    "Gemini, HTML, <a": ("MyActivity.html", repeated(b"<a ", b"<html><body>" + _ACTIVITY)),
    "Gemini, HTML, </": ("MyActivity.html", repeated(b"</", b"<html><body>" + _ACTIVITY)),
    "mem0": ("a.json", array(
        lambda n: {"id": f"m{n}", "memory": _TEXT, "hash": "a", "created_at": _TIME,
                   "user_id": "noor"},
        '{"results": [', "]}",
    )),
    "mem0, history": ("history.db", _database({"history": (
        "id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, "
        "created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT",
        lambda n: (f"h{n}", f"m{n // 3}", None, _TEXT, "ADD", _TIME, None, 0, None, None),
    )})),
    "claude-mem": ("claude-mem.db", _database({
        "observations": (
            "id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, text TEXT, type TEXT, "
            "title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT,"
            " files_modified TEXT, prompt_number INTEGER, created_at TEXT, "
            "created_at_epoch INTEGER",
            lambda n: (n, "m-1", "shop", None, "bugfix", f"Totals {n}", None,
                       json.dumps([_TEXT]), None, "[]", "[]", "[]", 1, _TIME, 1778051289000),
        ),
        "sdk_sessions": (
            "id INTEGER PRIMARY KEY, content_session_id TEXT, memory_session_id TEXT, "
            "project TEXT, user_prompt TEXT, started_at TEXT, started_at_epoch INTEGER",
            lambda n: (n, f"c-{n}", f"m-{n}", "shop", _TEXT, _TIME, 1778051289000),
        ),
    })),
    "MCP memory": ("memory.json", lines(lambda n: {
        "type": "entity", "name": f"e{n}", "entityType": "person", "observations": [_TEXT],
    })),
    "MCP memory, relations": ("memory.json", lines(lambda n: {
        "type": "relation", "from": f"e{n}", "to": "e0", "relationType": "knows",
    })),
    "Letta": ("a.af", array(
        lambda n: {"created_at": _TIME, "role": _said_in_turn(n), "text": _TEXT,
                   "tool_calls": [], "tool_returns": []},
        '{"agent_type": "memgpt_agent", "name": "librarian", "version": "0.6.50", "system": "a", '
        '"core_memory": [], "message_indices": [0], "tags": [], "tools": [], "messages": [', "]}",
    )),
    "Zep": ("a.json", array(
        lambda n: {"uuid": f"m{n}", "created_at": _TIME, "role": "Ines", "role_type": "user",
                   "content": _TEXT},
        '{"sessions": [{"session_id": "s", "user_id": "u", "created_at": "2026-02-01T10:00:00Z", '
        '"messages": [', "]}]}",
    )),
    "ShareGPT": ("a.json", array(lambda n: {
        "id": f"k{n}", "conversations": [{"from": "human", "value": _TEXT}],
    })),
    "Neo": ("conv_5d21c0ffee5d21c0ffee.json", array(
        lambda n: {"role": _said_in_turn(n), "text": _TEXT, "ts": "2026-01-05T09:00:00Z"},
        '{"conversation_id": "conv_5d21c0ffee5d21c0ffee", "title": "Rent", '
        '"updated": "2026-01-05T09:00:04.5Z", "turns": [', "]}",
    )),
    "note": ("a.md", repeated(b"# Harbour\n\n" + SAID * 20 + b"\n\n")),
    "note, [[": ("a.md", repeated(b"[[")),
    "note, #": ("a.md", repeated(b"#a ")),
    "note, ![](": ("a.md", repeated(b"![](")),
    "note, * blanks": ("a.md", repeated(b" ", b"- [a]", b"b")),
    "note, front matter": ("a.md", repeated(b"a: [b, c]\n", b"---\n")),
    "note, blanks in front matter": (
        "a.md", repeated(b" ", b"---\na: b", b"c\n- d\n---\n\n# Harbour\n\nIt opens.\n")),
    "basic-memory": ("a.md", repeated(
        b"- [decision] " + SAID + b"#queue (after it)\n- replaces [[Redis queue]]\n",
        b"---\ntitle: a\npermalink: a/b\n---\n\n# a\n",
    )),
    "basic-memory, blanks": ("a.md", repeated(
        b" ", b"---\ntitle: a\npermalink: a/b\n---\n\n# a\n- [decision] a", b"(b\n")),
    "JSON, [": ("a.json", repeated(b"[")),
    "JSON, {": ("a.json", repeated(b'{"a":')),
    "JSON, [] within": ("a.json", nested(b"[", b"]")),
    "JSON, damaged": ("a.json", repeated(
        b'{"id": "k", "conversations": [{"from": "human", "value": }]},', b"[")),
    "JSON, no end": ("a.json", repeated(b"a", b'[{"id": "k", "conversations": "')),
    "JSON, \\": ("a.json", repeated(b"\\", b'[{"id": "k", "conversations": "')),
    "JSON, quotes": ("a.json", repeated(b'{"', b"[")),
    "JSON, digits": ("a.json", repeated(b"9", b"[", b"]")),
    "JSON, values": ("a.json", repeated(b"0,", b"[", b"0]")),
    "zip": ("a.zip", _zip),
}  # fmt: skip

EXPORTS: Final[Mapping[str, Maker]] = {
    "export": _export(json.dumps(_MEMORY | {"id": "m1"}).encode() + b"\n"),
    "export, one line": lambda size: _export(
        json.dumps(_MEMORY | {"id": "m1", "text": "a" * size}).encode() + b"\n"
    )(size + 300),
    "export, [] in a line": lambda size: _export(b"[" + b"[]," * (size // 3) + b"[]]\n")(size + 9),
    "export, [ in a line": lambda size: _export(b"[" * size + b"\n")(size + 1),
    "export, digits": lambda size: _export(b'{"a": ' + b"9" * size + b"}\n")(size + 9),
    "export, broken lines": _export(b'{"kind": "memory"\n'),
}
