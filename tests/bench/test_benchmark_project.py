"""The benchmark of projects, on a project that is made up: what it reads, strips and measures."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from bench.__main__ import main
from bench.project.run import run_project_benchmark
from bench.project.sets import (
    ProjectQuestion,
    ProjectSet,
    read_project_sets,
    stripped,
)

from anaphora import Memory
from anaphora.errors import InvalidInput, UnknownFormat

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
    """Questions whose files are gone are left out; an issue asks for Python files of them all."""
    history, issue = read_project_sets(data)
    assert isinstance(history, ProjectSet)
    assert isinstance(issue, ProjectSet)
    assert [q.id for q in history.questions] == ["1", "2", "3"]
    assert set(issue.files) == set(FILES)
    assert [p for p in FILES if issue.asks_for(p)] == [p for p in FILES if p.endswith(".py")]
    assert all(map(history.asks_for, FILES))
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
    """The report has every ranking and form by repository, and the details every question.

    Files that are no answer to an issue are places in one of its rankings only.
    """
    report = run_project_benchmark(data, embedder="hashing", details=tmp_path / "details.jsonl")
    rows = {(r.kind, r.repo, r.ranking, r.form): r for r in report.rows}
    assert len(rows) == 10
    full = rows["history", "made/shop", "recall package", "as written"]
    assert full.questions == 3
    assert full.recall_at_10 == 1.0
    assert full.at_1 == 1.0
    assert rows["issues", "made/shop", "recall package", "as written"].at_1 == 1.0
    assert report.stripped == 1
    assert sum(row.questions for row in report.quality if row.repo != "all") == 4
    assert sum(row.questions for row in report.quality if row.repo == "all") == 4
    assert report.recall.calls == report.recall_without_embedding.calls == 5
    assert report.files == 2 * len(FILES)
    lines = (tmp_path / "details.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 18
    assert json.loads(lines[1])["paths"][0] == "docs/guide.md"
    assert "| history | made/shop | recall package | as written | 3 | 1.000 |" in report.markdown()


def test_a_change_log_is_not_the_first_target(data: Path) -> None:
    """Plain BM25 falls for the change log that names everything; a package does not."""
    report = run_project_benchmark(data, embedder="hashing")
    by = {r.ranking: r for r in report.rows if (r.kind, r.form) == ("history", "as written")}
    assert by["recall package"].mrr > by["BM25 of files"].mrr


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


@pytest.mark.promise("bench.project")
def test_questions_go_the_way_of_users(data: Path, tmp_path: Path) -> None:
    """The paths are the primary targets of a package that a user gets for the same files."""
    report = run_project_benchmark(data, embedder="hashing", details=tmp_path / "details.jsonl")
    assert not report.problems
    told = (tmp_path / "details.jsonl").read_text(encoding="utf-8").splitlines()
    found = [one for one in map(json.loads, told) if one["ranking"] == "recall package"]
    root = tmp_path / "shop"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        memory.index_project(root)
        for one in found:
            if (one["kind"], one["form"]) == ("history", "as written"):
                package = memory.recall_context(one["query"], project=str(root))
                assert [target.path for target in package.primary_targets] == one["paths"]
                assert package.quality == one["quality"]


def test_a_file_that_is_not_indexed_is_said(data: Path) -> None:
    """What the product leaves out of a project stands among the problems, with the reason."""
    file = data / "history.json"
    history = json.loads(file.read_text(encoding="utf-8"))
    history["files"]["logo.txt"] = "\0\1\2" * 100
    file.write_text(json.dumps(history), encoding="utf-8")
    (problem,) = run_project_benchmark(file, embedder="hashing").problems
    assert (problem.place, problem.reason) == ("logo.txt", "not indexed: binary")


def test_a_path_that_leads_out_of_its_project_is_refused(tmp_path: Path) -> None:
    """Nothing of a data set is written beside the folder that was made for it."""
    one = {"repo": "x", "files": {"../out.py": "a"}, "queries": []}
    (tmp_path / "bad.json").write_text(json.dumps(one), encoding="utf-8")
    with pytest.raises(UnknownFormat, match="no path inside"):
        run_project_benchmark(tmp_path, embedder="hashing")


def test_the_command_prints_the_table(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m bench project PATH` shows the rows, and with --json the same as values."""
    assert main(["project", str(data), "--embedder", "hashing"]) == 0
    assert "recall package" in capsys.readouterr().out
    assert main(["project", str(data), "--embedder", "hashing", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["repo"] == "made/shop"


def test_real_projects_are_found(shared_data: Path) -> None:
    """On a real project that no weight was fitted for, words alone find most of what is touched."""
    file = shared_data / "projects" / "history" / "npryce__adr-tools.json"
    report = run_project_benchmark(file, embedder="hashing")
    full = next(r for r in report.rows if (r.ranking, r.form) == ("recall package", "as written"))
    plain = next(r for r in report.rows if (r.ranking, r.form) == ("BM25 of files", "as written"))
    assert full.recall_at_10 >= max(0.70, plain.recall_at_10)
