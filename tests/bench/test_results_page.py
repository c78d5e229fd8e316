"""The page of results says what the result files say, and each result has its record."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest
from bench.figures import RESULTS, as_markdown, at_most, write
from bench.measured import ROOT, measurements, stale
from bench.results_page import COMMANDS, PAGE, page


@pytest.mark.promise("results.page")
def test_the_page_is_what_the_files_say() -> None:
    """bench/RESULTS.md is put together anew without a difference."""
    assert PAGE.read_text("utf-8") == page()


def test_no_result_is_left_out() -> None:
    """Every file of results has its place on the page, with a command that exists."""
    assert set(COMMANDS) == {file.stem for file in RESULTS.glob("*.md")}
    for command in COMMANDS.values():
        module = re.search(r"python -m ([a-z_.]+)", command)
        assert module, command
        assert importlib.util.find_spec(module[1]), command
        part = re.search(r"--only ([a-z_]+)", command)
        assert part is None or importlib.util.find_spec(f"bench.{part[1]}"), command


@pytest.mark.promise("results.dated")
def test_a_measurement_records_its_date_commit_and_machine(tmp_path: Path) -> None:
    """What is written has its record beside those of others, and a later change is noticed."""
    rows = [at_most("time", 1.5, 2, "ms")]
    for name in ("first", "second"):
        write(name, json.dumps({"figures": []}), as_markdown("Times", rows), tmp_path)
    known = measurements(tmp_path)
    assert sorted(known) == ["first", "second"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", known["first"].date)
    assert "cores" in known["first"].machine
    assert known["first"].dated == "run"
    assert not stale(tmp_path, "first")
    file = tmp_path / "bench" / "results" / "first.md"
    file.write_text(file.read_text("utf-8").replace("1.5", "0.5"), "utf-8")
    assert stale(tmp_path, "first")
    assert not stale(tmp_path, "second")


@pytest.mark.promise("results.dated")
def test_every_result_has_a_record() -> None:
    """Each file of results has its date, commit and machine, and is what the run wrote."""
    known = measurements(ROOT)
    names = {file.stem for file in RESULTS.glob("*.md")}
    assert set(known) == names
    assert [name for name in names if stale(ROOT, name)] == []
    assert all(row.date and row.commit and row.machine for row in known.values())
