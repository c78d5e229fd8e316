"""Runs a benchmark: import a data set into a home, ask its questions, compare with the evidence.

In: a path and a format. Out: `BenchmarkReport`; with `details`, a file with one JSON line a
question. Everything goes through `Memory`: `import_`, `ready`, `recall_conversation`.
Each ranking is asked for 20 turns with no token budget, at the time the question was asked.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import IO, Any

from anaphora.api.memory import Memory
from anaphora.core.config import load_settings
from anaphora.core.progress import Progress
from anaphora.embed.base import Embedder
from anaphora.embed.service import spec_for
from anaphora.errors import InvalidInput, UnknownFormat
from anaphora.surfaces.wire import plain
from anaphora.values.conversations import ImportProblem, Recall, TurnHit
from bench.conversations.places import WHOLE, Places
from bench.conversations.report import (
    ROWS,
    BenchmarkReport,
    Key,
    Outcome,
    latency,
    score_rows,
)
from bench.datasets import Haystack, Question, read_dataset
from bench.measuring import size_of
from bench.timed import TimedEmbedder

TOP_K = 20
# No question's evidence is to fall out for its length: the budget is another measurement.
NO_BUDGET = 10**9

# Only what has no time in the data is stamped with it.
_START = datetime(2024, 1, 1, tzinfo=UTC)


class _Clock:
    """The time at which the next question is asked."""

    def __init__(self) -> None:
        self.now = _START

    def __call__(self) -> datetime:
        return self.now


def run_benchmark(
    path: Path | str,
    format: str,  # noqa: A002 - the word that users know
    *,
    home: Path | str | None = None,
    chats: str | Iterable[int] | None = None,
    embedder: str | Embedder | None = None,
    details: Path | str | None = None,
    progress: Progress | None = None,
) -> BenchmarkReport:
    """Measure recall on a data set.

    `home` is where to import to (a temporary place, removed afterwards, if not given); `chats`
    chooses chats by number ("6-10", "1,3,5-7" or numbers); `embedder` is a name or an instance,
    by default the configured one; `progress` is called with (what, done, total).

    Raises `InvalidInput` for a format, path or selection that cannot be used, `UnknownFormat` when
    nothing at `path` is of that format, and what import and recall raise.
    """
    chosen = parse_chats(chats)
    with ExitStack() as stack:
        place = _home(home, stack)
        timed = TimedEmbedder(spec_for(embedder or load_settings(place).embedder).load())
        clock = _Clock()
        memory = stack.enter_context(
            Memory.open(
                place, conversations_dir=place / "conversations", embedder=timed, clock=clock
            )
        )
        out = stack.enter_context(Path(details).open("w", encoding="utf-8")) if details else None
        run = _Run(memory, clock, timed, out, progress)
        run.all(_chosen(read_dataset(path, format), chosen, run.problems))
        if not run.conversations:
            why = run.problems[0].reason if run.problems else "no such chat"
            raise UnknownFormat("path", str(path), f"no {format} conversation found: {why}")
        return run.report(format, size_of(place))


def _home(home: Path | str | None, stack: ExitStack) -> Path:
    if home is not None:
        return Path(home)
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="anaphora-bench-")))


def parse_chats(chats: str | Iterable[int] | None) -> Collection[int] | None:
    """The chat numbers that "6-10" or "1,3,5-7" names; None for all. Raises `InvalidInput`."""
    if chats is None:
        return None
    if not isinstance(chats, str):
        return frozenset(chats)
    numbers: set[int] = set()
    for part in chats.split(","):
        ends = [end.strip() for end in part.split("-")]
        if len(ends) > 2 or not all(end.isdecimal() for end in ends):
            raise InvalidInput("chats", chats, 'expected numbers such as "6-10" or "1,3,5-7"')
        numbers.update(range(int(ends[0]), int(ends[-1]) + 1))
    return frozenset(numbers)


def _chosen(
    found: Iterable[Haystack | ImportProblem],
    chats: Collection[int] | None,
    problems: list[ImportProblem],
) -> Iterator[Haystack]:
    for one in found:
        if isinstance(one, ImportProblem):
            problems.append(one)
        elif chats is None or one.number in chats:
            yield one


@dataclass(slots=True)
class _Run:
    """The state of a run while it goes."""

    memory: Memory
    clock: _Clock
    timed: TimedEmbedder
    details: IO[str] | None
    progress: Progress | None
    problems: list[ImportProblem] = field(default_factory=list)
    chats: int = 0
    conversations: int = 0
    turns: int = 0
    import_seconds: float = 0.0
    questions: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    unresolved: int = 0
    degraded: Counter[str] = field(default_factory=Counter)
    outcomes: dict[str, list[Outcome]] = field(default_factory=lambda: defaultdict(list))
    whole_calls: list[float] = field(default_factory=list)
    bare_calls: list[float] = field(default_factory=list)
    repeated_calls: list[float] = field(default_factory=list)

    def all(self, haystacks: Iterable[Haystack]) -> None:
        """Import and ask, one namespace after the other."""
        for namespace, members in groupby(haystacks, key=lambda haystack: haystack.namespace):
            group = list(members)
            memory = self.memory if namespace == "default" else self.memory.scoped(namespace)
            places = self._import(memory, group)
            self._ask(memory, [q for haystack in group for q in haystack.questions], places)

    def _import(self, memory: Memory, group: Sequence[Haystack]) -> Places:
        # Haystacks of one namespace hold either different conversations or the very same ones.
        several = {c.conversation_id: c for haystack in group for c in haystack.conversations}
        conversations = list(several.values())
        times = [turn.ts for c in conversations for turn in c.turns if turn.ts is not None]
        self.clock.now = max(times, default=_START)
        began = time.perf_counter()
        report = memory.import_(conversations, progress=self.progress)
        memory.ready()
        self.import_seconds += time.perf_counter() - began
        self.problems.extend(report.problems)
        self.chats += len(group)
        self.conversations += len(conversations)
        places = Places()
        for conversation in conversations:
            self.turns += places.add(memory, conversation)
        return places

    def _ask(self, memory: Memory, questions: Sequence[Question], places: Places) -> None:
        latest = self.clock.now
        # The first question of a process pays for opening the index; that is measured elsewhere.
        self._recall(memory, Question("warm up", "", None, frozenset()), "hybrid")
        for done, question in enumerate(questions, start=1):
            self.questions[question.category] += 1
            self.unresolved += question.unresolved
            relevant, lost = places.keys(question.evidence)
            self.unresolved += lost
            if relevant:
                self.clock.now = question.now or latest
                self._measure(memory, question, relevant, places)
            else:
                self.left_out[question.left_out or "evidence not in the data"] += 1
            if self.progress:
                self.progress("asking", done, len(questions))

    def _measure(
        self, memory: Memory, question: Question, relevant: frozenset[Key], places: Places
    ) -> None:
        found: dict[str, Recall[TurnHit]] = {}
        before = self.timed.query_seconds
        found["hybrid"], spent = self._recall(memory, question, "hybrid")
        self.whole_calls.append(spent)
        self.bare_calls.append(spent - (self.timed.query_seconds - before))
        self.repeated_calls.append(self._recall(memory, question, "hybrid")[1])
        for mode in ("words", "vector"):
            found[mode] = self._recall(memory, question, mode)[0]
        for mode, recall in found.items():
            places.check(recall)
            for part in recall.degraded:
                self.degraded[part.part] += 1
            ranked = _ranked(recall, relevant)
            self.outcomes[mode].append(Outcome(question.category, ranked, relevant))
        if self.details is not None:
            line = _detail(question, relevant, found, places)
            self.details.write(json.dumps(line, ensure_ascii=True) + "\n")

    def _recall(
        self, memory: Memory, question: Question, mode: Any
    ) -> tuple[Recall[TurnHit], float]:
        began = time.perf_counter()
        recall = memory.recall_conversation(
            question.conversation_id, question.text, top_k=TOP_K, budget=NO_BUDGET, mode=mode
        )
        return recall, time.perf_counter() - began

    def report(self, format: str, home_bytes: int) -> BenchmarkReport:  # noqa: A002
        """What was found so far."""
        return BenchmarkReport(
            format=format,
            embedder=self.timed.name,
            chats=self.chats,
            conversations=self.conversations,
            turns=self.turns,
            questions=dict(sorted(self.questions.items())),
            left_out=dict(sorted(self.left_out.items())),
            unresolved=self.unresolved,
            rows=score_rows({mode: self.outcomes[mode] for _, mode in ROWS}),
            recall=latency(self.whole_calls),
            recall_without_embedding=latency(self.bare_calls),
            repeated=latency(self.repeated_calls),
            texts_embedded=self.timed.texts,
            embed_seconds=self.timed.seconds,
            texts_per_second=self.timed.texts / self.timed.seconds if self.timed.seconds else 0.0,
            import_seconds=self.import_seconds,
            home_bytes=home_bytes,
            degraded=dict(self.degraded),
            problems=tuple(self.problems),
        )


def _ranked(recall: Recall[TurnHit], relevant: frozenset[Key]) -> tuple[Key, ...]:
    """The keys of the hits, best first; conversations, each once, where those are wanted."""
    whole = any(index == WHOLE for _, index in relevant)
    keys = [(hit.conversation_id, WHOLE if whole else hit.index) for hit in recall]
    return tuple(dict.fromkeys(keys))


def _detail(
    question: Question,
    relevant: frozenset[Key],
    found: Mapping[str, Recall[TurnHit]],
    places: Places,
) -> dict[str, Any]:
    return {
        "question": question.text,
        "category": question.category,
        "conversation": question.conversation_id,
        "now": plain(question.now),
        "evidence": [
            {"conversation": key[0], "index": key[1], "text": places.text(key)}
            for key in sorted(relevant)
        ],
        "rankings": {
            mode: {
                "missed": sorted(relevant - set(_ranked(recall, relevant)[:10])),
                "top": [_shown(hit, relevant) for hit in recall.hits[:10]],
            }
            for mode, recall in found.items()
        },
    }


def _shown(hit: TurnHit, relevant: frozenset[Key]) -> dict[str, Any]:
    wanted = {(hit.conversation_id, hit.index), (hit.conversation_id, WHOLE)} & relevant
    return {
        "right": bool(wanted),
        "conversation": hit.conversation_id,
        "index": hit.index,
        "speaker": hit.speaker or hit.role,
        "ts": plain(hit.ts),
        "score": round(hit.score, 4),
        "factors": {name: round(value, 4) for name, value in hit.factors.items()},
        "text": hit.text[:400],
    }
