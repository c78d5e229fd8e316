"""The protocol over standard input and output: a line of JSON for each message.

Requests are checked and answers written by the types of the protocol's own package, `mcp-types`,
for every version of it: those that begin with a handshake, and the one whose requests carry what a
handshake would have said. The client's first request decides which. The official SDK's server does
the same and brings 28 packages, an HTTP server and a second of imports with it; it serves HTTP
(`http.py`).
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import RawIOBase
from typing import Any, BinaryIO, Final

import mcp_types as types
from mcp_types import methods, version
from pydantic import BaseModel, ValidationError

from anaphora import __version__
from anaphora.core.caller import CallOrigin
from anaphora.core.environment import TRIAL_META
from anaphora.core.incidents import STOPS
from anaphora.surfaces.access import Right
from anaphora.surfaces.mcp_server.server import (
    Refused,
    ToolServer,
    failed_call,
    failed_request,
)
from anaphora.surfaces.mcp_server.tools import INSTRUCTIONS

ABOUT: Final = types.Implementation(name="anaphora", title="Anaphora", version=__version__)
LAST_ANSWERS: Final = 0.5
"""Seconds that running calls have to be answered after the end of the input."""

_WAITING: Final = 64
"""Lines that are read ahead: a client that sends more waits."""

_CAPABILITIES: Final = types.ServerCapabilities(
    tools=types.ToolsCapability(list_changed=False),
    resources=types.ResourcesCapability(subscribe=False, list_changed=False),
    prompts=types.PromptsCapability(list_changed=False),
)
_Params = Mapping[str, Any] | None


class StdioServer:
    """Answers one client. `begin` is called once the handshake was answered.

    `incoming` is read in a thread of its own; `outgoing` is not buffered.
    """

    def __init__(
        self,
        handlers: ToolServer,
        begin: Callable[[], None],
        incoming: BinaryIO,
        outgoing: RawIOBase,
        trial: str | None = None,
    ) -> None:
        # A trial that this server does not know of would be stored in the user's own namespace: so
        # it says that it does, before anything is stored.
        self._meta = None if trial is None else {TRIAL_META: trial}
        self._handlers = handlers.handlers
        self._begin = begin
        self._incoming = incoming
        self._outgoing = outgoing
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="anaphora-mcp-out")
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(_WAITING)
        self._running: dict[types.RequestId, asyncio.Task[None]] = {}
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._stateless: bool | None = None
        self._version: str | None = None
        self._capabilities: types.ClientCapabilities | None = None
        self.agent = ""

    async def run(self) -> None:
        """Answer until the input ends. Raises OSError when nobody takes the answers."""
        threading.Thread(target=self._read, args=(asyncio.get_running_loop(),), daemon=True).start()
        try:
            while (line := await self._lines.get()) is not None:
                await self._take_safely(line)
            if self._running:
                await asyncio.wait(self._running.values(), timeout=LAST_ANSWERS)
        finally:
            left = list(self._running.values())
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            self._writing.shutdown(wait=False)

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Every line of the input, then None, into the queue; waits while that is full."""
        # The loop is closed when the server has ended.
        with suppress(RuntimeError, ValueError, OSError):
            for line in self._incoming:
                asyncio.run_coroutine_threadsafe(self._lines.put(line), loop).result()
        with suppress(RuntimeError):
            asyncio.run_coroutine_threadsafe(self._lines.put(None), loop)

    async def _take_safely(self, line: bytes) -> None:
        """Take a message; one that fails before it is known who sent it ends no other."""
        try:
            await self._take(line)
        except (asyncio.CancelledError, *STOPS):
            raise
        except BaseException as error:  # noqa: BLE001 - the client must have an answer
            fault = _fault(failed_request("message", error))
            await self._send(types.JSONRPCError(jsonrpc="2.0", id=None, error=fault))

    async def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = types.jsonrpc_message_adapter.validate_json(
                line.decode("utf-8", "replace"), by_name=False
            )
        except ValidationError:
            fault = types.ErrorData(
                code=types.PARSE_ERROR, message="expected a message of JSON-RPC"
            )
            await self._send(types.JSONRPCError(jsonrpc="2.0", id=None, error=fault))
            return
        if isinstance(message, types.JSONRPCRequest):
            await self._take_request(message)
        elif isinstance(message, types.JSONRPCNotification):
            self._take_notification(message)
        else:
            self._take_answer(message)

    async def _take_request(self, request: types.JSONRPCRequest) -> None:
        if self._stateless is None:
            self._stateless = request.method != "initialize" and _carries_version(request.params)
        if request.method == "initialize":
            # What comes right behind it counts on it.
            await self._answer(request)
            return
        task = asyncio.create_task(self._answer(request))
        self._running[request.id] = task
        task.add_done_callback(lambda done: self._forget(request.id, done))
        self._begin()

    def _forget(self, request_id: types.RequestId, task: asyncio.Task[None]) -> None:
        if self._running.get(request_id) is task:
            del self._running[request_id]

    def _take_notification(self, message: types.JSONRPCNotification) -> None:
        if message.method == "notifications/cancelled":
            cancelled = (message.params or {}).get("requestId")
            if isinstance(cancelled, str | int) and cancelled in self._running:
                self._running.pop(cancelled).cancel()
        self._begin()

    def _take_answer(self, message: types.JSONRPCResponse | types.JSONRPCError) -> None:
        asked = self._asked.pop(message.id, None) if isinstance(message.id, int) else None
        if asked is None or asked.done():
            return
        if isinstance(message, types.JSONRPCError):
            asked.set_exception(Refused(message.error.code, message.error.message))
        else:
            asked.set_result(message.result)

    async def _answer(self, request: types.JSONRPCRequest) -> None:
        """Answer a request, by its result or by an error; one that was cancelled by nothing."""
        try:
            line = _line(await self._response(request))
        except (asyncio.CancelledError, *STOPS):
            raise
        except BaseException as error:  # noqa: BLE001 - the client must have an answer, and goes on
            line = _line(self._failure(request, error))
        await self._write_line(line)

    async def _response(self, request: types.JSONRPCRequest) -> BaseModel:
        try:
            result = await self._result(request.method, request.params)
        except Refused as error:
            return types.JSONRPCError(jsonrpc="2.0", id=request.id, error=_fault(error))
        return types.JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)

    def _failure(self, request: types.JSONRPCRequest, error: BaseException) -> BaseModel:
        """The answer where making the answer failed."""
        params = request.params or {}
        if request.method == "tools/call":
            called = failed_call(str(params.get("name")), error)
            spoken = self._spoken(request.method, params)
            result = self._written(request.method, spoken, called)
            return types.JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)
        method = request.method if request.method in self._handlers else "request"
        fault = _fault(failed_request(method, error))
        return types.JSONRPCError(jsonrpc="2.0", id=request.id, error=fault)

    async def _result(self, method: str, params: _Params) -> dict[str, Any]:
        spoken = self._spoken(method, params)
        try:
            request = methods.parse_client_request(method, spoken, params)
        except KeyError:
            raise Refused(types.METHOD_NOT_FOUND, "method not found", method) from None
        except ValidationError:
            raise Refused(types.INVALID_PARAMS, "invalid parameters") from None
        result: BaseModel
        if method == "initialize":
            result = self._initialized(request.params)
        elif method == "server/discover":
            result = types.DiscoverResult(
                supported_versions=list(version.MODERN_PROTOCOL_VERSIONS),
                capabilities=_CAPABILITIES,
                instructions=INSTRUCTIONS,
            )
        elif method == "ping":
            result = types.EmptyResult()
        else:
            handler = self._handlers.get(method)
            if handler is None:
                raise Refused(types.METHOD_NOT_FOUND, "method not found", method)
            if self._version is None and not self._stateless:
                raise Refused(types.INVALID_REQUEST, "expected initialize first")
            result = await handler(_StdioCaller(self, params), request.params)
        return self._written(method, spoken, result)

    def _spoken(self, method: str, params: _Params) -> str:
        """The version of the protocol that a request is in. Raises `Refused`."""
        if not self._stateless:
            if method != "initialize" and _carries_version(params):
                raise Refused(types.INVALID_REQUEST, "this connection began with a handshake")
            return self._version or version.LATEST_HANDSHAKE_VERSION
        served = list(version.MODERN_PROTOCOL_VERSIONS)
        if method == "initialize":
            asked = (params or {}).get("protocolVersion")
            data = {"supported": served} | ({"requested": asked} if isinstance(asked, str) else {})
            raise Refused(types.UNSUPPORTED_PROTOCOL_VERSION, "it began without a handshake", data)
        meta = (params or {}).get("_meta")
        if not isinstance(meta, Mapping) or types.CLIENT_CAPABILITIES_META_KEY not in meta:
            raise Refused(
                types.INVALID_PARAMS,
                f"params._meta needs {types.PROTOCOL_VERSION_META_KEY} and "
                f"{types.CLIENT_CAPABILITIES_META_KEY}",
            )
        asked = meta.get(types.PROTOCOL_VERSION_META_KEY)
        if not isinstance(asked, str):
            raise Refused(types.INVALID_PARAMS, f"{types.PROTOCOL_VERSION_META_KEY} is no text")
        if asked not in served:
            data = {"supported": served, "requested": asked}
            raise Refused(types.UNSUPPORTED_PROTOCOL_VERSION, "unsupported version", data)
        return asked

    def _initialized(self, params: types.InitializeRequestParams) -> types.InitializeResult:
        known = params.protocol_version in version.HANDSHAKE_PROTOCOL_VERSIONS
        self._version = params.protocol_version if known else version.LATEST_HANDSHAKE_VERSION
        self._capabilities = params.capabilities
        self.agent = params.client_info.name
        return types.InitializeResult(
            protocol_version=self._version,
            capabilities=_CAPABILITIES,
            server_info=ABOUT,
            instructions=INSTRUCTIONS,
            _meta=self._meta,
        )

    def _written(self, method: str, spoken: str, result: BaseModel) -> dict[str, Any]:
        """A result as that version of the protocol writes it."""
        dumped = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        written: dict[str, Any] = methods.serialize_server_result(method, spoken, dumped)
        if self._stateless:
            about = ABOUT.model_dump(by_alias=True, mode="json", exclude_none=True)
            written.setdefault("resultType", "complete")
            written["_meta"] = {types.SERVER_INFO_META_KEY: about, **(written.get("_meta") or {})}
        return written

    def can_name_folders(self) -> bool:
        """Whether the client has said that it would tell which folders it has open."""
        told = self._capabilities
        return not self._stateless and told is not None and told.roots is not None

    async def ask(self, method: str) -> Any:
        """What the client answers to a request without parameters. Raises `Refused`."""
        number = next(self._numbers)
        # Its answer can be here before it is known that the request has been written.
        asked = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send(types.JSONRPCRequest(jsonrpc="2.0", id=number, method=method))
            return await asked
        finally:
            self._asked.pop(number, None)

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Tell the client something."""
        await self._send(types.JSONRPCNotification(jsonrpc="2.0", method=method, params=params))

    async def _send(self, message: BaseModel) -> None:
        await self._write_line(_line(message))

    async def _write_line(self, line: bytes) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._writing, self._write, line)
        except (OSError, ValueError, RuntimeError):
            # The client died while an answer was on its way: the same as its end.
            await self._lines.put(None)

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            # Unbuffered: nothing is left to be written when the client has gone.
            rest = rest[self._outgoing.write(rest) :]


class _StdioCaller:
    """The user's own client, which may do everything."""

    def __init__(self, server: StdioServer, params: _Params) -> None:
        self._server = server
        meta = (params or {}).get("_meta")
        self._token = meta.get("progressToken") if isinstance(meta, Mapping) else None

    def may(self, right: Right) -> bool:
        return True

    def origin(self) -> CallOrigin:
        return CallOrigin("mcp", agent=self._server.agent)

    def can_name_folders(self) -> bool:
        return self._server.can_name_folders()

    async def folders(self) -> list[str]:
        try:
            found = types.ListRootsResult.model_validate(await self._server.ask("roots/list"))
        except ValidationError as error:
            raise Refused(types.INVALID_PARAMS, "these are no folders") from error
        return [str(root.uri) for root in found.roots]

    async def tell(self, step: int, message: str) -> None:
        if self._token is not None:
            told = {"progressToken": self._token, "progress": step, "message": message}
            await self._server.notify("notifications/progress", told)


def serve_stdio(
    handlers: ToolServer, begin: Callable[[], None], *, trial: str | None = None
) -> None:
    """Serve the client at the other end of standard input and output until it goes.

    Meanwhile descriptor 0 reads nothing and 1 is standard error: what a library prints, and what a
    child process does, stays out of the protocol.
    """
    incoming = os.fdopen(os.dup(0), "rb")
    outgoing = os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    asyncio.run(StdioServer(handlers, begin, incoming, outgoing, trial).run())


def _line(message: BaseModel) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


def _fault(error: Refused) -> types.ErrorData:
    return types.ErrorData(code=error.code, message=error.message, data=error.data)


def _carries_version(params: _Params) -> bool:
    """Whether a request says which version it is in: those after a handshake never do."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, Mapping) and types.PROTOCOL_VERSION_META_KEY in meta
