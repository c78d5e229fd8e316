"""The graph of an indexed project: what is in it, and bounded reads of neighbours."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from anaphora import NewMemory
from anaphora.features.projects.notes import mentioned
from anaphora.features.projects.store.graph_rows import RelationRow, alias_of
from anaphora.features.projects.store.notes import NoteRecordKind, payload_of
from anaphora.ingest.sections import ImportedModule, parse
from anaphora.ingest.sections.imports import ImportTarget, ProjectLayout, resolve
from anaphora.store.db.engine import Database

from .project_desk import ProjectDesk
from .project_files import FILES, git, write

pytestmark = pytest.mark.internal


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "heron", dict(FILES))


@pytest.fixture
def desk(truth: Database) -> ProjectDesk:
    return ProjectDesk(truth)


def keep(
    desk: ProjectDesk,
    text: str,
    *,
    kind: NoteRecordKind = "observation",
    note: str = "note",
    project: str | None = None,
    **fields: object,
) -> str:
    """Write a note as the lane above does; its id."""
    from anaphora.store.records.rules import draft_memory, put

    payload = payload_of(importance=4, project=project, subject=fields.pop("subject", None))  # type: ignore[arg-type]
    new = NewMemory(text, type=note, payload=payload, **fields)  # type: ignore[arg-type]
    with desk.notes.change(kind) as work:
        return put(work, draft_memory(new, desk.clock(), desk.ids()), desk.ids).id


@pytest.mark.promise("project.graph")
def test_relations_of_a_project(desk: ProjectDesk, root: Path) -> None:
    """Folders contain files, files define symbols and import each other, tests cover code."""
    project = desk.indexer.index(root).project
    links = desk.links(project)
    assert links >= {
        (".", "contains", "src"),
        ("src", "contains", "src/heron"),
        ("src/heron", "contains", "src/heron/nest.py"),
        ("docs", "contains", "docs/nesting.md"),
        ("src/heron/nest.py", "defines", "Nest.add_egg"),
        ("src/heron/cli.py", "imports", "src/heron/nest.py"),
        ("src/heron/__init__.py", "imports", "src/heron/nest.py"),
        ("tests/test_nest.py", "imports", "src/heron/nest.py"),
        ("tests/test_nest.py", "covers", "src/heron/nest.py"),
        ("src/heron/nest.py", "uses_package", "Requests"),
        ("pyproject.toml", "uses_package", "click"),
        ("pyproject.toml", "defines", "heron"),
        ("README.md", "covers", "."),
        ("src/heron/__init__.py", "covers", "src/heron"),
    }
    assert not {link for link in links if link[2] == "json"}
    kinds = {
        name: {row.kind for row in rows}
        for name, rows in desk.graph.entities_named(
            [
                "README.md",
                "pyproject.toml",
                "nest.py",
                "findNest",
                "heron.nest",
                "src/heron",
                "click",
            ]
        ).items()
    }
    assert kinds == {
        "README.md": {"doc"}, "pyproject.toml": {"config"}, "nest.py": {"file"},
        "findNest": {"symbol"}, "heron.nest": {"file"}, "src/heron": {"module"},
        "click": {"package"},
    }  # fmt: skip
    (test,) = desk.graph.entities_at(project, ["tests/test_nest.py"]).values()
    covers = [row for row in desk.graph.relations([test.id]) if row.predicate == "covers"]
    assert [row.strength for row in covers] == [1.0]


@pytest.mark.promise("project.graph")
def test_the_neighbourhood_is_bounded(desk: ProjectDesk, root: Path) -> None:
    """A walk follows few relations of each entity, of every kind, none twice."""
    many = "".join(f"def f{number}():\n    pass\n\n\n" for number in range(50))
    write(root, {"src/heron/big.py": f"from . import nest\n\n\n{many}"})
    project = desk.indexer.index(root).project
    big = desk.graph.entities_at(project, ["src/heron/big.py"])["src/heron/big.py"]
    near = desk.graph.neighbours([big.id], limit=8)
    assert len(near) == 8
    assert {one.relation.predicate for one in near} == {"contains", "defines", "imports"}
    assert len({one.relation.id for one in near}) == len(near)
    assert desk.graph.neighbours([]) == ()


@pytest.mark.promise("project.graph")
def test_what_a_file_says_no_more_is_closed(desk: ProjectDesk, root: Path) -> None:
    """An import that was taken out is superseded from then on, and active again when it returns."""
    project = desk.indexer.index(root).project
    link = ("src/heron/cli.py", "imports", "src/heron/nest.py")
    write(root, {"src/heron/cli.py": "def main():\n    return 1\n"})
    desk.indexer.refresh(project)
    assert link not in desk.links(project)
    assert link in desk.links(project, "superseded")
    cli = desk.graph.entities_at(project, ["src/heron/cli.py"])["src/heron/cli.py"]
    (closed,) = desk.graph.relations([cli.id], ("superseded",))[:1]
    assert closed.valid_to is not None
    assert closed.valid_from < closed.valid_to
    write(root, {"src/heron/cli.py": FILES["src/heron/cli.py"]})
    desk.indexer.refresh(project)
    assert link in desk.links(project)
    assert link not in desk.links(project, "superseded")


@pytest.mark.promise("project.history")
def test_git_history_becomes_evidence(desk: ProjectDesk, root: Path) -> None:
    """Commits and renames are kept once, by path; what a path was before is superseded by it."""
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Herons at last", at="2026-01-02T00:00:00Z")
    git(root, "mv", "docs/nesting.md", "docs/nests.md")
    git(root, "commit", "-qm", "Nests has a shorter name", at="2026-01-03T00:00:00Z")
    report = desk.indexer.index(root)
    project = report.project
    assert report.commits == 2
    items = desk.projects.history_of(project, ["docs/nests.md"])
    assert {(item.kind, item.text) for item in items} == {
        ("commit", "Nests has a shorter name"),
        ("rename", "Nests has a shorter name"),
    }
    older = desk.projects.history_of(project, ["docs/nesting.md"])
    assert [item.kind for item in older].count("commit") >= 1
    assert older[-1].text == "Herons at last"
    assert older[-1].at == datetime(2026, 1, 2, tzinfo=UTC)
    (row,) = desk.projects.sections_of(project, "docs/nests.md")[:1]
    assert row.changed_at.date() == datetime(2026, 1, 3, tzinfo=UTC).date()
    assert ("docs/nests.md", "supersedes", "docs/nesting.md") in desk.links(project)
    assert ("docs", "contains", "docs/nesting.md") in desk.links(project, "superseded")
    git(root, "rm", "-q", "src/heron/cli.py")
    git(root, "commit", "-qm", "No commands", at="2026-01-04T00:00:00Z")
    again = desk.indexer.index(root)
    assert (again.commits, again.removed) == (1, 1)
    assert len(desk.projects.history(project)) == 4
    assert desk.indexer.index(root).commits == 0


@pytest.mark.promise("project.notes")
def test_a_note_concerns_what_it_names(desk: ProjectDesk, root: Path) -> None:
    """Source 1.0, tags and subject 0.8, ticked and path-like words 0.7; constraints apply."""
    project = desk.indexer.index(root).project
    decision = keep(
        desk,
        "`find_nest` stays in src/heron/nest.py:13, says docs/nesting.md, not elsewhere.txt",
        note="decision", project=project, tags=("click", "no such thing"),
        source="src/heron/cli.py",
    )  # fmt: skip
    limit = keep(desk, "Nothing in `heron.nest` may sleep", note="constraint", project=project)
    diary = keep(desk, "Done.", kind="diary", project=project, subject="Nest.add_egg")
    linker = desk.linker
    for note in (decision, limit, diary):
        linker.link(desk.notes.get(note))
    ends = desk.graph.entities_of_notes([decision, limit, diary])
    assert {row.kind for row in ends.values()} == {"memory", "diary"}
    found = {
        (row.predicate, desk.graph.entities([row.object])[row.object].name, row.strength)
        for row in desk.of_source(decision)
    }
    assert found == {
        ("concerns", "src/heron/cli.py", 1.0), ("concerns", "click", 0.8),
        ("concerns", "find_nest", 0.7), ("concerns", "src/heron/nest.py", 0.7),
        ("concerns", "docs/nesting.md", 0.7),
    }  # fmt: skip
    (applies,) = desk.of_source(limit)
    assert (applies.predicate, applies.subject) == ("applies_to", ends[limit].id)
    (about,) = desk.of_source(diary)
    assert (about.strength, desk.graph.entities([about.object])[about.object].name) == (
        0.8, "Nest.add_egg",
    )  # fmt: skip


@pytest.mark.promise("project.notes")
def test_a_note_waits_for_what_it_names(desk: ProjectDesk, root: Path) -> None:
    """A note that names a file that comes later is linked by the pass that brings the file."""
    project = desk.indexer.index(root).project
    note = keep(desk, "Move eggs into `src/heron/egg.py`", project=project)
    desk.linker.link(desk.notes.get(note))
    assert desk.of_source(note) == []
    write(root, {"src/heron/egg.py": "def hatch():\n    return 2\n"})
    desk.indexer.refresh(project)
    (link,) = desk.of_source(note)
    assert desk.graph.entities([link.object])[link.object].name == "src/heron/egg.py"


@pytest.mark.promise("project.notes")
def test_a_superseded_note_is_closed(desk: ProjectDesk, root: Path) -> None:
    """Relations of a replaced note end then, and the new one's name those whose place they took."""
    project = desk.indexer.index(root).project
    old = keep(desk, "Twigs go in `nest.py`", note="decision", project=project)
    desk.linker.link(desk.notes.get(old))
    new = keep(desk, "Reeds go in `nest.py`", note="decision", project=project, supersedes=old)
    desk.linker.link(desk.notes.get(new))
    at = desk.clock()
    with desk.graph.change() as work:
        assert work.supersede_note(old, new, at) == 1
    (before,), (after,) = desk.of_source(old), desk.of_source(new)
    assert (before.status, before.valid_to) == ("superseded", at)
    assert (after.status, after.supersedes) == ("active", before.id)
    assert [row.record.text for row in desk.notes.history(new)] == [
        "Twigs go in `nest.py`", "Reeds go in `nest.py`",
    ]  # fmt: skip
    assert [row.record.id for row in desk.notes.list(project=project)] == [new]
    with desk.graph.change() as work:
        assert work.invalidate([new], desk.clock()) == 1
    assert {row.status for row in desk.of_source(new)} == {"invalidated"}


