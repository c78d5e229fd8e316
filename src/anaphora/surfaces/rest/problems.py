"""Errors as problem documents (RFC 9457): one form for everything that goes wrong.

Our own errors, the framework's, and unexpected ones become `application/problem+json` with
`type`, `title`, `status`, `detail`, `next` (one sentence: what to do about it), for invalid input
the position of the mistake, and for an unexpected error its `incident`. They never contain a
traceback, a path on the server's disk, or the request's data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from anaphora import errors
from anaphora.ingest.secrets.masking import mask
from anaphora.surfaces.next_steps import PROBLEMS, next_step
from anaphora.surfaces.wire import dumps
from anaphora.system.environment import environment
from anaphora.system.incidents import Incident, report

REQUEST_ID: Final = "anaphora.request"
"""The key of a request's id in its scope; the response has it in `Anaphora-Request`."""
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT"})
_PAGE_METHODS: Final = ("GET", "HEAD")
MEDIA_TYPE: Final = "application/problem+json"
TYPE: Final = "urn:anaphora:problem:"
"""What the `type` of a problem begins with; its name follows."""

TITLES: Final[Mapping[int, str]] = {
    400: "The request cannot be read",
    401: "A token is required",
    403: "This is not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "The request took too long to come",
    409: "Conflict",
    413: "The body is too large",
    415: "Unsupported kind of body",
    421: "This server has another host name",
    422: "Invalid request",
    429: "Too many requests",
    500: "Something went wrong here",
    501: "A part is not installed",
    502: "The language model did not answer",
    503: "Temporarily unavailable",
    504: "Timed out",
    507: "Insufficient storage",
}

# The first match counts; errors that the caller can correct are below 500.
_STATUSES: tuple[tuple[type[errors.AnaphoraError], int, str], ...] = (
    (errors.Diverged, 409, "diverged"),
    (errors.SyncError, 502, "sync"),
    (errors.FilterError, 422, "filter"),
    (errors.InvalidInput, 422, "invalid_input"),
    (errors.NotFound, 404, "not_found"),
    (errors.DiskFull, 507, "disk_full"),
    (errors.ReadOnly, 503, "read_only"),
    (errors.StoreError, 503, "store"),
    (errors.EmbeddingError, 503, "embedding"),
    (errors.ReaderError, 503, "reader"),
    (errors.EncryptionError, 503, "encryption"),
    (errors.ModelTimeout, 504, "model_timeout"),
    (errors.TimedOut, 504, "timed_out"),
    (errors.Cancelled, 503, "cancelled"),
    (errors.NoModel, 501, "no_model"),
    (errors.ModelError, 502, "model"),
    (errors.SandboxError, 503, "sandbox"),
    (errors.MissingExtra, 501, "missing_extra"),
    (errors.Closed, 503, "closed"),
)


# The fields of an error that a program gets: none reveals the server's paths or the request's data.
_MEMBERS: Final[tuple[tuple[type[errors.AnaphoraError], tuple[str, ...]], ...]] = (
    (errors.InvalidInput, ("what", "reason")),
    (errors.NotFound, ("kind", "id")),
    (errors.Unreadable, ("table", "id", "operation", "reason")),
    (errors.SchemaTooNew, ("found", "operation", "reason")),
    (errors.SchemaTooOld, ("found", "needed", "operation", "reason")),
    (errors.StoreError, ("operation", "reason")),
    (errors.EndpointError, ("url", "model", "reason")),
    (errors.EmbedderNotReady, ("waited",)),
    (errors.ModelTimeout, ("model", "reason", "status", "seconds")),
    (errors.ModelError, ("model", "reason", "status")),
    (errors.SandboxError, ("reason",)),
    (errors.MissingExtra, ("extra", "needs")),
    (errors.Closed, ("what",)),
    (errors.TimedOut, ("seconds",)),
    (errors.SyncError, ("remote", "reason")),
)


_OWN: Final = (
    "busy", "gone", "host", "internal", "invalid_input", "method", "namespace", "not_found",
    "origin", "project", "rate", "read_only", "refused", "timeout", "token", "too_large",
    "unreadable",
)  # fmt: skip
NAMES: Final = tuple(sorted({*_OWN, *(name for _, _, name in _STATUSES)}))
"""Every problem by its name, which ends its `type`. Other names are rejected."""


