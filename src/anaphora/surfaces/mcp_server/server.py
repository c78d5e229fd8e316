"""The handlers of the protocol's requests: tools, resources and prompts.

A tool's arguments are checked here, and it runs in a worker thread. An `AnaphoraError` becomes a
result with `isError` and one sentence; so does any other error, with the id of its incident. The
transports are in `stdio.py` and `http.py`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any, Final, Protocol

import mcp_types as types

from anaphora.api.workers import in_loop
from anaphora.calls.caller import CallOrigin, called_from
from anaphora.errors import AnaphoraError, InvalidInput, MissingExtra
from anaphora.ingest.secrets.masking import mask, mask_text
from anaphora.settings import client_folders
from anaphora.surfaces.access import Right
from anaphora.surfaces.mcp_server.folders import (
    NOWHERE,
    Folders,
    OpenFolders,
    folder_of,
    started_in,
)
from anaphora.surfaces.mcp_server.resources import PROMPTS, TEMPLATE, all_resources, prompt, read
from anaphora.surfaces.mcp_server.session import ServerSession
from anaphora.surfaces.mcp_server.tool import Answer, CallContext, Tool, checked
from anaphora.surfaces.mcp_server.tools import all_tools
from anaphora.surfaces.wire import dumps, plain
from anaphora.system.environment import environment
from anaphora.system.incidents import STOPS, report
from anaphora.system.zones import times_shown_in
from anaphora.text.display import one_line

ROOTS_PATIENCE: Final = 0.5
"""Seconds within which a client must name its folders."""

_LARGE: Final = 64 * 1024
_MOST_OF_AN_ERROR: Final = 2_000
_UNCERTAIN: Final = "Check whether it was done before you call it again."
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Refused(Exception):
    """A request that is answered with a protocol error of this code."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class McpCaller(Protocol):
    """The sender of a request, and what the server can ask of it or report to it meanwhile."""

    def may(self, right: Right) -> bool:
        """Whether it has a right."""
        ...

    def origin(self) -> CallOrigin:
        """The origin of its calls, as recorded in the audit trail."""
        ...

    def can_name_folders(self) -> bool:
        """Whether it has announced that it can name its open folders."""
        ...

    async def folders(self) -> list[str]:
        """The URIs of its open folders. Raises `Refused`."""
        ...

    async def tell(self, step: int, message: str) -> None:
        """Report the progress of a long call, if the client wants it."""
        ...


Handler = Callable[[McpCaller, Any], Awaitable[Any]]


