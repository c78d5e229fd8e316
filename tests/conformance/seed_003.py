"""Recall of lasting memories: local, warm, filtered, and ranked by reinforcement and decay."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from tests.conformance.desk import Desk, Placed
from tests.conformance.preferences import PREFERRED, TESTING, VITEST, preferring
from tests.conformance.table import Seed, refusal, refusals
from tests.docs.reference_pages import reference_page

from anaphora import AsyncMemory, Memory
from anaphora.core.config import EXACT_CAP, load_settings
from anaphora.errors import AnaphoraError, InvalidInput
from anaphora.index.memories.vectors import STEP
from anaphora.values.conversations import RecallMode
from anaphora.values.memories import MemoryHit, MemoryType

__all__ = ["ELSEWHERE", "SEED"]

SEED = Seed("003", "recall of lasting memories")
row = SEED.row

ELSEWHERE = "zebra migration in Kenya"
COOLED = "The turbine is cooled by water."
ASKED = "how is the turbine cooled"


def known(desk: Desk, embedder: Any = "minilm", **options: Any) -> Memory:
    """A memory that knows a preference and two things beside it."""
    memory = preferring(desk.memory(embedder, **options))
    memory.ready(60)
    return memory


def cache_events(memory: Memory) -> list[str]:
    """The types of the cache's events from now on."""
    types: list[str] = []
    memory.on("cache", lambda event: types.append(event.type))
    return types


@row("5, 7", "a search without a network round trip")
def offline(desk: Desk) -> str:
    unshared = shutil.which("unshare")
    if unshared and not subprocess.run([unshared, "-rn", "true"], check=False).returncode:
        program = [unshared, "-rn", sys.executable, "-m", "anaphora", "--home", str(desk.home)]
        settings = {"HOME": str(desk.folder), "ANAPHORA_RESIDENT": "0"}
        for words in (["remember", VITEST], ["memory", "recall", "vitest or jest"]):
            done = subprocess.run(
                [*program, *words], capture_output=True, text=True, check=False, env=settings
            )
            assert done.returncode == 0, done.stderr
        assert VITEST in done.stdout
        return "remembered and recalled by processes that have no network"
    with mock.patch("socket.socket.connect", side_effect=OSError("no network")):
        assert known(desk).recall("vitest or jest")[0].text == VITEST
    return "answered where no socket can connect"


def milliseconds(memory: Memory, queries: Iterator[str], **options: Any) -> list[float]:
    """Processor time of this thread for each recall: other programs do not count."""
    spent = []
    for query in queries:
        start = time.thread_time()
        memory.recall(query, **options)
        spent.append((time.thread_time() - start) * 1e3)
    return spent


@row("5 p99", "in under 25 ms at the 99th percentile")
def fast(desk: Desk) -> str:
    memory = desk.shared.thousand
    list(milliseconds(memory, iter([f"warm {n}" for n in range(5)])))
    new = milliseconds(memory, iter([f"where is the zebra number {n}" for n in range(100)]))
    assert float(np.percentile(new, 99)) < 25, max(new)
    return "of processor time, 100 new queries of a thousand memories"


@row("28 time", "a repeated query takes less than a millisecond")
def repeated(desk: Desk) -> str:
    memory = desk.shared.thousand
    modes: tuple[RecallMode, ...] = ("hybrid", "vector")
    for mode in modes:
        memory.recall("where is the zebra", mode=mode)
        spent = milliseconds(memory, iter(["where is the zebra"] * 100), mode=mode)
        median = float(np.median(spent))
        assert median < 1, f"{mode}: {median:.2f} ms"
    return "of processor time, at a thousand similar memories, in both modes"


@row("7", "LanceDB", on_purpose="docs/seeds.md#lancedb-from-150000-vectors-on")
def lancedb(desk: Desk) -> str:
    settings = load_settings(desk.home, None, environ={})
    assert settings.exact_cap == EXACT_CAP == 150_000
    code = (
        "import sys\nfrom anaphora import Memory\n"
        "with Memory.open(sys.argv[1], embedder='hashing') as memory:\n"
        "    memory.remember_many(f'fact {n} about a zebra' for n in range(300))\n"
        "    memory.ready(60)\n"
        "    assert memory.recall('fact 42 zebra', mode='vector')\n"
        "print('lancedb' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(desk.home)],
        capture_output=True,
        text=True,
        check=True,
        env={"ANAPHORA_EXACT_CAP": "0", "HOME": str(desk.folder)},
    )
    assert done.stdout.strip() == "False"
    page = reference_page("configuration.md")
    assert f"the first {STEP:,} always are" in page
    return f"an exact scan up to {EXACT_CAP:,} vectors, LanceDB beyond; never below {STEP:,}"


