"""Would a learned last stage be better? `python -m bench.learned --data DIR [--cache DIR]`.

In: REALTALK, BEAM and stories in which facts change. Out: bench/results/learned_ranking.json and
.md, what trees over the features of a question's first hundred turns change in the sum: fitted on
chats 1 to 5 and the first half of the shared stories, and fitted without the set that is reported.
Needs `pip install -r bench/learned/requirements.txt`; takes some ten minutes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from anaphora.embed.minilm import MiniLM
from bench.changes import FITTED, read_stories
from bench.datasets import SETS
from bench.figures import machine_and_day, write
from bench.fit_turns import FIT, K, load
from bench.learned.features import GROUPS, Example, Floats, describe
from bench.learned.model import Corrected, Fit, fit
from bench.learned.styles import Styles, story_examples

STORIES: Final = "stories"
SOURCES: Final = (*(name for name, _ in SETS), STORIES)
MULTI_HOP: Final = "1 multi-hop"
REWORDED: Final = ("keywords", "nameless", "first person", "third person")
MADE: Final = ("asked", "words of a turn")

Order = Callable[[Example], Floats]

_EVERYTHING: Final = Fit(GROUPS, trees=120)
_CAUTIOUS: Final = Fit(("own", "parts", "vectors"), trees=60)
MODELS: Final = {
    "own words and meaning, parts": Fit(("own", "parts"), trees=50),
    "the same and neighbours": Fit(("own", "parts", "near"), trees=60),
    "the same and the sitting": Fit(("own", "parts", "sitting"), trees=60),
    "the same and the forms of text and question": Fit(
        ("own", "parts", "form", "question"), trees=60
    ),
    "the same and vectors": _CAUTIOUS,
    "everything": _EVERYTHING,
}
MATERIAL: Final = {
    "questions as asked alone": (),
    "and put in other styles": REWORDED,
    "and what people asked each other": (*REWORDED, "asked"),
    "and words of turns": (*REWORDED, "words of a turn"),
}


def read_examples(data: Path, cache: Path | None) -> tuple[list[str], list[Example]]:
    """The names of the features, and all questions: "as asked", and of chats 1 to 5 and the first
    half of the shared stories in other styles. Stories that are held out have negative numbers."""
    model = MiniLM()
    styles, names, found = Styles(model), list[str](), list[Example]()
    for source, chats in load(data, cache).items():
        for chat in chats:
            for one in chat.asked:
                names, example = describe(source, "as asked", chat, one)
                found.append(example)
            if chat.number in FIT:
                found += styles.reworded(source, chat)
                found += styles.asked_in_it(source, chat)
                found += styles.words_of_turns(source, chat)
        print(source, len(found), flush=True)
    for part, stories in read_stories(data).items():
        for place, story in enumerate(stories, 1):
            number = place if part == FITTED else -place
            found += story_examples(STORIES, number, story, styles, model, cache)
    print(STORIES, len(found), flush=True)
    return names, found


def fitting(one: Example) -> bool:
    """Whether it may be fitted on; of the stories every one of the first half."""
    return one.number > 0 if one.source == STORIES else one.number in FIT


def recall(examples: Sequence[Example], order: Order, k: int = K) -> float:
    """Mean share of the evidence among the first `k`."""
    shares = []
    for one in examples:
        first = one.rows[np.argsort(-order(one), kind="stable")[:k]].tolist()
        shares.append(len(one.evidence.intersection(first)) / len(one.evidence))
    return float(np.mean(shares))


class Table:
    """Recall of what was fitted beside the sum's."""

    def __init__(self, names: Sequence[str], examples: Sequence[Example]) -> None:
        self._names = names
        self._examples = examples
        total = list(names).index("own: total")
        self.by_sum: Order = lambda one: one.values[:, total].astype(float)
        asked = [one for one in examples if one.style == "as asked"]
        self.reported = {
            **{s: [o for o in asked if o.source == s and not fitting(o)] for s in SOURCES},
            MULTI_HOP: [o for o in asked if o.category == MULTI_HOP and not fitting(o)],
        }
        self._chosen = [one for one in asked if fitting(one)]

    def fitted(self, chosen: Fit, styles: Sequence[str], without: str = "") -> Corrected:
        """Fit on what may be fitted on, but for a set."""
        used = [
            one
            for one in self._examples
            if fitting(one) and one.source != without and one.style in ("as asked", *styles)
        ]
        return fit(self._names, used, chosen)

    def row(self, chosen: Fit, styles: Sequence[str]) -> dict[str, float]:
        """Gains over the sum on what is reported: fitted on all sets, and each set left out."""
        found = {}
        everywhere = self.fitted(chosen, styles)
        for name, asked in self.reported.items():
            found[f"{name}, all"] = self._gain(asked, everywhere)
        for source in SOURCES:
            left = self.fitted(chosen, styles, without=source)
            for name in (source, MULTI_HOP) if source == "realtalk" else (source,):
                found[f"{name}, left out"] = self._gain(self.reported[name], left)
            own = [one for one in self._chosen if one.source == source]
            found[f"{source}, left out, fitting half"] = self._gain(own, left)
        return found

    def _gain(self, asked: Sequence[Example], model: Corrected) -> float:
        return round(recall(asked, model.values) - recall(asked, self.by_sum), 4)

    def cost(self, chosen: Fit) -> tuple[float, float]:
        """Kilobytes of the trees, and milliseconds a question of 100 candidates in LightGBM."""
        model = self.fitted(chosen, REWORDED)
        asked = self.reported["realtalk"][:50]
        begun = time.perf_counter()
        for one in asked:
            model.values(one)
        return model.size() / 1000, 1000 * (time.perf_counter() - begun) / len(asked)


