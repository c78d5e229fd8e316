"""What a file is made of: its sections, its symbols, what it imports and declares.

In: nothing; these are the frozen values that every reader of a kind of file gives back. Lines count
from 1 and end at a line feed; a carriage return before it stays in the text of its line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

SectionKind = Literal["heading", "symbol", "key", "lines", "file"]

MAX_LINES: Final = 120
"""Lines of a section; what is longer is cut into parts."""
MAX_CHARS: Final = 6_000
"""Characters of a section. A single line that is longer stays whole."""


@dataclass(frozen=True, slots=True)
class Section:
    """Consecutive lines of a file that belong together, `start_line` to `end_line` inclusive.

    `kind` is "heading" (prose under a heading), "symbol" (a function, a type …), "key" (settings),
    "lines" (lines between those, or of a file without structure) or "file" (a whole file).
    `text` is the lines, joined by line feeds. `heading` are the titles around this one, outermost
    first, without its own. `symbol` is the qualified name ("Class.method") that the lines belong
    to; the parts of a long one share it, and their titles end in "(2 of 3)".
    """

    kind: SectionKind
    title: str
    text: str
    start_line: int
    end_line: int
    heading: tuple[str, ...] = ()
    symbol: str | None = None
    symbol_kind: str | None = None


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name that a file defines. `qualified` joins the names around it by dots, in any language.

    `kind` is "function", "method", "class", "interface", "struct", "enum", "trait", "union",
    "type", "module", "macro", "constant", "test", or "key" for a setting.
    """

    name: str
    qualified: str
    kind: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Import:
    """Something a file imports. `module` is as written, without quotes and without leading dots.

    `names` are what is taken from it ("*" for all). `level` is the number of leading dots in
    Python, 0 everywhere else: "./a" stays "./a" in JavaScript.
    """

    module: str
    names: tuple[str, ...] = ()
    level: int = 0
    line: int = 1


@dataclass(frozen=True, slots=True)
class Parsed:
    """All that one file says. Each of its lines is in exactly one section, in order.

    A file of nothing but white space has no sections. `commands` are as a user types them
    ("anaphora", "make test", "npm run build"); `packages` the declared dependencies, by name.
    """

    language: str
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...] = ()
    imports: tuple[Import, ...] = ()
    commands: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


def lines_of(text: str) -> list[str]:
    """The lines of a text. The empty string after the last line feed is no line."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines
