"""A sealed home through the facade: it answers as a clear one does, and its files say nothing."""

from __future__ import annotations

import io
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.commands import python
from tests.sqlite_driver import dbapi2

from anaphora import Memory, NewMemory, keys
from anaphora.errors import EncryptionError, InvalidInput, MissingKey, SealChanged, Tampered

pytest.importorskip("cryptography")

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
# What a reader of the files must not find; one has characters that JSON escapes.
SECRETS = (
    "cardamom", "persephone", "Persephone", "kitchen-tag", "/drink/ada", "taste-of-ada",
    "diary-of-ada", "Zo\u00eb\u2019s \u8336", "heronry", "thread-of-ada", "lapsang",
)  # fmt: skip
MODES = ("hybrid", "words", "vector")
QUERIES = ("What does Ada drink?", "cardamom", "persephone heronry", "tea of the morning")


class Ticking:
    """A clock that two homes can share: every look is a second later."""

    def __init__(self) -> None:
        self._ticks = itertools.count()

    def __call__(self) -> datetime:
        return NOW + timedelta(seconds=next(self._ticks))


def opened(home: Path, **options: Any) -> Memory:
    return Memory.open(home, embedder="hashing", clock=options.pop("clock", Ticking()), **options)


def live(memory: Memory) -> str:
    """Everything that is done with a home; the id of a memory that stays."""
    first = memory.remember(
        "Ada drinks coffee with cardamom",
        path="/drink/ada",
        tags=["kitchen-tag"],
        category="taste-of-ada",
        payload={"cups": 3, "who": "Zo\u00eb\u2019s \u8336"},
        source="diary-of-ada",
        conversation_id="thread-of-ada",
        turn_index=0,
    )
    memory.remember("Ada drinks coffee with cardamom", path="/drink/ada", tags=["again"])
    memory.remember("Ada drinks lapsang in the evening", path="/drink/ada")
    kept = memory.remember("Persephone keeps the heronry", tags=["kitchen-tag"])
    memory.update(kept.id, category="taste-of-ada")
    memory.remember_many([NewMemory(f"Zo\u00eb\u2019s \u8336 number {n}") for n in range(60)])
    doomed = memory.remember("cardamom must be forgotten")
    memory.conversations.append_user("thread-of-ada", "persephone saw the heronry, said Zo\u00eb")
    memory.conversations.append_assistant("thread-of-ada", "with cardamom")
    work = memory.scoped("work")
    work.remember("Persephone works on cardamom", path="/drink/ada")
    memory.forget(doomed.id)
    assert memory.ready(60)
    assert first.action == "added"
    return kept.id


def answers(memory: Memory) -> dict[str, Any]:
    """What a home says to all questions, without ids."""
    found: dict[str, Any] = {}
    for query, mode in itertools.product(QUERIES, MODES):
        hits = memory.recall(query, mode=mode, top_k=5)  # type: ignore[arg-type]
        found[f"{mode} {query}"] = [(h.text, round(h.score, 4), h.tags) for h in hits]
        turns = memory.recall_conversation(None, query, mode=mode)  # type: ignore[arg-type]
        found[f"{mode} turns {query}"] = [(h.text, round(h.score, 4)) for h in turns]
    tagged = {"AND": [{"tags": {"contains": "kitchen-tag"}}, {"category": "taste-of-ada"}]}
    found["filtered"] = [h.text for h in memory.recall("heronry", filters=tagged)]
    past = memory.history("/drink/ada")[:1]
    at = past[0].valid_from if past else NOW
    found["then"] = [h.text for h in memory.recall("What does Ada drink?", as_of=at)]
    found["listed"] = [(r.text, r.tags, r.payload) for r in memory.list(limit=500)]
    found["tagged"] = [r.text for r in memory.list(tagged)]
    found["history"] = [(r.text, r.tags, r.reinforce_count) for r in memory.history("/drink/ada")]
    found["work"] = [r.text for r in memory.scoped("work").list()]
    thread = memory.conversations.get("thread-of-ada")
    found["thread"] = thread and [(turn.role, turn.text) for turn in thread.turns]
    return found


