"""Train the embedder: `python -m tools.models train --run FOLDER`, again to go on where it stopped.

In: `examples.jsonl`, the weights to begin with, and `scores.jsonl` of a teacher where there is one.
Out: in the run's folder `log.jsonl` (a line a step), `checkpoint.pt`, `weights/` and, as
the product reads a model, `float/`. The word table stays as it was. The loss is the cross-entropy
of the right passage among those of the batch, by cosines × 20, as in sentence-transformers'
MultipleNegativesRankingLoss; with a teacher also the divergence from its order of a question's own
passages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tools.models import network as net
from tools.models.batches import Drawing, Drawn, draw_steps, held_apart
from tools.models.examples import LONG, read_examples
from tools.models.running import (
    Run,
    file_digest,
    planned,
    run_arguments,
    trained_parameters,
    write_embedder,
)
from tools.models.teacher import Teacher, read_labels

OUT = Path(__file__).resolve().parents[2] / ".models"
SCALE = 20.0
# What a source counts in an epoch: our own stories twice, long public sets by half.
WEIGHTS = {
    "corpus": 2.0,
    "asked": 2.0,
    "groups": 0.5,
    "told": 0.5,
    "long": 0.5,
    "selqa": 0.5,
    "molweni": 0.5,
    "code": 0.5,
    "documents": 0.5,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a run's result depends on; a run that goes on must have the same.

    `examples` is the SHA-256 of their file.
    """

    examples: str
    steps: int
    teacher: float
    drawing: Drawing
    rate: float = 3e-5
    dropout: float = 0.1


def main(words: list[str]) -> None:
    """Train until the last step, or as many steps as asked for."""
    parser = run_arguments("tools.models", __doc__, OUT / "run", 3.0)
    add = parser.add_argument
    add("--examples", type=Path, default=OUT / "examples.jsonl")
    add("--scores", type=Path, default=OUT / "scores.jsonl", help="what `distil` wrote")
    add("--language", default="", help="train on the examples in this language alone")
    add("--teacher", type=float, default=0.0, help="weight of the teacher's order")
    add("--name", default="trained", help="what the vectors of float/ are called")
    chosen = parser.parse_args(words)
    examples = [
        one for one in read_examples(chosen.examples) if chosen.language in ("", one.language)
    ]
    drawing = Drawing({**WEIGHTS, **dict(chosen.weight)})
    plan = Plan(file_digest(chosen.examples), chosen.steps, chosen.teacher, drawing)
    plan = planned(plan, chosen, examples)
    weights, device = chosen.weights or net.installed_weights(), net.chosen_device()
    network = net.load_network(weights, device, plan.dropout).train()
    trained = trained_parameters(network.named_parameters())
    run = Run(chosen.run, plan, network, [{"params": trained, "lr": plan.rate}])
    teacher = read_labels(chosen.scores) if plan.teacher else None
    losses = Losses(network, net.load_tokenizer(weights), device, plan.teacher, teacher)
    print(f"{len(examples)} examples, {plan.steps} steps, from step {run.step} on {device}")
    run.train(draw_steps(examples, plan.drawing), losses.back, chosen.stop_after)
    write_embedder(run, weights, chosen)


@dataclass(frozen=True, slots=True)
class Losses:
    """The losses of a step; `share` is what the teacher's order counts."""

    network: Any
    tokenizer: Any
    device: str
    share: float
    teacher: Teacher | None

    def back(self, drawn: Sequence[Drawn]) -> dict[str, float]:
        """Go back through the loss of a step; what is logged of it."""
        with net.half_precision(self.device):
            loss, taught = self._loss(drawn)
        (loss + self.share * taught).backward()
        return {"loss": round(loss.item(), 4), "taught": round(taught.item(), 4)}

    def _loss(self, drawn: Sequence[Drawn]) -> tuple[torch.Tensor, torch.Tensor]:
        # A text that several bring along stands in the batch several times: the masks see to that.
        passages = [one.positive for one in drawn] + [n for one in drawn for n in one.negatives]
        queries = self._embed([one.query for one in drawn], net.QUERY_PIECES)
        long = any(one.example.lane == LONG for one in drawn)
        characters = net.LONG_CHARACTERS if long else net.PASSAGE_CHARACTERS
        cut = [text[:characters] for text in passages]
        texts = self._embed(cut, net.LONG_PIECES if long else net.PASSAGE_PIECES)
        cosines = queries @ texts.T
        apart = torch.tensor(held_apart(drawn, passages), device=self.device)
        logits = (cosines * SCALE).masked_fill(apart, -1e4)
        right = torch.arange(len(drawn), device=self.device)
        loss = torch.nn.functional.cross_entropy(logits, right)
        if self.teacher is None:
            return loss, torch.zeros((), device=self.device)
        return loss, _taught(drawn, cosines, self.teacher)

    def _embed(self, texts: Sequence[str], pieces: int) -> torch.Tensor:
        return net.embed(self.network, self.tokenizer, texts, pieces, self.device)


def _taught(drawn: Sequence[Drawn], cosines: torch.Tensor, teacher: Teacher) -> torch.Tensor:
    """How far each question's passages are from the teacher's order (Kullback-Leibler)."""
    terms = []
    first = len(drawn)
    for place, one in enumerate(drawn):
        own = [place, *range(first, first + len(one.negatives))]
        first += len(one.negatives)
        known = teacher.labels(one.example.key, (one.positive, *one.negatives))
        if known is None or len(own) < 2:
            continue
        wanted = torch.tensor(known, device=cosines.device, dtype=torch.float32) * SCALE
        logits = torch.log_softmax(cosines[place, own].float() * SCALE, dim=0)
        target = torch.softmax(wanted, dim=0)
        terms.append(torch.nn.functional.kl_div(logits, target, reduction="sum"))
    return torch.stack(terms).mean() if terms else cosines.new_zeros(())
