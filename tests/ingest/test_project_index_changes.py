"""An indexed project follows its files, and survives crashes and faults."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.commands import python

from anaphora.embed.service import EmbedderService
from anaphora.errors import InvalidInput, NotFound
from anaphora.features.projects.indexing.indexing import ProjectIndexer
from anaphora.store.crypto.cipher import Keys
from anaphora.store.crypto.columns import SealedRows
from anaphora.store.db.engine import Database, open_database

from .project_desk import ProjectDesk
from .project_files import FILES, write

pytestmark = pytest.mark.internal

WORDS = st.text(st.characters(codec="utf-8"), max_size=40)
NAMES = st.sampled_from(["a.py", "b.md", "c.txt", "sub/d.py", "sub/deep/e.md", "x.toml"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "heron", dict(FILES))


@pytest.fixture
def desk(truth: Database) -> ProjectDesk:
    return ProjectDesk(truth)


@pytest.mark.promise("project.index")
def test_a_project_is_indexed(desk: ProjectDesk, root: Path) -> None:
    """Every file comes in with its role and sections, all with vectors, under the folder's name."""
    steps: list[tuple[str, int, int]] = []
    report = desk.indexer.index(root, progress=lambda *step: steps.append(step))
    assert (report.name, report.root) == ("heron", str(root.resolve()))
    assert (report.files, report.added, report.pending) == (len(FILES), len(FILES), 0)
    assert report.sections == sum(len(rows) for rows in desk.texts(report.project).values())
    (one,) = desk.projects.list()
    assert (one.id, one.files, one.sections) == (report.project, report.files, report.sections)
    rows = {row.symbol: row for row in desk.sections_since(0)}
    assert rows["Nest"].role == "code"
    assert rows["Nest"].language == "python"
    assert (rows["find_nest"].start_line, rows["find_nest"].end_line) == (13, 14)
    docs = {row.title: row for row in desk.projects.sections_of(report.project, "docs/nesting.md")}
    assert docs["Twigs"].heading == ("Nesting",)
    assert (docs["Twigs"].role, docs["Twigs"].language) == ("docs", "markdown")
    assert {label for label, _, _ in steps} == {"files", "graph", "vectors"}
    assert desk.projects.find("heron").id == desk.projects.find(str(root.resolve())).id


@pytest.mark.promise("project.incremental")
def test_nothing_is_done_twice(desk: ProjectDesk, root: Path) -> None:
    """A second pass over an unchanged project writes no row and embeds no text."""
    first = desk.indexer.index(root)
    version, embedded = desk.projects.version(), desk.embedder.embedded
    again = desk.indexer.index(root)
    assert (again.unchanged, again.added, again.changed) == (first.files, 0, 0)
    assert (desk.projects.version(), desk.embedder.embedded) == (version, embedded)
    os.utime(root / "README.md", (1, 1))
    touched = desk.indexer.index(root)
    assert (touched.unchanged, touched.changed, desk.embedder.embedded) == (7, 0, embedded)
    version = desk.projects.version()
    assert desk.indexer.index(root).unchanged == 7
    assert desk.projects.version() == version


@pytest.mark.promise("project.incremental")
def test_a_change_touches_its_section_alone(desk: ProjectDesk, root: Path) -> None:
    """Of a changed file only the changed section is embedded, and all parts keep their ids."""
    project = desk.indexer.index(root).project
    before = {row.title: row for row in desk.projects.sections_of(project, "README.md")}
    seq, embedded = desk.projects.version(), desk.embedder.embedded
    write(root, {"README.md": FILES["README.md"].replace("pip install", "pipx install")})
    report = desk.indexer.index(root)
    assert (report.changed, report.added, report.unchanged) == (1, 0, 6)
    after = {row.title: row for row in desk.projects.sections_of(project, "README.md")}
    assert {t: row.id for t, row in after.items()} == {t: row.id for t, row in before.items()}
    changed = [row.title for row in desk.sections_since(seq)]
    assert changed == ["Install"]
    assert desk.embedder.embedded == embedded + 1
    assert desk.gone_since(seq) == set()


