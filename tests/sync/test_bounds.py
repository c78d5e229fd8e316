"""Answers of remotes that are too large, too slow, no files, or no entries: told, and bounded."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.sync import thieves
from tests.sync.devices import devices, settle

from anaphora import Memory
from anaphora.client import RemoteMemory
from anaphora.errors import PairingFailed, RemoteError, RemoteTampered, ServerError
from anaphora.features.sync.entries import Header, entry_of, seal, unseal
from anaphora.system.bounded import MOST_BYTES

pytestmark = [pytest.mark.enable_socket, pytest.mark.internal]

DEEP = b"[" * 200_000
BOMB = gzip.compress(bytes(MOST_BYTES + 1), 9)


@contextmanager
def answering(body: bytes, packing: str | None = None) -> Iterator[str]:
    """A server that says the same to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            if packing is not None:
                self.send_header("Content-Encoding", packing)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


ANSWERS: list[tuple[bytes, str | None]] = [
    (BOMB, "gzip"),
    (b"{}", "br"),
    (b"no gzip", "gzip"),
    (gzip.compress(b"[") + gzip.compress(b"]"), "gzip"),
    (DEEP, None),
    (b'{"heads": {"a": {"number": Infinity}}}', None),
    (b'{"heads": {"a": {"number": 1e999}}}', None),
    (b'{"heads": {"a": {"number": 1e3}}}', None),
    (b'{"heads": {"a": {"number": ' + b"9" * 5000 + b"}}}", None),
    (b'{"heads": {"a": {"number": 9999999999999999999}}}', None),
    (b'{"heads": [1]}', None),
    (b"[]", None),
    (b"[" + b"[]," * 4_000_000 + b"[]]", None),
]

_SAID = {0: "more than 64 MiB", 1: "packed in a way", 2: "cannot be unpacked"}
"""What is said of those that are not read to their end."""
_JSON = (6, 7, 9, 10)
"""Those that are JSON, in which a client finds no hits."""


@pytest.mark.promise("sync.bounded")
@pytest.mark.parametrize("case", range(len(ANSWERS)))
def test_an_answer_that_is_none(tmp_path: Path, case: int) -> None:
    """Of a server that devices sync with, and of one that a client asks."""
    body, packing = ANSWERS[case]
    with answering(body, packing) as url:
        with devices(tmp_path, 1, float) as (one,):
            one.sync.leave()
            one.sync.init(str(tmp_path / "remote"))
            with one.sync._store.change() as work:
                work.put("remote", [url, None])
            with pytest.raises(RemoteError, match=_SAID.get(case)):
                one.sync.now()
        if case in _JSON:
            return
        with (
            RemoteMemory.connect(url, token="anaphora_x") as remote,
            pytest.raises(ServerError, match=_SAID.get(case)),
        ):
            remote.recall("kettle")


@pytest.mark.promise("sync.bounded")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("kind", ["pipe", "device", "sparse", "deep", "list", "infinite", "folder"])
@pytest.mark.parametrize("own", [True, False])
def test_an_entry_that_is_none(tmp_path: Path, kind: str, own: bool) -> None:
    """In a folder, in the place of an entry of this device or of another: told at once."""
    with devices(tmp_path, 2, float) as (one, other):
        one.remember("The kettle is blue")
        settle([one, other])
        one.remember("The cup is green")
        one.sync.now()
        device = (one if own else other).sync.status().device
        place = max((tmp_path / "remote").rglob(f"{one.sync.status().device}/*.entry"))
        if not own:
            place = next((tmp_path / "remote").rglob(device)) / place.name
        place.unlink(missing_ok=True)
        if kind == "pipe":
            os.mkfifo(place)
        elif kind == "device":
            place.symlink_to("/dev/zero")
        elif kind == "folder":
            place.mkdir()
        elif kind == "sparse":
            with place.open("wb") as file:
                file.truncate(6 << 30)
        else:
            bodies = {"deep": DEEP, "list": b"[]", "infinite": b'{"number": Infinity}'}
            place.write_bytes(bodies[kind])
        reader = other if own else one
        for after in range(2, 4):
            # What stands before it, where that is missing, is no concern of this test.
            gap = place.with_name(f"{after:08d}.entry")
            if not os.path.lexists(gap) and gap < place:
                gap.write_bytes(b"{}")
        with pytest.raises(RemoteTampered, match="too large" if kind == "sparse" else None):
            reader.sync.now()
        with pytest.raises(RemoteTampered):
            (one.sync.verify if own else reader.sync.now)()
        reader.sync.start(0.01)
        thread = next((t for t in threading.enumerate() if t.name == "anaphora-sync"), None)
        if thread is not None:
            thread.join(20)
        assert reader.sync.status().stopped


