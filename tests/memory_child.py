"""Processes that use a memory, what they acknowledge, and what must hold of a home after them.

`memory_child.py HOME DATABASE` ("-" for none) opens a memory with hashed words as vectors, prints
"ready", and does what each line of JSON on its standard input says, one after the other. What a
call returned is printed as a line of JSON: that is its acknowledgement. `Child` is the side of
whoever starts, feeds or kills such a process; `flaws` and `answers` look at what it left. Used by
tests/test_memory_faults.py and bench/memory_faults.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.commands import python

from anaphora import Memory, NewMemory
from anaphora.errors import AnaphoraError

ROOT = Path(__file__).resolve().parents[1]

# Each finds nothing in a truth of which every write was kept whole or not at all.
_HALF_WRITTEN = {
    "a memory without the event of its coming": (
        "SELECT record_id FROM record r WHERE kind NOT IN ('indexed_folder', 'project_pair', "
        "'session_mark') AND NOT EXISTS (SELECT 1 FROM record_event e "
        "WHERE e.namespace = r.namespace AND e.record_id = r.record_id)"
    ),
    "an event of nothing": (
        "SELECT record_id FROM record_event e WHERE NOT EXISTS (SELECT 1 FROM record r "
        "WHERE r.namespace = e.namespace AND r.record_id = e.record_id)"
    ),
    "a vector of nothing": (
        "SELECT record_id FROM vector v WHERE NOT EXISTS (SELECT 1 FROM record r "
        "WHERE r.namespace = v.namespace AND r.record_id = v.record_id)"
    ),
    "a link to nothing": (
        "SELECT record_id FROM link k WHERE 2 > (SELECT COUNT(*) FROM record r "
        "WHERE r.namespace = k.namespace AND r.record_id IN (k.record_id, k.other_id))"
    ),
    "a version that ended for nothing": (
        "SELECT record_id FROM record r WHERE superseded_by IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM record s WHERE s.namespace = r.namespace "
        "AND s.record_id = r.superseded_by)"
    ),
    "two values of one path at once": (
        "SELECT path_key FROM record WHERE path_key IS NOT NULL AND valid_until IS NULL "
        "AND forgotten_at IS NULL GROUP BY namespace, path_key HAVING COUNT(*) > 1"
    ),
    "a memory that was deleted and is there": (
        "SELECT record_id FROM record r JOIN tombstone t "
        "ON t.namespace = r.namespace AND t.owner_id = r.record_id"
    ),
    "a number beyond the head": (
        "SELECT n.seq FROM (SELECT namespace, seq FROM record UNION ALL "
        "SELECT namespace, seq FROM record_event UNION ALL SELECT namespace, seq FROM vector "
        "UNION ALL SELECT namespace, seq FROM link UNION ALL SELECT namespace, seq FROM tombstone) "
        "n LEFT JOIN head h ON h.namespace = n.namespace WHERE h.seq IS NULL OR n.seq > h.seq"
    ),
}


class Child:
    """A process with a memory of its own on `home`. Ends with the `with` block, by itself."""

    def __init__(self, home: Path, database: str | None = None) -> None:
        environ = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("ANAPHORA_", "NEO_", "SOVSEAL_"))
        }
        paths = [str(ROOT), str(ROOT / "src"), environ.get("PYTHONPATH", "")]
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        self.process = subprocess.Popen(
            [*python(), "-m", "tests.memory_child", str(home), database or "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environ,
        )

    def __enter__(self) -> Child:
        return self.started()

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.communicate(timeout=60)
        self._let_go()

    def started(self) -> Child:
        """This, once its memory is open."""
        if self._line() != "ready\n":
            self.process.kill()
            raise RuntimeError(f"the process did not start: {self.process.communicate()[1]}")
        return self

    def send(self, *commands: Mapping[str, Any]) -> None:
        """Give it work without waiting for it; no more than a pipe holds (64 KiB) at a time."""
        assert self.process.stdin is not None
        self.process.stdin.write("".join(json.dumps(one) + "\n" for one in commands))
        self.process.stdin.flush()

    def answer(self) -> Any:
        """The next acknowledgement. Raises RuntimeError with what the process said, if it ended."""
        line = self._line()
        if not line:
            assert self.process.stderr is not None
            raise RuntimeError(f"the process ended: {self.process.stderr.read()}")
        return json.loads(line)

    def ask(self, do: str, **given: Any) -> Any:
        """Do one thing and wait until it is acknowledged."""
        self.send({"do": do, **given})
        return self.answer()

    def kill(self) -> list[Any]:
        """`kill -9`; what it had acknowledged and nobody had read."""
        assert self.process.stdout is not None
        self.process.kill()
        # The last line can be cut short: its call had returned, and nobody could know.
        rest = self.process.stdout.read().split("\n")[:-1]
        self.process.wait()
        self._let_go()
        return [json.loads(line) for line in rest]

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def _let_go(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue  # It was killed before it read all that it was told.


def flaws(memory: Memory) -> list[str]:
    """What is half-written in a memory's truth, in words; nothing if all is well."""
    memory.list(limit=1)
    truth = memory._container.truth
    found = [
        f"{what}: {rows[0][0]} and {len(rows) - 1} more"
        for what, statement in _HALF_WRITTEN.items()
        if (rows := truth.rows(statement, {}))
    ]
    if truth.path is not None and truth.path.exists():
        found += [str(row) for row in truth.rows("PRAGMA integrity_check", {}) if row != ("ok",)]
        found += [f"foreign key: {row}" for row in truth.rows("PRAGMA foreign_key_check", {})]
    return found


