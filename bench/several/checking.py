"""After the load: whether a server has what was acknowledged, once, in order, and nothing more.

In: a client that asks one server, and the ledger. Out: `Found`, the sentences about what is wrong
by kind. Every acknowledged memory and turn is fetched and recalled by its own words. What is not
recalled counts at once, however the server excuses itself; the sentence tells what it excused
itself with, where the thing stood, and whether it was recalled a moment later.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from bench.several.asking import Client
from bench.several.ledger import Fact, Ledger, Place, Said

__all__ = ["Found", "check"]

_PAGE = 1_000
# A thing that was not recalled is asked for again, after a while, and as one of many.
_AGAIN_SECONDS = 1.0
_MANY = 50


@dataclass(slots=True)
class Found:
    """What one server has against the ledger; each list should be empty.

    `state` is all that the server lists, to be compared with the other servers'. `unknown` counts
    what of the requests without an answer turned out to have been carried out.
    """

    lost: list[str] = field(default_factory=list)
    not_recalled: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    revived: list[str] = field(default_factory=list)
    disordered: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unknown: int = 0
    state: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class _Check:
    client: Client
    server: int
    ledger: Ledger
    found: Found

    def ask(self, namespace: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        given = self.client.ask("check", namespace, method, path, body, server=self.server)
        if given.status >= 500:
            self.found.failed.append(f"{method} {path}: {given.status} {given.body}")
        return given.status, given.body

    def memories(self, namespace: str) -> dict[str, dict[str, Any]]:
        """All that the server lists, by id."""
        listed: dict[str, dict[str, Any]] = {}
        cursor = None
        while True:
            more = "" if cursor is None else f"&cursor={quote(cursor)}"
            _, page = self.ask(namespace, "GET", f"/v1/memories?limit={_PAGE}{more}")
            for item in page["items"]:
                if item["id"] in listed:
                    self.found.twice.append(f"{item['id']} is listed twice")
                listed[item["id"]] = item
            cursor = page.get("cursor")
            if cursor is None:
                return listed

    def current(self, namespace: str) -> None:
        """Memories: each acknowledged one once, the unknown ones at most once, no other."""
        book = self.ledger
        listed = self.memories(namespace)
        standing = {i: one for i, one in listed.items() if one.get("valid_to") is None}
        self.found.state.append((namespace, sorted((i, r["text"]) for i, r in listed.items())))
        kept = [fact for fact in book.kept.values() if fact.namespace == namespace]
        unsure = [fact for fact, _ in book.maybe_replaced] + book.maybe_gone
        self._nothing_else(namespace, standing, {fact.text for fact in (*kept, *unsure)})
        may_miss = {fact.id for fact in unsure}
        for fact in kept:
            (self._either if fact.id in may_miss else self._kept)(fact, standing)
        for fact in book.replaced:
            if fact.namespace == namespace:
                self._past(fact, standing)
        for fact in book.gone:
            if fact.namespace == namespace:
                self._gone(fact, listed)

    def _nothing_else(self, namespace: str, standing: dict[str, Any], told: set[str]) -> None:
        """No text twice, and none that nobody acknowledged or may have sent."""
        book, found = self.ledger, self.found
        doubtful = {text for where, text in book.maybe if where == namespace}
        doubtful |= {text for fact, text in book.maybe_replaced if fact.namespace == namespace}
        texts = Counter(one["text"] for one in standing.values())
        for text, times in texts.items():
            if times > 1:
                found.twice.append(f"{times} times: {text}")
            if text not in told | doubtful:
                found.revived.append(f"nobody acknowledged {text}")
        found.unknown += len(doubtful & texts.keys())

    def _kept(self, fact: Fact, standing: dict[str, Any]) -> None:
        status, seen = self.ask(fact.namespace, "GET", f"/v1/memories/{fact.id}")
        if status != 200 or seen["text"] != fact.text or fact.id not in standing:
            self.found.lost.append(f"{fact}: {status}")
        seen = self._recall(fact)
        if fact.id not in [hit["id"] for hit in seen["hits"]]:
            body = _question(fact)
            self._missed(str(fact), (fact.namespace, "/v1/recall", body), seen, ("id", fact.id))

    def _either(self, fact: Fact, standing: dict[str, Any]) -> None:
        """A lost change: either the old words or the new ones stand; a lost forgetting: any."""
        newer = [text for old, text in self.ledger.maybe_replaced if old.id == fact.id]
        texts = [one["text"] for one in standing.values()]
        stand = sum(texts.count(text) for text in (fact.text, *newer))
        if newer and stand != 1:
            self.found.lost.append(f"{fact} was being changed to {newer}: {stand} of them stand")

    def _past(self, fact: Fact, standing: dict[str, Any]) -> None:
        if fact.id in standing or fact.id in self._recalled(fact):
            self.found.revived.append(f"replaced, and there: {fact}")

    def _gone(self, fact: Fact, listed: dict[str, Any]) -> None:
        status, _ = self.ask(fact.namespace, "GET", f"/v1/memories/{fact.id}")
        if status != 404 or fact.id in listed or fact.id in self._recalled(fact):
            self.found.revived.append(f"forgotten, and there: {fact}")

    def _recalled(self, fact: Fact) -> list[str]:
        return [hit["id"] for hit in self._recall(fact)["hits"]]

    def _recall(self, fact: Fact) -> Any:
        _, seen = self.ask(fact.namespace, "POST", "/v1/recall", _question(fact))
        ids = [hit["id"] for hit in seen["hits"]]
        if len(set(ids)) < len(ids):
            self.found.twice.append(f"recalled twice: {fact}")
        return seen

    def conversation(self, place: Place, acknowledged: dict[int, Said]) -> None:
        """Turns: each at the place that was told, the unknown ones at most once, in order."""
        namespace, name = place
        status, seen = self.ask(namespace, "GET", f"/v1/conversations/{name}")
        if status == 404 and not acknowledged:
            return
        if status != 200:
            self.found.lost.append(f"{place}: {status}")
            return
        texts = [turn["text"] for turn in seen["turns"]]
        self.found.state.append((*place, texts))
        self._no_other_turn(place, texts, acknowledged)
        serials: dict[int, list[int]] = defaultdict(list)
        for index, turn in sorted(acknowledged.items()):
            if texts[index : index + 1] != [turn.text]:
                self.found.lost.append(f"turn {index} of {place}: {turn}")
            serials[turn.client].append(turn.serial)
            self._turn_recalled(place, index, turn)
        for client, order in serials.items():
            if order != sorted(order):
                self.found.disordered.append(f"turns of client {client} in {place}: {order}")

    def _no_other_turn(self, place: Place, texts: list[str], known: dict[int, Said]) -> None:
        """No turn twice, and none that nobody acknowledged or may have sent."""
        maybe = {turn.text for where, turn in self.ledger.maybe_turns if where == place}
        for text, times in Counter(texts).items():
            if times > 1:
                self.found.twice.append(f"{times} times in {place}: {text}")
        for index, text in enumerate(texts):
            if index in known:
                continue
            if text in maybe:
                self.found.unknown += 1
            else:
                self.found.revived.append(f"nobody acknowledged turn {index} of {place}: {text}")

    def _turn_recalled(self, place: Place, index: int, turn: Said) -> None:
        path = "/v1/conversations/recall"
        body = {"query": turn.text, "conversation_id": place[1]}
        _, seen = self.ask(place[0], "POST", path, body)
        if index not in [hit["index"] for hit in seen["hits"]]:
            what = f"turn {index} of {place}: {turn}"
            self._missed(what, (place[0], path, body), seen, ("index", index))

    def _missed(
        self, what: str, question: tuple[str, str, Any], seen: Any, wanted: tuple[str, object]
    ) -> None:
        """Note what an answer (`seen`) lacked, and all that tells why."""
        namespace, path, body = question
        key, value = wanted
        _, wide = self.ask(namespace, "POST", path, body | {"top_k": _MANY})
        standing = [hit for hit in wide["hits"] if hit[key] == value]
        time.sleep(_AGAIN_SECONDS)
        _, later = self.ask(namespace, "POST", path, body)
        self.found.not_recalled.append(
            f"{what}; it said {seen['degraded']}, its best was {seen['hits'][:1]}; "
            f"among {_MANY} {standing or 'it was not either'}; a second later "
            f"{'recalled' if value in [hit[key] for hit in later['hits']] else 'not either'}, "
            f"and it said {later['degraded']}"
        )


def _question(fact: Fact) -> dict[str, object]:
    return {"query": fact.text, "top_k": 3}


def check(client: Client, server: int, ledger: Ledger, namespaces: tuple[str, ...]) -> Found:
    """Compare one server with the ledger."""
    one = _Check(client, server, ledger, Found())
    for namespace in namespaces:
        one.current(namespace)
    for place in sorted(ledger.turns):
        one.conversation(place, ledger.turns[place])
    for place in {place for place, _ in ledger.maybe_turns} - ledger.turns.keys():
        one.conversation(place, {})
    return one.found
