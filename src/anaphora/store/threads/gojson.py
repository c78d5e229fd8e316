"""Bytes of a thread file in, turns out, and back, exactly as Go's encoding/json does both.

What Go would read is read: any order and case of keys, white space, unknown members, nulls; what
Go would refuse raises NotAThread. What is written is what Go writes, byte for byte, but for lone
surrogates: they are written as \\udXXX so that they survive (Go reads them as U+FFFD). Members
that Go does not know are carried along as raw text. Never touches a disk.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from anaphora.store.threads.gotime import ZERO_TIME, canonical_time, read_time
from anaphora.values.conversations import Thread, Turn


class NotAThread(ValueError):
    """Bytes that Go's encoding/json would not read as a conversation, and why."""


@dataclass(slots=True)
class Document:
    """A thread file taken apart.

    `raw_turns` are the turns as the file has them, `extras` the members Go does not know (key and
    value, raw), `splice` the bytes at which the list of turns ends and at which what follows the
    value of "updated" begins: None where turns cannot be added without writing the file anew.
    """

    conversation_id: str = ""
    title: str = ""
    turns: list[Turn] = field(default_factory=list)
    raw_turns: list[str] = field(default_factory=list)
    updated: str = ZERO_TIME
    extras: list[tuple[str, str]] = field(default_factory=list)
    splice: tuple[int, int] | None = None


def decode(data: bytes) -> Thread:
    """The thread in these bytes, its times as the file has them. Raises NotAThread."""
    document = parse(data)
    return Thread(
        conversation_id=document.conversation_id,
        turns=tuple(document.turns),
        updated=read_time(document.updated),
        updated_text=document.updated,
        title=document.title,
    )


def encode(thread: Thread) -> bytes:
    """The bytes that Go writes for this thread."""
    document = Document(
        conversation_id=thread.conversation_id,
        title=thread.title,
        raw_turns=[encode_turn(turn) for turn in thread.turns],
        updated=thread.updated_text,
    )
    head, tail = render(document)
    return head + tail


def render(document: Document) -> tuple[bytes, bytes]:
    """The document's bytes, in two: up to where the list of turns ends, and from there on."""
    title = f',"title":{escape(document.title)}' if document.title else ""
    head = f'{{"conversation_id":{escape(document.conversation_id)}{title},"turns":'
    turns = f"[{','.join(document.raw_turns)}" if document.raw_turns else ""
    # Go writes a list that was never filled as null.
    close = "]" if turns else "null"
    extras = "".join(f",{key}:{value}" for key, value in document.extras)
    tail = f'{close},"updated":"{canonical_time(document.updated)}"{extras}}}'
    return (head + turns).encode("utf-8"), tail.encode("utf-8")


def contains(raw: str, text: str) -> bool:
    """Whether a piece of JSON holds this text in one of its strings or keys."""
    plain = json.dumps(json.loads(raw, parse_int=str), ensure_ascii=False)
    return json.dumps(text, ensure_ascii=False)[1:-1] in plain


def encode_turn(turn: Turn) -> str:
    """One turn as Go writes it inside the list."""
    intent = f',"intent_id":{escape(turn.intent_id)}' if turn.intent_id else ""
    return (
        f'{{"role":{escape(turn.role)},"text":{escape(turn.text)}{intent}'
        f',"ts":"{canonical_time(turn.ts_text)}"}}'
    )


_GO_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}
_TO_ESCAPE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def escape(text: str) -> str:
    """A string as Go's encoding/json writes it, quotes included."""
    # Python's own escapes are Go's for quotes, backslashes and control characters.
    return _TO_ESCAPE.sub(_escape_one, json.dumps(text, ensure_ascii=False))


def _escape_one(match: re.Match[str]) -> str:
    character = match[0]
    return _GO_ESCAPES.get(character) or f"\\u{ord(character):04x}"


def _replace_each_byte(error: UnicodeError) -> tuple[str, int]:
    # Go puts one U+FFFD for each byte that is not UTF-8; Python's own handler joins some.
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("anaphora.go", _replace_each_byte)


class _Object(list[tuple[str, Any]]):
    """A JSON object as its pairs, so that repeated and oddly cased keys are seen as in Go."""


class _Number:
    """Some number: no field of a thread is one, and a number of a million digits is still read."""


def _refuse(constant: str) -> Any:
    raise NotAThread(f"{constant} is not JSON")


def _number(_text: str) -> _Number:
    return _Number()


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Object, parse_constant=_refuse, parse_int=_number, parse_float=_number
)
_SPACE = re.compile(r"[ \t\n\r]*")
_UPDATED_NEXT = re.compile(r'[ \t\n\r]*,[ \t\n\r]*"updated"[ \t\n\r]*:[ \t\n\r]*\Z')
_FIELDS = frozenset(("conversation_id", "title", "turns", "updated"))
_TURN_FIELDS = frozenset(("role", "text", "intent_id", "ts"))


def parse(data: bytes) -> Document:
    """Take a thread file apart. Raises NotAThread for what Go would refuse."""
    # One character for each byte that is not UTF-8, so that places in `text` are places in `data`.
    exact = data.decode("utf-8", "surrogateescape")
    text = exact if exact.isascii() else data.decode("utf-8", "anaphora.go")
    try:
        return _Reader(text, exact).document()
    except NotAThread:
        raise
    except RecursionError:
        raise NotAThread("it is nested too deeply") from None
    except ValueError as error:
        raise NotAThread(str(error)) from error


