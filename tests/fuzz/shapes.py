"""Files whose keys and types are changed, one at a time, and still whole: JSON, databases of
SQLite, zip files, XML and HTML by attribute, mail by header, PDF by token.

In: a file's name and bytes. Out: the bytes of one that a program of another version, or a careless
one, might write. The same seed gives the same. Every importer and reader of documents gets them.
"""

from __future__ import annotations

import copy
import io
import json
import re
import sqlite3
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.document_files import docx, mail, pdf
from tests.hostile import write_transcripts
from tests.ingest.memory_sources import BUILT

from anaphora import ImportProblem
from anaphora.errors import InvalidInput, UnreadableDocument
from anaphora.features.documents.reading.base import DocumentLimits
from anaphora.features.documents.reading.working import read_and_cut
from anaphora.features.importing.formats import detect, found_imports
from anaphora.features.importing.formats.base import FAILED

from .mutating import Mutator
from .rooms import OWN, Room, dice, expect
from .samples import INVITATION, OTHERS

__all__ = ["mutant", "shapes"]

_NOTHING: Final = object()
_OTHERS: Final[tuple[Any, ...]] = (
    None, True, 0, -1, 7, 1.5, 1e300, 10**30, "", " ", "x", "\ud800", "2026-02-30", [], {}, [None],
    [7], ["x"], [["x"]], [{}], {"text": 7}, {"": None}, [{"text": None}, 7, "x"],
)  # fmt: skip
_SQL: Final[tuple[Any, ...]] = (
    None,
    0,
    7,
    -1,
    1.5,
    1 << 62,
    "",
    "x",
    "[]",
    "{}",
    "7",
    b"",
    b"\xff\x00",
)
_TEXTS: Final = (
    b"", b"-1", b"0", b"x", b"99999999999999999999", b"undefined", b"idna", b"utf-16", b"\xff\xfe",
    b"=?x?q?=ff?=", b"=?utf-8?b?/////w==?=", b"a/b; charset=undefined", b"multipart/mixed",
    b"&#xd800;", b"Mon, 99 Foo 2026 25:61:61 +9999", b"<>", b"base64", b"x-uuencode", b'"',
)  # fmt: skip
_ATTRIBUTE: Final = re.compile(rb"""\s([\w:.-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s>"']+)""")
_ELEMENT: Final = re.compile(rb"<(/?)([A-Za-z][\w:.-]*)")
_HEADER: Final = re.compile(rb"^([A-Za-z][\w-]*): ?([^\r\n]*(?:\r?\n[ \t][^\r\n]*)*)\r?\n", re.M)
_TOKEN: Final = re.compile(
    rb"/[A-Za-z]\w*|(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])|\[|\]|<<|>>|\([^()]*\)"
)
_FIELD: Final = re.compile(rb"^([\w -]+): ?(.*)$", re.M)
_MARK: Final = b"SQLite format 3\0"


def mutant(random: Random, name: str, data: bytes) -> bytes:
    """The file with one to three changes of keys and types."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        data = _changer(name, data)(random, data)
    return data


def _changer(name: str, data: bytes) -> Callable[[Random, bytes], bytes]:
    if data.startswith(_MARK):
        return _in_database
    if data.startswith(b"PK"):
        return _in_zip
    if name.endswith((".json", ".jsonl", ".af")) or data[:1] in {b"{", b"["}:
        return _in_json
    if data.startswith(b"%PDF"):
        return lambda random, held: _in_match(random, held, _TOKEN, 0)
    if name.endswith((".eml", ".mbox")):
        return _in_mail
    if data.lstrip()[:1] == b"<":
        return _in_markup
    return lambda random, held: _in_match(random, held, _FIELD, 2)


def _in_json(random: Random, data: bytes) -> bytes:
    """A value of the file, or of one of its lines, where each line is one."""
    try:
        return json.dumps(_worse(random, json.loads(data))).encode()
    except (ValueError, RecursionError):
        lines = data.splitlines()
    at = random.randrange(len(lines)) if lines else 0
    try:
        lines[at] = json.dumps(_worse(random, json.loads(lines[at]))).encode()
    except (ValueError, IndexError, RecursionError):
        return data
    return b"\n".join(lines) + b"\n"


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a value, and each of its keys."""
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        names = list(holder) if isinstance(holder, dict) else range(len(holder))
        for name in names:
            yield holder, name
            if isinstance(holder[name], dict | list):
                waiting.append(holder[name])


