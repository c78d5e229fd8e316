"""JSON values out of a file, one at a time, with the place of each; damage is reported, not fatal.

A file in UTF-8 (with or without BOM), UTF-16 or UTF-32, of any size, gives `JsonRecord`s (the
elements of its top-level array, its single value, or the value of each line) and `ImportProblem`s.
Only one value and a read-ahead are held; a value beyond the bounds is passed over, never built.
"""

from __future__ import annotations

import io
import itertools
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass

from anaphora.features.importing.formats.base import (
    UNEXPECTED,
    Format,
    ImportFile,
    ImportItem,
    Sample,
    Shape,
    as_object,
    too_long,
    why,
)
from anaphora.features.importing.formats.sqlite_reader import MAGIC, tables_of
from anaphora.ingest.bounds import Bounds
from anaphora.store.nesting import is_too_deep
from anaphora.values.conversations import ImportProblem

CHUNK = 1 << 16
_SAMPLE_LINES = 50
_SAMPLE_ELEMENTS = 3
# Behind so many bytes no more values are looked at: each may be large.
_SAMPLE_BYTES = 16 << 20
# A damaged array is searched for its next element at this many places, and no further.
_RECOVERY_TRIES = 20_000
_RECOVERY_TOO_DEEP = 50
_RECOVERY_CHARACTERS = 1 << 30

_DEEP = "nested too deeply"
_DIGITS = "a number has too many digits"
_UNTERMINATED = "Unterminated string"
# A cut-off literal is shown by an error at most this far before the end of the text.
_LITERAL = len("-Infinity")

_UNDECODED = re.compile("[\udc80-\udcff]")
_SPACE = re.compile(r"[ \t\r\n]*")
# Of a value that is passed over: what opens, ends or parts something.
_MARK = re.compile(r'["\[\]{},]')
# Within it: a run of plain characters, whole strings, and brackets that hold no others.
_FLAT = re.compile(
    r"""(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+"|\{[^"\[\]{}]*+\}|\[[^"\[\]{}]*+\])*+""", re.DOTALL
)
# NaN and the infinities are not JSON, but Python and JavaScript programs write them: no value.
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)

Accept = Callable[[object], bool]
"""Tells an element of an array from an object within one: where reading goes on behind damage."""


@dataclass(frozen=True, slots=True)
class JsonRecord:
    """One JSON value, and `place`, which says where in the file it is."""

    value: object
    place: str


def records(file: ImportFile, accept: Accept | None = None) -> Iterator[JsonRecord | ImportProblem]:
    """Every value of the file: one a line, or the elements of its array, as the file is.

    Behind damage in an array, reading goes on at the next value that `accept` takes for an element
    (any object without it).
    """
    if _detect_shape(file) == "lines":
        values = _lines(file)
    else:
        values = _read_elements(file, accept or (lambda value: isinstance(value, dict)))
    is_wanted = file.wanted
    if is_wanted is None:
        return values
    # Of a file that several formats share, what is for the one that reads it now.
    return (
        record
        for record in values
        if (is_wanted(record.value) if isinstance(record, JsonRecord) else not file.later)
    )


def read_log(
    file: ImportFile,
    take: Callable[[JsonRecord], Iterable[ImportItem] | None],
    results: Callable[[], Iterator[ImportItem]],
    accept: Accept | None = None,
) -> Iterator[ImportItem]:
    """The items of a file with one message per value: `take` adds each, or raises Malformed.

    `results` returns the items added so far, at the end and whenever `file` holds more than its
    bounds allow.
    """
    for record in records(file, accept):
        if isinstance(record, ImportProblem):
            yield record
            continue
        try:
            yield from take(record) or ()
        except UNEXPECTED as error:
            yield file.problem(record.place, why(error))
        if file.held > file.bounds.characters:
            yield from results()
    yield from results()


