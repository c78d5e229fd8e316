"""Models over real HTTP on the loopback: replies, usage, tries, time-outs, keys."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.conftest import Clock
from tests.deep.asking import TEA, opening, tell

from anaphora import Memory, Message
from anaphora.errors import ModelError, ModelTimeout, NoModel
from anaphora.features.deep.models.remote import ModelAddress, RemoteModel, open_models
from anaphora.settings import Settings, load_settings

from .openai_server import Answer, OpenAIServer
from .scripts import Timer

KEY = "sk-very-secret-0123456789"
ASKED = (
    Message("system", "Be short."),
    Message("user", "One?"),
    Message("assistant", "1"),
    Message("user", "Two?"),
)

pytestmark = pytest.mark.enable_socket


@pytest.fixture
def model(server: OpenAIServer, timer: Timer) -> Iterator[RemoteModel]:
    opened = RemoteModel(
        ModelAddress.read("small", server.url, KEY), sleep=timer.sleep, timer=timer
    )
    yield opened
    opened.close()


def ask(model: RemoteModel, timeout: float = 30.0) -> str:
    return model.ask(ASKED, max_output=77, timeout=timeout).text


@pytest.mark.promise("deep.models")
def test_a_reply_and_its_usage(server: OpenAIServer, model: RemoteModel) -> None:
    """The messages arrive as they are, with the limit of output; usage is what was reported."""
    server.says(Answer("two", usage=(31, 7), finish="length"))
    reply = model.ask(ASKED, max_output=77, timeout=30)
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("two", 31, 7)
    assert reply.cut
    assert not reply.estimated
    request = server.requests[0]
    assert request["model"] == "small"
    assert request["max_tokens"] == 77
    assert [(m["role"], m["content"]) for m in request["messages"]] == [
        (m.role, m.text) for m in ASKED
    ]
    assert server.keys == [f"Bearer {KEY}"]


@pytest.mark.promise("deep.cost")
def test_usage_that_is_missing_is_estimated(server: OpenAIServer, model: RemoteModel) -> None:
    """A server that reports no usage gives tokens by bytes / 4, marked as an estimate."""
    server.says(Answer("x" * 40, usage=None))
    reply = model.ask(ASKED, max_output=77, timeout=30)
    assert reply.estimated
    assert reply.output_tokens == 10
    assert reply.input_tokens == sum(-(-len(m.text) // 4) + 4 for m in ASKED)


@pytest.mark.promise("deep.cost")
def test_prices() -> None:
    """A known model has a price; an unknown one, or one at a server of one's own, has none."""
    known = RemoteModel(ModelAddress.read("openai:gpt-4o-mini", key=KEY))
    # 0.15 and 0.60 dollars a million.
    assert known.price(1_000_000, 1_000_000) == pytest.approx(0.75)
    claude = RemoteModel(ModelAddress.read("anthropic:claude-3-5-haiku-latest", key=KEY))
    assert claude.price(1_000_000, 0) == pytest.approx(0.8)
    assert (RemoteModel(ModelAddress.read("google:gemini-2.0-flash", key=KEY)).price(9, 9) or 0) > 0
    assert RemoteModel(ModelAddress.read("openai:nobody-knows", key=KEY)).price(1, 1) is None
    own = RemoteModel(ModelAddress.read("gpt-4o-mini", "http://127.0.0.1:1/v1"))
    assert own.price(1, 1) is None


@pytest.mark.promise("deep.models")
@pytest.mark.parametrize("status", [429, 500, 502, 503, 408])
def test_what_may_pass_is_tried_again(
    server: OpenAIServer, model: RemoteModel, timer: Timer, status: int
) -> None:
    """A failure that may pass is tried again, waiting twice as long each time."""
    server.says(Answer(status=status, body=b"{}"), Answer(status=status, body=b"{}"), "two")
    assert ask(model) == "two"
    assert timer.slept == [0.5, 1.0]
    assert len(server.requests) == 3


