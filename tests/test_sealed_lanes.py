"""Projects, notes and deep recall in sealed homes, backups and other namespaces: one facade."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import Clock
from tests.deep.asking import TEA, Script
from tests.ops.lanes_desk import FILES, NUTS, live, notes_of, opened, project_at, said
from tests.sqlite_driver import dbapi2

from anaphora import Memory, keys
from anaphora.errors import EncryptionError, MissingKey, NotFound, Tampered
from anaphora.features.deep.tables import TABLES
from anaphora.features.projects.services import ProjectServices

pytestmark = pytest.mark.internal

pytest.importorskip("cryptography")

# Words of sections, paths, symbols, notes, tags, subjects, questions and answers.
SECRETS = (
    "kestrel", "Kestrel", "quillbook", "Inkwell", "inkwell", "refill_slowly", "marmalade", "swoop",
    "litres", "as drops", "units", "src/", "swooping", "lapsang", "walnuts", "NOT_FOUND", "evening",
)  # fmt: skip


def words_in(home: Path) -> set[str]:
    """Which secrets stand anywhere under `home`: in names and files, as UTF-8, UTF-16 or JSON."""
    files = [path for path in home.rglob("*") if path.is_file()]
    names = [str(path.relative_to(home)).encode() for path in files]
    data = b"\n".join([*names, *(path.read_bytes() for path in files)])
    codings = ("utf-8", "utf-16-le", "utf-16-be")
    return {
        secret
        for secret in SECRETS
        if any(
            form.encode(coding) in data
            for form in {secret, secret.lower(), json.dumps(secret)[1:-1]}
            for coding in codings
        )
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project_at(tmp_path / "elsewhere" / "kestrel")


@pytest.fixture
def script() -> Script:
    return Script()


def everything(home: Path, clock: Clock, ids: dict[str, str]) -> dict[str, Any]:
    """All that the new lanes know and answer, ids and traces included."""
    with opened(home, clock) as memory:
        found = said(memory)
        assert [one.name for one in memory.projects()] == ["kestrel"]
        return found | {
            # When it was looked at last depends on the clock of the disk.
            "projects": [(one.id, one.root, one.sections) for one in memory.projects()],
            "map": (memory.project_map("kestrel").nodes, memory.project_map("kestrel").links),
            "notes": notes_of(memory),
            "traces": memory.traces(),
            "trace": memory.trace(ids["trace"]),
            "all gaps": memory.gaps(None),
            "rows": {
                name: memory._services().table_rows.find(name)
                for name in [*(table.name for table in TABLES), "fact_turn", "session_job"]
            },
        }  # fmt: skip


@pytest.mark.promise("sealed.answers")
def test_a_sealed_home_answers_as_a_clear_one(
    tmp_path: Path, root: Path, script: Script, clock: Clock
) -> None:
    """Context, history, warm-up and gaps are the same, and so is what a kept answer says."""
    with opened(tmp_path / "clear", clock, script) as clear:
        live(clear, root, script, clock)
        expected = said(clear)
    with opened(tmp_path / "sealed", clock, script, encrypt="file") as sealed:
        ids = live(sealed, root, script, clock)
        assert said(sealed) == expected
        answer = sealed.deep_recall(TEA)
        assert (answer.cached, answer.trace_id) == (True, ids["trace"])
        assert "lapsang" in answer.answer
    assert expected["targets"][0][0] == "src/kestrel/quillbook.py"
    assert any("as litres" in text for _, text in expected["past"])
    assert expected["rules"] == ["Never refill while swooping"]
    assert expected["gaps"] == [(NUTS, 1, "open")]


@pytest.mark.promise("sealed.words")
def test_no_word_of_a_project_or_a_question_is_in_the_files(
    tmp_path: Path, root: Path, script: Script, clock: Clock
) -> None:
    """No path, symbol, line, note, tag, question or answer: open, closed, open again."""
    home = tmp_path / "home"
    with opened(home, clock, script, encrypt="file") as memory:
        live(memory, root, script, clock)
        said(memory)
        memory._services().feature(ProjectServices).sections.settle()
        assert words_in(home) == set()
    assert any((home / "index").rglob("words.sqlite"))
    assert words_in(home) == set()
    with opened(home, clock, script) as memory:
        assert memory.recall_context("refill the Inkwell").primary_targets
        assert words_in(home) == set()
    with opened(tmp_path / "clear", clock, script) as memory:
        live(memory, root, script, clock)
        said(memory)
    assert words_in(tmp_path / "clear") == set(SECRETS)


@pytest.mark.promise("sealed.converts")
def test_the_new_lanes_go_through_every_conversion(
    tmp_path: Path, root: Path, script: Script, clock: Clock
) -> None:
    """Clear, sealed, with a new key, with new data keys, clear: all is there, hidden or back."""
    home = tmp_path / "home"
    with opened(home, clock, script) as memory:
        ids = live(memory, root, script, clock)
    before = everything(home, clock, ids)
    assert before["rows"]["answer"]
    assert before["rows"]["trace"]
    keys.encrypt(home, kept="file")
    assert words_in(home) == set()
    assert everything(home, clock, ids) == before
    keys.rotate_key(home)
    assert everything(home, clock, ids) == before
    keys.rotate_key(home, deep=True)
    assert everything(home, clock, ids) == before
    assert words_in(home) == set()
    keys.decrypt(home)
    assert everything(home, clock, ids) == before


@pytest.mark.promise("care.restore")
@pytest.mark.parametrize("encrypt", [None, "file"])
def test_a_backup_brings_every_lane_back(
    tmp_path: Path, root: Path, script: Script, clock: Clock, encrypt: Any
) -> None:
    """Restored elsewhere, with its key where it is sealed, a home knows and answers the same."""
    home, there, file = tmp_path / "home", tmp_path / "there", tmp_path / "backup" / "all.zip"
    file.parent.mkdir()
    with opened(home, clock, script, encrypt=encrypt) as memory:
        ids = live(memory, root, script, clock)
        memory.backup(file)
    before = everything(home, clock, ids)
    Memory.restore(file, there)
    if encrypt:
        with zipfile.ZipFile(file) as packed:
            packed.extractall(tmp_path / "unpacked")
        assert words_in(tmp_path / "unpacked") == words_in(file.parent) == set()
        with pytest.raises(MissingKey):
            opened(there, clock)
        keys.import_key(there, keys.export_key(home, "correct horse"), "correct horse", kept="file")
    assert everything(there, clock, ids) == before


@pytest.mark.promise("sealed.fails_closed")
def test_the_new_lanes_fail_closed(
    tmp_path: Path, root: Path, script: Script, clock: Clock
) -> None:
    """With another home's key, or without the marker, nothing is answered and nothing written."""
    home, other = tmp_path / "home", tmp_path / "other"
    with opened(home, clock, script, encrypt="file") as memory:
        ids = live(memory, root, script, clock)
    with opened(other, clock, encrypt="file") as memory:
        memory.observe("Nothing of note")
    mine = (home / "master.key").read_bytes()
    (home / "master.key").write_bytes((other / "master.key").read_bytes())
    with pytest.raises(EncryptionError):
        opened(home, clock)
    (home / "master.key").write_bytes(mine)
    (home / "sealed.json").rename(tmp_path / "sealed.json")
    with pytest.raises(MissingKey):
        opened(home, clock)
    # Without its threads nothing but the rows says that it was sealed.
    for thread in home.rglob("*.json.sealed"):
        thread.unlink()
    with opened(home, clock, script) as memory:
        asked: list[Callable[[], object]] = [
            memory.projects,
            lambda: memory.recall_context("refill the inkwell"),
            memory.warm_up,
            lambda: memory.observe("lapsang is unlike kestrels"),
            lambda: memory.write_diary("lapsang"),
            lambda: memory.index_project(root),
            lambda: memory.gaps(None),
            memory.traces,
            lambda: memory.trace(ids["trace"]),
            lambda: memory.deep_recall(TEA),
        ]
        for ask in asked:
            with pytest.raises(EncryptionError):
                ask()
    assert words_in(home) == set()


