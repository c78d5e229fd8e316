"""The ids that the audit trail keeps of an answer, for each kind of answer.

Those of conversations and files begin with `DIGESTED`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from anaphora.values.actions import DIGESTED

if TYPE_CHECKING:
    from anaphora.values.context import ContextMemory
    from anaphora.values.conversations import Recall, TurnHit
    from anaphora.values.deep import DeepAnswer, DeepSource
    from anaphora.values.documents import Document
    from anaphora.values.memories import CoreBlock, MemoryHit, MemoryRecord, Page
    from anaphora.values.projects import RecallPackage, WarmUp
    from anaphora.values.search import SearchHit


def of_record(record: MemoryRecord) -> Iterator[str]:
    """That of a memory or note."""
    yield record.id


def of_records(records: Iterable[MemoryRecord | Document]) -> Iterator[str]:
    """Those of memories or documents."""
    return (record.id for record in records)


def of_page(page: Page[MemoryRecord]) -> Iterator[str]:
    """Those of the memories of a page."""
    return of_records(page.items)


def of_core_block(block: CoreBlock) -> Iterator[str]:
    """Those of its memories, and of those for which there was no room."""
    return (entry.id for entry in (*block.entries, *block.left_out))


def of_memories(recall: Recall[MemoryHit]) -> Iterator[str]:
    """Those of recalled memories."""
    return (hit.id for hit in (*recall.hits, *recall.nearest))


def of_turns(recall: Recall[TurnHit]) -> Iterator[str]:
    """Those of the conversations of recalled turns."""
    return (DIGESTED + hit.conversation_id for hit in (*recall.hits, *recall.nearest))


def of_search(recall: Recall[SearchHit]) -> Iterator[str]:
    """Those of what a search found; of turns and tool calls that of their conversation."""
    return _of_sources((*recall.hits, *recall.nearest))


def of_deep_answer(answer: DeepAnswer) -> Iterator[str]:
    """Those of its sources; of turns that of their conversation."""
    return _of_sources(answer.sources)


def of_package(package: RecallPackage) -> Iterator[str]:
    """Those of the sections and notes in a package."""
    return _of_context(package.memories)


def of_warm_up(warm_up: WarmUp) -> Iterator[str]:
    """Those of what a new session is told, and of the last sessions."""
    context = chain(
        warm_up.core,
        warm_up.constraints,
        warm_up.preferences,
        warm_up.decisions,
        warm_up.blockers,
        warm_up.changed,
        warm_up.facts,
        warm_up.diary,
    )
    yield from _of_context(context)
    yield from (DIGESTED + session.id for session in warm_up.sessions)


def _of_sources(sources: Iterable[SearchHit | DeepSource]) -> Iterator[str]:
    for source in sources:
        if source.kind in {"turn", "tool_call"}:
            yield DIGESTED + (source.conversation_id or "")
        elif source.kind == "file":
            yield DIGESTED + source.id
        elif source.id:
            yield source.id


def _of_context(memories: Iterable[ContextMemory]) -> Iterator[str]:
    for memory in memories:
        if memory.kind == "file":
            yield DIGESTED + memory.id
        elif memory.id:
            yield memory.id
