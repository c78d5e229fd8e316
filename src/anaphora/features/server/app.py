"""Builds the application from routes, gate, metrics and the page, over an open memory."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain

from anyio import create_task_group, sleep
from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from anaphora import __version__
from anaphora.api.memory import Memory
from anaphora.container.feature import load, registered
from anaphora.errors import AnaphoraError
from anaphora.features.server import metrics
from anaphora.features.server.auth import is_page
from anaphora.features.server.gate import RequestGate
from anaphora.store.tokens import Tokens
from anaphora.surfaces.logs import SERVER
from anaphora.surfaces.rest import conversations, home, memories
from anaphora.surfaces.rest.calls import Service
from anaphora.surfaces.rest.openapi import document
from anaphora.surfaces.rest.options import ServerOptions
from anaphora.surfaces.rest.problems import Problem
from anaphora.system.environment import environment
from anaphora.system.incidents import report

_log = logging.getLogger(SERVER)


def build(memory: Memory, tokens: Tokens, options: ServerOptions) -> FastAPI:
    """The application over `memory`."""
    service = Service(memory, tokens, options)
    figures = metrics.Metrics(service)
    app = FastAPI(
        title="Anaphora",
        summary="Memory for AI agents, over HTTP.",
        description="Every route works in one namespace, which a header names.",
        version=__version__,
        # Their pages load scripts from other sites.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lambda _: _life(service, figures),
    )
    app.state.service = service
    app.state.metrics = figures
    # The routes themselves: an included router would hide them from code that lists all routes.
    routers = (
        memories.router,
        conversations.router,
        home.router,
        home.root_router,
        metrics.router,
        conversations.seed_router,
        *(load(route) for feature in registered() for route in feature.routes),
    )
    routes = chain.from_iterable(router.routes for router in routers)
    # "/memories/history" before "/memories/{memory_id}".
    app.router.routes.extend(sorted(routes, key=lambda route: "{" in getattr(route, "path", "")))
    app.openapi = lambda: document(app)  # type: ignore[method-assign]
    if options.page is not None and options.page.is_dir():
        app.mount("/", _PageFiles(directory=options.page, html=True), name="page")
    # The gate answers for every error: none of the framework's layers is left to do anything.
    app.middleware_stack = RequestGate(_find_by_path(app.router), service, figures)
    return app


def _find_by_path(router: APIRouter) -> ASGIApp:
    """The router, but most routes are found by their method and path instead of tried in turn."""
    literal = {
        (method, route.path): route
        for route in router.routes
        if isinstance(route, Route) and "{" not in route.path
        for method in route.methods or ()
    }

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        route = literal.get((scope.get("method", ""), scope.get("path", "")))
        if route is not None:
            scope["route"], scope["path_params"] = route, {}
        await (router if route is None else route.app)(scope, receive, send)

    return respond


class _PageFiles(StaticFiles):
    """The files of the page; 404 for any other path."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Serve a file of the page."""
        if not is_page("GET", scope["path"]):
            raise HTTPException(404)
        return await super().get_response(path, scope)


@asynccontextmanager
async def _life(service: Service, figures: metrics.Metrics) -> AsyncIterator[None]:
    """Dreams regularly while the server runs; at its end waits for calls in progress."""
    try:
        async with create_task_group() as tasks:
            if service.options.dream_every is not None:
                tasks.start_soon(_dream_regularly, service, figures, service.options.dream_every)
            yield
            tasks.cancel_scope.cancel()
    finally:
        service.finish()


async def _dream_regularly(service: Service, figures: metrics.Metrics, seconds: float) -> None:
    while True:
        await sleep(seconds)
        try:
            for namespace in await service.run("question", service.memory.namespaces):
                view = service.view(namespace)
                await service.run("deep", view.run_jobs)
                await service.run("deep", view.dream)
                figures.dreams.labels("done").inc()
        except Exception as error:  # noqa: BLE001 - a server must not end by a dream
            # The next one may succeed. An error of ours may quote a memory, so only its type is
            # logged.
            if isinstance(error, AnaphoraError | Problem):
                _log.warning("a background dream failed: %s", type(error).__name__)
            else:
                incident = report(environment(), error, surface="http", operation="dream")
                _log.warning("a background dream failed (incident %s)", incident.id)
            figures.dreams.labels("failed").inc()
