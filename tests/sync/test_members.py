"""Devices that come by a code and go, with the key that the others have from then on."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.page_desk import serving
from tests.sync.devices import Clock, devices, settle, words_of

from anaphora import Memory
from anaphora.errors import (
    DeviceRemoved,
    InvalidInput,
    PairingFailed,
    RemoteTampered,
)

pytestmark = pytest.mark.enable_socket


def at(place: Path) -> Any:
    """A home with a clock of its own."""
    return Memory.open(place, embedder="hashing", clock=Clock(), warm=False)


@pytest.fixture(params=["folder", "server"])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A place for entries."""
    if request.param == "folder":
        (tmp_path / "remote").mkdir()
        yield str(tmp_path / "remote")
        return
    with (
        Memory.open(tmp_path / "server", embedder="hashing", warm=False) as memory,
        serving(memory, {"page": None, "rate": 10_000, "burst": 10_000}) as url,
    ):
        yield url


@pytest.mark.promise("sync.members")
def test_a_device_joins_by_a_code(tmp_path: Path, remote: str) -> None:
    """What is typed is short, in any case; the remote sees neither the code nor a key."""
    with at(tmp_path / "one") as one, at(tmp_path / "two") as two:
        one.sync.init(remote, name="laptop")
        one.remember("The kettle is blue")
        one.sync.now()
        pairing = one.sync.pair()
        waiting = threading.Thread(target=pairing.wait, args=(20,))
        waiting.start()
        two.sync.init(remote, code=pairing.code.lower().replace("-", " "), name="desktop")
        waiting.join()
        settle([one, two])
        assert [record.text for record in two.list()] == ["The kettle is blue"]
        names = {device.name: device.this for device in two.sync.devices()}
        assert names == {"laptop": False, "desktop": True}
        kept = b"".join(p.read_bytes() for p in tmp_path.rglob("*.entry"))
        assert pairing.code[5:].encode() not in kept
        again = Memory.open(tmp_path / "three", embedder="hashing", warm=False)
        with again, pytest.raises(PairingFailed, match="used"):
            again.sync.init(remote, code=pairing.code)


@pytest.mark.promise("sync.members")
def test_a_wrong_code_ends_the_pairing(tmp_path: Path, remote: str) -> None:
    """One guess: the one that waits is told, the one that guessed gets nothing."""
    told: list[Exception] = []
    with at(tmp_path / "one") as one, at(tmp_path / "two") as two:
        one.sync.init(remote)
        pairing = one.sync.pair()

        def wait() -> None:
            with pytest.raises(PairingFailed, match="another code") as caught:
                pairing.wait(20)
            told.append(caught.value)

        waiting = threading.Thread(target=wait)
        waiting.start()
        guess = pairing.code[:-1] + ("0" if pairing.code[-1] != "0" else "1")
        with pytest.raises(PairingFailed):
            two.sync.init(remote, code=guess)
        waiting.join()
        assert told
        assert two.sync.status().project == ""
        with pytest.raises(PairingFailed, match="used"):
            two.sync.init(remote, code=pairing.code)
        with pytest.raises(PairingFailed, match="nobody offers"):
            two.sync.init(remote, code="ZZZZ-ZZZZ-ZZZZ")
        with pytest.raises(InvalidInput, match="12 characters"):
            two.sync.init(remote, code="nonsense!")
        with pytest.raises(PairingFailed, match="in time"):
            one.sync.pair().wait(0.3)


