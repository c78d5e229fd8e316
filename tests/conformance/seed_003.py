"""Recall of lasting memories: local, warm, filtered, and ranked by reinforcement and decay."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from tests.conformance.desk import PREFERRED, Desk, preferring
from tests.conformance.table import ROOT, Seed, refusal, refusals
from tests.docs.reference_pages import reference_page

from anaphora import Memory, MemoryHit, RecallMode, RemoteMemory
from anaphora.errors import AnaphoraError, InvalidInput, NotOffered
from anaphora.index.memories.vectors import STEP
from anaphora.settings import EXACT_CAP, load_settings

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


@row("29-36, 70-78", "a JavaScript SDK", on_purpose="docs/seeds.md#no-javascript-sdk")
def no_javascript(desk: Desk) -> str:
    assert not list(ROOT.glob("clients/*/package.json"))
    paths = desk.client().get("/openapi.json").json()["paths"]
    assert {"/v1/recall", "/v1/memories"} <= set(paths)
    with RemoteMemory.connect("http://127.0.0.1:1", token="x") as remote:
        refusal(NotOffered, lambda: remote.on("cache", print))
    return "Python, HTTP (OpenAPI, from which a client can be made), MCP; cache events in process"
