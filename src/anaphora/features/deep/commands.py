"""`anaphora deep`, `gaps`, `dream`, `extract`: questions that need more than a search.

Text of a model or of a history is escaped: it cannot move the cursor or pass for markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, cast

import typer
from rich.console import Console
from rich.text import Text

from anaphora.errors import InvalidInput
from anaphora.features.deep.values import (
    Budget,
    CostSnapshot,
    DeepAnswer,
    DeepStep,
    DreamReport,
    Extracted,
    GapStatus,
    Scope,
)
from anaphora.store.records.rows import OPEN
from anaphora.surfaces.cli.options import Json
from anaphora.surfaces.cli.output import (
    EXIT_PARTLY,
    INDENT,
    console,
    emit,
    present,
    show_degraded,
    show_text,
    styled,
    table,
)
from anaphora.surfaces.cli.progress import AGAIN, long_work
from anaphora.surfaces.cli.where import open_memory, resolve_turn
from anaphora.surfaces.wire import counted
from anaphora.text.display import one_line, visible
from anaphora.text.short_ids import short_id, short_turn
from anaphora.text.shown_times import shown_day, shown_minute
from anaphora.values.conversations import Degraded

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
    if lines := step.output.strip().splitlines():
        if len(lines) > OUTPUT_LINES:
            lines[OUTPUT_LINES:] = [f"… {len(lines) - OUTPUT_LINES} lines more"]
        show_text(out, "\n".join(lines))
    for call in step.sub_calls:
        prompt = " ".join(call.prompt[:PROMPT_CHARS].split())
        reply = " ".join((call.error or call.answer)[:ANSWER_CHARS].split())
        repeat_note = " (asked before)" if call.cached else ""
        out.print(styled(f"   ? {prompt} → {reply}{repeat_note}", "magenta"))
    if step.error:
        out.print(Text("   " + visible(step.error).replace("\n", "\n   "), "red"))


def cost_line(cost: CostSnapshot) -> str:
    """The cost so far in a few words; an unknown price is reported as unknown."""
    money = "cost unknown"
    if cost.estimated_dollars is not None:
        money = f"${cost.estimated_dollars:.4f}"
    parts = [f"{cost.input_tokens:,} + {cost.output_tokens:,} tokens", money]
    if cost.sub_calls:
        parts.append(f"{cost.sub_calls} sub-call{'s' if cost.sub_calls != 1 else ''}")
    return ", ".join(parts)


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
    full: Annotated[bool, typer.Option("--full", help="All sources in full.")] = False,
    as_json: Json = False,
) -> None:
    """Answer a question over many conversations: a model writes its own search, in a sandbox."""
    if show is not None or traces:
        _show_traces(context, show, as_json=as_json)
        return
    if question is None:
        raise InvalidInput("question", question, "give a question, --show or --traces")
    options = {
        "iterations": iterations,
        "sub_calls": sub_calls,
        "tokens": tokens,
        "seconds": seconds,
        "execution_seconds": execution_seconds,
        "dollars": dollars,
    }
    limits = {name: limit for name, limit in options.items() if limit is not None}
    budget = replace(Budget(), **limits)  # type: ignore[arg-type]
    with (
        open_memory(context, warm=True) as home,
        long_work("Searching", kept=_ASKED, quiet=as_json or trace) as progress,
    ):
        if conversation is not None:
            conversation, _ = resolve_turn(home, conversation)

        def note(step: DeepStep) -> None:
            progress(f"step {step.number}", step.number, budget.iterations)
            if trace:
                # With --json standard output is for the answer alone.
                show_step(step, console(stderr=as_json))

        answer = home.deep_recall(
            question,
            scope=cast(Scope, scope),
            conversation_id=conversation,
            include_memory=memory,
            budget=budget,
            on_step=note,
        )
    present(answer, lambda answer: _show_answer(answer, full=full), as_json=as_json)
    _exit_for_failed_model(answer.degraded)


def _exit_for_failed_model(degraded: Sequence[Degraded]) -> None:
    """Exit with an error code if a model failed, even if an answer was possible without it."""
    if any(part.part == "model" for part in degraded):
        raise typer.Exit(EXIT_PARTLY)


def _show_traces(context: typer.Context, trace_id: str | None, *, as_json: bool) -> None:
    with open_memory(context) as home:
        if trace_id is not None:
            trace = home.trace(trace_id)
            if as_json:
                emit(trace)
                return
            console().print(styled(trace.question, "bold"))
            for step in trace.steps:
                show_step(step)
            _show_answer(trace)
            return
        stored_traces = home.traces(100)
    rows = [
        [summary.id, shown_minute(summary.made_at), summary.question[:80]]
        for summary in stored_traces
    ]
    columns = ("trace", "when", "question")
    present(stored_traces, table("", columns, rows) if rows else "no traces", as_json=as_json)


def _show_answer(answer: DeepAnswer, *, full: bool = True) -> None:
    terminal = console()
    if answer.answer:
        # What was counted without a model is told in our own words.
        is_by_model = bool(answer.steps) or answer.shortcut or answer.cached
        show_text(terminal, answer.answer, indent=INDENT if is_by_model else 0)
    else:
        # The reason comes before the evidence, which would push it off the screen.
        if answer.note:
            terminal.print(styled(answer.note, "yellow"))
        if not answer.sources:
            terminal.print("nothing was found")
    if not (answer.shortcut and answer.answer):
        max_sources = len(answer.sources) if full else SOURCES
        for source in answer.sources[:max_sources]:
            when = f"  {shown_minute(source.ts)}" if source.ts and source.ts.year > 1 else ""
            conversation, index = source.conversation_id, source.index
            source_label = (
                short_turn(conversation, index)
                if conversation is not None and index is not None
                else short_id(source.id)
            )
            head = f"{source_label}{when}  {source.role or source.kind}"
            if full:
                terminal.print(styled(head, "dim"))
                show_text(terminal, source.text)
            else:
                terminal.print(
                    styled(head, "dim").append(f"  {one_line(source.text, SOURCE_CHARS)}")
                )
        if len(answer.sources) > max_sources:
            hidden_count = len(answer.sources) - max_sources
            terminal.print(styled(f"… and {counted(hidden_count, 'more place')} (--full)", "dim"))
    for word, remark in (
        (answer.cached, "from the cache: its sources have not changed"),
        (
            not answer.complete and answer.limit,
            f"incomplete: the limit of {answer.limit} was reached",
        ),
        (answer.answer and not answer.supported, "not supported: it has no sources that exist"),
        (answer.gap_id, "noted as an open question: `anaphora gaps` lists them"),
        (answer.answer and answer.note, answer.note),
    ):
        if word:
            terminal.print(styled(remark, "yellow"))
    tail = (
        f"{_cost(answer.cost)}  trace {answer.trace_id}" if answer.trace_id else _cost(answer.cost)
    )
    terminal.print(Text(tail, "dim"))
    show_degraded(answer.degraded)


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
    with open_memory(context) as home:
        questions = home.gaps(None if status == "all" else cast(GapStatus, status))
    if as_json:
        emit(questions)
        return
    terminal = console()
    if not questions:
        terminal.print("no gaps" if status == "all" else f"no {status} gaps")
    for gap in questions:
        terminal.print(styled(gap.question, "bold"))
        until = {
            "open": f"until {shown_day(gap.expires_at)}",
            "closed": f"closed by {', '.join(gap.closed_by)}",
        }.get(gap.status, "expired")
        times = f"asked {gap.asked} times" if gap.asked > 1 else "asked once"
        terminal.print(styled(f"   {times}, priority {gap.priority:.2f}, {until}", "dim"))


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
        open_memory(context, warm=True) as home,
        long_work("Trying open questions", kept=_DREAMT, quiet=as_json),
    ):
        report = home.run_jobs() if queued else home.dream(model=model)
    present(report, _show_dream, as_json=as_json)
    _exit_for_failed_model(report.degraded)


def _show_dream(report: DreamReport) -> None:
    terminal = console()
    how = "with a model" if report.with_model else "without a model"
    terminal.print(
        f"explored {counted(len(report.explored), 'gap')} {how}: closed {len(report.closed)}, "
        f"expired {len(report.expired)}"
    )
    for gap in report.closed:
        terminal.print(styled(f"   closed: {gap.question}", "green"))
        terminal.print(styled(f"      by {', '.join(gap.closed_by)}", "dim"))
    for gap in report.expired:
        terminal.print(styled(f"   expired: {gap.question}", "yellow"))
    closed_ids = {gap.id for gap in report.closed}
    for gap in report.explored:
        if gap.id not in closed_ids:
            terminal.print(styled(f"   still open: {gap.question}"))
    for facts in report.extracted:
        _show_extracted(facts)
    same_count = sum(link.kind == "same" for link in report.links)
    differ = sum(link.kind == OPEN for link in report.links)
    pairs = counted(len(report.links) - differ, "pair")
    terminal.print(f"linked {pairs} of memories, {same_count} of them restatements")
    if differ:
        pairs = counted(differ, "pair seems", "pairs seem")
        terminal.print(f"{pairs} to contradict each other: see `anaphora contradictions`")
    if report.stored:
        stored_count = counted(len(report.stored), "answer")
        terminal.print(f"stored {stored_count} as memories: {', '.join(report.stored)}")
    terminal.print(Text(_cost(report.cost), "dim"))
    show_degraded(report.degraded)


def extract(
    context: typer.Context,
    conversation: Annotated[str, typer.Argument(metavar="CONVERSATION", help="Its id.")],
    as_json: Json = False,
) -> None:
    """Extract lasting facts from a finished conversation, with the configured model."""
    with (
        open_memory(context, warm=True) as home,
        long_work("Extracting facts", kept=_DREAMT, quiet=as_json),
    ):
        report = home.extract(resolve_turn(home, conversation)[0])
        texts = {} if as_json else {fact_id: home.get(fact_id).text for fact_id in report.added}
    if as_json:
        emit(report)
    else:
        _show_extracted(report)
        for text in texts.values():
            show_text(console(), text)
        console().print(Text(_cost(report.cost), "dim"))
    if report.unread:
        raise typer.Exit(EXIT_PARTLY)


def _show_extracted(done: Extracted) -> None:
    terminal = console()
    why = {
        "no_model": "no model is configured: set ANAPHORA_MODEL",
        "unchanged": "nothing new since last time",
        "too_short": "the new part is too short",
    }
    name = one_line(done.conversation_id)
    if done.skipped in why:
        terminal.print(Text(f"{name}: {why[done.skipped]}", "yellow"))
        return
    early_ends = {
        "malformed": "the model's reply was not a list of facts and was ignored",
        "cut": "the model's reply was cut off at its token limit and was ignored",
    }
    if done.skipped:
        limit = f"the limit of {done.skipped} was reached"
        cause = early_ends.get(done.skipped, limit)
        message = f"{name}: ended early, {cause}; the rest is read next time"
        terminal.print(Text(message, "yellow"))
    terminal.print(
        f"{name}: {counted(len(done.added), 'fact')} added, {len(done.reinforced)} reinforced, "
        f"{len(done.refused)} refused"
    )
    for text in done.refused:
        terminal.print(styled(f"   rejected, it cites no existing turn: {text}", "yellow"))
