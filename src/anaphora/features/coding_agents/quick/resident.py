"""`anaphora resident`: the process that answers hooks and embeds for other programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def run(words: Sequence[str], place: Mapping[str, str]) -> bool:
    """Run it until no program has asked for a while; False for any further word."""
    if words:
        return False
    from anaphora.features.coding_agents.resident.server import main

    main()
    return True
