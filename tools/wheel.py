"""`make wheel`: build the wheel, install it where no checkout is near, and use it as a newcomer.

In: interpreters (`--python python3.12`, may be repeated; else this one). Out: `dist/` with the
wheel and the source archive, and one line a check. Each interpreter gets an environment of its own
in a temporary folder, with the dependencies at the versions of requirements.lock; the commands run
in an empty folder, with an empty home and none of this shell's settings. The exit code is 1 when a
check failed.

`--borrow FOLDER` takes the dependencies from a folder of installed packages instead of fetching
them, for tests on a machine that is already set up.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "server,mcp"
PINNED = re.compile(r"^([A-Za-z0-9._-]+==[^ \\]+( ; [^\\]+)?)", re.MULTILINE)
FACT = "Staging's database listens on port 5433."


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with the wheel in it: its interpreter, and an empty folder to work in."""

    python: Path
    work: Path

    def run(self, *words: str, expect: int = 0) -> str:
        """What a command of the environment prints; raises when it ends otherwise than expected."""
        done = subprocess.run(
            [*self.command(words[0]), *words[1:]],
            cwd=self.work,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        if done.returncode != expect:
            raise RuntimeError(f"{' '.join(words)}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def command(self, name: str) -> list[str]:
        """How a program of the environment is started."""
        return [str(self.python if name == "python" else self.python.with_name(name))]

    def environment(self) -> dict[str, str]:
        """A shell that knows nothing: no search path, no checkout, a home that is empty."""
        return {"PATH": str(self.python.parent), "HOME": str(self.work), "LANG": "C.UTF-8"}


def main(words: Sequence[str] | None = None) -> int:
    """Build, install, check; one line for each check."""
    parser = argparse.ArgumentParser(prog="python tools/wheel.py", description=__doc__)
    parser.add_argument("--python", action="append", help="an interpreter to install for")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--borrow", type=Path, help="a folder of installed dependencies")
    chosen = parser.parse_args(words)
    wheel = build(chosen.out)
    print(f"built {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB")
    failed = 0
    for python in chosen.python or [sys.executable]:
        with tempfile.TemporaryDirectory(prefix="anaphora-wheel-") as folder:
            installed = install(wheel, python, Path(folder), chosen.borrow)
            print(installed.run("python", "--version").strip())
            for name, outcome in checks(installed):
                print(f"  {'ok  ' if outcome is None else 'FAIL'} {name}")
                if outcome is not None:
                    print(outcome)
                    failed += 1
    return 1 if failed else 0


def build(out: Path) -> Path:
    """The wheel, built from the source archive, so that the archive is known to be whole."""
    shutil.rmtree(out, ignore_errors=True)
    _quietly(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(out))
    archive = next(out.glob("*.tar.gz"))
    with tempfile.TemporaryDirectory() as folder:
        shutil.unpack_archive(archive, folder, filter="data")
        source = next(Path(folder).iterdir())
        _quietly(
            sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out), cwd=source
        )
    return next(out.glob("*.whl"))


def install(wheel: Path, python: str, folder: Path, borrow: Path | None) -> Installed:
    """A new environment with the wheel, and nothing else of this machine."""
    room, work = folder / "venv", folder / "work"
    work.mkdir()
    _quietly(python, "-m", "venv", str(room))
    own = room / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if borrow is not None:
        packages = _quietly(
            str(own), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"
        )
        # A folder named in a .pth file is searched, but its own .pth files (with the checkout that
        # this project is developed in) are not read.
        Path(packages.strip(), "borrowed.pth").write_text(f"{borrow}\n")
        options = ["--no-deps", "--quiet", str(wheel)]
        _quietly(str(own), "-m", "pip", "install", *options)
        return Installed(own, work)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(_pins()) + "\n")
    wanted = f"{wheel}[{EXTRAS}]"
    _quietly(str(own), "-m", "pip", "install", "--quiet", "-c", str(constraints), wanted)
    return Installed(own, work)


