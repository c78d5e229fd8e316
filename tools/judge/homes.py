"""What the judge is fitted to and measured on: labelled pairs, and homes of many stories.

From the stories come their labelled relations, also by way of others, and the nearest earlier
statements of each in a home that holds many stories: what no label relates is another matter. From
`corpus/groups` and `corpus/changes` come written pairs, and pairs of statements that were written
for different ones. Authors and hands are parted in three: trained on, calibrated on, held out.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import log
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from bench.embedder import KeptEmbedder
from corpus.reading import LANES, Key, Lane, Story, read_split, read_stories
from corpus.written import ROOT, read_groups

from anaphora.rank.pairs import Statement, StatementPair, statement_of
from anaphora.rank.statements import read_statement
from anaphora.settings import load_settings

REPLACES, BOTH, REPEATS, OTHER = range(4)
CLASSES: Final = ("replaces", "both", "repeats", "other")
TRAINED, CALIBRATED, HELD_OUT = "train", "calibrate", "held out"

HELD_OUT_HANDS: Final = frozenset({"g09", "g10"})
CALIBRATED_BY: Final = frozenset({"a06", "a11", "b04", "c08", "g08", "p05"})
NEIGHBOURS: Final = 16
"""Earlier statements that a later one is compared with."""
SHARED_WORDS: Final = 0.5
"""What the share of words in common counts beside the cosine, to find them."""
HOME: Final = 1_100
"""Statements of a home of many stories, at least."""
NAMED_ALIKE: Final = 0.5
"""The share of stories in a home whose speakers are taken for the same people."""

_DAY: Final = 86_400.0
_LABELS: Final = {"replaces": REPLACES, "both": BOTH, "holds": BOTH, "same": REPEATS}
_PEOPLE: Final = ("Ann", "Ben", "Cleo", "Dov", "Eve", "Finn")
Vectors: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Labelled:
    """A pair and what its later statement makes of the earlier, of `part` (`TRAINED` …).

    `source` is what it is from, `group` the story or the written group of the later one, `newer`
    the place of that in its home; `across`: the two are of different groups.
    """

    pair: StatementPair
    label: int
    part: str
    source: str
    author: str
    lane: Lane
    group: str
    newer: str
    across: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """A statement of a home, with its story and its place in that."""

    statement: Statement
    author: str
    story: str
    key: Key


def part_of(author: str) -> str:
    """What the work of an author or a hand is for."""
    if author in CALIBRATED_BY:
        return CALIBRATED
    is_held = author in HELD_OUT_HANDS or author in read_split().held_out
    return HELD_OUT if is_held else TRAINED


def kept_vectors(folder: Path | None) -> KeptEmbedder:
    """The embedder of the settings; its vectors are kept in a folder."""
    return KeptEmbedder(load_settings().embedder, folder)


# -- stories


def story_homes(parts: Iterable[str], seed: int = 1) -> Iterator[tuple[Lane, list[Story]]]:
    """The stories of each part in homes of about 1,100 statements or more, English ones apart."""
    pools: dict[tuple[str, bool, Lane], list[Story]] = defaultdict(list)
    for story in read_stories():
        if part_of(story.author) in parts:
            for lane in LANES:
                pools[part_of(story.author), story.lang == "en", lane].append(story)
    for (part, english, lane), stories in pools.items():
        random.Random(f"{seed}:{part}:{english}:{lane}").shuffle(stories)
        total = sum(len(member.texts(lane)) for member in stories)
        homes = max(1, total // HOME)
        for at in range(homes):
            yield lane, stories[at::homes]


def tell_stories(stories: Sequence[Story], lane: Lane, seed: int = 1) -> list[Told]:
    """The statements of stories in one home, the first first.

    In some of them the speakers are the same people: who speaks must not give a story away.
    """
    statements: list[Told] = []
    for story in stories:
        alike = random.Random(f"{seed}:{story.id}").random() < NAMED_ALIKE
        statements += _tell_turns(story, alike) if lane == "turns" else _tell_facts(story)
    return sorted(statements, key=lambda told: told.statement.at)


def _tell_facts(story: Story) -> Iterator[Told]:
    for number, fact in enumerate(story.facts):
        yield Told(
            statement_of(fact.text, fact.when.timestamp()), story.author, story.id, ("", number)
        )


def _tell_turns(story: Story, alike: bool) -> Iterator[Told]:
    spoken = Counter(
        turn.speaker for turn in story.turns().values() if turn.speaker and turn.role == "user"
    )
    names = {name: _PEOPLE[at % len(_PEOPLE)] for at, (name, _) in enumerate(spoken.most_common())}
    for session in story.sessions:
        before = ""
        for number, turn in enumerate(session.turns):
            name = turn.speaker or ""
            statement = Statement(
                turn.text,
                session.when.timestamp() + 60.0 * number,
                names.get(name, name) if alike else name,
                turn.role == "assistant",
                read_statement(turn.text),
                before,
            )
            yield Told(statement, story.author, story.id, (session.id, number))
            before = turn.text


def related_places(story: Story, lane: Lane) -> dict[tuple[Key, Key], int]:
    """The label of each related pair of places, (older, newer), also by way of others.

    What says the same as one of two is replaced, replaces and holds as that does.
    """
    relations = [relation for relation in story.relations if relation.lane == lane]
    lead = _leaders(
        story.texts(lane),
        [(relation.older, relation.newer) for relation in relations if relation.kind == "same"],
    )
    members: dict[Key, list[Key]] = defaultdict(list)
    for key, leader in lead.items():
        members[leader].append(key)
    later: dict[Key, set[Key]] = defaultdict(set)
    for relation in relations:
        if relation.kind == "replaces":
            later[lead[relation.older]].add(lead[relation.newer])
    holding = [
        (lead[relation.older], lead[relation.newer])
        for relation in relations
        if relation.kind == "both"
    ]
    related = [(key, new, REPLACES) for key in members for new in _reached(key, later)]
    related += [(key, key, REPEATS) for key in members]
    related += [(old, new, BOTH) for old, new in holding]
    order = {key: number for number, key in enumerate(lead)}
    labels: dict[tuple[Key, Key], int] = {}
    for old_leader, new_leader, label in related:
        for old, new in product(members[old_leader], members[new_leader]):
            if order[old] < order[new]:
                labels.setdefault((old, new), label)
    return labels


def _leaders(keys: Iterable[Key], alike: Iterable[tuple[Key, Key]]) -> dict[Key, Key]:
    """One of those that say the same, for each."""
    leader = {key: key for key in keys}
    for older, newer in alike:
        old, new = leader[older], leader[newer]
        leader = {key: old if current == new else current for key, current in leader.items()}
    return leader


def _reached(key: Key, later: Mapping[Key, Iterable[Key]]) -> set[Key]:
    reached: set[Key] = set()
    coming = [key]
    while coming:
        for successor in later.get(coming.pop(), ()):
            if successor not in reached and successor != key:
                reached.add(successor)
                coming.append(successor)
    return reached


def home_pairs(lane: Lane, stories: Sequence[Story], vectors: KeptEmbedder) -> list[Labelled]:
    """Each statement of a home with its nearest earlier ones, and all related pairs."""
    statements = tell_stories(stories, lane)
    rows = embed([told.statement.text for told in statements], vectors)
    places = {(told.story, told.key): at for at, told in enumerate(statements)}
    related = {
        (places[story.id, old], places[story.id, new]): label
        for story in stories
        for (old, new), label in related_places(story, lane).items()
    }
    near = nearest_earlier([told.statement for told in statements], rows)
    nearby = {(old, new) for new, olds in enumerate(near) for old in olds}
    pairs = []
    for old, new in sorted(nearby | set(related), key=lambda pair: pair[::-1]):
        older, newer = statements[old], statements[new]
        if not older.statement.at < newer.statement.at:
            continue
        pairs.append(
            Labelled(
                StatementPair(older.statement, newer.statement, float(rows[old] @ rows[new])),
                related.get((old, new), OTHER),
                part_of(newer.author),
                "stories" if (old, new) in nearby else "stories, far",
                newer.author,
                lane,
                newer.story,
                f"{newer.story}/{newer.key[0]}/{newer.key[1]}/{lane}",
                older.story != newer.story,
            )
        )
    return pairs


def embed(texts: Sequence[str], vectors: KeptEmbedder) -> Vectors:
    """The vector of each text's first part, (texts, dimensions)."""
    return np.stack([parts[0] for parts in vectors.embed(texts)])


