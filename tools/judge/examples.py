"""What the pair model is trained on: a later statement with earlier ones, as JSON lines.

In one step of training stand some later statements, each with what it is related to and with others
that are likely to be mistaken for that; the seed and the step decide which.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from tools.judge.homes import OTHER, Labelled
from tools.models.batches import draw_epochs
from tools.models.examples import read_lines

from anaphora.ingest.judging import is_english
from anaphora.rank.pairs import Statement
from anaphora.reading.inputs import pair_text

PAIRS_FILE: Final = "pairs.jsonl"
PLAIN: Final = "plain"
"""The source of a later statement that is related to nothing."""

Words: TypeAlias = tuple[str, str, str]
"""A statement's text, its speaker, and the turn before it."""


@dataclass(frozen=True, slots=True)
class PairExample:
    """A later statement and earlier ones with their labels, those of another matter last.

    Of these the likeliest to be mistaken are the first.
    """

    key: str
    source: str
    newer: Words
    olders: tuple[Words, ...]
    labels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A later statement of a step, as it is read beside each earlier one, and their labels."""

    pairs: tuple[tuple[str, str], ...]
    labels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """How examples are drawn: `weights` as for the reader, `size` later statements a step.

    Each has its related ones, at most `related`, and `others` of the first `hardest` of another
    matter. `unnamed` and `bare` are the shares that are read without who spoke and what was said
    before.
    """

    weights: Mapping[str, float]
    size: int = 8
    related: int = 3
    others: int = 4
    hardest: int = 8
    unnamed: float = 0.5
    bare: float = 0.3
    seed: int = 1


def examples_of(pairs: Sequence[Labelled], hardness: Sequence[float]) -> Iterator[PairExample]:
    """The English pairs by their later statement; `hardness` says how likely each is mistaken."""
    together: dict[str, list[tuple[Labelled, float]]] = defaultdict(list)
    for pair, hard in zip(pairs, hardness, strict=True):
        if is_english(pair.pair):
            together[pair.newer].append((pair, hard))
    for key, group in together.items():
        # What was written beside each other comes before what only lies near.
        group.sort(key=lambda hard: (_lies_near(hard[0]), -hard[1]))
        first = group[0][0]
        yield PairExample(
            key,
            PLAIN if _lies_near(first) else first.source.partition(",")[0],
            words_of(first.pair.newer),
            tuple(words_of(pair.pair.older) for pair, _ in group),
            tuple(pair.label for pair, _ in group),
        )


def words_of(statement: Statement) -> Words:
    """What the model is shown of a statement."""
    return statement.text, statement.by, statement.before


def _lies_near(pair: Labelled) -> bool:
    is_story = pair.source.startswith("stories")
    return pair.label == OTHER and (is_story or pair.across)


def read_examples(folder: Path) -> list[PairExample]:
    """The examples of a folder that `prepare` wrote, in their order."""
    return list(read_lines(folder / PAIRS_FILE, PairExample))


def draw_steps(examples: Sequence[PairExample], drawing: Drawing) -> Iterator[list[Drawn]]:
    """The batches of all steps, epoch after epoch without end."""
    return draw_epochs(
        examples,
        drawing.weights,
        drawing.size,
        f"{drawing.seed}:pairs",
        lambda example, chance: _draw(example, drawing, chance),
        lambda one: sum(len(older) + len(newer) for older, newer in one.pairs) // len(one.pairs),
    )


def _draw(one: PairExample, drawing: Drawing, chance: random.Random) -> Drawn | None:
    numbers = _draw_numbers(one, drawing, chance)
    if not numbers:
        return None
    with_speaker, with_before = chance.random() >= drawing.unnamed, chance.random() >= drawing.bare

    def read(words: Words) -> str:
        text, speaker, before = words
        return pair_text(text, speaker if with_speaker else "", before if with_before else "")

    newer = read(one.newer)
    pairs = tuple((read(one.olders[number]), newer) for number in numbers)
    return Drawn(pairs, tuple(one.labels[number] for number in numbers))


def _draw_numbers(one: PairExample, drawing: Drawing, chance: random.Random) -> list[int]:
    """The numbers of the earlier statements that stand in a step."""
    numbers = range(len(one.labels))
    related = [number for number in numbers if one.labels[number] != OTHER]
    unrelated = [number for number in numbers if one.labels[number] == OTHER][: drawing.hardest]
    drawn = chance.sample(related, min(drawing.related, len(related)))
    if one.source != PLAIN and not related:
        drawn, unrelated = unrelated[:1], unrelated[1:]
    return drawn + chance.sample(unrelated, min(drawing.others, len(unrelated)))
