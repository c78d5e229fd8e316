"""Metrics for Prometheus: requests, cache, pending work. No label contains user data.

Labels are methods, declared routes, lanes and status codes, so their number is bounded.
"""

from __future__ import annotations

import logging
from typing import Final

from fastapi import Request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest
from starlette.responses import Response
from starlette.types import Scope

from anaphora.surfaces.logs import SERVER
from anaphora.surfaces.rest.calls import Service, is_long, opens_all, service_of
from anaphora.surfaces.rest.problems import METHODS, REQUEST_ID, Problem, route_of
from anaphora.surfaces.rest.routing import LaneRouter

router = LaneRouter("care", "", closed=False)
_log = logging.getLogger(SERVER)
_REQUEST: Final = "request %s: %s was answered %d after %.3f s"
_BUCKETS: Final = (
    0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0,
)  # fmt: skip


class Metrics:
    """The metrics of one application, in their own registry."""

    def __init__(self, service: Service) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "anaphora_requests", "Requests answered.",
            ("method", "route", "lane", "status"), registry=self.registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "anaphora_request_seconds", "Time from the request to the end of its answer.",
            ("route", "lane"), registry=self.registry, buckets=_BUCKETS,
        )  # fmt: skip
        self.running = Gauge(
            "anaphora_calls_running", "Calls of the memory under way or waiting.",
            registry=self.registry,
        )  # fmt: skip
        self.running.set_function(service.running)
        self.cache = Counter(
            "anaphora_query_cache", "Query vectors that were in the cache, or not.",
            ("result",), registry=self.registry,
        )  # fmt: skip
        self.pending = Gauge(
            "anaphora_embeddings_pending", "Turns and memories whose vectors still come.",
            registry=self.registry,
        )  # fmt: skip
        self.jobs = Gauge(
            "anaphora_jobs_pending", "What ended sessions have queued.", registry=self.registry
        )
        self.dreams = Counter(
            "anaphora_dreams", "Background dreams.", ("result",), registry=self.registry
        )
        for outcome in ("hit", "miss"):
            self.cache.labels(outcome)
        self._options = service.options
        service.memory.on("cache", lambda event: self.cache.labels(event.type).inc())

    def record(self, scope: Scope, status: int, seconds: float) -> None:
        """Count one finished request; one that failed or was slow is logged."""
        route = scope.get("route")
        path = getattr(route, "path", None) or ("page" if status < 400 else "none")
        lane = str(next(iter(getattr(route, "tags", None) or ()), "other"))
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.requests.labels(method, path, lane, str(status)).inc()
        self.seconds.labels(path, lane).observe(seconds)
        options = self._options
        slow = options.slow_long_seconds if is_long(scope) else options.slow_seconds
        if status >= 500 or seconds > slow:
            level = logging.WARNING if status >= 500 else logging.INFO
            _log.log(level, _REQUEST, scope[REQUEST_ID], route_of(scope), status, seconds)


@router.get("/metrics", summary="Figures for Prometheus", response_class=Response)
async def metrics(request: Request) -> Response:
    """Counts and latencies since this server began; what waits is counted when this is asked.

    They are of all callers and namespaces: a token has to open all of them.
    """
    if not opens_all(request):
        raise Problem(
            403,
            "namespace",
            "metrics cover the whole home, and this token has access to part of it only",
        )
    service = service_of(request)
    figures: Metrics = request.app.state.metrics
    health = await service.run("question", service.memory.health)
    figures.pending.set(health.pending)
    figures.jobs.set(health.jobs)
    return Response(generate_latest(figures.registry), media_type=CONTENT_TYPE_LATEST)
