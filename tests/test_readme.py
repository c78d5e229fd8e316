"""Every command and every line of Python in the README runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import blocks as blocks_of

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
# What each block of Python prints, among other things.
FOUND = ("5433", "5433", "openai_agents_session.py", "no model")
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def blocks(language: str) -> list[str]:
    return [block.text for block in blocks_of(README) if block.language == language]


def commands() -> list[str]:
    return [line for block in blocks("console") for line in block.splitlines() if line.strip()]


@pytest.mark.timeout(300)
@pytest.mark.promise("cli.documented")
def test_the_commands_of_the_program_run_in_their_order(tmp_path: Path) -> None:
    """Each `anaphora` line of the README does its work, on the shipped example."""
    lines = [line for line in commands() if line.startswith("anaphora ")]
    assert len(lines) >= 7
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for line in lines:
        done = subprocess.run(
            shlex.split(line),
            cwd=tmp_path,
            env={**ENVIRONMENT, "ANAPHORA_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{line}: {done.stderr}"


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


@pytest.mark.promise("cli.documented")
@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_the_python_runs(number: int, tmp_path: Path) -> None:
    """Each block of Python runs by itself and prints what it found."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    done = subprocess.run(
        [sys.executable, "-c", blocks("python")[number]],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert FOUND[number] in done.stdout


def test_every_block_has_an_outcome() -> None:
    """No block of Python is left without something that it must print."""
    assert len(FOUND) == len(blocks("python"))
