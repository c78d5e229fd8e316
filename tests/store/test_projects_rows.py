"""Projects and notes in truth: alike on both databases, clear and sealed, in any characters."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count

import pytest
from tests.ingest.project_desk import sections_since

from anaphora.store.crypto.cipher import Keys
from anaphora.store.crypto.columns import ClearRows, SealedRows, Sealer
from anaphora.store.db.engine import Database
from anaphora.store.projects.rows import FileRow, ProjectRow, SectionRow
from anaphora.store.projects.store import Projects

pytestmark = pytest.mark.internal

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
ODD = "a \x00 b \ud800 c \x10 \U0001f600"


@pytest.fixture(params=["clear", "sealed"])
def sealer(request: pytest.FixtureRequest) -> Sealer:
    if request.param == "clear":
        return ClearRows()
    pytest.importorskip("cryptography")
    numbers = count(1)
    return SealedRows(Keys(bytes(range(32)), lambda size: next(numbers).to_bytes(size, "big")))


@pytest.fixture
def ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"id{next(numbers):04}"


@pytest.fixture
def projects(truth: Database, sealer: Sealer) -> Projects:
    return Projects(truth, "default", sealer)


FILE = FileRow(
    "f1", "p1", f"src/{ODD}.py", "code", "python", "0" * 64, None, 1, 3, -4, 2**62, NOW,
    {"symbols": [[ODD, "function", 1, 2]]},
)  # fmt: skip


def section(title: str, text: str) -> SectionRow:
    return SectionRow(
        "", "p1", FILE.path, "code", "python", "symbol", title, (ODD, "b"), ODD, text, 1, 2, NOW,
        f"hash of {text}",
    )  # fmt: skip


def fill(projects: Projects, ids: Callable[[], str], *sections: SectionRow) -> None:
    with projects.change() as work:
        work.add_project(ProjectRow("p1", ODD, f"/r/{ODD}", NOW, folders={ODD: 5}, head=ODD))
        work.put_file(FILE, known=False)
        work.put_sections(FILE, sections, ids, known=False)


@pytest.mark.promise("project.index")
def test_rows_come_back_as_they_were(projects: Projects, ids: Callable[[], str]) -> None:
    """Names, paths, texts, facts and times are the same after a round through any database."""
    fill(projects, ids, section(ODD, ODD), section("b", "words"))
    row = projects.row("p1")
    assert (row.name, row.root, row.folders, row.head) == (ODD, f"/r/{ODD}", {ODD: 5}, ODD)
    assert projects.find(f"/r/{ODD}") == projects.find(ODD) == row
    (file,) = projects.files("p1", facts=True).values()
    assert file.facts == FILE.facts
    assert (file.path, file.inode, file.mtime_ns) == (FILE.path, 2**62, -4)
    first, second = sections_since(projects, 0)
    assert (first.text, first.title, first.heading, first.symbol) == (ODD, ODD, (ODD, "b"), ODD)
    assert (first.path, first.role, first.changed_at) == (FILE.path, "code", NOW)
    assert projects.sections([second.id, "no"]) == {second.id: second}
    assert sections_since(projects, first.seq) == [second]
    assert projects.sections_of("p1", FILE.path) == (first, second)
