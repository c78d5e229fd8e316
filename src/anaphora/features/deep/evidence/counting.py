"""Answers "how often" and "when first" without a model: it counts the turns with the keywords.

A count of keywords, and the answer says so: synonyms are not counted, and no turn is read.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

from anaphora.features.deep.evidence.scope import ScopedEvidence
from anaphora.features.deep.values import DeepSource
from anaphora.language.analyser import fold, query_terms, query_words
from anaphora.text.shown_times import in_shown_zone, shown_day

Kind = Literal["count", "first", "last"]

COUNTED: Final = "Counted without a model: exact word matches only, no synonyms."

_ASKED: Final[tuple[tuple[Kind, str], ...]] = (
    ("count", r"\bhow (?:often|many times|frequently)\b|\bnumber of times\b|\bwie oft\b"),
    ("first", r"\bwhen\b.*\bfirst\b|\bfirst (?:time|mention\w*|said)\b|\bwann\b.*\bzuerst\b"),
    ("last", r"\bwhen\b.*\blast\b|\blast (?:time|mention\w*|said)\b|\bwann\b.*\bzuletzt\b"),
)
_PATTERNS: Final = tuple((kind, re.compile(words)) for kind, words in _ASKED)
# The words of such a question that are not about its subject.
_ASKING: Final = frozenset(
    query_terms(
        "often many times time frequently number first last when name named mention mentioned say "
        "said tell told talk talked talking discuss discussed speak spoke come came up bring "
        "brought ever already anybody someone user assistant oft wann zuerst zuletzt"
    )
)
_NAMED: Final = 3
_EDGES: Final = "\"'?!.,;:()[]"


@dataclass(frozen=True, slots=True)
class Counted:
    """The count as a sentence, and the turns that it cites."""

    text: str
    sources: tuple[DeepSource, ...]


def count_mentions(scoped: ScopedEvidence, question: str) -> Counted | None:
    """The answer to a question that can be counted; None for another one, and for a count of 0."""
    text = fold(question[:2_000])
    kind = next((kind for kind, pattern in _PATTERNS if pattern.search(text)), None)
    keywords = tuple(word for word in query_words(question) if word.tokens[0] not in _ASKING)
    if kind is None or not keywords:
        return None
    turns = scoped.find_turns_with(keywords)
    if not turns:
        return None
    # The keywords as the question spells them, not as they are looked up.
    tokens = (word.strip(_EDGES) for word in question.split())
    subject = {word.tokens[0] for word in keywords}
    phrase = " ".join(word for word in tokens if set(query_terms(word)) & subject)
    if kind == "count":
        ends = turns[:1] if len(turns) == 1 else (turns[0], turns[-1])
        sessions = len({turn.conversation_id for turn in turns})
        role_counts = Counter(turn.role or "somebody" for turn in turns).most_common(_NAMED)
        by = ", ".join(f"{name} in {count:,}" for name, count in role_counts)
        days = [turn.ts for turn in turns if turn.ts is not None and turn.ts.year > 1]
        span = f", from {shown_day(min(days))} to {shown_day(max(days))}" if days else ""
        turns_phrase = "turn says" if len(turns) == 1 else "turns say"
        conversation_noun = "conversation" if sessions == 1 else "conversations"
        count_phrase = f'{len(turns):,} {turns_phrase} "{phrase}"'
        text = f"{count_phrase}, in {sessions:,} {conversation_noun}{span}: {by}."
        return Counted(text, ends)
    turn = turns[0] if kind == "first" else turns[-1]
    when = "no known time"
    if turn.ts is not None and turn.ts.year > 1:
        when = f"{in_shown_zone(turn.ts):%Y-%m-%d %H:%M}"
    statement = f'the {kind} turn that says "{phrase}" is of {when}, by {turn.role or "somebody"}'
    return Counted(f"{statement}; there are {len(turns):,} in all.", (turn,))
