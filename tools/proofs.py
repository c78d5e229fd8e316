"""Report the new and changed tests that pass without the change they came with.

    python -m tools.proofs                      the last 5 commits, each against its first parent
    python -m tools.proofs --last 15 --seconds 600
    python -m tools.proofs --range main..HEAD   a branch as one change, from where it left main

The tests of a change run on the source before it: a test that passes there proves nothing about the
change. Docstrings are no part of a test, and one that stood elsewhere before has only moved. A
commit message excuses tests that rightly pass, such as those of a refactoring, with a reason:

    Characterises: tests/rank/test_order.py::test_ties: the order was right and must stay so

What stands before the reason is an id, a file or a pattern (`*`). Changes to nothing but tests are
not judged. The exit code is 1 where a test proves nothing, 2 where nothing could be asked.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

_EXCUSE: Final = re.compile(r"^characterises:[ \t]*(.*(?:\n[ \t]+\S.*)*)", re.I | re.M)
_REASON: Final = re.compile(r"(\S+):\s+(\S.*)", re.S)
_OPTIONS: Final = ("-q", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider")


class Misuse(Exception):
    """What was asked for cannot be done: the text says why."""


@dataclass(frozen=True, slots=True)
class Change:
    """The difference between two commits."""

    base: str
    tip: str
    title: str


class Repository:
    """A checkout of git."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *words: str, folder: Path | None = None) -> str:
        """The output of a command of git; `Misuse` with its own words where it fails."""
        # A hook of git names its repository by these.
        variables = {name: v for name, v in os.environ.items() if not name.startswith("GIT_")}
        command = ["git", *words]
        folder = folder or self.root
        done = subprocess.run(
            command, cwd=folder, env=variables, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Misuse(f"git {words[0]} failed: {done.stderr.strip()}")
        return done.stdout

    def last(self, count: int) -> list[Change]:
        """The last commits, newest first, each against its first parent: a merge is one change."""
        log = self.git("log", "--first-parent", f"-{count}", "--format=%H%x00%P%x00%s", "HEAD")
        rows = [line.split("\0") for line in log.splitlines()]
        changes = [
            Change(parents.split()[0], commit, f"{commit[:8]} {subject}")
            for commit, parents, subject in rows
            if parents
        ]
        if not changes:
            raise Misuse("there is no commit with a parent")
        return changes

    def range(self, text: str) -> Change:
        """`A..B` as one change: from where B left A, to B."""
        old, dots, new = text.partition("..")
        if not (dots and old and new):
            raise Misuse(f"{text!r} is no range: write A..B")
        tip = self.git("rev-parse", "--verify", f"{new}^{{commit}}").strip()
        base = self.git("merge-base", old, tip).strip()
        return Change(base, tip, f"{base[:8]}..{tip[:8]}")

    def excuses(self, change: Change) -> list[tuple[str, str]]:
        """(pattern, reason) of all that the messages of a change and of later ones excuse."""
        excuses = []
        for match in _EXCUSE.finditer(self.git("log", "--format=%B", f"{change.base}..HEAD")):
            reason = _REASON.fullmatch(match[1].strip())
            if reason is None:
                raise Misuse(f"{match[0].strip()!r} is not 'Characterises: TESTS: reason'")
            excuses.append((reason[1], " ".join(reason[2].split())))
        return excuses

    @contextmanager
    def tree(self, commit: str) -> Iterator[Path]:
        """The files of a commit in a folder of its own."""
        with tempfile.TemporaryDirectory(prefix="anaphora-proofs-") as folder:
            place = Path(folder) / "tree"
            self.git("worktree", "add", "--quiet", "--detach", str(place), commit)
            try:
                yield place
            finally:
                self.git("worktree", "remove", "--force", str(place))

    def new_tests(self, change: Change) -> list[str]:
        """The ids of the tests that the change has and its base has not, wherever they stood."""
        names = self.git("diff", "--name-only", "-z", change.base, change.tip).split("\0")
        files = [name for name in names if re.search(r"(^|/)test_[^/]*\.py$", name)]
        known = {code for name in files for _, code in self._tests(change.base, name)}
        return [
            f"{name}::{test}"
            for name in files
            for test, code in self._tests(change.tip, name)
            if code not in known
        ]

    def _tests(self, commit: str, name: str) -> list[tuple[str, str]]:
        """Each test of a file, and its code without names and docstrings."""
        if not self.git("ls-tree", commit, "--", name):
            return []
        return list(_functions(ast.parse(self.git("show", f"{commit}:{name}")).body, ""))


def _functions(body: Iterable[ast.stmt], owner: str) -> Iterator[tuple[str, str]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{node.name}::")
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, kinds) and node.name.startswith("test"):
            parts = node.body[1:] if ast.get_docstring(node) else node.body
            cases = [ast.dump(mark) for mark in node.decorator_list]
            yield owner + node.name, str([*cases, *map(ast.dump, parts)])


def judge(
    repository: Repository, change: Change, seconds: float, test_seconds: float
) -> tuple[list[str], int]:
    """Lines to print of a change, and how many of its tests prove nothing."""
    names = repository.git("diff", "--name-only", change.base, change.tip).split()
    tests = repository.new_tests(change)
    if not tests:
        return [change.title, "    no new or changed tests"], 0
    if not any(name.startswith("src/") for name in names):
        return [change.title, f"    tests only, not judged: {len(tests)}"], 0
    with repository.tree(change.tip) as tree:
        repository.git(
            "restore", f"--source={change.base}", "--staged", "--worktree", "--", "src", folder=tree
        )
        outcomes = _run(tree, tests, seconds, test_seconds)
    excuses = repository.excuses(change)
    lines, wrong = [change.title], 0
    for test in tests:
        reason = next((r for p, r in excuses if fnmatchcase(test, p) or test.startswith(p)), "")
        outcome = outcomes.get(test, "not run")
        sign = {"failed": "+", "passed": "~" if reason else "!"}.get(outcome, "?")
        wrong += sign == "!"
        said = {"+": "fails without the change", "!": "passes without the change"}
        lines.append(f"  {sign} {test}: {said.get(sign) or reason or outcome}")
    return lines, wrong


def _run(tree: Path, tests: Sequence[str], seconds: float, test_seconds: float) -> dict[str, str]:
    """How each test came out: one case that fails is enough, and so is a file that cannot be
    imported for want of the change."""
    report = tree / "report.xml"
    paths = os.pathsep.join((str(tree / "src"), str(tree)))
    command = [sys.executable, "-m", "pytest", *_OPTIONS, f"--timeout={test_seconds:g}"]
    command += ["--continue-on-collection-errors", f"--junitxml={report}"]
    files = sorted({test.partition("::")[0] for test in tests})
    chosen = " or ".join(sorted({test.rpartition("::")[2] for test in tests}))
    variables = {**os.environ, "PYTHONPATH": paths}
    try:
        subprocess.run(
            [*command, "-k", chosen, *files],
            cwd=tree,
            env=variables,
            capture_output=True,
            timeout=max(seconds, 1),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return dict.fromkeys(tests, "not run: out of time")
    if not report.is_file():
        return dict.fromkeys(tests, "not run: pytest ended without a report")
    outcomes: dict[str, str] = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "passed"
        outcome = "skipped" if "skipped" in kinds else outcome
        words = f"{case.get('classname', '')}.{case.get('name', '').partition('[')[0]}".strip(".")
        for test in tests:
            dotted = test.replace(".py::", ".").replace("::", ".").replace("/", ".")
            missing = outcome == "failed" and dotted.startswith(f"{words}.")
            if (words == dotted or missing) and outcomes.get(test) != "failed":
                outcomes[test] = outcome
    return outcomes


def main(argv: Sequence[str] | None = None) -> int:
    """Judge changes and print what is known of each."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.proofs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--last", type=int, default=5, metavar="N", help="so many commits")
    which.add_argument("--range", metavar="A..B", help="from where B left A to B, as one change")
    parser.add_argument("--repository", type=Path, default=Path.cwd(), help="the checkout")
    parser.add_argument("--seconds", type=float, default=60, help="for everything")
    parser.add_argument("--test-seconds", type=float, default=20, help="for each test")
    chosen = parser.parse_args(argv)
    end, wrong = time.monotonic() + chosen.seconds, 0
    try:
        repository = Repository(chosen.repository)
        changes = [repository.range(chosen.range)] if chosen.range else repository.last(chosen.last)
        for change in changes:
            left = end - time.monotonic()
            lines, count = judge(repository, change, left, chosen.test_seconds)
            print("\n".join(lines), flush=True)
            wrong += count
    except Misuse as error:
        print(f"proofs: {error}", file=sys.stderr)
        return 2
    if wrong:
        print(
            f"{wrong} prove nothing: let them fail without the change, or say why they need not:"
            "\nCharacterises: TESTS: reason, in the commit message."
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
