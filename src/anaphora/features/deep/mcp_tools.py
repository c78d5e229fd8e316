"""The tools of deep recall, and the text form of their results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from anaphora.api.memory import Memory
from anaphora.features.deep.values import Budget, DeepAnswer, Gap
from anaphora.ingest.secrets.masking import mask
from anaphora.surfaces.mcp_server.render import MOST, compose
from anaphora.surfaces.mcp_server.schemas import (
    arguments,
    enveloped,
    enveloped_rows,
    result,
    text,
)
from anaphora.surfaces.mcp_server.tool import Answer, Arguments, CallContext, Tool
from anaphora.surfaces.wire import counted, plain, refuse_unknown
from anaphora.text.display import headed, one_line, quoted
from anaphora.text.shown_times import shown_minute

if TYPE_CHECKING:
    from anaphora.features.deep.values import DeepStep

_MOST_OF_A_SOURCE: Final = 600


def deep_recall(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """Answer a question from the whole history."""
    refuse_unknown(memory, arguments.get("conversation_id"))
    question = dict(arguments)
    budget = Budget(execution_seconds=question.pop("execution_seconds", None))
    on_step = None if context.tell is None else partial(_tell_step, context.tell)
    answer = mask(memory.deep_recall(**question, budget=budget, on_step=on_step))
    return Answer(plain(answer), deep_text(answer))


def _tell_step(tell: Callable[[int, str], object], step: DeepStep) -> None:
    words = one_line(step.thought or step.output or step.code)
    tell(step.number, f"{step.kind}: {words}" if words else step.kind)


def gaps(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """List questions without an answer."""
    status = arguments["status"]
    questions = memory.gaps(status)
    lines: list[str] = []
    for gap in questions:
        head = headed(f"asked {counted(gap.asked, 'time', 'times')}:")
        lines += [head, quoted(gap.question, MOST)]
    summary = counted(len(questions), f"{status} gap.", f"{status} gaps.")
    reply = compose(summary, lines) if questions else f"No {status} gap."
    return Answer([plain(gap) for gap in questions], reply)


def deep_text(answer: DeepAnswer) -> str:
    """The answer, how reliable it is, and its sources."""
    # A note can repeat untrusted citations or server messages. Without an answer it says why.
    note = [headed(f"note: {answer.note}", MOST)] if answer.note else []
    lines = [quoted(answer.answer)] if answer.answer else note
    lines += ["Sources:"] if answer.sources else []
    for source in answer.sources:
        when = f", {shown_minute(source.ts)}" if source.ts else ""
        lines.append(headed(f"{source.kind} {one_line(source.id)}{when}"))
        lines.append(quoted(source.text, _MOST_OF_A_SOURCE))
    lines += note if answer.answer else []
    head = "Nothing was found."
    if answer.answer:
        remarks = ["it cites no source that exists"]
        if answer.supported:
            # Only existence was checked: whether the sources support the answer is for the reader.
            remarks = ["all cited sources exist; whether they support it was not checked"]
        remarks += [] if answer.complete else [f"incomplete (limit: {answer.limit})"]
        head = f"Answer ({'; '.join(remarks)})."
    elif answer.sources:
        head = f"No answer, but the best evidence: {counted(len(answer.sources), 'place')}."
    return compose(head, lines, answer.degraded)


TOOLS: Final = (
    Tool(
        "deep_recall",
        deep_recall,
        80,
        "What one search cannot answer: how often, when first, everything about something. "
        "Without a model of the user's it counts, or gives the best evidence.",
        {
            "question": text(""),
            **arguments(
                Memory.deep_recall,
                "scope conversation_id include_memory",
                {
                    "scope": {"description": ""},
                    "conversation_id": {"description": "For current_session."},
                    "include_memory": {"description": ""},
                },
            ),
            "executionSeconds": {
                "type": "number",
                "description": "Limit for one run of its code.",
                "exclusiveMinimum": 0,
                "maximum": 600,
            },
        },
        enveloped(
            result(
                DeepAnswer,
                "answer sources complete supported shortcut? cached? gap_id? note? degraded?",
            )
        ),
        required=("question",),
        # It may register a gap, and a model that the user configured may cost money.
        read_only=False,
        long=True,
    ),
    Tool(
        "gaps",
        gaps,
        160,
        "What was asked and could not be answered, the most asked first.",
        arguments(Memory.gaps, "status", {"status": {"description": ""}}),
        enveloped_rows(result(Gap, "id question asked?")),
        by_default=False,
    ),
)
