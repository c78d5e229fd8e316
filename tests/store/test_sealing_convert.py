"""Encrypting and decrypting a whole home, and what a crash in the middle leaves."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pysqlite3 import dbapi2

from anaphora.errors import CorruptThread, InvalidInput, SealChanged, StoreError, Tampered
from anaphora.store.db.engine import Database, open_database
from anaphora.store.home import conversion
from anaphora.store.home.opening import open_home
from anaphora.store.home.sealing import Home, Sealing
from anaphora.store.threads.file_store import ConversationStore
from anaphora.store.threads.sidecar import ConversationNote, Sidecar, TurnNote
from anaphora.values.conversations import NewTurn

pytestmark = pytest.mark.internal

pytest.importorskip("cryptography")

SECRETS = ("heron", "Persephone", "chat-of-ada", "message-of-ada", "ada-and-bob", "nobody's file")


@dataclass
class Opened:
    """An open home, as the facade would have it."""

    home: Home
    sealing: Sealing
    truth: Database

    def store(self, namespace: str = "default") -> ConversationStore:
        folder = self.home.conversations
        if namespace != "default":
            folder = self.home.root / "namespaces" / namespace / "conversations"
        sidecar = Sidecar(self.truth, namespace, self.sealing.rows)
        form = self.sealing.threads(namespace)
        return ConversationStore(folder, strict=True, sidecar=sidecar, form=form)

    def sidecar(self, namespace: str = "default") -> Sidecar:
        return Sidecar(self.truth, namespace, self.sealing.rows)


@contextmanager
def opened(home: Home, encrypt: Any = None) -> Iterator[Opened]:
    sealing = open_home(home, encrypt)
    truth = open_database(home.root / "anaphora.db")
    try:
        yield Opened(home, sealing, truth)
    finally:
        truth.close()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home", tmp_path / "home" / "conversations")


def fill(home: Home, encrypt: Any = None) -> None:
    with opened(home, encrypt) as one:
        for namespace in ("default", "work"):
            store = one.store(namespace)
            for number in range(12):
                turn = NewTurn(
                    "user", f"the heron {number}", speaker="Persephone", source="chatgpt",
                    source_key="chat-of-ada", message_key=f"message-of-ada {number}",
                )  # fmt: skip
                store.extend(f"ada-and-bob {number % 4}", [turn])
            store.redact("ada-and-bob 1", 0)
            note = ConversationNote("ada-and-bob 2", "chatgpt", "chat-of-ada", "ada-and-bob 1", 1)
            one.sidecar(namespace).note_conversation(note)


def damage(home: Home) -> None:
    """A file that does not parse, set aside, and one whose name is no conversation's."""
    with opened(home) as one:
        store = one.store()
        store.append_user("ada-and-bob broken", "the heron is cut")
        path = store.path("ada-and-bob broken")
        path.write_bytes(path.read_bytes()[:-3])
        with pytest.raises(CorruptThread):
            store.get("ada-and-bob broken")
        (home.conversations / "nobody's\x01file.json").write_bytes(b"nobody's file")


def contents(home: Home) -> dict[str, Any]:
    with opened(home) as one:
        found: dict[str, Any] = {}
        for namespace in ("default", "work"):
            store, sidecar = one.store(namespace), one.sidecar(namespace)
            for summary in store.list():
                thread = store.get(summary.conversation_id)
                notes = sidecar.turn_notes(summary.conversation_id)
                found[f"{namespace} {summary.conversation_id}"] = (thread, notes)
            found[f"{namespace} known"] = sidecar.known("chatgpt", "chat-of-ada")
            found[f"{namespace} notes"] = sidecar.conversation_notes()
        return found


def search(home: Home) -> set[str]:
    """Which of the secrets can be read somewhere under the home, in names or contents."""
    files = [path for path in home.root.rglob("*") if path.is_file()]
    names = [str(path.relative_to(home.root)).encode() for path in files]
    data = b"\n".join([*names, *(path.read_bytes() for path in files)])
    codings = ("utf-8", "utf-16-le", "utf-16-be")
    return {secret for secret in SECRETS for coding in codings if secret.encode(coding) in data}


