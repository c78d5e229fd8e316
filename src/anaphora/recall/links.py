"""What links the candidates of a question: looked up where it was made behind the write.

What no link was made of yet is judged in the call, by features, among the candidates alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from anaphora.rank.holding import LINKED, Verdicts
from anaphora.rank.pairs import (
    REPEATED,
    REPLACED,
    KeyT,
    PairVerdict,
    Statement,
    StatementPair,
    beside_rivals,
)
from anaphora.recall.candidates import Candidate
from anaphora.values.links import StatementLink

_CHAIN: Final = 8
"""Links that are followed from what was replaced to what holds."""


@dataclass(frozen=True, slots=True)
class ToldStatement:
    """A statement of any kind by its reference: its words, and when they were told."""

    reference: str
    text: str
    at: datetime


class KnownLinks(Protocol):
    """The links that were made, and the judge of what is due."""

    def version(self) -> Hashable:
        """What changes with every change of links, in any process: cheap to read."""

    def of(self, references: Collection[str]) -> Sequence[StatementLink]:
        """All links of which one end is among these statements."""

    def stamps(self, references: Collection[str]) -> Mapping[str, str]:
        """The stamps with which these statements were judged; those that were not are missing."""

    def judge_features(self, pairs: Sequence[StatementPair]) -> Sequence[PairVerdict]:
        """What the later statement of each pair makes of the earlier, by features alone."""


class NoLinks:
    """Where nothing is linked."""

    def version(self) -> Hashable:
        """Always the same."""
        return 0

    def of(self, references: Collection[str]) -> Sequence[StatementLink]:
        """None."""
        return ()

    def stamps(self, references: Collection[str]) -> Mapping[str, str]:
        """None is due."""
        return {}

    def judge_features(self, pairs: Sequence[StatementPair]) -> Sequence[PairVerdict]:
        """None was asked for."""
        return ()


@dataclass(frozen=True)
class LinkedCandidates:
    """The links of one question's candidates.

    `reference_of` names the statement of a candidate, `fetch` gives the candidates of references
    that the question may show, and `closeness` the cosines of one candidate to others.
    """

    links: KnownLinks
    reference_of: Callable[[Candidate], str]
    fetch: Callable[[Collection[str]], Sequence[Candidate]]
    closeness: Callable[[Candidate, Sequence[Candidate]], Sequence[float]]

    def link(
        self, block: Sequence[Candidate], known: Mapping[int, Candidate]
    ) -> tuple[Sequence[Candidate], Verdicts]:
        """As `recall.ordering.Successions`."""
        if isinstance(self.links, NoLinks):
            return block, {}
        in_block = {self.reference_of(candidate): candidate for candidate in block}
        by_reference = {
            self.reference_of(candidate): candidate for candidate in known.values()
        } | in_block
        links = list(self.links.of(in_block))
        fetched = self._fetch_ends(links, by_reference)
        verdicts = {}
        for link in links:
            older, newer = by_reference.get(link.older), by_reference.get(link.newer)
            if older is None or newer is None:
                continue
            is_current = (older.stamp, newer.stamp) == (link.older_stamp, link.newer_stamp)
            if is_current and (link.replaces >= LINKED or link.repeats >= REPEATED):
                verdict = PairVerdict(link.replaces, link.both, link.repeats)
                verdicts[older.index, newer.index] = verdict
        judged = self.links.stamps(in_block)
        due = {
            candidate.index
            for name, candidate in in_block.items()
            if judged.get(name) != candidate.stamp
        }
        # What a link was made of is known better.
        verdicts = {**self._judge_due([*block, *fetched], due), **verdicts}
        return (*block, *fetched), verdicts

    def _fetch_ends(
        self, links: list[StatementLink], by_reference: dict[str, Candidate]
    ) -> list[Candidate]:
        """The ends of links that are not known yet, and what replaced those in turn.

        The links to the latter are added to `links`, and all that is fetched to `by_reference`.
        """
        fetched: list[Candidate] = []
        ends = {end for link in links for end in (link.older, link.newer)}
        for _ in range(_CHAIN):
            ends -= by_reference.keys()
            candidates = self.fetch(ends) if ends else ()
            newly_fetched = {self.reference_of(member): member for member in candidates}
            by_reference |= newly_fetched
            fetched += candidates
            replacing = newly_fetched.keys() & {link.newer for link in links}
            later = [
                link
                for link in (self.links.of(replacing) if replacing else ())
                if link.older in replacing and link.replaces >= REPLACED
            ]
            links += later
            ends = {link.newer for link in later}
            if not ends:
                break
        return fetched

    def _judge_due(self, members: Sequence[Candidate], due: Collection[int]) -> Verdicts:
        """What features tell of the pairs of which one is due."""
        by_index = {member.index: member for member in members}

        def closeness(index: int, others: Sequence[int]) -> Sequence[float]:
            return self.closeness(by_index[index], list(map(by_index.__getitem__, others)))

        statements = {member.index: member.statement for member in members}
        judged = judge_due(self.links, statements, due, closeness)
        return {pair: verdict for pair, verdict in judged.items() if verdict.replaces >= LINKED}


def judge_due(
    links: KnownLinks,
    statements: Mapping[KeyT, Statement],
    due: Collection[KeyT],
    closeness: Callable[[KeyT, Sequence[KeyT]], Sequence[float]],
) -> dict[tuple[KeyT, KeyT], PairVerdict]:
    """What features tell of the pairs, (older, newer), of statements of which one is due."""
    keys = sorted(statements, key=lambda key: statements[key].at) if due else []
    pairs: dict[tuple[KeyT, KeyT], StatementPair] = {}
    for at, newer in enumerate(keys):
        earlier = [
            older
            for older in keys[:at]
            if (older in due or newer in due) and statements[older].at < statements[newer].at
        ]
        cosines = closeness(newer, earlier) if earlier else ()
        for older, cosine in zip(earlier, cosines, strict=True):
            pairs[older, newer] = StatementPair(statements[older], statements[newer], cosine)
    verdicts = links.judge_features(list(pairs.values()))
    return beside_rivals(dict(zip(pairs, verdicts, strict=True)))


def find_newest(links: KnownLinks, references: Collection[str]) -> dict[str, str]:
    """What replaced statements in the end, by their references; what holds is not among them."""
    newer_of: dict[str, str] = {}
    unread = set(references)
    for _ in range(_CHAIN):
        best: dict[str, StatementLink] = {}
        for link in links.of(unread) if unread else ():
            if link.older in unread and link.replaces >= REPLACED:
                chosen = best.setdefault(link.older, link)
                if link.replaces > chosen.replaces:
                    best[link.older] = link
        newer_of |= {older: link.newer for older, link in best.items()}
        unread = set(newer_of.values()) - newer_of.keys()
        if not best:
            break
    newest = {}
    for reference in references:
        last, visited = reference, {reference}
        while (later := newer_of.get(last)) is not None and later not in visited:
            last = later
            visited.add(last)
        if last != reference:
            newest[reference] = last
    return newest