def nearest_earlier(
    statements: Sequence[Statement], rows: Vectors, count: int = NEIGHBOURS
) -> list[list[int]]:
    """The places of the nearest earlier statements of each: by cosine and rare words in common."""
    words = [statement.reading.words for statement in statements]
    counts = Counter(word for text_words in words for word in text_words)
    rarity = {word: log(len(words) / number) + 0.1 for word, number in counts.items()}
    holders: dict[str, list[int]] = defaultdict(list)
    nearest = []
    for new, text_words in enumerate(words):
        shared = np.zeros(new)
        for word in text_words:
            shared[holders[word]] += rarity[word]
        total = sum(rarity[word] for word in text_words) or 1.0
        worth = rows[:new] @ rows[new] + SHARED_WORDS * shared / total
        nearest.append(np.argsort(-worth, kind="stable")[:count].tolist())
        for word in text_words:
            holders[word].append(new)
    return nearest


# -- what was written in pairs


def group_pairs(vectors: KeptEmbedder, across: int = 8, seed: int = 1) -> list[Labelled]:
    """The written groups, and each of their statements with its nearest of other groups."""
    chance = random.Random(seed)
    statements: list[tuple[Statement, str, str, Lane]] = []
    links: list[tuple[int, int, int]] = []
    for number, group in enumerate((*read_groups(), *read_groups(ROOT / "plain"))):
        name, at = f"{group.hand}/{number}", chance.uniform(0, 200) * _DAY
        older = len(statements)
        first = statement_of(group.older.text, at, group.older.by, group.older.before)
        statements.append((first, group.hand, name, group.lane))
        for later in group.newer:
            when = at + chance.uniform(0.5, 120) * _DAY
            links.append((older, len(statements), _LABELS.get(later.label, OTHER)))
            text = statement_of(later.said.text, when, later.said.by, later.said.before)
            statements.append((text, group.hand, name, group.lane))
    rows = embed([statement.text for statement, _, _, _ in statements], vectors)
    return _paired(statements, links, rows, across, "groups")


