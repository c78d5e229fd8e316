"""Claude's memory tool on Anaphora, without a key and without a network.

The model is a stand-in that gives the commands Claude would give; the loop around it is the one
that a program has. With Anthropic's SDK, `AnaphoraMemoryTool` goes to its tool runner instead.

    python examples/anthropic_memory_tool.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

from anaphora import Memory
from anaphora.adapters.memory_files import MemoryFiles

NOTES = "# Staging\n\n- The database listens on port 5433.\n- Rafi owns it.\n"


def stand_in() -> Iterator[dict[str, Any]]:
    """The inputs of the tool uses that a model asks for, one after the other."""
    yield {"command": "view", "path": "/memories"}
    yield {"command": "create", "path": "/memories/staging.md", "file_text": NOTES}
    changed = {"old_str": "port 5433", "new_str": "port 5434"}
    yield {"command": "str_replace", "path": "/memories/staging.md", **changed}
    yield {"command": "view", "path": "/memories/../secrets"}


def main(home: str) -> None:
    """Let the model work on its files, then find what it wrote as any other program would."""
    with Memory.open(home) as memory:
        files = MemoryFiles(memory)
        for command in stand_in():
            # What goes back to the model as the content of the tool result.
            print(files.handle(command))
        print("recalled:", memory.recall("which port is staging on?").hits[0].path)
        print("versions:", len(memory.history("/memories/staging.md")))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
