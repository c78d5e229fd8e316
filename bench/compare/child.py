"""One contestant in a process of its own: `python -m bench.compare.child NAME`.

In: JSON lines on stdin, each an operation. Out: a JSON line for each on stdout: what came, seconds
it took and seconds of them inside the embedder, both of the wall and of the processor, or the error
in the product's own words. Its interpreter has that product and not Anaphora; only Anaphora's
contestants run in the project's.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from bench.compare.stores import Opening, Store
from bench.compare.vectors import Spent, Vectors, clock

STORES = {
    "anaphora": ("ours", "Memories"),
    "anaphora_read": ("ours", "ReadMemories"),
    "anaphora_conversations": ("ours", "Conversations"),
    "anaphora_project": ("ours", "Project"),
    "bm25": ("stores", "Bm25"),
    "cosine": ("stores", "Cosine"),
    "rrf": ("stores", "Fused"),
    "chroma": ("stores", "Chroma"),
    "mem0": ("stores", "Mem0"),
    "langgraph_memory": ("stores", "InMemory"),
    "langgraph_sqlite": ("stores", "OnSqlite"),
    "lancedb": ("stores", "Lance"),
    "limit": ("limit", "Limit"),
    "limit_int8": ("limit", "LimitOfBytes"),
}


class Child:
    """Carries out operations, one after the other."""

    def __init__(self, name: str) -> None:
        self._module, self._kind = STORES[name]
        self._store: Store | None = None

    def do(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Carry out one, and say what came of it."""
        began, before = clock(), self._embedding()
        try:
            result = getattr(self, "do_" + asked["op"])(**asked.get("with", {}))
        except Exception as error:  # noqa: BLE001 - whatever a product raises is the answer
            traceback.print_exc()
            return {"error": f"{type(error).__name__}: {error}"[:300]}
        spent = clock() - began
        embedding = self._embedding() - before
        return {"result": result, "spent": spent.tolist(), "embedding": embedding.tolist()}

    def _embedding(self) -> Spent:
        return self._store.embedding if self._store is not None else np.zeros(2)

    def do_open(self, folder: str, model: str, known: str | None = None, now: str = "") -> None:
        """Import the product and open it on a folder."""
        file = Path(known) if known else None
        # Anaphora's file holds several vectors of a text, which only Anaphora can read.
        vectors = Vectors(Path(model), None if self._module == "ours" else file)
        opening = Opening(Path(folder), vectors, file, now)
        module = importlib.import_module(f"bench.compare.{self._module}")
        self._store = getattr(module, self._kind)(opening)

    def do_add(self, space: str, texts: list[tuple[str, str, str]]) -> int:
        """Keep texts."""
        self._of().add(space, texts)
        return len(texts)

    def do_search(self, space: str, query: str, k: int) -> list[str]:
        """Ask."""
        return self._of().search(space, query, k)

    def do_search_at_once(self, space: str, queries: list[str], k: int, askers: int) -> int:
        """Ask all of them, so many at a time, each in a thread of its own."""
        with ThreadPoolExecutor(askers) as pool:
            return sum(map(bool, pool.map(lambda q: self._of().search(space, q, k), queries)))

    def do_ready(self) -> None:
        """Wait for what the product does behind its calls, where it has a call for that."""
        getattr(self._store, "ready", lambda: None)()

    def do_delete(self, space: str, item: str) -> None:
        """Remove one."""
        self._of().delete(space, item)

    def do_close(self) -> None:
        """Close the store; the process stays."""
        self._of().close()
        self._store = None

    def do_answer(self, space: str, query: str, k: int) -> Any:
        """Ask for all that the hits say."""
        ours: Any = self._of()
        return ours.answer(space, query, k)

    def do_state(self) -> dict[str, Any]:
        """Megabytes resident now, seconds of the processor since the process began, what is certain
        of a write, and how many candidates were read with a question."""
        lines = Path("/proc/self/status").read_text().splitlines()
        resident = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
        return {
            "resident": resident / 1000,
            "processor": time.process_time(),
            "durability": self._of().durability,
            "judged": getattr(self._of(), "judged", 0),
        }

    def _of(self) -> Store:
        if self._store is None:
            raise RuntimeError("nothing is open")
        return self._store


def main() -> None:
    """Read operations until there are no more."""
    # Products print to stdout; answers must not be mixed with that.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    child = Child(sys.argv[1])
    for line in sys.stdin:
        answers.write(json.dumps(child.do(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
