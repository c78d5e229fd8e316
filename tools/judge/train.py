"""Train the pair model: `python -m tools.judge train --run FOLDER`, again to go on.

In: `pairs.jsonl` of the run's folder, and the weights to begin with. Out: in the run's folder
`log.jsonl`, `checkpoint.pt`, `weights/` and, as the other steps read it, `float/`. The word table
stays as it was, so that it is the embedder's own, and the lowest layers too. The loss is the
cross-entropy over the classes, and for each later statement that of what it replaces among all of
its earlier ones and nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from tools.judge.examples import PAIRS_FILE, Drawing, Drawn, draw_steps, read_examples
from tools.judge.folders import RUN
from tools.judge.homes import REPLACES
from tools.models import network as net
from tools.models.running import Run, file_digest, planned, run_arguments, trained_parameters
from tools.reader.network import Reader, logits_of
from tools.reader.train import finish

from anaphora.reading.inputs import Inputs
from anaphora.reading.model import PAIRS

WEIGHTS = {"groups": 2.0, "changes": 1.0, "stories": 1.0, "plain": 0.4}


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a run's result depends on; a run that goes on must have the same."""

    examples: str
    weights: str
    steps: int
    drawing: Drawing
    rate: float = 6e-5
    head_rate: float = 5e-4
    dropout: float = 0.1
    listwise: float = 0.5
    frozen: int = 1


def main(words: list[str]) -> None:
    """Train until the last step, or as many steps as asked for."""
    parser = run_arguments("tools.judge", __doc__, RUN, 2.0)
    parser.add_argument("--name", default="anaphora-pairs")
    chosen = parser.parse_args(words)
    examples = read_examples(chosen.run)
    weights = chosen.weights or net.installed_weights()
    drawing = Drawing({**WEIGHTS, **dict(chosen.weight)})
    digests = [file_digest(chosen.run / PAIRS_FILE), file_digest(weights / "model.safetensors")]
    plan = planned(Plan(digests[0], digests[1], chosen.steps, drawing), chosen, examples)
    reader = Reader(weights, dropout=plan.dropout, layers=0, heads=[PAIRS]).train()
    lowest = [f"encoder.layer.{number}." for number in range(plan.frozen)]
    trunk = trained_parameters(reader.trunk.named_parameters())
    for name, parameter in reader.trunk.named_parameters():
        if name.startswith((*lowest, "embeddings.") if plan.frozen else "embeddings.word"):
            parameter.requires_grad = False
    groups = [
        {"params": [parameter for parameter in trunk if parameter.requires_grad], "lr": plan.rate},
        {"params": list(reader.heads.parameters()), "lr": plan.head_rate},
    ]
    run = Run(chosen.run, plan, reader, groups)
    print(f"{len(examples)} later statements, {plan.steps} steps, from {run.step}")
    run.train(draw_steps(examples, plan.drawing), Losses(reader, plan).back, chosen.stop_after)
    finish(run, reader, weights, chosen)


class Losses:
    """The loss of a step."""

    def __init__(self, reader: Reader, plan: Plan) -> None:
        self._reader, self._plan, self._inputs = reader, plan, Inputs()

    def back(self, batch: Sequence[Drawn]) -> dict[str, float]:
        """Go back through the loss; its parts and the share of pairs judged rightly are logged."""
        inputs = [self._inputs.change("", *pair) for drawn in batch for pair in drawn.pairs]
        labels = torch.tensor([label for drawn in batch for label in drawn.labels])
        with net.half_precision("cpu"):
            odds = logits_of(self._reader, inputs, PAIRS, "cpu", 16)
        logits = torch.cat((odds, odds.new_zeros(len(odds), 1)), dim=1)
        classes = torch.nn.functional.cross_entropy(logits, labels)
        order = self._order(logits, labels, [len(drawn.labels) for drawn in batch])
        (classes + self._plan.listwise * order).backward()
        right = (logits.detach().argmax(dim=1) == labels).float().mean()
        numbers = {"classes": classes, "order": order, "right": right}
        losses = {name: round(float(number.detach()), 4) for name, number in numbers.items()}
        return {**losses, "pairs": len(inputs)}

    def _order(
        self, logits: torch.Tensor, labels: torch.Tensor, sizes: Sequence[int]
    ) -> torch.Tensor:
        """What is replaced among all earlier ones, or nothing, for each later statement."""
        replaces = torch.log_softmax(logits, dim=1)[:, REPLACES]
        replaces = replaces - torch.log1p(-replaces.exp().clamp(max=1 - 1e-6))
        terms = []
        for odds, targets in zip(
            replaces.split(list(sizes)), labels.split(list(sizes)), strict=True
        ):
            choices = torch.log_softmax(torch.cat((odds, odds.new_zeros(1))), dim=0)
            right = targets == REPLACES
            terms.append(-(torch.logsumexp(choices[:-1][right], 0) if right.any() else choices[-1]))
        return torch.stack(terms).mean()
