"""The official client of the Model Context Protocol, connected to `anaphora mcp` as a process.

In: a home, and how the server is started. Out: a connected session, and small helpers on results.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult, ErrorData, ListRootsResult, Root
from tests.commands import program
from tests.tool_reference import documented_tools

SCRIPT = Path(sys.executable).with_name("anaphora")


def server(
    home: Path,
    *words: str,
    embedder: str = "hashing",
    cwd: Path | None = None,
    settings: Mapping[str, str] | None = None,
    begin: Sequence[str] = (str(SCRIPT),),
) -> StdioServerParameters:
    """How the server of a home is started. `HOME` is the folder around the home."""
    return StdioServerParameters(
        command=begin[0],
        args=[*begin[1:], "--home", str(home), "mcp", *words],
        env={
            "ANAPHORA_EMBEDDER": embedder,
            "ANAPHORA_READER": "off",
            "ANAPHORA_RESIDENT": "0",
            "HOME": str(home.parent),
            **(settings or {}),
        },
        cwd=cwd or home.parent,
    )


@asynccontextmanager
async def connected(
    home: Path,
    *words: str,
    embedder: str = "hashing",
    cwd: Path | None = None,
    roots: Iterable[Path] | None = None,
    settings: Mapping[str, str] | None = None,
    broken_roots: bool = False,
    own: bool = False,
) -> AsyncIterator[ClientSession]:
    """A session after its handshake. With `roots` the client says which folders it has open.

    With `broken_roots` it says that it would, and answers with an error. With `own` the program is
    started as a client does, and shares no imports.
    """
    home.parent.mkdir(parents=True, exist_ok=True)

    async def named(_: object) -> ListRootsResult | ErrorData:
        if broken_roots:
            return ErrorData(code=-32_603, message="no folders today")
        return ListRootsResult(roots=[Root(uri=root.as_uri()) for root in roots or ()])  # type: ignore[arg-type]

    told = {"list_roots_callback": named} if roots is not None or broken_roots else {}
    with (home.parent / "server.log").open("a") as log:
        begin = (str(SCRIPT),) if own else program()
        start = server(home, *words, embedder=embedder, cwd=cwd, settings=settings, begin=begin)
        try:
            async with (
                stdio_client(start, errlog=log) as streams,
                ClientSession(*streams, **told) as session,  # type: ignore[arg-type]
            ):
                await session.initialize()
                yield session
        except BaseException:
            # The client is told the kind of an internal error; where it was stands here alone.
            print(Path(log.name).read_text())
            raise


async def call(session: ClientSession, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured result of a call that must succeed, held to the tool's own schema."""
    result = await session.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    assert not result.is_error, text_of(result)
    _validator(tool).validate(result.structured_content)
    found: dict[str, Any] = result.structured_content
    return found


@cache
def _validator(tool: str) -> Validator:
    schema = documented_tools()[tool].result
    kind = validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


async def refusal(session: ClientSession, tool: str, **arguments: Any) -> str:
    """The sentence of a call that must be refused."""
    result = await session.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    assert result.is_error
    assert result.structured_content is None
    said = text_of(result)
    assert "Traceback" not in said
    return said


def text_of(result: CallToolResult) -> str:
    """The text form of a result."""
    (content,) = result.content
    assert content.type == "text"
    return content.text
