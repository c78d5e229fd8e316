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
from functools import cached_property, lru_cache
from heapq import heappop, heappush
from itertools import chain, islice
from typing import Final, TypeAlias

from anaphora.calls.moments import from_epoch
from anaphora.language.folding import typed_text
from anaphora.rank.currency import (
    COMING,
    COMPARED,
    LEAST_SHARE,
    RankedStatement,
    answer_loss,
    arrange_group,
    judge_group,
    put_coming_first,
)
from anaphora.rank.odds import probability_of
from anaphora.rank.replacement import Statement
from anaphora.rank.silence import Lane, scarcity
from anaphora.rank.statements import QuestionCues, read_cues, read_statement
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


@dataclass(frozen=True)
class Candidate:
    """A scored text: its index among the scores, and what its order depends on.

    `at` is when it was said, in seconds (NaN: not known); `asked_for`: by whom the question names.
    `passage` is the part of a very long text that is compared, None where that is all of it; `line`
    is what was read of that when it was stored ("": nothing).
    `copies` are the indexes of those that say the same, oldest first; `restated` is how many times
    it was said again. `changes` are what was added to its score since its lane gave it. `read` are
    the log-odds that it answers, as the reader has it (NaN: not read). `title` is what it is called
    beside its words: a path, a conversation's title ("": nothing); `titled` is the share (0 to 1)
    of the question that this holds. `coming`: `at` lies in the future. `timely`: it is of a time
    that the question names, or tells of it.
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
    changes: Mapping[str, float] = field(default_factory=dict)
    read: float = math.nan
    title: str = ""
    titled: float = 0.0
    coming: bool = False
    timely: bool = False

    @property
    def read_probability(self) -> float | None:
        """The probability that it answers, as the reader has it; None where it was not read."""
        if math.isnan(self.read):
            return None
        return probability_of(self.read)

    @cached_property
    def statement(self) -> Statement:
        """Its own words, as they are compared: without what it quotes of a recall."""
        text = self.text if self.line else _compared_text(self.passage or self.text)
        reading = read_statement(text, self.line)
        return Statement(reading.text, self.at, self.speaker, self.assistant, reading)

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


Lookup: TypeAlias = Callable[[Candidate, Iterable[Candidate]], Iterable[tuple[Candidate, float]]]
"""What the index holds in the words of a candidate, at most `RELATED`, in any order, each with its
cosine to that (NaN: not known). The others are those that may open the next groups."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A candidate in the order, by `standing`: the score of its group.

    `older_than` is the index of what replaces it and `reason` why, `previous` are those of what it
    replaces, the surest first. `answers` is the probability that it answers, from all that is known
    (None: nothing is).
    """

    candidate: Candidate
    standing: float
    older_than: int | None = None
    reason: str = ""
    previous: tuple[int, ...] = ()
    answers: float | None = None

    @property
    def index(self) -> int:
        """Its index among the scores."""
        return self.candidate.index


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


def order_hits(
    candidates: Iterable[Candidate],
    question: str,
    look_up: Lookup,
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

    Groups are made one by one as they are asked for. With `repetitions` what says the same is not
    folded into one. `calibrated`: whether the embedder's cosines tell if anything answers.
    `subject` is the question without the words that name `spans`, `statements` how many were
    searched, `count` how many `candidates` there are (None: not known).
    """
    stream = iter(candidates)
    head = list(islice(stream, READ if count is None else COMPARED))
    if not repetitions:
        head = _fold(head)
    likelihood = Likelihood.of(
        head,
        question,
        question if subject is None else subject,
        lane,
        tuple(spans),
        few=scarcity(len(head) if count is None else count),
        statements=statements,
        calibrated=calibrated,
    )
    groups = _Groups(question, read_cues(question), spans, look_up, not repetitions, likelihood)
    return Ordered(
        groups.ordered(chain(head, stream)), None if likelihood is None else likelihood.answered
    )


def find_replacing(candidate: Candidate, look_up: Lookup) -> Candidate | None:
    """What replaces a statement in the end, as `order_hits` judges it for any question."""
    groups = _Groups("", read_cues(""), (), look_up, True, None)
    newest, seen_indexes = candidate, {candidate.index}
    while (newer := groups.replacing(newest)) is not None and newer.index not in seen_indexes:
        newest = newer
        seen_indexes.add(newer.index)
    return None if newest is candidate else newest


@dataclass(frozen=True, slots=True)
class _Mark:
    """The index of what replaced a statement, in the end, and why."""

    newer: int
    reason: str