@pytest.mark.promise("sync.bounded")
@pytest.mark.parametrize(
    "packed", [b"\n" * MOST_BYTES, bytes(MOST_BYTES + 1), b"{}\n" + DEEP, b'{}\n{"a": Infinity}']
)
def test_an_entry_that_unpacks_to_more(packed: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sealed and signed by a device of the project itself."""
    from anaphora.features.sync import entries
    from anaphora.store.crypto.cipher import Cipher

    cipher = Cipher(bytes(32), os.urandom)
    monkeypatch.setattr(entries, "to_line", lambda _: packed)
    header = Header("ana_proj_x", "a", 1, "000001-x", "")
    entry = seal(header, entries.EntryContent(), cipher, lambda _: bytes(64))
    monkeypatch.undo()
    with pytest.raises(RemoteTampered):
        unseal(entry_of(entry.data(), "remote", "a", 1), cipher, "remote")


@pytest.mark.promise("sync.bounded")
@pytest.mark.parametrize("message", [b"[]", DEEP, b"5"])
def test_a_pairing_message_that_is_none(tmp_path: Path, message: bytes) -> None:
    """From whoever can write to the remote."""
    with devices(tmp_path, 1, float) as (one,):
        code = one.sync.pair().code
        remote = tmp_path / "remote" / f"pair_{code[:4]}"
        (offer,) = remote.rglob("*.entry")
        line = json.loads(offer.read_bytes())
        import base64

        offer.write_bytes(
            json.dumps(line | {"sealed": base64.b64encode(message).decode()}).encode()
        )
        two = Memory.open(tmp_path / "two", embedder="hashing", warm=False)
        with two, pytest.raises(PairingFailed):
            two.sync.init(str(tmp_path / "remote"), code=code)


@pytest.mark.promise("sync.hostile")
@pytest.mark.parametrize("proof", ["", "é", "\ud800", 5, None, ["x"]])
def test_a_proof_that_is_none(tmp_path: Path, proof: Any) -> None:
    """From whoever can write to the remote, after a sound beginning: the code is spent."""
    with devices(tmp_path, 1, float) as (one,):
        pairing = one.sync.pair()
        two = Memory.open(tmp_path / "two", embedder="hashing", warm=False)
        wrong = pairing.code[:-1] + ("A" if pairing.code[-1] != "A" else "B")
        heard: list[BaseException] = []

        def wait() -> None:
            try:
                pairing.wait(20)
            except Exception as error:  # noqa: BLE001 - which one is looked at below
                heard.append(error)

        from anaphora.features.sync import pairing as module

        say = module.Meeting._send
        with two, pytest.MonkeyPatch.context() as patch:

            def forged(meeting: Any, side: str, number: int, message: Any) -> None:
                told = message | {"proof": proof} if "proof" in message else message
                say(meeting, side, number, told)

            patch.setattr(module.Meeting, "_send", forged)
            thread = threading.Thread(target=wait)
            thread.start()
            with pytest.raises(PairingFailed):
                two.sync.init(str(tmp_path / "remote"), code=wrong)
            thread.join(30)
        assert [type(error) for error in heard] == [PairingFailed]


@pytest.mark.promise("sync.hostile")
def test_two_versions_of_one_entry_in_a_folder(tmp_path: Path) -> None:
    """A home that was copied: what each of two others has read of it is compared."""
    with devices(tmp_path, 3, float) as (source, one, other):
        settle([source, one, other])
        remote = tmp_path / "remote"
        before = {file: file.read_bytes() for file in remote.rglob("*.entry")}
        source.remember("The kettle is blue")
        source.sync.now()
        fresh = next(file for file in remote.rglob("*.entry") if file not in before)
        first = fresh.read_bytes()
        one.sync.now()
        one.remember("The bell is small")
        one.sync.now()
        fresh.unlink()
        with source.sync._store.change() as work:
            work._work.drop("sync_entry", {"number": 2, "device": source.sync.status().device})
        source.remember("The cup is green")
        with thieves.deaf():
            source.sync.now()
        assert fresh.read_bytes() != first
        with pytest.raises(RemoteTampered, match="another one"):
            other.sync.now()
