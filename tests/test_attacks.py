"""The list of known attacks: every finding has one, and those that are quick are held."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from tools.attacks import Attack
from tools.attacks.__main__ import (
    finding_table,
    findings_without_attack,
    load_attacks,
    try_attack,
)
from tools.attacks.findings import HELD_BY_TESTS

ROOT = Path(__file__).parent
QUICK = ("L2", "K6")
# These limit the memory of their process, mount a disk, or start servers.
APART = ("F26", "K1", "K3")


@pytest.fixture(scope="module")
def attacks() -> list[Attack]:
    return load_attacks()


def test_every_finding_has_an_attack(attacks: list[Attack]) -> None:
    """By its name, with what must hold, or a test that is there; no two attacks say the same."""
    assert findings_without_attack(attacks) == []
    assert len({(attack.finding, attack.holds) for attack in attacks}) == len(attacks)
    for test in chain.from_iterable(HELD_BY_TESTS.values()):
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text("utf-8"), test


def test_a_finding_without_an_attack_is_named(attacks: list[Attack]) -> None:
    """In the table, too; an attack of a finding that is not listed is an error."""
    some = [attack for attack in attacks if attack.finding != "L7"]
    assert findings_without_attack(some) == ["L7"]
    table = list(finding_table(some))
    assert [table[at - 1][:2] for at, line in enumerate(table) if "NO ATTACK" in line] == ["L7"]
    with pytest.raises(ValueError, match="Z9"):
        findings_without_attack([*attacks, Attack("Z9", "low", "nothing", lambda _: None)])


@pytest.mark.parametrize("finding", QUICK)
def test_quick_ones_are_held(attacks: list[Attack], finding: str, tmp_path: Path) -> None:
    """Run in this process; each raises where it succeeds."""
    chosen = [one for one in attacks if one.finding == finding]
    assert chosen
    for number, one in enumerate(chosen):
        folder = tmp_path / str(number)
        folder.mkdir()
        one.run(folder)


@pytest.mark.parametrize("finding", APART)
def test_those_apart_are_held(attacks: list[Attack], finding: str) -> None:
    """Each in a process of its own."""
    for number, one in enumerate(attacks):
        if one.finding == finding:
            problem = try_attack(number)
            if "not tried" in problem:
                pytest.skip(problem)
            assert problem == "", one.holds
