"""Test the adapters with the real frameworks, each in an environment of its own.

    python -m tools.adapters                all of them
    python -m tools.adapters pydantic_ai    these
    python -m tools.adapters --pin NAME     resolve the newest versions and pin them again

An environment lies in `.adapters/NAME` and is made again when its pins change: everything in
`tests/adapters/NAME/requirements.txt`, and this checkout without its developer's dependencies.
Only that step needs a package registry. A line for each framework says what was tested with which
version; the exit code is 1 where a test failed or none ran.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.adapters.frameworks import FRAMEWORKS, Framework

ROOT: Final = Path(__file__).resolve().parents[1]
HOME: Final = ROOT / ".adapters"
TEST_TOOLS: Final = (
    "hypothesis",
    "pytest",
    "pytest-randomly",
    "pytest-socket",
    "pytest-timeout",
    "pytest-xdist",
)
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)$")


def main() -> int:
    """Run the tests of the frameworks that are named, by default of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    known = {one.name: one for one in FRAMEWORKS}
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--pin", action="store_true", help="resolve the newest versions first")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"no such framework: {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = [known[name] for name in given.names] or list(FRAMEWORKS)
    if given.pin:
        for one in chosen:
            pin(one)
    passed = [tested(one) for one in chosen]
    return int(not all(passed))


def pin(framework: Framework) -> None:
    """Resolve what the framework, the package and the test tools need now, and write it down."""
    folder = _fresh(framework)
    python = _python(folder)
    wanted = framework.folder / "requirements.in"
    _run(python, "-m", "pip", "install", "--quiet", "--editable", ".", "-r", wanted, *TEST_TOOLS)
    said = _run(python, "-m", "pip", "freeze", "--exclude-editable")
    pins = sorted((line for line in said.splitlines() if _PIN.match(line)), key=str.lower)
    framework.requirements.write_text("\n".join(pins) + "\n")
    _stamp(framework).write_text(_digest(framework))


def tested(framework: Framework) -> bool:
    """Run the tests in the framework's environment; print a line; whether all passed."""
    begun = time.monotonic()
    python = environment(framework)
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("ANAPHORA_", "PYTHON"))}
    done = subprocess.run(
        # What other packages are warned of is theirs to mend.
        [python, "-m", "pytest", "-q", "-n", "0", "-W", "default", str(framework.folder)],
        cwd=ROOT,
        env={**environ, **dict(framework.environ)},
        capture_output=True,
        text=True,
        check=False,
    )
    counts = done.stdout.strip().splitlines()[-1:] or [done.stderr.strip()]
    version = pinned(framework).get(framework.package.lower(), "?")
    took = time.monotonic() - begun
    print(
        f"{framework.name}: {framework.package} {version}: {counts[0]} ({took:.0f} s)", flush=True
    )
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
    return done.returncode == 0


def environment(framework: Framework) -> str:
    """The Python of the framework's environment, which is made where it is not there."""
    folder = HOME / framework.name
    stamp = _stamp(framework)
    if not stamp.exists() or stamp.read_text() != _digest(framework):
        folder = _fresh(framework)
        python = _python(folder)
        quiet = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
        _run(python, *quiet, "-r", framework.requirements)
        _run(python, *quiet, "--editable", ".")
        stamp.write_text(_digest(framework))
    return _python(folder)


def pinned(framework: Framework) -> dict[str, str]:
    """Package → version, as pinned; `ValueError` for a line that pins nothing."""
    found: dict[str, str] = {}
    for line in framework.requirements.read_text().splitlines():
        match = _PIN.match(line)
        if match is None:
            raise ValueError(f"{framework.requirements}: no pinned version: {line!r}")
        found[match[1].lower()] = match[2]
    return found


def _fresh(framework: Framework) -> Path:
    folder = HOME / framework.name
    shutil.rmtree(folder, ignore_errors=True)
    _run(sys.executable, "-m", "venv", folder)
    return folder


def _python(folder: Path) -> str:
    windows = folder / "Scripts" / "python.exe"
    return str(windows if windows.exists() else folder / "bin" / "python")


def _stamp(framework: Framework) -> Path:
    return HOME / framework.name / "made-of"


def _digest(framework: Framework) -> str:
    made_of = framework.requirements.read_bytes() + (ROOT / "pyproject.toml").read_bytes()
    return hashlib.sha256(made_of + sys.version.encode()).hexdigest()


def _run(*command: object) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