def words_in(home: Path) -> set[str]:
    """Which secrets stand anywhere under `home`: in names, files, as UTF-8, UTF-16 or in JSON."""
    files = [path for path in home.rglob("*") if path.is_file()]
    names = [str(path.relative_to(home)).encode("utf-8", "surrogateescape") for path in files]
    data = b"\n".join([*names, *(path.read_bytes() for path in files)])
    forms: dict[str, list[bytes]] = {}
    for secret in SECRETS:
        spellings = {secret, json.dumps(secret)[1:-1], secret.lower(), secret.replace("/", "\\/")}
        codings = ("utf-8", "utf-16-le", "utf-16-be")
        forms[secret] = [text.encode(coding) for text in spellings for coding in codings]
    return {secret for secret, some in forms.items() if any(form in data for form in some)}


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[tuple[Memory, Memory]]:
    """A clear and a sealed home that lived through the same."""
    with (
        opened(tmp_path / "clear") as clear,
        opened(tmp_path / "home", encrypt="file") as sealed,
    ):
        live(clear)
        live(sealed)
        yield clear, sealed


@pytest.mark.promise("sealed.answers")
def test_a_sealed_home_answers_as_a_clear_one(homes: tuple[Memory, Memory]) -> None:
    """Recall by meaning and words, filters, past moments, lists, histories: all are the same."""
    clear, sealed = homes
    expected = answers(clear)
    assert answers(sealed) == expected
    assert expected["filtered"] == ["Persephone keeps the heronry"]
    assert expected["then"] == ["Ada drinks coffee with cardamom"]
    assert expected["hybrid cardamom"]
    gone = [memory.forget(filters={"path": "/drink/ada"}) for memory in homes]
    assert gone[0].count == gone[1].count == 3
    assert [(s.kind, s.index) for s in gone[1].surviving] == [
        (s.kind, s.index) for s in gone[0].surviving
    ]
    assert answers(sealed) == answers(clear)


def test_survivors_of_forgotten_words_are_found(tmp_path: Path) -> None:
    """Forgetting names another memory and the turns that hold the very same words."""
    with opened(tmp_path / "home", encrypt="file") as memory:
        text = "Persephone keeps the heronry"
        memory.conversations.append_user("thread-of-ada", f"you know, {text}")
        one = memory.remember(text, path="/a")
        other = memory.remember(text, path="/b")
        found = memory.forget(one.id).surviving
    assert {(s.kind, s.id) for s in found} == {("memory", other.id), ("turn", "thread-of-ada")}


@pytest.mark.promise("sealed.words")
def test_no_word_is_in_the_files_of_a_sealed_home(tmp_path: Path) -> None:
    """Not while it is open, nor after it is closed, nor in its index, log and lock files."""
    home = tmp_path / "home"
    with opened(home, encrypt="file") as memory:
        live(memory)
        # As many as are worth files of words when it is closed.
        memory.remember_many([NewMemory(f"Persephone's heronry number {n}") for n in range(60)])
        assert words_in(home) == set()
        answers(memory)
        assert words_in(home) == set()
    assert any((home / "index").rglob("words.sqlite"))
    assert words_in(home) == set()
    assert not list(home.rglob("ann"))
    with opened(home) as memory:
        assert memory.recall("cardamom").hits
        assert words_in(home) == set()
    with closing(opened(tmp_path / "clear")) as memory:
        live(memory)
    assert words_in(tmp_path / "clear") == set(SECRETS)


