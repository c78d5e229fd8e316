"""How a client starts this very Anaphora, whatever its own environment is, today and next month."""

from __future__ import annotations

import shlex
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from anaphora.errors import InvalidInput
from anaphora.installing import Installation, is_cached


def program_words(
    python: Path | None = None, *, windows: bool = sys.platform == "win32"
) -> list[str]:
    """The words that start Anaphora: its script beside the interpreter `python`, or through that.

    Out of a cache, as `uvx` runs it, a client must go through `uvx` too: what lies there is gone
    when the cache is cleaned. Raises `InvalidInput` where nothing lasting would start it.
    """
    interpreter = python or Path(sys.executable)
    name = "anaphora.exe" if windows else "anaphora"
    if is_cached(interpreter):
        return _through_uvx()
    # A Python for the whole system keeps scripts apart, as that of Windows does.
    for folder in (interpreter.parent, Path(sysconfig.get_path("scripts"))):
        if (folder / name).exists() and not is_cached(folder):
            return [str(folder / name)]
    # -P: without it, the folder that the client works in could hold another `anaphora`.
    return [str(interpreter), "-P", "-m", "anaphora"]


def command_line(words: Sequence[str], *, windows: bool = sys.platform == "win32") -> str:
    """The words as one line, for a client that hands it to a shell.

    On Windows that may be cmd, PowerShell or the bash of Git: all of them read slashes, none reads
    another's escapes, and double quotes stand only where a space makes them necessary.
    """
    if not windows:
        return shlex.join(words)
    slashed = (word.replace("\\", "/") for word in words)
    return " ".join(f'"{word}"' if " " in word or not word else word for word in slashed)


def _through_uvx() -> list[str]:
    uvx = shutil.which("uvx")
    extras = ["projects"] if find_spec("tree_sitter") is not None else []
    source = Installation.current().requirement(*extras)
    if uvx is None:
        reason = (
            "it runs from a cache, where a client would not find it for long; "
            f"run: {command_line(['pipx', 'install', source])}"
        )
        raise InvalidInput("setup", sys.executable, reason)
    return [uvx, "--from", source, "anaphora"]
