"""The base class of the parts of the facade."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anaphora.container.home import Container
    from anaphora.container.namespace import NamespaceServices


def cut_logs(view: NamespaceView) -> None:
    """Cut the write-ahead logs of a view's home, for a process that has nothing else to do."""
    view._container.cut_logs()


class NamespaceView:
    """One namespace of an open home."""

    _container: Container
    namespace: str

    def _services(self) -> NamespaceServices:
        return self._container.namespace(self.namespace)
