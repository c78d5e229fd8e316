"""What each contestant costs: time of the wall and of the processor, bytes, memory.

In: texts with known vectors, and questions. Out: figures by contestant; `CPU` after a figure's name
is the same by the processor, which a busy machine changes little.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import sleep
from typing import Any, Final, TypeAlias

import numpy as np

from anaphora.embed.minilm import MINILM
from bench.compare.measuring import Place, Text
from bench.compare.process import Answer, Child, Contestant, Failed
from bench.compare.vectors import clock
from bench.figures import percentile
from bench.measuring import size_of

__all__ = ["CPU", "Costs", "measure_costs"]

Costs: TypeAlias = dict[str, Any]
CPU: Final = ", CPU"

ASKED: Final = 200
ADDS: Final = 30
ASKERS: Final = 16
AT_ONCE: Final = 320
DELETED: Final = 10
AGAIN: Final = 20
BULK: Final = 50_000
"""Texts a call: what a program that fills a store has in memory."""
FEWER: Final = 500
"""The same where each text is written by a call of its own."""
REST: Final = 20.0
"""Seconds in which a filled store is left alone, before it is closed."""
_SPACE: Final = "memories"
_RESULTS: Final = 10
_MEASURED: Final = ("", CPU)


def measure_costs(
    place: Place, who: Sequence[Contestant], texts: Sequence[Text], questions: Sequence[str]
) -> dict[str, Costs]:
    """Costs of all texts in one space, by contestant.

    Adding in bulk is timed with vectors looked up. After a rest the process ends, and another opens
    the store that it left, cold, without known vectors.
    """
    costs = {}
    for one in who:
        print(f"speed: {one.shown}, {len(texts):,} texts", flush=True)
        with tempfile.TemporaryDirectory(prefix="compare-") as folder:
            costs[one.shown] = _cost(place, one, Path(folder), texts, questions)
    off, on = costs.get("Anaphora"), costs.get("Anaphora, reader on")
    if off and on:
        for name in _MEASURED:
            bare = "query less embedding, p50 ms" + name
            on["one candidate read, ms" + name] = (on[bare] - off[bare]) / on["candidates read"]
    return costs


def _cost(
    place: Place, one: Contestant, home: Path, texts: Sequence[Text], questions: Sequence[str]
) -> Costs:
    asked, others = questions[: ASKED + 1], questions[ASKED + 1 :][:AT_ONCE]
    store = home / "store"
    is_slow = one.name == "mem0"
    with Child(one, place.environments, home) as child:
        child.ask("open", **place.opening(one.name, store))
        child.ask("add", space=_SPACE, texts=[("first", "All that is needed is loaded.", "")])
        costs = _added(child, texts[:FEWER] if is_slow else texts)
        if one.name == "langgraph_memory":
            # It has no file to open again: only its own work can be told.
            own = _questions(child, asked).items()
            return costs | {name: value for name, value in own if "less" in name}
        if is_slow:
            _added(child, texts[FEWER:])
        # Whatever a store does in the background goes on meanwhile.
        sleep(REST)
        child.ask("close")
    costs["on disk, MB"] = size_of(store) / 1e6
    began = clock()
    with Child(one, place.environments, home) as child:
        opened = child.ask("open", folder=str(store), model=str(MINILM))
        first = child.ask("search", space=_SPACE, query=asked[-1], k=_RESULTS)
        cold = clock()[0] - began[0], child.ask("state").result["processor"]
        costs |= _measured("cold process to first answer, s", cold)
        opening = np.add(opened.spent, first.bare)
        costs |= _measured("opened and first answer less embedding, ms", 1000 * opening)
        costs |= _questions(child, asked)
        costs |= _again(child, asked[:AGAIN])
        state = child.ask("state").result
        costs["resident, MB"] = state["resident"]
        costs["synchronous"] = state["durability"]
        if state["judged"]:
            costs["candidates read"] = state["judged"] / (len(asked) + 1)
        costs |= _at_once(child, others)
        costs |= _single(child, [name for name, _, _ in texts])
    if one.name.startswith("anaphora"):
        costs |= _compared(place, one, home, asked[:AGAIN])
    return costs


def _added(child: Child, texts: Sequence[Text]) -> Costs:
    starts = range(0, len(texts), BULK)
    answers = [child.ask("add", space=_SPACE, texts=texts[at : at + BULK]) for at in starts]
    answers.append(child.ask("ready"))
    return _measured("add, texts/s", len(texts) / _bare(answers).sum(axis=0))


def _questions(child: Child, asked: Sequence[str]) -> Costs:
    child.ask("search", space=_SPACE, query=asked[-1], k=_RESULTS)
    answers = [child.ask("search", space=_SPACE, query=q, k=_RESULTS) for q in asked[:-1]]
    costs: Costs = {}
    for share in (50, 99):
        costs |= _percentile(f"query, p{share} ms", _whole(answers), share)
        costs |= _percentile(f"query less embedding, p{share} ms", _bare(answers), share)
    return costs


def _again(child: Child, asked: Sequence[str]) -> Costs:
    """Each question, and at once the same one: the second counts."""
    again = []
    for question in asked:
        child.ask("search", space=_SPACE, query=question, k=_RESULTS)
        again.append(child.ask("search", space=_SPACE, query=question, k=_RESULTS))
    return _percentile("the same question again, p50 ms", _whole(again), 50)


def _at_once(child: Child, asked: Sequence[str]) -> Costs:
    """Questions of several threads in one process, as of a server's connections."""
    options = {"queries": list(asked), "k": _RESULTS, "askers": ASKERS}
    try:
        answer = child.ask("search_at_once", space=_SPACE, **options)
    except Failed as error:
        # Some may only be asked by the thread that opened them.
        print(f"  {ASKERS} threads: {error}", flush=True)
        return {}
    return _measured(f"{ASKERS} threads, answers/s", len(asked) / np.array(answer.spent))