_Marks: TypeAlias = Mapping[int, _Mark]
_Group: TypeAlias = tuple[Sequence[Candidate], _Marks]
"""Those that stand together, and what was replaced of them and of those behind."""


@dataclass(slots=True)
class _Groups:
    """The groups of one question, each made when the one before it was taken."""

    _question: str
    _cues: QuestionCues
    _spans: Spans
    _look_up: Lookup
    _folds: bool
    _likelihood: Likelihood | None
    _heap: list[tuple[float, int, Candidate, bool]] = field(default_factory=list)
    _taken: set[int] = field(default_factory=set)
    _behind: dict[int, _Mark] = field(default_factory=dict)
    _shown: list[tuple[frozenset[str], frozenset[str]]] = field(default_factory=list)
    _pushed: int = 0
    _made: int = 0
    _least_score: float = -math.inf

    def ordered(self, stream: Iterator[Candidate]) -> Iterator[Placed]:
        """All candidates of `stream`, group by group."""
        group_score, shown_groups = math.inf, 0
        group: _Group
        # What tells of all candidates whether anything answers was read already.
        for candidate in islice(stream, COMPARED):
            self._push(self._lower(candidate))
        coming = next(stream, None)
        while True:
            # One that was lowered may stand behind some that are still to come.
            while coming is not None and (not self._heap or coming.score > -self._heap[0][0]):
                self._push(self._lower(coming))
                coming = next(stream, None)
            if not self._heap:
                return
            score, _, best, is_behind = heappop(self._heap)
            if best.index in self._taken or (best.index in self._behind) != is_behind:
                continue
            if group_score == math.inf:
                self._least_score = COMPARABLE * best.score
            group_score = min(group_score, -score)
            if is_behind:
                group = (best,), {best.index: self._behind[best.index]}
            elif best.score < self._least_score or self._made == GROUPS:
                group = (best,), {}
            else:
                group = self._make_group(best)
                self._made += 1
            yield from self._place(*group, group_score, shown_groups)
            shown_groups += bool(group[0])

    def replacing(self, best: Candidate) -> Candidate | None:
        """What replaces one, among what says most of the same."""
        pairs = {hit.index: (hit, near) for hit, near in self._look_up(best, ())}
        pairs.pop(best.index, None)
        closeness = {index: near for index, (_, near) in pairs.items()}
        followers = [hit for hit, _ in pairs.values()]
        mark = self._judge(best, followers, closeness)[1].get(best.index)
        return None if mark is None else pairs[mark.newer][0]

    def _place(
        self, front: Sequence[Candidate], marks: _Marks, standing: float, number: int
    ) -> Iterator[Placed]:
        """Take those that stand together, in the group of this number.

        What stands first in a group answers as probably as its likeliest: it was put before that
        because it holds now.
        """
        chances: list[float | None] = [None] * len(front)
        if self._likelihood is not None and front:
            rated = [self._likelihood.probability(member, number) for member in front]
            chances = [max(rated), *rated[1:]]
        for member, chance in zip(front, chances, strict=True):
            self._taken.update((member.index, *member.copies))
            previous = tuple(old for old, mark in marks.items() if mark.newer == member.index)
            mark = marks.get(member.index)
            # Its mark goes if what replaced it is still to come, unless the past is asked for.
            if mark is not None and (self._cues.past >= 2 or mark.newer in self._taken):
                yield Placed(member, standing, mark.newer, mark.reason, answers=chance)
            else:
                yield Placed(member, standing, previous=previous, answers=chance)

    def _push(self, candidate: Candidate, *, behind: bool = False) -> None:
        """Let a candidate stand at its score, or at a share of that."""
        if candidate.index not in self._taken:
            score = BEHIND * candidate.score if behind else candidate.score
            heappush(self._heap, (-score, self._pushed, candidate, behind))
            self._pushed += 1

    def _lower(self, candidate: Candidate) -> Candidate:
        lost_score = answer_loss(candidate.statement.reading, candidate.score, self._cues)
        if not lost_score:
            return candidate
        changes = {**candidate.changes, "unanswered": -lost_score}
        return replace(candidate, score=candidate.score - lost_score, changes=changes)

    def _make_group(self, best: Candidate) -> _Group:
        """Those that stand with `best`, itself among them."""
        own_indexes = (best.index, *best.copies)
        pairs = list(self._look_up(best, self._list_openings()))
        closeness = {hit.index: near for hit, near in pairs}
        related = {hit.index: hit for hit, _ in pairs if hit.index not in own_indexes}
        earlier = [hit for index, hit in related.items() if index in self._taken]
        if earlier and self._cues.past < 2:
            # A hit that stands before it may have replaced it.
            mark = self._judge(best, earlier, closeness)[1].get(best.index)
            if mark is not None:
                self._put_behind(best, mark)
                return (), {}
        # What was put behind its own group is no member of another one.
        pending = [
            self._lower(hit)
            for index, hit in related.items()
            if hit.score >= LEAST_SHARE * best.score
            and index not in self._taken
            and index not in self._behind
        ]
        followers = sorted(pending, key=lambda hit: (-hit.score, hit.index))
        if self._folds:
            best, *followers = _fold((best, *followers))
        if not followers:
            return (best,), {}
        members = {member.index: member for member in (best, *followers)}
        lifted_indexes, marks = self._judge(best, followers, closeness)
        if lifted_indexes:
            # By what stands first, where it says so, else by the best: never through a third.
            leader = members[lifted_indexes[0]]
            remaining = [member for member in members.values() if member is not leader]
            closeness = {hit.index: near for hit, near in self._look_up(leader, ())}
            marks |= self._judge(leader, remaining, closeness)[1]
        marks = {old: _Mark(_find_last(old, marks), mark.reason) for old, mark in marks.items()}
        return self._arrange(best.index, members, lifted_indexes, marks)

    def _list_openings(self) -> Iterator[Candidate]:
        """Those that are likely to open the next groups, best first."""
        for _, _, candidate, is_behind in sorted(self._heap):
            if candidate.score < self._least_score:
                return
            if not is_behind and candidate.index not in self._taken:
                yield candidate

    def _arrange(
        self, best: int, members: Mapping[int, Candidate], lifted: Sequence[int], marks: _Marks
    ) -> _Group:
        """Those of a group that stand together; the others are put behind other groups."""
        marked_indexes = [index for index in members if index in marks]
        taking_back = [
            index for index in marked_indexes if members[index].statement.reading.negated
        ]
        front, outdated_indexes = arrange_group(
            best, lifted, marked_indexes, self._question, taking_back
        )
        newly_outdated = [index for index in front if index in marks]
        if newly_outdated and self._cues.past < 2 and self._was_shown(members[best]):
            # One that was replaced stands before another group, however many tell of one thing.
            front = [index for index in front if index not in newly_outdated]
            outdated_indexes = [*newly_outdated, *outdated_indexes]
        for index in outdated_indexes:
            self._put_behind(members[index], marks[index])
        return [members[index] for index in front], marks

    def _judge(
        self, best: Candidate, followers: Sequence[Candidate], closeness: Mapping[int, float]
    ) -> tuple[list[int], dict[int, _Mark]]:
        """The places that stand before the best, and what each of the others was replaced by."""
        members = (best, *followers)
        times = put_coming_first(
            [member.at for member in members], [member.coming for member in members]
        )
        statements = [
            RankedStatement(
                replace(member.statement, at=at) if member.coming else member.statement,
                member.score,
                member.meaning,
                member.asked_for,
                member.restated,
                closeness.get(member.index, math.nan),
            )
            for member, at in zip(members, times, strict=True)
        ]
        judgement = judge_group(statements, self._question, THRESHOLD, self._spans)
        mark_by_index: dict[int, _Mark] = {}
        for (old_place, new_place), reason in judgement.replaced.items():
            older, newer = members[old_place], members[new_place]
            coming = f"{COMING}: from {from_epoch(older.at):%Y-%m-%d}" if older.coming else ""
            mark_by_index.setdefault(older.index, _Mark(newer.index, coming or reason))
        return [members[index].index for index in judgement.lifted], mark_by_index

    def _was_shown(self, best: Candidate) -> bool:
        """Whether a group about the same thing as this one's best showed what it replaced."""
        about = read_keys(best.statement.reading, best.speaker).subjects
        words = best.statement.reading.words | about
        for subjects, words_shown in self._shown:
            if subjects and about and (subjects <= words or about <= words_shown):
                return True
        self._shown.append((about, words))
        return False

    def _put_behind(self, member: Candidate, mark: _Mark) -> None:
        """Let a replaced one stand far below; what was pushed of it before is passed over."""
        if member.index not in self._behind:
            self._behind[member.index] = mark
            self._push(member, behind=True)


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


def _find_last(index: int, marks: Mapping[int, _Mark]) -> int:
    """The index of what replaces a marked one in the end."""
    newer, visited_indexes = marks[index].newer, {index}
    while newer in marks and newer not in visited_indexes:
        visited_indexes.add(newer)
        newer = marks[newer].newer
    return newer
