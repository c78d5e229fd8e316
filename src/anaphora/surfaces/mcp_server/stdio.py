"""The protocol over standard input and output: a line of JSON for each message.

Requests are checked and answers written by the types of the protocol's own package, `mcp-types`,
for every version: those that begin with a handshake, and the stateless one. The client's first
request decides. The official SDK's server does the same but brings 28 packages, an HTTP server and
a second of imports; it serves HTTP (`http.py`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
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
from anaphora.calls.caller import CallOrigin
from anaphora.surfaces.access import Right
from anaphora.surfaces.mcp_server.server import (
    Refused,
    ToolServer,
    failed_call,
    failed_request,
)
from anaphora.surfaces.mcp_server.tools import INSTRUCTIONS
from anaphora.system.environment import TRIAL_META
from anaphora.system.incidents import STOPS

ABOUT: Final = types.Implementation(name="anaphora", title="Anaphora", version=__version__)
LAST_ANSWERS: Final = 60.0
"""Seconds in which running calls may still answer after the end of the input: a first call that was
piped in waits for the model."""

PARENT_CHECK: Final = 2.0
"""Seconds between looks at the parent process."""

CHANGES_FIRST: Final = 10.0
"""Seconds that a call waits for the changes that were sent before it: those may wait for a lock."""

_WAITING: Final = 64
"""Lines that are read ahead before a client has to wait."""

_TOKENS: Final = re.compile(
    r'"(?P<name>id|method|result|error)"\s*:\s*(?P<id>"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?)?'
    r'|"(?:[^"\\]|\\.)*"|(?P<open>[{\[])|(?P<close>[}\]])'
)
"""What tells of the members of an object, in text that need not be JSON."""

_CAPABILITIES: Final = types.ServerCapabilities(
    tools=types.ToolsCapability(list_changed=False),
    resources=types.ResourcesCapability(subscribe=False, list_changed=False),
    prompts=types.PromptsCapability(list_changed=False),
)
_Params = Mapping[str, Any] | None


class StdioServer:
    """Answers one client. `begin` is called after the handshake.

    `incoming` is read in its own thread; `outgoing` is unbuffered.
    """

    def __init__(
        self,
        handlers: ToolServer,
        begin: Callable[[], None],
        incoming: BinaryIO,
        outgoing: RawIOBase,
        trial: str | None = None,
    ) -> None:
        # A server that ignored the trial would store it in the user's own namespace: so this one
        # confirms the trial before anything is stored.
        self._meta = None if trial is None else {TRIAL_META: trial}
        self._handlers = handlers.handlers
        self._changes = handlers.changes
        self._begin = begin
        self._incoming = incoming
        self._outgoing = outgoing
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="anaphora-mcp-out")
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(_WAITING)
        self._running: dict[types.RequestId, asyncio.Task[None]] = {}
        self._changing: set[asyncio.Task[None]] = set()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._stateless: bool | None = None
        self._version: str | None = None
        self._capabilities: types.ClientCapabilities | None = None
        self.agent = ""

    async def run(self) -> None:
        """Answer until the input ends. Raises OSError if the output is closed."""
        threading.Thread(target=self._read, args=(asyncio.get_running_loop(),), daemon=True).start()
        watching = asyncio.create_task(self._end_with_parent())
        try:
            while (line := await self._lines.get()) is not None:
                await self._handle_safely(line)
            if self._running:
                await asyncio.wait(self._running.values(), timeout=LAST_ANSWERS)
        finally:
            tasks = [watching, *self._running.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._writing.shutdown(wait=False)

    async def _end_with_parent(self) -> None:
        """Treat the end of the parent as that of the input: another process may hold the pipe."""
        # What starts a server and leaves has left before Python runs.
        parent = os.getppid()
        while os.getppid() == parent:
            await asyncio.sleep(PARENT_CHECK)
        await self._lines.put(None)

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Put every line of the input into the queue, then None; waits while it is full."""
        # The loop is closed once the server has ended.
        with suppress(RuntimeError, ValueError, OSError):
            for line in self._incoming:
                asyncio.run_coroutine_threadsafe(self._lines.put(line), loop).result()
        with suppress(RuntimeError):
            asyncio.run_coroutine_threadsafe(self._lines.put(None), loop)

    async def _handle_safely(self, line: bytes) -> None:
        """Handle a message; a failure before its sender is known affects no other message."""
        text = line.decode("utf-8-sig", "replace")
        if not text.strip():
            return
        try:
            message = _parse(text)
        except (TypeError, ValueError, RecursionError) as error:
            is_json = isinstance(error, TypeError)
            for refused_id in _ids_to_answer(text, is_json=is_json):
                await self._write_line(_refusal(refused_id, is_json=is_json))
            return
        try:
            if isinstance(message, types.JSONRPCRequest):
                await self._start_request(message)
            elif isinstance(message, types.JSONRPCNotification):
                if message.method == "notifications/cancelled":
                    cancelled_id = (message.params or {}).get("requestId")
                    if isinstance(cancelled_id, str | int) and cancelled_id in self._running:
                        self._running.pop(cancelled_id).cancel()
                self._begin()
            else:
                self._take_answer(message)
        except (asyncio.CancelledError, *STOPS):
            raise
        except BaseException as error:  # noqa: BLE001 - the client must have an answer
            fault = _fault(failed_request("message", error))
            await self._send(types.JSONRPCError(jsonrpc="2.0", id=None, error=fault))

    async def _start_request(self, request: types.JSONRPCRequest) -> None:
        if self._stateless is None:
            self._stateless = request.method != "initialize" and _carries_version(request.params)
        if request.method == "initialize":
            # Later messages depend on the handshake, so it is not answered in a task.
            await self._answer(request, set())
            return

        def forget(done: asyncio.Task[None]) -> None:
            # Its id may have been used again meanwhile.
            if self._running.get(request.id) is done:
                del self._running[request.id]

        # A question that was sent after a change, unanswered as that may be, finds what it stored.
        before = set(self._changing)
        task = asyncio.create_task(self._answer(request, before))
        self._running[request.id] = task
        task.add_done_callback(forget)
        if request.method == "tools/call" and self._changes((request.params or {}).get("name")):
            self._changing.add(task)
            task.add_done_callback(self._changing.discard)
        self._begin()

    def _take_answer(self, message: types.JSONRPCResponse | types.JSONRPCError) -> None:
        pending = self._asked.pop(message.id, None) if isinstance(message.id, int) else None
        if pending is None or pending.done():
            return
        if isinstance(message, types.JSONRPCError):
            pending.set_exception(Refused(message.error.code, message.error.message))
        else:
            pending.set_result(message.result)

    async def _answer(self, request: types.JSONRPCRequest, before: set[asyncio.Task[None]]) -> None:
        """Answer a request with its result or an error; a cancelled one gets no answer.

        A call of a tool waits for the changes `before` it.
        """
        try:
            if before and request.method == "tools/call":
                await asyncio.wait(before, timeout=CHANGES_FIRST)
            result = await self._handle(request.method, request.params)
            line = _line(types.JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result))
        except Refused as error:
            line = _line(types.JSONRPCError(jsonrpc="2.0", id=request.id, error=_fault(error)))
        except (asyncio.CancelledError, *STOPS):
            raise
        except BaseException as error:  # noqa: BLE001 - the client must get an answer
            params = request.params or {}
            if request.method == "tools/call":
                failure = failed_call(str(params.get("name")), error)
                spoken_version = self._version_of(request.method, params)
                result = self._serialise(request.method, spoken_version, failure)
                line = _line(types.JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result))
            else:
                method = request.method if request.method in self._handlers else "request"
                fault = _fault(failed_request(method, error))
                line = _line(types.JSONRPCError(jsonrpc="2.0", id=request.id, error=fault))
        await self._write_line(line)

    async def _handle(self, method: str, params: _Params) -> dict[str, Any]:
        spoken_version = self._version_of(method, params)
        try:
            request = methods.parse_client_request(method, spoken_version, params)
        except KeyError:
            raise Refused(types.METHOD_NOT_FOUND, "method not found", method) from None
        except ValidationError:
            raise Refused(types.INVALID_PARAMS, "invalid parameters") from None
        answer: BaseModel
        if method == "initialize":
            client: types.InitializeRequestParams = request.params
            is_supported = client.protocol_version in version.HANDSHAKE_PROTOCOL_VERSIONS
            self._version = (
                client.protocol_version if is_supported else version.LATEST_HANDSHAKE_VERSION
            )
            self._capabilities = client.capabilities
            self.agent = client.client_info.name
            answer = types.InitializeResult(
                protocol_version=self._version,
                capabilities=_CAPABILITIES,
                server_info=ABOUT,
                instructions=INSTRUCTIONS,
                _meta=self._meta,
            )
        elif method == "server/discover":
            answer = types.DiscoverResult(
                supported_versions=list(version.MODERN_PROTOCOL_VERSIONS),
                capabilities=_CAPABILITIES,
                instructions=INSTRUCTIONS,
            )
        elif method == "ping":
            answer = types.EmptyResult()
        else:
            handler = self._handlers.get(method)
            if handler is None:
                raise Refused(types.METHOD_NOT_FOUND, "method not found", method)
            if self._version is None and not self._stateless:
                raise Refused(types.INVALID_REQUEST, "expected initialize first")
            answer = await handler(_StdioCaller(self, params), request.params)
        return self._serialise(method, spoken_version, answer)

    def _version_of(self, method: str, params: _Params) -> str:
        """The protocol version of a request. Raises `Refused`."""
        if not self._stateless:
            if method != "initialize" and _carries_version(params):
                raise Refused(types.INVALID_REQUEST, "this connection began with a handshake")
            return self._version or version.LATEST_HANDSHAKE_VERSION
        supported_versions = list(version.MODERN_PROTOCOL_VERSIONS)
        if method == "initialize":
            requested_version = (params or {}).get("protocolVersion")
            versions = {"supported": supported_versions} | (
                {"requested": requested_version} if isinstance(requested_version, str) else {}
            )
            raise Refused(
                types.UNSUPPORTED_PROTOCOL_VERSION, "it began without a handshake", versions
            )
        meta = (params or {}).get("_meta")
        if not isinstance(meta, Mapping) or types.CLIENT_CAPABILITIES_META_KEY not in meta:
            raise Refused(
                types.INVALID_PARAMS,
                f"params._meta needs {types.PROTOCOL_VERSION_META_KEY} and "
                f"{types.CLIENT_CAPABILITIES_META_KEY}",
            )
        requested_version = meta.get(types.PROTOCOL_VERSION_META_KEY)
        if not isinstance(requested_version, str):
            raise Refused(types.INVALID_PARAMS, f"{types.PROTOCOL_VERSION_META_KEY} is no text")
        if requested_version not in supported_versions:
            versions = {"supported": supported_versions, "requested": requested_version}
            raise Refused(types.UNSUPPORTED_PROTOCOL_VERSION, "unsupported version", versions)
        return requested_version

    def _serialise(self, method: str, spoken: str, result: BaseModel) -> dict[str, Any]:
        """Serialise a result for that version of the protocol."""
        dumped_model = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        serialised_answer: dict[str, Any] = methods.serialize_server_result(
            method, spoken, dumped_model
        )
        if self._stateless:
            about = ABOUT.model_dump(by_alias=True, mode="json", exclude_none=True)
            serialised_answer.setdefault("resultType", "complete")
            serialised_answer["_meta"] = {
                types.SERVER_INFO_META_KEY: about,
                **(serialised_answer.get("_meta") or {}),
            }
        return serialised_answer

    def can_name_folders(self) -> bool:
        """Whether the client has announced that it can name its open folders."""
        capabilities = self._capabilities
        return not self._stateless and capabilities is not None and capabilities.roots is not None

    async def ask(self, method: str) -> Any:
        """Send a request without parameters and return the client's answer. Raises `Refused`."""
        number = next(self._numbers)
        # Registered first: the answer can arrive before the write is known to be complete.
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send(types.JSONRPCRequest(jsonrpc="2.0", id=number, method=method))
            return await answer
        finally:
            self._asked.pop(number, None)

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification to the client."""
        await self._send(types.JSONRPCNotification(jsonrpc="2.0", method=method, params=params))

    async def _send(self, message: BaseModel) -> None:
        await self._write_line(_line(message))

    async def _write_line(self, line: bytes) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._writing, self._write, line)
        except (OSError, ValueError, RuntimeError):
            # The client died while an answer was being written: treated as the end of input.
            await self._lines.put(None)

    def _write(self, line: bytes) -> None:
        unwritten = memoryview(line)
        while unwritten:
            # Unbuffered, so that nothing remains to be flushed once the client has gone.
            unwritten = unwritten[self._outgoing.write(unwritten) :]


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
            roots = types.ListRootsResult.model_validate(await self._server.ask("roots/list"))
        except ValidationError as error:
            raise Refused(types.INVALID_PARAMS, "these are no folders") from error
        return [str(root.uri) for root in roots.roots]

    async def tell(self, step: int, message: str) -> None:
        if self._token is not None:
            progress = {"progressToken": self._token, "progress": step, "message": message}
            await self._server.notify("notifications/progress", progress)


def serve_stdio(
    handlers: ToolServer, begin: Callable[[], None], *, trial: str | None = None
) -> None:
    """Serve the client on standard input and output until it disconnects.

    Meanwhile descriptor 0 reads nothing and 1 is standard error, so that output of libraries and
    child processes stays out of the protocol.
    """
    incoming = os.fdopen(os.dup(0), "rb")
    outgoing = os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    asyncio.run(StdioServer(handlers, begin, incoming, outgoing, trial).run())


def _line(message: BaseModel) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError:
        # With half of a surrogate pair, as in the id of a request; JSON can escape it.
        return json.dumps(message.model_dump(by_alias=True, exclude_unset=True)).encode() + b"\n"


def _fault(error: Refused) -> types.ErrorData:
    return types.ErrorData(code=error.code, message=error.message, data=error.data)


def _carries_version(params: _Params) -> bool:
    """Whether a request states its version, as only stateless ones do."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, Mapping) and types.PROTOCOL_VERSION_META_KEY in meta


