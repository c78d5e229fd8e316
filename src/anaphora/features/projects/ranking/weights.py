"""What each signal of the context ranking counts, and why.

The forms and the orders of magnitude were chosen looking at the repositories of the benchmark, so
that its figures describe these and promise less of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from anaphora.features.projects.values import Intent
from anaphora.values.files import SourceRole

RoleFit = Mapping[SourceRole, Mapping[Intent | None, float]]

ROLE_FIT: Final[RoleFit] = MappingProxyType(
    {
        # Tests repeat the words of what they test. Asked for, they stand equal.
        "test": {None: -0.25, "tests": 0.25},
        # Prose holds every word; it is the place to change when the task is about documents.
        "docs": {None: -0.1, "docs": 0.4},
        "package_config": {None: 0.1, "setup": 0.2},
        "tooling": {None: 0.1, "setup": 0.2},
        "code": {"implementation": 0.15},
        # Not to be fitted here (no repository has them): the seed's signs at half their size.
        "generated": {None: -0.3},
        "agent_config": {None: -0.2, "setup": 0.2, "decisions": 0.2},
        "plan": {None: -0.1, "decisions": 0.2, "history": 0.1},
    }
)
"""What is added for a role, always (None) and for each intent that the focus has; the factor is
exp of the sum. The seed adds points (agent and generated files +20 or -60, code, tests and package
configuration +15, documents -10 for implementation and +10 else). A sum favours a role by the same
points in a short question, where a match is worth much, and in a bug report, where it is worth
little; a factor favours it alike in both."""


@dataclass(frozen=True, slots=True)
class SignalWeights:
    """Weights of the six signals. A full match of all terms, once each, is about 1.

    Rows:
    - `title`: a match in a section's name, beside the same match in its body, which holds it too.
    - `row_path`: a match in the path. It speaks for the file more than for one part of it.
    - `row_named`: being in a file that the focus names.
    - `meaning`: a cosine of 1. It re-ranks what a word found.
    - `recent`: what was changed today gains a tenth, falling in a straight line to nothing at
      `recent_days`: the seed's line. It breaks ties and no more; no data here has times to fit by.
    - `size`: what fills a whole budget loses a tenth.
    - `importance`: what each step of a note's importance below 5 takes away; a section counts as 4.
    - `trust`: a generated file repeats what another one says.

    Files, out of their rows:
    - `others`, `decay`: the n-th best other section counts others · decay ** n of its match: many
      places that speak of the focus are evidence, but a huge file gains no more by being huge.
    - `path`: a file or folder that is named for what it does says so in its path.
    - `file_title`: the best match among the names of a file's sections.
    - `named`: a file that the focus calls by its path or module is meant, whatever else matches.
    - `file_meaning`: the closest of its sections that have a word in common with the focus.
    - `log`: a change log names everything that was ever changed, and is not the place to change it.
    """

    title: float = 0.5
    row_path: float = 0.5
    row_named: float = 0.3
    meaning: float = 0.4
    recent: float = 0.1
    recent_days: float = 20.0
    size: float = 0.1
    importance: float = 0.06
    others: float = 0.3
    decay: float = 0.7
    path: float = 1.4
    file_title: float = 0.4
    named: float = 1.0
    file_meaning: float = 0.4
    log: float = -1.5
    roles: RoleFit = field(default_factory=lambda: ROLE_FIT)
    trust: Mapping[SourceRole, float] = field(
        default_factory=lambda: {"generated": 0.6, "unknown": 0.9}
    )


DEFAULT_WEIGHTS: Final = SignalWeights()
