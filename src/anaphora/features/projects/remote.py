"""Projects over a server."""

from __future__ import annotations

from pathlib import Path

from anaphora.container.view import ServerView
from anaphora.core.arguments import checked
from anaphora.features.projects.values import ProjectMap


class RemoteProjectCalls(ServerView):
    """Those calls of projects that are more than a request."""

    @checked
    def project_map(self, project: str, *, within: str | None = None) -> ProjectMap:
        """As `Memory.project_map`."""
        arguments = {"project": self._project_id(project), "within": within}
        return self._ask("project_map", arguments)  # type: ignore[no-any-return]

    @checked
    def remove_project(self, project: str) -> int:
        """As `Memory.remove_project`."""
        return self._ask("remove_project", {"project": self._project_id(project)})  # type: ignore[no-any-return]

    def _project_id(self, named: str) -> str:
        """The id of a project that is named by its folder, which a path cannot hold."""
        if "/" not in named and "\\" not in named:
            return named
        projects = self._ask("projects", {})
        return next(
            (project.id for project in projects if Path(project.root) == Path(named)), named
        )
