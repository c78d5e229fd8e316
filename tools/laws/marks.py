"""Laws 4 and 5: marks have a reason, and words of time count where the past is asked for."""

from __future__ import annotations

from tools.laws.asking import Hits
from tools.laws.trial import Trial, law


@law(
    "marks need a later statement of another value of the same subject and attribute",
    "marks-reason",
)
def check_reasons(trial: Trial) -> None:
    """Every mark joins a replaced statement with one that the labels name; spares have none."""
    if not trial.home.labelled:
        _check_foreign(trial)
        return
    for question in trial.questions(4):
        hits = trial.hits(question.text)
        wrong = [pair for pair in _pairs(hits) if not _allowed(trial, *pair)]
        reason = ", ".join(f"({new}) does not replace ({old})" for old, new in wrong[:4])
        trial.judge("marks-reason", question.text, reason, ("order", hits))


def _pairs(hits: Hits) -> list[tuple[int, int]]:
    """The (older, newer) places that marks join."""
    pairs = {(hit.place, hit.older_than) for hit in hits if hit.older_than is not None}
    pairs |= {(old, hit.place) for hit in hits for old in hit.previous}
    return sorted(pairs)


def _allowed(trial: Trial, old: int, new: int) -> bool:
    older, newer = trial.home.statements[old], trial.home.statements[new]
    # That something holds no longer is itself outdated by what holds instead.
    instead = older.act == "negates" and newer.act == "tells" and newer.at > older.at
    return new in older.replaced_by or (instead and older.group == newer.group)


def _check_foreign(trial: Trial) -> None:
    """Sentences of other sets are about nothing of a story: no mark joins the two."""
    told, size = trial.mixed, len(trial.home.statements)
    for question in trial.questions(4):
        hits = told.ask(question.text)
        wrong = [pair for pair in _pairs(hits) if max(pair) >= size]
        reason = ", ".join(f"({new}) does not replace ({old})" for old, new in wrong[:4])
        trial.judge("marks-reason", question.text, reason, ("order", hits))


@law("what was replaced says so, by a change or a negation", "marks-complete", kinds=("changes",))
def check_complete(trial: Trial) -> None:
    """Where a replaced value and what took its place are both hits, the first is marked."""
    for question in trial.questions(4):
        if not question.plain:
            continue
        hits = trial.hits(question.text)
        places = {hit.place for hit in hits}
        unmarked = [
            hit.place
            for hit in hits
            if trial.home.statements[hit.place].group == question.group
            and trial.home.statements[hit.place].replaced_by & places
            and hit.older_than is None
        ]
        reason = f"{unmarked} were replaced and have no mark" if unmarked else ""
        trial.judge("marks-complete", question.text, reason, ("order", hits))


@law("a marked hit never precedes what replaced it, unless the past is asked for", "marks-order")
def check_marked_order(trial: Trial) -> None:
    """Compare the ranks of a marked hit and of what it is older than."""
    for question in trial.questions(4):
        if question.tense != "present" or question.temporal:
            continue
        hits = trial.hits(question.text)
        rank = {hit.place: at for at, hit in enumerate(hits)}
        early = [
            (old, new)
            for old, new in _pairs(hits)
            if old in rank and new in rank and rank[old] < rank[new]
        ]
        reason = f"marked before what replaced them: {early[:4]}" if early else ""
        trial.judge("marks-order", question.text, reason, ("order", hits))


@law(
    "words of time count where the sentence asks for the past, and only there",
    "timewords-past",
    "timewords-present",
    kinds=("changes",),
)
def check_time_words(trial: Trial) -> None:
    """A question for the past gets what held before; a mere word of time changes nothing."""
    statements = trial.home.statements
    asked = [q for q in trial.home.questions if q.group and q.temporal]
    for question in trial.random.sample(asked, min(4, len(asked))):
        hits = trial.hits(question.text)
        told = [
            hit.place
            for hit in hits
            if statements[hit.place].group == question.group
            and statements[hit.place].act in {"tells", "negates"}
        ]
        if not told:
            continue
        holds = statements[told[0]].holds
        if question.tense == "past":
            reason = f"({told[0]}) holds now, and the past was asked for" if holds else ""
            trial.judge("timewords-past", question.text, reason, ("order", hits))
        else:
            reason = "" if holds else f"({told[0]}) no longer holds"
            trial.judge("timewords-present", question.text, reason, ("order", hits))
