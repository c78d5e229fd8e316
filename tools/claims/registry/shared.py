"""Values that several claims share."""

from __future__ import annotations

from typing import Any

from tools.claims.model import Value
from tools.claims.sources import at, computed, mean

from anaphora.rank.silence import FLOOR_OF

__all__ = [
    "Row",
    "always",
    "category",
    "history",
    "label_found",
    "label_share",
    "placed",
    "recalled",
]
__all__ += ["share_first", "silenced"]

Row = dict[str, Any]


def recalled(form: str, ranking: str) -> Value:
    """recall@10 of REALTALK or BEAM, chats 6 to 10."""
    return at("conversation", form, "rows", (("name", ranking),), "overall", "recall_at_10")


def category(form: str, name: str) -> Value:
    """recall@10 of the full ranking for one kind of question."""
    row = (("name", "full ranking"),)
    return at("conversation", form, "rows", row, "by_category", name, "recall_at_10")


def share_first(told: str, name: str) -> Value:
    """A share of the questions to the stories that are held out, told as chats or as facts."""

    def chosen(row: Row) -> bool:
        is_all = row["kind"] == "all that can be answered"
        return is_all and "held out" in row["part"] and row["told"] == told

    return mean("changes", chosen, name, "asked", f"{name}, {told}, all that is held out")


def always(part: str, form: str) -> Value:
    """Over the held-out prompts: the share of evidence among the five best hits, their tokens, or
    the tokens of what was put in."""

    def compute(content: Any) -> float:
        rows = [row for row in content["prompts"] if not row["fitted"]]
        if part == "tokens":
            return float(sum(row["always"][2] for row in rows) / len(rows))
        if part == "own tokens":
            return float(sum(row["tokens"] for row in rows) / len(rows))
        return float(sum(row["always"][1] for row in rows) / sum(row["always"][0] for row in rows))

    return computed("injection", compute, f"over the held-out prompts: {part}", form)


def silenced(kind: str, choose: Any, form: str, *, times: float = 1) -> Value:
    """The share of held-out questions of a kind that get no hit; `choose` picks the group."""

    def compute(content: Any) -> float:
        groups: dict[str, list[float]] = {}
        for row in content["asked"]:
            if not row["fitted"] and row["kind"] == kind:
                silent = row["chance"] < FLOOR_OF[row["lane"]]
                groups.setdefault(row["where"], []).append(float(silent))
        shares = [sum(each) / len(each) for each in groups.values()]
        return float(choose(shares))

    source = f"{kind}: chance below the floor of its lane, {choose.__name__} over the groups"
    return computed("silence", compute, source, form, times=times)


def history(ranking: str, form: str, name: str, *, kind: str = "history") -> Value:
    """A share over all commit subjects or bug reports."""
    row = (("kind", kind), ("repo", "all"), ("ranking", ranking), ("form", form))
    return at("project", "rows", row, name)


def label_share(label: str, form: str = ".2f", *, times: float = 1) -> Value:
    """How many of the commit subjects have a label."""

    def compute(content: Any) -> float:
        rows = [
            row for row in content["quality"] if (row["kind"], row["repo"]) == ("history", "all")
        ]
        total = sum(row["questions"] for row in rows)
        return float(sum(row["questions"] for row in rows if row["label"] == label) / total)

    return computed("project", compute, f"share of commit subjects: {label}", form, times=times)


def label_found(label: str, form: str = ".2f", *, times: float = 1) -> Value:
    """How many of the packages with a label have a wanted file among the first five."""

    def compute(content: Any) -> float:
        key = ("history", "all", label)
        (row,) = (r for r in content["quality"] if (r["kind"], r["repo"], r["label"]) == key)
        return float(row["found"] / row["questions"])

    return computed("project", compute, f"wanted file among five: {label}", form, times=times)


def placed(embedder: str, half: str, name: str, chats: int) -> Value:
    """recall@10 of REALTALK with an embedder."""

    def compute(content: Any) -> float:
        rows = content["embedders"][embedder]["recalled"]
        (row,) = (
            r
            for r in rows
            if r["data"] == "realtalk" and r["half"] == half and len(r["chats"].split(",")) == chats
        )
        return float(row[name])

    return computed("embedders", compute, f"{embedder}, {half}, {chats} chats: {name}")
