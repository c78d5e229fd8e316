"""The ids that the audit trail keeps of an answer, for each kind of answer.

Those of conversations and files begin with `DIGESTED`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from anaphora.values.actions import DIGESTED

if TYPE_CHECKING:
    from anaphora.values.context import ContextMemory
    from anaphora.values.conversations import Recall, TurnHit
    from anaphora.values.memories import CoreBlock, MemoryHit, MemoryRecord, Page
    from anaphora.values.search import SearchHit


class Identified(Protocol):
    """A value with an id: a memory, a note, a document."""

    @property
    def id(self) -> str: ...  # noqa: D102 - as in every value


class AnswerSource(Identified, Protocol):
    """What an answer is from; a turn or tool call has a conversation."""

    @property
    def kind(self) -> str: ...  # noqa: D102

    @property
    def conversation_id(self) -> str | None: ...  # noqa: D102


def of_record(record: Identified) -> Iterator[str]:
    """That of a memory, note or document."""
    yield record.id


def of_records(records: Iterable[Identified]) -> Iterator[str]:
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
    return of_sources((*recall.hits, *recall.nearest))


def of_sources(sources: Iterable[AnswerSource]) -> Iterator[str]:
    """Those of what an answer is from; of turns and tool calls that of their conversation."""
    for source in sources:
        if source.kind in {"turn", "tool_call"}:
            yield DIGESTED + (source.conversation_id or "")
        elif source.kind == "file":
            yield DIGESTED + source.id
        elif source.id:
            yield source.id


def of_context(memories: Iterable[ContextMemory]) -> Iterator[str]:
    """Those of memories, and of sections of files."""
    for memory in memories:
        if memory.kind == "file":
            yield DIGESTED + memory.id
        elif memory.id:
            yield memory.id
