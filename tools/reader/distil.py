"""Judge all examples with teachers: `python -m tools.reader distil RUN … --out FOLDER`.

In: runs of `train` (a larger network, several seeds) and the examples of `prepare`. Out:
`soft.jsonl`, the mean of the runs' log-probabilities for each statement of a question and for each
pair; with `--embedder EXAMPLES` also `scores.jsonl`, as `tools.models train --teacher` reads it.
A question is judged as it was written, so that a mistyped one is held to what the right one means.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from tools.models import network as net
from tools.models.examples import chunks, read_examples
from tools.models.teacher import SOFT_FILE, label_line
from tools.models.train import SCALE
from tools.reader.examples import read_answers, read_changes
from tools.reader.graph import HEADS
from tools.reader.network import Reader, logits_of

from anaphora.reading.inputs import Inputs, Pieces
from anaphora.reading.model import log_odds

SCORES_FILE = "scores.jsonl"
_AT_ONCE = 512
_BATCH = 256
# What a teacher is surest of says no more than that it is sure.
_MOST = 6.0
_UNTAUGHT = frozenset({"code", "documents", "long"})

Logs = npt.NDArray[np.float32]


def main(words: list[str]) -> None:
    """Write what the command line asks for."""
    chosen = _arguments().parse_args(words)
    teachers = Teachers(chosen.runs)
    examples, inputs = chosen.examples or chosen.runs[0], Inputs()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with (chosen.out / SOFT_FILE).open("w", encoding="utf-8") as lines:
        for some in chunks(read_answers(examples), _AT_ONCE):
            statements = [(*one.answers, *one.about, *one.others, *one.unclear) for one in some]
            asked = [
                [inputs.answer(one.queries[0][1], text) for text in own]
                for one, own in zip(some, statements, strict=True)
            ]
            keys = [one.key for one in some]
            lines.writelines(_soft_lines(teachers, HEADS[0], keys, statements, asked))
        for pairs in chunks(read_changes(examples), _AT_ONCE):
            questions = [("", *pair.questions) for pair in pairs]
            asked = [
                [inputs.change(question, pair.older, pair.newer) for question in own]
                for pair, own in zip(pairs, questions, strict=True)
            ]
            keys = [pair.key for pair in pairs]
            lines.writelines(_soft_lines(teachers, HEADS[1], keys, questions, asked))
    if chosen.embedder is not None:
        _score_passages(chosen.embedder, chosen.out / SCORES_FILE, teachers, chosen.hardest)


def _soft_lines(
    teachers: Teachers,
    head: str,
    keys: Sequence[str],
    texts: Sequence[Sequence[str]],
    inputs: Sequence[Sequence[Pieces]],
) -> Iterator[str]:
    rows = teachers.judge(list(chain.from_iterable(inputs)), head).tolist()
    labels = ([round(log, 3) for log in row] for row in rows)
    for key, own in zip(keys, texts, strict=True):
        yield label_line(key, own, list(islice(labels, len(own))))


class Teachers:
    """Runs whose judgements are averaged."""

    def __init__(self, runs: Sequence[Path]) -> None:
        self._device = net.chosen_device()
        self._readers = [
            Reader(run / "weights", dropout=0.0, layers=0).to(self._device).eval() for run in runs
        ]

    def judge(self, inputs: Sequence[Pieces], head: str) -> Logs:
        """Mean log-probabilities, shape (inputs, 3)."""
        if not inputs:
            return np.zeros((0, 3), np.float32)
        with torch.no_grad(), net.half_precision(self._device):
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
        for some in chunks(read_examples(examples), _AT_ONCE):
            taught = [one for one in some if one.source not in _UNTAUGHT]
            texts = [(*one.positives, *one.negatives[:hardest]) for one in taught]
            asked = [
                inputs.answer(one.query, text)
                for one, own in zip(taught, texts, strict=True)
                for text in own
            ]
            odds = log_odds(teachers.judge(asked, HEADS[0]))
            cosines = (np.clip(odds, -_MOST, _MOST) / SCALE).tolist()
            scores = iter([round(cosine, 4) for cosine in cosines])
            for one, own in zip(taught, texts, strict=True):
                lines.write(label_line(one.key, own, list(islice(scores, len(own)))))


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.reader distil", description=__doc__)
    add = parser.add_argument
    add("runs", type=Path, nargs="+", help="folders of `train`, the teachers")
    add("--examples", type=Path, help="folder that `prepare` wrote, by default the first run's")
    add("--out", type=Path, required=True, help="folder to write into")
    add("--embedder", type=Path, metavar="EXAMPLES", help="examples of `tools.models prepare`")
    add("--hardest", type=int, default=10, help="of so many passages that mislead most")
    return parser
