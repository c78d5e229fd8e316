"""The shortcut: where the best hits are sure to lead to the evidence, no model is asked.

In: a question and the evidence of its scope. Out: the hits that are sure, by the chance that a
search gives them, and the evidence itself as text. Questions of counting, order, time and
completeness never take it, however sure the hits are. It calls no model and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from anaphora.deep.evidence.scoped import MEMORY, ScopedEvidence
from anaphora.deep.reading import asks_about_the_whole
from anaphora.errors import NotFound
from anaphora.rank.budget import token_cost
from anaphora.rank.confidence import (
    REACH,
)
from anaphora.values.deep import DeepSource

SURE: Final = 0.8
NEEDED: Final = 3
BUDGET: Final = 2_500
"""Tokens of the evidence that is given back: hits first, then their neighbours, nearest first."""


def shortcut(scoped: ScopedEvidence, question: str) -> tuple[DeepSource, ...]:
    """The hits of which at least three are sure; empty where a model must look."""
    if asks_about_the_whole(question) is not None:
        return ()
    sure = tuple(one for one in scoped.weighed(question) if (one.score or 0.0) >= SURE)
    return sure if len(sure) >= NEEDED else ()


def best_evidence(
    scoped: ScopedEvidence, hits: Iterable[DeepSource], budget: int = BUDGET
) -> tuple[DeepSource, ...]:
    """The hits and their neighbourhoods within a budget of tokens, each conversation in its order.

    Hits come before neighbours, near neighbours before far ones; one hit at least.
    """
    wanted = list(dict.fromkeys(hits))
    taken: dict[str, DeepSource] = {}
    left = budget
    for one in (*wanted, *_neighbours(scoped, wanted)):
        cost = token_cost(one.text)
        if one.id not in taken and (cost <= left or not taken):
            taken[one.id] = one
            left -= cost
    order = {name: at for at, name in enumerate(dict.fromkeys(_place(one) for one in wanted))}
    return tuple(sorted(taken.values(), key=lambda one: (order[_place(one)], one.index or 0)))


def shown(sources: Sequence[DeepSource]) -> str:
    """Evidence as text for an agent: one line a turn, with who said it, when, and its id."""
    lines = []
    for one in sources:
        when = f" {one.ts:%Y-%m-%d %H:%M}" if one.ts is not None and one.ts.year > 1 else ""
        who = one.role or "memory"
        lines.append(f"[{one.id}{when}] {who}: {' '.join(one.text.split())}")
    return "\n".join(lines)


def _place(one: DeepSource) -> str:
    return one.conversation_id or MEMORY


def _neighbours(scoped: ScopedEvidence, hits: Sequence[DeepSource]) -> list[DeepSource]:
    around: list[tuple[int, int, DeepSource]] = []
    for rank, hit in enumerate(hits):
        if hit.conversation_id is None or hit.index is None:
            continue
        first = max(0, hit.index - REACH)
        try:
            near = scoped.transcript(hit.conversation_id, first, hit.index + REACH + 1)
        except NotFound:
            continue  # It went while the question was under way.
        around += [
            (abs((one.index or 0) - hit.index), rank, one) for one in near if one.id != hit.id
        ]
    return [one for _, _, one in sorted(around, key=lambda item: item[:2])]