def _single(child: Child, names: Sequence[str]) -> Costs:
    """One text after the other is added, as an agent remembers, and removed; then the store is
    closed, which may clean up."""
    answers = []
    for number in range(ADDS):
        text = (f"one-{number}", f"Note {number}: the meeting moved to room {number}.", "")
        answers.append(child.ask("add", space=_SPACE, texts=[text]))
    some = names[:: len(names) // (DELETED + 1)][: DELETED + 1]
    gone = [child.ask("delete", space=_SPACE, item=name) for name in some]
    closed = child.ask("close").spent
    return {
        **_percentile("one add, p50 ms", _whole(answers), 50),
        **_percentile("one add less embedding, p50 ms", _bare(answers), 50),
        **_percentile("one delete, p50 ms", _whole(gone[1:]), 50),
        **_measured("closed after that, s", closed),
    }


def _compared(place: Place, one: Contestant, home: Path, asked: Sequence[str]) -> Costs:
    """Whole answers of a process that was asked before, which keeps them, and of one that was not,
    at the same clock: as they are, and after another process wrote."""
    opening = {"folder": str(home / "store"), "model": str(MINILM), "now": "2030-01-01T00:00:00Z"}
    differing = 0

    def answers(child: Child) -> list[Any]:
        return [child.ask("answer", space=_SPACE, query=q, k=_RESULTS).result for q in asked]

    def fresh() -> list[Any]:
        with Child(one, place.environments, home) as child:
            child.ask("open", **opening)
            return answers(child)

    with Child(one, place.environments, home) as child:
        child.ask("open", **opening)
        before = answers(child)
        differing += _differing(before, answers(child)) + _differing(before, fresh())
        with Child(one, place.environments, home) as other:
            other.ask("open", **opening)
            texts = [(f"other-{at}", f"I was asked: {q}", "") for at, q in enumerate(asked)]
            other.ask("add", space=_SPACE, texts=texts)
        after = answers(child)
        differing += _differing(after, answers(child)) + _differing(after, fresh())
        changed = _differing(before, after)
    return {
        "kept answers that differ from new ones": differing,
        f"answers of {len(asked)} that another process's writes changed": changed,
    }


def _differing(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Answers with other hits, or with scores that are more than a millionth apart."""
    return sum(
        [words for words, _ in one] != [words for words, _ in other]
        or not np.allclose([s for _, s in one], [s for _, s in other], rtol=0, atol=1e-6)
        for one, other in zip(first, second, strict=True)
    )


def _whole(answers: Sequence[Answer]) -> Any:
    return np.array([answer.spent for answer in answers])


def _bare(answers: Sequence[Answer]) -> Any:
    return np.array([answer.bare for answer in answers])


def _percentile(name: str, seconds: Any, share: int) -> Costs:
    return _measured(name, [1000 * percentile(column, share / 100) for column in seconds.T])


def _measured(name: str, pair: Sequence[float] | Any) -> Costs:
    return {name + ending: float(cost) for ending, cost in zip(_MEASURED, pair, strict=True)}
