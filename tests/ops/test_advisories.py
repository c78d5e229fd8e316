"""Published vulnerabilities: none in what is declared or locked, and doctor reports one."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from anaphora import Check, Memory

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LIST = ROOT / "src/anaphora/ops/doctor/advisories.json"
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


def library_line(folder: Path, versions: dict[str, str], patch: pytest.MonkeyPatch) -> Check:
    """What doctor says of libraries where these versions are installed before all others."""
    for name, version in versions.items():
        info = folder / "site" / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    patch.syspath_prepend(str(folder / "site"))
    assert all(metadata.version(name) == version for name, version in versions.items())
    with Memory.open(folder / "home", embedder="hashing", warm=False) as memory:
        (check,) = [one for one in memory.doctor() if one.name == "libraries"]
    return check


@pytest.mark.promise("libraries.holes")
@pytest.mark.parametrize("which", ["declared", "locked"])
def test_no_declared_or_locked_version_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """Neither the floors of pyproject.toml nor the pins of the lock."""
    if which == "declared":
        versions = {name: floor for (name, _), floor in declared().items()}
    else:
        versions = dict(LOCKED.findall((ROOT / "requirements.lock").read_text("utf-8")))
    listed = {row[0] for row in json.loads(LIST.read_text("utf-8"))}
    assert listed <= versions.keys()
    chosen = {name: versions[name] for name in listed}
    check = library_line(tmp_path, chosen, monkeypatch)
    assert check.ok, check.detail


@pytest.mark.promise("libraries.holes")
@pytest.mark.parametrize(
    ("installed", "count"),
    [("6.7", 15), ("6.16", 3), ("6.16.1rc1", 3), ("6.16.1", 0), ("7.1.0", 0), ("nonsense", 15)],
)
def test_doctor_reports_an_installed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str, count: int
) -> None:
    """By package, version, ids and the version to install."""
    check = library_line(tmp_path, {"pypdf": installed}, monkeypatch)
    assert check.ok is (count == 0)
    assert check.detail.count("CVE-") == count
    assert ("6.16.1 or later" in check.detail) is (count > 0)