SWAP = "UPDATE {table} SET {column} = (SELECT {column} FROM {table} t WHERE t.{key} <> {table}.{key} LIMIT 1)"  # noqa: E501
ATTACKS = {
    "a changed note": "UPDATE record SET text = SUBSTR(text, 1, 30) || 'AAAA' || SUBSTR(text, 35)",
    "a note's payload": "UPDATE record SET payload = (SELECT tags FROM record r "
    "WHERE r.tags IS NOT NULL LIMIT 1)",
    "swapped sections": SWAP.format(table="section", column="text", key="section_id"),
    "swapped paths": SWAP.format(table="source_file", column="path", key="file_id"),
    "another question": "UPDATE gap SET question = (SELECT question FROM trace LIMIT 1)",
    "a clear question": "UPDATE gap SET question = 'Who agreed to pay?'",
    "another answer": "UPDATE trace SET body = (SELECT body FROM answer LIMIT 1)",
}


@pytest.mark.promise("sealed.tampered")
@pytest.mark.parametrize("attack", ATTACKS)
def test_changed_rows_of_the_new_lanes_are_an_error(
    tmp_path: Path, root: Path, script: Script, clock: Clock, attack: str
) -> None:
    """Rows that were changed or swapped behind our back: `Tampered`, and no answer."""
    home = tmp_path / "home"
    with opened(home, clock, script, encrypt="file") as memory:
        ids = live(memory, root, script, clock)
    with closing(dbapi2.connect(str(home / "anaphora.db"))) as connection:
        connection.execute(ATTACKS[attack])
        connection.commit()
    with opened(home, clock) as memory:
        asked: list[Callable[[], object]] = [lambda: memory.recall_context("as drops or litres")]
        if "question" in attack:
            asked = [lambda: memory.gaps(None)]
        elif "answer" in attack:
            asked = [lambda: memory.trace(ids["trace"])]
        elif "note" in attack:
            asked.append(memory.warm_up)
        for ask in asked:
            with pytest.raises(Tampered):
                ask()


