"""Fit the weights of `rank/holding` (`make fit ONLY=holding`).

In: the stories of the training authors of corpus/, and of the folder of shared data the first half
of `changes` and chats 1 to 5 of REALTALK and BEAM. Out: the weights of `holding`, and
what was held out: the other authors, and the second half of `changes` with the stories of
bench/stories. Each question is asked through the public API; the pairs are those that recall orders
by a link, of which one is right for the question.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unittest import mock

import numpy as np
from bench.changes import ABSENT, FITTED, HELD_OUT, OWN, holds_any, read_stories, told_both_ways
from bench.datasets import Haystack, haystacks
from bench.fitting import fit_logistic
from bench.homes import home_of
from bench.told import asked_chat, asked_story, turn_texts
from corpus.reading import LANES, read_split
from corpus.reading import read_stories as read_corpus
from tools.fitting.outcome import Figure

from anaphora.rank import holding
from anaphora.rank.holding import CONSTANT, FEATURES, LEADS, FoundStatement, Standing, Verdicts
from anaphora.rank.statements import QuestionCues
from anaphora.recall import ordering

CHATS: Final = 5
"""Chats up to this number."""
CORPUS, CHANGES, CHAT = "corpus", "changes", "chat"
COUNTS: Final = {CORPUS: 0.3, CHANGES: 3.0, CHAT: 0.3}
"""What a pair counts, by what it is from."""
RIDGE: Final = 30.0

# (older, newer), each 1 (answer), -1 (outdated) or 0 (neither): whether the newer one is the right
# one, and what the pair counts. What is neither counts a third beside an answer.
_RIGHT: Final = {(-1, 1): (1, 1.0), (1, -1): (0, 1.0), (1, 0): (0, 0.3)}


@dataclass(frozen=True, slots=True)
class Ordered:
    """Features of a pair, whether the newer one stands before, and what the pair counts."""

    features: Sequence[float]
    before: int
    counts: float


@dataclass(frozen=True, slots=True)
class Fitted:
    """Weights by name, the constant among them; of how many pairs, and how many are so."""

    weights: Mapping[str, float]
    pairs: int
    before: int


@dataclass(frozen=True, slots=True)
class _Block:
    """What recall ordered together for one question."""

    found: Mapping[int, FoundStatement]
    verdicts: Verdicts
    cues: QuestionCues

    def pairs(
        self, answer: Collection[str], stale: Collection[str], source: str
    ) -> Iterator[Ordered]:
        """The pairs of which one is right, where the question asks for what holds."""
        labels = {}
        for index, found in self.found.items():
            text = found.statement.text
            labels[index] = 1 if holds_any(text, answer) else -int(holds_any(text, stale))
        for (old, new), verdict in self.verdicts.items() if self.cues.past < 2 else ():
            known = _RIGHT.get((labels[old], labels[new]))
            if known is not None and verdict.replaces >= holding.LINKED:
                row = holding.precedence_features(
                    self.found[old], self.found[new], verdict, self.cues
                )
                yield Ordered(row, known[0], known[1] * COUNTS[source])


@contextmanager
def _recorded() -> Iterator[list[_Block]]:
    """The blocks that recall orders from now on."""
    blocks: list[_Block] = []

    def record(
        found: Mapping[int, FoundStatement], verdicts: Verdicts, cues: QuestionCues, *given: object
    ) -> Standing:
        blocks.append(_Block(found, verdicts, cues))
        return holding.find_standing(found, verdicts, cues, *given)  # type: ignore[arg-type]

    with mock.patch.object(ordering, "find_standing", record):
        yield blocks


def look_up_corpus(
    authors: Iterable[str], homes: Path | None, stories: int | None = None
) -> list[Ordered]:
    """The pairs of the stories of some authors, at most `stories` of each."""
    pairs: list[Ordered] = []
    for author in authors:
        for story in read_corpus(authors=[author])[:stories]:
            for lane in LANES:
                with _recorded() as blocks, asked_story(homes, story, lane) as ask:
                    for question in story.questions:
                        blocks.clear()
                        ask(question)
                        if question.kind not in (ABSENT, "past", "first"):
                            for block in blocks:
                                pairs += block.pairs(question.answer, question.stale, CORPUS)
        print(f"{author}: {len(pairs):,} pairs", flush=True)
    return pairs


def look_up_changes(data: Path, parts: Sequence[str], homes: Path | None) -> list[Ordered]:
    """The pairs of some parts of `bench.changes`."""
    pairs: list[Ordered] = []
    for part in parts:
        for story in read_stories(data)[part]:
            with (
                _recorded() as blocks,
                home_of(homes, f"changes-{story['id']}") as home,
                told_both_ways(home, story) as ways,
            ):
                for question in story["questions"]:
                    for ask in ways.values() if question["kind"] not in (ABSENT, "past") else ():
                        blocks.clear()
                        ask(question)
                        for block in blocks:
                            pairs += block.pairs(question["answer"], question["stale"], CHANGES)
        print(f"changes, {part}: {len(pairs):,} pairs", flush=True)
    return pairs


def look_up_chats(data: Path, homes: Path | None) -> list[Ordered]:
    """The pairs of chats 1 to 5: what is evidence is right, and nothing is known of the rest."""
    pairs: list[Ordered] = []
    for form, chat in haystacks(data):
        if chat.number <= CHATS:
            pairs += _of_chat(form, chat, homes)
            print(f"{form} {chat.number}: {len(pairs):,} pairs", flush=True)
    return pairs


def _of_chat(form: str, chat: Haystack, homes: Path | None) -> Iterator[Ordered]:
    texts = turn_texts(chat)
    with _recorded() as blocks, asked_chat(homes, form, chat) as (memory, clock):
        latest = clock.now
        for question in chat.questions:
            evidence = [texts[key] for key in question.evidence if key in texts]
            if not evidence:
                continue
            blocks.clear()
            clock.now = question.now or latest
            memory.recall_conversation(question.conversation_id, question.text, top_k=10)
            for block in blocks:
                yield from block.pairs(evidence, (), CHAT)


def fit_before(pairs: Sequence[Ordered]) -> Fitted:
    """The weights of `BEFORE`."""
    weights, constant = fit_logistic(
        [one.features for one in pairs],
        [one.before for one in pairs],
        [one.counts for one in pairs],
        RIDGE,
    )
    named = dict(zip(FEATURES, weights, strict=True))
    return Fitted({CONSTANT: constant, **named}, len(pairs), sum(one.before for one in pairs))


def _right(pairs: Sequence[Ordered], before: Mapping[str, float]) -> float:
    weights = np.array([before[name] for name in FEATURES])
    odds = np.array([one.features for one in pairs]) @ weights + before[CONSTANT]
    leads = 1.0 / (1.0 + np.exp(-odds)) >= LEADS
    return float(np.mean(leads == np.array([one.before for one in pairs], bool)))


def fit_holding(
    data: Path, homes: Path | None = None, stories: int | None = None
) -> tuple[Fitted, tuple[Figure, ...]]:
    """Look up, fit, measure; of each author of the corpus at most `stories`."""
    split = read_split()
    pairs = look_up_corpus(split.train, homes, stories)
    pairs += look_up_changes(data, [FITTED], homes)
    pairs += look_up_chats(data, homes)
    fitted = fit_before(pairs)
    held = {
        "held-out authors": look_up_corpus(split.held_out, homes, stories),
        "changes, held out": look_up_changes(data, [HELD_OUT, OWN], homes),
    }
    figures = tuple(
        Figure(
            f"{name}: order of {len(own):,} pairs right",
            _right(own, holding.BEFORE),
            _right(own, fitted.weights),
        )
        for name, own in held.items()
    )
    return fitted, figures
