"""The tools, resources and prompts: what is answered to each request of the protocol.

What a tool does is in `calls.py`; here it is checked, run in a worker thread and wrapped in the
protocol's types. An error that Anaphora raises on purpose becomes a result with `isError` and one
sentence; so does any other, with the id of its incident. How requests come in is not known here:
see `stdio.py` and `http.py`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import mcp_types as types

from anaphora.api.workers import in_loop
from anaphora.core.caller import CallOrigin, called_from
from anaphora.core.config import client_folders
from anaphora.core.display import one_line
from anaphora.core.environment import environment
from anaphora.core.incidents import STOPS, report
from anaphora.core.zones import times_shown_in
from anaphora.errors import AnaphoraError, InvalidInput, MissingExtra
from anaphora.surfaces.access import Right
from anaphora.surfaces.mcp_server.calls import CALLS, Answer, CallContext
from anaphora.surfaces.mcp_server.folders import (
    NOWHERE,
    Folders,
    OpenFolders,
    folder_of,
    started_in,
)
from anaphora.surfaces.mcp_server.resources import PROMPTS, RESOURCES, TEMPLATE, prompt, read
from anaphora.surfaces.mcp_server.session import ServerSession
from anaphora.surfaces.mcp_server.tools import TOOLS, ToolSpec, checked
from anaphora.surfaces.wire import dumps, plain

if TYPE_CHECKING:
    from anaphora.api.memory import Memory
    from anaphora.values.deep import DeepStep

ROOTS_PATIENCE: Final = 0.5
"""Seconds that a client has to name its folders."""

# These look at, or note something about, the project that the client has open.
_INDEXING: Final = ("recall_context", "warm_up")
_IN_A_PROJECT: Final = (*_INDEXING, "save_diary", "observe", "recall", "store_memory")
_LONG: Final = "deep_recall"
_LARGE: Final = 64 * 1024
_MOST_OF_AN_ERROR: Final = 2_000
_UNCERTAIN: Final = "Check whether it was done before you call it again."
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Refused(Exception):
    """A request that is answered with an error of the protocol, by its number."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class Caller(Protocol):
    """Who sent a request, and what can be asked of it or told to it meanwhile."""

    def may(self, right: Right) -> bool:
        """Whether it has a right."""
        ...

    def origin(self) -> CallOrigin:
        """Where its calls come from, as an audit trail tells it."""
        ...

    def can_name_folders(self) -> bool:
        """Whether it has said that it would tell which folders it has open."""
        ...

    async def folders(self) -> list[str]:
        """The URIs of the folders that it has open. Raises `Refused`."""
        ...

    async def tell(self, step: int, message: str) -> None:
        """Tell how far a long call has come, if it wants to know."""
        ...


Handler = Callable[[Caller, Any], Awaitable[Any]]


