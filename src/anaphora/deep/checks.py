"""What `doctor` says of deep recall: which models are configured, which walls stand.

A sandbox is started and ended (some hundredth of a second); no model is asked, and no key is ever
part of a finding.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from anaphora.deep.sandbox.base import Wall
from anaphora.deep.sandbox.monty import MontyEngine
from anaphora.errors import AnaphoraError, MissingExtra, SandboxError
from anaphora.values.conversations import Check

if TYPE_CHECKING:
    from anaphora.deep.tools import DeepTools


def deep_checks(tools: DeepTools | None) -> tuple[Check, ...]:
    """The models by name, then the sandbox. Nothing raises: what fails is a finding."""
    return (_models(tools), *sandbox_checks())


def _models(tools: DeepTools | None) -> Check:
    try:
        models = None if tools is None else tools.models()
    except MissingExtra as error:
        return Check("models", ok=False, detail=f"configured, but not installed: {error}")
    except AnaphoraError as error:
        return Check("models", ok=False, detail=str(error))
    if models is None:
        return Check("models", ok=True, detail="none configured: deep recall returns evidence only")
    detail = f"{models.code.name} writes the searches, {models.sub.name} reads"
    return Check("models", ok=True, detail=detail)


_OUTER = frozenset({"namespaces", "landlock", "seatbelt"})
_BARE = (
    "without an outer wall around its files: the interpreter alone keeps code from them; "
    "a container or a virtual machine would be such a wall"
)


def sandbox_checks() -> tuple[Check, ...]:
    """Start a sandbox and say which walls stand. Nothing raises: what fails is a finding.

    Without the extra there is no sandbox, and nothing to worry about. A wall is well when it
    stands, when another does its work, or when this system has no such thing; the sandbox only
    behind an outer one.
    """
    try:
        engine = MontyEngine()
    except MissingExtra as error:
        return (Check("sandbox", ok=True, detail=f"not installed: {error}"),)
    try:
        with engine.open({}, {}) as session:
            run = session.run("print(6 * 7)")
    except SandboxError as error:
        return (Check("sandbox", ok=False, detail=str(error)),)
    walls = engine.walls()
    outer = [w.name for w in walls if w.active and w.name in _OUTER]
    behind = f"behind {outer[0]}" if outer else _BARE
    first = Check(
        "sandbox",
        ok=run.output == "42\n" and bool(outer),
        detail=f"works {behind}" if run.output == "42\n" else f"does not work: {run.error}",
    )
    return (first, *(_check(wall, outer) for wall in walls))


def _check(wall: Wall, outer: list[str]) -> Check:
    replaced = wall.name in _OUTER and bool(outer)
    state = "stands" if wall.active else "does not stand"
    return Check(
        f"sandbox.{wall.name}",
        ok=wall.active or replaced or not _linux(),
        detail=f"{state}: {wall.detail}",
    )


def _linux() -> bool:
    return sys.platform.startswith("linux")