def conversation_format(
    name: str,
    accept: Accept,
    lacking: str,
    read: Callable[[ImportFile, dict[str, object], str], Iterator[ImportItem]],
    *,
    detect: Callable[[Sample], bool] | None = None,
) -> Format:
    """A format with whole conversations as its values: objects that `accept` takes.

    `read` gets the file, the object and its place; any other value is a problem, and `lacking` says
    why. A sample with a conversation is of this format; `detect` replaces this rule.
    """

    def conversations(file: ImportFile) -> Iterator[ImportItem]:
        for record in records(file, accept):
            if isinstance(record, ImportProblem):
                yield record
            elif not accept(record.value):
                yield file.problem(record.place, lacking)
            else:
                try:
                    yield from read(file, as_object(record.value, "a conversation"), record.place)
                except UNEXPECTED as error:
                    yield file.problem(record.place, why(error))

    return Format(name, detect or (lambda sample: any(map(accept, sample.values))), conversations)


def sample(file: ImportFile, accept: Accept | None = None) -> Sample:
    """The first values of the file, to tell its format by; `accept` as for `records`."""
    with file.open() as raw:
        head = raw.peek(CHUNK)[:CHUNK]
    if head.startswith(MAGIC):
        return Sample(file, "database", (), None, head, tables_of(file))
    shape = _detect_shape(file)
    limit = _SAMPLE_LINES if shape == "lines" else _SAMPLE_ELEMENTS
    values: list[object] = []
    problem: ImportProblem | None = None
    for record in itertools.islice(records(file, accept), limit):
        if isinstance(record, JsonRecord):
            values.append(record.value)
        else:
            problem = problem or record
        if values and file.consumed > _SAMPLE_BYTES:
            break
    return Sample(file, shape, tuple(values), problem, head)


def _detect_shape(file: ImportFile) -> Shape:
    """The layout of the file, judged by its first characters."""
    with file.open() as raw:
        try:
            start = _Text(raw).read(CHUNK)
        except UnicodeError:
            return "elements"
    lines = [line for line in start.split("\n") if line.strip()]
    if not lines:
        return "elements"
    if len(lines) > 1:
        first_line = lines[0].strip()
        if not isinstance(_decode(first_line, 0, whole=True), _Damage) or first_line[0] not in "[{":
            return "lines"
        # Damage in the first line: an object on another one tells.
        objects = (_decode(line.rstrip(), 0, whole=True) for line in lines[1:] if line[0] == "{")
        if first_line[0] == "{" and any(
            isinstance(decoded_object, tuple)
            and isinstance(decoded_object[0], dict)
            and decoded_object[0]
            for decoded_object in objects
        ):
            return "lines"
    return "lines" if file.name.lower().endswith((".jsonl", ".ndjson")) else "elements"


def _lines(file: ImportFile) -> Iterator[JsonRecord | ImportProblem]:
    with file.open() as raw:
        text = _Text(raw)
        for number in itertools.count(1):
            try:
                line = text.readline(file.bounds.characters)
                is_beyond, end = False, line
                if len(line) >= file.bounds.characters:
                    # Read to the end of the line without holding it.
                    while end and not end.endswith("\n"):
                        end = text.readline(CHUNK)
                        is_beyond = is_beyond or bool(end)
            except UnicodeError as error:
                yield file.problem(f"line {number}", f"not valid {text.encoding}: {error}")
                return
            if not line:
                break
            stripped_line = line.strip("\ufeff \t\r\n")
            if is_beyond:
                yield file.problem(f"line {number}", too_long(file.bounds))
            elif stripped_line:
                yield _line(file, stripped_line, number)
        yield from text.misread_problem(file)


def _line(file: ImportFile, text: str, number: int) -> JsonRecord | ImportProblem:
    if _is_crowded(text, 0, file.bounds):
        return file.problem(f"line {number}", _refuse_many(file.bounds))
    decoded_line = _decode(text, 0, whole=True)
    if isinstance(decoded_line, _Damage):
        return file.problem(
            f"line {number}, column {decoded_line.position + 1}", decoded_line.in_words()
        )
    return JsonRecord(decoded_line[0], f"line {number}")


