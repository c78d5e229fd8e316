"""What git knows about a project: its commits, and what was renamed.

In: the project's folder. Out: a `GitHistory`, or None where there is no git or no checkout. Secrets
in messages are taken out, and paths that give one away are left out. It asks the git program and
changes nothing. A checkout may come from anywhere, so nothing that it configures is run: no hook,
pager, signature check, file monitor, text converter or transport.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from anaphora.ingest.projects.files.walking import without_secret_names
from anaphora.ingest.secrets.redacting import redact

MAX_FILES: Final = 200
"""Paths that are kept of a commit; one that touches more says little about any of them."""
_SECONDS: Final = 30.0
_MOST_BYTES: Final = 64 * 1024 * 1024
_SUBJECT: Final = 500
_LOOKED_AT: Final = 4_000
_TIMED_OUT: Final = "timed out"
_TOO_MUCH: Final = "too much history"
_ENVIRONMENT: Final[Mapping[str, str]] = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}
_SETTINGS: Final = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.quotePath=false",
    "core.commitGraph=true",
    "diff.external=",
    "diff.renames=true",
    "i18n.logOutputEncoding=UTF-8",
    "log.follow=false",
    "log.mailmap=false",
    "log.showSignature=false",
    "log.showRoot=true",
    # A clone without all objects would fetch what is missing.
    "protocol.allow=never",
)
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_HEADER = re.compile(r"\n?\x01([0-9a-f]{40,64})\x02(-?\d+)\x02(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit: its full id, when it was committed (UTC), the first line of its message.

    `files` are the paths that it touched, relative to the project's root, at most `MAX_FILES`.
    """

    id: str
    at: datetime
    subject: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rename:
    """A path that became another in a commit."""

    old: str
    new: str
    commit: str
    at: datetime


@dataclass(frozen=True, slots=True)
class GitHistory:
    """What was read, newest first. `head` is the commit to go on from next time.

    `complete` is False where older commits were left out by the limit. `restarted` says that
    `since` is no longer part of the history, so that everything was read. `problem` says in a few
    words why git gave nothing or only a part: "timed out", "too much history", or git's own words.
    """

    head: str
    commits: tuple[Commit, ...]
    renames: tuple[Rename, ...]
    complete: bool = True
    restarted: bool = False
    problem: str | None = None


def read_history(
    root: Path, since: str | None = None, limit: int = 5_000, *, seconds: float = _SECONDS
) -> GitHistory | None:
    """The commits of the checkout at `root`, at most `limit`, only those after commit `since`.

    Merges are left out, and so are paths outside `root`. None where the git program is not
    installed, `root` is in no checkout, or nothing was committed yet. git is given `seconds`
    (wall time) for each of its steps. Never raises.
    """
    program = shutil.which("git")
    if program is None or not root.is_dir():
        return None
    git = _Git(program, root, seconds)
    inside = git.ask("rev-parse", "--is-inside-work-tree")
    if inside.problem is not None:
        refused = "dubious ownership" in inside.problem
        return GitHistory("", (), (), problem=inside.problem) if refused else None
    head = git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}").words.strip()
    if inside.words.strip() != "true" or not _ID.fullmatch(head):
        return None
    return _history(git, head, since, max(limit, 0))


def _history(git: _Git, head: str, since: str | None, limit: int) -> GitHistory:
    known = since is not None and _is_before(git, since, head)
    restarted = since is not None and not known
    if since == head or limit == 0:
        return GitHistory(head, (), (), complete=since == head, restarted=restarted)
    span = f"{since}..{head}" if known else head
    answer = _log(git, span, limit, renames=True)
    if answer.problem not in {None, _TIMED_OUT, _TOO_MUCH}:
        # Without all file contents there is no telling a rename from a new file.
        answer = _log(git, span, limit, renames=False)
    commits: list[Commit] = []
    renames: list[Rename] = []
    for commit, renamed in _read(answer.words, whole=answer.problem is None):
        commits.append(commit)
        renames.extend(renamed)
    left_out = len(commits) > limit
    last = frozenset(commit.id for commit in commits[limit:])
    return GitHistory(
        head=head,
        commits=tuple(commits[:limit]),
        renames=tuple(rename for rename in renames if rename.commit not in last),
        complete=not left_out and answer.problem is None,
        restarted=restarted,
        problem=answer.problem,
    )


def _is_before(git: _Git, since: str, head: str) -> bool:
    """Whether `since` is the id of a commit that `head` goes on from."""
    if not _ID.fullmatch(since):
        return False
    return git.ask("merge-base", "--is-ancestor", since, head).problem is None


