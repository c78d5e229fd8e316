"""The seam for a feature: what one may add, and the features that are registered.

A feature is a folder of `anaphora.features`. `FEATURE` in its `feature.py` says what it adds to the
program: tables, commands, routes, tools. Its `FeatureServices` says what it has in a namespace, and
takes part in what the kernel does there: searching, forgetting, checking, exporting. The kernel
goes through the registered features and knows none by name; `anaphora.registry` has them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple

from anaphora.container.services import ServiceGroup
from anaphora.embed.kinds import KINDS, EmbedderKind
from anaphora.store.db.tables import add_tables, remove_tables
from anaphora.store.extensions import CLOCKS, DROPPED_TOKENS, JOURNALS
from anaphora.values.search_kinds import MEMORY, NOTE, TOOL_CALL, TURN, HitKind

if TYPE_CHECKING:
    from pathlib import Path

    from anaphora.calls.progress import Progress
    from anaphora.container.filling import Fill
    from anaphora.container.home import Container
    from anaphora.container.namespace import NamespaceServices
    from anaphora.container.pages import NotePages
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.recall.identifiers import Identifier
    from anaphora.recall.lanes import Lane
    from anaphora.recall.memories import MemoryRecall
    from anaphora.recall.memory_source import KeptNotes
    from anaphora.recall.session.standing import StandingContext
    from anaphora.store.db.table import Table
    from anaphora.store.extensions import ForgetTokens, LatestSeen, OpenJournal
    from anaphora.store.records.forgetting import ForgottenRecords
    from anaphora.store.records.store import Records
    from anaphora.store.records.transaction import RecordTransaction
    from anaphora.values.actions import AuditAction
    from anaphora.values.context import ContextMemory
    from anaphora.values.conversations import Check, ImportReport, Source
    from anaphora.values.files import TakenFile
    from anaphora.values.memories import Forgotten, MemoryRecord, SurvivingSource


class FeatureServices(ServiceGroup):
    """What a feature has in one namespace: its services, and its part in what the kernel does.

    Every method here is called by the kernel; by default a feature adds nothing. A subclass
    overrides what it takes part in, and creates what it needs as a `service`. Importing the module
    of a subclass must be cheap, as every search goes through all of them.
    """

    name: ClassVar[str] = ""
    """The feature in findings of `doctor`."""

    # Reading.

    def lanes(self) -> Iterable[Lane]:
        """Lanes of `search`; none that has nothing to search."""
        return ()

    def notes(self) -> KeptNotes | None:
        """Records that the memory lane recalls beside memories, with their index."""
        return None

    def record_stores(self) -> Iterable[Records]:
        """Records of the feature that users name by their ids, in the order of `resolve_id`."""
        return ()

    def evidence(self) -> Mapping[str, MemoryRecall]:
        """Lanes of records that questions beyond `search` read too, by kind."""
        return {}

    def opening(
        self, standing: StandingContext, memories: Sequence[MemoryRecord]
    ) -> Iterable[ContextMemory]:
        """What every session is told first, of these memories that hold now, in order."""
        del standing, memories
        return ()

    # Writing.

    def pages(self) -> NotePages | None:
        """Notes that are edited as pages beside memories."""
        return None

    def import_files(
        self,
        sources: Iterable[Source],
        form: str | None,
        name: str,
        *,
        again: bool,
        progress: Progress | None,
    ) -> ImportReport | None:
        """Import files of other programs; None by a feature that reads none."""
        del sources, form, name, again, progress
        return None

    def take_file(self, source: Path | bytes, name: str | None, *, again: bool) -> TakenFile | None:
        """Keep a file that no importer knows, at a path or its bytes, under its path or `name`.

        `again` also takes one that was forgotten here. None by a feature that keeps no files.
        """
        del source, name, again
        return None

    # Vectors.

    def fills(self) -> Iterable[Fill]:
        """Functions that compute missing vectors in the background, one for each kind of record."""
        return ()

    def fill(self, progress: Progress | None) -> Iterable[MemoryIndex]:
        """Compute all missing vectors; the updated indexes, to wait for."""
        del progress
        return ()

    def fill_in_call(self, limit: int, room: int) -> None:
        """Compute the vectors of at most `limit` records with `room` characters in all."""

    # Forgetting.

    def get(self, record_id: str) -> MemoryRecord | None:
        """The record with this id, if it is one that `Memory.get` gives; None if it is not."""
        del record_id
        return None

    def forget(self, record_id: str, *, soft: bool, dry_run: bool) -> Forgotten | None:
        """Forget a record of the feature; None if none of its records has this id."""
        del record_id, soft, dry_run
        return None

    def restore(self, record_id: str) -> tuple[str, ...]:
        """Undo a soft forgetting; the ids that are back, none if it is no record of the feature."""
        del record_id
        return ()

    def list_derived(self, work: RecordTransaction, record_ids: Sequence[str]) -> Iterable[str]:
        """The memories derived from these records, which are forgotten with them."""
        del work, record_ids
        return ()

    def forget_derived(self, work: RecordTransaction, gone: ForgottenRecords, soft: bool) -> None:
        """Delete what was made of forgotten records, in their transaction."""

    def forget_conversation(self, conversation_id: str) -> None:
        """Delete what was made of a conversation that was deleted or redacted."""

    def find_survivors(self, identifiers: Sequence[Identifier]) -> Iterator[SurvivingSource]:
        """What of the feature still contains one of these identifiers."""
        del identifiers
        yield from ()

    def purge(self) -> None:
        """Remove forgotten text from the feature's index files, now."""

    def after_removal(self) -> None:
        """Something of the namespace was forgotten for good."""

    def holding_secrets(self, most: int | None) -> tuple[str, ...]:
        """The ids of records with secrets; `most`: characters of each that are examined."""
        del most
        return ()

    def redact_secrets(self) -> tuple[str, ...]:
        """Redact the secrets in records; the ids that changed."""
        return ()

    def list_outside(self) -> Iterable[str]:
        """What the namespace has outside the home, which deleting it leaves."""
        return ()

    # Audit.

    def is_auditing(self) -> bool:
        """Whether the feature records calls: `after_call` is called only then."""
        return False

    def after_call(self, action: AuditAction, lane: str, ids: Sequence[str], question: str) -> None:
        """A call has read or changed something; called before the caller has the answer."""

    def after_turns(self, action: AuditAction, conversation_id: str, count: int) -> None:
        """So many turns of a conversation were changed; always called."""

    # Maintenance.

    def counts(self) -> Mapping[str, int]:
        """Fields of `Stats` with their counts."""
        return {}

    def checks(self) -> Iterable[Check]:
        """The findings of `doctor`."""
        return ()

    def repair(self) -> Iterable[Check]:
        """Repair what can be repaired without changing a text, and say what was done."""
        return ()

    def close(self) -> None:
        """Finish running work and close files."""


