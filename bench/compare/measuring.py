"""What contestants find and what they cost, each in a process of its own.

In: chats and projects with their questions. Out: rows of scores by contestant, form of the texts,
set and category, and figures of cost by contestant. Every contestant gets the same texts with the
same ids, as they are ("plain") and as a careful user would hand them over ("prepared"); of pieces,
the best stands for its turn. Stores of what is not timed lie on a memory file system where there is
one: mem0 waits for the disk twice with each text.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from anaphora.embed.minilm import MINILM
from bench.compare.process import Child, Contestant
from bench.compare.questions import HELD_OUT, Chat, Item, cut, latest, owner, prepared
from bench.datasets import SETS, read_dataset
from bench.embedder import KeptEmbedder
from bench.metrics import ndcg_at_k, recall_at_k, reciprocal_rank
from bench.projects import ProjectHome, ProjectSet, read_project_sets, stripped
from bench.quality import ask_dataset

__all__ = ["Place", "Row", "conversations", "memories", "pieces", "project_sets", "projects"]
__all__ += ["waiting"]

ALL: Final = "all"
POOL: Final = 60
"""Results that are asked for: enough for ten turns out of pieces. The same for everyone."""
FILE_POOL: Final = 100
SLOW: Final = ("mem0", "langgraph_memory")
"""Who gets the plain form of conversations only: a question takes them hundreds of milliseconds,
and both rank by the same cosine as others do."""
OF_FILES: Final = ("bm25", "cosine", "rrf", "chroma", "lancedb", "anaphora")
WAITED: Final = ("bm25", "cosine", "rrf", "chroma", "langgraph_sqlite", "lancedb", "anaphora")
REPOSITORY: Final = "flask"
_SPACE: Final = "memories"
_RESULTS: Final = 10

Text = tuple[str, str, str]
Costs = dict[str, float]


@dataclass(frozen=True, slots=True)
class Place:
    """Where contestants run, and the folder that keeps vectors."""

    environments: Path
    cache: Path

    @property
    def shared(self) -> Path:
        """Vectors of the first 256 word pieces of each text, for everyone but Anaphora."""
        return self.cache / "shared.npz"

    def opening(self, contestant: str, folder: Path) -> dict[str, Any]:
        """What to open a contestant with, so that no known text is embedded again."""
        known = self.cache / "own" if contestant.startswith("anaphora") else self.shared
        return {"folder": str(folder), "model": str(MINILM), "known": str(known)}

    @contextmanager
    def opened(self, one: Contestant, now: str = "") -> Iterator[Child]:
        """A contestant on an empty store, with known vectors."""
        memory = Path("/dev/shm")
        where = memory if memory.is_dir() else None
        with tempfile.TemporaryDirectory(prefix="compare-", dir=where) as folder:
            home = Path(folder)
            with Child(one, self.environments, home) as child:
                child.ask("open", **self.opening(one.name, home / "store"), now=now)
                yield child


@dataclass(frozen=True, slots=True)
class Row:
    """Means over questions. `figures` are by name, `questions` how many they are of."""

    contestant: str
    form: str
    group: str
    category: str
    questions: int
    figures: Mapping[str, float]


Outcome = tuple[str, str, dict[str, float]]
"""The set, the category and the scores of one question."""


def _rows(contestant: str, form: str, outcomes: Iterable[Outcome]) -> list[Row]:
    groups: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for group, category, scores in outcomes:
        for key in ((group, ALL), (group, category), (ALL, ALL)):
            groups[key].append(scores)
    return [
        Row(
            contestant,
            form,
            *key,
            len(scores),
            {name: fmean(one[name] for one in scores) for name in scores[0]},
        )
        for key, scores in groups.items()
    ]


def _scores(ranked: Sequence[str], wanted: Collection[str]) -> dict[str, float]:
    return {
        "accuracy@1": float(any(name in wanted for name in ranked[:1])),
        "accuracy@5": float(any(name in wanted for name in ranked[:5])),
        "recall@5": recall_at_k(ranked, wanted, 5),
        "recall@10": recall_at_k(ranked, wanted, 10),
        "MRR": reciprocal_rank(ranked, wanted),
        "nDCG@10": ndcg_at_k(ranked, wanted, 10),
    }


def conversations(
    place: Place, data: Path, chats: Sequence[Chat], who: Sequence[Contestant]
) -> Iterator[Row]:
    """Every question is asked of its own chat. Anaphora gets turns with speaker and time, which is
    what its import takes; it cuts by itself."""
    for one in who:
        print(f"conversations: {one.shown}", flush=True)
        if one.name == "anaphora":
            yield from _rows(one.shown, "plain", _imported(place, data))
            continue
        for form in ("plain",) if one.name in SLOW else ("plain", "prepared"):
            outcomes: list[Outcome] = []
            with place.opened(one) as child:
                for chat in chats:
                    items = prepared(chat) if form == "prepared" else chat.items
                    child.ask("add", space=chat.space, texts=_texts(items))
                for chat, question in ((c, q) for c in chats for q in c.questions):
                    hits = child.ask("search", space=chat.space, query=question.text, k=POOL)
                    ranked = list(dict.fromkeys(map(owner, hits.result)))[:20]
                    scores = _scores(ranked, question.evidence)
                    outcomes.append((chat.form, question.category, scores))
            yield from _rows(one.shown, form, outcomes)


def _imported(place: Place, data: Path) -> Iterator[Outcome]:
    embedder = KeptEmbedder(folder=place.cache / "own")
    for form, folder in SETS:
        chats = read_dataset(data / "conversations" / folder, form)
        for asked in ask_dataset(chats, embedder, frozenset(HELD_OUT)).asked:
            yield form, asked.category, dict(asked.measures["Anaphora"])


def memories(place: Place, chats: Sequence[Chat], who: Sequence[Contestant]) -> Iterator[Row]:
    """All turns of all chats in one space, each kept as a lasting memory; compared by text: where
    the same words were said twice, either is right."""
    items = [item for chat in chats for item in chat.items]
    texts = {item.id: item.text for item in items}
    forms = {
        "plain": items,
        "prepared": [piece for chat in chats for piece in prepared(chat)],
        "plain, all of one day": [Item(item.id, item.text) for item in items],
    }
    for one in (each for each in who if each.name not in SLOW):
        for form, own in list(forms.items())[: None if one.name == "anaphora" else 2]:
            print(f"memories: {one.shown}, {form}", flush=True)
            outcomes: list[Outcome] = []
            with place.opened(one, latest(chats).isoformat()) as child:
                child.ask("add", space=_SPACE, texts=_texts(own))
                for chat, question in ((c, q) for c in chats for q in c.questions):
                    hits = child.ask("search", space=_SPACE, query=question.text, k=POOL)
                    ranked = [texts[name] for name in dict.fromkeys(map(owner, hits.result))]
                    scores = _scores(ranked, {texts[name] for name in question.evidence})
                    outcomes.append((chat.form, question.category, scores))
            yield from _rows(one.shown, form, outcomes)


def _texts(items: Iterable[Item]) -> list[Text]:
    return [(item.id, item.text, item.at) for item in items]


def project_sets(data: Path) -> list[ProjectSet]:
    """The sets that something is asked of."""
    return [project for project in read_project_sets(data / "projects") if project.questions]


def pieces(project: ProjectSet) -> Iterator[Text]:
    """(path#number, path and piece, "") of the files that can answer."""
    for path, text in project.files.items():
        if project.asks_for(path):
            for number, piece in enumerate(cut(text)):
                yield f"{path}#{number}", f"{path}\n{piece}", ""


def projects(place: Place, data: Path, who: Sequence[Contestant]) -> Iterator[Row]:
    """Which files does a task touch? Wanted files' own names are taken out of the questions.

    BM25 ranks whole files, the others pieces with their paths, and a file stands where its best
    piece does; Anaphora is `recall_context` with its defaults.
    """
    sets = project_sets(data)
    for one in (each for each in who if each.name in OF_FILES):
        print(f"projects: {one.shown}", flush=True)
        rank = _packages if one.name == "anaphora" else _pieces_ranked
        outcomes: list[Outcome] = []
        for project, question, ranked in rank(place, one, sets):
            group = "history, all" if project.kind == "history" else "issues"
            outcomes.append((group, project.repo, _scores(ranked[:10], question)))
        yield from _rows(one.shown, "", outcomes)


Ranked = Iterator[tuple[ProjectSet, frozenset[str], list[str]]]


def _packages(place: Place, one: Contestant, sets: Sequence[ProjectSet]) -> Ranked:
    embedder = KeptEmbedder(folder=place.cache / "own")
    for project in sets:
        with closing(ProjectHome(project.files, embedder)) as home:
            for question in project.questions:
                paths = filter(project.asks_for, home.ask(stripped(question)))
                yield project, question.wanted, list(paths)


def _pieces_ranked(place: Place, one: Contestant, sets: Sequence[ProjectSet]) -> Ranked:
    with place.opened(one) as child:
        for number, project in enumerate(sets):
            space = f"project-{number}"
            texts = list(pieces(project))
            if one.name == "bm25":
                whole = ((p, t) for p, t in project.files.items() if project.asks_for(p))
                texts = [(path, f"{path}\n{text}", "") for path, text in whole if text.strip()]
            child.ask("add", space=space, texts=texts)
            for question in project.questions:
                hits = child.ask("search", space=space, query=stripped(question), k=FILE_POOL)
                paths = dict.fromkeys(name.rsplit("#", 1)[0] for name in hits.result)
                yield project, question.wanted, list(paths)


def waiting(
    place: Place, data: Path, chats: Sequence[Chat], who: Sequence[Contestant]
) -> dict[str, Costs]:
    """Seconds from handing over a conversation, or the files of a project, to the first answer.

    Every text is embedded by the contestant's own process, whose model is loaded. The others keep
    and embed in one call, so that they answer when all is there.
    """
    chat = max(chats, key=lambda one: len(one.items))
    project = next(one for one in project_sets(data) if REPOSITORY in one.repo)
    files = [(path, text, "") for path, text in project.files.items()]
    costs: dict[str, Costs] = {}
    for one in (each for each in who if each.name in WAITED):
        print(f"waiting: {one.shown}", flush=True)
        ours = one.name == "anaphora"
        texts = files if ours else list(pieces(project))
        for what, name, own, question in (
            (f"{len(chat.items):,} turns", "conversations", _texts(chat.items), chat.questions[0]),
            (f"{REPOSITORY}, {len(files)} files", "project", texts, project.questions[0]),
        ):
            # Anaphora has calls of its own for either.
            child = replace(one, name=f"{one.name}_{name}") if ours else one
            for key, seconds in _waited(place, child, own, question.text).items():
                costs.setdefault(one.shown, {})[f"{what}: {key}"] = seconds
    return costs


def _waited(place: Place, one: Contestant, texts: Sequence[Text], question: str) -> Costs:
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        home = Path(folder)
        with Child(one, place.environments, home) as child:
            child.ask("open", folder=str(home / "store"), model=str(MINILM))
            if not one.name.startswith("anaphora"):
                child.ask("add", space="warm", texts=[("warm", "The model is loaded.", "")])
            began = time.perf_counter()
            child.ask("add", space=_SPACE, texts=texts)
            if not child.ask("search", space=_SPACE, query=question, k=_RESULTS).result:
                raise RuntimeError(f"{one.shown} finds nothing")
            answered = time.perf_counter() - began
            child.ask("ready")
            whole = time.perf_counter() - began
            child.ask("close")
    vectors = {} if one.name == "bm25" else {"all vectors there, s": whole}
    return {"first answer, s": answered} | vectors
