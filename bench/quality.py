"""How well recall finds what answers a question, beside BM25 and bare cosine.

    python -m bench.quality --data DIR [--cache DIR]
    python -m bench.quality --format locomo --path FILE [--chats 6-10] [--embedder NAME]

The first asks REALTALK and BEAM-100K, each question of its own chat, and stories that are told as
turns and as facts; what is written to bench/results/quality.json and .md is by set, chats 6 to 10
beside all chats (weights were fitted on 1 to 5). The second prints one data set, which is a file
or a folder: realtalk, locomo, beam or longmemeval. `--cache` keeps vectors for the next run.

BM25 (of the product's words, without endings and stop words) and cosine rank the same texts by
themselves; Anaphora is asked for 100 hits without a budget and never stays silent.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from json import dumps
from pathlib import Path
from statistics import fmean
from typing import Final

from anaphora import Memory
from anaphora.embed.base import Embedder
from anaphora.errors import InvalidInput, UnknownFormat
from anaphora.language.analyser import analyse, query_terms
from bench.datasets import SETS, Haystack, read_dataset
from bench.embedder import KeptEmbedder
from bench.figures import Figure, at_least, machine_and_day, show, write
from bench.metrics import ndcg_at_k, recall_at_k, reciprocal_rank
from bench.plain import Bm25, cosines, ranked
from bench.scopes import DEPTH, Key, Question, Scope, chat_scopes, story_scopes
from bench.told import Clock

METHODS: Final = ("BM25", "cosine", "Anaphora")
MEASURES: Final = ("first", "first 3", "first 10", "recall@5", "recall@10", "MRR", "nDCG@10")
MACRO: Final = "recall@10, each category the same"
ROUNDS: Final = "recall@10 by round"
WITH_ABSTENTION: Final = "recall@10 by round, abstention as 1.0"
HELD_OUT: Final = "6-10"
TARGETS: Final = {"REALTALK, chats 6-10": 0.56, "BEAM-100K, chats 6-10": 0.55}
TITLES: Final = {"realtalk": "REALTALK", "beam": "BEAM-100K"}
STORIES: Final = {
    "changes": "stories in which facts change",
    "stories": "questions in other words",
    "everyday": "everyday facts in five languages",
}
# Categories of BEAM whose questions without evidence Ogham counts as found.
_WORTH_ONE: Final = ("abstention", "summarization")

Ranking = Sequence[AbstractSet[Key]]


@dataclass(frozen=True, slots=True)
class Asked:
    """The measures of one question: those of messages by method, and recall@10 by round."""

    number: int
    category: str
    measures: Mapping[str, Mapping[str, float]]
    by_round: Mapping[str, float]


@dataclass(slots=True)
class Outcome:
    """All questions of a set, and how many nothing answers, by category."""

    asked: list[Asked] = field(default_factory=list)
    unanswered: list[tuple[int, str, int]] = field(default_factory=list)

    def of(self, chats: AbstractSet[int]) -> Outcome:
        """The part of some chats."""
        return Outcome(
            [one for one in self.asked if one.number in chats],
            [row for row in self.unanswered if row[0] in chats],
        )


@dataclass(frozen=True, slots=True)
class Row:
    """The means of one method over the questions of a set."""

    set: str
    method: str
    questions: int
    measures: Mapping[str, float]


def run(data: Path, cache: Path | None = None) -> list[Figure]:
    """Measure every set; print and keep the figures."""
    outcomes: dict[str, Outcome] = {}
    embedder = KeptEmbedder(folder=cache)
    for form, folder in SETS:
        chats = read_dataset(data / "conversations" / folder, form)
        whole = ask_dataset(chats, embedder)
        outcomes[f"{TITLES[form]}, chats {HELD_OUT}"] = whole.of(parse_chats(HELD_OUT))
        outcomes[f"{TITLES[form]}, all chats"] = whole
    with _home(embedder) as (memory, clock):
        for name, title in STORIES.items():
            for lane in ("turns", "facts"):
                scopes = story_scopes(data, name, lane, memory, clock)
                outcomes[f"{title}, {lane}"] = _outcome(scopes, embedder)
    embedder.close()
    rows = [row for name, outcome in outcomes.items() for row in rows_of(name, outcome)]
    figures = figures_of(rows)
    text = f"# Recall quality\n\n{machine_and_day()}\n"
    value = {"figures": [asdict(figure) for figure in figures]}
    write("quality", dumps(value, indent=1), f"{text}\n{markdown(rows)}")
    show("Recall quality", [figure for figure in figures if figure.name.endswith("Anaphora")])
    return figures


def ask_dataset(
    chats: Iterable[Haystack], embedder: KeptEmbedder, numbers: AbstractSet[int] | None = None
) -> Outcome:
    """Ask all questions of a data set, or those of some chats."""
    chosen = (chat for chat in chats if numbers is None or chat.number in numbers)
    with _home(embedder) as (memory, clock):
        return _outcome(chat_scopes(chosen, memory, clock), embedder)


@contextmanager
def _home(embedder: Embedder) -> Iterator[tuple[Memory, Clock]]:
    """A memory in a temporary home, and its clock."""
    clock = Clock()
    with (
        tempfile.TemporaryDirectory(prefix="anaphora-quality-") as folder,
        Memory.open(Path(folder), embedder=embedder, clock=clock) as memory,
    ):
        yield memory, clock


def _outcome(scopes: Iterable[Scope], embedder: Embedder) -> Outcome:
    outcome = Outcome()
    for scope in scopes:
        outcome.asked += _ask(scope, embedder)
        outcome.unanswered += [(scope.number, name, n) for name, n in scope.unanswered.items()]
    return outcome


def _ask(scope: Scope, embedder: Embedder) -> Iterator[Asked]:
    if not scope.questions:
        return
    keys, texts = list(scope.texts), list(scope.texts.values())
    words, parts = Bm25(texts, analyse, query_terms), embedder.embed(texts)
    members: dict[str, set[Key]] = defaultdict(set)
    for key, name in scope.rounds.items():
        members[name].add(key)
    for question in scope.questions:
        by_words = ranked(words.scores(question.text), 0.0)[:DEPTH]
        by_cosine = ranked(cosines(parts, embedder.embed_query(question.text)))[:DEPTH]
        rankings: dict[str, Ranking] = {
            "BM25": [{keys[at]} for at in by_words],
            "cosine": [{keys[at]} for at in by_cosine],
            "Anaphora": scope.ask(question),
        }
        yield Asked(
            scope.number,
            question.category,
            {name: measures_of(hits, question.answers) for name, hits in rankings.items()},
            {
                name: _recall_by_round(hits, question, scope.rounds, members)
                for name, hits in rankings.items()
                if members
            },
        )


def measures_of(hits: Ranking, answers: AbstractSet[Key]) -> dict[str, float]:
    """The `MEASURES` of one question: a hit counts for all texts that it stands for."""
    right = [bool(answers & keys) for keys in hits]
    order = [key for keys in hits for key in sorted(keys & answers) or [("", -1)]]
    reached = {k: frozenset[Key]().union(*hits[:k]) for k in (5, 10)}
    return {
        **{f"first{f' {k}' if k > 1 else ''}": float(any(right[:k])) for k in (1, 3, 10)},
        **{f"recall@{k}": len(keys & answers) / len(answers) for k, keys in reached.items()},
        "MRR": reciprocal_rank(order, answers),
        "nDCG@10": ndcg_at_k(order, answers, 10),
    }


def _recall_by_round(
    hits: Ranking,
    question: Question,
    rounds: Mapping[Key, str],
    members: Mapping[str, AbstractSet[Key]],
) -> float:
    """The share of the messages that answer which are in the first ten rounds.

    So counts Ogham (ogham-mcp, benchmarks/beam_benchmark.py).
    """
    names = dict.fromkeys(rounds[key] for keys in hits for key in sorted(keys))
    held = [key for name in list(names)[:10] for key in members[name]]
    return recall_at_k(held, question.answers, len(held))


def rows_of(name: str, outcome: Outcome) -> Iterator[Row]:
    """The means of each method: each question the same, or each category (LMEB)."""
    asked = outcome.asked
    unanswered = sum(count for _, _, count in outcome.unanswered)
    worth = sum(n for _, category, n in outcome.unanswered if category in _WORTH_ONE)
    for method in METHODS if asked else ():
        measures = {key: fmean(one.measures[method][key] for one in asked) for key in MEASURES}
        by_category: dict[str, list[float]] = defaultdict(list)
        for one in asked:
            by_category[one.category].append(one.measures[method]["recall@10"])
        measures[MACRO] = fmean(fmean(shares) for shares in by_category.values())
        by_round = [one.by_round[method] for one in asked if one.by_round]
        if by_round:
            measures[ROUNDS] = fmean(by_round)
            total = math.fsum(by_round) + worth
            measures[WITH_ABSTENTION] = total / (len(by_round) + unanswered)
        shares = sorted(by_category.items())
        measures |= {f"recall@10, {category}": fmean(values) for category, values in shares}
        yield Row(name, method, len(asked), measures)


def figures_of(rows: Iterable[Row]) -> list[Figure]:
    """Each mean as a figure: its set, its measure and its method."""
    figures = []
    for row in rows:
        if row.method == METHODS[0]:
            figures.append(Figure(f"{row.set}: questions", row.questions))
        for measure, value in row.measures.items():
            name = f"{row.set}: {measure}, {row.method}"
            if (row.method, measure) == ("Anaphora", "recall@10") and row.set in TARGETS:
                figures.append(at_least(name, value, TARGETS[row.set]))
            else:
                figures.append(Figure(name, value))
    return figures


def markdown(rows: Sequence[Row]) -> str:
    """A table of all measures, and one by category for each set that has several."""
    head = (*MEASURES, MACRO, ROUNDS, WITH_ABSTENTION)
    lines = [f"| set | ranking | {' | '.join(head)} |", "|---|---|" + "---:|" * len(head)]
    for row in rows:
        cells = (f"{row.measures[key]:.3f}" if key in row.measures else "–" for key in head)
        lines.append(f"| {row.set} ({row.questions}) | {row.method} | {' | '.join(cells)} |")
    for name in dict.fromkeys(row.set for row in rows):
        own = [row for row in rows if row.set == name]
        categories = [key for key in own[0].measures if key.startswith("recall@10, ") and
                      key != MACRO]  # fmt: skip
        lines += ["", f"## {name}, by category", "", f"| recall@10 | {' | '.join(METHODS)} |"]
        lines.append("|---|" + "---:|" * len(METHODS))
        for key in categories:
            cells = (f"{row.measures[key]:.3f}" for row in own)
            lines.append(f"| {key.removeprefix('recall@10, ')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def parse_chats(text: str) -> frozenset[int]:
    """The chat numbers that "6-10" or "1,3,5-7" names. Raises `InvalidInput`."""
    numbers: set[int] = set()
    for part in text.split(","):
        ends = [end.strip() for end in part.split("-")]
        if len(ends) > 2 or not all(end.isdecimal() for end in ends):
            raise InvalidInput("chats", text, 'expected numbers such as "6-10" or "1,3,5-7"')
        numbers.update(range(int(ends[0]), int(ends[-1]) + 1))
    return frozenset(numbers)


def run_one(path: Path, form: str, chats: str | None, embedder: str) -> Outcome:
    """One data set. Raises `InvalidInput`, and `UnknownFormat` where nothing can be asked."""
    numbers = parse_chats(chats) if chats is not None else None
    outcome = ask_dataset(read_dataset(path, form), KeptEmbedder(embedder), numbers)
    if not outcome.asked:
        raise UnknownFormat("path", str(path), f"no such {form} conversation with questions")
    return outcome


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of shared data")
    parser.add_argument("--cache", type=Path, help="a folder that keeps vectors")
    parser.add_argument("--format", help="realtalk, locomo, beam or longmemeval")
    parser.add_argument("--path", type=Path, help="a file or folder of that format")
    parser.add_argument("--chats", help="only these chats, e.g. 6-10")
    parser.add_argument("--embedder", default="minilm")
    chosen = parser.parse_args(arguments)
    if chosen.format is not None and chosen.path is not None:
        outcome = run_one(chosen.path, chosen.format, chosen.chats, chosen.embedder)
        print(markdown(list(rows_of(chosen.format, outcome))))
    elif chosen.data is not None:
        run(chosen.data, chosen.cache)
    else:
        parser.error("give --data, or --format and --path")


if __name__ == "__main__":
    main()
