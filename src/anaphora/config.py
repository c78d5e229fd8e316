"""The only module that sees the environment: settings out of arguments, variables and defaults.

In: a mapping of environment variables and what the caller gave. Out: frozen `Settings`. It creates
nothing on disk.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Settings", "load_settings"]

CONVERSATIONS_VARIABLES = ("ANAPHORA_CONVERSATIONS_DIR", "NEO_CONVERSATIONS_DIR")


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a memory lives and how it embeds.

    `conversations` holds the threads of the default namespace; `embedder` is a name that
    `anaphora.embed` knows.
    """

    home: Path
    conversations: Path
    embedder: str = "minilm"


def load_settings(
    home: str | os.PathLike[str] | None = None,
    conversations: str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Arguments win over `ANAPHORA_*` variables, those over the platform's data directory.

    Variables: `ANAPHORA_HOME`, `ANAPHORA_CONVERSATIONS_DIR` (else `NEO_CONVERSATIONS_DIR`),
    `ANAPHORA_EMBEDDER`.
    """
    env = os.environ if environ is None else environ
    root = _home(home, env)
    override = conversations or _first(env, CONVERSATIONS_VARIABLES)
    return Settings(
        home=root,
        conversations=_place(override) if override else root / "conversations",
        embedder=env.get("ANAPHORA_EMBEDDER", "").strip() or "minilm",
    )


def _home(home: str | os.PathLike[str] | None, env: Mapping[str, str]) -> Path:
    given = home if home is not None else env.get("ANAPHORA_HOME", "").strip()
    if given:
        return _place(given)
    import platformdirs

    return Path(platformdirs.user_data_path("anaphora", appauthor=False))


def _first(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((env[name] for name in names if env.get(name, "").strip()), None)


def _place(given: str | os.PathLike[str]) -> Path:
    return Path(given).expanduser().absolute()
