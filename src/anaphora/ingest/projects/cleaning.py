"""Takes secrets out of projects that an older version indexed, which kept them.

It works on what is stored, so that a project whose folder is not on this machine is cleaned too.
What was cleaned is not looked at again; killed in between, the next run goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from anaphora.ingest.projects.file_sync import PARSER, cut_file
from anaphora.ingest.projects.files.walking import (
    is_notebook,
    is_secret_file,
    without_secret_names,
)
from anaphora.ingest.projects.graph import IndexServices, sync_graph
from anaphora.ingest.secrets.redacting import redact

if TYPE_CHECKING:
    from anaphora.store.projects.rows import FileRow, HistoryRow, ProjectRow
    from anaphora.store.projects.store import Projects
    from anaphora.store.projects.transaction import ProjectTransaction

_FILES: Final = 64
_ITEMS: Final = 1_000


def clean(services: IndexServices) -> bool:
    """Clean every project of a namespace that an older version has read; whether anything went.

    Raises StoreError and its kinds.
    """
    return sum(_clean(services, row) for row in services.projects.read_by_older(PARSER)) > 0


def _clean(services: IndexServices, project: ProjectRow) -> bool:
    # Files last: while any is of an older version, all is looked at again.
    found = _history(services.projects, project)
    with services.graph.change() as work:
        found |= bool(work.erase(project.id, _shows_secret))
    files = services.projects.files(project.id)
    old = [row for row in files.values() if row.parser < PARSER]
    for start in range(0, len(old), _FILES):
        found |= _files(services, project.id, old[start : start + _FILES])
    if services.projects.row(project.id).stale:
        sync_graph(services, project)
    return found


def _files(services: IndexServices, project: str, some: Sequence[FileRow]) -> bool:
    """One transaction: what another run has read anew meanwhile is left as it is."""
    texts = {
        row.path: "\n".join(one.text for one in services.projects.sections_of(project, row.path))
        for row in some
        if not _is_secret(row.path)
    }
    with services.projects.change() as work:
        known = work.known(project, [row.path for row in some])
        same = [now for row in some if (now := known.get(row.path)) and now.seq == row.seq]
        doomed = [row.id for row in same if _is_secret(row.path)]
        work.remove_files(doomed)
        changed = [
            _put(work, services.ids, row, texts[row.path]) for row in same if row.path in texts
        ]
        if doomed or any(changed):
            work.mark_stale(project)
    return bool(doomed) or any(changed)


def _put(work: ProjectTransaction, ids: Callable[[], str], row: FileRow, text: str) -> bool:
    """Write a file as this version would have read it; whether it had secrets."""
    row = replace(row, parser=PARSER)
    if not redact(text).kinds:
        work.put_file(row, known=True)
        return False
    cut = cut_file(row, text)
    # Of a notebook the older text is not that of its cells: it is read again.
    if is_notebook(row.path):
        cut = replace(cut, file=replace(cut.file, parser=PARSER))
    work.put_file(cut.file, known=True)
    work.put_sections(cut.file, cut.sections, ids, known=True)
    return True


def _history(projects: Projects, project: ProjectRow) -> bool:
    changed: list[HistoryRow] = []
    since = 0
    while rows := projects.history(project.id, since, _ITEMS):
        changed += [row for old in rows if (row := _clean_item(old)) != old]
        since = rows[-1].seq
    if changed:
        with projects.change() as work:
            work.change_history(changed)
    return bool(changed)


def _clean_item(row: HistoryRow) -> HistoryRow:
    paths = tuple(map(without_secret_names, row.paths))
    return replace(row, text=redact(row.text).text, paths=paths)


def _is_secret(path: str) -> bool:
    return is_secret_file(path) or _shows_secret(path)


def _shows_secret(name: str) -> bool:
    return without_secret_names(name) != name
