"""What each size costs, from 1,000 to a million memories: `python -m bench.scale.curve`.

In: the folder of shared data; a folder that keeps homes and vectors from one run to the next. Out:
bench/results/curve.json and curve.md, a column a size, and from them the pictures in docs/images:
a question, a single write beside the disk's own wait, opening, forgetting, memory, disk.

    python -m bench.scale.curve --data DIR --home DIR [--size 1000 10000 100000 1000000] [--again]

Each size is measured by itself and kept when it is done; `--again` fills its home anew. The texts
are real (`material`), and so are the questions' vectors; those of texts are made as `material`
says. Vectors are scanned exactly at every size: LanceDB is measured by `bench.scale`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from anaphora.embed.service import spec_for
from bench.figures import RESULTS, machine_and_day, write
from bench.measuring import plain_environment
from bench.memory_texts import questions
from bench.scale.bulk import write_home
from bench.scale.curve_pictures import draw
from bench.scale.material import PoolEmbedder, filling_texts, pool
from bench.scale.report import table

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
QUESTIONS: Final = 200
_NO_CAP: Final = 10**9
_FOUND: Final = "curve"
_ROWS: Final = (
    ("question less its embedding, p50", "question_p50_ms", "ms"),
    ("question less its embedding, p99", "question_p99_ms", "ms"),
    ("single write over its embedding, p50", "write_p50_ms", "ms"),
    ("single write over its embedding, p99", "write_p99_ms", "ms"),
    ("a page and fsync alone, p50", "fsync_p50_ms", "ms"),
    ("a page and fsync alone, p99", "fsync_p99_ms", "ms"),
    ("opened and the first answer, libraries loaded", "open_ms", "ms"),
    ("forgotten for good, the first", "forget_first_ms", "ms"),
    ("forgotten for good, the next", "forget_ms", "ms"),
    ("closed after that", "close_ms", "ms"),
    ("resident memory after the questions", "resident_mb", "MB"),
    ("of that before the home was opened", "without_home_mb", "MB"),
    ("on disk", "disk_mb", "MB"),
    ("written in bulk", "filled_s", "s"),
    ("words made from it", "indexed_s", "s"),
)

Row = dict[str, Any]


def run(data: Path, folder: Path, sizes: Sequence[int], *, again: bool = False) -> None:
    """Measure these sizes, each kept as soon as it is done; then draw."""
    folder.mkdir(parents=True, exist_ok=True)
    asked = folder / "asked.json"
    asked.write_text(json.dumps(questions(data, QUESTIONS)), encoding="utf-8")
    for size in sizes:
        found = _filled(data, folder, size, again=again)
        home = folder / f"curve-{size}"
        found |= _child("ask", home, asked) | _child("write", home, folder / "pool")
        keep(size, found)
        print(f"{size:,}: { {k: round(v, 1) for k, v in found.items()} }", flush=True)
    for place in draw(RESULTS):
        print(place)


def keep(size: int, found: Mapping[str, float]) -> None:
    """Put one size into the results; what was measured of others stays."""
    place = RESULTS / f"{_FOUND}.json"
    value: Row = json.loads(place.read_text("utf-8")) if place.is_file() else {"sizes": {}}
    value |= {"title": "From a thousand memories to a million"}
    value["sizes"][str(size)] = {**found, "machine": machine_and_day()}
    sizes = sorted(map(int, value["sizes"]))
    rows = [[name, *(_cell(value["sizes"][str(s)], key, unit) for s in sizes)]
            for name, key, unit in _ROWS]  # fmt: skip
    lines = [f"# {value['title']}", "", *table(["", *(f"{s:,}" for s in sizes)], rows), ""]
    lines += [f"- {s:,}: {value['sizes'][str(s)]['machine']}" for s in sizes]
    lines += [
        "",
        "Texts and questions are real. Vectors of texts are those of 20,000 real texts, turned",
        "away by noise of the same covariance; memories were written in bulk. Vectors are scanned",
        "in memory at every size; past 150,000 LanceDB holds them by default (`scale.md`).",
    ]
    write(_FOUND, json.dumps(value, indent=1), "\n".join(lines))


def _filled(data: Path, folder: Path, size: int, *, again: bool) -> Row:
    """The home of a size, made where it is not there; what that took."""
    home, told = folder / f"curve-{size}", folder / f"curve-{size}.json"
    if told.is_file() and not again:
        found: Row = json.loads(told.read_text("utf-8"))
        return found
    embedder = PoolEmbedder(spec_for("minilm").load(), pool(data, folder / "pool"))
    texts = filling_texts(data, size)
    began = time.perf_counter()
    write_home(home, texts, embedder)
    made = {"filled_s": time.perf_counter() - began} | _child("index", home)
    told.write_text(json.dumps(made), encoding="utf-8")
    return made


def _child(*arguments: str | Path) -> Row:
    environment = {**plain_environment(), "ANAPHORA_EXACT_CAP": str(_NO_CAP)}
    done = subprocess.run(
        [sys.executable, "-m", "bench.scale.curve_child", *map(str, arguments)],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the process that measures failed: {done.stderr}")
    found: Row = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _cell(found: Mapping[str, Any], key: str, unit: str) -> str:
    value = found.get(key)
    if value is None:
        return ""
    return f"{value:,.1f} {unit}" if value < 100 else f"{value:,.0f} {unit}"


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--home", type=Path, required=True, help="a folder to keep homes in")
    parser.add_argument("--size", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--again", action="store_true", help="fill homes that are there anew")
    chosen = parser.parse_args()
    run(chosen.data, chosen.home, chosen.size, again=chosen.again)


if __name__ == "__main__":
    main()
