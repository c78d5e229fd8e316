"""Memory for agents of Pydantic AI: tools to recall, remember and forget, and a history processor.

    agent = Agent(model, toolsets=[memory_toolset(memory)],
                  capabilities=[ProcessHistory(recall_history(memory))])

The processor puts what stands out for the user's last prompt before it, within a budget of tokens,
or nothing; `keep_run` keeps what was said. Nothing that was recalled is ever searched for, or kept
as if it had been said. Everything runs beside the event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from anaphora.adapters.prompting import is_block, recalled_block
from anaphora.api.aio import AsyncMemory
from anaphora.api.rendering import render_hits
from anaphora.errors import InvalidInput, MissingExtra, NotFound
from anaphora.text.recalled import strip_recalled
from anaphora.values.conversations import NewTurn

try:
    from pydantic_ai import FunctionToolset, RunContext
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelResponse,
        TextContent,
        TextPart,
        UserPromptPart,
    )
except ImportError as error:
    raise MissingExtra("", "pydantic-ai-slim") from error

__all__ = ["NamespaceOf", "keep_run", "memory_toolset", "recall_history"]

NamespaceOf = Callable[[RunContext[Any]], str]
"""Which namespace a run is about, such as one for each user: `lambda ctx: ctx.deps.user`."""


def memory_toolset(
    memory: AsyncMemory,
    *,
    namespace_of: NamespaceOf | None = None,
    top_k: int = 6,
    budget: int = 1_000,
) -> FunctionToolset[Any]:
    """The tools `recall`, `remember` and `forget`. `budget` are tokens of one recall."""
    toolset: FunctionToolset[Any] = FunctionToolset(id="anaphora")

    async def recall(ctx: RunContext[Any], question: str) -> str:
        """Look up what was said in earlier conversations, and what is remembered.

        Args:
            ctx: The run.
            question: What you want to know, as a full question with the names that matter.
        """
        answer = await _of(memory, ctx, namespace_of).search(question, top_k=top_k, budget=budget)
        return render_hits(answer.hits, budget=budget) or "No results."

    async def remember(ctx: RunContext[Any], fact: str, path: str | None = None) -> str:
        """Keep a fact, decision or preference that should outlive this conversation.

        Args:
            ctx: The run.
            fact: One statement, understandable without this conversation.
            path: Key (e.g. `user.editor`). A new value replaces the old one.
        """
        try:
            report = await _of(memory, ctx, namespace_of).remember(fact, path=path, source="agent")
        except InvalidInput as refused:
            return f"Not kept: {refused}"
        return f"{report.action}: id {report.id}"

    async def forget(ctx: RunContext[Any], id: str) -> str:  # noqa: A002 - what the model calls it
        """Forget a memory that is wrong or unwanted. It can be brought back for a day.

        Args:
            ctx: The run.
            id: The id that `remember` told.
        """
        try:
            report = await _of(memory, ctx, namespace_of).forget(id, undoable=True)
        except NotFound as missing:
            return str(missing)
        return f"forgotten: {report.count}"

    for tool in (recall, remember, forget):
        toolset.add_function(tool)
    return toolset


def recall_history(
    memory: AsyncMemory,
    *,
    namespace_of: NamespaceOf | None = None,
    budget: int = 400,
    top_k: int = 4,
) -> Callable[[RunContext[Any], list[ModelMessage]], Awaitable[list[ModelMessage]]]:
    """A history processor: what stands out for the last prompt, before it, in `budget` tokens.

    What an earlier prompt was given is taken out again, so a history holds one block at most. What
    the history has itself is not recalled. Most prompts need nothing, and get nothing.
    """

    async def process(ctx: RunContext[Any], messages: list[ModelMessage]) -> list[ModelMessage]:
        # The last request in which the user says something.
        position = next(
            (
                n
                for n in reversed(range(len(messages)))
                if isinstance(messages[n], ModelRequest) and _texts(messages[n])
            ),
            None,
        )
        if position is None:
            return messages
        cleaned_messages: list[ModelMessage] = [
            message if n == position else _without_blocks(message)
            for n, message in enumerate(messages)
        ]
        request = messages[position]
        assert isinstance(request, ModelRequest)
        if any(_is_block(part) for part in request.parts):
            return cleaned_messages  # A later step of the same run.
        block = await recalled_block(
            _of(memory, ctx, namespace_of),
            "\n".join(_texts(request)),
            exclude=[text for message in cleaned_messages for text in _texts(message)],
            budget=budget,
            top_k=top_k,
        )
        if block:
            first_prompt = next(
                n for n, p in enumerate(request.parts) if isinstance(p, UserPromptPart)
            )
            parts = list(request.parts)
            parts.insert(first_prompt, UserPromptPart(block))
            cleaned_messages[position] = replace(request, parts=parts)
        return cleaned_messages

    return process


async def keep_run(
    memory: AsyncMemory,
    conversation_id: str,
    messages: Sequence[ModelMessage],
    *,
    speaker: str | None = None,
) -> int:
    """Keep what was said in a run, such as `result.new_messages()`; how many turns it were.

    Prompts and texts of answers are turns, tools and thinking are not; recalled blocks are left
    out. All turns are kept, or none.
    """
    turns = [
        NewTurn(
            "user" if isinstance(message, ModelRequest) else "assistant",
            text,
            ts=message.timestamp,
            speaker=speaker if isinstance(message, ModelRequest) else None,
        )
        for message in messages
        for text in [strip_recalled("\n".join(_texts(message))).strip()]
        if text
    ]
    if turns:
        await memory.conversations.extend(conversation_id, turns)
    return len(turns)


def _of(memory: AsyncMemory, ctx: RunContext[Any], namespace_of: NamespaceOf | None) -> AsyncMemory:
    return memory if namespace_of is None else memory.scoped(namespace_of(ctx))


def _texts(message: ModelMessage) -> list[str]:
    """The texts of a message, without recalled blocks."""
    if isinstance(message, ModelResponse):
        return [part.content for part in message.parts if isinstance(part, TextPart)]
    texts: list[str] = []
    for part in message.parts:
        if isinstance(part, UserPromptPart) and not _is_block(part):
            contents = [part.content] if isinstance(part.content, str) else part.content
            pieces = (c.content if isinstance(c, TextContent) else c for c in contents)
            texts += (piece for piece in pieces if isinstance(piece, str))
    return texts


def _is_block(part: object) -> bool:
    """Whether a part is a recalled block and nothing else."""
    return (
        isinstance(part, UserPromptPart)
        and isinstance(part.content, str)
        and is_block(part.content)
    )


def _without_blocks(message: ModelMessage) -> ModelMessage:
    if not isinstance(message, ModelRequest) or not any(map(_is_block, message.parts)):
        return message
    return replace(message, parts=[part for part in message.parts if not _is_block(part)])
