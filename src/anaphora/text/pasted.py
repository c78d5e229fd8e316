"""What people write, told from what is pasted around it: in long questions, and in turns.

In: a text that people wrote around a stack trace, a log, code or somebody else's prose. Out: the
lines to search by, in their order: those that ask, and of what is pasted those that identify it
(the exception and its message, the frames of the user's own code, errors in a log). Pure; the work
is bounded by `LOOKED` characters at either end, whatever the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

LOOKED: Final = 8_192
"""Characters at either end that are looked at. A trace is seldom longer, and its exception stands
at one of its ends."""

ASKING: Final = 1_024
"""Characters of the user's own words that are read: one window of the bundled model."""

_LONGEST: Final = 240
_PLAIN: Final = 300
_EXCEPTIONS: Final = 4
_FRAMES: Final = 3
_ERRORS: Final = 3
_LEAST_PASTED: Final = 3
"""Lines in a row that make a block; fewer are quoted in passing and stay with the words."""

_FENCE: Final = re.compile(r"\s{0,3}(```|~~~)")
_SOURCE: Final = (
    r"[\w./\\-]+\.(?:py|pyx|js|jsx|mjs|ts|tsx|vue|go|rs|java|kt|scala|rb|php|c|cc|cpp|h|hpp|cs|swift"
    r"|ex|exs|erl|clj|lua|dart|sql|sh)"
)
_FRAME: Final = re.compile(
    r"\s*(?:"
    r'File "[^"\n]+", line \d+'  # Python
    r"|at (?:async )?[^\n(]{0,160}\([^\n()]{1,200}\)\s*$"  # Java, JavaScript, .NET
    rf"|at [^\s:]+:\d+(?::\d+)?\s*$|{_SOURCE}:\d+"  # JavaScript, Go, Rust, Ruby
    r"|from \S+:\d+:in |#\d+ +(?:0x|/|\w)|\d+: +\S+::\S"
    r")"
)
_LIBRARY: Final = re.compile(
    r"site-packages|dist-packages|node_modules|/lib/python\d|<frozen |node:|internal/|/rustc/"
    r"|\.cargo/registry|\b(?:core|std|alloc|tokio)::|/usr/(?:lib|local/go)/|/vendor/|/gems/|/go/pkg/mod/"
    r"|\bat (?:java|javax|jdk|sun|kotlin|scala|org\.springframework|org\.apache|System|Microsoft)\."
)
_EXCEPTION: Final = re.compile(
    r"\s*(?:(?:Caused by|Exception in thread \S+|Uncaught|Unhandled \w+|panic|fatal(?: error)?"
    r"|thread '[^']*' panicked at|error\[E\d+\]|E)\b:?\s+)?"
    r"(?:[\w$]+[.:]+)*[A-Z][\w$]*(?:Error|Exception|Fault|Failure|Interrupt|Panic|Timeout)\b"
    r"(?=\s*(?::|$|\())"
    r"|\s*(?:Caused by: |panic: |fatal(?: error)?: |thread '[^']*' panicked|error(?:\[E\d+\])?: )",
)
_STAMP: Final = (
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.,]*Z?(?:[+-]\d\d:?\d\d)?\]?"
    r"|\[?\d\d:\d\d:\d\d[\d.,]*\]?|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
)
_LEVEL: Final = r"\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE)\b"
_STAMPED: Final = re.compile(rf"\s*(?:{_STAMP}|{_LEVEL})")
_WHEN: Final = re.compile(rf"\s*(?:{_STAMP})\s*")
_FAILED: Final = re.compile(r"\b(?:ERROR|FATAL|CRITICAL|SEVERE|PANIC)\b|\b(?:Error|Exception)\b")
_MARKED: Final = re.compile(
    r"(?: {4}|\t)\S|\s*[>|] |\s*[}\])]+[,;)]*\s*$|.*[{;]\s*$|(?:[+-]{3} |@@ |diff --git )"
    r"|\s*(?:#include\b|import \w[\w.]*;?\s*$|from [\w.]+ import |def \w+\(|class \w+[(:])"
    r"|\s*</?\w+[ />]"
    r"|Traceback \(most recent call last\):|During handling of the above exception"
    r"|The above exception was the direct cause|goroutine \d+ \[|\s*\.\.\. \d+ more"
)
_ASKS: Final = re.compile(
    r"\?\s*[\"')*_]*\s*$|\?\s|^\s*(?:what|why|who|whom|whose|when|where|which|how|can|could|would"
    r"|should|is|are|do|does|did|please|help|explain|tell|show|find|fix|summari[sz]e)\b",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
_BLANK: Final = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True, slots=True)
class LongQuestion:
    """The user's own words, and the lines that identify pasted blocks.

    `asks`: the words contain a question, or are short enough to be one; otherwise they are the
    beginning and the end of the text.
    """

    words: str
    identifying: tuple[str, ...]
    asks: bool

    @property
    def text(self) -> str:
        """The text to search by."""
        return "\n".join(part for part in (self.words, *self.identifying) if part)


