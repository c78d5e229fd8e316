"""Judge all examples with teachers: `python -m tools.reader distil RUN … --out FOLDER`.

In: runs of `train` (a larger network, several seeds) and the examples of `prepare`. Out:
`soft.jsonl`, the mean of the runs' log-probabilities for each statement of a question and for each
pair; with `--embedder EXAMPLES` also `scores.jsonl`, as `tools.models train --teacher` reads it.
A question is judged as it was written, so that a mistyped one is held to what the right one means.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from tools.models import network as net
from tools.models.examples import read_examples
from tools.models.teacher import score_line
from tools.models.train import SCALE
from tools.reader.examples import ANSWERS_FILE, CHANGES_FILE, read_answers, read_changes
from tools.reader.graph import HEADS, POOLINGS
from tools.reader.network import Reader, logits_of
from tools.reader.soft import SOFT_FILE, soft_line

from anaphora.reading.inputs import Inputs, Pieces
from anaphora.reading.model import log_odds

SCORES_FILE = "scores.jsonl"
_AT_ONCE = 512
_BATCH = 256
# What a teacher is surest of says no more than that it is sure.
_MOST = 6.0
_UNTAUGHT = frozenset({"code", "documents", "long"})

Logs = npt.NDArray[np.float32]
Item = TypeVar("Item")


def main(words: list[str]) -> None:
    """Write what the command line asks for."""
    chosen = _arguments().parse_args(words)
    teachers = Teachers(chosen.runs, chosen.pooling)
    examples, inputs = chosen.examples or chosen.runs[0], Inputs()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with (chosen.out / SOFT_FILE).open("w", encoding="utf-8") as lines:
        for some in _chunks(read_answers(examples / ANSWERS_FILE)):
            texts = [(*one.answers, *one.about, *one.others, *one.unclear) for one in some]
            asked = [
                inputs.answer(one.queries[0][1], text)
                for one, own in zip(some, texts, strict=True)
                for text in own
            ]
            rows = iter(teachers.judge(asked, HEADS[0]).tolist())
            for one, own in zip(some, texts, strict=True):
                lines.write(soft_line(one.key, own, list(islice(rows, len(own)))) + "\n")
        for pairs in _chunks(read_changes(examples / CHANGES_FILE)):
            questions = [("", *pair.questions) for pair in pairs]
            asked = [
                inputs.change(question, pair.older, pair.newer)
                for pair, own in zip(pairs, questions, strict=True)
                for question in own
            ]
            rows = iter(teachers.judge(asked, HEADS[1]).tolist())
            for pair, own in zip(pairs, questions, strict=True):
                lines.write(soft_line(pair.key, own, list(islice(rows, len(own)))) + "\n")
    if chosen.embedder is not None:
        _score_passages(chosen.embedder, chosen.out / SCORES_FILE, teachers, chosen.hardest)


class Teachers:
    """Runs whose judgements are averaged."""

    def __init__(self, runs: Sequence[Path], pooling: str) -> None:
        self._device = net.chosen_device()
        self._readers = [
            Reader(run / "weights", dropout=0.0, pooling=pooling, layers=0).to(self._device).eval()
            for run in runs
        ]

    def judge(self, inputs: Sequence[Pieces], head: str) -> Logs:
        """Mean log-probabilities, shape (inputs, 3)."""
        if not inputs:
            return np.zeros((0, 3), np.float32)
        with torch.no_grad(), torch.autocast(self._device, dtype=torch.bfloat16):
            logs = [
                torch.log_softmax(
                    logits_of(reader, inputs, head, self._device, _BATCH).float(), dim=1
                )
                for reader in self._readers
            ]
        mean: Logs = torch.stack(logs).mean(dim=0).cpu().numpy()
        return mean


def _score_passages(examples: Path, target: Path, teachers: Teachers, hardest: int) -> None:
    """Log-odds of answering, as cosines of the size that `tools.models train` expects."""
    inputs = Inputs()
    with target.open("w", encoding="utf-8") as lines:
        for some in _chunks(read_examples(examples)):
            taught = [one for one in some if one.source not in _UNTAUGHT]
            texts = [(*one.positives, *one.negatives[:hardest]) for one in taught]
            asked = [
                inputs.answer(one.query, text)
                for one, own in zip(taught, texts, strict=True)
                for text in own
            ]
            odds = log_odds(teachers.judge(asked, HEADS[0]))
            rows = iter((np.clip(odds, -_MOST, _MOST) / SCALE).tolist())
            for one, own in zip(taught, texts, strict=True):
                lines.write(score_line(one.key, own, islice(rows, len(own))) + "\n")


def _chunks(items: Iterator[Item]) -> Iterator[list[Item]]:
    while some := list(islice(items, _AT_ONCE)):
        yield some


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.reader distil", description=__doc__)
    add = parser.add_argument
    add("runs", type=Path, nargs="+", help="folders of `train`, the teachers")
    add("--examples", type=Path, help="folder that `prepare` wrote, by default the first run's")
    add("--out", type=Path, required=True, help="folder to write into")
    add("--embedder", type=Path, metavar="EXAMPLES", help="examples of `tools.models prepare`")
    add("--hardest", type=int, default=10, help="of so many passages that mislead most")
    add("--pooling", choices=POOLINGS, default="mean")
    return parser
