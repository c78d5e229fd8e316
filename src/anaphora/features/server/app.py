"""Builds the application from routes, gate, metrics and the page, over an open memory."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from itertools import chain

from anyio import create_task_group, sleep
from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from anaphora.api.memory import Memory
from anaphora.container.feature import load, registered
from anaphora.errors import AnaphoraError
from anaphora.features.server import metrics
from anaphora.features.server.auth import is_page
from anaphora.features.server.gate import RequestGate
from anaphora.store.tokens import Tokens
from anaphora.surfaces.logs import SERVER
from anaphora.surfaces.rest import conversations, home, memories, problems
from anaphora.surfaces.rest.calls import Service
from anaphora.surfaces.rest.openapi import document
from anaphora.surfaces.rest.options import ServerOptions
from anaphora.surfaces.wire import dumps
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
        version=version("anaphora"),
        # Their pages load scripts from other sites.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lambda _: _life(service, figures),
    )
    app.state.service = service
    app.state.metrics = figures
    problems.register(app)
    # The routes themselves: an included router would hide them from code that lists all routes.
    of_features = (load(route) for feature in registered() for route in feature.routes)
    routers = (
        memories.router,
        conversations.router,
        home.router,
        home.root_router,
        metrics.router,
        conversations.seed_router,
        *of_features,
    )
    routes = chain.from_iterable(router.routes for router in routers)
    # "/memories/history" before "/memories/{memory_id}".
    app.router.routes.extend(sorted(routes, key=lambda route: "{" in getattr(route, "path", "")))
    app.add_api_route("/openapi.json", _openapi, include_in_schema=False)
    app.openapi = lambda: document(app)  # type: ignore[method-assign]
    app.add_middleware(RequestGate, service=service)
    app.add_middleware(metrics.MetricsMiddleware, metrics=figures, service=service)
    if options.page is not None and options.page.is_dir():
        app.mount("/", _PageFiles(directory=options.page, html=True), name="page")
    return app


class _PageFiles(StaticFiles):
    """The files of the page; 404 for any other path."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Serve a file of the page."""
        if not is_page("GET", scope["path"]):
            raise HTTPException(404)
        return await super().get_response(path, scope)


async def _openapi(request: Request) -> Response:
    return Response(dumps(request.app.openapi(), indent=None), media_type="application/json")


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
            if isinstance(error, AnaphoraError | problems.Problem):
                _log.warning("a background dream failed: %s", type(error).__name__)
            else:
                incident = report(environment(), error, surface="http", operation="dream")
                _log.warning("a background dream failed (incident %s)", incident.id)
            figures.dreams.labels("failed").inc()
