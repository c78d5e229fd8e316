"""Train the reader: `python -m tools.reader train --run FOLDER`, again to go on where it stopped.

In: `answers.jsonl` and `changes.jsonl` of the run's folder, and the weights to begin with. Out: in
the run's folder `log.jsonl` (a line a step), `checkpoint.pt`, `weights/` and, as `evaluate` reads
it, `float/`. The word table stays as it was, so that it is the embedder's own. The loss is the
cross-entropy of both judgements, and for a question with an answer that of the answer among its
statements, by their log-odds of answering. With what `distil` wrote (`--soft`) a share of the loss
is the divergence from the teachers' classes, and from their order of a question's statements.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tools.models import network as net
from tools.models.running import Run, file_digest, planned, run_arguments, trained_parameters
from tools.models.teacher import Teacher, read_labels
from tools.reader import graph
from tools.reader.batches import UNCLEAR, Asked, Drawing, Paired, draw_steps
from tools.reader.examples import ANSWERS_FILE, CHANGES_FILE, read_answers, read_changes
from tools.reader.network import Reader, logits_of, save

from anaphora.reading.inputs import Inputs

OUT = Path(__file__).resolve().parents[2] / ".models" / "reader"
# What a source counts in an epoch: our own stories twice, long public sets less.
WEIGHTS = {"corpus": 2.0, "selqa": 0.25, "friendsqa": 0.5, "molweni": 0.5, "written": 2.0}


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a run's result depends on; a run that goes on must have the same.

    `examples` is the SHA-256 of both files, `weights` that of the weights it begins with, `soft`
    that of the teachers' labels ("": none), which count for `taught` of the loss.
    """

    examples: str
    weights: str
    steps: int
    layers: int
    soft: str
    taught: float
    drawing: Drawing
    rate: float = 5e-5
    head_rate: float = 5e-4
    dropout: float = 0.1
    listwise: float = 1.0
    changes: float = 1.0


def main(words: list[str]) -> None:
    """Train until the last step, or as many steps as asked for."""
    parser = run_arguments("tools.reader", __doc__, OUT, 2.0)
    add = parser.add_argument
    add("--examples", type=Path, help="folder that `prepare` wrote, by default the run's")
    add("--soft", type=Path, help="what `distil` wrote, of these examples")
    add("--taught", type=float, default=0.7, help="share of the loss that it decides")
    add("--layers", type=int, default=0, help="keep only so many lower layers")
    add("--name", default="reader")
    chosen = parser.parse_args(words)
    folder = chosen.examples or chosen.run
    answers, changes = list(read_answers(folder)), list(read_changes(folder))
    weights, device = chosen.weights or net.installed_weights(), net.chosen_device()
    drawing = Drawing({**WEIGHTS, **dict(chosen.weight)})
    plan = Plan(
        file_digest(folder / ANSWERS_FILE, folder / CHANGES_FILE),
        file_digest(weights / "model.safetensors"),
        chosen.steps,
        chosen.layers,
        file_digest(chosen.soft) if chosen.soft else "",
        chosen.taught if chosen.soft else 0.0,
        drawing,
    )
    plan = planned(plan, chosen, answers)
    reader = Reader(weights, dropout=plan.dropout, layers=plan.layers).to(device).train()
    trunk = trained_parameters(reader.trunk.named_parameters())
    groups = [
        {"params": trunk, "lr": plan.rate},
        {"params": list(reader.heads.parameters()), "lr": plan.head_rate},
    ]
    run = Run(chosen.run, plan, reader, groups)
    losses = Losses(reader, device, plan, read_labels(chosen.soft) if chosen.soft else None)
    print(f"{len(answers)} questions, {len(changes)} pairs, {plan.steps} steps, from {run.step}")
    run.train(draw_steps(answers, changes, plan.drawing), losses.back, chosen.stop_after)
    finish(run, reader, weights, chosen)


def finish(run: Run, reader: Reader, weights: Path, chosen: argparse.Namespace) -> None:
    """Write what a run has made of `weights`: those, and unless told otherwise 32 bits of ONNX."""
    digest = save(reader.eval(), weights, chosen.run / "weights")
    if not chosen.weights_only:
        target = chosen.run / "float"
        target.mkdir(exist_ok=True)
        graph.export(chosen.run / "weights", target / "model.onnx")
        graph.write_manifest(target, f"{chosen.name}-float", {})
    run.finish(digest)


