"""Memories and notes, merged to the same state on every device.

An item is a record as one device made it: fields, each with its latest value, and events, each
once. Items of one identity make one record if they are current at the same time; the values of a
path make one line of intervals that do not overlap, each from its own start to that of the next
one. It is what `store.records.rules` does within one home, as a function of the changes of all
homes: nothing depends on the order in which they arrive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from anaphora.features.sync.changes import ItemState
from anaphora.features.sync.clock import Stamp
from anaphora.features.sync.codec import EVENT, ORIGINS

SAID: Final = ("added", "restated", "linked")
"""Kinds of events that count as occurrences."""
LONGEST_START: Final = 36
"""The length of a version's id within the id of a part of it."""
_FIRST: Final = Stamp(0, 0, "")


@dataclass(frozen=True, slots=True)
class SaidEvent:
    """An event of a record: its fields (such as `kind` and `at`), and when it was captured."""

    key: str
    stamp: Stamp
    told: Mapping[str, Any]

    @property
    def at(self) -> str:
        """When it happened: RFC 3339 in UTC, which sorts as the time does."""
        return str(self.told["at"])

    @property
    def counts(self) -> bool:
        """Whether it is an occurrence."""
        return self.told["kind"] in SAID


@dataclass(frozen=True, slots=True)
class RecordItem:
    """A record as its changes give it. `fields` are its members (see `codec`).

    `same` is its identity, which records with the same content share; empty if it stands alone.
    """

    id: str
    kind: str
    same: str
    fields: Mapping[str, Any]
    stamps: Mapping[str, Stamp]
    events: tuple[SaidEvent, ...]

    @property
    def path(self) -> str | None:
        """The path of which it is a value."""
        return self.fields.get("path")


@dataclass(slots=True)
class MergedRecord:
    """A record as it is to be stored. `owners` are the items that it is made of."""

    id: str
    kind: str
    same: str
    owners: tuple[str, ...]
    fields: dict[str, Any]
    events: tuple[SaidEvent, ...]


@dataclass(slots=True)
class _Span:
    """A part of a line: one record, from one or several items."""

    id: str
    items: list[RecordItem]
    start: str
    end: str | None
    events: list[SaidEvent]
    whole: bool = True
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def same(self) -> str:
        return self.items[0].same

    @property
    def last(self) -> str:
        return max((event.at for event in self.events if event.counts), default=self.start)

    def accepts(self, start: str) -> bool:
        """Whether a statement at `start` can belong to this record, which is current then."""
        of = self.items[0].fields
        return all(
            end is None or end > start
            for end in (self.end, of.get("expires_at"), of.get("forgotten_at"))
        )


def item_of(
    name: str, kind: str, same: str, state: ItemState, killed: Stamp | None = None
) -> RecordItem | None:
    """The item that a state describes; None if nothing of it is left.

    `killed` is when a record with this identity was forgotten for good: changes that were captured
    before that on any device are forgotten with it.
    """
    fields: dict[str, Any] = {}
    stamps: dict[str, Stamp] = {}
    events = []
    for key, change in state.items():
        if change.action == "drop":
            continue
        if key.startswith(EVENT):
            if killed is None or change.stamp > killed:
                events.append(SaidEvent(key, change.stamp, change.value))
        else:
            fields[key], stamps[key] = change.value, change.stamp
    if "text" not in fields or not _is_alive(state, events, killed):
        return None
    return RecordItem(
        name,
        kind,
        same,
        fields,
        stamps,
        tuple(sorted(events, key=lambda event: (event.at, event.key))),
    )


def _is_alive(state: ItemState, events: Sequence[SaidEvent], killed: Stamp | None) -> bool:
    if any(event.counts for event in events):
        return True
    # A record of an old home may have no events at all.
    has_events = any(key.startswith(EVENT) for key in state)
    return not has_events and (killed is None or state["text"].stamp > killed)


def merge(items: Iterable[RecordItem]) -> list[MergedRecord]:
    """The records of items that belong together: of one path, or of one identity, or one alone."""
    ordered_versions = sorted(items, key=lambda version: (version.fields["valid_from"], version.id))
    hidden = [
        version for version in ordered_versions if version.fields.get("forgotten_at") is not None
    ]
    visible = [
        version for version in ordered_versions if version.fields.get("forgotten_at") is None
    ]
    if any(version.path is not None for version in ordered_versions):
        spans = _line_up([_build_span(version) for version in visible])
    else:
        spans = []
        for span in [_build_span(version) for version in visible]:
            # Two without a path that are current at one time become one.
            if spans and span.same and spans[-1].accepts(span.start):
                _extend_span(spans[-1], span)
            else:
                spans.append(span)
    return [_build_record(span) for span in (*spans, *(_build_span(version) for version in hidden))]


def _build_span(item: RecordItem) -> _Span:
    of = item.fields
    return _Span(item.id, [item], of["valid_from"], of.get("valid_to"), list(item.events))


def _extend_span(span: _Span, other: _Span) -> None:
    keys = {event.key for event in span.events}
    ends = [part.end for part in (span, other) if part.end is not None]
    open_ones = [part.last for part in (span, other) if part.end is None]
    # An open span that was restated after the other had ended stays current.
    stands = not ends or (bool(open_ones) and max(open_ones) > max(ends))
    span.end = None if stands else max(ends)
    span.events = sorted(
        [*span.events, *(event for event in other.events if event.key not in keys)],
        key=lambda event: (event.at, event.key),
    )
    span.items = [*span.items, *(version for version in other.items if version not in span.items)]


def _line_up(spans: list[_Span]) -> list[_Span]:
    """Spans of one path that do not overlap."""
    cut_spans = sorted(
        _cut_spans(spans), key=lambda span: (span.start, span.end is None, span.end, span.id)
    )
    joined_spans: list[_Span] = []
    for span in cut_spans:
        if (
            joined_spans
            and span.same
            and span.same == joined_spans[-1].same
            and joined_spans[-1].accepts(span.start)
        ):
            _extend_span(joined_spans[-1], span)
        else:
            joined_spans.append(span)
    for span, next_span in pairwise(joined_spans):
        # A span that was cut ends at the start of another, which none of its items records.
        cut_here = not span.whole and span.end == next_span.start
        if span.end is None or span.end > next_span.start or cut_here:
            span.end = next_span.start
            span.fields["superseded_by"] = next_span.id
        next_span.fields["supersedes"] = span.id
    return joined_spans


def _cut_spans(spans: Sequence[_Span]) -> list[_Span]:
    """The same spans, cut at the start of another value if they were restated after it."""
    pieces: list[_Span] = []
    waiting = list(spans)
    while waiting:
        span = waiting.pop(0)
        starts = [piece.start for piece in (*pieces, *waiting) if piece.same != span.same]
        inside = [start for start in starts if span.start < start <= span.last]
        later = [
            event for event in span.events if inside and event.counts and event.at > min(inside)
        ]
        if later:
            tail_events = [event for event in span.events if event.at >= later[0].at]
            earlier = [event for event in span.events if event.at < later[0].at]
            name = tail_id(span.items[0].id, later[0].at)
            end = span.end if span.end is not None and span.end > later[0].at else None
            waiting.append(
                _Span(name, list(span.items), later[0].at, end, tail_events, whole=False)
            )
            span.events, span.whole = earlier, False
            span.end = min(inside) if span.end is None else min(span.end, *inside)
        pieces.append(span)
    return pieces


def tail_id(item: str, at: str) -> str:
    """The id of the part of a version that was restated from `at` on."""
    digest = hashlib.sha256(f"{item}\n{at}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{item[:LONGEST_START]}-{digest[:8]}"


# Of several items of one record each has these for itself; of all other fields the latest counts.
_OWN: Final = frozenset({
    "created_at", "last_reinforced", "valid_from", "valid_to", "superseded_by", "supersedes",
    "forgotten_at", "tags", "sources", ORIGINS, "extra", "conversation_id", "turn",
    "stands_alone",
})  # fmt: skip


def _build_record(span: _Span) -> MergedRecord:
    first_version = span.items[0]
    fields = dict(first_version.fields)
    if len(span.items) > 1:
        for name in {name for version in span.items for name in version.fields} - _OWN:
            versions = [version for version in span.items if version.fields.get(name) is not None]
            if versions:
                last_version = max(versions, key=lambda version: version.stamps[name])
                fields[name] = last_version.fields[name]
        if span.end != first_version.fields.get("valid_to"):
            ended_versions = [
                version for version in span.items if version.fields.get("valid_to") == span.end
            ]
            fields["superseded_by"] = (
                ended_versions[0].fields.get("superseded_by")
                if ended_versions and span.end
                else None
            )
    occurrences = [event for event in span.events if event.counts]
    times = [event.at for event in occurrences]
    if span.whole:
        times += [version.fields["created_at"] for version in span.items]
        fields["last_reinforced"] = max(
            [event.at for event in occurrences]
            + [version.fields["last_reinforced"] for version in span.items]
        )
    else:
        fields["last_reinforced"] = max(times)
    fields["created_at"] = min(times)
    fields["valid_from"], fields["valid_to"] = span.start, span.end
    extra = sum(version.fields.get("extra") or 0 for version in span.items) if span.whole else 0
    fields["reinforce_count"] = max(0, len(occurrences) - 1 + extra)
    origins = {
        str(origin): origin
        for version in span.items
        for origin in version.fields.get(ORIGINS) or ()
    }
    fields[ORIGINS] = [origins[name] for name in sorted(origins)] or None
    for name, one_of in (("tags", "tags"), ("sources", "source")):
        fields[name] = _join_labels(span, name, one_of)
    fields.pop("extra", None)
    fields |= span.fields
    return MergedRecord(
        span.id,
        first_version.kind,
        span.same,
        tuple(version.id for version in span.items),
        fields,
        tuple(span.events),
    )


def _join_labels(span: _Span, name: str, told: str) -> list[str]:
    """The labels that were set, and those of events since."""
    labels: dict[str, None] = {}
    for version in span.items:
        labels |= dict.fromkeys(version.fields.get(name) or ())
    set_at = min(version.stamps.get(name, _FIRST) for version in span.items)
    for event in span.events:
        if event.counts and event.stamp > set_at:
            added_labels = event.told.get(told) or ()
            labels |= dict.fromkeys(
                [added_labels] if isinstance(added_labels, str) else added_labels
            )
    return list(labels)
