"""Ranks what was found for a focus, and says how far it may be trusted.

In: candidates, the reading. Out: scores of rows and targets, and the quality label. The weighing
itself is `rank.context`'s; this brings together what it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from anaphora.rank.context.files import rank_targets
from anaphora.rank.context.modules import Modules
from anaphora.rank.context.names import PathNames
from anaphora.rank.context.quality import quality_of
from anaphora.rank.context.sections import Ask, Signals, holdable, rank_rows
from anaphora.recall.context.excerpt import Excerpts
from anaphora.recall.context.ranked import Asked, Ranked
from anaphora.recall.context.words import FocusWords
from anaphora.values.projects import Quality

if TYPE_CHECKING:
    from anaphora.rank.context.table import SectionTable
    from anaphora.recall.context.search import Found

DEFINES: Final = 0.4
"""Defining what the focus names, beside being named by a path, which is 1: for a short focus that
names little else. Chosen, not fitted."""


class Ranker:
    """Ranks for one index; what it makes of a table's file names it keeps for the next question."""

    def __init__(self) -> None:
        self._names: tuple[SectionTable, PathNames, Modules] | None = None

    def rank(
        self, asked: Asked, found: Found, now: int, defined: Mapping[tuple[str, str], float]
    ) -> tuple[Ranked, Quality]:
        """Scores of all candidates; `now` in microseconds.

        `defined` are files, by project and path, that define what the focus calls by its name,
        and how surely it is meant.
        """
        some, words = found.candidates, found.candidates.words
        signals = Signals(
            rows=some.rows,
            path=words.path,
            title=words.title,
            body=words.body,
            held=words.held,
            mass=some.mass,
            cosine=some.cosine,
            most=holdable(some.weights.values()),
        )
        path_names, modules = self._known(some.table)
        by_name = _named(asked, some.table, path_names)
        named = dict(by_name)
        for code, sure in _codes(some.table, defined):
            named[code] = max(named.get(code, 0.0), DEFINES * sure)
        ask = Ask(
            intents=asked.focus.intents,
            now=now / 1e6,
            named=named,
            log=asked.reading.log,
        )
        rows = rank_rows(some.table, signals, ask)
        targets = rank_targets(some.table, signals, ask, rows)
        ranked = Ranked(
            candidates=some,
            rows=rows,
            targets=targets,
            words=FocusWords(asked.focus.statements, some.weights),
            excerpts=Excerpts(some.weights),
            by_name=frozenset(by_name),
            modules=modules,
        )
        # What only parts of words have found is a lead at best.
        if found.rung != "words":
            return ranked, "weak"
        return ranked, quality_of(targets, len(asked.reading.weights))

    def _known(self, table: SectionTable) -> tuple[PathNames, Modules]:
        known = self._names
        if known is None or known[0] is not table:
            files = table.files
            modules = Modules(files.paths, files.project.tolist())
            known = self._names = (table, PathNames(files.paths), modules)
        return known[1], known[2]


def _named(asked: Asked, table: SectionTable, known: PathNames) -> dict[int, float]:
    """The files that the focus calls by name, by code."""
    names = [(one.text, one.kind, one.weight) for one in asked.reading.mentions]
    found = known.named(names) if names else {}
    of = table.files.project
    return {c: sure for c, sure in found.items() if table.projects[of[c]] in asked.projects}


def _codes(
    table: SectionTable, defined: Mapping[tuple[str, str], float]
) -> Iterator[tuple[int, float]]:
    if not defined:
        return
    wanted = {path for _, path in defined}
    for code, path in enumerate(table.files.paths):
        if path in wanted:
            key = (table.projects[int(table.files.project[code])], path)
            if key in defined:
                yield code, defined[key]
