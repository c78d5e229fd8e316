"""`anaphora deep`, `gaps`, `dream`, `extract`: questions that need more than a search.

What a model or a history says is shown escaped: it can neither move the cursor nor pass for markup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, cast

import typer
from rich.console import Console
from rich.text import Text

from anaphora.core.display import one_line, visible
from anaphora.core.short_ids import short_id, short_turn
from anaphora.core.shown_times import shown_day, shown_minute
from anaphora.errors import InvalidInput
from anaphora.store.records.rows import OPEN
from anaphora.surfaces.cli.options import Json
from anaphora.surfaces.cli.output import (
    EXIT_PARTLY,
    console,
    emit,
    give,
    show_degraded,
    show_text,
    shown,
    table,
)
from anaphora.surfaces.cli.progress import AGAIN, long_work
from anaphora.surfaces.cli.where import opened
from anaphora.surfaces.wire import counted, refuse_unknown
from anaphora.values.conversations import Degraded
from anaphora.values.deep import (
    Budget,
    CostSnapshot,
    DeepAnswer,
    DeepSource,
    DeepStep,
    DreamReport,
    Extracted,
    GapStatus,
    Scope,
    SubCall,
)

OUTPUT_LINES = 20
PROMPT_CHARS = 100
ANSWER_CHARS = 200
SOURCES = 5
SOURCE_CHARS = 160
_ASKED = "Nothing was changed. Ask the same question again; --seconds limits how long it takes."
_DREAMT = f"Facts and links stored so far stay. {AGAIN}"
_COLOURS = {"submit": "green", "extraction": "yellow", "limit": "red"}


def show_step(step: DeepStep, out: Console | None = None) -> None:
    """One step: its head with time and cost so far, then thought, code, output and sub-calls."""
    out = out or console()
    head = Text(f"step {step.number}  ", "dim")
    head.append(step.kind, f"bold {_COLOURS.get(step.kind, 'cyan')}")
    out.print(head.append(f"  {step.seconds:.1f} s  {cost_line(step.cost)}", "dim"))
    if step.thought:
        show_text(out, step.thought)
    for line in step.code.splitlines():
        out.print(Text(f"   │ {visible(line)}", "cyan"))
    if step.output.strip():
        show_text(out, _first_lines(step.output))
    for call in step.sub_calls:
        out.print(shown(f"   ? {_sub_call_line(call)}", "magenta"))
    if step.error:
        out.print(Text("   " + visible(step.error).replace("\n", "\n   "), "red"))


def cost_line(cost: CostSnapshot) -> str:
    """What was spent so far in a few words; a price that is not known is said to be so."""
    money = "cost unknown"
    if cost.estimated_dollars is not None:
        money = f"${cost.estimated_dollars:.4f}"
    parts = [f"{cost.input_tokens:,} + {cost.output_tokens:,} tokens", money]
    if cost.sub_calls:
        parts.append(f"{cost.sub_calls} sub-call{'s' if cost.sub_calls != 1 else ''}")
    return ", ".join(parts)


def _sub_call_line(call: SubCall) -> str:
    asked = " ".join(call.prompt[:PROMPT_CHARS].split())
    said = " ".join((call.error or call.answer)[:ANSWER_CHARS].split())
    return f"{asked} → {said}{' (asked before)' if call.cached else ''}"


def _first_lines(output: str) -> str:
    lines = output.strip().splitlines()
    if len(lines) <= OUTPUT_LINES:
        return "\n".join(lines)
    return "\n".join([*lines[:OUTPUT_LINES], f"… {len(lines) - OUTPUT_LINES} lines more"])


_STATUSES = ("open", "closed", "expired", "all")


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    for command in (deep, gaps, dream, extract):
        app.command()(command)


def deep(
    context: typer.Context,
    question: Annotated[
        str | None, typer.Argument(help="What to find out, in your own words.")
    ] = None,
    scope: Annotated[
        str, typer.Option(help="recent_sessions, current_session or all_sessions.")
    ] = "recent_sessions",
    conversation: Annotated[
        str | None, typer.Option(help="The conversation of current_session.")
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory/--no-memory", help="Look at memories too.")
    ] = True,
    iterations: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of programs to run.")
    ] = None,
    sub_calls: Annotated[
        int | None, typer.Option(min=0, help="Maximum number of sub-calls.")
    ] = None,
    tokens: Annotated[int | None, typer.Option(min=0, help="Maximum number of tokens.")] = None,
    seconds: Annotated[float | None, typer.Option(min=0, help="Maximum number of seconds.")] = None,
    execution_seconds: Annotated[
        float | None, typer.Option(min=0, help="Maximum number of seconds for one program.")
    ] = None,
    dollars: Annotated[float | None, typer.Option(min=0, help="Maximum cost in dollars.")] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show every step as it ends.")] = False,
    show: Annotated[
        str | None, typer.Option(metavar="TRACE_ID", help="Show a stored trace.")
    ] = None,
    traces: Annotated[bool, typer.Option("--traces", help="List the stored traces.")] = False,
    full: Annotated[bool, typer.Option("--full", help="All places, each whole.")] = False,
    as_json: Json = False,
) -> None:
    """Answer a question over many conversations: a model writes its own search, in a sandbox."""
    if show is not None or traces:
        _show_traces(context, show, as_json=as_json)
        return
    if question is None:
        raise InvalidInput("question", question, "give a question, --show or --traces")
    given = {
        "iterations": iterations,
        "sub_calls": sub_calls,
        "tokens": tokens,
        "seconds": seconds,
        "execution_seconds": execution_seconds,
        "dollars": dollars,
    }
    limits = {name: value for name, value in given.items() if value is not None}
    budget = replace(Budget(), **limits)  # type: ignore[arg-type]
    show_step = _step_printer(as_json=as_json) if trace else None
    with (
        opened(context, warm=True) as home,
        long_work("Searching", kept=_ASKED, quiet=as_json or trace) as progress,
    ):
        refuse_unknown(home, conversation)

        def note(step: DeepStep) -> None:
            progress(f"step {step.number}", step.number, budget.iterations)
            if show_step is not None:
                show_step(step)

        found = home.deep_recall(
            question,
            scope=cast(Scope, scope),
            conversation_id=conversation,
            include_memory=memory,
            budget=budget,
            on_step=note,
        )
    give(found, lambda found: _show_answer(found, full=full), as_json=as_json)
    _exit_for_failed_model(found.degraded)


def _exit_for_failed_model(degraded: Sequence[Degraded]) -> None:
    """Let a script see that a model failed, whatever there is without it."""
    if any(part.part == "model" for part in degraded):
        raise typer.Exit(EXIT_PARTLY)


def _show_traces(context: typer.Context, trace_id: str | None, *, as_json: bool) -> None:
    with opened(context) as home:
        if trace_id is not None:
            found = home.trace(trace_id)
            if as_json:
                emit(found)
                return
            console().print(shown(found.question, "bold"))
            for step in found.steps:
                show_step(step)
            _show_answer(found)
            return
        kept = home.traces(100)
    rows = [[one.id, shown_minute(one.made_at), one.question[:80]] for one in kept]
    columns = ("trace", "when", "question")
    give(kept, table("", columns, rows) if rows else "no traces", as_json=as_json)


def _step_printer(*, as_json: bool) -> Callable[[DeepStep], None]:
    # With --json standard output is for the answer alone.
    return lambda step: show_step(step, console(stderr=as_json))


def _show_answer(found: DeepAnswer, *, full: bool = True) -> None:
    out = console()
    if found.answer:
        show_text(out, found.answer)
    else:
        # Why there is none stands before all the evidence, or nobody sees it.
        if found.note:
            out.print(shown(found.note, "yellow"))
        if not found.sources:
            out.print("nothing was found")
    if not (found.shortcut and found.answer):
        most = len(found.sources) if full else SOURCES
        for source in found.sources[:most]:
            when = f"  {shown_minute(source.ts)}" if source.ts and source.ts.year > 1 else ""
            head = f"{_short(source)}{when}  {source.role or source.kind}"
            if full:
                out.print(shown(head, "dim"))
                show_text(out, source.text)
            else:
                out.print(shown(head, "dim").append(f"  {one_line(source.text, SOURCE_CHARS)}"))
        if len(found.sources) > most:
            more = len(found.sources) - most
            out.print(shown(f"… and {counted(more, 'more place')} (--full)", "dim"))
    for word, said in (
        (found.cached, "from the cache: nothing it stands on has changed"),
        (not found.complete and found.limit, f"incomplete: the limit of {found.limit} was reached"),
        (found.answer and not found.supported, "not supported: it has no sources that exist"),
        (found.gap_id, "noted as an open question: `anaphora gaps` lists them"),
        (found.answer and found.note, found.note),
    ):
        if word:
            out.print(shown(said, "yellow"))
    tail = f"{_cost(found.cost)}  trace {found.trace_id}" if found.trace_id else _cost(found.cost)
    out.print(Text(tail, "dim"))
    show_degraded(found.degraded)


def _short(source: DeepSource) -> str:
    if source.conversation_id is not None and source.index is not None:
        return short_turn(source.conversation_id, source.index)
    return short_id(source.id)


def _cost(cost: CostSnapshot) -> str:
    dollars = cost.estimated_dollars
    price = "price unknown" if dollars is None else f"${dollars:.4f}"
    return (
        f"{counted(cost.iterations, 'iteration')}, {counted(cost.sub_calls, 'sub-call')}, "
        f"{cost.input_tokens} + {cost.output_tokens} tokens, {price}, {cost.seconds:.1f} s"
    )


def gaps(
    context: typer.Context,
    status: Annotated[str, typer.Option(help="open, closed, expired or all.")] = "open",
    as_json: Json = False,
) -> None:
    """List the questions that could not be answered, most asked first."""
    if status not in _STATUSES:
        raise InvalidInput("status", status, f"expected one of {', '.join(_STATUSES)}")
    with opened(context) as home:
        found = home.gaps(None if status == "all" else cast(GapStatus, status))
    if as_json:
        emit(found)
        return
    out = console()
    if not found:
        out.print("no gaps" if status == "all" else f"no {status} gaps")
    for gap in found:
        out.print(shown(gap.question, "bold"))
        until = {
            "open": f"until {shown_day(gap.expires_at)}",
            "closed": f"closed by {', '.join(gap.closed_by)}",
        }.get(gap.status, "expired")
        asked = f"asked {gap.asked} times" if gap.asked > 1 else "asked once"
        out.print(shown(f"   {asked}, priority {gap.priority:.2f}, {until}", "dim"))


def dream(
    context: typer.Context,
    model: Annotated[
        bool, typer.Option("--model/--no-model", help="Also ask the configured model.")
    ] = True,
    queued: Annotated[
        bool, typer.Option("--queued", help="Only jobs queued by ended sessions.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Try the open gaps again, and link duplicate memories. Deletes nothing."""
    with (
        opened(context, warm=True) as home,
        long_work("Trying open questions", kept=_DREAMT, quiet=as_json),
    ):
        report = home.run_jobs() if queued else home.dream(model=model)
    give(report, _show_dream, as_json=as_json)
    _exit_for_failed_model(report.degraded)


