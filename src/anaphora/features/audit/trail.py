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
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from anaphora.calls.caller import call_origin
from anaphora.errors import AnaphoraError, InvalidInput, StoreError, Tampered
from anaphora.features.audit.tables import AUDIT_ENTRY, AUDIT_STATE
from anaphora.features.audit.values import (
    AuditEntry,
    AuditFault,
    AuditProblem,
    AuditReport,
    AuditStatus,
)
from anaphora.store.codecs import moment, to_micros
from anaphora.store.db.tables import HEAD
from anaphora.store.namespace import NO_LIMIT, STEP, NamespaceReader, NamespaceTransaction
from anaphora.values.actions import DIGESTED, AuditAction

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
_HEAD: Final = re.compile(r"(on|off) ([1-9][0-9]{0,17}) ([0-9a-f]{64})", re.ASCII)
_LINK: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_TIP_DIGITS: Final = 18
_ANEW: Final = "`audit on` or `audit off` goes on from the last entry and records that"
_DAMAGED_HEAD: Final = f"its head is damaged; {_ANEW}"
_SWITCHED_UNTOLD: Final = {
    True: "the head says that the trail is on, the entries that it was switched off",
    False: "the head says that the trail is off, and no entry says who switched it off",
}
_MADE_ANEW: Final = "the home's key vouches for an entry that is not there: cut off, or made anew"
_WAS_OFF: Final = (
    "somebody without the home's key had switched it off; calls were refused meanwhile"
)
_UNTOLD: Final = "untold"
_KEY: Final = "key"
_TURN: Final = "turn"
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
        """Out of the head's own text; None where there was never a trail.

        `StoreError` for another text: it could have been on, and then nothing may go untold.
        """
        if stored is None:
            return cls(False, 0, _NO_LINK)
        parts = _HEAD.fullmatch(stored)
        if parts is None:
            raise StoreError("read", "the audit trail", _DAMAGED_HEAD)
        return cls(parts[1] == _ON, int(parts[2]), parts[3])

    def text(self) -> str:
        """As the head keeps it."""
        return f"{_ON if self.on else _OFF} {self.number} {self.link}"

    @property
    def tip(self) -> str:
        """The last entry and its link."""
        return f"{self.number}:{self.link}" if self.number else ""


def is_kept(write: Write, sealer: Sealer) -> bool:
    """Whether a trail is kept. `StoreError` where that cannot be read, or where a head that the
    home's key vouches for was taken back: then it was switched off without that key."""
    head, vouched = TrailHead.read(write.audit), _Vouched.read(sealer, write.namespace)
    if head.on and not vouched.heads:
        # Begun by an older build, or before the home was encrypted.
        sealer.vouch(write.namespace, [head.text()])
    if head.on or vouched.allow(head) or _TrailTransaction(write, sealer).tells_end(head, vouched):
        return head.on
    sealer.vouch(write.namespace, [*vouched.texts(), f"{_UNTOLD} {vouched.heads[-1].number}"])
    raise StoreError("read", "the audit trail", f"{_SWITCHED_UNTOLD[False]}; {_ANEW}")


@dataclass(frozen=True, slots=True)
class _Vouched:
    """What the key of an encrypted home vouches for: heads that the trail has had, the last of them
    as it was switched or verified last; `untold` is the entry after which a head was found that was
    switched off without the key."""

    heads: tuple[TrailHead, ...] = ()
    untold: int | None = None

    @classmethod
    def read(cls, sealer: Sealer, namespace: str) -> _Vouched:
        heads: list[TrailHead] = []
        untold: int | None = None
        for text in sealer.audited(namespace):
            if not text.startswith(_UNTOLD):
                heads.append(TrailHead.read(text))
            elif untold is None:
                untold = int(text.split()[1])
        return cls(tuple(heads), untold)

    def texts(self, last: TrailHead | None = None) -> list[str]:
        """The heads as the marker has them; with another last one."""
        heads = self.heads if last is None else (*self.heads[:-1], last)
        return [head.text() for head in heads]

    def allow(self, head: TrailHead) -> bool:
        """Whether a head that is off needs no entry that tells of it."""
        return not self.heads or head == self.heads[-1]

    def problem(self, chain: _Chain) -> AuditProblem | None:
        """What is wrong with the chain."""
        lost = [head.number for head in self.heads if (head.number, head.link) not in chain.seen]
        if lost:
            fault: AuditFault = "truncated" if lost[0] > chain.number else "changed"
            return AuditProblem(fault, lost[0], _MADE_ANEW)
        return None if self.untold is None else AuditProblem("changed", self.untold, _WAS_OFF)


