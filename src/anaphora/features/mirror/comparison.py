"""Compares a namespace with its folder, and brings both to the same state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import Final

from anaphora.errors import InvalidInput, MirrorError
from anaphora.features.mirror.decision import Decision, decide
from anaphora.features.mirror.folder import FoundFiles, MirrorFileText, MirrorFolder, Stamp
from anaphora.features.mirror.home_pages import HomePages
from anaphora.features.mirror.layout import ENDING, clean_file, file_of, key_of, kind_of, path_of
from anaphora.features.mirror.ledger import MirrorState, PageFile
from anaphora.features.mirror.opened import LinkRefused
from anaphora.features.mirror.page import EmptyPage, HomePage, PageContent, write_page
from anaphora.features.mirror.values import MirrorConflict, MirrorProblem, MirrorReport
from anaphora.ingest.secrets.redacting import redact_path
from anaphora.store.disk import FileChanged

SETTLED: Final = 1.0
"""Seconds for which a file must have been left alone before it is read."""
_FEW: Final = 3
"""This many files may be deleted at once, however few there are."""
_LISTS: Final = {
    "write": "written", "remove": "removed", "edit": "edited", "add": "added", "hide": "hidden",
}  # fmt: skip
"""The list of a report in which a decision is named."""
_DEFAULT_TYPE: Final = {"memory": "semantic", "note": "note"}
Progress = Callable[[str, int, int], object]


@dataclass(slots=True)
class _Task:
    """One page: its state in the ledger, in the home, and in the file."""

    file: str
    before: PageFile | None = None
    home: HomePage | None = None
    read: MirrorFileText | None = None
    stamp: Stamp | None = None
    decision: Decision = "same"

    @property
    def said(self) -> PageContent | None:
        """The content of the file, if it was read."""
        if self.read is None:
            return None
        kind = self.home.kind if self.home is not None else kind_of(self.file)
        default = self.home.said.type if self.home is not None else _DEFAULT_TYPE[kind]
        return self.read.page.said(default)


@dataclass(slots=True)
class _Report:
    """The report while it is made."""

    lists: dict[str, list[str]] = field(default_factory=dict)
    conflicts: list[MirrorConflict] = field(default_factory=list)
    problems: dict[str, MirrorProblem] = field(default_factory=dict)

    def note(self, name: str, file: str) -> None:
        """Name a file in one of the lists."""
        self.lists.setdefault(name, []).append(file)

    def note_problem(self, file: str, reason: str) -> None:
        """Record that a file was left unchanged."""
        self.problems[file] = MirrorProblem(redact_path(file).text, reason)

    def build(self) -> MirrorReport:
        """The finished report."""
        lists = {name: tuple(sorted(files)) for name, files in self.lists.items()}
        problems = tuple(self.problems[file] for file in sorted(self.problems))
        return MirrorReport(conflicts=tuple(self.conflicts), problems=problems, **lists)


class MirrorComparison:
    """One comparison of the pages of a home with the files of a folder.

    `wait` waits for so many seconds, `seconds` gives the present time since 1970, by the clock that
    files are stamped with. `ledger` is the last common state, and after `run` the present one;
    `save` stores it before any file is written.
    """

    def __init__(
        self,
        folder: MirrorFolder,
        pages: HomePages,
        ledger: MirrorState,
        *,
        wait: Callable[[float], object],
        seconds: Callable[[], float],
        save: Callable[[MirrorState], object],
        progress: Progress,
    ) -> None:
        self.ledger = ledger
        self._save = save
        self._files = FoundFiles()
        self._folder = folder
        self._pages = pages
        self._wait = wait
        self._seconds = seconds
        self._tell = progress
        self._report = _Report()
        self._names: dict[str, str] = {}
        self._related: Mapping[str, tuple[str, ...]] = {}
        self._pages_by_id: Mapping[str, HomePage] = {}
        self._pairs: dict[str, PageFile] = {pair.file: pair for pair in ledger.pairs}

    def run(self, *, dry_run: bool, accept_deletions: bool) -> MirrorReport:
        """Compare, and make alike unless `dry_run`. Raises MirrorError, StoreError."""
        version = self._pages.version()
        self._files = self._folder.files(clean=not dry_run)
        files = self._files.stamps
        if version == self.ledger.version and files == self.ledger.seen:
            return MirrorReport(problems=self.ledger.problems)
        files = self._wait_until_settled(files)
        # A comparison that was killed may have written some of the files that it had planned.
        self._pairs |= {pair.file: pair for pair in self.ledger.planned if pair.file in files}
        files = self._rename_secrets(files, dry_run=dry_run)
        self._leave_links()
        tasks = self._plan_tasks(files)
        self._refuse_mass_deletion(tasks, accept_deletions=accept_deletions)
        if dry_run:
            for task in tasks:
                if task.decision == "conflict":
                    self._report.conflicts.append(MirrorConflict(task.file, self._find_later(task)))
                elif task.decision in _LISTS:
                    self._report.note(_LISTS[task.decision], task.file)
            return self._report.build()
        try:
            self._carry_out(tasks)
        finally:
            report = self._report.build()
            # Changes to the home are compared again next time: they may have been redacted.
            is_done = not (report.waiting or report.edited or report.added or report.conflicts)
            problem_stamps = {file: files[file] for file in self._report.problems if file in files}
            self.ledger = replace(
                self.ledger,
                pairs=tuple(self._pairs.values()),
                version=version if is_done else -1,
                problems=report.problems,
                planned=(),
                seen=dict(
                    sorted(
                        (
                            {file: pair.stamp for file, pair in self._pairs.items()}
                            | problem_stamps
                        ).items()
                    )
                ),
            )
        return report

    # The files.

    def _wait_until_settled(self, files: dict[str, Stamp]) -> dict[str, Stamp]:
        """The files after a pause if some were just saved; those still being saved wait."""
        # A missing file may be in the middle of a save by renaming.
        if self._find_recent(files) or self._pairs.keys() - files.keys():
            self._wait(SETTLED)
            self._files = self._folder.files()
            files = self._files.stamps
        for file in self._find_recent(files):
            self._report.note("waiting", file)
        return files

    def _rename_secrets(self, files: dict[str, Stamp], *, dry_run: bool) -> dict[str, Stamp]:
        """Rename files with a secret in their names; all files then."""
        keys = {key_of(file) for file in files}
        for file in [file for file in files if redact_path(file).kinds]:
            if dry_run or self._is_left(file):
                self._report.note_problem(file, "its name contains a secret: it will be renamed")
                continue
            new_file = clean_file(redact_path(file).text, keys)
            try:
                self._folder.rename(file, new_file, files[file])
            except OSError as error:
                self._report.note_problem(file, f"its name contains a secret ({error.strerror})")
                continue
            keys.add(key_of(new_file))
            files = {new_file if name == file else name: stamp for name, stamp in files.items()}
            if (pair := self._pairs.pop(file, None)) is not None:
                self._pairs[new_file] = replace(pair, file=new_file)
        return files

    def _leave_links(self) -> None:
        """Report links and files behind links, which must not count as removed."""
        for file in sorted(self._files.links):
            self._report.note_problem(file, "it is a link: links are not followed")
        for file in sorted(self._files.deep):
            self._report.note_problem(file, "it lies too deep: folders in it are not looked into")
        for file in self._pairs:
            steps = PurePosixPath(file).parts
            folders_above = {"/".join(steps[:count]) for count in range(1, len(steps))}
            if folders_above & self._files.links and file not in self._files.links:
                self._report.note_problem(file, "it lies behind a link: links are not followed")

    def _find_recent(self, files: Mapping[str, Stamp]) -> list[str]:
        """Files that were changed just now."""
        now = self._seconds()
        return [
            file
            for file, stamp in files.items()
            if abs(now - stamp[0] / 1e9) < SETTLED and stamp != self._stamp(file)
        ]

    def _stamp(self, file: str) -> Stamp | None:
        pair = self._pairs.get(file)
        return None if pair is None else pair.stamp

    def _read_changed(self, files: Mapping[str, Stamp]) -> dict[str, MirrorFileText | None]:
        """The content of changed files; None for an emptied one. Problems are reported."""
        read_files: dict[str, MirrorFileText | None] = {}
        for file, stamp in files.items():
            if stamp == self._stamp(file) or self._is_left(file):
                continue
            try:
                read_files[file] = self._folder.read(file)
            except EmptyPage as error:
                if file in self._pairs:
                    read_files[file] = None
                else:
                    self._report.note_problem(file, str(error))
            except (FileChanged, FileNotFoundError):
                self._report.note("waiting", file)
            except (ValueError, OSError) as error:
                self._report.note_problem(file, str(error))
        return read_files

    def _is_left(self, file: str) -> bool:
        """Whether a file is left as it is this time."""
        waiting = self._report.lists.get("waiting", ())
        return file in waiting or file in self._report.problems

    # Planning.

    def _plan_tasks(self, files: Mapping[str, Stamp]) -> list[_Task]:
        pages = self._pages.list_all()
        self._pages_by_id = pages
        read = self._read_changed(files)
        tasks = self._plan_named_pages(files, read, pages)
        known_ids = {task.home.id for task in tasks if task.home is not None}
        for file, pair in self._pairs.items():
            if self._is_left(file):
                known_ids.add(self._find_page(pair.id, pages) or "")
                continue
            page_id = self._find_page(pair.id, pages)
            home = None if page_id is None or page_id in known_ids else pages[page_id]
            known_ids |= {page_id} if page_id is not None else set()
            task = _Task(file, pair, home, read.get(file), files.get(file))
            tasks.append(task)
            task.decision = self._decide(task, pair, files, read)
        named_files = {task.file for task in tasks}
        tasks += self._plan_new_files(files, read, named_files)
        file_keys = {key_of(file) for file in (*files, *self._pairs)}
        for page in pages.values():
            if page.id not in known_ids:
                file = file_of(page, file_keys)
                file_keys.add(key_of(file))
                tasks.append(_Task(file, None, page, None, None, "write"))
        return tasks

    def _decide(
        self,
        task: _Task,
        pair: PageFile,
        files: Mapping[str, Stamp],
        read: Mapping[str, MirrorFileText | None],
    ) -> Decision:
        """The decision for a page with a known file."""
        file, content = pair.file, task.said
        if file in read and content is None:
            return "remove" if task.home is None else "write"
        present = file in files
        digest = (content.digest if content is not None else pair.digest) if present else None
        home = None if task.home is None else task.home.said.digest
        decision = decide(pair.digest, home, digest)
        # An edited text is new; changed tags do not revive a page that was forgotten for good.
        is_edited = content is not None and pair.words and content.words != pair.words
        if decision == "add" and self._names_forgotten(task.read) and not is_edited:
            return "remove"
        return decision

    def _plan_new_files(
        self,
        files: Mapping[str, Stamp],
        read: Mapping[str, MirrorFileText | None],
        named: Collection[str],
    ) -> Iterator[_Task]:
        """Files of no page: new ones, unless they name a page that was forgotten for good."""
        left_before = self.ledger.seen.keys() - self._pairs.keys()
        for file, read_file in read.items():
            if read_file is None or file in named or self._is_left(file):
                continue
            if not self._names_forgotten(read_file):
                yield _Task(file, None, None, read_file, files[file], "add")
            elif file in left_before:
                # A copy of the page, perhaps with another text.
                reason = "it has the id of something that was forgotten for good: take the id out"
                self._report.note_problem(file, f"{reason} to keep it")
            else:
                yield _Task(file, None, None, read_file, files[file], "remove")

    def _plan_named_pages(
        self,
        files: Mapping[str, Stamp],
        read: Mapping[str, MirrorFileText | None],
        pages: Mapping[str, HomePage],
    ) -> list[_Task]:
        """New files that name a page by its id: moved ones, copies, known ones."""
        tasks = []
        holders = {self._find_page(pair.id, pages): pair for pair in self._pairs.values()}
        for file, read_file in read.items():
            if read_file is None or read_file.page.id is None:
                continue
            page_id = self._find_page(read_file.page.id, pages)
            if page_id is None:
                continue
            holder = holders.get(page_id)
            if holder is not None and holder.file == file:
                continue
            if holder is None and file not in self._pairs:
                task = _Task(file, None, pages[page_id], read_file, files[file])
                assert task.said is not None
                task.decision = decide(None, pages[page_id].said.digest, task.said.digest)
                tasks.append(task)
                holders[page_id] = PageFile(file, page_id, "", files[file])
            elif holder is None or holder.file in files or file in self._pairs:
                of = "another page" if holder is None else holder.file
                reason = f"it has the id of {of}: take the id out to keep it as well"
                self._report.note_problem(file, reason)
            else:
                # It was moved: the page is the same.
                del self._pairs[holder.file]
                self._pairs[file] = holders[page_id] = replace(holder, file=file)
        return tasks

    def _names_forgotten(self, read_file: MirrorFileText | None) -> bool:
        """Whether a file names, by its id, something that was forgotten for good."""
        return read_file is not None and read_file.page.id in self._pages.forgotten()

    @cached_property
    def _ids_by_content(self) -> dict[tuple[str | None, str], str]:
        """Ids by path and digest: a file may have been added by an interrupted comparison."""
        ids: dict[tuple[str | None, str], str] = {}
        for page in self._pages_by_id.values():
            ids.setdefault((page.path, page.said.digest), page.id)
        return ids

    def _find_page(self, record_id: str, pages: Mapping[str, HomePage]) -> str | None:
        """The id under which the home has a page now, None if it has none."""
        page_id = record_id if record_id in pages else self._pages.find_current(record_id)
        return page_id if page_id in pages else None

    def _refuse_mass_deletion(self, tasks: list[_Task], *, accept_deletions: bool) -> None:
        missing = sum(task.decision == "hide" for task in tasks)
        if accept_deletions or missing <= max(_FEW, len(self._pairs) // 2):
            return
        raise MirrorError(
            str(self.ledger.folder),
            (
                f"{missing} of {len(self._pairs)} files are gone at once; put them back, or run "
                "`anaphora mirror now --accept-deletions` to forget what they said"
            ),
            lasting=True,
        )

    # Carrying it out.

    def _carry_out(self, tasks: list[_Task]) -> None:
        self._names = {task.home.id: task.file for task in tasks if task.home is not None}
        writing = [
            task.home.id for task in tasks if task.home is not None and task.decision == "write"
        ]
        self._related = self._pages.related(writing)
        doing = [task for task in tasks if task.decision != "same"]
        planned_tasks = tuple(
            PageFile(task.file, task.home.id, task.home.said.digest, (0, 0), task.home.said.words)
            for task in tasks
            if task.home is not None and task.decision == "write"
        )
        if planned_tasks:
            # Saved before any file is written: a process that is killed cannot do it afterwards.
            self._save(replace(self.ledger, planned=planned_tasks, version=-1))
        for done_count, task in enumerate(doing):
            try:
                _HANDLERS[task.decision](self, task)
            except FileChanged:
                self._report.note("waiting", task.file)
            except LinkRefused as error:
                self._report.note_problem(task.file, str(error.strerror))
            except InvalidInput as error:
                self._report.note_problem(task.file, str(error))
            self._tell("mirror", done_count + 1, len(doing))

    def _drop_pair(self, task: _Task) -> None:
        self._pairs.pop(task.file, None)

    def _adopt(self, task: _Task) -> None:
        assert task.home is not None
        assert task.stamp is not None
        self._note_pair(task.file, task.home, task.stamp)

    def _write(self, task: _Task) -> None:
        assert task.home is not None
        if task.before is not None and task.stamp is None and task.before.file == task.file:
            # The file was removed while the home had a new version.
            self._report.conflicts.append(MirrorConflict(task.file, "home"))
        self._write_page(task, task.home)
        self._report.note("written", task.file)

    def _remove(self, task: _Task) -> None:
        if task.stamp is not None:
            self._folder.remove(task.file, task.stamp)
        self._pairs.pop(task.file, None)
        self._report.note("removed", task.file)

    def _hide(self, task: _Task) -> None:
        assert task.home is not None
        self._pages.hide(task.home)
        self._pairs.pop(task.file, None)
        self._report.note("hidden", task.file)

    def _add(self, task: _Task) -> None:
        assert task.read is not None
        assert task.said is not None
        kind = kind_of(task.file)
        path = None if kind == "note" else task.read.page.path or path_of(task.file)
        existing = self._ids_by_content.get((path, task.said.digest))
        record_id = existing or self._pages.add(kind, path, task.said, task.file)
        page = self._pages.get(record_id)
        self._ids_by_content.setdefault((page.path, page.said.digest), page.id)
        self._write_page(task, page)
        self._report.note("added", task.file)

    def _edit(self, task: _Task) -> None:
        assert task.home is not None
        assert task.said is not None
        assert task.stamp is not None
        page = self._pages.get(self._pages.edit(task.home, task.said))
        if page.said.digest == task.said.digest:
            self._note_pair(task.file, page, task.stamp)
        else:
            # A secret was taken out of it: the file must not keep it either.
            self._write_page(task, page)
        self._report.note("edited", task.file)

    def _conflict(self, task: _Task) -> None:
        """Both changed: the later version is current, and the other is in the history."""
        assert task.home is not None
        assert task.said is not None
        winner = self._find_later(task)
        if winner == "file":
            self._edit(task)
        else:
            between = self._pages.get(self._pages.edit(task.home, task.said))
            self._write_page(task, self._pages.get(self._pages.edit(between, task.home.said)))
            self._report.note("written", task.file)
        self._report.conflicts.append(MirrorConflict(task.file, winner))

    @staticmethod
    def _find_later(task: _Task) -> str:
        assert task.home is not None
        assert task.stamp is not None
        saved_at = datetime.fromtimestamp(task.stamp[0] / 1e9, UTC)
        return "file" if saved_at >= task.home.changed else "home"

    def _write_page(self, task: _Task, page: HomePage) -> None:
        """Write a page into its file."""
        links = [
            self._names[page_id]
            for page_id in self._related.get(page.id, ())
            if page_id in self._names
        ]
        text = write_page(page, tuple(file.removesuffix(ENDING) for file in links))
        self._note_pair(task.file, page, self._folder.write(task.file, text, task.stamp))

    def _note_pair(self, file: str, page: HomePage, stamp: Stamp) -> None:
        self._pairs[file] = PageFile(file, page.id, page.said.digest, stamp, page.said.words)


_HANDLERS: Final[dict[Decision, Callable[[MirrorComparison, _Task], None]]] = {
    "lose": MirrorComparison._drop_pair,
    "adopt": MirrorComparison._adopt,
    "write": MirrorComparison._write,
    "remove": MirrorComparison._remove,
    "hide": MirrorComparison._hide,
    "add": MirrorComparison._add,
    "edit": MirrorComparison._edit,
    "conflict": MirrorComparison._conflict,
}
