"""The git history of a project: its commits and renames.

Secrets in messages are taken out, and paths that give one away are left out. A checkout may come
from anywhere, so nothing that it configures is run: no hook, pager, signature check, file monitor,
text converter or transport. The git program is asked and changes nothing.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from anaphora.calls.moments import utc_moment
from anaphora.ingest.files.walking import without_secret_names
from anaphora.ingest.secrets.redacting import redact

MAX_FILES: Final = 200
"""Paths that are kept of a commit; one that touches more says little about any of them."""
_SECONDS: Final = 30.0
_MOST_BYTES: Final = 64 * 1024 * 1024
_SUBJECT_CHARS: Final = 500
_LOOKED_AT: Final = 4_000
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
    """A path that became another at a time, in a commit where one says so."""

    old: str
    new: str
    at: datetime
    commit: str = ""


@dataclass(frozen=True, slots=True)
class GitHistory:
    """The commits and renames, newest first. `head` is the commit to go on from next time.

    Where git took too long or wrote too much, the oldest commits are missing.
    """

    head: str
    commits: tuple[Commit, ...] = ()
    renames: tuple[Rename, ...] = ()


def read_history(
    root: Path, since: str | None = None, limit: int = 5_000, *, seconds: float = _SECONDS
) -> GitHistory | None:
    """The commits of the checkout at `root`, at most `limit`, only those after commit `since`.

    All of them where `since` is no longer part of the history. Merges are left out, and so are
    paths outside `root`. None if the git program is not installed, `root` is in no checkout, or
    nothing was committed yet. git is given `seconds` (wall time) for each of its steps. Never
    raises.
    """
    program = shutil.which("git")
    if program is None or not root.is_dir():
        return None
    git = _Git(program, root, seconds)
    inside = git.ask("rev-parse", "--is-inside-work-tree")
    if inside.end != "well":
        return None
    head = git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}").words.strip()
    if inside.words.strip() != "true" or not _ID.fullmatch(head):
        return None
    if since == head:
        return GitHistory(head)
    is_ancestor = (
        since is not None
        and _ID.fullmatch(since) is not None
        and git.ask("merge-base", "--is-ancestor", since, head).end == "well"
    )
    span = f"{since}..{head}" if is_ancestor else head
    answer = _ask_log(git, span, limit, renames=True)
    if answer.end == "failed":
        # Without all file contents there is no telling a rename from a new file.
        answer = _ask_log(git, span, limit, renames=False)
    read = list(_parse_log(answer.words, whole=answer.end == "well"))
    return GitHistory(
        head,
        tuple(commit for commit, _ in read),
        tuple(rename for _, renames in read for rename in renames),
    )


def _ask_log(git: _Git, span: str, limit: int, *, renames: bool) -> _GitOutput:
    return git.ask(
        "log",
        "--no-merges",
        f"--max-count={limit}",
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


def _parse_log(words: str, *, whole: bool) -> Iterator[tuple[Commit, list[Rename]]]:
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
        commit = _parse_commit(tokens[start], tokens[start + 1 : end])
        if commit is not None:
            yield commit


def _parse_commit(header: str, tokens: Sequence[str]) -> tuple[Commit, list[Rename]] | None:
    match = _HEADER.fullmatch(header)
    if match is None:
        return None
    try:
        at = utc_moment(int(match[2]))
    except (ValueError, OverflowError):
        at = datetime.fromtimestamp(0, UTC)
    files, renames = [], []
    waiting = iter(tokens)
    for status in waiting:
        kind = status.strip()[:1]
        if not kind:
            continue
        # A rename or a copy has the old path before the new one.
        old_path = next(waiting, "") if kind in {"R", "C"} else ""
        new_path = next(waiting, "")
        if new_path:
            files.append(new_path)
            if kind == "R":
                renames.append(Rename(old_path, new_path, at, match[1]))
    paths = tuple(path for path in files[:MAX_FILES] if _is_shown(path))
    # Secrets are taken out before the subject is cut.
    commit = Commit(
        match[1], at, redact(match[3].strip()[:_LOOKED_AT]).text[:_SUBJECT_CHARS], paths
    )
    return commit, [
        rename for rename in renames[:MAX_FILES] if _is_shown(rename.old) and _is_shown(rename.new)
    ]


def _is_shown(path: str) -> bool:
    return without_secret_names(path) == path


@dataclass(frozen=True, slots=True)
class _GitOutput:
    """The output of git, and whether a limit cut it off."""

    words: str
    end: Literal["well", "failed", "cut off"]


@dataclass(frozen=True, slots=True)
class _Git:
    program: str
    root: Path
    seconds: float

    def ask(self, *arguments: str) -> _GitOutput:
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
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            return _GitOutput("", "failed")
        output = bytearray()
        time_limit_hit = threading.Event()

        def stop() -> None:
            time_limit_hit.set()
            running.kill()

        timer = threading.Timer(self.seconds, stop)
        timer.start()
        assert isinstance(running.stdout, io.BufferedReader)
        with running.stdout as pipe:
            while chunk := pipe.read1(1 << 16):
                if len(output) < _MOST_BYTES:
                    output.extend(chunk)
                elif not time_limit_hit.is_set():
                    stop()
        code = running.wait()
        timer.cancel()
        timer.join()
        words = output.decode("utf-8", "replace")
        if time_limit_hit.is_set():
            return _GitOutput(words, "cut off")
        return _GitOutput(words, "failed" if code else "well")
