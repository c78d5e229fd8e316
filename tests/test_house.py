"""The code stays readable: names, comments, helpers and classes are counted, and only improve."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.house import (
    GENERIC,
    VAGUE,
    Module,
    count_tree,
    name_classes,
    name_locals,
    name_persons,
    name_single_use,
    rows_above,
)

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = '''
"""Nobody reads this.

Whoever does is free to.
"""


class Row:
    def _used_once(self, found):
        one, rows = found  # whose rows these are
        return [_result for _result in rows if one]

    def read(self):
        return self._used_once(1), self.twice(), self.twice()

    def twice(self):
        def inner():
            place = 1
            return place

        return inner


class _Row:
    pass
'''


@pytest.fixture
def sample() -> list[Module]:
    return [Module.parse("sample.py", SAMPLE)]


@pytest.mark.promise("package.readable")
def test_no_figure_is_above_its_ceiling() -> None:
    """A change may lower a figure, and then its ceiling in tools/house.py; it may not raise one."""
    assert rows_above(count_tree(ROOT)) == []


def test_each_kind_of_place_is_counted(sample: list[Module]) -> None:
    """Parameters are no locals; a nested function's locals are its own, and counted once."""
    vague, locals_in_all = name_locals(sample, VAGUE)
    assert vague == ["sample.py:9 _used_once: one", "sample.py:17 inner: place"]
    assert locals_in_all == 4
    assert name_locals(sample, GENERIC)[0] == ["sample.py:9 _used_once: result"]
    persons, comments = name_persons(sample)
    assert [location.split()[1] for location in persons] == ["whose", "Nobody"]
    assert comments == 2
    assert name_single_use(sample, private=True) == (["sample.py:9 _used_once"], 4)
    assert name_classes(sample) == ["Row: sample.py, sample.py"]


def test_an_override_is_no_function_of_its_own() -> None:
    """Of a hook that is called once only the method that declares it counts, not its overrides."""
    hooks = Module.parse(
        "hooks.py",
        """
class Hook(Generic[T]):
    def run(self): ...

class Nearer(base.Hook[int]):
    pass

class Further(Nearer):
    def run(self): ...

    def own(self): ...

def call(hook):
    hook.run(), hook.own()
""",
    )
    assert name_single_use([hooks], private=False) == (["hooks.py:3 run", "hooks.py:11 own"], 4)


def test_a_figure_above_its_ceiling_is_reported(sample: list[Module], tmp_path: Path) -> None:
    """The row, the figure and the ceiling are named."""
    for folder in ("src", "tests", "bench", "tools", "docs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "src" / "sample.py").write_text(sample[0].text)
    problems = rows_above(count_tree(tmp_path))
    assert [problem.split(":")[0] for problem in problems] == [
        "vague", "generic", "persons", "helpers", "classes",
    ]  # fmt: skip
