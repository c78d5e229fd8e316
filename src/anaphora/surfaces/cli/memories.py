"""`anaphora remember`, `recall`, `list`, `get`, `update`, `forget` and more: lasting memories."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.text import Text

from anaphora.api.memory import Memory
from anaphora.container.feature import load, registered
from anaphora.errors import InvalidInput, NotFound
from anaphora.language.names import label_of
from anaphora.recall.places import last_part
from anaphora.surfaces.cli.conversation import show_around, show_turns
from anaphora.surfaces.cli.options import Json, MinConfidence, Timeout, argument, option
from anaphora.surfaces.cli.output import (
    confirmed,
    console,
    emit,
    present,
    show_factors,
    show_notes,
    show_nothing,
    show_notices,
    show_reason,
    show_surviving,
    show_text,
    show_versions,
    styled,
)
from anaphora.surfaces.cli.recall import WHEN
from anaphora.surfaces.cli.where import open_memory, resolve_turn
from anaphora.surfaces.wire import counted, must_exist, named_in, time_of, would_forget
from anaphora.system.repositories import repository_of
from anaphora.text.display import one_line
from anaphora.text.short_ids import short_id
from anaphora.text.shown_times import shown_day, shown_minute
from anaphora.values.conversations import READ_AWAITED, RecallMode
from anaphora.values.memories import (
    Contradiction,
    MemoryHit,
    MemoryRecord,
    MemoryType,
    Page,
    Verdict,
)

SHOWN_IDS = 10
KEPT = "  secret kept"
ID = "The id, or its first or last characters."
Tags = Annotated[list[str] | None, typer.Option(help="Only with this tag; may be repeated.")]
Types = Annotated[
    str | None, typer.Option("--type", help="Only of this type: episodic, semantic, procedural.")
]
Filters = Annotated[
    str | None,
    typer.Option(help='A filter in JSON, e.g. {"tags": {"contains": "testing"}}.'),
]


def register(program: typer.Typer) -> None:
    """Add the commands to the program."""
    for command in (remember, get, update, forget, contradictions, settle, reopen, history):
        program.command()(command)
    program.command("list")(list_)
    program.command("undo-forget")(undo_forget)
    program.command("redact-memories")(redact_memories)
    program.add_typer(app, name="memory")


app = typer.Typer(no_args_is_help=True, help="Lasting memories alone.")


def remember(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="What to remember; - reads it from stdin.")],
    type_: Annotated[
        str, typer.Option("--type", help="episodic, semantic or procedural.")
    ] = "semantic",
    path: Annotated[
        str | None, typer.Option(help="Key (e.g. user.editor). A new value replaces the old one.")
    ] = None,
    payload: Annotated[str | None, typer.Option(help="A JSON object to store with it.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be repeated.")] = None,
    category: Annotated[str | None, typer.Option(help="A category.")] = None,
    source: Annotated[str | None, typer.Option(help="Where it comes from.")] = None,
    supersedes: Annotated[
        str | None, typer.Option(help="The id of the memory it replaces.")
    ] = None,
    expires: Annotated[str | None, typer.Option(help=f"When it expires. {WHEN}")] = None,
    keep_secret: Annotated[
        bool,
        typer.Option(
            "--keep-secret", help="Keep a password or key in it; it never leaves the home unmasked."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Remember a fact. A repeated fact is reinforced; a new value of a path replaces the old."""
    with open_memory(context, warm=True, begins=True) as memory:
        if text == "-":
            # Long texts do not fit in an argument.
            try:
                text = sys.stdin.buffer.read().decode()
            except UnicodeDecodeError as error:
                reason = f"byte {error.start + 1} is not UTF-8"
                raise InvalidInput("text", "-", reason) from error
        project = repository_of(str(Path.cwd())) or str(Path.cwd())
        if source is None and label_of(text) == last_part(project).casefold():
            # Another project may have this name.
            source = project
        report = memory.remember(
            text,
            type=cast(MemoryType, type_),
            path=path,
            payload=_object("payload", payload),
            tags=tuple(tag or ()),
            category=category,
            source=source,
            supersedes=None if supersedes is None else memory.resolve_id(supersedes, "memory"),
            expires_at=time_of("expires", expires),
            keep_secret=keep_secret,
        )
        is_kept = keep_secret and memory.get(report.id).keep_secret
    if as_json:
        emit(report)
        return
    terminal = console()
    terminal.print(f"{report.action} {short_id(report.id)}{KEPT if is_kept else ''}")
    if keep_secret and not is_kept:
        terminal.print(Text("  nothing in it looks like a secret: it is kept as any memory", "dim"))
    show_notices(report.notices)
    if report.redacted:
        terminal.print(Text(f"  redacted before storing: {', '.join(report.redacted)}", "yellow"))
    against = {rival.id for rival in report.conflicts}
    for related_memory in report.related:
        if related_memory not in against:
            terminal.print(styled(f"  similar to {short_id(related_memory)}", "dim"))
    for rival in report.conflicts:
        terminal.print(
            styled(
                f"  {shown_day(rival.created_at)} {short_id(rival.id)} contradicts it:", "yellow"
            )
        )
        show_text(terminal, rival.text)
        pair = f"anaphora settle {short_id(report.id)} {short_id(rival.id)}"
        terminal.print(styled(f"  if it is replaced: {pair} --as replaces", "dim"))
        terminal.print(styled(f"  if both are true:  {pair} --as both_hold", "dim"))


