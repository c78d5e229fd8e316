"""The audit trail of a namespace: a chain of entries, each bound to all before it.

The link of an entry is HMAC-SHA-256 (RFC 2104) under a key of the namespace over the link before
it, its number and its content. The head of the namespace, which every write locks, says whether the
trail is kept and has its tip: so a write that changes something adds its entry in its own
transaction, whichever process it is, and where no trail is kept nothing is done for it.

Nothing here says words: conversations and questions are digests under the key.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from anaphora.core.caller import call_origin
from anaphora.errors import InvalidInput, StoreError
from anaphora.store.codecs import from_micros, to_micros
from anaphora.store.db.tables import AUDIT_ENTRY, AUDIT_STATE, HEAD
from anaphora.store.namespace import NO_LIMIT, STEP, NamespaceReader, NamespaceTransaction
from anaphora.values.audit import AuditAction, AuditEntry, AuditProblem, AuditReport, AuditStatus

if TYPE_CHECKING:
    from anaphora.store.crypto.columns import Sealer
    from anaphora.store.db.engine import Write

MOST_IDS: Final = 1_000
"""Ids that one entry lists; `count` has them all."""
KEY_BYTES: Final = 32
DIGEST_CHARACTERS: Final = 32
"""Of the digest of a conversation or a question: 128 bits."""

_DEEDS: Final[tuple[AuditAction, ...]] = (
    "remembered", "changed", "hidden", "restored", "forgotten",
)  # fmt: skip
"""What one write may do to records, in the order in which its entries come."""
_KEY: Final = "key"
_ON, _OFF = "on", "off"
_NO_LINK: Final = ""
_STATE: Final = "SELECT audit FROM head WHERE namespace = :namespace"
_BACKWARDS: Final = AUDIT_ENTRY.select() + "AND number < :before ORDER BY number DESC LIMIT :limit"
_FORWARDS: Final = AUDIT_ENTRY.select() + "AND number > :after ORDER BY number LIMIT :limit"
_KEYS: Final = AUDIT_STATE.select() + "AND name = :name"


@dataclass(frozen=True, slots=True)
class TrailHead:
    """What the head of a namespace says of its trail."""

    on: bool
    number: int
    link: str

    @classmethod
    def read(cls, stored: str | None) -> TrailHead:
        """Out of the head's own text; None where there was never a trail."""
        if stored is None:
            return cls(False, 0, _NO_LINK)
        word, number, link = stored.split(" ")
        return cls(word == _ON, int(number), link)

    def text(self) -> str:
        """As the head keeps it."""
        return f"{_ON if self.on else _OFF} {self.number} {self.link}"

    @property
    def tip(self) -> str:
        """The last entry and its link."""
        return f"{self.number}:{self.link}" if self.number else ""


def is_kept(stored: str | None) -> bool:
    """Whether what a head says of its trail is that one is kept."""
    return stored is not None and stored.startswith(_ON)


class ToldChanges:
    """What one write does to records, by what was done: told as it is done, added at its end."""

    def __init__(self, lane: str) -> None:
        self._lane = lane
        self._ids: dict[AuditAction, dict[str, None]] = {}

    def tell(self, action: AuditAction, ids: Iterable[str]) -> None:
        """These records were remembered, changed, hidden, restored or forgotten."""
        self._ids.setdefault(action, {}).update(dict.fromkeys(ids))

    def add_to(self, write: Write, sealer: Sealer) -> None:
        """Add it to the trail, in this very write."""
        # What came or went in it was not changed as well.
        more = {one for action, some in self._ids.items() if action != "changed" for one in some}
        told = {
            action: [one for one in some if action != "changed" or one not in more]
            for action, some in self._ids.items()
        }
        in_order = [(action, told[action]) for action in _DEEDS if told.get(action)]
        if not in_order:
            return
        work = _TrailTransaction(write, sealer)
        head, key, at = TrailHead.read(write.audit), work.key(), write.now()
        for action, ids in in_order:
            head = work.add(head, key, _content(at, action, self._lane, ids, len(ids), ""))
        work.put_head(head)
        self._ids.clear()