def _parse(text: str) -> types.JSONRPCMessage:
    """The message of a line. Raises TypeError for JSON that is none, ValueError for what is no
    JSON, RecursionError for what is too deep."""
    adapter = types.jsonrpc_message_adapter
    try:
        message = adapter.validate_json(text, by_name=False)
    except ValidationError:
        # Half of a surrogate pair is no JSON to that parser, but kept as any other text.
        value = json.loads(text)
        try:
            message = adapter.validate_python(value, by_name=False)
        except ValidationError as error:
            raise TypeError from error
    # To the adapter a request whose id is of another type is a notification.
    is_silent = isinstance(message, types.JSONRPCNotification) and '"id"' in text
    if is_silent and json.loads(text).get("id") is not None:
        raise TypeError
    return message


def _ids_to_answer(text: str, *, is_json: bool) -> list[str]:
    """The ids, as JSON, of the requests in a line that was refused; "null" for one without an id.

    A notification gets no answer, nor does an answer. Each request of an array has its own.
    """
    # Per object at the outermost level: its members that matter, as they are written.
    messages: list[dict[str, str]] = []
    depth, outermost = 0, 2 if text.lstrip().startswith("[") else 1
    for token in _TOKENS.finditer(text):
        if token["open"]:
            depth += 1
            if depth == outermost and token["open"] == "{":
                messages.append({})
        elif token["close"]:
            depth -= 1
        elif depth == outermost and messages and token["name"]:
            is_readable = token["id"] and _is_json(token["id"])
            messages[-1][token["name"]] = token["id"] if is_readable else "null"
    ids = []
    for members in messages:
        is_answer = "method" not in members and not members.keys().isdisjoint(("result", "error"))
        if not is_answer and ("id" in members or not (is_json and "method" in members)):
            ids.append(members.get("id", "null"))
    return ids or ([] if messages else ["null"])


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _refusal(refused_id: str, *, is_json: bool) -> bytes:
    """An error for a line that is no message, with an id that is JSON already.

    So that an id comes back as it was sent, even one that is half of a surrogate pair.
    """
    code = types.INVALID_REQUEST if is_json else types.PARSE_ERROR
    fault = {"code": code, "message": "expected one message of JSON-RPC on a line"}
    return b'{"jsonrpc":"2.0","id":%s,"error":%s}\n' % (
        refused_id.encode(),
        json.dumps(fault).encode(),
    )
