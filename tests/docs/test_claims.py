"""Every figure and promise of the README and the docs is a claim with something that shows it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from bench.figures import as_markdown, at_most, write
from bench.measured import measurements, stale
from bench.results_page import SECTIONS
from tests.docs.running import ROOT
from tools.claims.checking import Registry, problems, renewed
from tools.claims.commands import cited_tests, missing, promises
from tools.claims.document import DOCUMENT, document
from tools.claims.durability import guarantees
from tools.claims.held import last_run, record_run
from tools.claims.model import Claim
from tools.claims.prose import blanked, pages
from tools.claims.registry import REGISTRY
from tools.claims.scan import NO_CLAIM
from tools.claims.sources import constant, figure


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The README, the docs and the results, to be changed."""
    shutil.copy(ROOT / "README.md", tmp_path / "README.md")
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("images"))
    shutil.copytree(ROOT / "bench" / "results", tmp_path / "bench" / "results")
    return tmp_path


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), "utf-8")


@pytest.mark.promise("docs.claims")
def test_pages_claims_and_results_agree() -> None:
    """Nothing is stated without a claim, no claim without proof; docs/claims.md has them all."""
    assert problems(ROOT, REGISTRY) == []
    assert (ROOT / DOCUMENT).read_text("utf-8") == document(ROOT, REGISTRY)


# What is changed on which page, and a pattern of the one problem that it makes.
WRONG = (
    ("README.md", "and Anaphora 0.62;", "and Anaphora 0.72;", "0.72, but compare.found"),
    ("README.md", "| 0.49 (BM25) |", "| 0.40 (BM25) |", "the table quality is not"),
    (
        "README.md",
        "\n## Doc",
        "\nIt answers in 31 ms.\n\n## Doc",
        r"this figure: .*in 31 ms",
    ),
    ("README.md", "\n## Doc", "\nOne in ten fails.\n\n## Doc", r"this figure: .*One in ten"),
    ("README.md", "\n## Doc", "\nIt never fails.\n\n## Doc", r"this promise: .*It never"),
    (
        "README.md",
        "`forget` really deletes",
        "`forget` now deletes",
        r"no page says: `forget` really",
    ),
    ("docs/ranking.md", "than 0.4 of the", "than 0.5 of the", "0.5, but ranking.least_share"),
    ("docs/scale.md", "hour needs 20 cores", "hour needs 10 cores", "10, but scale.processors"),
    (
        "docs/how-to/rest.md",
        "# ",
        "Up to 40% less.\n\n# ",
        r"rest.md:1: no claim has this figure: .*Up to 40%",
    ),
)


@pytest.mark.promise("docs.claims")
def test_what_a_page_says_wrongly_is_noticed(copy: Path) -> None:
    """A wrong figure, one in no claim, a promise in no claim, and a sentence that is gone."""
    for page, old, new, _ in WRONG:
        change(copy / page, old, new)
    lines = problems(copy, REGISTRY)
    unnoticed = [row for row in WRONG if not any(re.search(row[3], line) for line in lines)]
    assert unnoticed == []
    assert len(lines) == len(WRONG), lines


@pytest.mark.promise("docs.claims")
def test_a_page_is_renewed_from_the_results(copy: Path) -> None:
    """Another result becomes the figures and tables of the pages, wherever they stand."""
    readme = copy / "README.md"
    change(readme, "and Anaphora 0.62;", "and Anaphora 0.11;")
    change(readme, "| 0.49 (BM25) |", "| 0.10 (BM25) |")
    assert renewed(copy, pages(copy)[0], REGISTRY) == (ROOT / "README.md").read_text("utf-8")
    file = copy / "bench" / "results" / "speed.json"
    content = json.loads(file.read_text("utf-8"))
    content["figures"] = [
        row | {"value": 1.23} if row["name"].startswith("recall less") else row
        for row in content["figures"]
    ]
    file.write_text(json.dumps(content), "utf-8")
    assert "embedding the question, median | 1.2 ms |" in renewed(copy, pages(copy)[0], REGISTRY)


@pytest.mark.promise("docs.claims")
def test_a_result_without_the_figure_is_noticed(copy: Path) -> None:
    """A figure that was renamed, a result that was changed by hand, and one without a date."""
    results = copy / "bench" / "results"
    change(results / "hooks.json", "a hook with a warm process, over that, p50", "a hook, p50")
    rows = json.loads((results / "measured.json").read_text("utf-8"))
    del rows["silence"]
    (results / "measured.json").write_text(json.dumps(rows), "utf-8")
    lines = problems(copy, REGISTRY)
    assert any("hooks.json has no figure 'a hook with a warm" in line for line in lines)
    assert any(line.startswith("bench/results/hooks: not what the measurement") for line in lines)
    assert any(line.startswith("bench/results/silence: measured.json has no") for line in lines)
    assert not any("bench/results/speed:" in line for line in lines)


@pytest.mark.promise("docs.claims")
@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        (Claim("x", ("a page",)), "no command shows it"),
        (Claim("x", ("a page",), tests=("tests/test_gone.py::test_it",)), "is not there"),
        (Claim("x", ("a page",), tests=("tests/docs/test_claims.py::test_it",)), "has no test_it"),
        (Claim("x", ("a page",), promises=("no.such",)), "no promise no.such"),
        (Claim("x", ("{n} a page",), {"n": constant("core.config:GONE")}), "GONE"),
        (Claim("x", ("{n} a page",), {"n": figure("gone", "p50")}), "names no command for gone"),
        (Claim("x", ("a page",), {"n": constant("core.config:CORE_TOKENS")}), "its value n"),
    ],
)
def test_a_claim_without_proof_is_noticed(claim: Claim, problem: str) -> None:
    """No command, a test, a promise, a constant or a result that is not there, an unused value."""
    lines = problems(ROOT, Registry((claim,)))
    assert any(line.startswith("claim x: ") and problem in line for line in lines), lines


