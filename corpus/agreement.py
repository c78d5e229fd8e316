"""How far a second reader, who saw no labels, names the same evidence.

`python -m corpus.agreement` prints it for the readings of `second_reading.json`, and for what hands
wrote the share that is alike by `second_labels.json` (groups), `second_plain.json` (plain groups),
`second_questions.json`, `second_exchanges.json` and `second_past.json`.
"""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from corpus.reading import FOLDER, Key, read_stories
from corpus.tasks import as_told
from corpus.written import ROOT, Group, read_chains, read_exchanges, read_groups, read_wanted

READINGS = FOLDER.parent / "second_reading.json"
LABELS = FOLDER.parent / "second_labels.json"
"""Rows of a hand, the place of a group in its file, that of a later statement, and its label."""

PLAIN = FOLDER.parent / "second_plain.json"
"""The same of plain groups."""

QUESTIONS = FOLDER.parent / "second_questions.json"
"""Rows of a hand, a story, a question, its lane, and what the reader named of twelve statements."""

EXCHANGES = FOLDER.parent / "second_exchanges.json"
"""Rows of a hand, a question, and the exchange that the reader chose, as it is told."""

PAST = FOLDER.parent / "second_past.json"
"""Rows of a hand, the first statement of a chain, a question, and the places that were named."""


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


def measure_labels(labels: Path = LABELS, folder: Path = ROOT / "groups") -> float:
    """The share of later statements that a second reader, blind, labels as their hand did."""
    by_hand: dict[str, list[Group]] = {}
    for group in read_groups(folder):
        by_hand.setdefault(group.hand, []).append(group)
    rows: list[tuple[str, int, int, str]] = json.loads(labels.read_text("utf-8"))
    alike = sum(by_hand[hand][at].newer[place].label == label for hand, at, place, label in rows)
    return alike / len(rows)


def measure_plain() -> float:
    """The same of plain groups."""
    return measure_labels(PLAIN, ROOT / "plain")


def measure_questions(readings: Path = QUESTIONS) -> float:
    """Of the questions over stories, the share for which the reader named something that answers
    and nothing that misleads; for a near miss, nothing."""
    wanted = {(one.hand, one.story, one.text): one for one in read_wanted(read_stories())}
    rows = json.loads(readings.read_text("utf-8"))
    alike = 0
    for hand, story, text, lane, named in rows:
        one = wanted[hand, story, text]
        chosen = {(session, place) for session, place in named}
        right = {*(one.turns if lane == "turns" else one.facts)}
        answered = not chosen.isdisjoint(right) if right else not chosen
        alike += answered and chosen.isdisjoint(one.misleading.get(lane, ()))
    return alike / len(rows)


def measure_exchanges(readings: Path = EXCHANGES) -> float:
    """Of the questions for a short reply, the share for which the reader chose its exchange."""
    told = {
        (one.hand, question): as_told(one) for one in read_exchanges() for question in one.questions
    }
    rows: list[tuple[str, str, str]] = json.loads(readings.read_text("utf-8"))
    return sum(told[hand, question] == chosen for hand, question, chosen in rows) / len(rows)


def measure_past(readings: Path = PAST) -> float:
    """Of the questions about a chain, the share for which the reader brought what answers, and
    nothing else."""
    answers = {
        (chain.hand, chain.statements[0][2], question.text): set(question.answer)
        for chain in read_chains()
        for question in chain.questions
    }
    rows = json.loads(readings.read_text("utf-8"))
    alike = sum(
        bool(named) and answers[hand, first, text] >= set(named)
        for hand, first, text, named in rows
    )
    return alike / len(rows)


def overlap(named: Set[Key], labelled: Set[Key]) -> float:
    """F1 of two sets; 1 where both are empty."""
    if not named and not labelled:
        return 1.0
    return 2 * len(named & labelled) / (len(named) + len(labelled))


if __name__ == "__main__":
    print(measure_agreement())
    print(f"labels of groups: {measure_labels():.3f}")
    print(f"labels of plain groups: {measure_plain():.3f}")
    print(f"questions: {measure_questions():.3f}")
    print(f"exchanges: {measure_exchanges():.3f}")
    print(f"past: {measure_past():.3f}")
