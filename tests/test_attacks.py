"""The list of known attacks: every serious finding has one, and those that are quick are held."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.attacks import Attack
from tools.attacks.__main__ import load_attacks

# Findings of the third day whose attacks are in modules of this kind, and those of the day before.
SERVERS = {"F13", "F14", "F16", "F26", "F28", "F30"}
EARLIER = {
    *(f"H{n}" for n in range(1, 4)),
    *(f"M{n}" for n in range(1, 11)),
    *(f"L{n}" for n in (1, 2, 3, 4, 5, 6, 8, 11, 12, 13)),
}
QUICK = ("F14", "F16", "L6")


@pytest.fixture(scope="module")
def attacks() -> list[Attack]:
    return load_attacks()


def test_every_finding_has_an_attack(attacks: list[Attack]) -> None:
    """By its name, with what must hold; no two attacks say the same."""
    assert {one.finding for one in attacks} >= SERVERS | EARLIER
    assert len({(one.finding, one.holds) for one in attacks}) == len(attacks)
    severities = {one.finding: one.severity for one in attacks}
    assert {severities[name] for name in EARLIER if name[0] == "H"} == {"high"}
    assert {severities[name] for name in EARLIER if name[0] == "M"} == {"medium"}


@pytest.mark.parametrize("finding", QUICK)
def test_quick_ones_are_held(attacks: list[Attack], finding: str, tmp_path: Path) -> None:
    """Run in this process; each raises where it succeeds."""
    chosen = [one for one in attacks if one.finding == finding]
    assert chosen
    for number, one in enumerate(chosen):
        folder = tmp_path / str(number)
        folder.mkdir()
        one.run(folder)
