"""What links candidates: stamps, what is due, what is fetched, and where chains end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anaphora.rank.holding import LINKED
from anaphora.rank.pairs import REPLACED, PairVerdict, StatementPair
from anaphora.recall.candidates import Candidate
from anaphora.recall.links import LinkedCandidates, NoLinks, find_newest
from anaphora.values.links import StatementLink

DAY = 86_400.0
SURE = 0.9


def candidate(index: int, day: float | None = None, text: str = "") -> Candidate:
    at = (index if day is None else day) * DAY
    return Candidate(index, text or f"The port is {5430 + index}.", 0.5, 0.5, at)


def name(one: Candidate) -> str:
    return f"turn#{one.index}"


def link(older: Candidate, newer: Candidate, *, replaces: float = SURE) -> StatementLink:
    ends, stamps = (name(older), name(newer)), (older.stamp, newer.stamp)
    return StatementLink(*ends, *stamps, replaces, 0.05, 0.0)


@dataclass
class Known:
    """Links that were made, the stamps of what was judged, and a judge by features."""

    links: Sequence[StatementLink] = ()
    judged: Mapping[str, str] = field(default_factory=dict)
    replaces: float = 0.0
    asked: list[tuple[str, str]] = field(default_factory=list)
    looks: int = 0

    def of(self, references: Collection[str]) -> Sequence[StatementLink]:
        assert references
        self.looks += 1
        return [one for one in self.links if one.older in references or one.newer in references]

    def version(self) -> int:
        return 0

    def stamps(self, references: Collection[str]) -> Mapping[str, str]:
        return {one: self.judged[one] for one in references if one in self.judged}

    def judge_features(self, pairs: Sequence[StatementPair]) -> Sequence[PairVerdict]:
        self.asked += [(pair.older.text, pair.newer.text) for pair in pairs]
        assert all(pair.closeness == 0.7 for pair in pairs)
        return [PairVerdict(self.replaces, 0.0, 0.0) for _ in pairs]


def judged(*candidates: Candidate) -> dict[str, str]:
    return {name(one): one.stamp for one in candidates}


def linked(
    known: Known,
    within: Sequence[Candidate] = (),
    fetched: Callable[[set[str]], object] = id,
) -> LinkedCandidates:
    """The links of a question that reaches some more candidates; `fetched` is told what is."""

    def fetch(references: Collection[str]) -> Sequence[Candidate]:
        assert references
        fetched(set(references))
        return [one for one in within if name(one) in references]

    return LinkedCandidates(known, name, fetch, lambda _, others: [0.7] * len(others))


@pytest.mark.promise("recall.current")
@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_links_that_may_be_a_replacement_are_told(chances: list[float]) -> None:
    """As they were made, by the indexes of the two."""
    block = [candidate(index) for index in range(len(chances) + 1)]
    links = [
        link(old, new, replaces=sure)
        for (old, new), sure in zip(pairwise(block), chances, strict=True)
    ]
    known = Known(links, judged(*block), replaces=1.0)
    members, verdicts = linked(known).link(block, {})
    assert list(members) == block
    assert verdicts == {
        (index, index + 1): PairVerdict(sure, 0.05, 0.0)
        for index, sure in enumerate(chances)
        if sure >= LINKED
    }
    assert not known.asked


def test_without_links_nothing_is_judged() -> None:
    block = [candidate(0), candidate(1)]
    nothing = LinkedCandidates(NoLinks(), name, lambda _: (), lambda *_: [])
    assert nothing.link(block, {}) == (block, {})


@pytest.mark.promise("recall.current")
@pytest.mark.parametrize("changed", [0, 1])
@pytest.mark.parametrize("part", ["text", "at", "speaker"])
def test_a_link_of_an_older_text_counts_for_nothing(changed: int, part: str) -> None:
    """Nor of another time or speaker; what was changed is due, and judged by features."""
    before = [candidate(0), candidate(5)]
    values = {"text": "The port is another one.", "at": 2.0 * DAY, "speaker": "Ada"}
    now = list(before)
    now[changed] = Candidate(**{**vars(before[changed]), part: values[part]})
    for one in now:
        vars(one).pop("stamp", None)
    known = Known([link(before[0], before[1])], judged(*before))
    assert linked(known).link(now, {})[1] == {}
    assert len(known.asked) == 1
    features = Known([link(before[0], before[1])], judged(*before), replaces=0.5)
    (verdict,) = linked(features).link(now, {})[1].values()
    assert verdict.replaces == 0.5


def test_how_a_text_was_typed_changes_no_stamp() -> None:
    """What is compared is what is stamped: links are made of the same words."""
    wide, plain = (
        candidate(0, text=text) for text in ("  The  port is 5430.", "The port is 5430.")
    )
    assert wide.stamp == plain.stamp


@pytest.mark.promise("recall.current")
@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=7),
    st.sampled_from([0.0, 1.0]),
)
def test_what_is_due_is_judged_by_features_among_the_candidates(
    told: list[tuple[int, bool]], replaces: float
) -> None:
    """Each pair of which one is due once, the older one first; of one time there is no order."""
    block = [candidate(index, day) for index, (day, _) in enumerate(told)]
    known = Known(
        (), judged(*(block[at] for at, (_, is_due) in enumerate(told) if not is_due)), replaces
    )
    _, verdicts = linked(known).link(block, {})
    expected = {
        (older.index, newer.index)
        for older in block
        for newer in block
        if older.at < newer.at and (told[older.index][1] or told[newer.index][1])
    }
    texts = {(block[old].text, block[new].text) for old, new in expected}
    assert sorted(known.asked) == sorted(texts)
    assert verdicts.keys() == (expected if replaces >= LINKED else set())


def test_a_link_that_was_made_counts_more_than_features() -> None:
    """Also where one of the two is due for another judge."""
    block = [candidate(0), candidate(1)]
    known = Known([link(block[0], block[1])], {}, replaces=0.2)
    assert linked(known).link(block, {})[1] == {(0, 1): PairVerdict(SURE, 0.05, 0.0)}


@pytest.mark.promise("recall.current")
def test_only_what_is_in_reach_is_fetched() -> None:
    """What the question may not show has no part in it; what is known is not fetched again."""
    own, known_one, near, far = (candidate(index) for index in range(4))
    links = [link(own, known_one), link(own, near), link(own, far)]
    asked: list[set[str]] = []
    known = Known(links, judged(own, known_one, near, far))
    members, verdicts = linked(known, [known_one, near], asked.append).link([own], {1: known_one})
    assert list(members) == [own, near]
    assert verdicts.keys() == {(0, 1), (0, 2)}
    assert asked == [{name(near), name(far)}]


def test_what_holds_in_the_end_is_fetched() -> None:
    """Along the links from what replaced one; not what that replaced otherwise."""
    chain = [candidate(index) for index in range(4)]
    aside = candidate(9, 0.5)
    links = [*(link(old, new) for old, new in pairwise(chain)), link(aside, chain[1])]
    known = Known(links, judged(*chain, aside))
    members, verdicts = linked(known, [*chain, aside]).link([chain[0]], {})
    assert [one.index for one in members] == [0, 1, 2, 3]
    assert verdicts.keys() == {(0, 1), (1, 2), (2, 3)}


@given(st.integers(1, 30), st.integers(0, 30))
def test_links_in_a_circle_end(size: int, back: int) -> None:
    """However they came to be."""
    ones = [candidate(index) for index in range(size)]
    links = [link(old, new) for old, new in pairwise(ones)]
    links.append(link(ones[-1], ones[min(back, size - 1)]))
    known = Known(links, judged(*ones))
    newest = find_newest(known, [name(one) for one in ones])
    assert all(old != new for old, new in newest.items())
    assert known.looks < 12
    members, _ = linked(known, ones).link(ones[:1], {})
    assert len(members) == len({one.index for one in members})


@pytest.mark.promise("recall.current")
@settings(max_examples=50)
@given(
    st.permutations(range(6)),
    st.lists(st.floats(0, 1), min_size=5, max_size=5),
    st.sets(st.integers(0, 5)),
)
def test_the_newest_of_a_chain_is_found(
    order: list[int], chances: list[float], asked: set[int]
) -> None:
    """Where each link of it is sure enough; what holds is not among them."""
    ones = [candidate(index) for index in range(6)]
    links = [
        link(old, new, replaces=sure)
        for (old, new), sure in zip(pairwise(ones), chances, strict=True)
    ]
    known = Known([links[at] for at in order if at < 5])
    newest = find_newest(known, [name(ones[index]) for index in asked])
    for index in asked:
        last = index
        while last < 5 and chances[last] >= REPLACED:
            last += 1
        assert newest.get(name(ones[index]), name(ones[index])) == name(ones[last])


def test_of_two_that_replaced_one_the_surer_one_is_followed() -> None:
    old, less, more = candidate(0), candidate(1), candidate(2)
    known = Known([link(old, less, replaces=0.7), link(old, more, replaces=0.8)])
    assert find_newest(known, [name(old)]) == {name(old): name(more)}
    assert find_newest(NoLinks(), [name(old)]) == {}
    assert find_newest(known, []) == {}
