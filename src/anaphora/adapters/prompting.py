"""What adapters put into a prompt: what bears on it, within a budget, between the recalled lines.

In: a prompt and the texts that the model sees anyway. Out: a recalled block, or nothing. What a
prompt quotes of earlier blocks is no part of the question, and what is live is not recalled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from anaphora.api.aio import AsyncMemory
from anaphora.api.rendering import render_hits
from anaphora.recall.unasked import worth_showing
from anaphora.text.recalled import quotes_recalled, strip_recalled
from anaphora.values.search import SearchKind

_LANES: Final[tuple[SearchKind, ...]] = ("memory", "note", "turn")


async def recalled_block(
    memory: AsyncMemory,
    prompt: str,
    *,
    exclude: Iterable[str] = (),
    budget: int = 400,
    top_k: int = 4,
    unasked: bool = True,
) -> str:
    """At most `top_k` hits for a prompt, in at most `budget` tokens; "" where nothing bears on it.

    `unasked`: only what stands out, as for a prompt that asks memory nothing. `exclude` are texts
    of the live exchange.
    """
    question = strip_recalled(prompt).strip()
    if not question:
        return ""
    live = [question, *exclude]
    answer = await memory.search(
        question,
        kinds=_LANES,
        top_k=3 * top_k if unasked else top_k,
        # The block has the budget, with its frame.
        budget=1 << 30,
        exclude=live,
    )
    hits = worth_showing(question, answer.hits) if unasked else list(answer.hits)
    return render_hits(hits[:top_k], budget=budget)


def is_block(text: str) -> bool:
    """Whether a text is a recalled block and nothing else."""
    return quotes_recalled(text) and not strip_recalled(text).strip()