def checks(installed: Installed) -> Iterator[tuple[str, str | None]]:
    """Each check with what went wrong, None when nothing did."""
    for name, check in (
        ("the package is the installed one", _installed_one),
        ("the model is inside: meaning is found without a common word", _model_inside),
        ("a conversation is imported and recalled", _conversation),
        ("doctor finds nothing wrong", _doctor),
        ("the page and the API are served", _page),
        ("the server for coding agents answers", _mcp),
    ):
        try:
            check(installed)
        except (RuntimeError, OSError, subprocess.SubprocessError, ValueError) as failure:
            yield name, str(failure)
        else:
            yield name, None


def _installed_one(installed: Installed) -> None:
    where = installed.run("python", "-c", "import anaphora; print(anaphora.__file__)")
    _must(str(installed.python.parents[1]) in where, f"imported from {where}")
    said = installed.run("anaphora", "--version")
    _must(said.startswith("anaphora "), said)


def _model_inside(installed: Installed) -> None:
    installed.run("anaphora", "remember", FACT)
    installed.run("anaphora", "remember", "The cat sleeps on the warm windowsill.")
    found = json.loads(installed.run("anaphora", "recall", "a pet taking a nap", "--json"))
    _must("cat" in found["hits"][0]["text"], f"the first hit is {found['hits'][0]['text']!r}")


def _conversation(installed: Installed) -> None:
    chat = installed.work / "chat.json"
    shutil.copy(ROOT / "examples" / "conversation.json", chat)
    installed.run("anaphora", "conversation", "import", str(chat))
    question = "why did we move the queue away from redis?"
    found = json.loads(installed.run("anaphora", "conversation", "recall", question, "--json"))
    _must(bool(found["hits"]), "no hit")


def _doctor(installed: Installed) -> None:
    installed.run("anaphora", "doctor")


def _page(installed: Installed) -> None:
    with _serving(installed) as (address, token):
        page = _fetched(f"{address}/")
        _must("<html" in page, page[:200])
        for file in re.findall(r'(?:src|href)="(/?[^":]+\.(?:js|css|svg))"', page):
            _fetched(f"{address}/{file.lstrip('/')}")
        health = json.loads(_fetched(f"{address}/health", token))
        _must(health["ok"] is True, f"health says {health}")


def _mcp(installed: Installed) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "check", "version": "1"},
        },
    }
    done = subprocess.run(
        [*installed.command("anaphora"), "mcp"],
        input=json.dumps(hello) + "\n",
        cwd=installed.work,
        env=installed.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    _must('"serverInfo"' in done.stdout, done.stderr[-2000:])


@contextmanager
def _serving(installed: Installed) -> Iterator[tuple[str, str]]:
    server = subprocess.Popen(
        [*installed.command("anaphora"), "serve", "--port", "0"],
        cwd=installed.work,
        env=installed.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said = ""
        for line in server.stdout or ():
            said += line
            if found := re.search(r"(http://[0-9.]+:[1-9][0-9]*)", line):
                token = subprocess.run(
                    [*installed.command("anaphora"), "token", "own"],
                    cwd=installed.work,
                    env=installed.environment(),
                    capture_output=True,
                    text=True,
                    check=True,
                    timeout=120,
                )
                yield found[1], token.stdout.strip()
                return
        raise RuntimeError(f"the server ended: {said}")
    finally:
        server.terminate()
        server.communicate(timeout=60)


def _fetched(address: str, token: str | None = None) -> str:
    asked = urllib.request.Request(address)
    if token is not None:
        asked.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return str(answer.read().decode())


def _pins() -> Iterator[str]:
    for found in PINNED.finditer((ROOT / "requirements.lock").read_text()):
        yield found.group(1).strip()


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise RuntimeError(otherwise)


def _quietly(*words: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}\n{done.stdout}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
