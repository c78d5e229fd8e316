"""What a row is tried at: a home of its own, a clock that stands still, scripted models.

In: an empty folder. Out: memories over it, which close with the desk.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from anaphora import Memory
from anaphora.deep.models.base import Message
from anaphora.deep.models.scripted import ScriptedModel
from anaphora.embed.base import Vector, Vectors
from anaphora.embed.hashing import WordHashingEmbedder
from anaphora.errors import EmbeddingError

__all__ = ["BASE", "Counting", "Desk"]

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
BASE = "http://127.0.0.1:7411"
ASKING = "three other ways to search"


class Counting:
    """An embedder of hashed words that counts what it embeds, and may fail."""

    def __init__(self, fails: Callable[[str], bool] = lambda text: False) -> None:
        self._words = WordHashingEmbedder()
        self._fails = fails
        self.name = self._words.name
        self.dimensions = self._words.dimensions
        self.texts: list[str] = []
        self.queries: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of texts."""
        if any(self._fails(text) for text in texts):
            raise EmbeddingError(self.name, "told to fail")
        self.texts += texts
        return self._words.embed(texts)

    def embed_query(self, text: str) -> Vector:
        """The vector of a question."""
        if self._fails(text):
            raise EmbeddingError(self.name, "told to fail")
        self.queries.append(text)
        return self._words.embed_query(text)

    def query_key(self, text: str) -> Any:
        """What tells questions apart."""
        return self._words.query_key(text)


class Placed:
    """An embedder whose vectors a row chooses: two axes, by the words of a text."""

    name = "placed:1:384"
    dimensions = 384

    def __init__(self, cosines: dict[str, float]) -> None:
        self._cosines = cosines

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of texts at the chosen cosine to every question."""
        return [np.stack([self._at(self._cosines.get(text, 0.0))]) for text in texts]

    def embed_query(self, text: str) -> Vector:
        """The direction of every question."""
        return self._at(1.0)

    def query_key(self, text: str) -> Any:
        """All questions are one."""
        return text

    def _at(self, cosine: float) -> Vector:
        vector = np.zeros(self.dimensions, np.float32)
        vector[:2] = cosine, np.sqrt(max(0.0, 1 - cosine * cosine))
        return vector


class Desk:
    """A folder and a clock for one row; what it opens is closed with it."""

    def __init__(self, folder: Path) -> None:
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

    def memory(self, embedder: Any = "hashing", **options: Any) -> Memory:
        """The memory of this desk's home, opened (again)."""
        given = {"clock": self.clock, "warm": False, **options}
        return self._open.enter_context(Memory.open(self.home, embedder=embedder, **given))

    def scripted(self, *replies: str) -> ScriptedModel:
        """A model that says these replies in order, then the last one for ever."""
        waiting = list(replies)

        def reply(messages: Sequence[Message]) -> str:
            if ASKING in messages[0].text:
                return "one other way\nanother way\na third way"
            return waiting.pop(0) if len(waiting) > 1 else waiting[0]

        return ScriptedModel(reply)

    def told(self, model: ScriptedModel) -> list[str]:
        """All that a model was asked, one text a request; angles of search left out."""
        return [
            "\n".join(message.text for message in messages)
            for messages in model.asked
            if ASKING not in messages[0].text
        ]

    def anaphora(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """The command line on this home."""
        return subprocess.run(
            [Path(sys.executable).with_name("anaphora"), "--home", self.home, *words],
            capture_output=True,
            text=True,
            check=False,
            env={"ANAPHORA_EMBEDDER": "hashing", "HOME": str(self.folder), **environment},
        )

    def client(self, **options: Any) -> Any:
        """A client of the HTTP server over this home, in process."""
        from starlette.testclient import TestClient

        from anaphora.surfaces.rest import ServerOptions, create_app

        memory = self.memory()
        app = create_app(memory, settings=ServerOptions(page=None, **options))
        return self._open.enter_context(TestClient(app, base_url=BASE))

    def mcp(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer of one tool, asked by the official client over a real process."""
        from tests.mcp_client import call

        answer: dict[str, Any] = self._over_mcp(
            lambda session: call(session, tool, **arguments), "--tools", "all"
        )
        return answer

    def mcp_text(self, tool: str, **arguments: Any) -> str:
        """The text of one tool's answer."""
        from tests.mcp_client import text_of

        return text_of(self._over_mcp(lambda session: session.call_tool(tool, arguments)))

    def mcp_tools(self) -> list[str]:
        """The tools that the server lists as it is started."""
        listing = self._over_mcp(lambda session: session.list_tools())
        return [tool.name for tool in listing.tools]

    def _over_mcp(self, ask: Callable[[Any], Awaitable[Any]], *words: str) -> Any:
        from tests.mcp_client import connected

        async def scenario() -> Any:
            async with connected(self.home, *words) as session:
                return await ask(session)

        return asyncio.run(scenario())

    def project(self, files: dict[str, str]) -> Path:
        """A folder with these files."""
        root = self.folder / "shop"
        for name, text in files.items():
            place = root / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return root

    def json(self, *words: str) -> Any:
        """What the command line prints with `--json`."""
        return json.loads(self.anaphora(*words, "--json").stdout)
