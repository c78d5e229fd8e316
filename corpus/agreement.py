"""How far a second reader, who saw no labels, names the same evidence.

`python -m corpus.agreement` prints it for the readings of `second_reading.json`.
"""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from corpus.reading import FOLDER, Key, read_stories

READINGS = FOLDER.parent / "second_reading.json"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of `questions` read twice, the shares: where both find an answer or both none (`decided`),
    where the named turns and facts meet the labels, and the mean F1 of each."""

    questions: int
    decided: float
    turns_meet: float
    facts_meet: float
    turns_f1: float
    facts_f1: float


def measure_agreement(readings: Path = READINGS) -> Agreement:
    """Compare the second reading with the labels."""
    stories = {story.id: story for story in read_stories()}
    rows = []
    for reading in json.loads(readings.read_text("utf-8")):
        question = stories[reading["story"]].questions[reading["question"]]
        turns: set[Key] = {(session, place) for session, place in reading["evidence"]}
        facts: set[Key] = {("", place) for place in reading["facts"]}
        labelled, known = set(question.evidence), set(question.facts)
        rows.append(
            (
                bool(turns | facts) == bool(labelled | known),
                not labelled or bool(turns & labelled),
                not known or bool(facts & known),
                overlap(turns, labelled),
                overlap(facts, known),
            )
        )
    shares = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    return Agreement(len(rows), *shares)


def overlap(named: Set[Key], labelled: Set[Key]) -> float:
    """F1 of two sets; 1 where both are empty."""
    if not named and not labelled:
        return 1.0
    return 2 * len(named & labelled) / (len(named) + len(labelled))


if __name__ == "__main__":
    print(measure_agreement())
