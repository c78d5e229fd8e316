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
import hashlib
import json
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import torch
from tools.models import network as net
from tools.models.batches import epoch_length
from tools.models.running import RunFolder, rate_schedule, source_weight, trained_parameters
from tools.reader import graph
from tools.reader.batches import UNCLEAR, Asked, Drawing, Paired, draw_steps
from tools.reader.examples import ANSWERS_FILE, CHANGES_FILE, read_answers, read_changes
from tools.reader.network import Reader, logits_of, save
from tools.reader.soft import SoftLabels, read_soft

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
    rate: float
    head_rate: float
    dropout: float
    listwise: float
    changes: float
    pooling: str
    layers: int
    soft: str
    taught: float
    drawing: Drawing


def main(words: list[str]) -> None:
    """Train until the last step, or as many steps as asked for."""
    chosen = _arguments().parse_args(words)
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    folder = chosen.examples or chosen.run
    files = folder / ANSWERS_FILE, folder / CHANGES_FILE
    answers, changes = list(read_answers(files[0])), list(read_changes(files[1]))
    drawing = Drawing(
        {**WEIGHTS, **dict(chosen.weight)},
        chosen.size,
        chosen.candidates,
        chosen.pairs,
        chosen.hardest,
        chosen.about,
        chosen.unclear,
        chosen.styled,
        chosen.silent,
        chosen.seed,
    )
    weights = chosen.weights or net.installed_weights()
    plan = Plan(
        _digest(*files),
        _digest(weights / "model.safetensors"),
        chosen.steps or round(chosen.epochs * epoch_length(answers, drawing.weights, drawing.size)),
        chosen.rate,
        chosen.head_rate,
        chosen.dropout,
        chosen.listwise,
        chosen.changes,
        chosen.pooling,
        chosen.layers,
        _digest(chosen.soft) if chosen.soft else "",
        chosen.taught if chosen.soft else 0.0,
        drawing,
    )
    run = Run(plan, weights, chosen.run, read_soft(chosen.soft) if chosen.soft else None)
    print(f"{len(answers)} questions, {len(changes)} pairs, {plan.steps} steps, from {run.step}")
    upto = min(plan.steps, run.step + chosen.stop_after) if chosen.stop_after else plan.steps
    for asked, paired in islice(draw_steps(answers, changes, drawing), run.step, upto):
        run.take(asked, paired)
        if run.step % chosen.every == 0 or run.step == upto:
            run.keep()
    run.finish("" if chosen.weights_only else chosen.name)


