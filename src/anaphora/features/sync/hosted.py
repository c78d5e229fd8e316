"""The logs that a server stores for devices. It can check their order, but not read them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from anaphora.errors import Diverged, InvalidInput, RemoteTampered
from anaphora.features.sync.entries import LogEntry, entry_of
from anaphora.features.sync.remotes.base import NAME
from anaphora.store.table_rows import TableRows

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

Row = dict[str, Any]
_HOSTED: Final = "sync_hosted"
_HASH: Final = "sync_hash"
_ID: Final = re.compile(r"[0-9a-f]{64}")
_HEADS: Final = ("project", "device", "number", "snapshot_id")


@dataclass(frozen=True, slots=True)
class HostedHead:
    """The last entry of a device."""

    number: int
    snapshot_id: str


class HostedLogs:
    """The logs in one namespace of a server's home. Safe to share between threads."""

    def __init__(self, services: NamespaceServices) -> None:
        self._rows = TableRows(services.truth, services.namespace, services.sealing.rows)

    def heads(self, project: str) -> dict[str, HostedHead]:
        """The last entry of each device of a project; empty for an unknown project."""
        _check_name("project_id", project)
        heads: dict[str, HostedHead] = {}
        for row in self._rows.find(_HOSTED, {"project": project}, only=_HEADS):
            head = heads.get(row["device"])
            if head is None or head.number < row["number"]:
                heads[row["device"]] = HostedHead(int(row["number"]), row["snapshot_id"])
        return dict(sorted(heads.items()))

    def read(
        self, project: str, device: str, after: int = 0, limit: int = 1
    ) -> list[dict[str, Any]]:
        """The entries of a device behind a number, in order."""
        _check_name("project_id", project)
        _check_name("device", device)
        numbers = range(after + 1, after + 1 + limit)
        payloads = []
        for number in numbers:
            rows = self._rows.find(
                _HOSTED, {"project": project, "device": device, "number": number}
            )
            if not rows:
                break
            payloads.append(json.loads(rows[0]["body"]))
        return payloads

    def write(self, project: str, entries: Sequence[Mapping[str, Any]]) -> int:
        """Keep entries, all or none; how many are new.

        Raises InvalidInput for anything that is not an entry, Diverged for an entry that does not
        follow the last one of its device, or differs from the stored one of its number.
        """
        _check_name("project_id", project)
        parsed_entries = [_parse_entry(project, line, at) for at, line in enumerate(entries)]
        new_count = 0
        with self._rows.change() as work:
            heads: dict[str, HostedHead] = {}
            for log_entry, body in parsed_entries:
                device, number = log_entry.header.device, log_entry.header.number
                key: Row = {"project": project, "device": device, "number": number}
                stored_rows = work.find(_HOSTED, key)
                if stored_rows and stored_rows[0]["snapshot_id"] != log_entry.id:
                    raise Diverged(project, f"entry {number} of device {device} is another one")
                if stored_rows:
                    continue
                previous_rows = work.find(_HOSTED, key | {"number": number - 1})
                head = heads.get(device) or (
                    HostedHead(number - 1, previous_rows[0]["snapshot_id"])
                    if previous_rows
                    else HostedHead(0, "")
                )
                if log_entry.dropped is not None:
                    raise Diverged(project, f"entry {number} of device {device} has no content")
                if (head.number + 1, head.snapshot_id) != (number, log_entry.header.parent):
                    raise Diverged(
                        project,
                        f"entry {number} of device {device} does not follow the last one here",
                    )
                work.replace(_HOSTED, [key | {"snapshot_id": log_entry.id, "body": body}])
                work.replace(
                    _HASH, [key | {"hash": digest} for digest in set(log_entry.header.hashes)]
                )
                heads[device] = HostedHead(number, log_entry.id)
                new_count += 1
        return new_count

    def drop(self, project: str, entries: Sequence[Mapping[str, Any]]) -> int:
        """Empty entries, all or none; how many had content.

        Raises InvalidInput for anything that is not an entry, Diverged if the stored one differs.
        """
        _check_name("project_id", project)
        parsed_entries = [_parse_entry(project, line, at) for at, line in enumerate(entries)]
        count = 0
        with self._rows.change() as work:
            for log_entry, body in parsed_entries:
                header = log_entry.header
                key: Row = {"project": project, "device": header.device, "number": header.number}
                stored_rows = work.find(_HOSTED, key)
                if (
                    log_entry.dropped is None
                    or not stored_rows
                    or stored_rows[0]["snapshot_id"] != log_entry.id
                ):
                    raise Diverged(
                        project, f"entry {header.number} of device {header.device} is another one"
                    )
                if stored_rows[0]["body"] != body:
                    work.replace(_HOSTED, [key | {"snapshot_id": log_entry.id, "body": body}])
                    work.drop(_HASH, key)
                    count += 1
        if count:
            self._rows.truth.scrub()
        return count

    def latest(self, project: str, query_hash: str | None) -> dict[str, Any] | None:
        """The newest entry of a project that has this digest, or of all; None if there is none."""
        _check_name("project_id", project)
        if query_hash is None:
            rows = self._rows.find(_HOSTED, {"project": project}, newest=True, limit=1)
            return _read_body(rows[0]) if rows else None
        _check_name("query_hash", query_hash)
        matches = self._rows.find(_HASH, {"project": project, "hash": query_hash})
        candidates = [
            row
            for match in matches
            for row in self._rows.find(
                _HOSTED, {"project": project, "device": match["device"], "number": match["number"]}
            )
        ]
        return _read_body(max(candidates, key=lambda row: int(row["seq"]))) if candidates else None


def _read_body(row: Mapping[str, Any]) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(row["body"])
    return payload


def _check_name(field: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise InvalidInput(field, name, "expected 1 to 80 letters, digits, - or _")


def _parse_entry(project: str, line: Mapping[str, Any], at: int) -> tuple[LogEntry, bytes]:
    device, number = line.get("device"), line.get("number")
    field = f"entries[{at}]"
    if not isinstance(device, str) or not isinstance(number, int) or isinstance(number, bool):
        raise InvalidInput(field, None, "it has no device or no number")
    if not NAME.fullmatch(device) or not 0 < number < 2**53:
        raise InvalidInput(field, None, "its device or its number is none")
    try:
        log_entry = entry_of(line, field, device, number)
    except RemoteTampered as error:
        raise InvalidInput(field, None, error.reason) from None
    if log_entry.dropped is not None and not _ID.fullmatch(log_entry.dropped):
        raise InvalidInput(field, None, "its id is none")
    if log_entry.header.project != project:
        raise InvalidInput(field, log_entry.header.project, "it is another project's")
    return log_entry, log_entry.data()