class RecordJournal:
    """What one write does to records, by action: noted as it is done, stored at its end."""

    def __init__(self, lane: str) -> None:
        self._lane = lane
        self._ids: dict[str, dict[str, None]] = {}

    def note(self, action: str, ids: Iterable[str]) -> None:
        """These records were remembered, changed, hidden, restored or forgotten."""
        self._ids.setdefault(action, {}).update(dict.fromkeys(ids))

    def add_to(self, write: Write, sealer: Sealer) -> None:
        """Add it to the trail, in this very write."""
        # What came or went in it was not changed as well.
        came_or_went = {
            record_id
            for action, ids_of_action in self._ids.items()
            if action != "changed"
            for record_id in ids_of_action
        }
        ids_by_action = {
            action: [
                record_id
                for record_id in ids_of_action
                if action != "changed" or record_id not in came_or_went
            ]
            for action, ids_of_action in self._ids.items()
        }
        in_order = [
            (action, ids_by_action[action]) for action in _DEEDS if ids_by_action.get(action)
        ]
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
        head = self._head()
        if head.on or _Vouched.read(self.sealer, self.namespace).allow(head):
            return head.on
        with self._write() as write:
            return is_kept(write, self.sealer)

    def status(self) -> AuditStatus:
        """Whether it is kept, and how far it has come."""
        head = self._head()
        return AuditStatus(head.on, head.number, head.tip)

    def switch(self, *, on: bool, new_key: Callable[[int], bytes]) -> AuditStatus:
        """Keep it from now on, or no longer; both are entries. What it is already it stays.

        Where the head or the key is damaged or older than the entries, it goes on from the last
        entry, and an entry says so: `verify` still finds what is missing or changed before it.
        `new_key` gives so many random bytes, for the first time.
        """
        with self._writing() as write:
            work = _TrailTransaction(write, self.sealer)
            rows = self._rows(_BACKWARDS, before=NO_LIMIT, limit=1)
            last_entry = None
            if rows:
                number, _, link = rows[0]
                # The head keeps only a whole link, and no entry follows from a damaged one.
                last_entry = number, str(link) if _LINK.fullmatch(str(link)) else "0" * 64
            head, key, sound = work.sound_head(last_entry, new_key)
            at, vouched = write.now(), _Vouched.read(self.sealer, self.namespace)
            sound = sound and vouched.untold is None
            if not sound:
                head = work.add(head, key, _content(at, "recovered", "audit", [], 0, ""))
            if head.on != on or not sound:
                head = TrailHead(on, head.number, head.link)
                action: AuditAction = "switched_on" if on else "switched_off"
                head = work.add(head, key, _content(at, action, "audit", [], 0, ""))
                work.put_head(head)
            # Where it was made anew `verify` goes on to miss what was there.
            lost = vouched.heads and not work.has(vouched.heads[-1])
        if head.number:
            heads = [*vouched.texts(), head.text()] if lost else vouched.texts(head)
            self.sealer.vouch(self.namespace, heads)
        return AuditStatus(head.on, head.number, head.tip)

    def add(
        self, action: AuditAction, lane: str, ids: Sequence[str], *, count: int, question: str
    ) -> None:
        """Add one entry, in a transaction of its own, if the trail is kept.

        Ids that begin with `DIGESTED` are made digests; so is the question.
        """
        with self._write() as write:
            if not is_kept(write, self.sealer):
                return
            work = _TrailTransaction(write, self.sealer)
            key = work.key()
            entry_ids = [
                digest_of(key, some_id[1:]) if some_id.startswith(DIGESTED) else some_id
                for some_id in ids
            ]
            question_digest = digest_of(key, question) if question else ""
            content = _content(write.now(), action, lane, entry_ids, count, question_digest)
            work.put_head(work.add(TrailHead.read(write.audit), key, content))

    def add_turns(self, action: AuditAction, conversation_id: str, count: int) -> None:
        """Add a change of so many turns of a conversation, if the trail is kept."""
        if self.is_on():
            self.add(action, _TURN, [DIGESTED + conversation_id], count=count, question="")

    def key(self) -> bytes | None:
        """The key of its digests and links; None where there was never a trail."""
        rows = self._found(AUDIT_STATE, _KEYS, name=_KEY)
        return _read_key(rows[0][1]) if rows else None

    def entries(self, before: int | None = None) -> Iterator[AuditEntry]:
        """Entries with numbers below `before`, the last first. `StoreError` for damage."""
        before = NO_LIMIT if before is None else before
        while rows := self._found(AUDIT_ENTRY, _BACKWARDS, before=before, limit=STEP):
            for number, body, _ in rows:
                try:
                    fields = json.loads(body)
                    at = moment(int(fields.pop("at")))
                    ids = tuple(fields.pop("ids", ()))
                    entry = AuditEntry(number=number, at=at, ids=ids, **fields)
                except (
                    ValueError,
                    TypeError,
                    LookupError,
                    AttributeError,
                    ArithmeticError,
                    RecursionError,
                ) as error:
                    reason = f"entry {number} of the audit trail"
                    raise StoreError("read", reason, str(error)) from error
                yield entry
            before = rows[-1][0]

    def verify(self, tip: str | None = None) -> AuditReport:
        """Follow the whole chain; the first thing that is wrong, if any.

        `tip` is one that was noted elsewhere before: a trail that was cut, or made anew since, has
        never had it. `InvalidInput` for one that is no tip.
        """
        noted_tip = None
        if tip is not None:
            number, mark, link = tip.strip().partition(":")
            if not mark or not number.isdecimal() or len(number) > _TIP_DIGITS or not link:
                reason = "expected a tip as `audit verify` shows it: NUMBER:LINK"
                raise InvalidInput("tip", tip, reason)
            noted_tip = int(number), link
        vouched = _Vouched.read(self.sealer, self.namespace)
        # Of one moment: what is written meanwhile is in the head and in the entries, or in neither.
        with self.truth.snapshot() as truth:
            trail = AuditTrail(truth, self.namespace, self.sealer)
            tips = {(head.number, head.link) for head in vouched.heads} | {noted_tip}
            followed_chain = trail._follow(tips)
            try:
                head = trail._head()
            except StoreError as error:
                problem = AuditProblem("changed", followed_chain.number, error.reason)
                return AuditReport(followed_chain.number, "", followed_chain.problem or problem)
            report = trail._compare(head, followed_chain, vouched, noted_tip)
        if report.problem is None and head.number:
            # From now on this much cannot be cut off unseen. A home that is only read stays as is.
            self.sealer.vouch(self.namespace, vouched.texts(head))
        return report

    def _follow(self, tips: Collection[tuple[int, str] | None]) -> _Chain:
        """The entries from the first one on, as far as each follows from the last."""
        chain = _Chain(on=False, seen={None})
        try:
            key = self.key() or b""
        except AnaphoraError:
            # No entry follows under another key: the first one is named.
            key = b""
        for number, body, stored_link in self._forwards():
            if number != chain.number + 1:
                detail = f"entry {chain.number + 1} is not there, {number} is"
                chain.problem = AuditProblem("missing", chain.number + 1, detail)
                return chain
            link = _link(key, chain.link, number, body)
            if not hmac.compare_digest(link.encode(), _bytes(str(stored_link))):
                detail = f"entry {number} is not what was written, or does not follow {number - 1}"
                chain.problem = AuditProblem("changed", number, detail)
                return chain
            chain.number, chain.link = number, link
            chain.seen |= {(number, link)} & set(tips)
            action = _action(body)
            if action in {"switched_on", "switched_off"}:
                chain.on = action == "switched_on"
        return chain

    def _compare(
        self,
        head: TrailHead,
        chain: _Chain,
        vouched: _Vouched,
        tip: tuple[int, str] | None,
    ) -> AuditReport:
        """What the head says against what the entries say."""
        problem = chain.problem
        if problem is None and (chain.number, chain.link) != (head.number, head.link):
            if chain.number < head.number:
                detail = f"the last entries are not there: {head.number} were written"
                problem = AuditProblem("truncated", chain.number + 1, detail)
            else:
                detail = (
                    f"the head of the namespace says that entry {head.number} is the last, "
                    "or another link"
                )
                problem = AuditProblem("changed", chain.number, detail)
        if problem is None and head.on != chain.on:
            problem = AuditProblem("changed", head.number, _SWITCHED_UNTOLD[head.on])
        problem = problem or vouched.problem(chain)
        if problem is None and tip not in chain.seen and tip is not None:
            detail = "the trail never had that tip: it was cut, or made anew"
            problem = AuditProblem("other_tip", tip[0], detail)
        return AuditReport(chain.number, head.tip, problem)

    def _forwards(self) -> Iterator[tuple[int, str, str]]:
        """The number, content and link of each entry; the content is "" if it does not decrypt."""
        last_number = 0
        while rows := self._rows(_FORWARDS, after=last_number, limit=STEP):
            for row in rows:
                try:
                    body = str(self._opened(AUDIT_ENTRY, [row])[0][1])
                except Tampered:
                    body = ""
                yield row[0], body, row[2]
            last_number = rows[-1][0]
            if not isinstance(last_number, int):
                return  # Not a number: it was reported as an entry that is missing.

    def _head(self) -> TrailHead:
        rows = self.truth.rows(_STATE, {"namespace": self.namespace})
        return TrailHead.read(rows[0][0] if rows else None)