def test_encrypting_a_home_hides_everything_and_changes_nothing(home: Home) -> None:
    """After `encrypt` no word is found under the home, and every answer is what it was."""
    fill(home)
    damage(home)
    (home.root / "index").mkdir()
    (home.root / "index" / "words").write_text("heron")
    before = contents(home)
    assert search(home) == set(SECRETS)
    seen: list[str] = []
    done = conversion.encrypt(home, "file", lambda label, _done, _total: seen.append(label))
    assert search(home) == set()
    assert contents(home) == before
    assert (done.threads, done.problems) == (9, ())
    assert done.rows > 20
    assert {"threads", "turn_note", "forgotten_turn"} <= set(seen)
    with opened(home) as one:
        assert one.sealing.sealed
        assert one.store().append_user("ada-and-bob 0", "more")
        [aside] = [p for p in one.store().problems() if p.set_aside]
        assert aside.conversation_id == "ada-and-bob broken"
        assert len(one.store().problems()) == 2


def test_decrypting_gives_the_files_back(home: Home) -> None:
    """Encrypt and decrypt: every thread file is byte for byte what it was, damaged ones too."""
    fill(home)
    damage(home)
    before, files = contents(home), json_files(home)
    conversion.encrypt(home, "file")
    assert json_files(home) == {}
    conversion.decrypt(home)
    assert json_files(home) == files
    assert contents(home) == before
    assert search(home) == set(SECRETS)
    assert not (home.root / "sealed.json").exists()
    assert not (home.root / "master.key").exists()
    conversion.encrypt(home, "file")
    assert contents(home) == before


def json_files(home: Home) -> dict[str, bytes]:
    found = [p for p in home.root.rglob("*.json*") if p.is_file() and "sealed" not in p.name]
    return {str(path.relative_to(home.root)): path.read_bytes() for path in found}


def test_a_home_that_began_sealed_can_be_opened_up(home: Home) -> None:
    """A home sealed from its first write on holds no words, and decrypts to Go's files."""
    fill(home, "file")
    assert search(home) == set()
    before = contents(home)
    conversion.decrypt(home)
    assert contents(home) == before
    assert search(home) == set(SECRETS) - {"nobody's file"}


def test_a_deep_rotation_encrypts_everything_again(home: Home) -> None:
    """After `rekey` every sealed byte is new, and every answer is what it was."""

    fill(home, "file")
    damage_name = home.conversations / "stray.json.sealed"
    damage_name.write_bytes(b"no sealed thread")
    before = contents(home)
    old = {path.name for path in home.conversations.glob("*.sealed")}
    conversion.rotate_keys(home)
    assert contents(home) == before
    assert not old & {path.name for path in home.conversations.glob("*.sealed")}
    assert search(home) == set()
    marker = json.loads((home.root / "sealed.json").read_text())
    assert (marker["state"], marker["generation"], marker["next"]) == ("sealed", 2, "")


def test_conversions_that_make_no_sense_are_refused(home: Home) -> None:
    """A sealed home is not encrypted again, a clear one not decrypted, a server's not at all."""
    from dataclasses import replace

    fill(home)
    for wrong in (conversion.decrypt, conversion.rekey):
        with pytest.raises(InvalidInput):
            wrong(home)
    with pytest.raises(InvalidInput):
        conversion.encrypt(replace(home, database="postgresql://somewhere/else"), "file")
    conversion.encrypt(home, "file")
    with pytest.raises(InvalidInput):
        conversion.encrypt(home, "file")


def test_an_open_process_notices(home: Home) -> None:
    """Who has the clear home open when it is encrypted neither reads nor writes it any more."""
    fill(home)
    with opened(home) as clear:
        store, sidecar = clear.store(), clear.sidecar()
        assert store.recent("ada-and-bob 0")
        conversion.encrypt(home, "file")
        calls: list[Callable[[], object]] = [
            lambda: store.append_user("ada-and-bob 0", "lost"),
            lambda: store.append_user("new", "lost"),
            lambda: store.get("ada-and-bob 0"),
            store.list,
            lambda: sidecar.note_turns([TurnNote("x", 0, "h", "Persephone")]),
            lambda: sidecar.turn_notes("ada-and-bob 0"),
            lambda: sidecar.forget("ada-and-bob 0"),
        ]
        for call in calls:
            with pytest.raises(SealChanged):
                call()
    with opened(home) as sealed:
        store = sealed.store()
        store.append_user("ada-and-bob 0", "kept")
        conversion.decrypt(home)
        with pytest.raises(SealChanged):
            store.append_user("ada-and-bob 0", "lost")
    assert search(home) <= set(SECRETS)


