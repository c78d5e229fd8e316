"""What was forgotten for good, and ways to have it back: mirror, sync, links, a deleted user."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tools.attacks import attack
from tools.attacks._helpers import holds, opened

from anaphora import Memory
from anaphora.errors import NotFound, RemoteError
from anaphora.features.sync.entries import entry_of, unseal
from anaphora.features.sync.remotes.folder import FolderRemote

WORDS = "X1234567"
_OLD = (1_000_000_000, 1_000_000_000)


def _mirrored(folder: Path) -> tuple[Memory, Path]:
    memory = opened(folder / "home")
    memory.mirror.init(str(folder / "vault"))
    return memory, folder / "vault"


def _says(memory: Memory, words: str = WORDS) -> bool:
    return any(words in item.text for item in memory.list().items)


def _devices(folder: Path) -> tuple[Memory, Memory]:
    (folder / "remote").mkdir()
    first = opened(folder / "a")
    first.sync.init(str(folder / "remote"))
    second = opened(folder / "b")
    second.sync.init(str(folder / "remote"), key=first.sync.export_key())
    return first, second


@attack("F4", "high", "a file with the id of something forgotten for good brings nothing back")
def file_comes_back(folder: Path) -> None:
    """A file synchroniser, version control or a backup puts the file back."""
    memory, vault = _mirrored(folder)
    forgotten = memory.remember(f"Mara's passport is {WORDS}.", path="mara.passport").id
    memory.mirror.now()
    file = next(vault.rglob("*.md"))
    old = file.read_bytes()
    memory.forget(forgotten)
    memory.mirror.now()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(old)
    os.utime(file, _OLD)
    memory.mirror.now()
    assert not _says(memory), "the memory is back"


@attack("F4", "high", "forgetting counts after a first mirroring that was killed")
def killed_mirror(folder: Path) -> None:
    """The first mirroring is killed while it writes files; then all is forgotten."""
    memory, vault = _mirrored(folder)
    ids = [memory.remember(f"Secret fact {n} {WORDS}.").id for n in range(80)]
    memory.close()
    script = (
        "import sys; from anaphora import Memory\n"
        "Memory.open(sys.argv[1], embedder='hashing', warm=False).mirror.now()"
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(folder / "home")])
    until = time.monotonic() + 60
    while len(list(vault.rglob("*.md"))) < 5 and time.monotonic() < until:
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.wait()
    for file in vault.rglob("*.md"):
        os.utime(file, _OLD)
    with opened(folder / "home") as again:
        for record_id in ids:
            again.forget(record_id)
        again.mirror.now(accept_deletions=True)
        again.mirror.now(accept_deletions=True)
        assert not _says(again), "memories are back"
    assert not holds(vault, WORDS.encode()), "words are left in the folder"


@attack("F4", "high", "tags edited in a file do not bring back what was forgotten in the home")
def edited_tags(folder: Path) -> None:
    """Only the tags of a file are edited before its memory is forgotten."""
    memory, vault = _mirrored(folder)
    forgotten = memory.remember(f"Passport {WORDS}", path="mara.passport", tags=["id"]).id
    memory.mirror.now()
    file = next(vault.rglob("*.md"))
    file.write_text(file.read_text().replace("- id", "- papers"))
    os.utime(file, _OLD)
    memory.forget(forgotten)
    memory.mirror.now()
    assert not _says(memory), "the memory is back"


@attack("F5", "medium", "no link in a mirrored folder is followed: reading, writing, removing")
def linked_room(folder: Path) -> None:
    """A room of the vault, and a folder in one, are links to a private folder."""
    memory, vault = _mirrored(folder)
    private = folder / "private"
    private.mkdir()
    (private / "diary.md").write_text("My private diary.")
    os.utime(private / "diary.md", _OLD)
    vault.mkdir(exist_ok=True)
    (vault / "facts").symlink_to(private)
    (vault / "memories").mkdir()
    (vault / "memories" / "deep").symlink_to(private)
    memory.remember("A fact of ours")
    memory.remember("A value of ours", path="deep.value")
    memory.mirror.now()
    assert not _says(memory, "private diary"), "a file outside was read"
    assert [file.name for file in private.iterdir()] == ["diary.md"], "files were written outside"


@attack("F6", "medium", "the title of a deleted conversation is on no device and in no entry")
def deleted_title(folder: Path) -> None:
    """A conversation with a title is synced, then deleted."""
    first, second = _devices(folder)
    first.conversations.append("c", "user", "x")
    first.conversations.set_title("c", "titleCANARY")
    first.sync.now()
    second.sync.now()
    first.conversations.delete("c")
    for _ in range(3):
        first.sync.now()
        second.sync.now()
    entries = [file.read_bytes() for file in (folder / "remote").rglob("*.entry")]
    assert entries
    assert "titleCANARY" not in str([_patches(first, data) for data in entries]), "an entry has it"
    first.close()
    second.close()
    left = [*holds(folder / "a", b"titleCANARY"), *holds(folder / "b", b"titleCANARY")]
    assert not left, f"the title is in {left}"


@attack("F8", "medium", "what is forgotten while the remote is away leaves the database and outbox")
def forgotten_outbox(folder: Path) -> None:
    """Entries are packed, the remote is away, the memory is forgotten, the remote is back."""
    first, second = _devices(folder)
    first.sync.now()
    second.sync.now()
    forgotten = first.remember(f"Passport {WORDS}").id
    away = patch.object(FolderRemote, "heads", side_effect=RemoteError("r", "away"))
    with away, suppress(RemoteError):
        first.sync.now()
    first.forget(forgotten)
    sent: list[bytes] = []
    write = FolderRemote.write

    def noting(remote: FolderRemote, project: str, device: str, number: int, data: bytes) -> None:
        sent.append(data)
        write(remote, project, device, number, data)

    with patch.object(FolderRemote, "write", noting):
        first.sync.now()
    second.sync.now()
    assert not _says(second)
    entries = [patch for data in sent for patch in _patches(first, data)]
    assert WORDS not in str(entries), "the outbox was sent as it was"


def _patches(memory: Memory, data: bytes) -> list[Any]:
    """What an entry says, read with the project's keys; nothing where its content is gone."""
    line = json.loads(data)
    if "dropped" in line:
        return []
    entry = entry_of(data, "r", line["device"], line["number"])
    with memory.sync._client() as client:
        cipher = client._project.cipher(entry.header.epoch)
    assert cipher is not None
    return list(unseal(entry, cipher, "r").patches)


