"""Pools of statements with questions that were judged among them, as the reader sees them.

A pool comes in twice from `tools.models`: the words alone, which the embedder gets, and with the
speaker and the turn before, which the reader gets. From a story come also the questions that
nothing answers, and what its labelled relations say about the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tools.models.asked import Pool
from tools.models.passages import CONTEXT, SPEAKER, WORDS
from tools.models.stories import FACTS, TURNS, holding, pools_of

from anaphora.language.analyser import query_words
from anaphora.reading.inputs import statement_text
from anaphora.recall.reading import CUT
from anaphora.recall.snippets import best_part

_HEAD: Final = re.compile(r"(?:\d{1,2} \w+ \d{4}, )?(?:[^\n:]{1,40}: )?")
_BEFORE: Final = "\n(before: "


@dataclass(frozen=True, slots=True)
class Judged:
    """A question of a pool, and what is known of its statements, by their places.

    `answers`, `about` and `unclear` as in `AnswerExample`; `hidden` are shown with no verdict at
    all, because they may be answers. `misleading` were written to be mistaken for an answer.
    `near`: nothing answers it, but something like it was said.
    """

    key: str
    query: str
    answers: frozenset[int]
    about: frozenset[int] = frozenset()
    unclear: frozenset[int] = frozenset()
    hidden: frozenset[int] = frozenset()
    misleading: tuple[int, ...] = ()
    near: bool = False


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements of one story or chat in one lane, by place, and what is asked of them.

    `words` are embedded, `told` are read.
    """

    source: str
    lane: str
    group: str
    words: Sequence[str]
    told: Sequence[str]
    asked: Sequence[Judged]
    author: str = ""
    language: str = "en"


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two related statements of a lane, by place."""

    lane: str
    older: int
    newer: int
    relation: str


def judged_pool(words: Pool, told: Pool) -> Statements:
    """A pool in both forms as statements; neutral statements are about the question."""
    asked = [
        Judged(one.key, one.query, one.positives, one.neutral, misleading=one.misleading)
        for one in words.asked
    ]
    return Statements(
        words.source,
        words.lane,
        words.group,
        words.passages,
        told.passages,
        asked,
        words.author,
        words.language,
    )


def judged_story(
    story: Mapping[str, Any], source: str, author: str, *, dated: bool = False
) -> Iterator[Statements]:
    """The turns and the facts of a story, with all of its questions."""
    forms = (pools_of(story, source, form, author) for form in (WORDS, SPEAKER, CONTEXT))
    pairs = labelled_pairs(story)
    for words, said, told in zip(*forms, strict=True):
        times = times_of(story, words.lane)
        read = list(told.passages)
        if words.lane == TURNS:
            # What was said weeks before the first turn of a session is not what it answers to.
            for place in (place for (_, at), place in turn_places(story).items() if at == 0):
                read[place] = said.passages[place]
        if dated:
            read = [dated_text(text, when) for text, when in zip(read, times, strict=True)]
        neighbours = _neighbours(story) if words.lane == TURNS else {}
        of_lane = [pair for pair in pairs if pair.lane == words.lane]
        known = {one.key: one for one in words.asked}
        asked = []
        for number, question in enumerate(story["questions"]):
            key = f"{words.group}/{number}/{'t' if words.lane == TURNS else 'f'}"
            if question["kind"] == "absent":
                # Where a set does not say which of these are near misses, any may be one.
                near = bool(question.get("near", "evidence" not in question))
                asked.append(Judged(key, question["q"], frozenset(), near=near))
            elif key in known:
                one = known[key]
                judged = Judged(key, one.query, one.positives, one.neutral)
                right = holding(words.passages, question["answer"])
                asked.append(_with_relations(judged, right, of_lane, neighbours))
        yield Statements(
            source, words.lane, words.group, words.passages, read, asked, author, words.language
        )


def labelled_pairs(story: Mapping[str, Any]) -> list[LabelledPair]:
    """The relations of a story, if it names any."""
    places = turn_places(story)
    found = []
    for one in story.get("changes", ()):
        if one["lane"] == TURNS:
            older, newer = places[tuple(one["older"])], places[tuple(one["newer"])]
        else:
            older, newer = one["older"], one["newer"]
        found.append(LabelledPair(one["lane"], older, newer, one["relation"]))
    return found


def turn_places(story: Mapping[str, Any]) -> dict[tuple[str, int], int]:
    """The place of each turn in the whole story, by its session and its place there."""
    keys = [
        (session["id"], at) for session in story["sessions"] for at in range(len(session["turns"]))
    ]
    return {key: place for place, key in enumerate(keys)}


def times_of(story: Mapping[str, Any], lane: str) -> list[str]:
    """When each statement of a lane was said; of a turn, when its session began."""
    if lane == FACTS:
        return [str(fact["when"]) for fact in story["facts"]]
    return [str(session["when"]) for session in story["sessions"] for _ in session["turns"]]


def dated_text(text: str, when: str) -> str:
    """A statement with the day on which it was said in front."""
    return statement_text(text, day=datetime.fromisoformat(when))


def cut_statement(question: str, statement: str) -> str:
    """What is read of a statement: of a long one the part that holds most of the question's words.

    Its day, its speaker and the turn before stay. Recall does not read long ones at all.
    """
    if len(statement) <= CUT:
        return statement
    text, mark, before = statement.partition(_BEFORE)
    match = _HEAD.match(text)
    head = match.group() if match else ""
    terms = [token for word in query_words(question) for token in word.tokens]
    return f"{head}{best_part(text[len(head) :], terms, CUT)}{mark}{before}"


def topics(pairs: Sequence[LabelledPair]) -> dict[int, frozenset[int]]:
    """The statements that are related to each other, directly or by way of others."""
    found: dict[int, set[int]] = {}
    for pair in pairs:
        joined = found.get(pair.older, {pair.older}) | found.get(pair.newer, {pair.newer})
        for place in joined:
            found[place] = joined
    return {place: frozenset(related) for place, related in found.items()}


def _with_relations(
    one: Judged,
    right: frozenset[int],
    pairs: Sequence[LabelledPair],
    neighbours: Mapping[int, frozenset[int]],
) -> Judged:
    """What a question's answers are related to is about it; their neighbours may be."""
    related = topics(pairs)
    about = one.about.union(*(related.get(place, frozenset()) for place in one.answers))
    repeated = {
        place
        for pair in pairs
        if pair.relation == "same" and {pair.older, pair.newer} & one.answers
        for place in (pair.older, pair.newer)
    }
    hidden = (right | repeated) - one.answers
    about = about - one.answers - hidden
    beside = frozenset[int]().union(*(neighbours.get(place, frozenset()) for place in one.answers))
    unclear = beside - one.answers - hidden - about
    return Judged(one.key, one.query, one.answers, about, unclear, hidden)


def _neighbours(story: Mapping[str, Any]) -> dict[int, frozenset[int]]:
    """The turns just before and after each turn in its session."""
    places = turn_places(story)
    return {
        place: frozenset(
            places[session, beside] for beside in (at - 1, at + 1) if (session, beside) in places
        )
        for (session, at), place in places.items()
    }
