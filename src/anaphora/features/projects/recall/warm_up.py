"""What a new session should know first: standing rules, decisions, what was done, the layout.

Notes of the project and memories of the user stand side by side (`standing` sorts the latter). The
layout of a project is judged by its files' stored counts and roles and by its README's first
words. What was superseded never comes, and only a topic is embedded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from anaphora.features.projects.recall.package import HEADER, render_package, rendered_target
from anaphora.features.projects.values import RecallPackage, Target, WarmUp
from anaphora.rank.budget import token_cost
from anaphora.recall.packing import (
    TokenBudget,
    check_budget,
    rendered_degraded,
    rendered_left_out,
    rendered_memory,
    rendered_part,
    with_tokens,
)
from anaphora.recall.session.rendering import HEADINGS
from anaphora.recall.session.standing import held_memories
from anaphora.text.display import headed
from anaphora.values.context import LEAST_BUDGET, ContextMemory

if TYPE_CHECKING:
    from anaphora.features.projects.ranking.table import SectionTable
    from anaphora.features.projects.recall.lane import ContextRecall
    from anaphora.features.projects.store.notes import NoteRow, Notes
    from anaphora.features.projects.store.rows import FileRow, ProjectRow, SectionRow
    from anaphora.features.projects.store.store import Projects
    from anaphora.recall.session.standing import StandingContext
    from anaphora.values.memories import MemoryRecord


SHAPE: Final = "The project:"
HIGHLIGHTS: Final = "Worth opening:"
TOPIC: Final = "On the topic:"
SHAPE_CHARACTERS: Final = 600
_CORE_BLOCK: Final = "the core block"
_KINDS: Final = ("constraint", "blocker", "decision", "preference")
MOST: Final = 8
"""Notes of a kind."""
DIARY: Final = 3
LOOKED_AT: Final = 500
TOPIC_SHARE: Final = 0.5
NOTES_SHARE: Final = 0.6
"""Of what is left beside the topic, while the shape of the project waits for its part."""


@dataclass(frozen=True, slots=True)
class WarmUpRecall:
    """Prepares new sessions in one namespace.

    The `lane` is loaded for a topic or a project: most sessions begin without.
    """

    lane: Callable[[], ContextRecall]
    projects: Projects
    notes: Notes
    standing: Callable[[str | None], StandingContext]
    opening: Callable[[StandingContext, Sequence[MemoryRecord]], Sequence[ContextMemory]]
    core_tokens: int
    question: Callable[[str], str]

    def warm_up(
        self,
        topic: str | None = None,
        *,
        project: str | None = None,
        directory: str | None = None,
        shape: bool = True,
        budget: int = 2000,
    ) -> WarmUp:
        """The core block, notes by importance and then by age, memories, sessions, and the shape.

        With a `topic` half of the budget is a package about it. `directory` is where the session
        begins: what is known to belong to other projects is left out. Its text takes at most
        `budget` tokens. Raises `InvalidInput` for bad arguments, `NotFound` for a project.
        """
        check_budget(budget)
        rows = self._find_projects(project, directory)
        focused_package = self._recall_topic(topic, project, budget)
        remaining = TokenBudget(budget)
        remaining.pay(HEADER)
        if focused_package is not None and not remaining.pay(_render_body(focused_package), TOPIC):
            remaining.tokens = 0
        question = self.question(directory) if directory else ""
        question = question if remaining.pay(question) else ""
        keep = round(remaining.tokens * (1 - NOTES_SHARE)) if rows and shape else 0
        names = {row.id: row.name for row in rows}
        desk = self.standing(directory)
        current = held_memories(desk.records, desk.now)
        core = self.opening(desk, current)
        # As much of the core block as its budget holds, and at most half of what is left.
        spared_tokens = remaining.tokens - min(self.core_tokens, remaining.tokens // 2)
        fitting = remaining.take(
            core,
            rendered_memory,
            HEADINGS["core"],
            len(core),
            spared_tokens,
            desk.mark_replaced,
        )
        notes = {"core": with_tokens(fitting)}
        shown_ids = {memory.id for memory in notes["core"]}
        says_left_out = len(shown_ids) < len(core) and remaining.pay(
            rendered_left_out(len(core), _CORE_BLOCK), HEADINGS["core"]
        )
        notes_by_kind = self._list_notes(names, directory, one_project=project is not None)
        lasting = desk.memories(current, shown_ids)
        rules = desk.rules_said(current)
        for rule in reversed(rules):
            lasting.setdefault(f"{rule.kind}s", []).insert(0, rule)
        lasting["sessions"] = list(desk.sessions(rules, current))
        for part, heading in HEADINGS.items():
            if part != "core":
                items = [*notes_by_kind.get(part, ()), *lasting.get(part, ())]
                notes[part] = with_tokens(
                    remaining.take(items, rendered_memory, heading, MOST, keep, desk.mark_replaced)
                )
        shown_ids |= {memory.id for group in notes.values() for memory in group}
        lines, open_first = self._describe_shape(rows if shape else (), remaining)
        warm = WarmUp(
            core=notes["core"],
            core_left_out=sum(memory.id not in shown_ids for memory in core)
            if says_left_out
            else 0,
            constraints=notes["constraints"],
            preferences=notes["preferences"],
            decisions=notes["decisions"],
            blockers=notes["blockers"],
            diary=notes["diary"],
            changed=notes["changed"],
            sessions=notes["sessions"],
            facts=notes["facts"],
            shape=lines,
            highlights=open_first,
            topic=focused_package,
            question=question,
            degraded=focused_package.degraded if focused_package is not None else (),
        )
        return replace(warm, tokens=token_cost(render_warm_up(warm)))

    def _find_projects(self, project: str | None, directory: str | None) -> tuple[ProjectRow, ...]:
        """The project of this name, or those that the folder lies in, if given; else all."""
        projects = self.projects
        if directory is not None:
            return projects.around(directory)
        return projects.rows() if project is None else (projects.find(project),)

    def _recall_topic(
        self, topic: str | None, project: str | None, budget: int
    ) -> RecallPackage | None:
        if topic is None or not topic.strip():
            return None
        share = max(LEAST_BUDGET, round(TOPIC_SHARE * budget))
        if share > budget - LEAST_BUDGET:
            share = budget
        return self.lane().recall(topic, project=project, budget=share)

    def _list_notes(
        self, names: dict[str, str], directory: str | None, *, one_project: bool
    ) -> dict[str, list[ContextMemory]]:
        """Current notes by kind, the most important first, then the newest."""
        only = next(iter(names)) if one_project else None
        observations = [
            row
            for row in self.notes.list(kind="observation", project=only, limit=LOOKED_AT)
            if directory is None or row.project is None or row.project in names
        ]
        ordered_notes = sorted(
            observations,
            key=lambda n: (-n.importance, -n.record.created_at.timestamp(), n.record.id),
        )
        by_kind = {
            f"{kind}s": [_make_memory(row, names) for row in ordered_notes if row.type == kind][
                :MOST
            ]
            for kind in _KINDS
        }
        diary = [
            row
            for row in self.notes.list(kind="diary", project=only, limit=LOOKED_AT)
            if directory is None or row.project is None or row.project in names
        ][:DIARY]
        by_kind["diary"] = [_make_memory(row, names) for row in diary]
        return by_kind

    def _describe_shape(
        self, rows: Sequence[ProjectRow], remaining: TokenBudget
    ) -> tuple[tuple[str, ...], tuple[Target, ...]]:
        lines: list[str] = []
        targets: list[Target] = []
        table = self.lane().index.table() if rows else None
        for row in rows:
            files = self.projects.files(row.id, facts=True)
            readme = readme_of(files)
            parts = self.projects.sections_of(row.id, readme) if readme else ()
            # One long line can be spared, the ones after it may fit.
            description = shape(row, files, parts)
            lines.extend(
                line for line in description if remaining.pay(_format_shape_line(line), SHAPE)
            )
            if table is not None:
                targets += highlights(row, files, table)
        targets.sort(key=lambda target: (-target.score, target.project or "", target.path))
        return tuple(lines), tuple(remaining.take(targets, rendered_target, HIGHLIGHTS, 12))


def render_warm_up(warm: WarmUp) -> str:
    """The warm-up as compact text for an agent. What was recalled stands behind the mark."""
    lines = [HEADER, warm.question] if warm.question else [HEADER]
    for part, heading in HEADINGS.items():
        items = [rendered_memory(memory) for memory in getattr(warm, part)]
        if part == "core" and warm.core_left_out:
            items.append(rendered_left_out(warm.core_left_out, _CORE_BLOCK))
        lines += rendered_part(heading, items)
    lines += rendered_part(SHAPE, map(_format_shape_line, warm.shape))
    lines += rendered_part(HIGHLIGHTS, map(rendered_target, warm.highlights))
    if warm.topic is not None:
        lines += ["", TOPIC, _render_body(warm.topic)]
    else:
        lines += [rendered_degraded(degradation) for degradation in warm.degraded]
    return "\n".join(lines)


def _render_body(package: RecallPackage) -> str:
    """A package's text without the header, which stands above everything."""
    return render_package(package).removeprefix(HEADER).lstrip("\n")


