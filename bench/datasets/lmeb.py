"""LMEB (KaLM-Embedding/LMEB, arXiv 2603.12572): data sets of memory as its embedders are measured.

In: the folder of one data set of dialogue, such as `Dialogue/LoCoMo`: `corpus.jsonl` with `{id,
title, text}`, `candidates.jsonl` with `{scene_id, candidate_doc_ids}`, and a folder a category with
`queries.jsonl` (`{id, text}`) and `qrels.tsv` (query, document, relevance); corpus and candidates
may stand in the categories' folders instead. Out: one `Haystack` a scene. A document is a turn, its
text the title and the text as LMEB joins them, and the candidates of a question are the documents
of its scene, which the first two parts of its id name.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from anaphora.ingest.bounds import BOUNDS, Bounds
from anaphora.values.conversations import ImportedConversation, ImportedTurn, ImportProblem
from bench.datasets.common import (
    Haystack,
    MessageKey,
    Question,
    json_values,
    natural,
    safe_id,
    text_of,
)

CORPUS, CANDIDATES, QUERIES, QRELS = (
    "corpus.jsonl",
    "candidates.jsonl",
    "queries.jsonl",
    "qrels.tsv",
)


def read_lmeb(path: Path, bounds: Bounds = BOUNDS) -> Iterator[Haystack | ImportProblem]:
    """The scenes of one data set's folder, numbered from 1 in the order of `candidates.jsonl`."""
    if not path.is_dir():
        yield ImportProblem(str(path), "file", f"expected a folder with {CANDIDATES} in it")
        return
    folders = sorted((p.parent for p in path.glob(f"**/{QUERIES}")), key=natural)
    tasks: dict[Path, list[Path]] = {}
    for folder in folders:
        tasks.setdefault(path if (path / CANDIDATES).is_file() else folder, []).append(folder)
    number = 0
    for root, categories in tasks.items():
        for found in _scenes(root, categories, bounds):
            if isinstance(found, ImportProblem):
                yield found
            else:
                number += 1
                yield Haystack(found.name, number, (found.conversation,), tuple(found.questions))
    if not number:
        yield ImportProblem(str(path), "directory", f"no {CANDIDATES} with {QUERIES} in it")


@dataclass(slots=True)
class _Scene:
    """The documents that the questions of one scene are asked of."""

    name: str
    conversation: ImportedConversation
    questions: list[Question] = field(default_factory=list)


def _scenes(root: Path, categories: list[Path], bounds: Bounds) -> Iterator[_Scene | ImportProblem]:
    scenes: dict[str, _Scene] = {}
    problems: list[ImportProblem] = []
    corpus_file = root / CORPUS if (root / CORPUS).is_file() else root.parent / CORPUS
    corpus = {
        str(one["id"]): f"{text_of(one, 'title')} {text_of(one, 'text')}"
        for one in _rows(corpus_file, bounds, problems)
        if "id" in one
    }
    for one in _rows(root / CANDIDATES, bounds, problems):
        name = str(one.get("scene_id", ""))
        ids = one.get("candidate_doc_ids")
        kept = [str(i) for i in ids if str(i) in corpus] if isinstance(ids, list) else []
        if name and kept:
            scenes[name] = _Scene(f"lmeb-{safe_id(name)}", _conversation(name, kept, corpus))
    for folder in categories:
        relevant = _relevant(folder / QRELS, problems)
        for query in _rows(folder / QUERIES, bounds, problems):
            asked = str(query.get("id", ""))
            scene = scenes.get("_".join(asked.split("_")[:2]))
            if scene is None:
                problems.append(ImportProblem(str(folder / QUERIES), asked, "no candidates for it"))
            else:
                scene.questions.append(
                    _question(query, folder.name, scene, relevant.get(asked, []))
                )
    yield from problems
    yield from scenes.values()


def _rows(
    file: Path, bounds: Bounds, problems: list[ImportProblem]
) -> Iterator[Mapping[str, object]]:
    for value in json_values(file, bounds):
        if isinstance(value, ImportProblem):
            problems.append(value)
        elif isinstance(value, Mapping):
            yield value


def _conversation(name: str, ids: list[str], corpus: Mapping[str, str]) -> ImportedConversation:
    kept = [one for one in ids if corpus[one].strip()]
    parents = [None, *kept[:-1]]
    return ImportedConversation(
        source="lmeb",
        key=name,
        conversation_id=safe_id(f"lmeb-{name}"),
        turns=tuple(
            ImportedTurn(one, parent, "user", corpus[one])
            for one, parent in zip(kept, parents, strict=True)
        ),
    )


def _relevant(file: Path, problems: list[ImportProblem]) -> dict[str, list[str]]:
    """The documents that answer each question; a file may begin with a line of names."""
    found: dict[str, list[str]] = {}
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.reader(lines, delimiter="\t"):
                if len(row) == 3 and row[2].strip().lstrip("-").isdecimal() and int(row[2]) > 0:
                    found.setdefault(row[0], []).append(row[1])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        problems.append(ImportProblem(str(file), "file", str(error)))
    return found


def _question(
    query: Mapping[str, object], category: str, scene: _Scene, wanted: list[str]
) -> Question:
    identity = scene.conversation.conversation_id
    known = {turn.key for turn in scene.conversation.turns}
    evidence: frozenset[MessageKey] = frozenset((identity, one) for one in wanted if one in known)
    missing = "evidence not in the data" if wanted else "no evidence given"
    return Question(
        text=text_of(query, "text").strip(),
        category=category,
        conversation_id=identity,
        evidence=evidence,
        left_out="" if evidence else missing,
        unresolved=sum(one not in known for one in wanted),
    )
