"""JSON values out of a file, one at a time, with the place of each; damage is reported, not fatal.

In: a file of any size, in UTF-8 (with or without BOM), UTF-16 or UTF-32. Out: `Record`s (the
elements of its top-level array, its single value, or the value of each line) and `ImportProblem`s.
Never holds more than one value and a read-ahead. A value beyond the file's bounds is never built:
it is passed over as it is read, and reported.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from anaphora.ingest.importers.base import ImportFile, Sample, Shape
from anaphora.ingest.importers.json_text import (
    CHUNK,
    Broken,
    Buffer,
    Text,
    decode,
    is_crowded,
    said,
    too_long,
    too_many,
)
from anaphora.values.conversations import ImportProblem

_SAMPLE_LINES = 50
_SAMPLE_ELEMENTS = 3
# Behind so many bytes no more values are looked at: each may be large.
_SAMPLE_BYTES = 16 << 20
# A damaged array is searched for its next element at this many places, and no further.
_RECOVERY_TRIES = 20_000
_RECOVERY_TOO_DEEP = 50
_RECOVERY_CHARACTERS = 1 << 30


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON value: `number` counts from 1 (damaged ones count too), `place` says where it is."""

    value: object
    number: int
    place: str


def records(
    file: ImportFile, accept: Callable[[object], bool] | None = None
) -> Iterator[Record | ImportProblem]:
    """Every value of the file: one a line, or the elements of its array, as the file is.

    `accept` tells an element from an object that lies within one: it decides where reading goes
    on after damage in an array (any object without it).
    """
    if _shape(file) == "lines":
        return _lines(file)
    return _elements(file, accept or (lambda value: isinstance(value, dict)))


def sample(file: ImportFile, accept: Callable[[object], bool] | None = None) -> Sample:
    """The first values of the file, to tell its format by; `accept` as for `records`."""
    shape = _shape(file)
    limit = _SAMPLE_LINES if shape == "lines" else _SAMPLE_ELEMENTS
    values: list[object] = []
    problem: ImportProblem | None = None
    for record in itertools.islice(records(file, accept), limit):
        if isinstance(record, Record):
            values.append(record.value)
        else:
            problem = problem or record
        if values and file.consumed > _SAMPLE_BYTES:
            break
    return Sample(file, shape, tuple(values), problem)


def _shape(file: ImportFile) -> Shape:
    """How the file is laid out, judged by its first characters."""
    with file.open() as raw:
        try:
            start = Text(raw).read(CHUNK)
        except UnicodeError:
            return "elements"
    lines = [line for line in start.split("\n") if line.strip()]
    if not lines:
        return "elements"
    if len(lines) > 1:
        first = decode(lines[0].strip(), 0, whole=True)
        if not isinstance(first, Broken):
            return "lines"
        if lines[0].lstrip()[0] != "[" and any(map(_object_line, lines[1:])):
            return "lines"
        if lines[0].lstrip()[0] not in "[{":
            return "lines"
    return "lines" if file.name.lower().endswith((".jsonl", ".ndjson")) else "elements"


def _object_line(line: str) -> bool:
    if not line.startswith("{"):
        return False
    value = decode(line.rstrip(), 0, whole=True)
    return isinstance(value, tuple) and isinstance(value[0], dict) and bool(value[0])


def _lines(file: ImportFile) -> Iterator[Record | ImportProblem]:
    with file.open() as raw:
        text = Text(raw)
        for number in itertools.count(1):
            try:
                line = text.readline(file.bounds.characters)
                beyond = len(line) >= file.bounds.characters and _drop_rest(text, line)
            except UnicodeError as error:
                yield file.problem(f"line {number}", f"not valid {text.encoding}: {error}")
                return
            if not line:
                break
            stripped = "" if beyond else line.strip("\ufeff \t\r\n")
            if beyond:
                yield file.problem(f"line {number}", too_long(file.bounds))
            elif stripped:
                yield _line(file, stripped, number)
        yield from text.misread_problem(file)


def _drop_rest(text: Text, line: str) -> bool:
    """Read to the end of a line without holding it; False if it had ended already."""
    cut = False
    while line and not line.endswith("\n"):
        line = text.readline(CHUNK)
        cut = cut or bool(line)
    return cut