def change_pairs(vectors: KeptEmbedder, across: int = 8, seed: int = 1) -> list[Labelled]:
    """The pairs of corpus/changes, and each of their statements with its nearest of others."""
    chance = random.Random(seed)
    statements: list[tuple[Statement, str, str, Lane]] = []
    links: list[tuple[int, int, int]] = []
    for file in sorted((ROOT / "changes").glob("*.jsonl")):
        for line, raw in enumerate(map(json.loads, file.read_text("utf-8").splitlines())):
            name, at = f"{file.stem}/{line}", chance.uniform(0, 200) * _DAY
            lane: Lane = "turns" if raw["lane"] == "turn" else "facts"
            links.append((len(statements), len(statements) + 1, _LABELS.get(raw["label"], OTHER)))
            statements.append(
                (statement_of(raw["older"], at, raw["older_by"]), "changes", name, lane)
            )
            later = at + chance.uniform(0.5, 90) * _DAY
            statements.append(
                (statement_of(raw["newer"], later, raw["newer_by"]), "changes", name, lane)
            )
    rows = embed([statement.text for statement, _, _, _ in statements], vectors)
    return _paired(statements, links, rows, across, "changes")


def _paired(
    said: Sequence[tuple[Statement, str, str, Lane]],
    own: Iterable[tuple[int, int, int]],
    rows: Vectors,
    across: int,
    source: str,
) -> list[Labelled]:
    pairs = [_labelled(said, rows, old, new, label, source) for old, new, label in own]
    lanes = [row[3] for row in said]
    parts = [part_of(row[1]) for row in said]
    for lane, part in sorted(set(zip(lanes, parts, strict=True))):
        order = sorted(
            (at for at in range(len(said)) if (lanes[at], parts[at]) == (lane, part)),
            key=lambda at: said[at][0].at,
        )
        near = nearest_earlier([said[at][0] for at in order], rows[order], across + 6)
        for new, olds in zip(order, near, strict=True):
            apart = [order[old] for old in olds if said[order[old]][2] != said[new][2]]
            pairs += [_labelled(said, rows, old, new, OTHER, source) for old in apart[:across]]
    return pairs


def _labelled(
    said: Sequence[tuple[Statement, str, str, Lane]],
    rows: Vectors,
    old: int,
    new: int,
    label: int,
    source: str,
) -> Labelled:
    older, newer = said[old][0], said[new][0]
    across = said[old][2] != said[new][2]
    # Half of what was written by different people for different groups is said by one.
    if across and new % 2:
        older = replace(older, speaker=newer.speaker, assistant=newer.assistant)
    _, hand, name, lane = said[new]
    pair = StatementPair(older, newer, float(rows[old] @ rows[new]))
    return Labelled(pair, label, part_of(hand), source, hand, lane, name, f"{source}/{new}", across)


def read_homes(parts: Iterable[str], vectors: KeptEmbedder) -> list[list[Labelled]]:
    """The pairs of each home of stories of some parts."""
    chosen_parts = frozenset(parts)
    return [home_pairs(lane, stories, vectors) for lane, stories in story_homes(chosen_parts)]
