"""The frozen values of a search over everything that is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

__all__ = ["SearchHit", "SearchKind"]

SearchKind: TypeAlias = str
"""The name of a kind of hits. Features add kinds, so no list of them is complete."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One thing that was found, of whichever `kind`.

    `id` is what other calls take: a memory's or a note's id, `conversation#index` of a turn, the
    path of a file, `document#section` of a document. `snippet` is the part of `text` that bears on
    the question, `matches` the places in it (start, end) of words that matched. `score` (0 … 1) is
    how likely it is to answer, never more than that of the hit before it in its lane; `factors` are
    those of its lane. `speaker` is who said it, `title` the path of a memory, else where it came
    from, what a file is about, what a document is called with page and headings, or the title of
    the conversation by which a turn was found; `project` where it belongs, of a turn the repository
    or folder of its session. `current` is False where something later seems to say otherwise;
    `versions` says in words what replaced it, what it replaced, when it was said again, and what
    contradicts it. `older_than` is the id of what seems to replace it, where that is one;
    `contradicts` are ids of memories with which it stands in an open contradiction. `answers` and
    `read` are those of its lane's hit.
    """

    kind: SearchKind
    id: str
    text: str
    snippet: str
    score: float
    matches: tuple[tuple[int, int], ...] = ()
    ts: datetime | None = None
    speaker: str = ""
    title: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()
    conversation_id: str = ""
    index: int | None = None
    current: bool = True
    versions: tuple[str, ...] = ()
    factors: Mapping[str, float] = field(default_factory=dict)
    answers: float | None = None
    read: float | None = None
    older_than: str = ""
    contradicts: tuple[str, ...] = ()
