"""Texts by the language that they are in, and the same text in several: what `align` trains on.

In: examples, and files with a text in every language a line (`corpus/translations`). Nothing here
needs torch.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final

from tools.models.examples import Example

ENGLISH: Final = "en"
_OF: Final = " of "


def read_translations(file: Path) -> Iterator[tuple[str, str]]:
    """(text in another language, the same in English) of a file with a text a line."""
    for line in file.read_text("utf-8").splitlines():
        row: dict[str, str] = json.loads(line)
        yield from ((text, row[ENGLISH]) for name, text in row.items() if name != ENGLISH)


def languages_of(example: Example) -> tuple[str, str]:
    """The language that is asked in, and that of the passages."""
    asked, _, told = example.language.partition(_OF)
    return asked, told or asked


def english_texts(example: Example, characters: int) -> Iterator[str]:
    """A question and what answers it, where the English network reads them; passages are cut."""
    asked, told = languages_of(example)
    if asked == ENGLISH:
        yield example.query
    if told == ENGLISH:
        yield from (text[:characters] for text in example.positives)


def draw_texts(
    pairs: Sequence[tuple[str, str]], size: int, seed: str
) -> Iterator[list[tuple[str, str]]]:
    """Batches of pairs of about one length, epoch after epoch without end."""
    for epoch in count():
        chance = random.Random(f"{seed}:{epoch}")
        drawn = sorted(pairs, key=lambda pair: len(pair[0]) + chance.random() * 8)
        starts = list(range(0, len(drawn) - size + 1, size))
        chance.shuffle(starts)
        for start in starts:
            yield drawn[start : start + size]
