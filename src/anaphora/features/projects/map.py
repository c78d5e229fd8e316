"""A project as a picture can show it: its folders, or the files of one, and what imports what.

It comes from the stored graph; imports between files are counted up to their folders.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from typing import TYPE_CHECKING, Final

from anaphora.errors import NotFound
from anaphora.features.projects.values import EntityType, MapLink, MapNode, Project, ProjectMap
from anaphora.values.conversations import Degraded

if TYPE_CHECKING:
    from anaphora.features.projects.store.graph import Graph

SHOWN: Final = 150
"""Nodes that a map shows at most: more cannot be told apart in a picture."""

_FILES: Final[tuple[EntityType, ...]] = ("file", "doc", "config")


def project_map(
    graph: Graph, project: Project, within: str | None = None, shown: int = SHOWN
) -> ProjectMap:
    """The folders of `project` that hold files, or with `within` the files right in that folder.

    Where more than `shown` were found, the most linked ones stay, and `degraded` says so. Raises
    `NotFound` for a folder that the project does not have.
    """
    entities = graph.of_project(project.id, ("module", *_FILES))
    files = {row.id: row for row in entities if row.kind != "module"}
    modules = {row.name: row for row in entities if row.kind == "module"}
    if within is not None and within not in modules:
        raise NotFound("folder", within)
    # The node of the map that each entity belongs to.
    node_of: dict[str, str] = {}
    for row in entities:
        if within is None:
            node_of[row.id] = row.name if row.kind == "module" else _folder(row.name)
        elif row.kind != "module" and _folder(row.name) == within:
            node_of[row.id] = row.name
    links: Counter[tuple[str, str]] = Counter()
    for subject, target in graph.links_of_project(project.id, "imports"):
        source, destination = node_of.get(subject), node_of.get(target)
        if source is not None and destination is not None and source != destination:
            links[source, destination] += 1
    if within is None:
        folder_counts = Counter(_folder(row.name) for row in files.values())
        nodes = [
            MapNode(path, "module", row.summary, folder_counts[path])
            for path, row in modules.items()
            if folder_counts[path]
        ]
    else:
        nodes = [
            MapNode(row.name, row.kind, row.summary)
            for row in files.values()
            if _folder(row.name) == within
        ]
    return _bound(project, within, nodes, links, shown)


def _folder(path: str) -> str:
    return posixpath.dirname(path) or "."


def _bound(
    project: Project,
    within: str | None,
    nodes: list[MapNode],
    links: Counter[tuple[str, str]],
    shown: int,
) -> ProjectMap:
    weight: Counter[str] = Counter()
    for (subject, target), count in links.items():
        weight[subject] += count
        weight[target] += count
    nodes.sort(key=lambda node: (-weight[node.path], -node.files, node.path))
    nodes_shown = sorted(nodes[:shown], key=lambda node: node.path)
    names = {node.path for node in nodes_shown}
    degradations: tuple[Degraded, ...] = ()
    if len(nodes) > shown:
        degradations = (Degraded("map", f"the {shown} most linked of {len(nodes)} are shown"),)
    return ProjectMap(
        project=project,
        within=within,
        nodes=tuple(nodes_shown),
        links=tuple(
            MapLink(subject, target, count)
            for (subject, target), count in sorted(links.items())
            if subject in names and target in names
        ),
        degraded=degradations,
    )
