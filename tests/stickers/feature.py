"""All that the program sees of stickers."""

from __future__ import annotations

from anaphora.container.feature import Commands, Feature, LineKind
from anaphora.store.db.table import clear, namespaced, sealed

from .services import StickerReader, StickerServices

TABLE = namespaced(
    "sticker",
    ("sticker_id",),
    clear("sticker_id"),
    clear("seq", "big"),
    sealed("text", needed=True),
)

FEATURE = Feature(
    "stickers",
    StickerServices,
    tables=(TABLE,),
    search_kinds=("sticker",),
    commands=(Commands(f"{__package__}.surfaces:register", ("sticker",), 200),),
    routes=(f"{__package__}.surfaces:router",),
    tools=f"{__package__}.surfaces:TOOLS",
    line_kinds=lambda: (
        LineKind(
            ("sticker",),
            80,
            lambda source: source.services.feature(StickerServices).lines(),
            StickerReader,
        ),
    ),
)
