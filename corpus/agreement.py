"""How far a second reader, who saw no labels, names the same evidence.

`python -m corpus.agreement` prints it for the readings of `second_reading.json`, and the share of
groups' labels that are alike for those of `second_labels.json`.
"""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from corpus.reading import FOLDER, Key, read_stories
from corpus.written import Group, read_groups

READINGS = FOLDER.parent / "second_reading.json"
LABELS = FOLDER.parent / "second_labels.json"
"""Rows of a hand, the place of a group in its file, that of a later statement, and its label."""


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


def measure_labels(labels: Path = LABELS) -> float:
    """The share of later statements that a second reader, blind, labels as their hand did."""
    by_hand: dict[str, list[Group]] = {}
    for group in read_groups():
        by_hand.setdefault(group.hand, []).append(group)
    rows: list[tuple[str, int, int, str]] = json.loads(labels.read_text("utf-8"))
    alike = sum(by_hand[hand][at].newer[place].label == label for hand, at, place, label in rows)
    return alike / len(rows)


def overlap(named: Set[Key], labelled: Set[Key]) -> float:
    """F1 of two sets; 1 where both are empty."""
    if not named and not labelled:
        return 1.0
    return 2 * len(named & labelled) / (len(named) + len(labelled))


if __name__ == "__main__":
    print(measure_agreement())
    print(f"labels of groups: {measure_labels():.3f}")
