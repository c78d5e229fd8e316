"""Every group of routes of a real server: what is stored is found, what is wrong is refused.

Routes and groups are those of the server's own description. A group without a sample fails the
gate; every route is called without a token, with an unknown parameter, with an unknown id and with
a body that is none.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.gate.environments import Environment, User
from tools.gate.report import Report, must
from tools.gate.surfaces.serving import Answer, Server, serving
from tools.gate.surfaces.web import check_web

__all__ = ["check_server"]

_METHODS: Final = ("get", "post", "put", "patch", "delete")
_PORT: Final = "Staging's database listens on port 5433."
_FERRY: Final = "The ferry to Hvar leaves at nine in the morning."
_MANUAL: Final = b"# Crane manual\n\nThe crane of pier seven lifts forty tonnes.\n"


@dataclass(frozen=True, slots=True)
class Route:
    """One operation of the description."""

    method: str
    path: str
    parameters: tuple[Mapping[str, Any], ...]
    body: str

    @property
    def name(self) -> str:
        """As a person writes it."""
        return f"{self.method} {self.path}"

    def address(self, value: str = "no-such-id") -> str:
        """The path with this value in the place of each parameter."""
        return re.sub(r"\{\w+\}", value, self.path)


def check_server(environment: Environment, report: Report) -> None:
    """The routes, then the page of the same server."""
    user = environment.user("serve")
    (user.work / "harbour").mkdir()
    (user.work / "harbour" / "berths.py").write_text("def take_berth():\n    return 1\n")
    with serving(user) as server:
        with report.surface("rest"):
            _check_routes(server, user, report)
        with report.surface("page"):
            check_web(server, report)


def _check_routes(server: Server, user: User, report: Report) -> None:
    groups = defaultdict(list)
    for group, route in _routes(server.result("GET", "/openapi.json")):
        groups[group].append(route)
    for group in sorted(groups, key=_place):
        with report.check(f"{group}: right requests"):
            must(group in SAMPLES, f"{group} has no sample in tools/gate/surfaces/rest.py")
            SAMPLES[group](server, user.work)
    for group, routes in groups.items():
        plain = [route for route in routes if _is_plain(route)]
        with report.check(f"{group}: {len(plain)} routes that need no argument answer"):
            for route in plain:
                server.result("GET", route.path)
        wrong = [(route, said, ask) for route in routes for said, ask in _wrong(server, route)]
        with report.check(f"{group}: wrong requests, {len(wrong)} ways"):
            for route, said, ask in wrong:
                _must_refuse(ask(), f"{route.name} with {said}")
    with report.check("a route that is not there, a method that is not known"):
        _must_refuse(server.ask("GET", "/v1/no-such-route"), "an unknown route")
        _must_refuse(server.ask("DELETE", "/v1/stats"), "an unknown method")


def _routes(description: Mapping[str, Any]) -> Iterator[tuple[str, Route]]:
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            if method in _METHODS:
                content = operation.get("requestBody", {}).get("content", {})
                parameters = tuple(operation.get("parameters", ()))
                body = next(iter(content), "")
                yield operation["tags"][0], Route(method.upper(), path, parameters, body)


def _is_plain(route: Route) -> bool:
    return route.method == "GET" and not any(one.get("required") for one in route.parameters)


def _wrong(server: Server, route: Route) -> Iterator[tuple[str, Callable[[], Answer]]]:
    """Requests that must be refused, each with what is wrong in it."""
    path, method = route.address(), route.method
    if route.path != "/health/live":
        yield "no token", lambda: server.ask(method, path, token=False)
    if route.path.startswith("/v"):
        # Probes of other programs add parameters of their own to what has no version.
        yield "an unknown parameter", lambda: server.ask(method, f"{path}?no_such_parameter=1")
    if route.path.endswith("}") and method in {"GET", "PATCH"}:
        body = {"title": "x"} if method == "PATCH" else None
        yield "an unknown id", lambda: server.ask(method, path, body)
    if route.body == "application/json":
        yield "an unknown field", lambda: server.ask(method, path, {"no_such_field": 1})
        yield "a body that is no JSON", lambda: server.ask(method, path, raw=b"{no json")
        yield "a body that is a list", lambda: server.ask(method, path, [1])


def _must_refuse(answer: Answer, what: str) -> None:
    """A problem in words, by the caller's fault."""
    shown = f"{what}: {answer.status} {answer.text[:500]}"
    must(400 <= answer.status < 500, shown)
    must("problem+json" in answer.kind, shown)
    problem = answer.json
    must(problem["status"] == answer.status, shown)
    must(len(f"{problem['title']} {problem.get('detail', '')}".split()) >= 3, shown)
    must("Traceback" not in answer.text and "Error:" not in answer.text, shown)


def _place(group: str) -> int:
    return list(SAMPLES).index(group) if group in SAMPLES else len(SAMPLES)


def _has(words: str, data: Any) -> None:
    must(words in json.dumps(data, ensure_ascii=False), f"{words!r} is not in {data}")


