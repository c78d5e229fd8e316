"""Read what may be trained on, write examples: `python -m tools.reader prepare --data FOLDER`.

In: the corpus's authors that are trained on, its pairs and `changes`; with --data the public sets
(`FOLDER/reading`) and the first half of `FOLDER/changes/dev.json`. Out: `answers.jsonl` (a question
with judged statements), `changes.jsonl` (an earlier and a later statement) and `prepared.json`,
which counts them. What models are measured on is never read here.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from bench.embedder import KeptEmbedder
from tools.models.examples import write_lines
from tools.models.prepare import CORPUS, names_of, trained_authors
from tools.models.stories import raw_stories
from tools.reader.examples import (
    ANSWERS_FILE,
    CHANGES_FILE,
    ChangeExample,
    read_answers,
    read_changes,
)
from tools.reader.mining import answer_examples
from tools.reader.pairs import story_pairs, written_pairs
from tools.reader.sources import (
    changes_statements,
    chat_statements,
    corpus_statements,
    pair_statements,
    public_statements,
)
from tools.reader.statements import Statements

from anaphora.embed.hashing import WordHashingEmbedder
from anaphora.embed.minilm import MiniLM

OUT = Path(__file__).resolve().parents[2] / ".models" / "reader"


def main(words: list[str]) -> None:
    """Write the examples that the command line asks for."""
    chosen = _arguments().parse_args(words)
    authors = trained_authors(chosen.corpus, chosen.leave_out)
    if chosen.only:
        authors &= chosen.only
    vectors = KeptEmbedder(WordHashingEmbedder() if chosen.hashing else MiniLM())
    candidates = json.loads(chosen.candidates.read_text("utf-8")) if chosen.candidates else None
    pools = chain.from_iterable(
        read for source, read in _sources(chosen, authors) if source not in chosen.without
    )
    write_lines(chosen.out / ANSWERS_FILE, answer_examples(pools, vectors, candidates))
    write_lines(chosen.out / CHANGES_FILE, _pairs(chosen, authors, vectors))
    about = {
        "python": platform.python_version(),
        "authors": sorted(authors),
        "without": sorted(chosen.without),
        "dated": chosen.dated,
        "seed": chosen.seed,
        **_counted(chosen.out),
    }
    (chosen.out / "prepared.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    print(json.dumps(about, indent=1))


def _sources(
    chosen: argparse.Namespace, authors: frozenset[str]
) -> Iterator[tuple[str, Iterator[Statements]]]:
    yield "corpus", corpus_statements(chosen.corpus, authors, dated=chosen.dated)
    yield "pairs", pair_statements(chosen.corpus)
    yield "chats", chat_statements(chosen.corpus, dated=chosen.dated)
    if chosen.data is not None:
        changes = chosen.data / "changes" / "dev.json"
        yield "changes", changes_statements(changes, 0, dated=chosen.dated)
        public = public_statements(chosen.data / "reading")
        yield "public", (pool for pool in public if pool.source not in chosen.without)


def _pairs(
    chosen: argparse.Namespace, authors: frozenset[str], vectors: KeptEmbedder
) -> Iterator[ChangeExample]:
    if "corpus" not in chosen.without:
        for author, story in raw_stories(chosen.corpus, authors):
            yield from story_pairs(
                story, "corpus", author, vectors, seed=chosen.seed, dated=chosen.dated
            )
    if "written" not in chosen.without:
        yield from written_pairs(chosen.corpus / "changes")


def _counted(folder: Path) -> dict[str, Any]:
    questions: Counter[str] = Counter()
    statements: Counter[str] = Counter()
    for one in read_answers(folder):
        questions[f"{one.source} {one.lane}{'' if one.answers else ' never said'}"] += 1
        for name in ("answers", "about", "others", "unclear"):
            statements[name] += len(getattr(one, name))
    verdicts = Counter(f"{p.source} {p.verdict}" for p in read_changes(folder))
    return {"questions": dict(questions), "statements": dict(statements), "pairs": dict(verdicts)}


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.reader prepare", description=__doc__)
    add = parser.add_argument
    none: frozenset[str] = frozenset()
    add("--data", type=Path, help="folder of the public sets, by default none")
    add("--corpus", type=Path, default=CORPUS, help="folder of the corpus")
    add("--out", type=Path, default=OUT, help="where to write")
    add("--leave-out", type=names_of, default=none, metavar="a01,b03", help="authors")
    add(
        "--only",
        type=names_of,
        default=none,
        metavar="a01",
        help="of the trained authors only these",
    )
    add(
        "--without",
        type=names_of,
        default=none,
        metavar="pairs,selqa",
        help="sources: corpus, pairs, chats (corpus/chats and silent), written (corpus/changes), "
        "changes, public (friendsqa, selqa, molweni)",
    )
    add("--dated", action="store_true", help="put the day before a story's statements")
    add("--candidates", type=Path, help="what `tools.models candidates` wrote")
    add("--hashing", action="store_true", help="find what misleads by words, without the model")
    add("--seed", type=int, default=1)
    return parser