class ToolServer:
    """The handlers of one server. `started` is its folder; None if that is meaningless.

    `roots` says whether the folders that clients name are on this machine.
    """

    def __init__(
        self, session: ServerSession, tools: Sequence[str], started: Path | None, *, roots: bool
    ) -> None:
        self._session = session
        self._all_tools = all_tools()
        self._tools = {name: self._all_tools[name] for name in tools}
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

    def changes(self, tool: object) -> bool:
        """Whether this is the name of a tool that changes what is stored, in no long call."""
        specs = self._tools.values()
        return any(spec.name == tool and not (spec.read_only or spec.long) for spec in specs)

    async def list_tools(self, caller: McpCaller, params: object) -> types.ListToolsResult:
        """List the tools, without touching anything."""
        # Every model reads the listing in every session. So titles are left out, and the schemas of
        # results, which follow from the results themselves and are in the reference.
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=spec.name,
                    description=spec.description,
                    input_schema=spec.input_schema,
                    annotations=types.ToolAnnotations(
                        read_only_hint=spec.read_only or None,
                        destructive_hint=None if spec.read_only or spec.destructive else False,
                        open_world_hint=None if spec.read_only else False,
                    ),
                )
                for spec in self._tools.values()
            ]
        )

    async def call_tool(
        self, caller: McpCaller, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Run one tool in a worker thread."""
        spec = self._tools.get(params.name)
        if spec is None:
            # A read-only tool can be called even if it is not listed.
            spec = self._all_tools.get(params.name)
            if spec is None or not spec.read_only:
                raise Refused(types.INVALID_PARAMS, f"unknown tool {one_line(params.name)!r}")
        if not spec.read_only and not caller.may("change"):
            text = types.TextContent(text=f"{spec.name}: this token may only read")
            return types.CallToolResult(content=[text], is_error=True)
        folders = await self._open_folders(caller) if spec.in_project else NOWHERE
        with called_from(caller.origin()):
            if spec.long:
                # The steps are reported to clients that want them.
                steps: asyncio.Queue[tuple[int, str] | None] = asyncio.Queue()

                async def tell() -> None:
                    while (step := await steps.get()) is not None:
                        await caller.tell(*step)

                def note(number: int, message: str) -> None:
                    steps.put_nowait((number, message))

                # The group sends all steps before the answer. A cancelled call continues in its
                # thread; its answer is dropped.
                async with asyncio.TaskGroup() as group:
                    group.create_task(tell())
                    answer = await self._session.long.do(
                        self._run, spec, params.arguments, NOWHERE, in_loop(note)
                    )
                    steps.put_nowait(None)
                return answer
            texts = [t for t in (params.arguments or {}).values() if isinstance(t, str)]
            # Analysing long texts must not keep short calls waiting.
            is_large = sum(map(len, texts)) > _LARGE
            workers = self._session.long if is_large else self._session.quick
            return await workers.do(self._run, spec, params.arguments, folders)

    def _run(
        self,
        spec: Tool,
        raw_arguments: dict[str, Any] | None,
        folders: OpenFolders,
        tell: Callable[[int, str], object] | None = None,
    ) -> types.CallToolResult:
        try:
            arguments = checked(spec, raw_arguments)
            memory = self._session.memory()
            call_context = CallContext(tell=tell, background=self._session.run_later)
            if folders.folders and "project" not in arguments and spec.in_project:
                call_context = replace(
                    self._folders.call_context(memory, folders, indexing=spec.indexing),
                    directory=str(folders.folders[0]),
                )
            try:
                with times_shown_in(lambda: memory.local_time.tzinfo or UTC):
                    # Memories may hold secrets that their owner kept.
                    answer = mask(spec.call(memory, arguments, call_context))
            except InvalidInput as error:
                # The facade names its own parameter.
                raise error.named(spec.argument(error.what)) from None
            structured_answer = _clean(self._structured(answer))
            if answer.text is None:
                # One line of JSON, for clients that read only the text.
                shorter = {} if answer.excerpts is None else {"data": _clean(answer.excerpts)}
                body = dumps({**structured_answer, **shorter}, indent=None, compact=True)
            else:
                body = _clean(answer.text)
            return types.CallToolResult(
                content=[types.TextContent(text=body)], structured_content=structured_answer
            )
        except AnaphoraError as error:
            text = types.TextContent(text=_error_line(error))
            return types.CallToolResult(content=[text], is_error=True)
        except BaseException as error:  # noqa: BLE001 - in this thread nothing else would answer
            return failed_call(spec.name, error)

    def _structured(self, answer: Answer) -> dict[str, Any]:
        if answer.bare:
            return dict(answer.data)
        now = round(self._session.clock().timestamp() * 1000)
        note = {"note": answer.note} if answer.note else {}
        # The note comes before the data that it is about.
        envelope = {"success": True, **note, "data": answer.data, "timestamp": now}
        if isinstance(answer.data, list):
            envelope["degraded"] = [plain(part) for part in answer.degraded]
            if answer.notices:
                envelope["notices"] = list(answer.notices)
            if answer.confidence is not None:
                envelope["confidence"] = round(answer.confidence, 6)
        return envelope

    async def _open_folders(self, caller: McpCaller) -> OpenFolders:
        """The client's open folders, else the folder that the server was started in."""
        if not caller.may("any_folder"):
            return NOWHERE
        if caller.can_name_folders() and not self._silent:
            try:
                async with asyncio.timeout(ROOTS_PATIENCE):
                    uris = await caller.folders()
            except (TimeoutError, Refused):
                # It announced an answer and did not give one: it is not asked again.
                self._silent = True
            else:
                named_folders = (folder_of(uri, self._home) for uri in uris)
                return OpenFolders(
                    tuple(dict.fromkeys(folder for folder in named_folders if folder is not None)),
                    True,
                )
        around = None if self._started is None else started_in(self._started, self._home)
        return NOWHERE if around is None else OpenFolders((around,))

    async def list_resources(self, caller: McpCaller, params: object) -> types.ListResourcesResult:
        """List the resources."""
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=resource.uri,
                    name=resource.name,
                    title=resource.title,
                    description=resource.description,
                    mime_type="text/plain",
                )
                for resource in all_resources()
            ]
        )

    async def list_templates(
        self, caller: McpCaller, params: object
    ) -> types.ListResourceTemplatesResult:
        """List the resource templates."""
        return types.ListResourceTemplatesResult(
            resource_templates=[types.ResourceTemplate(**TEMPLATE, mime_type="text/plain")]
        )

    async def read_resource(
        self, caller: McpCaller, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Read one resource as text."""
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
            # Raised in a worker thread, a `SystemExit` would end the server.
            raise failed_request("resources/read", error) from error

    async def list_prompts(self, caller: McpCaller, params: object) -> types.ListPromptsResult:
        """List the prompts."""
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=spec.name,
                    title=spec.title,
                    description=spec.description,
                    arguments=[
                        types.PromptArgument(name=name, description=text, required=is_required)
                        for name, text, is_required in spec.arguments
                    ],
                )
                for spec in PROMPTS.values()
            ]
        )

    async def get_prompt(
        self, caller: McpCaller, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Fill in the arguments of a prompt."""
        try:
            description, text = prompt(params.name, params.arguments or {})
        except AnaphoraError as error:
            raise Refused(types.INVALID_PARAMS, _error_line(error)) from error
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=description, messages=[message])


