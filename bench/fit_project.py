"""What each signal of the context ranking is worth: `python -m bench.fit_project ../shared/data`.

In: project histories and issues. Out: bench/results/project.json and .md, what the product itself
finds (`python -m bench project`); then bench/results/project_ablation.json and .md, over the same
sections, words, vectors and scores without a home, so that only the weights vary: what goes without
each signal, weights fitted on all repositories but one and measured on that one, and the same for
the marks of the quality label (`bench.fit_labels`).

`--cache FILE` keeps the vectors, which take minutes, from one run to the next; `--only` does one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.base import Embedder
from anaphora.embed.minilm import MiniLM
from anaphora.rank.context.weights import DEFAULT_WEIGHTS, ROLE_FIT, Weights
from anaphora.surfaces.wire import plain as to_plain
from bench.figures import write
from bench.fit_labels import labelled, table
from bench.metrics import ndcg_at_k, recall_at_k, reciprocal_rank
from bench.project.road import ProjectRoad
from bench.project.room import ProjectRoom, Seen
from bench.project.run import run_project_benchmark
from bench.project.sets import ProjectSet, read_project_sets, stripped

FITTED = ("title", "meaning", "others", "path", "file_title", "named", "file_meaning", "log")
STEPS = (0.6, 1.6)
ROUNDS = 1


@dataclass(frozen=True)
class Asked:
    """A question as ranking sees it, and the files that answer it."""

    room: ProjectRoom
    seen: Seen
    wanted: frozenset[str]
    kind: Callable[[str], bool]


@dataclass(frozen=True)
class Measured:
    """Means over a repository's questions: recall@10 (issues: accuracy@5), and a finer measure."""

    first: float
    found: float
    fine: float


Questions = Mapping[tuple[str, str], Sequence[Asked]]
"""By (kind, repository)."""


