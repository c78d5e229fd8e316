"""What the audit trail of a namespace is told of answers and of conversations.

Changes of memories and notes are told where they are written, in the same transaction
(`store/audit`). What is told here comes after it was done, and before the caller has the answer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from anaphora.values.conversations import TurnHit
from anaphora.values.memories import MemoryRecord

if TYPE_CHECKING:
    from anaphora.store.audit import AuditTrail
    from anaphora.values.audit import AuditAction

_TURN: Final = "turn"
_THREADS: Final = "#"
"""Prefix of ids of conversations and files, which the trail stores as digests."""
_CHANGES: Final[dict[str, AuditAction]] = {
    "extend": "remembered",
    # Imports of thread files, and changes by other devices.
    "add_exact": "remembered",
    "_replace_turns": "changed",
    "delete": "forgotten",
    "redact": "forgotten",
    "set_title": "changed",
}


def tell_of_threads(trail: AuditTrail, store: Any) -> None:
    """Make a store of conversations record every change in the trail."""
    for name, action in _CHANGES.items():
        if hasattr(store, name):
            setattr(store, name, _recording(trail, action, getattr(store, name)))


def tell_of_turns(trail: AuditTrail, action: AuditAction, conversation_id: str, count: int) -> None:
    """Record a change of a conversation, if the trail is on."""
    if trail.is_on():
        trail.add(action, _TURN, [_THREADS + conversation_id], count=count, question="")


def _recording(
    trail: AuditTrail, action: AuditAction, method: Callable[..., Any]
) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(conversation_id: str, *args: Any, **named: Any) -> Any:
        outcome = method(conversation_id, *args, **named)
        if outcome:
            count = _count_turns(method.__name__, outcome, args)
            tell_of_turns(trail, action, conversation_id, count)
        return outcome

    return call


def _count_turns(name: str, done: Any, args: tuple[Any, ...]) -> int:
    """How many turns were affected; a title, and a whole conversation, count as one."""
    if isinstance(done, range):
        return len(done)
    return len(args[0]) if name == "add_exact" and args else 1


def ids_of(found: object) -> Iterator[str]:
    """The ids in an answer of any form."""
    for part in _PARTS:
        for part_ in getattr(found, part, ()):
            yield from _id_of(part_, thread=part == "sessions")
    if isinstance(found, tuple):
        for part_ in found:
            yield from _id_of(part_)
    elif isinstance(found, MemoryRecord):
        yield found.id


_PARTS: Final = (
    "hits", "nearest", "items", "sources", "entries", "left_out", "memories", "core", "constraints",
    "preferences", "decisions", "blockers", "changed", "facts", "diary", "sessions",
)  # fmt: skip
"""The fields of answers that contain records."""


def _id_of(one: Any, *, thread: bool = False) -> Iterator[str]:
    if isinstance(one, TurnHit) or getattr(one, "kind", "") in ("turn", "tool_call"):
        yield _THREADS + (one.conversation_id or "")
    elif thread or getattr(one, "kind", "") == "file":
        yield _THREADS + one.id
    elif isinstance(one, str) or not getattr(one, "id", ""):
        return
    else:
        yield one.id
