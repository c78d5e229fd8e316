"""Targets that read single values: filters, messages of the sandbox, names and times.

In: a private folder. Out: rooms. A filter is refused with its place or answers what a search over
everything answers; what the sandbox says is bounded; a name or a time is refused or comes back.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any

import pytest

from anaphora import Memory, MemoryRecord
from anaphora.calls.moments import EARLIEST, LATEST
from anaphora.errors import FilterError, InvalidId, InvalidInput
from anaphora.features.deep.sandbox.base import HostRefusal, SandboxLimits
from anaphora.features.deep.sandbox.crossing import HostCalls, Oversized, copy_plain
from anaphora.features.deep.sandbox.monty import MESSAGE_CHARS, Output, error_text, limit_of
from anaphora.features.importing.formats.base import Malformed
from anaphora.features.importing.formats.drafts import read_time as importers_time
from anaphora.store.filters import parse
from anaphora.store.line_fields import time_in
from anaphora.store.records.rows import as_mapping
from anaphora.store.threads.gojson import canonical_time, nanoseconds, read_time, utc_text
from anaphora.store.threads.ids import check_id, file_name, id_of, needs_content, safe_id

from .rooms import Room, as_json, dice, expect

__all__ = ["filters", "names_and_times", "sandbox"]

_WHEN = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
_FILTERS: tuple[dict[str, Any], ...] = (
    {"AND": [{"category": "birds"}, {"tags": {"contains": "bird"}}]},
    {"OR": [{"type": "episodic"}, {"NOT": {"path": {"startswith": "bird."}}}]},
    {"payload.a": 1, "payload.b.c": {"gte": 0.5, "lt": 10}},
    {"payload.list": {"contains": "x"}},
    {"created_at": {"gt": "2026-04-01T00:00:00Z", "lte": "2026-05-01T00:00:00.5+02:00"}},
    {"reinforce_count": {"in": [0, 1, 2]}, "parent": {"exists": False}},
    {"tags": ["bird", "x"], "source": {"ne": "book"}},
    {"tags": {"in": ["bird", "fish"]}, "id": {"exists": True}},
    {"payload.flag": True, "payload.text": {"startswith": "A", "contains": "\u00e9"}},
    {"NOT": {"NOT": {"expires_at": {"exists": True}}}},
)


@contextmanager
def filters(folder: Path, shared: Path | None) -> Iterator[Room]:
    """Filters, valid and nearly so, over memories that have a value of every kind."""
    with Memory.open(folder / "home", embedder="hashing", clock=lambda: _WHEN) as memory:
        payloads: tuple[dict[str, Any] | None, ...] = (
            None, {"a": 1, "b": {"c": 0.5}}, {"a": True, "b": {"c": 9}},
            {"a": "1", "b": [1, "x"]}, {"flag": True, "text": "A\u00e9"},
            {"list": ["x", 1, None, True, {"a": 1}], "flag": False},
            {"a": 2**63, "text": "A"}, {"a": None, "b": {"c": None}}, {"a": 1.0, "": {"": 1}},
        )  # fmt: skip
        for number, payload in enumerate(payloads):
            memory.remember(
                f"fact number {number} of herons",
                type=("semantic", "episodic", "procedural")[number % 3],
                category=(None, "birds", "Birds", "b\u00edrds")[number % 4],
                tags=((), ("bird",), ("bird", "x"), ("fish",))[number % 4],
                path=(None, f"bird.{number}")[number % 2],
                source=(None, "book")[number % 2],
                payload=payload,
                expires_at=(None, _WHEN + timedelta(days=30))[number % 2],
                created_at=_WHEN - timedelta(days=number * 9),
            )
        records = tuple(memory.list(limit=100))

        def check(data: bytes) -> None:
            try:
                given = json.loads(data)
            except (ValueError, RecursionError):
                return
            try:
                read = parse(given)
            except FilterError as error:
                expect(error.what.startswith("filters") and bool(error.reason), repr(error))
                return
            expected = {one.id for one in records if given is None or _lets(given, one)}
            assert {one.id for one in records if read.matches(as_mapping(one))} == expected
            if dice(data, 3) == 0:
                assert {one.id for one in memory.list(given, limit=100)} == expected
                hits = memory.recall("fact of herons", top_k=50, filters=given, min_score=-1.0)
                assert {hit.id for hit in hits} <= expected

        yield Room(as_json(*_FILTERS), check)


def _lets(given: Mapping[str, Any], record: MemoryRecord) -> bool:
    """What the table in docs/filters.md says, as plainly as it can be said."""
    for name, value in given.items():
        if name == "AND":
            fits = all(_lets(part, record) for part in value)
        elif name == "OR":
            fits = any(_lets(part, record) for part in value)
        elif name == "NOT":
            fits = not _lets(value, record)
        else:
            have = _value(record, name)
            wishes = value if isinstance(value, dict) else {"eq": value}
            fits = all(_holds(name, have, wish, want) for wish, want in wishes.items())
        if not fits:
            return False
    return True


def _value(record: MemoryRecord, name: str) -> Any:
    if not name.startswith("payload."):
        if name == "source":
            return record.sources[0] if record.sources else None
        return getattr(record, name)
    have: Any = record.payload
    for step in name.split(".")[1:]:
        have = have.get(step) if isinstance(have, Mapping) else None
    return have


_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}


def _holds(name: str, have: Any, wish: str, want: Any) -> bool:
    there = have is not None and have != ()
    if wish == "exists":
        return bool(there == want)
    if not there:
        return wish == "ne"
    if name == "tags":
        return _tags(set(have), wish, want)
    if name in ("created_at", "last_reinforced", "expires_at"):
        want = [read_time(one) for one in want] if wish == "in" else read_time(want)
    if wish == "in":
        return any(_equal(have, one) for one in want)
    if wish in ("eq", "ne"):
        return _equal(have, want) == (wish == "eq")
    if wish in ("contains", "startswith"):
        return _text_holds(have, wish, want)
    return _kind(have) == _kind(want) != "bool" and _ORDER[wish](have, want)


def _text_holds(have: Any, wish: str, want: Any) -> bool:
    if wish == "contains" and isinstance(have, list | tuple):
        return any(_equal(one, want) for one in have)
    if not isinstance(have, str) or not isinstance(want, str):
        return False
    return want in have if wish == "contains" else have[: len(want)] == want


def _tags(mine: set[str], wish: str, want: Any) -> bool:
    if wish in ("eq", "ne"):
        return (mine == set(want)) == (wish == "eq")
    if wish == "in":
        return bool(mine & set(want))
    return want in mine if wish == "contains" else any(tag.startswith(want) for tag in mine)


def _equal(one: Any, other: Any) -> bool:
    return _kind(one) == _kind(other) and bool(one == other)


def _kind(value: Any) -> str:
    plain_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if plain_number else type(value).__name__


@dataclass(frozen=True)
class _Frame:
    filename: str
    line: int
    function_name: str
    source_line: str


@dataclass
class _Said:
    """An error of the interpreter, as the host sees it."""

    text: str
    frames: list[_Frame] = field(default_factory=list)

    def display(self, form: str) -> str:
        return self.text

    def traceback(self) -> list[_Frame]:
        return self.frames


def _refuses(value: Any = None) -> Any:
    raise HostRefusal(str(value)[:50])


_LIMITS = SandboxLimits(argument_chars=20_000, result_chars=40_000, output_chars=500)
_CALLS = as_json(
    ["echo", ["heron", 3], {"limit": 5}], ["search", ["heron"], {}],
    ["twice", [[1, 2, {"a": 1}]], {}], ["refuses", [], {}], ["nobody", [], {}],
    ["search", [], {"query": "x", "limit": 2}], ["deep", [30], {}],
)  # fmt: skip


def _deep(depth: Any = 1) -> Any:
    value: Any = "x"
    for _ in range(int(depth) if isinstance(depth, int) and 0 < depth < 100 else 20):
        value = [value, value]
    return value


@contextmanager
def sandbox(folder: Path, shared: Path | None) -> Iterator[Room]:
    """Whatever a worker may send: calls, output, errors."""

    def search(query: Any, limit: Any = 5) -> Any:
        return [{"id": query, "text": query}] * (limit if isinstance(limit, int) else 1)

    calls = HostCalls(
        {
            "echo": lambda *given, **named: [list(given), named],
            "search": lambda query, limit=5: (
                search(query, min(limit, 999) if limit else 1) if isinstance(limit, int) else None
            ),
            "twice": lambda value: [value, value],
            "refuses": _refuses,
            "deep": _deep,
        },
        _LIMITS,
    )

    def check(data: bytes) -> None:
        text = data.decode("utf-8", ("replace", "surrogateescape")[dice(data, 2)])
        calls.begin(0.0)
        reply = calls.answer(text)
        calls.raise_foreign()
        assert set(reply) in ({"return_value"}, {"exc_type", "message"}), reply
        assert len(json.dumps(reply, ensure_ascii=False).encode()) < 8 * 1024 * 1024
        _printed(text)
        _failed(text)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return
        try:
            copied = copy_plain(value, 10_000)
        except Oversized:
            return
        json.dumps(copied, ensure_ascii=False).encode()

    yield Room(_CALLS, check)


def _printed(text: str) -> None:
    output = Output(500)
    for at in range(0, min(len(text), 50_000), 997):
        output.take(("stdout", "stderr")[(at // 997) % 2], text[at : at + 997])
    assert len(output.last_message()) <= MESSAGE_CHARS
    assert len(output.text()) < 500 + 100


def _failed(text: str) -> None:
    pieces = text.split(",")[:40]
    frames = [_Frame(f"<python-input-{p}>", n, p, text) for n, p in enumerate(pieces)]
    frames += [_Frame(p, -n, text, p) for n, p in enumerate(pieces)]
    error: Any = _Said(text, frames)
    assert len(error_text(error, {0: 1, 1: 2}, 1)) < 10_000
    limit_of(error)


_NAMES = as_json(
    ["name", "conv_5d21c0ffee"], ["name", "Con.Versation \u00e9\U0001f469"], ["name", "a" * 300],
    ["time", "2026-04-30T12:00:00Z"], ["time", "2026-04-30T12:00:00.123456789+02:00"],
    ["time", "0001-01-01T00:00:00Z"], ["time", 1714478400], ["time", 1714478400.5],
    ["time", "2026-04-30T1:00:00,5-07:30"], ["time", "30 April 2026"], ["time", "1714478400123"],
)  # fmt: skip


@contextmanager
def names_and_times(folder: Path, shared: Path | None) -> Iterator[Room]:
    """Ids of conversations, and times however they are written."""
    with Memory.open(folder / "home", embedder="hashing") as memory:
        memory.remember("the heron is grey")

        def check(data: bytes) -> None:
            try:
                given = json.loads(data)
            except (ValueError, RecursionError):
                return
            for value in (given if isinstance(given, list) else [given])[:4]:
                _time(memory, value)
                _name(memory, value)

        yield Room(_NAMES, check)


def _name(memory: Memory, value: Any) -> None:
    if isinstance(value, str):
        assert check_id(safe_id("chatgpt", value))
    try:
        name = check_id(value)
    except InvalidId:
        for refused in (memory.conversations.get, memory.conversations.delete, memory.scoped):
            with pytest.raises(InvalidInput):
                refused(value)
        return
    assert needs_content(file_name(name)) or id_of(file_name(name)) == name
    assert memory.conversations.append(name, "user", "a word")
    listed = {one.conversation_id for one in memory.conversations.list()}
    assert unicodedata.normalize("NFC", name) in listed
    assert [turn.text for turn in memory.conversations.recent(name)] == ["a word"]
    assert memory.conversations.delete(name)


def _time(memory: Memory, value: Any) -> None:
    try:
        moment = importers_time(value)
    except Malformed:
        moment = None
    assert moment is None or moment.utcoffset() is not None
    with suppress(ValueError):
        time_in({"at": value}, "at")
    if not isinstance(value, str):
        return
    try:
        at = read_time(value)
    except ValueError:
        return
    written = canonical_time(value)
    assert (read_time(written), canonical_time(written)) == (at, written)
    assert nanoseconds(written) == nanoseconds(value)
    # Beyond the years that there are in UTC the nearest moment stands for it, to the second.
    if at not in (EARLIEST, LATEST):
        assert nanoseconds(utc_text(value)) == nanoseconds(value)
    with suppress(InvalidInput):
        memory.recall("heron", as_of=at)
