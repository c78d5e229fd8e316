"""The routes of sync: `/v1/sync`, for a namespace of this home that is synced elsewhere, and
`/v2/agent-state`, for devices that sync through this server.

Entries of devices are sealed: the server checks that they follow one another, but cannot read them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import Request

from anaphora.api.memory import Memory
from anaphora.features.sync.schemas import (
    AgentState,
    EntriesQuery,
    EntriesShape,
    NewEntries,
    Pushed,
    RemovedDevice,
    StateQuery,
    SyncShape,
)
from anaphora.features.sync.values import SyncReport
from anaphora.surfaces.rest.calls import opens_all
from anaphora.surfaces.rest.problems import Problem
from anaphora.surfaces.rest.routing import LaneRouter

router = LaneRouter("sync", "/v2")
own_router = LaneRouter("sync")


@own_router.answers("GET /sync", "How this namespace is synced", SyncShape)
def sync_status(memory: Memory, request: Request) -> Any:
    """What waits, why it stopped, the devices, and open conflicts; reaches for no remote.

    Only tokens for all namespaces see the address of the remote.
    """
    return _shape(memory, request)


@own_router.answers("POST /sync", "Exchange now", SyncReport)
def sync_now(memory: Memory) -> Any:
    """Send what is new here, and take in what other devices have sent."""
    return memory.sync.now()


@own_router.answers("POST /sync/remove", "Remove a device", SyncShape)
def remove_device(memory: Memory, body: RemovedDevice, request: Request) -> Any:
    """The others continue with a new key that it lacks. Requires a token for all namespaces."""
    if not opens_all(request):
        raise Problem(403, "namespace", "this token may not remove a device: it needs all of them")
    memory.sync.remove(body.device)
    return _shape(memory, request)


def _shape(memory: Memory, request: Request) -> dict[str, Any]:
    status = memory.sync.status()
    if not opens_all(request):
        # An address or a path of this machine, which the reason can quote.
        stop_reason = None if status.stopped is None else "the last exchange failed"
        status = replace(status, remote="", stopped=stop_reason)
    is_synced = bool(status.project)
    return {
        "status": status,
        "devices": memory.sync.devices() if is_synced else (),
        "conflicts": memory.sync.conflicts() if is_synced else (),
    }


@router.answers("GET /agent-state", "How far a project has come, and its newest entry", AgentState)
def agent_state(memory: Memory, query: StateQuery) -> Any:
    """The last entry of each device; with `query_hash`, the newest entry that has that digest.

    `payload` comes as ciphertext: only the project's devices can open it.
    """
    project = query.project_id
    heads = memory.hosted_logs.heads(project)
    payload = memory.hosted_logs.latest(project, query.query_hash)
    return {
        "project_id": project,
        "status": "active" if heads else "empty",
        "heads": heads,
        "payload": payload,
    }


@router.answers("GET /agent-state/entries", "The entries of a device", EntriesShape)
def read_entries(memory: Memory, query: EntriesQuery) -> Any:
    """Those behind the number `after`, in order."""
    entries = memory.hosted_logs.read(query.project_id, query.device, query.after, query.limit)
    return {"project_id": query.project_id, "entries": entries}


@router.answers("POST /agent-state/drop", "Drop what was in entries", Pushed)
def drop_entries(memory: Memory, body: NewEntries) -> Any:
    """For what was forgotten: header and id stay, all or none. 409 where another one is here."""
    accepted_count = memory.hosted_logs.drop(body.project_id, body.entries)
    return {"project_id": body.project_id, "accepted": accepted_count}


@router.answers("POST /agent-state", "Leave entries", Pushed)
def push_entries(memory: Memory, body: NewEntries) -> Any:
    """All or none. 409 where one does not follow the last one of its device."""
    accepted_count = memory.hosted_logs.write(body.project_id, body.entries)
    return {"project_id": body.project_id, "accepted": accepted_count}
