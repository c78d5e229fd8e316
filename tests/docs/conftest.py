"""`pytest tests/docs --rewrite` puts what was printed into the pages that show something else."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="put what was printed into the pages")
