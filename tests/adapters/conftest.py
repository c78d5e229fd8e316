"""Tests of a framework that is not installed are not collected: they import it."""

from __future__ import annotations

from tests.adapters.frameworks import FRAMEWORKS

collect_ignore = [one.name for one in FRAMEWORKS if not one.is_installed]