def test_names_are_compared_as_the_seed_does() -> None:
    """Trimmed, slashes forward, camel case split, lower-case, underscores and hyphens to spaces."""
    assert alias_of("  src\\FooBar_baz-Qux ") == "src/foo bar baz qux"
    assert alias_of("HTTPServer") == alias_of("http_server") == "http server"
    assert alias_of("__init__.py") == "init .py"


def test_mentions_in_a_text() -> None:
    """Paths, ticked words and their line numbers are read as names; plain prose is not."""
    found = mentioned(
        "See `Nest.add_egg()` and ./src/heron/nest.py:12, and/or (docs/a-b.md). Version 1.2, e.g. "
        "this. https://example.org/x.html",
        source="README.md", tags=["eggs"], subject="cleaning up",
    )  # fmt: skip
    assert found["README.md"] == 1.0
    assert (found["eggs"], found["cleaning up"]) == (0.8, 0.8)
    assert {"Nest.add_egg", "src/heron/nest.py", "docs/a-b.md"} <= set(found)
    assert not {"1.2", "this", "See"} & set(found)


@pytest.mark.parametrize(
    ("path", "text", "files", "expected"),
    [
        ("a/b.py", "from .. import c\nfrom . import d\nimport os, yaml.nodes\n",
         "c.py a/__init__.py a/d.py", "file:c.py file:a/d.py package:yaml"),
        ("t/x.py", "import app.core.run\nfrom app import Thing, core\nimport app\n",
         "lib/app/__init__.py lib/app/core/__init__.py",
         "file:lib/app/core/__init__.py file:lib/app/__init__.py"),
        ("src/a.ts", "import x from './b'\nimport {y} from '../c.js'\nimport z from '@/d'\n"
         "import f from 'node:fs'\nimport g from 'path'\nimport h from '@s/p/q'\n",
         "src/b/index.tsx c.ts src/d.vue", "file:src/b/index.tsx file:c.ts file:src/d.vue "
         "package:@s/p"),
        ("cmd/m.go", 'package main\nimport (\n"fmt"\n"ex.org/m/inner/x"\n"github.com/a/b/c"\n)\n',
         "inner/x/x.go", "module:inner/x package:github.com/a/b"),
        ("src/a/mod.rs", "mod b;\nuse crate::c::D;\nuse super::e;\nuse std::io;\nuse serde::X;\n",
         "src/lib.rs src/a/b.rs src/c.rs src/e/mod.rs",
         "file:src/a/b.rs file:src/c.rs file:src/e/mod.rs package:serde"),
        ("j/x/A.java", "package x;\nimport x.B;\nimport x.y.*;\nimport java.util.List;\n"
         "import org.junit.Test;\nimport static x.B.go;\n",
         "j/x/B.java j/x/y/C.java", "file:j/x/B.java module:j/x/y package:org.junit"),
        ("s/a.c", '#include "b.h"\n#include <stdio.h>\n#include "n/c.h"\n#include <ssl/x.h>\n',
         "s/b.h include/n/c.h", "file:s/b.h file:include/n/c.h package:ssl"),
        ("lib/a/b.rb", "require_relative '../c'\nrequire 'a/d'\nrequire 'json/add'\n",
         "lib/c.rb lib/a/d.rb", "file:lib/c.rb file:lib/a/d.rb package:json"),
        ("p/a.php", "<?php\nrequire 'b.php';\nrequire_once __DIR__ . '/c/d.php';\n"
         "use App\\Model\\User;\nuse Vendor\\Thing\\X;\n",
         "p/b.php p/c/d.php src/Model/User.php",
         "file:p/b.php file:p/c/d.php file:src/Model/User.php package:vendor/thing"),
        ("S/A.cs", "using System;\nusing My.App.Core;\nusing Newtonsoft.Json;\n",
         "src/Core/C.cs", "module:src/Core package:Newtonsoft.Json"),
        ("bin/a.sh", "source ./b.sh\n. lib/c.sh\n", "bin/b.sh lib/c.sh",
         "file:bin/b.sh file:lib/c.sh"),
    ],
)  # fmt: skip
@pytest.mark.promise("project.graph")
def test_imports_are_resolved(path: str, text: str, files: str, expected: str) -> None:
    """What a language lets one know of an import is the file or folder meant, else the package."""
    layout = ProjectLayout(frozenset([path, *files.split()]), {"": "ex.org/m"})
    parsed = parse(path, text)
    assert parsed.imports
    found = resolve(path, parsed.language, parsed.imports, layout)
    assert {f"{one.kind}:{one.name}" for one in found} == set(expected.split())


