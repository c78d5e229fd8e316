"""How well contestants find evidence: in chats of their own, and in one heap of memories.

In: the contestants' processes, the chats. Out: rows of scores by contestant, data set and category.
Every contestant gets the same texts with the same ids twice: as they are ("plain"), and as a
careful user would hand them over ("prepared": long turns cut into pieces, the speaker before each).
Of pieces, the best stands for its turn. Anaphora gets turns as they are, with speaker and time,
which is what its import takes; it cuts by itself. Stores lie on a memory file system where there
is one: nothing here is timed, and mem0 waits for the disk twice with each text.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.compare.asked import Chat, Item, latest, owner, prepared
from bench.compare.contestants import Child, Contestant, Failed
from bench.conversations import run_benchmark
from bench.datasets import SETS
from bench.fit_project import Kept
from bench.metrics import ndcg_at_k, recall_at_k, reciprocal_rank

__all__ = ["POOL", "Place", "Row", "conversations", "memories", "scored", "somewhere"]

POOL = 60
"""Results that are asked for: enough for ten turns out of pieces. The same for everyone."""
FORMS = ("plain", "prepared")
ALL = "all"
_SLOW = ("mem0", "langgraph_memory")
"""Who gets the plain form of conversations only: a question takes them hundreds of milliseconds,
and both rank by the same cosine as others do."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where contestants run and what they embed with: `model` is the bundled one, in 8 bits, and
    `chroma_model` the same in 32 bits, which Chroma downloads by default. `cache` keeps vectors."""

    environments: Path
    model: Path
    cache: Path
    chroma_model: Path | None = None

    @property
    def shared(self) -> Path:
        """Vectors of the first 256 word pieces of each text, for everyone but Anaphora."""
        return self.cache / "shared.npz"

    @property
    def own(self) -> Path:
        """Anaphora's vectors: several of a long text."""
        return self.cache / "own.npz"

    def opening(self, contestant: str, folder: Path) -> dict[str, Any]:
        """What to open a contestant with, so that no known text is embedded again."""
        known = self.own if contestant == "anaphora" else self.shared
        return {"folder": str(folder), "model": str(self.model), "known": str(known)}


@dataclass(frozen=True, slots=True)
class Row:
    """Means over questions. `figures` are by name, `questions` how many they are of."""

    contestant: str
    form: str
    group: str
    category: str
    questions: int
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A ranking of one question, and what it should have found."""

    group: str
    category: str
    ranked: Sequence[str]
    wanted: Collection[str]


def conversations(
    place: Place, data: Path, found: Sequence[Chat], who: Sequence[Contestant]
) -> list[Row]:
    """Every question is asked of its own chat."""
    rows = []
    for one in who:
        if one.name == "anaphora":
            rows += _own(place, data)
            continue
        for form in FORMS[: 1 if one.name in _SLOW else None]:
            print(f"conversations: {one.shown}, {form}", flush=True)
            outcomes = _in_spaces(place, one, found, form)
            rows += _rows(one.shown, form, outcomes, _of_turns)
    return rows


def memories(place: Place, found: Sequence[Chat], who: Sequence[Contestant]) -> list[Row]:
    """All turns of all chats in one space, each kept as a lasting memory."""
    rows = []
    texts = {item.id: item.text for chat in found for item in chat.items}
    items = [item for chat in found for item in chat.items]
    undated = [Item(item.id, item.text) for item in items]
    pieces = [piece for chat in found for piece in prepared(chat)]
    for one in who:
        if one.name in _SLOW:
            continue
        forms = [("plain", items), ("prepared", pieces)]
        if one.name == "anaphora":
            forms += [("plain, all of one day", undated)]
        for form, given in forms:
            print(f"memories: {one.shown}, {form}", flush=True)
            outcomes = _in_one(place, one, found, given, texts)
            rows += _rows(one.shown, form, outcomes, _of_memories)
    return rows


def somewhere() -> tempfile.TemporaryDirectory[str]:
    """A folder that goes away, in memory where the system has such a place."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(prefix="compare-", dir=memory if memory.is_dir() else None)


def scored(outcomes: Sequence[Outcome], figures: Mapping[str, Figure]) -> dict[str, float]:
    """The mean of each figure over the outcomes."""
    return {
        name: fmean(figure(one.ranked, one.wanted) for one in outcomes)
        for name, figure in figures.items()
    }


