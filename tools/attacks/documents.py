"""Attacks by documents and imports: files that are made to take all memory or time."""

from __future__ import annotations

import io
import os
import resource
import sqlite3
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from tools.attacks import attack

from anaphora import Memory
from anaphora.errors import UnreadableDocument

_TYPES: Final = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS: Final = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
    'relationships/officeDocument" Target="word/document.xml"/></Relationships>'
)
_WORD: Final = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_MAIL: Final = b"From: a@b\r\nMIME-Version: 1.0\r\nMessage-ID: <1@x>\r\n"
_PATIENCE: Final = 100.0
_MOST_MEMORY: Final = 1_500_000_000


def _open(folder: Path) -> Memory:
    return Memory.open(folder / "home", embedder="hashing")


def _add(folder: Path, data: bytes, name: str, seconds: float = _PATIENCE) -> None:
    """Add a document. Raises where it takes too long, too much memory, or stops the memory."""
    # What gets beyond this ends here, and not with the machine.
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, resource.RLIM_INFINITY))
    with _open(folder) as memory:
        before, began = _peak(), time.monotonic()
        with suppress(UnreadableDocument):
            memory.add_document(data, name=name)
        taken = time.monotonic() - began
        assert taken < seconds, f"{len(data):,} bytes take {taken:.0f} s"
        peak = max(_peak() - before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
        assert peak < _MOST_MEMORY, f"{len(data):,} bytes take {peak:,} bytes of memory"
        memory.remember("The door is green.", path="door.colour")
        assert memory.list().items[0].text == "The door is green."


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _docx(document: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_rels/.rels", _RELATIONS)
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr("word/document.xml", document)
    return file.getvalue()


def _body(content: str) -> str:
    return f"<w:document {_WORD}><w:body>{content}</w:body></w:document>"


_HEADERS: Final = {
    "a subject of 50,000 encoded words": b"Subject: " + b"=?utf-8?q?a?= " * 50_000,
    "200 kB of addresses": b"To: " + b"a@b, " * 40_000,
    "30,000 parameters": b"Content-Type: text/plain" + b"; a=b" * 30_000,
    "200,000 parts": (
        b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + b"--b\r\n\r\nx\r\n" * 200_000
    ),
}


def _mail_attack(what: str, head: bytes) -> None:
    @attack("F2", "high", f"a mail with {what} takes little memory and time")
    def hostile_mail(folder: Path) -> None:
        _add(folder, _MAIL + head + b"\r\n\r\nx", "a.eml", 15.0)


for _what, _head in _HEADERS.items():
    _mail_attack(_what, _head)


@attack("F3", "high", "a Word document of 20 million elements is refused soon")
def many_elements(folder: Path) -> None:
    """175 kB."""
    _add(
        folder, _docx(_body("<w:p><w:r><w:t>a</w:t></w:r></w:p>" + "<w:r/>" * 20_000_000)), "a.docx"
    )


@attack("F3", "high", "a Word document of 600,000 paragraphs is refused soon")
def many_paragraphs(folder: Path) -> None:
    """58 kB."""
    _add(folder, _docx(_body("<w:p/>" * 600_000)), "a.docx", 30.0)


@attack("F3", "high", "entities are refused behind a megabyte of comment as well")
def late_entities(folder: Path) -> None:
    """The declaration stands where nothing looked."""
    names = [f'<!ENTITY a{n} "{f"&a{n - 1};" * 8 if n else "x" * 50}">' for n in range(6)]
    start = f"<!--{'x' * (1 << 20)}--><!DOCTYPE d [{''.join(names)}]>"
    data = _docx(start + _body("<w:p><w:r><w:t>&a5;</w:t></w:r></w:p>"))
    with _open(folder) as memory, suppress(UnreadableDocument):
        added = memory.add_document(data, name="a.docx")
        raise AssertionError(f"entities became {added.document.characters:,} characters")


@attack("F3", "high", "a PDF whose 5,000 pages share one long stream ends", pace="long")
def shared_stream(folder: Path) -> None:
    """Pages that say nothing, each as long to read as the last."""
    stream = b"BT /F1 9 Tf 1 0 0 1 0 0 Tm ( ) Tj ET\n" * 20_000
    kids = b" ".join(b"%d 0 R" % (4 + n) for n in range(5_000))
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count 5000 >>" % kids,
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        *[
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 3 0 R /Resources << /Font "
            b"<< /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        ]
        * 5_000,
    ]
    data = b"%PDF-1.7\n"
    places = []
    for number, part in enumerate(parts, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(parts) + 1, table)
    start = data.rindex(b"xref\n0")
    data += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n" % (len(parts) + 1, start)
    _add(folder, data + b"%%EOF\n", "a.pdf", 280.0)


@attack("F3", "high", "a line of an export with 40 million values takes little memory")
def crowded_export(folder: Path) -> None:
    """120 MB; each value takes twenty times the memory of its three characters."""
    with _open(folder) as memory:
        memory.remember("The heron is grey.")
        memory.export(folder / "export.jsonl")
        first, *rest = (folder / "export.jsonl").read_bytes().splitlines(keepends=True)
        with (folder / "hostile.jsonl").open("wb") as file:
            file.write(first + b"[")
            for _ in range(40):
                file.write(b"[]," * 1_000_000)
            file.write(b"[]]\n" + b"".join(rest))
        before = _peak()
        other = memory.scoped("other")
        report = other.import_(folder / "hostile.jsonl")
        assert _peak() - before < 300 << 20, f"it takes {_peak() - before:,} bytes"
        assert [one.place for one in report.problems] == ["line 2"]
        assert other.list().items[0].text == "The heron is grey."


@attack(
    "F12",
    "medium",
    "the command line takes time in proportion to the number of files",
    pace="timed",
)
def many_files(folder: Path) -> None:
    """Twice as many notes may take three times as long, not four."""
    taken = []
    for count in (250, 1_000):
        notes = folder / f"notes{count}"
        notes.mkdir()
        for number in range(count):
            (notes / f"{number}.md").write_text(f"# N {number}\n\nfact {number}\n")
        words = [sys.executable, "-m", "anaphora", "--home", str(folder / f"home{count}"), "import"]
        began = time.monotonic()
        environment = {**os.environ, "ANAPHORA_EMBEDDER": "hashing"}
        subprocess.run(
            [*words, "--no-embed", str(notes)], check=True, capture_output=True, env=environment
        )
        taken.append(time.monotonic() - began)
    assert taken[1] < 6 * taken[0], f"250 notes take {taken[0]:.0f} s, 1,000 {taken[1]:.0f} s"


def _page_attack(mark: bytes) -> None:
    @attack("F15", "medium", f"100 kB of {mark.decode()!r} in a page take little time")
    def unclosed(folder: Path) -> None:
        _add(folder, b"<html>" + mark * (100_000 // len(mark)), "a.html", 4.0)


for _mark in (b"<!--", b"<a href='", b"<?", b"</"):
    _page_attack(_mark)


@attack("F15", "medium", "elements that are closed without being open take little time")
def closed_again(folder: Path) -> None:
    """700 kB."""
    _add(folder, b"<html>" + b"<svg>" * 80_000 + b"</x>" * 80_000, "a.html", 15.0)


@attack("F16", "medium", "no version of pypdf with published holes may be installed beside it")
def floor_of_pypdf(folder: Path) -> None:
    """The lowest version that the extra allows."""
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    (needs,) = (
        one
        for one in project["project"]["optional-dependencies"]["documents"]
        if one.startswith("pypdf")
    )
    floor = tuple(map(int, needs.partition(">=")[2].split(".")))
    assert floor >= (6, 16, 1), needs


@attack("F25", "low", "a page whose encoding is none is a document, or a typed error")
def undefined_encoding(folder: Path) -> None:
    """Python knows an encoding that always fails."""
    for name in (b"undefined", b"punycode", b"idna"):
        with _open(folder) as memory, suppress(UnreadableDocument):
            memory.add_document(b"<meta charset=%s><html>x" % name + bytes(9) + name, name="a.html")


@attack("F25", "low", "an imported database has nothing new beside it")
def untouched_database(folder: Path) -> None:
    """One with a write-ahead log, whose program has ended."""
    place = folder / "other"
    place.mkdir()
    with closing(sqlite3.connect(place / "other.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE notes (text)")
    with _open(folder) as memory:
        memory.import_(place)
    assert [one.name for one in place.iterdir()] == ["other.db"]


def _behind_hostile_ones(folder: Path, call: Callable[[str], object]) -> None:
    """Raise where a call of the server waits behind four documents that take long."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = str(folder / "home")
    words = [sys.executable, "-m", "anaphora", "--home", home]
    Memory.open(home, embedder="hashing").close()
    environment = {**os.environ, "ANAPHORA_EMBEDDER": "hashing"}
    server = subprocess.Popen(
        [*words, "serve", "--port", str(port), "--no-token"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}/v1"
    try:
        _wait_for(address)
        page = _docx(_body("<w:p><w:r><w:t>a</w:t></w:r></w:p>" * 80_000))
        for number in range(4):
            threading.Thread(target=_send, args=(address, page, number), daemon=True).start()
        time.sleep(2)
        began = time.monotonic()
        call(address)
        taken = time.monotonic() - began
        assert taken < 5, f"it waited {taken:.0f} s"
    finally:
        server.kill()
        server.wait()


def _wait_for(address: str) -> None:
    import httpx

    for _ in range(200):
        with suppress(httpx.HTTPError):
            if httpx.get(f"{address}/health/live", timeout=5).status_code < 500:
                return
        time.sleep(0.1)
    raise RuntimeError("the server did not start")


def _send(address: str, data: bytes, number: int) -> None:
    import httpx

    with suppress(httpx.HTTPError):
        httpx.post(f"{address}/documents?name=a{number}.docx", content=data, timeout=200)


@attack("F27", "low", "an export does not wait behind four documents that take long", pace="timed")
def export_waits(folder: Path) -> None:
    """They have threads of their own."""
    import httpx

    _behind_hostile_ones(folder, lambda at: httpx.get(f"{at}/export", timeout=100))
