"""How much do links add, and what is left: `python -m tools.judge gap --data FOLDER`.

In: the stories of held-out authors, and those of `bench.changes` on which nothing is fitted. Each
is told and asked three times, by the same rule: without links, with what ships, and with a judge
that knows the labels. Where a story has none, its questions are taken for labels: what holds an
answer and what is outdated replace each other. Printed: how often an answer comes before all that
is outdated.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeAlias
from unittest import mock

from bench.changes import ABSENT, HELD_OUT, OWN, holds_any, read_stories, told_both_ways
from bench.told import asked_story
from corpus.reading import LANES, Lane, read_split
from corpus.reading import Story as LabelledStory
from corpus.reading import read_stories as read_corpus
from tools.judge.homes import BOTH, OTHER, REPEATS, REPLACES, related_places

from anaphora.ingest.judging import PairJudge
from anaphora.rank.pairs import PairVerdict, StatementPair
from anaphora.text.recalled import compared_text

STEADY: Final = frozenset({ABSENT, "stable", "number", "person"})
"""Kinds of questions that tell of no change."""
_SURE: Final = {REPLACES: (0.98, 0.01, 0.0), BOTH: (0.01, 0.98, 0.0), REPEATS: (0.0, 0.0, 0.98)}
Labels: TypeAlias = Mapping[tuple[str, str], int]
"""What a later text makes of an earlier one, by (earlier, later)."""
Right: TypeAlias = tuple[str, bool]
"""The name of a set, and whether a question of it was answered right."""


@dataclass(frozen=True)
class LabelJudge:
    """Knows the labels of one story; with none of them it makes nothing of any pair."""

    labels: Labels = field(default_factory=dict)
    is_there: bool = True
    version: str = "labels"

    def judge_features(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        """As `PairJudge`."""
        labels = (self.labels.get((pair.older.text, pair.newer.text), OTHER) for pair in pairs)
        return [PairVerdict(*_SURE.get(label, (0.0, 0.0, 0.0))) for label in labels]

    def judge(self, pairs: Sequence[StatementPair], _: int | None = None) -> list[PairVerdict]:
        """The same."""
        return self.judge_features(pairs)


Judges: TypeAlias = Callable[[Labels], Any]
JUDGES: Final[Mapping[str, Judges]] = {
    "no links": lambda _: LabelJudge(),
    "what ships": lambda _: PairJudge(),
    "labels": LabelJudge,
}


def main(words: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.judge gap", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the shared data")
    parser.add_argument("--stories", type=int, help="so many stories of an author at most")
    chosen = parser.parse_args(words)
    table: dict[str, dict[str, list[bool]]] = defaultdict(dict)
    for name, make in JUDGES.items():
        for where, right in _ask_all(chosen.data, make, chosen.stories):
            table[where].setdefault(name, []).append(right)
        print(f"asked: {name}", flush=True)
    print("\nset | questions | " + " | ".join(JUDGES) + " | closed by what ships")
    for where, by_judge in sorted(table.items()):
        none, ships, labels = (sum(by_judge[name]) / len(by_judge[name]) for name in JUDGES)
        closed = (ships - none) / (labels - none) if labels > none else float("nan")
        shares = f"{none:.3f} | {ships:.3f} | {labels:.3f} | {closed:.2f}"
        print(f"{where} | {len(by_judge['labels'])} | {shares}")


def _ask_all(data: Path, make: Judges, most: int | None) -> Iterator[Right]:
    stories = read_stories(data)
    for story in (*stories[HELD_OUT], *stories[OWN]):
        yield from ask_changes(story, make(guess_labels(story)))
    for author in read_split().held_out:
        for labelled in read_corpus(authors=[author])[:most]:
            for lane in LANES:
                texts = labelled.texts(lane)
                labels = {
                    (compared_text(texts[old]), compared_text(texts[new])): label
                    for (old, new), label in related_places(labelled, lane).items()
                }
                yield from _ask_corpus(labelled, lane, make(labels))


def guess_labels(story: Mapping[str, Any]) -> Labels:
    """What replaces what in a story of `bench.changes`, by its questions."""
    lanes = [
        [(fact["when"], fact["text"]) for fact in story["facts"]],
        [
            (session["when"], turn["text"])
            for session in story["sessions"]
            for turn in session["turns"]
        ],
    ]
    labels = {}
    for said, question in product(lanes, story["questions"]):
        if question["kind"] in STEADY:
            continue
        texts = [compared_text(text) for _, text in sorted(said, key=lambda one: str(one[0]))]
        for at, older in enumerate(texts):
            for newer in texts[at + 1 :]:
                if {_is_told(older, question), _is_told(newer, question)} == {"answer", "stale"}:
                    labels[older, newer] = REPLACES
    return labels


def _is_told(text: str, question: Mapping[str, Any]) -> str:
    """Which of the two a text holds alone, "" if neither or both."""
    held = [name for name in ("answer", "stale") if holds_any(text, question[name])]
    return held[0] if len(held) == 1 else ""


def ask_changes(story: dict[str, Any], judge: Any) -> Iterator[Right]:
    """Ask what is asked of a story of `bench.changes`, told both ways."""
    with (
        _judged_by(judge),
        tempfile.TemporaryDirectory(prefix="anaphora-gap-") as folder,
        told_both_ways(Path(folder) / "home", story) as ways,
    ):
        for question, (told, ask) in product(story["questions"], ways.items()):
            if question["kind"] != ABSENT:
                texts = [text for text, _ in ask(question)]
                right = _is_right(texts, question["answer"], question["stale"])
                yield f"changes, {told}", right
                yield f"changes, {question['kind']}", right


def _ask_corpus(story: LabelledStory, lane: Lane, judge: Any) -> Iterator[Right]:
    with _judged_by(judge), asked_story(None, story, lane) as ask:
        for question in story.questions:
            if question.stale and question.kind != ABSENT:
                texts = [hit.text for hit in ask(question)]
                right = _is_right(texts, question.answer, question.stale)
                yield f"held-out authors, {lane}", right
                yield f"held-out authors, {question.kind}", right


def _judged_by(judge: Any) -> Any:
    return mock.patch("anaphora.ingest.judging.bundled_judge", return_value=judge)


def _is_right(texts: Iterable[str], answer: Collection[str], stale: Collection[str]) -> bool:
    """Whether an answer comes before all that is outdated."""
    for text in texts:
        if holds_any(text, answer):
            return True
        if holds_any(text, stale):
            return False
    return False
