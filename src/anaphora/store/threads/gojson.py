"""Thread files as Go's encoding/json reads and writes them, byte for byte, times included.

What Go would read is read: any order and case of keys, white space, unknown members, nulls; what
Go would refuse raises NotAThread. Members that Go does not know are carried along as raw text.
What is written is what Go writes, but for lone surrogates: they are written as \\udXXX so that
they survive (Go reads them as U+FFFD). A datetime holds microseconds and Go writes nanoseconds:
to give back the same bytes keep a time's text, to compare use `nanoseconds`.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from anaphora.calls.moments import EARLIEST, LATEST, has_utc
from anaphora.values.conversations import Thread, Turn

REDACTED = "[redacted]"
# A shorter text, such as "yes", is redacted in its own turn alone.
_REDACT_ELSEWHERE = 8
ZERO_TIME = "0001-01-01T00:00:00Z"
"""What Go writes for a time that was never set."""

_AT_THE_ENDS = ("0000-", "0001-01-", "9999-12-")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Go takes an hour of one digit and a comma before the fraction; it never writes them.
_RFC3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{1,2})(:[0-5][0-9]:[0-5][0-9])(?:[.,]([0-9]+))?"
    r"(Z|[+-][0-9]{2}:[0-5][0-9])\Z"
)
_CANONICAL = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}(?:\.[0-9]{0,8}[1-9])?"
    r"(?:Z|[+-](?!00:00)[0-9]{2}:[0-5][0-9])\Z"
)


def read_time(text: str) -> datetime:
    """The instant, with the offset of the text, cut to microseconds. ValueError if Go refuses it.

    The year 0, which Go knows and Python does not, reads as the first instant that Python has; so
    does, or as the last one, what leaves the years 1 to 9999 in UTC.
    """
    if _CANONICAL.match(text) and not text.startswith(_AT_THE_ENDS):
        # Python cuts what is beyond microseconds.
        return datetime.fromisoformat(text)
    date, clock, fraction, zone = _split_time(text)
    if date.startswith("0000-"):
        datetime.fromisoformat("0004" + date[4:])
        return EARLIEST
    instant = datetime.fromisoformat(f"{date}T{clock}.{fraction[:6]}{zone}")
    if has_utc(instant):
        return instant
    return EARLIEST if date.startswith("0001-") else LATEST


def sound_time(text: object) -> str:
    """The text, if it is a time that `read_time` reads; else `ZERO_TIME`."""
    if isinstance(text, str):
        with suppress(ValueError):
            read_time(text)
            return text
    return ZERO_TIME


def nanoseconds(text: str) -> int:
    """Nanoseconds since 1970 in UTC, exact to the nine digits that Go keeps."""
    instant = read_time(text)
    return (instant - _EPOCH) // _MICROSECOND * 1000 + int(_split_time(text)[2][6:])


def format_time(instant: datetime) -> str:
    """An aware datetime as Go writes it: its own offset, no trailing zeros in the fraction."""
    offset = instant.utcoffset()
    if offset is None:
        raise ValueError("the time has no offset")
    if offset % timedelta(minutes=1):
        # RFC 3339 has no seconds in an offset, and Go refuses to write such a time.
        instant = instant.astimezone(UTC)
    return canonical_time(instant.isoformat(timespec="microseconds"))


def utc_text(text: str) -> str:
    """The same instant in UTC, every digit of its fraction kept."""
    if text.endswith("Z"):
        return canonical_time(text)
    fraction = _split_time(text)[2]
    seconds = read_time(text).astimezone(UTC).isoformat(timespec="seconds")
    return canonical_time(f"{seconds[:19]}.{fraction}Z")


def canonical_time(text: str) -> str:
    """The text that Go would write after it has read this one; ValueError if it refuses it."""
    if _CANONICAL.match(text):
        return text
    date, clock, fraction, zone = _split_time(text)
    fraction = fraction.rstrip("0")
    zone = "Z" if zone[1:] == "00:00" else zone
    return f"{date}T{clock}{'.' if fraction else ''}{fraction}{zone}"


def _split_time(text: str) -> tuple[str, str, str, str]:
    """Date, time of day, fraction of exactly nine digits, and zone."""
    match = _RFC3339.match(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is not an RFC 3339 time")
    date, hour, minutes, fraction, zone = match.groups()
    return date, hour.zfill(2) + minutes, ((fraction or "") + "000000000")[:9], zone


class NotAThread(ValueError):
    """Bytes that Go's encoding/json would not read as a conversation, and why."""


