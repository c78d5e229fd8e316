"""How much is taken of one file that is imported.

The bounds are far above any real export, and keep a small hostile file from using up the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is taken of one file.

    `characters` is the length of one JSON value (a line, an element, a file's only value) and of
    the turns that are held at once; `parts` how many values lie within one. A zip file may become
    `times` its own size in bytes when it is unpacked, and `unpacked` in any case. `messages` and
    `conversations` are those whose identities are held while a file is read, `problems` those
    that are listed one by one. `memory` is how many bytes reading may take, `seconds` how long it
    may take for a file, and `seconds_each` how much longer for each megabyte of it; `files` bounds
    a database that must be copied before it can be read.
    """

    characters: int = 64 << 20
    parts: int = 4_000_000
    unpacked: int = 256 << 20
    times: int = 200
    messages: int = 1_000_000
    conversations: int = 100_000
    problems: int = 1_000
    memory: int = 2 << 30
    seconds: float = 60.0
    seconds_each: float = 5.0
    files: int = 2 << 30

    def seconds_for(self, size: int) -> float:
        """The seconds that reading a file of so many bytes may take."""
        return self.seconds + self.seconds_each * size / 1_000_000

    def room(self, packed: int) -> int:
        """The bytes that a zip file of `packed` bytes may become."""
        return max(self.unpacked, self.times * packed)


BOUNDS: Final = Bounds()
