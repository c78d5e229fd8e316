"""Published vulnerabilities: none in what is declared or locked, and doctor reports one."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from anaphora import Memory

pytestmark = pytest.mark.internal

from anaphora.ops.doctor.advisories import advisories, affecting  # noqa: E402

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*(?:(?:>=|==)\s*([0-9][^;,\s]*))?")
LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.M)


def declared() -> dict[tuple[str, str], str]:
    """The lowest version of each declared package, by package and requirement."""
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    floors = {}
    for requirement in {one for some in lists for one in some}:
        parts = REQUIREMENT.match(requirement)
        assert parts is not None
        floors[parts[1].lower(), requirement] = parts[2] or "0"
    return floors


@pytest.mark.promise("libraries.holes")
def test_no_declared_or_locked_version_has_one() -> None:
    """Neither the floors of pyproject.toml nor the pins of the lock."""
    floors = declared()
    locked = LOCKED.findall((ROOT / "requirements.lock").read_text("utf-8"))
    assert len(floors) > 40
    assert len(locked) > 100
    found = [(what, affecting(what[0], floor)) for what, floor in floors.items()]
    found += [((name, pin), affecting(name, pin)) for name, pin in locked]
    assert [one for one in found if one[1]] == []


@pytest.mark.promise("libraries.holes")
def test_the_list_names_what_is_declared() -> None:
    """Each row is of a declared package, has a public id, and a range that holds something."""
    names = {name for name, _ in declared()}
    for one in advisories():
        assert one.package in names
        assert re.fullmatch(r"CVE-20\d\d-\d{4,7}", one.id)
        assert one.affects(one.first)
        assert not one.affects(one.fixed)
        assert one.affects(one.fixed + "rc1")
    rows = [(one.package, one.id) for one in advisories()]
    assert rows == sorted(set(rows))


@pytest.mark.promise("libraries.holes")
@pytest.mark.parametrize(
    ("installed", "count"),
    [("6.7", 15), ("6.16", 3), ("6.16.1", 0), ("6.16.1.post1", 0), ("7.1.0", 0), ("nonsense", 15)],
)
def test_doctor_reports_an_installed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str, count: int
) -> None:
    """By package, version, ids and the version to install."""
    folder = tmp_path / "site" / f"pypdf-{installed}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pypdf\nVersion: {installed}\n")
    monkeypatch.syspath_prepend(str(folder.parent))
    assert metadata.version("pypdf") == installed
    with Memory.open(tmp_path / "home", embedder="hashing", warm=False) as memory:
        (check,) = [one for one in memory.doctor() if one.name == "libraries"]
    assert check.ok is (count == 0)
    assert check.detail.count("CVE-") == count
    assert ("6.16.1 or later" in check.detail) is (count > 0)