@pytest.fixture(scope="module")
def two_namespaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Memory, Memory]]:
    """One namespace in which everything has happened, and one beside it in which nothing has."""
    place = tmp_path_factory.mktemp("namespaces")
    script, clock = Script(), Clock()
    with opened(place / "home", clock, script) as memory:
        live(memory, project_at(place / "kestrel"), script, clock)
        yield memory, memory.scoped("beside")


@pytest.mark.promise("project.namespaces")
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    focus=st.sampled_from(
        [*FILES, "Inkwell", "refill_slowly", "ink drops litres", "quillbook.py swoop", TEA, NUTS,
         "what was decided before", "kestrel"]
    ),
    sources=st.booleans(),
)  # fmt: skip
def test_nothing_crosses_namespaces(
    two_namespaces: tuple[Memory, Memory], focus: str, sources: bool
) -> None:
    """Whatever is asked, the namespace beside a full one knows no file, note, gap or answer."""
    full, beside = two_namespaces
    package = beside.recall_context(focus, include_sources=sources)
    shown = package.primary_targets, package.memories, package.graph, package.history
    assert not any(shown)
    first = beside.warm_up(focus)
    assert not any((first.constraints, first.decisions, first.diary, first.highlights))
    assert beside.projects() == ()
    with pytest.raises(NotFound):
        beside.recall_context(focus, project="kestrel")
    with pytest.raises(NotFound):
        beside.project_map("kestrel")
    with pytest.raises(NotFound):
        beside.remove_project(full.projects()[0].id)
    with pytest.raises(NotFound):
        beside.observe("lost", project=full.projects()[0].id)
    with pytest.raises(NotFound):
        beside.observe("lost", supersedes=next(iter(notes_of(full))))
    assert beside.gaps(None) == ()
    assert beside.traces() == ()
    with pytest.raises(NotFound):
        beside.trace(full.traces()[0].id)
    answer = beside.deep_recall(focus)
    assert not any((answer.sources, answer.cached, answer.supported))
    for note in notes_of(full):
        with pytest.raises(NotFound):
            beside.forget(note)
    assert (
        not beside._services()
        .feature(ProjectServices)
        .upkeep.forget_note(next(iter(notes_of(full))), soft=False)
        .count
    )
    assert len(notes_of(full)) == 4
    assert notes_of(beside) == {}
    # What was asked there is no gap here.
    assert {gap.question for gap in full.gaps(None)} == {NUTS}
    with beside._services().table_rows.change() as work:
        for table in ("gap", "trace", "answer"):
            work.drop(table)