@pytest.mark.promise("deep.models")
def test_the_server_says_how_long_to_wait(
    server: OpenAIServer, model: RemoteModel, timer: Timer
) -> None:
    """A wait that the server asks for is kept, unless it is longer than the time there is."""
    server.says(Answer(status=429, body=b"{}", headers={"retry-after": "7"}), "two")
    assert ask(model) == "two"
    assert timer.slept == [7.0]
    server.says(Answer(status=429, body=b"{}", headers={"retry-after": "7"}))
    with pytest.raises(ModelError) as caught:
        ask(model, timeout=5.0)
    assert caught.value.status == 429
    assert timer.slept == [7.0]


@pytest.mark.promise("deep.models")
def test_tries_end(server: OpenAIServer, model: RemoteModel, timer: Timer) -> None:
    """After three tries the failure is raised, with its status and what the server said."""
    server.says(*[Answer(status=500, body=b'{"error": {"message": "no GPU left"}}')] * 5)
    with pytest.raises(ModelError, match="HTTP 500: no GPU left") as caught:
        ask(model)
    assert caught.value.status == 500
    assert len(server.requests) == 3
    assert len(timer.slept) == 2


@pytest.mark.promise("deep.models")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_does_not_pass_is_not_tried_again(
    server: OpenAIServer, model: RemoteModel, timer: Timer, status: int
) -> None:
    """A request that the server refuses for good is sent once."""
    server.says(Answer(status=status, body=b'{"error": {"message": "no"}}'))
    with pytest.raises(ModelError, match=f"HTTP {status}"):
        ask(model)
    assert len(server.requests) == 1
    assert timer.slept == []


@pytest.mark.promise("deep.models")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b"null",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": null, "index": 0, "finish_reason": "stop"}]}',
        b'{"choices": "yes"}',
        b'{"id": 3, "choices": [{"index": "x", "message": {"role": "assistant"}}]}',
        b"\xff\xfe\x00",
        b"[" * 20_000,
    ],
)
def test_malformed_replies(server: OpenAIServer, model: RemoteModel, body: bytes) -> None:
    """A reply that is no completion is a typed error, never another one."""
    server.says(*[Answer(body=body)] * 3)
    with pytest.raises(ModelError):
        ask(model)


@pytest.mark.promise("deep.models")
def test_an_empty_reply_is_empty(server: OpenAIServer, model: RemoteModel) -> None:
    """A model that says nothing has said nothing: no error."""
    server.says("")
    assert ask(model) == ""


@pytest.mark.promise("deep.models")
def test_a_model_that_does_not_answer(server: OpenAIServer) -> None:
    """A call ends when its time is over, however long the server holds it."""
    held = threading.Event()
    server.says(Answer("late", hold=held))
    model = RemoteModel(ModelAddress.read("small", server.url))
    with pytest.raises(ModelTimeout) as caught:
        ask(model, timeout=0.2)
    assert caught.value.seconds == 0.2
    held.set()
    model.close()


@pytest.mark.promise("deep.models")
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:9/v1", "refused"),
        ("https://{server}", "no secure connection"),
        ("127.0.0.1", "protocol"),
    ],
)
def test_nobody_there(server: OpenAIServer, timer: Timer, url: str, why: str) -> None:
    """A server that cannot be reached is told at once, with its address and the variable."""
    url = url.format(server=server.url.partition("://")[2])
    model = RemoteModel(ModelAddress.read("small", url), sleep=timer.sleep, timer=timer)
    for call in (ask, RemoteModel.check):
        with pytest.raises(ModelError) as caught:
            call(model)
        assert why in str(caught.value)
        assert f"at {url} (ANAPHORA_MODEL_URL)" in str(caught.value)
    assert (timer.slept, server.requests) == ([], [])
    model.close()