@row("12", "query is required")
def query_required(desk: Desk) -> str:
    memory = known(desk)
    blank = memory.recall("  ")
    assert len(blank) == 0
    assert blank.degraded
    refusals(InvalidInput, memory.recall, (None, 5))
    assert desk.anaphora("memory", "recall").returncode == 2
    return "none or a number: refused; a blank one finds nothing and says so"


@row("13", "topK, 3 by default")
def top_k(desk: Desk) -> str:
    memory = desk.memory("minilm")
    memory.remember_many(f"The turbine number {n} is cooled by water." for n in range(6))
    assert len(memory.recall("turbine cooled by water")) == 3
    assert len(memory.recall("turbine cooled by water", top_k=5)) == 5
    return "3; top_k 5: 5"


@row("14", "minScore on the composite score")
def min_score(desk: Desk) -> str:
    memory = known(desk)
    best = memory.recall("vitest over jest")[0].score
    assert memory.recall("vitest over jest", min_score=best)
    assert not memory.recall("vitest over jest", min_score=best + 0.01)
    refusals(InvalidInput, lambda least: memory.recall("vitest", min_score=least), (math.nan, "x"))
    return f"at the score {best:.2f} it comes, above it goes; nan is refused"


@row("14 default", "no floor", on_purpose="docs/seeds.md#silence-when-nothing-answers")
def floor(desk: Desk) -> str:
    memory = known(desk)
    answer = memory.recall(ELSEWHERE)
    assert len(answer) == 0
    assert answer.nearest
    assert memory.recall(ELSEWHERE, min_score=0)
    assert memory.recall(ELSEWHERE, min_confidence=0)
    assert len(memory.recall(ELSEWHERE, mode="vector")) == 3
    return "silence where nothing seems to answer; min_score 0, min_confidence 0, mode vector"


@row("15", "filters on tags, lineages, categories")
def filters(desk: Desk) -> str:
    memory = known(desk)
    parent = memory.recall("vitest")[0].id
    child = memory.remember("Vitest runs in watch mode.", parent=parent)
    memory.remember("Watch mode is noisy.", parent=child.id)
    assert [hit.id for hit in memory.recall("vitest", filters={"parent": parent})] == [child.id]
    (tea,) = memory.recall("x", filters={"category": "kitchen"})
    assert tea.text == "The user drinks tea."
    for conditions in (
        {"tags": {"contains": "drinks"}},
        {"path": {"startswith": "user."}},
        {"payload.framework": "vitest"},
        {"type": {"in": ["semantic"]}},
        {"reinforce_count": {"gte": 0}},
        {"NOT": {"category": "kitchen"}},
        {"OR": [{"category": "kitchen"}, {"category": "plant"}]},
    ):
        assert memory.recall("x", filters=conditions), conditions
    refusal(AnaphoraError, lambda: memory.remember("A stray.", parent="unknown"))
    return "parent, tags, category, path, payload, type, count, AND, OR, NOT"


@row("15 lineages", "a whole lineage: descendants and ancestors, to any depth")
def lineages(desk: Desk) -> str:
    memory = desk.memory("minilm")
    alpha = memory.remember("alpha fact")
    beta = memory.remember("beta fact from alpha", parent=alpha.id)
    gamma = memory.remember("gamma fact from beta", parent=beta.id)
    memory.remember("delta fact alone")

    def lineage(condition: Any) -> set[str]:
        hits = memory.recall("fact", top_k=10, filters={"lineage": condition})
        return {hit.id for hit in hits}

    assert lineage({"descendant_of": alpha.id}) == {beta.id, gamma.id}
    assert lineage({"ancestor_of": gamma.id}) == {alpha.id, beta.id}
    assert lineage(beta.id) == {alpha.id, beta.id, gamma.id}
    return "descendants and ancestors of a memory, and its whole lineage"


