"""The contestants, their interpreters, and a child process that one runs in.

In: a folder of virtual environments. Out: contestants with the versions that are installed; answers
of their processes. It measures nothing.

    python -m bench.compare --prepare DIR

makes the environments with uv, from the pinned versions in requirements-*.txt beside this file.
They are the only thing here that needs a package registry; the project's lock knows none of them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Self

__all__ = ["CONTESTANTS", "PRODUCTS", "Answer", "Child", "Contestant", "Failed", "prepare"]

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
OWN: Final = ""
"""The environment of a contestant that runs in the project's own interpreter."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """`name` is what the child is started with, `shown` what the report says, `packages` whose
    versions it names. `lasting` is False for what lives in memory until it is saved."""

    name: str
    shown: str
    environment: str
    packages: tuple[str, ...]
    lasting: bool = True


CONTESTANTS: Final = (
    Contestant("bm25", "BM25", "words", ("bm25s", "PyStemmer"), lasting=False),
    Contestant("cosine", "cosine", "words", ("numpy",), lasting=False),
    Contestant("rrf", "BM25 + cosine, RRF", "words", ("bm25s", "numpy"), lasting=False),
    Contestant("chroma", "Chroma", "chroma", ("chromadb",)),
    Contestant("mem0", "mem0", "mem0", ("mem0ai", "qdrant-client")),
    Contestant(
        "langgraph_memory",
        "LangGraph InMemoryStore",
        "langgraph",
        ("langgraph", "langgraph-checkpoint"),
        lasting=False,
    ),
    Contestant(
        "langgraph_sqlite",
        "LangGraph SqliteStore",
        "langgraph",
        ("langgraph-checkpoint-sqlite", "sqlite-vec"),
    ),
    Contestant("lancedb", "LanceDB hybrid", "lancedb", ("lancedb",)),
    Contestant("anaphora", "Anaphora", OWN, ("anaphora",)),
)
PRODUCTS: Final = frozenset(one.name for one in CONTESTANTS) - {"bm25", "cosine", "rrf"}
"""What has a store of its own, whose behaviour can be looked at."""


class Failed(RuntimeError):
    """A contestant raised; the message is its own."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an operation gave, seconds it took, and seconds of them inside the embedder."""

    result: Any
    seconds: float
    embedding: float


class Child:
    """A contestant's process. Operations are asked one at a time; `kill` is `kill -9`."""

    def __init__(
        self,
        contestant: Contestant,
        environments: Path,
        *,
        before: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        home: Path | None = None,
    ) -> None:
        """`before` are words to start it with (strace …), `variables` of its environment, `home`
        a home folder of its own, so that nothing is found or left in the user's."""
        python = interpreter(contestant, environments)
        surroundings = {
            "PATH": os.environ.get("PATH", ""),
            "PYTHONPATH": os.pathsep.join(_paths(contestant)),
            "TOKENIZERS_PARALLELISM": "false",
            "HOME": str(home) if home is not None else os.environ.get("HOME", "/"),
            **(variables or {}),
        }
        self._log = (home / "stderr.txt").open("a") if home is not None else subprocess.DEVNULL
        self._process = subprocess.Popen(
            [*before, str(python), "-m", "bench.compare.child", contestant.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            env=surroundings,
            cwd=REPOSITORY,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def ask(self, op: str, **given: Any) -> Answer:
        """Carry out one operation. Raises `Failed` with what the product said."""
        self.tell(op, **given)
        return self.answer()

    def tell(self, op: str, **given: Any) -> None:
        """Send an operation without waiting."""
        stream = self._stream(self._process.stdin)
        stream.write(json.dumps({"op": op, "with": given}) + "\n")
        stream.flush()

    def answer(self) -> Answer:
        """The answer to the oldest operation that was sent. Raises `Failed`."""
        line = self._stream(self._process.stdout).readline()
        if not line:
            raise Failed(f"the process ended with {self._process.wait()}")
        found = json.loads(line)
        if "error" in found:
            raise Failed(found["error"])
        return Answer(**found)

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """Let it end by itself: its input ends."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream


def interpreter(contestant: Contestant, environments: Path) -> Path:
    """The interpreter that has the contestant installed."""
    if contestant.environment == OWN:
        return Path(sys.executable)
    return environments.absolute() / contestant.environment / "bin" / "python"


def versions(contestant: Contestant, environments: Path) -> str:
    """ "name version, …" of its packages as they are installed."""
    if contestant.environment == OWN:
        from anaphora import __version__

        return f"anaphora {__version__}"
    code = (
        "import sys, importlib.metadata as m;"
        "print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    )
    done = subprocess.run(
        [str(interpreter(contestant, environments)), "-c", code, *contestant.packages],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def installed(environments: Path) -> tuple[Contestant, ...]:
    """The contestants whose interpreter is there."""
    return tuple(one for one in CONTESTANTS if interpreter(one, environments).exists())


def prepare(environments: Path, only: Sequence[str] = ()) -> None:
    """Make the virtual environments (all, or those named) with uv."""
    for file in sorted(HERE.glob("requirements-*.txt")):
        name = file.stem.removeprefix("requirements-")
        if only and name not in only:
            continue
        place = environments / name
        subprocess.run(["uv", "venv", "-q", str(place), "--python", "3.11"], check=True)
        python = str(place / "bin" / "python")
        subprocess.run(
            ["uv", "pip", "install", "-q", "--python", python, "-r", str(file)], check=True
        )
        print(f"made {place}", flush=True)


def _paths(contestant: Contestant) -> list[str]:
    own = [str(REPOSITORY / "src")] if contestant.environment == OWN else []
    return [*own, str(REPOSITORY)]
