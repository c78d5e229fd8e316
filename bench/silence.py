"""When is recall rightly silent, and is what a hit says of itself true? `python -m bench.silence
--data DIR`.

Questions that what is searched answers, questions about what was never said there, and questions
that were asked of somebody else, over stories (told as chats and as facts) and over REALTALK and
BEAM. Reported on what had no part in the fit: by tenths of all hits, what they say how probably
they answer and how many do; for each floor, the share of each kind of question that gets nothing;
and that share at the floor at which 3 of 100 answered questions are lost. `rated` hits carry what
`rank/silence` sees of them, and `fit` finds its weights. bench/results/silence.json and .md, or
silence_read with `--read`; `--picture` draws reliability by where the hits are from.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from unittest import mock

import numpy as np

from anaphora import Memory
from anaphora.rank.silence import (
    ALONE,
    COSINE,
    FACT_FLOOR,
    LANES,
    READ,
    TURN_FLOOR,
    HitEvidence,
    Lane,
    Weights,
    hit_probability,
)
from anaphora.recall.likelihood import Likelihood
from bench.changes import ABSENT, CHATS, FITTED, Story, holds_any, read_stories, told_both_ways
from bench.datasets import SETS, Haystack, haystacks
from bench.figures import RESULTS, machine_and_day, write
from bench.fitting import fit_logistic
from bench.homes import home_of, load_reader, tell_once

if TYPE_CHECKING:
    from anaphora.recall.currency import Candidate

FLOORS: Final = tuple(
    sorted({0.02, 0.03, 0.04, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, TURN_FLOOR, FACT_FLOOR})
)
# Questions of each chat, and of another one, evenly spread.
OF_CHAT: Final = 40
ANSWERED, NEVER_SAID, OF_OTHERS = "answered", "never said", "asked of others"
KINDS: Final = (ANSWERED, NEVER_SAID, OF_OTHERS)
TENTHS: Final = 10
LOST: Final = 0.03
"""The share of answered questions that may be lost, where silence is compared."""
# The strength of the ridge; with so few weights it hardly matters.
RIDGE: Final = 1.0
_FLOOR_OF: Final[Mapping[Lane, float]] = {"turns": TURN_FLOOR, "facts": FACT_FLOOR}

Right: TypeAlias = Callable[[str], bool]
"""Whether a text answers a question."""

SeenHits: TypeAlias = tuple[tuple[HitEvidence, bool], ...]
Watch: TypeAlias = Callable[[Iterable[str], Right], SeenHits]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: where it was asked, in which lane, of which kind, by whom it was written.

    `hits` are what is seen of each hit, best first, and whether it answers.
    """

    where: str
    lane: Lane
    kind: str
    fitted: bool
    author: str
    hits: SeenHits

    @property
    def chance(self) -> float:
        """The probability of the likeliest hit as shipped, 0 for none."""
        return max((hit_probability(seen, self.lane) or 0.0 for seen, _ in self.hits), default=0.0)

    @property
    def was_read(self) -> bool:
        """Whether a reader has read any hit."""
        return any(seen.read is not None for seen, _ in self.hits)


