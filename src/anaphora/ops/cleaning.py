"""What comes in by an export has its secrets taken out as everything that is remembered has.

In: a memory or note of an export, with its events. Out: the same without secrets. What stands alone
is an item of a store that gives back what was put into it, word for word: it stays as it is.
"""

from __future__ import annotations

from dataclasses import replace

from anaphora.ingest.checking import without_secrets
from anaphora.ingest.secrets.redacting import redact, redact_value
from anaphora.ops.merging import Incoming
from anaphora.store.records.rows import RecordEvent
from anaphora.values.memories import MemoryRecord, NewMemory


def cleaned(item: Incoming) -> Incoming:
    """The item without secrets. InvalidInput for a payload that is nested too deeply."""
    if item.stands_alone:
        return item
    return replace(item, record=_record(item.record), events=tuple(map(_event, item.events)))


def _record(record: MemoryRecord) -> MemoryRecord:
    fields = ("text", "path", "payload", "tags", "category", "conversation_id")
    new, _ = without_secrets(NewMemory(**{name: getattr(record, name) for name in fields}))
    sources = tuple(redact(source).text for source in record.sources)
    return replace(record, sources=sources, **{name: getattr(new, name) for name in fields})


def _event(event: RecordEvent) -> RecordEvent:
    return replace(
        event,
        text=_plain(event.text),
        source=_plain(event.source),
        conversation_id=_plain(event.conversation_id),
        tags=tuple(redact(tag).text for tag in event.tags),
        details=redact_value(dict(event.details)).value,
    )


def _plain(text: str | None) -> str | None:
    return None if text is None else redact(text).text
