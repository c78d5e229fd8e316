"""What a remote sees, and what it cannot do unseen."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands import python
from tests.sync.devices import devices, settle, words_of

from anaphora import Memory
from anaphora.errors import Diverged, InvalidInput, RemoteError, RemoteTampered

Pair = tuple[Memory, Memory, Path]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Two devices, of which the first has sent four entries, and the folder between them."""
    with devices(tmp_path, 2, lambda n: n * 3.0) as (one, other):
        for text in ("The kettle is blue", "The cup is green", "The plate is white"):
            one.remember(text)
            one.sync.now()
        yield one, other, tmp_path / "remote"


def entries(remote: Path, memory: Memory) -> list[Path]:
    """The files of a device, in order: the first one announces it."""
    return sorted(remote.glob(f"*/{memory.sync.status().device}/*.entry"))


@pytest.mark.promise("sync.sealed")
@pytest.mark.parametrize("encrypt", [None, "file"])
def test_a_remote_reads_nothing(tmp_path: Path, encrypt: Any) -> None:
    """No word, path, tag, title, name or speaker, and no key, stands in any byte of it."""
    remote = tmp_path / "remote"
    remote.mkdir()
    words = []
    with Memory.open(tmp_path / "home", encrypt=encrypt, embedder="hashing") as memory:
        for number in range(300):
            memory.remember(
                f"Zanzibar{number:03d} prefers quiet{number:03d} mornings",
                path=f"guest{number:03d}.habit" if number % 3 else None,
                tags=[f"label{number:03d}"],
                source=f"origin{number:03d}",
            )
            memory.conversations.append(
                f"room{number % 7}talk", "user", f"Wisteria{number:03d}", speaker=f"Ophelia{number}"
            )
            words += [f"Zanzibar{number:03d}", f"guest{number:03d}", f"label{number:03d}"]
            words += [f"origin{number:03d}", f"Wisteria{number:03d}", f"Ophelia{number}"]
        memory.conversations.set_title("room1talk", "Petunias")
        memory.sync.init(str(remote))
        report = memory.sync.now()
        key = memory.sync.export_key()
    assert report.sent > 3
    known = json.loads(base64.urlsafe_b64decode(key.removeprefix("anaphora-sync-1:")))["keys"]
    (known,) = known.values()
    words += ["Petunias", "room1talk", known, base64.b64encode(bytes.fromhex(known)).decode()]
    kept = b"".join(file.read_bytes() for file in remote.rglob("*.entry"))
    kept += "\n".join(map(str, remote.rglob("*"))).encode()
    assert kept
    assert [word for word in words if word.encode() in kept] == []
    sealed = [json.loads(file.read_bytes())["sealed"] for file in remote.rglob("*.entry")]
    sizes = {len(base64.b64decode(one)) - 28 for one in sealed}
    assert all(size >= 1024 and size & (size - 1) == 0 for size in sizes)


def _flip(file: Path) -> None:
    line = json.loads(file.read_bytes())
    sealed = bytearray(base64.b64decode(line["sealed"]))
    sealed[40] ^= 1
    file.write_bytes(json.dumps(line | {"sealed": base64.b64encode(sealed).decode()}).encode())


def _with(**members: Any) -> Callable[[list[Path]], None]:
    def change(files: list[Path]) -> None:
        files[1].write_bytes(json.dumps(json.loads(files[1].read_bytes()) | members).encode())

    return change


def _swap(files: list[Path]) -> None:
    first, second = files[0].read_bytes(), files[1].read_bytes()
    files[0].write_bytes(second)
    files[1].write_bytes(first)


TAMPERING: dict[str, Callable[[list[Path]], object]] = {
    "altered": lambda files: _flip(files[1]),
    "altered at the start": lambda files: _flip(files[0]),
    "cut": lambda files: files[1].write_bytes(files[1].read_bytes()[:200]),
    "emptied": lambda files: files[1].write_bytes(b""),
    "swapped": _swap,
    "replayed": lambda files: files[2].write_bytes(files[1].read_bytes()),
    "another parent": _with(parent="0" * 64),
    "another key's name": _with(epoch="000002-00000000"),
    "another project": _with(project="ana_proj_0"),
    "hashes left out": _with(hashes=["0" * 32]),
}


