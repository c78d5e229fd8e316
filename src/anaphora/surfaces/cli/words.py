"""The command with which a client starts this same Anaphora, lasting and in any environment."""

from __future__ import annotations

import shlex
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from anaphora.errors import InvalidInput
from anaphora.installing import Installation, is_cached


def program_words(
    python: Path | None = None, *, windows: bool = sys.platform == "win32"
) -> list[str]:
    """The words that start Anaphora: its script beside the interpreter `python`, or `-m anaphora`.

    From a cache, as with `uvx`, the client must use `uvx`, too: the cache may be cleaned. Raises
    `InvalidInput` if there is no lasting command.
    """
    interpreter = python or Path(sys.executable)
    name = "anaphora.exe" if windows else "anaphora"
    if is_cached(interpreter):
        uvx = shutil.which("uvx")
        source = Installation.current().requirement()
        if uvx is None:
            reason = (
                "it runs from a cache, where a client would not find it for long; "
                f"run: {command_line(['pipx', 'install', source])}"
            )
            raise InvalidInput("setup", sys.executable, reason)
        return [uvx, "--from", source, "anaphora"]
    # A system-wide Python, as on Windows, keeps scripts in another folder.
    for folder in (interpreter.parent, Path(sysconfig.get_path("scripts"))):
        if (folder / name).exists() and not is_cached(folder):
            return [str(folder / name)]
    # -P: the client's working folder could contain another `anaphora`.
    return [str(interpreter), "-P", "-m", "anaphora"]


def command_line(words: Sequence[str], *, windows: bool = sys.platform == "win32") -> str:
    """The words as one line, for a client that passes it to a shell.

    On Windows that may be cmd, PowerShell or Git's bash: all of them accept slashes, none accepts
    another's escapes, and double quotes are used only if a space requires them.
    """
    if not windows:
        return shlex.join(words)
    slashed_words = (word.replace("\\", "/") for word in words)
    return " ".join(f'"{word}"' if " " in word or not word else word for word in slashed_words)