def _lines(rows: dict[str, dict[str, float]], first: str) -> Iterator[str]:
    columns = list(next(iter(rows.values())))
    for kind in (", all", ", left out", ", left out, fitting half"):
        names = [one for one in columns if one.endswith(kind) and one.count(",") == kind.count(",")]
        yield (
            f"| {first}{kind.replace(', all', ', fitted on all sets')} | "
            + " | ".join(one.removesuffix(kind) for one in names)
            + " |"
        )
        yield "|---" + "|---:" * len(names) + "|"
        for label, row in rows.items():
            yield f"| {label} | " + " | ".join(f"{row[one]:+.3f}" for one in names) + " |"
        yield ""


def run(data: Path, cache: Path | None) -> None:
    """Fit everything that is reported, keep the tables."""
    names, examples = read_examples(data, cache)
    table = Table(names, examples)
    by_sum = {name: round(recall(asked, table.by_sum), 4) for name, asked in table.reported.items()}
    models: dict[str, dict[str, float]] = {}
    material: dict[str, dict[str, float]] = {}
    for label, chosen in MODELS.items():
        models[label] = table.row(chosen, REWORDED)
        print(label, models[label], flush=True)
    for label, styles in MATERIAL.items():
        known = models["everything"] if styles == REWORDED else None
        material[label] = known or table.row(_EVERYTHING, styles)
        print(label, material[label], flush=True)
    kilobytes, milliseconds = table.cost(_EVERYTHING)
    lines = [
        "# A learned last stage: not shipped",
        "",
        f"{machine_and_day()}.",
        "`python -m bench.learned`: trees that correct the sum over the first hundred turns,",
        "as the gain in recall@10 over the sum. Reported are chats 6 to 10 of REALTALK and BEAM,",
        "multi-hop of REALTALK, and the stories that bench/changes.py holds out. *Left out*:",
        "the whole set had no part in the fit; *fitting half*: chats 1 to 5 and the first half of",
        "the stories, of the same fits. Differences under 0.02 (REALTALK), 0.04 (BEAM) and 0.03",
        "(stories) are within chance.",
        "",
        "| the sum alone | " + " | ".join(by_sum) + " |",
        "|---" + "|---:" * len(by_sum) + "|",
        "| questions | " + " | ".join(str(len(v)) for v in table.reported.values()) + " |",
        "| recall@10 | " + " | ".join(f"{v:.3f}" for v in by_sum.values()) + " |",
        "",
        "## By features",
        "",
        *_lines(models, "features"),
        "## By what is fitted on, with all features",
        "",
        *_lines(material, "fitted on"),
        f"The trees over everything would take {kilobytes:.0f} kB as flat arrays; 100 candidates "
        f"take {milliseconds:.1f} ms in LightGBM on one thread, features not counted.",
    ]
    value = {"sum": by_sum, "models": models, "material": material, "kilobytes": kilobytes}
    write("learned_ranking", json.dumps(value, indent=1), "\n".join(lines) + "\n")


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.learned", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--cache", type=Path, default=None, help="where to keep vectors")
    given = parser.parse_args()
    run(given.data, given.cache)


if __name__ == "__main__":
    main()
