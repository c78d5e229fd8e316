"""Plain calls of a hook and of the resident process, which load no other command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

_PLACE: Final = {
    "--home": "home",
    "--namespace": "namespace",
    "--conversations-dir": "conversations",
}


def run(command: Sequence[str], options: Mapping[str, str]) -> bool:
    """Run the command; False if it has other words than a plain call, for the full parser."""
    if command == ["resident"]:
        from anaphora.features.coding_agents.resident.server import main

        main()
        return True
    if command[0] != "hook" or len(command) != 2 or command[1].startswith("-"):
        return False
    from anaphora.features.coding_agents.hooks.client import run_hook

    place = {_PLACE[name]: argument for name, argument in options.items() if argument.strip()}
    run_hook(command[1], place)
    return True
