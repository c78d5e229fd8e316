"""Changes of a repository: which commits, which files, and the tests that they excuse."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

_EXCUSE = re.compile(r"^characterises:[ \t]*(?P<line>.*(?:\n[ \t]+\S.*)*)", re.I | re.M)
_PARTS = re.compile(r"(?P<tests>\S+):\s+(?P<why>\S.*)", re.S)


class Misuse(Exception):
    """What was asked for cannot be done: the text says why."""


@dataclass(frozen=True, slots=True)
class Change:
    """The difference between two commits."""

    base: str
    tip: str
    title: str


@dataclass(frozen=True, slots=True)
class Excuse:
    """A line of a commit message: `Characterises: TESTS: reason`."""

    commit: str
    tests: str
    why: str

    def covers(self, test: str, own: frozenset[str]) -> bool:
        """Whether a test of a change is excused, `own` being the commits of that change.

        A commit excuses tests of its own change by a pattern or a file, and earlier tests by
        their full ids alone.
        """
        if self.commit not in own:
            return test == self.tests
        return fnmatchcase(test, self.tests) or test.startswith(f"{self.tests}::")


def environment_without_git() -> dict[str, str]:
    """The environment variables, without those by which a hook of git names its repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


class Repository:
    """A checkout of git."""

    def __init__(self, root: Path) -> None:
        self.root = root
        top = self.git("rev-parse", "--show-toplevel").strip()
        self.root = Path(top)

    def git(self, *words: str, folder: Path | None = None) -> str:
        """The output of a command of git; `Misuse` with its own words where it fails."""
        try:
            done = subprocess.run(
                ["git", *words],
                cwd=folder or self.root,
                env=environment_without_git(),
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
        except OSError as error:
            raise Misuse(f"git cannot be run: {error}") from error
        if done.returncode:
            raise Misuse(f"git {words[0]} failed: {done.stderr.strip()}")
        return done.stdout

    def last(self, count: int) -> list[Change]:
        """The last commits, newest first, each against its first parent: a merge is one change."""
        words = ("--no-show-signature", "--first-parent", f"-{count}", "--format=%H%x00%P%x00%s")
        lines = self.git("log", *words, "HEAD")
        changes = []
        for line in lines.splitlines():
            commit, parents, subject = line.split("\0")
            if not parents:
                if self.git("rev-parse", "--is-shallow-repository").strip() == "true":
                    raise Misuse(
                        f"the history of this clone ends at {commit[:8]}: fetch more of it"
                    )
                break
            changes.append(Change(parents.split()[0], commit, f"{commit[:8]} {subject}"))
        return changes

    def range(self, text: str) -> Change:
        """`A..B` as one change: from where B left A, to B."""
        old, dots, new = text.partition("..")
        if not dots or not old or not new.lstrip("."):
            raise Misuse(f"{text!r} is no range: write A..B")
        tip = self.git("rev-parse", "--verify", f"{new.lstrip('.')}^{{commit}}").strip()
        base = self.git("merge-base", old, tip).strip()
        return Change(base, tip, f"{base[:8]}..{tip[:8]}")

    def files(self, change: Change) -> list[tuple[str | None, str | None]]:
        """The files that differ: path before and after, None where there is none."""
        words = self.git(
            "diff", "--name-status", "-z", "-M", "--no-ext-diff", change.base, change.tip
        ).split("\0")
        pairs: list[tuple[str | None, str | None]] = []
        rest = iter(words)
        for status in rest:
            if not status:
                break
            path = next(rest)
            if status[0] in "RC":
                pairs.append((path if status[0] == "R" else None, next(rest)))
            else:
                pairs.append((None if status == "A" else path, None if status == "D" else path))
        return pairs

    def text(self, commit: str, path: str | None) -> str | None:
        """The text of a file in a commit."""
        return None if path is None else self.git("cat-file", "blob", f"{commit}:{path}")

    def commits(self, base: str, tip: str) -> frozenset[str]:
        """The commits of a change."""
        return frozenset(self.git("rev-list", f"{base}..{tip}").split())

    def excuses(self, base: str, tip: str) -> list[Excuse]:
        """What the messages of commits excuse; `Misuse` where a line gives no reason."""
        words = ("--no-show-signature", "-z", "--format=%H%n%B", f"{base}..{tip}")
        log = self.git("log", *words)
        excuses = []
        for entry in log.split("\0"):
            commit, _, message = entry.partition("\n")
            for match in _EXCUSE.finditer(message):
                parts = _PARTS.fullmatch(match["line"].strip())
                if parts is None:
                    raise Misuse(
                        f"{commit[:8]}: {match[0].strip()!r} is not 'Characterises: TESTS: reason'"
                    )
                excuses.append(Excuse(commit, parts["tests"], " ".join(parts["why"].split())))
        return excuses

    @contextmanager
    def tree(self, folder: Path, commit: str) -> Iterator[Path]:
        """The files of a commit in a folder of its own."""
        self.git("worktree", "add", "--quiet", "--detach", str(folder), commit)
        try:
            yield folder
        finally:
            self.git("worktree", "remove", "--force", str(folder))

    def restore(self, tree: Path, commit: str, path: str) -> None:
        """Make a path of a tree what it is in a commit."""
        words = ("restore", f"--source={commit}", "--staged", "--worktree", "--", path)
        self.git(*words, folder=tree)


def texts(
    repository: Repository, change: Change, paths: Mapping[str, str | None]
) -> dict[str, tuple[str | None, str | None]]:
    """The texts of files before and after a change: path after → path before."""
    return {
        new: (repository.text(change.base, old), repository.text(change.tip, new))
        for new, old in paths.items()
    }
