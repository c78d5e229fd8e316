"""Opens one entry that a server gave, such as the payload of `GET /v2/agent-state`.

Nothing is applied and no remote is asked: the project keys of this device are enough.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from anaphora.errors import InvalidInput, RemoteTampered, WrongKey
from anaphora.features.sync.changes import WHOLE
from anaphora.features.sync.entries import EntryContent, LogEntry, entry_of, unseal
from anaphora.features.sync.items import kind_and_key
from anaphora.features.sync.membership import Member
from anaphora.features.sync.project import SyncProject
from anaphora.features.sync.values import SyncEntry, SyncItem

_SOURCE: Final = "payload"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def open_entry(project: SyncProject, payload: Mapping[str, Any] | str | bytes) -> SyncEntry:
    """The content of an entry, given as its JSON or as the whole answer with it as `payload`.

    Raises InvalidInput for what is no entry, WrongKey for one of another project or of a key that
    this device does not have, RemoteTampered for one that was altered or cut.
    """
    log_entry = _parse_payload(payload)
    header = log_entry.header
    if header.project != project.name:
        raise WrongKey(
            _SOURCE,
            f"it is of project {header.project}, and this device has the key of {project.name}",
        )
    if log_entry.dropped is not None:
        return SyncEntry(log_entry.id, header.device, header.number, without_content=True)
    cipher = project.cipher(header.epoch)
    if cipher is None:
        raise WrongKey(
            _SOURCE, f"this device does not have the key {header.epoch}: `sync now` may bring it"
        )
    content = unseal(log_entry, cipher, _SOURCE)
    return SyncEntry(
        log_entry.id,
        header.device,
        header.number,
        _to_time(content.at),
        tuple(
            SyncItem(
                *kind_and_key(patch.item),
                _to_time(patch.stamp.time),
                dict(patch.set),
                dict(patch.add),
                tuple(name for name in patch.drop if name != WHOLE),
                forgotten=WHOLE in patch.drop,
            )
            for patch in content.patches
        ),
        signed=_is_signed(project, log_entry, content),
    )


def _parse_payload(payload: Mapping[str, Any] | str | bytes) -> LogEntry:
    line: Any = payload
    if isinstance(payload, str | bytes):
        try:
            line = json.loads(payload)
        except ValueError as error:
            raise InvalidInput(_SOURCE, "…", f"expected JSON ({error})") from None
    if isinstance(line, Mapping) and "payload" in line:
        line = line["payload"]
    if not isinstance(line, Mapping):
        raise InvalidInput(
            _SOURCE, line, "expected the payload that a server gave for a query_hash"
        )
    device, number = line.get("device"), line.get("number")
    if not isinstance(device, str) or not isinstance(number, int):
        raise InvalidInput(_SOURCE, "…", "it is no entry: it has no device or no number")
    return entry_of(line, _SOURCE, device, number)


def _is_signed(project: SyncProject, entry: LogEntry, content: EntryContent) -> bool:
    """Whether its author is known and has signed it. RemoteTampered for a wrong signature."""
    header = entry.header
    if header.device == project.own:
        member: Member | None = project.membership.public
    else:
        member = project.devices.members.get(header.device) or content.member
    if member is None or member.device != header.device:
        return False
    if not member.has_signed(entry.id, entry.signature):
        raise RemoteTampered(_SOURCE, header.device, header.number, "its device has not signed it")
    return True


def _to_time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
