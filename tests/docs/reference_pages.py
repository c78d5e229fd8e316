"""The pages of docs/reference, which are built from the code and committed."""

from __future__ import annotations

from tests.docs.running import ROOT

__all__ = ["reference_page"]


def reference_page(name: str) -> str:
    """The text of a page of the reference."""
    return (ROOT / "docs" / "reference" / name).read_text("utf-8")