@attack("F8", "medium", "forgetting beside an exchange that hangs leaves no words here")
def forgotten_beside(folder: Path) -> None:
    """Another thread exchanges with a remote that does not answer."""
    first, _ = _devices(folder)
    forgotten = first.remember(f"Passport {WORDS}").id
    inside, leave = threading.Event(), threading.Event()

    def hanging(*_: Any) -> Any:
        inside.set()
        leave.wait(60)
        raise RemoteError("r", "away")

    def exchange() -> None:
        with suppress(RemoteError):
            opened(folder / "a").sync.now()

    with patch.object(FolderRemote, "heads", hanging):
        thread = threading.Thread(target=exchange)
        thread.start()
        inside.wait(60)
        first.forget(forgotten)
        left = holds(folder / "a", WORDS.encode())
        leave.set()
        thread.join()
    assert not left, f"words are left in {left}"


@attack("F20", "low", "the project's key is in no file once sync was left")
def key_after_leaving(folder: Path) -> None:
    """The database's files are searched for the key of the project."""
    first, _ = _devices(folder)
    key = next(iter(first.sync._load_membership().keys.values())).hex()
    first.sync.leave()
    assert not holds(folder / "a", key.encode()), "the key is left"


@attack("F21", "low", "mirrored files are private, and a killed process leaves no words behind")
def private_files(folder: Path) -> None:
    """Another user of the machine looks into the folder; a process was killed in it."""
    old = os.umask(0o022)
    try:
        memory, vault = _mirrored(folder)
        memory.remember(f"Passport {WORDS}", path="mara.passport")
        memory.mirror.now()
    finally:
        os.umask(old)
    for place in (vault, *vault.rglob("*")):
        assert not stat.S_IMODE(place.stat().st_mode) & 0o077, f"{place} is open to others"
    left_over = vault / "memories" / f".{'a' * 32}.tmp"
    left_over.write_text(WORDS)
    memory.mirror.now()
    assert not left_over.exists(), "a temporary file stays"