@pytest.mark.promise("deep.models")
@pytest.mark.parametrize(
    ("listing", "status", "blamed"),
    [
        (200, 200, ""),
        (501, 401, ""),
        (404, 400, ""),
        (403, 422, ""),
        (401, 401, "(ANAPHORA_SUB_MODEL_KEY)"),
        (403, 403, "(ANAPHORA_SUB_MODEL_KEY)"),
        (404, 404, "(ANAPHORA_SUB_MODEL_URL)"),
    ],
)
def test_a_model_is_checked_without_a_question(
    server: OpenAIServer, listing: int, status: int, blamed: str
) -> None:
    """What is refused is told before a question; a server that only lacks a list is well."""
    server.listing = listing
    server.says(Answer(status=status, body=b'{"error": {"message": "no"}}'))
    model = RemoteModel(ModelAddress.read("small", server.url, KEY, "ANAPHORA_SUB_MODEL"))
    if blamed:
        with pytest.raises(ModelError) as caught:
            model.check()
        assert str(caught.value).endswith(f"HTTP {status} at {server.url} {blamed}")
    else:
        model.check()
    assert all(request["messages"] == [] for request in server.requests)
    model.close()


@pytest.mark.promise("deep.models")
def test_in_threads_and_in_an_event_loop(server: OpenAIServer, model: RemoteModel) -> None:
    """A model answers in several threads at once, and in a thread that runs an event loop."""
    server.route = lambda request: Answer(request["messages"][-1]["content"] + "!")

    def one(number: int) -> str:
        return model.ask([Message("user", str(number))], max_output=9, timeout=30).text

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(8))) == [f"{n}!" for n in range(8)]

    async def inside() -> str:
        return one(9)

    assert asyncio.run(inside()) == "9!"


@pytest.mark.promise("deep.keys")
def test_keys_are_never_shown(
    server: OpenAIServer, model: RemoteModel, caplog: pytest.LogCaptureFixture
) -> None:
    """A key is in no repr, no log, and no error, even where the server repeats it."""
    caplog.set_level(logging.DEBUG)
    said = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode()
    server.says(Answer(status=401, body=said))
    with pytest.raises(ModelError) as caught:
        ask(model)
    settings = Settings(home=None, conversations=None, model_key=KEY, sub_model_key=KEY)  # type: ignore[arg-type]
    shown = [str(caught.value), repr(caught.value), repr(caught.value.args), repr(model)]
    shown += [repr(ModelAddress.read("small", server.url, KEY)), repr(settings), caplog.text]
    chain: BaseException | None = caught.value
    while chain is not None:
        shown.append(str(chain))
        chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)
    assert KEY in server.keys[0]
    assert not [text for text in shown if KEY in text]


@pytest.mark.promise("deep.keys")
def test_a_key_of_another_in_an_error_is_masked(server: OpenAIServer, model: RemoteModel) -> None:
    """What a server says of a key that is not ours is shown without it."""
    other = "sk-" + "secretsecretsecret1234567890abcd"
    said = json.dumps({"error": {"message": f"quota of {other} used up"}}).encode()
    server.says(Answer(status=400, body=said))
    with pytest.raises(ModelError) as caught:
        ask(model)
    assert "quota of [redacted:secret-key] used up" in str(caught.value)


