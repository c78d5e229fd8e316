"""How far may a recall package be trusted? A label for the targets of one focus.

In: ranked targets, how they were found. Out: "strong", "partial" or "weak", and the number behind
it. Pure. The label is no claim that an answer is right: it says how much to verify.

    support = grounded score of the best target · min(3, how many times that of the sixth it is)

A focus that is about something here matches much of what it says in one place, and matches there
far better than in any odd file; a focus about something else matches a little everywhere. Meaning,
recency and roles are not in it. The marks were set on two repositories, and on questions asked of
projects that they are not about; bench/results/project.md has what they are worth on others.
"""

from __future__ import annotations

from typing import Final

from anaphora.context_values import Quality
from anaphora.rank.context_files import TargetScores

__all__ = ["PARTIAL", "STRONG", "quality_of", "support_of"]

STRONG: Final = 2.4
PARTIAL: Final = 1.0

SECOND: Final = 0.4
"""The grounded score of a second target that makes strong evidence more than one target."""

DISTINCT: Final = 3.0
"""So many times the sixth target's score is as distinct as need be."""

_ODD: Final = 5
_NOTHING: Final = 0.01


def support_of(targets: TargetScores) -> float:
    """The support of the best target: 0 where there is none, no upper bound."""
    if not len(targets):
        return 0.0
    # Targets are in the order of their whole scores; this is about words and names alone.
    grounded = sorted(targets.grounded.tolist(), reverse=True)
    odd = grounded[_ODD] if len(grounded) > _ODD else 0.0
    return float(grounded[0] * min(DISTINCT, grounded[0] / (odd + _NOTHING)))


def quality_of(targets: TargetScores) -> Quality:
    """The label of a focus whose targets are these."""
    support = support_of(targets)
    if support >= STRONG and (targets.grounded >= SECOND).sum() > 1:
        return "strong"
    return "partial" if support >= PARTIAL else "weak"