def _read_elements(file: ImportFile, accept: Accept) -> Iterator[JsonRecord | ImportProblem]:
    with file.open() as raw:
        text = _Text(raw)
        try:
            buffer = _Buffer(text, file.bounds)
            if buffer.peek() == "\ufeff":
                buffer.position += 1
            first = buffer.peek()
            complete = bool(first)
            if not first:
                yield file.problem("line 1, column 1", "the file is empty")
            elif first == "[":
                buffer.position += 1
                complete = yield from _read_array(file, buffer, accept)
            else:
                start = buffer.where(buffer.position)
                decoded = buffer.decode()
                if isinstance(decoded, _Damage):
                    yield file.problem(buffer.where(decoded.position), decoded.in_words())
                    complete = decoded.beyond
                    if complete:
                        buffer.skip()
                else:
                    yield JsonRecord(decoded[0], start)
            if complete and buffer.peek():
                end = buffer.where(buffer.position)
                yield file.problem(end, "unexpected text after the JSON value")
        except UnicodeError as error:
            yield file.problem("", f"not valid {text.encoding}: {error}")
        yield from text.misread_problem(file)


def _read_array(
    file: ImportFile, buffer: _Buffer, accept: Accept
) -> Generator[JsonRecord | ImportProblem, None, bool]:
    """The elements of an array after its opening bracket; returns whether its end was found."""
    for number in itertools.count(1):
        character = buffer.peek()
        if character == "]":
            buffer.position += 1
            return True
        if number > 1 and character == ",":
            buffer.position += 1
        elif number > 1 and character:
            yield file.problem(buffer.where(buffer.position), "a comma is missing")
        if not buffer.peek():
            yield file.problem(buffer.where(buffer.position), "the file ends inside the array")
            return False
        position = f"element {number}, {buffer.where(buffer.position)}"
        decoded_element: _Damage | tuple[object] | None = buffer.decode()
        if isinstance(decoded_element, _Damage):
            element_place = f"element {number}, {buffer.where(decoded_element.position)}"
            yield file.problem(element_place, decoded_element.in_words())
            if decoded_element.beyond:
                buffer.skip()
                continue
            decoded_element = _find_next(buffer, decoded_element, accept)
            position = f"{element_place}, behind the damage"
        if decoded_element is None:
            return False
        yield JsonRecord(decoded_element[0], position)
    return False


def _find_next(buffer: _Buffer, damage: _Damage, accept: Accept) -> tuple[object] | None:
    """The next object behind the damage that is an element, wrapped; None if there is none."""
    # The damaged element itself begins at the position: what follows is looked for behind it.
    buffer.position = max(damage.position, buffer.position + 1)
    too_deep = looked_at = 0
    for _ in range(_RECOVERY_TRIES):
        dear = too_deep > _RECOVERY_TOO_DEEP or looked_at > _RECOVERY_CHARACTERS
        if dear or not buffer.to_object():
            return None
        decoded_element = buffer.decode()
        if not isinstance(decoded_element, _Damage):
            if accept(decoded_element[0]):
                return decoded_element
            continue
        too_deep += decoded_element.too_deep or decoded_element.beyond
        # The decoder reads a string that has no end to the end of the text.
        is_unterminated = decoded_element.reason.startswith(_UNTERMINATED)
        read_to = len(buffer.text) if is_unterminated else decoded_element.position
        looked_at += read_to - buffer.position
        buffer.position += 1
    return None


@dataclass(frozen=True, slots=True)
class _Damage:
    """Why a value could not be decoded, and at which character of the text.

    `beyond`: it is beyond a bound, and was not decoded at all.
    """

    reason: str
    position: int
    too_deep: bool = False
    beyond: bool = False

    def in_words(self) -> str:
        """The reason as a problem tells it."""
        self_explaining = self.beyond or self.reason in {_DEEP, _DIGITS}
        return self.reason if self_explaining else f"not valid JSON: {self.reason}"


