"""The Git repository around a folder, read from its files: no program is run.

Two folders belong together where their repositories have one remote: clones and worktrees of one
project, wherever they lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def repository_of(directory: str) -> str:
    """What the folder belongs to: the remote of its Git repository, else the folder at its top.

    A remote is given as host and path alone. "" for a folder that is not on this machine, and for
    one that no repository holds.
    """
    if not directory:
        return ""
    try:
        top, git = next(_repositories(Path(directory)), (None, None))
        if top is None or git is None:
            return ""
        common = git / "commondir"
        main = (git / common.read_text("utf-8").strip()).resolve() if common.is_file() else git
        # The URL of `origin`, else of the first remote.
        urls: dict[str, str] = {}
        section = ""
        for line in (main / "config").read_text("utf-8", "replace").splitlines():
            text = line.strip()
            if text.startswith("["):
                section = text.strip("[]").strip()
            elif section.startswith("remote ") and text.partition("=")[0].strip() == "url":
                urls.setdefault(section.removeprefix("remote ").strip('"'), text.partition("=")[2])
        remote = remote_name(urls.get("origin") or next(iter(urls.values()), ""))
        return remote or str(top)
    except OSError:
        return ""


def branch_of(directory: str) -> str:
    """The branch that is checked out around a folder; "" where there is none."""
    try:
        repository = next(_repositories(Path(directory)), None) if directory else None
        head = (repository[1] / "HEAD").read_text("utf-8", "replace").strip() if repository else ""
    except OSError:
        return ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else ""


def _repositories(folder: Path) -> Iterator[tuple[Path, Path]]:
    """The repositories around a folder, the nearest first: their tops and their Git folders."""
    for top in (folder, *folder.parents):
        mark = top / ".git"
        if mark.is_dir():
            yield top, mark
        elif mark.is_file():
            # A worktree or a submodule names its folder.
            target = mark.read_text("utf-8", "replace").strip().removeprefix("gitdir:").strip()
            yield top, (top / target).resolve()


def remote_name(url: str) -> str:
    """`github.com/acme/shop` for any way to write that remote; secrets in a URL are left out."""
    text = url.strip().removesuffix("/").removesuffix(".git")
    scheme, separator, location = text.partition("://")
    if not separator:
        # git@github.com:acme/shop, or a path of this machine.
        host, colon, path = text.partition(":")
        if not colon or "/" in host or len(host) == 1:
            return text
        location = f"{host}/{path.lstrip('/')}"
    elif scheme == "file":
        return location
    host, slash, path = location.partition("/")
    host = host.rpartition("@")[2].partition(":")[0].lower()
    return f"{host}{slash}{path}"
