"""Which questions and pairs stand in which step of training: decided by the seed and the step.

So a run that goes on where it stopped sees what it would have seen. Nothing here needs torch.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tools.models.batches import draw_epochs
from tools.reader.examples import ANSWER_CLASSES, CHANGE_CLASSES, AnswerExample, ChangeExample

ANSWERS, ABOUT, NOT = range(len(ANSWER_CLASSES))
UNCLEAR: Final = len(ANSWER_CLASSES)
"""No answer; whether about the question is not known."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a step with the statements beside it, and the label of each.

    Where something answers it, that stands first.
    """

    key: str
    query: str
    statements: tuple[str, ...]
    labels: tuple[int, ...]

    @property
    def answered(self) -> bool:
        """Whether the first statement answers it."""
        return self.labels[0] == ANSWERS


@dataclass(frozen=True, slots=True)
class Paired:
    """An earlier and a later statement of a step; the question may be empty."""

    key: str
    question: str
    older: str
    newer: str
    label: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """How examples are drawn.

    `weights` say how often a source's examples come in one epoch (1 where it has none). A step has
    `size` questions with `candidates` statements each and `pairs` pairs. Others are drawn from the
    first `hardest`; `about` and `unclear` are the shares of questions that get such a statement
    where they have one, `styled` the share that is typed in another style, `silent` the share of
    pairs that are judged without their question.
    """

    weights: Mapping[str, float]
    size: int = 8
    candidates: int = 5
    pairs: int = 8
    hardest: int = 16
    about: float = 0.7
    unclear: float = 0.3
    styled: float = 0.35
    silent: float = 0.4
    seed: int = 1


def draw_steps(
    answers: Sequence[AnswerExample], changes: Sequence[ChangeExample], drawing: Drawing
) -> Iterator[tuple[list[Asked], list[Paired]]]:
    """The batches of all steps, epoch after epoch of each kind without end.

    Without pairs, or with `pairs` 0, no step has any.
    """
    asked = draw_epochs(
        answers,
        drawing.weights,
        drawing.size,
        f"{drawing.seed}:answers",
        lambda example, chance: _draw_asked(example, drawing, chance),
        _asked_length,
    )
    if not changes or not drawing.pairs:
        for batch in asked:
            yield batch, []
    paired = draw_epochs(
        changes,
        drawing.weights,
        drawing.pairs,
        f"{drawing.seed}:changes",
        lambda example, chance: _draw_paired(example, drawing, chance),
        _paired_length,
    )
    yield from zip(asked, paired, strict=True)


def _draw_asked(one: AnswerExample, drawing: Drawing, chance: random.Random) -> Asked | None:
    query = one.queries[0][1]
    if len(one.queries) > 1 and chance.random() < drawing.styled:
        query = chance.choice(one.queries[1:])[1]
    chosen: list[tuple[str, int]] = []
    if one.answers:
        chosen.append((chance.choice(one.answers), ANSWERS))
    if one.about and chance.random() < drawing.about:
        chosen.append((chance.choice(one.about), ABOUT))
    if one.unclear and chance.random() < drawing.unclear:
        chosen.append((chance.choice(one.unclear), UNCLEAR))
    others = one.others[: drawing.hardest]
    free = min(len(others), drawing.candidates - len(chosen))
    chosen += [(text, NOT) for text in chance.sample(others, max(0, free))]
    if not chosen:
        return None
    return Asked(one.key, query, tuple(t for t, _ in chosen), tuple(label for _, label in chosen))


def _draw_paired(one: ChangeExample, drawing: Drawing, chance: random.Random) -> Paired:
    question = ""
    if one.questions and chance.random() >= drawing.silent:
        question = chance.choice(one.questions)
    return Paired(one.key, question, one.older, one.newer, CHANGE_CLASSES.index(one.verdict))


def _asked_length(one: Asked) -> int:
    return sum(map(len, one.statements)) // len(one.statements)


def _paired_length(one: Paired) -> int:
    return len(one.question) + len(one.older) + len(one.newer)
