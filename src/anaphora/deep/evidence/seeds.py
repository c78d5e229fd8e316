"""The first searches of a question, made before any model is asked.

In: a question. Out: a few different ways to ask for the same, and what they find together. No
wildcard: every query holds words of the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from anaphora.core.analyser import STOP_WORDS, query_terms
from anaphora.deep.evidence.scoped import ScopedEvidence
from anaphora.values.deep import DeepSource

QUERIES: Final = 4
HITS: Final = 8
SHOWN: Final = 16

_QUOTED = re.compile(
    r"[\"“”«]([^\"“”»]{3,120})[\"“”»]|`([^`]{2,120})`|(?<!\w)'([^']{3,120})'(?!\w)"
)
_NAME = re.compile(r"\b[A-Z][\w'’-]*(?:\s+(?:of|the|de|von|van)?\s*[A-Z][\w'’-]*)*|\b\w*\d\w*\b")
_PARTS = re.compile(
    r"[,;:?!]\s+|\s+(?:and|or|but|than|before|after|when|while|because|between|versus|vs\.?)\s+",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"^\s*(?:please\s+)?(?:(?:can|could|do|did|does|would)\s+(?:you|we|i)\s+)?(?:tell me|remember|"
    r"how (?:many|much|often|long)|in (?:which|what)|what(?:'s| is| was| were| did| do| does)?|"
    r"which|who|whom|whose|when|where|why|how|list|count|find|show me)\b[\s:,]*(?:times\s+)?"
    r"(?:(?:did|do|does|was|were|is|are|has|have|had)\b\s*)?",
    re.IGNORECASE,
)


def seed_queries(question: str) -> tuple[str, ...]:
    """Up to 4 different queries for `question`, itself first.

    The others are: what stands in quotation marks and its names and numbers; its words without
    the asking ("how often did"); and its longest parts. One that has the same terms as one before
    is left out.
    """
    out: list[str] = []
    known: set[frozenset[str]] = set()
    for query in (question.strip(), *_angles(question)):
        terms = frozenset(query_terms(query))
        if terms and terms not in known and not terms <= STOP_WORDS:
            known.add(terms)
            out.append(query)
    return tuple(out[:QUERIES])


def first_hits(evidence: ScopedEvidence, question: str) -> tuple[DeepSource, ...]:
    """What the seed queries find together, the best of each in turn; at most 16."""
    lists = [evidence.search(query, HITS) for query in seed_queries(question)]
    return _in_turn(lists)[:SHOWN]


def _angles(question: str) -> Iterable[str]:
    quoted = [" ".join(filter(None, match.groups())) for match in _QUOTED.finditer(question)]
    # The first word of a question is written large whatever it is.
    names = [m.group() for m in _NAME.finditer(question) if m.start() > 0]
    yield " ".join([*quoted, *names])
    bare = _ASKING.sub("", question)
    yield bare
    parts = [part for part in _PARTS.split(bare) if part]
    if len(parts) > 1:
        yield from sorted(parts, key=len, reverse=True)


def _in_turn(lists: Sequence[Sequence[DeepSource]]) -> tuple[DeepSource, ...]:
    best: dict[str, DeepSource] = {}
    for rank in range(max(map(len, lists), default=0)):
        for one in (found[rank] for found in lists if rank < len(found)):
            best.setdefault(one.id, one)
    return tuple(best.values())
