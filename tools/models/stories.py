"""Stories as pools of turns and of facts: the corpus, and other files of the same form.

In: `FOLDER/stories/AUTHOR/ID.json`, one story each, or a file with a list of them, and
`FOLDER/split.json` (`{"train": [authors], "held_out": [authors]}`). Out: two pools a story.
Evidence is taken from `evidence` and `facts`, and where a story names none (`changes`), from the
strings that mark right and outdated statements.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tools.models.asked import Asked, Pool
from tools.models.examples import LONG
from tools.models.passages import Turn, form_passages, meaning_of, speakers_of

TURNS: Final = "turns"
FACTS: Final = "facts"
LONG_PASSAGE: Final = 900
"""Characters of several turns in one passage, about."""


def read_split(corpus: Path) -> tuple[frozenset[str], frozenset[str]]:
    """The authors to train on, and those to measure on. Without a split, all are trained on."""
    file = corpus / "split.json"
    if not file.is_file():
        return frozenset(authors_of(corpus)), frozenset()
    raw = json.loads(file.read_text("utf-8"))
    train, held_out = frozenset(raw["train"]), frozenset(raw["held_out"])
    if shared := train & held_out:
        raise SystemExit(f"{file}: both trained on and held out: {', '.join(sorted(shared))}")
    return train, held_out


def authors_of(corpus: Path) -> list[str]:
    """The names of the folders that have stories."""
    return sorted(folder.name for folder in (corpus / "stories").glob("*") if folder.is_dir())


def read_corpus(corpus: Path, authors: Collection[str], form: str) -> Iterator[Pool]:
    """The pools of some authors' stories, in the order of their names."""
    for author, story in raw_stories(corpus, authors):
        yield from pools_of(story, "corpus", form, author)


def raw_stories(corpus: Path, authors: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(author, story as it is written), in the order of their names."""
    for author in sorted(authors):
        for file in sorted((corpus / "stories" / author).glob("*.json")):
            yield author, json.loads(file.read_text("utf-8"))


def read_stories(file: Path, source: str, form: str, *, step: int = 1) -> Iterator[Pool]:
    """The pools of a file with a list of stories, of every `step`-th from the first on."""
    for story in json.loads(file.read_text("utf-8"))[::step]:
        yield from pools_of(story, source, form, "")


def pools_of(story: Mapping[str, Any], source: str, form: str, author: str) -> Iterator[Pool]:
    """A story's turns and its facts, each with the questions that have an answer among them."""
    group = group_of(source, author, story)
    places: dict[tuple[str, int], int] = {}
    turns: list[Turn] = []
    for session in story["sessions"]:
        for index, turn in enumerate(session["turns"]):
            places[session["id"], index] = len(turns)
            turns.append(Turn(turn.get("speaker"), turn["text"]))
    facts = [fact["text"] for fact in story["facts"]]
    told = form_passages(turns, form)
    speakers = speakers_of(turns)
    of_turns, of_facts = [], []
    for number, question in enumerate(story["questions"]):
        if question["kind"] == "absent":
            continue
        key = f"{group}/{number}"
        in_turns = _marked(question, [turn.text for turn in turns])
        in_facts = _marked(question, facts)
        if "evidence" in question:
            evidence = frozenset(places[session, index] for session, index in question["evidence"])
            in_turns = evidence, in_turns[1] - evidence
            evidence = frozenset(question["facts"])
            in_facts = evidence, in_facts[1] - evidence
        meant = meaning_of(question["q"], speakers)
        if in_turns[0]:
            also = tuple(facts[place] for place in sorted(in_facts[0]))
            of_turns.append(Asked(f"{key}/t", question["q"], *in_turns, also, meant))
        if in_facts[0]:
            also = tuple(told[place] for place in sorted(in_turns[0]))
            of_facts.append(Asked(f"{key}/f", question["q"], *in_facts, also))
    language = str(story.get("lang", "en"))
    yield Pool(source, TURNS, group, told, of_turns, author, language)
    yield Pool(source, FACTS, group, facts, of_facts, author, language)


def group_of(source: str, author: str, story: Mapping[str, Any]) -> str:
    """The name of a story's pools, with which the keys of its questions begin."""
    return f"{source}/{author}/{story['id']}" if author else f"{source}/{story['id']}"


def told_twice(of_turns: Pool, of_facts: Pool) -> Pool:
    """Facts as what is asked for among the turns that tell the same: statements find statements.

    Without it only questions would be drawn to what answers them, and the closeness of two
    statements, by which memories are linked, would be left to chance.
    """
    answered = {one.key.removesuffix("/t"): one for one in of_turns.asked}
    asked: dict[str, Asked] = {}
    for one in of_facts.asked:
        told = answered.get(one.key.removesuffix("/f"))
        if told is None or len(one.positives) != 1:
            continue
        (place,) = one.positives
        fact = of_facts.passages[place]
        key = f"{of_facts.group}/fact {place}"
        asked.setdefault(fact, Asked(key, fact, told.positives, told.neutral))
    return replace(of_turns, source="told", asked=list(asked.values()))


def joined(of_turns: Pool) -> Pool:
    """A story's turns put together to long passages, as one message of an assistant's chat is long.

    The same questions are asked; what holds an outdated value beside the answer stays an answer.
    """
    passages: list[str] = []
    part_of: list[int] = []
    for text in of_turns.passages:
        if not passages or len(passages[-1]) + len(text) > LONG_PASSAGE:
            passages.append(text)
        else:
            passages[-1] += f" {text}"
        part_of.append(len(passages) - 1)
    asked = []
    for one in of_turns.asked:
        positives = frozenset(part_of[place] for place in one.positives)
        neutral = frozenset(part_of[place] for place in one.neutral) - positives
        key = f"{one.key.removesuffix('/t')}/long"
        asked.append(Asked(key, one.query, positives, neutral, one.also, one.meant))
    return replace(of_turns, source=LONG, lane=LONG, passages=passages, asked=asked)


def _marked(
    question: Mapping[str, Any], texts: Sequence[str]
) -> tuple[frozenset[int], frozenset[int]]:
    """Where the right answer stands, and where only an outdated one or another's does."""
    right = holding(texts, question["answer"])
    stale = holding(texts, question["stale"])
    answers = right if question.get("mixed") else right - stale
    return answers, (right | stale) - answers


def holding(texts: Sequence[str], strings: Sequence[str]) -> frozenset[int]:
    """The places of the texts that hold one of the strings."""
    marks = [string.casefold() for string in strings]
    return frozenset(
        place for place, text in enumerate(texts) if any(m in text.casefold() for m in marks)
    )