@pytest.mark.promise("sync.hostile")
@pytest.mark.parametrize("how", TAMPERING)
def test_tampering_is_named(pair: Pair, how: str) -> None:
    """The entry and its device are named, nothing of it is taken in, and nothing stands still."""
    one, other, remote = pair
    files = entries(remote, one)[1:]
    kept = {file: file.read_bytes() for file in files}
    TAMPERING[how](files)
    with pytest.raises(RemoteTampered) as caught:
        other.sync.now()
    assert caught.value.device == one.sync.status().device
    assert caught.value.number in (2, 3, 4)
    assert other.sync.status().stopped == str(caught.value)
    other.remember("The fork is red")
    assert "The plate is white" not in [record.text for record in other.list()]
    for file, data in kept.items():
        file.write_bytes(data)
    settle([one, other])
    assert len(other.list()) == len(one.list()) == 4


@pytest.mark.promise("sync.hostile")
def test_a_remote_that_goes_back_is_named(pair: Pair) -> None:
    """Who has read or sent more than the remote has says so: truncated, or put back to a copy."""
    one, other, remote = pair
    other.sync.now()
    last = entries(remote, one)[-1]
    data = last.read_bytes()
    last.unlink()
    for memory in (one, other):
        with pytest.raises(RemoteTampered, match="4 that it had before") as caught:
            memory.sync.now()
        assert caught.value.number == 4
    last.write_bytes(data)
    settle([one, other])


@pytest.mark.promise("sync.hostile")
def test_what_is_on_its_way_is_waited_for(pair: Pair) -> None:
    """In a folder entries arrive in any order: those behind a gap wait, and nothing is refused."""
    one, other, remote = pair
    middle = entries(remote, one)[2]
    data = middle.read_bytes()
    middle.unlink()
    assert other.sync.now().received == 2
    assert [record.text for record in other.list()] == ["The kettle is blue"]
    middle.write_bytes(data)
    settle([one, other])
    assert len(other.list()) == 3


@pytest.mark.promise("sync.copies")
def test_a_copy_goes_on_as_a_device_of_its_own(pair: Pair, tmp_path: Path) -> None:
    """A home that was put back to an older copy says so; after `fork` nothing is lost or twice."""
    one, other, _ = pair
    one.backup(tmp_path / "backup.zip")
    one.remember("The spoon is old")
    one.sync.now()
    Memory.restore(tmp_path / "backup.zip", tmp_path / "again")
    with Memory.open(tmp_path / "again", embedder="hashing") as again:
        again.remember("The knife is sharp")
        with pytest.raises(Diverged, match="sync fork"):
            again.sync.now()
        assert "sync fork" in (again.sync.status().stopped or "")
        before = again.sync.status().device
        assert again.sync.fork().device != before
        settle([one, other, again])
        for memory in (one, other, again):
            texts = sorted(record.text for record in memory.list())
            assert texts == [
                "The cup is green", "The kettle is blue", "The knife is sharp",
                "The plate is white", "The spoon is old",
            ]  # fmt: skip