class AuditTrail(NamespaceReader):
    """The trail of one namespace."""

    def is_on(self) -> bool:
        """Whether it is kept now: one small read."""
        rows = self.truth.rows(_STATE, {"namespace": self.namespace})
        return bool(rows) and is_kept(rows[0][0])

    def status(self) -> AuditStatus:
        """Whether it is kept, and how far it has come."""
        head = self._head()
        return AuditStatus(head.on, head.number, head.tip)

    def switch(self, *, on: bool, new_key: Callable[[int], bytes]) -> AuditStatus:
        """Keep it from now on, or no longer; both are entries. What it is already it stays.

        `new_key` gives so many random bytes, for the first time.
        """
        with self._writing() as write:
            work = _TrailTransaction(write, self.sealer)
            head = TrailHead.read(write.audit)
            if head.on != on:
                key = work.key(new_key)
                head = TrailHead(on, head.number, head.link)
                action: AuditAction = "switched_on" if on else "switched_off"
                head = work.add(head, key, _content(write.now(), action, "audit", [], 0, ""))
                work.put_head(head)
            return AuditStatus(head.on, head.number, head.tip)

    def add(
        self, action: AuditAction, lane: str, ids: Sequence[str], *, count: int, question: str
    ) -> None:
        """Add one entry, in a transaction of its own, if the trail is kept.

        Ids that name conversations begin with "#" and are made digests; so is the question.
        """
        with self._write() as write:
            if not is_kept(write.audit):
                return
            work = _TrailTransaction(write, self.sealer)
            key = work.key()
            named = [digest_of(key, one[1:]) if one.startswith("#") else one for one in ids]
            asked = digest_of(key, question) if question else ""
            content = _content(write.now(), action, lane, named, count, asked)
            work.put_head(work.add(TrailHead.read(write.audit), key, content))

    def key(self) -> bytes | None:
        """The key of its digests and links; None where there was never a trail."""
        rows = self._found(AUDIT_STATE, _KEYS, name=_KEY)
        return bytes.fromhex(rows[0][1]) if rows else None

    def entries(self, before: int | None = None) -> Iterator[AuditEntry]:
        """Entries with numbers below `before`, the last first. `StoreError` for damage."""
        before = NO_LIMIT if before is None else before
        while rows := self._found(AUDIT_ENTRY, _BACKWARDS, before=before, limit=STEP):
            for number, body, _ in rows:
                yield _entry(number, body)
            before = rows[-1][0]

    def verify(self, tip: str | None = None) -> AuditReport:
        """Follow the whole chain; the first thing that is wrong, if any.

        `tip` is one that was noted elsewhere before: a trail that was cut, or made anew since, has
        never had it. `InvalidInput` for one that is no tip.
        """
        wanted = None if tip is None else _tip(tip)
        # Of one moment: what is written meanwhile is in the head and in the entries, or in neither.
        with self.truth.snapshot() as truth:
            trail = AuditTrail(truth, self.namespace, self.sealer)
            head, key = trail._head(), trail.key()
            if not head.number:
                problem = None if wanted is None else _other_tip(wanted[0])
                return AuditReport(0, "", problem)
            return trail._followed(head, key or b"", wanted)

    def _followed(self, head: TrailHead, key: bytes, wanted: tuple[int, str] | None) -> AuditReport:
        number, link, seen = 0, _NO_LINK, wanted is None
        for found, body, told in self._forwards():
            if found != number + 1:
                detail = f"entries {number + 1} to {found - 1} are not there"
                return AuditReport(number, head.tip, AuditProblem("missing", number + 1, detail))
            link = _link(key, link, found, body)
            if not hmac.compare_digest(link, told):
                detail = f"entry {found} is not what was written, or does not follow {number}"
                return AuditReport(number, head.tip, AuditProblem("changed", found, detail))
            number = found
            seen = seen or (number, link) == wanted
        if (number, link) != (head.number, head.link):
            return AuditReport(number, head.tip, _cut(number, head))
        problem = None if seen or wanted is None else _other_tip(wanted[0])
        return AuditReport(number, head.tip, problem)

    def _forwards(self) -> Iterator[tuple[int, str, str]]:
        after = 0
        while rows := self._rows(_FORWARDS, after=after, limit=STEP):
            for row in rows:
                yield row[0], self._body(row), row[2]
            after = rows[-1][0]

    def _body(self, row: tuple[Any, ...]) -> str:
        """The content of an entry; "" where somebody has changed what is encrypted."""
        from anaphora.errors import Tampered

        try:
            return str(self._opened(AUDIT_ENTRY, [row])[0][1])
        except Tampered:
            return ""

    def _head(self) -> TrailHead:
        rows = self.truth.rows(_STATE, {"namespace": self.namespace})
        return TrailHead.read(rows[0][0] if rows else None)


