"""The checks of `doctor` for deep recall: which models are configured, which walls are active.

A sandbox is started and ended (a few hundredths of a second); the models' servers are looked at, no
model is asked, and no key is ever part of a finding.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from anaphora.errors import AnaphoraError, MissingExtra, SandboxError
from anaphora.features.deep.sandbox.monty import MontyEngine
from anaphora.values.conversations import Check

if TYPE_CHECKING:
    from anaphora.features.deep.tools import DeepTools


def deep_checks(tools: DeepTools | None) -> tuple[Check, ...]:
    """The models by name, then the sandbox. Nothing raises: a failure is a finding."""
    check = Check("models", ok=True, detail="none configured: deep recall returns evidence only")
    try:
        models = None if tools is None else tools.models()
        if models is not None:
            models.check()
            detail = f"{models.code.name} writes the searches, {models.sub.name} reads"
            check = Check("models", ok=True, detail=detail)
    except MissingExtra as error:
        check = Check("models", ok=False, detail=f"configured, but not installed: {error}")
    except AnaphoraError as error:
        check = Check("models", ok=False, detail=str(error))
    return (check, *sandbox_checks())


_OUTER = frozenset({"namespaces", "landlock", "seatbelt"})
_BARE = (
    "without an outer wall around its files: the interpreter alone keeps code from them; "
    "a container or a virtual machine would be such a wall"
)


def sandbox_checks() -> tuple[Check, ...]:
    """Start a sandbox and report its walls. Nothing raises: a failure is a finding.

    Without the extra there is no sandbox, and nothing to worry about. A wall is ok when it is
    active, when another one replaces it, or when this system does not have it; the sandbox is ok
    only behind an outer wall.
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
    outer_names = [w.name for w in walls if w.active and w.name in _OUTER]
    wall_note = f"behind {outer_names[0]}" if outer_names else _BARE
    engine_check = Check(
        "sandbox",
        ok=run.output == "42\n" and bool(outer_names),
        detail=f"works {wall_note}" if run.output == "42\n" else f"does not work: {run.error}",
    )
    linux = sys.platform.startswith("linux")
    return (
        engine_check,
        *(
            Check(
                f"sandbox.{wall.name}",
                ok=wall.active or (wall.name in _OUTER and bool(outer_names)) or not linux,
                detail=f"{'stands' if wall.active else 'does not stand'}: {wall.detail}",
            )
            for wall in walls
        ),
    )
