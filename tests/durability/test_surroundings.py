"""What surrounds a home: clocks that jump, other versions, copies, file systems, servers."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.durability.work import make_world, memory_of
from tests.memory_child import Child, flaws

from anaphora import Memory
from anaphora.errors import AnaphoraError, SchemaTooNew, StoreError
from anaphora.ops.doctor.checks import REMOTE, file_systems, kind_of
from anaphora.store import disk
from anaphora.store.db.engine import open_database
from anaphora.store.db.health import check_truth
from anaphora.store.db.revision import REVISION_TABLE
from anaphora.store.records.rules import CLOCKS_APART

pytestmark = pytest.mark.internal

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)


class Jumping:
    """A clock that is set by hand, as a user or a time server does."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.mark.promise("durable.clock")
@pytest.mark.parametrize("jump", [-CLOCKS_APART, timedelta(days=4000)])
def test_a_clock_that_jumps(tmp_path: Path, jump: timedelta) -> None:
    """Forward, or back a little: turns keep their order, the last value stands, all is recalled."""
    clock = Jumping()
    with Memory.open(tmp_path / "home", embedder="hashing", clock=clock) as memory:
        memory.conversations.append("talk", "user", "the first turn of all")
        memory.remember("the kettle is blue", path="kettle")
        before = memory.remember("the gate code is nine")
        clock.now = NOW + jump
        memory.conversations.append("talk", "user", "the second turn of all")
        memory.remember("the kettle is green", path="kettle")
        assert memory.remember("the gate code is nine").id == before.id
        memory.observe("the kettle leaks")
    with Memory.open(tmp_path / "home", embedder="hashing", clock=clock) as memory:
        assert flaws(memory) == []
        texts = [turn.text for turn in memory.conversations.recent("talk")]
        assert texts == ["the first turn of all", "the second turn of all"]
        kettles = [hit.text for hit in memory.recall("the kettle", filters={"path": "kettle"})]
        assert kettles == ["the kettle is green"]
        assert memory.history("kettle")[-1].text == "the kettle is green"
        assert "the gate code is nine" in [hit.text for hit in memory.recall("gate code")]
        found = memory.recall_conversation("talk", "the second turn")
        assert "the second turn of all" in [hit.text for hit in found]


@pytest.mark.promise("durable.clock")
def test_a_clock_that_was_far_ahead(tmp_path: Path) -> None:
    """A value of a later time is replaced by what is said now, and is history."""
    clock = Jumping()
    clock.now = NOW + timedelta(days=4000)
    with Memory.open(tmp_path / "home", embedder="hashing", clock=clock) as memory:
        memory.conversations.append("talk", "user", "said in a year to come")
        early = memory.remember("the kettle is blue", path="kettle")
        clock.now = NOW
        memory.conversations.append("talk", "user", "said after that")
        memory.remember("the kettle is green", path="kettle")
        memory.remember("the gate code is nine")
        assert flaws(memory) == []
        texts = [turn.text for turn in memory.conversations.recent("talk")]
        assert texts == ["said in a year to come", "said after that"]
        assert [one.text for one in memory.history("kettle")] == [
            "the kettle is blue",
            "the kettle is green",
        ]
        assert "the gate code is nine" in [hit.text for hit in memory.recall("gate code")]
        memory.forget(early.id)
        memory.remember("the kettle is red", path="kettle")
        kettles = [hit.text for hit in memory.recall("the kettle", filters={"path": "kettle"})]
        assert kettles == ["the kettle is red"]


def _contents(place: Path) -> dict[str, str]:
    """Hashes of all that is truth, by path."""
    return {
        path.relative_to(place).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(place.rglob("*"))
        if path.is_file() and "index" not in path.parts and not path.name.endswith(("-shm", "lock"))
    }


def _made_newer(database: Path) -> None:
    connection = sqlite3.connect(database)
    with connection:
        connection.execute(f"UPDATE {REVISION_TABLE} SET version_num = '9999'")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


