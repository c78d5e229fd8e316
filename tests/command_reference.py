"""The commands of the program, as the reference states them."""

from __future__ import annotations

import re
from functools import cache

from tests.docs.reference_pages import reference_page

__all__ = ["documented_commands"]


@cache
def documented_commands() -> dict[str, set[str]]:
    """The full name of every command that is no group and not hidden, and its options."""
    page = reference_page("cli.md").partition("\n## Commands\n")[2]
    return {
        f"anaphora {section.partition(chr(10))[0]}": set(
            re.findall(r"^\| `(--[a-z-]+)", section, re.MULTILINE)
        )
        for section in page.split("\n### ")[1:]
    }
