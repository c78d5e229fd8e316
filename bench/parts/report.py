"""The figures of the parts and the whole side by side, and whether the whole is worse.

In: `Outcome`s. Out: rows, and the page of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from bench.figures import machine_and_day
from bench.parts.asking import BM25, COSINE, HYBRID, METHODS, Outcome
from bench.parts.lost import DEPTHS
from bench.parts.verdicts import CERTAINTY, COMMON, FIGURES, KINDS, RARE, Verdict, judge

__all__ = ["Row", "page", "rows_of"]

ALL: Final = "all"
_MARKS: Final = {"not worse": "", "within chance": " ~", "worse": " **worse**"}


_LOST: Final = (
    "Questions of which BM25 or the cosine has an answer within so many places and the whole none, "
    "and those of which the whole alone has one. Then the factors of the hits' scores: of how many "
    "of the lost an answer comes back within these places when this one factor is taken from all "
    "hits. A question may stand with several."
)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of the questions of one kind: the mean of each method, and the verdict."""

    set: str
    lane: str
    kind: str
    figure: str
    questions: int
    means: dict[str, float]
    verdict: Verdict

    def as_json(self) -> dict[str, Any]:
        """As it is written down."""
        return asdict(self) | {"difference": self.verdict.difference}


def rows_of(outcomes: Sequence[Outcome]) -> list[Row]:
    """A row for each set, lane, kind (all, then each that has questions) and figure."""
    rows = []
    for name, lane in dict.fromkeys((outcome.set, outcome.lane) for outcome in outcomes):
        own = [outcome for outcome in outcomes if (outcome.set, outcome.lane) == (name, lane)]
        for kind in (ALL, *KINDS):
            asked = [outcome for outcome in own if kind in (ALL, outcome.kind)]
            if asked:
                rows += list(_rows(name, lane, kind, asked))
    return rows


def _rows(name: str, lane: str, kind: str, asked: Sequence[Outcome]) -> Iterator[Row]:
    for at, figure in enumerate(FIGURES):
        values = {method: [outcome.figures[method][at] for outcome in asked] for method in METHODS}
        means = {method: sum(own) / len(own) for method, own in values.items()}
        verdict = judge(values[HYBRID], {COSINE: values[COSINE], BM25: values[BM25]})
        yield Row(name, lane, kind, figure, len(asked), means, verdict)


def page(rows: Sequence[Row], outcomes: Sequence[Outcome]) -> str:
    """The page: a line for each kind of question, then every figure with its interval."""
    worse = [row for row in rows if row.verdict.outcome == "worse"]
    lower = [row for row in rows if row.verdict.outcome == "within chance"]
    lines = [
        "# Never worse than its parts",
        "",
        f"{machine_and_day()}.",
        "`python -m bench.parts`: the whole ranking beside the better of plain BM25 and the bare "
        "cosine of the bundled embedder, over the same texts: REALTALK and BEAM chats 6 to 10, the "
        "held-out half of the shared stories of change, those of `stories/own.json` and the "
        "stories of everyday questions, told as turns (`recall_conversation`) and, where the set "
        "has them, as facts (`recall`). Kinds are by the rarest word that question and answer "
        f"share: in at most {RARE:.0%} of the set's texts (rare), {COMMON:.0%} (common), or more, "
        "or no word (none). *first*, *first three*, *first ten*: the share of questions with an "
        "answer there; *recall@10*: the share of the answers. Whether recall would have stayed "
        "silent is left aside. ~: lower, but within chance "
        f"(paired bootstrap, {CERTAINTY:.0%}); **worse**: lower beyond it.",
        "",
        f"{len(rows)} comparisons: {len(rows) - len(worse) - len(lower)} not worse, {len(lower)} "
        f"lower within chance, {len(worse)} worse.",
        "",
        f"| set | lane | shared words | questions | {' | '.join(FIGURES)} |",
        "|---|---|---|---:|" + "---:|" * len(FIGURES),
    ]
    for start in range(0, len(rows), len(FIGURES)):
        group = rows[start : start + len(FIGURES)]
        first, cells = group[0], [_cell(row) for row in group]
        lines.append(
            f"| {first.set} | {first.lane} | {first.kind} | {first.questions} | "
            f"{' | '.join(cells)} |"
        )
    lines += ["", "A cell: hybrid, then the better part (b: BM25, c: cosine).", ""]
    lines += ["## Silence", "", "| set | lane | questions with an answer | silent |"]
    lines += ["|---|---|---:|---:|", *_silences(outcomes)]
    lines += ["", "## What stands before the answers that are lost", "", _LOST, ""]
    lines += ["| set | lane | within | lost | and won | brought back without (questions) |"]
    lines += ["|---|---|---:|---:|---:|---|", *_causes(outcomes)]
    lines += ["", "## Every figure", "", f"| questions | figure | {' | '.join(METHODS)} |"]
    lines[-1] += f" less the better part | {CERTAINTY:.0%} | verdict |"
    lines += ["|---|---|" + "---:|" * len(METHODS) + "---:|---:|---|", *map(_line, rows)]
    return "\n".join(lines)


def _cell(row: Row) -> str:
    verdict = row.verdict
    part = f"{verdict.part:.2f}{verdict.better[0].lower()}"
    return f"{verdict.whole:.2f} / {part}{_MARKS[verdict.outcome]}"


def _silences(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for name, lane in dict.fromkeys((outcome.set, outcome.lane) for outcome in outcomes):
        silent = [o.silent for o in outcomes if (o.set, o.lane) == (name, lane)]
        yield f"| {name} | {lane} | {len(silent)} | {sum(silent) / len(silent):.3f} |"


def _causes(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for name, lane in dict.fromkeys((outcome.set, outcome.lane) for outcome in outcomes):
        own = [o for o in outcomes if (o.set, o.lane) == (name, lane)]
        for depth, figure in zip(DEPTHS, FIGURES, strict=False):
            lost = [miss for o in own for miss in o.lost if miss.depth == depth]
            at = FIGURES.index(figure)
            won = sum(
                o.figures[HYBRID][at] > max(o.figures[BM25][at], o.figures[COSINE][at]) for o in own
            )
            counts = Counter(cause for miss in lost for cause in miss.causes).most_common()
            shown = ", ".join(f"{cause} {many}" for cause, many in counts)
            yield f"| {name} | {lane} | {depth} | {len(lost)} | {won} | {shown} |"


def _line(row: Row) -> str:
    verdict = row.verdict
    means = " | ".join(f"{row.means[method]:.3f}" for method in METHODS)
    span = f"{verdict.low:+.3f} to {verdict.high:+.3f}"
    asked = f"{row.set}, {row.lane}, {row.kind} ({row.questions})"
    return (
        f"| {asked} | {row.figure} | {means} | {verdict.difference:+.3f} | {span} | "
        f"{verdict.outcome} |"
    )
