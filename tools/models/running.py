"""What every run of training keeps: its plan, its checkpoint, its log, and how its rate changes.

A run goes on where it stopped, step by step as if it had not; a run with another plan is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from tools.models.network import WORD_TABLE

WARM_UP = 50


class RunFolder:
    """A run's folder: `checkpoint.pt`, of which nothing is half-written, and `log.jsonl`.

    `plan` is everything that the result depends on, as JSON has it.
    """

    def __init__(self, folder: Path, plan: Mapping[str, Any], device: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self._plan, self._device = folder, plan, device

    def log(self, entry: Mapping[str, float]) -> None:
        """Add a step's line to the log; print every tenth step and the first ones."""
        with (self.path / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")
        if entry["step"] % 10 == 0 or entry["step"] <= 3:
            print(" ".join(f"{name} {value}" for name, value in entry.items()), flush=True)

    def keep(self, step: int, network: Any, optimizer: Any, schedule: Any) -> None:
        """Write all that the next step depends on, in one move."""
        state = {
            "plan": self._plan,
            "step": step,
            "network": network.state_dict(),
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            "random": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if self._device == "cuda" else [],
        }
        written = self.path / "checkpoint.new"
        torch.save(state, written)
        written.replace(self.path / "checkpoint.pt")

    def take_up(self, network: Any, optimizer: Any, schedule: Any) -> int:
        """Load the last checkpoint and give its step; 0 where there is none.

        Raises SystemExit where it is of another plan.
        """
        checkpoint, log = self.path / "checkpoint.pt", self.path / "log.jsonl"
        if not checkpoint.is_file():
            log.unlink(missing_ok=True)
            return 0
        # Written by `keep`: no file from elsewhere is loaded.
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)
        if state["plan"] != self._plan:
            raise SystemExit(f"{checkpoint} is of a run with other options; name another --run")
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        step = int(state["step"])
        # Steps after the last checkpoint are taken again.
        lines = log.read_text("utf-8").splitlines(keepends=True)
        log.write_text("".join(lines[:step]), "utf-8")
        torch.set_rng_state(state["random"])
        if self._device == "cuda" and state["cuda"]:
            torch.cuda.set_rng_state_all(state["cuda"])
        return step


def trained_parameters(named: Iterable[tuple[str, Any]]) -> list[Any]:
    """The parameters that are trained: all but the word table, which stays as it was."""
    trained = []
    for name, parameter in named:
        parameter.requires_grad = name != WORD_TABLE
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


def source_weight(text: str) -> tuple[str, float]:
    """What `--weight SOURCE=WEIGHT` names."""
    source, _, value = text.partition("=")
    return source, float(value)