@dataclass(slots=True)
class _Member:
    key: str
    value: Any
    key_start: int
    start: int
    end: int


class _Reader:
    """One walk over the text of a file, noting where things stand."""

    def __init__(self, text: str, exact: str) -> None:
        self.text = text
        self.exact = exact
        self.turn_spans: list[tuple[int, int]] = []

    def document(self) -> Document:
        document = Document()
        start = self._skip(0)
        if self.text.startswith("null", start):
            # Go leaves the record as it was: empty.
            self._end(start + 4)
            return document
        if not self.text.startswith("{", start):
            self.value(start)
            raise NotAThread("it is no JSON object")
        members = list(self._members(start))
        known: list[_Member] = []
        for member in members:
            name = _field_name(member.key, _FIELDS)
            if name is None:
                raw_key = self.text[member.key_start : self._key_end(member.key_start)]
                document.extras.append((raw_key, self.text[member.start : member.end]))
            elif member.value is not None:
                self._assign(document, name, member)
                known.append(member)
        document.splice = self._splice(members, known)
        return document

    def _assign(self, document: Document, name: str, member: _Member) -> None:
        if name == "turns":
            if not isinstance(member.value, list) or isinstance(member.value, _Object):
                raise NotAThread('"turns" is no list')
            document.turns = [_turn(value) for value in member.value]
            document.raw_turns = [self.text[a:b] for a, b in self.turn_spans]
            return
        if not isinstance(member.value, str):
            raise NotAThread(f'"{name}" is no string')
        if name == "updated":
            read_time(member.value)
        setattr(document, name, member.value)

    def _splice(self, members: list[_Member], known: list[_Member]) -> tuple[int, int] | None:
        names = [m.key for m in members if _field_name(m.key, _FIELDS) in {"turns", "updated"}]
        places = {member.key: member for member in known}
        if names != ["turns", "updated"] or len(places.keys() & set(names)) < 2:
            return None
        turns, updated = places["turns"], places["updated"]
        if not _UPDATED_NEXT.match(self.text[turns.end : updated.start]):
            return None
        return self._bytes(turns.end - 1), self._bytes(updated.end)

    def _bytes(self, position: int) -> int:
        if self.text.isascii():
            return position
        return len(self.exact[:position].encode("utf-8", "surrogateescape"))

    def _members(self, start: int) -> Iterator[_Member]:
        position = self._skip(start + 1)
        if self._at(position) == "}":
            return self._end(position + 1)
        while True:
            key_start = position
            if self._at(position) != '"':
                raise NotAThread(f"a key is missing at character {position}")
            key, position = self.value(position)
            position = self._expect(":", self._skip(position))
            value_start = self._skip(position)
            if _field_name(key, _FIELDS) == "turns" and self._at(value_start) == "[":
                value, position = self._turns(value_start)
            else:
                value, position = self.value(value_start)
            yield _Member(key, value, key_start, value_start, position)
            position = self._skip(position)
            if self._at(position) == "}":
                return self._end(position + 1)
            position = self._skip(self._expect(",", position))

    def _turns(self, start: int) -> tuple[list[Any], int]:
        text, decode_one = self.text, _DECODER.raw_decode
        values: list[Any] = []
        spans = self.turn_spans = []
        position = self._skip(start + 1)
        if self._at(position) == "]":
            return values, position + 1
        while True:
            value, end = decode_one(text, position)
            values.append(value)
            spans.append((position, end))
            if text.startswith(",{", end):
                # What every writer without white space does: most turns end here.
                position = end + 1
                continue
            position = self._skip(end)
            if self._at(position) == "]":
                return values, position + 1
            position = self._skip(self._expect(",", position))

    def value(self, position: int) -> tuple[Any, int]:
        return _DECODER.raw_decode(self.text, position)

    def _key_end(self, start: int) -> int:
        return self.value(start)[1]

    def _skip(self, position: int) -> int:
        match = _SPACE.match(self.text, position)
        return match.end() if match else position

    def _at(self, position: int) -> str:
        return self.text[position : position + 1]

    def _expect(self, character: str, position: int) -> int:
        if self._at(position) != character:
            raise NotAThread(f"{character!r} is missing at character {position}")
        return position + 1

    def _end(self, position: int) -> None:
        if self._skip(position) != len(self.text):
            raise NotAThread(f"something follows the end at character {position}")


def _field_name(key: str, fields: frozenset[str]) -> str | None:
    """The field that Go would fill from this key: it does not heed case."""
    if key in fields:
        return key
    folded = key.casefold()
    return folded if folded in fields else None


def _turn(value: Any) -> Turn:
    """One element of the list, as Go fills a Turn from it: null changes nothing, the last wins."""
    if value is None:
        value = _Object()
    if not isinstance(value, _Object):
        raise NotAThread("a turn is no object")
    fields = _turn_fields(value)
    ts_text = fields.get("ts", ZERO_TIME)
    ts: datetime = read_time(ts_text)
    return Turn(
        role=fields.get("role", ""),
        text=fields.get("text", ""),
        ts=ts,
        ts_text=ts_text,
        intent_id=fields.get("intent_id", ""),
    )


def _turn_fields(pairs: list[tuple[str, Any]]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for key, content in pairs:
        name = key if key in _TURN_FIELDS else _field_name(key, _TURN_FIELDS)
        if name is None or content is None:
            continue
        if not isinstance(content, str):
            raise NotAThread(f'"{name}" of a turn is no string')
        fields[name] = content
    return fields
