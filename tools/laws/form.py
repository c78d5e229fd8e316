"""Law 6: capitals, Unicode's forms, punctuation, spaces, order of telling and other namespaces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tools.laws.asking import Hits
from tools.laws.homes import Statement
from tools.laws.trial import SAME_SCORE, Trial, law, swaps

TOLD: Final = 0.02
"""How near scores must lie that another form of what is told may swap them: vectors are those of
the words as they were stored."""

UNLIKE: Final = 0.05
"""A hit below this score may come and go."""

_WORDS_TOO: Final = """
    april august autumn bill bob chase chance clay dale dawn dean don drew eve faith frank gene
    grace grant guy heather holly hope hunter iris ivy jack jade jean jet joy june lance lane major
    mark mason may miles nick olive page pat penny pierce ray reed rich rob robin rose ruby sandy
    sky sterling sue summer violet wade ward will polish march swan turkey china us it
"""
_ALSO_NAMES: Final = frozenset(_WORDS_TOO.split())


def _other_capitals(text: str) -> str:
    """Without its capitals; as it is where a word may be both name and word."""
    words = set(re.findall(r"\w+", text.casefold()))
    return text if words & _ALSO_NAMES else text.lower()


def _other_unicode(text: str) -> str:
    """In the other normal form."""
    decomposed = unicodedata.normalize("NFD", text)
    return decomposed if decomposed != text else unicodedata.normalize("NFC", text)


def _other_punctuation(text: str) -> str:
    """Without what ends it."""
    return text.rstrip(" .?!。？")


def _other_spaces(text: str) -> str:
    """With more space between words and around them."""
    return "  " + re.sub(" ", "  ", text) + " \n"


CHANGES: Final[dict[str, Callable[[str], str]]] = {
    "capitals": _other_capitals,
    "unicode": _other_unicode,
    "punctuation": _other_punctuation,
    "spaces": _other_spaces,
}


@law("the form of a question changes nothing", *(f"form-question-{name}" for name in CHANGES))
def check_question_form(trial: Trial) -> None:
    """Ask the same in another form."""
    for question in trial.questions():
        before = trial.hits(question.text)
        for name, change in CHANGES.items():
            other = change(question.text)
            if other != question.text:
                _compare(trial, f"form-question-{name}", other, before, trial.told.ask(other))


def _register_told_form(name: str, change: Callable[[str], str]) -> None:
    law_name = f"form-told-{name}"

    @law(f"the form of what is told changes nothing: {name}", law_name)
    def check_told_form(trial: Trial) -> None:
        """Tell the same in another form."""
        changed = tuple(replace(s, text=change(s.text)) for s in trial.home.statements)
        if changed == trial.home.statements or not all(s.text.strip() for s in changed):
            return
        told = trial.asker.tell(trial.lane, changed)
        for question in trial.questions():
            before, after = trial.hits(question.text), told.ask(question.text)
            _compare(trial, law_name, question.text, before, after, TOLD)


for _name, _change in CHANGES.items():
    _register_told_form(_name, _change)


@law("the order of telling unrelated things changes nothing", "form-order", kinds=("plain",))
def check_order_of_telling(trial: Trial) -> None:
    """Write the same in another order; in conversations the times are dealt anew, too."""
    places = list(range(len(trial.home.statements)))
    trial.random.shuffle(places)
    times = [trial.home.statements[place].at for place in places]
    shuffled: list[Statement] = [trial.home.statements[place] for place in places]
    if trial.lane == "turns":
        shuffled = [replace(s, at=at) for s, at in zip(shuffled, sorted(times), strict=True)]
    told = trial.asker.tell(trial.lane, shuffled)
    for question in trial.questions():
        before = trial.hits(question.text)
        after = tuple(_renamed(told.ask(question.text), places))
        _compare(trial, "form-order", question.text, before, after)


def _renamed(hits: Hits, places: list[int]) -> Hits:
    """The hits by the places that their statements have in the home."""
    return tuple(
        replace(
            hit,
            place=places[hit.place],
            older_than=None if hit.older_than is None else places[hit.older_than],
            previous=frozenset(places[one] for one in hit.previous),
            again=frozenset(places[one] for one in hit.again),
        )
        for hit in hits
    )


@law("other namespaces change nothing", "form-namespaces")
def check_namespaces(trial: Trial) -> None:
    """Fill another namespace of the home, and ask again."""
    questions = trial.questions()
    before = {question.text: trial.hits(question.text) for question in questions}
    trial.asker.tell(trial.lane, trial.home.spare[:20])
    for question in questions:
        after = trial.told.ask(question.text)
        _compare(trial, "form-namespaces", question.text, before[question.text], after)


def _compare(
    trial: Trial, name: str, question: str, before: Hits, after: Hits, within: float = SAME_SCORE
) -> None:
    reason = ""
    marks = {hit.place: hit.mark for hit in before}
    moved = swaps(before, after, within)
    if any(before[0].place in pair for pair in moved):
        reason = f"the first hit was ({before[0].place}), now ({after[0].place})"
    elif lost := _lost(before, after) | _lost(after, before):
        reason = f"hits come and go: {sorted(lost)}"
    elif changed := [hit.place for hit in after if hit.mark != marks.get(hit.place, hit.mark)]:
        reason = f"other marks on {changed}"
    elif moved:
        reason = f"another order of {moved[:5]}"
    trial.judge(name, question, reason, ("before", before), ("after", after))


def _lost(before: Hits, after: Hits) -> set[int]:
    """What is lacking in `after`, but for what has hardly anything in common with the question."""
    there = {hit.place for hit in after}
    return {hit.place for hit in before if hit.score > UNLIKE and hit.place not in there}
