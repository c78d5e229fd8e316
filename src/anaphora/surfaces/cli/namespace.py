"""`anaphora namespace`: which namespaces a home has, and deleting one."""

from __future__ import annotations

from typing import Annotated

import typer

from anaphora.surfaces.cli.options import Json
from anaphora.surfaces.cli.output import console, emit, present, styled, table
from anaphora.surfaces.cli.progress import AGAIN, long_work
from anaphora.surfaces.cli.where import open_memory
from anaphora.surfaces.wire import access_summary
from anaphora.text.shown_times import shown_day, shown_minute

app = typer.Typer(no_args_is_help=True, help="The namespaces of a home.")


def register(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="namespace")


@app.command("list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """List the namespaces of this home."""
    with open_memory(context) as memory:
        names = memory.namespaces()
    present({"namespaces": names}, "\n".join(names), as_json=as_json)


@app.command()
def access(context: typer.Context, as_json: Json = False) -> None:
    """Show who can read the namespace through a server, and who may write.

    It is the one named by --namespace.
    """
    with open_memory(context) as memory:
        readers = memory.tokens.readers_of(memory.namespace)
        summary = access_summary(memory.namespace, readers)
    if as_json:
        emit({"namespace": context.obj.namespace, "readers": readers, "summary": summary})
        return
    terminal = console()
    terminal.print(styled(summary), soft_wrap=True)
    rows = [
        (
            reader.name,
            reader.token,
            "read and write" if reader.writes else "read",
            shown_minute(reader.last_used) if reader.last_used else "never",
            shown_day(reader.expires_at) if reader.expires_at else "never",
        )
        for reader in readers
    ]
    if rows:
        terminal.print(table("", ("who", "token", "may", "last used", "expires"), rows))


@app.command()
def delete(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The namespace to delete.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Delete a namespace and everything in it, history included. It cannot be undone."""
    with open_memory(context) as memory:
        if not (yes or as_json or typer.confirm(f"Delete {name!r} and all of it, for good?")):
            raise typer.Exit(1)
        with long_work("Deleting", kept=f"It is partly deleted. {AGAIN}", quiet=as_json):
            report = memory.delete_namespace(name)
    lines = [f"deleted {report.namespace}, {report.tokens} tokens that opened only it"]
    lines += [f"not deleted: {path}" for path in report.left]
    if not report.clean:
        lines.append("another program reads the database: restart it to clear its write-ahead log")
    present(report, "\n".join(lines), as_json=as_json)
