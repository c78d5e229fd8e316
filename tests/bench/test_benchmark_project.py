"""The benchmark of projects, on a project that is made up: what it reads, strips and measures."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from bench.projects import (
    ProjectHome,
    ProjectQuestion,
    ProjectSet,
    main,
    measure,
    read_project_sets,
    stripped,
)

from anaphora import Memory
from anaphora.errors import InvalidInput, UnknownFormat
from anaphora.testing import WordHashingEmbedder

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


def figures(path: Path) -> dict[str, float]:
    return {one.name: one.value for one in measure(path, WordHashingEmbedder())}


@pytest.mark.promise("bench.project")
def test_a_run_measures_both_rankings_and_forms(data: Path) -> None:
    """The figures have every ranking and form; plain BM25 falls for the log that names all."""
    named = figures(data)
    full, plain = (
        f"history, made/shop, {ranking}, as written"
        for ranking in ("recall package", "BM25 of files")
    )
    assert named[f"{full}: questions"] == 3
    assert named[f"{full}: recall@10"] == named[f"{full}: first"] == 1.0
    assert named["issues, made/shop, recall package, as written: first"] == 1.0
    assert named[f"{full}: MRR"] > named[f"{plain}: MRR"]
    assert named["history, all, recall package, paths taken out: questions"] == 3


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    """A path that is not there, a folder without sets and torn files are clear errors."""
    with pytest.raises(InvalidInput):
        figures(tmp_path / "none")
    with pytest.raises(UnknownFormat):
        figures(tmp_path)
    (tmp_path / "torn.json").write_text('{"repo": "x", "files": []}', encoding="utf-8")
    (tmp_path / "torn.sqlite").write_bytes(b"no database at all, but long enough to be read as one")
    with pytest.raises(UnknownFormat, match="no project history"):
        figures(tmp_path)


@pytest.mark.promise("bench.project")
def test_questions_go_the_way_of_users(tmp_path: Path) -> None:
    """The paths are the primary targets of a package that a user gets for the same files."""
    root = tmp_path / "shop"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    with (
        closing(ProjectHome(FILES, WordHashingEmbedder())) as home,
        Memory.open(tmp_path / "home", embedder="hashing") as memory,
    ):
        memory.index_project(root)
        for query in QUERIES:
            package = memory.recall_context(str(query["query"]), project=str(root))
            paths = tuple(target.path for target in package.primary_targets)
            assert paths == home.ask(str(query["query"]))


def test_a_path_that_leads_out_of_its_project_is_refused(tmp_path: Path) -> None:
    """Nothing of a data set is written beside the folder that was made for it."""
    one = {"repo": "x", "files": {"../out.py": "a"}, "queries": []}
    (tmp_path / "bad.json").write_text(json.dumps(one), encoding="utf-8")
    with pytest.raises(UnknownFormat, match="no path inside"):
        figures(tmp_path)


def test_the_command_prints_the_figures(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m bench.projects --path PATH` shows them."""
    main(["--path", str(data), "--embedder", "hashing"])
    assert "recall package" in capsys.readouterr().out


def test_real_projects_are_found(shared_data: Path) -> None:
    """On a real project that no weight was fitted for, words alone find most of what is touched."""
    named = figures(shared_data / "projects" / "history" / "npryce__adr-tools.json")
    full, plain = (
        named[f"history, all, {ranking}, as written: recall@10"]
        for ranking in ("recall package", "BM25 of files")
    )
    assert full >= max(0.70, plain)
