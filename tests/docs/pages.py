"""A Markdown page taken apart: its blocks of code, links, pictures and headings.

In: the text of a page. Out: `Block`s in order, and what can be linked to. Reads no other file.

A comment right before a block says what the block is:

    <!-- file: PATH -->      the content of a file that earlier commands have written
    <!-- save: PATH -->      a file to write before going on
    <!-- exit: N -->         the commands of the block end with this code
    <!-- prints: A; B -->    what the block prints holds A and after it B, shown or not
    <!-- not run: WHY -->    what cannot be run here, and why

`…` in an output stands for anything within a line; a line of `…` alone for any lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Block", "anchors", "blocks", "links", "shown_as_pattern"]

_FENCE = re.compile(
    r"(?:^<!-- (?P<note>[a-z ]+): (?P<said>.*?) -->\n)?"
    r"^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"(?P<picture>!?)\[[^\]]*\]\((?P<to>[^)\s]+)\)")
_NUMBER = re.compile(r"-?\d+\.\d+")


@dataclass(frozen=True, slots=True)
class Block:
    """One block of code. `output` is the block of plain text that stands right behind it."""

    language: str
    text: str
    line: int
    note: str = ""
    said: str = ""
    output: str | None = None
    output_at: tuple[int, int] = (0, 0)


def blocks(page: str) -> list[Block]:
    """Every block in order; what a block of Python is said to print is part of it."""
    found: list[Block] = []
    matches = list(_FENCE.finditer(page))
    taken = -1
    for at, match in enumerate(matches):
        if at == taken:
            continue
        follower = matches[at + 1] if at + 1 < len(matches) else None
        output, place = None, (0, 0)
        if (
            match["language"] == "python"
            and follower is not None
            and follower["language"] == "text"
            and not follower["note"]
            and not page[match.end() : follower.start()].strip()
        ):
            output, place, taken = follower["text"], follower.span("text"), at + 1
        found.append(
            Block(
                language=match["language"],
                text=match["text"],
                line=page.count("\n", 0, match.start("language")) + 1,
                note=match["note"] or "",
                said=match["said"] or "",
                output=output,
                output_at=place,
            )
        )
    return found


def links(page: str) -> list[str]:
    """Where the page's links and pictures lead, code left out."""
    prose = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", page))
    return [match["to"] for match in _LINK.finditer(prose)]


def anchors(page: str) -> set[str]:
    """The anchors of the headings, as a forge makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", _FENCE.sub("", page), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 1
        name = slug
        while name in found:
            name, number = f"{slug}-{number}", number + 1
        found.add(name)
    return found


def shown_as_pattern(shown: str) -> tuple[re.Pattern[str], list[float]]:
    """What an output must match, and the decimal numbers in it: those may differ a little."""
    numbers: list[float] = []
    made: list[str] = []
    for line in shown.rstrip("\n").split("\n"):
        if line.strip() == "…":
            made.append(r"(?:.*\n)*?")
            continue
        pieces: list[str] = []
        for piece in re.split(r"(…|-?\d+\.\d+)", line.rstrip()):
            if piece == "…":
                pieces.append(".*?")
            elif _NUMBER.fullmatch(piece):
                numbers.append(float(piece))
                pieces.append(r"(-?\d+\.\d+)")
            else:
                pieces.append(re.escape(piece))
        made.append("".join(pieces) + r"[ ]*\n")
    return re.compile("".join(made)), numbers
