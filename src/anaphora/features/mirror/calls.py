"""The facade of the mirror."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.calls.operation import local
from anaphora.container.view import NamespaceView

if TYPE_CHECKING:
    from anaphora.features.mirror.manager import Mirror


class MirrorCalls(NamespaceView):
    """The mirror of one namespace of a home."""

    @property
    @local("do it on the server's machine (`anaphora mirror`)")
    def mirror(self) -> Mirror:
        """This namespace as a folder of Markdown."""
        from anaphora.features.mirror.manager import Mirror

        return Mirror(self._services())