@contextmanager
def watched() -> Iterator[Watch]:
    """What is seen of the texts that a question asked from now on finds, with which are right."""
    seen: dict[str, HitEvidence] = {}
    evidence_of = Likelihood.evidence

    def record(likelihood: Likelihood, candidate: Candidate, place: int) -> HitEvidence:
        evidence = evidence_of(likelihood, candidate, place)
        seen.setdefault(candidate.text, evidence)
        return evidence

    def of_hits(texts: Iterable[str], right: Right) -> SeenHits:
        return tuple((seen[text], right(text)) for text in texts if text in seen)

    with mock.patch.object(Likelihood, "evidence", record):
        yield of_hits


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
    with told_both_ways(home, story, read, min_confidence=0.0) as ways:
        for told, ask in ways.items():
            lane: Lane = "turns" if told == CHATS else "facts"
            for kind, question in questions:
                answers = question["answer"] if kind == ANSWERED else ()
                with watched() as seen_of:
                    texts = [text for text, _ in ask(question)]
                    hits = seen_of(texts, partial(holds_any, strings=answers))
                where = f"{part.partition(':')[0]}, {told}"
                yield Asked(where, lane, kind, part == FITTED, "changes", hits)


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
    texts = {
        (one.conversation_id, turn.key): turn.text for one in chat.conversations for turn in one.turns
    }
    author = f"{where.partition(',')[0]} {chat.number}"
    with Memory.open(home, clock=lambda: now) as memory:
        tell_once(home, lambda: (memory.import_(chat.conversations), memory.ready()))
        load_reader(memory, read)
        for kind, of in asked.items():
            questions = [q for q in of.questions if q.evidence and not q.left_out]
            for question in questions[:: max(1, len(questions) // OF_CHAT)][:OF_CHAT]:
                evidence = {texts.get(key) for key in question.evidence if kind == ANSWERED}
                with watched() as seen_of:
                    found = memory.recall_conversation(
                        None, question.text, top_k=10, budget=100_000, min_confidence=0.0, read=read
                    )
                    hits = seen_of((hit.text for hit in found), evidence.__contains__)
                yield Asked(where, "turns", kind, fitted, author, hits)


def fit(asked: Sequence[Asked], lane: Lane, *, cosine: bool = True) -> Weights:
    """The constant and the weights of a lane's hits, in the order of `HitEvidence.features`.

    Without `cosine` those for an embedder whose cosines mean nothing. Every group of questions
    counts the same. What is sought by name is above the formula and has no part in it.
    """
    chosen = [one for one in asked if one.fitted and one.lane == lane]
    if any(one.was_read for one in chosen):
        chosen = [one for one in chosen if one.was_read]
    features, labels, groups = [], [], []
    for one in chosen:
        for seen, right in one.hits:
            if (seen.read is not None) == one.was_read and not seen.sought:
                features.append(seen.features()[0 if cosine else 1 :])
                labels.append(right)
                groups.append((one.where, one.kind))
    sizes = Counter(groups)
    counts = [100.0 / sizes[group] for group in groups]
    weights, constant = fit_logistic(features, labels, counts, RIDGE)
    return tuple(round(value, 2) for value in (constant, *weights))


def reliability(asked: Sequence[Asked]) -> list[tuple[float, float, int]]:
    """Of each tenth of all hits, by their probability: its mean, the share right, the number."""
    hits = [
        (hit_probability(seen, one.lane) or 0.0, right) for one in asked for seen, right in one.hits
    ]
    order = sorted(hits, key=lambda hit: hit[0])
    tenths = [part for part in np.array_split(np.array(order, np.float64), TENTHS) if len(part)]
    return [(float(p[:, 0].mean()), float(p[:, 1].mean()), len(p)) for p in tenths]


def silent_at(asked: Sequence[Asked], lost: float = LOST) -> tuple[float, dict[str, float]]:
    """The floor at which so many answered questions get nothing, and the share of each other kind
    that gets nothing at it."""
    chances = {
        kind: np.array([one.chance for one in asked if one.kind == kind]) for kind in KINDS
    }
    floor = float(np.quantile(chances[ANSWERED], lost))
    others = {kind: values for kind, values in chances.items() if kind != ANSWERED and len(values)}
    return floor, {kind: float((values < floor).mean()) for kind, values in others.items()}


def keep(asked: Sequence[Asked], read: int = 0) -> None:
    """Write the tables, print them; `read` says how many hits a reader has read."""
    held_out = [one for one in asked if not one.fitted]
    lines = [
        f"# Silence{f', the first {read} hits read' if read else ''}",
        "",
        f"{machine_and_day()}.",
        f"`python -m bench.silence --data DIR{f' --read {read}' if read else ''}`. Nothing was "
        "fitted on these stories and chats. *Answered*: the answer is there, and silence is wrong. "
        "*Never said*: about the people and things of the same story, but what was asked never "
        "came up. *Asked of others*: questions of another story, or of the other data set.",
        "",
        "What hits say how probably they answer, and how many do, by tenths of all hits of these "
        "questions:",
        "",
        "| hits of | number | farthest | " + " | ".join(f"{at + 1}" for at in range(TENTHS)) + " |",
        "|---|---:|---:|" + "---:|" * TENTHS,
    ]
    for lane in LANES:
        of_lane = [one for one in held_out if one.lane == lane]
        for where in ("all", *dict.fromkeys(one.where for one in of_lane)):
            tenths = reliability([one for one in of_lane if where in ("all", one.where)])
            farthest = max((abs(said - right) for said, right, _ in tenths), default=0.0)
            cells = " | ".join(f"{said:.2f}: {right:.2f}" for said, right, _ in tenths)
            number = sum(count for *_, count in tenths)
            lines.append(f"| {lane}, {where} | {number} | {farthest:.2f} | {cells} |")
    lines += [
        "",
        "The share of questions that get no hit, by the floor of that probability (as shipped: "
        f"turns {TURN_FLOOR:g}, memories {FACT_FLOOR:g}), and at the floor at which {LOST:.0%} of "
        "the answered questions of the row are lost:",
        "",
        f"| where | questions | number | at {LOST:.0%} lost | "
        + " | ".join(f"{one:g}" for one in FLOORS)
        + " |",
        "|---|---|---:|---:|" + "---:|" * len(FLOORS),
    ]
    for where, kind in dict.fromkeys((one.where, one.kind) for one in held_out):
        chosen = [one for one in held_out if one.where == where]
        floor, silent = silent_at(chosen)
        chances = [one.chance for one in chosen if one.kind == kind]
        shares = [sum(chance < floor for chance in chances) / len(chances) for floor in FLOORS]
        at_lost = f"floor {floor:.3f}" if kind == ANSWERED else f"{silent[kind]:.2f}"
        cells = " | ".join(f"{share:.2f}" for share in shares)
        lines.append(f"| {where} | {kind} | {len(chances)} | {at_lost} | {cells} |")
    lines += ["", "| weights | as shipped | fitted anew on the others |", "|---|---|---|"]
    for lane in LANES:
        shipped = (READ if read else COSINE)[lane]
        lines.append(f"| {lane} | {_listed(shipped)} | {_listed(fit(asked, lane))} |")
        if read:
            anew = fit(asked, lane, cosine=False)
            lines.append(f"| {lane}, no cosine | {_listed(ALONE[lane])} | {_listed(anew)} |")
    value = {"asked": [_row(one) for one in asked], "read": read}
    write("silence_read" if read else "silence", json.dumps(value), "\n".join(lines))
    print("\n".join(lines))


def _listed(weights: Weights) -> str:
    return ", ".join(f"{weight:g}" for weight in weights)


def _row(one: Asked) -> dict[str, Any]:
    hits = [(round(hit_probability(seen, one.lane) or 0.0, 4), right) for seen, right in one.hits]
    return {
        "where": one.where,
        "lane": one.lane,
        "kind": one.kind,
        "fitted": one.fitted,
        "author": one.author,
        "chance": round(one.chance, 4),
        "hits": hits,
    }


def draw(to: Path) -> None:
    """Draw what hits say of themselves and how many answer, both lanes, with and without reader."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    from bench.scale.pictures import saved

    figure, panels = pyplot.subplots(2, 2, figsize=(9, 8), layout="constrained")
    for column, name in enumerate(("silence", "silence_read")):
        rows = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))["asked"]
        for line, lane in enumerate(LANES):
            axes = panels[line][column]
            chosen = [row for row in rows if row["lane"] == lane and not row["fitted"]]
            for where in dict.fromkeys(row["where"] for row in chosen):
                hits = sorted(hit for row in chosen if row["where"] == where for hit in row["hits"])
                tenths = np.array_split(np.array(hits, np.float64), TENTHS)
                said, right = ([float(t[:, at].mean()) for t in tenths] for at in (0, 1))
                axes.plot(said, right, marker="o", markersize=3, linewidth=1.2, label=where)
            axes.plot([0, 1], [0, 1], color="#9ca3af", linewidth=1, linestyle="--")
            axes.set(xlim=(0, 1), ylim=(0, 1))
            axes.set_title(f"{lane}, {'with' if column else 'without'} the reader", loc="left")
            axes.legend(fontsize=7, frameon=False)
    figure.supxlabel("what hits say how probably they answer, by tenths of all hits")
    figure.supylabel("the share of them that do")
    saved(to)


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.silence", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, help="the folder of shared data")
    parser.add_argument("--homes", type=Path, help="keep the homes here, to ask again")
    parser.add_argument("--read", type=int, default=0, help="hits that a reader reads")
    parser.add_argument("--picture", type=Path, help="draw kept results into this file instead")
    given = parser.parse_args()
    if given.picture is not None:
        draw(given.picture)
        return
    if given.data is None:
        parser.error("--data is needed")
    keep(
        [
            *ask_stories(given.data, given.homes, given.read),
            *ask_chats(given.data, given.homes, given.read),
        ],
        given.read,
    )


if __name__ == "__main__":
    main()