@dataclass(slots=True)
class ThreadDocument:
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

    def thread(self, conversation_id: str, turns: Iterable[Turn]) -> Thread:
        """The thread of this id and with these turns, the rest as the file has it."""
        updated_at = read_time(self.updated)
        return Thread(conversation_id, tuple(turns), updated_at, self.updated, self.title)


def decode(data: bytes) -> Thread:
    """The thread in these bytes, its times as the file has them. Raises NotAThread."""
    document = parse(data)
    return document.thread(document.conversation_id, document.turns)


def encode(thread: Thread) -> bytes:
    """The bytes that Go writes for this thread."""
    return b"".join(render(document_of(thread)))


def document_of(thread: Thread) -> ThreadDocument:
    """A thread file that has this thread."""
    turns = list(thread.turns)
    raw_turns = [encode_turn(turn) for turn in turns]
    return ThreadDocument(
        thread.conversation_id, thread.title, turns, raw_turns, thread.updated_text
    )


def render(document: ThreadDocument) -> tuple[bytes, bytes]:
    """The document's bytes, in two: up to where the list of turns ends, and from there on."""
    title = f',"title":{escape(document.title)}' if document.title else ""
    head = f'{{"conversation_id":{escape(document.conversation_id)}{title},"turns":'
    turns = f"[{','.join(document.raw_turns)}" if document.raw_turns else ""
    # Go writes a list that was never filled as null.
    closing_text = "]" if turns else "null"
    extras = "".join(f",{key}:{member}" for key, member in document.extras)
    tail = f'{closing_text},"updated":"{canonical_time(document.updated)}"{extras}}}'
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
    return _TO_ESCAPE.sub(
        lambda match: _GO_ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}",
        json.dumps(text, ensure_ascii=False),
    )


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


def parse(data: bytes) -> ThreadDocument:
    """Take a thread file apart. Raises NotAThread for what Go would refuse."""
    # One character for each byte that is not UTF-8, so that places in `text` are places in `data`.
    exact = data.decode("utf-8", "surrogateescape")
    text = exact if exact.isascii() else data.decode("utf-8", "anaphora.go")
    try:
        return _JsonWalk(text, exact).document()
    except NotAThread:
        raise
    except RecursionError:
        raise NotAThread("it is nested too deeply") from None
    except ValueError as error:
        raise NotAThread(str(error)) from error


@dataclass(slots=True)
class _JsonMember:
    key: str
    value: Any
    key_start: int
    start: int
    end: int


