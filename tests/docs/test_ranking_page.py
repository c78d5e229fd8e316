"""docs/ranking.md says what the code does: its formulas are computed, its numbers compared."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from anaphora.core.pasted import ASKING, LOOKED
from anaphora.deep.budget import QUESTION_CHARS
from anaphora.deep.recall import NEEDED, SURE
from anaphora.index.turns.view import LONG as LONG_TURN
from anaphora.index.turns.view import RARE
from anaphora.rank import relevance
from anaphora.rank.budget import LONG
from anaphora.rank.context.choice import SAME, WIDTH
from anaphora.rank.context.scores import _AFTER, _FIRST, DISTINCT, HOLDABLE, PARTIAL, STRONG, TERMS
from anaphora.rank.context.weights import DEFAULT_WEIGHTS
from anaphora.rank.currency import ASKED_AGAIN, COMPARED, REPLACED, UNANSWERED, WHOLLY_ASKED, WINDOW
from anaphora.rank.memories import DAY_MICROS, MemoryCandidates, MemoryScores, rank_memories
from anaphora.rank.silence import CONSTANT, FLOOR, MEANING, UNSEEN
from anaphora.recall.currency import THRESHOLD
from anaphora.recall.passages import FAR
from anaphora.recall.query import BRIEF, MOST_BYTES
from anaphora.values.memories import HalfLives

pytestmark = pytest.mark.internal

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "ranking.md").read_text("utf-8")
MEMORIES = PAGE[PAGE.index("## Lasting memories") : PAGE.index("## Projects")]
RESULTS = ROOT / "bench" / "results"

_WORDS = {"three": 3, "seven": 7}
_SIGNS = {"−": "-", "·": "*", "×": "*", "^": "**", "ln(": "math.log(", "exp(": "math.exp("}


def formula(name: str) -> Callable[..., float]:
    """What stands behind `name =` on the page, as a function of the names in it."""
    found = re.search(rf"^    {name} += (.+)$", MEMORIES, re.MULTILINE)
    assert found, name
    text = found[1]
    for sign, python in _SIGNS.items():
        text = text.replace(sign, python)
    code = compile(text, "docs/ranking.md", "eval")
    return lambda **values: float(eval(code, {"math": math}, values))


def rise(name: str) -> Callable[[float], float]:
    """ "0 up to similarity a, rising to 1 at b", as a function of similarity."""
    found = re.search(
        rf"^    {name} += 0 up to similarity ([\d.]+), rising to 1 at ([\d.]+)$", PAGE, re.MULTILINE
    )
    assert found, name
    low, high = float(found[1]), float(found[2])
    return lambda x: min(1.0, max(0.0, (x - low) / (high - low)))


def scored(cosine: float, words: float, days: float, n: int) -> MemoryScores:
    """What the code makes of one semantic memory."""
    now = 10**18
    given = MemoryCandidates(
        ids=("a",),
        cosine=np.array([cosine]),
        words=np.array([words]),
        type=np.array([1]),
        created=np.array([now]),
        reinforced_at=np.array([now - round(days * DAY_MICROS)]),
        count=np.array([n]),
    )
    return rank_memories(given, now, HalfLives())


def by_the_page(cosine: float, words: float, days: float, n: int) -> tuple[float, ...]:
    """(similarity, decay, reinforcement, score) as the page has them."""
    # The code rounds to six digits; of next to nothing that makes nothing.
    similar = round(formula("similarity")(cosine=cosine, words=words), 6)
    half_life = number(r"half-lives of \d+, (\d+) and \d+ days")
    faded = formula("decay")(days=days, half_life=half_life)
    x = similar * faded
    raised = 1.0
    if n and x:
        given = {"relevance": rise("relevance")(similar), "exact": rise("exact")(similar)}
        raised = max(1.0, formula("reinforcement")(x=x, n=n, **given))
    score = formula("score")(similarity=similar, decay=faded, reinforcement=raised)
    return similar, faded, raised, score


def number(pattern: str) -> float:
    """The one number that the page has where `pattern` says."""
    found = re.findall(pattern, PAGE)
    assert len(found) == 1, (pattern, found)
    return float(_WORDS.get(found[0], str(found[0]).replace(",", "")))


@pytest.mark.promise("docs.figures")
@given(
    cosine=some.floats(0, 1),
    words=some.floats(0, 1),
    days=some.floats(0, 1_000),
    n=some.integers(0, 60),
)
def test_the_formula_of_memories_is_that_of_the_code(
    cosine: float, words: float, days: float, n: int
) -> None:
    """Evaluated as it stands on the page it gives what recall gives, wherever one looks."""
    code = scored(cosine, words, days, n)
    told = by_the_page(cosine, words, days, n)
    parts = (code.similarity, code.decay, code.reinforcement, code.score)
    # The code rounds similarity to six digits; where restating begins to count, that shows.
    assert np.allclose([float(part[0]) for part in parts], told, atol=1e-3)


@pytest.mark.promise("docs.figures")
def test_the_table_of_restating_is_what_the_code_scores() -> None:
    """Each cell of the table is the score of a memory of that similarity, said so often."""
    header, *rows = _table("| similarity | never again |")
    counts = [0 if "never" in cell else 1 if cell == "once" else int(cell.split()[0])
              for cell in header[1:]]  # fmt: skip
    assert len(rows) >= 5
    for first, *cells in rows:
        made = [f"{float(scored(float(first), 0.0, 0.0, n).score[0]):.2f}" for n in counts]
        assert cells == made, first


@pytest.mark.promise("docs.figures")
def test_the_constants_on_the_page_are_those_of_the_code() -> None:
    """Numbers that stand in the code stand on the page as they are there."""
    lives = HalfLives()
    told = re.findall(r"half-lives of (\d+), (\d+) and (\d+) days for episodic, semantic", PAGE)
    assert [tuple(map(float, one)) for one in told] == [
        (lives.episodic, lives.semantic, lives.procedural)
    ]
    figures = {
        r"^([\d,]+) bytes: all of a question": MOST_BYTES,
        r"question of more than (\d+) characters with": BRIEF,
        r"these are more than ([\d,]+) characters": ASKING,
        r"Only ([\d,]+) characters at either end": LOOKED,
        r"Of a turn of more than (\d+) tokens that does": LONG,
        r"more than ([\d,]+) tokens therefore": LONG_TURN,
        r"those that more than (\d+) turns hold": RARE,
        r"a turn of more than ([\d,]+) characters says is": FAR,
        r"A deep question has at most ([\d,]+) characters": QUESTION_CHARS,
        r"Among the first (\d+) hits": WINDOW,
        r"From ([\d.]+) on the newer one": THRESHOLD,
        r"From ([\d.]+) on the older one": REPLACED,
        r"Only the (\d+) best hits": COMPARED,
        r"word of the question needs ([\d.]+)$": WHOLLY_ASKED,
        r"loses ([\d.]+) of the best score": UNANSWERED,
        r"and ([\d.]+) if it asks the same": ASKED_AGAIN,
        r"^    odds = −([\d.]+) \+": -CONSTANT,
        r"log odds = −([\d.]+) \+": -relevance.CONSTANT,
        r"\+ ([\d.]+) · log odds": relevance.ANSWERS,
        r"\+ ([\d.]+) · \(it is the first": relevance.FIRST,
        r"\+ ([\d.]+) · \(its words": relevance.LEAD,
        r"\+ ([\d.]+) · \(the share": relevance.COVERS,
        r"from a probability of ([\d.]+) on": relevance.THRESHOLD,
        r"answer with ([\d.]+) or more": relevance.MEMORY_THRESHOLD,
        r"\+ ([\d.]+) · cosine": MEANING,
        r"cosine − ([\d.]+) · unseen": -UNSEEN,
        r"Below ([\d.]+) there are no hits": FLOOR,
        r"words \+ ([\d.]+) · closeness": DEFAULT_WEIGHTS.meaning,
        r"from ([\d.]+) on \(and two good targets\) strong": STRONG,
        r"strong, from ([\d.]+) on partial": PARTIAL,
        r"best · min\((\d+), mean": DISTINCT,
        r"√\(min\((\d+), terms\)\)": TERMS,
        r"mean of the first (\w+) /": _FIRST,
        r"mean of the next (\w+)\)": _AFTER,
        r"the (\d+) heaviest": HOLDABLE,
        r"near-duplicates go \((\d+)%": 100 * SAME,
        r"runs of (\w+) words": WIDTH,
        r"probability of ([\d.]+) or more": SURE,
    }
    assert {pattern: number(f"(?m){pattern}") for pattern in figures} == figures
    assert PAGE.count("Three hits whose neighbourhood") == 1 == NEEDED - 2


@pytest.mark.promise("docs.figures")
def test_the_results_on_the_page_and_in_the_readme_are_those_that_were_measured() -> None:
    """Shares of evidence on both pages are those of bench/results."""
    report = json.loads((RESULTS / "conversation.json").read_text())
    measured = {
        form: {row["name"]: f"{row['overall']['recall_at_10']:.2f}" for row in _rows(report[form])}
        for form in ("realtalk", "beam")
    }
    readme = (ROOT / "README.md").read_text("utf-8")
    for form, label in (("realtalk", "REALTALK"), ("beam", "BEAM-100K")):
        shares = measured[form]
        row = next(line for line in readme.splitlines() if line.startswith(f"| {label}"))
        told = re.findall(r"0\.\d\d", row)
        assert told == _three(shares), (label, shares)
    plain = " ".join(PAGE.split())
    bm25, cosine, ours = zip(
        *(_three(measured[form]) for form in ("realtalk", "beam")), strict=True
    )
    assert f"from {bm25[0]} (BM25) and {cosine[0]} (cosine) to {ours[0]} on REALTALK" in plain
    assert f"from {bm25[1]} and {cosine[1]} to {ours[1]} on BEAM-100K" in plain


def _rows(report: Any) -> list[Any]:
    return list(report["rows"])


def _three(shares: dict[str, str]) -> list[str]:
    """BM25, cosine, and the last row, which is ours."""
    bm25 = next(v for k, v in shares.items() if "bm25" in k.lower() or k == "words")
    cosine = next(v for k, v in shares.items() if "cosine" in k.lower() or k == "vector")
    return [bm25, cosine, list(shares.values())[-1]]


def _table(start: str) -> list[list[str]]:
    """The cells of the table that begins so: its head, then its rows."""
    lines = PAGE[PAGE.index(start) :].split("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [cells[0], *cells[2:]]


@pytest.mark.promise("docs.figures")
def test_what_holds_now_is_as_good_as_both_pages_say() -> None:
    """The shares of stories that had no part in the fit are those of bench/results/changes.json."""
    rows = json.loads((RESULTS / "changes.json").read_text())["rows"]
    held_out = [
        row
        for row in rows
        if "held out" in row["part"] and row["kind"] == "all that can be answered"
    ]

    def share(told: str, name: str) -> str:
        chosen = [row for row in held_out if row["told"] == told]
        asked = sum(row["asked"] for row in chosen)
        return f"{sum(row[name] * row['asked'] for row in chosen) / asked:.2f}"

    readme = (ROOT / "README.md").read_text("utf-8")
    for name, line in (
        ("right_first", "the value that holds stands before every outdated one"),
        ("among_first", "the answer is among the first three hits"),
    ):
        shares = " / ".join(share(told, name) for told in ("chats", "facts"))
        assert re.search(rf"^\| {line} \| [\d. /]+ \| \*\*{shares}\*\* \|$", readme, re.MULTILINE)
    plain = " ".join(PAGE.split())
    right, first = (
        tuple(share(told, name) for told in ("chats", "facts"))
        for name in ("right_first", "first_of_all")
    )
    assert f"in {right[0]} of the questions to chats and {right[1]} of those to facts" in plain
    assert f"the first hit of all holds it in {first[0]} and {first[1]}" in plain
