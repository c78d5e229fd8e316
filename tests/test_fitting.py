"""The fits write numbers that exist, and change nothing else in the file of them."""

from __future__ import annotations

import ast
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from corpus.reading import RelationKind, read_split, read_stories
from tools.fitting.__main__ import NAMES
from tools.fitting.constants import FILE, Constant, UnknownConstant, Value, write
from tools.fitting.steps import SILENCE, STEPS, TRIED, UNASKED
from tools.judge.homes import REPLACES, related_places

WRITTEN = (
    *(Constant("calibration", name, 4) for name in ("apart", "told")),
    *(Constant("turns", name) for name in TRIED),
    *(
        Constant("memories", name)
        for name in ("WORDS_TRUST", "PARTIAL_TRUST", "DECAY_FLOOR", "UNSURE", "SURE")
    ),
    *(Constant("links", name) for name in ("CLOSE", "NEAR")),
    *(Constant("holding", name, 4) for name in json.loads(FILE.read_text("utf-8"))["holding"]),
    *(Constant("silence", name) for name in (*SILENCE, "TURN_FLOOR", "HIT_TURNS", "HIT_FACTS")),
    *(
        Constant("silence", f"READ_{name}")
        for name in (*SILENCE, "FEW", "ODDS", "HIT_TURNS", "HIT_FACTS")
    ),
    Constant("silence", "CROWD"),
    *(Constant("confidence", name) for name in ("TURN_WEIGHTS", "MEMORY_WEIGHTS")),
    *(Constant("unasked", name, 3) for name in ("CONSTANT", *UNASKED)),
    *(Constant("unasked", f"READ_{name}", 3) for name in ("CONSTANT", *UNASKED, "ODDS")),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Path(shutil.copy(FILE, tmp_path))


@pytest.mark.parametrize("constant", WRITTEN, ids=lambda one: one.shown)
def test_every_number_that_a_fit_writes_is_there(constant: Constant, file: Path) -> None:
    value = constant.read()
    other: Value = tuple(one + 1 for one in value) if isinstance(value, tuple) else value + 1
    write({constant: other}, file)
    assert constant.read(file) == pytest.approx(other)
    write({constant: value}, file)
    assert file.read_bytes() == FILE.read_bytes()


def test_a_number_is_rounded(file: Path) -> None:
    told, crowd = Constant("calibration", "told", 4), Constant("silence", "CROWD")
    write({told: 0.31415, crowd: (1.0, -2.254, -0.001)}, file)
    assert (told.read(file), crowd.read(file)) == (0.3141, (1.0, -2.25, 0.0))


@pytest.mark.parametrize("constant", [Constant("turns", "other"), Constant("other", "meaning")])
def test_nothing_is_written_where_one_is_unknown(constant: Constant, file: Path) -> None:
    with pytest.raises(UnknownConstant):
        write({Constant("turns", "meaning"): 9.0, constant: 1.0}, file)
    assert file.read_bytes() == FILE.read_bytes()


def test_what_is_no_number_is_refused(file: Path) -> None:
    with pytest.raises(ValueError, match="nan"):
        write({Constant("turns", "meaning"): math.nan}, file)


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


def test_every_part_and_name_stands_in_the_docstring() -> None:
    from tools import fitting

    told = ast.get_docstring(ast.parse(Path(fitting.__file__).read_text("utf-8")))
    assert told is not None
    for constant in WRITTEN:
        assert constant.part in told
        assert constant.part == "holding" or constant.name in told