Figure = Callable[[Sequence[str], Collection[str]], float]

_of_turns: dict[str, Figure] = {
    "recall@5": lambda ranked, wanted: recall_at_k(ranked, wanted, 5),
    "recall@10": lambda ranked, wanted: recall_at_k(ranked, wanted, 10),
    "MRR": reciprocal_rank,
    "nDCG@10": lambda ranked, wanted: ndcg_at_k(ranked, wanted, 10),
}
_of_memories: dict[str, Figure] = {
    "recall@3": lambda ranked, wanted: recall_at_k(ranked, wanted, 3),
    "recall@10": lambda ranked, wanted: recall_at_k(ranked, wanted, 10),
    "MRR": lambda ranked, wanted: reciprocal_rank(ranked[:10], wanted),
}


def _in_spaces(place: Place, one: Contestant, found: Sequence[Chat], form: str) -> list[Outcome]:
    outcomes = []
    with somewhere() as folder:
        home = Path(folder)
        with Child(one, place.environments, home=home) as child:
            child.ask("open", **place.opening(one.name, home / "store"))
            for chat in found:
                items = prepared(chat) if form == "prepared" else chat.items
                child.ask("add", space=chat.space, texts=_plain(items))
            for chat in found:
                for question in chat.questions:
                    got = child.ask("search", space=chat.space, query=question.text, k=POOL)
                    ranked = list(dict.fromkeys(map(owner, got.result)))[:20]
                    outcomes.append(
                        Outcome(chat.form, question.category, ranked, question.evidence)
                    )
    return outcomes


def _in_one(
    place: Place,
    one: Contestant,
    found: Sequence[Chat],
    items: Sequence[Item],
    texts: Mapping[str, str],
) -> list[Outcome]:
    """Compared by text: where the same words were said twice, either is right."""
    outcomes = []
    with somewhere() as folder:
        home = Path(folder)
        with Child(one, place.environments, home=home) as child:
            opening = place.opening(one.name, home / "store")
            child.ask("open", **opening, now=latest(found).isoformat())
            child.ask("add", space="memories", texts=_plain(items))
            for chat in found:
                for question in chat.questions:
                    got = child.ask("search", space="memories", query=question.text, k=POOL)
                    ranked = [texts[id] for id in dict.fromkeys(map(owner, got.result))]  # noqa: A001
                    wanted = {texts[id] for id in question.evidence}  # noqa: A001
                    outcomes.append(Outcome(chat.form, question.category, ranked, wanted))
    return outcomes


def _plain(items: Sequence[Item]) -> list[tuple[str, str, str]]:
    return [(item.id, item.text, item.at) for item in items]


def _rows(
    shown: str, form: str, outcomes: Sequence[Outcome], figures: Mapping[str, Figure]
) -> list[Row]:
    groups: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for one in outcomes:
        groups[one.group, ALL].append(one)
        groups[one.group, one.category].append(one)
        groups[ALL, ALL].append(one)
    return [
        Row(shown, form, group, category, len(some), scored(some, figures))
        for (group, category), some in groups.items()
    ]


def _own(place: Place, data: Path) -> list[Row]:
    """What `python -m bench conversations PATH --chats 6-10` reports."""
    print("conversations: Anaphora", flush=True)
    rows, both = [], []
    kept = Kept(place.own)
    for form, folder in SETS:
        report = run_benchmark(data / "conversations" / folder, form, chats="6-10", embedder=kept)
        if report.degraded:
            raise Failed(f"recall was degraded: {report.degraded}")
        full = next(row for row in report.rows if row.mode == "hybrid")
        for category, s in ((ALL, full.overall), *full.by_category.items()):
            figures = {
                "recall@5": s.recall_at_5,
                "recall@10": s.recall_at_10,
                "MRR": s.mrr,
                "nDCG@10": s.ndcg_at_10,
            }
            rows.append(Row("Anaphora", "plain", form, category, s.questions, figures))
        both.append(rows[-1 - len(full.by_category)])
    kept.keep()
    count = sum(row.questions for row in both)
    whole = {
        name: sum(row.figures[name] * row.questions for row in both) / count
        for name in both[0].figures
    }
    return [*rows, Row("Anaphora", "plain", ALL, ALL, count, whole)]
