"""The only module that sees the environment: settings out of arguments, variables and defaults.

In: a mapping of environment variables, what the caller gave, and what the home itself remembers.
Out: frozen `Settings`. It creates nothing on disk but, when told to, the home's own settings.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anaphora.errors import DiskFull, InvalidInput, ReadOnly, StoreError
from anaphora.memory_values import HalfLives

__all__ = ["EXACT_CAP", "SETTINGS_FILE", "Settings", "load_settings", "remember_embedder"]

CONVERSATIONS_VARIABLES = ("ANAPHORA_CONVERSATIONS_DIR", "NEO_CONVERSATIONS_DIR")
SETTINGS_FILE = "settings.json"
_REFUSALS: dict[int, type[StoreError]] = {
    errno.ENOSPC: DiskFull,
    errno.EDQUOT: DiskFull,
    errno.EROFS: ReadOnly,
    errno.EACCES: ReadOnly,
    errno.EPERM: ReadOnly,
}
EXACT_CAP = 100_000


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a memory lives and how it works.

    `conversations` holds the threads of the default namespace; `database` is a PostgreSQL URL,
    None for the SQLite file of the home; `embedder` is a name that `anaphora.embed` knows;
    `exact_cap` is how many vectors of a namespace are scanned exactly before the extra `large`
    takes over (0: it always does).
    """

    home: Path
    conversations: Path
    database: str | None = None
    embedder: str = "minilm"
    exact_cap: int = EXACT_CAP
    half_lives: HalfLives = field(default_factory=HalfLives)


def load_settings(
    home: str | os.PathLike[str] | None = None,
    conversations: str | os.PathLike[str] | None = None,
    *,
    database: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Arguments win over variables, those over what the home remembers, that over the defaults.

    Variables: `ANAPHORA_HOME`, `ANAPHORA_DATABASE`, `ANAPHORA_CONVERSATIONS_DIR` (else
    `NEO_CONVERSATIONS_DIR`), `ANAPHORA_EMBEDDER`, `ANAPHORA_EXACT_CAP`, and the half-lives in days
    `ANAPHORA_DECAY_EPISODIC`, `_SEMANTIC`, `_PROCEDURAL`. Raises `InvalidInput` for a value that
    cannot be used.
    """
    env = os.environ if environ is None else environ
    root = _home(home, env)
    override = conversations or _first(env, CONVERSATIONS_VARIABLES)
    remembered = _remembered(root)
    return Settings(
        home=root,
        conversations=_place(override) if override else root / "conversations",
        database=database or _text(env, "ANAPHORA_DATABASE"),
        embedder=_text(env, "ANAPHORA_EMBEDDER") or remembered.get("embedder") or "minilm",
        exact_cap=_cap(env, "ANAPHORA_EXACT_CAP"),
        half_lives=HalfLives(
            episodic=_days(env, "ANAPHORA_DECAY_EPISODIC", HalfLives().episodic),
            semantic=_days(env, "ANAPHORA_DECAY_SEMANTIC", HalfLives().semantic),
            procedural=_days(env, "ANAPHORA_DECAY_PROCEDURAL", HalfLives().procedural),
        ),
    )


def remember_embedder(settings: Settings, embedder: str) -> None:
    """Let the home open with this embedder from now on, unless somebody says otherwise.

    `ReadOnly`, `DiskFull` or `StoreError` when it cannot be written; the old one stays then.
    """
    place = settings.home / SETTINGS_FILE
    # A name of this process: another one may be writing too, and either's whole file will do.
    fresh = place.with_suffix(f".{os.getpid()}.new")
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with fresh.open("w", encoding="utf-8") as file:
            json.dump({**_remembered(settings.home), "embedder": embedder}, file)
            file.flush()
            # Without it a crash of the machine could leave an empty file, and no home opens then.
            os.fsync(file.fileno())
        fresh.replace(place)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        kind = _REFUSALS.get(error.errno or 0, StoreError)
        raise kind("write", place, str(error)) from error


def _remembered(root: Path) -> dict[str, Any]:
    place = root / SETTINGS_FILE
    try:
        found = json.loads(place.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StoreError("read", place, str(error)) from error
    if not isinstance(found, dict) or not isinstance(found.get("embedder", ""), str):
        raise StoreError("read", place, "expected a JSON object with the embedder's name")
    return found


def _home(home: str | os.PathLike[str] | None, env: Mapping[str, str]) -> Path:
    given = home if home is not None else _text(env, "ANAPHORA_HOME")
    if given:
        return _place(given)
    import platformdirs

    return Path(platformdirs.user_data_path("anaphora", appauthor=False))


def _first(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((env[name] for name in names if _text(env, name)), None)


def _text(env: Mapping[str, str], name: str) -> str | None:
    return env.get(name, "").strip() or None


def _cap(env: Mapping[str, str], name: str) -> int:
    text = _text(env, name)
    if text is None:
        return EXACT_CAP
    if not text.isdecimal():
        raise InvalidInput(name, text, "expected a whole number, 0 or more")
    return int(text)


def _days(env: Mapping[str, str], name: str, default: float) -> float:
    text = _text(env, name)
    if text is None:
        return default
    try:
        days = float(text)
    except ValueError:
        days = math.nan
    if not (math.isfinite(days) and days > 0):
        raise InvalidInput(name, text, "expected a number of days above 0")
    return days


def _place(given: str | os.PathLike[str]) -> Path:
    return Path(given).expanduser().absolute()
