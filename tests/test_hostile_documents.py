"""Documents and imports that are made to take all memory or time are refused; the rest goes on."""

from __future__ import annotations

import io
import os
import sqlite3
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import sleep
from types import SimpleNamespace

import pytest
from rich.console import Console
from starlette.requests import Request
from starlette.routing import Match
from tests.conftest import Clock
from tests.document_files import docx
from tests.hostile_files import DOCUMENTS, IMPORTS
from tests.surfaces.rest_desk import served
from tests.worker_calls import (
    die,
    fail,
    hold_memory,
    say_much,
    say_values,
    take_memory,
    take_memory_by_pieces,
    take_time,
    wait_for_ever,
    write_a_file,
)

from anaphora import ImportProblem, Memory
from anaphora.errors import UnreadableDocument
from anaphora.features.documents.reading.base import DocumentLimits, Reading
from anaphora.features.documents.reading.html import read_markup
from anaphora.features.documents.reading.reading import read_document
from anaphora.features.documents.reading.working import read_in_worker
from anaphora.features.importing import reading
from anaphora.features.importing.run import import_files
from anaphora.features.importing.services import ImportingServices
from anaphora.features.importing.values import ImportedElse
from anaphora.ingest.bounds import Bounds
from anaphora.ops import import_export
from anaphora.surfaces.cli import progress
from anaphora.surfaces.rest.calls import Kind, kind_of
from anaphora.system import worker
from anaphora.system.worker import WorkerEnded, WorkerFailed, WorkerLimits, call_in_worker
from anaphora.values.plain import types_of

pytestmark = pytest.mark.internal

_NAMES = types_of()
_LIMITS = WorkerLimits(seconds=1, memory=200 << 20, output=1 << 20)
_MAIL = b"From: a@b\r\nMIME-Version: 1.0\r\nMessage-ID: <1@x>\r\n"


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing", clock=clock) as opened:
        yield opened


@pytest.mark.promise("documents.bounded")
@pytest.mark.parametrize(
    ("function", "limit"),
    [
        (take_memory, "memory"),
        (take_memory_by_pieces, "memory"),
        (take_time, "seconds"),
        (say_much, "output"),
        (die, "crash"),
    ],
)
def test_a_worker_is_ended_at_its_limits(function: Callable[[], Iterator[int]], limit: str) -> None:
    """The error says which limit it was, and the next call has a worker again."""
    with pytest.raises(WorkerEnded) as ended:
        list(call_in_worker(function, limits=_LIMITS, types=_NAMES))
    assert ended.value.limit == limit
    values, process = call_in_worker(say_values, limits=_LIMITS, types=_NAMES)
    assert values == next(say_values())
    again = list(call_in_worker(say_values, limits=_LIMITS, types=_NAMES))[1]
    assert process == again != os.getpid()


@pytest.mark.promise("documents.bounded")
@pytest.mark.skipif(sys.platform != "linux", reason="the parent watches everywhere, as here")
def test_the_parent_watches_where_the_system_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without limits of the kernel a worker that takes too much is ended all the same."""
    monkeypatch.setattr(worker, "_WALL", 1)
    monkeypatch.setattr(worker, "_GRACE", 0.0)
    worker.end_workers()
    for function, limit, seconds in ((hold_memory, "memory", 60), (wait_for_ever, "seconds", 1)):
        limits = replace(_LIMITS, seconds=seconds)
        with pytest.raises(WorkerEnded) as ended:
            list(call_in_worker(function, limits=limits, types=_NAMES))
        assert ended.value.limit == limit


@pytest.fixture
def without_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Workers that set no limits of the system, as on Windows, watched without slack."""
    begin = "from anaphora.system import worker_child as c; c.resource = None; c.serve()"
    monkeypatch.setattr(worker, "_BEGIN", begin)
    monkeypatch.setattr(worker, "_WALL", 1)
    monkeypatch.setattr(worker, "_GRACE", 0.0)
    worker.end_workers()
    yield
    worker.end_workers()