def test_an_odd_import_resolves_to_nothing() -> None:
    """Imports without a name, or far outside of the project, are no target and no error."""
    layout = ProjectLayout(frozenset(["a.py", "b.js", "c.rs"]))
    odd = [
        ImportedModule(""),
        ImportedModule("", ("x",), 9),
        ImportedModule("../../../x"),
        ImportedModule("::"),
        ImportedModule("a" * 500),
    ]
    for path, language in (("a.py", "python"), ("b.js", "javascript"), ("c.rs", "rust")):
        found = resolve(path, language, odd, layout)
        assert all(one == ImportTarget("package", one.name) for one in found)
    assert resolve("x.unknown", "unknown", odd, layout) == ()


# What says most comes first, as the graph has it.
ORDER = (
    "applies_to", "concerns", "supersedes", "covers", "imports", "contains", "uses_package",
    "defines",
)  # fmt: skip


@pytest.mark.promise("project.graph")
def test_a_bounded_read_chooses_as_a_whole_one(truth: Database, tmp_path: Path) -> None:
    """Of entities with many relations, and some between them, the same are followed as of all."""
    desk = ProjectDesk(truth)
    users = {f"tests/test_{n}.py": "from heron import core, cli\n" for n in range(30)}
    symbols = "".join(f"def f{n}():\n    pass\n\n\n" for n in range(40))
    files = {
        "heron/__init__.py": "",
        "heron/core.py": symbols,
        "heron/cli.py": f"from heron import core\n\n\n{symbols}",
        "heron/web.py": "from heron import core, cli\n",
        **users,
    }
    project = desk.indexer.index(write(tmp_path / "heron", files)).project
    asked = ["heron/core.py", "heron/cli.py", "heron/web.py", "tests/test_7.py"]
    start = [row.id for row in desk.graph.entities_at(project, asked).values()]
    every = desk.graph.relations(start)
    assert len(every) > 130
    for limit in (1, 3, 8, 20):
        found = desk.graph.neighbours(start, limit=limit)
        assert [one.relation for one in found] == followed(every, start, limit)


def followed(every: tuple[RelationRow, ...], start: list[str], limit: int) -> list[RelationRow]:
    """Each kind in turn, the strongest first, until no entity has room."""
    seen: dict[tuple[str, str], int] = {}
    ranked = []
    for number, row in enumerate(every):
        nths = []
        for end in (row.subject, row.object):
            if end in start:
                nths.append(seen.get((end, row.predicate), 0))
                seen[end, row.predicate] = nths[-1] + 1
        ranked.append((min(nths), ORDER.index(row.predicate), number))
    room = dict.fromkeys(start, limit)
    chosen = []
    for _, _, number in sorted(ranked):
        row = every[number]
        near = next((end for end in (row.subject, row.object) if room.get(end, 0) > 0), None)
        if near is not None:
            room[near] -= 1
            chosen.append(row)
    return chosen
