"""Questions for the order of events get turns of every stage, through the facade and real parts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from anaphora import Memory, NewTurn, TurnHit

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)

# What was done each month; in the last one it is called the shed in the garden.
MONTHS = (
    (
        "We drew a shed with two windows.",
        "Planks for a shed cost a fortune!",
        "Does a shed need a permit?",
        "Grandpa once built a shed from driftwood.",
    ),
    (
        "Digging the trench around the shed hurt my back.",
        "A lorry brought gravel for the shed.",
        "Concrete below the shed dries slowly.",
        "Rain flooded the ground of our shed.",
    ),
    (
        "Four neighbours lifted the frame of the shed.",
        "Nails for the shed ran out at noon.",
        "Walls of a shed must stand straight.",
        "Bolts hold our shed against the wind.",
    ),
    (
        "Roofing felt covers the shed since Monday.",
        "Gutters for a shed come in brown.",
        "The ridge of our shed leaked twice.",
        "Swallows already nest under the shed.",
    ),
    (
        "Red paint suits the shed in the garden.",
        "A lamp shines in the shed in the garden.",
        "Shelves fill the shed in the garden.",
        "Nobody locks the shed in the garden.",
    ),
)
OTHER = "My sister plays the cello."
ORDER = "In which order did I bring up the shed in the garden?"


def tell(memory: Memory, timed: bool = True) -> None:
    turns: list[NewTurn] = []
    for month, parts in enumerate(MONTHS):
        for said in parts:
            for text in (said, OTHER):
                ts = START + timedelta(days=30 * month, minutes=len(turns)) if timed else None
                turns.append(NewTurn("user", text, ts=ts))
    memory.conversations.extend("shed", turns)
    memory.ready()


def months(hits: tuple[TurnHit, ...]) -> set[int]:
    """The months that hits about the shed are from."""
    return {hit.index // (2 * len(MONTHS[0])) for hit in hits if "shed" in hit.text}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A memory that is only asked."""
    home = tmp_path_factory.mktemp("order")
    with Memory.open(home, clock=lambda: START + timedelta(days=200)) as memory:
        tell(memory)
        yield memory


def ask(memory: Memory, question: str) -> tuple[TurnHit, ...]:
    return tuple(memory.recall_conversation("shed", question, top_k=8, min_confidence=0))


def is_spread(hits: tuple[TurnHit, ...]) -> bool:
    return any("spread" in hit.factors for hit in hits)


@pytest.mark.promise("recall.order")
def test_an_order_of_events_is_recalled_over_its_stages(memory: Memory) -> None:
    """Asked for the order, every month comes, not only those that sound most like the question."""
    assert len(months(ask(memory, "Who locks the shed in the garden?"))) < len(MONTHS)
    assert len(months(ask(memory, ORDER))) == len(MONTHS)


@pytest.mark.promise("recall.order")
@pytest.mark.promise("recall.why")
def test_what_a_turn_lost_for_a_better_one_of_its_stage_is_told(memory: Memory) -> None:
    """`spread` is never a gain, makes no score negative, and the factors still add up."""
    hits = memory.recall_conversation("shed", ORDER, top_k=40, budget=100_000, min_confidence=0)
    assert is_spread(tuple(hits))
    for hit in hits:
        assert hit.factors.get("spread", 0.0) <= 0.0 <= hit.score
        assert sum(hit.factors.values()) == pytest.approx(hit.score, abs=1e-5)


@pytest.mark.promise("recall.order")
def test_stages_without_times_are_those_of_the_thread(tmp_path: Path) -> None:
    """Turns that came without a time are spread by where they stand."""
    with Memory.open(tmp_path) as memory:
        tell(memory, timed=False)
        assert len(months(ask(memory, ORDER))) == len(MONTHS)


@pytest.mark.promise("recall.order")
@pytest.mark.parametrize(
    ("question", "read_so"),
    [
        (ORDER, True),
        ("Can you list the order in which I brought up the shed?", True),
        ("Tell me about the shed in chronological order.", True),
        ("What was the sequence of events with the shed?", True),
        ("The work on the shed, from first to last?", True),
        ("What do I need in order to finish the shed?", False),
        ("Where is the order of planks for the shed?", False),
        ("What is the timeline for the shed?", False),
        ("What did I do first on the shed?", False),
        ("List everything about the shed.", False),
        ("In welcher Reihenfolge habe ich vom shed gesprochen?", True),
        ("Was habe ich für den shed bestellt?", False),
        ("Dans quel ordre ai-je parlé du shed ?", True),
        ("¿En qué orden hablé del shed en el jardín?", True),
        ("Em que ordem falei do shed?", True),
        ("我是按什么顺序提到 shed 的？", True),
        ("どの順番で shed の話をしましたか？", True),
    ],
)
def test_only_questions_for_an_order_are_read_so(
    memory: Memory, question: str, read_so: bool
) -> None:
    """Another question keeps the order of its scores."""
    assert is_spread(ask(memory, question)) is read_so