@pytest.mark.promise("documents.bounded")
@pytest.mark.usefixtures("without_limits")
def test_readers_are_ended_where_the_system_sets_no_limits(memory: Memory, tmp_path: Path) -> None:
    """The parent sees what they take: of a document, an import and an export, and of our own."""
    for function, limit in ((take_memory_by_pieces, "memory"), (take_time, "seconds")):
        # On a busy machine, what takes memory may take longer than the time of the other.
        limits = replace(_LIMITS, seconds=30) if limit == "memory" else _LIMITS
        with pytest.raises(WorkerEnded) as ended:
            list(call_in_worker(function, limits=limits, types=_NAMES))
        assert ended.value.limit == limit
    name, make = DOCUMENTS["DOCX, paragraphs of a letter"]
    for given in (DocumentLimits(memory=80 << 20), DocumentLimits(seconds=0.5, seconds_each=0)):
        with pytest.raises(UnreadableDocument, match="takes more than"):
            read_in_worker(name, make(1_500_000), given)
    crowd = (b"[" + b"[]," * 1_900_000 + b"[]]\n") * 4
    chats = tmp_path / "chats"
    chats.mkdir()
    line = b'{"role": "user", "text": "The door is green."}\n'
    for file, data in (("a", line), ("b", line + crowd), ("c", line)):
        (chats / f"{file}.jsonl").write_bytes(data)
    bounds = Bounds(memory=40 << 20)
    services = memory._services()
    writers = services.feature(ImportingServices).make_writers(again=False)
    report = import_files([chats], *writers, bounds=bounds)
    assert [Path(problem.path).name for problem in report.problems] == ["b.jsonl"]
    assert report.conversations == 2
    memory.export(tmp_path / "export.jsonl")
    with (tmp_path / "export.jsonl").open("ab") as export:
        export.write(crowd)
    report = import_export(services.container, tmp_path / "export.jsonl", bounds=bounds)
    assert "it takes more than 40 MiB of memory" in report.problems[-1].reason


@pytest.mark.promise("documents.bounded")
@pytest.mark.skipif(os.name == "nt", reason="Windows does not limit the size of files")
def test_a_worker_writes_no_file(tmp_path: Path) -> None:
    """No text of a document gets into a file, and an error of a reader has its name."""
    with pytest.raises(WorkerFailed, match="OSError"):
        list(call_in_worker(write_a_file, str(tmp_path / "a"), limits=_LIMITS, types=_NAMES))
    assert (tmp_path / "a").read_bytes() == b""
    with pytest.raises(WorkerFailed, match="RuntimeError: broken reader"):
        list(call_in_worker(fail, limits=_LIMITS, types=_NAMES))