def _worse(random: Random, value: Any) -> Any:
    places = list(_places(value)) if isinstance(value, dict | list) else []
    if not places or random.random() < 0.01:
        return random.choice(_OTHERS)
    holder, name = random.choice(places)
    held = holder[name]
    # Programs put JSON into texts.
    within = isinstance(held, str) and held[:1] in {"{", "["} and random.random() < 0.8
    changed = _in_text(random, held) if within else _other(random, held, places)
    if changed is _NOTHING:
        del holder[name]
    elif isinstance(holder, dict) and random.random() < 0.08:
        holder[random.choice(("id", "type", "text", "content", "role", f"{name}s"))] = holder.pop(
            name
        )
    else:
        holder[name] = changed
    return value


def _in_text(random: Random, held: str) -> str:
    return _in_json(random, held.encode("utf-8", "replace")).decode("utf-8", "replace")


def _other(random: Random, held: Any, places: Sequence[tuple[Any, Any]]) -> Any:
    kind = random.randrange(9)
    if kind == 0:
        return _NOTHING
    if kind == 1:
        return [held]
    if kind == 2:
        return {"text": held}
    if kind == 3 and isinstance(held, list):
        return [*held, random.choice(_OTHERS), *copy.deepcopy(held[:1])]
    if kind == 4 and isinstance(held, dict):
        return list(held.values())
    if kind == 5:
        holder, name = random.choice(places)
        return copy.deepcopy(holder[name])
    if kind == 6:
        return json.dumps(held)
    if kind == 7:
        for _ in range(random.choice((3, 40))):
            held = [held] if random.random() < 0.5 else {"content": held}
        return held
    return copy.deepcopy(random.choice(_OTHERS))


def _in_database(random: Random, data: bytes) -> bytes:
    """A value of a row, as a rule; else a column or a table that is called otherwise."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(data)
        tables = [
            r[0]
            for r in connection.execute(
                "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE TABLE%' "
                "AND name NOT LIKE 'sqlite_%'"
            )
        ]
        table = random.choice(tables)
        columns = [r[1] for r in connection.execute(f'PRAGMA table_info("{table}")')]
        column = random.choice(columns)
        try:
            if random.random() < 0.1:
                connection.execute(
                    f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "was_{column}"'
                )
            elif found := connection.execute(f'SELECT rowid, "{column}" FROM "{table}"').fetchall():
                row, held = random.choice(found)
                new = random.choice(_SQL)
                if isinstance(held, str | bytes) and held[:1] in {"{", "[", b"{", b"["}:
                    text = held if isinstance(held, bytes) else held.encode()
                    new = _in_json(random, text).decode("utf-8", "replace")
                connection.execute(
                    f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (new, row)
                )
            connection.commit()
        except sqlite3.Error:
            return data
        return connection.serialize()


def _in_zip(random: Random, data: bytes) -> bytes:
    """A member: changed, gone, or called otherwise."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        chosen = random.choice(names) if names else ""
        for name in names:
            held, called = old.read(name), name
            if name == chosen:
                kind = random.random()
                if kind < 0.05:
                    continue
                if kind < 0.1:
                    called = random.choice(
                        ("../x.json", "a/" * 30 + "x.json", "x", "._x.json", f"{name}.txt")
                    )
                elif name.endswith((".xml", ".rels")):
                    held = _in_markup(random, held)
                else:
                    held = _changer(name, held)(random, held)
            if called in new.NameToInfo:
                continue
            new.writestr(zipfile.ZipInfo(called, (2026, 4, 30, 12, 0, 0)), held)
    return out.getvalue()


def _in_markup(random: Random, data: bytes) -> bytes:
    kind = random.random()
    if kind < 0.6:
        return _in_match(random, data, _ATTRIBUTE, 2)
    if kind < 0.75:
        return _in_match(random, data, _ATTRIBUTE, 0)
    return _in_match(
        random, data, _ELEMENT, 2, (b"x", b"table", b"td", b"p", b"w:t", b"w:p", b"w:tbl", b"meta")
    )


def _in_mail(random: Random, data: bytes) -> bytes:
    headers = list(_HEADER.finditer(data))
    if not headers:
        return data
    header = random.choice(headers)
    kind = random.random()
    if kind < 0.2:
        return data[: header.start()] + data[header.end() :]
    if kind < 0.35:
        other = random.choice(headers)
        return data[: header.start(2)] + other[2] + data[header.end(2) :]
    if kind < 0.5:
        return data[: header.end()] + header[0] + data[header.end() :]
    value = random.choice(_TEXTS)
    if b"=" in header[2] and kind < 0.75:
        begin = header.start(2) + header[2].rindex(b"=") + 1
        return data[:begin] + value + data[header.end(2) :]
    return data[: header.start(2)] + value + data[header.end(2) :]


