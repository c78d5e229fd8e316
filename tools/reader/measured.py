"""What readers are measured on: held-out authors, stories A, half of `changes`, real chats."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.models.measured_sets import MeasuredSet, measured_sets
from tools.models.passages import CONTEXT, WORDS
from tools.models.stories import authors_of, read_split
from tools.reader.sources import changes_statements, corpus_statements
from tools.reader.statements import Statements, judged_pool, judged_story

CHATS = ("realtalk 1 to 5", "beam 1 to 5")


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """Statements with questions under one name."""

    name: str
    read: Callable[[], Iterator[Statements]]


def held_out_authors(corpus: Path) -> frozenset[str]:
    """The authors that nothing is trained on."""
    return read_split(corpus)[1] & frozenset(authors_of(corpus))


def judged_sets(data: Path | None, corpus: Path, *, dated: bool = False) -> list[JudgedSet]:
    """The sets in the order of the table; without `data` those that need none of it."""
    authors = held_out_authors(corpus)
    sets = [JudgedSet("corpus", lambda: corpus_statements(corpus, authors, dated=dated))]
    if data is None:
        return sets
    changes = data / "changes" / "dev.json"
    sets.append(JudgedSet("stories A", lambda: _stories_a(data, dated=dated)))
    sets.append(
        JudgedSet("changes, second half", lambda: changes_statements(changes, 1, dated=dated))
    )
    forms = [measured_sets(data, corpus, form) for form in (WORDS, CONTEXT)]
    for words, told in zip(*forms, strict=True):
        if words.name in CHATS:
            sets.append(JudgedSet(words.name, _both(words, told)))
    return sets


def _both(words: MeasuredSet, told: MeasuredSet) -> Callable[[], Iterator[Statements]]:
    def read() -> Iterator[Statements]:
        for own, with_context in zip(words.read(), told.read(), strict=True):
            yield judged_pool(own, with_context)

    return read


def _stories_a(data: Path, *, dated: bool) -> Iterator[Statements]:
    for story in json.loads((data / "stories" / "stories.json").read_text("utf-8")):
        yield from judged_story(story, "stories A", "", dated=dated)
