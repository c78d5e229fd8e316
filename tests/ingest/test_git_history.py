"""What is read of a real git checkout, and that nothing of it is run."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from anaphora.features.projects.indexing.git_history import GitHistory, read_history
from anaphora.system.repositories import branch_of, remote_name, repository_of

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    program = shutil.which("git")
    if program is None:
        pytest.skip("git is not installed")
    root = tmp_path / "project"
    root.mkdir()

    def run(*arguments: str) -> str:
        return subprocess.run(
            [program, "-c", "user.name=A", "-c", "user.email=a@example.com", *arguments],
            cwd=root,
            check=True,
            capture_output=True,
            text=True,
            env={"GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z", "GIT_CONFIG_GLOBAL": "/dev/null"},
        ).stdout.strip()

    run("init", "-q")
    return run


@pytest.fixture
def root(tmp_path: Path, git: Git) -> Path:
    """Three commits: two files, one of them renamed, one removed."""
    place = tmp_path / "project"
    (place / "src").mkdir()
    (place / "src" / "old name.py").write_text("def a():\n    return 1\n" * 9, encoding="utf-8")
    (place / "é\n.md").write_text("# Words\n", encoding="utf-8")
    git("add", ".")
    git("commit", "-q", "-m", "The first\n\nMore words.")
    git("mv", "src/old name.py", "src/new.py")
    git("commit", "-q", "-m", "A rename")
    git("rm", "-q", "é\n.md")
    git("commit", "-q", "-m", "A removal \x01\x02")
    return place


def read(root: Path, since: str | None = None, limit: int = 100) -> GitHistory:
    found = read_history(root, since, limit)
    assert found is not None
    return found


@pytest.mark.promise("gitlog.read")
def test_commits_and_renames(root: Path, git: Git) -> None:
    """Commits come newest first, with their subject, time, files and renames."""
    found = read(root)
    assert found.head == git("rev-parse", "HEAD")
    assert [each.files for each in found.commits] == [
        ("é\n.md",),
        ("src/new.py",),
        ("src/old name.py", "é\n.md"),
    ]
    assert [each.subject for each in found.commits][1:] == ["A rename", "The first"]
    assert found.commits[0].at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert [(each.old, each.new) for each in found.renames] == [("src/old name.py", "src/new.py")]
    assert found.renames[0].commit == found.commits[1].id


@pytest.mark.promise("gitlog.read")
def test_only_what_is_new(root: Path, git: Git) -> None:
    """After a commit only later ones are read, and none when there are none."""
    first = read(root)
    assert read(root, first.head).commits == ()
    (root / "b.txt").write_text("b", encoding="utf-8")
    git("add", ".")
    git("commit", "-q", "-m", "Another")
    assert [each.subject for each in read(root, first.head).commits] == ["Another"]


@pytest.mark.parametrize("since", ["0" * 40, "--output=x", "HEAD", ""])
def test_a_commit_that_is_gone(root: Path, since: str) -> None:
    """When the commit to go on from is no longer there everything is read."""
    assert len(read(root, since).commits) == 3
    assert not (root / "x").exists()


def test_a_limit(root: Path) -> None:
    """A limit gives the newest commits."""
    found = read(root, limit=1)
    assert [each.files for each in found.commits] == [("é\n.md",)]
    assert found.renames == ()


def test_a_folder_of_the_checkout(root: Path) -> None:
    """Of a folder within the checkout there is its own history, by its own paths."""
    found = read(root / "src")
    assert [each.files for each in found.commits] == [("new.py",), ("old name.py",)]


def test_no_checkout(tmp_path: Path, git: Git) -> None:
    """Without a checkout, without a commit or without a folder there is no history."""
    (tmp_path / "plain").mkdir()
    assert read_history(tmp_path / "plain") is None
    assert read_history(tmp_path / "project") is None
    assert read_history(tmp_path / "nowhere") is None


def test_a_broken_checkout(root: Path) -> None:
    """A checkout whose objects are damaged gives no commits, and never raises."""
    for file in (root / ".git" / "objects").rglob("*"):
        if file.is_file():
            file.chmod(0o600)
            file.write_bytes(b"damaged")
    found = read_history(root)
    assert found is None or found.commits == ()


@pytest.mark.promise("gitlog.safe")
def test_nothing_of_the_checkout_is_run(root: Path, git: Git, tmp_path: Path) -> None:
    """What the checkout configures as programs stays unrun."""
    trap = tmp_path / "trap"
    script = tmp_path / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch '{trap}'\ncat \"$@\"\n", encoding="utf-8")
    script.chmod(0o700)
    (root / ".gitattributes").write_text("* diff=x filter=x\n", encoding="utf-8")
    programs = (
        "core.fsmonitor core.pager core.sshCommand core.editor diff.external diff.x.textconv "
        "diff.x.command filter.x.smudge filter.x.process gpg.program pager.log credential.helper"
    )
    for name in programs.split():
        git("config", name, str(script))
    git("config", "log.showSignature", "true")
    for hook in ("post-index-change", "reference-transaction", "pre-auto-gc"):
        shutil.copy(script, root / ".git" / "hooks" / hook)
    trap.unlink(missing_ok=True)
    assert len(read(root).commits) == 3
    assert not trap.exists()


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("git@github.com:Acme/Shop.git", "github.com/Acme/Shop"),
        ("https://kim:secret@GitHub.com/acme/shop.git", "github.com/acme/shop"),
        ("ssh://git@git.example.com:2222/acme/shop", "git.example.com/acme/shop"),
        ("/srv/git/shop.git", "/srv/git/shop"),
        ("file:///srv/git/shop", "/srv/git/shop"),
        ("C:/git/shop", "C:/git/shop"),
        ("", ""),
    ],
)
def test_one_remote_has_one_name(url: str, name: str) -> None:
    """However a remote is written, it is the same repository, and no secret of it is kept."""
    assert remote_name(url) == name


def test_a_worktree_belongs_to_the_repository_of_its_clone(tmp_path: Path) -> None:
    """A worktree, a folder in it, and the clone itself are one project; the branch is its own."""
    clone = tmp_path / "clone"
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", "init", "-q", "-b", "main", clone], check=True)
    subprocess.run([*git, "remote", "add", "origin", "https://example.com/a/b"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", "-b", "side", tmp_path / "tree"], check=True)
    (tmp_path / "tree" / "deep").mkdir()
    assert repository_of(str(clone)) == repository_of(str(tmp_path / "tree" / "deep"))
    assert repository_of(str(clone)) == "example.com/a/b"
    assert (branch_of(str(clone)), branch_of(str(tmp_path / "tree"))) == ("main", "side")
    assert repository_of(str(tmp_path)) == repository_of("/no/such/folder") == ""
