"""The checks of `doctor` for the coding agents that are set up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from anaphora.features.coding_agents.setup.trying import try_client
from anaphora.features.coding_agents.setup.written import clients_set_up
from anaphora.settings import client_folders
from anaphora.surfaces.cli.words import command_line


def check_clients(program: Sequence[str]) -> Iterator[tuple[str, bool, str, str]]:
    """Each client by name, whether it works, the detail, and the command that repairs it.

    Each client's own command stores a sentence and recalls it.
    """
    folders = client_folders()
    for client in clients_set_up(folders):
        trials = try_client(client, folders, list(program))
        failed_trial = next((trial for trial in trials if trial.problem), None)
        if failed_trial is None:
            detail = "; ".join(
                f"the {trial.what} answered in {trial.seconds:.1f} s and recalled a test sentence"
                for trial in trials
            )
            yield client, True, detail, ""
        else:
            detail = f"{failed_trial.what}, {failed_trial.step}: {failed_trial.problem}"
            yield client, False, detail, failed_trial.remedy


def _set_up_again(command: Any, detail: str) -> str:
    clients = clients_set_up(client_folders())
    words = ["setup", clients[0], "--yes"] if clients else ["setup", "--help"]
    return command_line([*command.program, *words])


REMEDIES: Final[Mapping[str, Any]] = {"hooks": _set_up_again}
"""What mends a failed check, by its name."""
