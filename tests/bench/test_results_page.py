"""The page of results says what the result files say."""

from __future__ import annotations

import importlib.util
import re

import pytest
from bench.figures import RESULTS
from bench.results_page import PAGE, SECTIONS, page


@pytest.mark.promise("results.page")
def test_the_page_is_what_the_files_say() -> None:
    """bench/RESULTS.md is put together anew without a difference."""
    assert PAGE.read_text() == page()


def test_no_result_is_left_out() -> None:
    """Every file of results has its place on the page, with a command that exists."""
    named = {one.name for _, measured in SECTIONS for one in measured}
    assert named == {file.stem for file in RESULTS.glob("*.md")}
    for _, measured in SECTIONS:
        for one in measured:
            module = re.search(r"python -m ([a-z_.]+)", one.command)
            assert module, one.command
            assert importlib.util.find_spec(module.group(1)), one.command
            chosen = re.search(r"--only ([a-z_]+)", one.command)
            if module.group(1) == "bench" and chosen:
                assert importlib.util.find_spec(f"bench.{chosen.group(1)}"), one.command
