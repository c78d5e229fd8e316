"""Cuts a focus statement into parts that count differently: first line, prose, code, traceback.

In: one statement. Out: its parts in order, each with its kind and weight. Pure and linear; it
knows nothing of words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

PartKind = Literal["first", "prose", "code", "frame", "error", "form"]

WEIGHTS: Final[dict[PartKind, float]] = {
    "first": 1.0,
    "prose": 0.7,
    "code": 0.5,
    "frame": 0.4,
    "error": 0.6,
    "form": 0.0,
}
"""What a word counts by where it stands. `form` is what a template asks of everybody."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a statement. A `frame` of a traceback has its file and function."""

    kind: PartKind
    text: str
    weight: float
    place: str = ""
    symbol: str = ""


_FENCE: Final = re.compile(r"^\s{0,3}(```+|~~~+)")
_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG: Final = re.compile(r"</?(?:details|summary|br|p|b|i|img|kbd|sub|sup)\b[^>\n]{0,200}>")
_URL: Final = re.compile(r"\b(?:https?|ftp)://[^\s<>\"'`|)\]]+")
_FRAME: Final = re.compile(
    r"""^\s*(?:-->\s*)?(?:File\s+"(?P<quoted>[^"\n]{1,300})",\s+line\s+\d+(?:,\s+in\s+(?P<f1>[\w.<>]+))?
        |File\s+(?P<bare>[^\s:"]{1,300}):\d+(?:,\s+in\s+(?P<f2>[\w.]+))?
        |at\s+(?P<f3>[\w.$<>]+)\s+\((?P<js>[^():\n]{1,300}):\d+(?::\d+)?\)
        |(?P<short>[\w./\\~-]{1,300}\.\w{1,5}):\d+:(?:\s+in\s+(?P<f4>[\w.]+))?)""",
    re.VERBOSE,
)
_RAISED: Final = re.compile(
    r"^\s*(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Warning|Failure|Exit|Interrupt)\b(?::.*)?$"
)
_TRACE_NOISE: Final = re.compile(
    r"^\s*(?:Traceback \(most recent|During handling of|The above exception|-{5,}|\.\.\.\s*$)"
)
_HEADING: Final = re.compile(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*$|^\s*\*\*(.+?)\*\*:?\s*$")
_FORM_HEADING: Final = re.compile(
    r"^(?:describe the (?:bug|issue|problem|feature|solution)|(?:the )?expected"
    r" (?:behaviou?r|results?|outcome)|(?:the )?(?:actual|current|observed)"
    r" (?:behaviou?r|results?|outcome)|(?:steps )?to reproduce|steps|repro\w*(?: steps)?"
    r"|reproduction steps|environment|system info\w*|versions?"
    r"|additional (?:context|info\w*)|screenshots?|checklist|summary|description|context|notes?"
    r"|minimal (?:reproducible )?example|what happened|what did you (?:do|expect).*"
    r"|your environment"
    r"|platform|configuration|logs?)\W*$",
    re.IGNORECASE,
)
_FORM_LINE: Final = re.compile(
    r"^\s*(?:[-*]\s*)?(?:\[[ xX]\]\s|(?:python|os|platform|version|\w+ version|implementation|arch"
    r"|kernel|node|browser)\s*[:=]\s)",
    re.IGNORECASE,
)
_ENVIRONMENT: Final = re.compile(
    r"^(?:your )?(?:environment|system info\w*|versions?|platform)\W*$", re.IGNORECASE
)


def parts_of(statement: str) -> list[Part]:
    """The parts of a statement, in order. The first line that is not a form counts most."""
    return list(_merge(_lines(_TAG.sub(" ", _COMMENT.sub(" ", statement)))))


def _merge(parts: Iterator[Part]) -> Iterator[Part]:
    """Neighbouring lines of one kind become one part."""
    lines: list[str] = []
    kind: PartKind | None = None
    for part in parts:
        if lines and kind is not None and (part.kind != kind or part.kind in ("frame", "first")):
            yield Part(kind, "\n".join(lines), WEIGHTS[kind])
            lines = []
        if part.kind == "frame":
            yield part
            continue
        kind = part.kind
        lines.append(part.text)
    if lines and kind is not None:
        yield Part(kind, "\n".join(lines), WEIGHTS[kind])


def _lines(text: str) -> Iterator[Part]:
    fence, begun, environment = "", False, False
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark is not None and (not fence or mark.group(1).startswith(fence)):
            fence = "" if fence else mark.group(1)[:3]
            continue
        if not line.strip():
            continue
        special = _special(line)
        if special is not None:
            yield special
            continue
        if fence or line.startswith((">>> ", "In [")):
            yield _part("code", line)
            continue
        form = _HEADING.match(line)
        heading = (form.group(1) or form.group(2)) if form is not None else ""
        if heading:
            environment = _ENVIRONMENT.match(heading) is not None
        if environment or _FORM_LINE.match(line) or _FORM_HEADING.match(heading or line.strip()):
            yield _part("form", line)
        else:
            yield _part("prose" if begun else "first", _URL.sub(" ", line))
            begun = True


def _part(kind: PartKind, text: str) -> Part:
    return Part(kind, text, WEIGHTS[kind])


def _special(line: str) -> Part | None:
    """A line of a traceback, else None."""
    found = _FRAME.match(line)
    if found is not None:
        place = found["quoted"] or found["bare"] or found["js"] or found["short"]
        symbol = found["f1"] or found["f2"] or found["f3"] or found["f4"] or ""
        symbol = "" if symbol.startswith("<") else symbol
        return Part(
            "frame", f"{place} {symbol}", WEIGHTS["frame"], place.replace("\\", "/"), symbol
        )
    if _RAISED.match(line):
        return _part("error", line)
    return _part("form", line) if _TRACE_NOISE.match(line) else None
