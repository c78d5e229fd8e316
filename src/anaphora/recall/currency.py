"""What holds now first, in both lanes: repetitions become one candidate, and the order changes.

In: candidates of one question, best first. Out: the same, those that say the same folded into one,
what holds now before what it replaced, with what was added to or taken from each score. Each one
that opens a group is judged with what the index holds about the same thing, never with whatever
stands beside it in the list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import heappop, heappush
from itertools import chain, islice
from typing import Final, TypeAlias

import numpy as np

from anaphora.calls.moments import from_epoch
from anaphora.language.folding import typed_text
from anaphora.rank.currency import (
    COMING,
    LEAST_SHARE,
    GroupJudgement,
    Statements,
    answer_loss,
    arrange_group,
    judge_group,
    put_coming_first,
)
from anaphora.rank.odds import probability_of
from anaphora.rank.replacement import PairJudge, judge_pairs
from anaphora.rank.silence import Lane
from anaphora.rank.statements import StatementReading, read_cues, read_statement
from anaphora.rank.subjects import read_keys
from anaphora.recall.likelihood import Likelihood, without_tail
from anaphora.recall.passages import FAR
from anaphora.text.recalled import strip_recalled

__all__ = ["COMPARABLE", "GROUPS", "RELATED", "Candidate", "order_hits"]

THRESHOLD: Final = 0.45
"""The probability from which on a statement stands before the one that it replaces."""

READ: Final = 18
"""Candidates among which repetitions are folded."""

RELATED: Final = 8
"""Statements that are looked up for each one that opens a group."""

COMPARABLE: Final = 0.5
"""The share of the best score from which on a candidate opens a group: what lies further below
answers something else, and stands for itself."""

BEHIND: Final = 0.1
"""The share of its score at which a replaced statement stands, but for the best one of its group:
the values that hold come before the next group, and name what they replaced."""

GROUPS: Final = 6
"""Groups that are made at most: each one asks the index."""

Spans: TypeAlias = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scored text: its index among the scores, and what its order depends on.

    `at` is when it was said, in seconds (NaN: not known); `asked_for`: by whom the question names.
    `passage` is the part of a very long text that is compared, None where that is all of it; `line`
    is what was read of that when it was stored ("": nothing).
    `copies` are the indexes of those that say the same, oldest first; `restated` is how many times
    it was said again. `group` is the score of its group, None for its own. `changes` are what was
    added to its score since its lane gave it. `older_than` is the index of what replaces it and
    `reason` why, `previous` are those of what it replaces, the surest first. `closeness` is its
    cosine to the one that it was looked up for (NaN: not known). `read` are the log-odds that it
    answers, as the reader has it (NaN: not read), `answers` is the probability of that, from all
    that is known (None: nothing is). `title` is what it is called beside its words: a path, a
    conversation's title ("": nothing); `titled` is the share (0 to 1) of the question that this
    holds. `coming`: `at` lies in the future. `timely`: it is
    of a time that the question names, or tells of it.
    """

    index: int
    text: str
    score: float
    meaning: float
    at: float
    speaker: str = ""
    assistant: bool = False
    asked_for: bool = False
    passage: str | None = None
    line: str = ""
    copies: tuple[int, ...] = ()
    restated: int = 0
    group: float | None = None
    changes: Mapping[str, float] = field(default_factory=dict)
    older_than: int | None = None
    reason: str = ""
    previous: tuple[int, ...] = ()
    closeness: float = math.nan
    read: float = math.nan
    answers: float | None = None
    title: str = ""
    titled: float = 0.0
    coming: bool = False
    timely: bool = False

    @property
    def standing(self) -> float:
        """The score by which it stands among the others: its group's."""
        return self.score if self.group is None else self.group

    @property
    def read_probability(self) -> float | None:
        """The probability that it answers, as the reader has it; None where it was not read."""
        if math.isnan(self.read):
            return None
        return probability_of(self.read)

    @property
    def reading(self) -> StatementReading:
        """What is read of its own words: without what it quotes of a recall."""
        if self.line:
            return read_statement(self.text, self.line)
        return read_statement(_compared_text(self.passage or self.text))

    @property
    def wording(self) -> tuple[str, str, bool]:
        """The same for every candidate that says the same; a very long one says the same as its
        copies."""
        if len(self.text) > FAR:
            return self.text, self.speaker, self.assistant
        return typed_text(self.text).strip(" .!?\n").casefold(), self.speaker, self.assistant


