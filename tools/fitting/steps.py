"""The steps of a fit, in their order: what each reads, finds and measures on what was held out.

The fits themselves are those of bench/ and of `tools.fit_holding`; here stand their grids, and the
rules by which a value on a plateau is kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Final, TypeAlias
from unittest import mock

import numpy as np
from bench.changes import FITTED
from bench.datasets import SETS
from bench.embedder import KeptEmbedder
from bench.fitting import unless_better
from bench.told import asked_story
from corpus.reading import Story, read_split, read_stories
from corpus.written import ROOT
from numpy.typing import NDArray
from tools.fit_holding import Fitted, fit_holding
from tools.fitting.constants import Constant, Value
from tools.fitting.outcome import Figure, Outcome

from anaphora.embed import calibration
from anaphora.embed.base import Embedder
from anaphora.embed.service import spec_for
from anaphora.features.deep.recall import SURE
from anaphora.ingest import linking
from anaphora.rank import holding, memories, relevance, turns
from anaphora.rank import silence as silent
from anaphora.rank.confidence import (
    MEMORY_WEIGHTS,
    TURN_WEIGHTS,
    Weights,
    memory_confidence,
    turn_confidence,
)
from anaphora.settings import load_settings
from anaphora.values.conversations import READ_AWAITED
from bench import crowd, deep_shortcut, fit_turns, injection, memory_fit, silence

__all__ = ["STEPS", "Given", "Step"]

CHANCE: Final = 0.01
"""By how much another value must be better than the one in use to be taken in its place."""

REPORT_CHATS: Final = "chats 6 to 10 of REALTALK and BEAM"
HELD_AUTHORS: Final = "the held-out authors of corpus/"


@dataclass(frozen=True, slots=True)
class Given:
    """The shared data, the folder that keeps homes and vectors, and the embedder's setting.

    `stories` of each author of the corpus at most: None is all.
    """

    data: Path
    kept: Path
    embedder: str = "minilm"
    stories: int | None = None

    @property
    def homes(self) -> Path:
        """Where homes are kept."""
        return self.kept / "homes"

    @property
    def vectors(self) -> Path:
        """Where vectors are kept."""
        return self.kept / "vectors"

    def model(self) -> Embedder:
        """The embedder; its vectors are kept."""
        spec = spec_for(self.embedder, settings=load_settings())
        return KeptEmbedder(spec.load(), self.vectors)

    def corpus(self, *, held_out: bool) -> list[Story]:
        """The stories to fit on, or those that are held out."""
        split = read_split()
        authors = split.held_out if held_out else split.train
        return [one for author in authors for one in read_stories(authors=[author])[: self.stories]]


Step: TypeAlias = Callable[[Given], Outcome]


# -- calibration

APART: Final = Constant("calibration", "apart", 4)
TOLD: Final = Constant("calibration", "told", 4)


def fit_calibration(given: Given) -> Outcome:
    """Where the embedder has neutral texts."""
    model = given.model()
    found = calibration.measure_mean_cosines(model)
    apart, told = APART.read(), TOLD.read()
    assert isinstance(apart, float)
    assert isinstance(told, float)
    with mock.patch.object(calibration, "MINILM", calibration.MeanCosines(apart, told)):
        before = calibration.measure_calibration(model)
    figures = (
        Figure("scale of its cosines, question and text", before.asked.scale, 1.0),
        Figure("scale of its cosines, two texts", before.alike.scale, 1.0),
    )
    return Outcome({APART: found.apart, TOLD: found.told}, "nothing: texts of no data set", figures)


# -- the sum of turns

TRIED: Final[Mapping[str, tuple[float, ...]]] = {
    "meaning": (0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5),
    "words_half": (10.0, 15.0, 20.0, 30.0, 40.0),
    "neighbour": (0.1, 0.15, 0.2, 0.3),
    "time_evidence": (0.2, 0.3, 0.4),
}


def fit_turn_weights(given: Given) -> Outcome:
    """The weights of words and meaning: one after the other, by recall@10 and the first place."""
    chats = fit_turns.load(given.data, given.model())
    weights = turns.DEFAULT_WEIGHTS
    for name, values in TRIED.items():
        in_use = getattr(weights, name)
        worth = {
            value: _worth(chats, replace(weights, **{name: value}))
            for value in sorted({*values, in_use})
        }
        print(name, {value: round(one, 4) for value, one in worth.items()}, flush=True)
        weights = replace(weights, **{name: unless_better(worth, in_use, CHANCE)})
    figures = []
    for name, _ in SETS:
        both = [
            fit_turns.measure(chats[name], one, fitted=False)
            for one in (turns.DEFAULT_WEIGHTS, weights)
        ]
        figures += [
            Figure(f"{name}: {what}", before, after)
            for what, before, after in zip(("recall@10", "reciprocal rank"), *both, strict=True)
        ]
    found = {Constant("turns", name): float(getattr(weights, name)) for name in TRIED}
    return Outcome(found, REPORT_CHATS, tuple(figures))


def _worth(chats: Mapping[str, Sequence[fit_turns.Chat]], weights: turns.Weights) -> float:
    """Recall@10 and reciprocal rank of the fitting half, each set counting the same."""
    return fmean(
        value for own in chats.values() for value in fit_turns.measure(own, weights, fitted=True)
    )


# -- memories

PARTIAL: Final = Constant("memories", "PARTIAL_TRUST")
PARTIAL_TRUSTS: Final = (0.3, 0.5, 0.7, 0.9)


def fit_memories(given: Given) -> Outcome:
    """What words, age and restating count beside the cosine."""
    fitting, report = memory_fit.ask_halves(given.data, given.vectors, given.embedder)
    in_use = memories.Rule()
    rule = memory_fit.choose(fitting)
    both = [memory_fit.measure(memory_fit.Variant(one), report) for one in (in_use, rule)]
    figures = [
        Figure(f"turns as memories: {name}", *(getattr(one, field) for one in both))
        for name, field in (
            ("recall@10", "many"),
            ("recall@3", "few"),
            ("reciprocal rank", "first"),
        )
    ]
    partial = memories.PARTIAL_TRUST
    worth = _first_right(given, sorted({*PARTIAL_TRUSTS, partial}), held_out=False)
    print("PARTIAL_TRUST", {value: round(one, 4) for value, one in worth.items()}, flush=True)
    chosen = unless_better(worth, partial, CHANCE)
    held = _first_right(given, sorted({partial, chosen}), held_out=True)
    figures.append(Figure("corpus, facts: the first hit is evidence", held[partial], held[chosen]))
    named = {
        "WORDS_TRUST": rule.trust,
        "DECAY_FLOOR": rule.floor,
        "UNSURE": rule.unsure,
        "SURE": rule.sure,
    }
    found = {Constant("memories", name): value for name, value in named.items()}
    return Outcome({**found, PARTIAL: chosen}, f"{REPORT_CHATS}; {HELD_AUTHORS}", tuple(figures))


def _first_right(given: Given, values: Sequence[float], *, held_out: bool) -> dict[float, float]:
    """How often the first hit is evidence, by what a part of the words is worth."""
    right: dict[float, list[bool]] = {value: [] for value in values}
    for story in given.corpus(held_out=held_out):
        texts = story.texts("facts")
        with asked_story(given.homes, story, "facts") as ask:
            for question in story.questions:
                evidence = {texts[key] for key in question.facts}
                for value in values if evidence else ():
                    with mock.patch.object(memories, "PARTIAL_TRUST", value):
                        hits = ask(question)
                    right[value].append(bool(hits) and hits[0].text in evidence)
    return {value: fmean(some) for value, some in right.items()}


# -- links

CLOSE: Final = Constant("links", "CLOSE")
NEAR: Final = Constant("links", "NEAR")

# As many as with the embedder by which these cosines were first chosen, on the same texts. None of
# them may be ones that the bundled embedder was trained on: there its cosines are too high.
LINKED: Final = 0.017
"""The share of statements about different things, in much the same words, that are linked."""
REACHED: Final = 0.74
"""The share of statements and what replaced them that are looked at for a contradiction."""

Cosines: TypeAlias = NDArray[np.float32]
# From all there is to the very same: a value is always found.
GRID: Final = tuple(step / 100 for step in range(-100, 102))


def fit_links(given: Given) -> Outcome:
    """The cosines from which on memories are linked, and may contradict."""
    model = given.model()
    fitting, held = _closeness_of_pairs(given, model), _closeness(given, model)
    found: dict[Constant, Value] = {}
    figures = []
    for constant, in_use, best, share, what in (
        (
            CLOSE,
            linking.CLOSE,
            min(one for one in GRID if _linked(fitting, one) <= LINKED),
            _linked,
            "unrelated pairs that are linked, of 1,000",
        ),
        (
            NEAR,
            linking.NEAR,
            max(one for one in GRID if _reached(fitting, one) >= REACHED),
            _reached,
            "changes that are looked at, of 1,000",
        ),
    ):
        found[constant] = best
        figures.append(
            Figure(f"corpus: {what}", *(1000 * share(held, one) for one in (in_use, best)))
        )
    return Outcome(found, HELD_AUTHORS, tuple(figures))


@dataclass(frozen=True, slots=True)
class _Closeness:
    """Cosines: of statements of which one replaced the other, and of statements about different
    things."""

    replaced: Cosines
    others: Cosines


def _closeness_of_pairs(given: Given, model: Embedder) -> _Closeness:
    """Of the English pairs of corpus/changes."""
    pairs = [pair for pair in _read_labelled_pairs() if pair["language"] == "en"]
    labels = np.array([pair["label"] for pair in pairs])
    older, newer = (
        np.stack([rows[0] for rows in model.embed([pair[side] for pair in pairs])])
        for side in ("older", "newer")
    )
    cosines = (older * newer).sum(axis=1)
    return _Closeness(cosines[labels == "replaces"], cosines[labels == "other"])


def _closeness(given: Given, model: Embedder) -> _Closeness:
    """Of the facts of the held-out authors; what no relation is labelled of is about others."""
    replaced: list[float] = []
    others: list[float] = []
    for story in given.corpus(held_out=True):
        texts = story.texts("facts")
        place = {key: at for at, key in enumerate(texts)}
        rows, owner = fit_turns.vectors_of(list(texts.values()), model)
        first = rows[np.searchsorted(owner, np.arange(len(texts)))]
        cosines = first @ first.T
        kinds = {
            frozenset((place[one.older], place[one.newer])): one.kind
            for one in story.relations
            if one.lane == "facts"
        }
        for older in range(len(texts)):
            for newer in range(older + 1, len(texts)):
                kind, cosine = kinds.get(frozenset((older, newer))), float(cosines[older, newer])
                if kind is None:
                    others.append(cosine)
                elif kind == "replaces":
                    replaced.append(cosine)
    return _Closeness(np.array(replaced), np.array(others))


def _read_labelled_pairs() -> Iterator[dict[str, str]]:
    """The pairs of corpus/changes as they are written, in the order of their files."""
    for file in sorted((ROOT / "changes").glob("*.jsonl")):
        yield from map(json.loads, file.read_text("utf-8").splitlines())


def _linked(found: _Closeness, close: float) -> float:
    return float((found.others >= close).mean())


def _reached(found: _Closeness, near: float) -> float:
    return float((found.replaced >= near).mean())


# -- what holds now


def fit_order(given: Given) -> Outcome:
    """The weights of `rank/holding`."""
    fitted, figures = fit_holding(given.data, given.homes, given.stories)
    notes = (_moved(holding.BEFORE, fitted),)
    held = f"{HELD_AUTHORS}; the second half of changes, the stories of bench/stories"
    found = {Constant("holding", name, 4): value for name, value in fitted.weights.items()}
    return Outcome(found, held, figures, notes)


def _moved(before: Mapping[str, float], after: Fitted) -> str:
    farthest = max(before, key=lambda one: abs(after.weights[one] - before[one]))
    mean = fmean(abs(after.weights[one] - before[one]) for one in before)
    return (
        f"holding: {len(before)} weights of {after.pairs:,} pairs, "
        f"moved by {mean:.2f} in the mean, farthest: {farthest}, {before[farthest]:.2f} to "
        f"{after.weights[farthest]:.2f}"
    )


# -- silence

SILENCE_HELD: Final = f"the second half of changes; {REPORT_CHATS}; {HELD_AUTHORS}"


SILENCE: Final = ("CONSTANT", "MEANING", "UNSEEN")
MOST_FEW: Final = 0.8
"""More than this for few statements, and a question about nothing there gets hits in a home of one
to five: without a reader any weight is too much."""


def fit_silence(given: Given) -> Outcome:
    """The probability that anything answers, below which one recall is silent, and of each hit."""
    asked = [
        *silence.ask_stories(given.data, given.homes),
        *silence.ask_chats(given.data, given.homes),
        *silence.ask_corpus(given.corpus(held_out=False), given.homes, fitted=True),
        *silence.ask_few(given.corpus(held_out=False), fitted=True),
        *silence.ask_corpus(given.corpus(held_out=True), given.homes),
        *silence.ask_few(given.corpus(held_out=True)),
    ]
    weights = (*silence.fit(asked)[:-1], 0.0)
    groups: dict[str, list[silence.Asked]] = {}
    for one in asked:
        if one.fitted and one.kind == silence.ANSWERED and one.lane == "turns":
            groups.setdefault(one.where, []).append(one)
    good = [
        floor
        for floor in silence.FLOORS
        if fmean(_silent(own, weights, floor) for own in groups.values()) <= silence.LOST
    ]
    old = (*_weights_of(SILENCE), 0.0)
    floor = max(good, default=min(silence.FLOORS))
    found = _silence_constants((*SILENCE, "TURN_FLOOR"), (*weights[:-1], floor))
    found |= _hit_constants("HIT", asked)
    return Outcome(found, SILENCE_HELD, _silences(asked, old, weights))


def fit_silence_read(given: Given) -> Outcome:
    """The same probabilities where a reader has read the first hits; the floor is the same.

    It was trained on the training authors and the first half of `changes`: they have no part.
    """
    authors = read_split().held_out[: silence.READ_FITTED]
    held_out = given.corpus(held_out=True)
    fitted = [story for story in held_out if story.author in authors]
    others = [story for story in held_out if story.author not in authors]
    told = (
        *silence.ask_stories(given.data, given.homes, READ_AWAITED),
        *silence.ask_chats(given.data, given.homes, READ_AWAITED),
        *silence.ask_corpus(fitted, given.homes, READ_AWAITED, fitted=True),
        *silence.ask_few(fitted, read=READ_AWAITED, fitted=True),
        *silence.ask_corpus(others, given.homes, READ_AWAITED),
        *silence.ask_few(others, read=READ_AWAITED),
    )
    trained = f"{FITTED.partition(':')[0]}, "
    asked = [
        one
        for one in told
        if one.seen.read is not None and not (one.fitted and one.where.startswith(trained))
    ]
    if not asked:
        return Outcome({}, "no reader is installed: nothing was fitted", ())
    *first, few, reading = silence.fit(asked)
    weights = (*first, min(few, MOST_FEW), reading)
    names = [f"READ_{name}" for name in (*SILENCE, "FEW", "ODDS")]
    constant, _, unseen, few, reading = silence.fit(asked, cosine=False)
    alone = (constant, unseen, min(few, MOST_FEW), reading)
    without = ("ALONE_CONSTANT", "ALONE_UNSEEN", "ALONE_FEW", "ALONE_ODDS")
    found = (
        _silence_constants(names, weights)
        | _silence_constants(without, alone)
        | _hit_constants("READ_HIT", asked)
        | _hit_constants("ALONE_HIT", asked, cosine=False)
    )
    figures = (
        *_silences(asked, _weights_of(names), weights),
        *_silences(
            [replace(one, where=f"{one.where}, no cosine") for one in asked],
            _of_all(*_weights_of(without)),
            _of_all(*alone),
        ),
    )
    return Outcome(found, SILENCE_HELD, figures)


CROWD: Final = Constant("silence", "CROWD")


def fit_crowd(given: Given) -> Outcome:
    """What many statements take off a hit, with the other weights as they are."""
    asked = list(crowd.ask_crowd(given.data, given.homes))
    weights = silence.fit_crowd(asked)
    held = [question for question in asked if not question.fitted]
    read = crowd.ask_crowd(given.data, given.homes, READ_AWAITED)
    held += [
        replace(question, where=f"{question.where}, read")
        for question in read
        if not question.fitted and question.seen.read is not None
    ]
    figures = []
    for where in dict.fromkeys(question.where for question in held):
        own = [question for question in held if question.where == where]
        both = (_farthest(own, some) for some in (silent.CROWD, weights))
        figures.append(Figure(f"{where}: farthest tenth", *both))
    return Outcome({CROWD: weights}, f"{HELD_AUTHORS}; {REPORT_CHATS}", tuple(figures))


def _farthest(asked: Sequence[silence.Asked], weights: tuple[float, ...]) -> float:
    """How far what hits say lies from how many are right, in the worst tenth."""
    with mock.patch.object(silent, "CROWD", weights):
        tenths = silence.reliability(asked)
    return max(abs(chance - right) for chance, right, _ in tenths)


def _weights_of(names: Sequence[str]) -> tuple[float, ...]:
    return tuple(getattr(silent, name) for name in names)


def _of_all(constant: float, unseen: float, few: float, reading: float) -> tuple[float, ...]:
    """Weights of all features, that of the cosine 0."""
    return constant, 0.0, unseen, few, reading


def _hit_constants(
    name: str, asked: Sequence[silence.Asked], *, cosine: bool = True
) -> dict[Constant, Value]:
    """The weights of hits, a constant for each lane."""
    return {
        Constant("silence", f"{name}_{lane.upper()}"): silence.fit_hits(asked, lane, cosine=cosine)
        for lane in silent.LANES
    }


def _silence_constants(names: Sequence[str], values: Sequence[float]) -> dict[Constant, Value]:
    pairs = zip(names, values, strict=True)
    return {Constant("silence", name): value for name, value in pairs}


def _silences(
    asked: Sequence[silence.Asked], before: Sequence[float], after: Sequence[float]
) -> tuple[Figure, ...]:
    """How many of each kind get nothing at the floor of their lane, by weights before and after."""
    groups: dict[tuple[str, str], list[silence.Asked]] = {}
    for one in asked:
        if not one.fitted:
            groups.setdefault((one.where, one.kind), []).append(one)
    return tuple(
        Figure(
            f"{where}: no hit, {kind}",
            *(_silent(own, weights, silent.FLOOR_OF[own[0].lane]) for weights in (before, after)),
        )
        for (where, kind), own in groups.items()
    )


def _silent(asked: Sequence[silence.Asked], weights: Sequence[float], floor: float) -> float:
    """The share of questions whose probability lies below a floor."""
    rows = np.array([(1.0, *silence.features(one.seen)) for one in asked])
    odds = rows @ np.array(weights)
    return float((1.0 / (1.0 + np.exp(-odds)) < floor).mean())


# -- the shortcut of deep recall


def fit_confidence(given: Given) -> Outcome:
    """How sure a hit leads to the evidence."""
    asked = list(deep_shortcut.ask_all(given.data, given.homes))
    weights = deep_shortcut.fit(asked)
    new = {kind: tuple(round(float(one), 2) for one in some) for kind, some in weights.items()}
    held = [one for one in asked if one.number not in deep_shortcut.FIT and not one.whole]
    figures = []
    for kind, in_use in (("turn", TURN_WEIGHTS), ("memory", MEMORY_WEIGHTS)):
        both = [_trust(held, kind, one) for one in (in_use, new[kind])]
        names = ("squared error", f"share right of those at {SURE}", f"number at {SURE}")
        figures += [
            Figure(f"{kind} hits: {what}", before, after)
            for what, before, after in zip(names, *both, strict=True)
        ]
    found: dict[Constant, Value] = {
        Constant("confidence", f"{kind.upper()}_WEIGHTS"): some for kind, some in new.items()
    }
    return Outcome(found, REPORT_CHATS, tuple(figures))


def _trust(
    asked: Sequence[deep_shortcut.Asked], kind: str, weights: Weights
) -> tuple[float, float, float]:
    """Mean squared error, share right of the sure ones, and how many these are."""
    told: list[tuple[float, bool]] = []
    for one in asked:
        if kind == "turn":
            chances, right = turn_confidence(one.turns, weights), one.turns_right
        else:
            chances, right = memory_confidence(one.told, weights), one.told_right
        told += list(zip(chances, right, strict=True))[: deep_shortcut.TOP]
    sure = [right for chance, right in told if chance >= SURE]
    error = fmean((chance - right) ** 2 for chance, right in told)
    return error, fmean(sure) if sure else 0.0, float(len(sure))


# -- unasked

UNASKED: Final = ("ANSWERS", "FIRST", "LEAD", "COVERS")


def fit_unasked(given: Given) -> Outcome:
    """What is worth putting into a prompt that did not ask."""

    def ask() -> list[injection.Injected]:
        return [
            *injection.ask_chats(given.data, given.homes),
            *injection.ask_stories(given.data, given.homes),
        ]

    seen = ask()
    weights, constant = injection.fit(seen)
    names: tuple[str, ...] = ("CONSTANT", *UNASKED)
    if len(weights) > len(UNASKED):
        names = tuple(f"READ_{name}" for name in (*names, "ODDS"))
    found = dict(zip(names, (constant, *weights), strict=True))
    with ExitStack() as patched:
        for name, value in found.items():
            patched.enter_context(mock.patch.object(relevance, name, value))
        anew = ask()
    figures = tuple(
        Figure(old.name, old.value, new.value)
        for old, new in zip(injection.measured(seen), injection.measured(anew), strict=True)
    )
    values = {Constant("unasked", name, 3): value for name, value in found.items()}
    return Outcome(values, f"{REPORT_CHATS}; the second half of changes, bench/stories", figures)


STEPS: Final[Mapping[str, Step]] = {
    "calibration": fit_calibration,
    "turns": fit_turn_weights,
    "memories": fit_memories,
    "links": fit_links,
    "holding": fit_order,
    "silence": fit_silence,
    "silence read": fit_silence_read,
    "crowd": fit_crowd,
    "confidence": fit_confidence,
    "unasked": fit_unasked,
}
