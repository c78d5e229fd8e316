"""Nothing here opens an internet socket, native libraries included."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("offline_child.py")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a filter of Linux system calls")


@pytest.mark.slow
@pytest.mark.promise("package.offline")
@pytest.mark.promise("package.no_telemetry")
def test_no_library_calls_home(tmp_path: Path) -> None:
    """Every lane is used with the bundled model and LanceDB, and a while later (a runtime that
    reports on its use does so after some nine seconds) no internet socket was opened."""
    done = _child(tmp_path, "15")
    assert (done.returncode, done.stdout.strip()) == (0, "offline"), done.stderr
    cache = tmp_path / ".cache"
    assert not cache.exists() or not [*cache.rglob("*deviceid*")]


def test_the_wall_stands(tmp_path: Path) -> None:
    """A process behind it that does open one is ended by the kernel."""
    assert _child(tmp_path, "socket").returncode == -31  # SIGSYS


def _child(folder: Path, wait: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    return subprocess.run(
        [sys.executable, CHILD, folder, wait],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
