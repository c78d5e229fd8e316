"""Fit the weights of `rank/currency` and `rank/replacement` (`make fit ONLY=currency`).

In: the stories of the training authors of corpus/, and of the folder of shared data the first half
of `changes` and chats 1 to 5 of REALTALK and BEAM. Out: src/anaphora/rank/currency_weights.py, and
a table of what was held out: the other authors, the second half of `changes` with the stories of
bench/stories, and the pairs of corpus/changes. Fitted on those as well, the marks of held-out
authors found a third less: most of them cannot be told by words in common. Each question is asked
through the public API; the pairs are those that recall looks up, with nothing but
the wording of two statements judged, so that the weights of today have no part in them.

REPLACES has no question in it. Each pair of a story counts once, by the labelled relations; in
`changes` a pair is one value that changed where the older statement holds an outdated value and the
newer one the answer; evidence of a chat is replaced by nothing. BEFORE is of pairs of which one is
right for a question.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias
from unittest import mock

import numpy as np
from bench.changes import ABSENT, FITTED, HELD_OUT, OWN, holds_any, read_stories, told_both_ways
from bench.datasets import Haystack, haystacks
from bench.fitting import fit_logistic
from bench.homes import home_of
from bench.told import asked_chat, asked_story, turn_texts
from corpus.reading import LANES, Lane, Story, read_split
from corpus.reading import read_stories as read_corpus
from tools.fitting.outcome import Figure

from anaphora.embed.service import spec_for
from anaphora.rank import currency as ranking
from anaphora.rank import currency_weights as shipped
from anaphora.rank import replacement
from anaphora.rank.currency import GroupJudgement, RankedStatement, judge_group
from anaphora.rank.currency_weights import CONSTANT
from anaphora.rank.replacement import REPLACED, Statement, replacement_features
from anaphora.rank.statements import QuestionCues, read_cues, read_statement
from anaphora.recall import currency as recalled
from anaphora.recall.currency import THRESHOLD
from anaphora.settings import load_settings

TARGET: Final = Path(__file__).parents[1] / "src" / "anaphora" / "rank" / "currency_weights.py"
# Chats up to this number.
CHATS: Final = 5
CORPUS, WRITTEN, CHANGES, CHAT = "corpus", "written", "changes", "chat"
PAIRS: Final = Path(__file__).parents[1] / "corpus" / "changes"
# What a pair counts in each regression.
REPLACES_COUNT: Final = {CORPUS: 1.0, CHANGES: 1.0, CHAT: 0.3}
BEFORE_COUNT: Final = {CORPUS: 1.0, CHANGES: 3.0, CHAT: 3.0}
REPLACES_RIDGE: Final = 10.0
BEFORE_RIDGE: Final = 30.0
_DAY: Final = 86_400.0
WITHOUT_CLOSENESS: Final = 0.25
"""What a pair counts with its closeness not known: so it is while a vector is on its way."""

Features: TypeAlias = Sequence[float]
Weights: TypeAlias = dict[str, float]
Texts: TypeAlias = tuple[str, str]
"""The older one and the newer one of a pair."""


@dataclass(frozen=True, slots=True)
class Group:
    """What recall compared with the best one, place 0, of one question.

    `answers` and `outdated` (S,): which are right and which are not. `past`: the question asks for
    what held then. `of` says what it is from, `story` which one, `lane` how that was told.
    """

    of: str
    story: str
    lane: str
    question: str
    past: bool
    statements: Sequence[RankedStatement]
    answers: tuple[bool, ...]
    outdated: tuple[bool, ...]

    @property
    def texts(self) -> list[str]:
        """Its texts."""
        return [one.statement.text for one in self.statements]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two statements, their closeness (NaN: not known), and whether one replaces the other."""

    of: str
    lane: str
    older: Statement
    newer: Statement
    closeness: float
    replaced: bool


