"""What was said against a hit: open contradictions, and verdicts that ended what a turn repeats.

A contradiction is a link between two memories. A memory that stands in an open one says so wherever
it is shown. A turn knows no links: one that says what such a memory says is told by its words, and
is older where the memory was replaced, or declared wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from anaphora.rank.statements import read_cues, words_of
from anaphora.recall.links import KnownLinks, find_newest
from anaphora.recall.question import Question
from anaphora.recall.render import quoted_line
from anaphora.store.records.rows import CONTRADICTION, OPEN
from anaphora.text.display import cut
from anaphora.values.conversations import Recall
from anaphora.values.links import is_turn_reference
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
class OpposedPair:
    """Two memories of which one speaks against the other; `ended` does not hold any more."""

    one: MemoryRecord
    other: MemoryRecord
    ended: bool


OpposedPairs: TypeAlias = tuple[OpposedPair, ...]


def mark_opposed(
    recall: Recall[SearchHit],
    near: Iterable[SearchHit],
    records: Records,
    reads: ViewCache[OpposedPairs],
) -> Recall[SearchHit]:
    """The answer with marks on hits that a memory speaks against; `near` were found for it.

    `reads` has what was read for questions before, as long as nothing was written.
    """
    ids = tuple(sorted({hit.id for hit in near if hit.kind == "memory"}))
    if not ids:
        return recall
    pairs = reads.of(records.version(), ids, lambda: tuple(find_pairs(records, ids)))
    if not pairs:
        return recall
    return replace(
        recall,
        hits=tuple(_mark(hit, pairs) for hit in recall.hits),
        nearest=tuple(_mark(hit, pairs) for hit in recall.nearest),
    )


def mark_replaced(
    recall: Recall[SearchHit], links: KnownLinks, records: Records, question: Question
) -> Recall[SearchHit]:
    """The answer with marks on hits that one of another kind replaced, behind that where it is a
    hit, too, and no past is asked for. Within a kind its lane has marked them."""
    ids = [hit.id for hit in recall.hits if hit.current]
    newest = {
        old: new
        for old, new in find_newest(links, ids).items()
        if is_turn_reference(old) != is_turn_reference(new)
    }
    by_id: dict[str, SearchHit | MemoryRecord] = {hit.id: hit for hit in recall.hits}
    by_id = {**records.many(set(newest.values()) - by_id.keys()), **by_id}
    hits: list[SearchHit] = []
    behind: dict[str, list[SearchHit]] = {}
    asks_past = read_cues(question.text).past >= 2
    for hit in recall.hits:
        newer = by_id.get(newest.get(hit.id, ""))
        at = _told_at(newer)
        # What is dated in the future replaces nothing yet.
        if newer is None or at is None or at > question.now:
            hits += [hit, *behind.pop(hit.id, ())]
            continue
        lines = (f"older: {quoted_line(newer.text, at)}", *hit.versions)
        marked = replace(hit, current=False, older_than=newer.id, versions=lines)
        is_placed = isinstance(newer, MemoryRecord) or any(newer.id == shown.id for shown in hits)
        if not (is_placed or asks_past):
            behind.setdefault(newer.id, []).append(marked)
        else:
            hits.append(marked)
    return replace(recall, hits=tuple(hits)) if newest else recall


def _told_at(told: SearchHit | MemoryRecord | None) -> datetime | None:
    if told is None:
        return None
    return told.created_at if isinstance(told, MemoryRecord) else told.ts


def open_contradictions(
    records: Records, ids: Iterable[str]
) -> Iterator[tuple[MemoryRecord, MemoryRecord]]:
    """The (older, newer) pairs that hold both, of which one has one of these ids."""
    links = records.links(ids, (OPEN,))
    by_id = records.many({end for link in links for end in (link.record_id, link.other_id)})
    for link in links:
        first_record, second = by_id.get(link.record_id), by_id.get(link.other_id)
        if (
            first_record is not None
            and second is not None
            and _is_current(first_record)
            and _is_current(second)
        ):
            older, newer = sorted(
                (first_record, second), key=lambda record: (record.created_at, record.id)
            )
            yield older, newer


def find_opposing(
    records: Records,
    held: Iterable[MemoryRecord],
    is_left_out: Callable[[MemoryRecord], bool] = lambda _: False,
) -> dict[str, tuple[RelatedMemory, ...]]:
    """By the id of a held memory what openly contradicts it, the newest first, at most two."""
    ids = {record.id for record in held}
    opponents: dict[str, list[MemoryRecord]] = {}
    for older, newer in open_contradictions(records, ids):
        for memory, opponent in ((older, newer), (newer, older)):
            if memory.id in ids and not is_left_out(opponent):
                opponents.setdefault(memory.id, []).append(opponent)
    return {
        record_id: tuple(
            RelatedMemory(opponent.id, cut(opponent.text, _SHOWN), opponent.created_at)
            for opponent in sorted(memories, key=lambda record: record.created_at, reverse=True)
        )[:_MOST_LINES]
        for record_id, memories in opponents.items()
    }


def render_opposing(memories: Iterable[RelatedMemory], since: datetime) -> str:
    """What stands under a memory of `since` about those that contradict it; "" for none."""
    return "".join(
        f"\n(contradict{'ed' if memory.created_at > since else 's'}, not settled: "
        f"{quoted_line(memory.text, memory.created_at)})"
        for memory in memories
    )


def find_pairs(records: Records, ids: Collection[str]) -> Iterator[OpposedPair]:
    """The pairs of which one memory has one of these ids, or follows on or comes before one."""
    for older, newer in open_contradictions(records, ids):
        yield OpposedPair(older, newer, ended=False)
    links = records.links(ids, CONTRADICTION)
    by_id = records.many(
        {*ids, *(end for link in links for end in (link.record_id, link.other_id))}
    )
    for name in ("superseded_by", "supersedes"):
        for _ in range(_CHAIN):
            named_ids = {getattr(record, name) for record in by_id.values()} - by_id.keys() - {None}
            if not named_ids:
                break
            by_id |= records.many(named_ids)
    for record in by_id.values():
        newest = record
        for _ in range(_CHAIN):
            newest = by_id.get(newest.superseded_by or "", newest)
        if record.valid_to is not None and newest is not record and _is_current(newest):
            yield OpposedPair(record, newest, ended=True)


def _is_current(record: MemoryRecord) -> bool:
    return record.valid_to is None and not record.forgotten


def _mark(hit: SearchHit, pairs: Iterable[OpposedPair]) -> SearchHit:
    lines: list[str] = []
    against: list[str] = []
    for pair in pairs:
        opposed_record = _find_opposed(hit, pair)
        if opposed_record is None:
            continue
        quoted = quoted_line(opposed_record.text, opposed_record.created_at)
        if pair.ended:
            line = f"older: {quoted}"
            if hit.current:
                hit = replace(hit, current=False, older_than=opposed_record.id)
        else:
            later = hit.ts is not None and opposed_record.created_at > hit.ts
            line = f"contradict{'ed' if later else 's'}, not settled: {quoted}"
            against.append(opposed_record.id)
            # Said once: what is to be settled, not that it replaces it.
            unsaid = tuple(version for version in hit.versions if not version.endswith(quoted))
            hit = replace(hit, versions=unsaid)
        lines.append(line)
    new_lines = [line for line in dict.fromkeys(lines) if line not in hit.versions][:_MOST_LINES]
    if not new_lines:
        return hit
    return replace(
        hit, versions=(*new_lines, *hit.versions), contradicts=tuple(dict.fromkeys(against))
    )


def _find_opposed(hit: SearchHit, pair: OpposedPair) -> MemoryRecord | None:
    """The memory of a pair that speaks against a hit; None where none does."""
    if hit.kind == "memory":
        if pair.ended:
            # An ended one is found as history alone, and says so.
            return None
        return {pair.one.id: pair.other, pair.other.id: pair.one}.get(hit.id)
    return find_opposed_turn(hit.text, hit.ts, pair) if hit.kind == "turn" else None


def find_opposed_turn(text: str, ts: datetime | None, pair: OpposedPair) -> MemoryRecord | None:
    """The memory of a pair that speaks against what a turn says; None where none does."""
    later = ts is not None and ts > pair.other.created_at
    if _repeats(text, pair.one, pair.other) and not later:
        return pair.other
    if not pair.ended and _repeats(text, pair.other, pair.one):
        return pair.one
    return None


def _repeats(text: str, memory: MemoryRecord, other: MemoryRecord) -> bool:
    """Whether a turn says what a memory says, and not what the other one does."""
    turn_words, words, other_words = words_of(text), words_of(memory.text), words_of(other.text)
    own_words, foreign = words - other_words, other_words - words
    if not own_words or len(turn_words & words) < _SAYS * len(words):
        return False
    return 2 * len(turn_words & own_words) >= len(own_words) and 2 * len(
        turn_words & foreign
    ) <= len(foreign)