@row("19-21", "eager warming; ready(), awaited too")
def ready(desk: Desk) -> str:
    memory = Memory.open(desk.home, embedder="minilm")
    try:
        assert memory.ready(60)
    finally:
        memory.close()

    async def awaited() -> bool:
        async with AsyncMemory.open(desk.home) as opened:
            return await opened.ready()

    assert asyncio.run(awaited())
    return "True; `await memory.ready()`: True"


@row("26", "an LRU cache of 256 query vectors")
def cache_of_queries(desk: Desk) -> str:
    memory = known(desk, "hashing")
    types = cache_events(memory)
    for number in range(257):
        memory.recall(f"question {number}")
    types.clear()
    for number in (256, 1, 0):
        memory.recall(f"question {number}")
    assert types == ["hit", "hit", "miss"]
    return "of 257 questions the least recently used one went"


@row("26 vectors", "vectors of 384 dimensions")
def dimensions(desk: Desk) -> str:
    vector = desk.shared.minilm.embed_query("hello")
    assert vector.shape == (384,)
    assert math.isclose(float(vector @ vector), 1, abs_tol=1e-5)
    return "all-MiniLM-L6-v2, length 1"


@row("28", "repeated or structurally similar queries bypass the model")
def bypass(desk: Desk) -> str:
    memory = known(desk)
    types = cache_events(memory)
    variants = (" Vitest  over JEST ", "vitest over jest?", "vitest over jest.")
    for query in ("vitest over jest", "vitest over jest", *variants):
        memory.recall(query)
    assert types == ["miss", *["hit"] * 4]
    memory.recall("jest over vitest")
    assert types[-1] == "miss"
    return "the same; in another case, spacing and final punctuation: hits; another order: a miss"


@row("29-32", 'memory.on("cache", e => e.type, e.query)')
def observed(desk: Desk) -> str:
    memory = known(desk, "hashing")
    events: list[Any] = []
    memory.on("cache", events.append)
    memory.recall("abc")
    memory.recall("abc")
    assert [(event.type, event.query) for event in events] == [("miss", "abc"), ("hit", "abc")]

    def broken(event: object) -> None:
        raise ValueError(event)

    memory.on("cache", broken)
    memory.recall("abc")
    refusal(InvalidInput, lambda: memory.on("cache", 5))  # type: ignore[arg-type]
    return "type and query; a listener that raises disturbs nothing"


@row("33-36", "cacheSize")
def cache_size(desk: Desk) -> str:
    memory = known(desk, "hashing", cache_size=512)
    types = cache_events(memory)
    for number in range(512):
        memory.recall(f"question {number}")
    types.clear()
    memory.recall("question 0")
    assert types == ["hit"]
    refusals(InvalidInput, lambda size: Memory.open(desk.home, cache_size=size), ("x", -1, 2.5))
    return "cache_size=512 keeps 512; a word, -1 and 2.5 are refused"


@row("40", "metadata is decrypted before a filter is applied")
def sealed(desk: Desk) -> str:
    with known(desk, encrypt="file") as memory:
        memory.remember("The user drinks maté.", category="kitchenette", tags=("drinksy",))
        assert [hit.text for hit in memory.recall("preference", filters=TESTING)] == [VITEST]
    words = (b"vitest", b"testing", b"development", b"user.preferences", b"kitchenette", b"drinksy")
    content = b"".join(path.read_bytes() for path in desk.home.rglob("*") if path.is_file())
    assert not [word for word in words if word in content]
    assert desk.memory("minilm").recall("preference", filters=TESTING)[0].text == VITEST
    return "the filter answers; no tag, category, path or word in any file"


@row(
    "40, 106",
    "records are encrypted",
    on_purpose="docs/seeds.md#encryption-is-a-choice",
)
def not_sealed(desk: Desk) -> str:
    known(desk, "hashing").close()
    content = b"".join(path.read_bytes() for path in desk.home.rglob("*") if path.is_file())
    assert b"user.preferences" in content
    return "in the clear, readable with sqlite3, unless the home is made with encrypt="


@row("42-51", "the example of a filter")
def example_filter(desk: Desk) -> str:
    hits = known(desk).recall("user testing preferences", top_k=5, filters=TESTING)
    assert [hit.text for hit in hits] == [VITEST]
    return f"one hit, score {hits[0].score:.2f}"


