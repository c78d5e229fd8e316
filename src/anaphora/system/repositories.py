"""The Git repository around a folder, read from its files: no program is run.

Two folders belong together where their repositories have one remote, or are worktrees of one.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# `c:`, `//?/c:`, `/c:`, and `/mnt/c`, `/cygdrive/c`, `/c`.
_DRIVE: Final = re.compile(r"(?://\?/|/)?([A-Za-z]):(?=/|$)|(?:/mnt|/cygdrive)?/([A-Za-z])(?=/|$)")
_WINDOWS: Final = re.compile(r"[A-Za-z]:(?=[/\\]|$)|\\\\")
_WSL: Final = re.compile(r"//wsl(?:\$|\.localhost)/[^/]+(?=/)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder, and the repository that it lies in.

    `folders` are those of the repository (the top, the main repository's, its worktrees'), else the
    folder itself; as keys (`folder_key`). `home` is that of the main repository, "" for a folder in
    none. `remote` is the remote as host and path; "" without one. `marks` travel with the
    repository's own files when it is renamed or moved: any one that is common to two tells that
    they are one, or that one is a copy. `within` is the way to the folder from the top; "" for it.
    """

    folders: frozenset[str] = frozenset()
    home: str = ""
    remote: str = ""
    marks: frozenset[str] = frozenset()
    within: str = ""

    @property
    def name(self) -> str:
        """What a session's place has as its repository: the remote, else the folder."""
        return self.remote or self.home

    @property
    def key(self) -> str:
        """The folder that stands for it."""
        return folder_key(self.home) or min(self.folders, key=len, default="")


def folder_key(folder: str) -> str:
    """One spelling of a folder for all ways to write it.

    A drive of Windows has several: `C:\\code`, `c:/code`, and where WSL, Git Bash and Cygwin mount
    it; case says nothing there.
    """
    text = (folder.replace("\\", "/") if _WINDOWS.match(folder) else folder).rstrip("/")
    text = _WSL.sub("", text)
    if drive := _DRIVE.match(text):
        letter = drive[1] or drive[2]
        return f"{letter}:{text[drive.end() :]}".lower()
    return text or folder[:1]


def is_folder(location: str) -> bool:
    """Whether it is a whole path, of this machine or of Windows, and no name of a remote."""
    return location.startswith("/") or _WINDOWS.match(location) is not None


def lies_in(inner: str, outer: str) -> bool:
    """Whether a folder is another one, or below it; both are keys."""
    return bool(outer) and (inner == outer or inner.startswith(outer.rstrip("/") + "/"))


def real_folder(directory: str) -> str:
    """A folder of this machine without links on its way; others as they are written."""
    is_foreign = os.sep == "/" and _WINDOWS.match(directory)
    return directory if is_foreign else os.path.realpath(directory)


def checkout_of(directory: str) -> Checkout:
    """What a folder belongs to; of one that is not on this machine, only itself is known."""
    if not directory:
        return Checkout()
    real = Path(real_folder(directory))
    itself = frozenset(map(folder_key, (directory, str(real))))
    if not real.is_absolute():
        return Checkout(itself)
    try:
        repository = next(_repositories(real), None)
        if repository is None:
            return Checkout(itself)
        top, git = repository
        main = _main(git)
        # A submodule's files and those of a bare repository are elsewhere.
        home = main.parent if main.name == ".git" else top if main == git else main
        # The top as it was written, behind a link.
        depth = len(real.parts) - len(top.parts)
        written = (Path(directory), *Path(directory).parents)[depth:][:1]
        links = main.glob("worktrees/*/gitdir")
        trees = ((link.parent / link.read_text("utf-8").strip()).parent for link in links)
        folders = (top, main, home, *trees, *(w for w in written if w.resolve() == top))
        remote = _remote(main)
        keys = frozenset(folder_key(str(folder)) for folder in folders)
        within = real.relative_to(top).as_posix().removeprefix(".")
        return Checkout(keys, str(home), remote, frozenset(_marks(main)), within)
    except OSError:
        return Checkout(itself)


def repository_of(directory: str) -> str:
    """What the folder belongs to: the remote of its Git repository, else the main one's folder.

    A remote is given as host and path alone. "" for a folder that is not on this machine, and for
    one that no repository holds.
    """
    return checkout_of(directory).name


def branch_of(directory: str) -> str:
    """The branch that is checked out around a folder; "" where there is none."""
    try:
        repository = next(_repositories(Path(real_folder(directory))), None) if directory else None
        head = (repository[1] / "HEAD").read_text("utf-8", "replace").strip() if repository else ""
    except OSError:
        return ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else ""


def users_folder() -> str:
    """The user's own folder."""
    return real_folder(os.path.expanduser("~"))  # noqa: PTH111 - pathlib raises where there is none


def _repositories(folder: Path) -> Iterator[tuple[Path, Path]]:
    """The repositories around a folder, the nearest first: their tops and their Git folders."""
    for top in (folder, *folder.parents):
        if top != folder and (top == top.parent or str(top) == users_folder()):
            # Of dotfiles: what lies below is not a part of them.
            return
        mark = top / ".git"
        if mark.is_file():
            # A worktree or a submodule names its folder.
            target = mark.read_text("utf-8", "replace").strip().removeprefix("gitdir:").strip()
            yield top, (top / target).resolve()
        elif mark.is_dir():
            yield top, mark
        elif (top / "HEAD").is_file() and (top / "objects").is_dir():
            yield top, top


def _main(git: Path) -> Path:
    """The Git folder that a worktree's one belongs to; any other is its own."""
    common = git / "commondir"
    if common.is_file():
        return (git / common.read_text("utf-8").strip()).resolve()
    # Of a worktree whose repository was moved away, the old folder.
    return git.parent.parent if git.parent.name == "worktrees" and not git.exists() else git


def _remote(main: Path) -> str:
    """The name of `origin`, else of the first remote; "" for none."""
    urls: dict[str, str] = {}
    section, config = "", main / "config"
    text = config.read_text("utf-8", "replace") if config.is_file() else ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section.startswith("remote ") and line.partition("=")[0].strip() == "url":
            urls.setdefault(section.removeprefix("remote ").strip('"'), line.partition("=")[2])
    return remote_name(urls.get("origin") or next(iter(urls.values()), ""))


def _marks(main: Path) -> Iterator[str]:
    """What a repository was given when it was made, and keeps when it is moved.

    When a file was written that Git never writes again; where that tells whole seconds alone, or
    is missing, the first line of the log, as long as it is kept. Digests: they are only compared.
    """
    description, log = main / "description", main / "logs" / "HEAD"
    moment = description.stat().st_mtime_ns // 1000 if description.is_file() else 0
    if moment % 1_000_000:
        yield hashlib.blake2b(str(moment).encode(), digest_size=8).hexdigest()
    elif log.is_file():
        with log.open("rb") as lines:
            first = lines.readline()
        if first.startswith(b"0" * 40):
            yield hashlib.blake2b(first, digest_size=8).hexdigest()


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
