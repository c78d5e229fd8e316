"""Models that answer over HTTP: OpenAI and everything that speaks its language, Anthropic, Google.

They call only the configured address, and a key never leaves them otherwise: not by a repr, a log
or an error. pydantic-ai is imported with the first call.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from anaphora.errors import MissingExtra, ModelError, ModelTimeout, NoModel
from anaphora.features.deep.models.base import estimate_tokens, prompt_tokens
from anaphora.ingest.secrets.masking import mask_text
from anaphora.system.addresses import AddressLook
from anaphora.values.models import Message, ModelRole, Reply

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model

    from anaphora.settings import Settings

PROVIDERS: Final = {"openai": "deep", "anthropic": "anthropic", "google": "google"}
"""Providers by the prefix of a name, and the extra that each one needs."""

TRIES: Final = 3
FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 20.0
TEMPERATURE: Final = 0.3
"""As in the seed: enough to try another way after an error, little enough to stay on the task."""

_SERVERS: Final = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
}
_REASON_CHARS: Final = 300
_PASSING: Final = frozenset({408, 409, 425, 429})
_MEANINGS: Final[Mapping[int | None, tuple[str, str]]] = {
    401: ("it does not accept the key: ", "_KEY"),
    403: ("it does not accept the key: ", "_KEY"),
    404: ("it has no such model, or nothing is there: ", "_URL"),
}
"""What a status means, and the variable that is to blame."""
_NO_KEY: Final = "not-needed"
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class ModelAddress:
    """A model and its server. `url` is the base URL of an OpenAI-compatible server, None for the
    provider's own. The key is not part of the repr. `setting` is the variable that names the model,
    and begins those of its URL and its key.
    """

    provider: str
    model: str
    url: str | None = None
    key: str | None = field(default=None, repr=False)
    setting: str = "ANAPHORA_MODEL"

    @classmethod
    def read(
        cls,
        name: str,
        url: str | None = None,
        key: str | None = None,
        setting: str = "ANAPHORA_MODEL",
    ) -> ModelAddress:
        """The address of "provider:model", or of any name at a base URL. Raises `NoModel`."""
        provider, _, model = name.partition(":")
        if provider not in PROVIDERS or not model:
            # At a server of one's own a colon may be part of the name ("llama3:8b").
            if url is None and ":" in name:
                providers = ", ".join(PROVIDERS)
                reason = f"{name!r}: the provider must be one of {providers}, or set a base URL"
                raise NoModel(reason, name)
            provider, model = "openai", name
        if key is None and url is None:
            raise NoModel(f"no key for {provider}:{model}: set {setting}_KEY", name)
        return cls(provider, model, url, key, setting)

    @property
    def name(self) -> str:
        """The name, provider and server included."""
        url_suffix = f"@{self.url}" if self.url else ""
        return f"{self.provider}:{self.model}{url_suffix}"

    def describe(self, status: int | None, reason: str) -> str:
        """Why it did not answer, with the address and the variable to correct."""
        meaning, ending = _MEANINGS.get(status, ("", "_URL" if self.url else ""))
        address = self.url or _SERVERS[self.provider]
        return f"{meaning}{reason} at {address} ({self.setting}{ending})"

    def look(self, **request: Any) -> AddressLook:
        """Look whether its server answers: by its list of models, or by another `request`."""
        base = (self.url or _SERVERS[self.provider]).rstrip("/")
        key = self.key or _NO_KEY
        headers = {"authorization": f"Bearer {key}"}
        paths = {"anthropic": "/v1/models", "google": "/v1beta/models"}
        if self.provider == "anthropic":
            headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
        elif self.provider == "google":
            headers = {"x-goog-api-key": key}
        path = request.pop("path", paths.get(self.provider, "/models"))
        return AddressLook(base + path, headers, **request)


class RemoteModel:
    """A model at an address. Safe to use from several threads; `close` ends its connections.

    `sleep` waits between tries, `timer` gives seconds, monotonic.
    """

    def __init__(
        self,
        address: ModelAddress,
        *,
        sleep: Callable[[float], None] = time.sleep,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = address.name
        self._address = address
        self._sleep = sleep
        self._timer = timer
        self._lock = threading.Lock()
        self._runner: _Runner | None = None
        self._model: Model | None = None
        self._look: AddressLook | None = None
        self._has_answered = False

    def __repr__(self) -> str:
        return f"RemoteModel({self.name!r})"

    def ask(self, messages: Sequence[Message], *, max_output: int, timeout: float) -> Reply:
        """The answer; tried up to 3 times if a failure may pass, within `timeout` in all.

        The wait doubles from half a second, or is the server's `retry_after`. Raises `ModelError`,
        `ModelTimeout`, and `MissingExtra` if the provider's library is not installed.
        """
        deadline = self._timer() + timeout
        # Before the provider's library is loaded, which takes seconds.
        self.check()
        with self._lock:
            if self._model is None or self._runner is None:
                self._model = _open_model(self._address)
                self._runner = _Runner()
            model, runner = self._model, self._runner
        wait = FIRST_WAIT
        for attempt in range(1, TRIES + 1):
            seconds = deadline - self._timer()
            if seconds <= 0:
                raise ModelTimeout(self.name, timeout)
            try:
                response = runner.wait(_request(model, messages, max_output, seconds), seconds)
                self._has_answered = True
                text, usage = response.text or "", response.usage
                reported = usage.input_tokens > 0
                tokens_in = usage.input_tokens if reported else prompt_tokens(messages)
                tokens_out = usage.output_tokens if reported else estimate_tokens(text)
                return Reply(
                    text=text,
                    input_tokens=tokens_in,
                    output_tokens=tokens_out,
                    dollars=self.price(tokens_in, tokens_out),
                    estimated=not reported,
                    cut=response.finish_reason == "length",
                )
            except TimeoutError:
                raise ModelTimeout(self.name, timeout) from None
            except CancelledError:
                raise ModelError(self.name, "it was closed") from None
            except _failures() as error:
                failure = _Failure.of(error)
            if not failure.passing or attempt == TRIES:
                break
            pause = min(failure.wait or wait, LONGEST_WAIT)
            if self._timer() + pause >= deadline:
                break
            self._sleep(pause)
            wait *= 2
        # A server may quote a key in what it says.
        reason = mask_text(failure.reason)
        if self._address.key:
            reason = reason.replace(self._address.key, "***")
        short_reason = " ".join(reason.split())[:_REASON_CHARS]
        described_reason = self._address.describe(failure.status, short_reason)
        raise ModelError(self.name, described_reason, failure.status)

    def begin(self) -> None:
        """Look in the background whether the server answers; the first `ask` waits for it."""
        with self._lock:
            if self._look is None and not self._has_answered:
                self._look = self._address.look()

    def check(self) -> None:
        """Raise `ModelError` where a question would fail: no answer, no such path, a refused key.

        Nothing is generated: where the list of models is refused, the server gets a request
        without messages, which it refuses in turn, unless it knows neither path nor key.
        """
        self.begin()
        with self._lock:
            look, self._look = self._look, None
        # None where it has answered questions before.
        status = None if look is None else self._status_of(look)
        if status in _MEANINGS and self._address.provider == "openai":
            body = {"model": self._address.model, "messages": [], "max_tokens": 1}
            look = self._address.look(path="/chat/completions", body=body)
            status = self._status_of(look)
        elif status != 401:
            # Another provider may refuse or lack the list alone.
            return
        if status in _MEANINGS:
            raise ModelError(self.name, self._address.describe(status, f"HTTP {status}"), status)

    def _status_of(self, look: AddressLook) -> int:
        try:
            return look.status()
        except OSError as error:
            raise ModelError(self.name, self._address.describe(None, str(error))) from None

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        """Dollars by `genai-prices`; None for a model or a server that it does not know."""
        from genai_prices import Usage, calc_price

        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        address = self._address
        try:
            if address.url is not None:
                price = calc_price(usage, address.model, provider_api_url=address.url)
            else:
                price = calc_price(usage, address.model, provider_id=address.provider)
        except LookupError:
            return None
        return float(price.total_price)

    def close(self) -> None:
        """Close the connections. Later calls open new ones."""
        with self._lock:
            runner, self._runner = self._runner, None
            model, self._model = self._model, None
        if runner is not None:
            runner.close(model)


def open_models(settings: Settings) -> tuple[RemoteModel, RemoteModel] | None:
    """The model that writes code and the one that reads; None if none is configured.

    Without a sub-model of its own, one model has both roles. Raises `NoModel` for a name without
    its key.
    """
    if settings.model is None and settings.model_url is None:
        return None
    name = settings.model or "default"
    code = RemoteModel(ModelAddress.read(name, settings.model_url, settings.model_key))
    if settings.sub_model is None and settings.sub_model_url is None:
        return code, code
    name, url = settings.sub_model or name, settings.sub_model_url
    setting = "ANAPHORA_MODEL" if url and url == settings.model_url else "ANAPHORA_SUB_MODEL"
    return code, RemoteModel(ModelAddress.read(name, url, settings.sub_model_key, setting))


class _Runner:
    """An event loop of its own: `ask` must work in any thread, in one that has a loop too."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="anaphora-model", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, ResultT], seconds: float) -> ResultT:
        """The result of `work`. Raises `TimeoutError` after `seconds`."""
        running = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, seconds), self._loop)
        try:
            return running.result()
        except BaseException:
            # The waiting thread was interrupted: the request must not go on alone.
            running.cancel()
            raise

    def close(self, model: Model | None) -> None:
        """Cancel the running requests, close the connections of `model`, and end the thread."""
        ending = asyncio.run_coroutine_threadsafe(_end_tasks(model), self._loop)
        ending.result(5.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


async def _end_tasks(model: Model | None) -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    client = getattr(model, "client", None)
    close_client = getattr(client, "close", None) if client is not None else None
    if close_client is not None and asyncio.iscoroutinefunction(close_client):
        await close_client()


async def _request(
    model: Model, messages: Sequence[Message], max_output: int, seconds: float
) -> ModelResponse:
    from pydantic_ai import messages as sdk
    from pydantic_ai.direct import model_request
    from pydantic_ai.settings import ModelSettings

    converted_messages: list[ModelMessage] = []
    for message in messages:
        if message.role == "assistant":
            # Some servers refuse an empty message.
            converted_messages.append(
                sdk.ModelResponse(parts=[sdk.TextPart(message.text or "(nothing)")])
            )
        elif message.role == "system":
            converted_messages.append(sdk.ModelRequest(parts=[sdk.SystemPromptPart(message.text)]))
        else:
            converted_messages.append(sdk.ModelRequest(parts=[sdk.UserPromptPart(message.text)]))
    settings = ModelSettings(max_tokens=max_output, timeout=seconds, temperature=TEMPERATURE)
    return await model_request(model, converted_messages, model_settings=settings)


def _open_model(address: ModelAddress) -> Model:
    openers = {"openai": _openai, "anthropic": _anthropic, "google": _google}
    try:
        return openers[address.provider](address)
    except ImportError as error:
        needs = f"the library for {address.provider} models"
        raise MissingExtra(PROVIDERS[address.provider], needs) from error


# The clients do not retry by themselves: tries are counted here, so that a budget sees them.


def _openai(address: ModelAddress) -> Model:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider

    base = address.url or _SERVERS["openai"]
    client = AsyncOpenAI(base_url=base, api_key=address.key or _NO_KEY, max_retries=0)
    provider = OpenAIProvider(openai_client=client)
    if address.url is None:
        return OpenAIChatModel(address.model, provider=provider)
    # Every compatible server knows the older name of the limit.
    profile = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)
    return OpenAIChatModel(address.model, provider=provider, profile=profile)