class Problem(HTTPException):
    """A refusal by a surface itself: its status, a short name, and a detail for the caller."""

    def __init__(
        self, status: int, name: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.name = name


def problem(
    status: int,
    name: str,
    detail: str,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Response:
    """The response for one problem; `more` are additional members."""
    assert name in NAMES, name
    body = {
        "type": TYPE + name,
        "title": TITLES.get(status, "It did not work"),
        "status": status,
        "detail": detail,
        "next": PROBLEMS.get(name, ""),
        **more,
    }
    return Response(
        dumps(mask(body), indent=None), status, headers=dict(headers or {}), media_type=MEDIA_TYPE
    )


def problem_of(error: errors.AnaphoraError | Problem) -> Response:
    """The response for one of our own errors."""
    if isinstance(error, Problem):
        return problem(error.status_code, error.name, error.detail, error.headers)
    status, name = next(
        ((status, name) for kind, status, name in _STATUSES if isinstance(error, kind)),
        (500, "internal"),
    )
    headers = {"Retry-After": "5"} if status == 503 else {}
    members = next((names for kind, names in _MEMBERS if isinstance(error, kind)), ())
    further_fields: dict[str, Any] = {
        "error": type(error).__name__,
        "next": next_step(error, on_this_machine=False),
        "data": {name: getattr(error, name) for name in members},
    }
    if isinstance(error, errors.InvalidInput):
        at = [{"at": error.what, "reason": error.reason}]
        return problem(
            status, name, f"{error.what}: {error.reason}", headers, errors=at, **further_fields
        )
    # What went wrong, without the server's paths.
    detail = str(error)
    if isinstance(error, errors.StoreError):
        detail = f"cannot {error.operation}: {error.reason}"
    elif isinstance(error, errors.EncryptionError):
        detail = "this home is sealed, and cannot be opened or trusted now"
    elif isinstance(error, errors.MissingExtra):
        detail = error.summary
    return problem(status, name, detail, headers, **further_fields)


def problem_of_any(error: BaseException, scope: Scope) -> Response:
    """The response for any error; an unexpected one is logged under the id of the request."""
    if isinstance(error, errors.AnaphoraError | Problem):
        return problem_of(error)
    if isinstance(error, RequestValidationError):
        return _unusable(error)
    if isinstance(error, HTTPException):
        return _refused(error, scope)
    if isinstance(error, ClientDisconnect):
        # The client has gone; the response only completes the request.
        return problem(408, "gone", "the client disconnected")
    incident = report_request(error, scope)
    detail = f"an unexpected error (incident {incident.id}); {incident.hint}"
    return problem(500, "internal", detail, incident=incident.id)


def _unusable(error: RequestValidationError) -> Response:
    mistakes = [
        {"at": ".".join(str(part) for part in mistake["loc"]), "reason": str(mistake["msg"])}
        for mistake in error.errors()[:20]
    ]
    summary = "; ".join(f"{mistake['at']}: {mistake['reason']}" for mistake in mistakes[:3])
    return problem(422, "invalid_input", summary or "the request is invalid", errors=mistakes)


def _refused(error: HTTPException, scope: Scope) -> Response:
    headers, status = dict(error.headers or {}), error.status_code
    names = {400: "unreadable", 404: "not_found", 405: "method", 413: "too_large"}
    detail = error.detail
    if status in {404, 405}:
        # The page is mounted at every path, so the framework answers 404 where 405 is right. A
        # path may have several routes; if a literal path and one with a variable both match, the
        # first declared one counts.
        path, methods, detail = None, set[str](), "see /openapi.json"
        for route in scope["app"].routes:
            match, _ = route.matches(scope)
            if match is not Match.NONE and path in {None, route.path}:
                path = route.path
                methods |= set(getattr(route, "methods", None) or ())
        if methods and scope["method"] not in methods:
            status = 405
        if status == 405:
            headers["Allow"] = ", ".join(sorted(methods) or _PAGE_METHODS)
    return problem(status, names.get(status, "refused"), str(detail), headers)


def report_request(error: BaseException, scope: Scope) -> Incident:
    """Log an unexpected error of a request."""
    return report(
        environment(),
        error,
        surface="http",
        operation=route_of(scope),
        incident_id=scope.get(REQUEST_ID, ""),
    )


def route_of(scope: Scope) -> str:
    """The method and declared route of a request; its actual path may contain user data."""
    method = scope.get("method", "")
    path = getattr(scope.get("route"), "path", "")
    return f"{method if method in METHODS else 'other'} {path}".strip()