@pytest.mark.promise("project.incremental")
def test_a_rename_is_cheap(desk: ProjectDesk, root: Path) -> None:
    """A file that moved keeps the ids and vectors of its sections; they have its new path."""
    project = desk.indexer.index(root).project
    old = desk.projects.sections_of(project, "src/heron/nest.py")
    seq, embedded = desk.projects.version(), desk.embedder.embedded
    (root / "src/heron/nest.py").rename(root / "src/heron/home.py")
    report = desk.indexer.index(root)
    assert (report.renamed, report.added, report.removed) == (1, 0, 0)
    new = desk.projects.sections_of(project, "src/heron/home.py")
    assert [row.id for row in new] == [row.id for row in old]
    assert {row.id for row in desk.sections_since(seq)} == {row.id for row in new}
    assert desk.projects.sections_of(project, "src/heron/nest.py") == ()
    assert desk.embedder.embedded == embedded
    assert desk.gone_since(seq) == set()
    assert ("src/heron/home.py", "supersedes", "src/heron/nest.py") in desk.links(project)
    past = desk.links(project, "superseded")
    assert ("src/heron", "contains", "src/heron/nest.py") in past


@pytest.mark.promise("project.incremental")
def test_what_is_deleted_goes(desk: ProjectDesk, root: Path) -> None:
    """A deleted file's sections leave tombstones, its vectors go, its relations are closed."""
    project = desk.indexer.index(root).project
    gone = {row.id for row in desk.projects.sections_of(project, "docs/nesting.md")}
    seq = desk.projects.version()
    vectors = len(desk.vectors())
    (root / "docs/nesting.md").unlink()
    report = desk.indexer.index(root)
    assert (report.removed, report.files) == (1, 6)
    assert desk.gone_since(seq) == gone
    left = len(desk.vectors())
    assert left == vectors - len(gone)
    assert ("docs", "contains", "docs/nesting.md") in desk.links(project, "superseded")
    found = desk.graph.entities_named(["nesting.md"], project=project)
    assert found == {}
    past = desk.graph.entities_named(["nesting.md"], project=project, gone=True)["nesting.md"]
    assert past[0].gone_at is not None
    write(root, {"docs/nesting.md": FILES["docs/nesting.md"]})
    assert desk.indexer.index(root).added == 1
    assert ("docs", "contains", "docs/nesting.md") in desk.links(project)


@pytest.mark.promise("project.refresh")
def test_a_refresh_sees_changes(desk: ProjectDesk, root: Path) -> None:
    """A changed, a new and a deleted file are in truth after a refresh, without a whole pass."""
    project = desk.indexer.index(root).project
    version = desk.projects.version()
    assert desk.indexer.refresh(project).changed == 0
    assert desk.projects.version() == version
    write(root, {"src/heron/nest.py": FILES["src/heron/nest.py"] + "\n\ndef lay():\n    pass\n"})
    done = desk.indexer.refresh(project)
    assert (done.changed, done.added, done.removed) == (1, 0, 0)
    assert "lay" in {row.symbol for row in desk.sections_since(version)}
    assert ("src/heron/nest.py", "defines", "lay") in desk.links(project)
    write(root, {"src/heron/egg.py": "def hatch():\n    return 2\n"})
    (root / "docs/nesting.md").unlink()
    done = desk.indexer.refresh(project)
    assert (done.changed, done.added, done.removed) == (0, 1, 1)
    assert set(desk.texts(project)) == {*FILES, "src/heron/egg.py"} - {"docs/nesting.md"}
    version = desk.projects.version()
    assert desk.indexer.refresh(project).added == 0
    assert desk.projects.version() == version
    assert desk.indexer.fill_vectors(project) > 0
    assert desk.projects.pending(desk.embedder.name, project) == 0


