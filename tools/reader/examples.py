"""What training reads: questions with judged statements, and pairs of statements, as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from tools.models.examples import read_lines

Verdict: TypeAlias = Literal["replaces", "holds", "other"]

ANSWER_CLASSES: Final = ("answers", "about", "not")
CHANGE_CLASSES: Final[tuple[Verdict, ...]] = ("replaces", "holds", "other")
CHANGES: Final = "changes"
"""The judgement of pairs, in the network of a reader."""
ANSWERS_FILE: Final = "answers.jsonl"
CHANGES_FILE: Final = "changes.jsonl"


@dataclass(frozen=True, slots=True)
class AnswerExample:
    """A question with statements of one group (a story, a chat) that were judged for it.

    `queries` are (style, text), the first as it was written. `answers` answer it, `about` are of
    its matter without answering it (an outdated value, another's), `others` are neither, the
    likeliest to be mistaken first. `unclear` are no answers; whether they are about it is unknown.
    A question that nothing answers has no `answers`.
    """

    key: str
    source: str
    lane: str
    group: str
    queries: tuple[tuple[str, str], ...]
    answers: tuple[str, ...]
    about: tuple[str, ...]
    others: tuple[str, ...]
    unclear: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeExample:
    """An earlier and a later statement of one lane, what is asked about them, and the verdict.

    `questions` may be empty: then the pair is judged without one.
    """

    key: str
    source: str
    lane: str
    group: str
    questions: tuple[str, ...]
    older: str
    newer: str
    verdict: Verdict


def read_answers(folder: Path) -> Iterator[AnswerExample]:
    """The questions of a folder that `prepare` wrote, in their order."""
    return read_lines(folder / ANSWERS_FILE, AnswerExample)


def read_changes(folder: Path) -> Iterator[ChangeExample]:
    """The pairs of a folder that `prepare` wrote, in their order."""
    return read_lines(folder / CHANGES_FILE, ChangeExample)