class _TrailTransaction(NamespaceTransaction):
    """What one write adds to the trail."""

    def key(self, new_key: Callable[[int], bytes] | None = None) -> bytes:
        """The key, made if there is none yet."""
        rows = self._found(AUDIT_STATE, name=_KEY)
        if rows:
            return bytes.fromhex(rows[0][1])
        if new_key is None:
            raise StoreError("write", "the audit trail", "its key is not there: run doctor")
        made = new_key(KEY_BYTES)
        self._insert(AUDIT_STATE, [{"name": _KEY, "value": made.hex()}])
        return made

    def add(self, head: TrailHead, key: bytes, body: str) -> TrailHead:
        """Add an entry; the head after it."""
        number = head.number + 1
        link = _link(key, head.link, number, body)
        self._insert(AUDIT_ENTRY, [{"number": number, "body": body, "link": link}])
        return TrailHead(head.on, number, link)

    def put_head(self, head: TrailHead) -> None:
        """Let the namespace's head say how far the trail has come."""
        self._set(HEAD, {"audit": head.text()})
        self.write.audit = head.text()


def digest_of(key: bytes, words: str) -> str:
    """What a conversation or a question is called in a trail: 128 bits of HMAC-SHA-256, as hex."""
    return hmac.new(key, b"words " + _bytes(words), "sha256").hexdigest()[:DIGEST_CHARACTERS]


def _link(key: bytes, before: str, number: int, body: str) -> str:
    return hmac.new(key, f"{before} {number} ".encode() + _bytes(body), "sha256").hexdigest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _content(
    at: datetime, action: str, lane: str, ids: Iterable[str], count: int, query: str
) -> str:
    origin = call_origin()
    told: dict[str, Any] = {
        "at": to_micros(at),
        "action": action,
        "lane": lane,
        "ids": list(ids)[:MOST_IDS],
        "count": count,
        "query": query,
        "surface": origin.surface,
        "token": origin.token,
        "agent": origin.agent,
    }
    return json.dumps({name: one for name, one in told.items() if one}, separators=(",", ":"))


def _entry(number: int, body: str) -> AuditEntry:
    try:
        told = json.loads(body)
        at = from_micros(told.pop("at", 0))
        assert at is not None
        return AuditEntry(number=number, at=at, ids=tuple(told.pop("ids", ())), **told)
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError("read", f"entry {number} of the audit trail", str(error)) from error


def _tip(given: str) -> tuple[int, str]:
    number, mark, link = given.strip().partition(":")
    if not mark or not number.isdecimal() or not link:
        raise InvalidInput("tip", given, "expected a tip as `audit verify` shows it: NUMBER:LINK")
    return int(number), link


def _other_tip(number: int) -> AuditProblem:
    detail = "the trail never had that tip: it was cut, or made anew"
    return AuditProblem("other_tip", number, detail)


def _cut(number: int, head: TrailHead) -> AuditProblem:
    if number < head.number:
        detail = f"the last entries are not there: {head.number} were written"
        return AuditProblem("truncated", number + 1, detail)
    detail = f"the head of the namespace says that entry {head.number} is the last, or another link"
    return AuditProblem("changed", number, detail)
