"""The base classes of the parts of the facade, of a home and of a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from anaphora.container.home import Container
    from anaphora.container.namespace import NamespaceServices


def cut_logs(view: NamespaceView) -> None:
    """Cut the write-ahead logs of a view's home, for a process that has nothing else to do."""
    view._container.cut_logs()


def services_of(view: NamespaceView) -> NamespaceServices:
    """The services of a view's namespace, for what a feature does beside its calls."""
    return view._services()


class NamespaceView:
    """One namespace of an open home."""

    _container: Container
    namespace: str

    def _services(self, *, anew: bool = True) -> NamespaceServices:
        return self._container.namespace(self.namespace, anew=anew)


class ServerView:
    """One namespace on a server. Requests are what the descriptions of the methods say.

    `arguments` are those of the method `name`, `more` other fields of the request.
    """

    def _ask(self, name: str, arguments: Mapping[str, Any], **more: Any) -> Any:
        """The value that the server answers with."""
        raise NotImplementedError

    def _ask_in_steps(
        self, name: str, arguments: Mapping[str, Any], kind: Any, on_step: Callable[[Any], None]
    ) -> Any:
        """The same; `on_step` is called with values of the type `kind` as they come."""
        raise NotImplementedError

    def _download(
        self, name: str, arguments: Mapping[str, Any], file: BinaryIO, **more: Any
    ) -> Mapping[str, str]:
        """Write the server's answer to `file`; its headers."""
        raise NotImplementedError

    def _path_id(self, name: str, argument: str) -> str:
        """What stands in a path for a parameter: an id where the argument has a slash.

        Features add to it for their own parameters.
        """
        return argument
