"""Marks into sections: where one begins the one before it ends, so no line is lost or doubled.

In: the lines of a file and marks, each the first line of something with what it is. Out: sections
that cover every line once. What is too long is cut into parts. It does not know any language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from anaphora.ingest.sections.base import MAX_CHARS, MAX_LINES, Section, SectionKind

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
class Mark:
    """A section begins at line `start` (from 1) and goes on to the next mark."""

    start: int
    kind: SectionKind
    title: str
    heading: tuple[str, ...] = ()
    symbol: str | None = None
    symbol_kind: str | None = None


def cut(lines: Sequence[str], marks: Iterable[Mark]) -> tuple[Section, ...]:
    """The sections of a file that has at least one line and one mark.

    The first mark is moved up to line 1. Of marks on one line the first is kept, of marks that
    only white space follows none.
    """
    kept = _in_order(lines, marks)
    ends = [mark.start - 1 for mark in kept[1:]] + [len(lines)]
    sections: list[Section] = []
    for mark, end in zip(kept, ends, strict=True):
        sections.extend(_parts(lines, mark, end))
    return tuple(sections)


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


def named(names: Sequence[str]) -> str:
    """Names as one title, at most six of them."""
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")


def _in_order(lines: Sequence[str], marks: Iterable[Mark]) -> list[Mark]:
    kept: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: mark.start):
        if kept and mark.start == kept[-1].start:
            continue
        if 1 <= mark.start <= len(lines):
            kept.append(mark)
    if kept and kept[0].start > 1:
        first = kept[0]
        kept[0] = Mark(1, first.kind, first.title, first.heading, first.symbol, first.symbol_kind)
    while len(kept) > 1 and not any(line.strip() for line in lines[kept[-1].start - 1 :]):
        kept.pop()
    return kept


def _parts(lines: Sequence[str], mark: Mark, end: int) -> list[Section]:
    spans = list(_spans(lines, mark.start, end))
    return [
        Section(
            kind=mark.kind,
            title=mark.title if len(spans) == 1 else f"{mark.title} ({number} of {len(spans)})",
            text="\n".join(lines[start - 1 : stop]),
            start_line=start,
            end_line=stop,
            heading=mark.heading,
            symbol=mark.symbol,
            symbol_kind=mark.symbol_kind,
        )
        for number, (start, stop) in enumerate(spans, start=1)
    ]


def _spans(lines: Sequence[str], start: int, end: int) -> Iterable[tuple[int, int]]:
    while start <= end:
        stop = _furthest(lines, start, end)
        if stop < end:
            stop = _good_end(lines, start, stop)
            # White space alone makes no section: it goes to the part before it.
            while stop < end and not lines[stop].strip():
                stop += 1
        yield start, stop
        start = stop + 1


def _furthest(lines: Sequence[str], start: int, end: int) -> int:
    """The last line that still fits into a section that begins at `start`, at least `start`."""
    chars = 0
    for number in range(start, min(end, start + MAX_LINES - 1) + 1):
        chars += len(lines[number - 1]) + 1
        if chars > MAX_CHARS and number > start:
            return number - 1
    return min(end, start + MAX_LINES - 1)


def _good_end(lines: Sequence[str], start: int, stop: int) -> int:
    """Where to cut in the second half of a part: at the least indented blank line, the last such.

    A blank line has the indentation of what follows it. Without one the cut is at the limit.
    """
    best, least = stop, None
    for number in range(start + (stop - start) // 2, stop + 1):
        following = lines[number] if number < len(lines) else ""
        if lines[number - 1].strip() or not following.strip():
            continue
        indentation = len(following) - len(following.lstrip())
        if least is None or indentation <= least:
            best, least = number, indentation
    return best
