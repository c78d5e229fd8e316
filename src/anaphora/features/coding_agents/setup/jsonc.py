"""JSON as editors write it, with comments and trailing commas: reading, and the smallest edits.

A change touches only the bytes of what it changes: comments, order, indentation and line ends of
the rest stay. A path leads through keys of objects and numbers of items.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_SPACE: Final = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_REST_OF_LINE: Final = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/))*")
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_WORD: Final = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_DEEPEST: Final = 200


@dataclass(slots=True)
class _Node:
    """A value and its position: `text[start:end]`. Members of an object have keys, items of an
    array have none; `begin` is the start of the member, including its key."""

    start: int
    end: int = 0
    value: Any = None
    items: list[_Node] = field(default_factory=list)
    key: str = ""
    begin: int = 0

    def child(self, key: str | int) -> _Node | None:
        """The item of this number, or the member with this key: of several, the last one."""
        if isinstance(key, int):
            return self.items[key]
        return next((child for child in reversed(self.items) if child.key == key), None)


def read(text: str) -> Any:
    """The value of a whole text; {} for an empty one. ValueError if it is no JSON even so."""
    try:
        # Much faster, and client files can be large.
        return json.loads(text or "{}")
    except ValueError:
        return _tree(text).value if text.strip() else {}


def put(text: str, path: Sequence[str | int], value: Any) -> str:
    """The text with `value` at `path`, creating missing objects. ValueError where none can be."""
    text = text if text.strip() else "{}\n"
    node = _tree(text)
    for depth, key in enumerate(path, 1):
        if isinstance(key, str) and not isinstance(node.value, dict):
            raise ValueError(f"{path[depth - 2]} is not an object")
        child = node.child(key)
        if child is None:
            for missing in reversed(path[depth:]):
                value = {missing: value}
            return _inserted(text, node, f"{json.dumps(key)}: ", value, depth)
        node = child
    return text[: node.start] + _shown(text, value, len(path)) + text[node.end :]


def append(text: str, path: Sequence[str | int], value: Any) -> str:
    """The text with `value` as the last item of the existing list at `path`."""
    members = _at(text, path)[-1]
    if not isinstance(members.value, list):
        raise ValueError(f"{path[-1]} is not a list")
    return _inserted(text, members, "", value, len(path) + 1)


def take(text: str, path: Sequence[str | int]) -> str:
    """The text without the existing member or item at `path`. Comments of others stay."""
    *_, parent, member = _at(text, path)
    at = parent.items.index(member)
    start, end, comma = member.begin, member.end, _skip(text, member.end)
    if text[comma] == ",":
        text = text[:comma] + text[comma + 1 :]
    elif at:
        # With the last one goes the comma behind the one before it.
        comma = _skip(text, parent.items[at - 1].end)
        text, start, end = text[:comma] + text[comma + 1 :], start - 1, end - 1
    line, line_end = text.rfind("\n", 0, start) + 1, re.compile(r"[ \t]*\r?\n").match(text, end)
    if not text[line:start].strip() and line_end:
        # A member on lines of its own leaves no empty line behind.
        return text[:line] + text[line_end.end() :]
    return text[:start].rstrip(" \t") + text[end:]


def _at(text: str, path: Sequence[str | int]) -> list[_Node]:
    """The nodes on the way to `path`, which is there, and that at its end."""
    nodes = [_tree(text)]
    for key in path:
        child = nodes[-1].child(key)
        if child is None:
            raise ValueError(f"{key} is not there")
        nodes.append(child)
    return nodes


def _inserted(text: str, parent: _Node, head: str, value: Any, depth: int) -> str:
    """The text with a new last member or item of `parent`."""
    unit, newline = _style(text)
    line = f"{newline}{unit * depth}{head}{_shown(text, value, depth)}"
    end = f"{newline}{unit * (depth - 1)}"
    if not parent.items:
        # Comments in the container stay behind its opening bracket.
        inside = text[parent.start + 1 : parent.end - 1].rstrip()
        return f"{text[: parent.start + 1]}{inside}{line}{end}{text[parent.end - 1 :]}"
    last = parent.items[-1].end
    comma = _skip(text, last)
    if text[comma] == ",":
        last = comma + 1
    else:
        text, last = f"{text[:last]},{text[last:]}", last + 1
    comments = _REST_OF_LINE.match(text, last)
    last = comments.end() if comments else last
    closing = text[last : _skip(text, last)]
    return text[:last] + line + ("" if "\n" in closing else end) + text[last:]


def _shown(text: str, value: Any, depth: int) -> str:
    unit, newline = _style(text)
    rendered_json = json.dumps(value, indent=unit, ensure_ascii=False)
    return rendered_json.replace("\n", newline + unit * depth)


def _style(text: str) -> tuple[str, str]:
    """The indentation and the line end of a text."""
    match = re.search(r"[{\[][^\n\"]*\r?\n([ \t]+)\S", text)
    return match[1] if match else "  ", "\r\n" if "\r\n" in text else "\n"


def _skip(text: str, at: int) -> int:
    """The position after spaces and comments."""
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _tree(text: str) -> _Node:
    node = _read_value(text, _skip(text, 0), 0)
    if _skip(text, node.end) != len(text):
        raise ValueError(f"there is more than one value, at character {node.end}")
    return node


def _read_value(text: str, at: int, depth: int) -> _Node:
    """Parse the value at `at`."""
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    opening = text[at : at + 1]
    if opening in {"{", "["}:
        return _read_group(text, at, depth, "}" if opening == "{" else "]")
    match = _STRING.match(text, at) or _WORD.match(text, at)
    if match is None:
        raise ValueError(f"expected a value at character {at}")
    return _Node(at, match.end(), json.loads(match[0]), begin=at)


def _read_group(text: str, at: int, depth: int, closing: str) -> _Node:
    """Parse the object or array at `at`."""
    is_object = closing == "}"
    node = _Node(at, begin=at, value={} if is_object else [])
    position = _skip(text, at + 1)
    while text[position : position + 1] != closing:
        begin, key = position, ""
        if is_object:
            match = _STRING.match(text, position)
            if match is None:
                raise ValueError(f"expected a key at character {position}")
            key = json.loads(match[0])
            position = _skip(text, match.end())
            if text[position : position + 1] != ":":
                raise ValueError(f"expected a colon at character {position}")
            position = _skip(text, position + 1)
        member = _read_value(text, position, depth + 1)
        member.key, member.begin = key, begin
        node.items.append(member)
        if is_object:
            node.value[key] = member.value
        else:
            node.value.append(member.value)
        position = _skip(text, member.end)
        if text[position : position + 1] == ",":
            position = _skip(text, position + 1)
        elif text[position : position + 1] != closing:
            raise ValueError(f"expected a comma at character {position}")
    node.end = position + 1
    return node
