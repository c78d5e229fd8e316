"""A backup is whole, says what it holds, and makes the same home again, or nothing at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.commands import python

from anaphora import Memory, ops
from anaphora.errors import (
    DamagedBackup,
    InvalidInput,
    NotEmpty,
    SchemaTooNew,
    SchemaTooOld,
    StoreError,
)

from .conftest import OpenHome, everything, say

FIXTURES = Path(__file__).resolve().parents[1] / "store" / "fixtures"


def rewritten(source: Path, target: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """A zip file with other members; the manifest stays as it is unless it is changed."""
    with zipfile.ZipFile(source) as old:
        members = {name: old.read(name) for name in old.namelist()}
    change(members)
    with zipfile.ZipFile(target, "w") as new:
        for name, data in members.items():
            new.writestr(name, data)
    return target


@pytest.mark.promise("care.restore")
def test_a_restored_home_is_the_one_that_was_backed_up(
    filled: Memory, open_home: OpenHome, tmp_path: Path
) -> None:
    """Threads to the byte, memories with their history, and notes come back; the index does not."""
    assert filled.ready(60)
    assert any((filled.home / "index").iterdir())
    made = filled.backup(tmp_path / "b.zip")
    assert (made.threads, made.memories, made.database, made.sealed) == (3, 3, "sqlite", False)
    assert ops.verify(tmp_path / "b.zip") == made
    assert Memory.restore(tmp_path / "b.zip", tmp_path / "again") == made
    assert not (tmp_path / "again" / "index").exists()
    assert everything(open_home("again")) == everything(filled)


@pytest.mark.promise("care.backup")
@pytest.mark.parametrize("year", [1, 1970, 1979, 2108, 9999])
def test_a_clock_that_no_zip_file_can_have(
    filled: Memory, open_home: OpenHome, tmp_path: Path, year: int
) -> None:
    """On a machine whose clock was never set, a backup is made all the same, and says its time."""
    when = datetime(year, 1, 2, 3, 4, 5, tzinfo=UTC)
    made = open_home(clock=lambda: when).backup(tmp_path / "b.zip")
    assert str(made.created)[:4] == f"{year:04}"
    assert Memory.restore(tmp_path / "b.zip", tmp_path / "again") == made
    assert everything(open_home("again")) == everything(filled)


@pytest.mark.promise("care.backup")
def test_in_a_shared_folder_nothing_of_others_is_touched(
    filled: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another user put there as if it had been left by a backup is neither opened nor gone."""
    victim = tmp_path / "precious"
    victim.write_text("words")
    planted = [tmp_path / f".b.zip.unfinished-{letter * 12}" for letter in "abc"]
    for stage, link in zip(planted, ("hardlink_to", "symlink_to"), strict=False):
        stage.mkdir()
        getattr(stage / "sealing.lock", link)(victim)
    planted[2].symlink_to(planted[0])
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    filled.backup(tmp_path / "b.zip")
    monkeypatch.undo()
    assert victim.read_text() == "words"
    assert sorted(p for p in tmp_path.iterdir() if "unfinished" in p.name) == planted


def test_an_empty_home_can_be_backed_up_and_restored(open_home: OpenHome, tmp_path: Path) -> None:
    """A home in which nothing was ever said gives a backup of nothing."""
    made = open_home().backup(tmp_path / "b.zip")
    assert (made.threads, made.memories, made.database) == (0, 0, "")
    Memory.restore(tmp_path / "b.zip", tmp_path / "again")
    assert not (tmp_path / "again" / "anaphora.db").exists()


def test_what_was_set_aside_is_kept(filled: Memory, open_home: OpenHome, tmp_path: Path) -> None:
    """The bytes of an unreadable thread are in the backup too; temporary files are not."""
    folder = filled.home / "conversations"
    (folder / ".corrupt").mkdir()
    (folder / ".corrupt" / "old.json.1").write_bytes(b"{torn")
    (folder / f".{'a' * 24}.1.ab.tmp").write_bytes(b"unfinished")
    filled.backup(tmp_path / "b.zip")
    Memory.restore(tmp_path / "b.zip", tmp_path / "again")
    again = tmp_path / "again" / "conversations"
    assert (again / ".corrupt" / "old.json.1").read_bytes() == b"{torn"
    assert not list(again.glob(".*.tmp"))


