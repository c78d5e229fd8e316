"""The command line: `anaphora`. Tables for people, `--json` for programs.

Every command is one call of the facade and one way to show it. Errors are one line on standard
error and an exit code.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import Final

import anaphora

__all__ = ["main"]

_BEFORE: Final = ("--home", "--namespace", "--conversations-dir")
_AFTER: Final = ("--tools", "--http")
_OBJECTS: Final = 50_000
"""New objects between two runs of the cyclic garbage collector: at Python's default of 700, a
question that takes half a second would trigger it 180 times over every loaded module."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `anaphora` command; `arguments` are those of the process by default."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        for stream in (sys.stdout, sys.stderr):
            # Windows' default encoding for pipes and files lacks most letters. A test or an
            # embedding program may have replaced the stream.
            if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        # A client blocks on its hook, so nothing else is imported for it.
        if not run_at_once(words):
            from anaphora.calls.caller import CallOrigin, called_from
            from anaphora.errors import AnaphoraError

            try:
                with called_from(CallOrigin("command line")):
                    if not serve_mcp_at_once(words) and not recall_at_once(words):
                        from anaphora.surfaces.cli.program import program

                        command = program(next(iter(command_words(words)), None))
                        command(words, prog_name="anaphora")
            except AnaphoraError as error:
                from anaphora.surfaces.cli.output import exit_code, show_error

                show_error(error)
                sys.exit(exit_code(error))
    except (SystemExit, GeneratorExit):
        raise
    except KeyboardInterrupt:
        # The exit code that shells and typer use.
        sys.exit(130)
    except BrokenPipeError:
        # The reader of the pipe (head, less) has exited: not an error.
        sys.stderr.close()
        sys.exit(0)
    except BaseException as error:  # noqa: BLE001 - no command ends in a traceback
        from anaphora.surfaces.cli.unexpected import end_by

        end_by(error, command_words(words))


def run_at_once(words: Sequence[str]) -> bool:
    """Run a command that must start without anything else; False if the words ask for none.

    Such a command is a module `quick/WORD.py` of a feature, with a function `run(words, options)`
    that says whether it ran: a client waits for its hook, which may not load all features.
    """
    options: dict[str, str] = {}
    command = _take_options(list(words), _BEFORE, options)
    name = command[0] if command and command[0].isalpha() else ""
    folder = os.path.join(os.path.dirname(anaphora.__file__), "features")  # noqa: PTH118, PTH120
    for feature in os.listdir(folder) if name else ():  # noqa: PTH208
        if os.path.exists(f"{folder}/{feature}/quick/{name}.py"):  # noqa: PTH110
            from importlib import import_module

            run = import_module(f"anaphora.features.{feature}.quick.{name}").run
            return bool(run(command[1:], options))
    return False


def serve_mcp_at_once(words: Sequence[str]) -> bool:
    """Run `anaphora mcp` without importing the other commands, which would delay the client.

    False if the words do not plainly ask for it: the full command line then parses them.
    """
    options: dict[str, str] = {}
    command = _take_options(list(words), _BEFORE, options)
    if not command or command[0] != "mcp" or _take_options(command[1:], _AFTER, options):
        return False
    if not all(argument.strip() for argument in options.values()):
        # A blank value is an error; the full command line reports which one.
        return False
    from pathlib import Path

    from anaphora.surfaces.mcp_server import serve

    home, folder = options.get("--home"), options.get("--conversations-dir")
    serve(
        Path(home) if home is not None else None,
        options.get("--namespace", "default"),
        Path(folder) if folder is not None else None,
        tools=options.get("--tools", "default"),
        http=options.get("--http"),
    )
    return True


def recall_at_once(words: Sequence[str]) -> bool:
    """Run `anaphora recall QUESTION`, with or without `--json` and with no other option.

    Loading the command-line parser takes 0.1 s; False leaves other command lines to it.
    """
    options: dict[str, str] = {}
    command = _take_options(list(words), _BEFORE, options)
    as_json = command[2:] == ["--json"]
    asks = command[:1] == ["recall"] and len(command) == 2 + as_json
    if (
        not asks
        or command[1].startswith("-")
        or not all(argument.strip() for argument in options.values())
    ):
        return False
    gc.set_threshold(_OBJECTS)
    from pathlib import Path

    from anaphora.surfaces.cli.asking import ask
    from anaphora.surfaces.cli.where import Where

    home, folder = (options.get(name) for name in ("--home", "--conversations-dir"))
    home_options = Where(
        Path(home) if home is not None else None,
        options.get("--namespace", "default"),
        Path(folder) if folder is not None else None,
    )
    ask(home_options, command[1], as_json=as_json)
    return True


def command_words(words: Sequence[str]) -> list[str]:
    """The words from the command on."""
    return _take_options(list(words), _BEFORE, {})


def _take_options(words: list[str], names: Sequence[str], options: dict[str, str]) -> list[str]:
    """Strip leading options called `names` into `options`; return the remaining words."""
    while words:
        name, equals_sign, argument = words[0].partition("=")
        if name not in names or (not equals_sign and len(words) < 2):
            break
        options[name] = argument if equals_sign else words[1]
        words = words[1:] if equals_sign else words[2:]
    return words