@app.command()
def recall(
    context: typer.Context,
    question: Annotated[str, argument(Memory.recall, "question")],
    top_k: Annotated[int, option(Memory.recall, "top_k", "--top-k", "-k")] = 3,
    min_score: Annotated[
        float | None, typer.Option(help="Leave out lower scores; 0 shows the nearest.")
    ] = None,
    filters: Filters = None,
    tag: Tags = None,
    type_: Types = None,
    mode: Annotated[str, typer.Option(help="hybrid, words or vector.")] = "hybrid",
    as_of: Annotated[str | None, typer.Option(help=f"Recall as of this time. {WHEN}")] = None,
    why: Annotated[bool, typer.Option("--why", help="Show the parts of each score.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show what was rejected too.")] = False,
    min_confidence: MinConfidence = None,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """Recall memories: similarity × decay × reinforcement."""
    with open_memory(context, warm=mode != "words") as memory:
        answer = memory.recall(
            question,
            top_k=top_k,
            min_score=min_score,
            filters=_filters(filters, tag, type_),
            mode=cast(RecallMode, mode),
            as_of=time_of("as-of", as_of),
            explain=explain,
            min_confidence=min_confidence,
            read=READ_AWAITED,
            timeout=timeout,
        )
    if as_json:
        emit(answer)
        return
    terminal = console()
    if not answer.hits:
        show_nothing(answer, terminal)
    for rank, hit in enumerate(answer.hits, 1):
        _show_hit(f"{rank}  ", hit, why=why)
    for rejection in answer.rejected:
        terminal.print(Text(f"rejected: {rejection.reason}", "yellow"))
        _show_hit("   ", rejection.hit, why=why)
    show_notes(answer)


def _show_hit(mark: str, hit: MemoryHit, *, why: bool) -> None:
    terminal = console()
    head = Text(mark, style="dim").append(one_line(hit.path or hit.type), style="bold")
    head.append(f"  {shown_minute(hit.created_at)}  {short_id(hit.id)}", style="dim")
    head.append(f"  {hit.score:.3f}", style="green")
    terminal.print(head.append(KEPT if hit.keep_secret else "", style="yellow"))
    show_text(terminal, hit.text)
    show_versions(terminal, hit)
    if why:
        product = (
            f"   similarity {hit.similarity:.3f} × decay {hit.decay:.3f}"
            f" × reinforcement {hit.reinforcement:.3f}"
        )
        terminal.print(Text(product, "dim"))
        show_reason(terminal, hit.reason)
        show_factors(terminal, hit.factors, hit.answers)


def list_(
    context: typer.Context,
    filters: Filters = None,
    tag: Tags = None,
    type_: Types = None,
    limit: Annotated[int, option(Memory.list, "limit")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Where the last page ended.")] = None,
    as_json: Json = False,
) -> None:
    """List memories, last changed first."""
    with open_memory(context) as memory:
        page = memory.list(_filters(filters, tag, type_), limit=limit, cursor=cursor)
    if as_json:
        emit(page)
        return
    terminal = console()
    for record in page.items:
        _show_record(record)
    if not page.items:
        terminal.print("no memories")
    if page.cursor:
        terminal.print(f"… more with --cursor {page.cursor}")


def get(
    context: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="ID", help=ID)],
    as_json: Json = False,
) -> None:
    """Show a memory in full, a turn in context, a conversation or a document."""
    with open_memory(context) as memory:
        full_id = memory.resolve_id(id_)
        if _show_of_feature(memory, full_id, as_json=as_json):
            return
        thread = memory.conversations.get(full_id)
        if thread is None and "#" not in full_id:
            present(memory.get(full_id), _show_details, as_json=as_json)
            return
        index = None
        if thread is None:
            conversation_id, index = resolve_turn(memory, full_id)
            thread = must_exist(
                memory.conversations.get(conversation_id), "conversation", conversation_id
            )
    if index is None:
        present(thread, lambda whole: show_turns(whole, range(len(whole.turns))), as_json=as_json)
    elif index >= len(thread.turns):
        raise NotFound("turn", full_id)
    else:
        present(thread.turns[index], lambda _: show_around(thread, index), as_json=as_json)