@dataclass(slots=True)
class Material:
    """Groups, and the pairs of texts that were labelled: `changed` of a story and lane."""

    groups: list[Group] = field(default_factory=list)
    changed: dict[tuple[str, str], frozenset[Texts]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fitted:
    """Weights by name, the constant among them; of how many pairs, and how many are so."""

    weights: Weights
    pairs: int
    so: int


# -- what recall looks up


@contextmanager
def judged_by(before: Weights, replaces: Weights) -> Iterator[None]:
    """Other weights than the shipped ones from now on."""
    with (
        mock.patch.object(ranking, "BEFORE", before),
        mock.patch.object(replacement, "REPLACES", replaces),
    ):
        _forget()
        try:
            yield
        finally:
            _forget()
    _forget()


def _forget() -> None:
    for kept in (ranking._weights, replacement._weights):
        kept.cache_clear()


@contextmanager
def compared() -> Iterator[list[Sequence[RankedStatement]]]:
    """The groups that recall judges from now on, by the wording of two statements alone."""
    seen: list[Sequence[RankedStatement]] = []

    def record(statements: Sequence[RankedStatement], question: str, *given: Any) -> GroupJudgement:
        seen.append(statements)
        return judge_group(statements, question, *given)

    before = dict.fromkeys(ranking.FEATURES, 0.0) | {CONSTANT: -2.0}
    replaces = dict.fromkeys(replacement.FEATURES, 0.0) | {CONSTANT: -3.0}
    with judged_by(before, replaces), mock.patch.object(recalled, "judge_group", record):
        yield seen


def look_up_corpus(
    authors: Sequence[str], homes: Path | None, stories: int | None = None
) -> Material:
    """The groups of the stories of some authors, at most `stories` of each."""
    material = Material()
    for author in authors:
        for story in read_corpus(authors=[author])[:stories]:
            for lane in LANES:
                material.changed[story.id, lane] = changed_texts(story, lane)
                material.groups += _of_story(story, lane, homes)
        print(f"{author}: {len(material.groups):,} groups", flush=True)
    return material


def _of_story(story: Story, lane: Lane, homes: Path | None) -> Iterator[Group]:
    with compared() as seen, asked_story(homes, story, lane) as ask:
        for question in story.questions:
            seen.clear()
            ask(question)
            for statements in seen:
                past = question.kind in ("past", "first")
                # Of what was never said nothing is right: such pairs only replace each other.
                texts = (question.answer, question.stale) if question.kind != ABSENT else ((), ())
                yield _group((CORPUS, story.id, lane), question.text, past, statements, *texts)


def look_up_changes(data: Path, parts: Sequence[str], homes: Path | None) -> Material:
    """The groups of some parts of `bench.changes`."""
    material = Material()
    for part in parts:
        for story in read_stories(data)[part]:
            with (
                compared() as seen,
                home_of(homes, f"changes-{story['id']}") as home,
                told_both_ways(home, story) as ways,
            ):
                for question in (one for one in story["questions"] if one["kind"] != ABSENT):
                    for told, ask in ways.items():
                        seen.clear()
                        ask(question)
                        material.groups += [
                            _group(
                                (CHANGES, story["id"], told),
                                question["q"],
                                question["kind"] == "past",
                                statements,
                                question["answer"],
                                question["stale"],
                            )
                            for statements in seen
                        ]
        print(f"changes, {part}: {len(material.groups):,} groups", flush=True)
    return material


def look_up_chats(data: Path, homes: Path | None) -> Material:
    """The groups of chats 1 to 5: what is evidence is right, and nothing is known of the rest."""
    material = Material()
    for form, chat in haystacks(data):
        if chat.number <= CHATS:
            with compared() as seen:
                material.groups += _of_chat(form, chat, homes, seen)
            print(f"{form} {chat.number}: {len(material.groups):,} groups", flush=True)
    return material


def _of_chat(
    form: str, chat: Haystack, homes: Path | None, seen: list[Sequence[RankedStatement]]
) -> Iterator[Group]:
    texts = turn_texts(chat)
    with asked_chat(homes, form, chat) as (memory, clock):
        latest = clock.now
        for question in chat.questions:
            evidence = {texts[key] for key in question.evidence if key in texts}
            if not evidence:
                continue
            seen.clear()
            clock.now = question.now or latest
            memory.recall_conversation(question.conversation_id, question.text, top_k=10)
            for statements in seen:
                right = tuple(one.statement.text in evidence for one in statements)
                nothing = (False,) * len(right)
                where = (CHAT, f"{form} {chat.number}", "turns")
                yield Group(*where, question.text, False, statements, right, nothing)


def _group(
    where: tuple[str, str, str],
    question: str,
    past: bool,
    statements: Sequence[RankedStatement],
    answer: Sequence[str],
    stale: Sequence[str],
) -> Group:
    answers = tuple(holds_any(one.statement.text, answer) for one in statements)
    outdated = tuple(holds_any(one.statement.text, stale) for one in statements)
    return Group(*where, question, past, statements, answers, outdated)


def read_labelled_pairs() -> Iterator[dict[str, Any]]:
    """The pairs of corpus/changes as they are written, in the order of their files."""
    for file in sorted(PAIRS.glob("*.jsonl")):
        yield from map(json.loads, file.read_text("utf-8").splitlines())


def read_written() -> list[Pair]:
    """The pairs of corpus/changes that can be a change, said up to three months apart."""
    settings = load_settings()
    model = spec_for(settings.embedder, settings=settings).load()
    days = random.Random(WRITTEN)
    pairs = []
    for raw in read_labelled_pairs():
        first, second = (rows[0] for rows in model.embed([raw["older"], raw["newer"]]))
        older = _said(raw["older"], 0.0, raw["older_by"])
        newer = _said(raw["newer"], days.uniform(0.5, 90.0) * _DAY, raw["newer_by"])
        if replacement.is_possible(older, newer):
            replaced, lane = raw["label"] == "replaces", f"{raw['lane']}s"
            pairs.append(Pair(WRITTEN, lane, older, newer, float(first @ second), replaced))
    return pairs


def _said(text: str, at: float, speaker: str) -> Statement:
    assistant = speaker == "assistant"
    return Statement(text, at, "" if assistant else speaker, assistant, read_statement(text))


# -- which pairs are a change


def changed_texts(story: Story, lane: Lane) -> frozenset[Texts]:
    """The texts of all pairs of which the newer one replaces the older, over others too.

    What says the same as one of the two is replaced and replaces as that does.
    """
    texts = story.texts(lane)
    leader = {key: key for key in texts}

    def lead(key: tuple[str, int]) -> tuple[str, int]:
        while leader[key] != key:
            key = leader[key]
        return key

    own = [one for one in story.relations if one.lane == lane]
    for one in own:
        if one.kind == "same":
            leader[lead(one.newer)] = lead(one.older)
    said: dict[tuple[str, int], list[str]] = {}
    for key, text in texts.items():
        said.setdefault(lead(key), []).append(text)
    later: dict[tuple[str, int], set[tuple[str, int]]] = {}
    for one in own:
        if one.kind == "replaces":
            later.setdefault(lead(one.older), set()).add(lead(one.newer))
    return frozenset(
        (old, new)
        for key, olds in said.items()
        for other in _reached(key, later)
        for old in olds
        for new in said[other]
    )


def _reached(
    key: tuple[str, int], later: Mapping[tuple[str, int], Iterable[tuple[str, int]]]
) -> set[tuple[str, int]]:
    found: set[tuple[str, int]] = set()
    coming = [key]
    while coming:
        for one in later.get(coming.pop(), ()):
            if one not in found:
                found.add(one)
                coming.append(one)
    return found


def replacing_pairs(material: Material) -> list[Pair]:
    """Each pair that can be a change once, with what is known of it; others are left out."""
    known = _known_pairs(material)
    found: dict[tuple[str, str, Texts], Pair] = {}
    for group in material.groups:
        for place, older, newer in _dated_pairs(group):
            key = (group.story, group.lane, (older.text, newer.text))
            replaced = known.get(key)
            if replaced is None or key in found or not replacement.is_possible(older, newer):
                continue
            close = group.statements[place].closeness
            found[key] = Pair(group.of, group.lane, older, newer, close, replaced)
    return list(found.values())


def _known_pairs(material: Material) -> dict[tuple[str, str, Texts], bool]:
    """Which of the pairs of texts that were looked up are a change, and which are none."""
    known: dict[tuple[str, str, Texts], bool] = {}
    for group in material.groups:
        changed = material.changed.get((group.story, group.lane))
        texts = group.texts
        for older, newer in ((0, n) for n in range(1, len(texts))):
            for old, new in ((older, newer), (newer, older)):
                key = (group.story, group.lane, (texts[old], texts[new]))
                if changed is not None:
                    known[key] = key[2] in changed
                    continue
                outdated = group.outdated[old] and not group.answers[old] and group.answers[new]
                holding = group.answers[old] and not group.answers[new]
                if outdated and not group.past:
                    known[key] = True
                elif holding and not group.past:
                    known.setdefault(key, False)
    return known


def _dated_pairs(group: Group) -> Iterator[tuple[int, Statement, Statement]]:
    """The pairs of each statement with the best one, but those whose newer one is an echo."""
    echoes = ranking.find_echoes(group.statements)
    said = [one.statement for one in ranking.date_echoes(group.statements, echoes)]
    for place in range(1, len(said)):
        for old, new in ((0, place), (place, 0)):
            if said[old].at < said[new].at and new not in echoes:
                yield place, said[old], said[new]


# -- the two regressions


def fit_replaces(pairs: Sequence[Pair]) -> Fitted:
    """The weights of `REPLACES`."""
    rows: list[Features] = []
    labels: list[bool] = []
    counts: list[float] = []
    for one in pairs:
        for closeness, share in (
            (one.closeness, 1.0 - WITHOUT_CLOSENESS),
            (math.nan, WITHOUT_CLOSENESS),
        ):
            rows.append(replacement_features(one.older, one.newer, closeness))
            labels.append(one.replaced)
            counts.append(share * REPLACES_COUNT[one.of])
    weights, constant = fit_logistic(rows, labels, counts, REPLACES_RIDGE)
    named = dict(zip(replacement.FEATURES, weights, strict=True))
    return Fitted({CONSTANT: constant, **named}, len(pairs), sum(one.replaced for one in pairs))


# (older, newer), each 1 (answer), -1 (outdated) or 0 (neither): whether the newer one is the right
# one, and what the pair counts. What is neither counts half beside an answer.
_Rule: TypeAlias = Mapping[tuple[int, int], tuple[int, float]]
_BEFORE: Final[_Rule] = {(-1, 1): (1, 1.0), (1, -1): (0, 1.0), (1, 0): (0, 0.5)}
_BEFORE_IN_PAST: Final[_Rule] = {(1, -1): (1, 1.0), (-1, 1): (0, 0.5), (1, 0): (0, 0.5)}


@dataclass(frozen=True, slots=True)
class Ordered:
    """Features of a pair, whether the newer one stands before, and what the pair counts."""

    features: Features
    before: int
    counts: float


def ordered_pairs(groups: Iterable[Group], replaces: Weights) -> list[Ordered]:
    """The pairs of which one is right; `replaces` are the weights of `REPLACES`."""
    found: list[Ordered] = []
    with judged_by(shipped.BEFORE, replaces):
        for group in groups:
            found += _ordered(group, read_cues(group.question))
    return found


def _ordered(group: Group, cues: QuestionCues) -> Iterator[Ordered]:
    rule = _BEFORE_IN_PAST if group.past else _BEFORE
    echoes = ranking.find_echoes(group.statements)
    dated = ranking.date_echoes(group.statements, echoes)
    able = ranking.comparable_pairs(dated, cues)
    sure = ranking.replacements(dated, able, echoes)
    speaking = ranking.speaking_names([dated[place] for place in (0, *able)])
    labels = [
        1 if right else -int(outdated)
        for right, outdated in zip(group.answers, group.outdated, strict=True)
    ]
    for place in able:
        old, new = (0, place) if dated[0].at < dated[place].at else (place, 0)
        known = rule.get((labels[old], labels[new]))
        if known is not None:
            features = ranking.pair_features(dated[0], dated[place], cues, sure[place], speaking)
            yield Ordered(features, known[0], known[1] * BEFORE_COUNT[group.of])


def fit_before(pairs: Sequence[Ordered]) -> Fitted:
    """The weights of `BEFORE`."""
    weights, constant = fit_logistic(
        [one.features for one in pairs],
        [one.before for one in pairs],
        [one.counts for one in pairs],
        BEFORE_RIDGE,
    )
    named = dict(zip(ranking.FEATURES, weights, strict=True))
    return Fitted({CONSTANT: constant, **named}, len(pairs), sum(one.before for one in pairs))


# -- what was held out


def measure(
    name: str, material: Material, old: tuple[Weights, Weights], new: tuple[Weights, Weights]
) -> Iterator[Figure]:
    """Marks by lane and the order of pairs; weights are (BEFORE, REPLACES)."""
    pairs = replacing_pairs(material)
    yield from measure_marks(name, pairs, old, new)
    rows = [ordered_pairs(material.groups, weights[1]) for weights in (old, new)]
    orders = [_right(own, weights[0]) for own, weights in zip(rows, (old, new), strict=True)]
    yield Figure(f"{name}: order of {len(rows[0]):,} pairs right", *orders)


def measure_marks(
    name: str, pairs: Sequence[Pair], old: tuple[Weights, Weights], new: tuple[Weights, Weights]
) -> Iterator[Figure]:
    """Marks by lane; weights are (BEFORE, REPLACES)."""
    for lane in dict.fromkeys(one.lane for one in pairs):
        own = [one for one in pairs if one.lane == lane]
        so = sum(one.replaced for one in own)
        both = [_marks(own, weights[1]) for weights in (old, new)]
        for what, before, after in zip(
            ("precision of marks", "recall of marks", "average precision"), *both, strict=True
        ):
            told = f"{name}, {lane} ({len(own):,} pairs, {so:,} changed)"
            yield Figure(f"{told}: {what}", before, after)


def _marks(pairs: Sequence[Pair], replaces: Weights) -> tuple[float, float, float]:
    """Precision and recall of marks at the threshold, and average precision."""
    with judged_by(shipped.BEFORE, replaces):
        chances = np.array(
            [
                replacement.replacement_probability(one.older, one.newer, one.closeness)
                for one in pairs
            ]
        )
    right = np.array([one.replaced for one in pairs], float)
    marked = chances >= REPLACED
    order = np.argsort(-chances, kind="stable")
    found = np.cumsum(right[order])
    precise = float((found / np.arange(1, len(order) + 1) * right[order]).sum() / right.sum())
    return float(right[marked].mean()), float(right[marked].sum() / right.sum()), precise


def _right(pairs: Sequence[Ordered], before: Weights) -> float:
    weights = np.array([before[name] for name in ranking.FEATURES])
    odds = np.array([one.features for one in pairs]) @ weights + before[CONSTANT]
    told = 1.0 / (1.0 + np.exp(-odds)) >= THRESHOLD
    return float(np.mean(told == np.array([one.before for one in pairs], bool)))


# -- all of it


@dataclass(frozen=True, slots=True)
class Fit:
    """Both regressions, and what they do on what was held out."""

    before: Fitted
    replaces: Fitted
    figures: tuple[Figure, ...]


def fit_currency(data: Path, homes: Path | None = None, stories: int | None = None) -> Fit:
    """Look up, fit, measure; of each author of the corpus at most `stories`."""
    split = read_split()
    corpus = look_up_corpus(split.train, homes, stories)
    first, chats = look_up_changes(data, [FITTED], homes), look_up_chats(data, homes)
    pairs = [pair for one in (corpus, first, chats) for pair in replacing_pairs(one)]
    replaces = fit_replaces(_without_doubt(pairs))
    groups = [*corpus.groups, *first.groups, *chats.groups]
    before = fit_before(ordered_pairs(groups, replaces.weights))
    old = (dict(shipped.BEFORE), dict(shipped.REPLACES))
    new = (before.weights, replaces.weights)
    held = {
        "held-out authors": look_up_corpus(split.held_out, homes, stories),
        "changes, held out": look_up_changes(data, [HELD_OUT, OWN], homes),
    }
    figures = [one for name, material in held.items() for one in measure(name, material, old, new)]
    figures += measure_marks("pairs of corpus/changes", read_written(), old, new)
    return Fit(before, replaces, tuple(figures))


def _without_doubt(pairs: Iterable[Pair]) -> list[Pair]:
    """Of `changes` what changed, of chats what did not; of the corpus, which is labelled, all."""
    wanted = {CHANGES: True, CHAT: False}
    return [one for one in pairs if wanted.get(one.of, one.replaced) == one.replaced]


def source_of(fit: Fit) -> str:
    """The module of weights."""
    lines = [
        '"""Weights of `rank/currency` and `rank/replacement`: `make fit ONLY=currency` '
        'writes them."""',
        "",
        "from typing import Final",
        "",
        f'CONSTANT: Final = "{CONSTANT}"',
    ]
    for name, of, what in (
        ("BEFORE", fit.before, "a newer one that is right and an older one that is not"),
        ("REPLACES", fit.replaces, "one value that changed"),
    ):
        lines += ["", f"# Fitted on {of.pairs:,} pairs, of which {of.so:,} are {what}."]
        lines += [f"{name}: Final = {{"]
        # -0.0 is 0.0.
        lines += [f'    "{key}": {round(value, 4) + 0.0:.4f},' for key, value in of.weights.items()]
        lines += ["}"]
    return "\n".join(lines) + "\n"
