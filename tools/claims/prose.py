"""A page as prose: the text in which claims stand, code, comments and targets of links blanked.

Positions are those of the page, so that a place in the prose is a place in the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["END", "Page", "begin", "blanked", "pages"]

_BLANKED = re.compile(
    r"^(?P<mark>```+).*?^(?P=mark)`*$"  # a block of code
    r"|^(?: {4}|\t)(?![-*\d ])[^\n]*$"  # a line of code
    r"|<!--.*?-->"
    r"|`+[^`]+?`+"
    r"|(?<=\])\([^)\s]+\)"  # the target of a link
    r"|https?://\S+",
    re.MULTILINE | re.DOTALL,
)
END = "<!-- end of claims -->"
# Made from the code and from the registry, each with a test of its own.
_GENERATED = {"reference", "decisions"}
_MADE_HERE = "claims.md"


def begin(name: str) -> str:
    """The comment before a table."""
    return f"<!-- claims: {name} -->\n"


@dataclass(frozen=True, slots=True)
class Page:
    """A page by its name below the root, its text, and the prose in it."""

    name: str
    text: str
    prose: str

    def line(self, position: int) -> int:
        """The number of the line at a position."""
        return self.text.count("\n", 0, position) + 1


def pages(root: Path) -> list[Page]:
    """The README and the docs, without what is generated and the decisions."""
    files = [root / "README.md"] + [
        file
        for file in sorted((root / "docs").rglob("*.md"))
        if file.parent.name not in _GENERATED and file.name != _MADE_HERE
    ]
    return [
        Page(file.relative_to(root).as_posix(), text, blanked(text))
        for file in files
        for text in [file.read_text("utf-8")]
    ]


def blanked(text: str) -> str:
    """The text with spaces in place of all that is no prose."""
    return _BLANKED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