@pytest.mark.promise("sync.members")
def test_a_removed_device_reads_and_says_nothing_more(tmp_path: Path) -> None:
    """The others go on under a new key; what it wrote before counts, what it writes then not."""
    with devices(tmp_path, 3, float) as (one, two, three):
        three.remember("The stool is brown")
        settle([one, two, three])
        gone = three.sync.status().device
        with pytest.raises(InvalidInput, match="sync leave"):
            one.sync.remove(one.sync.status().device)
        with pytest.raises(InvalidInput, match="not a device"):
            one.sync.remove("nobody")
        listed = {device.device: device.removed for device in one.sync.remove(gone)}
        assert listed[gone]
        one.remember("Zanzibar prefers quiet mornings")
        settle([one, two])
        two.remember("The gate is shut")
        three.remember("The cup is green")
        with pytest.raises(DeviceRemoved):
            three.sync.now()
        assert "removed" in (three.sync.status().stopped or "")
        settle([one, two])
        for memory in (one, two):
            assert words_of(memory, tmp_path) == {
                "The stool is brown", "Zanzibar prefers quiet mornings", "The gate is shut",
            }  # fmt: skip
        with pytest.raises(DeviceRemoved):
            three.sync.now()
        assert "Zanzibar prefers quiet mornings" not in words_of(three, tmp_path)
        three.sync.leave()
        three.sync.init(str(tmp_path / "remote"), key=one.sync.export_key())
        settle([one, two, three])
        assert words_of(one, tmp_path) == words_of(three, tmp_path)
        assert "The cup is green" in words_of(two, tmp_path)


@pytest.mark.promise("sync.members")
def test_who_was_away_while_a_device_was_removed(tmp_path: Path) -> None:
    """It has written under the old key, and read the removed one meanwhile: nothing is lost."""
    with devices(tmp_path, 4, float) as (one, two, three, four):
        settle([one, two, three, four])
        three.remember("The stool is brown")
        two.remember("The gate is shut")
        hidden = hide(tmp_path, three)
        one.sync.remove(three.sync.status().device)
        show(tmp_path, hidden)
        three.sync.status()
        four.remember("The cup is green")
        settle([one, two, four])
        assert words_of(one, tmp_path) == words_of(two, tmp_path) == words_of(four, tmp_path)
        assert {"The gate is shut", "The cup is green"} <= words_of(one, tmp_path)


def hide(place: Path, memory: Memory) -> dict[Path, bytes]:
    """Sync a device, and take what it wrote out of the folder, as if it were on its way."""
    remote = place / "remote"
    before = set(remote.rglob("*.entry"))
    memory.sync.now()
    fresh = {file: file.read_bytes() for file in set(remote.rglob("*.entry")) - before}
    for file in fresh:
        file.unlink()
    return fresh


def show(_place: Path, files: dict[Path, bytes]) -> None:
    """Let it arrive."""
    for file, data in files.items():
        file.write_bytes(data)


@pytest.mark.promise("sync.members")
def test_two_removals_at_once(tmp_path: Path) -> None:
    """Each removes another one while neither knows of it: both are out, and the rest agree."""
    with devices(tmp_path, 4, float) as (one, two, three, four):
        settle([one, two, three, four])
        first = hide(tmp_path, one)
        before = set((tmp_path / "remote").rglob("*.entry"))
        one.sync.remove(three.sync.status().device)
        mine = {
            file: file.read_bytes() for file in set((tmp_path / "remote").rglob("*.entry")) - before
        }
        for file in mine:
            file.unlink()
        two.sync.remove(four.sync.status().device)
        show(tmp_path, mine | first)
        settle([one, two])
        one.remember("Zanzibar prefers quiet mornings")
        settle([one, two])
        assert words_of(one, tmp_path) == words_of(two, tmp_path)
        for removed in (three, four):
            with pytest.raises(DeviceRemoved):
                removed.sync.now()
            assert not words_of(removed, tmp_path)
        out = {device.device for device in one.sync.devices() if device.removed}
        assert out == {three.sync.status().device, four.sync.status().device}


@pytest.mark.promise("sync.members")
def test_nobody_writes_in_another_ones_name(tmp_path: Path) -> None:
    """An entry that a device of the project made, put under the name of another one."""
    with devices(tmp_path, 3, float) as (one, two, three):
        settle([one, two, three])
        remote = next((tmp_path / "remote").iterdir())
        mine, theirs = one.sync.status().device, two.sync.status().device
        one.remember("The kettle is blue")
        one.sync.now()
        last = max((remote / mine).iterdir())
        line = json.loads(last.read_bytes())
        known = json.loads(max((remote / theirs).iterdir()).read_bytes())
        forged = line | {"device": theirs, "number": known["number"] + 1}
        place = remote / theirs / f"{forged['number']:08d}.entry"
        place.write_bytes(json.dumps(forged).encode())
        with pytest.raises(RemoteTampered):
            three.sync.now()
