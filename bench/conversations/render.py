"""A benchmark report for people (columns of text) and for programs (plain values).

It computes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from anaphora.surfaces.wire import plain
from bench.conversations.report import BenchmarkReport, Latency, Scores

_MEASURES = ("recall@5", "recall@10", "recall@20", "MRR", "nDCG@10")
_SHOWN_PROBLEMS = 5


def to_json(report: BenchmarkReport) -> dict[str, Any]:
    """The report as dicts, lists, strings and numbers."""
    value = plain(report)
    assert isinstance(value, dict)
    return value


def render(report: BenchmarkReport) -> RenderableType:
    """The report in columns: scores by category and ranking, then what the run cost."""
    parts: list[RenderableType] = [_line(_headline(report), "bold"), *_scores(report)]
    if report.left_out or report.unresolved:
        parts.append(_line(_left_out(report), "dim"))
    parts.extend(_costs(report))
    if report.degraded:
        parts.append(Text("answers lacked a part: " + _counts(report.degraded), style="bold red"))
    parts.extend(
        Text(f"problem: {problem.path}, {problem.place}: {problem.reason}", style="yellow")
        for problem in report.problems[:_SHOWN_PROBLEMS]
    )
    if len(report.problems) > _SHOWN_PROBLEMS:
        more = len(report.problems) - _SHOWN_PROBLEMS
        parts.append(Text(f"and {more} more problems", style="yellow"))
    return Group(*parts)


def markdown(report: BenchmarkReport) -> str:
    """The same as a Markdown table and lines, for a file."""
    lines = [
        _headline(report),
        "",
        "| category | questions | ranking | " + " | ".join(_MEASURES) + " |",
        "|---|---:|---|" + "---:|" * len(_MEASURES),
    ]
    for category, count, ranking, measures in _lines(report):
        lines.append(f"| {category} | {count} | {ranking} | " + " | ".join(measures) + " |")
    lines.append("")
    if report.left_out or report.unresolved:
        lines.append(_left_out(report) + ".")
    lines.extend(f"- {what}: {value}" for what, value in _cost_lines(report))
    return "\n".join(lines) + "\n"


def _headline(report: BenchmarkReport) -> str:
    asked = report.rows[0].overall.questions
    return (
        f"{report.format}: {report.chats:,} chats, {report.conversations:,} conversations, "
        f"{report.turns:,} turns, {asked:,} questions with evidence"
    )


def _left_out(report: BenchmarkReport) -> str:
    parts = []
    if report.left_out:
        parts.append("questions left out: " + _counts(report.left_out))
    if report.unresolved:
        parts.append(f"pieces of evidence that name no message: {report.unresolved}")
    return "; ".join(parts)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _lines(report: BenchmarkReport) -> list[tuple[str, str, str, list[str]]]:
    """Category, count, ranking and measures, all questions first."""
    lines = []
    for category in ("all", *report.rows[0].by_category):
        for row in report.rows:
            scores = row.overall if category == "all" else row.by_category[category]
            lines.append((category, str(scores.questions), row.name, _measures(scores)))
    return lines


def _measures(scores: Scores) -> list[str]:
    values = (
        scores.recall_at_5,
        scores.recall_at_10,
        scores.recall_at_20,
        scores.mrr,
        scores.ndcg_at_10,
    )
    return [f"{value:.3f}" for value in values]


def _scores(report: BenchmarkReport) -> list[Text]:
    """One line a category and ranking, in columns; the full ranking stands out."""
    lines = [("category", "questions", "ranking", list(_MEASURES)), *_lines(report)]
    first = max(len(category) for category, _, _, _ in lines)
    shown, last = [], ""
    for category, count, ranking, measures in lines:
        head = ("", "") if category == last else (category, count)
        cells = f"{head[0]:<{first}}  {head[1]:>9}  {ranking:<12}"
        cells += "".join(
            f"{cell:>{max(len(name), 5) + 2}}"
            for cell, name in zip(measures, _MEASURES, strict=True)
        )
        bold = ranking in {report.rows[-1].name, "ranking"}
        shown.append(_line(cells, "bold" if bold else ""))
        last = category
    return shown


def _costs(report: BenchmarkReport) -> list[Text]:
    return [_line(f"{what:<34} {value}") for what, value in _cost_lines(report)]


def _line(text: str, style: str = "") -> Text:
    # Not a Rich table: where there is too little room, that cuts figures short.
    return Text(text, style=style, overflow="fold")


def _cost_lines(report: BenchmarkReport) -> list[tuple[str, str]]:
    rate = report.turns / report.import_seconds if report.import_seconds else 0.0
    return [
        ("recall", _latency(report.recall)),
        ("recall less the query's embedding", _latency(report.recall_without_embedding)),
        ("the same question again", _latency(report.repeated)),
        (
            "embedding",
            f"{report.texts_embedded:,} texts in {report.embed_seconds:.1f} s, "
            f"{report.texts_per_second:,.0f} texts/s ({report.embedder})",
        ),
        ("import", f"{report.import_seconds:.1f} s, {rate:,.0f} turns/s"),
        ("home", f"{report.home_bytes / 1e6:.1f} MB"),
    ]


def _latency(latency: Latency) -> str:
    return f"p50 {latency.p50_ms:.2f} ms, p99 {latency.p99_ms:.2f} ms ({latency.calls:,} calls)"
