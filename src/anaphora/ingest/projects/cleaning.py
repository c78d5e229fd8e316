"""Takes secrets out of projects that an older version indexed, which kept them.

It works on what is stored, so that a project whose folder is not on this machine is cleaned too.
What was cleaned is not looked at again; killed in between, the next run goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from anaphora.ingest.projects.file_sync import PARSER, cut_file
from anaphora.ingest.projects.files.walking import is_secret_file, without_secret_names
from anaphora.ingest.secrets.redacting import redact

if TYPE_CHECKING:
    from anaphora.ingest.projects.graph import GraphSync
    from anaphora.store.projects.rows import FileRow, HistoryRow, ProjectRow
    from anaphora.store.projects.store import Projects
    from anaphora.store.projects.transaction import ProjectTransaction

_FILES: Final = 64
_ITEMS: Final = 1_000


def clean(projects: Projects, graph_sync: GraphSync) -> bool:
    """Clean every project of a namespace that an older version has read; whether anything went.

    Raises StoreError and its kinds.
    """
    old = projects.read_by_older(PARSER)
    return sum(_clean(projects, graph_sync, row) for row in old) > 0


def _clean(projects: Projects, graph_sync: GraphSync, project: ProjectRow) -> bool:
    # Files last: while any is of an older version, all is looked at again.
    found = _history(projects, project)
    with graph_sync.graph.change() as work:
        found |= bool(work.erase(project.id, _gives_away))
    old = [row for row in projects.files(project.id).values() if row.parser < PARSER]
    for start in range(0, len(old), _FILES):
        found |= _files(projects, graph_sync.ids, project.id, old[start : start + _FILES])
    if projects.row(project.id).stale:
        graph_sync.sync(project)
    return found


def _files(
    projects: Projects, ids: Callable[[], str], project: str, some: Sequence[FileRow]
) -> bool:
    """One transaction: what another run has read anew meanwhile is left as it is."""
    texts = {
        row.path: "\n".join(one.text for one in projects.sections_of(project, row.path))
        for row in some
        if not _is_secret(row.path)
    }
    with projects.change() as work:
        known = work.known(project, [row.path for row in some])
        same = [now for row in some if (now := known.get(row.path)) and now.seq == row.seq]
        doomed = [row.id for row in same if _is_secret(row.path)]
        work.remove_files(doomed)
        changed = [_put(work, ids, row, texts[row.path]) for row in same if row.path in texts]
        if doomed or any(changed):
            work.mark_stale(project)
    return bool(doomed) or any(changed)


def _put(work: ProjectTransaction, ids: Callable[[], str], row: FileRow, text: str) -> bool:
    """Write a file as this version would have read it; whether it had secrets."""
    looked = cut_file(replace(row, parser=PARSER), text) if redact(text).kinds else None
    if looked is None:
        work.put_file(replace(row, parser=PARSER), known=True)
        return False
    work.put_file(looked.file, known=True)
    work.put_sections(looked.file, looked.sections, ids, known=True)
    return True


def _history(projects: Projects, project: ProjectRow) -> bool:
    changed = [row for old in _items(projects, project) if (row := _told(old)) != old]
    if changed:
        with projects.change() as work:
            work.change_history(changed)
    return bool(changed)


def _items(projects: Projects, project: ProjectRow) -> Iterator[HistoryRow]:
    since = 0
    while rows := projects.history(project.id, since, _ITEMS):
        yield from rows
        since = rows[-1].seq


def _told(row: HistoryRow) -> HistoryRow:
    paths = tuple(map(without_secret_names, row.paths))
    return replace(row, text=redact(row.text).text, paths=paths)


def _is_secret(path: str) -> bool:
    return is_secret_file(path) or _gives_away(path)


def _gives_away(name: str) -> bool:
    return without_secret_names(name) != name
