"""docs/import-formats.md says what becomes of a sample of every format: each is imported."""

from __future__ import annotations

import io
import re
import shutil
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from tests.document_files import docx, pdf
from tests.ingest import memory_sources

from anaphora import ImportProblem, ImportReport, Memory
from anaphora.features.documents import values as documents
from anaphora.features.importing.formats import FORMATS, detect

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "import-formats.md"
_SAMPLE: Final = re.compile(r"\[(?P<name>[^\]]+)\]\((?P<path>[^)]+)\)")
_NOTHING: Final = "–"
_LONGEST_REASON: Final = 90


def _lease(path: Path) -> Path:
    pages = (
        ["The monthly rent is 1200 euros."],
        ["Either party may terminate the lease", "with three months of notice."],
    )
    path.write_bytes(pdf(pages, bookmarks=[("Rent", 1), ("Termination", 2)]))
    return path


def _handbook(path: Path) -> Path:
    data = io.BytesIO(
        docx(
            [
                ("Handbook", 1),
                ("Holidays", 2),
                ("Everybody has thirty days off each year.", 0),
                ("Travel", 2),
                ("Trains are booked by yourself.", 0),
            ]
        )
    )
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    words = "<w:p><w:r><w:t>Confidential</w:t></w:r></w:p>"
    with zipfile.ZipFile(data, "a") as archive:
        archive.writestr("word/header1.xml", f"<w:hdr {space}>{words}</w:hdr>")
        comment = f'<w:comment w:id="1">{words}</w:comment>'
        archive.writestr("word/comments.xml", f"<w:comments {space}>{comment}</w:comments>")
    path.write_bytes(data.getvalue())
    return path


# What is made here, by its name on the page: there it links to the module that makes it.
_MADE: Final[dict[str, Callable[[Path], Path]]] = {
    **memory_sources.BUILT,
    "lease.pdf": _lease,
    "handbook.docx": _handbook,
}


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the page: `cells` are format, sample, what is in it, what came in, what was told."""

    heading: str
    cells: tuple[str, ...]

    @property
    def name(self) -> str:
        return self._link["name"]

    @property
    def _link(self) -> re.Match[str]:
        link = _SAMPLE.fullmatch(self.cells[1])
        assert link, f"no sample: {self.cells[1]}"
        return link

    def sample(self, folder: Path) -> Path:
        """The sample, made in `folder` where the page links to what makes it."""
        if self.name in _MADE:
            return _MADE[self.name](folder / self.name)
        path = (PAGE.parent / self._link["path"]).resolve()
        assert path.name == self.name, f"{self.name} links to {path.name}"
        return path

    @property
    def line(self) -> str:
        return f"| {' | '.join(self.cells)} |"


def rows_of(page: str) -> dict[int, Row]:
    """The rows of the page's tables, by the number of their line, from 0."""
    rows: dict[int, Row] = {}
    heading = ""
    for number, line in enumerate(page.splitlines()):
        if line.startswith("## "):
            heading = line[3:]
        if line.startswith("|") and not line.startswith(("|---", "| format |")):
            cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
            assert len(cells) == 5, line
            rows[number] = Row(heading, cells)
    return rows


def _counted(*things: tuple[int, str, str]) -> str:
    """What there is any of, in words: a number of things, and what one and several are called."""
    return ", ".join(f"{n} {one if n == 1 else many}" for n, one, many in things if n)


def _reasons(problems: Sequence[ImportProblem]) -> list[str]:
    return [
        f"{problem.place}: {reason[:_LONGEST_REASON]}{'…' if len(reason) > _LONGEST_REASON else ''}"
        for problem in problems
        for reason in [problem.reason]
    ]


def _cells(came: str, told: Sequence[str]) -> tuple[str, str]:
    return came.replace("|", "/") or "nothing", "; ".join(told).replace("|", "/") or _NOTHING


def _imported(report: ImportReport) -> tuple[str, str]:
    turns = _counted((report.added, "turn", "turns"))
    if report.conversations:
        turns += f" in {_counted((report.conversations, 'conversation', 'conversations'))}"
    rest = _counted(
        (report.branches, "branch", "branches"),
        (report.tool_calls, "tool call", "tool calls"),
        (report.memories_added, "memory", "memories"),
        (report.memories_changed, "new value", "new values"),
        (report.documents_added, "document", "documents"),
    )
    kinds = [f"{count} {kind}" for kind, count in sorted(report.left_out.items())]
    told = [f"left out: {', '.join(kinds)}"] if kinds else []
    told += _reasons(report.problems)
    told += [f"taken out: {kind}" for kind in report.redacted]
    return _cells(", ".join(filter(None, (turns, rest))), told)


def what_happened(memory: Memory, row: Row, folder: Path) -> tuple[tuple[str, str], str]:
    """What came in of a row's sample and what was told, as the page has it; and its format."""
    sample = row.sample(folder)
    if row.heading == "In a project":
        root = folder / "project"
        root.mkdir()
        shutil.copy(sample, root)
        index = memory.index_project(root, embed=False)
        came = _counted((index.sections, "section", "sections"))
        return _cells(came, [f"{one.path}: {one.reason}" for one in index.skipped]), "project"
    if row.heading == "Documents":
        done = memory.add_document(sample, name=row.name, embed=False)
        came = _counted((done.document.sections, "section", "sections"))
        return _cells(came, _reasons(done.problems)), done.document.format
    report = memory.import_(sample, embed=False)
    form = "anaphora" if row.cells[0] == "Anaphora" else detect(sample)
    return _imported(report), form


@pytest.mark.promise("import.formats")
@pytest.mark.promise("documents.formats")
def test_each_row_is_what_happens_to_its_sample(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Every format has a row, and each row says what its sample became, alone in a namespace."""
    lines = PAGE.read_text("utf-8").splitlines()
    wrong: dict[int, str] = {}
    formats: set[str] = set()
    with Memory.open(tmp_path / "home", embedder="hashing", warm=False) as memory:
        for number, row in rows_of("\n".join(lines)).items():
            cells, form = what_happened(memory.scoped(f"row-{number}"), row, tmp_path)
            formats.add(form)
            right = Row(row.heading, (*row.cells[:3], *cells))
            if right != row:
                wrong[number] = right.line
    assert formats == {*FORMATS, "anaphora", *documents.FORMATS, "project"}
    if wrong and request.config.getoption("--rewrite", default=False):
        shown = [wrong.get(number, line) for number, line in enumerate(lines)]
        PAGE.write_text("\n".join(shown) + "\n", "utf-8")
        return
    assert not wrong, "\n".join(f"{lines[at]}\nshould be\n{line}\n" for at, line in wrong.items())


@pytest.mark.promise("documents.formats")
def test_documents_have_a_row_for_each_kind_of_file() -> None:
    """Some formats have several kinds of files: those of mails, and notebooks beside Markdown."""
    rows = rows_of(PAGE.read_text("utf-8")).values()
    suffixes = {Path(row.name).suffix for row in rows if row.heading == "Documents"}
    texts = {".md", ".ipynb", ".txt", ".csv"}
    assert suffixes == {".pdf", ".docx", ".html", ".eml", ".mbox", ".ics", *texts}
