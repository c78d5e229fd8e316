"""What models are measured on, as pools: sets to choose by, and sets that only report.

`choose` REALTALK and BEAM 1 to 5; `report` REALTALK and BEAM 6 to 10, the stories of the
shared data and the corpus's authors that are held out; `kept` code and documentation that was left
out of training, which tells what was unlearned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.datasets import SETS, haystacks
from tools.models.asked import Asked, Pool
from tools.models.code_texts import read_code, read_documents
from tools.models.passages import Turn, form_passages, meaning_of, speakers_of
from tools.models.stories import authors_of, read_corpus, read_split, read_stories
from tools.models.written import read_asked

CHOSEN_BY = range(1, 6)
_PROBES = 400


@dataclass(frozen=True, slots=True)
class MeasuredSet:
    """Pools under one name. `role`: choose, report or kept."""

    name: str
    role: str
    read: Callable[[], Iterator[Pool]]


def measured_sets(data: Path | None, corpus: Path, form: str) -> list[MeasuredSet]:
    """All sets, in the order of the table; without `data` those that need none of it."""
    told = MeasuredSet("corpus", "report", lambda: read_corpus(corpus, _held_out(corpus), form))
    sets = [told] if data is None else [*_of_data(data, told, form)]
    if (corpus / "questions").is_dir():
        asked = MeasuredSet("asked", "report", lambda: read_asked(corpus, _held_out(corpus), form))
        sets.append(asked)
    return [
        *sets,
        MeasuredSet("code", "kept", lambda: _merged(read_code(True, limit=_PROBES))),
        MeasuredSet("documents", "kept", lambda: _merged(read_documents(True, limit=_PROBES))),
    ]


def _of_data(data: Path, told: MeasuredSet, form: str) -> Iterator[MeasuredSet]:
    yield MeasuredSet("stories A", "report", lambda: stories_a(data, form))
    yield told
    for name, _ in SETS:
        for role, chats in (("choose", "1 to 5"), ("report", "6 to 10")):
            yield MeasuredSet(f"{name} {chats}", role, _chats(data, name, role, form))


def stories_a(data: Path, form: str) -> Iterator[Pool]:
    """The stories that are in no training and no choice."""
    return read_stories(data / "stories" / "stories.json", "stories A", form)


def _held_out(corpus: Path) -> frozenset[str]:
    return read_split(corpus)[1] & frozenset(authors_of(corpus))


def _chats(data: Path, name: str, role: str, form: str) -> Callable[[], Iterator[Pool]]:
    def read() -> Iterator[Pool]:
        for _, chat in haystacks(data, name):
            if (chat.number in CHOSEN_BY) != (role == "choose"):
                continue
            (conversation,) = chat.conversations
            row = {turn.key: place for place, turn in enumerate(conversation.turns)}
            turns = [Turn(turn.speaker, turn.text) for turn in conversation.turns]
            speakers = speakers_of(turns)
            group = f"{name}/{chat.number}"
            asked = [
                Asked(
                    f"{group}/{number}",
                    question.text,
                    frozenset(row[key] for _, key in question.evidence),
                    meant=meaning_of(question.text, speakers),
                )
                for number, question in enumerate(chat.questions)
                if question.evidence
            ]
            yield Pool(name, "turns", group, form_passages(turns, form), asked)

    return read


def _merged(pools: Iterator[Pool]) -> Iterator[Pool]:
    """One pool of many: a module's own functions alone would be too easy to tell apart."""
    passages: list[str] = []
    asked: list[Asked] = []
    source = lane = ""
    for pool in pools:
        first, source, lane = len(passages), pool.source, pool.lane
        passages += pool.passages
        for one in pool.asked:
            right = frozenset(first + place for place in one.positives | one.neutral)
            asked.append(Asked(one.key, one.query, right))
    yield Pool(source, lane, source, passages, asked)
