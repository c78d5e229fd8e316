"""Tells files, and notes, that are nearly the same, so that one of them speaks for all.

In: places that may be targets, with the words by which they were found. Out: whether a better one
says nearly the same. Files are the same where their best sections are and their whole texts too:
two that share a licence or a heading are not. It ranks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from anaphora.rank.context.choice import alike, shingles

if TYPE_CHECKING:
    from anaphora.index.sections.index import SectionIndex
    from anaphora.recall.context.ranked import Ranked
    from anaphora.store.projects.source import SectionText

_SKETCHED: Final = 1_000
"""Characters by which two texts are compared first."""
_SECTIONS: Final = 40
"""Sections of a file that are compared; who agrees in so many is the same."""


@dataclass(slots=True)
class Candidate:
    """A place among the ranked targets: the key of its best section or note, and its words.

    `alike` counts worse ranked ones that say nearly the same.
    """

    place: int
    key: str
    is_note: bool
    text: str
    section: SectionText | None = None
    alike: int = 0


class Twins:
    """What one question has compared so far."""

    def __init__(self, ranked: Ranked, index: SectionIndex) -> None:
        self._ranked = ranked
        self._index = index
        self._sketches: dict[int, frozenset[int]] = {}
        self._files: dict[int, frozenset[int]] = {}

    def texts(self, keys: Iterable[str]) -> dict[str, SectionText]:
        """The sections of these keys that are still there."""
        return self._index.texts(keys)

    def of(self, one: Candidate, kept: Sequence[Candidate]) -> bool:
        """Whether one that was kept says nearly the same: it then counts this one."""
        mine = self._sketch(one)
        for other in kept:
            if one.is_note != other.is_note or not alike(mine, self._sketch(other)):
                continue
            if one.is_note or alike(self._file(one), self._file(other)):
                other.alike += 1
                return True
        return False

    def _sketch(self, one: Candidate) -> frozenset[int]:
        if one.place not in self._sketches:
            self._sketches[one.place] = shingles(one.text[:_SKETCHED].split())
        return self._sketches[one.place]

    def _file(self, one: Candidate) -> frozenset[int]:
        if one.place not in self._files:
            table = self._ranked.candidates.table
            rows = np.flatnonzero(table.file == self._ranked.targets.files[one.place])
            rows = rows[np.argsort(table.start_line[rows], kind="stable")][:_SECTIONS]
            ids = [table.ids[row] for row in rows.tolist()]
            texts = self._index.texts(ids)
            words = [word for key in ids if key in texts for word in texts[key].text.split()]
            self._files[one.place] = shingles(words)
        return self._files[one.place]
