"""What hands wrote for training (`corpus.tasks`), as pools: questions over stories, exchanges,
values one after the other; and groups of statements.

In: the corpus. Out: pools whose questions know what misleads. Those over stories come for the
authors that are asked for; the rest is of no story and of no author.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from corpus.reading import read_stories
from corpus.tasks import Task, exchange_tasks, past_tasks, question_tasks
from corpus.written import read_chains, read_exchanges, read_groups, read_wanted
from tools.models.asked import Asked, Pool
from tools.models.passages import Turn, form_passages, meaning_of, speakers_of

ASKED = "asked"
GROUPS = "groups"


def read_asked(corpus: Path, authors: Collection[str], form: str) -> Iterator[Pool]:
    """The questions over these authors' stories, a pool for each language that is asked in."""
    if not (corpus / "questions").is_dir():
        return
    for author in sorted(authors):
        for story in read_stories(corpus / "stories", authors=(author,)):
            turns = [Turn(turn.speaker, turn.text) for turn in story.turns().values()]
            wanted = read_wanted([story], corpus / "questions")
            for task in question_tasks([story], wanted):
                told = turns if task.lane == "turns" else ()
                yield _pool(ASKED, task, f"corpus/{author}/{story.id}", author, told, form)


def read_replies(folder: Path) -> Iterator[Pool]:
    """Exchanges: a short reply is told with its question."""
    return _pools(exchange_tasks(read_exchanges(folder)))


def read_past(folder: Path) -> Iterator[Pool]:
    """Chains of values. A vector cannot tell the former from the present one: no value of a chain
    counts against another."""
    return _pools(past_tasks(read_chains(folder)), told_apart=False)


def read_statements(folder: Path) -> Iterator[Pool]:
    """Groups, a pool a group: an earlier statement finds what is of its matter.

    Statements find statements by it, which is how memories are linked and changes found.
    """
    for number, group in enumerate(read_groups(folder)):
        name = f"{GROUPS}/{group.hand}/{number}"
        labelled = [(place, later.label) for place, later in enumerate(group.newer)]
        asked = Asked(
            name,
            group.older.text,
            frozenset(place for place, label in labelled if label in {"replaces", "same"}),
            frozenset(place for place, label in labelled if label == "holds"),
            misleading=tuple(place for place, label in labelled if label == "other"),
        )
        texts = [later.said.text for later in group.newer]
        yield Pool(GROUPS, group.lane, name, texts, [asked], "", group.language)


def _pools(tasks: Iterable[Task], *, told_apart: bool = True) -> Iterator[Pool]:
    for task in tasks:
        yield _pool(task.set, task, f"{task.set}/{task.name}", told_apart=told_apart)


def _pool(
    source: str,
    task: Task,
    group: str,
    author: str = "",
    turns: Sequence[Turn] = (),
    form: str = "",
    *,
    told_apart: bool = True,
) -> Pool:
    """A task as a pool; of `turns`, where they are named, the passages are made in this `form`."""
    speakers = speakers_of(turns)
    asked = [
        Asked(
            f"{source}/{task.name}/{number}",
            one.text,
            one.right,
            one.neutral if told_apart else one.neutral | frozenset(one.misleading),
            meant=meaning_of(one.text, speakers) if speakers else "",
            misleading=one.misleading if told_apart else (),
        )
        for number, one in enumerate(task.asked)
        if one.right
    ]
    passages = form_passages(turns, form) if turns else list(task.statements)
    return Pool(source, task.lane, group, passages, asked, author, task.languages)