@lru_cache(maxsize=2048)
def _compared_text(text: str) -> str:
    return typed_text(strip_recalled(text)[:FAR])


Lookup: TypeAlias = Callable[[Candidate], Iterable[Candidate]]
"""What the index holds in the words of a candidate, at most `RELATED`, in any order."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """Candidates in their order, and the probability that any of them answers the question.

    None where that is not known.
    """

    candidates: Iterator[Candidate]
    confidence: float | None

    def without_tail(self, floor: float) -> Iterator[Candidate]:
        """The candidates without those that hardly answer, where anything does with `floor`."""
        if not floor or self.confidence is None or self.confidence < floor:
            return self.candidates
        return without_tail(self.candidates)


def order_hits(
    candidates: Iterable[Candidate],
    question: str,
    look_up: Lookup,
    spans: Spans = (),
    *,
    statements: int = 0,
    repetitions: bool = False,
    judge: PairJudge = judge_pairs,
    calibrated: bool = True,
    lane: Lane = "turns",
    subject: str | None = None,
) -> Ordered:
    """`candidates`, best first, in the order of what holds now, each with its probability.

    Groups are made one by one as they are asked for. With `repetitions` what says the same is not
    folded into one. `judge` says of two statements whether the newer replaces the older,
    `calibrated` whether the embedder's cosines tell if anything answers. `subject` is the question
    without the words that name `spans`, `statements` how many were searched.
    """
    stream = iter(candidates)
    head = list(islice(stream, READ))
    if not repetitions:
        head = _fold(head)
    groups = _Groups(question, tuple(spans), look_up, not repetitions, judge)
    ordered_turns = groups.ordered(chain(head, stream))
    about = question if subject is None else subject
    likelihood = Likelihood.of(
        head, statements, question, about, lane, tuple(spans), calibrated=calibrated
    )
    if likelihood is None:
        return Ordered(chain.from_iterable(ordered_turns), None)
    return Ordered(likelihood.rated(ordered_turns), likelihood.answered)


@dataclass(frozen=True, slots=True)
class _Mark:
    """The index of what replaced a statement, and why."""

    newer: int
    reason: str


@dataclass(slots=True)
class _Groups:
    """The groups of one question, each made when the one before it was taken."""

    _question: str
    _spans: tuple[tuple[float, float], ...]
    _look_up: Lookup
    _folds: bool
    _decide: PairJudge
    _heap: list[tuple[float, int, Candidate]] = field(default_factory=list)
    _taken: set[int] = field(default_factory=set)
    _behind: dict[int, Candidate] = field(default_factory=dict)
    _shown: list[tuple[frozenset[str], frozenset[str]]] = field(default_factory=list)
    _pushed: int = 0
    _made: int = 0

    def ordered(self, stream: Iterator[Candidate]) -> Iterator[list[Candidate]]:
        """All candidates of `stream`, group by group."""
        group_score, least_score = math.inf, -math.inf
        asks_past = read_cues(self._question).past >= 2
        coming = next(stream, None)
        while True:
            # One that was lowered may stand behind some that are still to come.
            while coming is not None and (not self._heap or coming.score > -self._heap[0][0]):
                self._push(self._lower(coming))
                coming = next(stream, None)
            if not self._heap:
                return
            score, _, best_candidate = heappop(self._heap)
            if (
                best_candidate.index in self._taken
                or self._behind.get(best_candidate.index, best_candidate) is not best_candidate
            ):
                continue
            if group_score == math.inf:
                least_score = COMPARABLE * best_candidate.score
            group_score = min(group_score, -score)
            stands_alone = (
                best_candidate.index in self._behind or best_candidate.score < least_score
            )
            if stands_alone or self._made == GROUPS:
                front: Sequence[Candidate] = (best_candidate,)
            else:
                front = self._make_group(best_candidate)
                self._made += 1
            group = []
            for member in front:
                self._taken.update((member.index, *member.copies))
                # Its mark goes if what replaced it is still to come, unless the past is asked for.
                if asks_past or member.older_than in self._taken:
                    group.append(replace(member, group=group_score))
                else:
                    group.append(replace(member, group=group_score, older_than=None, reason=""))
            if group:
                yield group

    def _push(self, candidate: Candidate, share: float = 1.0) -> None:
        """Let a candidate stand at a share of its score."""
        if candidate.index not in self._taken:
            heappush(self._heap, (-share * candidate.score, self._pushed, candidate))
            self._pushed += 1

    def _lower(self, candidate: Candidate) -> Candidate:
        lost_score = answer_loss(candidate.reading, candidate.score, read_cues(self._question))
        if not lost_score:
            return candidate
        changes = {**candidate.changes, "unanswered": -lost_score}
        return replace(candidate, score=candidate.score - lost_score, changes=changes)

    def _make_group(self, best: Candidate) -> Sequence[Candidate]:
        """Those that stand with `best`, itself among them."""
        related_hits = [
            hit for hit in self._look_up(best) if hit.index not in (best.index, *best.copies)
        ]
        if self._is_outdated(best, related_hits):
            return ()
        least_score = LEAST_SHARE * best.score
        hits = {hit.index: hit for hit in related_hits if hit.score >= least_score}
        # What was put behind its own group is no member of another one.
        pending = [
            self._lower(hit)
            for index, hit in hits.items()
            if index not in self._taken and index not in self._behind
        ]
        followers = sorted(pending, key=lambda hit: (-hit.score, hit.index))
        if self._folds:
            best, *followers = _fold((best, *followers))
        if not followers:
            return (best,)
        members = {member.index: member for member in (best, *followers)}
        lifted_indexes, marks = self._judge(
            best, followers, {hit.index: hit.closeness for hit in followers}
        )
        if lifted_indexes:
            # By what stands first, where it says so, else by the best: never through a third.
            leader = members[lifted_indexes[0]]
            closeness_by_index = {hit.index: hit.closeness for hit in self._look_up(leader)}
            remaining = [member for index, member in members.items() if index != leader.index]
            marks = marks | self._judge(leader, remaining, closeness_by_index)[1]
        marked_indexes = [index for index in members if index in marks]
        taking_back = [index for index in marked_indexes if members[index].reading.negated]
        front, outdated_indexes = arrange_group(
            best.index, lifted_indexes, marked_indexes, self._question, taking_back
        )
        mark_by_index = {index: _mark(member, marks) for index, member in members.items()}
        newly_outdated = [index for index in front if mark_by_index[index].older_than is not None]
        if newly_outdated and read_cues(self._question).past < 2 and self._was_shown(best):
            # One that was replaced stands before another group, however many tell of one thing.
            front = [index for index in front if index not in newly_outdated]
            outdated_indexes = [*newly_outdated, *outdated_indexes]
        for index in outdated_indexes:
            self._put_behind(mark_by_index[index])
        return [mark_by_index[index] for index in front]

    def _judge(
        self, best: Candidate, followers: Sequence[Candidate], closeness: Mapping[int, float]
    ) -> tuple[list[int], dict[int, _Mark]]:
        """The places that stand before the best, and what each of the others was replaced by."""
        members = (best, *followers)
        member_closenesses = [
            math.nan,
            *(closeness.get(follower.index, math.nan) for follower in followers),
        ]
        # A score falls with every second: what lies behind six digits decides nothing.
        rows = tuple(
            (
                member.reading,
                member.at,
                member.speaker,
                member.assistant,
                round(member.score, 6),
                round(member.meaning, 6),
                member.asked_for,
                member.restated,
                None if math.isnan(member_closeness) else round(member_closeness, 4),
                member.coming,
            )
            for member, member_closeness in zip(members, member_closenesses, strict=True)
        )
        judgement = _judge(rows, self._question, self._spans, self._decide)
        indexes = [member.index for member in members]
        mark_by_index: dict[int, _Mark] = {}
        for (old_index, new_index), reason in judgement.replaced.items():
            older = members[old_index]
            coming = f"{COMING}: from {from_epoch(older.at):%Y-%m-%d}" if older.coming else ""
            mark_by_index.setdefault(
                indexes[old_index], _Mark(indexes[new_index], coming or reason)
            )
        return [indexes[at] for at in judgement.lifted], mark_by_index

    def _was_shown(self, best: Candidate) -> bool:
        """Whether a group about the same thing as this one's best showed what it replaced."""
        about = read_keys(best.reading, best.speaker).subjects
        words = best.reading.words | about
        for subjects, words_shown in self._shown:
            if subjects and about and (subjects <= words or about <= words_shown):
                return True
        self._shown.append((about, words))
        return False

    def _is_outdated(self, best: Candidate, related: Sequence[Candidate]) -> bool:
        """Whether a hit that stands before it replaced it: then it is put behind with its mark."""
        earlier = [hit for hit in related if hit.index in self._taken]
        if not earlier or read_cues(self._question).past >= 2:
            return False
        closeness = {hit.index: hit.closeness for hit in earlier}
        mark = self._judge(best, earlier, closeness)[1].get(best.index)
        if mark is None:
            return False
        self._put_behind(replace(best, older_than=mark.newer, reason=mark.reason))
        return True

    def _put_behind(self, member: Candidate) -> None:
        """Let a replaced one stand far below; what was pushed of it before is passed over."""
        if member.index not in self._behind:
            self._behind[member.index] = member
            self._push(member, BEHIND)


