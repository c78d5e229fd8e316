"""When is recall rightly silent? `python -m bench.silence --data DIR`.

Questions that what is searched answers, questions about what was never said there, and questions
that were asked of somebody else, over stories (told as chats and as facts) and over REALTALK and
BEAM. For each floor of the probability that a hit answers: the share of each that gets nothing. The
weights of `rank/silence` are fitted anew on the first half of the shared stories and on chats 1 to
5, each group counting the same; the curve is of the others. bench/results/silence.json and .md, or
silence_read with `--read`.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from unittest import mock

from anaphora import Memory
from anaphora.rank.currency import Statements
from anaphora.rank.silence import (
    CONSTANT,
    FLOOR,
    MEANING,
    MOST,
    READ_CONSTANT,
    READ_MEANING,
    READ_ODDS,
    READ_UNSEEN,
    UNSEEN,
    answer_features,
    answer_probability,
)
from anaphora.rank.statements import QuestionCues
from anaphora.recall import currency
from bench.changes import ABSENT, FITTED, Story, read_stories, told_both_ways
from bench.datasets import SETS, Haystack, haystacks
from bench.figures import machine_and_day, write
from bench.fitting import fit_logistic
from bench.homes import home_of, load_reader, tell_once

FLOORS: Final = tuple(sorted({0.02, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, FLOOR}))
# Questions of each chat, and of another one, evenly spread.
OF_CHAT: Final = 40
NOTHING: Final = (0.0, 1.0, 0.0, None)
"""What is seen of a question that finds nothing."""
MEANING_AT: Final = 0
UNSEEN_AT: Final = 1
"""The places of the best cosine and of the unseen words among the features."""
ANSWERED, NEVER_SAID, OF_OTHERS = "answered", "never said", "asked of others"
# The strength of the ridge; with three weights it hardly matters.
RIDGE: Final = 1.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: where, of which kind, what the floor looks at, and the probability.

    `read` are the log-odds of the best hit by a reader, None where none was read.
    """

    where: str
    kind: str
    fitted: bool
    meaning: float
    unseen: float
    chance: float
    read: float | None = None


@contextmanager
def watched() -> Iterator[list[tuple[float, float, float, float | None]]]:
    """(meaning, unseen, probability, read) of every question that is asked from now on."""
    seen: list[tuple[float, float, float, float | None]] = []

    def record(
        statements: Statements, cues: QuestionCues, read: float | None, *, calibrated: bool
    ) -> float | None:
        chance = answer_probability(statements, cues, read, calibrated=calibrated)
        seen.append((*answer_features(statements, cues), chance or 0.0, read))
        return chance

    with mock.patch.object(currency, "answer_probability", record):
        yield seen


def ask_stories(data: Path, homes: Path | None = None, read: int = 0) -> Iterator[Asked]:
    """The questions of every story, and those of the next one of its part.

    With `homes` the homes are kept there; a reader reads the first `read` hits."""
    for part, stories in read_stories(data).items():
        for at, story in enumerate(stories):
            others = stories[(at + 1) % len(stories)]["questions"]
            asked = [q for q in others if q["kind"] != ABSENT]
            with home_of(homes, f"changes-{story['id']}") as home:
                yield from _ask_story(part, story, asked, home, read)


def _ask_story(
    part: str, story: Story, others: Sequence[Story], home: Path, read: int
) -> Iterator[Asked]:
    questions = [
        *((NEVER_SAID if one["kind"] == ABSENT else ANSWERED, one) for one in story["questions"]),
        *((OF_OTHERS, one) for one in others),
    ]
    with told_both_ways(home, story, read) as ways:
        for told, ask in ways.items():
            for kind, question in questions:
                with watched() as seen:
                    ask(question)
                found = seen[-1] if seen else NOTHING
                yield Asked(f"{part.partition(':')[0]}, {told}", kind, part == FITTED, *found)


def ask_chats(data: Path, homes: Path | None = None, read: int = 0) -> Iterator[Asked]:
    """Questions of every chat of both data sets, and those of a chat of the other one.

    With `homes` the homes are kept there; a reader reads the first `read` hits."""
    chats = {form: [chat for _, chat in haystacks(data, form)] for form, _ in SETS}
    for form, own in chats.items():
        (strangers,) = (found for other, found in chats.items() if other != form)
        for at, chat in enumerate(own):
            asked = {ANSWERED: chat, OF_OTHERS: strangers[at % len(strangers)]}
            fitted = chat.number <= 5
            where = f"{form}, {'1-5' if fitted else '6-10'}"
            with home_of(homes, f"{form}-{chat.number}") as home:
                yield from _ask_chat(where, chat, asked, fitted, home, read)