def _show_of_feature(memory: Memory, record_id: str, *, as_json: bool | None = None) -> bool:
    """Show a record of a feature; False if it is none. `as_json` None: a line of it alone."""
    shows = (load(feature.cli.show) for feature in registered() if feature.cli.show)
    return any(show(memory, record_id, as_json=as_json) for show in shows)


def _show_record(record: MemoryRecord) -> None:
    terminal = console()
    head = styled(record.path or record.type, style="bold")
    head.append(f"  {shown_minute(record.created_at)}  {short_id(record.id)}", style="dim")
    if record.reinforce_count:
        head.append(f"  stated {record.reinforce_count + 1} times", style="green")
    if record.keep_secret:
        head.append(KEPT, style="yellow")
    if record.superseded_by:
        head.append(f"  superseded by {short_id(record.superseded_by)}", style="yellow")
    terminal.print(head)
    show_text(terminal, record.text)


def _show_details(record: MemoryRecord) -> None:
    """Show every property of a memory, one per line."""
    _show_record(record)
    terminal = console()
    facts = {
        "id": record.id,
        "type": record.type,
        "category": record.category,
        "tags": ", ".join(record.tags),
        "payload": json.dumps(record.payload, ensure_ascii=False) if record.payload else "",
        "sources": ", ".join(record.sources),
        "conversation": record.conversation_id,
        "current since": shown_minute(record.valid_from),
        "current until": shown_minute(record.valid_to) if record.valid_to else "",
        "last stated": shown_minute(record.last_reinforced) if record.reinforce_count else "",
        "expires": shown_minute(record.expires_at) if record.expires_at else "",
        "supersedes": record.supersedes,
        "forgotten": "yes" if record.forgotten else "",
    }
    for name, fact in facts.items():
        if fact:
            terminal.print(styled(f"   {name}: {fact}", "dim"))


def history(
    context: typer.Context,
    path: Annotated[str, typer.Argument(help="The key of the memories, e.g. user.editor.")],
    as_json: Json = False,
) -> None:
    """Show every value that a path had, oldest first."""
    with open_memory(context) as memory:
        versions = memory.history(path)
    if as_json:
        emit(versions)
        return
    for record in versions:
        _show_record(record)
    if not versions:
        console().print(styled(f"no memory has the path {path}"))


