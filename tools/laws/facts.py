"""The unrelated facts of `data/facts*.txt`, each with its own questions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact, its questions in other words, and its language."""

    text: str
    questions: tuple[str, ...]
    language: str = "en"


@cache
def read_facts() -> tuple[Fact, ...]:
    """All facts, English first."""
    return (*_read("facts.txt"), *_read("facts_other.txt"))


def _read(name: str) -> list[Fact]:
    facts, language = [], "en"
    for line in (FOLDER / name).read_text("utf-8").splitlines():
        if line.startswith("## "):
            language = line[3:].strip()
        elif line and not line.startswith("#"):
            text, *questions = (part.strip() for part in line.split("|"))
            facts.append(Fact(text, tuple(questions), language))
    return facts
