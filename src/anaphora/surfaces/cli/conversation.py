"""`anaphora conversation`: list, read, recall and remove conversations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, cast

import typer
from rich.text import Text

from anaphora.api.memory import Memory
from anaphora.calls.parameters import PARAMETERS
from anaphora.errors import InvalidInput, NotFound
from anaphora.surfaces.cli.options import Json, MinConfidence, Timeout, argument, option
from anaphora.surfaces.cli.output import (
    console,
    emit,
    present,
    show_hits,
    show_notes,
    show_text,
    styled,
    table,
)
from anaphora.surfaces.cli.recall import WHEN
from anaphora.surfaces.cli.where import (
    open_memory,
    resolve_conversation,
    resolve_turn,
)
from anaphora.surfaces.wire import must_exist, recalled_turns, times_between
from anaphora.text.display import one_line
from anaphora.text.shown_times import shown_minute
from anaphora.values.conversations import READ_AWAITED, RecallMode, Thread, TurnRole
from anaphora.values.sessions import ToolCallHit

AROUND = 2
"""Turns shown before and after the one that was asked for."""
ConversationId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The conversation's id, or its first or last characters."),
]

app = typer.Typer(no_args_is_help=True, help="Conversations: import, list, show, recall.")


def register(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="conversation")


@app.command("list")
def list_(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help=PARAMETERS["limit"].meaning)] = 50,
    as_json: Json = False,
) -> None:
    """List conversations, newest first."""
    with open_memory(context) as memory:
        summaries = memory.conversations.list()
    if as_json:
        emit(summaries[:limit])
        return
    rows = [
        (s.conversation_id, s.title, s.turn_count, shown_minute(s.updated))
        for s in summaries[:limit]
    ]
    terminal = console()
    terminal.print(
        table("", ("id", "title", "turns#", "updated"), rows) if rows else "no conversations"
    )
    if len(summaries) > limit:
        terminal.print(f"… and {len(summaries) - limit} more (--limit)")


@app.command()
def show(
    context: typer.Context,
    conversation_id: ConversationId,
    last: Annotated[int | None, typer.Option(min=1, help="Only the last turns.")] = None,
    calls: Annotated[bool, typer.Option("--calls", help="Also the agent's tool calls.")] = False,
    as_json: Json = False,
) -> None:
    """Show a whole conversation, or around a turn if the id is that of a turn, as of a hit."""
    with open_memory(context) as memory:
        conversation_id, index = resolve_turn(memory, conversation_id)
        thread = must_exist(
            memory.conversations.get(conversation_id), "conversation", conversation_id
        )
        tool_calls = memory.tool_calls(conversation_id) if calls else ()
    if index is not None and index >= len(thread.turns):
        raise NotFound("turn", f"{conversation_id}#{index}")
    if as_json:
        emit({"conversation": thread, "tool_calls": tool_calls} if calls else thread)
    elif index is None:
        first = 0 if last is None else max(0, len(thread.turns) - last)
        show_turns(thread, range(first, len(thread.turns)), tool_calls=tool_calls)
    else:
        show_around(thread, index, tool_calls)


def show_around(thread: Thread, index: int, tool_calls: Sequence[ToolCallHit] = ()) -> None:
    """Show a turn with those before and after it."""
    turns = range(max(0, index - AROUND), min(len(thread.turns), index + AROUND + 1))
    show_turns(thread, turns, index, tool_calls)


def show_turns(
    thread: Thread,
    turns: Iterable[int],
    marked: int | None = None,
    tool_calls: Sequence[ToolCallHit] = (),
) -> None:
    """Show turns of a conversation by their indexes, one of them marked."""
    terminal = console()
    terminal.print(styled(thread.title or thread.conversation_id, "bold"))
    for index in turns:
        turn, is_marked = thread.turns[index], index == marked
        margin = "" if marked is None else "> " if is_marked else "  "
        head = Text(f"{margin}#{index} ", "green" if is_marked else "dim")
        head.append(one_line(turn.speaker or turn.role), "bold")
        terminal.print(head.append(f"  {shown_minute(turn.ts)}", style="dim"))
        show_text(terminal, turn.text)
        for call in tool_calls:
            if call.index == index:
                terminal.print(styled(f"   · {call.text}", "dim"))


@app.command()
def recall(
    context: typer.Context,
    question: Annotated[str, argument(Memory.recall_conversation, "question")],
    conversation_id: Annotated[
        str | None, typer.Option("--in", help="One conversation only (default: all of them).")
    ] = None,
    top_k: Annotated[
        int | None, option(Memory.recall_conversation, "top_k", "--top-k", "-k")
    ] = None,
    budget: Annotated[int | None, option(Memory.recall_conversation, "budget")] = None,
    mode: Annotated[str, typer.Option(help="hybrid, words or vector.")] = "hybrid",
    since: Annotated[str | None, option(Memory.recall_conversation, "since", more=WHEN)] = None,
    until: Annotated[str | None, option(Memory.recall_conversation, "until", more=WHEN)] = None,
    speaker: Annotated[str | None, option(Memory.recall_conversation, "speaker")] = None,
    role: Annotated[str | None, typer.Option(help="user, assistant or other.")] = None,
    min_confidence: MinConfidence = None,
    whole: Annotated[bool, option(Memory.recall_conversation, "whole", "--whole")] = False,
    timeout: Timeout = None,
    why: Annotated[bool, typer.Option("--why", help="Show the parts of each score.")] = False,
    block: Annotated[bool, typer.Option("--block", help="The block for a system prompt.")] = False,
    days: Annotated[
        bool, typer.Option("--days/--no-days", help="Whether the block shows days.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Recall the turns relevant to a question."""
    with open_memory(context, warm=mode != "words") as memory:
        if conversation_id is not None:
            conversation_id, _ = resolve_turn(memory, conversation_id)
        answer = recalled_turns(
            memory,
            conversation_id,
            question,
            top_k=top_k,
            budget=budget,
            mode=cast(RecallMode, mode),
            **times_between({"since": since, "until": until}, memory.local_time),
            speaker=speaker,
            role=cast(TurnRole | None, role),
            min_confidence=min_confidence,
            whole=whole,
            read=READ_AWAITED,
            timeout=timeout,
        )
    if as_json:
        emit(answer)
    elif block:
        from anaphora.api.rendering import render_recall

        console().print(Text(render_recall(answer, across=conversation_id is None, days=days)))
        show_notes(answer)
    else:
        show_hits(answer, why=why)