def _format_shape_line(line: str) -> str:
    return headed(line, SHAPE_CHARACTERS)


def _make_memory(row: NoteRow, names: dict[str, str]) -> ContextMemory:
    from anaphora.features.projects.recall.evidence import note_memory
    from anaphora.features.projects.recall.excerpts import Excerpts

    return note_memory(row, names, Excerpts({}), float(row.importance))


# The shape of a project: what it is, how it is laid out, how it is run.

MODULES: Final = 8
COMMANDS: Final = 8
LANGUAGES: Final = 5
README_CHARACTERS: Final = 400
MOST_HIGHLIGHTS: Final = 12
_MARKUP: Final = ("#", "[", "!", "<", "`", "=", "- ", "--", "|", ">", "* ", "..", ":")
"""What a line of a README begins with that is no running text."""


def shape(
    project: ProjectRow, files: Mapping[str, FileRow], readme: Sequence[SectionRow]
) -> Iterator[str]:
    """Lines: the name and size, the README's first words, languages, modules, commands, tests."""
    read = [file for file in files.values() if file.skipped is None]
    index_note = f", indexed {project.indexed_at.date()}" if project.indexed_at else ""
    yield f"{project.name}: {len(read)} files in {project.root}{index_note}"
    words = _find_first_words(readme)
    if words:
        yield f"About: {words}"
    languages = Counter(file.language for file in read if file.language)
    if languages:
        yield f"Languages: {_format_counts(languages, LANGUAGES)}"
    folders = (file.path.split("/")[:-1] for file in read if file.role == "code")
    modules = Counter("/".join(parts[:3]) or "(root)" for parts in folders)
    if modules:
        yield f"Modules: {_format_counts(modules, MODULES)}"
    commands = list(dict.fromkeys(c for file in read for c in file.facts.get("commands", ())))
    if commands:
        more_note = f" and {len(commands) - COMMANDS} more" if len(commands) > COMMANDS else ""
        yield f"Commands: {', '.join(map(str, commands[:COMMANDS]))}{more_note}"
    entries = [file.path for file in read if _is_entry(file)]
    if entries:
        yield f"Entry points: {', '.join(sorted(entries)[:4])}"
    tests = Counter(file.path.split("/")[0] for file in read if file.role == "test")
    if tests:
        folder, _ = min(tests.items(), key=lambda pair: (-pair[1], pair[0]))
        yield f"Tests: {tests.total()} files, most of them in {folder}"


