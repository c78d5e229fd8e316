"""How far may a recall package be trusted? A label for the targets of one focus.

In: ranked targets, how many terms the focus has. Out: "strong", "partial" or "weak", and the number
behind it. Pure. The label is no claim that an answer is right: it says how much to verify.

    support = best · min(4, mean of the first three / mean of the next seven) · sqrt(min(16, terms))

of the targets' grounded scores, in which meaning, recency and roles are not. A focus that is about
something here matches much of what it says in a few places, and there far better than in the places
after them; a focus about something else matches a little everywhere. The same share of a longer
focus is more evidence. The form was chosen looking at four repositories, against questions asked of
projects that they are not about. `python -m bench.fit_project` sets the marks anew without each
repository in turn, and bench/results/project_ablation.md has what they are then worth on it.
"""

from __future__ import annotations

from typing import Final

from anaphora.rank.context.files import TargetScores
from anaphora.values.projects import Quality

STRONG: Final = 6.5
PARTIAL: Final = 2.4

SECOND: Final = 0.4
"""The grounded score of a second target that makes strong evidence more than one target."""

DISTINCT: Final = 4.0
"""So many times the score of the places after them is as distinct as need be."""

TERMS: Final = 16
"""More terms than this are no more evidence."""

_FIRST: Final = 3
_AFTER: Final = 7
_NOTHING: Final = 0.05


def support_of(targets: TargetScores, terms: int) -> float:
    """The support of the best targets: 0 where there is none, 4 · 4 times a full match at most."""
    if not len(targets):
        return 0.0
    # Targets are in the order of their whole scores; this is about words and names alone.
    grounded = sorted(targets.grounded.tolist(), reverse=True)
    first = sum(grounded[:_FIRST]) / _FIRST
    after = sum(grounded[_FIRST : _FIRST + _AFTER]) / _AFTER
    distinct = min(DISTINCT, first / (after + _NOTHING))
    return float(grounded[0] * distinct * min(TERMS, terms) ** 0.5)


def quality_of(targets: TargetScores, terms: int) -> Quality:
    """The label of a focus of so many terms whose targets are these."""
    support = support_of(targets, terms)
    if support >= STRONG and (targets.grounded >= SECOND).sum() > 1:
        return "strong"
    return "partial" if support >= PARTIAL else "weak"
