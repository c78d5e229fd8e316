"""`anaphora remember`, `recall`, `list`, `get`, `update`, `forget` and more: lasting memories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, cast

import typer
from rich.text import Text

from anaphora.core.display import one_line
from anaphora.errors import InvalidInput
from anaphora.surfaces.cli.output import (
    Json,
    MinConfidence,
    console,
    emit,
    give,
    show_factors,
    show_notes,
    show_nothing,
    show_text,
    show_versions,
    shown,
)
from anaphora.surfaces.cli.where import opened
from anaphora.surfaces.meanings import QUERY, meaning
from anaphora.surfaces.wire import time_of
from anaphora.values.conversations import Recall, RecallMode
from anaphora.values.memories import (
    Contradiction,
    MemoryHit,
    MemoryRecord,
    MemoryType,
    Verdict,
)

Filters = Annotated[
    str | None,
    typer.Option(help='A filter in JSON, e.g. {"tags": {"contains": "testing"}}.'),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    for command in (remember, recall, get, update, forget, contradictions, settle, reopen):
        app.command()(command)
    app.command("list")(list_)


def remember(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="What to remember, in one or a few sentences.")],
    type_: Annotated[
        str, typer.Option("--type", help="episodic, semantic or procedural.")
    ] = "semantic",
    path: Annotated[
        str | None, typer.Option(help="What this is the value of, e.g. user.editor.")
    ] = None,
    payload: Annotated[str | None, typer.Option(help="A JSON object kept with it.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be repeated.")] = None,
    category: Annotated[str | None, typer.Option(help="A category.")] = None,
    source: Annotated[str | None, typer.Option(help="Where it comes from.")] = None,
    supersedes: Annotated[
        str | None, typer.Option(help="The id of the memory it replaces.")
    ] = None,
    expires: Annotated[str | None, typer.Option(help="When it expires, RFC 3339.")] = None,
    as_json: Json = False,
) -> None:
    """Remember a fact. A repeated fact is reinforced; a new value of a path replaces the old."""
    with opened(context, warm=True, begins=True) as memory:
        done = memory.remember(
            text,
            type=cast(MemoryType, type_),
            path=path,
            payload=_object("payload", payload),
            tags=tuple(tag or ()),
            category=category,
            source=source,
            supersedes=supersedes,
            expires_at=time_of("expires", expires),
        )
    if as_json:
        emit(done)
        return
    out = console()
    out.print(f"{done.action} {done.id}")
    if done.redacted:
        out.print(Text(f"  redacted before storing: {', '.join(done.redacted)}", "yellow"))
    against = {one.id for one in done.conflicts}
    for related in done.related:
        if related not in against:
            out.print(shown(f"  similar to {related}", "dim"))
    for one in done.conflicts:
        out.print(shown(f"  {one.created_at:%Y-%m-%d} {one.id} says otherwise:", "yellow"))
        show_text(out, one.text)
        out.print(shown(f"  if it is replaced: anaphora settle {done.id} {one.id}", "dim"))


def recall(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help=QUERY)],
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help=meaning("limit"))] = 3,
    min_score: Annotated[
        float | None, typer.Option(help="Leave out lower scores; 0 shows the nearest.")
    ] = None,
    filters: Filters = None,
    mode: Annotated[str, typer.Option(help="hybrid, words or vector.")] = "hybrid",
    as_of: Annotated[str | None, typer.Option(help="Recall as of this time, RFC 3339.")] = None,
    why: Annotated[bool, typer.Option("--why", help="Show the parts of each score.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show what was rejected too.")] = False,
    min_confidence: MinConfidence = None,
    as_json: Json = False,
) -> None:
    """Recall memories: similarity × decay × reinforcement × currency."""
    with opened(context, warm=mode != "words") as memory:
        found = memory.recall(
            query,
            top_k=top_k,
            min_score=min_score,
            filters=_object("filters", filters),
            mode=cast(RecallMode, mode),
            as_of=time_of("as-of", as_of),
            explain=explain,
            min_confidence=min_confidence,
        )
    give(found, lambda found: _show_memories(found, why=why), as_json=as_json)


def _show_memories(found: Recall[MemoryHit], *, why: bool) -> None:
    out = console()
    if not found.hits:
        show_nothing(found, out)
    for rank, hit in enumerate(found.hits, 1):
        _show_hit(f"{rank}  ", hit, why=why)
    for rejected in found.rejected:
        out.print(Text(f"rejected: {rejected.reason}", "yellow"))
        _show_hit("   ", rejected.hit, why=why)
    show_notes(found)


def _show_hit(mark: str, hit: MemoryHit, *, why: bool) -> None:
    out = console()
    head = Text(mark, style="dim").append(one_line(hit.path or hit.type), style="bold")
    head.append(f"  {hit.created_at:%Y-%m-%d %H:%M}  {hit.id}", style="dim")
    out.print(head.append(f"  {hit.score:.3f}", style="green"))
    show_text(out, hit.text)
    show_versions(out, hit)
    if why:
        product = (
            f"   similarity {hit.similarity:.3f} × decay {hit.decay:.3f}"
            f" × reinforcement {hit.reinforcement:.3f}"
        )
        out.print(Text(product, "dim"))
        show_factors(out, hit.factors)


def list_(
    context: typer.Context,
    filters: Filters = None,
    limit: Annotated[int, typer.Option(min=1, help=meaning("limit"))] = 50,
    cursor: Annotated[str | None, typer.Option(help="Where the last page ended.")] = None,
    as_json: Json = False,
) -> None:
    """List memories, the last changed first."""
    with opened(context) as memory:
        page = memory.list(_object("filters", filters), limit=limit, cursor=cursor)
    if as_json:
        emit(page)
        return
    out = console()
    for record in page.items:
        _show_record(record)
    if not page.items:
        out.print("no memories")
    if page.cursor:
        out.print(f"… more with --cursor {page.cursor}")


def get(
    context: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The memory's id.")],
    as_json: Json = False,
) -> None:
    """Show one memory with all its details."""
    with opened(context) as memory:
        record = memory.get(id_)
    give(record, _show_record, as_json=as_json)


def _show_record(record: MemoryRecord) -> None:
    out = console()
    head = shown(record.path or record.type, style="bold")
    head.append(f"  {record.created_at:%Y-%m-%d %H:%M}  {record.id}", style="dim")
    if record.reinforce_count:
        head.append(f"  said {record.reinforce_count + 1} times", style="green")
    if record.superseded_by:
        head.append(f"  superseded by {one_line(record.superseded_by)}", style="yellow")
    out.print(head)
    show_text(out, record.text)


def update(
    context: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The memory's id.")],
    text: Annotated[
        str | None, typer.Option(help="New words; the old ones stay in history.")
    ] = None,
    type_: Annotated[str | None, typer.Option("--type", help="A new type.")] = None,
    payload: Annotated[str | None, typer.Option(help="A new JSON object.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="New tags, replacing the old ones.")] = None,
    category: Annotated[str | None, typer.Option(help="A new category.")] = None,
    expires: Annotated[str | None, typer.Option(help="When it expires, RFC 3339.")] = None,
    as_json: Json = False,
) -> None:
    """Change a memory. New words make a new version; the old one stays in its history."""
    given: dict[str, Any] = {
        "text": text,
        "type": type_,
        "payload": _object("payload", payload),
        "tags": tuple(tag) if tag else None,
        "category": category,
        "expires_at": time_of("expires", expires),
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise InvalidInput("update", id_, "nothing to change: give at least one option")
    with opened(context, warm=True) as memory:
        done = memory.update(id_, **changes)
    give(done, f"{done.action} {done.id}", as_json=as_json)


def contradictions(
    context: typer.Context,
    settled: Annotated[bool, typer.Option("--settled", help=meaning("settled"))] = False,
    limit: Annotated[int, typer.Option(min=1, help=meaning("limit"))] = 50,
    as_json: Json = False,
) -> None:
    """List memories that seem to contradict each other, the last found first."""
    with opened(context) as memory:
        found = memory.contradictions(settled=settled, limit=limit)
    give(found, _show_contradictions, as_json=as_json)


def settle(
    context: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The memory the verdict is about.")],
    other_id: Annotated[str, typer.Argument(metavar="OTHER", help="The other one.")],
    verdict: Annotated[
        str, typer.Option("--as", help="ID `replaces` OTHER, `both_hold`, or ID is `wrong`.")
    ] = "replaces",
    as_json: Json = False,
) -> None:
    """Say what holds of two memories that contradict each other; `reopen` takes it back."""
    with opened(context) as memory:
        done = memory.settle_contradiction(id_, other_id, cast(Verdict, verdict))
    give(done, lambda done: _show_contradictions([done]), as_json=as_json)


def reopen(
    context: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="ID", help="One of the two memories.")],
    other_id: Annotated[str, typer.Argument(metavar="OTHER", help="The other one.")],
    as_json: Json = False,
) -> None:
    """Take back what was said of two memories: what it ended holds again."""
    with opened(context) as memory:
        done = memory.reopen_contradiction(id_, other_id)
    give(done, lambda done: _show_contradictions([done]), as_json=as_json)


def _show_contradictions(found: Sequence[Contradiction]) -> None:
    out = console()
    for pair in found:
        out.print(shown(pair.verdict or "open", style="bold" if pair.verdict else "yellow"))
        for one in (pair.older, pair.newer):
            ended = "" if one.id in pair.holds else "  no longer holds"
            out.print(shown(f"  {one.created_at:%Y-%m-%d %H:%M}  {one.id}{ended}", "dim"))
            show_text(out, one.text)
    if not found:
        out.print("no contradictions")


def forget(
    context: typer.Context,
    id_: Annotated[str | None, typer.Argument(metavar="[ID]", help="The memory's id.")] = None,
    filters: Filters = None,
    soft: Annotated[bool, typer.Option("--soft", help="Keep it in history.")] = False,
    as_json: Json = False,
) -> None:
    """Delete one memory, or all that match a filter, for good; list what still has the words."""
    with opened(context) as memory:
        done = memory.forget(id_, filters=_object("filters", filters), soft=soft)
    if as_json:
        emit(done)
        return
    out = console()
    out.print(f"forgot {done.count}")
    for place in done.surviving:
        at = "" if place.index is None else f" #{place.index}"
        out.print(shown(f"  still in {place.kind} {place.id}{at}", "yellow"))
    if done.more:
        out.print(Text(f"  … and in {done.more:,} more", "yellow"))


def _object(name: str, text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidInput(name, text, f"expected a JSON object: {error}") from None
    if not isinstance(value, dict):
        raise InvalidInput(name, text, "expected a JSON object")
    return value
