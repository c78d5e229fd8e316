"""Read what may be trained on, and write examples: `python -m tools.models prepare --data FOLDER`.

In: the public sets (`FOLDER/reading`) and stories in which values change
(`FOLDER/changes/dev.json`), where such a folder is named; the corpus; code and documentation of
this interpreter. Out: `examples.jsonl`, and beside it `prepared.json` with what is in it. What
models are measured on is never read here.
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
from tools.models.asked import Pool
from tools.models.chats import read_chats, read_silent
from tools.models.code_texts import read_code, read_documents
from tools.models.examples import read_examples, write_lines
from tools.models.negatives import make_examples
from tools.models.pairs import read_pairs
from tools.models.passages import WORDS
from tools.models.public import read_public
from tools.models.stories import (
    authors_of,
    joined,
    read_corpus,
    read_split,
    read_stories,
    told_twice,
)
from tools.models.written import read_asked, read_past, read_replies, read_statements

from anaphora.embed.bundled import Bundled
from anaphora.embed.minilm import MiniLM

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / ".models"
CORPUS = ROOT / "corpus"


def main(words: list[str]) -> None:
    """Write the examples that the command line asks for."""
    chosen = _arguments().parse_args(words)
    authors = trained_authors(chosen.corpus, chosen.leave_out)
    pools = chain.from_iterable(
        read for source, read in _sources(chosen, authors) if source not in chosen.without
    )
    candidates = json.loads(chosen.candidates.read_text("utf-8")) if chosen.candidates else None
    target = chosen.out / "examples.jsonl"
    # The same passages are asked for in several lanes and languages.
    read, others = (KeptEmbedder(model, chosen.out / "vectors") for model in (MiniLM(), Bundled()))
    count = write_lines(target, make_examples(pools, read, candidates, others=others))
    about = {
        "python": platform.python_version(),
        "authors": sorted(authors),
        "without": sorted(chosen.without),
        "examples": count,
        **_counted(target),
    }
    (chosen.out / "prepared.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    print(json.dumps(about, indent=1))


def trained_authors(corpus: Path, left_out: frozenset[str]) -> frozenset[str]:
    """The authors that the split trains on, but those left out.

    Raises SystemExit for a name that is no author's: a slip there would train on them.
    """
    if unknown := left_out - frozenset(authors_of(corpus)):
        raise SystemExit(f"{corpus} has no author {', '.join(sorted(unknown))}")
    train, _ = read_split(corpus)
    return train - left_out


def _sources(
    chosen: argparse.Namespace, authors: frozenset[str]
) -> Iterator[tuple[str, Iterator[Pool]]]:
    yield "corpus", read_corpus(chosen.corpus, authors, WORDS)
    lanes = _lanes(read_corpus(chosen.corpus, authors, WORDS))
    yield "told", (told_twice(of_turns, of_facts) for of_turns, of_facts in lanes)
    lanes = _lanes(read_corpus(chosen.corpus, authors, WORDS))
    yield "long", (joined(of_turns) for of_turns, _ in lanes)
    yield "pairs", read_pairs(chosen.corpus / "pairs")
    yield "chats", (chat.pool for chat in read_chats(chosen.corpus / "chats", WORDS))
    yield "silent", (chat.pool for chat in read_silent(chosen.corpus / "silent"))
    yield "asked", read_asked(chosen.corpus, authors, WORDS)
    yield "exchanges", read_replies(chosen.corpus / "exchanges")
    yield "past", read_past(chosen.corpus / "past")
    yield "groups", read_statements(chosen.corpus / "groups")
    if chosen.data is not None:
        # `bench.changes` measures on every other story.
        file = chosen.data / "changes" / "dev.json"
        yield "changes", read_stories(file, "changes", WORDS, step=2)
        public = read_public(chosen.data / "reading", WORDS)
        yield "public", (pool for pool in public if pool.source not in chosen.without)
    yield "code", read_code(held_out=False, limit=chosen.code)
    yield "documents", read_documents(held_out=False, limit=chosen.documents)


def _lanes(pools: Iterator[Pool]) -> Iterator[tuple[Pool, Pool]]:
    """Each story's turns and its facts, which come one after the other."""
    return zip(pools, pools, strict=True)


def _counted(examples: Path) -> dict[str, Any]:
    sources: Counter[str] = Counter()
    lanes: Counter[str] = Counter()
    styles: Counter[str] = Counter()
    for example in read_examples(examples):
        sources[example.source] += 1
        lanes[f"{example.source} {example.lane}"] += 1
        styles.update(style for style, _ in example.queries)
    return {"sources": dict(sources), "lanes": dict(lanes), "styles": dict(styles)}


def names_of(text: str) -> frozenset[str]:
    """The names of an option, with commas between them."""
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.models prepare", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the public sets, by default none")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="folder of the corpus")
    parser.add_argument("--out", type=Path, default=OUT, help="where to write")
    parser.add_argument(
        "--leave-out", type=names_of, default=frozenset(), metavar="a04,b03", help="authors"
    )
    parser.add_argument(
        "--without",
        type=names_of,
        default=frozenset(),
        metavar="code,selqa",
        help="sources: corpus, told, long, pairs, chats, silent, asked, exchanges, past, groups, "
        "changes, public (friendsqa, "
        "selqa, molweni), code, documents",
    )
    parser.add_argument("--code", type=int, default=2500, help="functions at most")
    parser.add_argument("--documents", type=int, default=1200, help="sections at most")
    parser.add_argument(
        "--candidates", type=Path, help="JSON of passages that the product brought, by question"
    )
    return parser
