"""No fault loses a memory: killed processes, full and read-only disks, many processes at once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.memory_child import Child, flaws, texts_of
from tests.memory_killing import KINDS, killed, together
from tests.sqlite_driver import dbapi2

from anaphora import Memory, NewMemory
from anaphora.errors import DiskFull, ReadOnly

pytestmark = pytest.mark.internal

# bench/memory_faults.py does the same with hundreds of kills.
ROUNDS = 2


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.promise("remember.durable")
@pytest.mark.parametrize("kind", KINDS)
def test_a_process_is_killed(kind: str, tmp_path: Path) -> None:
    """Killed at any moment of any work, what was acknowledged is there, whole, and recalled."""
    tally = killed(kind, tmp_path, ROUNDS, random.Random(5))
    assert tally.well, tally
    assert tally.rounds == ROUNDS


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.promise("remember.durable")
@pytest.mark.parametrize("kind", KINDS)
def test_a_process_is_killed_on_a_sealed_home(kind: str, tmp_path: Path) -> None:
    """The same holds where everything is sealed, and no word of it lies there in clear."""
    tally = killed(kind, tmp_path, 2, random.Random(8), sealed=True)
    assert tally.well, tally


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.promise("remember.durable")
@pytest.mark.parametrize("kind", KINDS)
def test_a_client_of_postgresql_is_killed(kind: str, tmp_path: Path, postgresql_url: str) -> None:
    """The same holds where truth is on a server, which goes on."""
    tally = killed(kind, tmp_path, 2, random.Random(9), database=postgresql_url)
    assert tally.well, tally


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.promise("truth.processes")
def test_eight_processes_on_one_home(tmp_path: Path) -> None:
    """Eight processes write, restate, supersede and forget: none is refused, each sees all."""
    tally = together([tmp_path / "home"] * 8, 3.0, random.Random(6))
    assert tally.well, tally
    assert tally.remembered >= 8


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_servers_on_one_postgresql(tmp_path: Path, postgresql_url: str) -> None:
    """Processes with an index each on one PostgreSQL see one another's writes at once."""
    homes = [tmp_path / name for name in ("a", "b", "c")]
    tally = together(homes, 3.0, random.Random(7), postgresql_url)
    assert tally.well, tally
    assert tally.remembered > 3


def test_two_servers_tell_one_another(tmp_path: Path, postgresql_url: str) -> None:
    """What one server acknowledged the other recalls; what one forgets the other has forgotten."""
    with Child(tmp_path / "a", postgresql_url) as one, Child(tmp_path / "b", postgresql_url) as two:
        made = one.ask("remember", text="the lighthouse keeper is called Ingrid")
        assert made["action"] == "added"
        found = two.ask("recall", query="lighthouse keeper")
        assert [hit["id"] for hit in found["hits"]] == [made["id"]]
        assert found["degraded"] == []
        again = two.ask("remember", text="the lighthouse keeper is called Ingrid")
        assert (again["id"], again["action"]) == (made["id"], "reinforced")
        once = found["hits"][0]["score"]
        (hit,) = one.ask("recall", query="lighthouse keeper")["hits"]
        assert hit["score"] > once * 1.05
        two.ask("remember", text="the keeper's boat is red", path="keeper.boat")
        one.ask("remember", text="the keeper's boat is green", path="keeper.boat")
        boats = two.ask("recall", query="the keeper's boat", filters={"path": "keeper.boat"})
        assert [hit["text"] for hit in boats["hits"]] == ["the keeper's boat is green"]
        assert two.ask("forget", id=made["id"])["count"] == 1
        left = one.ask("recall", query="lighthouse keeper called Ingrid")["hits"]
        assert "the lighthouse keeper is called Ingrid" not in [hit["text"] for hit in left]


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of its own, of that size; the test is skipped where none can be made."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if sys.platform != "linux" or subprocess.run(mount, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(file: Path) -> None:
    with file.open("wb", buffering=0) as stream, suppress(OSError):
        while True:
            stream.write(bytes(4096))


def remembered_until_full(memory: Memory) -> list[str]:
    """Remember until there is no room: the texts that were acknowledged."""
    texts = [f"note{number} says {'more and ' * 60} more" for number in range(5_000)]
    kept = []
    try:
        for text in texts:
            memory.remember(text)
            kept.append(text)
    except DiskFull as refused:
        if str(memory.home / "anaphora.db") not in str(refused):
            raise
    assert len(kept) < len(texts)
    return kept


