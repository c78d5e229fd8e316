"""`python -m bench.compare`: Anaphora beside other products, on the same data, in one run.

In: the folder of shared data, a folder of virtual environments (`--prepare` makes them). Out:
bench/results/compare.md and .json. With `--only`, the parts that are not run are taken from the
last results. Everything runs without a network but `--prepare`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from anaphora.embed.minilm import MINILM
from bench.compare.asked import Chat, chats, prepared
from bench.compare.behaviours import behaviours
from bench.compare.contestants import CONTESTANTS, PRODUCTS, installed, prepare, versions
from bench.compare.projects import pieces, project_sets, projects
from bench.compare.quality import Place, Row, conversations, memories
from bench.compare.report import Measured, as_json, as_markdown
from bench.compare.speed import speed
from bench.compare.vectors import Vectors
from bench.compare.waiting import waiting
from bench.figures import RESULTS, machine, write
from bench.project.sets import stripped

PARTS = ("conversations", "memories", "projects", "speed", "waiting", "behaviours")


def main() -> None:
    """Read the arguments; prepare or run."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare")
    parser.add_argument("--prepare", type=Path, metavar="DIR", help="make the environments there")
    parser.add_argument("--data", type=Path, help="the folder of shared data")
    parser.add_argument("--environments", type=Path, help="what --prepare made")
    parser.add_argument("--cache", type=Path, help="keeps vectors from one run to the next")
    parser.add_argument("--chroma-model", type=Path, help="a folder with its 32-bit default model")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--who", nargs="+", choices=[one.name for one in CONTESTANTS])
    parser.add_argument("--texts", type=int, help="speed over so many texts, to try it out")
    chosen = parser.parse_args()
    if chosen.prepare is not None:
        prepare(chosen.prepare)
        return
    if None in (chosen.data, chosen.environments, chosen.cache):
        parser.error("--data, --environments and --cache are needed")
    chosen.cache.mkdir(parents=True, exist_ok=True)
    place = Place(chosen.environments, MINILM, chosen.cache, chosen.chroma_model)
    run(place, chosen.data, chosen.only, chosen.who or (), chosen.texts)


def run(
    place: Place,
    data: Path,
    only: Sequence[str],
    names: Sequence[str] = (),
    most: int | None = None,
) -> None:
    """Measure the parts, and write the report after each, so that an interrupted run leaves what
    it has."""
    began = time.perf_counter()
    found = _before()
    who = [one for one in installed(place.environments) if not names or one.name in names]
    found.missing = [one.shown for one in CONTESTANTS if one not in installed(place.environments)]
    found.versions |= {one.shown: versions(one, place.environments) for one in who}
    shown = [one.shown for one in CONTESTANTS]
    found.versions = {name: found.versions[name] for name in shown if name in found.versions}
    heard = chats(data)
    _embed(place, data, heard, only)
    before = found.seconds if set(only) != set(PARTS) else 0.0
    for part in PARTS:
        if part not in only:
            continue
        if part == "conversations":
            found.conversations = _joined(
                found.conversations, conversations(place, data, heard, who)
            )
        elif part == "memories":
            found.memories = _joined(found.memories, memories(place, heard, who))
        elif part == "projects":
            found.projects = _joined(found.projects, projects(place, data, who))
        elif part == "speed":
            found.speed |= speed(place, heard, who, most)
        elif part == "waiting":
            found.waiting |= waiting(place, data, heard, who)
        else:
            found.behaviours |= behaviours(place, [one for one in who if one.name in PRODUCTS])
        found.ran_on, found.seconds = machine(), before + time.perf_counter() - began
        write("compare", json.dumps(as_json(found), indent=1), as_markdown(found))


def _embed(place: Place, data: Path, heard: Sequence[Chat], only: Sequence[str]) -> None:
    """Vectors of everything that the chosen parts need, once."""
    texts = [question.text for chat in heard for question in chat.questions]
    texts += [item.text for chat in heard for item in chat.items]
    if {"conversations", "memories"} & set(only):
        texts += [item.text for chat in heard for item in prepared(chat)]
    if "projects" in only:
        sets = project_sets(data)
        texts += [stripped(question) for one in sets for question in one.questions]
        texts += [text for one in sets for _, text, _ in pieces(one)]
    Vectors(place.model, place.shared).keep(texts)


def _before() -> Measured:
    """The last results, to which this run's are added."""
    place = RESULTS / "compare.json"
    if not place.is_file():
        return Measured()
    value = json.loads(place.read_text("utf-8"))
    known = {one.name: value[one.name] for one in fields(Measured) if one.name in value}
    for part in ("conversations", "memories", "projects"):
        known[part] = [Row(**row) for row in known.get(part, [])]
    return Measured(**known)


def _joined(old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """The new rows, and the old ones of contestants that have no new one."""
    fresh = {row.contestant for row in new}
    return [*(row for row in old if row.contestant not in fresh), *new]


if __name__ == "__main__":
    main()
