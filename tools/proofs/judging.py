"""The verdict on each new or changed test of a change.

A test proves something if it fails on the source before the change and passes with the change;
both are run in the same folder and environment, with the tests of the change.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path, PurePosixPath

from tools.proofs.changes import Change, Excuse, Repository, texts
from tools.proofs.definitions import Comparison, Subject, compare, is_test_file
from tools.proofs.running import CONFIGURATION, Environment, Limits, Results

_TIME = "no time was left"


class Verdict(Enum):
    """What became of a test on the source before the change."""

    PROVES = "fails without the change"
    NOTHING = "passes without the change"
    EXCUSED = "passes without the change, excused"
    OPEN = "not judged"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and its reason."""

    name: str
    verdict: Verdict
    why: str


@dataclass(slots=True)
class Report:
    """What is known of a change."""

    change: Change
    note: str = ""
    """Why nothing was judged."""
    judgements: list[Judgement] = field(default_factory=list)
    moved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a repository has its tests and its source."""

    tests: str
    source: str


def judge(
    repository: Repository,
    change: Change,
    excuses: Sequence[Excuse],
    layout: Layout,
    limits: Limits,
) -> Report:
    """Judge the new and changed tests of a change."""
    report = Report(change)
    pairs = repository.files(change)
    in_tests = [pair for pair in pairs if _is_below(pair[1] or pair[0], layout.tests)]
    comparison = _comparison(repository, change, in_tests)
    report.moved = comparison.moved
    report.judgements += [
        Judgement(path, Verdict.OPEN, "it is no Python") for path in comparison.unread
    ]
    if not comparison.subjects:
        report.note = "no new or changed tests"
    elif len(in_tests) == len(pairs):
        report.note = f"tests only, not judged: {count(len(comparison.subjects), 'test')}"
    elif limits.left <= 0:
        report.judgements += [
            Judgement(subject.name, Verdict.OPEN, _TIME) for subject in comparison.subjects
        ]
    else:
        own = repository.commits(change.base, change.tip)
        for judgement in _run(repository, change, comparison.subjects, layout, limits):
            report.judgements.append(_excuse(judgement, excuses, own))
    return report


def _comparison(
    repository: Repository, change: Change, pairs: Sequence[tuple[str | None, str | None]]
) -> Comparison:
    paths = {new: old for old, new in pairs if new is not None and is_test_file(new)}
    # Of a file that is gone, tests may have moved into another.
    removed = {old: old for old, new in pairs if old is not None and new is None}
    files = texts(repository, change, paths)
    files |= {
        old: (repository.text(change.base, old), None) for old in removed if is_test_file(old)
    }
    return compare(files)


def _run(
    repository: Repository,
    change: Change,
    subjects: Sequence[Subject],
    layout: Layout,
    limits: Limits,
) -> Iterator[Judgement]:
    """Run the tests on the source before the change; those that fail there, with the change."""
    tests = sorted({test for subject in subjects for test in subject.tests})
    with tempfile.TemporaryDirectory(prefix="proofs-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary).resolve()
        with repository.tree(folder / "tree", change.base) as tree:
            environment = Environment.make(folder / "env", tree, layout.tests, layout.source)
            repository.restore(tree, change.tip, layout.tests)
            _configure(repository, change.tip, tree)
            before = environment.run(tests, limits.part(0.6))
            failing = [test for test in tests if _fails(test, before)]
            after = Results()
            if failing and limits.left > 0:
                repository.restore(tree, change.tip, ".")
                after = environment.run(failing, limits)
            elif failing:
                after.out_of_time = True
    for subject in subjects:
        yield _verdict(subject, before, after)


def _configure(repository: Repository, commit: str, tree: Path) -> None:
    """Markers and options of pytest belong to the tests: give the tree those of the change."""
    if "pyproject.toml" not in repository.git("ls-tree", "--name-only", commit).split():
        return
    content = repository.text(commit, "pyproject.toml") or ""
    if "[tool.pytest.ini_options]" in content:
        (tree / CONFIGURATION).write_text(content, encoding="utf-8")


def _verdict(subject: Subject, before: Results, after: Results) -> Judgement:
    """The verdict on a subject: of its tests, one that proves something is enough."""
    judgements = [_verdict_on_test(test, before, after) for test in subject.tests]
    for verdict in (Verdict.PROVES, Verdict.OPEN, Verdict.NOTHING):
        for judgement in judgements:
            if judgement.verdict is verdict:
                why = judgement.why
                if subject.tests != (subject.name,):
                    why = f"used by {count(len(subject.tests), 'unchanged test')}; {why}"
                return Judgement(subject.name, verdict, why)
    raise AssertionError(subject)


def _verdict_on_test(test: str, before: Results, after: Results) -> Judgement:
    cases = before.of(test)
    failed = {name: outcome for name, outcome in cases.items() if outcome.state == "failed"}
    if failed:
        why = next(iter(failed.values())).why
        if len(cases) > 1:
            why = f"{len(failed)} of {len(cases)} cases; {why}"
        return _confirmed(test, set(failed), why, after)
    missing, error = before.blocked(test) or (False, "")
    if missing and not cases:
        return _confirmed(test, set(), error, after)
    states = {outcome.state: outcome.why for outcome in cases.values()}
    if "slow" in states:
        return Judgement(test, Verdict.OPEN, states["slow"])
    # With parameters, more cases may have been to come.
    if "passed" in states and (test in cases or not before.out_of_time):
        why = f"all {len(cases)} cases" if len(cases) > 1 else ""
        return Judgement(test, Verdict.NOTHING, why)
    return Judgement(test, Verdict.OPEN, _why_open(test, states, before))


def _why_open(test: str, states: dict[str, str], before: Results) -> str:
    if before.out_of_time:
        return _TIME
    if "skipped" in states:
        return f"skipped there: {states['skipped']}"
    _, error = before.blocked(test) or (False, "")
    if error:
        return f"its file cannot be imported there: {error}"
    return "pytest did not find it"


def _confirmed(test: str, failed: set[str], why: str, after: Results) -> Judgement:
    """What fails without the change proves something if it passes with it."""
    cases = after.of(test)
    passed = {name for name, outcome in cases.items() if outcome.state == "passed"}
    # Without the change there may be other cases, or none.
    shared = failed & cases.keys() or cases.keys()
    if passed & shared:
        return Judgement(test, Verdict.PROVES, why)
    if after.out_of_time:
        return Judgement(test, Verdict.OPEN, f"{_TIME} to run it with the change too")
    _, error = after.blocked(test) or (False, "pytest did not find it")
    reasons = [outcome.why for outcome in cases.values() if outcome.state != "passed"]
    return Judgement(test, Verdict.OPEN, f"fails with the change too: {(reasons or [error])[0]}")


def _fails(test: str, results: Results) -> bool:
    """Whether a test fails, or cannot run for want of a name of ours."""
    states = {outcome.state for outcome in results.of(test).values()}
    missing, _ = results.blocked(test) or (False, "")
    return "failed" in states or (missing and not states)


def _excuse(judgement: Judgement, excuses: Sequence[Excuse], own: frozenset[str]) -> Judgement:
    if judgement.verdict is Verdict.NOTHING:
        for excuse in excuses:
            if excuse.covers(judgement.name.replace(": ", "::"), own):
                return Judgement(judgement.name, Verdict.EXCUSED, excuse.why)
    return judgement


def _is_below(path: str | None, folder: str) -> bool:
    return path is not None and PurePosixPath(path).is_relative_to(folder)


def count(number: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
