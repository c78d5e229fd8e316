"""No fault loses a memory: killed processes, full and read-only disks, many processes at once."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.memory_child import Child, flaws, texts_of
from tests.memory_killing import KINDS, killed, together
from tests.sqlite_driver import dbapi2

from anaphora import Memory, NewMemory
from anaphora.errors import AnaphoraError, DiskFull, ReadOnly, StoreError

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


# With only so many descriptors left each call is made in a process of its own, then all once more.
_FEW_FILES = """
import json, os, resource, shutil, sys
from pathlib import Path
from anaphora import Memory
from anaphora.errors import AnaphoraError, NotFound, StoreError

CALLS = {
    "forget": lambda memory, which: memory.forget(which),
    "recall": lambda memory, which: memory.recall("tandem"),
    "search": lambda memory, which: memory.search("tandem"),
    "remember": lambda memory, which: memory.remember("a marimba stands upstairs"),
    "append": lambda memory, which: memory.conversations.append("talk", "user", "one more"),
    "get": lambda memory, which: memory.get(which),
    "stats": lambda memory, which: memory.stats(),
    "export": lambda memory, which: memory.export(memory.home / "export.jsonl"),
    "health": lambda memory, which: memory.health(),
}

def opened(home):
    return Memory.open(home, embedder="hashing", warm=False)

def holding(home):
    files = (path for path in home.rglob("*") if path.is_file())
    return [path.name for path in files if b"anthopoulos" in path.read_bytes()]

def outcome(call, memory, which):
    try:
        call(memory, which)
    except StoreError as error:
        return "refused" if "too many files" in str(error) else f"unclear: {error}"
    except BaseException as error:
        return f"raw {error!r}"
    return "done"

def tried(home, which, name, is_warm, left):
    memory = opened(home)
    if is_warm:
        memory.forget(memory.remember("a spare sentence").id)
        memory.search("tandem")
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Below the highest one in use nothing is free.
    highest = max(map(int, os.listdir("/proc/self/fd")))
    while (last := os.dup(0)) < highest:
        pass
    limit = last + 1 + left
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, usual[1]))
    result = outcome(CALLS[name], memory, which)
    resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    if name == "forget":
        if result == "done" and holding(home):
            return "acknowledged, and still there"
        if result != "done":
            try:
                memory.forget(which)
            except NotFound:
                pass
    if not memory.recall("tandem").hits or memory.remember("the end").id is None:
        return result + ", and nothing works afterwards"
    memory.close()
    if name == "forget" and holding(home):
        return f"{result}, and left in {holding(home)}"
    return result

