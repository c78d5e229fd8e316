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
    """The properties of a Markdown file, its body, and the number of lines before the body.

    `stray` are the lines between the marks that belong to no property.
    """

    properties: Properties
    body: str
    lines: int
    stray: str = ""


def split_front_matter(text: str) -> FrontMatter:
    """The properties of a Markdown text with plain line ends, and its body."""
    match = _FRONT.match(text)
    if match is None:
        return FrontMatter({}, text, 0)
    values: dict[str, tuple[str, list[str]]] = {}
    stray_lines: list[str] = []
    lines_below = stray_lines
    for line in match[1].split("\n"):
        name_match = None if line[:1] in (" ", "\t") else _NAMED.match(line)
        if name_match is not None:
            quoted_name = name_match[1] or (name_match[2] or "").replace("''", "'")
            lines_below = []
            values[(quoted_name or name_match[3]).lower()] = (
                (name_match[4] or "").strip(),
                lines_below,
            )
        elif not line.startswith("#"):
            lines_below.append(line)
    read = {name: _value(head, lines) for name, (head, lines) in values.items()}
    # Empty properties are left out.
    properties = {name: content for name, content in read.items() if content}
    stray = "\n".join(stray_lines).strip("\n")
    lines = text.count("\n", 0, match.end())
    return FrontMatter(properties, text[match.end() :], lines, stray)


def _value(head: str, below: Sequence[str]) -> str | list[str]:
    """The value of a property, from the text after its colon and the lines below."""
    block = _BLOCK.fullmatch(head)
    if block is not None:
        text = textwrap.dedent("\n".join(below)).strip("\n")
        if block[1] == "|":
            return text
        # ">" joins the lines of each paragraph.
        paragraphs = (" ".join(part.split("\n")) for part in re.split(r"\n{2,}", text))
        return "\n".join(paragraphs)
    lines = [line for line in below if line.strip()]
    if not head:
        return list(_entries(lines))
    joined_lines = " ".join((head, *(line.strip() for line in lines)))
    if (
        joined_lines.startswith("[")
        and joined_lines.endswith("]")
        and not joined_lines.startswith("[[")
    ):
        list_text, parts, at = joined_lines[1:-1], list[str](), 0
        while (
            at < len(list_text)
            and (match := _QUOTED_ITEM.match(list_text, at))
            and match.end() > at
        ):
            parts.append(_bare(match[1]))
            at = match.end()
        return [part for part in parts if part]
    return _bare(joined_lines)


def _entries(lines: Sequence[str]) -> Iterator[str]:
    """The items of a list with one item per line, each with the lines below it; else the lines."""
    item_text, depth = "", -1
    for line in lines:
        match = _ITEM.match(line)
        indentation = len(line) - len(line.lstrip())
        if match is None and 0 <= depth < indentation:
            # The rest of an item: more of its text, or of what it maps.
            item_text = (
                f"{item_text}{', ' if _NAMED.match(line.strip()) else ' '}{line.strip()}".strip()
            )
            continue
        if item_text:
            yield item_text
        item_text = _bare(match[2] or "" if match is not None else line)
        depth = len(match[1]) if match is not None else -1
        if _BLOCK.fullmatch(item_text):
            item_text = ""
    if item_text:
        yield item_text


def write_front_matter(properties: Mapping[str, str | Sequence[str] | None]) -> str:
    """The head of a file with these properties, in this order; without None and empty lists."""
    lines = ["---"]
    for name, content in properties.items():
        if isinstance(content, str):
            lines.append(f"{name}: {_quoted(content)}")
        elif content:
            lines += [f"{name}:", *(f"  - {_quoted(part)}" for part in content)]
    return "\n".join([*lines, "---", ""])


def _bare(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        with suppress(ValueError):
            return str(json.loads(text))
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1].replace("''", "'") if text[0] == "'" else text[1:-1]
    return text


def _quoted(text: str) -> str:
    if _PLAIN.match(text) and text.lower() not in _WORDS_OF_YAML and not text.endswith(" "):
        return text
    return json.dumps(text, ensure_ascii=False)
