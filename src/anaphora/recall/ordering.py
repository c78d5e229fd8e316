"""What holds now first, in both lanes: repetitions become one candidate, and the order changes.

In: candidates of one question, best first, and what links them. Out: the same, those that say the
same folded into one, what holds now before what it replaced, with what was added to or taken from
each score. What replaces one of them is among them: it is fetched by its link, however far from the
question it lies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import chain, islice
from typing import Final, Protocol, TypeAlias

from anaphora.calls.moments import from_epoch
from anaphora.rank.holding import (
    COMING,
    FoundStatement,
    Verdicts,
    answer_loss,
    find_standing,
    put_coming_first,
)
from anaphora.rank.pairs import REPEATED, PairVerdict
from anaphora.rank.silence import Lane, scarcity
from anaphora.rank.statements import QuestionCues, read_cues
from anaphora.recall.answers import Likelihood, without_tail
from anaphora.recall.candidates import Candidate, Placed
from anaphora.values.fitted import fitted

BLOCK: Final = 18
"""Candidates that are ordered together: what is linked with one of them is fetched for it."""

_NUMBERS: Final = fitted("standing")

COMPARABLE: Final[float] = _NUMBERS["COMPARABLE"]
"""The share of the best score from which on a candidate answers the same as the best one."""

BEHIND: Final[float] = _NUMBERS["BEHIND"]
"""The share of its score at which a replaced statement stands, but for the best of those that one
statement replaces: the values that hold come before others, and name what they replaced."""

NOTHING: Final = PairVerdict(0.0, 0.0, 0.0)

Spans: TypeAlias = Sequence[tuple[float, float]]


class Successions(Protocol):
    """What links the candidates of a question with each other, and with others in its reach."""

    def link(
        self, block: Sequence[Candidate], known: Mapping[int, Candidate]
    ) -> tuple[Sequence[Candidate], Verdicts]:
        """Those of `block` and what replaces or is replaced by one of them, `known` ones left out;
        and by their indexes, (older, newer), what the newer one makes of the older."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """Candidates in their order, and the probability that any of them answers the question.

    None where that is not known.
    """

    candidates: Iterator[Placed]
    confidence: float | None

    def without_tail(self, floor: float) -> Iterator[Placed]:
        """The candidates without those that hardly answer, where anything does with `floor`."""
        if not floor or self.confidence is None or self.confidence < floor:
            return self.candidates
        return without_tail(self.candidates)


def order_candidates(
    candidates: Iterable[Candidate],
    question: str,
    successions: Successions,
    spans: Spans = (),
    *,
    statements: int = 0,
    count: int | None = None,
    repetitions: bool = False,
    calibrated: bool = True,
    lane: Lane = "turns",
    subject: str | None = None,
) -> Ordered:
    """`candidates`, best first, in the order of what holds now, each with its probability.

    They are ordered block by block, as they are asked for. With `repetitions` what says the same is
    not folded into one. `calibrated`: whether the embedder's cosines tell if anything answers.
    `subject` is the question without the words that name `spans`, `statements` how many were
    searched, `count` how many `candidates` there are (None: not known).
    """
    stream = iter(candidates)
    head = list(islice(stream, BLOCK))
    first_candidates = head if repetitions else _fold(head, {})
    likelihood = Likelihood.of(
        first_candidates,
        question,
        question if subject is None else subject,
        lane,
        tuple(spans),
        few=scarcity(len(first_candidates) if count is None else count),
        statements=statements,
        calibrated=calibrated,
    )
    order = _Order(read_cues(question), spans, successions, not repetitions, likelihood)
    return Ordered(
        order.placed(chain(head, stream)), None if likelihood is None else likelihood.answered
    )


@dataclass(slots=True)
class _Order:
    """The order of one question's candidates, made block by block."""

    _cues: QuestionCues
    _spans: Spans
    _successions: Successions
    _folds: bool
    _likelihood: Likelihood | None
    _linked: dict[int, Candidate] = field(default_factory=dict)
    _candidates: dict[int, Candidate] = field(default_factory=dict)
    _first_of: dict[int, int] = field(default_factory=dict)
    _leaders: dict[int, Sequence[int]] = field(default_factory=dict)
    _marks: dict[int, tuple[int, float]] = field(default_factory=dict)
    _replacing: dict[int, set[int]] = field(default_factory=dict)
    _heap: list[tuple[float, int, int, bool]] = field(default_factory=list)
    _pushed: set[int] = field(default_factory=set)
    _pushes: int = 0
    _emitted: set[int] = field(default_factory=set)
    _behind: set[int] = field(default_factory=set)
    _showing: set[int] = field(default_factory=set)

    def placed(self, stream: Iterator[Candidate]) -> Iterator[Placed]:
        """All candidates of `stream`, and what stands before one of them by its link."""
        group_score, shown_groups = math.inf, 0
        upcoming = next(stream, None)
        while True:
            # What was put back may stand behind some that are still to come.
            while upcoming is not None and (not self._heap or upcoming.score > -self._heap[0][0]):
                self._take_block([upcoming, *islice(stream, BLOCK - 1)])
                upcoming = next(stream, None)
            if not self._heap:
                return
            score, _, index, is_behind = heappop(self._heap)
            if index in self._emitted or (index in self._behind) != is_behind:
                continue
            group_score = min(group_score, -score)
            group = self._list_group(index)
            yield from self._place(group, group_score, shown_groups)
            shown_groups += bool(group)

    def _take_block(self, block: Sequence[Candidate]) -> None:
        """Bring in the next candidates, with what is linked to them."""
        # What was fetched before stands for itself only now, where it was not shown yet.
        fresh = [
            self._lower(candidate)
            for candidate in block
            if not any(
                candidate.index in indexes
                for indexes in (self._pushed, self._emitted, self._first_of)
            )
        ]
        linked, verdicts = self._successions.link(fresh, self._linked)
        # By their own times they are linked, and by the last one they stand.
        self._linked |= {candidate.index: candidate for candidate in linked}
        fetched = (self._lower(candidate) for candidate in linked[len(fresh) :])
        members = [self._with_copies(candidate) for candidate in chain(fresh, fetched)]
        for candidate in _fold(members, verdicts) if self._folds else members:
            self._candidates[candidate.index] = candidate
            self._first_of |= dict.fromkeys(candidate.copies, candidate.index)
        indexes = dict.fromkeys(
            self._first_of.get(index, index)
            for index in (
                *(candidate.index for candidate in members),
                *chain.from_iterable(verdicts),
            )
        )
        self._settle([self._candidates[index] for index in indexes], verdicts)
        for candidate in fresh:
            if candidate.index not in self._first_of:
                self._push(candidate.index, candidate.score)

    def _settle(self, members: Sequence[Candidate], verdicts: Verdicts) -> None:
        """Note how these stand to each other, beside what was known."""
        times = put_coming_first(
            [member.at for member in members], [member.coming for member in members]
        )
        found_statements = {
            member.index: FoundStatement(
                member.statement, member.score, member.meaning, at, member.restated
            )
            for member, at in zip(members, times, strict=True)
        }
        turned: dict[tuple[int, int], PairVerdict] = {}
        for pair, verdict in verdicts.items():
            old, new = (self._first_of.get(index, index) for index in pair)
            if self._candidates[new].coming and not self._candidates[old].coming:
                # What is dated in the future is replaced by what is said now.
                old, new = new, old
            if old != new and verdict.replaces > turned.get((old, new), NOTHING).replaces:
                turned[old, new] = verdict
        ranks = find_standing(found_statements, turned, self._cues, self._spans)
        for index, leaders in ranks.leaders.items():
            known_leaders = self._leaders.get(index, ())
            self._leaders[index] = tuple(dict.fromkeys((*known_leaders, *leaders)))
        for index, replacing in ranks.replacing.items():
            self._replacing.setdefault(index, set()).update(replacing)
        for index, (newer, chance) in ranks.marks.items():
            known_chance = self._marks[index][1] if index in self._marks else 0.0
            if chance > known_chance and index not in self._follow(newer):
                self._marks[index] = newer, chance
        self._marks = {
            index: (self._follow(index)[-1], chance) for index, (_, chance) in self._marks.items()
        }

    def _with_copies(self, candidate: Candidate) -> Candidate:
        """A candidate with what was folded into it when it was fetched."""
        earlier = self._candidates.get(candidate.index)
        if earlier is None:
            return candidate
        return replace(candidate, at=earlier.at, coming=earlier.coming, copies=earlier.copies)

    def _push(self, index: int, score: float, *, behind: bool = False) -> None:
        """Let one stand at this score; what was pushed of it before is passed over."""
        heappush(self._heap, (-score, self._pushes, index, behind))
        self._pushes += 1
        self._pushed.add(index)

    def _follow(self, index: int) -> list[int]:
        """One, and what replaced it, and that, to what holds."""
        path = [index]
        while path[-1] in self._marks:
            path.append(self._marks[path[-1]][0])
        return path

    def _lower(self, candidate: Candidate) -> Candidate:
        lost_score = answer_loss(candidate.statement.reading, candidate.score, self._cues)
        if not lost_score:
            return candidate
        changes = {**candidate.changes, "unanswered": -lost_score}
        return replace(candidate, score=candidate.score - lost_score, changes=changes)

    def _list_group(self, index: int) -> list[int]:
        """Those that stand together where one stands: what leads it, and itself."""
        if self._cues.past >= 2 and not self._spans:
            leaders = [
                leader for leader in self._leaders.get(index, ()) if leader not in self._emitted
            ]
            group = [*leaders, index]
            if not self._cues.first:
                group.sort(key=self._past_rank)
            return group
        group = []
        # The best one keeps its place before its leaders.
        for member in reversed(self._collect(index, set())):
            if self._has_to_wait(member, index):
                if member not in self._behind:
                    self._behind.add(member)
                    self._push(member, BEHIND * self._candidates[member].score, behind=True)
                continue
            if member in self._marks:
                self._showing |= self._list_replacing(member)
            group.append(member)
        return group[::-1]

    def _has_to_wait(self, member: int, best: int) -> bool:
        """Whether one of the group of `best` stands behind others.

        One that was replaced stands with what holds, however many tell of one thing.
        """
        if self._showing.isdisjoint(self._list_replacing(member)):
            return False
        if member == best:
            return self._cues.past < 2 and member not in self._behind
        # What held at a time that is asked for stands before what replaced it.
        return not (self._spans and self._cues.past)

    def _list_replacing(self, index: int) -> set[int]:
        """What replaced one, directly and in the end."""
        return {*self._follow(index)[1:], *self._replacing.get(index, ())}

    def _collect(self, index: int, visited: set[int]) -> list[int]:
        """What leads one, what leads that before it, and itself."""
        visited.add(index)
        group = []
        for leader in self._leaders.get(index, ()):
            if leader not in self._emitted and leader not in visited:
                # The others stand by their own scores.
                group = self._collect(leader, visited)
                break
        return [*group, index]

    def _past_rank(self, index: int) -> int:
        """What was replaced comes first where the past is asked for, then what takes it back."""
        negated = self._candidates[index].statement.reading.negated
        return 2 * (index not in self._marks) + (index in self._marks and negated)

    def _place(self, group: Sequence[int], standing: float, number: int) -> Iterator[Placed]:
        """Take those that stand together, in the group of this number.

        What stands first in a group answers as probably as its likeliest: it was put before that
        because it holds now.
        """
        members = [self._candidates[index] for index in group]
        chances: list[float | None] = [None] * len(members)
        if self._likelihood is not None and members:
            rated = [self._likelihood.probability(member, number) for member in members]
            chances = [max(rated), *rated[1:]]
        for member, chance in zip(members, chances, strict=True):
            self._emitted.update((member.index, *member.copies))
            if member.index in self._marks:
                newer, probability = self._marks[member.index]
                reason = _reason(member, probability)
                yield Placed(member, standing, newer, reason, answers=chance)
            else:
                replaced = {
                    old: sure for old, (new, sure) in self._marks.items() if new == member.index
                }
                previous = tuple(sorted(replaced, key=replaced.__getitem__, reverse=True))
                yield Placed(member, standing, previous=previous, answers=chance)


