"""What the reader is trained on, as judged statements: the corpus, pairs and public sets.

Only the stories of authors that are trained on are opened, and of `changes` only the half that
constants of the product are fitted on. What models are measured on is read by `measured.py`.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.models.chats import Chat, read_chats, read_silent
from tools.models.examples import LONG
from tools.models.pairs import read_pairs
from tools.models.passages import CONTEXT, WORDS
from tools.models.public import read_molweni, read_public
from tools.models.stories import TURNS, raw_stories
from tools.reader.statements import Judged, Statements, dated_text, judged_pool, judged_story


def corpus_statements(
    corpus: Path, authors: Collection[str], *, dated: bool = False
) -> Iterator[Statements]:
    """The turns and facts of some authors' stories, in the order of their names."""
    for author, story in raw_stories(corpus, authors):
        yield from judged_story(story, "corpus", author, dated=dated)


def changes_statements(file: Path, part: int, *, dated: bool = False) -> Iterator[Statements]:
    """Every other story of a file in which values change: `part` 0 is trained on, 1 is not."""
    for story in changes_stories(file)[part::2]:
        yield from judged_story(story, "changes", "", dated=dated)


def changes_stories(file: Path) -> list[dict[str, Any]]:
    """All stories of the file, in its order."""
    stories: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
    return stories


def pair_statements(corpus: Path) -> Iterator[Statements]:
    """The written pairs; what was written to mislead is no answer, and not about the question."""
    for pool in read_pairs(corpus / "pairs"):
        yield judged_pool(pool, pool)


def chat_statements(corpus: Path, *, dated: bool = False) -> Iterator[Statements]:
    """Long chats and lists of facts, with the questions that nothing in them answers."""
    folder = corpus / "chats"
    for words, told in zip(read_chats(folder, WORDS), read_chats(folder, CONTEXT), strict=True):
        yield _with_unanswered(words, told, dated=dated)
    for facts in read_silent(corpus / "silent"):
        yield _with_unanswered(facts, facts, dated=False)


def _with_unanswered(words: Chat, told: Chat, *, dated: bool) -> Statements:
    judged = judged_pool(words.pool, told.pool)
    silent = [
        Judged(one.key, one.query, frozenset(), about=one.near, near=not one.near)
        for one in words.unanswered
    ]
    texts = list(judged.told)
    if dated:
        texts = [dated_text(text, when) for text, when in zip(texts, told.times, strict=True)]
    lane = TURNS if judged.lane == LONG else judged.lane
    return replace(judged, lane=lane, told=texts, asked=[*judged.asked, *silent])


def public_statements(folder: Path) -> Iterator[Statements]:
    """The public sets, and the questions of Molweni that have no answer in their chat."""
    forms = read_public(folder, WORDS), read_public(folder, CONTEXT)
    for words, told in zip(*forms, strict=True):
        yield judged_pool(words, told)
    yield from _impossible(folder / "molweni.json.xz")


def _impossible(file: Path) -> Iterator[Statements]:
    with lzma.open(file, "rt", encoding="utf-8") as packed:
        chats: Sequence[Mapping[str, Any]] = json.load(packed)
    forms = read_molweni(chats, WORDS), read_molweni(chats, CONTEXT)
    for chat, words, told in zip(chats, *forms, strict=True):
        asked = [
            Judged(f"{words.group}/{question['id']}", question["question"], frozenset())
            for question in chat["qas"]
            if question["is_impossible"]
        ]
        if asked:
            yield replace(judged_pool(words, told), asked=asked)