def _memory(server: Server, _: Path) -> None:
    stored = server.result("POST", "/v1/memories", {"text": _PORT, "path": "staging.port"})
    must(stored["action"] == "added", stored)
    question = {"question": "which port is staging on?"}
    _has("5433", server.result("POST", "/v1/recall", question))
    _has("5433", server.result("POST", "/v1/search", question))
    one = f"/v1/memories/{stored['id']}"
    must(server.result("GET", one)["text"] == _PORT, "another text")
    server.result("PATCH", one, {"tags": ["staging"]})
    _has("staging", server.result("GET", one)["tags"])
    server.result("POST", "/v1/core/pin", {"id": stored["id"]})
    _has("5433", server.result("GET", "/v1/core"))
    extra = server.result("POST", "/v1/memories", {"text": "The lighthouse is painted red."})
    gone = f"/v1/memories/{extra['id']}"
    must(server.result("DELETE", gone)["count"] == 1, "nothing was forgotten")
    must(server.ask("GET", gone).status == 404, "it is still there")


def _conversation(server: Server, _: Path) -> None:
    turns = {"turns": [{"role": "user", "text": _FERRY}, {"role": "assistant", "text": "Noted."}]}
    server.result("POST", "/v1/conversations/travel/turns", turns)
    _has(_FERRY, server.result("GET", "/v1/conversations/travel"))
    _has("travel", server.result("GET", "/v1/conversations"))
    question = {"question": "when does the ferry leave?"}
    hits = server.result("POST", "/v1/conversations/recall", question)
    _has(_FERRY, hits)
    must(server.ask("GET", "/v1/conversations/no-such-id").status == 404, "it is not 404")


def _context(server: Server, work: Path) -> None:
    project = {"root": str(work / "harbour"), "name": "harbour"}
    server.result("POST", "/v1/projects", project)
    _has("harbour", server.result("GET", "/v1/projects"))
    note = {"text": "take_berth must stay one statement.", "project": "harbour"}
    server.result("POST", "/v1/observations", note)
    _has("one statement", server.result("GET", "/v1/observations"))
    focus = {"focus": "where is take_berth defined?", "project": "harbour"}
    _has("berths.py", server.result("POST", "/v1/context/recall", focus)["primary_targets"])
    server.result("POST", "/v1/diary", {"summary": "Berths are taken in one statement now."})
    _has("Berths are taken", server.result("GET", "/v1/diary"))
    _has("Berths are taken", server.result("GET", "/v1/warm-up"))


def _documents(server: Server, _: Path) -> None:
    added = server.result("POST", "/v1/documents?name=crane.md", raw=_MANUAL)
    _has("crane", server.result("GET", "/v1/documents"))
    one = f"/v1/documents/{added['document']['id']}"
    _has("forty tonnes", server.result("GET", f"{one}/sections"))
    question = {"question": "how much does the crane lift?", "kinds": ["document"]}
    _has("forty tonnes", server.result("POST", "/v1/search", question))


def _deep(server: Server, _: Path) -> None:
    question = "how often did we talk about the ferry?"
    answer = server.result("POST", "/v1/deep", {"question": question, "scope": "all_sessions"})
    must(answer["sources"], answer)
    unknown = {"question": "which colour has the embassy of Zanzibar?", "scope": "all_sessions"}
    server.result("POST", "/v1/deep", unknown)
    _has("Zanzibar", server.result("GET", "/v1/gaps"))
    skipped = server.result("POST", "/v1/extract", {"conversation_id": "travel"})
    must(skipped["skipped"] == "no_model", skipped)


def _care(server: Server, _: Path) -> None:
    must(server.result("GET", "/health")["ok"] is True, "the server says that it is not well")
    must(server.ask("GET", "/health/live", token=False).status == 200, "not live")
    _has("anaphora", server.result("GET", "/metrics"))
    chat = b'{"role": "user", "content": "The pilot boat is called Kestrel."}\n'
    server.result("POST", "/v1/import?name=pilot.jsonl", raw=chat)
    hits = server.result("POST", "/v1/search", {"question": "what is the pilot boat called?"})
    _has("Kestrel", hits)


def _seed(server: Server, _: Path) -> None:
    _has("travel", server.result("GET", "/conversations"))
    _has(_FERRY, server.result("GET", "/conversations/travel"))


def _audit(server: Server, _: Path) -> None:
    must(server.result("GET", "/v1/audit/status")["on"] is False, "nothing turned it on")


def _sync(server: Server, _: Path) -> None:
    _has("status", server.result("GET", "/v1/sync"))


SAMPLES: Final[Mapping[str, Callable[[Server, Path], None]]] = {
    "memory": _memory,
    "conversation": _conversation,
    "context": _context,
    "documents": _documents,
    "deep": _deep,
    "care": _care,
    "seed": _seed,
    "audit": _audit,
    "sync": _sync,
}
"""For each group of routes: requests that are right, over one home and in this order."""
