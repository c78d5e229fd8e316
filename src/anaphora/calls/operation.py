"""The description of a call, and the one wrapper that each public method of a memory has.

`@operation(...)` stands on a method of any class with the two members of `HomeView`. The wrapper
checks the arguments, counts the call on its home, shows times in the user's zone, names what the
process ran out of, asks again where an endpoint went away, and tells listeners and the audit trail
what the call returned.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar, Union, get_args, get_origin

from anaphora.calls.arguments import ArgumentChecks, checked, signature_types
from anaphora.calls.limits import limited
from anaphora.calls.parameters import CallParameter, Parameter, described_as
from anaphora.system.shortages import refused_for_shortages
from anaphora.system.zones import times_shown_in
from anaphora.values.actions import DIGESTED, AuditAction
from anaphora.values.conversations import Degraded

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
AnswerT = TypeVar("AnswerT", bound=Any)

Right = Literal["read", "write", "index", "admin"]
"""What a token must allow: reading or changing one namespace, indexing folders of the machine; or
that the call concerns the whole home, or what lies outside it."""

_DESCRIPTION: Final = "operation"
_LOCAL: Final = "local"
_IN_PATH: Final = re.compile(r"\{(\w+)\}")
IN_PROCESS: Final = frozenset(("embed", "progress", "on_step", "clean"))
"""Parameters that no request has: a server makes vectors when they are needed."""


class HomeView(Protocol):
    """One namespace of an open home."""

    # The container, and the services of the namespace: both are in rooms above.
    _container: Any

    def _services(self, *, anew: bool = True) -> Any: ...


class Http(NamedTuple):
    """The request to a server that a call is.

    Names in braces are parameters of the call that stand in the path; the others go into the query
    of a GET or DELETE or of a request with a file, else into the body. `renamed` are those that
    have another name in the request, `folders` those that a server refuses: folders on the
    caller's machine. `part` is the member of the answer that counts. `repeatable`: asked twice it
    does no more than once, as every GET. `long`: it may take minutes.

    A route is derived from a call with a `summary`, its title in the OpenAPI document; others are
    more than a request and have a function of their own. `threads` is the kind of threads that
    answer it, `creates` says whether an answer is of something new (201 instead of 200). `name`,
    `body` and `answer` are what generated clients call the route and its schemas, if that is not
    derived from the name of the call.
    """

    request: str
    summary: str = ""
    part: str = ""
    repeatable: bool = False
    long: bool = False
    renamed: Mapping[str, str] = MappingProxyType({})
    folders: tuple[str, ...] = ()
    threads: str = ""
    creates: bool = False
    name: str = ""
    body: str = ""
    answer: str = ""

    @property
    def method(self) -> str:
        """The method of the request, such as "GET"."""
        return self.request.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path of the request, with names in braces."""
        return self.request.partition(" ")[2]

    @property
    def path_names(self) -> tuple[str, ...]:
        """The names that stand in the path."""
        return tuple(_IN_PATH.findall(self.path))

    @property
    def has_body(self) -> bool:
        """Whether parameters that are not in the path go into a body instead of the query."""
        return self.method not in {"GET", "DELETE"}


class AuditRule(NamedTuple):
    """What the audit trail records of a call. `ids` are those of what the call returns.

    Without `ids`, the call itself is recorded, before it begins.
    """

    action: AuditAction
    lane: str
    ids: Callable[[Any], Iterable[str]] | None = None

    def record(self, view: HomeView, ids: Iterable[str], question: str = "") -> None:
        """Add a call to the audit trail, if one is kept. `StoreError` if that fails."""
        features = view._services(anew=False).features
        auditing = [feature for feature in features if feature.is_auditing()]
        # `ids` can be read once, and only where they are recorded.
        distinct_ids = list(dict.fromkeys(ids)) if auditing else []
        for feature in auditing:
            feature.after_call(self.action, self.lane, distinct_ids, question)


