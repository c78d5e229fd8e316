"""Reads everyday changes, and pairs that both hold, on which nothing is ever trained.

In: `textbook/`, one file of JSON Lines a hand. Out: pairs with a question each, and unrelated
statements.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Pair", "read_textbook"]

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


def read_textbook(root: Path = ROOT) -> tuple[list[Pair], list[str]]:
    """All pairs, and the unrelated statements, in the order of the files."""
    pairs: list[Pair] = []
    unrelated: list[str] = []
    for path in sorted(root.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            if row["kind"] == "unrelated":
                unrelated.append(row["text"])
                continue
            texts = (row["older"], row["newer"], row["question"])
            language = row.get("language", "en")
            pairs.append(Pair(path.stem, language, *texts, row["kind"] == "change"))
    return pairs, unrelated