def test_a_home_goes_through_every_conversion(tmp_path: Path) -> None:
    """Clear, sealed, clear, sealed, with new keys: every answer stays, words are hidden or back."""
    home = tmp_path / "home"
    with opened(home) as memory:
        kept = live(memory)
        doomed = memory.remember("lapsang must be forgotten").id
        memory.export(tmp_path / "early.jsonl")
        memory.forget(doomed)
    before, deep = full(home, kept), full
    keys.encrypt(home, kept="file")
    assert words_in(home) == set()
    assert deep(home, kept) == before
    keys.decrypt(home)
    assert deep(home, kept) == before
    assert words_in(home) == set(SECRETS)
    keys.encrypt(home, kept="file")
    rows = sealed_cells(home)
    keys.rotate_key(home)
    assert sealed_cells(home) == rows
    keys.rotate_key(home, deep=True)
    assert not rows & sealed_cells(home)
    assert deep(home, kept) == before
    assert words_in(home) == set()
    with opened(home) as memory:
        # What was forgotten stays away, and a text that is there is known again.
        assert memory.import_(tmp_path / "early.jsonl").memories_added == 0
        assert doomed not in {record.id for record in memory.list(limit=500)}
        again = memory.remember("Persephone keeps the heronry")
        assert (again.action, again.id) == ("reinforced", kept)


# Of each table what is never sealed, and the same before and after a conversion.
NUMBERS = {"record": "record_id, seq", "link": "*", "tombstone": "*", "vector": "record_id"}


def full(home: Path, kept: str) -> dict[str, Any]:
    """All that an export says, what the database counts, and the answers to questions."""
    with opened(home, clock=lambda: NOW + timedelta(days=1)) as memory:
        found = answers(memory)
        export = io.BytesIO()
        memory.export(export)
    lines = export.getvalue().splitlines()[1:]
    assert any(json.loads(line).get("id") == kept for line in lines)
    with closing(dbapi2.connect(str(home / "anaphora.db"))) as connection:
        numbers = {
            table: connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1").fetchall()
            for table, columns in NUMBERS.items()
        }
    assert all(numbers.values())
    return found | {"lines": lines, "numbers": numbers}


def sealed_cells(home: Path) -> set[Any]:
    """What is sealed in the database, cell by cell."""
    with closing(dbapi2.connect(str(home / "anaphora.db"))) as connection:
        cells: set[Any] = set()
        for table, columns in (("record", "text, same_key"), ("vector", "data, text_hash")):
            for row in connection.execute(f"SELECT {columns} FROM {table}"):
                cells.update(row)
        return cells


CONVERT = """
import sys
from anaphora import keys
what, home = sys.argv[1:]
options = {"kept": "file"} if what == "encrypt" else {"deep": True} if "rot" in what else {}
print("ready", flush=True)
getattr(keys, what)(home, **options)
"""


@pytest.mark.promise("sealed.converts")
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_conversion_killed_at_any_moment_loses_no_memory(tmp_path: Path) -> None:
    """Memories, histories, links and vectors are all there, in one form and with one key."""
    home = tmp_path / "home"
    with opened(home) as memory:
        kept = live(memory)
    before = full(home, kept)
    begun = time.monotonic()
    keys.encrypt(home, kept="file")
    whole, chance, killed = time.monotonic() - begun, random.Random(11), 0
    for what in ("rotate_key", "decrypt", "encrypt", "rotate_key", "decrypt", "encrypt"):
        killed += killed_in(home, what, chance.uniform(0.0, 0.8 * whole))
        assert full(home, kept) == before
        sealed = (home / "sealed.json").exists()
        assert words_in(home) == (set() if sealed else set(SECRETS))
        if what == "decrypt" and sealed:
            keys.decrypt(home)
        elif what == "encrypt" and not sealed:
            keys.encrypt(home, kept="file")
    assert killed


