"""Which questions stand in which step of training: decided by the seed and the step alone.

So a run that goes on where it stopped sees what it would have seen. Nothing here needs torch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol, TypeVar

from tools.models.examples import LONG, MEANT, Example

# Within so many batches examples are put together by their length: padding costs as much as text.
_SORTED = 24


class Sourced(Protocol):
    """An example that says from which source it is."""

    @property
    def source(self) -> str:
        """The name of the source."""


SourcedT = TypeVar("SourcedT", bound=Sourced)
DrawnT = TypeVar("DrawnT")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A question of a step: how it is typed this time, and what stands beside it."""

    example: Example
    query: str
    positive: str
    negatives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """How questions are drawn. `weights` say how often a source's questions come in one epoch (1
    where it has none); `styled` is the share that is typed in another style, `meant` of those
    that name a speaker the share that is asked as the product reads it; negatives are drawn from
    the first `hardest`, so many `negatives` a question."""

    weights: Mapping[str, float]
    size: int = 16
    negatives: int = 2
    hardest: int = 10
    styled: float = 0.35
    meant: float = 0.5
    seed: int = 1


def draw_steps(examples: Sequence[Example], drawing: Drawing) -> Iterator[list[Drawn]]:
    """The batches of all steps, epoch after epoch without end."""
    yield from draw_epochs(
        examples,
        drawing.weights,
        drawing.size,
        f"{drawing.seed}",
        lambda example, chance: _draw(example, drawing, chance),
        _length,
    )


def draw_epochs(
    examples: Sequence[SourcedT],
    weights: Mapping[str, float],
    size: int,
    seed: str,
    draw: Callable[[SourcedT, random.Random], DrawnT | None],
    length: Callable[[DrawnT], Any],
) -> Iterator[list[DrawnT]]:
    """Batches of `size` epoch after epoch without end, decided by the seed; `draw` may give none.

    Raises SystemExit where an epoch does not fill a batch.
    """
    for epoch in count():
        chance = random.Random(f"{seed}:{epoch}")
        visited = visit_examples(examples, weights, chance)
        drawn = [one for one in (draw(example, chance) for example in visited) if one is not None]
        if len(drawn) < size:
            raise SystemExit(f"{len(drawn)} examples do not fill a batch of {size}")
        yield from group_by_length(drawn, size, length, chance)


def epoch_length(examples: Sequence[Sourced], weights: Mapping[str, float], size: int) -> int:
    """About how many steps of `size` examples an epoch has."""
    visits = sum(weights.get(example.source, 1.0) for example in examples)
    return max(1, int(visits) // size)


def held_apart(drawn: Sequence[Drawn], passages: Sequence[str]) -> list[list[bool]]:
    """For each question, which passages of the batch must not count against it.

    These are its other positives, what is neutral to it, and what answers another question of its
    story. Its own positive, at its own place, is never held apart.
    """
    evidence: dict[str, set[str]] = {}
    for one in drawn:
        evidence.setdefault(one.example.group, set()).update(one.example.positives)
    masks = []
    for place, one in enumerate(drawn):
        apart = {*one.example.positives, *one.example.neutral, *evidence[one.example.group]}
        # A negative of its own stays one, even where another question of the story asks for it:
        # it was looked at for this one.
        apart -= set(one.negatives)
        masks.append([text in apart and at != place for at, text in enumerate(passages)])
    return masks


def visit_examples(
    examples: Sequence[SourcedT], weights: Mapping[str, float], chance: random.Random
) -> list[SourcedT]:
    """The examples of one epoch in a drawn order, each source as often as it weighs (1: once)."""
    visited: list[SourcedT] = []
    for example in examples:
        whole, rest = divmod(weights.get(example.source, 1.0), 1.0)
        visited += [example] * (int(whole) + (chance.random() < rest))
    chance.shuffle(visited)
    return visited


def _draw(example: Example, drawing: Drawing, chance: random.Random) -> Drawn:
    query = example.query
    # Nobody mistypes a docstring, or what was stored as a fact.
    others = () if example.source in {"code", "documents", "told"} else example.queries[1:]
    # Where a question names a speaker, the product asks without the name.
    meant = [text for style, text in others if style == MEANT]
    styled = [text for style, text in others if style != MEANT]
    if meant and chance.random() < drawing.meant:
        query = meant[0]
    elif styled and chance.random() < drawing.styled:
        query = chance.choice(styled)
    misleading = example.negatives[: drawing.hardest]
    count = min(drawing.negatives, len(misleading))
    return Drawn(
        example, query, chance.choice(example.positives), tuple(chance.sample(misleading, count))
    )


def group_by_length(
    drawn: Sequence[DrawnT], size: int, length: Callable[[DrawnT], Any], chance: random.Random
) -> Iterator[list[DrawnT]]:
    """Batches of `size` of about one length, in a drawn order; what fills none is left out."""
    window = size * _SORTED
    for start in range(0, len(drawn), window):
        alike = sorted(drawn[start : start + window], key=length)
        batches = [alike[at : at + size] for at in range(0, len(alike) - size + 1, size)]
        chance.shuffle(batches)
        yield from batches


def _length(one: Drawn) -> tuple[bool, int]:
    # Long passages stand together: what is cut early is not padded to their length.
    return one.example.lane == LONG, max(len(text) for text in (one.positive, *one.negatives))
