"""Laws 1, 2, 3 and 7: what is unrelated, what is better, groups, and shorter lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tools.laws.asking import ALL, Hit, Hits, Told
from tools.laws.evidence import Evidence, dominates, reports_a_question
from tools.laws.homes import Question, Statement
from tools.laws.trial import Trial, law, order_of, swaps

from anaphora import RecallMode

SWAPPED: Final = 0.02
"""How near scores must lie that unrelated statements may swap."""

SHARES: Final[dict[RecallMode, str]] = {"hybrid": "", "vector": "meaning", "words": "words"}
"""What a mode orders by."""

LONG: Final = 30
"""Characters of a turn that tells something."""

PREFIXES: Final = (1, 2, 3, 5, 8)


@law(
    "items dominated by the first hit change neither it nor any mark; others swap within .02",
    "irrelevance-first",
    "irrelevance-marks",
    "irrelevance-order",
)
def check_irrelevance(trial: Trial) -> None:
    """Add spare statements that the first hit dominates, the closest ones and others."""
    for question in trial.questions():
        before = trial.hits(question.text)
        if not before or not trial.home.spare:
            continue
        added = _dominated(trial, question.text, before[0].place)
        if not added:
            continue
        after = trial.asker.tell(trial.lane, (*trial.home.statements, *added)).ask(question.text)
        _compare(trial, question.text, before, after, added)


def _compare(
    trial: Trial, question: str, before: Hits, after: Hits, added: list[Statement]
) -> None:
    orders = (("before", before), (f"with {len(added)} unrelated ones", after))
    size = len(trial.home.statements)
    first = ""
    if not after or after[0].place != before[0].place:
        first = f"the first hit was ({before[0].place}), now ({after[0].place if after else None})"
    trial.judge("irrelevance-first", question, first, *orders, added=added)
    marks = {hit.place: hit.mark for hit in before}
    changed = [
        hit.place
        for hit in after
        if hit.mark != (marks.get(hit.place) if hit.place < size else (True, None, frozenset()))
    ]
    reason = f"other marks on {changed}" if changed else ""
    trial.judge("irrelevance-marks", question, reason, *orders, added=added)
    moved = swaps(before, after, SWAPPED)
    reason = f"swapped with scores more than {SWAPPED} apart: {moved[:5]}" if moved else ""
    trial.judge("irrelevance-order", question, reason, *orders, added=added)


def _dominated(trial: Trial, question: str, first: int) -> list[Statement]:
    """Spare statements that the first hit dominates: half the closest ones, half by chance."""
    told, spare = trial.told, trial.home.spare
    best = trial.asker.evidence(told, question, first)
    variant = Told(told.memory, told.lane, spare, told.read)
    closeness = []
    for place, statement in enumerate(spare):
        known = trial.asker.evidence(variant, question, place)
        if dominates(best, known, timed=True):
            closeness.append((known.cosine, statement))
    closeness.sort(key=lambda item: -item[0])
    wanted = trial.random.choice((4, 12, 30, 80))
    closest = [statement for _, statement in closeness[: wanted // 2]]
    rest = [statement for _, statement in closeness[wanted // 2 :]]
    return closest + trial.random.sample(rest, min(wanted - len(closest), len(rest)))


@law("for fixed scores, candidates of other groups change no order, score or mark", "pure")
def check_pure(trial: Trial) -> None:
    """Ask the same index twice, with and without the spare statements by a filter."""
    told, size = trial.mixed, len(trial.home.statements)
    if len(told.statements) == size:
        return
    for question in trial.questions():
        if trial.lane == "memories":
            alone = told.ask_filtered(question.text, "own")
            among = told.ask_filtered(question.text, "any")
        else:
            alone, among = told.ask(question.text, own=True), told.ask(question.text)
        rest = tuple(hit for hit in among if hit.place < size)
        raw = {hit.place: hit.raw for hit in alone}
        if any(raw.get(hit.place, hit.raw) != hit.raw for hit in rest):
            # The scores themselves depend on the filter: nothing is fixed here.
            trial.tally.tried["pure (scores not fixed)"] += 1
            continue
        reason = _differing(alone, rest)
        orders = (("alone", alone), ("among others", among))
        trial.judge("pure", question.text, reason, *orders)


def _differing(alone: Hits, rest: Hits) -> str:
    if order_of(alone) != order_of(rest):
        at = next(
            (n for n, (a, b) in enumerate(zip(alone, rest, strict=False)) if a.place != b.place), 0
        )
        return f"another order from rank {at + 1} on"
    for one, other in zip(alone, rest, strict=True):
        if one.mark != other.mark:
            return f"another mark on ({one.place})"
        if abs(one.score - other.score) > 1e-6:
            return f"another score of ({one.place}): {one.score:.4f}, {other.score:.4f}"
    return ""


@law(
    "no group stands above one whose best dominates its own best, in any mode",
    "dominance-first",
    "dominance-hybrid",
    "dominance-vector",
    "dominance-words",
    "timewords-match",
)
def check_dominance(trial: Trial) -> None:
    """Look for a statement above one of another group that dominates its whole group."""
    told = trial.told if trial.home.labelled else trial.mixed
    for question in trial.questions(3):
        evidence = [
            trial.asker.evidence(told, question.text, n) for n in range(len(told.statements))
        ]
        for mode in SHARES:
            hits = told.ask(question.text, mode=mode)
            wrong = list(_better_below(trial, told, hits, evidence, mode))
            plain = next((reason for reason, by_cue in wrong if not by_cue), "")
            orders = ((mode, hits),)
            trial.judge(f"dominance-{mode}", question.text, plain, *orders)
            if mode == "hybrid":
                first = f"({hits[0].place}) stands above" if hits else ""
                worst = next((reason for reason, _ in wrong if reason.startswith(first)), "")
                trial.judge("dominance-first", question.text, worst, *orders)
            if question.temporal:
                of_time = next((reason for reason, by_cue in wrong if by_cue), "")
                trial.judge("timewords-match", question.text, of_time, *orders)


def _better_below(
    trial: Trial, told: Told, hits: Hits, evidence: Sequence[Evidence], mode: RecallMode
) -> Iterator[tuple[str, bool]]:
    """Why hits stand too high, and whether a word of time may be the reason."""
    statements, members, shown = told.statements, trial.home.groups(), set[str]()
    read = {hit.place: hit.answers for hit in hits if hit.answers is not None}
    for rank, above in enumerate(hits):
        group = _label(statements, above.place)
        if group in shown or not _comparable(trial, statements[above.place]):
            continue
        shown.add(group)
        rivals = members.get(group, [above.place]) if trial.home.labelled else [above.place]
        for below in hits[rank + 1 :]:
            if _label(statements, below.place) in shown or not _stands(trial, told, below):
                continue
            better = evidence[below.place]
            timed, by = trial.lane == "memories", SHARES[mode]
            if below.place in read and any(
                read.get(place, 0.0) > read[below.place] for place in rivals
            ):
                # A reader's judgement is evidence too.
                continue
            if all(dominates(better, evidence[place], timed=timed, by=by) for place in rivals):
                high = evidence[above.place]
                reason = _why_better(above.place, high, below.place, better)
                yield reason, bool(high.cues - better.cues)
                break


def _comparable(trial: Trial, above: Statement) -> bool:
    """Whether it is of another group than all others: in a story only what is foreign is known."""
    return trial.home.labelled or above.act == "foreign"


def _stands(trial: Trial, told: Told, below: Hit) -> bool:
    """Whether a hit must stand before what it dominates: a statement that holds."""
    statement = told.statements[below.place]
    if not below.current or not statement.holds:
        return False
    if trial.home.labelled:
        return statement.act in {"tells", "negates"}
    # No label says what of a story is a statement: a short turn, a question, or what tells that
    # one was asked, may be none.
    asks = reports_a_question(statement.text)
    return statement.act != "foreign" and not asks and len(statement.text) > LONG


def _label(statements: Sequence[Statement], place: int) -> str:
    return statements[place].group or f"#{place}"


def _why_better(above: int, high: Evidence, below: int, low: Evidence) -> str:
    return (
        f"({above}) stands above ({below}), which dominates it: cosines {high.cosine:.3f} and"
        f" {low.cosine:.3f}, words {sorted(high.loose)} and {sorted(low.strict)},"
        f" words of time {sorted(high.cues)} and {sorted(low.cues)}"
    )


@law(
    "values that hold, and at most one that they replaced, stand before the next group",
    "groups-holding-first",
    "groups-together",
    "groups-one-replaced",
    "groups-descending",
    kinds=("changes",),
)
def check_groups(trial: Trial) -> None:
    """Read the order of the labelled groups for a question of the present."""
    groups = trial.home.groups()
    for question in trial.questions(4):
        if not question.plain:
            continue
        hits = trial.hits(question.text)
        orders = (("order", hits),)
        told = [hit for hit in hits if _tells(trial, hit.place)]
        own = [hit for hit in told if hit.place in groups[question.group]]
        if not own:
            continue
        holds = trial.home.statements
        reason = "" if holds[own[0].place].holds else f"({own[0].place}) no longer holds"
        trial.judge("groups-holding-first", question.text, reason, *orders)
        _check_block(trial, question, told)
        best: dict[str, float] = {}
        for hit in told:
            group = _label(trial.home.statements, hit.place)
            best[group] = max(best.get(group, 0.0), hit.score)
        values = list(best.values())
        rising = [n for n in range(1, len(values)) if values[n] > values[n - 1] + 1e-6]
        reason = f"the best score of group {rising[0] + 1} is higher than before" if rising else ""
        trial.judge("groups-descending", question.text, reason, *orders)


def _tells(trial: Trial, place: int) -> bool:
    return trial.home.statements[place].act in {"tells", "negates"}


def _check_block(trial: Trial, question: Question, told: Sequence[Hit]) -> None:
    """What of the asked group stands between its first hit and the next group."""
    statements, orders = trial.home.statements, (("order", tuple(told)),)
    own = [_label(trial.home.statements, hit.place) == question.group for hit in told]
    begin = own.index(True)
    end = next((at for at in range(begin, len(told)) if not own[at]), len(told))
    block = [statements[hit.place] for hit in told[begin:end]]
    later = [statements[hit.place] for hit, of in zip(told[end:], own[end:], strict=True) if of]
    there = {statement.value for statement in block if statement.holds}
    lacking = {s.value for s in later if s.holds and s.act == "tells"} - there
    reason = f"behind another group stands what holds: {sorted(lacking)}" if lacking else ""
    trial.judge("groups-together", question.text, reason, *orders)
    replaced = [statement.text for statement in block if not statement.holds]
    reason = f"{len(replaced)} replaced ones before the next group" if len(replaced) > 1 else ""
    trial.judge("groups-one-replaced", question.text, reason, *orders)


@law("the first k hits are the same for every larger top_k", "prefix")
def check_prefix(trial: Trial) -> None:
    """Ask for few, and for all."""
    for question in trial.questions():
        whole = trial.hits(question.text)
        for count in PREFIXES:
            few = trial.told.ask(question.text, top_k=count)
            expected = [(hit.place, hit.mark, hit.score) for hit in whole[:count]]
            reason = ""
            if [(hit.place, hit.mark, hit.score) for hit in few] != expected:
                reason = f"top_k={count} is no beginning of top_k={ALL}"
            orders = ((f"top_k={count}", few), (f"top_k={ALL}", whole))
            trial.judge("prefix", question.text, reason, *orders)
