"""Build the wheel of a source tree."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["CommandFailed", "build_wheel", "run_quietly"]


class CommandFailed(RuntimeError):
    """A command ended with an error; the message has what it printed."""


def build_wheel(source: Path, out: Path) -> Path:
    """The wheel, built from the source archive, so that the archive is known to be whole."""
    shutil.rmtree(out, ignore_errors=True)
    hatchling = (sys.executable, "-m", "hatchling", "build")
    run_quietly(*hatchling, "-t", "sdist", "-d", str(out.resolve()), cwd=source)
    archive = next(out.glob("*.tar.gz"))
    with tempfile.TemporaryDirectory() as folder:
        shutil.unpack_archive(archive, folder, filter="data")
        unpacked = next(Path(folder).iterdir())
        run_quietly(*hatchling, "-t", "wheel", "-d", str(out.resolve()), cwd=unpacked)
    return next(out.glob("*.whl"))


def run_quietly(*words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """What a command prints; raises `CommandFailed` with its output when it fails."""
    done = subprocess.run(
        words, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        raise CommandFailed(f"{' '.join(words)}\n{done.stdout}\n{done.stderr}")
    return done.stdout