@pytest.mark.promise("project.refresh")
def test_a_change_within_one_tick_is_seen(truth: Database, root: Path) -> None:
    """A file that is changed right after it was read, to the same size and time, is read again."""
    desk = ProjectDesk(truth, late=False)
    place = root / "README.md"
    project = desk.indexer.index(root).project
    state = place.stat()
    place.write_text(FILES["README.md"].replace("Keeps herons", "Loves herons"))
    os.utime(place, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert place.stat().st_size == state.st_size
    assert desk.indexer.refresh(project).changed == 1
    assert "Loves herons" in str(desk.texts(project)["README.md"])


def test_a_large_change_is_left_for_a_whole_pass(desk: ProjectDesk, root: Path) -> None:
    """A refresh that would keep a question waiting says how much it left, and changes nothing."""
    project = desk.indexer.index(root).project
    write(root, {f"many/n{number}.txt": f"number {number}\n" for number in range(201)})
    version = desk.projects.version()
    assert desk.indexer.refresh(project).left == 201
    assert desk.projects.version() == version
    assert desk.indexer.index(root).added == 201


@pytest.mark.promise("project.trouble")
def test_a_missing_folder_loses_nothing(desk: ProjectDesk, root: Path) -> None:
    """A project whose folder is not there (an unmounted disk) is refused and keeps its index."""
    project = desk.indexer.index(root).project
    kept = desk.texts(project)
    root.rename(root.parent / "elsewhere")
    with pytest.raises(InvalidInput, match="root"):
        desk.indexer.index(root)
    assert desk.indexer.refresh(project).missing
    assert desk.texts(project) == kept
    with pytest.raises(InvalidInput, match="root"):
        desk.indexer.index(root.parent / "elsewhere" / "README.md")


@pytest.mark.promise("project.trouble")
def test_a_project_removed_while_it_is_indexed(desk: ProjectDesk, root: Path) -> None:
    """Indexing a project that somebody removes meanwhile raises NotFound, and nothing is left."""
    write(root, {f"many/n{number}.py": f"def f{number}(): pass\n" for number in range(150)})

    def remove(label: str, done: int, total: int) -> None:
        if label == "files" and done < total:
            desk.projects.remove(desk.projects.rows()[0].id)

    with pytest.raises(NotFound, match="project"):
        desk.indexer.index(root, progress=remove)
    assert desk.projects.list() == ()
    assert desk.sections_since(0) == []
    assert desk.indexer.index(root).added == 157


def test_names_of_projects(desk: ProjectDesk, tmp_path: Path) -> None:
    """Two folders of one name have two names; a name can be given, but not one that is taken."""
    for place in ("a/app", "b/app", "c/app"):
        write(tmp_path / place, {"x.md": f"# {place}\n"})
    names = [desk.indexer.index(tmp_path / place).name for place in ("a/app", "b/app")]
    assert names == ["app", "b/app"]
    with pytest.raises(InvalidInput, match="name"):
        desk.indexer.index(tmp_path / "c/app", name="app")
    assert desk.indexer.index(tmp_path / "a/app", name="first").name == "first"
    assert [one.name for one in desk.projects.list()] == ["b/app", "first"]
    with pytest.raises(NotFound):
        desk.projects.find("app")


@pytest.mark.promise("project.incremental")
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(versions=st.lists(st.dictionaries(NAMES, WORDS, max_size=5), min_size=2, max_size=4))
# A file that has words, and then is one that is skipped: its folders go with it.
@example(
    versions=[
        {"x.toml": "a = 1", "sub/deep/e.md": "a"},
        {"x.toml": "a = 1", "sub/deep/e.md": "\x00"},
    ]
)
@example(versions=[{"sub/deep/e.md": "\x00"}, {"sub/deep/e.md": "a"}])
# A folder that is empty when the files are indexed, and gets one later.
@example(versions=[{"sub/d.py": "a"}, {}, {}, {"sub/d.py": "a"}])
def test_many_small_passes_end_where_one_does(
    tmp_path_factory: pytest.TempPathFactory, versions: list[dict[str, str]]
) -> None:
    """However files came, changed, moved and went, truth has what one pass over the end has."""
    place = tmp_path_factory.mktemp("law")
    root = place / "p"
    root.mkdir()
    step, whole = open_database(place / "step.db"), open_database(place / "whole.db")
    one, other = ProjectDesk(step), ProjectDesk(whole)
    project = ""
    for number, files in enumerate(versions):
        for path in sorted(root.rglob("*"), reverse=True):
            if path.is_file():
                path.unlink()
        write(root, dict(files))
        if number % 2 and project:
            one.indexer.refresh(project)
        else:
            project = one.indexer.index(root).project
    one.indexer.fill_vectors()
    ended = other.indexer.index(root).project
    assert one.texts(project) == other.texts(ended)
    assert one.links(project) - one_past(one, project) == other.links(ended)
    for desk in (one, other):
        assert desk.projects.pending(desk.embedder.name) == 0
    assert hashes(one) == hashes(other)
    step.close()
    whole.close()


def one_past(desk: ProjectDesk, project: str) -> set[tuple[str, str, str]]:
    return {link for link in desk.links(project) if link[1] == "supersedes"}


def hashes(desk: ProjectDesk) -> set[Any]:
    return set(desk.vectors())


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


def child(database: Path | str, wide_root: Path, delay: float = 0.0) -> subprocess.Popen[str]:
    where = str(database)
    command = [
        *python(),
        "-m",
        "tests.ingest.project_desk",
        where,
        str(wide_root),
        str(delay),
    ]
    place = Path(__file__).resolve().parents[2]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=place)


