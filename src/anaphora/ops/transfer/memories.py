"""Memories and the links between them, in an export and back: lines, and the merge of two homes.

Secrets in imported memories are redacted, as in all memories. The rules, under which importing
twice changes nothing the second time and the order of two imports hardly matters:

- A memory with an unknown id is added unchanged, with its id, times and events.
- An id that exists here with the same text, path and payload is the same memory at another moment:
  events are united, counts follow from them, times widen, an end or a soft forgetting stays.
- An id that exists here with another value: both are kept, the imported one under an id derived
  from its content.
- An unknown id with the value of a present memory is a restatement of it: its events are added.
- Two values of one path end up in one line, by their `valid_from`.
- Memories forgotten here for good are not imported; if requested, they get a new id.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, get_args

from anaphora.ingest.checking import without_secrets
from anaphora.ingest.secrets.redacting import redact, redact_value
from anaphora.ops.transfer.reading import BatchReader, LoadTarget, Outcome
from anaphora.store.line_fields import (
    LineFields,
    flag_in,
    list_in,
    one_of,
    real_in,
    string,
    texts_in,
)
from anaphora.store.lines import Line, present
from anaphora.store.maintenance import kinds_of, records_with_key
from anaphora.store.mending import unreadable_records
from anaphora.store.namespace import STEP
from anaphora.store.records.rows import (
    CLOSENESS,
    LINK_KINDS,
    OPEN,
    STANDS_ALONE,
    EventKind,
    RecordEvent,
    RecordLink,
    same_key_of,
)
from anaphora.store.records.transaction import RecordTransaction
from anaphora.values.conversations import ImportProblem
from anaphora.values.json_codec import members_of
from anaphora.values.memories import MEMORY_FIELDS, MemoryRecord, MemoryType, NewMemory

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_SAID = ("added", "restated", "linked")
_IN_PLACE = [*(name for name, spec in MEMORY_FIELDS.items() if spec.changes == "in_place"), "pin"]


# Members in the order of the file; fields added to a record later follow them.
_ORDER = (
    "id", "text", "type", "path", "payload", "category", "conversation_id", "turn_index",
    "parent", "supersedes", "superseded_by", "reinforce_count", "created_at", "last_reinforced",
    "valid_from", "valid_to", "expires_at", "tags", "sources", "forgotten",
)  # fmt: skip
_EVENT: Final = LineFields(
    RecordEvent,
    ("kind", "at", "tags", "source", "conversation_id", "turn_index", "text", "details"),
    left_out=("record_id", "seq"),
    readers={"kind": string},
)


@dataclass(frozen=True, slots=True)
class IncomingRecord:
    """A memory of an export. `stands_alone`: nothing restates it, as adapters require."""

    record: MemoryRecord
    events: tuple[RecordEvent, ...]
    stands_alone: bool = False

    @property
    def same_key(self) -> str:
        """Its identity."""
        return STANDS_ALONE if self.stands_alone else same_key_of(self.record)

    @property
    def last(self) -> datetime:
        """When it was last touched."""
        return max((event.at for event in self.events), default=self.record.last_reinforced)


class RecordFields(LineFields):
    """The members of the line of any kind of record: all but its vectors.

    `types` are the allowed ones, `otherwise` the type if a line has none.
    """

    def __init__(
        self, types: Sequence[str], otherwise: str, left_out: Collection[str] = ()
    ) -> None:
        readers = {"type": one_of(types, otherwise)}
        super().__init__(MemoryRecord, _ORDER, left_out=("seq", *left_out), readers=readers)

    def line(self, record: MemoryRecord, events: Iterable[RecordEvent]) -> dict[str, Any]:
        """The members for a record and its events."""
        event_lines = [present(_EVENT.write(event)) for event in events]
        return self.write(record) | {"events": event_lines}

    def incoming(self, line: Line, *, stands_alone: bool = False, **extra: Any) -> IncomingRecord:
        """The record of a line, with `extra` fields, and its events, without secrets. ValueError.

        A record that `stands_alone` is an item of a store that returns its items verbatim: it is
        not redacted.
        """
        members = self.read(line)
        created_text = members.get("created_at")
        if created_text is None:
            raise ValueError('"created_at" is missing')
        times = {"last_reinforced": created_text, "valid_from": created_text}
        record = MemoryRecord(**{"seq": 0} | times | members | extra)
        events: list[RecordEvent] = []
        for event in list_in(line, "events"):
            if not isinstance(event, dict) or event.get("kind") not in get_args(EventKind):
                raise ValueError("an event has an unknown kind")
            event_fields = _EVENT.read(event)
            if "at" not in event_fields:
                raise ValueError("an event has no time")
            events.append(RecordEvent(record.id, **event_fields))
        if stands_alone or record.keep_secret:
            return IncomingRecord(record, tuple(events), stands_alone)
        # InvalidInput for a payload that is nested too deeply.
        present_fields = members_of(record)
        names = [spec.name for spec in fields(NewMemory) if spec.name in present_fields]
        new_memory, _ = without_secrets(NewMemory(**{name: present_fields[name] for name in names}))
        clean_fields: dict[str, Any] = {name: getattr(new_memory, name) for name in names}
        sources = tuple(redact(source).text for source in record.sources)
        clean = replace(record, sources=sources, **clean_fields)
        return IncomingRecord(clean, tuple(map(_clean_event, events)))


_MEMORY: Final = RecordFields(get_args(MemoryType), "semantic")


def memory_lines(
    services: NamespaceServices,
    problems: list[ImportProblem],
    tell: Callable[[int], None],
) -> Iterator[Line]:
    """All memories, then their links. Unreadable records are added to `problems`."""
    namespace, records = services.namespace, services.memory.records
    sealer = services.rows_sealer
    key = sealer.lookup("same_key", namespace, STANDS_ALONE)
    standalone_ids = records_with_key(records.truth, namespace, key)
    last_seq, ids = 0, []
    while batch := records.changed_since(last_seq):
        for record in batch:
            line = _MEMORY.line(record, records.events(record.id))
            line["stands_alone"] = record.id in standalone_ids or None
            yield {"kind": "memory", **line}
        ids += [record.id for record in batch]
        last_seq = batch[-1].seq
        tell(len(ids))
    for kind, damaged_ids in unreadable_records(records.truth, namespace, sealer).items():
        reason = "it cannot be read; `doctor --repair` repairs it"
        problems += [ImportProblem(kind, record_id, reason) for record_id in damaged_ids]
    for start in range(0, len(ids), STEP):
        chunk = ids[start : start + STEP]
        chunk_ids = set(chunk)
        # Each link once: by the end under which it is stored.
        for link in (ln for ln in records.links(chunk, LINK_KINDS) if ln.record_id in chunk_ids):
            yield {
                "kind": "link",
                "between": [link.record_id, link.other_id],
                "relation": link.kind,
                "strength": link.strength,
            }


def _clean_event(event: RecordEvent) -> RecordEvent:
    return replace(
        event,
        text=_clean_text(event.text),
        source=_clean_text(event.source),
        conversation_id=_clean_text(event.conversation_id),
        tags=tuple(redact(tag).text for tag in event.tags),
        details=redact_value(dict(event.details)).value,
    )


def _clean_text(text: str | None) -> str | None:
    return None if text is None else redact(text).text


class MemoryReader(BatchReader[IncomingRecord]):
    """Reads the memories of one namespace."""

    def parse(self, line: Line) -> IncomingRecord:
        """As `BatchReader.parse`."""
        return _MEMORY.incoming(line, stands_alone=flag_in(line, "stands_alone"))

    def write(self, batch: Sequence[tuple[int, IncomingRecord]]) -> None:
        """As `BatchReader.write`."""
        target = self.target
        accepted_records = without_other_kinds(
            target, batch, "memory", "its id is that of a note here: {}"
        )
        merger = RecordMerger(target.gone, target.again, target.memory_ids)
        with target.services.memory.records.change() as work:
            outcomes = merger.merge(work, accepted_records)
        target.count(outcomes)


def without_other_kinds(
    target: LoadTarget, batch: Sequence[tuple[int, IncomingRecord]], kind: str, reason: str
) -> list[IncomingRecord]:
    """A batch without items that have the id of a record of another kind here: these are problems.

    `reason` is a format for that kind.
    """
    services = target.services
    kinds = kinds_of(services.truth, services.namespace, [item.record.id for _, item in batch])
    accepted_records: list[IncomingRecord] = []
    for number, item in batch:
        actual = kinds.get(item.record.id, kind)
        if actual == kind:
            accepted_records.append(item)
        else:
            target.problem(number, reason.format(actual))
    return accepted_records


class LinkReader(BatchReader[RecordLink]):
    """Reads the links of one namespace, after its memories."""

    def parse(self, line: Line) -> RecordLink:
        """As `BatchReader.parse`, under the ids that its memories have here."""
        ends = texts_in(line, "between")
        strength = real_in(line, "strength")
        if len(ends) != 2:
            raise ValueError('"between" does not name two memories')
        kind = string(line, "relation")
        if kind not in LINK_KINDS:
            raise ValueError('"relation" is unknown')
        first_id, second = sorted(self.target.memory_ids.get(end, end) for end in ends)
        return RecordLink(first_id, second, kind, strength)

    def write(self, batch: Sequence[tuple[int, RecordLink]]) -> None:
        """Write the unknown links between memories that exist here."""
        ids = list({end for _, link in batch for end in (link.record_id, link.other_id)})
        with self.target.services.memory.records.change() as work:
            work.load(ids=ids)
            known_links = {_link_key(link): link for link in work.linked(ids, LINK_KINDS)}
            new_links: dict[tuple[str, str, bool], RecordLink] = {}
            for number, link in batch:
                first_id, second, _ = key = _link_key(link)
                if first_id == second or self.target.gone & {first_id, second}:
                    continue
                memory, linked_memory = work.find(first_id), work.find(second)
                if memory is None or linked_memory is None:
                    self.target.problem(number, "a link to a memory that is missing")
                elif key not in known_links:
                    new_links[key] = link
                elif known_links[key].kind == OPEN and link.kind != OPEN:
                    # An imported verdict counts if it agrees with the memories here.
                    is_ended = (
                        memory.superseded_by == linked_memory.id
                        or linked_memory.superseded_by == memory.id
                    )
                    if is_ended or link.kind == "both_hold":
                        work.turn(known_links[key], link.kind)
            work.join(new_links.values())


def _link_key(link: RecordLink) -> tuple[str, str, bool]:
    """Two memories have at most one link of each family."""
    return link.record_id, link.other_id, link.kind in CLOSENESS


@dataclass(slots=True)
class RecordMerger:
    """Merges memories into one namespace. `gone` are the ids that were deleted here for good.

    `ids` maps the id of a memory in the export to its id here, if that is another one.
    """

    gone: frozenset[str]
    again: bool = False
    ids: dict[str, str] = field(default_factory=dict)

    def merge(self, work: RecordTransaction, items: Sequence[IncomingRecord]) -> list[Outcome]:
        """Merge several memories in one change."""
        work.load(
            ids=[item.record.id for item in items],
            same_keys=[item.same_key for item in items if item.same_key],
            paths=[item.record.path for item in items if item.record.path is not None],
        )
        outcomes = [self._merge_one(work, item) for item in items]
        for path in {item.record.path for item in items if item.record.path is not None}:
            # No two values of a path are valid at one time: the earlier ends as the later begins.
            for earlier, later in pairwise(work.versions(path)):
                if earlier.valid_to is None or earlier.valid_to > later.valid_from:
                    work.change(earlier.id, valid_to=later.valid_from, superseded_by=later.id)
                    if later.supersedes is None:
                        work.change(later.id, supersedes=earlier.id)
        return outcomes

    def id_of(self, record_id: str | None) -> str | None:
        """The id here of a memory of the export."""
        return record_id if record_id is None else self.ids.get(record_id, record_id)

    def _merge_one(self, work: RecordTransaction, incoming: IncomingRecord) -> Outcome:
        record_id = incoming.record.id
        if record_id in self.gone:
            if not self.again:
                return "forgotten"
            return self._add_under_another_id(work, incoming)
        current = work.find(record_id)
        if current is None:
            return self._add_new(work, incoming)
        if _value(current) == _value(incoming.record):
            return _unite(work, current, incoming)
        return self._add_under_another_id(work, incoming)

    def _add_new(self, work: RecordTransaction, incoming: IncomingRecord) -> Outcome:
        record = incoming.record
        if incoming.same_key and record.valid_to is None and not record.forgotten:
            current = [
                holder for holder in work.having(incoming.same_key) if holder.valid_to is None
            ]
            if current:
                self.ids[record.id] = current[-1].id
                return _unite(work, current[-1], incoming)
        added_record = replace(
            record,
            parent=self.id_of(record.parent),
            supersedes=self.id_of(record.supersedes),
            superseded_by=self.id_of(record.superseded_by),
            forgotten=False,
        )
        work.add(added_record, incoming.same_key)
        for event in incoming.events:
            work.tell(event)
        if record.forgotten:
            work.hide(record.id, incoming.last)
        return "added"

    def _add_under_another_id(self, work: RecordTransaction, incoming: IncomingRecord) -> Outcome:
        # The same id however often the same memory is imported.
        content = f"{incoming.record.id}\n{_value(incoming.record)}".encode(
            "utf-8", "surrogatepass"
        )
        derived_id = f"{incoming.record.id[:36]}-{hashlib.sha256(content).hexdigest()[:8]}"
        self.ids[incoming.record.id] = derived_id
        if derived_id in self.gone:
            return "forgotten"
        events = tuple(replace(event, record_id=derived_id) for event in incoming.events)
        moved_record = replace(
            incoming, record=replace(incoming.record, id=derived_id), events=events
        )
        current = work.find(derived_id)
        if current is not None:
            return _unite(work, current, moved_record)
        return self._add_new(work, moved_record)


def _value(record: MemoryRecord) -> str:
    # Type, tags, category, expiry and pin change in place: they are no part of the content.
    return same_key_of(replace(record, type="semantic"))


def _unite(work: RecordTransaction, current: MemoryRecord, item: IncomingRecord) -> Outcome:
    """Unite one memory at two moments, or from two homes."""
    imported_record = item.record
    events = work.events(current.id)
    known_keys = {_event_key(event) for event in events}
    new_events = [event for event in item.events if _event_key(event) not in known_keys]
    # The changes from new events: occurrences are united; a later change in place wins.
    last = max((event.at for event in events), default=current.last_reinforced)
    if current.id == imported_record.id and any(
        e.kind == "updated" and e.at > last for e in new_events
    ):
        gained = {name: getattr(imported_record, name) for name in _IN_PLACE}
    else:
        mentions = [event for event in new_events if event.kind in _SAID]
        missing = [name for name in _IN_PLACE if mentions and getattr(current, name) is None]
        gained = {name: getattr(imported_record, name) for name in missing}
        gained["tags"] = _join(current.tags, *(event.tags for event in mentions))
        if mentions:
            # None is not a missing time: such a memory never expires.
            ends = current.expires_at, imported_record.expires_at
            gained["expires_at"] = ends[0] and ends[1] and max(ends[0], ends[1])
        gained["pin"] = imported_record.pin if current.pin is None else current.pin
    sources = [event.source for event in new_events if event.source is not None]
    merged_fields = {
        "created_at": min(current.created_at, imported_record.created_at),
        "last_reinforced": max(current.last_reinforced, imported_record.last_reinforced),
        "valid_from": min(current.valid_from, imported_record.valid_from),
    } | gained
    merged_fields |= {
        "sources": _join(current.sources, sources),
        "reinforce_count": current.reinforce_count
        + sum(event.kind in _SAID for event in new_events),
    }
    if (
        current.valid_to is None
        and imported_record.valid_to is not None
        and current.id == imported_record.id
    ):
        merged_fields |= {
            "valid_to": imported_record.valid_to,
            "superseded_by": imported_record.superseded_by,
        }
    changes = {
        name: field_content
        for name, field_content in merged_fields.items()
        if getattr(current, name) != field_content
    }
    if "type" in changes and work.same_key(current.id) != STANDS_ALONE:
        changes["same_key"] = same_key_of(replace(current, type=imported_record.type))
    if changes:
        work.change(current.id, **changes)
    for event in new_events:
        kind = "restated" if event.kind == "added" else event.kind
        work.tell(replace(event, record_id=current.id, kind=kind))
    if imported_record.forgotten and not current.forgotten:
        work.hide(current.id, item.last)
        return "changed"
    return "changed" if changes or new_events else "known"


def _event_key(event: RecordEvent) -> str:
    kind = "said" if event.kind in {"added", "restated"} else event.kind
    parts = [
        kind, event.at.isoformat(), event.source, event.conversation_id, event.turn_index,
        event.text, dict(event.details),
    ]  # fmt: skip
    return json.dumps(parts, sort_keys=True, default=str)


def _join(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for group in groups for text in group))
