"""The graph of a project: entities and relations made of what its files say, and kept in line.

A module is a folder with its document; a file is a "doc", a "config" or a "file" by its role.
Drafts are pure: the same files always give the same ones, so that a graph can be made again, or for
some files alone. `sync_graph` writes them in one transaction that no other write enters, and links
the notes to what is new.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from anaphora.features.projects.indexing.git_history import Rename
from anaphora.features.projects.ranking.names import documents
from anaphora.features.projects.store.graph_rows import (
    HISTORY_SOURCE,
    EntityDraft,
    RelationDraft,
    entity_key,
)
from anaphora.features.projects.store.rows import FileRow
from anaphora.features.projects.values import EntityType
from anaphora.ingest.sections.base import ImportedModule, ParsedFile
from anaphora.ingest.sections.imports import ProjectLayout, resolve
from anaphora.values.files import SourceRole

if TYPE_CHECKING:
    from anaphora.features.projects.notes import NoteLinker
    from anaphora.features.projects.store.graph import Graph
    from anaphora.features.projects.store.rows import ProjectRow
    from anaphora.features.projects.store.store import Projects


_TITLE_ROLES: Final = frozenset({"docs", "plan"})
_TOO_COMMON: Final = frozenset({"__init__", "index", "mod", "main", "lib", "readme", "setup"})
_GO_MODULE = re.compile(r"^module\s+(\S+)", re.MULTILINE)
# How surely a test is about a file: by its name and what it imports, or by one of the two.
_COVERS_BOTH, _COVERS_NAME, _COVERS_IMPORT = 1.0, 0.8, 0.6


@dataclass(frozen=True, slots=True)
class IndexServices:
    """The stores that indexing a namespace works with, and the linker of notes.

    `clock` gives the present, aware; `ids` new ids; `wall` nanoseconds since 1970.
    """

    projects: Projects
    graph: Graph
    linker: NoteLinker
    clock: Callable[[], datetime]
    ids: Callable[[], str]
    wall: Callable[[], int]


def facts_of(path: str, role: SourceRole, parsed: ParsedFile, text: str) -> dict[str, Any]:
    """The facts of a file that the graph needs, in a form for JSON."""
    # Names such as `__all__` are too common to identify anything.
    facts: dict[str, Any] = {
        "symbols": [
            [symbol.qualified, symbol.kind, symbol.start_line, symbol.end_line]
            for symbol in parsed.symbols
            if symbol.kind != "key"
            and not (
                symbol.name.startswith("__")
                and symbol.name.endswith("__")
                and symbol.name != "__main__"
            )
        ],
        "imports": [[symbol.module, list(symbol.names), symbol.level] for symbol in parsed.imports],
        "commands": list(parsed.commands),
        "packages": list(parsed.packages),
    }
    if role in _TITLE_ROLES:
        titles = [
            section.title
            for section in parsed.sections
            if section.kind == "heading" and section.title
        ]
        facts["title"] = titles[0] if titles else None
    if posixpath.basename(path) == "go.mod" and (match := _GO_MODULE.search(text)):
        facts["go_module"] = match[1]
    return {name: fact for name, fact in facts.items() if fact}


def graph_drafts(
    project: str,
    name: str,
    files: Sequence[FileRow],
    only: frozenset[str] | None = None,
) -> tuple[list[EntityDraft], list[RelationDraft]]:
    """The graph of a project's files; with `only` (ids of files) what those files say alone.

    `files` are all of the project, with their facts where they are not left out by `only`.
    """
    draft = _GraphDraft(project, name, [row for row in files if row.skipped is None])
    for file in draft.files:
        if only is None or file.id in only:
            draft.file(file)
    if only is None:
        draft.folders()
    return list(draft.entities.values()), list(draft.relations.values())


def rename_drafts(
    project: str,
    renames: Iterable[Rename],
    present: frozenset[str],
    known: frozenset[str] = frozenset(),
) -> tuple[list[EntityDraft], list[RelationDraft]]:
    """Renames as relations: the new path supersedes the old one, which leaves its folder.

    `present` are the paths that are there now, `known` those whose own relations tell the rest.
    """
    entities: dict[str, EntityDraft] = {}
    relations: list[RelationDraft] = []
    for rename in renames:
        if rename.old == rename.new:
            continue
        old_key, new_key = (entity_key(project, "file", path) for path in (rename.old, rename.new))
        for key, path in ((old_key, rename.old), (new_key, rename.new)):
            if path not in present:
                entities[key] = EntityDraft(
                    key, "file", path, tuple(_list_path_names(path)), gone_at=rename.at
                )
        relations.append(
            RelationDraft(new_key, "supersedes", old_key, HISTORY_SOURCE, valid_from=rename.at)
        )
        if rename.old not in present | known:
            folder = entity_key(project, "module", posixpath.dirname(rename.old))
            relations.append(
                RelationDraft(
                    folder,
                    "contains",
                    old_key,
                    HISTORY_SOURCE,
                    valid_from=rename.at,
                    valid_to=rename.at,
                )
            )
    return list(entities.values()), relations


@lru_cache(maxsize=2)
def _make_layout(files: frozenset[str], go_modules: tuple[tuple[str, str], ...]) -> ProjectLayout:
    """Cached: most changes leave the set of files as it was."""
    return ProjectLayout(files, dict(go_modules))


class _GraphDraft:
    """A graph in the making."""

    def __init__(self, project: str, name: str, files: Sequence[FileRow]) -> None:
        self.project = project
        self.name = name
        # Declaring files come first: a package has the name that its declaration spells.
        self.files = sorted(files, key=lambda row: (not row.facts.get("packages"), row.path))
        self.by_path = {row.path: row for row in self.files}
        self.entities: dict[str, EntityDraft] = {}
        self.relations: dict[tuple[str, str, str, str], RelationDraft] = {}
        modules = {
            posixpath.dirname(row.path): str(row.facts["go_module"])
            for row in files
            if row.facts.get("go_module")
        }
        # The innermost module of a Go project comes first.
        ordered_modules = sorted(modules.items(), key=lambda pair: -len(pair[1]))
        self.layout = _make_layout(frozenset(self.by_path), tuple(ordered_modules))
        self.code_by_stem = _index_code(tuple(row.path for row in files if row.role == "code"))

    def file(self, file: FileRow) -> None:
        """Everything that one file says."""
        kind: EntityType = "file"
        if file.role in {"docs", "plan"}:
            kind = "doc"
        elif file.role in {"package_config", "agent_config"}:
            kind = "config"
        file_key = self._make_key(kind, file.path)
        title = file.facts.get("title")
        names = [*_list_path_names(file.path), *([(str(title), "title")] if title else [])]
        if file.language == "python":
            # The names by which Python knows a file: "package.module".
            stem = file.path.rsplit(".", 1)[0].removesuffix("/__init__")
            inner_stems = [
                stem[len(root) + 1 :]
                for root in self.layout.python_roots
                if root and stem.startswith(root + "/")
            ]
            names += [(name.replace("/", "."), "dotted") for name in (stem, *inner_stems) if name]
        self.entities[file_key] = EntityDraft(
            file_key, kind, file.path, tuple(names), title, file.id
        )
        self._relate(
            self._make_key("module", posixpath.dirname(file.path)), "contains", file_key, file
        )
        for symbol, symbol_kind, start, end in file.facts.get("symbols", ()):
            qualified_name = str(symbol)
            key = self._make_key("symbol", f"{file.path}::{qualified_name}")
            last_name = qualified_name.rsplit(".", 1)[-1]
            symbol_names = [(qualified_name, "name")]
            if last_name != qualified_name and not (
                last_name.startswith("__") and last_name.endswith("__")
            ):
                symbol_names.append((last_name, "last"))
            draft = EntityDraft(
                key, "symbol", qualified_name, tuple(symbol_names), str(symbol_kind), file.id,
                int(start), int(end),
            )  # fmt: skip
            self.entities.setdefault(key, draft)
            self._relate(file_key, "defines", key, file)
        for command in file.facts.get("commands", ()):
            key = self._add_named("command", str(command))
            self._relate(file_key, "defines", key, file)
        for package in file.facts.get("packages", ()):
            self._relate(file_key, "uses_package", self._add_named("package", str(package)), file)
        self._add_imports(file, file_key)

    def folders(self) -> None:
        """A module for every folder, in the one above it, with its document."""
        paths = documents(self.by_path)
        for folder in sorted(self.layout.folders):
            document = self.by_path[paths[folder]] if folder in paths else None
            summary = document.facts.get("title") if document is not None else None
            key = self._make_key("module", folder)
            names: tuple[tuple[str, str], ...] = ((self.name, "name"),)
            if folder:
                names = (
                    (folder, "path"),
                    (folder + "/", "path"),
                    (folder.replace("/", "."), "dotted"),
                    (posixpath.basename(folder), "name"),
                )
            self.entities[key] = EntityDraft(key, "module", folder or ".", names, summary)
            if folder:
                parent_key = self._make_key("module", posixpath.dirname(folder))
                self._relate(parent_key, "contains", key, None)
            if document is not None:
                document_key = self._make_key("file", document.path)
                self._relate(document_key, "covers", key, document)

    def _add_imports(self, file: FileRow, file_key: str) -> None:
        written_imports = [
            ImportedModule(str(module), tuple(names), int(level))
            for module, names, level in file.facts.get("imports", ())
        ]
        targets = resolve(file.path, file.language, written_imports, self.layout)
        for target in targets:
            if target.kind == "package":
                self._relate(
                    file_key, "uses_package", self._add_named("package", target.name), file
                )
            else:
                self._relate(file_key, "imports", self._make_key(target.kind, target.name), file)
        if file.role == "test":
            imported_paths = {
                target.name
                for target in targets
                if target.kind == "file" and self.by_path[target.name].role == "code"
            }
            stem = posixpath.basename(file.path).split(".", 1)[0].lower()
            for prefix in ("test_", "test-", "tests_"):
                stem = stem.removeprefix(prefix)
            for suffix in ("_test", "-test", "_tests", "_spec", "test", "tests"):
                stem = stem.removesuffix(suffix) if stem != suffix else stem
            named_paths = set(self.code_by_stem.get(stem, ()))
            for path in imported_paths | named_paths:
                strength = _COVERS_IMPORT if path in imported_paths else _COVERS_NAME
                strength = _COVERS_BOTH if path in imported_paths & named_paths else strength
                self._relate(file_key, "covers", self._make_key("file", path), file, strength)

    def _add_named(self, kind: EntityType, name: str) -> str:
        # PyPI, npm and others do not distinguish "-" from "_", nor upper from lower case.
        key = self._make_key(kind, name.lower().replace("_", "-") if kind == "package" else name)
        if key not in self.entities:
            self.entities[key] = EntityDraft(key, kind, name, ((name, "name"),))
        return key

    def _relate(
        self, subject: str, predicate: Any, target: str, file: FileRow | None, strength: float = 1.0
    ) -> None:
        source = "" if file is None else file.id
        since = None if file is None else file.changed_at
        triple = (subject, predicate, target, source)
        self.relations.setdefault(triple, RelationDraft(*triple, strength, since))

    def _make_key(self, kind: EntityType, name: str) -> str:
        return entity_key(self.project, kind, name)


@lru_cache(maxsize=2)
def _index_code(paths: tuple[str, ...]) -> Mapping[str, list[str]]:
    """Code files by the stem of their name, where at most three share it."""
    by_stem: dict[str, list[str]] = {}
    for path in paths:
        stem = posixpath.basename(path).split(".", 1)[0].lower()
        by_stem.setdefault(stem, []).append(path)
    return {
        stem: paths_of_stem
        for stem, paths_of_stem in by_stem.items()
        if len(paths_of_stem) <= 3 and stem not in _TOO_COMMON
    }


def _list_path_names(path: str) -> Iterator[tuple[str, str]]:
    name = posixpath.basename(path)
    stem = name.split(".", 1)[0] if not name.startswith(".") else name
    yield path, "path"
    yield posixpath.splitext(path)[0], "path"
    yield "/".join(path.split("/")[-2:]), "path"
    yield name, "name"
    if stem and stem.lower() not in _TOO_COMMON:
        yield stem, "name"


def sync_graph(
    services: IndexServices,
    project: ProjectRow,
    renames: Sequence[Rename] = (),
    known: frozenset[str] = frozenset(),
) -> None:
    """Bring the graph of a project in line with its files.

    `known` are the paths whose own relations tell what became of them.
    """

    from anaphora.features.projects.store.transaction import ProjectTransaction

    def drafts() -> tuple[list[EntityDraft], list[RelationDraft]]:
        files = list(services.projects.files(project.id, facts=True).values())
        entities, relations = graph_drafts(project.id, project.name, files)
        present = frozenset(row.path for row in files if row.skipped is None)
        old_entities, past_relations = rename_drafts(project.id, renames, present, known)
        return [*old_entities, *entities], [*past_relations, *relations]

    # Built before the lock is taken, and again if a file was written meanwhile.
    stamp = services.projects.last_file(project.id)
    drafted = drafts()
    with services.graph.change() as work:
        if services.projects.last_file(project.id) != stamp:
            drafted = drafts()
        came = work.sync(project.id, *drafted, now=services.clock(), ids=services.ids)
        change = ProjectTransaction(work.write, services.projects.sealer)
        change.change_project(replace(change.project(project.id), stale=False))
        change.drop_unused_vectors()
    if came:
        services.linker.link_all(project.id)


def sync_files(
    services: IndexServices,
    project: ProjectRow,
    files: Sequence[FileRow],
    only: frozenset[str],
    gone_texts: Collection[str],
    *,
    complete: bool,
) -> None:
    """Bring what some files of a project (`only`, ids) say into its graph.

    `files` are all of it. Unless that is `complete`, the graph is still behind: files came or
    went, and others may speak of them. `gone_texts` are hashes of texts that may need no vectors
    any more.
    """
    from anaphora.features.projects.store.transaction import ProjectTransaction

    with services.graph.change() as work:
        change = ProjectTransaction(work.write, services.projects.sealer)
        go_modules = [row.id for row in files if posixpath.basename(row.path) == "go.mod"]
        rows = change.files([*only, *go_modules])
        files = [rows.get(row.id, row) for row in files]
        entities, relations = graph_drafts(project.id, project.name, files, only)
        came = work.sync(
            project.id,
            entities,
            relations,
            now=services.clock(),
            ids=services.ids,
            files=only,
        )
        if complete:
            change.change_project(replace(change.project(project.id), stale=False))
        change.drop_unused_vectors(gone_texts)
    if came:
        services.linker.link_all(project.id)
