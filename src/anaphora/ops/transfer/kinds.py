"""The kinds of lines of an export: those of the kernel, and those of features."""

from __future__ import annotations

from functools import partial
from typing import Final

from anaphora.container.feature import LineKind, load, registered
from anaphora.ops.transfer.memories import LinkReader, MemoryReader, memory_lines
from anaphora.ops.transfer.sessions import SessionReader, session_lines
from anaphora.ops.transfer.threads import NoteReader, ThreadReader, note_lines

_KERNEL: Final = (
    # Threads are written before the moment of the others, from live data.
    LineKind(("thread", "turn"), 0, lambda _: (), ThreadReader),
    LineKind(
        ("conversation_note", "turn_note", "forgotten_turn"),
        10,
        lambda source: note_lines(source.services, source.hashes),
        NoteReader,
    ),
    LineKind(
        ("session_place", "project_pair", "tool_call"),
        20,
        lambda source: session_lines(source.services, source.hashes),
        SessionReader,
    ),
    LineKind(
        ("memory",),
        30,
        lambda source: memory_lines(
            source.services, source.problems, partial(source.tell, "memories")
        ),
        MemoryReader,
    ),
    # Written with their memories.
    LineKind(("link",), 31, lambda _: (), LinkReader),
)


def line_kinds() -> tuple[LineKind, ...]:
    """All kinds, in the order of the file: references come after their targets."""
    references = (feature.line_kinds for feature in registered() if feature.line_kinds)
    of_features = (kind for reference in references for kind in load(reference))
    return tuple(sorted((*_KERNEL, *of_features), key=lambda kind: kind.order))
