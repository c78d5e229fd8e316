"""The index of sections and notes: it follows truth, and its files are only a copy."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import Clock
from tests.index.section_desk import SectionDesk, section_desk

from anaphora.features.projects.index import index as module
from anaphora.features.projects.index.changes import SectionChanges
from anaphora.features.projects.index.index import SectionIndex
from anaphora.features.projects.index.state import SectionCandidates, SectionQuery, strongest
from anaphora.language.analyser import query_terms
from anaphora.store.codecs import to_micros
from anaphora.store.db.driver import dbapi2

pytestmark = pytest.mark.internal


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Iterator[SectionDesk]:
    with section_desk(tmp_path, clock) as desk:
        yield desk


def ask(desk: SectionDesk, index: SectionIndex, words: str) -> SectionCandidates:
    now = to_micros(desk.clock())
    assert now is not None
    vector = desk.service.query(words)
    weights = dict.fromkeys(query_terms(words), 1.0)
    return index.candidates(SectionQuery(weights, 50, now, vector))


def facts(desk: SectionDesk, index: SectionIndex, words: str) -> list[tuple[object, ...]]:
    """What an index answers, in an order that does not depend on how it came to be."""
    found = ask(desk, index, words)
    assert found.cosine is not None
    columns = zip(
        (found.table.ids[row] for row in found.rows.tolist()),
        found.words.path.round(3).tolist(),
        found.words.title.round(3).tolist(),
        found.words.body.round(3).tolist(),
        found.words.held.round(4).tolist(),
        np.nan_to_num(found.cosine, nan=-9.0).round(4).tolist(),
        strict=True,
    )
    return sorted(columns)


def names(desk: SectionDesk, index: SectionIndex, words: str) -> set[str]:
    found = ask(desk, index, words)
    ids = [found.table.ids[row] for row in found.rows.tolist()]
    return {one.title for one in index.texts(ids).values()}


@pytest.mark.promise("context.index_follows")
def test_a_changed_file_is_in_the_next_answer(desk: SectionDesk, tmp_path: Path) -> None:
    """What was indexed, changed or removed, by any process, is seen by the next question."""
    root = tmp_path / "p"
    desk.add(root, {"a.py": "def walrus():\n    pass\n", "b.py": "def otter():\n    pass\n"})
    other = desk.index("other")
    assert names(desk, other, "walrus") == {"walrus"}
    (root / "a.py").write_text("def heron():\n    pass\n")
    (root / "b.py").unlink()
    desk.indexing.index(root)
    for index in (desk.sections, other):
        assert names(desk, index, "walrus") == set()
        assert names(desk, index, "heron") == {"heron"}
        assert names(desk, index, "otter") == set()


@pytest.mark.promise("context.index_cheap")
def test_asking_again_reads_one_row(
    desk: SectionDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When nothing has changed, following costs a single read."""
    desk.add(tmp_path / "p", {"a.py": "def walrus():\n    pass\n"})
    desk.sections.sync()
    reads: list[str] = []
    rows = desk.truth.rows

    def counted(statement: str, parameters: dict[str, str | int | None]) -> object:
        reads.append(statement)
        return rows(statement, parameters)

    monkeypatch.setattr(desk.truth, "rows", counted)
    assert desk.sections.sync() == 0
    assert len(reads) == 1


@pytest.mark.promise("context.index_disposable")
@pytest.mark.parametrize("damage", ["gone", "torn", "foreign"])
def test_files_that_are_lost_or_torn_lose_nothing(
    desk: SectionDesk, tmp_path: Path, damage: str
) -> None:
    """Whatever happens to the index's files, the next index answers the same from truth."""
    text = "\n\n".join(f"def animal_{n}():\n    return 'walrus {n}'" for n in range(30))
    desk.add(tmp_path / "p", {"a.py": text + "\n"})
    wanted = facts(desk, desk.sections, "walrus animal")
    assert desk.sections.settle()
    place = desk.place / "context"
    if damage == "gone":
        shutil.rmtree(place)
    else:
        desk.sections.close()
        path = place / "words.sqlite"
        path.write_bytes(path.read_bytes()[:7] if damage == "torn" else b'{"form": 1}' * 99)
    again = desk.index()
    assert facts(desk, again, "walrus animal") == wanted
    assert again.settle()
    assert facts(desk, desk.index(), "walrus animal") == wanted