def update(
    context: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The memory's id.")],
    text: Annotated[
        str | None, typer.Option(help="The new text; the old one stays in history.")
    ] = None,
    type_: Annotated[str | None, typer.Option("--type", help="A new type.")] = None,
    payload: Annotated[str | None, typer.Option(help="A new JSON object.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="New tags, replacing the old ones.")] = None,
    category: Annotated[str | None, typer.Option(help="A new category.")] = None,
    expires: Annotated[str | None, typer.Option(help=f"When it expires. {WHEN}")] = None,
    as_json: Json = False,
) -> None:
    """Change a memory. A new text makes a new version; the old one stays in its history."""
    fields: dict[str, Any] = {
        "text": text,
        "type": type_,
        "payload": _object("payload", payload),
        "tags": tuple(tag) if tag else None,
        "category": category,
        "expires_at": time_of("expires", expires),
    }
    changes = {name: content for name, content in fields.items() if content is not None}
    if not changes:
        raise InvalidInput("update", id_, "nothing to change: give at least one option")
    with open_memory(context, warm=True) as memory:
        full_id = memory.resolve_id(id_, "memory")
        report = memory.update(full_id, **changes)
    new_id_note = "" if report.id == full_id else f"; it has a new id, {short_id(report.id)}"
    present(report, f"{report.action} {short_id(full_id)}{new_id_note}", as_json=as_json)


def contradictions(
    context: typer.Context,
    settled: Annotated[bool, option(Memory.contradictions, "settled", "--settled")] = False,
    limit: Annotated[int, option(Memory.contradictions, "limit")] = 50,
    as_json: Json = False,
) -> None:
    """List memories that seem to contradict each other, the last found first."""
    with open_memory(context) as memory:
        pairs = memory.contradictions(settled=settled, limit=limit)
    present(pairs, _show_contradictions, as_json=as_json)


def settle(
    context: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The memory the verdict is about.")],
    other_id: Annotated[str, typer.Argument(metavar="OTHER", help="The other one.")],
    verdict: Annotated[
        str, typer.Option("--as", help="ID `replaces` OTHER, `both_hold`, or ID is `wrong`.")
    ] = "replaces",
    as_json: Json = False,
) -> None:
    """Resolve a contradiction between two memories; `reopen` undoes it."""
    with open_memory(context) as memory:
        report = memory.settle_contradiction(
            memory.resolve_id(id_, "memory"),
            memory.resolve_id(other_id, "memory"),
            cast(Verdict, verdict),
        )
    present(report, lambda report: _show_contradictions([report]), as_json=as_json)


def reopen(
    context: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="ID", help="One of the two memories.")],
    other_id: Annotated[str, typer.Argument(metavar="OTHER", help="The other one.")],
    as_json: Json = False,
) -> None:
    """Undo a resolution: both memories become active again."""
    with open_memory(context) as memory:
        report = memory.reopen_contradiction(
            memory.resolve_id(id_, "memory"), memory.resolve_id(other_id, "memory")
        )
    present(report, lambda report: _show_contradictions([report]), as_json=as_json)


def _show_contradictions(pairs: Sequence[Contradiction]) -> None:
    terminal = console()
    for pair in pairs:
        terminal.print(styled(pair.verdict or "open", style="bold" if pair.verdict else "yellow"))
        for memory in (pair.older, pair.newer):
            replaced_note = "" if memory.id in pair.holds else "  replaced"
            terminal.print(
                styled(
                    f"  {shown_minute(memory.created_at)}  {short_id(memory.id)}{replaced_note}",
                    "dim",
                )
            )
            show_text(terminal, memory.text)
        if not pair.verdict:
            ids = f"{short_id(pair.newer.id)} {short_id(pair.older.id)}"
            settle = f"to settle it: anaphora settle {ids} (the newer replaces the older)"
            terminal.print(styled(f"  {settle}, or with --as both_hold or --as wrong", "dim"))
    if not pairs:
        terminal.print("no contradictions")


