"""The server: memory over HTTP for programs, and the page for people.

In: requests. Out: the JSON that every other surface gives for the same question. Importing this
package imports no web framework; `create_app` and `serve` do, and need the extra `server`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anaphora.errors import MissingExtra
from anaphora.surfaces.rest.options import ServerOptions

if TYPE_CHECKING:
    from fastapi import FastAPI

    from anaphora.api.memory import Memory
    from anaphora.store.tokens import Tokens

__all__ = ["ServerOptions", "create_app"]


def create_app(
    memory: Memory, *, tokens: Tokens | None = None, settings: ServerOptions | None = None
) -> FastAPI:
    """An ASGI application over an open memory, which stays the caller's to close.

    `tokens` are by default those of the memory's own home. Raises `MissingExtra`.
    """
    need_server()
    from anaphora.surfaces.rest.app import build

    return build(memory, tokens or memory.tokens, settings or ServerOptions())


def need_server() -> Any:
    """`MissingExtra` unless the libraries of the extra `server` are installed."""
    try:
        import fastapi
        import prometheus_client
        import uvicorn
    except ModuleNotFoundError as error:
        raise MissingExtra("server", error.name or "fastapi") from error
    return fastapi, prometheus_client, uvicorn
