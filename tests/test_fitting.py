"""The fits write constants that exist, and change nothing else in a module."""

from __future__ import annotations

import ast
import math
from dataclasses import replace
from pathlib import Path

import pytest
from corpus.reading import RelationKind, read_split, read_stories
from tools.fitting import constants
from tools.fitting.__main__ import NAMES
from tools.fitting.constants import Constant, UnknownConstant, Value, rewritten
from tools.fitting.steps import SILENCE, STEPS, TRIED, UNASKED
from tools.judge.homes import REPLACES, related_places

WRITTEN = (
    Constant("embed/calibration.py", "MINILM", 4, call="apart"),
    Constant("embed/calibration.py", "MINILM", 4, call="told"),
    *(Constant("rank/turns.py", f"Weights.{name}") for name in TRIED),
    *(
        Constant("rank/memories.py", name)
        for name in ("WORDS_TRUST", "PARTIAL_TRUST", "DECAY_FLOOR", "UNSURE", "SURE")
    ),
    Constant("ingest/linking.py", "CLOSE"),
    Constant("ingest/linking.py", "NEAR"),
    *(
        Constant("rank/silence.py", name)
        for name in (*SILENCE, "TURN_FLOOR", "HIT_TURNS", "HIT_FACTS")
    ),
    *(
        Constant("rank/silence.py", f"READ_{name}")
        for name in (*SILENCE, "FEW", "ODDS", "HIT_TURNS", "HIT_FACTS")
    ),
    Constant("rank/silence.py", "CROWD"),
    Constant("rank/confidence.py", "TURN_WEIGHTS"),
    Constant("rank/confidence.py", "MEMORY_WEIGHTS"),
    *(Constant("rank/relevance.py", name, 3) for name in ("CONSTANT", *UNASKED)),
    *(Constant("rank/relevance.py", f"READ_{name}", 3) for name in ("CONSTANT", *UNASKED, "ODDS")),
)
SOURCE = '''"""Größe: NAME: Final = 1.0"""

NAME: Final = 0.80  # näher als -0.8
"""NAME: Final = 2.0"""
PLACES: Final = Places(apart=0.1, told=0.2)
WEIGHTS: Final[Weights] = (-1.5, 2.0)


class Weights:
    """NAME"""

    # NAME: float = 3.0
    NAME: float = 1.5
'''


@pytest.mark.parametrize("constant", WRITTEN, ids=lambda one: one.shown)
def test_every_constant_that_a_fit_writes_stands_where_it_says(constant: Constant) -> None:
    source = constant.file.read_text("utf-8")
    value = constant.read()
    assert rewritten(source, constant, value).count("\n") == source.count("\n")
    other: Value = tuple(one + 1 for one in value) if isinstance(value, tuple) else value + 1
    assert constant.read(rewritten(source, constant, other)) == pytest.approx(other)


@pytest.mark.parametrize(
    ("constant", "value", "old", "new"),
    [
        (Constant("", "NAME"), 0.754, "NAME: Final = 0.80  #", "NAME: Final = 0.75  #"),
        (Constant("", "NAME"), -0.001, "NAME: Final = 0.80  #", "NAME: Final = 0.0  #"),
        (Constant("", "Weights.NAME"), 2.0, "    NAME: float = 1.5", "    NAME: float = 2.0"),
        (Constant("", "PLACES", 4, "told"), 0.31415, "told=0.2", "told=0.3141"),
        (Constant("", "WEIGHTS"), (1.0, -2.25), "(-1.5, 2.0)", "(1.0, -2.25)"),
    ],
)
def test_only_the_value_changes(constant: Constant, value: Value, old: str, new: str) -> None:
    assert SOURCE.count(old) == 1
    assert rewritten(SOURCE, constant, value) == SOURCE.replace(old, new)


@pytest.mark.parametrize(
    "constant",
    [
        Constant("", "OTHER"),
        Constant("", "Weights.OTHER"),
        Constant("", "Other.NAME"),
        Constant("", "PLACES", call="other"),
        Constant("", "NAME", call="apart"),
    ],
)
def test_an_unknown_name_is_refused(constant: Constant) -> None:
    with pytest.raises(UnknownConstant):
        rewritten(SOURCE, constant, 1.0)


def test_a_name_that_stands_twice_is_refused() -> None:
    with pytest.raises(UnknownConstant):
        rewritten(SOURCE + "\nNAME: Final = 3.0\n", Constant("", "NAME"), 1.0)


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="nan"):
        rewritten(SOURCE, Constant("", "NAME"), math.nan)


def test_nothing_is_written_where_one_constant_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "SOURCE", tmp_path)
    for module in ("a.py", "b.py"):
        (tmp_path / module).write_text(SOURCE, "utf-8")
    with pytest.raises(UnknownConstant):
        constants.write({Constant("a.py", "NAME"): 1.0, Constant("b.py", "OTHER"): 1.0})
    assert (tmp_path / "a.py").read_text("utf-8") == SOURCE


def test_the_command_knows_every_step() -> None:
    assert tuple(STEPS) == NAMES


def test_what_is_said_again_is_replaced_and_replaces_as_well() -> None:
    story = read_stories(authors=[read_split().train[0]])[0]
    keys = list(story.texts("facts"))[:4]
    pairs: tuple[tuple[int, int, RelationKind], ...] = (
        (0, 1, "replaces"),
        (1, 2, "same"),
        (2, 3, "replaces"),
    )
    relations = tuple(
        replace(story.relations[0], lane="facts", older=keys[old], newer=keys[new], kind=kind)
        for old, new, kind in pairs
    )
    first, second, again, third = keys
    related = related_places(replace(story, relations=relations), "facts")
    assert {pair for pair, label in related.items() if label == REPLACES} == {
        (first, second),
        (first, again),
        (first, third),
        (second, third),
        (again, third),
    }


def test_every_module_that_is_named_in_the_docstring_is_there() -> None:
    from tools import fitting

    told = ast.get_docstring(ast.parse(Path(fitting.__file__).read_text("utf-8")))
    assert told is not None
    for constant in WRITTEN:
        assert constant.module in told
        assert constant.name.rpartition(".")[2] in told
