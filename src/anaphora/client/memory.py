"""`RemoteMemory`: the facade over a memory on a server.

Most methods are made below, out of those of `Memory` and the table of routes: each has the
signature and the words of the facade, looks at its arguments as the facade does, and gives the same
frozen values. It is a `Memory` so that what was written for one takes the other: `AsyncMemory`, the
adapters, a program's own functions.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn
from urllib.parse import quote

from anaphora.api.memory import Memory
from anaphora.client.connection import Patience, Request, ServerConnection
from anaphora.client.conversations import RemoteConversations
from anaphora.client.routes import (
    HERE,
    ID_OF,
    KINDS,
    NOT_OFFERED,
    NOT_TAKEN,
    RENAMED,
    ROUTES,
    Route,
)
from anaphora.container.home import Handler
from anaphora.core.arguments import ArgumentChecks, checked
from anaphora.core.calls import CLOSING_PATIENCE
from anaphora.core.json_codec import from_plain, iso_time, plain
from anaphora.core.operation import public_members
from anaphora.core.progress import Progress
from anaphora.errors import InvalidInput, NotFound, NotOffered, ServerError
from anaphora.features.deep.values import Budget, DeepAnswer, DeepStep, Gap, GapStatus, Scope
from anaphora.features.documents.values import AddedDocument
from anaphora.store.threads.ids import check_id
from anaphora.values.conversations import (
    RECALL_BUDGET,
    RECALL_TOP_K,
    Check,
    Health,
    ImportedConversation,
    ImportReport,
    Recall,
    RecallMode,
    Source,
    TurnHit,
    TurnRole,
)
from anaphora.values.memories import MemoryHit, NewMemory, Rejected, Remembered

if TYPE_CHECKING:
    from anaphora.client.connection import HttpClient
    from anaphora.container.home import Container
    from anaphora.container.namespace import NamespaceServices
    from anaphora.ops import Exported

__all__ = ["RemoteMemory"]

_IN_PATH: Final = re.compile(r"\{(\w+)\}")
_WAIT: Final = 10.0
_EXPORTED: Final = "anaphora-exported"
# What may be in a path: servers take a dot for a folder, and no id has a slash.
_NO_ID: Final = frozenset(("", ".", ".."))


class RemoteMemory(Memory):
    """Memory in one namespace of a server. Use it as a context manager, or call `close()`.

    Safe to share between threads. What a server does not offer raises `NotOffered`.
    """

    def __init__(self, connection: ServerConnection, namespace: str) -> None:
        self._connection = connection
        self.namespace = namespace

    @classmethod
    @checked
    def connect(
        cls,
        url: str,
        *,
        token: str | None = None,
        namespace: str = "default",
        timeout: float = 60.0,
        long_timeout: float = 900.0,
        retries: int = 2,
        http_client: HttpClient | None = None,
        sleep: Callable[[float], None] | None = None,
    ) -> RemoteMemory:
        """The memory of the server at `url` (`anaphora serve`), opened with `token`.

        Nothing is asked yet. `timeout` seconds are given to a call, `long_timeout` to one that may
        take long (deep recall, dreams, imports, exports, indexing). A call that failed is made up
        to `retries` times again where it only reads, does no more the second time, or was never
        begun. `http_client` is one of your own, with its certificates and proxies, which you close;
        `sleep` waits between attempts. Raises `InvalidInput`, and `MissingExtra` without the extra
        `client`.
        """
        for name, seconds in (("timeout", timeout), ("long_timeout", long_timeout)):
            if seconds <= 0:
                raise InvalidInput(name, seconds, "expected a number of seconds above 0")
        if retries < 0:
            raise InvalidInput("retries", retries, "expected 0 or more")
        patience = Patience(timeout, max(timeout, long_timeout), retries, sleep or time.sleep)
        return cls(ServerConnection(url, token, patience, http_client), _check_namespace(namespace))

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._connection.url

    @checked
    def scoped(self, namespace: str) -> RemoteMemory:
        """A cheap view on the same server in another namespace. Closing either closes both."""
        return RemoteMemory(self._connection, _check_namespace(namespace))

    @property
    def conversations(self) -> RemoteConversations:
        """The threads of this namespace. Strict: a turn that was not kept raises."""
        return RemoteConversations(self._ask_by_path, self._read)

    @checked
    def remember_many(
        self,
        items: Iterable[NewMemory | str | Mapping[str, Any]],
        progress: Progress | None = None,
    ) -> list[Remembered]:
        """As `Memory.remember_many`, at most 10,000 in a call."""
        bodies = [_item(index, item) for index, item in enumerate(items)]
        if not bodies:
            return []
        answer = self._ask(Request("POST", "/v1/memories/many", body={"items": bodies}))
        remembered_memories = self._read(tuple[Remembered, ...], answer)
        for memory in remembered_memories:
            self._connection.tell("remember", memory)
        _report_done(progress, "remembering", len(remembered_memories))
        return list(remembered_memories)

    @checked
    def recall_conversation(
        self,
        conversation_id: str | None,
        query: str,
        *,
        top_k: int = RECALL_TOP_K,
        budget: int = RECALL_BUDGET,
        exclude: str | Iterable[str] = (),
        mode: RecallMode = "hybrid",
        since: Any = None,
        until: Any = None,
        speaker: str | None = None,
        role: TurnRole | None = None,
        min_confidence: float | None = None,
        whole: bool = False,
        read: int | None = None,
        timeout: float | None = None,
    ) -> Recall[TurnHit]:
        """As `Memory.recall_conversation`."""
        if conversation_id is not None:
            check_id(conversation_id)
        body = {
            "conversation_id": conversation_id,
            "query": query,
            # Without them the server's configuration holds.
            "top_k": None if top_k is RECALL_TOP_K else top_k,
            "budget": None if budget is RECALL_BUDGET else budget,
            "exclude": [exclude] if isinstance(exclude, str) else list(exclude),
            "mode": mode,
            "since": since,
            "until": until,
            "speaker": speaker,
            "role": role,
            "min_confidence": min_confidence,
            "whole": whole,
            "read": read,
            "timeout": timeout,
        }
        request = Request("POST", "/v1/conversations/recall", body=_plain(body), repeatable=True)
        try:
            recall = self._read(Recall[TurnHit], self._ask(request))
        except NotFound as error:
            if error.kind != "conversation":
                raise
            # One that has not begun has no turns yet.
            recall = Recall()
        self._connection.tell("recall", recall)
        return recall  # type: ignore[no-any-return]

    @checked
    def import_(
        self,
        source: str | os.PathLike[str] | Iterable[Source],
        *,
        format: str | None = None,  # noqa: A002 - the word users know
        again: bool = False,
        embed: bool = True,
        name: str = "",
        progress: Progress | None = None,
    ) -> ImportReport:
        """As `Memory.import_`, of files on this machine, which are sent whole.

        A server makes vectors when they are needed, whatever `embed` says. Folders, and
        conversations that were read already, are `NotOffered`.
        """
        several = [source] if isinstance(source, str | os.PathLike) else source
        files = [_file(path_or_file) for path_or_file in several]
        reports = []
        for number, path in enumerate(files, 1):
            query = {"again": again, "name": name or path.name}
            if format is not None:
                query["format"] = format
            with path.open("rb") as file:
                request = Request(
                    "POST", "/v1/import", query, file=file, repeatable=True, long=True
                )
                reports.append(self._read(ImportReport, self._ask(request)))
            if progress is not None:
                progress("importing", number, len(files))
        return ImportReport.joined(reports) if len(reports) != 1 else reports[0]

    @checked
    def export(
        self,
        path: str | os.PathLike[str] | BinaryIO,
        *,
        masked: bool = False,
        progress: Progress | None = None,
    ) -> Exported:
        """As `Memory.export`, to this machine. With another token than one's own it is masked."""
        from anaphora.ops import Exported
        from anaphora.ops.backup import staging

        request = Request("GET", "/v1/export", long=True, verbatim=not masked)
        if not isinstance(path, str | os.PathLike):
            headers = self._connection.download(self.namespace, request, path)
            target = ""
        else:
            target_path = staging.free_path(path)
            with staging.staged(target_path) as stage:
                with staging.open_new(stage / "export.jsonl") as file:
                    headers = self._connection.download(self.namespace, request, file)
                staging.put_file(stage / "export.jsonl", target_path)
            target = str(target_path)
        try:
            export_report: Exported = from_plain(Exported, json.loads(headers[_EXPORTED]))
        except (KeyError, ValueError, TypeError) as error:
            raise ServerError(self.url, "it does not say what it exported") from error
        _report_done(progress, "threads", export_report.threads)
        return replace(export_report, path=target)

    @checked
    def add_document(
        self,
        source: str | os.PathLike[str] | bytes,
        *,
        name: str | None = None,
        title: str | None = None,
        date: datetime | None = None,
        origin: str | None = None,
        tags: Iterable[str] = (),
        keep_file: bool | None = None,
        embed: bool = True,
        progress: Progress | None = None,
    ) -> AddedDocument:
        """As `Memory.add_document`, of a file on this machine, which is sent whole.

        A server makes vectors when they are needed, whatever `embed` says.
        """
        from anaphora.features.documents.reading.writing import document_in

        content, document_name = document_in(source, name)
        parameters = {
            "name": document_name,
            "title": title,
            "date": _plain(date),
            "origin": origin,
            "tag": list(tags),
            "keep_file": keep_file,
        }
        query = {name: argument for name, argument in parameters.items() if argument is not None}
        request = Request(
            "POST", "/v1/documents", query, file=BytesIO(content), repeatable=True, long=True
        )
        added_document = self._read(AddedDocument, self._ask(request))
        _report_done(progress, "adding", 1)
        return added_document  # type: ignore[no-any-return]

    @checked
    def document_file(self, id: str) -> bytes:  # noqa: A002 - the field's own name
        """As `Memory.document_file`."""
        document_id = self._document(id)
        _refuse_impossible("document_file", "document_id", document_id)
        path = f"/v1/documents/{quote(document_id, safe='', errors='surrogatepass')}/file"
        into = BytesIO()
        self._connection.download(self.namespace, Request("GET", path), into)
        return into.getvalue()

    @checked
    def deep_recall(
        self,
        question: str,
        *,
        scope: Scope = "recent_sessions",
        conversation_id: str | None = None,
        include_memory: bool = True,
        budget: Budget | None = None,
        on_step: Callable[[DeepStep], None] | None = None,
    ) -> DeepAnswer:
        """As `Memory.deep_recall`; a conversation that is not there raises `NotFound`."""
        body = {
            "question": question,
            "scope": scope,
            "conversation_id": conversation_id,
            "include_memory": include_memory,
            "budget": budget,
        }
        request = Request("POST", "/v1/deep", body=_plain(body), long=True)
        if on_step is None:
            return self._read(DeepAnswer, self._ask(request))  # type: ignore[no-any-return]
        tell = on_step

        def step(_: str, data: Any) -> None:
            tell(self._read(DeepStep, data))

        answer = self._connection.events(self.namespace, request, step)
        return self._read(DeepAnswer, answer)  # type: ignore[no-any-return]

    @checked
    def gaps(self, status: GapStatus | None = "open") -> tuple[Gap, ...]:
        """As `Memory.gaps`."""
        request = Request("GET", "/v1/gaps", {"status": status or "all"}, repeatable=True)
        return self._read(tuple[Gap, ...], self._ask(request))  # type: ignore[no-any-return]

    @checked
    def ready(self, timeout: float | None = None) -> bool:
        """As `Memory.ready`."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            seconds = _WAIT if end is None else min(_WAIT, max(0.0, end - time.monotonic()))
            request = Request("GET", "/v1/ready", {"timeout": seconds}, repeatable=True)
            if self._read(bool, self._ask(request), "ready"):
                return True
            if end is not None and time.monotonic() >= end:
                return False

    def health(self) -> Health:
        """As `Memory.health`; a server that cannot be reached is not well."""
        try:
            answer = self._ask(Request("GET", "/health", repeatable=True, also=503))
            return self._read(Health, answer)  # type: ignore[no-any-return]
        except ServerError as error:
            return Health(False, (Check("server", False, str(error)),))

    @checked
    def on(self, event: str, handler: Handler) -> None:
        """Call `handler(value)` at every "remember" or "recall" of this program's own.

        The other events of `Memory.on` happen on the server, and are `NotOffered`.
        """
        handlers = self._connection.handlers
        if event not in handlers:
            raise NotOffered(f"on({event!r})", f"expected one of {', '.join(handlers)}")
        handlers[event].append(handler)

    @checked
    def close(self, timeout: float | None = CLOSING_PATIENCE) -> None:
        """Wait for the calls under way, then let go of the server. Others get `Closed` from now on.

        At most `timeout` seconds (None: as long as it takes). Safe to call twice.
        """
        self._connection.close(timeout)

    def __enter__(self) -> RemoteMemory:
        return self

    # The internals of a local memory, for methods of the facade without a remote version.

    @property
    def _container(self) -> Container:  # type: ignore[override]
        _refuse("this call", "it works on the files of a home")

    def _services(self) -> NamespaceServices:
        _refuse("this call", "it works on the files of a home")

    def _ask(self, request: Request) -> Any:
        return self._connection.ask(self.namespace, request)

    def _ask_by_path(
        self,
        request: str,
        in_path: Mapping[str, str] | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> Any:
        method, _, path = request.partition(" ")
        return self._ask(
            _request(Route(request, None), method, path, in_path or {}, arguments or {})
        )

    def _ask_by_route(self, name: str, route: Route, arguments: dict[str, Any]) -> Any:
        for parameter, reason in NOT_TAKEN.items():
            if parameter[0] == name and arguments.get(parameter[1]) is not None:
                raise NotOffered(f"{name}({parameter[1]}=…)", reason)
        arguments = {RENAMED.get((name, n), n): argument for n, argument in arguments.items()}
        in_path = {n: arguments.pop(n) for n in _IN_PATH.findall(route.path)}
        if "project" in in_path:
            in_path["project"] = self._project(in_path["project"])
        if "document_id" in in_path:
            in_path["document_id"] = self._document(in_path["document_id"])
        for path_name, path_value in in_path.items():
            _refuse_impossible(name, path_name, path_value)
        sent = {n: argument for n, argument in arguments.items() if n not in HERE}
        if isinstance(sent.get("exclude"), str):
            sent["exclude"] = [sent["exclude"]]
        answer = self._ask(_request(route, route.method, route.path, in_path, sent))
        outcome = self._read(route.gives, answer, route.part)
        if route.event:
            self._connection.tell(route.event, outcome)
        _report_done(arguments.get("progress"), name, 1)
        return outcome

    def _project(self, named: str) -> str:
        """The id of a project that is named by its folder, which a path cannot hold."""
        if "/" not in named and "\\" not in named:
            return named
        projects = self.projects()
        return next(
            (project.id for project in projects if Path(project.root) == Path(named)), named
        )

    def _document(self, named: str) -> str:
        """The id of a document that is named by a path, which a path cannot hold."""
        if "/" not in named:
            return named
        versions = self.document_history(named)
        return versions[-1].id if versions else named

    def _read(self, kind: Any, found: Any, part: str = "") -> Any:
        """The value that an answer stands for, or that a member of it does."""
        try:
            outcome = (
                kind(found)
                if inspect.isfunction(kind)
                else from_plain(kind, found[part] if part else found)
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ServerError(self.url, "its answer is none of an Anaphora server") from error
        if isinstance(outcome, Recall) and outcome.rejected:
            hits = tuple(
                Rejected(from_plain(MemoryHit, rejection["hit"]), rejection["reason"])
                for rejection in outcome.rejected
            )
            return replace(outcome, rejected=hits)
        return outcome


def _request(
    route: Route, method: str, path: str, in_path: Mapping[str, str], arguments: Mapping[str, Any]
) -> Request:
    """The request for these parameters: in the path, the query or the body."""
    for name, argument in in_path.items():
        path = path.replace("{" + name + "}", quote(argument, safe="", errors="surrogatepass"))
    if method in {"GET", "DELETE"}:
        query = {
            name: json.dumps(_plain(argument)) if isinstance(argument, Mapping) else argument
            for name, argument in arguments.items()
            if argument is not None
        }
        return Request(method, path, query, repeatable=method == "GET", long=route.long)
    return Request(
        method, path, body=_plain(arguments), repeatable=route.repeatable, long=route.long
    )


def _plain(value: Any) -> Any:
    """`value` in JSON's own types; what is no value of JSON stays, and is refused when it is sent.

    Of a frozen value its fields come, of a path its text.
    """
    return plain(
        value, lambda leaf: os.fspath(leaf) if isinstance(leaf, os.PathLike) else iso_time(leaf)
    )


def _item(index: int, item: NewMemory | str | Mapping[str, Any]) -> dict[str, Any]:
    """A memory to be remembered, as a body has it: what is as always is left out."""
    if isinstance(item, str):
        return {"text": item}
    if not isinstance(item, NewMemory | Mapping):
        raise InvalidInput(f"items[{index}]", item, "expected a text, a mapping or a NewMemory")
    if isinstance(item, Mapping):
        members = dict(item)
    else:
        usual = {spec.name: spec.default for spec in fields(NewMemory)}
        members = {
            name: getattr(item, name) for name in usual if getattr(item, name) != usual[name]
        }
    return _plain(members)  # type: ignore[no-any-return]


def _file(source: Source) -> Path:
    if isinstance(source, ImportedConversation):
        raise NotOffered("import_ of a conversation", "give the file that it was read from")
    path = Path(source).expanduser()
    if path.is_dir():
        raise NotOffered("import_ of a folder", f"give its files, one by one ({path})")
    if not path.is_file():
        raise InvalidInput("source", str(source), "there is no such file")
    return path


def _report_done(progress: Progress | None, label: str, done: int) -> None:
    """Report progress at the end: a server reports nothing before."""
    if progress is not None:
        progress(label, done, done)


def _refuse_impossible(call: str, name: str, path_value: str) -> None:
    """Refuse an invalid id, which a request path cannot contain."""
    if name == "conversation_id":
        check_id(path_value)
    elif path_value in _NO_ID or "/" in path_value or not path_value.strip():
        raise NotFound(KINDS.get(name) or ID_OF[call], path_value)


def _check_namespace(namespace: str) -> str:
    try:
        return check_id(namespace)
    except InvalidInput as error:
        raise type(error)("namespace", namespace, error.reason) from None


def _refuse(what: str, reason: str) -> NoReturn:
    raise NotOffered(what, reason)


def _make_method(name: str, route: Route, original: Callable[..., Any]) -> Callable[..., Any]:
    """The method of the facade as a request, with its signature and docstring."""
    signature = inspect.signature(original)
    several = next(
        (
            parameter.name
            for parameter in signature.parameters.values()
            if parameter.kind is parameter.VAR_KEYWORD
        ),
        None,
    )

    checks = ArgumentChecks(original)

    def call(self: RemoteMemory, *args: Any, **named: Any) -> Any:
        positional = checks.apply((self, *args), named)
        arguments = dict(signature.bind(*positional, **named).arguments)
        arguments.pop("self")
        arguments |= arguments.pop(several, {}) if several else {}
        return self._ask_by_route(name, route, arguments)

    return functools.update_wrapper(call, original)


def _make_refusal(name: str, member: Any) -> Any:
    reason = NOT_OFFERED[name]
    if isinstance(member, property):
        return property(lambda _: _refuse(name, reason), doc=member.__doc__)

    def call(*_: Any, **__: Any) -> NoReturn:
        _refuse(name, reason)

    functools.update_wrapper(call, getattr(member, "__func__", member))
    return staticmethod(call)


for _name, _member in public_members(Memory):
    if _name in ROUTES:
        setattr(RemoteMemory, _name, _make_method(_name, ROUTES[_name], _member))
    elif _name in NOT_OFFERED:
        setattr(RemoteMemory, _name, _make_refusal(_name, _member))