@pytest.mark.promise("sync.forgets")
@pytest.mark.parametrize("where", ["here", "there"])
def test_what_was_forgotten_leaves_every_place(pair: Pair, tmp_path: Path, where: str) -> None:
    """No byte of it in either home, its entry has no content, a new device never sees it."""
    one, other, remote = pair
    one.remember("Zanzibar prefers quiet mornings", path="guest.habit", tags=["breakfast"])
    one.remember("The stool is brown")
    one.conversations.append("lobby", "user", "Wisteria blooms in the yard", speaker="Ophelia")
    one.conversations.append("lobby", "user", "The gate is shut")
    settle([one, other])
    forgetting = one if where == "here" else other
    (record,) = [record for record in one.list() if record.path == "guest.habit"]
    forgetting.forget(record.id)
    forgetting.conversations.redact("lobby", 0)
    home = forgetting.home
    assert _with_words(home, b"Zanzibar", b"breakfast", b"Wisteria", b"Ophelia") == []
    settle([one, other])
    for memory in (one, other):
        words = (b"Zanzibar", b"breakfast", b"Wisteria", b"Ophelia")
        assert _with_words(memory.home, *words) == []
    lines = [json.loads(file.read_bytes()) for file in remote.rglob("*.entry")]
    assert any("dropped" in line for line in lines)
    with Memory.open(tmp_path / "new", embedder="hashing", warm=False) as new:
        new.sync.init(str(remote), key=one.sync.export_key())
        settle([one, other, new])
        assert words_of(new, tmp_path) == words_of(one, tmp_path)
        assert {"The stool is brown", "The gate is shut"} <= words_of(new, tmp_path)


def _with_words(home: Path, *words: bytes) -> list[str]:
    found = []
    for file in home.rglob("*"):
        data = file.read_bytes() if file.is_file() else b""
        found += [f"{file.name}: {word!r}" for word in words if word in data]
    return found


CHILD = """
import os, sys, threading
from anaphora import Memory

memory = Memory.open(sys.argv[1], embedder="hashing", warm=False)
# What a first write loads takes as long as the machine is busy: the time counts from then on.
memory.remember(f"{sys.argv[3]} 0")
print(f"{sys.argv[3]} 0", flush=True)
threading.Timer(float(sys.argv[2]), os.kill, (os.getpid(), 9)).start()
number = 0
while True:
    number += 1
    text = f"{sys.argv[3]} {number}"
    memory.remember(text)
    print(text, flush=True)
    memory.conversations.append("talk", "user", f"turn {text}")
    print(f"turn {text}", flush=True)
    memory.sync.now()
"""


@pytest.mark.promise("sync.interrupted")
def test_killed_anywhere_nothing_is_lost_or_twice(tmp_path: Path) -> None:
    """Two devices that are killed again and again agree in the end on all that was said."""
    said: set[str] = set()
    with devices(tmp_path, 2, float):
        pass
    for kill in range(8):
        after = str(0.02 + 0.05 * kill)
        command = [*python(), "-c", CHILD, str(tmp_path / f"d{kill % 2}"), after, f"k{kill}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == -9, done.stderr
        said |= set(done.stdout.splitlines())
    with (
        Memory.open(tmp_path / "d0", embedder="hashing") as one,
        Memory.open(tmp_path / "d1", embedder="hashing") as other,
    ):
        settle([one, other])
        assert len(said) > 8
        for memory in (one, other):
            assert said <= words_of(memory, tmp_path)
            thread = memory.conversations.get("talk")
            assert thread is not None
            texts = [turn.text for turn in thread.turns]
            assert len(set(texts)) == len(texts)


@pytest.mark.promise("sync.copies")
def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    """A remote that is not there, a wrong key, twice, not yet, and after it was left."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        for wrong in (str(tmp_path / "nowhere"), "relative", "ftp://there"):
            with pytest.raises(InvalidInput, match="remote"):
                memory.sync.init(wrong)
        remote = tmp_path / "remote"
        remote.mkdir()
        with pytest.raises(InvalidInput, match="sync key"):
            memory.sync.init(str(remote), key="anaphora-sync-1:AAAA")
        for call in (memory.sync.now, memory.sync.export_key, memory.sync.fork, memory.sync.leave):
            with pytest.raises(InvalidInput, match="sync init"):
                call()
        assert memory.sync.status().project == ""
        memory.sync.init(str(remote))
        with pytest.raises(InvalidInput, match="leave"):
            memory.sync.init(str(remote))
        memory.remember("The kettle is blue")
        shutil.rmtree(remote)
        with pytest.raises(RemoteError, match="not there"):
            memory.sync.now()
        remote.mkdir()
        assert memory.sync.now().sent == 2
        memory.sync.leave()
        assert memory.sync.status().project == ""
        assert [record.text for record in memory.list()] == ["The kettle is blue"]
