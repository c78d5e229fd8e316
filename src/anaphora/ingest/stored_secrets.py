"""Takes secrets out of memories and notes that were stored before their form was known.

The words of a record are replaced where it stands: its id, its versions, its links and its times
stay. What an adapter put word for word is left, as it must come back so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final

from anaphora.ingest.checking import without_secrets
from anaphora.ingest.secrets.redacting import redact, redact_value
from anaphora.values.memories import MEMORY_FIELDS, MemoryRecord, NewMemory

if TYPE_CHECKING:
    from anaphora.store.records.forgetting import ForgottenRecords
    from anaphora.store.records.rows import RecordEvent
    from anaphora.store.records.store import Records
    from anaphora.store.records.transaction import RecordTransaction

OnGone = Callable[["RecordTransaction", "ForgottenRecords", bool], None]
_HELD: Final = frozenset(field.name for field in fields(MemoryRecord))
_FIELDS: Final = tuple(
    name
    for name, field in MEMORY_FIELDS.items()
    if name in _HELD and field.kind not in {"id", "time", "number", "flag", "type"}
)
"""The words of a memory; where it comes from, it holds once for each time that it was said."""
_STEP: Final = 256


class StoredSecrets:
    """Finds and redacts them in the records of one namespace.

    `on_gone` is called in each change with the words that go; None: nothing was derived of them.
    """

    def __init__(self, records: Records, *, on_gone: OnGone | None) -> None:
        self._records = records
        self._on_gone = on_gone

    def holding(self, most: int | None = None) -> tuple[str, ...]:
        """The ids of records, of the past too, that hold what would be taken out today.

        `most`: of at most so many characters of text, the oldest first.
        """
        ids = self._find_candidates(most)
        return tuple(
            record_id for kind in self._records.kinds for record_id in self._select_kind(kind, ids)
        )

    def redact(self) -> tuple[str, ...]:
        """Replace their words, and drop what was derived from those; the ids that changed.

        Their vectors are gone then, and are to be made again. Raises StoreError and its kinds.
        """
        ids = self._find_candidates(None)
        redacted_ids: list[str] = []
        for kind in self._records.kinds:
            kind_ids = self._select_kind(kind, ids)
            for start in range(0, len(kind_ids), _STEP):
                self._redact(kind, kind_ids[start : start + _STEP])
            redacted_ids += kind_ids
        return tuple(redacted_ids)

    def _find_candidates(self, most: int | None) -> list[str]:
        ids: dict[str, None] = {}
        kept_ids: set[str] = set()
        size, since = 0, -1
        while page := self._records.changed_since(since):
            for record in page:
                if record.keep_secret:
                    kept_ids.add(record.id)
                elif _find_changes(record):
                    ids[record.id] = None
                size += len(record.text)
                if most is not None and size > most:
                    return list(ids)
            since = page[-1].seq
        # What was replaced in place is in the events alone.
        events = (event for event in self._records.all_events() if _clean_event(event) != event)
        said_ids = dict.fromkeys(event.record_id for event in events)
        return [record_id for record_id in ids | said_ids if record_id not in kept_ids]

    def kept(self) -> int:
        """How many memories hold a secret that their owner kept on purpose."""
        count, since = 0, -1
        while page := self._records.changed_since(since):
            count += sum(record.keep_secret for record in page)
            since = page[-1].seq
        return count

    def _select_kind(self, kind: str, ids: Sequence[str]) -> list[str]:
        """Those of this kind, without what an adapter put word for word."""
        from anaphora.store.records.rows import MEMORY, STANDS_ALONE

        if not ids:
            # A change makes the home.
            return []
        with self._records.change(kind) as work:
            work.load(ids=ids)
            return [
                record_id
                for record_id in ids
                if work.find(record_id) is not None
                and not (kind == MEMORY and work.same_key(record_id) == STANDS_ALONE)
            ]

    def _redact(self, kind: str, ids: Sequence[str]) -> None:
        from anaphora.store.records.forgetting import describe_forgotten
        from anaphora.store.records.rows import STANDS_ALONE, same_key_of

        with self._records.change(kind, scrub=True) as work:
            work.load(ids=ids)
            records = {
                record_id: record
                for record_id in ids
                if (record := work.find(record_id)) is not None
            }
            forgotten_records = describe_forgotten(work, records)
            for record_id, record in records.items():
                changes = _find_changes(record)
                key = work.same_key(record_id)
                if key != STANDS_ALONE:
                    key = same_key_of(replace(record, **changes))
                work.change(record_id, same_key=key, **changes)
                # Events keep the replaced words, tags and origins.
                old_events = work.events(record_id)
                new_events = [_clean_event(event) for event in old_events]
                changed_events = [
                    (old_event, new_event)
                    for old_event, new_event in zip(old_events, new_events, strict=True)
                    if old_event != new_event
                ]
                if not changed_events:
                    continue
                work.untell([old_event for old_event, _ in changed_events])
                for _, event in changed_events:
                    work.tell(event)
            work.drop_vectors(records)
            if self._on_gone is not None:
                self._on_gone(work, forgotten_records, False)


def _find_changes(record: MemoryRecord) -> dict[str, Any]:
    """The fields that redaction would change today."""
    stored_memory = NewMemory(**{name: getattr(record, name) for name in _FIELDS})
    clean, _ = without_secrets(stored_memory)
    clean_fields = {name: getattr(clean, name) for name in _FIELDS}
    clean_fields["sources"] = tuple(redact(source).text for source in record.sources)
    return {
        name: field_value
        for name, field_value in clean_fields.items()
        if field_value != getattr(record, name)
    }


def _clean_event(event: RecordEvent) -> RecordEvent:
    def clean(text: str | None) -> str | None:
        return None if text is None else redact(text).text

    return replace(
        event,
        tags=tuple(redact(tag).text for tag in event.tags),
        source=clean(event.source),
        conversation_id=clean(event.conversation_id),
        text=clean(event.text),
        details=redact_value(dict(event.details)).value,
    )
