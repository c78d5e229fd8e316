"""Settings from arguments, variables and defaults; no other module interprets variables.

It only writes the settings of a home, and only in `remember_embedder`.
"""

from __future__ import annotations

import errno
import json
import math
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from anaphora.calls.arguments import path_of
from anaphora.errors import DiskFull, InvalidInput, ReadOnly, StoreError
from anaphora.system.environment import environment, set_default
from anaphora.system.zones import environment_zone, named_zone
from anaphora.values.context import LEAST_BUDGET
from anaphora.values.conversations import RECALL_BUDGET, RECALL_TOP_K
from anaphora.values.memories import HalfLives

CONVERSATIONS_VARIABLES = ("ANAPHORA_CONVERSATIONS_DIR", "NEO_CONVERSATIONS_DIR")
DECAY_VARIABLES = {
    kind: (f"ANAPHORA_DECAY_{kind.upper()}", f"SOVSEAL_DECAY_{kind.upper()}")
    for kind in asdict(HalfLives())
}
"""Each half-life by its own name, and by the name that another program gives it."""
SETTINGS_FILE = "settings.json"
EMBEDDERS_FILE = "embedders.json"
_REFUSALS: dict[int, type[StoreError]] = {
    errno.ENOSPC: DiskFull,
    errno.EDQUOT: DiskFull,
    errno.EROFS: ReadOnly,
    errno.EACCES: ReadOnly,
    errno.EPERM: ReadOnly,
}
EXACT_CAP = 150_000
CORE_TOKENS = 400
EXECUTION_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable that is read: what it sets, and what holds without it, in words."""

    name: str
    meaning: str
    default: str


VARIABLES = tuple(
    Variable(*row)
    for row in (
        ("ANAPHORA_HOME", "the folder of the memory", "the user's data folder"),
        ("ANAPHORA_CONVERSATIONS_DIR", "thread files of the default namespace", "in the home"),
        ("NEO_CONVERSATIONS_DIR", "the same, where the other is not set", ""),
        ("ANAPHORA_DATABASE", "URL of the PostgreSQL database", "a SQLite file of the home"),
        (
            "ANAPHORA_EMBEDDER",
            "`minilm`, `hashing`, `./a/folder`, `openai:MODEL`, `ollama:MODEL` (or "
            "`URL#MODEL` after the colon)",
            "what the home has, `minilm`",
        ),
        (
            "ANAPHORA_EMBEDDER_KEY",
            "key for an embedding endpoint",
            "`OPENAI_API_KEY`, for OpenAI's own",
        ),
        (
            "ANAPHORA_READER",
            "`off`: what was found is not read together with the question; `./a/folder`: a reader "
            "of your own",
            "`on`",
        ),
        (
            "ANAPHORA_TIMEZONE",
            'whose days "today" and "on 5 May" are, and the zone of shown times: an IANA name '
            "such as `Europe/Berlin`",
            "`TZ`, else the machine's, else UTC",
        ),
        (
            "ANAPHORA_EXACT_CAP",
            "vectors scanned exactly before LanceDB is used; the first 8,192 always are, "
            "also with 0",
            f"{EXACT_CAP:,}",
        ),
        (
            "ANAPHORA_CORE_TOKENS",
            "tokens that the core block may take in every session",
            str(CORE_TOKENS),
        ),
        (
            "ANAPHORA_RECALL_TOP_K",
            "hits of `recall_conversation`, where a call does not say",
            f"what the home has, {RECALL_TOP_K}",
        ),
        (
            "ANAPHORA_RECALL_BUDGET",
            "tokens that they may cost together",
            f"what the home has, {RECALL_BUDGET:,}",
        ),
        *(
            (own, f"half-life of {kind} memories, days", str(getattr(HalfLives(), kind)))
            for kind, (own, _) in DECAY_VARIABLES.items()
        ),
        *(
            (others, f"the same as `{own}`, where that is not set", "")
            for own, others in DECAY_VARIABLES.values()
        ),
        ("ANAPHORA_MODEL", "the model that writes the code of deep recall", "none"),
        ("ANAPHORA_MODEL_URL", "its OpenAI-compatible server, ending in `/v1`", "the provider's"),
        ("ANAPHORA_MODEL_KEY", "its key", "the provider's own variable, below"),
        ("ANAPHORA_SUB_MODEL", "the model for its sub-calls, usually cheaper", "the same model"),
        ("ANAPHORA_SUB_MODEL_URL", "its server", "the same server, for the same provider"),
        ("ANAPHORA_SUB_MODEL_KEY", "its key", "the same key, for the same server"),
        (
            "ANAPHORA_EXECUTION_SECONDS",
            "seconds that one run of the model's code may take",
            f"{EXECUTION_SECONDS:g}",
        ),
        ("OPENAI_API_KEY", "key for models of OpenAI, never sent to another server", ""),
        ("ANTHROPIC_API_KEY", "the same for models `anthropic:…`", ""),
        ("GOOGLE_API_KEY", "the same for models `google:…`; else `GEMINI_API_KEY`", ""),
        ("GEMINI_API_KEY", "see `GOOGLE_API_KEY`", ""),
        (
            "ANAPHORA_RESIDENT",
            "minutes after which the resident process ends that nobody asks; 0: none is used",
            "20",
        ),
        (
            "ANAPHORA_TRACEBACK",
            "set: an unexpected error shows its traceback on standard error, which can quote "
            "memories",
            "one line with an id",
        ),
        ("CLAUDE_CONFIG_DIR", "where `setup` and `watch` look for Claude Code", "`~/.claude`"),
        ("CODEX_HOME", "where they look for Codex", "`~/.codex`"),
    )
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a memory lives and how it works.

    `conversations` holds the threads of the default namespace; `database` is a PostgreSQL URL,
    None for the SQLite file of the home; `embedder` is a setting that `anaphora.embed` knows;
    `reader` is "on" (the bundled one), "off" or the folder of one; `exact_cap` is how many vectors
    of a namespace are scanned exactly before the extra `large` takes over (0: it always does);
    `core_tokens` is what the core block may take in a session; `recall_top_k` and `recall_budget`
    hold for `recall_conversation` where a call does not say; `timezone` is the user's where it is
    set, `local_zone` that of the environment.
    """

    home: Path
    conversations: Path
    database: str | None = None
    embedder: str = "minilm"
    # Keys are no part of a repr, and are never written.
    embedder_key: str | None = field(default=None, repr=False)
    openai_key: str | None = field(default=None, repr=False)
    reader: str = "on"
    exact_cap: int = EXACT_CAP
    core_tokens: int = CORE_TOKENS
    recall_top_k: int = RECALL_TOP_K
    recall_budget: int = RECALL_BUDGET
    half_lives: HalfLives = field(default_factory=HalfLives)
    timezone: ZoneInfo | None = None
    local_zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))
    # Deep recall: "provider:model" or a name at the base URL of an OpenAI-compatible server; the
    # model that writes code, and the one that reads; how long one run of its code may take where a
    # budget does not say. Keys are no part of a repr.
    model: str | None = None
    sub_model: str | None = None
    model_url: str | None = None
    sub_model_url: str | None = None
    model_key: str | None = field(default=None, repr=False)
    sub_model_key: str | None = field(default=None, repr=False)
    execution_seconds: float = EXECUTION_SECONDS


