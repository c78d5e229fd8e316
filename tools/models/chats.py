"""Long chats and lists of facts of the corpus as pools: `corpus/chats` and `corpus/silent`.

In: a chat a file, with sessions of turns, or a list of facts a file; questions with their evidence,
of which many have none (`corpus/README.md`). Out: a pool a file, in which each wording is a
question of its own, and the questions that nothing answers beside it. Turns of an assistant's chat
are long: they are cut late.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.models.asked import Asked, Pool
from tools.models.examples import LONG
from tools.models.passages import CONTEXT, SPEAKER, Turn, form_passages
from tools.models.stories import FACTS, TURNS

CHATS: Final = "chats"
SILENT: Final = "silent"
_ASSISTANT: Final = "assistant"


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A question that a pool does not answer, and the places of what comes near to it."""

    key: str
    query: str
    near: frozenset[int]


@dataclass(frozen=True, slots=True)
class Chat:
    """A pool with its questions, those that nothing answers, and when each passage was said."""

    pool: Pool
    unanswered: Sequence[Unanswered]
    times: Sequence[str]
    starts: frozenset[int]
    """Places of the turns that begin a session."""


def read_chats(folder: Path, form: str) -> Iterator[Chat]:
    """The chats of a folder, in the order of their names."""
    for file in sorted(folder.glob("*.json")):
        chat = json.loads(file.read_text("utf-8"))
        places: dict[tuple[int, int], int] = {}
        turns: list[Turn] = []
        times: list[str] = []
        starts: list[int] = []
        for number, session in enumerate(chat["sessions"]):
            starts.append(len(turns))
            for at, (speaker, text) in enumerate(session["turns"]):
                places[number, at] = len(turns)
                turns.append(Turn(speaker, text))
                times.append(str(session["when"]))
        group = f"{CHATS}/{file.stem}"
        passages = form_passages(turns, form)
        for start in starts:
            # What was said weeks before the first turn of a session is not what it answers to.
            if form == CONTEXT:
                (passages[start],) = form_passages([turns[start]], SPEAKER)
        assisted = any(turn.speaker == _ASSISTANT for turn in turns)

        def rows(pairs: Sequence[Sequence[int]], places: Mapping[Any, int] = places) -> Any:
            return [places[session, at] for session, at in pairs]

        asked, unanswered = _questions(
            group,
            [
                {
                    **question,
                    **{name: rows(question.get(name, ())) for name in ("evidence", "stale")},
                }
                for question in chat["questions"]
            ],
        )
        lane = LONG if assisted else TURNS
        pool = Pool(CHATS, lane, group, passages, asked, "", str(chat["language"]))
        yield Chat(pool, unanswered, times, frozenset(starts))


def read_silent(folder: Path) -> Iterator[Chat]:
    """The lists of facts of a folder, in the order of their names."""
    for file in sorted(folder.glob("*.json")):
        told = json.loads(file.read_text("utf-8"))
        group = f"{SILENT}/{file.stem}"
        asked, unanswered = _questions(group, told["questions"])
        facts = list(told["facts"])
        pool = Pool(SILENT, FACTS, group, facts, asked, "", str(told["language"]))
        yield Chat(pool, unanswered, [""] * len(facts), frozenset())


def _questions(
    group: str, questions: Sequence[Mapping[str, Any]]
) -> tuple[list[Asked], list[Unanswered]]:
    asked, unanswered = [], []
    for number, question in enumerate(questions):
        evidence = frozenset(question["evidence"])
        near = frozenset([*question.get("near", ()), *question.get("stale", ())]) - evidence
        for wording, text in enumerate((question["q"], *question.get("also", ()))):
            key = f"{group}/{number}/{wording}"
            if evidence:
                asked.append(Asked(key, text, evidence, near))
            else:
                unanswered.append(Unanswered(key, text, near))
    return asked, unanswered
