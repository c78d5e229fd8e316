"""JSON as editors write it, with comments and commas too many: read, and changed where it must be.

A change touches the bytes of what it changes and nothing else: comments, order, indentation and
line ends of the rest stay. `tree` gives each value with its place in the text; `put` and `take`
give a new text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_SPACE: Final = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_WORD: Final = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_DEEPEST: Final = 200


@dataclass(slots=True)
class Node:
    """A value and its place: `text[start:end]`. Members of an object have keys, items of an array
    none; `begin` is where the member begins, its key included."""

    start: int
    end: int = 0
    value: Any = None
    items: list[Node] = field(default_factory=list)
    key: str = ""
    begin: int = 0

    def member(self, key: str) -> Node | None:
        """The member of this key, the last one where there are several."""
        return next((one for one in reversed(self.items) if one.key == key), None)


def tree(text: str) -> Node:
    """The value of a whole text. Raises ValueError for what is no JSON even so."""
    reader = _Reader(text)
    node = reader.value(_skip(text, 0), 0)
    if _skip(text, node.end) != len(text):
        raise ValueError(f"there is more than one value, at character {node.end}")
    return node


def put(text: str, keys: Sequence[str], value: Any) -> str:
    """The text with `value` under `keys`, in objects that are made where there are none."""
    node = tree(text)
    for depth, key in enumerate(keys):
        found = node.member(key)
        if found is None:
            rest = value
            for missing in reversed(keys[depth + 1 :]):
                rest = {missing: rest}
            return _inserted(text, node, f"{json.dumps(key)}: ", rest, depth + 1)
        if depth == len(keys) - 1:
            shown = _shown(text, value, len(keys))
            return text[: found.start] + shown + text[found.end :]
        if not isinstance(found.value, dict):
            raise ValueError(f"{key} is not an object")
        node = found
    raise ValueError("no key")


def append(text: str, keys: Sequence[str], value: Any) -> str:
    """The text with `value` as the last item of the list under `keys`, which is there."""
    return _inserted(text, _at(text, keys), "", value, len(keys) + 1)


def take(text: str, keys: Sequence[str], item: int | None = None) -> str:
    """The text without the member under `keys`, or without an item of the list there."""
    parent = _at(text, keys if item is not None else keys[:-1])
    gone = parent.items[item] if item is not None else parent.member(keys[-1])
    if gone is None:
        return text
    at = parent.items.index(gone)
    start, end = gone.begin, gone.end
    after = _skip(text, end)
    if after < parent.end and text[after] == ",":
        end = after + 1
    elif at:
        # The last one takes the comma before it along.
        start = parent.items[at - 1].end
    # What stood on lines of its own leaves none behind.
    line = text.rfind("\n", 0, start) + 1
    if not text[line:start].strip() and text[end : end + 2].lstrip(" \t\r")[:1] == "\n":
        start, end = line, text.index("\n", end) + 1
    return text[:start] + text[end:]


def _at(text: str, keys: Sequence[str]) -> Node:
    node = tree(text)
    for key in keys:
        found = node.member(key)
        if found is None:
            raise ValueError(f"{key} is not there")
        node = found
    return node


def _inserted(text: str, parent: Node, head: str, value: Any, depth: int) -> str:
    """The text with a new last member or item of `parent`."""
    unit, newline = _indentation(text), "\r\n" if "\r\n" in text else "\n"
    shown = head + _shown(text, value, depth)
    if not parent.items:
        # Comments in it stay behind the bracket that opens it.
        inside = text[parent.start + 1 : parent.end - 1]
        kept = inside.rstrip()
        made = f"{kept}{newline}{unit * depth}{shown}{newline}{unit * (depth - 1)}"
        return text[: parent.start + 1] + made + text[parent.end - 1 :]
    last = parent.items[-1]
    after = _skip(text, last.end)
    comma = "" if text[after] == "," else ","
    place = after + 1 if text[after] == "," else last.end
    return f"{text[:place]}{comma}{newline}{unit * depth}{shown}{text[place:]}"


def _shown(text: str, value: Any, depth: int) -> str:
    unit, newline = _indentation(text), "\r\n" if "\r\n" in text else "\n"
    made = json.dumps(value, indent=unit, ensure_ascii=False)
    return made.replace("\n", newline + unit * depth)


def _indentation(text: str) -> str:
    found = re.search(r"[{\[][^\n\"]*\r?\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _skip(text: str, at: int) -> int:
    """Where the next thing stands that is neither space nor comment."""
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, at: int, depth: int) -> Node:
        """The value that begins at `at`."""
        if depth > _DEEPEST:
            raise ValueError("it is nested too deeply")
        text = self._text
        opening = text[at : at + 1]
        if opening in {"{", "["}:
            return self._group(at, depth, "}" if opening == "{" else "]")
        found = _STRING.match(text, at) or _WORD.match(text, at)
        if found is None:
            raise ValueError(f"expected a value at character {at}")
        return Node(at, found.end(), json.loads(found[0]), begin=at)

    def _group(self, at: int, depth: int, closing: str) -> Node:
        text, named = self._text, closing == "}"
        node = Node(at, begin=at, value={} if named else [])
        here = _skip(text, at + 1)
        while text[here : here + 1] != closing:
            begin, key = here, ""
            if named:
                found = _STRING.match(text, here)
                if found is None:
                    raise ValueError(f"expected a key at character {here}")
                key = json.loads(found[0])
                here = _skip(text, found.end())
                if text[here : here + 1] != ":":
                    raise ValueError(f"expected a colon at character {here}")
                here = _skip(text, here + 1)
            item = self.value(here, depth + 1)
            item.key, item.begin = key, begin
            node.items.append(item)
            if named:
                node.value[key] = item.value
            else:
                node.value.append(item.value)
            here = _skip(text, item.end)
            if text[here : here + 1] == ",":
                here = _skip(text, here + 1)
            elif text[here : here + 1] != closing:
                raise ValueError(f"expected a comma at character {here}")
        node.end = here + 1
        return node
