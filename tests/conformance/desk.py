"""What a row is tried at: a home of its own, a clock that stands still, scripted models.

In: an empty folder, and what all rows share. Out: memories over it, which close with the desk.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.commands import run_command

from anaphora import Memory, Message
from anaphora.embed.minilm import MiniLM
from anaphora.testing import ScriptedModel

__all__ = ["PREFERRED", "Desk", "Shared", "long_thread", "preferring"]

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
BASE = "http://127.0.0.1:7411"
ASKING = "three other ways to search"
VERBATIM = 'VERBATIM  two  spaces\n\nand <html> & "quotes" on how to deploy an ERC-20 token\ttab'
PREFERRED: dict[str, Any] = {
    "path": "user.preferences.testing",
    "payload": {"framework": "vitest"},
    "category": "development",
    "tags": ("testing",),
}


def long_thread(memory: Memory, turns: int = 60) -> None:
    """A thread "t" whose first two turns answer; the others are chatter."""
    store = memory.conversations
    store.append_user("t", VERBATIM)
    store.append_assistant("t", "call paxeer-net deploy_token...")
    for number in range(turns):
        append = store.append_user if number % 2 else store.append_assistant
        append("t", f"chatter number {number} about lunch, weather and the office plants")


def preferring(memory: Memory) -> Memory:
    """A memory that knows a preference and two things beside it."""
    memory.remember("The user prefers vitest over jest.", **PREFERRED)
    memory.remember("The user drinks tea.", category="kitchen", tags=("drinks",))
    memory.remember("Testing of the turbine is on Monday.", category="plant", tags=("testing",))
    return memory


class Shared:
    """What several rows read and none changes, made when the first one asks for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open = ExitStack()

    def close(self) -> None:
        """Close all that was made."""
        self._open.close()

    @cached_property
    def minilm(self) -> MiniLM:
        """The bundled model, loaded."""
        return MiniLM()

    @cached_property
    def thread(self) -> Memory:
        """A thread of 62 turns, of which the first two have long scrolled out of sight."""
        memory = self._memory("thread")
        long_thread(memory)
        assert memory.ready(90)
        return memory

    @cached_property
    def thousand(self) -> Memory:
        """A thousand facts that are much alike."""
        words = ["turbine", "kettle", "harbour", "violin", "zebra"]
        words += ["lantern", "pepper", "canvas", "tunnel", "orchid"]
        memory = self._memory("thousand")
        memory.remember_many(
            f"Fact {n}: the {words[n % 10]} of the {words[n // 10 % 10]} is kept near the "
            f"{words[n // 100]} {n % 97}."
            for n in range(1_000)
        )
        assert memory.ready(90)
        return memory

    def _memory(self, name: str) -> Memory:
        home = self._folder / name / "home"
        return self._open.enter_context(Memory.open(home, embedder=self.minilm, warm=False))


class Desk:
    """A folder and a clock for one row; what it opens is closed with it."""

    def __init__(self, folder: Path, shared: Shared) -> None:
        self.shared = shared
        self.folder = folder
        self.home = folder / "home"
        self.now = NOW
        self._open = ExitStack()

    def close(self) -> None:
        """Close every memory that was opened here."""
        self._open.close()

    def clock(self) -> datetime:
        """The time, which moves only when a row moves it."""
        return self.now

    def later(self, **by: float) -> None:
        """Move the clock."""
        self.now += timedelta(**by)

    def memory(
        self, embedder: Any = "hashing", *, home: str | Path = "home", **options: Any
    ) -> Memory:
        """The memory of a home in this desk's folder, opened (again)."""
        settings = {"clock": self.clock, "warm": False, **options}
        model = self.shared.minilm if embedder == "minilm" else embedder
        return self._open.enter_context(Memory.open(self.folder / home, embedder=model, **settings))

    def scripted(self, *replies: str) -> ScriptedModel:
        """A model that says these replies in order, then the last one for ever."""
        waiting = list(replies)

        def reply(messages: Sequence[Message]) -> str:
            if ASKING in messages[0].text:
                return "one other way\nanother way\na third way"
            return waiting.pop(0) if len(waiting) > 1 else waiting[0]

        return ScriptedModel(reply)

    def client(self, **options: Any) -> Any:
        """A client of the HTTP server over this home, in process."""
        from starlette.testclient import TestClient

        from anaphora.testing import server_app

        app = server_app(self.memory(), page=None, **options)
        return self._open.enter_context(TestClient(app, base_url=BASE))

    def json(self, *words: str) -> Any:
        """What the command line prints with `--json` about this home."""
        environ = {
            "ANAPHORA_EMBEDDER": "hashing",
            "ANAPHORA_READER": "off",
            "ANAPHORA_RESIDENT": "0",
            "HOME": str(self.folder),
        }
        printed = run_command("--home", self.home, *words, "--json", environ=environ)
        assert printed.stdout, printed.stderr
        return json.loads(printed.stdout)
