"""`anaphora document`: files stored as text: add, list, show, write out, forget."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from anaphora.api.memory import Memory
from anaphora.errors import InvalidInput, NotEmpty, NotFound, UnreadableDocument
from anaphora.features.documents.values import AddedDocument, Document
from anaphora.surfaces.cli.imports import run_import
from anaphora.surfaces.cli.options import Json, option
from anaphora.surfaces.cli.output import (
    EXIT_PARTLY,
    console,
    emit,
    present,
    show_error,
    show_surviving,
    show_text,
    styled,
)
from anaphora.surfaces.cli.progress import AGAIN, long_work
from anaphora.surfaces.cli.vectors import finish_vectors
from anaphora.surfaces.cli.where import open_memory, typed_path
from anaphora.surfaces.wire import counted, time_of
from anaphora.text.display import one_line
from anaphora.text.short_ids import short_id, short_turn
from anaphora.text.shown_times import shown_minute

DOCUMENT = "The id, its first or last characters, or the name."

app = typer.Typer(no_args_is_help=True, help="Documents: PDF, DOCX, HTML, mail, Markdown, text.")


def register(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="document")


@app.command()
def add(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(parser=typed_path, help="The files. A folder goes in as by `import`."),
    ],
    name: Annotated[
        str | None,
        typer.Option(help="Its name (default: its path); a new file of a name replaces the old."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Its title (default: the file's own).")] = None,
    date: Annotated[
        str | None, typer.Option(help="Its date, e.g. 2026-03-01 (default: the file's own).")
    ] = None,
    origin: Annotated[str | None, typer.Option(help="Where it comes from.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be repeated.")] = None,
    keep_file: Annotated[
        bool | None,
        typer.Option(
            "--keep-file/--text-only",
            help="Store the file with its text (default: unless the text had secrets).",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Import files as sections of text. Unreadable files are skipped."""
    if len(files) > 1 and (name or title):
        raise InvalidInput("name" if name else "title", name or title, "give one file with it")
    if any(path.is_dir() for path in files):
        options = {"name": name, "title": title, "date": date, "origin": origin, "tag": tag}
        _import_all(context, files, {**options, "keep-file": keep_file}, as_json=as_json)
        return
    added_documents: list[AddedDocument] = []
    unreadable_documents: list[UnreadableDocument] = []
    with open_memory(context, warm=True, begins=True) as memory:
        stored_note = f"Files read so far are stored. {AGAIN}"
        with long_work("Reading", kept=stored_note, quiet=as_json) as progress:
            for number, file in enumerate(files):
                progress(file.name, number, len(files))
                try:
                    added_documents.append(
                        memory.add_document(
                            file,
                            name=name,
                            title=title,
                            date=time_of("date", date, datetime.now(UTC)),
                            origin=origin,
                            tags=tag or (),
                            keep_file=keep_file,
                            embed=False,
                        )
                    )
                except UnreadableDocument as unread:
                    unreadable_documents.append(unread)
        if as_json:
            emit(added_documents)
        else:
            for document in added_documents:
                _show_added(document)
        for error in unreadable_documents:
            show_error(error)
        if any(document.pending for document in added_documents):
            finish_vectors(memory, quiet=as_json)
    if unreadable_documents or any(document.problems for document in added_documents):
        raise typer.Exit(EXIT_PARTLY)


def _import_all(
    context: typer.Context, paths: list[Path], options: Mapping[str, object], *, as_json: bool
) -> None:
    """Take files and folders in as `import` does, which has none of these options."""
    for option_name, option_value in options.items():
        if option_value not in (None, []):
            raise InvalidInput(option_name, option_value, "give files with it, no folder")
    run_import(context, paths, as_json=as_json)


@app.command("list")
def list_(
    context: typer.Context,
    history: Annotated[bool, typer.Option("--history", help="Past versions, too.")] = False,
    limit: Annotated[int, option(Memory.documents, "limit")] = 50,
    as_json: Json = False,
) -> None:
    """List documents, last added first."""
    with open_memory(context) as memory:
        documents = memory.documents(limit=limit, history=history)
    if as_json:
        emit(documents)
        return
    for document in documents:
        show_document(document)
    if not documents:
        console().print("no documents")


@app.command()
def show(
    context: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="DOCUMENT", help=DOCUMENT)],
    as_json: Json = False,
) -> None:
    """Show a document with its text, or a single section by its id."""
    with open_memory(context) as memory:
        document, section = _resolve(memory, id_)
        show_whole(memory, document, section, as_json=as_json)


