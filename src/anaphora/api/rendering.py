"""Recalled blocks for prompts: what `recall.render` writes, with the secrets in it masked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from anaphora.ingest.secrets.masking import mask
from anaphora.recall import render
from anaphora.values.conversations import TurnHit
from anaphora.values.search import SearchHit

__all__ = ["render_hits", "render_recall"]


def render_recall(
    hits: Iterable[TurnHit],
    *,
    labels: Mapping[str, str] | None = None,
    header: str | None = None,
    notice: str = render.NOTICE,
    across: bool | None = None,
    days: bool | None = None,
) -> str:
    """The block: header, notice, then "- Label (day): text" for each hit; empty without a hit.

    Secrets in the turns are masked: `[redacted:kind]`.
    Of a turn that is too long to come whole the passage stands there, "…" for the rest, and a line
    under it says which part it is.
    The block stands between the lines `<recalled-memory>` and `</recalled-memory>`, by which
    `strip_recalled` finds it again in a prompt. Where a hit seems to be replaced, or to replace
    another, a line under it says so; recalled text that a hit quotes itself is left out.

    A label is the turn's speaker where one is known, else what `labels` says for its role
    (by default "User" and "Assistant", any other role by its own name). Further lines of a turn
    are indented by two spaces, so that no line of an old turn can pass for a new item of the list.
    `notice` says that the items are data; with `notice=""` there are header and items alone, and
    neither of the two lines.
    `across` says that all conversations were searched (by default: that hits are of several): each
    item then says from which turn of which one it is, and the header speaks of conversations.
    `days` says whether the days of turns are told (by default: unless `notice=""`, which asks for
    the bare block).
    """
    return render.render_recall(
        mask(tuple(hits)),
        labels=labels,
        header=header,
        notice=notice,
        across=across,
        days=days,
    )


def render_hits(
    hits: Iterable[SearchHit], *, budget: int = 600, header: str = render.HEADER_FOUND
) -> str:
    """A recalled block of the hits of a search, at most `budget` tokens; empty where none fits.

    A hit that does not fit is left out, one after it may fit. Secrets in the hits are masked.
    """
    return render.render_hits(mask(tuple(hits)), budget=budget, header=header)