def _ask_chat(
    where: str,
    chat: Haystack,
    asked: Mapping[str, Haystack],
    fitted: bool,
    home: Path,
    read: int,
) -> Iterator[Asked]:
    now = max(turn.ts for one in chat.conversations for turn in one.turns if turn.ts)
    with Memory.open(home, clock=lambda: now) as memory:
        tell_once(home, lambda: (memory.import_(chat.conversations), memory.ready()))
        load_reader(memory, read)
        for kind, of in asked.items():
            texts = [q.text for q in of.questions if q.evidence and not q.left_out]
            for text in texts[:: max(1, len(texts) // OF_CHAT)][:OF_CHAT]:
                with watched() as seen:
                    memory.recall_conversation(None, text, min_confidence=0.0, read=read)
                yield Asked(where, kind, fitted, *seen[-1])


def features(one: Asked) -> tuple[float, ...]:
    """What the probability is made of, with the reader's log-odds where one read the hits."""
    if one.read is None:
        return one.meaning, one.unseen
    return one.meaning, one.unseen, min(max(one.read, -MOST), MOST)


def fit(asked: Sequence[Asked]) -> tuple[float, ...]:
    """The constant and the weights of meaning, of unseen words and, where all was read, of that.

    Every group counts the same. A word that nothing holds never speaks for an answer: where the
    fit says so, because the reader knows it already, that weight is 0 and the others are found
    without it.
    """
    return _bounded(asked, without=frozenset())


def fit_alone(asked: Sequence[Asked]) -> tuple[float, ...]:
    """The same without the cosines: the constant, the weights of unseen words and of the reader."""
    constant, _, unseen, reading = _bounded(asked, without=frozenset({MEANING_AT}))
    return constant, unseen, reading


def _bounded(asked: Sequence[Asked], without: frozenset[int]) -> tuple[float, ...]:
    weights = _weights(asked, without)
    return _weights(asked, without | {UNSEEN_AT}) if weights[1 + UNSEEN_AT] > 0.0 else weights


def _weights(asked: Sequence[Asked], without: frozenset[int]) -> tuple[float, ...]:
    fitted = [one for one in asked if one.fitted]
    # Where a reader reads, a question that finds nothing has nothing to be read.
    chosen = [one for one in fitted if one.read is not None] or fitted
    sizes = Counter((one.where, one.kind == ANSWERED) for one in chosen)
    weights, constant = fit_logistic(
        [
            tuple(0.0 if at in without else value for at, value in enumerate(features(one)))
            for one in chosen
        ],
        [one.kind == ANSWERED for one in chosen],
        [100.0 / sizes[one.where, one.kind == ANSWERED] for one in chosen],
        RIDGE,
    )
    return constant, *(0.0 if at in without else one for at, one in enumerate(weights))


def keep(asked: Sequence[Asked], anew: tuple[float, ...], read: int = 0) -> None:
    """Write the curve, print it; `read` says how many hits a reader has read."""
    names = ("constant", "meaning", "unseen", "reading")[: len(anew)]
    shipped: tuple[float, ...] = (CONSTANT, MEANING, UNSEEN)
    if len(anew) > len(shipped):
        shipped = READ_CONSTANT, READ_MEANING, READ_UNSEEN, READ_ODDS
    weights = zip(names, shipped, anew, strict=True)
    lines = [
        f"# Silence{f', the first {read} hits read' if read else ''}",
        "",
        f"{machine_and_day()}.",
        f"`python -m bench.silence{f' --read {read}' if read else ''}`: "
        "the share of questions that get no hit, by the floor of the "
        f"probability that a hit answers (as shipped: {FLOOR:g}). Nothing was fitted on these "
        "stories and chats. *Answered*: the answer is there, and silence is wrong. *Never said*: "
        "about the people and things of the same story, but what was asked never came up. *Asked "
        "of others*: questions of another story, or of the other data set.",
        "",
        "| where | questions | number | " + " | ".join(f"{one:g}" for one in FLOORS) + " |",
        "|---|---|---:|" + "---:|" * len(FLOORS),
    ]
    held_out = [one for one in asked if not one.fitted]
    for where, kind in dict.fromkeys((one.where, one.kind) for one in held_out):
        chances = [one.chance for one in held_out if (one.where, one.kind) == (where, kind)]
        shares = [sum(chance < floor for chance in chances) / len(chances) for floor in FLOORS]
        cells = " | ".join(f"{share:.2f}" for share in shares)
        lines.append(f"| {where} | {kind} | {len(chances)} | {cells} |")
    lines += ["", "| weight | as shipped | fitted anew on the others |", "|---|---:|---:|"]
    lines += [f"| {name} | {shipped:.2f} | {found:.2f} |" for name, shipped, found in weights]
    value = {"asked": [asdict(one) for one in asked], "fitted": dict(zip(names, anew, strict=True))}
    write("silence_read" if read else "silence", json.dumps(value), "\n".join(lines))
    print("\n".join(lines))


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.silence", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--read", type=int, default=0, help="hits that a reader reads")
    given = parser.parse_args()
    asked = [
        *ask_stories(given.data, read=given.read),
        *ask_chats(given.data, read=given.read),
    ]
    keep(asked, fit(asked), given.read)


if __name__ == "__main__":
    main()
