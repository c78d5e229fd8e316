"""`python -m corpus.counting`: how much there is, by author, language and kind, into README.md."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from corpus.checking import sharing
from corpus.reading import KINDS, Story, read_stories

__all__ = ["BEGIN", "END", "PAGE", "main", "tables"]

PAGE: Final = Path(__file__).with_name("README.md")
BEGIN: Final = "<!-- made by python -m corpus.counting -->\n"
END: Final = "<!-- end -->\n"
_HEAD: Final = (
    "stories",
    "turns",
    "facts",
    "questions",
    "never said",
    "of these near",
    "replaces",
    "both",
    "same",
    "sharing a rare word",
)


def tables(stories: Sequence[Story]) -> str:
    """A table by author and one by language, each with the whole, and one of kinds."""
    kinds = Counter(question.kind for story in stories for question in story.questions)
    return "\n\n".join(
        (
            _by("author", stories, lambda story: story.author),
            _by("language", stories, lambda story: story.lang),
            _table(("kind", "questions"), [(kind, f"{kinds[kind]:,}") for kind in KINDS]),
        )
    )


def _by(name: str, stories: Sequence[Story], of: Callable[[Story], str]) -> str:
    groups = {one: [story for story in stories if of(story) == one] for one in map(of, stories)}
    rows = [(group, *_counts(groups[group])) for group in sorted(groups)]
    return _table((name, *_HEAD), [*rows, ("all", *_counts(stories))])


def _counts(stories: Sequence[Story]) -> tuple[str, ...]:
    questions = [question for story in stories for question in story.questions]
    absent = [question for question in questions if question.kind == "absent"]
    relations = Counter(one.kind for story in stories for one in story.relations)
    shared = [bool(found) for story in stories for found in sharing(story).values()]
    counts = (
        len(stories),
        sum(len(story.turns()) for story in stories),
        sum(len(story.facts) for story in stories),
        len(questions),
        len(absent),
        sum(question.near for question in absent),
        relations["replaces"],
        relations["both"],
        relations["same"],
    )
    return (*(f"{count:,}" for count in counts), f"{sum(shared) / len(shared):.2f}")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = "|".join(["---", *["---:"] * (len(head) - 1)])
    lines = (f"| {' | '.join(row)} |" for row in (head, *rows))
    first, *others = lines
    return "\n".join((first, f"|{rule}|", *others))


def main() -> int:
    """Write the tables into the page."""
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}{tables(read_stories())}\n{END}{after}", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
