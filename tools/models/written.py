"""What hands wrote for training (`corpus.written`), as pools: questions over stories, exchanges,
values one after the other, and groups of statements.

In: the corpus. Out: pools whose questions know what misleads. Those over stories come for the
authors that are asked for; the rest is of no story and of no author.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from corpus.reading import Key, Lane, Story, read_stories
from corpus.written import (
    Exchange,
    Wanted,
    read_chains,
    read_exchanges,
    read_groups,
    read_wanted,
)
from tools.models.asked import Asked, Pool
from tools.models.passages import Turn, form_passages, meaning_of, speakers_of

RowT = TypeVar("RowT")
KeyT = TypeVar("KeyT", bound=Hashable)

ASKED = "asked"
EXCHANGES = "exchanges"
PAST = "past"
GROUPS = "groups"


def read_asked(corpus: Path, authors: Collection[str], form: str) -> Iterator[Pool]:
    """The questions over these authors' stories: a pool a story, lane and language of asking.

    The language of a question that is not its story's comes before the story's: `en of de`.
    """
    if not (corpus / "questions").is_dir():
        return
    stories = read_stories(corpus / "stories", authors=tuple(sorted(authors)))
    by_story = _gather(read_wanted(stories, corpus / "questions"), lambda one: one.story)
    for story in stories:
        asked = _gather(by_story.get(story.id, ()), lambda one: one.language)
        for language, wanted in asked.items():
            for lane in ("turns", "facts"):
                yield _asked_of(story, lane, language, wanted, form)


def _asked_of(story: Story, lane: Lane, language: str, wanted: Iterable[Wanted], form: str) -> Pool:
    texts = story.texts(lane)
    places = {key: place for place, key in enumerate(texts)}
    passages = list(texts.values())
    speakers: dict[int, str] = {}
    if lane == "turns":
        turns = [Turn(turn.speaker, turn.text) for turn in story.turns().values()]
        passages, speakers = form_passages(turns, form), speakers_of(turns)

    def rows(keys: Iterable[Key]) -> tuple[int, ...]:
        return tuple(places[key] for key in keys)

    group = f"corpus/{story.author}/{story.id}"
    asked = []
    for number, one in enumerate(wanted):
        answers = one.turns if lane == "turns" else one.facts
        if answers:
            asked.append(
                Asked(
                    f"{ASKED}/{one.hand}/{story.id}/{language}/{number}/{lane}",
                    one.text,
                    frozenset(rows(answers)),
                    meant=meaning_of(one.text, speakers) if speakers else "",
                    misleading=rows(one.misleading.get(lane, ())),
                )
            )
    told = language if language == story.lang else f"{language} of {story.lang}"
    return Pool(ASKED, lane, group, passages, asked, story.author, told)


def read_replies(folder: Path) -> Iterator[Pool]:
    """Exchanges, a pool a hand and language: a short reply is told with its question."""
    gathered = _gather(read_exchanges(folder), lambda one: (one.hand, one.language))
    for (hand, language), exchanges in gathered.items():
        passages: list[str] = []
        asked = []
        for number, one in enumerate(exchanges):
            place = len(passages)
            passages += map(_told, (one, *one.misleading))
            passages += [text for at, (_, text) in enumerate(one.turns) if at != one.reply]
            misleading = tuple(range(place + 1, place + 1 + len(one.misleading)))
            own_turns = frozenset(
                range(misleading[-1] + 1 if misleading else place + 1, len(passages))
            )
            asked += [
                Asked(
                    f"{EXCHANGES}/{hand}/{language}/{number}/{wording}",
                    question,
                    frozenset({place}),
                    own_turns,
                    misleading=misleading,
                )
                for wording, question in enumerate(one.questions)
            ]
        yield Pool(
            EXCHANGES, "turns", f"{EXCHANGES}/{hand}/{language}", passages, asked, "", language
        )


def _told(exchange: Exchange) -> str:
    return f"{exchange.turns[exchange.ask][1]} \u2014 {exchange.turns[exchange.reply][1]}"


def read_past(folder: Path) -> Iterator[Pool]:
    """Chains of values, a pool a hand, lane and language.

    A vector cannot tell the former value from the present one: the others of a chain are neutral.
    """
    gathered = _gather(read_chains(folder), lambda one: (one.hand, one.lane, one.language))
    for (hand, lane, language), chains in gathered.items():
        passages: list[str] = []
        asked = []
        for number, chain in enumerate(chains):
            first = len(passages)
            passages += [text for _, _, text in chain.statements]
            own = frozenset(range(first, len(passages)))
            for place, question in enumerate(chain.questions):
                right = frozenset(first + at for at in question.answer)
                key = f"{PAST}/{hand}/{lane}/{language}/{number}/{place}"
                asked.append(Asked(key, question.text, right, own - right))
        yield Pool(PAST, lane, f"{PAST}/{hand}/{lane}/{language}", passages, asked, "", language)


def read_statements(folder: Path) -> Iterator[Pool]:
    """Groups, a pool a hand, lane and language: an earlier statement finds what is of its matter.

    Statements find statements by it, which is how memories are linked and changes found.
    """
    gathered = _gather(read_groups(folder), lambda one: (one.hand, one.lane, one.language))
    for (hand, lane, language), groups in gathered.items():
        passages: list[str] = []
        asked = []
        for number, group in enumerate(groups):
            by_label: dict[str, set[int]] = defaultdict(set)
            for later in group.newer:
                by_label[later.label].add(len(passages))
                passages.append(later.said.text)
            asked.append(
                Asked(
                    f"{GROUPS}/{hand}/{lane}/{language}/{number}",
                    group.older.text,
                    frozenset(by_label["replaces"] | by_label["same"]),
                    frozenset(by_label["holds"]),
                    misleading=tuple(sorted(by_label["other"])),
                )
            )
        yield Pool(
            GROUPS, lane, f"{GROUPS}/{hand}/{lane}/{language}", passages, asked, "", language
        )


def _gather(rows: Iterable[RowT], key: Callable[[RowT], KeyT]) -> dict[KeyT, list[RowT]]:
    gathered: dict[KeyT, list[RowT]] = {}
    for row in rows:
        gathered.setdefault(key(row), []).append(row)
    return gathered