@row("55", "8 × topK are fetched by distance and ranked again")
def over_fetched(desk: Desk) -> str:
    texts = {f"memory number {n}": 0.9 - n / 100 for n in range(20)}
    memory = desk.memory(Placed(texts))
    for text in texts:
        memory.remember(text)
    for _ in range(30):
        memory.remember("memory number 8")
    first = [memory.recall("any", top_k=k, mode="vector")[0].text for k in (1, 2)]
    assert first == ["memory number 0", "memory number 8"]
    for _ in range(30):
        memory.remember("memory number 7")
    assert memory.recall("any", top_k=1, mode="vector")[0].text == "memory number 7"
    return "restated 30 times: rank 9 not seen with top_k 1, first with 2; rank 8 first with 1"


def faded(desk: Desk) -> MemoryHit:
    """A hit of the seed's formula: restated three times, 28 days ago."""
    memory = desk.memory("minilm")
    for _ in range(4):
        memory.remember(COOLED)
    desk.later(days=28)
    return memory.recall(ASKED, mode="vector")[0]


@row("57", "score = similarity × decay × reinforcement")
def formula(desk: Desk) -> str:
    hit = faded(desk)
    model = desk.shared.minilm
    cosine = float(model.embed([COOLED])[0][0] @ model.embed_query(ASKED))
    assert abs(hit.similarity - cosine) < 2e-3
    assert math.isclose(hit.decay, 0.5 ** (28 / 90), rel_tol=1e-6)
    assert math.isclose(hit.reinforcement, 1 + math.log(4), rel_tol=1e-6)
    assert math.isclose(hit.score, hit.similarity * hit.decay * hit.reinforcement, rel_tol=1e-6)
    return f"{hit.similarity:.4f} × {hit.decay:.4f} × {hit.reinforcement:.4f} = {hit.score:.4f}"


@row("57 default", "the same by default", on_purpose="docs/seeds.md#bounded-decay-and-restating")
def formula_by_default(desk: Desk) -> str:
    memory = desk.memory("minilm")
    memory.remember(COOLED, type="episodic")
    desk.later(days=365)
    hit = memory.recall(ASKED)[0]
    assert 0.9 <= hit.decay < 0.91
    (plain,) = memory.recall(ASKED, mode="vector")
    assert plain.decay < 1e-6
    return f"decay never below 0.9 ({hit.decay:.2f} after a year; mode vector: {plain.decay:.0e})"


@row("57", "a score is the product of three factors")
def three_factors(desk: Desk) -> str:
    hits = of_staging(desk)
    product = [hit.similarity * hit.decay * hit.reinforcement for hit in hits]
    assert all(abs(hit.score - wanted) < 1e-3 for hit, wanted in zip(hits, product, strict=True))
    return "similarity × decay × reinforcement, of a newer value as well"


@row(
    "63 order",
    "hits in descending order of score",
    on_purpose="docs/seeds.md#current-values-come-first",
)
def groups(desk: Desk) -> str:
    newer, older = of_staging(desk)
    assert (newer.current, older.current) == (True, False)
    assert "5439" in newer.text
    return f"what holds now first ({newer.score:.2f}), then what it replaced ({older.score:.2f})"


def of_staging(desk: Desk) -> list[MemoryHit]:
    memory = desk.memory("minilm")
    memory.remember("The staging database listens on port 5433.")
    desk.later(days=1)
    memory.remember("We moved staging: its database listens on port 5439 from today.")
    return list(memory.recall("which port does the staging database listen on?"))


@row("59", "similarity = max(0, 1 - d / 2)")
def similarity(desk: Desk) -> str:
    memory = desk.memory(Placed({"near": 0.8, "away": -0.5}))
    memory.remember("near")
    memory.remember("away")
    values = {hit.text: hit.similarity for hit in memory.recall("any", mode="vector", filters={})}
    assert math.isclose(values["near"], 0.8, abs_tol=1e-3)
    assert values.get("away", 0.0) == 0.0
    return "the cosine; 0 for a negative one"