@pytest.mark.promise("documents.bounded")
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_worker_ends_with_its_parent() -> None:
    """Also where the parent was killed while the worker was busy."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from anaphora.system.worker import *\n"
        "from tests.worker_calls import busy\n"
        "for process in call_in_worker(busy, limits=WorkerLimits(), types={}):\n"
        "    print(process, flush=True)\n"
    )
    root = str(Path(__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", program, root], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        process = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
    ended = Path(f"/proc/{process}")
    for _ in range(2_000_000):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            break
        if ended.exists() and "\nState:\tZ" in (ended / "status").read_text():
            break
    else:
        pytest.fail("the worker is still there")


@pytest.mark.promise("documents.bounded")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_has_workers_of_its_own() -> None:
    """And the parent keeps its own."""
    _, before = call_in_worker(say_values, limits=_LIMITS, types=_NAMES)
    child = os.fork()
    if not child:
        code = 1
        try:
            _, other = call_in_worker(say_values, limits=_LIMITS, types=_NAMES)
            worker.end_workers()
            code = 0 if other != before else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert list(call_in_worker(say_values, limits=_LIMITS, types=_NAMES))[1] == before


@pytest.mark.promise("documents.bounded")
def test_a_folder_goes_on_behind_a_hostile_file(memory: Memory, tmp_path: Path) -> None:
    """What takes too much time is a problem of its file; the files around it are imported."""
    chats = tmp_path / "chats"
    chats.mkdir()
    line = '{{"role": "user", "text": "The {} door is green.", "conversation_id": "{}"}}\n'
    for name in ("a", "b", "c"):
        (chats / f"{name}.jsonl").write_text(line.format(name, name))
    with (chats / "b.jsonl").open("a") as file:
        file.write("[" + "[]," * 1_900_000 + "[]]\n")
    services = memory._services()
    report = import_files(
        [chats],
        *services.feature(ImportingServices).make_writers(again=False),
        bounds=Bounds(memory=100 << 20),
    )
    assert [Path(problem.path).name for problem in report.problems] == ["b.jsonl"]
    assert "memory" in report.problems[0].reason
    threads = [memory.conversations.get(one) for one in report.conversation_ids]
    texts = [turn.text for thread in threads if thread is not None for turn in thread.turns]
    assert texts == ["The a door is green.", "The c door is green."]


@pytest.mark.promise("documents.bounded")
def test_lines_of_an_export_are_read_in_a_worker(memory: Memory, tmp_path: Path) -> None:
    """A line of millions of values is named, and nothing of it is held here; the others come in."""
    memory.remember("The heron is grey.")
    memory.export(tmp_path / "export.jsonl")
    first, *rest = (tmp_path / "export.jsonl").read_bytes().splitlines(keepends=True)
    hostile = tmp_path / "hostile.jsonl"
    other = memory.scoped("other")
    for crowd, reason in ((1_900_000, "not a JSON obj"), (6_000_000, "more than 4,000,000 values")):
        hostile.write_bytes(first + b"[" + b"[]," * crowd + b"[]]\n" + b"".join(rest))
        tracemalloc.start()
        try:
            report = other.import_(hostile, embed=False)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert [problem.place for problem in report.problems] == ["line 2"]
        assert reason in report.problems[0].reason
        assert peak < 60 << 20
    assert [one.text for one in other.list()] == ["The heron is grey."]


@pytest.mark.promise("documents.bounded")
def test_an_export_that_takes_too_long_is_named(memory: Memory, tmp_path: Path) -> None:
    """What was read of it by then stays."""
    memory.remember("The heron is grey.")
    memory.export(tmp_path / "export.jsonl")
    whole = (tmp_path / "export.jsonl").read_bytes()
    hostile = tmp_path / "hostile.jsonl"
    hostile.write_bytes(whole + (b"[" + b"[]," * 1_300_000 + b"[]]\n") * 30)
    bounds = Bounds(seconds=1, seconds_each=0)
    home = memory.scoped("other")._services().container
    report = import_export(home, hostile, namespace="other", bounds=bounds)
    assert "it takes more than 1 s" in report.problems[-1].reason
    assert [one.text for one in memory.scoped("other").list()] == ["The heron is grey."]


@pytest.mark.promise("documents.bounded")
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_the_small_file_that_ends_a_worker_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are told together: all others come once, those before it too."""
    monkeypatch.setattr(reading, "_READ", "tests.worker_calls:read_until_it_dies")
    source = reading.ImportSource(Path("folder"), None, "", Bounds())
    told: list[str] = []
    for value in source.read():
        if isinstance(value, reading.FileStarted):
            told.append(value.label)
        elif isinstance(value.item, ImportProblem):
            told.append(f"problem of {value.item.path}")
        else:
            assert isinstance(value.item, ImportedElse)
            told.append(value.item.kind)
    gone = ["file 3", "problem of file 3"]
    others = [[f"file {number}", f"item {number}"] for number in (0, 1, 2, 4, 5)]
    assert told == [one for file in (*others[:3], gone, *others[3:]) for one in file]


@pytest.mark.promise("documents.bounded")
@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"Subject: " + b"=?utf-8?q?a?= " * 40_000, ""),
        (b"To: " + b"a@b, " * 40_000, ""),
        (b"Content-Type: text/plain" + b"".join(b"; a%d=b" % n for n in range(30_000)), ""),
        (
            b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + b"--b\r\n\r\nx\r\n" * 3_000,
            "parts",
        ),
        (
            b"".join(
                b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n)
                for n in range(40)
            ),
            "nested",
        ),
        (b"a: b\r\n" * 400_001, "elements"),
    ],
)
def test_headers_of_mails_are_bounded(memory: Memory, head: bytes, reason: str) -> None:
    """Each of these took minutes or gigabytes."""
    mail = _MAIL + head + b"\r\n\r\nThe door is green."
    if reason:
        with pytest.raises(UnreadableDocument, match=reason):
            memory.add_document(mail, name="a.eml")
        assert memory.documents() == ()
    else:
        added = memory.add_document(mail, name="a.eml").document
        assert "The door is green." in memory.document_sections(added.id)[-1].text


def _with_part(name: str, content: bytes) -> bytes:
    file = io.BytesIO(docx([("Door", 1), ("It is green.", 0)], title="Doors"))
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return file.getvalue()