@pytest.mark.promise("care.backup")
def test_nothing_is_overwritten(filled: Memory, tmp_path: Path) -> None:
    """A path where something stands is refused, and so is one among the threads."""
    taken = tmp_path / "b.zip"
    taken.write_text("mine")
    with pytest.raises(NotEmpty):
        filled.backup(taken)
    assert taken.read_text() == "mine"
    with pytest.raises(InvalidInput):
        filled.backup(filled.home / "conversations" / "b.zip")
    assert not [p for p in tmp_path.iterdir() if "unfinished" in p.name]


@pytest.mark.promise("care.backup_live")
def test_a_backup_beside_writers_has_every_acknowledged_write(
    filled: Memory, open_home: OpenHome, tmp_path: Path
) -> None:
    """What was acknowledged before the call is in it, and what it has is a state that can be read:
    no note speaks of a turn that is there with other words."""
    stop = threading.Event()
    said: list[str] = []
    other = open_home()

    def write() -> None:
        while not stop.is_set():
            text = f"line {len(said)}"
            say(other, "busy", text)
            other.remember(f"fact {len(said)}")
            said.append(text)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            before = len(said)
            filled.backup(tmp_path / f"{number}.zip")
            Memory.restore(tmp_path / f"{number}.zip", tmp_path / f"again{number}")
            again = open_home(f"again{number}")
            thread = again.conversations.get("busy")
            turns = thread.turns if thread else ()
            assert [turn.text for turn in turns][:before] == said[:before]
            # Each turn that is there has its speaker: notes are never older than their turns.
            assert {turn.speaker for turn in turns} <= {"Ann"}
            facts = {record.text for record in again.list(limit=9_999)}
            assert {f"fact {number}" for number in range(before)} <= facts
    finally:
        stop.set()
        writer.join()


@pytest.mark.promise("care.backup")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), cut=st.booleans())
def test_any_damage_is_found(place: float, cut: bool, filled: Memory, tmp_path: Path) -> None:
    """A changed byte or a missing end is found by `verify`, and nothing is restored from it, unless
    the byte is one that nothing is read from."""
    whole, torn = tmp_path / "whole.zip", tmp_path / "torn.zip"
    if not whole.exists():
        filled.backup(whole)
    data = bytearray(whole.read_bytes())
    at = int(place * len(data))
    if cut:
        del data[at:]
    else:
        data[at] ^= 0xFF
    torn.write_bytes(data)
    try:
        same = ops.verify(torn)
    except StoreError:
        with pytest.raises(StoreError):
            Memory.restore(torn, tmp_path / "again")
        assert not (tmp_path / "again").exists()
    else:
        assert not cut
        assert same.rows == ops.verify(whole).rows


