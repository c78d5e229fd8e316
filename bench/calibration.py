"""Is what hits say of themselves true in homes of any size, and with an embedder for languages?
`python -m bench.calibration --data DIR --homes DIR`.

Each hit says how probably it answers. Asked with and without the reader, by questions of authors
that nothing was fitted on: homes of five statements, one of 100,000 (`bench.crowd`), and homes of
a story each, in every language. Reported by lane, as tenths of all hits: what they say, how many
answer; in bench/results/calibration.json and .md. The large home takes some minutes to fill;
`--homes` keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from corpus.reading import read_split, read_stories

from anaphora.embed.service import spec_for
from anaphora.values.conversations import READ_AWAITED
from bench.crowd import ask_crowd
from bench.figures import Figure, keep, run_alone
from bench.silence import READ_FITTED, Asked, ask_corpus, ask_few, farthest

SMALL: Final = 5
LANGUAGES: Final = "minilm"


def figures_of(asked: Sequence[tuple[str, Asked]]) -> Iterator[Figure]:
    """Of each group how many hits it has, and the farthest tenth of them."""
    for reader, where in dict.fromkeys((reader, one.where) for reader, one in asked):
        own = [one for with_reader, one in asked if with_reader == reader]
        name = f"{where}, {reader} reader"
        hits = sum(len(one.chances()) for one in own if one.where == where)
        yield Figure(f"{name}: hits", hits)
        yield Figure(f"{name}: farthest tenth of hits", farthest(own, where))


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
            yield "with a", one


def run(data: Path, homes: Path | None = None) -> None:
    """Ask everything; print and keep the figures."""
    seen = list(measure(data, homes))
    keep("calibration", "What hits say of themselves, by home", list(figures_of(seen)))


if __name__ == "__main__":
    run_alone("bench.calibration", __doc__, run, homes=True)
