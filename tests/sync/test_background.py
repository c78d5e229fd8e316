"""Syncing in the background: two programs, one server, and what happens when it is away."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.commands import python
from tests.sync.devices import devices

from anaphora import Memory, SyncReport
from anaphora.errors import InvalidInput

PATIENCE = 30.0


def wait_for(what: Callable[[], object]) -> None:
    """Until it is so."""
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Memory, Memory]]:
    """Two devices that exchange in the background."""
    with devices(tmp_path, 2, float) as (one, other):
        one.sync.start(0.05)
        other.sync.start(0.05)
        yield one, other


@pytest.mark.promise("sync.background")
def test_what_one_says_the_other_recalls(pair: tuple[Memory, Memory]) -> None:
    """Without a call; and what is exchanged is told as an event."""
    one, other = pair
    told: list[SyncReport] = []
    other.on("sync", told.append)
    one.remember("The kettle is blue")
    one.conversations.append("talk", "user", "The cup is green")
    wait_for(lambda: other.recall("kettle", min_confidence=0))
    wait_for(lambda: other.conversations.get("talk"))
    other.forget(next(iter(other.list())).id)
    wait_for(lambda: not one.list())
    assert sum(report.received for report in told) >= 1


@pytest.mark.promise("sync.background")
def test_a_remote_that_goes_and_comes_back(pair: tuple[Memory, Memory], tmp_path: Path) -> None:
    """Writing goes on meanwhile, and nothing is lost; closing does not wait for the remote."""
    one, other = pair
    remote, away = tmp_path / "remote", tmp_path / "away"
    one.remember("The kettle is blue")
    wait_for(other.list)
    remote.rename(away)
    one.remember("The cup is green")
    time.sleep(0.2)
    away.rename(remote)
    wait_for(lambda: len(other.list()) == 2)
    assert one.sync.status().stopped is None


@pytest.mark.promise("sync.background")
def test_what_cannot_go_on_ends_and_says_so(tmp_path: Path) -> None:
    """An entry that was altered: the home works on, and its status says what is wrong."""
    with devices(tmp_path, 2, float) as (one, other):
        one.remember("The kettle is blue")
        one.sync.now()
        entry = max((tmp_path / "remote").rglob("*.entry"))
        entry.write_bytes(entry.read_bytes().replace(b'"epoch":"000001', b'"epoch":"000007'))
        assert other.sync.start(0.05)
        wait_for(lambda: other.sync.status().stopped)
        assert "entry 2" in (other.sync.status().stopped or "")
        other.remember("The cup is green")
        wait_for(lambda: not any(t.name == "anaphora-sync" for t in threading.enumerate()))
        with pytest.raises(InvalidInput, match="every"):
            other.sync.start(0)
    with Memory.open(tmp_path / "alone", embedder="hashing") as alone:
        assert not alone.sync.start()


@pytest.mark.promise("sync.background")
def test_an_error_that_nobody_foresaw_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In the log, and by status, for its thread has ended."""

    def fail(*_: object) -> None:
        raise AttributeError("of a library")

    with devices(tmp_path, 1, float) as (one,):
        monkeypatch.setattr("anaphora.features.sync.remotes.folder.FolderRemote.heads", fail)
        assert one.sync.start(0.05)
        wait_for(lambda: not any(t.name == "anaphora-sync" for t in threading.enumerate()))
        assert "AttributeError" in (one.sync.status().stopped or "")
    assert "sync stopped" in caplog.text


@pytest.mark.promise("sync.background")
def test_two_programs(tmp_path: Path) -> None:
    """One program says something, another one with a home of its own recalls it."""
    with devices(tmp_path, 2, float):
        pass
    command = [*python(), "-m", "anaphora", "--home", str(tmp_path / "d1")]
    program = subprocess.Popen([*command, "sync", "watch", "--every", "1"], stdout=subprocess.PIPE)
    try:
        with Memory.open(tmp_path / "d0", embedder="hashing") as one:
            one.remember("The kettle is blue")
            one.sync.now()
        with Memory.open(tmp_path / "d1", embedder="hashing") as other:
            wait_for(lambda: other.recall("kettle", min_confidence=0))
    finally:
        program.terminate()
        program.wait(PATIENCE)
        if program.stdout is not None:
            program.stdout.close()