def test_a_damaged_sealed_file_does_not_stop_a_conversion(home: Home) -> None:
    """What cannot be opened is set aside as it is and reported; the rest is converted."""
    fill(home, "file")
    with opened(home) as one:
        path = one.store().path("ada-and-bob 3")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    done = conversion.decrypt(home)
    [problem] = done.problems
    assert problem.set_aside is not None
    assert Path(problem.set_aside).read_bytes() == data
    assert done.threads == 7


def test_a_tampered_row_stops_a_conversion_before_anything_is_lost(home: Home) -> None:
    """Rows are converted all or none: the home stays sealed, opens, and its key is kept."""
    fill(home, "file")
    outside = dbapi2.connect(str(home.root / "anaphora.db"))
    outside.execute("UPDATE turn_note SET speaker = 'an1:AAAA' WHERE position = 0")
    outside.commit()
    outside.close()
    for wrong in (conversion.decrypt, conversion.rekey):
        with pytest.raises(Tampered, match=r"turn_note\.speaker"):
            wrong(home)
    with opened(home) as one:
        assert one.sealing.sealed
        assert len(one.store().list()) == 4
    assert (home.root / "master.key").exists()
    assert search(home) == set()


def test_a_failing_disk_leaves_the_conversion_to_be_finished(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in the middle is raised, and opening the home later finishes what was begun."""
    fill(home)
    before = contents(home)
    real, calls = os.rename, []

    def failing(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    from anaphora.store.home.convert_threads import FolderConversion

    real_put = FolderConversion._put

    def put(*args: Any) -> None:
        calls.append(args)
        if len(calls) == 4:
            failing()
        real_put(*args)

    with monkeypatch.context() as patch:
        patch.setattr(FolderConversion, "_put", put)
        with pytest.raises(StoreError):
            conversion.encrypt(home, "file")
    assert real is os.rename
    assert json.loads((home.root / "sealed.json").read_text())["state"] == "encrypting"
    assert contents(home) == before
    assert search(home) == set()


CONVERT = """
import sys
from pathlib import Path
from anaphora.store.home import conversion
from anaphora.store.home.sealing import Home
home = Home(Path(sys.argv[1]), Path(sys.argv[1]) / "conversations")
print("ready", flush=True)
if sys.argv[2] == "encrypt":
    conversion.encrypt(home, "file")
else:
    getattr(conversion, sys.argv[2])(home)
"""


def run_and_kill(home: Home, what: str, seconds: float) -> bool:
    """Start a conversion, kill it after some time; whether it was still running."""
    child = subprocess.Popen(
        [sys.executable, "-c", CONVERT, str(home.root), what], stdout=subprocess.PIPE
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
def test_a_kill_at_any_moment_leaves_a_home_that_opens(home: Home) -> None:
    """Conversions killed at random moments lose nothing, and the next opening finishes them."""
    fill(home)
    damage(home)
    before = contents(home)
    chance = random.Random(20_260_401)
    begun = time.monotonic()
    conversion.encrypt(home, "file")
    whole = time.monotonic() - begun
    killed = 0
    for what in ("rekey", "decrypt", "encrypt", "rekey", "decrypt", "encrypt") * 2:
        killed += run_and_kill(home, what, chance.uniform(0.0, 2.0 * whole))
        assert contents(home) == before
        sealed = (home.root / "sealed.json").exists()
        # A conversion that was killed before it said what it was about to do was never begun.
        assert search(home) == (set() if sealed else set(SECRETS))
        if what == "decrypt" and sealed:
            conversion.decrypt(home)
        elif what == "encrypt" and not sealed:
            conversion.encrypt(home, "file")
    assert killed
