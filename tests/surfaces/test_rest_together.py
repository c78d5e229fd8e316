"""Connections of a server: what questions at one moment share, silence, and lines of a log."""

from __future__ import annotations

import gc
import http.client
import json
import logging
import os
import threading
import weakref
from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from tests.conftest import Clock
from tests.surfaces.callers import ASK, PATIENT, WHOLE, came, heard

from anaphora import Memory, NewMemory, Vector, Vectors
from anaphora.embed.minilm import MiniLM
from anaphora.errors import EmbeddingError
from anaphora.features.server.collecting import EVERY, short_collections
from anaphora.surfaces.connections import ConnectionLimits, throttled_logs, uvicorn_settings
from anaphora.testing import server_app

pytestmark = pytest.mark.enable_socket
USUAL = ConnectionLimits()
FACTS = (
    "The ferry to the island leaves at seven.",
    "Marta's sister keeps bees behind the old mill.",
    "The staging database moved to Frankfurt in March.",
    "Jonas is allergic to peanuts and to penicillin.",
    "We agreed to write all dates in ISO 8601.",
    "The green key opens the shed by the river.",
)
QUESTIONS = (
    "when does the ferry go",
    "who keeps bees",
    "where is the staging database now, and since when",
    "what must Jonas not eat",
    "which form have dates",
    "what opens the shed",
    "allergies",
    "is there anything about Marta's family that I should know before we visit her on Sunday?",
    "key",
    "the island",
    "Frankfurt",
    "what is behind the mill",
)


class Gathering:
    """The bundled model. Its first run begins when so many questions are `expected` to be there."""

    def __init__(self, expected: int, bad: str = "") -> None:
        self._model = MiniLM()
        self._expected, self._bad = expected, bad
        self._asked = 0
        self._changed = threading.Condition()
        self.runs: list[int] = []

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def dimensions(self) -> int:
        return self._model.dimensions

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        return self._model.embed(texts)

    def embed_query(self, text: str) -> Vector:
        return self.embed_queries([text])[0]

    def query_key(self, text: str) -> Hashable:
        with self._changed:
            self._asked += 1
            self._changed.notify_all()
        return self._model.query_key(text)

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        with self._changed:
            assert self._changed.wait_for(lambda: self._asked >= self._expected, PATIENT)
            self.runs.append(len(texts))
        if self._bad and any(self._bad in text for text in texts):
            raise EmbeddingError("no such word")
        return self._model.embed_queries(texts)


