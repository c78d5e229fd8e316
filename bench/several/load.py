"""The mixed load: what one client does, request after request, and what it notes in the ledger.

In: a client, the ledger, a random source. Out: entries of the ledger, wrong answers in the tally.
What has no answer is either asked again, in the way that `docs/scale.md` gives to clients, or left
as it is and noted as unknown, by turns.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.several.asking import Answer, Client, Lost, NoServer, Tally
from bench.several.ledger import Fact, Ledger, Place, Said, Words

__all__ = ["Watcher", "Worker"]

# How much of the load each operation is.
SHARES = {
    "remember": 24,
    "append": 26,
    "recall": 20,
    "recall_conversation": 12,
    "update": 7,
    "forget": 6,
    "list": 5,
}
# PostgreSQL ends or undoes the transaction of a process that was killed within moments; only then
# does a look at the conversation tell whether the turn is there.
_SETTLED_SECONDS = 1.0
_TRIES = 10


@dataclass(slots=True)
class Worker:
    """One client of the load. `number` tells it from the others."""

    number: int
    client: Client
    tally: Tally
    ledger: Ledger
    words: Words
    namespaces: Sequence[str]
    random: random.Random
    _serial: int = 0
    _lost: int = 0
    _own: list[Fact] = field(default_factory=list)

    def run(self, stop: Callable[[], bool]) -> None:
        """Ask until told to stop."""
        does = {
            "remember": self._remember,
            "append": self._append,
            "recall": self._recall,
            "recall_conversation": self._recall_conversation,
            "update": self._update,
            "forget": self._forget,
            "list": self._list,
        }
        names, weights = list(SHARES), list(SHARES.values())
        try:
            while not stop():
                does[self.random.choices(names, weights)[0]](self.random.choice(self.namespaces))
        finally:
            self.client.close()

    # Writing.

    def _remember(self, namespace: str) -> None:
        text = self.words.text()
        body = {"text": text, "tags": [f"client-{self.number}"]}
        given = self._surely(
            lambda: self.client.ask("remember", namespace, "POST", "/v1/memories", body),
            lambda: self.ledger.unknown(lambda book: book.maybe.append((namespace, text))),
        )
        if given is None or not self._is_good("remember", given, 200, 201):
            return
        fact = Fact(namespace, given.body["id"], text)
        stable = self.random.random() < 0.6
        self.ledger.keep(fact, stable=stable)
        if not stable:
            self._own.append(fact)

    def _append(self, namespace: str) -> None:
        """To a conversation of its own, or to one that all clients write to."""
        own = self.random.random() < 0.5
        name = f"own-{self.number}" if own else f"shared-{self.random.randrange(2)}"
        place: Place = (namespace, name)
        self._serial += 1
        mark = f"{self.number}.{self._serial}"
        turn = Said(self.words.text(), mark, self.number, self._serial)
        role = "user" if self._serial % 2 else "assistant"
        body = {"turns": [{"role": role, "text": turn.text, "intent_id": mark}]}
        path = f"/v1/conversations/{name}/turns"
        try:
            given = self.client.ask("append", namespace, "POST", path, body)
        except Lost:
            if not self._asks_again():
                self.ledger.unknown(lambda book: book.maybe_turns.append((place, turn)))
                return
            found = self._append_again(place, turn, path, body)
            if found is not None:
                self.ledger.said(place, found, turn)
            return
        if self._is_good("append", given, 201):
            self.ledger.said(place, given.body["indexes"][0], turn)

    def _append_again(self, place: Place, turn: Said, path: str, body: Any) -> int | None:
        """Look whether the turn is there by its intent_id, and send it again only if it is not."""
        time.sleep(_SETTLED_SECONDS)
        namespace, name = place
        seen = self.client.ask("get", namespace, "GET", f"/v1/conversations/{name}")
        turns = seen.body["turns"] if seen.good else []
        there = [i for i, one in enumerate(turns) if one.get("intent_id") == turn.mark]
        if there:
            return there[0]
        given = self.client.ask("append", namespace, "POST", path, body)
        good = self._is_good("append", given, 201)
        return int(given.body["indexes"][0]) if good else None

    def _update(self, namespace: str) -> None:
        fact = self._taken()
        if fact is None:
            return
        text = self.words.text()
        path = f"/v1/memories/{fact.id}"
        body = {"text": text}
        try:
            given = self.client.ask("update", fact.namespace, "PATCH", path, body)
        except Lost:
            if not self._asks_again():
                self.ledger.unknown(lambda book: book.maybe_replaced.append((fact, text)))
                return
            # The older version names the newer one, where there is one.
            time.sleep(_SETTLED_SECONDS)
            seen = self.client.ask("get", fact.namespace, "GET", path)
            newer = seen.body.get("superseded_by")
            if newer is not None:
                self.ledger.replace(fact, Fact(fact.namespace, newer, text))
                return
            given = self.client.ask("update", fact.namespace, "PATCH", path, body)
        if self._is_good("update", given, 200):
            new = Fact(fact.namespace, given.body["id"], text)
            self.ledger.replace(fact, new)
            if self.random.random() < 0.5:
                self._own.append(new)

    def _forget(self, namespace: str) -> None:
        fact = self._taken()
        if fact is None:
            return
        path = f"/v1/memories/{fact.id}"
        lost = self._lost
        given = self._surely(
            lambda: self.client.ask("forget", fact.namespace, "DELETE", path),
            lambda: self.ledger.unknown(lambda book: book.maybe_gone.append(fact)),
        )
        # Asked again, it may say that it is gone already.
        allowed = (200, 404) if self._lost > lost else (200,)
        if given is not None and self._is_good("forget", given, *allowed):
            self.ledger.forget(fact)

    # Reading.

    def _recall(self, namespace: str) -> None:
        fact = self.ledger.any_fact(self.random)
        if fact is None:
            return
        body = {"query": fact.text, "top_k": 3}
        given = self._read("recall", fact.namespace, "POST", "/v1/recall", body)
        if given is not None and fact.id not in [hit["id"] for hit in given["hits"]]:
            self.tally.mistake(f"recall did not find {fact}")

    def _recall_conversation(self, namespace: str) -> None:
        chosen = self.ledger.any_turn(self.random)
        if chosen is None:
            return
        (where, name), index, turn = chosen
        body = {"query": turn.text, "conversation_id": name}
        path = "/v1/conversations/recall"
        given = self._read("recall_conversation", where, "POST", path, body)
        if given is not None and index not in [hit["index"] for hit in given["hits"]]:
            self.tally.mistake(f"recall did not find turn {index} of {name} in {where}: {turn}")

    def _list(self, namespace: str) -> None:
        path = self.random.choice(("/v1/memories?limit=50", "/v1/conversations"))
        self._read("list", namespace, "GET", path)

    def _read(self, what: str, namespace: str, method: str, path: str, body: Any = None) -> Any:
        """The body of an answer; a read that was lost is simply asked again, elsewhere."""
        for _ in range(_TRIES):
            try:
                given = self.client.ask(what, namespace, method, path, body)
            except Lost:
                continue
            return given.body if self._is_good(what, given, 200) else None
        raise NoServer(what)

    # What to do about a lost request.

    def _surely(self, ask: Callable[[], Any], unknown: Callable[[], object]) -> Any:
        """The answer of a request that may be sent twice; None where it is left unknown."""
        for _ in range(_TRIES):
            try:
                return ask()
            except Lost:
                if not self._asks_again():
                    unknown()
                    return None
        raise NoServer("asked again too often")

    def _asks_again(self) -> bool:
        self._lost += 1
        again = (self._lost + self.number) % 2 == 0
        if again:
            self.ledger.unknown(lambda book: setattr(book, "retried", book.retried + 1))
        return again

    def _is_good(self, what: str, given: Any, *allowed: int) -> bool:
        if given.status in allowed:
            return True
        if given.status < 500:
            self.tally.mistake(f"{what}: {given.status} {given.body}")
        return False

    def _taken(self) -> Fact | None:
        """One of this client's own memories, which nobody else changes; it leaves the list."""
        if not self._own:
            return None
        return self._own.pop(self.random.randrange(len(self._own)))


