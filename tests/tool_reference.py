"""The tools of the server for coding agents, as the reference states them."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, NamedTuple

from tests.docs.reference_pages import reference_page

__all__ = ["DocumentedTool", "documented_tools"]


class DocumentedTool(NamedTuple):
    """What the reference says of a tool: its arguments, and the JSON Schema of its results."""

    arguments: tuple[str, ...]
    required: tuple[str, ...]
    by_default: bool
    result: dict[str, Any]


@cache
def documented_tools() -> dict[str, DocumentedTool]:
    """Every tool by its name, in the order of the page."""
    head, *sections = reference_page("mcp.md").split("\n## ")
    tools: dict[str, DocumentedTool] = {}
    for section in sections:
        name = section.partition("\n")[0]
        row = re.search(rf"^\| \[{name}\].*$", head, re.MULTILINE)
        stated = re.findall(r"^\| `(\w+)`(\*?) \|", section, re.MULTILINE)
        schema = re.search(r"```json\n(.*?)\n```", section, re.DOTALL)
        assert row is not None
        assert schema is not None
        tools[name] = DocumentedTool(
            tuple(argument for argument, _ in stated),
            tuple(argument for argument, star in stated if star),
            row[0].split("|")[3].strip() == "yes",
            json.loads(schema[1]),
        )
    return tools
