"""Subjects whose value changes, and pairs that both hold: `data/changing.txt`, `data/together.txt`.

`{v}` is the value. Each list has several ways to say it; the first telling and a change are said
otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tools.laws.facts import FOLDER


@dataclass(frozen=True, slots=True)
class Changing:
    """A subject and an attribute with one value at a time.

    `first` tells a value, `changed` another one, `again` the same, `negated` that it holds no
    longer, `considered` what is only thought of, `asked` and `complained` tell nothing. `present`
    are questions for now, `temporal` such with a word of time that asks for nothing in the past,
    `past` for what was before.
    """

    label: str
    values: tuple[str, ...]
    first: tuple[str, ...]
    changed: tuple[str, ...]
    again: tuple[str, ...]
    negated: tuple[str, ...]
    considered: tuple[str, ...]
    asked: tuple[str, ...]
    complained: tuple[str, ...]
    present: tuple[str, ...]
    temporal: tuple[str, ...]
    past: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Together:
    """Statements that all hold: of one subject with several values, or of several subjects.

    `groups` are the labels in the order of `statements`; one label for all where one subject has
    several values.
    """

    groups: tuple[str, ...]
    statements: tuple[str, ...]
    questions: tuple[str, ...]


def _sections(name: str) -> Iterator[tuple[str, dict[str, tuple[str, ...]]]]:
    """(heading, texts by their name) of each section of a file."""
    for section in (FOLDER / name).read_text("utf-8").split("\n## ")[1:]:
        heading, *lines = section.strip().splitlines()
        rows = (line.split(" | ") for line in lines)
        yield heading, {field: tuple(texts) for field, *texts in rows}


CHANGING: Final = tuple(Changing(label, **texts) for label, texts in _sections("changing.txt"))
TOGETHER: Final = tuple(
    Together(tuple(labels.split(" | ")), **texts) for labels, texts in _sections("together.txt")
)