@pytest.mark.promise("documents.bounded")
@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (b"<!--" + b"x" * (1 << 20) + b"--><!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "entities"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>".encode("utf-16"), "entities"),
        (b"<a>" + b"<b/>" * 400_000 + b"</a>", "elements"),
        (b"<a>" + b"x" * 5_000_000 + b"</a>", "without an end"),
    ],
)
@pytest.mark.parametrize("name", ["word/footnotes.xml", "word/anything.bin"])
def test_every_part_of_a_word_document_is_looked_through(
    memory: Memory, name: str, part: bytes, reason: str
) -> None:
    """Whatever it is called, and however far behind a declaration stands."""
    with pytest.raises(UnreadableDocument, match=reason):
        memory.add_document(_with_part(name, part), name="a.docx")
    picture = _with_part("word/media/a.png", b"\x89PNG\r\n<!DOCTYPE a>")
    assert memory.add_document(picture, name="b.docx").action == "added"


_UNCLOSED = (
    "<!--",
    "<a href='",
    "<?",
    "</",
    "<svg>",
    "<a ",
    "<script>",
    "<![CDATA[",
    '<a b="',
    "<!",
)


@pytest.mark.promise("documents.bounded")
@pytest.mark.parametrize("mark", _UNCLOSED)
def test_pages_that_close_nothing(mark: str) -> None:
    """250 kB of these took a minute each; what is no markup stays as text."""
    text = read_markup("Green <b>door</b>." + mark * (250_000 // len(mark)), Reading("a.html"))
    assert text.blocks[0].text.startswith("Green door.")


@pytest.mark.promise("documents.bounded")
def test_elements_that_are_not_shown_are_closed_at_once() -> None:
    """Also where what is closed was never opened."""
    many = 60_000
    page = "Green" + "<svg>" * many + "</math>" * many + "</svg>" * many + " door"
    assert read_markup(page, Reading("a.html")).blocks[0].text == "Green door"


@pytest.mark.promise("documents.bounded")
@pytest.mark.parametrize(
    "name", ["undefined", "idna", "punycode", "unicode_escape", "hex", "x\u0000"]
)
def test_encodings_that_are_none(memory: Memory, name: str) -> None:
    """They are read as UTF-8, and that is told."""
    page = f"<meta charset={name}><html><p>Grüße".encode()
    done = memory.add_document(page, name=f"{name}.html".replace("\0", "_"))
    assert "Grüße" in memory.document_sections(done.document.id)[0].text
    mail = _MAIL + f"Content-Type: text/plain; charset={name}\r\n\r\nGrüße".encode()
    if "\0" not in name:
        done = memory.add_document(mail, name=f"{name}.eml")
        assert [one.place for one in done.problems] == ["its body"]
        assert "Grüße" in memory.document_sections(done.document.id)[-1].text


@pytest.mark.promise("documents.bounded")
def test_documents_take_time_in_proportion_to_their_size() -> None:
    """Each took the square of it; of a page that cannot be read otherwise it is told."""
    limits = DocumentLimits(seconds=8, seconds_each=0)
    name, make = DOCUMENTS["Markdown, blanks in a heading"]
    assert read_in_worker(name, make(1_000_000), limits).cut.sections[0].heading[0][:2] == "a "
    name, make = DOCUMENTS["PDF, one page"]
    with pytest.raises(UnreadableDocument, match="more text than a page has room for"):
        read_in_worker(name, make(4_000_000), limits)


@pytest.mark.promise("documents.bounded")
@pytest.mark.parametrize(
    "name",
    [
        "basic-memory, blanks",
        "note, blanks in front matter",
        "Claude Code, one command",
        "Cursor, one query",
    ],
)
def test_imports_take_time_in_proportion_to_their_size(
    memory: Memory, tmp_path: Path, name: str
) -> None:
    """A pattern that looked for an end from each place on took the square of it."""
    file, make = IMPORTS[name]
    path = tmp_path / file
    path.write_bytes(make(2_000_000))
    services = memory._services()
    report = import_files(
        [path],
        *services.feature(ImportingServices).make_writers(again=False),
        bounds=Bounds(seconds=8, seconds_each=0),
    )
    assert not [one for one in report.problems if "takes more than" in one.reason]


def test_a_number_of_many_digits() -> None:
    """Python refuses to read it; leading zeros say nothing."""
    page = "a &#" + "9" * 5_000 + "; &#" + "0" * 5_000 + "65; &#x" + "f" * 5_000 + ";"
    assert read_markup(page, Reading("a.html")).blocks[0].text == "a \ufffd A \ufffd"


@pytest.mark.promise("documents.bounded")
def test_limits_of_documents() -> None:
    """A document over one of them is refused by name."""
    with pytest.raises(UnreadableDocument, match="more than 10 elements"):
        read_document("a.docx", docx([("a", 0)] * 20, title="b"), DocumentLimits(elements=10))


@pytest.mark.promise("documents.bounded")
def test_an_imported_database_is_left_as_it_was(memory: Memory, tmp_path: Path) -> None:
    """No log and no file of locks is made beside it, also where its program was killed."""
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE notes (text)")
    connection.commit()
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("other.db", "other.db-wal"):
        (copy / name).write_bytes((folder / name).read_bytes())
    connection.close()
    for place in (folder, copy):
        before = {one.name: one.read_bytes() for one in place.iterdir()}
        left_out = memory.import_(place).left_out_files
        assert left_out["database of something else"] == ("other.db",)
        assert {one.name: one.read_bytes() for one in place.iterdir()} == before


@pytest.mark.promise("documents.bounded")
@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", "/v1/documents", "document"),
        ("POST", "/v1/import", "import"),
        ("POST", "/v1/deep", "deep"),
        ("GET", "/v1/export", "long"),
    ],
)
def test_calls_that_take_long_share_no_threads(
    method: str, path: str, kind: Kind, tmp_path: Path
) -> None:
    """Hostile documents and deep questions wait for threads that an export does not need."""
    scope = {"type": "http", "method": method, "path": path, "headers": []}
    with served(tmp_path / "home") as (client, _):
        routes = client.app.routes  # type: ignore[attr-defined]
        scope["route"] = next(route for route in routes if route.matches(scope)[0] is Match.FULL)
    assert kind_of(Request(scope)) == kind


