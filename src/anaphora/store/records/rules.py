"""What restating, superseding and changing mean for memories: rules on a `RecordTransaction`.

- The same memory (type, path, payload, NFC text) said again reinforces the one that is there.
- Paths are compared in NFC, and one that differs from a standing one only in case is that one.
- A path has one value at a time. The versions of a path are a line of intervals
  [valid_from, valid_to) that do not overlap, in the order of the times that were given, whatever
  the order in which they arrive: a value from before the present one goes into history, two equal
  neighbours are one version, and a version that was said again after such a value is split by it.
- A value that comes back is a new version: A, B, A are three.

It never embeds and never compares meanings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from anaphora.errors import Conflict, InvalidInput, NotFound
from anaphora.language.names import composed
from anaphora.store.records.rows import (
    IDENTITY_FIELDS,
    STANDS_ALONE,
    EventKind,
    RecordEvent,
    is_at,
    same_key_of,
)
from anaphora.store.records.transaction import RecordTransaction
from anaphora.values.memories import MemoryRecord, NewMemory

NewId = Callable[[], str]

CLOCKS_APART: Final = timedelta(minutes=5)
"""How far the clocks of servers that share a database may differ: what is said now comes after what
another one has noted within this time to come."""

_NEXT: Final = timedelta(microseconds=1)

# Where a memory was said, and what each saying has of its own.
_PLACE_FIELDS: Final = ("conversation_id", "turn_index")
_OWN_FIELDS: Final = {*_PLACE_FIELDS, "created_at", "supersedes"}
VALUE_FIELDS: Final = tuple(
    one.name
    for one in fields(NewMemory)
    if one.name in MemoryRecord.__dataclass_fields__ and one.name not in _OWN_FIELDS
)
"""The fields of a memory that are given with it, and stay when a new version takes its place."""
_SAID_FIELDS: Final = tuple(name for name in VALUE_FIELDS if name not in IDENTITY_FIELDS)
# Of these, what the event of a restatement has a place for, and what it does not tell.
_UNTOLD: Final = {"tags", "parent", "expires_at"}


@dataclass(frozen=True, slots=True)
class PutResult:
    """What became of a memory that was put; `notices` say where its path was read as another."""

    id: str
    action: Literal["added", "reinforced", "superseded", "updated"]
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """A memory as it would be if nothing like it were there, and its identity.

    `is_now` says that its time is this machine's, not one that was given; `guarded`, that it is
    put only if nothing came between. `details` go into the event of this time.
    """

    record: MemoryRecord
    same_key: str
    replaces: str | None = None
    is_now: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    guarded: bool = False

    @property
    def at(self) -> datetime:
        """When it was said."""
        return self.record.valid_from


def draft_memory(new: NewMemory, now: datetime, record_id: str) -> MemoryDraft:
    """The record that `new` asks for, said at its `created_at` or `now`."""
    at = new.created_at or now
    fields = {name: getattr(new, name) for name in (*VALUE_FIELDS, *_PLACE_FIELDS)}
    fields["tags"] = tuple(dict.fromkeys(new.tags))
    record = MemoryRecord(
        id=record_id,
        created_at=at,
        last_reinforced=at,
        valid_from=at,
        seq=0,
        sources=() if new.source is None else (new.source,),
        **fields,
    )
    key = same_key_of(record) if new.dedupe else STANDS_ALONE
    return MemoryDraft(
        record, key, new.supersedes, is_now=new.created_at is None, guarded=new.guarded
    )


def put_all(
    work: RecordTransaction, drafts: Sequence[MemoryDraft], new_id: NewId
) -> list[PutResult]:
    """`put` for many, with what they need read in few statements."""
    work.load(
        ids=[draft.replaces for draft in drafts if draft.replaces is not None],
        same_keys=[draft.same_key for draft in drafts if draft.same_key and not draft.record.path],
        paths=[draft.record.path for draft in drafts if draft.record.path is not None],
    )
    return [put(work, draft, new_id) for draft in drafts]


def put(work: RecordTransaction, draft: MemoryDraft, new_id: NewId) -> PutResult:
    """Add, reinforce or supersede. `NotFound` when what it supersedes is not there.

    A memory that supersedes one with a path and names no path has that path. What was superseded
    already is followed to the version that stands now; a guarded memory is refused there, with
    `Conflict`. A path that differs only in case from one with a value is that one, but for what
    stands alone. `new_id` is asked when a version must be split.
    """
    draft, notices = _take_standing_path(work, draft)
    put_result = _put(work, draft, new_id)
    return replace(put_result, notices=notices) if notices else put_result


def _take_standing_path(
    work: RecordTransaction, draft: MemoryDraft
) -> tuple[MemoryDraft, tuple[str, ...]]:
    """The draft at the path that has a value already, where its own differs from it in case."""
    path = draft.record.path
    if path is None or draft.same_key == STANDS_ALONE:
        return draft, ()
    similar_records = [similar for similar in work.near(path) if similar.valid_to is None]
    if not similar_records:
        return draft, ()
    standing_path = similar_records[-1].path or path
    if any(version.valid_to is None for version in work.versions(path)):
        return draft, (
            f"the path {standing_path!r} differs from {path!r} only in case, and has a value",
        )
    record = replace(draft.record, path=composed(standing_path))
    notice = f"kept under the path {standing_path!r}, which differs from {path!r} only in case"
    return replace(draft, record=record, same_key=same_key_of(record)), (notice,)


def _put(work: RecordTransaction, draft: MemoryDraft, new_id: NewId) -> PutResult:
    if draft.guarded:
        # Another writer may have come between reading and this draft.
        superseded = None if draft.replaces is None else work.find(draft.replaces)
        if superseded is not None and superseded.valid_to is not None:
            raise Conflict(
                "supersedes", superseded.id, f"was superseded by {superseded.superseded_by}"
            )
        path = draft.record.path
        versions = () if path is None else work.versions(path)
        if any(version.valid_to is None and version.id != draft.replaces for version in versions):
            raise Conflict("path", path, "has another value by now")
    replaced_record = None if draft.replaces is None else _find_standing(work, draft.replaces)
    if (
        replaced_record is not None
        and draft.record.path is None
        and replaced_record.path is not None
    ):
        record = replace(draft.record, path=composed(replaced_record.path))
        draft = replace(draft, record=record, same_key=draft.same_key and same_key_of(record))
    if draft.record.path is None:
        same_records = work.having(draft.same_key) if draft.same_key != STANDS_ALONE else ()
        placed_draft = _place_after(work, draft, same_records)
        current = [record for record in same_records if _is_current(record, placed_draft.at)]
        put_result = (
            _reinforce(work, current[-1], placed_draft) if current else _add(work, placed_draft)
        )
    else:
        put_result = _put_at_path(work, draft, draft.record.path, new_id)
    if replaced_record is None or replaced_record.id == put_result.id:
        return put_result
    old, by = work.find(replaced_record.id), work.find(put_result.id)
    assert old is not None
    assert by is not None
    in_line = by.path is not None and is_at(old, by.path)
    if in_line or old.valid_to is not None or by.valid_to is not None:
        return put_result
    work.change(replaced_record.id, valid_to=max(draft.at, old.valid_from), superseded_by=by.id)
    _hand_on_pin(work, replaced_record.id, by.id)
    if by.supersedes is None:
        work.change(by.id, supersedes=replaced_record.id)
    return PutResult(by.id, "superseded")


def replacement(record: MemoryRecord, changes: Mapping[str, Any], *, dedupe: bool) -> NewMemory:
    """What to put in the place of `record` when its value changes.

    Raises `InvalidInput` for a version that is not the present one: only that one's value changes.
    """
    if record.valid_to is not None:
        reason = f"it was superseded by {record.superseded_by}: change that memory instead"
        raise InvalidInput("id", record.id, reason)
    fields = {name: getattr(record, name) for name in VALUE_FIELDS}
    return NewMemory(**(fields | dict(changes)), supersedes=record.id, dedupe=dedupe)


def change_in_place(
    work: RecordTransaction, record_id: str, changes: Mapping[str, Any], now: datetime
) -> None:
    """Change what is no value (and words that differ in Unicode form alone); the event keeps it."""
    old_record = work.find(record_id)
    if old_record is None or old_record.forgotten:
        raise NotFound("memory", record_id)
    was = {
        name: getattr(old_record, name)
        for name in changes
        if getattr(old_record, name) != changes[name]
    }
    if not was:
        return
    new_record = replace(old_record, **changes)
    key = same_key_of(new_record) if work.same_key(record_id) else STANDS_ALONE
    work.change(record_id, same_key=key, **changes)
    tags = was.pop("tags", ())
    old_values = {
        name: old_value.isoformat() if isinstance(old_value, datetime) else old_value
        for name, old_value in was.items()
    }
    work.tell(RecordEvent(record_id, "updated", now, tags=tags, details={"was": old_values}))


def _find_standing(work: RecordTransaction, record_id: str) -> MemoryRecord:
    """The version that stands now where `record_id` stood."""
    record = work.find(record_id)
    if record is None or record.forgotten:
        raise NotFound("memory", record_id)
    while record.superseded_by is not None:
        later = work.find(record.superseded_by)
        if later is None or later.forgotten:
            break
        record = later
    return record


def _place_after(
    work: RecordTransaction, draft: MemoryDraft, known: Iterable[MemoryRecord]
) -> MemoryDraft:
    """What is said now comes after what is known, by whichever clock that was noted.

    Otherwise a value from a machine whose clock is late would go into history, unseen. Of servers
    that share a database a little is allowed for; of devices that sync all that they have seen.
    """
    if not draft.is_now:
        return draft
    times = [
        t
        for record in known
        for t in (record.valid_from, record.last_reinforced, record.valid_to)
        if t
    ]
    if not any(t > draft.at for t in times):
        return draft
    latest_seen = work.latest_seen() or draft.at
    horizon = max(latest_seen, draft.at + CLOCKS_APART)
    at = max((t for t in times if t <= horizon), default=draft.at)
    if draft.at < at <= latest_seen:
        at += _NEXT
    if at <= draft.at:
        return draft
    moved_record = replace(draft.record, created_at=at, last_reinforced=at, valid_from=at)
    return replace(draft, record=moved_record)


def _is_current(record: MemoryRecord, at: datetime) -> bool:
    """Whether what is said at `at` can be the same as this record: not ended, not expired."""
    is_ended = record.valid_to is not None and record.valid_to <= at
    return not is_ended and (record.expires_at is None or record.expires_at > at)


def _put_at_path(
    work: RecordTransaction, draft: MemoryDraft, path: str, new_id: NewId
) -> PutResult:
    line = work.versions(path)
    draft = _place_after(work, draft, line)
    if draft.is_now and _settle_coming(work, line, draft.at):
        line = work.versions(path)
    previous_version = next((v for v in reversed(line) if v.valid_from <= draft.at), None)
    if (
        previous_version is not None
        and _is_same(work, previous_version, draft)
        and _is_current(previous_version, draft.at)
    ):
        return _reinforce(work, previous_version, draft)
    if previous_version is not None and previous_version.last_reinforced > draft.at:
        _split(work, previous_version, draft.at, new_id)
        line = work.versions(path)
    next_version = next((v for v in line if v.valid_from > draft.at), None)
    if next_version is not None and _is_same(work, next_version, draft):
        if previous_version is not None:
            _end(work, previous_version.id, draft.at, next_version.id)
        work.change(next_version.id, valid_from=draft.at)
        return _reinforce(work, next_version, draft)
    record = replace(
        draft.record,
        valid_to=next_version.valid_from if next_version else None,
        superseded_by=next_version.id if next_version else None,
        supersedes=previous_version.id if previous_version else None,
    )
    put_result = _add(work, replace(draft, record=record))
    if next_version is not None:
        work.change(next_version.id, supersedes=put_result.id)
    if previous_version is None:
        return put_result
    _end(work, previous_version.id, draft.at, put_result.id)
    if next_version is not None:
        # A value that was past when it came replaced nothing that recall could still find.
        return put_result
    _hand_on_pin(work, previous_version.id, put_result.id)
    return PutResult(put_result.id, "superseded")


def _settle_coming(work: RecordTransaction, line: Sequence[MemoryRecord], now: datetime) -> bool:
    """Let the versions of a path that are dated in the future end before what is said now.

    They were said before it, whatever their dates: by a clock that is ahead, or as a plan. Their
    own dates stay what they were told (`created_at`).
    """
    coming = [version for version in line if version.valid_from > now]
    for index, version in enumerate(coming):
        begun = now - _NEXT * (len(coming) - index)
        is_last = index == len(coming) - 1
        work.change(
            version.id,
            valid_from=begun,
            last_reinforced=begun,
            valid_to=None if is_last and version.valid_to is None else begun + _NEXT,
        )
    if coming and (earlier := [past for past in line if past.valid_from <= now]):
        work.change(earlier[-1].id, valid_to=now - _NEXT * len(coming))
    return bool(coming)


def _is_same(work: RecordTransaction, record: MemoryRecord, draft: MemoryDraft) -> bool:
    return draft.same_key != STANDS_ALONE and work.same_key(record.id) == draft.same_key


def _end(work: RecordTransaction, record_id: str, at: datetime, by: str) -> None:
    """Let a version end at `at`, or earlier where it did already (what followed was forgotten)."""
    old_record = work.find(record_id)
    assert old_record is not None
    end = at if old_record.valid_to is None else min(at, old_record.valid_to)
    work.change(record_id, valid_to=end, superseded_by=by)


def _hand_on_pin(work: RecordTransaction, old_id: str, new_id: str) -> None:
    """Give the place in the core block to what takes the place of a memory that had one."""
    old_record, new_record = work.find(old_id), work.find(new_id)
    assert old_record is not None
    assert new_record is not None
    if old_record.pin is not None:
        work.change(new_id, pin=old_record.pin if new_record.pin is None else new_record.pin)
        work.change(old_id, pin=None)


def _split(work: RecordTransaction, record: MemoryRecord, at: datetime, new_id: NewId) -> None:
    """Make a version of its own of the times after `at` at which this one was said again."""
    events = [e for e in work.events(record.id) if e.kind in ("added", "restated")]
    later = [event for event in events if event.at > at]
    if not later:
        return
    tail = replace(
        record,
        id=new_id(),
        created_at=later[0].at,
        valid_from=later[0].at,
        last_reinforced=later[-1].at,
        reinforce_count=len(later) - 1,
        tags=_join_lists(event.tags for event in later),
        sources=_join_lists((e.source,) for e in later if e.source is not None),
        conversation_id=later[0].conversation_id,
        turn_index=later[0].turn_index,
        supersedes=record.id,
    )
    work.add(tail, work.same_key(record.id))
    if record.superseded_by is not None and work.find(record.superseded_by) is not None:
        work.change(record.superseded_by, supersedes=tail.id)
    earlier = [event for event in events if event.at <= at]
    work.change(
        record.id,
        valid_to=tail.valid_from,
        superseded_by=tail.id,
        reinforce_count=record.reinforce_count - len(later),
        last_reinforced=max((e.at for e in earlier), default=record.created_at),
        pin=None,
    )
    work.move_events(later, tail.id)


def _add(work: RecordTransaction, draft: MemoryDraft) -> PutResult:
    work.add(draft.record, draft.same_key)
    work.tell(_event_of(draft, "added", draft.record))
    return PutResult(draft.record.id, "added")


def _reinforce(work: RecordTransaction, record: MemoryRecord, draft: MemoryDraft) -> PutResult:
    """One more occurrence: tags and sources joined, the longest life, the earliest beginning."""
    new_record = draft.record
    begun = min(record.valid_from, draft.at) if record.supersedes is None else record.valid_from
    work.change(
        record.id,
        reinforce_count=record.reinforce_count + 1,
        last_reinforced=max(record.last_reinforced, draft.at),
        created_at=min(record.created_at, draft.at),
        sources=_join_lists((record.sources, new_record.sources)),
        **{name: _merge_field(name, record, new_record) for name in _SAID_FIELDS},
        valid_from=min(begun, draft.at) if record.path is not None else begun,
    )
    work.tell(_event_of(draft, "restated", record))
    return PutResult(record.id, "reinforced")


def _event_of(draft: MemoryDraft, kind: EventKind, record: MemoryRecord) -> RecordEvent:
    new_record = draft.record
    fields = {name: getattr(new_record, name) for name in _SAID_FIELDS if name not in _UNTOLD}
    details = {
        name: value
        for name, value in fields.items()
        if value is not None and value != getattr(record, name)
    }
    return RecordEvent(
        record.id,
        kind,
        draft.at,
        tags=new_record.tags,
        source=new_record.sources[0] if new_record.sources else None,
        conversation_id=new_record.conversation_id,
        turn_index=new_record.turn_index,
        text=new_record.text if new_record.text != record.text else None,
        details=details | dict(draft.details),
    )


def _merge_field(name: str, record: MemoryRecord, new: MemoryRecord) -> Any:
    """A field of a memory that is said again: lists are joined, and the first value stays."""
    old_value, new_value = getattr(record, name), getattr(new, name)
    if name == "expires_at":
        # The longest life, which has no end where one of both has none.
        return None if old_value is None or new_value is None else max(old_value, new_value)
    if isinstance(old_value, tuple):
        return _join_lists((old_value, new_value))
    return new_value if old_value is None else old_value


def _join_lists(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for group in groups for text in group))
