"""What a run printed, and its errors as text: bounded, and without anything of the host.

In: pieces of printed text, errors of the interpreter. Out: one text with a mark for what was left
out, and the last line of the channel that carries host calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.deep.sandbox.bounded import shorten

if TYPE_CHECKING:
    import pydantic_monty

    from anaphora.deep.sandbox.base import LimitName

MESSAGE_CHARS = 1024 * 1024
_ERROR_CHARS = 4_000
_LINE_CHARS = 200
_NUMBER_CHARS = 18
_FIRST_FRAMES, _LAST_FRAMES = 2, 6

# The interpreter's own words; code that raises the same ends only its own session.
_LIMITS: tuple[tuple[str, LimitName], ...] = (
    ("MemoryError: memory limit exceeded", "memory"),
    ("MemoryError: the worker exceeded its memory limit", "memory"),
    ("TimeoutError: feed time limit exceeded", "seconds"),
    ("TimeoutError: turn time limit exceeded", "seconds"),
    ("RecursionError: maximum recursion depth exceeded", "recursion"),
    ("RuntimeError: suspension limit", "calls"),
)


class Output:
    """Collects at most `chars` characters of output, and the newest message of the channel."""

    def __init__(self, chars: int) -> None:
        self._chars = chars
        self._kept: list[str] = []
        self._length = 0
        self._seen = 0
        self._channel = ""

    def take(self, stream: str, text: str) -> None:
        """A piece of printed text, of "stdout" or "stderr"."""
        if stream == "stderr":
            # Whatever was printed there before a message is of no use, and must not grow.
            self._channel = (self._channel + text[-MESSAGE_CHARS:])[-MESSAGE_CHARS:]
            return
        self._seen += len(text)
        room = self._chars - self._length
        if room > 0:
            self._kept.append(text[:room])
            self._length += len(self._kept[-1])

    def last_message(self) -> str:
        """The last line of the channel, which is emptied; what code printed there is output."""
        said, self._channel = self._channel.removesuffix("\n"), ""
        before, _, message = said.rpartition("\n")
        if before.strip():
            self.take("stdout", before + "\n")
        return message

    def text(self) -> str:
        """All that is kept, and a mark where something is not."""
        if self._channel.strip():
            rest, self._channel = self._channel, ""
            self.take("stdout", rest)
        kept = "".join(self._kept)
        if self._seen == self._length:
            return kept
        shown = f"{self._length} of {self._seen} characters"
        return f"{kept}\n[output truncated: {shown} shown]"


def limit_of(error: pydantic_monty.MontyError) -> LimitName | None:
    """The limit that an error of the interpreter speaks of, or None for a mistake of the code."""
    said = _summary(error)
    return next((limit for words, limit in _LIMITS if said.startswith(words)), None)


def error_text(error: pydantic_monty.MontyError, runs: dict[int, int], current: int) -> str:
    """An error as the model reads it: lines and source of its own code, kind and message.

    `runs` are the numbers of the pieces that the model wrote, with the number of their run;
    `current` is the newest. Frames of other pieces are ours and left out.
    """
    frames = []
    for frame in getattr(error, "traceback", list)():
        place = _place(frame.filename, runs, current)
        if place is not None:
            within = f", in {frame.function_name}" if frame.function_name else ""
            frames.append(f"  {place}line {frame.line}{shorten(within, _LINE_CHARS)}")
            if frame.source_line:
                frames[-1] += f"\n    {shorten(frame.source_line.strip(), _LINE_CHARS)}"
    if len(frames) > _FIRST_FRAMES + _LAST_FRAMES:
        left = len(frames) - _FIRST_FRAMES - _LAST_FRAMES
        frames[_FIRST_FRAMES:-_LAST_FRAMES] = [f"  [{left} more calls]"]
    said = shorten(_summary(error), _ERROR_CHARS)
    return "\n".join(("Traceback (most recent call last):", *frames, said)) if frames else said


def _place(filename: str, runs: dict[int, int], current: int) -> str | None:
    """Where a frame's code stands, as "" for the current run; None for code of ours."""
    if filename == "<string>":
        return "eval or exec, "
    number = filename.removeprefix("<python-input-").removesuffix(">")
    # The name comes from the sandbox: a million digits are no number to be read.
    if not number.isdecimal() or len(number) > _NUMBER_CHARS or int(number) not in runs:
        return None
    return "" if int(number) == current else f"run {runs[int(number)]}, "


def _summary(error: pydantic_monty.MontyError) -> str:
    display = getattr(error, "display", None)
    try:
        return str(display("type-msg")) if display else str(error)
    except TypeError:
        return str(error)