@pytest.mark.promise("deep.keys")
def test_a_key_goes_to_its_own_server_alone() -> None:
    """A provider's key is never sent to a server of one's own, nor one server's to another."""
    own = {"OPENAI_API_KEY": "sk-openai", "ANTHROPIC_API_KEY": "sk-ant"}
    local = {"ANAPHORA_MODEL": "llama3:8b", "ANAPHORA_MODEL_URL": "http://127.0.0.1:1/v1"}
    cases: list[tuple[dict[str, str], tuple[str | None, str | None], tuple[str | None, str | None]]]
    cases = [
        # Settings, then (URL, key) of the model that writes code, and of the one that reads.
        (own, (None, None), (None, None)),
        (local, (local["ANAPHORA_MODEL_URL"], None), (None, None)),
        ({"ANAPHORA_MODEL": "openai:gpt-5"}, (None, "sk-openai"), (None, None)),
        (
            {**local, "ANAPHORA_SUB_MODEL": "openai:gpt-5"},
            (local["ANAPHORA_MODEL_URL"], None),
            (None, "sk-openai"),
        ),
        (
            {**local, "ANAPHORA_MODEL_KEY": "k", "ANAPHORA_SUB_MODEL": "tiny"},
            (local["ANAPHORA_MODEL_URL"], "k"),
            (local["ANAPHORA_MODEL_URL"], "k"),
        ),
        (
            {"ANAPHORA_MODEL": "anthropic:claude-x", "ANAPHORA_SUB_MODEL": "openai:gpt-5"},
            (None, "sk-ant"),
            (None, "sk-openai"),
        ),
        (
            {
                **local,
                "ANAPHORA_MODEL_KEY": "k",
                "ANAPHORA_SUB_MODEL": "x",
                "ANAPHORA_SUB_MODEL_URL": "http://127.0.0.1:2/v1",
            },
            (local["ANAPHORA_MODEL_URL"], "k"),
            ("http://127.0.0.1:2/v1", None),
        ),
    ]
    for given, code, sub in cases:
        found = load_settings("/nowhere", environ={**own, **given})
        assert (found.model_url, found.model_key) == code, given
        assert (found.sub_model_url, found.sub_model_key) == sub, given


@pytest.mark.promise("deep.models")
def test_configured_models() -> None:
    """Settings give two models, one for both roles, or none; a name without its key is an error."""
    base = load_settings("/nowhere", environ={})
    assert open_models(base) is None
    env = {"ANAPHORA_MODEL": "llama3:8b", "ANAPHORA_MODEL_URL": "http://127.0.0.1:1/v1"}
    both = open_models(load_settings("/nowhere", environ=env))
    assert both is not None
    assert both[0] is both[1]
    assert both[0].name == "openai:llama3:8b@http://127.0.0.1:1/v1"
    two = open_models(load_settings("/nowhere", environ={**env, "ANAPHORA_SUB_MODEL": "tiny"}))
    assert two is not None
    assert [one.name.partition("@")[0] for one in two] == ["openai:llama3:8b", "openai:tiny"]
    given = load_settings("/nowhere", model="openai:gpt-5", environ={"ANAPHORA_MODEL": "other:x"})
    with pytest.raises(NoModel, match="no key for openai:gpt-5: set ANAPHORA_MODEL_KEY"):
        open_models(given)
    with pytest.raises(NoModel, match="the provider must be one of openai, anthropic, google"):
        open_models(load_settings("/nowhere", environ={"ANAPHORA_MODEL": "other:x"}))


@pytest.mark.promise("deep.model_fails")
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(status=401, body=b'{"error": {"message": "bad key"}}'), "HTTP 401: bad key"),
        (Answer(status=500, body=b"<html>oops</html>"), "HTTP 500"),
        (Answer(body=b"\x00\x01 this is no JSON"), "the model openai:m"),
        (Answer(body=b'{"hello": "world"}'), "the model openai:m"),
        (Answer("As an AI I like tea."), "its last reply contained no answer"),
    ],
    ids=["401", "500", "bytes", "another JSON", "words"],
)
def test_a_server_that_fails_is_as_none(
    tmp_path: Path,
    clock: Clock,
    server: OpenAIServer,
    timer: Timer,
    answer: Answer,
    said: str,
) -> None:
    """Whatever a server sends that is no answer, over real HTTP, the evidence comes."""
    with opening(tmp_path / "without", clock)() as memory:
        tell(memory)
        without = memory.deep_recall(TEA)
    server.route = lambda _: answer
    model = RemoteModel(ModelAddress.read("m", server.url, "sk-loopback"), sleep=timer.sleep)
    with Memory.open(tmp_path / "home", embedder="hashing", model=model, clock=clock) as memory:
        tell(memory)
        found = memory.deep_recall(TEA)
    model.close()
    assert [source.id for source in found.sources] == [source.id for source in without.sources]
    assert said in found.note
    assert [part.part for part in found.degraded] == ["model"]
    assert found.gap_id is None
