"""Encrypting and decrypting a whole home, and what a crash in the middle leaves."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.commands import python
from tests.sqlite_driver import dbapi2

from anaphora import ConversationStore, keys
from anaphora.errors import InvalidInput, StoreError, Tampered

from .secret_home import SECRETS, contents, damage, fill, opened, search

pytest.importorskip("cryptography")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def rekey(home: Path) -> None:
    keys.rotate_key(home, deep=True)


def test_decrypting_gives_the_files_back(home: Path) -> None:
    """Encrypt and decrypt: every thread file is byte for byte what it was, damaged ones too."""
    fill(home)
    damage(home)
    before, files = contents(home), json_files(home)
    keys.encrypt(home, kept="file")
    assert json_files(home) == {}
    keys.decrypt(home)
    assert json_files(home) == files
    assert contents(home) == before
    assert search(home) == set(SECRETS)
    assert not (home / "sealed.json").exists()
    assert not (home / "master.key").exists()
    keys.encrypt(home, kept="file")
    assert contents(home) == before


def json_files(home: Path) -> dict[str, bytes]:
    found = [p for p in home.rglob("*.json*") if p.is_file() and "sealed" not in p.name]
    return {str(path.relative_to(home)): path.read_bytes() for path in found}


def test_conversions_that_make_no_sense_are_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sealed home is not encrypted again, a clear one not decrypted, a server's not at all."""
    fill(home)
    for wrong in (keys.decrypt, rekey):
        with pytest.raises(InvalidInput):
            wrong(home)
    with monkeypatch.context() as patch:
        patch.setenv("ANAPHORA_DATABASE", "postgresql://somewhere/else")
        with pytest.raises(InvalidInput):
            keys.encrypt(home, kept="file")
    keys.encrypt(home, kept="file")
    with pytest.raises(InvalidInput):
        keys.encrypt(home, kept="file")


def test_a_damaged_sealed_file_does_not_stop_a_conversion(home: Path) -> None:
    """What cannot be opened is set aside as it is and reported; the rest is converted."""
    fill(home, "file")
    with opened(home) as memory:
        assert isinstance(memory.conversations, ConversationStore)
        path = memory.conversations.path("ada-and-bob 3")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    done = keys.decrypt(home)
    [problem] = done.problems
    assert problem.set_aside is not None
    assert Path(problem.set_aside).read_bytes() == data
    assert done.threads == 11


def test_a_tampered_row_stops_a_conversion_before_anything_is_lost(home: Path) -> None:
    """Rows are converted all or none: the home stays sealed, opens, and its key is kept."""
    fill(home, "file")
    outside = dbapi2.connect(str(home / "anaphora.db"))
    outside.execute("UPDATE turn_note SET speaker = 'an1:AAAA' WHERE position = 0")
    outside.commit()
    outside.close()
    for wrong in (keys.decrypt, rekey):
        with pytest.raises(Tampered, match=r"turn_note\.speaker"):
            wrong(home)
    assert (home / "sealed.json").exists()
    with opened(home) as memory:
        assert len(memory.conversations.list()) == 6
    assert (home / "master.key").exists()
    assert search(home) == set()


def test_a_failing_disk_leaves_the_conversion_to_be_finished(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in the middle is raised, and opening the home later finishes what was begun."""
    fill(home)
    before = contents(home)
    marker, real, calls = home / "sealed.json", os.fsync, 0

    def fsync(descriptor: int) -> None:
        nonlocal calls
        calls += marker.exists() and "encrypting" in marker.read_text()
        if calls == 7:
            raise OSError(28, "No space left on device")
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(StoreError):
            keys.encrypt(home, kept="file")
    assert json.loads(marker.read_text())["state"] == "encrypting"
    kinds = {path.suffix for path in (home / "conversations").iterdir() if path.is_file()}
    assert {".json", ".sealed"} <= kinds
    assert contents(home) == before
    assert search(home) == set()


CONVERT = """
import sys
from anaphora import keys
home, what = sys.argv[1:]
print("ready", flush=True)
if what == "encrypt":
    keys.encrypt(home, kept="file")
elif what == "decrypt":
    keys.decrypt(home)
else:
    keys.rotate_key(home, deep=True)
"""


def run_and_kill(home: Path, what: str, seconds: float) -> bool:
    """Start a conversion, kill it after some time; whether it was still running."""
    child = subprocess.Popen([*python(), "-c", CONVERT, str(home), what], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        os.kill(child.pid, signal.SIGKILL)
    child.stdout.close()
    return child.wait() != 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_kill_at_any_moment_leaves_a_home_that_opens(home: Path) -> None:
    """Conversions killed at random moments lose nothing, and the next opening finishes them."""
    fill(home)
    damage(home)
    before = contents(home)
    chance = random.Random(20_260_401)
    begun = time.monotonic()
    keys.encrypt(home, kept="file")
    whole = time.monotonic() - begun
    killed = 0
    for what in ("rekey", "decrypt", "encrypt", "rekey", "decrypt", "encrypt") * 2:
        killed += run_and_kill(home, what, chance.uniform(0.0, 2.0 * whole))
        assert contents(home) == before
        sealed = (home / "sealed.json").exists()
        # A conversion that was killed before it said what it was about to do was never begun.
        assert search(home) == (set() if sealed else set(SECRETS))
        if what == "decrypt" and sealed:
            keys.decrypt(home)
        elif what == "encrypt" and not sealed:
            keys.encrypt(home, kept="file")
    assert killed
