"""What every run of training keeps: its plan, its checkpoint, its log, and how its rate changes.

A run goes on where it stopped, step by step as if it had not; a run with another plan is refused.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import torch
from tools.models import network as net
from tools.models.batches import Sourced, epoch_length

WARM_UP = 50
EVERY = 50
"""Steps between two checkpoints."""

PlanT = TypeVar("PlanT", bound=Any)


class Run:
    """A run in its folder: `checkpoint.pt`, of which nothing is half-written, and `log.jsonl`.

    `plan` is everything that the result depends on; `plan.steps` and `plan.drawing.seed` are of it.
    `groups` are the optimizer's parameters, each group with its rate.
    """

    def __init__(
        self, folder: Path, plan: Any, network: Any, groups: Sequence[Mapping[str, Any]]
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self.plan, self.network = folder, plan, network
        self._trained = [parameter for group in groups for parameter in group["params"]]
        self._optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
        self._schedule = rate_schedule(self._optimizer, plan.steps)
        self.step = self._take_up()

    def train(
        self, batches: Iterator[Any], losses: Callable[[Any], dict[str, float]], most: int
    ) -> None:
        """Train until the last step, or `most` steps (0: all).

        `losses` goes back through its losses and gives what is logged of a step.
        """
        upto = min(self.plan.steps, self.step + most) if most else self.plan.steps
        for batch in islice(batches, self.step, upto):
            began = time.perf_counter()
            self._optimizer.zero_grad(set_to_none=True)
            entry = losses(batch)
            torch.nn.utils.clip_grad_norm_(self._trained, 1.0)
            self._optimizer.step()
            self._schedule.step()
            self.step += 1
            milliseconds = round((time.perf_counter() - began) * 1e3)
            self._log({"step": self.step, **entry, "ms": milliseconds})
            if self.step % EVERY == 0 or self.step == upto:
                self._keep()

    def finish(self, digest: str) -> None:
        """Say of the written weights what they are of."""
        about = {"step": self.step, "sha256": digest, "plan": asdict(self.plan)}
        (self.path / "run.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
        print(f"step {self.step} of {self.plan.steps}: {self.path / 'weights'} {digest[:12]}")

    def _log(self, entry: Mapping[str, float]) -> None:
        """Add a step's line to the log; print every tenth step and the first ones."""
        with (self.path / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")
        if self.step % 10 == 0 or self.step <= 3:
            print(" ".join(f"{name} {number}" for name, number in entry.items()), flush=True)

    def _keep(self) -> None:
        """Write all that the next step depends on, in one move."""
        state = {
            "plan": asdict(self.plan),
            "step": self.step,
            "network": self.network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
            "random": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        }
        written = self.path / "checkpoint.new"
        torch.save(state, written)
        written.replace(self.path / "checkpoint.pt")

    def _take_up(self) -> int:
        """Load the last checkpoint and give its step; 0 where there is none.

        Raises SystemExit where it is of another plan.
        """
        checkpoint, log = self.path / "checkpoint.pt", self.path / "log.jsonl"
        if not checkpoint.is_file():
            log.unlink(missing_ok=True)
            return 0
        # Written by `_keep`: no file from elsewhere is loaded.
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)
        if state["plan"] != asdict(self.plan):
            raise SystemExit(f"{checkpoint} is of a run with other options; name another --run")
        self.network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._schedule.load_state_dict(state["schedule"])
        # Steps after the last checkpoint are taken again.
        lines = log.read_text("utf-8").splitlines(keepends=True)
        log.write_text("".join(lines[: state["step"]]), "utf-8")
        torch.set_rng_state(state["random"])
        if torch.cuda.is_available() and state["cuda"]:
            torch.cuda.set_rng_state_all(state["cuda"])
        return int(state["step"])


def trained_parameters(named: Iterable[tuple[str, Any]]) -> list[Any]:
    """The parameters that are trained: all but the word table, which stays as it was."""
    trained = []
    for name, parameter in named:
        parameter.requires_grad = name != net.WORD_TABLE
        if parameter.requires_grad:
            trained.append(parameter)
    return trained


def rate_schedule(optimizer: Any, steps: int) -> Any:
    """The rate over `steps`: up in a line over the first ones, then down in a line to nothing."""
    warm = min(WARM_UP, max(1, steps // 4))

    def share(step: int) -> float:
        if step < warm:
            return (step + 1) / warm
        return max(0.0, (steps - step) / max(1, steps - warm))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def file_digest(*files: Path) -> str:
    """The SHA-256 of files, one after the other."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def run_arguments(program: str, doc: str | None, folder: Path, epochs: float) -> Any:
    """A parser with the options of every run."""
    parser = argparse.ArgumentParser(prog=f"python -m {program} train", description=doc)
    add = parser.add_argument
    add("--run", type=Path, default=folder, help="folder of this run")
    add("--weights", type=Path, help="weights to begin with, by default the installed originals")
    add("--steps", type=int, default=0, help="steps in all, instead of --epochs")
    add("--epochs", type=float, default=epochs, help="passes over the examples")
    add("--stop-after", type=int, default=0, help="steps now; the next call goes on")
    add("--weight", type=_setting, action="append", default=[], metavar="SOURCE=WEIGHT")
    add(
        "--set",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="another number of the plan, or of how examples are drawn (rate, size, seed, …)",
    )
    add("--threads", type=int, default=0, help="processors, by default all")
    add("--weights-only", action="store_true", help="no float/: for a machine that only trains")
    return parser


def planned(plan: PlanT, chosen: argparse.Namespace, examples: Sequence[Sourced]) -> PlanT:
    """A plan with the numbers of the command line, and as many steps as its epochs have.

    Seeds the run's chance. Raises SystemExit for a number that the plan has not.
    """
    for name, number in chosen.set:
        part = plan.drawing if name in {one.name for one in fields(plan.drawing)} else plan
        if not isinstance(getattr(part, name, None), int | float):
            raise SystemExit(f"--set {name}: no such number")
        changed = replace(part, **{name: type(getattr(part, name))(number)})
        plan = changed if part is plan else replace(plan, drawing=changed)
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    random.seed(plan.drawing.seed)
    torch.manual_seed(plan.drawing.seed)
    if plan.steps:
        return plan
    epoch = epoch_length(examples, plan.drawing.weights, plan.drawing.size)
    return replace(plan, steps=round(chosen.epochs * epoch))


def write_embedder(run: Run, begun_with: Path, chosen: argparse.Namespace) -> None:
    """Write the weights of a run that trained an embedder, and how the product reads them."""
    digest = net.save_weights(run.network.eval(), begun_with, run.path / "weights")
    if not chosen.weights_only:
        net.export_for_product(run.path / "weights", run.path / "float", chosen.name)
    run.finish(digest)


def _setting(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    return name, float(number)
