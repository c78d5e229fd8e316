"""Tries the laws on a number of homes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from random import Random

import tools.laws.form
import tools.laws.marks
import tools.laws.order
import tools.laws.surfaces  # noqa: F401 - each registers its laws
from tools.laws.asking import Asker
from tools.laws.homes import LANES, Home, Lane
from tools.laws.trial import LAWS, Law, Tally, Trial


def names_of_laws() -> list[str]:
    """The names under which cases are counted."""
    return [name for law in LAWS for name in law.names]


def law_of(name: str) -> Law:
    """The law that counts cases under a name."""
    return next(law for law in LAWS if name in law.names)


def try_homes(
    homes: Iterable[Home],
    seed: int,
    *,
    tally: Tally,
    asker: Asker | None = None,
    laws: Collection[str] = (),
    lanes: Collection[Lane] = LANES,
    on_home: Callable[[int], None] = lambda number: None,
) -> None:
    """Try laws (by their names, () for all) on homes, and count in `tally`."""
    asker = asker or Asker()
    chosen = [law for law in LAWS if not laws or any(_meant(law.names, one) for one in laws)]
    for number, home in enumerate(homes):
        with asker.opened():
            for lane in home.lanes:
                if lane not in lanes:
                    continue
                trial = Trial(asker, home, lane, Random(f"{seed}:{home.name}:{lane}"), tally)
                for law in chosen:
                    if home.kind in law.kinds:
                        law.check(trial)
        on_home(number)


def _meant(names: Iterable[str], wanted: str) -> bool:
    return any(name == wanted or name.startswith(f"{wanted}-") for name in names)
