"""The lane of documents, by their sections."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from anaphora.features.documents.kinds import DOCUMENT
from anaphora.recall.lanes import Lane, LaneAnswer, LaneHit, SearchRequest, make_answer
from anaphora.recall.memory_lane import make_record_hit, search_records
from anaphora.store.records.titles import part_title
from anaphora.values.memories import MemoryHit

if TYPE_CHECKING:
    from anaphora.recall.memories import MemoryRecall


def document_lane(lane_if_any: Callable[[], MemoryRecall | None]) -> Lane:
    """The lane over sections; `lane_if_any` gives None where no document was added.

    A document belongs to no project.
    """
    return Lane(
        "documents",
        (DOCUMENT,),
        frozenset(("tags", "times")),
        partial(_search_documents, lane_if_any),
    )


def _search_documents(
    lane_if_any: Callable[[], MemoryRecall | None], request: SearchRequest
) -> LaneAnswer:
    sections = lane_if_any()
    if sections is None:
        return LaneAnswer()
    recall = search_records(sections, request)
    records = sections.source.many(hit.id for hit in (*recall.hits, *recall.nearest))

    def convert(hit: MemoryHit, score: float) -> LaneHit:
        record = records.get(hit.id)
        title = "" if record is None else part_title(record)
        return LaneHit(make_record_hit(DOCUMENT, hit, title, request), score)

    return make_answer(recall, convert)
