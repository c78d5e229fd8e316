"""What contestants cost at the size of a diligent user's memory: about 7,000 texts in one space.

In: the turns of all chats, their questions. Out: figures by contestant. All embed with the same
model in 8 bits in their own process, two threads; Chroma also with its default model, the same in
32 bits. `add` is timed with vectors looked up, so that it is the store's own work; embedding is the
same for all and is named by itself. Then the process ends, and another opens the store that it
left, cold, without known vectors: its opening, first answer, questions and memory are measured.
mem0 waits for the disk twice with each text: its adding is timed over the first 500 texts, and the
store that is asked is filled on a memory file system and copied.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.compare.asked import Chat
from bench.compare.contestants import Child, Contestant, Failed
from bench.compare.quality import Place, somewhere
from bench.figures import percentile

__all__ = ["ADDS", "ASKED", "LIMIT", "speed"]

LIMIT = "Limit of this machine"
"""What no store with an exact answer and a durable write goes below: see `_limit`."""

ASKED = 100
ADDS = 30
FEWER = 500
"""Texts that adding is timed over where each is written by a call of its own."""
ASKERS = 16
DELETED = 10
_WIDTH = 384
_BETWEEN = 24_000_000
"""Bytes of the model's weights."""
_SPACE = "memories"
_RESULTS = 10

Figures = dict[str, float]
Text = tuple[str, str, str]


