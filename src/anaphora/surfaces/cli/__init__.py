"""The command line: `anaphora`. Tables for people, `--json` for programs.

Every command is one call of the facade and one way to show it. Errors are one line on standard
error and an exit code.
"""

from __future__ import annotations

import gc
import io
import sys
from collections.abc import Sequence
from typing import Final

__all__ = ["main"]

_BEFORE: Final = ("--home", "--namespace", "--conversations-dir")
_AFTER: Final = ("--tools", "--http")
_OBJECTS: Final = 50_000
"""New objects before Python looks for rings of them: for every 700, as it does, a question that
ends in half a second would look 180 times, and at every module that is loaded."""


def main() -> None:
    """Entry point of the `anaphora` command."""
    words = sys.argv[1:]
    try:
        _write_utf8()
        # A client waits for its hook: nothing else is imported for it.
        if not run_at_once(words):
            _run(words)
    except (SystemExit, GeneratorExit):
        raise
    except KeyboardInterrupt:
        # As what reads commands has it.
        sys.exit(130)
    except BrokenPipeError:
        # The reader of a pipe (head, less) has gone: that is no error of ours.
        sys.stderr.close()
        sys.exit(0)
    except BaseException as error:  # noqa: BLE001 - no command ends in a traceback
        from anaphora.surfaces.cli.unexpected import end_by

        end_by(error, command_words(words), is_hook=hook_client(words) is not None)


def _run(words: Sequence[str]) -> None:
    """Run a command. An error of ours is a line and an exit code."""
    from anaphora.core.caller import CallOrigin, called_from
    from anaphora.errors import AnaphoraError

    try:
        with called_from(CallOrigin("command line")):
            if not serve_mcp_at_once(words) and not recall_at_once(words):
                from anaphora.surfaces.cli.program import program

                program(_command(words))(prog_name="anaphora")
    except AnaphoraError as error:
        from anaphora.surfaces.cli.output import exit_code, show_error

        show_error(error)
        sys.exit(exit_code(error))


def _write_utf8() -> None:
    """Write UTF-8 to pipes and files, whose encoding on Windows has no place for most letters."""
    for stream in (sys.stdout, sys.stderr):
        # A test, or a program that runs this one, may have put something else there.
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def run_at_once(words: Sequence[str]) -> bool:
    """Run a hook, or the resident process; False where the words ask for neither."""
    given: dict[str, str] = {}
    rest = _options(list(words), _BEFORE, given)
    if rest == ["resident"]:
        from anaphora.surfaces.resident.server import main as run_resident

        run_resident()
        return True
    client = hook_client(words)
    if client is None:
        return False
    from anaphora.surfaces.hooks.client import run_hook

    named = {"--home": "home", "--namespace": "namespace", "--conversations-dir": "conversations"}
    run_hook(client, {named[name]: value for name, value in given.items() if value.strip()})
    return True


def serve_mcp_at_once(words: Sequence[str]) -> bool:
    """Run `anaphora mcp` without importing the other commands, which a client would wait for.

    False where the words do not plainly ask for it: then the command line reads them.
    """
    given: dict[str, str] = {}
    rest = _options(list(words), _BEFORE, given)
    if not rest or rest[0] != "mcp" or _options(rest[1:], _AFTER, given):
        return False
    if not all(value.strip() for value in given.values()):
        # Nobody means a blank one: the command line says which.
        return False
    from pathlib import Path

    from anaphora.surfaces.mcp_server import serve

    home, folder = given.get("--home"), given.get("--conversations-dir")
    serve(
        Path(home) if home is not None else None,
        given.get("--namespace", "default"),
        Path(folder) if folder is not None else None,
        tools=given.get("--tools", "default"),
        http=given.get("--http"),
    )
    return True


def recall_at_once(words: Sequence[str]) -> bool:
    """Run `anaphora recall QUESTION`, with `--json` or without, and nothing else to read.

    What reads commands takes 0.1 s to load; False leaves other words to it.
    """
    given: dict[str, str] = {}
    rest = _options(list(words), _BEFORE, given)
    as_json = rest[2:] == ["--json"]
    asks = rest[:1] == ["recall"] and len(rest) == 2 + as_json
    if not asks or rest[1].startswith("-") or not all(value.strip() for value in given.values()):
        return False
    gc.set_threshold(_OBJECTS)
    from pathlib import Path

    from anaphora.surfaces.cli.asking import ask
    from anaphora.surfaces.cli.where import Where

    home, folder = (given.get(name) for name in ("--home", "--conversations-dir"))
    where = Where(
        Path(home) if home is not None else None,
        given.get("--namespace", "default"),
        Path(folder) if folder is not None else None,
    )
    ask(where, rest[1], as_json=as_json)
    return True


def hook_client(words: Sequence[str]) -> str | None:
    """The client whose hook the words ask for; None where they ask for none."""
    rest = command_words(words)
    is_hook = len(rest) == 2 and rest[0] == "hook" and not rest[1].startswith("-")
    return rest[1] if is_hook else None


def command_words(words: Sequence[str]) -> list[str]:
    """The words from the command on."""
    return _options(list(words), _BEFORE, {})


def _command(words: Sequence[str]) -> str | None:
    """The command that the words name; None where they do not begin with one."""
    return next(iter(command_words(words)), None)


def _options(words: list[str], known: Sequence[str], given: dict[str, str]) -> list[str]:
    """Take known options with their values off the front; what is left."""
    while words:
        name, joined, value = words[0].partition("=")
        if name not in known or (not joined and len(words) < 2):
            break
        given[name] = value if joined else words[1]
        words = words[1:] if joined else words[2:]
    return words
