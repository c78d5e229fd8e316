"""The commands of features that run before the registry is loaded.

A client blocks on its hook, and importing all features takes longer than the hook itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def run_at_once(command: Sequence[str], options: Mapping[str, str]) -> bool:
    """Run a hook or the resident process; False if the command is neither.

    `options` are those that all commands share, by their names.
    """
    if command[:1] not in (["hook"], ["resident"]):
        return False
    from anaphora.features.coding_agents.at_once import run

    return run(command, options)
