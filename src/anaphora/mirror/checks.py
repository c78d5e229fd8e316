"""What `doctor` says of a mirror."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anaphora.errors import AnaphoraError
from anaphora.mirror.manager import Mirror
from anaphora.values.conversations import Check

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices


def mirror_checks(services: NamespaceServices) -> Iterator[Check]:
    """How this namespace is mirrored, if it is; no file is looked at. Nothing raises."""
    try:
        found = Mirror(services).status()
    except AnaphoraError as error:
        yield Check("mirror", ok=False, detail=str(error))
        return
    if not found.folder:
        return
    if found.stopped is not None:
        yield Check("mirror", ok=False, detail=f"stopped: {found.stopped}")
    elif found.problems:
        first = found.problems[0]
        more = f", and {len(found.problems) - 1} more" if len(found.problems) > 1 else ""
        yield Check("mirror", ok=False, detail=f"left alone: {first.file}: {first.reason}{more}")
    else:
        yield Check("mirror", ok=True, detail=f"{found.pages} files in {found.folder}")
