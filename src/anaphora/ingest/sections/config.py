"""Settings by their top-level keys: JSON, TOML, YAML, INI, Makefiles, .env files, go.mod.

In: lines. Out: marks, and one symbol a key. Small neighbours share a section, so that a file of
one-line settings does not fall into crumbs. Nothing is parsed strictly: comments, trailing commas
and half a file are all read as far as they go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from anaphora.ingest.sections.base import Symbol
from anaphora.ingest.sections.cutting import Mark, first_words, named

SMALL_LINES = 4
"""A key of no more lines shares its section with small neighbours …"""
SHARED_LINES = 24
"""… until the section is this long."""

_TOML_TABLE = re.compile(r"[ \t]*\[{1,2}[ \t]*([^\[\]#]+?)[ \t]*\]{1,2}[ \t]*(?:#.*)?\r?$")
_TOML_KEY = re.compile(r"([A-Za-z0-9_.\"'-]+)[ \t]*=")
_INI_SECTION = re.compile(r"\[([^\]]+)\]")
_INI_KEY = re.compile(r"([^\s#;:=\[][^:=]*?)[ \t]*[:=]")
_YAML_KEY = re.compile(
    r"(\"[^\"]*\"|'[^']*'|[^\s#\-\[\]{}&*!|>%@`\"'][^#]*?|-[^\s#][^#]*?)[ \t]*:(?:[ \t]|\r?$)"
)
_YAML_DOCUMENT = re.compile(r"---(?:[ \t]|\r?$)")
_ENV = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.]*)[ \t]*=")
_TARGET = re.compile(r"([^\s#:=.$%][^#:=$%]*?)[ \t]*::?(?![:=])")
_MAKE_VARIABLE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*(?::{0,3}|[?+!])=")
_GO_MOD = re.compile(r"(module|go|toolchain|require|replace|exclude|retract|tool)\b")
_JSON_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*|[\[\]{}]')


@dataclass(frozen=True, slots=True)
class _Key:
    line: int
    name: str
    is_head: bool = False
    """Whether other keys may follow that belong to it: a table, a section, a target."""


def config_marks(language: str, lines: Sequence[str]) -> tuple[list[Mark], tuple[Symbol, ...]]:
    """The marks and keys of settings in one of the formats above; nothing for another language."""
    find = _FINDERS.get(language)
    keys = [key for key in find(lines) if key.name.strip()] if find is not None else []
    if not keys:
        return [], ()
    ends = [key.line - 1 for key in keys[1:]] + [len(lines)]
    symbols = tuple(
        Symbol(key.name, key.name, "key", key.line, max(key.line, end))
        for key, end in zip(keys, ends, strict=True)
    )
    starts = _with_comments(lines, keys)
    return list(_grouped(lines, keys, starts)), symbols


def target_names(lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The targets of a Makefile that can be asked for by name, with their lines."""
    for number, line in enumerate(lines, start=1):
        found = _TARGET.match(line)
        if found is not None and not _MAKE_VARIABLE.match(line):
            for name in found[1].split():
                if "/" not in name:
                    yield name, number


def _grouped(lines: Sequence[str], keys: Sequence[_Key], starts: Sequence[int]) -> Iterator[Mark]:
    if any(line.strip() for line in lines[: starts[0] - 1]):
        before = first_words(lines[: starts[0] - 1])
        # Brackets and a licence line alone go with the first key.
        if before and starts[0] > SMALL_LINES:
            yield Mark(1, "lines", before)
    ends = [start - 1 for start in starts[1:]] + [len(lines)]
    group: list[int] = []
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        size = sum(1 for line in lines[start - 1 : end] if line.strip())
        together = end - starts[group[0]] + 1 if group else 0
        if size > SMALL_LINES or together > SHARED_LINES:
            if group:
                yield _mark(keys, starts, group)
            group = []
        if size > SMALL_LINES:
            yield _mark(keys, starts, [number])
        else:
            group.append(number)
    if group:
        yield _mark(keys, starts, group)


