"""The list of known attacks: every finding has one, and those that are quick are held."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.attacks import Attack
from tools.attacks.__main__ import (
    finding_table,
    findings_without_attack,
    load_attacks,
    try_attack,
)
from tools.attacks.findings import FINDINGS

# The findings of the third day, which gave F17 and F18 to none, and those of the day before.
THIRD = {f"F{n}" for n in range(1, 32)} - {"F17", "F18"}
EARLIER = {
    *(f"H{n}" for n in range(1, 4)),
    *(f"M{n}" for n in range(1, 11)),
    *(f"L{n}" for n in range(1, 15)),
}
# Those of them that concern servers and their clients.
SERVERS = {
    *("F1", "F2", "F3", "F9", "F11", "F13", "F14", "F16", "F26", "F27", "F28", "F30", "F31"),
    *("M1", "M2", "M3", "M4", "M7", "M9", "L11", "L12", "L13"),
}
QUICK = ("F14", "F16", "F24", "F28", "L6", "L10")
# These limit the memory of their process, mount a disk, or start servers.
APART = ("F9", "F26", "F31", "K1", "K3", "K7")


@pytest.fixture(scope="module")
def attacks() -> list[Attack]:
    return load_attacks()


def test_every_finding_has_an_attack(attacks: list[Attack]) -> None:
    """By its name, with what must hold; no two attacks say the same."""
    assert FINDINGS.keys() >= THIRD | EARLIER | SERVERS
    assert findings_without_attack(attacks) == []
    assert len({(one.finding, one.holds) for one in attacks}) == len(attacks)
    severities = {one.finding: one.severity for one in attacks}
    assert {severities[name] for name in EARLIER if name[0] == "H"} == {"high"}
    assert {severities[name] for name in EARLIER if name[0] == "M"} == {"medium"}


def test_a_finding_without_an_attack_is_named(attacks: list[Attack]) -> None:
    """In the table, too; an attack of a finding that nobody listed is an error."""
    some = [one for one in attacks if one.finding != "L9"]
    assert findings_without_attack(some) == ["L9"]
    table = list(finding_table(some))
    assert [table[at - 1][:2] for at, line in enumerate(table) if "NO ATTACK" in line] == ["L9"]
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
