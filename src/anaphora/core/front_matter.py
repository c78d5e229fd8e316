"""Front matter: the properties at the head of a Markdown file, between two lines of `---`.

Of YAML what notes have: texts, also over several lines, and lists of texts, in brackets or one item
a line. What is nested deeper is a list of its lines. What is written here any YAML reader reads.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

Properties = Mapping[str, str | list[str]]

_FRONT: Final = re.compile(r"\A\ufeff?---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.M | re.S)
# No run of blanks is looked at from each of its places: a line may be a megabyte of them.
_NAMED: Final = re.compile(
    r"""(?:"((?:[^"\\]|\\.){1,100})"|'((?:[^']|''){1,100})'"""
    r"""|((?:[^\s"'#\[\]{}&*!|>%@`,:-]|-(?=[^\s:-]))(?:[^:]|:(?=\S)){0,99}?))"""
    r"[ \t]*+:(?:[ \t]++(.*))?$"
)
_ITEM: Final = re.compile(r"([ \t]*)-(?:[ \t]++(.*))?$")
_BLOCK: Final = re.compile(r"([|>])[+-]?\d?[+-]?(?:[ \t]+#.*)?")
_QUOTED_ITEM: Final = re.compile(
    r"""[ \t]*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,]*)[ \t]*(?:,|\Z)"""
)
_PLAIN: Final = re.compile(r"[A-Za-z0-9_/][\w./ @+-]*\Z")
_WORDS_OF_YAML: Final = frozenset(("true", "false", "null", "yes", "no", "on", "off"))


class FrontMatter(NamedTuple):
    """What a Markdown file begins with, the text behind that, and where the text begins (lines).

    `stray` are the lines between the marks that belong to no property.
    """

    properties: Properties
    body: str
    lines: int
    stray: str = ""


def split_front_matter(text: str) -> FrontMatter:
    """The properties of a Markdown text with plain line ends, and its body."""
    found = _FRONT.match(text)
    if found is None:
        return FrontMatter({}, text, 0)
    properties, stray = _read(found[1])
    lines = text.count("\n", 0, found.end())
    return FrontMatter(properties, text[found.end() :], lines, stray)


def _read(front: str) -> tuple[Properties, str]:
    """The properties in lines, their names in lower case, and the lines that are of none.

    Empty properties are left out.
    """
    values: dict[str, tuple[str, list[str]]] = {}
    stray: list[str] = []
    below = stray
    for line in front.split("\n"):
        named = None if line[:1] in (" ", "\t") else _NAMED.match(line)
        if named is not None:
            quoted = named[1] or (named[2] or "").replace("''", "'")
            below = []
            values[(quoted or named[3]).lower()] = (named[4] or "").strip(), below
        elif not line.startswith("#"):
            below.append(line)
    read = {name: _value(head, lines) for name, (head, lines) in values.items()}
    return {name: value for name, value in read.items() if value}, "\n".join(stray).strip("\n")


def _value(head: str, below: Sequence[str]) -> str | list[str]:
    """What stands behind the colon of a property and in the lines below it."""
    block = _BLOCK.fullmatch(head)
    if block is not None:
        text = textwrap.dedent("\n".join(below)).strip("\n")
        return text if block[1] == "|" else _folded(text)
    rest = [line for line in below if line.strip()]
    if not head:
        return list(_entries(rest))
    joined = " ".join((head, *(line.strip() for line in rest)))
    if joined.startswith("[") and joined.endswith("]") and not joined.startswith("[["):
        return _items(joined[1:-1])
    return _bare(joined)


def _folded(text: str) -> str:
    """A text whose lines are those of paragraphs, as `>` has it."""
    paragraphs = (" ".join(part.split("\n")) for part in re.split(r"\n{2,}", text))
    return "\n".join(paragraphs)


def _entries(lines: Sequence[str]) -> Iterator[str]:
    """The items of a list one a line, with what stands under each; else the lines."""
    entry, depth = "", -1
    for line in lines:
        item = _ITEM.match(line)
        indentation = len(line) - len(line.lstrip())
        if item is None and 0 <= depth < indentation:
            # The rest of an item: more of its text, or of what it maps.
            entry = f"{entry}{', ' if _NAMED.match(line.strip()) else ' '}{line.strip()}".strip()
            continue
        if entry:
            yield entry
        entry = _bare(item[2] or "" if item is not None else line)
        depth = len(item[1]) if item is not None else -1
        if _BLOCK.fullmatch(entry):
            entry = ""
    if entry:
        yield entry


def write_front_matter(properties: Mapping[str, str | Sequence[str] | None]) -> str:
    """The head of a file with these properties, in this order; without None and empty lists."""
    lines = ["---"]
    for name, value in properties.items():
        if isinstance(value, str):
            lines.append(f"{name}: {_quoted(value)}")
        elif value:
            lines += [f"{name}:", *(f"  - {_quoted(one)}" for one in value)]
    return "\n".join([*lines, "---", ""])


def _items(listed: str) -> list[str]:
    found = []
    at = 0
    while at < len(listed) and (one := _QUOTED_ITEM.match(listed, at)) and one.end() > at:
        found.append(_bare(one[1]))
        at = one.end()
    return [one for one in found if one]


def _bare(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        with suppress(ValueError):
            return str(json.loads(value))
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1].replace("''", "'") if value[0] == "'" else value[1:-1]
    return value


def _quoted(value: str) -> str:
    if _PLAIN.match(value) and value.lower() not in _WORDS_OF_YAML and not value.endswith(" "):
        return value
    return json.dumps(value, ensure_ascii=False)
