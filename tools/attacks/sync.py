"""Attacks on devices that sync: stolen ones, clocks that are ahead, remotes that answer oddly."""

from __future__ import annotations

import json
import os
import resource
import threading
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tools.attacks import attack

from anaphora import Memory
from anaphora.client import RemoteMemory
from anaphora.errors import AnaphoraError, DeviceRemoved, RemoteTampered, ServerError, SyncError
from anaphora.sync.membership import join_project
from anaphora.sync.reader import EntryReader

_DEEP = b"[" * 200_000


def _homes(folder: Path, count: int, stack: ExitStack) -> list[Memory]:
    (folder / "remote").mkdir()
    homes = [
        stack.enter_context(Memory.open(folder / f"home{n}", embedder="hashing", warm=False))
        for n in range(count)
    ]
    homes[0].sync.init(str(folder / "remote"))
    for home in homes[1:]:
        home.sync.init(str(folder / "remote"), key=homes[0].sync.export_key())
    return homes


def _exchange(*homes: Memory) -> None:
    for _ in range(3):
        for home in homes:
            home.sync.now()


def _gate(home: Memory) -> str:
    return " ".join(record.text for record in home.list(filters={"path": "gate.code"}).items)


def _steal(folder: Path, name: str | None) -> None:
    """A device writes on after it was removed, as itself or as a new device of this name."""
    with ExitStack() as stack:
        owner, thief, away = _homes(folder, 3, stack)
        owner.remember("Gate code is 1111.", path="gate.code")
        _exchange(owner, thief, away)
        owner.sync.remove(thief.sync.status().device)
        if name is not None:
            with patch(
                "anaphora.sync.manager.join_project",
                lambda *given: replace(join_project(*given), device=name),
            ):
                thief.sync.fork()
        thief.remember("Gate code is 6666.", path="gate.code")
        with patch.object(EntryReader, "read", lambda *_: 0):
            thief.sync.now()
        _exchange(away, owner)
        for home in (owner, away):
            assert "6666" not in _gate(home), "the thief's value is on an honest device"
            assert "1111" in _gate(home)


@attack("F1", "high", "a removed device adds nothing as a device that is read first")
def new_device_first(folder: Path) -> None:
    """A new identity whose name is read before the removal."""
    _steal(folder, "0" * 16)


@attack("F1", "high", "a removed device adds nothing as a device that is read last")
def new_device_last(folder: Path) -> None:
    """A new identity whose name is read behind the removal."""
    _steal(folder, "f" * 16)


@attack("F1", "high", "a removed device adds nothing under its own name, read before the removal")
def same_device(folder: Path) -> None:
    """It writes on, and one that was away reads that without the removal first."""
    with ExitStack() as stack:
        owner, thief, away = _homes(folder, 3, stack)
        owner.remember("Gate code is 1111.", path="gate.code")
        _exchange(owner, thief, away)
        remote = folder / "remote"
        before = set(remote.rglob("*.entry"))
        owner.sync.remove(thief.sync.status().device)
        late = {file: file.read_bytes() for file in set(remote.rglob("*.entry")) - before}
        for file in late:
            file.unlink()
        for record in thief.list():
            thief.forget(record.id)
        thief.remember("Gate code is 6666.", path="gate.code")
        with patch.object(EntryReader, "read", lambda *_: 0):
            thief.sync.now()
        away.sync.now()
        for file, data in late.items():
            file.write_bytes(data)
        _exchange(away, owner)
        for home in (owner, away):
            assert "1111" in _gate(home), "an honest value is gone"
            assert "6666" not in _gate(home), "the thief's value is on an honest device"


@contextmanager
def unread_removal(remote: Path, remover: Memory, device: str) -> Iterator[None]:
    """Remove a device; the entries that say so arrive when this is left."""
    before = set(remote.rglob("*.entry"))
    remover.sync.remove(device)
    late = {file: file.read_bytes() for file in set(remote.rglob("*.entry")) - before}
    for file in late:
        file.unlink()
    yield
    for file, data in late.items():
        file.write_bytes(data)


