"""Prose by heading: Markdown (`#`, underlined) and reStructuredText.

What stands in a code fence, in front matter or in an HTML comment is no heading. A heading with
nothing of its own under it goes into the section of the next deeper one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from anaphora.ingest.sections.base import SectionStart, first_words

_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t]|\r?$)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*\r?$")
_NOT_PARAGRAPH = re.compile(r" {0,3}(?:[-+*][ \t]|\d{1,9}[.)][ \t]|>|<[!/?a-zA-Z]|\|)|(?: {4}|\t)")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*\r?$")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])?")
_EMPHASIS = re.compile(r"(\*{1,3})(\S(?:[^*]*\S)?)\1")
_TITLE = re.compile(r"(?:title|name)[ \t]*[:=][ \t]*[\"']?(.{1,120}?)[\"']?[ \t]*\r?$")
_LABEL = re.compile(r"\.\. (?:_[^:]*:|[\w-]+::)")
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*[ \t]*\r?$")


@dataclass(frozen=True, slots=True)
class _Heading:
    line: int
    level: int
    title: str
    body: int
    """The first line after the heading."""


def markdown_starts(lines: Sequence[str], name: str) -> list[SectionStart]:
    """The sections of a Markdown file; `name` is the title of what is before any heading."""
    headings: list[_Heading] = []
    start = _skip_front_matter(lines)
    paragraph: int | None = None
    """The first line of the paragraph that goes on, which an underline makes a heading."""
    blocks = _scan_blocks(lines[start - 1 :])
    for number, (is_within, _, _) in enumerate(blocks, start=start):
        if is_within:
            paragraph = None
            continue
        line = lines[number - 1]
        atx = _ATX.match(line)
        if atx is not None:
            paragraph = None
            # Without the closing marks. No pattern: it would look for them from each position, in
            # quadratic time.
            text = line[atx.end() :]
            title = text.removesuffix("\r").strip(" \t")
            unclosed = title.rstrip("#")
            closed = unclosed != title and unclosed.endswith((" ", "\t"))
            title = unclosed.rstrip(" \t") if closed else title
            headings.append(_Heading(number, len(atx[1]), _strip_marks(title), number + 1))
            continue
        underline = _UNDERLINE.match(line)
        if underline is not None and paragraph is not None:
            title = " ".join(part.strip() for part in lines[paragraph - 1 : number - 1])
            level = 1 if underline[1][0] == "=" else 2
            headings.append(_Heading(paragraph, level, _strip_marks(title), number + 1))
            paragraph = None
            continue
        if not line.strip() or _RULE.match(line):
            paragraph = None
        elif paragraph is not None and paragraph > 0:
            paragraph = paragraph if not _NOT_PARAGRAPH.match(line) or line[:1] in " \t" else None
        else:
            paragraph = None if _NOT_PARAGRAPH.match(line) else number
    return _make_starts(lines, headings, name)


def rst_starts(lines: Sequence[str], name: str) -> list[SectionStart]:
    """The sections of a reStructuredText file. Levels are in the order in which styles appear."""
    headings: list[_Heading] = []
    styles: list[tuple[str, bool]] = []
    number = 1
    while number < len(lines):
        heading = _read_rst_heading(lines, number)
        if heading is None:
            number += 1
            continue
        style, title, body = heading
        if style not in styles:
            styles.append(style)
        headings.append(_Heading(number, styles.index(style) + 1, title, body))
        number = body
    return _make_starts(lines, headings, name)


def _make_starts(lines: Sequence[str], headings: list[_Heading], name: str) -> list[SectionStart]:
    starts: list[SectionStart] = []
    if not headings:
        return starts
    lines_before = [line for line in lines[: headings[0].line - 1] if not _LABEL.match(line)]
    if any(line.strip() for line in lines_before):
        front_matter = lines[: _skip_front_matter(lines) - 1]
        titles = (match[1] for line in front_matter if (match := _TITLE.match(line)))
        title = next(titles, "") or first_words(lines_before) or name
        starts.append(SectionStart(1, "lines", title))
    outer_headings: list[_Heading] = []
    waiting: int | None = None
    for number, heading in enumerate(headings):
        while outer_headings and outer_headings[-1].level >= heading.level:
            outer_headings.pop()
        following = headings[number + 1] if number + 1 < len(headings) else None
        start = waiting if waiting is not None else heading.line
        if (
            following is not None
            and following.level > heading.level
            and not any(line.strip() for line in lines[heading.body - 1 : following.line - 1])
        ):
            waiting = start
        else:
            waiting = None
            path = tuple(outer_heading.title for outer_heading in outer_headings)
            starts.append(SectionStart(start, "heading", heading.title or name, path))
        outer_headings.append(heading)
    return starts


def _strip_marks(title: str) -> str:
    """A heading's words without the marks of links, code and emphasis."""
    plain = _LINK.sub(r"\1", title)
    plain = _EMPHASIS.sub(r"\2", plain.replace("`", "")).replace("**", "")
    return plain.strip(" \t*_\r") or title.strip()