def killed_in(home: Path, what: str, seconds: float) -> bool:
    child = subprocess.Popen([*python(), "-c", CONVERT, what, str(home)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        os.kill(child.pid, signal.SIGKILL)
    child.stdout.close()
    return child.wait() != 0


def test_a_backup_restores_elsewhere_with_the_exported_key(tmp_path: Path) -> None:
    """The backup of a sealed home says nothing; restored, it opens with the exported key alone."""
    home, there, file = tmp_path / "home", tmp_path / "there", tmp_path / "backup" / "all.zip"
    file.parent.mkdir()
    with opened(home, encrypt="file") as memory:
        kept = live(memory)
        assert memory.backup(file).needs_key
    before, exported = full(home, kept), keys.export_key(home, "correct horse")
    with zipfile.ZipFile(file) as packed:
        packed.extractall(tmp_path / "unpacked")
    assert (tmp_path / "unpacked" / "sealed.json").exists()
    assert words_in(tmp_path / "unpacked") == words_in(file.parent) == set()
    Memory.restore(file, there)
    with pytest.raises(MissingKey):
        opened(there)
    with pytest.raises(EncryptionError):
        keys.import_key(there, exported, "wrong horse")
    keys.import_key(there, exported, "correct horse", kept="file")
    assert full(there, kept) == before
    assert words_in(there) == set()


def test_an_export_of_a_sealed_home_is_clear_and_comes_back(tmp_path: Path) -> None:
    """An export is for the user to read; a sealed home takes it in, and hides it again."""
    with opened(tmp_path / "home", encrypt="file") as memory:
        live(memory)
        memory.export(tmp_path / "all.jsonl")
        said = {(r.text, r.tags, r.path) for r in memory.list(limit=500)}
    with opened(tmp_path / "other", encrypt="file") as memory:
        report = memory.import_(tmp_path / "all.jsonl")
        assert report.memories_added
        assert {(r.text, r.tags, r.path) for r in memory.list(limit=500)} == said
        assert memory.import_(tmp_path / "all.jsonl").memories_added == 0
    assert words_in(tmp_path / "other") == set()


def broken(home: Path, statement: str) -> None:
    with closing(dbapi2.connect(str(home / "anaphora.db"))) as connection:
        connection.execute(statement)
        connection.commit()


ATTACKS = {
    "a changed text": "UPDATE record SET text = SUBSTR(text, 1, 40) || 'AAAA' || SUBSTR(text, 45)",
    "swapped texts": "UPDATE record SET text = (SELECT text FROM record r "
    "WHERE r.record_id <> record.record_id LIMIT 1)",
    "a clear text": "UPDATE record SET text = 'I always agreed to pay'",
    "swapped vectors": "UPDATE vector SET data = (SELECT data FROM vector v "
    "WHERE v.record_id <> vector.record_id LIMIT 1)",
    "tags of another": "UPDATE record SET tags = (SELECT r.category FROM record r "
    "WHERE r.category IS NOT NULL LIMIT 1)",
}


@pytest.mark.promise("sealed.tampered")
@pytest.mark.parametrize("attack", ATTACKS)
def test_changed_rows_are_an_error_and_nothing_else(tmp_path: Path, attack: str) -> None:
    """Rows that were changed or swapped behind our back: `Tampered`, and no answer at all."""
    home = tmp_path / "home"
    with opened(home, encrypt="file") as memory:
        live(memory)
    broken(home, ATTACKS[attack])
    with opened(home) as memory:
        questions: list[Callable[[], object]] = [lambda: memory.recall("What does Ada drink?")]
        if "vector" not in attack:
            questions += [memory.list, lambda: memory.history("/drink/ada")]
        for ask in questions:
            with pytest.raises(Tampered):
                ask()


@pytest.mark.promise("sealed.fails_closed")
def test_no_key_and_another_key_open_nothing(tmp_path: Path) -> None:
    """Without its key, its marker, or with another home's, a home is refused and stays."""
    home, other = tmp_path / "home", tmp_path / "other"
    for place in (home, other):
        with opened(place, encrypt="file") as memory:
            live(memory)
    mine = (home / "master.key").read_bytes()
    theirs = (other / "master.key").read_bytes()
    (home / "master.key").write_bytes(theirs)
    with pytest.raises(EncryptionError):
        opened(home)
    (home / "master.key").unlink()
    with pytest.raises(MissingKey):
        opened(home)
    (home / "master.key").write_bytes(mine)
    marker = (home / "sealed.json").read_bytes()
    (home / "sealed.json").write_bytes((other / "sealed.json").read_bytes())
    with pytest.raises(EncryptionError):
        opened(home)
    (home / "sealed.json").write_bytes(marker)
    with pytest.raises(InvalidInput):
        opened(home, encrypt=False)
    with opened(home) as memory:
        assert memory.recall("cardamom").hits


def test_a_lost_marker_is_no_clear_home(tmp_path: Path) -> None:
    """A home of memories alone whose sealed.json is gone gives no answer and takes no memory."""
    home = tmp_path / "home"
    with opened(home, encrypt="file") as memory:
        memory.remember("Ada drinks cardamom", path="/drink/ada")
    (home / "sealed.json").unlink()
    with opened(home) as memory:
        questions: list[Callable[[], object]] = [
            lambda: memory.ready(0),
            lambda: memory.remember("lapsang"),
            lambda: memory.scoped("new").remember("lapsang"),
            memory.list,
            lambda: memory.recall("cardamom"),
            lambda: memory.recall("cardamom", mode="vector"),
        ]
        for ask in questions:
            with pytest.raises(MissingKey):
                ask()
    assert words_in(home) == set()


def test_who_has_the_home_open_notices_a_conversion(tmp_path: Path) -> None:
    """A process that opened the clear home neither writes nor shows clear words any more."""
    home = tmp_path / "home"
    memory = opened(home)
    live(memory)
    keys.encrypt(home, kept="file")
    calls: list[Callable[[], object]] = [
        lambda: memory.remember("lapsang again"),
        lambda: memory.recall("cardamom"),
        lambda: memory.update(memory.namespace, text="lapsang"),
        lambda: memory.forget("none"),
        memory.list,
        lambda: memory.history("/drink/ada"),
    ]
    for call in calls:
        with pytest.raises(SealChanged):
            call()
    memory.close()
    assert words_in(home) == set()


def test_a_sealed_home_may_have_its_truth_on_a_server(tmp_path: Path, postgresql_url: str) -> None:
    """On PostgreSQL rows are sealed as in a file; another home's key, or none, gets nothing."""
    import psycopg

    with opened(tmp_path / "home", encrypt="file", database=postgresql_url) as memory:
        memory.remember("Ada drinks cardamom", path="/drink/ada", tags=["kitchen-tag"])
        memory.remember("Ada drinks lapsang", path="/drink/ada")
        kept = memory.remember("Persephone keeps the heronry", tags=["kitchen-tag"])
        memory.conversations.append_user("thread-of-ada", "persephone saw the heronry")
        memory.ready(60)
    with psycopg.connect(postgresql_url) as connection:
        names = ("record", "record_event", "vector", "thread", "turn")
        rows = [connection.execute(f"SELECT * FROM {name}").fetchall() for name in names]
    assert all(rows)
    assert [secret for secret in SECRETS if secret in repr(rows)] == []
    with opened(tmp_path / "home", database=postgresql_url) as memory:
        assert [r.text for r in memory.history("/drink/ada")] == [
            "Ada drinks cardamom", "Ada drinks lapsang",
        ]  # fmt: skip
        for mode in MODES:
            hits = memory.recall("Persephone heronry", mode=mode)  # type: ignore[arg-type]
            assert hits.hits[0].id == kept.id
        (turn,) = memory.recall_conversation(None, "persephone heronry")
        assert turn.text == "persephone saw the heronry"
        assert memory.forget(kept.id).count == 1
        assert len(memory.list()) == 1
    assert words_in(tmp_path / "home") == set()
    others: tuple[tuple[str, Any, type[Exception]], ...] = (
        ("elsewhere", "file", Tampered),
        ("clear", None, MissingKey),
    )
    for name, encrypt, error in others:
        with opened(tmp_path / name, encrypt=encrypt, database=postgresql_url) as memory:
            questions: list[Callable[[], object]] = [
                memory.list,
                lambda: memory.recall("What does Ada drink?"),
                lambda: memory.remember("lapsang"),
            ]
            for ask in questions:
                with pytest.raises(error):
                    ask()
