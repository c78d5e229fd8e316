"""How long a user waits for a first answer: over a conversation that is imported, over a project.

In: the longest conversation of the shared data, the files of one repository. Out: seconds by
contestant. Nothing is known beforehand: every text is embedded by the contestant's own process,
whose model is loaded. The others keep and embed in one call, so that they answer when all is there.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.compare.asked import Chat
from bench.compare.contestants import Child, Contestant
from bench.compare.projects import pieces, project_sets
from bench.compare.quality import Place
from bench.project.sets import ProjectSet

__all__ = ["WHO", "waiting"]

WHO: Final = ("bm25", "cosine", "rrf", "chroma", "langgraph_sqlite", "lancedb", "anaphora")
REPOSITORY: Final = "flask"
_SPACE: Final = "waited"

Figures = dict[str, float]
Given = list[tuple[str, str, str]]


def waiting(
    place: Place, data: Path, found: Sequence[Chat], who: Sequence[Contestant]
) -> dict[str, Figures]:
    """Figures by contestant as shown."""
    chat = max(found, key=lambda one: len(one.items))
    turns = [(item.id, item.text, item.at) for item in chat.items]
    project = next(one for one in project_sets(data) if REPOSITORY in one.repo)
    given: dict[str, Figures] = {}
    for one in who:
        if one.name not in WHO:
            continue
        print(f"waiting: {one.shown}", flush=True)
        given[one.shown] = {
            f"{len(turns):,} turns: {name}": seconds
            for name, seconds in _waited(
                place, _as(one, "conversations"), turns, chat.questions[0].text
            ).items()
        } | {
            f"{REPOSITORY}, {len(project.files)} files: {name}": seconds
            for name, seconds in _waited(
                place, _as(one, "project"), _files(one, project), project.questions[0].text
            ).items()
        }
    return given


def _as(one: Contestant, what: str) -> Contestant:
    """Anaphora has calls of its own for either; the others keep texts."""
    return replace(one, name=f"{one.name}_{what}") if one.name == "anaphora" else one


def _files(one: Contestant, project: ProjectSet) -> Given:
    if one.name == "anaphora":
        return [(path, text, "") for path, text in project.files.items()]
    return list(pieces(project))


def _waited(place: Place, one: Contestant, texts: Given, question: str) -> Mapping[str, float]:
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        home = Path(folder)
        with Child(one, place.environments, home=home) as child:
            child.ask("open", folder=str(home / "store"), model=str(place.model))
            if not one.name.startswith("anaphora"):
                child.ask("add", space="warm", texts=[("warm", "The model is loaded.", "")])
            began = time.perf_counter()
            child.ask("add", space=_SPACE, texts=texts)
            if not child.ask("search", space=_SPACE, query=question, k=10).result:
                raise RuntimeError(f"{one.shown} finds nothing")
            answered = time.perf_counter() - began
            child.ask("ready")
            whole = time.perf_counter() - began
            child.ask("close")
    vectors = {} if one.name == "bm25" else {"all vectors there, s": whole}
    return {"first answer, s": answered} | vectors