def test_words_come_from_the_disk_when_an_index_is_opened_again(
    desk: SectionDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written is not analysed again; what came later is."""
    desk.add(tmp_path / "p", {"a.py": "def walrus():\n    pass\n"})
    desk.sections.sync()
    assert desk.sections.settle()
    desk.add(tmp_path / "p", {"b.py": "def otter():\n    pass\n"})
    made: list[str] = []
    follower = SectionChanges.documents

    def counted(self: object, rows: object, changed: object) -> Iterator[object]:
        for document in follower(self, rows, changed):  # type: ignore[arg-type]
            made.append(document.key)
            yield document

    monkeypatch.setattr(SectionChanges, "documents", counted)
    again = desk.index()
    assert names(desk, again, "walrus") == {"walrus"}
    assert names(desk, again, "otter") == {"otter"}
    assert len(made) == 1


def test_many_documents_are_written_as_they_come(
    desk: SectionDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large project does not wait in memory, and whoever opens the index next has all of it."""
    monkeypatch.setattr(module, "STEP", 10)
    text = "\n\n".join(f"def animal_{n}():\n    return 'walrus {n}'" for n in range(45))
    desk.add(tmp_path / "p", {"a.py": text + "\n"})
    steps: list[tuple[int, int]] = []
    desk.sections.sync(lambda done, total: steps.append((done, total)))
    assert steps == [(10, 45), (20, 45), (30, 45), (40, 45), (45, 45)]
    assert facts(desk, desk.index(), "walrus 7") == facts(desk, desk.index("fresh"), "walrus 7")
    assert facts(desk, desk.sections, "walrus 7") == facts(desk, desk.index("new"), "walrus 7")


@pytest.mark.promise("context.index_one_writer")
def test_who_does_not_get_the_lock_answers_from_memory(desk: SectionDesk, tmp_path: Path) -> None:
    """While another process writes, an index answers in full and writes nothing."""
    desk.add(tmp_path / "p", {"a.py": "def walrus():\n    pass\n"})
    desk.sections.sync()
    assert desk.sections.settle()
    with closing(
        dbapi2.connect(desk.place / "context" / "words.sqlite", isolation_level=None)
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        desk.add(tmp_path / "p", {"b.py": "def otter():\n    pass\n"})
        assert names(desk, desk.sections, "otter") == {"otter"}
        assert not desk.sections.settle()
    assert desk.sections.settle()


@pytest.mark.promise("context.index_forgets")
def test_a_forgotten_note_leaves_the_files(desk: SectionDesk, tmp_path: Path) -> None:
    """The words of a note that was deleted for good are not on the disk any more."""
    note = desk.note("The password hint is xylophone.")
    desk.add(tmp_path / "p", {"a.py": "def walrus():\n    pass\n"})
    desk.sections.sync()
    assert desk.sections.settle()
    words = desk.place / "context" / "words.sqlite"
    desk.sections._table.close()
    assert note.encode() in words.read_bytes()
    with desk.notes.change("observation") as work:
        work.erase([note])
    desk.sections.sync()
    assert note.encode() not in words.read_bytes()
    assert names(desk, desk.sections, "xylophone") == set()
    assert desk.sections.settle()
    assert note.encode() not in words.read_bytes()
    assert names(desk, desk.index(), "walrus") == {"walrus"}


def test_a_replaced_note_is_past_and_an_expired_one_is_gone(desk: SectionDesk) -> None:
    """Only current notes are candidates; `past` asks for those that were replaced."""
    old = desk.note("Store carts in redis.", kind="decision")
    new = desk.note("Store carts in postgres.", kind="decision", supersedes=old)
    now = to_micros(desk.clock())
    assert now is not None
    wanted = SectionQuery({"cart": 1.0}, 10, now)
    found = desk.sections.candidates(wanted)
    assert [found.table.ids[row] for row in found.rows] == [new]
    past = desk.sections.candidates(SectionQuery({"cart": 1.0}, 10, now, past=True))
    assert [past.table.ids[row] for row in past.rows] == [old]


ANIMALS = ("walrus", "otter", "heron", "badger")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "remove", "move", "note", "settle", "ask"]),
        st.sampled_from(ANIMALS),
        st.integers(0, 3),
    ),
    max_size=8,
)


@pytest.mark.promise("context.index_same")
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(STEPS)
def test_any_history_gives_the_same_index(
    tmp_path_factory: pytest.TempPathFactory, clock: Clock, steps: list[tuple[str, str, int]]
) -> None:
    """However truth came to be, the index that synced finds what one made from nothing does."""
    place = tmp_path_factory.mktemp("history")
    root = place / "p"
    root.mkdir()
    with section_desk(place, clock) as desk:
        desk.indexing.index(root)
        for what, animal, number in steps:
            path = root / f"{animal}{number}.py"
            if what == "write":
                path.write_text(f"def {animal}_{number}():\n    return 'the {animal}'\n")
            elif what == "remove":
                path.unlink(missing_ok=True)
            elif what == "move" and path.exists():
                path.rename(root / f"moved_{animal}{number}.py")
            elif what == "note":
                desk.note(f"The {animal} was seen {number} times.")
            elif what == "settle":
                desk.sections.settle()
            else:
                desk.sections.sync()
            desk.indexing.index(root)
        fresh = {animal: desk.index(f"fresh-{animal}") for animal in ANIMALS}
        for animal in ANIMALS:
            found = facts(desk, desk.sections, animal)
            assert {one[0] for one in found} == {
                one[0] for one in facts(desk, fresh[animal], animal)
            }
        # Terms of what is gone count towards IDF until its words are taken off the disk.
        desk.sections.purge()
        for animal in ANIMALS:
            assert facts(desk, desk.sections, animal) == facts(desk, fresh[animal], animal)


@settings(deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=4), st.floats(0.01, 9)), st.integers(0, 6))
def test_the_strongest_terms_are_kept(weights: dict[str, float], limit: int) -> None:
    """No term that is left out is weightier than one that is kept."""
    kept = strongest(weights, limit)
    assert len(kept) == min(limit, len(weights))
    left = [weight for term, weight in weights.items() if term not in kept]
    assert not left or not kept or min(kept.values()) >= max(left)
