"""Memories and the links between them, in an export and back: lines, and how two homes' meet.

What comes in has its secrets taken out, as everything that is remembered has. The rules, under
which importing twice changes nothing the second time and the order of two imports hardly matters:

- An id that is unknown is added as it is, with its id, times and events.
- An id that is here with the same words, path and payload is the same memory at another moment:
  events are united, counts follow from them, times widen, an end or a soft forgetting stays.
- An id that is here with another value: both are kept, the imported one under an id that is made
  from its content.
- An unknown id with the value of a present memory is a restatement of it: its events join.
- Two values of one path end up in one line, by the time from which they hold.
- What was forgotten here for good stays away; asked for again, it comes under a new id.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, get_args

from anaphora.core.json_codec import members_of
from anaphora.ingest.checking import without_secrets
from anaphora.ingest.secrets.redacting import redact, redact_value
from anaphora.ops.transfer.lines import (
    Line,
    LineFields,
    flag_in,
    list_in,
    one_of,
    present,
    real_in,
    string,
    texts_in,
)
from anaphora.ops.transfer.reading import BatchReader, Outcome, Target
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
from anaphora.values.memories import MEMORY_FIELDS, MemoryRecord, MemoryType, NewMemory

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_SAID = ("added", "restated", "linked")
_IN_PLACE = [*(name for name, one in MEMORY_FIELDS.items() if one.changes == "in_place"), "pin"]


# Members in the order of the file; fields that come to a record stand behind them.
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
    """A memory of an export. `stands_alone`: nothing restates it, as adapters ask for."""

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
    """The members of a record's line, whatever kind of record it is: all but its vectors.

    `types` are those that it may be of, the type `otherwise` where a line has none.
    """

    def __init__(
        self, types: Sequence[str], otherwise: str, left_out: Collection[str] = ()
    ) -> None:
        readers = {"type": one_of(types, otherwise)}
        super().__init__(MemoryRecord, _ORDER, left_out=("seq", *left_out), readers=readers)

    def line(self, record: MemoryRecord, events: Iterable[RecordEvent]) -> dict[str, Any]:
        """The members for a record and what is known of when it was said."""
        told = [present(_EVENT.write(event)) for event in events]
        return self.write(record) | {"events": told}

    def incoming(self, line: Line, *, stands_alone: bool = False, **more: Any) -> IncomingRecord:
        """The record of a line, with `more` fields, and its events, without secrets. ValueError.

        What `stands_alone` is an item of a store that gives back what was put into it, word for
        word: it stays as it is.
        """
        given = self.read(line)
        created = given.get("created_at")
        if created is None:
            raise ValueError('"created_at" is missing')
        times = {"last_reinforced": created, "valid_from": created}
        record = MemoryRecord(**{"seq": 0} | times | given | more)
        events = tuple(_event_in(record.id, one) for one in list_in(line, "events"))
        if stands_alone:
            return IncomingRecord(record, events, stands_alone=True)
        return IncomingRecord(_clean_record(record), tuple(map(_clean_event, events)))


_MEMORY: Final = RecordFields(get_args(MemoryType), "semantic")


def memory_lines(
    services: NamespaceServices,
    problems: list[ImportProblem],
    tell: Callable[[int], None],
) -> Iterator[Line]:
    """All memories, then their links. `problems` gets the records that cannot be read."""
    namespace, records = services.namespace, services.records
    sealer = services.notes.sealer
    key = sealer.lookup("same_key", namespace, STANDS_ALONE)
    alone = records_with_key(records.truth, namespace, key)
    after, ids = 0, []
    while found := records.changed_since(after):
        for record in found:
            line = _MEMORY.line(record, records.events(record.id))
            line["stands_alone"] = record.id in alone or None
            yield {"kind": "memory", **line}
        ids += [record.id for record in found]
        after = found[-1].seq
        tell(len(ids))
    for kind, damaged in unreadable_records(records.truth, namespace, sealer).items():
        reason = "it cannot be read; `doctor --repair` repairs it"
        problems += [ImportProblem(kind, record_id, reason) for record_id in damaged]
    for start in range(0, len(ids), STEP):
        some = ids[start : start + STEP]
        first = set(some)
        # Each link once: by the end that it is kept under.
        for link in (one for one in records.links(some, LINK_KINDS) if one.record_id in first):
            yield {
                "kind": "link",
                "between": [link.record_id, link.other_id],
                "relation": link.kind,
                "strength": link.strength,
            }


def _event_in(record_id: str, line: Any) -> RecordEvent:
    if not isinstance(line, dict) or line.get("kind") not in get_args(EventKind):
        raise ValueError("an event has an unknown kind")
    given = _EVENT.read(line)
    if "at" not in given:
        raise ValueError("an event has no time")
    return RecordEvent(record_id, **given)


def _clean_record(record: MemoryRecord) -> MemoryRecord:
    """The record without secrets. InvalidInput for a payload that is nested too deeply."""
    said = members_of(record)
    names = [one.name for one in fields(NewMemory) if one.name in said]
    new, _ = without_secrets(NewMemory(**{name: said[name] for name in names}))
    sources = tuple(redact(source).text for source in record.sources)
    return replace(record, sources=sources, **{name: getattr(new, name) for name in names})


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
        good = without_other_kinds(target, batch, "memory", "its id is that of a note here: {}")
        merger = RecordMerger(target.gone, target.again, target.memory_ids)
        with target.services.records.change() as work:
            outcomes = merger.merge(work, good)
        target.count(outcomes)


def without_other_kinds(
    target: Target, batch: Sequence[tuple[int, IncomingRecord]], kind: str, reason: str
) -> list[IncomingRecord]:
    """A batch, but for what has the id of a record of another kind here: a problem of its line.

    `reason` has a place for that kind.
    """
    services = target.services
    here = kinds_of(services.truth, services.namespace, [item.record.id for _, item in batch])
    good: list[IncomingRecord] = []
    for number, item in batch:
        other = here.get(item.record.id, kind)
        if other == kind:
            good.append(item)
        else:
            target.problem(number, reason.format(other))
    return good


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
        one, other = sorted(self.target.memory_ids.get(end, end) for end in ends)
        return RecordLink(one, other, kind, strength)

    def write(self, batch: Sequence[tuple[int, RecordLink]]) -> None:
        """Write the links that are not known, between memories that are here."""
        ids = list({end for _, link in batch for end in (link.record_id, link.other_id)})
        with self.target.services.records.change() as work:
            work.load(ids=ids)
            known = {_link_key(link): link for link in work.linked(ids, LINK_KINDS)}
            fresh: dict[tuple[str, str, bool], RecordLink] = {}
            for number, link in batch:
                one, other, _ = key = _link_key(link)
                if one == other or self.target.gone & {one, other}:
                    continue
                if work.find(one) is None or work.find(other) is None:
                    self.target.problem(number, "a link to a memory that is missing")
                elif key not in known:
                    fresh[key] = link
                elif known[key].kind == OPEN and _is_settled(work, link):
                    work.turn(known[key], link.kind)
            work.join(fresh.values())


def _link_key(link: RecordLink) -> tuple[str, str, bool]:
    """Two memories have at most one link of each family."""
    return link.record_id, link.other_id, link.kind in CLOSENESS


def _is_settled(work: RecordTransaction, link: RecordLink) -> bool:
    """Whether a verdict that comes in is that of the memories that are here."""
    one, other = work.find(link.record_id), work.find(link.other_id)
    if link.kind == OPEN or one is None or other is None:
        return False
    ended = one.superseded_by == other.id or other.superseded_by == one.id
    return ended or link.kind == "both_hold"


@dataclass(slots=True)
class RecordMerger:
    """Brings memories into one namespace. `gone` are the ids that were deleted here for good.

    `ids` tells under which id a memory of the export is here, where that is another one.
    """

    gone: frozenset[str]
    again: bool = False
    ids: dict[str, str] = field(default_factory=dict)

    def merge(self, work: RecordTransaction, items: Sequence[IncomingRecord]) -> list[Outcome]:
        """Bring in several memories in one change."""
        work.load(
            ids=[item.record.id for item in items],
            same_keys=[item.same_key for item in items if item.same_key],
            paths=[item.record.path for item in items if item.record.path is not None],
        )
        became = [self._one(work, item) for item in items]
        for path in {item.record.path for item in items if item.record.path is not None}:
            _line_up(work, path)
        return became

    def id_of(self, record_id: str | None) -> str | None:
        """The id here of a memory of the export."""
        return record_id if record_id is None else self.ids.get(record_id, record_id)

    def _one(self, work: RecordTransaction, item: IncomingRecord) -> Outcome:
        record_id = item.record.id
        if record_id in self.gone:
            if not self.again:
                return "forgotten"
            return self._under_another_id(work, item)
        here = work.find(record_id)
        if here is None:
            return self._new(work, item)
        if _value(here) == _value(item.record):
            return _unite(work, here, item)
        return self._under_another_id(work, item)

    def _new(self, work: RecordTransaction, item: IncomingRecord) -> Outcome:
        record = item.record
        if item.same_key and record.valid_to is None and not record.forgotten:
            standing = [one for one in work.having(item.same_key) if one.valid_to is None]
            if standing:
                self.ids[record.id] = standing[-1].id
                return _unite(work, standing[-1], item)
        self._add(work, item)
        return "added"

    def _under_another_id(self, work: RecordTransaction, item: IncomingRecord) -> Outcome:
        derived = _derived_id(item)
        self.ids[item.record.id] = derived
        if derived in self.gone:
            return "forgotten"
        events = tuple(replace(event, record_id=derived) for event in item.events)
        moved = replace(item, record=replace(item.record, id=derived), events=events)
        here = work.find(derived)
        if here is not None:
            return _unite(work, here, moved)
        return self._new(work, moved)

    def _add(self, work: RecordTransaction, item: IncomingRecord) -> None:
        record = replace(
            item.record,
            parent=self.id_of(item.record.parent),
            supersedes=self.id_of(item.record.supersedes),
            superseded_by=self.id_of(item.record.superseded_by),
            forgotten=False,
        )
        work.add(record, item.same_key)
        for event in item.events:
            work.tell(event)
        if item.record.forgotten:
            work.hide(record.id, item.last)


def _value(record: MemoryRecord) -> str:
    # Type, tags, category, expiry and pin change in place: they are not what a memory says.
    return same_key_of(replace(record, type="semantic"))


def _unite(work: RecordTransaction, here: MemoryRecord, item: IncomingRecord) -> Outcome:
    """One memory at two moments, or said in two homes."""
    there = item.record
    own = work.events(here.id)
    known = {_event_key(event) for event in own}
    fresh = [event for event in item.events if _event_key(event) not in known]
    wanted = {
        "created_at": min(here.created_at, there.created_at),
        "last_reinforced": max(here.last_reinforced, there.last_reinforced),
        "valid_from": min(here.valid_from, there.valid_from),
    } | _gained(here, there, own, fresh)
    if here.valid_to is None and there.valid_to is not None and here.id == there.id:
        wanted |= {"valid_to": there.valid_to, "superseded_by": there.superseded_by}
    changes = {name: value for name, value in wanted.items() if getattr(here, name) != value}
    if "type" in changes and work.same_key(here.id) != STANDS_ALONE:
        changes["same_key"] = same_key_of(replace(here, type=there.type))
    if changes:
        work.change(here.id, **changes)
    for event in fresh:
        kind = "restated" if event.kind == "added" else event.kind
        work.tell(replace(event, record_id=here.id, kind=kind))
    if there.forgotten and not here.forgotten:
        work.hide(here.id, item.last)
        return "changed"
    return "changed" if changes or fresh else "known"


def _gained(
    here: MemoryRecord,
    there: MemoryRecord,
    own: Sequence[RecordEvent],
    fresh: Sequence[RecordEvent],
) -> dict[str, Any]:
    """What events that are new here bring: occurrences join; a later change in place wins."""
    last = max((event.at for event in own), default=here.last_reinforced)
    if here.id == there.id and any(e.kind == "updated" and e.at > last for e in fresh):
        gained = {name: getattr(there, name) for name in _IN_PLACE}
    else:
        said = [event for event in fresh if event.kind in _SAID]
        missing = [name for name in _IN_PLACE if said and getattr(here, name) is None]
        gained = {name: getattr(there, name) for name in missing}
        gained["tags"] = _joined(here.tags, *(event.tags for event in said))
        if said:
            # None is no missing time: such a memory never expires.
            ends = here.expires_at, there.expires_at
            gained["expires_at"] = ends[0] and ends[1] and max(ends[0], ends[1])
        gained["pin"] = there.pin if here.pin is None else here.pin
    sources = [event.source for event in fresh if event.source is not None]
    count = here.reinforce_count + sum(event.kind in _SAID for event in fresh)
    return gained | {"sources": _joined(here.sources, sources), "reinforce_count": count}


def _line_up(work: RecordTransaction, path: str) -> None:
    """Let no two values of a path hold at one time: the earlier ends where the later begins."""
    line = work.versions(path)
    for one, following in pairwise(line):
        if one.valid_to is not None and one.valid_to <= following.valid_from:
            continue
        work.change(one.id, valid_to=following.valid_from, superseded_by=following.id)
        if following.supersedes is None:
            work.change(following.id, supersedes=one.id)


def _event_key(event: RecordEvent) -> str:
    said = "said" if event.kind in {"added", "restated"} else event.kind
    shown = [
        said, event.at.isoformat(), event.source, event.conversation_id, event.turn_index,
        event.text, dict(event.details),
    ]  # fmt: skip
    return json.dumps(shown, sort_keys=True, default=str)


def _derived_id(item: IncomingRecord) -> str:
    """An id that is the same however often the same memory comes."""
    data = f"{item.record.id}\n{_value(item.record)}".encode("utf-8", "surrogatepass")
    return f"{item.record.id[:36]}-{hashlib.sha256(data).hexdigest()[:8]}"


def _joined(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for group in groups for one in group))