_Judged: TypeAlias = tuple[
    StatementReading, float, str, bool, float, float, bool, int, float | None, bool
]


@lru_cache(maxsize=512)
def _judge(
    judged: tuple[_Judged, ...],
    question: str,
    spans: tuple[tuple[float, float], ...],
    judge: PairJudge,
) -> GroupJudgement:
    """What a group makes of its best one; most of a repeated question."""
    (
        readings,
        at,
        speakers,
        assistant,
        scores,
        meaning,
        asked_for,
        restatements,
        closeness,
        coming,
    ) = zip(*judged, strict=True)
    statements = Statements(
        [reading.text for reading in readings],
        put_coming_first(np.array(at), np.array(coming)),
        speakers,
        np.array(assistant),
        np.array(scores, np.float32),
        np.array(meaning, np.float32),
        np.array(asked_for),
        np.array(restatements),
        np.array(closeness, np.float32),
        readings,
    )
    return judge_group(statements, question, THRESHOLD, spans, judge)


def _fold(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that differ, those that say the same folded into the first of them."""
    first_by_key: dict[tuple[str, str, bool], Candidate] = {}
    repetitions: dict[tuple[str, str, bool], list[Candidate]] = {}
    for candidate in candidates:
        if candidate.wording in first_by_key:
            repetitions.setdefault(candidate.wording, []).append(candidate)
        else:
            first_by_key[candidate.wording] = candidate
    folded_candidates = []
    for wording, candidate in first_by_key.items():
        repeats = sorted(repetitions.get(wording, ()), key=lambda repeat: repeat.at)
        # What was said again holds from then on; an assistant only repeats it.
        silent = candidate.assistant or not repeats
        dated_members = [member for member in (candidate, *repeats) if not member.coming] or [
            candidate,
            *repeats,
        ]
        at = candidate.at if silent else max(member.at for member in dated_members)
        coming = candidate.coming if silent else dated_members[0].coming
        indexes = dict.fromkeys((*candidate.copies, *(repeat.index for repeat in repeats)))
        folded_candidates.append(replace(candidate, at=at, coming=coming, copies=tuple(indexes)))
    return folded_candidates


def _mark(member: Candidate, marks: Mapping[int, _Mark]) -> Candidate:
    """A member with what replaces it in the end, and what it replaced in the end itself."""
    mark = marks.get(member.index)
    if mark is not None:
        return replace(member, older_than=_find_last(member.index, marks), reason=mark.reason)
    previous = tuple(
        old_index for old_index in marks if _find_last(old_index, marks) == member.index
    )
    return replace(member, previous=previous) if previous else member


def _find_last(index: int, marks: Mapping[int, _Mark]) -> int:
    """The index of what replaces a marked one in the end."""
    newer, visited_indexes = marks[index].newer, {index}
    while newer in marks and newer not in visited_indexes:
        visited_indexes.add(newer)
        newer = marks[newer].newer
    return newer
