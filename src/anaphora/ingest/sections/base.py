"""The parts of a file (sections, symbols, imports), and the cutting of it at starts of sections.

Where a section starts the one before it ends, so every line is in exactly one; what is too long is
cut into parts. Lines count from 1 and end at a line feed; a carriage return before it stays in the
text of its line.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
class ImportedModule:
    """Something a file imports. `module` is as written, without quotes and without leading dots.

    `names` are what is taken from it ("*" for all). `level` is the number of leading dots in
    Python, 0 everywhere else: "./a" stays "./a" in JavaScript.
    """

    module: str
    names: tuple[str, ...] = ()
    level: int = 0
    line: int = 1


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """All that one file says. Each of its lines is in exactly one section, in order.

    A file of nothing but white space has no sections. `commands` are as a user types them
    ("anaphora", "make test", "npm run build"); `packages` the declared dependencies, by name.
    """

    language: str
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...] = ()
    imports: tuple[ImportedModule, ...] = ()
    commands: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


def lines_of(text: str) -> list[str]:
    """The lines of a text. The empty string after the last line feed is no line."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


_WORD = re.compile(r"\w")
_DRESS = " \t\r\f\v#/*!<>-=;%\"'`{}()[],.:|"
_TITLE = 80
_NO_TITLE = re.compile(
    r"^#!|frozen_string_literal|coding[:=]|eslint|SPDX-|copyright|licen[cs]ed? (?:under|header)"
    r"|vim:|@ts-|prettier-|pragma|^\W*use strict|^<\?(?:php|xml)|^<!doctype",
    re.IGNORECASE,
)
"""Lines for programs and lawyers."""


@dataclass(frozen=True, slots=True)
class SectionStart:
    """A section begins at line `start` (from 1) and goes on to the next start."""

    start: int
    kind: SectionKind
    title: str
    heading: tuple[str, ...] = ()
    symbol: str | None = None


def cut(lines: Sequence[str], starts: Iterable[SectionStart]) -> tuple[Section, ...]:
    """The sections of a file that has at least one line and one start.

    The first one is moved up to line 1. Of those on one line the first is kept, of those that
    only white space follows none.
    """
    # In order, the first start at line 1; none after another on its line, none with white
    # space alone behind it.
    ordered_sections: list[SectionStart] = []
    for section in sorted(starts, key=lambda section: section.start):
        if ordered_sections and section.start == ordered_sections[-1].start:
            continue
        if 1 <= section.start <= len(lines):
            ordered_sections.append(section)
    if ordered_sections and ordered_sections[0].start > 1:
        ordered_sections[0] = replace(ordered_sections[0], start=1)
    while len(ordered_sections) > 1 and not any(
        line.strip() for line in lines[ordered_sections[-1].start - 1 :]
    ):
        ordered_sections.pop()
    ends = [section.start - 1 for section in ordered_sections[1:]] + [len(lines)]
    parts = (
        _split_parts(lines, section, end)
        for section, end in zip(ordered_sections, ends, strict=True)
    )
    return tuple(itertools.chain.from_iterable(parts))


def fits(lines: Sequence[str], start: int, end: int) -> bool:
    """Whether lines `start` to `end` are few and short enough for one section."""
    if end - start + 1 > MAX_LINES:
        return False
    return sum(len(line) + 1 for line in lines[start - 1 : end]) <= MAX_CHARS


def is_wordy(line: str) -> bool:
    """Whether a line holds a letter or a digit, not only brackets and rules."""
    return _WORD.search(line) is not None


def first_words(lines: Iterable[str]) -> str:
    """The first line that says something, without comment marks, at most 80 characters; or ""."""
    for line in lines:
        words = line.strip(_DRESS)
        if is_wordy(words) and not _NO_TITLE.search(line):
            return words if len(words) <= _TITLE else words[: _TITLE - 1].rstrip() + "…"
    return ""


def joined_names(names: Sequence[str]) -> str:
    """Names as one title, at most six of them."""
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")


def _split_parts(lines: Sequence[str], section: SectionStart, end: int) -> Iterator[Section]:
    spans: list[tuple[int, int]] = []
    start = section.start
    while start <= end:
        # The last line that still fits.
        stop, chars = min(end, start + MAX_LINES - 1), 0
        for number in range(start, stop + 1):
            chars += len(lines[number - 1]) + 1
            if chars > MAX_CHARS and number > start:
                stop = number - 1
                break
        if stop < end:
            # Cut in the second half of the part: at the least indented blank line, the last such.
            # A blank line has the indentation of the line below; without one the limit is the cut.
            best_stop, min_indentation = stop, None
            for number in range(start + (stop - start) // 2, stop + 1):
                following = lines[number] if number < len(lines) else ""
                if lines[number - 1].strip() or not following.strip():
                    continue
                indentation = len(following) - len(following.lstrip())
                if min_indentation is None or indentation <= min_indentation:
                    best_stop, min_indentation = number, indentation
            stop = best_stop
            # White space alone makes no section: it goes to the part before it.
            while stop < end and not lines[stop].strip():
                stop += 1
        spans.append((start, stop))
        start = stop + 1
    for number, (first_line, last_line) in enumerate(spans, start=1):
        part = "" if len(spans) == 1 else f" ({number} of {len(spans)})"
        text = "\n".join(lines[first_line - 1 : last_line])
        yield Section(
            section.kind,
            section.title + part,
            text,
            first_line,
            last_line,
            section.heading,
            section.symbol,
        )
