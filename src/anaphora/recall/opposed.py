"""What was said against a hit: open contradictions, and verdicts that ended what a turn repeats.

A contradiction is a link between two memories. A memory that stands in an open one says so wherever
it is shown. A turn knows no links: one that says what such a memory says is told by its words, and
is older where the memory was replaced, or declared wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from anaphora.core.display import cut
from anaphora.rank.statements import words_of
from anaphora.recall.render import quoted_line
from anaphora.store.records.rows import CONTRADICTION, OPEN
from anaphora.values.conversations import Recall
from anaphora.values.memories import MemoryRecord, RelatedMemory
from anaphora.values.search import SearchHit

if TYPE_CHECKING:
    from anaphora.recall.view_cache import ViewCache
    from anaphora.store.records.store import Records

_SAYS: Final = 0.6
"""The words of a memory that a turn has at least, as a share, to say the same."""
_MOST_LINES: Final = 2
_SHOWN: Final = 300
_CHAIN: Final = 6
"""Versions of a memory that are followed, one to the next."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two memories of which one speaks against the other; `ended` does not hold any more."""

    one: MemoryRecord
    other: MemoryRecord
    ended: bool


OpposedPairs: TypeAlias = tuple[_Pair, ...]


def mark_opposed(
    found: Recall[SearchHit],
    near: Iterable[SearchHit],
    records: Records,
    reads: ViewCache[OpposedPairs],
) -> Recall[SearchHit]:
    """The answer with marks on hits that a memory speaks against; `near` were found for it.

    `reads` has what was read for questions before, as long as nothing was written.
    """
    ids = tuple(sorted({hit.id for hit in near if hit.kind == "memory"}))
    if not ids:
        return found
    pairs = reads.of(records.version(), ids, lambda: tuple(_pairs(records, ids)))
    if not pairs:
        return found
    return replace(
        found,
        hits=tuple(_marked(hit, pairs) for hit in found.hits),
        nearest=tuple(_marked(hit, pairs) for hit in found.nearest),
    )


def open_contradictions(
    records: Records, ids: Iterable[str]
) -> Iterator[tuple[MemoryRecord, MemoryRecord]]:
    """The (older, newer) pairs that hold both, of which one has one of these ids."""
    links = records.links(ids, (OPEN,))
    known = records.many({end for link in links for end in (link.record_id, link.other_id)})
    for link in links:
        one, other = known.get(link.record_id), known.get(link.other_id)
        if one is not None and other is not None and _holds(one) and _holds(other):
            older, newer = sorted((one, other), key=lambda record: (record.created_at, record.id))
            yield older, newer


def opposing(
    records: Records,
    held: Iterable[MemoryRecord],
    is_left_out: Callable[[MemoryRecord], bool] = lambda _: False,
) -> dict[str, tuple[RelatedMemory, ...]]:
    """By the id of a held memory what openly contradicts it, the newest first, at most two."""
    ids = {record.id for record in held}
    found: dict[str, list[MemoryRecord]] = {}
    for older, newer in open_contradictions(records, ids):
        for one, other in ((older, newer), (newer, older)):
            if one.id in ids and not is_left_out(other):
                found.setdefault(one.id, []).append(other)
    return {
        one: tuple(
            RelatedMemory(other.id, cut(other.text, _SHOWN), other.created_at)
            for other in sorted(others, key=lambda record: record.created_at, reverse=True)
        )[:_MOST_LINES]
        for one, others in found.items()
    }


def opposing_lines(others: Iterable[RelatedMemory], since: datetime) -> str:
    """What stands under a memory of `since` about those that contradict it; "" for none."""
    return "".join(
        f"\n(contradict{'ed' if one.created_at > since else 's'}, not settled: "
        f"{quoted_line(one.text, one.created_at)})"
        for one in others
    )


def _pairs(records: Records, ids: Iterable[str]) -> Iterator[_Pair]:
    for older, newer in open_contradictions(records, ids):
        yield _Pair(older, newer, ended=False)
    links = records.links(ids, CONTRADICTION)
    known = records.many(
        {*ids, *(end for link in links for end in (link.record_id, link.other_id))}
    )
    for name in ("superseded_by", "supersedes"):
        for _ in range(_CHAIN):
            named = {getattr(record, name) for record in known.values()} - known.keys() - {None}
            if not named:
                break
            known |= records.many(named)
    for record in known.values():
        newest = record
        for _ in range(_CHAIN):
            newest = known.get(newest.superseded_by or "", newest)
        if record.valid_to is not None and newest is not record and _holds(newest):
            yield _Pair(record, newest, ended=True)


def _holds(record: MemoryRecord) -> bool:
    return record.valid_to is None and not record.forgotten


def _marked(hit: SearchHit, pairs: Iterable[_Pair]) -> SearchHit:
    lines: list[str] = []
    against: list[str] = []
    for pair in pairs:
        opposed = _opposed(hit, pair)
        if opposed is None:
            continue
        line = quoted_line(opposed.text, opposed.created_at)
        if pair.ended:
            line = f"older: {line}"
            if hit.current:
                hit = replace(hit, current=False, older_than=opposed.id)
        else:
            later = hit.ts is not None and opposed.created_at > hit.ts
            line = f"contradict{'ed' if later else 's'}, not settled: {line}"
            against.append(opposed.id)
        lines.append(line)
    new = [line for line in dict.fromkeys(lines) if line not in hit.versions][:_MOST_LINES]
    if not new:
        return hit
    return replace(hit, versions=(*new, *hit.versions), contradicts=tuple(dict.fromkeys(against)))


def _opposed(hit: SearchHit, pair: _Pair) -> MemoryRecord | None:
    """The memory of a pair that speaks against a hit; None where none does."""
    if hit.kind == "memory":
        if pair.ended:
            # An ended one is found as history alone, and says so.
            return None
        return {pair.one.id: pair.other, pair.other.id: pair.one}.get(hit.id)
    if hit.kind != "turn":
        return None
    if _says(hit, pair.one, pair.other) and not _is_later(hit.ts, pair.other.created_at):
        return pair.other
    if not pair.ended and _says(hit, pair.other, pair.one):
        return pair.one
    return None


def _is_later(ts: datetime | None, other: datetime) -> bool:
    return ts is not None and ts > other


def _says(hit: SearchHit, memory: MemoryRecord, other: MemoryRecord) -> bool:
    """Whether a turn says what a memory says, and not what the other one does."""
    said, words, others = words_of(hit.text), words_of(memory.text), words_of(other.text)
    own, foreign = words - others, others - words
    if not own or len(said & words) < _SAYS * len(words):
        return False
    return 2 * len(said & own) >= len(own) and 2 * len(said & foreign) <= len(foreign)
