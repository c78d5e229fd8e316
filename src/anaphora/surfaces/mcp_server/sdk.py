"""The same handlers on the official SDK's server, which serves HTTP."""

from __future__ import annotations

import warnings
from asyncio import CancelledError
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from anaphora import __version__
from anaphora.calls.caller import CallOrigin
from anaphora.surfaces.access import Right, may
from anaphora.surfaces.mcp_server.http import CALLER
from anaphora.surfaces.mcp_server.server import Handler, Refused, ToolServer, failed_request
from anaphora.surfaces.mcp_server.session import ServerSession
from anaphora.surfaces.mcp_server.tools import INSTRUCTIONS
from anaphora.system.incidents import STOPS

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    Context = ServerRequestContext[Any, Any]


def build_server(
    session: ServerSession, tools: Sequence[str], started: Path | None, *, roots: bool = True
) -> Server[Any]:
    """A server with these tools over the memory of a session; see `ToolServer`."""
    answers = ToolServer(session, tools, started, roots=roots).handlers

    async def wake(ctx: Context, call_next: CallNext) -> HandlerResult:
        """Open the memory in the background after the handshake."""
        method = ctx.method if ctx.method in answers else "request"
        try:
            response = await call_next(ctx)
            if ctx.method != "initialize":
                session.begin()
        except (ValidationError, CancelledError, *STOPS):
            # The SDK itself answers that the parameters are invalid.
            raise
        except MCPError as error:
            is_reported = isinstance(error.error.data, dict) and "incident" in error.error.data
            if error.error.code != types.INTERNAL_ERROR or is_reported:
                raise
            raise _protocol_error(failed_request(method, error)) from error
        except BaseException as error:
            raise _protocol_error(failed_request(method, error)) from error
        return response

    server: Server[Any] = Server(
        "anaphora",
        version=__version__,
        title="Anaphora",
        instructions=INSTRUCTIONS,
        on_list_tools=_on_sdk(answers["tools/list"]),
        on_call_tool=_on_sdk(answers["tools/call"]),
        on_list_resources=_on_sdk(answers["resources/list"]),
        on_list_resource_templates=_on_sdk(answers["resources/templates/list"]),
        on_read_resource=_on_sdk(answers["resources/read"]),
        on_list_prompts=_on_sdk(answers["prompts/list"]),
        on_get_prompt=_on_sdk(answers["prompts/get"]),
    )
    server.middleware.append(wake)
    return server


def _on_sdk(handler: Handler) -> Any:
    """Adapt a handler to the SDK's signature."""

    async def answer(context: Context, params: Any) -> Any:
        try:
            return await handler(_SdkCaller(context), params)
        except Refused as error:
            raise _protocol_error(error) from error

    return answer


def _protocol_error(error: Refused) -> MCPError:
    return MCPError(error.code, error.message, error.data)


class _SdkCaller:
    """The sender of a request to the SDK's server; over HTTP it may have a token."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def may(self, right: Right) -> bool:
        request = self._context.request
        return request is None or may(request.scope.get(CALLER), right)

    def origin(self) -> CallOrigin:
        request, client = self._context.request, self._context.session.client_params
        token = None if request is None else request.scope.get(CALLER)
        return CallOrigin(
            "mcp",
            token="" if token is None else token.name,
            agent="" if client is None else client.client_info.name,
            person="" if token is None else token.person,
        )

    def can_name_folders(self) -> bool:
        session = self._context.session
        capabilities = session.client_capabilities
        return (
            capabilities is not None and capabilities.roots is not None and session.can_send_request
        )

    async def folders(self) -> list[str]:
        try:
            with warnings.catch_warnings():
                # Deprecated in the newest protocol, in which servers cannot send requests.
                roots = await self._context.session.send_request(
                    types.ListRootsRequest(), types.ListRootsResult
                )
        except MCPError as error:
            raise Refused(error.code, str(error)) from error
        return [str(root.uri) for root in roots.roots]

    async def tell(self, step: int, message: str) -> None:
        await self._context.session.report_progress(step, None, message)
