"""Every importer and document reader over its fixtures.

In: the folders of fixtures, and a way to open homes. Out: what each import reports, every thread,
memory, note and section that came of it, in the recording. Both builds read the same files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.document_files import docx, mail, pdf
from tools.golden.recording import Recording

__all__ = ["play_imports"]

TESTS = Path(__file__).resolve().parents[2] / "tests"
HISTORIES = (TESTS / "ingest" / "fixtures", TESTS / "ingest" / "fixtures_memories")
SECTIONS = TESTS / "ingest" / "fixtures_sections"
DOCUMENTS = TESTS / "docs" / "samples"
WRITTEN = 1_777_000_000
LIMIT = 1000


def play_imports(open_home: Callable[[Path], Any], folder: Path, record: Recording) -> None:
    """Import each fixture into a home of its own, twice, and keep all that the home then holds."""
    fixtures = folder / "fixtures"
    for source in (*HISTORIES, SECTIONS, DOCUMENTS):
        shutil.copytree(source, fixtures / source.name)
    for path in (fixtures, *fixtures.rglob("*")):
        os.utime(path, (WRITTEN, WRITTEN))
    for path in _histories(fixtures):
        name = path.relative_to(fixtures).as_posix()
        with open_home(folder / "homes" / name.replace("/", "-")) as memory:
            for attempt in ("import", "again"):
                record.keep_call(f"{attempt} {name}", partial(memory.import_, path))
            _keep_home(memory, record, name)
    with open_home(folder / "documents") as memory:
        for name, content in _documents(fixtures / DOCUMENTS.name):
            added = record.keep_call(
                f"document {name}", partial(memory.add_document, content, name=name)
            )
            if not isinstance(added, BaseException):
                record.keep_call(
                    f"sections {name}", partial(memory.document_sections, added.document.id)
                )
    with open_home(folder / "project") as memory:
        project = folder / "sections"
        project.mkdir()
        for path in sorted((fixtures / SECTIONS.name).iterdir()):
            shutil.copy2(path, project / path.name.removesuffix(".txt"))
        record.keep("project", memory.index_project(project, name="sections"))
        record.keep("project ready", memory.ready(60))
        record.keep("project map", memory.project_map("sections"))
        for question in ("where is the parser", "class Harbour", "how are errors handled?"):
            record.keep(f"project {question}", memory.recall_context(question))


def _histories(fixtures: Path) -> Iterator[Path]:
    """Each file or folder of the fixtures as a user would name it, then the folders as a whole."""
    for source in HISTORIES:
        yield from sorted((fixtures / source.name).iterdir())
        yield fixtures / source.name
    yield from sorted((fixtures / DOCUMENTS.name).iterdir())


def _documents(samples: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(path for path in samples.rglob("*") if path.is_file()):
        yield path.relative_to(samples).as_posix(), path.read_bytes()
    pages = [["The harbour freezes", "in January."], ["The pilot boards at noon."]]
    report = pdf(pages, title="Harbour", bookmarks=[("Ice", 1), ("Pilots", 2)])
    yield "report.pdf", report
    yield "empty.pdf", b"%PDF-1.4\n"
    paragraphs = [("Harbour", 1), ("It freezes in January.", 0), ("Pilots", 2), ("At noon.", 0)]
    yield "report.docx", docx(paragraphs, title="Harbour report")
    yield "broken.docx", b"PK\x03\x04 not a document"
    yield "with-files.eml", mail("Report", "See it.", [("report.pdf", report)])


def _keep_home(memory: Any, record: Recording, name: str) -> None:
    threads = memory.conversations.list()
    record.keep(f"threads {name}", threads)
    for thread in threads:
        record.keep(
            f"thread {name} {thread.conversation_id}",
            memory.conversations.get(thread.conversation_id),
        )
        record.keep(
            f"tools {name} {thread.conversation_id}", memory.tool_calls(thread.conversation_id)
        )
    record.keep(f"memories {name}", memory.list(limit=LIMIT))
    record.keep(f"notes {name}", memory.notes(limit=LIMIT))
    record.keep(f"documents {name}", memory.documents())
    record.keep(f"problems {name}", memory.conversations.problems())
