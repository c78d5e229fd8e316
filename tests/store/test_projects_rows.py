"""Projects and notes in truth: alike on both databases, clear and sealed, in any characters."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from tests.ingest.project_desk import sections_since

from anaphora.errors import NotFound
from anaphora.store.crypto.cipher import Keys
from anaphora.store.crypto.columns import ClearRows, SealedRows, Sealer
from anaphora.store.db.engine import Database
from anaphora.store.projects.graph import Graph
from anaphora.store.projects.graph_rows import EntityDraft, RelationDraft, entity_key
from anaphora.store.projects.notes import Notes, diary_of, observation_of, payload_of
from anaphora.store.projects.rows import FileRow, HistoryRow, ProjectRow, SectionRow, SectionVector
from anaphora.store.projects.source import SectionSource
from anaphora.store.projects.store import Projects
from anaphora.store.records.forgetting import forget_for_good
from anaphora.store.records.rules import draft_memory, put
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors, VectorRow
from anaphora.values.memories import NewMemory

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


@pytest.mark.promise("project.incremental")
def test_vectors_belong_to_texts(projects: Projects, ids: Callable[[], str]) -> None:
    """Sections of one text share its vectors, which go when no section has that text."""
    fill(projects, ids, section("a", "same"), section("b", "same"), section("c", "other"))
    assert projects.pending("e") == 3
    missing = projects.without_vector("e", limit=1)
    after = projects.cursor_of(missing[0].text_hash)
    texts = {row.text for row in (*missing, *projects.without_vector("e", after=after))}
    assert texts == {"same", "other"}
    rows = [SectionVector("hash of same", part, bytes([part] * 4)) for part in range(2)]
    assert projects.put_vectors("e", [*rows, SectionVector("hash of none", 0, b"1234")]) == 1
    source = SectionSource(projects.truth, projects.namespace, projects.sealer)
    found = source.section_vectors("e", 0)
    assert found.owners == (projects.cursor_of("hash of same"),) * 2
    assert found.blobs == (b"\0\0\0\0", b"\1\1\1\1")
    assert (projects.pending("e"), projects.pending("other", "p1")) == (1, 3)
    with projects.change() as work:
        work.put_sections(FILE, [section("c", "other")], ids, known=True)
    assert len(source.tombstones(0)) == 2
    with projects.change() as work:
        assert work.drop_unused_vectors() == 2


def test_history_is_kept_once(projects: Projects, ids: Callable[[], str]) -> None:
    """An item of history that is read again stays one, and is found by any path it touched."""
    fill(projects, ids)

    def item(text: str) -> HistoryRow:
        return HistoryRow(ids(), "p1", "commit", NOW, text, f"commit {text}", (ODD, f"{text}.py"))

    for _ in range(2):
        with projects.change() as work:
            work.add_history([item("one"), item(ODD)])
    assert [row.text for row in projects.history("p1")] == ["one", ODD]
    assert [row.text for row in projects.history_of("p1", ["one.py"])] == ["one"]
    assert len(projects.history_of("p1", [ODD, "one.py", "no.py"])) == 2
    assert len(projects.history_of("p1", [ODD], limit=1)) == 1


@pytest.mark.promise("project.graph")
def test_the_graph_comes_back(projects: Projects, ids: Callable[[], str]) -> None:
    """Entities are found by any of their names in any spelling; relations keep their interval."""
    fill(projects, ids)
    graph = Graph(projects.truth, "default", projects.sealer)
    one, two = (entity_key("p1", "symbol", name) for name in ("A", ODD))
    drafts = [
        EntityDraft(
            one, "symbol", "fooBar", (("fooBar", "name"), ("x/y", "path")), ODD, "f1", 1, 2
        ),
        EntityDraft(two, "file", ODD, ((ODD, "name"),), gone_at=NOW),
    ]
    past = RelationDraft(one, "imports", two, "f1", 0.5, NOW, NOW, ODD)
    for _ in range(2):
        with graph.change() as work:
            work.sync("p1", drafts, [past], now=NOW, ids=ids)
    found = graph.entities_named(["foo_bar", "X\\y", "nothing"], project="p1")
    assert {name: rows[0].name for name, rows in found.items()} == {
        "foo_bar": "fooBar", "X\\y": "fooBar",
    }  # fmt: skip
    (row,) = found["foo_bar"]
    assert (row.summary, row.start_line, row.file) == (ODD, 1, "f1")
    assert graph.entities_named([ODD]) == {}
    (gone,) = graph.entities_named([ODD], gone=True)[ODD]
    assert graph.relations([row.id]) == ()
    (relation,) = graph.relations([row.id], ("superseded",))
    assert (relation.object, relation.valid_to, relation.strength) == (gone.id, NOW, 0.5)
    assert relation.detail == ODD
    assert graph.entities_named(["fooBar"], project="another") == {}
    assert graph.counts("p1") == (1, 0)


def keep(notes: Notes, ids: Callable[[], str], kind: Any, text: str, **fields: Any) -> str:
    with notes.change(kind) as work:
        return put(work, draft_memory(NewMemory(text, **fields), NOW, ids()), ids).id


@pytest.mark.promise("project.notes")
def test_notes_are_no_memories(truth: Database, sealer: Sealer, ids: Callable[[], str]) -> None:
    """Notes are read back whole, and no reader or writer of memories ever meets one."""
    notes, records = Notes(truth, "default", sealer), Records(truth, "default", sealer)
    payload = payload_of(importance=5, project="p1", subject=ODD)
    note = keep(
        notes, ids, "observation", ODD, type="decision", payload=payload, tags=(ODD,), source="s"
    )
    diary = keep(notes, ids, "diary", "done", payload=payload)
    with records.change() as work:
        memory = put(work, draft_memory(NewMemory(ODD), NOW, ids()), ids).id
    saved = observation_of(notes.get(note))
    assert (saved.text, saved.kind, saved.importance) == (ODD, "decision", 5)
    assert (saved.tags, saved.source, saved.project) == ((ODD,), "s", "p1")
    assert diary_of(notes.get(diary)).subject == ODD
    assert [row.record.id for row in notes.list()] == [diary, note]
    assert [row.record.id for row in notes.list(kind="diary", project="p1")] == [diary]
    assert notes.list(project="p2") == ()
    assert [row.record.id for row in notes.list(types=["decision"], project="p1")] == [note]
    assert {row.record.id for row in notes.changed_since(0)} == {note, diary}
    assert [record.id for record in records.list()] == [memory]
    assert [record.id for record in records.changed_since(0)] == [memory]
    for one in (note, diary):
        with pytest.raises(NotFound):
            records.get(one)
        with records.change() as work:
            assert forget_for_good(work, [one]).ids == ()
    with pytest.raises(NotFound):
        notes.get(memory)
    vectors = RecordVectors(truth, "default", sealer)
    rows = [VectorRow(one, 0, "h", b"ab") for one in (memory, note, diary)]
    assert vectors.put("e", rows) == 3
    assert [batch.record_ids for batch in vectors.get_all("e")] == [(memory,)]
    assert [batch.record_ids for batch in notes.vectors.get_all("e")] == [(note, diary)]
    assert {owner.record_id for owner in notes.vectors.owners_without("other")} == {note, diary}


@pytest.mark.promise("project.notes")
def test_a_forgotten_note_leaves_nothing(projects: Projects, ids: Callable[[], str]) -> None:
    """Forgetting a note takes its entity and its relations, and leaves a tombstone of its kind."""
    fill(projects, ids)
    truth, sealer = projects.truth, projects.sealer
    notes, graph = Notes(truth, "default", sealer), Graph(truth, "default", sealer)
    note = keep(notes, ids, "observation", "about it", type="note")
    key = entity_key("p1", "file", "x")
    with graph.change() as work:
        work.sync("p1", [EntityDraft(key, "file", "x", (("x.py", "name"),))], [], now=NOW, ids=ids)
    from anaphora.store.projects.graph_rows import NoteLink

    (entity,) = graph.entities_named(["x.py"])["x.py"]
    with graph.change() as work:
        work.link_note(
            (note, "memory", "about it"), [NoteLink(entity.id, "concerns", 0.7, "x")],
            now=NOW, ids=ids,
        )  # fmt: skip
    assert len(graph.relations([entity.id])) == 1
    with notes.change("observation") as change:
        assert forget_for_good(change, [note]).ids == (note,)
    assert graph.relations([entity.id]) == ()
    assert graph.entities_of_notes([note]) == {}
    assert [one for _, one in notes.tombstones_since(0)] == [note]
    assert Records(truth, "default", sealer).tombstones_since(0) == ()
