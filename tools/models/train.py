"""Train the embedder: `python -m tools.models train --run FOLDER`, again to go on where it stopped.

In: `examples.jsonl`, the weights to begin with, and `scores.jsonl` of a teacher where there is one.
Out: in the run's folder `log.jsonl` (a line a step), `checkpoint.pt`, `weights/` and, as
the product reads a model, `float/`. The word table stays as it was. The loss is the cross-entropy
of the right passage among those of the batch, by cosines × 20, as in sentence-transformers'
MultipleNegativesRankingLoss; with a teacher also the divergence from its order of a question's own
passages.
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
from tools.models.batches import Drawing, Drawn, draw_steps, epoch_length, held_apart
from tools.models.examples import LONG, read_examples
from tools.models.running import RunFolder, rate_schedule, source_weight, trained_parameters
from tools.models.teacher import Teacher, read_scores

OUT = Path(__file__).resolve().parents[2] / ".models"
SCALE = 20.0
# What a source counts in an epoch: our own stories twice, long public sets by half.
WEIGHTS = {
    "corpus": 2.0,
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
    rate: float
    dropout: float
    teacher: float
    drawing: Drawing


def main(words: list[str]) -> None:
    """Train until the last step, or as many steps as asked for."""
    chosen = _arguments().parse_args(words)
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    examples = list(read_examples(chosen.examples))
    teacher = read_scores(chosen.scores) if chosen.teacher else None
    drawing = Drawing(
        {**WEIGHTS, **dict(chosen.weight)},
        chosen.size,
        chosen.negatives,
        chosen.hardest,
        chosen.styled,
        chosen.meant,
        chosen.seed,
    )
    steps = chosen.steps or round(
        chosen.epochs * epoch_length(examples, drawing.weights, drawing.size)
    )
    plan = Plan(
        hashlib.sha256(chosen.examples.read_bytes()).hexdigest(),
        steps,
        chosen.rate,
        chosen.dropout,
        chosen.teacher,
        drawing,
    )
    weights = chosen.weights or net.installed_weights()
    run = Run(plan, weights, chosen.run)
    print(f"{len(examples)} examples, {steps} steps, from step {run.step} on {run.device}")
    upto = min(steps, run.step + chosen.stop_after) if chosen.stop_after else steps
    for drawn in islice(draw_steps(examples, drawing), run.step, upto):
        run.take(drawn, teacher)
        if run.step % chosen.every == 0 or run.step == upto:
            run.keep()
    run.finish("" if chosen.weights_only else chosen.name)


class Run:
    """A run of training in its folder, begun or taken up."""

    def __init__(self, plan: Plan, weights: Path, folder: Path) -> None:
        self.plan = plan
        self.device = net.chosen_device()
        self._weights, self._folder = weights, RunFolder(folder, asdict(plan), self.device)
        _seed(plan.drawing.seed)
        self._tokenizer = net.load_tokenizer(weights)
        self._network = net.load_network(weights, self.device, plan.dropout).train()
        self._trained = trained_parameters(self._network.named_parameters())
        self._optimizer = torch.optim.AdamW(self._trained, lr=plan.rate, weight_decay=0.01)
        self._schedule = rate_schedule(self._optimizer, plan.steps)
        self.step = self._folder.take_up(self._network, self._optimizer, self._schedule)

    def take(self, drawn: Sequence[Drawn], teacher: Teacher | None) -> None:
        """One step; prints and logs its loss and time."""
        began = time.perf_counter()
        with torch.autocast(self.device, dtype=torch.bfloat16):
            loss, taught = self._loss(drawn, teacher)
        self._optimizer.zero_grad(set_to_none=True)
        (loss + self.plan.teacher * taught).backward()
        torch.nn.utils.clip_grad_norm_(self._trained, 1.0)
        self._optimizer.step()
        self._schedule.step()
        self.step += 1
        entry = {
            "step": self.step,
            "loss": round(float(loss.detach()), 4),
            "taught": round(float(taught.detach()), 4),
            "ms": round((time.perf_counter() - began) * 1e3),
        }
        self._folder.log(entry)

    def keep(self) -> None:
        """Write all that the next step depends on."""
        self._folder.keep(self.step, self._network, self._optimizer, self._schedule)

    def finish(self, name: str) -> None:
        """Write the weights as they are now; with a name, as ONNX."""
        folder = self._folder.path / "weights"
        digest = net.save_weights(self._network.eval(), self._weights, folder)
        if name:
            net.export_for_product(folder, self._folder.path / "float", name)
        about = {"step": self.step, "sha256": digest, "plan": asdict(self.plan)}
        (self._folder.path / "run.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
        print(f"step {self.step} of {self.plan.steps}: {folder} {digest[:12]}")

    def _loss(
        self, drawn: Sequence[Drawn], teacher: Teacher | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # A text that several bring along stands in the batch several times: the masks see to that.
        passages = [one.positive for one in drawn] + [n for one in drawn for n in one.negatives]
        queries = self._embed([one.query for one in drawn], net.QUERY_PIECES)
        long = any(one.example.lane == LONG for one in drawn)
        characters = net.LONG_CHARACTERS if long else net.PASSAGE_CHARACTERS
        cut = [text[:characters] for text in passages]
        found = self._embed(cut, net.LONG_PIECES if long else net.PASSAGE_PIECES)
        cosines = queries @ found.T
        apart = torch.tensor(held_apart(drawn, passages), device=self.device)
        logits = (cosines * SCALE).masked_fill(apart, -1e4)
        right = torch.arange(len(drawn), device=self.device)
        loss = torch.nn.functional.cross_entropy(logits, right)
        if teacher is None:
            return loss, torch.zeros((), device=self.device)
        return loss, _taught(drawn, cosines, teacher)

    def _embed(self, texts: Sequence[str], pieces: int) -> torch.Tensor:
        return net.embed(self._network, self._tokenizer, texts, pieces, self.device)


def _taught(drawn: Sequence[Drawn], cosines: torch.Tensor, teacher: Teacher) -> torch.Tensor:
    """How far each question's passages are from the teacher's order (Kullback-Leibler)."""
    terms = []
    first = len(drawn)
    for place, one in enumerate(drawn):
        own = [place, *range(first, first + len(one.negatives))]
        first += len(one.negatives)
        known = teacher.scores(one.example.key, (one.positive, *one.negatives))
        if known is None or len(own) < 2:
            continue
        wanted = torch.tensor(known, device=cosines.device, dtype=torch.float32) * SCALE
        logits = torch.log_softmax(cosines[place, own].float() * SCALE, dim=0)
        target = torch.softmax(wanted, dim=0)
        terms.append(torch.nn.functional.kl_div(logits, target, reduction="sum"))
    return torch.stack(terms).mean() if terms else cosines.new_zeros(())


def _seed(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.models train", description=__doc__)
    add = parser.add_argument
    add("--run", type=Path, default=OUT / "run", help="folder of this run")
    add("--examples", type=Path, default=OUT / "examples.jsonl")
    add("--weights", type=Path, help="weights to begin with, by default the installed originals")
    add("--steps", type=int, default=0, help="steps in all, instead of --epochs")
    add("--epochs", type=float, default=3.0, help="passes over the examples")
    add("--stop-after", type=int, default=0, help="steps now; the next call goes on")
    add("--every", type=int, default=50, help="steps between two checkpoints")
    add("--size", type=int, default=16, help="questions a step")
    add("--negatives", type=int, default=2, help="passages a question that mislead")
    add("--hardest", type=int, default=10, help="of so many that mislead most")
    add("--styled", type=float, default=0.35, help="share of questions in another style")
    add("--meant", type=float, default=0.5, help="share asked without a speaker's name")
    add("--weight", type=source_weight, action="append", default=[], metavar="SOURCE=WEIGHT")
    add("--rate", type=float, default=3e-5)
    add("--dropout", type=float, default=0.1)
    add("--scores", type=Path, default=OUT / "scores.jsonl", help="what `distil` wrote")
    add("--teacher", type=float, default=0.0, help="weight of the teacher's order")
    add("--seed", type=int, default=1)
    add("--threads", type=int, default=0, help="processors, by default all")
    add("--weights-only", action="store_true", help="no float/: for a machine that only trains")
    add("--name", default="trained", help="what the vectors of float/ are called")
    return parser