@pytest.mark.promise("documents.bounded")
@pytest.mark.parametrize("lane", ["deep", "document", "import"])
def test_what_takes_long_waits_for_its_own_kind_alone(tmp_path: Path, lane: Kind) -> None:
    """All threads of a kind are taken: an export is written, documents and imports come in."""
    with served(tmp_path / "home", {"page": None}) as (client, memory):
        memory.remember("The door is green.")
        workers = client.app.state.service.workers[lane]  # type: ignore[attr-defined]
        gate = threading.Event()
        try:
            for _ in range(4):
                workers.submit(gate.wait)
            assert client.get("/v1/export").status_code == 200
            if lane != "document":
                added = client.post("/v1/documents?name=a.txt", content=b"A green door.")
                assert added.status_code == 201
            if lane != "import":
                line = b'{"role": "user", "text": "A blue door."}'
                assert client.post("/v1/import?name=a.jsonl", content=line).status_code == 200
        finally:
            gate.set()


def test_many_files_are_shown_in_one_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar for each would all be drawn again for each."""
    written = io.StringIO()
    terminal = Console(file=written, force_terminal=True, width=80)
    monkeypatch.setattr(progress, "console", lambda **_: terminal)
    streams = SimpleNamespace(stderr=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(progress, "sys", streams)
    monkeypatch.setattr(progress, "SOON", 0.05)
    with progress.long_work("Reading", kept="Nothing.") as report:
        for number in range(60):
            report(f"file {number}", 1, 2)
            report(f"file {number}", 2, 2)
        while "file 59" not in written.getvalue():
            sleep(0.01)
    # The cursor goes up for each line that is drawn again.
    assert written.getvalue().count("\x1b[1A") < 10


@pytest.mark.promise("documents.bounded")
def test_doctor_says_which_limits_hold(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """And where no reader can be started it is a finding, and a document a typed error."""
    (check,) = (one for one in memory.doctor() if one.name == "readers")
    assert check.ok
    assert "memory" in check.detail
    worker.end_workers()
    monkeypatch.setattr(sys, "executable", "/usr/bin/false")
    monkeypatch.setattr(sys, "_base_executable", "")
    monkeypatch.setattr(sys, "prefix", "/nowhere")
    monkeypatch.setattr(sys, "base_prefix", "/nowhere")
    (check,) = (one for one in memory.doctor() if one.name == "readers")
    assert not check.ok
    with pytest.raises(UnreadableDocument, match="no process can be started"):
        memory.add_document(b"The door is green.", name="a.txt")