def tell_apart(text: str, most: int = ASKING) -> LongQuestion:
    """The user's words in `text`, and what identifies the blocks that are pasted around them.

    Words of more than `most` characters are taken for pasted prose.
    """
    typed_parts: list[str] = []
    pasted_lines: list[str] = []
    for end in _ends(text):
        kinds = [(line, mark > 0) for line, mark in blocks(end)]
        typed_parts.append("\n".join(line for line, is_pasted in kinds if not is_pasted).strip())
        pasted_lines += [line for line, is_pasted in kinds if is_pasted]
    words, asks = _asking([part for part in typed_parts if part], most)
    # The exceptions, the user's own frames next to them, and errors of a log.
    exception_lines = [at for at, line in enumerate(pasted_lines) if _EXCEPTION.match(line)]
    frames = [at for at, line in enumerate(pasted_lines) if _FRAME.match(line)]
    stamped_lines = (
        at
        for at, line in enumerate(pasted_lines)
        if _STAMPED.match(line) and at not in exception_lines
    )
    error_lines = (at for at in stamped_lines if _FAILED.search(pasted_lines[at]))
    # The outermost exception is the last in Python, the first in Java; both name the problem.
    chosen_lines = _distinct(pasted_lines, [*exception_lines[-1:], *exception_lines], _EXCEPTIONS)
    frames_by_distance = sorted(
        frames,
        key=lambda at: min((abs(at - other_at) for other_at in exception_lines[-2:]), default=0),
    )
    chosen_lines += _distinct(
        pasted_lines,
        (at for at in frames_by_distance if not _LIBRARY.search(pasted_lines[at])),
        _FRAMES,
    )
    chosen_lines += _distinct(pasted_lines, error_lines, _ERRORS)
    identifying = (
        _WHEN.sub("", pasted_lines[at]).strip()[:_LONGEST] for at in sorted(chosen_lines)
    )
    return LongQuestion(words, tuple(identifying), asks)


def has_pasted(text: str) -> bool:
    """Whether some lines of `text` form a block that was pasted: code, a trace, a log, a quote."""
    return any(mark for end in _ends(text) for _, mark in blocks(end))


def _ends(text: str) -> list[str]:
    """All of the text, or the beginning and end of a long one, in whole lines."""
    if len(text) <= 2 * LOOKED:
        return [text]
    head, tail = text[:LOOKED], text[-LOOKED:]
    cut_position, begin = head.rfind("\n"), tail.find("\n")
    return [
        head[:cut_position] if cut_position > LOOKED // 2 else head,
        tail[begin + 1 :] if 0 <= begin < LOOKED // 2 else tail,
    ]


def blocks(text: str) -> Iterable[tuple[str, int]]:
    """Each line, and whether it belongs to a pasted block: one that is fenced (2), or that looks
    like code, a trace, a log or a quotation (1). Linear in the length of the text."""
    lines = text.split("\n")
    marks, fence = [], ""
    for line in lines:
        match = _FENCE.match(line)
        if match and (not fence or match[1] == fence):
            fence = "" if fence else match[1]
            marks.append(2)
        else:
            marks.append(2 if fence else int(_looks_pasted(line)))
    if fence:
        # An end of a fence that began before, or an unclosed fence: judged line by line.
        marks = [1 if _FENCE.match(line) or _looks_pasted(line) else 0 for line in lines]
    # Single lines between pasted ones go into their block, and blocks of too few are given up.
    size = len(lines)
    for at in range(1, size - 1):
        between = not marks[at] and marks[at - 1] and marks[at + 1]
        if between and len(lines[at]) < _LONGEST and not _ASKS.search(lines[at]):
            marks[at] = 1
    at = 0
    while at < size:
        end = at
        while end < size and marks[end]:
            end += 1
        names_problem = any(_EXCEPTION.match(line) or _FRAME.match(line) for line in lines[at:end])
        if 0 < end - at < _LEAST_PASTED and max(marks[at:end]) < 2 and not names_problem:
            marks[at:end] = [0] * (end - at)
        at = max(end, at + 1)
    return zip(lines, marks, strict=True)


def _looks_pasted(line: str) -> bool:
    return bool(
        _FRAME.match(line) or _EXCEPTION.match(line) or _STAMPED.match(line) or _MARKED.match(line)
    )


def _distinct(lines: Sequence[str], candidates: Iterable[int], most: int) -> list[int]:
    """The first `most` line numbers with distinct lines, apart from times."""
    line_numbers: dict[str, int] = {}
    for at in candidates:
        if len(line_numbers) == most:
            break
        line_numbers.setdefault(_WHEN.sub("", lines[at]).strip(), at)
    return list(line_numbers.values())


def _asking(ends: Sequence[str], most: int) -> tuple[str, bool]:
    """The part of the user's own words that asks, and whether there is one.

    Words of more than `most` characters are taken for pasted prose with a question before or after
    it: the first and the last part if they ask, at most `ASKING` characters.
    """
    typed_text = "\n".join(ends)
    if len(typed_text) <= most:
        return typed_text, bool(typed_text)
    first_part, last_part = _outer(ends[0], 0), _outer(ends[-1], -1)
    asking = [part for part in (first_part, last_part) if _ASKS.search(part)]
    # Pasted text may ask too; a question of the user is short and ends with a question mark.
    plain = [part for part in asking if part.endswith("?") and len(part) <= _PLAIN]
    if asking:
        return "\n".join(dict.fromkeys(plain or asking)), True
    return f"{typed_text[: ASKING // 2]}\n{typed_text[-ASKING // 2 :]}", False


def _outer(text: str, which: int) -> str:
    """The first (0) or last (-1) part of a text: a paragraph, else a line, else sentences."""
    part = _BLANK.split(text)[which].strip()
    if len(part) <= ASKING // 2:
        return part
    part = part.split("\n")[which].strip()
    if len(part) <= ASKING // 2:
        return part
    sentences = _SENTENCE.split(part)
    part = sentences[which].strip()
    return part[: ASKING // 2] if which == 0 else part[-ASKING // 2 :]