def _show_dream(report: DreamReport) -> None:
    out = console()
    how = "with a model" if report.with_model else "without a model"
    out.print(
        f"explored {counted(len(report.explored), 'gap')} {how}: closed {len(report.closed)}, "
        f"expired {len(report.expired)}"
    )
    for gap in report.closed:
        out.print(shown(f"   closed: {gap.question}", "green"))
        out.print(shown(f"      by {', '.join(gap.closed_by)}", "dim"))
    for gap in report.expired:
        out.print(shown(f"   expired: {gap.question}", "yellow"))
    done = {gap.id for gap in report.closed}
    for gap in report.explored:
        if gap.id not in done:
            out.print(shown(f"   still open: {gap.question}"))
    for one in report.extracted:
        _show_extracted(one)
    same = sum(link.kind == "same" for link in report.links)
    differ = sum(link.kind == OPEN for link in report.links)
    pairs = counted(len(report.links) - differ, "pair")
    out.print(f"linked {pairs} of memories, {same} of them restatements")
    if differ:
        pairs = counted(differ, "pair seems", "pairs seem")
        out.print(f"{pairs} to contradict each other: see `anaphora contradictions`")
    if report.stored:
        stored = counted(len(report.stored), "answer")
        out.print(f"stored {stored} as memories: {', '.join(report.stored)}")
    out.print(Text(_cost(report.cost), "dim"))
    show_degraded(report.degraded)


