"""Words and cosines on what hands wrote: `python -m corpus.task_baselines [--model NAME …]`.

Each model is an embedder as the product names it, or a folder (`docs/how-to/embedders.md`). Writes
`task_baselines.md` beside this file: of each set and language the shares that `corpus.tasks` scores
over the held-out authors' stories and all hands, and for pairs of statements labels by a threshold
on shared words or cosine, which is fitted on the other hands.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from bench.embedder import KeptEmbedder
from bench.plain import Bm25, cosines, ranked, words_of

import anaphora.registry  # noqa: F401 - registers all kinds of embedders
from corpus.reading import read_split, read_stories
from corpus.tasks import SETS, LabelScore, Score, Task, read_tasks, score_labels, score_task
from corpus.written import LABELS, Group, Label, read_groups

__all__ = ["main"]

PAGE: Final = Path(__file__).with_name("task_baselines.md")
WORDS: Final = "words"
_STEPS: Final = 40

Closeness: TypeAlias = Callable[[str, Sequence[str]], Sequence[float]]
"""How close texts are to a text, 0 to 1."""
Rows: TypeAlias = dict[tuple[str, str, str], list[Score]]
"""Scores by set, language and search."""


def main(argv: Sequence[str] | None = None) -> int:
    """Score, print the tables and write them."""
    parser = argparse.ArgumentParser(prog="python -m corpus.task_baselines", description=__doc__)
    parser.add_argument("--model", action="append", dest="models", default=[])
    parser.add_argument("--cache", type=Path, help="where vectors are kept for the next run")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the tables go")
    given = parser.parse_args(argv)
    models = {name: KeptEmbedder(name, given.cache) for name in given.models or ["minilm"]}
    rows: Rows = defaultdict(list)
    stories = read_stories(authors=read_split().held_out)
    for name in SETS:
        for task in read_tasks(name, stories):
            for search, score in _scores(task, models):
                for language in ("all", task.languages):
                    rows[name, language, search].append(score)
    closeness = {WORDS: _shared_words} | {
        name: _cosine_by(embedder) for name, embedder in models.items()
    }
    groups = read_groups()
    labelled = {name: _labelled(groups, close) for name, close in closeness.items()}
    written = _page(rows, labelled)
    print(written)
    given.page.write_text(written, "utf-8")
    return 0


def _scores(task: Task, models: dict[str, KeptEmbedder]) -> Iterator[tuple[str, Score]]:
    words = Bm25(task.statements)
    by_words = (ranked(words.scores(one.text), 0.0) for one in task.asked)
    yield WORDS, score_task(task, by_words)
    for name, embedder in models.items():
        vectors = embedder.embed(task.statements)
        asked = [embedder.embed_query(one.text) for one in task.asked]
        yield name, score_task(task, [ranked(cosines(vectors, one)) for one in asked])


def _shared_words(text: str, texts: Sequence[str]) -> list[float]:
    own = set(words_of(text))
    others = [set(words_of(one)) for one in texts]
    return [len(own & one) / max(1, len(own | one)) for one in others]


def _cosine_by(embedder: KeptEmbedder) -> Closeness:
    def cosine(text: str, texts: Sequence[str]) -> list[float]:
        return [float(one) for one in cosines(embedder.embed(texts), embedder.embed_query(text))]

    return cosine


def _labelled(groups: Sequence[Group], close: Closeness) -> LabelScore:
    """Label each hand by two thresholds, which are the best of the other hands.

    What is closest is `same`, what is close `replaces`, the rest `other`; `holds` cannot be told.
    """
    found = {id(group): close(group.older.text, _texts(group)) for group in groups}
    hands = sorted({group.hand for group in groups})
    fitted = {hand: _best([one for one in groups if one.hand != hand], found) for hand in hands}

    def judge(group: Group, _: Sequence[str]) -> list[Label]:
        return [_label(one, *fitted[group.hand]) for one in found[id(group)]]

    return score_labels(groups, judge)


def _texts(group: Group) -> list[str]:
    return [later.said.text for later in group.newer]


def _label(closeness: float, low: float, high: float) -> Label:
    if closeness >= high:
        return "same"
    return "replaces" if closeness >= low else "other"


def _best(groups: Sequence[Group], found: dict[int, Sequence[float]]) -> tuple[float, float]:
    pairs = [
        (later.label, closeness)
        for group in groups
        for later, closeness in zip(group.newer, found[id(group)], strict=True)
    ]
    steps = [step / _STEPS for step in range(_STEPS + 1)]

    def right(bounds: tuple[float, float]) -> int:
        return sum(_label(closeness, *bounds) == label for label, closeness in pairs)

    return max(((low, high) for low in steps for high in steps if low <= high), key=right)


def _page(rows: Rows, labelled: dict[str, LabelScore]) -> str:
    parts = [
        "# Baselines of what hands wrote",
        "Made by `python -m corpus.task_baselines`; [README.md](README.md#tasks) says what each"
        " share is. Questions are those over the stories of the held-out authors.",
    ]
    for name in SETS:
        kept = {key: Score.over(scores) for key, scores in rows.items() if key[0] == name}
        order = sorted(kept, key=lambda key: (key[1] != "all", key[1]))
        parts += [
            f"## {name.capitalize()}",
            _table(_SCORED, (_row(key, kept[key]) for key in order)),
        ]
    parts += [
        "## Groups",
        "Later statements labelled by a threshold on shared words or on the cosine, fitted on the"
        " other hands: precision / recall.",
        _table(
            ("search", "pairs", "right", *LABELS),
            (
                (
                    search,
                    f"{score.pairs:,}",
                    f"{score.right:.3f}",
                    *(f"{score.precision[one]:.2f} / {score.recall[one]:.2f}" for one in LABELS),
                )
                for search, score in labelled.items()
            ),
        ),
    ]
    return "\n\n".join(parts) + "\n"


_SCORED: Final = ("language", "search", "questions", "first", "in 10", "misled", "near misses")


def _row(key: tuple[str, str, str], score: Score) -> tuple[str, ...]:
    _, language, search = key
    shares = (f"{share:.3f}" for share in (score.first, score.ten, score.misled))
    return language, search, f"{score.questions:,}", *shares, f"{score.near:,}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(head), "|".join("---" for _ in head)]
    return "\n".join(f"| {line} |" for line in [*lines, *(" | ".join(row) for row in rows)])


if __name__ == "__main__":
    sys.exit(main())