@app.command()
def delete(
    context: typer.Context,
    conversation_id: ConversationId,
    as_json: Json = False,
) -> None:
    """Delete a conversation for good: file, index and metadata."""
    with open_memory(context) as memory:
        conversation_id = resolve_conversation(memory, conversation_id)
        must_exist(memory.conversations.delete(conversation_id), "conversation", conversation_id)
    present({"deleted": conversation_id}, f"deleted {conversation_id}", as_json=as_json)


@app.command()
def redact(
    context: typer.Context,
    conversation_id: ConversationId,
    index: Annotated[
        int | None,
        typer.Argument(min=0, help="The turn's index, from 0, if the id does not end in it."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Remove one turn's text from the file and the index; the turn stays, marked as redacted."""
    with open_memory(context) as memory:
        if index is None:
            conversation_id, index = resolve_turn(memory, conversation_id)
        else:
            conversation_id = resolve_conversation(memory, conversation_id)
        if index is None:
            raise InvalidInput("index", None, "which turn? Give its index, or the id of a hit")
        is_redacted = memory.conversations.redact(conversation_id, index)
        must_exist(is_redacted, "turn", f"{conversation_id}#{index}")
    fields = {"redacted": {"conversation_id": conversation_id, "index": index}}
    present(fields, f"redacted {conversation_id}#{index}", as_json=as_json)