def readme_of(files: Mapping[str, FileRow]) -> str | None:
    """The path of the README that is nearest to the root."""
    readmes = [path for path in files if PurePosixPath(path).stem.lower() == "readme"]
    return min(readmes, key=lambda path: (path.count("/"), path), default=None)


def highlights(
    project: ProjectRow,
    files: Mapping[str, FileRow],
    table: SectionTable,
) -> list[Target]:
    """Files that a newcomer opens first: the README, settings, and what most others import."""
    score_by_name: dict[str, tuple[float, str]] = {}
    readme = readme_of(files)
    if readme is not None:
        score_by_name[readme] = (100.0, "says what the project is")
    for path, file in sorted(files.items()):
        if file.role == "package_config" and "/" not in path and file.skipped is None:
            score_by_name.setdefault(
                path, (90.0, "names what the project needs and how it is built")
            )
        elif _is_entry(file):
            score_by_name.setdefault(path, (70.0, "where it starts"))
    imports = Counter(
        table.files.paths[code]
        for _, code in table.files.imports.tolist()
        if table.projects[int(table.files.project[code])] == project.id
    )
    for path, count in imports.items():
        if count > 1 and path in files and files[path].role == "code":
            score_by_name.setdefault(path, (min(69.0, 10.0 + count), f"{count} files import it"))
    targets = [
        Target(path, "file", path, score, reason, files[path].role, project=project.name)
        for path, (score, reason) in score_by_name.items()
    ]
    return sorted(targets, key=lambda target: (-target.score, target.path))[:MOST_HIGHLIGHTS]


def _find_first_words(readme: Sequence[SectionRow]) -> str:
    """The first running text in a README: no headings, badges, markup or code."""
    for section in readme:
        lines: list[str] = []
        is_fenced = False
        for line in section.text.splitlines():
            stripped_line = line.strip()
            is_fenced ^= stripped_line.startswith("```")
            if stripped_line and not is_fenced and not stripped_line.startswith(_MARKUP):
                lines.append(stripped_line)
        if lines:
            text = " ".join(lines)
            if len(text) <= README_CHARACTERS:
                return text
            end = text.rfind(". ", 0, README_CHARACTERS)
            return text[: end + 1] if end > 0 else text[: README_CHARACTERS - 1] + "…"
    return ""


def _is_entry(file: FileRow) -> bool:
    name = PurePosixPath(file.path).name.lower()
    mains = ("__main__.py", "main.py", "main.go", "main.rs", "main.c", "main.cpp", "index.js")
    return file.role == "code" and file.skipped is None and name in mains


def _format_counts(counts: Counter[str], most: int) -> str:
    ordered_counts = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    name_list = ", ".join(f"{name} ({number})" for name, number in ordered_counts[:most])
    return name_list + (
        f" and {len(ordered_counts) - most} more" if len(ordered_counts) > most else ""
    )