def _reason(replaced: Candidate, probability: float) -> str:
    if replaced.coming:
        return f"{COMING}: from {from_epoch(replaced.at):%Y-%m-%d}"
    return f"a later statement, probability {probability:.2f}"


def _fold(candidates: Sequence[Candidate], verdicts: Verdicts) -> list[Candidate]:
    """Those that differ, those that say the same folded into the first of them: in the same words,
    or by what is known of two by one speaker."""
    wordings = {candidate.index: candidate.wording for candidate in candidates}
    for (older, newer), verdict in verdicts.items():
        is_there = older in wordings and newer in wordings
        if is_there and verdict.repeats >= REPEATED and wordings[older][1:] == wordings[newer][1:]:
            wordings[newer] = wordings[older]
    first_by_key: dict[tuple[str, str, bool], Candidate] = {}
    repetitions: dict[tuple[str, str, bool], list[Candidate]] = {}
    for candidate in candidates:
        wording = wordings[candidate.index]
        if wording in first_by_key:
            repetitions.setdefault(wording, []).append(candidate)
        else:
            first_by_key[wording] = candidate
    folded_candidates = []
    for wording, candidate in first_by_key.items():
        if wording not in repetitions:
            folded_candidates.append(candidate)
            continue
        repeats = sorted(repetitions[wording], key=lambda repeat: repeat.at)
        at, coming = candidate.at, candidate.coming
        if not candidate.assistant:
            # What was said again holds from then on; an assistant only repeats it.
            copies = (candidate, *repeats)
            dated_members = [member for member in copies if not member.coming] or copies
            at, coming = max(member.at for member in dated_members), dated_members[0].coming
        indexes = dict.fromkeys((*candidate.copies, *(repeat.index for repeat in repeats)))
        folded_candidates.append(replace(candidate, at=at, coming=coming, copies=tuple(indexes)))
    return folded_candidates