def _mark(keys: Sequence[_Key], starts: Sequence[int], group: Sequence[int]) -> Mark:
    names = list(dict.fromkeys(keys[number].name for number in group))
    return Mark(starts[group[0]], "key", named(names))


def _with_comments(lines: Sequence[str], keys: Sequence[_Key]) -> list[int]:
    """The first line of each key with the comments right above it."""
    starts: list[int] = []
    floor = 1
    for key in keys:
        start = key.line
        while start > floor and lines[start - 2].lstrip().startswith(("#", "//", ";")):
            start -= 1
        starts.append(start)
        floor = key.line + 1
    return starts


def _json(lines: Sequence[str]) -> Iterator[_Key]:
    """The keys of the outermost object, found by counting brackets."""
    depth = 0
    comment = False
    for number, line in enumerate(lines, start=1):
        at = 0
        while True:
            if comment:
                at = line.find("*/", at) + 2
                if at == 1:
                    break
                comment = False
            token = _JSON_TOKEN.search(line, at)
            if token is None:
                break
            at = token.end()
            if token[0] == "/*":
                comment = True
            elif token[0] in "[{":
                depth += 1
            elif token[0] in "]}":
                depth -= 1
            elif token[0][0] == '"' and depth == 1 and line[at:].lstrip().startswith(":"):
                yield _Key(number, _json_name(token[0]))


def _json_name(quoted: str) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError:
        return quoted.strip('"')


def _toml(lines: Sequence[str]) -> Iterator[_Key]:
    """Tables, and the keys above the first of them; nothing within a string of several lines."""
    inside = ""
    table = False
    for number, line in enumerate(lines, start=1):
        if inside:
            inside = "" if line.count(inside) % 2 else inside
            continue
        inside = next((mark for mark in ('"""', "'''") if line.count(mark) % 2), "")
        head = _TOML_TABLE.match(line)
        if head is not None and "," not in head[1]:
            table = True
            yield _Key(number, head[1].strip(), True)
        elif not table and (key := _TOML_KEY.match(line)):
            yield _Key(number, key[1].strip("\"'"))


def _yaml(lines: Sequence[str]) -> Iterator[_Key]:
    for number, line in enumerate(lines, start=1):
        key = _YAML_KEY.match(line)
        if key is not None and not _YAML_DOCUMENT.match(line):
            yield _Key(number, key[1].strip("\"'"))


def _ini(lines: Sequence[str]) -> Iterator[_Key]:
    section = False
    for number, line in enumerate(lines, start=1):
        head = _INI_SECTION.match(line)
        if head is not None:
            section = True
            yield _Key(number, head[1].strip(), True)
        elif not section and (key := _INI_KEY.match(line)):
            yield _Key(number, key[1])


def _env(lines: Sequence[str]) -> Iterator[_Key]:
    for number, line in enumerate(lines, start=1):
        key = _ENV.match(line)
        if key is not None:
            yield _Key(number, key[1])


def _makefile(lines: Sequence[str]) -> Iterator[_Key]:
    for number, line in enumerate(lines, start=1):
        variable, target = _MAKE_VARIABLE.match(line), _TARGET.match(line)
        if variable is not None:
            yield _Key(number, variable[1])
        elif target is not None:
            yield _Key(number, target[1], True)


def _go_mod(lines: Sequence[str]) -> Iterator[_Key]:
    for number, line in enumerate(lines, start=1):
        word = _GO_MOD.match(line)
        if word is not None:
            yield _Key(number, word[1])


_FINDERS: Final[Mapping[str, Callable[[Sequence[str]], Iterator[_Key]]]] = {
    "json": _json,
    "toml": _toml,
    "yaml": _yaml,
    "ini": _ini,
    "env": _env,
    "makefile": _makefile,
    "gomod": _go_mod,
}
