"""Run every statement of the seeds, and print which promises cover which of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent

if __name__ == "__main__":
    print((FOLDER / "statements.md").read_text("utf-8"))
    sys.exit(pytest.main(["-q", str(FOLDER.parent / "test_conformance.py")]))
