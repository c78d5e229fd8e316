"""The tools, resources and prompts, put on the official SDK's server.

What a tool does is in `calls.py`; here it is checked, run in a worker thread and wrapped in the
protocol's types. An error that Anaphora raises on purpose becomes a result with `isError` and one
sentence.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from anaphora import __version__
from anaphora.api.workers import in_loop
from anaphora.core.config import client_folders
from anaphora.core.display import one_line
from anaphora.errors import AnaphoraError, InvalidInput
from anaphora.surfaces.access import Right, may
from anaphora.surfaces.mcp_server.calls import CALLS, Answer, CallContext
from anaphora.surfaces.mcp_server.folders import (
    NOWHERE,
    Folders,
    OpenFolders,
    folder_of,
    started_in,
)
from anaphora.surfaces.mcp_server.http import CALLER
from anaphora.surfaces.mcp_server.resources import PROMPTS, RESOURCES, TEMPLATE, prompt, read
from anaphora.surfaces.mcp_server.session import ServerSession
from anaphora.surfaces.mcp_server.tools import INSTRUCTIONS, TOOLS, ToolSpec, checked
from anaphora.surfaces.wire import plain

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from anaphora.api.memory import Memory
    from anaphora.values.deep import DeepStep

    Context = ServerRequestContext[Any, Any]

ROOTS_PATIENCE: Final = 0.5
"""Seconds that a client has to name its folders."""

# These look at, or note something about, the project that the client has open.
_INDEXING: Final = ("recall_context", "warm_up")
_IN_A_PROJECT: Final = (*_INDEXING, "save_diary", "observe", "recall", "store_memory")
_LONG: Final = "deep_recall"
_LARGE: Final = 64 * 1024
_MOST_OF_AN_ERROR: Final = 2_000
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


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

    async def list_tools(self, context: Context, params: object) -> types.ListToolsResult:
        """The tools, without touching anything."""
        return types.ListToolsResult(tools=[_tool(spec) for spec in self._tools.values()])

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Run one tool in a worker thread."""
        spec = self._tools.get(params.name) or _unlisted(params.name)
        if spec is None:
            raise MCPError(types.INVALID_PARAMS, f"unknown tool {params.name!r}")
        if not spec.read_only and not _may(context, "change"):
            text = types.TextContent(text=f"{spec.name}: this token may only read")
            return types.CallToolResult(content=[text], is_error=True)
        folders = await self._open_folders(context) if spec.name in _IN_A_PROJECT else NOWHERE
        if spec.name == _LONG:
            return await self._call_telling_steps(context, spec, params.arguments)
        workers = self._session.long if _is_large(params.arguments) else self._session.quick
        return await workers.do(self._run, spec, params.arguments, folders)

    async def _call_telling_steps(
        self, context: Context, spec: ToolSpec, given: dict[str, Any] | None
    ) -> types.CallToolResult:
        """A long call, its steps told to a client that wants to know."""
        send, receive = anyio.create_memory_object_stream[Any](math.inf)

        async def tell() -> None:
            async with receive:
                async for step in receive:
                    await context.session.report_progress(
                        step.number, None, _progress_message(step)
                    )

        def heard(step: DeepStep) -> None:
            # A call that was cancelled goes on in its thread; nobody listens any more.
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                send.send_nowait(step)

        # What was told is sent before the answer is.
        async with anyio.create_task_group() as group:
            group.start_soon(tell)
            with send:
                result = await self._session.long.do(
                    self._run, spec, given, NOWHERE, in_loop(heard)
                )
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
                answer = CALLS[spec.name](memory, arguments, call_context)
            except InvalidInput as error:
                # The facade names its own parameter.
                raise error.named(spec.argument(error.what)) from None
        except AnaphoraError as error:
            text = types.TextContent(text=_error_line(error))
            return types.CallToolResult(content=[text], is_error=True)
        return types.CallToolResult(
            content=[types.TextContent(text=_clean(answer.text))],
            structured_content=_clean(self._structured(answer)),
        )

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
        return CallContext(on_step=on_step, background=self._session.submit)

    def _structured(self, answer: Answer) -> dict[str, Any]:
        if answer.bare:
            return dict(answer.data)
        now = round(self._session.clock().timestamp() * 1000)
        result = {"success": True, "data": answer.data, "timestamp": now}
        if isinstance(answer.data, list):
            result["degraded"] = [plain(part) for part in answer.degraded]
            result["notices"] = list(answer.notices)
            if answer.confidence is not None:
                result["confidence"] = round(answer.confidence, 6)
        return result

    async def _open_folders(self, context: Context) -> OpenFolders:
        """The folders that the client has open, else the one that the server was started in."""
        session = context.session
        capabilities = session.client_capabilities
        if not _may(context, "any_folder"):
            return NOWHERE
        asks = capabilities is not None and capabilities.roots is not None
        if asks and session.can_send_request and not self._silent:
            try:
                with anyio.fail_after(ROOTS_PATIENCE), warnings.catch_warnings():
                    # Deprecated in the newest protocol, where no request can be sent either.
                    found = await session.send_request(
                        types.ListRootsRequest(), types.ListRootsResult
                    )
            except (TimeoutError, MCPError):
                # It said that it would answer, and does not: it is not asked again.
                self._silent = True
            else:
                named = (folder_of(str(root.uri), self._home) for root in found.roots)
                return OpenFolders(
                    tuple(dict.fromkeys(one for one in named if one is not None)), True
                )
        around = None if self._started is None else started_in(self._started, self._home)
        return NOWHERE if around is None else OpenFolders((around,))

    async def list_resources(self, context: Context, params: object) -> types.ListResourcesResult:
        """What can be read."""
        return types.ListResourcesResult(
            resources=[types.Resource(**one, mime_type="text/plain") for one in RESOURCES]
        )

    async def list_templates(
        self, context: Context, params: object
    ) -> types.ListResourceTemplatesResult:
        """What can be read by id."""
        return types.ListResourceTemplatesResult(
            resource_templates=[types.ResourceTemplate(**TEMPLATE, mime_type="text/plain")]
        )

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """One resource as text."""
        uri = str(params.uri)
        try:
            text = await self._session.quick.do(lambda: read(self._session.memory(), uri))
        except AnaphoraError as error:
            raise MCPError(types.INVALID_PARAMS, _error_line(error)) from error
        content = types.TextResourceContents(uri=uri, text=_clean(text), mime_type="text/plain")
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(self, context: Context, params: object) -> types.ListPromptsResult:
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
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """A prompt with its arguments filled in."""
        try:
            description, text = prompt(params.name, params.arguments or {})
        except AnaphoraError as error:
            raise MCPError(types.INVALID_PARAMS, _error_line(error)) from error
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=description, messages=[message])

    async def wake(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Open the memory in the background once the handshake was answered."""
        result = await call_next(ctx)
        if ctx.method != "initialize":
            self._session.begin()
        return result


def build_server(
    session: ServerSession, tools: Sequence[str], started: Path | None, *, roots: bool = True
) -> Server[Any]:
    """A server with these tools over the memory of a session; see `ToolServer`."""
    handlers = ToolServer(session, tools, started, roots=roots)
    server: Server[Any] = Server(
        "anaphora",
        version=__version__,
        title="Anaphora",
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )
    server.middleware.append(handlers.wake)
    return server


def _unlisted(name: str) -> ToolSpec | None:
    """A tool that changes nothing answers whether or not it was listed."""
    spec = TOOLS.get(name)
    return spec if spec is not None and spec.read_only else None


def _may(context: Context, right: Right) -> bool:
    """Whether the caller has a right; without HTTP it is the user's own client, who has all."""
    return context.request is None or may(context.request.scope.get(CALLER), right)


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


def _progress_message(step: DeepStep) -> str:
    words = one_line(step.thought or step.output or step.code)
    return f"{step.kind}: {words}" if words else step.kind


def _error_line(error: AnaphoraError) -> str:
    """An error in one line: what it names can come from others."""
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
