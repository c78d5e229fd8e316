"""Two devices that sync through a folder, and a namespace mirrored as a folder of Markdown.

In: a way to open homes and an empty folder. Out: every report, both homes and all files, in the
recording. Conflicts are made on purpose: the same path, page and thread change on both sides, and
what one side deletes the other side edits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tools.golden.recording import Recording
from tools.golden.truth import keep_files, keep_sqlite

__all__ = ["play_mirror", "play_sync"]

SAVED = 1_777_000_000
"""The time of a file that an editor saved, in seconds; before the first reading of the clock."""
SETTLING_ROUNDS = 4


def play_sync(open_home: Callable[[Path], Any], folder: Path, record: Recording) -> None:
    """Write, conflict and forget on two devices, and exchange after each step."""
    (folder / "remote").mkdir(parents=True)
    with open_home(folder / "first") as first, open_home(folder / "second") as second:

        def call(name: str, function: Callable[[], Any]) -> Any:
            return record.keep_call(f"sync/{name}", function)

        devices = (("first", first), ("second", second))

        def exchange(step: str) -> None:
            for number in range(SETTLING_ROUNDS):
                for name, memory in devices:
                    call(f"{step} {number} {name}", memory.sync.now)
            for name, memory in devices:
                call(f"{step} conflicts {name}", memory.sync.conflicts)
                call(f"{step} memories {name}", partial(memory.list, limit=100))
                call(f"{step} threads {name}", memory.conversations.list)

        call("init", lambda: first.sync.init(str(folder / "remote")))
        call("init again", lambda: first.sync.init(str(folder / "remote")))
        key = call("key", first.sync.export_key)
        call("init second", lambda: second.sync.init(str(folder / "remote"), key=key))
        tea = first.remember("The user drinks tea.", path="user.drink", tags=["drink"])
        first.remember("The build is green.")
        first.observe("The build takes nine minutes.", kind="decision")
        first.conversations.append_user("chat", "Where does the ferry land?")
        second.remember("The build is green.")
        second.conversations.append_user("chat", "Who sails on Monday?")
        exchange("begin")
        first.remember("The user drinks coffee.", path="user.drink")
        second.remember("The user drinks mate.", path="user.drink")
        first.update(tea.id, category="kitchen")
        second.update(tea.id, category="pantry", tags=["drink", "hot"])
        first.conversations.set_title("chat", "Ferries")
        second.conversations.set_title("chat", "Sailing")
        exchange("conflict")
        for page in call("drinks", lambda: first.history("user.drink")):
            call(f"drink {page.text}", partial(second.get, page.id))
        green = next(memory for memory in first.list(limit=100) if "green" in memory.text)
        first.forget(green.id)
        call("forgotten meanwhile", lambda: second.update(green.id, tags=["late"]))
        first.conversations.redact("chat", 0)
        second.conversations.append_user("chat", "The ferry lands at noon.")
        second.remember("A secret berth.", path="user.berth")
        exchange("forget")
        second.forget(filters={"path": "user.berth"})
        first.conversations.delete("chat")
        exchange("delete")
        for name, memory in devices:
            call(f"status {name}", memory.sync.status)
            call(f"devices {name}", memory.sync.devices)
            call(f"verify {name}", memory.sync.verify)
            call(f"compact {name}", memory.sync.compact)
        call("rollback", lambda: first.sync.rollback("2026-05-01T09:00:30", dry_run=True))
        exchange("end")
        call("leave", second.sync.leave)
        call("left", second.sync.status)
        call("now without", second.sync.now)
    for name in ("first", "second"):
        keep_sqlite(folder / name / "anaphora.db", record, f"sync/{name}")
        keep_files(folder / name, record, f"sync/{name}")


def play_mirror(open_home: Callable[[Path], Any], folder: Path, record: Recording) -> None:
    """Mirror a namespace; add, edit, rename, delete and break pages on both sides."""
    vault = folder / "vault"
    with open_home(folder / "home") as memory:

        def call(name: str, function: Callable[[], Any]) -> Any:
            return record.keep_call(f"mirror/{name}", function)

        def exchange(step: str, **options: bool) -> None:
            for page in vault.rglob("*.md"):
                os.utime(page, (SAVED, SAVED))
            call(f"{step} dry", partial(memory.mirror.now, dry_run=True))
            call(step, partial(memory.mirror.now, **options))
            pages = sorted(page for page in vault.rglob("*") if page.is_file())
            names = {page.relative_to(vault).as_posix(): page.read_bytes() for page in pages}
            record.keep(f"mirror/{step} files", names)
            call(f"{step} memories", lambda: memory.list(limit=100))
            call(f"{step} notes", memory.notes)

        call("before", memory.mirror.now)
        call("init", lambda: memory.mirror.init(str(vault)))
        drink = memory.remember("The user drinks tea.", path="user.drink", tags=["drink"])
        harbour = memory.remember("The harbour freezes in January.", payload={"depth": 4.5})
        memory.observe("Deploys go through the lock.", kind="decision", importance=4)
        memory.remember("Old news.", path="news")
        exchange("first")
        _edit(vault, "drinks tea", "drinks coffee")
        (vault / "facts" / "Added.md").write_text("The pilot is called Ines.\n", "utf-8")
        memory.remember("The mole was rebuilt.", path="harbour.mole")
        exchange("both sides")
        _edit(vault, "freezes in January", "freezes in February")
        memory.update(harbour.id, text="The harbour never freezes.")
        exchange("conflict")
        for page in vault.rglob("*.md"):
            if "Old news" in page.read_text("utf-8"):
                page.unlink()
        exchange("deleted file")
        exchange("deleted file accepted", accept_deletions=True)
        memory.forget(drink.id)
        _edit(vault, "pilot is called Ines", "pilot is called Ines Duarte")
        (vault / "facts" / "Broken.md").write_bytes(b"---\ntags: [\n---\n\xff\xfe\n")
        exchange("forgotten and broken")
        for page in sorted(vault.rglob("*.md")):
            if "pilot" in page.read_text("utf-8", errors="replace"):
                page.rename(page.with_name("Pilots.md"))
        exchange("renamed")
        call("status", memory.mirror.status)
        call("leave", memory.mirror.leave)
        call("after", memory.mirror.now)
    keep_sqlite(folder / "home" / "anaphora.db", record, "mirror")


def _edit(vault: Path, old: str, new: str) -> None:
    for page in sorted(vault.rglob("*.md")):
        text = page.read_text("utf-8")
        if old in text:
            page.write_text(text.replace(old, new), "utf-8")
            return
    raise AssertionError(f"no page holds {old!r}")
