"""The short road to the server: past the other commands, whose import a client would wait for.

In: the words of the command line. Out: whether they plainly asked for the server, which has then
run to its end. It prints nothing but what the server says.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

_BEFORE: Final = ("--home", "--namespace", "--conversations-dir")
_AFTER: Final = ("--tools", "--http")


def short_road(words: Sequence[str]) -> bool:
    """Serve, if that is plainly what the words ask for; False leaves them to the command line."""
    given: dict[str, str] = {}
    rest = _options(list(words), _BEFORE, given)
    if not rest or rest[0] != "mcp" or _options(rest[1:], _AFTER, given):
        return False
    if not all(value.strip() for value in given.values()):
        # Nobody means a blank one: the command line says which.
        return False
    home, folder = given.get("--home"), given.get("--conversations-dir")
    served(
        Path(home) if home is not None else None,
        given.get("--namespace", "default"),
        Path(folder) if folder is not None else None,
        given.get("--tools", "default"),
        given.get("--http"),
    )
    return True


def _options(words: list[str], known: Sequence[str], given: dict[str, str]) -> list[str]:
    """Take known options with their values off the front; what is left."""
    while words:
        name, joined, value = words[0].partition("=")
        if name not in known or (not joined and len(words) < 2):
            break
        given[name] = value if joined else words[1]
        words = words[1:] if joined else words[2:]
    return words


def served(
    home: Path | None,
    namespace: str,
    conversations: Path | None,
    tools: str,
    http: str | None,
    *,
    open_to_all: bool = False,
) -> None:
    """Serve the memory of this place until the client goes."""
    from anaphora.api.memory import Memory
    from anaphora.surfaces.mcp_server.serving import serve

    serve(
        lambda: Memory.open(home, namespace=namespace, conversations_dir=conversations),
        tools=tools,
        http=http,
        home=home,
        open_to_all=open_to_all,
    )