class Losses:
    """The losses of a step in both judgements."""

    def __init__(self, reader: Reader, device: str, plan: Plan, soft: Teacher | None) -> None:
        self._reader, self._device, self._plan, self._soft = reader, device, plan, soft
        self._inputs = Inputs()

    def back(self, batch: tuple[Sequence[Asked], Sequence[Paired]]) -> dict[str, float]:
        """Go back through the losses; they and how many were judged rightly are logged."""
        asked, paired = batch
        # One judgement after the other: only one keeps its activations at a time.
        with net.half_precision(self._device):
            classes, order, first = self._answers_loss(asked)
        (classes + self._plan.listwise * order).backward()
        entry = {"answers": _number(classes), "order": _number(order), "first": first}
        if paired:
            with net.half_precision(self._device):
                change, right = self._changes_loss(paired)
            (self._plan.changes * change).backward()
            entry |= {"changes": _number(change), "right": right}
        return entry

    def _answers_loss(self, asked: Sequence[Asked]) -> tuple[torch.Tensor, torch.Tensor, float]:
        inputs = [self._inputs.answer(one.query, text) for one in asked for text in one.statements]
        # Padding costs a processor more than another run does, and a GPU less.
        at_once = len(inputs) if self._device == "cuda" else self._plan.drawing.size * 2
        logits = logits_of(self._reader, inputs, "answers", self._device, at_once)
        labels = torch.tensor([label for one in asked for label in one.labels], device=self._device)
        logs = torch.log_softmax(logits, dim=1)
        known = labels != UNCLEAR
        no_answer = torch.logsumexp(logs[:, 1:], dim=1)
        own = logs.gather(1, labels.clamp(max=UNCLEAR - 1).unsqueeze(1)).squeeze(1)
        classes = -torch.where(known, own, no_answer).mean()
        odds = logs[:, 0] - no_answer
        taught = self._taught([(one.key, one.statements) for one in asked])
        terms, orders, firsts, start = [], [], [], 0
        for one in asked:
            group = odds[start : start + len(one.statements)]
            if taught is not None and len(group) > 1:
                theirs = taught[start : start + len(group)]
                wanted = torch.softmax(theirs[:, 0] - torch.logsumexp(theirs[:, 1:], dim=1), dim=0)
                orders.append(_divergence(torch.log_softmax(group, dim=0)[None], wanted[None]))
            start += len(one.statements)
            if one.answered and len(group) > 1:
                terms.append(-torch.log_softmax(group, dim=0)[0])
                firsts.append(float(group.detach().argmax() == 0))
        order = torch.stack(terms).mean() if terms else logits.new_zeros(())
        if taught is not None:
            share = self._plan.taught
            classes = (1 - share) * classes + share * _divergence(logs, taught.exp())
            order = (1 - share) * order + share * torch.stack(orders).mean()
        return classes, order, round(sum(firsts) / max(1, len(firsts)), 3)

    def _changes_loss(self, paired: Sequence[Paired]) -> tuple[torch.Tensor, float]:
        inputs = [self._inputs.change(one.question, one.older, one.newer) for one in paired]
        logits = logits_of(self._reader, inputs, "changes", self._device, len(inputs))
        labels = torch.tensor([one.label for one in paired], device=self._device)
        right = (logits.detach().argmax(dim=1) == labels).float().mean()
        loss = torch.nn.functional.cross_entropy(logits, labels)
        taught = self._taught([(one.key, (one.question,)) for one in paired])
        if taught is not None:
            divergence = _divergence(torch.log_softmax(logits, dim=1), taught.exp())
            loss = (1 - self._plan.taught) * loss + self._plan.taught * divergence
        return loss, round(float(right), 3)

    def _taught(self, asked: Sequence[tuple[str, Sequence[str]]]) -> torch.Tensor | None:
        """The teachers' log-probabilities of examples, (n, 3), None without teachers.

        Raises SystemExit where an example was not judged: the labels are of other examples then.
        """
        if self._soft is None:
            return None
        rows = []
        for key, texts in asked:
            labels = self._soft.labels(key, texts)
            if labels is None:
                raise SystemExit(f"no labels for {key}; run `distil` on these examples")
            rows += labels
        logs = torch.tensor(rows, device=self._device, dtype=torch.float32)
        return torch.log_softmax(logs, dim=1)


def _divergence(logs: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Kullback-Leibler divergence of rows of log-probabilities from probabilities, their mean."""
    return torch.nn.functional.kl_div(logs, wanted, reduction="batchmean")


def _number(loss: torch.Tensor) -> float:
    return round(float(loss.detach()), 4)