def _log(git: _Git, span: str, limit: int, *, renames: bool) -> _Answer:
    return git.ask(
        "log",
        "--no-merges",
        f"--max-count={limit + 1}",
        "--format=%x01%H%x02%ct%x02%s",
        "-z",
        "--name-status",
        "--find-renames=50%" if renames else "--no-renames",
        "-l1000",
        "--relative",
        "--no-ext-diff",
        "--no-textconv",
        "--no-show-signature",
        "--no-color",
        "--no-notes",
        "--ignore-submodules=all",
        "--end-of-options",
        span,
        "--",
        ".",
    )


def _read(words: str, *, whole: bool) -> Iterator[tuple[Commit, list[Rename]]]:
    """The commits in what `git log -z --name-status` wrote; a last one that was cut is dropped."""
    tokens = words.split("\0")
    at, starts = 0, []
    while at < len(tokens):
        if _HEADER.fullmatch(tokens[at]):
            starts.append(at)
            at += 1
        else:
            # A status and its paths, so that no path is taken for the head of a commit.
            at += 3 if tokens[at].strip()[:1] in {"R", "C"} else 2 if tokens[at].strip() else 1
    for number, start in enumerate(starts):
        is_last = number + 1 == len(starts)
        if is_last and not whole:
            return
        end = len(tokens) if is_last else starts[number + 1]
        commit = _commit(tokens[start], tokens[start + 1 : end])
        if commit is not None:
            yield commit


def _commit(header: str, tokens: Sequence[str]) -> tuple[Commit, list[Rename]] | None:
    found = _HEADER.fullmatch(header)
    if found is None:
        return None
    try:
        at = datetime.fromtimestamp(int(found[2]), UTC)
    except (ValueError, OverflowError, OSError):
        at = datetime.fromtimestamp(0, UTC)
    files, renames = [], []
    for old, new in _changes(tokens):
        files.append(new)
        if old is not None:
            renames.append(Rename(old, new, found[1], at))
    shown = tuple(path for path in files[:MAX_FILES] if _is_shown(path))
    commit = Commit(found[1], at, _said(found[3].strip()), shown)
    return commit, [one for one in renames[:MAX_FILES] if _is_shown(one.old) and _is_shown(one.new)]


def _is_shown(path: str) -> bool:
    return without_secret_names(path) == path


def _said(subject: str) -> str:
    """What a commit says of itself, without secrets: they go before anything is cut off."""
    return redact(subject[:_LOOKED_AT]).text[:_SUBJECT]


def _changes(tokens: Sequence[str]) -> Iterator[tuple[str | None, str]]:
    """Each touched path, with the one that it was renamed from."""
    waiting = iter(tokens)
    for status in waiting:
        kind = status.strip()[:1]
        if kind in {"R", "C"}:
            old, new = next(waiting, ""), next(waiting, "")
            if new:
                yield (old if kind == "R" else None), new
        elif kind:
            path = next(waiting, "")
            if path:
                yield None, path


@dataclass(frozen=True, slots=True)
class _Answer:
    """What git wrote, and in a few words what went wrong."""

    words: str
    problem: str | None


@dataclass(frozen=True, slots=True)
class _Git:
    program: str
    root: Path
    seconds: float

    def ask(self, *arguments: str) -> _Answer:
        """Run git with limits on time and output. What it wrote before a limit is kept."""
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        try:
            # The program is git, the arguments are ours, and what the checkout says is not run.
            running = subprocess.Popen(  # noqa: S603
                [self.program, "--no-pager", *settings, *arguments],
                cwd=self.root,
                env=dict(_ENVIRONMENT),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            return _Answer("", f"git could not be started: {error.strerror}")
        return _listen(running, self.seconds)


def _listen(running: subprocess.Popen[bytes], seconds: float) -> _Answer:
    out, err = bytearray(), bytearray()
    limits: list[str] = []

    def stop(reason: str) -> None:
        limits.append(reason)
        running.kill()

    def take(name: str, into: bytearray, most: int) -> None:
        pipe = getattr(running, name)
        with pipe:
            while chunk := pipe.read1(1 << 16):
                if len(into) < most:
                    into.extend(chunk)
                elif name == "stdout" and not limits:
                    stop(_TOO_MUCH)

    timer = threading.Timer(seconds, stop, (_TIMED_OUT,))
    readers = [
        threading.Thread(target=take, args=("stdout", out, _MOST_BYTES), daemon=True),
        threading.Thread(target=take, args=("stderr", err, 4_096), daemon=True),
    ]
    timer.start()
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    code = running.wait()
    timer.cancel()
    timer.join()
    words = bytes(out).decode("utf-8", "replace")
    if limits:
        return _Answer(words, limits[0])
    said = bytes(err).decode("utf-8", "replace").strip().split("\n")[0][:200]
    return _Answer(words, None if code == 0 else said or f"git ended with {code}")
