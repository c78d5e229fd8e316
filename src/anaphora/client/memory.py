"""`RemoteMemory`: the facade over a memory on a server.

Most methods are made below, out of the descriptions of those of `Memory`: each has the
signature and the words of the facade, looks at its arguments as the facade does, and gives the same
frozen values. It is a `Memory` so that what was written for one takes the other: `AsyncMemory`, the
adapters, a program's own functions.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn
from urllib.parse import quote

from anaphora.api.memory import Memory
from anaphora.calls.arguments import checked
from anaphora.calls.counting import CLOSING_PATIENCE
from anaphora.calls.operation import (
    IN_PROCESS,
    Http,
    Operation,
    local_members,
    operations_of,
    public_members,
)
from anaphora.calls.progress import Progress
from anaphora.client.connection import Patience, Request, ServerConnection
from anaphora.client.conversations import RemoteConversations
from anaphora.container.home import Handler
from anaphora.errors import InvalidInput, NotFound, NotOffered, ServerError
from anaphora.registry import RemoteFeatureCalls
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
from anaphora.values.json_codec import from_plain, iso_time, plain
from anaphora.values.memories import MemoryHit, NewMemory, Rejected, Remembered

if TYPE_CHECKING:
    from anaphora.client.connection import HttpClient
    from anaphora.container.home import Container
    from anaphora.container.namespace import NamespaceServices
    from anaphora.ops import Exported

__all__ = ["RemoteMemory"]

_WAIT: Final = 10.0
_EXPORTED: Final = "anaphora-exported"
# What may be in a path: servers take a dot for a folder, and no id has a slash.
_NO_ID: Final = frozenset(("", ".", ".."))
# Parameters of paths that are ids of conversations, and names of namespaces.
_CHECKED_IDS: Final = frozenset(("conversation_id", "name"))
FOLDER_REASON: Final = "it stands for a folder on this machine, which a server cannot read"
_OPERATIONS: Final = operations_of(Memory)
REQUESTS: Final = {
    name: described.http for name, described in _OPERATIONS.items() if described.http is not None
}
NOT_OFFERED: Final = local_members(Memory)


class RemoteMemory(RemoteFeatureCalls, Memory):
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
        remembered_memories: list[Remembered] = self._ask("remember_many", {"items": bodies})
        for memory in remembered_memories:
            self._connection.tell("remember", memory)
        _report_done(progress, "remembering", len(remembered_memories))
        return remembered_memories

    @checked
    def recall_conversation(
        self,
        conversation_id: str | None,
        question: str,
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
        arguments = {
            "conversation_id": conversation_id,
            "question": question,
            # Without them the server's configuration holds.
            "top_k": None if top_k is RECALL_TOP_K else top_k,
            "budget": None if budget is RECALL_BUDGET else budget,
            "exclude": exclude,
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
        try:
            return self._ask("recall_conversation", arguments)  # type: ignore[no-any-return]
        except NotFound as error:
            if error.kind != "conversation":
                raise
        # One that has not begun has no turns yet.
        recall: Recall[TurnHit] = Recall()
        self._connection.tell("recall", recall)
        return recall

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
            arguments = {"again": again, "name": name or path.name, "format": format}
            with path.open("rb") as file:
                reports.append(self._ask("import_", arguments, file=file))
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

        if not isinstance(path, str | os.PathLike):
            headers = self._download("export", {}, path, verbatim=not masked)
            target = ""
        else:
            target_path = staging.free_path(path)
            with staging.staged(target_path) as stage:
                with staging.open_new(stage / "export.jsonl") as file:
                    headers = self._download("export", {}, file, verbatim=not masked)
                staging.put_file(stage / "export.jsonl", target_path)
            target = str(target_path)
        try:
            export_report: Exported = from_plain(Exported, json.loads(headers[_EXPORTED]))
        except (KeyError, ValueError, TypeError) as error:
            raise ServerError(self.url, "it does not say what it exported") from error
        _report_done(progress, "threads", export_report.threads)
        return replace(export_report, path=target)

    @checked
    def ready(self, timeout: float | None = None) -> bool:
        """As `Memory.ready`."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            seconds = _WAIT if end is None else min(_WAIT, max(0.0, end - time.monotonic()))
            if self._ask("ready", {"timeout": seconds}):
                return True
            if end is not None and time.monotonic() >= end:
                return False

    def health(self) -> Health:
        """As `Memory.health`; a server that cannot be reached is not well."""
        try:
            return self._ask("health", {}, also=503)  # type: ignore[no-any-return]
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

    def _services(self, *, anew: bool = True) -> NamespaceServices:
        _refuse("this call", "it works on the files of a home")

    def _ask(self, name: str, arguments: Mapping[str, Any], **more: Any) -> Any:
        request = self._request_of(name, arguments, **more)
        record = self._connection.ask(self.namespace, request)
        answer = self._read(_answer_type(name), record, REQUESTS[name].part)
        event = _OPERATIONS[name].event
        if event:
            self._connection.tell(event, answer)
        return answer

    def _ask_in_steps(
        self, name: str, arguments: Mapping[str, Any], kind: Any, on_step: Callable[[Any], None]
    ) -> Any:
        def step(_: str, record: Any) -> None:
            on_step(self._read(kind, record))

        answer = self._connection.events(self.namespace, self._request_of(name, arguments), step)
        return self._read(_answer_type(name), answer)

    def _download(
        self, name: str, arguments: Mapping[str, Any], file: BinaryIO, **more: Any
    ) -> Mapping[str, str]:
        request = self._request_of(name, arguments, **more)
        return self._connection.download(self.namespace, request, file)

    def _request_of(self, name: str, arguments: Mapping[str, Any], **more: Any) -> Request:
        """The request that a call with these arguments is; `more` are other fields of it."""
        http = REQUESTS[name]
        for parameter in http.folders:
            if arguments.get(parameter) is not None:
                raise NotOffered(f"{name}({parameter}=…)", FOLDER_REASON)
        sent = {http.renamed.get(n, n): arguments[n] for n in arguments if n not in IN_PROCESS}
        in_path = {n: self._path_id(n, sent.pop(n)) for n in http.path_names}
        for path_name, path_value in in_path.items():
            _refuse_impossible(path_name, path_value)
        if isinstance(sent.get("exclude"), str):
            sent["exclude"] = [sent["exclude"]]
        # Of what only reads, only recalls are a POST, which has to say that it is repeatable.
        recalls = http.repeatable and _OPERATIONS[name].right == "read"
        return _fill(http, in_path, sent, recalls=recalls, **more)

    def _ask_by_path(
        self,
        request: str,
        in_path: Mapping[str, str] | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> Any:
        http_request = _fill(Http(request), in_path or {}, arguments or {})
        return self._connection.ask(self.namespace, http_request)

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


@functools.cache
def _answer_type(name: str) -> Any:
    """What a method returns. Resolved at its first call: features and their types load late."""
    return _OPERATIONS[name].returned


def _fill(
    http: Http, in_path: Mapping[str, str], arguments: Mapping[str, Any], **more: Any
) -> Request:
    """The request with these parameters: in the path, the query or the body."""
    method, path = http.method, http.path
    for name, argument in in_path.items():
        path = path.replace("{" + name + "}", quote(argument, safe="", errors="surrogatepass"))
    is_repeatable = http.repeatable or method == "GET"
    sent = _plain(arguments)
    if not http.has_body or "file" in more:
        query = {
            name: json.dumps(argument) if isinstance(argument, Mapping) else argument
            for name, argument in sent.items()
            if argument is not None
        }
        return Request(method, path, query, repeatable=is_repeatable, long=http.long, **more)
    return Request(method, path, body=sent, repeatable=is_repeatable, long=http.long, **more)


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


def _refuse_impossible(name: str, path_value: str) -> None:
    """Refuse an invalid id, which a request path cannot contain."""
    if name in _CHECKED_IDS:
        check_id(path_value)
    elif path_value in _NO_ID or "/" in path_value or not path_value.strip():
        raise NotFound(name.removesuffix("_id"), path_value)


def _check_namespace(namespace: str) -> str:
    try:
        return check_id(namespace)
    except InvalidInput as error:
        raise type(error)("namespace", namespace, error.reason) from None


def _refuse(what: str, reason: str) -> NoReturn:
    raise NotOffered(what, reason)


def _make_method(described: Operation, original: Callable[..., Any]) -> Callable[..., Any]:
    """The method of the facade as a request, with its signature and docstring."""
    name, checks = described.name, described.checks
    signature = inspect.signature(original)
    several = next(
        (
            parameter.name
            for parameter in signature.parameters.values()
            if parameter.kind is parameter.VAR_KEYWORD
        ),
        None,
    )

    def call(self: RemoteMemory, *args: Any, **named: Any) -> Any:
        positional = checks.apply((self, *args), named)
        arguments = dict(signature.bind(*positional, **named).arguments)
        arguments.pop("self")
        arguments |= arguments.pop(several, {}) if several else {}
        answer = self._ask(name, arguments)
        _report_done(arguments.get("progress"), name, 1)
        return answer

    return functools.update_wrapper(call, original)


def _make_refusal(name: str, reason: str, member: Any) -> Any:
    if isinstance(member, property):
        return property(lambda _: _refuse(name, reason), doc=member.__doc__)

    def call(*_: Any, **__: Any) -> NoReturn:
        _refuse(name, reason)

    functools.update_wrapper(call, getattr(member, "__func__", member))
    return staticmethod(call)


for _name, _member in public_members(Memory):
    if _name in NOT_OFFERED:
        setattr(RemoteMemory, _name, _make_refusal(_name, NOT_OFFERED[_name], _member))
    elif _name in REQUESTS and getattr(RemoteMemory, _name) is _member:
        setattr(RemoteMemory, _name, _make_method(_OPERATIONS[_name], _member))