@attack("F22", "low", "a secret in the name of a file is neither in the folder nor in the ledger")
def secret_name(folder: Path) -> None:
    """A file is called by a token."""
    memory, vault = _mirrored(folder)
    secret = "ghp_" + "aB3dE6gH9j" * 3 + "Kl1234"
    file = vault / "facts" / f"{secret}.md"
    file.parent.mkdir(parents=True)
    file.write_text("A fact beside a key.")
    os.utime(file, _OLD)
    memory.mirror.now()
    memory.close()
    assert not holds(folder / "home", secret.encode()), "the ledger has it"
    assert not any(secret in place.name for place in vault.rglob("*")), "the folder has it"


@attack("W21", "medium", "deleting a user is one call, and leaves no byte in the home")
def deleted_user(folder: Path) -> None:
    """The home's files are searched for what a deleted user has said."""
    home = folder / "home"
    owner, user = opened(home), opened(home, namespace="mara")
    user.remember(f"Passport {WORDS}", path="mara.passport")
    user.conversations.append("c", "user", f"My passport is {WORDS}")
    user.recall("passport")
    owner.tokens.create("hers", namespaces=["mara"])
    owner.delete_namespace("mara")
    assert not user.recall("passport").hits
    assert "mara" not in owner.namespaces()
    assert not holds(home, WORDS.encode()), "words are left"
    assert not owner.tokens.list(), "her token is left"
    user.close()
    owner.close()
    assert not holds(home, WORDS.encode()), "words came back with closing"


_KILLED_DELETION = """
import os, shutil, sys
from anaphora import Memory
left = [int(sys.argv[2])]
def dying(real):
    def call(*given, **named):
        left[0] -= 1
        if left[0] < 0:
            os._exit(9)
        return real(*given, **named)
    return call
for module, name in ((os, "unlink"), (os, "rmdir"), (shutil, "rmtree")):
    setattr(module, name, dying(getattr(module, name)))
with Memory.open(sys.argv[1], embedder="hashing", warm=False) as memory:
    memory.delete_namespace("mara")
"""


@attack("W21", "medium", "deleting a user that was killed can be finished, and leaves no byte")
def killed_deletion(folder: Path) -> None:
    """It ends at each of several files; of a user with turns, and of one with memories alone."""
    for with_turns in (True, False):
        for removals in (2, 12) if with_turns else (0, 3):
            home = folder / f"{with_turns} {removals}"
            with opened(home) as owner, opened(home, namespace="mara") as user:
                owner.remember("A fact of the owner's")
                user.remember(f"Passport {WORDS}", path="mara.passport")
                if with_turns:
                    user.conversations.append("c", "user", f"My passport is {WORDS}")
                user.recall("passport")
                user.ready()
            words = [sys.executable, "-c", _KILLED_DELETION, str(home), str(removals)]
            done = subprocess.run(words, capture_output=True, check=False).returncode
            with opened(home) as owner:
                if done:
                    with suppress(NotFound):
                        owner.delete_namespace("mara")
                assert "mara" not in owner.namespaces()
            assert not holds(home, WORDS.encode()), (
                f"after {removals} removals: {holds(home, WORDS.encode())}"
            )
            assert not list(home.rglob("*mara*")), "its name is left"


@attack("F4", "high", "an export made before brings back no deleted conversation and no memory")
def old_export(folder: Path) -> None:
    """What was forgotten is imported again from an export of the same home."""
    memory = opened(folder / "home")
    memory.conversations.append("c", "user", f"My passport is {WORDS}")
    forgotten = memory.remember(f"Passport {WORDS}").id
    memory.export(folder / "export.jsonl")
    memory.forget(forgotten)
    memory.conversations.delete("c")
    memory.import_(folder / "export.jsonl")
    assert not _says(memory), "the memory is back"
    assert memory.conversations.get("c") is None, "the conversation is back"