def texts_of(memory: Memory) -> set[str]:
    """The words of every memory in truth, in history too."""
    records = memory._container.namespace("default").memory.records
    return {one.text for one in records.changed_since(-1, 2**30)}


def answers(memory: Memory, queries: Iterable[str]) -> list[list[tuple[str, float]]]:
    """(id, score) of what each query recalls."""
    return [[(hit.id, round(hit.score, 6)) for hit in memory.recall(one)] for one in queries]


def holding(home: Path, word: str) -> list[str]:
    """The files under `home` in which the bytes of a word are."""
    wanted = word.encode()
    return [str(p) for p in home.rglob("*") if p.is_file() and wanted in p.read_bytes()]


def _tell(value: object) -> None:
    print(json.dumps(value), flush=True)


def _remember(memory: Memory, text: str, **fields: Any) -> None:
    done = memory.remember(text, **fields)
    _tell({"id": done.id, "action": done.action, "text": text})


def _remember_many(memory: Memory, texts: list[str]) -> None:
    items = [NewMemory(text) for text in texts]
    memory.remember_many(items, lambda _, done, total: _tell({"kept": done, "of": total}))
    _tell({"all": len(texts)})


def _recall(memory: Memory, query: str, **options: Any) -> None:
    found = memory.recall(query, **options)
    hits = [{"id": hit.id, "text": hit.text, "score": hit.score} for hit in found]
    _tell({"hits": hits, "degraded": [one.part for one in found.degraded]})


def _forget(memory: Memory, **which: Any) -> None:
    done = memory.forget(**which)
    _tell({"forgotten": done.ids, "count": done.count})


def _reindex(memory: Memory, embedder: str | None = None) -> None:
    done = memory.reindex(
        embedder, progress=lambda label, done, total: _tell({label: done, "of": total})
    )
    _tell({"reindexed": done.embedder, "left": done.left})


def _backup(memory: Memory, path: str) -> None:
    _tell({"backup": memory.backup(path).path})


_DO: dict[str, Callable[..., None]] = {
    "remember": _remember,
    "remember_many": _remember_many,
    "recall": _recall,
    "forget": _forget,
    "reindex": _reindex,
    "backup": _backup,
}


def main() -> None:
    home, database = sys.argv[1:3]
    where = None if database == "-" else database
    with Memory.open(home, database=where, embedder="hashing") as memory:
        memory.ready()
        print("ready", flush=True)
        for line in sys.stdin:
            command = json.loads(line)
            try:
                _DO[command.pop("do")](memory, **command)
            except AnaphoraError as error:
                _tell({"error": type(error).__name__, "says": str(error)})


if __name__ == "__main__":
    main()
