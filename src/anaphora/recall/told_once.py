"""Of hits that are put in unasked: each fact once, what holds now, and nothing that says nothing.

- Small talk, plain commands and mere questions are no news.
- What something newer replaced gives way to that; where that is not worth it, it says so itself.
- Of two that openly contradict each other the newer comes, with the older in its mark.
- The user's words, the agent's "Noted: …" and the memory that was made of both are one fact.
- Of what a prompt itself gives a new value the old one is no news.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from anaphora.language.small_talk import QUESTION_MARKS, begins_as_question, is_small_talk
from anaphora.rank.pairs import JudgePairs, StatementPair, statement_of
from anaphora.rank.statements import read_statement, words_of
from anaphora.values.search import SearchHit

_ALIKE: Final = 0.6
"""The words of the shorter of two texts that say the same, as a share of those of the longer."""
_LEAST: Final = 2
_SAID: Final = 0.8
"""The words of a hit that the session has before it, as a share, where that is no news."""
_EVEN: Final = 0.5
"""The probability from which on a prompt rather replaces what a hit tells than not."""
_NEAR: Final = 600
_STORED_WITHIN: Final = timedelta(minutes=15)
"""How long after a turn a memory is stored that was made of it."""
_MADE: Final = 0.5
"""The words that the two share, as a share of those of the shorter one."""
_SHORT: Final = 240
"""Characters of a turn that may be a mere question; a longer one tells something beside it."""
_LABEL: Final = re.compile(r"\s*[^\W_][\w./-]{0,30}: ")
_DIGITS: Final = re.compile(r"\d")
_ANCIENT: Final = datetime(1, 1, 1, tzinfo=UTC)


def tells_something(hit: SearchHit) -> bool:
    """Whether a hit is more than small talk, a command or a mere question."""
    if is_small_talk(hit.text):
        return False
    if hit.kind != "turn" or len(hit.text) > _SHORT:
        return True
    # What a turn asks for that is a question and nothing else, another one tells.
    read = read_statement(hit.text)
    return not (read.asks and len(read.told) < _LEAST and begins_as_question(hit.text))


def present_hits(chosen: Sequence[SearchHit]) -> list[SearchHit]:
    """The chosen hits, best first, without what one of them replaced."""
    ranks = {hit.id: rank for rank, hit in enumerate(chosen)}
    return [
        hit
        for hit in chosen
        # What replaced a hit stands before it; behind it, where the past is asked for.
        if (hit.current or ranks.get(hit.older_than, len(ranks)) >= ranks[hit.id])
        # Of two that contradict each other the newer one stays.
        and not any(
            rival is not hit
            and hit.contradicts
            and rival.contradicts
            and (rival.id in hit.contradicts or hit.id in rival.contradicts)
            and (hit.ts or _ANCIENT, hit.id) < (rival.ts or _ANCIENT, rival.id)
            for rival in chosen
        )
    ]


def tell_once(hits: Sequence[SearchHit]) -> list[list[SearchHit]]:
    """The hits in groups that say one fact, in order; the first of each is the one to show."""
    groups: list[list[SearchHit]] = []
    for hit in hits:
        fact = next(
            (group for group in groups if any(say_the_same(hit, member) for member in group)), None
        )
        if fact is None:
            groups.append([hit])
        else:
            fact.append(hit)
    # A memory before a turn, and the user's before the agent's.
    return [
        sorted(group, key=lambda hit: (hit.kind == "turn", hit.speaker == "assistant"))
        for group in groups
    ]


def mark_earlier(hits: Sequence[SearchHit]) -> list[SearchHit]:
    """The hits, those marked that were said earlier than another one that may be about the same.

    Whether the later one replaces it nothing has told; two values side by side need a word all the
    same. Of memories so few come that any two may be; with a turn they share a word at least.
    """
    marked_hits = []
    for hit in hits:
        later = []
        if hit.current and not hit.contradicts and hit.ts is not None:
            later = [
                later_hit.ts
                for later_hit in hits
                if later_hit.ts is not None
                and later_hit.ts > hit.ts
                and (
                    "turn" not in (hit.kind, later_hit.kind)
                    or words_of(hit.text) & words_of(later_hit.text)
                )
            ]
        if later:
            day = f"{max(later):%Y-%m-%d}"
            line = f"earlier than what stands here of {day}, which counts if they differ"
            marked_hits.append(replace(hit, versions=(line, *hit.versions)))
        else:
            marked_hits.append(hit)
    return marked_hits


def say_the_same(first: SearchHit, second: SearchHit) -> bool:
    """Whether two hits tell one fact, as far as their words say: all of the shorter one's words
    stand in the other, with the same numbers, and both deny or neither does."""
    if first.current != second.current:
        return False
    first_words, second_words = _fact_words(first.text), _fact_words(second.text)
    if _is_made_of(first, second, first_words, second_words) or _is_made_of(
        second, first, second_words, first_words
    ):
        return True
    shorter, longer = sorted((first_words, second_words), key=len)
    if len(shorter) < _LEAST or not shorter <= longer or len(shorter) < _ALIKE * len(longer):
        return False
    if _keep_numbers(first_words) != _keep_numbers(second_words):
        return False
    first_reading, second_reading = read_statement(first.text), read_statement(second.text)
    return (
        first_reading.negated == second_reading.negated
        and first_reading.asks == second_reading.asks
    )


def drop_restated(
    prompt: str, now: datetime, hits: Sequence[SearchHit], judge: JudgePairs
) -> list[SearchHit]:
    """The hits without those of which a prompt that asks nothing gives another value, and without
    what says the same as those."""
    if any(mark in prompt for mark in QUESTION_MARKS) or begins_as_question(prompt):
        return list(hits)
    newer = statement_of(prompt, now.timestamp(), "user")
    olders = [statement_of(hit.text, (hit.ts or _ANCIENT).timestamp(), hit.speaker) for hit in hits]
    verdicts = judge([StatementPair(older, newer, math.nan) for older in olders])
    judged = zip(hits, verdicts, strict=True)
    outdated = [hit for hit, verdict in judged if verdict.replaces >= _EVEN]
    return [
        hit
        for hit in hits
        if not any(hit is replaced or say_the_same(hit, replaced) for replaced in outdated)
    ]


def _is_made_of(
    memory: SearchHit, turn: SearchHit, memory_words: frozenset[str], turn_words: frozenset[str]
) -> bool:
    """Whether a memory was stored for what a turn says: minutes after it, without other numbers."""
    if (memory.kind, turn.kind) != ("memory", "turn") or memory.ts is None or turn.ts is None:
        return False
    if not timedelta(0) <= memory.ts - turn.ts <= _STORED_WITHIN:
        return False
    least_shared = max(_LEAST, _MADE * min(len(memory_words), len(turn_words)))
    return len(memory_words & turn_words) >= least_shared and _keep_numbers(
        memory_words
    ) <= _keep_numbers(turn_words)


def stands_in(text: str, texts: Iterable[str]) -> bool:
    """Whether one of the texts, in small letters, holds what a text tells, in `_NEAR` characters.

    Words are looked for by their stems, so that no text that was said need be analysed.
    """
    words = _fact_words(text)
    numbers = _keep_numbers(words)
    least_shared = max(_LEAST, _SAID * len(words))

    def holds(part: str) -> bool:
        return (
            all(n in part for n in numbers) and sum(word in part for word in words) >= least_shared
        )

    return any(
        holds(part[at : at + _NEAR])
        for part in texts
        if holds(part)
        for at in range(0, len(part), _NEAR // 2)
    )


def _fact_words(text: str) -> frozenset[str]:
    return words_of(_LABEL.sub("", text, count=1)) - _FRAME_WORDS


def _keep_numbers(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in words if _DIGITS.search(word))


# What people and agents put around a fact that is to be kept.
_FRAME_WORDS: Final = words_of(
    "noted, ok, note, remember, saved, stored, keep in mind, by the way, btw, got it, understood, "
    "please, thanks, from now on, yes, so, we, will"
)
