"""What in a client's file is ours: the commands that we wrote, as recorded beside the file.

A set-up by an older build has no record. There a command is ours if it has the exact form that
those builds wrote: the program by its whole path, options for the home, and `hook CLIENT`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from anaphora.features.coding_agents.setup.clients import SKILL
from anaphora.surfaces.cli.words import command_line

COPY: Final = ".before-anaphora"
"""The suffix of the copy of the original file; there is none of a file that we made."""

RECORD: Final = ".by-anaphora"
"""The suffix of the record of what we wrote."""

_OPTIONS: Final = frozenset({"--home", "--conversations-dir", "--namespace"})
_WHOLE_PATH: Final = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")


@dataclass(frozen=True, slots=True)
class SetupRecord:
    """What we wrote into one file: the lines of hooks, or the digest of a whole text.

    `made` says that the file was not there, `folders` which folders were not.
    """

    commands: Sequence[str] = ()
    digest: str = ""
    made: bool = False
    folders: Sequence[str] = ()

    @classmethod
    def beside(cls, path: Path) -> SetupRecord | None:
        """That of a file; None where there is none that can be read."""
        try:
            return cls(**json.loads(sibling(path, RECORD).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def shown(self) -> bytes:
        """As it is kept."""
        return json.dumps(asdict(self), indent=1).encode() + b"\n"


def sibling(path: Path, suffix: str) -> Path:
    """The file beside another one."""
    return path.with_name(path.name + suffix)


def digest_of(text: bytes) -> str:
    """What a record says of a text."""
    return sha256(text).hexdigest()


def is_own_hook(hook: Any, client: str, record: SetupRecord | None) -> bool:
    """Whether a hook in a client's file is ours."""
    line = hook.get("command") if isinstance(hook, Mapping) else None
    if not isinstance(line, str):
        return False
    return line in record.commands if record is not None else runs_hook(line, client)


def runs_hook(line: str, client: str) -> bool:
    """Whether a line for a shell has the form in which we write a client's hooks."""
    try:
        words = shlex.split(line)
    except ValueError:
        return False
    end = _program(words)
    # Quoted as we quote: nothing in it means more to a shell than a word.
    as_written = line == command_line(words, windows=line.lstrip('"')[1:2] == ":")
    return as_written and end > 0 and words[end:] == ["hook", client]


def own_server(server: Any) -> tuple[list[str], list[str]] | None:
    """The words of our server and those that a user added, if it starts as we write it."""
    if not isinstance(server, Mapping):
        return None
    words = [server.get("command"), *(a if isinstance(a := server.get("args"), list) else [None])]
    if not all(isinstance(word, str) for word in words):
        return None
    end = _program(words) + 1
    return (words[:end], words[end:]) if end > 1 and words[end - 1 : end] == ["mcp"] else None


def own_hooks(members: Any, client: str, record: SetupRecord | None) -> list[tuple[str | int, ...]]:
    """The paths of our hooks in a list of hooks, or of groups of hooks."""
    paths: list[tuple[str | int, ...]] = []
    for n, member in enumerate(members if isinstance(members, list) else ()):
        hooks = member.get("hooks") if isinstance(member, Mapping) else None
        inner = [
            ((n, "hooks", m), inner_hook)
            for m, inner_hook in enumerate(hooks if isinstance(hooks, list) else ())
        ]
        for path, hook in [((n,), member), *inner]:
            if is_own_hook(hook, client, record):
                paths.append(path)
    return paths


def is_skill(content: bytes | None, record: SetupRecord | None) -> bool:
    """Whether a text is our skill as we wrote it, in any version."""
    if content is None or f"name: {SKILL}\n".encode() not in content:
        return False
    return record is None or record.digest == digest_of(content)


def _program(words: Sequence[str]) -> int:
    """The number of words that start Anaphora, with options for its home; 0 for another program."""
    if not words or not _WHOLE_PATH.match(words[0]):
        return 0
    name, after = re.split(r"[\\/]", words[0])[-1].removesuffix(".exe"), [*words[1:4]]
    at = int(name == "anaphora")
    if name.startswith("python"):
        at = 4 if after == ["-P", "-m", "anaphora"] else 3 * (after[:2] == ["-m", "anaphora"])
    elif name == "uvx":
        at = 4 * (after[::2] == ["--from", "anaphora"])
    while at and words[at : at + 1] and words[at] in _OPTIONS:
        at += 2
    return at