@pytest.mark.promise("docs.claims")
@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("python -m bench --data DIR --only speed", ""),
        ("python -m bench.gone --data DIR", "there is no module bench.gone"),
        ("python -m bench --data DIR --onyl speed", "no option --onyl"),
        ("python -m bench --data DIR --only sped", "knows no sped"),
        ("pytest tests/docs/test_claims.py::copy", "has no copy"),
        ("make bench", ""),
        ("make gone", "no target gone"),
        ("cat README.md", "no command that can be checked"),
    ],
)
def test_dead_commands_are_noticed(command: str, problem: str) -> None:
    """A module, an option, a part, a test or a target that does not exist."""
    told = missing(command)
    assert (told == "") == (problem == "")
    assert problem in told


@pytest.mark.promise("docs.claims")
def test_every_command_of_a_result_exists() -> None:
    """Those of results that no claim uses, too."""
    commands = [made.command for _, section in SECTIONS for made in section]
    assert {command: missing(command) for command in commands if missing(command)} == {}


@pytest.mark.promise("docs.claims")
def test_the_document_has_every_promise_and_guarantee() -> None:
    """Each promise with its tests, each line of durability with its own."""
    text = (ROOT / DOCUMENT).read_text("utf-8")
    for name in promises():
        row = next(line for line in text.splitlines() if f"`{name}`" in line)
        assert all(f"`{test}`" in row for test in cited_tests()[name]), name
    durability = next(page for page in pages(ROOT) if page.name == "docs/durability.md")
    lines = guarantees(durability)
    assert len(lines) == len(re.findall(r"^- \*\*D\d+\*\*", durability.text, re.MULTILINE)) > 30
    for number, _, tests in lines:
        assert tests
        assert f"\n| {number} | `{tests[0]}`" in text


REPORT = """<testsuites><testsuite>
<testcase classname="tests.docs.test_claims" name="test_every_command_of_a_result_exists"/>
<testcase classname="tests.test_readme" name="test_the_demonstration_runs"><skipped/></testcase>
<testcase classname="tests.test_wheel" name="test_the_installed_wheel_works_on_every_surface"/>
<testcase classname="tests.docs.test_pages" name="test_the_page_runs[docs/a.md]"/>
<testcase classname="tests.docs.test_pages" name="test_the_page_runs[docs/b.md]">
<failure>no</failure></testcase>
<testcase classname="tests.docs.test_pages" name="test_every_page_is_reached"><skipped/></testcase>
<testcase classname="tests.docs.test_pages" name="test_links_lead_somewhere[a]">
<skipped/></testcase>
</testsuite></testsuites>"""


@pytest.mark.promise("docs.claims")
def test_the_last_run_says_which_promises_held(copy: Path) -> None:
    """One failure fails a promise, skipped tests alone are no proof, and a failure is a problem."""
    (copy / "tests").mkdir()
    report = copy / "report.xml"
    report.write_text(REPORT, "utf-8")
    run = record_run(report, copy)
    assert last_run(copy) == run
    held = run.promises
    assert held["docs.run"] == "failed"
    assert held["docs.links"] == "skipped"
    assert held["cli.documented"] == "passed"
    assert held["docs.claims"] == "passed"
    assert held["threads.durable"] == "not run"
    assert set(held) == set(promises())
    assert problems(copy, REGISTRY) == [
        f"promise docs.run: a test of it failed in the run of {run.date}"
    ]
    assert f"{run.date}, commit {run.commit}" in document(copy, REGISTRY)


@pytest.mark.promise("docs.claims")
def test_no_rule_passes_over_what_no_page_says() -> None:
    """What is left out of the check is on some page: a rule that is not needed goes."""
    read = pages(ROOT)
    unused = [
        rule.pattern
        for rule in (*NO_CLAIM, *REGISTRY.no_claims)
        if not any(
            re.search(rule.pattern, page.prose) for page in read if page.name.startswith(rule.pages)
        )
    ]
    assert unused == []


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
    change(tmp_path / "bench" / "results" / "first.md", "1.5", "0.5")
    assert stale(tmp_path, "first")
    assert not stale(tmp_path, "second")


@pytest.mark.promise("results.dated")
def test_every_result_has_a_record() -> None:
    """Each file of results has its date, commit and machine, and is what the run wrote."""
    known = measurements(ROOT)
    names = {file.stem for file in (ROOT / "bench" / "results").glob("*.md")}
    assert set(known) == names
    assert [name for name in names if stale(ROOT, name)] == []
    assert all(row.date and row.commit and row.machine for row in known.values())


def test_code_comments_and_links_state_nothing() -> None:
    """Only prose is looked at, at the places of the page."""
    text = "a `3 ms` b\n\n```console\nx 4 ms\n```\n\n<!-- 5 ms --> [six](7.md) 8 ms\n"
    prose = blanked(text)
    assert re.findall(r"\d", prose) == ["8"]
    assert prose.index("8") == text.index("8")
