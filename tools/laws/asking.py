"""Keeps generated homes and asks them, through the public API with the bundled model.

Each home lies in a folder of its own; the variants of one home are namespaces of it. The model is
shared, and each text is embedded once in a run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
from bench.embedder import KeptEmbedder
from bench.homes import load_reader
from tools.laws.evidence import Evidence, matched, matched_cues, without_names
from tools.laws.homes import NOW, Lane, Statement

from anaphora import Memory, MemoryHit, NewMemory, NewTurn, RecallMode, TurnHit
from anaphora.embed.minilm import MiniLM

ALL: Final = 400
"""More hits than any home has statements."""
_FINAL_MARKS: Final = " .?!。？！…"
PATIENCE: Final = 120
_SITTING: Final = timedelta(hours=12)
_CONTEXT: Final = frozenset(("currency", "unanswered"))
"""Factors that depend on the other candidates."""


class SharedEmbedder(KeptEmbedder):
    """The bundled model under its own name; a text that was embedded is not embedded again."""

    def __init__(self) -> None:
        super().__init__(MiniLM(threads=1))

    def cosine(self, question: str, text: str) -> float:
        """How close the best part of a text is to a question without its final marks."""
        rows = self.embed([text])[0]
        asked = self.embed_query(question.rstrip(_FINAL_MARKS) or question)
        # Below zero there is nothing to tell apart: unrelated is unrelated.
        return max(0.0, float(np.max(rows @ asked)))


@dataclass(frozen=True, slots=True)
class Hit:
    """One hit: the place of its statement, and how it is shown.

    `older_than` is the place of what it is marked to be older than, `previous` those of what it is
    said to replace, `again` those of statements that are shown in it. `raw` are the factors that do
    not depend on the other candidates, `answers` is the reader's probability (None: not read).
    """

    place: int
    text: str
    score: float
    current: bool
    older_than: int | None = None
    previous: frozenset[int] = frozenset()
    again: frozenset[int] = frozenset()
    raw: tuple[tuple[str, float], ...] = ()
    answers: float | None = None

    @property
    def mark(self) -> tuple[bool, int | None, frozenset[int]]:
        """What the hit says of other statements."""
        return self.current, self.older_than, self.previous


Hits = tuple[Hit, ...]


def show_hits(hits: Iterable[Hit], named: Collection[int] = (), most: int = 12) -> Iterator[str]:
    """An order with its scores and marks, for a reader; after the first ones, those `named`."""
    for rank, hit in enumerate(hits):
        if rank >= most and hit.place not in named:
            continue
        mark = "" if hit.older_than is None else f"  [older than {hit.older_than}]"
        if hit.previous:
            mark += f"  [replaces {', '.join(map(str, sorted(hit.previous)))}]"
        yield f"    {rank + 1:2}  {hit.score:.3f}  ({hit.place}) {hit.text}{mark}"


@dataclass(slots=True)
class Told:
    """Statements as one namespace keeps them, in one lane; `read` of its hits are read."""

    memory: Memory
    lane: Lane
    statements: tuple[Statement, ...]
    read: int = 0
    places: dict[Hashable, int] = field(default_factory=dict)
    restated: dict[int, int] = field(default_factory=dict)
    redacted: dict[int, str] = field(default_factory=dict)

    def ask(
        self, question: str, *, top_k: int = ALL, mode: RecallMode = "hybrid", own: bool = False
    ) -> Hits:
        """The hits of a question, with no floor. `own` leaves out what is `foreign`."""
        if self.lane == "memories":
            filters = {"tags": {"contains": "own"}} if own else None
            return self._memories(question, top_k, mode, filters)
        since = min(s.at for s in self.statements if s.act != "foreign") if own else None
        found = self.memory.recall_conversation(
            None,
            question,
            top_k=top_k,
            budget=10**7,
            mode=mode,
            min_confidence=0.0,
            since=since,
            read=self.read,
        )
        return tuple(map(self._turn, found))

    def ask_filtered(self, question: str, tag: str) -> Hits:
        """The hits among memories that have a tag ("own" or "any")."""
        return self._memories(question, ALL, "hybrid", {"tags": {"contains": tag}})

    def _memories(
        self, question: str, top_k: int, mode: RecallMode, filters: dict[str, Any] | None
    ) -> Hits:
        found = self.memory.recall(
            question, top_k=top_k, mode=mode, min_confidence=0.0, filters=filters, read=self.read
        )
        return tuple(map(self._record, found))

    def _record(self, hit: MemoryHit) -> Hit:
        older = hit.older_than
        return Hit(
            self.places[hit.id],
            hit.text,
            hit.score,
            hit.current,
            None if older is None else self.places[older.id],
            frozenset(self.places[other.id] for other in hit.previous),
            frozenset(self.places[other] for other in hit.same_as),
            _raw({**hit.factors, "similarity": hit.similarity, "decay": hit.decay}),
            hit.answers,
        )

    def _turn(self, hit: TurnHit) -> Hit:
        older = hit.older_than
        return Hit(
            self.places[hit.conversation_id, hit.index],
            hit.text,
            hit.score,
            hit.current,
            None if older is None else self.places[older.conversation_id, older.index],
            frozenset(self.places[one.conversation_id, one.index] for one in hit.previous),
            frozenset(self.places[one.conversation_id, one.index] for one in hit.occurrences),
            _raw(hit.factors),
            hit.answers,
        )


def _raw(factors: dict[str, float] | Any) -> tuple[tuple[str, float], ...]:
    return tuple(sorted((n, round(v, 6)) for n, v in factors.items() if n not in _CONTEXT))


class Asker:
    """Opens homes one after the other with one model; a reader reads `read` hits, 0 none."""

    def __init__(self, embedder: SharedEmbedder | None = None, *, read: int = 0) -> None:
        self.embedder = embedder or SharedEmbedder()
        self.read = read
        self._memory: Memory | None = None
        self._count = 0

    @contextmanager
    def opened(self) -> Iterator[Path]:
        """A new home, in a folder of its own that is removed afterwards."""
        root = Path(tempfile.mkdtemp(prefix="anaphora-laws-", dir=quick_folder()))
        try:
            with Memory.open(
                root / "home", embedder=self.embedder, clock=lambda: NOW, warm=False
            ) as memory:
                self._memory = memory
                yield root / "home"
        finally:
            self._memory = None
            shutil.rmtree(root, ignore_errors=True)

    def tell(
        self, lane: Lane, statements: Sequence[Statement], namespace: str | None = None
    ) -> Told:
        """Keep statements in a namespace of their own, in their order."""
        assert self._memory is not None
        self._count += 1
        view = self._memory.scoped(namespace or f"n{self._count}")
        told = Told(view, lane, tuple(statements), self.read)
        tell_statements(told)
        load_reader(view, self.read)
        assert view.ready(PATIENCE)
        return told

    def evidence(self, told: Told, question: str, place: int) -> Evidence:
        """What speaks for one statement."""
        statement = told.statements[place]
        said = _with_speaker(statement) if told.lane == "memories" else statement.text
        text = told.redacted.get(place, said)
        strict, loose = matched(question, text)
        unnamed = without_names(question, (other.speaker for other in told.statements))
        return Evidence(
            strict,
            loose,
            self.embedder.cosine(question, text),
            told.restated.get(place, 0),
            # What was said again counts as if it were told now.
            NOW if place in told.restated else statement.at,
            statement.speaker,
            matched_cues(question, text),
            self.embedder.cosine(unnamed, text),
        )


def tell_statements(told: Told) -> None:
    """Keep the statements of `told`, and note the places of what was kept."""
    if told.lane == "memories":
        _remember(told)
    else:
        _say(told)


def _remember(told: Told) -> None:
    new = [
        NewMemory(
            _with_speaker(statement),
            created_at=statement.at,
            path=statement.path,
            tags=("any",) if statement.act == "foreign" else ("any", "own"),
        )
        for statement in told.statements
    ]
    for place, done in enumerate(told.memory.remember_many(new)):
        first = told.places.setdefault(done.id, place)
        if done.redacted:
            told.redacted[place] = told.memory.get(done.id).text
        if first != place:
            told.restated[first] = told.restated.get(first, 0) + 1


def _with_speaker(statement: Statement) -> str:
    return f"{statement.speaker}: {statement.text}" if statement.speaker else statement.text


def _say(told: Told) -> None:
    """Each statement of its own conversation is in one with others that are half a day away.

    Nothing is beside it in the same sitting, and a file for each would take most of the time.
    """
    threads: dict[str, list[tuple[int, NewTurn]]] = {}
    alone: list[tuple[str, datetime]] = []
    for place, statement in enumerate(told.statements):
        name = statement.conversation
        if not name:
            at = statement.at
            fitting = (n for n, (_, last) in enumerate(alone) if last + _SITTING <= at)
            number = next(fitting, len(alone))
            name = f"alone-{number}"
            alone[number : number + 1] = [(name, at)]
        turn = NewTurn("user", statement.text, ts=statement.at, speaker=statement.speaker)
        threads.setdefault(name, []).append((place, turn))
    for name, turns in threads.items():
        told.memory.conversations.extend(name, [turn for _, turn in turns])
        for index, (place, _) in enumerate(turns):
            told.places[name, index] = place


def quick_folder() -> Path | None:
    """A folder in memory, where the machine has one: writing to a disk would take longest."""
    folder = Path("/dev/shm")
    return folder if folder.is_dir() and os.access(folder, os.W_OK) else None
