"""What is built is what is used: the wheel, installed without this checkout, on every surface."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.promise("package.wheel", "cli.documented")
def test_the_installed_wheel_works_on_every_surface(tmp_path: Path) -> None:
    """The README's installation and all extras, installed offline out of the built wheel's own
    declarations, answer on the command line, MCP, hooks, REST and the page."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.gate", "--out", tmp_path / "dist"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "ANAPHORA_RESIDENT"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for environment in ("readme", "everything"):
        for surface in ("install", "package", "mcp", "hooks"):
            checked = [
                line
                for line in done.stdout.splitlines()
                if line.split()[:2] == [environment, surface]
            ]
            assert checked, f"{environment}: {surface} was not tried\n{done.stdout}"
    for surface in ("rest", "page"):
        assert f"\neverything  {surface}" in done.stdout
    assert "\nreadme      pages" in done.stdout