def _line(file: ImportFile, text: str, number: int) -> Record | ImportProblem:
    if is_crowded(text, 0, file.bounds):
        return file.problem(f"line {number}", too_many(file.bounds))
    found = decode(text, 0, whole=True)
    if isinstance(found, Broken):
        return file.problem(f"line {number}, column {found.position + 1}", said(found))
    return Record(found[0], number, f"line {number}")


def _elements(
    file: ImportFile, accept: Callable[[object], bool]
) -> Iterator[Record | ImportProblem]:
    with file.open() as raw:
        text = Text(raw)
        buffer = Buffer(text, file.bounds)
        try:
            yield from _values(file, buffer, accept)
        except UnicodeError as error:
            yield file.problem("", f"not valid {text.encoding}: {error}")
        yield from text.misread_problem(file)


def _values(
    file: ImportFile, buffer: Buffer, accept: Callable[[object], bool]
) -> Iterator[Record | ImportProblem]:
    if buffer.peek() == "\ufeff":
        buffer.position += 1
    first = buffer.peek()
    if not first:
        yield file.problem("line 1, column 1", "the file is empty")
        return
    if first == "[":
        buffer.position += 1
        whole = yield from _array(file, buffer, accept)
        if not whole:
            return
    else:
        place = buffer.where(buffer.position)
        found = buffer.decode()
        if isinstance(found, Broken):
            yield file.problem(buffer.where(found.position), said(found))
            if not found.beyond:
                return
            buffer.skip()
        else:
            yield Record(found[0], 1, place)
    if buffer.peek():
        yield file.problem(buffer.where(buffer.position), "text after the end of the JSON value")


def _array(
    file: ImportFile, buffer: Buffer, accept: Callable[[object], bool]
) -> Generator[Record | ImportProblem, None, bool]:
    """The elements of an array whose bracket was read; returns whether its end was found."""
    for number in itertools.count(1):
        if buffer.peek() == "]":
            buffer.position += 1
            return True
        if number > 1:
            yield from _comma(file, buffer)
        if not buffer.peek():
            yield file.problem(buffer.where(buffer.position), "the file ends within the array")
            return False
        place = f"element {number}, {buffer.where(buffer.position)}"
        found: Broken | tuple[object] | None = buffer.decode()
        if isinstance(found, Broken):
            where = f"element {number}, {buffer.where(found.position)}"
            yield file.problem(where, said(found))
            if found.beyond:
                buffer.skip()
                continue
            found = _find_next(buffer, found, accept)
            place = f"{where}, behind the damage"
        if found is None:
            return False
        yield Record(found[0], number, place)
    return False


def _comma(file: ImportFile, buffer: Buffer) -> Iterator[ImportProblem]:
    character = buffer.peek()
    if character == ",":
        buffer.position += 1
    elif character:
        yield file.problem(buffer.where(buffer.position), "a comma is missing")


def _find_next(
    buffer: Buffer, broken: Broken, accept: Callable[[object], bool]
) -> tuple[object] | None:
    """The next object behind the damage that is an element, wrapped; None if there is none."""
    # The damaged element itself begins at the position: what follows is looked for behind it.
    buffer.position = max(broken.position, buffer.position + 1)
    too_deep = looked_at = 0
    for _ in range(_RECOVERY_TRIES):
        dear = too_deep > _RECOVERY_TOO_DEEP or looked_at > _RECOVERY_CHARACTERS
        if dear or not _to_object(buffer):
            return None
        found = buffer.decode()
        if isinstance(found, Broken):
            too_deep += found.too_deep or found.beyond
            looked_at += found.looked_at(buffer.text) - buffer.position
            buffer.position += 1
        elif accept(found[0]):
            return found
    return None


def _to_object(buffer: Buffer) -> bool:
    """Move to the next "{" that may begin an element: one that is no member's value."""
    while True:
        at = buffer.text.find("{", buffer.position)
        if at < 0:
            buffer.position = len(buffer.text)
            if not buffer.more():
                return False
            continue
        buffer.position = at
        before = buffer.text[max(0, at - 200) : at].rstrip()[-1:]
        if before != ":":
            return True
        buffer.position += 1