@attack("F1", "high", "what a removed device replaced comes back where another had compacted it")
def compacted(folder: Path) -> None:
    """One that was away believes its title and label, and empties the entries with the old ones."""
    with ExitStack() as stack:
        owner, thief, away = _homes(folder, 3, stack)
        owner.conversations.append("chat", "user", "Where is the key?")
        owner.conversations.set_title("chat", "Keys")
        owner.remember("Gate code is 1111.", path="gate.code", category="house")
        _exchange(owner, thief, away)
        with unread_removal(folder / "remote", owner, thief.sync.status().device):
            thief.conversations.set_title("chat", "Evil")
            for record in thief.list():
                thief.update(record.id, category="evil")
            with patch.object(EntryReader, "read", lambda *_: 0):
                thief.sync.now()
            away.sync.now()
            away.sync.compact()
        _exchange(away, owner)
        for home in (owner, away):
            thread = home.conversations.get("chat")
            assert thread is not None
            assert thread.title == "Keys", thread.title
            assert [record.category for record in home.list()] == ["house"]


@attack("F1", "medium", "of two devices that remove each other the project's first one stays")
def each_other(folder: Path) -> None:
    """Whichever is read first; the other is told so, and how to join again."""
    with ExitStack() as stack:
        first, second, witness = _homes(folder, 3, stack)
        first.remember("Gate code is 1111.", path="gate.code")
        _exchange(first, second, witness)
        names = [home.sync.status().device for home in (first, second)]
        with unread_removal(folder / "remote", first, names[1]):
            second.sync.remove(names[0])
        witness.sync.now()
        first.sync.now()
        with pytest.raises(DeviceRemoved, match="join again"):
            second.sync.now()
        witness.sync.now()
        removed = [one.device for one in witness.sync.devices() if one.removed]
        assert removed == names[1:], removed


@attack("F7", "medium", "a value of a clock that is ahead can be corrected on another device")
def clock_ahead(folder: Path) -> None:
    """Ten minutes, and ten years."""
    for minutes in (10, 60 * 24 * 3650):
        remote = folder / f"remote{minutes}"
        remote.mkdir()
        ahead = timedelta(minutes=minutes)
        with (
            Memory.open(folder / f"a{minutes}", embedder="hashing", warm=False) as one,
            Memory.open(
                folder / f"b{minutes}",
                embedder="hashing",
                warm=False,
                clock=lambda ahead=ahead: datetime.now(UTC) + ahead,  # type: ignore[misc]
            ) as other,
        ):
            one.sync.init(str(remote))
            other.sync.init(str(remote), key=one.sync.export_key())
            other.remember("The gate code is 1111.", path="gate.code")
            _exchange(other, one)
            one.remember("The gate code is 2222.", path="gate.code")
            _exchange(one, other)
            assert "2222" in _gate(one), "the value of the clock ahead stays"
            assert "2222" in _gate(other), "the value of the clock ahead stays"


@contextmanager
def _answering(body: bytes, packing: str = "identity") -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            self.send_header("Content-Encoding", packing)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the name that http.server asks for

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))


def _synced_with(folder: Path, url: str) -> None:
    with Memory.open(folder / "home", embedder="hashing", warm=False) as home:
        (folder / "remote").mkdir()
        home.sync.init(str(folder / "remote"))
        with home.sync._store.change() as work:
            work.put("remote", [url, None])
        try:
            home.sync.now()
        except SyncError:
            return
        raise AssertionError("the answer was taken")


def _bomb() -> bytes:
    """6 MB of gzip that unpack to 6 GB of blanks."""
    packing = zlib.compressobj(9, zlib.DEFLATED, 31)
    blank = b" " * (1 << 20)
    start = packing.compress(blank) + packing.flush(zlib.Z_FULL_FLUSH)
    block = packing.compress(blank) + packing.flush(zlib.Z_FULL_FLUSH)
    return start + block * 6000


@attack("F9", "medium", "a packed answer of a sync server does not fill the memory")
def gzip_of_server(folder: Path) -> None:
    """6 MB that unpack to 6 GB."""
    with _answering(_bomb(), "gzip") as url:
        _limit_memory()
        _synced_with(folder, url)


@attack("F9", "medium", "a packed answer does not fill the memory of a client")
def gzip_of_client(folder: Path) -> None:
    """The same for RemoteMemory."""
    with (
        _answering(_bomb(), "gzip") as url,
        RemoteMemory.connect(url, token="anaphora_x") as remote,
    ):
        _limit_memory()
        try:
            remote.recall("kettle")
        except ServerError:
            return
        raise AssertionError("the answer was taken")