def _checked_environ(environ: object) -> Mapping[str, str]:
    if isinstance(environ, Mapping) and all(isinstance(text, str) for text in environ.values()):
        return environ
    # Not with its values, which may be keys.
    raise InvalidInput("environ", type(environ).__name__, "expected texts by their names")


def load_settings(
    home: str | os.PathLike[str] | None = None,
    conversations: str | os.PathLike[str] | None = None,
    *,
    database: str | None = None,
    model: str | None = None,
    sub_model: str | None = None,
    timezone: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Arguments win over variables, those over what the home remembers, that over the defaults.

    Variables: `ANAPHORA_HOME`, `ANAPHORA_DATABASE`, `ANAPHORA_CONVERSATIONS_DIR` (else
    `NEO_CONVERSATIONS_DIR`), `ANAPHORA_EMBEDDER` (and its `_KEY`), `ANAPHORA_READER`,
    `ANAPHORA_TIMEZONE` (and `TZ`), `ANAPHORA_EXACT_CAP`, and the half-lives in days
    `ANAPHORA_DECAY_EPISODIC`, `_SEMANTIC`, `_PROCEDURAL` (else the same with `SOVSEAL_DECAY_`). For
    deep recall: `ANAPHORA_MODEL`, `ANAPHORA_MODEL_URL`, `ANAPHORA_MODEL_KEY`, and the same with
    `SUB_MODEL`; without a key of its own a provider's own variable (`OPENAI_API_KEY`,
    `ANTHROPIC_API_KEY`, `GOOGLE_API_KEY`) counts; `ANAPHORA_EXECUTION_SECONDS` bounds one run of
    the model's code. `ANAPHORA_RECALL_TOP_K` and `ANAPHORA_RECALL_BUDGET` hold for recall of
    conversations; the home remembers them as `recall_top_k` and `recall_budget` in its
    settings.json.
    An empty variable is one that is not set, but for those that say where a memory lies: an empty
    one of these is a mistake, and what it was meant to be is nowhere near the default. Raises
    `InvalidInput` for it, and for any other value that cannot be used.
    """
    env = environment() if environ is None else _checked_environ(environ)
    root = _home(home, env)
    remembered_settings = _remembered(root)
    chosen_zone, local_zone = zones_of(env)
    if timezone is not None:
        chosen_zone = named_zone("timezone", timezone)
    return Settings(
        home=root,
        conversations=_conversations(conversations, root, env),
        database=_database(database, env),
        embedder=_text(env, "ANAPHORA_EMBEDDER") or remembered_settings.get("embedder") or "minilm",
        embedder_key=_text(env, "ANAPHORA_EMBEDDER_KEY"),
        openai_key=_text(env, "OPENAI_API_KEY"),
        reader=_text(env, "ANAPHORA_READER") or "on",
        exact_cap=_count(env, "ANAPHORA_EXACT_CAP", EXACT_CAP),
        core_tokens=_count(env, "ANAPHORA_CORE_TOKENS", CORE_TOKENS, LEAST_BUDGET),
        recall_top_k=_count(
            env, "ANAPHORA_RECALL_TOP_K", remembered_settings.get("recall_top_k", RECALL_TOP_K), 1
        ),
        recall_budget=_count(
            env, "ANAPHORA_RECALL_BUDGET", remembered_settings.get("recall_budget", RECALL_BUDGET)
        ),
        half_lives=HalfLives(
            **{
                kind: _positive(
                    env,
                    next((name for name in names if _text(env, name)), names[0]),
                    getattr(HalfLives(), kind),
                    "days",
                )
                for kind, names in DECAY_VARIABLES.items()
            }
        ),
        timezone=chosen_zone,
        local_zone=local_zone,
        execution_seconds=_positive(
            env, "ANAPHORA_EXECUTION_SECONDS", EXECUTION_SECONDS, "seconds"
        ),
        **_models(env, model, sub_model),
    )


def zones_of(environ: Mapping[str, str]) -> tuple[ZoneInfo | None, ZoneInfo]:
    """The user's zone where `ANAPHORA_TIMEZONE` has it, and the one that holds without it.

    That is the zone that `TZ` names, else the machine's, else UTC. Raises `InvalidInput`.
    """
    name = _text(environ, "ANAPHORA_TIMEZONE")
    chosen_zone = None if name is None else named_zone("ANAPHORA_TIMEZONE", name)
    return chosen_zone, environment_zone(environ.get("TZ"))


def resolve_places(
    home: str | os.PathLike[str] | None,
    conversations: str | os.PathLike[str] | None = None,
    database: str | None = None,
) -> tuple[Path, Path, str | None]:
    """Home, conversations and database as `load_settings` has them, for a home yet to be made."""
    env = environment()
    root = _home(home, env)
    return root, _conversations(conversations, root, env), _database(database, env)


def embedder_by_variable() -> bool:
    """Whether `ANAPHORA_EMBEDDER` overrides the embedders of all homes."""
    return _text(environment(), "ANAPHORA_EMBEDDER") is not None


def remember_embedder(settings: Settings, embedder: str) -> None:
    """Store this embedder as the default of the home.

    Raises `ReadOnly`, `DiskFull` or `StoreError` if it cannot be written; then the old one stays.
    """
    path = settings.home / SETTINGS_FILE
    # A name per process: another process may be writing too, and the last complete file counts.
    new_path = path.with_suffix(f".{os.getpid()}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with new_path.open("w", encoding="utf-8") as file:
            json.dump({**_remembered(settings.home), "embedder": embedder}, file)
            file.flush()
            # Otherwise a crash of the machine could leave an empty file, which no home opens with.
            os.fsync(file.fileno())
        new_path.replace(path)
    except OSError as error:
        with suppress(OSError):
            new_path.unlink(missing_ok=True)
        kind = _REFUSALS.get(error.errno or 0, StoreError)
        raise kind("write", path, str(error)) from error


def _remembered(root: Path) -> dict[str, Any]:
    path = root / SETTINGS_FILE
    try:
        stored_settings = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StoreError("read", path, str(error)) from error
    if not isinstance(stored_settings, dict) or not isinstance(
        stored_settings.get("embedder", ""), str
    ):
        raise StoreError("read", path, "expected a JSON object with the embedder's name")
    for name, least_number in (("recall_top_k", 1), ("recall_budget", 0)):
        number = stored_settings.get(name, least_number)
        if type(number) is not int or number < least_number:
            raise StoreError(
                "read", path, f"{name}: expected a whole number, {least_number} or more"
            )
    return stored_settings


_DATA_FOLDERS = {"linux": ".local/share", "darwin": "Library/Application Support"}


def _home(home: str | os.PathLike[str] | None, env: Mapping[str, str]) -> Path:
    if home is not None:
        return path_of("home", home)
    if "ANAPHORA_HOME" in env:
        return path_of("ANAPHORA_HOME", env["ANAPHORA_HOME"])
    # The folder of user data as platformdirs defines it, by the variables of the caller.
    # platformdirs reads those of this process, which may answer for another one: it is used if
    # these variables are not set, or do not count (as on Windows).
    under, user = _DATA_FOLDERS.get(sys.platform), _text(env, "HOME")
    xdg_folder = _text(env, "XDG_DATA_HOME")
    if under is not None and "ANDROID_ROOT" not in env:
        # The specification of these variables says that relative paths are ignored.
        if xdg_folder is not None and Path(xdg_folder).is_absolute():
            return Path(xdg_folder) / "anaphora"
        if user is not None and Path(user).is_absolute():
            return Path(user) / under / "anaphora"
    import platformdirs

    return Path(platformdirs.user_data_path("anaphora", appauthor=False))


def _conversations(
    given: str | os.PathLike[str] | None, root: Path, env: Mapping[str, str]
) -> Path:
    if given is not None:
        return path_of("conversations_dir", given)
    our_name, their_name = CONVERSATIONS_VARIABLES
    if our_name in env:
        return path_of(our_name, env[our_name])
    # The other program treats an empty variable as unset, so this one must do the same.
    folder = _text(env, their_name)
    return path_of(their_name, folder) if folder else root / "conversations"


def _database(given: str | None, env: Mapping[str, str]) -> str | None:
    if given is not None:
        return _not_blank("database", given)
    # A blank URL is refused: data would be written to a file instead of the intended server.
    return _not_blank("ANAPHORA_DATABASE", env.get("ANAPHORA_DATABASE"))


def _not_blank(name: str, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise InvalidInput(name, value, "must not be blank")
    return value


def _text(env: Mapping[str, str], name: str) -> str | None:
    return env.get(name, "").strip() or None


_KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
}


def _models(
    env: Mapping[str, str], model: str | None, sub_model: str | None
) -> dict[str, str | None]:
    code = _not_blank("model", model) or _text(env, "ANAPHORA_MODEL")
    sub = _not_blank("sub_model", sub_model) or _text(env, "ANAPHORA_SUB_MODEL")
    code_url, sub_url = _text(env, "ANAPHORA_MODEL_URL"), _text(env, "ANAPHORA_SUB_MODEL_URL")
    code_key = _text(env, "ANAPHORA_MODEL_KEY")
    sub_key = _text(env, "ANAPHORA_SUB_MODEL_KEY")
    if sub is not None and sub_url is None and _provider(sub) in ("", _provider(code or "")):
        # The same server, so the same key; one server's key is never sent to another.
        sub_url, sub_key = code_url, sub_key or code_key
    return {
        "model": code,
        "sub_model": sub,
        "model_url": code_url,
        "sub_model_url": sub_url,
        "model_key": code_key or _own_key(env, code, code_url),
        "sub_model_key": sub_key or _own_key(env, sub, sub_url),
    }


def _provider(model: str) -> str:
    provider = model.partition(":")[0]
    return provider if provider in _KEYS else ""


def _own_key(env: Mapping[str, str], model: str | None, url: str | None) -> str | None:
    """The key in the provider's own variable; a server of the user's own does not get it."""
    if url is not None or model is None:
        return None
    names = _KEYS[_provider(model) or "openai"]
    return next((env[name] for name in names if _text(env, name)), None)


def _count(env: Mapping[str, str], name: str, default: int, least: int = 0) -> int:
    text = _text(env, name)
    if text is None:
        return default
    if not text.isdecimal() or int(text) < least:
        raise InvalidInput(name, text, f"expected an integer, {least} or more")
    return int(text)


def _positive(env: Mapping[str, str], name: str, default: float, unit: str) -> float:
    text = _text(env, name)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise InvalidInput(name, text, f"expected a number of {unit} above 0")
    return number


@dataclass(frozen=True, slots=True)
class ClientFolders:
    """Where coding agents keep their configuration on this machine.

    `user` is the user's folder, `applications` where desktop programs keep theirs, `claude` and
    `codex` those agents' own folders, `claude_servers` the file with Claude Code's servers.
    """

    user: Path
    applications: Path
    claude: Path
    claude_servers: Path
    codex: Path


def client_folders(
    environ: Mapping[str, str] | None = None, platform: str = sys.platform
) -> ClientFolders:
    """By the conventions of the system, or `CLAUDE_CONFIG_DIR` and `CODEX_HOME` where set."""
    env = environment() if environ is None else environ
    user = Path(_text(env, "USERPROFILE" if platform == "win32" else "HOME") or Path.home())
    if platform == "win32":
        applications = Path(_text(env, "APPDATA") or user / "AppData" / "Roaming")
    elif platform == "darwin":
        applications = user / "Library" / "Application Support"
    else:
        applications = Path(_text(env, "XDG_CONFIG_HOME") or user / ".config")
    claude = _text(env, "CLAUDE_CONFIG_DIR")
    return ClientFolders(
        user=user,
        applications=applications,
        claude=Path(claude) if claude else user / ".claude",
        claude_servers=(Path(claude) if claude else user) / ".claude.json",
        codex=Path(_text(env, "CODEX_HOME") or user / ".codex"),
    )


def silence_libraries() -> None:
    """Tells libraries that report on their use not to, before they are imported.

    onnxruntime's own builds carry Microsoft's telemetry: seconds after a model was loaded they look
    for its server, and they keep an id of the device in the user's cache. Only this variable, set
    before the import, prevents both; `disable_telemetry_events()` does not.
    """
    set_default("ORT_DISABLE_TELEMETRY", "1")
