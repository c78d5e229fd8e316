"""`anaphora hook CLIENT`: answers one event of a coding agent."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def run(words: Sequence[str], place: Mapping[str, str]) -> bool:
    """Answer the event on standard input; False for words that name no client."""
    if len(words) != 1 or words[0].startswith("-"):
        return False
    settings = {name: text for name, text in place.items() if text.strip()}
    try:
        from anaphora.features.coding_agents.hooks.client import run_hook

        run_hook(words[0], settings)
    except (SystemExit, GeneratorExit, KeyboardInterrupt, BrokenPipeError):
        raise
    except BaseException as error:  # noqa: BLE001 - the client goes on without its memory
        from anaphora.system.environment import environment
        from anaphora.system.incidents import report

        report(environment(), error, surface="hook", operation="start")
        sys.exit(0)
    return True
