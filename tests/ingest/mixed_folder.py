"""A folder as people have one: files of many programs, and one in ten of them broken."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_TIME: Final = "2026-03-10T09:00:00Z"


@dataclass(slots=True)
class MixedFolder:
    """What was written: the words of sound files, the names of broken ones, and of all others."""

    said: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def write_mixed(folder: Path, count: int) -> MixedFolder:
    """So many files, each tenth of them broken in another way. Broken ones have sound messages
    where the damage leaves some: they are in `said` as well."""
    mixed = MixedFolder()
    for number in range(count):
        below = folder / f"from-{number % 5}"
        below.mkdir(parents=True, exist_ok=True)
        if number % 10 == 9:
            kind = number // 10 % len(_BROKEN)
            name, words = _BROKEN[kind](below, number)
            mixed.broken.append(name)
        elif number % 10 == 8:
            name = f"other{number}.{('png', 'csv', 'txt', 'log')[number // 10 % 4]}"
            (below / name).write_text(f"a;b\n{number};2\n")
            mixed.others.append(name)
            words = []
        else:
            words = [f"The berth of boat {number} is free."]
            name, value = _SOUND[number % len(_SOUND)](number, words[0])
            _write(below / name, value)
        mixed.said += words
    return mixed


def _write(path: Path, value: object) -> None:
    if path.suffix == ".jsonl" and isinstance(value, list):
        path.write_text("".join(json.dumps(one) + "\n" for one in value))
    else:
        path.write_text(json.dumps(value))


def _plain(number: int, text: str) -> tuple[str, object]:
    return f"chat{number}.jsonl", [{"role": "user", "text": text, "ts": _TIME, "id": f"m{number}"}]


def _claude_code(number: int, text: str) -> tuple[str, object]:
    where = {"sessionId": f"s{number}", "uuid": f"u{number}", "timestamp": _TIME}
    return f"{number}.jsonl", [
        {"type": "user", "message": {"role": "user", "content": text}, **where}
    ]


def _codex(number: int, text: str) -> tuple[str, object]:
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return f"rollout-{number}.jsonl", [
        {"timestamp": _TIME, "type": "session_meta", "payload": {"id": f"c{number}"}},
        {"timestamp": _TIME, "type": "response_item", "payload": message},
    ]


def _gemini(number: int, text: str) -> tuple[str, object]:
    head: dict[str, Any] = {"sessionId": f"g{number}", "projectHash": "h"}
    return f"session-{number}.json", {**head, "messages": [{"type": "user", "content": text}]}


def _chatgpt(number: int, text: str) -> tuple[str, object]:
    message = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": [text]}}
    node: dict[str, Any] = {
        "id": "a",
        "parent": None,
        "children": [],
        "message": {"id": "a", **message},
    }
    return f"gpt{number}.json", [{"id": f"o{number}", "mapping": {"a": node}}]


def _claude_ai(number: int, text: str) -> tuple[str, object]:
    messages = [{"uuid": f"m{number}", "sender": "human", "text": text}]
    return f"ai{number}.json", [{"uuid": f"w{number}", "name": "Rota", "chat_messages": messages}]


def _sharegpt(number: int, text: str) -> tuple[str, object]:
    return f"share{number}.json", [
        {"id": f"k{number}", "conversations": [{"from": "human", "value": text}]}
    ]


def _mem0(number: int, text: str) -> tuple[str, object]:
    memory = {"id": f"m{number}", "memory": text, "user_id": "noor", "created_at": _TIME}
    return f"mem{number}.json", {"results": [memory]}


_SOUND: Final[tuple[Callable[[int, str], tuple[str, object]], ...]] = (
    _plain, _claude_code, _codex, _gemini, _chatgpt, _claude_ai, _sharegpt, _mem0,
)  # fmt: skip


def _bytes(name: str, data: bytes) -> Callable[[Path, int], tuple[str, list[str]]]:
    def write(below: Path, number: int) -> tuple[str, list[str]]:
        path = below / name.format(number)
        path.write_bytes(data)
        return path.name, []

    return write


def _cut(below: Path, number: int) -> tuple[str, list[str]]:
    """An export whose download broke off: the first chat is whole."""
    texts = [f"The tide table of day {number}.", f"Half of day {number}."]
    chats = [_sharegpt(number * 1000 + n, text)[1] for n, text in enumerate(texts)]
    whole = json.dumps([one for chat in chats for one in _listed(chat)])
    (below / f"cut{number}.json").write_text(whole[:-20])
    return f"cut{number}.json", texts[:1]


def _listed(value: object) -> Iterator[object]:
    if isinstance(value, list):
        yield from value


def _types(below: Path, number: int) -> tuple[str, list[str]]:
    """A session in which one message is of another type than all."""
    text = f"The buoy of day {number}."
    head = {"sessionId": f"b{number}", "projectHash": "h"}
    messages = [7, {"type": "user", "content": text}, ["x"]]
    _write(below / f"types{number}.json", {**head, "messages": messages})
    return f"types{number}.json", [text]


def _line(below: Path, number: int) -> tuple[str, list[str]]:
    text = f"The ladder of day {number}."
    lines = ['{"role": "user", "te', json.dumps({"role": "user", "text": text}), "[[]]"]
    (below / f"line{number}.jsonl").write_text("\n".join(lines))
    return f"line{number}.jsonl", [text]


def _half_zip(below: Path, number: int) -> tuple[str, list[str]]:
    path = below / f"half{number}.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("chat.jsonl", json.dumps({"role": "user", "text": "Lost."}) * 40)
    path.write_bytes(path.read_bytes()[:-40])
    return path.name, []


def _torn_database(below: Path, number: int) -> tuple[str, list[str]]:
    path = below / f"torn{number}.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE history (memory_id TEXT, new_memory TEXT, event TEXT)")
        connection.commit()
    path.write_bytes(path.read_bytes()[:600] + b"\xff" * 4_000)
    return path.name, []


_BROKEN: Final[tuple[Callable[[Path, int], tuple[str, list[str]]], ...]] = (
    _cut,
    _types,
    _line,
    _bytes("empty{}.json", b""),
    _bytes("noise{}.json", bytes(range(256)) * 8),
    _half_zip,
    _torn_database,
    _bytes("number{}.json", b"7"),
    _bytes("settings{}.json", b'{"theme": "dark", "lists": [1, 2]}'),
    _bytes("deep{}.json", b"[" * 5_000),
)
