"""Environments with the wheel really installed: its own metadata resolved, offline.

`make_environment` gives an `Environment`; `Environment.user()` gives a `User`, an empty folder with
an empty home, in which the programs of the environment run without a variable of this shell.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from tools.gate.build import run_quietly
from tools.gate.wheelhouse import ensure_pip

__all__ = ["Environment", "User", "Wanted", "all_extras", "make_environment"]

# An installation must not take what the shell or a configuration offers besides the wheelhouse.
_NOT_PASSED: Final = ("PIP_", "UV_", "PYTHON", "VIRTUAL_ENV")
# Another stamp than the process's own: it makes room for a newer version by ending.
_END_RESIDENT: Final = """
import os
from anaphora.system import resident
try:
    connection = resident.connect(dict(os.environ))
    resident.ask(connection, {"call": "hello", "stamp": "the gate is done"}, 5.0)
except resident.NoResident:
    pass
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An environment to make: its name, and the extras that are asked for."""

    name: str
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Environment:
    """An installed wheel: the interpreter of its environment, and a folder for its users."""

    name: str
    extras: tuple[str, ...]
    python: Path
    folder: Path

    @property
    def bin(self) -> Path:
        """Where its programs are."""
        return self.python.parent

    def has(self, extra: str) -> bool:
        """Whether this extra is installed."""
        return extra in self.extras

    def user(self, purpose: str) -> User:
        """A new user: an empty home and an empty working folder."""
        for number in count():
            folder = self.folder / f"{purpose}-{number}"
            if not folder.exists():
                break
        (folder / "home").mkdir(parents=True)
        (folder / "work").mkdir()
        return User(self, folder)

    def close(self) -> None:
        """End the process that its hooks share."""
        user = self.user("end")
        subprocess.run(
            [self.python, "-c", _END_RESIDENT], cwd=user.work, env=user.variables,
            capture_output=True, check=False, timeout=60,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class User:
    """A home and a working folder in which programs of an environment run."""

    environment: Environment
    folder: Path

    @property
    def work(self) -> Path:
        """The folder in which commands run."""
        return self.folder / "work"

    @property
    def home(self) -> Path:
        """The user's home."""
        return self.folder / "home"

    @property
    def variables(self) -> dict[str, str]:
        """The whole environment of a process: a search path, a home and a language."""
        path = f"{self.environment.bin}{os.pathsep}{os.defpath}"
        system = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
        return {"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", **system}

    def command(self, *words: str) -> list[str]:
        """How a program of the environment is started."""
        return [str(self.environment.bin / words[0]), *words[1:]]

    def run(
        self, *words: str, stdin: str = "", expect: int = 0, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment; raises when it ends otherwise than expected."""
        done = subprocess.run(
            self.command(*words), input=stdin, cwd=self.work, env=self.variables,
            capture_output=True, text=True, check=False, timeout=timeout,
        )  # fmt: skip
        if done.returncode != expect:
            raise RuntimeError(
                f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
        return done

    def json(self, *words: str) -> Any:
        """What a command prints as JSON."""
        return json.loads(self.run(*words).stdout)


def all_extras(source: Path) -> tuple[str, ...]:
    """Every extra that a tree declares."""
    project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
    return tuple(project["optional-dependencies"])


def make_environment(
    wanted: Wanted, wheel: Path, wheelhouse: Path, folder: Path, python: str = sys.executable
) -> Environment:
    """Install the wheel with the extras, out of the wheelhouse and without an index."""
    target = folder / wanted.name
    users = target / "users"
    users.mkdir(parents=True)
    uv = shutil.which("uv")
    if uv is not None and wanted.name == "readme":
        own = _install_tool(uv, wanted, wheel, wheelhouse, target, python)
    else:
        run_quietly(python, "-m", "venv", "--without-pip", str(target / "venv"))
        own = target / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        ensure_pip()
        installer: Sequence[str] = (
            (sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check",
             "--python", str(own), "install", "--no-compile")
            if uv is None
            else (uv, "pip", "install", "--python", str(own), "--offline")
        )  # fmt: skip
        run_quietly(
            *installer, "--quiet", "--no-index", "--find-links", str(wheelhouse),
            _requirement(wheel, wanted.extras), cwd=users, env=_quiet_shell(),
        )  # fmt: skip
    return Environment(wanted.name, wanted.extras, own, users)


def _install_tool(
    uv: str, wanted: Wanted, wheel: Path, wheelhouse: Path, target: Path, python: str
) -> Path:
    """Install as the README says, with `uv tool install`."""
    places = {"UV_TOOL_DIR": str(target / "tools"), "UV_TOOL_BIN_DIR": str(target / "bin")}
    run_quietly(
        uv, "tool", "install", "--quiet", "--offline", "--no-index", "--python", python,
        "--find-links", str(wheelhouse), _requirement(wheel, wanted.extras),
        cwd=target / "users", env=_quiet_shell() | places,
    )  # fmt: skip
    room = target / "tools" / "anaphora"
    return room / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _requirement(wheel: Path, extras: Sequence[str]) -> str:
    named = f"[{','.join(extras)}]" if extras else ""
    return f"anaphora{named} @ {wheel.resolve().as_uri()}"


def _quiet_shell() -> dict[str, str]:
    passed = {name: v for name, v in os.environ.items() if not name.startswith(_NOT_PASSED)}
    return passed | {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}