def _decode(text: str, position: int, *, whole: bool = False) -> tuple[object, int] | _Damage:
    """The value that starts at `position` and where it ends: the only function that decodes JSON.

    With `whole` nothing may follow it. RecursionError (nesting beyond what the decoder bears) and
    the interpreter's limit on the digits of a number end here.
    """
    try:
        decoded_value, end = _DECODER.raw_decode(text, position)
        if is_too_deep(decoded_value, text, position, end):
            return _Damage(_DEEP, position, too_deep=True)
    except json.JSONDecodeError as error:
        return _Damage(error.msg, error.pos)
    except RecursionError:
        return _Damage(_DEEP, position, too_deep=True)
    except ValueError:
        return _Damage(_DIGITS, position)
    if whole and end != len(text):
        return _Damage("Extra data", end)
    return decoded_value, end


def _is_crowded(text: str, start: int, bounds: Bounds) -> bool:
    """Whether more values than a file may have within one lie in `text` from `start` on."""
    if len(text) - start <= bounds.parts:
        return False
    return sum(text.count(mark, start) for mark in "[{,") > bounds.parts


def _refuse_many(bounds: Bounds) -> str:
    return f"more than {bounds.parts:,} values within one; it was skipped"


class _Text:
    """Characters of a file. A byte that is not UTF-8 is read as Windows-1252, and counted.

    That is what such a byte nearly always is, and the words stay readable; the reader reports it.
    """

    def __init__(self, raw: io.BufferedReader) -> None:
        head = raw.peek(4)[:4]
        self.encoding = json.detect_encoding(head) if head else "utf-8"
        utf8 = self.encoding.startswith("utf-8")
        # A lone surrogate may stand in UTF-16 text as it may in Go's and JavaScript's strings.
        errors = "surrogateescape" if utf8 else "surrogatepass"
        self._stream = io.TextIOWrapper(raw, encoding=self.encoding, errors=errors, newline="\n")
        self._misread = 0
        self._first_misread_line = 0
        self._lines = 1

    def read(self, size: int) -> str:
        """At most this many characters, none at the end."""
        return self._clean(self._stream.read(size))

    def readline(self, most: int) -> str:
        """The rest of a line, at most this many characters of it."""
        return self._clean(self._stream.readline(most))

    def misread_problem(self, file: ImportFile) -> Iterator[ImportProblem]:
        """A problem with the number of bytes read in another encoding, if there were any."""
        if self._misread:
            yield file.problem(
                f"line {self._first_misread_line}",
                f"{self._misread} bytes of this file are not UTF-8; they were read as Windows-1252",
            )

    def _clean(self, text: str) -> str:
        bad = None if text.isascii() else _UNDECODED.search(text)
        if bad:
            if not self._misread:
                self._first_misread_line = self._lines + text.count("\n", 0, bad.start())
            text, count = _UNDECODED.subn(_windows_1252, text)
            self._misread += count
        self._lines += text.count("\n")
        return text


def _windows_1252(match: re.Match[str]) -> str:
    byte = bytes([ord(match[0]) - 0xDC00])
    try:
        return byte.decode("cp1252")
    except UnicodeDecodeError:
        # Five bytes mean nothing there; Latin-1 gives every byte a character.
        return byte.decode("latin-1")


