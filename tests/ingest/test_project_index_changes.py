"""Indexing a project again: only what changed is read, written and embedded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from anaphora.errors import InvalidInput, NotFound
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
