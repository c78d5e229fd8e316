"""What was asked, put into tables: by message, by round and by session; every category the same and
every question the same; and the figures as others define theirs.

In: `Asked`. Out: frozen values, JSON and Markdown. It asks nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.conversations.report import Key
from bench.measures.definitions import (
    Measured,
    Ranking,
    longmemeval_ndcg,
    macro,
    mean,
    measure,
    message_recall,
    ogham_ndcg,
    units,
    with_empty,
)
from bench.measures.run import ROWS, Asked

OGHAM_WORTH_ONE = frozenset({"abstention", "summarization"})
"""Categories of BEAM whose questions without evidence Ogham counts as found."""


@dataclass(frozen=True, slots=True)
class UnitRow:
    """One ranking counted in one unit. `tokens` is what its first ten units cost to read."""

    ranking: str
    micro: Measured
    macro: Measured
    by_category: Mapping[str, Measured]
    tokens: float


@dataclass(frozen=True, slots=True)
class UnitTable:
    """One unit: how many questions, and a row a ranking."""

    unit: str
    questions: int
    candidates: float
    rows: tuple[UnitRow, ...]


@dataclass(frozen=True, slots=True)
class SetReport:
    """A data set's measures. `special` has figures by others' definitions: name, by ranking."""

    name: str
    chats: int
    questions: int
    empty: Mapping[str, int]
    tables: tuple[UnitTable, ...]
    special: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    degraded: Mapping[str, int] = field(default_factory=dict)


def report(name: str, form: str, asked: Asked) -> SetReport:
    """All measures of what was asked of one set."""
    tables = [_table("message", asked, {key: str(key) for key in asked.tokens})]
    several = set(asked.roles.values()) - {"user"}
    if several:
        tables.append(_table("round", asked, asked.rounds))
    if len(set(asked.sessions.values())) > len(set(asked.scopes.values())):
        tables.append(_table("session", asked, asked.sessions))
    if form == "longmemeval":
        tables.insert(1, _users(asked))
    special = _special(form, asked, tables)
    return SetReport(
        name,
        asked.chats,
        tables[0].questions,
        dict(sorted(asked.empty.items())),
        tuple(tables),
        special,
        dict(asked.degraded),
    )


def _table(unit: str, asked: Asked, unit_of: Mapping[Key, str]) -> UnitTable:
    rows = []
    members = asked.members(unit_of)
    cost = {one: sum(asked.tokens[key] for key in keys) for one, keys in members.items()}
    for name, _ in ROWS:
        rankings = asked.rankings.get(name, [])
        found = [(one.category, units(one.ranked, unit_of)) for one in rankings]
        wanted = [frozenset(units(one.relevant, unit_of)) for one in rankings]
        rows.append(_row(name, found, wanted, cost))
    candidates = len(members) / max(1, len(set(asked.scopes.values())))
    return UnitTable(unit, len(asked.rankings.get(ROWS[0][0], [])), candidates, tuple(rows))


def _row(
    name: str,
    found: Sequence[tuple[str, tuple[object, ...]]],
    wanted: Sequence[frozenset[object]],
    cost: Mapping[str, int],
) -> UnitRow:
    by_category: dict[str, list[Measured]] = {}
    every: list[Measured] = []
    for (category, ranked), relevant in zip(found, wanted, strict=True):
        one = measure(ranked, relevant)
        every.append(one)
        by_category.setdefault(category, []).append(one)
    tokens = [sum(cost.get(str(unit), 0) for unit in ranked[:10]) for _, ranked in found]
    return UnitRow(
        name,
        mean(every),
        macro(by_category),
        {category: mean(several) for category, several in sorted(by_category.items())},
        math.fsum(tokens) / max(1, len(tokens)),
    )


def _users(asked: Asked) -> UnitTable:
    """LongMemEval's own turn level: users' messages are the candidates, and their labels count."""
    kept = Asked(scopes=asked.scopes, roles=asked.roles, tokens=asked.tokens, chats=asked.chats)
    for name, rankings in asked.rankings.items():
        kept.rankings[name] = [
            Ranking(one.category, _of_users(one.ranked, asked), wanted)
            for one in rankings
            if (wanted := frozenset(_of_users(one.relevant, asked)))
        ]
    users = {key: str(key) for key, role in asked.roles.items() if role == "user"}
    return _table("user's message", kept, users)


def _of_users(keys: Sequence[Key] | frozenset[Key], asked: Asked) -> tuple[Key, ...]:
    return tuple(key for key in keys if asked.roles.get(key) == "user")


def _special(
    form: str, asked: Asked, tables: Sequence[UnitTable]
) -> dict[str, Mapping[str, float]]:
    by_message = {row.ranking: row for row in tables[0].rows}
    special: dict[str, Mapping[str, float]] = {
        "LMEB: nDCG@10, each category the same": {n: r.macro.ndcg for n, r in by_message.items()},
        "LMEB: recall@10, each category the same": {
            n: r.macro.recall[10] for n, r in by_message.items()
        },
    }
    empty = sum(asked.empty.values())
    if empty:
        shares = {
            name: [measure(one.ranked, one.relevant).recall[10] for one in rankings]
            for name, rankings in asked.rankings.items()
        }
        special[f"recall@10 by message, with the {empty} questions without evidence as 1.0"] = {
            name: with_empty(values, empty) for name, values in shares.items()
        }
    if form == "beam":
        special |= _ogham(asked)
    if form == "longmemeval":
        special["LongMemEval: ndcg_any@10 by message"] = {
            name: math.fsum(longmemeval_ndcg(one.ranked, one.relevant, 10) for one in rankings)
            / max(1, len(rankings))
            for name, rankings in asked.rankings.items()
        }
    return special


def _ogham(asked: Asked) -> dict[str, Mapping[str, float]]:
    """Ogham's figures on BEAM: rounds are returned, messages are counted."""
    members = asked.members(asked.rounds)
    recall: dict[str, list[float]] = {}
    ndcg: dict[str, list[float]] = {}
    mrr: dict[str, list[float]] = {}
    for name, rankings in asked.rankings.items():
        for one in rankings:
            order = units(one.ranked, asked.rounds)
            rounds = [members[str(unit)] for unit in order]
            recall.setdefault(name, []).append(message_recall(rounds, one.relevant, 10))
            ndcg.setdefault(name, []).append(ogham_ndcg(rounds, one.relevant))
            places = (n for n, unit in enumerate(rounds, 1) if one.relevant & set(unit))
            mrr.setdefault(name, []).append(1 / next(places, math.inf))
    found = sum(asked.empty_by_category[category] for category in OGHAM_WORTH_ONE)
    lost = sum(asked.empty_by_category.values()) - found
    zeros = [0.0] * lost
    return {
        "Ogham: recall@10 by round, without abstention": {
            name: with_empty(values, 0) for name, values in recall.items()
        },
        "Ogham: recall@10 by round, abstention as 1.0": {
            name: with_empty([*values, *zeros], found) for name, values in recall.items()
        },
        "Ogham: MRR by round, questions without evidence as 0": {
            name: with_empty([*values, *zeros], found, 0.0) for name, values in mrr.items()
        },
        "Ogham: NDCG@10 by round, questions without evidence as 0": {
            name: with_empty([*values, *zeros], found, 0.0) for name, values in ndcg.items()
        },
    }