def forget(
    context: typer.Context,
    id_: Annotated[str | None, typer.Argument(metavar="[ID]", help=ID)] = None,
    filters: Filters = None,
    tag: Tags = None,
    type_: Types = None,
    soft: Annotated[bool, typer.Option("--soft", help="Keep it in history.")] = False,
    now: Annotated[
        bool, typer.Option("--now", help="Erase at once: nothing can bring it back.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show only, do not forget.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Forget one memory or all matches. Undo within 24 hours, unless --now.

    Hidden at once, it is erased after 24 hours; `anaphora undo-forget ID` restores it until then.
    --now erases it before the command returns, and lists what still contains the text.
    """
    chosen_filters = _filters(filters, tag, type_)
    with open_memory(context) as memory:
        full_id = None if id_ is None else memory.resolve_id(id_, "memory")
        would = memory.forget(full_id, filters=chosen_filters, dry_run=True)
        if not as_json:
            for memory_id in would.ids[:SHOWN_IDS]:
                try:
                    _show_record(memory.get(memory_id))
                except NotFound:
                    _show_of_feature(memory, memory_id)
            if len(would.ids) > SHOWN_IDS:
                console().print(styled(f"… and {len(would.ids) - SHOWN_IDS} more", "dim"))
        if dry_run:
            named = named_in(would, would_forget(memory, would) if as_json else ())
            present(named, f"would forget {would.count}; nothing was changed", as_json=as_json)
            return
        question = f"{'Erase' if now else 'Forget'} {counted(would.count, 'memory', 'memories')}?"
        if would.count and not (yes or as_json or confirmed(question)):
            raise typer.Exit(1)
        report = memory.forget(
            full_id, filters=chosen_filters, soft=soft, undoable=not (now or soft)
        )
    if as_json:
        emit(report)
        return
    terminal = console()
    terminal.print(f"forgot {report.count}")
    if report.count and not (now or soft):
        ids = short_id(report.ids[0])
        terminal.print(
            styled(f"  erased after a day; `anaphora undo-forget {ids}` brings it back", "dim")
        )
    show_surviving(report)


def undo_forget(
    context: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="ID", help=ID)],
    as_json: Json = False,
) -> None:
    """Restore what was forgotten and is not erased yet."""
    with open_memory(context) as memory:
        restored_ids = memory.undo_forget(memory.resolve_id(id_, "memory"))
    present(
        {"back": restored_ids},
        f"{counted(len(restored_ids), 'memory is', 'memories are')} back",
        as_json=as_json,
    )


def redact_memories(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count them.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Remove secrets from memories and notes that were stored before their format was known.

    It cannot be undone. Backups and exports that were made before still contain them.
    """
    with open_memory(context) as memory:
        kept_count, page = 0, memory.list(limit=1_000)
        while page.items:
            kept_count += sum(record.keep_secret for record in page)
            page = memory.list(limit=1_000, cursor=page.cursor) if page.cursor else Page(())
        ids = memory.redact_memories(dry_run=True)
        if ids and not dry_run:
            question = f"Redact {counted(len(ids), 'memory', 'memories')}?"
            if not (yes or as_json or confirmed(question)):
                raise typer.Exit(1)
            ids = memory.redact_memories()
    outcome = "would be redacted" if dry_run else "redacted"
    kept_note = f"; {kept_count:,} with a secret kept on purpose left alone" if kept_count else ""
    present(
        {"redacted": ids, "kept": kept_count},
        f"{counted(len(ids), 'memory', 'memories')} {outcome}{kept_note}",
        as_json=as_json,
    )


def _filters(
    json_text: str | None, tags: Sequence[str] | None, type_: str | None
) -> dict[str, Any] | None:
    """The filters of --filters, --tag and --type combined; None if there are none."""
    conditions = [_object("filters", json_text)] if json_text is not None else []
    conditions += [{"tags": {"contains": tag}} for tag in tags or ()]
    conditions += [{"type": type_}] if type_ is not None else []
    if len(conditions) <= 1:
        return conditions[0] if conditions else None
    return {"AND": conditions}


def _object(name: str, text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        parsed_json = json.loads(text)
    except ValueError as error:
        raise InvalidInput(name, text, f"expected a JSON object: {error}") from None
    if not isinstance(parsed_json, dict):
        raise InvalidInput(name, text, "expected a JSON object")
    return parsed_json
