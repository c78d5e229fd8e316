"""The files of a folder of notes that are no notes: templates, files of programs, other files.

Which notes are templates the settings of a vault say: those of Obsidian, and of the plugins that
fill templates in. All else that is left out is counted by its kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from anaphora.features.importing.formats.markdown import NOTES
from anaphora.language.names import folded_path

SETTINGS: Final = ".obsidian"
"""Where Obsidian keeps what is not the user's; another folder of settings begins with it."""

MOST_SETTINGS: Final = 1_000_000
"""Bytes of a file of settings that are read."""

TEMPLATE: Final = "template"
IGNORED: Final = "note or folder that .gitignore leaves out"
NO_NOTE: Final = "file that is no note"
_BASE: Final = "base of Obsidian (a view of notes)"
# Files of settings that name templates, and under which names they do.
_NAMING: Final = {
    "templates.json": frozenset({"folder"}),
    "daily-notes.json": frozenset({"template"}),
    "zk-prefixer.json": frozenset({"template"}),
    "note-composer.json": frozenset({"template"}),
    "plugins/templater-obsidian/data.json": frozenset({"templates_folder", "template_folder"}),
    "plugins/quickadd/data.json": frozenset({"templateFolderPath", "templateFolderPaths"}),
    "plugins/periodic-notes/data.json": frozenset({"template", "templatePath"}),
}
# Where Logseq keeps earlier states of its notes.
_COPIES: Final = ("logseq/bak/", "logseq/version-files/")

ReadSettings = Callable[[str], bytes | None]
"""The bytes of a file of a vault by its path in it, None if it has no such file."""


def templates_of(read: ReadSettings, folders: Iterable[str] = (SETTINGS,)) -> tuple[str, ...]:
    """The folders and notes that a vault's settings, in these folders, name as templates."""
    template_paths: dict[str, None] = {}
    for folder in folders:
        for file, keys in _NAMING.items():
            content = read(f"{folder}/{file}")
            if content is None:
                continue
            try:
                settings = json.loads(content)
            except (ValueError, RecursionError):
                # Settings that say nothing name no template.
                continue
            for path in _find_named(settings, keys):
                template_paths[folded_path(path)] = None
    return tuple(template_paths)


def _find_named(settings: object, keys: frozenset[str]) -> Iterator[str]:
    """The paths that settings have under these names, at any depth."""
    waiting = [settings]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            for name, member in node.items():
                texts = member if isinstance(member, list) else [member]
                if name in keys:
                    paths = (text.strip().strip("/") for text in texts if isinstance(text, str))
                    yield from (path for path in paths if path)
                waiting.append(member)


@dataclass(frozen=True, slots=True)
class VaultRules:
    """The files left out below a folder of notes. `templates` are paths below it, folded."""

    templates: frozenset[str] = frozenset()

    def with_vault(self, base: str, templates: Iterable[str]) -> VaultRules:
        """The same with the templates of a vault in the folder `base` ("" or "Work/")."""
        return VaultRules(self.templates | {folded_path(base) + template for template in templates})

    def kind_of(self, path: str) -> str | None:
        """The kind of a file that is not read as a note; "" if it is not counted either."""
        *folders, name = path.split("/")
        hidden = next((folder for folder in folders if folder.startswith(".")), "")
        is_note = name.lower().endswith(NOTES)
        if hidden:
            return f"note in a hidden folder ({hidden})" if is_note else ""
        if any(f"/{path}".find(f"/{copies}") >= 0 for copies in _COPIES):
            return "earlier state of a note (Logseq)" if is_note else ""
        if is_note:
            note = folded_path(path)
            parts = note.split("/")
            parent_folders = {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}
            return TEMPLATE if self.templates & {*parent_folders, note.rpartition(".")[0]} else None
        if name.startswith("."):
            return ""
        return _BASE if name.lower().endswith(".base") else NO_NOTE