@contextmanager
def listening(
    memory: Memory,
    options: Mapping[str, Any] | None = None,
    limits: ConnectionLimits = USUAL,
) -> Iterator[int]:
    """The port of a server over a memory, as `serve` runs it."""
    app = server_app(memory, **({"page": None} if options is None else options))
    config = uvicorn.Config(
        app, port=0, log_level="critical", access_log=False, **uvicorn_settings(limits)
    )
    begun = threading.Event()

    class Begun(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets=sockets)
            begun.set()

    server = Begun(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert begun.wait(PATIENT)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(PATIENT)


def ask(port: int, question: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENT)
    try:
        body = json.dumps({"query": question, "top_k": 3})
        connection.request("POST", "/v1/recall", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read()
    finally:
        connection.close()


def at_once(port: int, questions: Sequence[str]) -> list[bytes]:
    """The answers to questions that all come at the same moment, each on its own connection."""
    with ThreadPoolExecutor(len(questions)) as callers:
        return list(callers.map(lambda one: ask(port, one), questions))


@pytest.fixture
def home(tmp_path: Path, clock: Clock) -> Path:
    """A home that remembers some facts."""
    with Memory.open(tmp_path / "home", clock=clock) as memory:
        memory.remember_many([NewMemory(fact) for fact in FACTS])
        assert memory.ready()
    return tmp_path / "home"


@pytest.mark.promise("server.together")
def test_questions_at_once_have_the_answers_of_questions_alone(home: Path, clock: Clock) -> None:
    """To the byte, though they share runs of the model, of several connections each."""
    with Memory.open(home, clock=clock) as memory, listening(memory) as port:
        alone = [ask(port, question) for question in QUESTIONS]
    model = Gathering(len(QUESTIONS))
    with Memory.open(home, clock=clock, embedder=model) as memory, listening(memory) as port:
        together = at_once(port, QUESTIONS)
    assert together == alone
    assert sum(model.runs) == len(QUESTIONS)
    assert len(model.runs) < len(QUESTIONS)


@pytest.mark.promise("server.together")
def test_a_question_of_several_at_once_is_embedded_once(home: Path, clock: Clock) -> None:
    """Whoever asks the same meanwhile waits for the first, however it is spelt."""
    spelt = ("Who keeps BEES", "who keeps bees", "who KEEPS bees", "Who keeps bees")
    model, told = Gathering(len(spelt)), list[str]()
    with Memory.open(home, clock=clock, embedder=model) as memory:
        memory.on("cache", lambda event: told.append(event.type))
        with listening(memory) as port:
            answers = [json.loads(answer)["hits"] for answer in at_once(port, spelt)]
    assert model.runs == [1]
    assert sorted(told) == ["hit", "hit", "hit", "miss"]
    assert {answer[0]["text"] for answer in answers} == {FACTS[1]}


@pytest.mark.promise("server.together")
def test_a_question_that_cannot_be_embedded_fails_no_other(home: Path, clock: Clock) -> None:
    """Words alone answer it, and it says so; those that shared its run are answered as ever."""
    questions = ("who keeps bees", "when does the ferry qqq", "what opens the shed", "key")
    model = Gathering(len(questions), bad="qqq")
    with Memory.open(home, clock=clock, embedder=model) as memory, listening(memory) as port:
        answers = [json.loads(answer) for answer in at_once(port, questions)]
    parts = [[one["part"] for one in answer["degraded"]] for answer in answers]
    assert parts == [[], ["embeddings"], [], []]
    assert [answer["hits"][0]["text"] for answer in (answers[0], answers[2])] == [
        FACTS[1],
        FACTS[5],
    ]


@pytest.mark.promise("server.lanes")
def test_a_question_that_is_stuck_holds_up_no_other(home: Path) -> None:
    """Few compute at a time, but who waits does not wait for one that does not come back."""
    stuck, leave = threading.Event(), threading.Event()

    def stay(_: object) -> None:
        if not stuck.is_set():
            stuck.set()
            assert leave.wait(PATIENT)

    options = {"page": None, "computing": 1}
    with Memory.open(home) as memory, listening(memory, options) as port:
        memory.on("recall", stay)
        with ThreadPoolExecutor(1) as caller:
            first = caller.submit(ask, port, "who keeps bees")
            assert stuck.wait(PATIENT)
            try:
                assert FACTS[5].encode() in ask(port, "what opens the shed")
                assert not first.done()
            finally:
                leave.set()
            assert FACTS[1].encode() in first.result(PATIENT)


@pytest.mark.promise("server.pauses")
def test_what_survived_a_collection_is_not_gone_through_again() -> None:
    """But now and then all is, so that nothing is kept for good; afterwards it is as before."""

    class Circle:
        """Something that only a collection finds."""

        def __init__(self) -> None:
            self.itself = self

    now = [0.0]
    with short_collections(lambda: now[0]):
        one = Circle()
        gone = weakref.ref(one)
        gc.collect()
        del one
        gc.collect()
        assert gone() is not None
        now[0] = EVERY
        gc.collect()
        gc.collect()
        assert gone() is None
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


SILENT = {
    "nothing": b"",
    "half a line": b"GET /v1/mem",
    "half a head": b"GET /v1/memories HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    "half a body": WHOLE + b'Content-Length: 14\r\n\r\n{"que',
    "half a chunk": WHOLE + b"Transfer-Encoding: chunked\r\n\r\n8\r\n{",
    "half a second request": ASK + b"GET /v1/mem",
    "no body for a refusal": b"POST / HTTP/1.1\r\nHost: evil\r\nContent-Length: 9\r\n\r\n",
}


@pytest.mark.promise("server.silent")
@pytest.mark.parametrize("said", SILENT.values(), ids=SILENT)
def test_who_falls_silent_is_let_go(tmp_path: Path, said: bytes) -> None:
    """A caller who stops in the middle of anything loses the connection."""
    limits = ConnectionLimits(head=0.2, body=0.2)
    with (
        Memory.open(tmp_path / "home", embedder="hashing") as memory,
        listening(memory, limits=limits) as port,
    ):
        answer = heard(came(port, said))
        assert answer.startswith(b"HTTP/1.1 200") == said.startswith(ASK)
        # Others do not notice.
        assert ask(port, "x")


@pytest.mark.promise("server.silent")
def test_the_silent_give_way_to_who_asks(tmp_path: Path) -> None:
    """With all places taken by the silent, the oldest of them goes and the next asker is heard."""
    limits = ConnectionLimits(connections=4, head=600)
    with (
        Memory.open(tmp_path / "home", embedder="hashing") as memory,
        listening(memory, limits=limits) as port,
    ):
        silent = [came(port) for _ in range(3)] + [came(port, SILENT["half a head"])]
        for _ in range(3):
            assert ask(port, "x")
        assert heard(silent[0]) == b""
        for caller in silent:
            caller.close()


@pytest.mark.promise("server.log")
def test_a_log_takes_few_lines_of_a_kind(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """A thousand equal lines are five, then one that counts the others; none is a traceback."""
    log = logging.getLogger("asyncio")

    def complain() -> None:
        try:
            raise OSError(24, os.strerror(24))
        except OSError:
            log.exception("socket.accept() out of system resource\nsocket: <%s>", "x")

    with throttled_logs(lambda: clock().timestamp()):
        for _ in range(1_000):
            complain()
        log.error("another thing")
        assert len(caplog.records) == 6
        assert not any(record.exc_info for record in caplog.records)
        clock.advance(seconds=60)
        complain()
    assert "995 more" in caplog.records[-1].getMessage()
    complain()
    assert caplog.records[-1].exc_info
