"""The bodies, queries and answers of the routes of sync."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from anaphora.features.sync.values import SyncConflict, SyncDevice, SyncStatus
from anaphora.surfaces.rest.schemas import Body, Parameters

_DEVICE = "The device, by its name in the project."
Sealed = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,80}$")]
ProjectId = Annotated[Sealed, Field(description="The project that the devices share.")]


class StateQuery(Parameters):
    """Which project, and which digest of a path or a conversation."""

    project_id: ProjectId
    query_hash: Annotated[
        Sealed | None,
        Field(
            description="The digest of a path or a conversation, as the project's devices make it."
        ),
    ] = None


class EntriesQuery(Parameters):
    """Which entries of which device."""

    project_id: ProjectId
    device: Annotated[Sealed, Field(description=_DEVICE)]
    after: Annotated[int, Field(ge=0, le=2**53, description="Only entries after this number.")] = 0
    limit: Annotated[int, Field(ge=1, le=100)] = 50


class NewEntries(Body):
    """Entries as devices make them."""

    project_id: ProjectId
    entries: Annotated[
        list[dict[str, Any]],
        Field(
            max_length=100,
            description="Entries as devices make them, each following the last one of its device.",
        ),
    ]


class RemovedDevice(Body):
    """A device that is to be removed."""

    device: Annotated[str, Field(min_length=1, max_length=200, description=_DEVICE)]


class HeadShape(BaseModel):
    """The last entry of a device."""

    number: int
    snapshot_id: str


class SealedEntry(BaseModel):
    """An entry: what a server sees of it, and in `sealed` what it does not (base64).

    `dropped`, its id, stands there instead once what it said is gone.
    """

    v: int
    project: str
    device: str
    number: int
    epoch: str
    parent: str
    hashes: list[str]
    signature: str
    sealed: str | None = None
    dropped: str | None = None


class SyncShape(BaseModel):
    """How this namespace is synced; `project` is empty where it is not."""

    status: SyncStatus
    devices: list[SyncDevice]
    conflicts: list[SyncConflict] = []


class AgentState(BaseModel):
    """How far a project has come. `status` is "active" or "empty"."""

    project_id: str
    status: Literal["active", "empty"]
    heads: dict[str, HeadShape]
    payload: SealedEntry | None = None


class EntriesShape(BaseModel):
    """Entries in order."""

    project_id: str
    entries: list[SealedEntry]


class Pushed(BaseModel):
    """How many entries were new."""

    project_id: str
    accepted: int
