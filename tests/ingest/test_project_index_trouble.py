"""Indexing that is killed, done twice at one time, or done where everything is sealed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anaphora.embed.service import EmbedderService
from anaphora.ingest.projects.indexing import ProjectIndexer
from anaphora.store.crypto.cipher import Keys
from anaphora.store.crypto.columns import SealedRows
from anaphora.store.db.engine import Database, open_database

from .project_desk import ProjectDesk
from .project_files import FILES, write

pytestmark = pytest.mark.internal

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


def indexer(desk: ProjectDesk, embedder: EmbedderService) -> ProjectIndexer:
    return ProjectIndexer(
        desk.projects, desk.graph, desk.notes, embedder, clock=desk.clock, ids=desk.ids
    )


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
