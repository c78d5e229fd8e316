"""Authorization of clients by OAuth, each with a token of the home."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anaphora.container.feature import Feature
from anaphora.features.oauth.tables import TABLES

if TYPE_CHECKING:
    from anaphora.store.tokens import Tokens


def _forget_tokens(tokens: Tokens, token_ids: Sequence[str]) -> None:
    from anaphora.features.oauth.grants import grants_of

    grants_of(tokens).drop_tokens(token_ids)


FEATURE = Feature(
    "oauth",
    tables=TABLES,
    forget_tokens=_forget_tokens,
    authorization=f"{__package__}.app:AuthorizationServer",
)
