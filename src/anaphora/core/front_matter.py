"""Front matter: the properties at the head of a Markdown file, between two lines of `---`.

Of YAML what notes have: one level of texts and of lists of texts, a list in brackets or one item a
line. What is written here any YAML reader reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

Properties = Mapping[str, str | list[str]]

_FRONT: Final = re.compile(r"\A\ufeff?---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.M | re.S)
# No run of blanks is looked at from each of its places: a line may be a megabyte of them.
_PROPERTY: Final = re.compile(r"([A-Za-z_][\w .-]{0,60}?)[ \t]*+:(?:[ \t]++(.*[^ \t])?)?[ \t]*$")
_ITEM: Final = re.compile(r"[ \t]*-[ \t]++(?:(.*[^ \t])[ \t]*)?$")
_QUOTED_ITEM: Final = re.compile(
    r"""[ \t]*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,]*)[ \t]*(?:,|\Z)"""
)
_PLAIN: Final = re.compile(r"[A-Za-z0-9_/][\w./ @+-]*\Z")
_WORDS_OF_YAML: Final = frozenset(("true", "false", "null", "yes", "no", "on", "off"))


class FrontMatter(NamedTuple):
    """What a Markdown file begins with, the text behind that, and where the text begins (lines)."""

    properties: Properties
    body: str
    lines: int


def split_front_matter(text: str) -> FrontMatter:
    """The properties of a Markdown text with plain line ends, and its body."""
    found = _FRONT.match(text)
    if found is None:
        return FrontMatter({}, text, 0)
    return FrontMatter(
        read_properties(found[1]), text[found.end() :], text.count("\n", 0, found.end())
    )


def read_properties(front: str) -> Properties:
    """The properties in lines, their names in lower case; empty ones are left out."""
    found: dict[str, str | list[str]] = {}
    name = ""
    for line in front.split("\n"):
        item = _ITEM.match(line)
        named = _PROPERTY.match(line)
        if item is not None and name:
            before = found.get(name)
            found[name] = [*(before if isinstance(before, list) else []), _bare(item[1] or "")]
        elif named is not None:
            name, value = named[1].lower(), named[2] or ""
            is_list = value.startswith("[") and value.endswith("]") and not value.startswith("[[")
            found[name] = _items(value[1:-1]) if is_list else _bare(value)
    return {name: value for name, value in found.items() if value}


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
