"""Claude's memory tool (`memory_20250818`) on Anaphora, for the tool runner of Anthropic's SDK.

    client.beta.messages.run_tools(..., tools=[AnaphoraMemoryTool(memory)])

What it does is told in `anaphora.adapters.memory_files`; here are the two classes that the SDK
asks for. An error is a `ToolError`, which the runner marks as one for the model.
"""

from __future__ import annotations

import asyncio
from typing import Any

from anaphora.adapters.memory_files import Deletion, MemoryFiles
from anaphora.api.memory import Memory
from anaphora.errors import CommandRefused, MissingExtra

try:
    from anthropic.lib.tools import (
        BetaAbstractMemoryTool,
        BetaAsyncAbstractMemoryTool,
        ToolError,
    )
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )
except ImportError as error:
    raise MissingExtra("anthropic", "anthropic") from error

__all__ = ["AnaphoraMemoryTool", "AsyncAnaphoraMemoryTool"]


class AnaphoraMemoryTool(BetaAbstractMemoryTool):
    """The tool for `Anthropic().beta.messages.run_tools`, over one namespace of a `Memory`.

    `on_delete` is that of `MemoryFiles`; `files` is what works without the SDK.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        on_delete: Deletion = "soft",
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self.files = MemoryFiles(memory, on_delete=on_delete)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """A directory's listing, or a file's lines."""
        return self._run(command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """A new file."""
        return self._run(command)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """One text of a file for another."""
        return self._run(command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Lines into a file."""
        return self._run(command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """A file or a directory goes."""
        return self._run(command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """A file or a directory gets another path."""
        return self._run(command)

    def clear_all_memory(self) -> str:
        """All files go."""
        return self.files.clear()

    def _run(self, command: Any) -> str:
        return _answer(self.files, command)


class AsyncAnaphoraMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for `AsyncAnthropic()`: every command runs in a worker thread."""

    def __init__(
        self,
        memory: Memory,
        *,
        on_delete: Deletion = "soft",
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self.files = MemoryFiles(memory, on_delete=on_delete)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """A directory's listing, or a file's lines."""
        return await self._run(command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """A new file."""
        return await self._run(command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """One text of a file for another."""
        return await self._run(command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Lines into a file."""
        return await self._run(command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """A file or a directory goes."""
        return await self._run(command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """A file or a directory gets another path."""
        return await self._run(command)

    async def clear_all_memory(self) -> str:
        """All files go."""
        return await asyncio.to_thread(self.files.clear)

    async def _run(self, command: Any) -> str:
        return await asyncio.to_thread(_answer, self.files, command)


def _answer(files: MemoryFiles, command: Any) -> str:
    """What answers a command; `ToolError` with the text of an error."""
    # The SDK builds commands without checking them: what a model left out is not there.
    try:
        return files.run(command.to_dict())
    except CommandRefused as refused:
        raise ToolError(str(refused)) from None
