"""`python -m corpus.checking [FOLDER] [--notes]`: what is wrong with the stories; 1 on errors.

An error breaks a rule that every story keeps. A note is something to look at: a piece of an answer
that also stands elsewhere, a rare word that a question shares with its answer.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from corpus.reading import (
    FOLDER,
    LANES,
    SPLIT,
    CorpusError,
    Key,
    Kind,
    Lane,
    Question,
    Split,
    Story,
    read_split,
    read_story,
)
from corpus.words import counted, rare_shared, words

__all__ = ["Finding", "check_corpus", "check_story", "main", "sharing"]

TURNS: Final = (30, 80)
FACTS: Final = (18, 40)
QUESTIONS: Final = (17, 25)
ABSENT_OF_STORY: Final = 5
ABSENT_OF_ALL: Final = 600
REPLACED: Final = 4
BOTH: Final = 3
SHARING: Final = 0.2
"""The largest share of a story's questions that share a rare word with their answer."""
_WANTED: Final[tuple[Kind, ...]] = (
    "plain",
    "current",
    "past",
    "stable",
    "implicit",
    "negation",
    "both",
    "timeword",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong (`error`) or to look at: in which story or file, and where there."""

    story: str
    place: str
    problem: str
    error: bool = True

    def __str__(self) -> str:
        kind = "error" if self.error else "note"
        return f"{kind}: {self.story}{': ' if self.place else ''}{self.place}: {self.problem}"


def main(argv: Sequence[str] | None = None) -> int:
    """Check every file and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m corpus.checking", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--split", type=Path, default=SPLIT)
    parser.add_argument("--notes", action="store_true", help="print notes too")
    given = parser.parse_args(argv)
    stories, findings = _read(given.folder)
    split: Split | None = None
    try:
        split = read_split(given.split)
    except CorpusError as error:
        findings.append(_unread(error))
    findings += check_corpus(stories, split)
    for finding in findings:
        if finding.error or given.notes:
            print(finding)
    errors = sum(finding.error for finding in findings)
    print(f"{len(stories)} stories: {errors} errors, {len(findings) - errors} notes")
    return int(errors > 0)


def _read(folder: Path) -> tuple[list[Story], list[Finding]]:
    stories: list[Story] = []
    findings: list[Finding] = []
    for file in sorted(folder.glob("*/*.json")):
        try:
            stories.append(read_story(file))
        except CorpusError as error:
            findings.append(_unread(error))
    return stories, findings


def _unread(error: CorpusError) -> Finding:
    return Finding(str(error.file), error.place, error.problem)


def check_corpus(stories: Sequence[Story], split: Split | None = None) -> list[Finding]:
    """Every story by itself, and what holds among them."""
    findings = [finding for story in stories for finding in check_story(story)]
    findings += _twice(stories)
    findings += _shared_speakers(stories)
    absent = [q for story in stories for q in story.questions if q.kind == "absent"]
    if len(absent) < ABSENT_OF_ALL:
        findings.append(_of_all(f"{len(absent)} absent questions ({ABSENT_OF_ALL} at least)"))
    if 2 * sum(question.near for question in absent) < len(absent):
        findings.append(_of_all("fewer than half of the absent questions are near misses"))
    if split is not None:
        findings += _split(stories, split)
    return findings


def _of_all(problem: str) -> Finding:
    return Finding("all stories", "", problem)


def _twice(stories: Iterable[Story]) -> Iterator[Finding]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for story in stories:
        places[story.id].append(story.author)
    for name, authors in places.items():
        if len(authors) > 1:
            yield Finding(name, "id", f"a story of {' and of '.join(authors)}")


def _shared_speakers(stories: Iterable[Story]) -> Iterator[Finding]:
    """Each story has people of its own: a name must not tell what another story taught."""
    places: defaultdict[str, set[str]] = defaultdict(set)
    for story in stories:
        for turn in story.turns().values():
            if turn.speaker:
                places[turn.speaker.casefold()].add(story.id)
    for name, where in sorted(places.items()):
        if len(where) > 1:
            first, *others = sorted(where)
            yield Finding(first, "speakers", f"{name} also speaks in {', '.join(others)}")


def _split(stories: Iterable[Story], split: Split) -> Iterator[Finding]:
    authors = {story.author for story in stories}
    for author in sorted(set(split.train) & set(split.held_out)):
        yield Finding("split", author, "both trained on and held out")
    for author in sorted(authors ^ {*split.train, *split.held_out}):
        yield Finding("split", author, "without stories" if author not in authors else "not in it")


def check_story(story: Story) -> Iterator[Finding]:
    """What can be said of one story without the others."""
    for problem in (*_counts(story), *_order(story)):
        yield Finding(story.id, "", problem)
    missing = [kind for kind in _WANTED if all(q.kind != kind for q in story.questions)]
    for kind in missing:
        yield Finding(story.id, "", f"no question of kind {kind}", error=False)
    for question in story.questions:
        yield from _question(story, question)
    yield from _relations(story)
    yield from _sharing(story)


