"""Reads everyday changes, and pairs that both hold, on which nothing is ever trained.

In: `textbook/`, one file of JSON Lines a hand. Out: pairs with a question each, and unrelated
statements.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Pair", "Unrelated", "read_rows", "read_textbook"]

ROOT: Final = Path(__file__).with_name("textbook")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two statements, the second told a month after the first, and a question weeks later.

    `changes`: the second replaces the first, and the question asks for what holds now. Otherwise
    both hold, and the question asks for the first.
    """

    hand: str
    language: str
    older: str
    newer: str
    question: str
    changes: bool

    @property
    def texts(self) -> tuple[str, ...]:
        """What is told, in its order."""
        return self.older, self.newer


@dataclass(frozen=True, slots=True)
class Unrelated:
    """A statement that has nothing to do with any other."""

    hand: str
    language: str
    text: str

    @property
    def texts(self) -> tuple[str, ...]:
        """What is told."""
        return (self.text,)


def read_textbook(root: Path = ROOT) -> tuple[list[Pair], list[str]]:
    """All pairs, and the unrelated statements, in the order of the files."""
    rows = read_rows(sorted(root.glob("*.jsonl")))
    return (
        [row for row in rows if isinstance(row, Pair)],
        [row.text for row in rows if isinstance(row, Unrelated)],
    )


def read_rows(files: Iterable[Path]) -> list[Pair | Unrelated]:
    """The lines of files in their order."""
    return [
        _row(file.stem, json.loads(line))
        for file in files
        for line in file.read_text("utf-8").splitlines()
    ]


def _row(hand: str, raw: Mapping[str, str]) -> Pair | Unrelated:
    language = raw.get("language", "en")
    if raw["kind"] == "unrelated":
        return Unrelated(hand, language, raw["text"])
    texts = (raw["older"], raw["newer"], raw["question"])
    return Pair(hand, language, *texts, raw["kind"] == "change")
