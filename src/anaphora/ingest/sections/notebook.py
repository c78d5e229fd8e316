"""Notebooks by heading and symbol: prose under its heading, functions and types of code cells.

They are read as MyST Markdown (`ingest.files.notebooks`): code cells lie between fences that name
their language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from anaphora.ingest.sections.base import ImportedModule, SectionStart, Symbol, first_words
from anaphora.ingest.sections.code import code_starts
from anaphora.ingest.sections.grammars import can_parse
from anaphora.ingest.sections.markdown import markdown_starts

_CELL = re.compile(r"(`{3,})\{code-cell\} ?(\S*)$")
_COMMAND = re.compile(r"\s*[%!]")


class _CodeCell(NamedTuple):
    """A code cell: its language, the line of its first fence and that of its last."""

    language: str
    start: int
    end: int


def notebook_starts(
    lines: Sequence[str], name: str
) -> tuple[list[SectionStart], tuple[Symbol, ...], tuple[ImportedModule, ...]]:
    """The sections, symbols and imports of a notebook's text; `name` is that of its file."""
    starts = markdown_starts(lines, name)
    headings = [section for section in starts if section.kind == "heading"]
    symbols: list[Symbol] = []
    imports: list[ImportedModule] = []
    ends: list[int] = []
    for cell in _find_cells(lines):
        if not can_parse(cell.language):
            continue
        # Commands of the notebook itself are no code.
        code = ["" if _COMMAND.match(line) else line for line in lines[cell.start : cell.end - 1]]
        code_sections, defined_symbols, import_statements = code_starts(cell.language, name, code)
        around = _find_heading(headings, cell.start)
        # What is before the first symbol has the fence with it.
        starts += [
            replace(section, start=cell.start + (section.start if number else 0), heading=around)
            for number, section in enumerate(code_sections)
        ]
        ends += [cell.end + 1] if code_sections else []
        symbols += [
            replace(
                symbol,
                start_line=symbol.start_line + cell.start,
                end_line=symbol.end_line + cell.start,
            )
            for symbol in defined_symbols
        ]
        # How a module of another language is found depends on where its program runs.
        if cell.language == "python":
            imports += [
                replace(statement, line=statement.line + cell.start)
                for statement in import_statements
            ]
    if not starts:
        return [], tuple(symbols), tuple(imports)
    begun = sorted(section.start for section in starts)
    if begun[0] > 1:
        starts.append(SectionStart(1, "lines", first_words(lines) or name))
    for end in ends:
        until = next((start for start in begun if start >= end), len(lines) + 1)
        remaining = lines[end - 1 : until - 1]
        if any(line.strip() for line in remaining):
            around = _find_heading(headings, end)
            title = around[-1] if around else first_words(remaining) or name
            starts.append(SectionStart(end, "lines", title, around[:-1]))
    return starts, tuple(symbols), tuple(imports)


def _find_cells(lines: Sequence[str]) -> Iterator[_CodeCell]:
    number = 0
    while number < len(lines):
        number += 1
        cell_match = _CELL.match(lines[number - 1])
        if cell_match is None:
            continue
        start = number
        while number < len(lines) and lines[number].rstrip() != cell_match[1]:
            number += 1
        number = min(number + 1, len(lines))
        yield _CodeCell(cell_match[2], start, number)


def _find_heading(headings: Sequence[SectionStart], line: int) -> tuple[str, ...]:
    """The titles that a line stands under, outermost first."""
    headings_above = [heading for heading in headings if heading.start <= line]
    return (*headings_above[-1].heading, headings_above[-1].title) if headings_above else ()