WRITES: dict[str, Callable[[Memory], object]] = {
    "append": lambda memory: memory.conversations.append("talk", "user", "one more"),
    "remember": lambda memory: memory.remember("one more"),
    "forget": lambda memory: memory.forget(filters={"path": "kettle.colour"}),
    "observe": lambda memory: memory.observe("one more"),
    "list": lambda memory: memory.list(),
    "backup": lambda memory: memory.backup(Path(memory.stats().home).parent / "b"),
}


@pytest.mark.promise("durable.versions")
@pytest.mark.parametrize("name", WRITES)
def test_a_home_of_a_newer_program(tmp_path: Path, name: str) -> None:
    """An older program that opens it is refused by a typed error, and changes no file of truth."""
    make_world(tmp_path, sealed=False)
    _made_newer(tmp_path / "home/anaphora.db")
    before = _contents(tmp_path / "home")
    with memory_of(tmp_path / "home") as memory, pytest.raises(SchemaTooNew):
        WRITES[name](memory)
    assert _contents(tmp_path / "home") == before


@pytest.mark.promise("durable.versions")
def test_a_home_that_becomes_newer_meanwhile(tmp_path: Path) -> None:
    """A program that runs while a newer one migrates its home writes nothing more into truth."""
    make_world(tmp_path, sealed=False)
    with memory_of(tmp_path / "home") as memory:
        memory.remember("written before")
        _made_newer(tmp_path / "home/anaphora.db")
        with pytest.raises(SchemaTooNew):
            memory.remember("written after")
        with pytest.raises(SchemaTooNew):
            memory.conversations.append("talk", "user", "with a note", speaker="Ann")
        assert "written after" not in [one.text for one in memory.list(limit=100)]


@pytest.mark.promise("durable.versions")
def test_a_server_that_becomes_newer_meanwhile(tmp_path: Path, postgresql_url: str) -> None:
    """The same on PostgreSQL."""
    import psycopg

    with Memory.open(tmp_path, database=postgresql_url, embedder="hashing") as memory:
        memory.remember("written before")
        with psycopg.connect(postgresql_url, autocommit=True) as connection:
            connection.execute(f"UPDATE {REVISION_TABLE} SET version_num = '9999'")
        with pytest.raises(SchemaTooNew):
            memory.remember("written after")
        with pytest.raises(SchemaTooNew):
            memory.conversations.append("talk", "user", "written after")


@pytest.mark.promise("durable.copies")
def test_two_homes_of_one_backup(tmp_path: Path) -> None:
    """Each goes its own way, and an export of one brings the other what it has not, once."""
    make_world(tmp_path, sealed=False)
    for name in ("one", "two"):
        Memory.restore(tmp_path / "made.backup", tmp_path / name)
    with memory_of(tmp_path / "one") as one, memory_of(tmp_path / "two") as two:
        one.remember("only in the first home")
        one.conversations.append("talk", "user", "a turn of the first home")
        two.remember("only in the second home")
        one.export(tmp_path / "one.jsonl")
        for _ in range(2):
            two.import_(tmp_path / "one.jsonl")
        texts = [record.text for record in two.list(limit=100)]
        assert texts.count("only in the first home") == texts.count("only in the second home") == 1
        assert texts.count("the kettle is blue") == 1
        turns = [turn.text for turn in two.conversations.recent("talk", 100)]
        assert turns.count("a turn of the first home") == 1
        assert turns.count("the code is xylophone-7") == 1
        assert "only in the second home" not in [record.text for record in one.list(limit=100)]
        assert flaws(one) == flaws(two) == []


@pytest.mark.promise("durable.copies")
def test_a_folder_that_is_copied_while_it_is_used(tmp_path: Path) -> None:
    """Every thread in the copy is whole; the database opens or says what is wrong with it."""
    home = tmp_path / "home"
    with Child(home) as child:
        for number in range(20):
            child.ask("remember", text=f"memory {number} keeps words")
        child.send(*({"do": "remember", "text": f"more {n}"} for n in range(40)))
        shutil.copytree(home, tmp_path / "copy")
        for _ in range(40):
            child.answer()
    with memory_of(tmp_path / "copy") as memory:
        try:
            assert flaws(memory) == []
        except AnaphoraError as error:
            assert isinstance(error, StoreError)  # noqa: PT017 - either is right
        assert memory.conversations.problems() == ()


@pytest.mark.promise("durable.places")
@pytest.mark.parametrize("kind", sorted(REMOTE))
def test_a_home_on_another_machine_is_told(tmp_path: Path, kind: str) -> None:
    """Doctor warns of a home on a file system of a network; the longest mount point decides."""
    home = tmp_path / "a b" / "home"
    home.mkdir(parents=True)
    point = str(tmp_path / "a b").replace(" ", "\\040")
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/sda / ext4 rw 0 0\nhost:/x {point} {kind} rw 0 0\nx /other tmpfs - -\n"
    )
    assert kind_of(home, mounts) == kind
    found = file_systems([tmp_path, home], mounts)
    assert not found.ok
    assert kind in found.detail
    assert file_systems([tmp_path], mounts).ok
    assert kind_of(home, tmp_path / "not there") is None


@pytest.mark.promise("durable.places")
def test_what_macos_says_of_its_disks_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A share of another machine is named, a disk of this one is fine."""
    share, disk = tmp_path / "a share", tmp_path / "disk"
    share.mkdir()
    disk.mkdir()
    mount = tmp_path / "mount"
    mount.write_text(
        "#!/bin/sh\n"
        "echo '/dev/disk3s1 on / (apfs, sealed, local, read-only, journaled)'\n"
        f"echo '//ann@nas/home on {share} (smbfs, nodev, nosuid, mounted by ann)'\n"
    )
    mount.chmod(0o755)
    monkeypatch.setattr(sys.modules[kind_of.__module__], "MOUNT", mount)
    nowhere = tmp_path / "no such file"
    assert kind_of(disk, nowhere) == "apfs"
    found = file_systems([disk, share / "home"], nowhere)
    assert not found.ok
    assert "smbfs" in found.detail


@pytest.mark.promise("durable.places")
def test_the_file_system_of_this_home_is_told(tmp_path: Path) -> None:
    """Doctor names the kind where the system tells it, and says where it does not."""
    with memory_of(tmp_path / "home") as memory:
        (found,) = (check for check in memory.doctor() if check.name == "file system")
    assert found.ok
    assert found.detail == (kind_of(tmp_path) or "this system does not report its type")


@pytest.mark.promise("durable.places")
def test_a_server_that_acknowledges_too_early_is_told(postgresql_url: str) -> None:
    """Doctor warns where PostgreSQL answers before its log is on the disk."""
    joint = "&" if "?" in postgresql_url else "?"
    truth = open_database(postgresql_url)
    truth.ensure()
    usual = check_truth(truth).problems
    truth.close()
    options = "options=-csynchronous_commit%3Doff"
    if "options=" in postgresql_url:
        url = postgresql_url + "%20-csynchronous_commit%3Doff"
    else:
        url = f"{postgresql_url}{joint}{options}"
    hasty = open_database(url)
    try:
        told = set(check_truth(hasty).problems) - set(usual)
    finally:
        hasty.close()
    assert len(told) == 1
    assert "synchronous_commit" in told.pop()


@pytest.mark.promise("durable.power")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has one kind of sync")
def test_a_mac_waits_for_the_drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is a stronger sync it is what is called; where a disk lacks it, the usual one."""
    calls: list[int] = []

    def refused(_: int, command: int) -> int:
        calls.append(command)
        raise OSError(22, "not on this file system")

    monkeypatch.setattr(disk, "_FULL_SYNC", 51)
    monkeypatch.setattr("fcntl.fcntl", refused)
    with (tmp_path / "file").open("wb") as file:
        file.write(b"bytes")
        disk.sync(file.fileno())
    assert calls == [51]
    connection = _connection(tmp_path)
    assert connection.execute("PRAGMA fullfsync").fetchone() == (1,)
    assert connection.execute("PRAGMA checkpoint_fullfsync").fetchone() == (1,)
    connection.close()


def _connection(place: Path) -> sqlite3.Connection:
    from anaphora.store.db import sqlite

    (place / "some.db").touch()
    found: sqlite3.Connection = sqlite.connect(place / "some.db")
    return found