def _anthropic(address: ModelAddress) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    key = address.key or _NO_KEY
    client = AsyncAnthropic(api_key=key, base_url=address.url, max_retries=0)
    return AnthropicModel(address.model, provider=AnthropicProvider(anthropic_client=client))


def _google(address: ModelAddress) -> Model:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(api_key=address.key or _NO_KEY, base_url=address.url)
    return GoogleModel(address.model, provider=provider)


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a try failed, and whether another may succeed (after `wait` seconds, if not None)."""

    reason: str
    passing: bool
    status: int | None = None
    wait: float | None = None

    @classmethod
    def of(cls, error: Exception) -> _Failure:
        status = getattr(error, "status_code", None)
        wait = getattr(error, "retry_after", None)
        if isinstance(status, int):
            body = getattr(error, "body", None)
            message = None
            if isinstance(body, dict):
                error_body = body.get("error", body)
                message = error_body.get("message") if isinstance(error_body, dict) else error_body
            if not isinstance(message, str):
                message = str(body) if body else "no reason given"
            reason = f"HTTP {status}: {message}"
            return cls(reason, status in _PASSING or status >= 500, status, wait)
        # No answer at all, or one that cannot be read: a server that is starting or overloaded.
        return cls(str(error) or type(error).__name__, passing=True, wait=wait)


def _failures() -> tuple[type[Exception], ...]:
    """The exceptions of a failed request, from the libraries' own hierarchies."""
    from pydantic import ValidationError
    from pydantic_ai.exceptions import AgentRunError

    # OSError is a connection error that the client did not wrap. The libraries raise the others
    # for a body of another shape: no JSON, a text for a list, endless nesting.
    shapes = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
    return (AgentRunError, ValidationError, OSError, *shapes)


_: type[ModelRole] = RemoteModel
