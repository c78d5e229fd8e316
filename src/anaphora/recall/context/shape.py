"""The shape of a project in a few lines: what it is, how it is laid out, how it is run.

In: the files of a project as truth has them, its README. Out: lines of text, and the files that a
newcomer opens first. It judges by counts and roles alone, and reads no file of the project.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from anaphora.values.projects import Target

if TYPE_CHECKING:
    from anaphora.rank.context.table import SectionTable
    from anaphora.store.projects.rows import FileRow, ProjectRow, SectionRow

MODULES: Final = 8
COMMANDS: Final = 8
LANGUAGES: Final = 5
README_CHARACTERS: Final = 400
HIGHLIGHTS: Final = 12
_MARKUP: Final = ("#", "[", "!", "<", "`", "=", "- ", "--", "|", ">", "* ", "..", ":")
"""What a line of a README begins with that is no running text."""


def shape(
    project: ProjectRow, files: Mapping[str, FileRow], readme: Sequence[SectionRow]
) -> Iterator[str]:
    """Lines: the name and size, the README's first words, languages, modules, commands, tests."""
    read = [file for file in files.values() if file.skipped is None]
    indexed = f", indexed {project.indexed_at.date()}" if project.indexed_at else ""
    yield f"{project.name}: {len(read)} files in {project.root}{indexed}"
    words = _first_words(readme)
    if words:
        yield f"About: {words}"
    languages = Counter(file.language for file in read if file.language)
    if languages:
        yield f"Languages: {_counted(languages, LANGUAGES)}"
    modules = Counter(_module(file.path) for file in read if file.role == "code")
    if modules:
        yield f"Modules: {_counted(modules, MODULES)}"
    commands = list(dict.fromkeys(c for file in read for c in file.facts.get("commands", ())))
    if commands:
        more = f" and {len(commands) - COMMANDS} more" if len(commands) > COMMANDS else ""
        yield f"Commands: {', '.join(map(str, commands[:COMMANDS]))}{more}"
    entries = [file.path for file in read if _is_entry(file)]
    if entries:
        yield f"Entry points: {', '.join(sorted(entries)[:4])}"
    tests = Counter(file.path.split("/")[0] for file in read if file.role == "test")
    if tests:
        folder, _ = min(tests.items(), key=lambda one: (-one[1], one[0]))
        yield f"Tests: {tests.total()} files, most of them in {folder}"


def readme_of(files: Mapping[str, FileRow]) -> str | None:
    """The path of the README that is nearest to the root."""
    found = [path for path in files if PurePosixPath(path).stem.lower() == "readme"]
    return min(found, key=lambda path: (path.count("/"), path), default=None)


def highlights(
    project: ProjectRow,
    files: Mapping[str, FileRow],
    table: SectionTable,
) -> list[Target]:
    """Files that a newcomer opens first: the README, settings, and what most others import."""
    scored: dict[str, tuple[float, str]] = {}
    readme = readme_of(files)
    if readme is not None:
        scored[readme] = (100.0, "says what the project is")
    for path, file in sorted(files.items()):
        if file.role == "package_config" and "/" not in path and file.skipped is None:
            scored.setdefault(path, (90.0, "names what the project needs and how it is built"))
        elif _is_entry(file):
            scored.setdefault(path, (70.0, "where it starts"))
    for path, count in _imported(project, table).items():
        if count > 1 and path in files and files[path].role == "code":
            scored.setdefault(path, (min(69.0, 10.0 + count), f"{count} files import it"))
    found = [
        Target(path, "file", path, score, reason, files[path].role, project=project.name)
        for path, (score, reason) in scored.items()
    ]
    return sorted(found, key=lambda one: (-one.score, one.path))[:HIGHLIGHTS]


def _imported(project: ProjectRow, table: SectionTable) -> Counter[str]:
    """How many files import a file, by path."""
    found: Counter[str] = Counter()
    for _, code in table.files.imports.tolist():
        if table.projects[int(table.files.project[code])] == project.id:
            found[table.files.paths[code]] += 1
    return found


def _first_words(readme: Sequence[SectionRow]) -> str:
    """The first running text in a README: no headings, badges, markup or code."""
    for section in readme:
        lines: list[str] = []
        fenced = False
        for line in section.text.splitlines():
            stripped = line.strip()
            fenced ^= stripped.startswith("```")
            if stripped and not fenced and not stripped.startswith(_MARKUP):
                lines.append(stripped)
        if lines:
            return _cut(" ".join(lines))
    return ""


def _cut(text: str) -> str:
    if len(text) <= README_CHARACTERS:
        return text
    end = text.rfind(". ", 0, README_CHARACTERS)
    return text[: end + 1] if end > 0 else text[: README_CHARACTERS - 1] + "…"


def _module(path: str) -> str:
    """The folder that a file of code belongs to, as a newcomer would name it."""
    parts = path.split("/")[:-1]
    return "/".join(parts[:3]) if parts else "(root)"


def _is_entry(file: FileRow) -> bool:
    name = PurePosixPath(file.path).name.lower()
    mains = ("__main__.py", "main.py", "main.go", "main.rs", "main.c", "main.cpp", "index.js")
    return file.role == "code" and file.skipped is None and name in mains


def _counted(counts: Counter[str], most: int) -> str:
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    shown = ", ".join(f"{name} ({number})" for name, number in ordered[:most])
    return shown + (f" and {len(ordered) - most} more" if len(ordered) > most else "")
