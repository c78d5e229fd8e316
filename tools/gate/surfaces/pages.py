"""Commands and programs of a page, in the environment that the page names, from an empty folder.

`check_pages` starts one process for each page, `python -m tools.gate.surfaces.pages`, which runs
the blocks as the tests of the documents do (tests/docs), with the programs of the environment.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.docs.pages import Block, blocks
from tests.docs.running import World, commands
from tools.gate.environments import Environment
from tools.gate.report import Report

__all__ = ["InEnvironment", "check_page", "extras_mentioned", "extras_named"]

ROOT: Final = Path(__file__).resolve().parents[3]
_INSTALL: Final = re.compile(r"^(?:uv tool|uv pip|pipx|pip|python -m pip) install\b")
# Blocks of one page share their names, as in an interpreter that is left open.
_INTERPRETER: Final = """
import contextlib, io, json, sys, traceback
names = {"__name__": "__main__"}
answers = sys.stdout
for line in sys.stdin:
    block, printed, error = json.loads(line), io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(block["text"], block["name"], "exec", dont_inherit=True), names)
    except BaseException:
        error = traceback.format_exc()
    print(json.dumps({"printed": printed.getvalue(), "error": error}), file=answers, flush=True)
for value in list(names.values()):
    if type(value).__name__ == "Memory" and hasattr(value, "close"):
        value.close()
"""


def extras_named(page: str) -> tuple[str, ...] | None:
    """The extras that the first installation on a page asks for; None where it names none."""
    for block in blocks(page):
        for command in commands(block.text) if block.language == "console" else ():
            if _INSTALL.match(command.line):
                named = re.search(r"\[([^\]]*)\]", command.line)
                return tuple(name.strip() for name in named[1].split(",")) if named else ()
    return None


def extras_mentioned(page: str) -> tuple[str, ...]:
    """Every extra that a page says is needed, in an installation or in its sentences."""
    lists = re.findall(r"'(?:anaphora|\.)\[([^\]]*)\]'", page)
    names = {name.strip() for listed in lists for name in listed.split(",")}
    return tuple(sorted(names | set(re.findall(r"\bextra `([a-z-]+)`", page))))


def check_page(
    environment: Environment, source: Path, page: str, report: Report, *, resident: bool = True
) -> None:
    """Run a page from its beginning to its end.

    Without `resident` a hook's work is done when the hook ends, so that a page may ask at once for
    what it has brought in.
    """
    with report.check(f"{page}: every block runs and prints what it should"):
        user = environment.user("pages")
        variables = user.variables | ({} if resident else {"ANAPHORA_RESIDENT": "0"})
        done = subprocess.run(
            [sys.executable, "-m", "tools.gate.surfaces.pages", str(source), page,
             "--bin", str(environment.bin), "--folder", str(user.work / "page")],
            cwd=ROOT, env=variables, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        if done.returncode:
            raise AssertionError(f"{done.stdout}\n{done.stderr}".strip())


@dataclass(slots=True)
class InEnvironment:
    """The programs of an environment; blocks of Python run in one interpreter of it."""

    bin: Path
    _interpreter: subprocess.Popen[str] | None = field(default=None)

    def command(self, words: list[str]) -> tuple[int, str, str]:
        """Run a program."""
        done = subprocess.run(
            [str(self.bin / words[0]), *words[1:]], capture_output=True, text=True, check=False,
            timeout=120,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def python(self, text: str, name: str) -> str:
        """Run a block; its failure is one of the page."""
        if self._interpreter is None:
            self._interpreter = subprocess.Popen(
                [str(self.bin / "python"), "-c", _INTERPRETER], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
        process = self._interpreter
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"text": text, "name": name}) + "\n")
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline() or '{"error": "it ended"}')
        if answer["error"]:
            raise AssertionError(f"{name}: {answer['error']}")
        return str(answer["printed"])

    def close(self) -> None:
        """End the interpreter."""
        if self._interpreter is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._interpreter.communicate(timeout=30)


def main(words: Sequence[str] | None = None) -> int:
    """Run one page in this process, whose variables are the page's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("page")
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args(words)
    text = (options.source / options.page).read_text("utf-8")
    options.folder.mkdir(parents=True)
    failures = 0
    with World(options.folder, programs=InEnvironment(options.bin), source=options.source).entered(
        home=None
    ) as world:
        for block in blocks(text):
            failures += _run(world, block)
    return min(failures, 1)


def _run(world: World, block: Block) -> int:
    """How many failures a block has; each is printed."""
    try:
        troubles = [shown.trouble for shown in world.run(block, 0) if shown.trouble]
    except Exception as error:  # noqa: BLE001 - whatever a block raises is the page's failure
        troubles = [str(error) or type(error).__name__]
    for trouble in troubles:
        print(f"line {block.line}: {trouble}")
    return len(troubles)


if __name__ == "__main__":
    sys.exit(main())