def flaws(truth: Database) -> list[str]:
    return [name for name, statement in HALF_WRITTEN.items() if truth.rows(statement, {})]


@pytest.fixture
def wide_root(tmp_path: Path) -> Path:
    many = {f"many/n{n}.py": f"import os\n\n\ndef f{n}():\n    return {n}\n" for n in range(200)}
    return write(tmp_path / "heron", dict(FILES) | many)


@pytest.mark.promise("project.trouble")
def test_a_killed_run_is_finished_by_the_next(tmp_path: Path, wide_root: Path) -> None:
    """kill -9 in the middle leaves whole files, which the next run does not read in again."""
    database = tmp_path / "truth.db"
    running = child(database, wide_root, delay=60)
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
    report = desk.indexer.index(wide_root)
    assert (report.unchanged, report.added, report.pending) == (done, len(FILES) + 200 - done, 0)
    assert {path: rows for path, rows in desk.texts(report.project).items() if path in kept} == kept
    assert ("src/heron/cli.py", "imports", "src/heron/nest.py") in desk.links(report.project)
    assert ("many/n7.py", "defines", "f7") in desk.links(report.project)
    assert flaws(truth) == []
    truth.close()


@pytest.mark.promise("project.trouble")
def test_two_processes_index_one_project(database: Path | str, wide_root: Path) -> None:
    """Two processes at work on one project at once both succeed, and nothing is there twice."""
    children = [child(database, wide_root) for _ in range(2)]
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
    again = desk.indexer.index(wide_root)
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
def test_a_sealed_project_answers_the_same(
    tmp_path: Path, wide_root: Path, sealed: SealedRows
) -> None:
    """Sealed and clear truth give the same sections, names, relations, history and vectors."""
    write(wide_root, {"nul.md": b"# Nul\n\n\xed\xa0\x80 and \x0c\n"})
    answers = []
    for name, sealer in (("clear", None), ("sealed", sealed)):
        truth = open_database(tmp_path / f"{name}.db")
        desk = ProjectDesk(truth, sealer) if sealer else ProjectDesk(truth)
        project = desk.indexer.index(wide_root).project
        (wide_root / "docs/nesting.md").rename(wide_root / "docs/nests.md")
        desk.indexer.index(wide_root)
        (wide_root / "docs/nests.md").rename(wide_root / "docs/nesting.md")
        desk.indexer.index(wide_root)
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