Section = Literal[
    "Recall", "Remember", "Bring in", "Projects", "Devices", "Agents and server", "Care"
]
"""What a person wants of a command, in the order of the help."""


class Commands(NamedTuple):
    """Commands of the command line: `register` is called with the program to add them.

    `register` is "module:function", loaded with the first of the commands; `order` is their place
    in a section of the help. The help shows those in `front`, and those `behind` when asked for
    all; both give the section of each.
    """

    register: str
    order: int
    front: Mapping[str, Section] = {}
    behind: Mapping[str, Section] = {}

    @property
    def sections(self) -> Mapping[str, Section]:
        """All of the commands, each with its section."""
        return {**self.front, **self.behind}


class CommandLine(NamedTuple):
    """What commands of the kernel take from a feature, each a "module:function" or "".

    `offers(folders)` finds files that can be imported, `checks(program)` gives findings of `doctor`
    about this machine, `remedies` maps names of checks to functions that say what mends them, and
    `show(memory, id, part, as_json=...)` shows a record and says whether it was one of the
    feature's.
    """

    offers: str = ""
    checks: str = ""
    remedies: str = ""
    show: str = ""


_NO_COMMAND_LINE: Final = CommandLine()


class LineKind(NamedTuple):
    """A kind of lines in an export: how they are written, and read back.

    `write` gives the lines of a namespace; `reader` makes the reader of the kinds in `names`.
    `order` is the place in the file: what a line refers to stands before it.
    """

    names: tuple[str, ...]
    order: int
    write: Callable[[Any], Iterable[Mapping[str, Any]]]
    reader: Callable[[Any], Any]


