"""What statements make of earlier ones, and which were judged: beside the truth, gone with it.

A reference names a turn or a record (`values.links`). Both ends of every link are judged
statements, so that whoever forgets one finds its links.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from typing import Final

from anaphora.store.db.statements import execute
from anaphora.store.db.table import Table
from anaphora.store.db.tables import JUDGED, VERDICT
from anaphora.store.namespace import NamespaceReader, NamespaceTransaction, ids_named
from anaphora.values.links import StatementLink, conversation_of

# As the fields of a link.
_COLUMNS = ("older", "newer", "older_stamp", "newer_stamp", "replaces", "holds", "repeats")
_OF_ONE = ("older", "newer", "replaces", "repeats")
# With the whole key, to which a sealed stamp is bound.
_STAMPS = ("statement", "conversation_id", "stamp")
PUT_BACK: Final = ""
"""In place of a judge's version: an earlier statement has come since."""
_COUNT = "SELECT COUNT(*), COUNT(NULLIF(judge, '')) FROM judged WHERE namespace = "


class VerdictTransaction(NamespaceTransaction):
    """What one write transaction does to links."""

    def put(
        self,
        judge: str,
        stamps: Mapping[str, str],
        links: Sequence[StatementLink],
        rejudged: Collection[str] = (),
    ) -> None:
        """Write that these statements were judged, and their links in place of all they had.

        Of those that were `rejudged` the links to later ones stay. A link to a statement that
        is gone is left out.
        """
        self.drop(stamps.keys() - set(rejudged))
        self._drop(rejudged, ((VERDICT, "newer"), (JUDGED, "statement")))
        self._note(judge, stamps)
        ends = {end for link in links for end in (link.older, link.newer)}
        known_references = {*stamps, *self._judged(ends - stamps.keys())}
        kept_links = [link for link in links if {link.older, link.newer} <= known_references]
        rows = [dict(zip(_COLUMNS, astuple(link), strict=True)) for link in kept_links]
        self._insert(VERDICT, rows)

    def put_back(self, stamps: Mapping[str, str]) -> None:
        """Write that statements with these stamps are to be judged again; their links stay."""
        self._drop(stamps, ((JUDGED, "statement"),))
        self._note(PUT_BACK, stamps)

    def _note(self, judge: str, stamps: Mapping[str, str]) -> None:
        judged_rows = [
            {
                "statement": reference,
                "conversation_id": conversation_of(reference),
                "stamp": stamp,
                "judge": judge,
            }
            for reference, stamp in stamps.items()
        ]
        self._insert(JUDGED, judged_rows)

    def count(self) -> tuple[int, int]:
        """As `StoredVerdicts.count`."""
        statement = f"{_COUNT}?"
        judged_count, done_count = execute(
            self.write.connection, statement, (self.namespace,)
        ).fetchone()
        return judged_count, done_count

    def drop(self, references: Iterable[str]) -> None:
        """Delete what is known of statements."""
        self._drop(references, ((VERDICT, "newer"), (VERDICT, "older"), (JUDGED, "statement")))

    def _drop(self, references: Iterable[str], columns: Iterable[tuple[Table, str]]) -> None:
        references = list(references)
        for table, column in columns:
            lookups = [self._lookup(column, reference) for reference in references]
            self._delete(table, **{column: lookups})

    def drop_turns(self, conversation_id: str, index: int | None) -> None:
        """Delete what is known of a turn, or of all turns of a conversation.

        It counts as a change: what was judging one meanwhile must not write it.
        """
        stored_id = self._lookup("conversation_id", conversation_id)
        rows = self._rows(JUDGED, ("statement",), conversation_id=stored_id)
        open_id = self.sealer.found
        references = [open_id("statement", self.namespace, row[0]) for row in rows]
        of_turn = f"#{index}"
        self.drop(name for name in references if index is None or name.endswith(of_turn))
        self.write.take()

    def clear(self) -> None:
        """Delete all."""
        self._delete(VERDICT)
        self._delete(JUDGED)

    def _judged(self, references: Collection[str]) -> set[str]:
        by_lookup = {self._lookup("statement", reference): reference for reference in references}
        rows = self._rows(JUDGED, ("statement",), statement=list(by_lookup))
        return {by_lookup[row[0]] for row in rows}


class StoredVerdicts(NamespaceReader):
    """The links of one namespace. A home that is older than their tables has none."""

    def of(
        self, references: Collection[str], replaces: float, repeats: float
    ) -> list[StatementLink]:
        """The links that have one of these statements at either end, each once.

        Those of which one of both probabilities is at least so high.
        """
        condition = f"AND (replaces >= {replaces} OR repeats >= {repeats})"
        links: dict[tuple[object, ...], StatementLink] = {}
        for end in ("newer", "older"):
            lookups = [self._lookup(end, reference) for reference in references]
            for parameters, names in ids_named(lookups):
                statement = VERDICT.select(_COLUMNS) + f"AND {end} IN ({names}) {condition}"
                rows = self._opened(VERDICT, self._rows(statement, **parameters), _COLUMNS)
                links.update((row[:2], StatementLink(*row)) for row in rows)
        return list(links.values())

    def of_one(self, references: Collection[str], least: float) -> dict[tuple[str, str], float]:
        """What each of these statements replaces or repeats at least so probably, (older, newer),
        and how probably."""
        lookups = [self._lookup("newer", reference) for reference in references]
        chances: dict[tuple[str, str], float] = {}
        for parameters, names in ids_named(lookups):
            condition = f"AND replaces + repeats >= {least} AND newer IN ({names})"
            rows = self._rows(VERDICT.select(_OF_ONE) + condition, **parameters)
            for older, newer, replaces, repeats in self._opened(VERDICT, rows, _OF_ONE):
                chances[older, newer] = replaces + repeats
        return chances

    def stamps(self, references: Collection[str]) -> dict[str, str]:
        """The stamps with which these were judged; those that were not are missing."""
        lookups = [self._lookup("statement", reference) for reference in references]
        stamps: dict[str, str] = {}
        for parameters, names in ids_named(lookups):
            statement = JUDGED.select(_STAMPS) + f"AND statement IN ({names})"
            rows = self._rows(statement, **parameters)
            opened_rows = self._opened(JUDGED, rows, _STAMPS, ("statement", "stamp"))
            stamps.update((reference, stamp) for reference, _, stamp in opened_rows)
        return stamps

    def judged(self) -> dict[str, tuple[str, str]]:
        """Every statement that was judged, with its stamp and the version of what judged it."""
        rows = self._found(JUDGED, JUDGED.select())
        return {reference: (stamp, judge) for reference, _, stamp, judge in rows}

    def linkings(self) -> tuple[tuple[str, int], ...]:
        """What changes with every change of links, and with any other, in any process."""
        return self.truth.linkings(self.namespace)

    def count(self) -> tuple[int, int]:
        """How many statements were judged, and how many of these not to be judged again."""
        rows = self._rows(f"{_COUNT}:namespace")
        return rows[0] if rows else (0, 0)

    @contextmanager
    def change(self) -> Iterator[VerdictTransaction]:
        """One write transaction, kept whole or not. `ReadOnly`, `DiskFull` or `StoreError`.

        `linkings` counts it: answers that were kept are of the links before it.
        """
        with self._writing() as write:
            yield VerdictTransaction(write, self.sealer)
            write.count_linking()
