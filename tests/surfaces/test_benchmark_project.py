"""The benchmark of projects, on a project that is made up: what it reads, strips and measures."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anaphora.errors import InvalidInput, UnknownFormat
from anaphora.surfaces.benchmark.project import run_project_benchmark
from anaphora.surfaces.benchmark.project_sets import (
    ProjectQuestion,
    ProjectSet,
    read_project_sets,
    stripped,
)
from anaphora.surfaces.cli.app import app

FILES = {
    "src/shop/basket.py": "class Basket:\n    def add_item(self, item):\n        return item\n",
    "src/shop/invoice.py": "def print_invoice(basket):\n    '''Print the invoice.'''\n",
    "tests/test_invoice.py": "def test_print_invoice():\n    assert print_invoice([])\n",
    "docs/guide.md": "# Guide\n\nHow to pay.\n\n## Refunds\n\nA refund takes ten days.\n",
    "CHANGELOG.md": "# Changes\n\n- refund, invoice, basket, item\n",
}
QUERIES = [
    {"commit": "1", "query": "explain refunds in the guide", "files": ["docs/guide.md"]},
    {"commit": "2", "query": "`print_invoice` prints twice", "files": ["src/shop/invoice.py"]},
    {"commit": "3", "query": "typo in basket.py", "files": ["src/shop/basket.py"]},
    {"commit": "4", "query": "a file that is gone", "files": ["old.py"]},
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A history and an issue of one made-up project."""
    folder = tmp_path / "projects"
    folder.mkdir()
    history = {"repo": "made/shop", "files": FILES, "queries": QUERIES}
    (folder / "history.json").write_text(json.dumps(history), encoding="utf-8")
    with closing(sqlite3.connect(folder / "issues.sqlite")) as database, database:
        database.execute("CREATE TABLE instance (instance_id, repo, base_commit, query, gold, at)")
        database.execute("CREATE TABLE file (instance_id, path, sha)")
        database.execute("CREATE TABLE blob (sha, z)")
        database.execute(
            "INSERT INTO instance VALUES ('shop-1', 'made/shop', '', ?, ?, '')",
            ("Basket.add_item returns nothing\n\nSee the basket.", '["src/shop/basket.py"]'),
        )
        for path, text in FILES.items():
            database.execute("INSERT INTO file VALUES ('shop-1', ?, ?)", (path, path))
            packed = zlib.compress(text.encode())
            database.execute("INSERT INTO blob VALUES (?, ?)", (path, packed))
    return folder


def test_sets_are_read(data: Path) -> None:
    """Questions whose files are gone are left out; issues look among Python files only."""
    history, issue = read_project_sets(data)
    assert isinstance(history, ProjectSet)
    assert isinstance(issue, ProjectSet)
    assert [q.id for q in history.questions] == ["1", "2", "3"]
    assert set(issue.files) == {path for path in FILES if path.endswith(".py")}
    assert issue.questions[0].wanted == {"src/shop/basket.py"}


@pytest.mark.promise("bench.project")
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("fix src/shop/basket.py now", "fix   now"),
        ("typo in basket.py", "typo in  "),
        ('File "/usr/lib/shop/basket.py", line 3', 'File " ", line 3'),
        ("shop.basket.Basket fails", " Basket fails"),
        ("the basket is empty", "the basket is empty"),
        ("see test_basket.py and shop.basketball", "see test_basket.py and shop.basketball"),
    ],
)
def test_what_gives_the_answer_away_is_taken_out(text: str, left: str) -> None:
    """Paths, file names and module names of the wanted files go; other words stay."""
    assert stripped(ProjectQuestion("1", text, frozenset(["src/shop/basket.py"]))) == left


@pytest.mark.promise("bench.project")
def test_a_run_measures_both_rankings_and_forms(data: Path, tmp_path: Path) -> None:
    """The report has every ranking and form by repository, and the details every question."""
    report = run_project_benchmark(data, embedder="hashing", details=tmp_path / "details.jsonl")
    rows = {(r.kind, r.repo, r.ranking, r.form): r for r in report.rows}
    assert len(rows) == 8
    full = rows["history", "made/shop", "full ranking", "as written"]
    assert full.questions == 3
    assert full.recall_at_10 == 1.0
    assert full.at_1 == 1.0
    assert rows["issues", "made/shop", "full ranking", "as written"].at_1 == 1.0
    assert report.stripped == 1
    assert sum(row.questions for row in report.quality) == 4
    lines = (tmp_path / "details.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 16
    assert json.loads(lines[1])["paths"][0] == "docs/guide.md"
    assert "| history | made/shop | full ranking | as written | 3 | 1.000 |" in report.markdown()


def test_a_change_log_is_not_the_first_target(data: Path) -> None:
    """Plain BM25 falls for the change log that names everything; the full ranking does not."""
    report = run_project_benchmark(data, embedder="hashing")
    by = {r.ranking: r for r in report.rows if (r.kind, r.form) == ("history", "as written")}
    assert by["full ranking"].mrr > by["BM25 of files"].mrr


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    """A path that is not there, a folder without sets and torn files are clear errors."""
    with pytest.raises(InvalidInput):
        run_project_benchmark(tmp_path / "none", embedder="hashing")
    with pytest.raises(UnknownFormat):
        run_project_benchmark(tmp_path, embedder="hashing")
    (tmp_path / "torn.json").write_text('{"repo": "x", "files": []}', encoding="utf-8")
    (tmp_path / "torn.sqlite").write_bytes(b"no database at all, but long enough to be read as one")
    with pytest.raises(UnknownFormat, match="no project history"):
        run_project_benchmark(tmp_path, embedder="hashing")


def test_the_command_prints_the_table(data: Path) -> None:
    """`anaphora bench project PATH` shows the rows, and with --json the same as values."""
    runner = CliRunner()
    shown = runner.invoke(app, ["bench", "project", str(data), "--embedder", "hashing"])
    assert shown.exit_code == 0, shown.output
    assert "full ranking" in shown.output
    plain = runner.invoke(app, ["bench", "project", str(data), "--embedder", "hashing", "--json"])
    assert json.loads(plain.stdout)["rows"][0]["repo"] == "made/shop"


def test_real_projects_are_found(shared_data: Path) -> None:
    """On a real project that no weight was fitted for, words alone find most of what is touched."""
    file = shared_data / "projects" / "history" / "npryce__adr-tools.json"
    report = run_project_benchmark(file, embedder="hashing")
    full = next(r for r in report.rows if (r.ranking, r.form) == ("full ranking", "as written"))
    plain = next(r for r in report.rows if (r.ranking, r.form) == ("BM25 of files", "as written"))
    assert full.recall_at_10 >= max(0.70, plain.recall_at_10)
