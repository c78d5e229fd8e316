"""What importing means for memories: rules on a `RecordTransaction`, beside those of `rules`.

- What an import tells is known by its source ("mem0:<id>", "markdown:Notes/Staging.md#Ports"),
  which its event carries: the same words from the same source are known, and nothing is written.
- Other words at its path are its new value, from when the source changed them on.
- What was forgotten here stays out: its source is in a tombstone, or in a record that is marked.
- What its source no longer says ends, and stays in history; said again there, it is back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from anaphora.store.records.rows import IMPORTED, RecordEvent
from anaphora.store.records.rules import MemoryDraft, NewId, put
from anaphora.store.records.transaction import RecordTransaction
from anaphora.values.memories import MemoryRecord

Kept = Literal["added", "changed", "known", "forgotten"]
"""What became of an imported memory."""

_SAID: Final = ("added", "restated")
_Saying = tuple[datetime, MemoryRecord]


@dataclass(frozen=True, slots=True)
class ImportDraft:
    """What an import wants kept: a draft with a source.

    Where the source says what holds now, `changed` is since when; otherwise the draft's own time
    says where in the history of its path it belongs.
    """

    draft: MemoryDraft
    changed: datetime | None = None

    @property
    def source(self) -> str:
        """What it is known by."""
        return self.draft.record.sources[0]


def put_imported(
    work: RecordTransaction,
    items: Sequence[ImportDraft],
    *,
    now: datetime,
    again: bool,
    new_id: NewId,
) -> list[Kept]:
    """Keep what is not known yet, in order. `again` brings back what was forgotten here."""
    drafts = [import_draft.draft for import_draft in items]
    work.load(
        same_keys=[draft.same_key for draft in drafts if draft.record.path is None],
        paths=[draft.record.path for draft in drafts if draft.record.path is not None],
    )
    return [_put(work, import_draft, now, again, new_id) for import_draft in items]


def end_imported(work: RecordTransaction, record_id: str, source: str, at: datetime) -> bool:
    """Let a memory hold no longer from `at` on, as its source does not say it any more.

    Only where nothing else has said it. Returns whether it ended.
    """
    record = work.find(record_id)
    if record is None or record.forgotten or record.valid_to or record.sources != (source,):
        return False
    if record.expires_at is not None:
        return False
    _set_end(work, record, source, max(at, record.valid_from), at)
    return True


def _put(
    work: RecordTransaction, import_draft: ImportDraft, now: datetime, again: bool, new_id: NewId
) -> Kept:
    draft = import_draft.draft
    earlier = _earlier_imports(work, draft, import_draft.source)
    if not earlier:
        if not again and work.was_imported(import_draft.source):
            return "forgotten"
        put(work, draft, new_id)
        return "added"
    last_at, last_id = earlier[-1]
    at = draft.at
    for imported_at, record in earlier:
        if work.same_key(record.id) == draft.same_key and (
            record.id == last_id.id or imported_at == at
        ):
            return _update_known(work, record, import_draft, now, again)
    if last_id.forgotten and not again:
        return "forgotten"
    at = at if import_draft.changed is None else max(last_at, import_draft.changed)
    if at > draft.at:
        moved_record = replace(draft.record, created_at=at, last_reinforced=at, valid_from=at)
        draft = replace(draft, record=moved_record)
    put(work, draft, new_id)
    return "changed"


def _earlier_imports(work: RecordTransaction, draft: MemoryDraft, source: str) -> list[_Saying]:
    """When an import has told this thing before, and as what; the last comes last."""
    imports: list[_Saying] = []
    for record in work.all_like(draft.same_key, draft.record.path):
        if source in record.sources:
            imports += [
                (event.at, record)
                for event in work.events(record.id)
                if event.kind in _SAID and event.source == source and event.details.get(IMPORTED)
            ]
    return sorted(
        imports,
        key=lambda moment_and_record: (
            moment_and_record[0],
            moment_and_record[1].valid_from,
            moment_and_record[1].id,
        ),
    )


def _update_known(
    work: RecordTransaction,
    record: MemoryRecord,
    import_draft: ImportDraft,
    now: datetime,
    again: bool,
) -> Kept:
    if record.forgotten:
        if not again:
            return "forgotten"
        work.reveal(record.id)
        work.tell(RecordEvent(record.id, "restored", now))
        return "changed"
    end = import_draft.draft.record.expires_at
    if record.expires_at is None and end is not None and record.valid_to is None:
        # The source has ended it meanwhile.
        _set_end(work, record, import_draft.source, end, now)
        return "changed"
    if record.expires_at is not None and end is None:
        # An end that an import of this source has set is taken back; any other one stays.
        changes = [
            event
            for event in work.events(record.id)
            if event.kind == "updated" and "expires_at" in event.details.get("was", {})
        ]
        last_change = changes[-1] if changes else None
        if (
            last_change
            and last_change.details.get(IMPORTED)
            and last_change.source == import_draft.source
        ):
            _set_end(work, record, import_draft.source, None, now)
            return "changed"
    return "known"


def _set_end(
    work: RecordTransaction, record: MemoryRecord, source: str, end: datetime | None, at: datetime
) -> None:
    was = record.expires_at.isoformat() if record.expires_at else None
    work.change(record.id, expires_at=end)
    details = {"was": {"expires_at": was}, IMPORTED: True}
    work.tell(RecordEvent(record.id, "updated", at, source=source, details=details))
