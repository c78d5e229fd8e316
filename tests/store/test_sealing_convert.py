"""Encrypting and decrypting a whole home, and what a crash in the middle leaves."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sqlite_driver import dbapi2

from anaphora import ConversationStore, keys
from anaphora.errors import InvalidInput, SealChanged, StoreError, Tampered
from anaphora.values.conversations import NewTurn

from .secret_home import SECRETS, contents, damage, fill, opened, search

pytest.importorskip("cryptography")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def rekey(home: Path) -> None:
    keys.rotate_key(home, deep=True)


def test_encrypting_a_home_hides_everything_and_changes_nothing(home: Path) -> None:
    """After `encrypt` no word is found under the home, and every answer is what it was."""
    fill(home)
    damage(home)
    (home / "index").mkdir(exist_ok=True)
    (home / "index" / "words").write_text("heron")
    before = contents(home)
    assert search(home) == set(SECRETS)
    seen: list[str] = []
    done = keys.encrypt(home, kept="file", progress=lambda label, _done, _total: seen.append(label))
    assert search(home) == set()
    assert contents(home) == before
    assert (done.threads, done.problems) == (13, ())
    assert done.rows > 20
    assert {"threads", "turn_note", "forgotten_turn"} <= set(seen)
    assert (home / "sealed.json").exists()
    with opened(home) as memory:
        assert memory.conversations.append_user("ada-and-bob 0", "more")
        [aside] = [p for p in memory.conversations.problems() if p.set_aside]
        assert aside.conversation_id == "ada-and-bob broken"
        assert len(memory.conversations.problems()) == 2
    assert search(home) == set()


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


def test_a_home_that_began_sealed_can_be_opened_up(home: Path) -> None:
    """A home sealed from its first write on holds no words, and decrypts to Go's files."""
    fill(home, "file")
    assert search(home) == set()
    before = contents(home)
    keys.decrypt(home)
    assert contents(home) == before
    assert search(home) == set(SECRETS) - {"nobody's file"}


def test_a_deep_rotation_encrypts_everything_again(home: Path) -> None:
    """After it every sealed byte is new, and every answer is what it was."""
    fill(home, "file")
    damage_name = (home / "conversations") / "stray.json.sealed"
    damage_name.write_bytes(b"no sealed thread")
    before = contents(home)
    old = {path.name for path in (home / "conversations").glob("*.sealed")}
    rekey(home)
    assert contents(home) == before
    assert not old & {path.name for path in (home / "conversations").glob("*.sealed")}
    assert search(home) == set()
    marker = json.loads((home / "sealed.json").read_text())
    assert (marker["state"], marker["generation"], marker["next"]) == ("sealed", 2, "")


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


def test_an_open_process_notices(home: Path) -> None:
    """Who has the clear home open when it is encrypted neither reads nor writes it any more."""
    fill(home)
    with opened(home) as clear:
        store = clear.conversations
        assert store.recent("ada-and-bob 0")
        keys.encrypt(home, kept="file")
        calls: list[Callable[[], object]] = [
            lambda: store.append_user("ada-and-bob 0", "lost"),
            lambda: store.append_user("new", "lost"),
            lambda: store.get("ada-and-bob 0"),
            store.list,
            lambda: store.extend("x", [NewTurn("user", "lost", speaker="Persephone")]),
            lambda: store.redact("ada-and-bob 0", 0),
            lambda: store.delete("ada-and-bob 0"),
            lambda: clear.remember("lost"),
            lambda: clear.export(io.BytesIO()),
        ]
        for call in calls:
            with pytest.raises(SealChanged):
                call()
    with opened(home) as sealed:
        store = sealed.conversations
        store.append_user("ada-and-bob 0", "kept")
        keys.decrypt(home)
        with pytest.raises(SealChanged):
            store.append_user("ada-and-bob 0", "lost")
    assert search(home) <= set(SECRETS)


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
    child = subprocess.Popen(
        [sys.executable, "-c", CONVERT, str(home), what], stdout=subprocess.PIPE
    )
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