def ids_of(*groups: Iterable[Any]) -> Iterator[str]:
    """The ids of recalled records; of turns and tool calls those of their conversations."""
    for record in chain.from_iterable(groups):
        kind = getattr(record, "kind", "")
        if kind in {"turn", "tool_call"}:
            yield DIGESTED + (record.conversation_id or "")
        elif kind == "file":
            yield DIGESTED + record.id
        elif record.id:
            yield record.id


def thread_ids(conversation_ids: Iterable[str]) -> Iterator[str]:
    """The ids of conversations, as the audit trail takes them."""
    return (DIGESTED + conversation_id for conversation_id in conversation_ids)


@dataclass(frozen=True, slots=True)
class Operation:
    """What one call is.

    `right`: what it takes. `counted`: `close` waits for it. `question`: the parameter with what is
    asked. `event`: its listeners get the answer, to which notices about the languages of the
    question are added. `falls_back`: where the endpoint of the embedder goes away meanwhile, it is
    asked again with the local model, within the same `timeout`. `http`: the request that it is to a
    server. `described`: what its parameters mean, where that differs from `PARAMETERS`.
    """

    function: Callable[..., Any]
    checks: ArgumentChecks
    right: Right
    counted: bool
    audit: AuditRule | None
    question: str
    event: str
    falls_back: bool
    http: Http | None
    described: Mapping[str, Parameter]

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.function.__name__

    @property
    def parameters(self) -> dict[str, CallParameter]:
        """The parameters of the call by name, without `**` ones. Types are resolved now."""
        hints = self.checks.hints
        parameters = {}
        for name, parameter in list(inspect.signature(self.function).parameters.items())[1:]:
            if parameter.kind is not parameter.VAR_KEYWORD:
                annotation, optional = _without_none(hints[name])
                required = parameter.default is parameter.empty
                default = ... if required else parameter.default
                parameters[name] = CallParameter(
                    name, annotation, default, optional, self.describe(name)
                )
        return parameters

    @property
    def returned(self) -> Any:
        """The type of what it returns. Resolved now: features and their types load late."""
        return signature_types(self.function, self.function.__globals__)["return"]

    def describe(self, name: str) -> Parameter:
        """The meaning and bounds of one parameter. No type is resolved."""
        return described_as(name, self.described)

    def tell(self, view: HomeView, answer: AnswerT, question: str) -> AnswerT:
        """Tell listeners and the audit trail what the call returned; that, with its notices."""
        if self.event:
            container = view._container
            container.tell(self.event, answer)
            if self.question:
                services = view._services(anew=False)
                notices = container.languages.of_question(services, question)
                answer = with_notices(answer, notices)
        if self.audit is not None and self.audit.ids is not None:
            self.audit.record(view, self.audit.ids(answer), question)
        return answer

    def question_of(self, args: list[Any], named: dict[str, Any]) -> str:
        """What is asked, of the checked arguments of a call; "" where nothing is."""
        question = self.checks.argument(self.question, args, named) if self.question else ""
        return (question or "") if isinstance(question, str | None) else "\n".join(question)


def operation(
    right: Right,
    *,
    counted: bool = True,
    audit: AuditRule | None = None,
    question: str = "",
    event: str = "",
    falls_back: bool = False,
    http: Http | None = None,
    parameters: Mapping[str, Parameter] | None = None,
) -> Callable[[FunctionT], FunctionT]:
    """Describe a public method, and wrap it once. See `Operation` for the arguments."""

    def describe(function: FunctionT) -> FunctionT:
        stated = parameters or {}
        checks = ArgumentChecks(function, lambda name: described_as(name, stated).least)
        described = Operation(
            function,
            checks,
            right,
            counted,
            audit,
            question,
            event,
            falls_back,
            http,
            stated,
        )
        if falls_back:
            call = _asked(described)
        elif counted:
            call = _counted(described)
        else:
            call = checked(refused_for_shortages(function.__name__, "a home")(function), checks)
        vars(call)[_DESCRIPTION] = described
        return call  # type: ignore[return-value]

    return describe