place = Path(sys.argv[1])
memory = opened(place / "made")
which = memory.remember("Mara sees doctor Xanthopoulos on Friday").id
memory.remember("the tandem is in the shed")
memory.conversations.append("talk", "user", "a first turn")
memory.ready()
memory.close()
for name in CALLS:
    for is_warm in (True, False):
        for left in (0, 2, 3, 5):
            home = place / f"{name}-{is_warm}-{left}"
            shutil.copytree(place / "made", home)
            process = os.fork()
            if not process:
                said = [name, is_warm, left, tried(home, which, name, is_warm, left)]
                os.write(1, (json.dumps(said) + chr(10)).encode())
                os._exit(0)
            os.waitpid(process, 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts its open files in /proc")
@pytest.mark.promise("durable.refused")
def test_no_open_file_is_left(tmp_path: Path) -> None:
    """Calls work, or say that too many files are open, and work again once there are some; what
    was acknowledged as forgotten is in no file."""
    environ = {**os.environ, "ANAPHORA_RESIDENT": "0", "ANAPHORA_READER": "off"}
    command = [sys.executable, "-c", _FEW_FILES, str(tmp_path)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(outcomes) == 9 * 2 * 4, done.stderr
    assert [one for one in outcomes if one[3] not in {"done", "refused"}] == []
    assert {one[3] for one in outcomes if one[0] == "forget"} == {"done", "refused"}
    assert {one[3] for one in outcomes if one[0] == "health"} == {"done"}


def test_memory_runs_out(tmp_path: Path) -> None:
    """What lacks memory is refused by an error of ours, and done once there is some."""
    lacking: list[bool] = []

    def clock() -> datetime:
        if lacking:
            raise MemoryError
        return datetime(2026, 5, 4, tzinfo=UTC)

    with Memory.open(tmp_path, embedder="hashing", clock=clock) as memory:
        memory.remember("the tandem is in the shed")
        lacking.append(True)
        for call in (lambda: memory.recall("tandem"), lambda: memory.remember("one more")):
            with pytest.raises(StoreError, match="not enough memory"):
                call()
        lacking.clear()
        assert memory.recall("tandem").hits
        memory.remember("one more")


def _make_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    ("name", "spoil", "part"),
    [
        ("anaphora.db", _make_folder, "write"),
        ("anaphora.db", lambda file: file.write_bytes(b"no database" * 999), "write"),
    ],
)
def test_health_names_what_is_wrong(
    tmp_path: Path, name: str, spoil: Callable[[Path], object], part: str
) -> None:
    """Whatever stands where a part of the home was, health says which; all else is typed."""
    with Memory.open(tmp_path, embedder="hashing", warm=False) as memory:
        memory.remember("the tandem is in the shed")
        memory.conversations.append("talk", "user", "a first turn")
        memory.ready()
    spoil(tmp_path / name)
    with Memory.open(tmp_path, embedder="hashing", warm=False) as memory:
        health = memory.health()
        assert not health.ok
        assert part in {check.name for check in health.checks if not check.ok}
        for call in (
            lambda: memory.recall("tandem"),
            lambda: memory.search("tandem"),
            lambda: memory.remember("one more"),
            lambda: memory.conversations.append("talk", "user", "one more"),
            memory.stats,
        ):
            with suppress(AnaphoraError):
                call()


def _ask_everything(home: Path) -> list[int]:
    """How much a home that is opened anew answers."""
    with Memory.open(home, embedder="hashing", warm=False) as memory:
        return [
            len(memory.recall("tandem")),
            len(memory.recall_conversation("talk", "turn")),
            len(memory.search("tandem").hits),
            memory.stats().memories,
        ]


@pytest.mark.skipif(sys.platform == "win32", reason="needs the permissions of POSIX")
@pytest.mark.parametrize("name", ["index", "index/default/memories"])
def test_an_index_that_may_not_be_entered(name: str) -> None:
    """All is answered without it."""
    # Not in pytest's folder, which nobody but its owner may enter.
    with tempfile.TemporaryDirectory(prefix="anaphora-") as folder:
        home = Path(folder)
        with Memory.open(home, embedder="hashing", warm=False) as memory:
            memory.remember("the tandem is in the shed")
            memory.conversations.append("talk", "user", "a first turn")
            memory.ready()
        usual = _ask_everything(home)
        (home / name).mkdir(parents=True, exist_ok=True)
        for path in (home, *home.rglob("*")):
            path.chmod(0o777)
        (home / name).chmod(0)
        with without_rights():
            answered = _ask_everything(home)
        (home / name).chmod(0o777)
        assert answered == usual


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX gives up locks where a file is closed")
def test_forgetting_keeps_the_locks_on_the_database(tmp_path: Path) -> None:
    """Looking through the file for what was forgotten lets no other process have it alone."""
    with Memory.open(tmp_path, embedder="hashing", warm=False) as memory:
        memory.forget(memory.remember("Mara sees doctor Xanthopoulos on Friday").id)
        if not (tmp_path / "anaphora.db-wal").exists():
            pytest.skip("without a write-ahead log nothing is locked between calls")
        program = (
            "import sys\n"
            "from tests.sqlite_driver import dbapi2\n"
            "connection = dbapi2.connect(sys.argv[1], timeout=0)\n"
            "connection.execute('PRAGMA locking_mode = EXCLUSIVE')\n"
            "connection.execute('SELECT count(*) FROM head')\n"
        )
        command = [sys.executable, "-c", program, str(tmp_path / "anaphora.db")]
        alone = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "locked" in alone.stderr


# Writers wait for 30 seconds.
@pytest.mark.timeout(20)
@pytest.mark.skipif(sys.platform == "win32", reason="needs the signals of POSIX")
@pytest.mark.promise("durable.suspended")
def test_a_process_stands_still_with_the_database_locked(tmp_path: Path) -> None:
    """All is answered meanwhile, and health soon says who holds the lock."""
    with Memory.open(tmp_path, embedder="hashing", warm=False) as memory:
        memory.remember("the tandem is in the shed")
        program = (
            "import os, signal, sys\n"
            "from tests.sqlite_driver import dbapi2\n"
            "connection = dbapi2.connect(sys.argv[1], isolation_level=None)\n"
            "connection.execute('BEGIN IMMEDIATE')\n"
            "os.kill(os.getpid(), signal.SIGSTOP)\n"
        )
        command = [sys.executable, "-c", program, str(tmp_path / "anaphora.db")]
        with subprocess.Popen(command) as stopped:
            try:
                os.waitpid(stopped.pid, os.WUNTRACED)
                assert memory.recall("tandem").hits
                (write,) = (check for check in memory.health().checks if check.name == "write")
            finally:
                stopped.kill()
        assert not write.ok
        assert "locked" in write.detail
        assert memory.health().ok
