"""Projects over a server."""

from __future__ import annotations

from pathlib import Path

from anaphora.container.view import ServerView


class RemoteProjectCalls(ServerView):
    """Projects of one namespace on a server."""

    def _path_id(self, name: str, argument: str) -> str:
        """The id also of a project that is named by its folder, which a path cannot hold."""
        if name != "project" or ("/" not in argument and "\\" not in argument):
            return super()._path_id(name, argument)
        projects = self._ask("projects", {})
        return next(
            (project.id for project in projects if Path(project.root) == Path(argument)), argument
        )