def _in_match(
    random: Random,
    data: bytes,
    pattern: re.Pattern[bytes],
    group: int,
    texts: Sequence[bytes] = _TEXTS,
) -> bytes:
    """Another text for one of the places that a pattern finds."""
    found = list(pattern.finditer(data))
    if not found:
        return data
    match = random.choice(found)
    text = random.choice((*texts, random.choice(found)[group]))
    if match[group][:1] in {b'"', b"'"}:
        text = match[group][:1] + text.strip(b"\"'") + match[group][:1]
    return data[: match.start(group)] + text + data[match.end(group) :]


def _corpus(folder: Path) -> Iterator[tuple[str, bytes]]:
    """A file of every format, by name."""
    write_transcripts(folder)
    for name, build in BUILT.items():
        build(folder / name)
    places = (folder, OWN / "ingest" / "fixtures", OWN / "ingest" / "fixtures_memories")
    for place in places:
        for path in sorted(path for path in place.rglob("*") if path.is_file()):
            if path.suffix in {".json", ".jsonl", ".af", ".html", ".txt", ".md", ".db", ".vscdb"}:
                yield path.name, path.read_bytes()
    for name, values in OTHERS.items():
        yield name, b"\n".join(json.dumps(value).encode() for value in values)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("chatgpt.json", "claude_ai.json", "plain.jsonl"):
            archive.write(OWN / "ingest" / "fixtures" / name, f"{Path(name).stem}/{name}")
    yield "export.zip", packed.getvalue()
    word = docx([("Handbook", 1), ("Holidays", 2), ("Thirty days.", 0)], title="Handbook")
    lease = pdf(
        [["The rent is 1200 euros."], ["Three months."]], title="Lease", bookmarks=[("Rent", 1)]
    )
    page = (
        b'<!doctype html><html lang="en"><meta charset="iso-8859-1"><title>Bread</title>'
        b'<h1>Bread</h1><ul><li>flour<ol start="3"><li>rye</ol></ul>'
        b'<table><tr><td colspan="2">a<td rowspan="9">b'
        b'</table><a href="x">here</a><p lang="pl">230 &amp; hot<br>so</html>'
    )
    yield "a.docx", word
    yield "a.pdf", lease
    yield "a.html", page
    yield (
        "a.eml",
        mail("Offer", "Attached.", [("a.pdf", lease), ("a.docx", word), ("a.html", page)]),
    )
    yield "b.eml", mail("Only a page", "", html=page.decode("latin-1"))
    yield "c.eml", INVITATION
    yield (
        "box.mbox",
        b"".join(b"From a@b Mon Mar  2 09:00:00 2026\n" + INVITATION + b"\n" for _ in "12"),
    )


_DOCUMENTS: Final = (".docx", ".pdf", ".eml", ".html", ".md", ".mbox", ".ipynb")
_LIMITS: Final = DocumentLimits(pages=50, characters=200_000, parts=50)


@contextmanager
def shapes(folder: Path, shared: Path | None) -> Iterator[Room]:
    """Files with changed keys and types are read, or told: by their importer and by any."""
    built = folder / "built"
    built.mkdir()
    forms: dict[str, str | None] = {}
    corpus = []
    for name, data in _corpus(built):
        path = folder / name
        path.write_bytes(data)
        try:
            forms[name] = detect(path) if path.suffix != ".zip" else None
        except InvalidInput:
            forms[name] = None
        corpus.append(name.encode() + b"\0" + data)

    def check(held: bytes) -> None:
        name, data = _parted(held)
        path = folder / name
        path.write_bytes(data)
        if name.endswith(_DOCUMENTS):
            _read_as_document(name, data)
        if name.endswith((".docx", ".pdf", ".eml", ".mbox", ".ipynb")):
            return
        for form in {forms.get(name), None} if dice(data, 2) else {forms.get(name)}:
            try:
                items = [item for one in found_imports(path, form) for item in one.items]
            except InvalidInput:
                continue
            # Of a zip file without members it is told by who imports it.
            assert items or name.endswith(".zip"), "nothing is told of it"
            for item in items:
                failed = isinstance(item, ImportProblem) and FAILED in item.reason
                assert not failed, item

    yield Room(tuple(corpus), check, _worse_file)


def _parted(held: bytes) -> tuple[str, bytes]:
    name, _, data = held.partition(b"\0")
    return name.decode(), data


def _worse_file(mutator: Mutator, corpus: Sequence[bytes]) -> bytes:
    name, data = _parted(mutator.random.choice(corpus))
    return name.encode() + b"\0" + mutant(mutator.random, name, data)


def _read_as_document(name: str, data: bytes) -> None:
    try:
        list(read_and_cut(name, data, _LIMITS))
    except UnreadableDocument as error:
        expect(bool(error.reason), error)