class Run:
    """A run of training in its folder, begun or taken up."""

    def __init__(
        self, plan: Plan, weights: Path, folder: Path, soft: SoftLabels | None = None
    ) -> None:
        self.plan = plan
        self._soft = soft
        self.device = net.chosen_device()
        self._weights, self._folder = weights, RunFolder(folder, asdict(plan), self.device)
        random.seed(plan.drawing.seed)
        torch.manual_seed(plan.drawing.seed)
        self._inputs = Inputs()
        reader = Reader(weights, dropout=plan.dropout, pooling=plan.pooling, layers=plan.layers)
        self._reader = reader.to(self.device).train()
        trunk = trained_parameters(self._reader.trunk.named_parameters())
        heads = list(self._reader.heads.parameters())
        self._trained = [*trunk, *heads]
        self._optimizer = torch.optim.AdamW(
            [{"params": trunk, "lr": plan.rate}, {"params": heads, "lr": plan.head_rate}],
            weight_decay=0.01,
        )
        self._schedule = rate_schedule(self._optimizer, plan.steps)
        self.step = self._folder.take_up(self._reader, self._optimizer, self._schedule)

    def take(self, asked: Sequence[Asked], paired: Sequence[Paired]) -> None:
        """One step; prints and logs its losses, how many were judged rightly, and its time."""
        began = time.perf_counter()
        self._optimizer.zero_grad(set_to_none=True)
        entry: dict[str, float] = {"step": self.step + 1}
        # One judgement after the other: only one keeps its activations at a time.
        with torch.autocast(self.device, dtype=torch.bfloat16):
            classes, order, first = self._answers_loss(asked)
        (classes + self.plan.listwise * order).backward()
        entry |= {"answers": _number(classes), "order": _number(order), "first": first}
        if paired:
            with torch.autocast(self.device, dtype=torch.bfloat16):
                change, right = self._changes_loss(paired)
            (self.plan.changes * change).backward()
            entry |= {"changes": _number(change), "right": right}
        torch.nn.utils.clip_grad_norm_(self._trained, 1.0)
        self._optimizer.step()
        self._schedule.step()
        self.step += 1
        entry["ms"] = round((time.perf_counter() - began) * 1e3)
        self._folder.log(entry)

    def keep(self) -> None:
        """Write all that the next step depends on."""
        self._folder.keep(self.step, self._reader, self._optimizer, self._schedule)

    def finish(self, name: str) -> None:
        """Write the weights as they are now; with a name, as ONNX."""
        folder, written = self._folder.path / "weights", self._folder.path / "float"
        digest = save(self._reader.eval(), self._weights, folder)
        if name:
            written.mkdir(exist_ok=True)
            graph.export(folder, written / "model.onnx", self.plan.pooling)
            graph.write_manifest(written, f"{name}-float", {"pooling": self.plan.pooling})
        about = {"step": self.step, "sha256": digest, "plan": asdict(self.plan)}
        (self._folder.path / "run.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
        print(f"step {self.step} of {self.plan.steps}: {folder} {digest[:12]}")

    def _answers_loss(self, asked: Sequence[Asked]) -> tuple[torch.Tensor, torch.Tensor, float]:
        inputs = [self._inputs.answer(one.query, text) for one in asked for text in one.statements]
        # Padding costs a processor more than another run does, and a GPU less.
        at_once = len(inputs) if self.device == "cuda" else self.plan.drawing.size * 2
        logits = logits_of(self._reader, inputs, "answers", self.device, at_once)
        labels = torch.tensor([label for one in asked for label in one.labels], device=self.device)
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
            share = self.plan.taught
            classes = (1 - share) * classes + share * _divergence(logs, taught.exp())
            order = (1 - share) * order + share * torch.stack(orders).mean()
        return classes, order, round(sum(firsts) / max(1, len(firsts)), 3)

    def _changes_loss(self, paired: Sequence[Paired]) -> tuple[torch.Tensor, float]:
        inputs = [self._inputs.change(one.question, one.older, one.newer) for one in paired]
        logits = logits_of(self._reader, inputs, "changes", self.device, len(inputs))
        labels = torch.tensor([one.label for one in paired], device=self.device)
        right = (logits.detach().argmax(dim=1) == labels).float().mean()
        loss = torch.nn.functional.cross_entropy(logits, labels)
        taught = self._taught([(one.key, (one.question,)) for one in paired])
        if taught is not None:
            divergence = _divergence(torch.log_softmax(logits, dim=1), taught.exp())
            loss = (1 - self.plan.taught) * loss + self.plan.taught * divergence
        return loss, round(float(right), 3)

    def _taught(self, asked: Sequence[tuple[str, Sequence[str]]]) -> torch.Tensor | None:
        """The teachers' log-probabilities of examples, (n, 3), None without teachers.

        Raises SystemExit where an example was not judged: the labels are of other examples then.
        """
        if self._soft is None:
            return None
        rows = []
        for key, texts in asked:
            labels = self._soft.of(key, texts)
            if labels is None:
                raise SystemExit(f"no labels for {key}; run `distil` on these examples")
            rows += labels
        logs = torch.tensor(rows, device=self.device, dtype=torch.float32)
        return torch.log_softmax(logs, dim=1)


def _divergence(logs: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Kullback-Leibler divergence of rows of log-probabilities from probabilities, their mean."""
    return torch.nn.functional.kl_div(logs, wanted, reduction="batchmean")


def _number(loss: torch.Tensor) -> float:
    return round(float(loss.detach()), 4)


def _digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.reader train", description=__doc__)
    add = parser.add_argument
    add("--run", type=Path, default=OUT, help="folder of this run")
    add("--examples", type=Path, help="folder that `prepare` wrote, by default the run's")
    add("--weights", type=Path, help="weights to begin with, by default the installed originals")
    add("--steps", type=int, default=0, help="steps in all, instead of --epochs")
    add("--epochs", type=float, default=2.0, help="passes over the questions")
    add("--stop-after", type=int, default=0, help="steps now; the next call goes on")
    add("--every", type=int, default=50, help="steps between two checkpoints")
    add("--size", type=int, default=8, help="questions a step")
    add("--candidates", type=int, default=5, help="statements a question")
    add("--pairs", type=int, default=8, help="earlier and later statements a step")
    add("--hardest", type=int, default=16, help="others are drawn of so many")
    add("--about", type=float, default=0.7, help="share of questions with a statement about them")
    add("--unclear", type=float, default=0.3, help="share with one that may be about them")
    add("--styled", type=float, default=0.35, help="share of questions in another style")
    add("--silent", type=float, default=0.4, help="share of pairs without their question")
    add("--weight", type=source_weight, action="append", default=[], metavar="SOURCE=WEIGHT")
    add("--rate", type=float, default=5e-5)
    add("--head-rate", type=float, default=5e-4, help="rate of the two heads")
    add("--dropout", type=float, default=0.1)
    add("--listwise", type=float, default=1.0, help="weight of the order among the statements")
    add("--changes", type=float, default=1.0, help="weight of the second judgement")
    add("--pooling", choices=graph.POOLINGS, default="mean")
    add("--soft", type=Path, help="what `distil` wrote, of these examples")
    add("--taught", type=float, default=0.7, help="share of the loss that it decides")
    add("--layers", type=int, default=0, help="keep only so many lower layers")
    add("--seed", type=int, default=1)
    add("--threads", type=int, default=0, help="processors, by default all")
    add(
        "--weights-only", action="store_true", help="no float/: of a teacher, or where only trained"
    )
    add("--name", default="reader")
    return parser
