"""What is built is what is used here: the wheel by itself, without this checkout."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.timeout(600)
@pytest.mark.promise("package.wheel")
def test_the_wheel_works_where_no_checkout_is_near(tmp_path: Path) -> None:
    """Built, installed into an empty environment and used from an empty folder, the wheel has its
    commands, its model, its page and its servers."""
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "tools" / "wheel.py",
            "--out",
            tmp_path / "dist",
            "--borrow",
            sysconfig.get_path("purelib"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  ok   ") == 6, done.stdout
