"""Report the new and changed tests that pass without the change they came with.

    python -m tools.proofs                      the last 5 commits, each against its first parent
    python -m tools.proofs --last 15 --seconds 600
    python -m tools.proofs --range main..HEAD   a branch as one change, from where it left main

The tests of a change, with their helpers and pytest's configuration, run on the source before it;
a test that passes there proves nothing about the change. A commit message excuses tests that
rightly pass, such as those of a refactoring, with a reason:

    Characterises: tests/rank/test_order.py::test_ties: the order was right and must stay so

TESTS is an id, a file or a pattern (`*`). A later commit excuses a test by its full id. Changes to
nothing but tests are not judged. The exit code is 1 where a test proves nothing, 2 where nothing
could be asked. Helpers in other files than the test's own are not compared.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.proofs.changes import Change, Misuse, Repository
from tools.proofs.judging import Layout, Report, Verdict, count, judge
from tools.proofs.running import Limits

_SIGNS = {Verdict.PROVES: "+", Verdict.NOTHING: "!", Verdict.EXCUSED: "~", Verdict.OPEN: "?"}
_TOTALS = {
    Verdict.PROVES: "fail without the change",
    Verdict.NOTHING: "prove nothing",
    Verdict.EXCUSED: "excused",
    Verdict.OPEN: "not judged",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Judge changes and print what is known of each."""
    arguments = _arguments(argv)
    limits = Limits(time.monotonic() + arguments.seconds, arguments.test_seconds)
    layout = Layout(arguments.tests, arguments.source)
    totals: Counter[Verdict] = Counter()
    try:
        repository = Repository(arguments.repository)
        changes = _changes(repository, arguments)
        for change in changes:
            excuses = repository.excuses(change.base, changes[0].tip)
            report = judge(repository, change, excuses, layout, limits)
            print("\n".join(_lines(report, verbose=arguments.verbose)), flush=True)
            totals.update(judgement.verdict for judgement in report.judgements)
    except Misuse as error:
        print(f"proofs: {error}", file=sys.stderr)
        return 2
    counts = ", ".join(f"{totals[verdict]} {words}" for verdict, words in _TOTALS.items())
    print(f"new and changed tests of {count(len(changes), 'change')}: {counts}")
    if totals[Verdict.NOTHING]:
        print(
            "A test that passes without the change proves nothing about it. Let it fail there,"
            " or say why it need not:\nCharacterises: TESTS: reason, in the commit message"
            " (python -m tools.proofs --help)."
        )
    return int(totals[Verdict.NOTHING] > 0)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.proofs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--last", type=_positive, default=5, metavar="N", help="so many commits")
    which.add_argument("--range", metavar="A..B", help="from where B left A to B, as one change")
    parser.add_argument("--repository", type=Path, default=Path.cwd(), help="the checkout")
    parser.add_argument("--tests", default="tests", help="the folder of tests")
    parser.add_argument("--source", default="src", help="the folder that is imported from")
    parser.add_argument("--seconds", type=float, default=60, help="for everything")
    parser.add_argument("--test-seconds", type=float, default=20, help="for each test")
    parser.add_argument("--verbose", action="store_true", help="name the tests that moved too")
    return parser.parse_args(argv)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _changes(repository: Repository, arguments: argparse.Namespace) -> list[Change]:
    if arguments.range:
        return [repository.range(arguments.range)]
    changes = repository.last(arguments.last)
    if not changes:
        raise Misuse("there is no commit with a parent")
    return changes


def _lines(report: Report, *, verbose: bool) -> Iterator[str]:
    yield report.change.title
    if report.note:
        yield f"    {report.note}"
    for judgement in sorted(
        report.judgements, key=lambda judgement: list(Verdict).index(judgement.verdict)
    ):
        why = f": {judgement.why[:160]}" if judgement.why else ""
        yield f"  {_SIGNS[judgement.verdict]} {judgement.name}"
        yield f"      {judgement.verdict.value}{why}"
    if report.moved:
        yield f"    {count(len(report.moved), 'test')} moved or got another name"
        yield from (f"      {name}" for name in report.moved if verbose)


if __name__ == "__main__":
    sys.exit(main())