def show_whole(memory: Memory, document: Document, section: str, *, as_json: bool) -> None:
    """Show a document with its sections, or with the one of this number."""
    sections = memory.document_sections(document.id)
    if section:
        sections = tuple(part for part in sections if str(part.number) == section)
        if not sections:
            raise NotFound("section", f"{document.id}#{section}")
    if as_json:
        emit({"document": document, "sections": sections})
        return
    show_document(document)
    terminal = console()
    for part in sections:
        place_line = "  ".join(p for p in (short_turn(part.document, part.number), part.place) if p)
        terminal.print(styled(f" {one_line(place_line)}", "green"))
        show_text(terminal, part.text)


@app.command()
def file(
    context: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="DOCUMENT", help=DOCUMENT)],
    target: Annotated[Path, typer.Argument(parser=typed_path, help="Where to write it.")],
) -> None:
    """Write the file of a document, as it was added, to a new file."""
    with open_memory(context) as memory:
        document, _ = _resolve(memory, id_)
        content = memory.document_file(document.id)
    try:
        with target.open("xb") as target_file:
            target_file.write(content)
    except FileExistsError:
        raise NotEmpty("write", target, "there is a file of this name") from None
    console().print(styled(f"{counted(len(content), 'byte')} written to {target}"))


@app.command()
def forget(
    context: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="DOCUMENT", help=DOCUMENT)],
    now: Annotated[
        bool, typer.Option("--now", help="Erase at once: nothing can bring it back.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show only, do not forget.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Forget a document with all its versions. Undo within 24 hours, unless --now."""
    with open_memory(context) as memory:
        document, _ = _resolve(memory, id_)
        if not as_json:
            show_document(document)
        if dry_run:
            would = memory.forget(document.id, dry_run=True)
            present(would, f"would forget {would.count}; nothing was changed", as_json=as_json)
            return
        if not (yes or as_json or typer.confirm("Erase it?" if now else "Forget it?")):
            raise typer.Exit(1)
        report = memory.forget(document.id, undoable=not now)
    if as_json:
        emit(report)
        return
    terminal = console()
    terminal.print(f"forgot {counted(report.count, 'version')}")
    if not now:
        undo_note = f"`anaphora undo-forget {short_id(document.id)}` brings it back"
        terminal.print(styled(f"  erased after a day; {undo_note}", "dim"))
    show_surviving(report)


def _resolve(memory: Memory, name: str) -> tuple[Document, str]:
    """The document with this id, end of an id, or name; and a section's number or ""."""
    full_id, is_id = name, False
    with suppress(NotFound, InvalidInput):
        full_id, is_id = memory.resolve_id(name), True
    _, _, section = full_id.partition("#")
    for known_name in (full_id, Path(name).expanduser().resolve().as_posix()):
        with suppress(NotFound):
            return memory.document(known_name), section if section.isdecimal() else ""
    if is_id:
        raise InvalidInput("id", name, "it is no document: `anaphora get` shows it")
    raise NotFound("document", name)


def _show_added(done: AddedDocument) -> None:
    terminal = console()
    show_document(done.document, done.action)
    for problem in done.problems:
        terminal.print(styled(f"   not read: {problem.place}: {problem.reason}", "yellow"))
    if done.redacted:
        remark = "" if done.document.file_kept else "; the file itself is not stored"
        terminal.print(
            styled(f"   redacted before storing: {', '.join(done.redacted)}{remark}", "yellow")
        )


def show_document(document: Document, action: str = "") -> None:
    """Show a document's properties in two lines."""
    head = Text(f"{action} " if action else "").append(one_line(document.title), "bold")
    head.append(f"  {shown_minute(document.added_at)}  {short_id(document.id)}", "dim")
    if document.superseded_by:
        head.append(f"  replaced by {short_id(document.superseded_by)}", "yellow")
    facts = [document.format, counted(document.pages, "page") if document.pages is not None else ""]
    facts += [
        counted(document.sections, "section"),
        f"of {document.date:%Y-%m-%d}" if document.date else "",
    ]
    facts += [one_line(document.author or ""), "" if document.file_kept else "text only"]
    facts += [", ".join(document.tags), one_line(document.name)]
    terminal = console()
    terminal.print(head)
    terminal.print(styled("   " + " · ".join(fact for fact in facts if fact), "dim"))


def show_by_id(memory: Memory, record_id: str, *, as_json: bool | None) -> bool:
    """Show a document, or a section of it; False if it is none. `as_json` None: its line alone."""
    try:
        document = memory.document(record_id)
    except NotFound:
        return False
    if as_json is None:
        show_document(document)
    else:
        show_whole(memory, document, record_id.partition("#")[2], as_json=as_json)
    return True