class ToolServer:
    """The handlers of one server. `started` is its folder; None when that says nothing.

    `roots` says whether the folders that clients name are on this machine.
    """

    def __init__(
        self, session: ServerSession, tools: Sequence[str], started: Path | None, *, roots: bool
    ) -> None:
        self._session = session
        self._tools = {name: TOOLS[name] for name in tools}
        self._started = started
        self._home = client_folders().user
        self._folders = Folders(session)
        self._silent = not roots
        handlers: dict[str, Handler] = {
            "tools/list": self.list_tools,
            "tools/call": self.call_tool,
            "resources/list": self.list_resources,
            "resources/templates/list": self.list_templates,
            "resources/read": self.read_resource,
            "prompts/list": self.list_prompts,
            "prompts/get": self.get_prompt,
        }
        self.handlers: Mapping[str, Handler] = {
            method: _reporting(method, handler) for method, handler in handlers.items()
        }

    async def list_tools(self, caller: Caller, params: object) -> types.ListToolsResult:
        """The tools, without touching anything."""
        return types.ListToolsResult(tools=[_tool(spec) for spec in self._tools.values()])

    async def call_tool(
        self, caller: Caller, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Run one tool in a worker thread."""
        spec = self._tools.get(params.name) or _unlisted(params.name)
        if spec is None:
            raise Refused(types.INVALID_PARAMS, f"unknown tool {params.name!r}")
        if not spec.read_only and not caller.may("change"):
            text = types.TextContent(text=f"{spec.name}: this token may only read")
            return types.CallToolResult(content=[text], is_error=True)
        folders = await self._open_folders(caller) if spec.name in _IN_A_PROJECT else NOWHERE
        with called_from(caller.origin()):
            if spec.name == _LONG:
                return await self._call_telling_steps(caller, spec, params.arguments)
            workers = self._session.long if _is_large(params.arguments) else self._session.quick
            return await workers.do(self._run, spec, params.arguments, folders)

    async def _call_telling_steps(
        self, caller: Caller, spec: ToolSpec, given: dict[str, Any] | None
    ) -> types.CallToolResult:
        """A long call, its steps told to a client that wants to know."""
        steps: asyncio.Queue[DeepStep | None] = asyncio.Queue()

        async def tell() -> None:
            while (step := await steps.get()) is not None:
                await caller.tell(step.number, _progress_message(step))

        # What was told is sent before the answer is. A call that was cancelled goes on in its
        # thread; nobody listens any more.
        async with asyncio.TaskGroup() as group:
            group.create_task(tell())
            result = await self._session.long.do(
                self._run, spec, given, NOWHERE, in_loop(steps.put_nowait)
            )
            steps.put_nowait(None)
        return result

    def _run(
        self,
        spec: ToolSpec,
        given: dict[str, Any] | None,
        folders: OpenFolders,
        on_step: Callable[[DeepStep], None] | None = None,
    ) -> types.CallToolResult:
        try:
            arguments = checked(spec, given)
            memory = self._session.memory()
            call_context = self._call_context(memory, spec, arguments, folders, on_step)
            try:
                with times_shown_in(lambda: memory.local_time.tzinfo or UTC):
                    answer = CALLS[spec.name](memory, arguments, call_context)
            except InvalidInput as error:
                # The facade names its own parameter.
                raise error.named(spec.argument(error.what)) from None
            structured = _clean(self._structured(answer))
            shown = _json_text(answer, structured) if answer.text is None else _clean(answer.text)
            return types.CallToolResult(
                content=[types.TextContent(text=shown)], structured_content=structured
            )
        except AnaphoraError as error:
            text = types.TextContent(text=_error_line(error))
            return types.CallToolResult(content=[text], is_error=True)
        except BaseException as error:  # noqa: BLE001 - in this thread nothing else would answer
            return failed_call(spec.name, error)

    def _call_context(
        self,
        memory: Memory,
        spec: ToolSpec,
        arguments: dict[str, Any],
        folders: OpenFolders,
        on_step: Callable[[DeepStep], None] | None,
    ) -> CallContext:
        if folders.folders and "project" not in arguments and spec.name in _IN_A_PROJECT:
            found = self._folders.call_context(memory, folders, indexing=spec.name in _INDEXING)
            return replace(found, directory=str(folders.folders[0]))
        return CallContext(on_step=on_step, background=self._session.run_later)

    def _structured(self, answer: Answer) -> dict[str, Any]:
        if answer.bare:
            return dict(answer.data)
        now = round(self._session.clock().timestamp() * 1000)
        note = {"note": answer.note} if answer.note else {}
        # The note stands before what it is about.
        result = {"success": True, **note, "data": answer.data, "timestamp": now}
        if isinstance(answer.data, list):
            result["degraded"] = [plain(part) for part in answer.degraded]
            result["notices"] = list(answer.notices)
            if answer.confidence is not None:
                result["confidence"] = round(answer.confidence, 6)
        return result

    async def _open_folders(self, caller: Caller) -> OpenFolders:
        """The folders that the client has open, else the one that the server was started in."""
        if not caller.may("any_folder"):
            return NOWHERE
        if caller.can_name_folders() and not self._silent:
            try:
                async with asyncio.timeout(ROOTS_PATIENCE):
                    found = await caller.folders()
            except (TimeoutError, Refused):
                # It said that it would answer, and does not: it is not asked again.
                self._silent = True
            else:
                named = (folder_of(uri, self._home) for uri in found)
                return OpenFolders(
                    tuple(dict.fromkeys(one for one in named if one is not None)), True
                )
        around = None if self._started is None else started_in(self._started, self._home)
        return NOWHERE if around is None else OpenFolders((around,))

    async def list_resources(self, caller: Caller, params: object) -> types.ListResourcesResult:
        """What can be read."""
        return types.ListResourcesResult(
            resources=[types.Resource(**one, mime_type="text/plain") for one in RESOURCES]
        )

    async def list_templates(
        self, caller: Caller, params: object
    ) -> types.ListResourceTemplatesResult:
        """What can be read by id."""
        return types.ListResourceTemplatesResult(
            resource_templates=[types.ResourceTemplate(**TEMPLATE, mime_type="text/plain")]
        )

    async def read_resource(
        self, caller: Caller, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """One resource as text."""
        uri = str(params.uri)
        try:
            with called_from(caller.origin()):
                text = await self._session.quick.do(self._read, uri)
        except AnaphoraError as error:
            raise Refused(types.INVALID_PARAMS, _error_line(error)) from error
        content = types.TextResourceContents(uri=uri, text=text, mime_type="text/plain")
        return types.ReadResourceResult(contents=[content])

    def _read(self, uri: str) -> str:
        try:
            return str(_clean(read(self._session.memory(), uri)))
        except AnaphoraError:
            raise
        except BaseException as error:
            # What would end a program must not end the server from a worker thread.
            raise failed_request("resources/read", error) from error

    async def list_prompts(self, caller: Caller, params: object) -> types.ListPromptsResult:
        """What a person may ask for by name."""
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=one.name,
                    title=one.title,
                    description=one.description,
                    arguments=[
                        types.PromptArgument(name=name, description=text, required=required)
                        for name, text, required in one.arguments
                    ],
                )
                for one in PROMPTS.values()
            ]
        )

    async def get_prompt(
        self, caller: Caller, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """A prompt with its arguments filled in."""
        try:
            description, text = prompt(params.name, params.arguments or {})
        except AnaphoraError as error:
            raise Refused(types.INVALID_PARAMS, _error_line(error)) from error
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=description, messages=[message])


def failed_call(tool: str, error: BaseException) -> types.CallToolResult:
    """The result of a call that an unexpected error ended: a sentence, and the incident's id."""
    spec = TOOLS.get(tool)
    name = tool if spec is not None else "a tool"
    incident = report(environment(), error, surface="mcp", operation=name)
    changed = "Nothing was changed." if spec is None or spec.read_only else _UNCERTAIN
    words = f"Something went wrong in {name} (incident {incident.id}). {changed} {incident.hint}"
    return types.CallToolResult(content=[types.TextContent(text=words)], is_error=True)


def failed_request(method: str, error: BaseException) -> Refused:
    """The same for a request that is no call of a tool. `method` is one that is served."""
    incident = report(environment(), error, surface="mcp", operation=method)
    words = f"Something went wrong in {method} (incident {incident.id}). {incident.hint}"
    return Refused(types.INTERNAL_ERROR, words, {"incident": incident.id})


def _reporting(method: str, handler: Handler) -> Handler:
    """A handler whose unexpected errors are answered in words."""

    async def handle(caller: Caller, params: Any) -> Any:
        try:
            return await handler(caller, params)
        except (Refused, asyncio.CancelledError, *STOPS):
            raise
        except BaseException as error:
            if method == "tools/call":
                return failed_call(params.name, error)
            raise failed_request(method, error) from error

    return handle


def _unlisted(name: str) -> ToolSpec | None:
    """A tool that changes nothing answers whether or not it was listed."""
    spec = TOOLS.get(name)
    return spec if spec is not None and spec.read_only else None


def _is_large(given: Any) -> bool:
    """Whether there are many words to be read: that must not keep short calls waiting either."""
    if isinstance(given, dict):
        return sum(len(value) for value in given.values() if isinstance(value, str)) > _LARGE
    return False


def _tool(spec: ToolSpec) -> types.Tool:
    return types.Tool(
        name=spec.name,
        title=spec.title,
        description=spec.description,
        # A listing is read by every model in every session: the form of results, which follows from
        # the results themselves, is in the reference.
        input_schema=spec.input_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=spec.read_only or None,
            destructive_hint=None if spec.read_only or spec.destructive else False,
            idempotent_hint=None if spec.read_only or not spec.idempotent else True,
            open_world_hint=False,
        ),
    )


def _json_text(answer: Answer, structured: dict[str, Any]) -> str:
    """The result as one line of JSON, for clients that read nothing but text."""
    shorter = {} if answer.excerpts is None else {"data": _clean(answer.excerpts)}
    return dumps({**structured, **shorter}, indent=None)


def _progress_message(step: DeepStep) -> str:
    words = one_line(step.thought or step.output or step.code)
    return f"{step.kind}: {words}" if words else step.kind


def _error_line(error: AnaphoraError) -> str:
    """An error in one line: what it names can come from others."""
    if isinstance(error, MissingExtra):
        # Whoever asks may be on another machine: the command names a folder of this one.
        return f"{error.summary}; `anaphora doctor` shows the command that installs it"
    return one_line(str(error), _MOST_OF_AN_ERROR)


def _clean(value: Any) -> Any:
    """The value without lone surrogates: JSON on a wire is UTF-8, which has no place for them."""
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value