def _in_place_of_an_entry(folder: Path, put: Any) -> None:
    with ExitStack() as stack:
        one, other = _homes(folder, 2, stack)
        one.remember("The kettle is blue")
        one.sync.now()
        entry = max((folder / "remote").rglob("*.entry"))
        entry.unlink()
        put(entry)
        try:
            other.sync.now()
        except RemoteTampered:
            return
        raise AssertionError("the entry was taken")


@attack("F9", "medium", "an entry of 6 GB in a folder does not fill the memory")
def sparse_entry(folder: Path) -> None:
    """A file with a hole."""
    _limit_memory()

    def put(entry: Path) -> None:
        with entry.open("wb") as file:
            file.truncate(6 << 30)

    _in_place_of_an_entry(folder, put)


@attack("F10", "medium", "a named pipe in the place of an entry does not stop sync for ever")
def pipe(folder: Path) -> None:
    """Opening it for reading would wait."""
    _in_place_of_an_entry(folder, os.mkfifo)


@attack("F10", "medium", "a link to a device in the place of an entry is not read")
def device(folder: Path) -> None:
    """It never ends."""
    _limit_memory()
    _in_place_of_an_entry(folder, lambda entry: entry.symlink_to("/dev/zero"))


@attack("F11", "medium", "an entry of deep JSON is named as tampered")
def deep_entry(folder: Path) -> None:
    """Python's own error would end background sync without a word."""
    _in_place_of_an_entry(folder, lambda entry: entry.write_bytes(_DEEP))


@attack("F11", "medium", "an infinite number of a server is an error of sync")
def infinite(folder: Path) -> None:
    """OverflowError is none."""
    with _answering(b'{"heads": {"a": {"number": Infinity}}}') as url:
        _synced_with(folder, url)


@attack("F11", "medium", "a deep answer is an error of a client's own")
def deep_answer(folder: Path) -> None:
    """RecursionError is none."""
    with (
        _answering(_DEEP) as url,
        RemoteMemory.connect(url, token="anaphora_x") as remote,
        suppress(AnaphoraError),
    ):
        remote.recall("kettle")


@attack("F11", "medium", "background sync says why it ended")
def silent_end(folder: Path) -> None:
    """Whatever a remote answers."""
    with ExitStack() as stack:
        one, other = _homes(folder, 2, stack)
        one.sync.now()
        max((folder / "remote").rglob("*.entry")).write_bytes(_DEEP)
        other.sync.start(0.01)
        thread = next(t for t in threading.enumerate() if t.name == "anaphora-sync")
        thread.join(60)
        assert other.sync.status().stopped, "it ended, and does not say why"


@attack("F19", "low", "two versions of one entry in a folder are found out")
def two_versions(folder: Path) -> None:
    """A copy of a home goes on beside it; two others read one version each."""
    with ExitStack() as stack:
        source, one, other = _homes(folder, 3, stack)
        _exchange(source, one, other)
        remote = folder / "remote"
        before = set(remote.rglob("*.entry"))
        source.remember("The kettle is blue")
        source.sync.now()
        (fresh,) = set(remote.rglob("*.entry")) - before
        one.sync.now()
        one.remember("The bell is small")
        one.sync.now()
        fresh.unlink()
        number, device = int(fresh.stem), source.sync.status().device
        with source.sync._store.change() as work:
            work._work.drop("sync_entry", {"number": number, "device": device})
        source.remember("The cup is green")
        with patch.object(EntryReader, "read", lambda *_: 0):
            source.sync.now()
        line = json.loads(fresh.read_bytes())
        assert line["number"] == number
        try:
            other.sync.now()
        except RemoteTampered:
            return
        raise AssertionError("the devices keep different memories, and none says so")


@attack("F29", "low", "what is to be sent is counted in entries, as what was sent is")
def overcounted(folder: Path) -> None:
    """Every change took a number or more, and each was told as one to be sent."""
    with ExitStack() as stack:
        (home,) = _homes(folder, 1, stack)
        home.remember_many([f"Shelf {number} holds {number} jars." for number in range(600)])
        told = home.sync.status().waiting
        sent = home.sync.now().sent
        assert told <= sent, f"{told} to be sent, and {sent} were"
