"""`anaphora project`, `observe`, `notes`, `diary`: a project's memory, in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.console import Console
from rich.text import Text

from anaphora.api.memory import Memory
from anaphora.features.projects.values import (
    DiaryEntry,
    IndexReport,
    NoteKind,
    Observation,
    RecallPackage,
    Target,
    WarmUp,
)
from anaphora.surfaces.cli.options import Json, Timeout, argument, option
from anaphora.surfaces.cli.output import (
    EXIT_PARTLY,
    console,
    emit,
    present,
    show_degraded,
    show_factors,
    show_text,
    styled,
    table,
)
from anaphora.surfaces.cli.progress import AGAIN, long_work
from anaphora.surfaces.cli.vectors import EMBED, finish_vectors
from anaphora.surfaces.cli.where import open_memory, typed_path
from anaphora.surfaces.wire import counted
from anaphora.text.display import one_line
from anaphora.text.short_ids import short_id
from anaphora.text.shown_times import shown_day, shown_minute
from anaphora.values.context import ContextMemory

app = typer.Typer(no_args_is_help=True, help="Projects: index them, recall for a task.")

InProject = Annotated[
    str | None, typer.Option("--project", "-p", help="Name or folder (default: all).")
]
_STYLE = {"strong": "green", "partial": "yellow", "weak": "red"}
_SHOWN_SKIPPED = 5
_EXPLAINED = 2
"""Memories that --why shows: all of its answer is to fit a screen."""
_EXPLAINED_CHARACTERS = 90
_SECRET = ("secret", "secret_name")


def register(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="project")
    program.command()(observe)
    program.command()(notes)
    program.command()(diary)


@app.command()
def index(
    context: typer.Context,
    root: Annotated[Path, typer.Argument(parser=typed_path, help="The project's folder.")] = Path(),
    name: Annotated[str | None, typer.Option(help="What to call it.")] = None,
    embed: Annotated[bool, typer.Option(help=EMBED)] = True,
    as_json: Json = False,
) -> None:
    """Index a project. Run again, it reads only what changed.

    It is searchable by keyword at once. Then the vectors are computed, which can be interrupted.
    """
    with open_memory(context, warm=embed, begins=True) as memory:
        stored_note = f"Files indexed so far are stored. {AGAIN}"
        with long_work("Indexing", kept=stored_note, quiet=as_json) as progress:
            report = memory.index_project(root, name=name, embed=False, progress=progress)
        present(report, _show_report, as_json=as_json)
        if embed and report.pending:
            finish_vectors(memory, quiet=as_json)


def _show_report(report: IndexReport) -> None:
    terminal = console()
    terminal.print(
        styled(f"{report.name}: ", "bold").append(
            f"{counted(report.files, 'file')} in {counted(report.sections, 'section')}, "
            f"{counted(report.entities, 'entity', 'entities')}, "
            f"{counted(report.relations, 'relation')}, {report.seconds:.1f} s",
            "not bold",
        )
    )
    kinds = ("added", "changed", "renamed", "removed", "unchanged", "commits")
    kind_counts = [f"{getattr(report, kind)} {kind}" for kind in kinds if getattr(report, kind)]
    terminal.print("  " + ", ".join(kind_counts) if kind_counts else "  nothing changed")
    if report.pending:
        terminal.print(
            f"  {report.pending} sections have no vector yet; search by keyword finds them"
        )
    secret = [skipped_file for skipped_file in report.skipped if skipped_file.reason in _SECRET]
    other_files = [
        skipped_file for skipped_file in report.skipped if skipped_file.reason not in _SECRET
    ]
    _show_some(
        [f"left out: {skipped_file.path}: {skipped_file.reason}" for skipped_file in secret],
        "secret files",
    )
    _show_some([f"secrets redacted: {path}" for path in report.redacted], "files")
    _show_some(
        [f"left out: {skipped_file.path}: {skipped_file.reason}" for skipped_file in other_files],
        "files left out",
    )
    show_degraded(report.degraded)


def _show_some(lines: Sequence[str], what: str) -> None:
    terminal = console()
    for line in lines[:_SHOWN_SKIPPED]:
        terminal.print(styled(f"  {line}", "dim"))
    if len(lines) > _SHOWN_SKIPPED:
        terminal.print(Text(f"  … and {len(lines) - _SHOWN_SKIPPED} more {what} (--json)", "dim"))


@app.command("list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """List the indexed projects."""
    with open_memory(context) as memory:
        projects = memory.projects()
    rows = [(p.name, p.root, p.files, p.sections, shown_minute(p.indexed_at)) for p in projects]
    columns = ("name", "root", "files#", "sections#", "indexed")
    none = "no projects: anaphora project index"
    present(projects, table("", columns, rows) if rows else none, as_json=as_json)


@app.command()
def remove(
    context: typer.Context,
    project: Annotated[str, typer.Argument(help="Its name, folder or id.")],
    as_json: Json = False,
) -> None:
    """Forget a project and its sections. Notes about it stay."""
    with open_memory(context) as memory:
        sections = memory.remove_project(project)
    report = {"removed": project, "sections": sections}
    present(report, f"removed {project}: {counted(sections, 'section')}", as_json=as_json)


_One = Annotated[str, typer.Argument(help="Its folder, its remote, or the last part of either.")]
_Other = Annotated[
    str,
    typer.Argument(help="The other one; without it, the folder that this is run in."),
]


@app.command()
def same(context: typer.Context, project: _One, other: _Other = ".", as_json: Json = False) -> None:
    """Say that two folders or repositories are one project: it was renamed, moved or copied."""
    _say(context, project, other, same=True, as_json=as_json)


@app.command()
def apart(
    context: typer.Context, project: _One, other: _Other = ".", as_json: Json = False
) -> None:
    """Say that two folders or repositories are two projects; it also takes back `same`."""
    _say(context, project, other, same=False, as_json=as_json)


def _say(context: typer.Context, project: str, other: str, *, same: bool, as_json: bool) -> None:
    with open_memory(context) as memory:
        pair = memory.same_project(_folder(project), _folder(other), same=same)
    verb = "are one project" if same else "are two projects"
    line = f"{pair.project} and {pair.other} {verb}; {counted(pair.sessions, 'session')}"
    present(pair, line, as_json=as_json)


def _folder(project: str) -> str:
    """A folder as a whole path; a name or a remote as it is."""
    is_path = project.startswith((".", "~")) or Path(project).is_dir()
    return str(Path(project).expanduser().absolute()) if is_path else project


@app.command()
def recall(
    context: typer.Context,
    focus: Annotated[list[str], typer.Argument(help="The task, in one or several statements.")],
    project: InProject = None,
    budget: Annotated[int, option(Memory.recall_context, "budget")] = 2000,
    timeout: Timeout = None,
    why: Annotated[bool, typer.Option("--why", help="Show the parts of each score.")] = False,
    block: Annotated[bool, typer.Option("--block", help="The compact text for an agent.")] = False,
    as_json: Json = False,
) -> None:
    """Recall what a task needs to know: where to look first, notes, relations, history."""
    with open_memory(context, warm=True) as memory:
        package = memory.recall_context(
            focus,
            project=project,
            budget=budget,
            include_sources=why,
            timeout=timeout,
        )
    if as_json:
        emit(package)
    elif block:
        from anaphora.features.projects.recall.package import render_package

        console().print(Text(render_package(package)))
    else:
        _show_package(console(), package, why=why)


def _show_package(out: Console, package: RecallPackage, *, why: bool) -> None:
    from anaphora.features.projects.recall.package import DETAILED_TARGETS, target_name

    head = Text(package.quality.upper(), f"bold {_STYLE[package.quality]}")
    out.print(head.append(f"  {package.tokens} of {package.budget} tokens", "dim not bold"))
    for line in package.brief:
        out.print(styled(f"  {line}"))
    if package.primary_targets:
        _heading(out, "Look here first")
    for rank, target in enumerate(package.primary_targets[:DETAILED_TARGETS], 1):
        _show_target(out, rank, target, why=why)
    if further_names := [
        target_name(target_) for target_ in package.primary_targets[DETAILED_TARGETS:]
    ]:
        out.print(styled(f"   then {', '.join(further_names)}", "dim"))
    if why:
        # Sections stand above, as places to look at.
        memories = tuple(memory for memory in package.memories if memory.kind != "section")
        _show_memories(out, "From memory", memories[:_EXPLAINED], why=True)
        out.print(styled("   Without --why: texts, all notes, relations, history", "dim"))
    else:
        _show_rest(out, package)
    show_degraded(package.degraded)


def _show_rest(out: Console, package: RecallPackage) -> None:
    _show_memories(out, "From memory", package.memories)
    if package.graph:
        _heading(out, "Related")
    for relation in package.graph:
        out.print(styled(f"   {relation.subject} {relation.predicate} {relation.object}", "dim"))
    if package.history:
        _heading(out, "Before")
    for past in package.history:
        day = f"{shown_day(past.at)}  " if past.at else ""
        out.print(styled(f"   {day}{past.text}"))


def _show_target(out: Console, rank: int, target: Target, *, why: bool) -> None:
    line = Text(f"{rank}  ", "dim").append(one_line(_location(target)), "bold")
    line.append(f"  {target.score:.2f}", "green not bold")
    out.print(line.append(f"  {one_line(target.title)}" if target.title else "", "not bold"))
    if target.reason:
        reason = one_line(target.reason, _EXPLAINED_CHARACTERS) if why else target.reason
        out.print(styled(f"   {reason}", "dim"))
    if why:
        show_factors(out, target.signals)


def _show_memories(
    out: Console, heading: str, memories: tuple[ContextMemory, ...], *, why: bool = False
) -> None:
    if memories:
        _heading(out, heading)
    for memory in memories:
        when = f"  {shown_day(memory.created_at)}" if memory.created_at else ""
        rank = f"  importance {memory.importance}" if memory.importance else ""
        out.print(
            Text(f"   {memory.kind}  ", "cyan")
            .append(one_line(memory.title or memory.path or ""), "bold")
            .append(f"{rank}{when}", "dim")
        )
        show_text(out, one_line(memory.text, _EXPLAINED_CHARACTERS) if why else memory.text)
        if why:
            show_factors(out, memory.signals)


def _heading(out: Console, words: str) -> None:
    out.print()
    out.print(Text(words, "bold underline"))


def _location(target: Target) -> str:
    if not target.path:
        return target.kind.replace("_", " ")
    if target.start_line is None:
        return target.path
    return f"{target.path}:{target.start_line}-{target.end_line}"


@app.command("warm-up")
def warm_up(
    context: typer.Context,
    topic: Annotated[str | None, typer.Argument(help="What the session is about.")] = None,
    project: InProject = None,
    budget: Annotated[int, option(Memory.warm_up, "budget")] = 2000,
    block: Annotated[bool, typer.Option("--block", help="The compact text for an agent.")] = False,
    as_json: Json = False,
) -> None:
    """What a new session should know: rules, decisions, diary, project outline."""
    with open_memory(context, warm=topic is not None) as memory:
        warm = memory.warm_up(topic, project=project, budget=budget)
    if as_json:
        emit(warm)
    elif block:
        from anaphora.features.projects.recall.warm_up import render_warm_up

        console().print(Text(render_warm_up(warm)))
    else:
        _show_warm_up(console(), warm)


def _show_warm_up(out: Console, warm: WarmUp) -> None:
    parts = (
        ("Core block", warm.core),
        ("Constraints", warm.constraints),
        ("Preferences", warm.preferences),
        ("Decisions", warm.decisions),
        ("Blockers", warm.blockers),
        ("Changed lately", warm.changed),
        ("Diary", warm.diary),
        ("Last sessions", warm.sessions),
        ("Facts", warm.facts),
    )
    for heading, memories in parts:
        _show_memories(out, heading, memories)
        if heading == "Core block" and warm.core_left_out:
            out.print(f"   {warm.core_left_out} more did not fit: anaphora core")
    if warm.shape:
        _heading(out, "The project")
    for line in warm.shape:
        out.print(styled(f"   {line}"))
    if warm.highlights:
        _heading(out, "Begin with")
    for target in warm.highlights:
        out.print(styled(f"   {_location(target)}  {target.title}"))
    if warm.topic is not None:
        _heading(out, "The topic")
        _show_package(out, warm.topic, why=False)
    if not any((warm.shape, warm.topic, *(memories for _, memories in parts))):
        out.print("nothing yet: use anaphora remember, anaphora project index or anaphora observe")
    show_degraded(warm.degraded)


def observe(
    context: typer.Context,
    text: Annotated[str, argument(Memory.observe, "text")],
    kind: Annotated[
        str,
        typer.Option(help="blocker, code_insight, constraint, decision, fact, note or preference."),
    ] = "note",
    importance: Annotated[int, typer.Option(min=1, max=5, help="1 to 5.")] = 3,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be repeated.")] = None,
    source: Annotated[str | None, typer.Option(help="Where it comes from.")] = None,
    supersedes: Annotated[
        str | None, typer.Option(help="The id of a note that it replaces.")
    ] = None,
    project: InProject = None,
    as_json: Json = False,
) -> None:
    """Store a note about a project: a decision, a constraint, an insight."""
    with open_memory(context, warm=True, begins=True) as memory:
        note = memory.observe(
            text,
            kind=cast(NoteKind, kind),
            importance=importance,
            tags=tag or [],
            source=source,
            supersedes=supersedes,
            project=project,
        )
    _report_stored(as_json, note, f"{note.kind} {short_id(note.id)}", note.redacted)


def notes(
    context: typer.Context,
    project: InProject = None,
    limit: Annotated[int, option(Memory.notes, "limit")] = 20,
    as_json: Json = False,
) -> None:
    """List current notes, the latest first."""
    with open_memory(context) as memory:
        observations = memory.notes(project, limit=limit)
    if as_json:
        emit(observations)
        return
    for note in observations:
        _show_entry(note, note.kind.replace("_", " "), note.text)
    if not observations:
        console().print("no notes yet: add one with anaphora observe")


def diary(
    context: typer.Context,
    summary: Annotated[
        str | None,
        typer.Argument(help="What was done, learned, and is next; without it the diary is read."),
    ] = None,
    limit: Annotated[int, option(Memory.diary, "limit")] = 20,
    subject: Annotated[str | None, option(Memory.write_diary, "subject")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be repeated.")] = None,
    project: InProject = None,
    as_json: Json = False,
) -> None:
    """Store a diary entry for the next session, or read the last ones."""
    if summary is None:
        with open_memory(context) as memory:
            entries = memory.diary(project, limit=limit)
        if as_json:
            emit(entries)
            return
        for record in entries:
            _show_entry(record, record.subject or "diary", record.summary)
        if not entries:
            console().print("the diary is empty")
        return
    with open_memory(context, warm=True, begins=True) as memory:
        written_note = memory.write_diary(summary, subject=subject, tags=tag or [], project=project)
    _report_stored(
        as_json, written_note, f"diary {short_id(written_note.id)}", written_note.redacted
    )


def _show_entry(entry: Observation | DiaryEntry, label: str, text: str) -> None:
    head = Text(f"{shown_day(entry.created_at)}  ", style="dim").append(
        one_line(label), style="bold"
    )
    terminal = console()
    terminal.print(head.append(f"  {short_id(entry.id)}", style="dim"))
    show_text(terminal, text)


def _report_stored(as_json: bool, note: object, label: str, redacted: tuple[str, ...]) -> None:
    present(note, f"kept {label}", as_json=as_json)
    if redacted and not as_json:
        console().print(Text(f"taken out: {', '.join(redacted)}", "yellow"))
    if redacted:
        raise typer.Exit(EXIT_PARTLY)
