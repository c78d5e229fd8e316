"""What scripted models of deep recall write, and a clock for how long they take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "conversation.json"


class Timer:
    """Seconds that pass only when they are told to."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def block(code: str, thought: str = "I look.") -> str:
    """A reply of a model that writes this code."""
    return f"{thought}\n```python\n{code}\n```"


def slow(timer: Timer, seconds: float, said: str) -> Callable[..., str]:
    """A script of one reply that takes its time."""

    def reply(messages: object) -> str:
        del messages
        timer.now += seconds
        return said

    return reply
