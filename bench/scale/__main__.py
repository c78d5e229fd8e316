"""A million memories in one namespace, measured: `python -m bench.scale --data DIR --home DIR`.

In: the folder of shared data; a folder that keeps what is made from one run to the next. Out:
bench/results/scale.json and .md: filling by `remember_many`, disk, memory, and what a question
costs at 1,000 to 1,000,000 memories, by the exact scan and (beyond its cap) by LanceDB.

    python -m bench.scale --data DIR --home DIR [--size 1000000] [--only fill|ask|write]
        [--bulk-after 100000]

`--only ask` measures questions again in the homes that are there, which takes minutes; filling
goes on where it was interrupted; `write` works on copies. Past `--bulk-after` memories are written
in bulk, and marked so.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final

from anaphora.core.config import EXACT_CAP
from anaphora.embed.service import spec_for
from bench.figures import RESULTS, machine
from bench.memory_texts import questions
from bench.scale import report
from bench.scale.filling import SIZES, fill, home_of, steps
from bench.scale.material import PoolEmbedder, filling_texts, pool

QUESTIONS: Final = 200
_WRITES: Final = 200
_NO_CAP: Final = 10**9
_STAGES: Final = ("fill", "ask", "write")
_ANN: Final = Path("index/default/memories/ann")

Row = dict[str, Any]


def run(
    data: Path, folder: Path, size: int, only: Sequence[str], bulk_after: int | None = None
) -> None:
    """Fill, ask, write; keep the results of every stage as soon as it is done."""
    kept = _Results()
    if "fill" in only:
        texts = filling_texts(data, size)
        embedder = PoolEmbedder(spec_for("minilm").load(), pool(data, folder / "pool"))
        fill(folder, texts, embedder, bulk_after)
    kept.filling(folder)
    (folder / "asked.json").write_text(json.dumps(questions(data, QUESTIONS)), encoding="utf-8")
    sizes = [one for one in SIZES if one <= size and home_of(folder, one).is_dir()]
    for one in sizes:
        for way in ("exact", "ann") if one > EXACT_CAP else ("exact",):
            if "ask" in only:
                kept.put(one, way, _asked(folder, one, way), home_of(folder, one))
            if "write" in only:
                kept.put(one, way, _written(folder, one, way), home_of(folder, one))
    kept.compare(sizes)


class _Results:
    """bench/results/scale.json as it grows; what is not measured again stays."""

    def __init__(self) -> None:
        place = RESULTS / "scale.json"
        self._value: Row = json.loads(place.read_text("utf-8")) if place.is_file() else {}
        self._value |= {"title": "A million memories in one namespace", "machine": machine()}
        self._value.setdefault("sizes", {})

    def filling(self, folder: Path) -> None:
        """The curve of filling, as far as it went."""
        self._value["filling"] = [
            {name: getattr(one, name) for name in one.__slots__} for one in steps(folder)
        ]
        self._value["said"] = max((one.rows for one in steps(folder) if not one.bulk), default=0)
        report.write(self._value)

    def put(self, size: int, way: str, found: Row, home: Path) -> None:
        """What was found at a size, in one way of searching."""
        at = self._value["sizes"].setdefault(str(size), {"disk": {}})
        at |= {"disk": _disk(home), "bulk": size > self._value["said"]}
        at.setdefault(way, {}).update(found)
        at[way]["load"] = round(os.getloadavg()[0], 1)
        report.write(self._value)
        shown = {k: round(v, 1) for k, v in found.items() if isinstance(v, float)}
        print(f"{size:,} {way}: {shown}", flush=True)

    def compare(self, sizes: Sequence[int]) -> None:
        """How far approximate answers are the exact ones."""
        for size in sizes:
            at = self._value["sizes"].get(str(size), {})
            if "vector_ids" in at.get("ann", {}) and "vector_ids" in at.get("exact", {}):
                for mode in ("vector", "hybrid"):
                    ours, exact = at["ann"][f"{mode}_ids"], at["exact"][f"{mode}_ids"]
                    at["ann"][f"{mode}_same_of_10"] = _same(ours, exact)
            for way, name in product(("exact", "ann"), ("vector_ids", "hybrid_ids")):
                at.get(way, {}).pop(name, None)
        report.write(self._value)


def _same(ours: Sequence[Sequence[str]], exact: Sequence[Sequence[str]]) -> float:
    both = [len(set(a) & set(b)) / len(b) for a, b in zip(ours, exact, strict=True) if b]
    return sum(both) / len(both)


def _disk(home: Path) -> dict[str, float]:
    parts = {
        "truth": home.glob("anaphora.db*"),
        "words": (home / "index/default/memories/words").rglob("*"),
        "ann": (home / _ANN).rglob("*"),
    }
    return {
        name: sum(p.stat().st_size for p in found if p.is_file()) / 1e6
        for name, found in parts.items()
    }


def _asked(folder: Path, size: int, way: str) -> Row:
    with _only_way(home_of(folder, size), way) as environment:
        return _child([str(home_of(folder, size)), str(folder / "asked.json")], environment)


def _written(folder: Path, size: int, way: str) -> Row:
    copy = folder / "writing"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(home_of(folder, size), copy)
    try:
        with _only_way(copy, way) as environment:
            more = ["--write", str(_WRITES), "--pool", str(folder / "pool")]
            return _child([str(copy), str(folder / "asked.json"), *more], environment)
    finally:
        shutil.rmtree(copy, ignore_errors=True)


@contextmanager
def _only_way(home: Path, way: str) -> Iterator[dict[str, str]]:
    """The environment for one way of searching; the exact one does not see what LanceDB holds."""
    if way == "ann":
        yield {}
        return
    here, aside = home / _ANN, home / "ann-aside"
    if here.is_dir():
        here.rename(aside)
    try:
        yield {"ANAPHORA_EXACT_CAP": str(_NO_CAP)}
    finally:
        if aside.is_dir():
            shutil.rmtree(here, ignore_errors=True)
            aside.rename(here)


def _child(arguments: Sequence[str], environment: dict[str, str]) -> Row:
    done = subprocess.run(
        [sys.executable, "-m", "bench.scale.asking", *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the process that asks failed: {done.stderr}")
    found: Row = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--home", type=Path, required=True, help="a folder to keep homes in")
    parser.add_argument("--size", type=int, default=SIZES[-1])
    parser.add_argument("--only", nargs="+", choices=_STAGES, default=list(_STAGES))
    parser.add_argument("--bulk-after", type=int, default=None)
    chosen = parser.parse_args()
    run(chosen.data, chosen.home, chosen.size, chosen.only, chosen.bulk_after)


if __name__ == "__main__":
    main()
