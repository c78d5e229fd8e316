"""The command line: `anaphora`. Tables for people, `--json` for programs.

Every command is one call of the facade and one way to show it. Errors are one line on standard
error and an exit code.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from importlib import import_module

import anaphora

# A client's hook waits for what this module imports.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

__all__ = ["main"]

_WITH_TABLES: Final = ("recall", "mcp")
_OBJECTS: Final = 100_000
"""New objects between two runs of the cyclic garbage collector, more than a first answer makes: at
Python's default of 700, one that takes half a second would trigger it 180 times over every loaded
module, and each run visits all that was loaded."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `anaphora` command; `arguments` are those of the process by default."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    command, leading_options = words, dict[str, str]()
    if words and words[0].startswith("-"):
        from anaphora.surfaces.cli.grammar import LEADING, take_options

        command = take_options(words, LEADING, leading_options)
    try:
        for stream in (sys.stdout, sys.stderr):
            # Windows' default encoding for pipes and files lacks most letters. A test or an
            # embedding program may have replaced the stream.
            if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        # A client blocks on its hook, so nothing else is imported for it.
        if run_at_once(command, leading_options):
            if arguments is None:
                # Without a tear-down of the interpreter, which takes as long as importing did.
                sys.stdout.flush()
                os._exit(0)
        else:
            run_command(words, command, leading_options)
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

        end_by(error, command)


def run_at_once(command: Sequence[str], place: Mapping[str, str]) -> bool:
    """Run a command that must start without anything else; False if the words ask for none.

    Such a command is a module `quick/WORD.py` of a feature, with a function `run(words, place)`
    that says whether it ran: a client waits for its hook, which may not load all features.
    """
    name = command[0] if command and command[0].isalpha() else ""
    folder = os.path.join(os.path.dirname(anaphora.__file__), "features")  # noqa: PTH118, PTH120
    for feature in os.listdir(folder) if name else ():  # noqa: PTH208
        if os.path.exists(f"{folder}/{feature}/quick/{name}.py"):  # noqa: PTH110
            gc.set_threshold(_OBJECTS)
            run = import_module(f"anaphora.features.{feature}.quick.{name}").run
            return bool(run(command[1:], place))
    return False


def run_command(words: Sequence[str], command: Sequence[str], place: Mapping[str, str]) -> None:
    """Run a command; `words` are all of them, `command` those after the leading options."""
    from anaphora.calls.caller import CallOrigin, called_from
    from anaphora.errors import AnaphoraError

    try:
        with called_from(CallOrigin("command line")):
            if not run_by_table(command, place):
                from anaphora.surfaces.cli.program import program

                if command[:1] == ["help"]:
                    # `help all`, and `help sync join` for `sync join --help`.
                    asked = command[1:]
                    command = words = [*(["--all"] if asked == ["all"] else asked), "--help"]
                program(command[0] if command else None)(words, prog_name="anaphora")
    except AnaphoraError as error:
        from anaphora.surfaces.cli.output import exit_code, show_error

        show_error(error)
        sys.exit(exit_code(error))


def run_by_table(command: Sequence[str], place: Mapping[str, str]) -> bool:
    """Run a command whose module has a table of `OPTIONS`; False if typer has to read the words."""
    name = command[0] if command else ""
    if name not in _WITH_TABLES or not all(text.strip() for text in place.values()):
        return False
    from anaphora.surfaces.cli.grammar import read_command

    if name == "recall":
        gc.set_threshold(_OBJECTS)
    module = import_module(f"anaphora.surfaces.cli.{name}")
    values = read_command(command[1:], module.OPTIONS)
    if values is None:
        return False
    from anaphora.surfaces.cli.where import Where

    getattr(module, name)(Where.of(place), **values)
    return True