class _Buffer:
    """Text read ahead, the position in it, and the line and column where it begins."""

    def __init__(self, source: _Text, bounds: Bounds) -> None:
        self.text = ""
        self.position = 0
        self._source = source
        self._bounds = bounds
        self._line = 1
        self._column = 1
        self._ended = False

    def peek(self) -> str:
        """The next character that is no space, "" at the end; the position moves to it."""
        while True:
            end = _SPACE.match(self.text, self.position)
            self.position = end.end() if end else self.position
            if self.position < len(self.text):
                return self.text[self.position]
            if not self._read_more():
                return ""

    def decode(self) -> _Damage | tuple[object]:
        """The value here, wrapped, with the position moved behind it.

        One beyond the bounds is not decoded; the position stays, for `skip`.
        """
        while True:
            decoded_value = _decode(self.text, self.position)
            if isinstance(decoded_value, _Damage):
                # Whether text that follows could complete the value.
                is_unfinished = decoded_value.reason.startswith(
                    (_UNTERMINATED, _DIGITS)
                ) or decoded_value.position + _LITERAL >= len(self.text)
                if self._ended or decoded_value.too_deep or not is_unfinished:
                    return decoded_value
                # All of the text from the position on belongs to the value.
                if len(self.text) - self.position > self._bounds.characters:
                    return _Damage(too_long(self._bounds), self.position, beyond=True)
                if _is_crowded(self.text, self.position, self._bounds):
                    return _Damage(_refuse_many(self._bounds), self.position, beyond=True)
                if not self._read_more():
                    return decoded_value
                continue
            element, end = decoded_value
            if (
                end == len(self.text)
                and not isinstance(element, dict | list | str)
                and self._read_more()
            ):
                continue
            self.position = end
            return (element,)

    def skip(self) -> None:
        """Move behind the value here, or to the end of the file, without holding it."""
        depth = 0
        while True:
            # What next opens, ends or parts something outside of strings.
            mark = _MARK.search(self.text, self.position)
            self.position = mark.start() if mark else len(self.text)
            if mark is None:
                if not self._read_more():
                    return
                continue
            character = self.text[self.position]
            if not depth and character in ",]}":
                return
            self.position += 1
            if character == '"' and not self._move_behind_string():
                self.position = len(self.text)
                return
            depth += (character in "[{") - (character in "]}")
            if not depth and character != ",":
                return
            if depth:
                flat = _FLAT.match(self.text, self.position)
                self.position = flat.end() if flat else self.position

    def to_object(self) -> bool:
        """Move to the next "{" that may begin an element: one that is no member's value."""
        while True:
            at = self.text.find("{", self.position)
            self.position = at if at >= 0 else len(self.text)
            if at < 0:
                if not self._read_more():
                    return False
            elif self.text[max(0, at - 200) : at].rstrip()[-1:] != ":":
                return True
            else:
                self.position += 1

    def where(self, position: int) -> str:
        """Line and column of a position, both from 1."""
        lines_before = self.text.count("\n", 0, position)
        start = self.text.rfind("\n", 0, position)
        column = position - start if lines_before else self._column + position
        return f"line {self._line + lines_before}, column {column}"

    def _read_more(self) -> bool:
        """Read on; False at the end. Each time as much again, so that retrying stays linear."""
        if self._ended:
            return False
        # What lies behind the position is forgotten.
        lines_before = self.text.count("\n", 0, self.position)
        last_newline = self.text.rfind("\n", 0, self.position)
        self._column = (
            self.position - last_newline if lines_before else self._column + self.position
        )
        self._line += lines_before
        self.text = self.text[self.position :]
        self.position = 0
        # No more than what may be decoded without having been counted.
        read = self._source.read(max(CHUNK, min(len(self.text), 2 * self._bounds.parts)))
        self._ended = not read
        self.text += read
        return bool(read)

    def _move_behind_string(self) -> bool:
        """Move behind the end of the string within which the position lies."""
        while True:
            quote = self.text.find('"', self.position)
            text_before = self.text[self.position : quote if quote >= 0 else len(self.text)]
            is_escaped = (len(text_before) - len(text_before.rstrip("\\"))) % 2
            if quote >= 0:
                self.position = quote + 1
                if not is_escaped:
                    return True
                continue
            # A backslash at the end waits for what it stands before.
            self.position = len(self.text) - is_escaped
            if not self._read_more():
                return False
