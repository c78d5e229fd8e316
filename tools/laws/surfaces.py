"""Law 8: the search over everything and a reopened home give the same first hit and marks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tools.laws.homes import NOW, Lane
from tools.laws.trial import Trial, law

from anaphora import Memory

SHOWN: Final = 6
"""Hits whose marks are compared."""
_KINDS: Final[Mapping[Lane, str]] = {"memories": "memory", "turns": "turn"}


@dataclass(frozen=True, slots=True)
class Shown:
    """A hit as a surface shows it: its id, and whether it is marked as older than another one."""

    id: str
    current: bool


Answer = tuple[Shown, ...]


@law(
    "the search over everything and a reopened home give the same first hit and marks",
    "surfaces-search",
    "surfaces-reopened",
    kinds=("plain", "changes"),
)
def check_here(trial: Trial) -> None:
    """The search over everything, and a second opening of the home."""
    told = trial.told
    for question in trial.questions():
        expected = ask_facade(told.memory, trial.lane, question.text)
        searched = ask_search(told.memory, trial.lane, question.text)
        _compare(trial, "surfaces-search", question.text, expected, searched)
        with Memory.open(
            told.memory.home,
            namespace=told.memory.namespace,
            embedder=trial.asker.embedder,
            clock=lambda: NOW,
            warm=False,
        ) as again:
            reopened = ask_facade(again, trial.lane, question.text)
        _compare(trial, "surfaces-reopened", question.text, expected, reopened)


def ask_facade(memory: Memory, lane: Lane, question: str) -> Answer:
    """The lane's own answer."""
    if lane == "memories":
        hits = memory.recall(question, top_k=SHOWN, min_confidence=0.0)
        return tuple(Shown(hit.id, hit.current) for hit in hits)
    turns = memory.recall_conversation(
        None, question, top_k=SHOWN, budget=10**6, min_confidence=0.0
    )
    return tuple(Shown(f"{hit.conversation_id}#{hit.index}", hit.current) for hit in turns)


def ask_search(memory: Memory, lane: Lane, question: str) -> Answer:
    """The search over everything, which has only this lane to search."""
    found = memory.search(question, top_k=SHOWN, budget=10**6, min_confidence=0.0)
    return tuple(Shown(hit.id, hit.current) for hit in found if hit.kind == _KINDS[lane])


def _compare(trial: Trial, name: str, question: str, expected: Answer, answer: Answer) -> None:
    marks = {hit.id: hit.current for hit in expected}
    reason = ""
    if [hit.id for hit in expected[:1]] != [hit.id for hit in answer[:1]]:
        reason = f"the first hit is {answer[:1]}, and not {expected[:1]}"
    elif differing := [hit for hit in answer if marks.get(hit.id, hit.current) != hit.current]:
        reason = f"other marks: {differing}"
    trial.judge(name, question, reason)