class Kept:
    """An embedder whose vectors are kept in a file, by a digest of the text."""

    def __init__(self, file: Path | None) -> None:
        self._inner = MiniLM()
        self.queries = True
        self._file = file
        self._known: dict[str, NDArray[np.float16]] = {}
        if file is not None and file.exists():
            with np.load(file) as found:
                ends = np.cumsum(found["sizes"])
                rows = np.split(found["rows"], ends[:-1])
                self._known = dict(zip(found["keys"].tolist(), rows, strict=True))

    @property
    def name(self) -> str:
        """The identity of its vectors."""
        return self._inner.name

    @property
    def dimensions(self) -> int:
        """The length of its vectors."""
        return self._inner.dimensions

    def query_key(self, text: str) -> Hashable:
        """Questions of one text are one."""
        return text

    def embed(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Parts of each text, those of a known text from what was kept."""
        keys = [_key(text) for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        for key, rows in zip(new, self._inner.embed(list(new.values())), strict=True):
            self._known[key] = rows.astype(np.float16)
        return [self._known[key].astype(np.float32) for key in keys]

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question; one that was kept unless `queries` is off."""
        if not self.queries:
            return self._inner.embed_query(text)
        key = "?" + _key(text)
        if key not in self._known:
            self._known[key] = self._inner.embed_query(text)[None, :].astype(np.float16)
        vector: NDArray[np.float32] = self._known[key][0].astype(np.float32)
        return vector

    def keep(self) -> None:
        """Write what is known to the file."""
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            np.savez(
                self._file,
                keys=np.array(list(self._known)),
                sizes=np.array([len(rows) for rows in self._known.values()]),
                rows=np.concatenate(list(self._known.values())),
            )


def _key(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def load(data: Path, embedder: Embedder, *, strip: bool = False) -> Questions:
    """Everything that is asked, by kind and repository."""
    found: dict[tuple[str, str], list[Asked]] = {}
    for one in read_project_sets(data / "projects"):
        if isinstance(one, ProjectSet) and one.questions:
            room = ProjectRoom(one.files, embedder)
            for question in one.questions:
                text = stripped(question) if strip else question.text
                asked = Asked(room, room.see(text), question.wanted, one.asks_for)
                found.setdefault((one.kind, one.repo), []).append(asked)
            room.close()
    return found


def measure(asked: Sequence[Asked], kind: str, weights: Weights) -> Measured:
    """Rank every question with these weights."""
    first, found, fine = [], [], []
    for one in asked:
        ranked = [p for p in one.room.paths(one.room.targets(one.seen, weights)) if one.kind(p)]
        place = next((n for n, path in enumerate(ranked, 1) if path in one.wanted), 0)
        first.append(float(place == 1))
        if kind == "history":
            found.append(recall_at_k(ranked, one.wanted, 10))
            fine.append(ndcg_at_k(ranked, one.wanted, 10))
        else:
            found.append(float(0 < place <= 5))
            fine.append(reciprocal_rank(ranked, one.wanted))
    return Measured(fmean(first), fmean(found), fmean(fine))


def changed(weights: Weights, name: str, value: float) -> Weights:
    """The weights with another number for one of them."""
    return replace(weights, **{name: value})  # type: ignore[arg-type]


def worth(questions: Questions, weights: Weights) -> float:
    """What is maximised: 0.6 of what is found and 0.4 of how well it is placed, by repository.

    Issues are few: each of their repositories counts half of one with a history.
    """
    total, parts = 0.0, 0.0
    for (kind, _), asked in questions.items():
        found, part = measure(asked, kind, weights), 1.0 if kind == "history" else 0.5
        total += part * (0.6 * found.found + 0.4 * found.fine)
        parts += part
    return total / parts


def fit(questions: Questions, weights: Weights = DEFAULT_WEIGHTS) -> Weights:
    """Climb, one weight after the other, from the product's weights."""
    best = worth(questions, weights)
    for _ in range(ROUNDS):
        before = best
        for name in FITTED:
            for step in STEPS:
                tried = changed(weights, name, round(getattr(weights, name) * step, 4))
                value = worth(questions, tried)
                if value > best + 1e-4:
                    best, weights = value, tried
        if best <= before:
            break
    return weights


def variants() -> Iterator[tuple[str, Weights]]:
    """The product's weights, and those without a signal or with other amounts of it."""
    yield "full", DEFAULT_WEIGHTS
    for name in ("title", "others", "path", "file_title", "named", "log"):
        yield f"full - {name}", changed(DEFAULT_WEIGHTS, name, 0.0)
    yield "full - meaning", replace(DEFAULT_WEIGHTS, meaning=0.0, file_meaning=0.0)
    yield "full - role and intent fit", replace(DEFAULT_WEIGHTS, roles={}, log=0.0)
    for role in ("test", "docs", "code", "package_config", "tooling"):
        roles = {other: fits for other, fits in ROLE_FIT.items() if other != role}
        yield f"full - fit of {role}", replace(DEFAULT_WEIGHTS, roles=roles)
    only = Weights(title=0, others=0, path=0, file_title=0, named=0, file_meaning=0, log=0)
    yield "best section's words alone", replace(only, roles={})
    for name, values in (
        ("decay", (0.5, 0.85)),
        ("others", (0.15, 0.6)),
        ("path", (0.7, 2.0)),
        ("named", (0.5, 2.0)),
        ("file_meaning", (0.2, 0.8)),
        ("log", (-0.5, -3.0)),
    ):
        for value in values:
            yield f"full, {name} = {value}", changed(DEFAULT_WEIGHTS, name, value)


def left_out(questions: Questions, tell: Callable[[str], None]) -> dict[str, list[Measured]]:
    """For each repository: fitted on the others, the product's weights, and the fitted ones."""
    found = {}
    for repo in dict.fromkeys(repo for _, repo in questions):
        mine = {key: asked for key, asked in questions.items() if key[1] == repo}
        others = {key: asked for key, asked in questions.items() if key[1] != repo}
        weights = fit(others)
        tell(f"without {repo}: { {n: getattr(weights, n) for n in FITTED} }")
        for (kind, _), asked in mine.items():
            found[f"{repo} ({kind})"] = [
                measure(asked, kind, weights),
                measure(asked, kind, DEFAULT_WEIGHTS),
            ]
    return found


def tables(
    plain: Questions, bare: Questions, tell: Callable[[str], None]
) -> tuple[str, dict[str, dict[str, list[float]]]]:
    """The ablation and the left-out measures, as Markdown and as plain values."""
    keys = sorted(plain)
    heads = [f"{repo} {'@10' if kind == 'history' else '@1, @5'}" for kind, repo in keys]
    lines = ["| ranking | " + " | ".join(heads) + " | history @10 (nDCG@10) | issues @1, @5, MRR |"]
    lines.append("|---" * (len(heads) + 3) + "|")
    values: dict[str, dict[str, list[float]]] = {}

    def row(name: str, found: Mapping[tuple[str, str], Measured], asked: Questions) -> None:
        cells = [
            f"{m.found:.3f}" if kind == "history" else f"{m.first:.2f}, {m.found:.2f}"
            for (kind, _), m in sorted(found.items())
        ]
        history = [m for (kind, _), m in found.items() if kind == "history"]
        of_issues = [key for key in keys if key[0] == "issues" for _ in asked[key]]
        issues = [found[key] for key in of_issues]
        means = [fmean(m.found for m in history), fmean(m.fine for m in history)]
        ends = [fmean(m.first for m in issues), fmean(m.found for m in issues)]
        ends.append(fmean(m.fine for m in issues))
        tail = f"{means[0]:.3f} ({means[1]:.3f}) | {ends[0]:.2f}, {ends[1]:.2f}, {ends[2]:.3f}"
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {tail} |")
        values[name] = {f"{k} {r}": [m.first, m.found, m.fine] for (k, r), m in found.items()}
        tell(lines[-1])

    for name, weights in variants():
        row(name, {key: measure(plain[key], key[0], weights) for key in keys}, plain)
    full = {key: measure(bare[key], key[0], DEFAULT_WEIGHTS) for key in keys}
    row("full, what gives the answer away taken out", full, bare)
    lines += ["", LEFT_OUT, "", "| repository | fitted on the others | the product's weights |"]
    lines.append("|---|---|---|")
    for name, pair in left_out(plain, tell).items():
        cells = " | ".join(f"{m.first:.2f}, {m.found:.3f}, {m.fine:.3f}" for m in pair)
        lines.append(f"| {name} | {cells} |")
        values[f"left out: {name}"] = {"fitted": list(astuple(pair[0]))}
    return "\n".join(lines), values


HEAD = """# Ablation of the project ranking

Files ranked for commit subjects (history: recall@10 of the files touched) and for bug reports
(issues: accuracy@1 and @5 of the files edited, ignoring files other than `.py`; there are 13, so
one more or less is 0.08). Generated by `python -m bench.fit_project`, without a home and without
the graph. Weights are named as in `src/anaphora/rank/context/weights.py`.

**Limits.** The formulas and the orders of magnitude of the weights were chosen with all of these
repositories in view, so the first table describes them and says nothing about others. Only the
weights fitted without a repository and measured on it indicate what to expect elsewhere, and even
those start from the product's weights. Rejected variants are not listed if no command reproduces
them.
"""

LEFT_OUT = """## Fitted without a repository, measured on it

Accuracy@1, then recall@10 or accuracy@5, then nDCG@10 or mean reciprocal rank."""

LABELS = """## Labels

The thresholds of strong and partial, set without a repository; how often a wanted file is then
among the first five targets; and the labels of questions about other projects."""


def strangers(data: Path, embedder: Embedder) -> str:
    """The labels of questions that are asked of a project which they are not about, as Markdown."""
    sets = [s for s in read_project_sets(data / "projects") if isinstance(s, ProjectSet)]
    counts: dict[str, Counter[str]] = {"history": Counter(), "issues": Counter()}
    for one in sets:
        if one.kind != "history":
            continue
        with closing(ProjectRoad(one.files, embedder)) as road:
            for other in sets:
                if other.repo != one.repo:
                    for question in other.questions[::5]:
                        counts[other.kind][road.ask(question.text).quality] += 1
    lines = ["| asked of another project | strong | partial | weak |", "|---|---:|---:|---:|"]
    for kind, found in counts.items():
        shares = [found[label] / max(1, found.total()) for label in ("strong", "partial", "weak")]
        lines.append(
            f"| {kind} ({found.total()}) | " + " | ".join(f"{s:.2f}" for s in shares) + " |"
        )
    return "\n".join(lines)


REPORT = """# Finding the files that a task touches

`python -m bench project`: four histories (commit subjects, the files they touched) and 13 issues
(bug reports, the files that were edited). Each project is written to a folder, indexed by
`Memory.index_project` and queried by `Memory.recall_context` with the default budget; the paths are
the primary targets of the package, at most ten. For issues the whole project is indexed too. They
ask for `.py` files: "recall package" ignores other targets, "package, all files" counts them, and
BM25 covers only the `.py` files. No notes, no git history.

The ranking was designed with these repositories in view; project_ablation.md shows the effect. The
13 issues are too few to compare rankings that differ by one or two of them.
"""


def report(data: Path, embedder: Kept) -> None:
    """Run the benchmark of projects, and write what it found."""
    embedder.queries = False
    found = run_project_benchmark(data / "projects", embedder=embedder)
    embedder.queries = True
    text = f"{REPORT}\n{found.markdown()}\n{strangers(data, embedder)}\n"
    write("project", json.dumps(to_plain(found), indent=1), text)
    print(text, flush=True)


def ablation(data: Path, embedder: Kept) -> None:
    """Measure without each signal, fit without each repository, and write it."""
    plain, bare = load(data, embedder), load(data, embedder, strip=True)
    text, values = tables(plain, bare, lambda line: print(line, flush=True))
    text += f"\n\n{LABELS}\n\n{table(labelled(data, embedder))}\n"
    write("project_ablation", json.dumps(values, indent=1), f"{HEAD}\n{text}")


def main() -> None:
    """Measure, fit, write."""
    parser = argparse.ArgumentParser(description="Fit and ablate the context ranking.")
    parser.add_argument("data", type=Path, help="the folder of shared data")
    parser.add_argument("--cache", type=Path, help="a file to keep vectors in")
    parser.add_argument("--only", choices=("report", "ablation"), help="do one of both")
    chosen = parser.parse_args()
    embedder = Kept(chosen.cache)
    for name, does in (("report", report), ("ablation", ablation)):
        if chosen.only in (None, name):
            does(chosen.data, embedder)
            embedder.keep()


if __name__ == "__main__":
    main()