@dataclass(slots=True)
class _Chain:
    """How far the entries follow each other: the last one, whether it leaves the trail on, which
    tips that were asked for came by, and the first thing that is wrong."""

    on: bool
    seen: set[tuple[int, str] | None]
    number: int = 0
    link: str = _NO_LINK
    problem: AuditProblem | None = None


class _TrailTransaction(NamespaceTransaction):
    """What one write adds to the trail."""

    def sound_head(
        self, last: tuple[int, str] | None, new_key: Callable[[int], bytes]
    ) -> tuple[TrailHead, bytes, bool]:
        """The head to go on from, the key, and whether both are what the last write left.

        `last` is the last entry that is there. A head that counts more entries stays: what was cut
        off behind `last` must not be forgotten.
        """
        number, link = last or (0, _NO_LINK)
        try:
            head = TrailHead.read(self.write.audit)
            sound = head.number >= number
        except StoreError:
            head, sound = TrailHead(False, number, link), False
        if not sound:
            head = TrailHead(head.on, number, link)
        try:
            key = self.key()
        except AnaphoraError:
            self._delete(AUDIT_STATE, name=_KEY)
            # A new home has no key either: nothing is lost there.
            sound = sound and not number
            key = self.key(new_key)
        return head, key, sound

    def tells_end(self, head: TrailHead, vouched: _Vouched) -> bool:
        """Whether an entry, after the head that was vouched for last, says that the trail ends."""
        rows = self._found(AUDIT_ENTRY, number=head.number) if self.has(head) else ()
        is_later = head.number > vouched.heads[-1].number
        return bool(rows) and is_later and _action(str(rows[0][1])) == "switched_off"

    def has(self, head: TrailHead) -> bool:
        """Whether the entry that was the last one for this head is there."""
        rows = self._rows(AUDIT_ENTRY, ("link",), number=head.number)
        return bool(rows) and rows[0][0] == head.link

    def key(self, new_key: Callable[[int], bytes] | None = None) -> bytes:
        """The key, made if there is none yet."""
        rows = self._found(AUDIT_STATE, name=_KEY)
        if rows:
            return _read_key(rows[0][1])
        if new_key is None:
            raise StoreError("write", "the audit trail", f"its key is not there: {_ANEW}")
        key = new_key(KEY_BYTES)
        self._insert(AUDIT_STATE, [{"name": _KEY, "value": key.hex()}])
        return key

    def add(self, head: TrailHead, key: bytes, body: str) -> TrailHead:
        """Add an entry; the head after it. `StoreError` where the head is older than that."""
        number = head.number + 1
        if self._rows(AUDIT_ENTRY, ("number",), number=number):
            raise StoreError(
                "write", "the audit trail", f"entry {number} is there already; {_ANEW}"
            )
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


def _read_key(stored: str) -> bytes:
    try:
        return bytes.fromhex(stored)
    except ValueError as error:
        raise StoreError("read", "the audit trail", f"its key is damaged; {_ANEW}") from error


def _action(body: str) -> object:
    """What an entry says was done; None where it cannot be read."""
    with suppress(ValueError, AttributeError, RecursionError):
        return json.loads(body).get("action")
    return None


def _link(key: bytes, before: str, number: int, body: str) -> str:
    return hmac.new(key, f"{before} {number} ".encode() + _bytes(body), "sha256").hexdigest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _content(
    at: datetime, action: str, lane: str, ids: Iterable[str], count: int, query: str
) -> str:
    origin = call_origin()
    fields: dict[str, Any] = {
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
    return json.dumps(
        {name: field for name, field in fields.items() if field}, separators=(",", ":")
    )
