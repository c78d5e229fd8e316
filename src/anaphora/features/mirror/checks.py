"""The checks of `doctor` for a mirror."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anaphora.errors import AnaphoraError
from anaphora.features.mirror.manager import Mirror
from anaphora.values.conversations import Check

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices


def mirror_checks(services: NamespaceServices) -> Iterator[Check]:
    """How this namespace is mirrored, if it is; no file is looked at. Nothing raises."""
    try:
        status = Mirror(services).status()
    except AnaphoraError as error:
        yield Check("mirror", ok=False, detail=str(error))
        return
    if not status.folder:
        return
    if status.stopped is not None:
        yield Check("mirror", ok=False, detail=f"stopped: {status.stopped}")
    elif status.problems:
        first_problem = status.problems[0]
        more_problems = f", and {len(status.problems) - 1} more" if len(status.problems) > 1 else ""
        yield Check(
            "mirror",
            ok=False,
            detail=f"left alone: {first_problem.file}: {first_problem.reason}{more_problems}",
        )
    else:
        yield Check("mirror", ok=True, detail=f"{status.pages} files in {status.folder}")
