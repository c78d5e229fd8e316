"""Homes out of facts and templates: `make_home(number, seed)` gives the same one every time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Final

from tools.laws.evidence import CUES, words_of
from tools.laws.facts import Fact, read_facts
from tools.laws.homes import BEGIN, NOW, Act, Home, Kind, Question, Size, Statement
from tools.laws.metamorphic import metamorphic_home
from tools.laws.templates import CHANGING, TOGETHER, Changing, Together

SPEAKERS: Final = ("Mara", "Jonas")
"""Two who both say "my": what the one says replaces nothing of the other."""

OF_TIME: Final = 4
"""Statements of a plain home at least that hold a word of time."""

_SPAN: Final = (NOW - BEGIN).days - 2


def plain_home(number: int, random: Random, size: Size) -> Home:
    """Unrelated facts in a random order, and every question about them."""
    facts = random.sample(read_facts(), size.facts)
    # Words of time in what is told, too, or nothing of it could match those of a question.
    of_time = [fact for fact in read_facts() if words_of(fact.text) & CUES and fact not in facts]
    facts[:OF_TIME] = random.sample(of_time, OF_TIME)
    statements = tuple(
        Statement(fact.text, moment(random), group=f"fact-{n}") for n, fact in enumerate(facts)
    )
    questions = tuple(
        Question(text, f"fact-{n}", temporal=bool(words_of(text) & CUES))
        for n, fact in enumerate(facts)
        for text in fact.questions
    )
    return Home(
        f"plain-{number}", "plain", statements, questions, spare=spares(random, facts, size.spare)
    )


def changing_home(number: int, random: Random, size: Size) -> Home:
    """Values that change, are restated, considered, asked about; others that both hold."""
    draft: list[tuple[Statement, int]] = []
    questions: list[Question] = []
    for template in random.sample(CHANGING, random.choice((1, 2, 2, 3))):
        if template.label.startswith("own.") and random.random() < 0.5:
            for speaker in SPEAKERS:
                draft += _spoken(_story(template, random), speaker)
            # Who asks is not known: only the marks can be judged.
            questions += [Question(text, "", "unknown") for text in template.present]
            continue
        draft += _story(template, random)
        questions += _questions(template)
    for pair in random.sample(TOGETHER, random.choice((0, 1, 2))):
        draft += [(one, -1) for one in _both(pair, random)]
        questions += [Question(text) for text in pair.questions]
    facts = random.sample(read_facts(), random.randint(size.facts // 3, size.facts * 2 // 3))
    draft += [(Statement(f.text, moment(random), f"fact-{n}"), -1) for n, f in enumerate(facts)]
    draft.sort(key=lambda item: item[0].at)
    return Home(
        f"changes-{number}",
        "changes",
        _linked(draft),
        tuple(questions),
        spare=spares(random, facts, size.spare),
    )


def moment(random: Random) -> datetime:
    """A time between the first and the last."""
    return BEGIN + timedelta(days=random.randrange(_SPAN), minutes=random.randrange(600))


def spares(random: Random, used: Sequence[Fact], most: int) -> tuple[Statement, ...]:
    """Unrelated statements that are told earlier than everything else, and only when added."""
    texts = {fact.text for fact in used}
    others = [fact.text for fact in read_facts() if fact.text not in texts]
    chosen = random.sample(others, min(most, len(others)))
    early = BEGIN - timedelta(days=900)
    return tuple(
        Statement(text, early + timedelta(days=n), f"spare-{n}", act="foreign")
        for n, text in enumerate(chosen)
    )


def make_home(number: int, seed: int, size: Size = Size()) -> Home:  # noqa: B008 - frozen
    """Home `number` of a run."""
    random, kind = Random(f"{seed}:{number}"), kind_of(number)
    if kind == "plain":
        return plain_home(number, random, size)
    if kind == "changes":
        return changing_home(number, random, size)
    return metamorphic_home(number, random, size)


def kind_of(number: int) -> Kind:
    """A quarter of the homes is plain, a quarter of changes, half out of other stories."""
    kinds: tuple[Kind, ...] = ("plain", "metamorphic", "changes", "metamorphic")
    return kinds[number % 4]


def _story(template: Changing, random: Random) -> list[tuple[Statement, int]]:
    """One value told, changed one to three times, and what else is said of it, in order of time."""
    values = random.sample(template.values, random.choice((2, 2, 3, 4)))
    days = sorted(random.sample(range(3, _SPAN), 3 * len(values) + 2))
    times = [BEGIN + timedelta(days=day, minutes=random.randrange(600)) for day in days]
    group = template.label
    story: list[tuple[Statement, int]] = []

    def tell(ways: Sequence[str], value: str, act: Act, stage: int) -> None:
        text = random.choice(ways).format(v=value)
        text = text[0].upper() + text[1:]
        story.append((Statement(text, times[len(story)], group, value, act), stage))

    spare_values = [value for value in template.values if value not in values]
    for stage, value in enumerate(values):
        if stage and random.random() < 0.25:
            tell(template.negated, values[stage - 1], "negates", stage)
        tell(template.changed if stage else template.first, value, "tells", stage)
        if random.random() < 0.4:
            tell(template.again, value, "tells", stage)
    other: tuple[tuple[Sequence[str], str, Act], ...] = (
        (template.considered, random.choice(spare_values or values[:1]), "considers"),
        (template.asked, "", "asks"),
        (template.complained, "", "complains"),
    )
    for ways, value, act in other:
        if len(story) < len(times) and random.random() < 0.4:
            tell(ways, value, act, -1)
    return story


def _spoken(story: Sequence[tuple[Statement, int]], speaker: str) -> list[tuple[Statement, int]]:
    """The same, said by somebody of himself."""
    return [
        (replace(statement, group=f"{statement.group} of {speaker}", speaker=speaker), stage)
        for statement, stage in story
    ]


def _questions(template: Changing) -> list[Question]:
    return [
        *(Question(text, template.label) for text in template.present),
        *(Question(text, template.label, temporal=True) for text in template.temporal),
        *(Question(text, template.label, "past", temporal=True) for text in template.past),
    ]


def _both(pair: Together, random: Random) -> list[Statement]:
    times = sorted(moment(random) for _ in pair.statements)
    # A path has one value: only those of several subjects can have one each.
    by_path = len(set(pair.groups)) == len(pair.groups) and random.random() < 0.5
    return [
        Statement(text, at, group, text, path=group if by_path else None)
        for text, at, group in zip(pair.statements, times, pair.groups, strict=True)
    ]


def _linked(draft: Sequence[tuple[Statement, int]]) -> tuple[Statement, ...]:
    """Statements that know which later ones took their place."""
    linked = []
    for statement, stage in draft:
        later = frozenset(
            place
            for place, (other, of) in enumerate(draft)
            if stage >= 0 and other.group == statement.group and of > stage
        )
        linked.append(replace(statement, holds=not later, replaced_by=later))
    return tuple(linked)