def test_a_full_disk(tmp_path: Path) -> None:
    """No room is `DiskFull`; all that was acknowledged is there, and with room it goes on."""
    with small_disk(tmp_path / "disk", "6m") as disk:
        home = disk / "home"
        with Memory.open(home, embedder="hashing") as memory:
            memory.ready()
            first = memory.remember("the spare key lies under the blue pot")
            fill(disk / "filler")
            kept = remembered_until_full(memory)
            with pytest.raises(DiskFull):
                memory.remember_many([NewMemory(f"many{n} {'x' * 900}") for n in range(2_000)])
            with pytest.raises(DiskFull):
                memory.backup(disk / "backup.zip")
            with pytest.raises(DiskFull):
                memory.export(disk / "export.jsonl")
            assert sorted(path.name for path in disk.iterdir()) == ["filler", "home"]
            assert [hit.id for hit in memory.recall("where is the spare key?")][:1] == [first.id]
            assert {*kept} <= texts_of(memory)
            assert flaws(memory) == []
            (disk / "filler").unlink()
            after = memory.remember("the ladder is in the shed")
            assert [hit.id for hit in memory.recall("the ladder")][:1] == [after.id]
        with Memory.open(home, embedder="hashing") as memory:
            assert {*kept} <= texts_of(memory)
            assert [hit.id for hit in memory.recall("where is the spare key?")][:1] == [first.id]
            assert memory.forget(first.id).count == 1


@pytest.mark.parametrize("state", ["full", "read-only"])
def test_what_has_no_vector_yet_is_read_on_a_full_disk(tmp_path: Path, state: str) -> None:
    """Recall answers from what is there, and says that vectors could not be kept."""
    with small_disk(tmp_path / "disk", "6m") as disk:
        home = disk / "home"
        with Memory.open(home, embedder="hashing") as memory:
            memory.ready()
            kept = memory.remember("the spare key lies under the blue pot").id
            connection = dbapi2.connect(str(home / "anaphora.db"))
            connection.execute("DELETE FROM vector")
            connection.commit()
            connection.close()
        if state == "read-only":
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with Memory.open(home, embedder="hashing", warm=False) as memory:
            assert memory.list().items[0].id == kept
            if state == "full":
                fill(disk / "filler")
                remembered_until_full(memory)
            found = memory.recall("where is the spare key?")
            assert [hit.id for hit in found][:1] == [kept]
            assert any("not kept" in str(part) for part in found.degraded)
            assert memory.search("where is the spare key?").hits


def test_a_read_only_home(tmp_path: Path) -> None:
    """On a read-only file system a home answers, and every write says `ReadOnly`."""
    with small_disk(tmp_path / "disk", "8m") as disk:
        with Memory.open(disk / "home", embedder="hashing") as memory:
            memory.ready()
            made = memory.remember("the spare key lies under the blue pot", tags=["house"])
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with Memory.open(disk / "home", embedder="hashing") as memory:
            assert [hit.id for hit in memory.recall("the spare key")] == [made.id]
            assert memory.get(made.id).tags == ("house",)
            for write in (
                lambda: memory.remember("something new"),
                lambda: memory.remember("the spare key lies under the blue pot"),
                lambda: memory.remember_many([NewMemory("one"), NewMemory("two")]),
                lambda: memory.update(made.id, tags=["garden"]),
                lambda: memory.forget(made.id),
                lambda: memory.backup(disk / "backup.zip"),
            ):
                with pytest.raises(ReadOnly):
                    write()
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        with Memory.open(disk / "home", embedder="hashing") as memory:
            memory.remember("something new")
            assert texts_of(memory) == {"the spare key lies under the blue pot", "something new"}


@pytest.mark.skipif(sys.platform == "win32", reason="needs the permissions of POSIX")
def test_a_home_without_permission() -> None:
    """In a folder that may not be written, a write is `ReadOnly` and makes nothing."""
    # Not in pytest's folder, which nobody but its owner may enter.
    with tempfile.TemporaryDirectory(prefix="anaphora-") as folder:
        place = Path(folder)
        place.chmod(0o555)
        with Memory.open(place / "home", embedder="hashing") as memory, without_rights():
            with pytest.raises(ReadOnly):
                memory.remember("nobody will read this")
            assert len(memory.recall("nobody")) == 0
        assert list(place.iterdir()) == []


@contextmanager
def without_rights() -> Iterator[None]:
    """Without the right of root to write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_home_that_cannot_remember_its_embedder(tmp_path: Path) -> None:
    """Where the choice of an embedder cannot be kept, that is said, and the old one stays."""
    with small_disk(tmp_path / "disk", "6m") as disk:
        home = disk / "home"
        with Memory.open(home, embedder="minilm", warm=False) as memory:
            memory.reindex("hashing")
        kept = (home / "settings.json").read_bytes()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with Memory.open(home) as memory:
            assert memory.stats().embedder.startswith("word-hashing")
            with pytest.raises(ReadOnly):
                memory.reindex("minilm")
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        assert (home / "settings.json").read_bytes() == kept
        assert list(home.glob("settings.*")) == [home / "settings.json"]
