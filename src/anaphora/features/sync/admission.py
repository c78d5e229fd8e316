"""Which entries of which devices count: a function of all entries, independent of their order.

Some entries make **statements**: one removes devices, each behind the last of its entries that the
remover had read, or makes a new key for the devices that it knows, or both. A statement rules out
what the removed device wrote behind that entry, statements among it, and all of an identity that
the maker of a key did not know and that announced itself under an older one. No clock is read.

A statement counts unless a statement that counts rules it out. If two rule each other out, that of
the project's first device counts, because its name is bound to the project's. Otherwise both do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations
from typing import Any, Final

TOLD: Final = ""
"""The author of statements that came with the invitation of a device."""


@dataclass(frozen=True, slots=True)
class EntryStatement:
    """What entry `number` of a device states of others.

    `removed` maps devices to their last entries that count. `epoch` is that of a new key, and
    `recipients` have it; `seen` are the last entries that its author had read.
    """

    author: str
    number: int
    removed: Mapping[str, int] = field(default_factory=dict)
    epoch: str = ""
    recipients: frozenset[str] = frozenset()
    seen: Mapping[str, int] = field(default_factory=dict)

    def line(self) -> list[Any]:
        """Itself as JSON."""
        recipients, last_read = sorted(self.recipients), dict(self.seen)
        return [self.author, self.number, dict(self.removed), self.epoch, recipients, last_read]


def _numbers(line: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): int(number) for name, number in line.items()}


@dataclass(frozen=True)
class Admission:
    """The statements of a project, and under which key each device announced itself.

    `founder` is the project's first device, if the project's name tells which one that is.
    """

    statements: tuple[EntryStatement, ...] = ()
    announced: Mapping[str, str] = field(default_factory=dict)
    founder: str = ""

    def line(self) -> dict[str, Any]:
        """Itself as JSON."""
        return {
            "statements": [statement.line() for statement in self.statements],
            "announced": dict(self.announced),
            "founder": self.founder,
        }

    def with_facts(
        self, statements: Iterable[EntryStatement] = (), announced: Mapping[str, str] | None = None
    ) -> Admission:
        """A copy with more facts; recorded facts about an entry or device stay."""
        existing = {(statement.author, statement.number) for statement in self.statements}
        new_statements = [
            statement
            for statement in statements
            if (statement.author, statement.number) not in existing
        ]
        names = {**(announced or {}), **self.announced}
        return replace(self, statements=(*self.statements, *new_statements), announced=names)

    @cached_property
    def accepted(self) -> tuple[EntryStatement, ...]:
        """The statements that count."""
        accepted_statements: list[EntryStatement] = []
        undecided_statements = list(self.statements)
        while undecided_statements:
            # Those that nothing rules out; in a conflict, those that win it.
            against = {
                id(statement): [
                    rival for rival in undecided_statements if self._rules_out(rival, statement)
                ]
                for statement in undecided_statements
            }
            winners = (
                [statement for statement in undecided_statements if not against[id(statement)]]
                or [
                    statement
                    for statement in undecided_statements
                    if statement.author == self.founder
                ]
                or [
                    statement
                    for statement in undecided_statements
                    if all(self._rules_out(statement, rival) for rival in against[id(statement)])
                ]
                or undecided_statements
            )
            accepted_statements += winners
            undecided_statements = [
                statement
                for statement in undecided_statements
                if statement not in winners
                and not any(self._rules_out(rival, statement) for rival in winners)
            ]
        return tuple(accepted_statements)

    @cached_property
    def limits(self) -> Mapping[str, int]:
        """The last entry that counts, for each device with entries that do not."""
        limits: dict[str, int] = {}
        for statement in self.accepted:
            for device, mark in statement.removed.items():
                limits[device] = min(mark, limits.get(device, mark))
        for device in self.announced:
            if any(self._excludes(statement, device) for statement in self.accepted) or (
                (maker_statement := self._find_maker(device)) is not None
                and maker_statement not in self.accepted
            ):
                limits[device] = 0
        return limits

    def admits(self, device: str, number: int) -> bool:
        """Whether an entry counts."""
        limit = self.limits.get(device)
        return limit is None or number <= limit

    def lost_to_founder(self, device: str) -> bool:
        """Whether a device and the project's first one have removed each other."""
        pair = {device, self.founder}
        removals = {
            (statement.author, name) for statement in self.statements for name in statement.removed
        }
        return len(pair) == 2 and removals >= set(permutations(pair))

    def usable_epochs(self, epochs: Iterable[str], members: Iterable[str]) -> list[str]:
        """The epochs with a key that all present devices have, and no removed one."""
        by_epoch = {statement.epoch: statement for statement in self.accepted if statement.epoch}
        rotated_epochs = {statement.epoch for statement in self.statements}
        present = [device for device in members if device not in self.limits]
        usable = []
        for epoch in epochs:
            maker_statement = by_epoch.get(epoch)
            if maker_statement is None:
                usable += [epoch] if epoch not in rotated_epochs and not self.limits else []
            elif all(self._has_key(device, maker_statement) for device in present) and not any(
                self._has_key(device, maker_statement) for device in self.limits
            ):
                usable.append(epoch)
        return usable

    def have_all(self, epoch: str, members: Iterable[str]) -> bool:
        """Whether all of these devices have the key of an epoch."""
        makers = [statement for statement in self.statements if statement.epoch == epoch]
        return not makers or all(self._has_key(device, makers[0]) for device in members)

    def _rules_out(self, statement: EntryStatement, target: EntryStatement) -> bool:
        if statement is target or target.author == TOLD:
            return False
        mark = statement.removed.get(target.author)
        return (mark is not None and target.number > mark) or self._bars(statement, target.author)

    def _bars(
        self, statement: EntryStatement, device: str, seen: frozenset[str] = frozenset()
    ) -> bool:
        """Whether a statement keeps out an identity, or the key under which that came."""
        if self._excludes(statement, device):
            return True
        maker_statement = self._find_maker(device)
        if (
            maker_statement is None
            or maker_statement is statement
            or maker_statement.author in seen | {device, TOLD}
        ):
            return False
        mark = statement.removed.get(maker_statement.author)
        is_behind = mark is not None and maker_statement.number > mark
        return is_behind or self._bars(statement, maker_statement.author, seen | {device})

    def _excludes(self, statement: EntryStatement, device: str) -> bool:
        """Whether the maker of a key did not know a device, which came under an older one."""
        if not statement.epoch or device == statement.author or device not in self.announced:
            return False
        return device not in statement.seen and not self._has_key(device, statement)

    def _has_key(self, device: str, statement: EntryStatement) -> bool:
        """Whether a device has the key that a statement made: it was sent it, or joined with it."""
        if device == statement.author or device in statement.recipients:
            return True
        if self.announced.get(device) == statement.epoch:
            return True
        maker_statement = self._find_maker(device)
        if maker_statement is None or maker_statement is statement:
            return False
        return (
            maker_statement.author == statement.author
            and maker_statement.number >= statement.number
        ) or (maker_statement.seen.get(statement.author, -1) >= statement.number)

    def _find_maker(self, device: str) -> EntryStatement | None:
        """The statement that made the key under which a device announced itself."""
        epoch = self.announced.get(device)
        makers = [statement for statement in self.statements if epoch and statement.epoch == epoch]
        return min(makers, key=lambda statement: (statement.author, statement.number), default=None)


def admission_of(line: Mapping[str, Any]) -> Admission:
    """The admission that `Admission.line` wrote. ValueError, KeyError, TypeError, or others."""
    announced_epochs = {str(device): str(epoch) for device, epoch in line["announced"].items()}
    statements = tuple(
        EntryStatement(
            str(author), int(number), _numbers(removed), str(epoch),
            frozenset(map(str, recipients)), _numbers(last_read),
        )
        for author, number, removed, epoch, recipients, last_read in line["statements"]
    )  # fmt: skip
    return Admission(statements, announced_epochs, str(line.get("founder", "")))
