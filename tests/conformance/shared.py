"""What several rows read and none changes: a model, a long thread, a project, servers.

In: a folder. Out: each of them, made when the first row asks for it, and closed at the end.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import subprocess
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

from mcp import ClientSession
from tests.commands import program, run_command
from tests.conformance.preferences import preferring
from tests.conformance.shop import FILES, write_files
from tests.conformance.threads import long_thread
from tests.mcp_client import call, connected, refusal, text_of

from anaphora import Memory
from anaphora.embed.minilm import MiniLM

__all__ = ["Device", "Server", "Shared", "Tools"]

T = TypeVar("T")

_PATIENCE = 90


class _Closable(Protocol):
    def close(self) -> None: ...


PartT = TypeVar("PartT", bound="Memory | _Closable")


class Tools:
    """`anaphora mcp` on one home, as the official client sees it, asked from ordinary code.

    The session lives in one task of a loop of its own: its scopes must end where they began.
    """

    def __init__(self, home: Path, *words: str, **settings: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._session: Future[ClientSession] = Future()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, args=(home, words, settings), daemon=True)
        self._thread.start()

    def ask(self, question: Callable[[ClientSession], Awaitable[T]]) -> T:
        """The answer to what is asked of the session."""

        async def answer() -> T:
            return await question(session)

        session = self._session.result(_PATIENCE)
        return asyncio.run_coroutine_threadsafe(answer(), self._loop).result(_PATIENCE)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured result of a call, held to the tool's own schema."""
        return self.ask(lambda session: call(session, tool, **arguments))

    def text(self, tool: str, **arguments: Any) -> str:
        """The text of a result, for clients that read nothing else."""
        return text_of(self.ask(lambda session: session.call_tool(tool, arguments)))

    def refusal(self, tool: str, **arguments: Any) -> str:
        """The sentence of a call that must be refused."""
        return self.ask(lambda session: refusal(session, tool, **arguments))

    def listed(self) -> dict[str, dict[str, Any]]:
        """The schema of the arguments of each tool that is listed."""
        listing = self.ask(lambda session: session.list_tools())
        return {tool.name: tool.input_schema for tool in listing.tools}

    def close(self) -> None:
        """End the session and its process."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(_PATIENCE)
        self._loop.close()

    def _run(self, home: Path, words: tuple[str, ...], settings: dict[str, str]) -> None:
        self._loop.run_until_complete(self._serve(home, words, settings))

    async def _serve(self, home: Path, words: tuple[str, ...], settings: dict[str, str]) -> None:
        try:
            async with connected(home, *words, embedder="minilm", settings=settings) as session:
                self._session.set_result(session)
                await self._ended.wait()
        except BaseException as error:
            if self._session.done():
                raise
            self._session.set_exception(error)


class Server:
    """`anaphora serve` as a process that asks for a token."""

    def __init__(self, home: Path) -> None:
        environment = {
            "ANAPHORA_EMBEDDER": "hashing",
            "ANAPHORA_READER": "off",
            "ANAPHORA_RESIDENT": "0",
            "HOME": str(home.parent),
            "PYTHONUNBUFFERED": "1",
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
        }
        made = run_command(
            "--home", home, "token", "create", "device", "--json", environ=environment
        )
        self.home = home
        self.token: str = json.loads(made.stdout)["secret"]
        self._process = subprocess.Popen(
            [*program(), "--home", home, "serve", "--port", "0", "--require-token"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        port = re.search(r"http://\S+?:(\d+)", line)
        assert port is not None, line
        self.port = int(port[1])

    @property
    def url(self) -> str:
        """The address."""
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, body: Any = None, token: str | None = ""
    ) -> tuple[int, Any]:
        """Status and answer; with the server's own token, another one, or (None) without."""
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token or self.token}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

    def close(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.communicate(timeout=_PATIENCE)


class Device:
    """A memory whose log lies on a server: one memory with a path, one conversation."""

    def __init__(self, home: Path, server: Server) -> None:
        self.server = server
        self.memory = Memory.open(home, embedder="hashing", warm=False)
        self.memory.sync.init(server.url, token=server.token, name="laptop")
        self.memory.remember(
            "Zanzibar prefers vitest over jest",
            path="user.preferences.testing",
            payload={"framework": "vitest"},
        )
        self.memory.conversations.append_user("conv_1", "the harpsichord is tuned")
        self.memory.sync.now()
        self.project = self.memory.sync.status().project
        self.digest = self.memory.sync.hash_of("user.preferences.testing")

    def state(self, digest: str | None = None) -> tuple[int, Any]:
        """The answer to the seed's request."""
        query = f"project_id={self.project}&query_hash={digest or self.digest}"
        return self.server.ask("GET", f"/v2/agent-state?{query}")

    def close(self) -> None:
        """Close the memory."""
        self.memory.close()


class Shared:
    """Each part is made once; a row that changes one works on a home of its own instead."""

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
        assert memory.ready(_PATIENCE)
        return memory

    @cached_property
    def shop(self) -> Memory:
        """A small project, indexed."""
        memory = self._memory("shop")
        memory.index_project(write_files(self._folder / "files" / "shop", FILES), name="shop")
        assert memory.ready(_PATIENCE)
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
        assert memory.ready(_PATIENCE)
        return memory

    @cached_property
    def preferences(self) -> Path:
        """A home that knows a preference and two things beside it, for the servers of tools."""
        home = self._folder / "preferences" / "home"
        with Memory.open(home, embedder=self.minilm, warm=False) as memory:
            preferring(memory)
            assert memory.ready(_PATIENCE)
        return home

    @cached_property
    def tools(self) -> Tools:
        """The tools as the server is started by default."""
        return self._closing(Tools(self.preferences))

    @cached_property
    def all_tools(self) -> Tools:
        """All tools, over a home that rows may write to."""
        home = self._folder / "tools" / "home"
        with Memory.open(home, embedder=self.minilm, warm=False) as memory:
            preferring(memory)
        return self._closing(Tools(home, "--tools", "all"))

    @cached_property
    def server(self) -> Server:
        """A server that asks for a token."""
        return self._closing(Server(self._folder / "server" / "home"))

    @cached_property
    def device(self) -> Device:
        """A device whose log lies on that server."""
        return self._closing(Device(self._folder / "device" / "home", self.server))

    def _memory(self, name: str) -> Memory:
        home = self._folder / name / "home"
        return self._closing(Memory.open(home, embedder=self.minilm, warm=False))

    def _closing(self, part: PartT) -> PartT:
        self._open.callback(part.close)
        return part
