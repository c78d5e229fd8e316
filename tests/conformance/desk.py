"""What a row is tried at: a home of its own, a clock that stands still, scripted models.

In: an empty folder, and what all rows share. Out: memories over it, which close with the desk.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from tests.commands import run_command
from tests.conformance.shared import Shared
from tests.conformance.shop import write_files
from tests.deep.openai_server import Answer, OpenAIServer

from anaphora import Memory
from anaphora.deep.models.base import Message
from anaphora.deep.models.scripted import ScriptedModel
from anaphora.embed.base import Vector, Vectors
from anaphora.embed.hashing import WordHashingEmbedder
from anaphora.errors import EmbeddingError

__all__ = ["BASE", "Counting", "Desk", "Placed"]

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

    def model_server(self, *replies: str, status: int = 200) -> OpenAIServer:
        """A server of a model on the loopback that says these replies, the last for ever."""
        waiting = list(replies)

        def answer(request: dict[str, Any]) -> Answer:
            if ASKING in json.dumps(request["messages"]):
                return Answer("one other way\nanother way\na third way", status, (1234, 56))
            text = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            return Answer(text, status, (1234, 56))

        server = OpenAIServer()
        server.route = answer
        return self._open.enter_context(server)

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

    def anaphora(
        self, *words: str, home: Path | None = None, settings: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The command line on this home, or on another one."""
        environ = {
            "ANAPHORA_EMBEDDER": "hashing",
            "ANAPHORA_READER": "off",
            "ANAPHORA_RESIDENT": "0",
            "HOME": str(self.folder),
            **(settings or {}),
        }
        return run_command("--home", home or self.home, *words, environ=environ)

    def client(self, **options: Any) -> Any:
        """A client of the HTTP server over this home, in process."""
        from starlette.testclient import TestClient

        from anaphora.surfaces.rest import ServerOptions, create_app

        memory = self.memory()
        app = create_app(memory, settings=ServerOptions(page=None, **options))
        return self._open.enter_context(TestClient(app, base_url=BASE))

    def project(self, files: dict[str, str]) -> Path:
        """A folder with these files."""
        return write_files(self.folder / "shop", files)

    def json(
        self, *words: str, home: Path | None = None, settings: Mapping[str, str] | None = None
    ) -> Any:
        """What the command line prints with `--json`."""
        done = self.anaphora(*words, "--json", home=home, settings=settings)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)