def speed(
    place: Place, found: Sequence[Chat], who: Sequence[Contestant], most: int | None = None
) -> dict[str, Figures]:
    """Figures by contestant as shown, over the first `most` texts."""
    texts = [(item.id, item.text, item.at) for chat in found for item in chat.items][:most]
    asked = [question.text for chat in found for question in chat.questions]
    every = list(dict.fromkeys(asked))
    asked = every[:: max(1, len(every) // (ASKED + 1))][: ASKED + 1]
    # Nobody has met these yet.
    others = [one for one in every if one not in asked]
    given: dict[str, Figures] = {}
    for one in who:
        print(f"speed: {one.shown}", flush=True)
        given[one.shown] = _measured(place, one, texts, (asked, others), None)
        if one.name == "chroma" and place.chroma_model is not None:
            name = f"{one.shown}, its default model"
            print(f"speed: {name}", flush=True)
            given[name] = _measured(place, one, texts, (asked, others), place.chroma_model)
    own = given.get("Anaphora")
    return given if own is None else given | {LIMIT: _limit(len(texts), own)}


def _limit(texts: int, own: Figures) -> Figures:
    """One embedding as Anaphora makes it, one pass over one vector for each text, one fsync."""
    vectors = np.random.default_rng(0).standard_normal((texts, _WIDTH)).astype(np.float32)
    others = np.ones(_BETWEEN // 8)
    passes, syncs = [], []
    with (
        tempfile.TemporaryDirectory(prefix="compare-") as folder,
        (Path(folder) / "log").open("wb", buffering=0) as log,
    ):
        for _ in range(ASKED):
            # What a model reads between two questions: the vectors are not in the cache.
            others.sum()
            passes.append(1000 * _seconds(vectors.sum))
            log.write(bytes(4096))
            syncs.append(1000 * _seconds(lambda: os.fsync(log.fileno())))
    once, durable = percentile(passes, 0.5), percentile(syncs, 0.5)
    asking = own["query, p50 ms"] - own["query less embedding, p50 ms"]
    adding = own["one add, p50 ms"] - own["one add less embedding, p50 ms"]
    return {
        "query, p50 ms": asking + once,
        "query less embedding, p50 ms": once,
        "one add, p50 ms": adding + durable,
        "one add less embedding, p50 ms": durable,
    }


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _measured(
    place: Place,
    one: Contestant,
    texts: Sequence[Text],
    questions: tuple[Sequence[str], Sequence[str]],
    chroma_model: Path | None,
) -> Figures:
    figures: Figures = {}
    asked, at_once = questions
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        home = Path(folder)
        store = home / "store"
        if one.name == "mem0":
            figures["add, texts/s"] = _filled(place, one, texts[:FEWER], home / "few")
            with somewhere() as memory:
                _filled(place, one, texts, Path(memory) / "store")
                shutil.copytree(Path(memory) / "store", store)
        with Child(one, place.environments, home=home) as child:
            child.ask("open", **place.opening(one.name, store))
            if one.name != "mem0":
                figures["add, texts/s"] = _added(child, texts)
            if one.name == "langgraph_memory":
                # It has no file to open again. In this process questions are looked up, so that
                # only its own work can be told.
                told = _asked(child, asked).items()
                return figures | {name: value for name, value in told if "less" in name}
            child.ask("close")
        figures["on disk, MB"] = _size(store)
        cold = {"folder": str(store), "model": str(place.model)}
        if chroma_model is not None:
            cold["chroma_model"] = str(chroma_model)
        began = time.perf_counter()
        with Child(one, place.environments, home=home) as child:
            child.ask("open", **cold)
            child.ask("search", space=_SPACE, query=asked[-1], k=_RESULTS)
            figures["cold process to first answer, s"] = time.perf_counter() - began
            figures.update(_asked(child, asked))
            figures["resident, MB"] = float(child.ask("memory").result)
            figures.update(_at_once(child, at_once))
            figures.update(_kept(child))
            figures.update(_deleted(child, [one for one, _, _ in texts]))
    return figures


def _filled(place: Place, one: Contestant, texts: Sequence[Text], store: Path) -> float:
    """Fill a store in a process of its own; texts a second."""
    store.mkdir(parents=True)
    with Child(one, place.environments, home=store.parent) as child:
        child.ask("open", **place.opening(one.name, store))
        rate = _added(child, texts)
        child.ask("close")
    return rate


def _added(child: Child, texts: Sequence[Text]) -> float:
    added = child.ask("add", space=_SPACE, texts=texts)
    return len(texts) / (added.seconds - added.embedding)


def _asked(child: Child, asked: Sequence[str]) -> Figures:
    child.ask("search", space=_SPACE, query=asked[-1], k=_RESULTS)
    whole, bare = [], []
    for text in asked[:-1]:
        got = child.ask("search", space=_SPACE, query=text, k=_RESULTS)
        whole.append(1000 * got.seconds)
        bare.append(1000 * (got.seconds - got.embedding))
    return {
        "query, p50 ms": percentile(whole, 0.5),
        "query, p99 ms": percentile(whole, 0.99),
        "query less embedding, p50 ms": percentile(bare, 0.5),
        "query less embedding, p99 ms": percentile(bare, 0.99),
    }


def _kept(child: Child) -> Figures:
    """One text after the other, each embedded, as an agent remembers."""
    whole, bare = [], []
    for number in range(ADDS):
        text: Any = (f"one-{number}", f"Note {number}: the meeting moved to room {number}.", "")
        got = child.ask("add", space=_SPACE, texts=[text])
        whole.append(1000 * got.seconds)
        bare.append(1000 * (got.seconds - got.embedding))
    return {
        "one add, p50 ms": percentile(whole, 0.5),
        "one add less embedding, p50 ms": percentile(bare, 0.5),
    }


def _at_once(child: Child, asked: Sequence[str]) -> Figures:
    """Questions of several threads in one process, as of a server's connections."""
    try:
        got = child.ask(
            "search_at_once", space=_SPACE, queries=list(asked), k=_RESULTS, askers=ASKERS
        )
    except Failed as error:
        # Some may only be asked by the thread that opened them.
        print(f"  {ASKERS} threads: {error}", flush=True)
        return {}
    return {f"{ASKERS} threads, answers/s": len(asked) / got.seconds}


def _deleted(child: Child, known: Sequence[str]) -> Figures:
    """One text after the other is removed; then the store is closed, which may clean up."""
    some = known[:: len(known) // (DELETED + 1)][: DELETED + 1]
    times = [1000 * child.ask("delete", space=_SPACE, item=one).seconds for one in some]
    closed = child.ask("close").seconds
    return {"one delete, p50 ms": percentile(times[1:], 0.5), "closed after that, s": closed}


def _size(folder: Path) -> float:
    files = (p for p in folder.rglob("*") if p.is_file() and "chroma-model" not in p.parts)
    return sum(p.stat().st_size for p in files) / 1e6
