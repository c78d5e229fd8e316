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
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Self

__all__ = ["CONTESTANTS", "Answer", "Child", "Contestant", "Failed", "installed", "prepare"]
__all__ += ["ONLY_SPEED", "versions"]

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
OWN: Final = ""
"""The environment of a contestant that runs in the project's own interpreter."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """`name` is what the child is started with, `shown` what the report says, `packages` whose
    versions it names."""

    name: str
    shown: str
    environment: str
    packages: tuple[str, ...]


CONTESTANTS: Final = (
    Contestant("bm25", "BM25", "words", ("bm25s", "PyStemmer")),
    Contestant("cosine", "cosine", "words", ("numpy",)),
    Contestant("rrf", "BM25 + cosine, RRF", "words", ("bm25s", "numpy")),
    Contestant("chroma", "Chroma", "chroma", ("chromadb",)),
    Contestant("mem0", "mem0", "mem0", ("mem0ai", "qdrant-client")),
    Contestant(
        "langgraph_memory",
        "LangGraph InMemoryStore",
        "langgraph",
        ("langgraph", "langgraph-checkpoint"),
    ),
    Contestant(
        "langgraph_sqlite",
        "LangGraph SqliteStore",
        "langgraph",
        ("langgraph-checkpoint-sqlite", "sqlite-vec"),
    ),
    Contestant("lancedb", "LanceDB hybrid", "lancedb", ("lancedb",)),
    Contestant("anaphora", "Anaphora", OWN, ("anaphora",)),
    Contestant("anaphora_read", "Anaphora, reader on", OWN, ("anaphora",)),
    Contestant("limit", "limit, float32", "words", ("numpy",)),
    Contestant("limit_int8", "limit, int8", "words", ("numkong",)),
)
ONLY_SPEED: Final = ("anaphora_read", "limit", "limit_int8")


class Failed(RuntimeError):
    """A contestant raised; the message is its own."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an operation gave, seconds it took, and seconds of them inside the embedder: each of the
    wall and of the processor."""

    result: Any
    spent: tuple[float, float]
    embedding: tuple[float, float]

    @property
    def bare(self) -> tuple[float, float]:
        """Seconds outside the embedder."""
        return self.spent[0] - self.embedding[0], self.spent[1] - self.embedding[1]


class Child:
    """A contestant's process, with a home folder of its own, so that nothing is found or left in
    the user's. Operations are asked one at a time."""

    def __init__(self, contestant: Contestant, environments: Path, home: Path) -> None:
        own = [str(REPOSITORY / "src")] if contestant.environment == OWN else []
        self._log = (home / "stderr.txt").open("a")
        self._process = subprocess.Popen(
            [_interpreter(contestant, environments), "-m", "bench.compare.child", contestant.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            env={
                "PATH": os.environ.get("PATH", ""),
                "PYTHONPATH": os.pathsep.join([*own, str(REPOSITORY)]),
                "TOKENIZERS_PARALLELISM": "false",
                "HOME": str(home),
                # Its second thread waits tens of milliseconds for a core of a busy machine.
                **({"OPENBLAS_NUM_THREADS": "1"} if contestant.name == "limit" else {}),
            },
            cwd=REPOSITORY,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let it end by itself: its input ends."""
        self._stream(self._process.stdin).close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def ask(self, op: str, **values: Any) -> Answer:
        """Carry out one operation. Raises `Failed` with what the product said."""
        stream = self._stream(self._process.stdin)
        stream.write(json.dumps({"op": op, "with": values}) + "\n")
        stream.flush()
        line = self._stream(self._process.stdout).readline()
        if not line:
            raise Failed(f"the process ended with {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return Answer(answer["result"], tuple(answer["spent"]), tuple(answer["embedding"]))

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream


def _interpreter(contestant: Contestant, environments: Path) -> str:
    if contestant.environment == OWN:
        return sys.executable
    return str(environments.absolute() / contestant.environment / "bin" / "python")


def installed(environments: Path) -> list[Contestant]:
    """The contestants whose interpreter is there."""
    return [one for one in CONTESTANTS if Path(_interpreter(one, environments)).exists()]


def versions(contestant: Contestant, environments: Path) -> str:
    """ "name version, …" of its packages as they are installed."""
    code = (
        "import sys, importlib.metadata as m;"
        "print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    )
    command = [_interpreter(contestant, environments), "-c", code, *contestant.packages]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def prepare(environments: Path) -> None:
    """Make every environment that is not there yet."""
    for file in sorted(HERE.glob("requirements-*.txt")):
        place = environments / file.stem.removeprefix("requirements-")
        python = str(place / "bin" / "python")
        if not Path(python).exists():
            make = ["uv", "venv", "-q", str(place), "--python", "3.11"]
            subprocess.run(make, check=True)
            install = ["uv", "pip", "install", "-q", "--python", python, "-r", str(file)]
            subprocess.run(install, check=True)
            print(f"made {place}", flush=True)
