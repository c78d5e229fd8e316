"""The hits of one question to memories: what is shown of them, and with what beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from anaphora.recall.candidates import Placed
from anaphora.recall.former import REASON, PastAsked, read_chains, with_chain
from anaphora.recall.memory_candidates import FoundMemories
from anaphora.recall.ordering import COMPARABLE
from anaphora.recall.reading import PART
from anaphora.store.records.rows import as_mapping
from anaphora.values.memories import MemoryHit, MemoryRecord, Rejected, RelatedMemory

if TYPE_CHECKING:
    from anaphora.index.memories.state import Candidates
    from anaphora.rank.memories import MemoryScores

_SAME: Final = "same"
_SHARED: Final = sorted(
    {part.name for part in fields(MemoryRecord)} & {part.name for part in fields(MemoryHit)}
)
"""What a hit says as its memory does."""
_shared_of = attrgetter(*_SHARED)


@dataclass(slots=True)
class MemoryHitMaker:
    """Makes the hits of what was found. `explain` notes what was not shown, and why."""

    found: FoundMemories
    explain: bool = False
    _rejected: list[tuple[int, str]] = field(default_factory=list)

    def best(self, placed: Iterable[Placed], least: float) -> tuple[MemoryHit, ...]:
        """The first `top_k` that are `placed`, of at least this score; restatements shown once."""
        memories, top_k = self.found, self.found.top_k
        picks: list[Placed] = []
        links: list[list[tuple[str, str]]] = []
        same_ids: dict[str, list[str]] = {}
        for candidate in placed:
            record_id = memories.reference_of(candidate.candidate)
            linked = memories.source.index.links(record_id)
            shown_ids = (memories.reference_of(pick.candidate) for pick in picks)
            if candidate.standing < least or len(picks) == top_k:
                if not self.explain:
                    break
                reason = "below_min_score" if candidate.standing < least else "beyond_top_k"
                self._rejected.append((candidate.index, reason))
            elif memories.is_ranked and (
                twin := next((hit_id for hit_id in shown_ids if (hit_id, _SAME) in linked), "")
            ):
                same_ids.setdefault(twin, []).append(record_id)
                self._rejected.append((candidate.index, f"same_as {twin}"))
            else:
                picks.append(candidate)
                links.append(linked)
        versions = self._read_versions(picks)
        records, ids, scores = memories.records, memories.result.columns.ids, memories.scores
        # Of the linked memories those that are past stay out of sight.
        linked_ids = [linked_id for linked in links for linked_id, _ in linked]
        lookup = memories.lookup
        # Most have none.
        visible_ids = (
            memories.source.index.visible(linked_ids, lookup.moment, past=lookup.past)
            if linked_ids
            else set()
        )
        hits = []
        for candidate, linked in zip(picks, links, strict=True):
            record = records.get(ids[candidate.index])
            # Forgotten between the search and now: it must not come back.
            if record is not None and not record.forgotten:
                ends = [end for end in linked if end[0] in visible_ids]
                related_ids = tuple(linked_id for linked_id, kind in ends if kind != _SAME)
                twins = (linked_id for linked_id, kind in ends if kind == _SAME)
                shown_once = tuple(dict.fromkeys((*same_ids.get(record.id, ()), *twins)))
                context = _HitContext(candidate, versions, related_ids, shown_once)
                hits.append(_make_hit(record, scores, candidate.index, context))
        return self._add_former(hits, least)

    def _add_former(self, hits: list[MemoryHit], least: float) -> tuple[MemoryHit, ...]:
        """The hits with the former values of their paths; first the one that is asked for."""
        if not self.found.source.by_currency or all(hit.path is None for hit in hits):
            return tuple(hits)
        past = PastAsked.read(self.found.question)
        records = [self.found.records[hit.id] for hit in hits]
        chains = read_chains(records, self.found.read, past.depth)
        updated_hits = [
            replace(hit, previous=with_chain(hit.previous, chains[hit.id])) for hit in hits
        ]
        best_score = max(hit.score for hit in updated_hits)
        # Where several are as good, the first.
        for hit in sorted(updated_hits, key=lambda hit: -hit.score):
            version = past.version(self.found.records[hit.id], chains[hit.id])
            if version is None or not self.found.is_ranked or hit.score < COMPARABLE * best_score:
                continue
            former = None if version.id == hit.id else self._make_former_hit(version, hit)
            front = [hit] if former is None or former.score < least else [former, hit]
            remaining = [other_hit for other_hit in updated_hits if other_hit not in front]
            index = 0 if hit.score == best_score else updated_hits.index(hit)
            return (*remaining[:index], *front, *remaining[index:])[: self.found.top_k]
        return tuple(updated_hits)

    def _make_former_hit(self, version: MemoryRecord, newer: MemoryHit) -> MemoryHit | None:
        """A value that a newer one of its path replaced, with its own score; None without one."""
        every = self.found.source.excluded(self.found.lookup)
        is_allowed = self.found.lookup.keep.matches(as_mapping(version))
        if version.id not in every.columns.ids or not is_allowed:
            return None
        hit = _make_hit(version, self.found.rank(every), every.columns.ids.index(version.id))
        by = RelatedMemory(newer.id, newer.text, newer.created_at)
        return replace(hit, current=False, older_than=by, reason=REASON, answers=newer.answers)

    def _read_versions(self, picks: Sequence[Placed]) -> dict[int, RelatedMemory]:
        """Read the hits with what they replace or are replaced by, and return the latter.

        By their places; none that was forgotten since.
        """
        ids = self.found.result.columns.ids
        indexes = {index for pick in picks for index in pick.previous}
        indexes |= {pick.older_than for pick in picks if pick.older_than is not None}
        records = self.found.read({ids[index] for index in (*indexes, *(p.index for p in picks))})
        indexed_records = ((index, records.get(ids[index])) for index in sorted(indexes))
        return {
            index: RelatedMemory(record.id, record.text, record.created_at)
            for index, record in indexed_records
            if record is not None and not record.forgotten
        }

    def rejected(self) -> tuple[Rejected, ...]:
        """Candidates that were not shown, best first: of what could be shown, then of the rest."""
        candidates = self.found.result
        self._rejected += [(index, "nothing_in_common") for index in self.found.silent]
        rank = {index: at for at, index in enumerate(self.found.scores.order.tolist())}
        self._rejected.sort(key=lambda pair: rank[pair[0]])
        rejections = self._describe(candidates, self.found.scores, self._rejected)
        every = self.found.source.excluded(self.found.lookup)
        found_ids = set(candidates.columns.ids)
        scores = self.found.rank(every)
        excluded_rows = [
            (index, every.excluded[index])
            for index in scores.order.tolist()
            if every.excluded[index] and every.columns.ids[index] not in found_ids
        ]
        return (*rejections, *self._describe(every, scores, excluded_rows))

    def _describe(
        self, candidates: Candidates, scores: MemoryScores, reasons: Sequence[tuple[int, str]]
    ) -> Iterator[Rejected]:
        records = self.found.source.many(candidates.columns.ids[index] for index, _ in reasons)
        for index, reason in reasons:
            record = records.get(candidates.columns.ids[index])
            if record is not None:
                yield Rejected(_make_hit(record, scores, index), reason)


@dataclass(frozen=True, slots=True)
class _HitContext:
    """Where a hit stands among the others: what it was ordered by, and what it is linked with."""

    placed: Placed
    versions: Mapping[int, RelatedMemory]
    related: tuple[str, ...]
    same_as: tuple[str, ...]

    def fields(self, score: float) -> dict[str, Any]:
        """The fields of a hit with `score` as its own score."""
        placed, candidate, versions = self.placed, self.placed.candidate, self.versions
        replacing = None if placed.older_than is None else versions.get(placed.older_than)
        # What the candidate's changes did to that score: of the reader a part, else a factor.
        changes = candidate.changes
        read = changes.get(PART, 0.0)
        factors = {PART: read} if PART in changes else {}
        if "unanswered" in changes and score + read:
            factors["unanswered"] = candidate.score / (score + read)
        return {
            "related": self.related,
            "same_as": self.same_as,
            "current": replacing is None,
            "older_than": replacing,
            "reason": placed.reason if replacing is not None else "",
            "previous": tuple(versions[at] for at in placed.previous if at in versions),
            "score": candidate.score,
            "factors": factors,
            "answers": placed.answers,
            "read": candidate.read_probability,
        }


def _make_hit(
    record: MemoryRecord, scores: MemoryScores, index: int, context: _HitContext | None = None
) -> MemoryHit:
    score, factors = float(scores.score[index]), scores.explain(index)
    details = {} if context is None else context.fields(score)
    return MemoryHit(
        **dict(zip(_SHARED, _shared_of(record), strict=True)),
        similarity=float(scores.similarity[index]),
        decay=float(scores.decay[index]),
        reinforcement=float(scores.reinforcement[index]),
        **{"score": score, **details, "factors": factors | details.get("factors", {})},
    )
