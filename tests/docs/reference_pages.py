"""The pages of docs/reference, which are built and not committed, as tests and links need them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tools.reference import OUT, PAGES, page

__all__ = ["REFERENCE", "exists", "reference_page", "text_of"]

REFERENCE = tuple(PAGES)


@cache
def reference_page(name: str) -> str:
    """The text of a page of the reference, built from the code."""
    return page(name)


def exists(path: Path) -> bool:
    """Whether there is such a file or folder once the reference is built."""
    return path == OUT or _is_built(path) or (path.exists() and path.parent != OUT)


def text_of(path: Path) -> str:
    """The text of a page of the project or the reference."""
    return reference_page(path.name) if _is_built(path) else path.read_text("utf-8")


def _is_built(path: Path) -> bool:
    return path.parent == OUT and path.name in PAGES
