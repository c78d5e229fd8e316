"""All that the program sees of stickers."""

from __future__ import annotations

from anaphora.container.feature import Commands, Feature
from anaphora.store.db.table import clear, namespaced, sealed

from .services import STICKER, StickerServices

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
    search_kinds=(STICKER,),
    commands=(Commands(f"{__package__}.surfaces:register", 200, {"sticker": "Remember"}),),
    routes=(f"{__package__}.surfaces:router",),
    tools=f"{__package__}.surfaces:TOOLS",
    line_kinds=f"{__package__}.services:LINES",
)
