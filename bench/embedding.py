"""How fast the bundled embedder is: load time, one question, short and long texts a second.

A folder of data comes in (texts are taken from REALTALK and BEAM chats when they are there, else
made up); a dict of figures goes out and is printed. Nothing is written.

    python -m bench.embedding [FOLDER]
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from anaphora.embed.minilm import MiniLM
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.errors import EmbeddingError

__all__ = ["run"]

QUESTIONS = 200
SHORT = 640
LONG = 24


def run(data: Path) -> dict[str, float]:
    """Measure and print. Milliseconds end in `_ms`, rates are texts a second."""
    short, long = _texts(data)
    load_ms = _milliseconds(MiniLM)
    service = EmbedderService(spec_for("minilm"), cache_size=QUESTIONS)
    service.ready()
    questions = [text for text in dict.fromkeys(short) if text.strip()][:QUESTIONS]
    service.query("warm up")
    first = [_milliseconds(partial(service.query, q)) for q in questions]
    again = [_milliseconds(partial(service.query, q)) for q in questions]
    variant = [_milliseconds(partial(service.query, f"{q.upper()}  ")) for q in questions]
    start = time.perf_counter()
    parts = sum(len(rows) for rows in service.embed(long) if not isinstance(rows, EmbeddingError))
    seconds = time.perf_counter() - start
    figures = {
        "load_ms": load_ms,
        "query_p50_ms": statistics.median(first),
        "query_p99_ms": statistics.quantiles(first, n=100)[98],
        "repeated_query_p50_ms": statistics.median(again),
        "respelled_query_p50_ms": statistics.median(variant),
        "short_texts_a_second": len(short) / _milliseconds(lambda: service.embed(short)) * 1e3,
        "long_texts_a_second": len(long) / seconds,
        "long_parts_a_second": parts / seconds,
    }
    for name, figure in figures.items():
        print(f"{name:26} {figure:10.3f}")
    return figures


def _milliseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e3


def _texts(data: Path) -> tuple[list[str], list[str]]:
    """Short texts (below 200 characters) and long ones (above 800)."""
    short: list[str] = []
    for path in sorted((data / "conversations" / "realtalk").glob("*.json")):
        chat = json.loads(path.read_text("utf-8"))
        sessions = [turns for turns in chat.values() if isinstance(turns, list)]
        short += [t["clean_text"] for turns in sessions for t in turns if "clean_text" in t]
    long: list[str] = []
    for path in sorted((data / "conversations" / "beam-100k").glob("*/chat.json")):
        batches = json.loads(path.read_text("utf-8"))
        long += [t["content"] for b in batches for turns in b["turns"] for t in turns]
    short = [text for text in short if len(text) < 200] or [
        f"Note {n}: we moved the {n}th meeting to the room upstairs." for n in range(SHORT)
    ]
    long = [text for text in long if len(text) > 800] or [
        f"Chapter {n}. " + "The path went on along the river, past the mill. " * 40
        for n in range(LONG)
    ]
    return short[:SHORT], long[:LONG]


if __name__ == "__main__":
    run(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("../shared/data"))
