"""The command that adds what is missing to the environment that Anaphora runs in.

Which command works depends on what made the environment (uv, pipx, venv), and on what Anaphora was
installed from: a checkout, a wheel, a repository or an index. Both are recorded on disk: beside the
packages as `uv-receipt.toml`, `pipx_metadata.json` and `pyvenv.cfg`, and in the distribution as
`direct_url.json` (https://packaging.python.org/en/latest/specifications/direct-url/).

Imports nothing else of the package: the errors use it.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

__all__ = ["Installation", "install_command", "is_cached"]

_NAME: Final = "anaphora"
_CACHE_TAG: Final = "CACHEDIR.TAG"
"""Stands in a folder that anybody may empty (https://bford.info/cachedir/): uv's cache has one."""

_EXTRA: Final = re.compile(r"""\s*(?:and\s+)?extra\s*==\s*["']([^"']+)["']""")


@dataclass(frozen=True, slots=True)
class Installation:
    """An environment with Anaphora in it, and what Anaphora was installed from.

    `direct_url` is what its installer recorded, empty for an index; `requires` are the lines of its
    metadata. `managed` says that the operating system lets pip in only when told so.
    """

    prefix: Path
    python: Path
    direct_url: Mapping[str, Any]
    requires: Sequence[str]
    has_pip: bool
    has_uv: bool
    managed: bool = False
    windows: bool = False

    @classmethod
    def current(cls) -> Installation:
        """That of the running interpreter."""
        # Every program imports this module, and hardly any asks for a command.
        import sysconfig
        from importlib.metadata import PackageNotFoundError, distribution

        direct_url: Any = None
        requires: list[str] = []
        try:
            installed = distribution(_NAME)
            requires = installed.requires or []
            direct_url = json.loads(installed.read_text("direct_url.json") or "{}")
        except (PackageNotFoundError, OSError, ValueError):
            # Out of a folder on the search path: as if from an index.
            pass
        within = sys.prefix != sys.base_prefix
        marker = Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
        return cls(
            prefix=Path(sys.prefix),
            python=Path(sys.executable or "python"),
            direct_url=direct_url if isinstance(direct_url, dict) else {},
            requires=requires,
            has_pip=find_spec("pip") is not None,
            has_uv=shutil.which("uv") is not None,
            managed=not within and marker.exists(),
            windows=sys.platform == "win32",
        )

    def command(self, extra: str = "", packages: Sequence[str] = ()) -> str:
        """The command for a shell that installs an extra, or these packages, in addition."""
        cached = is_cached(self.python)
        if not cached and (receipt := _toml(self.prefix / "uv-receipt.toml")):
            words = self._uv_tool(receipt.get("tool", {}), extra, packages)
        elif cached:
            words = self._once(extra, packages)
        else:
            words = [*self._installer(), *self._wanted(extra, packages)]
        return self._line(words)

    def requirement(self, *extras: str) -> str:
        """What Anaphora was installed from, with these extras, as an installer takes it.

        The name alone where that is an index, or is not there any more.
        """
        listed = f"[{','.join(extras)}]" if extras else ""
        url = str(self.direct_url.get("url", ""))
        if path := self._local():
            return f"{path}{listed}"
        if not url or url.startswith("file:"):
            return f"{_NAME}{listed}"
        vcs = self.direct_url.get("vcs_info", {})
        if vcs:
            url = f"{vcs.get('vcs')}+{url}@{vcs.get('commit_id')}"
        folder = self.direct_url.get("subdirectory")
        return f"{_NAME}{listed} @ {url}" + (f"#subdirectory={folder}" if folder else "")

    def _local(self) -> Path | None:
        """The checkout or wheel that Anaphora was installed from, where it is still there."""
        parts = urlsplit(str(self.direct_url.get("url", "")))
        # On Windows file:///C:/folder.
        text = unquote(parts.path)
        text = text.lstrip("/") if re.match(r"/+[A-Za-z]:", text) else text
        path = Path(text) if parts.scheme == "file" else None
        return path if path is not None and path.exists() else None

    @property
    def _source_is_gone(self) -> bool:
        is_file = str(self.direct_url.get("url", "")).startswith("file:")
        return is_file and self._local() is None

    @property
    def _editable(self) -> list[str]:
        folder = self.direct_url.get("dir_info", {})
        return ["--editable"] if folder.get("editable") and self._local() else []

    def _wanted(self, extra: str, packages: Sequence[str]) -> list[str]:
        """What an installer that adds to an environment is given."""
        if not extra:
            return list(packages)
        listed = self._requirements_of(extra) if self._source_is_gone else []
        return listed or [*self._editable, self.requirement(extra)]

    def _requirements_of(self, extra: str) -> list[str]:
        """What an extra brings, each by itself."""
        return [
            # What else a marker asks for stays.
            _EXTRA.sub("", line).strip().removesuffix(";").strip()
            for line in self.requires
            if extra in _EXTRA.findall(line)
        ]

    def _installer(self) -> list[str]:
        """The program that adds packages to this environment."""
        if (self.prefix / "pipx_metadata.json").exists():
            return ["pipx", "runpip", self.prefix.name, "install"]
        permit = ["--break-system-packages"] if self.managed else []
        if self.has_pip:
            return [str(self.python), "-m", "pip", "install", *permit]
        if self.has_uv or not self._can_bring_pip:
            return ["uv", "pip", "install", "--python", str(self.python), *permit]
        bring = [str(self.python), "-m", "ensurepip", "&&"]
        return [*bring, str(self.python), "-m", "pip", "install", *permit]

    @property
    def _can_bring_pip(self) -> bool:
        """Whether the standard library's own pip is the way: uv did not make the environment."""
        config = self.prefix / "pyvenv.cfg"
        by_uv = config.exists() and re.search(r"^uv\s*=", config.read_text("utf-8"), re.MULTILINE)
        return not by_uv and not self.managed

    def _uv_tool(self, tool: Mapping[str, Any], extra: str, packages: Sequence[str]) -> list[str]:
        """`uv tool install` with all that the tool was installed with, and what is missing."""
        if self._source_is_gone:
            uv = ["uv", "pip", "install", "--python", str(self.python)]
            return [*uv, *self._wanted(extra, packages)]
        listed = tool.get("requirements", [])
        extras = [
            name
            for requirement in listed
            if requirement["name"] == _NAME
            for name in requirement.get("extras", [])
        ]
        words = ["uv", "tool", "install"]
        words += ["--python", str(tool["python"])] if "python" in tool else []
        for requirement in listed:
            if requirement["name"] != _NAME:
                words += _with(requirement)
        for package in packages:
            words += ["--with", package]
        extras += [extra] if extra and extra not in extras else []
        return [*words, *self._editable, self.requirement(*extras)]

    def _once(self, extra: str, packages: Sequence[str]) -> list[str]:
        """The way to run it once more out of a cache, with what is missing."""
        extras = [extra] if extra else []
        if any(part.name == "pipx" for part in self.python.parents):
            return ["pipx", "run", "--spec", self.requirement(*extras), _NAME]
        options = [word for package in packages for word in ("--with", package)]
        return ["uvx", *options, "--from", self.requirement(*extras), _NAME]

    def _line(self, words: Sequence[str]) -> str:
        if self.windows:
            import subprocess

            return subprocess.list2cmdline(words)
        return " ".join(word if word == "&&" else shlex.quote(word) for word in words)


def install_command(extra: str = "", packages: Sequence[str] = ()) -> str:
    """The command that installs an extra, or these packages, into this very environment."""
    return Installation.current().command(extra, packages)


def is_cached(place: Path) -> bool:
    """Whether a program or folder lies in a cache of uv or pipx, which may be emptied any day."""
    above = place.absolute().parents
    # `pipx run` keeps its environments in a cache without a tag.
    pipx = any(folder.name == ".cache" and "pipx" in folder.parent.parts for folder in above)
    # uv tags each environment that it makes, to keep it out of backups; that is no cache.
    return pipx or any(
        (folder / _CACHE_TAG).exists() and not (folder / "pyvenv.cfg").exists() for folder in above
    )


def _toml(file: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def _with(one: Mapping[str, Any]) -> list[str]:
    """The option of `uv tool install` for a package that was installed beside Anaphora."""
    extras = f"[{','.join(one['extras'])}]" if one.get("extras") else ""
    for kind in ("editable", "directory", "path"):
        if kind in one:
            option = "--with-editable" if kind == "editable" else "--with"
            return [option, f"{one[kind]}{extras}"]
    name = f"{one['name']}{extras}"
    if "git" in one:
        address, _, reference = str(one["git"]).partition("?")
        version = reference.partition("=")[2]
        return ["--with", f"{name} @ git+{address}" + (f"@{version}" if version else "")]
    if "url" in one:
        return ["--with", f"{name} @ {one['url']}"]
    return ["--with", f"{name}{one.get('specifier', '')}"]