def extract(
    context: typer.Context,
    conversation: Annotated[str, typer.Argument(metavar="CONVERSATION", help="Its id.")],
    as_json: Json = False,
) -> None:
    """Extract lasting facts from a finished conversation, with the configured model."""
    with (
        opened(context, warm=True) as home,
        long_work("Extracting facts", kept=_DREAMT, quiet=as_json),
    ):
        done = home.extract(conversation)
        texts = {} if as_json else {one: home.get(one).text for one in done.added}
    if as_json:
        emit(done)
    else:
        _show_extracted(done)
        for text in texts.values():
            show_text(console(), text)
        console().print(Text(_cost(done.cost), "dim"))
    if done.unread:
        raise typer.Exit(EXIT_PARTLY)


def _show_extracted(done: Extracted) -> None:
    out = console()
    why = {
        "no_model": "no model is configured: set ANAPHORA_MODEL",
        "unchanged": "nothing new since last time",
        "too_short": "the new part is too short",
    }
    name = one_line(done.conversation_id)
    if done.skipped in why:
        out.print(Text(f"{name}: {why[done.skipped]}", "yellow"))
        return
    early = {
        "malformed": "the model's reply was no list of facts: nothing of it was taken",
        "cut": "the model's reply was cut at its limit of tokens: nothing of it was taken",
    }
    if done.skipped:
        limit = f"the limit of {done.skipped} was reached"
        said = f"{name}: ended early, {early.get(done.skipped, limit)}; the rest is read next time"
        out.print(Text(said, "yellow"))
    out.print(
        f"{name}: {counted(len(done.added), 'fact')} added, {len(done.reinforced)} reinforced, "
        f"{len(done.refused)} refused"
    )
    for text in done.refused:
        out.print(shown(f"   rejected, it cites no existing turn: {text}", "yellow"))
