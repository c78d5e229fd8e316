"""What texts cost: tokens as the documentation defines them."""

from __future__ import annotations

__all__ = ["LEAST_BUDGET", "token_cost"]

LEAST_BUDGET = 120
"""The smallest budget of a package, a warm-up or a core block."""


def token_cost(text: str) -> int:
    """UTF-8 bytes / 4, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)
