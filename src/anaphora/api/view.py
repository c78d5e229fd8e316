"""The base class of the facade's modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anaphora.container.home import Container
    from anaphora.container.namespace import NamespaceServices


class NamespaceView:
    """One namespace of an open home."""

    _container: Container
    namespace: str

    def _services(self) -> NamespaceServices:
        return self._container.namespace(self.namespace)
