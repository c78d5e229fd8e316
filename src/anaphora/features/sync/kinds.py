"""The kinds of items that are synced, and the parts of a device that know their rows.

To sync one more kind of records, add it to `RECORD_KINDS`; for rows of another form, add a part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

from anaphora.features.sync.changes import Patch
from anaphora.features.sync.codec import RecordCodec
from anaphora.features.sync.device import SyncedDevice
from anaphora.features.sync.links import LinkSync
from anaphora.features.sync.records import RecordKind, RecordSync
from anaphora.features.sync.threads import ThreadSync
from anaphora.store.records.rows import (
    DIARY,
    MARKS_KEY,
    MEMORY,
    OBSERVATION,
    PAIRS_KEY,
    PROJECT_PAIR,
    SESSION_MARK,
    TOOL_CALL,
    session_key,
)

if TYPE_CHECKING:
    pass


RECORD_KINDS: Final = {
    MEMORY: RecordKind(
        lasting=True,
        on_forgotten=lambda services, work, forgotten: services.forget_derived(
            work, forgotten, False
        ),
    ),
    OBSERVATION: RecordKind(),
    DIARY: RecordKind(),
    TOOL_CALL: RecordKind(row_key=lambda record: session_key(record.conversation_id or "")),
    PROJECT_PAIR: RecordKind(row_key=lambda _: PAIRS_KEY),
    SESSION_MARK: RecordKind(row_key=lambda _: MARKS_KEY),
}
"""The kinds of records by their names, in the order in which they are captured."""


class SyncedPart(Protocol):
    """Reads, compares, applies and deletes the rows of some kinds of items."""

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of its items."""

    def capture(self, since: int) -> Iterator[tuple[Patch, str]]:
        """The changes of rows after the number `since`, each with the state that was compared."""

    def removals(self, since: int) -> Iterator[tuple[Patch, str]]:
        """Of these changes only deletions, at a cost that grows with them alone."""

    def apply(self, items: Iterable[str], captured: int) -> list[str]:
        """Update rows to all changes of these items; the items that came, went or moved.

        Rows that were changed after `captured`, the number up to which changes were captured, are
        left as they are.
        """

    def neighbours(self, items: Collection[str]) -> list[str]:
        """Its items that name some of these of other parts."""


def open_parts(device: SyncedDevice) -> tuple[SyncedPart, ...]:
    """The parts of a device, each behind those that its items name."""
    threads = ThreadSync(device)
    records = RecordSync(device, RecordCodec(threads.turns), threads.origins, RECORD_KINDS)
    return threads, records, LinkSync(device, records.row_of)
