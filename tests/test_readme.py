"""What the README shows is there. The gate runs its commands and programs (tests/test_wheel.py)."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import blocks as blocks_of

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def blocks(language: str) -> list[str]:
    return [block.text for block in blocks_of(README) if block.language == language]


def commands() -> list[str]:
    return [line for block in blocks("console") for line in block.splitlines() if line.strip()]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.promise("cli.documented")
def test_the_demonstration_runs() -> None:
    """Each `make demo` line of the README imports the example and shows turns with why."""
    lines = [line for line in commands() if line.startswith("make demo")]
    assert len(lines) == 2
    for line in lines:
        done = subprocess.run(
            shlex.split(line),
            cwd=ROOT,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "meaning" in done.stdout
        assert "lost jobs" in done.stdout


def test_the_other_make_commands_exist() -> None:
    """Every `make` target that the README names is listed by `make`."""
    listed = subprocess.run(
        ["make"], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=True
    ).stdout
    targets = [shlex.split(line)[1] for line in commands() if line.startswith("make ")]
    assert "test" in targets
    for target in targets:
        assert re.search(rf"^  make {target}\b", listed, re.MULTILINE), target


def test_no_command_goes_unrun() -> None:
    """The README shows no command that these tests do not know how to run."""
    known = ("make ", "anaphora ", "uv tool install ")
    assert [line for line in commands() if not line.startswith(known)] == []


def test_every_program_says_what_it_prints() -> None:
    """The gate, which runs the README where it is installed, knows what each program must print."""
    programs = [block for block in blocks_of(README) if block.language == "python"]
    assert len(programs) >= 4
    assert [block.line for block in programs if block.note != "prints"] == []
