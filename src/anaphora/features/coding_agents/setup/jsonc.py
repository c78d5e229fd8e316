"""JSON as editors write it, with comments and trailing commas: parsing, and minimal edits.

A change touches only the bytes of what it changes: comments, order, indentation and line ends of
the rest stay. `tree` gives each value with its position in the text; `put` and `take` return a new
text.
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
class JsonNode:
    """A value and its position: `text[start:end]`. Members of an object have keys, items of an
    array have none; `begin` is the start of the member, including its key."""

    start: int
    end: int = 0
    value: Any = None
    items: list[JsonNode] = field(default_factory=list)
    key: str = ""
    begin: int = 0

    def member(self, key: str) -> JsonNode | None:
        """The member with this key; of several, the last one."""
        return next((child for child in reversed(self.items) if child.key == key), None)


def tree(text: str) -> JsonNode:
    """Parse a whole text. Raises ValueError if it is no JSON even with these extensions."""
    node = _read_value(text, _skip(text, 0), 0)
    if _skip(text, node.end) != len(text):
        raise ValueError(f"there is more than one value, at character {node.end}")
    return node


def put(text: str, keys: Sequence[str], value: Any) -> str:
    """The text with `value` under `keys`, creating missing objects."""
    node = tree(text)
    for depth, key in enumerate(keys):
        member = node.member(key)
        if member is None:
            nested_member = value
            for missing in reversed(keys[depth + 1 :]):
                nested_member = {missing: nested_member}
            return _inserted(text, node, f"{json.dumps(key)}: ", nested_member, depth + 1)
        if depth == len(keys) - 1:
            return text[: member.start] + _shown(text, value, len(keys)) + text[member.end :]
        if not isinstance(member.value, dict):
            raise ValueError(f"{key} is not an object")
        node = member
    raise ValueError("no key")


def append(text: str, keys: Sequence[str], value: Any) -> str:
    """The text with `value` as the last item of the existing list under `keys`."""
    return _inserted(text, _at(text, keys), "", value, len(keys) + 1)


def take(text: str, keys: Sequence[str], item: int | None = None) -> str:
    """The text without the member under `keys`, or without an item of the list there."""
    parent = _at(text, keys if item is not None else keys[:-1])
    member = parent.items[item] if item is not None else parent.member(keys[-1])
    if member is None:
        return text
    at = parent.items.index(member)
    start, end = member.begin, member.end
    next_index = _skip(text, end)
    if next_index < parent.end and text[next_index] == ",":
        end = next_index + 1
    elif at:
        # The last one is removed with the comma before it.
        start = parent.items[at - 1].end
    # A member on lines of its own leaves no empty line behind.
    line = text.rfind("\n", 0, start) + 1
    if not text[line:start].strip() and text[end : end + 2].lstrip(" \t\r")[:1] == "\n":
        start, end = line, text.index("\n", end) + 1
    return text[:start] + text[end:]


def _at(text: str, keys: Sequence[str]) -> JsonNode:
    node = tree(text)
    for key in keys:
        member = node.member(key)
        if member is None:
            raise ValueError(f"{key} is not there")
        node = member
    return node


def _inserted(text: str, parent: JsonNode, head: str, value: Any, depth: int) -> str:
    """The text with a new last member or item of `parent`."""
    unit, newline = _indentation(text), "\r\n" if "\r\n" in text else "\n"
    rendered_member = head + _shown(text, value, depth)
    if not parent.items:
        # Comments in the container stay behind its opening bracket.
        head_text = text[parent.start + 1 : parent.end - 1].rstrip()
        body = f"{head_text}{newline}{unit * depth}{rendered_member}{newline}{unit * (depth - 1)}"
        return text[: parent.start + 1] + body + text[parent.end - 1 :]
    last_member = parent.items[-1]
    next_index = _skip(text, last_member.end)
    comma = "" if text[next_index] == "," else ","
    position = next_index + 1 if text[next_index] == "," else last_member.end
    return f"{text[:position]}{comma}{newline}{unit * depth}{rendered_member}{text[position:]}"


def _shown(text: str, value: Any, depth: int) -> str:
    unit, newline = _indentation(text), "\r\n" if "\r\n" in text else "\n"
    rendered_json = json.dumps(value, indent=unit, ensure_ascii=False)
    return rendered_json.replace("\n", newline + unit * depth)


def _indentation(text: str) -> str:
    match = re.search(r"[{\[][^\n\"]*\r?\n([ \t]+)\S", text)
    return match[1] if match else "  "


def _skip(text: str, at: int) -> int:
    """The position after spaces and comments."""
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _read_value(text: str, at: int, depth: int) -> JsonNode:
    """Parse the value at `at`."""
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    opening = text[at : at + 1]
    if opening in {"{", "["}:
        return _read_group(text, at, depth, "}" if opening == "{" else "]")
    match = _STRING.match(text, at) or _WORD.match(text, at)
    if match is None:
        raise ValueError(f"expected a value at character {at}")
    return JsonNode(at, match.end(), json.loads(match[0]), begin=at)


def _read_group(text: str, at: int, depth: int, closing: str) -> JsonNode:
    """Parse the object or array at `at`."""
    is_object = closing == "}"
    node = JsonNode(at, begin=at, value={} if is_object else [])
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
