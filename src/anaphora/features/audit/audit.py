"""The audit trail of a namespace: switched on and off, shown, verified."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from anaphora.calls.arguments import checked
from anaphora.errors import AnaphoraError, InvalidInput
from anaphora.features.audit.trail import AuditTrail, digest_of
from anaphora.features.audit.values import AuditEntry, AuditReport, AuditStatus
from anaphora.values.actions import AuditAction
from anaphora.values.conversations import Check

SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit trail of one namespace."""

    _trail: AuditTrail

    def on(self) -> AuditStatus:
        """Keep a trail from now on, in every process. Earlier actions are not in it."""
        return self._trail.switch(on=True, new_key=secrets.token_bytes)

    def off(self) -> AuditStatus:
        """Keep none from now on. The existing entries stay; switched on again, it continues."""
        return self._trail.switch(on=False, new_key=secrets.token_bytes)

    def status(self) -> AuditStatus:
        """Whether a trail is kept, how many entries it has, and its tip."""
        return self._trail.status()

    @checked
    def show(
        self,
        *,
        limit: int = SHOWN,
        before: int | None = None,
        action: AuditAction | None = None,
        about: str | None = None,
        question: str | None = None,
    ) -> tuple[AuditEntry, ...]:
        """At most `limit` entries, the last first; those with numbers below `before`.

        Only those of an `action`, those about a memory, note or conversation by its id, or those
        of a `question` in these very words. Raises `InvalidInput`, `StoreError`.
        """
        if limit < 1:
            raise InvalidInput("limit", limit, "expected at least 1")
        trail = self._trail
        key = trail.key() or b""
        about_digests = None if about is None else {about, digest_of(key, about)}
        question_digest = None if question is None else digest_of(key, question)
        entries: list[AuditEntry] = []
        for entry in trail.entries(before):
            if action is not None and entry.action != action:
                continue
            if about_digests is not None and not about_digests & set(entry.ids):
                continue
            if question_digest is not None and entry.query != question_digest:
                continue
            entries.append(entry)
            if len(entries) == limit:
                break
        return tuple(entries)

    @checked
    def verify(self, tip: str | None = None) -> AuditReport:
        """Follow the whole chain; what is wrong first, if anything.

        `tip` is one that was noted elsewhere before: a trail that was cut short or made anew since
        never had it. Raises `InvalidInput` for one that is no tip.
        """
        return self._trail.verify(tip)


def audit_checks(trail: AuditTrail) -> Iterator[Check]:
    """The checks of `doctor` for the trail, if there is one. Nothing raises."""
    try:
        report = trail.verify()
        if not report.entries and not report.tip and report.problem is None:
            return
    except AnaphoraError as error:
        yield Check("audit", ok=False, detail=str(error))
        return
    if report.problem is not None:
        detail = f"{report.problem.fault} from entry {report.problem.number} on: "
        yield Check("audit", ok=False, detail=detail + report.problem.detail)
        return
    state = "kept" if trail.is_on() else "switched off"
    yield Check("audit", ok=True, detail=f"{report.entries} entries follow each other; {state}")
