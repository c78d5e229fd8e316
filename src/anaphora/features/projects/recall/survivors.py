"""Finds sections and notes that still contain what was forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from anaphora.features.projects.index.state import SectionQuery
from anaphora.recall.survivors import STEPS
from anaphora.values.memories import SurvivingSource

if TYPE_CHECKING:
    from anaphora.features.projects.index.index import SectionIndex
    from anaphora.features.projects.store.notes import Notes
    from anaphora.recall.identifiers import Identifier


def find_survivors(
    identifier: Identifier, index: SectionIndex, notes: Notes, now: datetime
) -> Iterator[SurvivingSource]:
    """Sections of files, and notes, that contain an identifier: past ones too."""
    moment = round(now.timestamp() * 1e6)
    for past in (False, True):
        weights = dict.fromkeys(identifier.terms, 1.0)
        query = SectionQuery(weights, STEPS[1], moment, terms=len(weights), past=past)
        candidates = index.candidates(query)
        ids = [candidates.table.ids[row] for row in candidates.rows.tolist()]
        for section_id, section in index.texts(ids).items():
            if identifier.held_by(section.text):
                yield SurvivingSource("section", section_id)
        for note_id, note in notes.many(ids).items():
            if identifier.held_by(note.record.text):
                yield SurvivingSource(note.kind, note_id)