def _counts(story: Story) -> Iterator[str]:
    absent = [question for question in story.questions if question.kind == "absent"]
    replaced = Counter(one.lane for one in story.relations if one.kind == "replaces")
    for what, many, (least, most) in (
        ("turns", len(story.turns()), TURNS),
        ("facts", len(story.facts), FACTS),
        ("questions", len(story.questions), QUESTIONS),
    ):
        if not least <= many <= most:
            yield f"{many} {what} ({least} to {most})"
    if len(absent) < ABSENT_OF_STORY:
        yield f"{len(absent)} absent questions ({ABSENT_OF_STORY} at least)"
    if 2 * sum(question.near for question in absent) < len(absent):
        yield "fewer than half of the absent questions are near misses"
    for lane in LANES:
        if replaced[lane] < REPLACED:
            yield f"fewer than {REPLACED} changes among {lane}"
    if sum(one.kind == "both" for one in story.relations) < BOTH:
        yield f"fewer than {BOTH} pairs that both hold"


def _order(story: Story) -> Iterator[str]:
    sessions = [session.when for session in story.sessions]
    facts = [fact.when for fact in story.facts]
    if sessions != sorted(sessions):
        yield "sessions out of order"
    if facts != sorted(facts):
        yield "facts out of order"
    if len({session.id for session in story.sessions}) < len(sessions):
        yield "two sessions with one id"


def _question(story: Story, question: Question) -> Iterator[Finding]:
    def finding(problem: str, *, error: bool = True) -> Finding:
        return Finding(story.id, f"question {question.number}", problem, error)

    last = max(*(s.when for s in story.sessions), *(fact.when for fact in story.facts))
    if question.now <= last:
        yield finding("asked before the story is over")
    if question.kind == "absent":
        if question.evidence or question.facts or question.answer:
            yield finding("absent, but with an answer")
        return
    if question.near:
        yield finding("a near miss that is not absent")
    if not question.answer:
        yield finding("no piece of an answer")
    for lane in LANES:
        if not question.answers(lane):
            yield finding(f"no evidence among {lane}")
    for problem, error in _pieces(story, question):
        yield finding(problem, error=error)


def _pieces(story: Story, question: Question) -> Iterator[tuple[str, bool]]:
    """Whether the pieces stand in the evidence and nowhere else."""
    everything: list[str] = []
    evident: list[str] = []
    for lane in LANES:
        for key, text in story.texts(lane).items():
            everything.append(text)
            right = _holds(text, question.answer)
            if key in question.answers(lane):
                evident.append(text)
                if not right:
                    yield f"no piece of the answer in {_named(lane, key)}", True
            elif right:
                yield f"a piece of the answer also in {_named(lane, key)}", False
    for piece in question.answer:
        if not any(_holds(text, (piece,)) for text in evident):
            yield f"not in the evidence: {piece}", True
    for piece in question.stale:
        if not any(_holds(text, (piece,)) for text in everything):
            yield f"stale, but nowhere: {piece}", True


def _holds(text: str, pieces: Iterable[str]) -> bool:
    return any(piece.casefold() in text.casefold() for piece in pieces)


def _named(lane: Lane, key: Key) -> str:
    return f"turn {key[0]}/{key[1]}" if lane == "turns" else f"fact {key[1]}"


def _relations(story: Story) -> Iterator[Finding]:
    seen: set[tuple[Lane, Key, Key]] = set()
    for at, one in enumerate(story.relations):
        place = f"changes[{at}]"
        places = list(story.texts(one.lane))
        if places.index(one.older) >= places.index(one.newer):
            yield Finding(story.id, place, "the older statement does not come first")
        if (one.lane, one.older, one.newer) in seen:
            yield Finding(story.id, place, "a pair that is related twice")
        seen.add((one.lane, one.older, one.newer))


def _sharing(story: Story) -> Iterator[Finding]:
    shared = sharing(story)
    for number, found in shared.items():
        if found:
            problem = f"shares {', '.join(sorted(found))} with its answer"
            yield Finding(story.id, f"question {number}", problem, error=False)
    many = sum(map(bool, shared.values()))
    if many > SHARING * len(shared):
        problem = f"{many} of {len(shared)} questions share a rare word with their answer"
        yield Finding(story.id, "", problem)


def sharing(story: Story) -> dict[int, set[str]]:
    """The rare words that each answered question shares with its evidence, names left out."""
    turns = story.turns()
    counts = counted(turn.text for turn in turns.values())
    names: set[str] = set().union(*(words(turn.speaker or "") for turn in turns.values()))
    told = {lane: story.texts(lane) for lane in LANES}
    found: dict[int, set[str]] = {}
    for question in story.questions:
        if question.kind != "absent":
            texts = [told[lane][key] for lane in LANES for key in question.answers(lane)]
            found[question.number] = rare_shared(question.text, texts, counts, len(turns)) - names
    return found


if __name__ == "__main__":
    sys.exit(main())
