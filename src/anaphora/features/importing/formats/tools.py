"""Calls of tools in a few words: what was called for, and how it ended. No output is kept.

What the user said through a tool is read by `answers`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from anaphora.text.display import one_line

TARGET: Final = 160
"""Characters of what a tool was called for."""
REASON: Final = 100
"""Characters of why a call failed."""

_LOOKED_AT: Final = 4_000
# The argument that says most of a call, by the names that the agents' tools give it.
_TELLING: Final = (
    *("file_path", "path", "notebook_path", "target_file", "absolute_path", "file", "paths"),
    *("command", "cmd", "script", "pattern", "glob_pattern", "query", "url", "prompt", "question"),
    *("description", "name", "dir_path", "target_directory"),
)
_PATCHED: Final = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)
_SHELL: Final = re.compile(r"^(?:/\S*/)?(?:ba|z|da)?sh$")
_EXIT_CODE: Final = re.compile(
    r"(?:exit(?:ed with)? code|process exited with code)[: ]+(-?\d+)", re.IGNORECASE
)


def described_target(given: object, directory: str = "") -> str:
    """The target of a call, in one line; paths in `directory` are relative to it."""
    target = _find_telling(decoded(given))
    if directory:
        target = target.replace(directory.rstrip("/\\") + "/", "")
    return one_line(target[:_LOOKED_AT], TARGET)


def outcome_of(said: object, failed: bool | None = None) -> str:
    """ "ok", or "failed: " and the first line of why; `failed` None: read from what was said."""
    text = output_text(decoded(said))[:_LOOKED_AT]
    if failed is None:
        output = decoded(said)
        metadata = output.get("metadata") if isinstance(output, Mapping) else None
        codes = (h.get("exit_code") for h in (metadata, output) if isinstance(h, Mapping))
        code = next((exit_code for exit_code in codes if isinstance(exit_code, int)), None)
        if code is None and (match := _EXIT_CODE.search(text)):
            code = int(match[1])
        if code is None:
            return ""
        failed = code != 0
    if not failed:
        return "ok"
    reason = next((line for line in text.splitlines() if line.strip()), "")
    return f"failed: {one_line(reason, REASON)}" if reason else "failed"


def decoded(value: object) -> object:
    """Arguments and output also come as JSON in a string."""
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "["}:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _find_telling(given: object) -> str:
    if isinstance(given, str):
        patched_paths = _PATCHED.findall(given[: 16 * _LOOKED_AT])
        return ", ".join(dict.fromkeys(patched_paths)) or given
    if isinstance(given, Mapping):
        for name in _TELLING:
            if name in given and (words := _join_words(given[name])):
                return words
        if isinstance(listed := given.get("questions"), list):
            texts = (
                question.get("question") for question in listed if isinstance(question, Mapping)
            )
            if questions := " ".join(text for text in texts if isinstance(text, str)):
                return questions
        # "apply_patch" and the like give all that there is in one argument.
        return _find_telling(
            next((argument for argument in given.values() if isinstance(argument, str)), "")
        )
    return _join_words(given)


def _join_words(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = [part for part in value if isinstance(part, str)]
        # `bash -lc "pytest -q"`: the last word is what was run.
        return parts[-1] if len(parts) > 2 and _SHELL.match(parts[0]) else " ".join(parts)
    return ""


def output_text(value: object) -> str:
    """The text of an output, out of any kind of blocks."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return output_text(next((value[n] for n in ("text", "output", "error") if n in value), ""))
    return "\n".join(map(output_text, value)) if isinstance(value, Iterable) else ""