@row("60", "half-lives of 14, 90 and 180 days since it was last reinforced")
def half_lives(desk: Desk) -> str:
    memory = desk.memory("minilm")
    days: dict[MemoryType, int] = {"episodic": 14, "semantic": 90, "procedural": 180}
    for kind in days:
        memory.remember(f"The turbine is cooled, {kind} said.", type=kind)
    desk.later(days=28)

    def decays() -> dict[str, float]:
        return {hit.type: hit.decay for hit in memory.recall("turbine cooled", mode="vector")}

    first = decays()
    assert all(math.isclose(first[kind], 0.5 ** (28 / n), rel_tol=1e-4) for kind, n in days.items())
    memory.remember("The turbine is cooled, episodic said.", type="episodic")
    assert math.isclose(decays()["episodic"], 1, rel_tol=1e-6)
    return ", ".join(f"{kind} {first[kind]:.4f}" for kind in days) + " after 28 days"


@row("60 override", "SOVSEAL_DECAY_EPISODIC, _SEMANTIC and _PROCEDURAL override them")
def override(desk: Desk) -> str:
    def decay(home: str, **settings: str) -> float:
        with mock.patch.dict(os.environ, settings):
            memory = desk.memory(home=home)
        memory.remember("turbine cooled", type="episodic")
        desk.later(days=10)
        return memory.recall("turbine cooled", mode="vector")[0].decay

    assert math.isclose(decay("none"), 0.5 ** (10 / 14), rel_tol=1e-4)
    assert math.isclose(decay("theirs", SOVSEAL_DECAY_EPISODIC="10"), 0.5, rel_tol=1e-4)
    both = {"SOVSEAL_DECAY_EPISODIC": "10", "ANAPHORA_DECAY_EPISODIC": "5"}
    assert math.isclose(decay("both", **both), 0.25, rel_tol=1e-4)
    every = {f"SOVSEAL_DECAY_{kind}": "2" for kind in ("EPISODIC", "SEMANTIC", "PROCEDURAL")}
    lives = load_settings(desk.home, None, environ=every).half_lives
    assert (lives.episodic, lives.semantic, lives.procedural) == (2, 2, 2)
    bad = {"SOVSEAL_DECAY_EPISODIC": "14d"}
    said = refusal(AnaphoraError, lambda: load_settings(desk.home, None, environ=bad))
    assert "SOVSEAL_DECAY_EPISODIC" in said
    return f"each; ANAPHORA_DECAY_… goes before it; {said}"


@row("61", "reinforcement = 1 + ln(1 + n)")
def reinforcement(desk: Desk) -> str:
    hit = faded(desk)
    assert math.isclose(hit.reinforcement, 1 + math.log(4), rel_tol=1e-6)
    return f"{hit.reinforcement:.4f} for n = 3"


def before_the_fresh(desk: Desk, mode: RecallMode, old: float, fresh: float) -> None:
    """A fact that was said 13 times a month ago stands before one of today that is more similar."""
    texts = {"the old": old, "the fresh": fresh}
    with desk.memory(Placed(texts), home=f"placed_{old}") as memory:
        for _ in range(13):
            memory.remember("the old")
        desk.later(days=30)
        memory.remember("the fresh")
        order = [hit.text for hit in memory.recall("any", mode=mode, min_confidence=0)]
    assert order == ["the old", "the fresh"], f"cosines {old} and {fresh}: {order}"


# A question, a fact that answers it, and what resembles the question but is about something else.
NEAR_ONE_OFFS = (
    (
        "where are the backups kept?",
        "Backups are kept in the Zurich bucket.",
        "The band's backup singer kept her coat on.",
    ),
    (
        "which shell does the team use?",
        "The team uses the fish shell.",
        "The team found a large shell on the beach outing.",
    ),
    (
        "how are branches named?",
        "Branches are named after tickets.",
        "The bank named its new branch after a painter.",
    ),
    (
        "who reviews the payments code?",
        "Ines reviews all payments code.",
        "Ines wrote a review of a crime novel.",
    ),
    (
        "which language is the backend written in?",
        "The backend is written in Rust.",
        "The letter from the embassy was written in Portuguese.",
    ),
    (
        "when is the standup?",
        "The standup is at half past nine.",
        "The standup comedian was on at ten last night.",
    ),
    (
        "which queue does billing use?",
        "Billing uses the RabbitMQ queue.",
        "The queue at the billing counter of the clinic was long today.",
    ),
    (
        "what is the longest line of our code?",
        "Our code has lines of at most 100 characters.",
        "The line at the museum was a hundred metres long.",
    ),
    (
        "which theme does the dashboard have?",
        "The dashboard has a dark theme.",
        "The theme of the party was old cars and their dashboards.",
    ),
    (
        "what does Mara drink at work?",
        "Mara drinks green tea at work.",
        "Mara drank a glass of elderberry juice at the fair.",
    ),
)