_HEAD = (
    "| unit | ranking | recall@5 | @10 | @20 | macro @10 | any@5 | any@10 | all@5 | all@10 | MRR "
    "| nDCG@10 | tokens@10 |\n|---|---|" + "---:|" * 11
)


def markdown(one: SetReport) -> str:
    """The report as Markdown, below a heading of its own."""
    left = ", ".join(f"{count} {why}" for why, count in one.empty.items())
    lines = [
        f"## {one.name}",
        "",
        f"{one.chats:,} chats, {one.questions:,} questions with evidence"
        + (f"; left out: {left}." if left else "."),
        "Candidates: "
        + ", ".join(f"{t.candidates:,.0f} {t.unit}s" for t in one.tables)
        + " a question can choose from, in the mean.",
        "",
        _HEAD,
    ]
    lines += [_line(table.unit, row) for table in one.tables for row in table.rows]
    lines += ["", "By category, by message, recall@10 / all@5:", ""]
    lines += _categories(one.tables[0])
    lines += ["", "| by others' definitions | " + " | ".join(n for n, _ in ROWS) + " |"]
    lines.append("|---|" + "---:|" * len(ROWS))
    for name, values in one.special.items():
        lines.append(f"| {name} | " + " | ".join(f"{values[n]:.3f}" for n, _ in ROWS) + " |")
    if one.degraded:
        told = ", ".join(f"{count} {part}" for part, count in one.degraded.items())
        lines += ["", f"Answers that lacked a part: {told}."]
    return "\n".join(lines) + "\n"


def _line(unit: str, row: UnitRow) -> str:
    m = row.micro
    values = (
        *m.recall.values(),
        row.macro.recall[10],
        m.any[5],
        m.any[10],
        m.all[5],
        m.all[10],
        m.mrr,
        m.ndcg,
    )
    cells = " | ".join(f"{value:.3f}" for value in values)
    return f"| {unit} | {row.ranking} | {cells} | {row.tokens:,.0f} |"


def _categories(table: UnitTable) -> list[str]:
    names = [row.ranking for row in table.rows]
    lines = ["| category | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for category in table.rows[0].by_category:
        cells = []
        for row in table.rows:
            one = row.by_category[category]
            cells.append(f"{one.recall[10]:.3f} / {one.all[5]:.3f}")
        lines.append(f"| {category} | " + " | ".join(cells) + " |")
    return lines
