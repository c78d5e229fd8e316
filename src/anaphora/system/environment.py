"""The environment variables of this process: the only module that reads them; it imports little.

A resident process answers for other processes, so that variables of a caller count as well: those
that Anaphora reads itself are sent with a request (`passed_on`), and a resident process must agree
with its caller on those that the system and libraries read (`caller_mark`).
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

_FOLDERS: Final = (
    "HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
    "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TMPDIR", "TEMP", "TMP",
)  # fmt: skip
"""Where the folders of a user lie: `~`, the data folder, logs, temporary files."""

_LIBRARIES: Final = (
    "TZ", "DBUS_SESSION_BUS_ADDRESS", "PYTHON_KEYRING_BACKEND", "KEYRING_PROPERTY_FILE_PATH",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy",
    "no_proxy",
)  # fmt: skip
"""Variables that libraries read: the time zone, the keychain, the proxies."""

_DATABASE: Final = "PG"
"""libpq takes host, user and password of a database from variables that begin with it."""

# "SOVSEAL_DECAY_" are other names for half-lives.
_OURS: Final = ("ANAPHORA_", "SOVSEAL_DECAY_")
_READ: Final = (
    "NEO_CONVERSATIONS_DIR", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY",
    "GEMINI_API_KEY", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "TZ", *_FOLDERS,
)  # fmt: skip
"""Beside those that begin with `ANAPHORA_`, what `settings.py` and the log of hooks read."""

_PATHS: Final = (
    "ANAPHORA_HOME", "ANAPHORA_CONVERSATIONS_DIR", "NEO_CONVERSATIONS_DIR", "CLAUDE_CONFIG_DIR",
    "CODEX_HOME", "HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP",
)  # fmt: skip
"""Those that may be relative; the specification of `XDG_…` has such values ignored."""

_EMBEDDER: Final = "ANAPHORA_EMBEDDER"

TRIAL_VARIABLE: Final = "ANAPHORA_TRIAL"
TRIAL_PREFIX: Final = "anaphora-trial-"
TRIAL_META: Final = "anaphora/trial"
"""Under it the server of a trial names the trial's namespace when it shakes hands."""

_TRIAL_DIGITS: Final = 16


def environment() -> Mapping[str, str]:
    """All variables, also for those that pass them on to another process."""
    return os.environ


def set_default(name: str, value: str) -> None:
    """Set a variable that is not set, for a library that reads it."""
    os.environ.setdefault(name, value)


def trial_namespace(environ: Mapping[str, str]) -> str | None:
    """The namespace of a trial of `setup` or `doctor`, which ends with the server of the trial.

    `ANAPHORA_TRIAL` has only the digits of its name, so that it cannot name another namespace.
    """
    digits = environ.get(TRIAL_VARIABLE, "").strip()
    return TRIAL_PREFIX + digits if len(digits) == _TRIAL_DIGITS and digits.isalnum() else None


def is_trial(namespace: str) -> bool:
    """Whether a namespace is that of a trial."""
    digits = namespace.removeprefix(TRIAL_PREFIX)
    return namespace != digits and len(digits) == _TRIAL_DIGITS


def with_whole_paths(environ: Mapping[str, str]) -> dict[str, str]:
    """All variables, relative paths made absolute: another process works in another folder."""
    absolute = dict(environ)
    for name in _PATHS:
        path = absolute.get(name, "")
        # A blank one is an error or counts as unset, and `~` is resolved when it is read.
        if path.strip() and not path.startswith("~"):
            absolute[name] = os.path.abspath(path)  # noqa: PTH100 - pathlib is slow to import
    if absolute.get(_EMBEDDER, "").startswith("."):
        absolute[_EMBEDDER] = os.path.abspath(absolute[_EMBEDDER])  # noqa: PTH100 - as above
    return absolute


def passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a resident process needs to resolve the settings of its caller."""
    return {
        name: content
        for name, content in with_whole_paths(environ).items()
        if name.startswith(_OURS) or name in _READ
    }


def caller_mark(environ: Mapping[str, str]) -> str:
    """The variables and folders that a resident process and its callers must have in common.

    Two containers that share /tmp can have different folders of the same name, so the root and the
    user's folder are also identified by device and inode.
    """
    absolute = with_whole_paths(environ)
    parts = [
        f"{name}={absolute[name]}"
        for name in sorted(absolute)
        if (name in _FOLDERS or name in _LIBRARIES or name.startswith(_DATABASE))
        and absolute[name].strip()
    ]
    roots = ("" if sys.platform == "win32" else "/", absolute.get("HOME", "").strip())
    for folder in filter(None, roots):
        try:
            status = os.stat(folder)  # noqa: PTH116 - as above
            parts.append(f"{folder}: {status.st_dev}:{status.st_ino}")
        except OSError:
            parts.append(f"{folder}: none")
    return "\n".join(parts)