def failed_call(tool: str, error: BaseException) -> types.CallToolResult:
    """The result of a call that failed unexpectedly: a sentence with the incident's id."""
    spec = all_tools().get(tool)
    name = tool if spec is not None else "a tool"
    incident = report(environment(), error, surface="mcp", operation=name)
    change_note = "Nothing was changed." if spec is None or spec.read_only else _UNCERTAIN
    words = (
        f"Something went wrong in {name} (incident {incident.id}). {change_note} {incident.hint}"
    )
    return types.CallToolResult(content=[types.TextContent(text=words)], is_error=True)


def failed_request(method: str, error: BaseException) -> Refused:
    """The error for any other request that failed unexpectedly. `method` is a known one."""
    incident = report(environment(), error, surface="mcp", operation=method)
    words = f"Something went wrong in {method} (incident {incident.id}). {incident.hint}"
    return Refused(types.INTERNAL_ERROR, words, {"incident": incident.id})


def _reporting(method: str, handler: Handler) -> Handler:
    """Wrap a handler so that its unexpected errors are answered with an incident."""

    async def handle(caller: McpCaller, params: Any) -> Any:
        try:
            return await handler(caller, params)
        except (Refused, asyncio.CancelledError, *STOPS):
            raise
        except BaseException as error:
            if method == "tools/call":
                return failed_call(params.name, error)
            raise failed_request(method, error) from error

    return handle


def _error_line(error: AnaphoraError) -> str:
    """An error in one line, since it may quote untrusted text."""
    if isinstance(error, MissingExtra):
        # The caller may be on another machine, and the command names a folder of this one.
        return f"{error.summary}; `anaphora doctor` shows the command that installs it"
    return one_line(mask_text(str(error)), _MOST_OF_AN_ERROR)


def _clean(value: Any) -> Any:
    """Replace lone surrogates, which cannot be encoded as UTF-8 on the wire."""
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_clean(key): _clean(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_clean(member) for member in value]
    return value
