"""What the reader costs: `python -m bench.reader_cost --data DIR`.

In: the chats of the shared data. Out: milliseconds a statement by its word pieces, 8 and 32 at
once; the size of its files; the seconds of a fresh `anaphora recall` until it has answered; and
answers a second of `anaphora serve` for 1 and for 8 callers. The last two with the reader, and with
`ANAPHORA_READER=off`. In bench/results/reader_cost.json and .md.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import httpx

from anaphora import Memory
from anaphora.reading.model import Reader
from anaphora.reading.service import BUNDLED
from bench.datasets import haystacks
from bench.figures import Figure, at_most, keep
from bench.measuring import size_of
from bench.rest_load import served

SCRIPT = Path(sys.executable).with_name("anaphora")
PIECES = (16, 32, 64, 96)
AT_ONCE = (8, 32)
CALLERS = (1, 8)
SECONDS = 8.0
COLD = 7
WORD = "crane "
"""One piece; what stands for a question has two."""


def run(data: Path) -> list[Figure]:
    """Every figure, kept in bench/results/."""
    figures = [*_statements(), _size()]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        asked = _fill(home, data)
        for reader in ("on", "off"):
            setting = {**os.environ, "ANAPHORA_READER": reader}
            figures.append(_cold(home, asked, reader, setting))
            figures += _served(home, asked, reader, setting)
    keep("reader_cost", "What the reader costs", figures)
    return figures


def _statements() -> Iterator[Figure]:
    reader = Reader(BUNDLED)
    for many, pieces in itertools.product(AT_ONCE, PIECES):
        # [CLS] question [SEP] statement [SEP]: five pieces are not the statement's.
        texts = [WORD * (pieces - 5)] * many
        spent = []
        for _ in range(12):
            start = time.perf_counter()
            reader.judge_answers("crane crane", texts, "turns")
            spent.append(time.perf_counter() - start)
        value = 1000 * statistics.median(spent[2:]) / many
        name = f"a statement of {pieces} pieces, {many} at once"
        if (many, pieces) == (32, 64):
            yield at_most(name, value, 3.0, "ms")
        else:
            yield Figure(name, value, "ms")


def _size() -> Figure:
    return at_most("its files in the wheel", size_of(BUNDLED) / 1e6, 24.0, "MB")


def _fill(home: Path, data: Path) -> list[str]:
    """Chats of real people in the home; their questions."""
    asked = []
    with Memory.open(home) as memory:
        for _, chat in itertools.islice(haystacks(data, "realtalk"), 3):
            memory.import_(list(chat.conversations))
            asked += [question.text for question in chat.questions]
        memory.ready(600)
    return asked


def _cold(home: Path, asked: Sequence[str], reader: str, setting: Mapping[str, str]) -> Figure:
    spent = []
    for text in asked[:COLD]:
        start = time.perf_counter()
        command = [str(SCRIPT), "--home", str(home), "recall", text]
        subprocess.run(command, env=dict(setting), check=True, stdout=subprocess.DEVNULL)
        spent.append(time.perf_counter() - start)
    return Figure(f"reader {reader}: a search by a fresh process", statistics.median(spent), "s")


def _served(
    home: Path, asked: Sequence[str], reader: str, setting: Mapping[str, str]
) -> Iterator[Figure]:
    with served(home, environment=setting) as (_, url, token):
        headers = {"Authorization": f"Bearer {token}"}
        counted = itertools.count()

        def ask(until: float, spent: list[float]) -> None:
            with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
                while time.perf_counter() < until:
                    number = next(counted)
                    text = f"{asked[number % len(asked)]} {number}"
                    start = time.perf_counter()
                    client.post("/v1/search", json={"query": text}).raise_for_status()
                    spent.append(time.perf_counter() - start)

        # The reader is loaded beside the first answer.
        ask(time.perf_counter() + 3.0, [])
        for callers in CALLERS:
            spent: list[float] = []
            began = time.perf_counter()
            threads = [
                threading.Thread(target=ask, args=(began + SECONDS, spent)) for _ in range(callers)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            rate = len(spent) / (time.perf_counter() - began)
            name = f"reader {reader}: callers {callers}"
            yield Figure(f"{name}, answers a second", rate)
            yield Figure(f"{name}, p50", 1000 * statistics.median(spent), "ms")


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.reader_cost", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    run(parser.parse_args().data)


if __name__ == "__main__":
    main()
