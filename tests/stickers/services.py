"""The stickers of one namespace, and their part in what the kernel does with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from anaphora import Check, SearchHit
from anaphora.container.feature import FeatureServices, LineKind
from anaphora.ops.transfer.reading import BatchReader
from anaphora.recall.lanes import Lane, LaneAnswer, LaneHit, SearchRequest
from anaphora.values.search_kinds import HitKind

if TYPE_CHECKING:
    from collections.abc import Sequence

STICKER: Final = HitKind("sticker")


class StickerServices(FeatureServices):
    """Keeps stickers, and finds them by any word of the question."""

    name = "stickers"

    def add(self, text: str) -> str:
        """Keep a sticker; its id."""
        sticker_id = self.services.ids()
        with self.services.table_rows.change() as work:
            work.put("sticker", [{"sticker_id": sticker_id, "text": text}])
        return sticker_id

    def rows(self) -> list[Mapping[str, Any]]:
        """All of them, the oldest first."""
        return list(self.services.table_rows.find("sticker"))

    def lines(self) -> Iterator[Mapping[str, Any]]:
        """Their lines in an export."""
        for row in self.rows():
            yield {"kind": "sticker", "id": row["sticker_id"], "text": row["text"]}

    def lanes(self) -> Iterable[Lane]:
        """As in `FeatureServices`."""
        return (Lane("stickers", (STICKER,), frozenset(), self._search),)

    def _search(self, request: SearchRequest) -> LaneAnswer:
        hits = []
        for row in self.rows():
            text = str(row["text"])
            if any(term in text.lower() for term in request.question.terms):
                excerpt, matches = request.show(text)
                hit = SearchHit(STICKER.name, str(row["sticker_id"]), text, excerpt, 0.9, matches)
                hits.append(LaneHit(hit, 0.9))
        return LaneAnswer(tuple(hits), confidence=0.9 if hits else None)

    def checks(self) -> Iterable[Check]:
        """As in `FeatureServices`."""
        return (Check("stickers", ok=True, detail=f"{len(self.rows())} stickers"),)


class StickerReader(BatchReader[str]):
    """Reads their lines of an export; the same text comes once."""

    def parse(self, line: Mapping[str, Any]) -> str:
        """As in `BatchReader`."""
        return str(line["text"])

    def write(self, batch: Sequence[tuple[int, str]]) -> None:
        """As in `BatchReader`."""
        stickers = self.target.services.feature(StickerServices)
        known = {row["text"] for row in stickers.rows()}
        for _, text in batch:
            if text not in known:
                stickers.add(text)


LINES = (
    LineKind(
        ("sticker",),
        80,
        lambda source: source.services.feature(StickerServices).lines(),
        StickerReader,
    ),
)
