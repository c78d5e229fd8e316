"""When is recall rightly silent? `python -m bench.silence --data DIR`.

Questions that what is searched answers, questions about what was never said there, and questions
that were asked of somebody else, over stories (told as chats and as facts) and over REALTALK and
BEAM. For each floor of the probability that a hit answers: the share of each that gets nothing. The
weights of `rank/silence` are fitted anew on the first half of the shared stories and on chats 1 to
5, each group counting the same; the curve is of the others. bench/results/silence.json and .md.
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
from bench.homes import home_of, tell_once

FLOORS: Final = tuple(sorted({0.02, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, FLOOR}))
# Questions of each chat, and of another one, evenly spread.
OF_CHAT: Final = 40
ANSWERED, NEVER_SAID, OF_OTHERS = "answered", "never said", "asked of others"
# The strength of the ridge; with three weights it hardly matters.
RIDGE: Final = 1.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: where, of which kind, what the floor looks at, and the probability."""

    where: str
    kind: str
    fitted: bool
    meaning: float
    unseen: float
    chance: float


@contextmanager
def watched() -> Iterator[list[tuple[float, float, float]]]:
    """(meaning, unseen, probability) of every question that is asked from now on."""
    seen: list[tuple[float, float, float]] = []

    def record(statements: Statements, cues: QuestionCues) -> float:
        chance = answer_probability(statements, cues)
        seen.append((*answer_features(statements, cues), chance))
        return chance

    with mock.patch.object(currency, "answer_probability", record):
        yield seen


def ask_stories(data: Path, homes: Path | None = None) -> Iterator[Asked]:
    """The questions of every story, and those of the next one of its part.

    With `homes` the homes are kept there."""
    for part, stories in read_stories(data).items():
        for at, story in enumerate(stories):
            others = stories[(at + 1) % len(stories)]["questions"]
            asked = [q for q in others if q["kind"] != ABSENT]
            with home_of(homes, f"changes-{story['id']}") as home:
                yield from _ask_story(part, story, asked, home)


def _ask_story(part: str, story: Story, others: Sequence[Story], home: Path) -> Iterator[Asked]:
    questions = [
        *((NEVER_SAID if one["kind"] == ABSENT else ANSWERED, one) for one in story["questions"]),
        *((OF_OTHERS, one) for one in others),
    ]
    with told_both_ways(home, story) as ways:
        for told, ask in ways.items():
            for kind, question in questions:
                with watched() as seen:
                    ask(question)
                found = seen[-1] if seen else (0.0, 1.0, 0.0)
                yield Asked(f"{part.partition(':')[0]}, {told}", kind, part == FITTED, *found)


def ask_chats(data: Path, homes: Path | None = None) -> Iterator[Asked]:
    """Questions of every chat of both data sets, and those of a chat of the other one.

    With `homes` the homes are kept there."""
    chats = {form: [chat for _, chat in haystacks(data, form)] for form, _ in SETS}
    for form, own in chats.items():
        (strangers,) = (found for other, found in chats.items() if other != form)
        for at, chat in enumerate(own):
            asked = {ANSWERED: chat, OF_OTHERS: strangers[at % len(strangers)]}
            fitted = chat.number <= 5
            where = f"{form}, {'1-5' if fitted else '6-10'}"
            with home_of(homes, f"{form}-{chat.number}") as home:
                yield from _ask_chat(where, chat, asked, fitted, home)


def _ask_chat(
    where: str, chat: Haystack, asked: Mapping[str, Haystack], fitted: bool, home: Path
) -> Iterator[Asked]:
    now = max(turn.ts for one in chat.conversations for turn in one.turns if turn.ts)
    with Memory.open(home, clock=lambda: now) as memory:
        tell_once(home, lambda: (memory.import_(chat.conversations), memory.ready()))
        for kind, of in asked.items():
            texts = [q.text for q in of.questions if q.evidence and not q.left_out]
            for text in texts[:: max(1, len(texts) // OF_CHAT)][:OF_CHAT]:
                with watched() as seen:
                    memory.recall_conversation(None, text, min_confidence=0.0)
                yield Asked(where, kind, fitted, *seen[-1])


def fit(asked: Sequence[Asked]) -> tuple[float, float, float]:
    """The constant and the weights of meaning and of unseen words; every group counts the same."""
    chosen = [one for one in asked if one.fitted]
    sizes = Counter((one.where, one.kind == ANSWERED) for one in chosen)
    (meaning, unseen), constant = fit_logistic(
        [(one.meaning, one.unseen) for one in chosen],
        [one.kind == ANSWERED for one in chosen],
        [100.0 / sizes[one.where, one.kind == ANSWERED] for one in chosen],
        RIDGE,
    )
    return constant, meaning, unseen


def keep(asked: Sequence[Asked], anew: tuple[float, float, float]) -> None:
    """Write the curve, print it."""
    names = ("constant", "meaning", "unseen")
    weights = zip(names, (CONSTANT, MEANING, UNSEEN), anew, strict=True)
    lines = [
        "# Silence",
        "",
        f"{machine_and_day()}.",
        "`python -m bench.silence`: the share of questions that get no hit, by the floor of the "
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
    write("silence", json.dumps(value), "\n".join(lines))
    print("\n".join(lines))


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.silence", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    given = parser.parse_args()
    asked = [*ask_stories(given.data), *ask_chats(given.data)]
    keep(asked, fit(asked))


if __name__ == "__main__":
    main()
