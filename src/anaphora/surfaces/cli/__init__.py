"""The command line: `anaphora`. Tables for people, `--json` for programs.

In: arguments. Out: text on standard output, errors as one line on standard error, an exit code.
It holds no logic of its own: every command is one call of the facade and one way to show it.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the `anaphora` command."""
    from anaphora.errors import AnaphoraError
    from anaphora.surfaces.mcp_server.short_road import short_road

    try:
        if not short_road(sys.argv[1:]):
            from anaphora.surfaces.cli.app import app

            app(prog_name="anaphora")
    except AnaphoraError as error:
        from anaphora.surfaces.cli.output import exit_code, show_error

        show_error(error)
        sys.exit(exit_code(error))
    except BrokenPipeError:
        # The reader of a pipe (head, less) has gone: that is no error of ours.
        sys.stderr.close()
        sys.exit(0)
