"""Pairs of an earlier and a later statement: whether the later one replaces the earlier.

From a story come its labelled relations, and pairs that no label relates: the nearest by the
embedder, and random ones. From `corpus/changes/*.jsonl` come pairs that were written one by one
(`older`, `newer`, `older_by`, `newer_by`, `question`, `label`, `lane`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from bench.embedder import KeptEmbedder
from tools.models.pairs import LANES
from tools.models.passages import SPEAKER, WORDS, Turn, form_passages
from tools.models.stories import FACTS, holding, pools_of
from tools.reader.examples import ChangeExample, Verdict
from tools.reader.statements import (
    LabelledPair,
    dated_text,
    labelled_pairs,
    times_of,
    topics,
    turn_places,
)

NEAR, RANDOM = 1.0, 0.5
"""Unrelated pairs for each labelled one: the nearest, and any."""
ASKED = 0.7
"""Share of the unrelated pairs that get any question of the story where none is about them."""

_Asked: TypeAlias = tuple[str, frozenset[int]]
"""A question, and the places of its evidence in one lane."""

_VERDICTS: Final[Mapping[str, Verdict]] = {
    "replaces": "replaces",
    "both": "holds",
    "holds": "holds",
    "same": "holds",
    "other": "other",
}


@dataclass(frozen=True, slots=True)
class _Lane:
    """The statements of a story in one lane, and which of them belong together."""

    lane: str
    group: str
    words: Sequence[str]
    told: Sequence[str]
    times: Sequence[str]
    pairs: Sequence[LabelledPair]
    together: Mapping[int, frozenset[int]]


def story_pairs(
    story: Mapping[str, Any],
    source: str,
    author: str,
    vectors: KeptEmbedder,
    *,
    seed: int = 1,
    dated: bool = False,
) -> Iterator[ChangeExample]:
    """The labelled pairs of a story, and unrelated ones drawn from the seed."""
    related = labelled_pairs(story)
    forms = (pools_of(story, source, form, author) for form in (WORDS, SPEAKER))
    for words, said in zip(*forms, strict=True):
        times = times_of(story, words.lane)
        told = list(said.passages)
        if dated:
            told = [dated_text(text, when) for text, when in zip(told, times, strict=True)]
        pairs = [pair for pair in related if pair.lane == words.lane]
        together = _together(story, words.passages, words.lane, pairs)
        lane = _Lane(words.lane, words.group, words.passages, told, times, pairs, together)
        asked = _asked_of(story, lane.words, lane.lane)
        yield from _labelled(lane, asked, source)
        yield from _unrelated(lane, asked, source, vectors, seed)


def written_pairs(folder: Path) -> Iterator[ChangeExample]:
    """The pairs of all files, in the order of their names; none where there is no folder."""
    for file in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(file.read_text("utf-8").splitlines()):
            pair = json.loads(line)
            turns = [
                Turn(pair["older_by"] or None, pair["older"]),
                Turn(pair["newer_by"] or None, pair["newer"]),
            ]
            older, newer = form_passages(turns, SPEAKER)
            yield ChangeExample(
                key=f"written/{file.stem}/{number}",
                source="written",
                lane=LANES[pair["lane"]],
                group=f"written/{file.stem}",
                questions=(pair["question"],) if pair["question"] else (),
                older=older,
                newer=newer,
                verdict=_VERDICTS[pair["label"]],
            )


def _labelled(lane: _Lane, asked: Sequence[_Asked], source: str) -> Iterator[ChangeExample]:
    for pair in lane.pairs:
        questions = _about(asked, pair.older, pair.newer)
        yield _example(lane, source, pair.older, pair.newer, _VERDICTS[pair.relation], questions)


def _unrelated(
    lane: _Lane, asked: Sequence[_Asked], source: str, vectors: KeptEmbedder, seed: int
) -> Iterator[ChangeExample]:
    chance = random.Random(f"{seed}:{lane.group}:{lane.lane}")
    near = _nearest_pairs(lane, vectors)[: round(NEAR * len(lane.pairs))]
    free = [
        (older, newer)
        for newer in range(len(lane.words))
        for older in range(newer)
        if _apart(lane, older, newer) and (older, newer) not in near
    ]
    drawn = chance.sample(free, min(len(free), round(RANDOM * len(lane.pairs))))
    for older, newer in [*near, *drawn]:
        questions = _about(asked, older, newer)
        # Else a question beside a pair would give away that its statements are related.
        if not questions and asked and chance.random() < ASKED:
            questions = (chance.choice(asked)[0],)
        yield _example(lane, source, older, newer, "other", questions)


def _about(asked: Sequence[_Asked], older: int, newer: int) -> tuple[str, ...]:
    return tuple(text for text, evidence in asked if {older, newer} & evidence)


def _example(
    lane: _Lane, source: str, older: int, newer: int, verdict: Verdict, questions: tuple[str, ...]
) -> ChangeExample:
    return ChangeExample(
        key=f"{lane.group}/{lane.lane}/{older}-{newer}",
        source=source,
        lane=lane.lane,
        group=lane.group,
        questions=questions,
        older=lane.told[older],
        newer=lane.told[newer],
        verdict=verdict,
    )


def _nearest_pairs(lane: _Lane, vectors: KeptEmbedder) -> list[tuple[int, int]]:
    """Unrelated pairs, the nearest first; each later statement once with its nearest."""
    if len(lane.words) < 2:
        return []
    rows = np.stack([parts[0] for parts in vectors.embed(lane.words)])
    cosines = rows @ rows.T
    found = []
    for newer in range(1, len(rows)):
        for older in np.argsort(-cosines[newer, :newer], kind="stable").tolist():
            if _apart(lane, older, newer):
                found.append((float(cosines[newer, older]), older, newer))
                break
    return [(older, newer) for _, older, newer in sorted(found, reverse=True)]


def _apart(lane: _Lane, older: int, newer: int) -> bool:
    """Whether nothing relates two statements: no label, no question, not one occasion.

    Of one session one may only acknowledge the other, which nobody labelled.
    """
    if lane.words[older] == lane.words[newer] or lane.times[older] == lane.times[newer]:
        return False
    return newer not in lane.together.get(older, frozenset())


def _together(
    story: Mapping[str, Any], words: Sequence[str], lane: str, pairs: Sequence[LabelledPair]
) -> dict[int, frozenset[int]]:
    """Each statement with all that a label or a question names beside it."""
    found: dict[int, frozenset[int]] = topics(pairs)
    for question in story["questions"]:
        marked = _evidence(story, question, lane, words)
        marked |= holding(words, [*question["answer"], *question.get("stale", ())])
        for place in marked:
            found[place] = found.get(place, frozenset()) | marked
    return found


def _asked_of(story: Mapping[str, Any], words: Sequence[str], lane: str) -> list[_Asked]:
    return [
        (question["q"], _evidence(story, question, lane, words)) for question in story["questions"]
    ]


def _evidence(
    story: Mapping[str, Any], question: Mapping[str, Any], lane: str, words: Sequence[str]
) -> frozenset[int]:
    if "evidence" not in question:
        return holding(words, question["answer"])
    if lane == FACTS:
        return frozenset(question["facts"])
    places = turn_places(story)
    return frozenset(places[session, at] for session, at in question["evidence"])