class _JsonWalk:
    """One walk over the text of a file, noting where things stand."""

    def __init__(self, text: str, exact: str) -> None:
        self.text = text
        self.exact = exact
        self.turn_spans: list[tuple[int, int]] = []

    def document(self) -> ThreadDocument:
        document = ThreadDocument()
        start = self._skip(0)
        if self.text.startswith("null", start):
            # Go leaves the record as it was: empty.
            self._end(start + 4)
            return document
        if not self.text.startswith("{", start):
            self.value(start)
            raise NotAThread("it is not a JSON object")
        members = list(self._members(start))
        assigned_members: list[_JsonMember] = []
        for member in members:
            name = _field_name(member.key, _FIELDS)
            if name is None:
                raw_key = self.text[member.key_start : self.value(member.key_start)[1]]
                document.extras.append((raw_key, self.text[member.start : member.end]))
            elif member.value is not None:
                self._assign(document, name, member)
                assigned_members.append(member)
        document.splice = self._splice(members, assigned_members)
        return document

    def _assign(self, document: ThreadDocument, name: str, member: _JsonMember) -> None:
        if name == "turns":
            if not isinstance(member.value, list) or isinstance(member.value, _Object):
                raise NotAThread('"turns" is not a list')
            document.turns = [_turn(element) for element in member.value]
            document.raw_turns = [self.text[a:b] for a, b in self.turn_spans]
            return
        if not isinstance(member.value, str):
            raise NotAThread(f'"{name}" is not a string')
        if name == "updated":
            read_time(member.value)
        setattr(document, name, member.value)

    def _splice(
        self, members: list[_JsonMember], assigned: list[_JsonMember]
    ) -> tuple[int, int] | None:
        names = [m.key for m in members if _field_name(m.key, _FIELDS) in {"turns", "updated"}]
        members_by_key = {member.key: member for member in assigned}
        if names != ["turns", "updated"] or len(members_by_key.keys() & set(names)) < 2:
            return None
        turns, updated_member = members_by_key["turns"], members_by_key["updated"]
        if not _UPDATED_NEXT.match(self.text[turns.end : updated_member.start]):
            return None
        return self._bytes(turns.end - 1), self._bytes(updated_member.end)

    def _bytes(self, position: int) -> int:
        if self.text.isascii():
            return position
        return len(self.exact[:position].encode("utf-8", "surrogateescape"))

    def _members(self, start: int) -> Iterator[_JsonMember]:
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
            yield _JsonMember(key, value, key_start, value_start, position)
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
            raise NotAThread(f"unexpected data after the end, at character {position}")


def _field_name(key: str, fields: frozenset[str]) -> str | None:
    """The field that Go would fill from this key: it does not heed case."""
    if key in fields:
        return key
    folded_key = key.casefold()
    return folded_key if folded_key in fields else None


def _turn(element: Any) -> Turn:
    """One element of the list, as Go fills a Turn from it: null changes nothing, the last wins."""
    if element is None:
        element = _Object()
    if not isinstance(element, _Object):
        raise NotAThread("a turn is not an object")
    fields: dict[str, str] = {}
    for key, content in element:
        name = key if key in _TURN_FIELDS else _field_name(key, _TURN_FIELDS)
        if name is None or content is None:
            continue
        if not isinstance(content, str):
            raise NotAThread(f'"{name}" of a turn is not a string')
        fields[name] = content
    ts_text = fields.get("ts", ZERO_TIME)
    ts: datetime = read_time(ts_text)
    return Turn(
        role=fields.get("role", ""),
        text=fields.get("text", ""),
        ts=ts,
        ts_text=ts_text,
        intent_id=fields.get("intent_id", ""),
    )


def redact_turn(document: ThreadDocument, index: int) -> list[int]:
    """Take the words of a turn out of a document; the positions of the turns that changed."""
    words = document.turns[index].text
    elsewhere = len(words.strip()) >= _REDACT_ELSEWHERE and words != REDACTED
    changed_positions: list[int] = []
    for position, turn in enumerate(document.turns):
        text = REDACTED if position == index else turn.text
        if elsewhere and position != index:
            text = text.replace(words, REDACTED)
        changes = position == index or text != turn.text
        if not changes and elsewhere:
            # A turn may have members that Go does not know, with the words in them.
            raw = document.raw_turns[position]
            changes = raw != encode_turn(turn) and contains(raw, words)
        if changes:
            document.turns[position] = replace(turn, text=text)
            document.raw_turns[position] = encode_turn(document.turns[position])
            changed_positions.append(position)
    if elsewhere:
        document.title = document.title.replace(words, REDACTED)
        document.extras = [extra for extra in document.extras if not contains(extra[1], words)]
    return changed_positions


def latest(updated: str, turns: Sequence[Turn]) -> str:
    """The latest of a time and the turns' times: the text itself, or a turn's in UTC."""
    last_time = max((turn.ts_text for turn in turns), key=nanoseconds, default=updated)
    return utc_text(last_time) if nanoseconds(last_time) > nanoseconds(updated) else updated