@dataclass(slots=True)
class Watcher:
    """Writes on one server and looks for it on the others, at once and until it is seen.

    `seconds` are from the acknowledgement to the end of the first answer that has it, `late` how
    many answers did not have it yet, and `told` what such an answer was and said of itself.
    """

    client: Client
    tally: Tally
    ledger: Ledger
    words: Words
    namespaces: Sequence[str]
    servers: int
    random: random.Random
    pause: float
    seconds: list[float] = field(default_factory=list)
    looks: int = 0
    late: int = 0
    told: list[str] = field(default_factory=list)
    _serial: int = 0

    def run(self, stop: threading.Event) -> None:
        """Write and look until told to stop."""
        try:
            while not stop.wait(self.pause):
                one, *others = self.random.sample(range(self.servers), self.servers)
                write = self.random.choice((self._fact, self._turn))
                try:
                    look = write(one)
                except (Lost, NoServer):
                    continue
                self._look(look, others)
        finally:
            self.client.close()

    def _look(self, look: tuple[Callable[[int], bool], float] | None, others: list[int]) -> None:
        if look is None:
            return
        is_there, written = look
        for place, other in enumerate(others):
            try:
                for _ in range(1_000):
                    self.looks += 1
                    if is_there(other):
                        break
                    self.late += 1
                else:
                    self.tally.mistake(f"server {other} never saw a write")
            except (Lost, NoServer):
                continue
            if place == 0:
                self.seconds.append(time.monotonic() - written)

    def _fact(self, server: int) -> tuple[Callable[[int], bool], float] | None:
        namespace, text = self.random.choice(self.namespaces), self.words.text()
        try:
            given = self.client.ask(
                "remember", namespace, "POST", "/v1/memories", {"text": text}, server=server
            )
        except Lost:
            self.ledger.unknown(lambda book: book.maybe.append((namespace, text)))
            raise
        if given.status != 201:
            return None
        fact = Fact(namespace, given.body["id"], text)
        self.ledger.keep(fact, stable=True)

        def is_there(other: int) -> bool:
            body = {"query": text, "top_k": 3}
            seen = self.client.ask("recall", namespace, "POST", "/v1/recall", body, server=other)
            return self._has(seen, "id", fact.id, text)

        return is_there, given.done

    def _turn(self, server: int) -> tuple[Callable[[int], bool], float] | None:
        place: Place = (self.random.choice(self.namespaces), "watched")
        self._serial += 1
        turn = Said(self.words.text(), f"w.{self._serial}", -1, self._serial)
        body = {"turns": [{"role": "user", "text": turn.text, "intent_id": turn.mark}]}
        path = f"/v1/conversations/{place[1]}/turns"
        try:
            given = self.client.ask("append", place[0], "POST", path, body, server=server)
        except Lost:
            self.ledger.unknown(lambda book: book.maybe_turns.append((place, turn)))
            raise
        if given.status != 201:
            return None
        index = given.body["indexes"][0]
        self.ledger.said(place, index, turn)

        def is_there(other: int) -> bool:
            asked = {"query": turn.text, "conversation_id": place[1]}
            seen = self.client.ask(
                "recall_conversation",
                place[0],
                "POST",
                "/v1/conversations/recall",
                asked,
                server=other,
            )
            return self._has(seen, "index", index, turn.text)

        return is_there, given.done

    def _has(self, seen: Answer, key: str, value: object, text: str) -> bool:
        there = seen.good and value in [hit[key] for hit in seen.body["hits"]]
        if not there:
            self.told.append(f"server {seen.server} did not have {text} yet: {seen.body}")
        return there
