"""Which interpreter a process of our own is started with, and how."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any


def interpreter() -> str | None:
    """The path of a Python like this one; None where there is none beside the program."""
    paths = [sys.executable, getattr(sys, "_base_executable", "")]
    # Where Python is part of another program, the first names that program.
    name = "python.exe" if os.name == "nt" else "bin/python3"
    paths += [str(Path(prefix, name)) for prefix in (sys.prefix, sys.base_prefix)]
    for path in paths:
        stem = Path(path or "").stem.lower()
        if stem.startswith(("python", "pypy")) and os.access(path, os.X_OK):
            return path
    return None


def start_interpreter(program: str, *arguments: str) -> subprocess.Popen[bytes] | None:
    """Run `program` with our own `sys.path`, between two pipes; None where that cannot be started.

    It is isolated from the environment and from the current folder: a module of the standard
    library's name that lies there is not imported.
    """
    python = interpreter()
    if python is None:
        return None
    path = pickle.dumps([folder for folder in sys.path if folder]).hex()
    begin = "import pickle, sys; sys.path[:] = pickle.loads(bytes.fromhex(sys.argv[1])); "
    options: dict[str, Any] = {}
    if os.name == "nt":
        # A parent without a console would open one for it.
        options["creationflags"] = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    try:
        return subprocess.Popen(  # noqa: S603 - our own interpreter, our own words
            [python, "-I", "-c", begin + program, path, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            close_fds=True,
            **options,
        )
    except (OSError, ValueError):
        return None
