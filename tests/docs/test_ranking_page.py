"""docs/ranking.md says what the code does: its formulas are computed. Its numbers are claims."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from anaphora.rank.memories import DAY_MICROS, MemoryCandidates, MemoryScores, rank_memories
from anaphora.values.memories import HalfLives

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


def _table(start: str) -> list[list[str]]:
    """The cells of the table that begins so: its head, then its rows."""
    lines = PAGE[PAGE.index(start) :].split("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [cells[0], *cells[2:]]
