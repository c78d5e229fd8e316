"""Scores what a search found for the questions: `python -m corpus.scoring RESULTS.jsonl`.

In: the stories, and for each question of each story and lane the ranked statements, best first, and
what was marked as outdated. Out: shares, each with an interval of a bootstrap that draws whole
stories. A line of the file is one question in one lane:

    {"story": "tide-mill", "question": 3, "lane": "turns",
     "ranking": [[["s5", 0]], [["s1", 6]]], "marks": [[["s3", 3], ["s5", 0]]]}

A place of the ranking is a list of ids, mostly of one: a hit may stand for its repetitions. An id
is that of the story files: [session, place] of a turn, the place of a fact. A mark says that its
first statement was replaced by its second. No ranking at all is silence.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from corpus.reading import (
    FOLDER,
    LANES,
    CorpusError,
    Key,
    Lane,
    Question,
    Story,
    as_key,
    read_stories,
)

__all__ = [
    "GROUPS",
    "MEASURES",
    "Figure",
    "Group",
    "Measure",
    "Result",
    "Row",
    "WrongResult",
    "measured",
    "read_results",
    "score",
    "table",
]

Group = Literal["author", "lang", "kind", "lane"]
GROUPS: Final[tuple[Group, ...]] = get_args(Group)

Measure = Literal[
    "first",
    "in 3",
    "in 10",
    "recall@10",
    "right",
    "silence",
    "silence near",
    "wrong silence",
    "marks right",
    "marks found",
    "both marked",
    "same marked",
]
MEASURES: Final[tuple[Measure, ...]] = get_args(Measure)
"""Of the questions with an answer: `first`, `in 3`, `in 10`, whether evidence stands first or among
the first three or ten; `recall@10`, the share of the evidence among the first ten; `wrong silence`,
whether nothing came. `right`: of those that have a stale statement too, whether evidence stands
among the first ten with nothing stale before it. Of the absent ones: `silence`, whether nothing
came, and `silence near` that of near misses. Of the marks: `marks right`, the share that says what
a `replaces` relation says; of the pairs of each relation that stand among the first ten:
`marks found`, `both marked` and `same marked`, the share that was marked as outdated and newer (the
last two wrongly)."""

TEN: Final = 10
DRAWS: Final = 1000
CERTAINTY: Final = 0.95
SEED: Final = 20_261

Place: TypeAlias = tuple[str, int, Lane]
"""A question: its story, its number there, and the lane it is asked in."""

_Sums: TypeAlias = defaultdict[tuple[Measure, bool], float]
"""What the questions of one story gained by a measure (True), and the most that they could."""


class WrongResult(CorpusError):
    """A result of another form, of a question that does not exist, twice, or not at all."""


@dataclass(frozen=True, slots=True)
class Result:
    """What was found for one question. `marks` are pairs of an older and a newer statement."""

    story: str
    question: int
    lane: Lane
    ranking: tuple[frozenset[Key], ...]
    marks: tuple[tuple[Key, Key], ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A share of `of`, with the bounds of its interval."""

    value: float
    low: float
    high: float
    of: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one group, which names the value of each thing it is grouped by."""

    group: tuple[str, ...]
    questions: int
    figures: Mapping[Measure, Figure]


def score(
    stories: Collection[Story], results: Iterable[Result], by: Sequence[Group] = ("lane",)
) -> list[Row]:
    """The figures of every group, in the order in which its first question comes.

    Raises `WrongResult` where a question of a lane that was asked has no result.
    """
    by_id = {story.id: story for story in stories}
    sums: dict[tuple[str, ...], dict[str, _Sums]] = {}
    asked: Counter[tuple[str, ...]] = Counter()
    for result in _complete(by_id, list(results)):
        story = by_id[result.story]
        question = story.questions[result.question]
        values: Mapping[Group, str] = {
            "author": story.author,
            "lang": story.lang,
            "kind": question.kind,
            "lane": result.lane,
        }
        group = tuple(values[name] for name in by)
        asked[group] += 1
        own = sums.setdefault(group, {}).setdefault(story.id, defaultdict(float))
        for measure, got, most in measured(story, question, result):
            own[measure, True] += got
            own[measure, False] += most
    return [Row(group, asked[group], _figures(list(sums[group].values()))) for group in sums]


def _complete(stories: Mapping[str, Story], results: Sequence[Result]) -> Iterator[Result]:
    seen: dict[Place, Result] = {}
    for result in results:
        place = (result.story, result.question, result.lane)
        if result.story not in stories:
            raise WrongResult("results", result.story, "there is no such story")
        if not 0 <= result.question < len(stories[result.story].questions):
            raise WrongResult("results", _named(place), "there is no such question")
        if place in seen:
            raise WrongResult("results", _named(place), "a second result")
        seen[place] = result
    for lane in (lane for lane in LANES if any(result.lane == lane for result in results)):
        for story in stories.values():
            for question in story.questions:
                place = (story.id, question.number, lane)
                if place not in seen:
                    raise WrongResult("results", _named(place), "no result")
                yield seen[place]


def _named(place: Place) -> str:
    return f"{place[0]}, question {place[1]}, {place[2]}"


def measured(
    story: Story, question: Question, result: Result
) -> Iterator[tuple[Measure, float, float]]:
    """What one result gains by each measure that applies, and the most that it could."""
    if question.kind == "absent":
        silent = float(not result.ranking)
        yield "silence", silent, 1.0
        if question.near:
            yield "silence near", silent, 1.0
    else:
        yield from _answered(story, question, result)
    yield from _marked(story, result)


def _answered(
    story: Story, question: Question, result: Result
) -> Iterator[tuple[Measure, float, float]]:
    wanted = frozenset(question.answers(result.lane))
    hits = result.ranking[:TEN]
    right = [bool(wanted & hit) for hit in hits]
    yield "first", float(any(right[:1])), 1.0
    yield "in 3", float(any(right[:3])), 1.0
    yield "in 10", float(any(right)), 1.0
    reached = wanted.intersection(frozenset[Key]().union(*hits))
    yield "recall@10", len(reached) / len(wanted) if wanted else 0.0, 1.0
    yield "wrong silence", float(not result.ranking), 1.0
    stale = _stale(story, question, result.lane)
    if stale:
        # A hit that stands for both is right: what it shows holds the answer.
        outdated = [bool(stale & hit) and not good for hit, good in zip(hits, right, strict=True)]
        before = outdated[: right.index(True)] if any(right) else [True]
        yield "right", float(not any(before)), 1.0


def _stale(story: Story, question: Question, lane: Lane) -> frozenset[Key]:
    pieces = [piece.casefold() for piece in question.stale]
    return frozenset(
        key
        for key, text in story.texts(lane).items()
        if key not in question.answers(lane) and any(one in text.casefold() for one in pieces)
    )


def _marked(story: Story, result: Result) -> Iterator[tuple[Measure, float, float]]:
    true = _replaced(story, result.lane)
    for mark in result.marks:
        yield "marks right", float(mark in true), 1.0
    shown = frozenset[Key]().union(*result.ranking[:TEN])
    marked = frozenset(result.marks)
    names: Mapping[str, Measure] = {"both": "both marked", "same": "same marked"}
    for pair in true:
        if shown.issuperset(pair):
            yield "marks found", float(pair in marked), 1.0
    for one in story.relations:
        pair = (one.older, one.newer)
        if one.lane == result.lane and one.kind in names and shown.issuperset(pair):
            yield names[one.kind], float(bool(marked & {pair, pair[::-1]})), 1.0


def _replaced(story: Story, lane: Lane) -> frozenset[tuple[Key, Key]]:
    """Who replaces whom, also by way of others, but for a value that came back."""
    likewise = {(one.older, one.newer) for one in story.relations if one.kind != "replaces"}
    later: defaultdict[Key, set[Key]] = defaultdict(set)
    for one in story.relations:
        if one.lane == lane and one.kind == "replaces":
            later[one.older].add(one.newer)
    pairs: set[tuple[Key, Key]] = set()
    for older in list(later):
        waiting = list(later[older])
        while waiting:
            newer = waiting.pop()
            if (older, newer) not in pairs:
                pairs.add((older, newer))
                waiting += later.get(newer, ())
    return frozenset(pairs - likewise)


def _figures(stories: Sequence[_Sums]) -> dict[Measure, Figure]:
    """Efron and Tibshirani, An Introduction to the Bootstrap (1993), section 13.3: percentiles.

    A share is the quotient of two sums over the drawn stories.
    """
    drawing = random.Random(SEED)
    draws = [drawing.choices(range(len(stories)), k=len(stories)) for _ in range(DRAWS)]
    found: dict[Measure, Figure] = {}
    for measure in MEASURES:
        got = [story.get((measure, True), 0.0) for story in stories]
        most = [story.get((measure, False), 0.0) for story in stories]
        if not sum(most):
            continue
        shares = sorted(
            sum(got[at] for at in draw) / below
            for draw in draws
            if (below := sum(most[at] for at in draw))
        )
        edge = int(len(shares) * (1.0 - CERTAINTY) / 2.0)
        low, high = shares[edge], shares[-1 - edge]
        found[measure] = Figure(sum(got) / sum(most), low, high, sum(most))
    return found


def table(rows: Sequence[Row], names: Sequence[str], measures: Sequence[Measure] = MEASURES) -> str:
    """Markdown: a line a row, with how many the first of the measures is a share of.

    What no question of a group tells of is left empty.
    """
    head = [*names, "of", *measures]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in rows:
        cells = [str(row.figures[one]) if one in row.figures else "" for one in measures]
        many = next((row.figures[one].of for one in measures if one in row.figures), 0.0)
        lines.append(f"| {' | '.join([*row.group, f'{many:,.0f}', *cells])} |")
    return "\n".join(lines)


def read_results(file: Path) -> list[Result]:
    """The results of a file, a JSON object a line. Raises `WrongResult` with the line."""
    found: list[Result] = []
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if line.strip():
            try:
                found.append(_result(json.loads(line)))
            except json.JSONDecodeError as error:
                raise WrongResult(file, f"line {number}", error.msg) from error
            except (KeyError, TypeError, ValueError) as error:
                raise WrongResult(file, f"line {number}", f"not a result: {error}") from error
    return found


def _result(line: Any) -> Result:
    lane = next((lane for lane in LANES if lane == line["lane"]), None)
    if lane is None:
        raise ValueError(f"{line['lane']} is no lane")
    story, question = line["story"], line["question"]
    if not isinstance(story, str) or not isinstance(question, int):
        raise TypeError("story and question are a text and a number")
    ranking = tuple(frozenset(_key(one, lane) for one in place) for place in line["ranking"])
    marks = tuple((_key(older, lane), _key(newer, lane)) for older, newer in line.get("marks", ()))
    return Result(story, question, lane, ranking, marks)


def _key(value: object, lane: Lane) -> Key:
    key = as_key(value, lane)
    if key is None:
        raise ValueError(f"{value} is no id of {lane}")
    return key


def main(argv: Sequence[str] | None = None) -> int:
    """Score the results of a file and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m corpus.scoring",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("--stories", type=Path, default=FOLDER, help="the folder of authors")
    parser.add_argument("--authors", nargs="+", help="those that were asked; all by default")
    parser.add_argument("--by", nargs="+", choices=GROUPS, default=["lane"], metavar="GROUP")
    given = parser.parse_args(argv)
    try:
        stories = read_stories(given.stories, given.authors)
        rows = score(stories, read_results(given.results), given.by)
    except CorpusError as error:
        print(error, file=sys.stderr)
        return 1
    print(table(rows, given.by))
    return 0


if __name__ == "__main__":
    sys.exit(main())