def test_a_member_that_is_not_what_was_backed_up_is_named(filled: Memory, tmp_path: Path) -> None:
    """A well-formed zip file with other words in a thread is refused, and so is one with more."""
    filled.backup(tmp_path / "b.zip")

    def other_words(members: dict[str, bytes]) -> None:
        name = "conversations/trip.json"
        members[name] = members[name].replace(b"Monday", b"Sunday")

    changed = rewritten(tmp_path / "b.zip", tmp_path / "changed.zip", other_words)
    with pytest.raises(DamagedBackup, match=r"trip\.json"):
        Memory.restore(changed, tmp_path / "again")

    def one_more(members: dict[str, bytes]) -> None:
        members["conversations/more.json"] = b"{}"

    more = rewritten(tmp_path / "b.zip", tmp_path / "more.zip", one_more)
    with pytest.raises(DamagedBackup):
        ops.verify(more)
    with pytest.raises(DamagedBackup):
        ops.verify(Path(__file__))
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(
    "name", ["../out", "conversations/../../out", "/out", "a\\..\\out", "index/x", "anaphora.db/x"]
)
def test_no_member_is_written_outside_a_home(name: str, filled: Memory, tmp_path: Path) -> None:
    """A member with the name of another place is refused before anything is written."""
    filled.backup(tmp_path / "b.zip")

    def add(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        members[name] = b""
        empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        manifest["members"][name] = {"sha256": empty, "bytes": 0}
        members["manifest.json"] = json.dumps(manifest).encode()

    bad = rewritten(tmp_path / "b.zip", tmp_path / "bad.zip", add)
    with pytest.raises(DamagedBackup):
        Memory.restore(bad, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert not (tmp_path / "out").exists()


def test_only_an_empty_place_is_restored_into(filled: Memory, tmp_path: Path) -> None:
    """A missing or empty folder is filled; a home, a file and a folder with a file stay."""
    filled.backup(tmp_path / "b.zip")
    (tmp_path / "empty").mkdir()
    Memory.restore(tmp_path / "b.zip", tmp_path / "empty")
    Memory.restore(tmp_path / "b.zip", tmp_path / "deep" / "new")
    (tmp_path / "file").write_text("mine")
    before = everything(filled)
    for taken in (filled.home, tmp_path / "empty", tmp_path / "file"):
        with pytest.raises(NotEmpty):
            Memory.restore(tmp_path / "b.zip", taken)
    assert everything(filled) == before
    assert (tmp_path / "file").read_text() == "mine"


def test_schemas_of_other_times(open_home: OpenHome, tmp_path: Path) -> None:
    """A backup of an older schema, or of a newer one, is refused, and nothing is restored."""
    open_home("now").backup(tmp_path / "b.zip")
    for schema, error in (("0001", SchemaTooOld), ("9999", SchemaTooNew)):

        def of_that_time(members: dict[str, bytes], schema: str = schema) -> None:
            manifest = json.loads(members["manifest.json"])
            members["manifest.json"] = json.dumps(manifest | {"schema": schema}).encode()

        path = rewritten(tmp_path / "b.zip", tmp_path / f"{schema}.zip", of_that_time)
        with pytest.raises(error):
            Memory.restore(path, tmp_path / schema)
        assert not (tmp_path / schema).exists()


def test_a_damaged_database_is_not_passed_off_as_a_backup(filled: Memory, tmp_path: Path) -> None:
    """A truth with torn pages raises, and leaves no file that looks like a backup."""
    filled.close()
    truth = filled.home / "anaphora.db"
    data = bytearray(truth.read_bytes())
    data[4096 * 3 : 4096 * 6] = os.urandom(4096 * 3)
    truth.write_bytes(data)
    with (
        Memory.open(filled.home, embedder="hashing", warm=False) as torn,
        pytest.raises(StoreError),
    ):
        torn.backup(tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()


CHILD = """
import os, signal, sys
from anaphora import Memory
what, source, target, step = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
seen = 0
def progress(label, done, total):
    global seen
    seen += 1
    if seen == step:
        os.kill(os.getpid(), signal.SIGKILL)
if what == "restore":
    Memory.restore(source, target, progress=progress)
else:
    with Memory.open(source, embedder="hashing", warm=False) as memory:
        memory.backup(target, progress=progress)
"""


@pytest.mark.promise("care.killed")
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
@pytest.mark.parametrize("what", ["backup", "restore"])
def test_who_is_killed_leaves_nothing_half_done(
    what: str, filled: Memory, open_home: OpenHome, tmp_path: Path
) -> None:
    """Killed at any step, a backup or restore leaves its target as it was; the next one works and
    clears up."""
    filled.backup(tmp_path / "b.zip")
    source = tmp_path / "b.zip" if what == "restore" else filled.home
    target = tmp_path / "place" / "target"
    for step in range(1, 6):
        run = [*python(), "-c", CHILD, what, str(source), str(target), str(step)]
        done = subprocess.run(run, check=False, capture_output=True, text=True)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert not target.exists()
        assert len(list(target.parent.iterdir())) == 1, "one unfinished folder, not more"
    else:
        run[-1] = "0"
        subprocess.run(run, check=True)
    assert [place.name for place in target.parent.iterdir()] == ["target"]
    if what == "backup":
        assert ops.verify(target).threads == 3
        Memory.restore(target, tmp_path / "again")
    else:
        target.rename(tmp_path / "again")
    assert everything(open_home("again")) == everything(filled)


def test_a_database_server_is_backed_up_too(
    open_home: OpenHome,
    new_database: Callable[[], str],
    tmp_path: Path,
) -> None:
    """A dump of PostgreSQL becomes a SQLite home or fills an empty database, and no other one."""
    parts = open_home("server", database=new_database())
    say(parts, "trip", "We leave on Monday. \ud800\x00")
    parts.remember("NUL \x00 and half \udfff of\x10one.", path="p", payload={"a\x10": [1, None]})
    parts.scoped("team").remember("Elsewhere.")
    made = parts.backup(tmp_path / "b.zip")
    assert (made.database, made.memories, made.threads) == ("postgresql", 2, 1)
    Memory.restore(tmp_path / "b.zip", tmp_path / "file")
    assert everything(open_home("file")) == everything(parts)
    database = new_database()
    Memory.restore(tmp_path / "b.zip", tmp_path / "other", database=database)
    assert everything(open_home("other", database=database)) == everything(parts)
    with pytest.raises(NotEmpty):
        Memory.restore(tmp_path / "b.zip", tmp_path / "third", database=database)
    assert not (tmp_path / "third").exists()