class Feature(NamedTuple):
    """What a feature adds to the program.

    - `services` makes its `FeatureServices` in a namespace, `open` is called with each home.
    - `tables` are those of the database, `line_kinds` ("module:LINES") the lines in an export.
    - `commands`, `routes` ("module:router"), `tools` ("module:TOOLS") and `resources`
      ("module:RESOURCES") are what surfaces offer; they are loaded when a surface starts; `cli` is
      what commands of the kernel take from it. `authorization` ("module:class") makes what issues
      tokens to clients of the MCP server elsewhere.
      `values` is the module of its public values, `embedders` the embedders it adds.
    - `application` ("module:function") makes the HTTP server over a memory, with its options.
    - `events` are those that `Memory.on` accepts, `search_kinds` the kinds of its hits in a search.
    - `journal` notes what each write does to records; `latest_seen` tells the time of the last
      change on other devices; `forget_tokens` is called for tokens that are gone.
    - Deleting a namespace holds `locks` (`hold_namespace`) and removes `files` in the home's
      folder.
    """

    name: str
    services: Callable[[NamespaceServices], FeatureServices] | None = None
    tables: tuple[Table, ...] = ()
    commands: tuple[Commands, ...] = ()
    routes: tuple[str, ...] = ()
    values: str = ""
    cli: CommandLine = _NO_COMMAND_LINE
    embedders: tuple[EmbedderKind, ...] = ()
    tools: str = ""
    resources: str = ""
    authorization: str = ""
    application: str = ""
    line_kinds: str = ""
    events: tuple[str, ...] = ()
    search_kinds: tuple[HitKind, ...] = ()
    open: Callable[[Container], object] = lambda _: None
    journal: OpenJournal | None = None
    latest_seen: LatestSeen | None = None
    forget_tokens: ForgetTokens | None = None
    locks: tuple[str, ...] = ()
    files: Callable[[Path, str], Iterable[Path]] = lambda _root, _namespace: ()


def load(reference: str) -> Any:
    """What "module:name" refers to."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def later(reference: str) -> Callable[..., Any]:
    """The function or class "module:name"; its module is imported with the first call."""

    def call(*arguments: Any) -> Any:
        return load(reference)(*arguments)

    return call


_registered: dict[str, Feature] = {}


def register(*features: Feature) -> None:
    """Add features to the program, for homes that are opened afterwards."""
    for feature in features:
        if feature.name in _registered:
            raise ValueError(f"a feature {feature.name!r} is registered already")
        add_tables(feature.tables)
        KINDS.extend(feature.embedders)
        if feature.journal is not None:
            JOURNALS.append(feature.journal)
        if feature.latest_seen is not None:
            CLOCKS.append(feature.latest_seen)
        if feature.forget_tokens is not None:
            DROPPED_TOKENS.append(feature.forget_tokens)
        _registered[feature.name] = feature


def registered() -> tuple[Feature, ...]:
    """The features of the program, in the order in which they were registered."""
    return tuple(_registered.values())


def search_kinds() -> tuple[str, ...]:
    """The kinds of hits that a search can give, as `kinds` names them."""
    of_features = (kind for feature in registered() for kind in feature.search_kinds)
    return tuple(kind.name for kind in (MEMORY, NOTE, TURN, *of_features, TOOL_CALL))


@contextmanager
def only(*features: Feature) -> Iterator[None]:
    """The program with these features and no others; for tests of a feature, or of its absence."""
    previous = registered()

    def replace_by(chosen: Iterable[Feature]) -> None:
        for feature in registered():
            remove_tables(feature.tables)
        for extensions in (_registered, KINDS, JOURNALS, CLOCKS, DROPPED_TOKENS):
            extensions.clear()
        register(*chosen)

    replace_by(features)
    try:
        yield
    finally:
        replace_by(previous)