def operation_of(call: Callable[..., Any]) -> Operation:
    """The description of a public method, such as `Memory.search`."""
    described: Operation = vars(call)[_DESCRIPTION]
    return described


def operations_of(owner: type) -> dict[str, Operation]:
    """The descriptions of a class's public methods, by name."""
    return {
        name: described
        for name, member in public_members(owner)
        if (described := getattr(getattr(owner, name), _DESCRIPTION, None)) is not None
    }


def local(reason: str) -> Callable[[FunctionT], FunctionT]:
    """Mark a method, or the function of a property, that no server offers, and say why."""

    def mark(function: FunctionT) -> FunctionT:
        vars(function)[_LOCAL] = reason
        return function

    return mark


def local_members(owner: type) -> dict[str, str]:
    """The public methods and properties that no server offers, with the reasons."""
    reasons = {}
    for name, member in public_members(owner):
        is_property = isinstance(member, property)
        function = member.fget if is_property else getattr(member, "__func__", member)
        reasons[name] = getattr(function, _LOCAL, "")
    return {name: reason for name, reason in reasons.items() if reason}


def public_members(owner: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class and its bases, as they stand in them."""
    for base in owner.__mro__:
        for name, member in vars(base).items():
            if not name.startswith("_") and inspect.getattr_static(owner, name) is member:
                yield name, member


def with_notices(answer: AnswerT, notices: tuple[str, ...]) -> AnswerT:
    """The answer with more notices for the user."""
    return replace(answer, notices=(*answer.notices, *notices)) if notices else answer


def with_stand_in(view: HomeView, services: Any, answer: AnswerT) -> AnswerT:
    """The answer; with a note if a local model replaced the endpoint."""
    reason = view._container.instead(services)
    if not reason:
        return answer
    return replace(answer, degraded=(*answer.degraded, Degraded("embeddings", reason)))


# A stack trace begins with the frame of `call` and that of the method: what each needs is written
# out here.


def _counted(described: Operation) -> Callable[..., Any]:
    function, apply, rule = described.function, described.checks.apply, described.audit

    @functools.wraps(function)
    def call(self: HomeView, /, *args: Any, **named: Any) -> Any:
        positional = apply((self, *args), named)
        container = self._container
        home = container.settings.home
        with (
            refused_for_shortages(described.name, home),
            times_shown_in(container.clock.zone),
            container.calls,
        ):
            if rule is not None and rule.ids is None:
                rule.record(self, ())
            answer = function(*positional, **named)
            return described.tell(self, answer, described.question_of(positional, named))

    return call


def _asked(described: Operation) -> Callable[..., Any]:
    function, apply = described.function, described.checks.apply
    has_timeout = "timeout" in (function.__kwdefaults__ or {})

    @functools.wraps(function)
    def call(self: HomeView, /, *args: Any, **named: Any) -> Any:
        positional = apply((self, *args), named)
        container = self._container
        home = container.settings.home
        with (
            refused_for_shortages(described.name, home),
            times_shown_in(container.clock.zone),
            container.calls,
        ):
            with limited(named.get("timeout")) if has_timeout else nullcontext():
                services = container.stand_in and self._services()
                answer = function(*positional, **named)
                if container.stand_in is not None:
                    current_services = self._services()
                    if current_services is not services:
                        # The endpoint went away meanwhile.
                        answer = function(*positional, **named)
                    answer = with_stand_in(self, current_services, answer)
            return described.tell(self, answer, described.question_of(positional, named))

    return call


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) not in (Union, UnionType) or NoneType not in get_args(annotation):
        return annotation, False
    parts = tuple(part for part in get_args(annotation) if part is not NoneType)
    return Union[parts], True  # noqa: UP007 - of parts that are only known here
