"""Indexing that is killed, done twice at one time, or done where everything is sealed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anaphora.embed.base import Vectors
from anaphora.embed.hashing import WordHashingEmbedder
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.errors import EmbeddingError
from anaphora.ingest.projects.indexing import ProjectIndexer
from anaphora.store.crypto.cipher import Keys
from anaphora.store.crypto.columns import SealedRows
from anaphora.store.db.engine import Database, open_database
from anaphora.store.db.health import check_truth
from anaphora.store.home.conversion import decrypt, encrypt, rekey
from anaphora.store.home.opening import open_home
from anaphora.store.home.sealing import Home

from .project_desk import ProjectDesk
from .project_files import FILES, git, write

pytestmark = pytest.mark.internal

DESK = Path(__file__).with_name("project_desk.py")
# Each finds nothing in a truth of which every write was kept whole or not at all.
HALF_WRITTEN = {
    "a section without its file": (
        "SELECT section_id FROM section s WHERE NOT EXISTS (SELECT 1 FROM source_file f "
        "WHERE f.namespace = s.namespace AND f.file_id = s.file_id)"
    ),
    "a file twice": (
        "SELECT path_key FROM source_file GROUP BY project_id, path_key HAVING COUNT(*) > 1"
    ),
    "a section twice": (
        "SELECT file_id FROM section GROUP BY file_id, position HAVING COUNT(*) > 1"
    ),
    "an entity twice": "SELECT entity_key FROM entity GROUP BY entity_key HAVING COUNT(*) > 1",
    "a relation of nothing": (
        "SELECT relation_id FROM relation r WHERE NOT EXISTS (SELECT 1 FROM entity e "
        "WHERE e.namespace = r.namespace AND e.entity_id = r.subject_id)"
    ),
}


def child(database: Path | str, root: Path, delay: float = 0.0) -> subprocess.Popen[str]:
    where = str(database)
    command = [sys.executable, "-m", "tests.ingest.project_desk", where, str(root), str(delay)]
    place = Path(__file__).resolve().parents[2]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=place)


def flaws(truth: Database) -> list[str]:
    return [name for name, statement in HALF_WRITTEN.items() if truth.rows(statement, {})]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    many = {f"many/n{n}.py": f"import os\n\n\ndef f{n}():\n    return {n}\n" for n in range(200)}
    return write(tmp_path / "heron", dict(FILES) | many)


@pytest.mark.promise("project.trouble")
def test_a_killed_run_is_finished_by_the_next(tmp_path: Path, root: Path) -> None:
    """kill -9 in the middle leaves whole files, which the next run does not read in again."""
    database = tmp_path / "truth.db"
    running = child(database, root, delay=60)
    assert running.stdout is not None
    label, done, total = json.loads(running.stdout.readline())
    running.kill()
    running.communicate()
    assert (label, done < total) == ("files", True)
    truth = open_database(database)
    desk = ProjectDesk(truth)
    assert flaws(truth) == []
    kept = desk.texts(desk.projects.rows()[0].id)
    assert len(kept) == done
    report = desk.indexer.index(root)
    assert (report.unchanged, report.added, report.pending) == (done, len(FILES) + 200 - done, 0)
    assert {path: rows for path, rows in desk.texts(report.project).items() if path in kept} == kept
    assert ("src/heron/cli.py", "imports", "src/heron/nest.py") in desk.links(report.project)
    assert ("many/n7.py", "defines", "f7") in desk.links(report.project)
    assert flaws(truth) == []
    truth.close()


@pytest.mark.promise("project.trouble")
def test_two_processes_index_one_project(database: Path | str, root: Path) -> None:
    """Two processes at work on one project at once both succeed, and nothing is there twice."""
    children = [child(database, root) for _ in range(2)]
    reports: list[dict[str, Any]] = []
    for one in children:
        output, _ = one.communicate(timeout=120)
        assert one.returncode == 0
        reports.append(json.loads(output.splitlines()[-1]))
    truth = open_database(database)
    desk = ProjectDesk(truth)
    assert flaws(truth) == []
    (project,) = desk.projects.list()
    assert project.files == len(FILES) + 200
    assert sum(report["added"] for report in reports) == project.files
    again = desk.indexer.index(root)
    assert (again.added, again.changed, again.pending) == (0, 0, 0)
    assert ("many/n7.py", "defines", "f7") in desk.links(project.id)
    truth.close()


class Fussy(WordHashingEmbedder):
    """Refuses texts in which herons are kept."""

    def embed(self, texts: Any) -> list[Vectors]:
        if any("Keeps herons" in text for text in texts):
            raise EmbeddingError("no herons")
        return super().embed(texts)


def indexer(desk: ProjectDesk, embedder: EmbedderService) -> ProjectIndexer:
    return ProjectIndexer(
        desk.projects, desk.graph, desk.notes, embedder, clock=desk.clock, ids=desk.ids
    )


def test_one_text_that_cannot_be_embedded(truth: Database, root: Path) -> None:
    """A text that the embedder refuses hides no other: it alone is pending."""
    desk = ProjectDesk(truth)
    report = indexer(desk, EmbedderService(spec_for(Fussy()))).index(root)
    assert report.pending == 1
    assert report.sections > 200


def test_without_vectors_sections_are_there(truth: Database, root: Path) -> None:
    """What is indexed without embedding is complete but for its vectors, which come later."""
    desk = ProjectDesk(truth)
    report = desk.indexer.index(root, embed=False)
    assert report.pending == report.sections == len(desk.sections_since(0))
    assert desk.indexer.fill_vectors(report.project, limit=10) == 10
    desk.indexer.fill_vectors()
    assert desk.projects.pending(desk.embedder.name) == 0


@pytest.fixture
def sealed() -> SealedRows:
    pytest.importorskip("cryptography")
    count = iter(range(1, 10**9))
    return SealedRows(Keys(bytes(range(32)), lambda size: next(count).to_bytes(size, "big")))


@pytest.mark.promise("project.sealed")
def test_a_sealed_project_answers_the_same(tmp_path: Path, root: Path, sealed: SealedRows) -> None:
    """Sealed and clear truth give the same sections, names, relations, history and vectors."""
    write(root, {"nul.md": b"# Nul\n\n\xed\xa0\x80 and \x0c\n"})
    answers = []
    for name, sealer in (("clear", None), ("sealed", sealed)):
        truth = open_database(tmp_path / f"{name}.db")
        desk = ProjectDesk(truth, sealer) if sealer else ProjectDesk(truth)
        project = desk.indexer.index(root).project
        (root / "docs/nesting.md").rename(root / "docs/nests.md")
        desk.indexer.index(root)
        (root / "docs/nests.md").rename(root / "docs/nesting.md")
        desk.indexer.index(root)
        files = desk.projects.files(project, facts=True)
        answers.append(
            [
                desk.texts(project),
                desk.links(project),
                desk.links(project, "superseded"),
                {path: (row.role, row.content_hash, row.facts) for path, row in files.items()},
                sorted(desk.vectors()),
                sorted(desk.graph.entities_named(["find_nest", "cli.py", "docs"], project=project)),
                desk.projects.find("heron").root,
            ]
        )
        truth.close()
    assert answers[0] == answers[1]


@pytest.mark.promise("project.sealed")
def test_a_sealed_database_holds_nothing_of_a_project(
    tmp_path: Path, root: Path, sealed: SealedRows
) -> None:
    """No text, title, path, symbol, name, package or commit of a project is in the files."""
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Herons at last")
    git(root, "mv", "docs/nesting.md", "docs/nests.md")
    git(root, "commit", "-qm", "Shorter")
    truth = open_database(tmp_path / "truth.db")
    desk = ProjectDesk(truth, sealed)
    desk.indexer.index(root)
    (root / "README.md").unlink()
    desk.indexer.index(root)
    data = b"".join(path.read_bytes() for path in tmp_path.glob("truth.db*"))
    assert len(data) > 100_000
    secrets = (
        "heron", "Heron", "nesting", "nest.py", "find_nest", "Nest", "add_egg", "README", "twigs",
        "requests", "Requests", "click", "at last", "Shorter", str(root), "pip install", "docs/",
        "src/", "Install",
    )  # fmt: skip
    for secret in secrets:
        for form in ("utf-8", "utf-16-le"):
            assert secret.encode(form) not in data, secret
    truth.close()


def test_the_database_is_well(tmp_path: Path, root: Path) -> None:
    """After passes with changes, a removal and a refresh, the database has no fault of its own."""
    truth = open_database(tmp_path / "truth.db")
    desk = ProjectDesk(truth)
    project = desk.indexer.index(root).project
    (root / "many/n3.py").unlink()
    desk.indexer.refresh(project)
    desk.projects.remove(project)
    health = check_truth(truth)
    assert health.problems == ()
    truth.close()


@pytest.mark.promise("project.sealed")
def test_conversions_keep_projects(tmp_path: Path, root: Path) -> None:
    """Encrypting, giving new keys and decrypting a home leave its projects as they were."""
    pytest.importorskip("cryptography")
    place = tmp_path / "home"
    home = Home(place, place / "conversations", place / "anaphora.db")

    def state() -> list[Any]:
        truth = open_database(place / "anaphora.db")
        desk = ProjectDesk(truth, open_home(home).rows)
        report = desk.indexer.index(root)
        found = [desk.texts(report.project), desk.links(report.project)]
        assert (report.added, report.changed, report.pending) == (0, 0, 0)
        truth.close()
        return found

    truth = open_database(place / "anaphora.db")
    ProjectDesk(truth).indexer.index(root)
    truth.close()
    clear = state()
    encrypt(home, "file")
    assert state() == clear
    data = b"".join(path.read_bytes() for path in place.glob("anaphora.db*"))
    assert not [word for word in ("heron", "find_nest", "twigs", "click") if word.encode() in data]
    rekey(home)
    assert state() == clear
    decrypt(home)
    assert state() == clear
