"""Which hits of a search are worth showing unasked: few, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from anaphora.language.analyser import analyse, query_terms
from anaphora.rank.relevance import (
    EVIDENCE,
    FEWEST_WORDS,
    MEMORY_EVIDENCE,
    MEMORY_THRESHOLD,
    MOST_MEMORIES,
    WORD_COVERAGE,
    TurnEvidence,
    is_worth_it,
)
from anaphora.recall.snippets import best_part
from anaphora.values.search import SearchHit

_READ: Final = 4_000


def turn_evidence(prompt: str, hit: SearchHit) -> TurnEvidence:
    """What is looked at of a turn that was found for a prompt."""
    terms = set(query_terms(prompt))
    shared_count = len(terms & set(analyse(best_part(hit.text, tuple(terms), _READ))))
    evidence = sum(hit.factors.get(name, 0.0) for name in EVIDENCE)
    return TurnEvidence(hit.score, evidence, shared_count / max(1, len(terms)), hit.read)


def worth_showing(prompt: str, hits: Sequence[SearchHit]) -> list[SearchHit]:
    """Of the hits of a search, in their order, those that are likely to be relevant to a prompt."""
    if not any(hit.factors.get("meaning") for hit in hits):
        # There are no vectors while the model is loading.
        terms = len(set(query_terms(prompt)))
        least = max(WORD_COVERAGE, FEWEST_WORDS / max(1, terms))
        return [hit for hit in hits if turn_evidence(prompt, hit).coverage >= least]
    turns = [hit for hit in hits if hit.kind == "turn"]
    turn_signals = [turn_evidence(prompt, hit) for hit in turns]
    worth = {hit.id for n, hit in enumerate(turns) if is_worth_it(turn_signals, n)}
    memories = [hit for hit in hits if hit.kind in {"memory", "note"}]
    evidence: dict[float, float] = {}
    for hit in memories:
        # All of a group have one score: what holds is worth as much as what it replaced.
        match = hit.factors.get("meaning", 0.0) + hit.factors.get("words", 0.0) / 2
        evidence[hit.score] = max(evidence.get(hit.score, 0.0), match)
    memories = [hit for hit in memories if evidence[hit.score] >= MEMORY_EVIDENCE]
    likely = [hit.id for hit in memories if hit.score >= MEMORY_THRESHOLD][:MOST_MEMORIES]
    return [hit for hit in hits if hit.id in worth or hit.id in likely]