def before_one_offs(desk: Desk, mode: RecallMode) -> str:
    """Each fact that was said 13 times a month ago stands first, and none is marked outdated."""
    memory = desk.memory("minilm")
    for _ in range(13):
        memory.remember_many(fact for _, fact, _ in NEAR_ONE_OFFS)
    desk.later(days=30)
    memory.remember_many(text for _, _, text in NEAR_ONE_OFFS)
    behind, outdated = [], []
    for question, fact, one_off in NEAR_ONE_OFFS:
        hits = list(memory.recall(question, mode=mode, top_k=20, min_confidence=0))
        order = [hit.text for hit in hits]
        if one_off in order and order.index(one_off) < order.index(fact):
            behind.append(fact)
        outdated += [hit.text for hit in hits if hit.text == fact and not hit.current]
    assert not behind, f"{len(behind)} behind, {len(outdated)} outdated of {len(NEAR_ONE_OFFS)}"
    assert not outdated, outdated
    return f"{len(NEAR_ONE_OFFS)} of {len(NEAR_ONE_OFFS)} first, none marked as outdated"


@row("63", "a reinforced older fact out-ranks a fresher, more similar one-off, in mode vector")
def reinforced_by_vector(desk: Desk) -> str:
    before_the_fresh(desk, "vector", 0.8, 0.85)
    before_the_fresh(desk, "vector", 0.7, 0.9)
    return before_one_offs(desk, "vector")


@row(
    "63 default",
    "the same in the default mode, and the fact is not marked as outdated",
)
def reinforced_by_default(desk: Desk) -> str:
    before_the_fresh(desk, "hybrid", 0.8, 0.85)
    return before_one_offs(desk, "hybrid")


@row("63 results", "{ id, text, score }, descending")
def results(desk: Desk) -> str:
    hits = known(desk).recall("testing of the turbine or vitest", min_confidence=0)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len(hits) > 1
    assert all(hit.id and hit.text for hit in hits)
    return "id, text, score, and the factors"


@row("65", "type and reinforce_count are set")
def counted(desk: Desk) -> str:
    memory = desk.memory("minilm")
    done = [memory.remember(COOLED) for _ in range(4)][-1]
    record = memory.get(done.id)
    assert (record.type, record.reinforce_count, done.action) == ("semantic", 3, "reinforced")
    return "semantic; 3 after four times"


@row("61, 65", "a fact that is said again in nearly the same words is restated")
def restated(desk: Desk) -> str:
    memory = desk.memory("minilm")
    first = memory.remember(VITEST)
    for text in ("the user prefers vitest over jest", "The user prefers vitest over jest!"):
        memory.remember(text)
    assert memory.get(first.id).reinforce_count == 2
    memory.remember("The user likes vitest more than jest.")
    assert memory.get(first.id).reinforce_count == 2
    return "another case or final sign reinforces; a free paraphrase is a memory of its own"


@row("70-81", "the SDK example: minScore 0.85")
def example(desk: Desk) -> str:
    (hit,) = known(desk).recall("prefers vitest over jest", top_k=3, min_score=0.85)
    assert (hit.path, hit.payload) == ("user.preferences.testing", {"framework": "vitest"})
    return f"score {hit.score:.2f}"


@row(
    "81",
    "a memory is a path and a payload",
    on_purpose="docs/seeds.md#a-memory-has-a-text",
)
def text_required(desk: Desk) -> str:
    memory = desk.memory("minilm")
    refusals(InvalidInput, lambda text: memory.remember(text, **PREFERRED), ("", " ", None))
    memory.remember("testing", **PREFERRED)
    hits = memory.recall("testing", min_confidence=0)
    assert [(hit.path, hit.payload) for hit in hits] == [(PREFERRED["path"], PREFERRED["payload"])]
    return "the text is what is searched; path and payload come with it"
