"""The system block that carries recalled turns into a prompt.

In: hits. Out: text for an agent's system prompt. It never changes a word of a turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from anaphora.values import TurnHit

__all__ = ["HEADER", "HEADER_ACROSS", "render_recall"]

# The wording is the recall lane's contract with the model: what is live wins over what is old.
HEADER = (
    "Relevant earlier in this conversation "
    "(the live exchange below is more current — it wins on any conflict):"
)
# The same over turns of other conversations: where each is from stands beside who said it.
HEADER_ACROSS = (
    "Relevant in earlier conversations "
    "(the live exchange below is more current — it wins on any conflict):"
)


def render_recall(
    hits: Iterable[TurnHit],
    *,
    labels: Mapping[str, str] | None = None,
    header: str | None = None,
    across: bool | None = None,
) -> str:
    """The block: the header, then "- Label: text" for each hit; empty when there is no hit.

    A label is the turn's speaker where one is known, else what `labels` says for its role
    (by default "User" and "Assistant", any other role by its own name). Further lines of a turn
    are indented by two spaces, so that no line of an old turn can pass for a new item of the list.
    `across` says that all conversations were searched (by default: that hits are of several): each
    item then says from which turn of which one it is, and the header speaks of conversations.
    """
    names = {"user": "User", "assistant": "Assistant", **(labels or {})}
    given = tuple(hits)
    if across is None:
        across = len({hit.conversation_id for hit in given}) > 1
    items = [
        f"- {_label(hit, names)}{_place(hit) if across else ''}: {_indented(hit.text)}"
        for hit in given
    ]
    if header is None:
        header = HEADER_ACROSS if across else HEADER
    return "\n".join([header, *items]) if items else ""


def _label(hit: TurnHit, names: Mapping[str, str]) -> str:
    label = hit.speaker or names.get(hit.role, hit.role)
    return " ".join(label.split())


def _place(hit: TurnHit) -> str:
    # A turn without a known time has that of the year 1.
    day = f", {hit.ts:%Y-%m-%d}" if hit.ts.year > 1 else ""
    return f" ({' '.join(hit.conversation_id.split())} #{hit.index}{day})"


def _indented(text: str) -> str:
    return "\n  ".join(text.strip().splitlines())
