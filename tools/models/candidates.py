"""What the product itself brings for the stories' questions: `python -m tools.models candidates`.

In: the corpus's authors that are trained on, and with --data stories in which values change. Out:
`candidates.json`, the passages by question, the best first, for `prepare --candidates`: what stands
high there without being evidence misleads the whole product, and not the cosine alone. Each story
is told to a home of its own, as chats and as facts. Stories that the file has are not asked again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.changes import CHATS, FACTS, told_both_ways
from tools.models.passages import WORDS, Turn, form_passages
from tools.models.prepare import CORPUS, OUT, trained_authors
from tools.models.stories import group_of, raw_stories


def main(words: list[str]) -> None:
    """Ask, and write after every story."""
    chosen = _arguments().parse_args(words)
    found: dict[str, list[str]] = {}
    if chosen.out.is_file():
        found = json.loads(chosen.out.read_text("utf-8"))
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    known = {key.rsplit("/", 2)[0] for key in found}
    for group, story in _stories(chosen):
        if group in known:
            continue
        found |= brought(group, story)
        chosen.out.write_text(json.dumps(found, ensure_ascii=False), "utf-8")
        print(f"{group}: {len(found)} questions", flush=True)


def brought(group: str, story: Mapping[str, Any]) -> dict[str, list[str]]:
    """The passages that recall brings for each question of a story, by the question's key."""
    said = [turn for session in story["sessions"] for turn in session["turns"]]
    turns = [Turn(turn.get("speaker"), turn["text"]) for turn in said]
    passages = dict(zip((turn.text for turn in turns), form_passages(turns, WORDS), strict=True))
    found = {}
    with (
        tempfile.TemporaryDirectory(prefix="anaphora-candidates-") as home,
        told_both_ways(Path(home) / "home", dict(story)) as ways,
    ):
        for number, question in enumerate(story["questions"]):
            if question["kind"] == "absent":
                continue
            in_turns = [passages[text] for text, _ in ways[CHATS](question) if text in passages]
            found[f"{group}/{number}/t"] = in_turns
            found[f"{group}/{number}/f"] = [text for text, _ in ways[FACTS](question)]
    return found


def _stories(chosen: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    authors = trained_authors(chosen.corpus, frozenset())
    for author, story in raw_stories(chosen.corpus, authors):
        yield group_of("corpus", author, story), story
    if chosen.data is None:
        return
    for story in json.loads((chosen.data / "changes" / "dev.json").read_text("utf-8")):
        yield group_of("changes", "", story), story


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.models candidates", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, help="folder of the public sets, by default none")
    add("--corpus", type=Path, default=CORPUS, help="folder of the corpus")
    add("--out", type=Path, default=OUT / "candidates.json", help="where to write")
    return parser