def _scan_blocks(lines: Sequence[str]) -> Iterator[tuple[bool, str, bool]]:
    """Whether each line is of a code fence or an HTML comment; the fence that is open behind it,
    and whether a comment is."""
    fence, comment = "", False
    for line in lines:
        is_within = True
        if fence:
            stripped = line.strip()
            indentation = len(line) - len(line.lstrip(" "))
            if indentation <= 3 and len(stripped) >= len(fence) and not stripped.strip(fence[0]):
                fence = ""
        elif comment:
            comment = "-->" not in line
        elif (fence_match := _FENCE.match(line)) and not (
            fence_match[1][0] == "`" and "`" in fence_match[2]
        ):
            fence = fence_match[1]
        elif line.lstrip(" ").startswith("<!--"):
            comment = "-->" not in line
        else:
            is_within = False
        yield is_within, fence, comment


def end_of_open_block(lines: Sequence[str]) -> str:
    """The end of a code fence or an HTML comment that is still open at the end, "" if none is."""
    _, fence, comment = [(False, "", False), *_scan_blocks(lines)][-1]
    return f"\n{fence}" if fence else "\n-->" if comment else ""


def _skip_front_matter(lines: Sequence[str]) -> int:
    """The line after `---` … `---` (or `+++`) at the top of the file, else 1."""
    mark = lines[0].rstrip()
    if mark in {"---", "+++"}:
        for number, line in enumerate(lines[1:200], start=2):
            if line.rstrip() in {mark, "..." if mark == "---" else mark}:
                return number + 1
    return 1


def _read_rst_heading(
    lines: Sequence[str], number: int
) -> tuple[tuple[str, bool], str, int] | None:
    """The style, title and first line after the heading that begins at `number`, if one does."""
    line = lines[number - 1]
    if not line.strip():
        return None
    if _ADORNMENT.match(line):
        if number + 1 >= len(lines):
            return None
        title, under = lines[number], lines[number + 1]
        width = len(line.rstrip())
        if not title.strip() or _ADORNMENT.match(title) or under.rstrip() != line.rstrip():
            return None
        if width < max(len(title.strip()), 3):
            return None
        return (line[0], True), _strip_rst_marks(title), number + 3
    under = lines[number]
    line_before = lines[number - 2].strip() if number > 1 else ""
    long_enough = len(under.rstrip()) >= max(min(len(line.rstrip()), 40), 3)
    if line_before or line[0] in " \t" or not _ADORNMENT.match(under) or not long_enough:
        return None
    return (under[0], False), _strip_rst_marks(line), number + 2


def _strip_rst_marks(title: str) -> str:
    return re.sub(r":[\w:-]+:`([^`]*)`", r"\1", title).replace("`", "").strip(" \t*\r")
